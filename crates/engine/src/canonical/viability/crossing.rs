//! Crossing tokens, grouped by the suffixes with which they go on after lexemes.
//!
//! Nearly all lexemes that many tokens cross end with the same byte, so what the tokenizer makes of those tokens at a
//! cursor is stored with the vocabulary, for all lexemes.

use std::sync::Arc;

use stencilm_regex::ByteSet;
use stencilm_support::{Bounded, LARGE_BUDGET};

use crate::canonical::cursor::table::{CursorId, Cursors};
use crate::canonical::encoder::facts::Encoder;
use crate::canonical::viability::ahead::Ahead;
use crate::canonical::viability::equivalence::Equivalence;
use crate::error::EngineError;
use crate::lexeme::crossing::Crossings;
use crate::lexeme::mask::LexemeMask;
use crate::mask::cache::DependencyCaches;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;
use crate::switches::Switch;

/// A suffix that a grammar can read after a lexeme.
#[derive(PartialEq, Debug)]
pub(crate) struct ReadSuffix {
    /// Its node in the trie of suffixes, and its number.
    pub node: u32,
    pub suffix: u32,
    /// The bytes that certainly may come after it.
    pub certain: ByteSet,
}

/// The suffixes that a grammar can read after a lexeme.
struct ReadSuffixes {
    /// Keeps the suffixes alive, since their address is the key.
    _mask: Arc<LexemeMask>,
    read: Arc<[ReadSuffix]>,
}

/// The suffixes that a grammar can read after lexemes, whatever the tokenizer makes of them, by the set of suffixes and
/// the configuration after the lexeme.
pub(crate) struct SuffixesAfter(DependencyCaches<usize, ReadSuffixes>);

impl SuffixesAfter {
    /// An empty cache of at most `max_bytes` bytes. No token has more than `horizon` bytes.
    pub fn new(max_bytes: usize, horizon: usize) -> SuffixesAfter {
        SuffixesAfter(DependencyCaches::new(max_bytes, horizon))
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// The suffixes of these crossing tokens that can be read at a configuration after the lexeme, in trie order.
    pub(crate) fn read(
        &mut self,
        run: &mut Run<'_>,
        start: SetId,
        (mask, crossings): (&Arc<LexemeMask>, &Crossings),
    ) -> Result<Arc<[ReadSuffix]>, EngineError> {
        // Which elements an array has is no part of the cache key.
        if run.is_exact() || !Switch::CanonicalReadSuffixes.is_on() {
            return run.read_suffixes(start, crossings);
        }
        let name = std::ptr::from_ref(crossings.suffixes()) as usize;
        let (found, was_known) = self.0.of(name).get_or_compute(run, start, |run| {
            let read = run.read_suffixes(start, crossings)?;
            let size = size_of_val(&read[..]);
            Ok((ReadSuffixes { _mask: mask.clone(), read }, size))
        })?;
        // The slow reference of a cached result: read again.
        debug_assert!(!was_known || found.read == run.tracked(|run| run.read_suffixes(start, crossings)).0?);
        Ok(found.read.clone())
    }
}

impl Run<'_> {
    /// The suffixes that can be read from a configuration. Results from before are not used, so that everything that
    /// the result depends on is tracked.
    fn read_suffixes(&mut self, start: SetId, crossings: &Crossings) -> Result<Arc<[ReadSuffix]>, EngineError> {
        let suffixes = crossings.suffixes();
        // Most bytes of a word lead to the same configuration.
        let mut ahead = Ahead::default();
        let alive = ahead.next(self, start)?.bytes;
        let (mut path, mut read) = (vec![(start, alive)], Vec::new());
        for (mut node, end) in suffixes.roots(alive) {
            while node < end {
                path.truncate(suffixes.depth(node));
                let &(above, alive) = path.last().expect("the path begins with the configuration at the root");
                let after = match alive.contains(suffixes.byte(node)) {
                    true => ahead.step(self, above, suffixes.byte(node))?,
                    false => SetId::EMPTY,
                };
                if after == SetId::EMPTY {
                    node += suffixes.size(node);
                    continue;
                }
                let next = ahead.next(self, after)?;
                if let Some(suffix) = suffixes.entry_at(node) {
                    read.push(ReadSuffix { node: node as u32, suffix, certain: next.certain });
                }
                path.push((after, next.bytes));
                node += 1;
            }
        }
        Ok(read.into())
    }
}

/// Results about crossing tokens, by suffix.
#[derive(Default)]
pub(crate) struct CrossingClasses {
    /// By the address of the suffixes and the cursor.
    known: Bounded<(usize, CursorId), CrossingClassesAt, LARGE_BUDGET>,
}

/// The results for one set of suffixes at one cursor.
struct CrossingClassesAt {
    /// Keeps the suffixes alive, since their address is the key.
    _mask: Arc<LexemeMask>,
    /// By the number of a suffix, and one more for tokens that end with the lexeme; `None` where not computed yet.
    with: Box<[Option<Equivalence>]>,
}

impl CrossingClasses {
    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.known.memory_bytes()
    }

    /// The results about the crossing tokens of a lexeme mask at a cursor.
    pub fn here<'s>(
        &'s mut self,
        mask: &Arc<LexemeMask>,
        crossings: &'s Crossings,
        cursor: CursorId,
    ) -> CrossingClassesHere<'s> {
        let suffixes = crossings.suffixes();
        let name = std::ptr::from_ref(suffixes) as usize;
        if !Switch::CanonicalCrossing.is_on() {
            self.known = Bounded::default();
        }
        let (known, bytes) = self.known.get_or_make((name, cursor), || {
            let with: Box<[Option<Equivalence>]> = (0..=crossings.num_suffixes()).map(|_| None).collect();
            let bytes = size_of_val(&*with);
            (CrossingClassesAt { _mask: mask.clone(), with }, bytes)
        });
        CrossingClassesHere { crossings, cursor, known: &mut known.with, bytes }
    }
}

/// The results about some crossing tokens at a cursor.
pub(crate) struct CrossingClassesHere<'s> {
    crossings: &'s Crossings,
    cursor: CursorId,
    known: &'s mut [Option<Equivalence>],
    /// The bytes held for all cursors.
    bytes: &'s mut usize,
}

impl CrossingClassesHere<'_> {
    /// The tokens that cross with a suffix, or for `None` those that end with the lexeme, each with its crossing. There
    /// may be tokens of other lexemes among them.
    pub fn with(&mut self, encoding: &Encoder, cursors: &mut Cursors, suffix: Option<u32>) -> &Equivalence {
        let (crossings, cursor) = (self.crossings, self.cursor);
        self.known[suffix.map_or(crossings.num_suffixes(), |suffix| suffix as usize)].get_or_insert_with(|| {
            let trie = encoding.tokens().trie();
            let equivalence = match suffix {
                Some(suffix) => {
                    Equivalence::new(encoding, cursors, cursor, crossings.with_suffix(suffix).iter().copied())
                }
                None => {
                    let tokens = crossings.nodes().filter_map(|node| Some((0, trie.entry_at(node as usize)?)));
                    Equivalence::new(encoding, cursors, cursor, tokens)
                }
            };
            *self.bytes += equivalence.memory_bytes();
            equivalence
        })
    }
}
