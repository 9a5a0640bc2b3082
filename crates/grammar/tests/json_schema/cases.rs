//! Choices that would be thousands of alternatives if they were multiplied out, and are few by cases.

use std::fmt::Write;

use stencilm_grammar::{ErrorKind, JsonSchemaOptions, from_json_schema};

use crate::{check, check_with, grammar};

/// The texts of so many parts, with a comma between them.
fn joined(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(",")
}

#[test]
fn keys_that_ask_for_a_value_of_another_one() {
    let dependent = joined(24, |n| format!(r#""k{n}":{{"properties":{{"type":{{"enum":["a{}","b"]}}}}}}"#, n % 6));
    let known = joined(24, |n| format!(r#""k{n}":{{"type":"integer"}}"#));
    let schema = format!(
        r#"{{"type":"object","properties":{{"type":{{"type":"string"}},{known}}},"additionalProperties":false,"dependentSchemas":{{{dependent}}}}}"#
    );
    check_with(
        "o",
        &schema,
        &[
            "{}",
            r#"{"k1":1,"k2":2,"k3":3}"#,
            r#"{"k1":1,"type":"a1","k7":7}"#,
            r#"{"type":"b","k1":1,"k2":2}"#,
            r#"{"type":"c"}"#,
            r#"!{"k1":1,"k2":2,"type":"a1"}"#,
            r#"!{"type":"c","k0":0}"#,
            r#"!{"k0":"0"}"#,
        ],
    );
    let either = joined(20, |n| format!(r#""k{n}":["l{n}"]"#));
    let schema = format!(
        r#"{{"dependentRequired":{{{either}}},"allOf":[{{"if":{{"properties":{{"t":{{"const":1}}}},"required":["t"]}},"then":{{"required":["k3"]}}}}]}}"#
    );
    // Without a member that distinguishes them, there are too many combinations, and the place is named.
    let error = from_json_schema(&schema, &JsonSchemaOptions::default()).unwrap_err();
    assert_eq!((error.kind, &*error.place), (ErrorKind::Limit, "#"), "{error}");
}

#[test]
fn conditions_upon_one_member() {
    let conditions = joined(150, |n| {
        format!(
            r#"{{"if":{{"properties":{{"type":{{"const":"t{n}"}}}}}},"then":{{"properties":{{"v":{{"const":{n}}}}}}}}}"#
        )
    });
    let schema = format!(r#"{{"type":"object","required":["type"],"allOf":[{conditions}]}}"#);
    check_with(
        "o",
        &schema,
        &[
            r#"{"type":"t7","v":7}"#,
            r#"{"v":149,"type":"t149"}"#,
            r#"{"type":"other","v":null}"#,
            r#"{"type":"t7"}"#,
            r#"{"type":7,"v":7.5}"#,
            r#"!{"type":"t7","v":8}"#,
            r#"!{"v":7,"type":"t8"}"#,
            r#"!{"v":7}"#,
        ],
    );
    // Without the member, all of the conditions hold at once.
    let schema = format!(r#"{{"allOf":[{conditions}]}}"#);
    check_with("o", &schema, &["{}", "3", r#"{"type":"t7","v":7}"#, r#"!{"v":7}"#, r#"!{"type":"t7","v":8}"#]);
}

#[test]
fn branches_distinguished_by_a_member_that_may_be_missing() {
    let branches = joined(9, |n| {
        format!(
            r#"{{"properties":{{"kind":{{"enum":["k{n}"]}},"name":{{"type":"string"}},"only{n}":{{"type":"integer"}}}},"required":["name"],"additionalProperties":false}}"#
        )
    });
    let schema = format!(r#"{{"type":"object","oneOf":[{branches}]}}"#);
    check_with(
        "o",
        &schema,
        &[
            r#"{"kind":"k3","name":"a","only3":1}"#,
            r#"{"name":"a","only3":1}"#,
            r#"{"kind":"k3","name":"a"}"#,
            // Nine branches hold.
            r#"!{"name":"a"}"#,
            r#"!{"kind":"k3","name":"a","only4":1}"#,
            r#"!{"kind":"k9","name":"a"}"#,
            r#"!{"only3":1}"#,
        ],
    );
    let schema = format!(r#"{{"type":"object","not":{{"anyOf":[{branches}]}}}}"#);
    check_with(
        "o",
        &schema,
        &[
            r#"{"kind":"k9","name":"a"}"#,
            r#"{"kind":"k3","name":"a","only4":1}"#,
            r#"{"kind":"k3"}"#,
            "{}",
            r#"{"name":"a","other":1}"#,
            r#"!{"name":"a"}"#,
            r#"!{"kind":"k3","name":"a","only3":1}"#,
            r#"!{"name":"a","only3":1}"#,
        ],
    );
}

#[test]
fn branches_that_nothing_distinguishes() {
    let branches = joined(7, |n| {
        let own = joined(12, |m| format!(r#""p{n}_{m}":{{"type":"integer"}}"#));
        format!(r#"{{"properties":{{"all":{{"type":"integer"}},{own}}}}}"#)
    });
    // One member only: it must fail all branches but one.
    let schema = format!(r#"{{"type":"object","maxProperties":1,"oneOf":[{branches}]}}"#);
    let error = from_json_schema(&schema, &JsonSchemaOptions::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsatisfiable, "{error}");
    let two = r#"{"type":"object","maxProperties":1,"oneOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"type":"integer"}}}]}"#;
    check(two, &[r#"{"a":"x"}"#, r#"{"b":"x"}"#, "!{}", r#"!{"a":1}"#, r#"!{"c":1}"#]);
}

/// Every key of these formats has a character, so that no key is left for which the pattern does not hold.
#[test]
fn a_pattern_that_all_keys_of_a_format_match() {
    for (format, key) in [("time", "12:30:00Z"), ("date", "2024-02-29"), ("date-time", "2024-02-29T12:30:00.5Z")] {
        for letters in ["a", "ao", "o"] {
            let schema = format!(
                r#"{{"type":"object","propertyNames":{{"format":"{format}","maxLength":40}},"patternProperties":{{".":{{"type":"null"}}}},"additionalProperties":{{"type":"boolean"}}}}"#
            );
            let texts = ["{}".to_owned(), format!(r#"{{"{key}":null}}"#), format!(r#"!{{"{key}":true}}"#)];
            let texts: Vec<&str> = texts.iter().map(String::as_str).chain([r#"!{"x":null}"#]).collect();
            check_with(letters, &schema, &texts);
        }
    }
}

#[test]
fn texts_are_not_multiplied_out() {
    let mut all = String::new();
    for n in 0..20 {
        let comma = if n == 0 { "" } else { "," };
        write!(all, r#"{comma}{{"anyOf":[{{"pattern":"a{n}x"}},{{"pattern":"b{n}x"}},{{"not":{{"pattern":"c"}}}}]}}"#)
            .unwrap();
    }
    let schema = format!(r#"{{"allOf":[{all}],"maxLength":100}}"#);
    let every: String = (0..20).map(|n| format!("{}{n}x", if n % 3 == 0 { 'a' } else { 'b' })).collect();
    check(&schema, &["\"\"", "\"a1\"", "3", &format!("\"c{every}\""), &format!("!\"c{}\"", &every[4..]), "!\"ca0x\""]);
    let typed = r#"{"allOf":[{"anyOf":[{"type":"string","pattern":"^a"},{"type":"null"},{"pattern":"b$"}]},{"anyOf":[{"type":"integer"},{"minLength":2},{"type":"string","maxLength":1}]},{"anyOf":[{"type":["integer","null"]},{"pattern":"^[ab]*$"}]}]}"#;
    check(typed, &["\"a\"", "\"ab\"", "\"b\"", "3", "null", "!\"c\"", "!\"ba\"", "true", "2.5", "[]"]);
}

#[test]
fn few_members_meet_all_that_is_asked() {
    let asked = joined(4, |n| {
        let letter = ["a", "b", "c", "d"][n];
        format!(r#"{{"not":{{"propertyNames":{{"not":{{"pattern":"{letter}"}}}}}}}}"#)
    });
    let schema = format!(
        r#"{{"type":"object","allOf":[{asked}],"required":["da"],"propertyNames":{{"pattern":"^..$"}},"maxProperties":2,"patternProperties":{{"bc":false}}}}"#
    );
    check_with(
        "o",
        &schema,
        &[r#"{"da":1,"cb":2}"#, r#"!{"da":1,"bc":2}"#, r#"!{"da":1}"#, r#"!{"da":1,"bx":1,"cx":1}"#],
    );
}

#[test]
fn what_a_closed_object_names_is_no_key_beyond_it() {
    check_with(
        "o",
        r#"{"not":{"properties":{"b":{"type":"integer"}},"required":["b"],"additionalProperties":false}}"#,
        &[r#"{"b":""}"#, r#"{"b":1,"c":1}"#, "{}", "!3", r#"!{"b":1}"#],
    );
    check_with(
        "o",
        r#"{"type":"object","minProperties":1,"not":{"properties":{"b":true,"c":true},"additionalProperties":false}}"#,
        &[r#"{"d":1}"#, r#"{"b":1,"d":1}"#, r#"!{"b":1}"#, r#"!{"b":1,"c":1}"#],
    );
}

#[test]
fn what_asks_for_itself_has_no_instance() {
    let schema = r##"{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"type":"null"}},"$defs":{"x":{"allOf":[{"$ref":"#/$defs/x"},{"type":"string"}]}}}"##;
    check(schema, &["{}", r#"{"b":null}"#, r#"!{"a":"x"}"#, r#"!{"a":1}"#]);
    let error = from_json_schema(r##"{"$ref":"#/$defs/x","$defs":{"x":{"$ref":"#"}}}"##, &JsonSchemaOptions::default());
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsatisfiable);
    assert!(error.message.contains("cycle"), "{error}");
}

/// Alternatives for the values of a member that differ in nothing else are joined again.
#[test]
fn cases_that_make_no_difference_are_one() {
    let schema = r#"{"type":"object","properties":{"k":{"enum":["a","b","c","d"]}},"allOf":[
        {"anyOf":[{"properties":{"k":{"enum":["a","b"]}}},{"required":["v"]},{"required":["w"]}]},
        {"anyOf":[{"properties":{"k":{"enum":["b","a"]}}},{"required":["v"]},{"required":["w"]}]}]}"#;
    check_with(
        "o",
        schema,
        &[r#"{"k":"a"}"#, r#"{"k":"c","v":1}"#, "{}", r#"{"v":1}"#, r#"!{"k":"c"}"#, r#"!{"k":"e"}"#],
    );
    assert!(grammar(schema, "o").to_string().matches("%object").count() < 12);
}

/// To distinguish the branches, their members are looked into, which are such choices again.
#[test]
fn a_case_within_a_branch_holds_beside_that_of_the_whole() {
    // What fails of the inner `oneOf` is decided by cases of `k`, and so is what is left of the outer one.
    let circle = r#"{"properties":{"k":{"enum":["circle"]},"radius":{"type":"number"}}}"#;
    let closed = circle.replacen('{', r#"{"additionalProperties":false,"#, 1);
    let schema = format!(
        r#"{{"type":"object","oneOf":[{{"properties":{{"k":{{"enum":["square"]}},"side":{{"type":"number"}}}}}},true,{{"oneOf":[{circle},{closed}]}}]}}"#
    );
    check_with(
        "o",
        &schema,
        &[
            r#"!{"k":"square","side":5}"#,
            r#"!{"k":"square"}"#,
            r#"!{"side":5}"#,
            r#"{"k":"square","side":"5"}"#,
            r#"{"k":"circle","radius":1}"#,
            r#"!{"k":"circle","side":1}"#,
            r#"{"k":"line"}"#,
        ],
    );
}

#[test]
fn choices_within_themselves_come_to_an_end() {
    let branches = joined(4, |n| {
        format!(
            r##"{{"type":"object","properties":{{"k":{{"$ref":"#"}},"v":{{"$ref":"#"}},"p{n}":{{"$ref":"#"}}}},"required":["k","v"],"not":{{"required":["p{n}","w"],"properties":{{"k":{{"$ref":"#"}}}}}}}}"##
        )
    });
    let schema = format!(r#"{{"oneOf":[{branches},{{"type":"null"}}]}}"#);
    let _ = from_json_schema(&schema, &JsonSchemaOptions::default());
    let either = joined(3, |n| {
        format!(
            r##"{{"anyOf":[{{"properties":{{"k":{{"$ref":"#"}}}},"required":["k"]}},{{"not":{{"required":["k"],"properties":{{"k":{{"$ref":"#"}},"l{n}":{{"type":"null"}}}}}}}},{{"type":"null"}}]}}"##
        )
    });
    let schema =
        format!(r#"{{"allOf":[{either}],"oneOf":[{{"required":["k"]}},{{"type":"null"}},{{"required":["l1"]}}]}}"#);
    let _ = from_json_schema(&schema, &JsonSchemaOptions::default());
}

#[test]
fn arrays_that_exclude_each_other() {
    let types = ["string", "integer", "boolean", "null", "object", "array"];
    let by_type = joined(6, |n| format!(r#"{{"type":"array","items":{{"type":"{}"}}}}"#, types[n]));
    // The empty array fits all branches.
    let texts = ["[1,2]", "[\"a\"]", "[{}]", "[[],[1]]", "[null]", "![]", "![1,\"a\"]", "!1"];
    check(&format!(r#"{{"oneOf":[{by_type}]}}"#), &texts);
    for count in [3, 7, 20] {
        let by_value =
            joined(count, |n| format!(r#"{{"type":"array","items":{{"enum":["a{n}","b{n}"]}},"maxItems":2}}"#));
        let texts = [r#"["a1","b1"]"#, r#"["b2"]"#, "![]", r#"!["a1","a2"]"#, r#"!["a1","a1","a1"]"#];
        check(&format!(r#"{{"oneOf":[{by_value}]}}"#), &texts);
        let by_member = joined(count, |n| {
            format!(
                r#"{{"items":{{"type":"object","properties":{{"k":{{"const":{n}}}}},"required":["k"]}},"minItems":1}}"#
            )
        });
        let texts = [r#"[{"k":1},{"k":1}]"#, "![]", r#"![{"k":1},{"k":2}]"#, "![{}]"];
        check(&format!(r#"{{"type":"array","oneOf":[{by_member}]}}"#), &texts);
        let by_place = joined(count, |n| format!(r#"{{"prefixItems":[true,{{"const":{n}}}],"minItems":2}}"#));
        check(&format!(r#"{{"type":"array","oneOf":[{by_place}]}}"#), &["[0,1]", "[0,2,3]", "![0,77]", "![0]"]);
        let by_contained = joined(count, |n| format!(r#"{{"contains":{{"const":{n}}}}}"#));
        let texts = ["[0]", "[1,1,\"a\",99]", "![0,1]", "![]", "![99]"];
        check(&format!(r#"{{"type":"array","oneOf":[{by_contained}]}}"#), &texts);
    }
}

#[test]
fn what_is_counted_in_arrays() {
    check(r#"{"type":"array","contains":true,"minContains":2}"#, &["[1,2]", "[1,2,3]", "![1]", "![]"]);
    check(r#"{"type":"array","contains":true,"maxContains":1}"#, &["[1]", "![]", "![1,2]"]);
    check(
        r#"{"type":"array","items":{"type":"integer"},"not":{"items":{"type":"string"}}}"#,
        &["[1]", "[1,2]", "![]", "![1,\"a\"]"],
    );
    check(
        r#"{"type":"array","prefixItems":[true,true],"not":{"prefixItems":[true,true],"items":{"type":"string"}}}"#,
        &["[0,0,1]", "[\"a\",\"a\",\"a\",1]", "![0,0]", "![0,0,\"a\"]"],
    );
    check(
        r#"{"type":"array","items":{"type":["integer","null"]},"allOf":[{"contains":{"type":"integer"},"minContains":1},
            {"contains":{"type":"integer"},"minContains":0,"maxContains":2},{"not":{"contains":{"const":7}}}]}"#,
        &["[1]", "[1,null,2]", "![null]", "![1,2,3]", "![7]", "![]"],
    );
    // More kinds than can be counted together: named by its keyword, and left out where that is asked for.
    let many = joined(16, |n| format!(r#"{{"contains":{{"multipleOf":{}}}}}"#, n + 2));
    let schema = format!(r#"{{"type":"array","items":{{"type":"integer"}},"allOf":[{many}]}}"#);
    let error = from_json_schema(&schema, &JsonSchemaOptions::default()).unwrap_err();
    assert!(error.kind == ErrorKind::Limit && error.message.starts_with("contains: "), "{error}");
    let relaxed = grammar(&schema, "r");
    assert!(relaxed.report().relaxed.iter().all(|finding| finding.keyword == "contains"));
    check_with("r", &schema, &["[720720,17]", "!1", "![\"a\"]"]);
}
