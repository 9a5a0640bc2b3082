//! What each pass makes of a text, as it prints.

use crate::grammar;

fn check(text: &str, printed: &str) {
    assert_eq!(grammar(text).to_string(), printed);
}

#[test]
fn adjacent_lexemes_join() {
    check("root ::= \"a\" [b-c]* \"d\"", "root ::= %lexeme(\"a\" [bc]* \"d\")\n");
    check("root ::= \"a\" \"b\" x\nx ::= \"c\" y\ny ::= \"d\"?", "root ::= %lexeme(\"abc\" \"d\"?)\n");
    check("root ::= \"a\" <[1]> \"b\" \"c\"", "root ::= \"a\" <[1]> \"bc\"\n");
    check("root ::= \"a\" \"b\" c@(\"d\" \"e\")", "root ::= \"ab\" c@(\"de\")\n");
}

#[test]
fn choices_and_counters_join() {
    check("root ::= \"a\" | [b-d] | \"xy\"", "root ::= %lexeme([a-d] | \"xy\")\n");
    check("root ::= (\"a\" | \"bc\"){2,700}", "root ::= %lexeme((\"a\" | \"bc\"){2,700})\n");
    check("root ::= \"a\" | <[1]> | \"b\" | \"a\"", "root ::= [ab] | <[1]>\n");
}

#[test]
fn nothing_joins_after_a_long_run_of_nearly_any_character() {
    check(
        "root ::= \"q\" [^\"]* \"q\" \"r\"",
        "root ::= %lexeme(\"q\" [^\\\"]*) \"qr\"\n".replace("\\\"", "\"").as_str(),
    );
}

#[test]
fn rules_that_rename_go() {
    check("root ::= a\na ::= b\nb ::= \"x\" a \"y\" | <[1]>", "root ::= \"x\" root \"y\" | <[1]>\n");
    check("root ::= a a\na ::= <[1]>\nunused ::= \"x\"", "root ::= <[1]> <[1]>\n");
}

#[test]
fn large_shared_parts_get_a_rule() {
    let part = "(<[1]> a@(\"x\") <[2]> <[3]> | <[4]> b@(\"y\"))";
    let printed = grammar(&format!("root ::= {part} \"-\" {part}")).to_string();
    let expected = "root ::= part_1 \"-\" part_1\npart_1 ::= <[1]> a@(\"x\") <[2]> <[3]> | <[4]> b@(\"y\")\n";
    assert_eq!(printed, expected);
    check(expected, expected);
}

#[test]
fn a_rule_that_has_the_part_as_its_body_is_used() {
    let part = "<[1]> a@(\"x\") <[2]> <[3]>";
    check(
        &format!("root ::= {part} | \"(\" r \")\"\nr ::= {part} | r r"),
        &format!("root ::= part_1 | \"(\" r \")\"\npart_1 ::= {part}\nr ::= part_1 | r r\n"),
    );
}

#[test]
fn conditions_that_what_follows_keeps_are_gone() {
    let plain = "root ::= %lexeme([ab]+ (\",\" [ab]+)* \".\")\n";
    check("root ::= name (\",\" name)* \".\"\nname ::= [ab]+ (= \",\" | \".\")", plain);
    check("root ::= name (\",\" name)* \".\"\nname ::= [ab]+ (= [^c])", plain);
    // One of two that what follows cannot tell apart stands for both.
    check("root ::= (\"a\" (= \"x\" | \"y\") | \"b\" (= \"x\" | \"z\")) [xw]", "root ::= %lexeme([ab] \"x\")\n");
}
