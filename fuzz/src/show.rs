//! A grammar as text for people; every node is shown once, by its number.

use std::fmt::Write;

use stencilm_grammar::{Grammar, Members, Node, NodeId};
use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet};

/// Expressions with deeper nesting are truncated.
const MAX_DEPTH: usize = 12;

/// Longer lines are truncated.
const MAX_LINE: usize = 400;

/// The reachable nodes, one per line, the root first.
pub fn grammar(grammar: &Grammar) -> String {
    let mut shown: Vec<NodeId> = Vec::new();
    let mut work = vec![grammar.root()];
    let mut text = String::new();
    while let Some(node) = work.pop() {
        if shown.contains(&node) || shown.len() > 200 {
            continue;
        }
        shown.push(node);
        let line = line(grammar, node, &mut |child| {
            work.push(child);
            format!("n{}", child.0)
        });
        let line: String = line.chars().take(MAX_LINE).collect();
        writeln!(text, "  n{} ::= {line}", node.0).expect("a string takes all text");
    }
    text
}

fn line(grammar: &Grammar, node: NodeId, child: &mut dyn FnMut(NodeId) -> String) -> String {
    let counts = |min: u32, max: Option<u32>| match max {
        Some(max) => format!("{{{min},{max}}}"),
        None => format!("{{{min},}}"),
    };
    match grammar.node(node) {
        Node::Lexeme(lexeme) => format!("/{}/", expr(grammar.exprs(), *lexeme, 0)),
        Node::Sequence(parts) => parts.iter().map(|&part| child(part)).collect::<Vec<_>>().join(" "),
        Node::Choice(parts) => parts.iter().map(|&part| child(part)).collect::<Vec<_>>().join(" | "),
        Node::Repeat { body, min, max } => child(*body) + &counts(*min, *max),
        Node::Rule(rule) => format!("{} = {}", grammar.rule(*rule).name, child(grammar.rule(*rule).body)),
        Node::Members(members) => object(grammar, grammar.members(*members), child),
        Node::Items(items) => {
            let items = grammar.items(*items);
            let elements: Vec<String> = items.elements().map(|element| child(element.value)).collect();
            format!("{items:?} of {}", elements.join(" "))
        }
        Node::Token(pattern) => format!("{pattern:?}"),
        Node::Marked { mark, body } => format!("{mark:?} {}", child(*body)),
    }
}

fn object(grammar: &Grammar, members: &Members, child: &mut dyn FnMut(NodeId) -> String) -> String {
    let exprs = grammar.exprs();
    let mut parts: Vec<String> = Vec::new();
    for known in &members.declared {
        let required = if known.required { "" } else { "?" };
        let key = known.key.map_or_else(|| format!("{:?}", known.name), |key| format!("/{}/", expr(exprs, key, 0)));
        parts.push(format!("{key}{required}: {}", child(known.value)));
    }
    for additional in &members.additional {
        let some = additional.some.map_or(String::new(), |some| format!(", some {}", child(some)));
        parts.push(format!(
            "/{}/ not {:?}: {}{some}",
            expr(exprs, additional.key, 0),
            additional.reserved,
            child(additional.value)
        ));
    }
    let ordered = members.ordered;
    let counts = (members.min, members.max);
    format!(
        "object, {ordered} in order, {counts:?} members, item /{}/ {{ {} }}",
        expr(exprs, members.surface.item, 0),
        parts.join("; ")
    )
}

fn expr(exprs: &ExprSet, id: ExprId, depth: usize) -> String {
    if depth > MAX_DEPTH {
        return "..".into();
    }
    let show = |id: ExprId| expr(exprs, id, depth + 1);
    let join = |parts: &[ExprId], by: &str| parts.iter().map(|&part| show(part)).collect::<Vec<_>>().join(by);
    match exprs.get(id) {
        Expr::Nothing => "<nothing>".into(),
        Expr::Empty => String::new(),
        Expr::Bytes(set) => bytes(set),
        Expr::Concat { head, tail } => show(*head) + &show(*tail),
        Expr::Or(parts) => format!("({})", join(parts, "|")),
        Expr::And(parts) => format!("({})", join(parts, "&")),
        Expr::Not(inner) => format!("~({})", show(*inner)),
        Expr::Repeat { body, min, max } => {
            let max = max.map_or(String::new(), |max| max.to_string());
            format!("({}){{{min},{max}}}", show(*body))
        }
        Expr::Language(rest) => format!("<{rest:?}>"),
        Expr::Number(number) => number.whole().map_or("<a rest of numbers>".into(), |set| format!("<{set}>")),
        Expr::Text(text) => text.escape_debug().to_string(),
    }
}

fn bytes(set: &ByteSet) -> String {
    let name = |byte: u8| byte.escape_ascii().to_string();
    let (sign, listed) = if set.len() > 128 { ("^", set.complement()) } else { ("", *set) };
    let listed: Vec<u8> = listed.iter().collect();
    match (sign, listed.as_slice()) {
        ("", [byte]) => name(*byte),
        (_, [first, .., last]) if usize::from(last - first) + 1 == listed.len() => {
            format!("[{sign}{}-{}]", name(*first), name(*last))
        }
        _ => format!("[{sign}{}]", listed.iter().map(|&byte| name(byte)).collect::<String>()),
    }
}
