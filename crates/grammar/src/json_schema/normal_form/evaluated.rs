//! Which elements of an array are evaluated, where `unevaluatedItems` asks for it.

use crate::json_schema::read::schema::{Keyword, SchemaId, Schemas};
use crate::json_schema::read::vocabulary::Draft;

/// How many of the first elements the seen schemas evaluate, beyond what the holder itself evaluates, and which other
/// elements: those that these schemas count.
pub(crate) fn evaluated(schemas: &Schemas, holder: SchemaId, seen: &[SchemaId]) -> (usize, Vec<SchemaId>) {
    let mut spoken_of = 0;
    let mut counted: Vec<SchemaId> = Vec::new();
    for &schema in seen {
        for keyword in &schemas.get(schema).keywords {
            match keyword {
                Keyword::PrefixItems(prefix) => spoken_of = spoken_of.max(prefix.len()),
                Keyword::Items(_) => spoken_of = usize::MAX,
                Keyword::UnevaluatedItems(_) if schema != holder => spoken_of = usize::MAX,
                // Elements that match are evaluated since 2020-12.
                Keyword::Contains { schema: inner, .. } if schemas.draft(schema) != Draft::D2019 => {
                    counted.push(*inner);
                }
                _ => {}
            }
        }
    }
    (spoken_of, counted)
}
