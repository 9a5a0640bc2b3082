//! Lark text to a flat tree, with a stack of its own for brackets: only grammars within grammars and conditions nest, and
//! those not deeply.
//!
//! `|` binds weakest, then `&`, then standing side by side, then repetition behind, then `~` in front.

use super::params::{Bits, Compare, Condition, Parameter};
use super::scan::{Word, Words, is_terminal};
use super::tree::{Attribute, Definition, Import, Part, PartId, Unit, Value};
use crate::ebnf::escapes;
use crate::syntax_error::SyntaxError;

/// Deepest nesting of grammars in braces, and of conditions.
const MAX_NESTING: usize = 32;

/// What an open bracket makes of its alternatives.
enum Opener {
    Definition,
    Group,
    Optional,
    /// The arguments of a template so far.
    Arguments(String, Vec<PartId>),
}

/// Alternatives under way.
struct Level {
    opener: Opener,
    place: usize,
    choices: Vec<PartId>,
    conjuncts: Vec<PartId>,
    items: Vec<PartId>,
    /// Where each `~` before the next item stands.
    complements: Vec<usize>,
    /// The condition of the alternative that ends next.
    condition: Option<Condition>,
}

impl Level {
    fn new(opener: Opener, place: usize) -> Level {
        let (choices, conjuncts, items, complements, condition) = Default::default();
        Level { opener, place, choices, conjuncts, items, complements, condition }
    }
}

/// Which list of a unit a definition joins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joins {
    New,
    /// `%override`: in place of an imported one.
    Override,
    /// `%extend`: more alternatives for an imported one.
    Extend,
}

/// A definition that was overridden or extended, which imports have to bring in first.
pub(super) struct Later {
    pub name: String,
    pub definition: Definition,
    pub extends: bool,
}

/// A text that has been read, and what waits for its imports.
pub(super) struct Parsed {
    pub unit: Unit,
    pub later: Vec<Later>,
}

pub(super) struct Parser<'a> {
    text: &'a str,
    words: Words<'a>,
    unit: Unit,
    later: Vec<Later>,
    levels: Vec<Level>,
    ahead: Option<(usize, Word)>,
    depth: usize,
}

/// Reads the text between two offsets.
pub(super) fn parse(text: &str, start: usize, end: usize, depth: usize) -> Result<Parsed, SyntaxError> {
    if depth > MAX_NESTING {
        let message = format!("grammars are nested more than {MAX_NESTING} deep; pass the inner ones by name");
        return Err(SyntaxError::limit(start, message));
    }
    let text = &text[..end];
    let (unit, later, levels) = Default::default();
    Parser { text, words: Words::new(text, start), unit, later, levels, ahead: None, depth }.run()
}

impl Parser<'_> {
    fn next(&mut self) -> Result<(usize, Word), SyntaxError> {
        match self.ahead.take() {
            Some(word) => Ok(word),
            None => self.words.next(),
        }
    }

    fn takes(&mut self, wanted: &Word) -> Result<bool, SyntaxError> {
        let (place, word) = self.next()?;
        if word == *wanted {
            return Ok(true);
        }
        self.ahead = Some((place, word));
        Ok(false)
    }

    fn expect(&mut self, sign: char, after: &str) -> Result<(), SyntaxError> {
        match self.next()? {
            (_, Word::Sign(found)) if found == sign => Ok(()),
            (place, word) => {
                Err(SyntaxError::at(place, format!("{} stands where `{sign}` must follow {after}", word.shown())))
            }
        }
    }

    fn name(&mut self, what: &str) -> Result<(usize, String), SyntaxError> {
        match self.next()? {
            (place, Word::Name(name)) => Ok((place, name)),
            (place, word) => Err(SyntaxError::at(place, format!("{} stands where {what} must be", word.shown()))),
        }
    }

    fn run(mut self) -> Result<Parsed, SyntaxError> {
        loop {
            let (place, word) = self.next()?;
            match word {
                Word::Line => {}
                Word::End => return Ok(Parsed { unit: self.unit, later: self.later }),
                Word::Directive(name) => self.directive(place, &name)?,
                Word::Sign('?' | '!') | Word::Name(_) => {
                    self.ahead = Some((place, word));
                    self.definition(Joins::New)?;
                }
                _ => {
                    let message = format!(
                        "{} stands where a definition must start, as in `name: ...`; a line that goes on starts with `|`",
                        word.shown()
                    );
                    return Err(SyntaxError::at(place, message));
                }
            }
        }
    }

    fn end_of_line(&mut self, after: &str) -> Result<(), SyntaxError> {
        match self.next()? {
            (_, Word::Line | Word::End) => Ok(()),
            (place, word) => {
                Err(SyntaxError::at(place, format!("{} stands behind {after}; end the line", word.shown())))
            }
        }
    }

    fn directive(&mut self, place: usize, name: &str) -> Result<(), SyntaxError> {
        match name {
            "ignore" => {
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
                     %grammar_options, and within rules %json, %regex and %lark"
                );
                Err(SyntaxError::at(place, message))
            }
        }
    }

    fn options(&mut self, name: &str) -> Result<(), SyntaxError> {
        let (start, end) = self.words.json(&format!("`%{name}`"))?;
        let wrong = |message: String| Err(SyntaxError::at(start, message));
        let read: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(&self.text[start..end]);
        let options = match read {
            Ok(options) => options,
            Err(error) => return wrong(format!("the options are no JSON object: {error}")),
        };
        for (key, value) in options {
            match (&*key, value.as_bool(), value.as_str()) {
                ("allow_initial_skip", Some(allowed), _) => self.unit.options.initial_skip = allowed,
                ("skip_repetition", _, Some("once")) => self.unit.options.skips_repeat = false,
                ("skip_repetition", _, Some("repeat")) => self.unit.options.skips_repeat = true,
                // Forced text is never left out of a mask, so there is nothing to turn off.
                ("no_forcing", Some(_), _) => {}
                _ => {
                    let message = format!(
                        "the option {key:?} with {value} is not known; there are \"allow_initial_skip\": true or false, \
                         \"skip_repetition\": \"repeat\" or \"once\", and \"no_forcing\""
                    );
                    return wrong(message);
                }
            }
        }
        self.end_of_line("the options")
    }

    /// `%import module.NAME`, `%import module.NAME -> ALIAS`, `%import module (A, B)`.
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

    /// A rule or a terminal, from its name on.
    fn definition(&mut self, joins: Joins) -> Result<(), SyntaxError> {
        while self.takes(&Word::Sign('?'))? || self.takes(&Word::Sign('!'))? {}
        let (place, name) = self.name("the name of a rule or a terminal")?;
        let mut parameters = Vec::new();
        let mut attributes = Vec::new();
        let mut is_parametric = false;
        loop {
            let (at, word) = self.next()?;
            match word {
                Word::Sign('{') => loop {
                    parameters.push(self.name("a parameter of the template")?.1);
                    if self.takes(&Word::Sign('}'))? {
                        break;
                    }
                    self.expect(',', "a parameter of a template")?;
                },
                Word::Sign('[') => attributes = self.attributes()?,
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

    /// What stands between the brackets behind the name of a rule.
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

    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("parts are read at some level")
    }

    /// Alternatives up to the end of the definition.
    fn alternatives(&mut self, place: usize) -> Result<PartId, SyntaxError> {
        self.levels.push(Level::new(Opener::Definition, place));
        loop {
            let (place, word) = self.next()?;
            let part = match word {
                Word::Line | Word::End => {
                    if word == Word::Line {
                        let (at, next) = self.next()?;
                        let goes_on = next == Word::Sign('|') || self.levels.len() > 1;
                        self.ahead = Some((at, next));
                        if goes_on {
                            continue;
                        }
                    }
                    let level = self.level();
                    if !matches!(level.opener, Opener::Definition) {
                        return Err(unclosed(level.place));
                    }
                    self.end_alternative(place)?;
                    return Ok(self.end_level());
                }
                Word::Name(name) => match self.used(place, name)? {
                    Some(part) => part,
                    None => continue,
                },
                Word::Text(text, folds) => self.text(place, text, folds)?,
                Word::Pattern(pattern, flags) => Part::Pattern(pattern, flags),
                Word::Token(pattern) => Part::Token(pattern),
                Word::Grammar(name) => Part::Grammar(name),
                Word::Directive(name) => match &*name {
                    "json" => Part::Json(self.json("`%json`")?),
                    "regex" => Part::Regex(self.json("`%regex`")?),
                    "lark" => {
                        let (start, end) = self.words.nested()?;
                        let Parsed { mut unit, later } = parse(self.text, start, end, self.depth + 1)?;
                        if let Some(later) = later.first() {
                            let message = "a nested grammar imports nothing that could be overridden or extended";
                            return Err(SyntaxError::at(later.definition.place, message));
                        }
                        unit.options.initial_skip &= self.unit.options.initial_skip;
                        self.unit.nested.push(unit);
                        Part::Nested(self.unit.nested.len() - 1)
                    }
                    "if" => {
                        let condition = self.condition(0)?;
                        self.level().condition = Some(condition);
                        continue;
                    }
                    _ => {
                        let message = format!("%{name} is no part of a rule; there are %json, %regex, %lark and %if");
                        return Err(SyntaxError::at(place, message));
                    }
                },
                Word::Sign('(') => {
                    self.levels.push(Level::new(Opener::Group, place));
                    continue;
                }
                Word::Sign('[') => {
                    self.levels.push(Level::new(Opener::Optional, place));
                    continue;
                }
                Word::Sign(')' | ']' | '}' | ',') => {
                    self.close(place, &word)?;
                    continue;
                }
                Word::Sign('|') => {
                    self.end_alternative(place)?;
                    continue;
                }
                Word::Sign('&') => {
                    self.end_sequence(place)?;
                    continue;
                }
                Word::Sign('~') => {
                    self.level().complements.push(place);
                    continue;
                }
                Word::Arrow => {
                    self.name("the alias of an alternative")?;
                    continue;
                }
                Word::Sign(':') if !matches!(self.level().opener, Opener::Definition) => {
                    return Err(unclosed(self.level().place));
                }
                Word::Sign('*' | '+' | '?') | Word::Count(..) => {
                    let message = format!("{} repeats nothing; put what it repeats before it", word.shown());
                    return Err(SyntaxError::at(place, message));
                }
                _ => {
                    let message =
                        format!("{} stands where a part of a rule must be; quote it if it is text", word.shown());
                    return Err(SyntaxError::at(place, message));
                }
            };
            let part = self.unit.add(place, part);
            self.item(part)?;
        }
    }

    fn json(&mut self, after: &str) -> Result<Box<str>, SyntaxError> {
        let (start, end) = self.words.json(after)?;
        Ok(self.text[start..end].into())
    }

    /// A name, with the arguments of a template or the parameter of a rule; none where arguments begin.
    fn used(&mut self, place: usize, name: String) -> Result<Option<Part>, SyntaxError> {
        if self.takes(&Word::Sign('{'))? {
            self.levels.push(Level::new(Opener::Arguments(name, Vec::new()), place));
            return Ok(None);
        }
        let parameter = if self.takes(&Word::Parameter)? { Some(self.parameter()?) } else { None };
        Ok(Some(Part::Name { name, arguments: Vec::new(), parameter }))
    }

    /// A text, or a range of characters that begins with it.
    fn text(&mut self, place: usize, text: String, folds: bool) -> Result<Part, SyntaxError> {
        if !self.takes(&Word::Dots)? {
            return Ok(Part::Text(text, folds));
        }
        let (at, word) = self.next()?;
        let one = |text: &str| {
            let mut chars = text.chars();
            chars.next().filter(|_| chars.next().is_none())
        };
        let Word::Text(end, end_folds) = word else {
            return Err(SyntaxError::at(at, format!("{} stands where the end of a range must be", word.shown())));
        };
        match (one(&text), one(&end)) {
            (Some(first), Some(last)) if first <= last && !folds && !end_folds => Ok(Part::Range(first, last)),
            (Some(first), Some(last)) if first > last => {
                Err(SyntaxError::at(place, format!("the range {first:?}..{last:?} is reversed")))
            }
            _ => Err(SyntaxError::at(place, "a range is between two single characters: \"a\"..\"z\"")),
        }
    }

    /// An item with what stands behind and before it.
    fn item(&mut self, mut item: PartId) -> Result<(), SyntaxError> {
        let place = self.unit.place(item);
        if self.level().condition.is_some() {
            return Err(SyntaxError::at(place, "a part stands behind a condition; conditions end their alternatives"));
        }
        for place in std::mem::take(&mut self.level().complements).into_iter().rev() {
            item = self.unit.add(place, Part::Not(item));
        }
        loop {
            let (at, word) = self.next()?;
            let (min, max) = match word {
                Word::Sign('*') => (0, None),
                Word::Sign('+') => (1, None),
                Word::Sign('?') => (0, Some(1)),
                Word::Count(min, max) => (min, max),
                Word::Sign('~') => match self.next()? {
                    (at, Word::Number(number)) => self.rounds(at, &number)?,
                    next => {
                        // A `~` before the next item: two words were read ahead, and one is remembered in the level.
                        self.level().items.push(item);
                        self.level().complements.push(at);
                        self.ahead = Some(next);
                        return Ok(());
                    }
                },
                _ => {
                    self.ahead = Some((at, word));
                    break;
                }
            };
            item = self.unit.add(place, Part::Repeat { body: item, min, max });
        }
        self.level().items.push(item);
        Ok(())
    }

    /// `~ n` or `~ n..m`, behind the `~`.
    fn rounds(&mut self, at: usize, number: &str) -> Result<(u32, Option<u32>), SyntaxError> {
        let count = |at: usize, number: &str| {
            let message = format!("the count {} is no number up to {}", escapes::excerpt(number), u32::MAX);
            number.parse::<u32>().map_err(|_| SyntaxError::at(at, message))
        };
        let min = count(at, number)?;
        if !self.takes(&Word::Dots)? {
            return Ok((min, Some(min)));
        }
        match self.next()? {
            (at, Word::Number(number)) => {
                let max = count(at, &number)?;
                if max < min {
                    let message = format!("the repetition ~ {min}..{max} ends below its start; write {max}..{min}");
                    return Err(SyntaxError::at(at, message));
                }
                Ok((min, Some(max)))
            }
            (at, word) => Err(SyntaxError::at(at, format!("{} stands where the greatest count must be", word.shown()))),
        }
    }

    fn joined(&mut self, parts: Vec<PartId>, make: impl Fn(Vec<PartId>) -> Part, place: usize) -> PartId {
        match *parts {
            [only] => only,
            _ => {
                let place = parts.first().map_or(place, |&first| self.unit.place(first));
                self.unit.add(place, make(parts))
            }
        }
    }

    /// The sequence that ends here becomes an operand of `&`.
    fn end_sequence(&mut self, place: usize) -> Result<(), SyntaxError> {
        let level = self.level();
        if let Some(&at) = level.complements.last() {
            return Err(SyntaxError::at(at, "`~` has nothing behind it; put what it excludes there, or a count"));
        }
        if level.items.is_empty() {
            return Err(SyntaxError::at(place, "there is nothing beside `&`; write \"\" for no text"));
        }
        let items = std::mem::take(&mut level.items);
        let item = self.joined(items, Part::Sequence, place);
        self.level().conjuncts.push(item);
        Ok(())
    }

    /// The alternative that ends here; an empty one matches the empty text.
    fn end_alternative(&mut self, place: usize) -> Result<(), SyntaxError> {
        let level = self.level();
        let is_empty = level.items.is_empty() && level.conjuncts.is_empty() && level.complements.is_empty();
        let item = if is_empty {
            self.unit.add(place, Part::Sequence(Vec::new()))
        } else {
            self.end_sequence(place)?;
            let conjuncts = std::mem::take(&mut self.level().conjuncts);
            self.joined(conjuncts, Part::And, place)
        };
        let item = match self.level().condition.take() {
            Some(condition) => self.unit.add(place, Part::When(item, condition)),
            None => item,
        };
        self.level().choices.push(item);
        Ok(())
    }

    fn end_level(&mut self) -> PartId {
        let place = self.level().place;
        let choices = std::mem::take(&mut self.level().choices);
        let body = self.joined(choices, Part::Choice, place);
        self.levels.pop();
        body
    }

    /// A bracket or a comma that ends alternatives.
    fn close(&mut self, place: usize, word: &Word) -> Result<(), SyntaxError> {
        let fits = matches!(
            (&self.level().opener, word),
            (Opener::Group, Word::Sign(')'))
                | (Opener::Optional, Word::Sign(']'))
                | (Opener::Arguments(..), Word::Sign('}' | ','))
        );
        if !fits {
            let message = format!("{} closes nothing here; remove it, or open it before", word.shown());
            return Err(SyntaxError::at(place, message));
        }
        self.end_alternative(place)?;
        let start = self.level().place;
        let opener = std::mem::replace(&mut self.level().opener, Opener::Group);
        let body = self.end_level();
        let part = match opener {
            Opener::Optional => self.unit.add(start, Part::Repeat { body, min: 0, max: Some(1) }),
            Opener::Arguments(name, mut arguments) => {
                arguments.push(body);
                if *word == Word::Sign(',') {
                    self.levels.push(Level::new(Opener::Arguments(name, arguments), start));
                    return Ok(());
                }
                self.unit.add(start, Part::Name { name, arguments, parameter: None })
            }
            Opener::Group | Opener::Definition => body,
        };
        self.item(part)
    }

    fn parameter(&mut self) -> Result<Parameter, SyntaxError> {
        let (at, word) = self.next()?;
        match word {
            Word::Number(number) => Ok(Parameter::Value(value(at, &number)?)),
            Word::Name(name) if name == "_" => Ok(Parameter::Same),
            Word::Name(name) => {
                self.expect('(', "a function of parameters")?;
                let parameter = match &*name {
                    "set_bit" => Parameter::SetBit(self.bit(63)?),
                    "clear_bit" => Parameter::ClearBit(self.bit(63)?),
                    "bit_and" => Parameter::And(self.value()?),
                    "bit_or" => Parameter::Or(self.value()?),
                    "incr" => Parameter::Increment(self.bits()?),
                    "decr" => Parameter::Decrement(self.bits()?),
                    _ => {
                        let message = format!(
                            "`{name}` makes no parameter; there are a number, _, set_bit, clear_bit, bit_and, bit_or, \
                             incr and decr"
                        );
                        return Err(SyntaxError::at(at, message));
                    }
                };
                self.expect(')', "a function of parameters")?;
                Ok(parameter)
            }
            _ => Err(SyntaxError::at(at, format!("{} stands where a parameter must be", word.shown()))),
        }
    }

    fn value(&mut self) -> Result<u64, SyntaxError> {
        match self.next()? {
            (at, Word::Number(number)) => value(at, &number),
            (at, word) => Err(SyntaxError::at(at, format!("{} stands where a number must be", word.shown()))),
        }
    }

    fn bit(&mut self, most: u64) -> Result<u32, SyntaxError> {
        let place = self.words.offset();
        let bit = self.value()?;
        if bit > most {
            return Err(SyntaxError::at(place, format!("the bit {bit} is above {most}; a parameter has 64 bits")));
        }
        Ok(bit as u32)
    }

    /// `[from:to]`, or `_` for all.
    fn bits(&mut self) -> Result<Bits, SyntaxError> {
        let (place, word) = self.next()?;
        if word == Word::Name("_".into()) {
            return Ok(Bits::ALL);
        }
        if word != Word::Sign('[') {
            return Err(SyntaxError::at(place, format!("{} stands where bits must be: [0:3], or _", word.shown())));
        }
        let from = self.bit(63)?;
        self.expect(':', "the first bit")?;
        let to = self.bit(64)?;
        self.expect(']', "the last bit")?;
        if from >= to {
            return Err(SyntaxError::at(place, format!("the bits [{from}:{to}] are none; the end is not included")));
        }
        Ok(Bits { from, to })
    }

    fn condition(&mut self, depth: usize) -> Result<Condition, SyntaxError> {
        let (at, name) = self.name("a condition")?;
        if depth > MAX_NESTING {
            let message = format!("conditions are nested more than {MAX_NESTING} deep; split the alternative");
            return Err(SyntaxError::limit(at, message));
        }
        if name == "true" {
            if self.takes(&Word::Sign('('))? {
                self.expect(')', "`true(`")?;
            }
            return Ok(Condition::True);
        }
        let compare = |name: &str| {
            Some(match name {
                "eq" => Compare::Equal,
                "ne" => Compare::NotEqual,
                "lt" => Compare::Less,
                "le" => Compare::LessOrEqual,
                "gt" => Compare::Greater,
                "ge" => Compare::GreaterOrEqual,
                _ => return None,
            })
        };
        self.expect('(', "the name of a condition")?;
        let condition = match &*name {
            "bit_clear" | "bit_set" => {
                let from = self.bit(63)?;
                let bits = Bits { from, to: from + 1 };
                Condition::Bits(bits, Compare::Equal, u64::from(name == "bit_set"))
            }
            "is_ones" => Condition::ones(self.bits()?),
            "is_zeros" => Condition::Bits(self.bits()?, Compare::Equal, 0),
            "and" | "or" => {
                let left = Box::new(self.condition(depth + 1)?);
                self.expect(',', "the first condition")?;
                let right = Box::new(self.condition(depth + 1)?);
                if name == "and" { Condition::And(left, right) } else { Condition::Or(left, right) }
            }
            "not" => Condition::Not(Box::new(self.condition(depth + 1)?)),
            _ => {
                let counts = name.strip_prefix("bit_count_");
                let Some(compare) = compare(counts.unwrap_or(&name)) else {
                    let message = format!(
                        "`{name}` is no condition; there are true, bit_clear, bit_set, is_ones, is_zeros, eq, ne, lt, \
                         le, gt, ge, the same with bit_count_ before, and, or, not"
                    );
                    return Err(SyntaxError::at(at, message));
                };
                let bits = self.bits()?;
                self.expect(',', "the bits")?;
                let value = self.value()?;
                match counts {
                    Some(_) => Condition::Count(bits, compare, value),
                    None => Condition::Bits(bits, compare, value),
                }
            }
        };
        self.expect(')', "a condition")?;
        Ok(condition)
    }
}

fn unclosed(place: usize) -> SyntaxError {
    SyntaxError::at(place, "the group has no closing bracket; close it")
}

fn value(at: usize, number: &str) -> Result<u64, SyntaxError> {
    let read = match number.strip_prefix("0x").or_else(|| number.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => number.parse(),
    };
    read.map_err(|_| SyntaxError::at(at, format!("{} is no number of 64 bits", escapes::excerpt(number))))
}
