//! The minimal automaton over bytes of a grammar with finitely many configurations: each configuration is a state.

use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;
use stencilm_support::FEW;

use crate::compiled::{CompiledGrammar, Layout};
use crate::error::EngineError;
use crate::index::error::IndexError;
use crate::index::minimize::{Arrow, classes};
use crate::state::stacks::{SetId, Stacks};

/// The absence of a state.
pub(super) const NOWHERE: u32 = u32::MAX;
/// A deterministic automaton over bytes, without dead states. State 0 is the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ByteAutomaton {
    pub columns: [u8; 256],
    /// The number of columns.
    pub width: usize,
    /// The next state by state and column, or [`NOWHERE`].
    pub table: Vec<u32>,
    pub finals: Vec<bool>,
}

impl ByteAutomaton {
    #[inline]
    pub fn next(&self, state: u32, byte: u8) -> u32 {
        self.table[state as usize * self.width + usize::from(self.columns[usize::from(byte)])]
    }

    pub fn len(&self) -> usize {
        self.finals.len()
    }

    /// The only byte that may come at a state, and the next state; `None` where several bytes may come, or the text may
    /// end.
    pub fn only(&self, state: u32) -> Option<(u8, u32)> {
        if self.finals[state as usize] {
            return None;
        }
        let row = &self.table[state as usize * self.width..][..self.width];
        let mut live = row.iter().enumerate().filter(|&(_, &next)| next != NOWHERE);
        let (column, &next) = live.next()?;
        if live.next().is_some() {
            return None;
        }
        let mut bytes = (0..=u8::MAX).filter(|&byte| usize::from(self.columns[usize::from(byte)]) == column);
        let byte = bytes.next()?;
        bytes.next().is_none().then_some((byte, next))
    }

    pub fn memory_bytes(&self) -> usize {
        self.table.len() * 4 + self.finals.len() + 256
    }
}

/// The configurations of a grammar, explored one after another.
pub(super) struct Exploration {
    layout: Arc<Layout>,
    stacks: Stacks,
    states: FxHashMap<SetId, u32>,
    order: Vec<SetId>,
    explored: usize,
    arrows: Vec<Arrow>,
    finals: Vec<u32>,
}

impl Exploration {
    pub fn new(compiled: &CompiledGrammar) -> Result<Exploration, EngineError> {
        let layout = compiled.layout();
        let mut stacks = Stacks::new();
        let first = layout.with(&mut stacks, |run| run.initial())?;
        let mut states = FxHashMap::default();
        states.insert(first, 0);
        Ok(Exploration {
            layout,
            stacks,
            states,
            order: vec![first],
            explored: 0,
            arrows: Vec::new(),
            finals: Vec::new(),
        })
    }

    /// The numbers of explored and of known states.
    pub fn progress(&self) -> (usize, usize) {
        (self.explored, self.order.len())
    }

    /// Explores until the time is up; returns whether everything is explored.
    pub fn advance(&mut self, until: Instant, max_states: usize, max_bytes: usize) -> Result<bool, IndexError> {
        while self.explored < self.order.len() {
            let (states, order, arrows, finals) =
                (&mut self.states, &mut self.order, &mut self.arrows, &mut self.finals);
            let explored = &mut self.explored;
            self.layout.with(&mut self.stacks, |run| {
                // After these the deadline is checked.
                for _ in 0..FEW {
                    let Some(&here) = order.get(*explored) else { break };
                    finals.push(u32::from(run.stacks.has_bottom(here)));
                    for byte in run.possible_bytes(here)?.iter() {
                        let next = run.step(here, byte)?;
                        if next != SetId::EMPTY {
                            let fresh = states.len() as u32;
                            let head = *states.entry(next).or_insert(fresh);
                            if head == fresh {
                                order.push(next);
                            }
                            arrows.push(Arrow { tail: *explored as u32, label: u32::from(byte), head });
                        }
                    }
                    *explored += 1;
                }
                Ok(())
            })?;
            if self.order.len() > max_states {
                return Err(IndexError::TooManyStates(max_states));
            }
            if self.arrows.len() * size_of::<Arrow>() > max_bytes {
                return Err(IndexError::TooLarge(max_bytes));
            }
            if Instant::now() >= until {
                break;
            }
        }
        Ok(self.explored == self.order.len())
    }

    /// The minimal automaton. Its states are numbered in the order of a breadth-first search by ascending bytes.
    pub fn minimal(self) -> ByteAutomaton {
        let class_of = classes(&self.finals, &self.arrows);
        let mut example: FxHashMap<u32, u32> = FxHashMap::default();
        for (state, &class) in class_of.iter().enumerate() {
            example.entry(class).or_insert(state as u32);
        }
        // The arrows are sorted by their tails, and the arrows of a tail by byte.
        let mut starts = vec![0usize; self.finals.len() + 1];
        for arrow in &self.arrows {
            starts[arrow.tail as usize + 1] += 1;
        }
        for state in 0..self.finals.len() {
            starts[state + 1] += starts[state];
        }
        let mut number: FxHashMap<u32, u32> = FxHashMap::default();
        number.insert(class_of[0], 0);
        let mut order = vec![class_of[0]];
        let mut columns = [0u8; 256];
        let mut width = 1;
        let mut done = 0;
        let mut finals = Vec::new();
        let mut kept: Vec<Vec<(u8, u32)>> = Vec::new();
        while let Some(&class) = order.get(done) {
            let state = example[&class] as usize;
            let mut row = Vec::new();
            for arrow in &self.arrows[starts[state]..starts[state + 1]] {
                let head = class_of[arrow.head as usize];
                let fresh = number.len() as u32;
                let next = *number.entry(head).or_insert(fresh);
                if next == fresh {
                    order.push(head);
                }
                row.push((arrow.label as u8, next));
            }
            let mut full = [NOWHERE; 256];
            row.iter().for_each(|&(byte, next)| full[usize::from(byte)] = next);
            refine(&mut columns, &mut width, &full);
            finals.push(self.finals[state] == 1);
            kept.push(row);
            done += 1;
        }
        let mut table = vec![NOWHERE; kept.len() * width];
        for (state, row) in kept.iter().enumerate() {
            for &(byte, next) in row {
                table[state * width + usize::from(columns[usize::from(byte)])] = next;
            }
        }
        ByteAutomaton { columns, width, table, finals }
    }
}

/// Splits columns whose bytes lead to different states.
fn refine(columns: &mut [u8; 256], width: &mut usize, row: &[u32; 256]) {
    if *width == 256 {
        return;
    }
    let mut known: FxHashMap<(u8, u32), u8> = FxHashMap::default();
    let mut seen = [false; 256];
    for byte in 0..256 {
        let old = columns[byte];
        let is_first = !std::mem::replace(&mut seen[usize::from(old)], true);
        let column = *known.entry((old, row[byte])).or_insert_with(|| {
            if is_first {
                old
            } else {
                *width += 1;
                (*width - 1) as u8
            }
        });
        columns[byte] = column;
    }
}
