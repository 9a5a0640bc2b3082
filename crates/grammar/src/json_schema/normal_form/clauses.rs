//! Normal form: every schema as a disjunction of conjunctions, as far as one value is concerned.
//!
//! References, `allOf`, `anyOf`, `oneOf`, `not`, `if` and dependencies speak of the same value as the schema they stand
//! in. Multiplying them out leaves alternatives, each a list of atoms that must all hold. What a schema says of the
//! values inside stays untouched: those are lists of terms, normalised when they are reached. The walk has its own
//! stack, and every goal is normalised once.

use std::rc::Rc;

use rustc_hash::FxHashSet;
use stencilm_support::Map;

use super::atoms::{Atom, Term};
use super::evaluated::evaluated;
use super::goals::{Alternatives, Conjunction, Disjunct, Factor, Goal, Mode, Piece, Plan};
use super::merged::Clash;
use super::normal::Normal;
use super::sums::{MAX_ALTERNATIVES, MAX_KEPT, Sum};
use crate::error::{ErrorKind, GrammarError};
use crate::json_schema::read::schema::{Keyword, SchemaId};

impl<'a> Normal<'a> {
    /// The alternatives of a value for which all these terms hold.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a cycle of references that returns to the same value through a choice or a
    /// negation, [`ErrorKind::Limit`] if there are too many alternatives.
    pub(crate) fn alternatives(&mut self, all: &[Term]) -> Result<Alternatives, GrammarError> {
        self.alternatives_in(all, Mode::Plain)
    }

    /// As [`Normal::alternatives`], in a mode.
    pub(crate) fn alternatives_in(&mut self, all: &[Term], mode: Mode) -> Result<Alternatives, GrammarError> {
        let mut factors = Vec::with_capacity(all.len());
        for &term in all {
            factors.push(self.of_term(term, mode)?);
        }
        match factors.as_slice() {
            [one] => Ok(one.clone()),
            factors => {
                let at = all.iter().find_map(|term| self.schema_of(*term));
                self.product(at.unwrap_or(self.schemas.root), factors, mode)
            }
        }
    }

    fn of_term(&mut self, term: Term, mode: Mode) -> Result<Alternatives, GrammarError> {
        match (self.goal_of(term), term) {
            (Some(goal), _) if goal.mode == Mode::Differs => self.of(goal),
            (Some(goal), _) => self.of(Goal { mode, ..goal }),
            (None, Term::Any(list)) => {
                let mut sum = Vec::new();
                for &term in self.any[list as usize].clone().iter() {
                    if let Some(goal) = self.goal_of(term) {
                        sum.extend(self.of(Goal { mode, ..goal })?.iter().cloned());
                    }
                }
                Ok(sum.into())
            }
            (None, Term::Among(list)) => Ok([Conjunction::from([Atom::Among(list)])].into()),
            (None, Term::Outside(list)) => Ok([Conjunction::from([Atom::Outside(list)])].into()),
            (None, _) => Ok([].into()),
        }
    }

    /// The requirement of some terms if there is nothing to multiply out, as in most schemas: one atom, or none.
    pub(crate) fn alone(&mut self, all: &[Term]) -> Option<Option<Atom>> {
        let id = match *all {
            [] => return Some(None),
            [Term::Holds(id)] => id,
            _ => return None,
        };
        let schema = self.schemas.get(id);
        if schema.keywords.iter().any(|keyword| keyword.applies_in_place() || keyword.is_unevaluated()) {
            return None;
        }
        self.note_used(&[id]);
        Some(schema.constrains().then_some(Atom::Own(id)))
    }

    /// The schema of a term.
    pub(crate) fn schema_of(&self, term: Term) -> Option<SchemaId> {
        match term {
            Term::Holds(schema) | Term::Fails(schema) => Some(schema),
            Term::Any(list) => self.any[list as usize].iter().find_map(|&term| match term {
                Term::Holds(schema) | Term::Fails(schema) => Some(schema),
                _ => None,
            }),
            Term::Differs(_) | Term::Among(_) | Term::Outside(_) => None,
        }
    }

    /// The term for a disjunction of terms; `None` if the list has no index yet.
    pub(crate) fn known_any(&self, terms: &[Term]) -> Option<Term> {
        match *terms {
            [only] => Some(only),
            _ => self.any.iter().position(|known| **known == *terms).map(|position| Term::Any(position as u32)),
        }
    }

    /// The alternatives of one goal.
    pub(crate) fn of(&mut self, root: Goal) -> Result<Alternatives, GrammarError> {
        if let Some(known) = self.known.get(&root) {
            return Ok(known.clone());
        }
        if root.mode == Mode::Plain
            && !root.fails
            && let Some(atom) = self.alone(&[Term::Holds(root.schema)])
        {
            let alternatives: Alternatives = [Conjunction::from(atom.as_slice())].into();
            self.known.insert(root, alternatives.clone());
            return Ok(alternatives);
        }
        // The goals that are being normalised, outermost first, with goals still to be visited in between. Reaching one
        // of the former again is a cycle.
        let mut work = vec![root];
        let mut inside: FxHashSet<Goal> = FxHashSet::default();
        // Goals that a cycle returns to, in loose mode: until they are known, they are assumed to allow everything.
        let mut cut: FxHashSet<Goal> = FxHashSet::default();
        while let Some(&goal) = work.last() {
            if !cut.remove(&goal) && self.known.contains_key(&goal) {
                work.pop();
                continue;
            }
            if inside.insert(goal) {
                self.enter(goal);
            }
            let missing = self.missing(goal)?;
            if missing.is_empty() {
                let alternatives = self.combine(goal)?;
                // In a chain of schemas, each may have all alternatives of the next one and some more.
                self.kept += alternatives.len();
                if self.kept > MAX_KEPT {
                    return Err(self.too_many(goal.schema));
                }
                self.known.insert(goal, alternatives);
                inside.remove(&goal);
                work.pop();
                continue;
            }
            if let Some(&again) = missing.iter().find(|goal| inside.contains(goal)) {
                let entered: Vec<Goal> = work.iter().copied().filter(|goal| inside.contains(goal)).collect();
                let start = entered.iter().position(|&goal| goal == again).unwrap_or(0);
                let cycle = &entered[start..];
                if self.asks_for_itself(cycle) {
                    // A goal that requires itself is satisfied by nothing, here and wherever it occurs.
                    let atom = Atom::Circular(self.cycles.len() as u32);
                    let clash = self.circular(cycle);
                    self.cycles.push(clash);
                    for goal in cycle {
                        self.known.insert(*goal, [Conjunction::from([atom])].into());
                        inside.remove(goal);
                    }
                } else if again.mode == Mode::Loose {
                    self.known.insert(again, [Conjunction::from([])].into());
                    cut.insert(again);
                } else {
                    return Err(self.undecided(cycle));
                }
                continue;
            }
            work.extend(missing.into_iter().rev());
        }
        Ok(self.known[&root].clone())
    }

    fn enter(&mut self, goal: Goal) {
        if goal.mode != Mode::Differs && goal.mode != Mode::Loose {
            self.note(goal.schema);
        }
    }

    /// The goals that must be known before this one.
    fn missing(&mut self, goal: Goal) -> Result<Vec<Goal>, GrammarError> {
        let mut missing = Missing::default();
        if let Some(base) = self.base(goal) {
            missing.add(&self.known, base);
        }
        let choices = self.choices(goal);
        for &schema in choices.iter().flat_map(|(_, parts)| parts) {
            missing.add(&self.known, Goal { schema, ..goal });
            missing.add(&self.known, Goal { schema, fails: false, mode: Mode::Loose });
        }
        if !missing.list.is_empty() {
            return Ok(missing.list);
        }
        for (place, parts) in choices {
            if !self.overlaps.contains_key(&(goal.schema, place)) {
                let overlaps = self.find_overlaps(goal.schema, &parts)?;
                self.overlaps.insert((goal.schema, place), overlaps);
            }
        }
        for factor in self.plan_of(goal) {
            match factor {
                Factor::Disjuncts(disjuncts) => {
                    for piece in disjuncts.into_iter().flatten() {
                        if let Piece::Goal(goal) = piece {
                            missing.add(&self.known, goal);
                        }
                    }
                }
                Factor::AtLeastOne(parts) => {
                    for &schema in &parts {
                        missing.add(&self.known, Goal { schema, ..goal });
                        if goal.mode == Mode::Exact {
                            missing.add(&self.known, Goal { schema, fails: true, mode: Mode::Plain });
                        }
                    }
                }
            }
        }
        Ok(missing.list)
    }

    /// The `oneOf`s of a goal for which it matters which of their branches may hold together.
    fn choices(&self, goal: Goal) -> Vec<(u32, Box<[SchemaId]>)> {
        if matches!(goal.mode, Mode::Loose | Mode::Differs) {
            return Vec::new();
        }
        let keywords = (0..).zip(&self.schemas.get(goal.schema).keywords);
        let choices = keywords.filter_map(|(place, keyword)| match keyword {
            Keyword::OneOf(parts) => Some((place, parts.clone())),
            _ => None,
        });
        choices.collect()
    }

    fn plan_of(&self, goal: Goal) -> Plan {
        match goal.mode {
            Mode::Differs => vec![Factor::Disjuncts(self.differences(goal.schema.value))],
            _ => self.plan(goal),
        }
    }

    /// For a schema with `unevaluated...` keywords: the goal that determines what is evaluated.
    fn base(&self, goal: Goal) -> Option<Goal> {
        let speaks = match goal.mode {
            Mode::Plain => self.schemas.get(goal.schema).keywords.iter().any(Keyword::is_unevaluated),
            _ => false,
        };
        let mode = if goal.fails { Mode::Exact } else { Mode::Tracked };
        speaks.then_some(Goal { schema: goal.schema, fails: false, mode })
    }

    /// The alternatives of a goal whose parts are known.
    fn combine(&mut self, goal: Goal) -> Result<Alternatives, GrammarError> {
        let id = goal.schema;
        let base = self.base(goal).map(|base| self.known[&base].clone());
        if let (Some(base), false) = (&base, goal.fails) {
            let is_asked = |atom: &&Atom| !matches!(atom, Atom::Seen(_));
            return Ok(base.iter().map(|all| all.iter().filter(is_asked).copied().collect()).collect());
        }
        let plan = self.plan_of(goal);
        // What holds in every case; it often decides most of the disjuncts that would be multiplied out.
        let mut common: Vec<Atom> = Vec::new();
        for factor in &plan {
            if let (Factor::Disjuncts(disjuncts), false) = (factor, goal.mode.is_tracked())
                && let [disjunct] = &**disjuncts
                && let Some(atoms) = self.only_disjunct(disjunct)
            {
                common.extend(atoms);
            }
        }
        let common: Conjunction = common.into();
        let mut factors: Vec<Alternatives> = Vec::with_capacity(plan.len());
        for factor in plan {
            factors.push(match factor {
                Factor::Disjuncts(disjuncts) => self.sum(goal, disjuncts, &common)?,
                Factor::AtLeastOne(parts) => self.at_least_one(goal, &parts)?,
            });
        }
        let product = self.product(id, &factors, goal.mode)?;
        if goal.mode == Mode::Differs {
            return Ok(product);
        }
        let speaks: Vec<u32> = (0..)
            .zip(&self.schemas.get(id).keywords)
            .filter(|(_, keyword)| keyword.is_unevaluated())
            .map(|(place, _)| place)
            .collect();
        if speaks.is_empty() {
            return Ok(product);
        }
        if goal.mode == Mode::Loose {
            // When it holds, omitting the keyword is a safe superset. When it fails, the superset must allow
            // everything.
            return Ok(if goal.fails { [Conjunction::from([])].into() } else { product });
        }
        let mut result: Vec<Conjunction> = Vec::new();
        if let Some(base) = base {
            // The schema fails if another keyword fails, or if all others hold and this one doesn't.
            result.extend(product.iter().cloned());
            for all in base.iter() {
                for &keyword in &speaks {
                    let others = all.iter().filter(|atom| {
                        !matches!(atom, Atom::Seen(_))
                            && !matches!(atom, Atom::Unevaluated { schema, .. } if *schema == id)
                    });
                    let broken = all.iter().filter_map(|atom| match *atom {
                        Atom::Unevaluated { schema, keyword: known, seen, .. } if schema == id && known == keyword => {
                            Some(Atom::Unevaluated { schema, keyword, seen, broken: true })
                        }
                        _ => None,
                    });
                    result.push(others.copied().chain(broken).collect());
                }
            }
            return Ok(result.into());
        }
        for all in product.iter() {
            let seen: Rc<[SchemaId]> =
                all.iter().filter_map(|atom| if let Atom::Seen(id) = atom { Some(*id) } else { None }).collect();
            for &keyword in &speaks {
                if let Keyword::UnevaluatedItems(inner) = self.schemas.get(id).keywords[keyword as usize] {
                    let (_, counted) = evaluated(self.schemas, id, &seen);
                    let terms: Rc<[Term]> = std::iter::once(inner).chain(counted).map(Term::Holds).collect();
                    position_of(&mut self.any, terms);
                }
            }
            let seen = position_of(&mut self.seen, seen);
            let rests = speaks.iter().map(|&keyword| Atom::Unevaluated { schema: id, keyword, seen, broken: false });
            result.push(all.iter().copied().chain(rests).collect());
        }
        Ok(result.into())
    }

    /// The atoms of a disjunct, if it contains no choice.
    fn only_disjunct(&self, disjunct: &Disjunct) -> Option<Vec<Atom>> {
        let mut all = Vec::new();
        for piece in disjunct {
            match piece {
                Piece::Atom(atom) => all.push(*atom),
                Piece::Goal(goal) => match &*self.known[goal] {
                    [only] => all.extend_from_slice(only),
                    _ => return None,
                },
            }
        }
        Some(all)
    }

    /// The disjunction of the disjuncts, where what is common to all of them holds in every case.
    fn sum(
        &mut self,
        goal: Goal,
        disjuncts: Vec<Disjunct>,
        common: &Conjunction,
    ) -> Result<Alternatives, GrammarError> {
        let mut sum = Sum::default();
        let is_choice = disjuncts.len() > 1;
        for disjunct in disjuncts {
            let alternatives = match &*disjunct {
                [Piece::Goal(only)] => self.known[only].clone(),
                _ => {
                    let mut factors: Vec<Alternatives> = Vec::with_capacity(disjunct.len() + 1);
                    factors.extend((is_choice && !common.is_empty()).then(|| [common.clone()].into()));
                    factors.extend(disjunct.iter().map(|piece| match piece {
                        Piece::Atom(atom) => [Conjunction::from([*atom])].into(),
                        Piece::Goal(goal) => self.known[goal].clone(),
                    }));
                    self.product(goal.schema, &factors, goal.mode)?
                }
            };
            self.check_time_after(goal.schema, alternatives.len())?;
            sum.add(&alternatives);
            if sum.list.len() > MAX_ALTERNATIVES {
                return Err(self.too_many(goal.schema));
            }
        }
        Ok(sum.absorbed(goal.mode))
    }

    /// The alternatives for every choice of schemas that hold, if their annotations count.
    fn at_least_one(&mut self, goal: Goal, parts: &[SchemaId]) -> Result<Alternatives, GrammarError> {
        let parts = parts.iter().map(|&schema| (schema, self.known[&Goal { schema, ..goal }].clone()));
        let has_seen = |(_, alternatives): &(SchemaId, Alternatives)| {
            alternatives.iter().any(|all| all.iter().any(|atom| matches!(atom, Atom::Seen(_))))
        };
        let (counting, plain): (Vec<_>, Vec<_>) = parts.partition(has_seen);
        let mut with_some: Alternatives = Rc::new([]);
        let mut with_none: Alternatives = [Conjunction::from([])].into();
        for (part, holds) in counting {
            let mut sum = Sum::default();
            sum.add(&self.product(goal.schema, &[with_some.clone(), holds.clone()], goal.mode)?);
            sum.add(&self.product(goal.schema, &[with_none.clone(), holds], goal.mode)?);
            if goal.mode == Mode::Exact {
                let fails = self.known[&Goal { schema: part, fails: true, mode: Mode::Plain }].clone();
                sum.add(&self.product(goal.schema, &[with_some.clone(), fails.clone()], goal.mode)?);
                with_none = self.product(goal.schema, &[with_none.clone(), fails], goal.mode)?;
            } else {
                // Fewer annotations only allow less, so it isn't necessary to require that the others fail.
                sum.add(&with_some);
            }
            if sum.list.len() > MAX_ALTERNATIVES {
                return Err(self.too_many(goal.schema));
            }
            with_some = sum.list.into();
        }
        let mut sum = Sum::default();
        sum.add(&with_some);
        for (_, holds) in plain {
            sum.add(&self.product(goal.schema, &[with_none.clone(), holds], goal.mode)?);
        }
        Ok(sum.list.into())
    }

    /// Whether each of these goals has only one disjunct, which is the next goal; for the last one, the first goal.
    fn asks_for_itself(&self, cycle: &[Goal]) -> bool {
        let next = cycle.iter().cycle().skip(1);
        cycle.iter().zip(next).all(|(&goal, next)| {
            !goal.fails
                && self.plan_of(goal).iter().any(|factor| match factor {
                    Factor::Disjuncts(disjuncts) => match &**disjuncts {
                        [disjunct] => disjunct.iter().any(|piece| matches!(piece, Piece::Goal(part) if part == next)),
                        _ => false,
                    },
                    Factor::AtLeastOne(_) => false,
                })
        })
    }

    /// Why nothing satisfies a cycle of goals that require only each other.
    #[cold]
    fn circular(&self, cycle: &[Goal]) -> Clash {
        let chain = self.chain(cycle);
        let message = format!(
            "nothing can match: the $ref cycle {chain} comes back to the same value without an end; put properties or \
             items between"
        );
        Clash { place: self.schemas.place(cycle[0].schema), message }
    }

    /// Why a cycle through a choice or a negation is refused. Some values may satisfy it: those that decide the choice
    /// before the reference is reached, or that the reference doesn't concern.
    #[cold]
    fn undecided(&self, cycle: &[Goal]) -> GrammarError {
        let references = |id| self.schemas.combining(id).filter(|keyword| keyword.ends_with("ef"));
        let last = cycle.iter().rev().find(|goal| references(goal.schema).next().is_some()).unwrap_or(&cycle[0]);
        let keywords: Vec<&str> = references(last.schema).collect();
        let message = format!(
            "{}: the cycle {} comes back to the same value through a choice or a negation, without an end; put \
             properties or items between",
            if keywords.is_empty() { "$ref".to_string() } else { keywords.join(", ") },
            self.chain(cycle)
        );
        GrammarError::new(ErrorKind::Unsupported, self.schemas.place(last.schema), message)
    }

    /// The places of a cycle, ending with the first one again.
    fn chain(&self, cycle: &[Goal]) -> String {
        let mut places: Vec<String> = cycle.iter().take(6).map(|&goal| self.schemas.place(goal.schema)).collect();
        if cycle.len() > 6 {
            places.push("…".into());
        }
        places.push(self.schemas.place(cycle[0].schema));
        places.join(" → ")
    }
}

/// Goals that still have to be visited, each once.
#[derive(Default)]
struct Missing {
    list: Vec<Goal>,
    seen: FxHashSet<Goal>,
}

impl Missing {
    fn add(&mut self, known: &Map<Goal, Alternatives>, goal: Goal) {
        if !known.contains_key(&goal) && self.seen.insert(goal) {
            self.list.push(goal);
        }
    }
}

fn position_of<T: PartialEq + ?Sized>(lists: &mut Vec<Rc<T>>, list: Rc<T>) -> u32 {
    let position = lists.iter().position(|known| *known == list).unwrap_or_else(|| {
        lists.push(list);
        lists.len() - 1
    });
    position as u32
}
