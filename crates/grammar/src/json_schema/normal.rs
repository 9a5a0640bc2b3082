//! Normal form: every schema as a disjunction of conjunctions, as far as one value is concerned.
//!
//! `$ref`, `allOf`, `anyOf` and `oneOf` speak of the same value as the schema they stand in. Multiplying them out leaves
//! alternatives, each a list of schemas whose own keywords must all hold. What a schema says of the values inside
//! stays untouched: those are lists of schemas again, normalised when they are reached. The walk has its own stack
//! and every schema is normalised once.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::schema::{Keyword, SchemaId, Schemas};
use crate::error::{ErrorKind, GrammarError};

/// Most alternatives of one value.
const MAX_ALTERNATIVES: usize = 50_000;
/// Most schemas in the alternatives of one product, all counted: bounds the time to multiply out.
const MAX_PRODUCT: usize = 1_000_000;

/// Schemas that must all hold, in the order of the text. None at all: any value.
pub(super) type Conjunction = Rc<[SchemaId]>;
/// Conjunctions of which any may hold.
pub(super) type Alternatives = Rc<[Conjunction]>;

enum Step {
    Enter(SchemaId),
    Leave(SchemaId),
}

/// The normal forms found so far.
pub(super) struct Normal<'a> {
    pub(super) schemas: &'a Schemas<'a>,
    known: FxHashMap<SchemaId, Alternatives>,
    /// Schemas in the order of first use, for the report.
    pub(super) used: Vec<SchemaId>,
    /// Schemas with `oneOf` whose branches are still to be checked for overlap.
    pub(super) unchecked: Vec<SchemaId>,
}

impl<'a> Normal<'a> {
    pub(super) fn new(schemas: &'a Schemas<'a>) -> Normal<'a> {
        Normal { schemas, known: FxHashMap::default(), used: Vec::new(), unchecked: Vec::new() }
    }

    /// The alternatives of a value for which all these schemas must hold.
    ///
    /// # Errors
    /// [`ErrorKind::Unsatisfiable`] for a cycle of references that never reaches a value, [`ErrorKind::Limit`] when there
    /// are too many alternatives.
    pub(super) fn alternatives(&mut self, all: &[SchemaId]) -> Result<Alternatives, GrammarError> {
        let mut factors = Vec::with_capacity(all.len());
        for &id in all {
            factors.push(self.of(id)?);
        }
        match factors.as_slice() {
            [one] => Ok(one.clone()),
            factors => self.product(all.first().copied(), factors),
        }
    }

    /// The alternatives of one schema.
    pub(super) fn of(&mut self, root: SchemaId) -> Result<Alternatives, GrammarError> {
        if let Some(known) = self.known.get(&root) {
            return Ok(known.clone());
        }
        if !self.schemas.get(root).keywords.iter().any(Keyword::applies_in_place) {
            // Nothing to multiply out, as in most schemas.
            self.used.push(root);
            let alternatives: Alternatives = [self.own(root)].into();
            self.known.insert(root, alternatives.clone());
            return Ok(alternatives);
        }
        // `entered` holds what is being normalised, outermost first: meeting one of them again is a cycle.
        let mut work = vec![Step::Enter(root)];
        let mut entered: Vec<SchemaId> = Vec::new();
        let mut inside: FxHashSet<SchemaId> = FxHashSet::default();
        while let Some(step) = work.pop() {
            let id = match step {
                Step::Leave(id) => {
                    let alternatives = self.combine(id)?;
                    self.known.insert(id, alternatives);
                    entered.pop();
                    inside.remove(&id);
                    continue;
                }
                Step::Enter(id) if self.known.contains_key(&id) => continue,
                Step::Enter(id) => id,
            };
            if !inside.insert(id) {
                return Err(self.cycle(&entered, id));
            }
            entered.push(id);
            self.used.push(id);
            work.push(Step::Leave(id));
            for keyword in self.schemas.get(id).keywords.iter().rev() {
                match keyword {
                    Keyword::Ref(target) => work.push(Step::Enter(*target)),
                    Keyword::AllOf(parts) | Keyword::AnyOf(parts) => {
                        work.extend(parts.iter().rev().map(|&part| Step::Enter(part)));
                    }
                    Keyword::OneOf(parts) => {
                        self.unchecked.push(id);
                        work.extend(parts.iter().rev().map(|&part| Step::Enter(part)));
                    }
                    _ => {}
                }
            }
        }
        Ok(self.known[&root].clone())
    }

    /// What a schema says itself, beside combining others.
    pub(super) fn own(&self, id: SchemaId) -> Conjunction {
        if self.schemas.get(id).constrains() { [id].into() } else { [].into() }
    }

    /// The alternatives of a schema whose parts are known.
    fn combine(&self, id: SchemaId) -> Result<Alternatives, GrammarError> {
        let schema = self.schemas.get(id);
        let mut factors: Vec<Alternatives> = vec![[self.own(id)].into()];
        for keyword in &schema.keywords {
            match keyword {
                Keyword::Ref(target) => factors.push(self.known[target].clone()),
                Keyword::AllOf(parts) => factors.extend(parts.iter().map(|part| self.known[part].clone())),
                Keyword::AnyOf(parts) | Keyword::OneOf(parts) => factors.push(self.sum(id, parts)?),
                _ => {}
            }
        }
        self.product(Some(id), &factors)
    }

    fn sum(&self, at: SchemaId, parts: &[SchemaId]) -> Result<Alternatives, GrammarError> {
        let mut seen: FxHashSet<&Conjunction> = FxHashSet::default();
        let mut sum = Vec::new();
        for alternative in parts.iter().flat_map(|part| self.known[part].iter()) {
            if seen.insert(alternative) {
                sum.push(alternative.clone());
            }
            if sum.len() > MAX_ALTERNATIVES {
                return Err(self.too_many(at));
            }
        }
        Ok(sum.into())
    }

    fn product(&self, at: Option<SchemaId>, factors: &[Alternatives]) -> Result<Alternatives, GrammarError> {
        let mut product: Alternatives = [Conjunction::from([])].into();
        for factor in factors {
            let neutral = |alternatives: &Alternatives| matches!(&**alternatives, [only] if only.is_empty());
            if neutral(factor) || Rc::ptr_eq(factor, &product) {
                continue;
            }
            if neutral(&product) {
                product = factor.clone();
                continue;
            }
            let size = |alternatives: &Alternatives| alternatives.iter().map(|all| all.len() + 1).sum::<usize>();
            let cost = size(&product) * factor.len() + size(factor) * product.len();
            if product.len() * factor.len() > MAX_ALTERNATIVES || cost > MAX_PRODUCT.max(size(&product) + size(factor))
            {
                return Err(
                    at.map_or_else(|| GrammarError::new(ErrorKind::Limit, "", TOO_MANY), |at| self.too_many(at))
                );
            }
            let mut seen: FxHashSet<Conjunction> = FxHashSet::default();
            let mut next = Vec::new();
            for left in product.iter() {
                for right in factor.iter() {
                    let both = joined(left, right);
                    if seen.insert(both.clone()) {
                        next.push(both);
                    }
                }
            }
            product = next.into();
        }
        Ok(product)
    }

    fn too_many(&self, at: SchemaId) -> GrammarError {
        GrammarError::new(ErrorKind::Limit, self.schemas.place(at), TOO_MANY)
    }

    fn cycle(&self, entered: &[SchemaId], again: SchemaId) -> GrammarError {
        let start = entered.iter().position(|&id| id == again).unwrap_or(0);
        let mut places: Vec<String> = entered[start..].iter().take(6).map(|&id| self.schemas.place(id)).collect();
        if entered.len() - start > 6 {
            places.push("…".into());
        }
        let place = self.schemas.place(again);
        let chain = places.join(" → ");
        let message = format!(
            "nothing can match: the $ref cycle {chain} → {place} comes back to the same value without an end; put \
             properties or items between"
        );
        GrammarError::new(ErrorKind::Unsatisfiable, place, message)
    }
}

const TOO_MANY: &str =
    "anyOf, oneOf and allOf multiply out to too many alternatives; move the common part into the branches or drop some";

/// All schemas of both, each once.
pub(super) fn joined(left: &[SchemaId], right: &[SchemaId]) -> Conjunction {
    if right.is_empty() {
        return left.into();
    }
    let mut both = left.to_vec();
    if left.len() * right.len() < 64 {
        both.extend(right.iter().filter(|id| !left.contains(id)));
    } else {
        let seen: FxHashSet<SchemaId> = left.iter().copied().collect();
        both.extend(right.iter().filter(|id| !seen.contains(id)));
    }
    both.into()
}
