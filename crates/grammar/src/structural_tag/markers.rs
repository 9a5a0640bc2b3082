//! Markers: pieces of text such as `<tool_call>`, which many tokenizers have as one special token.
//!
//! A structural tag knows no tokenizer, so it means both: the text, and the special token of that name where there is
//! one. What a vocabulary lacks is dropped when the grammar is compiled for it.

use std::ops::Range;

use stencilm_regex::ExprId;

use super::free_text::FreeText;
use crate::builder::GrammarBuilder;
use crate::grammar::NodeId;

/// The marker that begins all others of MiniMax-M3.
pub(super) const NAMESPACE: &str = "]<]minimax[>[";

/// Longest name that is looked for.
const LONGEST: usize = 64;

/// Where the markers of a text are: `<|name|>`, `<｜name｜>`, `<name>`, `</name>`, `[NAME]` and [`NAMESPACE`].
fn markers(text: &str) -> Vec<Range<usize>> {
    let is_name = |c: char| c.is_alphanumeric() || "_-.:/|｜▁".contains(c);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(['<', '[', ']']).map(|start| at + start) {
        if text[start..].starts_with(']') {
            let length = if text[start..].starts_with(NAMESPACE) { NAMESPACE.len() } else { 1 };
            at = start + length;
            found.extend((length > 1).then_some(start..at));
            continue;
        }
        let closing = if text[start..].starts_with('<') { '>' } else { ']' };
        let inner = &text[start + 1..];
        let end = inner.char_indices().take(LONGEST).find(|&(_, c)| !is_name(c));
        at = start + 1;
        if let Some((length, c)) = end
            && c == closing
            && length > 0
        {
            at = start + 1 + length + 1;
            found.push(start..at);
        }
    }
    found
}

/// A text, whose markers may each be the special token of that name.
pub(super) fn literal(builder: &mut GrammarBuilder, text: &str) -> NodeId {
    let mut parts = Vec::new();
    let mut done = 0;
    for marker in markers(text) {
        plain(builder, &text[done..marker.start], &mut parts);
        done = marker.end;
        parts.push(either(builder, &text[marker]));
    }
    plain(builder, &text[done..], &mut parts);
    if let [only] = parts[..] { only } else { builder.sequence(&parts) }
}

/// A marker, as text or as one token.
fn either(builder: &mut GrammarBuilder, marker: &str) -> NodeId {
    let token = builder.if_special_token(marker);
    let spelled = builder.exprs.literal(marker.as_bytes());
    let spelled = builder.lexeme(spelled);
    builder.choice(&[spelled, token])
}

/// One step of a text: a character, or a whole marker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step<'t> {
    Character(char),
    Marker(&'t str),
}

/// A way through the end of a trie: characters, last one first, that are not laid out yet, and what follows.
struct Way {
    reversed: String,
    node: NodeId,
}

impl Way {
    fn laid_out(&self, builder: &mut GrammarBuilder) -> NodeId {
        if self.reversed.is_empty() {
            return self.node;
        }
        let text: String = self.reversed.chars().rev().collect();
        let text = builder.exprs.literal(text.as_bytes());
        let text = builder.lexeme(text);
        builder.sequence(&[text, self.node])
    }
}

/// Any of these texts with what follows it, as a trie: hundreds of names that begin alike are decided step by step, so
/// that no place has hundreds of ways.
pub(super) fn branches(builder: &mut GrammarBuilder, texts: &[(&str, NodeId)]) -> NodeId {
    let mut words: Vec<(Vec<Step<'_>>, NodeId)> = texts
        .iter()
        .map(|&(text, node)| {
            let mut steps = Vec::new();
            let mut done = 0;
            for marker in markers(text) {
                steps.extend(text[done..marker.start].chars().map(Step::Character));
                done = marker.end;
                steps.push(Step::Marker(&text[marker]));
            }
            steps.extend(text[done..].chars().map(Step::Character));
            (steps, node)
        })
        .collect();
    words.sort();
    // `path` is the current text, and `open` says where in `ways` the ways behind each of its beginnings start.
    let mut path: Vec<Step<'_>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut ways: Vec<Way> = Vec::new();
    for (steps, node) in &words {
        let common = path.iter().zip(steps).take_while(|(a, b)| a == b).count();
        close_to(builder, common, &mut path, &mut open, &mut ways);
        for &step in &steps[common..] {
            path.push(step);
            open.push(ways.len());
        }
        ways.push(Way { reversed: String::new(), node: *node });
    }
    close_to(builder, 0, &mut path, &mut open, &mut ways);
    joined(builder, &ways)
}

fn joined(builder: &mut GrammarBuilder, ways: &[Way]) -> NodeId {
    let nodes: Vec<NodeId> = ways.iter().map(|way| way.laid_out(builder)).collect();
    if let [only] = nodes[..] { only } else { builder.choice(&nodes) }
}

fn close_to(
    builder: &mut GrammarBuilder,
    depth: usize,
    path: &mut Vec<Step<'_>>,
    open: &mut Vec<usize>,
    ways: &mut Vec<Way>,
) {
    while path.len() > depth
        && let (Some(step), Some(start)) = (path.pop(), open.pop())
    {
        let mut way = match ways.len() - start {
            1 => ways.pop().expect("there is one"),
            _ => Way { reversed: String::new(), node: joined(builder, &ways[start..]) },
        };
        ways.truncate(start);
        match step {
            Step::Character(character) => way.reversed.push(character),
            Step::Marker(marker) => {
                let (marker, rest) = (either(builder, marker), way.laid_out(builder));
                way = Way { reversed: String::new(), node: builder.sequence(&[marker, rest]) };
            }
        }
        ways.push(way);
    }
}

fn plain(builder: &mut GrammarBuilder, text: &str, parts: &mut Vec<NodeId>) {
    if !text.is_empty() {
        let expr = builder.exprs.literal(text.as_bytes());
        parts.push(builder.lexeme(expr));
    }
}

/// The ways from free text over a string that stops it: all of it as text, or some marker in it as a token.
pub(super) fn until(builder: &mut GrammarBuilder, free: &FreeText, unended: NodeId, stop: &str) -> Vec<NodeId> {
    let expr = free.until(&mut builder.exprs, stop);
    let mut ways = Vec::new();
    if expr != ExprId::NOTHING {
        ways.push(builder.lexeme(expr));
    }
    for marker in markers(stop) {
        let mut parts = vec![unended];
        plain(builder, &stop[..marker.start], &mut parts);
        parts.push(builder.if_special_token(&stop[marker.clone()]));
        if marker.end < stop.len() {
            parts.push(literal(builder, &stop[marker.end..]));
        }
        ways.push(builder.sequence(&parts));
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::markers;

    #[test]
    fn markers_are_found() {
        for (text, expected) in [
            ("", &[][..]),
            ("<tool_call>\n{\"name\": \"f\"", &["<tool_call>"]),
            ("<|start|>assistant<|channel|>commentary", &["<|start|>", "<|channel|>"]),
            ("<｜tool▁calls▁begin｜>", &["<｜tool▁calls▁begin｜>"]),
            ("</think>[TOOL_CALLS][", &["</think>", "[TOOL_CALLS]"]),
            ("<function=f> < > <> [] a<b", &[]),
            ("<<a>>", &["<a>"]),
            ("]<]minimax[>[<invoke name=\"f\">]<]minimax[>[</a>]]<", &["]<]minimax[>[", "]<]minimax[>[", "</a>"]),
        ] {
            let found: Vec<&str> = markers(text).into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
