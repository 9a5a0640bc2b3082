//! Optional parts of the engine that a case runs without; that must not change any answer.

use stencilm_engine::Switch;

use crate::choices::Choices;

/// Switches some optional parts off for the calling thread until it is dropped.
pub struct Without {
    off: Vec<Switch>,
}

impl Without {
    /// In most cases nothing, otherwise one part alone or a quarter of all. The layers of canonical masks are only for
    /// targets that ask for them.
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

    /// The names of the parts that are off.
    pub fn names(&self) -> Vec<&'static str> {
        self.off.iter().map(|switch| switch.name()).collect()
    }
}

impl Drop for Without {
    fn drop(&mut self) {
        Switch::switch_off([]);
    }
}
