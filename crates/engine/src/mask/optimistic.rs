//! The optimistic mask: the tokens that may come next, as if every additional key and every unique element were new.
//! Sparse threads are walked through the trie; dense ones take a lexeme mask and add their crossing tokens.
//!
//! A thread is *dense* if many bytes may come next, as in a string body. Its lexeme mask (see `lexeme/mask.rs`) holds
//! the tokens that stay inside; of those that leave, only the few distinct suffixes are walked, in what follows the
//! lexeme. All other threads are walked from the root of the trie, which ends after a few steps nearly everywhere.
//! Threads are alternatives, so the mask is the union.
//!
//! Such a mask does not depend on which keys were seen. Names that no additional key may have are known beforehand: the
//! tokens that complete one are found by walking the names, and left out.

use std::cmp::Reverse;
use std::sync::Arc;

use stencilm_grammar::NodeId;
use stencilm_regex::{ByteSet, StateId, Tag};
use stencilm_support::{MANY, STEPS};

use crate::distinct::reserved_names::{ReservedScratch, ReservedTokens};
use crate::error::EngineError;
use crate::lexeme::mask::{LexemeMask, LexemeMaskAt};
use crate::machine::expansion::{Expansion, IN_WHITESPACE};
use crate::machine::layout::ExpansionId;
use crate::mask::draft::{Draft, OptimisticMask};
use crate::mask::joined::{Dense, DenseThread};
use crate::parse::assumptions::Assumptions;
use crate::parse::stepper::{Run, offers_tokens};
use crate::parse::walk::Walk;
use crate::state::stacks::{Entry, NIL, SetId};
use crate::switches::Switch;
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

/// The threads of a configuration by how their tokens are found.
#[derive(Default)]
struct Threads {
    /// The dense threads. Those with the same lexeme mask are together, unless what follows them is read one by one.
    alike: Vec<Vec<DenseThread>>,
    sparse: Vec<(Entry, Arc<Expansion>)>,
    /// The lexeme masks of the whitespace before sparse threads.
    whitespace: Vec<Arc<LexemeMask>>,
    /// The single tokens that may come.
    single: Vec<NodeId>,
}

impl Run<'_> {
    /// Writes the mask of a configuration, without stop tokens and as if every additional key were new. Among the
    /// tokens returned as unverified are those that end a key and then another one; those that end the key now being
    /// written are found by [`Run::tokens_of_seen_keys`]. `mask` has one bit for each token of the vocabulary.
    pub fn optimistic_mask(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        mask: &mut [u32],
    ) -> Result<OptimisticMask, EngineError> {
        debug_assert!(!self.is_exact(), "a mask is made as if every key were new");
        self.sharing_walks(|run| run.optimistic_mask_of(vocabulary, configuration, mask))
    }

    fn optimistic_mask_of(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        mask: &mut [u32],
    ) -> Result<OptimisticMask, EngineError> {
        let mut flipped = std::mem::take(&mut self.scratch.flipped);
        flipped.clear();
        let mut draft = Draft::new(vocabulary, mask, flipped);
        let Threads { alike, sparse, whitespace, single } = self.sorted_threads(vocabulary, configuration)?;
        let (greatest, others) = alike.split_at(alike.len().min(1));
        greatest.iter().try_for_each(|alike| self.add_dense(alike, &mut draft))?;
        whitespace.iter().for_each(|mask| draft.add_lexeme_mask(mask));
        if draft.lexeme_mask.is_none() {
            draft.mask.fill(0);
        }
        let mut plain = Vec::new();
        for alike in others {
            // In very ambiguous grammars, a step of all threads is dear, so there is one walk for all that is left.
            let is_very_ambiguous = self.known.is_some() && self.stacks.spent() > STEPS;
            if is_very_ambiguous && self.can_be_joined(alike[0].thread, &alike[0].expansion) {
                draft.add_lexeme_mask(&alike[0].dense.here.mask);
                plain.extend(alike.iter().map(|alike| alike.thread));
            } else {
                self.add_dense(alike, &mut draft)?;
            }
        }
        for (thread, expansion) in sparse {
            match expansion.additional {
                true => self.add_additional(thread, &expansion, &mut draft)?,
                false => plain.push(thread),
            }
        }
        if !plain.is_empty() {
            Walk::new(self).over_tokens(vocabulary, &plain, |token, assumed| {
                draft.allow(token);
                draft.note(token, assumed, false);
            })?;
        }
        for (first, others) in vocabulary.duplicates() {
            if token_set::get(draft.mask, *first) {
                others.iter().for_each(|&other| draft.allow(other));
            }
        }
        // Last, because a grammar that names a single token means that id alone, and not other ids with the same bytes.
        for node in single {
            self.machine.tokens.ids(node).iter().for_each(|token| draft.allow(token));
        }
        let Draft { lexeme_mask, flipped, joined, cleared, mut unverified, .. } = draft;
        // A key that ends within a dense thread was noted as unverified before the walk decided whether the token can
        // go on.
        unverified.retain(|unverified| token_set::get(mask, unverified.token));
        Ok(OptimisticMask { lexeme_mask, flipped, joined, cleared, unverified })
    }

    /// The threads of a configuration by how their tokens are found.
    fn sorted_threads(&mut self, vocabulary: &Tokens, configuration: SetId) -> Result<Threads, EngineError> {
        let mut threads = Threads::default();
        // The lexeme mask of a dense thread already includes its whitespace.
        let mut included: Vec<Arc<LexemeMask>> = Vec::new();
        for thread in self.stacks.entries(configuration).to_vec() {
            if thread == Entry::BOTTOM {
                continue;
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            if offers_tokens(thread) {
                threads.single.extend(expansion.tokens.iter().map(|&(node, _)| node));
                continue;
            }
            let dense = self.dense(vocabulary, thread, &expansion)?.filter(|dense| dense.is_complete);
            if let Some(before) = expansion.whitespace.filter(|_| thread.state & IN_WHITESPACE != 0) {
                let runs = self.lexeme_cache.whitespace_runs(vocabulary, before.set);
                let masks = if dense.is_some() { &mut included } else { &mut threads.whitespace };
                masks.push(runs.mask(vocabulary, expansion.whitespace_left(thread.state)));
            }
            let Some(dense) = dense else {
                threads.sparse.push((thread, expansion));
                continue;
            };
            let dense = DenseThread { thread, expansion, dense };
            match threads.alike.iter_mut().find(|alike| self.are_alike(&alike[0], &dense)) {
                Some(alike) => alike.push(dense),
                None => threads.alike.push(vec![dense]),
            }
        }
        // The greatest lexeme mask is written first; of the others only the tokens that it lacks are added.
        threads.alike.sort_by_key(|alike| Reverse(alike[0].dense.here.mask.count));
        // Several threads after the same whitespace share a lexeme mask.
        threads.whitespace.dedup_by(|a, b| Arc::ptr_eq(a, b));
        threads.whitespace.retain(|whitespace| !included.iter().any(|included| Arc::ptr_eq(included, whitespace)));
        Ok(threads)
    }

    /// The lexeme mask of a thread, if it is dense.
    pub(crate) fn lexeme_mask(
        &mut self,
        vocabulary: &Tokens,
        thread: Entry,
        expansion: &Expansion,
    ) -> Result<Option<LexemeMaskAt>, EngineError> {
        let Some(dfa) = expansion.dfa() else { return Ok(None) };
        let in_whitespace = thread.state & IN_WHITESPACE != 0;
        if in_whitespace && !Switch::LexemeWhitespace.is_on() {
            return Ok(None);
        }
        let begins = in_whitespace || thread.state == StateId::START.0;
        if begins && self.may_run_out(expansion, thread) {
            return Ok(None);
        }
        let here = match expansion.whitespace.filter(|_| thread.state & IN_WHITESPACE != 0) {
            Some(whitespace) => {
                let left = expansion.whitespace_left(thread.state);
                self.lexeme_cache.mask_after_whitespace(vocabulary, dfa, whitespace.set, left)?
            }
            None if self.lexeme_cache.is_dense(vocabulary, dfa, StateId(thread.state))? => {
                self.lexeme_cache.mask(vocabulary, dfa, StateId(thread.state))?
            }
            None => return Ok(None),
        };
        Ok(Some(here))
    }

    /// Whether two threads have the same lexeme mask, and what follows them can be read together.
    fn are_alike(&self, one: &DenseThread, other: &DenseThread) -> bool {
        Arc::ptr_eq(&one.dense.here.mask, &other.dense.here.mask)
            && [one, other].iter().all(|one| self.can_be_joined(one.thread, &one.expansion))
    }

    /// Adds the tokens of some dense threads with the same lexeme mask.
    fn add_dense(&mut self, alike: &[DenseThread], draft: &mut Draft<'_>) -> Result<(), EngineError> {
        let DenseThread { thread, ref expansion, dense: Dense { ref here, .. } } = alike[0];
        let reserved = self.tokens_of_reserved_names(draft.vocabulary, thread, expansion)?;
        let trie = draft.vocabulary.trie();
        // The lexeme mask contains those of these tokens that end with the name, since a key ends with its quote.
        // Tokens that other threads allow stay.
        let has_others = draft.lexeme_mask.is_some() || !draft.flipped.is_empty();
        let ending = reserved.nodes().iter().filter_map(|&node| trie.entry_at(node as usize));
        let ending: Vec<u32> = ending.filter(|&token| !has_others || !token_set::get(draft.mask, token)).collect();
        draft.add_lexeme_mask(&here.mask);
        if expansion.additional && (thread.state & IN_WHITESPACE != 0 || thread.state == StateId::START.0) {
            // Whole keys within a token: whether the object has used them, or whether they are reserved names written
            // with escapes, is not known here.
            let assumed = |seen| Assumptions { seen, reserved: expansion.has_reserved, ..Assumptions::default() };
            if self.stacks.members(thread.register).seen != NIL {
                let tokens = here.mask.ends.iter().flat_map(|&node| trie.entries_below(node as usize));
                tokens.for_each(|token| draft.note(token, assumed(true), false));
            } else if expansion.has_reserved {
                let tokens = here.mask.escaped_tokens(draft.vocabulary).iter();
                tokens.for_each(|&token| draft.note(token, assumed(false), false));
            }
        }
        for token in ending {
            if token_set::get(draft.mask, token) {
                token_set::clear(draft.mask, token);
                draft.flipped.push(token);
                draft.cleared.push(token);
            }
        }
        debug_assert!(
            has_others || !reserved.tokens().iter().any(|&token| token_set::get(draft.mask, token)),
            "no token goes on within a key behind the end of its name"
        );
        self.add_crossings(alike, &reserved, draft)?;
        self.lexeme_cache.extensions.get::<ReservedScratch>().keep(reserved);
        Ok(())
    }

    /// Adds the crossing tokens of some dense threads with the same lexeme mask that can be read after their lexemes,
    /// except those of reserved names.
    fn add_crossings(
        &mut self,
        alike: &[DenseThread],
        reserved: &ReservedTokens,
        draft: &mut Draft<'_>,
    ) -> Result<(), EngineError> {
        let (trie, additional) = (draft.vocabulary.trie(), alike[0].expansion.additional);
        for crossings in alike[0].dense.here.mask.crossing_tokens() {
            let next_nodes = |first| match Switch::MaskFewCrossing.is_on() {
                true => crossings.next_nodes(trie, first, MANY),
                false => None,
            };
            let mut nodes = None;
            if !additional && let Some(first) = self.first_after_alike(alike, &crossings.residuals)? {
                nodes = next_nodes(first);
                if nodes.as_ref().is_some_and(Vec::is_empty) {
                    // No token can be read in what follows, so what follows need not be built.
                    continue;
                }
            }
            let mut threads = Vec::new();
            self.assumed = Assumptions::default();
            for DenseThread { thread, expansion, dense: Dense { here, joined, .. } } in alike {
                for tag in here.tags_of_all(&crossings.residuals) {
                    self.follow_lexeme((*thread, expansion), joined.as_ref(), tag, &mut threads)?;
                }
            }
            self.stacks.join(&mut threads)?;
            // The key that ends here is checked elsewhere, so only later keys are assumed to be new.
            let assumed = Assumptions { later: true, element: self.assumed.element, ..Assumptions::default() };
            let vocabulary = draft.vocabulary;
            let mut allow = |token, assumed| {
                if !reserved.contains(token) {
                    draft.allow(token);
                    draft.note(token, assumed, false);
                }
            };
            if nodes.is_none() {
                let mut first = ByteSet::EMPTY;
                for &thread in &threads {
                    first = first.union(&self.first_bytes(thread)?);
                }
                nodes = next_nodes(first);
            }
            if let Some(nodes) = nodes {
                Walk::new(self).below(trie, &nodes, &threads, assumed, &mut allow)?;
                continue;
            }
            let before = crossings.memory_bytes();
            let known = crossings.crossings(vocabulary);
            self.lexeme_cache.masks_bytes += crossings.memory_bytes() - before;
            let allow = |suffix, assumed| known.tokens(suffix).for_each(|token| allow(token, assumed));
            match additional {
                true => self.read_after_key(known, &mut threads, assumed, allow)?,
                false => Walk::new(self).over(known.suffixes(), &threads, assumed, allow)?,
            }
        }
        Ok(())
    }

    /// The bytes that may follow the lexemes of some threads where these residuals have matched; `None` where only
    /// expanding what follows would tell.
    fn first_after_alike(&mut self, alike: &[DenseThread], residuals: &[u32]) -> Result<Option<ByteSet>, EngineError> {
        let mut all = ByteSet::EMPTY;
        for DenseThread { thread, expansion, dense: Dense { here, joined, .. } } in alike {
            let tags: Vec<Tag> = here.tags_of_all(residuals).collect();
            let first = match joined {
                Some(_) => None,
                None => self.first_after(expansion, &tags, *thread)?,
            };
            let Some(first) = first else { return Ok(None) };
            all = all.union(&first);
        }
        Ok(Some(all))
    }

    /// The bytes that a thread can read next; the set may be too large.
    fn first_bytes(&mut self, thread: Entry) -> Result<ByteSet, EngineError> {
        if thread == Entry::BOTTOM || offers_tokens(thread) {
            return Ok(ByteSet::EMPTY);
        }
        let expansion = self.machine.fork(ExpansionId(thread.head));
        Ok(expansion.bytes_from(self.lexeme_cache, thread.state, StateId::START)?)
    }

    /// Adds the tokens of one sparse thread that reads an additional key.
    fn add_additional(
        &mut self,
        thread: Entry,
        expansion: &Expansion,
        draft: &mut Draft<'_>,
    ) -> Result<(), EngineError> {
        let reserved = self.tokens_of_reserved_names(draft.vocabulary, thread, expansion)?;
        // A key that has begun may already hold escapes.
        let within = thread.state & IN_WHITESPACE == 0 && thread.state != StateId::START.0;
        Walk::new(self).over_tokens(draft.vocabulary, &[thread], |token, assumed| {
            if !reserved.contains(token) {
                draft.allow(token);
                draft.note(token, assumed, within);
            }
        })?;
        self.lexeme_cache.extensions.get::<ReservedScratch>().keep(reserved);
        Ok(())
    }

    /// Whether any byte can follow the lexeme of a dense thread at an end where its lexeme mask does not list the
    /// crossing tokens.
    pub(crate) fn anything_follows(
        &mut self,
        thread: Entry,
        expansion: &Expansion,
        here: &LexemeMaskAt,
    ) -> Result<bool, EngineError> {
        let mut threads = Vec::new();
        for tag in here.mask.unkept.iter().flat_map(|residuals| here.tags_of_all(residuals)) {
            self.follow(expansion, tag, thread, &mut threads)?;
        }
        Ok(threads.iter().any(|&thread| thread != Entry::BOTTOM && !self.machine.is_remark(thread)))
    }
}
