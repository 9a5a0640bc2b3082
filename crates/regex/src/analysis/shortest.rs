//! Short texts that an expression matches, found by a best-first search.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
use stencilm_support::{LimitExceeded, memory};

use crate::derivative::deriver::Deriver;
use crate::expr::byte_set::ByteSet;
use crate::expr::node::ExprId;

/// The priority of a place: the least length of a match through it, its distance, and the order of discovery.
type Rank = (u32, Reverse<u32>, u32);

/// The texts that an expression matches and that have at least one byte, the shortest first: an A* search over
/// derivatives. Of several bytes that lead to the same place, only the most readable ones are taken.
pub struct Shortest {
    queue: BinaryHeap<Reverse<(Rank, ExprId)>>,
    /// By order of discovery: the place before, and the byte that led from there.
    steps: Vec<(u32, u8)>,
    visits: FxHashMap<ExprId, u32>,
    /// How often an expression may be continued, and how many of the bytes that lead to the same place are taken. With
    /// 1, only the first text is certainly the shortest.
    max_visits: u32,
    max_steps: usize,
}

impl Shortest {
    /// The texts of `root`. With several visits, several texts through equal places are found.
    pub fn new(deriver: &Deriver, root: ExprId, max_visits: u32, max_steps: usize) -> Shortest {
        let mut queue = BinaryHeap::new();
        if root != ExprId::NOTHING {
            queue.push(Reverse(((deriver.exprs.shortest_at_least(root), Reverse(0), 0), root)));
        }
        Shortest { queue, steps: vec![(0, 0)], visits: FxHashMap::default(), max_visits, max_steps }
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.queue.capacity() * size_of::<Reverse<(Rank, ExprId)>>()
            + memory::of_list(&self.steps)
            + memory::of_table::<(ExprId, u32)>(self.visits.capacity())
    }

    /// The next text; `None` when there are no more.
    ///
    /// # Errors
    /// [`LimitExceeded`] when the search is too long.
    pub fn next(&mut self, deriver: &mut Deriver) -> Result<Option<Vec<u8>>, LimitExceeded> {
        while let Some(Reverse(((_, Reverse(length), at), expr))) = self.queue.pop() {
            let visits = self.visits.entry(expr).or_default();
            if *visits < self.max_visits {
                *visits += 1;
                // Otherwise the bytes of a language decided by a program would be tried one by one.
                let jumps = deriver.after_languages(expr)?;
                if !jumps.is_empty() {
                    for (text, rest) in jumps {
                        self.jump(deriver, (length, at), &text, rest);
                    }
                    continue;
                }
                let derivatives = deriver.derivatives(expr)?;
                let mut alternatives: Vec<(u8, ExprId)> = Vec::new();
                for (set, rest) in derivatives.iter() {
                    alternatives.extend(readable(set, self.max_visits as usize).map(|byte| (byte, *rest)));
                }
                alternatives.sort_unstable_by_key(|&(byte, _)| byte);
                for (byte, rest) in alternatives {
                    if !deriver.is_live(rest)? {
                        continue;
                    }
                    if self.steps.len() > self.max_steps {
                        return Err(LimitExceeded::Search(self.max_steps));
                    }
                    let least = deriver.exprs.shortest_at_least(rest).saturating_add(length + 1);
                    self.queue.push(Reverse(((least, Reverse(length + 1), self.steps.len() as u32), rest)));
                    self.steps.push((at, byte));
                }
            }
            if at != 0 && deriver.exprs.is_nullable(expr) {
                return Ok(Some(self.text(at)));
            }
        }
        Ok(None)
    }

    fn jump(&mut self, deriver: &Deriver, (length, mut at): (u32, u32), text: &[u8], rest: ExprId) {
        for &byte in text {
            self.steps.push((at, byte));
            at = self.steps.len() as u32 - 1;
        }
        let length = length + text.len() as u32;
        let least = deriver.exprs.shortest_at_least(rest).saturating_add(length);
        self.queue.push(Reverse(((least, Reverse(length), at), rest)));
    }

    fn text(&self, mut at: u32) -> Vec<u8> {
        let mut text = Vec::new();
        while at != 0 {
            let (before, byte) = self.steps[at as usize];
            text.push(byte);
            at = before;
        }
        text.reverse();
        text
    }
}

/// The most readable bytes of a set: letters, then digits, then anything printable.
fn readable(set: &ByteSet, count: usize) -> impl Iterator<Item = u8> {
    let rank = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'0'..=b'9' => 1,
        b'!'..=b'~' => 2,
        _ => 3,
    };
    let mut bytes: Vec<u8> = set.iter().collect();
    bytes.sort_by_key(|&byte| rank(byte));
    bytes.into_iter().take(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::{Alphabet, PatternOptions, Utf8, parse_pattern};

    fn texts(pattern: &str, count: usize) -> Vec<String> {
        let mut deriver = Deriver::new(Limits::default());
        let alphabet: &mut dyn Alphabet = &mut Utf8;
        let root = parse_pattern(&mut deriver.exprs, pattern, &PatternOptions::default(), alphabet).unwrap();
        let mut shortest = Shortest::new(&deriver, root, count as u32, 100_000);
        (0..count).map_while(|_| shortest.next(&mut deriver).unwrap()).map(|t| String::from_utf8(t).unwrap()).collect()
    }

    #[test]
    fn the_shortest_come_first() {
        assert_eq!(texts("abc|x{5}|de", 9), ["de", "abc", "xxxxx"]);
        assert_eq!(texts("[0-9]*", 3), ["0", "1", "2"]);
        assert_eq!(texts("(?:ab)?", 3), ["ab"]);
        assert_eq!(texts("é{2}", 1), ["éé"]);
        assert_eq!(texts("[^a]{3}", 1), ["bbb"]);
    }

    #[test]
    fn intersections_are_searched() {
        let mut deriver = Deriver::new(Limits::default());
        let a = deriver.exprs.literal(b"a");
        let [threes, fives] = [3, 5].map(|count| {
            let round = deriver.exprs.repeat(a, count, Some(count));
            deriver.exprs.repeat(round, 1, None)
        });
        let both = deriver.exprs.and(&[threes, fives]);
        let text = Shortest::new(&deriver, both, 1, 1000).next(&mut deriver).unwrap();
        assert_eq!(text, Some(vec![b'a'; 15]));
        let error = Shortest::new(&deriver, both, 1, 5).next(&mut deriver);
        assert_eq!(error, Err(LimitExceeded::Search(5)));
    }
}
