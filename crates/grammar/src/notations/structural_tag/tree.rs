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

/// The beginning or the end of a tag.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Marker<'t> {
    Text(&'t str),
    Token(TokenRef<'t>),
    /// A pattern and its format; only for beginnings.
    Pattern(&'t str, JsonId),
}

/// How often tags may occur in text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rounds {
    /// At least one, immediately at the beginning.
    pub at_least_one: bool,
    /// Nothing follows the first one.
    pub stop_after_first: bool,
}

/// The syntax of a grammar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Syntax {
    Ebnf,
    Lark,
}

#[derive(Debug)]
pub(super) enum Format<'t> {
    /// Not read yet; replaced before the tree is complete.
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
        /// It's the last part before the ends of the tag, which it knows.
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
    /// `min` to `max` tokens, none of which is excluded.
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

/// A format, its position, and its context.
#[derive(Debug)]
pub(super) struct Slot<'t> {
    pub format: Format<'t>,
    pub at: JsonId,
    /// The ends of the innermost enclosing tag: text without bounds stops at them.
    pub ends: Rc<Vec<Marker<'t>>>,
    /// Whether these ends follow it directly and are read together with it.
    pub is_last: bool,
}

/// A parsed structural tag.
#[derive(Debug)]
pub(super) struct Tree<'t> {
    pub slots: Vec<Slot<'t>>,
}

impl<'t> Tree<'t> {
    pub(super) fn slot(&self, id: FormatId) -> &Slot<'t> {
        &self.slots[id.index()]
    }
}
