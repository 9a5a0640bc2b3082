//! A grammar of a schema under construction: what is shared by everything that lowers a part of it.

use std::rc::Rc;
use std::sync::Arc;

use stencilm_regex::{Deriver, ExprId, Limits};
use stencilm_support::Map;

use super::explain::{Branch, Reasons};
use super::marking::Marking;
use super::notation::Notated;
use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::{NodeId, RuleId};
use crate::ir::report::Finding;
use crate::json::layout::Surfaces;
use crate::json::strings::Strings;
use crate::json::values::common_exprs;
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::merged::Merged;
use crate::json_schema::normal_form::normal::Normal;
use crate::json_schema::normal_form::structural_key::Key;
use crate::json_schema::options::JsonSchemaOptions;
use crate::json_schema::read::document::JsonId;
use crate::json_schema::read::schema::{SchemaId, Schemas};

/// A rule whose body is still to be built.
pub(crate) struct Task<'a> {
    pub(crate) rule: RuleId,
    pub(crate) node: NodeId,
    pub(crate) at: SchemaId,
    pub(crate) depth: u32,
    /// Everything that is neither array nor object.
    pub(crate) scalars: ExprId,
    pub(crate) containers: Vec<Container<'a>>,
    pub(crate) branches: Vec<Branch>,
}

/// What a value may be beside a scalar.
#[derive(Clone)]
pub(crate) enum Container<'a> {
    /// One array or object of an `enum` or `const`.
    Value(JsonId),
    Array(Rc<Merged<'a>>),
    Object(Rc<Merged<'a>>),
    /// A string that declares a name, or refers to one.
    Name(NodeId),
}

/// The values that have a node.
#[derive(Default)]
pub(crate) struct Values<'a> {
    /// Nodes of values of which a single schema must hold, by its place in the text, and last that of a value of which
    /// nothing is asked; only where the depth is the same to all. That is nearly all of them.
    pub(super) of_schemas: Vec<Option<NodeId>>,
    /// Nodes of other values, by depth.
    pub(super) others: Vec<Map<Box<[Term]>, NodeId>>,
    /// Nodes of schemas that mean the same as others, by what they say and by depth.
    pub(super) by_key: Map<Box<[u8]>, NodeId>,
    /// Where what a schema says is written to be looked up.
    pub(super) key: Key,
    /// Where what a value comes to is collected; empty between values.
    pub(super) parts: Parts<'a>,
    /// How many terms of alternatives were lowered.
    pub(super) lowered: usize,
}

/// What the alternatives of a value come to.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) scalars: Vec<ExprId>,
    /// Strings of an `enum`.
    pub(super) texts: Vec<&'a str>,
    /// Numbers of an `enum` that are written plainly: the texts, and what may follow each.
    pub(super) numbers: Vec<(String, ExprId)>,
    pub(super) containers: Vec<Container<'a>>,
    pub(super) branches: Vec<Branch>,
}

impl Parts<'_> {
    pub(super) fn clear(&mut self) {
        self.scalars.clear();
        self.texts.clear();
        self.numbers.clear();
        self.containers.clear();
        self.branches.clear();
    }
}

/// A grammar under construction.
pub(crate) struct Lowering<'a> {
    pub(crate) schemas: &'a Schemas<'a>,
    pub(crate) options: &'a JsonSchemaOptions,
    pub(crate) normal: Normal<'a>,
    pub(crate) builder: GrammarBuilder,
    pub(crate) strings: Strings,
    pub(crate) surfaces: Surfaces,
    /// Bodies of patterns already read.
    pub(crate) patterns: Map<&'a str, ExprId>,
    /// Matches given values against patterns, with its own copies of their expressions; made when it is needed.
    checker: Option<Box<Deriver>>,
    pub(crate) relaxed: Vec<(SchemaId, Finding)>,
    pub(crate) reasons: Reasons,
    /// The arrays that must have two equal elements, each with the schema that asks for it.
    pub(super) repeating: Vec<(NodeId, SchemaId)>,
    /// Spellings of declared keys, which many objects may have.
    pub(crate) keys: Map<Arc<str>, Option<ExprId>>,
    /// The nodes of values.
    pub(crate) values: Values<'a>,
    lexemes: Map<ExprId, NodeId>,
    pub(crate) work: Vec<Task<'a>>,
    /// Where the members of the root are written between markers.
    pub(crate) marking: Option<Box<Marking<'a>>>,
    /// The sets of names that were seen, and whether these are JSON strings.
    pub(super) name_sets: Vec<(Box<str>, bool)>,
    /// Where values are literals of a notation.
    pub(crate) notated: Option<Box<Notated<'a>>>,
    pub(super) admitted: usize,
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(schemas: &'a Schemas<'a>, options: &'a JsonSchemaOptions, surfaces: Surfaces) -> Lowering<'a> {
        Lowering {
            schemas,
            options,
            normal: Normal::new(schemas, options.strict_mode, options.relax),
            builder: GrammarBuilder::default(),
            strings: if options.minimal_escapes {
                Strings::minimal(options.spelling)
            } else {
                Strings::new(options.spelling)
            },
            surfaces,
            patterns: Map::default(),
            checker: None,
            relaxed: Vec::new(),
            reasons: Reasons::default(),
            repeating: Vec::new(),
            keys: Map::default(),
            values: Values::default(),
            lexemes: Map::default(),
            work: Vec::new(),
            marking: None,
            name_sets: Vec::new(),
            notated: None,
            admitted: 0,
        }
    }

    /// What matches texts against an expression, and its copy of it.
    pub(crate) fn checker(&mut self, expr: ExprId) -> (&mut Deriver, ExprId) {
        let made = || Box::new(Deriver::over(common_exprs(), Limits::default()));
        let checker = self.checker.get_or_insert_with(made);
        let copy = checker.exprs.import(&self.builder.exprs, expr);
        (checker, copy)
    }

    pub(crate) fn lexeme(&mut self, expr: ExprId) -> NodeId {
        let builder = &mut self.builder;
        *self.lexemes.get_or_insert_with(expr, || builder.lexeme(expr))
    }
}
