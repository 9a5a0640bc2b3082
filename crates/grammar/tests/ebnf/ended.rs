//! Reading, joining and writing that are ended in their midst: how often they look at the clock, and what they say then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stencilm_grammar::{
    ErrorKind, Grammar, GrammarError, JsonSchemaOptions, LarkOptions, NamedGrammar, Spelling, StructuralTagOptions,
    SymbolTables, from_json_schema,
};
use stencilm_support::Watch;

use crate::grammar;

/// So many checks at least go by between two looks at the clock, where each is one step.
const STEPS: usize = 32;

/// Runs an operation that is ended at one of its looks at the clock, the first of which is number 0; with how many there were.
fn ended_at<T>(look: usize, operation: impl FnOnce() -> T) -> (T, usize) {
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = looks.clone();
    let ends = move || counted.fetch_add(1, Ordering::Relaxed) >= look;
    let result = Watch::new(u64::MAX, None).giving_way(Arc::new(ends)).over(operation);
    (result, looks.load(Ordering::Relaxed))
}

/// The same where the end is reported at that check alone: whoever ignores it hears of it no second time.
fn ended_once_at<T>(look: usize, operation: impl FnOnce() -> T) -> T {
    let looks = AtomicUsize::new(0);
    let ends = move || looks.fetch_add(1, Ordering::Relaxed) == look;
    Watch::new(u64::MAX, None).giving_way(Arc::new(ends)).over(operation)
}

/// An operation looks at the clock about as often as it takes steps, `at_least` of them, and ends wherever it does with a limit.
fn check<T: std::fmt::Debug>(what: &str, at_least: usize, operation: impl Fn() -> Result<T, GrammarError>) -> T {
    // What is built once for everybody is built now.
    operation().unwrap_or_else(|error| panic!("{what}: {error}"));
    let (result, looks) = ended_at(usize::MAX, &operation);
    assert!(looks >= at_least / STEPS, "{what}: {looks} looks, but {at_least} steps");
    for look in [0, 1, 2, 3, 5, looks / 3, looks / 2, looks.saturating_sub(1)] {
        let (ended, _) = ended_at(look, &operation);
        let kind = ended.as_ref().map_err(|error| error.kind).expect_err(&format!("{what}: look {look} of {looks}"));
        assert_eq!(kind, ErrorKind::Limit, "{what}: look {look} of {looks}: {:?}", ended.err());
    }
    result.expect("nothing ends it")
}

/// A text without much repetition.
fn long_text(len: usize) -> String {
    (0..len).map(|at| char::from(b'a' + ((at * at / 7) % 26) as u8)).collect()
}

fn schema(properties: usize, first: &str) -> String {
    let properties: Vec<String> =
        (0..properties).map(|at| format!(r#""{first}{at}": {{"type": "string", "maxLength": {}}}"#, at + 1)).collect();
    format!(r#"{{"type": "object", "title": "t", "properties": {{{}}}}}"#, properties.join(","))
}

fn of_schema(properties: usize, first: &str) -> Grammar {
    from_json_schema(&schema(properties, first), &JsonSchemaOptions::default()).expect("a schema")
}

#[test]
fn writing_looks_at_the_clock() {
    let grammar = grammar(&format!("root ::= Substring(\"{}\")", long_text(3_000)));
    // It is made of more than three expressions for each character, all of which are looked at in turn.
    let text = check("EBNF", 9_000, || grammar.to_ebnf_in_time());
    assert_eq!(text, grammar.to_ebnf());
    let text = check("JSON", 9_000, || grammar.serialize_json_in_time());
    assert_eq!(text, grammar.serialize_json());
    // There are about two entries for each character, which are read and then made.
    let read = check("saved", 11_000, || Grammar::deserialize_json(&text));
    assert_eq!(read.to_ebnf(), grammar.to_ebnf());
}

/// A saved grammar with these lists.
fn saved(exprs: &str, nodes: &str, begun: &str) -> String {
    format!(
        r#"{{"format":"stencilm-grammar","version":3,"exprs":[{exprs}],"nodes":[{nodes}],"rules":[],"members":[],"items":[],
        "root":0,"report":{{"enforced":[],"annotations":[],"relaxed":[]}},"begun":[{begun}]}}"#
    )
}

#[test]
fn reading_looks_at_the_clock_within_each_list() {
    let many = format!("{}0", "0,".repeat(9_999));
    let byte = r#"{"bytes":[[97,97]]}"#;
    let [bytes, or, begun] = [
        saved(&format!(r#"{{"bytes":[{}[97,97]]}}"#, "[97,97],".repeat(9_999)), r#"{"lexeme":0}"#, ""),
        saved(&format!(r#"{byte},{{"or":[{many}]}}"#), r#"{"lexeme":1}"#, ""),
        saved(byte, r#"{"lexeme":0}"#, &many),
    ];
    for (what, text) in [("ranges", bytes), ("alternatives", or), ("a beginning", begun)] {
        check(what, 10_000, || Grammar::deserialize_json(&text));
    }
}

/// Of a text that cannot be read whole it is still looked for what it is.
#[test]
fn looking_for_the_format_looks_at_the_clock() {
    let long = "x".repeat(1 << 20);
    let entries = "0,".repeat(1 << 19);
    let header = r#""format":"stencilm-grammar","version":3"#;
    for text in [
        format!(r#"{{"other":"{long}"}}"#),
        format!(r#"{{"format":"{long}"}}"#),
        format!(r#"{{"other":[{entries}0],{header}}}"#),
        format!(r#"{{"other":1,{header},"exprs":[{entries}"#),
    ] {
        let read = || Grammar::deserialize_json(&text);
        let (read_whole, looks) = ended_at(usize::MAX, read);
        assert_eq!(read_whole.map_err(|error| error.kind).err(), Some(ErrorKind::Syntax));
        assert!(looks >= 16, "{looks} looks");
        for look in [0, 1, looks / 2, looks - 1] {
            let ended = ended_at(look, read).0.map_err(|error| error.kind);
            assert_eq!(ended.err(), Some(ErrorKind::Limit), "look {look} of {looks}");
        }
    }
}

#[test]
fn reading_looks_at_the_clock_from_its_first_byte_on() {
    let text = schema(2_000, "p");
    // The values of the text and of its keywords, the schemas, and what they are made to.
    check("a schema", 2_000 * 5, || from_json_schema(&text, &JsonSchemaOptions::default()));
    let formats: Vec<String> =
        (0..2_000).map(|at| format!(r#"{{"type": "const_string", "value": "x{at}"}}"#)).collect();
    let tag = format!(r#"{{"format": {{"type": "sequence", "elements": [{}]}}}}"#, formats.join(","));
    check("a structural tag", 2_000 * 4, || Grammar::from_structural_tag(&tag, &StructuralTagOptions::default()));
}

/// Reading ends with a limit at whichever check an end is reported, from then on or once.
fn check_each_look(what: &str, read: impl Fn() -> Result<Grammar, GrammarError>) {
    read().expect(what);
    let (_, looks) = ended_at(usize::MAX, &read);
    for look in 0..looks {
        for (ended, often) in [(ended_at(look, &read).0, "always"), (ended_once_at(look, &read), "once")] {
            let ended = ended.map_err(|error| error.kind);
            assert_eq!(ended.err(), Some(ErrorKind::Limit), "{what}: look {look} of {looks}, {often}");
        }
    }
}

/// Wherever it looks at the clock, reading ends with a limit: also where it reads patterns of its own for keys and elements that differ,
/// and where what takes too long is reported in another way, or relaxed. That it is to end says nothing of what was searched
/// for.
#[test]
fn reading_ends_at_each_look() {
    let options = JsonSchemaOptions { relax: true, ..JsonSchemaOptions::default() };
    let any = JsonSchemaOptions { spelling: Spelling::Any, ..options.clone() };
    let object = |pattern: &str| {
        format!(
            r#"{{"type": "object", "properties": {{"k": {{"type": "string", "pattern": "{pattern}"}}}}, "required": ["k"],
            "patternProperties": {{"^x{pattern}": {{"type": "integer"}}}}}}"#
        )
    };
    let apart = format!(r#"{{"oneOf": [{}, {}]}}"#, object("a{2,30}b"), object("c{3,30}d"));
    for schema in [
        &*apart,
        r#"{"type": "string", "pattern": "^[a-z]{2,40}(x|yz){1,9}$", "maxLength": 50}"#,
        r#"{"type": "array", "uniqueItems": true, "minItems": 3, "items": {"type": ["integer", "boolean"], "minimum": 0, "maximum": 90}}"#,
        r#"{"type": "array", "items": {"enum": ["a", "b"], "pattern": "^[a-c]+$"}, "not": {"uniqueItems": true}}"#,
        r#"{"type": "array", "minItems": 2, "uniqueItems": true}"#,
        r#"{"type": "array", "items": {"type": "string", "maxLength": 0}, "not": {"uniqueItems": true}}"#,
        r#"{"type": "object", "propertyNames": {"maxLength": 2}, "patternProperties": {"^a": {"format": "uuid"}}}"#,
        r#"{"oneOf": [{"type": "integer"}, {"type": "number"}, {"type": "integer"}]}"#,
    ] {
        check_each_look(schema, || from_json_schema(schema, &options));
    }
    let excluded =
        r#"{"type": "string", "pattern": "^(ab|cd|[e-h]{3})$", "allOf": [{"pattern": "^[a-d]+$"}, {"pattern": "b"}]}"#;
    check_each_look(excluded, || from_json_schema(excluded, &any));
}

/// The same of other notations, and of schemas within them.
#[test]
fn reading_other_notations_ends_at_each_look() {
    let ebnf = r#"root ::= %array { unique; rest: [0-9]{1,3}; } %object { others = "\"" [a-z]{1,30} "\"": [0-9]; }"#;
    check_each_look(ebnf, || Grammar::from_ebnf(ebnf, "root"));
    let lark = "start: part \";\" /(?!ab)[a-z]{1,30}/\npart[capture, suffix=/b+c/]: /[a-z ]{1,40}/\n";
    check_each_look(lark, || Grammar::from_lark(lark, &LarkOptions::default()));
    let schema = r#"{"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-z]{1,30}$"}, "b": {"type": "boolean"}}}"#;
    for style in ["qwen_xml", "json"] {
        let tags: Vec<String> = (0..2)
            .map(|at| {
                format!(
                    r#"{{"begin": "<f{at}>", "content": {{"type": "json_schema", "json_schema": {schema}, "style": "{style}"}}, "end": "</f{at}>"}}"#
                )
            })
            .collect();
        let tag =
            format!(r#"{{"format": {{"type": "triggered_tags", "triggers": ["<f"], "tags": [{}]}}}}"#, tags.join(","));
        let read = || Grammar::from_structural_tag(&tag, &StructuralTagOptions::default());
        check_each_look(&tag, read);
    }
}

#[test]
fn reports_of_grammars_that_are_joined_are_worked_out_later() {
    let parts = || [of_schema(300, "a"), of_schema(200, "b")];
    let joined = |parts: &[Grammar; 2]| Grammar::union(&[&parts[0], &parts[1]]);
    let whole = joined(&parts()).expect("nothing ends it");
    let [a, b] = parts();
    assert_eq!(whole.report().enforced, [&*a.report().enforced, &b.report().enforced].concat());
    assert_eq!(whole.report().annotations.len(), 2);
    assert_eq!(whole.clone().report(), whole.report());
    // To read the parts again for their reports takes long.
    let unread = parts();
    let (_, looks) = ended_at(usize::MAX, || joined(&unread).map(|_| ()));
    for look in 0..=looks {
        let parts = parts();
        match ended_at(look, || joined(&parts)).0 {
            Ok(_) => assert_eq!(look, looks),
            Err(error) => assert_eq!(error.kind, ErrorKind::Limit),
        }
    }
    for look in [0, 1, 9] {
        let whole = joined(&parts()).expect("nothing ends it");
        let (report, _) = ended_at(look, || whole.report_in_time().map(|_| ()));
        assert_eq!(report.map_err(|error| error.kind), Err(ErrorKind::Limit));
        // A deadline of the thread is no reason to say nothing.
        assert_eq!(
            ended_at(look, || whole.report().enforced.len()).0,
            a.report().enforced.len() + b.report().enforced.len()
        );
    }
}

#[test]
fn reports_of_named_grammars_are_worked_out_later() {
    let named = || [("a", of_schema(300, "a"))];
    let read = |named: &[(&str, Grammar); 1]| {
        let grammars = [(named[0].0, NamedGrammar::Grammar(&named[0].1))];
        let options = LarkOptions { start: "start", grammars: &grammars, symbols: SymbolTables::NONE };
        Grammar::from_lark("start: @a \"x\" %json {\"maxLength\": 3}", &options)
    };
    let whole = read(&named()).expect("nothing ends it");
    assert_eq!(whole.report().enforced.len(), named()[0].1.report().enforced.len() + 1);
    let unread = named();
    let (_, looks) = ended_at(usize::MAX, || read(&unread).map(|_| ()));
    for look in 0..=looks {
        let named = named();
        if let Err(error) = ended_at(look, || read(&named)).0 {
            assert_eq!(error.kind, ErrorKind::Limit, "{error}");
        }
    }
}
