//! How many texts go on from a place of a language: finitely many, or without end.
//!
//! A place from which finitely many go on is one all of whose steps lead to such places. A search in depth meets them
//! in the order in which that can be decided, and what it comes to again on its way down lies on a circle. What a place
//! is, and which texts count as one, is up to the one who asks: he says for each place how it goes on.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use stencilm_support::{LimitExceeded, memory};

use crate::derivative::deriver::Deriver;
use crate::expr::node::ExprId;

/// How many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cardinality {
    /// So many; [`u64::MAX`] for more than that.
    Finite(u64),
    /// More than any number.
    Infinite,
    /// That is not decided.
    Unknown,
}

/// How texts go on from a place, from where every one of them can be completed.
#[derive(Debug)]
pub struct Steps<P> {
    /// How many end there.
    pub ends: u64,
    /// Where the others go on.
    pub steps: Vec<Step<P>>,
}

/// A step from a place to the next one.
#[derive(Debug)]
pub struct Step<P> {
    /// The next place.
    pub to: P,
    /// How many edges lead there, one for each byte.
    pub edges: u64,
    /// Of the texts from there, how many are no others than some that are counted already.
    pub known: u64,
}

impl Steps<ExprId> {
    /// Those of an expression, of which every text counts.
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

/// What is known of places.
#[derive(Debug)]
pub struct Cardinalities<P>(FxHashMap<P, Cardinality>);

impl<P> Default for Cardinalities<P> {
    fn default() -> Cardinalities<P> {
        Cardinalities(FxHashMap::default())
    }
}

/// A place on the way down, and how many texts go on by its steps before `next`.
struct Level<P> {
    place: P,
    steps: Vec<Step<P>>,
    next: usize,
    count: u64,
}

impl<P: Copy + Eq + Hash> Cardinalities<P> {
    /// How many texts go on from a place. `steps` says how it goes on from each, `None` where that cannot be said; no
    /// more than `most` places are asked for.
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
                // Where it is reached again on the way down.
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
                // So has everything on the way.
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

    /// Notes that those on the path are not decided.
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
        // Numbers of one digit that may be written with a zero in front.
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
        // An error says nothing of what was on the path.
        let mut known = Cardinalities::default();
        assert_eq!(known.of(0, 10, |place| if place == 2 { Err(()) } else { steps(place) }), Err(()));
        assert_eq!(known.of(0, 10, steps), Ok(Cardinality::Finite(2 * 9 + 1)));
    }
}
