//! Bytes in, states out: pattern syntax, hash-consed expressions, derivatives and lazy automata.
//!
//! This crate has never heard of a token or a grammar. The flow is one way:
//! pattern text → [`ExprId`] in an [`ExprSet`] → derivatives ([`Deriver`]) → automaton ([`Dfa`]).

mod arena;
mod byte_classes;
mod byteset;
mod completions;
mod derivative;
mod dfa;
mod expr;
mod hash;
mod host;
mod limits;
pub mod memory;
mod needs;
mod normal;
mod numbers;
mod print;
mod saturate;
mod shortest;
mod split;
pub mod syntax;
mod table;
mod texts;
mod thread_time;
mod watch;
mod witness;

pub use arena::SharedExprs;
pub use byteset::ByteSet;
pub use completions::Completions;
pub use derivative::{Derivatives, Deriver};
pub use dfa::{Dfa, StateId, Tag};
pub use expr::{Expr, ExprId, ExprSet};
pub use hash::{HashMap, HashSet, KeyedState, hash_of};
pub use host::{Held, Host, assert_none_held, before_waiting, set_host};
pub use limits::{LimitExceeded, Limits};
pub use numbers::{
    Decimal, End, LARGE_EXPONENTS, MAX_DIGITS, Number, NumberForm, NumberSet, NumberSetError, Plain, SMALL_EXPONENTS,
};
pub use saturate::{Relaxation, Relaxed, Saturation};
pub use shortest::Shortest;
pub use split::{Group, split};
pub use syntax::{
    Alphabet, Anchoring, Dialect, PatternError, PatternErrorKind, PatternOptions, Utf8, parse_part, parse_pattern,
};
pub use table::{Map, Set, Table};
pub use texts::Texts;
pub use watch::{Watch, check as check_time, check_now as check_time_now, unwatched};
