//! Anchors and word boundaries, resolved exactly and without intersections.
//!
//! An assertion looks at most one character to either side, so the texts of a node depend on its surroundings only
//! through two [`Edge`]s: what is before and what is after. The texts of a sequence `xy` between two edges are a union
//! over the kinds of characters that can meet in the middle: `x` ends with kind `c` before a character of kind `d`,
//! then `y` begins with kind `d` after a character of kind `c`. In addition there are the cases in which `x` or `y` is
//! empty, so that the other one sees the far edge. For this, a node is asked for its texts that begin and end with
//! given kinds ([`Request`]). A repetition answers with the paths between kinds (Kleene 1956) or, if its body has only
//! text anchors, with one counter between a first and a last round.
//!
//! Parts that do not look at each other are never split, and equal cases are merged: `^a|b$` becomes `a.*|.*b`.

use rustc_hash::FxHashMap;

use super::error::PatternError;
use super::kinds::{Edge, Kinds, KindsOfPattern, Ranges};
use super::options::Dialect;
use super::tree::{Node, NodeId, Tree};
use crate::expr::node::ExprId;

/// The deepest chain of requests; no pattern written by a person nests assertions so deeply.
const MAX_DEPTH: usize = 200;
/// The greatest number of requests for one pattern, and the greatest number of new expressions beyond twice those of
/// the pattern without assertions.
const MAX_REQUESTS: usize = 200_000;
const MAX_NEW_EXPRS: usize = 200_000;

/// Which texts of a node are requested.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Request {
    /// What is before the node.
    before: Edge,
    /// What is after it.
    after: Edge,
    /// The kinds of character that a text may start with.
    first: Kinds,
    /// The kinds of character that a text may end with.
    last: Kinds,
    /// Whether the empty text is requested, too, if the node matches it.
    empty: bool,
}

/// The expression for all texts of `root` between two edges.
pub(super) fn resolve(
    tree: &mut Tree<'_>,
    root: NodeId,
    dialect: Dialect,
    before: Edge,
    after: Edge,
) -> Result<ExprId, PatternError> {
    if !tree.facts(root).looks {
        return Ok(tree.plain(root));
    }
    let kinds = KindsOfPattern::new(tree.kinds_asked_for(), dialect);
    let all = kinds.all;
    let new_before = tree.exprs.len() - tree.first_expr;
    let most_exprs = new_before * 3 + tree.first_expr + MAX_NEW_EXPRS;
    let mut resolver = Resolver { tree, kinds, all, known: FxHashMap::default(), depth: 0, most_exprs };
    let request = Request { before, after, first: all, last: all, empty: true };
    resolver.texts(root, request)
}

struct Resolver<'r, 'a> {
    tree: &'r mut Tree<'a>,
    kinds: KindsOfPattern,
    /// The kinds that the pattern distinguishes.
    all: Kinds,
    known: FxHashMap<(NodeId, Request), ExprId>,
    depth: usize,
    most_exprs: usize,
}

impl Resolver<'_, '_> {
    /// The texts of a node that a request asks for.
    fn texts(&mut self, id: NodeId, mut want: Request) -> Result<ExprId, PatternError> {
        let facts = self.tree.facts(id);
        if !facts.before {
            want.before = Edge::Text;
        }
        if !facts.after {
            want.after = Edge::Text;
        }
        want.empty &= self.tree.matches_empty(id, want.before, want.after);
        if want.first == Kinds::NONE || want.last == Kinds::NONE {
            return Ok(if want.empty { ExprId::EMPTY } else { ExprId::NOTHING });
        }
        let all_empty = want.empty || !self.tree.matches_empty(id, want.before, want.after);
        if !facts.looks && all_empty && want.first == self.all && want.last == self.all {
            return Ok(self.tree.plain(id));
        }
        if let Some(&known) = self.known.get(&(id, want)) {
            return Ok(known);
        }
        if self.depth > MAX_DEPTH || self.known.len() > MAX_REQUESTS || self.tree.exprs.len() > self.most_exprs {
            return Err(PatternError::too_costly(
                "the anchors or word boundaries of this pattern are nested too deeply or combine in too many ways; \
                 move them to the ends of the pattern",
            ));
        }
        self.depth += 1;
        let mut result = match self.tree.node(id).clone() {
            Node::Empty | Node::Look(_) => ExprId::NOTHING,
            Node::Around(_) => unreachable!("look-around is laid out before edges are resolved"),
            Node::Literal { expr, first, last } => {
                let fits = want.first.has(self.kinds.of(first)) && want.last.has(self.kinds.of(last));
                if fits { expr } else { ExprId::NOTHING }
            }
            Node::Class { ranges, expr } => self.class(&ranges, expr, want.first.and(want.last)),
            Node::Concat { head, tail } => self.sequence(head, tail, want)?,
            Node::Or(parts) => {
                let mut texts = Vec::with_capacity(parts.len());
                for &part in parts.iter() {
                    texts.push(self.texts(part, want)?);
                }
                self.tree.exprs.or(&texts)
            }
            Node::Repeat { body, min, max } => self.rounds(body, min, max, want)?,
        };
        if want.empty {
            result = self.tree.exprs.or(&[ExprId::EMPTY, result]);
        }
        self.depth -= 1;
        self.known.insert((id, want), result);
        Ok(result)
    }

    /// One character of the class, of one of these kinds.
    fn class(&mut self, ranges: &Ranges, expr: ExprId, kinds: Kinds) -> ExprId {
        if kinds == self.all {
            return expr;
        }
        self.tree.class(self.kinds.within(ranges, kinds))
    }

    /// `x` followed by `y`.
    fn sequence(&mut self, x: NodeId, y: NodeId, want: Request) -> Result<ExprId, PatternError> {
        let all = self.all;
        let Request { before, after, first, last, empty } = want;
        let (x_looks, y_looks) = (self.tree.facts(x).after, self.tree.facts(y).before);
        let whole = Request { before, after, first: all, last: all, empty: true };
        let empty_or_never =
            empty || !self.tree.matches_empty(x, before, after) || !self.tree.matches_empty(y, before, after);
        if !x_looks && !y_looks && first == all && last == all && empty_or_never {
            let (x, y) = (self.texts(x, whole)?, self.texts(y, whole)?);
            return Ok(self.tree.exprs.concat(x, y));
        }
        if !x_looks && !y_looks && first == all && last != all {
            // Only the end is restricted, so it does not matter whether `x` is empty.
            let head = self.texts(x, whole)?;
            let tail = self.texts(y, Request { empty: false, first: all, ..want })?;
            let both = self.tree.exprs.concat(head, tail);
            let alone = match self.tree.matches_empty(y, before, after) {
                true => self.texts(x, want)?,
                false => ExprId::NOTHING,
            };
            return Ok(self.tree.exprs.or(&[both, alone]));
        }

        // `x` is empty: `y` sees what is before both, and must begin with a character that `x` tolerates.
        let tolerates = |&start: &Edge| self.tree.matches_empty(x, before, start);
        let tolerated = first.iter().filter(tolerates).map(Kinds::of).fold(Kinds::NONE, Kinds::or);
        let both_empty = empty && self.tree.matches_empty(x, before, after);
        let mut cases = vec![self.texts(y, Request { first: tolerated, empty: both_empty, ..want })?];

        // `x` is not empty: one case for every kind of its last character that makes a difference to `y`.
        let ends: Vec<Kinds> = if y_looks { all.iter().map(Kinds::of).collect() } else { vec![all] };
        for end in ends {
            let mut heads: Vec<(ExprId, Kinds, bool)> = Vec::new();
            let starts: Vec<Kinds> = if x_looks { all.iter().map(Kinds::of).collect() } else { vec![all] };
            for start in starts {
                let request = Request { before, after: start.any(), first, last: end, empty: false };
                let head = self.texts(x, request)?;
                match heads.iter_mut().find(|(known, ..)| *known == head) {
                    Some((_, starts, _)) => *starts = starts.or(start),
                    None => heads.push((head, start, false)),
                }
            }
            if self.tree.matches_empty(y, end.any(), after) {
                // `y` is empty: `x` sees what is after both, and its last character is the last of all.
                let request = Request { before, after, first, last: end.and(last), empty: false };
                let head = self.texts(x, request)?;
                let same = heads.iter_mut().find(|(known, ..)| *known == head && end.and(last) == end);
                match same {
                    Some((.., or_empty)) => *or_empty = true,
                    None => cases.push(head),
                }
            }
            for (head, starts, or_empty) in heads {
                if head == ExprId::NOTHING {
                    continue;
                }
                let request = Request { before: end.any(), after, first: starts, last, empty: or_empty };
                let tail = self.texts(y, request)?;
                cases.push(self.tree.exprs.concat(head, tail));
            }
        }
        Ok(self.tree.exprs.or(&cases))
    }

    /// The texts of `body` repeated that have at least one character.
    ///
    /// Rounds that match the empty text add nothing to a text, but they count: if one round may be empty, every minimum
    /// count can be reached.
    fn rounds(&mut self, body: NodeId, min: u32, max: Option<u32>, want: Request) -> Result<ExprId, PatternError> {
        let all = self.all;
        let want = Request { empty: false, ..want };
        let one = self.texts(body, want)?;
        if max == Some(1) {
            return Ok(one);
        }
        if self.tree.facts(body).looks_at_kind {
            debug_assert!(min <= 1 && max.is_none(), "the tree writes out counted rounds that look at kinds");
            let more = self.paths(body, want)?;
            return Ok(self.tree.exprs.or(&[one, more]));
        }
        // The body does not distinguish characters, so all rounds between the first and the last are the same.
        let Request { before, after, first, last, .. } = want;
        let inner = all.any();
        let head = self.texts(body, Request { before, after: inner, first, last: all, empty: false })?;
        let middle = self.texts(body, Request { before: inner, after: inner, first: all, last: all, empty: false })?;
        let tail = self.texts(body, Request { before: inner, after, first: all, last, empty: false })?;
        let pads_one = self.tree.matches_empty(body, before, inner) || self.tree.matches_empty(body, inner, after);
        let pads_two = pads_one || self.tree.matches_empty(body, inner, inner);
        let one_counts = min <= 1 || pads_one;
        let least = if pads_two { 2 } else { min.max(2) };
        let least_of_all = if one_counts { 1 } else { least };

        let exprs = &mut *self.tree.exprs;
        let rest = |count: u32| max.map(|max| max.saturating_sub(count));
        if head == middle && middle == tail && tail == one {
            return Ok(exprs.repeat(middle, least_of_all, max));
        }
        if middle == tail && one == head {
            let more = exprs.repeat(middle, least_of_all - 1, rest(1));
            return Ok(exprs.concat(head, more));
        }
        if middle == head && one == tail {
            let more = exprs.repeat(middle, least_of_all - 1, rest(1));
            return Ok(exprs.concat(more, tail));
        }
        let between = exprs.repeat(middle, least - 2, rest(2));
        let many = exprs.concat_all(&[head, between, tail]);
        Ok(exprs.or(&[if one_counts { one } else { ExprId::NOTHING }, many]))
    }

    /// Two or more rounds of a body that distinguishes its neighbours.
    ///
    /// A position between two rounds is a pair: the kind of the last character before it and of the first one after it.
    /// What can follow a position is a system of linear equations, one for each position, solved by elimination (Arden
    /// 1961).
    fn paths(&mut self, body: NodeId, want: Request) -> Result<ExprId, PatternError> {
        let facts = self.tree.facts(body);
        let all = self.all;
        let split = |looks: bool| if looks { all.iter().map(Kinds::of).collect() } else { vec![all] };
        let (ends, starts): (Vec<Kinds>, Vec<Kinds>) = (split(facts.before), split(facts.after));
        let places: Vec<(Kinds, Kinds)> =
            ends.iter().flat_map(|&end| starts.iter().map(move |&start| (end, start))).collect();
        let request = |before, after, first, last| Request { before, after, first, last, empty: false };

        let mut enter = Vec::new();
        let mut moves = Vec::new();
        let mut leave = Vec::new();
        for &(end, start) in &places {
            enter.push(self.texts(body, request(want.before, start.any(), want.first, end))?);
            leave.push(self.texts(body, request(end.any(), want.after, start, want.last))?);
            let mut row = Vec::new();
            for &(next_end, next_start) in &places {
                row.push(self.texts(body, request(end.any(), next_start.any(), start, next_end))?);
            }
            moves.push(row);
        }
        // leave[p] := moves[p][p]* (leave[p] | sum of moves[p][q] leave[q] over q not yet eliminated)
        let exprs = &mut *self.tree.exprs;
        for p in (0..places.len()).rev() {
            let mut row = std::mem::take(&mut moves[p]);
            let again = exprs.repeat(row[p], 0, None);
            row.truncate(p);
            row.iter_mut().for_each(|step| *step = exprs.concat(again, *step));
            leave[p] = exprs.concat(again, leave[p]);
            for from in 0..p {
                let through = moves[from][p];
                let ending = exprs.concat(through, leave[p]);
                leave[from] = exprs.or(&[leave[from], ending]);
                for (step, &onward) in moves[from].iter_mut().zip(&row) {
                    let path = exprs.concat(through, onward);
                    *step = exprs.or(&[*step, path]);
                }
            }
            moves[p] = row;
        }
        // Now leave[p] depends only on positions before p: substitute these from the first on.
        for (p, row) in moves.iter().enumerate() {
            for (q, &step) in row.iter().enumerate() {
                let path = exprs.concat(step, leave[q]);
                leave[p] = exprs.or(&[leave[p], path]);
            }
        }
        let texts: Vec<ExprId> = (0..places.len()).map(|p| exprs.concat(enter[p], leave[p])).collect();
        Ok(exprs.or(&texts))
    }
}
