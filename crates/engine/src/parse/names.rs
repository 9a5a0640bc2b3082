//! Names that a text declares: a reference matches those that were declared before it, on its own path through the
//! grammar.
//!
//! All threads of a configuration have read the same bytes, but one may have declared a name in them where another has
//! not. So each stack has its names on top, as a frame whose register is the list of names. Other frames are pushed
//! below that frame, and where a declaration ends while threads start, the list becomes one longer. A reference is a
//! separate lexeme for each set of names, the trie of their spellings, so masks, bytes and completions need not know
//! about names. The grammar tells in advance at which points any name can have been declared (`ir/names.rs` of the
//! grammar's crate).
//!
//! A mask does not know the bytes of a token that is being walked, so where a declaration ends within a token, the mask
//! treats every possible name as declared. Tokens that then begin a reference are unverified, and are read exactly.

use stencilm_grammar::NodeId;

use crate::error::EngineError;
use crate::machine::expansion::Expansion;
use crate::machine::frame::NamesId;
use crate::machine::layout::{Continuation, Frame, FrameId};
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, SetId, UNKNOWN_NAMES, UNKNOWN_TEXT};

impl Run<'_> {
    /// A stack with names on top.
    pub(crate) fn with_names(&mut self, stack: SetId) -> SetId {
        match self.machine.names.frame {
            Some(frame) => self.stacks.push(frame.0, self.names, stack),
            None => stack,
        }
    }

    /// For each list of names that a thread may have: the stack with the frames of a continuation pushed below the
    /// names.
    pub(crate) fn push_below_names(
        &mut self,
        expansion: &Expansion,
        continuation: &Continuation,
        thread: Entry,
    ) -> Result<Option<SetId>, EngineError> {
        self.stacks.look_at(thread.below);
        let tops = self.stacks.entries(thread.below).to_vec();
        self.stacks.spend(tops.len() + 1)?;
        let mut pushed = Vec::with_capacity(tops.len());
        for top in tops {
            debug_assert!(self.machine.is_names(FrameId(top.head)), "names lie on top of every stack");
            if let Some(below) = self.push_frames(expansion, continuation, Entry { below: top.below, ..thread })? {
                pushed.push(Entry { below, ..top });
            }
        }
        Ok(self.stacks.stack_of(pushed))
    }

    /// Adds the threads that start at a stack with names on top, each with the names that hold for it.
    pub(crate) fn start_with_names(&mut self, stack: SetId, threads: &mut Vec<Entry>) -> Result<(), EngineError> {
        let outer = self.names;
        let mut work: Vec<(SetId, u32)> = Vec::new();
        self.stacks.look_at(stack);
        for top in self.stacks.entries(stack).to_vec() {
            debug_assert!(self.machine.is_names(FrameId(top.head)), "names lie on top of every stack");
            work.push((top.below, top.register));
        }
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some((set, names)) = work.pop() {
            if !seen.insert((set, names)) {
                continue;
            }
            self.stacks.spend(self.stacks.entries(set).len() + 1)?;
            self.stacks.look_at(set);
            let mut frames = Vec::new();
            for frame in self.stacks.entries(set).to_vec() {
                match self.ends_compared_element(frame) {
                    true => frames.extend(self.ended(frame).into_iter().flatten()),
                    false => frames.push(frame),
                }
            }
            for frame in frames {
                if frame == Entry::BOTTOM {
                    threads.push(frame);
                    continue;
                }
                if self.machine.declares(FrameId(frame.head)).is_some() {
                    let names = self.declared(frame, names);
                    work.push((frame.below, names));
                    continue;
                }
                self.names = names;
                let phase = self.phase(FrameId(frame.head), frame.register);
                let first = self.machine.fork_of(self.lexeme_cache, FrameId(frame.head), phase)?;
                let mut next = Some(first);
                while let Some(id) = next {
                    next = self.begin(id, frame, threads);
                    if !self.machine.fork(id).opens.is_empty() {
                        self.open(id, frame, threads)?;
                    }
                }
                if self.machine.fork(first).nullable {
                    work.push((frame.below, names));
                }
            }
        }
        self.names = outer;
        Ok(())
    }

    /// The list of names after a declaration that ends here.
    fn declared(&mut self, end: Entry, names: u32) -> u32 {
        let text = self.text.filter(|_| self.is_exact() && end.register != UNKNOWN_TEXT);
        let (Some(text), false) = (text, names == UNKNOWN_NAMES) else { return UNKNOWN_NAMES };
        let Frame::End(node) = self.machine.frame(FrameId(end.head)) else { return names };
        let written = self.stacks.since(text, end.register);
        let name = self.stacks.intern_text(&written);
        // The number of the set is larger than any byte, so it also ends the name.
        let set = 256 + self.machine.set_of(node).0 as u32;
        let entry = self.stacks.append(name, set);
        if self.stacks.seen.has(names, entry) { names } else { self.stacks.seen.append(names, entry) }
    }

    /// The frame of a reference that begins here, with the current names.
    pub(crate) fn reference_here(&mut self, node: NodeId) -> FrameId {
        let names = match self.names {
            UNKNOWN_NAMES => {
                self.assumed.element = true;
                NamesId::ANY
            }
            names => {
                let set = 256 + self.machine.set_of(node).0 as u32;
                let mut listed: Vec<Box<[u8]>> = Vec::new();
                for entry in self.stacks.seen.entries(names) {
                    let mut name: Vec<u32> = self.stacks.list(entry).collect();
                    if name.first() == Some(&set) {
                        name.reverse();
                        name.pop();
                        listed.push(name.into_iter().map(|byte| byte as u8).collect());
                    }
                }
                listed.sort_unstable();
                self.machine.names.number(listed)
            }
        };
        self.machine.frame_id(Frame::Reference { node, names })
    }
}
