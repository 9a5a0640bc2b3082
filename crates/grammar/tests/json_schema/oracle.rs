//! Whether a text belongs to a grammar, the slow and obvious way: every node gives the set of places where it may end.
//!
//! Shares nothing with the matcher of the engine but the meaning of the nodes, so it can judge both.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;
use stencilm_grammar::{Grammar, Items, Members, Node, NodeId};
use stencilm_regex::{Deriver, ExprId, Limits};

use crate::validator::equal;

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
            Node::Marked { body, .. } => self.ends(body, start),
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
            Node::Items(id) => {
                let items = self.grammar.items(id).clone();
                let mut ends = Ends::new();
                let counts = vec![0; items.contains.len()];
                if items.min == 0 && items.contains.iter().all(|&(min, _)| min == 0) {
                    ends.extend(self.lexeme(items.surface.empty, start));
                }
                for first in self.lexeme(items.surface.open, start) {
                    self.elements(&items, first, &mut Vec::new(), &counts, &mut ends);
                }
                ends
            }
            Node::Members(id) => {
                let members = self.grammar.members(id).clone();
                let mut ends = Ends::new();
                let mut state = State { seen: vec![false; members.declared.len()], ..State::default() };
                if state.is_complete(&members) {
                    ends.extend(self.lexeme(members.surface.empty, start));
                }
                for first in self.lexeme(members.surface.open, start) {
                    self.members(&members, first, &mut state, &mut ends);
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

    /// One more member at `start`, then the rest.
    fn members(&mut self, members: &Members, start: usize, state: &mut State, ends: &mut Ends) {
        if members.max.is_some_and(|max| state.count >= max) {
            return;
        }
        let least = state.least;
        for index in 0..members.declared.len() {
            let known = &members.declared[index];
            let is_ordered = index < members.ordered;
            let until = if is_ordered { index } else { members.ordered };
            let skips = (least..until).any(|before| members.declared[before].required);
            if state.seen[index] || skips || (is_ordered && index < least) {
                continue;
            }
            let plain = format!("\"{}\"", known.name);
            let key = known.key.unwrap_or_else(|| self.deriver.exprs.literal(plain.as_bytes()));
            for value in self.values_after(members, key, known.value, start) {
                state.seen[index] = true;
                state.least = if is_ordered { index + 1 } else { members.ordered };
                self.after_member(members, value, state, ends);
                state.seen[index] = false;
                state.least = least;
            }
        }
        if (least..members.ordered).any(|before| members.declared[before].required) {
            return;
        }
        for (class, additional) in members.additional.iter().enumerate() {
            for key_end in self.lexeme(additional.key, start) {
                let text = std::str::from_utf8(&self.text[start..key_end]).expect("keys are text");
                let name: String = serde_json::from_str(text).expect("keys are JSON strings");
                if state.names.contains(&name) || additional.reserved.iter().any(|reserved| **reserved == *name) {
                    continue;
                }
                state.names.push(name);
                state.least = members.ordered;
                for colon in self.lexeme(members.surface.colon, key_end) {
                    for value in self.ends(additional.value, colon) {
                        self.after_member(members, value, state, ends);
                    }
                    for value in additional.some.into_iter().flat_map(|some| self.ends(some, colon)).collect::<Ends>() {
                        state.met.push(class);
                        self.after_member(members, value, state, ends);
                        state.met.pop();
                    }
                }
                state.least = least;
                state.names.pop();
            }
        }
    }

    fn values_after(&mut self, members: &Members, key: ExprId, value: NodeId, start: usize) -> Ends {
        let keys = self.lexeme(key, start);
        let colons: Ends = keys.into_iter().flat_map(|end| self.lexeme(members.surface.colon, end)).collect();
        self.ends_from_all(value, &colons)
    }

    fn after_member(&mut self, members: &Members, at: usize, state: &mut State, ends: &mut Ends) {
        state.count += 1;
        if state.is_complete(members) {
            ends.extend(self.lexeme(members.surface.close, at));
        }
        for next in self.lexeme(members.surface.item, at) {
            self.members(members, next, state, ends);
        }
        state.count -= 1;
    }

    /// One more element at `start`, then the rest.
    fn elements(&mut self, items: &Items, start: usize, seen: &mut Vec<Value>, counts: &[u32], ends: &mut Ends) {
        let place = seen.len();
        if items.max.is_some_and(|max| place >= max as usize) {
            return;
        }
        let elements = items.prefix.get(place).unwrap_or(&items.rest).clone();
        for element in &elements {
            for end in self.ends(element.value, start) {
                let text = std::str::from_utf8(&self.text[start..end]).expect("values are text");
                let value: Value = serde_json::from_str(text).expect("values are JSON");
                if items.is_unique() && seen.iter().any(|other| equal(other, &value)) {
                    continue;
                }
                let bit = |bit: usize| u32::from(element.counts & 1 << bit != 0);
                let counts: Vec<u32> = counts.iter().enumerate().map(|(at, count)| count + bit(at)).collect();
                seen.push(value);
                let bounds = || items.contains.iter().zip(&counts);
                if bounds().all(|(&(_, max), &count)| max.is_none_or(|max| count <= max)) {
                    let repeats = (1..seen.len()).any(|at| seen[..at].iter().any(|other| equal(other, &seen[at])));
                    let is_met = repeats || !items.must_repeat();
                    if is_met && seen.len() >= items.min as usize && bounds().all(|(&(min, _), &count)| count >= min) {
                        ends.extend(self.lexeme(items.surface.close, end));
                    }
                    for next in self.lexeme(items.surface.item, end) {
                        self.elements(items, next, seen, &counts, ends);
                    }
                }
                seen.pop();
            }
        }
    }
}

/// The members read so far.
#[derive(Default)]
struct State {
    /// Which known ones.
    seen: Vec<bool>,
    /// The keys of the additional ones.
    names: Vec<String>,
    /// The first ordered one that may still come.
    least: usize,
    count: u32,
    /// Classes with a member that is what one must be.
    met: Vec<usize>,
}

impl State {
    fn is_complete(&self, members: &Members) -> bool {
        let mut witnesses = members.additional.iter().enumerate().filter(|(_, additional)| additional.some.is_some());
        members.declared.iter().zip(&self.seen).all(|(known, seen)| *seen || !known.required)
            && self.count >= members.min
            && members.max.is_none_or(|max| self.count <= max)
            && witnesses.all(|(class, _)| self.met.contains(&class))
    }
}
