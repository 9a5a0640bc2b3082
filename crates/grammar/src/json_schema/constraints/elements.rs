//! What a conjunction asks of the elements of an array: by place, and how many of a kind.

use crate::json_schema::normal_form::atoms::{Atom, Term};
use crate::json_schema::normal_form::evaluated::evaluated;
use crate::json_schema::normal_form::merge::Merger;
use crate::json_schema::normal_form::merged::{Contains, with};
use crate::json_schema::read::document::{Json, JsonId};
use crate::json_schema::read::schema::{Keyword, SchemaId, Types};

/// What one schema says about elements: each of the first ones separately, then all others.
struct List<'a> {
    prefix: &'a [SchemaId],
    /// How many of the first elements it constrains or evaluates; at least the number of prefix schemas.
    spoken_of: usize,
    rest: Option<Term>,
}

impl<'a> Merger<'a, '_> {
    /// Adds what atoms require of elements.
    pub(crate) fn add_elements(&mut self, all: &[Atom]) {
        let mut lists: Vec<List<'a>> = Vec::new();
        // Requirements on single elements that no list contains.
        let mut single: Vec<(usize, Term)> = Vec::new();
        for &atom in all {
            match atom {
                Atom::Own(id) => {
                    let mut list = List { prefix: &[], spoken_of: 0, rest: None };
                    for keyword in &self.schemas.get(id).keywords {
                        match keyword {
                            Keyword::PrefixItems(prefix) => list.prefix = prefix,
                            Keyword::Items(rest) => list.rest = Some(Term::Holds(*rest)),
                            Keyword::Contains { schema, min, max } => {
                                self.add_contains(id, vec![Term::Holds(*schema)], 0, *min, *max);
                            }
                            _ => {}
                        }
                    }
                    if list.rest.is_some() || !list.prefix.is_empty() {
                        list.spoken_of = list.prefix.len();
                        lists.push(list);
                    }
                }
                Atom::Broken { schema, keyword, part } => {
                    let keywords = &self.schemas.get(schema).keywords;
                    match &keywords[keyword as usize] {
                        Keyword::PrefixItems(parts) => {
                            single.push((part as usize, Term::Fails(parts[part as usize])));
                        }
                        Keyword::Items(rest) => {
                            let from = keywords.iter().find_map(|keyword| match keyword {
                                Keyword::PrefixItems(prefix) => Some(prefix.len()),
                                _ => None,
                            });
                            self.add_contains(schema, vec![Term::Fails(*rest)], from.unwrap_or(0), 1, None);
                        }
                        Keyword::Contains { schema: inner, min, max } => {
                            let (min, max) = match part {
                                0 => (0, Some(min.saturating_sub(1))),
                                _ => (max.map_or(u32::MAX, |max| max + 1), None),
                            };
                            self.add_contains(schema, vec![Term::Holds(*inner)], 0, min, max);
                        }
                        _ => {}
                    }
                }
                Atom::Unevaluated { schema, keyword, seen, broken } => {
                    self.add_unevaluated_items((schema, keyword), seen, broken, &mut lists);
                }
                Atom::Differs { value, reason } => self.add_list_difference(value, reason, &mut single),
                _ => {}
            }
        }
        let longest = lists.iter().map(|list| list.spoken_of).chain(single.iter().map(|(place, _)| place + 1)).max();
        let at = |place: usize| {
            let of_lists = lists.iter().filter_map(|list| match list.prefix.get(place) {
                Some(&schema) => Some(Term::Holds(schema)),
                None => list.rest.filter(|_| place >= list.spoken_of),
            });
            let of_single = single.iter().filter(|(single, _)| *single == place).map(|&(_, term)| term);
            of_lists.chain(of_single).fold(Vec::new(), with)
        };
        self.merged.prefix = (0..longest.unwrap_or(0)).map(at).collect();
        self.merged.rest = at(usize::MAX);
    }

    /// Requires that an array differs from the given value, for one of the possible reasons.
    fn add_list_difference(&mut self, value: JsonId, reason: u32, single: &mut Vec<(usize, Term)>) {
        let Json::Array(items) = self.schemas.document.get(value) else { return };
        let (at, count) = (self.schemas.root, items.len() as u32);
        match reason {
            0 => {}
            1 if count == 0 => self.rule_out(Types::ARRAY, at, "no array has less than no element".into()),
            1 => self.merged.max_items = Some(self.merged.max_items.map_or(count - 1, |max| max.min(count - 1))),
            2 => self.add_min_items(at, count + 1),
            reason => {
                let place = reason as usize - 3;
                self.add_min_items(at, place as u32 + 1);
                single.push((place, Term::Differs(items[place])));
            }
        }
    }

    fn add_contains(&mut self, at: SchemaId, terms: Vec<Term>, from: usize, min: u32, max: Option<u32>) {
        if min == 0 && max.is_none() {
            return;
        }
        // Two counts of the same elements become one, within both bounds.
        if let Some(known) = self.merged.contains.iter_mut().find(|known| known.from == from && known.terms == terms) {
            known.min = known.min.max(min);
            known.max = known.max.into_iter().chain(max).min();
        } else {
            self.merged.contains.push(Contains { terms, from, min, max, at });
        }
    }

    fn add_unevaluated_items(
        &mut self,
        (holder, keyword): (SchemaId, u32),
        seen: u32,
        broken: bool,
        lists: &mut Vec<List<'a>>,
    ) {
        let Keyword::UnevaluatedItems(inner) = &self.schemas.get(holder).keywords[keyword as usize] else { return };
        let (spoken_of, counted) = evaluated(self.schemas, holder, self.normal.seen(seen));
        if broken {
            if spoken_of == usize::MAX {
                let message = "unevaluatedItems cannot fail, since all elements are evaluated".to_string();
                self.rule_out(Types::ARRAY, holder, message);
                return;
            }
            let terms = std::iter::once(*inner).chain(counted).map(Term::Fails).collect();
            self.add_contains(holder, terms, spoken_of, 1, None);
        } else if spoken_of < usize::MAX {
            let terms: Vec<Term> = std::iter::once(*inner).chain(counted).map(Term::Holds).collect();
            let rest = self.normal.known_any(&terms);
            lists.push(List { prefix: &[], spoken_of, rest });
        }
    }

    /// Strict mode: elements that no schema mentions are forbidden.
    pub(crate) fn close_elements(&mut self, all: &[Atom]) {
        let has_prefix = all.iter().any(|atom| match atom {
            Atom::Own(id) => {
                self.schemas.get(*id).keywords.iter().any(|keyword| matches!(keyword, Keyword::PrefixItems(_)))
            }
            _ => false,
        });
        self.merged.closed_items = has_prefix && self.merged.rest.is_empty();
    }

    pub(crate) fn find_element_clashes(&mut self) {
        if let (Some(_), Some(at)) = (self.merged.unique, self.merged.repeated) {
            let message = "uniqueItems must hold and must not, so no array fits".to_string();
            self.rule_out(Types::ARRAY, at, message);
        }
        let merged = &self.merged;
        let Some((at, message)) = merged.contains.iter().find_map(|contains| {
            let above = contains.max.is_some_and(|max| max < contains.min);
            let longest =
                merged.max_items.filter(|&max| u64::from(max) < u64::from(contains.min) + contains.from as u64);
            if above {
                let max = contains.max.unwrap_or(0);
                Some((
                    contains.at,
                    format!("minContains {} is above maxContains {max}, so no array fits", contains.min),
                ))
            } else {
                longest.map(|max| {
                    let message = format!(
                        "contains asks for {} elements and maxItems {max} leaves no room for them, so no array fits",
                        contains.min
                    );
                    (contains.at, message)
                })
            }
        }) else {
            return;
        };
        self.rule_out(Types::ARRAY, at, message);
    }
}
