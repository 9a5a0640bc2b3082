//! Cases of one member: what is asked of it where products are split by its value.

use crate::json_schema::read::schema::Types;

/// A list of values, given by its index in the normal form.
pub(crate) type ListId = u32;

/// The requirements on a value and on its member of one name, in one case.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) name: &'a str,
    /// Whether the case contains values that are not objects.
    pub(crate) others: bool,
    /// Whether the case contains objects without the member.
    pub(crate) lacking: bool,
    /// The values of the member in the objects of the case.
    pub(crate) values: MemberValues,
}

/// A set of values of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum MemberValues {
    None,
    Any,
    Among(ListId),
    Outside(ListId),
}

impl Case<'_> {
    /// The types of the values in the case.
    pub(crate) fn types(&self) -> Types {
        let objects = if self.lacking || self.values != MemberValues::None { Types::OBJECT } else { Types::NONE };
        if self.others { objects.or(Types::ALL.without(Types::OBJECT)) } else { objects }
    }
}
