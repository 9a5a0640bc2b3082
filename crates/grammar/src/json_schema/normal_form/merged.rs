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

/// Terms that must all hold, each once; mostly a single one, which takes no memory of its own.
#[derive(Clone, Debug, Default)]
pub(crate) enum Terms {
    #[default]
    None,
    One([Term; 1]),
    Several(Vec<Term>),
}

impl Terms {
    /// Adds a term, unless it is among them.
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
    /// All that is asked of its value.
    pub(crate) value: Terms,
    /// The schema that requires it.
    pub(crate) required: Option<SchemaId>,
    /// The schema that forbids it.
    pub(crate) forbidden: Option<SchemaId>,
    /// Whether `properties` or `required` name it, which gives it a place in the order of members.
    pub(crate) is_declared: bool,
}

/// Which keys of an object.
#[derive(Clone, Debug)]
pub(crate) enum Keys {
    /// Those that the pattern matches under which this schema stands.
    Match(JsonId),
    /// Those that neither `properties` nor `patternProperties` of these schemas speak of.
    Outside(Rc<[SchemaId]>),
    /// Those that are, as strings, no instances.
    Fail(SchemaId),
}

/// What is asked of members by their keys.
#[derive(Clone, Debug)]
pub(crate) struct KeyRule {
    pub(crate) keys: Keys,
    /// What their values must be; for a rule that some member must follow, `None` where any value does.
    pub(crate) value: Option<Term>,
    pub(crate) at: SchemaId,
}

/// How many elements must match.
#[derive(Clone, Debug)]
pub(crate) struct Contains {
    /// What an element must be to count.
    pub(crate) terms: Vec<Term>,
    /// The first place that counts.
    pub(crate) from: usize,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) at: SchemaId,
}

/// All constraints of one conjunction.
#[derive(Clone, Debug)]
pub(crate) struct Merged<'a> {
    pub(crate) types: Types,
    /// The only values, when there is an `enum` or `const`.
    pub(crate) values: Option<From<Vec<JsonId>>>,
    /// Values that are no arrays and no objects, and excluded.
    pub(crate) excluded: Vec<From<JsonId>>,
    pub(crate) lower: Option<From<End>>,
    pub(crate) upper: Option<From<End>>,
    /// What it is a multiple of, and what not.
    pub(crate) multiple_of: Vec<Signed<Decimal>>,
    pub(crate) min_length: u32,
    pub(crate) max_length: Option<u32>,
    pub(crate) patterns: Vec<Signed<JsonId>>,
    /// Alternatives of texts, by their positions among those of the normal form: of each, one holds.
    pub(crate) texts: Vec<u32>,
    pub(crate) formats: Vec<Signed<Format>>,
    /// What a string has to do with names.
    pub(crate) name_uses: Vec<Signed<NameUse>>,
    pub(crate) min_items: u32,
    pub(crate) max_items: Option<u32>,
    /// What is asked of the first elements.
    pub(crate) prefix: Vec<Vec<Term>>,
    /// What is asked of all further elements.
    pub(crate) rest: Vec<Term>,
    pub(crate) contains: Vec<Contains>,
    pub(crate) unique: Option<SchemaId>,
    /// Whether strict mode forbids further elements.
    pub(crate) closed_items: bool,
    pub(crate) known: Map<&'a str, Known>,
    /// What is asked of the values of members that nothing names.
    pub(crate) additional: Vec<Term>,
    /// What is asked of members by patterns of their keys: where there is one, `known` and `additional` do not say it
    /// all.
    pub(crate) rules: Vec<KeyRule>,
    /// What at least one member must be.
    pub(crate) some: Vec<KeyRule>,
    /// What is asked of all keys.
    pub(crate) names: Vec<Term>,
    pub(crate) min_members: u32,
    pub(crate) max_members: Option<u32>,
    /// Whether strict mode forbids members that nothing names.
    pub(crate) closed: bool,
    /// The schema that asks for two elements that are equal.
    pub(crate) repeated: Option<SchemaId>,
    pub(crate) clashes: Vec<Clash>,
}

impl<'a> Merged<'a> {
    /// What every value fits.
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

    /// Whether it is already certain that nothing matches.
    pub(crate) fn is_impossible(&self) -> bool {
        self.types.is_empty() || self.values.as_ref().is_some_and(|values| values.value.is_empty())
    }

    /// What is asked of the element at a place.
    pub(crate) fn element(&self, place: usize) -> &[Term] {
        self.prefix.get(place).unwrap_or(&self.rest)
    }
}

/// A term more, unless it is among them.
pub(crate) fn with(mut all: Vec<Term>, one: Term) -> Vec<Term> {
    if !all.contains(&one) {
        all.push(one);
    }
    all
}
