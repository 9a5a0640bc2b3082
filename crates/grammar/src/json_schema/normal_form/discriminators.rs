//! By which values branches are distinguished at a glance: their own, or those of one required member.
//!
//! Hundreds of branches that each allow one value make tens of thousands of pairs, of which none need be looked at
//! closely.

use stencilm_support::HashMap;

use super::atoms::Term;
use super::merged::Merged;
use super::normal::Normal;
use crate::json_schema::read::document::JsonId;
use crate::json_schema::read::document::ValueId;
use crate::json_schema::read::schema::{Keyword, SchemaId, Types};

/// The greatest number of values of one branch that are compared.
const MAX_VALUES: usize = 64;
/// The length of the longest chain of references that is followed.
const MAX_HOPS: usize = 8;

/// What lists the values: the branch itself (`None`), or a member that it requires.
type Place<'a> = Option<&'a str>;

/// The values of a branch at one place, as sorted numbers; `None` if it lists none.
type Values = Option<Vec<ValueId>>;

/// For each place, how many alternatives of a branch list values there, and which.
type Places<'a> = HashMap<Place<'a>, (usize, Vec<ValueId>)>;

/// The values that branches list, by place.
#[derive(Default)]
pub(crate) struct Marks<'a> {
    /// For every branch, the number of its alternatives, and what they list.
    branches: Vec<(usize, Places<'a>)>,
}

impl<'a> Marks<'a> {
    /// Begins a branch with this many alternatives.
    pub(crate) fn next_branch(&mut self, alternatives: usize) {
        self.branches.push((alternatives, HashMap::default()));
    }

    /// Adds an alternative to the last branch.
    pub(crate) fn add(&mut self, normal: &Normal<'a>, merged: &Merged<'a>) {
        let document = normal.schemas.document;
        let Some((_, places)) = self.branches.last_mut() else { return };
        let mut add = |place: Place<'a>, values: &[JsonId]| {
            if values.len() > MAX_VALUES {
                return;
            }
            let (count, known) = places.entry(place).or_default();
            *count += 1;
            for &value in values {
                known.push(document.value_id(value));
            }
        };
        if let Some(values) = &merged.values {
            add(None, &values.value);
        }
        if merged.types != Types::OBJECT {
            return;
        }
        for (&name, known) in merged.known.iter().filter(|(_, known)| known.required.is_some()) {
            let listed = known.value.iter().find_map(|term| match *term {
                Term::Holds(id) => listed(normal, id),
                _ => None,
            });
            if let Some(values) = listed {
                add(Some(name), values);
            }
        }
    }

    /// For every branch, its values at the place where most branches list values.
    pub(crate) fn best(self) -> Vec<Values> {
        let mut counts: HashMap<Place<'a>, usize> = HashMap::default();
        for (alternatives, places) in &self.branches {
            for (place, _) in places.iter().filter(|(_, (count, _))| count == alternatives) {
                *counts.entry(*place).or_default() += 1;
            }
        }
        // Ties are resolved by order, because the same schema must always give the same result.
        let best = counts.iter().max_by_key(|(place, count)| (**count, std::cmp::Reverse(**place)));
        let Some((&best, _)) = best else { return vec![None; self.branches.len()] };
        let of_branch = |(alternatives, mut places): (usize, Places<'a>)| {
            let (count, mut values) = places.remove(&best)?;
            values.sort_unstable();
            (count == alternatives).then_some(values)
        };
        self.branches.into_iter().map(of_branch).collect()
    }
}

/// The values that a schema lists.
fn listed<'a>(normal: &Normal<'a>, mut id: SchemaId) -> Option<&'a [JsonId]> {
    let schemas = normal.schemas;
    for _ in 0..MAX_HOPS {
        let mut next = None;
        for keyword in &schemas.get(id).keywords {
            match keyword {
                Keyword::Values(values) => return Some(values),
                Keyword::Ref(target) => next = Some(*target),
                _ => {}
            }
        }
        id = next?;
    }
    None
}

/// Whether both branches list values, and none in common.
pub(crate) fn are_disjoint(left: &Values, right: &Values) -> bool {
    let (Some(left), Some(right)) = (left, right) else { return false };
    let (few, many) = if left.len() < right.len() { (left, right) } else { (right, left) };
    few.iter().all(|value| many.binary_search(value).is_err())
}
