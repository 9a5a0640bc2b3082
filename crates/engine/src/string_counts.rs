//! Elements that are strings, of which there are finitely many: whether one is left is told by counting.
//!
//! Without escapes a text spells one value. So of an element that has begun as a string a new one can come exactly where more
//! strings go on like this than the array has. How many go on from what is left of a lexeme is worked out once.

use rustc_hash::FxHashMap;
use stencilm_regex::{Derivatives, Deriver, ExprId, LimitExceeded, StateId};

use crate::error::EngineError;
use crate::fork::IN_BLANKS;
use crate::machine::ForkId;
use crate::run::{Run, offers_tokens};
use crate::stacks::Entry;
use crate::unique::text_since;

/// Most residuals that are counted at once.
const MAX_RESIDUALS: usize = 20_000;

/// How many plainly written strings go on from what is left within one, by residual; `None` where there is no end to them or
/// some are not written plainly.
pub(crate) type StringCounts = FxHashMap<ExprId, Option<u64>>;

impl Run<'_> {
    /// Whether an element that is a string and has begun can become one that its array does not have; `None` where that is not
    /// told by counting.
    pub(crate) fn has_string_left(&mut self, thread: Entry, text: u32) -> Result<Option<bool>, EngineError> {
        if thread == Entry::BOTTOM || offers_tokens(thread) || thread.state & IN_BLANKS != 0 {
            return Ok(None);
        }
        let fork = self.machine.fork(ForkId(thread.head)).clone();
        let Some(dfa) = fork.dfa() else { return Ok(None) };
        if !self.is_pending(fork.frame, thread.register) {
            return Ok(None);
        }
        let lexemes = self.lexicon.residuals(dfa, StateId(thread.state)).to_vec();
        for &(tag, _) in &lexemes {
            // The lexeme must be the whole element.
            for frames in self.machine.continuations(&fork, tag).iter() {
                if !matches!(frames[..], [(behind, _)] if self.machine.unique_items(behind).is_some()) {
                    return Ok(None);
                }
            }
        }
        let mut pending = Vec::new();
        self.pending(thread, &mut pending);
        let (&[array], Some(open)) = (&pending[..], self.open_string(text, &pending)) else { return Ok(None) };
        if text_since(self.stacks, text, array.start).trim_ascii_start() != open {
            return Ok(None);
        }
        let residuals: Vec<ExprId> = lexemes.into_iter().map(|(_, residual)| residual).collect();
        let deriver = self.lexicon.deriver();
        let left = deriver.exprs.or(&residuals);
        let Some(count) = count_strings(deriver, left, &mut self.machine.richness.strings)? else { return Ok(None) };
        let seen = self.seen_strings(&pending);
        let mut used = 0;
        for rest in seen.whole_rests(&open) {
            used += u64::from(self.lexicon.deriver().matches(left, rest)?);
        }
        Ok(Some(used < count))
    }
}

/// A residual on the way down, its derivatives, and how many strings go on from those before `next`.
struct Level {
    residual: ExprId,
    derivatives: Derivatives,
    next: usize,
    count: u64,
}

/// Counts the strings that go on from a residual within a string.
fn count_strings(deriver: &mut Deriver, root: ExprId, known: &mut StringCounts) -> Result<Option<u64>, LimitExceeded> {
    if let Some(&count) = known.get(&root) {
        return Ok(count);
    }
    let level = |deriver: &mut Deriver, residual: ExprId| -> Result<Level, LimitExceeded> {
        Ok(Level { residual, derivatives: deriver.derivatives(residual)?, next: 0, count: 0 })
    };
    // What is met again on the way down has no end: until it is counted, it is known not to be.
    known.insert(root, None);
    let before = known.len();
    let mut levels = vec![level(deriver, root)?];
    while let Some(top) = levels.last_mut() {
        let Some(&(bytes, rest)) = top.derivatives.get(top.next) else {
            known.insert(top.residual, Some(top.count));
            levels.pop();
            continue;
        };
        if !deriver.is_live(rest)? {
            top.next += 1;
            continue;
        }
        let ends = bytes.contains(b'"');
        let is_plain = !bytes.contains(b'\\') && !deriver.exprs.is_nullable(top.residual);
        if !is_plain || (ends && (rest != ExprId::EMPTY || bytes.len() > 1)) || known.len() - before > MAX_RESIDUALS {
            return Ok(None);
        }
        let count = match known.get(&rest) {
            _ if ends => 1,
            Some(&Some(count)) => count,
            Some(None) => return Ok(None),
            None => {
                known.insert(rest, None);
                levels.push(level(deriver, rest)?);
                continue;
            }
        };
        top.count = top.count.saturating_add(count.saturating_mul(bytes.len() as u64));
        top.next += 1;
    }
    Ok(known[&root])
}
