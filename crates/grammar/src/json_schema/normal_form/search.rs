//! Products by search: each choice first settles what it can of the remaining factors, and only then is there another
//! choice, of the case of a member or of a disjunct of the smallest factor (Davis, Logemann, Loveland 1962).
//!
//! A factor that the choices imply is done; a factor with one disjunct left is no choice; and if one has none left, the
//! whole is impossible. So the work grows with the resulting alternatives, not with the number of combinations.

use indexmap::IndexMap;
use rustc_hash::FxHashSet;
use stencilm_support::HashMap;

use super::atoms::{Atom, Term};
use super::cases::{Case, MemberValues};
use super::goals::{Alternatives, Conjunction, Mode};
use super::merge::merge;
use super::normal::Normal;
use super::propagation::Known;
use super::sums::{MANY, MAX_ALTERNATIVES};
use crate::error::GrammarError;
use crate::json_schema::read::document::JsonId;
use crate::json_schema::read::document::ValueId;
use crate::json_schema::read::schema::{Keyword, SchemaId, Types};

/// The index of atoms that were chosen without a factor: they come after all others.
const NO_FACTOR: u32 = u32::MAX;

/// A factor, given by its index, with its remaining disjuncts.
#[derive(Clone)]
struct Factor {
    place: u32,
    disjuncts: Alternatives,
}

/// A branch of the search.
#[derive(Clone, Default)]
struct Branch<'a> {
    /// What holds, each atom with the index of the factor that it comes from.
    chosen: Vec<(u32, Atom)>,
    /// The same atoms, as a set.
    known: FxHashSet<Atom>,
    /// The factors that are not settled yet.
    left: Vec<Factor>,
    /// The members whose case was chosen, with the index of that case.
    cases: Vec<(&'a str, u32)>,
}

impl Branch<'_> {
    fn choose(&mut self, place: u32, disjunct: &[Atom]) {
        for &atom in disjunct {
            if self.known.insert(atom) {
                self.chosen.push((place, atom));
            }
        }
    }

    /// All atoms in the order of the factors, which is that of the text.
    fn conjunction(&self) -> Conjunction {
        let mut chosen = self.chosen.clone();
        chosen.sort_by_key(|(place, _)| *place);
        chosen.into_iter().map(|(_, atom)| atom).collect()
    }
}

impl<'a> Normal<'a> {
    /// The alternatives in which one alternative of each factor holds.
    pub(crate) fn search(
        &mut self,
        at: SchemaId,
        factors: &[Alternatives],
        mode: Mode,
        most_looks: usize,
    ) -> Result<Alternatives, GrammarError> {
        let mut root = Branch::default();
        for (place, disjuncts) in (0..).zip(factors) {
            let disjuncts = self.with_texts_joined(disjuncts);
            root.left.push(Factor { place, disjuncts });
        }
        let mut impossible = None;
        let mut found: Vec<Branch<'a>> = Vec::new();
        let mut work = vec![root];
        while let Some(mut branch) = work.pop() {
            if let Some(why) = self.settle(at, &mut branch, most_looks)? {
                impossible.get_or_insert(why);
            } else if branch.left.is_empty() {
                found.push(branch);
                if found.len() > MAX_ALTERNATIVES {
                    return Err(self.too_many(at));
                }
            } else {
                let before = work.len();
                match self.cases_for(&branch) {
                    Some((name, cases)) => work.extend(cases.into_iter().map(|case| self.in_case(&branch, name, case))),
                    None => work.extend(by_disjuncts(&branch)),
                }
                work[before..].reverse();
            }
        }
        let found = self.joined_cases(found);
        let all: Alternatives = match impossible {
            // Kept to explain why nothing fits.
            Some(why) if found.is_empty() => [why].into(),
            _ => found.into(),
        };
        if mode != Mode::Loose && all.len() > MANY { self.possible(at, &all) } else { Ok(all) }
    }

    /// Settles the factors that the choices decide; returns the contradiction if there is one.
    fn settle(
        &mut self,
        at: SchemaId,
        branch: &mut Branch<'a>,
        most_looks: usize,
    ) -> Result<Option<Conjunction>, GrammarError> {
        loop {
            let chosen: Conjunction = branch.chosen.iter().map(|(_, atom)| *atom).collect();
            self.look(at, &chosen, most_looks)?;
            let merged = merge(self, &chosen);
            if merged.is_impossible() {
                return Ok(Some(chosen));
            }
            let cases = branch.cases.clone();
            let facts = Known::new(&chosen, &merged, &cases);
            let before = branch.chosen.len();
            let mut left = Vec::with_capacity(branch.left.len());
            for factor in std::mem::take(&mut branch.left) {
                let mut disjuncts = Vec::with_capacity(factor.disjuncts.len());
                let mut open = Vec::with_capacity(factor.disjuncts.len());
                // What is known when the disjuncts are examined; computed on demand.
                let mut known = None;
                for disjunct in factor.disjuncts.iter() {
                    let Some(asks) = self.left_of(&facts, disjunct)? else { continue };
                    disjuncts.push(disjunct.clone());
                    open.push(asks);
                    if open.last().is_some_and(Vec::is_empty) || self.is_no_choice(&open) {
                        let settled =
                            disjunct.iter().copied().filter(|atom| open.iter().all(|asks| !asks.contains(atom)));
                        known = Some(settled.collect::<Vec<Atom>>());
                        break;
                    }
                }
                if let Some(settled) = known {
                    // What it requires is already known, but the members that it names affect the order of members.
                    let own: Vec<Atom> = settled.into_iter().filter(|atom| matches!(atom, Atom::Own(_))).collect();
                    branch.choose(factor.place, &own);
                } else if let [only] = &*disjuncts {
                    branch.choose(factor.place, only);
                } else if disjuncts.is_empty() {
                    let mut why = branch.clone();
                    if let Some(disjunct) = factor.disjuncts.first() {
                        why.choose(factor.place, disjunct);
                    }
                    return Ok(Some(why.conjunction()));
                } else {
                    let is_same = disjuncts.len() == factor.disjuncts.len();
                    left.push(Factor {
                        disjuncts: if is_same { factor.disjuncts } else { disjuncts.into() },
                        ..factor
                    });
                }
            }
            branch.left = left;
            if branch.chosen.len() == before {
                return Ok(None);
            }
        }
    }

    /// Whether the last disjunct requires the presence of a key and another one its absence, or vice versa.
    fn is_no_choice(&self, disjuncts: &[Vec<Atom>]) -> bool {
        let document = self.schemas.document;
        let name_of = |disjunct: &[Atom]| match *disjunct {
            [Atom::Has { name, .. }] => Some((document.name(name), true)),
            [Atom::Lacks { name, .. }] => Some((document.name(name), false)),
            _ => None,
        };
        // Strict mode allows a key only if it's mentioned.
        let Some((name, is_there)) = disjuncts.last().and_then(|disjunct| name_of(disjunct)).filter(|_| !self.strict)
        else {
            return false;
        };
        disjuncts.iter().any(|disjunct| name_of(disjunct) == Some((name, !is_there)))
    }

    /// The member for which most of the factors list values, if at least two do, and its cases.
    fn cases_for(&mut self, branch: &Branch<'a>) -> Option<(&'a str, Vec<Case<'a>>)> {
        // In strict mode, what is forbidden depends on which schemas name members.
        if self.strict || branch.left.len() < 2 {
            return None;
        }
        let mut counts: HashMap<&'a str, (usize, usize, Vec<SchemaId>)> = HashMap::default();
        let is_chosen = |atom: Atom| branch.known.contains(&atom);
        for (place, factor) in (1..).zip(&branch.left) {
            for &atom in factor.disjuncts.iter().flat_map(|disjunct| disjunct.iter()).filter(|atom| !is_chosen(**atom))
            {
                for (name, property) in self.members_of(atom) {
                    let (count, last, properties) = counts.entry(name).or_default();
                    if *last < place {
                        (*count, *last) = (*count + 1, place);
                    }
                    properties.push(property);
                }
            }
        }
        counts.retain(|name, (count, ..)| *count >= 2 && branch.cases.iter().all(|(known, _)| known != name));
        // Ties are resolved by order, because the same schema must always give the same result.
        let best = counts.iter().max_by_key(|(name, (count, ..))| (*count, std::cmp::Reverse(**name)));
        let (name, mut properties) = best.map(|(name, (_, _, properties))| (*name, properties.clone()))?;
        for &(_, atom) in &branch.chosen {
            let here = self.members_of(atom);
            properties.extend(here.into_iter().filter(|(known, _)| *known == name).map(|(_, property)| property));
        }
        properties.sort_unstable();
        properties.dedup();
        let chosen: Conjunction = branch.chosen.iter().map(|(_, atom)| *atom).collect();
        let is_object = merge(self, &chosen).types == Types::OBJECT;
        let cases = self.cases_of(name, &properties, is_object)?;
        // The choices exclude most cases; nothing else in them needs to be examined.
        let mut kept = Vec::with_capacity(cases.len());
        for case in cases {
            if case.others || !self.excludes(&branch.chosen, &case) {
                kept.push(case);
            }
        }
        Some((name, kept)).filter(|(_, cases)| !cases.is_empty())
    }

    /// Whether the choices allow no object in some case of a member.
    fn excludes(&mut self, chosen: &[(u32, Atom)], case: &Case<'a>) -> bool {
        chosen.iter().any(|&(_, atom)| {
            let Atom::Own(_) = atom else { return false };
            let members = self.members_of(atom);
            let mut here = members.into_iter().filter(|(name, _)| *name == case.name);
            case.values != MemberValues::None && here.any(|(_, member)| self.fits(member, case.values) == Some(false))
        })
    }

    /// The members for which the schema of an atom lists values.
    fn members_of(&mut self, atom: Atom) -> Vec<(&'a str, SchemaId)> {
        let document = self.schemas.document;
        let (schema, only) = match atom {
            Atom::Own(schema) => (schema, None),
            Atom::Broken { schema, keyword, part } => match self.schemas.get(schema).keywords[keyword as usize] {
                Keyword::Properties(_) => (schema, Some(document.key(JsonId(part)))),
                _ => return Vec::new(),
            },
            Atom::MemberFails { schema, name } => (schema, Some(document.name(name))),
            _ => return Vec::new(),
        };
        let members = self.listed_members(schema);
        members.iter().copied().filter(|(name, _)| only.is_none_or(|only| only == *name)).collect()
    }

    fn in_case(&mut self, branch: &Branch<'a>, name: &'a str, case: Case<'a>) -> Branch<'a> {
        let mut branch = branch.clone();
        let is_member = case.types() == Types::OBJECT;
        let atom = self.case(case);
        branch.choose(NO_FACTOR, &[atom]);
        if let (Atom::Case(case), true) = (atom, is_member) {
            branch.cases.push((name, case));
        }
        branch
    }

    /// The alternatives that were found; those that differ only in the case of a member are joined.
    fn joined_cases(&mut self, found: Vec<Branch<'a>>) -> Vec<Conjunction> {
        let mut all: Vec<Conjunction> = found.iter().map(Branch::conjunction).collect();
        let mut names: Vec<&'a str> = Vec::new();
        for atom in all.iter().flat_map(|one| one.iter()) {
            if let Atom::Case(case) = *atom
                && !names.contains(&self.cases[case as usize].name)
            {
                names.push(self.cases[case as usize].name);
            }
        }
        for name in names {
            let mut joined: IndexMap<Conjunction, Option<Case<'a>>> = IndexMap::new();
            for one in &all {
                let is_case = |atom: &Atom| matches!(*atom, Atom::Case(case) if self.cases[case as usize].name == name);
                // A factor may contain a case of its own, besides the one chosen here, which is the last.
                let place = one.iter().rposition(is_case);
                let case = place.map(|place| one[place]);
                let others = one.iter().enumerate().filter(|&(at, _)| Some(at) != place);
                let rest: Conjunction = others.map(|(_, atom)| *atom).collect();
                let Some(Atom::Case(case)) = case else {
                    joined.insert(rest, None);
                    continue;
                };
                let case = self.cases[case as usize].clone();
                match joined.get(&rest).cloned() {
                    Some(None) => {}
                    Some(Some(known)) => {
                        let either = self.either(&known, &case);
                        joined.insert(rest, Some(either));
                    }
                    None => {
                        joined.insert(rest, Some(case));
                    }
                }
            }
            let mut next = Vec::with_capacity(joined.len());
            for (rest, case) in joined {
                next.push(match case.filter(|case| !self.is_known(&rest, case)) {
                    None => rest,
                    Some(case) => {
                        let atom = self.case(case);
                        rest.iter().copied().chain([atom]).collect()
                    }
                });
            }
            all = next;
        }
        all
    }

    /// Whether the other atoms leave only this case.
    fn is_known(&mut self, all: &[Atom], case: &Case<'a>) -> bool {
        let merged = merge(self, all);
        if !case.others && merged.types != Types::OBJECT {
            return false;
        }
        if case.lacking && case.values == MemberValues::Any {
            return true;
        }
        let known = merged.known.get(case.name);
        if !case.lacking && known.is_none_or(|known| known.required.is_none()) {
            return false;
        }
        let MemberValues::Among(list) = case.values else { return case.values == MemberValues::Any };
        let document = self.schemas.document;
        let listed: Vec<ValueId> = self.lists[list as usize].iter().map(|&value| document.value_id(value)).collect();
        let is_within = |id: SchemaId| {
            self.schemas.get(id).keywords.iter().any(|keyword| match keyword {
                Keyword::Values(values) => values.iter().all(|&value| listed.contains(&document.value_id(value))),
                _ => false,
            })
        };
        known.is_some_and(|known| known.value.iter().any(|term| matches!(*term, Term::Holds(id) if is_within(id))))
    }
}

/// The branches in which one disjunct of the smallest factor is chosen.
fn by_disjuncts<'a>(branch: &Branch<'a>) -> Vec<Branch<'a>> {
    let smallest = (0..branch.left.len()).min_by_key(|&place| branch.left[place].disjuncts.len());
    let mut rest = branch.clone();
    let Some(factor) = smallest.map(|place| rest.left.remove(place)) else { return Vec::new() };
    let chosen = factor.disjuncts.iter().map(|disjunct| {
        let mut branch = rest.clone();
        branch.choose(factor.place, disjunct);
        branch
    });
    chosen.collect()
}
