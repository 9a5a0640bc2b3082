//! The crate's HIR to our tree: one visit, children first, without recursion.

use regex_syntax::hir::{self, Class, Hir, HirKind};
use stencilm_support::{LimitExceeded, check_time};

use super::kinds::ranges_of;
use super::tree::{Node, NodeId, Tree};

/// Adds the whole of `hir` to the tree, unless it takes too long.
pub(super) fn add(tree: &mut Tree<'_>, hir: &Hir) -> Result<NodeId, LimitExceeded> {
    hir::visit(hir, Builder { tree, done: Vec::new() })
}

/// Collects the nodes of finished children, in order.
struct Builder<'t, 'a> {
    tree: &'t mut Tree<'a>,
    done: Vec<NodeId>,
}

impl hir::Visitor for Builder<'_, '_> {
    type Output = NodeId;
    type Err = LimitExceeded;

    fn finish(mut self) -> Result<NodeId, Self::Err> {
        Ok(self.done.pop().expect("the root is visited last and leaves its node"))
    }

    fn visit_post(&mut self, hir: &Hir) -> Result<(), Self::Err> {
        check_time()?;
        let tree = &mut *self.tree;
        let node = match hir.kind() {
            HirKind::Empty => tree.push(Node::Empty),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).expect("the translator keeps literals in UTF-8");
                tree.literal(text)
            }
            HirKind::Class(class) => {
                let unicode = match class {
                    Class::Unicode(class) => class.clone(),
                    Class::Bytes(class) => {
                        class.to_unicode_class().expect("the translator keeps byte classes inside ASCII")
                    }
                };
                let ranges = ranges_of(&unicode);
                let expr = tree.class(ranges.clone());
                tree.push(Node::Class { ranges, expr })
            }
            &HirKind::Look(look) => tree.push(Node::Look(look)),
            HirKind::Repetition(repetition) => {
                let body = self.done.pop().expect("a repetition comes after its body");
                tree.repeat(body, repetition.min, repetition.max)
            }
            HirKind::Capture(group) => {
                let around = group.name.as_deref().and_then(super::around::number);
                let Some(around) = around.filter(|&number| number < tree.arounds.len()) else { return Ok(()) };
                self.done.pop();
                tree.push(Node::Around(around))
            }
            HirKind::Concat(parts) => {
                let parts = self.done.split_off(self.done.len() - parts.len());
                tree.concat(&parts)
            }
            HirKind::Alternation(parts) => {
                let parts = self.done.split_off(self.done.len() - parts.len());
                tree.or(parts)
            }
        };
        self.done.push(node);
        Ok(())
    }
}
