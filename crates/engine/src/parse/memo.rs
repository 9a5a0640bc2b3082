//! A memo of steps and starts for one mask: it meets the same few configurations at thousands of nodes of the trie.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use stencilm_support::LOOKED_AT;

use crate::parse::assumptions::Assumptions;
use crate::state::stacks::{Entry, SetId};

/// What the threads of a mask do, where they are followed together.
#[derive(Default)]
pub(crate) struct Known {
    /// With all threads, and with [thin](crate::state::stacks::Stacks::thin) stacks.
    pub steps: [Steps; 2],
    pub starts: FxHashMap<SetId, Rc<[Entry]>>,
}

/// Where one or more steps led: the number of the configuration, and in the lowest bits what was assumed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step(u32);

/// The number of bits for assumptions.
const ASSUMED: u32 = Assumptions::BITS;

impl Step {
    /// In a table: not known yet.
    const UNKNOWN: Step = Step(u32::MAX);

    /// The number of the configuration.
    #[inline]
    pub fn number(self) -> u32 {
        self.0 >> ASSUMED
    }

    /// Whether nothing can follow.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.number() == 0
    }

    /// Whether anything was assumed.
    #[inline]
    pub fn assumes(self) -> bool {
        self.0 & ((1 << ASSUMED) - 1) != 0
    }

    /// The same after earlier steps.
    #[inline]
    pub fn after(self, before: Step) -> Step {
        Step(self.0 | before.0 & ((1 << ASSUMED) - 1))
    }

    /// What was assumed on the way and before.
    pub fn assumed(self, before: Assumptions) -> Assumptions {
        before.after_steps(self.0)
    }
}

/// The state of each thread's automaton after a byte, and whether lexemes are complete there.
pub(crate) type States = Box<[(u32, bool)]>;

/// The steps between configurations, which are numbered in the order in which they were met. A walk takes hundreds of
/// thousands of steps, so those from the configurations met first are in a table.
#[derive(Default)]
pub(crate) struct Steps {
    configurations: Vec<SetId>,
    numbers: FxHashMap<SetId, u32>,
    /// For the first configurations, by byte.
    table: Vec<[Step; 256]>,
    /// For the others.
    beyond: FxHashMap<(u32, u8), Step>,
    /// By the states after the byte: bytes that lead all threads to the same states are equivalent.
    pub by_states: FxHashMap<(u32, States), Step>,
    /// Whether some step left out threads because the stacks are thin.
    pub is_thinned: bool,
}

impl Steps {
    /// A step to a configuration.
    pub fn step(&mut self, configuration: SetId, assumed: Assumptions) -> Step {
        if self.configurations.is_empty() {
            self.add(SetId::EMPTY);
        }
        let number = match self.numbers.get(&configuration) {
            Some(&number) => number,
            None => self.add(configuration),
        };
        Step(number << ASSUMED | assumed.to_bits())
    }

    fn add(&mut self, configuration: SetId) -> u32 {
        let number = self.configurations.len() as u32;
        self.configurations.push(configuration);
        self.numbers.insert(configuration, number);
        if self.table.len() < LOOKED_AT {
            self.table.push([Step::UNKNOWN; 256]);
        }
        number
    }

    /// The configuration with a number.
    pub fn configuration(&self, number: u32) -> SetId {
        self.configurations[number as usize]
    }

    /// The step by a byte from a configuration.
    #[inline]
    pub fn get(&self, number: u32, byte: u8) -> Option<Step> {
        match self.table.get(number as usize) {
            Some(row) => Some(row[usize::from(byte)]).filter(|&step| step != Step::UNKNOWN),
            None => self.beyond.get(&(number, byte)).copied(),
        }
    }

    /// Remembers a step.
    pub fn set(&mut self, number: u32, byte: u8, step: Step) {
        match self.table.get_mut(number as usize) {
            Some(row) => row[usize::from(byte)] = step,
            None => drop(self.beyond.insert((number, byte), step)),
        }
    }
}
