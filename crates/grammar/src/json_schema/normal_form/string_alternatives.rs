//! Alternatives that speak of nothing but types and texts are one atom: a text under "all of these, any of those" is
//! one expression, with `&` and `|` where the schema has them.
//!
//! Multiplied out, the same text would be read under every combination of patterns at once.

use super::atoms::Atom;
use super::goals::{Alternatives, Conjunction, Texts};
use super::merge::merge;
use super::merged::Merged;
use super::normal::Normal;
use crate::json_schema::read::schema::{Keyword, Types};

/// The greatest nesting depth of string alternatives, and thus of the expressions built for them.
const MAX_LEVEL: usize = 12;

impl<'a> Normal<'a> {
    /// The same alternatives, with those that only constrain strings joined into one.
    pub(crate) fn with_texts_joined(&mut self, all: &Alternatives) -> Alternatives {
        let (texts, mut others): (Vec<Conjunction>, Vec<Conjunction>) =
            all.iter().cloned().partition(|one| !one.is_empty() && one.iter().all(|&atom| self.is_of_texts(atom)));
        if texts.len() < 2 {
            return all.clone();
        }
        let level = 1 + texts.iter().flat_map(|one| one.iter()).map(|&atom| self.text_level(atom)).max().unwrap_or(0);
        if level > MAX_LEVEL {
            return all.clone();
        }
        let types_of = |one: &Conjunction| one.iter().fold(Types::ALL, |types, atom| types.and(self.types_of(*atom)));
        let types = texts.iter().map(types_of).fold(Types::NONE, Types::or);
        let id = self.texts.len() as u32;
        self.texts.push(Texts { alternatives: texts.into(), types, level });
        others.push([Atom::Texts(id)].into());
        others.into()
    }

    fn text_level(&self, atom: Atom) -> usize {
        if let Atom::Texts(id) = atom { self.texts[id as usize].level } else { 0 }
    }

    fn is_of_texts(&self, atom: Atom) -> bool {
        match atom {
            Atom::Own(id) => {
                let schema = self.schemas.get(id);
                !schema.never
                    && schema.keywords.iter().all(|keyword| keyword.applies_in_place() || is_of_texts(keyword))
            }
            Atom::Broken { schema, keyword, .. } => is_of_texts(&self.schemas.get(schema).keywords[keyword as usize]),
            Atom::Texts(_) => true,
            _ => false,
        }
    }

    /// The constraints of each of the alternatives that allow strings.
    pub(crate) fn text_alternatives(&self, id: u32) -> Vec<Merged<'a>> {
        let all = self.texts[id as usize].alternatives.iter();
        all.map(|one| merge(self, one)).filter(|merged| merged.types.meets(Types::STRING)).collect()
    }
}

fn is_of_texts(keyword: &Keyword) -> bool {
    matches!(
        keyword,
        Keyword::Type(_) | Keyword::Pattern(_) | Keyword::Format(_) | Keyword::MinLength(_) | Keyword::MaxLength(_)
    )
}
