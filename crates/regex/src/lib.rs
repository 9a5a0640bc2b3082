//! Bytes in, states out: pattern syntax, hash-consed expressions, derivatives and lazy automata.
//!
//! This crate knows neither tokens nor grammars. The flow is one way: pattern text → [`ExprId`] in an [`ExprSet`] →
//! derivatives ([`Deriver`]) → automaton ([`Dfa`]).

mod analysis;
mod derivative;
mod expr;
mod limits;
mod numbers;
pub mod syntax;

pub use analysis::cardinality::{Cardinalities, Cardinality, Step, Steps};
pub use analysis::completions::{Completions, farthest, nearest};
pub use analysis::languages::LanguageAlternative;
pub use analysis::shortest::Shortest;
pub use analysis::suffixes::Suffixes;
pub use analysis::texts::Texts;
pub use derivative::deriver::{Derivatives, Deriver};
pub use derivative::dfa::{Dfa, StateId, Tag};
pub use derivative::split::{Group, split};
pub use expr::arena::SharedExprs;
pub use expr::byte_set::ByteSet;
pub use expr::clamp::{Relaxed, Saturation};
pub use expr::expr_set::ExprSet;
pub use expr::language::{Language, LanguageReader, LanguageRest};
pub use expr::node::{Expr, ExprId, LONG_TEXT, PIECE, pieces};
pub use expr::print::{Printed, Printing};
pub use expr::reverse::{Reversal, Reversed};
pub use limits::Limits;
pub use numbers::{
    Decimal, End, LARGE_EXPONENTS, MAX_DIGITS, Number, NumberForm, NumberSet, NumberSetError, Plain, SMALL_EXPONENTS,
};
pub use syntax::{
    Alphabet, Anchoring, Dialect, PatternError, PatternErrorKind, PatternOptions, Utf8, own_pattern, parse_part,
    parse_pattern, parse_taking, parse_without,
};
