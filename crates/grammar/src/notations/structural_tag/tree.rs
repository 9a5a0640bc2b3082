//! What a structural tag says, as a flat tree: a format stands before what it is made of.

use std::rc::Rc;

use super::styles::Style;
use crate::json_schema::options::JsonSchemaOptions;
use crate::json_schema::read::document::JsonId;

/// A format of one [`Tree`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FormatId(pub u32);

impl FormatId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A token of the model, by id or by name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum TokenRef<'t> {
    Id(u32),
    Name(&'t str),
}

/// What begins or ends a tag.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Marker<'t> {
    Text(&'t str),
    Token(TokenRef<'t>),
    /// A pattern and its format; only at a beginning.
    Pattern(&'t str, JsonId),
}

/// How often tags may come between text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rounds {
    /// One at least, and at the very beginning.
    pub at_least_one: bool,
    /// Nothing follows the first one.
    pub stop_after_first: bool,
}

/// What the grammar of a format is written in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Syntax {
    Ebnf,
    Lark,
}

#[derive(Debug)]
pub(super) enum Format<'t> {
    /// Replaced before the tree is complete.
    Unread,
    Const(&'t str),
    Schema {
        schema: JsonId,
        style: Style,
        options: Box<JsonSchemaOptions>,
    },
    Grammar {
        text: &'t str,
        syntax: Syntax,
    },
    Regex(&'t str),
    AnyText {
        excludes: Vec<&'t str>,
        max_chars: Option<u32>,
        max_tokens: Option<u32>,
    },
    Sequence(Vec<FormatId>),
    Or(Vec<FormatId>),
    Repeat {
        content: FormatId,
        min: u32,
        max: Option<u32>,
    },
    Tag {
        begin: Marker<'t>,
        /// It is last before the ends of the tag, which it knows.
        content: FormatId,
    },
    Triggered {
        triggers: Vec<&'t str>,
        tags: Vec<FormatId>,
        excludes: Vec<&'t str>,
        rounds: Rounds,
    },
    Separated {
        tags: Vec<FormatId>,
        separator: &'t str,
        rounds: Rounds,
    },
    Dispatch {
        rules: Vec<(&'t str, FormatId)>,
        excludes: Vec<&'t str>,
        rounds: Rounds,
    },
    Token(TokenRef<'t>),
    /// `min` to `max` tokens, none of them excluded.
    OtherTokens {
        excludes: Vec<TokenRef<'t>>,
        min: u32,
        max: Option<u32>,
    },
    TokenTriggered {
        triggers: Vec<TokenRef<'t>>,
        tags: Vec<FormatId>,
        excludes: Vec<TokenRef<'t>>,
        rounds: Rounds,
    },
    TokenDispatch {
        rules: Vec<(TokenRef<'t>, FormatId)>,
        excludes: Vec<TokenRef<'t>>,
        rounds: Rounds,
    },
}

/// A format, where it stands, and what stands around it.
#[derive(Debug)]
pub(super) struct Slot<'t> {
    pub format: Format<'t>,
    pub at: JsonId,
    /// The ends of the nearest tag around it: text without bounds does not run over them.
    pub ends: Rc<Vec<Marker<'t>>>,
    /// Whether those ends follow it directly, and are read together with it.
    pub is_last: bool,
}

/// A structural tag that has been read.
#[derive(Debug)]
pub(super) struct Tree<'t> {
    pub slots: Vec<Slot<'t>>,
}

impl<'t> Tree<'t> {
    pub(super) fn slot(&self, id: FormatId) -> &Slot<'t> {
        &self.slots[id.index()]
    }
}
