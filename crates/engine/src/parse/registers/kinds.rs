//! Which kind of register each frame has.

use std::convert::Infallible;

use stencilm_grammar::Node;

use crate::machine::expansion::Expansion;
use crate::machine::frame::{Frame, FrameId, Phase, Register};
use crate::machine::layout::Machine;
use crate::parse::registers::array::ArrayRegister;
use crate::parse::registers::count::CountRegister;
use crate::parse::registers::mark::MarkRegister;
use crate::parse::registers::meaning::Meaning;
use crate::parse::registers::names::NamesRegister;
use crate::parse::registers::object::ObjectRegister;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, Stacks};

/// Calls something with the [`Meaning`] of a frame's register.
macro_rules! with_meaning {
    ($machine:expr, $frame:expr, $meaning:ident => $do:expr) => {
        match $machine.frame($frame) {
            Frame::Node(node) => match *$machine.grammar().node(node) {
                Node::Repeat { body, min, max } => {
                    let $meaning = CountRegister { body, min, max };
                    $do
                }
                _ => {
                    let $meaning = NoRegister;
                    $do
                }
            },
            frame @ (Frame::Key(members) | Frame::AfterValue(members)) => {
                let $meaning = ObjectRegister { members, before_key: matches!(frame, Frame::Key(_)) };
                $do
            }
            frame @ (Frame::Item(items) | Frame::AfterItem(items)) => {
                let $meaning = ArrayRegister { items, before_element: matches!(frame, Frame::Item(_)) };
                $do
            }
            Frame::Text | Frame::End(_) => {
                let $meaning = MarkRegister;
                $do
            }
            Frame::Names => {
                let $meaning = NamesRegister;
                $do
            }
            Frame::Rest { .. }
            | Frame::Lexeme(_)
            | Frame::Reference { .. }
            | Frame::Left { .. }
            | Frame::Member { .. }
            | Frame::WithWhitespace { .. } => {
                let $meaning = NoRegister;
                $do
            }
        }
    };
}

/// The register of frames that remember nothing.
#[derive(Clone, Copy)]
struct NoRegister;

impl Meaning for NoRegister {
    type Change = Infallible;

    fn changed(_: &mut Run<'_>, change: Infallible, _: &Expansion, _: Entry) -> Option<u32> {
        match change {}
    }

    fn describe(self, _: &Machine, _: &Stacks, register: u32, _: u32, description: &mut Vec<u64>) {
        description.push(u64::from(register));
    }
}

impl Run<'_> {
    /// See [`Meaning::phase`].
    #[inline]
    pub(crate) fn phase(&mut self, frame: FrameId, register: u32) -> Phase {
        with_meaning!(self.machine, frame, meaning => meaning.phase(self.machine, self.stacks, register))
    }

    /// See [`Meaning::changed`].
    #[inline]
    pub(crate) fn changed(&mut self, register: Register, expansion: &Expansion, thread: Entry) -> Option<u32> {
        match register {
            Register::Value(value) => Some(value),
            Register::Same => Some(thread.register),
            Register::Count(change) => CountRegister::changed(self, change, expansion, thread),
            Register::Object(change) => ObjectRegister::changed(self, change, expansion, thread),
            Register::Array(change) => ArrayRegister::changed(self, change, expansion, thread),
            Register::Mark(change) => MarkRegister::changed(self, change, expansion, thread),
        }
    }

    /// See [`Meaning::read`].
    pub(crate) fn register_after(&mut self, expansion: &Expansion, register: u32, byte: u8) -> u32 {
        with_meaning!(self.machine, expansion.frame, meaning => meaning.read(self, expansion, register, byte))
    }

    /// See [`Meaning::ended`].
    pub(crate) fn ended(&mut self, frame: Entry) -> [Option<Entry>; 2] {
        with_meaning!(self.machine, FrameId(frame.head), meaning => meaning.ended(self, frame.register))
            .map(|register| register.map(|register| Entry { register, ..frame }))
    }
}

/// See [`Meaning::describe`].
pub(crate) fn describe(
    machine: &Machine,
    stacks: &Stacks,
    entry: (FrameId, u32),
    horizon: u32,
    description: &mut Vec<u64>,
) {
    let (frame, register) = entry;
    with_meaning!(machine, frame, meaning => meaning.describe(machine, stacks, register, horizon, description));
}
