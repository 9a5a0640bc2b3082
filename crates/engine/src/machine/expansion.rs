//! An expansion: what may come first at a frame, read by one automaton, and what follows it.

use std::sync::Arc;

use stencilm_grammar::{MembersId, NodeId};
use stencilm_regex::{ByteSet, StateId, Tag};
use stencilm_support::{LimitExceeded, memory};

use crate::lexeme::cache::{DfaId, LexemeCache};
pub use crate::lexeme::whitespace::{IN_WHITESPACE, OptionalWhitespace};
use crate::machine::frame::{Continuation, ExpansionId, FrameId, Register};
use crate::machine::property_trie::{Filter, Names};

/// What reads the lexemes of an expansion.
#[derive(Clone)]
pub enum Automaton {
    /// All lexemes in one automaton of the lexeme cache.
    Dfa(DfaId),
    /// The plainly spelled declared keys of an object, as far as they may come, or the few texts of a value.
    Names(Arc<Names>, Filter),
}

/// What follows the lexemes of an expansion.
#[derive(Clone)]
pub(crate) enum Continuations {
    /// By tag.
    Listed(Vec<Vec<Continuation>>),
    /// A tag is a declared member of this object.
    Known(MembersId),
}

/// Some of the lexemes that may come first at a frame.
#[derive(Clone)]
pub struct Expansion {
    /// All of them in one automaton.
    pub automaton: Automaton,
    /// Whitespace that may come before them.
    pub whitespace: Option<OptionalWhitespace>,
    pub(crate) continuations: Continuations,
    /// Single tokens that may come in place of a lexeme: the token node and what follows it.
    pub tokens: Vec<(NodeId, Continuation)>,
    /// Parts with a budget or a temperature that may come in place of a lexeme: the frame of what is in it, and the frames
    /// below, of which the last is the end of the part.
    pub opens: Vec<(FrameId, Continuation)>,
    /// Whether the frame may also match nothing.
    pub nullable: bool,
    /// Whether it reads the additional keys of an object, whose text must be remembered.
    pub additional: bool,
    /// Whether the additional keys run out after some beginnings, so that a key that has begun may turn out not to be new.
    pub locally_finite: bool,
    /// Whether the object of the additional keys has names that they must not have.
    pub has_reserved: bool,
    /// The object whose key comes here.
    pub members: Option<MembersId>,
    /// The class of the additional keys.
    pub class: u32,
    /// The frame that it starts.
    pub frame: FrameId,
    /// The next expansion of the same frame.
    pub also: Option<ExpansionId>,
}

/// Bytes that a continuation holds.
fn in_continuation(continuation: &Continuation) -> usize {
    memory::of_slice::<(FrameId, Register)>(continuation.len())
}

impl Expansion {
    /// An expansion of some lexemes with nothing before or beside them.
    pub(crate) fn new(frame: FrameId, automaton: Automaton, continuations: Continuations) -> Expansion {
        Expansion {
            automaton,
            whitespace: None,
            continuations,
            tokens: Vec::new(),
            opens: Vec::new(),
            nullable: false,
            additional: false,
            locally_finite: false,
            has_reserved: false,
            members: None,
            class: 0,
            frame,
            also: None,
        }
    }

    /// An expansion from which nothing goes on.
    pub fn nothing(frame: FrameId) -> Expansion {
        let automaton = Automaton::Names(Arc::new(Names::none()), Filter::Range { from: 1, to: 0 });
        Expansion::new(frame, automaton, Continuations::Listed(Vec::new()))
    }

    /// Whether there is any lexeme, not only single tokens.
    pub fn has_lexemes(&self) -> bool {
        match &self.continuations {
            Continuations::Listed(continuations) => !continuations.is_empty(),
            Continuations::Known(_) => true,
        }
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let continuations = match &self.continuations {
            Continuations::Listed(continuations) => {
                let lists = continuations.iter().map(memory::of_list).sum::<usize>() + memory::of_list(continuations);
                lists + continuations.iter().flatten().map(in_continuation).sum::<usize>()
            }
            Continuations::Known(_) => 0,
        };
        let beside = self
            .tokens
            .iter()
            .map(|(_, continuation)| continuation)
            .chain(self.opens.iter().map(|(_, continuation)| continuation));
        let beside =
            beside.map(in_continuation).sum::<usize>() + memory::of_list(&self.tokens) + memory::of_list(&self.opens);
        // The names of an object are counted with it.
        let texts = match &self.automaton {
            Automaton::Names(names, _) if self.members.is_none() => names.memory_bytes(),
            _ => 0,
        };
        memory::of_shared::<Expansion>(1) + continuations + texts + beside
    }

    /// How many whitespace bytes may still come in this state; `None` without limit.
    pub fn whitespace_left(&self, state: u32) -> Option<u32> {
        let max = self.whitespace.and_then(|whitespace| whitespace.max)?;
        Some(max - (state & !IN_WHITESPACE))
    }

    /// The state of a thread that starts here.
    pub fn start(&self) -> u32 {
        if self.whitespace.is_some() { IN_WHITESPACE } else { StateId::START.0 }
    }

    /// The automaton in the lexeme cache, unless names are read.
    pub fn dfa(&self) -> Option<DfaId> {
        match self.automaton {
            Automaton::Dfa(dfa) => Some(dfa),
            Automaton::Names(..) => None,
        }
    }

    /// The state after one byte, and whether a lexeme is complete there.
    #[inline]
    pub fn step(&self, lexeme_cache: &mut LexemeCache, state: u32, byte: u8) -> Result<(u32, bool), LimitExceeded> {
        self.step_from(lexeme_cache, state, byte, StateId::START)
    }

    /// The state after one byte, where whitespace may be first and `start` is where the lexeme begins.
    #[inline]
    pub fn step_from(
        &self,
        lexeme_cache: &mut LexemeCache,
        state: u32,
        byte: u8,
        start: StateId,
    ) -> Result<(u32, bool), LimitExceeded> {
        let mut from = state;
        if state & IN_WHITESPACE != 0 {
            if let Some(whitespace) = self.whitespace.filter(|whitespace| whitespace.set.contains(byte)) {
                let next = match whitespace.max {
                    None => state,
                    Some(max) if state & !IN_WHITESPACE < max => state + 1,
                    Some(_) => StateId::DEAD.0,
                };
                return Ok((next, false));
            }
            from = start.0;
        }
        let (next, accepts) = match &self.automaton {
            Automaton::Dfa(dfa) => lexeme_cache.step(*dfa, StateId(from), byte)?,
            Automaton::Names(names, filter) => names.step(filter, StateId(from), byte),
        };
        Ok((next.0, accepts))
    }

    /// The lexemes that are complete in this state, by tag.
    pub fn accepts<'a>(&'a self, lexeme_cache: &'a LexemeCache, state: u32) -> &'a [Tag] {
        match &self.automaton {
            _ if state & IN_WHITESPACE != 0 => &[],
            Automaton::Dfa(dfa) => lexeme_cache.accepts(*dfa, StateId(state)),
            Automaton::Names(names, _) => names.accepts(StateId(state)),
        }
    }

    /// The live bytes of a state after the whitespace, perhaps some more.
    pub fn live_bytes(&self, lexeme_cache: &mut LexemeCache, state: u32) -> Result<ByteSet, LimitExceeded> {
        match &self.automaton {
            Automaton::Dfa(dfa) => lexeme_cache.live_bytes(*dfa, StateId(state)).copied(),
            Automaton::Names(names, _) => Ok(names.next_bytes(StateId(state))),
        }
    }

    /// The live bytes of a state, perhaps some more, where whitespace may be first and `start` is where the
    /// lexeme begins.
    pub fn bytes_from(
        &self,
        lexeme_cache: &mut LexemeCache,
        state: u32,
        start: StateId,
    ) -> Result<ByteSet, LimitExceeded> {
        match self.whitespace.filter(|_| state & IN_WHITESPACE != 0) {
            Some(whitespace) => Ok(self.live_bytes(lexeme_cache, start.0)?.union(&whitespace.set)),
            None => self.live_bytes(lexeme_cache, state),
        }
    }

    /// Whether any byte is live in a state in which a lexeme is complete.
    pub fn goes_on(&self, lexeme_cache: &mut LexemeCache, state: u32) -> Result<bool, LimitExceeded> {
        match &self.automaton {
            Automaton::Dfa(dfa) => lexeme_cache.goes_on(*dfa, StateId(state)),
            Automaton::Names(names, filter) => Ok(names.goes_on(filter, StateId(state))),
        }
    }
}
