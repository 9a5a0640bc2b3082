//! Every draft has the keywords that its specification lists; what only other drafts have is an annotation there.

use crate::oracle;
use stencilm_grammar::{ErrorKind, JsonSchemaOptions, from_json_schema};

const DRAFTS: [&str; 5] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Keywords with a text that they exclude, and the drafts that have them, by place in the list, first and last.
const KEYWORDS: [(&str, &str, (usize, usize)); 22] = [
    (r#""const":1"#, "2", (1, 4)),
    (r#""contains":{"type":"null"}"#, "[]", (1, 4)),
    (r#""propertyNames":{"maxLength":1}"#, r#"{"ab":1}"#, (1, 4)),
    (r#""if":{"type":"string"},"then":{"maxLength":1}"#, "\"ab\"", (2, 4)),
    (r#""if":{"type":"string"},"else":{"maximum":1}"#, "2", (2, 4)),
    (r#""contains":{"type":"null"},"minContains":2"#, "[null]", (3, 4)),
    (r#""contains":{"type":"null"},"maxContains":1"#, "[null,null]", (3, 4)),
    (r#""dependentRequired":{"a":["b"]}"#, r#"{"a":1}"#, (3, 4)),
    (r#""dependentSchemas":{"a":{"required":["b"]}}"#, r#"{"a":1}"#, (3, 4)),
    (r#""properties":{"a":true},"unevaluatedProperties":false"#, r#"{"b":1}"#, (3, 4)),
    (r#""unevaluatedItems":false"#, "[1]", (3, 4)),
    (r#""prefixItems":[{"type":"null"}]"#, "[1]", (4, 4)),
    (r##""$recursiveRef":"#/$defs/a","$defs":{"a":{"type":"null"}}"##, "1", (3, 3)),
    (r##""$dynamicRef":"#/$defs/a","$defs":{"a":{"type":"null"}}"##, "1", (4, 4)),
    (r#""items":[true],"additionalItems":false"#, "[1,2]", (0, 3)),
    (r#""items":[true],"additionalItems":{"type":"null"}"#, "[1,2]", (0, 3)),
    (r#""dependencies":{"a":["b"]}"#, r#"{"a":1}"#, (0, 4)),
    (r#""dependencies":{"a":{"required":["b"]}}"#, r#"{"a":1}"#, (0, 4)),
    (r#""not":{"type":"null"}"#, "null", (0, 4)),
    (r#""uniqueItems":true"#, "[1,1]", (0, 4)),
    (r#""patternProperties":{"a":{"type":"null"}}"#, r#"{"a":1}"#, (0, 4)),
    (r#""enum":[1]"#, "2", (0, 4)),
];

#[test]
fn drafts_have_their_own_keywords() {
    for (keywords, excluded, (first, last)) in KEYWORDS {
        for (place, draft) in DRAFTS.iter().enumerate() {
            let schema = format!(r#"{{"$schema":"{draft}",{keywords}}}"#);
            let grammar = match from_json_schema(&schema, &JsonSchemaOptions::default()) {
                Ok(grammar) => grammar,
                // A list in `items` is malformed in 2020-12.
                Err(error) => {
                    assert!(error.kind == ErrorKind::Syntax && keywords.contains("items"), "{schema}: {error}");
                    continue;
                }
            };
            let is_enforced = (first..=last).contains(&place);
            assert_eq!(oracle::accepts(&grammar, excluded), !is_enforced, "{excluded} under {schema}");
            let noted = |finding: &stencilm_grammar::Finding| {
                keywords.contains(&*finding.keyword) && finding.note.contains("draft")
            };
            let is_noted = grammar.report().annotations.iter().any(noted);
            assert!(is_enforced || is_noted, "{schema}");
        }
    }
}

#[test]
fn identifiers_mean_something_in_the_drafts_that_have_them() {
    for (identifier, reference, (first, last)) in [
        (r#""id":"http://a.example/x""#, "http://a.example/x", (0, 0)),
        (r#""$id":"http://a.example/x""#, "http://a.example/x", (1, 4)),
        (r#""$anchor":"x""#, "#x", (3, 4)),
        (r#""$dynamicAnchor":"x""#, "#x", (4, 4)),
    ] {
        for (place, draft) in DRAFTS.iter().enumerate() {
            let schema = format!(
                r#"{{"$schema":"{draft}","properties":{{"a":{{"$ref":"{reference}"}}}},
                    "definitions":{{"x":{{{identifier},"type":"null"}}}}}}"#
            );
            let found = from_json_schema(&schema, &JsonSchemaOptions::default());
            assert_eq!(found.is_ok(), (first..=last).contains(&place), "{schema}");
        }
    }
}

#[test]
fn metaschemas_are_known() {
    for draft in DRAFTS {
        // Plainly, with a fragment, and with the other scheme.
        let other = match draft.strip_prefix("https") {
            Some(rest) => format!("http{rest}"),
            None => draft.replacen("http", "https", 1),
        };
        for uri in [draft, draft.trim_end_matches('#'), &*other] {
            let schema = format!(r#"{{"type":"object","properties":{{"schema":{{"$ref":"{uri}"}}}}}}"#);
            let options = JsonSchemaOptions { any_order: true, ..JsonSchemaOptions::default() };
            let grammar = from_json_schema(&schema, &options).unwrap_or_else(|error| panic!("{schema}: {error}"));
            for (text, expected) in [
                (r#"{"schema":{"type":"integer","minimum":3}}"#, true),
                (r#"{"schema":{"properties":{"a":{"type":["string","null"]}},"required":["a"]}}"#, true),
                (r#"{"schema":{"type":"int"}}"#, false),
                (r#"{"schema":{"properties":{"a":{"items":{"minLength":-1}}}}}"#, false),
                (r#"{"schema":3}"#, false),
            ] {
                assert_eq!(oracle::accepts(&grammar, text), expected, "{text} under {schema}");
            }
        }
    }
    for (reference, valid, invalid) in [
        ("https://json-schema.org/draft/2020-12/meta/validation", r#"{"minLength":1}"#, r#"{"minLength":-1}"#),
        ("https://json-schema.org/draft/2019-09/meta/applicator#/$defs/schemaArray", "[{}]", "[]"),
        ("http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger", "1", "-1"),
    ] {
        let schema = format!(r#"{{"$ref":"{reference}"}}"#);
        let grammar = from_json_schema(&schema, &JsonSchemaOptions::default()).unwrap();
        assert!(oracle::accepts(&grammar, valid) && !oracle::accepts(&grammar, invalid), "{schema}");
    }
    // What the caller supplies counts, and so does what a schema says of itself.
    let own = |documents: Vec<(String, String)>, schema: &str| {
        let options = JsonSchemaOptions { documents, ..JsonSchemaOptions::default() };
        from_json_schema(schema, &options).unwrap()
    };
    let document = (DRAFTS[3].to_string(), r#"{"type":"null"}"#.to_string());
    let grammar = own(vec![document], &format!(r#"{{"$ref":"{}"}}"#, DRAFTS[3]));
    assert!(oracle::accepts(&grammar, "null") && !oracle::accepts(&grammar, "{}"));
    let itself =
        format!(r##"{{"$id":"{0}","$defs":{{"a":{{"type":"null"}}}},"items":{{"$ref":"{0}#/$defs/a"}}}}"##, DRAFTS[4]);
    assert!(oracle::accepts(&own(Vec::new(), &itself), "[null]"));
    // The limit on size is for what the caller hands in.
    let schema = format!(r#"{{"$ref":"{}"}}"#, DRAFTS[2]);
    let options = JsonSchemaOptions { max_bytes: schema.len(), ..JsonSchemaOptions::default() };
    assert!(from_json_schema(&schema, &options).is_ok());
}
