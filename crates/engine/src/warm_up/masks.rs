//! What the first masks of JSON need, computed before any grammar asks for it.
//!
//! Lexemes and their masks are shared by all grammars of a vocabulary, so the first date, number or address that any of
//! them reads costs ten times as much as the next one. A text with one of each is read once by a separate grammar,
//! which is then dropped: what it computed stays in the shared lexemes. The text has two of everything that begins
//! after whitespace, since only the second one gets a mask.

use std::sync::Arc;

use stencilm_grammar::{JsonSchemaOptions, from_json_schema};
use stencilm_support::{Held, SEARCHED};

use crate::compiled::CompiledGrammar;
use crate::matcher::{GrammarMatcher, MatcherOptions};
use crate::shared::Vocabulary;
use crate::vocabulary::token_set::TokenSet;

pub(crate) const SCHEMA: &str = r#"{"type": "object", "properties": {
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "integers": {"type": "array", "items": {"type": "integer"}},
    "counts": {"type": "array", "items": {"type": "integer", "minimum": 0}},
    "numbers": {"type": "array", "items": {"type": "number"}},
    "flags": {"type": "array", "items": {"type": "boolean"}},
    "lists": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    "texts": {"type": "array", "items": {"type": ["string", "null"]}},
    "places": {"type": "array", "items": {"type": ["integer", "null"]}},
    "rates": {"type": "array", "items": {"type": ["number", "null"]}},
    "mixed": {"type": "array", "items": {"type": ["string", "number"]}},
    "named": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
    "short": {"type": "string", "maxLength": 40},
    "anything": true,
    "date-time": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
    "email": {"type": "string", "format": "email"},
    "hostname": {"type": "string", "format": "hostname"},
    "ipv4": {"type": "string", "format": "ipv4"},
    "ipv6": {"type": "string", "format": "ipv6"},
    "uuid": {"type": "string", "format": "uuid"},
    "uri": {"type": "string", "format": "uri"}
}, "required": ["integer"], "additionalProperties": false}"#;

pub(crate) const TEXT: &str = r#"{"integer": 42, "number": -3.14, "integers": [7, 12], "counts": [1, 20], "numbers": [2.5, 1],
 "flags": [true, false], "lists": [["a"], ["b", "c"]], "texts": ["a", null, "b"], "places": [1, null, 22], "rates": [0.5, null, 1],
 "mixed": ["a", 1.5], "named": {"a": "b", "c": null}, "short": "a",
 "anything": [{"d": [1.5e3]}, "e"], "date-time": "2024-02-29T12:34:56.789Z", "date": "1999-12-31",
 "time": "08:09:10+01:00", "email": "john.doe@mail.example.com", "hostname": "www.example.org",
 "ipv4": "192.168.10.25", "ipv6": "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
 "uuid": "123e4567-e89b-12d3-a456-426614174000", "uri": "https://www.example.com/some/path?query=1#part"}"#;

impl Vocabulary {
    /// Computes once what the first masks of most grammars of JSON need: numbers, strings, keys, and the common
    /// formats. This is for grammars with the default limits; a vocabulary of few tokens needs nothing.
    pub fn prepare(self: &Arc<Self>) {
        if self.vocab_size() >= SEARCHED {
            self.once_prepared().call_once(|| {
                let _held = Held::new();
                // If a watch of this thread stops the work, the rest is computed when a mask needs it.
                let _ = self.read_prepared_text();
            });
        }
    }

    fn read_prepared_text(self: &Arc<Self>) -> Option<()> {
        let grammar = from_json_schema(SCHEMA, &JsonSchemaOptions::default()).ok()?;
        let compiled = Arc::new(CompiledGrammar::new(Arc::new(grammar), self.clone()).ok()?);
        let mut matcher = GrammarMatcher::new(compiled, &MatcherOptions::default()).ok()?;
        let mut mask = TokenSet::empty(self.vocab_size());
        let trie = self.trie();
        let mut rest = TEXT.as_bytes();
        while !rest.is_empty() {
            matcher.fill_mask(mask.words_mut()).ok()?;
            let token = |len: &usize| trie.find(&rest[..*len]).and_then(|node| trie.entry_at(node));
            let len = (1..=rest.len().min(trie.max_depth())).rev().find(|len| token(len).is_some())?;
            matcher.accept_token(token(&len)?).ok().filter(|&accepted| accepted)?;
            rest = &rest[len..];
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_read_to_its_end() {
        let mut tokens: Vec<Option<Vec<u8>>> = (0..=u8::MAX).map(|byte| Some(vec![byte])).collect();
        tokens.extend([&b"\", \""[..], b"\": \"", b"www", b"https"].map(|token| Some(token.to_vec())));
        let vocabulary = Arc::new(Vocabulary::new(&tokens, tokens.len(), &[], &[]).unwrap());
        assert_eq!(vocabulary.read_prepared_text(), Some(()));
    }
}
