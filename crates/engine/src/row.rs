//! A row: what the tokens of a vocabulary do from one state of a lexeme, whatever follows it.
//!
//! A **row** belongs to a set of residual expressions: the tokens that stay inside them to their last byte, and for the
//! tokens that leave, the distinct **suffixes** with which they go on behind the lexeme.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use stencilm_regex::Tag;

use crate::json_text;
use crate::tokens::Tokens;
use crate::tokenset::{self, TokenSet};
use crate::trie::Trie;

/// The tokens of a row are listed where they are no more than these.
pub const MAX_LISTED: usize = 512;

/// A row of no more tokens than these is written from its list.
const FEW_TOKENS: usize = 100;

/// Tokens from one wide lexeme state.
pub struct Row {
    /// Tokens read to their last byte inside the lexeme, possibly ending it; of tokens that spell the same bytes the
    /// one in the trie.
    inside: Option<TokenSet>,
    /// How many they are.
    pub count: usize,
    /// They one by one, where they are few. Where they are very few there is no set of them.
    pub listed: Option<Box<[u32]>>,
    /// Tokens that go on behind the lexeme, by which residuals have matched there; `None` where they are too many to
    /// keep. Rows of similar lexemes share them.
    pub exits: Option<Arc<Vec<Exits>>>,
    /// Tokens that do not leave this lexeme although the exits say so, each with the suffix that it would leave with. Not
    /// empty only where there is a single residual.
    pub stays: FxHashSet<(u32, u32)>,
    /// The least and the greatest number of characters before an exit.
    pub counts: (u32, u32),
    /// All sets of residuals that match together somewhere.
    pub endings: Box<[Box<[u32]>]>,
    /// Nodes of the vocabulary's trie at which some residual matches, perhaps also some where it does not; none where the
    /// exits are not kept.
    pub ends: Vec<u32>,
    /// Those of them on whose way a backslash is, each with the value of what a JSON string gains on the way.
    pub escaped_ends: Vec<(u32, Box<[u8]>)>,
}

/// A row as one state of one automaton uses it.
pub struct RowHere {
    /// The row.
    pub row: Arc<Row>,
    /// For every residual of the row the tags that it stands for in this automaton.
    pub tags: Vec<Vec<Tag>>,
}

/// Tokens that go on behind the lexeme after the same residuals have matched.
pub struct Exits {
    /// Which residuals matched, as positions in the sorted list of distinct residuals of the state.
    pub residuals: Box<[u32]>,
    /// The distinct suffixes behind the lexeme; an entry is a position in `tokens`.
    pub suffixes: Trie,
    /// For every suffix the tokens that leave the lexeme with it, each with the number of characters that it reads
    /// before, where the row counts them.
    pub tokens: Vec<Vec<(u32, u32)>>,
}

/// A suffix, the token that leaves with it, and the number of characters before it.
pub type Leaving<'a> = (&'a [u8], u32, u32);

impl Exits {
    /// Exits of tokens, each with its suffix and the number of characters before it.
    pub fn new(residuals: &[u32], mut leaving: Vec<Leaving<'_>>) -> Exits {
        leaving.sort_unstable();
        let mut suffixes: Vec<&[u8]> = Vec::new();
        let mut tokens: Vec<Vec<(u32, u32)>> = Vec::new();
        for (suffix, token, rounds) in leaving {
            if suffixes.last() != Some(&suffix) {
                suffixes.push(suffix);
                tokens.push(Vec::new());
            }
            tokens.last_mut().expect("a suffix was pushed before its tokens").push((token, rounds));
        }
        let entries = suffixes.iter().enumerate().map(|(entry, &suffix)| (suffix, entry as u32));
        Exits { residuals: residuals.into(), suffixes: Trie::from_sorted(entries), tokens }
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let tokens: usize = self.tokens.iter().map(|tokens| tokens.len() * 8 + 24).sum();
        self.suffixes.memory_bytes() + tokens
    }
}

/// Those nodes on whose way a backslash is, each with the value of what a JSON string gains on the way.
pub fn escaped(vocabulary: &Tokens, ends: &[u32]) -> Vec<(u32, Box<[u8]>)> {
    let trie = vocabulary.trie();
    let way = |node: u32| {
        let token = trie.entries_below(node as usize).next().expect("every node leads to a token");
        let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
        &bytes[..trie.depth(node as usize)]
    };
    let escaped = ends.iter().filter(|&&node| way(node).contains(&b'\\'));
    escaped.map(|&node| (node, json_text::value_of(&[b"\"", way(node)].concat()).into())).collect()
}

impl Row {
    pub fn memory_bytes(&self) -> usize {
        let exits: usize = self.exits.iter().flat_map(|exits| exits.iter()).map(Exits::memory_bytes).sum();
        let ends = self.ends.len() * 4 + self.escaped_ends.len() * 32;
        let inside = self.inside.as_ref().map_or(0, |inside| inside.words().len() * 4);
        inside + self.listed.as_ref().map_or(0, |listed| listed.len() * 4) + exits + ends + self.stays.len() * 16
    }

    /// A row of a set of tokens, without its ends.
    pub fn of_set(inside: TokenSet, exits: Option<Arc<Vec<Exits>>>, endings: Box<[Box<[u32]>]>) -> Row {
        let count = inside.len();
        let listed = (count <= MAX_LISTED).then(|| inside.iter().collect());
        let (ends, escaped_ends, counts) = (Vec::new(), Vec::new(), (0, u32::MAX));
        let (inside, stays) = (Some(inside), FxHashSet::default());
        Row { inside, count, listed, exits, stays, counts, endings, ends, escaped_ends }
    }

    /// A row of distinct tokens, without its ends.
    pub fn of_tokens(
        vocab_size: usize,
        tokens: Vec<u32>,
        exits: Option<Arc<Vec<Exits>>>,
        endings: Box<[Box<[u32]>]>,
    ) -> Row {
        let count = tokens.len();
        let inside = (count > FEW_TOKENS).then(|| {
            let mut inside = TokenSet::empty(vocab_size);
            tokens.iter().for_each(|&token| tokenset::set(inside.words_mut(), token));
            inside
        });
        let listed = (count <= MAX_LISTED).then(|| tokens.into());
        let (ends, escaped_ends, counts) = (Vec::new(), Vec::new(), (0, u32::MAX));
        Row { inside, count, listed, exits, stays: FxHashSet::default(), counts, endings, ends, escaped_ends }
    }

    /// A row of distinct tokens that never leave.
    pub fn without_exits(vocab_size: usize, tokens: Vec<u32>) -> Row {
        Row::of_tokens(vocab_size, tokens, Some(Arc::default()), Box::default())
    }

    /// The row without these exits, each a suffix and a token.
    pub fn staying(self, stays: FxHashSet<(u32, u32)>) -> Row {
        Row { stays, ..self }
    }

    /// The row with these ends.
    pub fn with_ends(self, counts: (u32, u32), ends: Vec<u32>, escaped_ends: Vec<(u32, Box<[u8]>)>) -> Row {
        Row { counts, ends, escaped_ends, ..self }
    }

    pub fn to_set(&self, vocab_size: usize) -> TokenSet {
        let mut set = TokenSet::empty(vocab_size);
        self.write(set.words_mut());
        set
    }

    /// Makes a mask of the tokens inside the lexeme.
    pub fn write(&self, mask: &mut [u32]) {
        match (&self.inside, &self.listed) {
            (Some(inside), _) => mask.copy_from_slice(inside.words()),
            (None, listed) => {
                mask.fill(0);
                listed.iter().flatten().for_each(|&token| tokenset::set(mask, token));
            }
        }
    }

    /// Whether a token leaves the lexeme with a suffix behind so many characters, as the exits say.
    #[inline]
    pub fn leaves(&self, suffix: u32, token: u32, rounds: u32) -> bool {
        let (least, most) = self.counts;
        (least..=most).contains(&rounds) && (self.stays.is_empty() || !self.stays.contains(&(suffix, token)))
    }

    /// Adds the tokens inside the lexeme to a mask.
    pub fn add_inside(&self, mask: &mut [u32]) {
        if let Some(inside) = &self.inside {
            mask.iter_mut().zip(inside.words()).for_each(|(word, row)| *word |= row);
        } else {
            self.listed.iter().flatten().for_each(|&token| tokenset::set(mask, token));
        }
    }
}
