//! The persistent memory of one matcher: hash-consed stacks, configurations and registers, undone by truncation.
//!
//! A stack is a linked list of frames in which a frame may have several parents (a graph-structured stack, Scott &
//! Johnstone 2010), so that ambiguous grammars stay polynomial. A *set* is a sorted list of entries; a configuration is
//! a set whose entries are automaton states, and everything below is a set of frames to go on with. Equal sets have one
//! id, and ids only increase, so that `rewind` to an earlier mark forgets exactly what came later.

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;
use stencilm_support::{Interner, LOOKED_AT, Table, check_time, hash_of, memory};

use crate::error::EngineError;
pub use crate::state::ids::{NIL, SetId, UNKNOWN_TEXT};
use crate::state::reads::Reads;
use crate::state::unions::Unions;
use crate::state::used_lists::{SeenLists, SeenMark};
use crate::state::used_strings::{KeptStrings, Strings};
use crate::switches::Switch;

/// What the grammar's marks say about a set of frames and what lies below.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Holds {
    pub budget: bool,
    pub temperature: bool,
}

/// One thread of a configuration, or one frame of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Entry {
    /// In a configuration the number of an expansion, in a stack that of a frame; `Entry::BOTTOM.head` is the end of
    /// the text.
    pub head: u32,
    /// What the head remembers: a count, or the id of a [`MembersState`] or an [`ItemsState`].
    pub register: u32,
    /// In a configuration the automaton state; 0 in a stack.
    pub state: u32,
    /// The set to continue with when the head is complete.
    pub below: SetId,
}

impl Entry {
    /// The end of the text.
    pub const BOTTOM: Entry = Entry { head: u32::MAX, register: 0, state: 0, below: SetId::EMPTY };
}

/// What a JSON object remembers of its members so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct MembersState {
    /// The first ordered member that may still come.
    pub next: u32,
    /// The unordered declared members used, as a set of the machine.
    pub known: u32,
    /// The additional keys used, as a list in [`Stacks::seen`]; 0 for none.
    pub seen: u32,
    /// The additional key being written, as a text; 0 outside such keys.
    pub text: u32,
    /// The state of the trie of the object's names after that text.
    pub name: u32,
    /// The number of members, and bits of the required values that some member has, as a pair. It stays 0, which means
    /// 0 for both, where members are not counted.
    pub tally: u32,
}

/// What a JSON array remembers of its elements so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ItemsState {
    /// The number of elements.
    pub place: u32,
    /// The counters, as a list; 0 where all are 0.
    pub counts: u32,
    /// The values so far, where they are compared, as a list in [`Stacks::seen`]; 0 for none.
    pub seen: u32,
    /// The text before the current element, where it is compared.
    pub start: u32,
    /// The texts before and after each element, as a list, where two elements must be equal.
    pub spelled: u32,
    /// Whether two elements were equal, where some must be. Then no more elements are compared, and the earlier ones
    /// are forgotten.
    pub has_repeat: bool,
}

impl ItemsState {
    /// Whether an optimistic mask takes the last element for a repeated one; then the earlier elements are not
    /// forgotten.
    pub fn takes_for_repeat(self) -> bool {
        self.has_repeat && self.seen != NIL
    }
}

/// A cell of a linked list: an element, and the list before it. Texts are lists of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cell {
    /// The list without its last element.
    pub before: u32,
    /// The last element.
    pub last: u32,
}

/// The number of entries that one operation may visit: about a second of work. Very ambiguous grammars reach it.
const MAX_WORK: usize = 30_000_000;

/// The number of further entries for every byte that it reads.
const WORK_PER_BYTE: usize = 100;

/// The additional keys that objects may have used, approximately.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SeenKeys {
    /// The empty key, which has no first byte.
    empty: bool,
    /// The first bytes of the other keys.
    first: ByteSet,
}

/// The size of a [`Stacks`] at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    seen_keys: SeenKeys,
    sets: usize,
    members: usize,
    items: usize,
    cells: usize,
    seen: SeenMark,
    starts: usize,
    unions: usize,
}

/// The memory of one matcher.
#[derive(Clone)]
pub struct Stacks {
    entries: Vec<Entry>,
    spans: Vec<(u32, u32)>,
    index: Table,
    members: Interner<MembersState>,
    items: Interner<ItemsState>,
    cells: Interner<Cell>,
    /// The threads that start at a set, for sets that lead to many others, and these sets in the order in which they
    /// were added.
    starts: FxHashMap<SetId, Box<[Entry]>>,
    started: Vec<SetId>,
    /// Cached unions of sets.
    pub(super) unions: Unions,
    /// What the first sets hold, where the grammar has marks.
    holds: Vec<Holds>,
    /// The additional keys that objects have used, approximately.
    pub seen_keys: SeenKeys,
    /// The keys and elements that objects and arrays have used.
    pub seen: SeenLists,
    seen_strings: KeptStrings,
    /// The reads of sets, where they are tracked.
    pub(crate) reads: Reads,
    /// If set, threads that differ only in what lies below are not joined: only the first one is kept.
    pub thin: bool,
    /// Whether any thread was not kept for that reason.
    pub is_thinned: bool,
    /// How many more entries the operation may visit.
    work_left: usize,
    /// How many bytes it may hold.
    max_bytes: usize,
    /// Whether something was rewound since the allocated memory was last shrunk.
    is_rewound: bool,
}

/// In place of a list of names: an unknown name was declared.
pub const UNKNOWN_NAMES: u32 = u32::MAX;

impl Stacks {
    /// A memory that holds [`SetId::EMPTY`] and [`SetId::BOTTOM`].
    pub fn new() -> Stacks {
        let mut stacks = Stacks {
            entries: Vec::new(),
            spans: Vec::new(),
            index: Table::default(),
            members: Interner::new(MembersState::default()),
            items: Interner::new(ItemsState::default()),
            cells: Interner::new(Cell { before: u32::MAX, last: u32::MAX }),
            starts: FxHashMap::default(),
            started: Vec::new(),
            unions: Unions::default(),
            holds: Vec::new(),
            seen_keys: SeenKeys::default(),
            seen: SeenLists::new(),
            seen_strings: KeptStrings::default(),
            reads: Reads::default(),
            thin: false,
            is_thinned: false,
            work_left: MAX_WORK,
            max_bytes: usize::MAX,
            is_rewound: false,
        };
        let empty = stacks.intern(&[]);
        let bottom = stacks.intern(&[Entry::BOTTOM]);
        debug_assert_eq!((empty, bottom), (SetId::EMPTY, SetId::BOTTOM));
        stacks
    }

    /// The entries of a set, ascending.
    #[inline]
    pub fn entries(&self, set: SetId) -> &[Entry] {
        let (start, len) = self.spans[set.0 as usize];
        &self.entries[start as usize..][..len as usize]
    }

    /// Whether the set contains the end of the text.
    #[inline]
    pub fn has_bottom(&self, set: SetId) -> bool {
        self.entries(set).last() == Some(&Entry::BOTTOM)
    }

    /// How many entries the operation has visited beyond those allowed for the bytes that it read.
    pub fn spent(&self) -> usize {
        MAX_WORK.saturating_sub(self.work_left)
    }

    /// Begins an operation, which may hold `max_bytes` bytes and visit [`MAX_WORK`] entries.
    pub fn begin(&mut self, max_bytes: usize) {
        if std::mem::take(&mut self.is_rewound) && self.memory_bytes() > max_bytes {
            // Unused capacity counts as held; a copy has none.
            *self = self.clone();
        }
        self.max_bytes = max_bytes;
        self.work_left = MAX_WORK;
    }

    /// Allows the work of reading some bytes.
    pub fn allow(&mut self, bytes: usize) {
        self.work_left = self.work_left.saturating_add(bytes.saturating_mul(WORK_PER_BYTE));
    }

    /// Counts the work on some entries.
    ///
    /// # Errors
    /// When the operation has done too much work or the memory is full. After rewinding, the memory can be used again.
    pub fn spend(&mut self, entries: usize) -> Result<(), EngineError> {
        check_time()?;
        self.work_left = self.work_left.checked_sub(entries).ok_or(EngineError::StacksTooCostly(MAX_WORK))?;
        if self.memory_bytes() > self.max_bytes { Err(EngineError::StacksFull(self.max_bytes)) } else { Ok(()) }
    }

    /// Records that the content of a set decides what comes next.
    #[inline]
    pub fn look_at(&mut self, set: SetId) {
        self.reads.note(set);
    }

    /// The threads that start at a set, if they are cached. They were found by reading many sets, more than can be
    /// listed.
    pub fn starts(&mut self, set: SetId) -> Option<&[Entry]> {
        let known = self.starts.get(&set).filter(|_| Switch::StateStarts.is_on())?;
        self.reads.note_too_many();
        Some(known)
    }

    /// Caches the threads that start at a set.
    pub fn keep_starts(&mut self, set: SetId, threads: &[Entry]) {
        if self.starts.insert(set, threads.into()).is_none() {
            self.started.push(set);
        }
    }

    /// What a set holds, if [`Stacks::extend_holds`] has already been called for it.
    pub fn holds(&self, set: SetId) -> Holds {
        self.holds.get(set.0 as usize).copied().unwrap_or_default()
    }

    /// Computes what each new set holds. The sets below a set are older, so their results are there already.
    pub fn extend_holds(&mut self, ask: impl Fn(&[Holds], &[Entry]) -> Holds) {
        for id in self.holds.len()..self.spans.len() {
            let (start, len) = self.spans[id];
            let here = ask(&self.holds, &self.entries[start as usize..][..len as usize]);
            self.holds.push(here);
        }
    }

    /// The set of these entries; `None` if there are none.
    pub fn stack_of(&mut self, mut entries: Vec<Entry>) -> Option<SetId> {
        entries.sort();
        entries.dedup();
        (!entries.is_empty()).then(|| self.intern(&entries))
    }

    /// The union of several sets.
    pub fn either(&mut self, sets: &[SetId]) -> SetId {
        let Some((&first, others)) = sets.split_first() else { return SetId::EMPTY };
        if others.iter().all(|&set| set == first) {
            return first;
        }
        let entries: Vec<Entry> = sets.iter().flat_map(|&set| self.entries(set)).copied().collect();
        self.stack_of(entries).unwrap_or(SetId::EMPTY)
    }

    /// The set of a single frame.
    pub fn push(&mut self, frame: u32, register: u32, below: SetId) -> SetId {
        self.intern(&[Entry { head: frame, register, state: 0, below }])
    }

    /// The set in which a frame is replaced by what lies below it.
    ///
    /// # Errors
    /// As [`Stacks::spend`].
    pub fn without(&mut self, frame: u32, set: SetId) -> Result<SetId, EngineError> {
        self.look_at(set);
        self.spend(self.entries(set).len())?;
        let (mut kept, mut below) = (Vec::new(), Vec::new());
        for &entry in self.entries(set) {
            if entry.head == frame { below.push(entry.below) } else { kept.push(entry) }
        }
        match below[..] {
            [] => Ok(set),
            [only] if kept.is_empty() => Ok(only),
            _ => self.union(&below, kept),
        }
    }

    /// Sorts threads and merges those that differ only in what lies below. If the stacks are [`Stacks::thin`], only the
    /// first of these is kept.
    ///
    /// # Errors
    /// As [`Stacks::spend`].
    pub fn join(&mut self, threads: &mut Vec<Entry>) -> Result<(), EngineError> {
        if threads.len() < 2 {
            return Ok(());
        }
        self.spend(threads.len())?;
        // The stable sort is fast for long sorted runs, of which there are often some.
        threads.sort();
        threads.dedup();
        let is_same = |a: &Entry, b: &Entry| (a.head, a.register, a.state) == (b.head, b.register, b.state);
        let (mut kept, mut from) = (0, 0);
        while from < threads.len() {
            let first = threads[from];
            let to = from + threads[from..].iter().take_while(|entry| is_same(entry, &first)).count();
            threads[kept] = first;
            if to - from > 1 && self.thin {
                self.is_thinned = true;
            } else if to - from > 1 {
                let below: Vec<SetId> = threads[from..to].iter().map(|entry| entry.below).collect();
                threads[kept].below = self.union(&below, Vec::new())?;
            }
            (kept, from) = (kept + 1, to);
        }
        threads.truncate(kept);
        Ok(())
    }

    /// The configuration of these threads.
    ///
    /// # Errors
    /// As [`Stacks::spend`].
    pub fn configuration(&mut self, threads: &mut Vec<Entry>) -> Result<SetId, EngineError> {
        self.join(threads)?;
        Ok(self.intern(threads))
    }

    /// The set of these entries and the entries of these sets.
    fn union(&mut self, sets: &[SetId], mut entries: Vec<Entry>) -> Result<SetId, EngineError> {
        for &set in sets {
            self.look_at(set);
            self.spend(self.entries(set).len() + 1)?;
            entries.extend_from_slice(self.entries(set));
        }
        entries.sort();
        entries.dedup();
        // While reads are tracked, a merged set would hide which sets were read, and is forgotten soon anyway.
        if !self.reads.are_tracked()
            && !self.thin
            && let Some(merged) = self.merged(&entries)?
        {
            return Ok(merged);
        }
        Ok(self.intern(&entries))
    }

    pub(super) fn intern(&mut self, set: &[Entry]) -> SetId {
        let hash = hash_of(set);
        let (entries, spans) = (&self.entries, &self.spans);
        let at = |id: u32| {
            let (start, len) = spans[id as usize];
            &entries[start as usize..][..len as usize]
        };
        if let Some(known) = self.index.find(hash, |id| at(id) == set) {
            return SetId(known);
        }
        let id = self.spans.len() as u32;
        self.index.insert(hash, id);
        self.spans.push((self.entries.len() as u32, set.len() as u32));
        self.entries.extend_from_slice(set);
        SetId(id)
    }

    /// The state of an object with this id.
    pub fn members(&self, id: u32) -> MembersState {
        self.members.values[id as usize]
    }

    /// The id of an object's state; 0 is an object without members.
    pub fn intern_members(&mut self, state: MembersState) -> u32 {
        self.members.intern(state)
    }

    /// The state of an array with this id.
    pub fn items(&self, id: u32) -> ItemsState {
        self.items.values[id as usize]
    }

    /// The id of an array's state; 0 is an array without elements.
    pub fn intern_items(&mut self, state: ItemsState) -> u32 {
        self.items.intern(state)
    }

    /// Two numbers as a pair with an id of its own; (0, 0) is [`NIL`].
    pub fn pair(&mut self, first: u32, second: u32) -> u32 {
        if (first, second) == (0, 0) { NIL } else { self.append(first, second) }
    }

    /// The numbers of a pair.
    pub fn unpair(&self, pair: u32) -> (u32, u32) {
        if pair == NIL {
            return (0, 0);
        }
        let cell = self.cells.values[pair as usize];
        (cell.before, cell.last)
    }

    /// The list with one more element.
    pub fn append(&mut self, before: u32, last: u32) -> u32 {
        self.cells.intern(Cell { before, last })
    }

    /// The elements of a list, the last one first.
    pub fn list(&self, mut list: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::from_fn(move || {
            if list == NIL {
                return None;
            }
            let cell = self.cells.values[list as usize];
            list = cell.before;
            Some(cell.last)
        })
    }

    /// The bytes of a text.
    pub fn text(&self, text: u32) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.list(text).map(|byte| byte as u8).collect();
        bytes.reverse();
        bytes
    }

    /// The bytes that a text has after an earlier one.
    pub fn since(&self, mut text: u32, earlier: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        while text != earlier && text != NIL {
            let cell = self.cells.values[text as usize];
            bytes.push(cell.last as u8);
            text = cell.before;
        }
        bytes.reverse();
        bytes
    }

    /// The strings among the elements of a list.
    pub fn seen_strings(&mut self, list: u32) -> Strings {
        let (mut at, mut new) = (list, Vec::new());
        let known = loop {
            if let Some(known) = self.seen_strings.of(at) {
                break known.clone();
            }
            let Some((before, last)) = self.seen.last(at) else { break Strings::default() };
            if last != UNKNOWN_TEXT {
                new.push(self.text(last));
            }
            at = before;
        };
        if at == list {
            return known;
        }
        let strings = known.with(new);
        self.seen_strings.keep(list, strings.clone());
        strings
    }

    /// The id of the text with these bytes.
    pub fn intern_text(&mut self, bytes: &[u8]) -> u32 {
        bytes.iter().fold(NIL, |text, &byte| self.append(text, u32::from(byte)))
    }

    /// The id of the text with these bytes, if it already has one.
    pub fn known_text(&self, bytes: &[u8]) -> Option<u32> {
        bytes.iter().try_fold(NIL, |before, &byte| self.cells.find(Cell { before, last: u32::from(byte) }))
    }

    /// The text of an additional key that an object now has.
    pub fn intern_key(&mut self, key: &[u8]) -> u32 {
        match key.first() {
            Some(&first) => self.seen_keys.first.insert(first),
            None => self.seen_keys.empty = true,
        }
        self.intern_text(key)
    }

    /// Whether an object may have used this additional key, or one with the same first byte.
    pub fn has_seen_key(&self, key: &[u8]) -> bool {
        match key.first() {
            Some(&first) => self.seen_keys.first.contains(first) && self.known_text(key).is_some(),
            None => self.seen_keys.empty,
        }
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_list(&self.holds)
            + memory::of_list(&self.entries)
            + self.started.len() * 4 * size_of::<Entry>()
            + memory::of_list(&self.spans)
            + self.index.memory_bytes()
            + self.members.memory_bytes()
            + self.items.memory_bytes()
            + self.cells.memory_bytes()
            + self.seen.memory_bytes()
            + self.unions.memory_bytes()
    }

    /// The number of sets, which is also the number of the next new set.
    pub fn num_sets(&self) -> u32 {
        self.spans.len() as u32
    }

    /// Remembers the current size.
    pub fn mark(&self) -> Mark {
        Mark {
            seen_keys: self.seen_keys,
            sets: self.spans.len(),
            members: self.members.values.len(),
            items: self.items.values.len(),
            cells: self.cells.values.len(),
            seen: self.seen.mark(),
            starts: self.started.len(),
            unions: self.unions.len(),
        }
    }

    /// Forgets all but the first `first` sets.
    pub(super) fn forget_sets(&mut self, first: u32) {
        if self.spans.len() > 2 * first as usize + LOOKED_AT {
            let (entries, spans) = (&self.entries, &self.spans[..first as usize]);
            let set = |&(start, len): &(u32, u32)| &entries[start as usize..][..len as usize];
            self.index.begin_anew(spans.iter().zip(0..).map(|(span, id)| (hash_of(set(span)), id)));
        } else {
            for id in (first..self.num_sets()).rev() {
                self.index.remove(hash_of(self.entries(SetId(id))), id);
            }
        }
        if let Some(&(entries, _)) = self.spans.get(first as usize) {
            self.entries.truncate(entries as usize);
            self.spans.truncate(first as usize);
        }
    }

    /// Forgets everything that came after the mark.
    pub fn rewind(&mut self, mark: Mark) {
        self.is_rewound = true;
        self.forget_sets(mark.sets as u32);
        self.unions.truncate(mark.unions);
        for set in self.started.drain(mark.starts..) {
            self.starts.remove(&set);
        }
        self.seen_keys = mark.seen_keys;
        self.holds.truncate(mark.sets);
        self.members.truncate(mark.members);
        self.items.truncate(mark.items);
        self.cells.truncate(mark.cells);
        self.seen.rewind(mark.seen);
        self.seen_strings.truncate(mark.seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(head: u32, below: SetId) -> Entry {
        Entry { head, register: 0, state: 7, below }
    }

    #[test]
    fn equal_sets_share_an_id_and_rewind_forgets() {
        let mut stacks = Stacks::new();
        let a = stacks.push(1, 0, SetId::BOTTOM);
        let mark = stacks.mark();
        let b = stacks.push(2, 0, a);
        assert_eq!(stacks.push(2, 0, a), b);
        stacks.rewind(mark);
        assert_eq!(stacks.push(1, 0, SetId::BOTTOM), a);
        assert_eq!(stacks.push(3, 0, a), b, "the id is free again");
        assert_eq!(stacks.entries(b)[0].head, 3);
    }

    #[test]
    fn of_many_sets_that_are_forgotten_the_others_stay() {
        let mut stacks = Stacks::new();
        let kept: Vec<SetId> = (0..9).map(|head| stacks.push(head, 0, SetId::BOTTOM)).collect();
        let mark = stacks.mark();
        for head in 9..4 * LOOKED_AT as u32 {
            stacks.push(head, 0, SetId::BOTTOM);
        }
        stacks.rewind(mark);
        let again: Vec<SetId> = (0..9).map(|head| stacks.push(head, 0, SetId::BOTTOM)).collect();
        assert_eq!((again, stacks.mark().sets), (kept, mark.sets));
        assert_eq!(stacks.push(100, 0, SetId::BOTTOM).0 as usize, mark.sets, "the id is free again");
    }

    #[test]
    fn threads_that_differ_below_only_are_joined() {
        let mut stacks = Stacks::new();
        let a = stacks.push(1, 0, SetId::BOTTOM);
        let b = stacks.push(2, 0, SetId::BOTTOM);
        let config = stacks.configuration(&mut vec![thread(5, b), thread(5, a), thread(4, a), thread(5, a)]).unwrap();
        let heads: Vec<_> = stacks.entries(config).iter().map(|entry| entry.head).collect();
        assert_eq!(heads, [4, 5]);
        let joined = stacks.entries(config)[1].below;
        assert_eq!(stacks.entries(joined).len(), 2);
        let again = stacks.configuration(&mut vec![thread(5, joined), thread(4, a), thread(5, a)]).unwrap();
        assert_eq!(again, config, "joining what is already in it changes nothing");
    }

    #[test]
    fn texts_are_lists_of_bytes() {
        let mut stacks = Stacks::new();
        let text = stacks.intern_text(b"key");
        assert_eq!(stacks.text(text), b"key");
        assert_eq!(stacks.intern_text(b"key"), text);
        assert_eq!(stacks.intern_text(b""), NIL);
        assert!(!stacks.has_seen_key(b"key"));
        assert_eq!(stacks.intern_key(b"key"), text);
        assert!(stacks.has_seen_key(b"key") && stacks.has_seen_key(b"ke"));
        assert!(!stacks.has_seen_key(b"keys") && !stacks.has_seen_key(b"ey") && !stacks.has_seen_key(b""));
        stacks.intern_key(b"");
        assert!(stacks.has_seen_key(b""));
    }
}
