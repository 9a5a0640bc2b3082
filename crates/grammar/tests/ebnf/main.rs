//! EBNF texts: what they match, how they print, and what is refused.

mod containers;
mod ended;
mod hostile;
mod passes;
mod print;
mod random;
mod recogniser;
mod refusals;
mod saved;
mod syntax;

use stencilm_grammar::Grammar;

/// The grammar of a text whose rules start at `root`.
pub fn grammar(text: &str) -> Grammar {
    Grammar::from_ebnf(text, "root").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Checks what matches and what does not, as read and after printing.
pub fn check(text: &str, inside: &[&str], outside: &[&str]) {
    let read = grammar(text);
    let printed = read.to_string();
    let again = grammar(&printed);
    assert_eq!(again.to_string(), printed, "the print of\n{text}\nis not stable");
    for grammar in [&read, &again] {
        for (texts, expected) in [(inside, true), (outside, false)] {
            for case in texts {
                assert_eq!(recogniser::matches(grammar, case.as_bytes()), expected, "{case:?} in\n{text}\n{printed}");
            }
        }
    }
}
