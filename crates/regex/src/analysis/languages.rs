//! Expressions that begin with the rest of a language decided by a program, perhaps within limits of length.
//!
//! Such a language has a different residual after every byte, so a search for a match would try all of them. But the
//! program knows the completions and their possible lengths, and limits of length ask for nothing else.

use stencilm_support::LimitExceeded;

use crate::derivative::deriver::Deriver;
use crate::expr::expr_set::ExprSet;
use crate::expr::language::{LanguageReader, LanguageRest};
use crate::expr::node::{Expr, ExprId};

/// The greatest depth to which parts are examined.
const MAX_LEVEL: u32 = 8;

/// An alternative of an expression that begins with the rest of a language: `(rest then & others) after`.
#[derive(Clone)]
pub struct LanguageAlternative {
    /// The rest of the language.
    pub rest: LanguageRest,
    /// What follows it.
    pub then: ExprId,
    /// The other parts of the intersection.
    pub others: Vec<ExprId>,
    /// What follows the intersection.
    pub after: ExprId,
}

impl ExprSet {
    /// The alternatives of an expression, if each of them begins with the rest of a language decided by a program.
    pub fn language_alternatives(&mut self, id: ExprId) -> Option<Vec<LanguageAlternative>> {
        if !self.has_language(id) {
            return None;
        }
        let mut alternatives = Vec::new();
        self.add_language_alternatives(id, ExprId::EMPTY, 0, &mut alternatives).then_some(alternatives)
    }

    fn add_language_alternatives(
        &mut self,
        id: ExprId,
        then: ExprId,
        level: u32,
        alternatives: &mut Vec<LanguageAlternative>,
    ) -> bool {
        if level > MAX_LEVEL {
            return false;
        }
        match self.get(id).clone() {
            Expr::Language(rest) => {
                alternatives.push(LanguageAlternative { rest: *rest, then, others: Vec::new(), after: ExprId::EMPTY });
                true
            }
            Expr::Concat { head, tail } => {
                let then = self.concat(tail, then);
                self.add_language_alternatives(head, then, level + 1, alternatives)
            }
            Expr::Or(parts) => {
                parts.iter().all(|&part| self.add_language_alternatives(part, then, level + 1, alternatives))
            }
            Expr::And(parts) => {
                let (with, others): (Vec<ExprId>, Vec<ExprId>) =
                    parts.iter().partition(|&&part| self.has_language(part));
                let [with] = with[..] else { return false };
                let known = alternatives.len();
                let are_plain = self.add_language_alternatives(with, ExprId::EMPTY, level + 1, alternatives)
                    && alternatives[known..].iter().all(|alternative| alternative.others.is_empty());
                for alternative in &mut alternatives[known..] {
                    (alternative.others, alternative.after) = (others.clone(), then);
                }
                are_plain
            }
            _ => false,
        }
    }

    /// Whether an expression, or one of its alternatives, begins with the rest of a language decided by a program,
    /// after some bytes were read.
    pub fn begins_with_language(&self, id: ExprId) -> bool {
        if !self.has_language(id) {
            return false;
        }
        let mut id = id;
        for _ in 0..MAX_LEVEL {
            id = match self.get(id) {
                Expr::Language(rest) => return rest.whole().is_none(),
                &Expr::Concat { head, .. } => head,
                Expr::Or(parts) | Expr::And(parts) => match parts.iter().find(|&&part| self.has_language(part)) {
                    Some(&part) => part,
                    None => return false,
                },
                _ => return false,
            };
        }
        false
    }
}

impl Deriver {
    /// For each number of bytes of an alternative's language up to `most`, what may follow if the language ends there:
    /// [`ExprId::NOTHING`] where nothing may. `None` where one of the other parts distinguishes the bytes.
    ///
    /// # Errors
    /// As [`Deriver::is_live`].
    pub fn followers(
        &mut self,
        alternative: &LanguageAlternative,
        most: u32,
    ) -> Result<Option<Vec<ExprId>>, LimitExceeded> {
        let bytes = alternative.rest.bytes();
        let mut others = alternative.others.clone();
        let mut followers = Vec::new();
        loop {
            let all = self.exprs.and(&[&[alternative.then], &others[..]].concat());
            let follower = self.exprs.concat(all, alternative.after);
            let is_live = follower != ExprId::NOTHING && self.is_live(follower)?;
            followers.push(if is_live { follower } else { ExprId::NOTHING });
            if followers.len() > most as usize || others.contains(&ExprId::NOTHING) {
                return Ok(Some(followers));
            }
            for other in &mut others {
                let derivatives = self.derivatives(*other)?;
                let after = derivatives.iter().find(|(set, _)| !set.intersect(&bytes).is_empty());
                *other = match after {
                    Some((set, rest)) if bytes.intersect(set) == bytes => *rest,
                    Some(_) => return Ok(None),
                    None => ExprId::NOTHING,
                };
            }
        }
    }

    /// Whether an expression that begins with rests of languages matches anything; `None` where the languages do not
    /// decide that.
    pub(crate) fn decided_by_language(&mut self, id: ExprId) -> Result<Option<bool>, LimitExceeded> {
        let Some(alternatives) = self.exprs.language_alternatives(id) else { return Ok(None) };
        for alternative in &alternatives {
            match self.is_live_alternative(alternative)? {
                Some(true) => return Ok(Some(true)),
                Some(false) => {}
                None => return Ok(None),
            }
        }
        Ok(Some(false))
    }

    fn is_live_alternative(&mut self, alternative: &LanguageAlternative) -> Result<Option<bool>, LimitExceeded> {
        if let Some(easy) = alternative.rest.easy_completion().map(|completion| completion.len()) {
            let Some(followers) = self.followers(alternative, easy as u32)? else { return Ok(None) };
            if followers.get(easy).is_some_and(|&follower| follower != ExprId::NOTHING) {
                return Ok(Some(true));
            }
        }
        let Some(followers) = self.followers(alternative, alternative.rest.longest())? else { return Ok(None) };
        Ok(Some(alternative.rest.reader().is_completed_for(&followers)))
    }

    /// For an expression that begins with languages: shortest texts that end these, each with the residual after it.
    ///
    /// # Errors
    /// As [`Deriver::is_live`].
    pub(crate) fn after_languages(&mut self, id: ExprId) -> Result<Vec<(Vec<u8>, ExprId)>, LimitExceeded> {
        let mut found = Vec::new();
        if !self.exprs.begins_with_language(id) {
            return Ok(found);
        }
        for alternative in self.exprs.language_alternatives(id).unwrap_or_default() {
            let Some(followers) = self.followers(&alternative, alternative.rest.longest())? else { continue };
            if let Some(text) = alternative.rest.completion_for(&followers) {
                let follower = followers[text.len()];
                found.push((text, follower));
            }
        }
        Ok(found)
    }
}

impl dyn LanguageReader {
    /// Whether a quick search completes what was read to a length after which something may follow; `followers` are
    /// what may follow, by the number of bytes.
    pub fn is_completed_for(&mut self, followers: &[ExprId]) -> bool {
        ranges(followers).any(|(least, most)| self.is_completed(least, most))
    }
}

impl LanguageRest {
    /// A shortest completion after which something may follow; `followers` are what may follow, by the number of bytes.
    pub fn completion_for(&self, followers: &[ExprId]) -> Option<Vec<u8>> {
        ranges(followers).find_map(|(least, most)| self.completion(least, most))
    }
}

/// The ranges of numbers of bytes after which something may follow. Most limits allow a single range.
fn ranges(followers: &[ExprId]) -> impl Iterator<Item = (u32, u32)> {
    let mut end = 0;
    followers.split(|&follower| follower == ExprId::NOTHING).filter_map(move |range| {
        let least = end;
        end = least + range.len() as u32 + 1;
        Some((least, (end - 1).checked_sub(1).filter(|_| !range.is_empty())?))
    })
}
