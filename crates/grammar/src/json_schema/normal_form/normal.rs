//! The normal forms that were found so far, and what they refer to by number.

use std::rc::Rc;

use indexmap::IndexSet;
use rustc_hash::FxHashSet;
use stencilm_support::{KeyedState, Map};

use super::atoms::{Atom, Term, broken_types};
use super::cases::{Case, MemberValues};
use super::goals::{Alternatives, Goal, Overlaps, Texts};
use super::merged::Clash;
use super::patterns::Patterns;
use crate::json_schema::read::document::{Json, JsonId};
use crate::json_schema::read::schema::type_of;
use crate::json_schema::read::schema::{Keyword, SchemaId, Schemas, Types};

/// The greatest number of terms that are examined in all proofs that nothing fits; beyond that, nothing more is proven.
pub(super) const MAX_PROOFS: usize = 300_000;

/// A set of schemas.
struct Used {
    /// By value.
    in_scope_0: Vec<bool>,
    others: FxHashSet<SchemaId>,
}

impl Used {
    /// Returns whether the schema is new.
    fn insert(&mut self, id: SchemaId) -> bool {
        match id.scope {
            0 => !std::mem::replace(&mut self.in_scope_0[id.value.0 as usize], true),
            _ => self.others.insert(id),
        }
    }
}

/// The normal forms found so far.
pub(crate) struct Normal<'a> {
    pub(crate) schemas: &'a Schemas<'a>,
    pub(crate) strict: bool,
    pub(crate) relax: bool,
    pub(super) known: Map<Goal, Alternatives>,
    /// How many alternatives they have.
    pub(super) kept: usize,
    /// By schema and index of the keyword.
    pub(crate) overlaps: Map<(SchemaId, u32), Overlaps>,
    /// Schemas in the order of first use, for the report.
    pub(crate) used: Vec<SchemaId>,
    is_used: Used,
    /// Lists of schemas whose annotations count together.
    pub(super) seen: Vec<Rc<[SchemaId]>>,
    /// Lists of terms, one of which must hold.
    pub(super) any: Vec<Rc<[Term]>>,
    /// Lists of values, one of which a member may have.
    pub(crate) lists: Vec<Rc<[JsonId]>>,
    pub(crate) list_ids: Map<Rc<[JsonId]>, u32>,
    /// Cases of members that products are split by.
    pub(crate) cases: IndexSet<Case<'a>, KeyedState>,
    /// For each schema, the properties whose values it lists.
    pub(crate) listed: Map<SchemaId, Rc<[(&'a str, SchemaId)]>>,
    /// Whether the values of a member in some case are instances of a schema.
    pub(crate) fitting: Map<(SchemaId, MemberValues), Option<bool>>,
    /// Alternatives that only constrain types and strings.
    pub(crate) texts: Vec<Texts>,
    /// The numbers of structural keys: schemas with the same number mean the same.
    pub(crate) words: Map<SchemaId, Option<u32>>,
    pub(crate) said: Map<Vec<u8>, u32>,
    /// Cycles of references, each with its place and the explanation.
    pub(crate) cycles: Vec<Clash>,
    /// Whether the current search is loose, that is, may return a superset.
    pub(crate) is_loose: bool,
    /// How many atoms were in conjunctions that were examined closely.
    pub(crate) looks: usize,
    /// How many terms were examined to prove that nothing fits.
    pub(crate) proofs: usize,
    /// Patterns that were compared with values and each other, if any.
    pub(crate) patterns: Option<Patterns<'a>>,
}

impl<'a> Normal<'a> {
    pub(crate) fn new(schemas: &'a Schemas<'a>, strict: bool, relax: bool) -> Normal<'a> {
        Normal {
            schemas,
            strict,
            relax,
            known: Map::default(),
            kept: 0,
            overlaps: Map::default(),
            used: Vec::new(),
            is_used: Used { in_scope_0: vec![false; schemas.document.len()], others: FxHashSet::default() },
            seen: Vec::new(),
            any: Vec::new(),
            lists: Vec::new(),
            list_ids: Map::default(),
            cases: IndexSet::default(),
            listed: Map::default(),
            fitting: Map::default(),
            texts: Vec::new(),
            words: Map::default(),
            said: Map::default(),
            cycles: Vec::new(),
            is_loose: false,
            looks: 0,
            proofs: 0,
            patterns: None,
        }
    }

    /// A list of schemas whose annotations count.
    pub(crate) fn seen(&self, list: u32) -> &Rc<[SchemaId]> {
        &self.seen[list as usize]
    }

    /// Records for the report that these schemas are used, although they were not examined because others mean the
    /// same.
    pub(crate) fn note_used(&mut self, schemas: &[SchemaId]) {
        for &schema in schemas {
            self.note(schema);
        }
    }

    /// Records that a schema is used.
    pub(super) fn note(&mut self, schema: SchemaId) {
        if self.is_used.insert(schema) {
            self.used.push(schema);
        }
    }

    /// The types of the values that can satisfy an atom.
    pub(crate) fn types_of(&self, atom: Atom) -> Types {
        let schemas = self.schemas;
        match atom {
            Atom::Own(id) => own_types(schemas, id),
            Atom::Broken { schema, keyword, .. } => broken_types(&schemas.get(schema).keywords[keyword as usize]),
            Atom::MemberFails { .. } | Atom::Has { .. } => Types::OBJECT,
            Atom::Differs { value, reason } => match schemas.document.get(value) {
                json @ (Json::Array(_) | Json::Object(_)) if reason == 0 => Types::ALL.without(type_of(json)),
                json @ (Json::Array(_) | Json::Object(_)) => type_of(json),
                _ => Types::ALL,
            },
            Atom::Never(_) | Atom::Circular(_) => Types::NONE,
            Atom::Unevaluated { schema, keyword, broken: true, .. } => {
                broken_types(&schemas.get(schema).keywords[keyword as usize])
            }
            Atom::Case(case) => self.cases[case as usize].types(),
            Atom::Texts(texts) => self.texts[texts as usize].types,
            Atom::Lacks { .. } | Atom::Seen(_) | Atom::Unevaluated { .. } | Atom::Among(_) | Atom::Outside(_) => {
                Types::ALL
            }
        }
    }

    /// The schema that messages about string alternatives should name.
    pub(super) fn place_of_texts(&self, id: u32) -> SchemaId {
        let atoms = self.texts[id as usize].alternatives.iter().flat_map(|one| one.iter());
        atoms.filter_map(|atom| atom.at()).next().unwrap_or(self.schemas.root)
    }
}

fn own_types(schemas: &Schemas, id: SchemaId) -> Types {
    let schema = schemas.get(id);
    if schema.never {
        return Types::NONE;
    }
    schema.keywords.iter().fold(Types::ALL, |types, keyword| match keyword {
        Keyword::Type(named) => types.and(*named),
        Keyword::Values(values) if values.len() <= 8 => {
            let listed = values.iter().map(|&value| type_of(schemas.document.get(value)));
            types.and(listed.fold(Types::NONE, Types::or))
        }
        _ => types,
    })
}
