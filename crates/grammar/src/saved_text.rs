//! What all saved texts begin with: the name of their format and its version, held against those that this library
//! reads.
//!
//! Of a text that cannot be read whole these two are looked for first: that it is of another format says more than what
//! it lacks.

use std::io::{self, Read};

use serde::Deserialize;
use stencilm_support::{LimitExceeded, check_time_now};

use crate::error::{ErrorKind, GrammarError};

/// The number of bytes that are read between two checks of the clock.
const BETWEEN_LOOKS: usize = 1 << 16;

/// The greatest length of a text that is repeated in a message, in characters.
const MAX_SHOWN: usize = 40;

/// A format of saved texts, in the version that this library reads.
pub struct SavedFormat {
    /// The name of the format, as it must stand in the text.
    pub name: &'static str,
    /// The version that must stand in the text.
    pub version: u32,
    /// The function that writes such texts, for messages.
    pub written_by: &'static str,
}

/// The only fields that are read from a text that may have another version.
#[derive(Deserialize)]
struct Header {
    format: Option<String>,
    version: Option<u32>,
}

impl SavedFormat {
    /// Checks that a text has this format and version.
    ///
    /// # Errors
    /// [`ErrorKind::Syntax`] at `#/format` or `#/version`.
    pub fn check(&self, format: Option<&str>, version: Option<u32>) -> Result<(), GrammarError> {
        let SavedFormat { name, version: read, written_by } = self;
        if format != Some(name) {
            let found: String = format.unwrap_or_default().chars().take(MAX_SHOWN).collect();
            let message = format!("the format is {found:?}, not \"{name}\"; give what {written_by} wrote");
            return Err(GrammarError::new(ErrorKind::Syntax, "#/format", message));
        }
        if version != Some(*read) {
            let found = version.map_or("missing".into(), |version| version.to_string());
            let message = format!("the version is {found}, and this library reads {read}; serialize it again");
            return Err(GrammarError::new(ErrorKind::Syntax, "#/version", message));
        }
        Ok(())
    }

    /// The same check for a text that cannot be parsed as a whole, however long it is.
    ///
    /// # Errors
    /// As [`SavedFormat::check`]; [`ErrorKind::Limit`] if the thread has to stop; and the error of `damaged` for a text
    /// that is not JSON.
    pub fn check_text(
        &self,
        text: &str,
        damaged: impl FnOnce(&serde_json::Error) -> GrammarError,
    ) -> Result<(), GrammarError> {
        let mut text = InTime { rest: text.as_bytes(), unlooked: 0, ended: None };
        let header = serde_json::from_reader::<_, Header>(&mut text);
        if let Some(limit) = text.ended {
            return Err(GrammarError::limit("", limit));
        }
        let header = header.map_err(|error| damaged(&error))?;
        self.check(header.format.as_deref(), header.version)
    }
}

/// A text that is read only as long as there is time.
struct InTime<'t> {
    rest: &'t [u8],
    /// How many bytes may be read before the clock is checked again.
    unlooked: usize,
    /// Why reading ended before the end of the text.
    ended: Option<LimitExceeded>,
}

impl Read for InTime<'_> {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.unlooked == 0 {
            if let Err(limit) = check_time_now() {
                self.ended = Some(limit);
                return Err(io::Error::other("there is no time left"));
            }
            self.unlooked = BETWEEN_LOOKS;
        }
        let count = self.rest.read(into)?;
        self.unlooked = self.unlooked.saturating_sub(count);
        Ok(count)
    }
}
