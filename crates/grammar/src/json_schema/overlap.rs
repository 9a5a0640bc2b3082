//! Which branches of a `oneOf` may hold together: only there must it be said that the others fail.
//!
//! Two branches are apart when every pair of their alternatives clashes: by type, by bounds, by `const` or `enum`, or in a
//! required member (the usual discriminator). That is sound and not complete: where it is not proven, the normal form has
//! the negation of the other branch.

use super::atoms::{Atom, Term};
use super::merge::merge;
use super::normal::{Conjunction, Goal, Mode, Normal, Overlaps, joined};
use super::schema::{SchemaId, Types};
use crate::error::GrammarError;

/// Most pairs of alternatives compared for one `oneOf`; beyond, branches are taken to overlap.
const MAX_PAIRS: usize = 100_000;
/// How deep a clash is looked for.
const MAX_LEVEL: usize = 2;

/// Most terms that are looked at for all proofs that nothing fits: past that nothing is taken to be proven.
const MAX_PROOFS: usize = 300_000;

impl Normal<'_> {
    /// For every branch of a `oneOf` the other ones that may hold together with it. The loose forms of all are known.
    pub(super) fn find_overlaps(&mut self, id: SchemaId, branches: &[SchemaId]) -> Result<Overlaps, GrammarError> {
        let own: Conjunction = if self.schemas.get(id).constrains() { [Atom::Own(id)].into() } else { [].into() };
        let mut forms = Vec::with_capacity(branches.len());
        for &schema in branches {
            let mut form = Vec::new();
            for alternative in self.of(Goal { schema, fails: false, mode: Mode::Loose })?.iter() {
                let all = joined(&own, alternative);
                let types = merge(self, &all).types;
                form.push((all, types));
            }
            forms.push(form);
        }
        let mut overlaps: Vec<Vec<u32>> = vec![Vec::new(); branches.len()];
        let mut pairs = 0;
        for (right, right_form) in forms.iter().enumerate() {
            for (left, left_form) in forms[..right].iter().enumerate() {
                let mut apart = true;
                'pairs: for (a, a_types) in left_form {
                    for (b, b_types) in right_form {
                        pairs += 1;
                        if pairs > MAX_PAIRS || (a_types.meets(*b_types) && !self.is_empty(&joined(a, b), MAX_LEVEL)?) {
                            apart = false;
                            break 'pairs;
                        }
                    }
                }
                if !apart {
                    overlaps[right].push(left as u32);
                    overlaps[left].push(right as u32);
                }
            }
        }
        Ok(overlaps.into_iter().map(Vec::into_boxed_slice).collect())
    }

    /// Whether it is certain that nothing fits all of these.
    pub(super) fn is_empty(&mut self, all: &Conjunction, level: usize) -> Result<bool, GrammarError> {
        self.proofs += 1 + all.len();
        if self.proofs > MAX_PROOFS {
            return Ok(false);
        }
        let merged = merge(self, all);
        if merged.is_impossible() {
            return Ok(true);
        }
        if level == 0 || merged.types != Types::OBJECT {
            return Ok(false);
        }
        let required: Vec<Vec<Term>> =
            merged.known.values().filter(|known| known.required.is_some()).map(|known| known.value.clone()).collect();
        for inner in required {
            // What is too much to multiply out, or leads in a circle, is not proven to be empty.
            let Ok(alternatives) = self.alternatives_in(&inner, Mode::Loose) else { continue };
            let mut empty = true;
            for alternative in alternatives.iter() {
                empty = empty && self.is_empty(alternative, level - 1)?;
            }
            if empty {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
