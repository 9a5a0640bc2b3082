//! Tokens that end with blanks, such as a comma with line breaks: what may follow the blanks tells of nearly all of them, so the
//! grammar reads only what stands before.

use super::cached::KeptBlanks;
use super::runs::{BeforeBlanks, BlanksInLexemes, JSON_BLANKS};
use crate::canonical::cursor::table::Place;
use crate::canonical::viability::search::Search;
use crate::error::EngineError;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;
use crate::switches::Switch;

/// Where the blanks of tokens begin, within one mask: configurations, each with how many blanks may come there.
#[derive(Default)]
pub(crate) struct Tails(Vec<(SetId, Option<BeforeBlanks>)>);

impl Tails {
    /// Whether something leads on behind a token that comes at a configuration, from the place behind the token; `None` where its
    /// blanks do not tell.
    pub fn leads_on(
        &mut self,
        run: &mut Run<'_>,
        search: &mut Search<'_>,
        (in_lexemes, kept): (&mut BlanksInLexemes, &mut KeptBlanks),
        configuration: SetId,
        (token, behind): (u32, Place),
    ) -> Result<Option<bool>, EngineError> {
        let encoding = search.encoding;
        let bytes = encoding.tokens().token_bytes(token).unwrap_or_default();
        let blanks = bytes.iter().rev().take_while(|byte| JSON_BLANKS.contains(byte)).count();
        if blanks == 0 || blanks == bytes.len() || !Switch::CanonicalTrailing.is_on() {
            return Ok(None);
        }
        let before = search.run(run, configuration, &bytes[..bytes.len() - blanks])?;
        let told = match self.0.iter().find(|(known, _)| *known == before) {
            Some(&(_, told)) => told,
            None => {
                let told = run.before_blanks(search, in_lexemes, before)?;
                self.0.push((before, told));
                told
            }
        };
        let Some(told) = told else { return Ok(None) };
        let way = kept.way(encoding, search.places, &told.next, (token, behind));
        Ok(way.leads_on(blanks, &told))
    }
}
