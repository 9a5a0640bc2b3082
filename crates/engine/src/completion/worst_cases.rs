//! What completes the worst beginning of a lexeme: for a bound on what a token that ends within it leaves to be written.
//!
//! Without intersections and complements that is plain from the expression. Otherwise all places in the lexeme are looked at, and
//! what is found holds for each of them, as most of them are asked for one after the other. Where they are too many, no more is
//! left than the longest match takes.

use rustc_hash::FxHashMap;
use stencilm_regex::{Completions, ExprId};

use crate::bounded::LOOKED_AT;
use crate::completion::token_counts::NEVER;
use crate::error::EngineError;
use crate::parse::stepper::Run;

/// What completes the worst beginnings of lexemes, and of what is left of them, in bytes; [`NEVER`] where it is not known.
#[derive(Default)]
pub(crate) struct WorstCases {
    known: FxHashMap<ExprId, u64>,
    /// The bytes of the longest matches, or more, of lexemes with too many places and of what these consist of.
    longest: FxHashMap<ExprId, u32>,
}

/// A place in a lexeme.
struct Place {
    lexeme: ExprId,
    /// The places from which a byte leads here.
    above: Vec<usize>,
    /// The bytes of the shortest match from here.
    shortest: Option<u64>,
    /// The most that is left behind a beginning of a match from here.
    worst: Option<u64>,
}

impl WorstCases {
    /// That of a lexeme or of what is left of one.
    pub fn of(&mut self, run: &mut Run<'_>, lexeme: ExprId) -> Result<u64, EngineError> {
        if let Some(&known) = self.known.get(&lexeme) {
            return Ok(known);
        }
        let most = match run.lexeme_cache.most_to_complete(lexeme) {
            // What a program tells leaves a place for each of its texts.
            u32::MAX if run.lexeme_cache.deriver().exprs.has_language(lexeme) => {
                longest_at_most(run, lexeme, &mut self.longest)
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

    /// Finds out what is left at all places in a lexeme; where they are many, at those that were looked at by then.
    fn look_at_places(&mut self, run: &mut Run<'_>, lexeme: ExprId) -> Result<(), EngineError> {
        let (mut places, are_all) = places_in(run, lexeme)?;
        if !are_all {
            // They consist of much the same, which is looked at once for all of them.
            for Place { lexeme, .. } in places {
                self.known.insert(lexeme, longest_at_most(run, lexeme, &mut self.longest));
            }
            return Ok(());
        }
        let ends = (0..places.len()).filter(|&at| run.lexeme_cache.deriver().exprs.is_nullable(places[at].lexeme));
        let mut nearest: Vec<usize> = ends.collect();
        nearest.iter().for_each(|&at| places[at].shortest = Some(0));
        let mut done = 0;
        while let Some(&at) = nearest.get(done) {
            done += 1;
            let length = places[at].shortest.map(|length| length + 1);
            for index in 0..places[at].above.len() {
                let before = places[at].above[index];
                if places[before].shortest.is_none() {
                    places[before].shortest = length;
                    nearest.push(before);
                }
            }
        }
        // The farthest first: what leads there is no nearer.
        for &at in nearest.iter().rev() {
            let worst = places[at].shortest;
            let mut work = vec![at];
            while let Some(at) = work.pop() {
                if places[at].worst.is_none() {
                    places[at].worst = worst;
                    work.extend(&places[at].above);
                }
            }
        }
        self.known.extend(places.iter().map(|place| (place.lexeme, place.worst.unwrap_or(0))));
        Ok(())
    }
}

/// The places in a lexeme, and whether they are all: where these are many they are not.
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
        for (_, rest) in deriver.derivatives(places[done].lexeme)?.iter() {
            if !deriver.is_live(*rest)? {
                continue;
            }
            let number = *numbers.entry(*rest).or_insert_with(|| {
                places.push(place(*rest));
                places.len() - 1
            });
            places[number].above.push(done);
        }
        done += 1;
    }
    Ok((places, true))
}

/// The bytes of the longest match, or more, without a look at the places in it; [`NEVER`] where that is not told. `known` is what
/// was found before, and all that is found is added.
pub(crate) fn longest_at_most(run: &mut Run<'_>, lexeme: ExprId, known: &mut FxHashMap<ExprId, u32>) -> u64 {
    match Completions::longest(&run.lexeme_cache.deriver().exprs, lexeme, known) {
        u32::MAX => NEVER,
        longest => u64::from(longest),
    }
}
