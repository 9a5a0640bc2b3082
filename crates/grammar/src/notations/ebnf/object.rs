//! The entries of `%object { ... }` to a node of its own; what is left out is what JSON writes.

use std::sync::Arc;

use stencilm_regex::{ExprId, ExprSet};

use super::terminals::Terminals;
use super::tree::{Object, Others, PartId};
use crate::error::GrammarError;
use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::{AdditionalMembers, DeclaredMember, Members, NodeId};
use crate::ir::objects::ObjectChecks;
use crate::ir::syntax_error::SyntaxError;
use crate::json::surface::Surface;
use crate::json_schema;

/// The greatest length of whitespace around the punctuation of an object or an array whose surface is not given.
const MAX_WHITESPACE: u32 = 64;

/// A punctuation mark with whitespace on these sides.
pub(super) fn gap(exprs: &mut ExprSet, before: bool, sign: &str, after: bool) -> ExprId {
    let whitespace = exprs.bytes([b' ', b'\t', b'\n', b'\r'].into_iter().collect());
    let whitespace = exprs.repeat(whitespace, 0, Some(MAX_WHITESPACE));
    let sign = exprs.literal(sign.as_bytes());
    let side = |wanted: bool| if wanted { whitespace } else { ExprId::EMPTY };
    exprs.concat_all(&[side(before), sign, side(after)])
}

/// Builds an object described in EBNF. `nodes` are the nodes of all parts before it.
pub(crate) fn members(
    builder: &mut GrammarBuilder,
    terminals: &mut Terminals<'_>,
    checks: &mut ObjectChecks,
    place: usize,
    object: &Object,
    nodes: &[NodeId],
) -> Result<Members, SyntaxError> {
    let mut given = |builder: &mut GrammarBuilder, part: Option<PartId>| -> Result<Option<ExprId>, SyntaxError> {
        part.map(|part| terminals.expr(builder, part)).transpose()
    };
    let empty = given(builder, object.empty)?;
    let open = given(builder, object.open)?;
    let colon = given(builder, object.colon)?;
    let item = given(builder, object.item)?;
    let close = given(builder, object.close)?;
    let exprs = &mut builder.exprs;
    let open = open.unwrap_or_else(|| gap(exprs, false, "{", true));
    let colon = colon.unwrap_or_else(|| gap(exprs, true, ":", true));
    let item = item.unwrap_or_else(|| gap(exprs, true, ",", true));
    let close = close.unwrap_or_else(|| gap(exprs, true, "}", false));
    let brace = exprs.literal(b"}");
    let empty = empty.unwrap_or_else(|| exprs.concat(open, brace));
    let surface = Surface { empty, open, colon, item, close };

    let mut known = Vec::with_capacity(object.members.len());
    for member in &object.members {
        let key = match given(builder, member.key)? {
            None if DeclaredMember::is_plain(&member.name) => None,
            None => Some(json_schema::quoted_literals(&mut builder.exprs, &[&member.name])),
            given => given,
        };
        let value = nodes[member.value.index()];
        known.push(DeclaredMember { name: member.name.as_str().into(), key, value, required: member.required });
    }
    let refused = |error: GrammarError| SyntaxError { kind: error.kind, ..SyntaxError::at(place, error.message) };
    let mut additional = Vec::with_capacity(object.others.len());
    for Others { key, taken, value, some, last } in &object.others {
        let given = given(builder, *key)?;
        let key = given.unwrap_or_else(|| json_schema::quoted_any(&mut builder.exprs));
        let mut names: Vec<&str> = match taken {
            Some(names) => names.iter().map(String::as_str).collect(),
            None => object.members.iter().map(|member| member.name.as_str()).collect(),
        };
        names.sort_unstable();
        names.dedup();
        let space = checks.key_space(&builder.exprs, key, &names).map_err(refused)?;
        // A key completed by `last` has no closing quote of its own.
        if given.is_some() && last.is_none() {
            checks.check_closed(&builder.exprs, key).map_err(refused)?;
        }
        let taken = names.into_iter().map(Arc::from).collect();
        let node = |part: &PartId| nodes[part.index()];
        additional.push(AdditionalMembers {
            key,
            space,
            reserved: taken,
            value: node(value),
            some: some.as_ref().map(node),
            last: last.as_deref().map(Into::into),
        });
    }
    let ordered = object.ordered.unwrap_or(known.len());
    let (min, max) = object.count.unwrap_or((0, None));
    let members = Members { declared: known, ordered, additional, min, max, surface };
    checks.check(&builder.exprs, builder.nodes(), &members).map_err(refused)?;
    Ok(members)
}
