//! `oneOf`: accepted where no value can fit two branches, which makes it an `anyOf`; refused otherwise.
//!
//! Two branches are apart when every pair of their alternatives clashes: by type, by bounds, by `const` or `enum`, or in a
//! required member (the usual discriminator). That is sound and not complete; what is not proven is refused.

use super::lower::Lowering;
use super::merge::merge;
use super::normal::{Conjunction, joined};
use super::schema::{Keyword, SchemaId, Types};
use crate::error::GrammarError;

/// Most pairs of alternatives compared for one `oneOf`.
const MAX_PAIRS: usize = 100_000;
/// How deep a clash is looked for.
const MAX_LEVEL: usize = 2;

impl<'a> Lowering<'a> {
    /// Checks every `oneOf` that was normalised since the last call.
    pub(super) fn check_overlaps(&mut self) -> Result<(), GrammarError> {
        while let Some(id) = self.normal.unchecked.pop() {
            let schemas = self.schemas;
            for keyword in &schemas.get(id).keywords {
                let Keyword::OneOf(branches) = keyword else { continue };
                if let Some(why) = self.overlap(id, branches)? {
                    self.relax(id, "oneOf", &why)?;
                }
            }
        }
        Ok(())
    }

    fn overlap(&mut self, id: SchemaId, branches: &[SchemaId]) -> Result<Option<String>, GrammarError> {
        let own = self.normal.own(id);
        let mut forms = Vec::with_capacity(branches.len());
        for &branch in branches {
            let mut form = Vec::new();
            for alternative in self.normal.of(branch)?.iter() {
                let all = joined(&own, alternative);
                let types = merge(self.schemas, &all, self.options.strict_mode).types;
                form.push((all, types));
            }
            forms.push(form);
        }
        let mut pairs = 0;
        for (place, right) in forms.iter().enumerate() {
            for (earlier, left) in forms[..place].iter().enumerate() {
                for (a, a_types) in left {
                    for (b, b_types) in right {
                        pairs += 1;
                        if pairs > MAX_PAIRS {
                            let why = "it has too many branches to prove that no two overlap; use anyOf";
                            return Ok(Some(why.into()));
                        }
                        if a_types.meets(*b_types) && !self.is_empty(&joined(a, b), MAX_LEVEL)? {
                            return Ok(Some(format!(
                                "branches {earlier} and {place} may both hold, and exactly-one is only supported where \
                                 branches exclude each other by type or by a const of a required key; use anyOf"
                            )));
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// Whether it is certain that nothing fits all of these.
    fn is_empty(&mut self, all: &Conjunction, level: usize) -> Result<bool, GrammarError> {
        let merged = merge(self.schemas, all, self.options.strict_mode);
        if merged.is_impossible() {
            return Ok(true);
        }
        if level == 0 || merged.types != Types::OBJECT {
            return Ok(false);
        }
        let required: Vec<Vec<SchemaId>> =
            merged.known.values().filter(|known| known.required.is_some()).map(|known| known.value.clone()).collect();
        for inner in required {
            let alternatives = self.normal.alternatives(&inner)?;
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
