//! The persistent memory of one matcher: hash-consed stacks, configurations and registers, undone by truncation.
//!
//! A stack is a linked list of frames in which a frame may have several parents (a graph-structured stack, Scott &
//! Johnstone 2010), so that ambiguous grammars stay polynomial. A *set* is a sorted list of entries; a configuration
//! is a set whose entries are automaton states, and everything below is a set of frames to go on with. Equal sets are
//! one id, and ids grow upwards, so that `rewind` to an earlier mark forgets exactly what came later.

use std::hash::{BuildHasher, BuildHasherDefault, Hash};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// A set of entries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SetId(pub u32);

impl SetId {
    /// No entry: no way on.
    pub const EMPTY: SetId = SetId(0);
    /// The end of the text, and nothing else.
    pub const BOTTOM: SetId = SetId(1);
}

/// One thread of a configuration, or one frame of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Entry {
    /// In a configuration the fork, in a stack the frame; `Entry::BOTTOM.head` for the end of the text.
    pub head: u32,
    /// What the head remembers: a count, or the id of [`MembersState`].
    pub register: u32,
    /// In a configuration the automaton state; 0 in a stack.
    pub state: u32,
    /// Where to go on when the head is done.
    pub below: SetId,
}

impl Entry {
    /// The end of the text.
    pub const BOTTOM: Entry = Entry { head: u32::MAX, register: 0, state: 0, below: SetId::EMPTY };
}

/// What a JSON object remembers of its members so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct MembersState {
    /// Declared order: the first known member that may still come.
    pub next: u32,
    /// Any order: the known members seen, as a set of the machine.
    pub known: u32,
    /// The free keys seen, as a list of texts; 0 for none.
    pub seen: u32,
    /// The key that is being written, as a text; 0 outside of free keys.
    pub text: u32,
    /// The state of the object's names after that text.
    pub name: u32,
}

/// A list cell: an element and the list before it. Texts are lists of bytes, `seen` is a list of texts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cell {
    /// The list without its last element.
    pub before: u32,
    /// The last element.
    pub last: u32,
}

/// Values that are equal exactly when their ids are. Id 0 is the default value given to `new`.
#[derive(Clone)]
struct Interner<T> {
    values: Vec<T>,
    index: HashTable<u32>,
}

fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(value)
}

impl<T: Copy + Eq + Hash> Interner<T> {
    fn new(zero: T) -> Interner<T> {
        let mut interner = Interner { values: Vec::new(), index: HashTable::new() };
        interner.intern(zero);
        interner
    }

    fn intern(&mut self, value: T) -> u32 {
        let hash = hash_of(&value);
        if let Some(&known) = self.index.find(hash, |&id| self.values[id as usize] == value) {
            return known;
        }
        let id = self.values.len() as u32;
        self.values.push(value);
        let values = &self.values;
        self.index.insert_unique(hash, id, |&id| hash_of(&values[id as usize]));
        id
    }

    fn truncate(&mut self, len: usize) {
        while self.values.len() > len {
            let id = self.values.len() as u32 - 1;
            let value = self.values.pop().expect("the loop runs only while there are values");
            if let Ok(slot) = self.index.find_entry(hash_of(&value), |&known| known == id) {
                slot.remove();
            }
        }
    }
}

/// How much a [`Stacks`] held at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    sets: usize,
    entries: usize,
    members: usize,
    cells: usize,
}

/// The memory of one matcher.
#[derive(Clone)]
pub struct Stacks {
    entries: Vec<Entry>,
    spans: Vec<(u32, u32)>,
    index: HashTable<u32>,
    members: Interner<MembersState>,
    cells: Interner<Cell>,
    watch: Option<Watch>,
}

/// Which sets were looked at, of those that were there before.
#[derive(Clone)]
struct Watch {
    before: u32,
    reads: Vec<SetId>,
}

/// The empty list of texts or bytes.
pub const NIL: u32 = 0;

impl Stacks {
    /// A memory that holds [`SetId::EMPTY`] and [`SetId::BOTTOM`].
    pub fn new() -> Stacks {
        let mut stacks = Stacks {
            entries: Vec::new(),
            spans: Vec::new(),
            index: HashTable::new(),
            members: Interner::new(MembersState::default()),
            cells: Interner::new(Cell { before: u32::MAX, last: u32::MAX }),
            watch: None,
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

    /// From now on remembers the sets of today that are looked at, in the order of the first look.
    pub fn watch(&mut self) {
        self.watch = Some(Watch { before: self.spans.len() as u32, reads: Vec::new() });
    }

    /// The sets that were looked at since [`Stacks::watch`], which ends here.
    pub fn unwatch(&mut self) -> Vec<SetId> {
        self.watch.take().map_or_else(Vec::new, |watch| watch.reads)
    }

    /// Says that the content of a stack set decides what comes next.
    pub fn look_at(&mut self, set: SetId) {
        if let Some(watch) = &mut self.watch
            && set.0 < watch.before
            && !watch.reads.contains(&set)
        {
            watch.reads.push(set);
        }
    }

    /// The set of one frame.
    pub fn push(&mut self, frame: u32, register: u32, below: SetId) -> SetId {
        self.intern(&[Entry { head: frame, register, state: 0, below }])
    }

    /// The set with what lies below a frame in place of that frame.
    pub fn without(&mut self, frame: u32, set: SetId) -> SetId {
        self.look_at(set);
        let (mut kept, mut below) = (Vec::new(), Vec::new());
        for &entry in self.entries(set) {
            if entry.head == frame { below.push(entry.below) } else { kept.push(entry) }
        }
        match below[..] {
            [] => set,
            [only] if kept.is_empty() => only,
            _ => {
                for set in below {
                    self.look_at(set);
                    kept.extend_from_slice(self.entries(set));
                }
                kept.sort_unstable();
                kept.dedup();
                self.intern(&kept)
            }
        }
    }

    /// Sorts threads, and joins those that differ only in what lies below to one.
    pub fn join(&mut self, threads: &mut Vec<Entry>) {
        if threads.len() < 2 {
            return;
        }
        threads.sort_unstable();
        threads.dedup();
        let mut kept = 0;
        for index in 1..threads.len() {
            let (entry, last) = (threads[index], threads[kept]);
            if (entry.head, entry.register, entry.state) == (last.head, last.register, last.state) {
                threads[kept].below = self.union(last.below, entry.below);
            } else {
                kept += 1;
                threads[kept] = entry;
            }
        }
        threads.truncate(kept + 1);
    }

    /// The configuration of these threads.
    pub fn configuration(&mut self, threads: &mut Vec<Entry>) -> SetId {
        self.join(threads);
        self.intern(threads)
    }

    fn union(&mut self, a: SetId, b: SetId) -> SetId {
        self.look_at(a);
        self.look_at(b);
        let mut both = [self.entries(a), self.entries(b)].concat();
        both.sort_unstable();
        both.dedup();
        self.intern(&both)
    }

    fn intern(&mut self, set: &[Entry]) -> SetId {
        let hash = hash_of(set);
        let (entries, spans) = (&self.entries, &self.spans);
        let at = |id: u32| {
            let (start, len) = spans[id as usize];
            &entries[start as usize..][..len as usize]
        };
        if let Some(&known) = self.index.find(hash, |&id| at(id) == set) {
            return SetId(known);
        }
        let id = self.spans.len() as u32;
        self.index.insert_unique(hash, id, |&id| hash_of(at(id)));
        self.spans.push((self.entries.len() as u32, set.len() as u32));
        self.entries.extend_from_slice(set);
        SetId(id)
    }

    /// What an object remembers.
    pub fn members(&self, id: u32) -> MembersState {
        self.members.values[id as usize]
    }

    /// The id of what an object remembers; 0 is an object without members so far.
    pub fn intern_members(&mut self, state: MembersState) -> u32 {
        self.members.intern(state)
    }

    /// The list with one more element.
    pub fn append(&mut self, before: u32, last: u32) -> u32 {
        self.cells.intern(Cell { before, last })
    }

    /// The elements of a list, last first.
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

    /// A text as bytes.
    pub fn text(&self, text: u32) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.list(text).map(|byte| byte as u8).collect();
        bytes.reverse();
        bytes
    }

    /// The text of these bytes.
    pub fn intern_text(&mut self, bytes: &[u8]) -> u32 {
        bytes.iter().fold(NIL, |text, &byte| self.append(text, u32::from(byte)))
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        self.entries.len() * size_of::<Entry>()
            + self.spans.len() * 16
            + (self.members.values.len() * 2 + self.cells.values.len()) * 16
    }

    /// Remembers how much there is now.
    pub fn mark(&self) -> Mark {
        Mark {
            sets: self.spans.len(),
            entries: self.entries.len(),
            members: self.members.values.len(),
            cells: self.cells.values.len(),
        }
    }

    /// Forgets what came after the mark.
    pub fn rewind(&mut self, mark: Mark) {
        for id in (mark.sets..self.spans.len()).rev() {
            let hash = hash_of(self.entries(SetId(id as u32)));
            if let Ok(slot) = self.index.find_entry(hash, |&known| known == id as u32) {
                slot.remove();
            }
        }
        self.spans.truncate(mark.sets);
        self.entries.truncate(mark.entries);
        self.members.truncate(mark.members);
        self.cells.truncate(mark.cells);
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
    fn threads_that_differ_below_only_are_joined() {
        let mut stacks = Stacks::new();
        let a = stacks.push(1, 0, SetId::BOTTOM);
        let b = stacks.push(2, 0, SetId::BOTTOM);
        let config = stacks.configuration(&mut vec![thread(5, b), thread(5, a), thread(4, a), thread(5, a)]);
        let heads: Vec<_> = stacks.entries(config).iter().map(|entry| entry.head).collect();
        assert_eq!(heads, [4, 5]);
        let joined = stacks.entries(config)[1].below;
        assert_eq!(stacks.entries(joined).len(), 2);
        let again = stacks.configuration(&mut vec![thread(5, joined), thread(4, a), thread(5, a)]);
        assert_eq!(again, config, "joining what is already in it changes nothing");
    }

    #[test]
    fn texts_are_lists_of_bytes() {
        let mut stacks = Stacks::new();
        let text = stacks.intern_text(b"key");
        assert_eq!(stacks.text(text), b"key");
        assert_eq!(stacks.intern_text(b"key"), text);
        assert_eq!(stacks.intern_text(b""), NIL);
    }
}
