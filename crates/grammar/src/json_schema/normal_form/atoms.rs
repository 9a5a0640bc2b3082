//! The literals of the normal form: what may be asked of one value, without `and`, `or`, `not`.

use crate::json_schema::read::document::JsonId;
use crate::json_schema::read::schema::{Keyword, SchemaId, Types};

/// A requirement on a value inside another value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Term {
    /// It is an instance of the schema.
    Holds(SchemaId),
    /// It is not an instance of the schema.
    Fails(SchemaId),
    /// It differs from this value.
    Differs(JsonId),
    /// One of a list of terms holds; the list is given by its index in the normal form.
    Any(u32),
    /// It is one of a list of values; the list is given by its index in the normal form.
    Among(u32),
    /// It is none of these values.
    Outside(u32),
}

/// One requirement on a value: a literal of the normal form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Atom {
    /// All keywords of a schema that constrain the value itself hold.
    Own(SchemaId),
    /// One of these keywords does not hold. If it has several parts, each of which may be violated, `part` is one of
    /// them: an index in a list, or the JSON value of the part.
    Broken { schema: SchemaId, keyword: u32, part: u32 },
    /// It is an object; its member of this name, if present, is not an instance of the property's schema.
    MemberFails { schema: SchemaId, name: JsonId },
    /// It differs from this value, in the way with this number (see [`super::negation`]).
    Differs { value: JsonId, reason: u32 },
    /// It is an object with this key: the string `name`, or the key of the value `name`.
    Has { name: JsonId, at: SchemaId },
    /// It is not an object with this key.
    Lacks { name: JsonId, at: SchemaId },
    /// Nothing fits: this schema allows every value and is negated.
    Never(SchemaId),
    /// No requirement: the annotations of this schema count.
    Seen(SchemaId),
    /// The members or elements that none of the seen schemas evaluates are instances of the keyword's schema; if
    /// `broken`, one of them is not.
    Unevaluated { schema: SchemaId, keyword: u32, seen: u32, broken: bool },
    /// It is one of a list of values, given by its index in the normal form.
    Among(u32),
    /// It is none of these values.
    Outside(u32),
    /// One of its members is as in a case, given by its index in the normal form.
    Case(u32),
    /// One of some alternatives holds, all of which only constrain types and strings; given by their index in the
    /// normal form.
    Texts(u32),
    /// Nothing fits, because of a cycle of references, given by its index in the normal form.
    Circular(u32),
}

impl Atom {
    /// The schema that messages should name.
    pub(crate) fn at(self) -> Option<SchemaId> {
        match self {
            Atom::Own(at)
            | Atom::Broken { schema: at, .. }
            | Atom::MemberFails { schema: at, .. }
            | Atom::Has { at, .. }
            | Atom::Lacks { at, .. }
            | Atom::Never(at)
            | Atom::Seen(at)
            | Atom::Unevaluated { schema: at, .. } => Some(at),
            Atom::Differs { .. }
            | Atom::Among(_)
            | Atom::Outside(_)
            | Atom::Case(_)
            | Atom::Texts(_)
            | Atom::Circular(_) => None,
        }
    }
}

impl Keyword {
    /// Whether the keyword can fail for values of some of these types.
    pub(crate) fn speaks_of(&self, types: Types) -> bool {
        broken_types(self).meets(types)
    }
}

/// The types of the values for which a keyword can fail.
pub(super) fn broken_types(keyword: &Keyword) -> Types {
    match keyword {
        Keyword::Type(types) => Types::ALL.without(*types),
        Keyword::Minimum { .. } | Keyword::Maximum { .. } | Keyword::MultipleOf(_) => Types::NUMBER,
        Keyword::MinLength(_) | Keyword::MaxLength(_) | Keyword::Pattern(_) | Keyword::Format(_) | Keyword::Name(_) => {
            Types::STRING
        }
        Keyword::MinItems(_)
        | Keyword::MaxItems(_)
        | Keyword::PrefixItems(_)
        | Keyword::Items(_)
        | Keyword::Contains { .. }
        | Keyword::UniqueItems
        | Keyword::UnevaluatedItems(_) => Types::ARRAY,
        Keyword::Properties(_)
        | Keyword::PatternProperties(_)
        | Keyword::Required(_)
        | Keyword::AdditionalProperties(_)
        | Keyword::UnevaluatedProperties(_)
        | Keyword::PropertyNames(_)
        | Keyword::MinProperties(_)
        | Keyword::MaxProperties(_) => Types::OBJECT,
        Keyword::Values(_)
        | Keyword::AllOf(_)
        | Keyword::AnyOf(_)
        | Keyword::OneOf(_)
        | Keyword::Ref(_)
        | Keyword::Not(_)
        | Keyword::If { .. }
        | Keyword::Dependent(_) => Types::ALL,
    }
}
