//! Copies of expressions from one set into another, many at a time.

use rustc_hash::FxHashMap;
use stencilm_regex::{Expr, ExprId, ExprSet, Number, NumberSet};

/// Everything that the roots are made of, themselves included, children before parents.
///
/// An expression is interned after its children, so the order of the ids is such an order.
pub(crate) fn reachable(exprs: &ExprSet, roots: impl IntoIterator<Item = ExprId>) -> Vec<ExprId> {
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
        exprs.for_each_child(id, |child| visit(child, &mut work));
    }
    found.sort_unstable();
    found
}

/// Copies all roots with one memory for what they share; gives the copy of everything they are made of.
pub(crate) fn copy(
    from: &ExprSet,
    roots: impl IntoIterator<Item = ExprId>,
    into: &mut ExprSet,
) -> FxHashMap<ExprId, ExprId> {
    let mut copies: FxHashMap<ExprId, ExprId> = FxHashMap::default();
    for id in reachable(from, roots) {
        let made = rebuilt(into, from.get(id), |child| copies[&child]);
        copies.insert(id, made);
    }
    copies
}

/// The expression made by the constructors of `into`, from children that are there already.
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
    }
}

/// The set of which an expression of a grammar is.
pub(crate) fn whole_set(number: &Number) -> &NumberSet {
    number.whole().expect("nothing is derived in a grammar, so its sets of numbers are whole")
}
