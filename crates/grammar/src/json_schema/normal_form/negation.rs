//! How a schema can hold and how it can fail: one step of the normal form, written as sums of products.
//!
//! A schema holds when all its keywords do, and fails when one of them does. So the plan of a goal is a product of sums
//! of products; what stands in it is an atom, or the goal of a schema that is applied to the same value. Negation never
//! goes further than one schema: what a keyword says of values inside fails as a term of such a value.

use stencilm_support::HashSet;

use super::atoms::{Atom, Term};
use super::goals::{Disjunct, Factor, Goal, Mode, Piece, Plan};
use super::normal::Normal;
use crate::json_schema::read::document::{Json, JsonId};
use crate::json_schema::read::schema::type_of;
use crate::json_schema::read::schema::{Keyword, Schema, SchemaId, Types};

impl Normal<'_> {
    /// The ways to reach a goal, as a plan.
    pub(crate) fn plan(&self, goal: Goal) -> Plan {
        if goal.fails { vec![Factor::Disjuncts(self.failures(goal))] } else { self.holdings(goal) }
    }

    fn holdings(&self, goal: Goal) -> Plan {
        let Goal { schema: id, mode, .. } = goal;
        let schema = self.schemas.get(id);
        let mut plan = Vec::new();
        let mut own = Disjunct::new();
        if schema.constrains() {
            own.push(Piece::Atom(Atom::Own(id)));
        }
        if mode.is_tracked() && annotates(schema) {
            own.push(Piece::Atom(Atom::Seen(id)));
        }
        plan.push(Factor::Disjuncts(vec![own]));
        let holds = |schema: SchemaId| Piece::Goal(Goal { schema, fails: false, mode });
        let fails = |schema: SchemaId| Piece::Goal(Goal { schema, fails: true, mode: mode.inside_not() });
        for (place, keyword) in schema.keywords.iter().enumerate() {
            match keyword {
                Keyword::Ref(target) => plan.push(Factor::Disjuncts(vec![vec![holds(*target)]])),
                Keyword::AllOf(parts) => {
                    plan.extend(parts.iter().map(|&part| Factor::Disjuncts(vec![vec![holds(part)]])));
                }
                Keyword::AnyOf(parts) if mode.is_tracked() => plan.push(Factor::AtLeastOne(parts.clone())),
                Keyword::AnyOf(parts) => {
                    plan.push(Factor::Disjuncts(parts.iter().map(|&part| vec![holds(part)]).collect()));
                }
                Keyword::OneOf(parts) => {
                    let overlaps = self.overlaps.get(&(id, place as u32)).filter(|_| mode != Mode::Loose);
                    let disjunct = |(place, &part): (usize, &SchemaId)| {
                        let mut disjunct = vec![holds(part)];
                        let others = overlaps.map_or(&[][..], |overlaps| &overlaps[place]);
                        disjunct.extend(others.iter().map(|&other| fails(parts[other as usize])));
                        disjunct
                    };
                    plan.push(Factor::Disjuncts(parts.iter().enumerate().map(disjunct).collect()));
                }
                Keyword::Not(inner) => plan.push(Factor::Disjuncts(vec![vec![fails(*inner)]])),
                Keyword::If { condition, then, otherwise } => {
                    let mut yes = vec![holds(*condition)];
                    yes.extend(then.map(holds));
                    let mut no = vec![fails(*condition)];
                    no.extend(otherwise.map(holds));
                    plan.push(Factor::Disjuncts(vec![yes, no]));
                }
                Keyword::Dependent(map) => {
                    for &value in self.schemas.document.entries(*map).into_iter().flat_map(|entries| entries.values()) {
                        let mut with = vec![Piece::Atom(Atom::Has { name: value, at: id })];
                        match self.schemas.document.get(value) {
                            Json::Object(_) | Json::Bool(_) => with.push(holds(self.schemas.inner(id, value))),
                            _ => with.extend(
                                self.dependent_names(value).map(|name| Piece::Atom(Atom::Has { name, at: id })),
                            ),
                        }
                        let without = vec![Piece::Atom(Atom::Lacks { name: value, at: id })];
                        plan.push(Factor::Disjuncts(vec![without, with]));
                    }
                }
                _ => {}
            }
        }
        plan
    }

    /// The keys that another key requires.
    fn dependent_names(&self, value: JsonId) -> impl Iterator<Item = JsonId> {
        let document = self.schemas.document;
        let one = matches!(document.get(value), Json::String(_)).then_some(value);
        let list: &[JsonId] = if let Json::Array(names) = document.get(value) { names } else { &[] };
        list.iter().copied().chain(one)
    }

    /// The ways in which a schema can fail, as disjuncts.
    fn failures(&self, goal: Goal) -> Vec<Disjunct> {
        let Goal { schema: id, mode, .. } = goal;
        let document = self.schemas.document;
        let schema = self.schemas.get(id);
        if schema.never || (!schema.refusals.is_empty() && self.relax) {
            return vec![Disjunct::new()];
        }
        let holds = |schema: SchemaId| Piece::Goal(Goal { schema, fails: false, mode });
        let fails = |schema: SchemaId| Piece::Goal(Goal { schema, fails: true, mode });
        let mut disjuncts: Vec<Disjunct> = Vec::new();
        let types = self.types_within(schema);
        for (place, keyword) in schema.keywords.iter().enumerate() {
            // A keyword about types that the schema doesn't allow can fail only if the restriction of types fails too.
            let says_types = matches!(keyword, Keyword::Type(_) | Keyword::Values(_)) || keyword.is_unevaluated();
            if !says_types && !keyword.speaks_of(types) {
                continue;
            }
            let broken = |part: u32| Piece::Atom(Atom::Broken { schema: id, keyword: place as u32, part });
            match keyword {
                Keyword::Ref(target) => disjuncts.push(vec![fails(*target)]),
                Keyword::AllOf(parts) => disjuncts.extend(parts.iter().map(|&part| vec![fails(part)])),
                Keyword::AnyOf(parts) => disjuncts.push(parts.iter().map(|&part| fails(part)).collect()),
                Keyword::OneOf(_) if mode == Mode::Loose => disjuncts.push(Disjunct::new()),
                Keyword::OneOf(parts) => {
                    disjuncts.push(parts.iter().map(|&part| fails(part)).collect());
                    // Two branches that are disjoint whenever the other keywords hold need no alternative: otherwise
                    // those keywords fail.
                    let overlaps = self.overlaps.get(&(id, place as u32));
                    for (right, others) in overlaps.into_iter().flatten().enumerate() {
                        let before = others.iter().map(|&left| left as usize).filter(|&left| left < right);
                        disjuncts.extend(before.map(|left| vec![holds(parts[left]), holds(parts[right])]));
                    }
                }
                Keyword::Not(inner) => disjuncts.push(vec![holds(*inner)]),
                Keyword::If { condition, then, otherwise } => {
                    disjuncts.extend(then.map(|then| vec![holds(*condition), fails(then)]));
                    disjuncts.extend(otherwise.map(|otherwise| vec![fails(*condition), fails(otherwise)]));
                }
                Keyword::Dependent(map) => disjuncts.extend(self.dependents_fail(goal, *map)),
                Keyword::Values(values) => {
                    let mut disjunct = vec![broken(0)];
                    disjunct.extend(
                        values
                            .iter()
                            .filter(|&&value| matches!(document.get(value), Json::Array(_) | Json::Object(_)))
                            .map(|&value| Piece::Goal(Goal::differs(value))),
                    );
                    disjuncts.push(disjunct);
                }
                Keyword::Properties(_) | Keyword::PatternProperties(_) | Keyword::Required(_) => {
                    disjuncts.extend(self.members_fail(id, place as u32));
                }
                Keyword::PrefixItems(parts) => {
                    let parts = (0..parts.len()).filter(|&place| !self.always_holds(parts[place]));
                    disjuncts.extend(parts.map(|place| vec![broken(place as u32)]));
                }
                Keyword::Items(inner) | Keyword::AdditionalProperties(inner) | Keyword::PropertyNames(inner) => {
                    if !self.always_holds(*inner) {
                        disjuncts.push(vec![broken(0)]);
                    }
                }
                Keyword::Contains { min, max, .. } => {
                    if *min > 0 {
                        disjuncts.push(vec![broken(0)]);
                    }
                    if max.is_some() {
                        disjuncts.push(vec![broken(1)]);
                    }
                }
                Keyword::MinLength(0) | Keyword::MinItems(0) | Keyword::MinProperties(0) => {}
                // Decided by the caller of this plan, for each disjunct by which the rest holds.
                Keyword::UnevaluatedItems(_) | Keyword::UnevaluatedProperties(_) => {}
                _ => disjuncts.push(vec![broken(0)]),
            }
        }
        if disjuncts.is_empty() && !schema.keywords.iter().any(Keyword::is_unevaluated) {
            disjuncts.push(vec![Piece::Atom(Atom::Never(id))]);
        }
        disjuncts
    }

    /// The ways in which dependencies on keys can fail: the key is present, and what depends on it fails.
    fn dependents_fail(&self, goal: Goal, map: JsonId) -> Vec<Disjunct> {
        let Goal { schema: id, mode, .. } = goal;
        let document = self.schemas.document;
        let mut disjuncts: Vec<Disjunct> = Vec::new();
        for &value in document.entries(map).into_iter().flat_map(|entries| entries.values()) {
            let has = Piece::Atom(Atom::Has { name: value, at: id });
            match document.get(value) {
                Json::Object(_) | Json::Bool(_) => {
                    disjuncts.push(vec![
                        has,
                        Piece::Goal(Goal { schema: self.schemas.inner(id, value), fails: true, mode }),
                    ]);
                }
                _ => disjuncts.extend(
                    self.dependent_names(value)
                        .map(|name| vec![has.clone(), Piece::Atom(Atom::Lacks { name, at: id })]),
                ),
            }
        }
        disjuncts
    }

    /// The ways in which a keyword about members by their keys can fail.
    fn members_fail(&self, id: SchemaId, place: u32) -> Vec<Disjunct> {
        let document = self.schemas.document;
        let schema = self.schemas.get(id);
        let broken = |part: u32| Piece::Atom(Atom::Broken { schema: id, keyword: place, part });
        let mut disjuncts: Vec<Disjunct> = Vec::new();
        match &schema.keywords[place as usize] {
            Keyword::Properties(map) => {
                let required: HashSet<&str> = self.required(schema).iter().map(|&name| document.name(name)).collect();
                let values = document.entries(*map).into_iter().flat_map(|entries| entries.values());
                // If the member is required, its absence makes `required` fail.
                let optional = values.filter(|&&value| {
                    !required.contains(document.key(value)) && !self.always_holds(self.schemas.inner(id, value))
                });
                disjuncts.extend(optional.map(|value| vec![broken(value.0)]));
            }
            Keyword::PatternProperties(map) => {
                let values = document.entries(*map).into_iter().flat_map(|entries| entries.values());
                let values = values.filter(|&&value| !self.always_holds(self.schemas.inner(id, value)));
                disjuncts.extend(values.map(|value| vec![broken(value.0)]));
            }
            Keyword::Required(_) => {
                let name = |&name: &JsonId| vec![Piece::Atom(Atom::MemberFails { schema: id, name })];
                disjuncts.extend(self.required(schema).iter().map(name));
            }
            _ => {}
        }
        disjuncts
    }

    /// The types that `type`, `enum` and `const` allow: no value of another type is an instance.
    fn types_within(&self, schema: &Schema) -> Types {
        let document = self.schemas.document;
        schema.keywords.iter().fold(Types::ALL, |types, keyword| match keyword {
            Keyword::Type(own) => types.and(*own),
            Keyword::Values(values) => {
                let of_values = values.iter().map(|&value| type_of(document.get(value)));
                types.and(of_values.fold(Types::NONE, Types::or))
            }
            _ => types,
        })
    }

    fn required(&self, schema: &Schema) -> &[JsonId] {
        let list = schema.keywords.iter().find_map(|keyword| match keyword {
            Keyword::Required(list) => Some(*list),
            _ => None,
        });
        match list.map(|list| self.schemas.document.get(list)) {
            Some(Json::Array(names)) => names,
            _ => &[],
        }
    }

    /// Whether a schema requires nothing at all.
    pub(crate) fn always_holds(&self, id: SchemaId) -> bool {
        let schema = self.schemas.get(id);
        !schema.never && schema.keywords.is_empty() && schema.refusals.is_empty()
    }

    /// The ways in which a value can differ from an array or an object: in its type, its size, or a part.
    pub(crate) fn differences(&self, value: JsonId) -> Vec<Disjunct> {
        let reasons = match self.schemas.document.get(value) {
            // Another type, fewer elements, more elements, or a different element.
            Json::Array(items) => 3 + items.len(),
            // Another type, more members, or for each member: without it, or with a different value.
            Json::Object(entries) => 2 + 2 * entries.len(),
            _ => 1,
        };
        (0..reasons as u32).map(|reason| vec![Piece::Atom(Atom::Differs { value, reason })]).collect()
    }

    /// The goal of a term; `None` for lists of terms.
    pub(crate) fn goal_of(&self, term: Term) -> Option<Goal> {
        Some(match term {
            Term::Holds(schema) => Goal { schema, fails: false, mode: Mode::Plain },
            Term::Fails(schema) => Goal { schema, fails: true, mode: Mode::Plain },
            Term::Differs(value) => Goal::differs(value),
            Term::Any(_) | Term::Among(_) | Term::Outside(_) => return None,
        })
    }
}

/// Whether a schema evaluates some members or elements.
fn annotates(schema: &Schema) -> bool {
    schema.keywords.iter().any(|keyword| {
        matches!(
            keyword,
            Keyword::Properties(_)
                | Keyword::PatternProperties(_)
                | Keyword::AdditionalProperties(_)
                | Keyword::UnevaluatedProperties(_)
                | Keyword::PrefixItems(_)
                | Keyword::Items(_)
                | Keyword::Contains { .. }
                | Keyword::UnevaluatedItems(_)
        )
    })
}
