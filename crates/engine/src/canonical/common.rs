//! What canonical masks of any JSON text ask for: laid out once, when it is learned how a tokenizer makes tokens.
//!
//! Strings, numbers and what stands between them are the same in nearly all grammars, and so is what a tokenizer makes of them at
//! the few places that its texts come to. A walk along a few texts finds all of it.

use std::sync::Arc;

use stencilm_grammar::{JsonSchemaOptions, from_json_schema};

use crate::compiled::CompiledGrammar;
use crate::error::MatcherError;
use crate::matcher::{GrammarMatcher, MatcherOptions};
use crate::vocabulary::Vocabulary;

/// Any JSON.
const SCHEMA: &str = "true";

/// Texts that come to the places where a string or a number may end or go on: behind letters, digits, blanks and signs.
const TEXTS: [&str; 3] = [
    r#"{"name": "Mary Ann-Lee's 2nd book: No. 12, 345 (new)", "count": 1234, "rate": -0.25, "list": ["a", "b1", "US-en"], "more": {"x": null, "on": true, "e": 1.5e-7}, "at": "2024-05-06T07:08:09Z", "url": "https://example.com/path_to/page?id=1", "text": "one\ntwo  ", "empty": "", "none": []}"#,
    r#"{"name":"Z\u00fcrich é","numbers":[0,12,3.5,-7],"nested":[{"a":1},{"b":[{"c":{}}]}],"flag":false,"mail":"j.d@example.org"}"#,
    "{\n  \"items\": [\n    {\n      \"id\": 1,\n      \"label\": \"A\"\n    },\n    \"last\"\n  ]\n}",
];

/// Lays it out.
pub(crate) fn lay_out(vocabulary: &Arc<Vocabulary>) -> Result<(), MatcherError> {
    let Ok(grammar) = from_json_schema(SCHEMA, &JsonSchemaOptions::default()) else { return Ok(()) };
    let compiled = Arc::new(CompiledGrammar::new(Arc::new(grammar), vocabulary.clone())?);
    let options = MatcherOptions { canonical: true, ..MatcherOptions::default() };
    let mut mask = vec![0; vocabulary.mask_words()];
    for text in TEXTS {
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
