//! The cost of completing the worst prefix of a lexeme, for a bound on what is left to write after a token that ends
//! within it.
//!
//! Without intersections and complements, this is read off the expression. Otherwise all residuals of the lexeme are
//! examined, and the result is stored for each, since most of them are asked for one after another. If there are too
//! many, the length of the longest match is the bound.

use rustc_hash::FxHashMap;
use stencilm_regex::{Completions, ExprId, ExprSet};
use stencilm_support::{LOOKED_AT, LimitExceeded};

use crate::completion::token_counts::NEVER;
use crate::error::EngineError;
use crate::parse::stepper::Run;
use crate::switches::Switch;

/// The costs, in bytes, of completing worst prefixes of lexemes and of their residuals; [`NEVER`] where not known.
#[derive(Default)]
pub(crate) struct WorstCases {
    known: FxHashMap<ExprId, u64>,
    /// Upper bounds on the longest matches, for lexemes with too many residuals and for their parts.
    longest: FxHashMap<ExprId, u32>,
}

/// A residual of a lexeme.
struct Place {
    lexeme: ExprId,
    /// The residuals that lead here, each with the number of bytes that do.
    above: Vec<(usize, u64)>,
    /// The length of the shortest match from here.
    shortest: Option<u64>,
    /// The greatest length that is left after any prefix of a match from here.
    worst: Option<u64>,
}

impl WorstCases {
    /// The cost for a lexeme or a residual of one.
    pub fn of(&mut self, run: &mut Run<'_>, lexeme: ExprId) -> Result<u64, EngineError> {
        if let Some(&known) = self.known.get(&lexeme) {
            return Ok(known);
        }
        let most = match run.lexeme_cache.most_to_complete(lexeme)? {
            // A language decided by a program has a different residual for each of its texts.
            u32::MAX if !Switch::CompletionWorst.is_on() || run.lexeme_cache.deriver().exprs.has_language(lexeme) => {
                longest_at_most(&run.lexeme_cache.deriver().exprs, lexeme, &mut self.longest)?
            }
            u32::MAX => {
                self.look_at_places(run, lexeme)?;
                return Ok(self.known[&lexeme]);
            }
            most => u64::from(most),
        };
        self.known.insert(lexeme, most);
        Ok(most)
    }

    /// Computes the costs for all residuals of a lexeme; if there are too many, for those visited until then.
    fn look_at_places(&mut self, run: &mut Run<'_>, lexeme: ExprId) -> Result<(), EngineError> {
        let (mut places, are_all) = places_in(run, lexeme)?;
        if !are_all {
            // They consist of nearly the same parts, which are examined once for all of them.
            for Place { lexeme, .. } in places {
                let longest = longest_at_most(&run.lexeme_cache.deriver().exprs, lexeme, &mut self.longest)?;
                self.known.insert(lexeme, longest);
            }
            return Ok(());
        }
        let nearest = find_shortest(run, &mut places);
        // The farthest first: the residuals that lead there are not nearer to an end.
        for &at in nearest.iter().rev() {
            let worst = places[at].shortest;
            let mut work = vec![at];
            while let Some(at) = work.pop() {
                if places[at].worst.is_none() {
                    places[at].worst = worst;
                    work.extend(places[at].above.iter().map(|&(before, _)| before));
                }
            }
        }
        self.known.extend(places.iter().map(|place| (place.lexeme, place.worst.unwrap_or(0))));
        Ok(())
    }
}

/// The residuals of a lexeme, and whether these are all: if there are too many, only some.
fn places_in(run: &mut Run<'_>, lexeme: ExprId) -> Result<(Vec<Place>, bool), EngineError> {
    let deriver = run.lexeme_cache.deriver();
    let place = |lexeme| Place { lexeme, above: Vec::new(), shortest: None, worst: None };
    let mut places = vec![place(lexeme)];
    let mut numbers = FxHashMap::from_iter([(lexeme, 0usize)]);
    let mut done = 0;
    while done < places.len() {
        if places.len() > LOOKED_AT {
            return Ok((places, false));
        }
        for (bytes, rest) in deriver.derivatives(places[done].lexeme)?.iter() {
            if !deriver.is_live(*rest)? {
                continue;
            }
            let number = *numbers.entry(*rest).or_insert_with(|| {
                places.push(place(*rest));
                places.len() - 1
            });
            places[number].above.push((done, bytes.len() as u64));
        }
        done += 1;
    }
    Ok((places, true))
}

/// Computes the shortest match from each residual. Returns the residuals by that length, the shortest first.
fn find_shortest(run: &mut Run<'_>, places: &mut [Place]) -> Vec<usize> {
    let exprs = &run.lexeme_cache.deriver().exprs;
    let mut nearest: Vec<usize> = (0..places.len()).filter(|&at| exprs.is_nullable(places[at].lexeme)).collect();
    nearest.iter().for_each(|&at| places[at].shortest = Some(0));
    let mut done = 0;
    while let Some(&at) = nearest.get(done) {
        done += 1;
        let length = places[at].shortest.map(|length| length + 1);
        for index in 0..places[at].above.len() {
            let before = places[at].above[index].0;
            if places[before].shortest.is_none() {
                places[before].shortest = length;
                nearest.push(before);
            }
        }
    }
    nearest
}

/// Whether every residual of a lexeme, except its end, has at least a given number of matches whose lengths exceed the
/// shortest by at most a given number of bytes. `false` if there are too many residuals.
pub(crate) fn has_many_everywhere(
    run: &mut Run<'_>,
    lexeme: ExprId,
    many: u64,
    more: u64,
) -> Result<bool, EngineError> {
    let (mut places, are_all) = places_in(run, lexeme)?;
    if !are_all {
        return Ok(false);
    }
    find_shortest(run, &mut places);
    // The numbers of matches of one length, and of matches up to that length.
    let mut of_length: Vec<u64> = places.iter().map(|place| u64::from(place.shortest == Some(0))).collect();
    let mut all = of_length.clone();
    let longest = places.iter().filter_map(|place| place.shortest).max().unwrap_or(0).saturating_add(more);
    for length in 0..=longest {
        let is_asked = |place: &Place| place.lexeme != ExprId::EMPTY && place.shortest == length.checked_sub(more);
        if places.iter().zip(&all).any(|(place, &count)| is_asked(place) && count < many) {
            return Ok(false);
        }
        let mut longer = vec![0u64; places.len()];
        for (place, &count) in places.iter().zip(&of_length) {
            for &(before, bytes) in &place.above {
                longer[before] = longer[before].saturating_add(count.saturating_mul(bytes));
            }
        }
        of_length = longer;
        all.iter_mut().zip(&of_length).for_each(|(all, count)| *all = all.saturating_add(*count));
    }
    Ok(true)
}

/// An upper bound on the length of the longest match, without visiting residuals; [`NEVER`] where it is not known.
/// `known` is a memo.
pub(crate) fn longest_at_most(
    exprs: &ExprSet,
    lexeme: ExprId,
    known: &mut FxHashMap<ExprId, u32>,
) -> Result<u64, LimitExceeded> {
    Ok(match Completions::longest(exprs, lexeme, known)? {
        u32::MAX => NEVER,
        longest => u64::from(longest),
    })
}
