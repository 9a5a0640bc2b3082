//! The names of one object as a trie, so that an object with hundreds of declared keys needs no automaton of its own.
//!
//! A state is a node of the trie. Which names may still come is not part of the trie but a [`Filter`] beside it, so
//! that one trie serves an object from its first member to its last.
//!
//! The values of a constant or an `enum` are such texts, too. They belong to one grammar; an automaton shared by all
//! grammars would take ten times as long to make, and would hardly ever be reused.

use std::cmp::Ordering;
use std::ops::Range;

use rustc_hash::FxHashSet;
use stencilm_grammar::{DeclaredMember, Grammar, Members};
use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet, StateId, Tag, Texts};
use stencilm_support::memory;

use crate::vocabulary::trie::Nodes;

/// The tag of a reserved name that no plainly spelled member has: either no member has it, or the member's key has
/// several spellings and is read by an automaton.
const ONLY_RESERVED: Tag = Tag::MAX;

/// Which declared members may come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Filter {
    /// A range of members, both ends included.
    Range {
        /// The first.
        from: Tag,
        /// The last.
        to: Tag,
    },
    /// The members that are not in this set of bits.
    Unseen(Box<[u64]>),
    /// The members that are in this set of bits.
    Among(Box<[u64]>),
}

impl Filter {
    /// Whether this member may come.
    pub fn allows(&self, tag: Tag) -> bool {
        match self {
            Filter::Range { from, to } => (*from..=*to).contains(&tag),
            Filter::Unseen(seen) => {
                tag != ONLY_RESERVED && seen.get(tag as usize / 64).is_none_or(|word| word & (1 << (tag % 64)) == 0)
            }
            Filter::Among(set) => set.get(tag as usize / 64).is_some_and(|word| word & (1 << (tag % 64)) != 0),
        }
    }
}

/// A spelled name, as a range of a text that holds all of them.
struct Spelled {
    text: Range<usize>,
    tag: Tag,
}

impl Spelled {
    fn of<'t>(&self, texts: &'t [u8]) -> &'t [u8] {
        &texts[self.text.clone()]
    }
}

/// The plainly spelled names of one object, quotes included.
pub struct Names {
    trie: Nodes,
    /// The member of each entry of the trie.
    tags: Vec<Tag>,
    /// The least and the greatest member below every node; the least is above the greatest where there is none.
    bounds: Vec<(Tag, Tag)>,
    /// Entries, with the classes whose additional keys may have that name after all; usually none.
    not_reserved: FxHashSet<(u32, u32)>,
    /// Declared members whose keys have more spellings than the plain one.
    pub others: Vec<u32>,
}

impl Names {
    /// The names of an object of this grammar.
    pub fn new(grammar: &Grammar, members: &Members) -> Names {
        let named = || members.declared.iter().filter(|known| known.key.is_none());
        let mut texts: Vec<u8> = Vec::with_capacity(named().map(DeclaredMember::plain_len).sum());
        let mut spelled: Vec<Spelled> = Vec::with_capacity(members.declared.len());
        let mut others = Vec::new();
        for (index, known) in members.declared.iter().enumerate() {
            let start = texts.len();
            let is_text = match known.key {
                None => {
                    quote(&known.name, &mut texts);
                    true
                }
                Some(key) => spell(grammar.exprs(), key, &mut texts),
            };
            match is_text {
                true => spelled.push(Spelled { text: start..texts.len(), tag: index as Tag }),
                false => others.push(index as u32),
            }
        }
        // If a member and a reserved name have the same spelling, the member is kept: nearly all reserved names are
        // members.
        let order = |texts: &[u8], a: &Spelled, b: &Spelled| (a.of(texts), a.tag).cmp(&(b.of(texts), b.tag));
        spelled.sort_unstable_by(|a, b| order(&texts, a, b));
        let num_known = spelled.len();
        for name in
            members.additional.iter().flat_map(|additional| additional.reserved.iter()).filter(|name| is_plain(name))
        {
            if spelled[..num_known].binary_search_by(|known| against_quoted(known.of(&texts), name)).is_err() {
                let start = texts.len();
                quote(name, &mut texts);
                spelled.push(Spelled { text: start..texts.len(), tag: ONLY_RESERVED });
            }
        }
        if spelled.len() > num_known {
            spelled.sort_unstable_by(|a, b| order(&texts, a, b));
        }
        spelled.dedup_by(|b, a| a.of(&texts) == b.of(&texts));
        let mut not_reserved = FxHashSet::default();
        for (class, additional) in members.additional.iter().enumerate() {
            if additional.reserved.iter().filter(|name| is_plain(name)).count() == spelled.len() {
                continue;
            }
            for (entry, known) in spelled.iter().enumerate() {
                let within = known.of(&texts).strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
                let find = |name| additional.reserved.binary_search_by(|reserved| reserved.as_bytes().cmp(name)).ok();
                if within.and_then(find).is_none() {
                    not_reserved.insert((entry as u32, class as u32));
                }
            }
        }
        Names { not_reserved, others, ..Names::spelled(&texts, &spelled) }
    }

    /// A trie of texts that all have the tag 0.
    pub fn of_texts(all: &Texts) -> Names {
        let mut texts = Vec::with_capacity(all.total_len());
        let mut spelled: Vec<Spelled> = Vec::with_capacity(all.len());
        for text in all.iter() {
            let start = texts.len();
            texts.extend_from_slice(text);
            spelled.push(Spelled { text: start..texts.len(), tag: 0 });
        }
        spelled.sort_unstable_by(|a, b| a.of(&texts).cmp(b.of(&texts)));
        spelled.dedup_by(|b, a| a.of(&texts) == b.of(&texts));
        Names::spelled(&texts, &spelled)
    }

    /// Builds the trie from distinct ranges of a text, sorted by their content.
    fn spelled(texts: &[u8], spelled: &[Spelled]) -> Names {
        let entries = spelled.iter().enumerate().map(|(entry, known)| (known.of(texts), entry as u32));
        let trie = Nodes::within(texts.len(), entries);
        let tags: Vec<Tag> = spelled.iter().map(|known| known.tag).collect();
        let mut bounds = vec![(Tag::MAX, 0); trie.len()];
        let mut path: Vec<usize> = Vec::new();
        for node in 0..trie.len() {
            path.truncate(trie.depth(node) - 1);
            path.push(node);
            let Some(entry) = trie.entry_at(node) else { continue };
            let tag = tags[entry as usize];
            if tag != ONLY_RESERVED {
                for &above in &path {
                    let (least, greatest) = &mut bounds[above];
                    (*least, *greatest) = ((*least).min(tag), (*greatest).max(tag));
                }
            }
        }
        let (not_reserved, others) = (FxHashSet::default(), Vec::new());
        Names { trie, tags, bounds, not_reserved, others }
    }

    /// No names.
    pub fn none() -> Names {
        Names::spelled(&[], &[])
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_shared::<Names>(1)
            + self.trie.memory_bytes()
            + memory::of_list(&self.tags)
            + memory::of_list(&self.bounds)
            + memory::of_list(&self.others)
            + memory::of_table::<(u32, u32)>(self.not_reserved.capacity())
    }

    /// The range of nodes below a state.
    #[inline]
    fn children(&self, state: StateId) -> (usize, usize) {
        match state.0 {
            0 => (0, 0),
            1 => (0, self.trie.len()),
            _ => self.trie.children(state.0 as usize - 2),
        }
    }

    /// The live bytes of a state, if all names may come.
    pub fn next_bytes(&self, state: StateId) -> ByteSet {
        let (mut child, end) = self.children(state);
        let mut bytes = ByteSet::EMPTY;
        while child < end {
            bytes.insert(self.trie.byte(child));
            child += self.trie.size(child);
        }
        bytes
    }

    /// Those of some bytes that are live if only certain names may come.
    pub fn bytes_of(&self, filter: &Filter, state: StateId, bytes: &ByteSet) -> ByteSet {
        let (mut child, end) = self.children(state);
        let mut live = ByteSet::EMPTY;
        while child < end {
            let byte = self.trie.byte(child);
            if bytes.contains(byte) && self.is_alive(filter, StateId(child as u32 + 2)) {
                live.insert(byte);
            }
            child += self.trie.size(child);
        }
        live
    }

    /// The state after one byte, if all names may come.
    #[inline]
    pub fn next(&self, state: StateId, byte: u8) -> StateId {
        self.trie.sibling(self.children(state), byte).map_or(StateId::DEAD, |child| StateId(child as u32 + 2))
    }

    /// The state after one byte if only certain names may come, and whether one of these is complete there.
    #[inline]
    pub fn step(&self, filter: &Filter, state: StateId, byte: u8) -> (StateId, bool) {
        let next = self.next(state, byte);
        if next == StateId::DEAD || !self.is_alive(filter, next) {
            return (StateId::DEAD, false);
        }
        (next, self.is_complete(filter, next))
    }

    /// Whether this state completes a name that may come.
    #[inline]
    pub fn is_complete(&self, filter: &Filter, state: StateId) -> bool {
        self.accepts(state).iter().any(|&tag| filter.allows(tag))
    }

    /// The member whose name this state completes.
    #[inline]
    pub fn accepts(&self, state: StateId) -> &[Tag] {
        if state.0 < 2 {
            return &[];
        }
        match self.trie.entry_at(state.0 as usize - 2) {
            Some(entry) => &self.tags[entry as usize..][..1],
            None => &[],
        }
    }

    /// Whether this state completes a name that the additional keys of this class exclude.
    #[inline]
    pub fn is_reserved(&self, state: StateId, class: u32) -> bool {
        state.0 >= 2
            && self
                .trie
                .entry_at(state.0 as usize - 2)
                .is_some_and(|entry| self.not_reserved.is_empty() || !self.not_reserved.contains(&(entry, class)))
    }

    /// Whether this is a name in plain spelling.
    pub fn has(&self, name: &[u8]) -> bool {
        let mut spelled = b"\"".iter().chain(name).chain(b"\"");
        let state = spelled.try_fold(StateId::START, |state, &byte| {
            Some(self.next(state, byte)).filter(|&state| state != StateId::DEAD)
        });
        state.is_some_and(|state| !self.accepts(state).is_empty())
    }

    /// Whether some name that may come continues after this state, which may itself complete one.
    pub fn goes_on(&self, filter: &Filter, state: StateId) -> bool {
        let (mut child, end) = self.children(state);
        while child < end {
            if self.is_alive(filter, StateId(child as u32 + 2)) {
                return true;
            }
            child += self.trie.size(child);
        }
        false
    }

    /// The number of nodes of the trie below a state, at least the number of names that may come.
    pub fn size_after(&self, state: StateId) -> usize {
        let (first, end) = self.nodes_after(state);
        end - first
    }

    fn nodes_after(&self, state: StateId) -> (usize, usize) {
        match state.0 {
            0 => (0, 0),
            1 => (0, self.trie.len()),
            _ => self.trie.children(state.0 as usize - 2),
        }
    }

    fn depth_of(&self, state: StateId) -> usize {
        if state.0 < 2 { 0 } else { self.trie.depth(state.0 as usize - 2) }
    }

    /// The names that may come, without the part that was read already.
    pub fn rests(&self, filter: &Filter, state: StateId) -> Vec<(Tag, Vec<u8>)> {
        let (nodes, depth) = (self.nodes_after(state), self.depth_of(state));
        let (mut rests, mut text) = (Vec::new(), Vec::new());
        for node in nodes.0..nodes.1 {
            text.truncate(self.trie.depth(node) - depth - 1);
            text.push(self.trie.byte(node));
            let tag = self.trie.entry_at(node).map(|entry| self.tags[entry as usize]);
            rests.extend(tag.filter(|&tag| filter.allows(tag)).map(|tag| (tag, text.clone())));
        }
        rests
    }

    /// Whether this state lies on the path of a name that may come.
    pub fn is_alive(&self, filter: &Filter, state: StateId) -> bool {
        let node = state.0 as usize - 2;
        let (least, greatest) = self.bounds[node];
        if least > greatest {
            return false;
        }
        if let Filter::Range { from, to } = *filter
            && (greatest < from || least > to)
        {
            return false;
        }
        // Both members have names below this node, and one of them may nearly always still come.
        if filter.allows(least) || filter.allows(greatest) {
            return true;
        }
        self.trie.entries_below(node).any(|entry| filter.allows(self.tags[entry as usize]))
    }
}

/// Whether a name needs no escapes in a JSON string.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
}

/// Appends a name in quotes.
fn quote(name: &str, texts: &mut Vec<u8>) {
    texts.push(b'"');
    texts.extend_from_slice(name.as_bytes());
    texts.push(b'"');
}

/// Compares a text with a name in quotes.
fn against_quoted(text: &[u8], name: &str) -> Ordering {
    let Some((first, text)) = text.split_first() else { return Ordering::Less };
    let (within, after) = text.split_at(text.len().min(name.len()));
    first.cmp(&b'"').then_with(|| within.cmp(&name.as_bytes()[..within.len()])).then_with(|| match within.len() {
        len if len < name.len() => Ordering::Less,
        _ => after.cmp(b"\""),
    })
}

/// Appends the only text that an expression matches, if the expression is a chain of single bytes; returns whether it
/// is.
fn spell(exprs: &ExprSet, expr: ExprId, texts: &mut Vec<u8>) -> bool {
    let start = texts.len();
    let mut rest = Some(expr);
    while let Some(expr) = rest {
        let (head, tail) = match *exprs.get(expr) {
            Expr::Concat { head, tail } => (head, Some(tail)),
            _ => (expr, None),
        };
        let byte = match exprs.get(head) {
            Expr::Bytes(set) => set.single(),
            Expr::Text(text) => {
                texts.extend_from_slice(text.as_bytes());
                rest = tail;
                continue;
            }
            _ => None,
        };
        let Some(byte) = byte else {
            texts.truncate(start);
            return false;
        };
        texts.push(byte);
        rest = tail;
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_are_compared_with_names_as_these_are_written(text in "[ !\"ab]{0,5}", name in "[ !ab]{0,4}") {
            let mut written = Vec::new();
            quote(&name, &mut written);
            prop_assert_eq!(against_quoted(text.as_bytes(), &name), text.as_bytes().cmp(&written[..]));
            prop_assert_eq!(against_quoted(&written, &name), Ordering::Equal);
        }
    }
}
