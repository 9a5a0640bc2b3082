//! The tree of left parts: an order of the tokens in which all those with a common left part are together.

use std::cmp::Reverse;

use super::pairs::starts_of;

/// Tokens below their left parts; the children of each token by falling rank.
pub(crate) struct LeftTree {
    /// The tokens, each before those below it.
    order: Vec<u32>,
    /// For each token, its position in that order and the end of those below it.
    position: Vec<u32>,
    end: Vec<u32>,
    /// For each token, its children as a range of `children`.
    child_starts: Vec<u32>,
    children: Vec<u32>,
}

impl LeftTree {
    /// The tokens of a vocabulary of `size`, each with its left part and the rank of its last merge, unless it is a
    /// root.
    pub fn new(size: usize, tokens: impl Iterator<Item = (u32, Option<(u32, u32)>)>) -> LeftTree {
        let mut roots: Vec<u32> = Vec::new();
        let mut below: Vec<(u32, Reverse<u32>, u32)> = Vec::new();
        for (token, part) in tokens {
            match part {
                Some((left, rank)) => below.push((left, Reverse(rank), token)),
                None => roots.push(token),
            }
        }
        below.sort_unstable();
        let child_starts = starts_of(size, below.iter().map(|&(left, ..)| left));
        let children = below.into_iter().map(|(.., token)| token).collect();
        let (position, end) = (vec![0; size], vec![0; size]);
        let mut tree = LeftTree { order: Vec::new(), position, end, child_starts, children };
        tree.lay_out(roots);
        tree
    }

    fn lay_out(&mut self, roots: Vec<u32>) {
        let mut work: Vec<(u32, bool)> = roots.into_iter().map(|token| (token, false)).collect();
        while let Some((token, done)) = work.pop() {
            if done {
                self.end[token as usize] = self.order.len() as u32;
                continue;
            }
            self.position[token as usize] = self.order.len() as u32;
            self.order.push(token);
            work.push((token, true));
            work.extend(self.children_of(token).iter().rev().map(|&child| (child, false)));
        }
    }

    fn children_of(&self, token: u32) -> &[u32] {
        let token = token as usize;
        &self.children[self.child_starts[token] as usize..self.child_starts[token + 1] as usize]
    }

    /// The range of a token and of those that begin with it.
    pub fn range(&self, token: u32) -> (u32, u32) {
        (self.position[token as usize], self.end[token as usize])
    }

    /// The end of the range with the token itself and the subtrees of its first children, as long as these fulfil the
    /// condition.
    pub fn till(&self, token: u32, is_so: impl Fn(u32) -> bool) -> u32 {
        let children = self.children_of(token);
        let last = children.partition_point(|&child| is_so(child)).checked_sub(1);
        last.map_or(self.position[token as usize] + 1, |last| self.end[children[last] as usize])
    }

    /// The tokens of a range.
    #[inline]
    pub fn tokens(&self, start: u32, end: u32) -> &[u32] {
        &self.order[start as usize..end as usize]
    }
}
