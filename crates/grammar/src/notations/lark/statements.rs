//! The lines of a Lark text: definitions with their attributes, and directives.

use super::parser::{Joins, Later, Parser};
use super::scan::{Word, is_terminal};
use super::tree::{Attribute, Definition, Import, PartId, Value};
use crate::ir::syntax_error::SyntaxError;
use crate::notations::ebnf::escapes;

impl Parser<'_> {
    fn end_of_line(&mut self, after: &str) -> Result<(), SyntaxError> {
        match self.next()? {
            (_, Word::Line | Word::End) => Ok(()),
            (place, word) => {
                Err(SyntaxError::at(place, format!("{} stands behind {after}; end the line", word.shown())))
            }
        }
    }

    pub(super) fn directive(&mut self, place: usize, name: &str) -> Result<(), SyntaxError> {
        match name {
            "ignore" => {
                let (at, word) = self.next()?;
                if matches!(word, Word::Line | Word::End) {
                    return Err(SyntaxError::at(
                        at,
                        "nothing stands behind %ignore; name what may stand between terminals",
                    ));
                }
                self.ahead = Some((at, word));
                let first = PartId(self.unit.parts.len() as u32);
                let body = self.alternatives(place)?;
                let (parameters, attributes) = Default::default();
                let is_parametric = false;
                let ignored =
                    Definition { place, is_terminal: true, parameters, is_parametric, attributes, first, body };
                self.unit.ignored.push(ignored);
                Ok(())
            }
            "import" => self.import(place),
            "declare" => {
                let (at, first) = self.name("the name of a declared terminal")?;
                self.unit.declared.entry(first).or_insert(at);
                loop {
                    match self.next()? {
                        (at, Word::Name(name)) => {
                            self.unit.declared.entry(name).or_insert(at);
                        }
                        (_, Word::Sign(',')) => {}
                        (at, word) => {
                            self.ahead = Some((at, word));
                            return self.end_of_line("the declared names");
                        }
                    }
                }
            }
            "override" => self.definition(Joins::Override),
            "extend" => self.definition(Joins::Extend),
            "llguidance" | "grammar_options" => self.options(name),
            _ => {
                let message = format!(
                    "%{name} is no directive; there are %import, %ignore, %declare, %override, %extend, %llguidance and \
                     %grammar_options, and within rules %symbols, %declares, %refers, %json, %regex and %lark"
                );
                Err(SyntaxError::at(place, message))
            }
        }
    }

    fn options(&mut self, name: &str) -> Result<(), SyntaxError> {
        let (start, text) = self.json(&format!("`%{name}`"))?;
        let wrong = |message: String| Err(SyntaxError::at(start, message));
        let read: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(&text);
        let options = match read {
            Ok(options) => options,
            Err(error) => return wrong(format!("the options are no JSON object: {error}")),
        };
        for (key, value) in options {
            match (&*key, value.as_bool(), value.as_str()) {
                ("allow_initial_skip", Some(allowed), _) => self.unit.options.initial_skip = allowed,
                ("skip_repetition", _, Some("once")) => self.unit.options.skips_repeat = false,
                ("skip_repetition", _, Some("repeat")) => self.unit.options.skips_repeat = true,
                ("ignore_once", Some(once), _) => self.unit.options.skips_repeat = !once,
                // Masks never omit forced text, so there is nothing to turn off.
                ("no_forcing", Some(_), _) | ("allow_invalid_utf8", Some(false), _) => {}
                ("allow_invalid_utf8", Some(true), _) => {
                    let message = "the option \"allow_invalid_utf8\" is not supported, because patterns match characters; \
                                   leave it out, or write bytes as %bytes[..] in EBNF";
                    return Err(SyntaxError::unsupported(start, message));
                }
                _ => {
                    let message = format!(
                        "the option {key:?} with {value} is not known; there are \"allow_initial_skip\": true or false, \
                         \"skip_repetition\": \"repeat\" or \"once\", \"ignore_once\": true or false, and \"no_forcing\""
                    );
                    return wrong(message);
                }
            }
        }
        self.end_of_line("the options")
    }

    /// Reads `%import module.NAME`, `%import module.NAME -> ALIAS` or `%import module (A, B)`.
    fn import(&mut self, place: usize) -> Result<(), SyntaxError> {
        let (at, word) = self.next()?;
        let mut path = match word {
            Word::Name(name) => vec![name],
            Word::Sign('.') | Word::Dots => {
                let message = "a grammar of another file is not read; pass its text in `grammars`, and import from that \
                               name without the dot";
                return Err(SyntaxError::unsupported(at, message));
            }
            _ => return Err(SyntaxError::at(at, format!("{} stands where a module must be", word.shown()))),
        };
        while self.takes(&Word::Sign('.'))? {
            path.push(self.name("a name to import")?.1);
        }
        let mut names = Vec::new();
        if self.takes(&Word::Sign('('))? {
            loop {
                let (_, name) = self.name("a name to import")?;
                names.push((name.clone(), name));
                if self.takes(&Word::Sign(')'))? {
                    break;
                }
                self.expect(',', "an imported name")?;
            }
        } else {
            let name = path.pop().expect("a path has a name at least");
            if path.is_empty() {
                let message = format!("`{name}` names a module only; write `%import {name}.NAME`");
                return Err(SyntaxError::at(at, message));
            }
            let alias = if self.takes(&Word::Arrow)? { self.name("a name to import as")?.1 } else { name.clone() };
            names.push((name, alias));
        }
        let module = path.join(".");
        for (name, alias) in names {
            self.unit.imports.push(Import { module: module.clone(), name, alias, place });
        }
        self.end_of_line("the import")
    }

    /// Reads a rule or a terminal, starting with its name.
    pub(super) fn definition(&mut self, joins: Joins) -> Result<(), SyntaxError> {
        while self.takes(&Word::Sign('?'))? || self.takes(&Word::Sign('!'))? {}
        let (place, name) = self.name("the name of a rule or a terminal")?;
        let mut parameters = Vec::new();
        let mut attributes = Vec::new();
        let mut is_parametric = false;
        loop {
            let (at, word) = self.next()?;
            match word {
                Word::Sign('{') => loop {
                    let (at, parameter) = self.name("a parameter of the template")?;
                    if parameters.contains(&parameter) {
                        let message = format!("the parameter `{parameter}` comes twice; rename one");
                        return Err(SyntaxError::at(at, message));
                    }
                    parameters.push(parameter);
                    if self.takes(&Word::Sign('}'))? {
                        break;
                    }
                    self.expect(',', "a parameter of a template")?;
                },
                Word::Sign('[') => attributes = self.attributes()?,
                Word::Parameter if self.takes(&Word::Sign('='))? => {
                    let message =
                        format!("a Lark definition is written `{0}: ...`, not `{0} ::= ...`", escapes::excerpt(&name));
                    return Err(SyntaxError::at(at, message));
                }
                Word::Parameter => {
                    let (at, underscore) = self.name("`_`, the parameter of a rule,")?;
                    if underscore != "_" {
                        return Err(SyntaxError::at(
                            at,
                            "the parameter of a rule is written `_`, as in `rule::_ : ...`",
                        ));
                    }
                    is_parametric = true;
                }
                Word::Sign('.') => {
                    self.takes(&Word::Sign('-'))?;
                    let (at, word) = self.next()?;
                    if !matches!(word, Word::Number(_)) {
                        let message = format!("{} stands where a priority must be, as in `NAME.2: ...`", word.shown());
                        return Err(SyntaxError::at(at, message));
                    }
                }
                Word::Sign(':') => break,
                _ => {
                    let message =
                        format!("{} stands where `:` must follow the name `{}`", word.shown(), escapes::excerpt(&name));
                    return Err(SyntaxError::at(at, message));
                }
            }
        }
        let first = PartId(self.unit.parts.len() as u32);
        let body = self.alternatives(place)?;
        let is_terminal = is_terminal(&name);
        let definition = Definition { place, is_terminal, parameters, is_parametric, attributes, first, body };
        if joins != Joins::New {
            self.later.push(Later { name, definition, extends: joins == Joins::Extend });
        } else if self.unit.definitions.contains_key(&name) {
            let message = format!("`{name}` is defined twice; rename one, or join them with `|`");
            return Err(SyntaxError::at(place, message));
        } else {
            self.unit.definitions.insert(name, definition);
        }
        Ok(())
    }

    /// Reads the attributes in brackets after the name of a rule.
    fn attributes(&mut self) -> Result<Vec<Attribute>, SyntaxError> {
        let mut attributes = Vec::new();
        loop {
            let (place, name) = self.name("an attribute of the rule")?;
            let mut value = None;
            if self.takes(&Word::Sign('='))? {
                let (at, word) = self.next()?;
                value = Some(match word {
                    Word::Text(text, folds) => Value::Text(text, folds),
                    Word::Pattern(pattern, flags) => Value::Pattern(pattern, flags),
                    Word::Name(name) => Value::Name(name),
                    Word::Number(number) => Value::Number(number),
                    _ => {
                        let message = format!("{} stands where the value of `{name}` must be", word.shown());
                        return Err(SyntaxError::at(at, message));
                    }
                });
            }
            attributes.push(Attribute { name, value, place });
            if self.takes(&Word::Sign(']'))? {
                return Ok(attributes);
            }
            self.expect(',', "an attribute")?;
        }
    }
}
