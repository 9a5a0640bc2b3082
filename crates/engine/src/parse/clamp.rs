//! Clamping: configurations that differ only in counts far from their bounds have the same mask.

use stencilm_regex::StateId;

use crate::error::EngineError;
use crate::lexeme::cache::DfaId;
use crate::machine::expansion::IN_WHITESPACE;
use crate::machine::layout::ExpansionId;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};
use crate::switches::Switch;

impl Run<'_> {
    /// The configuration that stands for all that differ from this one only in counts far from their bounds.
    pub fn saturated(&mut self, configuration: SetId) -> Result<SetId, EngineError> {
        let mut threads = self.threads_of(configuration);
        let is_other = self.saturate(&mut threads)?;
        let found = if is_other { self.stacks.configuration(&mut threads) } else { Ok(configuration) };
        self.scratch.saturated = threads;
        found
    }

    /// The threads of a configuration, in a reused list.
    pub fn threads_of(&mut self, configuration: SetId) -> Vec<Entry> {
        let mut threads = std::mem::take(&mut self.scratch.saturated);
        threads.clear();
        threads.extend_from_slice(self.stacks.entries(configuration));
        threads
    }

    /// Clamps the threads of a configuration as [`Run::saturated`] does; returns whether that changed any.
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

    /// The same, but also treats a bounded text as unbounded where their masks differ in few tokens, and returns these
    /// tokens: only the mask of the clamped threads has them. So all lengths of a text except the last ones share a
    /// mask.
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

    /// The automaton that a thread is in, if any.
    fn automaton_of(&self, thread: Entry) -> Option<DfaId> {
        if thread == Entry::BOTTOM || offers_tokens(thread) || thread.state & IN_WHITESPACE != 0 {
            return None;
        }
        self.machine.fork(ExpansionId(thread.head)).dfa()
    }
}
