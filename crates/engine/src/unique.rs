//! Arrays whose elements must differ: elements are compared when they end, and none is begun that could only be a repeat.
//!
//! All threads of a configuration have read the same bytes, so the text is kept once, as an entry of the configuration that
//! no byte and no token leads on from; an array remembers where in it the element under way began. When an element ends, its
//! canonical JSON text is looked for among those before it.
//!
//! A thread within an element stays only if some value that is not there yet can still be completed. Nearly always that is
//! plain to see: something *rich*, with endlessly many values, is still to come, as the body of a string or more members of
//! an open object. Else a completion is searched for, nearest first, until a new value or something rich is found.

use rustc_hash::FxHashSet;
use stencilm_grammar::{ItemsId, canonical_json};
use stencilm_regex::StateId;

use crate::error::EngineError;
use crate::machine::{ForkId, Frame, FrameId, Machine};
use crate::mask::Doubtful;
use crate::new_values::Goal;
use crate::run::{Run, UNKNOWN_TEXT, offers_tokens};
use crate::stacks::{Entry, ItemsState, NIL, SetId, Stacks};
use crate::tokens::Tokens;
use crate::tokenset;

/// With more allowed tokens than this, those within a string are told from the values seen.
const MANY_TOKENS: usize = 4_096;

/// Whether a text is within a JSON string.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Quoting {
    #[default]
    Outside,
    Within,
    /// Behind a backslash.
    Escape,
}

impl Quoting {
    pub(crate) fn after(self, byte: u8) -> Quoting {
        match (self, byte) {
            (Quoting::Outside, b'"') | (Quoting::Escape, _) => Quoting::Within,
            (Quoting::Within, b'"') => Quoting::Outside,
            (Quoting::Within, b'\\') => Quoting::Escape,
            (same, _) => same,
        }
    }
}

impl Machine {
    /// Whether the grammar has arrays whose elements must differ, so that the text is kept.
    #[inline]
    pub(crate) fn keeps_text(&self) -> bool {
        self.text_fork.is_some()
    }

    /// Whether an entry of a configuration is the text so far.
    #[inline]
    pub(crate) fn is_text(&self, thread: Entry) -> bool {
        self.text_fork.is_some_and(|fork| fork.0 == thread.head) && thread != Entry::BOTTOM
    }

    /// The array with unique elements that an element begins or ends at in a frame.
    pub(crate) fn unique_items(&self, frame: FrameId) -> Option<ItemsId> {
        match self.frame(frame) {
            Frame::Item(id) | Frame::AfterItem(id) if self.grammar.items(id).unique => Some(id),
            _ => None,
        }
    }
}

impl Run<'_> {
    /// Takes the text out of a configuration, to be gone on with.
    pub(crate) fn take_text(&mut self, threads: &mut Vec<Entry>) {
        self.text = None;
        if self.machine.keeps_text()
            && let Some(at) = threads.iter().position(|&thread| self.machine.is_text(thread))
        {
            self.text = Some(threads.remove(at).register);
        }
    }

    /// Puts the text back, if anything goes on.
    pub(crate) fn put_text(&mut self, threads: &mut Vec<Entry>) {
        if let (Some(text), Some(fork), false) = (self.text.take(), self.machine.text_fork, threads.is_empty()) {
            threads.push(Entry { head: fork.0, register: text, state: StateId::DEAD.0, below: SetId::EMPTY });
        }
    }

    /// The register of an array before the element that begins here.
    pub(crate) fn begin_element(&mut self, state: ItemsState) -> u32 {
        let start = if self.recording { self.text.unwrap_or(UNKNOWN_TEXT) } else { UNKNOWN_TEXT };
        self.stacks.intern_items(ItemsState { start, ..state })
    }

    /// What a frame behind an element becomes when the element ends here: the same frame with the element among those
    /// seen, or `None` where it was seen before. Other frames are `Some` of themselves.
    pub(crate) fn end_element(&mut self, frame: Entry) -> Result<Option<Entry>, EngineError> {
        let Some(id) = self.machine.unique_items(FrameId(frame.head)) else { return Ok(Some(frame)) };
        let state = self.stacks.items(frame.register);
        let Some(text) = self.text.filter(|_| self.recording && state.start != UNKNOWN_TEXT) else {
            // A first element is new, but there might be no other for the next place.
            let others = self.machine.grammar().items(id).prefix.is_empty()
                && self.is_frame_rich(FrameId(frame.head), frame.register)?;
            self.doubt.element |= state.seen != NIL || !others;
            let seen = self.stacks.append(state.seen, UNKNOWN_TEXT);
            let register = self.stacks.intern_items(ItemsState { seen, start: NIL, ..state });
            return Ok(Some(Entry { register, ..frame }));
        };
        let written = text_since(self.stacks, text, state.start);
        let value = self.stacks.intern_text(&canonical_json(&written));
        if self.stacks.list(state.seen).any(|seen| seen == value) {
            return Ok(None);
        }
        let seen = self.stacks.append(state.seen, value);
        let register = self.stacks.intern_items(ItemsState { seen, start: NIL, ..state });
        Ok(Some(Entry { register, ..frame }))
    }

    /// Whether a frame waits for the end of an element that must be new.
    pub(crate) fn ends_unique_element(&self, frame: Entry) -> bool {
        matches!(self.machine.frame(FrameId(frame.head)), Frame::AfterItem(id) if self.machine.grammar().items(id).unique)
    }

    /// Drops the threads that can only repeat an element.
    pub(crate) fn drop_repeats(&mut self, threads: &mut Vec<Entry>) -> Result<(), EngineError> {
        let Some(text) = self.text.filter(|_| self.recording) else { return Ok(()) };
        let mut pending = Vec::new();
        for &thread in threads.iter() {
            self.pending(thread, &mut pending);
        }
        if pending.is_empty() || self.is_new_string(text, &pending) {
            return Ok(());
        }
        let mut kept = Vec::with_capacity(threads.len());
        for &thread in threads.iter() {
            if self.is_safe(thread)? || self.search(&[thread], text, Goal::Safe)? {
                kept.push(thread);
            }
        }
        *threads = kept;
        Ok(())
    }

    /// The arrays with elements seen within an element of which a thread is, or between them.
    pub(crate) fn pending(&mut self, thread: Entry, pending: &mut Vec<ItemsState>) {
        let mut arrays = Vec::new();
        self.unique_arrays(thread, &mut arrays);
        for (_, register) in arrays {
            let state = self.stacks.items(register);
            if state.seen != NIL && !pending.contains(&state) {
                pending.push(state);
            }
        }
    }

    /// The frames and registers of all arrays with unique elements that a thread is in.
    fn unique_arrays(&mut self, thread: Entry, arrays: &mut Vec<(FrameId, u32)>) {
        if thread == Entry::BOTTOM || offers_tokens(thread) {
            return;
        }
        let own = self.machine.fork(ForkId(thread.head)).frame;
        let mut add = |run: &Run<'_>, frame: FrameId, register: u32| {
            if run.machine.unique_items(frame).is_some() && !arrays.contains(&(frame, register)) {
                arrays.push((frame, register));
            }
        };
        add(self, own, thread.register);
        let (mut work, mut seen) = (vec![thread.below], FxHashSet::default());
        while let Some(set) = work.pop() {
            if !seen.insert(set) {
                continue;
            }
            self.stacks.look_at(set);
            for index in 0..self.stacks.entries(set).len() {
                let frame = self.stacks.entries(set)[index];
                if frame != Entry::BOTTOM {
                    add(self, FrameId(frame.head), frame.register);
                    work.push(frame.below);
                }
            }
        }
    }

    /// Whether the text is within a plainly written string that no element seen before has at any place, so far as it is
    /// written: then whatever comes of it is new.
    fn is_new_string(&mut self, text: u32, pending: &[ItemsState]) -> bool {
        let Some(string) = self.open_string(text, pending) else { return false };
        !pending.iter().any(|state| self.occurrences(state, &string).next().is_some())
    }

    /// The open string at the end of the text, from its quote on; `None` outside of strings, and where it has escapes.
    fn open_string(&mut self, text: u32, pending: &[ItemsState]) -> Option<Vec<u8>> {
        let start = pending.iter().map(|state| state.start).find(|&start| start != NIL && start != UNKNOWN_TEXT)?;
        let written = text_since(self.stacks, text, start);
        let (mut string, mut from) = (Quoting::Outside, 0);
        for (at, &byte) in written.iter().enumerate() {
            if string == Quoting::Outside {
                from = at;
            }
            string = string.after(byte);
        }
        let open = &written[from.min(written.len())..];
        (string == Quoting::Within && !open.contains(&b'\\')).then(|| open.to_vec())
    }

    /// What follows a part wherever it stands in an element seen.
    fn occurrences<'s>(&'s self, state: &ItemsState, part: &'s [u8]) -> impl Iterator<Item = Vec<u8>> + 's {
        let seen: Vec<u32> = self.stacks.list(state.seen).filter(|&seen| seen != UNKNOWN_TEXT).collect();
        seen.into_iter().flat_map(move |seen| {
            let value = self.stacks.text(seen);
            let places = (0..value.len()).filter(|&at| value[at..].starts_with(part));
            places.map(|at| value[at + part.len()..].to_vec()).collect::<Vec<_>>()
        })
    }

    /// What tells tokens that surely end no known element; `None` where the text is not within a plainly written string, or
    /// an element that begins might have no new value.
    pub(crate) fn strings_seen(&mut self, configuration: SetId) -> Result<Option<StringsSeen>, EngineError> {
        let mut threads = self.stacks.entries(configuration).to_vec();
        self.take_text(&mut threads);
        let Some(text) = self.text.take() else { return Ok(None) };
        let mut arrays = Vec::new();
        for &thread in &threads {
            self.unique_arrays(thread, &mut arrays);
        }
        let states: Vec<ItemsState> = arrays.iter().map(|&(_, register)| self.stacks.items(register)).collect();
        let Some(open) = self.open_string(text, &states) else { return Ok(None) };
        for (frame, register) in arrays {
            if !self.is_frame_rich(frame, register)? {
                return Ok(None);
            }
        }
        let seen = states.iter().flat_map(|state| self.stacks.list(state.seen));
        let values = seen.filter(|&seen| seen != UNKNOWN_TEXT).map(|seen| self.stacks.text(seen)).collect();
        Ok(Some(StringsSeen { open, values }))
    }

    /// The allowed tokens that may only be allowed because every element was taken for a new one: to be read for real.
    pub(crate) fn tokens_of_seen_elements(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        mask: &[u32],
        tokens: &mut Vec<Doubtful>,
    ) -> Result<(), EngineError> {
        let mut threads = self.stacks.entries(configuration).to_vec();
        self.take_text(&mut threads);
        let Some(text) = self.text.take() else { return Ok(()) };
        let mut pending = Vec::new();
        for &thread in &threads {
            self.pending(thread, &mut pending);
        }
        if pending.is_empty() || self.is_new_string(text, &pending) {
            return Ok(());
        }
        let allowed = || (0..vocabulary.vocab_size() as u32).filter(|&token| tokenset::get(mask, token));
        let readable = |token: &u32| vocabulary.token_bytes(*token).is_some();
        let open = self.open_string(text, &pending).filter(|_| allowed().nth(MANY_TOKENS).is_some());
        let Some(open) = open else {
            tokens.extend(allowed().filter(readable).map(Doubtful::element));
            return Ok(());
        };
        // Within a string: what ends it or has an escape, and what a value seen goes on with.
        let ends = |token: &u32| {
            vocabulary.token_bytes(*token).is_some_and(|bytes| bytes.iter().any(|byte| b"\"\\".contains(byte)))
        };
        tokens.extend(allowed().filter(ends).map(Doubtful::element));
        let trie = vocabulary.trie();
        for state in &pending {
            for rest in self.occurrences(state, &open) {
                for length in 1..=rest.len() {
                    let Some(node) = trie.find(&rest[..length]) else { break };
                    let token = trie.entry_at(node);
                    tokens.extend(token.filter(|&token| tokenset::get(mask, token)).map(Doubtful::element));
                }
            }
        }
        Ok(())
    }
}

/// The strings in elements seen before, and the one that is open.
pub(crate) struct StringsSeen {
    /// The open string, from its quote on.
    open: Vec<u8>,
    /// The canonical texts of the elements.
    values: Vec<Vec<u8>>,
}

impl StringsSeen {
    /// Whether every element that goes on with these bytes, or begins in them, surely is a new one: it has a string that no
    /// element has that was seen, and no two of them have the same.
    pub fn are_not_in(&self, bytes: &[u8]) -> bool {
        if bytes.contains(&b'\\') {
            return false;
        }
        let mut strings: Vec<Vec<u8>> = Vec::new();
        let mut parts = bytes.split(|&byte| byte == b'"').enumerate().peekable();
        while let Some((at, part)) = parts.next() {
            if at % 2 == 1 {
                // Between strings an element may end that has one, and another may begin, but none lies there as a whole.
                if !part.iter().all(|byte| b",:]} \t\r\n".contains(byte)) {
                    return false;
                }
                continue;
            }
            let mut string = if at == 0 { self.open.clone() } else { b"\"".to_vec() };
            string.extend_from_slice(part);
            if parts.peek().is_some() {
                string.push(b'"');
            }
            let is_in = |text: &Vec<u8>| text.windows(string.len()).any(|window| window == string);
            if self.values.iter().any(is_in) || strings.iter().any(is_in) {
                return false;
            }
            strings.push(string);
        }
        true
    }
}

/// What was read since the text was `start`.
pub(crate) fn text_since(stacks: &Stacks, text: u32, start: u32) -> Vec<u8> {
    let mut bytes = stacks.since(text, start);
    bytes.reverse();
    bytes
}
