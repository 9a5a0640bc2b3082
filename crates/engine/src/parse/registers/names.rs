//! The names that a text has declared: see `parse/names.rs`.

use std::convert::Infallible;

use crate::machine::expansion::Expansion;
use crate::machine::layout::Machine;
use crate::parse::registers::meaning::Meaning;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, Stacks, UNKNOWN_NAMES};

/// The register of the names on top of a stack.
#[derive(Clone, Copy)]
pub(super) struct NamesRegister;

impl Meaning for NamesRegister {
    type Change = Infallible;

    fn changed(_: &mut Run<'_>, change: Infallible, _: &Expansion, _: Entry) -> Option<u32> {
        match change {}
    }

    fn describe(self, _: &Machine, stacks: &Stacks, names: u32, _: u32, description: &mut Vec<u64>) {
        if names == UNKNOWN_NAMES {
            description.push(u64::MAX);
            return;
        }
        let mut listed: Vec<Vec<u32>> = stacks.seen.entries(names).map(|entry| stacks.list(entry).collect()).collect();
        listed.sort_unstable();
        description.push(listed.len() as u64);
        for name in listed {
            description.push(name.len() as u64);
            description.extend(name.into_iter().map(u64::from));
        }
    }
}
