//! The expressions of a grammar, and copies of expressions from one set into another, many at a time.

use std::convert::Infallible;

use rustc_hash::FxHashMap;
use stencilm_regex::{Expr, ExprId, ExprSet, LanguageRest, Number, NumberSet};

use crate::ir::grammar::{ArraySurface, Grammar, Members, Node};
use crate::json::surface::Surface;

/// All expressions of a node.
pub(crate) fn expressions(grammar: &Grammar, node: &Node, mut visit: impl FnMut(ExprId)) {
    match node {
        Node::Lexeme(expr) => visit(*expr),
        Node::Members(id) => {
            let Members { declared: known, additional: free, surface, .. } = grammar.members(*id);
            let Surface { empty, open, colon, item, close } = *surface;
            [empty, open, colon, item, close].into_iter().for_each(&mut visit);
            known.iter().filter_map(|known| known.key).for_each(&mut visit);
            free.iter().for_each(|free| visit(free.key));
        }
        Node::Items(id) => {
            let ArraySurface { empty, open, item, close } = grammar.items(*id).surface;
            [empty, open, item, close].into_iter().for_each(visit);
        }
        _ => {}
    }
}

/// All expressions that are reachable from the roots, the roots included, children before parents.
///
/// An expression is interned after its children, so the order of the ids is such an order. `may_go_on` is called for
/// each expression.
pub(crate) fn reachable<E>(
    exprs: &ExprSet,
    roots: impl IntoIterator<Item = ExprId>,
    may_go_on: impl Fn() -> Result<(), E>,
) -> Result<Vec<ExprId>, E> {
    let mut seen = vec![false; exprs.len()];
    let mut work: Vec<ExprId> = Vec::new();
    let mut found = Vec::new();
    let mut visit = |id: ExprId, work: &mut Vec<ExprId>| {
        if !std::mem::replace(&mut seen[id.index()], true) {
            work.push(id);
            found.push(id);
        }
    };
    for root in roots {
        visit(root, &mut work);
    }
    while let Some(id) = work.pop() {
        may_go_on()?;
        exprs.for_each_child(id, |child| visit(child, &mut work));
    }
    found.sort_unstable();
    Ok(found)
}

/// Maps expressions of one set to their copies in another.
pub(crate) struct Copies {
    /// Expressions with smaller ids are the same in both sets.
    common: usize,
    made: FxHashMap<ExprId, ExprId>,
}

impl Copies {
    /// The copy of an expression that is reachable from the roots.
    pub(crate) fn of(&self, id: ExprId) -> ExprId {
        if id.index() < self.common { id } else { self.made[&id] }
    }
}

/// Copies all roots together, so that shared parts are copied once. What both sets have in common is not visited.
pub(crate) fn copy(from: &ExprSet, roots: impl IntoIterator<Item = ExprId>, into: &mut ExprSet) -> Copies {
    let Ok(copies) = copy_while(from, roots, into, || Ok::<_, Infallible>(()));
    copies
}

/// As [`copy`], for as long as `may_go_on` allows.
pub(crate) fn copy_while<E>(
    from: &ExprSet,
    roots: impl IntoIterator<Item = ExprId>,
    into: &mut ExprSet,
    may_go_on: impl Fn() -> Result<(), E>,
) -> Result<Copies, E> {
    let mut copies = Copies { common: into.common_with(from), made: FxHashMap::default() };
    let common = copies.common;
    let mut seen = vec![false; from.len() - common];
    let mut found: Vec<ExprId> = Vec::new();
    let mut visit = |id: ExprId, found: &mut Vec<ExprId>| {
        if id.index() >= common && !std::mem::replace(&mut seen[id.index() - common], true) {
            found.push(id);
        }
    };
    for root in roots {
        visit(root, &mut found);
    }
    let mut next = 0;
    while let Some(&id) = found.get(next) {
        next += 1;
        may_go_on()?;
        from.for_each_child(id, |child| visit(child, &mut found));
    }
    if found.len() == from.own_len() && common == into.len() {
        // All expressions are copied, so every copy would have the same id.
        into.take_over(from);
        return Ok(Copies { common: from.len(), ..copies });
    }
    // An expression is interned after its children.
    found.sort_unstable();
    for id in found {
        may_go_on()?;
        let made = rebuilt(into, from.get(id), |child| copies.of(child));
        copies.made.insert(id, made);
    }
    Ok(copies)
}

/// Builds the expression with the constructors of `into`, from children that are there already.
pub(crate) fn rebuilt(into: &mut ExprSet, expr: &Expr, child: impl Fn(ExprId) -> ExprId) -> ExprId {
    let all = |parts: &[ExprId]| parts.iter().map(|&part| child(part)).collect::<Vec<_>>();
    match expr {
        Expr::Nothing => ExprId::NOTHING,
        Expr::Empty => ExprId::EMPTY,
        Expr::Bytes(set) => into.bytes(*set),
        Expr::Concat { head, tail } => into.concat(child(*head), child(*tail)),
        Expr::Or(parts) => into.or(&all(parts)),
        Expr::And(parts) => into.and(&all(parts)),
        Expr::Not(inner) => into.not(child(*inner)),
        Expr::Repeat { body, min, max } => into.repeat(child(*body), *min, *max),
        Expr::Number(number) => into.number_again(number),
        Expr::Text(text) => into.text(text),
        Expr::Language(rest) => into.language_rest((**rest).clone()),
    }
}

/// The set of numbers of an expression of a grammar.
pub(crate) fn whole_set(number: &Number) -> &NumberSet {
    number.whole().expect("nothing is derived in a grammar, so its sets of numbers are whole")
}

/// The name of the language of an expression of a grammar.
pub(crate) fn whole_language(rest: &LanguageRest) -> &'static str {
    rest.whole().expect("nothing is derived in a grammar, so its languages are whole").name()
}
