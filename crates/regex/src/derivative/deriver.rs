//! Derivatives: the residual of an expression after one byte, for all bytes at once.
//!
//! The derivatives of an expression are a partition of the bytes with one residual expression for each part (Owens,
//! Reppy, Turon 2009, section 4.2). They are memoised, and computed bottom-up with an explicit stack, since users
//! choose the depth of expressions.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_support::{LimitExceeded, Map, memory};

use crate::expr::byte_classes::ByteClasses;
use crate::expr::byte_set::ByteSet;
use crate::expr::clamp::{Loosening, Relaxation, Relaxed};
use crate::expr::expr_set::ExprSet;
use crate::expr::heads::Head;
use crate::expr::language::LanguageRest;
use crate::expr::node::{Expr, ExprId};
use crate::expr::required_bytes::Needs;
use crate::limits::Limits;
use crate::numbers::Number;

/// Disjoint byte sets, each with the residual after one of its bytes. Bytes in no set are dead.
pub type Derivatives = Arc<[(ByteSet, ExprId)]>;

/// The greatest depth at which a language decided by a program is looked for.
const MAX_LANGUAGE_LEVEL: u32 = 32;

/// An expression set with memoised derivatives and liveness.
#[derive(Clone, Default)]
pub struct Deriver {
    /// The expressions; more may be added at any time.
    pub exprs: ExprSet,
    derivatives: FxHashMap<ExprId, Derivatives>,
    /// Memo of expressions without their redundant parts.
    pub(super) absorbed: Map<ExprId, ExprId>,
    /// Whether a search for runs is under way; meanwhile no parts are removed.
    pub(super) is_searching_runs: bool,
    /// For each expression, a number of bytes within which there is a match, or `None` if it matches nothing.
    /// `u32::MAX` if only its existence is known.
    pub(super) live: FxHashMap<ExprId, Option<u32>>,
    pub(super) needs: Option<Box<Needs>>,
    pub(super) loosening: Loosening,
    relaxation: Relaxation,
    /// The expressions of long searches, which nothing else needs.
    pub(super) aside: Option<Box<Aside>>,
    pub(crate) byte_classes: ByteClasses,
    /// The total number of pairs in all derivatives.
    pairs: usize,
    /// The number of pairs of states visited to distinguish texts by their residuals.
    pub(crate) split_work: usize,
    /// Bytes held by the automata over these expressions.
    pub(crate) in_automata: usize,
    /// The numbers of expressions, and of bytes held, when the operation began.
    before: usize,
    bytes_before: usize,
    measured_at: [usize; 3],
    pub(super) limits: Limits,
}

/// A separate set of expressions for long searches, since most of these are needed only once.
#[derive(Clone)]
pub struct Aside {
    pub(super) deriver: Deriver,
    /// The copies of expressions.
    pub(super) copies: Map<ExprId, ExprId>,
}

impl Aside {
    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.deriver.memory_bytes() + self.copies.memory_bytes()
    }
}

impl Deriver {
    /// A deriver over an empty expression set.
    pub fn new(limits: Limits) -> Deriver {
        Deriver::over(ExprSet::new(), limits)
    }

    /// A deriver over an expression set.
    pub fn over(exprs: ExprSet, limits: Limits) -> Deriver {
        Deriver { exprs, limits, ..Deriver::default() }
    }

    /// Begins an operation. What was derived before does not count against its limit, since other operations may have
    /// derived it.
    pub fn begin(&mut self) {
        self.before = self.exprs.len();
        // Mostly nothing was added since the last time.
        let progress = self.progress();
        if progress != self.measured_at {
            (self.measured_at, self.bytes_before) = (progress, self.memory_bytes());
        }
        if let Some(aside) = &mut self.aside {
            aside.deriver.begin();
        }
    }

    /// Two equal values mean that nothing was computed in between.
    #[inline]
    pub fn progress(&self) -> [usize; 3] {
        let [exprs, pairs, in_automata] = self.aside.as_ref().map_or([0; 3], |aside| aside.deriver.progress());
        [self.exprs.len() + exprs, self.pairs + pairs, self.in_automata + in_automata]
    }

    /// Bytes of memory held, including the automata over these expressions. Takes constant time.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        self.exprs.memory_bytes()
            + self.pairs * size_of::<(ByteSet, ExprId)>()
            + self.derivatives.len() * memory::of_shared::<u8>(0)
            + memory::of_table::<(ExprId, Derivatives)>(self.derivatives.capacity())
            + memory::of_table::<(ExprId, Option<u32>)>(self.live.capacity())
            + self.absorbed.memory_bytes()
            + self.needs.as_ref().map_or(0, |needs| needs.memory_bytes())
            + self.loosening.memory_bytes()
            + self.relaxation.memory_bytes()
            + self.byte_classes.memory_bytes()
            + self.in_automata
            + self.aside.as_ref().map_or(0, |aside| aside.memory_bytes())
    }

    /// Ends an operation. Returns the expressions of long searches, to be dropped, if they take more memory than
    /// everything else.
    pub fn end(&mut self) -> Option<Box<Aside>> {
        let (aside, all) = (self.aside.as_ref()?.memory_bytes(), self.memory_bytes());
        self.aside.take_if(|_| aside > all - aside)
    }

    /// The expression without the maximum counts outside its intersections and complements.
    pub fn relaxed(&mut self, id: ExprId) -> Relaxed {
        self.relaxation.apply(&mut self.exprs, id)
    }

    /// Checks the memory that the operation has added.
    pub(crate) fn check_bytes(&self) -> Result<(), LimitExceeded> {
        self.limits.check_bytes(self.memory_bytes().saturating_sub(self.bytes_before))
    }

    /// All derivatives of `id`.
    ///
    /// # Errors
    /// [`LimitExceeded`] when the set has grown to its greatest size.
    pub fn derivatives(&mut self, id: ExprId) -> Result<Derivatives, LimitExceeded> {
        if let Some(known) = self.derivatives.get(&id) {
            return Ok(known.clone());
        }
        let mut work = vec![id];
        while let Some(&id) = work.last() {
            if self.derivatives.contains_key(&id) {
                work.pop();
                continue;
            }
            let computed = match self.exprs.heads(id) {
                // For one of many names, no part need be derived separately.
                Some(heads) => self.derivatives_of_heads(&heads),
                None => {
                    let before = work.len();
                    self.for_each_needed(id, &mut work);
                    if work.len() > before {
                        continue;
                    }
                    self.compute(id)
                }
            };
            let computed = self.all_absorbed(computed)?;
            work.pop();
            self.pairs += computed.len();
            self.derivatives.insert(id, computed);
            self.limits.check_exprs(self.exprs.len() - self.before)?;
            self.check_bytes()?;
        }
        Ok(self.derivatives[&id].clone())
    }

    fn for_each_needed(&self, id: ExprId, work: &mut Vec<ExprId>) {
        let mut need = |child: ExprId| {
            if !self.derivatives.contains_key(&child) {
                work.push(child);
            }
        };
        match self.exprs.get(id) {
            &Expr::Concat { head, tail } => {
                need(head);
                if self.exprs.is_nullable(head) {
                    need(tail);
                }
            }
            _ => self.exprs.for_each_child(id, need),
        }
    }

    /// The derivatives of an expression that begins with these alternatives.
    fn derivatives_of_heads(&mut self, heads: &[Head]) -> Derivatives {
        // Grouped by first bytes, which are few: thousands of names may share a first byte, and their choice is then
        // built once.
        let mut found: Vec<(ByteSet, Vec<ExprId>)> = Vec::new();
        for head in heads {
            let rest = self.exprs.concat(head.tail, head.after);
            match found.iter_mut().find(|(first, _)| *first == head.first) {
                Some((_, rests)) => rests.push(rest),
                None => found.push((head.first, vec![rest])),
            }
        }
        found.into_iter().map(|(first, rests)| (first, self.exprs.or(&rests))).collect()
    }

    /// The derivatives of one node whose children are already done.
    fn compute(&mut self, id: ExprId) -> Derivatives {
        match self.exprs.get(id).clone() {
            Expr::Nothing | Expr::Empty => Arc::new([]),
            Expr::Bytes(set) => Arc::new([(set, ExprId::EMPTY)]),
            Expr::Concat { head, tail } => {
                let mut first: Vec<_> = self.derivatives[&head].to_vec();
                for (_, rest) in &mut first {
                    *rest = self.exprs.concat(*rest, tail);
                }
                if !self.exprs.is_nullable(head) {
                    return first.into();
                }
                let second = self.derivatives[&tail].clone();
                self.join(&[&first, &second], |exprs, rests| exprs.or(rests))
            }
            Expr::Or(parts) => {
                let maps: Vec<Derivatives> = parts.iter().map(|part| self.derivatives[part].clone()).collect();
                let maps: Vec<&[_]> = maps.iter().map(|map| &**map).collect();
                self.join(&maps, |exprs, rests| exprs.or(rests))
            }
            Expr::And(parts) => {
                let maps: Vec<Derivatives> = parts.iter().map(|part| self.derivatives[part].clone()).collect();
                let maps: Vec<&[_]> = maps.iter().map(|map| &**map).collect();
                let all = parts.len();
                self.join(&maps, |exprs, rests| if rests.len() == all { exprs.and(rests) } else { ExprId::NOTHING })
            }
            Expr::Not(inner) => {
                let map = self.derivatives[&inner].clone();
                let mut covered = ByteSet::EMPTY;
                let mut result = Vec::with_capacity(map.len() + 1);
                for &(set, rest) in map.iter() {
                    covered = covered.union(&set);
                    let rest = self.exprs.not(rest);
                    if rest != ExprId::NOTHING {
                        result.push((set, rest));
                    }
                }
                if covered != ByteSet::ALL {
                    result.push((covered.complement(), ExprId::ANYTHING));
                }
                result.into()
            }
            Expr::Repeat { body, min, max } => {
                let rounds = self.exprs.repeat(body, min.saturating_sub(1), max.map(|max| max - 1));
                let mut map: Vec<_> = self.derivatives[&body].to_vec();
                for (_, rest) in &mut map {
                    *rest = self.exprs.concat(*rest, rounds);
                }
                map.into()
            }
            Expr::Text(text) => {
                let (first, rest) = text.as_bytes().split_at(1);
                Arc::new([(first.iter().copied().collect(), self.exprs.literal(rest))])
            }
            Expr::Language(rest) => self.derivatives_of_language(&rest),
            Expr::Number(number) => {
                let mut map: Vec<(ByteSet, ExprId)> = Vec::new();
                for bytes in Number::BYTES {
                    let rest = self.exprs.number_rest(number.after(bytes[0]));
                    let set: ByteSet = bytes.iter().copied().collect();
                    match map.iter_mut().find(|(_, known)| *known == rest) {
                        _ if rest == ExprId::NOTHING => {}
                        Some((known, _)) => *known = known.union(&set),
                        None => map.push((set, rest)),
                    }
                }
                map.into()
            }
        }
    }

    fn derivatives_of_language(&mut self, rest: &LanguageRest) -> Derivatives {
        let mut map: Vec<(ByteSet, ExprId)> = Vec::new();
        for class in rest.classes() {
            let byte = class.first().expect("a class of bytes is never empty");
            let Some(rest) = rest.after(byte) else { continue };
            let rest = self.exprs.language_rest(rest);
            match map.iter_mut().find(|(_, known)| *known == rest) {
                Some((known, _)) => *known = known.union(&class),
                None => map.push((class, rest)),
            }
        }
        map.into()
    }

    /// Combines several partitions; `combine` gets the residuals of every common part.
    fn join(
        &mut self,
        maps: &[&[(ByteSet, ExprId)]],
        combine: impl Fn(&mut ExprSet, &[ExprId]) -> ExprId,
    ) -> Derivatives {
        let mut parts = Partition::new();
        for map in maps {
            for &(set, rest) in *map {
                parts.add(set, rest);
            }
        }
        // Parts with the same residuals are merged.
        let mut result: Vec<(ByteSet, ExprId)> = Vec::with_capacity(parts.rests.len());
        let mut known: FxHashMap<&[ExprId], usize> = FxHashMap::default();
        for (set, rests) in parts.sets.iter().zip(&parts.rests) {
            if rests.is_empty() || set.is_empty() {
                continue;
            }
            match known.get(&rests[..]) {
                Some(&index) => result[index].0 = result[index].0.union(set),
                None => {
                    known.insert(rests, result.len());
                    result.push((*set, combine(&mut self.exprs, rests)));
                }
            }
        }
        result.retain(|&(_, rest)| rest != ExprId::NOTHING);
        result.into()
    }

    /// The residual after one byte.
    ///
    /// # Errors
    /// [`LimitExceeded`] when the set has grown to its greatest size.
    pub fn after(&mut self, id: ExprId, byte: u8) -> Result<ExprId, LimitExceeded> {
        if self.exprs.begins_with_language(id)
            && let Some(rest) = self.after_a_language(id, byte, 0)?
        {
            return Ok(rest);
        }
        let derivatives = self.derivatives(id)?;
        Ok(derivatives.iter().find(|(set, _)| set.contains(byte)).map_or(ExprId::NOTHING, |&(_, rest)| rest))
    }

    /// The residual after one byte, computed for that byte alone; `None` where the expression is too deep. A language
    /// decided by a program has a different residual after every byte, so deriving it by all bytes takes long, while a
    /// text reads only one.
    fn after_a_language(&mut self, id: ExprId, byte: u8, level: u32) -> Result<Option<ExprId>, LimitExceeded> {
        if !self.exprs.has_language(id) {
            return self.after(id, byte).map(Some);
        }
        if level > MAX_LANGUAGE_LEVEL {
            return Ok(None);
        }
        let rest = match self.exprs.get(id).clone() {
            Expr::Language(rest) => match rest.after(byte) {
                Some(rest) => self.exprs.language_rest(rest),
                None => ExprId::NOTHING,
            },
            Expr::Concat { head, tail } => {
                let Some(first) = self.after_a_language(head, byte, level + 1)? else { return Ok(None) };
                let first = self.exprs.concat(first, tail);
                if !self.exprs.is_nullable(head) {
                    first
                } else {
                    let Some(second) = self.after_a_language(tail, byte, level + 1)? else { return Ok(None) };
                    self.exprs.or(&[first, second])
                }
            }
            Expr::Or(parts) | Expr::And(parts) => {
                let mut rests = Vec::with_capacity(parts.len());
                for &part in &parts {
                    let Some(rest) = self.after_a_language(part, byte, level + 1)? else { return Ok(None) };
                    rests.push(rest);
                }
                match self.exprs.get(id) {
                    Expr::Or(_) => self.exprs.or(&rests),
                    _ => self.exprs.and(&rests),
                }
            }
            Expr::Not(inner) => {
                let Some(rest) = self.after_a_language(inner, byte, level + 1)? else { return Ok(None) };
                self.exprs.not(rest)
            }
            Expr::Repeat { body, min, max } => {
                let rounds = self.exprs.repeat(body, min.saturating_sub(1), max.map(|max| max - 1));
                let Some(rest) = self.after_a_language(body, byte, level + 1)? else { return Ok(None) };
                self.exprs.concat(rest, rounds)
            }
            Expr::Nothing | Expr::Empty | Expr::Bytes(_) | Expr::Text(_) | Expr::Number(_) => {
                unreachable!("what has a language is none of these")
            }
        };
        self.limits.check_exprs(self.exprs.len() - self.before)?;
        self.check_bytes()?;
        Ok(Some(rest))
    }

    /// The residual after one byte of a repetition with a maximum count, perhaps followed by more; `None` where that is
    /// not simple. Every round of such a repetition has a new residual, so deriving it by all bytes takes long, while a
    /// text reads only one.
    ///
    /// # Errors
    /// As [`Deriver::after`].
    pub fn after_a_count(&mut self, id: ExprId, byte: u8) -> Result<Option<ExprId>, LimitExceeded> {
        let Some(Counted { body, min, max, tail }) = self.counted(id) else { return Ok(None) };
        let ended = if min == 0 { self.after(tail, byte)? } else { ExprId::NOTHING };
        let begun = self.after(body, byte)?;
        if begun == ExprId::NOTHING || ended != ExprId::NOTHING {
            return Ok((begun == ExprId::NOTHING).then_some(ended));
        }
        let rounds = self.exprs.repeat(body, min.saturating_sub(1), Some(max - 1));
        let below = self.exprs.concat(rounds, tail);
        let after = self.exprs.concat(begun, below);
        self.limits.check_exprs(self.exprs.len() - self.before)?;
        Ok(Some(after))
    }

    /// The bytes that a match of an expression can begin with, if its derivatives are already computed.
    pub fn known_first(&self, id: ExprId) -> Option<ByteSet> {
        if self.exprs.has_boolean(id) {
            return None;
        }
        let live = self.derivatives.get(&id)?.iter().filter(|&&(_, rest)| rest != ExprId::NOTHING);
        Some(live.fold(ByteSet::EMPTY, |first, (set, _)| first.union(set)))
    }

    /// The bytes that may come next in such a repetition; few counts change them. `None` as in
    /// [`Deriver::after_a_count`].
    ///
    /// # Errors
    /// As [`Deriver::after`].
    pub fn first_of_a_count(&mut self, id: ExprId) -> Result<Option<ByteSet>, LimitExceeded> {
        let Some(Counted { body, min, tail, .. }) = self.counted(id) else { return Ok(None) };
        let first = |derivatives: Derivatives| derivatives.iter().fold(ByteSet::EMPTY, |all, (set, _)| all.union(set));
        let begun = first(self.derivatives(body)?);
        Ok(Some(if min == 0 { begun.union(&first(self.derivatives(tail)?)) } else { begun }))
    }

    /// The parts of a repetition with a maximum count and of what follows it, if no part can contradict another.
    fn counted(&self, id: ExprId) -> Option<Counted> {
        let (head, tail) = match *self.exprs.get(id) {
            Expr::Concat { head, tail } => (head, tail),
            _ => (id, ExprId::EMPTY),
        };
        let Expr::Repeat { body, min, max: Some(max) } = *self.exprs.get(head) else { return None };
        let is_plain = !self.exprs.has_boolean(id) && !self.exprs.is_nullable(body);
        is_plain.then_some(Counted { body, min, max, tail })
    }

    /// Whether the expression matches the whole string: the slow reference of every automaton.
    ///
    /// # Errors
    /// [`LimitExceeded`] when the set has grown to its greatest size.
    pub fn matches(&mut self, id: ExprId, text: &[u8]) -> Result<bool, LimitExceeded> {
        let mut state = id;
        for &byte in text {
            state = self.after(state, byte)?;
        }
        Ok(self.exprs.is_nullable(state))
    }
}

/// See [`Deriver::counted`].
struct Counted {
    body: ExprId,
    min: u32,
    max: u32,
    tail: ExprId,
}

/// A partition of the bytes that is refined by one set after another, with the residuals of each part.
struct Partition {
    part_of: [u16; 256],
    sets: Vec<ByteSet>,
    rests: Vec<Vec<ExprId>>,
    /// Scratch space: the parts that contain a byte of a set.
    met: Vec<u16>,
}

impl Partition {
    fn new() -> Partition {
        Partition { part_of: [0; 256], sets: vec![ByteSet::ALL], rests: vec![Vec::new()], met: Vec::new() }
    }

    /// Adds a residual to all bytes of a set, splitting the parts that the set divides. Only parts that contain a byte
    /// of it are visited, since there may be thousands of alternatives.
    fn add(&mut self, set: ByteSet, rest: ExprId) {
        let mut met = std::mem::take(&mut self.met);
        let mut left = set;
        while let Some(byte) = left.first() {
            let part = self.part_of[usize::from(byte)];
            met.push(part);
            left = left.intersect(&self.sets[usize::from(part)].complement());
        }
        met.sort_unstable();
        met.drain(..).for_each(|part| self.add_within(usize::from(part), set, rest));
        self.met = met;
    }

    fn add_within(&mut self, part: usize, set: ByteSet, rest: ExprId) {
        let inside = self.sets[part].intersect(&set);
        if inside == self.sets[part] {
            self.rests[part].push(rest);
            return;
        }
        let split = self.sets.len() as u16;
        inside.iter().for_each(|byte| self.part_of[usize::from(byte)] = split);
        self.sets[part] = self.sets[part].intersect(&set.complement());
        self.sets.push(inside);
        let mut rests = self.rests[part].clone();
        rests.push(rest);
        self.rests.push(rests);
    }
}
