//! The entries of `%array { ... }` to a node of its own; what is left out is what JSON writes.

use stencilm_regex::ExprId;

use super::object::gap;
use super::terminals::Terminals;
use super::tree::{Array, PartId};
use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::{ArraySurface, Element, Items, NodeId};
use crate::ir::objects::ObjectChecks;
use crate::ir::syntax_error::SyntaxError;

/// Builds an array described in EBNF. `nodes` are the nodes of all parts before it.
pub(super) fn items(
    builder: &mut GrammarBuilder,
    terminals: &mut Terminals<'_>,
    checks: &mut ObjectChecks,
    place: usize,
    array: &Array,
    nodes: &[NodeId],
) -> Result<Items, SyntaxError> {
    let mut given = |part: Option<PartId>| -> Result<Option<ExprId>, SyntaxError> {
        part.map(|part| terminals.expr(builder, part)).transpose()
    };
    let (empty, open) = (given(array.empty)?, given(array.open)?);
    let (item, close) = (given(array.item)?, given(array.close)?);
    let exprs = &mut builder.exprs;
    let open = open.unwrap_or_else(|| gap(exprs, false, "[", true));
    let item = item.unwrap_or_else(|| gap(exprs, true, ",", true));
    let close = close.unwrap_or_else(|| gap(exprs, true, "]", false));
    let bracket = exprs.literal(b"]");
    let empty = empty.unwrap_or_else(|| exprs.concat(open, bracket));
    let surface = ArraySurface { empty, open, item, close };
    let alternatives = |place: &Vec<(u32, PartId)>| -> Box<[Element]> {
        place.iter().map(|&(counts, part)| Element { value: nodes[part.index()], counts }).collect()
    };
    let (min, max) = array.count.unwrap_or((0, None));
    let items = Items {
        prefix: array.prefix.iter().map(alternatives).collect(),
        rest: alternatives(&array.rest),
        min,
        max,
        contains: array.contains.values().copied().collect(),
        repeats: array.repeats,
        surface,
    };
    checks
        .check_array(&builder.exprs, &items)
        .and_then(|()| items.check_counters())
        .map_err(|error| SyntaxError { kind: error.kind, ..SyntaxError::at(place, error.message) })?;
    Ok(items)
}
