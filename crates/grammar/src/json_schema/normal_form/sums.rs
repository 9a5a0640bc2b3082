//! Alternatives put together: sums, without repetition, and the atoms of two conjunctions.

use rustc_hash::FxHashSet;

use super::atoms::Atom;
use super::goals::{Alternatives, Conjunction, Mode};

/// Most alternatives of one value.
pub(crate) const MAX_ALTERNATIVES: usize = 50_000;
/// Most alternatives of all values together, as far as they are kept.
pub(crate) const MAX_KEPT: usize = 1 << 24;
/// From so many alternatives on, those that are impossible on a closer look are dropped while multiplying.
pub(crate) const MANY: usize = 12;
/// Up to so many alternatives, each is looked at: those that another one contains are dropped, or those that no text
/// takes.
pub(crate) const FEW: usize = 64;

/// Alternatives without repetition.
#[derive(Default)]
pub(crate) struct Sum {
    pub list: Vec<Conjunction>,
    seen: FxHashSet<Conjunction>,
}

impl Sum {
    pub(crate) fn push(&mut self, all: Conjunction) {
        if self.seen.insert(all.clone()) {
            self.list.push(all);
        }
    }

    pub(crate) fn add(&mut self, alternatives: &Alternatives) {
        for all in alternatives.iter() {
            self.push(all.clone());
        }
    }

    /// Without those that ask for all that another one asks for, and more.
    pub(crate) fn absorbed(mut self, mode: Mode) -> Alternatives {
        // With annotations, asking for more may allow more.
        if (2..=FEW).contains(&self.list.len()) && !mode.is_tracked() {
            let covers = |less: &Conjunction, more: &Conjunction| {
                less.len() < more.len() && less.iter().all(|atom| more.contains(atom))
            };
            let list = &self.list;
            let kept = list.iter().filter(|more| !list.iter().any(|less| covers(less, more))).cloned().collect();
            self.list = kept;
        }
        self.list.into()
    }
}

/// All atoms of both, each once.
pub(crate) fn joined(left: &[Atom], right: &[Atom]) -> Conjunction {
    if right.is_empty() {
        return left.into();
    }
    let mut both = left.to_vec();
    if left.len() * right.len() < 64 {
        both.extend(right.iter().filter(|atom| !left.contains(atom)));
    } else {
        let seen: FxHashSet<Atom> = left.iter().copied().collect();
        both.extend(right.iter().filter(|atom| !seen.contains(atom)));
    }
    both.into()
}
