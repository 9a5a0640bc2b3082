//! Masks within lexemes that may end nearly everywhere, such as a text up to a quote, with so many tokens that those
//! across the end are not stored, and masks of lexemes that are joined with those that follow: they are what the slow
//! twin says.

use std::sync::Arc;

use crate::common::matcher;
use stencilm_engine::{Switch, TokenSet, Vocabulary, naive};
use stencilm_grammar::Grammar;

/// All texts of at most four of these pieces.
fn vocabulary() -> Arc<Vocabulary> {
    let pieces = ["a", "b", "1", "é", "\"", ",", ":", "-", " ", "\n", "<", ">"];
    let mut tokens: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
    let mut from = 0;
    for _ in 1..4 {
        let to = tokens.len();
        for at in from..to {
            tokens.extend(pieces.map(|piece| [&*tokens[at], piece.as_bytes()].concat()));
        }
        from = to;
    }
    let tokens: Vec<Option<Vec<u8>>> = tokens.into_iter().map(Some).collect();
    Arc::new(Vocabulary::new(&tokens, tokens.len(), &[], &[]).unwrap())
}

#[test]
fn tokens_across_the_end_of_a_text_are_those_of_the_slow_twin() {
    assert_equal_to_the_slow_twin();
}

#[test]
fn they_are_where_all_lexemes_are_joined_and_none_is_taken_to_end_seldom() {
    for off in [&[Switch::MaskJoinedOfMany][..], &[Switch::LexemeCrossings, Switch::MaskJoinedOfMany]] {
        Switch::switch_off(off.iter().copied());
        assert_equal_to_the_slow_twin();
    }
    Switch::switch_off([]);
}

fn assert_equal_to_the_slow_twin() {
    let vocabulary = vocabulary();
    for (grammar, texts) in [
        (r#"root ::= text (", " text)*; text ::= "\"" [^"\n]* "\"""#, ["\"", "\"a, 1", "\"a\", \"é"]),
        (r#"root ::= ([^\n]+ "\n")+ "-""#, ["a", "a \nb", "a\n--"]),
        (r#"root ::= item; item ::= "<" [ab]+ ">" ([^<>]+ | item)* "<-" [ab]+ ">""#, ["<a>", "<a> b", "<a><b"]),
        // What follows may begin with a character of the text.
        (r#"root ::= [ab1]* ("a" | "b,") (":" | "-")"#, ["", "ab", "ab,"]),
        // Two texts end at once, and each in its own way.
        (r#"root ::= ([ab ]* ":" | [ab1 ]* ("-" | ": 1")) [1]*"#, ["", "a b", "a b1"]),
        (r#"root ::= [^"]* ("\"" | "\"\"" | "<b>")"#, ["", "a<b", "a\""]),
        // Words after names, and blanks where nearly any text begins.
        (r#"root ::= [ab1]+ (" "* ("a" | "ba" | "-") " "* [ab1]+)*"#, ["a", "a ", "a-"]),
        (
            r#"root ::= ws sum; sum ::= term (("-" | ":" | "a") ws term)*; term ::= [ab1]+ ws | "<" ws sum ">" ws; ws ::= [ \n]*"#,
            ["", "a ", "a1-\n<"],
        ),
        (r#"root ::= "<" root ">" | " "* [^<>]+"#, ["", "<<", "< a"]),
        (r#"root ::= "-" (root " ")* | [^- ]+ | ":" root "," root"#, ["-", "-a", ":"]),
        (
            r#"root ::= (name " "* "," [ \n]*)* name; name ::= [ab]+ ("<" root ">")? | "\"" [^"]* "\"""#,
            ["", "a<", "a<b> , "],
        ),
    ] {
        let grammar = grammar.replace("; ", "\n");
        let parsed = Grammar::from_ebnf(&grammar, "root").unwrap();
        let mut matcher = matcher(parsed, vocabulary.clone());
        for text in texts {
            matcher.reset();
            assert!(matcher.accept_bytes(text.as_bytes()).unwrap(), "{grammar}: {text}");
            let mut mask = TokenSet::empty(vocabulary.vocab_size());
            matcher.fill_mask(mask.words_mut()).unwrap();
            assert!(mask == naive::mask(&matcher).unwrap(), "{grammar} behind {text}");
        }
    }
}
