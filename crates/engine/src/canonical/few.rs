//! Masks of few tokens: each is held against the tokenizer and against what may follow it.

use super::blanks::{BlankAnswers, FittingBlank};
use super::search::{MAX_STEPS_OF_MASK, Search};
use super::{Cursor, Encoding, Known};
use crate::error::EngineError;
use crate::run::Run;
use crate::stacks::SetId;
use crate::tokenset;

impl Run<'_> {
    /// Those of a few tokens that fit a cursor behind a token, and behind which something leads on.
    pub(super) fn canonical_of_few(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        (cursor, before): (&Cursor, Option<u32>),
        mask: &[u32],
    ) -> Result<Vec<u32>, EngineError> {
        let mut known = encoding.known();
        let Known { places, rows, sure, .. } = &mut *known;
        let place = places.of(cursor);
        let blanks = self.before_blanks(configuration)?;
        let fitting = blanks.map(|_| sure.fitting_blanks(encoding, places, place, before));
        let mut search = Search::new(encoding, places, rows);
        let (mut kept, mut told) = (Vec::new(), Vec::new());
        if let (Some(blanks), Some(fitting)) = (blanks, &fitting) {
            let next = blanks.next_bytes(self, &mut search)?;
            let known = sure.sure_blanks(encoding, (&mut *search.places, &mut *search.rows), next, place);
            let mut answers = BlankAnswers::new(self, &mut search, sure, blanks)?;
            let far = |blank: &&FittingBlank| blanks.are_far(blank.len);
            for blank in fitting.iter().filter(|blank| tokenset::get(mask, blank.token)) {
                if known[blank.number].leads_on(blanks.left) {
                    kept.push(blank.token);
                    told.push(blank.token);
                }
            }
            let is_open = |blank: &&FittingBlank| !known[blank.number].leads_on(blanks.left);
            for blank in fitting.iter().filter(far).filter(is_open).filter(|blank| tokenset::get(mask, blank.token)) {
                if answers.leads_on(self, encoding, &mut search, blank.token, blank.behind)? {
                    kept.push(blank.token);
                }
            }
        }
        for token in tokenset::iter(mask) {
            let Some(bytes) = encoding.tokens().token_bytes(token) else { continue };
            let is_far = blanks.is_some_and(|blanks| blanks.are_far(bytes.len()));
            if encoding.is_blank(token) && (is_far || told.binary_search(&token).is_ok()) {
                continue;
            }
            let Some(behind) = encoding.follow(search.places, place, before, token) else { continue };
            if search.looked_in_all > MAX_STEPS_OF_MASK {
                kept.push(token);
                continue;
            }
            let reached = search.run(self, configuration, bytes)?;
            if search.leads_on(self, reached, token, behind)? != Some(false) {
                kept.push(token);
            }
        }
        kept.sort_unstable();
        Ok(kept)
    }
}
