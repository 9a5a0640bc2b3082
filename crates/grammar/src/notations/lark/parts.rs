//! The parts of a definition written out: what each becomes in the tree of EBNF, for these arguments and this parameter.

use stencilm_regex::ExprId;

use super::context;
use super::expansion::{Argument, Expansion, Scope, Within};
use super::patterns;
use super::terminals;
use super::tree::{Definition, Part, PartId};
use crate::ir::syntax_error::SyntaxError;
use crate::notations::ebnf::tree::{Part as Made, PartId as MadeId};

/// Longest description of the arguments of a template.
const MAX_KEY: usize = 10_000;

impl Expansion<'_, '_> {
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
            SyntaxError::check_time(place)?;
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
                Part::Choice(parts) => {
                    let mut made: Vec<MadeId> = parts.iter().map(of).collect();
                    if within == Within::Rule {
                        self.end_at_first_heads(scope, parts, &mut made)?;
                    }
                    Made::Choice(made)
                }
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
                    if matches!(unit.part(id), Part::Pattern(pattern, _) if patterns::is_context(pattern)) {
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
