//! Shorthands written out: every use of a template or of a parametric rule is a rule of its own, attributes become what
//! they mean, and what is ignored stands after every terminal.
//!
//! Only what the start needs is written out, by a list of rules still to write, so that nothing recurses on the text.

use rustc_hash::FxHashMap;
use stencilm_support::HashMap;

use super::attributes;
use super::attributes::Wrapping;
use super::context;
use super::expansion::{Argument, Expansion, Job, Key, Scope, Variant, Within};
use super::names::Names;
use super::terminals;
use super::trailing;
use super::tree::{Part, Unit};
use crate::error::GrammarError;
use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::Mark;
use crate::ir::report::KeptReport;
use crate::ir::syntax_error::SyntaxError;
use crate::notations::ebnf::tree::{Divided, Part as Made, PartId as MadeId, Text};

/// The greatest number of rules that templates and parameters are expanded to.
const MAX_RULES: usize = 50_000;
/// The greatest number of parts of all rules together.
const MAX_PARTS: usize = 4_000_000;

/// The tree of a text, its start rule, and the report of the grammars in it.
pub(super) fn expand(
    builder: &mut GrammarBuilder,
    unit: &Unit,
    start: &str,
    text: &str,
    names: &mut Names<'_>,
) -> Result<(Text, u32, KeptReport), GrammarError> {
    let (tree, reports, rule_names, numbers, embedded, rules) = Default::default();
    let mut expansion = Expansion { builder, tree, names, reports, rule_names, numbers, embedded, rules };
    let root = expansion.unit(unit, start, 0).map_err(|error| error.placed(text))?;
    Ok((expansion.tree, root, KeptReport::joined(expansion.reports)))
}

impl Expansion<'_, '_> {
    /// Expands a text; returns its start rule.
    pub fn unit(&mut self, unit: &Unit, start: &str, place: usize) -> Result<u32, SyntaxError> {
        self.check_names(unit)?;
        let Some((index, _, definition)) = unit.definitions.get_full(start) else {
            let message = format!(
                "no rule is named `{}`, which is where texts start; add `{0}: ...`, or name another start",
                crate::notations::ebnf::escapes::excerpt(start)
            );
            return Err(SyntaxError::at(place, message));
        };
        if !definition.parameters.is_empty() || definition.is_parametric {
            let message = format!("texts start from `{start}`, which needs arguments; add a rule that gives it some");
            return Err(SyntaxError::at(definition.place, message));
        }
        let context = context::definitions(unit)?;
        let mut scope = Scope {
            unit,
            known: HashMap::default(),
            jobs: Vec::new(),
            made: FxHashMap::default(),
            ignored: None,
            nullable: trailing::nullable(unit)?,
            context,
            groups: FxHashMap::default(),
        };
        scope.ignored = self.ignored(&mut scope)?;
        let root = self.rule(&mut scope, index, None, Vec::new(), definition.place)?;
        while let Some(job) = scope.jobs.pop() {
            SyntaxError::check_time(definition.place)?;
            let body = self.definition(&mut scope, &job)?;
            self.tree.names[job.rule as usize].0 = Some(body);
        }
        let mut parts = Vec::new();
        if let Some(ignored) = scope.ignored.filter(|_| unit.options.initial_skip) {
            parts.push(self.tree.add(definition.place, Made::Call(ignored)));
        }
        let call = self.tree.add(definition.place, Made::Call(root));
        parts.push(if definition.is_terminal { self.lexeme(&scope, call) } else { call });
        let body = self.tree.add(definition.place, Made::Sequence(parts));
        let whole = self.named(start, definition.place);
        self.tree.names[whole as usize].0 = Some(body);
        Ok(whole)
    }

    /// Refuses unknown names and attributes, even if they are not used.
    fn check_names(&self, unit: &Unit) -> Result<(), SyntaxError> {
        for (name, &place) in &unit.declared {
            if !unit.definitions.contains_key(name) && self.names.get(name).is_none() {
                let message = format!(
                    "the terminal `{name}` is declared and defined nowhere; give its grammar by this name in `grammars`, \
                     or write `{name}: ...`"
                );
                return Err(SyntaxError::unsupported(place, message));
            }
        }
        for (name, definition) in &unit.definitions {
            attributes::read(unit, name, definition)?;
        }
        for definition in unit.definitions.values().chain(&unit.ignored) {
            for id in unit.parts_of(definition) {
                let Part::Name { name, .. } = unit.part(id) else { continue };
                let is_known = definition.parameters.contains(name)
                    || unit.definitions.contains_key(name)
                    || unit.declared.contains_key(name);
                if !is_known {
                    let common = super::common::COMMON.contains(&format!("\n{name}:"));
                    let way_out = if common { format!("`%import common.{name}`") } else { format!("`{name}: ...`") };
                    let message = format!("`{name}` is used but not defined; add {way_out}");
                    return Err(SyntaxError::at(unit.place(id), message));
                }
            }
        }
        Ok(())
    }

    /// The rule for what may stand between terminals.
    fn ignored(&mut self, scope: &mut Scope<'_>) -> Result<Option<u32>, SyntaxError> {
        let unit = scope.unit;
        let Some(first) = unit.ignored.first() else { return Ok(None) };
        let mut choices = Vec::new();
        for definition in &unit.ignored {
            let made = self.parts(scope, definition, None, &[], Within::Terminal)?;
            choices.push(made);
        }
        let choice = self.tree.add(first.place, Made::Choice(choices));
        let max = if unit.options.skips_repeat { None } else { Some(1) };
        let body = self.tree.add(first.place, Made::Repeat { body: choice, min: 0, max });
        let body = self.tree.add(first.place, Made::Lexeme(body));
        let rule = self.named("ignored", first.place);
        self.tree.names[rule as usize].0 = Some(body);
        Ok(Some(rule))
    }

    /// Adds a rule to the tree with a unique name.
    fn named(&mut self, name: &str, place: usize) -> u32 {
        let mut unique = name.to_string();
        while !self.rule_names.insert(unique.clone()) {
            let number = self.numbers.entry(name.to_string()).or_insert(1);
            *number += 1;
            unique = format!("{name}_{number}");
        }
        self.tree.names.insert_full(unique, (None, place)).0 as u32
    }

    /// The rule for a definition with these arguments and this parameter; if it's new, it's expanded later.
    pub fn rule(
        &mut self,
        scope: &mut Scope<'_>,
        definition: usize,
        parameter: Option<u64>,
        arguments: Vec<Argument>,
        place: usize,
    ) -> Result<u32, SyntaxError> {
        let keys = arguments.iter().map(|argument| argument.key.clone()).collect();
        let key = Key { definition, parameter, arguments: keys, variant: Variant::default() };
        self.rule_of(scope, key, arguments, place)
    }

    /// A variant of a rule without arguments.
    pub fn variant(
        &mut self,
        scope: &mut Scope<'_>,
        definition: usize,
        variant: Variant,
        place: usize,
    ) -> Result<u32, SyntaxError> {
        let key = Key { definition, parameter: None, arguments: Vec::new(), variant };
        self.rule_of(scope, key, Vec::new(), place)
    }

    /// The rule without what is ignored after its last terminal; the same rule if it isn't one of this text.
    pub fn trimmed_rule(&mut self, scope: &mut Scope<'_>, rule: u32, place: usize) -> Result<u32, SyntaxError> {
        let Some((key, arguments)) = scope.made.get(&rule) else { return Ok(rule) };
        let (mut key, arguments) = (key.clone(), arguments.clone());
        key.variant.trimmed = true;
        self.rule_of(scope, key, arguments, place)
    }

    fn rule_of(
        &mut self,
        scope: &mut Scope<'_>,
        key: Key,
        arguments: Vec<Argument>,
        place: usize,
    ) -> Result<u32, SyntaxError> {
        if let Some(&known) = scope.known.get(&key) {
            return Ok(known);
        }
        // Rules that occur once in the text are bounded by its length, so they don't count.
        let is_plain = key.parameter.is_none() && arguments.is_empty() && key.variant == Variant::default();
        self.rules += usize::from(!is_plain);
        if self.rules > MAX_RULES || self.tree.parts.len() > MAX_PARTS {
            let message = format!(
                "the templates and parameters of this grammar make more than {MAX_RULES} rules; use fewer bits or \
                 arguments"
            );
            return Err(SyntaxError::limit(place, message));
        }
        let (name, _) = scope.unit.definitions.get_index(key.definition).expect("definitions are given by position");
        let rule = self.named(name, place);
        scope.known.insert(key.clone(), rule);
        scope.made.insert(rule, (key.clone(), arguments.clone()));
        scope.jobs.push(Job { key, arguments, rule });
        Ok(rule)
    }

    /// The expanded body of a rule.
    fn definition(&mut self, scope: &mut Scope<'_>, job: &Job) -> Result<MadeId, SyntaxError> {
        let (name, definition) =
            scope.unit.definitions.get_index(job.key.definition).expect("definitions are given by position");
        let wrapping = attributes::read(scope.unit, name, definition)?;
        let within = if definition.is_terminal || wrapping.needs_terminal() { Within::Terminal } else { Within::Rule };
        let mut body = self.parts(scope, definition, job.key.parameter, &job.arguments, within)?;
        if definition.is_terminal {
            return Ok(body);
        }
        let Variant { beside, trimmed } = &job.key.variant;
        if !beside.is_empty() && !wrapping.needs_terminal() {
            body = self.with_first_head(scope, definition, body, beside)?;
        }
        let is_nullable = scope.nullable[job.key.definition];
        let beside: &[usize] = if wrapping.needs_terminal() { beside } else { &[] };
        let body = self.wrapped(scope, &wrapping, within, body, (beside, is_nullable))?;
        if *trimmed { self.trimmed(scope, body, 0) } else { Ok(body) }
    }

    /// A body after applying the attributes of its rule.
    fn wrapped(
        &mut self,
        scope: &mut Scope<'_>,
        wrapping: &Wrapping,
        within: Within,
        body: MadeId,
        (beside, is_nullable): (&[usize], bool),
    ) -> Result<MadeId, SyntaxError> {
        let place = self.tree.places[body.index()];
        let ending = self.ending(scope, wrapping)?;
        let (mut body, after) = wrapping.apply(&mut self.tree, self.builder, body, ending, place);
        if let Some(ending) = after.filter(|_| wrapping.divides_pattern()) {
            let whole = if beside.is_empty() { None } else { Some(self.before_heads_alone(scope, place, beside)?) };
            let ending_mark = wrapping.stop_capture.as_ref().map(|name| Mark::Capture(name.as_str().into()));
            let marks = wrapping.marks().collect();
            let parts = Divided { body, ending, whole: whole.flatten(), marks, ending_mark };
            let whole = self.tree.add(place, Made::Divided(Box::new(parts)));
            return Ok(self.followed(scope, whole));
        }
        if !beside.is_empty() {
            body = self.before_heads(scope, body, beside)?;
        }
        // A temperature ends with the last terminal; a rule that may be empty may have none.
        let ends_early =
            within == Within::Rule && !is_nullable && scope.ignored.is_some() && wrapping.has_temperature();
        if ends_early {
            body = self.trimmed(scope, body, 0)?;
        }
        let mut whole = if within == Within::Terminal { self.tree.add(place, Made::Lexeme(body)) } else { body };
        for mark in wrapping.marks() {
            let is_temperature = matches!(mark, Mark::Temperature(_));
            whole = self.tree.add(place, Made::Marked { mark, body: whole });
            if is_temperature && ends_early {
                whole = self.followed(scope, whole);
            }
        }
        if let Some(mut after) = after {
            after = self.tree.add(place, Made::Lexeme(after));
            if let Some(name) = &wrapping.stop_capture {
                let mark = Mark::Capture(name.as_str().into());
                after = self.tree.add(place, Made::Marked { mark, body: after });
            }
            whole = self.tree.add(place, Made::Sequence(vec![whole, after]));
        }
        if within == Within::Terminal { Ok(self.followed(scope, whole)) } else { Ok(whole) }
    }

    /// The part that ends the text of a rule, by its attributes.
    pub fn ending(&mut self, scope: &mut Scope<'_>, wrapping: &Wrapping) -> Result<Option<MadeId>, SyntaxError> {
        let Some(ends) = &wrapping.ends else { return Ok(None) };
        Ok(Some(match terminals::of_value(self.builder, scope.unit, ends)? {
            terminals::Value::Expr(expr) => self.tree.add(ends.place, Made::Terminal(expr)),
            terminals::Value::Name(index) => {
                let rule = self.rule(scope, index, None, Vec::new(), ends.place)?;
                self.tree.add(ends.place, Made::Call(rule))
            }
        }))
    }
}
