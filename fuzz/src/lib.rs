//! One case of fuzzing: bytes choose a grammar, a vocabulary and queries, and every invariant is checked.
//!
//! Everything flows one way: bytes ([`Choices`]) → a grammar ([`grammars`], or a text of a notation) × a vocabulary
//! ([`vocabularies`], [`tokenizers`]) → a [`Target`], which makes one kind of query and compares the answer with a slow
//! twin. Because bytes decide, a smaller input makes a smaller failure ([`minimize`]), and a coverage-guided fuzzer can
//! choose the bytes.

pub mod ambiguous;
pub mod canonical;
pub mod canonical_twin;
pub mod choices;
pub mod deadlines;
pub mod exprs;
pub mod grammars;
pub mod holes;
pub mod interrupt;
pub mod lark;
pub mod minimize;
pub mod names;
pub mod notations;
pub mod oracle;
pub mod questions;
pub mod repetitions;
pub mod sentences;
pub mod sequences;
pub mod setting;
pub mod show;
pub mod source;
pub mod tags;
pub mod target;
pub mod tokenizers;
pub mod vocabularies;
pub mod walks;
pub mod without;
pub mod written;

use std::ops::AddAssign;

pub use choices::Choices;
pub use source::{SOURCES, Source, check};
pub use target::{TARGETS, Target};

/// What a number of cases have compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Inputs.
    pub cases: u64,
    /// Inputs that made a grammar, whose masks were compared.
    pub grammars: u64,
    /// Masks compared with the slow twin.
    pub masks: u64,
    /// Pairs of state and token for which the mask and the slow twin were compared.
    pub decisions: u64,
    /// Texts on which the matcher and the recogniser agreed.
    pub texts: u64,
    /// Cases that ended early because a limit was reached.
    pub limits: u64,
}

impl Counts {
    /// All numbers in one line, which [`Counts::from_line`] reads.
    pub fn line(&self) -> String {
        let Counts { cases, grammars, masks, decisions, texts, limits } = self;
        format!("counts {cases} {grammars} {masks} {decisions} {texts} {limits}")
    }

    /// Reads what [`Counts::line`] wrote; `None` for anything else.
    pub fn from_line(line: &str) -> Option<Counts> {
        let mut numbers = line.strip_prefix("counts ")?.split(' ').map(|number| number.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        let (cases, grammars, masks) = (next()?, next()?, next()?);
        Some(Counts { cases, grammars, masks, decisions: next()?, texts: next()?, limits: next()? })
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.cases += other.cases;
        self.grammars += other.grammars;
        self.masks += other.masks;
        self.decisions += other.decisions;
        self.texts += other.texts;
        self.limits += other.limits;
    }
}
