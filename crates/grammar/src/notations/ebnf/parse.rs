//! EBNF text to a flat tree, with a stack of its own: nesting is bounded by the length of the text only.
//!
//! `|` binds weakest, then `&`, then standing side by side, then `~` in front, then `* + ? {m,n}` after.

use stencilm_regex::{ExprId, ExprSet, NumberSet, PIECE};
use stencilm_support::LimitExceeded;

use super::macros;
use super::parser::{Attributes, Level, Opener, Parser};
use super::scan::Word;
use super::scanner::Scanner;
use super::tree::{Array, Container, Object, Part, PartId, Text};
use crate::ir::grammar::{Mark, NameSet, TokenPattern};
use crate::ir::syntax_error::SyntaxError;
use crate::json::formats::language;
use crate::notations::symbols::SymbolTables;

/// Parses a whole text; terminals become expressions of `exprs`.
pub(super) fn parse(text: &str, exprs: &mut ExprSet, symbols: &SymbolTables) -> Result<Text, SyntaxError> {
    let scanner = Scanner { text, offset: 0 };
    let (classes, levels, containers) = Default::default();
    let macros = macros::macros_of(text);
    let text = Text::default();
    Parser { scanner, text, exprs, symbols, classes, levels, containers, ahead: None, macros }.run()
}

impl Parser<'_> {
    fn run(mut self) -> Result<Text, SyntaxError> {
        loop {
            let offset = self.scanner.offset;
            self.exprs.may_grow().map_err(|limit| match limit {
                LimitExceeded::Expressions(most) => {
                    let message = format!("up to here the text has {most} parts of lexemes; shorten or split it");
                    SyntaxError::limit(offset, message)
                }
                _ => SyntaxError::limit(offset, limit.while_reading()),
            })?;
            let (place, word) = self.next()?;
            if self.levels.is_empty() {
                match word {
                    Word::End => return self.finish(),
                    Word::Name(name) => self.rule(place, name)?,
                    Word::Keyword(name) if name == "begun" => self.begun(place)?,
                    _ => {
                        let message = format!("{} stands where a rule must start, as in `name ::= ...`", word.shown());
                        return Err(SyntaxError::at(place, message));
                    }
                }
            } else {
                self.word(place, word)?;
            }
        }
    }

    /// Reads what stands before every text, after `%begun`: texts and single bytes.
    fn begun(&mut self, place: usize) -> Result<(), SyntaxError> {
        let before = self.text.begun.len();
        loop {
            let (at, word) = self.next()?;
            match word {
                Word::Text(text) => self.text.begun.extend_from_slice(text.as_bytes()),
                Word::Bytes(set) if set.single().is_some() => self.text.begun.extend(set.single()),
                word if self.text.begun.len() > before => {
                    self.ahead = Some((at, word));
                    return Ok(());
                }
                _ => {
                    let message =
                        "`%begun` is followed by the text that stands before every text, in quotes, which is not empty";
                    return Err(SyntaxError::at(place, message));
                }
            }
        }
    }

    fn finish(self) -> Result<Text, SyntaxError> {
        for (name, &(body, place)) in &self.text.names {
            if body.is_none() {
                let mut message = format!("the rule `{name}` is used but not defined; add `{name} ::= ...`");
                let near = |other: &&String| other.eq_ignore_ascii_case(name) || other.replace('_', "-") == *name;
                if let Some(other) = self.text.names.keys().filter(|&other| other != name).find(near) {
                    message.push_str(&format!(" or write `{other}`"));
                }
                return Err(SyntaxError::at(place, message));
            }
        }
        Ok(self.text)
    }

    fn rule(&mut self, place: usize, name: String) -> Result<(), SyntaxError> {
        let attributes = if self.attributes_follow() { self.attributes(&name)? } else { Attributes::default() };
        let (at, word) = self.next()?;
        if word != Word::Define {
            let message = format!("{} stands where `::=` must follow the name `{name}` of a rule", word.shown());
            return Err(SyntaxError::at(at, message));
        }
        let (index, _) = self.text.names.insert_full(name.clone(), (None, place));
        self.levels.push(Level::new(Opener::Rule(index as u32, attributes), place));
        Ok(())
    }

    /// Reads a name within a rule; returns its part, if it is one.
    fn name(&mut self, place: usize, name: String) -> Result<Option<PartId>, SyntaxError> {
        // A name before `::=` starts the next rule. This is unambiguous: nothing else that may follow a name looks like
        // it.
        let attributes = if self.attributes_follow() { Some(self.attributes(&name)?) } else { None };
        if attributes.is_none() && self.is_macro(&name) {
            let item = self.call(place, &name)?;
            return Ok(Some(item));
        }
        let (at, next) = self.next()?;
        if next == Word::Define {
            self.end_rule(place, &format!("the rule `{name}`"))?;
            if self.text.names.get(&name).is_some_and(|(body, _)| body.is_some()) {
                let message = format!("the rule `{name}` is defined twice; rename one, or join them with `|`");
                return Err(SyntaxError::at(place, message));
            }
            let seen = self.text.names.get(&name).map_or(place, |&(_, seen)| seen);
            let (index, _) = self.text.names.insert_full(name, (None, seen));
            let opener = Opener::Rule(index as u32, attributes.unwrap_or_default());
            self.levels.push(Level::new(opener, place));
            return Ok(None);
        }
        if next == Word::Sign('@') {
            self.expect('(', "the `@` of a capture")?;
            self.levels.push(Level::new(Opener::Marked(Mark::Capture(name.into())), place));
            return Ok(None);
        }
        self.ahead = Some((at, next));
        let index = match self.text.names.get_index_of(&name) {
            Some(index) => index,
            None => self.text.names.insert_full(name, (None, place)).0,
        };
        Ok(Some(self.text.add(place, Part::Call(index as u32))))
    }

    /// Reads one word within a rule.
    fn word(&mut self, place: usize, word: Word) -> Result<(), SyntaxError> {
        let item = match word {
            Word::Name(name) => match self.name(place, name)? {
                Some(item) => item,
                None => return Ok(()),
            },
            Word::Text(text) => {
                if self.takes('@')? {
                    self.expect('(', "the `@` of a capture")?;
                    self.levels.push(Level::new(Opener::Marked(Mark::Capture(text.into())), place));
                    return Ok(());
                }
                // A piece of a long text is printed as a text of its own, and must be read as the same expression.
                let expr = match text.len() {
                    0..=PIECE => Ok(self.exprs.text(&text)),
                    _ => self.exprs.literal_in_time(text.as_bytes()),
                };
                let expr = expr.map_err(|limit| SyntaxError::limit(place, limit.while_reading()))?;
                self.text.add(place, Part::Terminal(expr))
            }
            Word::Class(ranges) => {
                let expr = self.class(ranges);
                self.text.add(place, Part::Terminal(expr))
            }
            Word::Bytes(set) => {
                let expr = self.exprs.bytes(set);
                self.text.add(place, Part::Terminal(expr))
            }
            Word::Pattern(pattern) => {
                let expr = self.pattern(place, &pattern)?;
                self.text.add(place, Part::Terminal(expr))
            }
            Word::Token(pattern) => self.text.add(place, Part::Token(pattern)),
            Word::Keyword(keyword) => return self.keyword(place, &keyword),
            Word::Sign('(') => {
                let opener = if self.takes('=')? { Opener::Lookahead } else { Opener::Group };
                self.levels.push(Level::new(opener, place));
                return Ok(());
            }
            Word::Sign('~') => {
                self.level().complements.push(place);
                return Ok(());
            }
            Word::Sign('|') => {
                self.end_conjunction(place)?;
                self.level().has_sign = true;
                return Ok(());
            }
            Word::Sign('&') => {
                self.end_sequence(place, "`&`")?;
                return Ok(());
            }
            Word::Sign(')') => return self.close(place),
            Word::Sign(';' | ':') if matches!(self.level().opener, Opener::Entry(_)) => {
                return self.end_entry(place, word == Word::Sign(':'));
            }
            Word::End => return self.end_rule(place, "the end of the text"),
            Word::Sign('{') => {
                let message =
                    "a repetition is written {m}, {m,}, {,n} or {m,n}, with whole numbers; quote a brace that is text";
                return Err(SyntaxError::at(place, message));
            }
            Word::Sign('*' | '+' | '?') | Word::Count(..) => {
                let message = format!("{} repeats nothing; put what it repeats before it", word.shown());
                return Err(SyntaxError::at(place, message));
            }
            Word::Sign('}') if matches!(self.level().opener, Opener::Entry(_)) => {
                return Err(SyntaxError::at(place, "`}` stands where `;` must end the entry before it"));
            }
            Word::Sign(_) | Word::Define => {
                let message = format!("{} stands where a part of a rule must be; quote it if it is text", word.shown());
                return Err(SyntaxError::at(place, message));
            }
        };
        self.item(item)
    }

    /// Reads what stands after `%if_token` or `%other_tokens`.
    fn named_tokens(&mut self, place: usize, keyword: &str) -> Result<TokenPattern, SyntaxError> {
        self.expect('(', &format!("`%{keyword}`"))?;
        let (mut ids, mut names) = (Vec::new(), Vec::new());
        while !self.takes(')')? {
            let (at, word) = self.next()?;
            match &word {
                Word::Text(name) => names.push(name.as_str().into()),
                // The scanner reads a number as the name of a rule.
                Word::Name(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() < 10 => {
                    ids.push(digits.parse().expect("fewer than ten digits are a number"));
                }
                _ => {
                    let message = format!("{} stands where a token belongs: an id or a name in quotes", word.shown());
                    return Err(SyntaxError::at(at, message));
                }
            }
        }
        match (keyword, &names[..], &ids[..]) {
            ("other_tokens", ..) => Ok(TokenPattern::Others { ids: ids.into(), names: names.into() }),
            (_, [name], []) => Ok(TokenPattern::IfSpecial(name.clone())),
            _ => Err(SyntaxError::at(place, "%if_token takes one name in quotes: %if_token(\"<|tool|>\")")),
        }
    }

    fn keyword(&mut self, place: usize, keyword: &str) -> Result<(), SyntaxError> {
        let opener = match keyword {
            "lexeme" => Opener::Lexeme,
            "lazy" => Opener::Lazy,
            "not" => Opener::Not,
            "token" => {
                let (_, name) = self.quoted(keyword, "the name of a token", "[INST]")?;
                let pattern = TokenPattern::Special(name.into());
                let item = self.text.add(place, Part::Token(pattern));
                return self.item(item);
            }
            "if_token" | "other_tokens" => {
                let pattern = self.named_tokens(place, keyword)?;
                let item = self.text.add(place, Part::Token(pattern));
                return self.item(item);
            }
            "number" => {
                let (at, asked) = self.quoted(keyword, "what is asked", ">=0 <10 *0.5 any")?;
                let set = NumberSet::parse(&asked).map_err(|what| SyntaxError::at(at, what))?;
                let expr = self.exprs.numbers(set);
                let item = self.text.add(place, Part::Terminal(expr));
                return self.item(item);
            }
            "language" => {
                let (at, name) = self.quoted(keyword, "the name of a language", "a-label")?;
                let language = language(&name).map_err(|what| SyntaxError::at(at, what))?;
                let expr = self.exprs.language(language);
                let item = self.text.add(place, Part::Terminal(expr));
                return self.item(item);
            }
            "symbols" => {
                let (at, table) = self.quoted(keyword, "the name of a table", "columns")?;
                let expr = self.symbols.expr(self.exprs, &table, at)?;
                let item = self.text.add(place, Part::Terminal(expr));
                return self.item(item);
            }
            "declares" | "declares_string" | "refers" | "refers_string" => return self.names(place, keyword),
            "max_tokens" | "temperature" => {
                self.expect('(', &format!("`%{keyword}`"))?;
                let (at, word) = self.next()?;
                // The scanner reads a number as the name of a rule.
                let number = if let Word::Name(number) = &word { number } else { "" };
                let mark = macros::number_mark(at, keyword, "a part", number)?;
                self.expect(':', &format!("the number of `%{keyword}`"))?;
                self.levels.push(Level::new(Opener::Marked(mark), place));
                return Ok(());
            }
            "object" => {
                self.expect('{', "`%object`")?;
                self.containers.push((place, Container::Object(Object::default())));
                return self.entry();
            }
            "array" => {
                self.expect('{', "`%array`")?;
                self.containers.push((place, Container::Array(Array::default())));
                return self.entry();
            }
            _ => {
                let message = format!(
                    "%{keyword} is not known; there are %lexeme(...), %lazy(...), %not(...), %bytes[...], \
                     %token(\"...\"), %symbols(\"...\"), %declares(\"...\": ...), %refers(\"...\"), %number(\"...\"), %max_tokens(5: ...), %temperature(0.7: ...), %object {{ ... }} \
                     and %array {{ ... }}"
                );
                return Err(SyntaxError::at(place, message));
            }
        };
        self.expect('(', &format!("`%{keyword}`"))?;
        self.levels.push(Level::new(opener, place));
        Ok(())
    }

    /// Reads the quoted text that a keyword takes in parentheses; returns it with its position.
    fn quoted(&mut self, keyword: &str, what: &str, example: &str) -> Result<(usize, String), SyntaxError> {
        self.expect('(', &format!("`%{keyword}`"))?;
        let (at, word) = self.next()?;
        let Word::Text(text) = word else {
            let message = format!("%{keyword} takes {what} in quotes: %{keyword}(\"{example}\")");
            return Err(SyntaxError::at(at, message));
        };
        self.expect(')', what)?;
        Ok((at, text))
    }

    /// Reads `%declares("set": a)` and `%refers("set")`; the latter may also have a part after a colon, as it is
    /// printed.
    fn names(&mut self, place: usize, keyword: &str) -> Result<(), SyntaxError> {
        self.expect('(', &format!("`%{keyword}`"))?;
        let (at, word) = self.next()?;
        let Word::Text(name) = word else {
            let message = format!("%{keyword} takes the name of a set of names in quotes: %{keyword}(\"ids\"...)");
            return Err(SyntaxError::at(at, message));
        };
        let set = NameSet { name: name.into(), quoted: keyword.ends_with("_string") };
        if keyword == "refers" && self.takes(')')? {
            let nothing = self.text.add(place, Part::Terminal(ExprId::NOTHING));
            let item = self.text.add(place, Part::Marked { mark: Mark::Refers(set), body: nothing });
            return self.item(item);
        }
        self.expect(':', &format!("the set of `%{keyword}`"))?;
        let mark = if keyword.starts_with("declares") { Mark::Declares(set) } else { Mark::Refers(set) };
        self.levels.push(Level::new(Opener::Marked(mark), place));
        Ok(())
    }

    /// Makes an operand of the sequence that ends here.
    fn end_sequence(&mut self, place: usize, before: &str) -> Result<(), SyntaxError> {
        let level = self.level();
        if let Some(&at) = level.complements.last() {
            return Err(SyntaxError::at(at, "`~` has nothing behind it; put what it excludes there"));
        }
        if level.items.is_empty() {
            return Err(SyntaxError::at(place, format!("there is nothing before {before}; write \"\" for no text")));
        }
        let items = std::mem::take(&mut level.items);
        let item = self.joined(items, Part::Sequence);
        let level = self.level();
        level.conjuncts.push(item);
        level.has_sign = true;
        Ok(())
    }

    /// Ends an alternative. An empty one beside a `|` matches the empty text, as in GBNF.
    fn end_conjunction(&mut self, place: usize) -> Result<(), SyntaxError> {
        let level = self.level();
        let is_empty = level.items.is_empty() && level.conjuncts.is_empty() && level.complements.is_empty();
        let item = if is_empty {
            self.text.add(place, Part::Terminal(ExprId::EMPTY))
        } else {
            self.end_sequence(place, "this place")?;
            let conjuncts = std::mem::take(&mut self.level().conjuncts);
            self.joined(conjuncts, Part::And)
        };
        self.level().choices.push(item);
        Ok(())
    }

    fn joined(&mut self, parts: Vec<PartId>, make: impl Fn(Vec<PartId>) -> Part) -> PartId {
        if let [only] = *parts {
            return only;
        }
        let place = self.text.places[parts[0].index()];
        self.text.add(place, make(parts))
    }

    /// Ends the innermost level; returns it with its part.
    pub(super) fn end_level(&mut self, place: usize) -> Result<(Level, PartId), SyntaxError> {
        let level = self.level();
        let is_empty = level.items.is_empty() && level.complements.is_empty();
        if is_empty && !level.has_sign && !matches!(level.opener, Opener::Group) {
            let at = level.place;
            return Err(SyntaxError::at(at, "nothing stands here; write \"\" for no text"));
        }
        self.end_conjunction(place)?;
        let choices = std::mem::take(&mut self.level().choices);
        let body = self.joined(choices, Part::Choice);
        let level = self.levels.pop().expect("the level has just been looked at");
        Ok((level, body))
    }

    fn close(&mut self, place: usize) -> Result<(), SyntaxError> {
        if matches!(self.level().opener, Opener::Rule(..) | Opener::Entry(_)) {
            return Err(SyntaxError::at(place, "`)` closes nothing; remove it, or open it with `(`"));
        }
        let (level, body) = self.end_level(place)?;
        let item = match level.opener {
            Opener::Lexeme => self.text.add(level.place, Part::Lexeme(body)),
            Opener::Lazy => self.text.add(level.place, Part::Lazy(body)),
            Opener::Not => self.text.add(level.place, Part::Not(body)),
            Opener::Lookahead => self.text.add(level.place, Part::Lookahead(body)),
            Opener::Marked(mark) => {
                // A name is compared with others as a whole, so it's one lexeme.
                let is_name = matches!(mark, Mark::Declares(_) | Mark::Refers(_));
                let body = if is_name { self.text.add(level.place, Part::Lexeme(body)) } else { body };
                self.text.add(level.place, Part::Marked { mark, body })
            }
            Opener::Group | Opener::Rule(..) | Opener::Entry(_) => body,
        };
        self.item(item)
    }

    fn end_rule(&mut self, place: usize, before: &str) -> Result<(), SyntaxError> {
        if matches!(self.level().opener, Opener::Rule(..)) {
            let (level, body) = self.end_level(place)?;
            if let Opener::Rule(index, attributes) = level.opener {
                let body = self.with_attributes(attributes, body);
                self.text.names[index as usize].0 = Some(body);
            }
            return Ok(());
        }
        let (at, what) = match self.level().opener {
            Opener::Entry(_) => match self.containers.last() {
                Some(&(at, Container::Array(_))) => (at, "the array has no closing `}`"),
                Some(&(at, Container::Object(_))) => (at, "the object has no closing `}`"),
                None => unreachable!("entries are read within an object or an array"),
            },
            _ => (self.level().place, "the group has no closing `)`"),
        };
        Err(SyntaxError::at(at, format!("{what} before {before}; close it")))
    }
}
