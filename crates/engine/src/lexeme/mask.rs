//! A lexeme mask: what the tokens of a vocabulary do from one state of a lexeme, whatever follows the lexeme.
//!
//! A **lexeme mask** belongs to a set of residual expressions. It holds the tokens that stay within them to their last
//! byte and, for the crossing tokens, the distinct **suffixes** with which they go on after the lexeme.

use std::sync::{Arc, OnceLock};

use stencilm_regex::{ExprId, Tag};
use stencilm_support::{MANY, memory};

use crate::lexeme::crossing::{CrossingTokens, EscapedEnd};
use crate::vocabulary::token_set;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;

/// The number of characters after a token that can affect how its tokenizer merges.
pub const CHARACTERS_AFTER: u32 = 4;

/// The greatest number of bytes of these characters.
pub const BYTES_AFTER: u32 = 4 * CHARACTERS_AFTER;

/// Says that a lexeme reads runs of characters and one byte: every run of at most `max` characters may come and can be
/// completed.
#[derive(Clone)]
pub struct RunsInside {
    /// The character. Its address is its identity, since expressions are numbered separately in each lexeme cache. A
    /// mask that a new lexeme cache takes over keeps its address, and its character is an expression with the same
    /// number in all lexeme caches.
    pub character: Arc<ExprId>,
    /// The greatest number of characters; `None` where there is no bound.
    pub max: Option<u32>,
}

/// The tokens of one dense lexeme state.
pub struct LexemeMask {
    /// Tokens read to their last byte within the lexeme, perhaps ending it. Of tokens with equal bytes it holds the one
    /// in the trie. Masks of the same characters share this set.
    inside: Option<Arc<TokenSet>>,
    /// Tokens of the shared set that are not in the mask, ascending.
    without: Box<[u32]>,
    /// The number of tokens in the mask.
    pub count: usize,
    /// The tokens one by one, where they are few. If they are very few, there is no set.
    pub listed: Option<Box<[u32]>>,
    /// Tokens that go on after the lexeme, grouped by the residuals that have matched; `None` where there are too many
    /// to store for every group.
    pub crossings: Option<Arc<Vec<CrossingTokens>>>,
    /// The groups of residuals whose crossing tokens are too many to store.
    pub unkept: Box<[Box<[u32]>]>,
    /// Those of their crossing tokens that do not stay within the lexeme, for each group; `None` where they are too
    /// many, too. Set when they are first needed.
    pub leaving: OnceLock<Option<Box<[CrossingTokens]>>>,
    /// Nodes of the vocabulary's trie at which some residual matches; there may be others among them. Empty where
    /// crossing tokens are not stored.
    pub ends: Arc<[u32]>,
    /// See [`LexemeMask::escaped_ends`].
    escaped: OnceLock<Box<[EscapedEnd]>>,
    /// See [`LexemeMask::escaped_tokens`].
    escaped_tokens: OnceLock<Box<[u32]>>,
    /// The runs of characters, where the mask was found from them.
    pub runs: Option<RunsInside>,
    /// See [`crate::mask::delta::NamedRows`].
    pub number: OnceLock<u32>,
}

/// A lexeme mask as it applies to one state of one automaton.
#[derive(Clone)]
pub struct LexemeMaskAt {
    /// The lexeme mask.
    pub mask: Arc<LexemeMask>,
    /// For each residual of the mask, by its position, its tags in this automaton.
    pub tags: Vec<(u32, Tag)>,
}

impl LexemeMaskAt {
    /// The tags of a residual of the mask.
    pub fn tags_of(&self, residual: u32) -> impl Iterator<Item = Tag> + '_ {
        let first = self.tags.partition_point(|&(position, _)| position < residual);
        self.tags[first..].iter().take_while(move |&&(position, _)| position == residual).map(|&(_, tag)| tag)
    }

    /// The tags of some residuals of the mask.
    pub fn tags_of_all<'a>(&'a self, residuals: &'a [u32]) -> impl Iterator<Item = Tag> + 'a {
        residuals.iter().flat_map(|&residual| self.tags_of(residual))
    }
}

impl LexemeMask {
    pub fn memory_bytes(&self) -> usize {
        let crossings: usize =
            self.crossings.iter().flat_map(|crossings| crossings.iter()).map(CrossingTokens::memory_bytes).sum();
        let crossings = crossings + self.crossings.as_ref().map_or(0, |crossings| 48 + memory::of_list(crossings));
        let unkept = self.unkept.iter().map(|unkept| 16 + memory::of_slice::<u32>(unkept.len())).sum::<usize>();
        let leaving: usize = self.leaving.get().into_iter().flatten().flatten().map(CrossingTokens::memory_bytes).sum();
        // A shared set is counted by those that share it.
        let own = self.inside.as_ref().filter(|inside| Arc::strong_count(inside) == 1);
        let inside = own.map_or(0, |inside| 48 + memory::of_slice::<u32>(inside.words().len()));
        let tokens = self.without.len() + self.listed.as_ref().map_or(0, |listed| listed.len());
        let lists = memory::of_slice::<u32>(tokens) + memory::of_shared::<u32>(self.ends.len());
        memory::of_shared::<LexemeMask>(1) + inside + lists + crossings + unkept + leaving
    }

    /// A mask of a set of tokens, without ends.
    pub fn of_set(
        inside: TokenSet,
        crossings: Option<Arc<Vec<CrossingTokens>>>,
        unkept: Box<[Box<[u32]>]>,
    ) -> LexemeMask {
        let count = inside.len();
        LexemeMask::of_counted(inside, count, crossings, unkept)
    }

    /// A mask of a set of `count` tokens, without ends.
    pub fn of_counted(
        inside: TokenSet,
        count: usize,
        crossings: Option<Arc<Vec<CrossingTokens>>>,
        unkept: Box<[Box<[u32]>]>,
    ) -> LexemeMask {
        LexemeMask::of_shared(Arc::new(inside), Vec::new(), count, crossings, unkept)
    }

    /// A mask of `count` tokens, those of a shared set except some, without ends.
    pub fn of_shared(
        inside: Arc<TokenSet>,
        mut without: Vec<u32>,
        count: usize,
        crossings: Option<Arc<Vec<CrossingTokens>>>,
        unkept: Box<[Box<[u32]>]>,
    ) -> LexemeMask {
        debug_assert!(without.iter().all(|&token| inside.contains(token)), "only what is there is taken out");
        without.sort_unstable();
        debug_assert_eq!(count, inside.len() - without.len(), "the tokens of a mask are counted");
        let listed =
            (count <= MANY).then(|| inside.iter().filter(|token| without.binary_search(token).is_err()).collect());
        let inside = Some(inside);
        LexemeMask {
            inside,
            without: without.into(),
            count,
            listed,
            crossings,
            unkept,
            leaving: OnceLock::new(),
            ends: Arc::default(),
            escaped: OnceLock::new(),
            escaped_tokens: OnceLock::new(),
            runs: None,
            number: OnceLock::new(),
        }
    }

    /// A mask of distinct tokens, without ends.
    pub fn of_tokens(
        vocab_size: usize,
        tokens: Vec<u32>,
        crossings: Option<Arc<Vec<CrossingTokens>>>,
        unkept: Box<[Box<[u32]>]>,
    ) -> LexemeMask {
        let count = tokens.len();
        let inside = (count > MANY).then(|| {
            let mut inside = TokenSet::empty(vocab_size);
            tokens.iter().for_each(|&token| token_set::set(inside.words_mut(), token));
            Arc::new(inside)
        });
        let listed = (count <= MANY).then(|| tokens.into());
        LexemeMask {
            inside,
            without: Box::default(),
            count,
            listed,
            crossings,
            unkept,
            leaving: OnceLock::new(),
            ends: Arc::default(),
            escaped: OnceLock::new(),
            escaped_tokens: OnceLock::new(),
            runs: None,
            number: OnceLock::new(),
        }
    }

    /// A mask of distinct tokens without crossing tokens.
    pub fn without_crossings(vocab_size: usize, tokens: Vec<u32>) -> LexemeMask {
        LexemeMask::of_tokens(vocab_size, tokens, Some(Arc::default()), Box::default())
    }

    /// The mask without some of its tokens, with other crossing tokens, and without ends.
    pub fn without(
        &self,
        vocab_size: usize,
        tokens: Vec<u32>,
        crossings: Option<Arc<Vec<CrossingTokens>>>,
    ) -> LexemeMask {
        match &self.inside {
            Some(inside) => {
                let count = self.count - tokens.len();
                let without = [&self.without, &*tokens].concat();
                LexemeMask::of_shared(inside.clone(), without, count, crossings, Box::default())
            }
            None => {
                let kept = self.listed.iter().flatten().copied().filter(|token| !tokens.contains(token)).collect();
                LexemeMask::of_tokens(vocab_size, kept, crossings, Box::default())
            }
        }
    }

    /// A mask of other tokens, with the same ends except at some nodes, which must be sorted.
    pub fn with_fewer(&self, vocabulary: &Tokens, inside: TokenSet, not_here: &[u32]) -> LexemeMask {
        let (crossings, ends) = self.ends_but_for(vocabulary, not_here);
        LexemeMask::of_set(inside, crossings, self.unkept.clone()).with_ends(ends)
    }

    /// The crossing tokens and the ends without some nodes, which must be sorted.
    pub fn ends_but_for(&self, vocabulary: &Tokens, nodes: &[u32]) -> (Option<Arc<Vec<CrossingTokens>>>, Arc<[u32]>) {
        if nodes.is_empty() {
            return (self.crossings.clone(), self.ends.clone());
        }
        let ends = self.ends.iter().copied().filter(|node| nodes.binary_search(node).is_err()).collect();
        let crossings = self.crossings.as_ref();
        let crossings = crossings.map(|crossings| {
            let kept = crossings.iter().map(|crossings| crossings.without(vocabulary, nodes));
            Arc::new(kept.filter(|crossings| !crossings.is_empty()).collect())
        });
        (crossings, ends)
    }

    /// The mask with these ends, which must be sorted.
    pub fn with_ends(self, ends: impl Into<Arc<[u32]>>) -> LexemeMask {
        LexemeMask { ends: ends.into(), ..self }
    }

    /// The ends whose path contains a backslash.
    pub fn escaped_ends(&self, vocabulary: &Tokens) -> &[EscapedEnd] {
        self.escaped.get_or_init(|| {
            let crossings = self.crossings.iter().flat_map(|crossings| crossings.iter());
            let mut escaped: Vec<EscapedEnd> =
                crossings.flat_map(|crossings| crossings.escaped(vocabulary, &self.ends)).collect();
            escaped.sort_unstable_by_key(|&(node, _)| node);
            escaped.dedup_by_key(|&mut (node, _)| node);
            escaped.into()
        })
    }

    /// The tokens at and below the ends that contain a backslash.
    pub fn escaped_tokens(&self, vocabulary: &Tokens) -> &[u32] {
        self.escaped_tokens.get_or_init(|| {
            let below = self.ends.iter().flat_map(|&node| vocabulary.trie().entries_below(node as usize));
            let escapes = |token: &u32| vocabulary.token_bytes(*token).is_some_and(|bytes| bytes.contains(&b'\\'));
            below.filter(escapes).collect()
        })
    }

    /// Records that the lexeme reads these runs.
    pub fn with_runs(self, character: Arc<ExprId>, max: Option<u32>) -> LexemeMask {
        LexemeMask { runs: Some(RunsInside { character, max }), ..self }
    }

    pub fn to_set(&self, vocab_size: usize) -> TokenSet {
        let mut set = TokenSet::empty(vocab_size);
        self.write(set.words_mut());
        set
    }

    /// The crossing tokens that are known, by the residuals that have matched: of a lexeme that may end nearly
    /// everywhere, only those that do not stay within it, once they were [found](LexemeMask::leaving).
    pub fn crossing_tokens(&self) -> impl Iterator<Item = &CrossingTokens> {
        let leaving = self.leaving.get().into_iter().flatten().flatten();
        let all = self.crossings.iter().flat_map(|crossings| crossings.iter()).chain(leaving);
        all.filter(|crossings| !crossings.is_empty())
    }

    /// Whether all crossing tokens that do not stay within the lexeme are known.
    pub fn knows_crossing_tokens(&self) -> bool {
        self.unkept.is_empty() || matches!(self.leaving.get(), Some(Some(_)))
    }

    /// The crossing tokens, if all of them cross after the same residuals.
    pub fn only_crossing_tokens(&self) -> Option<&CrossingTokens> {
        let mut crossings = self.crossing_tokens();
        crossings.next().filter(|_| crossings.next().is_none() && self.knows_crossing_tokens())
    }

    /// Whether a token stays within the lexeme.
    pub fn has(&self, token: u32) -> bool {
        match (&self.inside, &self.listed) {
            (Some(inside), _) => inside.contains(token) && self.without.binary_search(&token).is_err(),
            (None, listed) => listed.iter().flatten().any(|&listed| listed == token),
        }
    }

    /// Overwrites a mask with the tokens of this one.
    pub fn write(&self, mask: &mut [u32]) {
        match (&self.inside, &self.listed) {
            (Some(inside), _) => {
                token_set::copy(mask, inside.words());
                self.without.iter().for_each(|&token| token_set::clear(mask, token));
            }
            (None, listed) => {
                mask.fill(0);
                listed.iter().flatten().for_each(|&token| token_set::set(mask, token));
            }
        }
    }

    /// Adds the tokens of this mask to another mask.
    pub fn add_inside(&self, mask: &mut [u32]) {
        if let Some(inside) = &self.inside {
            let missing: Vec<u32> =
                self.without.iter().copied().filter(|&token| !token_set::get(mask, token)).collect();
            mask.iter_mut().zip(inside.words()).for_each(|(word, contained)| *word |= contained);
            missing.into_iter().for_each(|token| token_set::clear(mask, token));
        } else {
            self.listed.iter().flatten().for_each(|&token| token_set::set(mask, token));
        }
    }
}
