//! Expressions to EBNF text. What is shared and large becomes a rule of its own, or the text could grow exponentially.
//!
//! Alternatives are kept by id, and ids depend on how a grammar was made. They print in an order of their own, given by
//! structure alone, so that equal expressions print equally.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet};
use stencilm_support::HashSet;

use super::escapes;
use super::spans;
use crate::ir::exprs;

/// Shared expressions with fewer characters than this get no name.
const MIN_SIZE: u32 = 40;
/// The size that a name counts as.
const NAME_SIZE: u32 = 10;

/// The place of an expression, which decides whether it needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Between its own brackets.
    Alternatives,
    /// Beside `&`.
    Operand,
    /// In a sequence with others.
    Item,
    /// Before `*`.
    Repeated,
}

/// A part of a sequence.
enum Piece {
    Text(String),
    Bytes(ByteSet),
    Expr(ExprId),
}

/// Orders expressions by their structure: the first byte that they may start with, then size, then a hash.
type Key = (u16, u32, u64);

struct Facts {
    key: Key,
    /// The approximate number of characters that it is printed with, where shared parts count as their names.
    size: u32,
}

enum Step {
    Expr(ExprId, Place),
    Text(&'static str),
    Owned(String),
    Piece(Piece),
    Count(u32, Option<u32>),
}

/// Prints all expressions of a grammar.
pub(super) struct ExprPrinter {
    exprs: ExprSet,
    facts: FxHashMap<ExprId, Facts>,
    /// Shared expressions with a name, and the name once it has been used.
    named: FxHashMap<ExprId, Option<String>>,
    /// The named expressions, by their numbers.
    order: Vec<ExprId>,
    next: u32,
    /// The names of rules, which expressions must not have.
    pub taken: HashSet<String>,
}

impl ExprPrinter {
    /// A printer for everything that these expressions consist of; each of them counts as one use.
    pub(super) fn new<E>(
        exprs: &ExprSet,
        roots: &[ExprId],
        may_go_on: impl Fn() -> Result<(), E>,
    ) -> Result<ExprPrinter, E> {
        let reached = exprs::reachable(exprs, roots.iter().copied(), &may_go_on)?;
        let (facts, named, order, taken) = Default::default();
        let mut printer = ExprPrinter { exprs: exprs.clone(), facts, named, order, next: 0, taken };
        let mut uses: FxHashMap<ExprId, u32> = FxHashMap::default();
        roots.iter().for_each(|&root| *uses.entry(root).or_default() += 1);
        for &id in &reached {
            may_go_on()?;
            exprs.for_each_child(id, |child| *uses.entry(child).or_default() += 1);
        }
        // Children first: in an expression that contains it, a named part counts as its name.
        for &id in &reached {
            may_go_on()?;
            let (key, size) = printer.measure(id);
            let uses = uses[&id];
            if uses > 1 && size >= MIN_SIZE {
                printer.named.insert(id, None);
            }
            printer.facts.insert(id, Facts { key, size });
        }
        Ok(printer)
    }

    fn measure(&self, id: ExprId) -> (Key, u32) {
        let key = |part: &ExprId| self.facts[part].key;
        let size = |part: &ExprId| if self.named.contains_key(part) { NAME_SIZE } else { self.facts[part].size };
        // A hash of the parts, which all have keys by now; for alternatives it doesn't depend on their order.
        let unordered = |parts: &[ExprId]| parts.iter().fold(0u64, |sum, part| sum.wrapping_add(mixed(key(part).2)));
        let sizes = |parts: &[ExprId]| parts.iter().fold(0u32, |sum, part| sum.saturating_add(size(part)));
        let mut hasher = FxHasher::default();
        let last = u16::from(u8::MAX) + 1;
        let (first, size) = match self.exprs.get(id) {
            Expr::Nothing => {
                0.hash(&mut hasher);
                (last, 8)
            }
            Expr::Empty => {
                1.hash(&mut hasher);
                (last, 2)
            }
            Expr::Bytes(set) => {
                set.hash(&mut hasher);
                let size = if set.len() == 1 { 1 } else { 8 };
                (set.first().map_or(last, u16::from), size)
            }
            Expr::Concat { head, tail } => {
                (2, key(head).2, key(tail).2).hash(&mut hasher);
                (key(head).0, sizes(&[*head, *tail]))
            }
            Expr::Or(parts) => {
                (3, unordered(parts)).hash(&mut hasher);
                (parts.iter().map(|part| key(part).0).min().unwrap_or(last), sizes(parts).saturating_add(2))
            }
            Expr::And(parts) => {
                (4, unordered(parts)).hash(&mut hasher);
                (last, sizes(parts).saturating_add(2))
            }
            Expr::Not(inner) => {
                (5, key(inner).2).hash(&mut hasher);
                (last, size(inner).saturating_add(6))
            }
            Expr::Repeat { body, min, max } => {
                (6, key(body).2, min, max).hash(&mut hasher);
                (key(body).0, size(body).saturating_add(2))
            }
            Expr::Text(text) => {
                (8, text).hash(&mut hasher);
                (text.bytes().next().map_or(last, u16::from), text.len() as u32)
            }
            Expr::Number(number) => {
                (7, number).hash(&mut hasher);
                (u16::from(b'0'), 4)
            }
            Expr::Language(rest) => {
                (9, rest).hash(&mut hasher);
                (last, 4)
            }
        };
        ((first, size, mixed(hasher.finish())), size)
    }

    fn sorted(&self, parts: &[ExprId]) -> Vec<ExprId> {
        let mut sorted = parts.to_vec();
        sorted.sort_by_key(|part| (self.facts.get(part).map(|facts| facts.key), *part));
        sorted
    }

    /// The pieces of a sequence: runs of single bytes are joined into texts where they are UTF-8, and a named rest ends
    /// it.
    fn pieces(&self, id: ExprId) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut run: Vec<u8> = Vec::new();
        let mut rest = Some(id);
        while let Some(id) = rest {
            let (head, tail) = match *self.exprs.get(id) {
                Expr::Concat { head, tail } => (head, Some(tail)),
                _ => (id, None),
            };
            match self.exprs.get(head) {
                Expr::Bytes(set) if set.len() == 1 => run.extend(set.first()),
                Expr::Text(text) => run.extend_from_slice(text.as_bytes()),
                _ => {
                    flush(&mut run, &mut pieces);
                    pieces.push(Piece::Expr(head));
                }
            }
            rest = tail;
            if let Some(tail) = tail.filter(|tail| self.named.contains_key(tail)) {
                flush(&mut run, &mut pieces);
                pieces.push(Piece::Expr(tail));
                rest = None;
            }
        }
        flush(&mut run, &mut pieces);
        pieces
    }

    /// Whether it is printed as one word that reads back as one lexeme.
    pub(super) fn is_word(&mut self, id: ExprId) -> bool {
        if self.named.contains_key(&id) {
            return true;
        }
        match self.exprs.get(id).clone() {
            Expr::Nothing | Expr::Empty | Expr::Bytes(_) => true,
            Expr::Number(_) | Expr::Text(_) | Expr::Language(_) => true,
            Expr::Concat { .. } => matches!(*self.pieces(id), [Piece::Text(_)]),
            Expr::Or(parts) => {
                spans::class_and_others(&mut self.exprs, &parts).is_some_and(|(_, others)| others.is_empty())
            }
            Expr::And(_) | Expr::Not(_) | Expr::Repeat { .. } => false,
        }
    }

    /// The name of an expression, if it has one; the first call assigns its number.
    fn name(&mut self, id: ExprId) -> Option<String> {
        let name = self.named.get_mut(&id)?;
        if name.is_none() {
            loop {
                self.next += 1;
                let new = format!("lexeme_{}", self.next);
                if self.taken.insert(new.clone()) {
                    *name = Some(new);
                    break;
                }
            }
            self.order.push(id);
        }
        name.clone()
    }

    /// Writes an expression or its name.
    pub(super) fn write<E>(
        &mut self,
        out: &mut String,
        id: ExprId,
        place: Place,
        may_go_on: impl Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        self.steps(out, vec![Step::Expr(id, place)], None, may_go_on)
    }

    /// Writes the definitions of all names used so far; these may use more names.
    pub(super) fn write_definitions<E>(
        &mut self,
        out: &mut String,
        may_go_on: impl Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = 0;
        while at < self.order.len() {
            let id = self.order[at];
            at += 1;
            let name = self.name(id).expect("what is in order has a name");
            out.push_str(&name);
            out.push_str(" ::= %lexeme(");
            self.steps(out, vec![Step::Expr(id, Place::Alternatives)], Some(id), &may_go_on)?;
            out.push_str(")\n");
        }
        Ok(())
    }

    /// The steps to write an expression, and whether it needs brackets at that place.
    fn inner(&mut self, id: ExprId, place: Place) -> (bool, Vec<Step>) {
        match self.exprs.get(id).clone() {
            Expr::Nothing => (false, vec![Step::Piece(Piece::Bytes(ByteSet::EMPTY))]),
            Expr::Empty => (false, vec![Step::Piece(Piece::Text(String::new()))]),
            Expr::Bytes(set) => (false, vec![Step::Piece(piece_of(set))]),
            Expr::Text(text) => (false, vec![Step::Piece(Piece::Text(text.into()))]),
            Expr::Concat { .. } => {
                let pieces = self.pieces(id);
                (place > Place::Operand && pieces.len() > 1, listed(pieces, " ", Place::Item))
            }
            Expr::Or(parts) => {
                let (class, others) = match spans::class_and_others(&mut self.exprs, &parts) {
                    Some((class, others)) => (Some(class), others),
                    None => (None, parts.into()),
                };
                let mut inner = Vec::new();
                let needed = place > Place::Alternatives && !others.is_empty();
                if let Some(class) = class {
                    let mut text = String::new();
                    escapes::write_class(&mut text, &class);
                    inner.push(Step::Owned(text));
                    if !others.is_empty() {
                        inner.push(Step::Text(" | "));
                    }
                }
                let others = self.sorted(&others).into_iter().map(Piece::Expr).collect();
                inner.extend(listed(others, " | ", Place::Operand));
                (needed, inner)
            }
            Expr::And(parts) => {
                let parts = self.sorted(&parts).into_iter().map(Piece::Expr).collect();
                (place > Place::Alternatives, listed(parts, " & ", Place::Operand))
            }
            Expr::Not(body) => {
                let inner = vec![Step::Text("%not("), Step::Expr(body, Place::Alternatives), Step::Text(")")];
                (false, inner)
            }
            Expr::Repeat { body, min, max } => {
                let inner = vec![Step::Expr(body, Place::Repeated), Step::Count(min, max)];
                (place == Place::Repeated, inner)
            }
            Expr::Number(number) => {
                let text = format!("%number(\"{}\")", crate::ir::exprs::whole_set(&number));
                (false, vec![Step::Owned(text)])
            }
            Expr::Language(rest) => {
                let text = format!("%language(\"{}\")", crate::ir::exprs::whole_language(&rest));
                (false, vec![Step::Owned(text)])
            }
        }
    }

    /// Writes an expression; `defined` is written out although it has a name.
    fn steps<E>(
        &mut self,
        out: &mut String,
        mut work: Vec<Step>,
        mut defined: Option<ExprId>,
        may_go_on: impl Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(step) = work.pop() {
            may_go_on()?;
            let (id, place) = match step {
                Step::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Step::Owned(text) => {
                    out.push_str(&text);
                    continue;
                }
                Step::Piece(piece) => {
                    match piece {
                        Piece::Text(text) => escapes::write_text(out, &text),
                        Piece::Bytes(set) => write_bytes(out, &set),
                        Piece::Expr(_) => unreachable!("expressions are steps of their own"),
                    }
                    continue;
                }
                Step::Count(min, max) => {
                    write_count(out, min, max);
                    continue;
                }
                Step::Expr(id, place) => (id, place),
            };
            if defined.take() != Some(id)
                && let Some(name) = self.name(id)
            {
                out.push_str(&name);
                continue;
            }
            let (needed, inner) = self.inner(id, place);
            if needed {
                work.push(Step::Text(")"));
            }
            work.extend(inner.into_iter().rev());
            if needed {
                work.push(Step::Text("("));
            }
        }
        Ok(())
    }
}

/// Splits the bytes of a run into texts, and single bytes where they are not UTF-8.
fn flush(run: &mut Vec<u8>, pieces: &mut Vec<Piece>) {
    for chunk in run.utf8_chunks() {
        if !chunk.valid().is_empty() {
            pieces.push(Piece::Text(chunk.valid().to_string()));
        }
        pieces.extend(chunk.invalid().iter().map(|&byte| Piece::Bytes(ByteSet::of(byte))));
    }
    run.clear();
}

fn piece_of(set: ByteSet) -> Piece {
    match set.single() {
        Some(byte) if byte.is_ascii() => Piece::Text(char::from(byte).to_string()),
        _ => Piece::Bytes(set),
    }
}

/// Mixes the bits of a hash, so that different sets of hashes give different sums.
fn mixed(hash: u64) -> u64 {
    let mut mixed = hash ^ (hash >> 31);
    mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

fn listed(pieces: Vec<Piece>, between: &'static str, place: Place) -> Vec<Step> {
    let mut steps = Vec::with_capacity(pieces.len() * 2);
    for (index, piece) in pieces.into_iter().enumerate() {
        if index > 0 {
            steps.push(Step::Text(between));
        }
        steps.push(match piece {
            Piece::Expr(id) => Step::Expr(id, place),
            word => Step::Piece(word),
        });
    }
    steps
}

/// `*`, `+`, `?` or a count in braces.
pub(super) fn write_count(out: &mut String, min: u32, max: Option<u32>) {
    match (min, max) {
        (0, None) => out.push('*'),
        (1, None) => out.push('+'),
        (0, Some(1)) => out.push('?'),
        (_, None) => out.push_str(&format!("{{{min},}}")),
        (_, Some(max)) if max == min => out.push_str(&format!("{{{min}}}")),
        (_, Some(max)) => out.push_str(&format!("{{{min},{max}}}")),
    }
}

/// Writes a class if all bytes are ASCII, otherwise a set of bytes.
fn write_bytes(out: &mut String, set: &ByteSet) {
    if !set.is_empty() && set.iter().all(|byte| byte.is_ascii()) {
        let ranges = escapes::merged(set.iter().map(|byte| (char::from(byte), char::from(byte))).collect());
        escapes::write_class(out, &ranges);
        return;
    }
    out.push_str("%bytes[");
    for (index, (first, last)) in set.ranges().into_iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push_str(&format!("{first:02X}"));
        if last > first {
            out.push_str(&format!("-{last:02X}"));
        }
    }
    out.push(']');
}
