//! The texts of named parts: the accepted text is read once more, this time recording where each part begins and ends.
//!
//! Only the parts that contain a capture are parsed here, by a chart (Earley 1970; Scott & Johnstone 2010 for the order
//! of work). It records which nodes are complete over which stretch of the text, and which are still open at its end.
//! Everything else is a leaf, which the machine reads. Then one parse is derived from the root. If there are several,
//! the first alternative is taken, and the end of a sequence is as short as possible; but a node that may still
//! continue counts as open.

use rustc_hash::FxHashMap;
use stencilm_grammar::{Grammar, Mark, Node, NodeId};
use stencilm_support::WORK;

use crate::error::{EngineError, MatcherError};
use crate::machine::capturing::parts;
use crate::machine::layout::Frame;
use crate::machine::left_corner::LeftGraph;
use crate::matcher::GrammarMatcher;
use crate::parse::stepper::Run;
use crate::state::record::Record;
use crate::state::stacks::{Entry, SetId};

impl GrammarMatcher {
    /// The texts of the complete parts that the grammar names, in the order of their beginnings, outer parts first. A
    /// name occurs as often as its part does. If the text can be parsed in several ways, the first alternative is
    /// taken, and the end of a sequence is as short as possible. A special token adds nothing to a text.
    ///
    /// They are computed on demand, in time that grows with the text; nothing is changed.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when a limit is reached.
    pub fn get_captures(&self) -> Result<Vec<(String, Vec<u8>)>, MatcherError> {
        let Some(record) = self.record() else { return Ok(Vec::new()) };
        let (grammar, capturing) = (self.compiled().grammar(), self.compiled().capturing());
        self.reread(|run| captures(run, grammar, capturing, record))
    }
}

/// A node that has begun: where it began, and how many of its parts or rounds are complete. For a choice, a rule or a
/// capture that number stays 0 until the node is complete.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Item {
    node: NodeId,
    done: u32,
    from: u32,
}

/// A node that is complete between two positions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Stretch {
    node: NodeId,
    from: u32,
    to: u32,
}

/// A step in deriving one parse from the root.
enum Task {
    /// Parse a node over a stretch.
    Complete(NodeId, u32, u32),
    /// Parse a node within which the text ends.
    Open(NodeId, u32),
}

struct Chart<'a, 'r> {
    run: &'a mut Run<'r>,
    grammar: &'a Grammar,
    capturing: &'a [bool],
    record: &'a Record,
    end: u32,
    work: Vec<(Item, u32)>,
    /// When an item was first reached at a position; see `clock`.
    reached: FxHashMap<(Item, u32), u32>,
    /// For a node that begins at a position: the other positions at which some of its parts are complete, and how many.
    begun: FxHashMap<(NodeId, u32), Vec<(u32, u32)>>,
    /// The items that wait for a node that begins at a position.
    waiting: FxHashMap<(NodeId, u32), Vec<Item>>,
    /// The ends of a node that begins at a position.
    ends: FxHashMap<(NodeId, u32), Vec<u32>>,
    /// The beginnings of a node that ends at a position.
    starts: FxHashMap<(NodeId, u32), Vec<u32>>,
    /// When a stretch was first found to be complete.
    order: FxHashMap<Stretch, u32>,
    /// The nodes within which the text ends, by their beginnings: the earliest beginning of the leaf within which it
    /// ends, and the order in which they were found.
    open: FxHashMap<(NodeId, u32), (u32, u32)>,
    /// The leaves within which the text ends.
    open_leaves: Vec<(u32, NodeId)>,
    open_work: Vec<(NodeId, u32)>,
    /// Counts discoveries. Each follows from earlier ones, so a derivation that only goes back in time ends.
    clock: u32,
    steps: usize,
}

/// The complete captures of a text, in the order of their beginnings, outer ones first.
pub(crate) fn captures(
    run: &mut Run<'_>,
    grammar: &Grammar,
    capturing: &[bool],
    record: &Record,
) -> Result<Vec<(String, Vec<u8>)>, EngineError> {
    if !capturing.get(grammar.root().0 as usize).is_some_and(|&root| root) {
        return Ok(Vec::new());
    }
    let mut chart = Chart {
        run,
        grammar,
        capturing,
        record,
        end: record.units.len() as u32,
        work: Vec::new(),
        reached: FxHashMap::default(),
        begun: FxHashMap::default(),
        waiting: FxHashMap::default(),
        ends: FxHashMap::default(),
        starts: FxHashMap::default(),
        order: FxHashMap::default(),
        open: FxHashMap::default(),
        open_leaves: Vec::new(),
        open_work: Vec::new(),
        clock: 0,
        steps: 0,
    };
    chart.fill()?;
    let found = chart.read()?;
    Ok(found.into_iter().map(|(name, from, to)| (name.to_string(), record.bytes(from, to))).collect())
}

impl<'a> Chart<'a, '_> {
    fn spend(&mut self, steps: usize) -> Result<(), EngineError> {
        self.steps += steps;
        if self.steps > WORK { Err(EngineError::CapturesTooCostly(WORK)) } else { Ok(()) }
    }

    /// Finds all stretches over which nodes are complete, and all nodes within which the text ends.
    fn fill(&mut self) -> Result<(), EngineError> {
        let mut found = Vec::new();
        self.begin(self.grammar.root(), 0, &mut found)?;
        while let Some((item, at)) = self.work.pop() {
            self.spend(1)?;
            for child in self.wanted(item) {
                self.waiting.entry((child, at)).or_default().push(item);
                match self.ends.get(&(child, at)).cloned() {
                    Some(known) => known.into_iter().for_each(|to| self.advance(item, at, to, &mut found)),
                    None => self.begin(child, at, &mut found)?,
                }
            }
            while let Some(stretch) = found.pop() {
                let Stretch { node, from, to } = stretch;
                self.spend(1)?;
                if self.order.contains_key(&stretch) {
                    continue;
                }
                self.clock += 1;
                self.order.insert(stretch, self.clock);
                self.ends.entry((node, from)).or_default().push(to);
                self.starts.entry((node, to)).or_default().push(from);
                for waiting in self.waiting.get(&(node, from)).cloned().unwrap_or_default() {
                    self.spend(1)?;
                    self.advance(waiting, from, to, &mut found);
                }
            }
        }
        // Leaves that began earlier come first: they are still being read, so nothing after them has begun.
        let mut leaves = std::mem::take(&mut self.open_leaves);
        leaves.sort_unstable();
        for (at, leaf) in leaves {
            self.mark_open(leaf, at, at);
            while let Some((node, from)) = self.open_work.pop() {
                for item in self.waiting.get(&(node, from)).cloned().unwrap_or_default() {
                    self.spend(1)?;
                    self.mark_open(item.node, item.from, at);
                }
            }
        }
        Ok(())
    }

    fn mark_open(&mut self, node: NodeId, from: u32, leaf: u32) {
        let next = self.open.len() as u32;
        if let std::collections::hash_map::Entry::Vacant(slot) = self.open.entry((node, from)) {
            slot.insert((leaf, next));
            self.open_work.push((node, from));
        }
    }

    /// Begins a node at a position, unless it has begun there already.
    fn begin(&mut self, node: NodeId, at: u32, found: &mut Vec<Stretch>) -> Result<(), EngineError> {
        if self.ends.contains_key(&(node, at)) {
            return Ok(());
        }
        self.ends.insert((node, at), Vec::new());
        if !self.capturing[node.0 as usize] {
            let (ends, alive) = self.scan(node, at)?;
            found.extend(ends.into_iter().map(|to| Stretch { node, from: at, to }));
            if alive {
                self.open_leaves.push((at, node));
            }
            return Ok(());
        }
        let item = Item { node, done: 0, from: at };
        self.reach(item, at);
        match self.grammar.node(node) {
            Node::Sequence(parts) if parts.is_empty() => found.push(Stretch { node, from: at, to: at }),
            Node::Repeat { body, min, .. } if *min == 0 || self.is_nullable(*body) => {
                found.push(Stretch { node, from: at, to: at })
            }
            _ => {}
        }
        Ok(())
    }

    fn reach(&mut self, item: Item, at: u32) {
        if !self.reached.contains_key(&(item, at)) {
            self.clock += 1;
            self.reached.insert((item, at), self.clock);
            self.begun.entry((item.node, item.from)).or_default().push((at, item.done));
            self.work.push((item, at));
        }
    }

    fn is_nullable(&self, node: NodeId) -> bool {
        self.run.machine.left.is_nullable(node)
    }

    /// The nodes that may come next within a begun node.
    fn wanted(&self, item: Item) -> Vec<NodeId> {
        let node = self.grammar.node(item.node);
        match node {
            Node::Sequence(parts) => parts.get(item.done as usize).copied().into_iter().collect(),
            Node::Repeat { max: Some(max), .. } if item.done >= *max => Vec::new(),
            _ => parts(self.grammar, node).collect(),
        }
    }

    /// Records that a part of a begun node is complete between two positions.
    fn advance(&mut self, item: Item, from: u32, to: u32, found: &mut Vec<Stretch>) {
        match self.grammar.node(item.node) {
            Node::Sequence(parts) => {
                let next = Item { done: item.done + 1, ..item };
                self.reach(next, to);
                if next.done as usize == parts.len() {
                    found.push(Stretch { node: item.node, from: item.from, to });
                }
            }
            // An empty round changes nothing: a body that may be empty needs no minimum count, as the next arm shows.
            Node::Repeat { .. } if from == to => {}
            Node::Repeat { body, min, max } => {
                let limit = count_limit(*min, *max);
                let next = Item { done: (item.done + 1).min(limit), ..item };
                self.reach(next, to);
                if next.done >= *min || self.is_nullable(*body) {
                    found.push(Stretch { node: item.node, from: item.from, to });
                }
            }
            _ => found.push(Stretch { node: item.node, from: item.from, to }),
        }
    }

    /// The ends of a node without captures that begins here, and whether the text may end within it.
    fn scan(&mut self, node: NodeId, at: u32) -> Result<(Vec<u32>, bool), EngineError> {
        let frame = self.run.machine.frame_id(Frame::Node(node));
        let mut configuration = self.run.initial_at(frame)?;
        let mut landing: FxHashMap<u32, SetId> = FxHashMap::default();
        let mut ends = Vec::new();
        let mut token = self.record.tokens.partition_point(|&(from, ..)| from < at);
        for position in at..=self.end {
            self.spend(1)?;
            if let Some(landed) = landing.remove(&position) {
                let mut threads = self.run.stacks.entries(configuration).to_vec();
                let machine = &*self.run.machine;
                let has_text = threads.iter().any(|&thread| machine.is_text(thread));
                let landed = self.run.stacks.entries(landed).iter().copied();
                threads.extend(landed.filter(|&thread| !has_text || !machine.is_text(thread)));
                configuration = self.run.stacks.configuration(&mut threads)?;
            }
            if self.run.stacks.has_bottom(configuration) {
                ends.push(position);
            }
            if position == self.end || (configuration == SetId::EMPTY && landing.is_empty()) {
                break;
            }
            if let Some(&(from, to, id)) = self.record.tokens.get(token)
                && from == position
            {
                token += 1;
                let next = self.run.step_token(configuration, id, None)?;
                if next != SetId::EMPTY {
                    landing.insert(to, next);
                }
            }
            configuration = match u8::try_from(self.record.units[position as usize]) {
                Ok(byte) => self.run.step(configuration, byte)?,
                Err(_) => SetId::EMPTY,
            };
            if configuration == SetId::EMPTY && landing.is_empty() {
                return Ok((ends, false));
            }
        }
        let alive = self
            .run
            .stacks
            .entries(configuration)
            .iter()
            .any(|&thread| thread != Entry::BOTTOM && !self.run.machine.is_remark(thread));
        Ok((ends, alive))
    }

    /// Whether a part may be used in parsing a node that begins at the same position. It may not if that could lead
    /// around in a circle.
    fn is_below(left: &LeftGraph, part: (NodeId, Option<&u32>), node: (NodeId, Option<&u32>)) -> bool {
        !left.in_same_cycle(part.0, node.0) || part.1 < node.1
    }

    /// Derives one parse from the root.
    fn read(&mut self) -> Result<Vec<(&'a str, u32, u32)>, EngineError> {
        let root = self.grammar.root();
        let complete = self.order.contains_key(&Stretch { node: root, from: 0, to: self.end });
        let mut tasks = vec![if complete { Task::Complete(root, 0, self.end) } else { Task::Open(root, 0) }];
        assert!(complete || self.open.contains_key(&(root, 0)), "an accepted text can be completed");
        let mut found = Vec::new();
        while let Some(task) = tasks.pop() {
            self.spend(1)?;
            match task {
                Task::Complete(node, from, to) => {
                    if !self.capturing[node.0 as usize] {
                        continue;
                    }
                    match self.grammar.node(node) {
                        Node::Marked { mark, body } => {
                            if let Mark::Capture(name) = mark {
                                found.push((&**name, from, to));
                            }
                            tasks.push(Task::Complete(*body, from, to));
                        }
                        Node::Sequence(parts) => {
                            self.read_back(Item { node, done: parts.len() as u32, from }, to, &mut tasks)?;
                        }
                        Node::Repeat { .. } => {
                            let begun = &self.begun[&(node, from)];
                            let steps = begun.len();
                            let rounds = begun.iter().filter(|&&(at, _)| at == to).map(|&(_, done)| done).max();
                            let done = rounds.expect("a complete repetition has reached some count");
                            self.spend(steps)?;
                            self.read_back(Item { node, done, from }, to, &mut tasks)?;
                        }
                        other => {
                            let own = (node, self.order.get(&Stretch { node, from, to }));
                            let part = parts(self.grammar, other).find(|&part| {
                                let known = self.order.get(&Stretch { node: part, from, to });
                                known.is_some() && Self::is_below(&self.run.machine.left, (part, known), own)
                            });
                            tasks.push(Task::Complete(part.expect("something completed the node"), from, to));
                        }
                    }
                }
                Task::Open(node, from) => {
                    if !self.capturing[node.0 as usize] {
                        continue;
                    }
                    let &(leaf, order) = self.open.get(&(node, from)).expect("only open nodes are read as open");
                    let is_open = |part: NodeId, at: u32| {
                        self.open.get(&(part, at)).is_some_and(|known| {
                            let below =
                                Self::is_below(&self.run.machine.left, (part, Some(&known.1)), (node, Some(&order)));
                            known.0 == leaf && (at > from || below)
                        })
                    };
                    match self.grammar.node(node) {
                        Node::Sequence(_) | Node::Repeat { .. } => {
                            let mut begun = self.begun[&(node, from)].clone();
                            begun.sort_unstable();
                            let found = begun.iter().find_map(|&(at, done)| {
                                let wanted = self.wanted(Item { node, done, from });
                                let part = wanted.into_iter().find(|&part| is_open(part, at))?;
                                Some((at, done, part))
                            });
                            let (at, done, part) = found.expect("something keeps the node open");
                            self.spend(begun.len())?;
                            tasks.push(Task::Open(part, at));
                            self.read_back(Item { node, done, from }, at, &mut tasks)?;
                        }
                        other => {
                            let part = parts(self.grammar, other).find(|&part| is_open(part, from));
                            tasks.push(Task::Open(part.expect("something keeps the node open"), from));
                        }
                    }
                }
            }
        }
        Ok(found)
    }

    /// Adds the tasks for the complete parts of a node up to a position. The last part is pushed first, so that the
    /// first one is parsed next.
    fn read_back(&mut self, mut item: Item, mut at: u32, tasks: &mut Vec<Task>) -> Result<(), EngineError> {
        // A node that may begin with itself could be its own part, but not one that was found earlier.
        let strict = self.run.machine.left.is_left_recursive(self.run.machine.left.resolve(item.node));
        let (is_repeat, unlimited) = match self.grammar.node(item.node) {
            Node::Repeat { max, .. } => (true, max.is_none()),
            _ => (false, false),
        };
        while item.done > 0 && (!is_repeat || at > item.from) {
            let before = Item { done: item.done - 1, ..item };
            let part = match self.grammar.node(item.node) {
                Node::Sequence(parts) => parts[before.done as usize],
                Node::Repeat { body, .. } => *body,
                _ => unreachable!("only sequences and repetitions have parts done"),
            };
            let now = self.reached[&(item, at)];
            let mut starts = self.starts.get(&(part, at)).cloned().unwrap_or_default();
            starts.sort_unstable();
            self.spend(starts.len())?;
            let found = starts.iter().rev().filter(|&&start| !is_repeat || start < at).find_map(|&start| {
                // Once the count has reached its limit, a round does not change it.
                let same = unlimited.then_some(item);
                let earlier = |time: u32| !strict || time < now;
                let fits = |before: &Item| self.reached.get(&(*before, start)).is_some_and(|&time| earlier(time));
                let before = [same, Some(before)].into_iter().flatten().find(fits)?;
                earlier(self.order[&Stretch { node: part, from: start, to: at }]).then_some((before, start))
            });
            let (before, start) = found.expect("what was reached was reached from something found before");
            tasks.push(Task::Complete(part, start, at));
            (item, at) = (before, start);
        }
        Ok(())
    }
}

/// The greatest number of rounds that makes a difference.
fn count_limit(min: u32, max: Option<u32>) -> u32 {
    max.unwrap_or(min.max(1))
}
