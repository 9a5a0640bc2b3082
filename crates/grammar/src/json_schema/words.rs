//! Whether the texts of an expression run out: all of them, or those behind some beginning.
//!
//! The residuals from which finitely many texts go on are a least fixed point: those whose derivatives are all such.

use rustc_hash::FxHashMap;
use stencilm_regex::{Deriver, ExprId, LimitExceeded};

/// Most residuals looked at.
const MAX_RESIDUALS: usize = 20_000;

/// The texts of an expression.
pub(super) enum Words {
    /// These are all.
    Few(Vec<Vec<u8>>),
    /// However a text begins, infinitely many go on, unless it is complete and none does.
    Endless,
    /// After some beginning, only finitely many texts go on; or it took too long to tell.
    Uneven,
}

/// The texts of a live expression, as far as there are at most `most`.
pub(super) fn words(deriver: &mut Deriver, root: ExprId, most: usize) -> Result<Words, LimitExceeded> {
    let mut index: FxHashMap<ExprId, usize> = FxHashMap::from_iter([(root, 0)]);
    let mut residuals = vec![root];
    let mut users: Vec<Vec<usize>> = vec![Vec::new()];
    let mut missing: Vec<usize> = vec![0];
    let mut at = 0;
    while at < residuals.len() {
        if residuals.len() > MAX_RESIDUALS {
            return Ok(Words::Uneven);
        }
        let derivatives = deriver.derivatives(residuals[at])?;
        for &(_, rest) in derivatives.iter() {
            if !deriver.is_live(rest)? {
                continue;
            }
            let next = *index.entry(rest).or_insert_with(|| {
                residuals.push(rest);
                users.push(Vec::new());
                missing.push(0);
                residuals.len() - 1
            });
            users[next].push(at);
            missing[at] += 1;
        }
        at += 1;
    }
    let mut ready: Vec<usize> = (0..residuals.len()).filter(|&state| missing[state] == 0).collect();
    let mut ends = false;
    let mut all_end = false;
    while let Some(state) = ready.pop() {
        ends |= residuals[state] != ExprId::EMPTY;
        all_end |= state == 0;
        for &user in &users[state] {
            missing[user] -= 1;
            if missing[user] == 0 {
                ready.push(user);
            }
        }
    }
    if all_end {
        return Ok(few(deriver, root, most)?.map_or(Words::Uneven, Words::Few));
    }
    Ok(if ends { Words::Uneven } else { Words::Endless })
}

/// All texts of an expression that has finitely many; `None` where they are more than `most`.
fn few(deriver: &mut Deriver, root: ExprId, most: usize) -> Result<Option<Vec<Vec<u8>>>, LimitExceeded> {
    let mut found = Vec::new();
    let mut work = vec![(root, Vec::new())];
    while let Some((rest, text)) = work.pop() {
        if deriver.exprs.is_nullable(rest) {
            found.push(text.clone());
        }
        let derivatives = deriver.derivatives(rest)?;
        for &(bytes, next) in derivatives.iter() {
            if deriver.is_live(next)? {
                work.extend(bytes.iter().map(|byte| {
                    let mut longer = text.clone();
                    longer.push(byte);
                    (next, longer)
                }));
            }
        }
        // Every text still to be gone on with ends in at least one.
        if found.len() + work.len() > most {
            return Ok(None);
        }
    }
    found.sort_unstable();
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencilm_regex::Limits;
    use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};

    #[test]
    fn texts_run_out_or_not() {
        for (pattern, expected) in [
            ("a|bc?", "a b bc"),
            ("[a-c]{2}", "aa ab ac ba bb bc ca cb cc"),
            ("a*", "endless"),
            ("[a-z]+", "endless"),
            ("a*b", "endless"),
            ("a*bc", "uneven"),
            ("ac|b.*", "uneven"),
            ("[a-z]{3}", "uneven"),
        ] {
            let mut deriver = Deriver::new(Limits::default());
            let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
            let root = parse_pattern(&mut deriver.exprs, pattern, &options, &mut Utf8).unwrap();
            let found = match words(&mut deriver, root, 10).unwrap() {
                Words::Few(words) => {
                    words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect::<Vec<_>>().join(" ")
                }
                Words::Endless => "endless".into(),
                Words::Uneven => "uneven".into(),
            };
            assert_eq!(found, expected, "{pattern}");
        }
    }
}
