//! Random Lark texts: rules and terminals with every part of the language, mostly well-formed, now and then damaged.

use stencilm_grammar::{Grammar, LarkOptions, NamedGrammar};

use crate::choices::Choices;
use crate::notations::damage;

const RULES: [&str; 4] = ["start", "r", "s", "t{x}"];
const TERMINALS: [&str; 3] = ["A", "B", "_C"];

/// A random Lark text, as a grammar if it is valid, and as text.
///
/// # Panics
/// If an error has no message, or names a position that the text does not have.
pub fn lark(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    let mut text = text(choices);
    damage(choices, &mut text);
    let other = "start: \"o\" x\nx: /[0-9]/+\nZ: \"z\"";
    let options = LarkOptions { grammars: &[("other", NamedGrammar::Lark(other))], ..LarkOptions::default() };
    let grammar = Grammar::from_lark(&text, &options);
    if let Err(error) = &grammar {
        assert!(!error.message.is_empty(), "an error says something");
        let line = error.place.strip_prefix("line ").and_then(|rest| rest.split(',').next()?.parse::<usize>().ok());
        assert!(line.is_none_or(|line| line <= text.split('\n').count()), "{error} is behind the end of {text:?}");
    }
    (grammar.ok(), format!("lark {text:?}"))
}

fn text(choices: &mut Choices<'_>) -> String {
    let mut text = String::new();
    let parametric = choices.chance(5);
    for rule in RULES {
        if rule != "start" && choices.chance(5) {
            continue;
        }
        let depth = 1 + choices.below(3);
        let modifier = choices.pick(&["", "", "", "?", "!"]);
        let attributes =
            choices.pick(&["", "", "", "", "[capture]", "[lazy]", "[max_chars=4]", "[suffix=\"b\"]", "[stop=/c+/]"]);
        // Only terminals, because most attributes are refused elsewhere.
        let body = if attributes.is_empty() || *attributes == "[capture]" {
            alternatives(choices, depth, rule.starts_with('t'))
        } else {
            terminal(choices, depth)
        };
        let attributes = if rule.starts_with('t') { "" } else { attributes };
        text += &format!("{modifier}{rule}{attributes}: {body}\n");
    }
    for terminal_name in TERMINALS {
        let depth = choices.below(3);
        let priority = choices.pick(&["", "", ".2"]);
        text += &format!("{terminal_name}{priority}: {}\n", terminal(choices, depth));
    }
    if parametric {
        text += "p::_: \"a\" p::incr(_) %if lt(_, 3) | \"b\" %if bit_set(0) | \"c\" %if is_zeros([0:2])\n";
    }
    for (line, often) in [
        ("%ignore \" \"\n", 4),
        ("%ignore /#[a-c]*/\n", 8),
        ("%import common.INT\n", 6),
        ("%import common (LETTER, WS)\n%ignore WS\n", 8),
        ("%import other.x -> y\nz: y\n", 8),
        ("%extend A: \"c\"\n", 12),
        ("%override r: \"r\"\n", 12),
        ("%declare D\n", 16),
        ("// a comment\n", 6),
        ("%llguidance {\"skip_repetition\": \"once\"}\n", 12),
    ] {
        if choices.chance(often) {
            text.insert_str(if choices.chance(2) { 0 } else { text.len() }, line);
        }
    }
    text
}

fn alternatives(choices: &mut Choices<'_>, depth: usize, is_template: bool) -> String {
    let count = 1 + choices.below(3);
    let parts: Vec<String> = (0..count).map(|_| sequence(choices, depth, is_template)).collect();
    parts.join(*choices.pick(&[" | ", "\n  | "]))
}

fn sequence(choices: &mut Choices<'_>, depth: usize, is_template: bool) -> String {
    let count = 1 + choices.below(3);
    let parts: Vec<String> = (0..count).map(|_| piece(choices, depth, is_template)).collect();
    let alias = if depth > 0 && choices.chance(12) { " -> alias" } else { "" };
    parts.join(" ") + alias
}

fn piece(choices: &mut Choices<'_>, depth: usize, is_template: bool) -> String {
    let inner = |choices: &mut Choices<'_>| alternatives(choices, depth.saturating_sub(1), is_template);
    match choices.below(if depth == 0 { 10 } else { 16 }) {
        0..=2 => leaf(choices),
        3 | 4 => (*choices.pick(&TERMINALS)).to_owned(),
        5 => (*choices.pick(&["r", "s", "start"])).to_owned(),
        6 if is_template => "x".to_owned(),
        6 => format!("t{{{}}}", choices.pick(&["A", "r", "\"b\"", "t{B}"])),
        7 => (*choices.pick(&["<[1-3]>", "<[^2]>", "<|x|>", "@other", "INT", "y"])).to_owned(),
        8 => (*choices.pick(&["%json {\"enum\": [1, \"a\"]}", "%regex {\"substring_chars\": \"abca\"}"])).to_owned(),
        9 => (*choices.pick(&["p::0", "p::1", "%lark { start: \"n\" a? \n a: \"m\" }"])).to_owned(),
        10 | 11 => format!("({}){}", inner(choices), count(choices)),
        12 => format!("[{}]", inner(choices)),
        _ => leaf(choices) + &count(choices),
    }
}

fn count(choices: &mut Choices<'_>) -> String {
    const COUNTS: [&str; 10] = ["", "?", "*", "+", " ~ 2", " ~ 0..3", "{2}", "{1,3}", "{,2}", "{2,}"];
    (*choices.pick(&COUNTS)).to_owned()
}

fn terminal(choices: &mut Choices<'_>, depth: usize) -> String {
    if depth == 0 {
        return leaf(choices);
    }
    let first = terminal(choices, depth - 1);
    match choices.below(8) {
        0 => format!("{first} | {}", terminal(choices, depth - 1)),
        1 => format!("({first}){}", count(choices)),
        2 => format!("({first}) & ({})", terminal(choices, depth - 1)),
        3 => format!("~({first}) & /[a-c]{{0,3}}/"),
        4 => format!("{first} {}", choices.pick(&TERMINALS)),
        _ => format!("{first} {}", leaf(choices)),
    }
}

fn leaf(choices: &mut Choices<'_>) -> String {
    const LEAVES: [&str; 18] = [
        "\"a\"",
        "\"b\"",
        "\"ab\"",
        "\"C\"i",
        "\"\\n\"",
        "\"\"",
        "\"a\"..\"c\"",
        "/[a-c]/",
        "/[a-c]+/",
        "/a.*?b/",
        "/(?i:k)x?/",
        "/[^b]/s",
        "/a(?=b)/",
        "/a(?!b)/",
        "/(?<!a)b/",
        "/\\w\\/\\d/",
        "/b{1,40}/",
        "/é|日/",
    ];
    (*choices.pick(&LEAVES)).to_owned()
}
