//! How models write the arguments of a call: as JSON, or each between markers of its own.

use super::literals::{NOTATIONS, Notation};

/// How the values of one schema are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Style {
    /// As one JSON text.
    Json,
    /// One after the other: a name, and a value between markers.
    Marked(&'static Marked),
    /// The same, where objects and arrays are written between markers, too.
    Nested,
    /// As literals of a notation.
    Literal(&'static Notation),
}

/// The markers around the name and the value of one argument.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(super) struct Marked {
    name: &'static str,
    /// Before the name.
    pub open: &'static str,
    /// From the name to the value; `{}` is the word for the type of the value.
    pub middle: &'static str,
    /// Behind the value.
    pub close: &'static str,
    /// The word for a string, which is written as it is.
    pub string: &'static str,
    /// The words for other types, which are written as JSON.
    pub other: Words,
    /// Whether a value may stand on lines of its own: one line break before it and one behind it are not part of it.
    pub own_lines: bool,
}

/// The words for the types of values that are no strings.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(super) enum Words {
    /// The same for all.
    One(&'static str),
    /// The names of the types in JSON Schema, where an integer is a number.
    Types,
}

/// The name of the style in which objects and arrays are written between markers.
const NESTED: &str = "minimax_m3_xml";

const PLAIN: Words = Words::One("");

static STYLES: [Marked; 14] = [
    Marked {
        name: "qwen_xml",
        open: "<parameter=",
        middle: ">",
        close: "</parameter>",
        string: "",
        other: PLAIN,
        own_lines: true,
    },
    Marked {
        name: "minimax_xml",
        open: "<parameter name=\"",
        middle: "\">",
        close: "</parameter>",
        string: "",
        other: PLAIN,
        own_lines: false,
    },
    Marked {
        name: "deepseek_xml",
        open: "<｜DSML｜parameter name=\"",
        middle: "\" string=\"{}\">",
        close: "</｜DSML｜parameter>",
        string: "true",
        other: Words::One("false"),
        own_lines: false,
    },
    Marked {
        name: "deepseek_v4_1_xml",
        open: "<｜DSML｜ parameter name=\"",
        middle: "\" string=\"{}\">",
        close: "</｜DSML｜ parameter>",
        string: "true",
        other: Words::One("false"),
        own_lines: false,
    },
    Marked {
        name: "glm_xml",
        open: "<arg_key>",
        middle: "</arg_key>\n<arg_value>",
        close: "</arg_value>",
        string: "",
        other: PLAIN,
        own_lines: false,
    },
    Marked {
        name: "cohere_xml",
        open: "<cofl:value name=\"",
        middle: "\" type=\"{}\">",
        close: "</cofl:value>",
        string: "raw",
        other: Words::One("json"),
        own_lines: false,
    },
    Marked {
        name: "kimi_k3_xml",
        open: "<|open|>argument key=\"",
        middle: "\" type=\"{}\"<|sep|>",
        close: "<|close|>argument<|sep|>",
        string: "string",
        other: Words::Types,
        own_lines: false,
    },
    Marked {
        name: "parameter_xml",
        open: "<parameter=",
        middle: ">",
        close: "</parameter>",
        string: "",
        other: PLAIN,
        own_lines: false,
    },
    Marked {
        name: "step_xml",
        open: "<steptml:parameter name=\"",
        middle: "\">",
        close: "</steptml:parameter>",
        string: "",
        other: PLAIN,
        own_lines: false,
    },
    Marked {
        name: "gigachat_xml",
        open: "<｜GCML｜parameter name=\"",
        middle: "\" string=\"{}\">",
        close: "</｜GCML｜parameter>",
        string: "true",
        other: Words::One("false"),
        own_lines: false,
    },
    Marked {
        name: "ifm_xml",
        open: "<ifm|arg_key>",
        middle: "</ifm|arg_key>\n<ifm|arg_value>",
        close: "</ifm|arg_value>",
        string: "",
        other: PLAIN,
        own_lines: false,
    },
    Marked {
        name: "param_xml",
        open: "<param name=\"",
        middle: "\">",
        close: "</param>",
        string: "",
        other: PLAIN,
        own_lines: false,
    },
    Marked {
        name: "hunyuan_xml",
        open: "<arg_key:opensource>",
        middle: "</arg_key:opensource>\n<arg_value:opensource>",
        close: "</arg_value:opensource>",
        string: "",
        other: PLAIN,
        own_lines: false,
    },
    Marked {
        name: "atem_xml",
        open: "<atem:parameter name=\"",
        middle: "\">",
        close: "</atem:parameter>",
        string: "",
        other: PLAIN,
        own_lines: false,
    },
];

impl Style {
    /// The style of this name.
    pub(super) fn named(name: &str) -> Option<Style> {
        match name {
            "json" => Some(Style::Json),
            NESTED => Some(Style::Nested),
            _ => {
                let marked = STYLES.iter().find(|style| style.name == name).map(Style::Marked);
                marked.or_else(|| NOTATIONS.iter().find(|notation| notation.name == name).map(Style::Literal))
            }
        }
    }

    /// All names, for messages.
    pub(super) fn names() -> String {
        let names = STYLES.iter().map(|style| style.name).chain(NOTATIONS.iter().map(|notation| notation.name));
        let names: Vec<&str> = names.collect();
        format!("json, {}, {NESTED}", names.join(", "))
    }
}
