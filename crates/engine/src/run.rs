//! One operation of a matcher: the shared machine and lexicon and the matcher's own memory, all in hand.
//!
//! A configuration is the set of all threads that are still alive. It is *closed*: where a lexeme has matched, the
//! lexemes that may follow are in the configuration too, and the end of the text is a thread of its own
//! ([`Entry::BOTTOM`]). So one byte is one step of every thread, and nothing else.

use std::sync::Arc;

use stencilm_regex::StateId;

use crate::error::EngineError;
use crate::json_text;
use crate::lexicon::Lexicon;
use crate::machine::{Continuation, Fork, ForkId, FrameId, Machine, Register};
use crate::stacks::{Entry, MembersState, NIL, SetId, Stacks};

/// So many bytes the stacks of one matcher may hold.
const MAX_STACK_BYTES: usize = 256 << 20;

/// Why it may have been wrong to take a key for a new one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Doubt {
    /// Its object has seen free keys.
    pub seen: bool,
    /// Some names are not free: wrong if the key was written with escapes, else the automaton knows.
    pub taken: bool,
}

/// A key that was not recorded.
const UNKNOWN_TEXT: u32 = u32::MAX;

/// Everything that one operation works on.
pub(crate) struct Run<'a> {
    pub machine: &'a mut Machine,
    pub lexicon: &'a mut Lexicon,
    pub stacks: &'a mut Stacks,
    /// Whether free keys are recorded byte by byte and compared with those seen. A mask does without: it takes every
    /// key for a new one, and notes in `doubt` where that may be wrong.
    pub recording: bool,
    /// Set when a key was taken for a new one.
    pub doubt: Doubt,
    /// Room for the threads of a step.
    pub scratch: Vec<Entry>,
}

/// Where a walk is: nearly always at one thread, which needs no set of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    One(Entry),
    Many(SetId),
}

/// Whether a thread stands for the single tokens that may come at its fork.
pub(crate) fn offers_tokens(thread: Entry) -> bool {
    thread.state == StateId::DEAD.0 && thread != Entry::BOTTOM
}

/// The automaton state of a thread.
pub(crate) fn state_of(thread: Entry) -> StateId {
    StateId(thread.state)
}

impl Run<'_> {
    /// The configuration before the first byte.
    pub fn initial(&mut self) -> Result<SetId, EngineError> {
        self.initial_at(Machine::ROOT)
    }

    /// The configuration before the first byte of a part that stands alone.
    pub fn initial_at(&mut self, frame: FrameId) -> Result<SetId, EngineError> {
        let stack = self.stacks.push(frame.0, 0, SetId::BOTTOM);
        let mut threads = Vec::new();
        self.start(stack, &mut threads)?;
        Ok(self.stacks.configuration(&mut threads))
    }

    /// Adds the threads that start at a stack: its frames, and what lies below those that may match nothing.
    fn start(&mut self, stack: SetId, threads: &mut Vec<Entry>) -> Result<(), EngineError> {
        let mut work = vec![stack];
        let mut done = 0;
        while done < work.len() {
            let set = work[done];
            done += 1;
            self.stacks.look_at(set);
            for index in 0..self.stacks.entries(set).len() {
                let frame = self.stacks.entries(set)[index];
                if frame == Entry::BOTTOM {
                    threads.push(frame);
                    continue;
                }
                let stacks = &*self.stacks;
                let phase = self.machine.phase(FrameId(frame.head), frame.register, |register| {
                    let state = stacks.members(register);
                    (state.next, state.known)
                });
                let fork = self.machine.fork_of(self.lexicon, FrameId(frame.head), phase)?;
                let thread =
                    Entry { head: fork.0, register: frame.register, state: StateId::START.0, below: frame.below };
                let fork = self.machine.fork(fork);
                if !fork.continuations.is_empty() {
                    threads.push(thread);
                }
                // Stands for "a single token may come here": no byte leads on from the dead state.
                if !fork.tokens.is_empty() {
                    threads.push(Entry { state: StateId::DEAD.0, ..thread });
                }
                if fork.nullable && !work.contains(&frame.below) {
                    work.push(frame.below);
                }
            }
        }
        if self.stacks.memory_bytes() > MAX_STACK_BYTES {
            return Err(EngineError::StacksFull(MAX_STACK_BYTES));
        }
        Ok(())
    }

    /// A configuration with the same mask, common to all that differ only in counts far from their bounds.
    pub fn saturated(&mut self, configuration: SetId) -> Result<SetId, EngineError> {
        let mut threads = std::mem::take(&mut self.scratch);
        threads.clear();
        threads.extend_from_slice(self.stacks.entries(configuration));
        let mut changed = false;
        for thread in &mut threads {
            if *thread != Entry::BOTTOM && !offers_tokens(*thread) {
                let dfa = self.machine.fork(ForkId(thread.head)).dfa;
                let state = self.lexicon.saturated(dfa, state_of(*thread))?;
                changed |= state != state_of(*thread);
                thread.state = state.0;
            }
        }
        let saturated = if changed { self.stacks.configuration(&mut threads) } else { configuration };
        self.scratch = threads;
        Ok(saturated)
    }

    /// The configuration after one byte; [`SetId::EMPTY`] where nothing can go on.
    pub fn step(&mut self, configuration: SetId, byte: u8) -> Result<SetId, EngineError> {
        let mut threads = std::mem::take(&mut self.scratch);
        threads.clear();
        for index in 0..self.stacks.entries(configuration).len() {
            let thread = self.stacks.entries(configuration)[index];
            self.step_thread(thread, byte, &mut threads)?;
        }
        let next = self.stacks.configuration(&mut threads);
        self.scratch = threads;
        Ok(next)
    }

    /// The place after one byte, `None` where nothing can go on.
    #[inline]
    pub fn step_place(&mut self, place: Place, byte: u8) -> Result<Option<Place>, EngineError> {
        match place {
            Place::One(thread) => {
                if thread == Entry::BOTTOM {
                    return Ok(None);
                }
                let fork = self.machine.fork(ForkId(thread.head));
                let (dfa, records) = (fork.dfa, self.recording && fork.free_tag.is_some());
                let next = self.lexicon.next(dfa, state_of(thread), byte)?;
                if next == StateId::DEAD {
                    return Ok(None);
                }
                if !records && self.lexicon.accepts(dfa, next).is_empty() {
                    return Ok(Some(Place::One(Entry { state: next.0, ..thread })));
                }
                let mut threads = std::mem::take(&mut self.scratch);
                threads.clear();
                self.step_thread(thread, byte, &mut threads)?;
                let place = self.place(&mut threads);
                self.scratch = threads;
                Ok(place)
            }
            Place::Many(configuration) => {
                let mut threads = std::mem::take(&mut self.scratch);
                threads.clear();
                for index in 0..self.stacks.entries(configuration).len() {
                    let thread = self.stacks.entries(configuration)[index];
                    self.step_thread(thread, byte, &mut threads)?;
                }
                let place = self.place(&mut threads);
                self.scratch = threads;
                Ok(place)
            }
        }
    }

    /// Whether a single token that the grammar asks for may be this one.
    pub fn has_token_edge(&self, configuration: SetId, id: u32) -> bool {
        let machine = &*self.machine;
        machine.tokens.any()
            && self.stacks.entries(configuration).iter().any(|&thread| {
                offers_tokens(thread)
                    && machine
                        .fork(ForkId(thread.head))
                        .tokens
                        .iter()
                        .any(|&(node, _)| machine.tokens.ids(node).contains(id))
            })
    }

    /// The configuration after a token: where the grammar asks for a single token and this is one, or where it goes on
    /// with the bytes that the token spells. A token that spells none is one step all the same.
    pub fn step_token(&mut self, configuration: SetId, id: u32, bytes: Option<&[u8]>) -> Result<SetId, EngineError> {
        let spelled = match bytes {
            Some(bytes) => self.run(configuration, bytes)?,
            None => SetId::EMPTY,
        };
        let mut threads = self.stacks.entries(spelled).to_vec();
        for thread in self.stacks.entries(configuration).to_vec() {
            if !offers_tokens(thread) {
                continue;
            }
            let fork = self.machine.fork(ForkId(thread.head)).clone();
            for (node, continuation) in &fork.tokens {
                if self.machine.tokens.ids(*node).contains(id)
                    && let Some(stack) = self.push(&fork, continuation, thread)
                {
                    self.start(stack, &mut threads)?;
                }
            }
        }
        Ok(self.stacks.configuration(&mut threads))
    }

    /// The place of these threads.
    pub fn place(&mut self, threads: &mut Vec<Entry>) -> Option<Place> {
        match threads[..] {
            [] => None,
            [thread] => Some(Place::One(thread)),
            _ => Some(Place::Many(self.stacks.configuration(threads))),
        }
    }

    /// Adds what one thread becomes after one byte.
    fn step_thread(&mut self, thread: Entry, byte: u8, threads: &mut Vec<Entry>) -> Result<(), EngineError> {
        if thread == Entry::BOTTOM {
            return Ok(());
        }
        let fork = ForkId(thread.head);
        let dfa = self.machine.fork(fork).dfa;
        let next = self.lexicon.next(dfa, state_of(thread), byte)?;
        if next == StateId::DEAD {
            return Ok(());
        }
        let mut moved = Entry { state: next.0, ..thread };
        if self.recording
            && let Some(free) = self.machine.fork(fork).free_tag
        {
            let alive = self.lexicon.residuals(dfa, next).iter().any(|&(tag, _)| tag == free);
            let old = self.stacks.members(thread.register);
            let text = if alive { self.stacks.append(old.text, u32::from(byte)) } else { NIL };
            moved.register = self.stacks.intern_members(MembersState { text, ..old });
        }
        if self.lexicon.accepts(dfa, next).is_empty() {
            threads.push(moved);
            return Ok(());
        }
        if self.lexicon.goes_on(dfa, next)? {
            threads.push(moved);
        }
        let fork = self.machine.fork(fork).clone();
        let accepts = self.lexicon.accepts(dfa, next);
        let taken = fork.taken_tag.is_some_and(|taken| accepts.contains(&taken));
        for index in 0..accepts.len() {
            let tag = self.lexicon.accepts(dfa, next)[index];
            if taken && Some(tag) == fork.free_tag {
                continue;
            }
            self.follow(&fork, tag, moved, threads)?;
        }
        Ok(())
    }

    /// Adds the threads that go on behind a lexeme which has matched.
    pub fn follow(
        &mut self,
        fork: &Arc<Fork>,
        tag: u32,
        thread: Entry,
        threads: &mut Vec<Entry>,
    ) -> Result<(), EngineError> {
        for continuation in &fork.continuations[tag as usize] {
            if let Some(stack) = self.push(fork, continuation, thread) {
                self.start(stack, threads)?;
            }
        }
        Ok(())
    }

    /// The stack with the frames of a continuation on top; `None` where a key would come a second time.
    pub(crate) fn push(&mut self, fork: &Fork, continuation: &Continuation, thread: Entry) -> Option<SetId> {
        let mut stack = thread.below;
        for &(frame, register) in continuation {
            let value = match register {
                Register::Value(value) => value,
                Register::Same => thread.register,
                Register::CountUp { limit } => thread.register.saturating_add(1).min(limit),
                Register::Known(member) => {
                    let old = self.stacks.members(thread.register);
                    let state = if fork.any_order {
                        MembersState { known: self.machine.known_with(old.known, member), text: NIL, ..old }
                    } else {
                        MembersState { next: member + 1, text: NIL, ..old }
                    };
                    self.stacks.intern_members(state)
                }
                Register::Free => {
                    let old = self.stacks.members(thread.register);
                    let key = if self.recording {
                        let written = self.stacks.text(old.text);
                        let value = json_text::value_of(&written);
                        let key = self.stacks.intern_text(&value);
                        let taken = fork.members.is_some_and(|members| self.machine.is_taken(members, &value));
                        if taken || self.stacks.list(old.seen).any(|seen| seen == key) {
                            return None;
                        }
                        key
                    } else {
                        self.doubt.seen |= old.seen != NIL;
                        self.doubt.taken |= fork.taken_tag.is_some();
                        UNKNOWN_TEXT
                    };
                    let seen = self.stacks.append(old.seen, key);
                    let next = if fork.any_order { old.next } else { fork.known_count };
                    self.stacks.intern_members(MembersState { next, seen, text: NIL, ..old })
                }
            };
            if let Some(absorbed) = self.machine.absorbed(frame) {
                stack = self.stacks.without(absorbed.0, stack);
            }
            stack = self.stacks.push(frame.0, value, stack);
        }
        Some(stack)
    }

    /// The configuration after several bytes.
    pub fn run(&mut self, mut configuration: SetId, bytes: &[u8]) -> Result<SetId, EngineError> {
        for &byte in bytes {
            if configuration == SetId::EMPTY {
                break;
            }
            configuration = self.step(configuration, byte)?;
        }
        Ok(configuration)
    }

    /// Whether anything can follow these bytes: as [`Run::run`], without making a set for every step.
    pub fn survives(&mut self, place: Place, bytes: &[u8]) -> Result<bool, EngineError> {
        let mut place = place;
        for &byte in bytes {
            match self.step_place(place, byte)? {
                Some(next) => place = next,
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}
