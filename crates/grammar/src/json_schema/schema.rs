//! The typed schema: every schema of a document as a list of its keywords with checked values, in the order of the text.
//!
//! A schema is known by the JSON value it stands in. A keyword that cannot be enforced becomes a [`Refusal`], which only
//! matters if the schema is used: unused definitions may say what they like.

use std::borrow::Cow;

use stencilm_regex::Decimal;

use super::document::{Document, JsonId};
use super::vocabulary::Draft;

/// A schema, as the JSON value it stands in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct SchemaId(pub(super) JsonId);

/// JSON types as bits. Numbers count as two: the integers and all others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Types(pub(super) u8);

impl Types {
    pub(super) const NONE: Types = Types(0);
    pub(super) const NULL: Types = Types(1);
    pub(super) const BOOLEAN: Types = Types(2);
    pub(super) const INTEGER: Types = Types(4);
    pub(super) const FRACTION: Types = Types(8);
    pub(super) const NUMBER: Types = Types(12);
    pub(super) const STRING: Types = Types(16);
    pub(super) const ARRAY: Types = Types(32);
    pub(super) const OBJECT: Types = Types(64);
    pub(super) const ALL: Types = Types(127);

    /// The types that `type` may name.
    pub(super) const NAMES: [(&'static str, Types); 7] = [
        ("null", Types::NULL),
        ("boolean", Types::BOOLEAN),
        ("integer", Types::INTEGER),
        ("number", Types::NUMBER),
        ("string", Types::STRING),
        ("array", Types::ARRAY),
        ("object", Types::OBJECT),
    ];

    pub(super) fn and(self, other: Types) -> Types {
        Types(self.0 & other.0)
    }

    pub(super) fn or(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    pub(super) fn without(self, other: Types) -> Types {
        Types(self.0 & !other.0)
    }

    pub(super) fn meets(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn is_empty(self) -> bool {
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

/// The standard formats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Format {
    Date,
    Time,
    DateTime,
    Uuid,
    Ipv4,
    Duration,
    Email,
    IdnEmail,
    Hostname,
    IdnHostname,
    Ipv6,
    Uri,
    UriReference,
    Iri,
    IriReference,
    UriTemplate,
    JsonPointer,
    RelativeJsonPointer,
    Regex,
}

impl Format {
    pub(super) const ALL: [Format; 19] = [
        Format::Date,
        Format::Time,
        Format::DateTime,
        Format::Uuid,
        Format::Ipv4,
        Format::Duration,
        Format::Email,
        Format::IdnEmail,
        Format::Hostname,
        Format::IdnHostname,
        Format::Ipv6,
        Format::Uri,
        Format::UriReference,
        Format::Iri,
        Format::IriReference,
        Format::UriTemplate,
        Format::JsonPointer,
        Format::RelativeJsonPointer,
        Format::Regex,
    ];
    /// Those that every grammar finds ready.
    pub(super) const COMMON: [Format; 5] = [Format::Date, Format::Time, Format::DateTime, Format::Uuid, Format::Ipv4];

    pub(super) fn name(self) -> &'static str {
        match self {
            Format::Date => "date",
            Format::Time => "time",
            Format::DateTime => "date-time",
            Format::Uuid => "uuid",
            Format::Ipv4 => "ipv4",
            Format::Duration => "duration",
            Format::Email => "email",
            Format::IdnEmail => "idn-email",
            Format::Hostname => "hostname",
            Format::IdnHostname => "idn-hostname",
            Format::Ipv6 => "ipv6",
            Format::Uri => "uri",
            Format::UriReference => "uri-reference",
            Format::Iri => "iri",
            Format::IriReference => "iri-reference",
            Format::UriTemplate => "uri-template",
            Format::JsonPointer => "json-pointer",
            Format::RelativeJsonPointer => "relative-json-pointer",
            Format::Regex => "regex",
        }
    }
}

/// A keyword that is enforced, with its checked value.
#[derive(Clone, Debug)]
pub(super) enum Keyword {
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
    MinItems(u32),
    MaxItems(u32),
    /// The first elements, one by one.
    PrefixItems(Box<[SchemaId]>),
    /// All elements after the first ones.
    Items(SchemaId),
    /// The JSON object whose values are schemas.
    Properties(JsonId),
    /// The JSON array of keys.
    Required(JsonId),
    AdditionalProperties(SchemaId),
    AllOf(Box<[SchemaId]>),
    AnyOf(Box<[SchemaId]>),
    OneOf(Box<[SchemaId]>),
    Ref(SchemaId),
}

impl Keyword {
    /// Whether the keyword only combines other schemas for the same value.
    pub(super) fn applies_in_place(&self) -> bool {
        matches!(self, Keyword::AllOf(_) | Keyword::AnyOf(_) | Keyword::OneOf(_) | Keyword::Ref(_))
    }
}

/// A keyword that cannot be enforced.
#[derive(Clone, Debug)]
pub(super) struct Refusal<'t> {
    pub(super) keyword: &'t str,
    /// Why, and the way out.
    pub(super) reason: Cow<'static, str>,
}

/// One schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Schema<'t> {
    /// Whether the schema is `false`.
    pub(super) never: bool,
    pub(super) keywords: Vec<Keyword>,
    pub(super) refusals: Vec<Refusal<'t>>,
    /// What becomes of every keyword that is not refused.
    pub(super) fates: Vec<Fate<'t>>,
}

/// A keyword that is enforced, or an annotation.
#[derive(Clone, Debug)]
pub(super) struct Fate<'t> {
    pub(super) enforced: bool,
    pub(super) keyword: &'t str,
    pub(super) note: Cow<'static, str>,
}

impl Schema<'_> {
    /// Whether the schema says something of its own, beside combining others.
    pub(super) fn constrains(&self) -> bool {
        self.never || self.keywords.iter().any(|keyword| !keyword.applies_in_place())
    }
}

/// All schemas of a document that can be reached.
pub(super) struct Schemas<'t> {
    pub(super) document: &'t Document<'t>,
    pub(super) draft: Draft,
    /// Positions in `list` by JSON value; [`Schemas::NONE`] where no schema stands.
    pub(super) by_value: Vec<u32>,
    pub(super) list: Vec<Schema<'t>>,
}

impl<'t> Schemas<'t> {
    /// No schema.
    pub(super) const NONE: u32 = u32::MAX;

    pub(super) fn root(&self) -> SchemaId {
        SchemaId(self.document.root())
    }

    /// The schema behind an id, which stands for a value that was read as a schema.
    pub(super) fn get(&self, id: SchemaId) -> &Schema<'t> {
        &self.list[self.by_value[id.0.0 as usize] as usize]
    }

    /// The JSON pointer of a schema.
    pub(super) fn place(&self, id: SchemaId) -> String {
        self.document.pointer(id.0)
    }
}
