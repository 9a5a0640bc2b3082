//! The notations of literals in which arguments of a call are written: keywords of a call in Python, or names and values as
//! the Gemma models write them.

/// The words and marks of a notation.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(super) struct Notation {
    pub name: &'static str,
    /// Between the name of an argument and its value.
    pub assign: &'static str,
    /// Between two arguments, two members, two elements.
    pub comma: &'static str,
    /// Between the key of a member and its value.
    pub colon: &'static str,
    /// The words for true, false and null.
    pub words: [&'static str; 3],
    /// What stands around a string, which is written as it is; without it strings and keys are those of JSON, or the same in
    /// single quotes.
    pub quote: Option<&'static str>,
    /// Whether arguments and members may also come in the order of their names, as chat templates sort them.
    pub sorted: bool,
}

pub(super) static NOTATIONS: [Notation; 3] = [
    Notation {
        name: "python",
        assign: "=",
        comma: ", ",
        colon: ": ",
        words: ["True", "False", "None"],
        quote: None,
        sorted: false,
    },
    Notation {
        name: "gemma",
        assign: ":",
        comma: ",",
        colon: ":",
        words: ["true", "false", "null"],
        quote: Some("<|\"|>"),
        sorted: true,
    },
    Notation {
        name: "functiongemma",
        assign: ":",
        comma: ",",
        colon: ":",
        words: ["true", "false", "null"],
        quote: Some("<escape>"),
        sorted: true,
    },
];
