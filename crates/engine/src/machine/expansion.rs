//! An expansion: what may come first at a frame, read by one automaton, and what follows it.

use std::sync::Arc;

use stencilm_grammar::{MembersId, NodeId};
use stencilm_regex::{ByteSet, ExprId, StateId, Tag};
use stencilm_support::{FEW, LimitExceeded, MANY, memory};

use crate::lexeme::cache::{DfaId, LexemeCache};
pub use crate::lexeme::whitespace::{IN_WHITESPACE, OptionalWhitespace};
use crate::machine::frame::{Continuation, ExpansionId, FrameId, Register};
use crate::machine::property_trie::{Filter, Names};

/// The automaton that reads the lexemes of an expansion.
#[derive(Clone)]
pub enum Automaton {
    /// An automaton in the lexeme cache, over all lexemes.
    Dfa(DfaId),
    /// A trie: the plainly spelled declared keys of an object that may come, or the few texts of a value.
    Names(Arc<Names>, Filter),
}

/// What follows the lexemes of an expansion.
#[derive(Clone)]
pub(crate) enum Continuations {
    /// By tag.
    Listed(Vec<Vec<Continuation>>),
    /// The declared members of this object: the tag is the number of the member.
    Known(MembersId),
}

/// Some of the lexemes that may come first at a frame.
#[derive(Clone)]
pub struct Expansion {
    /// The automaton over all of them.
    pub automaton: Automaton,
    /// Whitespace that may come before them.
    pub whitespace: Option<OptionalWhitespace>,
    pub(crate) continuations: Continuations,
    /// The single tokens that may come in place of a lexeme, each with its node and its continuation.
    pub tokens: Vec<(NodeId, Continuation)>,
    /// The parts with a budget or a temperature that may come in place of a lexeme: the frame of the part's body, and
    /// the frames below it, the last of which ends the part.
    pub opens: Vec<(FrameId, Continuation)>,
    /// Whether the frame may also match nothing.
    pub nullable: bool,
    /// Whether it reads the additional keys of an object. Their text must be remembered.
    pub additional: bool,
    /// Whether only finitely many additional keys begin with certain prefixes. Then a key that has begun may turn out
    /// to be a used one.
    pub locally_finite: bool,
    /// Whether the additional keys exclude some names.
    pub has_reserved: bool,
    /// The object whose key is read.
    pub members: Option<MembersId>,
    /// The class of the additional keys.
    pub class: u32,
    /// The frame that this expands.
    pub frame: FrameId,
    /// The next expansion of the same frame.
    pub also: Option<ExpansionId>,
}

/// Bytes of memory of a continuation.
fn in_continuation(continuation: &Continuation) -> usize {
    memory::of_slice::<(FrameId, Register)>(continuation.len())
}

impl Expansion {
    /// An expansion without whitespace, single tokens or marked parts.
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

    /// An expansion from which no byte can be read.
    pub fn nothing(frame: FrameId) -> Expansion {
        let automaton = Automaton::Names(Arc::new(Names::none()), Filter::Range { from: 1, to: 0 });
        Expansion::new(frame, automaton, Continuations::Listed(Vec::new()))
    }

    /// Whether there is any lexeme, and not only single tokens.
    pub fn has_lexemes(&self) -> bool {
        match &self.continuations {
            Continuations::Listed(continuations) => !continuations.is_empty(),
            Continuations::Known(_) => true,
        }
    }

    /// Approximate bytes of memory held.
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
        // The trie of an object's names is counted with the object.
        let texts = match &self.automaton {
            Automaton::Names(names, _) if self.members.is_none() => names.memory_bytes(),
            _ => 0,
        };
        memory::of_shared::<Expansion>(1) + continuations + texts + beside
    }

    /// How many whitespace bytes may still come in this state; `None` where there is no limit.
    pub fn whitespace_left(&self, state: u32) -> Option<u32> {
        let max = self.whitespace.and_then(|whitespace| whitespace.max)?;
        Some(max - (state & !IN_WHITESPACE))
    }

    /// The state in which a thread of this expansion starts.
    pub fn start(&self) -> u32 {
        if self.whitespace.is_some() { IN_WHITESPACE } else { StateId::START.0 }
    }

    /// The automaton in the lexeme cache, if it has one.
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

    /// The state after one byte, where whitespace may come first and the lexeme begins in `start`.
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

    /// The tags of the lexemes that are complete in this state.
    pub fn accepts<'a>(&'a self, lexeme_cache: &'a LexemeCache, state: u32) -> &'a [Tag] {
        match &self.automaton {
            _ if state & IN_WHITESPACE != 0 => &[],
            Automaton::Dfa(dfa) => lexeme_cache.accepts(*dfa, StateId(state)),
            Automaton::Names(names, _) => names.accepts(StateId(state)),
        }
    }

    /// Whether the lexemes that may still be read in a state are certainly few.
    pub fn has_few_lexemes(&self, lexeme_cache: &LexemeCache, state: StateId) -> bool {
        match &self.automaton {
            Automaton::Dfa(dfa) => lexeme_cache.residuals(*dfa, state).len() <= FEW,
            Automaton::Names(names, _) => names.size_after(state) <= MANY,
        }
    }

    /// The lexemes that may still be read in a state.
    pub fn lexemes(&self, lexeme_cache: &mut LexemeCache, state: StateId) -> Vec<(Tag, ExprId)> {
        match &self.automaton {
            Automaton::Dfa(dfa) => lexeme_cache.residuals(*dfa, state).to_vec(),
            Automaton::Names(names, filter) => {
                let rests = names.rests(filter, state).into_iter();
                rests.map(|(tag, rest)| (tag, lexeme_cache.deriver().exprs.literal(&rest))).collect()
            }
        }
    }

    /// The live bytes of a state after the whitespace; the set may be too large.
    pub fn live_bytes(&self, lexeme_cache: &mut LexemeCache, state: u32) -> Result<ByteSet, LimitExceeded> {
        match &self.automaton {
            Automaton::Dfa(dfa) => lexeme_cache.live_bytes(*dfa, StateId(state)).copied(),
            Automaton::Names(names, _) => Ok(names.next_bytes(StateId(state))),
        }
    }

    /// The live bytes of a state, where whitespace may come first and the lexeme begins in `start`; the set may be too
    /// large.
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
