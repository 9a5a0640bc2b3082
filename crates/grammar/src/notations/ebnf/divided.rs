//! A text and what ends it as two terminals, of which the end may be any expression.
//!
//! One idea: where the end begins is known of no text alone, but what must not follow a text is what derivatives leave
//! of a condition. So the texts are split by what they leave of it, and each group has ends of its own.

use stencilm_regex::{Deriver, ExprId, Limits, split};
use stencilm_support::LimitExceeded;

use crate::ir::builder::GrammarBuilder;

/// The greatest number of groups of texts.
const MAX_GROUPS: usize = 256;

/// Pairs of texts of `body` and of `ending`. Their concatenations are the texts of both which also match `whole`, and
/// of which no shorter prefix is such a text. Each is divided in one way: at the first place where the ending may
/// begin. `None` if too many groups of texts have endings of their own.
///
/// # Errors
/// [`LimitExceeded`] if the expressions have too many states.
pub(super) fn divided(
    builder: &mut GrammarBuilder,
    body: ExprId,
    ending: ExprId,
    whole: Option<ExprId>,
) -> Result<Option<Vec<(ExprId, ExprId)>>, LimitExceeded> {
    let mut deriver = Deriver::over(std::mem::take(&mut builder.exprs), Limits::default());
    let groups = groups(&mut deriver, body, ending, whole);
    builder.exprs = deriver.exprs;
    groups
}

fn groups(
    deriver: &mut Deriver,
    body: ExprId,
    ending: ExprId,
    whole: Option<ExprId>,
) -> Result<Option<Vec<(ExprId, ExprId)>>, LimitExceeded> {
    let exprs = &mut deriver.exprs;
    let more = exprs.repeat(ExprId::ANY_BYTE, 1, None);
    let longer = exprs.concat_all(&[body, ending, more]);
    let first = exprs.not(longer);
    let observed: Vec<ExprId> = std::iter::once(first).chain(whole).collect();
    // Groups of the texts, each with the endings that would have begun earlier.
    let mut pieces: Vec<(ExprId, Vec<ExprId>)> = vec![(body, Vec::new())];
    for (begun, left) in split(deriver, more, &[ending])? {
        let earlier = deriver.exprs.and(&[left[0], ending]);
        if !deriver.is_live(earlier)? {
            continue;
        }
        let begun = deriver.exprs.concat(body, begun);
        let not_begun = deriver.exprs.not(begun);
        for (piece, taken) in std::mem::take(&mut pieces) {
            let (within, without) = (deriver.exprs.and(&[piece, begun]), deriver.exprs.and(&[piece, not_begun]));
            if deriver.is_live(within)? {
                pieces.push((within, taken.iter().copied().chain([earlier]).collect()));
            }
            if deriver.is_live(without)? {
                pieces.push((without, taken));
            }
        }
        if pieces.len() > MAX_GROUPS {
            return Ok(None);
        }
    }
    let mut groups = Vec::new();
    for (piece, taken) in pieces {
        let taken = deriver.exprs.or(&taken);
        let free = deriver.exprs.not(taken);
        for (text, mut left) in split(deriver, piece, &observed)? {
            left.extend([ending, free]);
            let ending = deriver.exprs.and(&left);
            if deriver.is_live(ending)? {
                groups.push((text, ending));
            }
        }
        if groups.len() > MAX_GROUPS {
            return Ok(None);
        }
    }
    Ok(Some(groups))
}
