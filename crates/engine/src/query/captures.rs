//! The texts of named parts: the accepted text is read once more, this time with where each part begins and ends.
//!
//! Only the parts that hold a capture are followed here, by a chart (Earley 1970; Scott & Johnstone 2010 in the order
//! of work): which nodes are complete over which stretch, and which are still open at the end. Everything else is a
//! leaf, read by the machine from where it begins. Then one reading is derived from the root. If there are several, the
//! first alternative counts, and the end of a sequence takes as little as possible; but what may still go on counts as
//! open.

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
    /// The texts of the parts that the grammar names, as far as they are complete: by where they begin, outer ones first.
    /// A name comes as often as its part does. Where the text can be read in several ways, the first alternative counts,
    /// and the end of a sequence takes as little as it can. A special token adds nothing to a text.
    ///
    /// They are found on demand, in time that grows with the text; nothing is changed.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when a limit is reached.
    pub fn get_captures(&self) -> Result<Vec<(String, Vec<u8>)>, MatcherError> {
        let Some(record) = self.record() else { return Ok(Vec::new()) };
        let (grammar, capturing) = (self.compiled().grammar(), self.compiled().capturing());
        self.reread(|run| captures(run, grammar, capturing, record))
    }
}

/// A node that was begun: how many of its parts or rounds are complete, and where it began. Of a choice, a rule and a
/// capture nothing is complete before all is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Item {
    node: NodeId,
    done: u32,
    from: u32,
}

/// A node that is complete from one position to another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Stretch {
    node: NodeId,
    from: u32,
    to: u32,
}

/// One reading in the making, taken down from the root.
enum Task {
    /// A node over a stretch.
    Complete(NodeId, u32, u32),
    /// A node that the text ends in.
    Open(NodeId, u32),
}

struct Chart<'a, 'r> {
    run: &'a mut Run<'r>,
    grammar: &'a Grammar,
    capturing: &'a [bool],
    record: &'a Record,
    end: u32,
    work: Vec<(Item, u32)>,
    /// When an item was first reached at a position.
    reached: FxHashMap<(Item, u32), u32>,
    /// Where a node that begins at a position has how many parts done.
    begun: FxHashMap<(NodeId, u32), Vec<(u32, u32)>>,
    /// Who waits for a node from a position on.
    waiting: FxHashMap<(NodeId, u32), Vec<Item>>,
    /// Where a node that begins at a position may end.
    ends: FxHashMap<(NodeId, u32), Vec<u32>>,
    /// Where a node that ends at a position may begin.
    starts: FxHashMap<(NodeId, u32), Vec<u32>>,
    /// When a stretch was first found complete.
    order: FxHashMap<Stretch, u32>,
    /// Nodes that the text ends in, by where they begin: where the leaf begins that it ends in, as early as can be, and the
    /// order found.
    open: FxHashMap<(NodeId, u32), (u32, u32)>,
    /// Leaves that the text ends in.
    open_leaves: Vec<(u32, NodeId)>,
    open_work: Vec<(NodeId, u32)>,
    /// Counts what is found: everything follows from something found before.
    clock: u32,
    steps: usize,
}

/// The captures of a text that are complete, by where they begin, outer ones first.
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

    /// Finds all stretches over which nodes are complete, and all nodes that the text ends in.
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
        // A leaf that has begun earlier is still being read, so what follows it is not there yet.
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

    /// Begins a node at a position, once.
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

    /// The nodes that may come next in a node that was begun.
    fn wanted(&self, item: Item) -> Vec<NodeId> {
        let node = self.grammar.node(item.node);
        match node {
            Node::Sequence(parts) => parts.get(item.done as usize).copied().into_iter().collect(),
            Node::Repeat { max: Some(max), .. } if item.done >= *max => Vec::new(),
            _ => parts(self.grammar, node).collect(),
        }
    }

    /// A part of a begun node is complete from one position to another.
    fn advance(&mut self, item: Item, from: u32, to: u32, found: &mut Vec<Stretch>) {
        match self.grammar.node(item.node) {
            Node::Sequence(parts) => {
                let next = Item { done: item.done + 1, ..item };
                self.reach(next, to);
                if next.done as usize == parts.len() {
                    found.push(Stretch { node: item.node, from: item.from, to });
                }
            }
            // A round that reads nothing changes nothing: the count that it could make up for was waived before.
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

    /// Where a node without captures that begins here may end, and whether the text may end in it.
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

    /// Whether a part may be taken in the reading of a node that begins at the same place: not where that could lead
    /// around in a circle.
    fn is_below(left: &LeftGraph, part: (NodeId, Option<&u32>), node: (NodeId, Option<&u32>)) -> bool {
        !left.in_same_cycle(part.0, node.0) || part.1 < node.1
    }

    /// Takes one reading down from the root.
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

    /// Adds the readings of the parts that a node has done between its begin and a position, last part first, so that the
    /// first one is read next.
    fn read_back(&mut self, mut item: Item, mut at: u32, tasks: &mut Vec<Task>) -> Result<(), EngineError> {
        // A node that may begin with itself could be its own part; what was found before it cannot.
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
                // From the last count worth distinguishing on, a round leaves the count as it is.
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

/// The greatest count of rounds worth distinguishing.
fn count_limit(min: u32, max: Option<u32>) -> u32 {
    max.unwrap_or(min.max(1))
}
