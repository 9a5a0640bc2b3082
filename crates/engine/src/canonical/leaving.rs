//! Tokens that leave lexemes, by the suffixes with which they go on behind them.
//!
//! Nearly all lexemes that many tokens leave end with the same byte, so what the tokenizer makes of those tokens at a place is
//! kept with the vocabulary for all of them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Encoding;
use super::alike::Alike;
use super::places::{Place, Places};
use super::sure::{MAX_KEPT, SureRows};
use crate::exits::Exits;
use crate::row::Row;

/// What is known of tokens by one list of suffixes, by place.
pub(super) struct LeavingAt {
    /// Kept, so that no other suffixes get their place in memory.
    _row: Arc<Row>,
    /// By number of the suffix, one more for tokens that end with the lexeme; as far as it was asked for.
    at: FxHashMap<Place, Box<[Option<Alike>]>>,
}

impl LeavingAt {
    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let known = self.at.values().flat_map(|all| all.iter().flatten().map(Alike::memory_bytes));
        known.sum::<usize>() + self.at.values().map(|all| all.len() * size_of::<Option<Alike>>()).sum::<usize>()
    }
}

impl SureRows {
    /// What is known of tokens that leave a row through exits of it, at a place.
    pub fn leaving<'s>(&'s mut self, row: &Arc<Row>, exits: &'s Exits, place: Place) -> LeavingHere<'s> {
        let suffixes = exits.suffixes();
        let name = std::ptr::from_ref(suffixes) as usize;
        if self.leaving.len() >= MAX_KEPT && !self.leaving.contains_key(&name) {
            self.leaving.clear();
        }
        let kept = self.leaving.entry(name);
        let kept = kept.or_insert_with(|| LeavingAt { _row: row.clone(), at: FxHashMap::default() });
        if kept.at.len() >= MAX_KEPT && !kept.at.contains_key(&place) {
            kept.at.clear();
        }
        let known = kept.at.entry(place).or_insert_with(|| (0..=exits.num_suffixes()).map(|_| None).collect());
        LeavingHere { exits, place, known }
    }
}

/// What is known of tokens that leave through the same exits at a place.
pub(super) struct LeavingHere<'s> {
    exits: &'s Exits,
    place: Place,
    known: &'s mut [Option<Alike>],
}

impl LeavingHere<'_> {
    /// The tokens that leave with a suffix, perhaps some more, each with its way; or those that end with the lexeme.
    pub fn with(&mut self, encoding: &Encoding, places: &mut Places, suffix: Option<u32>) -> &Alike {
        let (exits, place) = (self.exits, self.place);
        self.known[suffix.map_or(exits.num_suffixes(), |suffix| suffix as usize)].get_or_insert_with(|| {
            let trie = encoding.tokens().trie();
            match suffix {
                Some(suffix) => Alike::new(encoding, places, place, exits.all_ways(suffix).iter().copied()),
                None => {
                    let tokens = exits.nodes().filter_map(|node| Some((0, trie.entry_at(node as usize)?)));
                    Alike::new(encoding, places, place, tokens)
                }
            }
        })
    }
}
