//! Lark text to a flat tree, with a stack of its own for brackets: only grammars within grammars and conditions nest,
//! and those not deeply.
//!
//! `|` binds weakest, then `&`, then standing side by side, then repetition after, then `~` in front.

use super::parser::{Joins, Level, MAX_NESTING, Opener, Parsed, Parser};
use super::scan::{Word, Words};
use super::tree::{Part, PartId};
use crate::ir::syntax_error::SyntaxError;
use crate::json_schema::read::parse::parse as read_json;
use crate::notations::ebnf::escapes;

/// Parses the text between two offsets.
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

    /// Parses the alternatives up to the end of the definition.
    pub(super) fn alternatives(&mut self, place: usize) -> Result<PartId, SyntaxError> {
        self.levels.push(Level::new(Opener::Definition, place));
        loop {
            let (place, word) = self.next()?;
            SyntaxError::check_time(place)?;
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
                Word::Directive(name) => match self.part_by_directive(place, &name)? {
                    Some(part) => part,
                    None => continue,
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
                word => return Err(SyntaxError::at(place, misplaced(&word))),
            };
            let part = self.unit.add(place, part);
            self.item(part)?;
        }
    }

    /// Reads the name of a table or a set in brackets.
    fn named(&mut self, directive: &str, what: &str) -> Result<String, SyntaxError> {
        self.expect('(', &format!("`%{directive}`"))?;
        let name = self.quoted(directive, what)?;
        self.expect(')', &format!("the name of a {what}"))?;
        Ok(name)
    }

    fn quoted(&mut self, directive: &str, what: &str) -> Result<String, SyntaxError> {
        match self.next()? {
            (_, Word::Text(name, false)) => Ok(name),
            (at, _) => {
                let message = format!("%{directive} takes the name of a {what} in quotes: %{directive}(\"...\")");
                Err(SyntaxError::at(at, message))
            }
        }
    }

    /// The part for a directive within a rule; `None` for a directive about the alternative, and for one that opens
    /// brackets.
    fn part_by_directive(&mut self, place: usize, name: &str) -> Result<Option<Part>, SyntaxError> {
        Ok(Some(match name {
            "json" => match self.words.boolean() {
                Some(schema) => Part::Json(schema.into()),
                None => Part::Json(self.json("`%json`")?.1),
            },
            "symbols" => Part::Symbols(self.named("symbols", "table")?),
            "refers" => Part::Refers(self.named("refers", "set")?),
            "declares" => {
                self.expect('(', "`%declares`")?;
                let name = self.quoted("declares", "set")?;
                self.expect(':', "the set of `%declares`")?;
                self.levels.push(Level::new(Opener::Declares(name), place));
                return Ok(None);
            }
            "regex" => Part::Regex(self.json("`%regex`")?.1),
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
                return Ok(None);
            }
            _ => {
                let message = format!(
                    "%{name} is no part of a rule; there are %symbols, %declares, %refers, %json, %regex, %lark and %if"
                );
                return Err(SyntaxError::at(place, message));
            }
        }))
    }

    pub(super) fn json(&mut self, after: &str) -> Result<(usize, Box<str>), SyntaxError> {
        let (start, end) = self.words.json(after)?;
        let text = &self.text[start..end];
        match read_json(text, &[], usize::MAX) {
            Err(error) => Err(SyntaxError::within(error, text, start)),
            Ok(_) => Ok((start, text.into())),
        }
    }

    /// A name, with the arguments of a template or the parameter of a rule; `None` if arguments begin.
    fn used(&mut self, place: usize, name: String) -> Result<Option<Part>, SyntaxError> {
        if self.takes(&Word::Sign('{'))? {
            self.levels.push(Level::new(Opener::Arguments(name, Vec::new()), place));
            return Ok(None);
        }
        let parameter = if self.takes(&Word::Parameter)? { Some(self.parameter()?) } else { None };
        Ok(Some(Part::Name { name, arguments: Vec::new(), parameter }))
    }

    /// A text, or a range of characters that begins with it.
    pub(super) fn text(&mut self, place: usize, text: String, folds: bool) -> Result<Part, SyntaxError> {
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

    /// Adds an item, with the operators after and before it.
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
                        // A `~` before the next item: two words were read ahead, so one is stored in the level.
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

    /// Reads `~ n` or `~ n..m`, after the `~`.
    pub(super) fn rounds(&mut self, at: usize, number: &str) -> Result<(u32, Option<u32>), SyntaxError> {
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

    pub(super) fn joined(&mut self, parts: Vec<PartId>, make: impl Fn(Vec<PartId>) -> Part, place: usize) -> PartId {
        match *parts {
            [only] => only,
            _ => {
                let place = parts.first().map_or(place, |&first| self.unit.place(first));
                self.unit.add(place, make(parts))
            }
        }
    }

    /// Makes an operand of `&` of the sequence that ends here.
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

    /// Ends an alternative; an empty one matches the empty text.
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
            Some(condition) => self.unit.add(self.unit.place(item), Part::When(item, condition)),
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

    /// Handles a bracket or a comma that ends alternatives.
    fn close(&mut self, place: usize, word: &Word) -> Result<(), SyntaxError> {
        let fits = matches!(
            (&self.level().opener, word),
            (Opener::Group | Opener::Declares(_), Word::Sign(')'))
                | (Opener::Optional, Word::Sign(']'))
                | (Opener::Arguments(..), Word::Sign('}' | ','))
        );
        if !fits {
            let message = format!("{} closes nothing here; remove it, or open it before", word.shown());
            return Err(SyntaxError::at(place, message));
        }
        let level = self.level();
        if matches!(level.opener, Opener::Arguments(..)) && level.is_empty() {
            return Err(SyntaxError::at(place, "an argument is missing here; write \"\" for no text"));
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
            Opener::Declares(name) => self.unit.add(start, Part::Declares(name, body)),
            Opener::Group | Opener::Definition => body,
        };
        self.item(part)
    }
}

fn unclosed(place: usize) -> SyntaxError {
    SyntaxError::at(place, "the group has no closing bracket; close it")
}

/// The error for a word that is no part of a rule.
fn misplaced(word: &Word) -> String {
    match word {
        Word::Sign('{') => {
            "a repetition is written {m}, {m,}, {,n} or {m,n}, with whole numbers; quote a brace that is text".into()
        }
        Word::Sign('*' | '+' | '?') | Word::Count(..) => {
            format!("{} repeats nothing; put what it repeats before it", word.shown())
        }
        _ => format!("{} stands where a part of a rule must be; quote it if it is text", word.shown()),
    }
}
