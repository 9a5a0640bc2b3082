//! The literals of the normal form: what may be asked of one value, without `and`, `or`, `not`.

use crate::json_schema::read::document::JsonId;
use crate::json_schema::read::schema::{Keyword, SchemaId, Types};

/// What is asked of a value inside another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Term {
    /// It is an instance.
    Holds(SchemaId),
    /// It is not.
    Fails(SchemaId),
    /// It is another value than this one.
    Differs(JsonId),
    /// Any of a list of terms, by its position among those of the normal form.
    Any(u32),
    /// It is one of a list of values, by its position among those of the normal form.
    Among(u32),
    /// It is none of them.
    Outside(u32),
}

/// One thing asked of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Atom {
    /// All keywords of a schema that speak of the value itself hold.
    Own(SchemaId),
    /// One of them does not hold. Where it speaks of several parts, each of which may be the reason, `part` is one of
    /// them: a place in a list, or the JSON value that stands for it.
    Broken { schema: SchemaId, keyword: u32, part: u32 },
    /// It is an object whose member, if it has one of this name, is no instance of the property's schema.
    MemberFails { schema: SchemaId, name: JsonId },
    /// It is another value than this one, for the reason of this number (see [`super::negation`]).
    Differs { value: JsonId, reason: u32 },
    /// It is an object with this key: the string, or the key of the value.
    Has { name: JsonId, at: SchemaId },
    /// It is not.
    Lacks { name: JsonId, at: SchemaId },
    /// Nothing fits: the schema at hand allows every value and is negated.
    Never(SchemaId),
    /// Asks nothing: the annotations of this schema count.
    Seen(SchemaId),
    /// The members or elements that none of the seen schemas speaks of are instances of the schema that the keyword
    /// holds; or else, one of them is not.
    Unevaluated { schema: SchemaId, keyword: u32, seen: u32, broken: bool },
    /// It is one of a list of values, by its position among those of the normal form.
    Among(u32),
    /// It is none of them.
    Outside(u32),
    /// One of its members is as a case says, by its position among those of the normal form.
    Case(u32),
    /// Any of some alternatives holds, which speak of types and texts only, by its position among those of the normal
    /// form.
    Texts(u32),
    /// Nothing fits: a cycle of references, by its position among those of the normal form.
    Circular(u32),
}

impl Atom {
    /// The schema to name in messages.
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
