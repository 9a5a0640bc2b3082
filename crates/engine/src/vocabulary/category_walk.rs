//! Walks through a vocabulary by category strings, and byte by byte where an automaton distinguishes characters of one
//! category.

use stencilm_regex::StateId;
use stencilm_support::{LimitExceeded, check_time};

use crate::switches::Switch;
use crate::vocabulary::automaton::Automaton;
use crate::vocabulary::categories::{Categories, HIGH, OTHER, Read, WHITESPACE};
use crate::vocabulary::category_trie::CategoryTrie;
use crate::vocabulary::token_set;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::WalkError;

/// What a walk does with the bytes that it reads.
pub(crate) trait Reader: Automaton {
    /// The position of a walk: a state of the automaton, and whatever else the reader tracks.
    type At: Copy;
    /// Why a walk may end early.
    type Stopped: From<LimitExceeded> + WalkError;

    fn state(at: Self::At) -> StateId;

    /// Called for every node of the category strings.
    fn look(&mut self) -> Result<(), Self::Stopped> {
        Ok(())
    }

    /// All characters of a category lead from `at` to the state `next`, and `ends` says whether a match ends there;
    /// `nodes` are the nodes of the tokens' trie that they lead to. Returns the new position, and whether everything
    /// below reads exactly as from the old one.
    fn reads(&mut self, at: Self::At, next: StateId, ends: bool, nodes: &[u32]) -> (Self::At, bool);

    /// No character of a category can be read here.
    fn refuses(&mut self, _at: Self::At, _nodes: &[u32]) {}

    /// Reads a byte that leads to a node of the tokens' trie; `None` where it is dead. Without a node, only the
    /// position changes.
    fn byte(&mut self, at: Self::At, byte: u8, node: Option<usize>) -> Result<Option<Self::At>, Self::Stopped>;

    /// Whether the reader needs to know which tokens end where. Then no position counts as equal to another.
    fn lists(&self) -> bool {
        false
    }

    /// These tokens end here.
    fn ends(&mut self, _at: Self::At, _tokens: &[u32]) {}
}

/// The set of tokens that can be read, under construction.
struct Found {
    tokens: TokenSet,
    /// If the automaton reads most tokens, the set starts full, and tokens that cannot be read are removed.
    dense: bool,
}

impl Found {
    /// Records tokens that can be read.
    #[inline]
    fn reads(&mut self, tokens: &[u32]) {
        if !self.dense {
            let words = self.tokens.words_mut();
            tokens.iter().for_each(|&token| token_set::set(words, token));
        }
    }

    /// Records that the tokens of a category string and of those below can be read.
    fn reads_all(&mut self, category_trie: &CategoryTrie, index: usize, end: usize) {
        self.reads(category_trie.tokens(index, end));
    }

    /// Records that the tokens of a category string and of those below cannot be read.
    fn refuses_all(&mut self, category_trie: &CategoryTrie, index: usize, end: usize) {
        self.refuses(category_trie.tokens(index, end));
    }

    /// Records tokens that cannot be read.
    fn refuses(&mut self, tokens: &[u32]) {
        if self.dense {
            tokens.iter().for_each(|&token| self.tokens.remove(token));
        }
    }
}

/// The tokens that can be read from a position; `dense` says that these are most of them.
pub(crate) fn read<R: Reader>(
    vocabulary: &Tokens,
    categories: &mut Categories,
    reader: &mut R,
    start: R::At,
    dense: bool,
) -> Result<TokenSet, R::Stopped> {
    let tokens = if dense { vocabulary.spelled().clone() } else { TokenSet::empty(vocabulary.vocab_size()) };
    let mut found = Found { tokens, dense };
    read_category_strings(vocabulary, categories, reader, start, &mut found)?;
    read_non_utf8(vocabulary, reader, start, &mut found)?;
    Ok(found.tokens)
}

/// Reads the tokens that have category strings, and some of the others.
fn read_category_strings<R: Reader>(
    vocabulary: &Tokens,
    categories: &mut Categories,
    reader: &mut R,
    start: R::At,
    found: &mut Found,
) -> Result<(), R::Stopped> {
    let (category_trie, trie) = (vocabulary.category_trie(), vocabulary.trie());
    // For each state, the categories that lead to an equal position.
    let mut same: Vec<u64> = Vec::new();
    let mut path = vec![start; category_trie.max_depth() + 1];
    let mut trie_path = vec![start; trie.max_depth() + 1];
    let mut index = 0;
    while index < category_trie.len() {
        reader.look()?;
        let here = category_trie.node(index);
        let (above, end) = (path[here.depth as usize - 1], index + here.size as usize);
        let read = match Switch::LexemeCategories.is_on() {
            true => categories.read(reader, R::state(above), here.category)?,
            false => Read::Mixed,
        };
        match read {
            Read::Dead => {
                // The last byte of a character is never live by itself.
                if here.category != WHITESPACE && here.category != OTHER {
                    reader.refuses(above, category_trie.places(index));
                }
                found.refuses_all(category_trie, index, end);
                index = end;
            }
            Read::Mixed => {
                for &node in category_trie.places(index) {
                    check_time()?;
                    let at = if here.category == WHITESPACE || here.category == OTHER {
                        after_first_bytes(vocabulary, reader, above, node)?
                    } else {
                        Some(above)
                    };
                    let node = node as usize;
                    match at {
                        Some(at) => read_below(vocabulary, reader, node, at, &mut trie_path, found)?,
                        None => trie.entries_below(node).for_each(|token| found.refuses(&[token])),
                    }
                }
                index = end;
            }
            Read::To(next, ends) => {
                let (at, is_same) = match here.category {
                    HIGH => (above, false),
                    _ => reader.reads(above, next, ends, category_trie.places(index)),
                };
                let state = R::state(at).0 as usize;
                if state >= same.len() {
                    same.resize(state + 1, 1 << HIGH);
                }
                same[state] |= u64::from(is_same) << here.category;
                if here.below & !same[state] == 0 {
                    found.reads_all(category_trie, index, end);
                    // A reader that lists tokens needs nothing more than this.
                    reader.ends(at, category_trie.tokens(index, index + 1));
                    index = end;
                    continue;
                }
                let tokens = category_trie.tokens(index, index + 1);
                found.reads(tokens);
                reader.ends(at, tokens);
                path[here.depth as usize] = at;
                index += 1;
            }
        }
    }
    Ok(())
}

/// Reads everything below a node of the tokens' trie, byte by byte.
fn read_below<R: Reader>(
    vocabulary: &Tokens,
    reader: &mut R,
    node: usize,
    at: R::At,
    path: &mut [R::At],
    found: &mut Found,
) -> Result<(), R::Stopped> {
    let trie = vocabulary.trie();
    let mut step = |at, byte, node| {
        let Some(next) = reader.byte(at, byte, Some(node))? else { return Ok(None) };
        // Tokens without category strings are reported elsewhere.
        if reader.lists()
            && let Some(token) = trie.entry_at(node)
            && !vocabulary.category_trie().is_non_utf8(token)
        {
            reader.ends(next, &[token]);
        }
        Ok(Some(next))
    };
    let part = (node, node + trie.size(node));
    trie.walk_mask_part(part, trie.depth(node) - 1, at, path, found.dense, &mut step, found.tokens.words_mut())
}

/// Reads all bytes but the last of the character beyond ASCII that leads to a node.
fn after_first_bytes<R: Reader>(
    vocabulary: &Tokens,
    reader: &mut R,
    at: R::At,
    node: u32,
) -> Result<Option<R::At>, R::Stopped> {
    let before = vocabulary.bytes_before(node);
    let first = before.iter().rposition(|byte| byte & 0xC0 != 0x80).expect("a character has begun");
    let mut at = Some(at);
    for &byte in &before[first..] {
        let Some(here) = at else { break };
        at = reader.byte(here, byte, None)?;
    }
    Ok(at)
}

/// Reads the tokens that have no category strings.
fn read_non_utf8<R: Reader>(
    vocabulary: &Tokens,
    reader: &mut R,
    start: R::At,
    found: &mut Found,
) -> Result<(), R::Stopped> {
    let (non_utf8, trie) = (vocabulary.category_trie().non_utf8(), vocabulary.trie());
    let token =
        |index: usize| trie.entry_at(non_utf8[index].node as usize).filter(|_| !non_utf8[index].has_category_string);
    let mut path = vec![start; trie.max_depth() + 1];
    let mut index = 0;
    while index < non_utf8.len() {
        let (node, end) = (non_utf8[index].node as usize, non_utf8[index].end as usize);
        let depth = trie.depth(node);
        let made_of = (!non_utf8[index].has_category_string).then_some(node);
        let Some(at) = reader.byte(path[depth - 1], trie.byte(node), made_of)? else {
            (index..end).for_each(|index| found.refuses(token(index).as_slice()));
            index = end;
            continue;
        };
        if let Some(token) = token(index) {
            found.reads(&[token]);
            reader.ends(at, &[token]);
        }
        path[depth] = at;
        index += 1;
    }
    Ok(())
}
