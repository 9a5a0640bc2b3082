//! What an object or an array must be like for masks without dead ends, checked where a user may have described it.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{Deriver, ExprId, ExprSet, Limits};

use crate::error::{ErrorKind, GrammarError};
use crate::grammar::{ArraySurface, Items, Members, Surface};

/// Most residuals looked at to tell whether free keys never run out.
const MAX_RESIDUALS: usize = 50_000;

/// Most kinds of values of an object of which one must be there: so many bits remember which are.
const MAX_WITNESSES: usize = 32;
/// Most counters of an array.
const MAX_COUNTERS: usize = 32;
/// Most alternatives at one place of an array.
const MAX_ALTERNATIVES: usize = 64;

/// Checks objects and arrays of one expression set, and each expression once.
#[derive(Default)]
pub(crate) struct ObjectChecks {
    lexemes: FxHashSet<ExprId>,
    free_keys: FxHashSet<ExprId>,
}

impl ObjectChecks {
    /// Refuses repeated names, keys and signs that may be empty or match nothing, and free keys that run out.
    pub(crate) fn check(&mut self, exprs: &ExprSet, members: &Members) -> Result<(), GrammarError> {
        let mut names = FxHashSet::default();
        if let Some(twice) = members.known.iter().find(|known| !names.insert(&*known.name)) {
            let message = format!("the member {:?} is described twice; join the two values with `|`", twice.name);
            return Err(GrammarError::new(ErrorKind::Syntax, "", message));
        }
        if members.ordered > members.known.len() {
            let message = "more members are in order than there are; describe them";
            return Err(GrammarError::new(ErrorKind::Syntax, "", message));
        }
        if members.free.iter().filter(|free| free.some.is_some()).count() > MAX_WITNESSES {
            let message = format!("more than {MAX_WITNESSES} kinds of other members have `some`; join some of them");
            return Err(GrammarError::new(ErrorKind::Limit, "", message));
        }
        let Surface { empty, open, colon, item, close } = members.surface;
        let keys = members.known.iter().map(|known| known.key).chain(members.free.iter().map(|free| free.key));
        self.check_lexemes(exprs, [empty, open, colon, item, close].into_iter().chain(keys))?;
        for free in &members.free {
            if self.free_keys.insert(free.key) {
                check_free_key(exprs, free.key)?;
            }
        }
        Ok(())
    }

    /// Refuses signs that may be empty or match nothing, and more counters or alternatives than can be told apart.
    pub(crate) fn check_array(&mut self, exprs: &ExprSet, items: &Items) -> Result<(), GrammarError> {
        let ArraySurface { empty, open, item, close } = items.surface;
        self.check_lexemes(exprs, [empty, open, item, close].into_iter())?;
        let places = items.prefix.iter().chain([&items.rest]);
        let too_many = |what: &str, limit: usize| {
            let message = format!("an array has more than {limit} {what}; join some of them");
            Err(GrammarError::new(ErrorKind::Limit, "", message))
        };
        if items.contains.len() > MAX_COUNTERS {
            return too_many("counters", MAX_COUNTERS);
        }
        if places.map(|place| place.len()).max().unwrap_or(0) > MAX_ALTERNATIVES {
            return too_many("alternatives at one place", MAX_ALTERNATIVES);
        }
        let known = u32::MAX.checked_shr(32 - items.contains.len() as u32).unwrap_or(0);
        if items.elements().any(|element| element.counts & !known != 0) {
            let message = "an element counts for a counter that the array does not have; describe it";
            return Err(GrammarError::new(ErrorKind::Syntax, "", message));
        }
        Ok(())
    }

    fn check_lexemes(&mut self, exprs: &ExprSet, lexemes: impl Iterator<Item = ExprId>) -> Result<(), GrammarError> {
        for lexeme in lexemes {
            if self.lexemes.insert(lexeme) {
                check_lexeme(exprs, lexeme)?;
            }
        }
        Ok(())
    }
}

fn check_lexeme(exprs: &ExprSet, lexeme: ExprId) -> Result<(), GrammarError> {
    if exprs.is_nullable(lexeme) {
        let message = "a key or a sign of an object or an array may be empty; give each at least one character";
        return Err(GrammarError::new(ErrorKind::Unsupported, "", message));
    }
    let mut is_dead = lexeme == ExprId::NOTHING;
    if exprs.has_boolean(lexeme) {
        let mut deriver = Deriver::new(Limits::default());
        let copy = deriver.exprs.import(exprs, lexeme);
        is_dead = !deriver.is_live(copy).map_err(|limit| GrammarError::limit("", limit))?;
    }
    if is_dead {
        let message = "a key or a sign of an object or an array matches nothing; loosen it";
        return Err(GrammarError::new(ErrorKind::Unsatisfiable, "", message));
    }
    Ok(())
}

/// Checks what [`FreeMembers`] asks of its key: however it begins, infinitely many texts go on.
///
/// The residuals from which finitely many texts go on are a least fixed point: those whose derivatives are all such.
/// Only the residual behind a whole key may be one.
fn check_free_key(exprs: &ExprSet, key: ExprId) -> Result<(), GrammarError> {
    let limit = |limit| GrammarError::limit("", limit);
    let mut deriver = Deriver::new(Limits::default());
    let root = deriver.exprs.import(exprs, key);
    let mut index: FxHashMap<ExprId, usize> = FxHashMap::from_iter([(root, 0)]);
    let mut residuals = vec![root];
    let mut users: Vec<Vec<usize>> = vec![Vec::new()];
    let mut missing: Vec<usize> = vec![0];
    let mut at = 0;
    while at < residuals.len() {
        if residuals.len() > MAX_RESIDUALS {
            let message = format!(
                "telling whether the other keys of an object never run out took more than {MAX_RESIDUALS} steps; \
                 use a simpler key"
            );
            return Err(GrammarError::new(ErrorKind::Limit, "", message));
        }
        let derivatives = deriver.derivatives(residuals[at]).map_err(limit)?;
        for &(_, rest) in derivatives.iter() {
            if !deriver.is_live(rest).map_err(limit)? {
                continue;
            }
            let next = *index.entry(rest).or_insert_with(|| {
                residuals.push(rest);
                users.push(Vec::new());
                missing.push(0);
                residuals.len() - 1
            });
            users[next].push(at);
            missing[at] += 1;
        }
        at += 1;
    }
    let mut ready: Vec<usize> = (0..residuals.len()).filter(|&state| missing[state] == 0).collect();
    while let Some(state) = ready.pop() {
        if state == 0 || residuals[state] != ExprId::EMPTY {
            let message = "the other keys of an object would run out: after some beginning, only finitely many keys go \
                           on, and each may be used once only; let every key go on, as in \"\\\"\" [a-z]* \"\\\"\", or \
                           describe the keys one by one with `optional`";
            return Err(GrammarError::new(ErrorKind::Unsupported, "", message));
        }
        for &user in &users[state] {
            missing[user] -= 1;
            if missing[user] == 0 {
                ready.push(user);
            }
        }
    }
    Ok(())
}
