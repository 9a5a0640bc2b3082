//! What a finder found, and the lexeme mask made from it: the tokens contained in the lexeme, and the nodes of the trie
//! at which the lexeme ends.

use std::sync::Arc;

use stencilm_regex::StateId;
use stencilm_support::{LOOKED_AT, SEARCHED};

use crate::lexeme::cache::LexemeCache;
use crate::lexeme::crossing::{CrossingTokens, Crossings};
use crate::lexeme::find::finder::Start;
use crate::lexeme::mask::LexemeMask;
use crate::switches::Switch;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::Trie;

/// If more nodes than this are below the ends, they are not searched for crossing tokens.
pub(crate) const MAX_BELOW_ENDS: usize = 2 * SEARCHED;

/// The tokens contained in a lexeme, in the form in which they were found.
pub(crate) enum Inside {
    Set(TokenSet),
    Listed(Vec<u32>),
}

/// The nodes at which a lexeme matches, with its states there.
#[derive(Default)]
pub(crate) struct Ends {
    nodes: Vec<(u32, StateId)>,
    /// The number of nodes below the ends in each state; `None` for a state that does not match.
    below: Vec<Option<usize>>,
}

impl Ends {
    /// Whether so many nodes are below the ends in a state that no more of these are listed.
    pub(crate) fn is_full(&self, state: u32) -> bool {
        self.below.get(state as usize).is_some_and(|below| below.is_some_and(|below| below > MAX_BELOW_ENDS))
    }

    /// The nodes, each with the state that matches there; there may be duplicates.
    #[cfg(test)]
    pub(crate) fn nodes(&self) -> &[(u32, StateId)] {
        &self.nodes
    }

    #[inline]
    pub(crate) fn push(&mut self, vocabulary: &Tokens, node: usize, state: StateId) {
        let index = state.0 as usize;
        if index >= self.below.len() {
            self.below.resize(index + 1, None);
        }
        let below = self.below[index].get_or_insert(0);
        if *below <= MAX_BELOW_ENDS {
            *below += vocabulary.trie().size(node) - 1;
            self.nodes.push((node as u32, state));
        }
    }
}

impl LexemeCache {
    /// The mask with these tokens and these ends.
    pub(crate) fn mask_with(&mut self, vocabulary: &Tokens, from: Start, inside: Inside, ends: Ends) -> LexemeMask {
        let Ends { nodes: mut ends, below } = ends;
        // A walk may pass a node twice, if a token without a category string goes on from it.
        ends.sort_unstable_by_key(|&(node, _)| node);
        ends.dedup();
        let total: usize = below.iter().flatten().sum();
        let byte = only_byte_before(vocabulary.trie(), &ends);
        // Sorting the suffixes after a byte takes as long as some hundred small masks.
        let byte = byte.filter(|_| Switch::LexemeSuffixes.is_on());
        let byte = byte.filter(|byte| total >= LOOKED_AT || self.suffixes.contains_key(byte));
        let shared = byte.and_then(|byte| self.suffixes_after(vocabulary, byte));
        let automaton = &self.dfas[from.dfa.0 as usize];
        let accepts = |state| if from.one { &[0] } else { automaton.accepts(state) };
        let states = (0..below.len() as u32).filter(|&state| below[state as usize].is_some());
        let mut endings: Vec<Box<[u32]>> = states.map(|state| accepts(StateId(state)).into()).collect();
        endings.sort_unstable();
        endings.dedup();
        // The ends are grouped by what matches there. The group of each state is computed beforehand.
        let group_of = |state| {
            let known = endings.binary_search_by(|known| (**known).cmp(accepts(state)));
            known.expect("all sets that match together are listed")
        };
        let groups: Vec<usize> = (0..below.len() as u32)
            .map(|state| if below[state as usize].is_some() { group_of(StateId(state)) } else { 0 })
            .collect();
        let mut nodes: Vec<Vec<u32>> = vec![Vec::new(); endings.len()];
        let mut below_group = vec![0; endings.len()];
        ends.iter().for_each(|&(node, state)| nodes[groups[state.0 as usize]].push(node));
        below.iter().zip(&groups).for_each(|(below, &group)| below_group[group] += below.unwrap_or(0));
        let trie = vocabulary.trie();
        // Where a text can end almost everywhere, its ending may still match at few nodes.
        let mut kept = Vec::with_capacity(endings.len());
        let mut unkept = Vec::new();
        for (group, residuals) in endings.into_iter().enumerate() {
            let tokens_below = || nodes[group].iter().flat_map(|&node| trie.entries_below(node as usize));
            let few = below_group[group] <= MAX_BELOW_ENDS
                && (shared.is_some() || tokens_below().nth(SEARCHED).is_none())
                && Switch::LexemeCrossings.is_on();
            if !few {
                unkept.push(residuals);
                continue;
            }
            let nodes = nodes[group].iter().copied();
            kept.push(match &shared {
                Some(shared) => CrossingTokens::known(Crossings::through(&residuals, shared.clone(), nodes)),
                None => CrossingTokens::through(vocabulary, &residuals, nodes),
            });
        }
        let all = unkept.is_empty();
        let crossings = (all || !kept.is_empty()).then(|| Arc::new(kept));
        let mask = match inside {
            Inside::Set(inside) => LexemeMask::of_set(inside, crossings, unkept.into()),
            Inside::Listed(tokens) => LexemeMask::of_tokens(vocabulary.vocab_size(), tokens, crossings, unkept.into()),
        };
        if all { mask.with_ends(ends.into_iter().map(|(node, _)| node).collect::<Vec<_>>()) } else { mask }
    }
}

/// The byte by which all these nodes are reached, if there is only one.
fn only_byte_before(trie: &Trie, ends: &[(u32, StateId)]) -> Option<u8> {
    let mut bytes = ends.iter().map(|&(node, _)| trie.byte(node as usize));
    let first = bytes.next()?;
    bytes.all(|byte| byte == first).then_some(first)
}
