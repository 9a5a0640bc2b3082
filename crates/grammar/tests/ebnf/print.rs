//! Grammars of other notations print as EBNF that reads back.

use stencilm_grammar::{Grammar, JsonSchemaOptions, any_json, from_json_schema, from_regex};

fn check(grammar: &Grammar) -> String {
    let printed = grammar.to_string();
    let again = Grammar::from_ebnf(&printed, "root").unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again.to_string(), printed);
    printed
}

#[test]
fn json() {
    let printed = check(&any_json(&JsonSchemaOptions::default()).unwrap());
    assert!(printed.contains("%object {"), "{printed}");
}

#[test]
fn schemas() {
    let schemas = [
        r##"{"type":"object","properties":{"a b":{"type":"string","maxLength":1000},"é":{"$ref":"#"}},"required":["a b"]}"##,
        r#"{"type":"array","items":{"enum":["x","y",1,null]},"minItems":2,"maxItems":500}"#,
        r#"{"anyOf":[{"type":"string","pattern":"^[a-z]{2,5}$"},{"type":"string","format":"date-time"}]}"#,
        r##"{"$defs":{"t":{"type":"object","properties":{"l":{"$ref":"#/$defs/t"}}}},"$ref":"#/$defs/t"}"##,
        r#"{"type":"integer","minimum":-17,"maximum":123456}"#,
    ];
    for schema in schemas {
        for any_order in [false, true] {
            let options = JsonSchemaOptions { any_order, ..JsonSchemaOptions::default() };
            check(&from_json_schema(schema, &options).unwrap_or_else(|error| panic!("{error}\n{schema}")));
        }
    }
}

#[test]
fn patterns() {
    for pattern in [
        r"\S+( \S+){0,199}",
        r"\p{L}+",
        "(?i)straße",
        r"\bword\b.*",
        "a{1000}b{5,}",
        "[^a-z]*",
        "([ab][cd])+([ab][cd])+",
    ] {
        check(&from_regex(pattern).unwrap_or_else(|error| panic!("{error:?}")));
    }
    assert_eq!(check(&from_regex("[a-z]+é{2}").unwrap()), "root ::= %lexeme([a-z]+ \"é\"{2})\n");
}
