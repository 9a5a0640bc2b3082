//! Shorthands written out: every use of a template or of a parametric rule is a rule of its own, attributes become what
//! they mean, and what is ignored stands behind every terminal.
//!
//! Only what the start needs is written out, by a list of rules still to write, so that nothing recurses on the text.

use rustc_hash::FxHashMap;
use stencilm_regex::ExprId;

use super::Names;
use super::attributes::{self, Wrapping};
use super::context;
use super::terminals;
use super::tree::{Definition, Part, PartId, Unit};
use crate::builder::GrammarBuilder;
use crate::ebnf::tree::{Part as Made, PartId as MadeId, Text};
use crate::error::GrammarError;
use crate::grammar::{Mark, NodeId};
use crate::report::Report;
use crate::syntax_error::SyntaxError;

/// Most rules that templates and parameters may be written out to.
const MAX_RULES: usize = 50_000;
/// Most parts of all of them together.
const MAX_PARTS: usize = 4_000_000;
/// Longest description of the arguments of a template.
const MAX_KEY: usize = 10_000;

/// A rule that is written out once for its arguments and its parameter.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    definition: usize,
    parameter: Option<u64>,
    /// The arguments as they are written, with those of templates around them filled in.
    arguments: Vec<String>,
}

/// What a parameter of a template stands for.
#[derive(Clone)]
pub(super) struct Argument {
    part: MadeId,
    is_terminal: bool,
    key: String,
}

struct Job {
    key: Key,
    arguments: Vec<Argument>,
    /// The rule of the tree that it becomes.
    rule: u32,
}

/// Whether blanks may stand between parts, and rules among them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    Rule,
    Terminal,
}

/// One text, or one grammar in braces, being written out.
pub(super) struct Scope<'u> {
    pub unit: &'u Unit,
    known: FxHashMap<Key, u32>,
    jobs: Vec<Job>,
    /// The rule of what is ignored.
    ignored: Option<u32>,
    /// The terminals that depend on what stands around them, and the texts of their alternatives.
    pub context: Vec<bool>,
    groups: FxHashMap<PartId, Vec<(ExprId, ExprId)>>,
}

pub(super) struct Expansion<'a, 'n> {
    pub builder: &'a mut GrammarBuilder,
    pub tree: Text,
    pub names: &'a mut Names<'n>,
    pub report: Report,
    pub rule_names: rustc_hash::FxHashSet<String>,
    /// How many rules of a name there are.
    numbers: FxHashMap<String, u32>,
    pub embedded: FxHashMap<String, NodeId>,
    rules: usize,
}

/// The tree of a text, the rule that it starts from, and the report of the grammars in it.
pub(super) fn expand(
    builder: &mut GrammarBuilder,
    unit: &Unit,
    start: &str,
    text: &str,
    names: &mut Names<'_>,
) -> Result<(Text, u32, Report), GrammarError> {
    let (tree, report, rule_names, numbers, embedded, rules) = Default::default();
    let mut expansion = Expansion { builder, tree, names, report, rule_names, numbers, embedded, rules };
    let root = expansion.unit(unit, start, 0).map_err(|error| error.placed(text))?;
    Ok((expansion.tree, root, expansion.report))
}

impl Expansion<'_, '_> {
    /// Writes a text out; gives the rule that it starts from.
    fn unit(&mut self, unit: &Unit, start: &str, place: usize) -> Result<u32, SyntaxError> {
        self.check_names(unit)?;
        let Some((index, _, definition)) = unit.definitions.get_full(start) else {
            let message = format!(
                "no rule is named `{}`, which is where texts start; add `{0}: ...`, or name another start",
                crate::ebnf::escapes::excerpt(start)
            );
            return Err(SyntaxError::at(place, message));
        };
        if !definition.parameters.is_empty() || definition.is_parametric {
            let message = format!("texts start from `{start}`, which needs arguments; add a rule that gives it some");
            return Err(SyntaxError::at(definition.place, message));
        }
        let context = context::definitions(unit);
        let mut scope = Scope {
            unit,
            known: FxHashMap::default(),
            jobs: Vec::new(),
            ignored: None,
            context,
            groups: FxHashMap::default(),
        };
        scope.ignored = self.ignored(&mut scope)?;
        let root = self.rule(&mut scope, index, None, Vec::new(), definition.place)?;
        while let Some(job) = scope.jobs.pop() {
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

    /// Refuses names and attributes that mean nothing, used or not.
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

    /// The rule of what may stand between terminals.
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

    /// Adds a rule to the tree under a name that no other has.
    fn named(&mut self, name: &str, place: usize) -> u32 {
        let mut unique = name.to_string();
        while !self.rule_names.insert(unique.clone()) {
            let number = self.numbers.entry(name.to_string()).or_insert(1);
            *number += 1;
            unique = format!("{name}_{number}");
        }
        self.tree.names.insert_full(unique, (None, place)).0 as u32
    }

    /// The rule of a definition with these arguments and this parameter, written out later if it is new.
    pub fn rule(
        &mut self,
        scope: &mut Scope<'_>,
        definition: usize,
        parameter: Option<u64>,
        arguments: Vec<Argument>,
        place: usize,
    ) -> Result<u32, SyntaxError> {
        let keys = arguments.iter().map(|argument| argument.key.clone()).collect();
        let key = Key { definition, parameter, arguments: keys };
        if let Some(&known) = scope.known.get(&key) {
            return Ok(known);
        }
        // What is written once for itself is bounded by the text.
        self.rules += usize::from(parameter.is_some() || !arguments.is_empty());
        if self.rules > MAX_RULES || self.tree.parts.len() > MAX_PARTS {
            let message = format!(
                "the templates and parameters of this grammar make more than {MAX_RULES} rules; use fewer bits or \
                 arguments"
            );
            return Err(SyntaxError::limit(place, message));
        }
        let (name, _) = scope.unit.definitions.get_index(definition).expect("definitions are given by position");
        let rule = self.named(name, place);
        scope.known.insert(key.clone(), rule);
        scope.jobs.push(Job { key, arguments, rule });
        Ok(rule)
    }

    /// The body of a rule.
    fn definition(&mut self, scope: &mut Scope<'_>, job: &Job) -> Result<MadeId, SyntaxError> {
        let (name, definition) =
            scope.unit.definitions.get_index(job.key.definition).expect("definitions are given by position");
        let wrapping = attributes::read(scope.unit, name, definition)?;
        let within = if definition.is_terminal || wrapping.needs_terminal() { Within::Terminal } else { Within::Rule };
        let body = self.parts(scope, definition, job.key.parameter, &job.arguments, within)?;
        if definition.is_terminal {
            return Ok(body);
        }
        self.wrapped(scope, &wrapping, within, body)
    }

    /// A body with what the attributes of its rule make of it.
    fn wrapped(
        &mut self,
        scope: &mut Scope<'_>,
        wrapping: &Wrapping,
        within: Within,
        body: MadeId,
    ) -> Result<MadeId, SyntaxError> {
        let place = self.tree.places[body.index()];
        let ending = self.ending(scope, wrapping)?;
        let (body, behind) = wrapping.apply(&mut self.tree, self.builder, body, ending, place);
        let mut whole = if within == Within::Terminal { self.tree.add(place, Made::Lexeme(body)) } else { body };
        for mark in wrapping.marks() {
            whole = self.tree.add(place, Made::Marked { mark, body: whole });
        }
        if let Some(mut behind) = behind {
            behind = self.tree.add(place, Made::Lexeme(behind));
            if let Some(name) = &wrapping.stop_capture {
                let mark = Mark::Capture(name.as_str().into());
                behind = self.tree.add(place, Made::Marked { mark, body: behind });
            }
            whole = self.tree.add(place, Made::Sequence(vec![whole, behind]));
        }
        if within == Within::Terminal { Ok(self.followed(scope, whole)) } else { Ok(whole) }
    }

    /// What ends the text of a rule, by its attributes.
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

    /// A terminal as one lexeme, with what may be ignored behind it.
    pub fn lexeme(&mut self, scope: &Scope<'_>, part: MadeId) -> MadeId {
        let place = self.tree.places[part.index()];
        let lexeme = self.tree.add(place, Made::Lexeme(part));
        self.followed(scope, lexeme)
    }

    pub fn followed(&mut self, scope: &Scope<'_>, part: MadeId) -> MadeId {
        let place = self.tree.places[part.index()];
        match scope.ignored {
            Some(ignored) => {
                let ignored = self.tree.add(place, Made::Call(ignored));
                self.tree.add(place, Made::Sequence(vec![part, ignored]))
            }
            None => part,
        }
    }

    /// All parts of a definition, written out.
    pub fn parts(
        &mut self,
        scope: &mut Scope<'_>,
        definition: &Definition,
        parameter: Option<u64>,
        arguments: &[Argument],
        within: Within,
    ) -> Result<MadeId, SyntaxError> {
        let unit = scope.unit;
        let first = definition.first.index();
        let mut needs = vec![within; definition.body.index() - first + 1];
        // Parts of alternatives that are not there for this parameter lead to no rules.
        let mut gone = vec![false; needs.len()];
        for id in unit.parts_of(definition).collect::<Vec<_>>().into_iter().rev() {
            let need = match unit.part(id) {
                Part::And(_) | Part::Not(_) => Within::Terminal,
                Part::Name { name, .. } => match unit.definitions.get(name) {
                    Some(used) if used.is_terminal => Within::Terminal,
                    _ => Within::Rule,
                },
                _ => needs[id.index() - first],
            };
            let is_gone = gone[id.index() - first]
                || matches!(unit.part(id), Part::When(_, condition)
                    if parameter.is_some_and(|parameter| !condition.holds(parameter)));
            for child in unit.part(id).children() {
                needs[child.index() - first] = need;
                gone[child.index() - first] = is_gone;
            }
        }
        // The part that each has become, and how it would be written as an argument.
        let mut made: Vec<MadeId> = Vec::with_capacity(needs.len());
        let mut keys: Vec<String> = Vec::new();
        let has_arguments = unit
            .parts_of(definition)
            .any(|id| matches!(unit.part(id), Part::Name { arguments, .. } if !arguments.is_empty()));
        for id in unit.parts_of(definition) {
            let within = needs[id.index() - first];
            let of = |child: &PartId| made[child.index() - first];
            let place = unit.place(id);
            if has_arguments {
                let argument = match unit.part(id) {
                    Part::Name { name, .. } => definition.parameters.iter().position(|known| known == name),
                    _ => None,
                };
                let key = match argument {
                    Some(argument) => arguments[argument].key.clone(),
                    None => key_of(unit.part(id), parameter, |child| &keys[child.index() - first]),
                };
                if key.len() > MAX_KEY {
                    let message = format!("the arguments of this template take more than {MAX_KEY} characters");
                    return Err(SyntaxError::limit(place, message));
                }
                keys.push(key);
            }
            if gone[id.index() - first] {
                made.push(self.tree.add(place, Made::Choice(Vec::new())));
                continue;
            }
            let part = match unit.part(id) {
                Part::Sequence(parts) => {
                    let mut made: Vec<MadeId> = parts.iter().map(of).collect();
                    if within == Within::Rule {
                        self.end_texts_before_heads(scope, parts, &mut made)?;
                    }
                    Made::Sequence(made)
                }
                Part::Choice(parts) => Made::Choice(parts.iter().map(of).collect()),
                Part::Repeat { body, min, max } => Made::Repeat { body: of(body), min: *min, max: *max },
                Part::When(body, condition) => {
                    let Some(parameter) = parameter else {
                        let message = "a condition needs the parameter of its rule; write `rule::_ : ...`";
                        return Err(SyntaxError::at(place, message));
                    };
                    let there = condition.holds(parameter).then(|| of(body));
                    Made::Choice(there.into_iter().collect())
                }
                Part::And(_) | Part::Not(_) | Part::Text(..) | Part::Pattern(..) | Part::Range(..) | Part::Regex(_) => {
                    if matches!(unit.part(id), Part::Pattern(pattern, _) if context::is_context(pattern)) {
                        made.push(self.in_context(scope, &[id], within, place)?);
                        continue;
                    }
                    let terminal = match unit.part(id) {
                        Part::And(parts) => Made::And(parts.iter().map(of).collect()),
                        Part::Not(body) => Made::Complement(of(body)),
                        other => Made::Terminal(terminals::expr(self.builder, place, other)?),
                    };
                    let is_empty = matches!(terminal, Made::Terminal(ExprId::EMPTY));
                    let terminal = self.tree.add(place, terminal);
                    let wraps = within == Within::Rule && !is_empty;
                    made.push(if wraps { self.lexeme(scope, terminal) } else { terminal });
                    continue;
                }
                Part::Name { name, arguments: given, parameter: use_of } => {
                    let argument = definition.parameters.iter().position(|known| known == name);
                    if let Some(argument) = argument {
                        let Argument { part, is_terminal, .. } = arguments[argument].clone();
                        if within == Within::Terminal && !is_terminal {
                            let message = format!(
                                "the argument `{name}` of a rule stands within a terminal; make the template a terminal, \
                                 with a capital name"
                            );
                            return Err(SyntaxError::at(place, message));
                        }
                        made.push(part);
                        continue;
                    }
                    let Some((index, _, used)) = unit.definitions.get_full(name) else {
                        // Declared here, and given from outside.
                        made.push(self.foreign(scope, name, within, place)?);
                        continue;
                    };
                    check_use(name, used, within, given.len(), use_of.is_some(), place)?;
                    if scope.context[index] {
                        let alternatives = match unit.part(used.body) {
                            Part::Choice(parts) => parts.clone(),
                            _ => vec![used.body],
                        };
                        made.push(self.in_context(scope, &alternatives, within, place)?);
                        continue;
                    }
                    let parameter = use_of.map(|use_of| use_of.of(parameter.unwrap_or(0)));
                    let given = given.iter().map(|child| {
                        let (part, key) = (of(child), keys[child.index() - first].clone());
                        Argument { part, is_terminal: used.is_terminal, key }
                    });
                    let given: Vec<Argument> = given.collect();
                    let rule = self.rule(scope, index, parameter, given, place)?;
                    let call = self.tree.add(place, Made::Call(rule));
                    let wraps = used.is_terminal && within == Within::Rule;
                    made.push(if wraps { self.lexeme(scope, call) } else { call });
                    continue;
                }
                other if within == Within::Terminal => {
                    let what = match other {
                        Part::Token(_) => "a token of the model",
                        Part::Json(_) => "%json",
                        Part::Nested(_) => "%lark",
                        _ => "a named grammar",
                    };
                    let message = format!("{what} stands within a terminal, which is made of text only; use a rule");
                    return Err(SyntaxError::at(place, message));
                }
                Part::Token(pattern) => {
                    let token = self.tree.add(place, Made::Token(pattern.clone()));
                    made.push(self.followed(scope, token));
                    continue;
                }
                Part::Grammar(name) => {
                    made.push(self.foreign(scope, name, within, place)?);
                    continue;
                }
                Part::Json(schema) => {
                    let node = self.json(schema, place)?;
                    let part = self.tree.add(place, Made::Node(node));
                    made.push(self.followed(scope, part));
                    continue;
                }
                Part::Nested(index) => {
                    let rule = self.unit(&unit.nested[*index], "start", place)?;
                    let call = self.tree.add(place, Made::Call(rule));
                    made.push(self.followed(scope, call));
                    continue;
                }
            };
            made.push(self.tree.add(place, part));
        }
        Ok(*made.last().expect("a definition has a body"))
    }

    /// The alternatives of a terminal that depends on what stands around it.
    fn in_context(
        &mut self,
        scope: &mut Scope<'_>,
        alternatives: &[PartId],
        within: Within,
        place: usize,
    ) -> Result<MadeId, SyntaxError> {
        let mut choices = Vec::new();
        for &part in alternatives {
            let groups = match scope.groups.get(&part) {
                Some(known) => known.clone(),
                None => {
                    let of_text = scope.unit.place(part);
                    let groups = context::groups(&mut self.builder.exprs, scope.unit, part, of_text)?;
                    scope.groups.insert(part, groups.clone());
                    groups
                }
            };
            for (texts, behind) in groups {
                let texts = self.tree.add(place, Made::Terminal(texts));
                if behind == ExprId::ANYTHING {
                    choices.push(texts);
                    continue;
                }
                if within == Within::Terminal {
                    let message = "this look-ahead may reach beyond its terminal, which stands within another; write what the \
                                   other one must not contain instead";
                    return Err(SyntaxError::unsupported(place, message));
                }
                let behind = self.tree.add(place, Made::Ahead(behind));
                choices.push(self.tree.add(place, Made::Sequence(vec![texts, behind])));
            }
        }
        let whole = self.tree.add(place, Made::Choice(choices));
        Ok(if within == Within::Rule { self.followed(scope, whole) } else { whole })
    }
}

fn check_use(
    name: &str,
    used: &Definition,
    within: Within,
    arguments: usize,
    has_parameter: bool,
    place: usize,
) -> Result<(), SyntaxError> {
    let wrong = |message: String| Err(SyntaxError::at(place, message));
    if within == Within::Terminal && !used.is_terminal {
        return wrong(format!(
            "the rule `{name}` stands within a terminal, which is made of text and terminals only; give it a capital name"
        ));
    }
    if used.parameters.len() != arguments {
        let takes = match used.parameters.len() {
            0 => "no arguments".to_string(),
            1 => "one argument".to_string(),
            count => format!("{count} arguments"),
        };
        return wrong(format!("`{name}` takes {takes}; the number given is {arguments}"));
    }
    match (used.is_parametric, has_parameter) {
        (true, false) => wrong(format!("`{name}` has a parameter; write `{name}::_`, or with a number")),
        (false, true) => wrong(format!("`{name}` has no parameter; define it as `{name}::_ : ...`")),
        _ => Ok(()),
    }
}

/// How a part is written; equal texts are equal parts.
fn key_of<'k>(part: &Part, parameter: Option<u64>, key: impl Fn(&PartId) -> &'k String) -> String {
    let listed = |parts: &[PartId]| parts.iter().map(|part| key(part).as_str()).collect::<Vec<_>>().join(" ");
    match part {
        Part::Name { name, arguments: given, parameter: use_of } => {
            let parameter = use_of.map(|use_of| use_of.of(parameter.unwrap_or(0)));
            format!("{name}{{{}}}{parameter:?}", listed(given))
        }
        Part::Sequence(parts) => format!("({})", listed(parts)),
        Part::Choice(parts) => format!("|({})", listed(parts)),
        Part::And(parts) => format!("&({})", listed(parts)),
        Part::Not(body) => format!("~{}", key(body)),
        Part::Repeat { body, min, max } => format!("{}{{{min},{max:?}}}", key(body)),
        Part::When(body, condition) => format!("{} if {condition:?}", key(body)),
        other => format!("{other:?}"),
    }
}
