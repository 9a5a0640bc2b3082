//! What a conjunction asks of the members of an object: by key, by patterns of keys, of the rest, and how many.

use std::rc::Rc;

use crate::json_schema::normal_form::atoms::{Atom, Term};
use crate::json_schema::normal_form::cases::{Case, MemberValues};
use crate::json_schema::normal_form::merge::Merger;
use crate::json_schema::normal_form::merged::{KeyRule, Keys, with};
use crate::json_schema::read::document::{Entries, Json, JsonId};
use crate::json_schema::read::schema::{Keyword, SchemaId, Types};

/// What one schema says about the members that it doesn't name.
struct Rest<'a> {
    /// The members that are named: in its own `properties`, or in those of several schemas.
    named: Named<'a>,
    value: Term,
}

enum Named<'a> {
    Own(Option<&'a Entries<'a>>),
    Several(Rc<[SchemaId]>),
}

impl<'a> Merger<'a, '_> {
    /// Adds what atoms require of members.
    pub(crate) fn add_members(&mut self, all: &[Atom]) {
        let document = self.schemas.document;
        let mut rests: Vec<Rest<'a>> = Vec::new();
        // Requirements on single members that come from elsewhere.
        let mut single: Vec<(&'a str, Term)> = Vec::new();
        for &atom in all {
            match atom {
                Atom::Own(id) => self.add_own_members(id, &mut rests),
                Atom::Broken { schema, keyword, part } => {
                    let keyword = &self.schemas.get(schema).keywords[keyword as usize];
                    self.add_broken_members(schema, keyword, JsonId(part), &mut single);
                }
                Atom::MemberFails { schema, name } => self.add_failing_member(schema, name, &mut single),
                Atom::Lacks { name, at } => {
                    self.merged
                        .known
                        .get_or_insert_with(document.name(name), Default::default)
                        .forbidden
                        .get_or_insert(at);
                }
                Atom::Unevaluated { schema, keyword, seen, broken } => {
                    self.add_unevaluated((schema, keyword), seen, broken, &mut rests);
                }
                Atom::Differs { value, reason } => self.add_difference(value, reason, &mut single),
                Atom::Case(case) => self.add_case(case, &mut single),
                Atom::Has { .. }
                | Atom::Never(_)
                | Atom::Seen(_)
                | Atom::Among(_)
                | Atom::Outside(_)
                | Atom::Texts(_)
                | Atom::Circular(_) => {}
            }
        }
        self.add_required(all);
        let schemas = self.schemas;
        let names = |named: &Named, name: &str| match named {
            Named::Own(entries) => entries.is_some_and(|entries| entries.contains_key(name)),
            Named::Several(list) => list.iter().any(|&schema| {
                schemas.get(schema).keywords.iter().any(|keyword| match keyword {
                    Keyword::Properties(map) => {
                        document.entries(*map).is_some_and(|entries| entries.contains_key(name))
                    }
                    _ => false,
                })
            }),
        };
        for (&name, known) in self.merged.known.iter_mut() {
            let of_rests = rests.iter().filter(|rest| !names(&rest.named, name));
            of_rests.for_each(|rest| known.value.add(rest.value));
        }
        for (name, term) in single {
            let known = self.merged.known.get_or_insert_with(name, Default::default);
            known.value.add(term);
        }
        self.merged.additional = rests.iter().map(|rest| rest.value).fold(Vec::new(), with);
    }

    /// Adds what a schema says about members.
    fn add_own_members(&mut self, id: SchemaId, rests: &mut Vec<Rest<'a>>) {
        let document = self.schemas.document;
        let (mut own, mut patterns, mut additional) = (None, None, None);
        for keyword in &self.schemas.get(id).keywords {
            match keyword {
                Keyword::Properties(map) => own = document.entries(*map),
                Keyword::PatternProperties(map) => patterns = document.entries(*map),
                Keyword::AdditionalProperties(schema) => additional = Some(Term::Holds(*schema)),
                Keyword::PropertyNames(schema) => self.merged.names.push(Term::Holds(*schema)),
                _ => {}
            }
        }
        self.merged.known.reserve(own.map_or(0, Entries::len));
        for (name, &value) in own.into_iter().flat_map(|entries| entries.iter()) {
            let known = self.merged.known.get_or_insert_with(name, Default::default);
            known.is_declared = true;
            known.value.add(Term::Holds(self.schemas.inner(id, value)));
        }
        for &value in patterns.into_iter().flat_map(|entries| entries.values()) {
            let term = Term::Holds(self.schemas.inner(id, value));
            self.merged.rules.push(KeyRule { keys: Keys::Match(value), value: Some(term), at: id });
        }
        match (additional, patterns) {
            (Some(value), None) => rests.push(Rest { named: Named::Own(own), value }),
            (Some(value), Some(_)) => {
                let keys = Keys::Outside([id].into());
                self.merged.rules.push(KeyRule { keys, value: Some(value), at: id });
            }
            (None, _) => {}
        }
    }

    /// Adds what follows for members if one part of a keyword doesn't hold.
    fn add_broken_members(
        &mut self,
        schema: SchemaId,
        keyword: &Keyword,
        value: JsonId,
        single: &mut Vec<(&'a str, Term)>,
    ) {
        let document = self.schemas.document;
        // Every value fails the schema `false`.
        let failing = |inner: SchemaId| (!self.schemas.get(inner).never).then_some(Term::Fails(inner));
        let some = &mut self.merged.some;
        let mut some = |keys: Keys, value: Option<Term>| some.push(KeyRule { keys, value, at: schema });
        match keyword {
            Keyword::Properties(_) => {
                let name = document.key(value);
                single.push((name, Term::Fails(self.schemas.inner(schema, value))));
                self.merged.known.get_or_insert_with(name, Default::default).required.get_or_insert(schema);
            }
            Keyword::PatternProperties(_) => {
                some(Keys::Match(value), failing(self.schemas.inner(schema, value)));
            }
            Keyword::AdditionalProperties(inner) => {
                // A key that the schema names is none of the failing ones.
                for keyword in &self.schemas.get(schema).keywords {
                    let Keyword::Properties(map) = keyword else { continue };
                    for name in document.entries(*map).into_iter().flat_map(|entries| entries.keys()) {
                        self.merged.known.get_or_insert_with(name, Default::default);
                    }
                }
                let speaks_of_keys =
                    |keyword: &Keyword| matches!(keyword, Keyword::Properties(_) | Keyword::PatternProperties(_));
                match failing(*inner) {
                    // Any member at all is one too many.
                    None if !self.schemas.get(schema).keywords.iter().any(speaks_of_keys) => {
                        self.add_min_members(schema, 1);
                    }
                    value => self.merged.some.push(KeyRule { keys: Keys::Outside([schema].into()), value, at: schema }),
                }
            }
            Keyword::PropertyNames(inner) => some(Keys::Fail(*inner), None),
            _ => {}
        }
    }

    /// Requires that the member of a name, if present, is not an instance of its property.
    fn add_failing_member(&mut self, schema: SchemaId, name: JsonId, single: &mut Vec<(&'a str, Term)>) {
        let document = self.schemas.document;
        let name = document.name(name);
        let property = self.schemas.get(schema).keywords.iter().find_map(|keyword| match keyword {
            Keyword::Properties(map) => document.entries(*map)?.get(name).copied(),
            _ => None,
        });
        let property = property.map(|value| self.schemas.inner(schema, value));
        match property.filter(|&property| !self.normal.always_holds(property)) {
            Some(property) => {
                self.merged.known.get_or_insert_with(name, Default::default);
                single.push((name, Term::Fails(property)));
            }
            None => {
                self.merged.known.get_or_insert_with(name, Default::default).forbidden.get_or_insert(schema);
            }
        }
    }

    fn add_required(&mut self, all: &[Atom]) {
        let document = self.schemas.document;
        for &atom in all {
            match atom {
                Atom::Own(id) => {
                    for keyword in &self.schemas.get(id).keywords {
                        let Keyword::Required(names) = keyword else { continue };
                        for name in document.strings(*names) {
                            let known = self.merged.known.get_or_insert_with(name, Default::default);
                            known.is_declared = true;
                            known.required.get_or_insert(id);
                        }
                    }
                }
                Atom::Has { name, at } => {
                    self.merged
                        .known
                        .get_or_insert_with(document.name(name), Default::default)
                        .required
                        .get_or_insert(at);
                }
                _ => {}
            }
        }
    }

    fn add_unevaluated(
        &mut self,
        (holder, keyword): (SchemaId, u32),
        seen: u32,
        broken: bool,
        rests: &mut Vec<Rest<'a>>,
    ) {
        let Keyword::UnevaluatedProperties(inner) = &self.schemas.get(holder).keywords[keyword as usize] else {
            return;
        };
        let seen = self.normal.seen(seen).clone();
        let speaks_of_all = |schema: SchemaId| {
            self.schemas.get(schema).keywords.iter().any(|keyword| match keyword {
                Keyword::AdditionalProperties(_) => true,
                Keyword::UnevaluatedProperties(_) => schema != holder,
                _ => false,
            })
        };
        let has_patterns = |schema: SchemaId| {
            self.schemas.get(schema).keywords.iter().any(|keyword| matches!(keyword, Keyword::PatternProperties(_)))
        };
        match (seen.iter().any(|&schema| speaks_of_all(schema)), broken) {
            (true, true) => {
                let message = "unevaluatedProperties cannot fail, since all members are evaluated".to_string();
                self.rule_out(Types::OBJECT, holder, message);
            }
            (true, false) => {}
            (false, true) => {
                let value = (!self.schemas.get(*inner).never).then_some(Term::Fails(*inner));
                let rule = KeyRule { keys: Keys::Outside(seen), value, at: holder };
                self.merged.some.push(rule);
            }
            (false, false) if seen.iter().any(|&schema| has_patterns(schema)) => {
                let rule = KeyRule { keys: Keys::Outside(seen), value: Some(Term::Holds(*inner)), at: holder };
                self.merged.rules.push(rule);
            }
            (false, false) => rests.push(Rest { named: Named::Several(seen), value: Term::Holds(*inner) }),
        }
    }

    fn add_case(&mut self, case: u32, single: &mut Vec<(&'a str, Term)>) {
        let &Case { name, lacking, values, .. } = &self.normal.cases[case as usize];
        let at = self.schemas.root;
        let known = self.merged.known.get_or_insert_with(name, Default::default);
        match values {
            MemberValues::None => {
                known.forbidden.get_or_insert(at);
            }
            MemberValues::Any => {}
            MemberValues::Among(list) => single.push((name, Term::Among(list))),
            MemberValues::Outside(list) => single.push((name, Term::Outside(list))),
        }
        if !lacking {
            known.required.get_or_insert(at);
        }
    }

    fn add_difference(&mut self, value: JsonId, reason: u32, single: &mut Vec<(&'a str, Term)>) {
        let Json::Object(entries) = self.schemas.document.get(value) else { return };
        let at = self.schemas.root;
        match reason {
            0 => {}
            1 => self.add_min_members(at, entries.len() as u32 + 1),
            reason => {
                let member = (reason as usize - 2) / 2;
                let Some((name, &value)) = entries.iter().nth(member) else { return };
                let known = self.merged.known.get_or_insert_with(name, Default::default);
                if reason % 2 == 0 {
                    known.forbidden.get_or_insert(at);
                } else {
                    known.required.get_or_insert(at);
                    single.push((name, Term::Differs(value)));
                }
            }
        }
    }

    /// Strict mode: members and elements that no schema mentions are forbidden.
    pub(crate) fn close(&mut self, all: &[Atom]) {
        let says = |wanted: fn(&Keyword) -> bool| {
            all.iter().any(|atom| match atom {
                Atom::Own(id) => self.schemas.get(*id).keywords.iter().any(wanted),
                _ => false,
            })
        };
        let about_objects = says(|keyword| match keyword {
            Keyword::Properties(_) | Keyword::Required(_) | Keyword::PatternProperties(_) => true,
            Keyword::Type(types) => types.meets(Types::OBJECT),
            _ => false,
        });
        self.merged.closed = about_objects && self.merged.additional.is_empty();
        self.close_elements(all);
    }

    pub(crate) fn find_member_clashes(&mut self) {
        let merged = &self.merged;
        let both =
            merged.known.iter().find_map(|(&name, known)| Some((name.to_string(), known.required?, known.forbidden?)));
        if let Some((name, required, forbidden)) = both {
            let message =
                format!("the key {name:?} is asked for, and at {} it must not be there", self.schemas.place(forbidden));
            self.rule_out(Types::OBJECT, required, message);
        }
        let merged = &self.merged;
        let never = merged.known.iter().find_map(|(&name, known)| {
            let never = known.value.iter().find(|&&term| self.normal.never_holds(term))?;
            Some((name.to_string(), known.required?, self.normal.schema_of(*never)?))
        });
        if let Some((name, required, never)) = never {
            let message = format!(
                "required names {name:?}, but no value is possible there: at {}, the schema false allows no value",
                self.schemas.place(never)
            );
            self.rule_out(Types::OBJECT, required, message);
        }
        let merged = &self.merged;
        let Some(max) = merged.max_members else { return };
        let required = merged.known.values().filter(|known| known.required.is_some()).count();
        let at = self.min_members_at.or(merged.known.values().find_map(|known| known.required));
        let (min, max) = (merged.min_members, max);
        if min > max {
            let message = format!("minProperties {min} is above maxProperties {max}, so no object fits");
            self.rule_out(Types::OBJECT, at.unwrap_or(self.schemas.root), message);
        } else if required > max as usize {
            let message = format!("{required} keys are required and maxProperties is {max}, so no object fits");
            self.rule_out(Types::OBJECT, at.unwrap_or(self.schemas.root), message);
        }
    }
}
