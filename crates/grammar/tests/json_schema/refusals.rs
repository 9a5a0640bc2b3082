//! Schemas that are refused: what kind of error, at which place, with which words.

use stencilm_grammar::{ErrorKind, Node, from_json_schema};
use stencilm_regex::{Deriver, Dfa, Limits, StateId};
use stencilm_support::{Watch, check_time_now};

use crate::{check, check_with, grammar, options, oracle};

#[track_caller]
fn refused_with(letters: &str, schema: &str, kind: ErrorKind, place: &str, words: &[&str]) {
    let error = match from_json_schema(schema, &options(letters)) {
        Ok(_) => panic!("accepted: {schema}"),
        Err(error) => error,
    };
    assert_eq!((error.kind, error.place.as_str()), (kind, place), "{schema}\n{error}");
    for word in words {
        assert!(error.message.contains(word), "{word:?} is missing in: {error}");
    }
}

#[track_caller]
fn refused(schema: &str, kind: ErrorKind, place: &str, words: &[&str]) {
    refused_with("", schema, kind, place, words);
}

#[test]
fn unsupported_keywords_are_named() {
    for (schema, keyword) in [
        (r##"{"$ref":"http://a.example/b"}"##, "$ref"),
        (r#"{"$ref":"file:///etc/passwd"}"#, "$ref"),
        (r#"{"$ref":"other.json"}"#, "$ref"),
        (r#"{"type":"object","patternProperties":{"(a)\\1":true}}"#, "patternProperties"),
    ] {
        refused(schema, ErrorKind::Unsupported, "#", &[keyword]);
        let inside = format!(r#"{{"properties":{{"a/b":{schema}}}}}"#);
        refused(&inside, ErrorKind::Unsupported, "#/properties/a~1b", &[keyword]);
        let relaxed = grammar(schema, "r");
        assert!(relaxed.report().relaxed.iter().any(|finding| finding.keyword == keyword), "{schema}");
        // Definitions nobody uses may say what they like.
        grammar(&format!(r#"{{"$defs":{{"a":{schema}}}}}"#), "");
    }
    let bounded = r#"{"maxItems":4,"not":{"type":"array","uniqueItems":true}}"#;
    refused(bounded, ErrorKind::Unsupported, "#/not", &["uniqueItems", "greatest number"]);
    refused_with("i", r##"{"items":{"$ref":"#"}}"##, ErrorKind::Unsupported, "#/items", &["indent", "recursive"]);
}

/// A string, and an array, that nothing is: to see so takes more than a look at the schema.
const DEAD: [&str; 2] = [r#"{"type":"string","pattern":"^a$","minLength":2}"#, r##"{"$ref":"#/$defs/endless"}"##];

fn with_dead(schema: &str, dead: &str) -> String {
    let schema = schema.replace("DEAD", dead);
    format!(
        r##"{{"$defs":{{"endless":{{"type":"array","minItems":1,"items":{{"$ref":"#/$defs/endless"}}}}}},{schema}}}"##
    )
}

#[test]
fn elements_that_turn_out_to_be_impossible_leave_no_room_to_repeat() {
    let texts = ["[1,1]", "[1,2]", "![1]", "![1,1,1]", r#"![1,1,"a"]"#];
    for dead in DEAD {
        for schema in [
            r#""type":"array","prefixItems":[{},{}],"items":DEAD,"not":{"uniqueItems":true}"#,
            r#""type":"array","prefixItems":[{},{},DEAD],"not":{"uniqueItems":true}"#,
        ] {
            let schema = with_dead(schema, dead);
            refused(&schema, ErrorKind::Unsupported, "#/not", &["uniqueItems: ", "greatest number"]);
            check_with("r", &schema, &texts);
            let relaxed = grammar(&schema, "r").report().relaxed.clone();
            let [finding] = &relaxed[..] else { panic!("{relaxed:?}") };
            assert_eq!((finding.keyword.as_str(), finding.place.as_str()), ("uniqueItems", "#/not"));
        }
        let inside =
            r#""properties":{"a":{"type":"array","prefixItems":[{},{}],"items":DEAD,"not":{"uniqueItems":true}}}"#;
        refused(&with_dead(inside, dead), ErrorKind::Unsupported, "#/properties/a/not", &["uniqueItems: "]);
        // One element cannot be two that are equal: nothing is left of the array, which is refused only where it must be there.
        let one = r#"{"type":"array","prefixItems":[{}],"items":DEAD,"not":{"uniqueItems":true}}"#;
        check(&with_dead(&format!(r#""anyOf":[{one},{{"type":"null"}}]"#), dead), &["null", "![1]", "![1,1]"]);
    }
}

#[test]
fn constraints_that_exclude_each_other_are_found_in_every_spelling_soon() {
    for dead in [r#""pattern":"b\\d","format":"time""#, r#""pattern":"x","format":"date-time""#] {
        let words = "exclude each other";
        refused_with("a", &format!(r#"{{"type":"string",{dead}}}"#), ErrorKind::Unsatisfiable, "#", &[words]);
        let or_null = grammar(&format!(r#"{{"type":["null","string"],{dead}}}"#), "a");
        // Nothing of the string is left, where else every step of a text would search for its end.
        assert!(!or_null.nodes().iter().any(|node| match node {
            Node::Lexeme(lexeme) => or_null.exprs().has_boolean(*lexeme),
            _ => false,
        }));
    }
}

#[test]
fn alternatives_that_no_text_takes_are_not_searched_in_any_spelling() {
    let limits = Limits { max_search: 1_000, ..Limits::default() };
    for pattern in
        ["b|^12:00:00Z$", "^(?:12|.*b):00", "^(?:.*b)?12:00", "^12(?::00.*b|:00:00Z)", "^(?:12:|[^c]*b)*00:00Z"]
    {
        let schema = format!(r#"{{"type":"string","format":"time","pattern":"{pattern}"}}"#);
        let grammar = grammar(&schema, "a");
        let Node::Lexeme(string) = *grammar.node(grammar.root()) else { panic!("a string is one lexeme") };
        let mut deriver = Deriver::over(grammar.exprs().clone(), limits);
        let mut automaton = Dfa::new(&mut deriver, &[string], limits).expect(pattern);
        for text in [r#""12:00:00Z""#, r#""\u0031\u0032:00:00Z""#] {
            // Every byte that may come is asked whether it is live.
            let end = automaton.run(&mut deriver, StateId::START, text.as_bytes()).expect(pattern);
            assert!(!automaton.accepts(end).is_empty(), "{text} under {pattern}");
        }
    }
}

proptest::proptest! {
    /// Strings in any spelling are those in the natural one, each character spelled in any way.
    #[test]
    fn strings_are_the_same_in_every_spelling(
        pattern in proptest::sample::select(vec![
            "b|^a1", "^(?:a|b)1$", "^(?:a1|.*b)*$", "^(?:(?:ab)?1|b(?:a|11))*a", "^(?=a)(?:ab|1)+", "^(?:a?b){1,2}$",
            "^(?:ab|a|(?:b|1a){2})+$", "b$|1(?:a|b)|^$",
        ]),
        beside in proptest::sample::select(vec![
            r#""pattern":"^[a1]*$""#, r#""not":{"pattern":"1"}"#, r#""maxLength":2"#, r#""pattern":"a|^1""#,
            r#""format":"regex","minLength":1"#, r#""pattern":"^a?1?b?$""#,
        ]),
        text in "[ab1]{0,5}",
        escaped in proptest::prelude::any::<u8>(),
    ) {
        let schema = format!(r#"{{"type":["null","string"],"pattern":"{pattern}","allOf":[{{{beside}}}]}}"#);
        let spelled: String = text
            .chars()
            .enumerate()
            .map(|(at, c)| if escaped >> at & 1 == 1 { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() })
            .collect();
        // Where nothing fits, both are refused.
        let decide = |letters, text: &str| {
            let grammar = from_json_schema(&schema, &options(letters));
            grammar.map(|grammar| oracle::accepts(&grammar, &format!("\"{text}\""))).map_err(|error| error.message)
        };
        proptest::prop_assert_eq!(decide("a", &spelled), decide("", &text), "{} under {}", spelled, schema);
    }
}

#[test]
fn what_turns_out_to_be_impossible_has_a_place() {
    for (schema, place, words) in [
        (r#""type":"array","contains":DEAD"#, "#", "contains asks for an element"),
        (
            r#""type":"array","uniqueItems":true,"minItems":1,"items":DEAD"#,
            "#",
            "minItems asks for an element at index 0",
        ),
        (r#""type":"array","prefixItems":[{}],"items":DEAD,"not":{"uniqueItems":true}"#, "#/not", "which takes two"),
        (r#""type":"array","prefixItems":[{}],"items":DEAD,"contains":{},"minContains":2"#, "#", ""),
        (r#""type":"object","minProperties":1,"additionalProperties":DEAD"#, "#", "minProperties asks for 1 members"),
        (
            r#""type":"object","minProperties":1,"patternProperties":{"^a":DEAD},"additionalProperties":false"#,
            "#",
            "minProperties asks for 1 members",
        ),
        (r#""minProperties":2,"type":"object","properties":{"a":DEAD,"b":{}},"additionalProperties":false"#, "#", ""),
        (r#""type":"object","not":{"additionalProperties":{"not":DEAD}}"#, "#", ""),
    ] {
        let string = with_dead(schema, DEAD[0]);
        refused(&string, ErrorKind::Unsatisfiable, place, &[words]);
        // Of what never ends, the place where it goes round is named.
        let endless = with_dead(schema, DEAD[1]);
        let error = from_json_schema(&endless, &options("")).expect_err("nothing is valid");
        assert_eq!(error.kind, ErrorKind::Unsatisfiable, "{endless}: {error}");
        assert!(error.place.starts_with('#'), "{endless}: {error}");
    }
}

#[test]
fn relaxing_only_allows_more() {
    // Whether a key matches is not known, so neither is what `additionalProperties` forbids.
    let schema = r#"{"type":"object","patternProperties":{"(a)\\1":{"type":"null"}},"additionalProperties":false}"#;
    check_with("r", schema, &[r#"{"x":1}"#, r#"{"ab":1}"#, "!3"]);
    let relaxed = grammar(schema, "r").report().relaxed.clone();
    let keywords: Vec<&str> = relaxed.iter().map(|finding| finding.keyword.as_str()).collect();
    assert_eq!(keywords, ["patternProperties"]);
    // What is negated allows less when it loses a keyword, so all of it goes.
    check_with("r", r#"{"not":{"type":"integer","$ref":"http://a.example/b"}}"#, &["1", "2", "\"a\""]);
}

/// A choice may do without the reference or not, by the order in which it is looked at, and what has no part in the choice is
/// valid in any case: nobody can say that nothing is.
#[test]
fn references_that_come_back_through_a_choice_are_not_supported() {
    for (schema, place, valid, other) in [
        (
            r##"{"type":"object","dependentSchemas":{"a":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}}"##,
            "#/dependentSchemas/a/anyOf/1",
            &["{}", r#"{"b":1}"#, r#"{"a":1}"#][..],
            "3",
        ),
        (
            r##"{"type":["object","null"],"properties":{"a":{"$ref":"#/$defs/x"}},
                "$defs":{"x":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/x"}]}}}"##,
            "#/$defs/x/anyOf/1",
            &["{}", "null", r#"{"a":null}"#],
            "3",
        ),
        (r##"{"maxLength":2,"not":{"$ref":"#"}}"##, "#/not", &["3", r#""ab""#], r#""abc""#),
        (
            r##"{"type":"string","if":{"minLength":2},"then":{"$ref":"#","maxLength":3}}"##,
            "#/then",
            &[r#""""#, r#""abc""#],
            r#""abcd""#,
        ),
        (r##"{"oneOf":[{"type":"null"},{"$ref":"#"}],"type":["null","integer"]}"##, "#/oneOf/1", &["null"], "[]"),
    ] {
        refused(schema, ErrorKind::Unsupported, place, &["$ref: the cycle #", "through a choice"]);
        check_with("r", schema, &[valid, &[&format!("!{other}")]].concat());
        let relaxed = grammar(schema, "r").report().relaxed.clone();
        let [finding] = &relaxed[..] else { panic!("{relaxed:?}") };
        assert_eq!((finding.keyword.as_str(), finding.place.as_str()), ("$ref", place));
    }
    // What stands beside the reference is still looked at.
    let beside = r##"{"anyOf":[{"$ref":"#"},{"$ref":"http://a.example/b"}]}"##;
    let relaxed = grammar(beside, "r").report().relaxed.clone();
    let places: Vec<&str> = relaxed.iter().map(|finding| finding.place.as_str()).collect();
    assert_eq!(places, ["#/anyOf/0", "#/anyOf/1"]);
}

#[test]
fn relaxing_leaves_out_what_grows_past_a_limit() {
    let pairs: Vec<String> = (0..25).map(|n| format!(r#""a{n}":["b{n}"]"#)).collect();
    let primes = [2, 3, 5, 7, 11, 13, 17];
    let few: Vec<String> = primes.iter().map(|n| format!(r#"{{"contains":{{"multipleOf":{n}}}}}"#)).collect();
    let closed: Vec<String> =
        (0..7).map(|n| format!(r#"{{"patternProperties":{{"x{n}":{{"minimum":{n}}}}}}}"#)).collect();
    for (schema, keyword, valid, invalid, other) in [
        (
            format!(r#"{{"type":"object","required":["z"],"dependentRequired":{{{}}}}}"#, pairs.join(",")),
            "dependentRequired",
            r#"{"z":1,"a1":1,"b1":1}"#,
            r#"{"z":1,"a1":1}"#,
            r#"{"a1":1,"b1":1}"#,
        ),
        (
            format!(r#"{{"type":"array","maxItems":9,"allOf":[{}]}}"#, few.join(",")),
            "contains",
            "[2,3,5,7,11,13,17]",
            "[2,3,5,7]",
            "[2,3,5]",
        ),
        (
            format!(r#"{{"type":"object","allOf":[{}],"not":{{"maxProperties":0}}}}"#, closed.join(",")),
            "patternProperties",
            r#"{"x1":2}"#,
            r#"{"x6":-1}"#,
            "{}",
        ),
    ] {
        let relaxed = grammar(&schema, "ro");
        let report = relaxed.report();
        let strict = from_json_schema(&schema, &options("o")).unwrap_err();
        assert_eq!(strict.kind, ErrorKind::Limit, "{strict}");
        let finding = report.relaxed.iter().find(|finding| finding.keyword == keyword).expect("a relaxed keyword");
        assert!(finding.place.starts_with('#') && !finding.note.is_empty(), "{finding:?}");
        let is_kept =
            report.enforced.iter().any(|kept| (&kept.keyword, &kept.place) == (&finding.keyword, &finding.place));
        assert!(!is_kept, "{schema}");
        assert!(oracle::accepts(&relaxed, valid), "{schema}");
        assert!(oracle::accepts(&relaxed, invalid), "{schema}");
        assert!(!oracle::accepts(&relaxed, other), "what is no part of it still holds: {schema}");
    }
}

#[test]
fn keywords_of_later_drafts_are_annotations() {
    let schema =
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","const":1,"not":{"const":2},"if":{},"then":false}"#;
    // Nothing fails what has no force.
    refused(
        &schema.replace(r#""not":{"const":2},"#, r#""not":{"const":2},"type":"integer","#),
        ErrorKind::Unsatisfiable,
        "#/not",
        &[],
    );
    let schema = schema.replace(r#""not":{"const":2},"#, "");
    check_with("", &schema, &["1", "2", "{}"]);
    let report = grammar(&schema, "").report().clone();
    assert!(report.annotations.iter().any(|finding| finding.keyword == "const" && finding.note.contains("draft")));
    check_with("", &schema.replace("04", "06").replace(r#","if":{},"then":false"#, ""), &["1", "!2"]);
}

#[test]
fn contradictions_name_both_sides() {
    use ErrorKind::Unsatisfiable;
    for (schema, place, words) in [
        ("false", "#", &["false"][..]),
        (r#"{"enum":[]}"#, "#", &["enum", "empty"]),
        (r#"{"type":"integer","minimum":12,"maximum":7}"#, "#", &["minimum 12 is above maximum 7"]),
        (r#"{"type":"number","exclusiveMinimum":1,"maximum":1}"#, "#", &["exclusiveMinimum 1", "maximum 1"]),
        (r#"{"type":"integer","minimum":1.2,"maximum":1.8}"#, "#", &["no integer", "1.2", "1.8"]),
        (r#"{"type":"string","minLength":5,"maxLength":3}"#, "#", &["minLength 5 is above maxLength 3"]),
        (r#"{"type":"array","minItems":5,"maxItems":3}"#, "#", &["minItems 5 is above maxItems 3"]),
        (r#"{"const":5,"type":"string"}"#, "#", &["5", "string"]),
        (r#"{"enum":[1,2],"minimum":3}"#, "#", &["1", "minimum", "3"]),
        (r#"{"allOf":[{"type":"string"},{"type":"null"}]}"#, "#/allOf/1", &["null", "string", "#/allOf/0"]),
        (r#"{"allOf":[{"const":1},{"const":2}]}"#, "#/allOf/1", &["#/allOf/0"]),
        (
            r#"{"type":"object","required":["a"],"additionalProperties":false}"#,
            "#",
            &["required", "\"a\"", "#/additionalProperties", "false"],
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":false},"required":["b"]}},"required":["a"]}"#,
            "#",
            &["required", "\"b\"", "#/properties/a/properties/b"],
        ),
        (r#"{"type":"array","items":false,"minItems":1}"#, "#", &["minItems", "#/items"]),
        (r#"{"type":"string","pattern":"^a{5}$","maxLength":3}"#, "#", &["pattern", "length"]),
        (r##"{"$ref":"#"}"##, "#", &["$ref", "cycle"]),
        (
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}"##,
            "#/$defs/a",
            &["cycle", "#/$defs/b"],
        ),
        (
            r##"{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}"##,
            "#",
            &["required", "\"a\"", "without an end"],
        ),
    ] {
        refused(schema, Unsatisfiable, place, words);
        // In an alternative or an optional property only that part goes.
        if !schema.contains("\"$ref\"") {
            check_with("", &format!(r#"{{"anyOf":[{schema},{{"const":"ok"}}]}}"#), &["\"ok\"", "!\"aaaaa\"", "!9"]);
            let optional = format!(r#"{{"type":"object","properties":{{"p":{schema}}}}}"#);
            check_with("", &optional, &["{}", "{\"q\":1}", "!{\"p\":5}", "!{\"p\":\"aaaaa\"}"]);
        }
    }
}

#[test]
fn malformed_schemas() {
    for (schema, place, words) in [
        ("", "line 1, column 1", &["ends"][..]),
        ("{", "line 1, column 2", &["key"]),
        ("{\"a\":1}\n x", "line 2, column 2", &["follows"]),
        ("{\"a\":1,\n\"a\":2}", "line 2, column 1", &["\"a\"", "twice"]),
        ("{\"const\":\"\\ud800\"}", "line 1, column 11", &["surrogate"]),
        ("{\"const\":01}", "line 1, column 12", &["number"]),
        ("3", "#", &["a number"]),
        (r#"{"type":"strin"}"#, "#", &["strin", "string"]),
        (r#"{"properties":{"a":{"minItems":-1}}}"#, "#/properties/a", &["minItems", "-1"]),
        (r#"{"minLength":1.5}"#, "#", &["minLength", "1.5"]),
        (r#"{"required":"a"}"#, "#", &["required", "list"]),
        (r#"{"properties":[]}"#, "#", &["properties"]),
        (r#"{"items":3}"#, "#/items", &["a number"]),
        (r#"{"anyOf":[]}"#, "#", &["anyOf"]),
        (r#"{"multipleOf":0}"#, "#", &["multipleOf"]),
        (r#"{"pattern":"(","type":"string"}"#, "#", &["pattern"]),
        (r##"{"$ref":"#/nowhere"}"##, "#", &["nowhere"]),
        (r##"{"$ref":"#anchor"}"##, "#", &["anchor"]),
        (r##"{"$ref":"#/minimum","minimum":1}"##, "#", &["a number"]),
        (r##"{"$ref":"#/enum/0","enum":[{}]}"##, "#", &["data"]),
    ] {
        refused(schema, ErrorKind::Syntax, place, words);
    }
    refused(r#"{"minimum":1e999999999999}"#, ErrorKind::Limit, "#", &["minimum"]);
    refused(r#"{"const":1e5000}"#, ErrorKind::Limit, "#/const", &["digits"]);
    refused(r#"{"minItems":1e10}"#, ErrorKind::Limit, "#", &["minItems"]);
}

#[test]
fn unique_elements_that_are_too_few_are_counted() {
    for (items, count) in [
        (r#"{"type":"number","minimum":0,"maximum":1,"multipleOf":0.1}"#, 11),
        (r#"{"type":"number","minimum":1e20,"maximum":3e20,"multipleOf":1e20}"#, 3),
        (r#"{"enum":[1,1.0,2.5,"a",null]}"#, 4),
        (r#"{"type":["integer","boolean"],"exclusiveMinimum":-2,"maximum":1}"#, 5),
        (r#"{"type":"string","pattern":"^[ab]{0,2}$"}"#, 7),
        (r#"{"type":"array","maxItems":2,"items":{"enum":[0,1]}}"#, 7),
        (
            r#"{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":3},"b":{"type":"boolean"}},
                "additionalProperties":false}"#,
            12,
        ),
    ] {
        for letters in ["", "a", "o"] {
            let schema = |min| format!(r#"{{"type":"array","uniqueItems":true,"minItems":{min},"items":{items}}}"#);
            grammar(&schema(count), letters);
            let words = ["fewer values than", "minItems"];
            refused_with(letters, &schema(count + 1), ErrorKind::Unsatisfiable, "#", &words);
        }
    }
}

/// Runs work that must not take a second of processor time in an optimised test build on a slow machine, however busy that is.
fn quickly<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (result, in_time) = Watch::new(1_000, None).over(|| {
        let begun = check_time_now();
        let result = work();
        (result, begun.and_then(|()| check_time_now()))
    });
    assert!(in_time.is_ok(), "{what}: {in_time:?}");
    result
}

#[test]
fn hard_schemas_are_cheap() {
    let nested =
        |open: &str, close: &str, depth: usize| format!("{}{}{}", open.repeat(depth), "{}", close.repeat(depth));
    let deep = nested(r#"{"items":"#, "}", 60_000);
    let deep = quickly("60,000 nested items", || from_json_schema(&deep, &options("")).err());
    assert_eq!(deep.map(|error| error.kind), Some(ErrorKind::Limit));
    let properties = nested(r#"{"type":"object","required":["a"],"properties":{"a":"#, "}}", 400);
    quickly("400 nested properties", || grammar(&properties, ""));
    let doubling: Vec<String> = (0..28)
        .map(|level| {
            let next = level + 1;
            format!(r##""d{level}":{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/d{next}"}},"b":{{"$ref":"#/$defs/d{next}"}}}}}}"##)
        })
        .collect();
    let doubling = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d28":{{"type":"null"}}}}}}"##, doubling.join(","));
    quickly("$ref doubling", || grammar(&doubling, ""));
    let doubling: Vec<String> = (0..28)
        .map(|level| {
            let next = level + 1;
            format!(r##""d{level}":{{"minimum":{level},"allOf":[{{"$ref":"#/$defs/d{next}"}},{{"$ref":"#/$defs/d{next}"}}]}}"##)
        })
        .collect();
    let doubling = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d28":{{"type":"null"}}}}}}"##, doubling.join(","));
    quickly("$ref doubling under allOf", || grammar(&doubling, ""));
    let hops: Vec<String> = (0..5_000).map(|hop| format!(r##""d{hop}":{{"$ref":"#/$defs/d{}"}}"##, hop + 1)).collect();
    let hops = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d5000":{{"type":"null"}}}}}}"##, hops.join(","));
    quickly("5,000 hops", || grammar(&hops, ""));
    let names: Vec<String> = (0..20_000).map(|index| format!("\"value number {}\"", index * 7919)).collect();
    let names = format!(r#"{{"enum":[{}]}}"#, names.join(","));
    quickly("enum of 20,000", || grammar(&names, ""));
    let branches: Vec<String> = (0..20_000).map(|index| format!("{{\"const\":\"value number {index}\"}}")).collect();
    let branches = format!(r#"{{"anyOf":[{}]}}"#, branches.join(","));
    quickly("anyOf of 20,000", || grammar(&branches, ""));
    let optional: Vec<String> =
        (0..1_000).map(|index| format!("\"property{index}\":{{\"type\":\"integer\"}}")).collect();
    let optional = format!(r#"{{"type":"object","properties":{{{}}}}}"#, optional.join(","));
    quickly("1,000 properties", || grammar(&optional, ""));
    let overlapping: Vec<String> =
        (0..30).map(|index| format!(r#"{{"properties":{{"p{index}":{{"type":"null"}}}}}}"#)).collect();
    quickly("30 overlapping branches", || grammar(&format!(r#"{{"anyOf":[{}]}}"#, overlapping.join(",")), ""));
    let product = vec![r#"{"anyOf":[{"minLength":1},{"maximum":2},{"minItems":1}]}"#; 14].join(",");
    let product =
        quickly("3^14 alternatives", || from_json_schema(&format!(r#"{{"allOf":[{product}]}}"#), &options("")).err());
    assert_eq!(product.map(|error| error.kind), Some(ErrorKind::Limit));
    quickly("maxItems 1e9", || grammar(r#"{"type":"array","minItems":100000,"maxItems":1000000000}"#, ""));
    quickly("date-time", || grammar(r#"{"type":"string","format":"date-time"}"#, ""));
    let value = nested("[", "]", 900);
    quickly("deep const", || grammar(&format!("{{\"const\":{value}}}"), ""));
}

#[test]
fn reports_follow_the_text() {
    let schema = r#"{"title":"t","type":"object","properties":{"a":{"format":"mine","maxLength":3,"x":1}},"$defs":{"u":{"not":{}}}}"#;
    let grammar = grammar(schema, "");
    let list = |findings: &[stencilm_grammar::Finding]| {
        findings.iter().map(|finding| format!("{} {}", finding.place, finding.keyword)).collect::<Vec<_>>()
    };
    assert_eq!(list(&grammar.report().enforced), ["# type", "# properties", "#/properties/a maxLength"]);
    assert_eq!(
        list(&grammar.report().annotations),
        ["# title", "# $defs", "#/properties/a format", "#/properties/a x"]
    );
}

#[test]
fn keys_that_are_dates_and_times_may_have_a_greatest_length() {
    for (format, key) in [("date-time", "2020-02-29T23:59:58"), ("time", "23:59:58")] {
        for more in [0, 3, 8, 40] {
            // The `Z` is one more, and so is the point.
            let max = key.len() + 1 + if more == 0 { 0 } else { 1 + more };
            let schema = format!(r#"{{"type":"object","propertyNames":{{"format":"{format}","maxLength":{max}}}}}"#);
            let longest = if more == 0 { String::new() } else { format!(".{}", "1".repeat(more)) };
            let longer = format!(".{}", "1".repeat(more + 1));
            let escaped = format!("\\u003{}{}", &key[..1], &key[1..]);
            let texts = [
                format!(r#"{{"{key}{longest}Z":1}}"#),
                format!(r#"{{"{key}Z":1,"{}1Z":2}}"#, &key[..key.len() - 1]),
                format!(r#"!{{"{key}{longer}Z":1}}"#),
                format!(r#"!{{"{key}{longest}":1}}"#),
                format!(r#"{{"{escaped}{longest}Z":1}}"#),
                format!(r#"!{{"{escaped}{longer}Z":1}}"#),
            ];
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            check_with("", &schema, &texts[..4]);
            check_with("a", &schema, &texts);
        }
    }
}
