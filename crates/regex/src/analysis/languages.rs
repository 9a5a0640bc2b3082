//! Expressions that begin with what is left of languages that a program tells, perhaps beside other parts of an intersection.
//!
//! Such a language leaves something else behind every byte, so a search for a match would try all of them. The program itself
//! knows a completion, and the fewest bytes of one; what follows is told by the other parts.

use crate::derivative::deriver::Deriver;
use crate::error::LimitExceeded;
use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::language::LanguageRest;
use crate::expr::node::{Expr, ExprId};

/// So deep below each other parts are looked at.
const MAX_LEVEL: u32 = 8;

/// Of completions of so few bytes the shortest is looked for.
const MAX_SHORT: u32 = 3;

/// So many bytes longer completions are tried where what follows has a least length.
const MAX_LONGER: u32 = 8;

/// What is left of a language, and what follows it.
pub type LanguageWay = (LanguageRest, ExprId);

/// Alternatives that begin with languages, the other parts of an intersection, and what follows it.
pub type BesideLanguages = (Vec<LanguageWay>, Vec<ExprId>, ExprId);

impl ExprSet {
    /// What an expression is made of that begins with what is left of languages which a program tells, or that is an
    /// intersection of such a one with others, perhaps with more behind it.
    pub fn beside_languages(&mut self, id: ExprId) -> Option<BesideLanguages> {
        if !self.has_language(id) {
            return None;
        }
        if let Some(ways) = self.language_ways(id) {
            return Some((ways, Vec::new(), ExprId::EMPTY));
        }
        let (parts, behind) = match *self.get(id) {
            Expr::And(ref parts) => (parts.clone(), ExprId::EMPTY),
            Expr::Concat { head, tail } => match self.get(head) {
                Expr::And(parts) => (parts.clone(), tail),
                _ => return None,
            },
            _ => return None,
        };
        let mut parts = parts.to_vec();
        self.flatten(&mut parts);
        let (at, ways) = parts.iter().enumerate().find_map(|(at, &part)| Some((at, self.language_ways(part)?)))?;
        parts.remove(at);
        Some((ways, parts, behind))
    }

    /// Takes intersections with one more byte behind them apart: where that is the last byte, each part has it behind.
    fn flatten(&mut self, parts: &mut Vec<ExprId>) {
        let mut at = 0;
        while let Some(&part) = parts.get(at) {
            let inner = match *self.get(part) {
                Expr::Concat { head, tail } if matches!(self.get(tail), Expr::Bytes(_)) => match self.get(head) {
                    Expr::And(inner) => Some((inner.clone(), tail)),
                    _ => None,
                },
                _ => None,
            };
            match inner {
                Some((inner, tail)) => {
                    parts.swap_remove(at);
                    for &part in &inner {
                        let part = self.concat(part, tail);
                        parts.push(part);
                    }
                }
                None => at += 1,
            }
        }
    }

    /// Whether an expression, or a part of an intersection, begins with what is left of a language which a program tells, of
    /// which something was read.
    pub fn begins_with_language(&self, id: ExprId) -> bool {
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

    /// The alternatives of an expression, where each of them begins with what is left of a language that a program tells.
    pub fn language_ways(&mut self, id: ExprId) -> Option<Vec<LanguageWay>> {
        let mut ways = Vec::new();
        (self.has_language(id) && self.add_language_ways(id, ExprId::EMPTY, 0, &mut ways)).then_some(ways)
    }

    fn add_language_ways(&mut self, id: ExprId, behind: ExprId, level: u32, ways: &mut Vec<LanguageWay>) -> bool {
        match self.get(id).clone() {
            Expr::Language(rest) => {
                ways.push((*rest, behind));
                true
            }
            Expr::Concat { head, tail } if level < MAX_LEVEL && self.has_language(head) => {
                let behind = self.concat(tail, behind);
                self.add_language_ways(head, behind, level + 1, ways)
            }
            Expr::Or(parts) if level < MAX_LEVEL => {
                parts.iter().all(|&part| self.add_language_ways(part, behind, level + 1, ways))
            }
            _ => false,
        }
    }

    /// The character and the greatest number of an expression that is at most so many of some character, perhaps with a least
    /// number.
    pub fn limit_of_run(&self, id: ExprId) -> Option<(ExprId, u32)> {
        let Expr::Repeat { body, max: Some(max), .. } = *self.get(id) else { return None };
        (!self.is_nullable(body) && !self.has_boolean(body) && !self.has_language(body)).then_some((body, max))
    }
}

impl Deriver {
    /// Whether each byte of a set is a match of an expression by itself.
    ///
    /// # Errors
    /// As [`Deriver::after`].
    pub fn reads_each(&mut self, id: ExprId, bytes: &ByteSet) -> Result<bool, LimitExceeded> {
        let mut read = ByteSet::EMPTY;
        for &(set, rest) in self.derivatives(id)?.iter() {
            if rest == ExprId::EMPTY {
                read = read.union(&set);
            }
        }
        Ok(read.union(bytes) == read)
    }

    /// Whether an intersection, perhaps with something behind it, matches anything, where a language with which one of its
    /// parts begins knows that; `None` where it does not.
    pub(crate) fn told_by_language(&mut self, id: ExprId) -> Result<Option<bool>, LimitExceeded> {
        if !self.exprs.has_boolean(id) {
            return Ok(None);
        }
        if let Some(alternatives) = self.alternatives_with_language(id) {
            for way in alternatives {
                if self.is_live(way)? {
                    return Ok(Some(true));
                }
            }
            return Ok(Some(false));
        }
        let Some((ways, others, behind)) = self.exprs.beside_languages(id) else { return Ok(None) };
        let mut any = false;
        for (rest, then) in ways {
            let room = others.iter().filter_map(|&other| self.room_in(other, &rest)).min();
            match room.filter(|&room| room < rest.most()) {
                // With little room, all lengths that there are.
                Some(room) => {
                    let mut plain = true;
                    for &other in &others {
                        plain = plain && self.only_counts(other, &rest)?;
                    }
                    for length in 0..=room {
                        let Some(completion) = rest.completion(length, length) else { continue };
                        if self.is_live_behind(&completion, then, &others, behind)? {
                            return Ok(Some(true));
                        }
                        any |= !plain;
                    }
                }
                None => {
                    any = true;
                    for least in 0..=MAX_LONGER {
                        let Some(completion) = rest.any_completion(least) else { break };
                        if self.is_live_behind(&completion, then, &others, behind)? {
                            return Ok(Some(true));
                        }
                    }
                }
            }
        }
        Ok((!any).then_some(false))
    }

    /// The alternatives of an expression, each with what follows them, where some begin with languages.
    fn alternatives_with_language(&mut self, id: ExprId) -> Option<Vec<ExprId>> {
        let (parts, behind) = match *self.exprs.get(id) {
            Expr::Or(ref parts) => (parts.clone(), ExprId::EMPTY),
            Expr::Concat { head, tail } => match self.exprs.get(head) {
                Expr::Or(parts) => (parts.clone(), tail),
                _ => return None,
            },
            _ => return None,
        };
        let begins = parts.iter().any(|&part| self.exprs.has_boolean(part) && self.exprs.has_language(part));
        begins.then(|| parts.iter().map(|&part| self.exprs.concat(part, behind)).collect())
    }

    /// Whether anything matches what follows a text and what is left of others behind it together, without a language of which
    /// something was read.
    fn is_live_behind(
        &mut self,
        text: &[u8],
        then: ExprId,
        others: &[ExprId],
        behind: ExprId,
    ) -> Result<bool, LimitExceeded> {
        let all = self.behind_text(text, then, others, behind)?;
        Ok(all != ExprId::NOTHING && !self.exprs.begins_with_language(all) && self.is_live(all)?)
    }

    fn behind_text(
        &mut self,
        text: &[u8],
        then: ExprId,
        others: &[ExprId],
        behind: ExprId,
    ) -> Result<ExprId, LimitExceeded> {
        let mut parts = vec![then];
        for &other in others {
            let mut left = other;
            for &byte in text {
                left = self.after(left, byte)?;
            }
            parts.push(left);
        }
        let all = self.exprs.and(&parts);
        Ok(self.exprs.concat(all, behind))
    }

    /// Where an expression begins with languages: texts that end them, short ones, and what is left behind those.
    ///
    /// # Errors
    /// As [`Deriver::is_live`].
    pub(crate) fn behind_languages(&mut self, id: ExprId) -> Result<Vec<(Vec<u8>, ExprId)>, LimitExceeded> {
        let mut found = Vec::new();
        if !self.exprs.begins_with_language(id) {
            return Ok(found);
        }
        let Some((ways, others, behind)) = self.exprs.beside_languages(id) else { return Ok(found) };
        for (rest, then) in ways {
            let short = (0..=MAX_SHORT).find_map(|most| rest.completion(0, most));
            let longer = (0..=MAX_LONGER).map_while(|least| rest.any_completion(least));
            for text in short.into_iter().chain(longer) {
                let all = self.behind_text(&text, then, &others, behind)?;
                if all != ExprId::NOTHING && !self.exprs.begins_with_language(all) && self.is_live(all)? {
                    found.push((text, all));
                }
            }
        }
        Ok(found)
    }

    /// Whether an expression only counts the bytes of a language, perhaps with a byte behind that is none of it.
    fn only_counts(&mut self, limit: ExprId, rest: &LanguageRest) -> Result<bool, LimitExceeded> {
        match self.counting(limit, rest).and_then(|run| self.exprs.limit_of_run(run)) {
            Some((character, _)) => {
                self.reads_each(character, &rest.bytes().intersect(&ByteSet::of(b'\\').complement()))
            }
            None => Ok(false),
        }
    }

    /// The greatest number of bytes with which an expression lets a language go on, where it is a limit of length, perhaps with a
    /// byte behind that is none of the language.
    fn room_in(&self, limit: ExprId, rest: &LanguageRest) -> Option<u32> {
        let run = self.counting(limit, rest)?;
        Some(self.exprs.limit_of_run(run)?.1.saturating_add(rest.begun()))
    }

    /// What counts characters in an expression, behind one that was begun.
    fn counting(&self, limit: ExprId, rest: &LanguageRest) -> Option<ExprId> {
        let counting = match *self.exprs.get(limit) {
            Expr::Concat { tail, .. } if rest.begun() > 0 => tail,
            _ if rest.begun() > 0 => return None,
            _ => limit,
        };
        match *self.exprs.get(counting) {
            Expr::Concat { head, tail } => match self.exprs.get(tail) {
                Expr::Bytes(set) if set.intersect(&rest.bytes()).is_empty() => Some(head),
                _ => None,
            },
            _ => Some(counting),
        }
    }
}
