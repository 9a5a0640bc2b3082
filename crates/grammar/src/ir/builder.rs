//! How a front end makes a grammar: collect nodes and rules, then drop what matches nothing.

use stencilm_regex::{ExprId, ExprSet};
use stencilm_support::{LimitExceeded, check_time_now};

use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{
    Grammar, Items, ItemsId, KeySpace, Mark, Members, MembersId, Node, NodeId, Repeats, Rule, RuleId, TokenPattern,
};
use crate::ir::names;
use crate::ir::objects::ObjectChecks;
use crate::ir::productive::{LiveExprs, productive_nodes, without_dead_parts};
use crate::ir::report::KeptReport;
use crate::ir::split_literals::split_literals;
use crate::json::values::common_exprs;

/// A grammar with more expressions is refused: matching it would take some hundred bytes for each.
pub(crate) const MAX_EXPRS: usize = 1_200_000;

/// Collects nodes and rules, then checks them.
#[derive(Clone)]
pub struct GrammarBuilder {
    /// The expressions of the lexemes.
    pub exprs: ExprSet,
    nodes: Vec<Node>,
    rules: Vec<(String, Option<NodeId>)>,
    members: Vec<Members>,
    items: Vec<Items>,
    /// Set by the caller; `None` means [`MAX_EXPRS`].
    max_exprs: Option<usize>,
    /// Which expressions are known to match some text, so that no search is needed for them.
    live: LiveExprs,
}

impl Default for GrammarBuilder {
    fn default() -> GrammarBuilder {
        let mut exprs = common_exprs();
        exprs.bound(MAX_EXPRS);
        GrammarBuilder {
            exprs,
            nodes: Vec::new(),
            rules: Vec::new(),
            members: Vec::new(),
            items: Vec::new(),
            max_exprs: None,
            live: LiveExprs::default(),
        }
    }
}

impl GrammarBuilder {
    /// A builder that continues from a grammar; its nodes, rules and expressions keep their numbers.
    pub(crate) fn from_grammar(grammar: Grammar) -> GrammarBuilder {
        let Grammar { mut exprs, nodes, rules, members, items, .. } = grammar;
        exprs.bound(MAX_EXPRS);
        let rules = rules.into_iter().map(|rule| (rule.name, Some(rule.body))).collect();
        let mut live = LiveExprs::default();
        live.note_all(&exprs, &nodes);
        GrammarBuilder { exprs, nodes, rules, members, items, max_exprs: None, live }
    }

    /// Reserves memory for this many more nodes.
    pub(crate) fn reserve_nodes(&mut self, count: usize) {
        self.nodes.reserve(count);
    }

    /// Adds a node.
    pub fn node(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Bytes that match an expression.
    pub fn lexeme(&mut self, expr: ExprId) -> NodeId {
        self.node(Node::Lexeme(expr))
    }

    /// As [`GrammarBuilder::lexeme`], for an expression that is known to match some bytes, so that no search is needed.
    pub(crate) fn live_lexeme(&mut self, expr: ExprId) -> NodeId {
        self.live.note(&self.exprs, expr);
        self.lexeme(expr)
    }

    /// The parts one after the other.
    pub fn sequence(&mut self, parts: &[NodeId]) -> NodeId {
        self.node(Node::Sequence(parts.into()))
    }

    /// Any one of the parts.
    pub fn choice(&mut self, parts: &[NodeId]) -> NodeId {
        self.node(Node::Choice(parts.into()))
    }

    /// `body` repeated.
    pub fn repeat(&mut self, body: NodeId, min: u32, max: Option<u32>) -> NodeId {
        self.node(Node::Repeat { body, min, max })
    }

    /// A JSON object.
    pub fn object(&mut self, members: Members) -> NodeId {
        self.members.push(members);
        self.node(Node::Members(MembersId(self.members.len() as u32 - 1)))
    }

    /// How many keys a class of members has whose keys must not be one of these names.
    ///
    /// # Errors
    /// [`ErrorKind::Unsatisfiable`](crate::ErrorKind::Unsatisfiable) when there is none,
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) when deciding that takes too long.
    pub fn key_space(&self, key: ExprId, reserved: &[&str]) -> Result<KeySpace, GrammarError> {
        ObjectChecks::default().key_space(&self.exprs, key, reserved)
    }

    /// A JSON array. If two of its elements must be equal, its least number of elements becomes at least 2.
    pub fn array(&mut self, mut items: Items) -> NodeId {
        if items.must_repeat() {
            items.min = items.min.max(2);
        }
        self.items.push(items);
        self.node(Node::Items(ItemsId(self.items.len() as u32 - 1)))
    }

    /// Among arrays in which two elements must be equal: those that may reach a state without equal elements from which
    /// none can be added, because the elements that could be equal match no text. Every rule must be defined.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) when deciding that takes too long.
    pub(crate) fn cannot_always_repeat(&self, arrays: &[NodeId]) -> Result<Vec<bool>, GrammarError> {
        let Some(&root) = arrays.first() else { return Ok(Vec::new()) };
        let mut copy = self.clone();
        let mut live = std::mem::take(&mut copy.live);
        let grammar = copy.collected(root, KeptReport::default());
        let alive = productive_nodes(&grammar, &mut live)?;
        let is_alive = |node: NodeId| alive[node.0 as usize];
        let cannot = |&array: &NodeId| match grammar.node(array) {
            Node::Items(items) => is_alive(array) && !grammar.items(*items).can_always_repeat(is_alive),
            _ => false,
        };
        Ok(arrays.iter().map(cannot).collect())
    }

    /// Stops comparing the elements of an array.
    pub(crate) fn compare_no_elements(&mut self, array: NodeId) {
        if let Node::Items(items) = self.nodes[array.0 as usize] {
            self.items[items.0 as usize].repeats = Repeats::Any;
        }
    }

    /// A node added before.
    pub(crate) fn get(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// All nodes so far.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// How many nodes there are.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The body of a rule, which must be defined.
    pub(crate) fn body(&self, rule: RuleId) -> NodeId {
        self.rules[rule.0 as usize].1.expect("only rules that are defined are asked for")
    }

    /// The name of a rule.
    pub(crate) fn rule_name(&self, rule: RuleId) -> &str {
        &self.rules[rule.0 as usize].0
    }

    /// An object added before.
    pub(crate) fn members(&self, id: MembersId) -> &Members {
        &self.members[id.0 as usize]
    }

    /// An array added before.
    pub(crate) fn items(&self, id: ItemsId) -> &Items {
        &self.items[id.0 as usize]
    }

    /// The special token of this name.
    pub fn special_token(&mut self, name: impl Into<Box<str>>) -> NodeId {
        self.node(Node::Token(Box::new(TokenPattern::Special(name.into()))))
    }

    /// The special token of this name if the vocabulary has one; otherwise nothing.
    pub fn if_special_token(&mut self, name: impl Into<Box<str>>) -> NodeId {
        self.node(Node::Token(Box::new(TokenPattern::IfSpecial(name.into()))))
    }

    /// Any one token except these.
    pub fn other_tokens(&mut self, ids: &[u32], names: &[&str]) -> NodeId {
        let names = names.iter().map(|&name| name.into()).collect();
        self.node(Node::Token(Box::new(TokenPattern::Others { ids: ids.into(), names })))
    }

    /// One token whose id is in these ranges, both ends included; if negated, in none of them.
    pub fn token_ids(&mut self, ranges: &[(u32, u32)], negated: bool) -> NodeId {
        self.node(Node::Token(Box::new(TokenPattern::Ids { ranges: ranges.into(), negated })))
    }

    /// `body`, whose text is captured under this name.
    pub fn capture(&mut self, name: impl Into<Box<str>>, body: NodeId) -> NodeId {
        self.marked(Mark::Capture(name.into()), body)
    }

    /// `body` with a mark.
    pub fn marked(&mut self, mark: Mark, body: NodeId) -> NodeId {
        self.node(Node::Marked { mark, body })
    }

    /// Declares a rule that is defined later; the name is for messages.
    pub fn declare_rule(&mut self, name: impl Into<String>) -> RuleId {
        self.rules.push((name.into(), None));
        RuleId(self.rules.len() as u32 - 1)
    }

    /// Defines a declared rule.
    pub fn define_rule(&mut self, rule: RuleId, body: NodeId) {
        self.rules[rule.0 as usize].1 = Some(body);
    }

    /// Whether a declared rule has been defined.
    pub fn is_defined(&self, rule: RuleId) -> bool {
        self.rules[rule.0 as usize].1.is_some()
    }

    /// Limits the number of expressions to this instead of 1,200,000.
    pub fn limit_exprs(&mut self, max_exprs: usize) {
        self.max_exprs = Some(max_exprs);
        self.exprs.bound(max_exprs);
    }

    /// Checks that the expressions are complete: they are abandoned when they become too many or take too long.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if they were abandoned.
    fn check_exprs(&self) -> Result<(), GrammarError> {
        let max_exprs = self.max_exprs.unwrap_or(MAX_EXPRS);
        let given_up = self.exprs.given_up();
        if self.exprs.own_len() > max_exprs || matches!(given_up, Some(LimitExceeded::Expressions(_))) {
            let way_out = match self.max_exprs {
                Some(_) => "shorten its literals, split it, or raise `grammar_expressions` of the limits",
                None => "shorten its literals or split it",
            };
            let message = format!("the grammar has more than {max_exprs} parts of regular expressions; {way_out}");
            return Err(GrammarError::new(ErrorKind::Limit, "", message));
        }
        given_up.map_or(Ok(()), |limit| Err(GrammarError::limit("", limit)))
    }

    /// The result of a step, or an error if the expressions were abandoned meanwhile: then the result covers only a
    /// part of them.
    pub(crate) fn whole<T>(&self, found: Result<T, GrammarError>) -> Result<T, GrammarError> {
        match found {
            Err(error) if error.kind == ErrorKind::Limit => Err(error),
            found => self.check_exprs().and(found),
        }
    }

    /// Whether any bytes match an expression.
    pub(crate) fn matches_some(&mut self, expr: ExprId) -> Result<bool, GrammarError> {
        let found = self.live.decide(&self.exprs, expr, &mut None);
        self.whole(found)
    }

    /// The grammar that starts at `root`, without the parts that match nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Unsatisfiable`](crate::ErrorKind::Unsatisfiable) when no text at all matches,
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) when deciding that takes too long, or the thread has to stop.
    ///
    /// # Panics
    /// If a declared rule was never defined.
    pub fn finish(mut self, root: NodeId, report: impl Into<KeptReport>) -> Result<Grammar, GrammarError> {
        self.check_exprs()?;
        let live = std::mem::take(&mut self.live);
        let grammar = self.collected(root, report);
        let grammar = without_dead_parts(names::settled(grammar)?, live)?;
        let grammar = split_literals(grammar).map_err(|limit| GrammarError::limit("", limit))?;
        // After the deadline something may have been judged too hard to decide, or a keyword relaxed. The grammar must
        // not depend on timing, so none is returned.
        check_time_now().map_err(|limit| GrammarError::limit("", limit))?;
        Ok(grammar)
    }

    /// A grammar of what was collected, without checks.
    fn collected(mut self, root: NodeId, report: impl Into<KeptReport>) -> Grammar {
        self.exprs.unbound();
        self.exprs.shrink_to_fit();
        let rules = self
            .rules
            .into_iter()
            .map(|(name, body)| Rule { name, body: body.expect("every declared rule is defined before the end") })
            .collect();
        Grammar {
            exprs: self.exprs,
            nodes: self.nodes,
            rules,
            members: self.members,
            items: self.items,
            root,
            report: report.into(),
            begun: Box::default(),
        }
    }
}
