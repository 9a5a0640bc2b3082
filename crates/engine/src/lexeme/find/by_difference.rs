//! The lexeme mask of a text in which something must not occur, from that of the text: only by the characters that
//! matter.
//!
//! After nearly every character, the lexeme and the larger language, read together, are where they were. Only the other
//! bytes matter. Those after which the lexeme is dead, such as the letters of a class that must not occur, remove all
//! tokens that have one, which the vocabulary knows ([`Tokens::add_tokens_with`]). The rest, such as the first letter
//! of a word that must not occur, are looked up in the trie, and what lies below their nodes is read, if it is long
//! enough: the fewest bytes to where the two differ are computed beforehand.

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, ExprId, StateId};
use stencilm_support::{LimitExceeded, MANY, RECENT};

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::find::finder::Start;
use crate::lexeme::mask::LexemeMask;
use crate::switches::Switch;
use crate::vocabulary::token_set;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::{BETWEEN_CHECKS, Trie, WalkError};

/// Of so many pairs it is kept where bytes lead.
const KEPT_MOVES: usize = MANY;

/// With more nodes that are apart than this part of all, a walk is cheaper. Few of them are looked below.
const APART_OF: usize = 4;

/// A character has no more bytes.
const BYTES_OF_CHARACTER: usize = 4;

/// From so many pairs it is looked ahead. To find where bytes lead takes as long as a walk of some hundred nodes.
const PAIRS_AHEAD: usize = 2 * RECENT;

/// States of a lexeme and of a larger language after the same text.
type Pair = (StateId, StateId);

/// What is left of the mask of a larger language.
struct Left {
    inside: TokenSet,
    /// Nodes at which only the larger one ends.
    not_here: Vec<u32>,
}

impl LexemeCache {
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
        let ending = both.ending_bytes()?;
        let others = both.matter[0].intersect(&ending.complement());
        both.look_ahead()?;
        let Some(apart) = both.apart(vocabulary.trie(), &others)? else { return Ok(None) };
        let mut left = Left { inside: larger.to_set(vocabulary.vocab_size()), not_here: Vec::new() };
        if !ending.is_empty() {
            both.take_out(vocabulary, (&ending, &others), larger, &mut left)?;
        }
        both.read_apart(vocabulary, &apart, larger, &mut left)?;
        if !both.is_larger {
            return Ok(None);
        }
        let Left { inside, mut not_here } = left;
        not_here.sort_unstable();
        not_here.dedup();
        Ok(Some(larger.with_fewer(vocabulary, inside, &not_here)))
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
    /// For each of the first pairs, how many bytes lead at least to where it differs.
    ahead: Vec<u32>,
    relations: FxHashMap<Pair, Relation>,
    classes: ByteClasses,
    /// For each of the first pairs, where each class of bytes leads, as far as that was asked.
    moves: Vec<Option<Move>>,
    /// Whether nothing was seen that only the lexeme reads.
    is_larger: bool,
}

/// Bytes that neither of two automata distinguishes.
struct ByteClasses {
    /// By byte the number of its class.
    of: [u8; 256],
    /// The bytes of each.
    bytes: Vec<ByteSet>,
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

impl ByteClasses {
    fn new(lexeme_cache: &LexemeCache, automata: [DfaId; 2]) -> ByteClasses {
        let mut classes = ByteClasses { of: [0; 256], bytes: Vec::new() };
        let mut known: Vec<[u8; 2]> = Vec::new();
        for byte in 0..=u8::MAX {
            let both = automata.map(|dfa| lexeme_cache.dfas[dfa.0 as usize].representative(byte));
            let class = known.iter().position(|&class| class == both).unwrap_or(known.len());
            if class == known.len() {
                known.push(both);
                classes.bytes.push(ByteSet::EMPTY);
            }
            classes.of[usize::from(byte)] = class as u8;
            classes.bytes[class].insert(byte);
        }
        classes
    }
}

/// Whether some token goes on for so many bytes after a node.
fn is_long_enough(trie: &Trie, node: usize, bytes: u32) -> bool {
    trie.height(node) == u8::MAX || u32::from(trie.height(node)) >= bytes
}

impl Both<'_> {
    /// For a state that most characters lead back to, and where a larger language begins; `None` where these lead elsewhere.
    fn new(
        lexeme_cache: &mut LexemeCache,
        (own, state): (DfaId, StateId),
        whole: DfaId,
    ) -> Result<Option<Both<'_>>, LimitExceeded> {
        let usual = (state, StateId::START);
        let classes = ByteClasses::new(lexeme_cache, [own, whole]);
        let mut both = Both {
            lexeme_cache,
            own,
            whole,
            pairs: vec![usual],
            matter: vec![ByteSet::EMPTY],
            ahead: Vec::new(),
            relations: FxHashMap::default(),
            moves: vec![None; classes.bytes.len()],
            classes,
            is_larger: true,
        };
        both.find_what_matters(0)?;
        let live = both.lexeme_cache.live_bytes(whole, usual.1)?;
        let are_few = 2 * both.matter[0].len() < live.len();
        Ok(are_few.then_some(both))
    }

    /// The bytes after which only the larger language reads on where both usually are, and neither has matched.
    fn ending_bytes(&mut self) -> Result<ByteSet, LimitExceeded> {
        let mut ending = ByteSet::EMPTY;
        if !Switch::LexemeEndingBytes.is_on() {
            return Ok(ending);
        }
        for byte in self.matter[0].iter() {
            let Move { relation, ends_equally } = self.moved(0, byte)?;
            if relation == Relation::Dead && ends_equally {
                ending.insert(byte);
            }
        }
        Ok(ending)
    }

    /// The nodes to which bytes lead that matter where both usually are, and below which they may differ; `None` where a walk is
    /// cheaper.
    fn apart(&mut self, trie: &Trie, bytes: &ByteSet) -> Result<Option<TokenSet>, LimitExceeded> {
        let (mut apart, mut count) = (TokenSet::empty(trie.len()), 0);
        for byte in bytes.iter() {
            let least = match self.moved(0, byte)? {
                Move { relation: Relation::Dead, .. } | Move { ends_equally: false, .. } => 0,
                Move { relation: Relation::Same | Relation::Back, .. } => continue,
                Move { relation: Relation::Other(number), .. } => self.ahead(number),
            };
            let nodes = trie.nodes_of(byte).iter().filter(|&&node| is_long_enough(trie, node as usize, least));
            nodes.for_each(|&node| {
                apart.insert(node);
                count += 1;
            });
            if count > trie.len() / APART_OF {
                return Ok(None);
            }
        }
        Ok(Some(apart))
    }

    /// Takes out the tokens and the ends with a byte that ends the lexeme where both usually are. Those that have another byte that
    /// matters as well may be elsewhere there, and are read.
    fn take_out(
        &mut self,
        vocabulary: &Tokens,
        (ending, others): (&ByteSet, &ByteSet),
        larger: &LexemeMask,
        left: &mut Left,
    ) -> Result<(), LimitExceeded> {
        let mut out = TokenSet::empty(vocabulary.vocab_size());
        ending.iter().for_each(|byte| vocabulary.add_tokens_with(byte, &mut out));
        token_set::keep(out.words_mut(), left.inside.words());
        let mut elsewhere = TokenSet::empty(vocabulary.vocab_size());
        others.iter().for_each(|byte| vocabulary.add_tokens_with(byte, &mut elsewhere));
        token_set::keep(elsewhere.words_mut(), out.words());
        for (number, token) in elsewhere.iter().enumerate() {
            if number.is_multiple_of(BETWEEN_CHECKS) {
                LimitExceeded::check()?;
            }
            if self.read(vocabulary.token_bytes(token).unwrap_or_default())?.0 != StateId::DEAD {
                out.remove(token);
            }
        }
        token_set::take_out(left.inside.words_mut(), out.words());
        for &end in larger.ends.iter() {
            if vocabulary.bytes_to(end).iter().any(|&byte| ending.contains(byte)) {
                self.find_end(vocabulary, end, larger, left)?;
            }
        }
        Ok(())
    }

    /// The state of the lexeme after some bytes, and whether it matches there.
    fn read(&mut self, bytes: &[u8]) -> Result<(StateId, bool), LimitExceeded> {
        bytes
            .iter()
            .try_fold((self.pairs[0].0, false), |(state, _), &byte| self.lexeme_cache.step(self.own, state, byte))
    }

    /// Reads on from these nodes as if both were where they usually are before them, and takes out what only the larger language
    /// reads. Where both are elsewhere another of the nodes leads to what differs, so that is read from the start.
    fn read_apart(
        &mut self,
        vocabulary: &Tokens,
        apart: &TokenSet,
        larger: &LexemeMask,
        left: &mut Left,
    ) -> Result<(), LimitExceeded> {
        let trie = vocabulary.trie();
        // Nodes that were read where both are not where they usually are. Above a first node that lies below no other of them
        // both are, or nothing below it differs.
        let mut passed = TokenSet::empty(trie.len());
        let mut read_until = 0;
        let mut pairs = vec![0; trie.max_depth() + 1];
        let mut looked = 0usize;
        for first in apart.iter() {
            if passed.contains(first) {
                continue;
            }
            let first = first as usize;
            let (mut node, end) = (first, first + trie.size(first));
            let is_certain = first >= read_until;
            read_until = read_until.max(end);
            pairs[trie.depth(first) - 1] = 0;
            while node < end {
                looked += 1;
                if looked.is_multiple_of(BETWEEN_CHECKS) {
                    LimitExceeded::check()?;
                }
                let (here, below_end) = (node, node + trie.size(node));
                let before = pairs[trie.depth(here) - 1];
                node = below_end;
                if !self.matter[before].contains(trie.byte(here)) {
                    continue;
                }
                let Move { relation, ends_equally } = self.moved(before, trie.byte(here))?;
                let mut is_settled = false;
                if !ends_equally {
                    self.find_end(vocabulary, here as u32, larger, left)?;
                }
                match relation {
                    Relation::Other(number) if is_long_enough(trie, here, self.ahead(number)) => {
                        pairs[trie.depth(here)] = number as usize;
                        self.find_what_matters(number as usize)?;
                        node = here + 1;
                    }
                    Relation::Dead if self.read(vocabulary.bytes_to(here as u32))?.0 == StateId::DEAD => {
                        trie.entries_below(here).for_each(|token| left.inside.remove(token));
                        let ends = &larger.ends[larger.ends.partition_point(|&end| (end as usize) < here)..];
                        left.not_here.extend(ends.iter().take_while(|&&end| (end as usize) < below_end));
                        is_settled = true;
                    }
                    Relation::Same | Relation::Other(_) => is_settled = true,
                    Relation::Back | Relation::Dead => {}
                }
                if is_certain {
                    let until = if is_settled { below_end } else { here + 1 };
                    passed.insert_range(here as u32..until as u32);
                }
            }
        }
        Ok(())
    }

    /// Notes whether only the larger language ends at a node.
    fn find_end(
        &mut self,
        vocabulary: &Tokens,
        node: u32,
        larger: &LexemeMask,
        left: &mut Left,
    ) -> Result<(), LimitExceeded> {
        if larger.ends.binary_search(&node).is_ok() && !self.read(vocabulary.bytes_to(node))?.1 {
            left.not_here.push(node);
        }
        Ok(())
    }

    /// How many bytes lead at least from a pair to where it differs.
    fn ahead(&self, number: u32) -> u32 {
        self.ahead.get(number as usize).copied().unwrap_or(1)
    }

    /// Finds how many bytes lead at least from each of the first pairs to where it differs.
    fn look_ahead(&mut self) -> Result<(), LimitExceeded> {
        if !Switch::LexemeAhead.is_on() {
            return Ok(());
        }
        let mut known = 0;
        while known < self.pairs.len().min(PAIRS_AHEAD) {
            self.find_what_matters(known)?;
            known += 1;
        }
        self.ahead = vec![1; self.pairs.len()];
        self.ahead[..known].fill(u32::MAX);
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for number in 0..known {
                let least = (0..self.classes.bytes.len())
                    .filter_map(|class| self.moves[number * self.classes.bytes.len() + class])
                    .map(|moved| match moved {
                        Move { relation: Relation::Dead, .. } | Move { ends_equally: false, .. } => 1,
                        Move { relation: Relation::Same, .. } => u32::MAX,
                        Move { relation: Relation::Back, .. } => self.ahead[0].saturating_add(1),
                        Move { relation: Relation::Other(next), .. } => self.ahead[next as usize].saturating_add(1),
                    })
                    .min();
                let least = least.unwrap_or(u32::MAX);
                is_changed |= least < self.ahead[number];
                self.ahead[number] = self.ahead[number].min(least);
            }
        }
        Ok(())
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
        let place = number * self.classes.bytes.len() + usize::from(self.classes.of[usize::from(byte)]);
        if let Some(&Some(known)) = self.moves.get(place) {
            return Ok(known);
        }
        let moved = match self.step(self.pairs[number], byte)? {
            None => Move { relation: Relation::Back, ends_equally: true },
            Some((pair, ends_equally)) => Move { relation: self.relation(pair, 0)?, ends_equally },
        };
        if let Some(kept) = self.moves.get_mut(place) {
            *kept = Some(moved);
        }
        Ok(moved)
    }

    fn find_what_matters(&mut self, number: usize) -> Result<(), LimitExceeded> {
        if !self.matter[number].is_empty() {
            return Ok(());
        }
        let mut matter = self.matter[0];
        let live = self.live_bytes(self.pairs[number])?;
        for class in 0..self.classes.bytes.len() {
            let bytes = self.classes.bytes[class];
            let Some(byte) = bytes.intersect(&live).first() else { continue };
            let Move { relation, ends_equally } = self.moved(number, byte)?;
            if !ends_equally || relation != Relation::Back {
                matter = matter.union(&bytes);
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
        } else if self.lexeme_cache.agreement(self.own, pair.0, self.whole, pair.1)? == u32::MAX {
            Relation::Same
        } else {
            self.pairs.push(pair);
            self.matter.push(ByteSet::EMPTY);
            if self.pairs.len() <= KEPT_MOVES {
                self.moves.resize(self.pairs.len() * self.classes.bytes.len(), None);
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
        for class in 0..self.classes.bytes.len() {
            let Some(byte) = self.classes.bytes[class].intersect(&live).first() else { continue };
            let Some((pair, ends_equally)) = self.step(pair, byte)? else { return Ok(false) };
            if !ends_equally || self.relation(pair, depth + 1)? != Relation::Back {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
