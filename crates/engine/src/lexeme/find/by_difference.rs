//! The lexeme mask of a text in which something must not occur, from the mask of the text: only the bytes that matter
//! are examined.
//!
//! After nearly every character, the lexeme and the larger language, read together, are back in the same pair of
//! states, the *usual pair*. Only the other bytes matter. Some of them make the lexeme dead, such as the letters of a
//! class that must not occur. They remove all tokens that contain one, which the vocabulary knows
//! ([`Tokens::add_tokens_with`]). The rest, such as the first letter of a word that must not occur, are looked up in
//! the trie, and what lies below their nodes is read, if it is long enough: for each pair of states, the least number
//! of bytes until the two differ is computed beforehand.

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

/// The number of pairs for which the results of bytes are stored.
const KEPT_MOVES: usize = MANY;

/// A walk is cheaper if more than this part of all nodes would have to be looked at. Few of them are looked below.
const APART_OF: usize = 4;

/// The greatest number of bytes of a character.
const BYTES_OF_CHARACTER: usize = 4;

/// The number of pairs from which the distance to a difference is computed. Doing that for one pair takes as long as
/// walking some hundred nodes.
const PAIRS_AHEAD: usize = 2 * RECENT;

/// The states of a lexeme and of a larger language after the same text.
type Pair = (StateId, StateId);

/// The mask under construction: what remains of that of the larger language.
struct Left {
    inside: TokenSet,
    /// Nodes at which only the larger language ends.
    not_here: Vec<u32>,
}

impl LexemeCache {
    /// The mask of a residual from that of a larger language, if nearly every character leads both back to the usual
    /// pair: only what begins with another character is walked. `None` where that is not so, or where the other
    /// language turns out not to be larger.
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

struct Both<'a> {
    lexeme_cache: &'a mut LexemeCache,
    own: DfaId,
    whole: DfaId,
    /// The usual pair first, then the pairs with some other difference.
    pairs: Vec<Pair>,
    /// For each pair, the bytes that do not simply lead back to the usual pair, together with the bytes of which this
    /// is true when they are read from the usual pair; empty if not computed yet.
    matter: Vec<ByteSet>,
    /// For some of the first pairs, the least number of bytes until the two differ.
    ahead: Vec<u32>,
    relations: FxHashMap<Pair, Relation>,
    classes: ByteClasses,
    /// For some of the first pairs, the result of each class of bytes, as far as computed.
    moves: Vec<Option<Move>>,
    /// Whether so far the lexeme read nothing that the other language does not read.
    is_larger: bool,
}

/// Classes of bytes that neither of two automata distinguishes.
struct ByteClasses {
    /// The class of each byte.
    of: [u8; 256],
    /// The bytes of each class.
    bytes: Vec<ByteSet>,
}

/// The result of reading a byte from a pair.
#[derive(Clone, Copy)]
struct Move {
    relation: Relation,
    /// Whether both match there, or neither.
    ends_equally: bool,
}

/// The difference between the states of a pair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// There is none until both are back in the usual pair, after the rest of a character, or nothing more can be read.
    Back,
    /// There is none at all.
    Same,
    /// Only the larger language reads on.
    Dead,
    /// Some other difference: the number of the pair.
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

/// Whether some token continues for `bytes` bytes after a node.
fn is_long_enough(trie: &Trie, node: usize, bytes: u32) -> bool {
    trie.height(node) == u8::MAX || u32::from(trie.height(node)) >= bytes
}

impl Both<'_> {
    /// `usual` is a state to which most characters return, with the start of the larger language; `None` where most
    /// characters lead elsewhere.
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

    /// The bytes that, read from the usual pair, leave only the larger language alive, without a match of either.
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

    /// The nodes of those bytes that matter in the usual pair, where something below may differ; `None` where a walk is
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

    /// Removes the tokens and the ends that contain a byte that ends the lexeme in the usual pair. If a token also
    /// contains another byte that matters, the pair may be a different one there, so the token is read.
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

    /// Reads on from these nodes as if the usual pair preceded them, and removes what only the larger language reads.
    /// If another pair preceded a node, then another of the nodes above leads to the difference; so before anything is
    /// removed, it is read from the start.
    fn read_apart(
        &mut self,
        vocabulary: &Tokens,
        apart: &TokenSet,
        larger: &LexemeMask,
        left: &mut Left,
    ) -> Result<(), LimitExceeded> {
        let trie = vocabulary.trie();
        // Nodes that were already read from a pair other than the usual one. A first node that is below no other of
        // these nodes has the usual pair before it, or nothing below it differs.
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

    /// Notes a node if only the larger language ends at it.
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

    /// A lower bound on the number of bytes from a pair to a difference.
    fn ahead(&self, number: u32) -> u32 {
        self.ahead.get(number as usize).copied().unwrap_or(1)
    }

    /// Computes that number for the first pairs.
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

    /// The states after a byte, and whether both match there or neither; `None` where the larger language does not read
    /// the byte.
    fn step(&mut self, (state, other): Pair, byte: u8) -> Result<Option<(Pair, bool)>, LimitExceeded> {
        let (other, other_ends) = self.lexeme_cache.step(self.whole, other, byte)?;
        let (state, ends) = self.lexeme_cache.step(self.own, state, byte)?;
        self.is_larger &= (other != StateId::DEAD || state == StateId::DEAD) && (other_ends || !ends);
        Ok((other != StateId::DEAD).then_some(((state, other), ends == other_ends)))
    }

    /// The bytes that at least one of a pair reads.
    fn live_bytes(&mut self, (state, other): Pair) -> Result<ByteSet, LimitExceeded> {
        let live = *self.lexeme_cache.live_bytes(self.whole, other)?;
        Ok(live.union(self.lexeme_cache.live_bytes(self.own, state)?))
    }

    /// The result of a byte read from the pair with this number; [`Relation::Back`] where the larger language does not
    /// read it.
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

    /// Whether everything that either reads leads back to the usual pair, by bytes that cannot begin a character there.
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
