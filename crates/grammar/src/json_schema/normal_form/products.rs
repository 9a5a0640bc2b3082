//! Products of alternatives: one of each factor holds. What is impossible, or asks for more than another alternative,
//! is dropped on the way, and what becomes too many is an error.

use std::rc::Rc;

use stencilm_support::{check_time, check_time_after};

use super::atoms::Atom;
use super::goals::{Alternatives, Conjunction, Mode};
use super::normal::MAX_PROOFS;
use super::normal::Normal;
use super::sums::{MANY, MAX_ALTERNATIVES, Sum, joined};
use crate::error::{ErrorKind, GrammarError};
use crate::json_schema::read::schema::{SchemaId, Schemas, Types};

/// The greatest number of atoms in the alternatives of one product, counted with repetition: bounds the time to
/// multiply out.
const MAX_PRODUCT: usize = 1_000_000;
/// The greatest number of atoms in conjunctions that are examined closely for one schema: bounds the time to multiply
/// out.
const MAX_LOOKS: usize = 1_000_000;
/// The same for a loose product.
const LOOSE_LOOKS: usize = 3_000;
/// Copying this many alternatives takes about one usual step.
const ALTERNATIVES_OF_A_STEP: usize = 8;
/// Up to this many combinations are multiplied out without examining what they decide.
const FEW_DISJUNCTS: usize = 4;

impl Normal<'_> {
    /// The alternatives in which one alternative of each factor holds.
    pub(crate) fn product(
        &mut self,
        at: SchemaId,
        factors: &[Alternatives],
        mode: Mode,
    ) -> Result<Alternatives, GrammarError> {
        if mode == Mode::Differs {
            return self.plain_product(at, factors);
        }
        if mode.is_tracked() {
            return self.tracked_product(at, factors);
        }
        let disjuncts =
            factors.iter().fold(1, |disjuncts: usize, factor| disjuncts.saturating_mul(factor.len().max(1)));
        let choices = factors.iter().filter(|factor| factor.len() > 1).count();
        if disjuncts <= FEW_DISJUNCTS || choices < 2 {
            return self.plain_product(at, factors);
        }
        if mode != Mode::Loose {
            return self.search(at, factors, mode, MAX_LOOKS);
        }
        if self.proofs > MAX_PROOFS {
            return self.loose_product(at, factors);
        }
        let looks = self.looks;
        let outer = std::mem::replace(&mut self.is_loose, true);
        let found = GrammarError::unless_ended("", || self.search(at, factors, mode, looks + LOOSE_LOOKS));
        self.is_loose = outer;
        // The work serves proofs, so it counts as such.
        self.proofs += self.looks - looks;
        self.looks = looks;
        found?
            .or_else(|error| if error.kind == ErrorKind::Limit { self.loose_product(at, factors) } else { Err(error) })
    }

    /// A superset of a product: of the factors with several alternatives, only the smallest is used.
    fn loose_product(&mut self, at: SchemaId, factors: &[Alternatives]) -> Result<Alternatives, GrammarError> {
        self.check_time(at)?;
        let smallest = (0..factors.len()).filter(|&place| factors[place].len() > 1).min_by_key(|&at| factors[at].len());
        let some = (0..factors.len()).filter(|&place| factors[place].len() == 1 || Some(place) == smallest);
        let some: Vec<Alternatives> = some.map(|place| factors[place].clone()).collect();
        self.plain_product(at, &some)
    }

    /// A product in which every combination matters, because its annotations do.
    fn tracked_product(&mut self, at: SchemaId, factors: &[Alternatives]) -> Result<Alternatives, GrammarError> {
        let mut product: Alternatives = [Conjunction::from([])].into();
        for factor in factors {
            let before = product.len();
            product = self.plain_product(at, &[product, factor.clone()])?;
            if product.len() > MANY && product.len() > before.max(factor.len()) {
                product = self.possible(at, &product)?;
            }
        }
        Ok(product)
    }

    pub(crate) fn plain_product(&self, at: SchemaId, factors: &[Alternatives]) -> Result<Alternatives, GrammarError> {
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
            if cost > MAX_PRODUCT.max(size(&product) + size(factor)) {
                return Err(self.too_many(at));
            }
            let mut sum = Sum::default();
            let mut impossible = None;
            for left in product.iter() {
                self.check_time(at)?;
                for right in factor.iter() {
                    let both = joined(left, right);
                    if self.is_contradiction(&both) {
                        impossible.get_or_insert(both);
                    } else {
                        sum.push(both);
                    }
                }
                if sum.list.len() > MAX_ALTERNATIVES {
                    return Err(self.too_many(at));
                }
            }
            if sum.list.is_empty() {
                // Kept to explain why nothing fits.
                sum.list.extend(impossible);
            }
            product = sum.list.into();
        }
        Ok(product)
    }

    /// The alternatives that are possible; if there are none, one of the impossible ones.
    pub(crate) fn possible(&mut self, at: SchemaId, all: &Alternatives) -> Result<Alternatives, GrammarError> {
        let mut kept: Vec<Conjunction> = Vec::with_capacity(all.len());
        for one in all.iter() {
            self.look(at, one, MAX_LOOKS)?;
            if !self.is_empty(one, 1)? {
                kept.push(one.clone());
            }
        }
        if kept.is_empty() {
            kept.extend(all.first().cloned());
        }
        Ok(kept.into())
    }

    /// Counts a close examination.
    pub(crate) fn look(&mut self, at: SchemaId, all: &Conjunction, most: usize) -> Result<(), GrammarError> {
        self.check_time(at)?;
        self.looks += 1 + all.len();
        if self.looks > most { Err(self.too_many(at)) } else { Ok(()) }
    }

    /// Whether atoms obviously exclude each other.
    pub(crate) fn is_contradiction(&self, all: &[Atom]) -> bool {
        if all.iter().fold(Types::ALL, |types, atom| types.and(self.types_of(*atom))).is_empty() {
            return true;
        }
        let document = self.schemas.document;
        all.iter().any(|atom| match *atom {
            Atom::Lacks { name, .. } => {
                let name = document.name(name);
                all.iter().any(|other| matches!(*other, Atom::Has { name: other, .. } if document.name(other) == name))
            }
            Atom::Broken { schema, .. } => all.contains(&Atom::Own(schema)),
            _ => false,
        })
    }

    /// Fails if the time is over.
    pub(crate) fn check_time(&self, at: SchemaId) -> Result<(), GrammarError> {
        check_time().map_err(|limit| GrammarError::limit(self.schemas.place(at), limit))
    }

    /// As [`Normal::check_time`], after this many alternatives, each of which takes a fraction of a usual step.
    pub(crate) fn check_time_after(&self, at: SchemaId, alternatives: usize) -> Result<(), GrammarError> {
        let steps = (alternatives / ALTERNATIVES_OF_A_STEP) as u32 + 1;
        check_time_after(steps).map_err(|limit| GrammarError::limit(self.schemas.place(at), limit))
    }

    #[cold]
    pub(crate) fn too_many(&self, at: SchemaId) -> GrammarError {
        // A value that others must differ from is not a schema.
        if at.scope == 0 && self.schemas.by_value[at.value.0 as usize] == Schemas::NONE {
            let message = "not: a value of enum or const has too many parts to differ in; negate less";
            return GrammarError::new(ErrorKind::Limit, self.schemas.place(at), message);
        }
        let names: Vec<&str> = self.schemas.combining(at).collect();
        let names = if names.is_empty() { "the schemas for one value".to_string() } else { names.join(", ") };
        let message = format!(
            "{names}: multiplies out to too many alternatives; move the common part into the branches, give the branches a \
             required key whose const differs, use anyOf instead of oneOf, or drop some"
        );
        GrammarError::new(ErrorKind::Limit, self.schemas.place(at), message)
    }
}
