//! Whether what is already asked of a value implies one more thing: then a choice that offers it is no choice.
//!
//! A `oneOf` says of each branch that all others fail, and each of them may fail by many disjuncts. As soon as a branch
//! holds whose discriminator differs, the others fail by that alone, and their other disjuncts need not be multiplied
//! out.

use super::atoms::{Atom, Term};
use super::goals::Mode;
use super::merged::Merged;
use super::normal::MAX_PROOFS;
use super::normal::Normal;
use crate::error::GrammarError;
use crate::json_schema::read::document::JsonId;
use crate::json_schema::read::document::ValueId;
use crate::json_schema::read::schema::{Keyword, SchemaId, Types};

/// The greatest number of `enum` values that are compared with those of another `enum`.
const MAX_VALUES: usize = 64;

impl Normal<'_> {
    /// Whether an atom follows from the merged ones.
    pub(crate) fn implies_atom(&mut self, merged: &Merged, atom: Atom) -> Result<bool, GrammarError> {
        let document = self.schemas.document;
        let is_object = merged.types == Types::OBJECT;
        // No member can be present that nothing names.
        let is_closed = merged.rules.is_empty() && merged.additional.iter().any(|&term| self.never_holds(term));
        match atom {
            Atom::Broken { schema, keyword, part } => match &self.schemas.get(schema).keywords[keyword as usize] {
                Keyword::Type(types) => Ok(!merged.types.meets(*types)),
                Keyword::Values(values) => {
                    let Some(own) = &merged.values else { return Ok(false) };
                    if own.value.len() > MAX_VALUES || values.len() > MAX_VALUES {
                        return Ok(false);
                    }
                    let others: Vec<ValueId> = values.iter().map(|&value| document.value_id(value)).collect();
                    Ok(own.value.iter().all(|&value| !others.contains(&document.value_id(value))))
                }
                Keyword::Properties(_) if is_object => {
                    let value = JsonId(part);
                    let Some(known) = merged.known.get(document.key(value)) else { return Ok(false) };
                    Ok(known.required.is_some() && self.apart(&known.value, self.schemas.inner(schema, value))?)
                }
                Keyword::AdditionalProperties(inner) if is_object => {
                    let keywords = &self.schemas.get(schema).keywords;
                    if keywords.iter().any(|keyword| matches!(keyword, Keyword::PatternProperties(_))) {
                        return Ok(false);
                    }
                    let names = keywords.iter().find_map(|keyword| match keyword {
                        Keyword::Properties(map) => document.entries(*map),
                        _ => None,
                    });
                    for (name, known) in merged.known.iter() {
                        let is_outside = names.is_none_or(|names| !names.contains_key(name));
                        if known.required.is_some() && is_outside && self.apart(&known.value, *inner)? {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                }
                _ => Ok(false),
            },
            Atom::MemberFails { schema, name } if is_object => {
                let name = document.name(name);
                let Some(known) = merged.known.get(name) else { return Ok(is_closed) };
                if known.forbidden.is_some() || known.value.iter().any(|&term| self.never_holds(term)) {
                    return Ok(true);
                }
                let property = self.schemas.get(schema).keywords.iter().find_map(|keyword| match keyword {
                    Keyword::Properties(map) => document.entries(*map)?.get(name).copied(),
                    _ => None,
                });
                match property {
                    Some(property) => self.apart(&known.value, self.schemas.inner(schema, property)),
                    None => Ok(false),
                }
            }
            Atom::Has { name, .. } if is_object => {
                Ok(merged.known.get(document.name(name)).is_some_and(|known| known.required.is_some()))
            }
            Atom::Lacks { name, .. } => {
                let known = merged.known.get(document.name(name));
                Ok(!merged.types.meets(Types::OBJECT) || known.map_or(is_closed, |known| known.forbidden.is_some()))
            }
            _ => Ok(false),
        }
    }

    /// Whether a term is the schema `false`.
    pub(crate) fn never_holds(&self, term: Term) -> bool {
        matches!(term, Term::Holds(id) if self.schemas.get(id).never)
    }

    /// Whether it's certain that no value meets all terms and the schema as well.
    fn apart(&mut self, terms: &[Term], schema: SchemaId) -> Result<bool, GrammarError> {
        if self.schemas.get(schema).never {
            return Ok(true);
        }
        // The loose form is computed only to decide this. Within it the question isn't asked again, because it would
        // never end for a recursive member.
        if self.is_loose || self.proofs > MAX_PROOFS {
            return Ok(false);
        }
        let mut all = terms.to_vec();
        all.push(Term::Holds(schema));
        // What is too much to multiply out, or circular, is not proven to be disjoint.
        let loose = GrammarError::decided("", || self.alternatives_in(&all, Mode::Loose))?;
        let Some(alternatives) = loose else { return Ok(false) };
        for alternative in alternatives.iter() {
            if !self.is_empty(alternative, 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
