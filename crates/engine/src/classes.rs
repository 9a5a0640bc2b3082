//! Runs of characters: how many characters of a class every token of a vocabulary begins with.
//!
//! That does not depend on what a lexeme asks for, so one walk of the vocabulary serves every lexeme that goes on with
//! characters of the class, as the body of a JSON string does. A string near its greatest length has the row of an
//! endless one without the tokens that are too long; and what follows a run of `C{8}-...` is looked for only at the
//! places where a run of eight characters has ended.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet};

use crate::row::{Exits, Row};
use crate::tokens::Tokens;
use crate::tokenset::{self, TokenSet};
use crate::trie::Trie;

/// For so many characters the tokens that are no longer are kept as a set, once it was asked for.
const FEW_ROUNDS: usize = 24;

/// An expression of the form `C{min,max}X`, where `C` is one character.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Run {
    /// One character.
    pub character: ExprId,
    /// The least number of characters.
    pub min: u32,
    /// The greatest number of characters.
    pub max: Option<u32>,
    /// What follows them.
    pub tail: ExprId,
}

impl Run {
    /// The parts of an expression of that form, where something follows in any case.
    pub fn of(exprs: &ExprSet, expr: ExprId) -> Option<Run> {
        let Expr::Concat { head, tail } = *exprs.get(expr) else { return None };
        let Expr::Repeat { body: character, min, max } = *exprs.get(head) else { return None };
        let plain = !exprs.is_nullable(character) && !exprs.has_boolean(character) && !exprs.is_nullable(tail);
        plain.then_some(Run { character, min, max, tail })
    }
}

/// What a walk of the vocabulary found, in the order of the trie.
#[derive(Default)]
pub struct Found {
    /// Tokens that read characters only, the last perhaps not to its end, each with the number of characters begun.
    pub within: Vec<(u32, u32)>,
    /// Nodes of the trie behind whole characters whose byte begins none, each with the number of characters before.
    pub stops: Vec<(u32, u32)>,
}

/// The places where runs of characters stop before one byte.
pub struct Stops {
    /// The byte.
    pub byte: u8,
    /// Nodes of the vocabulary's trie, each with the number of characters before it.
    pub nodes: Vec<(u32, u32)>,
    /// The ways to these nodes; an entry is a position among them. Laid out when it is asked for.
    paths: Option<Trie>,
}

/// What is behind characters and one byte of a set, which ends the lexeme.
struct Ending {
    /// Tokens that end the lexeme with their last byte, with their number of characters.
    ended: Vec<(u32, u32)>,
    /// The most characters before an end.
    most_before_end: u32,
    exits: Arc<Vec<Exits>>,
    ends: Vec<u32>,
    escaped_ends: Vec<(u32, Box<[u8]>)>,
}

/// The tokens of a vocabulary by their characters of one class.
pub struct ClassRuns {
    /// Tokens that read characters only, those with fewer first.
    tokens: Vec<u32>,
    /// For every number of characters begun, the first token in `tokens` that begins so many.
    starts: Vec<u32>,
    /// Those of at most so many characters, for few.
    few: Vec<Option<TokenSet>>,
    /// Those of any number.
    any: TokenSet,
    /// By byte.
    stops: Vec<Stops>,
    endings: FxHashMap<ByteSet, Ending>,
}

impl ClassRuns {
    /// Sorts what was found.
    pub fn new(vocabulary: &Tokens, found: Found) -> ClassRuns {
        let trie = vocabulary.trie();
        let rounds = found.within.iter().map(|&(rounds, _)| rounds as usize + 1).max().unwrap_or(0);
        let mut starts = vec![0u32; rounds + 1];
        found.within.iter().for_each(|&(rounds, _)| starts[rounds as usize + 1] += 1);
        for rounds in 1..starts.len() {
            starts[rounds] += starts[rounds - 1];
        }
        let mut tokens = vec![0; found.within.len()];
        let mut places = starts.clone();
        let mut any = TokenSet::empty(vocabulary.vocab_size());
        for (rounds, token) in found.within {
            let place = &mut places[rounds as usize];
            tokens[*place as usize] = token;
            *place += 1;
            tokenset::set(any.words_mut(), token);
        }
        let mut stops: Vec<Stops> = Vec::new();
        let mut place_of = [usize::MAX; 256];
        for (node, rounds) in found.stops {
            let byte = trie.byte(node as usize);
            let place = &mut place_of[usize::from(byte)];
            if *place == usize::MAX {
                *place = stops.len();
                stops.push(Stops { byte, nodes: Vec::new(), paths: None });
            }
            stops[*place].nodes.push((node, rounds));
        }
        let few = vec![None; FEW_ROUNDS.min(rounds)];
        ClassRuns { tokens, starts, few, any, stops, endings: FxHashMap::default() }
    }

    /// The tokens that read at most so many characters, and nothing else.
    pub fn within(&mut self, max: Option<u32>) -> TokenSet {
        let rounds = self.starts.len() - 1;
        let Some(most) = max.map(|max| max as usize).filter(|&most| most + 1 < rounds) else {
            return self.any.clone();
        };
        if let Some(Some(known)) = self.few.get(most) {
            return known.clone();
        }
        let (shorter, longer) = self.tokens.split_at(self.starts[most + 1] as usize);
        let set = if shorter.len() < longer.len() {
            let mut set = TokenSet::empty(self.any.words().len() * 32);
            shorter.iter().for_each(|&token| tokenset::set(set.words_mut(), token));
            set
        } else {
            let mut set = self.any.clone();
            longer.iter().for_each(|&token| tokenset::clear(set.words_mut(), token));
            set
        };
        if let Some(place) = self.few.get_mut(most) {
            *place = Some(set.clone());
        }
        set
    }

    /// Where runs stop, by the byte there.
    pub fn stops(&self) -> &[Stops] {
        &self.stops
    }

    /// The ways to the places where runs stop before a byte; an entry is a position among [`Stops::nodes`].
    pub fn paths(&mut self, vocabulary: &Tokens, group: usize) -> (&Trie, &[(u32, u32)]) {
        let Stops { nodes, paths, .. } = &mut self.stops[group];
        let paths = paths.get_or_insert_with(|| {
            let trie = vocabulary.trie();
            Trie::from_sorted(nodes.iter().enumerate().map(|(entry, &(node, _))| {
                let token = trie.entries_below(node as usize).next().expect("every node leads to a token");
                let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
                (&bytes[..trie.depth(node as usize)], entry as u32)
            }))
        });
        (paths, nodes)
    }

    /// The row of so many characters and one byte of `end`, which begins no character.
    pub fn row(&mut self, vocabulary: &Tokens, min: u32, max: Option<u32>, end: ByteSet) -> Row {
        let mut inside = self.within(max);
        let stops = &self.stops;
        let ending = self.endings.entry(end).or_insert_with(|| Ending::new(vocabulary, stops, end));
        let counts = (min, max.unwrap_or(u32::MAX));
        for &(rounds, token) in &ending.ended {
            if (counts.0..=counts.1).contains(&rounds) {
                tokenset::set(inside.words_mut(), token);
            }
        }
        let never = min > ending.most_before_end;
        let exits = if never { Arc::default() } else { ending.exits.clone() };
        let ends = if never { Vec::new() } else { ending.ends.clone() };
        let escaped_ends = if never { Vec::new() } else { ending.escaped_ends.clone() };
        let row = Row::of_set(inside, Some(exits), [[0].into()].into());
        row.with_ends(counts, ends, escaped_ends)
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let sets = 1 + self.few.iter().flatten().count();
        let stops = self.stops.iter().map(|stops| {
            stops.nodes.len() * 8 + stops.paths.as_ref().map_or(0, Trie::memory_bytes) + size_of::<Stops>()
        });
        let endings: usize = self.endings.values().map(Ending::memory_bytes).sum();
        self.tokens.len() * 4 + sets * self.any.words().len() * 4 + stops.sum::<usize>() + endings
    }
}

impl Ending {
    fn new(vocabulary: &Tokens, stops: &[Stops], end: ByteSet) -> Ending {
        let trie = vocabulary.trie();
        let here = stops.iter().filter(|stops| end.contains(stops.byte));
        let mut found: Vec<(u32, u32)> = here.flat_map(|stops| &stops.nodes).copied().collect();
        found.sort_unstable();
        let (mut ended, mut leaving) = (Vec::new(), Vec::new());
        for &(node, rounds) in &found {
            let node = node as usize;
            let own = trie.entry_at(node);
            ended.extend(own.map(|token| (rounds, token)));
            for token in trie.entries_below(node).filter(|&token| Some(token) != own) {
                let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
                leaving.push((&bytes[trie.depth(node)..], token, rounds));
            }
        }
        let exits = if leaving.is_empty() { Vec::new() } else { vec![Exits::new(&[0], leaving)] };
        let most_before_end = found.iter().map(|&(_, rounds)| rounds).max().unwrap_or(0);
        let ends: Vec<u32> = found.into_iter().map(|(node, _)| node).collect();
        let escaped_ends = crate::row::escaped(vocabulary, &ends);
        Ending { ended, most_before_end, exits: Arc::new(exits), ends, escaped_ends }
    }

    fn memory_bytes(&self) -> usize {
        let exits: usize = self.exits.iter().map(Exits::memory_bytes).sum();
        exits + self.ended.len() * 8 + self.ends.len() * 4 + self.escaped_ends.len() * 32
    }
}
