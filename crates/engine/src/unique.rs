//! Arrays whose elements must differ: elements are compared when they end, and none is begun that could only be a repeat.
//!
//! All threads of a configuration have read the same bytes, so the text is kept once, as an entry of the configuration that
//! no byte and no token leads on from; an array remembers where in it the element under way began. When an element ends, its
//! canonical JSON text is looked for among those before it.
//!
//! A thread within an element stays only if some value that is not there yet can still be completed. Nearly always that is
//! plain to see: something *rich*, with endlessly many values, is still to come, as the body of a string or more members of
//! an open object. Else a completion is searched for, nearest first, until a new value or something rich is found.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_grammar::{ItemsId, Node, NodeId, canonical_json};
use stencilm_regex::{ByteSet, Deriver, ExprId, LimitExceeded, StateId};

use crate::error::EngineError;
use crate::fork::IN_BLANKS;
use crate::machine::{ForkId, Frame, FrameId, Machine};
use crate::mask::Doubtful;
use crate::run::{Run, UNKNOWN_TEXT, offers_tokens};
use crate::stacks::{Entry, ItemsState, NIL, SetId, Stacks};
use crate::tokens::Tokens;
use crate::tokenset;

/// Most steps of one search for a new value.
const MAX_SEARCH: usize = 20_000;

/// Most residuals of a lexeme that are looked at to tell whether it is rich.
const MAX_RESIDUALS: usize = 400;

/// So many zeros in a row are tried in a number, and so many of its characters looked at.
const MAX_ZEROS: usize = 24;

/// With more allowed tokens than this, those within a string are told from the values seen.
const MANY_TOKENS: usize = 4_096;

/// Bytes whose repetition need not give ever new values: of numbers, of blanks, of escapes, and of whole containers.
const POOR_BYTES: &[u8] = b"0123456789+-.eE \t\r\n\\{}[],:";

/// What a search looks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// A thread of which something new can surely be made.
    Safe,
    /// The end of the text.
    End,
}

/// A place in a search: threads, the text so far, and the bytes to try, the best one last.
struct Level {
    threads: Vec<Entry>,
    text: u32,
    bytes: Vec<u8>,
    string: Quoting,
}

/// Whether a text is within a JSON string.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Quoting {
    #[default]
    Outside,
    Within,
    /// Behind a backslash.
    Escape,
}

impl Quoting {
    fn after(self, byte: u8) -> Quoting {
        match (self, byte) {
            (Quoting::Outside, b'"') | (Quoting::Escape, _) => Quoting::Within,
            (Quoting::Within, b'"') => Quoting::Outside,
            (Quoting::Within, b'\\') => Quoting::Escape,
            (same, _) => same,
        }
    }
}

/// Which lexemes and nodes are rich, as far as is known.
#[derive(Default)]
pub(crate) struct Richness {
    lexemes: FxHashMap<ExprId, bool>,
    nodes: FxHashMap<NodeId, bool>,
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
    fn unique_items(&self, frame: FrameId) -> Option<ItemsId> {
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
    fn pending(&mut self, thread: Entry, pending: &mut Vec<ItemsState>) {
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

    /// Whether endlessly many values of every element that a thread is within can surely still be completed.
    fn is_safe(&mut self, thread: Entry) -> Result<bool, EngineError> {
        if thread == Entry::BOTTOM {
            return Ok(true);
        }
        if self.machine.is_remark(thread) {
            return Ok(true);
        }
        if offers_tokens(thread) {
            return Ok(false);
        }
        let fork = self.machine.fork(ForkId(thread.head)).clone();
        let begins = thread.state & IN_BLANKS != 0 || thread.state == StateId::START.0;
        let mut rich = begins && self.is_frame_rich(fork.frame, thread.register)?;
        if let (Some(dfa), false) = (fork.dfa(), rich) {
            let state = if begins { StateId::START } else { StateId(thread.state) };
            for (_, residual) in self.lexicon.residuals(dfa, state).to_vec() {
                rich |= self.is_lexeme_rich(residual)?;
            }
        }
        // Before its first element nothing is seen, so what is to come is new.
        if !rich
            && self.is_pending(fork.frame, thread.register)
            && matches!(self.machine.frame(fork.frame), Frame::Item(_))
        {
            return Ok(false);
        }
        let mut work = vec![(thread.below, rich)];
        let mut seen = FxHashSet::default();
        while let Some((set, rich)) = work.pop() {
            if !seen.insert((set, rich)) {
                continue;
            }
            for index in 0..self.stacks.entries(set).len() {
                let frame = self.stacks.entries(set)[index];
                if frame == Entry::BOTTOM {
                    return Ok(true);
                }
                let id = FrameId(frame.head);
                let pending = self.is_pending(id, frame.register);
                if rich || !pending {
                    // What an array with unique elements may have next is no part of the element that ends.
                    let richer = rich || self.is_frame_rich(id, frame.register)?;
                    work.push((frame.below, richer));
                }
            }
        }
        Ok(false)
    }

    fn is_pending(&self, frame: FrameId, register: u32) -> bool {
        self.machine.unique_items(frame).is_some() && self.stacks.items(register).seen != NIL
    }

    /// Whether what waits at a frame surely holds something rich, if one wants it to.
    fn is_frame_rich(&mut self, frame: FrameId, register: u32) -> Result<bool, EngineError> {
        let grammar = self.machine.grammar().clone();
        let nodes: Vec<NodeId> = match self.machine.frame(frame) {
            Frame::Node(node) => match *grammar.node(node) {
                Node::Repeat { max: Some(max), .. } if register >= max => Vec::new(),
                _ => vec![node],
            },
            Frame::Rest { node, from } => match grammar.node(node) {
                Node::Sequence(parts) => parts[from as usize..].to_vec(),
                _ => Vec::new(),
            },
            Frame::Member { value, .. } => vec![value],
            Frame::Lexeme(expr) => {
                let lexeme = self.machine.lexeme(self.lexicon, expr);
                return self.is_lexeme_rich(lexeme);
            }
            Frame::Key(id) | Frame::AfterValue(id) => {
                let members = grammar.members(id);
                let state = self.stacks.members(register);
                if members.max.is_some() {
                    return Ok(false);
                }
                if !members.free.is_empty() {
                    return Ok(true);
                }
                let seen = self.machine.known_set(state.known);
                let comes = |index: usize| {
                    let is_seen = seen.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0);
                    if index < members.ordered { index >= state.next as usize } else { !is_seen }
                };
                let left = members.known.iter().enumerate().filter(|&(index, _)| comes(index));
                // Where enough members must be left, which of them may be left out is not looked at.
                if members.min > 0 { Vec::new() } else { left.map(|(_, known)| known.value).collect() }
            }
            Frame::Item(id) | Frame::AfterItem(id) => {
                let items = grammar.items(id);
                let place = self.stacks.items(register).place;
                if !items.contains.is_empty() || items.max.is_some_and(|max| place >= max) {
                    return Ok(false);
                }
                items.at(place as usize).iter().map(|element| element.value).collect()
            }
            Frame::Left { .. } | Frame::End(_) | Frame::Text | Frame::Spaced { .. } => Vec::new(),
        };
        for node in nodes {
            if self.is_node_rich(node)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether something rich can be part of a node.
    fn is_node_rich(&mut self, root: NodeId) -> Result<bool, EngineError> {
        if let Some(&known) = self.machine.richness.nodes.get(&root) {
            return Ok(known);
        }
        let grammar = self.machine.grammar().clone();
        let (mut work, mut seen) = (vec![root], FxHashSet::default());
        let mut rich = false;
        while let Some(id) = work.pop() {
            if rich || !seen.insert(id) {
                continue;
            }
            match self.machine.richness.nodes.get(&id) {
                Some(true) => rich = true,
                Some(false) => continue,
                None => {}
            }
            match grammar.node(id) {
                Node::Lexeme(expr) => {
                    let lexeme = self.machine.lexeme(self.lexicon, *expr);
                    rich |= self.is_lexeme_rich(lexeme)?;
                }
                Node::Sequence(parts) | Node::Choice(parts) => work.extend(parts),
                Node::Repeat { max: Some(0), .. } | Node::Token(_) => {}
                Node::Repeat { body, .. } | Node::Marked { body, .. } => work.push(*body),
                Node::Rule(rule) => work.push(grammar.rule(*rule).body),
                Node::Members(id) => {
                    let members = grammar.members(*id);
                    rich |= members.max.is_none() && !members.free.is_empty();
                    if members.min == 0 && members.max.is_none() {
                        work.extend(members.known.iter().map(|known| known.value));
                    } else {
                        work.extend(members.known.iter().filter(|known| known.required).map(|known| known.value));
                    }
                }
                Node::Items(id) => {
                    let items = grammar.items(*id);
                    // The first element may be any of its place, unless elements are counted.
                    if items.contains.is_empty() && items.max != Some(0) {
                        work.extend(items.at(0).iter().map(|element| element.value));
                    }
                }
            }
        }
        if !rich {
            self.machine.richness.nodes.extend(seen.into_iter().map(|node| (node, false)));
        }
        self.machine.richness.nodes.insert(root, rich);
        Ok(rich)
    }

    /// Whether endlessly many texts go on, each with another value: whether some bytes can be repeated that are part of
    /// neither numbers, blanks nor escapes.
    fn is_lexeme_rich(&mut self, residual: ExprId) -> Result<bool, EngineError> {
        if let Some(&known) = self.machine.richness.lexemes.get(&residual) {
            return Ok(known);
        }
        let poor: ByteSet = POOR_BYTES.iter().copied().collect();
        let rich = repeats(self.lexicon.deriver(), residual, &poor)?;
        self.machine.richness.lexemes.insert(residual, rich);
        Ok(rich)
    }

    /// Looks for a way on from some threads, with the bytes first that end things. Every way is tried, so that there is none
    /// where none is found.
    fn search(&mut self, threads: &[Entry], text: u32, goal: Goal) -> Result<bool, EngineError> {
        let (recording, before) = (std::mem::replace(&mut self.recording, true), self.text);
        let found = self.search_from(threads, text, goal);
        (self.recording, self.text) = (recording, before);
        found
    }

    fn search_from(&mut self, threads: &[Entry], text: u32, goal: Goal) -> Result<bool, EngineError> {
        let mut pending = Vec::new();
        for &thread in threads {
            self.pending(thread, &mut pending);
        }
        let start = pending.iter().map(|state| state.start).find(|&start| start != NIL && start != UNKNOWN_TEXT);
        let written = start.map_or_else(Vec::new, |start| text_since(self.stacks, text, start));
        let string = written.iter().fold(Quoting::Outside, |string, &byte| string.after(byte));
        let first = Level { threads: threads.to_vec(), text, bytes: Vec::new(), string };
        let mut levels = vec![self.with_bytes(first)?];
        let mut steps = 0;
        while let Some(level) = levels.last_mut() {
            let Some(byte) = level.bytes.pop() else {
                levels.pop();
                continue;
            };
            steps += 1;
            if steps > MAX_SEARCH {
                return Err(EngineError::UniqueTooCostly(MAX_SEARCH));
            }
            let (before, string) = (level.threads.clone(), level.string.after(byte));
            let text = self.stacks.append(level.text, u32::from(byte));
            self.text = Some(text);
            let mut threads = Vec::new();
            for thread in before {
                self.step_thread(thread, byte, &mut threads)?;
            }
            self.stacks.join(&mut threads)?;
            for &thread in &threads {
                let is_there = match goal {
                    Goal::End => thread == Entry::BOTTOM,
                    Goal::Safe => self.is_safe(thread)?,
                };
                if is_there {
                    return Ok(true);
                }
            }
            if !threads.is_empty() {
                let next = self.with_bytes(Level { threads, text, bytes: Vec::new(), string })?;
                levels.push(next);
            }
        }
        Ok(false)
    }

    /// The level with the bytes that lead on and may lead to a new value.
    fn with_bytes(&mut self, mut level: Level) -> Result<Level, EngineError> {
        let mut alive = ByteSet::EMPTY;
        let mut is_complete = false;
        for &thread in &level.threads {
            if thread == Entry::BOTTOM || offers_tokens(thread) {
                continue;
            }
            let fork = self.machine.fork(ForkId(thread.head)).clone();
            is_complete |= !fork.accepts(self.lexicon, thread.state).is_empty();
            for byte in 0..=u8::MAX {
                if fork.step(self.lexicon, thread.state, byte)?.0 != StateId::DEAD.0 {
                    alive.insert(byte);
                }
            }
        }
        let mut bytes: Vec<u8> = alive.iter().collect();
        if level.string == Quoting::Outside {
            let is_blank = |byte: &u8| b" \t\r\n".contains(byte);
            if bytes.iter().any(|byte| !is_blank(byte)) {
                bytes.retain(|byte| !is_blank(byte));
            }
            let (is_zero, zeros) = self.number_tail(level.text);
            // What only spells the same number anew is left out where the number may end.
            if is_zero && (is_complete || bytes.iter().any(|byte| !byte.is_ascii_digit())) {
                bytes.retain(|byte| !byte.is_ascii_digit());
            }
            if zeros >= MAX_ZEROS && (is_complete || bytes.iter().any(|&byte| byte != b'0')) {
                bytes.retain(|&byte| byte != b'0');
            }
        }
        // The last one is tried first.
        bytes.sort_by_key(|&byte| match byte {
            b'"' | b'}' | b']' => 9,
            b'1'..=b'9' | b'a'..=b'z' => 8,
            b'0' => 6,
            b'\\' => 0,
            0x80.. => 1,
            _ => 7,
        });
        level.bytes = bytes;
        Ok(level)
    }

    /// Of the number at the end of a text: whether it is zero whatever its exponent goes on with, and how many zeros it ends
    /// with.
    fn number_tail(&self, text: u32) -> (bool, usize) {
        let is_part = |byte: &u32| u8::try_from(*byte).is_ok_and(|byte| b"0123456789+-.eE".contains(&byte));
        let mut tail: Vec<u8> =
            self.stacks.list(text).take(MAX_ZEROS + 2).take_while(is_part).map(|byte| byte as u8).collect();
        tail.reverse();
        let zeros = tail.iter().rev().take_while(|&&byte| byte == b'0').count();
        let exponent = tail.iter().position(|byte| byte.eq_ignore_ascii_case(&b'e'));
        let is_zero = exponent.is_some_and(|at| {
            let mantissa_is_zero = at > 0 && tail[..at].iter().all(|byte| b"-0.".contains(byte));
            mantissa_is_zero && tail.last().is_some_and(u8::is_ascii_digit)
        });
        (is_zero, zeros)
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

    /// Refuses arrays of which it cannot be told that enough different elements are left.
    pub(crate) fn check_unique(&mut self) -> Result<(), EngineError> {
        let grammar = self.machine.grammar().clone();
        for (index, node) in grammar.nodes().iter().enumerate() {
            let Node::Items(id) = node else { continue };
            let items = grammar.items(*id);
            if !items.unique {
                continue;
            }
            let mut endless = true;
            for element in items.elements() {
                endless &= self.is_endless(element.value)?;
            }
            if endless {
                continue;
            }
            if !items.prefix.is_empty() || !items.contains.is_empty() {
                return Err(EngineError::NotRun(
                    "an array whose elements must differ, with values that may run out at some place or for some counter,",
                ));
            }
            if items.min < 2 {
                continue;
            }
            let frame = self.machine.frame_id(Frame::Node(NodeId(index as u32)));
            let start = self.initial_at(frame)?;
            let mut threads = self.stacks.entries(start).to_vec();
            self.take_text(&mut threads);
            if !self.search(&threads, NIL, Goal::End)? {
                return Err(EngineError::TooFewValues(items.min));
            }
        }
        Ok(())
    }

    /// Whether a node has endlessly many values, numbers included; `false` where that is not plain to see.
    fn is_endless(&mut self, node: NodeId) -> Result<bool, EngineError> {
        if self.is_node_rich(node)? {
            return Ok(true);
        }
        let node = self.machine.left.resolve(node);
        let grammar = self.machine.grammar().clone();
        match grammar.node(node) {
            Node::Lexeme(expr) => {
                let lexeme = self.machine.lexeme(self.lexicon, *expr);
                let poor: ByteSet = POOR_BYTES.iter().copied().filter(|byte| !(b'1'..=b'9').contains(byte)).collect();
                Ok(repeats(self.lexicon.deriver(), lexeme, &poor)?)
            }
            Node::Choice(parts) => {
                for part in parts {
                    if let Node::Lexeme(_) = grammar.node(self.machine.left.resolve(*part))
                        && self.is_endless(*part)?
                    {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Ok(false),
        }
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
fn text_since(stacks: &Stacks, text: u32, start: u32) -> Vec<u8> {
    let mut bytes = stacks.since(text, start);
    bytes.reverse();
    bytes
}

/// Whether some bytes of a residual can be read again and again that are not poor.
fn repeats(deriver: &mut Deriver, residual: ExprId, poor: &ByteSet) -> Result<bool, LimitExceeded> {
    let mut index: FxHashMap<ExprId, usize> = FxHashMap::from_iter([(residual, 0)]);
    let mut residuals = vec![residual];
    let mut users: Vec<Vec<usize>> = vec![Vec::new()];
    let mut waits: Vec<usize> = vec![0];
    let mut at = 0;
    while at < residuals.len() && residuals.len() <= MAX_RESIDUALS {
        let derivatives = deriver.derivatives(residuals[at])?;
        for &(set, rest) in derivatives.iter() {
            if !deriver.is_live(rest)? {
                continue;
            }
            let next = *index.entry(rest).or_insert_with(|| {
                residuals.push(rest);
                users.push(Vec::new());
                waits.push(0);
                residuals.len() - 1
            });
            if set.iter().any(|byte| !poor.contains(byte)) {
                users[next].push(at);
                waits[at] += 1;
            }
        }
        at += 1;
    }
    // What is left when those without a way on are taken away, and so on, is on a circle or leads to one.
    let mut ready: Vec<usize> = (0..residuals.len()).filter(|&state| waits[state] == 0).collect();
    let mut gone = ready.len();
    while let Some(state) = ready.pop() {
        for &user in &users[state] {
            waits[user] -= 1;
            if waits[user] == 0 {
                gone += 1;
                ready.push(user);
            }
        }
    }
    Ok(gone < residuals.len())
}
