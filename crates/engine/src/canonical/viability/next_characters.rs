//! What the next byte, and the next few characters, decide about a token: whether it keeps its end before them.

use std::cell::RefCell;

use super::layer::EndLayer;
use super::search::{EndQuestion, Search, TokenEnd, is_other};
use crate::error::EngineError;
use crate::state::stacks::SetId;

/// A byte that certainly may come begins another piece in any case, or merges with nothing at the end of the token.
pub(crate) struct NextByte;

impl EndLayer for NextByte {
    fn is_viable(
        &self,
        search: &mut Search<'_, '_>,
        &EndQuestion { end, next, .. }: &EndQuestion,
    ) -> Result<Option<bool>, EngineError> {
        Ok((!search.settling_bytes(end, &next.certain).is_empty()).then_some(true))
    }
}

/// The same with bytes that are not certain to be live, and with a few characters.
pub(crate) struct NextCharacters;

impl EndLayer for NextCharacters {
    fn is_viable(
        &self,
        search: &mut Search<'_, '_>,
        &EndQuestion { end, next, .. }: &EndQuestion,
    ) -> Result<Option<bool>, EngineError> {
        let TokenEnd { configuration, token, cursor } = end;
        if search.is_read(configuration, &search.settling_bytes(end, &next.bytes))? {
            return Ok(Some(true));
        }
        let Search { run, encoding, cursors, found, .. } = search;
        let ahead = RefCell::new((run, &mut found.ahead));
        // Whether characters were read that come after the lexemes of the configuration.
        let mut beyond = false;
        let decided = encoding.keeps_end(
            cursors,
            cursor,
            token,
            configuration,
            &mut |here| {
                let (run, ahead) = &mut *ahead.borrow_mut();
                Ok::<_, EngineError>(ahead.next(run, here)?.bytes)
            },
            &mut |here, byte| {
                let (run, ahead) = &mut *ahead.borrow_mut();
                let next = ahead.step(run, here, byte)?;
                beyond |= is_other(run.stacks.entries(next), run.stacks.entries(configuration));
                Ok((next != SetId::EMPTY).then_some(next))
            },
        )?;
        search.has_left |= beyond && decided.is_some();
        Ok(decided)
    }
}
