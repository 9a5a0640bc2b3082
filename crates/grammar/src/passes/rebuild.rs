//! The walk under all passes: everything reachable from the root, rebuilt, children first.
//!
//! It has its own stack and goes rule by rule, because parts of a rule may also be parts of rules that it uses. A rule
//! that is not finished when another uses it is referred to by number.

use rustc_hash::FxHashMap;
use stencilm_regex::ExprSet;
use stencilm_support::HashMap;

use crate::ir::exprs::{self, expressions};
use crate::ir::grammar::{Grammar, Items, ItemsId, Members, MembersId, Node, NodeId, Rule, RuleId};
use crate::json::values::common_exprs;

/// A grammar under construction.
pub(super) struct Draft {
    pub exprs: ExprSet,
    pub nodes: Vec<Node>,
    index: HashMap<Node, NodeId>,
    pub rules: Vec<(String, Option<NodeId>)>,
    pub members: Vec<Members>,
    members_index: HashMap<Members, MembersId>,
    pub items: Vec<Items>,
    items_index: HashMap<Items, ItemsId>,
    /// Whether equal nodes become one.
    shares: bool,
}

impl Draft {
    pub(super) fn node(&mut self, node: Node) -> NodeId {
        if self.shares {
            if let Some(&known) = self.index.get(&node) {
                return known;
            }
            self.index.insert(node.clone(), NodeId(self.nodes.len() as u32));
        }
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    fn object(&mut self, members: Members) -> MembersId {
        if let Some(&known) = self.members_index.get(&members).filter(|_| self.shares) {
            return known;
        }
        let id = MembersId(self.members.len() as u32);
        if self.shares {
            self.members_index.insert(members.clone(), id);
        }
        self.members.push(members);
        id
    }

    fn array(&mut self, items: Items) -> ItemsId {
        if let Some(&known) = self.items_index.get(&items).filter(|_| self.shares) {
            return known;
        }
        let id = ItemsId(self.items.len() as u32);
        if self.shares {
            self.items_index.insert(items.clone(), id);
        }
        self.items.push(items);
        id
    }

    pub(super) fn get(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The node that a finished rule can be replaced by, if its body is only another rule or a single leaf.
    pub(super) fn renamed(&self, rule: RuleId) -> Option<NodeId> {
        let body = self.rules[rule.0 as usize].1?;
        match self.get(body) {
            Node::Lexeme(_) | Node::Token(_) => Some(body),
            Node::Sequence(parts) if parts.is_empty() => Some(body),
            Node::Rule(other) if *other != rule => Some(body),
            _ => None,
        }
    }
}

/// The direct children of a node; rules are not followed.
pub fn children(grammar: &Grammar, node: &Node) -> Vec<NodeId> {
    match node {
        Node::Lexeme(_) | Node::Token(_) | Node::Rule(_) => Vec::new(),
        Node::Sequence(parts) | Node::Choice(parts) => parts.to_vec(),
        Node::Repeat { body, .. } | Node::Marked { body, .. } => vec![*body],
        Node::Members(id) => {
            let members = grammar.members(*id);
            let additional =
                members.additional.iter().flat_map(|additional| [Some(additional.value), additional.some]).flatten();
            members.declared.iter().map(|known| known.value).chain(additional).collect()
        }
        Node::Items(id) => grammar.items(*id).elements().map(|element| element.value).collect(),
    }
}

enum Step {
    Enter(NodeId),
    Leave(NodeId),
}

/// The reachable rules in two orders: as they are reached from the root, and as they are finished, where a rule comes
/// after the rules that it uses, as far as recursion allows.
struct Order {
    reached: Vec<RuleId>,
    finished: Vec<RuleId>,
}

fn rule_order<E>(grammar: &Grammar, may_go_on: impl Fn() -> Result<(), E>) -> Result<Order, E> {
    enum Visit {
        Node(NodeId),
        End(RuleId),
    }
    let mut order = Order { reached: Vec::new(), finished: Vec::new() };
    let mut seen = vec![false; grammar.nodes.len()];
    let mut is_reached = vec![false; grammar.rules.len()];
    let mut work = vec![Visit::Node(grammar.root)];
    while let Some(visit) = work.pop() {
        may_go_on()?;
        let id = match visit {
            Visit::Node(id) => id,
            Visit::End(rule) => {
                order.finished.push(rule);
                continue;
            }
        };
        if std::mem::replace(&mut seen[id.0 as usize], true) {
            continue;
        }
        let node = grammar.node(id);
        work.extend(children(grammar, node).into_iter().rev().map(Visit::Node));
        if let Node::Rule(rule) = node
            && !std::mem::replace(&mut is_reached[rule.0 as usize], true)
        {
            order.reached.push(*rule);
            work.extend([Visit::End(*rule), Visit::Node(grammar.rule(*rule).body)]);
        }
    }
    Ok(order)
}

/// Rebuilds a grammar, for as long as `may_go_on` allows. `make` decides what a node becomes; its children are already
/// rebuilt. It may be called for a [`Node::Rule`] before that rule is finished.
pub(super) fn rebuild<E>(
    grammar: &Grammar,
    shares: bool,
    may_go_on: impl Fn() -> Result<(), E>,
    mut make: impl FnMut(&mut Draft, Node) -> NodeId,
) -> Result<Grammar, E> {
    let mut new_exprs = common_exprs();
    let mut roots = Vec::new();
    for node in reachable_nodes(grammar, &may_go_on)? {
        may_go_on()?;
        expressions(grammar, grammar.node(node), |expr| roots.push(expr));
    }
    let exprs = exprs::copy_while(&grammar.exprs, roots, &mut new_exprs, &may_go_on)?;
    let (nodes, index, rules) = Default::default();
    let (members, members_index, items, items_index) = Default::default();
    let mut draft = Draft { exprs: new_exprs, nodes, index, rules, members, members_index, items, items_index, shares };
    let mut made: Vec<Option<NodeId>> = vec![None; grammar.nodes.len()];
    let Order { reached, finished } = rule_order(grammar, &may_go_on)?;
    let new_rules: FxHashMap<RuleId, RuleId> =
        reached.iter().zip(0..).map(|(&rule, new)| (rule, RuleId(new))).collect();
    draft.rules.extend(reached.iter().map(|&rule| (grammar.rule(rule).name.clone(), None)));
    for unit in finished.iter().copied().map(Some).chain([None]) {
        let start = unit.map_or(grammar.root, |rule| grammar.rule(rule).body);
        let mut work = vec![Step::Enter(start)];
        while let Some(step) = work.pop() {
            may_go_on()?;
            let id = match step {
                Step::Enter(id) if made[id.0 as usize].is_some() => continue,
                Step::Enter(id) => {
                    work.push(Step::Leave(id));
                    work.extend(children(grammar, grammar.node(id)).into_iter().rev().map(Step::Enter));
                    continue;
                }
                Step::Leave(id) => id,
            };
            if made[id.0 as usize].is_some() {
                continue;
            }
            let child = |child: &NodeId| made[child.0 as usize].expect("children are made before their parents");
            let node = match grammar.node(id) {
                Node::Lexeme(expr) => Node::Lexeme(exprs.of(*expr)),
                Node::Token(pattern) => Node::Token(pattern.clone()),
                Node::Sequence(parts) => Node::Sequence(parts.iter().map(child).collect()),
                Node::Choice(parts) => Node::Choice(parts.iter().map(child).collect()),
                Node::Repeat { body, min, max } => Node::Repeat { body: child(body), min: *min, max: *max },
                Node::Marked { mark, body } => Node::Marked { mark: mark.clone(), body: child(body) },
                Node::Rule(rule) => Node::Rule(new_rules[rule]),
                Node::Members(members) => {
                    let members = grammar.members(*members).mapped(child, |expr| exprs.of(expr));
                    Node::Members(draft.object(members))
                }
                Node::Items(items) => {
                    let items = grammar.items(*items).mapped(child, |expr| exprs.of(expr));
                    Node::Items(draft.array(items))
                }
            };
            made[id.0 as usize] = Some(make(&mut draft, node));
        }
        if let Some(rule) = unit {
            draft.rules[new_rules[&rule].0 as usize].1 = made[start.0 as usize];
        }
    }
    let root = made[grammar.root.0 as usize].expect("the walk ends with the root");
    let rules = std::mem::take(&mut draft.rules)
        .into_iter()
        .map(|(name, body)| Rule { name, body: body.expect("every rule met is finished by the end of the walk") })
        .collect();
    let Draft { exprs, nodes, members, items, .. } = draft;
    let (report, begun) = (grammar.report.clone(), grammar.begun.clone());
    Ok(Grammar { exprs, nodes, rules, members, items, root, report, begun })
}

fn reachable_nodes<E>(grammar: &Grammar, may_go_on: impl Fn() -> Result<(), E>) -> Result<Vec<NodeId>, E> {
    let mut seen = vec![false; grammar.nodes.len()];
    let mut work = vec![grammar.root];
    let mut found = Vec::new();
    while let Some(id) = work.pop() {
        may_go_on()?;
        if std::mem::replace(&mut seen[id.0 as usize], true) {
            continue;
        }
        found.push(id);
        let node = grammar.node(id);
        work.extend(children(grammar, node));
        if let Node::Rule(rule) = node {
            work.push(grammar.rule(*rule).body);
        }
    }
    Ok(found)
}

/// Removes everything that is not reachable from the root.
pub fn drop_unreachable<E>(grammar: &Grammar, may_go_on: impl Fn() -> Result<(), E>) -> Result<Grammar, E> {
    rebuild(grammar, false, may_go_on, |draft, node| draft.node(node))
}

/// Makes equal nodes one node, and equal objects one object.
pub fn share_equal<E>(grammar: &Grammar, may_go_on: impl Fn() -> Result<(), E>) -> Result<Grammar, E> {
    rebuild(grammar, true, may_go_on, |draft, node| draft.node(node))
}
