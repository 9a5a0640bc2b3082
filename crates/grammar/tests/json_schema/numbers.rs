//! Numbers: divisors, and every spelling of bounded numbers and of given ones.

use super::{check, check_with, grammar, options, oracle};
use stencilm_grammar::from_json_schema;

#[test]
fn multiples() {
    check(r#"{"type":"number","multipleOf":0.01}"#, &["1", "-1.25", "0.10", "0.100", "!0.001", "!1e2", "0", "-0"]);
    check(r#"{"multipleOf":7}"#, &["7", "-14.0", "!8", "\"text\"", "[]", "98", "!7.5"]);
    check(
        r#"{"type":"integer","multipleOf":2.5,"minimum":1,"maximum":20}"#,
        &["5", "10", "15.0", "20", "!2.5", "!0", "!25"],
    );
    check(
        r#"{"multipleOf":1e-8,"maximum":0.00000002}"#,
        &["0.00000001", "0.00000002", "!0.00000003", "!0.000000001", "-5"],
    );
    check(r#"{"allOf":[{"multipleOf":4},{"multipleOf":6}],"type":"number"}"#, &["12", "0", "!4", "!6", "-24"]);
    check(r#"{"type":"integer","multipleOf":0.123456789}"#, &["123456789", "!1"]);
    check(r#"{"multipleOf":97,"exclusiveMinimum":97,"exclusiveMaximum":291}"#, &["194", "!97", "!291", "null"]);
    check(r#"{"enum":[1,2,3,4.0,"x"],"multipleOf":2}"#, &["2", "4", "!1", "!3", "\"x\""]);
    check_with(
        "a",
        r#"{"type":"integer","multipleOf":0.5}"#,
        &[&format!("1{}", "0".repeat(308)), "1e308", "!0.5", "5e-0"],
    );
}

#[test]
fn every_spelling() {
    check_with(
        "a",
        r#"{"type":"integer"}"#,
        &["1e2", "100.0", "1000e-1", "!1e-1", "!1.5", "15e-1e", "-0.0E+7"]
            .map(|t| if t == "15e-1e" { "!15e-1" } else { t }),
    );
    check_with("a", r#"{"minimum":1,"maximum":2}"#, &["1", "0.001e3", "2e0", "!3", "!20e0", "150e-2", "20e-1"]);
    check_with("a", r#"{"const":1}"#, &["1", "1.0", "1e0", "10e-1", "0.01e2", "!1e1", "!-1"]);
    check_with(
        "a",
        r#"{"enum":[0,1e2,-2.5,12345678901234567890123]}"#,
        &[
            "0",
            "-0e9",
            "100",
            "1E2",
            "-25e-1",
            "12345678901234567890123",
            "1.2345678901234567890123e22",
            "!12345678901234567890124",
            "!2.5",
        ],
    );
    check_with("a", r#"{"const":{"a":[1e400]}}"#, &[r#"{"a":[1e400]}"#, r#"{"a":[10e399]}"#, r#"!{"a":[1e401]}"#]);
    // Draft 4 goes by how an integer is written.
    let draft4 = r#"{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","minimum":3}"#;
    check_with("a", draft4, &["3", "10", "!3.0", "!1e2", "!2"]);
}

#[test]
fn equal_numbers_are_one_value() {
    check(r#"{"const":1}"#, &["1", "1.0", "!1.5"]);
    check(r#"{"enum":[1.0],"const":10e-1}"#, &["1", "1.00", "!2"]);
    check(r#"{"const":-0}"#, &["0", "-0", "0.0", "!1"]);
    check(
        r#"{"const":123456789012345678901234567890.5}"#,
        &["123456789012345678901234567890.5", "!123456789012345678901234567890"],
    );
}

#[test]
fn what_has_no_number_says_why() {
    for (schema, message) in [
        (r#"{"type":"number","multipleOf":7,"minimum":1,"maximum":6}"#, "no multiple of 7 (in #) lies between 1 and 6"),
        (
            r#"{"type":"integer","allOf":[{"multipleOf":0.4}],"exclusiveMinimum":0,"maximum":1}"#,
            "no integer that is a multiple of 0.4 (in #/allOf/0) lies between 0 and 1",
        ),
        (r#"{"multipleOf":0}"#, "multipleOf is 0; it must be a number above 0"),
        (r#"{"multipleOf":0.1234567890123456789}"#, "need more than 18 digits"),
    ] {
        for letters in ["", "a"] {
            let error = from_json_schema(schema, &options(letters)).unwrap_err().to_string();
            assert!(error.contains(message), "{schema}: {error}");
        }
    }
    assert!(oracle::accepts(
        &grammar(r#"{"type":["number","null"],"multipleOf":7,"minimum":1,"maximum":6}"#, "a"),
        "null"
    ));
}

#[test]
fn digits_are_no_other_verdict() {
    let texts = ["\"a\"", "1.5", "!1", "!1.0", "!1.50e1"];
    for schema in [
        r#"{"not":{"type":"integer"}}"#,
        r#"{"oneOf":[{"type":"integer"},{"type":["number","string"]}]}"#,
        r#"{"if":{"type":"integer"},"then":false}"#,
        r#"{"type":["number","string"],"not":{"type":"integer","minimum":-7}}"#,
    ] {
        for letters in ["", "d"] {
            check_with(letters, schema, &texts);
        }
    }
    check_with("d", r#"{"type":"integer"}"#, &["1", "!1.0", "!1.5"]);
    check_with("d", r#"{"not":{"not":{"type":"integer"}}}"#, &["1", "!1.0", "!1.5"]);
    check_with(
        "d",
        r#"{"anyOf":[{"type":"integer","minimum":5},{"type":"number","maximum":3}]}"#,
        &["2.0", "7", "!7.0"],
    );
    // In draft 4, an integer is what has no point.
    let draft4 = r#"{"$schema":"http://json-schema.org/draft-04/schema#","not":{"type":"integer"}}"#;
    for letters in ["", "d"] {
        check_with(letters, draft4, &["1.0", "1.5", "!1"]);
    }
}
