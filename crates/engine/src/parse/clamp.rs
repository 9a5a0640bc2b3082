//! Configurations that have one mask: counts far from their bounds make no difference to the next token.

use stencilm_regex::StateId;

use crate::error::EngineError;
use crate::lexeme::cache::DfaId;
use crate::machine::expansion::IN_WHITESPACE;
use crate::machine::layout::ExpansionId;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};
use crate::switches::Switch;

impl Run<'_> {
    /// A configuration with the same mask, common to all that differ only in counts far from their bounds.
    pub fn saturated(&mut self, configuration: SetId) -> Result<SetId, EngineError> {
        let mut threads = self.threads_of(configuration);
        let is_other = self.saturate(&mut threads)?;
        let found = if is_other { self.stacks.configuration(&mut threads) } else { Ok(configuration) };
        self.scratch.saturated = threads;
        found
    }

    /// The threads of a configuration, in a list that is handed on from one operation to the next.
    pub fn threads_of(&mut self, configuration: SetId) -> Vec<Entry> {
        let mut threads = std::mem::take(&mut self.scratch.saturated);
        threads.clear();
        threads.extend_from_slice(self.stacks.entries(configuration));
        threads
    }

    /// Turns the threads of a configuration into those of [`Run::saturated`]. Says whether these are others.
    pub fn saturate(&mut self, threads: &mut Vec<Entry>) -> Result<bool, EngineError> {
        let mut is_other = false;
        for thread in &mut *threads {
            if let Some(dfa) = self.automaton_of(*thread) {
                let state = self.lexeme_cache.saturated(dfa, StateId(thread.state))?.0;
                is_other |= state != thread.state;
                thread.state = state;
            }
        }
        if is_other {
            self.stacks.join(threads)?;
        }
        Ok(is_other)
    }

    /// The same, and the tokens that are in the mask of those threads only: few. So all lengths of a text, but for the last,
    /// have one mask.
    pub fn saturate_but_for(&mut self, threads: &mut Vec<Entry>) -> Result<Vec<u32>, EngineError> {
        let [thread] = &mut **threads else {
            self.saturate(threads)?;
            return Ok(Vec::new());
        };
        let Some(dfa) = self.automaton_of(*thread) else { return Ok(Vec::new()) };
        let state = StateId(thread.state);
        if Switch::MaskUnbounded.is_on()
            && !self.machine.keeps_text()
            && !self.machine.fork(ExpansionId(thread.head)).additional
            && let Some((unbounded, longer)) = self.lexeme_cache.nearly_unbounded(dfa, state)?
        {
            thread.state = unbounded.0;
            return Ok(longer.to_vec());
        }
        thread.state = self.lexeme_cache.saturated(dfa, state)?.0;
        Ok(Vec::new())
    }

    /// The automaton that a thread is in, if it is in one.
    fn automaton_of(&self, thread: Entry) -> Option<DfaId> {
        if thread == Entry::BOTTOM || offers_tokens(thread) || thread.state & IN_WHITESPACE != 0 {
            return None;
        }
        self.machine.fork(ExpansionId(thread.head)).dfa()
    }
}
