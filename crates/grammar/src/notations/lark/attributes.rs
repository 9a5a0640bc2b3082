//! What stands in the brackets after the name of a rule: where its text ends, how long it may be, and by which name it
//! can be asked for.

use stencilm_regex::syntax::{Alphabet, Utf8};

use super::tree::{Attribute, Definition, Part, Unit, Value};
use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::Mark;
use crate::ir::syntax_error::SyntaxError;
use crate::notations::ebnf::escapes;
use crate::notations::ebnf::macros::number_mark;
use crate::notations::ebnf::tree::{Part as Made, PartId as MadeId, Text};

/// The end of the text of a rule.
pub(super) struct Ends {
    pub value: Value,
    pub place: usize,
    /// Whether the rule includes it, as for a suffix.
    is_read: bool,
}

/// What the attributes of a rule do with its body.
#[derive(Default)]
pub(super) struct Wrapping {
    lazy: bool,
    pub ends: Option<Ends>,
    max_chars: Option<u32>,
    capture: Option<String>,
    pub stop_capture: Option<String>,
    max_tokens: Option<Mark>,
    temperature: Option<Mark>,
}

/// Reads the attributes of a rule.
pub(super) fn read(unit: &Unit, name: &str, definition: &Definition) -> Result<Wrapping, SyntaxError> {
    let mut wrapping = Wrapping::default();
    for attribute in &definition.attributes {
        let Attribute { name: known, value, place } = attribute;
        let wrong = |what: &str| Err(SyntaxError::at(*place, format!("`{known}` of `{name}` {what}")));
        if definition.is_terminal {
            return wrong("stands at a terminal; attributes belong to rules: write a rule that is this terminal");
        }
        if definition.attributes.iter().filter(|other| other.name == *known).count() > 1 {
            return wrong("is given twice; leave one out");
        }
        match (known.as_str(), value) {
            ("lazy", None) => wrapping.lazy = true,
            ("capture", None) => wrapping.capture = Some(name.to_string()),
            ("capture", Some(Value::Text(text, false))) => wrapping.capture = Some(text.clone()),
            ("stop_capture", Some(Value::Text(text, false))) => wrapping.stop_capture = Some(text.clone()),
            // An empty `stop` means that the text ends where what follows the rule begins, or at the end of the whole
            // text. This is so anyway.
            ("stop", Some(Value::Text(text, _))) if text.is_empty() => {}
            ("suffix", Some(Value::Text(text, _))) if text.is_empty() => {
                return wrong("is empty; a rule ends where what follows it begins, so leave it out");
            }
            ("stop" | "suffix", Some(Value::Number(_))) | ("stop" | "suffix", None) => {
                return wrong("needs a text, a pattern or a terminal, as in suffix=\"</end>\"");
            }
            ("stop" | "suffix", Some(value)) => {
                if wrapping.ends.is_some() {
                    return wrong("comes second; a rule has one `stop` or one `suffix`");
                }
                let is_read = known == "suffix";
                wrapping.ends = Some(Ends { value: value.clone(), place: *place, is_read });
            }
            ("max_chars", Some(Value::Number(number))) => match number.parse() {
                Ok(count) => wrapping.max_chars = Some(count),
                Err(_) => return wrong("needs a whole number up to 4294967295"),
            },
            ("max_tokens" | "temperature", value) => {
                let number = if let Some(Value::Number(number)) = value { number } else { "" };
                let mark = number_mark(*place, known, &format!("`{name}`"), number)?;
                let slot = if known == "max_tokens" { &mut wrapping.max_tokens } else { &mut wrapping.temperature };
                *slot = Some(mark);
            }
            ("lazy" | "capture" | "stop_capture" | "max_chars", _) => {
                return wrong("is written `lazy`, `capture`, capture=\"name\", stop_capture=\"name\" or max_chars=100");
            }
            _ => {
                return wrong(
                    "is not known; there are lazy, suffix, stop, stop_capture, capture, max_chars, max_tokens and \
                     temperature",
                );
            }
        }
    }
    if let Some(ends) = &wrapping.ends {
        if !ends.is_read && wrapping.stop_capture.is_some() {
            let message =
                format!("`stop` of `{name}` reads nothing that could be captured; write `suffix` in its place");
            return Err(SyntaxError::unsupported(ends.place, message));
        }
    } else if wrapping.stop_capture.is_some() {
        let message = format!("`stop_capture` of `{name}` has nothing to capture; add suffix=\"...\"");
        return Err(SyntaxError::at(definition.place, message));
    }
    if wrapping.lazy && ends_with_token(unit, definition) {
        // Text never contains the token, so it ends at the first one anyway.
        wrapping.lazy = false;
    }
    Ok(wrapping)
}

fn ends_with_token(unit: &Unit, definition: &Definition) -> bool {
    let last = match unit.part(definition.body) {
        Part::Sequence(parts) => parts.last().map(|&part| unit.part(part)),
        part => Some(part),
    };
    matches!(last, Some(Part::Token(_)))
}

impl Wrapping {
    /// Whether the body has marks that don't apply to its suffix.
    fn divides_suffix(&self) -> bool {
        self.capture.is_some() || self.stop_capture.is_some() || self.max_tokens.is_some()
    }

    /// Whether a suffix is a separate part that may begin with many alternatives.
    pub(super) fn divides_pattern(&self) -> bool {
        let is_pattern = |ends: &Ends| ends.is_read && !matches!(ends.value, Value::Text(_, false));
        self.divides_suffix() && self.ends.as_ref().is_some_and(is_pattern)
    }

    /// The marks of the body, the innermost first.
    pub(super) fn marks(&self) -> impl Iterator<Item = Mark> + use<> {
        let capture = self.capture.as_ref().map(|name| Mark::Capture(name.as_str().into()));
        [self.max_tokens.clone(), self.temperature.clone(), capture].into_iter().flatten()
    }

    /// Whether the tokens of the body have their own temperature.
    pub(super) fn has_temperature(&self) -> bool {
        self.temperature.is_some()
    }

    /// Whether the body may only contain text and terminals.
    pub(super) fn needs_terminal(&self) -> bool {
        self.lazy || self.ends.is_some() || self.max_chars.is_some()
    }

    /// The body, and what is read after it as a separate part.
    pub(super) fn apply(
        &self,
        tree: &mut Text,
        builder: &mut GrammarBuilder,
        mut body: MadeId,
        ending: Option<MadeId>,
        place: usize,
    ) -> (MadeId, Option<MadeId>) {
        let any = Utf8.class(&mut builder.exprs, &[('\0', char::MAX)]);
        let any = tree.add(place, Made::Terminal(any));
        let anything = tree.add(place, Made::Repeat { body: any, min: 0, max: None });
        if let Some(max) = self.max_chars {
            let short = tree.add(place, Made::Repeat { body: any, min: 0, max: Some(max) });
            body = tree.add(place, Made::And(vec![body, short]));
        }
        if let (Some(ends), Some(ending)) = (&self.ends, ending) {
            if !ends.is_read {
                let holds = tree.add(place, Made::Sequence(vec![anything, ending, anything]));
                let without = tree.add(place, Made::Complement(holds));
                return (tree.add(place, Made::And(vec![body, without])), None);
            }
            if !self.divides_suffix() {
                let both = tree.add(place, Made::Sequence(vec![body, ending]));
                return (tree.add(place, Made::Lazy(both)), None);
            }
            let Value::Text(text, false) = &ends.value else {
                // It begins where `divided` decides, once the body is known as an expression.
                return (body, Some(ending));
            };
            // The suffix is a separate part, so no earlier suffix may begin in the body: neither within it, nor at its
            // end, where a beginning of the suffix would be continued by the suffix itself.
            let earlier = tree.add(place, Made::Sequence(vec![body, ending, anything]));
            let mut earlier = vec![earlier];
            for (at, _) in text.char_indices().skip(1).filter(|&(at, _)| text.starts_with(&text[at..])) {
                let begun = builder.exprs.literal(&text.as_bytes()[..at]);
                let begun = tree.add(place, Made::Terminal(begun));
                earlier.push(tree.add(place, Made::Sequence(vec![body, begun])));
            }
            let earlier = tree.add(place, Made::Choice(earlier));
            let first = tree.add(place, Made::Complement(earlier));
            return (tree.add(place, Made::And(vec![body, first])), Some(ending));
        }
        if self.lazy { (tree.add(place, Made::Lazy(body)), None) } else { (body, None) }
    }
}

/// A value, for messages.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Text(text, _) => format!("{:?}", escapes::excerpt(text)),
        Value::Pattern(pattern, _) => format!("/{}/", escapes::excerpt(pattern)),
        Value::Name(name) | Value::Number(name) => format!("`{}`", escapes::excerpt(name)),
    }
}
