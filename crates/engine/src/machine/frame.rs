//! The terms of the machine: frames, what their registers say, and what is pushed.

use stencilm_grammar::{ItemsId, MembersId, NodeId};
use stencilm_regex::{ByteSet, ExprId};

use crate::lexeme::whitespace::OptionalWhitespace;

/// A place in the grammar that can wait on a stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Frame {
    Node(NodeId),
    /// The parts of a sequence from this one on.
    Rest {
        node: NodeId,
        from: u32,
    },
    /// A key of an object comes next.
    Key(MembersId),
    /// A colon and the value of a member come next.
    Member {
        members: MembersId,
        value: NodeId,
    },
    /// A comma or the closing brace of an object comes next.
    AfterValue(MembersId),
    /// An element of an array comes next; of a bare one, or its end.
    Item(ItemsId),
    /// A comma or the closing bracket of an array comes next.
    AfterItem(ItemsId),
    Lexeme(ExprId),
    /// A part with a budget or a temperature ends here.
    End(NodeId),
    /// Of the entry of a configuration that is the text so far: nothing goes on from it.
    Text,
    /// The names declared so far, as a list, on top of a stack: see `distinct/names.rs`.
    Names,
    /// A reference to one of these names.
    Reference {
        node: NodeId,
        names: NamesId,
    },
    /// The paths up from a complete node to the one that is wanted, which may begin with it: see `machine/left_corner.rs`.
    Left {
        /// The node that is wanted.
        goal: NodeId,
        /// The node that is complete.
        corner: NodeId,
        /// Whether all that the goal may begin with is read from the corner up, not only its cycle.
        whole: bool,
        /// Whether the goal is complete when the corner is.
        nullable: bool,
    },
    /// Whitespace, then another frame: one thread reads both, and counts the whitespace.
    WithWhitespace {
        whitespace: OptionalWhitespace,
        then: FrameId,
    },
}

/// What of a register decides which lexemes may come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// The frame has no register.
    Plain,
    /// A repetition: whether it may end here, and whether another round may start.
    Repeat {
        /// Enough rounds are done.
        may_end: bool,
        /// Not all rounds are done.
        may_go_on: bool,
    },
    /// Before a key of an object: see [`crate::state::stacks::MembersState`].
    Key {
        /// The first member in declared order that may still come.
        next: u32,
        /// The declared members in any order that were seen.
        known: u32,
        /// Bits of the values of other members of which one must still come.
        required_left: u32,
        /// Whether only what must still come may.
        tight: bool,
        /// The last member in declared order that may come, if the required ones let it; their number where others may.
        reach: u32,
        /// Whether the last member of an object that is cut off may.
        may_end: bool,
    },
    /// Before an element of an array; of a bare one, also after one.
    Item {
        /// Its place; the number of leading places for all that come later.
        place: u32,
        /// Bits of the alternatives that may come.
        allowed: u64,
        /// Whether none need come, which only a bare array may say.
        may_end: bool,
    },
    /// After a member of an object or an element of an array.
    AfterValue {
        /// Whether another one may come.
        more: bool,
        /// Whether all that is required was seen.
        may_close: bool,
    },
}

/// How a pushed frame gets its register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Register {
    /// This value.
    Value(u32),
    /// The register of the expansion's own frame, as it is.
    Same,
    /// Of a repetition.
    Count(CountUp),
    /// Of an object.
    Object(MemberChange),
    /// Of an array.
    Array(ElementChange),
    /// Of a marked part.
    Mark(Begun),
}

/// One more round than the register of the expansion's own frame says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CountUp {
    /// The greatest count worth distinguishing.
    pub limit: u32,
}

/// What an object has now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum MemberChange {
    /// It has seen this declared member.
    Known(u32),
    /// It has seen the key just written.
    Additional {
        /// The bit of the value that is to come, where one of the class must have it; else 0.
        satisfied: u32,
    },
    /// It is cut off after the key just written, if that is none of those that it has.
    Last,
}

/// What an array has now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ElementChange {
    /// The first element of an array whose elements are compared begins.
    First,
    /// Another one begins.
    Next,
    /// The bare array has now its first element.
    Only {
        /// The array.
        items: ItemsId,
        /// The counters that the element counts for.
        counts: u32,
    },
    /// It has now one more element.
    Counted {
        /// The counters that it counts for.
        counts: u32,
    },
}

/// Since when a marked part goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Begun {
    /// How many tokens were accepted when the part above began.
    AtToken,
    /// The text before the part above.
    InText,
}

/// A set of declared names as a number of one machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct NamesId(pub u32);

impl NamesId {
    /// Names that are not known: whatever might be declared.
    pub const ANY: NamesId = NamesId(0);
}

/// A frame as other parts of the engine see it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FrameId(pub u32);

/// An expansion of one [`Machine`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ExpansionId(pub u32);

/// Frames to push, the bottom one first.
pub type Continuation = Box<[(FrameId, Register)]>;

/// With what a frame begins.
#[derive(Clone, Copy)]
pub(crate) struct Begins {
    /// The bytes with which it may begin, perhaps some more.
    pub bytes: ByteSet,
    /// Whether it may match nothing, said also of some that may not.
    pub nullable: bool,
}

impl Begins {
    pub const NOTHING: Begins = Begins { bytes: ByteSet::EMPTY, nullable: true };
}
