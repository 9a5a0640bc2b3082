//! Keywords that say what must not be, or what depends on what: schema, texts that belong, texts that do not (after a `!`).

use stencilm_grammar::{ErrorKind, Items, JsonSchemaOptions, Repeats, from_json_schema};

use crate::{check, check_with, grammar, oracle};

#[test]
fn negation_reaches_every_leaf() {
    check(r#"{"not":{"type":"integer"}}"#, &["1.5", "\"a\"", "null", "!1", "!1.0"]);
    check(r#"{"not":{"minimum":3}}"#, &["2.9", "-1", "!3", "!\"a\""]);
    check(r#"{"not":{"enum":[1,"a",null]}}"#, &["2", "\"b\"", "true", "[]", "!1.0", "!\"a\"", "!null", r#"!"\u0061""#]);
    check(
        r#"{"not":{"const":[1,{"a":2}]}}"#,
        &["[]", "[1]", "[1,{}]", "[1,{\"a\":3}]", "[1,{\"a\":2},0]", "![1,{\"a\":2.0}]"],
    );
    check(r#"{"type":"string","not":{"maxLength":2}}"#, &["\"abc\"", "!\"ab\"", "!1"]);
    check(r#"{"type":"string","not":{"pattern":"^a"}}"#, &["\"b\"", "\"\"", "!\"ab\""]);
    check(r#"{"type":"string","not":{"format":"ipv4"}}"#, &["\"1.2.3\"", "!\"1.2.3.4\""]);
    check(r#"{"type":"integer","not":{"multipleOf":3}}"#, &["1", "2", "!3", "!0"]);
    check(r#"{"not":{"items":{"type":"null"}}}"#, &["[1]", "[null,2]", "![]", "![null]", "!1"]);
    check(r#"{"not":{"prefixItems":[{"type":"null"}]}}"#, &["[1]", "![]", "![null,1]"]);
    check(r#"{"not":{"contains":{"type":"null"}}}"#, &["[]", "[1]", "![null]", "!1"]);
    check(r#"{"not":{"required":["a"]}}"#, &["{}", "{\"b\":1}", "!{\"a\":1}", "!1"]);
    check(r#"{"not":{"required":["a"],"properties":{"a":{"type":"null"}}}}"#, &["{}", "{\"a\":1}", "!{\"a\":null}"]);
    check(
        r#"{"not":{"additionalProperties":{"type":"null"}}}"#,
        &["{\"a\":1}", "{\"b\":null,\"a\":1}", "!{}", "!{\"a\":null}"],
    );
    check(r#"{"not":{"patternProperties":{"^a":{"type":"null"}}}}"#, &["{\"ab\":1}", "!{\"b\":1}", "!{\"a\":null}"]);
    check(r#"{"not":{"propertyNames":{"pattern":"^a"}}}"#, &["{\"b\":1}", "!{}", "!{\"ab\":1}"]);
    check(r#"{"not":{"minProperties":2}}"#, &["{}", "{\"a\":1}", "!{\"a\":1,\"b\":2}"]);
    check(r#"{"not":{"not":{"type":"null"}}}"#, &["null", "!1"]);
    check(r#"{"not":{"anyOf":[{"type":"null"},{"minimum":2}]}}"#, &["1", "!null", "!2", "!\"a\""]);
}

#[test]
fn several_members_may_be_the_reasons() {
    let twice = r#"{"allOf":[{"not":{"additionalProperties":{"type":"string"}}},{"not":{"additionalProperties":{"type":"integer"}}}]}"#;
    let together =
        ["{\"a\":null}", "{\"a\":1,\"b\":null,\"c\":2}", "!{}", "!{\"a\":1}", "!{\"a\":\"x\"}", "!{\"a\":1,\"b\":2}"];
    check(twice, &together);
    check(twice, &["{\"a\":1,\"b\":\"x\"}", "{\"a\":\"x\",\"b\":\"x\",\"c\":1}"]);
    let alone = format!("{{\"allOf\":[{twice}],\"maxProperties\":1}}");
    check(&alone, &["{\"a\":null}", "{\"a\":1.5}", "!{\"a\":1}", "!{\"a\":1,\"b\":\"x\"}"]);
    check(
        r#"{"allOf":[{"not":{"patternProperties":{"^a":{"type":"null"}}}},{"not":{"propertyNames":{"pattern":"b$"}}}]}"#,
        &["{\"a\":1}", "{\"ab\":1,\"c\":2}", "!{\"ab\":1}", "!{\"c\":1}", "!{\"a\":null}"],
    );
}

#[test]
fn keys_that_run_out() {
    let nine = r#"{"patternProperties":{"^[a-z]{9}$":{"type":"integer"}},"additionalProperties":false}"#;
    check(
        nine,
        &[
            "{}",
            "{\"abcdefghi\":1,\"abcdefghj\":2}",
            "!{\"abcdefghi\":1,\"abcdefghi\":2}",
            "!{\"abc\":1}",
            "!{\"abcdefghi\":\"\"}",
        ],
    );
    let digits = r#"{"type":"object","patternProperties":{"^[0-9]{4}$":{"type":"integer"}},"additionalProperties":false,"minProperties":MIN}"#;
    check(&digits.replace("MIN", "2"), &["{\"0000\":1,\"0001\":2}", "!{\"0000\":1}"]);
    grammar(&digits.replace("MIN", "10000"), "");
    let error = from_json_schema(&digits.replace("MIN", "10001"), &JsonSchemaOptions::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsatisfiable, "{error}");
    check(
        r#"{"propertyNames":{"minLength":1,"maxLength":2}}"#,
        &["{\"a\":1,\"😀b\":2}", "!{\"\":1}", "!{\"abc\":1}", "[]"],
    );
}

#[test]
fn one_of_many_keys_must_be_there() {
    let codes = "^[1-5](?:[0-9]{2}|XX)$";
    // 505 keys in the pattern, and one beside it.
    let responses = format!(
        r#"{{"type":"object","properties":{{"default":{{"type":"integer"}}}},"patternProperties":{{"{codes}":{{"type":"integer"}}}},
            "additionalProperties":false,"if":{{"patternProperties":{{"{codes}":false}}}},"then":{{"required":["default"]}}}}"#
    );
    let texts = [
        r#"{"200":1}"#,
        r#"{"default":1}"#,
        r#"{"default":1,"4XX":2}"#,
        r#"{"200":1,"201":2}"#,
        "!{}",
        r#"!{"200":"a"}"#,
        r#"!{"600":1}"#,
        r#"!{"default":"a"}"#,
        r#"!{"200":1,"200":2}"#,
    ];
    for letters in ["", "o", "a"] {
        check_with(letters, &responses, &texts);
    }
    check(
        r#"{"patternProperties":{"^[0-9]{3}$":true},"not":{"additionalProperties":false}}"#,
        &["!1", r#"{"000":1}"#, r#"{"a":1}"#, "!{}"],
    );
    // The responses of Swagger 2.0.
    check(
        r#"{"type":"object","minProperties":1,"additionalProperties":false,
            "patternProperties":{"^([0-9]{3})$|^(default)$":{"type":"integer"},"^x-":{}},
            "not":{"type":"object","additionalProperties":false,"patternProperties":{"^x-":{}}}}"#,
        &[r#"{"200":1}"#, r#"{"x-a":"b","default":1}"#, r#"!{"x-a":"b"}"#, "!{}", r#"!{"y":1}"#, r#"!{"200":"a"}"#],
    );
    // Keys that are given one by one.
    let names: Vec<String> = (0..400).map(|name| format!("\"{}{name}\"", ["a", "b"][name % 2])).collect();
    check(
        &format!(
            r#"{{"type":"object","propertyNames":{{"enum":[{}]}},"not":{{"patternProperties":{{"^a":false}}}}}}"#,
            names.join(",")
        ),
        &[r#"{"a0":1}"#, r#"{"b1":1,"a398":1}"#, r#"!{"b1":1}"#, "!{}", r#"!{"a1":1}"#],
    );
    // Properties of which any is one too many.
    let names: Vec<String> = (0..400).map(|name| format!("\"a{name}\":{{}}")).collect();
    check(
        &format!(
            r#"{{"type":"object","properties":{{{}}},"additionalProperties":false,"not":{{"propertyNames":{{"pattern":"b"}}}}}}"#,
            names.join(",")
        ),
        &[r#"{"a0":1}"#, "!{}", r#"!{"b":1}"#],
    );
    check(
        r#"{"propertyNames":{"pattern":"^[ab]$"},"maxProperties":2,"not":{"patternProperties":{"a":false}}}"#,
        &["!7", r#"{"a":1}"#, r#"{"b":1,"a":2}"#, r#"!{"b":1}"#, "!{}", r#"!{"c":1,"a":1}"#],
    );
    // All keys of the pattern are properties.
    check(
        r#"{"properties":{"a":{"type":"null"},"b":{"type":"null"}},"additionalProperties":false,
            "not":{"patternProperties":{"^[ab]$":false}},"type":"object"}"#,
        &[r#"{"a":null}"#, r#"{"a":null,"b":null}"#, "!{}"],
    );
}

#[test]
fn conditions_and_dependencies() {
    let condition = r#"{"if":{"properties":{"k":{"const":"a"}},"required":["k"]},"then":{"required":["v"]},"else":{"required":["w"]}}"#;
    check_with(
        "o",
        condition,
        &["{\"k\":\"a\",\"v\":1}", "{\"w\":1}", "{\"k\":\"b\",\"w\":1}", "3", "!{\"k\":\"a\",\"w\":1}", "!{}"],
    );
    for keyword in ["dependentRequired", "dependencies"] {
        let schema = format!(r#"{{"{keyword}":{{"a":["b","c"]}}}}"#);
        check_with(
            "o",
            &schema,
            &["{}", "{\"b\":1}", "{\"c\":1,\"b\":2,\"a\":3}", "[]", "!{\"a\":1}", "!{\"a\":1,\"b\":2}"],
        );
    }
    let schema = r#"{"dependentSchemas":{"a":{"properties":{"b":{"type":"null"}}}}}"#;
    check_with("o", schema, &["{\"b\":1}", "{\"a\":1}", "{\"a\":1,\"b\":null}", "!{\"a\":1,\"b\":1}"]);
    check(
        r#"{"oneOf":[{"required":["a"]},{"required":["b"]}]}"#,
        &["{\"a\":1}", "{\"b\":1}", "!{}", "!{\"a\":1,\"b\":1}"],
    );
}

#[test]
fn keys_and_counts() {
    let patterns = r#"{"patternProperties":{"^x":{"type":["null","integer"]},"y$":{"type":["null","string"]}},"additionalProperties":false}"#;
    check(
        patterns,
        &["{}", "{\"xa\":1}", "{\"ay\":\"b\"}", "{\"xy\":null}", "!{\"xy\":1}", "!{\"b\":null}", "!{\"xa\":\"b\"}"],
    );
    let known = r#"{"properties":{"xa":{"minimum":2}},"patternProperties":{"^x":{"type":"integer"}}}"#;
    check(known, &["{\"xa\":2}", "{\"xb\":1}", "!{\"xa\":1}", "!{\"xa\":null}"]);
    check(
        r#"{"patternProperties":{"^[ab]$":{"type":"null"}},"additionalProperties":false}"#,
        &["{\"b\":null,\"a\":null}", "!{\"c\":null}"],
    );
    check(r#"{"type":"object","propertyNames":{"enum":["a","b"]}}"#, &["{\"b\":1}", "!{\"c\":1}"]);
    check(
        r#"{"properties":{"z":{"type":"null"},"a":{"type":"null"}},"propertyNames":{"enum":["b","a",3]},"additionalProperties":{"type":"integer"}}"#,
        &["{\"a\":null,\"b\":1}", "{\"b\":1}", "!{\"z\":null}", "!{\"b\":null}", "!{\"b\":1,\"b\":1}"],
    );
    check(
        r#"{"propertyNames":{"enum":["xa","b"]},"patternProperties":{"^x":{"type":"null"}},"additionalProperties":false}"#,
        &["{\"xa\":null}", "{}", "!{\"xa\":1}", "!{\"b\":null}", "!{\"xb\":null}"],
    );
    check(
        r#"{"allOf":[{"propertyNames":{"enum":["a","b","ab"]}},{"propertyNames":{"enum":["ab","c"]}}],"propertyNames":{"anyOf":[{"minLength":2},{"const":"c"}]},"minProperties":1}"#,
        &["{\"ab\":1}", "!{}", "!{\"a\":1}", "!{\"c\":1}"],
    );
    check(
        r#"{"propertyNames":{"enum":["a","b"]},"not":{"additionalProperties":{"type":"null"}}}"#,
        &["{\"b\":1}", "{\"a\":null,\"b\":1}", "!{}", "!{\"a\":null}"],
    );
    let names: Vec<String> = (0..15_000).map(|number| format!("\"k{number}\"")).collect();
    let schema =
        format!(r#"{{"type":"object","propertyNames":{{"enum":[{}]}},"minProperties":15000}}"#, names.join(","));
    grammar(&schema, "");
    let error = from_json_schema(&schema.replace("15000}", "15001}"), &JsonSchemaOptions::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsatisfiable, "{error}");
    check(
        r#"{"minProperties":1,"maxProperties":2,"properties":{"a":true}}"#,
        &["{\"a\":1}", "{\"b\":1,\"c\":2}", "!{}", "!{\"a\":1,\"b\":2,\"c\":3}"],
    );
    check(
        r#"{"contains":{"type":"null"},"minContains":2,"maxContains":3}"#,
        &["[null,1,null]", "![null]", "![null,null,null,null]", "1"],
    );
    check(r#"{"uniqueItems":true}"#, &["[1,2,\"1\"]", "![1,1.0]", "![{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]"]);
    let rest = r#"{"allOf":[{"properties":{"a":true}}],"anyOf":[{"properties":{"b":{"type":"null"}}},{"properties":{"c":{"type":"null"}}}],"unevaluatedProperties":false}"#;
    check(rest, &["{\"a\":1}", "{\"b\":null,\"c\":null}", "{\"a\":1,\"c\":null}", "!{\"b\":1}", "!{\"d\":1}"]);
    check(
        r#"{"allOf":[{"prefixItems":[true]}],"contains":{"type":"null"},"unevaluatedItems":false}"#,
        &["[1,null]", "[null]", "![1]", "![1,null,2]"],
    );
}

#[test]
fn references_and_documents() {
    let documents = vec![(
        "https://example.org/b".to_string(),
        r##"{"$defs":{"n":{"$anchor":"n","type":"null"}},"$ref":"#n"}"##.to_string(),
    )];
    let options = JsonSchemaOptions { documents, ..JsonSchemaOptions::default() };
    for reference in ["https://example.org/b", "b", "b#n", "b#/$defs/n", "/b"] {
        let schema = format!(r#"{{"$id":"https://example.org/a","$ref":"{reference}"}}"#);
        let grammar = from_json_schema(&schema, &options).unwrap_or_else(|error| panic!("{reference}: {error}"));
        assert!(oracle::accepts(&grammar, "null") && !oracle::accepts(&grammar, "1"), "{reference}");
    }
    let error =
        from_json_schema(r#"{"$id":"https://example.org/a","$ref":"c"}"#, &options).expect_err("no such document");
    assert_eq!((error.kind, &*error.place), (ErrorKind::Unsupported, "#"));
    assert!(error.message.contains("documents"), "{error}");
    let tree = r##"{"$id":"https://example.org/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,
        "$defs":{"tree":{"$id":"tree","$dynamicAnchor":"node","properties":{"kids":{"items":{"$dynamicRef":"#node"}}}}}}"##;
    check(tree, &["{\"kids\":[{\"kids\":[]}]}", "!{\"kids\":[{\"kid\":[]}]}", "!{\"a\":1}"]);
    let named = grammar(r##"{"$ref":"#a","$defs":{"x":{"$anchor":"a","type":"null"}}}"##, "");
    assert!(oracle::accepts(&named, "null"));
}

#[test]
fn hard_choices_work_or_name_their_place() {
    let nested = (0..8).fold(r#"{"type":"null"}"#.to_string(), |inner, level| {
        format!(r#"{{"oneOf":[{inner},{{"minimum":{level}}},{{"minLength":{level}}}]}}"#)
    });
    if let Err(error) = from_json_schema(&nested, &JsonSchemaOptions::default()) {
        assert_eq!(error.kind, ErrorKind::Limit, "{error}");
        assert!(error.place.starts_with('#') && error.message.contains("oneOf"), "{error}");
    }
    let kinds: Vec<String> = (0..60).map(|kind| format!(r#"{{"properties":{{"k":{{"const":{kind}}}}}}}"#)).collect();
    check(
        &format!(r#"{{"type":"object","required":["k"],"oneOf":[{}]}}"#, kinds.join(",")),
        &["{\"k\":7}", "!{\"k\":60}", "!{}"],
    );
}

#[test]
fn two_elements_are_equal() {
    // Elements with few values.
    let schema = r#"{"type":"array","items":{"enum":["a",1,null]},"not":{"uniqueItems":true}}"#;
    check(schema, &["[1,1]", "[\"a\",null,\"a\"]", "[1,1.0]", "![]", "![1]", "![1,null]", "![1,\"a\",null]", "![2,2]"]);
    // With more elements than there are values, two are equal.
    check(
        r#"{"type":"array","items":{"type":["boolean","null"]},"minItems":4,"not":{"uniqueItems":true}}"#,
        &["[true,false,null,true]", "![true,true]", "![1,1,1,1]"],
    );
    check(
        r#"{"type":"array","prefixItems":[{"const":7}],"items":{"enum":[7,{"a":[]}]},"maxItems":3,"not":{"uniqueItems":true}}"#,
        &["[7,7]", "[7,{\"a\":[]},{\"a\":[]}]", "[7,{\"a\":[]},7]", "![7,{\"a\":[]}]", "![7]", "![7,7,7,7]"],
    );
    // Given values, at any depth.
    check(r#"{"enum":[[1,1],[1,2],3],"not":{"uniqueItems":true}}"#, &["[1,1]", "![1,2]", "!3"]);
    // What no array can be.
    check(
        r#"{"type":["array","null"],"maxItems":1,"not":{"type":"array","uniqueItems":true}}"#,
        &["null", "![]", "![1]"],
    );
    check(r#"{"uniqueItems":true,"not":{"type":"array","uniqueItems":true}}"#, &["1", "![]", "![1,1]"]);
    // What fails for another type fails already for that.
    check(
        r#"{"type":"array","items":{"oneOf":[{"type":"string","uniqueItems":true},{"type":["string","array"],"minLength":3},{"type":"integer"}]}}"#,
        &["[\"a\",7]", "[[1,1],7]", "![\"abc\"]"],
    );
    check(r#"{"not":{"enum":["a",1],"uniqueItems":true,"minProperties":1}}"#, &["[1,1]", "[1,2]", "{}", "2", "!1"]);
}

#[test]
fn two_elements_of_infinitely_many_values_are_equal() {
    check(
        r#"{"type":"array","not":{"uniqueItems":true}}"#,
        &["[1,1]", "[{},{}]", "[\"a\",2,\"a\"]", "[[1],[1.0]]", "![]", "![1]", "![1,2]", "![[],[1]]"],
    );
    check(
        r#"{"type":"array","items":{"type":"integer"},"not":{"uniqueItems":true}}"#,
        &["[10,10]", "[1,1.0]", "[3,2,2]", "![]", "![0]", "![1,11]", "![1,1.5]", "![\"a\",\"a\"]"],
    );
    check(
        r#"{"items":{"type":"string"},"oneOf":[{"uniqueItems":true},{"type":"array"}]}"#,
        &["[\"a\",\"a\"]", "1", r#"["a","\u0061"]"#, "![\"a\",\"b\"]", "![]"],
    );
    check(
        r#"{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"boolean"},"if":{"uniqueItems":true},"then":false}"#,
        &["[\"\",true,true]", "[\"\",true,false,true]", "![\"\",true]", "![\"\",true,false]", "![true,true]"],
    );
    check(
        r#"{"type":"array","items":{"type":"integer"},"contains":{"minimum":5},"maxContains":1,"not":{"uniqueItems":true}}"#,
        &["[1,1,5]", "[5,1,1]", "![5,5]", "![1,1]", "![1,5]"],
    );
    for schema in [
        r#"{"type":"array","items":{"type":"integer"},"maxItems":4,"not":{"uniqueItems":true}}"#,
        r#"{"type":"array","prefixItems":[{"type":"integer"},{"type":"integer"}],"items":false,"not":{"uniqueItems":true}}"#,
        r#"{"type":"array","items":{"type":"integer"},"contains":true,"maxContains":3,"not":{"uniqueItems":true}}"#,
        r#"{"type":"array","prefixItems":[{"type":"string"},{"const":1}],"items":{"type":"string"},"contains":{"type":"integer"},"maxContains":1,"not":{"uniqueItems":true}}"#,
    ] {
        let error = from_json_schema(schema, &JsonSchemaOptions::default()).expect_err("no grammar has it");
        assert!(error.kind == ErrorKind::Unsupported && error.message.starts_with("uniqueItems"), "{schema}: {error}");
    }
}

#[test]
fn unique_elements_of_few_values_are_counted() {
    let compared = |schema: &str| grammar(schema, "").all_items().iter().any(Items::is_unique);
    for (schema, texts) in [
        (
            r#"{"type":"array","uniqueItems":true,"items":{"enum":["a",1,2,3]},"contains":{"type":"integer"},"minContains":2}"#,
            &["[1,2]", "[\"a\",3,1]", "[1,2,3,\"a\"]", "![]", "![1]", "![1,1.0]", "![1,\"a\"]", "![1,2,2]", "![4,1,2]"]
                [..],
        ),
        (
            r#"{"type":"array","uniqueItems":true,"items":{"enum":["a","b",1,2]},"contains":{"type":"string"},"minContains":2,"maxItems":3}"#,
            &["[\"a\",\"b\"]", "[1,\"b\",\"a\"]", "![1,2,\"a\"]", "![\"a\",\"a\"]", "![\"a\",\"b\",1,2]"],
        ),
        (
            r#"{"type":"array","uniqueItems":true,"items":{"enum":[1,2,3]},"allOf":[{"contains":{"minimum":2},"minContains":2},{"contains":{"maximum":2}}]}"#,
            &["[2,3]", "[3,1,2]", "![3,1]", "![2,2]", "![3,3,1]"],
        ),
        (
            r#"{"type":"array","uniqueItems":true,"prefixItems":[{"enum":[1,2]},{"enum":[2,3]}],"items":{"enum":[3,4]},"minItems":3}"#,
            &["[1,2,3]", "[1,3,4]", "[2,3,4]", "[1,2,4,3]", "![2,2,3]", "![1,3,3]", "![1,2]", "![1,3,4,4]"],
        ),
    ] {
        assert!(!compared(schema), "{schema}");
        check(schema, texts);
    }
    for (schema, texts) in [
        (
            r#"{"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":50},"contains":{"minimum":45},"minContains":2,"maxItems":3}"#,
            &["[45,50]", "[1,46,45]", "![45]", "![45,45.0]", "![1,2,45]", "![51,45,46]", "![1,2,45,46]"][..],
        ),
        (
            r#"{"type":"array","uniqueItems":true,"prefixItems":[{"type":"boolean"},{"type":["boolean","string"]}],"items":{"type":"integer"},"minItems":2}"#,
            &["[true,false]", "[false,\"\",1,2]", "![true]", "![true,true]", "![true,1]", "![true,\"a\",1,1]"],
        ),
        (
            r#"{"type":"array","uniqueItems":true,"items":{"properties":{"a":{"type":"boolean"}},"type":"object","additionalProperties":false},"allOf":[{"contains":{"required":["a"]}},{"contains":{"maxProperties":0},"minContains":0,"maxContains":0}]}"#,
            &[r#"[{"a":true}]"#, r#"[{"a":true},{"a":false}]"#, "![]", "![{}]", r#"![{"a":true},{}]"#],
        ),
        (
            r#"{"type":"array","uniqueItems":true,"items":{"type":"string","pattern":"^[ab]{1,3}$"},"contains":{"maxLength":1},"minContains":2}"#,
            &[r#"["a","b"]"#, r#"["aa","b","a"]"#, r#"!["a"]"#, r#"!["a","a"]"#, r#"!["a","ab"]"#],
        ),
    ] {
        assert!(
            grammar(schema, "").all_items().iter().any(|items| items.repeats == Repeats::Never { counted: true }),
            "{schema}"
        );
        check(schema, texts);
    }
    // Comparing decides what asks for nothing else, or has infinitely many values of each kind.
    assert!(
        grammar(r#"{"type":"array","uniqueItems":true,"contains":{"type":"string"}}"#, "")
            .all_items()
            .iter()
            .all(|items| items.repeats == Repeats::Never { counted: false })
    );
    assert!(compared(r#"{"type":"array","uniqueItems":true,"items":{"enum":["a",1,2,3]}}"#));
    // Fewer values than are asked for.
    for schema in [
        r#"{"type":"array","uniqueItems":true,"items":{"enum":["a",1]},"contains":{"type":"integer"},"minContains":2}"#,
        r#"{"type":"array","uniqueItems":true,"contains":{"enum":[7,7.0]},"minContains":2}"#,
    ] {
        let error = from_json_schema(schema, &JsonSchemaOptions::default()).expect_err("no array has it");
        assert!(
            error.kind == ErrorKind::Unsatisfiable
                && error.message.contains("fewer values than the 2 elements that contains asks for"),
            "{error}"
        );
    }
}
