//! JSON to a [`Tree`]: every format is checked where it stands, from the outermost inwards, with a list of work.

use std::rc::Rc;

use indexmap::IndexSet;
use stencilm_support::{HashSet, check_time};

use super::fields::{Fields, error};
use super::styles::Style;
use super::tree::{Format, FormatId, Marker, Rounds, Slot, TokenRef, Tree};
use crate::error::{ErrorKind, GrammarError};
use crate::json_schema::options::JsonSchemaOptions;
use crate::json_schema::read::document::{Document, Json, JsonId};

/// The greatest number of formats of one structural tag.
const MAX_FORMATS: usize = 200_000;

/// The format types, for messages.
const TYPES: [&str; 21] = [
    "const_string",
    "json_schema",
    "any_text",
    "any_tokens",
    "token",
    "exclude_token",
    "grammar",
    "regex",
    "sequence",
    "or",
    "tag",
    "triggered_tags",
    "token_triggered_tags",
    "tags_with_separator",
    "optional",
    "plus",
    "star",
    "repeat",
    "dispatch",
    "token_dispatch",
    "qwen_xml_parameter",
];

/// Reads a whole structural tag, a single format, or the older form with `structures` and `triggers`.
pub(super) fn read<'d, 't>(document: &'d Document<'t>) -> Result<Tree<'d>, GrammarError> {
    let root = document.root();
    let fields = Fields::of(document, root, "a structural tag")?;
    let mut reader = Reader { document, slots: Vec::new(), work: Vec::new(), nothing: Rc::default() };
    if fields.get("structures").is_some() {
        reader.legacy(&fields)?;
    } else {
        let is_wrapped = match fields.get("type").map(|at| document.get(at)) {
            Some(Json::String(name)) => name == "structural_tag",
            _ => fields.get("format").is_some(),
        };
        let format = if is_wrapped {
            fields.only(&["format"])?;
            fields.required("format")?
        } else {
            root
        };
        let nothing = reader.nothing.clone();
        reader.add(format, &nothing, true)?;
    }
    while let Some(id) = reader.work.pop() {
        let slot = &reader.slots[id.index()];
        let (at, ends, is_last) = (slot.at, slot.ends.clone(), slot.is_last);
        check_time().map_err(|limit| GrammarError::limit(document.pointer(at), limit))?;
        let format = reader.format(at, &ends, is_last)?;
        reader.slots[id.index()].format = format;
    }
    Ok(Tree { slots: reader.slots })
}

struct Reader<'d, 't> {
    document: &'d Document<'t>,
    slots: Vec<Slot<'d>>,
    work: Vec<FormatId>,
    /// An empty list of ends.
    nothing: Rc<Vec<Marker<'d>>>,
}

type Ends<'d> = Rc<Vec<Marker<'d>>>;

impl<'d, 't> Reader<'d, 't> {
    /// Adds a format that is read later.
    fn add(&mut self, at: JsonId, ends: &Ends<'d>, is_last: bool) -> Result<FormatId, GrammarError> {
        let id = self.put(Format::Unread, at, ends, is_last)?;
        self.work.push(id);
        Ok(id)
    }

    fn put(
        &mut self,
        format: Format<'d>,
        at: JsonId,
        ends: &Ends<'d>,
        is_last: bool,
    ) -> Result<FormatId, GrammarError> {
        if self.slots.len() >= MAX_FORMATS {
            let message = format!("the structural tag has more than {MAX_FORMATS} formats; split it");
            return Err(GrammarError::new(ErrorKind::Limit, self.document.pointer(at), message));
        }
        self.slots.push(Slot { format, at, ends: ends.clone(), is_last });
        Ok(FormatId(self.slots.len() as u32 - 1))
    }

    fn add_all(&mut self, items: &[JsonId], ends: &Ends<'d>) -> Result<Vec<FormatId>, GrammarError> {
        items.iter().map(|&item| self.add(item, ends, false)).collect()
    }

    /// The tags of a list, in which `"type": "tag"` may be omitted.
    fn tags(&mut self, fields: &Fields<'d, 't>) -> Result<Vec<FormatId>, GrammarError> {
        let mut tags = Vec::new();
        for &item in fields.items("tags")? {
            let tag = Fields::of(self.document, item, "a tag")?;
            if tag.get("type").is_some() && tag.text("type")? != "tag" {
                let message = format!("{:?} stands among tags; give it the type \"tag\"", tag.text("type")?);
                return Err(error(self.document, item, message));
            }
            let nothing = self.nothing.clone();
            tags.push(self.add(item, &nothing, false)?);
        }
        Ok(tags)
    }

    fn legacy(&mut self, fields: &Fields<'d, 't>) -> Result<(), GrammarError> {
        fields.only(&["structures", "triggers", "at_least_one", "stop_after_first"])?;
        let nothing = self.nothing.clone();
        let triggers = fields.texts("triggers")?;
        fields.items("triggers")?;
        let root = self.put(Format::Unread, fields.at, &nothing, true)?;
        let mut tags = Vec::new();
        for &item in fields.items("structures")? {
            let item = Fields::of(self.document, item, "a structure")?;
            item.only(&["begin", "schema", "end"])?;
            let ends = Rc::new(vec![Marker::Text(item.text("end")?)]);
            let begin = Marker::Text(item.text("begin")?);
            let tag = self.put(Format::Unread, item.at, &nothing, false)?;
            let schema = item.required("schema")?;
            let options = Box::new(JsonSchemaOptions::default());
            let format = Format::Schema { schema, style: Style::Json, options };
            let content = self.put(format, item.at, &ends, true)?;
            self.slots[tag.index()].format = Format::Tag { begin, content };
            tags.push(tag);
        }
        let rounds = Self::rounds(fields)?;
        self.slots[root.index()].format = Format::Triggered { triggers, tags, excludes: Vec::new(), rounds };
        Ok(())
    }

    fn rounds(fields: &Fields<'d, 't>) -> Result<Rounds, GrammarError> {
        let at_least_one = fields.flag("at_least_one", false)?;
        Ok(Rounds { at_least_one, stop_after_first: fields.flag("stop_after_first", false)? })
    }

    /// A token that is written as a format.
    fn token_format(&self, at: JsonId, name: &str) -> Result<TokenRef<'d>, GrammarError> {
        let fields = Fields::of(self.document, at, &format!("{name:?} of a tag"))?;
        if fields.text("type")? != "token" {
            let message = format!(
                "{name:?} of a tag is a format of type {:?}; give a string or a token, or a regex to begin with",
                fields.text("type")?
            );
            return Err(error(self.document, at, message));
        }
        fields.only(&["token"])?;
        fields.token_at(fields.required("token")?, "token")
    }

    fn marker(&self, fields: &Fields<'d, 't>, at: JsonId, name: &str) -> Result<Marker<'d>, GrammarError> {
        match self.document.get(at) {
            Json::Object(_) => self.token_format(at, name).map(Marker::Token),
            _ => fields.text_at(at, name).map(Marker::Text),
        }
    }

    /// The beginning of a tag: a text, a token or a pattern.
    fn begin(&self, fields: &Fields<'d, 't>, at: JsonId) -> Result<Marker<'d>, GrammarError> {
        if let Some(Json::String(kind)) =
            self.document.entries(at).and_then(|entries| entries.get("type")).map(|&at| self.document.get(at))
            && kind == "regex"
        {
            let fields = Fields::of(self.document, at, "\"begin\" of a tag")?;
            fields.only(&["pattern"])?;
            return Ok(Marker::Pattern(fields.text("pattern")?, at));
        }
        self.marker(fields, at, "begin")
    }

    fn ends(&self, fields: &Fields<'d, 't>) -> Result<Vec<Marker<'d>>, GrammarError> {
        let at = fields.required("end")?;
        let Json::Array(_) = self.document.get(at) else { return Ok(vec![self.marker(fields, at, "end")?]) };
        let mut ends = IndexSet::new();
        for &item in fields.items("end")? {
            ends.insert(self.marker(fields, item, "end")?);
        }
        Ok(ends.into_iter().collect())
    }

    fn format(&mut self, at: JsonId, ends: &Ends<'d>, is_last: bool) -> Result<Format<'d>, GrammarError> {
        let fields = Fields::of(self.document, at, "a format")?;
        let kind = match fields.get("type") {
            Some(_) => fields.text("type")?,
            // An entry of a list of tags; `tags` refuses everything else.
            None if fields.get("begin").is_some() => "tag",
            None => {
                return Err(error(self.document, at, format!("a format needs a type: one of {}", TYPES.join(", "))));
            }
        };
        let article = if kind.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
        let fields = fields.named(&format!("{article} {kind}"));
        Ok(match kind {
            "const_string" => {
                fields.only(&["value"])?;
                Format::Const(fields.text("value")?)
            }
            "json_schema" | "qwen_xml_parameter" => self.schema(&fields, kind)?,
            "grammar" => {
                fields.only(&["grammar", "syntax"])?;
                Format::Grammar { text: fields.text("grammar")?, syntax: fields.syntax()? }
            }
            "regex" => {
                fields.only(&["pattern"])?;
                Format::Regex(fields.text("pattern")?)
            }
            "any_text" => {
                fields.only(&["excludes", "max_chars", "max_tokens"])?;
                Format::AnyText {
                    excludes: fields.texts("excludes")?,
                    max_chars: fields.count("max_chars")?,
                    max_tokens: fields.count("max_tokens")?,
                }
            }
            "sequence" | "or" | "optional" | "plus" | "star" | "repeat" => {
                self.composed(&fields, kind, ends, is_last)?
            }
            "tag" | "triggered_tags" | "tags_with_separator" | "dispatch" => self.tagged(&fields, kind, ends)?,
            "token" | "exclude_token" | "any_tokens" | "token_triggered_tags" | "token_dispatch" => {
                self.of_tokens(&fields, kind, ends)?
            }
            other => {
                let at = fields.required("type")?;
                let message = format!("{other:?} is no type of a format; give one of {}", TYPES.join(", "));
                return Err(error(self.document, at, message));
            }
        })
    }

    /// A format that consists of others.
    fn composed(
        &mut self,
        fields: &Fields<'d, 't>,
        kind: &str,
        ends: &Ends<'d>,
        is_last: bool,
    ) -> Result<Format<'d>, GrammarError> {
        Ok(match kind {
            "sequence" => {
                fields.only(&["elements"])?;
                let mut elements = self.add_all(fields.items("elements")?, ends)?;
                if let Some(last) = elements.last_mut() {
                    self.slots[last.index()].is_last = is_last;
                }
                Format::Sequence(elements)
            }
            "or" => {
                fields.only(&["elements"])?;
                let elements = self.add_all(fields.items("elements")?, ends)?;
                for element in &elements {
                    self.slots[element.index()].is_last = is_last;
                }
                Format::Or(elements)
            }
            "optional" | "plus" | "star" => {
                fields.only(&["content"])?;
                let content = self.add(fields.required("content")?, ends, false)?;
                let (min, max) = match kind {
                    "optional" => (0, Some(1)),
                    "plus" => (1, None),
                    _ => (0, None),
                };
                Format::Repeat { content, min, max }
            }
            _ => {
                fields.only(&["content", "min", "max"])?;
                let min = fields.required("min").and_then(|_| fields.count("min"))?.unwrap_or(0);
                let max = fields.most("max")?;
                if max.is_some_and(|max| max < min) {
                    let message = format!("min {min} is above max {}; exchange them", max.unwrap_or(0));
                    return Err(error(self.document, fields.at, message));
                }
                Format::Repeat { content: self.add(fields.required("content")?, ends, false)?, min, max }
            }
        })
    }

    /// Tags, and text that contains tags.
    fn tagged(&mut self, fields: &Fields<'d, 't>, kind: &str, ends: &Ends<'d>) -> Result<Format<'d>, GrammarError> {
        Ok(match kind {
            "tag" => {
                fields.only(&["begin", "content", "end"])?;
                let begin = self.begin(fields, fields.required("begin")?)?;
                let ends = Rc::new(self.ends(fields)?);
                let content = self.add(fields.required("content")?, &ends, true)?;
                Format::Tag { begin, content }
            }
            "triggered_tags" => {
                fields.only(&["triggers", "tags", "at_least_one", "stop_after_first", "excludes"])?;
                fields.items("triggers")?;
                let (triggers, excludes) = (fields.texts("triggers")?, fields.texts("excludes")?);
                Format::Triggered { triggers, tags: self.tags(fields)?, excludes, rounds: Self::rounds(fields)? }
            }
            "tags_with_separator" => {
                fields.only(&["tags", "separator", "at_least_one", "stop_after_first"])?;
                let (separator, rounds) = (fields.text("separator")?, Self::rounds(fields)?);
                Format::Separated { tags: self.tags(fields)?, separator, rounds }
            }
            _ => {
                fields.only(&["rules", "loop", "excludes"])?;
                let mut rules: Vec<(&str, FormatId)> = Vec::new();
                let mut known = HashSet::default();
                for &rule in fields.items_at(fields.required("rules")?, "rules")? {
                    let (pattern, content) = self.pair(fields, rule)?;
                    let text = fields.text_at(pattern, "rules")?;
                    if text.is_empty() || !known.insert(text) {
                        let message = format!("the pattern {text:?} is empty, or a rule has it already; give another");
                        return Err(error(self.document, pattern, message));
                    }
                    rules.push((text, self.add(content, ends, false)?));
                }
                Format::Dispatch { rules, excludes: fields.texts("excludes")?, rounds: Self::dispatch_rounds(fields)? }
            }
        })
    }

    /// Formats of tokens and of what follows them.
    fn of_tokens(&mut self, fields: &Fields<'d, 't>, kind: &str, ends: &Ends<'d>) -> Result<Format<'d>, GrammarError> {
        Ok(match kind {
            "token" => {
                fields.only(&["token"])?;
                Format::Token(fields.token_at(fields.required("token")?, "token")?)
            }
            "exclude_token" => {
                fields.only(&["exclude_tokens"])?;
                Format::OtherTokens { excludes: fields.tokens("exclude_tokens")?, min: 1, max: Some(1) }
            }
            "any_tokens" => {
                fields.only(&["exclude_tokens", "max_tokens"])?;
                let max = fields.count("max_tokens")?;
                Format::OtherTokens { excludes: fields.tokens("exclude_tokens")?, min: 0, max }
            }
            "token_triggered_tags" => {
                fields.only(&["trigger_tokens", "tags", "exclude_tokens", "at_least_one", "stop_after_first"])?;
                let excludes = fields.tokens("exclude_tokens")?;
                let mut triggers = Vec::new();
                let mut taken = excludes.iter().cloned().collect();
                for &item in fields.items("trigger_tokens")? {
                    let token = fields.token_at(item, "trigger_tokens")?;
                    self.take_trigger(&mut taken, &token, item)?;
                    triggers.push(token);
                }
                Format::TokenTriggered { triggers, tags: self.tags(fields)?, excludes, rounds: Self::rounds(fields)? }
            }
            _ => {
                fields.only(&["rules", "loop", "exclude_tokens"])?;
                let mut rules: Vec<(TokenRef<'d>, FormatId)> = Vec::new();
                let excludes = fields.tokens("exclude_tokens")?;
                let mut taken = excludes.iter().cloned().collect();
                for &rule in fields.items_at(fields.required("rules")?, "rules")? {
                    let (at, content) = self.pair(fields, rule)?;
                    let token = fields.token_at(at, "rules")?;
                    self.take_trigger(&mut taken, &token, at)?;
                    rules.push((token, self.add(content, ends, false)?));
                }
                Format::TokenDispatch { rules, excludes, rounds: Self::dispatch_rounds(fields)? }
            }
        })
    }

    /// A trigger token, which must be neither excluded nor repeated.
    fn take_trigger(
        &self,
        taken: &mut HashSet<TokenRef<'d>>,
        token: &TokenRef<'d>,
        at: JsonId,
    ) -> Result<(), GrammarError> {
        if !taken.insert(token.clone()) {
            let shown = self.document.show(at);
            let message =
                format!("the token {shown} is excluded, or leads somewhere already; leave it out of one place");
            return Err(error(self.document, at, message));
        }
        Ok(())
    }

    fn dispatch_rounds(fields: &Fields<'d, 't>) -> Result<Rounds, GrammarError> {
        Ok(Rounds { at_least_one: false, stop_after_first: !fields.flag("loop", true)? })
    }

    fn pair(&self, fields: &Fields<'d, 't>, at: JsonId) -> Result<(JsonId, JsonId), GrammarError> {
        match fields.items_at(at, "rules")? {
            &[pattern, content] => Ok((pattern, content)),
            _ => Err(error(self.document, at, "a rule is a pair: [pattern, format]")),
        }
    }

    fn schema(&self, fields: &Fields<'d, 't>, kind: &str) -> Result<Format<'d>, GrammarError> {
        let mut known = vec![
            "json_schema",
            "any_order",
            "any_whitespace",
            "strict_mode",
            "max_whitespace",
            "max_whitespace_cnt",
            "excludes",
            "on_unsupported",
        ];
        let style = if kind == "json_schema" {
            known.push("style");
            match fields.get("style") {
                None => Style::Json,
                Some(at) => Style::named(fields.text("style")?).ok_or_else(|| {
                    let message = format!("{} is no style; give one of {}", self.document.show(at), Style::names());
                    error(self.document, at, message)
                })?,
            }
        } else {
            Style::named("qwen_xml").expect("this style is in the table")
        };
        fields.only(&known)?;
        let mut options = JsonSchemaOptions {
            any_order: fields.flag("any_order", false)?,
            any_whitespace: fields.flag("any_whitespace", true)?,
            strict_mode: fields.flag("strict_mode", false)?,
            ..JsonSchemaOptions::default()
        };
        if let Some(at) = fields.get("on_unsupported") {
            options.relax = match fields.text("on_unsupported")? {
                "error" => false,
                "relax" => true,
                _ => {
                    let message = format!("on_unsupported is {}: give \"error\" or \"relax\"", self.document.show(at));
                    return Err(error(self.document, at, message));
                }
            };
        }
        if fields.get("max_whitespace").is_some() {
            options.max_whitespace = fields.count("max_whitespace")?;
        }
        // Engines write every field of a tag, with null where no bound was requested: then the default applies.
        if let Some(most) = fields.count("max_whitespace_cnt")? {
            if let Some(at) = fields.get("max_whitespace") {
                let message = "max_whitespace and max_whitespace_cnt are two names of one bound; give one of them";
                return Err(error(self.document, at, message));
            }
            options.max_whitespace = Some(most);
        }
        options.excludes = fields.texts("excludes")?.into_iter().map(Box::from).collect();
        Ok(Format::Schema { schema: fields.required("json_schema")?, style, options: Box::new(options) })
    }
}
