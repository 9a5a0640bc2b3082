//! Texts within several limits of length: a host name has at most 253 characters, and each of its labels at most 63.
//!
//! Every character changes the counts of the limits, and so gives a new intersection about which nothing is known.
//! Therefore the text is read without its limits, so that its states recur, and the limits are read [beside](Beside)
//! it. As long as no limit is near, they do not matter: a token is examined only from where it comes near one.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::{Expr, ExprId, ExprSet, StateId};
use stencilm_support::{LOOKED_AT, LimitExceeded};

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::find::bounded_patterns::MIN_AGREEMENT;
use crate::lexeme::find::finder::{Finder, Found, Larger, Next, Unfinished};
use crate::lexeme::find::unbounded_runs::RunsOf;
use crate::lexeme::mask::{BYTES_AFTER, LexemeMask};
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

pub(crate) struct Limited {
    /// The larger language without the limits.
    pub(crate) without: ExprId,
    /// The limits, each with the byte that ends all texts.
    pub(crate) limits: Box<[ExprId]>,
    /// Runs of the characters that the limits count, with that byte.
    runs: ExprId,
    /// A number of bytes within which everything read without the limits can be completed.
    most: u32,
    /// The number of bytes for which no limit ends a text.
    agreement: u32,
}

impl Limited {
    /// The number of bytes for which the text reads the same with and without the limits.
    fn unaffected(&self) -> u32 {
        unaffected(self.agreement, self.most)
    }

    /// The union of both texts within the same limits; `None` where the limits differ.
    pub(crate) fn either(&self, other: &Limited, exprs: &mut ExprSet) -> Option<Limited> {
        let is_same = self.limits == other.limits && self.runs == other.runs;
        is_same.then(|| Limited {
            without: exprs.or(&[self.without, other.without]),
            limits: self.limits.clone(),
            runs: self.runs,
            most: self.most.max(other.most),
            agreement: self.agreement.min(other.agreement),
        })
    }
}

/// Finds the mask of a text within limits of length from the mask without them.
pub(crate) struct LengthLimits;

impl Finder for LengthLimits {
    fn find(&self, lexemes: &mut LexemeCache, _: &Tokens, this: Unfinished) -> Found {
        let limited = lexemes.limited_for_mask(this.residual)?;
        Ok(limited.map(|limited| {
            let larger = Larger::new(limited.without, move |lexemes, vocabulary, _, larger| {
                lexemes.finish_limited(vocabulary, &limited, larger)
            });
            Next::After(Larger { is_limited: true, ..larger })
        }))
    }
}

impl LexemeCache {
    /// The larger language without limits of length; `None` where there are none.
    pub(crate) fn without_limits(&mut self, residual: ExprId) -> Result<Option<Limited>, LimitExceeded> {
        let exprs = &self.deriver.exprs;
        let Expr::Concat { head, tail } = *exprs.get(residual) else { return Ok(None) };
        let (Expr::And(parts), Expr::Bytes(_)) = (exprs.get(head), exprs.get(tail)) else { return Ok(None) };
        let parts = parts.clone();
        let characters = parts.iter().filter_map(|&part| match *exprs.get(part) {
            Expr::Repeat { body, min: 0, max: Some(_) } => Some(body),
            _ => None,
        });
        let plain = |&character: &ExprId| !exprs.is_nullable(character) && !exprs.has_boolean(character);
        let characters: Vec<ExprId> = characters.filter(plain).collect();
        // The limits may count a larger class of characters than the text has.
        for character in characters {
            let limited = self.without_limits_of(&parts, character, tail)?;
            if limited.is_some() {
                return Ok(limited);
            }
        }
        Ok(None)
    }

    /// The same for the parts of an intersection with a byte after it, where every text is a run of these characters.
    fn without_limits_of(
        &mut self,
        parts: &[ExprId],
        character: ExprId,
        end: ExprId,
    ) -> Result<Option<Limited>, LimitExceeded> {
        let runs = self.deriver.exprs.repeat(character, 0, None);
        let (mut agreement, mut limits, mut others) = (u32::MAX, Vec::new(), Vec::new());
        for &part in parts {
            match self.limit(part, runs)? {
                Some(limit) => {
                    agreement = agreement.min(limit);
                    limits.push(self.deriver.exprs.concat(part, end));
                }
                None => others.push(part),
            }
        }
        let &[other] = &*others else { return Ok(None) };
        let without = self.deriver.exprs.concat(other, end);
        let most = self.completions.most(&self.deriver.exprs, without)?;
        if most == u32::MAX {
            return Ok(None);
        }
        // The limits must only bound the length: every text is a run of the characters, and every short enough run is
        // within the limits.
        let characters = self.dfa(&[character])?;
        let ends = RunsOf::new(self, characters, character).then_a_byte(without)?;
        if ends.is_none_or(|ends| *self.deriver.exprs.get(end) != Expr::Bytes(ends)) {
            return Ok(None);
        }
        let runs = self.deriver.exprs.concat(runs, end);
        Ok(Some(Limited { without, limits: limits.into(), runs, most, agreement }))
    }

    /// The same, if the mask of the larger language helps.
    pub(crate) fn limited_for_mask(&mut self, residual: ExprId) -> Result<Option<Limited>, LimitExceeded> {
        let Some(limited) = self.without_limits(residual)? else { return Ok(None) };
        // Whether the rest of such a language can be completed depends on each of its bytes.
        let is_decided = self.deriver.exprs.language_alternatives(limited.without).is_some();
        let is_near = match *limited.limits {
            // Near a single limit, a walk through the vocabulary meets few states.
            [_] => limited.unaffected() < MIN_AGREEMENT,
            // Near one of several limits, few texts are left within them, but perhaps very many without them.
            _ => limited.agreement < MIN_AGREEMENT && self.known_unlimited(limited.without).is_none(),
        };
        Ok((!is_decided && !is_near && self.is_simpler(limited.without, residual)).then_some(limited))
    }

    /// The number of bytes for which a limit certainly has no effect. An expression is a limit if without its maximum
    /// counts it matches every run of the characters.
    fn limit(&mut self, part: ExprId, runs: ExprId) -> Result<Option<u32>, LimitExceeded> {
        let exprs = &self.deriver.exprs;
        if exprs.has_boolean(part) || exprs.agreement(part) == u32::MAX {
            return Ok(None);
        }
        let relaxed = self.deriver.relaxed(part);
        let exprs = &mut self.deriver.exprs;
        let others = exprs.not(relaxed.expr);
        let others = exprs.and(&[runs, others]);
        Ok((!self.deriver.is_live(others)?).then_some(relaxed.agreement))
    }

    /// The state from which a text without limits is read. Most texts reach a state of one that was read before.
    pub(crate) fn start_unlimited(&mut self, expr: ExprId) -> Result<(DfaId, StateId), LimitExceeded> {
        if let Some(known) = self.known_unlimited(expr) {
            return Ok(known);
        }
        let dfa = self.dfa(&[expr])?;
        self.unlimited.push(dfa);
        Ok((dfa, StateId::START))
    }

    fn known_unlimited(&self, expr: ExprId) -> Option<(DfaId, StateId)> {
        self.unlimited.iter().find_map(|&dfa| {
            let state = self.dfas[dfa.0 as usize].known_state(&[(0, expr)])?;
            Some((dfa, state))
        })
    }

    /// The mask of a residual from that of the text without limits; `None` where that is not enough to tell.
    pub(crate) fn finish_limited(
        &mut self,
        vocabulary: &Tokens,
        limited: &Limited,
        larger: &Arc<LexemeMask>,
    ) -> Result<Option<Arc<LexemeMask>>, LimitExceeded> {
        let trie = vocabulary.trie();
        let horizon = u32::try_from(trie.max_depth()).unwrap_or(u32::MAX).saturating_add(BYTES_AFTER);
        if limited.unaffected() >= horizon {
            return Ok(Some(larger.clone()));
        }
        if larger.crossings.is_none() || !larger.unkept.is_empty() {
            return Ok(None);
        }
        let mut beside = Beside::new(self, limited)?;
        let (mut dead, mut not_here) = (Vec::new(), Vec::new());
        trie.walk(
            Beside::START,
            |place, byte, node| {
                Ok(match beside.step(self, place, byte)? {
                    None => None,
                    Some(Read::TooLong) => {
                        dead.extend(trie.entries_below(node).filter(|&token| larger.has(token)));
                        let ends = &larger.ends[larger.ends.partition_point(|&end| (end as usize) < node)..];
                        not_here.extend(ends.iter().take_while(|&&end| (end as usize) < node + trie.size(node)));
                        None
                    }
                    Some(Read::Within { place, .. }) => {
                        (!beside.is_unaffected(place, trie.height(node))).then_some(place)
                    }
                })
            },
            |_, _| {},
        )?;
        if dead.len() > LOOKED_AT {
            let mut inside = larger.to_set(vocabulary.vocab_size());
            dead.into_iter().for_each(|token| token_set::clear(inside.words_mut(), token));
            return Ok(Some(Arc::new(larger.with_fewer(vocabulary, inside, &not_here))));
        }
        let (crossings, ends) = larger.ends_but_for(vocabulary, &not_here);
        Ok(Some(Arc::new(larger.without(vocabulary.vocab_size(), dead, crossings).with_ends(ends))))
    }
}

/// The number of bytes for which a text is unaffected by limits that have no effect for `agreement` bytes, if it can be
/// completed within `most` bytes.
fn unaffected(agreement: u32, most: u32) -> u32 {
    // The last byte is not counted by the limits.
    agreement.saturating_add(1).saturating_sub(most)
}

/// The result of a byte that the text reads without the limits.
#[derive(Clone, Copy)]
pub(crate) enum Read {
    /// No completion within the limits is left.
    TooLong,
    /// The position that the byte leads to, and whether the text ends there.
    Within { place: u32, is_end: bool },
}

/// The state of a text and the rests of its limits.
struct Place {
    text: StateId,
    /// The rests of the limits, and last that of the runs of characters.
    limits: Box<[ExprId]>,
    /// The number of bytes for which the limits do not matter.
    unaffected: u32,
}

/// A text without its limits of length, and the limits, read side by side. Their rests are combined into an expression
/// only to decide whether there is room for an end.
pub(crate) struct Beside {
    most: u32,
    text: DfaId,
    places: Vec<Place>,
    numbers: FxHashMap<(StateId, Box<[ExprId]>), Option<u32>>,
    steps: FxHashMap<(u32, u8), Option<Read>>,
}

impl Beside {
    /// The position at which reading begins.
    pub(crate) const START: u32 = 0;

    pub(crate) fn new(lexeme_cache: &mut LexemeCache, limited: &Limited) -> Result<Beside, LimitExceeded> {
        let (text, start) = lexeme_cache.start_unlimited(limited.without)?;
        let limits = limited.limits.iter().copied().chain([limited.runs]).collect();
        Ok(Beside {
            most: limited.most,
            text,
            places: vec![Place { text: start, limits, unaffected: limited.unaffected() }],
            numbers: FxHashMap::default(),
            steps: FxHashMap::default(),
        })
    }

    /// Whether the limits do not matter from a position on, at a node whose longest string below has `height` bytes.
    pub(crate) fn is_unaffected(&self, place: u32, height: u8) -> bool {
        let unaffected = self.places[place as usize].unaffected;
        unaffected == u32::MAX || (height < u8::MAX && u32::from(height) <= unaffected)
    }

    /// The same position without the limits.
    pub(crate) fn freed(&mut self, place: u32) -> u32 {
        let here = &self.places[place as usize];
        if here.limits.is_empty() {
            return place;
        }
        let text = here.text;
        let next = self.places.len() as u32;
        let number = *self.numbers.entry((text, Box::default())).or_insert(Some(next));
        let number = number.expect("without limits there is room for an end");
        if number == next {
            self.places.push(Place { text, limits: Box::default(), unaffected: u32::MAX });
        }
        number
    }

    /// The result of a byte; `None` where the text does not read it even without the limits.
    pub(crate) fn step(
        &mut self,
        lexeme_cache: &mut LexemeCache,
        place: u32,
        byte: u8,
    ) -> Result<Option<Read>, LimitExceeded> {
        if let Some(&known) = self.steps.get(&(place, byte)) {
            return Ok(known);
        }
        let here = &self.places[place as usize];
        let (text, is_end) = lexeme_cache.step(self.text, here.text, byte)?;
        let read = if text == StateId::DEAD {
            None
        } else {
            let limits = here.limits.iter().map(|&limit| lexeme_cache.deriver.after(limit, byte));
            let limits = limits.collect::<Result<Box<[ExprId]>, _>>()?;
            Some(match self.place_of(lexeme_cache, text, limits)? {
                Some(place) => Read::Within { place, is_end },
                None => Read::TooLong,
            })
        };
        self.steps.insert((place, byte), read);
        Ok(read)
    }

    /// The position with these limits; `None` where they leave too little room for an end.
    fn place_of(
        &mut self,
        lexeme_cache: &mut LexemeCache,
        text: StateId,
        limits: Box<[ExprId]>,
    ) -> Result<Option<u32>, LimitExceeded> {
        let key = (text, limits);
        if let Some(&known) = self.numbers.get(&key) {
            return Ok(known);
        }
        let agreement = lexeme_cache.agreement_with_limits(&key.1)?;
        let is_live = match agreement {
            Some(agreement) if agreement >= self.most => true,
            _ => {
                let rest = lexeme_cache.residuals(self.text, text)[0].1;
                lexeme_cache.has_room(rest, &key.1, agreement)?
            }
        };
        let number = is_live.then_some(self.places.len() as u32);
        if is_live {
            let unaffected = agreement.map_or(0, |agreement| unaffected(agreement, self.most));
            self.places.push(Place { text, limits: key.1.clone(), unaffected });
        }
        self.numbers.insert(key, number);
        Ok(number)
    }
}

impl LexemeCache {
    /// The number of bytes for which limits, the last of which are the runs of characters, do not matter to a text;
    /// `None` where that is not known.
    fn agreement_with_limits(&mut self, limits: &[ExprId]) -> Result<Option<u32>, LimitExceeded> {
        let Some((&runs, limits)) = limits.split_last() else { return Ok(Some(u32::MAX)) };
        let mut agreement = u32::MAX;
        for &limit in limits {
            let Some(limit) = self.limit(limit, runs)? else { return Ok(None) };
            agreement = agreement.min(limit);
        }
        Ok(Some(agreement))
    }

    /// Whether the rest of a text can be completed within limits.
    fn has_room(&mut self, rest: ExprId, limits: &[ExprId], agreement: Option<u32>) -> Result<bool, LimitExceeded> {
        let exprs = &mut self.deriver.exprs;
        let shortest = exprs.shortest_at_least(rest);
        // The last byte is not counted by the limits. A language decided by a program may need more bytes than its
        // lower bound.
        let has_room = agreement.is_some_and(|agreement| shortest <= agreement.saturating_add(1));
        if has_room && !exprs.has_language(rest) {
            return Ok(true);
        }
        let limits = &limits[..limits.len() - 1];
        let all = exprs.and(&[&[rest], limits].concat());
        self.deriver.is_live(all)
    }
}
