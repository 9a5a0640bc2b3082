//! Which parts of a grammar read which parts of a text with holes, found from the end of the text on.
//!
//! A *goal* is a node and the place where it must end; what is sought is where it may begin (generalised descent with sharing, as
//! in GLL; Scott, Johnstone 2010, mirrored). A goal goes through *states*: how much of the node is read, from its last part on,
//! and up to which place. Goals ask each other, each once, from a list of work: nothing recurses. The states that were met are also
//! what a quotient is made of.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{ExprId, LimitExceeded, check_time};

use super::arrays::{ArrayState, ArrayStates};
use super::facts::Facts;
use super::lexemes::Lexemes;
use super::objects::{MemberList, MemberLists, ObjectForms, Within};
use super::place::Place;
use super::template::Template;
use crate::ir::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{Grammar, Node, NodeId};

/// Most states of all goals together, each some sixty bytes.
const MAX_STATES: usize = 4_000_000;

/// A goal of one recogniser.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct GoalId(u32);

/// How much of a node is read, from its end on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Step {
    /// All of it.
    Done,
    /// All parts of a sequence but so many.
    Parts(u32),
    /// So many rounds of a repetition.
    Rounds(u32),
    /// What an object that is cut off ends with, behind the key of its last member, which is of this class.
    Last(u32),
    /// Members of an object; a value ends here.
    AfterValue(MemberList),
    /// Members, and a value of this kind, perhaps begun within a hole; a colon ends here.
    Value(MemberList, u32, Within),
    /// Members, a value and the colon before it; a key ends here.
    Colon(MemberList, u32, Within),
    /// Members, the first with its key.
    Key(MemberList),
    /// Elements of an array; another one ends here.
    AfterElement(ArrayState),
    /// Elements, the first of which begins here.
    Element(ArrayState),
}

/// How much of a node is read, and up to where.
pub(super) type State = (Step, Place);

pub(super) struct Goal {
    node: NodeId,
    end: u32,
    /// All states met.
    pub states: FxHashSet<State>,
    starts: Vec<Place>,
    /// Who goes on in which step where this goal begins; in doubt where the one who asks is.
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
    pub arrays: ArrayStates,
    goals: Vec<Goal>,
    index: FxHashMap<(NodeId, u32), GoalId>,
    lexeme_starts: FxHashMap<(ExprId, u32), Rc<[Place]>>,
    work: Vec<(GoalId, State)>,
    states: usize,
    /// A hole, and the nodes that are in doubt where it is in them.
    pub doubted: Option<(u32, &'a FxHashSet<NodeId>)>,
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
            arrays: ArrayStates::default(),
            goals: Vec::new(),
            index: FxHashMap::default(),
            lexeme_starts: FxHashMap::default(),
            work: Vec::new(),
            states: 0,
            doubted: None,
        }
    }

    /// Reads the whole text: where the root may begin that ends where the text does.
    pub fn read(&mut self) -> Result<Vec<Place>, GrammarError> {
        let (root, end) = (self.facts.base(self.grammar.root()), self.template.end());
        if let Node::Lexeme(expr) = self.grammar.node(root) {
            return Ok(self.lexeme_starts(*expr, end)?.to_vec());
        }
        let goal = self.goal(root, end)?;
        while let Some((goal, state)) = self.work.pop() {
            self.enter(goal, state)?;
        }
        Ok(self.goals[goal.0 as usize].starts.clone())
    }

    /// A goal that was asked for.
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

    /// Goes on in a step of a goal wherever a node begins that ends at a place.
    pub fn call(&mut self, goal: GoalId, step: Step, node: NodeId, at: Place) -> Result<(), GrammarError> {
        let (base, end) = (self.facts.base(node), at.position());
        if !self.template.is_hole(end) && self.facts.never_ends_with(base, self.template.before(end)) {
            return Ok(());
        }
        match self.grammar.node(base) {
            Node::Lexeme(expr) => return self.read_lexeme(goal, step, *expr, at),
            // A hole may hold any tokens; what is spelled out as text is none.
            Node::Token(_) => {
                if self.template.is_hole(end) {
                    self.work.push((goal, (step, at)));
                }
                return Ok(());
            }
            _ => {}
        }
        let asked = self.goal(base, end)?;
        let asked = &mut self.goals[asked.0 as usize];
        let waiter = (goal, step, at.is_doubtful());
        asked.waiting.push(waiter);
        self.work.extend(asked.starts.iter().map(|start| (goal, (step, start.after(at)))));
        Ok(())
    }

    /// The same for a lexeme.
    pub fn read_lexeme(&mut self, goal: GoalId, step: Step, expr: ExprId, at: Place) -> Result<(), GrammarError> {
        let starts = self.lexeme_starts(expr, at.position())?;
        self.work.extend(starts.iter().map(|start| (goal, (step, start.after(at)))));
        Ok(())
    }

    /// Goes on in a step of a goal.
    pub fn go_on(&mut self, goal: GoalId, step: Step, at: Place) {
        self.work.push((goal, (step, at)));
    }

    pub fn node_of(&self, goal: GoalId) -> &'a Node {
        self.grammar.node(self.goals[goal.0 as usize].node)
    }

    /// The goal of a node that is its own base.
    fn goal(&mut self, node: NodeId, end: u32) -> Result<GoalId, GrammarError> {
        if let Some(&known) = self.index.get(&(node, end)) {
            return Ok(known);
        }
        let id = GoalId(self.goals.len() as u32);
        let (states, starts, waiting) = Default::default();
        self.goals.push(Goal { node, end, states, starts, waiting });
        self.index.insert((node, end), id);
        self.count()?;
        self.begin(id, Place::new(end))?;
        Ok(id)
    }

    fn begin(&mut self, id: GoalId, end: Place) -> Result<(), GrammarError> {
        let grammar = self.grammar;
        match self.node_of(id) {
            Node::Sequence(parts) => self.go_on(id, Step::Parts(parts.len() as u32), end),
            Node::Repeat { .. } => self.go_on(id, Step::Rounds(0), end),
            Node::Choice(parts) => {
                // Asked for from the list of work: alternatives nest as deep as they like.
                self.work.extend(parts.iter().enumerate().map(|(way, _)| (id, (Step::Parts(way as u32), end))));
            }
            Node::Members(members) => self.begin_object(id, *members, end)?,
            Node::Items(items) => self.begin_array(id, grammar.items(*items), end)?,
            Node::Lexeme(_) | Node::Token(_) | Node::Rule(_) | Node::Marked { .. } => {
                unreachable!("lexemes and tokens are read at once, and bases are no names")
            }
        }
        Ok(())
    }

    fn enter(&mut self, id: GoalId, state: State) -> Result<(), GrammarError> {
        check_time().map_err(limit)?;
        if state.0 == Step::Done {
            return self.complete(id, state.1);
        }
        if !self.goals[id.0 as usize].states.insert(state) {
            return Ok(());
        }
        self.count()?;
        let (step, at) = state;
        match (self.node_of(id), step) {
            (Node::Sequence(_), Step::Parts(0)) => self.complete(id, at)?,
            (Node::Sequence(parts), Step::Parts(left)) => {
                self.call(id, Step::Parts(left - 1), parts[left as usize - 1], at)?;
            }
            (Node::Choice(parts), Step::Parts(way)) => self.call(id, Step::Done, parts[way as usize], at)?,
            (&Node::Repeat { body, min, max }, Step::Rounds(count)) => {
                if count >= min {
                    self.complete(id, at)?;
                }
                if max.is_none_or(|max| count < max) {
                    let count = if max.is_none() { (count + 1).min(min) } else { count + 1 };
                    self.call(id, Step::Rounds(count), body, at)?;
                }
            }
            (&Node::Members(members), step) => self.enter_object(id, members, step, at)?,
            (&Node::Items(items), step) => self.enter_array(id, self.grammar.items(items), step, at)?,
            _ => unreachable!("each node has steps of its own"),
        }
        Ok(())
    }

    /// A goal begins at a place.
    pub fn complete(&mut self, id: GoalId, at: Place) -> Result<(), GrammarError> {
        let goal = &mut self.goals[id.0 as usize];
        let is_doubted = self.doubted.as_ref().is_some_and(|(hole, nodes)| {
            nodes.contains(&goal.node) && (at.position()..=goal.end).contains(hole)
        });
        let at = if is_doubted { at.doubted() } else { at };
        if !goal.states.insert((Step::Done, at)) {
            return Ok(());
        }
        goal.starts.push(at);
        let goal = &self.goals[id.0 as usize];
        self.work.extend(goal.waiting.iter().map(|&(waiter, step, is_doubtful)| {
            (waiter, (step, if is_doubtful { at.doubted() } else { at }))
        }));
        self.count()
    }

    fn count(&mut self) -> Result<(), GrammarError> {
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

/// The error for a limit of expressions.
pub(super) fn limit(limit: LimitExceeded) -> GrammarError {
    GrammarError::limit("", limit)
}
