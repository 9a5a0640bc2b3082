//! JSON Schema to grammar, judged by an independent recogniser and an independent validator.

mod cases;
mod drafts;
mod negation;
mod numbers;
mod oracle;
mod random;
mod refusals;
mod suite;
mod tables;
mod validator;

use stencilm_grammar::{Grammar, JsonSchemaOptions, Spelling, from_json_schema};

/// One letter for each option, so that a table row stays one line.
fn options(letters: &str) -> JsonSchemaOptions {
    let mut options = JsonSchemaOptions::default();
    for letter in letters.chars() {
        match letter {
            'c' => options.any_whitespace = false,
            'i' => {
                options.any_whitespace = false;
                options.indent = Some(2);
            }
            'a' => options.spelling = Spelling::Any,
            'o' => options.any_order = true,
            's' => options.strict_mode = true,
            'r' => options.relax = true,
            'd' => options.integers_as_digits = true,
            'n' => options.nullable = true,
            other => panic!("unknown option {other}"),
        }
    }
    options
}

fn grammar(schema: &str, letters: &str) -> Grammar {
    from_json_schema(schema, &options(letters)).unwrap_or_else(|error| panic!("{schema}\n{error}"))
}

/// The texts belong to the schema's grammar, or, after a `!`, do not.
fn check_with(letters: &str, schema: &str, texts: &[&str]) {
    let grammar = grammar(schema, letters);
    for text in texts {
        let (text, expected) = text.strip_prefix('!').map_or((*text, true), |text| (text, false));
        assert_eq!(oracle::accepts(&grammar, text), expected, "{text}\nunder {schema} with options {letters:?}");
    }
}

fn check(schema: &str, texts: &[&str]) {
    check_with("", schema, texts);
}
