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

/// A rule whose body still has to be built.
pub(crate) struct Task<'a> {
    pub(crate) rule: RuleId,
    pub(crate) node: NodeId,
    pub(crate) at: SchemaId,
    pub(crate) depth: u32,
    /// Everything that is neither an array nor an object.
    pub(crate) scalars: ExprId,
    pub(crate) containers: Vec<Container<'a>>,
    pub(crate) branches: Vec<Branch>,
}

/// What a value may be besides a scalar.
#[derive(Clone)]
pub(crate) enum Container<'a> {
    /// One array or object of an `enum` or `const`.
    Value(JsonId),
    Array(Rc<Merged<'a>>),
    Object(Rc<Merged<'a>>),
    /// A string that declares a name or refers to one.
    Name(NodeId),
}

/// The values that already have a node.
#[derive(Default)]
pub(crate) struct Values<'a> {
    /// Nodes of values constrained by a single schema, by the position of the schema in the text; the last one is for
    /// unconstrained values. Used only where the depth doesn't matter. That covers nearly all values.
    pub(super) of_schemas: Vec<Option<NodeId>>,
    /// Nodes of other values, by depth.
    pub(super) others: Vec<Map<Box<[Term]>, NodeId>>,
    /// Nodes of schemas that mean the same as others, by structural key and depth.
    pub(super) by_key: Map<Box<[u8]>, NodeId>,
    /// A buffer for structural keys.
    pub(super) key: Key,
    /// A buffer for the parts of a value; empty between values.
    pub(super) parts: Parts<'a>,
    /// How many terms of alternatives have been lowered.
    pub(super) lowered: usize,
}

/// The parts of the alternatives of a value.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) scalars: Vec<ExprId>,
    /// Strings of an `enum`.
    pub(super) texts: Vec<&'a str>,
    /// Plainly written numbers of an `enum`: their texts, each with what may follow it.
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
    /// The bodies of patterns that were already read.
    pub(crate) patterns: Map<&'a str, ExprId>,
    /// Matches given values against patterns, with its own copies of their expressions; created on demand.
    checker: Option<Box<Deriver>>,
    pub(crate) relaxed: Vec<(SchemaId, Finding)>,
    pub(crate) reasons: Reasons,
    /// The arrays that must have two equal elements, each with the schema that requires it.
    pub(super) repeating: Vec<(NodeId, SchemaId)>,
    /// The spellings of declared keys, which may occur in many objects.
    pub(crate) keys: Map<Arc<str>, Option<ExprId>>,
    /// The nodes of values.
    pub(crate) values: Values<'a>,
    lexemes: Map<ExprId, NodeId>,
    pub(crate) work: Vec<Task<'a>>,
    /// Set if the members of the root are written between markers.
    pub(crate) marking: Option<Box<Marking<'a>>>,
    /// The sets of names that were seen, and whether their names are JSON strings.
    pub(super) name_sets: Vec<(Box<str>, bool)>,
    /// Set if values are written as literals of another notation.
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

    /// A matcher for texts, and its copy of an expression.
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
