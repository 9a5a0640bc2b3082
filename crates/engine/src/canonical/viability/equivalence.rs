//! Equivalent tokens: the grammar is in the same configuration after them, so one look at what comes next decides for
//! all.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;

use crate::canonical::cursor::table::{CursorId, Cursors};
use crate::canonical::encoder::facts::Encoder;

/// Tokens after which the grammar is in the same configuration.
#[derive(Default)]
pub(crate) struct Equivalence {
    /// Bytes that settle the ends of all of them.
    pub settling: ByteSet,
    pub groups: Vec<EquivalenceClass>,
}

/// Tokens that are also equivalent to the tokenizer, as far as the next characters show.
pub(crate) struct EquivalenceClass {
    /// Bytes that settle their ends.
    pub settling: ByteSet,
    /// The cursors after them, where no merge joins them with the token before and where one does.
    pub after: [Option<CursorId>; 2],
    /// Each with the number that was given for it.
    pub tokens: Vec<(u32, u32)>,
    /// Set once it is known for all tokens whether they are viable, whatever follows: whether all of them are.
    decided: OnceLock<bool>,
}

impl EquivalenceClass {
    /// The tokens for which `is_here` holds, given their numbers and themselves.
    pub fn here(&self, is_here: impl Fn(u32, u32) -> bool + Clone) -> impl Iterator<Item = u32> + Clone {
        self.tokens.iter().filter(move |&&(number, token)| is_here(number, token)).map(|&(_, token)| token)
    }

    /// Whether all of them are viable, whatever follows and whatever token comes before: known once searches have
    /// decided each, for all cursors after it.
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
    /// Groups some tokens, each with a number, that follow a cursor.
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

    /// Whether the ends of all of them are settled by some of these bytes.
    pub fn keep_ends_before(&self, bytes: &ByteSet) -> bool {
        let is_before = |settling: &ByteSet| !bytes.intersect(settling).is_empty();
        is_before(&self.settling) || self.groups.iter().all(|group| is_before(&group.settling))
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let groups = self.groups.iter().map(|group| size_of::<EquivalenceClass>() + group.tokens.len() * 8);
        size_of::<Equivalence>() + groups.sum::<usize>()
    }
}
