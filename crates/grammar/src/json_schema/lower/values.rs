//! Values to nodes: every conjunction of terms has one node for each depth that matters, which is reused wherever it
//! occurs.
//!
//! Nearly all values have a single schema, and many of these say the same as another one: they are looked up by content
//! ([`crate::json_schema::normal_form::structural_key`]) before anything is merged.

use std::rc::Rc;

use stencilm_regex::{Decimal, ExprId};
use stencilm_support::Map;

use super::explain::Branch;
use super::lowering::{Container, Lowering, Parts, Task};
use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{Node, NodeId};
use crate::json::layout::MAX_INDENT_DEPTH;
use crate::json::numbers::{Written, any_text, plain_texts};
use crate::json_schema::normal_form::atoms::{Atom, Term};
use crate::json_schema::normal_form::merge::merge;
use crate::json_schema::normal_form::merged::{Clash, Merged};
use crate::json_schema::read::document::Json;
use crate::json_schema::read::schema::{SchemaId, Types};

/// The greatest number of terms in the alternatives of all values together: bounds the time of lowering to some
/// seconds.
const MAX_LOWERED: usize = 500_000;

impl<'a> Lowering<'a> {
    /// The node of a value for which all these terms hold, `depth` containers deep.
    pub(crate) fn value(&mut self, all: &[Term], depth: u32) -> Result<NodeId, GrammarError> {
        if self.notated.is_some() {
            return self.notated_value(all);
        }
        let depth = if self.surfaces.depends_on_depth() { depth } else { 0 };
        if let Some(known) = self.known(all, depth) {
            return Ok(known);
        }
        let mut key = std::mem::take(&mut self.values.key);
        let has_key = matches!(*all, [Term::Holds(id)] if self.schemas.write_key(id, &mut key));
        let known = if has_key {
            key.said.extend_from_slice(&depth.to_le_bytes());
            self.values.by_key.get(&*key.said).copied()
        } else {
            None
        };
        let node = match known {
            Some(known) => {
                self.normal.note_used(&key.schemas);
                self.remember(all, depth, known);
                Ok(known)
            }
            None => self.new_value(all, depth, has_key.then_some(&*key.said)),
        };
        self.values.key = key;
        node
    }

    /// A new node for a value; `said` is the structural key, which values that mean the same share.
    fn new_value(&mut self, all: &[Term], depth: u32, said: Option<&[u8]>) -> Result<NodeId, GrammarError> {
        let at = all.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(self.schemas.root);
        self.normal.check_time(at)?;
        let mut parts = std::mem::take(&mut self.values.parts);
        if let Some(atom) = self.normal.alone(all) {
            self.count(1 + usize::from(atom.is_some()), at)?;
            self.admit()?;
            self.alternative(atom.as_slice(), Types::ALL, at, &mut parts)?;
        } else {
            let alternatives = self.alternatives_or_more(all)?;
            self.count(alternatives.iter().map(|alternative| 1 + alternative.len()).sum(), at)?;
            self.admit()?;
            for alternative in alternatives.iter() {
                self.alternative(alternative, Types::ALL, at, &mut parts)?;
            }
        }
        self.join_listed(&mut parts, at)?;
        let Parts { scalars, containers, branches, .. } = &mut parts;
        if depth >= MAX_INDENT_DEPTH && !containers.is_empty() {
            self.cut_at_depth(all, at, scalars)?;
            branches.push(Branch::Possible);
            containers.clear();
        }
        let expr = self.builder.exprs.or(scalars);
        let node = if containers.is_empty() {
            let node = self.lexeme(expr);
            if let Some(said) = said.filter(|_| expr != ExprId::NOTHING) {
                self.values.by_key.insert(said.into(), node);
            }
            self.reasons.add(node, at, branches);
            node
        } else {
            let rule = self.builder.declare_rule(self.schemas.place(at));
            let node = self.builder.node(Node::Rule(rule));
            if let Some(said) = said {
                self.values.by_key.insert(said.into(), node);
            }
            let (containers, branches) = (std::mem::take(containers), std::mem::take(branches));
            self.work.push(Task { rule, node, at, depth, scalars: expr, containers, branches });
            node
        };
        self.remember(all, depth, node);
        parts.clear();
        self.values.parts = parts;
        Ok(node)
    }

    /// The scalars of these types for which all these terms hold, the containers, and the reasons that may make the
    /// value impossible.
    pub(crate) fn parts_of_types(
        &mut self,
        all: &[Term],
        types: Types,
        at: SchemaId,
    ) -> Result<(ExprId, Vec<Container<'a>>, Vec<Branch>), GrammarError> {
        self.normal.check_time(at)?;
        let alternatives = self.alternatives_or_more(all)?;
        self.count(alternatives.iter().map(|alternative| 1 + alternative.len()).sum(), at)?;
        self.admit()?;
        let mut parts = Parts::default();
        for alternative in alternatives.iter() {
            self.alternative(alternative, types, at, &mut parts)?;
        }
        self.join_listed(&mut parts, at)?;
        Ok((self.builder.exprs.or(&parts.scalars), parts.containers, parts.branches))
    }

    /// Joins the strings that an `enum` lists into one expression, and the numbers likewise.
    fn join_listed(&mut self, parts: &mut Parts<'a>, at: SchemaId) -> Result<(), GrammarError> {
        let Parts { scalars, texts, numbers, .. } = parts;
        if !texts.is_empty() {
            let literals = self.strings.literals_in_time(&mut self.builder.exprs, texts);
            scalars.push(literals.map_err(|limit| GrammarError::limit(self.schemas.place(at), limit))?);
        }
        if !numbers.is_empty() {
            let numbers = any_text(&mut self.builder.exprs, numbers);
            scalars.push(numbers.map_err(|limit| GrammarError::limit(self.schemas.place(at), limit))?);
        }
        Ok(())
    }

    /// Counts the lowered terms.
    fn count(&mut self, terms: usize, at: SchemaId) -> Result<(), GrammarError> {
        self.values.lowered += terms;
        if self.values.lowered > MAX_LOWERED { Err(self.normal.too_many(at)) } else { Ok(()) }
    }

    /// Adds the parts of one conjunction, of values of these types.
    fn alternative(
        &mut self,
        all: &[Atom],
        types: Types,
        at: SchemaId,
        parts: &mut Parts<'a>,
    ) -> Result<(), GrammarError> {
        let mut merged = merge(&self.normal, all);
        if !merged.clashes.is_empty() {
            parts.branches.push(Branch::Impossible(std::mem::take(&mut merged.clashes)));
        }
        if merged.is_impossible() {
            return Ok(());
        }
        merged.types = merged.types.and(types);
        if merged.types.is_empty() {
            return Ok(());
        }
        if !merged.name_uses.is_empty() && self.admits_names(&merged)? {
            let node = self.name(&merged)?;
            parts.containers.push(Container::Name(node));
            return Ok(());
        }
        if merged.values.is_some() {
            return self.listed_values(&merged, parts);
        }
        self.scalars(&merged, at, &mut parts.scalars, &mut parts.branches)?;
        let types = merged.types;
        if types.meets(Types::ARRAY.or(Types::OBJECT)) {
            let merged = Rc::new(merged);
            if types.meets(Types::ARRAY) {
                parts.containers.push(Container::Array(merged.clone()));
            }
            if types.meets(Types::OBJECT) {
                parts.containers.push(Container::Object(merged));
            }
        }
        Ok(())
    }

    /// The node of a value that was seen before.
    fn known(&self, all: &[Term], depth: u32) -> Option<NodeId> {
        match self.place_of(all) {
            Some(place) => *self.values.of_schemas.get(place)?,
            None => self.values.others.get(depth as usize)?.get(all).copied(),
        }
    }

    fn remember(&mut self, all: &[Term], depth: u32, node: NodeId) {
        match self.place_of(all) {
            Some(place) => {
                if self.values.of_schemas.is_empty() {
                    self.values.of_schemas = vec![None; self.schemas.document.len() + 1];
                }
                self.values.of_schemas[place] = Some(node);
            }
            None => {
                let depth = depth as usize;
                if self.values.others.len() <= depth {
                    self.values.others.resize_with(depth + 1, Map::default);
                }
                self.values.others[depth].insert(all.into(), node);
            }
        }
    }

    /// The index for a value that is given by its schema alone.
    fn place_of(&self, all: &[Term]) -> Option<usize> {
        match *all {
            _ if self.surfaces.depends_on_depth() => None,
            [] => Some(self.schemas.document.len()),
            [Term::Holds(SchemaId { value, scope: 0 })] => Some(value.0 as usize),
            _ => None,
        }
    }

    /// What may stand at the greatest depth of an indented text: unconstrained values stop nesting there.
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

    /// Sorts the values of an `enum` that fit all other constraints into strings, other scalars and containers.
    fn listed_values(&mut self, merged: &Merged<'a>, parts: &mut Parts<'a>) -> Result<(), GrammarError> {
        let Parts { scalars, texts, numbers, containers, branches } = parts;
        let of_types = self.number_kind(merged);
        let Some(values) = &merged.values else { return Ok(()) };
        let mut misfit = None;
        let mut fits = false;
        for &value in &values.value {
            self.normal.check_time(values.at)?;
            if let Some(why) = self.misfit(value, merged, 0)? {
                misfit.get_or_insert((value, why));
                continue;
            }
            fits = true;
            match self.schemas.document.get(value) {
                Json::String(text) => texts.push(text),
                Json::Array(_) | Json::Object(_) => containers.push(Container::Value(value)),
                Json::Number(text) => {
                    let kind = self.kind_of_value(text, of_types);
                    let (spelling, readable) = (self.options.spelling, self.options.integers_as_digits);
                    let written = Written { kind, spelling, readable };
                    let exprs = &mut self.builder.exprs;
                    let number = Decimal::parse(text);
                    if !number.is_some_and(|number| plain_texts(exprs, &number, written, numbers)) {
                        scalars.push(self.literal_scalar(value, kind)?);
                    }
                }
                _ => scalars.push(self.literal_scalar(value, of_types)?),
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
}
