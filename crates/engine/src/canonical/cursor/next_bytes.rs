//! What a search has found of the configurations that it comes to: what may come there, and where each byte leads.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_support::LOOKED_AT;

use super::by_place::Text;
use super::next::Next;
use crate::error::EngineError;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;

/// Tokens that are read at a configuration.
#[derive(Clone)]
pub(crate) struct Listed {
    /// Each with the configuration after it, and whether the path there is beyond the lexemes that are read where it begins.
    pub tokens: Arc<[(u32, SetId, bool)]>,
    /// Whether any path is, also one that ends within a token.
    pub some_beyond: bool,
}

/// What is known of one configuration.
#[derive(Default)]
pub(crate) struct Known {
    next: Option<Next>,
    /// The text that is forced there; `None` inside where there is none.
    pub forced: Option<Option<Text>>,
    /// The tokens that are read there, where they are few.
    pub read: Option<Option<Listed>>,
}

/// What is known of configurations, within one operation.
#[derive(Default)]
pub(crate) struct Ahead {
    known: FxHashMap<SetId, Known>,
    steps: FxHashMap<(SetId, u8), SetId>,
}

impl Ahead {
    /// Forgets everything, but keeps the room: most masks ask, and each little.
    pub fn begin(&mut self) {
        if self.steps.capacity() > LOOKED_AT {
            *self = Ahead::default();
        }
        self.known.clear();
        self.steps.clear();
    }

    /// What is known of a configuration.
    pub fn of(&mut self, configuration: SetId) -> &mut Known {
        self.known.entry(configuration).or_default()
    }

    /// What may come at a configuration.
    pub fn next(&mut self, run: &mut Run<'_>, configuration: SetId) -> Result<Next, EngineError> {
        let known = self.of(configuration);
        match known.next {
            Some(next) => Ok(next),
            None => Ok(*known.next.insert(run.next_of(configuration)?)),
        }
    }

    /// The configuration after a byte.
    pub fn step(&mut self, run: &mut Run<'_>, configuration: SetId, byte: u8) -> Result<SetId, EngineError> {
        if let Some(&known) = self.steps.get(&(configuration, byte)) {
            return Ok(known);
        }
        let next = run.step(configuration, byte)?;
        self.steps.insert((configuration, byte), next);
        Ok(next)
    }
}
