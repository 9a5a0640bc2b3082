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
    at: FxHashMap<Place, Vec<Option<Arc<Alike>>>>,
}

impl LeavingAt {
    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let known = self.at.values().flat_map(|all| all.iter().flatten().map(|alike| alike.memory_bytes()));
        known.sum::<usize>() + self.at.values().map(|all| all.len() * 8).sum::<usize>()
    }
}

impl SureRows {
    /// The tokens that leave with a suffix through exits of a row, perhaps some more, each with its way; or those that end
    /// with the lexeme.
    pub fn leaving(
        &mut self,
        encoding: &Encoding,
        places: &mut Places,
        (row, exits): (&Arc<Row>, &Exits),
        place: Place,
        suffix: Option<u32>,
    ) -> Arc<Alike> {
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
        let all = kept.at.entry(place).or_insert_with(|| vec![None; exits.num_suffixes() + 1]);
        let known = all[suffix.map_or(exits.num_suffixes(), |suffix| suffix as usize)].get_or_insert_with(|| {
            let trie = encoding.tokens().trie();
            Arc::new(match suffix {
                Some(suffix) => Alike::new(encoding, places, place, exits.all_ways(suffix).iter().copied()),
                None => {
                    let tokens = exits.nodes().filter_map(|node| Some((0, trie.entry_at(node as usize)?)));
                    Alike::new(encoding, places, place, tokens)
                }
            })
        });
        known.clone()
    }
}
