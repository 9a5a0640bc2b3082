//! The ids that the single tokens of a grammar refer to in a vocabulary.

use std::cell::LazyCell;
use std::sync::Arc;
use stencilm_support::{HashMap, HashSet, memory, unless_ended};

use rustc_hash::FxHashMap;
use stencilm_grammar::{Grammar, Node, NodeId, TokenPattern};

use crate::error::EngineError;
use crate::vocabulary::tokens::Tokens;

/// The number of names that an error proposes in place of an unknown special token.
const PROPOSED_NAMES: usize = 3;

/// A set of token ids, as ascending ranges with both ends included; no two ranges touch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct IdSet {
    ranges: Box<[(u32, u32)]>,
}

/// The ids of every token node of a grammar.
#[derive(Default)]
pub(crate) struct TokenEdges {
    sets: FxHashMap<NodeId, IdSet>,
}

impl IdSet {
    fn new(mut ranges: Vec<(u32, u32)>) -> IdSet {
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (from, to) in ranges {
            match joined.last_mut() {
                Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        IdSet { ranges: joined.into() }
    }

    /// Whether an id is in the set.
    pub fn contains(&self, id: u32) -> bool {
        let after = self.ranges.partition_point(|&(from, _)| from <= id);
        after > 0 && id <= self.ranges[after - 1].1
    }

    /// The ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|&(from, to)| from..=to)
    }
}

impl TokenEdges {
    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let ranges: usize = self.sets.values().map(|set| memory::of_slice::<(u32, u32)>(set.ranges.len())).sum();
        memory::of_shared::<TokenEdges>(1) + memory::of_table::<(NodeId, IdSet)>(self.sets.capacity()) + ranges
    }

    /// Computes the ids of every token node.
    ///
    /// # Errors
    /// [`EngineError::UnknownToken`], [`EngineError::TokenOutOfRange`] and [`EngineError::NoTokenLeft`] for a node to
    /// which no token of the vocabulary belongs.
    pub fn new(grammar: &Grammar, tokens: &Tokens) -> Result<TokenEdges, EngineError> {
        let mut sets: FxHashMap<NodeId, IdSet> = FxHashMap::default();
        let mut known: HashMap<&TokenPattern, NodeId> = HashMap::default();
        for (index, node) in grammar.nodes().iter().enumerate() {
            if let Node::Token(pattern) = node {
                let id = NodeId(index as u32);
                let set = match known.insert(pattern, id) {
                    Some(same) => sets[&same].clone(),
                    None => ids(pattern, tokens)?,
                };
                sets.insert(id, set);
            }
        }
        Ok(TokenEdges { sets })
    }

    /// Whether the grammar names any single tokens.
    pub fn any(&self) -> bool {
        !self.sets.is_empty()
    }

    /// The ids of a token node.
    pub fn ids(&self, node: NodeId) -> &IdSet {
        &self.sets[&node]
    }
}

/// The grammar without optional special tokens that the vocabulary does not have, and without token nodes that exclude
/// every token.
pub(crate) fn without_missing_tokens(grammar: Arc<Grammar>, tokens: &Tokens) -> Result<Arc<Grammar>, EngineError> {
    // Few grammars name any, and a vocabulary may have hundreds.
    let special: LazyCell<HashSet<&str>, _> =
        LazyCell::new(|| tokens.special_tokens().iter().map(|(_, name)| &**name).collect());
    let is_missing = |pattern: &TokenPattern| match pattern {
        TokenPattern::IfSpecial(name) => !special.contains(&**name),
        TokenPattern::Others { .. } | TokenPattern::Ids { negated: true, .. } => {
            matches!(ids(pattern, tokens), Err(EngineError::NoTokenLeft))
        }
        TokenPattern::Special(_) | TokenPattern::Ids { .. } => false,
    };
    match unless_ended(|| grammar.without_tokens(is_missing))? {
        Ok(Some(fewer)) => Ok(Arc::new(fewer)),
        Ok(None) => Ok(grammar),
        Err(_) => Err(EngineError::NoTokenLeft),
    }
}

fn ids(pattern: &TokenPattern, tokens: &Tokens) -> Result<IdSet, EngineError> {
    let vocab_size = tokens.vocab_size();
    match pattern {
        TokenPattern::Special(name) | TokenPattern::IfSpecial(name) => named(name, tokens),
        TokenPattern::Others { ids, names } => {
            let mut left_out: Vec<(u32, u32)> = Vec::new();
            for &id in ids {
                if id as usize >= vocab_size {
                    return Err(EngineError::TokenOutOfRange { from: id, to: id, vocab_size });
                }
                left_out.push((id, id));
            }
            for name in names {
                left_out.extend(&named(name, tokens)?.ranges);
            }
            others(&IdSet::new(left_out), tokens)
        }
        TokenPattern::Ids { ranges, negated } => {
            for &(from, to) in ranges {
                if from > to || to as usize >= vocab_size {
                    return Err(EngineError::TokenOutOfRange { from, to, vocab_size });
                }
            }
            let named = IdSet::new(ranges.to_vec());
            if *negated { others(&named, tokens) } else { Ok(named) }
        }
    }
}

/// The special tokens with a name, or else the tokens that spell it.
fn named(name: &str, tokens: &Tokens) -> Result<IdSet, EngineError> {
    let special = tokens.special_tokens().iter().filter(|(_, special)| **special == *name);
    let mut ids: Vec<(u32, u32)> = special.map(|&(id, _)| (id, id)).collect();
    if ids.is_empty() {
        let spells = |&id: &u32| tokens.token_bytes(id) == Some(name.as_bytes());
        ids = (0..tokens.vocab_size() as u32).filter(spells).map(|id| (id, id)).collect();
    }
    if ids.is_empty() {
        let way_out = way_out(name, tokens.special_tokens());
        return Err(EngineError::UnknownToken { name: name.to_string(), way_out });
    }
    Ok(IdSet::new(ids))
}

/// All tokens except these and the stop tokens.
fn others(left_out: &IdSet, tokens: &Tokens) -> Result<IdSet, EngineError> {
    let special = |id: u32| tokens.special_tokens().binary_search_by_key(&id, |&(special, _)| special).is_ok();
    let is_token = |id: u32| tokens.token_bytes(id).is_some() || special(id);
    let stops = |id: u32| tokens.stop_token_ids().binary_search(&id).is_ok();
    let left = (0..tokens.vocab_size() as u32).filter(|&id| is_token(id) && !stops(id) && !left_out.contains(id));
    let left = IdSet::new(left.map(|id| (id, id)).collect());
    if left.ranges.is_empty() { Err(EngineError::NoTokenLeft) } else { Ok(left) }
}

/// The advice in an error about a name that no special token has.
fn way_out(name: &str, special: &[(u32, String)]) -> String {
    if special.is_empty() {
        return "the vocabulary has none at all; write its text or its id instead".into();
    }
    let mut near: Vec<(usize, &str)> = special.iter().map(|(_, other)| (distance(name, other), &**other)).collect();
    near.sort_unstable();
    near.dedup();
    let near: Vec<String> = near.iter().take(PROPOSED_NAMES).map(|(_, name)| format!("{name:?}")).collect();
    format!("the nearest of {} are {}", special.len(), near.join(", "))
}

/// The edit distance (Levenshtein 1966); very long names are truncated.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (line, other) in b.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, own) in a.iter().enumerate() {
            let changed = diagonal + usize::from(*own != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[a.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::token_set;

    #[test]
    fn ranges_are_joined_and_asked() {
        let set = IdSet::new(vec![(7, 9), (1, 2), (3, 3), (8, 12)]);
        assert_eq!(*set.ranges, [(1, 3), (7, 12)]);
        let inside: Vec<u32> = (0..20).filter(|&id| set.contains(id)).collect();
        assert_eq!(inside, [1, 2, 3, 7, 8, 9, 10, 11, 12]);
        let mut mask = [0];
        set.iter().for_each(|id| token_set::set(&mut mask, id));
        assert_eq!(mask, [0b1_1111_1000_1110]);
    }

    #[test]
    fn distances() {
        for (a, b, expected) in [("", "abc", 3), ("<|tool|>", "<|tools|>", 1), ("kitten", "sitting", 3), ("a", "a", 0)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
