//! The flat tree to nodes and expressions, by loops: a part stands after what it is made of.

use stencilm_regex::ExprId;
use stencilm_support::decided;

use super::divided::divided;
use super::terminals::Terminals;
use super::tree::{Part, PartId, Text};
use super::{array, object};
use crate::error::ErrorKind;
use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::{Node, NodeId, RuleId};
use crate::ir::objects::ObjectChecks;
use crate::ir::syntax_error::SyntaxError;
use crate::notations::lookahead;
use crate::notations::lookahead::Conditions;

/// Adds all rules of a text to a builder; returns the node of the start rule, which is given by its index in the names.
pub(crate) fn lower(builder: &mut GrammarBuilder, text: &Text, root: usize) -> Result<NodeId, SyntaxError> {
    let lowered = lowered(builder, text, root);
    match (lowered, builder.exprs.given_up()) {
        // The error was found in incomplete expressions, so it may be wrong.
        (Err(error), Some(limit)) if error.kind != ErrorKind::Limit => {
            let (_, start) = text.names[root];
            Err(SyntaxError::growth(start, limit))
        }
        (lowered, _) => lowered,
    }
}

fn lowered(builder: &mut GrammarBuilder, text: &Text, root: usize) -> Result<NodeId, SyntaxError> {
    let rules: Vec<RuleId> = text.names.keys().map(|name| builder.declare_rule(name.clone())).collect();
    let mut terminals = Terminals::new(text);
    let mut checks = ObjectChecks::default();
    let mut conditions = Conditions::default();
    let mut nodes: Vec<NodeId> = Vec::with_capacity(text.parts.len());
    for (index, part) in text.parts.iter().enumerate() {
        SyntaxError::check_time(text.places[index])?;
        let id = PartId(index as u32);
        let all = |parts: &[PartId]| parts.iter().map(|part| nodes[part.index()]).collect::<Vec<_>>();
        let node = match part {
            Part::Terminal(expr) => builder.lexeme(*expr),
            Part::Call(rule) => builder.node(Node::Rule(rules[*rule as usize])),
            Part::Sequence(parts) => builder.sequence(&all(parts)),
            Part::Choice(parts) => builder.choice(&all(parts)),
            Part::Repeat { body, min, max } => builder.repeat(nodes[body.index()], *min, *max),
            Part::And(_) | Part::Complement(_) | Part::Not(_) | Part::Lexeme(_) | Part::Lazy(_) => {
                let expr = terminals.expr(builder, id)?;
                builder.lexeme(expr)
            }
            Part::Divided(parts) => {
                let place = text.places[index];
                let (body, ending) = (terminals.expr(builder, parts.body)?, terminals.expr(builder, parts.ending)?);
                let whole = parts.whole.map(|whole| terminals.expr(builder, whole)).transpose()?;
                let groups = decided(|| divided(builder, body, ending, whole));
                let groups = groups.map_err(|limit| SyntaxError::growth(place, limit))?;
                let groups = groups.flatten().ok_or_else(|| {
                    let message = "telling where the end of this text begins takes too long; give a simpler end, or one \
                                   that is a plain text";
                    SyntaxError::limit(place, message.to_string())
                })?;
                let mut alternatives = Vec::with_capacity(groups.len());
                for (body, ending) in groups {
                    let (mut body, mut ending) = (builder.lexeme(body), builder.lexeme(ending));
                    for mark in &parts.marks {
                        body = builder.marked(mark.clone(), body);
                    }
                    if let Some(mark) = &parts.ending_mark {
                        ending = builder.marked(mark.clone(), ending);
                    }
                    alternatives.push(builder.sequence(&[body, ending]));
                }
                builder.choice(&alternatives)
            }
            Part::Token(pattern) => builder.node(Node::Token(Box::new(pattern.clone()))),
            Part::Marked { mark, body } => builder.marked(mark.clone(), nodes[body.index()]),
            Part::Object(entries) => {
                let members =
                    object::members(builder, &mut terminals, &mut checks, text.places[index], entries, &nodes)?;
                builder.object(members)
            }
            Part::Array(entries) => {
                let items = array::items(builder, &mut terminals, &mut checks, text.places[index], entries, &nodes)?;
                builder.array(items)
            }
            Part::Node(node) => *node,
            Part::Ahead(condition) => {
                let empty = builder.sequence(&[]);
                conditions.insert(empty, (*condition, text.places[index]));
                empty
            }
            Part::Lookahead(body) => {
                let first = terminals.expr(builder, *body)?;
                let condition = builder.exprs.concat(first, ExprId::ANYTHING);
                let empty = builder.sequence(&[]);
                conditions.insert(empty, (condition, text.places[index]));
                empty
            }
        };
        nodes.push(node);
    }
    for (&rule, &(body, _)) in rules.iter().zip(text.names.values()) {
        let body = body.expect("the parser refuses rules without a body");
        builder.define_rule(rule, nodes[body.index()]);
    }
    let root = builder.node(Node::Rule(rules[root]));
    lookahead::kept(builder, root, &conditions)
}
