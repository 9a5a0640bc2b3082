//! Lexeme masks from those of larger languages that differ in few tokens.
//!
//! Three kinds of languages are near a larger one. `text & ~words` is nearly `text`, and a repetition with a greatest count nearly
//! the same without: both are walked together, and no further than they may differ ([`LexemeCache::mask_near`]). A text in which
//! something must not occur is where it was after nearly every character: only the other characters are looked for in the
//! vocabulary ([`LexemeCache::mask_by_difference`]). And in the middle of what must not occur it is there again after nearly
//! every one: such a state is near that one, too.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet, StateId};
use stencilm_support::{LimitExceeded, SEARCHED};

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::find::bounded_patterns::MIN_AGREEMENT;
use crate::lexeme::find::finder::{Finder, Found, Larger, Next, Start, Unfinished};
use crate::lexeme::mask::LexemeMask;
use crate::vocabulary::token_set;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::{BETWEEN_CHECKS, WalkError};

/// So deep below each other parts of an expression are looked at for complements.
const MAX_DEPTH: usize = 8;

/// Of so many pairs it is kept where bytes lead: 3 KiB each.
const KEPT_MOVES: usize = 1_000;

/// With more nodes that are apart than this part of all, a walk is cheaper. Few of them are looked below.
const APART_OF: usize = 4;

/// A character has no more bytes.
const BYTES_OF_CHARACTER: usize = 4;

/// States of a lexeme and of a larger language after the same text.
type Pair = (StateId, StateId);

/// Finds the mask of a language from that of a larger one without counts and complements, unless a short walk finds it.
pub(crate) struct ByLarger;

impl Finder for ByLarger {
    fn find(&self, lexemes: &mut LexemeCache, vocabulary: &Tokens, this: Unfinished) -> Found {
        let Unfinished { residual, from, .. } = this;
        let Some(base) = lexemes.base_of(residual) else { return Ok(None) };
        let dfa = lexemes.dfa(&[base])?;
        if lexemes.dfas[dfa.0 as usize].is_dead_at_start() {
            return Ok(None);
        }
        let exprs = &lexemes.deriver.exprs;
        if exprs.complexity(base).0 == exprs.complexity(residual).0 {
            // What reads any number of the same comes no nearer to one without counts.
            if lexemes.returns(residual)? {
                return Ok(None);
            }
        } else {
            match lexemes.usual_of(residual)? {
                Some(usual) if usual == residual => {
                    return Ok(Some(different(base)));
                }
                // It leads to itself, so it is the last one of its complexity.
                Some(usual) if !lexemes.is_simpler(residual, usual) => {
                    return Ok(Some(near(usual)));
                }
                _ => {}
            }
        }
        Ok(Some(match lexemes.mask_by_walk(vocabulary, from, SEARCHED)? {
            Some(mask) => Next::found(mask),
            None => near(base),
        }))
    }
}

/// A larger language that differs in few tokens.
fn near(base: ExprId) -> Next {
    Next::After(Larger::new(base, move |lexemes, vocabulary, this, larger| {
        Ok(lexemes.mask_near(vocabulary, this.from, base, larger)?.map(Arc::new))
    }))
}

/// A larger language that differs after few characters, whatever came before.
fn different(base: ExprId) -> Next {
    Next::After(Larger::new(base, move |lexemes, vocabulary, this, larger| {
        Ok(lexemes.mask_by_difference(vocabulary, this.from, base, larger)?.map(Arc::new))
    }))
}

impl LexemeCache {
    /// A larger and simpler language from which a residual differs in few tokens: `text & ~words` is nearly `text`, and a
    /// repetition with a greatest count nearly the same without.
    pub(crate) fn base_of(&mut self, residual: ExprId) -> Option<ExprId> {
        let exprs = &mut self.deriver.exprs;
        let base = if (MIN_AGREEMENT..u32::MAX).contains(&exprs.agreement(residual)) {
            let relaxed = self.relaxation.apply(exprs, residual);
            (relaxed.agreement >= MIN_AGREEMENT).then_some(relaxed.expr)
        } else {
            Some(without_complements(exprs, residual, 0)).filter(|&base| base != ExprId::NOTHING)
        };
        base.filter(|&base| self.is_simpler(base, residual))
    }

    /// Whether some byte leads from a residual back to it.
    fn returns(&mut self, residual: ExprId) -> Result<bool, LimitExceeded> {
        Ok(self.deriver.derivatives(residual)?.iter().any(|&(_, rest)| rest == residual))
    }

    /// What is left of a residual after most of its bytes, where the same is left of that after most of its own.
    pub(crate) fn usual_of(&mut self, residual: ExprId) -> Result<Option<ExprId>, LimitExceeded> {
        let Some(usual) = self.after_most(residual)? else { return Ok(None) };
        Ok((self.after_most(usual)? == Some(usual) && self.deriver.is_live(usual)?).then_some(usual))
    }

    fn after_most(&mut self, residual: ExprId) -> Result<Option<ExprId>, LimitExceeded> {
        // Other bytes are characters only with those after them, and lead elsewhere whatever they are.
        let derivatives = self.deriver.derivatives(residual)?;
        let living = derivatives.iter().filter(|&&(_, rest)| rest != ExprId::NOTHING);
        let living = living.map(|&(bytes, rest)| (bytes.intersect(&ByteSet::ASCII).len(), rest));
        let all: usize = living.clone().map(|(count, _)| count).sum();
        let most = living.max_by_key(|&(count, _)| count);
        Ok(most.filter(|&(count, _)| count > 0 && 2 * count >= all).map(|(_, rest)| rest))
    }

    /// The mask of a residual from that of a larger language: both are walked together, and no further than they may
    /// differ. `None` where the other language turns out not to be larger.
    pub(crate) fn mask_near(
        &mut self,
        vocabulary: &Tokens,
        from: Start,
        base: ExprId,
        larger: &LexemeMask,
    ) -> Result<Option<LexemeMask>, LimitExceeded> {
        let (own, whole) = (from.dfa, self.dfa(&[base])?);
        let trie = vocabulary.trie();
        let mut inside = larger.to_set(vocabulary.vocab_size());
        // By state: the last one of the larger language that it was seen with, and for how long they agree.
        let mut agreements: Vec<(StateId, u32)> = Vec::new();
        // Nodes at which only the larger one ends.
        let mut not_here: Vec<u32> = Vec::new();
        let mut dead: Vec<u32> = Vec::new();
        let mut is_larger = true;
        trie.walk(
            (from.state, StateId::START),
            |(state, other), byte, node| {
                let (other, other_ends) = self.step(whole, other, byte)?;
                let (state, ends) =
                    if state == StateId::DEAD { (StateId::DEAD, false) } else { self.step(own, state, byte)? };
                is_larger &= (other != StateId::DEAD || state == StateId::DEAD) && (other_ends || !ends);
                if other == StateId::DEAD {
                    return Ok(None);
                }
                if other_ends && !ends {
                    not_here.push(node as u32);
                }
                if state != StateId::DEAD {
                    let known = state.0 as usize;
                    if known >= agreements.len() {
                        agreements.resize(known + 1, (StateId::DEAD, 0));
                    }
                    if agreements[known].0 != other {
                        agreements[known] = (other, self.agreement(own, state, whole, other));
                    }
                    let height = trie.height(node);
                    let agreement = agreements[known].1;
                    if agreement == u32::MAX || (height < u8::MAX && agreement >= u32::from(height)) {
                        return Ok(None);
                    }
                }
                Ok::<_, LimitExceeded>(Some((state, other)))
            },
            |token, (state, _)| {
                if state == StateId::DEAD {
                    dead.push(token);
                }
            },
        )?;
        for token in dead {
            token_set::clear(inside.words_mut(), token);
        }
        Ok(is_larger.then(|| larger.with_fewer(vocabulary, inside, &not_here)))
    }

    /// For how many bytes a state and one of a larger language read the same; 0 where nothing is known.
    pub(crate) fn agreement(&mut self, own: DfaId, state: StateId, whole: DfaId, other: StateId) -> u32 {
        let (&[(_, residual)], &[(_, larger)]) = (self.residuals(own, state), self.residuals(whole, other)) else {
            return 0;
        };
        if residual == larger {
            return u32::MAX;
        }
        let relaxed = self.relaxation.apply(&mut self.deriver.exprs, residual);
        if relaxed.expr == larger { relaxed.agreement } else { 0 }
    }

    /// The mask of a residual from that of a larger language, where after nearly every character both are where they were: only
    /// what begins with another one is walked. `None` where that is not so, or the other language turns out not to be larger.
    pub(crate) fn mask_by_difference(
        &mut self,
        vocabulary: &Tokens,
        from: Start,
        base: ExprId,
        larger: &LexemeMask,
    ) -> Result<Option<LexemeMask>, LimitExceeded> {
        if larger.crossings.is_none() || !larger.unkept.is_empty() {
            return Ok(None);
        }
        let whole = self.dfa(&[base])?;
        let Some(mut both) = Both::new(self, (from.dfa, from.state), whole)? else { return Ok(None) };
        let trie = vocabulary.trie();
        let Some(apart) = trie.nodes_with(both.matter[0], trie.len() / APART_OF) else { return Ok(None) };
        // Nodes that are not where both are where they were, as far as they may be reached again.
        let mut passed = TokenSet::empty(trie.len());
        let mut inside = larger.to_set(vocabulary.vocab_size());
        let mut not_here: Vec<u32> = Vec::new();
        let mut pairs = vec![0; trie.max_depth() + 1];
        let mut looked = 0usize;
        for first in apart {
            if passed.contains(first) {
                continue;
            }
            let first = first as usize;
            let (mut node, end) = (first, first + trie.size(first));
            pairs[trie.depth(first) - 1] = 0;
            while node < end {
                looked += 1;
                if looked.is_multiple_of(BETWEEN_CHECKS) {
                    LimitExceeded::check()?;
                }
                let depth = trie.depth(node);
                let below = node..node + trie.size(node);
                let before = pairs[depth - 1];
                if !both.matter[before].contains(trie.byte(node)) {
                    node = below.end;
                    continue;
                }
                passed.insert(node as u32);
                let Move { relation, ends_equally } = both.moved(before, trie.byte(node))?;
                if !ends_equally {
                    not_here.push(node as u32);
                }
                match relation {
                    Relation::Other(number) => {
                        let number = number as usize;
                        pairs[depth] = number;
                        both.find_what_matters(number)?;
                        node += 1;
                        continue;
                    }
                    Relation::Back => {}
                    Relation::Same => passed.insert_range(below.start as u32..below.end as u32),
                    Relation::Dead => {
                        passed.insert_range(below.start as u32..below.end as u32);
                        trie.entries_below(node).for_each(|token| token_set::clear(inside.words_mut(), token));
                        let ends = &larger.ends[larger.ends.partition_point(|&end| (end as usize) < node)..];
                        not_here.extend(ends.iter().take_while(|&&end| (end as usize) < below.end));
                    }
                }
                node = below.end;
            }
        }
        if !both.is_larger {
            return Ok(None);
        }
        not_here.sort_unstable();
        not_here.dedup();
        Ok(Some(larger.with_fewer(vocabulary, inside, &not_here)))
    }
}

/// A larger language: an expression, where nothing is ruled out of what comes first, or of an alternative of it.
fn without_complements(exprs: &mut ExprSet, expr: ExprId, depth: usize) -> ExprId {
    if depth > MAX_DEPTH || exprs.complexity(expr).0 == 0 {
        return expr;
    }
    match exprs.get(expr).clone() {
        Expr::And(parts) => {
            let kept: Vec<ExprId> =
                parts.iter().copied().filter(|&part| !matches!(exprs.get(part), Expr::Not(_))).collect();
            if kept.is_empty() { expr } else { exprs.and(&kept) }
        }
        Expr::Concat { head, tail } => {
            let head = without_complements(exprs, head, depth + 1);
            exprs.concat(head, tail)
        }
        Expr::Or(parts) => {
            let parts: Vec<ExprId> = parts.iter().map(|&part| without_complements(exprs, part, depth + 1)).collect();
            exprs.or(&parts)
        }
        _ => expr,
    }
}

/// A lexeme and a larger language, read together.
struct Both<'a> {
    lexeme_cache: &'a mut LexemeCache,
    own: DfaId,
    whole: DfaId,
    /// Where they are after most characters, and then the pairs that differ in some other way.
    pairs: Vec<Pair>,
    /// For each pair the bytes after which they are not just where they usually are, and those after which they are not when they
    /// come from there; none where that was not asked yet.
    matter: Vec<ByteSet>,
    relations: FxHashMap<Pair, Relation>,
    /// For each of the first pairs, where each byte leads, as far as that was asked.
    moves: Vec<[Option<Move>; 256]>,
    /// Whether nothing was seen that only the lexeme reads.
    is_larger: bool,
}

/// Where a byte leads from a pair.
#[derive(Clone, Copy)]
struct Move {
    relation: Relation,
    /// Whether both match there or neither.
    ends_equally: bool,
}

/// How the states of a pair differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// They do not before both are where they usually are, where the rest of a character leads, or there is no more to read.
    Back,
    /// Not at all.
    Same,
    /// Only the larger language reads on.
    Dead,
    /// In some other way, as the pair of this number.
    Other(u32),
}

impl Both<'_> {
    /// For a state that most characters lead back to, and where a larger language begins; `None` where these lead elsewhere.
    fn new(
        lexeme_cache: &mut LexemeCache,
        (own, state): (DfaId, StateId),
        whole: DfaId,
    ) -> Result<Option<Both<'_>>, LimitExceeded> {
        let usual = (state, StateId::START);
        let mut both = Both {
            lexeme_cache,
            own,
            whole,
            pairs: vec![usual],
            matter: vec![ByteSet::EMPTY],
            relations: FxHashMap::default(),
            moves: vec![[None; 256]],
            is_larger: true,
        };
        both.find_what_matters(0)?;
        let live = both.lexeme_cache.live_bytes(whole, usual.1)?;
        let are_few = 2 * both.matter[0].len() < live.len();
        Ok(are_few.then_some(both))
    }

    /// The states after a byte, and whether both match there or neither; `None` where the larger language reads it not.
    fn step(&mut self, (state, other): Pair, byte: u8) -> Result<Option<(Pair, bool)>, LimitExceeded> {
        let (other, other_ends) = self.lexeme_cache.step(self.whole, other, byte)?;
        let (state, ends) = self.lexeme_cache.step(self.own, state, byte)?;
        self.is_larger &= (other != StateId::DEAD || state == StateId::DEAD) && (other_ends || !ends);
        Ok((other != StateId::DEAD).then_some(((state, other), ends == other_ends)))
    }

    /// The bytes that one of a pair reads.
    fn live_bytes(&mut self, (state, other): Pair) -> Result<ByteSet, LimitExceeded> {
        let live = *self.lexeme_cache.live_bytes(self.whole, other)?;
        Ok(live.union(self.lexeme_cache.live_bytes(self.own, state)?))
    }

    /// Where a byte leads from the pair of this number: back, where the larger language reads it not.
    fn moved(&mut self, number: usize, byte: u8) -> Result<Move, LimitExceeded> {
        if let Some(Some(known)) = self.moves.get(number).map(|moves| moves[usize::from(byte)]) {
            return Ok(known);
        }
        let moved = match self.step(self.pairs[number], byte)? {
            None => Move { relation: Relation::Back, ends_equally: true },
            Some((pair, ends_equally)) => Move { relation: self.relation(pair, 0)?, ends_equally },
        };
        if let Some(moves) = self.moves.get_mut(number) {
            moves[usize::from(byte)] = Some(moved);
        }
        Ok(moved)
    }

    fn find_what_matters(&mut self, number: usize) -> Result<(), LimitExceeded> {
        if !self.matter[number].is_empty() {
            return Ok(());
        }
        let mut matter = self.matter[0];
        for byte in self.live_bytes(self.pairs[number])?.iter() {
            let Move { relation, ends_equally } = self.moved(number, byte)?;
            if !ends_equally || relation != Relation::Back {
                matter.insert(byte);
            }
        }
        self.matter[number] = matter;
        Ok(())
    }

    fn relation(&mut self, pair: Pair, depth: usize) -> Result<Relation, LimitExceeded> {
        if pair == self.pairs[0] {
            return Ok(Relation::Back);
        }
        if pair.0 == StateId::DEAD {
            return Ok(Relation::Dead);
        }
        if let Some(&known) = self.relations.get(&pair) {
            return Ok(known);
        }
        let relation = if self.comes_back(pair, depth)? {
            Relation::Back
        } else if self.lexeme_cache.agreement(self.own, pair.0, self.whole, pair.1) == u32::MAX {
            Relation::Same
        } else {
            self.pairs.push(pair);
            self.matter.push(ByteSet::EMPTY);
            if self.moves.len() < KEPT_MOVES {
                self.moves.push([None; 256]);
            }
            Relation::Other(self.pairs.len() as u32 - 1)
        };
        self.relations.insert(pair, relation);
        Ok(relation)
    }

    /// Whether all that either reads leads back, by bytes that nothing begins with where both usually are.
    fn comes_back(&mut self, pair: Pair, depth: usize) -> Result<bool, LimitExceeded> {
        let usual = *self.lexeme_cache.live_bytes(self.whole, self.pairs[0].1)?;
        let live = self.live_bytes(pair)?;
        if depth + 1 >= BYTES_OF_CHARACTER || !live.intersect(&usual).is_empty() {
            return Ok(false);
        }
        for byte in live.iter() {
            let Some((pair, ends_equally)) = self.step(pair, byte)? else { return Ok(false) };
            if !ends_equally || self.relation(pair, depth + 1)? != Relation::Back {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
