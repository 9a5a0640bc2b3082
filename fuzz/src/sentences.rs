//! Random texts of a grammar, generated directly from its nodes: a matcher must not refuse them.

use std::collections::BTreeSet;

use stencilm_grammar::{Grammar, Items, Members, Node, NodeId};
use stencilm_regex::{Deriver, ExprId, Limits};

use crate::choices::Choices;
use crate::oracle::value_of;

/// Makes texts of one grammar.
pub struct Sentences<'a> {
    grammar: &'a Grammar,
    deriver: Deriver,
}

/// The parts still to be written, the next one last.
enum Part {
    Node(NodeId),
    Expr(ExprId),
}

impl<'a> Sentences<'a> {
    /// The texts of a grammar.
    pub fn new(grammar: &'a Grammar) -> Sentences<'a> {
        let mut deriver = Deriver::new(Limits { max_exprs: 20_000, max_search: 2_000, ..Limits::default() });
        deriver.exprs = grammar.exprs().clone();
        deriver.begin();
        Sentences { grammar, deriver }
    }

    /// A text of at most `max_len` bytes; `None` if the choices led to a longer one, or to a single token.
    pub fn next(&mut self, choices: &mut Choices<'_>, max_len: usize) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut parts = vec![Part::Node(self.grammar.root())];
        let mut steps = 0;
        while let Some(part) = parts.pop() {
            steps += 1;
            if steps > 40 * max_len || parts.len() > 2_000 {
                return None;
            }
            match part {
                Part::Expr(expr) => self.write(expr, choices, &mut text, max_len)?,
                Part::Node(node) => self.expand(node, choices, &mut parts)?,
            }
        }
        Some(text)
    }

    fn expand(&mut self, node: NodeId, choices: &mut Choices<'_>, parts: &mut Vec<Part>) -> Option<()> {
        match self.grammar.node(node) {
            Node::Lexeme(expr) => parts.push(Part::Expr(*expr)),
            Node::Sequence(nodes) => parts.extend(nodes.iter().rev().map(|&node| Part::Node(node))),
            Node::Choice(nodes) => parts.push(Part::Node(*choices.pick(nodes))),
            Node::Repeat { body, min, max } => {
                let most = max.map_or(3, |max| (max - min).min(3)) as usize;
                let rounds = *min as usize + choices.below(most + 1);
                parts.extend((0..rounds).map(|_| Part::Node(*body)));
            }
            Node::Rule(rule) => parts.push(Part::Node(self.grammar.rule(*rule).body)),
            Node::Marked { body, .. } => parts.push(Part::Node(*body)),
            Node::Members(members) => {
                let written = self.members(self.grammar.members(*members), choices)?;
                parts.extend(written.into_iter().rev());
            }
            Node::Items(items) => {
                let written = items_written(self.grammar.items(*items), choices)?;
                parts.extend(written.into_iter().rev());
            }
            Node::Token(_) => return None,
        }
        Some(())
    }

    /// Some members of an object, including all required ones, in a permitted order.
    fn members(&mut self, members: &Members, choices: &mut Choices<'_>) -> Option<Vec<Part>> {
        let mut chosen: Vec<(ExprId, NodeId)> = Vec::new();
        let (mut ordered, mut owed) = (0, 0);
        for (index, known) in members.declared.iter().enumerate() {
            if known.required || choices.chance(2) {
                let at = if index < members.ordered { ordered } else { first_mixed(choices, chosen.len(), ordered) };
                let plain = format!("\"{}\"", known.name);
                let key = known.key.unwrap_or_else(|| self.deriver.exprs.literal(plain.as_bytes()));
                chosen.insert(at, (key, known.value));
                ordered += usize::from(index < members.ordered);
            }
        }
        let mut seen: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut last = None;
        for additional in &members.additional {
            if let Some(after) = &additional.last {
                let mut key = Vec::new();
                self.write(additional.key, choices, &mut key, 16)?;
                let value = value_of(&[&key[..], after.as_bytes()].concat());
                let is_new = additional.reserved.iter().all(|name| name.as_bytes() != value) && !seen.contains(&value);
                last = is_new.then(|| (self.deriver.exprs.literal(&key), additional.value));
                continue;
            }
            seen.extend(additional.reserved.iter().map(|name| name.as_bytes().to_vec()));
            for round in 0..choices.below(3).max(usize::from(additional.some.is_some())) {
                let mut key = Vec::new();
                self.write(additional.key, choices, &mut key, 16)?;
                if seen.insert(value_of(&key)) {
                    let key = self.deriver.exprs.literal(&key);
                    let at = first_mixed(choices, chosen.len(), ordered);
                    let some = additional.some.filter(|_| round == 0);
                    owed += usize::from(some.is_some());
                    chosen.insert(at, (key, some.unwrap_or(additional.value)));
                }
            }
        }
        let needed = members.additional.iter().filter(|additional| additional.some.is_some()).count();
        let count = chosen.len() as u32;
        if owed < needed || count < members.min || members.max.is_some_and(|max| count > max) {
            return None;
        }
        let surface = members.surface;
        let mut parts = Vec::new();
        for (index, (key, value)) in chosen.into_iter().enumerate() {
            let before = if index == 0 { surface.open } else { surface.item };
            parts.extend([Part::Expr(before), Part::Expr(key), Part::Expr(surface.colon), Part::Node(value)]);
        }
        if members.is_cut() {
            let (key, value) = last?;
            let before = if parts.is_empty() { surface.open } else { surface.item };
            parts.extend([Part::Expr(before), Part::Expr(key), Part::Node(value)]);
            return Some(parts);
        }
        parts.push(Part::Expr(if parts.is_empty() { surface.empty } else { surface.close }));
        Some(parts)
    }

    /// Writes bytes that match an expression: at random at first, then along the shortest known path.
    fn write(&mut self, expr: ExprId, choices: &mut Choices<'_>, text: &mut Vec<u8>, max_len: usize) -> Option<()> {
        let mut rest = expr;
        let eager = 1 + choices.below(6);
        for step in 0.. {
            if self.deriver.exprs.is_nullable(rest) && (step >= eager || choices.chance(3)) {
                return Some(());
            }
            if text.len() >= max_len {
                return None;
            }
            let derivatives = self.deriver.derivatives(rest).ok()?;
            let mut readings = Vec::new();
            for &(set, next) in derivatives.iter() {
                if next != ExprId::NOTHING && self.deriver.is_live(next).ok()? {
                    readings.push((set, next));
                }
            }
            if readings.is_empty() {
                return self.deriver.exprs.is_nullable(rest).then_some(());
            }
            let reading = if step < eager {
                choices.below(readings.len())
            } else {
                let shortest = |reading: &usize| self.deriver.exprs.shortest_at_least(readings[*reading].1);
                (0..readings.len()).min_by_key(shortest).expect("there is a way")
            };
            let (set, next) = readings[reading];
            // Readable bytes first, so that failures are readable.
            let bytes: Vec<u8> = set.iter().filter(u8::is_ascii_graphic).collect();
            let all: Vec<u8> = if bytes.is_empty() || choices.chance(4) { set.iter().collect() } else { bytes };
            text.push(*choices.pick(&all));
            rest = next;
        }
        None
    }
}

/// A position after the members in declared order.
fn first_mixed(choices: &mut Choices<'_>, len: usize, ordered: usize) -> usize {
    ordered + choices.below(len - ordered + 1)
}

/// Some elements of an array, if there are as many of each kind as it requires.
fn items_written(items: &Items, choices: &mut Choices<'_>) -> Option<Vec<Part>> {
    let mut counts = vec![0; items.contains.len()];
    let mut parts = Vec::new();
    let most = items.max.map_or(3, |max| (max - items.min).min(3)) as usize;
    let count = items.min as usize + choices.below(most + 1);
    for place in 0..count {
        let alternatives = items.at(place);
        let element = choices.pick(if alternatives.is_empty() { return None } else { alternatives });
        counts = items.counted(&counts, element.counts)?;
        let before = if place == 0 { items.surface.open } else { items.surface.item };
        parts.extend([Part::Expr(before), Part::Node(element.value)]);
    }
    parts.push(Part::Expr(if count == 0 { items.surface.empty } else { items.surface.close }));
    (items.is_satisfied(&counts) && !items.compares()).then_some(parts)
}
