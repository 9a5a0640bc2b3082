//! The slow twin: which texts a grammar matches, by its definition, as a least fixed point over all places of a text.

use std::collections::BTreeSet;

use stencilm_grammar::{Grammar, Node, TokenPattern};
use stencilm_regex::{Deriver, ExprId, Limits};

/// Bytes that no test text has otherwise; in the place of tokens.
pub const TOKEN: u8 = 0xf8;

/// Whether the grammar matches the whole text. A token of the model is the byte [`TOKEN`]; objects are left to the
/// tests of JSON Schema.
pub fn matches(grammar: &Grammar, text: &[u8]) -> bool {
    let length = text.len();
    let mut deriver = Deriver::new(Limits::default());
    let spans: Vec<Vec<Vec<bool>>> = grammar
        .nodes()
        .iter()
        .map(|node| match node {
            Node::Lexeme(expr) => lexeme_spans(grammar, &mut deriver, *expr, text),
            Node::Token(pattern) => {
                let _: &TokenPattern = pattern;
                let at = |start: usize, end: usize| end == start + 1 && text[start] == TOKEN;
                (0..=length).map(|start| (0..=length).map(|end| at(start, end)).collect()).collect()
            }
            _ => vec![vec![false; length + 1]; length + 1],
        })
        .collect();
    let mut table = spans;
    loop {
        let mut changed = false;
        for (index, node) in grammar.nodes().iter().enumerate() {
            for start in 0..=length {
                for end in ends(grammar, node, &table, start, length) {
                    if !table[index][start][end] {
                        table[index][start][end] = true;
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            return table[grammar.root().0 as usize][0][length];
        }
    }
}

fn lexeme_spans(grammar: &Grammar, deriver: &mut Deriver, expr: ExprId, text: &[u8]) -> Vec<Vec<bool>> {
    let root = deriver.exprs.import(grammar.exprs(), expr);
    let mut spans = vec![vec![false; text.len() + 1]; text.len() + 1];
    for (start, row) in spans.iter_mut().enumerate() {
        let mut state = root;
        row[start] = deriver.exprs.is_nullable(state);
        for (offset, &byte) in text[start..].iter().enumerate() {
            state = deriver.after(state, byte).expect("small expressions stay within limits");
            row[start + offset + 1] = deriver.exprs.is_nullable(state);
        }
    }
    spans
}

type Ends = BTreeSet<usize>;

fn ends(grammar: &Grammar, node: &Node, table: &[Vec<Vec<bool>>], start: usize, length: usize) -> Ends {
    let of = |id: stencilm_grammar::NodeId, start: usize| -> Ends {
        (start..=length).filter(|&end| table[id.0 as usize][start][end]).collect()
    };
    match node {
        Node::Lexeme(_) | Node::Token(_) | Node::Members(_) | Node::Items(_) => Ends::new(),
        Node::Rule(rule) => of(grammar.rule(*rule).body, start),
        Node::Marked { body, .. } => of(*body, start),
        Node::Choice(parts) => parts.iter().flat_map(|&part| of(part, start)).collect(),
        Node::Sequence(parts) => parts
            .iter()
            .fold(Ends::from([start]), |from, &part| from.into_iter().flat_map(|start| of(part, start)).collect()),
        Node::Repeat { body, min, max } => {
            // More rounds than bytes make no difference, except that the least number of them must be done.
            let mut found = Ends::new();
            let mut now = Ends::from([start]);
            let mut round = 0;
            let mut seen: Vec<Ends> = Vec::new();
            loop {
                if round >= *min {
                    found.extend(&now);
                }
                if max.is_some_and(|max| round >= max) || now.is_empty() {
                    return found;
                }
                if round >= *min && seen.contains(&now) {
                    return found;
                }
                // Before the least number of rounds, a set that stays the same stays so.
                seen.push(now.clone());
                let next: Ends = now.iter().flat_map(|&start| of(*body, start)).collect();
                if next == now && round < *min {
                    round = *min;
                    continue;
                }
                now = next;
                round += 1;
            }
        }
    }
}
