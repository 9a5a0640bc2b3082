//! A normalised grammar as EBNF text, rule by rule in the order of their first use.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_support::HashSet;

use super::escapes;
use super::print_containers::{array, object};
use super::print_expr::{ExprPrinter, Place, write_count};
use super::print_steps::Step;
use crate::ir::exprs::expressions;
use crate::ir::grammar::{Grammar, Mark, NameSet, Node, NodeId, RuleId, TokenPattern};

/// The printed name of the root rule.
const ROOT: &str = "root";

struct Printer<'a, M> {
    grammar: &'a Grammar,
    may_go_on: M,
    exprs: ExprPrinter,
    names: FxHashMap<RuleId, String>,
    rules: VecDeque<RuleId>,
    out: String,
}

/// The text of a grammar, for as long as `may_go_on` allows.
pub(super) fn print<E>(grammar: &Grammar, may_go_on: impl Fn() -> Result<(), E>) -> Result<String, E> {
    let mut roots = Vec::new();
    for node in &grammar.nodes {
        may_go_on()?;
        expressions(grammar, node, |expr| roots.push(expr));
    }
    let exprs = ExprPrinter::new(&grammar.exprs, &roots, &may_go_on)?;
    let (names, rules, out) = Default::default();
    let mut printer = Printer { grammar, may_go_on, exprs, names, rules, out };
    printer.name_rules()?;
    printer.begun();
    let root = match *grammar.node(grammar.root) {
        Node::Rule(rule) => grammar.rule(rule).body,
        _ => grammar.root,
    };
    printer.rule(ROOT.to_string(), root)?;
    while let Some(rule) = printer.rules.pop_front() {
        if *grammar.node(grammar.root) != Node::Rule(rule) {
            let name = printer.names[&rule].clone();
            printer.rule(name, grammar.rule(rule).body)?;
        }
    }
    let Printer { mut exprs, mut out, may_go_on, .. } = printer;
    exprs.write_definitions(&mut out, may_go_on)?;
    Ok(out)
}

impl<E, M: Fn() -> Result<(), E>> Printer<'_, M> {
    /// Prints what stands before every text: characters as texts, other bytes one by one.
    fn begun(&mut self) {
        let begun = self.grammar.begun();
        if begun.is_empty() {
            return;
        }
        self.out.push_str("%begun");
        for chunk in begun.utf8_chunks() {
            if !chunk.valid().is_empty() {
                self.out.push(' ');
                escapes::write_text(&mut self.out, chunk.valid());
            }
            for byte in chunk.invalid() {
                self.out.push_str(&format!(" %bytes[{byte:02X}]"));
            }
        }
        self.out.push('\n');
    }

    /// Gives every rule a unique name that the notation can spell, and lists the rules in the order of their first use.
    fn name_rules(&mut self) -> Result<(), E> {
        let mut taken: HashSet<String> = HashSet::from_iter([ROOT.to_string()]);
        let mut work = vec![self.grammar.root];
        let mut seen: FxHashSet<RuleId> = FxHashSet::default();
        let mut order = VecDeque::new();
        // Depth first within a rule, rule by rule: the order in which printing reaches them.
        let mut waiting: VecDeque<NodeId> = VecDeque::new();
        loop {
            (self.may_go_on)()?;
            let Some(id) = work.pop() else {
                let Some(body) = waiting.pop_front() else { break };
                work.push(body);
                continue;
            };
            let node = self.grammar.node(id);
            if let Node::Rule(rule) = *node
                && seen.insert(rule)
            {
                order.push_back(rule);
                waiting.push_back(self.grammar.rule(rule).body);
            }
            work.extend(crate::passes::children(self.grammar, node).into_iter().rev());
        }
        for &rule in &order {
            let name = if *self.grammar.node(self.grammar.root) == Node::Rule(rule) {
                ROOT.to_string()
            } else {
                let plain = spelled(&self.grammar.rule(rule).name);
                let mut name = plain.clone();
                let mut number = 1;
                while !taken.insert(name.clone()) {
                    number += 1;
                    name = format!("{plain}_{number}");
                }
                name
            };
            self.names.insert(rule, name);
        }
        self.rules = order;
        self.exprs.taken = taken;
        Ok(())
    }

    fn rule(&mut self, name: String, body: NodeId) -> Result<(), E> {
        self.out.push_str(&name);
        self.out.push_str(" ::= ");
        let mut work = vec![Step::Node(body, Place::Alternatives)];
        while let Some(step) = work.pop() {
            (self.may_go_on)()?;
            match step {
                Step::Text(text) => self.out.push_str(text),
                Step::Owned(text) => self.out.push_str(&text),
                Step::Count(min, max) => write_count(&mut self.out, min, max),
                Step::Expr(expr) => self.exprs.write(&mut self.out, expr, Place::Alternatives, &self.may_go_on)?,
                Step::Node(id, place) => {
                    let inner = self.node(id, place);
                    work.extend(inner.into_iter().rev());
                }
            }
        }
        self.out.push('\n');
        Ok(())
    }

    fn node(&mut self, id: NodeId, place: Place) -> Vec<Step> {
        let grouped = |needed: bool, mut steps: Vec<Step>| {
            if needed {
                steps.insert(0, Step::Text("("));
                steps.push(Step::Text(")"));
            }
            steps
        };
        match self.grammar.node(id) {
            &Node::Lexeme(expr) if self.exprs.is_word(expr) => vec![Step::Expr(expr)],
            &Node::Lexeme(expr) => vec![Step::Text("%lexeme("), Step::Expr(expr), Step::Text(")")],
            Node::Sequence(parts) if parts.is_empty() => vec![Step::Text("\"\"")],
            Node::Choice(parts) if parts.is_empty() => vec![Step::Text("%bytes[]")],
            Node::Sequence(parts) => grouped(place > Place::Operand, listed(parts, " ", Place::Item)),
            Node::Choice(parts) => grouped(place > Place::Alternatives, listed(parts, " | ", Place::Operand)),
            &Node::Repeat { body, min, max } => {
                let steps = vec![Step::Node(body, Place::Repeated), Step::Count(min, max)];
                grouped(place == Place::Repeated, steps)
            }
            Node::Rule(rule) => vec![Step::Owned(self.names[rule].clone())],
            Node::Token(pattern) => vec![Step::Owned(token(pattern))],
            Node::Marked { mark, body } => {
                vec![Step::Owned(marked(mark)), Step::Node(*body, Place::Alternatives), Step::Text(")")]
            }
            Node::Members(members) => object(self.grammar.members(*members)),
            Node::Items(items) => array(self.grammar.items(*items)),
        }
    }
}

fn listed(parts: &[NodeId], between: &'static str, place: Place) -> Vec<Step> {
    let mut steps = Vec::with_capacity(parts.len() * 2);
    for (index, &part) in parts.iter().enumerate() {
        if index > 0 {
            steps.push(Step::Text(between));
        }
        steps.push(Step::Node(part, place));
    }
    steps
}

/// A name in which characters that the notation cannot spell are replaced.
fn spelled(name: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
    let mut spelled: String = name.chars().map(|c| if is_name(c) { c } else { '_' }).collect();
    if !spelled.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        spelled.insert(0, '_');
    }
    spelled
}

/// A mark, up to the part that it applies to.
fn marked(mark: &Mark) -> String {
    match mark {
        Mark::Capture(name) if spelled(name) == **name => format!("{name}@("),
        Mark::Capture(name) => {
            let mut shown = String::new();
            escapes::write_text(&mut shown, name);
            shown + "@("
        }
        Mark::MaxTokens(count) => format!("%max_tokens({count}: "),
        Mark::Temperature(temperature) => format!("%temperature({}: ", temperature.value()),
        Mark::Declares(set) => named("%declares", set),
        Mark::Refers(set) => named("%refers", set),
    }
}

/// A declaration or reference, up to the part that it applies to.
fn named(keyword: &str, set: &NameSet) -> String {
    let mut shown = format!("{keyword}{}(", if set.quoted { "_string" } else { "" });
    escapes::write_text(&mut shown, &set.name);
    shown + ": "
}

fn token(pattern: &TokenPattern) -> String {
    match pattern {
        TokenPattern::Special(name) => {
            let inner = name.strip_prefix("<|").and_then(|rest| rest.strip_suffix("|>"));
            if inner.is_some_and(|inner| !inner.is_empty() && !inner.contains("|>") && !inner.contains('\n')) {
                return name.to_string();
            }
            let mut shown = "%token(".to_string();
            escapes::write_text(&mut shown, name);
            shown + ")"
        }
        TokenPattern::IfSpecial(name) => {
            let mut shown = "%if_token(".to_string();
            escapes::write_text(&mut shown, name);
            shown + ")"
        }
        TokenPattern::Others { ids, names } => {
            let mut shown = "%other_tokens(".to_string();
            for (index, id) in ids.iter().enumerate() {
                shown += if index > 0 { " " } else { "" };
                shown += &id.to_string();
            }
            for (index, name) in names.iter().enumerate() {
                shown += if index + ids.len() > 0 { " " } else { "" };
                escapes::write_text(&mut shown, name);
            }
            shown + ")"
        }
        TokenPattern::Ids { ranges, negated } => {
            let ranges = ranges.iter().map(
                |(first, last)| {
                    if first == last { first.to_string() } else { format!("{first}-{last}") }
                },
            );
            let ranges: Vec<String> = ranges.collect();
            format!("<[{}{}]>", if *negated { "^" } else { "" }, ranges.join(","))
        }
    }
}
