//! Whether a text belongs to a grammar, the slow and obvious way: every node gives the set of places where it may end.
//!
//! Shares nothing with the matcher of the engine but the meaning of the nodes, so it can judge both.

use std::collections::{BTreeSet, HashMap};

use stencilm_grammar::{Grammar, Members, Node, NodeId};
use stencilm_regex::{Deriver, ExprId, Limits};

type Ends = BTreeSet<usize>;

/// A recogniser of one text.
pub struct Oracle<'a> {
    grammar: &'a Grammar,
    text: &'a [u8],
    deriver: Deriver,
    known: HashMap<(NodeId, usize), Ends>,
}

/// Whether the whole text belongs to the grammar.
pub fn accepts(grammar: &Grammar, text: &str) -> bool {
    let mut deriver = Deriver::new(Limits::default());
    deriver.exprs = grammar.exprs().clone();
    let mut oracle = Oracle { grammar, text: text.as_bytes(), deriver, known: HashMap::new() };
    oracle.ends(grammar.root(), 0).contains(&text.len())
}

impl Oracle<'_> {
    fn ends(&mut self, id: NodeId, start: usize) -> Ends {
        if let Some(known) = self.known.get(&(id, start)) {
            return known.clone();
        }
        let ends = match self.grammar.node(id).clone() {
            Node::Lexeme(expr) => self.lexeme(expr, start),
            Node::Rule(rule) => self.ends(self.grammar.rule(rule).body, start),
            Node::Capture { body, .. } => self.ends(body, start),
            Node::Token(_) => unreachable!("a schema asks for no single token"),
            Node::Choice(parts) => parts.iter().flat_map(|&part| self.ends(part, start)).collect(),
            Node::Sequence(parts) => {
                parts.iter().fold(Ends::from([start]), |from, &part| self.ends_from_all(part, &from))
            }
            Node::Repeat { body, min, max } => {
                let mut ends = Ends::new();
                let mut from = Ends::from([start]);
                let mut round = 0;
                while !from.is_empty() {
                    if round >= min {
                        ends.extend(&from);
                    }
                    if max == Some(round) {
                        break;
                    }
                    round += 1;
                    from = self.ends_from_all(body, &from);
                }
                ends
            }
            Node::Items(_) => unreachable!("these schemas make no such arrays"),
            Node::Members(id) => {
                let members = self.grammar.members(id).clone();
                let mut ends = Ends::new();
                if members.known.iter().all(|known| !known.required) {
                    ends.extend(self.lexeme(members.surface.empty, start));
                }
                for first in self.lexeme(members.surface.open, start) {
                    self.members(&members, first, &mut vec![false; members.known.len()], &mut Vec::new(), 0, &mut ends);
                }
                ends
            }
        };
        self.known.insert((id, start), ends.clone());
        ends
    }

    fn ends_from_all(&mut self, id: NodeId, from: &Ends) -> Ends {
        from.iter().flat_map(|&start| self.ends(id, start)).collect()
    }

    fn lexeme(&mut self, expr: ExprId, start: usize) -> Ends {
        let mut ends = Ends::new();
        let mut state = expr;
        for at in start..=self.text.len() {
            if self.deriver.exprs.is_nullable(state) {
                ends.insert(at);
            }
            let Some(&byte) = self.text.get(at) else { break };
            state = self.deriver.after(state, byte).expect("test expressions are small");
            if state == ExprId::NOTHING {
                break;
            }
        }
        ends
    }

    /// One more member at `start`, then the rest. `seen` are known members, `names` free ones, `least` is the first known
    /// member that may still come in declared order.
    fn members(
        &mut self,
        members: &Members,
        start: usize,
        seen: &mut Vec<bool>,
        names: &mut Vec<String>,
        least: usize,
        ends: &mut Ends,
    ) {
        for index in 0..members.known.len() {
            let known = &members.known[index];
            let skips = || (least..index).any(|before| members.known[before].required);
            if seen[index] || (members.ordered > 0 && (index < least || skips())) {
                continue;
            }
            for value in self.values_after(members, known.key, known.value, start) {
                seen[index] = true;
                self.after_member(members, value, seen, names, index + 1, ends);
                seen[index] = false;
            }
        }
        let Some(free) = members.free.first() else { return };
        let missing = members.known.iter().zip(&*seen).any(|(known, seen)| known.required && !seen);
        if missing && members.ordered > 0 {
            return;
        }
        for key_end in self.lexeme(free.key, start) {
            let text = std::str::from_utf8(&self.text[start..key_end]).expect("keys are text");
            let name: String = serde_json::from_str(text).expect("keys are JSON strings");
            if names.contains(&name) || free.taken.iter().any(|taken| **taken == *name) {
                continue;
            }
            names.push(name);
            for colon in self.lexeme(members.surface.colon, key_end) {
                for value in self.ends(free.value, colon) {
                    let least = if members.ordered == 0 { 0 } else { members.known.len() };
                    self.after_member(members, value, seen, names, least, ends);
                }
            }
            names.pop();
        }
    }

    fn values_after(&mut self, members: &Members, key: ExprId, value: NodeId, start: usize) -> Ends {
        let keys = self.lexeme(key, start);
        let colons: Ends = keys.into_iter().flat_map(|end| self.lexeme(members.surface.colon, end)).collect();
        self.ends_from_all(value, &colons)
    }

    fn after_member(
        &mut self,
        members: &Members,
        at: usize,
        seen: &mut Vec<bool>,
        names: &mut Vec<String>,
        least: usize,
        ends: &mut Ends,
    ) {
        if members.known.iter().zip(&*seen).all(|(known, seen)| *seen || !known.required) {
            ends.extend(self.lexeme(members.surface.close, at));
        }
        for next in self.lexeme(members.surface.item, at) {
            self.members(members, next, seen, names, least, ends);
        }
    }
}
