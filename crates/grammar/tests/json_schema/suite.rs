//! The public JSON-Schema-Test-Suite, or any folder of files in its form: what is accepted must be decided as it says.
//!
//! Not part of the repository. `JSON_SCHEMA_TEST_SUITE=folder cargo test --test json_schema suite -- --ignored --nocapture`
//! prints how many groups are decided and how many are refused, by keyword. With JSON_SCHEMA_COMPILE_ONLY, only schemas are
//! compiled and no texts decided.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use stencilm_grammar::{ErrorKind, from_json_schema};

use crate::{options, oracle};

#[derive(Default)]
struct Tally {
    groups: usize,
    tests: usize,
    refused: BTreeMap<String, usize>,
    wrong: Vec<String>,
    times: Vec<Duration>,
}

#[test]
#[ignore = "needs JSON_SCHEMA_TEST_SUITE, a folder of *.json test groups"]
fn suite_is_decided_or_refused() {
    let folder = std::env::var("JSON_SCHEMA_TEST_SUITE").expect("JSON_SCHEMA_TEST_SUITE names a folder");
    let mut tally = Tally::default();
    visit(Path::new(&folder), &mut tally);
    println!("{} groups and {} tests decided; refused: {:#?}", tally.groups, tally.tests, tally.refused);
    tally.times.sort();
    let quantile = |per_mille: usize| tally.times[(tally.times.len() - 1) * per_mille / 1000];
    println!("schema to grammar: p50 {:?}, p99 {:?}, max {:?}", quantile(500), quantile(990), quantile(1000));
    assert!(tally.wrong.is_empty(), "{} wrong:\n{}", tally.wrong.len(), tally.wrong.join("\n"));
}

fn visit(path: &Path, tally: &mut Tally) {
    if path.is_dir() {
        let mut inner: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        inner.sort();
        inner.iter().for_each(|inner| visit(inner, tally));
        return;
    }
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    if name.ends_with(".jsonl") {
        for line in text.lines() {
            group(&name, &serde_json::from_str(line).unwrap(), tally);
        }
    } else if name.ends_with(".json") {
        let groups: Vec<Value> = serde_json::from_str(&text).unwrap();
        groups.iter().for_each(|value| group(&name, value, tally));
    }
}

/// The documents in the folder `remotes` beside the one of the tests, under the address that the tests give them.
fn documents() -> &'static [(String, String)] {
    static DOCUMENTS: OnceLock<Vec<(String, String)>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        let folder = std::env::var("JSON_SCHEMA_TEST_SUITE").expect("JSON_SCHEMA_TEST_SUITE names a folder");
        let remotes = Path::new(&folder).join("../remotes");
        let mut documents = Vec::new();
        for inner in ["", "draft2020-12", "nested", "baseUriChange"] {
            collect(&remotes, &remotes.join(inner), !inner.is_empty(), &mut documents);
        }
        documents
    })
}

fn collect(root: &Path, at: &Path, deeply: bool, documents: &mut Vec<(String, String)>) {
    let Ok(entries) = std::fs::read_dir(at) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() && deeply {
            collect(root, &path, true, documents);
        } else if path.is_file() {
            let relative = path.strip_prefix(root).unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            documents.push((format!("http://localhost:1234/{relative}"), text));
        }
    }
}

fn group(file: &str, group: &Value, tally: &mut Tally) {
    let title = group.get("description").or(group.get("id")).and_then(Value::as_str).unwrap_or("").to_string();
    let schema = group["schema"].to_string();
    let letters = std::env::var("JSON_SCHEMA_OPTIONS").unwrap_or("o".into());
    let tests = group["tests"].as_array().unwrap();
    let mut options = options(&letters);
    options.documents = documents().to_vec();
    let start = Instant::now();
    let result = from_json_schema(&schema, &options);
    let took = start.elapsed();
    tally.times.push(took);
    if took.as_millis() > 500 {
        println!("{file}: {title}: {took:?}");
    }
    let grammar = match result {
        Ok(grammar) => grammar,
        Err(error) if error.kind == ErrorKind::Unsatisfiable => {
            for test in tests.iter().filter(|test| test["valid"] == true) {
                tally.wrong.push(format!("{file}: {title}: {error}, but {} is valid", test["data"]));
            }
            return;
        }
        Err(error) => {
            let keyword = error.message.split([':', ' ']).next().unwrap_or("").to_string();
            if error.kind != ErrorKind::Unsupported {
                println!("{file}: {title}: {error}");
            }
            *tally.refused.entry(format!("{:?} {keyword}", error.kind)).or_default() += 1;
            return;
        }
    };
    tally.groups += 1;
    let is_measured_only = std::env::var("JSON_SCHEMA_COMPILE_ONLY").is_ok();
    for test in tests.iter().filter(|_| !is_measured_only) {
        tally.tests += 1;
        let text = test["data"].to_string();
        let expected = test["valid"] == true;
        if oracle::accepts(&grammar, &text) != expected {
            let title = format!("{title}: {}", test["description"].as_str().unwrap_or(""));
            tally.wrong.push(format!("{file}: {title}\n  {schema}\n  {text} valid: {expected}"));
        }
    }
}
