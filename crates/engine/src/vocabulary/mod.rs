//! Vocabulary: the tokens of a tokenizer as bytes, and everything that is known about them without a grammar.
//!
//! One idea: tokens with a common beginning are read alike up to its end, so they are stored in one flat [`trie`] in
//! depth-first order, in which a rejected byte skips its whole subtree. Other orders of the same tokens answer other
//! questions: by the categories of their characters ([`category_trie`]), by their length, by the bytes that occur in
//! them ([`common_bytes`]), by the keys of objects that lie entirely within a token.
//!
//! Entry points: [`tokens::Tokens`], [`trie::Trie`], [`token_set::TokenSet`].
//!
//! # Example, used in every room
//! Twelve tokens: `{` `}` `"` `a` `"a"` `{"` `": ` `: ` `1` `12` `2}` and the stop token. As a trie:
//! ```text
//! "  └ a └ "      :  └ ␣      1  └ 2      a      {  └ "      }      2  └ }
//! └ : └ ␣
//! ```
//! The stop token spells no bytes and is not in the trie. The schema is an object with one required member `a`, an
//! integer, laid out as `{"a": 12}`.

pub(crate) mod automaton;
pub(crate) mod categories;
pub(crate) mod category_trie;
pub(crate) mod category_walk;
pub(crate) mod characters;
pub(crate) mod common_bytes;
pub(crate) mod json_text;
pub(crate) mod keys_within_tokens;
pub(crate) mod ranks;
pub(crate) mod token_lengths;
pub(crate) mod token_set;
pub(crate) mod tokens;
pub(crate) mod trie;
