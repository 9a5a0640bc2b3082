//! What may come next, for people to read: texts if few are possible, otherwise patterns.
//!
//! The search is not urgent, but it holds the lexemes. So it is done in pieces, and between these the lexemes are
//! handed to any thread that waits for them.

use stencilm_regex::{ExprId, Printed, Printing};
use stencilm_support::{FEW, LOOKED_AT, check_time};

use crate::compiled::Layout;
use crate::error::{EngineError, MatcherError};
use crate::matcher::GrammarMatcher;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};

/// Something that may come next: the rest of one lexeme.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Candidate {
    /// This text.
    Literal(String),
    /// Anything that this pattern of the standard dialect matches, except the empty text.
    Pattern(String),
}

/// The pattern for a lexeme that no pattern can describe: an intersection, or the rest of a character.
const ANY_TEXT: &str = "(?s:.)+";

impl GrammarMatcher {
    /// What may come next: for every lexeme that can continue, its texts if there are at most `limit`, and otherwise a
    /// pattern. Texts come first, each group in order, and there are at most `limit` results in all. A lexeme that no
    /// pattern can describe is given as `(?s:.)+`, which matches too much. The end of the text is not among the
    /// results.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when a limit is reached.
    pub fn candidates(&mut self, limit: usize) -> Result<Vec<Candidate>, MatcherError> {
        if self.is_terminated() {
            return Ok(Vec::new());
        }
        self.candidates_while(limit, Layout::is_waited_for)
    }

    /// The same, in pieces that end when others wait.
    fn candidates_while(
        &mut self,
        limit: usize,
        is_waited_for: impl Fn(&Layout) -> bool,
    ) -> Result<Vec<Candidate>, MatcherError> {
        let mut candidates = self.in_time(|matcher| matcher.unordered_candidates(limit, is_waited_for))?;
        candidates.sort_unstable();
        candidates.dedup();
        candidates.truncate(limit);
        Ok(candidates)
    }

    fn unordered_candidates(
        &mut self,
        limit: usize,
        is_waited_for: impl Fn(&Layout) -> bool,
    ) -> Result<Vec<Candidate>, MatcherError> {
        // Held until the end, so that each piece can use what the one before it computed about the lexemes.
        let layout = self.layout()?;
        let lexemes = self.probe(|run, here| Ok(run.lexemes_at(here)))?;
        let mut search = Search { lexemes, stage: None, limit, candidates: Vec::new() };
        while !self.probe(|run, here| search.go_on(run, here, || is_waited_for(&layout)))? {
            layout.give_way();
        }
        Ok(search.candidates)
    }
}

/// A search for candidates that can be interrupted after any step.
struct Search {
    /// The lexemes that are left, the next one last.
    lexemes: Vec<ExprId>,
    /// How far the current lexeme is.
    stage: Option<Stage>,
    limit: usize,
    candidates: Vec<Candidate>,
}

enum Stage {
    Spelling(Texts),
    Printing(Printing),
    /// The texts of the lexeme that were not tried yet.
    Trying(Vec<String>),
}

impl Search {
    /// Continues until the end or until a thread waits; returns whether it reached the end.
    fn go_on(&mut self, run: &mut Run<'_>, here: SetId, is_waited_for: impl Fn() -> bool) -> Result<bool, EngineError> {
        loop {
            for _ in 0..FEW {
                if !self.step(run, here)? {
                    return Ok(true);
                }
            }
            if is_waited_for() {
                return Ok(false);
            }
        }
    }

    /// Does one short step; returns whether there was one to do.
    fn step(&mut self, run: &mut Run<'_>, here: SetId) -> Result<bool, EngineError> {
        match &mut self.stage {
            None => {
                let Some(lexeme) = self.lexemes.pop() else { return Ok(false) };
                self.stage = Some(Stage::Spelling(Texts::of(lexeme)));
            }
            Some(Stage::Spelling(texts)) => match texts.step(run, self.limit)? {
                Spelled::Some => {}
                Spelled::All => self.stage = Some(Stage::Trying(std::mem::take(&mut texts.texts))),
                Spelled::TooMany => self.stage = Some(Stage::Printing(Printing::of(texts.lexeme))),
            },
            Some(Stage::Printing(printing)) => {
                if let Printed::All(pattern) = printing.step(&run.lexeme_cache.deriver().exprs)? {
                    self.candidates.push(Candidate::Pattern(pattern.unwrap_or_else(|| ANY_TEXT.to_owned())));
                    self.stage = None;
                }
            }
            Some(Stage::Trying(texts)) => match texts.pop() {
                // A lexeme does not know which elements and keys are used already.
                Some(text) if run.survives(here, text.as_bytes())? => self.candidates.push(Candidate::Literal(text)),
                Some(_) => {}
                None => self.stage = None,
            },
        }
        Ok(true)
    }
}

/// A search for the non-empty texts of a lexeme.
struct Texts {
    lexeme: ExprId,
    texts: Vec<String>,
    /// Prefixes of texts, each with the expression for the rest.
    work: Vec<(ExprId, Vec<u8>)>,
    places: usize,
}

/// The state of this search.
enum Spelled {
    Some,
    All,
    /// There are more than wanted, some are not UTF-8, or the search takes too long.
    TooMany,
}

impl Texts {
    fn of(lexeme: ExprId) -> Texts {
        Texts { lexeme, texts: Vec::new(), work: vec![(lexeme, Vec::new())], places: 0 }
    }

    /// Takes one prefix from the list.
    fn step(&mut self, run: &mut Run<'_>, limit: usize) -> Result<Spelled, EngineError> {
        let Some((expr, text)) = self.work.pop() else {
            return Ok(if self.texts.len() <= limit { Spelled::All } else { Spelled::TooMany });
        };
        // If everything is cached, nothing else checks the deadline.
        check_time()?;
        self.places += 1;
        if self.places > LOOKED_AT || self.texts.len() > limit || self.work.len() > LOOKED_AT {
            return Ok(Spelled::TooMany);
        }
        let deriver = run.lexeme_cache.deriver();
        for (set, rest) in deriver.derivatives(expr)?.iter() {
            if !deriver.is_live(*rest)? {
                continue;
            }
            if set.len() > limit.max(1) {
                return Ok(Spelled::TooMany);
            }
            self.work.extend(set.iter().map(|byte| (*rest, [&text[..], &[byte]].concat())));
        }
        if !text.is_empty() && deriver.exprs.is_nullable(expr) {
            let Ok(text) = String::from_utf8(text) else { return Ok(Spelled::TooMany) };
            self.texts.push(text);
        }
        Ok(Spelled::Some)
    }
}

impl Run<'_> {
    /// The lexemes with which the text may continue.
    fn lexemes_at(&mut self, configuration: SetId) -> Vec<ExprId> {
        let mut lexemes: Vec<ExprId> = Vec::new();
        for thread in self.stacks.entries(configuration).to_vec() {
            if thread != Entry::BOTTOM && !offers_tokens(thread) {
                lexemes.extend(self.lexemes(thread).into_iter().map(|(_, lexeme)| lexeme));
            }
        }
        lexemes.sort_unstable();
        lexemes.dedup();
        lexemes
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use super::*;
    use crate::compiled::CompiledGrammar;
    use crate::matcher::MatcherOptions;
    use crate::shared::Vocabulary;

    #[test]
    fn candidates_in_pieces_are_those_that_are_found_at_once() {
        let tokens: Vec<Option<Vec<u8>>> = (0..=255u8).map(|byte| Some(vec![byte])).collect();
        let vocabulary = Arc::new(Vocabulary::new(&tokens, 257, &[256], &[]).unwrap());
        for pattern in ["v[0-9]{3}", "([a-d]{2}[x-z]|[0-9]{2}){3}", "[a-z]{2,4}(one|two){9}", "(a|é|日)?b{0,200}"] {
            let grammar = Arc::new(stencilm_grammar::from_regex(pattern).unwrap());
            let compiled = Arc::new(CompiledGrammar::new(grammar, vocabulary.clone()).unwrap());
            let mut matcher = GrammarMatcher::new(compiled, &MatcherOptions::default()).unwrap();
            for limit in [0, 1, 40, 4_000] {
                let pieces = Cell::new(0);
                let ends = |_: &Layout| {
                    pieces.set(pieces.get() + 1);
                    true
                };
                let found = matcher.candidates_while(limit, ends).unwrap();
                assert_eq!(found, matcher.candidates(limit).unwrap(), "{pattern} {limit}");
                assert!(limit < 4_000 || pieces.get() > 1, "{pattern}: {} pieces", pieces.get());
            }
        }
    }
}
