//! Constraints to rules and nodes: one rule for each conjunction of schemas that may be an array or an object.
//!
//! Rules come from a list of work, so neither the depth of a schema nor a recursive `$ref` makes this recurse, and equal
//! conjunctions are one rule: a schema that doubles at every level costs one rule a level. Alternatives without
//! arrays and objects are one lexeme.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{Deriver, ExprId, Limits};

use super::JsonSchemaOptions;
use super::alike::Key;
use super::atoms::Term;
use super::common::common_exprs;
use super::document::{Json, JsonId};
use super::explain::{Branch, Reasons};
use super::merge::{Clash, Merged, merge};
use super::normal::Normal;
use super::schema::{self, SchemaId, Schemas, Types};
use super::strings::Strings;
use super::surface::{MAX_INDENT_DEPTH, Surfaces};
use crate::builder::GrammarBuilder;
use crate::error::{ErrorKind, GrammarError};
use crate::grammar::{Grammar, Node, NodeId, RuleId};
use crate::report::{Fate, Finding, KeptReport};

/// Most terms in the alternatives of all values together: bounds the time to lower them, to some seconds.
const MAX_LOWERED: usize = 500_000;

/// A rule whose body is still to be built.
struct Task<'a> {
    rule: RuleId,
    node: NodeId,
    at: SchemaId,
    depth: u32,
    /// Everything that is neither array nor object.
    scalars: ExprId,
    containers: Vec<Container<'a>>,
    branches: Vec<Branch>,
}

enum Container<'a> {
    /// One array or object of an `enum` or `const`.
    Value(JsonId),
    Array(Merged<'a>),
    Object(Merged<'a>),
}

/// A grammar under construction.
pub(super) struct Lowering<'a> {
    pub(super) schemas: &'a Schemas<'a>,
    pub(super) options: &'a JsonSchemaOptions,
    pub(super) normal: Normal<'a>,
    pub(super) builder: GrammarBuilder,
    pub(super) strings: Strings,
    pub(super) surfaces: Surfaces,
    /// Bodies of patterns already read.
    pub(super) patterns: FxHashMap<&'a str, ExprId>,
    /// Matches given values against patterns, with its own copies of their expressions.
    pub(super) checker: Deriver,
    pub(super) relaxed: Vec<(SchemaId, Finding)>,
    pub(super) reasons: Reasons,
    /// Spellings of known keys, which many objects may have.
    pub(super) keys: FxHashMap<Box<str>, ExprId>,
    /// Nodes of values, by depth.
    values: Vec<FxHashMap<Box<[Term]>, NodeId>>,
    /// Nodes of schemas that mean the same as others, by what they say and by depth.
    alike: FxHashMap<(Vec<u8>, u32), NodeId>,
    lexemes: FxHashMap<ExprId, NodeId>,
    work: Vec<Task<'a>>,
    admitted: usize,
    /// How many terms of alternatives were lowered.
    lowered: usize,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(schemas: &'a Schemas<'a>, options: &'a JsonSchemaOptions) -> Result<Lowering<'a>, GrammarError> {
        Ok(Lowering {
            schemas,
            options,
            normal: Normal::new(schemas, options.strict_mode, options.relax),
            builder: GrammarBuilder::default(),
            strings: Strings::new(options.spelling),
            surfaces: Surfaces::new(options)?,
            patterns: FxHashMap::default(),
            checker: Deriver::over(common_exprs(), Limits::default()),
            relaxed: Vec::new(),
            reasons: Reasons::default(),
            keys: FxHashMap::default(),
            values: Vec::new(),
            alike: FxHashMap::default(),
            lexemes: FxHashMap::default(),
            work: Vec::new(),
            admitted: 0,
            lowered: 0,
        })
    }

    /// The grammar of the whole document.
    pub(super) fn grammar(mut self) -> Result<Grammar, GrammarError> {
        self.builder.limit_exprs(self.options.max_exprs);
        // About as many expressions as there are letters in keys.
        self.builder.exprs.reserve(8 * self.schemas.list.len() + 64);
        let root = self.value(&[Term::Holds(self.schemas.root)], 0)?;
        while let Some(task) = self.work.pop() {
            self.define(task)?;
        }
        let report = self.report();
        if let Some(error) = self.reasons.explain(self.schemas, None, root) {
            return Err(error);
        }
        let Lowering { schemas, builder, reasons, .. } = self;
        // Only texts under several patterns can still turn out to match nothing.
        let exprs = reasons.depends_on_lexemes(root).then(|| builder.exprs.clone());
        builder.finish(root, report).map_err(|error| match error.kind {
            ErrorKind::Unsatisfiable => reasons.explain(schemas, exprs, root).unwrap_or(error),
            _ => error,
        })
    }

    /// One grammar of several schemas, one after the other, and the node of each.
    pub(super) fn together(mut self, roots: &[SchemaId]) -> Result<(Grammar, Vec<NodeId>), GrammarError> {
        self.builder.limit_exprs(self.options.max_exprs);
        self.builder.exprs.reserve(8 * self.schemas.list.len() + 64);
        let mut nodes = Vec::with_capacity(roots.len());
        for &root in roots {
            nodes.push(self.value(&[Term::Holds(root)], 0)?);
            while let Some(task) = self.work.pop() {
                self.define(task)?;
            }
        }
        let report = self.report();
        let root = self.builder.sequence(&nodes);
        Ok((self.builder.finish(root, report)?, nodes))
    }

    /// The node of a value for which all these terms hold, `depth` containers deep.
    pub(super) fn value(&mut self, all: &[Term], depth: u32) -> Result<NodeId, GrammarError> {
        let depth = if self.surfaces.depends_on_depth() { depth } else { 0 };
        if let Some(&known) = self.values.get(depth as usize).and_then(|values| values.get(all)) {
            return Ok(known);
        }
        let mut alike = None;
        if let [Term::Holds(id)] = *all
            && let Some(Key { said, schemas }) = self.schemas.key(id)
        {
            let key = (said, depth);
            if let Some(&known) = self.alike.get(&key) {
                self.normal.note_used(&schemas);
                self.remember(all, depth, known);
                return Ok(known);
            }
            alike = Some(key);
        }
        let at = all.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(self.schemas.root);
        self.normal.check_time(at)?;
        let alternatives = self.alternatives_or_more(all)?;
        self.lowered += alternatives.iter().map(|alternative| 1 + alternative.len()).sum::<usize>();
        if self.lowered > MAX_LOWERED {
            return Err(self.normal.too_many(at));
        }
        self.admit()?;
        let mut scalars = Vec::new();
        let mut texts = Vec::new();
        let mut containers = Vec::new();
        let mut branches = Vec::new();
        for alternative in alternatives.iter() {
            let mut merged = merge(&self.normal, alternative);
            for (at, keyword, reason) in std::mem::take(&mut merged.refused) {
                self.relax(at, keyword, reason)?;
            }
            if !merged.clashes.is_empty() {
                branches.push(Branch::Impossible(std::mem::take(&mut merged.clashes)));
            }
            if merged.is_impossible() {
                continue;
            }
            if merged.values.is_some() {
                self.listed_values(&merged, &mut scalars, &mut texts, &mut containers, &mut branches)?;
                continue;
            }
            self.scalars(&merged, at, &mut scalars, &mut branches)?;
            match (merged.types.meets(Types::ARRAY), merged.types.meets(Types::OBJECT)) {
                (true, true) => {
                    containers.push(Container::Array(merged.clone()));
                    containers.push(Container::Object(merged));
                }
                (true, false) => containers.push(Container::Array(merged)),
                (false, true) => containers.push(Container::Object(merged)),
                (false, false) => {}
            }
        }
        if !texts.is_empty() {
            scalars.push(self.strings.literals(&mut self.builder.exprs, &texts));
        }
        if depth >= MAX_INDENT_DEPTH && !containers.is_empty() {
            self.cut_at_depth(all, at, &mut scalars)?;
            branches.push(Branch::Possible);
            containers.clear();
        }
        let scalars = self.builder.exprs.or(&scalars);
        if containers.is_empty() {
            let node = self.lexeme(scalars);
            self.remember(all, depth, node);
            self.alike.extend(alike.filter(|_| scalars != ExprId::NOTHING).map(|key| (key, node)));
            self.reasons.add(node, at, branches);
            return Ok(node);
        }
        let rule = self.builder.declare_rule(self.schemas.place(at));
        let node = self.builder.node(Node::Rule(rule));
        self.remember(all, depth, node);
        self.alike.extend(alike.map(|key| (key, node)));
        self.work.push(Task { rule, node, at, depth, scalars, containers, branches });
        Ok(node)
    }

    fn remember(&mut self, all: &[Term], depth: u32, node: NodeId) {
        let depth = depth as usize;
        if self.values.len() <= depth {
            self.values.resize_with(depth + 1, FxHashMap::default);
        }
        self.values[depth].insert(all.into(), node);
    }

    /// What may stand where an indented text is as deep as it gets: unconstrained values stop nesting there.
    fn cut_at_depth(&mut self, all: &[Term], at: SchemaId, scalars: &mut Vec<ExprId>) -> Result<(), GrammarError> {
        if !all.is_empty() {
            let message = format!(
                "indent: this schema is recursive or nested more than {MAX_INDENT_DEPTH} deep, and every level is \
                 indented differently; use any_whitespace, or the compact form without indent"
            );
            return Err(GrammarError::new(ErrorKind::Unsupported, self.schemas.place(at), message));
        }
        scalars.push(self.builder.exprs.literals(&["[]", "{}"]));
        Ok(())
    }

    /// Sorts the values of an `enum` that fit all other constraints into texts, other scalars and containers.
    fn listed_values(
        &mut self,
        merged: &Merged<'a>,
        scalars: &mut Vec<ExprId>,
        texts: &mut Vec<&'a str>,
        containers: &mut Vec<Container<'a>>,
        branches: &mut Vec<Branch>,
    ) -> Result<(), GrammarError> {
        let Some(values) = &merged.values else { return Ok(()) };
        let mut misfit = None;
        let mut fits = false;
        for &value in &values.value {
            if let Some(why) = self.misfit(value, merged, 0)? {
                misfit.get_or_insert((value, why));
                continue;
            }
            fits = true;
            match self.schemas.document.get(value) {
                Json::String(text) => texts.push(text),
                Json::Array(_) | Json::Object(_) => containers.push(Container::Value(value)),
                _ => scalars.push(self.literal_scalar(value, self.number_kind(merged))?),
            }
        }
        branches.push(match misfit {
            Some((value, why)) if !fits => {
                let place = self.schemas.place(values.at);
                let shown = self.schemas.document.show(value);
                let message = format!("the value {shown} does not fit the constraints beside it: {why}");
                Branch::Impossible(vec![Clash { place, message }])
            }
            _ => Branch::Possible,
        });
        Ok(())
    }

    pub(super) fn lexeme(&mut self, expr: ExprId) -> NodeId {
        let builder = &mut self.builder;
        *self.lexemes.entry(expr).or_insert_with(|| builder.lexeme(expr))
    }

    fn define(&mut self, task: Task<'a>) -> Result<(), GrammarError> {
        let Task { rule, node, at, depth, scalars, containers, mut branches } = task;
        let mut ways = Vec::with_capacity(containers.len() + 1);
        if scalars != ExprId::NOTHING {
            ways.push(self.lexeme(scalars));
        }
        for container in containers {
            let (way, branch) = match container {
                Container::Value(value) => (self.literal(value, depth)?, Branch::Possible),
                Container::Array(merged) => self.array(&merged, at, depth)?,
                Container::Object(merged) => self.object(&merged, at, depth)?,
            };
            ways.push(way);
            branches.push(branch);
        }
        let body = if let [only] = *ways { only } else { self.builder.choice(&ways) };
        self.builder.define_rule(rule, body);
        self.reasons.add(node, at, branches);
        Ok(())
    }

    /// Refuses, or notes as relaxed, what the schemas used since the last call ask for and is not supported.
    pub(super) fn admit(&mut self) -> Result<(), GrammarError> {
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
        // Schemas that start at the same place of the text do not exist: each has a value of its own.
        self.normal.used.sort_by_cached_key(|id| document.position(id.value));
        self.relaxed.sort_by_key(|(id, _)| document.position(id.value));
        self.relaxed.dedup_by(|(_, a), (_, b)| a == b);
        let gone: FxHashSet<(&str, &str)> =
            self.relaxed.iter().map(|(_, finding)| (&*finding.place, &*finding.keyword)).collect();
        let mut report = KeptReport::default();
        for &id in &self.normal.used {
            let fates = &self.schemas.get(id).fates;
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
