//! How long infinitely many values certainly remain: which tokens cannot leave any element with finitely many values,
//! whatever they begin with.
//!
//! A token without a closing bracket stays in the innermost object or array. In an object it can complete as many
//! further members as it has colons, and it does not touch anything around the object.

use rustc_hash::FxHashSet;

use crate::error::EngineError;
use crate::machine::layout::{ExpansionId, Frame, FrameId};
use crate::machine::object_facts::most_additional;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, SetId};

/// The number of colons that a token without closing brackets must have to leave some open element with nothing
/// infinite: 0 where nothing infinite is certain, and the maximum where something infinite is around the innermost
/// container.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Lasting(usize);

impl Lasting {
    /// Only a closing bracket ends it.
    pub const LONGEST: Lasting = Lasting(usize::MAX);

    /// Whether infinitely many values remain after these bytes.
    pub fn outlasts(self, bytes: &[u8]) -> bool {
        let colons = bytes.iter().filter(|&&byte| byte == b':').count();
        colons < self.0 && !bytes.iter().any(|byte| b"]}".contains(byte))
    }
}

/// A position on the way down a stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    set: SetId,
    /// The number of members or elements of the innermost container after which it has nothing infinite left.
    inner: usize,
    /// Whether something infinite is around that container.
    outer: bool,
    /// Whether the innermost container was passed already.
    within: bool,
}

impl Run<'_> {
    /// How long infinitely many values remain in every element around a thread.
    pub(crate) fn lasting(&mut self, thread: Entry) -> Result<Lasting, EngineError> {
        if thread == Entry::BOTTOM {
            return Ok(Lasting::LONGEST);
        }
        let own = self.machine.fork(ExpansionId(thread.head)).frame;
        if self.is_pending(own, thread.register) {
            return Ok(Lasting(0));
        }
        let inner = self.infinite_members_left(own, thread.register)?;
        let mut work = vec![Place { set: thread.below, inner, outer: false, within: self.is_container(own) }];
        let mut seen = FxHashSet::default();
        let mut least = usize::MAX;
        while let Some(place) = work.pop() {
            if !seen.insert(place) {
                continue;
            }
            for index in 0..self.stacks.entries(place.set).len() {
                let frame = self.stacks.entries(place.set)[index];
                if frame == Entry::BOTTOM {
                    continue;
                }
                let (id, set) = (FrameId(frame.head), frame.below);
                if self.is_pending(id, frame.register) {
                    least = least.min(if place.outer { usize::MAX } else { place.inner });
                    // The other elements of an array with unique elements are no part of the current one.
                    work.push(Place { set, inner: 0, outer: false, within: true });
                } else if !self.is_container(id) {
                    work.push(Place { set, ..place });
                } else if place.within {
                    let outer = place.outer || self.is_frame_infinite(id, frame.register)?;
                    work.push(Place { set, outer, ..place });
                } else {
                    let inner = self.infinite_members_left(id, frame.register)?;
                    work.push(Place { set, inner, within: true, ..place });
                }
            }
        }
        Ok(Lasting(least))
    }

    /// Whether a frame is within an object or an array, whose next part comes after a comma.
    fn is_container(&self, frame: FrameId) -> bool {
        let frame = self.machine.frame(frame);
        matches!(frame, Frame::Key(_) | Frame::AfterValue(_) | Frame::Item(_) | Frame::AfterItem(_))
    }

    /// How many members or elements of the container around a frame must be completed, in the worst case, before
    /// nothing infinite is certain to come.
    pub(crate) fn infinite_members_left(&mut self, frame: FrameId, register: u32) -> Result<usize, EngineError> {
        let grammar = self.machine.grammar().clone();
        match self.machine.frame(frame) {
            Frame::Key(id) | Frame::AfterValue(id) => {
                let (members, state) = (grammar.members(id), self.stacks.members(register));
                if members.max.is_some() || members.min > 0 {
                    return Ok(0);
                }
                if !members.additional.is_empty() && most_additional(members).is_none() {
                    return Ok(usize::MAX);
                }
                let left: Vec<(usize, _)> = self.values_left(members, state).collect();
                let mut count = 0;
                for &(_, value) in left.iter().filter(|(index, _)| *index >= members.ordered) {
                    count += usize::from(self.is_node_infinite(value, true)?);
                }
                // Ordered members may be skipped, except the last one.
                if let (0, Some(&(_, last))) = (count, left.iter().rfind(|(index, _)| *index < members.ordered)) {
                    count = usize::from(self.is_node_infinite(last, true)?);
                }
                Ok(count)
            }
            Frame::Item(id) | Frame::AfterItem(id) => {
                let items = grammar.items(id);
                if !items.contains.is_empty() || items.max.is_some() {
                    return Ok(0);
                }
                for element in items.at(items.prefix.len()) {
                    if self.is_node_infinite(element.value, true)? {
                        return Ok(usize::MAX);
                    }
                }
                Ok(0)
            }
            _ => Ok(0),
        }
    }
}
