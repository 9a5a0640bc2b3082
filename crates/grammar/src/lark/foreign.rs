//! Grammars of other notations within a Lark text: those given by name, and JSON Schemas. Each is added once.

use super::expand::{Expansion, Scope, Within};
use crate::combine;
use crate::ebnf::tree::{Part as Made, PartId as MadeId};
use crate::error::GrammarError;
use crate::grammar::NodeId;
use crate::json_schema::{JsonSchemaOptions, reported};
use crate::report::Report;
use crate::syntax_error::SyntaxError;

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
            message: described(&error),
        })?;
        let Some(grammar) = read else {
            let message = format!("no grammar is named `{name}`; pass it in `grammars`");
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
        // No name of a grammar begins with a brace.
        if let Some(&known) = self.embedded.get(schema) {
            return Ok(known);
        }
        let grammar = reported(schema, &JsonSchemaOptions::default()).map_err(|error| SyntaxError {
            kind: error.kind,
            offset: place,
            message: described(&error),
        })?;
        let node = self.embed(&grammar);
        self.embedded.insert(schema.to_string(), node);
        Ok(node)
    }

    fn embed(&mut self, grammar: &crate::grammar::Grammar) -> NodeId {
        let Report { enforced, annotations, relaxed } = grammar.report();
        self.report.enforced.extend_from_slice(enforced);
        self.report.annotations.extend_from_slice(annotations);
        self.report.relaxed.extend_from_slice(relaxed);
        combine::add(self.builder, &mut self.rule_names, grammar)
    }
}

/// An error of another text as part of a message; the whole of it needs no place.
pub(super) fn described(error: &GrammarError) -> String {
    match &*error.place {
        "" | "#" => error.message.clone(),
        place => format!("at {place}: {}", error.message),
    }
}
