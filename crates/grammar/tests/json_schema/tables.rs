//! Schema, texts that belong, texts that do not (after a `!`).

use stencilm_grammar::{JsonSchemaOptions, from_json_schema};

use crate::{check, check_with, grammar, options};

#[test]
fn any_value() {
    let texts = [
        "null",
        "true",
        "0",
        "-1.5e+30",
        "\"a\\u0000\"",
        "[]",
        "{}",
        "[ 1 ,\n[{}] ]",
        r#"{"a":{"a":[null]}, "b" : 1}"#,
        "!",
        "! 1",
        "!1 ",
        "!nul",
        "![1,]",
        "!{\"a\":1,}",
        "!{\"a\":1,\"a\":2}",
        r#"!{"a":1,"\u0061":2}"#,
        "!01",
        "!1.",
        "![1 2]",
        "!{a:1}",
        "!\"\u{1}\"",
        "!'a'",
    ];
    for schema in ["true", "{}", r#"{"title": "anything", "x-unknown": 3}"#] {
        check(schema, &texts);
    }
}

#[test]
fn types() {
    check(r#"{"type":"null"}"#, &["null", "!0", "!\"\"", "!false"]);
    check(r#"{"type":"boolean"}"#, &["true", "false", "!0", "!\"true\"", "!True"]);
    check(r#"{"type":"integer"}"#, &["0", "-0", "12", "1.0", "-7.00", "!1.5", "!1e3", "!01", "!\"1\"", "!1.", "!-"]);
    check(r#"{"type":"number"}"#, &["0", "1.5", "1e3", "-1.25E-7", "!\"1\"", "!.5", "!+1", "!1e"]);
    check(r#"{"type":["string","null"]}"#, &["null", "\"x\"", "!0", "![]"]);
    check(r#"{"type":["integer","number"]}"#, &["1.5", "1e3", "!\"\""]);
    check(r#"{"type":"array"}"#, &["[]", "[1,\"a\",[{}]]", "!{}", "!1"]);
    check(r#"{"type":"object"}"#, &["{}", r#"{"a":1}"#, "![]"]);
}

#[test]
fn numbers() {
    check(
        r#"{"type":"integer","minimum":7,"maximum":12}"#,
        &["7", "12", "9.0", "10", "!6", "!13", "!7.5", "!-8", "!1e1"],
    );
    check(
        r#"{"type":"number","exclusiveMaximum":1.5}"#,
        &["1.49", "-100", "1.4999", "0", "!1.5", "!1.50", "!2", "!1e0"],
    );
    check(
        r#"{"type":"number","exclusiveMinimum":0,"maximum":1}"#,
        &["0.001", "1", "1.000", "!0", "!-0", "!0.0", "!1.001"],
    );
    check(r#"{"minimum":3}"#, &["3", "\"a\"", "null", "[1]", "!2", "!-3"]);
    check(r#"{"type":"integer","maximum":-3}"#, &["-3", "-4", "-100.0", "!-2", "!3", "!0"]);
    check(r#"{"type":"integer","minimum":-2,"exclusiveMaximum":1}"#, &["-2", "-1", "0", "-0", "!1", "!-3", "!0.5"]);
    let big = r#"{"type":"integer","minimum":10000000000000000000000000000000000000000,"maximum":1e41}"#;
    let (inside, below) = ("10000000000000000000000000000000000000001", "!9999999999999999999999999999999999999999");
    check(
        big,
        &[inside, below, "100000000000000000000000000000000000000000", "!100000000000000000000000000000000000000001"],
    );
}

#[test]
fn strings() {
    check(r#"{"type":"string"}"#, &[r#""""#, r#""\ud83d\ude00""#, r#""é\/""#, r#"!"\ud83d""#, "!\"", "!\"\t\""]);
    let two = r#"{"type":"string","minLength":1,"maxLength":2}"#;
    check(two, &[r#""a""#, r#""😀😀""#, r#""\ud83d\ude00\n""#, r#"!"""#, r#"!"abc""#, r#"!"\ud83d\ude00ab""#]);
    check(r#"{"minLength":3}"#, &["12", "\"abc\"", "!\"ab\""]);
    check(r#"{"type":"string","maxLength":1000000000,"minLength":1}"#, &["\"a\"", "!\"\""]);
    check(r#"{"type":"string","pattern":"^a+$"}"#, &["\"aa\"", "!\"\"", "!\"ab\"", r#"!"\u0061""#]);
    check(
        r#"{"type":"string","pattern":"a.c"}"#,
        &["\"xabcx\"", "\"aéc\"", r#""a\u00e9c""#, r#""a\"c""#, r#"!"a\nc""#, "!\"ac\""],
    );
    check(r#"{"type":"string","pattern":"b","maxLength":2}"#, &["\"b\"", "\"ab\"", "!\"abc\"", "!\"a\""]);
    let class = r#"{"type":"string","pattern":"^[é-ü'a-z😀]{1,100}$","minLength":2,"maxLength":3}"#;
    check(class, &["\"aé\"", "\"😀'ü\"", "\"\\u00e9\\ud83d\\ude00a\"", "!\"é\"", "!\"aéaé\"", "!\"A'\"", "!\"\""]);
    assert!(!grammar(class, "").to_ebnf().contains('&'), "one counter, and no product of two");
    check(
        r#"{"type":"string","pattern":"^(?:éé|c){1,9}$","minLength":2,"maxLength":3}"#,
        &["\"éé\"", "\"céé\"", "\"ccc\"", "!\"éééé\"", "!\"cccc\"", "!\"c\""],
    );
    check(
        r#"{"type":"string","pattern":"^(?:é?b){2,9}$","maxLength":3,"not":{"const":"bb"}}"#,
        &["\"ébb\"", "\"bbb\"", "!\"bb\"", "!\"ébéb\"", "!\"b\""],
    );
    check(r#"{"type":"string","pattern":"^[\"\\\\/]+$"}"#, &[r#""\"""#, r#""\\/""#, r#"!"\/""#, r#"!"\u0022""#]);
    check(r#"{"type":"string","pattern":"^\\n$"}"#, &[r#""\n""#, r#""\u000a""#, r#""\u000A""#, r#"!"n""#]);
    check(
        r#"{"type":"string","pattern":"^\\p{Lu}$"}"#,
        &["\"Ä\"", r#""\u00c4""#, "\"A\"", r#""\ud835\udc00""#, "!\"ä\""],
    );
    check_with("a", r#"{"type":"string","pattern":"^a$"}"#, &["\"a\"", r#""\u0061""#, r#"!"\u0062""#]);
}

#[test]
fn formats() {
    let date = r#"{"type":"string","format":"date"}"#;
    let good = ["\"2024-02-29\"", "\"2000-02-29\"", "\"2023-12-31\"", "\"0000-02-29\""];
    let bad = [
        "!\"2023-02-29\"",
        "!\"1900-02-29\"",
        "!\"2023-13-01\"",
        "!\"2023-04-31\"",
        "!\"2023-1-1\"",
        "!\"20230101\"",
        "!\"2023-00-10\"",
    ];
    check(date, &good);
    check(date, &bad);
    let time = r#"{"type":"string","format":"time"}"#;
    check(
        time,
        &[
            "\"12:30:59Z\"",
            "\"00:00:00.123+05:30\"",
            "\"23:59:60Z\"",
            "\"01:29:60+01:30\"",
            "\"15:59:60.1-08:00\"",
            "\"23:59:60+00:00\"",
            "\"08:30:06z\"",
        ],
    );
    check(
        time,
        &[
            "!\"24:00:00Z\"",
            "!\"12:00:60Z\"",
            "!\"23:59:60+01:00\"",
            "!\"12:00:00\"",
            "!\"12:00Z\"",
            "!\"12:00:00+24:00\"",
            "!\"12:00:00.Z\"",
            "!\"22:59:60Z\"",
        ],
    );
    check(
        r#"{"format":"date-time","type":"string"}"#,
        &[
            "\"2024-02-29T12:00:00Z\"",
            "\"1998-12-31t23:59:60z\"",
            "!\"2024-02-29 12:00:00Z\"",
            "!\"2024-02-30T12:00:00Z\"",
        ],
    );
    check(
        r#"{"format":"uuid","type":"string"}"#,
        &[
            "\"2EB8AA08-aa98-11ea-b4aa-73b441d16380\"",
            "!\"2eb8aa08-aa98-11ea-b4aa-73b441d1638\"",
            "!\"2eb8aa08aa9811eab4aa73b441d16380\"",
        ],
    );
    check(r#"{"format":"ipv4"}"#, &["\"0.255.10.1\"", "3", "!\"256.0.0.1\"", "!\"01.1.1.1\"", "!\"1.1.1\""]);
    check(
        r#"{"format":"email","maxLength":8,"pattern":"^[^.]*$"}"#,
        &["\"a@b\"", "\"abcd@efg\"", "!\"abcd@efgh\"", "!\"a@b.c\"", "3"],
    );
    check(r#"{"format":"hostname"}"#, &[&format!("\"{}\"", &["a".repeat(63).as_str(); 4].join(".")[..253])]);
    check_with("a", r#"{"format":"uri"}"#, &[r#""http:\/\/\u0061.b?c""#, r#""x:""#, r#"!"\/a""#]);
    check(r#"{"format":"x-mine","type":"string"}"#, &["\"anything\"", "!1"]);
}

#[test]
fn values() {
    check(r#"{"const":1}"#, &["1", "1.0", "1.00", "!1.01", "!10", "!\"1\"", "!-1", "!1e0"]);
    check(r#"{"const":0}"#, &["0", "-0", "-0.0", "!1"]);
    check(r#"{"const":1.50e2}"#, &["150", "150.0", "!15"]);
    check(r#"{"const":"a\nb\"é"}"#, &[r#""a\nb\"é""#, r#""a\u000ab\"\u00E9""#, r#"!"a\nb\u0022é""#, "!\"a\nb\\\"é\""]);
    check(r#"{"const":"\u0000/"}"#, &[r#""\u0000/""#, r#"!"\u0000\/""#, "!\"/\""]);
    check(
        r#"{"enum":["a","ab",null,2,true]}"#,
        &["\"a\"", "\"ab\"", "null", "2.0", "true", "!\"b\"", "!false", "!\"abc\"", "!3"],
    );
    check(r#"{"enum":["a",1,"abc"],"type":"string","minLength":2}"#, &["\"abc\"", "!\"a\"", "!1"]);
    check(
        r#"{"enum":[[1,{"b":2,"a":[]}],{}]}"#,
        &["[1, {\"b\":2.0,\"a\":[ ]}]", "{ }", "![]", "![1,{\"a\":[],\"b\":2}]", "![1]"],
    );
    check_with(
        "o",
        r#"{"const":{"b":2,"a":1}}"#,
        &["{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "!{\"a\":1}", "!{\"a\":1,\"b\":2,\"a\":1}"],
    );
    check(r#"{"enum":[{"a":1},{"a":2}],"properties":{"a":{"minimum":2}}}"#, &["{\"a\":2}", "!{\"a\":1}"]);
    check(r#"{"enum":["x1","y2"],"pattern":"^y"}"#, &["\"y2\"", "!\"x1\""]);
}

#[test]
fn arrays() {
    check(r#"{"type":"array","items":{"type":"integer"}}"#, &["[]", "[1]", "[1, 2 ,3]", "![\"a\"]", "![1,]", "![,1]"]);
    check(
        r#"{"type":"array","items":{"type":"null"},"minItems":2,"maxItems":3}"#,
        &["[null,null]", "[null,null,null]", "![]", "![null]", "![null,null,null,null]"],
    );
    check(r#"{"type":"array","maxItems":0}"#, &["[]", "[ \n ]", "![1]"]);
    check(r#"{"type":"array","items":false}"#, &["[]", "![1]"]);
    check(r#"{"items":{"type":"null"}}"#, &["3", "[]", "[null]", "![3]"]);
    check(r#"{"minItems":1}"#, &["3", "[1]", "{}", "![]"]);
    let tuple = r#"{"type":"array","prefixItems":[{"type":"null"},{"type":"boolean"}],"items":{"type":"integer"}}"#;
    check(tuple, &["[]", "[null]", "[null,true]", "[null,true,1,2]", "![true]", "![null,1]", "![null,true,true]"]);
    let bounded = r#"{"type":"array","prefixItems":[{"type":"null"},{"type":"boolean"}],"minItems":1,"maxItems":3}"#;
    check(bounded, &["[null]", "[null,true]", "[null,true,\"x\"]", "![]", "![null,true,1,1]", "![1]"]);
    check(r#"{"type":"array","prefixItems":[true,false]}"#, &["[]", "[1]", "![1,2]"]);
    check(
        r#"{"type":"array","items":[{"type":"null"}],"additionalItems":false}"#,
        &["[]", "[null]", "![null,1]", "![1]"],
    );
    check_with("s", r#"{"type":"array","prefixItems":[{"type":"null"}]}"#, &["[]", "[null]", "![null,1]"]);
    let long = format!(r#"{{"type":"array","prefixItems":[{}]}}"#, vec![r#"{"type":"null"}"#; 40].join(","));
    let text = |count: usize| format!("[{}]", vec!["null"; count].join(","));
    check(&long, &[&text(1), &text(17), &text(39), &text(40), &format!("!{}", text(40).replace("null]", "1]"))]);
}

#[test]
fn objects() {
    let person =
        r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]}"#;
    check(
        person,
        &[
            r#"{"name":"x"}"#,
            r#"{"name":"x","age":3}"#,
            r#"{ "name" : "x" , "other" : [] }"#,
            r#"{"name":"x","age":3,"z":1,"y":2}"#,
            r#"!{}"#,
            r#"!{"age":3}"#,
            r#"!{"age":3,"name":"x"}"#,
            r#"!{"name":3}"#,
            r#"!{"name":"x","z":1,"z":2}"#,
            r#"!{"name":"x","z":1,"\u007a":2}"#,
            r#"!{"name":"x","z":1,"age":2}"#,
            r#"!{"name":"x","\u0061ge":"no"}"#,
            r#"!{"name":"x","name":"y"}"#,
            r#"!{"\u006eame":"x"}"#,
        ],
    );
    check_with("o", person, &[r#"{"age":3,"z":0,"name":"x"}"#, r#"!{"age":3}"#, r#"!{"age":3,"name":"x","age":3}"#]);
    let closed = r#"{"type":"object","properties":{"a":true},"additionalProperties":false}"#;
    check(closed, &["{}", r#"{"a":[1]}"#, r#"!{"b":1}"#, r#"!{"a":1,"b":1}"#]);
    let typed = r#"{"type":"object","properties":{"a":true},"additionalProperties":{"type":"null"},"required":["q"]}"#;
    check(
        typed,
        &[r#"{"q":null}"#, r#"{"a":1,"q":null,"b":null}"#, r#"!{"q":1}"#, r#"!{"q":null,"b":1}"#, r#"!{"a":1}"#],
    );
    check(r#"{"properties":{"a":{"type":"null"}}}"#, &["3", "{}", r#"{"a":null}"#, r#"!{"a":1}"#]);
    check(r#"{"required":["a"]}"#, &["3", r#"{"a":1}"#, "!{}"]);
    let forbidden = r#"{"type":"object","properties":{"a":false,"b":{"type":"null"}}}"#;
    check(forbidden, &["{}", r#"{"c":1}"#, r#"{"b":null}"#, r#"!{"a":1}"#, r#"!{"\u0061":1}"#]);
    check_with("s", r#"{"type":"object","properties":{"a":true}}"#, &["{}", r#"{"a":1}"#, r#"!{"b":1}"#]);
    let odd = r#"{"type":"object","properties":{"a\"\n\u0000😀":{"type":"null"}},"additionalProperties":false}"#;
    check(odd, &[r#"{"a\"\n\u0000😀":null}"#, r#"{"a\"\u000A\u0000\ud83d\uDE00":null}"#, r#"!{"a":null}"#]);
}

#[test]
fn surfaces() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}},"b":{"const":{}}}}"#;
    check_with(
        "c",
        schema,
        &[r#"{"a": [1, 2], "b": {}}"#, "{}", r#"{"a": []}"#, r#"!{"a":[1]}"#, r#"!{"a": [1,2]}"#, "!{ }"],
    );
    let indented = "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}";
    check_with("i", schema, &[indented, "{}", "{\n  \"a\": []\n}", "!{\"a\": []}", "!{\n \"a\": []\n}"]);
    check_with(
        "i",
        schema,
        &["{\n  \"c\": {\n    \"d\": [\n      null\n    ]\n  }\n}", "!{\n  \"c\": {\n  \"d\": 1\n  }\n}"],
    );
    let spaces = |count: usize| format!("[{}1]", " ".repeat(count));
    check(r#"{"items":true}"#, &[&spaces(64), &format!("!{}", spaces(65)), "[\r\n\t1\t]"]);
}

#[test]
fn alternatives() {
    check(r#"{"anyOf":[{"type":"string"},{"type":"integer","minimum":5}]}"#, &["\"a\"", "5", "!4", "!null"]);
    check(r#"{"type":"integer","anyOf":[{"minimum":5},{"maximum":1}]}"#, &["5", "1", "0", "!3", "!\"a\""]);
    let shared = r#"{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],
        "anyOf":[{"properties":{"k":{"const":"a"},"x":{"type":"null"}},"required":["x"]},{"properties":{"k":{"const":"b"}}}]}"#;
    check(
        shared,
        &[r#"{"k":"a","x":null}"#, r#"{"k":"b"}"#, r#"{"k":"b","x":1}"#, r#"!{"k":"a"}"#, r#"!{"k":"c"}"#, "!{}"],
    );
    check(r#"{"anyOf":[{"type":"string","minLength":3,"maxLength":1},{"type":"null"}]}"#, &["null", "!\"ab\""]);
    check(r#"{"anyOf":[false,{"const":1}]}"#, &["1", "!2"]);
    check(r#"{"allOf":[{"minimum":1},{"maximum":3,"type":"integer"}]}"#, &["1", "3", "!0", "!4", "!\"a\""]);
    check(r#"{"allOf":[{"enum":[1,2,"a"]},{"enum":["a",2.0,3]}]}"#, &["2", "\"a\"", "!1", "!3"]);
    check(
        r#"{"allOf":[{"properties":{"a":{"minimum":2}}},{"properties":{"a":{"type":"integer"}},"required":["a"]}],"type":"object"}"#,
        &[r#"{"a":2}"#, r#"!{"a":1}"#, "!{}", r#"!{"a":2.5}"#],
    );
    check(
        r#"{"allOf":[{"properties":{"a":true},"additionalProperties":false},{"properties":{"b":true}}],"type":"object"}"#,
        &["{}", r#"{"a":1}"#, r#"!{"b":1}"#],
    );
    check(
        r#"{"allOf":[{"pattern":"^a"},{"pattern":"b$"}],"type":"string"}"#,
        &["\"ab\"", "\"axb\"", "!\"a\"", "!\"b\""],
    );
    check(
        r#"{"allOf":[{"items":{"minimum":1}},{"prefixItems":[{"type":"null"}]}],"type":"array"}"#,
        &["[]", "[null]", "[null,1]", "[null,\"a\"]", "![null,0]", "![3]"],
    );
    check(r#"{"oneOf":[{"type":"string"},{"type":"null"}]}"#, &["null", "\"\"", "!1"]);
    let kinds = r##"{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},
        {"type":"object","properties":{"k":{"const":"b"},"v":{"$ref":"#"}},"required":["k","v"]}]}"##;
    check(kinds, &[r#"{"k":"a"}"#, r#"{"k":"b","v":{"k":"a"}}"#, r#"!{"k":"b"}"#, r#"!{"k":"c"}"#]);
    check(r#"{"oneOf":[{"type":"integer"},{"minimum":2}]}"#, &["1", "2.5", "\"a\"", "!3", "!1.5"]);
    // A required key that the other branch forbids, by the patterns of its keys here.
    let tree = r##"{"oneOf":[{"type":"object","properties":{"$x":{"type":"string"}},"required":["$x"]},
        {"type":"object","patternProperties":{"^[^$]":{"$ref":"#"}},"additionalProperties":false}]}"##;
    check(
        tree,
        &["{}", r#"{"$x":""}"#, r#"{"a":{"$x":""},"b":{}}"#, r#"!{"$x":1}"#, r#"!{"$y":{}}"#, r#"!{"a":{"$y":""}}"#],
    );
    // The two, and an object of anything at all.
    let printed = from_json_schema(tree, &JsonSchemaOptions::default()).unwrap().to_string();
    assert_eq!(printed.matches("%object").count(), 3, "{printed}");
}

#[test]
fn references() {
    let tree = r##"{"type":"object","properties":{"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#"}}},
        "required":["value"],"additionalProperties":false}"##;
    check(
        tree,
        &[r#"{"value":1}"#, r#"{"value":1,"children":[{"value":2,"children":[]}]}"#, r#"!{"value":1,"children":[{}]}"#],
    );
    check(r##"{"$ref":"#/$defs/a~1b%25","$defs":{"a/b%":{"type":"null"}}}"##, &["null", "!1"]);
    check(
        r##"{"$ref":"#/definitions/a","minLength":2,"definitions":{"a":{"type":"string","maxLength":3}}}"##,
        &["\"ab\"", "\"abc\"", "!\"a\"", "!\"abcd\""],
    );
    check(
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","minLength":2,"definitions":{"a":{"type":"string"}}}"##,
        &["\"a\"", "!1"],
    );
    let list = r##"{"$ref":"#/$defs/list","$defs":{"list":{"anyOf":[{"type":"null"},{"type":"object","properties":{"next":{"$ref":"#/$defs/list"}},"required":["next"],"additionalProperties":false}]}}}"##;
    check(list, &["null", r#"{"next":null}"#, r#"{"next":{"next":null}}"#, "!{}", r#"!{"next":1}"#]);
    let draft4 =
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","minimum":1,"exclusiveMinimum":true}"#;
    check(draft4, &["2", "!1", "!2.0"]);
    // OpenAPI 3.0 writes bounds as draft 4 does, and names no draft.
    let unnamed = r#"{"type":"integer","minimum":1,"exclusiveMinimum":true,"maximum":4,"exclusiveMaximum":false}"#;
    check(unnamed, &["2", "4", "!1", "!5"]);
    check(r#"{"type":"integer","minimum":1,"maximum":4,"exclusiveMaximum":true}"#, &["1", "3", "!4", "!0"]);
    check(r#"{"type":"integer","exclusiveMinimum":true,"maximum":2}"#, &["-5", "2", "!3"]);
}

#[test]
fn nullable_adds_null_to_a_type() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"string","nullable":true},"b":{"type":"integer","nullable":false},
        "c":{"nullable":true,"enum":[1]},"d":{"type":["string","integer"],"nullable":true,"enum":["x",null]},
        "e":{"not":{"type":"string","nullable":true}},"f":{"allOf":[{"type":"string"}],"nullable":true}}}"#;
    check_with(
        "no",
        schema,
        &[
            r#"{"a":null,"d":null}"#,
            r#"{"a":"","b":1,"c":1,"d":"x","e":1,"f":""}"#,
            r#"!{"b":null}"#,
            // Only beside `type`, and never past `enum`.
            r#"!{"c":null}"#,
            r#"!{"f":null}"#,
            r#"!{"a":1}"#,
            r#"!{"e":null}"#,
        ],
    );
    check_with("o", schema, &[r#"{"e":null}"#, r#"!{"a":null}"#, r#"!{"d":null}"#]);
    let report = grammar(schema, "no").report().clone();
    let fates = |findings: &[stencilm_grammar::Finding]| -> Vec<String> {
        let nullable = findings.iter().filter(|finding| finding.keyword == "nullable");
        nullable.map(|finding| finding.place.clone()).collect()
    };
    assert_eq!(
        fates(&report.enforced),
        ["#/properties/a", "#/properties/b", "#/properties/d", "#/properties/e/not"].map(String::from)
    );
    assert_eq!(fates(&report.annotations), ["#/properties/c", "#/properties/f"].map(String::from));
    let error = from_json_schema(r#"{"type":"string","nullable":1}"#, &options("n")).unwrap_err();
    assert!(error.message.contains("nullable is 1; it must be a boolean"), "{error}");
    assert!(from_json_schema(r#"{"type":"string","nullable":1}"#, &options("")).is_ok());
}
