//! Random regular expressions over a small alphabet, with counters, intersection and complement.

use stencilm_regex::{ByteSet, ExprId, ExprSet};

use crate::choices::Choices;

/// The counts of a repetition: small and large, bounded and unbounded.
pub fn random_counts(choices: &mut Choices<'_>) -> (u32, Option<u32>) {
    let min = *choices.pick(&[0, 0, 0, 1, 1, 2, 2, 20]);
    let max = if choices.chance(2) { Some((min + choices.pick(&[0, 1, 2, 3, 25, 60])).max(1)) } else { None };
    (min, max)
}

/// A random expression over `a`, `b`, `c`, UTF-8 of several bytes and, now and then, nearly all bytes.
pub fn random_expr(choices: &mut Choices<'_>, exprs: &mut ExprSet, depth: usize) -> ExprId {
    if depth == 0 {
        return match choices.below(12) {
            0 => exprs.literal(b"a"),
            1 => exprs.literal(b"ab"),
            2 => exprs.literal(b"c"),
            3 => exprs.bytes(ByteSet::range(b'a', b'c')),
            4 => exprs.bytes(ByteSet::of(b'"').complement()),
            5 => ExprId::EMPTY,
            6 => exprs.literal("é".as_bytes()),
            7 => exprs.literals(&["abc", "ab", "ca", "b", "é!"]),
            8 => exprs.bytes(ByteSet::range(0x80, 0xBF)),
            9 => exprs.literal(b" "),
            _ => {
                let byte = *choices.pick(b"abc(");
                exprs.bytes(ByteSet::of(byte))
            }
        };
    }
    let first = random_expr(choices, exprs, depth - 1);
    match choices.below(9) {
        0 | 1 => {
            let second = random_expr(choices, exprs, depth - 1);
            exprs.or(&[first, second])
        }
        2..=4 => {
            let second = random_expr(choices, exprs, depth - 1);
            exprs.concat(first, second)
        }
        5 | 6 => {
            let (min, max) = random_counts(choices);
            exprs.repeat(first, min, max)
        }
        7 => {
            let second = random_expr(choices, exprs, depth - 1);
            exprs.and(&[first, second])
        }
        _ => {
            let inner = exprs.not(first);
            let letters = exprs.bytes(ByteSet::range(b'a', b'c'));
            let words = exprs.repeat(letters, 0, Some(*choices.pick(&[4, 1, 30])));
            exprs.and(&[inner, words])
        }
    }
}
