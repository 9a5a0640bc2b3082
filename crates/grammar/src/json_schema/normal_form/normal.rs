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

/// Most terms that are looked at for all proofs that nothing fits: past that nothing is taken to be proven.
pub(super) const MAX_PROOFS: usize = 300_000;

/// A set of schemas.
struct Used {
    /// By value.
    in_scope_0: Vec<bool>,
    others: FxHashSet<SchemaId>,
}

impl Used {
    /// Answers whether it is new.
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
    /// How many alternatives these are.
    pub(super) kept: usize,
    /// By schema and place of the keyword.
    pub(crate) overlaps: Map<(SchemaId, u32), Overlaps>,
    /// Schemas in the order of first use, for the report.
    pub(crate) used: Vec<SchemaId>,
    is_used: Used,
    /// Lists of schemas whose annotations count together.
    pub(super) seen: Vec<Rc<[SchemaId]>>,
    /// Lists of terms of which any must hold.
    pub(super) any: Vec<Rc<[Term]>>,
    /// Lists of values of which a member may be one.
    pub(crate) lists: Vec<Rc<[JsonId]>>,
    pub(crate) list_ids: Map<Rc<[JsonId]>, u32>,
    /// Cases of members that products are split by.
    pub(crate) cases: IndexSet<Case<'a>, KeyedState>,
    /// The properties whose values a schema lists.
    pub(crate) listed: Map<SchemaId, Rc<[(&'a str, SchemaId)]>>,
    /// Whether the values of a member in some case are instances of a schema.
    pub(crate) fitting: Map<(SchemaId, MemberValues), Option<bool>>,
    /// Alternatives that speak of types and texts only.
    pub(crate) texts: Vec<Texts>,
    /// What schemas say, by a number for each thing said.
    pub(crate) words: Map<SchemaId, Option<u32>>,
    pub(crate) said: Map<Vec<u8>, u32>,
    /// Cycles of references, each with where it is and what is wrong.
    pub(crate) cycles: Vec<Clash>,
    /// Whether a product is searched for of which more may be allowed.
    pub(crate) is_loose: bool,
    /// Atoms in conjunctions looked at closely.
    pub(crate) looks: usize,
    /// How many terms were looked at to prove that nothing fits.
    pub(crate) proofs: usize,
    /// Patterns that were held against values and each other, where there was one.
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

    /// The schemas of a list of those whose annotations count.
    pub(crate) fn seen(&self, list: u32) -> &Rc<[SchemaId]> {
        &self.seen[list as usize]
    }

    /// Notes for the report that these schemas are used, which were not looked at because others say the same.
    pub(crate) fn note_used(&mut self, schemas: &[SchemaId]) {
        for &schema in schemas {
            self.note(schema);
        }
    }

    /// Notes that a schema is used.
    pub(super) fn note(&mut self, schema: SchemaId) {
        if self.is_used.insert(schema) {
            self.used.push(schema);
        }
    }

    /// Types outside of which no value fits an atom.
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

    /// The schema to name in messages about alternatives of texts.
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
