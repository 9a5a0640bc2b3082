//! How long the texts of a pattern or format are, in characters: shows which length limits say nothing new.
//!
//! A pattern read with an alphabet of one letter is the set of its lengths. A limit that all of them keep is left out,
//! which spares the automaton a product of pattern and counter; most schemas with both are of that kind.

use rustc_hash::FxHashMap;
use stencilm_regex::syntax::{Alphabet, Anchoring, Dialect, PatternOptions, parse_pattern};
use stencilm_regex::{Expr, ExprId, ExprSet};
use stencilm_support::{LimitExceeded, decided};

use crate::json::format::Format;

/// The least and the greatest length of a set of texts; `None` if there is no greatest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lengths {
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
}

impl Lengths {
    /// Every length.
    pub(crate) const ANY: Lengths = Lengths { min: 0, max: None };

    /// The lengths that both allow.
    pub(crate) fn and(self, other: Lengths) -> Lengths {
        let max = match (self.max, other.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Lengths { min: self.min.max(other.min), max }
    }

    fn then(self, other: Lengths) -> Lengths {
        let max = self.max.zip(other.max).map(|(a, b)| a.saturating_add(b));
        Lengths { min: self.min.saturating_add(other.min), max }
    }

    fn or(self, other: Lengths) -> Lengths {
        Lengths { min: self.min.min(other.min), max: self.max.zip(other.max).map(|(a, b)| a.max(b)) }
    }

    fn times(self, min: u32, max: Option<u32>) -> Lengths {
        let most = match (self.max, max) {
            (Some(0), _) => Some(0),
            (most, max) => most.zip(max).map(|(most, max)| most.saturating_mul(u64::from(max))),
        };
        Lengths { min: self.min.saturating_mul(u64::from(min)), max: most }
    }
}

/// Bounds on the lengths of the texts that contain a match of a pattern; all lengths if that isn't easily decided.
///
/// # Errors
/// A limit of time.
pub(crate) fn of_pattern(pattern: &str) -> Result<Lengths, LimitExceeded> {
    let mut exprs = ExprSet::new();
    let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Search };
    match decided(|| parse_pattern(&mut exprs, pattern, &options, &mut OneLetter))? {
        Some(expr) if !exprs.has_boolean(expr) => of_expr(&exprs, expr),
        _ => Ok(Lengths::ANY),
    }
}

/// Bounds on the lengths of the texts of a format.
pub(crate) fn of_format(format: Format) -> Lengths {
    let (min, max) = match format {
        Format::Date => (10, Some(10)),
        Format::Time => (9, None),
        Format::DateTime => (20, None),
        Format::Uuid => (36, Some(36)),
        Format::Ipv4 => (7, Some(15)),
        Format::Ipv6 => (2, Some(45)),
        Format::Hostname | Format::IdnHostname => (1, Some(253)),
        Format::Duration | Format::Email | Format::IdnEmail => (3, None),
        Format::Uri | Format::Iri => (2, None),
        Format::RelativeJsonPointer => (1, None),
        Format::UriReference | Format::IriReference | Format::UriTemplate | Format::JsonPointer | Format::Regex => {
            (0, None)
        }
    };
    Lengths { min, max }
}

/// Replaces every character by the same letter.
struct OneLetter;

impl Alphabet for OneLetter {
    fn class(&mut self, exprs: &mut ExprSet, ranges: &[(char, char)]) -> ExprId {
        if ranges.is_empty() { ExprId::NOTHING } else { exprs.literal(b"x") }
    }

    fn distinguishes(&self) -> bool {
        false
    }
}

fn of_expr(exprs: &ExprSet, root: ExprId) -> Result<Lengths, LimitExceeded> {
    exprs.fold(root, &mut FxHashMap::default(), |expr, known: &FxHashMap<ExprId, Lengths>| match expr {
        Expr::Empty => Lengths { min: 0, max: Some(0) },
        Expr::Bytes(_) => Lengths { min: 1, max: Some(1) },
        Expr::Text(text) => Lengths { min: text.len() as u64, max: Some(text.len() as u64) },
        Expr::Concat { head, tail } => known[head].then(known[tail]),
        Expr::Or(parts) => parts.iter().map(|part| known[part]).reduce(Lengths::or).unwrap_or(Lengths::ANY),
        Expr::Repeat { body, min, max } => known[body].times(*min, *max),
        Expr::Nothing | Expr::And(_) | Expr::Not(_) | Expr::Number(_) | Expr::Language(_) => Lengths::ANY,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_patterns() {
        for (pattern, min, max) in [
            ("^[a-z]{3}$", 3, Some(3)),
            ("^(a|bcd)?$", 0, Some(3)),
            ("^é+$", 1, None),
            ("abc", 3, None),
            ("^a{2,5}b*$", 2, None),
            ("^(ab){2,5}$", 4, Some(10)),
            ("^a|b$", 1, None),
            ("^$", 0, Some(0)),
            ("(", 0, None),
        ] {
            assert_eq!(of_pattern(pattern), Ok(Lengths { min, max }), "{pattern}");
        }
    }
}
