//! What may come at a configuration, computed from its threads alone, and where each byte leads: a memo for one
//! operation.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, StateId};
use stencilm_support::LOOKED_AT;

use crate::canonical::cursor::table::Text;
use crate::error::EngineError;
use crate::machine::expansion::{Automaton, IN_WHITESPACE};
use crate::machine::layout::ExpansionId;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};

/// Bytes of each kind of which keys are made. Only for these it is decided whether a byte that may come certainly does.
const IN_KEYS: [u8; 4] = *b"aA0_";

/// What may come at a configuration.
#[derive(Clone, Copy)]
pub(crate) struct Next {
    /// The bytes that may be live; the set may be too large.
    pub bytes: ByteSet,
    /// Those of them that certainly are live.
    pub certain: ByteSet,
    /// Whether the text, or the part of it that is read by itself, may end here.
    pub may_end: bool,
}

impl Run<'_> {
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
            // A thread exists only if it can be completed. Only for additional keys, and for elements that must be new,
            // it is not certain by which bytes.
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
        // If infinitely many keys continue so, one of them is new.
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

/// The tokens that can be read at a configuration.
#[derive(Clone)]
pub(crate) struct Listed {
    /// Each token, the configuration after it, and whether its path goes beyond the lexemes that are read at the start.
    pub tokens: Arc<[(u32, SetId, bool)]>,
    /// Whether any path does, including those that end within a token.
    pub some_beyond: bool,
}

/// The memo of one configuration.
#[derive(Default)]
pub(crate) struct Known {
    next: Option<Next>,
    /// The text that is forced there; the inner `None` says that there is none.
    pub forced: Option<Option<Text>>,
    /// The tokens that can be read there, if they are few.
    pub read: Option<Option<Listed>>,
}

/// The memos of configurations, for one operation.
#[derive(Default)]
pub(crate) struct Ahead {
    known: FxHashMap<SetId, Known>,
    steps: FxHashMap<(SetId, u8), SetId>,
}

impl Ahead {
    /// Forgets everything but keeps the allocated memory: most masks use this, and each only a little.
    pub fn begin(&mut self) {
        if self.steps.capacity() > LOOKED_AT {
            *self = Ahead::default();
        }
        self.known.clear();
        self.steps.clear();
    }

    /// The memo of a configuration.
    pub fn of(&mut self, configuration: SetId) -> &mut Known {
        self.known.entry(configuration).or_default()
    }

    /// What may come at a configuration.
    pub fn next(&mut self, run: &mut Run<'_>, configuration: SetId) -> Result<Next, EngineError> {
        let known = self.of(configuration);
        match known.next {
            Some(next) => Ok(next),
            None => Ok(*known.next.insert(run.next_of(configuration)?)),
        }
    }

    /// The configuration after a byte.
    pub fn step(&mut self, run: &mut Run<'_>, configuration: SetId, byte: u8) -> Result<SetId, EngineError> {
        if let Some(&known) = self.steps.get(&(configuration, byte)) {
            return Ok(known);
        }
        let next = run.step(configuration, byte)?;
        self.steps.insert((configuration, byte), next);
        Ok(next)
    }
}
