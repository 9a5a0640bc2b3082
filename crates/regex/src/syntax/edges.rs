//! Anchors and word boundaries, resolved exactly and without intersections.
//!
//! An assertion looks at most one character to either side, so the texts of a node depend on its surroundings only
//! through two [`Edge`]s: what stands before and what stands after. The texts of a sequence `xy` between two edges
//! are a union over the kinds of character that can meet in the middle: `x` ending in kind `c` before a character of
//! kind `d`, then `y` starting with kind `d` after a character of kind `c`; and the cases where `x` or `y` is empty,
//! which then sees through to the far edge. To follow that, a node is asked for its texts that start and end with
//! given kinds ([`Request`]); a repetition answers with the shortest paths between kinds (Kleene 1956), or, when
//! its body has only text anchors, with one counter between a first and a last round.
//!
//! Parts that do not look at each other are never split, and equal cases are merged: `^a|b$` becomes `a.*|.*b`.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, Look};
use rustc_hash::FxHashMap;

use super::tree::{Node, NodeId, Ranges, Tree, ranges_of};
use super::{Dialect, PatternError};
use crate::expr::ExprId;

/// Deepest chain of requests: assertions nested more deeply than any pattern a person wrote.
const MAX_DEPTH: usize = 400;
/// Most requests, and most new expressions, that one pattern may cost.
const MAX_REQUESTS: usize = 200_000;
const MAX_NEW_EXPRS: usize = 1_000_000;

/// What stands next to a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Edge {
    /// The start or end of the text.
    Text,
    /// A word character: `[A-Za-z0-9_]`.
    Word,
    /// A line terminator.
    Line,
    /// Any other character; and any character at all when no assertion of the pattern tells them apart.
    Other,
}

impl Edge {
    pub const ALL: [Edge; 4] = [Edge::Text, Edge::Word, Edge::Line, Edge::Other];

    /// Whether the assertion holds between two edges.
    pub fn satisfy(look: Look, before: Edge, after: Edge) -> bool {
        let (word_before, word_after) = (before == Edge::Word, after == Edge::Word);
        match look {
            Look::Start => before == Edge::Text,
            Look::End => after == Edge::Text,
            Look::StartLF | Look::StartCRLF => matches!(before, Edge::Text | Edge::Line),
            Look::EndLF | Look::EndCRLF => matches!(after, Edge::Text | Edge::Line),
            Look::WordAscii | Look::WordUnicode => word_before != word_after,
            Look::WordAsciiNegate | Look::WordUnicodeNegate => word_before == word_after,
            Look::WordStartAscii | Look::WordStartUnicode => !word_before && word_after,
            Look::WordEndAscii | Look::WordEndUnicode => word_before && !word_after,
            Look::WordStartHalfAscii | Look::WordStartHalfUnicode => !word_before,
            Look::WordEndHalfAscii | Look::WordEndHalfUnicode => !word_after,
        }
    }
}

/// A set of character kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Kinds(u8);

impl Kinds {
    const NONE: Kinds = Kinds(0);

    fn of(edge: Edge) -> Kinds {
        Kinds(1 << edge as u8)
    }

    fn has(self, edge: Edge) -> bool {
        self.0 & Kinds::of(edge).0 != 0
    }

    fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    fn iter(self) -> impl Iterator<Item = Edge> {
        Edge::ALL.into_iter().filter(move |&edge| self.has(edge))
    }

    /// Any kind of the set: for a reader that does not tell them apart.
    fn any(self) -> Edge {
        self.iter().next().expect("empty sets of kinds are answered before anyone asks")
    }
}

/// Which texts of a node are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Request {
    /// What stands before the node.
    before: Edge,
    /// What stands after it.
    after: Edge,
    /// The kinds of character that a text may start with.
    first: Kinds,
    /// The kinds of character that a text may end with.
    last: Kinds,
    /// Whether the empty text is wanted too, where the node matches it.
    empty: bool,
}

/// The expression for all texts of `root`.
pub(super) fn resolve(tree: &mut Tree<'_>, root: NodeId, dialect: Dialect) -> Result<ExprId, PatternError> {
    if !tree.facts(root).looks {
        return Ok(tree.plain(root));
    }
    let (word, line) = tree.kinds_asked_for();
    let word = if word { set(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]) } else { ClassUnicode::empty() };
    let line = match (line, dialect) {
        (false, _) => ClassUnicode::empty(),
        (true, Dialect::Standard) => set(&[('\n', '\n')]),
        (true, Dialect::EcmaScript) => set(&[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')]),
    };
    let mut other = set(&[('\0', char::MAX)]);
    other.difference(&word);
    other.difference(&line);
    let mut all = Kinds::of(Edge::Other);
    for (edge, kind) in [(Edge::Word, &word), (Edge::Line, &line)] {
        if !kind.ranges().is_empty() {
            all.0 |= Kinds::of(edge).0;
        }
    }
    let most_exprs = tree.exprs.len() + MAX_NEW_EXPRS;
    let sets = [ClassUnicode::empty(), word, line, other];
    let mut resolver = Resolver { tree, sets, all, known: FxHashMap::default(), depth: 0, most_exprs };
    let request = Request { before: Edge::Text, after: Edge::Text, first: all, last: all, empty: true };
    resolver.texts(root, request)
}

fn set(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(first, last)| ClassUnicodeRange::new(first, last)))
}

struct Resolver<'r, 'a> {
    tree: &'r mut Tree<'a>,
    /// The characters of every kind, by `Edge as usize`.
    sets: [ClassUnicode; 4],
    /// The kinds that the pattern tells apart.
    all: Kinds,
    known: FxHashMap<(NodeId, Request), ExprId>,
    depth: usize,
    most_exprs: usize,
}

impl Resolver<'_, '_> {
    /// The texts of a node that a request wants.
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
            Node::Literal { expr, first, last } => {
                let fits = want.first.has(self.kind(first)) && want.last.has(self.kind(last));
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

    fn kind(&self, c: char) -> Edge {
        let range = ClassUnicodeRange::new(c, c);
        let within = |edge: &Edge| {
            self.sets[*edge as usize].iter().any(|set| set.start() <= range.start() && range.end() <= set.end())
        };
        Edge::ALL.into_iter().find(within).expect("the kinds cover every character")
    }

    /// One character of the class that is of one of these kinds.
    fn class(&mut self, ranges: &Ranges, expr: ExprId, kinds: Kinds) -> ExprId {
        if kinds == self.all {
            return expr;
        }
        let mut wanted = ClassUnicode::empty();
        kinds.iter().for_each(|kind| wanted.union(&self.sets[kind as usize]));
        wanted.intersect(&set(ranges));
        self.tree.class(ranges_of(&wanted))
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
            // Only the end is asked for, so `x` need not be split by whether it is empty.
            let head = self.texts(x, whole)?;
            let tail = self.texts(y, Request { empty: false, first: all, ..want })?;
            let both = self.tree.exprs.concat(head, tail);
            let alone = match self.tree.matches_empty(y, before, after) {
                true => self.texts(x, want)?,
                false => ExprId::NOTHING,
            };
            return Ok(self.tree.exprs.or(&[both, alone]));
        }

        // `x` empty: `y` sees what stands before both, and must start with a character that `x` tolerates.
        let tolerated = Kinds(
            first.iter().filter(|&d| self.tree.matches_empty(x, before, d)).fold(0, |bits, d| bits | Kinds::of(d).0),
        );
        let both_empty = empty && self.tree.matches_empty(x, before, after);
        let mut cases = vec![self.texts(y, Request { first: tolerated, empty: both_empty, ..want })?];

        // `x` not empty: one case for every kind of its last character that makes a difference to `y`.
        let ends: Vec<Kinds> = if y_looks { all.iter().map(Kinds::of).collect() } else { vec![all] };
        for end in ends {
            let mut heads: Vec<(ExprId, Kinds, bool)> = Vec::new();
            let starts: Vec<Kinds> = if x_looks { all.iter().map(Kinds::of).collect() } else { vec![all] };
            for start in starts {
                let request = Request { before, after: start.any(), first, last: end, empty: false };
                let head = self.texts(x, request)?;
                match heads.iter_mut().find(|(known, ..)| *known == head) {
                    Some((_, starts, _)) => starts.0 |= start.0,
                    None => heads.push((head, start, false)),
                }
            }
            if self.tree.matches_empty(y, end.any(), after) {
                // `y` empty: `x` sees what stands after both, and its last character is the last of all.
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

    /// `body` repeated: its texts of at least one character.
    ///
    /// Rounds that match the empty text add nothing to a text, but they count: with a place for one, any least
    /// count is reached.
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
        // To this body all characters are alike, so the rounds between the first and the last are the same.
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

    /// Two or more rounds of a body that tells its neighbours apart.
    ///
    /// A place between two rounds is a pair: the kind of the last character before it and of the first after it.
    /// What can follow a place is a system of linear equations, one for each place, solved by elimination (Arden 1961).
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
            let again = exprs.repeat(moves[p][p], 0, None);
            leave[p] = exprs.concat(again, leave[p]);
            for q in 0..p {
                moves[p][q] = exprs.concat(again, moves[p][q]);
            }
            for from in 0..p {
                let through = moves[from][p];
                let ending = exprs.concat(through, leave[p]);
                leave[from] = exprs.or(&[leave[from], ending]);
                for q in 0..p {
                    let path = exprs.concat(through, moves[p][q]);
                    moves[from][q] = exprs.or(&[moves[from][q], path]);
                }
            }
        }
        // Now leave[p] needs only places before p: fill them in from the first on.
        for p in 1..places.len() {
            for q in 0..p {
                let path = exprs.concat(moves[p][q], leave[q]);
                leave[p] = exprs.or(&[leave[p], path]);
            }
        }
        let texts: Vec<ExprId> = (0..places.len()).map(|p| exprs.concat(enter[p], leave[p])).collect();
        Ok(exprs.or(&texts))
    }
}
