//! What the canonical masks of any JSON text need, built once, when the vocabulary learns how its tokenizer makes
//! tokens.
//!
//! Strings, numbers and what is between them are the same in nearly all grammars, and so are the few cursors of the
//! tokenizer that their texts reach. A walk along a few texts computes all of it.

use std::sync::Arc;

use stencilm_grammar::{JsonSchemaOptions, from_json_schema};

use crate::canonical::encoder::source::EncodingSource;
use crate::canonical::encoding::Encoding;
use crate::compiled::CompiledGrammar;
use crate::error::MatcherError;
use crate::matcher::{GrammarMatcher, MatcherOptions};
use crate::shared::Vocabulary;
use crate::switches::Switch;
use crate::warm_up::masks::{SCHEMA, TEXT};

/// Any JSON, with texts that reach the points where a string or a number may end or continue: after letters, digits,
/// whitespace and signs.
const ANY: &str = "true";
const TEXTS: [&str; 3] = [
    r#"{"name": "Mary Ann-Lee's 2nd book: No. 12, 345 (new)", "count": 1234, "rate": -0.25, "list": ["a", "b1", "US-en"], "more": {"x": null, "on": true, "e": 1.5e-7}, "at": "2024-05-06T07:08:09Z", "url": "https://example.com/path_to/page?id=1", "text": "one\ntwo  ", "empty": "", "none": []}"#,
    r#"{"name":"Z\u00fcrich é","numbers":[0,12,3.5,-7],"nested":[{"a":1},{"b":[{"c":{}}]}],"flag":false,"mail":"j.d@example.org"}"#,
    "{\n  \"items\": [\n    {\n      \"id\": 1,\n      \"label\": \"A\"\n    },\n    \"last\"\n  ]\n}",
];

/// Members of one type each, as schemas have them: how a value may begin depends on its type.
const TYPED: &str = r#"{
    "properties": {
        "s": {"type": "string"},
        "i": {"type": "integer"},
        "n": {"type": "number"},
        "b": {"type": "boolean"},
        "o": {"type": "object", "properties": {"k": {"type": "string"}}, "additionalProperties": false},
        "l": {"type": "array", "items": {"type": "string"}},
        "d": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        "f": {"type": "array", "items": {"type": "number"}},
        "r": {"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "integer"}}}},
        "sn": {"type": ["string", "null"]},
        "in": {"type": ["integer", "null"]},
        "nn": {"type": ["number", "null"]},
        "bn": {"type": ["boolean", "null"]},
        "z": {"type": "null"},
        "on": {"type": ["object", "null"]},
        "ln": {"type": ["array", "null"]},
        "c": {"const": 1}
    },
    "required": ["s"],
    "additionalProperties": false
}"#;
const TYPED_TEXTS: [&str; 2] = [
    r#"{"s": "a", "i": 12, "n": -1.5, "b": true, "o": {"k": "v"}, "l": ["a", "b"], "d": [1, 20], "f": [0.5, 3], "r": [{"k": 1}, {"k": 2}], "sn": null, "in": 3, "nn": 1e5, "bn": false, "z": null, "on": {}, "ln": [], "c": 1}"#,
    r#"{"s":"","i":-7,"n":1234567,"b":false,"o":{},"l":[],"d":[1,2],"f":[],"r":[],"sn":"x","in":null,"nn":null,"bn":null,"z":null,"on":null,"ln":null,"c":1}"#,
];

impl Vocabulary {
    /// Learns how its tokenizer makes tokens of text, for [`Vocabulary::encode`] and for canonical masks. If something
    /// was learned before, it stays.
    ///
    /// # Errors
    /// A sentence that says what is not supported.
    pub fn learn_encoding(self: &Arc<Vocabulary>, source: &EncodingSource) -> Result<(), String> {
        if self.encoding().is_none() {
            self.set_encoding(Encoding::new(source, self.tokens().clone())?);
            // If a watch of this thread stops the work, the rest is computed when a mask needs it.
            let _ = lay_out(self);
        }
        Ok(())
    }
}

/// Builds it. The common formats are taken from the text with which a vocabulary is prepared: here, too, the first date
/// or address of a grammar costs more than many later ones.
fn lay_out(vocabulary: &Arc<Vocabulary>) -> Result<(), MatcherError> {
    if !Switch::CanonicalCommonTexts.is_on() {
        return Ok(());
    }
    walk(vocabulary, ANY, &TEXTS)?;
    walk(vocabulary, TYPED, &TYPED_TEXTS)?;
    walk(vocabulary, SCHEMA, &[TEXT])
}

/// Computes the masks along texts of a schema.
fn walk(vocabulary: &Arc<Vocabulary>, schema: &str, texts: &[&str]) -> Result<(), MatcherError> {
    let Ok(grammar) = from_json_schema(schema, &JsonSchemaOptions::default()) else { return Ok(()) };
    let compiled = Arc::new(CompiledGrammar::new(Arc::new(grammar), vocabulary.clone())?);
    let options = MatcherOptions { canonical: true, ..MatcherOptions::default() };
    let mut mask = vec![0; vocabulary.mask_words()];
    for text in texts {
        let mut matcher = GrammarMatcher::new(compiled.clone(), &options)?;
        for token in vocabulary.encode(text).into_iter().flatten() {
            matcher.fill_mask(&mut mask)?;
            if !matcher.accept_token(token)? {
                break;
            }
        }
    }
    Ok(())
}
