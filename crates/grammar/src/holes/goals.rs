//! What is sought while a text is read: *goals*, each a node and the place where it must end, and where they may begin.
//!
//! A goal goes through *states*: how much of the node is read, from its last part on, and up to which place. Goals ask
//! each other, each once, from a list of work: nothing recurses.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::ExprId;
use stencilm_support::LimitExceeded;

use super::elements::{ArrayState, ArrayStates};
use super::facts::Facts;
use super::lexemes::Lexemes;
use super::members::{Member, MemberList, MemberLists, ObjectForms, Within};
use super::place::Place;
use super::representatives::Representatives;
use super::template::Template;
use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{Grammar, MembersId, Node, NodeId};

/// The greatest number of states of all goals together; each takes some sixty bytes.
const MAX_STATES: usize = 4_000_000;

/// A goal of one recogniser.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct GoalId(pub u32);

/// How much of a node has been read, from its end backwards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Step {
    /// Nothing.
    Begin,
    /// All of it.
    Done,
    /// All parts of a sequence but this many.
    Parts(u32),
    /// This many rounds of a repetition.
    Rounds(u32),
    /// The end of a truncated object, after the key of its last member. The last member is of this class.
    Last(u32),
    /// Members of an object, before the end of a value.
    AfterValue(MemberList),
    /// Members and a value of this kind, which may have begun within a hole; before the end of a colon.
    Value(MemberList, u32, Within),
    /// Members, a value and the colon before it; before the end of a key.
    Colon(MemberList, u32, Within),
    /// Members, the first one with its key.
    Key(MemberList),
    /// Elements of an array, before the end of another one.
    AfterElement(ArrayState),
    /// Elements of an array, at the beginning of the first of them.
    Element(ArrayState),
}

/// How much of a node has been read, and up to where.
pub(super) type State = (Step, Place);

/// The keys that end at a place, each with the place where it begins.
type KeyWays = Rc<[(Member, Place)]>;

pub(super) struct Goal {
    node: NodeId,
    end: u32,
    /// All states that were reached.
    pub states: FxHashSet<State>,
    pub starts: Vec<Place>,
    /// The goals that wait for this one, each with the step in which it continues where this one begins; `true` if the
    /// waiting goal was undecided.
    waiting: Vec<(GoalId, Step, bool)>,
}

/// Reads one text.
pub(super) struct Recogniser<'a> {
    pub grammar: &'a Grammar,
    pub facts: &'a Facts,
    pub lexemes: &'a mut Lexemes,
    pub template: &'a Template,
    pub objects: &'a mut ObjectForms,
    pub lists: MemberLists,
    pub representatives: Representatives,
    pub arrays: ArrayStates,
    pub goals: Vec<Goal>,
    index: FxHashMap<(NodeId, u32), GoalId>,
    lexeme_starts: FxHashMap<(ExprId, u32), Rc<[Place]>>,
    /// By object, group of members and place: the keys of the group that may end there, with the places where they
    /// begin.
    pub key_readings: FxHashMap<(MembersId, u32, u32), KeyWays>,
    pub work: Vec<(GoalId, State)>,
    states: usize,
    /// A hole, and the nodes that are undecided if that hole is in them.
    pub undecided: Option<(u32, &'a FxHashSet<NodeId>)>,
}

impl<'a> Recogniser<'a> {
    pub fn new(
        grammar: &'a Grammar,
        facts: &'a Facts,
        lexemes: &'a mut Lexemes,
        objects: &'a mut ObjectForms,
        template: &'a Template,
    ) -> Recogniser<'a> {
        Recogniser {
            grammar,
            facts,
            lexemes,
            template,
            objects,
            lists: MemberLists::default(),
            representatives: Representatives::default(),
            arrays: ArrayStates::default(),
            goals: Vec::new(),
            index: FxHashMap::default(),
            lexeme_starts: FxHashMap::default(),
            key_readings: FxHashMap::default(),
            work: Vec::new(),
            states: 0,
            undecided: None,
        }
    }

    /// A goal, if it was asked for.
    pub fn known(&self, node: NodeId, end: u32) -> Option<&Goal> {
        let goal = self.index.get(&(self.facts.base(node), end))?;
        Some(&self.goals[goal.0 as usize])
    }

    /// Where a lexeme that ends at a place may begin.
    pub fn lexeme_starts(&mut self, expr: ExprId, end: u32) -> Result<Rc<[Place]>, GrammarError> {
        if let Some(known) = self.lexeme_starts.get(&(expr, end)) {
            return Ok(known.clone());
        }
        let starts: Rc<[Place]> = self.lexemes.starts(expr, self.template, end).map_err(limit)?.into();
        self.lexeme_starts.insert((expr, end), starts.clone());
        Ok(starts)
    }

    /// Where a single token that ends at a position begins: a hole may hold any tokens, and bytes of the text are never a
    /// token.
    pub fn token_start(&self, end: u32) -> Option<Place> {
        self.template.is_hole(end).then(|| Place::new(end))
    }

    /// Continues a goal in a step wherever a node that ends at a place may begin.
    pub fn call(&mut self, goal: GoalId, step: Step, node: NodeId, at: Place) -> Result<(), GrammarError> {
        let (base, end) = (self.facts.base(node), at.position());
        let at = if self.facts.refers(node) { at.undecided() } else { at };
        if !self.template.is_hole(end) && self.facts.never_ends_with(base, self.template.before(end)) {
            return Ok(());
        }
        match self.grammar.node(base) {
            Node::Lexeme(expr) => return self.read_lexeme(goal, step, *expr, at),
            Node::Token(_) => {
                self.work.extend(self.token_start(end).map(|start| (goal, (step, start.after(at)))));
                return Ok(());
            }
            _ => {}
        }
        let asked = self.goal(base, end)?;
        let asked = &mut self.goals[asked.0 as usize];
        let waiter = (goal, step, at.is_undecided());
        asked.waiting.push(waiter);
        self.work.extend(asked.starts.iter().map(|start| (goal, (step, start.after(at)))));
        Ok(())
    }

    /// As [`Recogniser::call`], for a lexeme.
    pub fn read_lexeme(&mut self, goal: GoalId, step: Step, expr: ExprId, at: Place) -> Result<(), GrammarError> {
        let starts = self.lexeme_starts(expr, at.position())?;
        self.work.extend(starts.iter().map(|start| (goal, (step, start.after(at)))));
        Ok(())
    }

    /// Continues a goal in a step.
    pub fn go_on(&mut self, goal: GoalId, step: Step, at: Place) {
        self.work.push((goal, (step, at)));
    }

    pub fn node_of(&self, goal: GoalId) -> &'a Node {
        self.grammar.node(self.goals[goal.0 as usize].node)
    }

    /// The goal for a node that is its own base.
    pub fn goal(&mut self, node: NodeId, end: u32) -> Result<GoalId, GrammarError> {
        if let Some(&known) = self.index.get(&(node, end)) {
            return Ok(known);
        }
        let id = GoalId(self.goals.len() as u32);
        let (states, starts, waiting) = Default::default();
        self.goals.push(Goal { node, end, states, starts, waiting });
        self.index.insert((node, end), id);
        self.count()?;
        // Through the work list, because nodes may nest arbitrarily deep.
        self.work.push((id, (Step::Begin, Place::new(end))));
        Ok(id)
    }

    /// Records that a goal begins at a place.
    pub fn complete(&mut self, id: GoalId, at: Place) -> Result<(), GrammarError> {
        let goal = &mut self.goals[id.0 as usize];
        let is_undecided = self
            .undecided
            .as_ref()
            .is_some_and(|(hole, nodes)| nodes.contains(&goal.node) && (at.position()..=goal.end).contains(hole));
        let at = if is_undecided { at.undecided() } else { at };
        if !goal.states.insert((Step::Done, at)) {
            return Ok(());
        }
        goal.starts.push(at);
        let goal = &self.goals[id.0 as usize];
        self.work.extend(
            goal.waiting
                .iter()
                .map(|&(waiter, step, is_undecided)| (waiter, (step, if is_undecided { at.undecided() } else { at }))),
        );
        self.count()
    }

    pub fn count(&mut self) -> Result<(), GrammarError> {
        self.states += 1;
        if self.states <= MAX_STATES {
            return Ok(());
        }
        let message = format!(
            "reading the text around the holes takes more than {MAX_STATES} steps; shorten it, or write the grammar so that \
             fewer of its parts can end at the same place"
        );
        Err(GrammarError::new(ErrorKind::Limit, "", message))
    }
}

/// The error for a limit of the expressions.
pub(super) fn limit(limit: LimitExceeded) -> GrammarError {
    GrammarError::limit("", limit)
}
