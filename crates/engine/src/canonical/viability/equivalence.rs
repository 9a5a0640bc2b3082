//! Equivalent tokens: after them the grammar is in the same place, so one look at what comes next decides for all.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;

use crate::canonical::cursor::table::{CursorId, Cursors};
use crate::canonical::encoder::facts::Encoder;

/// Tokens after which the grammar stands at the same place.
#[derive(Default)]
pub(crate) struct Equivalence {
    /// Bytes before each of which all of them keep their ends.
    pub settling: ByteSet,
    pub groups: Vec<EquivalenceClass>,
}

/// Those that are equivalent to the tokenizer, too, as far as the next characters show.
pub(crate) struct EquivalenceClass {
    /// Bytes before each of which they keep their ends.
    pub settling: ByteSet,
    /// The cursors after them, where no merge joins them with the token before and where one does.
    pub after: [Option<CursorId>; 2],
    /// Each with the number that it was given.
    pub tokens: Vec<(u32, u32)>,
    /// Once it is known of all whether they are viable, whatever follows: whether all of them are.
    decided: OnceLock<bool>,
}

impl EquivalenceClass {
    /// Those of the tokens that are here, by their numbers and themselves.
    pub fn here(&self, is_here: impl Fn(u32, u32) -> bool + Clone) -> impl Iterator<Item = u32> + Clone {
        self.tokens.iter().filter(move |&&(number, token)| is_here(number, token)).map(|&(_, token)| token)
    }

    /// Whether all of them are viable, whatever follows and whatever token stands before: known once searches have
    /// decided each, at all cursors after it.
    pub fn decided(&self, answer: impl Fn(u32, CursorId) -> Option<bool>) -> Option<bool> {
        if self.decided.get().is_none() {
            let mut all = true;
            for &(_, token) in &self.tokens {
                for &cursor in self.after.iter().flatten() {
                    all &= answer(token, cursor)?;
                }
            }
            self.decided.get_or_init(|| all);
        }
        self.decided.get().copied()
    }
}

impl Equivalence {
    /// Those of some tokens, each with a number, that come at a cursor.
    pub fn new(
        encoding: &Encoder,
        cursors: &mut Cursors,
        cursor: CursorId,
        tokens: impl Iterator<Item = (u32, u32)>,
    ) -> Equivalence {
        let mut equivalence = Equivalence { settling: ByteSet::ALL, groups: Vec::new() };
        let mut numbers: FxHashMap<([Option<CursorId>; 2], u32), usize> = FxHashMap::default();
        for (number, token) in tokens {
            let after = cursors.advance_both(encoding, cursor, token);
            let key = (after, encoding.merges.merging_number(token));
            let group = *numbers.entry(key).or_insert_with(|| {
                let settling = after.iter().flatten().fold(ByteSet::ALL, |settling, &after| {
                    encoding.settling_bytes(cursors.key(after), token, &settling)
                });
                equivalence.settling = equivalence.settling.intersect(&settling);
                equivalence.groups.push(EquivalenceClass {
                    settling,
                    after,
                    tokens: Vec::new(),
                    decided: OnceLock::new(),
                });
                equivalence.groups.len() - 1
            });
            equivalence.groups[group].tokens.push((number, token));
        }
        equivalence
    }

    /// Whether all of them keep their ends before some of these bytes.
    pub fn keep_ends_before(&self, bytes: &ByteSet) -> bool {
        let is_before = |settling: &ByteSet| !bytes.intersect(settling).is_empty();
        is_before(&self.settling) || self.groups.iter().all(|group| is_before(&group.settling))
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let groups = self.groups.iter().map(|group| size_of::<EquivalenceClass>() + group.tokens.len() * 8);
        size_of::<Equivalence>() + groups.sum::<usize>()
    }
}
