//! Arrays whose elements must differ: elements are compared when they end, and none may begin that could only be a
//! repeat. Arrays that need two equal elements are compared in the same way until two are equal, and from then on
//! remember only that.
//!
//! All threads of a configuration have read the same bytes, so the text is stored once, as an entry of the
//! configuration that no byte and no token continues. An array remembers where in it the current element began. When an
//! element ends, its canonical JSON text is looked up among the earlier ones.
//!
//! A thread within an element stays only if some new value can still be completed. Nearly always that is obvious:
//! something with infinitely many values is still to come, such as the body of a string or more members of an open
//! object. Otherwise a completion is searched for, nearest first, until a new value or something infinite is found.

use rustc_hash::FxHashSet;
use stencilm_grammar::{ItemsId, Repeats, canonical_json};
use stencilm_regex::{ByteSet, ExprId, StateId};

use crate::distinct::lasting::Lasting;
use crate::distinct::new_values::Goal;
use crate::distinct::quoting::Quoting;
use crate::error::EngineError;
use crate::machine::expansion::IN_WHITESPACE;
use crate::machine::layout::{ExpansionId, Frame, FrameId, Machine};
use crate::parse::stepper::{Run, offers_tokens};
use crate::parse::unverified::Unverified;
use crate::state::stacks::{Entry, ItemsState, NIL, SetId, Stacks, UNKNOWN_TEXT};
use crate::state::used_strings::UsedStrings;
use crate::vocabulary::json_text::begun;
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

impl Machine {
    /// Whether the grammar has arrays whose elements are compared, so that the text is stored.
    #[inline]
    pub(crate) fn keeps_text(&self) -> bool {
        self.text_fork.is_some()
    }

    /// Whether an entry of a configuration holds the text so far.
    #[inline]
    pub(crate) fn is_text(&self, thread: Entry) -> bool {
        self.text_fork.is_some_and(|expansion| expansion.0 == thread.head) && thread != Entry::BOTTOM
    }

    /// If an element of an array that needs two equal elements begins or ends at a frame: that array.
    fn repeating_items(&self, frame: FrameId) -> Option<ItemsId> {
        match self.frame(frame) {
            Frame::Item(id) | Frame::AfterItem(id) if self.grammar.items(id).must_repeat() => Some(id),
            _ => None,
        }
    }

    /// If an element of an array with unique elements begins or ends at a frame: that array.
    pub(crate) fn unique_items(&self, frame: FrameId) -> Option<ItemsId> {
        match self.frame(frame) {
            Frame::Item(id) | Frame::AfterItem(id) if self.grammar.items(id).is_unique() => Some(id),
            _ => None,
        }
    }
}

impl Run<'_> {
    /// Removes the text from a configuration, so that it can be extended.
    pub(crate) fn take_text(&mut self, threads: &mut Vec<Entry>) {
        self.text = None;
        if self.machine.keeps_text()
            && let Some(at) = threads.iter().position(|&thread| self.machine.is_text(thread))
        {
            self.text = Some(threads.remove(at).register);
        }
    }

    /// Puts the text back, if any thread is left.
    pub(crate) fn put_text(&mut self, threads: &mut Vec<Entry>) {
        if let (Some(text), Some(expansion), false) = (self.text.take(), self.machine.text_fork, threads.is_empty()) {
            threads.push(Entry { head: expansion.0, register: text, state: StateId::DEAD.0, below: SetId::EMPTY });
        }
    }

    /// Whether elements of arrays are compared; an optimistic mask takes each for a new one.
    #[inline]
    pub(crate) fn compares_elements(&self) -> bool {
        self.is_exact() && self.machine.keeps_text()
    }

    /// A configuration without its text, if the text makes no difference to what may come. This is so outside arrays
    /// with unique elements, in a first element, and in a string that no element has, as long as these arrays can
    /// continue with infinitely many values; and where every array that needs two equal elements has them. `None` where
    /// it may make a difference.
    pub(crate) fn without_text(&mut self, configuration: SetId) -> Result<Option<SetId>, EngineError> {
        if !self.machine.keeps_text() {
            return Ok(Some(configuration));
        }
        let mut threads = self.stacks.entries(configuration).to_vec();
        self.take_text(&mut threads);
        let Some(text) = self.text.take() else { return Ok(Some(configuration)) };
        if threads.iter().any(|&thread| self.is_towards_repeat(thread)) {
            return Ok(None);
        }
        let arrays = self.unique_arrays(&threads);
        if !self.may_all_go_on(&arrays)? {
            return Ok(None);
        }
        let states = arrays.iter().map(|&(_, register)| self.stacks.items(register));
        let pending: Vec<ItemsState> = states.filter(|state| state.seen != NIL).collect();
        if !pending.is_empty() && !self.is_new_string(text, &pending) {
            return Ok(None);
        }
        self.stacks.configuration(&mut threads).map(Some)
    }

    /// Whether a compared element ends at a frame.
    #[inline]
    pub(crate) fn ends_compared_element(&self, frame: Entry) -> bool {
        if !self.machine.keeps_text() || frame == Entry::BOTTOM {
            return false;
        }
        let Frame::AfterItem(id) = self.machine.frame(FrameId(frame.head)) else { return false };
        match self.machine.grammar().items(id).repeats {
            Repeats::Any => false,
            Repeats::Never { .. } => true,
            Repeats::Required => !self.stacks.items(frame.register).has_repeat,
        }
    }

    /// Whether a thread can only end an array that needs two equal elements, and exists because an element was taken
    /// for a repeated one.
    pub(crate) fn hangs_on_a_repeat(&self, thread: Entry) -> bool {
        if !self.machine.keeps_text() || thread == Entry::BOTTOM || offers_tokens(thread) {
            return false;
        }
        let frame = self.machine.fork(ExpansionId(thread.head)).frame;
        matches!(self.machine.frame(frame), Frame::AfterItem(_))
            && self.stacks.items(thread.register).takes_for_repeat()
    }

    /// Removes the threads that can only repeat an element.
    pub(crate) fn drop_repeats(&mut self, threads: &mut Vec<Entry>) -> Result<(), EngineError> {
        let Some(text) = self.text.filter(|_| self.is_exact()) else { return Ok(()) };
        let mut pending = Vec::new();
        for &thread in threads.iter() {
            self.pending(thread, &mut pending);
        }
        if pending.is_empty() || self.is_new_string(text, &pending) {
            return Ok(());
        }
        let string = self.quoting(text, &pending);
        let mut kept = Vec::with_capacity(threads.len());
        for &thread in threads.iter() {
            let is_left = match self.has_counted_left(thread, text)? {
                Some(is_left) => is_left,
                None => self.is_safe(thread, string)? || self.search(&[thread], text, Goal::Safe)?,
            };
            if is_left {
                kept.push(thread);
            }
        }
        *threads = kept;
        Ok(())
    }

    /// If a text of a lexeme is the whole next element of an array, and the order of the elements makes no difference
    /// because no other array around compares its elements: that array, by its frame and the set below.
    pub(crate) fn array_of_element(&mut self, configuration: SetId, lexeme: ExprId) -> Option<(FrameId, SetId)> {
        if !self.machine.keeps_text() {
            return None;
        }
        let mut readings = Vec::new();
        for thread in self.stacks.entries(configuration).to_vec() {
            if thread == Entry::BOTTOM || offers_tokens(thread) || self.machine.is_text(thread) {
                continue;
            }
            let lexemes = self.lexemes(thread);
            readings.extend(lexemes.into_iter().filter(|own| own.1 == lexeme).map(|(tag, _)| (thread, tag)));
        }
        let [(thread, tag)] = readings[..] else { return None };
        let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
        let mut arrays = Vec::new();
        self.arrays_around(thread, Machine::repeating_items, &mut arrays);
        self.arrays_around(thread, Machine::unique_items, &mut arrays);
        let behind = self.machine.continuations(&expansion, tag);
        let is_whole = (thread.state == expansion.start() || thread.state & IN_WHITESPACE != 0)
            && matches!(self.machine.frame(expansion.frame), Frame::Item(_))
            && matches!(&behind[..], [behind] if matches!(behind[..], [(behind, _)] if self.machine.unique_items(behind).is_some()));
        (is_whole && arrays == [(expansion.frame, thread.register)]).then_some((expansion.frame, thread.below))
    }

    /// Whether there are threads, all within a string that no earlier element contains.
    pub(crate) fn are_new(&mut self, threads: &[Entry], text: u32) -> bool {
        let mut pending = Vec::new();
        for &thread in threads {
            self.pending(thread, &mut pending);
        }
        self.is_new_string(text, &pending)
    }

    /// The arrays with earlier elements within whose elements, or between them, a thread is.
    pub(crate) fn pending(&mut self, thread: Entry, pending: &mut Vec<ItemsState>) {
        let mut arrays = Vec::new();
        self.arrays_around(thread, Machine::unique_items, &mut arrays);
        for (_, register) in arrays {
            let state = self.stacks.items(register);
            if state.seen != NIL && !pending.contains(&state) {
                pending.push(state);
            }
        }
    }

    /// The frames and registers of all arrays of a certain kind around a thread.
    pub(crate) fn arrays_around(
        &mut self,
        thread: Entry,
        of_kind: fn(&Machine, FrameId) -> Option<ItemsId>,
        arrays: &mut Vec<(FrameId, u32)>,
    ) {
        self.frames_around(thread, |run, Entry { head, register, .. }| {
            let frame = FrameId(head);
            if of_kind(run.machine, frame).is_some() && !arrays.contains(&(frame, register)) {
                arrays.push((frame, register));
            }
        });
    }

    /// Visits the frame of a thread, and all frames below it.
    fn frames_around(&mut self, thread: Entry, mut visit: impl FnMut(&Run<'_>, Entry)) {
        if thread == Entry::BOTTOM || offers_tokens(thread) {
            return;
        }
        let own = self.machine.fork(ExpansionId(thread.head)).frame;
        visit(self, Entry { head: own.0, state: 0, ..thread });
        let (mut work, mut seen) = (vec![thread.below], FxHashSet::default());
        while let Some(set) = work.pop() {
            if !seen.insert(set) {
                continue;
            }
            self.stacks.look_at(set);
            for index in 0..self.stacks.entries(set).len() {
                let frame = self.stacks.entries(set)[index];
                if frame != Entry::BOTTOM {
                    visit(self, frame);
                    work.push(frame.below);
                }
            }
        }
    }

    /// Whether a thread is within an array that still needs two equal elements.
    pub(crate) fn is_towards_repeat(&mut self, thread: Entry) -> bool {
        let mut repeating = Vec::new();
        self.arrays_around(thread, Machine::repeating_items, &mut repeating);
        repeating.iter().any(|&(_, register)| !self.stacks.items(register).has_repeat)
    }

    /// The elements of an array that needs two equal ones, as they were written, without leading whitespace.
    fn spelled(&self, state: ItemsState) -> impl Iterator<Item = Spelled> {
        let mut places = self.stacks.list(state.spelled);
        std::iter::from_fn(move || {
            let end = places.next()?;
            places.next().map(|start| Spelled { start, end })
        })
    }

    /// The shortest element of an array that needs two equal ones, which may be repeated.
    pub(crate) fn shortest_spelled(&self, state: ItemsState) -> Option<Vec<u8>> {
        self.spelled(state).map(|spelled| spelled.text(self.stacks)).min_by_key(Vec::len)
    }

    /// The rests that would turn open elements into repeats of earlier ones, where two must be equal, each with its
    /// array.
    pub(crate) fn repeats_to_come(&mut self, thread: Entry, text: u32) -> Vec<Repeat> {
        let mut arrays: Vec<(ItemsId, Entry)> = Vec::new();
        self.frames_around(thread, |run, frame| {
            if let Some(id) = run.machine.repeating_items(FrameId(frame.head)) {
                arrays.push((id, frame));
            }
        });
        let mut found = Vec::new();
        for (items, Entry { register, below, .. }) in arrays {
            let state = self.stacks.items(register);
            if matches!(state.start, NIL | UNKNOWN_TEXT) {
                continue;
            }
            let written = self.stacks.since(text, state.start);
            let written = written.trim_ascii_start();
            for spelled in self.spelled(state).filter(|spelled| spelled.text(self.stacks).starts_with(written)) {
                found.push(Repeat { spelled, written: written.len() as u32, items, below });
            }
        }
        found
    }

    /// Whether the text is within a string of which no earlier element contains the part written so far. Then every
    /// completion is new.
    fn is_new_string(&mut self, text: u32, pending: &[ItemsState]) -> bool {
        let Some(string) = self.open_string(text, pending) else { return false };
        !self.seen_strings(pending).have(&string)
    }

    /// Whether every open element already contains a string that no earlier element contains. Then every completion is
    /// new.
    fn has_new_string(&mut self, text: u32, pending: &[ItemsState]) -> bool {
        if pending.iter().any(|state| matches!(state.start, NIL | UNKNOWN_TEXT)) {
            return false;
        }
        // The innermost element is a part of the others.
        let written = pending.iter().map(|state| self.stacks.since(text, state.start)).min_by_key(Vec::len);
        let Some(written) = written else { return false };
        let seen = self.seen_strings(pending);
        closed_strings(&written).any(|string| match string.contains(&b'\\') {
            true => !seen.have(&canonical_json(string)),
            false => !seen.have(string),
        })
    }

    /// The frames and registers of the arrays with unique elements around these threads.
    fn unique_arrays(&mut self, threads: &[Entry]) -> Vec<(FrameId, u32)> {
        let mut arrays = Vec::new();
        for &thread in threads {
            self.arrays_around(thread, Machine::unique_items, &mut arrays);
        }
        arrays
    }

    /// Whether infinitely many values may still come in all of these arrays.
    fn may_all_go_on(&mut self, arrays: &[(FrameId, u32)]) -> Result<bool, EngineError> {
        for &(frame, register) in arrays {
            if !self.is_frame_infinite(frame, register)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a text ends within a string of the open elements.
    pub(crate) fn quoting(&self, text: u32, pending: &[ItemsState]) -> Quoting {
        let start = pending.iter().map(|state| state.start).find(|&start| start != NIL && start != UNKNOWN_TEXT);
        let written = start.map_or_else(Vec::new, |start| self.stacks.since(text, start));
        written.iter().fold(Quoting::Outside, |string, &byte| string.after(byte))
    }

    /// The open string at the end of the text in canonical spelling, from its quote on; `None` outside strings and
    /// within an escape.
    pub(crate) fn open_string(&self, text: u32, pending: &[ItemsState]) -> Option<Vec<u8>> {
        let start = pending.iter().map(|state| state.start).find(|&start| start != NIL && start != UNKNOWN_TEXT)?;
        open_string(&self.stacks.since(text, start))
    }

    /// The strings of the earlier elements of some arrays.
    pub(crate) fn seen_strings(&mut self, pending: &[ItemsState]) -> UsedStrings {
        let lists = pending.iter().map(|state| self.stacks.seen_strings(state.seen));
        UsedStrings::new(lists.collect())
    }

    /// A filter for tokens that certainly end no repeated element; `None` where the text is not within a string without
    /// escapes, or where a new element might have no new value.
    pub(crate) fn strings_seen(&mut self, configuration: SetId) -> Result<Option<StringsSeen>, EngineError> {
        let mut threads = self.stacks.entries(configuration).to_vec();
        self.take_text(&mut threads);
        let Some(text) = self.text.take() else { return Ok(None) };
        let arrays = self.unique_arrays(&threads);
        let states: Vec<ItemsState> = arrays.iter().map(|&(_, register)| self.stacks.items(register)).collect();
        let Some(open) = self.open_string(text, &states) else { return Ok(None) };
        if !self.may_all_go_on(&arrays)? {
            return Ok(None);
        }
        let seen = self.seen_strings(&states);
        Ok(Some(StringsSeen::new(open, seen)))
    }

    /// The tokens that may be allowed only because every element was taken for a new one: those to verify, and those
    /// that are already `refused`.
    pub(crate) fn tokens_of_seen_elements(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        mask: &[u32],
        tokens: &mut Vec<Unverified>,
        refused: &mut Vec<u32>,
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
        if self.has_new_string(text, &pending) {
            let arrays = self.unique_arrays(&threads);
            if self.may_all_go_on(&arrays)? {
                return Ok(());
            }
        }
        let mut lasting = Lasting::LONGEST;
        for &thread in &threads {
            lasting = lasting.min(self.lasting(thread)?);
        }
        // Whitespace may be the beginning of the bracket that ends an element.
        let does_whitespace_decide = self.machine.does_whitespace_decide(self.lexeme_cache)?;
        let elements = ElementsUnderWay { threads, text, pending, lasting, does_whitespace_decide };
        match self.open_string(text, &elements.pending) {
            Some(open) => self.tokens_within_string(vocabulary, &elements, &open, mask, tokens, refused),
            None => self.tokens_outside_of_strings(vocabulary, &elements, mask, tokens, refused),
        }
    }

    /// Those tokens outside a string.
    fn tokens_outside_of_strings(
        &mut self,
        vocabulary: &Tokens,
        elements: &ElementsUnderWay,
        mask: &[u32],
        tokens: &mut Vec<Unverified>,
        refused: &mut Vec<u32>,
    ) -> Result<(), EngineError> {
        let readable = |token: &u32| vocabulary.token_bytes(*token).is_some();
        // Whitespace does not change a value, unless it ends a number or a word or is a part of the separator.
        let mut places = elements.threads.iter().map(|thread| self.machine.fork(ExpansionId(thread.head)));
        let in_separator = places.any(|expansion| {
            let apart = expansion.whitespace.is_some() && self.machine.has_leading_whitespace(expansion.frame);
            !apart && matches!(self.machine.frame(expansion.frame), Frame::AfterItem(_))
        });
        let last = self.stacks.list(elements.text).next().and_then(|byte| u8::try_from(byte).ok());
        let is_between = !(in_separator || elements.does_whitespace_decide)
            && last.is_some_and(|byte| b"\"{}[],: \t\r\n".contains(&byte))
            && self.quoting(elements.text, &elements.pending) == Quoting::Outside;
        let seen = self.seen_strings(&elements.pending);
        let matters = |token: &u32| {
            let bytes = vocabulary.token_bytes(*token).unwrap_or_default();
            let bare = bytes.trim_ascii_start();
            // The token begins a string that no element contains.
            let is_new =
                bare.first() == Some(&b'"') && !bare[1..].iter().any(|byte| b"\"\\".contains(byte)) && !seen.have(bare);
            !(elements.outlasts(bytes) || is_new || (is_between && bare.is_empty()))
        };
        let matter: Vec<u32> = token_set::iter(mask).filter(readable).filter(matters).collect();
        // Digits of an escape are no number, and digits of an exponent need not give another value.
        let is_number = !elements.does_whitespace_decide
            && self.quoting(elements.text, &elements.pending) == Quoting::Outside
            && !self.is_in_exponent(Some(elements.text));
        let of_digits = |token: &u32| {
            let bytes = vocabulary.token_bytes(*token).unwrap_or_default().trim_ascii_start();
            is_number && !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
        };
        let (digits, others): (Vec<u32>, Vec<u32>) = matter.into_iter().partition(of_digits);
        tokens.extend(others.into_iter().map(Unverified::element));
        self.sort_out_digits(vocabulary, &elements.threads, elements.text, digits.into_iter(), tokens, refused)
    }

    /// Those tokens within a string without escapes; `open` is the string so far. They are tokens that end the string
    /// or contain an escape, and tokens that continue an earlier string.
    fn tokens_within_string(
        &mut self,
        vocabulary: &Tokens,
        elements: &ElementsUnderWay,
        open: &[u8],
        mask: &[u32],
        tokens: &mut Vec<Unverified>,
        refused: &mut Vec<u32>,
    ) -> Result<(), EngineError> {
        let allowed = vocabulary.quoting().iter().filter(|&&token| token_set::get(mask, token));
        let ends = |token: &u32| !vocabulary.token_bytes(*token).is_some_and(|bytes| elements.outlasts(bytes));
        tokens.extend(allowed.copied().filter(ends).map(Unverified::element));
        if let [thread] = elements.threads[..]
            && self.refuse_used_strings(vocabulary, thread, elements.text, mask, refused)?
        {
            return Ok(());
        }
        let (trie, seen) = (vocabulary.trie(), self.seen_strings(&elements.pending));
        let mut along: FxHashSet<u32> = FxHashSet::default();
        for rest in seen.rests(open) {
            let mut node = None;
            for (before, &byte) in rest.iter().enumerate() {
                node = node.map_or_else(|| trie.root(byte), |node| trie.child(node, byte));
                let Some(node) = node else { break };
                if !elements.outlasts(&rest[..=before]) {
                    along.extend(trie.entry_at(node).filter(|&token| token_set::get(mask, token)));
                }
            }
        }
        let mut along: Vec<u32> = along.into_iter().collect();
        along.sort_unstable();
        tokens.extend(along.into_iter().map(Unverified::element));
        Ok(())
    }
}

/// An element as it was written, given by the texts before and after it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Spelled {
    start: u32,
    end: u32,
}

impl Spelled {
    /// Its bytes, without leading whitespace.
    pub fn text(self, stacks: &Stacks) -> Vec<u8> {
        stacks.since(self.end, self.start).trim_ascii_start().to_vec()
    }
}

/// An earlier element of which an open one may become a repeat.
pub(crate) struct Repeat {
    pub spelled: Spelled,
    /// The number of its bytes that are written.
    pub written: u32,
    /// The array, and the set below it.
    pub items: ItemsId,
    pub below: SetId,
}

/// The open elements that must be new.
struct ElementsUnderWay {
    threads: Vec<Entry>,
    /// The text of the configuration.
    text: u32,
    pending: Vec<ItemsState>,
    /// How long each certainly has infinitely many values left.
    lasting: Lasting,
    does_whitespace_decide: bool,
}

impl ElementsUnderWay {
    /// Whether each certainly has infinitely many values left after these bytes.
    fn outlasts(&self, bytes: &[u8]) -> bool {
        self.lasting.outlasts(bytes)
            && !(self.does_whitespace_decide && bytes.iter().any(|byte| b" \t\r\n".contains(byte)))
    }
}

/// The strings in earlier elements, and the open one.
pub(crate) struct StringsSeen {
    /// The open string, from its quote on.
    open: Vec<u8>,
    /// The bytes with which earlier strings continue the open one.
    next: ByteSet,
    seen: UsedStrings,
}

impl StringsSeen {
    pub fn new(open: Vec<u8>, seen: UsedStrings) -> StringsSeen {
        let next = seen.next_bytes(&open);
        StringsSeen { open, next, seen }
    }

    /// Whether every element that these bytes continue or begin is certainly new: it contains a string that no earlier
    /// element contains, and no two of them contain the same.
    pub fn are_not_in(&self, bytes: &[u8]) -> bool {
        let goes_on = !bytes.iter().any(|byte| b"\"\\".contains(byte));
        if goes_on && bytes.first().is_some_and(|&first| !self.next.contains(first)) {
            return true;
        }
        let mut strings: Vec<Vec<u8>> = Vec::new();
        let mut string = Some(self.open.clone());
        let mut bytes = bytes.iter();
        while let Some(&byte) = bytes.next() {
            let Some(spelled) = &mut string else {
                // Between strings, one element may end and another one begin, but no whole element lies there without a
                // string.
                match byte {
                    b'"' => string = Some(vec![b'"']),
                    b',' | b':' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n' => {}
                    _ => return false,
                }
                continue;
            };
            match byte {
                b'\\' => match bytes.next().and_then(|&letter| canonical_escape(letter)) {
                    Some(escape) => spelled.extend_from_slice(escape),
                    None => return false,
                },
                _ => spelled.push(byte),
            }
            if byte == b'"' {
                if self.is_known(spelled, &strings) {
                    return false;
                }
                strings.extend(string.take());
            }
        }
        !string.is_some_and(|spelled| self.is_known(&spelled, &strings))
    }

    /// Whether a string, or the beginning of one, is in an earlier element or among `strings`.
    fn is_known(&self, spelled: &[u8], strings: &[Vec<u8>]) -> bool {
        if strings.is_empty() {
            // The open string is continued.
            let goes_on = spelled.get(self.open.len()).is_none_or(|&byte| self.next.contains(byte));
            return goes_on && self.seen.have(spelled);
        }
        let is_in = |text: &Vec<u8>| text.windows(spelled.len()).any(|window| window == spelled);
        self.seen.have(spelled) || strings.iter().any(is_in)
    }
}

/// The open string at the end of an element's text in canonical spelling, from its quote on; `None` outside strings and
/// within an escape.
pub(crate) fn open_string(written: &[u8]) -> Option<Vec<u8>> {
    let (mut string, mut from) = (Quoting::Outside, 0);
    for (at, &byte) in written.iter().enumerate() {
        if string == Quoting::Outside {
            from = at;
        }
        string = string.after(byte);
    }
    if string != Quoting::Within {
        return None;
    }
    canonical_beginning(&written[from.min(written.len())..])
}

/// The complete strings in an element's text, each with its quotes.
fn closed_strings(written: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut string, mut from) = (Quoting::Outside, 0);
    written.iter().enumerate().filter_map(move |(at, &byte)| {
        let before = string;
        string = string.after(byte);
        match (before, string) {
            (Quoting::Outside, Quoting::Within) => {
                from = at;
                None
            }
            (Quoting::Within, Quoting::Outside) => Some(&written[from..=at]),
            _ => None,
        }
    })
}

/// The canonical spelling of the escape with this letter; `None` where more characters belong to the escape.
fn canonical_escape(letter: u8) -> Option<&'static [u8]> {
    Some(match letter {
        b'"' => b"\\\"",
        b'\\' => b"\\\\",
        b'/' => b"/",
        b'b' => b"\\u0008",
        b't' => b"\\u0009",
        b'n' => b"\\u000a",
        b'f' => b"\\u000c",
        b'r' => b"\\u000d",
        _ => return None,
    })
}

/// An open string in canonical spelling; `None` within an escape.
fn canonical_beginning(open: &[u8]) -> Option<Vec<u8>> {
    if !open.contains(&b'\\') {
        return Some(open.to_vec());
    }
    if !begun(open).escape.is_empty() {
        return None;
    }
    let mut spelled = canonical_json(&[open, b"\""].concat());
    spelled.pop();
    Some(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::used_strings::Strings;

    #[test]
    fn escapes_are_spelled_as_in_canonical_text() {
        for letter in 0..=u8::MAX {
            if let Some(spelled) = canonical_escape(letter) {
                let text = [b"\"\\", &[letter][..], b"\""].concat();
                assert_eq!(canonical_json(&text), [b"\"", spelled, b"\""].concat(), "{}", char::from(letter));
            }
        }
    }

    #[test]
    fn strings_are_new_that_no_element_has() {
        let values = [&b"\"ab\""[..], b"[\"ab\\u000ac\",1]", b"\"/\""].map(<[u8]>::to_vec);
        let seen = Strings::default().with(values);
        let from = |open: &[u8]| StringsSeen::new(open.to_vec(), UsedStrings::new(vec![seen.clone()]));
        let new: [(&[u8], &[u8]); 9] = [
            (b"\"a", b"c"),
            (b"\"a", b"bc"),
            (b"\"a", b"\""),
            (b"\"a", b"\\n"),
            (b"\"ab", b"\\nd"),
            (b"\"ab", b"\\\\"),
            (b"\"", b"x\",\"y\""),
            (b"\"", b"\\\""),
            (b"\"ab", b"\\t\"]"),
        ];
        for (open, bytes) in new {
            assert!(from(open).are_not_in(bytes), "{:?} {:?}", open.escape_ascii(), bytes.escape_ascii());
        }
        let known: [(&[u8], &[u8]); 9] = [
            (b"\"a", b"b"),
            (b"\"a", b"b\""),
            (b"\"ab", b"\\n"),
            (b"\"ab", b"\\nc\""),
            (b"\"ab", b"\\u000a"),
            (b"\"", b"\\/"),
            (b"\"", b"x\",\"x\""),
            (b"\"", b"x\",1"),
            (b"\"", b"x\",\""),
        ];
        for (open, bytes) in known {
            assert!(!from(open).are_not_in(bytes), "{:?} {:?}", open.escape_ascii(), bytes.escape_ascii());
        }
    }
}
