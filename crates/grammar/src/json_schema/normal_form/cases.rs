//! Cases of one member: what is asked of it where products are split by its value.

use crate::json_schema::read::schema::Types;

/// A list of values, by its position among those of the normal form.
pub(crate) type ListId = u32;

/// What is asked of a value and of its member of one name, in one case.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) name: &'a str,
    /// Whether values fit that are no objects.
    pub(crate) others: bool,
    /// Whether objects fit that lack the member.
    pub(crate) lacking: bool,
    /// The values of the member in objects that fit.
    pub(crate) values: MemberValues,
}

/// Which values of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum MemberValues {
    None,
    Any,
    Among(ListId),
    Outside(ListId),
}

impl Case<'_> {
    /// The types of values that fit.
    pub(crate) fn types(&self) -> Types {
        let objects = if self.lacking || self.values != MemberValues::None { Types::OBJECT } else { Types::NONE };
        if self.others { objects.or(Types::ALL.without(Types::OBJECT)) } else { objects }
    }
}
