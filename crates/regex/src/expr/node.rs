//! The nodes of expressions, and the ids under which a set of expressions stores them.

use crate::expr::byte_set::ByteSet;
use crate::expr::language::LanguageRest;
use crate::numbers::Number;

/// An expression of one [`ExprSet`](crate::ExprSet). Equal ids are equal expressions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ExprId(pub(crate) u32);

impl ExprId {
    /// Matches no string.
    pub const NOTHING: ExprId = ExprId(0);
    /// Matches the empty string only.
    pub const EMPTY: ExprId = ExprId(1);
    /// Matches every one-byte string.
    pub const ANY_BYTE: ExprId = ExprId(2);
    /// Matches every string of bytes.
    pub const ANYTHING: ExprId = ExprId(3);

    /// The position in the set, counted from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One node of an expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// No string.
    Nothing,
    /// The empty string.
    Empty,
    /// Any one byte of the set.
    Bytes(ByteSet),
    /// `head` then `tail`; `head` is never a concatenation itself.
    Concat {
        /// What comes first.
        head: ExprId,
        /// What follows.
        tail: ExprId,
    },
    /// Any of at least two alternatives, sorted by id.
    Or(Box<[ExprId]>),
    /// All of at least two expressions at once, sorted by id.
    And(Box<[ExprId]>),
    /// Every string of bytes that the inner expression does not match.
    Not(ExprId),
    /// `body` repeated; a nullable body has `min` 0.
    Repeat {
        /// What is repeated.
        body: ExprId,
        /// The least number of repetitions.
        min: u32,
        /// The greatest number of repetitions, `None` without limit.
        max: Option<u32>,
    },
    /// Texts of numbers of a set, or the rest of them.
    Number(Box<Number>),
    /// A piece of a long text, which has no nodes for single bytes.
    Text(Box<str>),
    /// Texts of a language decided by a program, or the rest of them.
    Language(Box<LanguageRest>),
}

/// Longer texts, in bytes, are stored in pieces.
pub const LONG_TEXT: usize = 2_048;

/// The greatest number of bytes of a piece.
pub const PIECE: usize = 1_024;

/// The pieces of a text, each with as many whole characters as fit.
pub fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let mut end = text.len().min(PIECE);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, rest) = text.split_at(end);
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}
