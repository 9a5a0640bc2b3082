//! The typed schema: every schema of a document as a list of its keywords with checked values, in the order of the
//! text.
//!
//! A schema is known by the JSON value it stands in. A keyword that cannot be enforced becomes a [`Refusal`], which
//! only matters if the schema is used: unused definitions may say what they like.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;
use stencilm_regex::Decimal;

use super::document::{Document, Json, JsonId};
use super::refs::Refs;
use super::scopes::Scopes;
use super::vocabulary::Draft;
use crate::json::format::Format;

/// A schema, given by its JSON value and the dynamic scope that it is read in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct SchemaId {
    pub(crate) value: JsonId,
    pub(crate) scope: u32,
}

/// JSON types as bits. Numbers have two: integers and all others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Types(pub(crate) u8);

impl Types {
    pub(crate) const NONE: Types = Types(0);
    pub(crate) const NULL: Types = Types(1);
    pub(crate) const BOOLEAN: Types = Types(2);
    pub(crate) const INTEGER: Types = Types(4);
    pub(crate) const FRACTION: Types = Types(8);
    pub(crate) const NUMBER: Types = Types(12);
    pub(crate) const STRING: Types = Types(16);
    pub(crate) const ARRAY: Types = Types(32);
    pub(crate) const OBJECT: Types = Types(64);
    pub(crate) const ALL: Types = Types(127);

    /// The names that `type` may contain.
    pub(crate) const NAMES: [(&'static str, Types); 7] = [
        ("null", Types::NULL),
        ("boolean", Types::BOOLEAN),
        ("integer", Types::INTEGER),
        ("number", Types::NUMBER),
        ("string", Types::STRING),
        ("array", Types::ARRAY),
        ("object", Types::OBJECT),
    ];

    pub(crate) fn and(self, other: Types) -> Types {
        Types(self.0 & other.0)
    }

    pub(crate) fn or(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Types) -> Types {
        Types(self.0 & !other.0)
    }

    pub(crate) fn meets(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl std::fmt::Display for Types {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = self.and(Types::NUMBER) == Types::NUMBER;
        let names = Types::NAMES.iter().filter(|(name, types)| match *name {
            "integer" => !number && self.meets(Types::INTEGER),
            "number" => number,
            _ => self.meets(*types),
        });
        f.write_str(&names.map(|(name, _)| *name).collect::<Vec<_>>().join(" or "))
    }
}

/// The type of a value.
pub(crate) fn type_of(value: &Json) -> Types {
    match value {
        Json::Null => Types::NULL,
        Json::Bool(_) => Types::BOOLEAN,
        Json::Number(text) => match Decimal::parse(text) {
            Some(number) if !number.is_integer() => Types::FRACTION,
            Some(_) => Types::INTEGER,
            // The exponent is too large to be counted; its sign decides.
            None if text.contains("e-") || text.contains("E-") => Types::FRACTION,
            None => Types::INTEGER,
        },
        Json::String(_) => Types::STRING,
        Json::Array(_) => Types::ARRAY,
        Json::Object(_) => Types::OBJECT,
    }
}

/// How a string is related to the names of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameUse {
    /// Whether it declares a name; otherwise it must be a name declared before.
    pub(crate) declares: bool,
    /// The string that names the set.
    pub(crate) set: JsonId,
}

/// An enforced keyword with its checked value.
#[derive(Clone, Debug)]
pub(crate) enum Keyword {
    Type(Types),
    /// `enum`, or `const` as a list of one.
    Values(Box<[JsonId]>),
    Minimum {
        bound: Decimal,
        exclusive: bool,
    },
    Maximum {
        bound: Decimal,
        exclusive: bool,
    },
    MultipleOf(Decimal),
    MinLength(u32),
    MaxLength(u32),
    Pattern(JsonId),
    Format(Format),
    /// A string that declares a name or refers to one.
    Name(NameUse),
    MinItems(u32),
    MaxItems(u32),
    /// The first elements, one schema for each.
    PrefixItems(Box<[SchemaId]>),
    /// All elements after the first ones.
    Items(SchemaId),
    /// How many elements must match.
    Contains {
        schema: SchemaId,
        min: u32,
        max: Option<u32>,
    },
    UniqueItems,
    UnevaluatedItems(SchemaId),
    /// The JSON object whose values are schemas.
    Properties(JsonId),
    /// The JSON object whose keys are patterns and whose values are schemas.
    PatternProperties(JsonId),
    /// The JSON array of keys.
    Required(JsonId),
    AdditionalProperties(SchemaId),
    UnevaluatedProperties(SchemaId),
    PropertyNames(SchemaId),
    MinProperties(u32),
    MaxProperties(u32),
    AllOf(Box<[SchemaId]>),
    AnyOf(Box<[SchemaId]>),
    OneOf(Box<[SchemaId]>),
    Ref(SchemaId),
    Not(SchemaId),
    If {
        condition: SchemaId,
        then: Option<SchemaId>,
        otherwise: Option<SchemaId>,
    },
    /// The JSON object that maps keys to what their presence requires: an array of other keys, or a schema.
    Dependent(JsonId),
}

impl Keyword {
    /// Whether the keyword only combines other schemas for the same value.
    pub(crate) fn applies_in_place(&self) -> bool {
        matches!(
            self,
            Keyword::AllOf(_)
                | Keyword::AnyOf(_)
                | Keyword::OneOf(_)
                | Keyword::Ref(_)
                | Keyword::Not(_)
                | Keyword::If { .. }
                | Keyword::Dependent(_)
        )
    }

    /// Whether the keyword applies to what the keywords beside it and inside them have not evaluated.
    pub(crate) fn is_unevaluated(&self) -> bool {
        matches!(self, Keyword::UnevaluatedProperties(_) | Keyword::UnevaluatedItems(_))
    }
}

/// A keyword that cannot be enforced.
#[derive(Clone, Debug)]
pub(crate) struct Refusal<'t> {
    pub(crate) keyword: &'t str,
    /// The reason, and what to do instead.
    pub(crate) reason: Cow<'static, str>,
}

/// One schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema<'t> {
    /// Whether the schema is `false`.
    pub(crate) never: bool,
    pub(crate) keywords: Vec<Keyword>,
    pub(crate) refusals: Vec<Refusal<'t>>,
    /// The range of its entries in the list of all fates: one for every keyword that isn't refused.
    pub(crate) fates: Range<u32>,
}

/// A keyword that is enforced, or an annotation.
#[derive(Clone, Debug)]
pub(crate) struct Fate<'t> {
    pub(crate) enforced: bool,
    pub(crate) keyword: &'t str,
    pub(crate) note: Cow<'static, str>,
}

impl Schema<'_> {
    /// Whether the schema has constraints of its own, besides combining others.
    pub(crate) fn constrains(&self) -> bool {
        self.never || self.keywords.iter().any(|keyword| !keyword.applies_in_place() && !keyword.is_unevaluated())
    }
}

/// All reachable schemas of a document.
pub(crate) struct Schemas<'t> {
    pub(crate) document: &'t Document<'t>,
    pub(crate) refs: Refs<'t>,
    pub(crate) scopes: Scopes<'t>,
    pub(crate) root: SchemaId,
    /// Whether integers are written without a point, whatever the draft says.
    pub(crate) integers_as_digits: bool,
    /// Indexes in `list` by JSON value, in scope 0; [`Schemas::NONE`] if the value is not a schema.
    pub(crate) by_value: Vec<u32>,
    /// The same for other scopes.
    pub(crate) by_scope: FxHashMap<SchemaId, u32>,
    pub(crate) list: Vec<Schema<'t>>,
    /// The fates of the keywords of all schemas.
    pub(crate) fates: Vec<Fate<'t>>,
}

impl<'t> Schemas<'t> {
    /// Stands for no schema.
    pub(crate) const NONE: u32 = u32::MAX;

    /// The schema with an id, whose value must have been read as a schema.
    pub(crate) fn get(&self, id: SchemaId) -> &Schema<'t> {
        let position = if id.scope == 0 { self.by_value[id.value.0 as usize] } else { self.by_scope[&id] };
        &self.list[position as usize]
    }

    /// The fate of every keyword of a schema that isn't refused.
    pub(crate) fn fates(&self, id: SchemaId) -> &[Fate<'t>] {
        let Range { start, end } = self.get(id).fates;
        &self.fates[start as usize..end as usize]
    }

    /// Whether there is a schema with this id.
    pub(crate) fn has(&self, id: SchemaId) -> bool {
        match id.scope {
            0 => self.by_value[id.value.0 as usize] != Schemas::NONE,
            _ => self.by_scope.contains_key(&id),
        }
    }

    /// A schema inside another one, given by its value.
    pub(crate) fn inner(&self, outer: SchemaId, value: JsonId) -> SchemaId {
        if outer.scope == 0 {
            return SchemaId { value, scope: 0 };
        }
        SchemaId { value, scope: self.scopes.inside(outer.scope, self.refs.resource_of(value)) }
    }

    /// The draft of a schema.
    pub(crate) fn draft(&self, id: SchemaId) -> Draft {
        self.refs.draft(id.value)
    }

    /// Whether the text of a number decides here whether it's an integer, as in draft 4: it has no point or exponent.
    pub(crate) fn is_pointless(&self, id: SchemaId) -> bool {
        self.integers_as_digits || self.draft(id) == Draft::D4
    }

    /// The JSON pointer of a schema.
    pub(crate) fn place(&self, id: SchemaId) -> String {
        self.document.pointer(id.value)
    }
}
