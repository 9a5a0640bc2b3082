//! How models write the arguments of a call: as JSON, or each between markers of its own. Another style is another row
//! here.

use crate::json_schema::lower::marking::{Arguments, Marked, Parts, Words};
use crate::json_schema::lower::notation::Notation;

/// How the values of one schema are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Style {
    /// As one JSON text.
    Json,
    /// One after the other: each has a name, and a value between markers.
    Marked(&'static Marked),
    /// As literals of a notation.
    Literal(&'static Notation),
}

/// A plain style: strings are not distinguished from other values, which are JSON.
const PLAIN: Marked = Marked {
    open: "",
    middle: ">",
    close: "",
    string: "",
    other: Words::One(""),
    python_words: false,
    own_lines: false,
    name_end: ">",
    name_escapes: &[],
    item: None,
    parts: None,
    control: &[],
};

static STYLES: [(&str, Marked); 16] = [
    ("qwen_xml", Marked { open: "<parameter=", close: "</parameter>", python_words: true, own_lines: true, ..PLAIN }),
    (
        "minimax_xml",
        Marked { open: "<parameter name=\"", middle: "\">", close: "</parameter>", name_end: "\"", ..PLAIN },
    ),
    ("minimax_m3_xml", Marked { open: "]<]minimax[>[<", close: "]<]minimax[>[</{}>", item: Some("item"), ..PLAIN }),
    (
        "deepseek_xml",
        Marked {
            open: "<｜DSML｜parameter name=\"",
            middle: "\" string=\"{}\">",
            close: "</｜DSML｜parameter>",
            string: "true",
            other: Words::One("false"),
            name_end: "\"",
            ..PLAIN
        },
    ),
    (
        "deepseek_v4_1_xml",
        Marked {
            open: "<｜DSML｜ parameter name=\"",
            middle: "\" string=\"{}\">",
            close: "</｜DSML｜ parameter>",
            string: "true",
            other: Words::One("false"),
            name_end: "\"",
            ..PLAIN
        },
    ),
    (
        "glm_xml",
        Marked {
            open: "<arg_key>",
            middle: "</arg_key>\n<arg_value>",
            close: "</arg_value>",
            name_end: "</arg_key>",
            ..PLAIN
        },
    ),
    (
        "cohere_xml",
        Marked {
            open: "<cofl:value name=\"",
            middle: "\" type=\"{}\">",
            close: "</cofl:value>",
            string: "raw",
            other: Words::One("json"),
            name_end: "\"",
            name_escapes: &[('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;")],
            parts: Some(Parts { object: "dict", array: "list", open: "<cofl:value type=\"", middle: "{}\">" }),
            ..PLAIN
        },
    ),
    (
        "kimi_k3_xml",
        Marked {
            open: "<|open|>argument key=\"",
            middle: "\" type=\"{}\"<|sep|>",
            close: "<|close|>argument<|sep|>",
            string: "string",
            other: Words::Types,
            name_end: "\"",
            name_escapes: &[('&', "&amp;"), ('"', "&quot;")],
            control: &["<|open|>", "<|sep|>", "<|end_of_msg|>"],
            ..PLAIN
        },
    ),
    ("parameter_xml", Marked { open: "<parameter=", close: "</parameter>", python_words: true, ..PLAIN }),
    (
        "param_xml",
        Marked {
            open: "<param name=\"",
            middle: "\">",
            close: "</param>",
            name_end: "\"",
            python_words: true,
            ..PLAIN
        },
    ),
    (
        "step_xml",
        Marked {
            open: "<steptml:parameter name=\"",
            middle: "\">",
            close: "</steptml:parameter>",
            name_end: "\"",
            ..PLAIN
        },
    ),
    (
        "atem_xml",
        Marked { open: "<atem:parameter name=\"", middle: "\">", close: "</atem:parameter>", name_end: "\"", ..PLAIN },
    ),
    (
        "rfl_xml",
        Marked {
            open: "<rfl:parameter name=\"",
            middle: "\">",
            close: "</rfl:parameter>",
            own_lines: true,
            name_end: "\"",
            ..PLAIN
        },
    ),
    (
        "gigachat_xml",
        Marked {
            open: "<｜GCML｜parameter name=\"",
            middle: "\" string=\"{}\">",
            close: "</｜GCML｜parameter>",
            string: "true",
            other: Words::One("false"),
            name_end: "\"",
            ..PLAIN
        },
    ),
    (
        "ifm_xml",
        Marked {
            open: "<ifm|arg_key>",
            middle: "</ifm|arg_key>\n<ifm|arg_value>",
            close: "</ifm|arg_value>",
            name_end: "</ifm|arg_key>",
            ..PLAIN
        },
    ),
    (
        "hunyuan_xml",
        Marked {
            open: "<arg_key:opensource>",
            middle: "</arg_key:opensource>\n<arg_value:opensource>",
            close: "</arg_value:opensource>",
            name_end: "</arg_key:opensource>",
            ..PLAIN
        },
    ),
];

static NOTATIONS: [Notation; 3] = [
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

impl Style {
    /// The style with this name.
    pub(super) fn named(name: &str) -> Option<Style> {
        if name == "json" {
            return Some(Style::Json);
        }
        let marked = STYLES.iter().find(|(known, _)| *known == name).map(|(_, marked)| Style::Marked(marked));
        marked.or_else(|| NOTATIONS.iter().find(|notation| notation.name == name).map(Style::Literal))
    }

    /// How arguments are written, if not as JSON.
    pub(super) fn arguments(self) -> Option<Arguments> {
        match self {
            Style::Json => None,
            Style::Marked(marked) => Some(Arguments::Marked(marked)),
            Style::Literal(notation) => Some(Arguments::Notated(notation)),
        }
    }

    /// All names, for messages.
    pub(super) fn names() -> String {
        let names = STYLES.iter().map(|(name, _)| *name).chain(NOTATIONS.iter().map(|notation| notation.name));
        let names: Vec<&str> = names.collect();
        format!("json, {}", names.join(", "))
    }
}
