//! Objects and arrays as EBNF text.

use super::escapes;
use super::print_expr::Place;
use super::print_steps::Step;
use crate::ir::grammar::{AdditionalMembers, ArraySurface, DeclaredMember, Element, Items, Members, NodeId, Repeats};
use crate::json::surface::Surface;
use stencilm_regex::ExprId;

fn sign(name: &'static str, expr: ExprId) -> [Step; 5] {
    [Step::Text("  "), Step::Text(name), Step::Text(" = "), Step::Expr(expr), Step::Text(";\n")]
}

fn value(node: NodeId) -> [Step; 3] {
    [Step::Text(": "), Step::Node(node, Place::Alternatives), Step::Text(";\n")]
}

/// `name {m,n};`
fn counted(name: &str, (min, max): (u32, Option<u32>)) -> Step {
    let mut entry = format!("  {name} ");
    let max_text = max.map_or(String::new(), |max| max.to_string());
    entry.push_str(&format!("{{{min},{max_text}}};\n"));
    Step::Owned(entry)
}

pub(super) fn object(members: &Members) -> Vec<Step> {
    let Members { declared: known, ordered, additional, min, max, surface } = members;
    let Surface { empty, open, colon, item, close } = *surface;
    let mut steps = vec![Step::Text("%object {\n")];
    for (name, expr) in [("empty", empty), ("open", open), ("colon", colon), ("item", item), ("close", close)] {
        steps.extend(sign(name, expr));
    }
    if (*min, *max) != (0, None) {
        steps.push(counted("count", (*min, *max)));
    }
    let is_mixed = *ordered < known.len() || (*ordered == 0 && !additional.is_empty());
    if is_mixed && *ordered == 0 {
        steps.push(Step::Text("  order = any;\n"));
    }
    for (index, DeclaredMember { name, key, value: node, required }) in known.iter().enumerate() {
        if is_mixed && index == *ordered && index > 0 {
            steps.push(Step::Text("  mixed;\n"));
        }
        let mut entry = if *required { "  member " } else { "  optional " }.to_string();
        escapes::write_text(&mut entry, name);
        match key {
            Some(key) => steps.extend([Step::Owned(entry), Step::Text(" = "), Step::Expr(*key), Step::Text(" ")]),
            None => steps.push(Step::Owned(entry)),
        }
        steps.extend(value(*node));
    }
    for AdditionalMembers { key, reserved: taken, value: node, some, last, space: _ } in additional {
        let mut entry = "  taken".to_string();
        for name in taken {
            entry.push(' ');
            escapes::write_text(&mut entry, name);
        }
        steps.extend([Step::Owned(entry), Step::Text(";\n")]);
        steps.extend([Step::Text("  others = "), Step::Expr(*key), Step::Text(" ")]);
        steps.extend(value(*node));
        if let Some(some) = some {
            steps.push(Step::Text("  some "));
            steps.extend(value(*some));
        }
        if let Some(last) = last {
            let mut entry = "  last = ".to_string();
            escapes::write_text(&mut entry, last);
            steps.extend([Step::Owned(entry), Step::Text(";\n")]);
        }
    }
    steps.push(Step::Text("}"));
    steps
}

pub(super) fn array(items: &Items) -> Vec<Step> {
    let ArraySurface { empty, open, item, close } = items.surface;
    let mut steps = vec![Step::Text("%array {\n")];
    for (name, expr) in [("empty", empty), ("open", open), ("item", item), ("close", close)] {
        steps.extend(sign(name, expr));
    }
    if (items.min, items.max) != (0, None) {
        steps.push(counted("count", (items.min, items.max)));
    }
    for (index, &bounds) in items.contains.iter().enumerate() {
        steps.push(counted(&format!("contains c{index}"), bounds));
    }
    match items.repeats {
        Repeats::Any => {}
        Repeats::Never { counted: false } => steps.push(Step::Text("  unique;\n")),
        Repeats::Never { counted: true } => steps.push(Step::Text("  unique counted;\n")),
        Repeats::Required => steps.push(Step::Text("  repeated;\n")),
    }
    let mut element = |name: &str, element: &Element| {
        let mut entry = format!("  {name}");
        for index in (0..items.contains.len()).filter(|index| element.counts & (1 << index) != 0) {
            entry.push_str(&format!(" c{index}"));
        }
        steps.push(Step::Owned(entry));
        steps.extend(value(element.value));
    };
    for place in &items.prefix {
        for (index, alternative) in place.iter().enumerate() {
            element(if index == 0 { "place" } else { "also" }, alternative);
        }
    }
    items.rest.iter().for_each(|alternative| element("rest", alternative));
    steps.push(Step::Text("}"));
    steps
}
