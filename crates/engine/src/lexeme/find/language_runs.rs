//! Lexemes that begin with the rest of a language decided by a program, such as a host-name label in Punycode.
//!
//! Nearly any bytes may come in such a text, so its tokens are those of a run of bytes. Where a run stops, the program
//! is asked whether the text read is a member: once for each node where a token leaves the text, and what is read after
//! that is the same for all of them. Only if little room is left, the program is asked for every token.

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, ExprId, LanguageAlternative, LanguageReader, StateId};
use stencilm_support::{LimitExceeded, MANY};

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::find::finder::{Finder, Found, Next, Start, Unfinished};
use crate::lexeme::find::found::{Ends, Inside};
use crate::lexeme::find::limits::{Beside, Limited, Read};
use crate::lexeme::mask::LexemeMask;
use crate::vocabulary::token_set;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;

/// The greatest number of alternatives that are distinguished, since each is a bit.
const MAX_ALTERNATIVES: usize = u32::BITS as usize;

/// A text that begins with such languages, each perhaps within limits of length.
struct Begun {
    alternatives: Vec<LanguageAlternative>,
    /// The bytes of the languages.
    run: ByteSet,
    /// What follows each alternative after a run of this many bytes; [`ExprId::NOTHING`] where nothing may follow.
    followers: Vec<Vec<ExprId>>,
    /// The number of bytes that may come in any case, whichever they are.
    certain: usize,
}

/// Finds the mask of a lexeme that begins with languages decided by a program.
pub(crate) struct LanguageRuns;

impl Finder for LanguageRuns {
    fn find(&self, lexemes: &mut LexemeCache, vocabulary: &Tokens, this: Unfinished) -> Found {
        Ok(lexemes.mask_of_language(vocabulary, this.residual)?.map(Next::found))
    }
}

impl LexemeCache {
    /// The mask of a lexeme that begins with languages decided by a program; `None` for other lexemes, and where
    /// anything but a run of bytes may come first.
    pub(crate) fn mask_of_language(
        &mut self,
        vocabulary: &Tokens,
        residual: ExprId,
    ) -> Result<Option<LexemeMask>, LimitExceeded> {
        let Some(begun) = self.begun_language(residual)? else { return Ok(None) };
        // A run also stops where what follows a member begins.
        let mut stops = ByteSet::EMPTY;
        for alternative in &begun.alternatives {
            let tail = self.deriver.exprs.concat(alternative.then, alternative.after);
            if self.deriver.exprs.is_nullable(tail) {
                return Ok(None);
            }
            stops = self.deriver.derivatives(tail)?.iter().fold(stops, |all, (set, _)| all.union(set));
        }
        if !stops.intersect(&begun.run).is_empty() {
            return Ok(None);
        }
        let byte = self.deriver.exprs.bytes(begun.run);
        let Some(runs) = self.runs(vocabulary, byte, stops, false)? else { return Ok(None) };
        let mut inside = runs.within(None);
        let groups = runs.stops().iter().filter(|group| stops.contains(group.byte));
        let mut nodes: Vec<u32> = groups.flat_map(|group| &group.nodes).map(|&(node, _)| node).collect();
        nodes.sort_unstable();
        begun.drop_dead_ends(vocabulary, &mut inside)?;
        let ends = self.ends_of_language(vocabulary, &begun, &nodes, &mut inside)?;
        let from = Start { dfa: self.dfa(&[byte])?, state: StateId::START, one: true };
        Ok(Some(self.mask_with(vocabulary, from, Inside::Set(inside), ends)))
    }

    fn begun_language(&mut self, residual: ExprId) -> Result<Option<Begun>, LimitExceeded> {
        let Some(alternatives) = self.deriver.exprs.language_alternatives(residual) else { return Ok(None) };
        let run = alternatives[0].rest.bytes();
        if alternatives.len() > MAX_ALTERNATIVES
            || alternatives
                .iter()
                .any(|alternative| alternative.rest.run().is_none() || alternative.rest.bytes() != run)
        {
            return Ok(None);
        }
        let mut followers = Vec::with_capacity(alternatives.len());
        for alternative in &alternatives {
            let Some(behind) = self.deriver.followers(alternative, alternative.rest.longest())? else {
                return Ok(None);
            };
            followers.push(behind);
        }
        let mut begun = Begun { alternatives, run, followers, certain: 0 };
        begun.certain = begun.certain();
        Ok(Some(begun))
    }

    /// Reads on from the nodes where runs stop.
    fn ends_of_language(
        &mut self,
        vocabulary: &Tokens,
        begun: &Begun,
        nodes: &[u32],
        inside: &mut TokenSet,
    ) -> Result<Ends, LimitExceeded> {
        let trie = vocabulary.trie();
        let mut ends = Ends::default();
        let mut states = vec![0; trie.max_depth() + 1];
        // The results for runs of bytes that stop at more than one node.
        let mut known: FxHashMap<&[u8], Box<[ExprId]>> = FxHashMap::default();
        let mut behind: FxHashMap<Box<[ExprId]>, Behind> = FxHashMap::default();
        let mut readers = begun.readers();
        for &node in nodes {
            let followers = known.entry(vocabulary.bytes_before(node));
            let followers = followers.or_insert_with_key(|before| begun.followers_after(&mut readers, before));
            if followers.is_empty() {
                continue;
            }
            if !behind.contains_key(followers) {
                behind.insert(followers.clone(), self.behind(followers)?);
            }
            match behind.get_mut(followers).expect("it was just found") {
                Behind::Plain(dfa) => {
                    self.read_after_run(vocabulary, (*dfa, node), &mut states, inside, &mut ends)?;
                }
                Behind::Within(beside) => {
                    self.read_within(vocabulary, (beside, node), &mut states, inside, &mut ends)?;
                }
            }
        }
        Ok(ends)
    }

    /// Reads a text within limits, starting with the byte of a node of the trie: the tokens that stay within it, and
    /// the nodes where it ends within tokens.
    fn read_within(
        &mut self,
        vocabulary: &Tokens,
        (beside, node): (&mut Beside, u32),
        states: &mut [u32],
        inside: &mut TokenSet,
        ends: &mut Ends,
    ) -> Result<(), LimitExceeded> {
        let (trie, node) = (vocabulary.trie(), node as usize);
        trie.walk_part(
            (node, node + trie.size(node)),
            trie.depth(node) - 1,
            Beside::START,
            states,
            |place, byte, node, _| {
                let Some(Read::Within { place, is_end }) = beside.step(self, place, byte)? else { return Ok(None) };
                if is_end {
                    // The state makes no difference.
                    ends.push(vocabulary, node, StateId::START);
                }
                Ok(Some(if beside.is_unaffected(place, trie.height(node)) { beside.freed(place) } else { place }))
            },
            |token, _| token_set::set(inside.words_mut(), token),
        )
    }

    /// How to read what follows: a match of one of these expressions.
    fn behind(&mut self, followers: &[ExprId]) -> Result<Behind, LimitExceeded> {
        let mut all: Option<Limited> = None;
        for &follower in followers {
            let limited = self.without_limits(follower)?;
            let exprs = &mut self.deriver.exprs;
            let either = limited.and_then(|limited| match &all {
                Some(all) => all.either(&limited, exprs),
                None => Some(limited),
            });
            if either.is_none() {
                let any = exprs.or(followers);
                return Ok(Behind::Plain(self.dfa(&[any])?));
            }
            all = either;
        }
        let all = all.expect("something may follow");
        Ok(Behind::Within(Beside::new(self, &all)?))
    }
}

/// How what may follow a member is read.
enum Behind {
    Plain(DfaId),
    Within(Beside),
}

/// What follows after a run of this many bytes.
fn follower(followers: &[ExprId], many: usize) -> ExprId {
    followers.get(many).copied().unwrap_or(ExprId::NOTHING)
}

impl Begun {
    /// The number of bytes that may come in any case, whichever they are.
    fn certain(&self) -> usize {
        let certain = |(alternative, followers): (&LanguageAlternative, &Vec<ExprId>)| {
            let most = alternative.rest.most() as usize;
            let mut lengths = 0..=alternative.rest.run().map_or(0, |run| run as usize);
            let closed = |many: &usize| (*many..=many + most).any(|many| follower(followers, many) == ExprId::NOTHING);
            lengths.clone().find(closed).map_or_else(|| lengths.next_back(), |closed| closed.checked_sub(1))
        };
        self.alternatives.iter().zip(&self.followers).filter_map(certain).max().unwrap_or(0)
    }

    /// A reader for each alternative.
    fn readers(&self) -> Vec<Box<dyn LanguageReader>> {
        self.alternatives.iter().map(|alternative| alternative.rest.reader()).collect()
    }

    /// Of these alternatives, given as bits, those that remain after the last byte of a run; `None` where nothing can
    /// be completed.
    fn step(&self, readers: &mut [Box<dyn LanguageReader>], alternatives: u32, bytes: &[u8]) -> Option<u32> {
        let (mut left, mut is_open) = (0, false);
        for (index, ((alternative, reader), followers)) in
            self.alternatives.iter().zip(readers).zip(&self.followers).enumerate()
        {
            let bit = 1 << index;
            let is_certain = alternative.rest.run().is_some_and(|run| bytes.len() <= run as usize);
            if alternatives & bit == 0 || (is_certain && is_open) {
                left |= alternatives & bit;
                continue;
            }
            if !reader.read(bytes) {
                continue;
            }
            left |= bit;
            is_open = is_open || reader.is_completed_for(followers.get(bytes.len()..).unwrap_or_default());
        }
        is_open.then_some(left)
    }

    /// The same after all of the bytes.
    fn after(&self, readers: &mut [Box<dyn LanguageReader>], bytes: &[u8]) -> Option<u32> {
        let mut ends = self.certain + 1..=bytes.len();
        ends.try_fold(self.all_alternatives(), |alternatives, end| self.step(readers, alternatives, &bytes[..end]))
    }

    /// What may follow a run of bytes, if it is a member.
    fn followers_after(&self, readers: &mut [Box<dyn LanguageReader>], bytes: &[u8]) -> Box<[ExprId]> {
        let left = self.after(readers, bytes).unwrap_or(0);
        let alternatives = readers.iter_mut().zip(&self.followers).enumerate();
        let alternatives =
            alternatives.filter(|(index, _)| left & (1 << index) != 0).map(|(_, alternative)| alternative);
        let members = alternatives.filter_map(|(reader, followers)| {
            (reader.read(bytes) && reader.is_member()).then(|| follower(followers, bytes.len()))
        });
        members.filter(|&follower| follower != ExprId::NOTHING).collect()
    }

    fn all_alternatives(&self) -> u32 {
        u32::MAX >> (MAX_ALTERNATIVES - self.alternatives.len())
    }

    /// Removes the tokens after which nothing can be completed.
    fn drop_dead_ends(&self, vocabulary: &Tokens, inside: &mut TokenSet) -> Result<(), LimitExceeded> {
        let longer = vocabulary.lengths().longer(self.certain as u32);
        let longer: Vec<u32> = longer.filter(|&token| inside.contains(token)).collect();
        let mut readers = self.readers();
        // If there are more, a walk of the trie reads common prefixes only once.
        if longer.len() <= MANY {
            for token in longer {
                let bytes = vocabulary.token_bytes(token).expect("a run of bytes is spelled by bytes");
                if self.after(&mut readers, bytes).is_none() {
                    token_set::clear(inside.words_mut(), token);
                }
            }
            return Ok(());
        }
        longer.into_iter().for_each(|token| inside.remove(token));
        let (trie, mut path) = (vocabulary.trie(), Vec::new());
        trie.walk(
            self.all_alternatives(),
            |alternatives, byte, node| {
                path.truncate(trie.depth(node) - 1);
                path.push(byte);
                let is_certain = path.len() <= self.certain;
                Ok(if !self.run.contains(byte) {
                    None
                } else if is_certain {
                    Some(alternatives)
                } else {
                    self.step(&mut readers, alternatives, &path)
                })
            },
            |token, _| inside.insert(token),
        )
    }
}
