//! An operation of a matcher: it has the shared machine and lexeme cache, and the matcher's own memory.
//!
//! A configuration is the set of all threads that are still alive. It is *closed*: where a lexeme has matched, the
//! lexemes that may follow are in the configuration too, and the end of the text is a separate thread
//! ([`Entry::BOTTOM`]). So one byte is one step of every thread, and nothing else.

use stencilm_grammar::MembersId;
use stencilm_regex::{ExprId, StateId, Tag};
use stencilm_support::{Extension, FEW, Map, check_time};

use crate::error::EngineError;
use crate::lexeme::cache::LexemeCache;
use crate::machine::expansion::{Expansion, IN_WHITESPACE};
use crate::machine::layout::{Continuation, ExpansionId, FrameId, Machine};
use crate::parse::assumptions::Assumptions;
use crate::parse::memo::Known;
use crate::state::stacks::{Entry, NIL, SetId, Stacks};
use crate::vocabulary::keys_within_tokens::{WholeKeys, within_quotes};
use crate::vocabulary::token_set;
use crate::vocabulary::trie::Path;

/// The end of a list of leaders.
const NONE: u32 = u32::MAX;

/// A nullable frame that has already been started, above the stack now visited. The same frame further down adds no
/// threads, since the upper one may leave out everything in between.
#[derive(Clone, Copy)]
struct Leader {
    expansion: ExpansionId,
    register: u32,
    /// The next leader on the path up.
    above: u32,
}

/// A search down from a stack for the frames that start: it goes below a frame only if the frame may match nothing.
#[derive(Default)]
struct Descent {
    /// The stacks in the order in which they were reached, each with its leader.
    work: Map<SetId, u32>,
    /// How many of them were visited.
    done: usize,
    leaders: Vec<Leader>,
}

impl Descent {
    #[inline]
    fn begin(&mut self, stack: SetId) {
        self.leaders.clear();
        self.work.clear();
        self.work.insert(stack, NONE);
        self.done = 0;
    }

    /// The next stack to visit, and its leader.
    #[inline]
    fn next(&mut self) -> Option<(SetId, u32)> {
        let (&stack, &leader) = self.work.at(self.done)?;
        self.done += 1;
        Some((stack, leader))
    }

    /// Whether the leader, or one above it, has the same expansion and register.
    #[inline]
    fn is_led(&self, mut leader: u32, expansion: ExpansionId, register: u32) -> bool {
        while leader != NONE {
            let here = self.leaders[leader as usize];
            if (here.expansion, here.register) == (expansion, register) {
                return true;
            }
            leader = here.above;
        }
        false
    }

    /// The position of a stack among those reached; a new one is added last, with this leader.
    #[inline]
    fn reach(&mut self, stack: SetId, leader: u32) -> usize {
        self.work.place_or_insert_with(stack, || leader)
    }

    /// Gives a stack a further leader. A stack that was already visited keeps the leaders it had.
    #[inline]
    fn lead(&mut self, at: usize, expansion: ExpansionId, register: u32) {
        let Some((_, &mut above)) = self.work.at_mut(at).filter(|_| at >= self.done) else { return };
        if !self.is_led(above, expansion, register) {
            self.leaders.push(Leader { expansion, register, above });
            let (_, leader) = self.work.at_mut(at).expect("it was just looked at");
            *leader = self.leaders.len() as u32 - 1;
        }
    }
}

/// How keys and elements that must be new are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// They are recorded byte by byte and compared with the used ones.
    Exact,
    /// As in a mask: each is taken for a new one, and [`Run::assumed`] says where that may be wrong.
    Optimistic,
}

impl Mode {
    /// Exact where that makes a difference.
    pub fn exact_if(is_needed: bool) -> Mode {
        if is_needed { Mode::Exact } else { Mode::Optimistic }
    }
}

/// The context of one operation.
pub(crate) struct Run<'a> {
    pub machine: &'a mut Machine,
    pub lexeme_cache: &'a mut LexemeCache,
    pub stacks: &'a mut Stacks,
    pub scratch: &'a mut Scratch,
    pub mode: Mode,
    /// The text so far, where elements of an array must differ.
    pub text: Option<u32>,
    /// The list of names for threads that start now, where the grammar declares names.
    pub names: u32,
    /// What was assumed so far.
    pub assumed: Assumptions,
    /// The number of accepted tokens, for the register of parts that begin in this operation.
    pub tokens: u32,
    /// While a part with an exhausted budget cannot end yet: the number of tokens accepted before this operation.
    pub spent_at: Option<u32>,
    /// The memo of a mask that follows all threads of a very ambiguous grammar together.
    pub known: Option<Box<Known>>,
    /// The comparisons of elements and keys, if they are asked for.
    pub compared: Option<Vec<Compared>>,
}

/// An element or a key that was compared with earlier ones.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Compared {
    /// An element that must be new: the text before it, the text up to its end, and the list of earlier ones.
    Element { start: u32, end: u32, seen: u32 },
    /// A key that must be new: what is written of it, and the list of earlier ones.
    Key { object: MembersId, class: u32, written: u32, seen: u32 },
    /// A comparison for another purpose, or one with an unknown element.
    Other,
}

/// Lists that operations reuse: one mask alone would otherwise allocate about fifty short ones.
#[derive(Default)]
pub(crate) struct Scratch {
    descent: Descent,
    /// The threads before a byte, and those after it.
    threads: Vec<Entry>,
    next: Vec<Entry>,
    /// The threads whose mask is computed.
    pub saturated: Vec<Entry>,
    /// The tokens in which a mask differs from the lexeme mask that it started from.
    pub flipped: Vec<u32>,
    pub path: Path,
}

impl Extension for Scratch {}

/// Whether a thread stands for the single tokens that may come at its expansion.
pub(crate) fn offers_tokens(thread: Entry) -> bool {
    thread.state == StateId::DEAD.0 && thread != Entry::BOTTOM
}

impl Run<'_> {
    /// Runs a part of an operation in a mode. A memo of steps is valid for one such part only.
    pub fn in_mode<T>(&mut self, mode: Mode, part: impl FnOnce(&mut Self) -> T) -> T {
        let before = (std::mem::replace(&mut self.mode, mode), self.known.take());
        let found = part(self);
        (self.mode, self.known) = before;
        found
    }

    /// Whether keys and elements are compared with the used ones.
    #[inline]
    pub fn is_exact(&self) -> bool {
        self.mode == Mode::Exact
    }

    /// The configuration before the first byte. It has already read the text that the grammar puts before every text.
    pub fn initial(&mut self) -> Result<SetId, EngineError> {
        let first = self.initial_at(Machine::ROOT)?;
        let grammar = self.machine.grammar().clone();
        if grammar.begun().is_empty() {
            return Ok(first);
        }
        match self.in_mode(Mode::Exact, |run| run.run(first, grammar.begun()))? {
            SetId::EMPTY => {
                Err(EngineError::NotRun("the text that stands before every text of the grammar, which none goes on,"))
            }
            begun => Ok(begun),
        }
    }

    /// The configuration before the first byte of a part by itself.
    pub fn initial_at(&mut self, frame: FrameId) -> Result<SetId, EngineError> {
        let stack = self.stacks.push(frame.0, 0, SetId::BOTTOM);
        self.names = NIL;
        let stack = self.with_names(stack);
        let mut threads = Vec::new();
        self.text = self.machine.keeps_text().then_some(NIL);
        self.start(stack, &mut threads)?;
        self.put_text(&mut threads);
        self.stacks.configuration(&mut threads)
    }

    /// Adds the threads that start at a stack: those of its frames, and of the stacks below frames that may match
    /// nothing.
    pub(crate) fn start(&mut self, stack: SetId, threads: &mut Vec<Entry>) -> Result<(), EngineError> {
        if let Some(started) = self.known.as_ref().and_then(|known| known.starts.get(&stack)) {
            threads.extend_from_slice(started);
            return Ok(());
        }
        if self.machine.has_names() {
            return self.start_with_names(stack, threads);
        }
        let before = threads.len();
        let below = self.walk_down(stack, threads)?;
        if let Some(known) = self.known.as_mut().filter(|_| !self.machine.keeps_text()) {
            known.starts.insert(stack, threads[before..].into());
        }
        // The next stacks will have other frames on top of the same stack, so caching the start of that one saves
        // walking it again.
        if let Some(below) = below
            && self.stacks.starts(below).is_none()
        {
            self.walk_down(below, &mut Vec::new())?;
        }
        Ok(())
    }

    /// Adds the threads that start at a stack. If that visits many sets, the threads are cached, and the stack below
    /// the first frame is returned.
    fn walk_down(&mut self, stack: SetId, threads: &mut Vec<Entry>) -> Result<Option<SetId>, EngineError> {
        let before = threads.len();
        let mut descent = std::mem::take(&mut self.scratch.descent);
        descent.begin(stack);
        let (mut many, mut by_text, mut has_marks) = (false, false, false);
        while let Some((set, leader)) = descent.next() {
            self.stacks.spend(self.stacks.entries(set).len() + 1)?;
            if let Some(starts) = self.stacks.starts(set) {
                let (machine, count) = (&*self.machine, starts.len());
                threads.extend(starts.iter().copied().filter(|thread| {
                    *thread == Entry::BOTTOM
                        || !machine.fork(ExpansionId(thread.head)).nullable
                        || !descent.is_led(leader, ExpansionId(thread.head), thread.register)
                }));
                self.stacks.spend(count)?;
                many = true;
                continue;
            }
            self.stacks.look_at(set);
            for index in 0..self.stacks.entries(set).len() {
                let frame = self.stacks.entries(set)[index];
                if frame == Entry::BOTTOM {
                    threads.push(frame);
                    continue;
                }
                let mut frames = [Some(frame), None];
                if self.ends_compared_element(frame) {
                    // Then the threads also depend on the text.
                    by_text = true;
                    frames = self.ended(frame);
                }
                for frame in frames.into_iter().flatten() {
                    let phase = self.phase(FrameId(frame.head), frame.register);
                    let first = self.machine.fork_of(self.lexeme_cache, FrameId(frame.head), phase)?;
                    let nullable = self.machine.fork(first).nullable;
                    let led = nullable && descent.is_led(leader, first, frame.register);
                    let mut next = Some(first).filter(|_| !led);
                    while let Some(id) = next {
                        next = self.begin(id, frame, threads);
                        if !self.machine.fork(id).opens.is_empty() {
                            has_marks = true;
                            self.open(id, frame, threads)?;
                        }
                    }
                    if !nullable {
                        continue;
                    }
                    let (mut leader, mut has_ended) = (leader, false);
                    if self.machine.marks.any()
                        && let Some(remark) = self.remark(frame)?
                    {
                        // A thread above the end may be dropped while those below stay, so it must not stand for them.
                        leader = NONE;
                        has_ended = true;
                        has_marks = true;
                        threads.push(remark);
                    }
                    let at = descent.reach(frame.below, leader);
                    if !has_ended {
                        descent.lead(at, first, frame.register);
                    }
                }
            }
        }
        if many {
            // Several sets on the way may have cached the same threads. If duplicates were cached again with every set
            // above, they would double each time.
            let mut found = threads.split_off(before);
            found.sort();
            found.dedup();
            threads.append(&mut found);
        }
        let (below, done) = (descent.work.at(1).map(|(&below, _)| below), descent.done);
        self.scratch.descent = descent;
        if by_text || has_marks || (!many && done <= FEW) {
            return Ok(None);
        }
        self.stacks.keep_starts(stack, &threads[before..]);
        Ok(below)
    }

    /// Replaces `threads` by the threads after several bytes; none where nothing can follow.
    fn read(&mut self, configuration: SetId, bytes: &[u8], threads: &mut Vec<Entry>) -> Result<(), EngineError> {
        threads.clear();
        threads.extend_from_slice(self.stacks.entries(configuration));
        self.take_text(threads);
        let mut next = std::mem::take(&mut self.scratch.next);
        self.stacks.allow(bytes.len());
        for &byte in bytes {
            next.clear();
            self.read_byte(threads, byte, &mut next)?;
            std::mem::swap(threads, &mut next);
            if threads.is_empty() {
                break;
            }
        }
        self.scratch.next = next;
        if self.text.is_some() {
            self.drop_repeats(threads)?;
            self.put_text(threads);
        }
        Ok(())
    }

    /// Adds the threads after one byte to `next`; none where nothing can follow. The text is extended as well.
    pub fn read_byte(&mut self, threads: &[Entry], byte: u8, next: &mut Vec<Entry>) -> Result<(), EngineError> {
        if let Some(text) = self.text {
            self.text = Some(self.stacks.append(text, u32::from(byte)));
        }
        for &thread in threads {
            self.step_thread(thread, byte, next)?;
        }
        self.stacks.join(next)?;
        match self.spent_at {
            Some(tokens) => self.drop_spent(next, tokens),
            None => Ok(()),
        }
    }

    /// The configuration after several bytes; [`SetId::EMPTY`] where nothing can follow.
    pub fn run(&mut self, configuration: SetId, bytes: &[u8]) -> Result<SetId, EngineError> {
        let mut threads = std::mem::take(&mut self.scratch.threads);
        self.read(configuration, bytes, &mut threads)?;
        let found = self.stacks.configuration(&mut threads);
        self.scratch.threads = threads;
        found
    }

    /// The configuration after one byte; [`SetId::EMPTY`] where nothing can follow.
    pub fn step(&mut self, configuration: SetId, byte: u8) -> Result<SetId, EngineError> {
        if self.compares_elements() || self.spent_at.is_some() {
            return self.run(configuration, &[byte]);
        }
        // Single bytes are read very often, so the list of threads is reused.
        self.stacks.allow(1);
        let mut next = std::mem::take(&mut self.scratch.next);
        next.clear();
        for index in 0..self.stacks.entries(configuration).len() {
            let thread = self.stacks.entries(configuration)[index];
            self.step_thread(thread, byte, &mut next)?;
        }
        let found = self.stacks.configuration(&mut next);
        self.scratch.next = next;
        found
    }

    /// Whether the configuration can read these bytes.
    pub fn survives(&mut self, configuration: SetId, bytes: &[u8]) -> Result<bool, EngineError> {
        let mut threads = std::mem::take(&mut self.scratch.threads);
        let seen_keys = self.stacks.seen_keys;
        self.read(configuration, bytes, &mut threads)?;
        // Undo what the bytes recorded.
        self.stacks.seen_keys = seen_keys;
        let survives = !threads.is_empty();
        self.scratch.threads = threads;
        Ok(survives)
    }

    /// Whether the end of the text is within an additional key.
    pub fn is_within_additional_key(&self, configuration: SetId) -> bool {
        self.stacks.entries(configuration).iter().any(|&thread| {
            thread != Entry::BOTTOM
                && thread.state & IN_WHITESPACE == 0
                && self.machine.fork(ExpansionId(thread.head)).additional
                && self.stacks.members(thread.register).text != NIL
        })
    }

    /// Whether some key that lies within these bytes may be a known one: a used key, one that ends earlier within the
    /// bytes, or a name of its object. Every text between two quotes counts as a key; bytes with escapes are never
    /// decided here.
    pub fn may_repeat_a_key(&self, bytes: &[u8], within_key: bool) -> bool {
        if bytes.contains(&b'\\') {
            return true;
        }
        let mut before = bytes.split(|&byte| byte == b'"');
        let end = before.next().unwrap_or_default();
        within_quotes(bytes).enumerate().any(|(at, key)| {
            (within_key && key.ends_with(end))
                || before.clone().take(at).any(|earlier| earlier == key)
                || self.stacks.has_seen_key(key)
                || self.machine.is_name(key)
        })
    }

    /// Whether some key within a token may be a known one: a used key, or a name of some object. The token must not be
    /// unclear, and no key may have begun before it.
    pub fn may_repeat_a_whole_key(&mut self, keys: &WholeKeys, token: u32) -> bool {
        let named = self.machine.named_keys(keys);
        keys.of_token(token).any(|(position, key)| named[position] || self.stacks.has_seen_key(key))
    }

    /// Whether the grammar names this single token here.
    pub fn has_token_edge(&self, configuration: SetId, id: u32) -> bool {
        let machine = &*self.machine;
        machine.tokens.any()
            && self.stacks.entries(configuration).iter().any(|&thread| {
                offers_tokens(thread)
                    && machine
                        .fork(ExpansionId(thread.head))
                        .tokens
                        .iter()
                        .any(|&(node, _)| machine.tokens.ids(node).contains(id))
            })
    }

    /// Adds all single tokens that the grammar names here to a set.
    pub fn token_edges(&self, configuration: SetId, set: &mut [u32]) {
        let machine = &*self.machine;
        for &thread in self.stacks.entries(configuration).iter().filter(|&&thread| offers_tokens(thread)) {
            for &(node, _) in &machine.fork(ExpansionId(thread.head)).tokens {
                machine.tokens.ids(node).iter().for_each(|id| token_set::set(set, id));
            }
        }
    }

    /// The configuration after a token: as the single token that the grammar names, or with its bytes. A token without
    /// bytes is one step as well.
    pub fn step_token(&mut self, configuration: SetId, id: u32, bytes: Option<&[u8]>) -> Result<SetId, EngineError> {
        let spelled = match bytes {
            Some(bytes) => self.run(configuration, bytes)?,
            None => SetId::EMPTY,
        };
        let mut threads = self.stacks.entries(spelled).to_vec();
        self.take_text(&mut threads);
        let mut before = self.stacks.entries(configuration).to_vec();
        if self.text.is_none() {
            self.take_text(&mut before);
        }
        for thread in before {
            if !offers_tokens(thread) {
                continue;
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            for (node, continuation) in &expansion.tokens {
                if self.machine.tokens.ids(*node).contains(id)
                    && let Some(stack) = self.push(&expansion, continuation, thread)?
                {
                    self.start(stack, &mut threads)?;
                }
            }
        }
        self.put_text(&mut threads);
        self.stacks.configuration(&mut threads)
    }

    /// Adds the threads that one thread becomes after one byte.
    pub(crate) fn step_thread(&mut self, thread: Entry, byte: u8, threads: &mut Vec<Entry>) -> Result<(), EngineError> {
        if thread == Entry::BOTTOM || offers_tokens(thread) {
            return Ok(());
        }
        check_time()?;
        let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
        let (state, accepts) = expansion.step(self.lexeme_cache, thread.state, byte)?;
        if state == StateId::DEAD.0 {
            return Ok(());
        }
        let mut moved = Entry { state, ..thread };
        if self.is_exact() && expansion.additional && state & IN_WHITESPACE == 0 {
            moved.register = self.register_after(&expansion, thread.register, byte);
        }
        if expansion.locally_finite && !self.is_exact() {
            self.assumed.locally_finite |= self.may_run_out(&expansion, moved);
        }
        let stays = !accepts || expansion.goes_on(self.lexeme_cache, state)?;
        if stays && (!expansion.locally_finite || !self.is_exact() || self.can_be_new(&expansion, moved)?) {
            threads.push(moved);
        }
        if !accepts {
            return Ok(());
        }
        for index in 0..expansion.accepts(self.lexeme_cache, state).len() {
            let tag = expansion.accepts(self.lexeme_cache, state)[index];
            self.follow(&expansion, tag, moved, threads)?;
        }
        Ok(())
    }

    /// Adds the threads that follow a complete lexeme.
    pub fn follow(
        &mut self,
        expansion: &Expansion,
        tag: Tag,
        thread: Entry,
        threads: &mut Vec<Entry>,
    ) -> Result<(), EngineError> {
        for continuation in self.machine.continuations(expansion, tag).iter() {
            if let Some(stack) = self.push(expansion, continuation, thread)? {
                self.start(stack, threads)?;
            }
        }
        Ok(())
    }

    /// The lexemes that a thread may still read, without the whitespace before them.
    pub fn lexemes(&mut self, thread: Entry) -> Vec<(Tag, ExprId)> {
        let state = if thread.state & IN_WHITESPACE != 0 { StateId::START } else { StateId(thread.state) };
        self.machine.fork(ExpansionId(thread.head)).lexemes(self.lexeme_cache, state)
    }

    /// The stack with the frames of a continuation on top; `None` where a key would be repeated.
    pub(crate) fn push(
        &mut self,
        expansion: &Expansion,
        continuation: &Continuation,
        thread: Entry,
    ) -> Result<Option<SetId>, EngineError> {
        match self.machine.has_names() {
            true => self.push_below_names(expansion, continuation, thread),
            false => self.push_frames(expansion, continuation, thread),
        }
    }

    /// The same for a stack without names on top.
    pub(crate) fn push_frames(
        &mut self,
        expansion: &Expansion,
        continuation: &Continuation,
        thread: Entry,
    ) -> Result<Option<SetId>, EngineError> {
        let mut stack = thread.below;
        for &(frame, register) in continuation {
            let Some(value) = self.changed(register, expansion, thread) else { return Ok(None) };
            if let Some(absorbed) = self.machine.absorbed(frame) {
                stack = self.stacks.without(absorbed.0, stack)?;
            }
            stack = self.stacks.push(frame.0, value, stack);
        }
        Ok(Some(stack))
    }
}
