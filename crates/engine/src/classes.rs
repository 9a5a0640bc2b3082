//! Rows of repeated characters: `C{a,b}T`, where `C` is one character of a class and `T` a byte that is none, as in the
//! body of a JSON string and its closing quote.
//!
//! How many characters of the class a token has is the same whatever the counts are, so one walk of the vocabulary serves
//! all of them: a string near its greatest length has the row of an endless one without the tokens that are too long.

use std::sync::Arc;

use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet};

use crate::row::{Exits, Row};
use crate::tokens::Tokens;
use crate::tokenset::{self, TokenSet};

/// For so many characters the tokens that are no longer are kept as a set.
const FEW_ROUNDS: usize = 24;

/// An expression of the form `C{min,max}T`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Repeated {
    /// One character.
    pub character: ExprId,
    /// The bytes that end the lexeme.
    pub end: ByteSet,
    /// The least number of characters.
    pub min: u32,
    /// The greatest number of characters.
    pub max: Option<u32>,
}

impl Repeated {
    /// The parts of an expression of that form.
    pub fn of(exprs: &ExprSet, expr: ExprId) -> Option<Repeated> {
        let Expr::Concat { head, tail } = *exprs.get(expr) else { return None };
        let Expr::Repeat { body: character, min, max } = *exprs.get(head) else { return None };
        let Expr::Bytes(end) = *exprs.get(tail) else { return None };
        let plain = !exprs.is_nullable(character) && !exprs.has_boolean(character);
        plain.then_some(Repeated { character, end, min, max })
    }
}

/// What a walk of the vocabulary found: each with the number of characters begun.
#[derive(Default)]
pub struct Found {
    /// Tokens that read characters only, the last perhaps not to its end.
    pub within: Vec<(u32, u32)>,
    /// Nodes of the trie at which the lexeme ends.
    pub ends: Vec<(u32, u32)>,
}

/// The tokens of a vocabulary by their characters of one class.
pub struct ClassRuns {
    /// Tokens that read characters only, by how many they begin.
    by_rounds: Vec<Vec<u32>>,
    /// Those of at most so many characters, for few.
    few: Vec<TokenSet>,
    /// Those of any number.
    any: TokenSet,
    /// Tokens that end the lexeme with their last byte, with their number of characters.
    ended: Vec<(u32, u32)>,
    /// The most characters before an end.
    most_before_end: u32,
    exits: Arc<Vec<Exits>>,
    ends: Vec<u32>,
    escaped_ends: Vec<(u32, Box<[u8]>)>,
}

impl ClassRuns {
    /// Sorts what was found.
    pub fn new(vocabulary: &Tokens, found: Found) -> ClassRuns {
        let trie = vocabulary.trie();
        let rounds = found.within.iter().map(|&(rounds, _)| rounds as usize + 1).max().unwrap_or(0);
        let mut by_rounds = vec![Vec::new(); rounds];
        for (rounds, token) in found.within {
            by_rounds[rounds as usize].push(token);
        }
        let mut any = TokenSet::empty(vocabulary.vocab_size());
        let mut few = Vec::new();
        for (rounds, tokens) in by_rounds.iter().enumerate() {
            tokens.iter().for_each(|&token| tokenset::set(any.words_mut(), token));
            if rounds < FEW_ROUNDS {
                few.push(any.clone());
            }
        }
        let (mut ended, mut leaving) = (Vec::new(), Vec::new());
        for &(node, rounds) in &found.ends {
            let node = node as usize;
            let own = trie.entry_at(node);
            ended.extend(own.map(|token| (rounds, token)));
            for token in trie.entries_below(node).filter(|&token| Some(token) != own) {
                let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
                leaving.push((&bytes[trie.depth(node)..], token, rounds));
            }
        }
        let exits = if leaving.is_empty() { Vec::new() } else { vec![Exits::new(&[0], leaving)] };
        let most_before_end = found.ends.iter().map(|&(_, rounds)| rounds).max().unwrap_or(0);
        let ends: Vec<u32> = found.ends.into_iter().map(|(node, _)| node).collect();
        let escaped_ends = crate::row::escaped(vocabulary, &ends);
        ClassRuns { by_rounds, few, any, ended, most_before_end, exits: Arc::new(exits), ends, escaped_ends }
    }

    /// The row of so many characters and the end.
    pub fn row(&self, min: u32, max: Option<u32>) -> Row {
        let most = max.map_or(usize::MAX, |max| max as usize);
        let mut inside = self.few.get(most).unwrap_or(&self.any).clone();
        if most >= self.few.len() && most < self.by_rounds.len() {
            let longer = self.by_rounds[most + 1..].iter().flatten();
            longer.for_each(|&token| tokenset::clear(inside.words_mut(), token));
        }
        let counts = (min, max.unwrap_or(u32::MAX));
        for &(rounds, token) in &self.ended {
            if (counts.0..=counts.1).contains(&rounds) {
                tokenset::set(inside.words_mut(), token);
            }
        }
        let never = min > self.most_before_end;
        let exits = if never { Arc::default() } else { self.exits.clone() };
        let ends = if never { Vec::new() } else { self.ends.clone() };
        let escaped_ends = if never { Vec::new() } else { self.escaped_ends.clone() };
        let row = Row::of_set(inside, Some(exits), [[0].into()].into());
        row.with_ends(counts, ends, escaped_ends)
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let tokens: usize = self.by_rounds.iter().map(|tokens| tokens.len() * 4 + 24).sum();
        let sets = (self.few.len() + 1) * self.any.words().len() * 4;
        let exits: usize = self.exits.iter().map(Exits::memory_bytes).sum();
        tokens + sets + exits + (self.ended.len() + self.ends.len()) * 8
    }
}
