//! Alternatives put together: sums, without repetition, and the atoms of two conjunctions.

use rustc_hash::FxHashSet;

use super::atoms::Atom;
use super::goals::{Alternatives, Conjunction, Mode};

/// The greatest number of alternatives of one value.
pub(crate) const MAX_ALTERNATIVES: usize = 50_000;
/// The greatest number of alternatives that are kept for all values together.
pub(crate) const MAX_KEPT: usize = 1 << 24;
/// From this many alternatives on, those that turn out to be impossible on closer examination are dropped while
/// multiplying.
pub(crate) const MANY: usize = 12;
/// Up to this many alternatives are examined individually: those that another one contains, or that no text takes, are
/// dropped.
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

    /// Drops alternatives that require everything that another one requires, and more.
    pub(crate) fn absorbed(mut self, mode: Mode) -> Alternatives {
        // If annotations count, requiring more may allow more.
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
