//! What the engine does without in a case: none of it may change an answer.

use stencilm_engine::Switch;

use crate::choices::Choices;

/// Some of what makes masks is off for the calling thread until this is dropped.
pub struct Without {
    off: Vec<Switch>,
}

impl Without {
    /// Nothing in most cases, else one thing alone or a quarter of all. The layers of canonical masks are for those who ask for such.
    pub fn some(choices: &mut Choices<'_>) -> Without {
        let all = || Switch::ALL.iter().copied().filter(|switch| !switch.name().starts_with("canonical"));
        let off: Vec<Switch> = match choices.below(6) {
            0 => vec![*choices.pick(&all().collect::<Vec<Switch>>())],
            1 => all().filter(|_| choices.chance(4)).collect(),
            _ => Vec::new(),
        };
        Switch::switch_off(off.iter().copied());
        Without { off }
    }

    /// The names of what is off.
    pub fn names(&self) -> Vec<&'static str> {
        self.off.iter().map(|switch| switch.name()).collect()
    }
}

impl Drop for Without {
    fn drop(&mut self) {
        Switch::switch_off([]);
    }
}
