//! What goes on after a lexeme: of the suffixes with which tokens leave it, those that the grammar reads there.
//!
//! A mask is cached for one place of a text. But anywhere in an additional key the quote leads to the same place, and
//! what goes on up to the end of the value depends only on the colon and the value, and values are mostly the same:
//! anything, or strings. So up to there it is cached for all grammars of a vocabulary ([`WithinValues`]), and only the
//! few suffixes that hold a whole value are read in each object.

use std::sync::Arc;

use stencilm_regex::ExprId;
use stencilm_support::{Bounded, Extension};

use crate::error::EngineError;
use crate::lexeme::crossing::{Crossings, Suffixes};
use crate::machine::expansion::OptionalWhitespace;
use crate::machine::layout::{ExpansionId, Frame};
use crate::mask::value_keys::StructuralKey;
use crate::parse::assumptions::Assumptions;
use crate::parse::stepper::Run;
use crate::parse::walk::Walk;
use crate::state::stacks::{Entry, SetId};
use crate::switches::Switch;

/// The suffixes that can be read.
struct Found {
    /// Keeps the suffixes alive, since their address is the key of the cache.
    _all: Arc<Suffixes>,
    /// Each suffix, and what was assumed of the keys on its path.
    suffixes: Box<[(u32, Assumptions)]>,
}

/// What lies between a key and the end of the value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ValueAfterKey {
    /// The whitespace after the key, which the colon's thread reads.
    whitespace: Option<OptionalWhitespace>,
    /// The colon, by its number in the lexeme cache.
    colon: ExprId,
    value: StructuralKey,
}

/// What can follow a key, up to the end of the value.
struct WithinValue {
    read: Found,
    /// The nodes in the trie of suffixes at which the value is complete and some suffix goes on.
    ends: Box<[(u32, Assumptions)]>,
}

/// The suffixes that can be read after a key, up to the end of the value, for all grammars of a vocabulary. The slow
/// reference walks all suffixes in one grammar.
#[derive(Default)]
pub(crate) struct WithinValues {
    /// By the address of the suffixes and the value; `None` where there are too many paths.
    known: Bounded<(usize, ValueAfterKey), Option<Arc<WithinValue>>>,
}

impl Extension for WithinValues {
    fn memory_bytes(&self) -> usize {
        self.known.memory_bytes()
    }
}

impl Run<'_> {
    /// Calls `reached`, at least once, for every suffix of some crossing tokens that the threads can read after an
    /// additional key, with the assumptions made on the path. `assumed` is what was assumed before.
    pub(crate) fn read_after_key(
        &mut self,
        crossings: &Crossings,
        threads: &mut Vec<Entry>,
        assumed: Assumptions,
        mut reached: impl FnMut(u32, Assumptions),
    ) -> Result<(), EngineError> {
        if Switch::MaskValues.is_on()
            && !assumed.element
            && read_within_values(self, crossings.shared_suffixes(), threads, &mut reached)?
        {
            debug_assert!(are_read_the_same(self, crossings, threads)?, "a value is read the same in all grammars");
            return Ok(());
        }
        self.stacks.join(threads)?;
        Walk::new(self).over(crossings.suffixes(), threads, assumed, reached)
    }
}

/// Does the same where every thread reads a colon and a value that are cached for all grammars. Returns `false` where
/// it could not; `reached` may then have been called for some suffixes all the same.
fn read_within_values(
    run: &mut Run<'_>,
    suffixes: &Arc<Suffixes>,
    threads: &[Entry],
    reached: &mut impl FnMut(u32, Assumptions),
) -> Result<bool, EngineError> {
    // Where texts are compared or tokens are counted, the same position may allow different tokens, so a cached result
    // would be wrong.
    if run.known.is_some() || run.machine.keeps_text() || run.machine.tokens.any() || run.machine.marks.any() {
        return Ok(false);
    }
    let mut values = Vec::with_capacity(threads.len());
    for &thread in threads {
        let Some(value) = run.within_value(suffixes, thread)? else { return Ok(false) };
        values.push((thread, value));
    }
    for (thread, WithinValue { read, ends }) in values.iter().map(|(thread, value)| (*thread, &**value)) {
        read.suffixes.iter().for_each(|&(suffix, assumed)| reached(suffix, assumed));
        if ends.is_empty() {
            continue;
        }
        let mut after = Vec::new();
        run.start(thread.below, &mut after)?;
        run.stacks.join(&mut after)?;
        if !Walk::new(run).after_nodes(suffixes.trie(), ends, &after, &mut *reached)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a walk in this grammar alone finds the same suffixes.
fn are_read_the_same(run: &mut Run<'_>, crossings: &Crossings, threads: &mut Vec<Entry>) -> Result<bool, EngineError> {
    run.untracked(|run| {
        let mut within = Vec::new();
        let suffixes = crossings.shared_suffixes();
        read_within_values(run, suffixes, threads, &mut |suffix, assumed| within.push((suffix, assumed)))?;
        let mut all = Vec::new();
        let assumed = Assumptions { later: true, ..Assumptions::default() };
        run.stacks.join(threads)?;
        let note = |suffix, assumed| all.push((suffix, assumed));
        if Walk::new(run).up_to_the_end(suffixes.trie(), threads, assumed, note)?.is_none() {
            // With all threads together, more is assumed.
            return Ok(true);
        }
        for suffixes in [&mut within, &mut all] {
            suffixes.sort_unstable();
            suffixes.dedup();
        }
        Ok(within == all)
    })
}

impl Run<'_> {
    /// What can follow up to the end of the value, if this thread stands before the colon of a member; `None` where it
    /// does not, or where that cannot be cached.
    fn within_value(
        &mut self,
        suffixes: &Arc<Suffixes>,
        thread: Entry,
    ) -> Result<Option<Arc<WithinValue>>, EngineError> {
        if thread == Entry::BOTTOM || thread.register != 0 {
            return Ok(None);
        }
        let expansion = self.machine.fork(ExpansionId(thread.head));
        let Frame::Member { members, value } = self.machine.frame(expansion.frame) else { return Ok(None) };
        if thread.state != expansion.start() {
            return Ok(None);
        }
        let whitespace = expansion.whitespace;
        let Some(value) = self.machine.structural_key(self.lexeme_cache.extensions.get(), value) else {
            return Ok(None);
        };
        let colon = self.machine.grammar().members(members).surface.colon;
        let colon = self.machine.lexeme(self.lexeme_cache, colon)?;
        let name = (Arc::as_ptr(suffixes).addr(), ValueAfterKey { whitespace, colon, value });
        if let Some(known) = self.lexeme_cache.extensions.get::<WithinValues>().known.get(&name) {
            return Ok(known.clone());
        }
        // The text is treated as if it ended with the value, so that the result does not depend on what is below.
        let alone = Entry { below: SetId::BOTTOM, ..thread };
        let (mut read, assumed) = (Vec::new(), Assumptions { later: true, ..Assumptions::default() });
        let note = |suffix, assumed| read.push((suffix, assumed));
        let ends = self.untracked(|run| Walk::new(run).up_to_the_end(suffixes.trie(), &[alone], assumed, note));
        let read = Found { _all: suffixes.clone(), suffixes: read.into() };
        let found = ends?.map(|ends| Arc::new(WithinValue { read, ends: ends.into() }));
        let bytes = |value: &Arc<WithinValue>| 96 + size_of_val(&*value.read.suffixes) + size_of_val(&*value.ends);
        let owned = found.as_ref().map_or(0, bytes);
        self.lexeme_cache.extensions.get::<WithinValues>().known.insert(name, found.clone(), owned);
        Ok(found)
    }
}
