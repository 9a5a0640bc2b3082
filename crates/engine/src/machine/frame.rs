//! The types of the machine: frames, the guards derived from their registers, and what is pushed.

use stencilm_grammar::{ItemsId, MembersId, NodeId};
use stencilm_regex::{ByteSet, ExprId};

use crate::lexeme::whitespace::OptionalWhitespace;

/// A place in the grammar that can wait on a stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Frame {
    Node(NodeId),
    /// The parts of a sequence from `from` on.
    Rest {
        node: NodeId,
        from: u32,
    },
    /// Before a key of an object.
    Key(MembersId),
    /// Before the colon and the value of a member.
    Member {
        members: MembersId,
        value: NodeId,
    },
    /// Before a comma or the closing brace of an object.
    AfterValue(MembersId),
    /// Before an element of an array; in an array without brackets, also where it may end.
    Item(ItemsId),
    /// Before a comma or the closing bracket of an array.
    AfterItem(ItemsId),
    Lexeme(ExprId),
    /// At the end of a part with a budget or a temperature.
    End(NodeId),
    /// The entry of a configuration that holds the text so far. No byte is read from it.
    Text,
    /// The names declared so far, kept as a list on top of a stack: see `parse/names.rs`.
    Names,
    /// A reference to one of these names.
    Reference {
        node: NodeId,
        names: NamesId,
    },
    /// The paths from a complete node, the corner, up to the goal: see `machine/left_corner.rs`.
    Left {
        /// The node that is to be completed.
        goal: NodeId,
        /// The node that is complete.
        corner: NodeId,
        /// Whether everything that the goal may begin with is read from the corner up, and not only its cycle.
        whole: bool,
        /// Whether the goal is complete as soon as the corner is.
        nullable: bool,
    },
    /// Whitespace, then another frame. One thread reads both and counts the whitespace.
    WithWhitespace {
        whitespace: OptionalWhitespace,
        then: FrameId,
    },
}

/// The part of a register that decides which lexemes may come next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// The frame has no register.
    Plain,
    /// A repetition: whether it may end here, and whether another round may start.
    Repeat {
        /// Enough rounds are complete.
        may_end: bool,
        /// Another round is allowed.
        may_go_on: bool,
    },
    /// Before a key of an object: see [`crate::state::stacks::MembersState`].
    Key {
        /// The first ordered member that may still come.
        next: u32,
        /// The unordered declared members used so far, as a set.
        known: u32,
        /// Bits of the values that some additional member must still have.
        required_left: u32,
        /// Whether only required members may still come.
        tight: bool,
        /// The last ordered member that may come, unless a required one stops earlier; the number of ordered members
        /// where others may come.
        reach: u32,
        /// Whether the object is cut off and its last member may come.
        may_end: bool,
    },
    /// Before an element of an array; in an array without brackets, also after one.
    Item {
        /// The position; all positions after the prefix count as the first of them.
        place: u32,
        /// Bits of the alternatives that may come.
        allowed: u64,
        /// Whether the array may end here; only an array without brackets decides it at this frame.
        may_end: bool,
    },
    /// After a member of an object or an element of an array.
    AfterValue {
        /// Whether another one may come.
        more: bool,
        /// Whether everything that is required has come.
        may_close: bool,
    },
}

/// How a pushed frame gets its register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Register {
    /// This value.
    Value(u32),
    /// The register of the frame that was expanded, unchanged.
    Same,
    /// The register of a repetition.
    Count(CountUp),
    /// The register of an object.
    Object(MemberChange),
    /// The register of an array.
    Array(ElementChange),
    /// The register of a marked part.
    Mark(Begun),
}

/// Counts one more round than the register of the expanded frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CountUp {
    /// The greatest count that makes a difference.
    pub limit: u32,
}

/// How an object's register changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum MemberChange {
    /// This declared member was used.
    Known(u32),
    /// The key just written was used.
    Additional {
        /// The bit of the value to come, where the class requires some member to have it; else 0.
        satisfied: u32,
    },
    /// The object is cut off after the key just written, unless that key was used before.
    Last,
}

/// How an array's register changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ElementChange {
    /// The first element begins in an array whose elements are compared.
    First,
    /// Another element begins.
    Next,
    /// An array without brackets has its first element.
    Only {
        /// The array.
        items: ItemsId,
        /// The counters that count this element.
        counts: u32,
    },
    /// The array has one more element.
    Counted {
        /// The counters that count it.
        counts: u32,
    },
}

/// What a marked part remembers about its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Begun {
    /// How many tokens had been accepted when the part began.
    AtToken,
    /// The text before the part.
    InText,
}

/// A set of declared names, as a number of one machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct NamesId(pub u32);

impl NamesId {
    /// An unknown set, which may hold any names.
    pub const ANY: NamesId = NamesId(0);
}

/// The number of a frame in one [`Machine`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FrameId(pub u32);

/// The number of an expansion in one [`Machine`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ExpansionId(pub u32);

/// Frames to push, the bottom one first.
pub type Continuation = Box<[(FrameId, Register)]>;

/// What a frame begins with.
#[derive(Clone, Copy)]
pub(crate) struct Begins {
    /// The bytes that it may begin with; the set may be too large.
    pub bytes: ByteSet,
    /// Whether it may match nothing; this may be set where it cannot.
    pub nullable: bool,
}

impl Begins {
    pub const NOTHING: Begins = Begins { bytes: ByteSet::EMPTY, nullable: true };
}
