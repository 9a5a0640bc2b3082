//! Masks: the set of tokens that may come next.
//!
//! One idea: three steps, each a value ([`pipeline`]). The mask is computed *optimistically* ([`optimistic`]), as if
//! every key and element were new, as the union over threads: sparse threads are walked through the trie; dense ones
//! take their lexeme mask and judge the suffixes of the crossing tokens. It is *cached* ([`cache`]) under exactly what
//! its computation read. Then the few tokens for which optimism may be wrong are *verified* one by one ([`verify`]),
//! and the words are written.
//!
//! Entry points: [`pipeline`], [`cache`]; [`delta`] for masks as a difference. [`crate::naive::mask`] is the slow
//! reference.
//!
//! # Example
//! After `{"a": 1`, the integer's thread gives `1`, `12` and, since `}` may follow here, the crossing token `2}`; the
//! other thread gives `}`. The mask is `}` `1` `12` `2}`. After `{"a": 1` in another text, it comes from the cache.

pub(crate) mod cache;
pub(crate) mod delta;
pub(crate) mod draft;
pub(crate) mod joined;
pub(crate) mod known_suffixes;
pub(crate) mod leaving;
pub(crate) mod optimistic;
pub(crate) mod pipeline;
pub(crate) mod reference;
pub(crate) mod value_keys;
pub(crate) mod verify;
