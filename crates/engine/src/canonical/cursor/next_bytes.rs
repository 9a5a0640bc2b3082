//! What a search has found of the configurations that it comes to: what may come there, and where each byte leads.
//!
//! Most of them are made by the search itself, so their numbers ascend from the first one that it makes: what is known of them
//! is a list. A mask comes to a few dozen, each with a byte or two.

use std::sync::Arc;

use super::by_place::Text;
use super::next::Next;
use crate::error::EngineError;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;

/// A configuration that more bytes than this were read from has a table.
const FEW_BYTES: u16 = 8;
/// In place of a number: none, or not known yet.
const NONE: u32 = u32::MAX;

/// Tokens that are read at a configuration.
#[derive(Clone)]
pub(crate) struct Listed {
    /// Each with the configuration behind it, and whether the way there is beyond the lexemes that are read where it begins.
    pub tokens: Arc<[(u32, SetId, bool)]>,
    /// Whether any way is, also one that ends within a token.
    pub some_beyond: bool,
}

/// What is known of one configuration.
struct Known {
    next: Option<Next>,
    /// The text that is forced there; `None` inside where there is none.
    forced: Option<Option<Text>>,
    /// The tokens that are read there, where they are few.
    read: Option<Option<Listed>>,
    /// The bytes that were read from there: how many, the last of them among all steps, and the table of those of many.
    num_steps: u16,
    last_step: u32,
    table: u32,
}

/// A byte that was read, where it led, and the one before it from the same configuration.
struct Step {
    byte: u8,
    next: SetId,
    before: u32,
}

/// What is known of configurations, within one operation.
#[derive(Default)]
pub(crate) struct Ahead {
    /// The first configuration that the operation may make.
    first: u32,
    /// By configuration from there on its number here.
    made: Vec<u32>,
    /// Those before, each with its number: there are few of them.
    older: Vec<(SetId, u32)>,
    known: Vec<Known>,
    steps: Vec<Step>,
    tables: Vec<[SetId; 256]>,
    num_tables: usize,
}

/// In a table: not read yet.
const UNREAD: SetId = SetId(NONE);

impl Ahead {
    /// Forgets everything, but keeps the room. Sets from this one on are not made yet.
    pub fn begin(&mut self, first: u32) {
        self.first = first;
        self.made.clear();
        self.older.clear();
        self.known.clear();
        self.steps.clear();
        self.num_tables = 0;
    }

    /// How much there is.
    pub fn len(&self) -> usize {
        self.known.len().max(self.steps.len())
    }

    fn number(&mut self, configuration: SetId) -> usize {
        let next = self.known.len() as u32;
        let number = match configuration.0.checked_sub(self.first) {
            Some(at) => {
                let at = at as usize;
                if at >= self.made.len() {
                    self.made.resize(at + 1, NONE);
                }
                if self.made[at] == NONE {
                    self.made[at] = next;
                }
                self.made[at]
            }
            None => match self.older.iter().find(|(older, _)| *older == configuration) {
                Some(&(_, known)) => known,
                None => {
                    self.older.push((configuration, next));
                    next
                }
            },
        };
        if number == next {
            let (forced, read) = (None, None);
            self.known.push(Known { next: None, forced, read, num_steps: 0, last_step: NONE, table: NONE });
        }
        number as usize
    }

    /// What may come at a configuration.
    pub fn next(&mut self, run: &mut Run<'_>, configuration: SetId) -> Result<&Next, EngineError> {
        let number = self.number(configuration);
        let known = &mut self.known[number];
        if known.next.is_none() {
            known.next = Some(run.next_of(configuration)?);
        }
        Ok(known.next.as_ref().expect("it was there or is there now"))
    }

    /// The configuration behind a byte.
    pub fn step(&mut self, run: &mut Run<'_>, configuration: SetId, byte: u8) -> Result<SetId, EngineError> {
        let number = self.number(configuration);
        let known = &self.known[number];
        if known.table != NONE {
            let next = self.tables[known.table as usize][usize::from(byte)];
            if next != UNREAD {
                return Ok(next);
            }
        } else {
            let mut at = known.last_step;
            while let Some(step) = self.steps.get(at as usize) {
                if step.byte == byte {
                    return Ok(step.next);
                }
                at = step.before;
            }
        }
        let next = run.step(configuration, byte)?;
        self.add_step(number, byte, next);
        Ok(next)
    }

    fn add_step(&mut self, number: usize, byte: u8, next: SetId) {
        let known = &mut self.known[number];
        if known.table == NONE {
            if known.num_steps < FEW_BYTES {
                let before = std::mem::replace(&mut known.last_step, self.steps.len() as u32);
                known.num_steps += 1;
                return self.steps.push(Step { byte, next, before });
            }
            match self.tables.get_mut(self.num_tables) {
                Some(table) => table.fill(UNREAD),
                None => self.tables.push([UNREAD; 256]),
            }
            known.table = self.num_tables as u32;
            self.num_tables += 1;
            let mut at = known.last_step;
            while let Some(step) = self.steps.get(at as usize) {
                self.tables[known.table as usize][usize::from(step.byte)] = step.next;
                at = step.before;
            }
        }
        self.tables[known.table as usize][usize::from(byte)] = next;
    }

    /// The text that is forced at a configuration, where it was looked for.
    pub fn forced(&mut self, configuration: SetId) -> &mut Option<Option<Text>> {
        let number = self.number(configuration);
        &mut self.known[number].forced
    }

    /// The tokens that are read at a configuration, where they are few and were looked for.
    pub fn read(&mut self, configuration: SetId) -> &mut Option<Option<Listed>> {
        let number = self.number(configuration);
        &mut self.known[number].read
    }
}
