//! A lazy deterministic automaton over several expressions at once; an accepting state tells which of them matched.
//!
//! A state is the list of residual expressions that are still alive, each with its tag (the index of its root). Dead
//! residuals are dropped at once, so every state except [`StateId::DEAD`] has a path to an accepting one. A row of
//! transitions is computed when a state is first left; bytes that no expression distinguishes share a column.

use hashbrown::HashTable;
use stencilm_support::{LimitExceeded, hash_of, memory};

use crate::derivative::deriver::Deriver;
use crate::expr::byte_set::ByteSet;
use crate::expr::clamp::Saturation;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};
use crate::limits::Limits;

/// A state of one [`Dfa`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StateId(pub u32);

impl StateId {
    /// No continuation matches.
    pub const DEAD: StateId = StateId(0);
    /// Before the first byte. It counts as dead where nothing matches: see [`Dfa::is_dead_at_start`].
    pub const START: StateId = StateId(1);
}

/// The index of an expression in the list given to [`Dfa::new`].
pub type Tag = u32;

const UNKNOWN: u32 = u32::MAX;

/// Set in a transition to an accepting state, so that a walk need not look at the state itself.
const ACCEPTS: u32 = 1 << 31;

/// The automaton. It does not own the expressions: calls that may derive are given the [`Deriver`].
#[derive(Clone)]
pub struct Dfa {
    columns: [u8; 256],
    representatives: Vec<u8>,
    members: Vec<ByteSet>,
    states: Vec<State>,
    table: Vec<u32>,
    index: HashTable<u32>,
    /// Bytes of memory of the states.
    in_states: usize,
    /// The last repetition without a maximum count that was asked for, and its clamped state: along a text with a
    /// maximum length it is the same for every count.
    unbounded: Option<(Unbounded, StateId)>,
    limits: Limits,
}

/// A state that reads a repetition without a maximum count, and something after it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Unbounded {
    tag: Tag,
    body: ExprId,
    min: u32,
    tail: ExprId,
}

#[derive(Clone)]
struct State {
    residuals: Box<[(Tag, ExprId)]>,
    accepts: Box<[Tag]>,
    /// Whether all transitions are computed; otherwise some may be.
    filled: bool,
    /// The live bytes, once they are computed.
    live: Option<ByteSet>,
    /// See [`Dfa::saturated`]; `UNKNOWN` until it is computed.
    saturated: u32,
}

impl Dfa {
    /// An automaton for `roots`; the tag of a root is its position.
    ///
    /// # Errors
    /// [`LimitExceeded`] when deciding whether a root matches anything takes too long.
    pub fn new(deriver: &mut Deriver, roots: &[ExprId], limits: Limits) -> Result<Dfa, LimitExceeded> {
        let members = deriver.byte_classes.of(&deriver.exprs, roots);
        let mut columns = [0; 256];
        for (column, set) in members.iter().enumerate() {
            for byte in set.iter() {
                columns[usize::from(byte)] = column as u8;
            }
        }
        let representatives = members.iter().map(|set| set.first().expect("a byte class is never empty")).collect();
        let mut dfa = Dfa {
            columns,
            representatives,
            members,
            states: Vec::new(),
            table: Vec::new(),
            index: HashTable::new(),
            in_states: 0,
            unbounded: None,
            limits,
        };
        deriver.in_automata += dfa.memory_bytes();
        dfa.state_of(deriver, &[])?;
        let mut alive = Vec::with_capacity(roots.len());
        for (tag, &root) in roots.iter().enumerate() {
            if deriver.is_live(root)? {
                alive.push((tag as Tag, root));
            }
        }
        if alive.is_empty() {
            dfa.push_state(deriver, &[]);
        } else {
            dfa.state_of(deriver, &alive)?;
        }
        Ok(dfa)
    }

    /// Whether no root matches any string.
    pub fn is_dead_at_start(&self) -> bool {
        self.states[1].residuals.is_empty()
    }

    /// The state with these residuals, if it has been reached.
    pub fn known_state(&self, residuals: &[(Tag, ExprId)]) -> Option<StateId> {
        let known = self.index.find(hash_of(residuals), |&id| *self.states[id as usize].residuals == *residuals);
        known.copied().map(StateId)
    }

    /// The number of states so far.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Never true: the dead state and the start are always there.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// The first byte that is never distinguished from this one: both lead to the same state from every state.
    #[inline]
    pub fn representative(&self, byte: u8) -> u8 {
        self.representatives[usize::from(self.columns[usize::from(byte)])]
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Dfa>() + self.in_lists()
    }

    /// The memory of its lists, in constant time.
    fn in_lists(&self) -> usize {
        self.in_states
            + memory::of_list(&self.states)
            + memory::of_list(&self.table)
            + memory::of_list(&self.representatives)
            + memory::of_list(&self.members)
            + memory::of_table::<u32>(self.index.capacity())
    }

    /// The state after one byte.
    ///
    /// # Errors
    /// [`LimitExceeded`] when the automaton or its expressions grow too large.
    #[inline]
    pub fn next(&mut self, deriver: &mut Deriver, state: StateId, byte: u8) -> Result<StateId, LimitExceeded> {
        Ok(self.step(deriver, state, byte)?.0)
    }

    /// The state after one byte, and whether it accepts anything.
    ///
    /// # Errors
    /// As [`Dfa::next`].
    #[inline]
    pub fn step(&mut self, deriver: &mut Deriver, state: StateId, byte: u8) -> Result<(StateId, bool), LimitExceeded> {
        let width = self.representatives.len();
        let cell = state.0 as usize * width + usize::from(self.columns[usize::from(byte)]);
        let mut next = self.table[cell];
        if next == UNKNOWN {
            self.fill(deriver, state, byte)?;
            next = self.table[cell];
        }
        Ok((StateId(next & !ACCEPTS), next & ACCEPTS != 0))
    }

    /// The state after several bytes.
    ///
    /// # Errors
    /// As [`Dfa::next`].
    pub fn run(&mut self, deriver: &mut Deriver, mut state: StateId, bytes: &[u8]) -> Result<StateId, LimitExceeded> {
        for &byte in bytes {
            if state == StateId::DEAD {
                break;
            }
            state = self.next(deriver, state, byte)?;
        }
        Ok(state)
    }

    /// The tags of the expressions that match in a state.
    #[inline]
    pub fn accepts(&self, state: StateId) -> &[Tag] {
        &self.states[state.0 as usize].accepts
    }

    /// The residual expressions with their tags, ascending by tag.
    pub fn residuals(&self, state: StateId) -> &[(Tag, ExprId)] {
        &self.states[state.0 as usize].residuals
    }

    /// The live bytes of a state.
    ///
    /// # Errors
    /// As [`Dfa::next`].
    pub fn live_bytes(&mut self, deriver: &mut Deriver, state: StateId) -> Result<&ByteSet, LimitExceeded> {
        if self.states[state.0 as usize].live.is_none() {
            // Another automaton may already have derived the same expression; then its row need not be built here
            // before a text needs it.
            let live = match *self.states[state.0 as usize].residuals {
                [(_, residual)] => match deriver.known_first(residual) {
                    None => deriver.first_of_a_count(residual)?,
                    known => known,
                },
                _ => None,
            };
            match live {
                Some(live) => self.states[state.0 as usize].live = Some(live),
                None => self.fill_row(deriver, state)?,
            }
        }
        Ok(self.states[state.0 as usize].live.as_ref().expect("the bytes were just found"))
    }

    /// Disjoint byte sets with the state that each leads to; dead bytes are left out.
    ///
    /// # Errors
    /// As [`Dfa::next`].
    pub fn transitions(
        &mut self,
        deriver: &mut Deriver,
        state: StateId,
    ) -> Result<Vec<(ByteSet, StateId)>, LimitExceeded> {
        if !self.states[state.0 as usize].filled {
            self.fill_row(deriver, state)?;
        }
        let width = self.representatives.len();
        let row = &self.table[state.0 as usize * width..][..width];
        let mut result: Vec<(ByteSet, StateId)> = Vec::new();
        for (members, &next) in self.members.iter().zip(row) {
            let next = next & !ACCEPTS;
            if next == StateId::DEAD.0 {
                continue;
            }
            match result.iter_mut().find(|(_, known)| known.0 == next) {
                Some((set, _)) => *set = set.union(members),
                None => result.push((*members, StateId(next))),
            }
        }
        Ok(result)
    }

    /// See [`Dfa::saturated`]; `None` where that was not computed yet.
    #[inline]
    pub fn known_saturated(&self, state: StateId) -> Option<StateId> {
        let known = self.states[state.0 as usize].saturated;
        (known != UNKNOWN).then_some(StateId(known))
    }

    /// The clamped state: no string within the horizon can distinguish it from this one, and it is the same for all
    /// states that differ only in counts far from their bounds.
    ///
    /// # Errors
    /// As [`Dfa::next`].
    pub fn saturated(
        &mut self,
        deriver: &mut Deriver,
        saturation: &mut Saturation,
        state: StateId,
    ) -> Result<StateId, LimitExceeded> {
        if let Some(known) = self.known_saturated(state) {
            return Ok(known);
        }
        let counted = self.counted(&deriver.exprs, saturation, state);
        let unbounded = counted.filter(|&(_, max)| max > saturation.horizon()).map(|(unbounded, _)| unbounded);
        if let (Some(unbounded), Some((known, saturated))) = (unbounded, self.unbounded)
            && unbounded == known
        {
            self.states[state.0 as usize].saturated = saturated.0;
            return Ok(saturated);
        }
        let mut residuals = self.states[state.0 as usize].residuals.to_vec();
        for (_, residual) in &mut residuals {
            *residual = saturation.apply(&mut deriver.exprs, *residual);
        }
        let saturated = self.state_of(deriver, &residuals)?;
        self.states[state.0 as usize].saturated = saturated.0;
        self.states[saturated.0 as usize].saturated = saturated.0;
        if let Some(unbounded) = unbounded {
            self.unbounded = Some((unbounded, saturated));
        }
        Ok(saturated)
    }

    /// The clamped state of the same text without the maximum count of the repetition that it begins with; `None` where
    /// it begins with none.
    ///
    /// # Errors
    /// As [`Dfa::next`].
    pub fn unbounded(
        &mut self,
        deriver: &mut Deriver,
        saturation: &mut Saturation,
        state: StateId,
    ) -> Result<Option<StateId>, LimitExceeded> {
        let Some((unbounded, _)) = self.counted(&deriver.exprs, saturation, state) else { return Ok(None) };
        if let Some((known, saturated)) = self.unbounded
            && unbounded == known
        {
            return Ok(Some(saturated));
        }
        let Unbounded { tag, body, min, tail } = unbounded;
        let repeated = deriver.exprs.repeat(body, min, None);
        let residual = deriver.exprs.concat(repeated, tail);
        let residual = saturation.apply(&mut deriver.exprs, residual);
        let saturated = self.state_of(deriver, &[(tag, residual)])?;
        self.states[saturated.0 as usize].saturated = saturated.0;
        self.unbounded = Some((unbounded, saturated));
        Ok(Some(saturated))
    }

    /// If the only residual of a state begins with a repetition with a maximum count: that repetition, and the count.
    fn counted(&self, exprs: &ExprSet, saturation: &Saturation, state: StateId) -> Option<(Unbounded, u32)> {
        let &[(tag, residual)] = &*self.states[state.0 as usize].residuals else { return None };
        let &Expr::Concat { head, tail } = exprs.get(residual) else { return None };
        let &Expr::Repeat { body, min, max: Some(max) } = exprs.get(head) else { return None };
        Some((Unbounded { tag, body, min: min.min(saturation.horizon() + 1), tail }, max))
    }

    /// Computes at least the transition by a byte. For a repetition with a maximum count, or a language decided by a
    /// program, computes no more than that.
    #[cold]
    fn fill(&mut self, deriver: &mut Deriver, state: StateId, byte: u8) -> Result<(), LimitExceeded> {
        let residuals = &self.states[state.0 as usize].residuals;
        if residuals.iter().any(|&(_, residual)| deriver.exprs.begins_with_language(residual)) {
            let mut rests = Vec::with_capacity(residuals.len());
            for &(tag, residual) in residuals {
                let rest = deriver.after(residual, byte)?;
                if deriver.is_live(rest)? {
                    rests.push((tag, rest));
                }
            }
            let next = self.state_of(deriver, &rests)?;
            self.set_next(state, byte, next);
            return Ok(());
        }
        let &[(tag, residual)] = &*self.states[state.0 as usize].residuals else {
            return self.fill_row(deriver, state);
        };
        let Some(rest) = deriver.after_a_count(residual, byte)? else { return self.fill_row(deriver, state) };
        let next = match rest {
            ExprId::NOTHING => StateId::DEAD,
            rest => self.state_of(deriver, &[(tag, rest)])?,
        };
        self.set_next(state, byte, next);
        Ok(())
    }

    fn set_next(&mut self, state: StateId, byte: u8, next: StateId) {
        let cell = state.0 as usize * self.representatives.len() + usize::from(self.columns[usize::from(byte)]);
        self.table[cell] = if self.accepts(next).is_empty() { next.0 } else { next.0 | ACCEPTS };
    }

    #[cold]
    fn fill_row(&mut self, deriver: &mut Deriver, state: StateId) -> Result<(), LimitExceeded> {
        let width = self.representatives.len();
        let mut found: Vec<(usize, Tag, ExprId)> = Vec::new();
        for &(tag, residual) in &*self.states[state.0 as usize].residuals {
            for &(set, rest) in deriver.derivatives(residual)?.iter() {
                if !deriver.is_live(rest)? {
                    continue;
                }
                if let Some(byte) = set.single() {
                    found.push((usize::from(self.columns[usize::from(byte)]), tag, rest));
                    continue;
                }
                for (column, &byte) in self.representatives.iter().enumerate() {
                    if set.contains(byte) {
                        found.push((column, tag, rest));
                    }
                }
            }
        }
        found.sort_unstable();
        let row = state.0 as usize * width;
        self.table[row..row + width].fill(StateId::DEAD.0);
        let mut live = ByteSet::EMPTY;
        let mut residuals = Vec::new();
        for same_column in found.chunk_by(|a, b| a.0 == b.0) {
            let column = same_column[0].0;
            residuals.clear();
            residuals.extend(same_column.iter().map(|&(_, tag, rest)| (tag, rest)));
            let next = self.state_of(deriver, &residuals)?;
            live = live.union(&self.members[column]);
            self.table[row + column] = if self.accepts(next).is_empty() { next.0 } else { next.0 | ACCEPTS };
        }
        let filled = &mut self.states[state.0 as usize];
        (filled.live, filled.filled) = (Some(live), true);
        Ok(())
    }

    fn state_of(&mut self, deriver: &mut Deriver, residuals: &[(Tag, ExprId)]) -> Result<StateId, LimitExceeded> {
        if let Some(known) = self.known_state(residuals) {
            return Ok(known);
        }
        self.limits.check_states(self.states.len())?;
        deriver.check_bytes()?;
        Ok(self.push_state(deriver, residuals))
    }

    fn push_state(&mut self, deriver: &mut Deriver, residuals: &[(Tag, ExprId)]) -> StateId {
        let id = self.states.len() as u32;
        let hash = hash_of(residuals);
        let before = self.in_lists();
        let exprs = &deriver.exprs;
        let accepts: Box<[Tag]> =
            residuals.iter().filter(|(_, rest)| exprs.is_nullable(*rest)).map(|&(tag, _)| tag).collect();
        self.in_states += memory::of_slice::<(Tag, ExprId)>(residuals.len()) + memory::of_slice::<Tag>(accepts.len());
        let row = if residuals.is_empty() { StateId::DEAD.0 } else { UNKNOWN };
        self.table.extend(std::iter::repeat_n(row, self.representatives.len()));
        let filled = residuals.is_empty();
        let (live, saturated) = (filled.then_some(ByteSet::EMPTY), UNKNOWN);
        self.states.push(State { residuals: residuals.into(), accepts, filled, live, saturated });
        let states = &self.states;
        if self.index.find(hash, |&known| states[known as usize].residuals == states[id as usize].residuals).is_none() {
            self.index.insert_unique(hash, id, |&id| hash_of(&states[id as usize].residuals));
        }
        deriver.in_automata += self.in_lists() - before;
        StateId(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dfa(build: impl Fn(&mut ExprSet) -> Vec<ExprId>) -> (Deriver, Dfa) {
        let mut deriver = Deriver::new(Limits::default());
        let roots = build(&mut deriver.exprs);
        let dfa = Dfa::new(&mut deriver, &roots, Limits::default()).unwrap();
        (deriver, dfa)
    }

    #[test]
    fn tags_say_which_expression_matched() {
        let (mut deriver, mut dfa) = dfa(|set| {
            let letter = set.bytes(ByteSet::range(b'a', b'z'));
            vec![set.literal(b"if"), set.repeat(letter, 1, None), set.literal(b"in")]
        });
        let mut tags = |text: &str| {
            let state = dfa.run(&mut deriver, StateId::START, text.as_bytes()).unwrap();
            dfa.accepts(state).to_vec()
        };
        assert_eq!(tags("if"), [0, 1]);
        assert_eq!(tags("in"), [1, 2]);
        assert_eq!(tags("inn"), [1]);
        assert_eq!(tags(""), [0u32; 0]);
        assert_eq!(tags("i1"), [0u32; 0]);
    }

    #[test]
    fn dead_branches_of_an_intersection_are_dropped() {
        // (ab|ac)* & ~(.*b.*) & ...{2,}: after `a` only `c` can follow.
        let (mut deriver, mut dfa) = dfa(|set| {
            let words = set.literals(&["ab", "ac"]);
            let words = set.repeat(words, 1, None);
            let b = set.literal(b"b");
            let with_b = set.concat_all(&[ExprId::ANYTHING, b, ExprId::ANYTHING]);
            let without_b = set.not(with_b);
            vec![set.and(&[words, without_b])]
        });
        let a = dfa.next(&mut deriver, StateId::START, b'a').unwrap();
        assert_eq!(dfa.next(&mut deriver, a, b'b').unwrap(), StateId::DEAD);
        assert_ne!(dfa.next(&mut deriver, a, b'c').unwrap(), StateId::DEAD);
        assert_eq!(dfa.live_bytes(&mut deriver, a).unwrap().len(), 1);
    }

    #[test]
    fn contradiction_is_dead_at_start() {
        let (_, dfa) = dfa(|set| {
            let a = set.literal(b"a");
            let aa = set.repeat(a, 2, Some(3));
            let long = set.repeat(a, 4, None);
            vec![set.and(&[aa, long])]
        });
        assert!(dfa.is_dead_at_start());
    }

    #[test]
    fn counters_are_not_unrolled() {
        let (mut deriver, mut dfa) = dfa(|set| {
            let a = set.literal(b"a");
            let inner = set.repeat(a, 1000, Some(1000));
            vec![set.repeat(inner, 1000, Some(1000))]
        });
        let before = deriver.exprs.len();
        dfa.run(&mut deriver, StateId::START, b"aaaaa").unwrap();
        assert!(deriver.exprs.len() < before + 40, "a few expressions a step");
    }

    #[test]
    fn a_text_derives_one_transition_of_a_count() {
        let build = |set: &mut ExprSet| {
            let (quote, plain) = (set.literal(b"\""), set.bytes(ByteSet::range(b'a', b'y')));
            let pairs: Vec<ExprId> = (b'A'..=b'Z').map(|byte| set.literal(&[byte, byte])).collect();
            let character = set.or(&[&pairs[..], &[plain]].concat());
            let text = set.repeat(character, 0, Some(1000));
            vec![set.concat(text, quote)]
        };
        let ((mut deriver, mut read), (mut other, mut laid_out)) = (dfa(build), dfa(build));
        let before = deriver.exprs.len();
        let mut states = (StateId::START, StateId::START);
        for byte in b"abcAAxyZZ".iter().cycle().take(90).copied() {
            laid_out.transitions(&mut other, states.1).unwrap();
            states.0 = read.next(&mut deriver, states.0, byte).unwrap();
            states.1 = laid_out.next(&mut other, states.1, byte).unwrap();
        }
        let (grown, grown_laid_out) = (deriver.exprs.len() - before, other.exprs.len() - before);
        assert!(4 * grown < grown_laid_out, "{grown} and {grown_laid_out}");
        for byte in 0..=u8::MAX {
            let (next, accepts) = read.step(&mut deriver, states.0, byte).unwrap();
            let (expected, accepts_there) = laid_out.step(&mut other, states.1, byte).unwrap();
            assert_eq!((next == StateId::DEAD, accepts), (expected == StateId::DEAD, accepts_there), "{byte}");
        }
        let live = *read.live_bytes(&mut deriver, states.0).unwrap();
        assert_eq!(live, *laid_out.live_bytes(&mut other, states.1).unwrap());
    }

    #[test]
    fn what_another_automaton_has_laid_out_is_not_laid_out_again() {
        let mut deriver = Deriver::new(Limits::default());
        let set = &mut deriver.exprs;
        let (letters, quote) = (set.bytes(ByteSet::range(b'a', b'y')), set.literal(b"\""));
        let unbounded = set.repeat(letters, 0, None);
        let (body, other) = (set.concat(unbounded, quote), set.literal(b"z"));
        let roots = [set.concat(other, body), body];
        let [mut first, mut second] = roots.map(|root| Dfa::new(&mut deriver, &[root], Limits::default()).unwrap());
        let inside = first.next(&mut deriver, StateId::START, b'z').unwrap();
        first.transitions(&mut deriver, inside).unwrap();
        let states = second.len();
        let live = *second.live_bytes(&mut deriver, StateId::START).unwrap();
        assert_eq!(live, *first.live_bytes(&mut deriver, inside).unwrap());
        assert_eq!(second.len(), states, "no state is made for what leads on");
    }

    #[test]
    fn deep_expressions_do_not_recurse() {
        let (mut deriver, mut dfa) = dfa(|set| {
            let (a, b) = (set.literal(b"a"), set.literal(b"b"));
            let mut expr = a;
            for _ in 0..500 {
                let star = set.repeat(expr, 0, None);
                expr = set.concat(star, b);
            }
            vec![expr]
        });
        assert_ne!(dfa.run(&mut deriver, StateId::START, b"aab").unwrap(), StateId::DEAD);
    }

    proptest::proptest! {
        /// Reading a count byte by byte gives the same as deriving it by all bytes.
        #[test]
        fn counts_are_read_as_by_all_derivatives(
            pattern in proptest::sample::select(vec![
                "a{0,3}b", "a{2,5}", "[a-c]{1,4}c", "(ab|c){0,2}b", "(ab|a){0,3}(b|d)", "(a{1,2}b){0,3}a{0,2}", "(é|a){0,3}b?",
                "a{0,2}(b{0,2}a){1,2}", "[ab]{0,3}(ab)*",
            ]),
            text in "[abcd\u{e9}]{0,5}",
        ) {
            use crate::{PatternOptions, Utf8, parse_pattern};
            let mut deriver = Deriver::new(Limits::default());
            let root = parse_pattern(&mut deriver.exprs, pattern, &PatternOptions::default(), &mut Utf8).unwrap();
            let mut read = Dfa::new(&mut deriver, &[root], Limits::default()).unwrap();
            let mut state = StateId::START;
            for byte in text.bytes() {
                let next = read.next(&mut deriver, state, byte).unwrap();
                if next == StateId::DEAD {
                    break;
                }
                state = next;
            }
            let &[(_, residual)] = read.residuals(state) else { return Ok(()) };
            let live = *read.live_bytes(&mut deriver, state).unwrap();
            for byte in 0..=u8::MAX {
                let rest = deriver.after(residual, byte).unwrap();
                let next = read.next(&mut deriver, state, byte).unwrap();
                let expected: &[(Tag, ExprId)] = if rest == ExprId::NOTHING { &[] } else { &[(0, rest)] };
                proptest::prop_assert_eq!(read.residuals(next), expected, "{} behind {} {}", pattern, text, byte);
                proptest::prop_assert_eq!(live.contains(byte), rest != ExprId::NOTHING);
            }
        }
    }
}
