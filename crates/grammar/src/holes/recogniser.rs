//! Which parts of a grammar read which parts of a text with holes, found from the end of the text on.
//!
//! What is sought is where a node may begin that ends at a place (generalised descent with sharing, as in GLL; Scott,
//! Johnstone 2010, mirrored). The states that were reached are also what a quotient is made of.

use stencilm_support::check_time;

use super::goals::{GoalId, Recogniser, State, Step, limit};
use super::place::Place;
use crate::error::GrammarError;
use crate::ir::grammar::Node;

impl Recogniser<'_> {
    /// Reads the whole text; returns where a root that ends at the end of the text may begin.
    pub fn read(&mut self) -> Result<Vec<Place>, GrammarError> {
        let (root, end) = (self.facts.base(self.grammar.root()), self.template.end());
        match self.grammar.node(root) {
            Node::Lexeme(expr) => return Ok(self.lexeme_starts(*expr, end)?.to_vec()),
            Node::Token(_) => return Ok(self.token_start(end).into_iter().collect()),
            _ => {}
        }
        let goal = self.goal(root, end)?;
        while let Some((goal, state)) = self.work.pop() {
            self.enter(goal, state)?;
        }
        Ok(self.goals[goal.0 as usize].starts.clone())
    }

    fn begin(&mut self, id: GoalId, end: Place) -> Result<(), GrammarError> {
        let grammar = self.grammar;
        match self.node_of(id) {
            Node::Sequence(parts) => self.go_on(id, Step::Parts(parts.len() as u32), end),
            Node::Repeat { .. } => self.go_on(id, Step::Rounds(0), end),
            Node::Choice(parts) => {
                self.work.extend(parts.iter().enumerate().map(|(reading, _)| (id, (Step::Parts(reading as u32), end))));
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
            (_, Step::Begin) => self.begin(id, at)?,
            (Node::Sequence(_), Step::Parts(0)) => self.complete(id, at)?,
            (Node::Sequence(parts), Step::Parts(left)) => {
                self.call(id, Step::Parts(left - 1), parts[left as usize - 1], at)?;
            }
            (Node::Choice(parts), Step::Parts(reading)) => self.call(id, Step::Done, parts[reading as usize], at)?,
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
}
