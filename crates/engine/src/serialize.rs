//! Compiled grammars as JSON text: the serialized grammar, and the tokenizer by its fingerprint.
//!
//! Nothing that was built is written: it is rebuilt when masks need it, and what is not in the text need not be
//! trusted.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use stencilm_grammar::{ErrorKind, Grammar, GrammarError, SavedFormat};

use crate::compiled::CompiledGrammar;
use crate::error::EngineError;
use crate::limits::Limits;
use crate::shared::Vocabulary;

/// The format written here. The grammar inside has a format of its own.
const FORMAT: SavedFormat =
    SavedFormat { name: "stencilm-compiled-grammar", version: 1, written_by: "CompiledGrammar.serialize_json" };
/// The greatest length of a text in bytes: slightly more than for a grammar alone.
const MAX_BYTES: usize = (64 << 20) + 4096;
/// The greatest length of a part of a text that a message repeats, in characters.
const MAX_SHOWN: usize = 40;
/// The greatest length of another part's message that is passed on unchanged, in characters.
const MAX_MESSAGE: usize = 10 * MAX_SHOWN;

/// Why a compiled grammar cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SavedError {
    /// The text is damaged, of another format or version, or too large; or its grammar is refused.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// It was compiled for another tokenizer.
    #[error(
        "this was compiled for the tokenizer with the fingerprint {saved:?}, and this one has {given:?}; give that \
         tokenizer, or compile the grammar for this one"
    )]
    OtherTokenizer {
        /// The fingerprint in the text, shortened.
        saved: String,
        /// The fingerprint of the given tokenizer.
        given: String,
    },
    /// The grammar does not fit the tokenizer.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved<'a> {
    format: String,
    version: u32,
    tokenizer: String,
    #[serde(borrow)]
    grammar: &'a RawValue,
}

impl CompiledGrammar {
    /// The grammar and the fingerprint of the vocabulary as JSON text, which [`CompiledGrammar::deserialize_json`]
    /// reads.
    pub fn serialize_json(&self) -> String {
        self.written(&self.grammar().serialize_json())
    }

    /// The same, but ends when the thread reaches a limit.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`].
    pub fn serialize_json_in_time(&self) -> Result<String, GrammarError> {
        Ok(self.written(&self.grammar().serialize_json_in_time()?))
    }

    fn written(&self, grammar: &str) -> String {
        let saved = Saved {
            format: FORMAT.name.into(),
            version: FORMAT.version,
            tokenizer: fingerprint(self.vocabulary()),
            grammar: serde_json::from_str(grammar).expect("a grammar writes itself as JSON"),
        };
        serde_json::to_string(&saved).expect("strings and numbers always have a JSON form")
    }

    /// Reads a compiled grammar that [`CompiledGrammar::serialize_json`] wrote. Nothing in the text is trusted.
    ///
    /// # Errors
    /// [`SavedError::OtherTokenizer`] where it was compiled for another vocabulary, [`SavedError::Grammar`] for a text
    /// that is damaged, of another format or version, or too large, and what [`CompiledGrammar::with_limits`] refuses.
    pub fn deserialize_json(
        text: &str,
        vocabulary: Arc<Vocabulary>,
        limits: Limits,
    ) -> Result<CompiledGrammar, SavedError> {
        if text.len() > MAX_BYTES {
            let message = format!("the text has {} bytes and at most {MAX_BYTES} are accepted", text.len());
            return Err(GrammarError::new(ErrorKind::Limit, "", message).into());
        }
        let saved = match serde_json::from_str::<Saved<'_>>(text) {
            Ok(saved) => {
                FORMAT.check(Some(&saved.format), Some(saved.version))?;
                saved
            }
            Err(error) => {
                FORMAT.check_text(text, damaged)?;
                return Err(damaged(&error).into());
            }
        };
        let given = fingerprint(&vocabulary);
        if saved.tokenizer != given {
            return Err(SavedError::OtherTokenizer { saved: shortened(&saved.tokenizer), given });
        }
        let grammar = Grammar::deserialize_json(saved.grammar.get()).map_err(inside)?;
        Ok(CompiledGrammar::with_limits(Arc::new(grammar), vocabulary, limits)?)
    }
}

fn fingerprint(vocabulary: &Vocabulary) -> String {
    format!("{:032x}", vocabulary.fingerprint())
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}

fn damaged(error: &serde_json::Error) -> GrammarError {
    let place = format!("line {}, column {}", error.line(), error.column());
    let error = sentence(&error.to_string());
    let message = format!("this is no whole serialized compiled grammar: {error}; serialize it again");
    GrammarError::new(ErrorKind::Syntax, place, message)
}

/// An error of the grammar, with its location in the whole text.
fn inside(error: GrammarError) -> GrammarError {
    let place = match error.place.strip_prefix('#') {
        Some(place) => format!("#/grammar{place}"),
        None if error.place.is_empty() => "#/grammar".into(),
        None => format!("#/grammar, {}", error.place),
    };
    GrammarError::new(error.kind, place, sentence(&error.message))
}

/// A message that may repeat parts of the text; the middle of a long one is left out.
fn sentence(message: &str) -> String {
    let count = message.chars().count();
    if count <= MAX_MESSAGE {
        return message.into();
    }
    let start: String = message.chars().take(MAX_MESSAGE / 2).collect();
    let end: String = message.chars().skip(count - MAX_MESSAGE / 2).collect();
    format!("{start}…{end}")
}
