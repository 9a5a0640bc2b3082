//! All constraints of one conjunction, by JSON type.

use std::rc::Rc;

use stencilm_regex::{Decimal, End};
use stencilm_support::Map;

use super::atoms::Term;
use crate::json::format::Format;
use crate::json_schema::read::document::JsonId;
use crate::json_schema::read::schema::{NameUse, SchemaId, Types};

/// Two constraints that exclude each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Clash {
    pub(crate) place: String,
    pub(crate) message: String,
}

/// A constraint value and the schema it comes from.
#[derive(Clone, Debug)]
pub(crate) struct From<T> {
    pub(crate) value: T,
    pub(crate) at: SchemaId,
}

/// A constraint that must hold, or must not.
#[derive(Clone, Debug)]
pub(crate) struct Signed<T> {
    pub(crate) value: T,
    pub(crate) fails: bool,
    pub(crate) at: SchemaId,
}

/// Terms that must all hold, without repetition; mostly a single one, which needs no allocation.
#[derive(Clone, Debug, Default)]
pub(crate) enum Terms {
    #[default]
    None,
    One([Term; 1]),
    Several(Vec<Term>),
}

impl Terms {
    /// Adds a term, unless it's already there.
    pub(crate) fn add(&mut self, term: Term) {
        match self {
            Terms::None => *self = Terms::One([term]),
            known if known.contains(&term) => {}
            Terms::One([first]) => *self = Terms::Several(vec![*first, term]),
            Terms::Several(all) => all.push(term),
        }
    }
}

impl std::ops::Deref for Terms {
    type Target = [Term];

    fn deref(&self) -> &[Term] {
        match self {
            Terms::None => &[],
            Terms::One(one) => one,
            Terms::Several(all) => all,
        }
    }
}

/// A member whose key some schema names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// All requirements on its value.
    pub(crate) value: Terms,
    /// The schema that requires it.
    pub(crate) required: Option<SchemaId>,
    /// The schema that forbids it.
    pub(crate) forbidden: Option<SchemaId>,
    /// Whether `properties` or `required` name it; then it has a place in the order of members.
    pub(crate) is_declared: bool,
}

/// A set of keys of an object.
#[derive(Clone, Debug)]
pub(crate) enum Keys {
    /// Keys that match the pattern which is the key of this schema.
    Match(JsonId),
    /// Keys that neither `properties` nor `patternProperties` of these schemas apply to.
    Outside(Rc<[SchemaId]>),
    /// Keys that, as strings, are not instances of the schema.
    Fail(SchemaId),
}

/// A requirement on members by their keys.
#[derive(Clone, Debug)]
pub(crate) struct KeyRule {
    pub(crate) keys: Keys,
    /// The requirement on the value. In an existential rule, `None` means any value.
    pub(crate) value: Option<Term>,
    pub(crate) at: SchemaId,
}

/// A requirement on how many elements match.
#[derive(Clone, Debug)]
pub(crate) struct Contains {
    /// The terms that an element must meet to count.
    pub(crate) terms: Vec<Term>,
    /// The first position that counts.
    pub(crate) from: usize,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) at: SchemaId,
}

/// All constraints of one conjunction.
#[derive(Clone, Debug)]
pub(crate) struct Merged<'a> {
    pub(crate) types: Types,
    /// The only allowed values, if there is an `enum` or `const`.
    pub(crate) values: Option<From<Vec<JsonId>>>,
    /// Excluded scalars.
    pub(crate) excluded: Vec<From<JsonId>>,
    pub(crate) lower: Option<From<End>>,
    pub(crate) upper: Option<From<End>>,
    /// Numbers that the value must be a multiple of, or must not be a multiple of.
    pub(crate) multiple_of: Vec<Signed<Decimal>>,
    pub(crate) min_length: u32,
    pub(crate) max_length: Option<u32>,
    pub(crate) patterns: Vec<Signed<JsonId>>,
    /// Lists of string alternatives, given by their indexes in the normal form: one of each list must hold.
    pub(crate) texts: Vec<u32>,
    pub(crate) formats: Vec<Signed<Format>>,
    /// How a string declares or refers to names.
    pub(crate) name_uses: Vec<Signed<NameUse>>,
    pub(crate) min_items: u32,
    pub(crate) max_items: Option<u32>,
    /// The requirements on the first elements.
    pub(crate) prefix: Vec<Vec<Term>>,
    /// The requirements on all further elements.
    pub(crate) rest: Vec<Term>,
    pub(crate) contains: Vec<Contains>,
    pub(crate) unique: Option<SchemaId>,
    /// Whether strict mode forbids further elements.
    pub(crate) closed_items: bool,
    pub(crate) known: Map<&'a str, Known>,
    /// The requirements on the values of members that nothing names.
    pub(crate) additional: Vec<Term>,
    /// The requirements on members by patterns of their keys. If there are any, `known` and `additional` are
    /// incomplete.
    pub(crate) rules: Vec<KeyRule>,
    /// Existential rules: what at least one member must be.
    pub(crate) some: Vec<KeyRule>,
    /// The requirements on all keys.
    pub(crate) names: Vec<Term>,
    pub(crate) min_members: u32,
    pub(crate) max_members: Option<u32>,
    /// Whether strict mode forbids members that nothing names.
    pub(crate) closed: bool,
    /// The schema that requires two equal elements.
    pub(crate) repeated: Option<SchemaId>,
    pub(crate) clashes: Vec<Clash>,
}

impl<'a> Merged<'a> {
    /// Constraints that every value satisfies.
    pub(super) fn unconstrained() -> Merged<'a> {
        Merged {
            types: Types::ALL,
            values: None,
            excluded: Vec::new(),
            lower: None,
            upper: None,
            multiple_of: Vec::new(),
            min_length: 0,
            max_length: None,
            patterns: Vec::new(),
            texts: Vec::new(),
            formats: Vec::new(),
            name_uses: Vec::new(),
            min_items: 0,
            max_items: None,
            prefix: Vec::new(),
            rest: Vec::new(),
            contains: Vec::new(),
            unique: None,
            closed_items: false,
            known: Map::default(),
            additional: Vec::new(),
            rules: Vec::new(),
            some: Vec::new(),
            names: Vec::new(),
            min_members: 0,
            max_members: None,
            closed: false,
            repeated: None,
            clashes: Vec::new(),
        }
    }

    /// Whether it's already certain that nothing matches.
    pub(crate) fn is_impossible(&self) -> bool {
        self.types.is_empty() || self.values.as_ref().is_some_and(|values| values.value.is_empty())
    }

    /// The requirements on the element at a position.
    pub(crate) fn element(&self, place: usize) -> &[Term] {
        self.prefix.get(place).unwrap_or(&self.rest)
    }
}

/// Adds a term, unless it's already there.
pub(crate) fn with(mut all: Vec<Term>, one: Term) -> Vec<Term> {
    if !all.contains(&one) {
        all.push(one);
    }
    all
}
