//! Masks of a whole draft tree, for speculative decoding: one row for every node. No token stays accepted.

use std::time::{Duration, Instant};

use crate::error::MatcherError;
use crate::matcher::GrammarMatcher;

/// Draft tokens as a tree in the form "first child, next sibling": node `n` has the token `tokens[n]`, its first child
/// is `next_token[n]`, and `next_sibling[n]` is another child of the same parent; -1 stands for none.
#[derive(Clone, Copy, Debug)]
pub struct DraftTree<'a> {
    next_token: &'a [i64],
    next_sibling: &'a [i64],
    tokens: &'a [i64],
    root: usize,
}

/// Why a draft tree is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DraftTreeError {
    /// The three lists have different lengths.
    #[error(
        "the draft tree has {next_token} entries in retrieve_next_token, {next_sibling} in retrieve_next_sibling and \
         {tokens} in draft_tokens; give one of each for every node, and at least one node"
    )]
    Lengths {
        /// The length of the list of first children.
        next_token: usize,
        /// The length of the list of siblings.
        next_sibling: usize,
        /// The length of the list of tokens.
        tokens: usize,
    },
    /// A link does not lead to a node.
    #[error("{list}[{node}] is {target}, but the tree has the nodes 0 to {last}; give one of them, or -1 for none")]
    Link {
        /// Which list.
        list: &'static str,
        /// The node with the link.
        node: usize,
        /// The target of the link.
        target: i64,
        /// The last node.
        last: usize,
    },
    /// A node is reached twice.
    #[error("node {node} of the draft tree is reached twice, so it is no tree; give every node one parent")]
    NotATree {
        /// The node.
        node: usize,
    },
    /// The root is not a node.
    #[error("root_position is {root}, but the draft tree has the nodes 0 to {last}; give one of them")]
    Root {
        /// The given root.
        root: usize,
        /// The last node.
        last: usize,
    },
    /// The root has a sibling.
    #[error("the root of the draft tree, node {root}, has the sibling {sibling}; give -1, since a tree has one root")]
    RootSibling {
        /// The root.
        root: usize,
        /// Its sibling.
        sibling: i64,
    },
}

impl<'a> DraftTree<'a> {
    /// A checked tree: every link leads to a node, and no node is reached twice from the root.
    ///
    /// # Errors
    /// [`DraftTreeError`] tells what is invalid.
    pub fn new(
        next_token: &'a [i64],
        next_sibling: &'a [i64],
        tokens: &'a [i64],
        root: usize,
    ) -> Result<DraftTree<'a>, DraftTreeError> {
        let count = tokens.len();
        if count == 0 || next_token.len() != count || next_sibling.len() != count {
            let (next_token, next_sibling) = (next_token.len(), next_sibling.len());
            return Err(DraftTreeError::Lengths { next_token, next_sibling, tokens: count });
        }
        if root >= count {
            return Err(DraftTreeError::Root { root, last: count - 1 });
        }
        if next_sibling[root] != -1 {
            return Err(DraftTreeError::RootSibling { root, sibling: next_sibling[root] });
        }
        for (list, links) in [("retrieve_next_token", next_token), ("retrieve_next_sibling", next_sibling)] {
            let wrong = |&target: &i64| target < -1 || target >= count as i64;
            if let Some(node) = links.iter().position(wrong) {
                return Err(DraftTreeError::Link { list, node, target: links[node], last: count - 1 });
            }
        }
        let tree = DraftTree { next_token, next_sibling, tokens, root };
        let mut reached = vec![false; count];
        let mut work = vec![root];
        while let Some(node) = work.pop() {
            if std::mem::replace(&mut reached[node], true) {
                return Err(DraftTreeError::NotATree { node });
            }
            work.extend(DraftTree::link(next_token, node));
            work.extend(DraftTree::link(next_sibling, node));
        }
        Ok(tree)
    }

    /// The number of nodes, which is never 0.
    pub fn num_nodes(&self) -> usize {
        self.tokens.len()
    }

    fn link(links: &[i64], node: usize) -> Option<usize> {
        usize::try_from(links[node]).ok()
    }

    /// A node with everything below it and below its next siblings.
    fn below(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let mut below = vec![node];
        std::iter::from_fn(move || {
            let node = below.pop()?;
            below.extend(DraftTree::link(self.next_sibling, node));
            below.extend(DraftTree::link(self.next_token, node));
            Some(node)
        })
    }
}

/// A step of the walk: enter a node, or take back the token of a node whose subtree is done.
enum Visit {
    Enter(usize),
    Leave,
}

impl GrammarMatcher {
    /// Writes, for every node of a draft tree, the tokens that may come after it. The root stands for what was
    /// accepted: its token is ignored. Nodes that the grammar refuses or that come after the end of the text, and all
    /// nodes below them, get a row of zeros. `rows` holds one mask for each node; rows of nodes that are not below the
    /// root are left alone. The matcher is unchanged afterwards.
    ///
    /// With a time limit the walk may stop early. It returns `false` then, and the rows that were not reached are
    /// zeros.
    ///
    /// # Errors
    /// As [`GrammarMatcher::fill_mask`] and [`GrammarMatcher::accept_token`]; the matcher is left as it was, too.
    ///
    /// # Panics
    /// When `rows` has another length.
    pub fn traverse_draft_tree(
        &mut self,
        tree: &DraftTree<'_>,
        rows: &mut [u32],
        time_limit: Option<Duration>,
    ) -> Result<bool, MatcherError> {
        let words = self.compiled().vocabulary().mask_words();
        assert_eq!(rows.len(), words * tree.num_nodes(), "one row for every node");
        tree.below(tree.root).for_each(|node| rows[node * words..][..words].fill(0));
        let deadline = time_limit.and_then(|limit| Instant::now().checked_add(limit));
        self.at_nodes(tree, deadline, |matcher, node| matcher.fill_mask(&mut rows[node * words..][..words]).map(|_| ()))
    }

    /// For every node of a draft tree, the [temperature](GrammarMatcher::temperature) for the token after it. It is
    /// `None` also for nodes that the grammar refuses, and for those below them. The matcher is unchanged afterwards.
    ///
    /// # Errors
    /// As [`GrammarMatcher::traverse_draft_tree`].
    pub fn draft_tree_temperatures(&mut self, tree: &DraftTree<'_>) -> Result<Vec<Option<f64>>, MatcherError> {
        let mut temperatures = vec![None; tree.num_nodes()];
        self.at_nodes(tree, None, |matcher, node| {
            temperatures[node] = matcher.temperature()?;
            Ok(())
        })?;
        Ok(temperatures)
    }

    /// Calls something at every node of a draft tree that the grammar accepts, while the tokens on the path to it are
    /// accepted, and takes them back. Returns whether all nodes were reached before the deadline.
    fn at_nodes(
        &mut self,
        tree: &DraftTree<'_>,
        deadline: Option<Instant>,
        visit: impl FnMut(&mut GrammarMatcher, usize) -> Result<(), MatcherError>,
    ) -> Result<bool, MatcherError> {
        let before = self.num_accepted_tokens();
        let done = self.walk_nodes(tree, deadline, visit);
        self.rollback(self.num_accepted_tokens() - before)?;
        done
    }

    fn walk_nodes(
        &mut self,
        tree: &DraftTree<'_>,
        deadline: Option<Instant>,
        mut visit: impl FnMut(&mut GrammarMatcher, usize) -> Result<(), MatcherError>,
    ) -> Result<bool, MatcherError> {
        let mut work = vec![Visit::Enter(tree.root)];
        while let Some(next) = work.pop() {
            let Visit::Enter(node) = next else {
                self.rollback(1)?;
                continue;
            };
            work.extend(DraftTree::link(tree.next_sibling, node).map(Visit::Enter));
            if node != tree.root {
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Ok(false);
                }
                let accepted = match u32::try_from(tree.tokens[node]) {
                    Ok(id) => self.accept_token(id)?,
                    Err(_) => false,
                };
                if !accepted {
                    continue;
                }
                work.push(Visit::Leave);
            }
            if self.is_terminated() {
                continue;
            }
            visit(self, node)?;
            work.extend(DraftTree::link(tree.next_token, node).map(Visit::Enter));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_tree_is_refused() {
        let error = |next: &[i64], sibling: &[i64], tokens: &[i64], root| {
            DraftTree::new(next, sibling, tokens, root).expect_err("no tree")
        };
        assert!(matches!(error(&[-1], &[-1], &[], 0), DraftTreeError::Lengths { tokens: 0, .. }));
        assert!(matches!(error(&[-1], &[-1, -1], &[5, 5], 0), DraftTreeError::Lengths { next_token: 1, .. }));
        let link = DraftTreeError::Link { list: "retrieve_next_token", node: 0, target: 2, last: 1 };
        assert_eq!(error(&[2, -1], &[-1, -1], &[5, 5], 0), link);
        assert!(matches!(error(&[-2, -1], &[-1, -1], &[5, 5], 0), DraftTreeError::Link { target: -2, .. }));
        assert_eq!(error(&[1, 0], &[-1, -1], &[5, 5], 0), DraftTreeError::NotATree { node: 0 });
        assert_eq!(error(&[1, -1], &[-1, 1], &[5, 5], 0), DraftTreeError::NotATree { node: 1 });
        assert_eq!(error(&[1, -1], &[1, -1], &[5, 5], 0), DraftTreeError::RootSibling { root: 0, sibling: 1 });
        assert_eq!(error(&[1, -1], &[-1, -1], &[5, 5], 2), DraftTreeError::Root { root: 2, last: 1 });
        assert_eq!(DraftTree::new(&[1, -1], &[-1, -1], &[5, 5], 1).map(|tree| tree.num_nodes()), Ok(2));
    }
}
