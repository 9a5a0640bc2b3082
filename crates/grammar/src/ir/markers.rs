//! Markers: pieces of text such as `<tool_call>`, which many tokenizers have as one special token.
//!
//! A grammar knows no tokenizer, so they mean both: the text, and the special token of that name where there is one.
//! What a vocabulary lacks is dropped when the grammar is compiled for it.

use std::ops::Range;

use stencilm_regex::ExprId;

use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::NodeId;
use crate::word_trie;
use crate::word_trie::Part;

/// The marker that begins all other markers of MiniMax-M3.
pub(crate) const NAMESPACE: &str = "]<]minimax[>[";

/// The quotation mark of Gemma 4.
const QUOTE: &str = "<|\"|>";

/// The length of the longest name that is searched for.
const LONGEST: usize = 64;

/// Where the markers of a text are: `<|name|>`, `<｜name｜>`, `<name>`, `</name>`, `[NAME]`, [`NAMESPACE`] and [`QUOTE`].
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
        } else if text[start..].starts_with(QUOTE) {
            at = start + QUOTE.len();
            found.push(start..at);
        }
    }
    found
}

/// The marker at the beginning of a text.
pub(crate) fn first(text: &str) -> Option<&str> {
    let marker = markers(text).into_iter().next().filter(|marker| marker.start == 0)?;
    Some(&text[marker])
}

/// A text with whitespace before it; each of its markers may be the special token of that name.
pub(crate) fn with_whitespace(builder: &mut GrammarBuilder, whitespace: ExprId, text: &str) -> NodeId {
    let spelled = builder.exprs.literal(text.as_bytes());
    let spelled = builder.exprs.concat(whitespace, spelled);
    let spelled = builder.lexeme(spelled);
    if markers(text).is_empty() {
        return spelled;
    }
    let before = builder.lexeme(whitespace);
    let token = literal(builder, text);
    let by_token = builder.sequence(&[before, token]);
    builder.choice(&[spelled, by_token])
}

/// A text; each of its markers may be the special token of that name.
pub(crate) fn literal(builder: &mut GrammarBuilder, text: &str) -> NodeId {
    let mut parts = Vec::new();
    pieces(builder, text, &mut parts);
    if let [only] = parts[..] { only } else { builder.sequence(&parts) }
}

fn pieces(builder: &mut GrammarBuilder, text: &str, parts: &mut Vec<NodeId>) {
    let mut done = 0;
    for marker in markers(text) {
        plain(builder, &text[done..marker.start], parts);
        done = marker.end;
        parts.push(either(builder, &text[marker]));
    }
    plain(builder, &text[done..], parts);
}

/// A marker, as text or as one token.
fn either(builder: &mut GrammarBuilder, marker: &str) -> NodeId {
    let token = builder.if_special_token(marker);
    let spelled = builder.exprs.literal(marker.as_bytes());
    let spelled = builder.lexeme(spelled);
    builder.choice(&[spelled, token])
}

/// Any of these texts followed by its node, as a trie.
pub(crate) fn branches(builder: &mut GrammarBuilder, texts: &[(&str, NodeId)]) -> NodeId {
    word_trie::trie(texts.to_vec(), shared, |part| match part {
        Part::Text(text, node) => {
            let mut parts = Vec::new();
            pieces(builder, text, &mut parts);
            parts.push(node);
            builder.sequence(&parts)
        }
        Part::Any(alternatives) => builder.choice(alternatives),
    })
}

/// The length of the common prefix of two texts that doesn't end within a marker.
fn shared(one: &str, other: &str) -> usize {
    let common = word_trie::common_beginning(one, other);
    let cut = |text: &str| markers(text).into_iter().find(|marker| marker.start < common && marker.end > common);
    [one, other].into_iter().filter_map(cut).map(|marker| marker.start).fold(common, usize::min)
}

fn plain(builder: &mut GrammarBuilder, text: &str, parts: &mut Vec<NodeId>) {
    if !text.is_empty() {
        let expr = builder.exprs.literal(text.as_bytes());
        parts.push(builder.lexeme(expr));
    }
}

/// The alternatives for free text and the string that ends it: `whole`, which is all of it as text; or, after the text
/// `before` the string, the string with one of its markers as a token.
///
/// A token counts as the text of its name, so the text before the string is the same in all alternatives.
pub(crate) fn until(builder: &mut GrammarBuilder, whole: ExprId, before: NodeId, stop: &str) -> Vec<NodeId> {
    let mut alternatives = Vec::new();
    if whole != ExprId::NOTHING {
        alternatives.push(builder.lexeme(whole));
    }
    for marker in markers(stop) {
        let mut parts = vec![before];
        with_token(builder, stop, marker, &mut parts);
        alternatives.push(builder.sequence(&parts));
    }
    alternatives
}

/// A text with one of its markers as a token.
fn with_token(builder: &mut GrammarBuilder, text: &str, marker: Range<usize>, parts: &mut Vec<NodeId>) {
    plain(builder, &text[..marker.start], parts);
    parts.push(builder.if_special_token(&text[marker.clone()]));
    if marker.end < text.len() {
        parts.push(literal(builder, &text[marker.end..]));
    }
}

/// Any of these texts, as plain text, followed by its node.
pub(crate) fn spelled(builder: &mut GrammarBuilder, texts: &[(&str, NodeId)]) -> NodeId {
    word_trie::trie(texts.to_vec(), word_trie::common_beginning, |part| match part {
        Part::Text(text, node) => {
            let text = builder.exprs.literal(text.as_bytes());
            let text = builder.lexeme(text);
            builder.sequence(&[text, node])
        }
        Part::Any(alternatives) => builder.choice(alternatives),
    })
}

/// The texts that have markers, with one of the markers as a token, followed by their nodes.
pub(crate) fn by_tokens(builder: &mut GrammarBuilder, texts: &[(&str, NodeId)]) -> Vec<NodeId> {
    let mut alternatives = Vec::new();
    for &(text, node) in texts {
        for marker in markers(text) {
            let mut parts = Vec::new();
            with_token(builder, text, marker, &mut parts);
            parts.push(node);
            alternatives.push(builder.sequence(&parts));
        }
    }
    alternatives
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
