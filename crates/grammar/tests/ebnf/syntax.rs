//! Every piece of the notation, with what it matches.

use crate::check;

#[test]
fn literals_and_escapes() {
    check(r#"root ::= "abc""#, &["abc"], &["", "ab", "abcd"]);
    check(r#"root ::= 'a"b'"#, &["a\"b"], &["ab"]);
    check(r#"root ::= "\n\t\r\"\\\/\x41\u00e9\u{1F600}\ud83d\ude00\U0001F600""#, &["\n\t\r\"\\/Aé😀😀😀"], &[""]);
    check(r#"root ::= """#, &[""], &["a"]);
}

#[test]
fn classes() {
    check("root ::= [a-cx]", &["a", "b", "c", "x"], &["", "d", "-", "ab"]);
    check("root ::= [^a-c]", &["d", "é", "\n", "😀"], &["a", "c", ""]);
    check(r"root ::= [\]\-\\^a-]", &["]", "-", "\\", "^", "a"], &["b", "["]);
    check("root ::= .", &["a", "\n", "é", "😀"], &["", "aa"]);
    check("root ::= [à-üŁ]", &["é", "Ł"], &["e", "Ń"]);
    check(r"root ::= [\u{10}-\u{10FFFF}]+", &["a😀é"], &["\u{1}"]);
}

#[test]
fn operators() {
    check("root ::= \"a\" | \"b\" \"c\"", &["a", "bc"], &["b", "ac", "abc"]);
    check("root ::= (\"a\" | \"b\") \"c\"", &["ac", "bc"], &["a", "c"]);
    check("root ::= \"ab\"* \"c\"+ \"d\"?", &["c", "ababccd", "abcd"], &["", "abd", "abac"]);
    check("root ::= \"a\"{2} [b]{1,} [c]{,2} \"d\"{0,1}", &["aab", "aabbccd"], &["ab", "aabccc", "aa"]);
    check("root ::= (\"a\"{2}){3}", &["aaaaaa"], &["aaaa", "aaaaa", "aaaaaaa"]);
    check("root ::= | \"a\" |", &["", "a"], &["aa"]);
}

#[test]
fn rules_over_several_lines_with_comments() {
    let text = "# a list\nroot ::= item # first\n  (\",\" item)*\n\n\nitem ::=\n  [0-9]+\n  | \"[\" root \"]\"";
    check(text, &["1", "1,22", "[1,[2]],3"], &["", "1,", "[1", "[]"]);
}

#[test]
fn recursion_of_all_kinds() {
    check("root ::= root \"+\" [0-9] | [0-9]", &["1", "1+2+3"], &["", "+1", "1+"]);
    check("root ::= a\na ::= b \"x\" | \"y\"\nb ::= a | \"z\"", &["y", "zx", "yxx"], &["x", "z"]);
    check("root ::= empty root \"a\" | \"b\"\nempty ::= \"c\"?", &["b", "cba", "baa"], &["a", "cb"]);
    check("root ::= root root | \"a\"", &["a", "aaa"], &["", "b"]);
}

#[test]
fn patterns() {
    check(r"root ::= /[a-z]+\d{2}/", &["ab12"], &["ab1", "12"]);
    check(r"root ::= /a\/b/ | /(?i)x/", &["a/b", "x", "X"], &["a\\/b"]);
}

#[test]
fn terminal_algebra() {
    check("root ::= [a-z]+ & ~(\"if\" | \"else\")", &["i", "iff", "for"], &["if", "else", ""]);
    check("root ::= ~\"a\"", &["", "b", "aa", "é"], &["a"]);
    check("root ::= %lexeme(\"a\" word) word ::= [a-z]+", &["ab"], &["a"]);
    check("root ::= %lazy(.* \"*/\")", &["*/", "a*/"], &["a*/b*/", ""]);
    check("root ::= \"a\" ([bc]* & ~(.* \"cc\" .*)) \"d\"", &["ad", "abcbd"], &["accd"]);
    check("root ::= a & b\na ::= [a-m]+\nb ::= [k-z]+", &["klm"], &["a", "z"]);
}

#[test]
fn bytes() {
    let text = "root ::= %bytes[61-63 FF] %bytes[00-7F]* ";
    check(text, &["a", "bxyz"], &["d", "", "aé"]);
    let grammar = crate::grammar(text);
    assert!(crate::recogniser::matches(&grammar, b"\xffab"));
    check("root ::= %lexeme(%not(\"a\"))", &["", "b", "aa"], &["a"]);
    check(
        "root ::= %number(\">-1 <=21 *7 !*2 plain\") \"x\"",
        &["7x", "7.0x", "21x"],
        &["0x", "14x", "8x", "7e0x", "35x"],
    );
}

#[test]
fn tokens_and_captures() {
    let printed =
        crate::grammar("root ::= <|tool|> <[1-5,9]> <[^7]> %token(\"[INST]\") city@([a-z]+) \"two words\"@(\"x\")");
    let expected =
        "root ::= <|tool|> <[1-5,9]> <[^7]> %token(\"[INST]\") city@(%lexeme([a-z]+)) \"two words\"@(\"x\")\n";
    assert_eq!(printed.to_string(), expected);
    check(expected, &[], &[]);
    let others = crate::grammar("root ::= !<[7]> !<[1-5,9]>* !<|tool|> !</think> !<[^7]>");
    let expected = "root ::= <[^7]> <[^1-5,9]>* %other_tokens(\"<|tool|>\") %other_tokens(\"</think>\") <[7]>\n";
    assert_eq!(others.to_string(), expected);
}

#[test]
fn objects() {
    let text = r#"root ::= %object { member "name": string; optional "age": [0-9]+; others: string; }
        string ::= "\"" [^"\\]* "\"""#;
    let printed = crate::grammar(text).to_string();
    assert_eq!(crate::grammar(&printed).to_string(), printed);
    for piece in ["member \"name\": ", "optional \"age\": ", "taken \"age\" \"name\";", "others = "] {
        assert!(printed.contains(piece), "{piece} in {printed}");
    }
    // A key that is written in other ways too is printed.
    let text = "root ::= %object { member \"é\": \"1\"; member \"b\" = \"b\": \"1\"; }";
    let printed = crate::grammar(text).to_string();
    assert!(printed.contains("member \"é\" = ") && printed.contains("member \"b\" = \"b\""), "{printed}");
    assert_eq!(crate::grammar(&printed).to_string(), printed);
    let text = r#"root ::= %object { order = any; optional "a": "1"; open = "{"; close = "}"; colon = ":"; item = ","; empty = "{}"; }"#;
    let printed = crate::grammar(text).to_string();
    assert!(printed.contains("order = any;"), "{printed}");
    assert_eq!(crate::grammar(&printed).to_string(), printed);
}

#[test]
fn other_roots() {
    let grammar = stencilm_grammar::Grammar::from_ebnf("a ::= \"x\" root\nroot ::= \"y\" a | \"z\"", "a").unwrap();
    assert!(crate::recogniser::matches(&grammar, b"xyxz"));
    assert!(!crate::recogniser::matches(&grammar, b"z"));
    let again = crate::grammar(&grammar.to_string());
    assert!(crate::recogniser::matches(&again, b"xyxz"));
    assert_eq!(again.to_string(), grammar.to_string());
}
