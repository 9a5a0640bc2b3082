//! How many texts continue from a place of a language: a finite number, or infinitely many.
//!
//! Finitely many continue from a place if its steps lead only to such places. A depth-first search visits places in an
//! order in which that can be decided, and a place that is reached again on its own path is on a cycle. The caller
//! decides what a place is and which texts count as equal, by telling for each place how it continues.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use stencilm_support::{LimitExceeded, memory};

use crate::derivative::deriver::Deriver;
use crate::expr::node::ExprId;

/// The number of texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cardinality {
    /// This number; [`u64::MAX`] stands for larger ones.
    Finite(u64),
    /// More than any number.
    Infinite,
    /// It was not decided.
    Unknown,
}

/// How texts continue from a place from which every step can be completed.
#[derive(Debug)]
pub struct Steps<P> {
    /// How many texts end there.
    pub ends: u64,
    /// Where the others continue.
    pub steps: Vec<Step<P>>,
}

/// A step from a place to the next one.
#[derive(Debug)]
pub struct Step<P> {
    /// The next place.
    pub to: P,
    /// The number of edges that lead there, one for each byte.
    pub edges: u64,
    /// How many of the texts from there are equal to texts that are already counted.
    pub known: u64,
}

impl Steps<ExprId> {
    /// The steps of an expression of which every text counts.
    ///
    /// # Errors
    /// As [`Deriver::derivatives`].
    pub fn of_texts(deriver: &mut Deriver, expr: ExprId) -> Result<Steps<ExprId>, LimitExceeded> {
        let mut steps = Vec::new();
        for &(bytes, to) in deriver.derivatives(expr)?.iter() {
            if deriver.is_live(to)? {
                steps.push(Step { to, edges: bytes.len() as u64, known: 0 });
            }
        }
        Ok(Steps { ends: u64::from(deriver.exprs.is_nullable(expr)), steps })
    }
}

/// A memo of places.
#[derive(Debug)]
pub struct Cardinalities<P>(FxHashMap<P, Cardinality>);

impl<P> Default for Cardinalities<P> {
    fn default() -> Cardinalities<P> {
        Cardinalities(FxHashMap::default())
    }
}

/// A place on the path, and how many texts continue by its steps before `next`.
struct Level<P> {
    place: P,
    steps: Vec<Step<P>>,
    next: usize,
    count: u64,
}

impl<P: Copy + Eq + Hash> Cardinalities<P> {
    /// How many texts continue from a place. `steps` tells how each place continues, or `None` where it cannot. At most
    /// `most` places are visited.
    ///
    /// # Errors
    /// Those of `steps`.
    pub fn of<E>(
        &mut self,
        root: P,
        most: usize,
        mut steps: impl FnMut(P) -> Result<Option<Steps<P>>, E>,
    ) -> Result<Cardinality, E> {
        if let Some(&known) = self.0.get(&root) {
            return Ok(known);
        }
        let before = self.0.len();
        let mut levels: Vec<Level<P>> = Vec::new();
        let mut down = Some(root);
        loop {
            if let Some(place) = down.take() {
                if self.0.len() - before >= most {
                    return Ok(self.give_up(&levels));
                }
                let Steps { ends, steps } = match steps(place) {
                    Ok(Some(steps)) => steps,
                    Ok(None) => return Ok(self.give_up(&levels)),
                    Err(error) => {
                        levels.iter().for_each(|level| _ = self.0.remove(&level.place));
                        return Err(error);
                    }
                };
                // The result if it is reached again on the path.
                self.0.insert(place, Cardinality::Infinite);
                levels.push(Level { place, steps, next: 0, count: ends });
            }
            let Some(level) = levels.last_mut() else { return Ok(self.0[&root]) };
            let Some(step) = level.steps.get(level.next) else {
                self.0.insert(level.place, Cardinality::Finite(level.count));
                levels.pop();
                continue;
            };
            match self.0.get(&step.to) {
                Some(&Cardinality::Finite(count)) => {
                    level.count = level.count.saturating_add((count - step.known).saturating_mul(step.edges));
                    level.next += 1;
                }
                // Then every place on the path has infinitely many, too.
                Some(Cardinality::Infinite) => return Ok(Cardinality::Infinite),
                Some(Cardinality::Unknown) => return Ok(self.give_up(&levels)),
                None => down = Some(step.to),
            }
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(P, Cardinality)>(self.0.capacity())
    }

    /// Marks the places on the path as undecided.
    fn give_up(&mut self, levels: &[Level<P>]) -> Cardinality {
        self.0.extend(levels.iter().map(|level| (level.place, Cardinality::Unknown)));
        Cardinality::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};

    #[test]
    fn texts_are_counted() {
        use Cardinality::{Finite, Infinite, Unknown};
        for (pattern, most, expected) in [
            ("a|bc?", 10, Finite(3)),
            ("[a-c]{2}", 10, Finite(9)),
            ("[a-z]{3,4}", 10, Finite(26 * 26 * 26 * 27)),
            ("(?:aa|b)?c", 10, Finite(3)),
            ("[a-z]{60}", 100, Finite(u64::MAX)),
            ("[]", 10, Finite(0)),
            ("a*", 10, Infinite),
            ("ab(?:c|d*e)", 10, Infinite),
            ("[a-c]{20}", 10, Unknown),
        ] {
            let mut deriver = Deriver::new(Limits::default());
            let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
            let root = parse_pattern(&mut deriver.exprs, pattern, &options, &mut Utf8).unwrap();
            let mut known = Cardinalities::default();
            let mut of = |place| known.of(place, most, |place| Steps::of_texts(&mut deriver, place).map(Some)).unwrap();
            assert_eq!((of(root), of(root)), (expected, expected), "{pattern}");
        }
    }

    #[test]
    fn what_is_no_other_text_is_left_out() {
        // Numbers of one digit that may have a leading zero.
        let steps = |place: u8| {
            Ok::<_, ()>(match place {
                0 => Some(Steps {
                    ends: 0,
                    steps: vec![Step { to: 1, edges: 2, known: 1 }, Step { to: 2, edges: 1, known: 0 }],
                }),
                1 => Some(Steps { ends: 1, steps: vec![Step { to: 2, edges: 9, known: 0 }] }),
                2 => Some(Steps { ends: 1, steps: Vec::new() }),
                _ => None,
            })
        };
        let mut known = Cardinalities::default();
        assert_eq!(known.of(0, 10, steps), Ok(Cardinality::Finite(2 * 9 + 1)));
        assert_eq!(known.of(3, 10, steps), Ok(Cardinality::Unknown));
        // After an error, nothing is known about the places on the path.
        let mut known = Cardinalities::default();
        assert_eq!(known.of(0, 10, |place| if place == 2 { Err(()) } else { steps(place) }), Err(()));
        assert_eq!(known.of(0, 10, steps), Ok(Cardinality::Finite(2 * 9 + 1)));
    }
}
