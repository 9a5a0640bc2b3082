//! What xgrammar's notation adds: attributes of rules, and macros, which are written like calls.
//!
//! `TagDispatch` is free text until the first trigger, and then the rule of that trigger: one terminal for each
//! trigger, of all texts in which it is the first to be complete.

use std::collections::BTreeSet;

use stencilm_regex::ExprId;
use stencilm_regex::syntax::{Alphabet, Utf8};
use stencilm_support::{HashSet, LimitExceeded};

use super::escapes;
use super::parser::{Attributes, Parser};
use super::scan::Word;
use super::tree::{Part, PartId};
use crate::ir::free_text::{FEW_STRINGS, FreeText};
use crate::ir::grammar::{Mark, Temperature, TokenPattern};
use crate::ir::syntax_error::SyntaxError;
use crate::notations::substring;
use crate::word_trie;

/// The usage of the macro for patterns, for messages.
const REGEX: &str =
    "one pattern, and each option once: Regex(\"[a-z]+\"), Regex(/[a-z]+/, flags=\"ims\", json_string=true)";

/// The macros of a text: all but those whose names its rules have. Heads of rules are found at the beginning of a line,
/// where no text or pattern goes on, so that the names are known before the first of them is used.
pub(super) fn macros_of(text: &str) -> Vec<&'static str> {
    let mut macros = vec!["TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken", "Regex", "Substring"];
    let space_or_tab = [' ', '\t', '\u{feff}'];
    for line in text.lines() {
        let line = line.trim_start_matches(space_or_tab);
        macros.retain(|name| {
            let Some(after) = line.strip_prefix(name) else { return true };
            let after = after.trim_start_matches(space_or_tab);
            !(after.starts_with("::=") || after.starts_with('[') && after.contains("::="))
        });
    }
    macros
}

/// An argument of a macro.
enum Argument {
    Text(String),
    Pattern(String),
    Name(String),
    Tuple(Vec<(usize, Argument)>),
    /// `name=value`
    Option(String, Box<(usize, Argument)>),
}

/// The mark for a `max_tokens` or `temperature` of a rule or a part, given the number as it is written.
pub(crate) fn number_mark(place: usize, name: &str, of: &str, number: &str) -> Result<Mark, SyntaxError> {
    let mark = if name == "max_tokens" {
        number.parse().ok().filter(|&count: &u32| count > 0).map(Mark::MaxTokens)
    } else {
        number.parse().ok().and_then(Temperature::new).map(Mark::Temperature)
    };
    mark.ok_or_else(|| {
        let needed = match name {
            "max_tokens" => "a whole number from 1 to 4294967295, as in max_tokens=100",
            _ => "a number from 0 on, as in temperature=0.7",
        };
        SyntaxError::at(place, format!("`{name}` of {of} needs {needed}"))
    })
}

impl Parser<'_> {
    /// Whether brackets with attributes of a rule follow. They are recognised by the `::=` after them, which cannot
    /// follow a class.
    pub(super) fn attributes_follow(&self) -> bool {
        let Some(inner) = self.scanner.rest().trim_start_matches([' ', '\t']).strip_prefix('[') else { return false };
        let (mut in_text, mut escaped) = (false, false);
        for (at, c) in inner.char_indices() {
            match c {
                '\n' => return false,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_text = !in_text,
                ']' if !in_text => return inner[at + 1..].trim_start_matches([' ', '\t']).starts_with("::="),
                _ => {}
            }
        }
        false
    }

    /// Reads the attributes of a rule, from `[` to `]`.
    pub(super) fn attributes(&mut self, rule: &str) -> Result<Attributes, SyntaxError> {
        let space_or_tab = |c: char| c == ' ' || c == '\t';
        let word = |c: char| c.is_ascii_alphanumeric() || "_.-+".contains(c);
        self.scanner.take_while(space_or_tab);
        let mut attributes = Attributes { place: self.scanner.offset, ..Attributes::default() };
        self.scanner.offset += 1;
        let mut given: Vec<String> = Vec::new();
        loop {
            self.scanner.take_while(space_or_tab);
            let place = self.scanner.offset;
            let name = self.scanner.take_while(word).to_string();
            if given.contains(&name) {
                let message = format!("`{name}` of `{rule}` is given twice; leave one out");
                return Err(SyntaxError::at(place, message));
            }
            given.push(name.clone());
            self.scanner.take_while(space_or_tab);
            let mut value = None;
            if self.scanner.rest().starts_with('=') {
                self.scanner.offset += 1;
                self.scanner.take_while(space_or_tab);
                value = Some(match self.scanner.rest().starts_with('"') {
                    true => self.scanner.quoted('"')?,
                    false => self.scanner.take_while(word).to_string(),
                });
            }
            match (&*name, value) {
                ("lazy", None) => attributes.lazy = true,
                ("lazy", Some(value)) if value == "true" || value == "false" => attributes.lazy = value == "true",
                ("capture", None) => attributes.capture = Some(rule.to_string()),
                ("capture", Some(value)) if !value.is_empty() => attributes.capture = Some(value),
                ("max_chars", Some(value)) if value.parse::<u32>().is_ok() => attributes.max_chars = value.parse().ok(),
                ("max_tokens" | "temperature", value) => {
                    let mark = number_mark(place, &name, &format!("`{rule}`"), &value.unwrap_or_default())?;
                    let slot =
                        if name == "max_tokens" { &mut attributes.max_tokens } else { &mut attributes.temperature };
                    *slot = Some(mark);
                }
                ("lazy" | "capture" | "max_chars", _) => {
                    let message = format!(
                        "`{name}` of `{rule}` is written lazy, capture, capture=\"name\" or max_chars=100, a whole \
                         number up to {}",
                        u32::MAX
                    );
                    return Err(SyntaxError::at(place, message));
                }
                _ => {
                    let message = format!(
                        "`{}` is no attribute of `{rule}`; there are lazy, capture, capture=\"name\", max_chars=100, \
                         max_tokens=100 and temperature=0.7",
                        escapes::excerpt(&name)
                    );
                    return Err(SyntaxError::at(place, message));
                }
            }
            self.scanner.take_while(space_or_tab);
            let place = self.scanner.offset;
            let rest = self.scanner.rest();
            if !rest.starts_with([',', ']']) {
                return Err(SyntaxError::at(place, "attributes are divided by `,` and end with `]`"));
            }
            self.scanner.offset += 1;
            if rest.starts_with(']') {
                return Ok(attributes);
            }
        }
    }

    /// Applies the attributes of a rule to its body.
    pub(super) fn with_attributes(&mut self, attributes: Attributes, mut body: PartId) -> PartId {
        let Attributes { place, lazy, capture, max_chars, max_tokens, temperature } = attributes;
        if let Some(max) = max_chars {
            let any = self.any_text(0, Some(max));
            body = self.text.add(place, Part::And(vec![body, any]));
        }
        if lazy {
            body = self.text.add(place, Part::Lazy(body));
        }
        let capture = capture.map(|name| Mark::Capture(name.into()));
        for mark in [max_tokens, temperature, capture].into_iter().flatten() {
            body = self.text.add(place, Part::Marked { mark, body });
        }
        body
    }

    fn any_text(&mut self, min: u32, max: Option<u32>) -> PartId {
        let any = Utf8.class(self.exprs, &[('\0', char::MAX)]);
        let any = self.exprs.repeat(any, min, max);
        self.text.add(self.scanner.offset, Part::Terminal(any))
    }

    /// Whether this name, followed by an opening bracket, calls a macro. If the text defines a rule of that name, it is
    /// the rule, and the bracket a group after it: GBNF has no macros, and rules keep their names where they are printed.
    pub(super) fn is_macro(&self, name: &str) -> bool {
        self.macros.contains(&name) && self.scanner.rest().trim_start_matches([' ', '\t']).starts_with('(')
    }

    /// Reads a macro, from its opening bracket on.
    pub(super) fn call(&mut self, place: usize, name: &str) -> Result<PartId, SyntaxError> {
        self.expect('(', &format!("`{name}`"))?;
        let arguments = self.arguments(name, 0)?;
        let wrong = |at: usize, what: &str| Err(SyntaxError::at(at, format!("{name} takes {what}")));
        Ok(match name {
            "Regex" => {
                let [(at, Argument::Text(pattern) | Argument::Pattern(pattern)), options @ ..] = &arguments[..] else {
                    return wrong(place, REGEX);
                };
                let (mut flags, mut json_string) = (None, None);
                for (at, option) in options {
                    match option {
                        Argument::Option(name, value) => match (name.as_str(), &value.1) {
                            ("flags", Argument::Text(text)) if flags.is_none() => flags = Some(text.as_str()),
                            ("json_string", Argument::Name(word))
                                if json_string.is_none() && (word == "true" || word == "false") =>
                            {
                                json_string = Some(word == "true");
                            }
                            _ => return wrong(*at, REGEX),
                        },
                        _ => return wrong(*at, REGEX),
                    }
                }
                let expr = self.flagged(*at, pattern, flags.unwrap_or(""), json_string == Some(true))?;
                self.text.add(place, Part::Terminal(expr))
            }
            "Substring" => {
                let mut chunks = Vec::new();
                for (at, argument) in &arguments {
                    let Argument::Text(chunk) = argument else { return wrong(*at, "texts: Substring(\"a\", \"b\")") };
                    chunks.push(chunk.as_str());
                }
                let chunks = match chunks[..] {
                    [text] => substring::characters(text),
                    _ => chunks,
                };
                let expr = match substring::substring(self.exprs, &chunks) {
                    // The error for too many expressions is reported at the next word.
                    Err(LimitExceeded::Expressions(_)) => ExprId::NOTHING,
                    expr => expr.map_err(|limit| SyntaxError::growth(place, limit))?,
                };
                self.text.add(place, Part::Terminal(expr))
            }
            "Token" | "ExcludeToken" => {
                let mut ids = Vec::new();
                for (at, argument) in &arguments {
                    ids.push(id(argument).ok_or_else(|| token_ids(*at, name))?);
                }
                let negated = name == "ExcludeToken";
                if ids.is_empty() && !negated {
                    return wrong(place, "ids of tokens: Token(7, 9)");
                }
                self.text.add(place, Part::Token(of_ids(&ids, negated)))
            }
            "TagDispatch" => self.tag_dispatch(place, arguments)?,
            _ => self.token_tag_dispatch(place, arguments)?,
        })
    }

    /// Reads the arguments up to the closing bracket.
    fn arguments(&mut self, name: &str, depth: usize) -> Result<Vec<(usize, Argument)>, SyntaxError> {
        let mut arguments = Vec::new();
        loop {
            if self.takes(')')? {
                return Ok(arguments);
            }
            let (place, word) = self.next()?;
            let argument = match word {
                Word::Text(text) => Argument::Text(text),
                Word::Pattern(pattern) => Argument::Pattern(pattern),
                Word::Sign('(') if depth < 2 => Argument::Tuple(self.arguments(name, depth + 1)?),
                Word::Name(option) if self.takes('=')? => {
                    let (at, word) = self.next()?;
                    let value = match word {
                        Word::Text(text) => Argument::Text(text),
                        Word::Name(value) => Argument::Name(value),
                        Word::Sign('(') => Argument::Tuple(self.arguments(name, 2)?),
                        _ => return Err(SyntaxError::at(at, format!("{} is no value of `{option}`", word.shown()))),
                    };
                    Argument::Option(option, Box::new((at, value)))
                }
                Word::Name(name) => Argument::Name(name),
                Word::End => return Err(SyntaxError::at(place, format!("{name} has no closing `)`; close it"))),
                _ => return Err(SyntaxError::at(place, format!("{} is no argument of {name}", word.shown()))),
            };
            arguments.push((place, argument));
            if !self.takes(',')? {
                self.expect(')', &format!("the arguments of {name}"))?;
                return Ok(arguments);
            }
        }
    }

    /// Reads the triggers with their rules, the excluded texts, and whether free text follows again.
    fn dispatch(&mut self, name: &str, arguments: Vec<(usize, Argument)>) -> Result<Dispatch, SyntaxError> {
        let mut dispatch = Dispatch { triggers: Vec::new(), excluded: Vec::new(), loops: true };
        for (place, argument) in arguments {
            match argument {
                Argument::Tuple(pair) => {
                    let mut pair = pair.into_iter();
                    match (pair.next(), pair.next(), pair.next()) {
                        (Some((_, trigger)), Some((at, Argument::Name(rule))), None) => {
                            let index = match self.text.names.get_index_of(&rule) {
                                Some(index) => index,
                                None => self.text.names.insert_full(rule, (None, at)).0,
                            };
                            dispatch.triggers.push((place, trigger, index as u32));
                        }
                        _ => {
                            let message = format!("{name} takes pairs of a trigger and a rule: (\"<tag>\", rule)");
                            return Err(SyntaxError::at(place, message));
                        }
                    }
                }
                Argument::Option(option, value) => match (&*option, *value) {
                    ("loop_after_dispatch", (_, Argument::Name(value))) if value == "true" || value == "false" => {
                        dispatch.loops = value == "true";
                    }
                    ("excludes", (_, Argument::Tuple(excluded))) => dispatch.excluded = excluded,
                    (known, _) => {
                        let with =
                            if matches!(known, "loop_after_dispatch" | "excludes") { " with this value" } else { "" };
                        let message = format!(
                            "{name} has no option `{option}`{with}; there are loop_after_dispatch=true or false, and \
                             excludes=(...)"
                        );
                        return Err(SyntaxError::at(place, message));
                    }
                },
                _ => {
                    let message = format!("{name} takes pairs of a trigger and a rule: (\"<tag>\", rule)");
                    return Err(SyntaxError::at(place, message));
                }
            }
        }
        Ok(dispatch)
    }

    fn tag_dispatch(&mut self, place: usize, arguments: Vec<(usize, Argument)>) -> Result<PartId, SyntaxError> {
        let Dispatch { triggers, excluded, loops } = self.dispatch("TagDispatch", arguments)?;
        let (mut texts, mut places): (Vec<(String, u32)>, Vec<usize>) = Default::default();
        for (at, trigger, rule) in triggers {
            places.push(at);
            match trigger {
                Argument::Text(text) if !text.is_empty() => texts.push((text, rule)),
                _ => return Err(SyntaxError::at(at, "a trigger of TagDispatch is a text that is not empty")),
            }
        }
        if let Some((at, within)) = never_complete(&texts, &places) {
            let message = format!("{within:?} is a trigger, too, and complete before this one, which could never come");
            return Err(SyntaxError::at(at, message));
        }
        let mut stops: Vec<String> = Vec::new();
        for (at, stop) in excluded {
            let Argument::Text(stop) = stop else {
                return Err(SyntaxError::at(at, "what TagDispatch excludes is a text"));
            };
            if let Some((trigger, _)) = texts.iter().find(|(trigger, _)| trigger.starts_with(&stop)) {
                let message =
                    format!("{stop:?} is excluded and begins the trigger {trigger:?}, which could never come");
                return Err(SyntaxError::at(at, message));
            }
            stops.push(stop);
        }
        let (triggers, excludes): (Vec<&str>, Vec<&str>) =
            (texts.iter().map(|(text, _)| &**text).collect(), stops.iter().map(|stop| &**stop).collect());
        let free = FreeText::new(self.exprs, &triggers, &excludes, None);
        let mut alternatives = Vec::new();
        if texts.len() > FEW_STRINGS {
            for (before, positions) in free.groups(self.exprs, &triggers) {
                let before = self.text.add(place, Part::Terminal(before));
                let group: Vec<(&str, PartId)> = positions
                    .into_iter()
                    .map(|position| (triggers[position], self.text.add(place, Part::Call(texts[position].1))))
                    .collect();
                let (exprs, text) = (&mut *self.exprs, &mut self.text);
                let alternative = word_trie::trie(group, word_trie::common_beginning, |part| match part {
                    word_trie::Part::Text(literal, part) => {
                        let literal = text.add(place, Part::Terminal(exprs.literal(literal.as_bytes())));
                        text.add(place, Part::Sequence(vec![literal, part]))
                    }
                    word_trie::Part::Any(alternatives) => text.add(place, Part::Choice(alternatives.to_vec())),
                });
                alternatives.push(self.text.add(place, Part::Sequence(vec![before, alternative])));
            }
        } else {
            for (text, rule) in &texts {
                let first = free.until(self.exprs, text);
                let first = self.text.add(place, Part::Terminal(first));
                let call = self.text.add(place, Part::Call(*rule));
                alternatives.push(self.text.add(place, Part::Sequence(vec![first, call])));
            }
        }
        let free = free.unended(self.exprs);
        let free = self.text.add(place, Part::Terminal(free));
        Ok(self.dispatched(place, alternatives, free, loops))
    }

    fn token_tag_dispatch(&mut self, place: usize, arguments: Vec<(usize, Argument)>) -> Result<PartId, SyntaxError> {
        let Dispatch { triggers, excluded, loops } = self.dispatch("TokenTagDispatch", arguments)?;
        let mut stops = Vec::new();
        for (at, stop) in &excluded {
            stops.push(id(stop).ok_or_else(|| token_ids(*at, "TokenTagDispatch"))?);
        }
        let mut closed = stops.clone();
        let mut alternatives = Vec::new();
        for (at, trigger, rule) in &triggers {
            let trigger = id(trigger).ok_or_else(|| token_ids(*at, "TokenTagDispatch"))?;
            if stops.contains(&trigger) {
                let message = format!("the token {trigger} is a trigger and excluded; keep one of the two");
                return Err(SyntaxError::at(*at, message));
            }
            closed.push(trigger);
            let token = self.text.add(place, Part::Token(of_ids(&[trigger], false)));
            let call = self.text.add(place, Part::Call(*rule));
            alternatives.push(self.text.add(place, Part::Sequence(vec![token, call])));
        }
        let free = self.text.add(place, Part::Token(of_ids(&closed, true)));
        let free = self.text.add(place, Part::Repeat { body: free, min: 0, max: None });
        let alternatives = alternatives
            .into_iter()
            .map(|alternative| self.text.add(place, Part::Sequence(vec![free, alternative])))
            .collect();
        Ok(self.dispatched(place, alternatives, free, loops))
    }

    fn dispatched(&mut self, place: usize, mut alternatives: Vec<PartId>, free: PartId, loops: bool) -> PartId {
        if !loops {
            alternatives.push(free);
            return self.text.add(place, Part::Choice(alternatives));
        }
        let body = self.text.add(place, Part::Choice(alternatives));
        let repeated = self.text.add(place, Part::Repeat { body, min: 0, max: None });
        self.text.add(place, Part::Sequence(vec![repeated, free]))
    }
}

struct Dispatch {
    triggers: Vec<(usize, Argument, u32)>,
    excluded: Vec<(usize, Argument)>,
    loops: bool,
}

fn id(argument: &Argument) -> Option<u32> {
    if let Argument::Name(number) = argument { number.parse().ok() } else { None }
}

fn token_ids(at: usize, name: &str) -> SyntaxError {
    SyntaxError::at(at, format!("{name} takes ids of tokens, from 0 up"))
}

fn of_ids(ids: &[u32], negated: bool) -> TokenPattern {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    TokenPattern::Ids { ranges: ids.iter().map(|&id| (id, id)).collect(), negated }
}

/// The index of a trigger within which another one is complete before its end, and that other trigger.
fn never_complete<'a>(triggers: &'a [(String, u32)], places: &[usize]) -> Option<(usize, &'a str)> {
    let known: HashSet<&str> = triggers.iter().map(|(text, _)| &**text).collect();
    let lengths: BTreeSet<usize> = known.iter().map(|text| text.len()).collect();
    triggers.iter().zip(places).find_map(|((text, _), &place)| {
        let parts = (0..text.len()).flat_map(|start| lengths.iter().map(move |length| start..start + length));
        let mut parts = parts.filter(|part| part.end < text.len()).filter_map(|part| text.get(part));
        parts.find_map(|part| known.get(part)).map(|&within| (place, within))
    })
}
