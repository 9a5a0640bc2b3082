//! What the chosen constraints on a value imply about one more: that it holds too, or that it cannot hold.

use rustc_hash::FxHashSet;

use super::atoms::{Atom, Term};
use super::cases::MemberValues;
use super::merged::Merged;
use super::normal::Normal;
use crate::error::GrammarError;
use crate::json_schema::read::document::JsonId;
use crate::json_schema::read::schema::{Keyword, SchemaId, Types};

/// What is known when a disjunct is examined.
pub(crate) struct Known<'a, 'n> {
    chosen: FxHashSet<Atom>,
    /// Schemas with a part that was chosen to fail.
    broken: FxHashSet<SchemaId>,
    merged: &'n Merged<'a>,
    /// The members whose case was chosen.
    cases: &'n [(&'a str, u32)],
    /// Whether there are already as many required members as are allowed.
    is_full: bool,
}

impl<'a, 'n> Known<'a, 'n> {
    pub(crate) fn new(chosen: &'n [Atom], merged: &'n Merged<'a>, cases: &'n [(&'a str, u32)]) -> Known<'a, 'n> {
        let required = || merged.known.values().filter(|known| known.required.is_some()).count();
        let is_full = merged.max_members.is_some_and(|max| required() >= max as usize);
        let broken = chosen.iter().filter_map(|atom| match atom {
            Atom::Broken { schema, .. } => Some(*schema),
            _ => None,
        });
        Known { broken: broken.collect(), chosen: chosen.iter().copied().collect(), merged, cases, is_full }
    }

    /// The index of the chosen case of a member.
    fn case(&self, name: &str) -> Option<usize> {
        self.cases.iter().find(|(known, _)| *known == name).map(|(_, case)| *case as usize)
    }

    /// Whether there is no room for a member.
    fn leaves_out(&self, name: &str) -> bool {
        self.is_full && self.merged.known.get(name).is_none_or(|known| known.required.is_none())
    }
}

impl<'a> Normal<'a> {
    /// What a disjunct requires beyond what is known; `None` if it cannot hold together with what was chosen.
    pub(crate) fn left_of(
        &mut self,
        known: &Known<'a, '_>,
        disjunct: &[Atom],
    ) -> Result<Option<Vec<Atom>>, GrammarError> {
        let types = disjunct.iter().fold(known.merged.types, |types, atom| types.and(self.types_of(*atom)));
        if types.is_empty() || self.is_contradiction(disjunct) {
            return Ok(None);
        }
        let mut left = Vec::new();
        for &atom in disjunct {
            match self.verdict_of(known, atom)? {
                Some(false) => return Ok(None),
                Some(true) => {}
                None => left.push(atom),
            }
        }
        Ok(Some(left))
    }

    /// Whether an atom follows from the chosen ones (`true`) or contradicts them (`false`); `None` if neither is clear.
    fn verdict_of(&mut self, known: &Known<'a, '_>, atom: Atom) -> Result<Option<bool>, GrammarError> {
        let merged = known.merged;
        if known.chosen.contains(&atom) {
            return Ok(Some(true));
        }
        let document = self.schemas.document;
        match atom {
            Atom::Own(id) => {
                if known.broken.contains(&id) {
                    return Ok(Some(false));
                }
                Ok(self.own_verdict(known, id))
            }
            Atom::Broken { schema, .. } if known.chosen.contains(&Atom::Own(schema)) => Ok(Some(false)),
            Atom::Broken { schema, keyword, part } => {
                if let Keyword::Properties(_) = self.schemas.get(schema).keywords[keyword as usize] {
                    let value = JsonId(part);
                    let property = self.schemas.inner(schema, value);
                    if known.leaves_out(document.key(value)) || self.is_asked(merged, document.key(value), property) {
                        return Ok(Some(false));
                    }
                    if let Some(case) = known.case(document.key(value)) {
                        return Ok(match self.cases[case].values {
                            MemberValues::None => Some(false),
                            values => self.fits(property, values).map(|fits| !fits),
                        });
                    }
                }
                Ok(self.implies_atom(merged, atom)?.then_some(true))
            }
            Atom::MemberFails { schema, name } => {
                let property = self.property(schema, document.name(name));
                let member = merged.known.get(document.name(name));
                if member.is_some_and(|member| member.required.is_some())
                    && property.is_none_or(|property| self.is_asked(merged, document.name(name), property))
                {
                    return Ok(Some(false));
                }
                if let Some(case) = known.case(document.name(name)) {
                    return Ok(match (self.cases[case].values, property) {
                        (MemberValues::None, _) => Some(true),
                        (_, None) => Some(false),
                        (values, Some(property)) => self.fits(property, values).map(|fits| !fits),
                    });
                }
                Ok(self.implies_atom(merged, atom)?.then_some(true))
            }
            Atom::Has { name, .. } | Atom::Lacks { name, .. } => {
                let name = document.name(name);
                let has = match (known.case(name), merged.known.get(name)) {
                    (Some(case), _) => Some(self.cases[case].values != MemberValues::None),
                    (None, Some(member)) if member.forbidden.is_some() => Some(false),
                    (None, Some(member)) if member.required.is_some() && merged.types == Types::OBJECT => Some(true),
                    _ if known.leaves_out(name) => Some(false),
                    _ => None,
                };
                match (has, matches!(atom, Atom::Has { .. })) {
                    (Some(has), wanted) => Ok(Some(has == wanted)),
                    (None, _) => Ok(self.implies_atom(merged, atom)?.then_some(true)),
                }
            }
            _ => Ok(self.implies_atom(merged, atom)?.then_some(true)),
        }
    }

    /// Whether a member, if present, must be an instance of a schema.
    fn is_asked(&mut self, merged: &Merged<'a>, name: &str, property: SchemaId) -> bool {
        merged.known.get(name).is_some_and(|known| {
            known.value.iter().any(|term| matches!(*term, Term::Holds(asked) if self.is_same(asked, property)))
        })
    }

    /// Whether all constraints of a schema on the value itself are known to hold, or one of them is known to fail.
    fn own_verdict(&mut self, known: &Known<'a, '_>, id: SchemaId) -> Option<bool> {
        let Known { merged, cases, .. } = *known;
        let schemas = self.schemas;
        let document = schemas.document;
        let is_object = merged.types == Types::OBJECT;
        let mut all = if schemas.get(id).never { None } else { Some(true) };
        for keyword in &schemas.get(id).keywords {
            if keyword.applies_in_place() || keyword.is_unevaluated() || !keyword.speaks_of(merged.types) {
                continue;
            }
            match keyword {
                Keyword::Properties(map) => {
                    let entries = document.entries(*map)?;
                    let mut settled = 0;
                    for &(name, case) in cases {
                        let Some(&value) = entries.get(name) else { continue };
                        let property = schemas.inner(id, value);
                        match self.cases[case as usize].values {
                            MemberValues::None => settled += 1,
                            values => match self.fits(property, values) {
                                Some(false) => return Some(false),
                                Some(true) => settled += 1,
                                None => {}
                            },
                        }
                    }
                    if settled < entries.len() {
                        all = None;
                    }
                }
                Keyword::Required(names) => {
                    for name in document.strings(*names) {
                        let member = merged.known.get(name);
                        match known.case(name).map(|case| self.cases[case].values) {
                            Some(MemberValues::None) => return Some(false),
                            Some(_) => {}
                            None if is_object && member.is_some_and(|member| member.forbidden.is_some()) => {
                                return Some(false);
                            }
                            None if member.is_some_and(|member| member.required.is_some()) => {}
                            None if is_object && known.leaves_out(name) => return Some(false),
                            None => all = None,
                        }
                    }
                }
                _ => all = None,
            }
        }
        all
    }

    /// The schema of a property, if a schema has that property.
    fn property(&self, id: SchemaId, name: &str) -> Option<SchemaId> {
        let value = self.schemas.get(id).keywords.iter().find_map(|keyword| match keyword {
            Keyword::Properties(map) => self.schemas.document.entries(*map)?.get(name).copied(),
            _ => None,
        });
        value.map(|value| self.schemas.inner(id, value))
    }
}
