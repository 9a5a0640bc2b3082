//! The mask of a configuration in three steps, each a value.
//!
//! 1. [`OptimisticStep`]: the mask as if every key and element were new, from the cache, or computed and cached.
//! 2. [`DecidedMask`]: the same, with the tokens that were *verified* and refused because of what this sequence has
//!    read.
//! 3. [`PlainMask`]: the words. A cached mask is written only now, when no lock is held any more: that is most of the
//!    work.
//!
//! Canonical tokens, budgets and stop tokens are decided on the words. [`crate::naive::mask`] is the slow reference.

use std::sync::Arc;

use crate::error::EngineError;
use crate::mask::cache::{KeptMask, MaskCache};
use crate::parse::stepper::{Mode, Run};
use crate::parse::unverified::Unverified;
use crate::state::stacks::SetId;
use crate::switches::Switch;
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

/// The masks computed for one grammar.
pub(crate) struct Masks {
    known: MaskCache,
}

/// A mask as if every key and element were new.
struct OptimisticStep {
    /// The cached mask, where there was one.
    known: Option<Arc<KeptMask>>,
    /// The mask as it was cached now, where it was computed and a report was asked for.
    fresh: Option<Arc<KeptMask>>,
    /// How many tokens were computed, where this is counted.
    computed: Option<usize>,
    /// The tokens that have to be verified.
    unverified: Vec<Unverified>,
    /// Tokens of the mask that are too long for this sequence.
    longer: Vec<u32>,
    /// The sets that the mask depends on beside the configuration, where a report was asked for and they are known.
    reads: Option<Vec<SetId>>,
}

/// A mask that is decided and not yet written.
pub(crate) struct DecidedMask {
    /// The cached mask, where there was one.
    pub known: Option<Arc<KeptMask>>,
    /// The mask as it was cached now, where it was computed and a report was asked for.
    fresh: Option<Arc<KeptMask>>,
    /// How many tokens were computed, where this is counted.
    computed: Option<usize>,
    /// Tokens that the mask may have and that this sequence must not take.
    pub refused: Vec<u32>,
    reads: Option<Vec<SetId>>,
}

/// A mask in words, without stop tokens.
pub(crate) struct PlainMask {
    /// The number of allowed tokens, where it is known without counting; it always is for few tokens.
    pub allowed: Option<usize>,
    /// The sets that the mask depends on beside the configuration, where they are known and nothing was decided for
    /// this sequence alone.
    pub reads: Option<Vec<SetId>>,
    /// The cached mask, where the words are exactly it.
    pub kept: Option<Arc<KeptMask>>,
    /// Tokens refused because of what this sequence has read, such as a key that its object already has.
    pub refused: Vec<u32>,
}

impl Masks {
    /// An empty cache of at most `max_bytes` bytes. No token has more than `horizon` bytes.
    pub fn new(max_bytes: usize, horizon: usize) -> Masks {
        Masks { known: MaskCache::new(max_bytes, horizon) }
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.known.memory_bytes()
    }

    /// Decides the mask of a configuration, without stop tokens. A mask that is not cached is computed in `mask`; for a
    /// cached one `mask` is left alone. With `report`, the sets that the mask depends on are returned too.
    pub fn decide(
        &mut self,
        run: &mut Run<'_>,
        vocabulary: &Tokens,
        configuration: SetId,
        mask: &mut [u32],
        report: bool,
    ) -> Result<DecidedMask, EngineError> {
        let optimistic = self.optimistic(run, vocabulary, configuration, mask, report)?;
        run.verify(vocabulary, configuration, optimistic, mask)
    }

    fn optimistic(
        &mut self,
        run: &mut Run<'_>,
        vocabulary: &Tokens,
        configuration: SetId,
        mask: &mut [u32],
        report: bool,
    ) -> Result<OptimisticStep, EngineError> {
        // What a mask depends on is reported in terms of its own configuration.
        let mut threads = run.threads_of(configuration);
        let mut longer = Vec::new();
        match report {
            true => _ = run.saturate(&mut threads)?,
            false => longer = run.saturate_but_for(&mut threads)?,
        }
        if Switch::MaskCache.is_on()
            && let Some(known) = self.known.find_of(run.machine, run.stacks, &threads).cloned()
        {
            let mut reads = None;
            // Replaying the reads is cheap, but only canonical masks need them.
            if report {
                let saturated = run.stacks.configuration(&mut threads)?;
                reads = self.known.looks(run.machine, run.stacks, saturated);
            }
            run.scratch.saturated = threads;
            let unverified = known.unverified().to_vec();
            return Ok(OptimisticStep { known: Some(known), fresh: None, computed: None, unverified, longer, reads });
        }
        let saturated = run.stacks.configuration(&mut threads)?;
        run.scratch.saturated = threads;
        let (found, reads) =
            run.tracked(|run| run.in_mode(Mode::Optimistic, |run| run.optimistic_mask(vocabulary, saturated, mask)));
        let found = found?;
        let (fresh, computed) = match &reads {
            Some(reads) => {
                let kept = Arc::new(KeptMask::new(mask, &found, run.lexeme_cache.extensions.get()));
                self.known.keep(run.machine, run.stacks, saturated, reads, &kept, kept.bytes());
                let allowed = kept.allowed();
                (report.then_some(kept), allowed)
            }
            None => (None, Some(mask.iter().map(|word| word.count_ones() as usize).sum())),
        };
        run.scratch.flipped = found.flipped;
        Ok(OptimisticStep {
            known: None,
            fresh,
            computed,
            unverified: found.unverified,
            longer,
            reads: reads.filter(|_| report),
        })
    }
}

impl Run<'_> {
    /// Decides the unverified tokens of a mask. A mask that was computed now is in `mask`.
    fn verify(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        optimistic: OptimisticStep,
        mask: &mut [u32],
    ) -> Result<DecidedMask, EngineError> {
        let OptimisticStep { known, fresh, computed, mut unverified, mut longer, mut reads } = optimistic;
        self.tokens_of_seen_keys(vocabulary, configuration, &mut unverified)?;
        let mut refused = Vec::new();
        if self.machine.keeps_text() {
            if let Some(kept) = &known {
                kept.write(mask);
            }
            self.tokens_of_seen_elements(vocabulary, configuration, mask, &mut unverified, &mut refused)?;
        }
        // What was decided for this sequence alone must not be reported as reusable.
        if reads.is_some() && !(unverified.is_empty() && self.without_text(configuration)?.is_some()) {
            reads = None;
        }
        self.refuse_unverified(vocabulary, configuration, unverified, &mut refused)?;
        // Where the grammar names a single token, that token is allowed whatever its bytes are.
        let same = |token: u32| vocabulary.same_bytes(token).iter().copied().chain([token]);
        if !refused.is_empty() {
            refused = refused.into_iter().flat_map(same).collect();
            refused.retain(|&same| !self.has_token_edge(configuration, same));
        }
        if !longer.is_empty() {
            match vocabulary.duplicates() {
                [] => refused.append(&mut longer),
                _ => refused.extend(longer.into_iter().flat_map(same)),
            }
        }
        Ok(DecidedMask { known, fresh, computed, refused, reads })
    }
}

impl DecidedMask {
    /// Finishes the mask, given the words that [`Masks::decide`] used.
    pub fn finish(self, mask: &mut [u32]) -> PlainMask {
        let DecidedMask { known, fresh, computed, mut refused, reads } = self;
        let mut allowed = computed;
        if let Some(kept) = &known {
            kept.write(mask);
            allowed = kept.allowed();
        }
        refused.retain(|&token| {
            let was_there = token_set::get(mask, token);
            token_set::clear(mask, token);
            was_there
        });
        allowed = allowed.map(|allowed| allowed - refused.len());
        PlainMask { allowed, reads, kept: known.or(fresh), refused }
    }
}
