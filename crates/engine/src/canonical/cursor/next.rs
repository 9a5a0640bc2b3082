//! What may come at a configuration, from its threads alone.

use stencilm_regex::{ByteSet, StateId};

use crate::error::EngineError;
use crate::machine::expansion::{Automaton, IN_WHITESPACE};
use crate::machine::layout::ExpansionId;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};

/// Some bytes of each kind that keys are made of: which of those that may come certainly do is asked of these only.
const IN_KEYS: [u8; 4] = *b"aA0_";

/// What may come at a configuration.
#[derive(Clone, Copy)]
pub(crate) struct Next {
    /// The live bytes, perhaps some more.
    pub bytes: ByteSet,
    /// Those of them that certainly are.
    pub certain: ByteSet,
    /// Whether the text, or this stretch of it, may end here.
    pub may_end: bool,
}

impl Run<'_> {
    /// What may come at a configuration.
    pub(crate) fn next_of(&mut self, configuration: SetId) -> Result<Next, EngineError> {
        let mut next = Next { bytes: ByteSet::EMPTY, certain: ByteSet::EMPTY, may_end: false };
        let mut infinite = None;
        for index in 0..self.stacks.entries(configuration).len() {
            let thread = self.stacks.entries(configuration)[index];
            if thread == Entry::BOTTOM || offers_tokens(thread) {
                next.may_end = true;
                continue;
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            let whitespace = expansion.whitespace.filter(|_| thread.state & IN_WHITESPACE != 0);
            let state = if whitespace.is_some() { StateId::START.0 } else { thread.state };
            let whitespace = whitespace.filter(|_| expansion.whitespace_left(thread.state) != Some(0));
            let live = expansion.live_bytes(self.lexeme_cache, state)?;
            next.bytes = next.bytes.union(&live);
            // A thread is there because it can be completed. Only of keys and of elements that must be new it is not certain
            // which bytes do so.
            let is_certain = !expansion.additional && !self.compares_elements();
            if is_certain {
                next.certain = next.certain.union(&match &expansion.automaton {
                    Automaton::Dfa(_) => live,
                    Automaton::Names(names, filter) => names.bytes_of(filter, StateId(state), &live),
                });
            }
            if let Some(whitespace) = whitespace {
                next.bytes = next.bytes.union(&whitespace.set);
                next.certain = next.certain.union(&whitespace.set);
            }
            if expansion.additional && !expansion.locally_finite && !self.compares_elements() {
                infinite = Some((expansion, state));
            }
        }
        // Where infinitely many keys go on, one of them is new.
        if let Some((expansion, state)) = infinite.filter(|_| next.certain.is_empty()) {
            for byte in IN_KEYS.into_iter().filter(|&byte| next.bytes.contains(byte)) {
                let (after, accepts) = expansion.step(self.lexeme_cache, state, byte)?;
                if after != StateId::DEAD.0 && !accepts {
                    next.certain.insert(byte);
                }
            }
        }
        Ok(next)
    }
}
