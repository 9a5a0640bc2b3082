//! Constraints to rules and nodes: one rule for each conjunction of schemas that may be an array or an object.
//!
//! Rules come from a list of work, so neither the depth of a schema nor a recursive `$ref` makes this recurse, and
//! equal conjunctions are one rule: a schema that doubles at every level costs one rule a level. Alternatives without
//! arrays and objects are one lexeme.

use stencilm_regex::ExprId;
use stencilm_support::HashSet;

use super::explain::Branch;
use super::lowering::{Container, Lowering, Task};
use super::marking::{Arguments, Marking};
use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{Grammar, NodeId};
use crate::ir::report::{Fate, Finding, KeptReport};
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::read::schema;
use crate::json_schema::read::schema::SchemaId;

impl<'a> Lowering<'a> {
    /// Configures a lowering for roots that are the arguments of a call, written in this way.
    pub(crate) fn with_arguments(mut self, arguments: Option<Arguments>) -> Result<Lowering<'a>, GrammarError> {
        match arguments {
            None => Ok(self),
            Some(Arguments::Marked(marked)) => {
                self.marking = Some(Box::new(Marking::new(marked)));
                self.prepare_marking();
                Ok(self)
            }
            Some(Arguments::Notated(notation)) => self.with_notation(notation),
        }
    }

    /// The report on the whole document.
    pub(crate) fn report_alone(&mut self) -> Result<KeptReport, GrammarError> {
        self.root()?;
        Ok(self.report())
    }

    /// The grammar of the whole document, with this report if there is one.
    pub(crate) fn grammar(&mut self, report: Option<KeptReport>) -> Result<Grammar, GrammarError> {
        // If no part of the schema is known to be responsible, the error is about the root.
        self.grammar_of_parts(report).map_err(|error| match &*error.place {
            "" => GrammarError { place: self.schemas.place(self.schemas.root), ..error },
            _ => error,
        })
    }

    fn grammar_of_parts(&mut self, report: Option<KeptReport>) -> Result<Grammar, GrammarError> {
        let root = self.root()?;
        let report = report.unwrap_or_else(|| self.report());
        let builder = std::mem::take(&mut self.builder);
        let (schemas, reasons) = (self.schemas, &self.reasons);
        // Only strings with several constraints can turn out to match nothing without a known reason.
        let exprs = reasons.depends_on_lexemes(root).then(|| {
            let mut exprs = builder.exprs.clone();
            exprs.unbound();
            exprs
        });
        builder.finish(root, report).map_err(|error| {
            // A known reason takes precedence over everything else.
            let known = reasons.explain(schemas, None, root);
            let of_texts = || match error.kind {
                ErrorKind::Unsatisfiable => reasons.explain(schemas, exprs, root),
                _ => None,
            };
            known.or_else(of_texts).unwrap_or(error)
        })
    }

    fn root(&mut self) -> Result<NodeId, GrammarError> {
        self.builder.limit_exprs(self.options.max_exprs);
        // An estimate: there are about as many expressions as letters in keys.
        self.builder.exprs.reserve(8 * self.schemas.list.len() + 64);
        self.builder.reserve_nodes(2 * self.schemas.list.len());
        self.root_of(self.schemas.root)
    }

    fn root_of(&mut self, root: SchemaId) -> Result<NodeId, GrammarError> {
        let node = self.node_of_root(root);
        self.builder.whole(node)
    }

    fn node_of_root(&mut self, root: SchemaId) -> Result<NodeId, GrammarError> {
        let node = if self.marking.is_some() {
            self.arguments(root)?
        } else if self.notated.is_some() {
            self.notated_arguments(root)?
        } else {
            let node = self.value(&[Term::Holds(root)], 0)?;
            self.define_all()?;
            node
        };
        self.settle_repeats()?;
        Ok(node)
    }

    /// Builds the bodies of all rules that have none yet.
    pub(crate) fn define_all(&mut self) -> Result<(), GrammarError> {
        while let Some(task) = self.work.pop() {
            self.define(task)?;
        }
        Ok(())
    }

    /// One grammar for several schemas, which are lowered one after the other, and the node of each; with this report
    /// if there is one.
    pub(crate) fn together(
        &mut self,
        roots: &[SchemaId],
        report: Option<KeptReport>,
    ) -> Result<(Grammar, Vec<NodeId>), GrammarError> {
        self.builder.limit_exprs(self.options.max_exprs);
        self.builder.exprs.reserve(8 * self.schemas.list.len() + 64);
        let mut nodes = Vec::with_capacity(roots.len());
        for &root in roots {
            nodes.push(self.root_of(root)?);
        }
        let report = report.unwrap_or_else(|| self.report());
        let root = self.builder.sequence(&nodes);
        Ok((std::mem::take(&mut self.builder).finish(root, report)?, nodes))
    }

    fn define(&mut self, task: Task<'a>) -> Result<(), GrammarError> {
        let Task { rule, node, at, depth, scalars, containers, mut branches } = task;
        let mut choices = Vec::with_capacity(containers.len() + 1);
        if scalars != ExprId::NOTHING {
            choices.push(self.lexeme(scalars));
        }
        for container in containers {
            let (choice, branch) = match container {
                Container::Value(value) => (self.literal(value, depth)?, Branch::Possible),
                Container::Name(node) => (node, Branch::Possible),
                Container::Array(merged) => self.array(&merged, at, depth)?,
                Container::Object(merged) => self.object(&merged, at, depth)?,
            };
            choices.push(choice);
            branches.push(branch);
        }
        let body = if let [only] = *choices { only } else { self.builder.choice(&choices) };
        self.builder.define_rule(rule, body);
        self.reasons.add(node, at, &mut branches);
        Ok(())
    }

    /// Refuses unsupported keywords of the schemas used since the last call, or records them as relaxed.
    pub(crate) fn admit(&mut self) -> Result<(), GrammarError> {
        while let Some(&id) = self.normal.used.get(self.admitted) {
            self.admitted += 1;
            for refusal in &self.schemas.get(id).refusals {
                self.relax(id, refusal.keyword, &refusal.reason)?;
            }
        }
        Ok(())
    }

    fn report(&mut self) -> KeptReport {
        let document = &self.schemas.document;
        // No two schemas have the same position in the text, because each has a value of its own.
        self.normal.used.sort_by_cached_key(|id| document.position(id.value));
        self.relaxed.sort_by_key(|(id, _)| document.position(id.value));
        self.relaxed.dedup_by(|(_, a), (_, b)| a == b);
        let gone: HashSet<(&str, &str)> =
            self.relaxed.iter().map(|(_, finding)| (&*finding.place, &*finding.keyword)).collect();
        let mut report = KeptReport::default();
        for &id in &self.normal.used {
            let fates = self.schemas.fates(id);
            if fates.is_empty() {
                continue;
            }
            let place = report.text(|text| document.write_pointer(id.value, text));
            for schema::Fate { enforced, keyword, note } in fates {
                let fate = if *enforced { Fate::Enforced } else { Fate::Annotation };
                let is_gone = || gone.contains(&(&*document.pointer(id.value), *keyword));
                if gone.is_empty() || !*enforced || !is_gone() {
                    report.add(fate, keyword, &place, note);
                }
            }
        }
        for (_, Finding { keyword, place, note }) in &self.relaxed {
            let place = report.text(|text| text.push_str(place));
            report.add(Fate::Relaxed, keyword, &place, note);
        }
        report.shrink_to_fit();
        report
    }
}
