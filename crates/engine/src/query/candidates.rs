//! What may come next, for people: texts where few are possible, else patterns.

use stencilm_regex::{ExprId, check_time};

use crate::bounded::LOOKED_AT;
use crate::error::{EngineError, MatcherError};
use crate::matcher::GrammarMatcher;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::Entry;

/// Something that may come next: the rest of one lexeme.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Candidate {
    /// This text.
    Literal(String),
    /// What this pattern of the standard dialect matches, except for the empty text.
    Pattern(String),
}

/// Stands for a lexeme that no pattern can describe: an intersection, or the rest of a character.
const ANY_TEXT: &str = "(?s:.)+";

impl GrammarMatcher {
    /// What may come next: for every lexeme that may be gone on with, its texts where there are at most `limit`, else a
    /// pattern; texts first, each kind in order, and no more than `limit` in all. A lexeme that no pattern can describe
    /// stands as `(?s:.)+`, which is too much. The end of the text is not among them.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when a limit is reached.
    pub fn candidates(&mut self, limit: usize) -> Result<Vec<Candidate>, MatcherError> {
        if self.is_terminated() {
            return Ok(Vec::new());
        }
        let mut candidates = self.probe(|run, configuration| {
            let mut lexemes: Vec<ExprId> = Vec::new();
            for thread in run.stacks.entries(configuration).to_vec() {
                if thread != Entry::BOTTOM && !offers_tokens(thread) {
                    lexemes.extend(run.lexemes(thread).into_iter().map(|(_, lexeme)| lexeme));
                }
            }
            lexemes.sort_unstable();
            lexemes.dedup();
            let mut candidates = Vec::new();
            for lexeme in lexemes {
                match run.texts(lexeme, limit)? {
                    Some(texts) => {
                        // A lexeme does not know which elements and keys there are already.
                        for text in texts {
                            if run.survives(configuration, text.as_bytes())? {
                                candidates.push(Candidate::Literal(text));
                            }
                        }
                    }
                    None => {
                        let pattern = run.lexeme_cache.deriver().exprs.pattern(lexeme)?;
                        candidates.push(Candidate::Pattern(pattern.unwrap_or_else(|| ANY_TEXT.to_owned())));
                    }
                }
            }
            Ok(candidates)
        })?;
        candidates.sort_unstable();
        candidates.dedup();
        candidates.truncate(limit);
        Ok(candidates)
    }
}

impl Run<'_> {
    /// All texts of a lexeme that are not empty, if they are at most `limit` and all of them UTF-8.
    fn texts(&mut self, lexeme: ExprId, limit: usize) -> Result<Option<Vec<String>>, EngineError> {
        let deriver = self.lexeme_cache.deriver();
        let mut texts = Vec::new();
        let mut work: Vec<(ExprId, Vec<u8>)> = vec![(lexeme, Vec::new())];
        let mut places = 0;
        while let Some((expr, text)) = work.pop() {
            // All of it may be known: then nothing else looks at the clock.
            check_time()?;
            places += 1;
            if places > LOOKED_AT || texts.len() > limit || work.len() > LOOKED_AT {
                return Ok(None);
            }
            for (set, rest) in deriver.derivatives(expr)?.iter() {
                if set.len() > limit.max(1) || !deriver.is_live(*rest)? {
                    if deriver.is_live(*rest)? {
                        return Ok(None);
                    }
                    continue;
                }
                work.extend(set.iter().map(|byte| (*rest, [&text[..], &[byte]].concat())));
            }
            if !text.is_empty() && deriver.exprs.is_nullable(expr) {
                let Ok(text) = String::from_utf8(text) else { return Ok(None) };
                texts.push(text);
            }
        }
        Ok((texts.len() <= limit).then_some(texts))
    }
}
