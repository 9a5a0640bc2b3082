//! Why nothing matches: the path from the root to the two constraints that clash.
//!
//! While rules are built, every node that might match nothing leaves its reasons here. They are followed only when the
//! whole turns out to be impossible; for a schema that works this costs next to nothing.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use stencilm_regex::{Deriver, ExprId, ExprSet, Limits};
use stencilm_support::{LimitExceeded, Map, decided};

use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::NodeId;
use crate::json::values::common_exprs;
use crate::json_schema::normal_form::merged::Clash;
use crate::json_schema::read::schema::{SchemaId, Schemas};

/// One way to match a value, and what may make it impossible.
pub(crate) enum Branch {
    /// Nothing makes it impossible.
    Possible,
    /// It is ruled out.
    Impossible(Vec<Clash>),
    /// A string with several constraints, which may exclude each other.
    Text { expr: ExprId, at: SchemaId },
    /// An array or object that must contain these.
    Needs(Vec<Need>),
}

/// A value that an array or object must contain.
pub(crate) struct Need {
    pub(crate) node: NodeId,
    /// Nodes that would satisfy the need as well.
    pub(crate) others: Vec<NodeId>,
    pub(crate) at: SchemaId,
    pub(crate) what: What,
}

/// Which contained value.
pub(crate) enum What {
    Required(Arc<str>),
    Element(usize),
    /// A second element, because two elements must be equal.
    Second,
    /// An element that this keyword counts.
    Counted(&'static str),
    /// This many members, among them one that is optional.
    Members(u32),
}

impl Need {
    pub(super) fn new(node: NodeId, at: SchemaId, what: What) -> Need {
        Need { node, others: Vec::new(), at, what }
    }

    /// A need that any of these nodes satisfies; `None` if there is no node.
    pub(super) fn of_any(mut nodes: impl Iterator<Item = NodeId>, at: SchemaId, what: What) -> Option<Need> {
        Some(Need { node: nodes.next()?, others: nodes.collect(), at, what })
    }

    fn is_met(&self, is_live: impl Fn(NodeId) -> bool) -> bool {
        is_live(self.node) || self.others.iter().any(|&node| is_live(node))
    }

    fn describe(&self) -> String {
        match &self.what {
            What::Required(name) => format!("required names {name:?}"),
            What::Element(place) => format!("minItems asks for an element at index {place}"),
            What::Second => "uniqueItems must fail, which takes two elements".into(),
            What::Counted(keyword) => format!("{keyword} asks for an element"),
            What::Members(least) => format!("minProperties asks for {least} members"),
        }
    }
}

/// The nodes that might match nothing, with their reasons.
#[derive(Default)]
pub(crate) struct Reasons {
    by_node: Map<NodeId, (SchemaId, Vec<Branch>)>,
    texts: bool,
}

impl Reasons {
    /// Records the branches of a node, unless one of them is always possible.
    pub(crate) fn add(&mut self, node: NodeId, at: SchemaId, branches: &mut Vec<Branch>) {
        if branches.iter().any(|branch| matches!(branch, Branch::Possible)) {
            return;
        }
        self.texts |= branches.iter().any(|branch| matches!(branch, Branch::Text { .. }));
        self.by_node.insert(node, (at, std::mem::take(branches)));
    }

    /// Whether it may depend on expressions not yet searched for a match whether a node matches something.
    pub(crate) fn depends_on_lexemes(&self, node: NodeId) -> bool {
        self.texts && self.by_node.contains_key(&node)
    }

    /// Why a node matches nothing; `None` if it matches something. Without `exprs`, all strings are assumed to be
    /// possible.
    pub(crate) fn explain(&self, schemas: &Schemas, exprs: Option<ExprSet>, root: NodeId) -> Option<GrammarError> {
        self.by_node.get(&root)?;
        let live_texts = match exprs.map(|exprs| self.live_texts(exprs)).transpose() {
            Ok(live) => live,
            Err(limit) => return Some(GrammarError::limit(schemas.place(schemas.root), limit)),
        };
        let text_lives = |expr: ExprId| live_texts.as_ref().is_none_or(|live| live.contains(&expr));
        let live = self.live_nodes(&text_lives);
        let is_live = |node: NodeId| !self.by_node.contains_key(&node) || live.contains(&node);
        if is_live(root) {
            return None;
        }
        let mut visited = FxHashSet::default();
        let mut node = root;
        let mut last_need: Option<&Need> = None;
        loop {
            let (at, branches) = self.by_node.get(&node)?;
            if !visited.insert(node) {
                let need = last_need.map_or_else(String::new, Need::describe);
                let place = last_need.map_or(*at, |need| need.at);
                let message = format!(
                    "nothing can match: {need}, which leads back to the same schema without an end; make it optional or \
                     give it another form"
                );
                return Some(unsatisfiable(schemas.place(place), message));
            }
            let next = branches.iter().find_map(|branch| match branch {
                Branch::Needs(needs) => needs.iter().find(|need| !need.is_met(is_live)),
                _ => None,
            });
            let clash = branches.iter().find_map(|branch| match branch {
                Branch::Impossible(clashes) => clashes.first().cloned(),
                Branch::Text { at, .. } => Some(Clash {
                    place: schemas.place(*at),
                    message: "pattern, format and length constraints exclude each other, so no string fits".into(),
                }),
                _ => None,
            });
            match (clash, next) {
                (Some(clash), _) => return Some(clash_error(schemas, clash, branches.len(), last_need)),
                (None, Some(need)) => {
                    node = need.node;
                    last_need = Some(need);
                }
                (None, None) => return None,
            }
        }
    }

    fn live_texts(&self, exprs: ExprSet) -> Result<FxHashSet<ExprId>, LimitExceeded> {
        let mut deriver = Deriver::over(common_exprs(), Limits::default());
        deriver.exprs = exprs;
        let texts = self.by_node.values().flat_map(|(_, branches)| branches).filter_map(|branch| match branch {
            Branch::Text { expr, .. } => Some(*expr),
            _ => None,
        });
        let mut live = FxHashSet::default();
        for expr in texts {
            // If it's too hard to decide, the string counts as possible: then the message names another reason.
            if decided(|| deriver.is_live(expr))? != Some(false) {
                live.insert(expr);
            }
        }
        Ok(live)
    }

    /// The nodes that do match something: those whose needs all do, from the inside out.
    fn live_nodes(&self, text_lives: &impl Fn(ExprId) -> bool) -> FxHashSet<NodeId> {
        let mut live: FxHashSet<NodeId> = FxHashSet::default();
        loop {
            let before = live.len();
            for (node, (_, branches)) in self.by_node.iter().rev() {
                let is_live = |node: NodeId| !self.by_node.contains_key(&node) || live.contains(&node);
                let possible = branches.iter().any(|branch| match branch {
                    Branch::Possible => true,
                    Branch::Impossible(_) => false,
                    Branch::Text { expr, .. } => text_lives(*expr),
                    Branch::Needs(needs) => needs.iter().all(|need| need.is_met(is_live)),
                });
                if possible {
                    live.insert(*node);
                }
            }
            if live.len() == before {
                return live;
            }
        }
    }
}

#[cold]
fn clash_error(schemas: &Schemas, clash: Clash, branches: usize, need: Option<&Need>) -> GrammarError {
    let more = if branches > 1 {
        format!(" (and none of the other {} ways to write the value is possible)", branches - 1)
    } else {
        String::new()
    };
    match need {
        None => unsatisfiable(clash.place, format!("{}{more}", clash.message)),
        Some(need) => {
            let message = format!(
                "{}, but no value is possible there: at {}, {}{more}",
                need.describe(),
                clash.place,
                clash.message
            );
            unsatisfiable(schemas.place(need.at), message)
        }
    }
}

#[cold]
fn unsatisfiable(place: String, message: String) -> GrammarError {
    GrammarError::new(ErrorKind::Unsatisfiable, place, message)
}
