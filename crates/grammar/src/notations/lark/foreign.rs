//! Grammars of other notations within a Lark text: those given by name, and JSON Schemas. Each is added once.

use super::expansion::{Expansion, Scope, Within};
use crate::ir::grammar::NodeId;
use crate::ir::syntax_error::SyntaxError;
use crate::json::layout::GapPatterns;
use crate::json_schema::options::JsonSchemaOptions;
use crate::json_schema::part;
use crate::notations::combine;
use crate::notations::ebnf::tree::{Part as Made, PartId as MadeId};

/// The keyword with the JSON layout of a schema.
const GUIDANCE: &str = "x-guidance";
/// The default whitespace of JSON.
const ANY_WHITESPACE: &str = "[ \\t\\n\\r]{0,64}";

impl Expansion<'_, '_> {
    /// A grammar that was given by name.
    pub(super) fn foreign(
        &mut self,
        scope: &Scope<'_>,
        name: &str,
        within: Within,
        place: usize,
    ) -> Result<MadeId, SyntaxError> {
        if within == Within::Terminal {
            let message =
                format!("the grammar `{name}` stands within a terminal, which is made of text only; use a rule");
            return Err(SyntaxError::at(place, message));
        }
        let read = self.names.read(name).map_err(|error| SyntaxError {
            kind: error.kind,
            offset: place,
            message: error.described(),
        })?;
        let Some(grammar) = read else {
            let known = self.names.listed(|_| true).map(|names| format!(", or use one of {names}")).unwrap_or_default();
            let message = format!("no grammar is named `{name}`; pass it in `grammars`{known}");
            return Err(SyntaxError::at(place, message));
        };
        let node = match self.embedded.get(name) {
            Some(&known) => known,
            None => {
                let node = self.embed(&grammar);
                self.embedded.insert(name.to_string(), node);
                node
            }
        };
        let part = self.tree.add(place, Made::Node(node));
        Ok(self.followed(scope, part))
    }

    pub(super) fn json(&mut self, schema: &str, place: usize) -> Result<NodeId, SyntaxError> {
        // No name of a grammar begins with a brace, so the schema can be the key.
        if let Some(&known) = self.embedded.get(schema) {
            return Ok(known);
        }
        let mut options = layout(schema).map_err(|message| SyntaxError::at(place, message))?;
        options.documents = self.names.symbols.documents();
        let grammar = part(schema, &options, None).map_err(|error| SyntaxError {
            kind: error.kind,
            offset: place,
            message: error.described(),
        })?;
        let node = self.embed(&grammar);
        self.embedded.insert(schema.to_string(), node);
        Ok(node)
    }

    fn embed(&mut self, grammar: &crate::ir::grammar::Grammar) -> NodeId {
        self.reports.push(grammar.report.clone());
        combine::add(self.builder, &mut self.rule_names, grammar)
    }
}

/// The layout of JSON texts, by `x-guidance` at the root of the schema.
fn layout(schema: &str) -> Result<JsonSchemaOptions, String> {
    let mut options = JsonSchemaOptions::default();
    let read: Option<serde_json::Value> =
        if schema.contains(GUIDANCE) { serde_json::from_str(schema).ok() } else { None };
    let Some(guidance) = read.as_ref().and_then(|schema| schema.get(GUIDANCE)) else { return Ok(options) };
    let Some(guidance) = guidance.as_object() else {
        return Err(format!("{GUIDANCE} is {guidance}, but must be an object"));
    };
    let (mut item, mut colon, mut whitespace) = (None, None, None);
    for (name, value) in guidance {
        match (name.as_str(), value.as_bool(), value.as_str()) {
            ("whitespace_flexible", Some(flexible), _) => options.any_whitespace = flexible,
            ("whitespace_pattern", _, Some(pattern)) => whitespace = Some(pattern.to_string()),
            ("item_separator", _, Some(pattern)) => item = Some(pattern.to_string()),
            ("key_separator", _, Some(pattern)) => colon = Some(pattern.to_string()),
            ("lenient", Some(relax), _) => options.relax = relax,
            // `oneOf` is enforced exactly anyway.
            ("coerce_one_of", Some(_), _) => {}
            ("whitespace_pattern", ..) if value.is_null() => {}
            _ => {
                return Err(format!(
                    "the option {name:?} of {GUIDANCE} with {value} is not known; there are whitespace_flexible, \
                     whitespace_pattern, item_separator, key_separator, lenient and coerce_one_of"
                ));
            }
        }
    }
    if whitespace.is_none() && item.is_none() && colon.is_none() {
        // Without a pattern, the common expressions for whitespace are used.
        options.separators = Some((",".to_string(), ":".to_string()));
        return Ok(options);
    }
    let flexible = || if options.any_whitespace { ANY_WHITESPACE.to_string() } else { String::new() };
    options.gaps = Some(GapPatterns {
        whitespace: whitespace.unwrap_or_else(flexible),
        item: item.unwrap_or_else(|| ",".to_string()),
        colon: colon.unwrap_or_else(|| ":".to_string()),
    });
    Ok(options)
}
