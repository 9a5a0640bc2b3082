//! Regular expressions over bytes as hash-consed values: equal expressions have one id.
//!
//! Smart constructors keep a normal form (flattened, sorted, absorbed alternatives and parts; right-nested
//! concatenations; merged counters), so that an expression has few derivatives and an id is a usable automaton state
//! (Brzozowski 1964; Owens, Reppy, Turon 2009). A bounded repetition is one node with two numbers and is never
//! unrolled: `x{3,10}` after one `x` is `x{2,9}`.
//!
//! The normal form gives one guarantee that the rest relies on: an expression without `And` and `Not` that is not
//! `NOTHING` matches some string.

use stencilm_support::{LimitExceeded, check_time};

use crate::expr::arena::{Arena, SharedExprs, TEXT};
use crate::expr::bound::Bound;
use crate::expr::byte_set::ByteSet;
use crate::expr::node::{Expr, ExprId, LONG_TEXT, pieces};

/// Lists of at least this many parts are sorted early when they are joined, to drop duplicates.
const LONG_LIST: usize = 1 << 16;

/// A shorter piece has a node for each byte.
const SHORT_PIECE: usize = 512;

/// A set of expressions, which only grows.
#[derive(Clone)]
pub struct ExprSet {
    pub(crate) arena: Arena,
    pub(crate) bound: Option<Bound>,
}

impl Default for ExprSet {
    fn default() -> ExprSet {
        ExprSet::new()
    }
}

impl ExprSet {
    /// A set that holds the four constants of [`ExprId`].
    pub fn new() -> ExprSet {
        ExprSet { arena: Arena::new(), bound: None }
    }

    /// A set that begins with the shared expressions, under the ids that they have in all such sets.
    pub fn extending(shared: &SharedExprs) -> ExprSet {
        ExprSet { arena: Arena::extending(shared), bound: None }
    }

    /// Turns everything in this set into the beginning of other sets, under the same ids.
    pub fn freeze(self) -> SharedExprs {
        self.arena.freeze()
    }

    /// A lower bound on the length of the shortest match: an intersection may need more than each of its parts, and of
    /// a complement it is only known whether it matches the empty string.
    pub fn shortest_at_least(&self, id: ExprId) -> u32 {
        self.arena.facts(id).shortest
    }

    /// The greatest count of any repetition outside intersections and complements.
    pub fn greatest_count(&self, id: ExprId) -> u32 {
        self.arena.facts(id).greatest_count
    }

    /// A measure by which simpler expressions are chosen: the number of intersections and complements, whether repetitions
    /// outside these have maximum counts, and of an intersection at the beginning the number of parts with such repetitions
    /// and of parts that begin with a minimum count. All ways to a simpler expression with more matches, dropping parts of
    /// an intersection and dropping counts outside intersections or in one, decrease it.
    pub fn complexity(&self, id: ExprId) -> (u16, bool, usize, usize) {
        let facts = self.arena.facts(id);
        let first = match *self.get(id) {
            Expr::Concat { head, .. } => head,
            _ => id,
        };
        let parts: &[ExprId] = match self.get(first) {
            Expr::And(parts) => parts,
            _ => &[],
        };
        let limited = parts.iter().filter(|&&part| self.agreement(part) != u32::MAX).count();
        let counted = parts.iter().filter(|&&part| self.begins_with_minimum(part)).count();
        (facts.booleans, facts.agreement != u32::MAX, limited, counted)
    }

    /// Whether an expression begins with a repetition of more than one round.
    fn begins_with_minimum(&self, id: ExprId) -> bool {
        let first = match *self.get(id) {
            Expr::Concat { head, .. } => head,
            _ => id,
        };
        matches!(*self.get(first), Expr::Repeat { min: 2.., .. })
    }

    /// The least number of bytes for which an expression reads the same as the one in which no repetition outside
    /// intersections and complements has a maximum count: for every string of at most that length, both can continue or
    /// neither, and both match or neither. `u32::MAX` where they are equal. See [`Deriver::relaxed`](crate::Deriver::relaxed).
    pub fn agreement(&self, id: ExprId) -> u32 {
        self.arena.facts(id).agreement
    }

    /// The number of expressions in the set.
    pub fn len(&self) -> usize {
        self.arena.len()
    }

    /// Reserves memory for `count` more expressions.
    pub fn reserve(&mut self, count: usize) {
        self.arena.reserve(count);
    }

    /// Whether it is one of the shared expressions, which have the same ids in all sets that begin with them.
    pub fn is_shared(&self, id: ExprId) -> bool {
        id.index() < self.len() - self.own_len()
    }

    /// The number of expressions without the shared ones.
    pub fn own_len(&self) -> usize {
        self.arena.own_len()
    }

    /// Never true: the constants are always there.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Approximate bytes of memory held, without the shared expressions.
    pub fn memory_bytes(&self) -> usize {
        self.arena.memory_bytes()
    }

    /// The number of expressions that were added, with all their parts: about the work of making them.
    pub(crate) fn size(&self) -> usize {
        self.arena.size()
    }

    /// Releases memory that was reserved and not used.
    pub fn shrink_to_fit(&mut self) {
        self.arena.shrink_to_fit();
    }

    /// The node of an id.
    #[inline]
    pub fn get(&self, id: ExprId) -> &Expr {
        self.arena.get(id)
    }

    /// Whether the expression matches the empty string.
    pub fn is_nullable(&self, id: ExprId) -> bool {
        self.arena.facts(id).nullable
    }

    /// Whether the expression contains an intersection or a complement, so that it may match nothing
    /// without being [`ExprId::NOTHING`].
    pub fn has_boolean(&self, id: ExprId) -> bool {
        self.arena.facts(id).booleans > 0
    }

    /// Whether the expression contains a piece of a long text.
    pub fn has_text(&self, id: ExprId) -> bool {
        self.arena.facts(id).leaves & TEXT != 0
    }

    /// One byte out of a set.
    pub fn bytes(&mut self, set: ByteSet) -> ExprId {
        if set.is_empty() { ExprId::NOTHING } else { self.intern(Expr::Bytes(set)) }
    }

    /// Exactly these bytes in sequence.
    pub fn literal(&mut self, bytes: &[u8]) -> ExprId {
        match self.long_literal(bytes) {
            Some(long) => long,
            None => self.literal_by_bytes(bytes),
        }
    }

    /// The same with a node for each byte, for texts that are examined byte by byte.
    pub(crate) fn literal_by_bytes(&mut self, bytes: &[u8]) -> ExprId {
        bytes.iter().rev().fold(ExprId::EMPTY, |tail, &byte| {
            let head = self.arena.byte(byte);
            self.byte_then(head, tail)
        })
    }

    fn long_literal(&mut self, bytes: &[u8]) -> Option<ExprId> {
        let text = str::from_utf8(bytes).ok().filter(|text| text.len() > LONG_TEXT)?;
        Some(self.text_then(text, ExprId::EMPTY))
    }

    /// A sequence of characters, each as `spell` writes it, followed by `tail`. The characters of a long text that are
    /// spelled as themselves are stored in pieces.
    ///
    /// # Errors
    /// The error of `spell`.
    pub fn spelled<E>(
        &mut self,
        text: &str,
        tail: ExprId,
        mut spell: impl FnMut(&mut ExprSet, char) -> Result<ExprId, E>,
    ) -> Result<ExprId, E> {
        let is_long = text.len() > LONG_TEXT;
        // What comes after the characters that are not added yet.
        let (mut result, mut end) = (tail, text.len());
        for (at, character) in text.char_indices().rev() {
            let head = spell(self, character)?;
            if is_long && self.is_itself(head, character) {
                continue;
            }
            result = self.text_then(&text[at + character.len_utf8()..end], result);
            result = self.concat(head, result);
            end = at;
        }
        Ok(self.text_then(&text[..end], result))
    }

    /// Whether an expression matches exactly one character.
    fn is_itself(&mut self, expr: ExprId, character: char) -> bool {
        match self.get(expr) {
            Expr::Bytes(set) => set.single().map(char::from) == Some(character) && character.is_ascii(),
            _ => expr == self.literal_by_bytes(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }

    /// A text in pieces, followed by `tail`.
    pub fn text_then(&mut self, text: &str, tail: ExprId) -> ExprId {
        let pieces: Vec<&str> = pieces(text).collect();
        pieces.iter().rev().fold(tail, |tail, &piece| {
            let head = self.text(piece);
            self.concat(head, tail)
        })
    }

    /// A piece of a long text as one node, unless it is short.
    pub fn text(&mut self, piece: &str) -> ExprId {
        match piece.len() {
            0..=SHORT_PIECE => self.literal_by_bytes(piece.as_bytes()),
            _ => self.intern(Expr::Text(piece.into())),
        }
    }

    /// As [`ExprSet::literal`], for texts that may be long.
    ///
    /// # Errors
    /// As [`stencilm_support::check_time`].
    pub fn literal_in_time(&mut self, bytes: &[u8]) -> Result<ExprId, LimitExceeded> {
        if let Some(long) = self.long_literal(bytes) {
            return Ok(long);
        }
        let mut tail = ExprId::EMPTY;
        for &byte in bytes.iter().rev() {
            check_time()?;
            let head = self.bytes(ByteSet::of(byte));
            tail = self.concat(head, tail);
        }
        Ok(tail)
    }

    /// Any of the literals: a trie, whose size does not depend on the order of the input.
    pub fn literals<T: AsRef<[u8]>>(&mut self, literals: &[T]) -> ExprId {
        let mut sorted: Vec<&[u8]> = literals.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        sorted.dedup();
        // Right spines: the alternatives from `open[d].1` on begin at depth d of the current literal, after its byte
        // `open[d].0`; those of greater depths are not among them.
        let mut open: Vec<(u8, usize)> = Vec::new();
        let mut alternatives: Vec<ExprId> = Vec::with_capacity(sorted.len());
        let mut previous: &[u8] = &[];
        let close_to =
            |set: &mut ExprSet, open: &mut Vec<(u8, usize)>, alternatives: &mut Vec<ExprId>, depth: usize| {
                for (byte, first) in open.drain(depth..).rev() {
                    let tail = set.or(&alternatives[first..]);
                    let head = set.arena.byte(byte);
                    alternatives.truncate(first);
                    alternatives.push(set.concat(head, tail));
                }
            };
        for &literal in &sorted {
            if self.gives_up(literal.len()) {
                break;
            }
            let common = previous.iter().zip(literal).take_while(|(a, b)| a == b).count();
            close_to(self, &mut open, &mut alternatives, common);
            open.extend(literal[common..].iter().map(|&byte| (byte, alternatives.len())));
            alternatives.push(ExprId::EMPTY);
            previous = literal;
        }
        close_to(self, &mut open, &mut alternatives, 0);
        self.or(&alternatives)
    }

    /// `head` followed by `tail`.
    pub fn concat(&mut self, head: ExprId, tail: ExprId) -> ExprId {
        if head == ExprId::NOTHING || tail == ExprId::NOTHING {
            return ExprId::NOTHING;
        }
        if head == ExprId::EMPTY {
            return tail;
        }
        if tail == ExprId::EMPTY {
            return head;
        }
        if !matches!(self.get(head), Expr::Concat { .. }) {
            return self.concat_one(head, tail);
        }
        if self.given_up().is_some() {
            return tail;
        }
        // Right-nested: take the spine of `head` apart and put it in front of `tail`.
        let mut spine = Vec::new();
        let mut rest = head;
        while let Expr::Concat { head, tail } = *self.get(rest) {
            spine.push(head);
            rest = tail;
        }
        spine.push(rest);
        let mut result = tail;
        for &part in spine.iter().rev() {
            if self.gives_up(1) {
                break;
            }
            result = self.concat_one(part, result);
        }
        result
    }

    /// `head` followed by `tail`, where `head` is one byte of a set and `tail` does not begin with a repetition of it.
    /// As [`ExprSet::concat`], but without checking that.
    pub fn byte_then(&mut self, head: ExprId, tail: ExprId) -> ExprId {
        debug_assert!(matches!(self.get(head), Expr::Bytes(_)), "the head is one byte");
        debug_assert!(self.counts_together(head, tail).is_none(), "the tail does not repeat the head");
        match tail {
            ExprId::NOTHING => ExprId::NOTHING,
            ExprId::EMPTY => head,
            tail => self.arena.intern_byte_then(head, tail),
        }
    }

    /// As [`ExprSet::concat`], if the head is no concatenation and neither part is constant.
    fn concat_one(&mut self, mut head: ExprId, mut tail: ExprId) -> ExprId {
        // What was joined may be joined with what follows, too. Each time there is one part fewer.
        while let Some((joined, rest)) = self.join_repeated(head, tail) {
            if rest == ExprId::EMPTY {
                return joined;
            }
            (head, tail) = (joined, rest);
        }
        match self.without_swallowed(head, tail) {
            ExprId::EMPTY => tail,
            head => {
                debug_assert!(!matches!(self.get(head), Expr::Concat { .. }), "concatenations nest to the right only");
                self.intern(Expr::Concat { head, tail })
            }
        }
    }

    /// The parts in sequence.
    pub fn concat_all(&mut self, parts: &[ExprId]) -> ExprId {
        let mut result = ExprId::EMPTY;
        for &part in parts.iter().rev() {
            result = self.concat(part, result);
        }
        result
    }

    /// Any of the parts.
    pub fn or(&mut self, parts: &[ExprId]) -> ExprId {
        if let [only] = *parts {
            return only;
        }
        let flat = self.flattened(parts, |expr| if let Expr::Or(inner) = expr { Some(&**inner) } else { None });
        let Some(mut flat) = flat else { return parts[0] };
        let mut bytes = ByteSet::EMPTY;
        let mut has_intersection = false;
        flat.retain(|&part| match self.get(part) {
            Expr::Nothing => false,
            Expr::Bytes(set) => {
                bytes = bytes.union(set);
                false
            }
            Expr::And(_) => {
                has_intersection = true;
                true
            }
            _ => true,
        });
        if !bytes.is_empty() {
            flat.push(self.bytes(bytes));
        }
        flat.sort_unstable();
        flat.dedup();
        if flat.contains(&ExprId::ANYTHING) {
            return ExprId::ANYTHING;
        }
        if has_intersection {
            // `A | A & B` is `A`.
            let is_there = |part: &ExprId| flat.binary_search(part).is_ok();
            let absorbed = |part: &ExprId| matches!(self.get(*part), Expr::And(inner) if inner.iter().any(is_there));
            let absorbed: Vec<ExprId> = flat.iter().copied().filter(absorbed).collect();
            flat.retain(|part| absorbed.binary_search(part).is_err());
        }
        self.merge_counters(&mut flat);
        if flat.contains(&ExprId::EMPTY) {
            self.make_nullable(&mut flat);
        }
        match flat.len() {
            0 => ExprId::NOTHING,
            1 => flat[0],
            _ => self.intern(Expr::Or(flat.into())),
        }
    }

    /// The parts, with each part that is itself a list replaced by its parts; `None` where the set was given up.
    #[inline]
    fn flattened(&mut self, parts: &[ExprId], inner: impl Fn(&Expr) -> Option<&[ExprId]>) -> Option<Vec<ExprId>> {
        let mut flat = Vec::with_capacity(parts.len());
        let mut most = LONG_LIST;
        for &part in parts {
            match inner(self.get(part)) {
                Some(inner) => flat.extend_from_slice(inner),
                None => flat.push(part),
            }
            if flat.len() > most {
                if self.gives_up(flat.len()) {
                    return None;
                }
                flat.sort_unstable();
                flat.dedup();
                most = LONG_LIST.max(2 * flat.len());
            }
        }
        Some(flat)
    }

    /// All of the parts at once.
    pub fn and(&mut self, parts: &[ExprId]) -> ExprId {
        let mut parts = parts.to_vec();
        // Bytes with which all parts begin, in sequence.
        let mut heads = Vec::new();
        let rest = loop {
            let rest = self.and_parts(&mut parts);
            if rest.is_some() {
                break rest;
            }
            if self.gives_up(parts.len()) {
                break None;
            }
            let common = self.common_heads(&mut parts);
            if common.is_empty() && !self.intersect_counters(&mut parts) {
                break None;
            }
            heads.extend(common);
        };
        let rest = rest.unwrap_or_else(|| self.intern(Expr::And(parts.into())));
        heads.iter().rev().fold(rest, |tail, &head| match self.gives_up(1) {
            true => tail,
            false => {
                let head = self.bytes(head);
                self.concat(head, tail)
            }
        })
    }

    /// Brings the parts of an intersection into normal form: flat, sorted, and with at most one set of bytes. Returns
    /// the result if it is no intersection.
    fn and_parts(&mut self, parts: &mut Vec<ExprId>) -> Option<ExprId> {
        let flat = self.flattened(parts, |expr| if let Expr::And(inner) = expr { Some(&**inner) } else { None });
        let Some(mut flat) = flat else { return parts.first().copied() };
        flat.retain(|&part| part != ExprId::ANYTHING);
        flat.sort_unstable();
        flat.dedup();
        if flat.contains(&ExprId::NOTHING) {
            return Some(ExprId::NOTHING);
        }
        if flat.contains(&ExprId::EMPTY) {
            let all = flat.iter().all(|&part| self.is_nullable(part));
            return Some(if all { ExprId::EMPTY } else { ExprId::NOTHING });
        }
        let mut bytes: Option<ByteSet> = None;
        let mut has_alternation = false;
        flat.retain(|&part| match self.get(part) {
            Expr::Bytes(set) => {
                bytes = Some(bytes.map_or(*set, |seen| seen.intersect(set)));
                false
            }
            Expr::Or(_) => {
                has_alternation = true;
                true
            }
            _ => true,
        });
        if let Some(set) = bytes {
            let set = self.bytes(set);
            if set == ExprId::NOTHING {
                return Some(ExprId::NOTHING);
            }
            flat.push(set);
            flat.sort_unstable();
        }
        if has_alternation {
            // `A & (A | B)` is `A`.
            let absorbed = |part: &ExprId| matches!(self.get(*part), Expr::Or(inner) if have_common(inner, &flat));
            let absorbed: Vec<ExprId> = flat.iter().copied().filter(absorbed).collect();
            flat.retain(|part| absorbed.binary_search(part).is_err());
        }
        // `A & ~A` and `A & ~(A | B)` match nothing.
        let contradicts = flat.iter().any(|&part| match *self.get(part) {
            Expr::Not(inner) => {
                let is_part = || matches!(self.get(inner), Expr::Or(parts) if have_common(parts, &flat));
                flat.binary_search(&inner).is_ok() || is_part()
            }
            _ => false,
        });
        *parts = flat;
        match **parts {
            _ if contradicts => Some(ExprId::NOTHING),
            [] => Some(ExprId::ANYTHING),
            [only] => Some(only),
            _ => None,
        }
    }

    /// Every string of bytes (of any bytes, not only valid UTF-8) that `inner` does not match.
    pub fn not(&mut self, inner: ExprId) -> ExprId {
        match *self.get(inner) {
            Expr::Not(original) => original,
            Expr::Nothing => ExprId::ANYTHING,
            _ if inner == ExprId::ANYTHING => ExprId::NOTHING,
            _ => self.intern(Expr::Not(inner)),
        }
    }

    /// `body` repeated at least `min` and at most `max` times. An empty interval matches nothing.
    pub fn repeat(&mut self, body: ExprId, min: u32, max: Option<u32>) -> ExprId {
        if max.is_some_and(|max| max < min) {
            return ExprId::NOTHING;
        }
        let min = if self.is_nullable(body) { 0 } else { min };
        if max == Some(0) || body == ExprId::EMPTY {
            return ExprId::EMPTY;
        }
        if body == ExprId::NOTHING {
            return if min == 0 { ExprId::EMPTY } else { ExprId::NOTHING };
        }
        if (min, max) == (1, Some(1)) {
            return body;
        }
        if (min, max) == (0, Some(1)) && self.is_nullable(body) {
            return body;
        }
        match *self.get(body) {
            Expr::Repeat { min: 0, max: None, .. } => return body,
            Expr::Repeat { body: inner, min: 0, max: Some(1) } => return self.repeat(inner, 0, max),
            Expr::Repeat { body: inner, min: 1, max: None } => {
                return if min == 0 && max.is_none() {
                    self.repeat(inner, 0, None)
                } else if min == 0 {
                    // (x+){0,n} is x* as soon as one round is allowed.
                    self.repeat(inner, 0, None)
                } else {
                    self.repeat(inner, min, None)
                };
            }
            _ => {}
        }
        self.intern(Expr::Repeat { body, min, max })
    }

    /// `body` or nothing at all.
    pub fn optional(&mut self, body: ExprId) -> ExprId {
        self.repeat(body, 0, Some(1))
    }

    /// Calls `visit` with every direct child.
    pub fn for_each_child(&self, id: ExprId, mut visit: impl FnMut(ExprId)) {
        match self.get(id) {
            Expr::Nothing | Expr::Empty | Expr::Bytes(_) | Expr::Number(_) | Expr::Text(_) | Expr::Language(_) => {}
            &Expr::Concat { head, tail } => {
                visit(head);
                visit(tail);
            }
            Expr::Or(parts) | Expr::And(parts) => parts.iter().copied().for_each(visit),
            &Expr::Not(inner) => visit(inner),
            &Expr::Repeat { body, .. } => visit(body),
        }
    }

    pub(crate) fn intern(&mut self, expr: Expr) -> ExprId {
        self.arena.intern(expr)
    }
}

/// Whether two sorted lists have an element in common.
fn have_common(one: &[ExprId], other: &[ExprId]) -> bool {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    few.iter().any(|part| many.binary_search(part).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_before_something_is_a_concatenation() {
        let (mut one, mut other) = (ExprSet::new(), ExprSet::new());
        let tails = |set: &mut ExprSet| {
            let (word, digit) = (set.literal(b"ab"), set.bytes(ByteSet::range(b'0', b'9')));
            let (some, boolean) = (set.repeat(digit, 2, Some(7)), set.not(word));
            [ExprId::NOTHING, ExprId::EMPTY, ExprId::ANYTHING, word, some, boolean, set.or(&[word, some])]
        };
        for (tail, same) in tails(&mut one).into_iter().zip(tails(&mut other)) {
            let (head, byte) = (one.bytes(ByteSet::of(b'a')), other.bytes(ByteSet::of(b'a')));
            let (quick, plain) = (one.byte_then(head, tail), other.concat(byte, same));
            assert_eq!(quick, plain);
            assert_eq!(one.arena.facts(quick), other.arena.facts(plain));
        }
    }

    #[test]
    fn long_texts_are_kept_in_pieces() {
        let mut set = ExprSet::new();
        let text = "aé€😈".repeat(500);
        assert_eq!(pieces(&text).collect::<String>(), text);
        let long = set.literal(text.as_bytes());
        assert!(set.own_len() < 20, "one node for each piece");
        assert_eq!(set.shortest_at_least(long), text.len() as u32);
        let texts = set.texts(long, 1, text.len()).expect("it is one text");
        assert_eq!(texts.iter().collect::<Vec<_>>(), [text.as_bytes()]);
        // A copy is made byte by byte.
        let mut other = ExprSet::new();
        let copy = other.import(&set, long);
        assert_eq!(copy, other.literal_by_bytes(text.as_bytes()));
        assert!(other.own_len() >= text.len());
    }

    #[test]
    fn equal_expressions_share_an_id() {
        let mut set = ExprSet::new();
        let (a, b) = (set.literal(b"a"), set.literal(b"b"));
        let ab = set.concat(a, b);
        assert_eq!(ab, set.literal(b"ab"));
        let abc = set.literal(b"abc");
        let c = set.literal(b"c");
        assert_eq!(set.concat(ab, c), abc);
        assert_eq!(set.or(&[ab, abc]), set.or(&[abc, ab, abc]));
        assert_eq!(set.or(&[a, b]), set.bytes(ByteSet::range(b'a', b'b')));
    }

    #[test]
    fn what_is_implied_is_absorbed() {
        let mut exprs = ExprSet::default();
        let any = exprs.bytes(ByteSet::ALL);
        let any = exprs.repeat(any, 0, None);
        let with = |exprs: &mut ExprSet, text: &[u8]| {
            let text = exprs.literal(text);
            exprs.concat_all(&[any, text, any])
        };
        let [a, b, c] = [b"ax", b"by", b"cz"].map(|text| with(&mut exprs, text));
        let [either, both] = [exprs.or(&[a, b]), exprs.and(&[a, b])];
        assert_eq!(exprs.and(&[either, a]), a);
        assert_eq!(exprs.or(&[a, both]), a);
        let rest = exprs.and(&[a, c]);
        assert_eq!(exprs.and(&[c, either, a]), rest);
        let rest = exprs.or(&[a, c]);
        assert_eq!(exprs.or(&[c, both, a]), rest);
    }

    #[test]
    fn what_contradicts_itself_is_nothing() {
        let mut exprs = ExprSet::default();
        let [a, b, c] = [b"ax", b"by", b"cz"].map(|text| {
            let text = exprs.literal(text);
            exprs.repeat(text, 1, None)
        });
        let either = exprs.or(&[a, b]);
        let [not_a, neither] = [exprs.not(a), exprs.not(either)];
        assert_eq!(exprs.and(&[not_a, a]), ExprId::NOTHING);
        assert_eq!(exprs.and(&[neither, a]), ExprId::NOTHING);
        assert_eq!(exprs.and(&[c, b, neither]), ExprId::NOTHING);
        assert_ne!(exprs.and(&[c, neither]), ExprId::NOTHING);
    }

    #[test]
    fn counters_merge() {
        let mut set = ExprSet::new();
        let a = set.literal(b"ab");
        let low = set.repeat(a, 2, Some(5));
        let high = set.repeat(a, 4, Some(9));
        let apart = set.repeat(a, 20, None);
        assert_eq!(set.or(&[low, high]), set.repeat(a, 2, Some(9)));
        let merged = set.repeat(a, 2, Some(9));
        assert_eq!(set.or(&[low, high, apart]), set.or(&[merged, apart]));
    }

    #[test]
    fn repeat_normal_forms() {
        let mut set = ExprSet::new();
        let a = set.literal(b"a");
        let star = set.repeat(a, 0, None);
        let plus = set.repeat(a, 1, None);
        let optional = set.optional(a);
        assert_eq!(set.repeat(star, 3, Some(7)), star);
        assert_eq!(set.repeat(plus, 0, None), star);
        assert_eq!(set.repeat(plus, 0, Some(4)), star);
        assert_eq!(set.repeat(optional, 2, Some(5)), set.repeat(a, 0, Some(5)));
        assert_eq!(set.repeat(a, 5, Some(2)), ExprId::NOTHING);
        assert_eq!(set.repeat(ExprId::NOTHING, 0, None), ExprId::EMPTY);
        assert_eq!(set.repeat(a, 1, Some(1)), a);
    }

    #[test]
    fn literals_make_a_trie() {
        let mut set = ExprSet::new();
        let forward = set.literals(&["a", "ab", "abc", "b", "bcd", ""]);
        let backward = set.literals(&["bcd", "", "b", "abc", "ab", "a", "a"]);
        assert_eq!(forward, backward);
        assert!(set.is_nullable(forward));
        assert_eq!(set.literals::<&[u8]>(&[]), ExprId::NOTHING);
    }

    #[test]
    fn shared_expressions_are_the_same_in_all_sets() {
        let mut common = ExprSet::new();
        let ab = common.literal(b"ab");
        let shared = common.freeze();
        let (mut one, mut two) = (ExprSet::extending(&shared), ExprSet::extending(&shared));
        assert_eq!(one.literal(b"ab"), ab);
        assert_eq!(one.own_len(), 0);
        let many = one.repeat(ab, 2, None);
        two.literal(b"zzz");
        let copy = two.import(&one, many);
        assert_eq!(*two.get(copy), Expr::Repeat { body: ab, min: 2, max: None });
        assert_eq!(two.import(&one, ab), ab);
        let again = ExprSet::extending(&two.freeze());
        assert_eq!(*again.get(copy), Expr::Repeat { body: ab, min: 2, max: None });
        assert_eq!(again.own_len(), 0);
    }
}
