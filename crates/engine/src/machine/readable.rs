//! The bytes that the lexemes of a grammar can read. A token with any other byte is never allowed.

use rustc_hash::FxHashMap;
use stencilm_grammar::{Grammar, Mark, Node};
use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet};
use stencilm_support::{Extension, LimitExceeded, check_time};

use crate::machine::layout::Machine;

/// Those bytes, once computed.
#[derive(Default)]
struct Readable(Option<ByteSet>);

impl Extension for Readable {}

impl Machine {
    /// All bytes that lexemes of the grammar can read; the set may be too large.
    ///
    /// # Errors
    /// A limit, where it takes too long.
    pub(crate) fn readable_bytes(&mut self) -> Result<ByteSet, LimitExceeded> {
        if let Some(known) = self.extensions.get::<Readable>().0 {
            return Ok(known);
        }
        let bytes = readable_bytes(&self.grammar)?;
        self.extensions.get::<Readable>().0 = Some(bytes);
        Ok(bytes)
    }
}

fn readable_bytes(grammar: &Grammar) -> Result<ByteSet, LimitExceeded> {
    let (mut all, mut known) = (ByteSet::EMPTY, FxHashMap::default());
    for node in grammar.nodes() {
        check_time()?;
        match node {
            Node::Lexeme(expr) => all = all.union(&bytes_of(grammar.exprs(), *expr, &mut known)?),
            // Keys, elements and names are not lexeme nodes of their own.
            Node::Members(_) | Node::Items(_) => return Ok(ByteSet::ALL),
            Node::Marked { mark: Mark::Declares(_) | Mark::Refers(_), .. } => return Ok(ByteSet::ALL),
            _ => {}
        }
    }
    Ok(all)
}

/// The bytes that occur in matches of an expression; the set may be too large.
///
/// # Errors
/// A limit, where it takes too long.
pub(crate) fn bytes_of(
    exprs: &ExprSet,
    root: ExprId,
    known: &mut FxHashMap<ExprId, ByteSet>,
) -> Result<ByteSet, LimitExceeded> {
    exprs.fold(root, known, |expr, known| match expr {
        Expr::Nothing | Expr::Empty => ByteSet::EMPTY,
        Expr::Bytes(set) => *set,
        Expr::Text(text) => text.bytes().collect(),
        Expr::Language(rest) => rest.bytes(),
        Expr::Concat { head, tail } => known[head].union(&known[tail]),
        Expr::Or(parts) => parts.iter().fold(ByteSet::EMPTY, |all, part| all.union(&known[part])),
        Expr::And(parts) => parts.iter().fold(ByteSet::ALL, |all, part| all.intersect(&known[part])),
        Expr::Repeat { body, .. } => known[body],
        Expr::Number(_) => b"0123456789.eE+-".iter().copied().collect(),
        Expr::Not(_) => ByteSet::ALL,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencilm_grammar::{JsonSchemaOptions, from_json_schema};

    #[test]
    fn bytes_that_no_lexeme_has_are_not_readable() {
        let grammar =
            Grammar::from_ebnf(r#"root ::= ("a"? root? [b-d] root? "é"?)+ | /[x-z]*/ & /[^y]*/"#, "root").unwrap();
        assert_eq!(readable_bytes(&grammar), Ok("abcdéxz".bytes().collect()));
        let grammar = from_json_schema(r#"{"type": "object"}"#, &JsonSchemaOptions::default()).unwrap();
        assert_eq!(readable_bytes(&grammar), Ok(ByteSet::ALL));
    }
}
