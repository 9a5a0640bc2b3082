//! Grammars made of grammars: one after the other, and any one of them.

use std::convert::Infallible;

use stencilm_regex::ExprId;
use stencilm_support::{HashSet, check_time};

use crate::error::{ErrorKind, GrammarError};
use crate::ir::builder::GrammarBuilder;
use crate::ir::exprs;
use crate::ir::exprs::expressions;
use crate::ir::grammar::{
    AdditionalMembers, ArraySurface, DeclaredMember, Element, Grammar, Items, Members, Node, NodeId, RuleId,
};
use crate::ir::report::KeptReport;
use crate::json::surface::Surface;
use crate::passes::drop_unreachable_in_time;

impl Grammar {
    /// The concatenation of the grammars; the empty text if there are none.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if they are too large together.
    pub fn concat(grammars: &[&Grammar]) -> Result<Grammar, GrammarError> {
        combined(grammars, GrammarBuilder::sequence)
    }

    /// The union of the grammars.
    ///
    /// # Errors
    /// [`ErrorKind::Unsatisfiable`] if there are none, [`ErrorKind::Limit`] if they are too large together.
    pub fn union(grammars: &[&Grammar]) -> Result<Grammar, GrammarError> {
        if grammars.is_empty() {
            let message = "a union of no grammars has no texts; give at least one";
            return Err(GrammarError::new(ErrorKind::Unsatisfiable, "", message));
        }
        combined(grammars, GrammarBuilder::choice)
    }
}

impl Grammar {
    /// Refuses a grammar of continuations of a text where a grammar of whole texts is required.
    pub(crate) fn check_begun(&self) -> Result<(), GrammarError> {
        if self.begun.is_empty() {
            return Ok(());
        }
        let message = "the texts of this grammar go on from what stands before a hole, so it cannot be a part of another; join \
                       the grammars first, and fill the hole then";
        Err(GrammarError::new(ErrorKind::Unsupported, "", message))
    }
}

fn combined(
    grammars: &[&Grammar],
    join: impl FnOnce(&mut GrammarBuilder, &[NodeId]) -> NodeId,
) -> Result<Grammar, GrammarError> {
    let mut builder = GrammarBuilder::default();
    let mut names = HashSet::default();
    let mut reports = Vec::with_capacity(grammars.len());
    let mut roots = Vec::with_capacity(grammars.len());
    for grammar in grammars {
        grammar.check_begun()?;
        let root = add_while(&mut builder, &mut names, grammar, check_time);
        roots.push(root.map_err(|limit| GrammarError::limit("", limit))?);
        reports.push(grammar.report.clone());
    }
    let root = join(&mut builder, &roots);
    let grammar = builder.finish(root, KeptReport::joined(reports))?;
    drop_unreachable_in_time(&grammar)
}

/// Adds all of a grammar, renaming rules whose names are taken; returns its root.
pub(crate) fn add(builder: &mut GrammarBuilder, names: &mut HashSet<String>, grammar: &Grammar) -> NodeId {
    let Ok(root) = add_while(builder, names, grammar, || Ok::<_, Infallible>(()));
    root
}

/// As [`add`], for as long as `may_go_on` allows.
fn add_while<E>(
    builder: &mut GrammarBuilder,
    names: &mut HashSet<String>,
    grammar: &Grammar,
    may_go_on: impl Fn() -> Result<(), E>,
) -> Result<NodeId, E> {
    let mut lexemes = Vec::new();
    for node in grammar.nodes() {
        may_go_on()?;
        expressions(grammar, node, |expr| lexemes.push(expr));
    }
    let copies = exprs::copy_while(grammar.exprs(), lexemes, &mut builder.exprs, &may_go_on)?;
    let rules: Vec<RuleId> = grammar.rules().iter().map(|rule| declare(builder, names, &rule.name)).collect();
    // Every node becomes one node, so the distances between ids stay the same.
    let first = builder.node_count() as u32;
    let node_of = |id: &NodeId| NodeId(first + id.0);
    for node in grammar.nodes() {
        may_go_on()?;
        let copy = match node {
            Node::Lexeme(expr) => {
                // In a finished grammar, every lexeme matches some text.
                builder.live_lexeme(copies.of(*expr));
                continue;
            }
            Node::Sequence(parts) => Node::Sequence(parts.iter().map(node_of).collect()),
            Node::Choice(parts) => Node::Choice(parts.iter().map(node_of).collect()),
            Node::Repeat { body, min, max } => Node::Repeat { body: node_of(body), min: *min, max: *max },
            Node::Rule(rule) => Node::Rule(rules[rule.0 as usize]),
            Node::Token(pattern) => Node::Token(pattern.clone()),
            Node::Marked { mark, body } => Node::Marked { mark: mark.clone(), body: node_of(body) },
            Node::Members(members) => {
                let copy = grammar.members(*members).mapped(node_of, |expr| copies.of(expr));
                builder.object(copy);
                continue;
            }
            Node::Items(items) => {
                let copy = grammar.items(*items).mapped(node_of, |expr| copies.of(expr));
                builder.array(copy);
                continue;
            }
        };
        builder.node(copy);
    }
    for (&rule, original) in rules.iter().zip(grammar.rules()) {
        builder.define_rule(rule, node_of(&original.body));
    }
    Ok(node_of(&grammar.root()))
}

/// Declares a rule with this name, or with a similar one if it is taken.
pub(crate) fn declare(builder: &mut GrammarBuilder, names: &mut HashSet<String>, wanted: &str) -> RuleId {
    let mut name = wanted.to_owned();
    let mut number = 1;
    while !names.insert(name.clone()) {
        // Hundreds of schemas give their rules the same names, so after the first few numbers the next ones are not
        // tried one by one.
        number = if number < 8 { number + 1 } else { names.len().max(number + 1) };
        name = format!("{wanted}_{number}");
    }
    builder.declare_rule(name)
}

impl Members {
    /// The same object with other ids for its nodes and expressions.
    pub(crate) fn mapped(&self, node: impl Fn(&NodeId) -> NodeId, expr: impl Fn(ExprId) -> ExprId) -> Members {
        let known = self.declared.iter().map(|known| DeclaredMember {
            name: known.name.clone(),
            key: known.key.map(&expr),
            value: node(&known.value),
            required: known.required,
        });
        let additional = self.additional.iter().map(|additional| AdditionalMembers {
            key: expr(additional.key),
            space: additional.space,
            reserved: additional.reserved.clone(),
            value: node(&additional.value),
            some: additional.some.as_ref().map(&node),
            last: additional.last.clone(),
        });
        let Surface { empty, open, colon, item, close } = self.surface;
        let surface =
            Surface { empty: expr(empty), open: expr(open), colon: expr(colon), item: expr(item), close: expr(close) };
        let (known, additional) = (known.collect(), additional.collect());
        Members { declared: known, ordered: self.ordered, additional, min: self.min, max: self.max, surface }
    }
}

impl Items {
    /// The same array with other ids for its nodes and expressions.
    pub(crate) fn mapped(&self, node: impl Fn(&NodeId) -> NodeId, expr: impl Fn(ExprId) -> ExprId) -> Items {
        let element = |element: &Element| Element { value: node(&element.value), counts: element.counts };
        let place = |place: &[Element]| -> Box<[Element]> { place.iter().map(element).collect() };
        let ArraySurface { empty, open, item, close } = self.surface;
        let surface = ArraySurface { empty: expr(empty), open: expr(open), item: expr(item), close: expr(close) };
        let (prefix, rest) = (self.prefix.iter().map(|at| place(at)).collect(), place(&self.rest));
        let Items { min, max, repeats, .. } = *self;
        Items { prefix, rest, min, max, contains: self.contains.clone(), repeats, surface }
    }
}
