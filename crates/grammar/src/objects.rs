//! What an object must be like for masks without dead ends, checked where a user may have described it.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{Deriver, ExprId, ExprSet, Limits};

use crate::error::{ErrorKind, GrammarError};
use crate::grammar::{Members, Surface};

/// Most residuals looked at to tell whether free keys never run out.
const MAX_RESIDUALS: usize = 50_000;

/// Checks objects of one expression set, and each expression once.
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
        let Surface { empty, open, colon, item, close } = members.surface;
        let keys = members.known.iter().map(|known| known.key).chain(members.free.as_ref().map(|free| free.key));
        for lexeme in [empty, open, colon, item, close].into_iter().chain(keys) {
            if self.lexemes.insert(lexeme) {
                check_lexeme(exprs, lexeme)?;
            }
        }
        match &members.free {
            Some(free) if self.free_keys.insert(free.key) => check_free_key(exprs, free.key),
            _ => Ok(()),
        }
    }
}

fn check_lexeme(exprs: &ExprSet, lexeme: ExprId) -> Result<(), GrammarError> {
    if exprs.is_nullable(lexeme) {
        let message = "a key or a sign of the object may be empty; give each at least one character";
        return Err(GrammarError::new(ErrorKind::Unsupported, "", message));
    }
    let mut is_dead = lexeme == ExprId::NOTHING;
    if exprs.has_boolean(lexeme) {
        let mut deriver = Deriver::new(Limits::default());
        let copy = deriver.exprs.import(exprs, lexeme);
        is_dead = !deriver.is_live(copy).map_err(|limit| GrammarError::limit("", limit))?;
    }
    if is_dead {
        let message = "a key or a sign of the object matches nothing; loosen it";
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
