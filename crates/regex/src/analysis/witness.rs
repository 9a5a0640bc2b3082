//! Short texts that show without a search that an intersection matches something.

use stencilm_support::LimitExceeded;

use crate::derivative::deriver::Deriver;
use crate::expr::node::{Expr, ExprId};

/// Longer texts are not tried: if one does not match, finding that out takes a derivative of every part for each byte.
const MAX_WITNESS: u32 = 8;
/// The greatest length that is looked for.
const MAX_LENGTH: u32 = 1_024;

impl Deriver {
    /// A length of a match of an intersection, perhaps with something simple after it, if the shortest match of one part
    /// is a match of all parts. A pattern with a maximum length is mostly decided by this, without deriving the
    /// intersection. `u32::MAX` where only the existence of a match is known.
    pub(crate) fn witness_length(&mut self, id: ExprId) -> Result<Option<u32>, LimitExceeded> {
        let (parts, after) = match *self.exprs.get(id) {
            Expr::And(ref parts) => (parts.clone(), Some(0)),
            Expr::Concat { head, tail } if !self.exprs.has_boolean(tail) => match self.exprs.get(head) {
                Expr::And(parts) => (parts.clone(), self.known_length(tail)),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let plain = parts.iter().copied().filter(|&part| !self.exprs.has_boolean(part));
        let Some(longest) = plain.max_by_key(|&part| self.exprs.shortest_at_least(part)) else { return Ok(None) };
        let Some(witness) = self.shortest_text(longest, MAX_WITNESS) else { return Ok(None) };
        for &part in &*parts {
            if part != longest && !self.matches(part, &witness)? {
                return Ok(None);
            }
        }
        Ok(Some(after.map_or(u32::MAX, |after| witness.len() as u32 + after)))
    }

    /// The length of a match of an expression without intersections and complements.
    pub(crate) fn known_length(&self, id: ExprId) -> Option<u32> {
        Some(self.shortest_text(id, MAX_LENGTH)?.len() as u32)
    }

    /// A shortest match of an expression without intersections and complements; `None` where it is longer than `most`
    /// or contains a number.
    fn shortest_text(&self, id: ExprId, most: u32) -> Option<Vec<u8>> {
        let shortest = |id| self.exprs.shortest_at_least(id);
        if shortest(id) > most {
            return None;
        }
        let mut text = Vec::new();
        let mut work = vec![id];
        while let Some(id) = work.pop() {
            if shortest(id) == 0 {
                continue;
            }
            match self.exprs.get(id) {
                // Other parts mostly allow letters and digits.
                Expr::Bytes(set) => {
                    let first = set.iter().find(u8::is_ascii_alphanumeric).or_else(|| set.first());
                    text.push(first?);
                }
                Expr::Concat { head, tail } => work.extend([*tail, *head]),
                Expr::Or(parts) => work.push(parts.iter().copied().min_by_key(|&part| shortest(part))?),
                Expr::Repeat { body, min, .. } => work.extend((0..*min).map(|_| *body)),
                Expr::Language(rest) => text.extend(rest.easy_completion()?),
                Expr::Text(piece) => text.extend_from_slice(piece.as_bytes()),
                Expr::Nothing | Expr::Empty | Expr::And(_) | Expr::Not(_) | Expr::Number(_) => return None,
            }
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::{PatternOptions, Utf8, parse_pattern};

    #[test]
    fn what_is_seen_at_a_glance_is_live() {
        let mut deriver = Deriver::new(Limits::default());
        let mut parsed =
            |pattern: &str| parse_pattern(&mut deriver.exprs, pattern, &PatternOptions::default(), &mut Utf8).unwrap();
        let [short, words, digits, long] = ["[^a]{0,3}", r"(\w+ ){2}\w|b", "[0-9]+", "x{20}"].map(&mut parsed);
        let without_b = {
            let b = parsed("b");
            deriver.exprs.not(b)
        };
        let mut glance = |parts: &[ExprId]| {
            let both = deriver.exprs.and(parts);
            let quote = deriver.exprs.literal(b"\"");
            let ended = deriver.exprs.concat(both, quote);
            let seen = deriver.witness_length(both).unwrap();
            assert_eq!(deriver.witness_length(ended).unwrap(), seen.map(|length| length + 1));
            let seen = seen.is_some();
            assert!(!seen || deriver.is_live(ended).unwrap());
            seen
        };
        assert!(glance(&[short, words]));
        // These may match something or not; no short witness shows it.
        assert!(!glance(&[short, words, without_b]) && !glance(&[words, digits]) && !glance(&[long, digits]));
        assert!(glance(&[digits, without_b]));
    }

    proptest::proptest! {
        /// An expression that matches nothing is never said to be live.
        #[test]
        fn a_witness_is_a_match(
            one in proptest::sample::select(vec!["(a|b)*abb", "(ab){0,2}c?", "[^a]{0,3}", "a?b?c?", "é*b", "(a|é){2}"]),
            other in proptest::sample::select(vec!["[ab]*", "c|cc", "(ab)+", "..?", "[^b]*", "b{1,3}"]),
            negated in proptest::bool::ANY,
        ) {
            let mut deriver = Deriver::new(Limits::default());
            let [one, other] = [one, other].map(|pattern| {
                parse_pattern(&mut deriver.exprs, pattern, &PatternOptions::default(), &mut Utf8).unwrap()
            });
            let other = if negated { deriver.exprs.not(other) } else { other };
            let both = deriver.exprs.and(&[one, other]);
            if let Some(length) = deriver.witness_length(both).unwrap() {
                let text = crate::Shortest::new(&deriver, both, 1, 10_000).next(&mut deriver).unwrap();
                let shortest = text.map(|text| text.len() as u32).filter(|_| !deriver.exprs.is_nullable(both));
                proptest::prop_assert!(shortest.unwrap_or(0) <= length);
            }
        }
    }
}
