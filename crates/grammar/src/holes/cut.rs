//! Nodes that are cut: what of a node may stand before a text that goes on to a place.
//!
//! Every node becomes one for each place at which it may end, beside the whole one (Bar-Hillel, Perles, Shamir 1961).
//! They are asked for here, and made from a list of work. Empty beginnings are left to what a node is a part of, so
//! none is made twice.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::ExprId;

use super::goals::{Recogniser, State, Step, limit};
use crate::error::GrammarError;
use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::{Mark, Node, NodeId, RuleId};

/// Makes the quotient from what a recogniser has read.
pub(super) struct Quotient<'q, 'a> {
    pub recogniser: &'q mut Recogniser<'a>,
    pub builder: GrammarBuilder,
    rules: FxHashMap<(NodeId, u32), RuleId>,
    pub work: Vec<(NodeId, u32, RuleId)>,
    imported: FxHashMap<ExprId, ExprId>,
    /// By expression and place: the cut that was found. Holds only what could be decided.
    cuts: FxHashMap<(ExprId, u32), ExprId>,
    /// The node that is being cut.
    pub current: NodeId,
    /// Whether something was left out because it could not be decided, or not be written as a grammar.
    pub is_undecided: bool,
    /// The nodes of which a part was left out because it cannot be written as a grammar.
    pub refused: FxHashSet<NodeId>,
}

impl<'q, 'a> Quotient<'q, 'a> {
    pub fn new(recogniser: &'q mut Recogniser<'a>) -> Quotient<'q, 'a> {
        let builder = GrammarBuilder::from_grammar(recogniser.grammar.clone());
        let (rules, work, imported, cuts, refused) = Default::default();
        let current = recogniser.grammar.root();
        Quotient { recogniser, builder, rules, work, imported, cuts, current, is_undecided: false, refused }
    }

    /// The prefixes of a node, none of them empty, that the text up to a place completes; `None` if there are none.
    pub fn cut(&mut self, node: NodeId, end: u32) -> Result<Option<NodeId>, GrammarError> {
        let template = self.recogniser.template;
        if !template.is_hole(end) && self.recogniser.facts.is_never_cut_after(node, template.before(end)) {
            return Ok(None);
        }
        let grammar = self.recogniser.grammar;
        let mut marks: Vec<Mark> = Vec::new();
        let mut name = None;
        let mut inner = node;
        loop {
            inner = match grammar.node(inner) {
                Node::Rule(rule) => {
                    name = Some(*rule);
                    grammar.rule(*rule).body
                }
                Node::Marked { mark, body } => {
                    marks.push(mark.clone());
                    *body
                }
                Node::Sequence(parts) | Node::Choice(parts) if parts.len() == 1 => parts[0],
                _ => break,
            };
        }
        if marks.iter().any(|mark| matches!(mark, Mark::Refers(_))) {
            // The other part of the name is after the hole, so it would have to be compared to know which name it is.
            self.refuse();
            return Ok(None);
        }
        // No reference before the end of the hole can mean a name that ends after it.
        marks.retain(|mark| !matches!(mark, Mark::Declares(_)));
        let base = self.recogniser.facts.base(node);
        let mut found = match grammar.node(base) {
            Node::Lexeme(expr) => self.cut_lexeme(*expr, end)?,
            Node::Token(_) => None,
            _ if self.recogniser.known(base, end).is_none() => None,
            _ => {
                let rule = match self.rules.get(&(base, end)) {
                    Some(&rule) => rule,
                    None => {
                        let name = name.map_or("part", |rule| &grammar.rule(rule).name).to_owned();
                        let rule = self.builder.declare_rule(name);
                        self.rules.insert((base, end), rule);
                        self.work.push((base, end, rule));
                        rule
                    }
                };
                Some(self.builder.node(Node::Rule(rule)))
            }
        };
        while let (Some(node), Some(mark)) = (found, marks.pop()) {
            found = Some(self.builder.marked(mark, node));
        }
        Ok(found)
    }

    /// As [`Quotient::cut`], for a lexeme.
    pub fn cut_lexeme(&mut self, expr: ExprId, end: u32) -> Result<Option<NodeId>, GrammarError> {
        let cut = self.cut_expr(expr, end)?;
        Ok((cut != ExprId::NOTHING).then(|| self.builder.lexeme(cut)))
    }

    /// As [`Quotient::cut_lexeme`], as an expression of the builder.
    pub fn cut_expr(&mut self, expr: ExprId, end: u32) -> Result<ExprId, GrammarError> {
        if let Some(&known) = self.cuts.get(&(expr, end)) {
            return Ok(known);
        }
        let lexemes = &mut *self.recogniser.lexemes;
        match lexemes.cut(expr, self.recogniser.template, end).map_err(limit)? {
            Some(cut) => {
                let known = self.imported.get(&cut).copied().or((cut == ExprId::NOTHING).then_some(cut));
                let imported = match known {
                    Some(known) => known,
                    None => {
                        let exprs = &lexemes.deriver.exprs;
                        self.builder.exprs.import_in_time(exprs, cut).map_err(limit)?
                    }
                };
                self.imported.insert(cut, imported);
                self.cuts.insert((expr, end), imported);
                Ok(imported)
            }
            None => {
                lexemes.undecided.insert(expr);
                self.is_undecided = true;
                Ok(ExprId::NOTHING)
            }
        }
    }

    /// The certain states of a goal, in an order that is always the same.
    pub fn states(&mut self, node: NodeId, end: u32) -> Vec<State> {
        let goal = self.recogniser.known(node, end).expect("only what was asked for is cut");
        let mut states: Vec<State> = goal.states.iter().filter(|(step, _)| *step != Step::Done).copied().collect();
        let all = states.len();
        states.retain(|(_, at)| !at.is_undecided());
        self.is_undecided |= states.len() < all;
        states.sort_unstable();
        states
    }

    /// Leaves out a part of the node that is being cut.
    pub fn refuse(&mut self) {
        self.is_undecided = true;
        self.refused.insert(self.current);
    }

    /// A node for the parts one after the other.
    pub fn joined(&mut self, parts: &[NodeId]) -> NodeId {
        match parts {
            [only] => *only,
            parts => self.builder.sequence(parts),
        }
    }
}
