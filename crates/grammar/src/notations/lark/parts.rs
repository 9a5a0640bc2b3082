//! The parts of a definition written out: what each becomes in the tree of EBNF, for these arguments and this
//! parameter.

use stencilm_regex::ExprId;

use super::context;
use super::expansion::{Argument, Expansion, Scope, Within};
use super::patterns;
use super::terminals;
use super::tree::{Definition, Part, PartId, Unit};
use crate::ir::grammar::{Mark, NameSet};
use crate::ir::syntax_error::SyntaxError;
use crate::notations::ebnf::tree::{Part as Made, PartId as MadeId};

/// The greatest length of the description of a template's arguments.
const MAX_KEY: usize = 10_000;

/// The state while a definition is expanded for these arguments and this parameter.
struct Body<'d> {
    definition: &'d Definition,
    parameter: Option<u64>,
    arguments: &'d [Argument],
    /// The index of its first part; the lists below start there.
    first: usize,
    /// For each part, whether it is in a terminal.
    needs: Vec<Within>,
    /// For each part, whether it is in an alternative that doesn't exist for this parameter: no rules are made for it.
    gone: Vec<bool>,
    /// The expanded parts.
    made: Vec<MadeId>,
    /// The written form of each part as an argument, if the definition has arguments.
    keys: Vec<String>,
}

impl<'d> Body<'d> {
    fn new(
        unit: &Unit,
        definition: &'d Definition,
        parameter: Option<u64>,
        arguments: &'d [Argument],
        within: Within,
    ) -> Body<'d> {
        let first = definition.first.index();
        let mut needs = vec![within; definition.body.index() - first + 1];
        let mut gone = vec![false; needs.len()];
        for id in unit.parts_of(definition).collect::<Vec<_>>().into_iter().rev() {
            let need = match unit.part(id) {
                Part::And(_) | Part::Not(_) | Part::Declares(..) => Within::Terminal,
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
        let (made, keys) = (Vec::with_capacity(needs.len()), Vec::new());
        Body { definition, parameter, arguments, first, needs, gone, made, keys }
    }

    /// The expansion of a part.
    fn of(&self, part: PartId) -> MadeId {
        self.made[part.index() - self.first]
    }

    /// The argument for a name.
    fn argument(&self, name: &str) -> Option<&'d Argument> {
        let place = self.definition.parameters.iter().position(|known| known == name)?;
        Some(&self.arguments[place])
    }

    /// The written form of a part as an argument.
    fn key(&self, part: &Part) -> String {
        let argument = match part {
            Part::Name { name, .. } => self.argument(name),
            _ => None,
        };
        match argument {
            Some(argument) => argument.key.clone(),
            None => key_of(part, self.parameter, |child| &self.keys[child.index() - self.first]),
        }
    }
}

impl Expansion<'_, '_> {
    /// Expands all parts of a definition.
    pub fn parts(
        &mut self,
        scope: &mut Scope<'_>,
        definition: &Definition,
        parameter: Option<u64>,
        arguments: &[Argument],
        within: Within,
    ) -> Result<MadeId, SyntaxError> {
        let unit = scope.unit;
        let mut body = Body::new(unit, definition, parameter, arguments, within);
        let has_arguments = unit
            .parts_of(definition)
            .any(|id| matches!(unit.part(id), Part::Name { arguments, .. } if !arguments.is_empty()));
        for id in unit.parts_of(definition) {
            let place = unit.place(id);
            SyntaxError::check_time(place)?;
            if has_arguments {
                let key = body.key(unit.part(id));
                if key.len() > MAX_KEY {
                    let message = format!("the arguments of this template take more than {MAX_KEY} characters");
                    return Err(SyntaxError::limit(place, message));
                }
                body.keys.push(key);
            }
            let made = match body.gone[id.index() - body.first] {
                true => self.tree.add(place, Made::Choice(Vec::new())),
                false => self.part(scope, &body, id)?,
            };
            body.made.push(made);
        }
        Ok(*body.made.last().expect("a definition has a body"))
    }

    /// Expands a part that is a terminal; it becomes a lexeme where a rule uses it.
    fn terminal(&mut self, scope: &mut Scope<'_>, body: &Body<'_>, id: PartId) -> Result<MadeId, SyntaxError> {
        let place = scope.unit.place(id);
        let terminal = match scope.unit.part(id) {
            Part::And(parts) => Made::And(parts.iter().map(|&part| body.of(part)).collect()),
            Part::Not(part) => Made::Complement(body.of(*part)),
            Part::Symbols(table) => Made::Terminal(self.names.symbols.expr(&mut self.builder.exprs, table, place)?),
            other => Made::Terminal(terminals::expr(self.builder, place, other)?),
        };
        let is_empty = matches!(terminal, Made::Terminal(ExprId::EMPTY));
        let terminal = self.tree.add(place, terminal);
        let wraps = body.needs[id.index() - body.first] == Within::Rule && !is_empty;
        Ok(if wraps { self.lexeme(scope, terminal) } else { terminal })
    }

    /// Expands one part, after the parts inside it.
    fn part(&mut self, scope: &mut Scope<'_>, body: &Body<'_>, id: PartId) -> Result<MadeId, SyntaxError> {
        let unit = scope.unit;
        let place = unit.place(id);
        let within = body.needs[id.index() - body.first];
        let of = |child: &PartId| body.of(*child);
        let part = match unit.part(id) {
            Part::Sequence(parts) => {
                let mut made: Vec<MadeId> = parts.iter().map(of).collect();
                if within == Within::Rule {
                    self.end_texts_before_heads(scope, parts, &mut made)?;
                }
                Made::Sequence(made)
            }
            Part::Choice(parts) => {
                let mut made: Vec<MadeId> = parts.iter().map(of).collect();
                if within == Within::Rule {
                    self.end_at_first_heads(scope, parts, &mut made)?;
                }
                Made::Choice(made)
            }
            Part::Repeat { body, min, max } => Made::Repeat { body: of(body), min: *min, max: *max },
            Part::When(inner, condition) => {
                let Some(parameter) = body.parameter else {
                    let message = "a condition needs the parameter of its rule; write `rule::_ : ...`";
                    return Err(SyntaxError::at(place, message));
                };
                let there = condition.holds(parameter).then(|| of(inner));
                Made::Choice(there.into_iter().collect())
            }
            Part::Pattern(pattern, _) if patterns::is_context(pattern) => {
                return self.in_context(scope, &[id], within, place);
            }
            Part::And(_)
            | Part::Not(_)
            | Part::Text(..)
            | Part::Pattern(..)
            | Part::Range(..)
            | Part::Regex(_)
            | Part::Symbols(_) => {
                return self.terminal(scope, body, id);
            }
            Part::Name { .. } => return self.use_of_name(scope, body, id),
            other if within == Within::Terminal => {
                let what = named(other);
                let message = format!("{what} stands within a terminal, which is made of text only; use a rule");
                return Err(SyntaxError::at(place, message));
            }
            Part::Declares(name, body) => {
                let body = self.tree.add(place, Made::Lexeme(of(body)));
                return Ok(self.name(scope, Mark::Declares, name, body));
            }
            Part::Refers(name) => {
                // What a reference matches is known only after all declarations, so it's set later.
                let body = self.tree.add(place, Made::Terminal(ExprId::NOTHING));
                return Ok(self.name(scope, Mark::Refers, name, body));
            }
            Part::Grammar(name) => return self.foreign(scope, name, within, place),
            Part::Token(pattern) => {
                let token = self.tree.add(place, Made::Token(pattern.clone()));
                return Ok(self.followed(scope, token));
            }
            Part::Json(schema) => {
                let node = self.json(schema, place)?;
                let part = self.tree.add(place, Made::Node(node));
                return Ok(self.followed(scope, part));
            }
            Part::Nested(index) => {
                let rule = self.unit(&unit.nested[*index], "start", place)?;
                let call = self.tree.add(place, Made::Call(rule));
                return Ok(self.followed(scope, call));
            }
        };
        Ok(self.tree.add(place, part))
    }

    /// A part that declares a name of a set or refers to one.
    fn name(&mut self, scope: &Scope<'_>, mark: fn(NameSet) -> Mark, set: &str, body: MadeId) -> MadeId {
        let mark = mark(NameSet { name: set.into(), quoted: false });
        let part = self.tree.add(self.tree.places[body.index()], Made::Marked { mark, body });
        self.followed(scope, part)
    }

    /// The use of a name: of an argument, of a definition, or of a grammar given by the caller.
    fn use_of_name(&mut self, scope: &mut Scope<'_>, body: &Body<'_>, id: PartId) -> Result<MadeId, SyntaxError> {
        let unit = scope.unit;
        let place = unit.place(id);
        let within = body.needs[id.index() - body.first];
        let Part::Name { name, arguments: given, parameter: use_of } = unit.part(id) else {
            unreachable!("only names are asked for")
        };
        if let Some(Argument { part, is_terminal, .. }) = body.argument(name) {
            if within == Within::Terminal && !is_terminal {
                let message = format!(
                    "the argument `{name}` of a rule stands within a terminal; make the template a terminal, \
                     with a capital name"
                );
                return Err(SyntaxError::at(place, message));
            }
            return Ok(*part);
        }
        let Some((index, _, used)) = unit.definitions.get_full(name) else {
            // Declared here and given by the caller.
            return self.foreign(scope, name, within, place);
        };
        check_use(name, used, within, given.len(), use_of.is_some(), place)?;
        if scope.context[index] {
            let alternatives = match unit.part(used.body) {
                Part::Choice(parts) => parts.clone(),
                _ => vec![used.body],
            };
            return self.in_context(scope, &alternatives, within, place);
        }
        let parameter = use_of.map(|use_of| use_of.of(body.parameter.unwrap_or(0)));
        let given = given.iter().map(|child| {
            let (part, key) = (body.of(*child), body.keys[child.index() - body.first].clone());
            Argument { part, is_terminal: used.is_terminal, key }
        });
        let given: Vec<Argument> = given.collect();
        let rule = self.rule(scope, index, parameter, given, place)?;
        let call = self.tree.add(place, Made::Call(rule));
        let wraps = used.is_terminal && within == Within::Rule;
        Ok(if wraps { self.lexeme(scope, call) } else { call })
    }

    /// The alternatives of a terminal that depends on its context.
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
            for (texts, after) in groups {
                let texts = self.tree.add(place, Made::Terminal(texts));
                if after == ExprId::ANYTHING {
                    choices.push(texts);
                    continue;
                }
                if within == Within::Terminal {
                    let message = "this look-ahead may reach beyond its terminal, which stands within another; write what the \
                                   other one must not contain instead";
                    return Err(SyntaxError::unsupported(place, message));
                }
                let after = self.tree.add(place, Made::Ahead(after));
                choices.push(self.tree.add(place, Made::Sequence(vec![texts, after])));
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

/// The written form of a part; equal forms mean equal parts.
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
        Part::Declares(set, body) => format!("%declares({set:?}: {})", key(body)),
        other => format!("{other:?}"),
    }
}

/// The name of a kind of part that terminals must not contain.
fn named(part: &Part) -> &'static str {
    match part {
        Part::Token(_) => "a token of the model",
        Part::Json(_) => "%json",
        Part::Nested(_) => "%lark",
        Part::Declares(..) => "%declares",
        Part::Refers(_) => "%refers",
        _ => "a named grammar",
    }
}
