//! What other notations say within a structural tag: EBNF, Lark, patterns and JSON Schemas.

use indexmap::IndexMap;
use stencilm_regex::syntax::{Anchoring, Dialect, PatternErrorKind, PatternOptions, Utf8, parse_pattern};

use super::lower::{Lowering, SchemaKey, Settings};
use super::styles::Style;
use super::tree::{Format, Syntax, Tree};
use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{Grammar, NodeId};
use crate::ir::report::KeptReport;
use crate::json_schema::options::JsonSchemaOptions;
use crate::json_schema::read::document::JsonId;
use crate::json_schema::{arguments, from_values, part};
use crate::notations::lark::LarkOptions;
use crate::notations::regex::matches_nothing;

/// Schemas with the same options.
type SameOptions<'a, 'o> = IndexMap<SchemaKey<'a>, (JsonId, &'o JsonSchemaOptions)>;

impl<'a> Lowering<'a> {
    /// The report that a part gets: an empty one if no report was requested.
    fn report_of_parts(&self) -> Option<KeptReport> {
        (!self.reports).then(KeptReport::default)
    }

    /// Refuses a part that is longer than it may be by itself.
    fn check_length(&self, part: &str, what: &str, at: JsonId) -> Result<(), GrammarError> {
        if part.len() <= self.max_bytes {
            return Ok(());
        }
        let message = format!(
            "{what} has {} bytes and at most {} are accepted; split it up, or raise `schema_bytes` of the limits",
            part.len(),
            self.max_bytes
        );
        Err(GrammarError::new(ErrorKind::Limit, self.document.pointer(at), message))
    }

    pub(super) fn grammar_text(&mut self, text: &'a str, syntax: Syntax, at: JsonId) -> Result<NodeId, GrammarError> {
        self.check_length(text, "the grammar", at)?;
        if let Some(&known) = self.grammars.get(&(text, syntax)) {
            return Ok(known);
        }
        let grammar = match syntax {
            Syntax::Ebnf => Grammar::from_ebnf(text, "root"),
            Syntax::Lark => Grammar::from_lark(text, &LarkOptions::default()),
        };
        let grammar = grammar.map_err(|inner| {
            let place = format!("{}/grammar", self.document.pointer(at));
            GrammarError::new(inner.kind, place, inner.to_string())
        })?;
        let node = self.add(&grammar);
        self.grammars.insert((text, syntax), node);
        Ok(node)
    }

    pub(super) fn regex(&mut self, pattern: &'a str, at: JsonId) -> Result<NodeId, GrammarError> {
        self.check_length(pattern, "the pattern", at)?;
        if let Some(&known) = self.regexes.get(pattern) {
            return Ok(known);
        }
        let options = PatternOptions { dialect: Dialect::Standard, anchoring: Anchoring::Whole };
        let expr = parse_pattern(&mut self.builder.exprs, pattern, &options, &mut Utf8).map_err(|inner| {
            let kind = match inner.kind {
                PatternErrorKind::Syntax => ErrorKind::Syntax,
                PatternErrorKind::Unsupported => ErrorKind::Unsupported,
                PatternErrorKind::Limit => ErrorKind::Limit,
            };
            let place = format!("{}/pattern", self.document.pointer(at));
            GrammarError::new(kind, place, format!("offset {}: {}", inner.offset, inner.message))
        })?;
        if !self.builder.matches_some(expr)? {
            let place = format!("{}/pattern", self.document.pointer(at));
            return Err(GrammarError::new(ErrorKind::Unsatisfiable, place, matches_nothing(pattern)));
        }
        let node = self.builder.lexeme(expr);
        self.regexes.insert(pattern, node);
        Ok(node)
    }

    /// Lowers all schemas without references together, which takes a fraction of the time: hundreds of tools have
    /// hundreds of similar schemas. If that fails, the schemas are lowered one by one, which gives better errors.
    pub(super) fn plain_schemas(&mut self, tree: &Tree<'a>, max_exprs: usize) -> Result<(), GrammarError> {
        // These have a meaning for the whole document.
        if ["\"$id\"", "\"$anchor\"", "\"$dynamicAnchor\"", "\"$recursiveAnchor\""]
            .iter()
            .any(|word| self.text.contains(word))
        {
            return Ok(());
        }
        let mut read: Vec<(JsonId, SchemaKey<'a>)> = Vec::new();
        let mut by_options: IndexMap<Settings, SameOptions<'a, '_>> = IndexMap::new();
        for slot in &tree.slots {
            // Schemas with excluded texts are lowered separately.
            if let Format::Schema { schema, style, options } = &slot.format
                && options.excludes.is_empty()
            {
                let text = self.document.spelled(self.text, *schema);
                if !text.contains("\"$") && text.len() <= self.max_bytes {
                    let key = SchemaKey { text, settings: Settings::new(*style, options) };
                    let group = by_options.entry(key.settings.clone()).or_default();
                    group.entry(key.clone()).or_insert((*schema, options));
                    read.push((*schema, key));
                }
            }
        }
        for (settings, group) in by_options.into_iter().filter(|(_, group)| group.len() > 1) {
            let values: Vec<JsonId> = group.values().map(|&(at, _)| at).collect();
            let (_, options) = group[0];
            let (written, report) = (settings.style.arguments(), self.report_of_parts());
            let together = || from_values(self.document, &values, options, written, report);
            let Some((mut grammar, nodes)) = GrammarError::decided("", together)? else { continue };
            self.report.append(std::mem::take(&mut grammar.report))?;
            let first = self.add_all_of(grammar, max_exprs);
            let nodes = nodes.into_iter().map(|node| NodeId(first.0 + node.0));
            self.schemas.extend(group.into_keys().zip(nodes));
        }
        self.plain = read.into_iter().filter_map(|(at, key)| Some((at, *self.schemas.get(&key)?))).collect();
        Ok(())
    }

    pub(super) fn schema(
        &mut self,
        at: JsonId,
        style: Style,
        options: &JsonSchemaOptions,
    ) -> Result<NodeId, GrammarError> {
        if let Some(&known) = self.plain.get(&at) {
            return Ok(known);
        }
        let text = self.document.spelled(self.text, at);
        self.check_length(text, "the schema", at)?;
        let key = SchemaKey { text, settings: Settings::new(style, options) };
        if let Some(&known) = self.schemas.get(&key) {
            return Ok(known);
        }
        let place = self.document.pointer(at);
        let options = &JsonSchemaOptions { max_bytes: self.max_bytes, ..options.clone() };
        let grammar = match style.arguments() {
            None => part(text, options, self.report_of_parts()),
            Some(written) => arguments(text, written, options, self.report_of_parts()),
        };
        let grammar = grammar.map_err(|inner| placed(inner, &place, "#"))?;
        self.report.absorb(&grammar.report, &place, "#")?;
        let node = self.add(&grammar);
        self.schemas.insert(key, node);
        Ok(node)
    }
}

/// An error in a schema, at its place in the structural tag; `from` is the beginning of the schema's own pointers.
pub(super) fn placed(inner: GrammarError, place: &str, from: &str) -> GrammarError {
    match inner.place.strip_prefix(from) {
        Some(rest) => GrammarError { place: format!("{place}{rest}"), ..inner },
        None => GrammarError::new(inner.kind, place, inner.to_string()),
    }
}
