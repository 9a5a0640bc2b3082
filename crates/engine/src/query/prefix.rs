//! Queries that do not change a matcher: how much of a text or of a list of tokens fits, what is forced, and why a
//! token may come or not.

use std::fmt;

use stencilm_regex::{ByteSet, StateId};

use crate::error::{EngineError, MatcherError};
use crate::machine::layout::ExpansionId;
use crate::matcher::GrammarMatcher;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};

/// The greatest length of a forced text in bytes. A grammar may force a billion of them.
pub const MAX_FORCED_BYTES: usize = 1 << 16;

/// The result for a text: see [`GrammarMatcher::longest_valid_prefix`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Whether the text fits.
    pub status: Status,
    /// The number of bytes that fit.
    pub valid_bytes: usize,
}

/// Whether a text fits its grammar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// All of it fits, and the text may end there.
    Complete,
    /// All of it fits, and more must follow.
    Viable,
    /// Some byte of it does not fit.
    Dead,
}

/// Why a token may come next or not. The `Display` form is a sentence without the token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Explanation {
    /// It may come.
    Allowed,
    /// Its id is outside of the vocabulary.
    OutOfRange {
        /// The number of ids.
        vocab_size: usize,
    },
    /// The sequence has ended.
    Terminated,
    /// It is a stop token, and the text is not complete.
    StopTooEarly(Expected),
    /// It stands for no text, and the grammar does not name it at this point.
    Special {
        /// Its name.
        name: String,
    },
    /// The id has no bytes.
    SpellsNothing,
    /// One of its bytes does not fit.
    Refused {
        /// The bytes that do fit.
        fits: Vec<u8>,
        /// The first byte that does not.
        byte: u8,
        /// What could come in its place.
        expected: Expected,
    },
}

/// What may come at some position of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// The bytes.
    pub bytes: ByteSet,
    /// Whether the text may end there.
    pub end: bool,
}

impl GrammarMatcher {
    /// The number of these tokens that could be accepted one after another. Nothing is changed.
    ///
    /// # Errors
    /// As [`GrammarMatcher::accept_token`].
    pub fn validate_tokens(&mut self, ids: impl IntoIterator<Item = u32>) -> Result<usize, MatcherError> {
        let before = self.num_accepted_tokens();
        let outcome = self.in_time(|matcher| {
            for id in ids {
                if !matcher.accept_token(id)? {
                    break;
                }
            }
            Ok(())
        });
        let accepted = self.num_accepted_tokens() - before;
        self.rollback(accepted)?;
        outcome.map(|()| accepted)
    }

    /// How much of a text fits after what was accepted, and whether it is then complete. Nothing is changed.
    ///
    /// # Errors
    /// As [`GrammarMatcher::accept_bytes`].
    pub fn longest_valid_prefix(&mut self, bytes: &[u8]) -> Result<Verdict, MatcherError> {
        if self.is_terminated() {
            let status = if bytes.is_empty() { Status::Complete } else { Status::Dead };
            return Ok(Verdict { status, valid_bytes: 0 });
        }
        self.probe(|run, start| {
            let mut configuration = start;
            for (valid_bytes, &byte) in bytes.iter().enumerate() {
                configuration = run.step(configuration, byte)?;
                if configuration == SetId::EMPTY {
                    return Ok(Verdict { status: Status::Dead, valid_bytes });
                }
            }
            let complete = run.stacks.has_bottom(configuration);
            let status = if complete { Status::Complete } else { Status::Viable };
            Ok(Verdict { status, valid_bytes: bytes.len() })
        })
    }

    /// The bytes that must come next: the longest text, up to [`MAX_FORCED_BYTES`], with which every continuation
    /// begins. Empty where the text may end.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when a limit is reached.
    pub fn forced_bytes(&mut self) -> Result<Vec<u8>, MatcherError> {
        if self.is_terminated() {
            return Ok(Vec::new());
        }
        self.probe(|run, start| {
            let mut forced = Vec::new();
            let mut configuration = start;
            while forced.len() < MAX_FORCED_BYTES {
                let Some((byte, next)) = run.only_byte(configuration)? else { break };
                forced.push(byte);
                configuration = next;
            }
            Ok(forced)
        })
    }

    /// The text that must come next: the complete characters of [`GrammarMatcher::forced_bytes`].
    ///
    /// # Errors
    /// As [`GrammarMatcher::forced_bytes`].
    pub fn forced_text(&mut self) -> Result<String, MatcherError> {
        let mut bytes = self.forced_bytes()?;
        if let Err(error) = std::str::from_utf8(&bytes) {
            bytes.truncate(error.valid_up_to());
        }
        Ok(String::from_utf8(bytes).expect("cut where it stops being UTF-8"))
    }

    /// Why a token may come next or not.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when a limit is reached.
    pub fn explain(&mut self, id: u32) -> Result<Explanation, MatcherError> {
        self.in_time(|matcher| matcher.explain_by_parts(id))
    }

    fn explain_by_parts(&mut self, id: u32) -> Result<Explanation, MatcherError> {
        let compiled = self.compiled().clone();
        let vocabulary = compiled.vocabulary();
        if id as usize >= vocabulary.vocab_size() {
            return Ok(Explanation::OutOfRange { vocab_size: vocabulary.vocab_size() });
        }
        if self.is_terminated() {
            return Ok(Explanation::Terminated);
        }
        if self.is_allowed(id)? {
            return Ok(Explanation::Allowed);
        }
        if self.stop_token_ids().contains(&id) {
            return self.probe(|run, start| Ok(Explanation::StopTooEarly(run.expected(start)?)));
        }
        let Some(bytes) = vocabulary.token_bytes(id) else {
            let special = vocabulary.special_tokens().iter().find(|(special, _)| *special == id);
            return Ok(match special {
                Some((_, name)) => Explanation::Special { name: name.clone() },
                None => Explanation::SpellsNothing,
            });
        };
        self.probe(|run, start| {
            let mut configuration = start;
            for (index, &byte) in bytes.iter().enumerate() {
                let next = run.step(configuration, byte)?;
                if next == SetId::EMPTY {
                    let expected = run.expected(configuration)?;
                    return Ok(Explanation::Refused { fits: bytes[..index].to_vec(), byte, expected });
                }
                configuration = next;
            }
            Ok(Explanation::Allowed)
        })
    }
}

impl Run<'_> {
    /// The bytes that are live in the automaton of some thread. Some of them may still be refused, because they would
    /// end a key that the object already has.
    pub(crate) fn possible_bytes(&mut self, configuration: SetId) -> Result<ByteSet, EngineError> {
        let mut possible = ByteSet::EMPTY;
        for index in 0..self.stacks.entries(configuration).len() {
            let thread = self.stacks.entries(configuration)[index];
            if thread == Entry::BOTTOM || offers_tokens(thread) {
                continue;
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            for byte in 0..=u8::MAX {
                if expansion.step(self.lexeme_cache, thread.state, byte)?.0 != StateId::DEAD.0 {
                    possible.insert(byte);
                }
            }
        }
        Ok(possible)
    }

    /// The byte that must come next, and the configuration after it; `None` where several bytes may come, or the text
    /// may end.
    fn only_byte(&mut self, configuration: SetId) -> Result<Option<(u8, SetId)>, EngineError> {
        if self.stacks.has_bottom(configuration)
            || self
                .stacks
                .entries(configuration)
                .iter()
                .any(|&thread| offers_tokens(thread) && !self.machine.is_remark(thread))
        {
            return Ok(None);
        }
        let mut only = None;
        for byte in self.possible_bytes(configuration)?.iter() {
            let next = self.step(configuration, byte)?;
            if next != SetId::EMPTY && only.replace((byte, next)).is_some() {
                return Ok(None);
            }
        }
        Ok(only)
    }

    fn expected(&mut self, configuration: SetId) -> Result<Expected, EngineError> {
        let mut bytes = ByteSet::EMPTY;
        for byte in self.possible_bytes(configuration)?.iter() {
            if self.survives(configuration, &[byte])? {
                bytes.insert(byte);
            }
        }
        Ok(Expected { bytes, end: self.stacks.has_bottom(configuration) })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Explanation::Allowed => write!(f, "may come next"),
            Explanation::OutOfRange { vocab_size } => {
                write!(f, "is outside of the vocabulary of {vocab_size} tokens")
            }
            Explanation::Terminated => write!(f, "cannot come any more: the sequence has terminated"),
            Explanation::StopTooEarly(expected) => {
                write!(f, "cannot come yet: the text is not complete, and goes on with {expected}")
            }
            Explanation::Special { name } => {
                write!(f, "is the special token {name}, which stands for no text and is not asked for here")
            }
            Explanation::SpellsNothing => write!(f, "spells no text"),
            Explanation::Refused { fits, byte, expected } => {
                let place = if fits.is_empty() { "here".to_owned() } else { format!("behind its {}", shown(fits)) };
                write!(f, "cannot come next: {place} comes {expected}, and not {}", shown(&[*byte]))
            }
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bytes.is_empty() {
            return write!(f, "only the end of the text");
        }
        match self.bytes.single() {
            Some(byte) => write!(f, "{}", shown(&[byte]))?,
            None => write!(f, "one of {}", class(&self.bytes))?,
        }
        if self.end { write!(f, " or the end of the text") } else { Ok(()) }
    }
}

/// Bytes in readable form: as quoted text where they are UTF-8.
pub fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{text:?}"),
        Err(_) => format!("b\"{}\"", bytes.escape_ascii()),
    }
}

/// A set of bytes as a class in brackets.
fn class(set: &ByteSet) -> String {
    let show = |byte: u8| match byte {
        b'\\' | b']' | b'[' | b'-' | b'^' => format!("\\{}", char::from(byte)),
        b'"' | b'\'' => char::from(byte).to_string(),
        _ => byte.escape_ascii().to_string(),
    };
    let bytes: Vec<u8> = set.iter().collect();
    let ranges = bytes.chunk_by(|&a, &b| u16::from(a) + 1 == u16::from(b)).map(|range| match *range {
        [only] => show(only),
        [first, last] => show(first) + &show(last),
        _ => format!("{}-{}", show(range[0]), show(range[range.len() - 1])),
    });
    format!("[{}]", ranges.collect::<String>())
}
