//! A grammar as a pushdown machine, laid out lazily: which lexemes may start at a frame, and what is left behind each.
//!
//! A **frame** is a place in the grammar that waits on a stack. Starting a frame gives a **fork**: one automaton over
//! all lexemes that may come first, and for each lexeme the **continuations**, frames to push when it has matched. Every
//! lexeme of a fork reads at least one byte; what may be empty is decided beforehand. Counts and the members of an
//! object seen so far are not part of the machine but *registers* beside the frame, so that a list of a billion items
//! has three forks.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_grammar::{Grammar, Members, MembersId, Node, NodeId};
use stencilm_regex::{ExprId, Tag};

use crate::error::EngineError;
use crate::lexicon::{DfaId, Lexicon};

/// A place in the grammar that can wait on a stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Frame {
    Node(NodeId),
    /// The parts of a sequence from this one on.
    Rest {
        node: NodeId,
        from: u32,
    },
    /// A key of an object comes next.
    Key(MembersId),
    /// A colon and the value of a member come next.
    Member {
        members: MembersId,
        value: NodeId,
    },
    /// A comma or the closing brace of an object comes next.
    AfterValue(MembersId),
    Lexeme(ExprId),
    /// Blanks, then another frame: one automaton reads both, so that blanks do not make a second thread. The expression
    /// is one of the lexicon's.
    Spaced {
        blanks: ExprId,
        then: FrameId,
    },
}

/// What of a register decides which lexemes may come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// The frame has no register.
    Plain,
    /// A repetition: whether it may end here, and whether another round may start.
    Repeat {
        /// Enough rounds are done.
        may_end: bool,
        /// Not all rounds are done.
        may_go_on: bool,
    },
    /// An object: see [`crate::stacks::MembersState`].
    Members {
        /// The first known member that may still come.
        next: u32,
        /// The known members seen.
        known: u32,
    },
}

/// How a pushed frame gets its register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Register {
    /// This value.
    Value(u32),
    /// The register of the fork's own frame, as it is.
    Same,
    /// One more than that of the fork's own frame; not above the limit, from which on counts make no difference.
    CountUp {
        /// The greatest count worth telling apart.
        limit: u32,
    },
    /// The object has now seen this known member.
    Known(u32),
    /// The object has now seen the key just written.
    Free,
}

/// A frame as other parts of the engine see it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FrameId(pub u32);

/// A fork of one [`Machine`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ForkId(pub u32);

/// Frames to push, the bottom one first.
pub type Continuation = Box<[(FrameId, Register)]>;

/// The lexemes that may come first at a frame.
pub struct Fork {
    /// All of them in one automaton.
    pub dfa: DfaId,
    /// What follows a lexeme, by its tag.
    pub continuations: Vec<Vec<Continuation>>,
    /// Whether the frame may also match nothing.
    pub nullable: bool,
    /// The tag of the lexeme whose text must be remembered: a free key of an object.
    pub free_tag: Option<Tag>,
    /// The tag of the names that a free key must not have.
    pub taken_tag: Option<Tag>,
    /// The object whose key comes here.
    pub members: Option<MembersId>,
    /// How many known members the object of a key has; else 0.
    pub known_count: u32,
    /// Whether the members of that object come in any order.
    pub any_order: bool,
    /// The frame that it starts.
    pub frame: FrameId,
}

/// The lazily laid out machine of one grammar.
pub struct Machine {
    grammar: Arc<Grammar>,
    nullable: Vec<bool>,
    frames: Vec<Frame>,
    frame_index: FxHashMap<Frame, FrameId>,
    forks: Vec<Arc<Fork>>,
    fork_index: FxHashMap<(FrameId, Phase), ForkId>,
    known_sets: Vec<Box<[u64]>>,
    known_index: FxHashMap<Box<[u64]>, u32>,
    lexemes: FxHashMap<ExprId, ExprId>,
}

/// So many frames may be pushed before the first byte; a grammar that needs more is left-recursive.
const MAX_CONTINUATION: usize = 5_000;

impl Machine {
    /// The machine of a grammar, with nothing laid out yet but its root, which is frame 0.
    pub fn new(grammar: Arc<Grammar>) -> Machine {
        let nullable = grammar.nullable_nodes();
        let mut machine = Machine {
            nullable,
            frames: Vec::new(),
            frame_index: FxHashMap::default(),
            forks: Vec::new(),
            fork_index: FxHashMap::default(),
            known_sets: vec![Box::default()],
            known_index: FxHashMap::from_iter([(Box::default(), 0)]),
            lexemes: FxHashMap::default(),
            grammar,
        };
        let root = Frame::Node(machine.grammar.root());
        machine.frame_id(root);
        machine
    }

    /// The frame that every text starts from.
    pub const ROOT: FrameId = FrameId(0);

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let forks: usize = self
            .forks
            .iter()
            .map(|fork| 96 + fork.continuations.iter().map(|c| 24 + c.len() * 40).sum::<usize>())
            .sum();
        self.nullable.len() + self.frames.len() * 48 + forks + self.fork_index.len() * 32 + self.lexemes.len() * 16
    }

    /// A fork.
    #[inline]
    pub fn fork(&self, id: ForkId) -> &Arc<Fork> {
        &self.forks[id.0 as usize]
    }

    /// The frame behind the blanks, where it begins with some.
    fn unspaced(&self, frame: FrameId) -> FrameId {
        match self.frames[frame.0 as usize] {
            Frame::Spaced { then, .. } => then,
            _ => frame,
        }
    }

    /// What a register says at this frame. `members` looks an object's register up.
    pub fn phase(&self, frame: FrameId, register: u32, members: impl Fn(u32) -> (u32, u32)) -> Phase {
        match self.frames[self.unspaced(frame).0 as usize] {
            Frame::Node(node) => match *self.grammar.node(node) {
                Node::Repeat { body, min, max } => Phase::Repeat {
                    may_end: register >= min || self.nullable[body.0 as usize],
                    may_go_on: max.is_none_or(|max| register < max),
                },
                _ => Phase::Plain,
            },
            Frame::Key(_) | Frame::AfterValue(_) => {
                let (next, known) = members(register);
                Phase::Members { next, known }
            }
            Frame::Rest { .. } | Frame::Lexeme(_) | Frame::Member { .. } | Frame::Spaced { .. } => Phase::Plain,
        }
    }

    /// Whether a free key of the object must not have this value.
    pub fn is_taken(&self, members: MembersId, key: &[u8]) -> bool {
        let free = self.grammar.members(members).free.as_ref();
        free.is_some_and(|free| free.taken.binary_search_by(|name| name.as_bytes().cmp(key)).is_ok())
    }

    /// Whether the frame's register is a [`crate::stacks::MembersState`], not a count.
    pub fn remembers_members(&self, frame: FrameId) -> bool {
        matches!(self.frames[self.unspaced(frame).0 as usize], Frame::Key(_) | Frame::AfterValue(_))
    }

    /// A count that no token of at most `horizon` bytes can tell from this one: each round reads at least one byte.
    pub fn saturated_count(&self, frame: FrameId, count: u32, horizon: u32) -> u32 {
        let Frame::Node(node) = self.frames[self.unspaced(frame).0 as usize] else { return count };
        let Node::Repeat { min, max, .. } = *self.grammar.node(node) else { return count };
        let far = horizon.saturating_add(1);
        if min.saturating_sub(count) > far {
            // Neither bound is near: the minimum is not, and the maximum is no smaller.
            min - far
        } else if count > min && max.is_none_or(|max| max - count > far) {
            min
        } else {
            count
        }
    }

    /// The known members of `set` and one more.
    pub fn known_with(&mut self, set: u32, member: u32) -> u32 {
        let mut words = self.known_sets[set as usize].to_vec();
        let word = member as usize / 64;
        words.resize(words.len().max(word + 1), 0);
        words[word] |= 1 << (member % 64);
        if let Some(&known) = self.known_index.get(&words[..]) {
            return known;
        }
        let id = self.known_sets.len() as u32;
        self.known_sets.push(words.clone().into());
        self.known_index.insert(words.into(), id);
        id
    }

    fn known_contains(&self, set: u32, member: usize) -> bool {
        self.known_sets[set as usize].get(member / 64).is_some_and(|word| word & (1 << (member % 64)) != 0)
    }

    fn frame_id(&mut self, frame: Frame) -> FrameId {
        let mut frame = frame;
        // Places that are only another name for a node: the last part of a sequence, a rule.
        loop {
            frame = match frame {
                Frame::Rest { node, from } => match self.grammar.node(node) {
                    Node::Sequence(parts) if from as usize + 1 == parts.len() => Frame::Node(parts[from as usize]),
                    _ => break,
                },
                Frame::Node(node) => match self.grammar.node(node) {
                    Node::Rule(rule) => Frame::Node(self.grammar.rule(*rule).body),
                    Node::Capture { body, .. } => Frame::Node(*body),
                    Node::Lexeme(expr) => Frame::Lexeme(*expr),
                    _ => break,
                },
                _ => break,
            };
        }
        if let Some(&known) = self.frame_index.get(&frame) {
            return known;
        }
        let id = FrameId(self.frames.len() as u32);
        self.frames.push(frame);
        self.frame_index.insert(frame, id);
        id
    }

    /// The fork of a frame in a phase.
    ///
    /// # Errors
    /// [`EngineError::LeftRecursion`] for a frame that needs itself before its first byte, and limits.
    pub fn fork_of(&mut self, lexicon: &mut Lexicon, frame: FrameId, phase: Phase) -> Result<ForkId, EngineError> {
        if let Some(&known) = self.fork_index.get(&(frame, phase)) {
            return Ok(known);
        }
        let fork = self.lay_out(lexicon, frame, phase)?;
        let id = ForkId(self.forks.len() as u32);
        self.forks.push(Arc::new(fork));
        self.fork_index.insert((frame, phase), id);
        Ok(id)
    }

    fn lay_out(&mut self, lexicon: &mut Lexicon, frame: FrameId, phase: Phase) -> Result<Fork, EngineError> {
        let mut search = Search::default();
        let mut fork = Fork {
            dfa: DfaId(0),
            continuations: Vec::new(),
            nullable: false,
            free_tag: None,
            taken_tag: None,
            members: None,
            known_count: 0,
            any_order: false,
            frame,
        };
        let (blanks, frame) = match self.frames[frame.0 as usize] {
            Frame::Spaced { blanks, then } => (Some(blanks), then),
            _ => (None, frame),
        };
        let (mut free_key, mut taken_keys) = (None, None);
        match (self.frames[frame.0 as usize], phase) {
            (Frame::Node(node), Phase::Repeat { may_end, may_go_on }) => {
                fork.nullable = may_end;
                let Node::Repeat { body, min, max } = *self.grammar.node(node) else {
                    unreachable!("only a repetition has this phase");
                };
                if may_go_on {
                    let register = Register::CountUp { limit: max.unwrap_or(min) };
                    search.add(Frame::Node(body), vec![(frame, register)]);
                }
            }
            (Frame::Key(id), Phase::Members { next, known }) => {
                let grammar = self.grammar.clone();
                let members = grammar.members(id);
                fork.known_count = members.known.len() as u32;
                fork.any_order = members.any_order;
                fork.members = Some(id);
                let after = self.frame_id(Frame::AfterValue(id));
                for index in self.possible_members(members, next, known) {
                    let known = &members.known[index];
                    let member = self.frame_id(Frame::Member { members: id, value: known.value });
                    let register = Register::Known(index as u32);
                    search.cases.push((known.key, vec![(after, register), (member, Register::Value(0))]));
                }
                if let Some(free) = members.free.as_ref().filter(|_| self.free_is_possible(members, next)) {
                    let member = self.frame_id(Frame::Member { members: id, value: free.value });
                    free_key = Some(free.key);
                    search.cases.push((free.key, vec![(after, Register::Free), (member, Register::Value(0))]));
                    taken_keys = Some(free.taken_keys).filter(|&keys| keys != ExprId::NOTHING);
                }
            }
            (Frame::Member { members, value }, _) => {
                let value = self.frame_id(Frame::Node(value));
                let colon = self.grammar.members(members).surface.colon;
                search.cases.push((colon, vec![(value, Register::Value(0))]));
            }
            (Frame::AfterValue(id), Phase::Members { next, known }) => {
                let grammar = self.grammar.clone();
                let members = grammar.members(id);
                let more = !self.possible_members(members, next, known).is_empty()
                    || (members.free.is_some() && self.free_is_possible(members, next));
                if more {
                    let key = self.frame_id(Frame::Key(id));
                    search.cases.push((members.surface.item, vec![(key, Register::Same)]));
                }
                let missing = members.known.iter().enumerate().any(|(index, member)| {
                    let seen =
                        if members.any_order { self.known_contains(known, index) } else { index < next as usize };
                    member.required && !seen
                });
                if !missing {
                    search.cases.push((members.surface.close, Vec::new()));
                }
            }
            (place, _) => {
                fork.nullable = self.is_nullable(place);
                search.add(place, Vec::new());
            }
        }
        self.first_lexemes(&mut search)?;
        let mut exprs: Vec<ExprId> = Vec::new();
        let mut tags: FxHashMap<ExprId, usize> = FxHashMap::default();
        for (lexeme, mut continuation) in search.cases {
            let mut expr = self.lexeme(lexicon, blanks, lexeme);
            if let Some((top, _)) = continuation.last_mut()
                && self.takes_blanks(*top)
                && let Some((head, blanks)) = lexicon.split_blanks(expr)
            {
                expr = head;
                *top = self.frame_id(Frame::Spaced { blanks, then: *top });
            }
            let tag = *tags.entry(expr).or_insert_with(|| {
                exprs.push(expr);
                fork.continuations.push(Vec::new());
                exprs.len() - 1
            });
            if free_key == Some(lexeme) {
                fork.free_tag = Some(tag as Tag);
            }
            let continuation: Continuation = continuation.into();
            if !fork.continuations[tag].contains(&continuation) {
                fork.continuations[tag].push(continuation);
            }
        }
        if let Some(keys) = taken_keys {
            // With a single known name this is that member's own lexeme, which has a tag already.
            let expr = self.lexeme(lexicon, blanks, keys);
            let tag = *tags.entry(expr).or_insert_with(|| {
                exprs.push(expr);
                fork.continuations.push(Vec::new());
                exprs.len() - 1
            });
            fork.taken_tag = Some(tag as Tag);
        }
        fork.dfa = lexicon.dfa(&exprs)?;
        Ok(fork)
    }

    /// A lexeme of the grammar as the lexicon knows it, behind blanks where there are some.
    fn lexeme(&mut self, lexicon: &mut Lexicon, blanks: Option<ExprId>, lexeme: ExprId) -> ExprId {
        let own = *self.lexemes.entry(lexeme).or_insert_with(|| lexicon.import(self.grammar.exprs(), lexeme));
        blanks.map_or(own, |blanks| lexicon.concat(blanks, own))
    }

    /// Whether blanks before the frame can be read by its own automaton: it never matches nothing.
    fn takes_blanks(&self, frame: FrameId) -> bool {
        match self.frames[frame.0 as usize] {
            Frame::Node(node) if matches!(self.grammar.node(node), Node::Repeat { .. }) => false,
            Frame::Spaced { .. } => false,
            place => !self.is_nullable(place),
        }
    }

    fn possible_members(&self, members: &Members, next: u32, known: u32) -> Vec<usize> {
        if members.any_order {
            return (0..members.known.len()).filter(|&member| !self.known_contains(known, member)).collect();
        }
        let from = next as usize;
        let required = members.known[from..].iter().position(|member| member.required);
        let to = required.map_or(members.known.len(), |offset| from + offset + 1);
        (from..to).collect()
    }

    fn free_is_possible(&self, members: &Members, next: u32) -> bool {
        members.any_order || members.known[next as usize..].iter().all(|member| !member.required)
    }

    fn is_nullable(&self, frame: Frame) -> bool {
        match frame {
            Frame::Node(node) => self.nullable[node.0 as usize],
            Frame::Rest { node, from } => match self.grammar.node(node) {
                Node::Sequence(parts) => parts[from as usize..].iter().all(|part| self.nullable[part.0 as usize]),
                _ => unreachable!("only a sequence has a rest"),
            },
            Frame::Lexeme(expr) => self.grammar.exprs().is_nullable(expr),
            Frame::Key(_) | Frame::Member { .. } | Frame::AfterValue(_) => false,
            Frame::Spaced { .. } => unreachable!("blanks are put before a frame when it is pushed, not before"),
        }
    }

    /// Follows every way to a first lexeme that reads at least one byte.
    fn first_lexemes(&mut self, search: &mut Search) -> Result<(), EngineError> {
        let grammar = self.grammar.clone();
        while let Some((place, continuation)) = search.work.pop() {
            if continuation.len() > MAX_CONTINUATION {
                return Err(EngineError::LeftRecursion);
            }
            match place {
                Frame::Lexeme(expr) => search.cases.push((expr, continuation)),
                Frame::Rest { node, from } => {
                    let Node::Sequence(parts) = grammar.node(node) else {
                        unreachable!("only a sequence has a rest");
                    };
                    let first = parts[from as usize];
                    let mut inner = continuation.clone();
                    if (from as usize) + 1 < parts.len() {
                        let rest = Frame::Rest { node, from: from + 1 };
                        if self.nullable[first.0 as usize] {
                            search.add(rest, continuation);
                        }
                        let rest = self.frame_id(rest);
                        inner.push((rest, Register::Value(0)));
                    }
                    search.add(Frame::Node(first), inner);
                }
                Frame::Node(node) => match grammar.node(node) {
                    Node::Lexeme(expr) => search.cases.push((*expr, continuation)),
                    Node::Sequence(parts) if parts.is_empty() => {}
                    Node::Sequence(_) => search.add(Frame::Rest { node, from: 0 }, continuation),
                    Node::Choice(parts) => {
                        for &part in parts.iter().rev() {
                            search.add(Frame::Node(part), continuation.clone());
                        }
                    }
                    Node::Repeat { max: Some(0), .. } => {}
                    Node::Repeat { body, min, max } => {
                        let mut inner = continuation;
                        let count = 1.min(max.unwrap_or(*min));
                        inner.push((self.frame_id(place), Register::Value(count)));
                        search.add(Frame::Node(*body), inner);
                    }
                    Node::Rule(rule) => search.add(Frame::Node(grammar.rule(*rule).body), continuation),
                    Node::Capture { body, .. } => search.add(Frame::Node(*body), continuation),
                    Node::Token(_) => return Err(EngineError::TokenNode),
                    Node::Members(id) => {
                        let members = grammar.members(*id);
                        let surface = members.surface;
                        if !members.known.iter().any(|member| member.required) {
                            search.cases.push((surface.empty, continuation.clone()));
                        }
                        if !members.known.is_empty() || members.free.is_some() {
                            let mut inner = continuation;
                            inner.push((self.frame_id(Frame::Key(*id)), Register::Value(0)));
                            search.cases.push((surface.open, inner));
                        }
                    }
                },
                Frame::Key(_) | Frame::Member { .. } | Frame::AfterValue(_) | Frame::Spaced { .. } => {
                    unreachable!("an object's inside and a pushed frame are never first places")
                }
            }
        }
        Ok(())
    }
}

/// Places still to look at, each with the frames that follow it, and the lexemes found.
#[derive(Default)]
struct Search {
    work: Vec<(Frame, Vec<(FrameId, Register)>)>,
    seen: FxHashSet<(Frame, Vec<(FrameId, Register)>)>,
    cases: Vec<(ExprId, Vec<(FrameId, Register)>)>,
}

impl Search {
    fn add(&mut self, frame: Frame, continuation: Vec<(FrameId, Register)>) {
        if self.seen.insert((frame, continuation.clone())) {
            self.work.push((frame, continuation));
        }
    }
}
