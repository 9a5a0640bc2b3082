//! Properties of definitions that spread to those that name them, such as that a rule may be empty: the least such set.
//!
//! A definition is looked at again only when one that it names has got the property, so that chains of definitions cost
//! as much as they are long, in whatever order they are written.

use super::tree::{Definition, Part, Unit};
use crate::ir::syntax_error::SyntaxError;

/// For every definition, whether it has a property: the least fixed point of `has`, which decides it for one
/// definition, given which others have the property. `has` must be monotone.
///
/// # Errors
/// [`SyntaxError`] if the time is over.
pub(super) fn spread(unit: &Unit, has: impl Fn(&Definition, &[bool]) -> bool) -> Result<Vec<bool>, SyntaxError> {
    let count = unit.definitions.len();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (user, definition) in unit.definitions.values().enumerate() {
        for id in unit.parts_of(definition) {
            if let Part::Name { name, .. } = unit.part(id)
                && let Some(used) = unit.definitions.get_index_of(name)
            {
                users[used].push(user);
            }
        }
    }
    let mut found = vec![false; count];
    let mut waiting: Vec<usize> = (0..count).collect();
    while let Some(index) = waiting.pop() {
        let definition = &unit.definitions[index];
        SyntaxError::check_time(definition.place)?;
        if !found[index] && has(definition, &found) {
            found[index] = true;
            waiting.append(&mut users[index]);
        }
    }
    Ok(found)
}
