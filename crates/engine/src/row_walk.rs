//! Rows by a walk: what an automaton reads of the vocabulary, by the shapes of tokens where it does not tell characters of a
//! kind apart, and byte by byte elsewhere.

use stencilm_regex::{Deriver, Dfa, LimitExceeded, StateId};

use crate::groups::loops;
use crate::kinds::{BLANK, HIGH, Kinds, OTHER, Read};
use crate::lexicon::Lexicon;
use crate::row::Row;
use crate::rows::{Ends, Inside, Start};
use crate::tokens::Tokens;
use crate::tokenset::{self, TokenSet};

/// A state with fewer bytes that lead on is not asked which of them lead back to it.
const MANY_LOOPS: usize = 16;

/// A state is asked for its loops when a walk meets it so often: many are met once or twice.
const MANY_VISITS: u32 = 32;

/// So often it is looked whether more of its ends would be listed.
const SOME_VISITS: u32 = 512;

/// Nodes of a trie from one to before another, and the depth above them.
pub(crate) type Part = ((usize, usize), usize);

impl Lexicon {
    /// The row of what is read from a state, of the whole vocabulary; `None` where more nodes than these would have to be
    /// looked at.
    pub(crate) fn row_by_walk(
        &mut self,
        vocabulary: &Tokens,
        from: Start,
        enough: usize,
    ) -> Result<Option<Row>, LimitExceeded> {
        let automaton = &mut self.dfas[from.dfa.0 as usize];
        let known = self.kinds.take().filter(|(dfa, _)| *dfa == from.dfa);
        let mut kinds = known.map_or_else(|| Kinds::new(automaton), |(_, kinds)| kinds);
        let mut walk = Walk::new(vocabulary, automaton, &mut self.deriver, enough);
        let found = walk.shapes(&mut kinds, from.state).and_then(|mut inside| {
            walk.ragged(from.state, &mut inside)?;
            Ok((Inside::Set(inside.tokens), walk.ends))
        });
        self.kinds = Some((from.dfa, kinds));
        match found {
            Ok((inside, ends)) => Ok(Some(self.row_with(vocabulary, from, inside, ends))),
            Err(Stopped::Enough) => Ok(None),
            Err(Stopped::Limit(limit)) => Err(limit),
        }
    }

    /// As [`Lexicon::row_by_walk`], byte by byte over some parts of the trie, with these tokens beside what is found.
    pub(crate) fn row_of_parts(
        &mut self,
        vocabulary: &Tokens,
        from: Start,
        parts: Vec<Part>,
        mut tokens: Vec<u32>,
    ) -> Result<Row, LimitExceeded> {
        let trie = vocabulary.trie();
        let mut states = vec![0; trie.max_depth() + 1];
        let mut walk = Walk::new(vocabulary, &mut self.dfas[from.dfa.0 as usize], &mut self.deriver, usize::MAX);
        for (nodes, depth) in parts {
            let step = |state, byte, node, _| walk.step(state, byte, node);
            let walked = trie.walk_part(nodes, depth, from.state.0, &mut states, step, |token| tokens.push(token));
            if let Err(Stopped::Limit(limit)) = walked {
                return Err(limit);
            }
        }
        let ends = walk.ends;
        Ok(self.row_with(vocabulary, from, Inside::Listed(tokens), ends))
    }
}

/// Why a walk ended early.
enum Stopped {
    Enough,
    Limit(LimitExceeded),
}

impl From<LimitExceeded> for Stopped {
    fn from(limit: LimitExceeded) -> Stopped {
        Stopped::Limit(limit)
    }
}

/// The tokens that are read, while they are found.
struct Found {
    tokens: TokenSet,
    /// Where most tokens begin as the lexeme may go on, all are in `tokens` at first, and those are taken out that are not
    /// read.
    wide: bool,
}

impl Found {
    /// Tokens that are read.
    #[inline]
    fn reads(&mut self, tokens: &[u32]) {
        if !self.wide {
            let words = self.tokens.words_mut();
            tokens.iter().for_each(|&token| tokenset::set(words, token));
        }
    }

    /// Tokens that are not read.
    fn refuses(&mut self, tokens: &[u32]) {
        if self.wide {
            tokens.iter().for_each(|&token| self.tokens.remove(token));
        }
    }
}

/// What a walk reads with, and the ends that it found.
struct Walk<'a> {
    vocabulary: &'a Tokens,
    automaton: &'a mut Dfa,
    deriver: &'a mut Deriver,
    ends: Ends,
    /// How many more nodes may be looked at.
    left: usize,
    loops: Vec<Loops>,
}

impl<'a> Walk<'a> {
    fn new(vocabulary: &'a Tokens, automaton: &'a mut Dfa, deriver: &'a mut Deriver, enough: usize) -> Walk<'a> {
        Walk { vocabulary, automaton, deriver, ends: Ends::default(), left: enough, loops: Vec::new() }
    }

    #[inline]
    fn count(&mut self) -> Result<(), Stopped> {
        self.left = self.left.checked_sub(1).ok_or(Stopped::Enough)?;
        Ok(())
    }

    #[inline]
    fn step(&mut self, state: u32, byte: u8, node: usize) -> Result<Option<u32>, Stopped> {
        self.count()?;
        let (next, accepts) = self.automaton.step(self.deriver, StateId(state), byte)?;
        if accepts {
            self.ends.push(self.vocabulary, node, next);
        }
        Ok((next != StateId::DEAD).then_some(next.0))
    }

    /// A step of a walk that skips loops, see [`Trie::walk_mask`](crate::trie::Trie::walk_mask).
    #[inline]
    fn step_or_skip(&mut self, state: u32, byte: u8, node: usize) -> Result<Option<(u32, u32)>, Stopped> {
        let Some(next) = self.step(state, byte, node)? else { return Ok(None) };
        let place = next as usize;
        if place >= self.loops.len() {
            self.loops.resize(place + 1, Loops::default());
        }
        let known = &mut self.loops[place];
        known.until_asked -= 1;
        if known.until_asked == 0 {
            let full = self.ends.is_full(next);
            known.until_asked = if full { u32::MAX } else { SOME_VISITS };
            if full || !known.asked {
                known.asked = true;
                known.groups = loops_of(self.automaton, self.deriver, next, full)?;
            }
        }
        Ok(Some((next, known.groups)))
    }

    /// Reads the tokens that have shapes, and some of the others.
    fn shapes(&mut self, kinds: &mut Kinds, start: StateId) -> Result<Found, Stopped> {
        let vocabulary = self.vocabulary;
        let (shapes, trie) = (vocabulary.shapes(), vocabulary.trie());
        let wide = 2 * trie.nodes_behind(*self.automaton.live_bytes(self.deriver, start)?) > trie.len();
        let tokens = if wide { vocabulary.spelled().clone() } else { TokenSet::empty(vocabulary.vocab_size()) };
        let mut found = Found { tokens, wide };
        // By state the kinds that lead back to it while nothing matches, or where no more ends are listed.
        let mut same: Vec<u64> = Vec::new();
        let mut states = vec![start; shapes.max_depth() + 1];
        let mut trie_states = vec![0; trie.max_depth() + 1];
        let mut index = 0;
        while index < shapes.len() {
            self.count()?;
            let shape = shapes.node(index);
            let (above, end) = (states[shape.depth as usize - 1], index + shape.size as usize);
            match kinds.read(self.automaton, self.deriver, above, shape.kind)? {
                Read::Dead => {
                    found.refuses(shapes.tokens(index, end));
                    index = end;
                }
                Read::Mixed => {
                    for &node in shapes.places(index) {
                        let state = if shape.kind == BLANK || shape.kind == OTHER {
                            self.behind_first_bytes(above, node)?
                        } else {
                            above
                        };
                        let node = node as usize;
                        trie.walk_mask_part(
                            (node, node + trie.size(node)),
                            trie.depth(node) - 1,
                            state.0,
                            &mut trie_states,
                            wide,
                            &mut |state, byte, node| self.step_or_skip(state, byte, node),
                            found.tokens.words_mut(),
                        )?;
                    }
                    index = end;
                }
                Read::To(next, matches) => {
                    let full = matches && self.ends.is_full(next.0);
                    if matches && !full {
                        for &node in shapes.places(index) {
                            self.ends.push(vocabulary, node as usize, next);
                        }
                    }
                    let state = next.0 as usize;
                    if state >= same.len() {
                        same.resize(state + 1, 1 << HIGH);
                    }
                    if next == above && (!matches || full) {
                        same[state] |= 1 << shape.kind;
                    }
                    if shape.below & !same[state] == 0 {
                        found.reads(shapes.tokens(index, end));
                        index = end;
                        continue;
                    }
                    found.reads(shapes.tokens(index, index + 1));
                    states[shape.depth as usize] = next;
                    index += 1;
                }
            }
        }
        Ok(found)
    }

    /// Reads the first bytes of the character beyond ASCII whose last one leads to a node.
    fn behind_first_bytes(&mut self, mut state: StateId, node: u32) -> Result<StateId, Stopped> {
        let before = self.vocabulary.bytes_before(node);
        let first = before.iter().rposition(|byte| byte & 0xC0 != 0x80).expect("a character has begun");
        for &byte in &before[first..] {
            state = self.automaton.next(self.deriver, state, byte)?;
        }
        Ok(state)
    }

    /// Reads the tokens that have no shapes.
    fn ragged(&mut self, start: StateId, found: &mut Found) -> Result<(), Stopped> {
        let (ragged, trie) = (self.vocabulary.shapes().ragged(), self.vocabulary.trie());
        let token = |at: usize| trie.entry_at(ragged[at].node as usize).filter(|_| !ragged[at].has_shape);
        let mut states = vec![start; trie.max_depth() + 1];
        let mut at = 0;
        while at < ragged.len() {
            let (node, end) = (ragged[at].node as usize, ragged[at].end as usize);
            let depth = trie.depth(node);
            let (next, matches) = self.automaton.step(self.deriver, states[depth - 1], trie.byte(node))?;
            if next == StateId::DEAD {
                (at..end).for_each(|at| found.refuses(token(at).as_slice()));
                at = end;
                continue;
            }
            if matches && !ragged[at].has_shape {
                self.ends.push(self.vocabulary, node, next);
            }
            found.reads(token(at).as_slice());
            states[depth] = next;
            at += 1;
        }
        Ok(())
    }
}

/// The groups of characters that lead from a state back to it, when they have been asked for.
#[derive(Clone, Copy)]
struct Loops {
    groups: u32,
    /// So many times the walk meets the state until they are asked for, or once more when so many of its ends have been
    /// found that those are among them with which something matches.
    until_asked: u32,
    asked: bool,
}

impl Default for Loops {
    fn default() -> Loops {
        Loops { groups: 0, until_asked: MANY_VISITS, asked: false }
    }
}

/// The groups of characters that lead from a state back to it while nothing has matched; where it is `full`, something may
/// match there.
fn loops_of(automaton: &mut Dfa, deriver: &mut Deriver, state: u32, full: bool) -> Result<u32, LimitExceeded> {
    let live = *automaton.live_bytes(deriver, StateId(state))?;
    if live.len() < MANY_LOOPS {
        return Ok(0);
    }
    loops(state, |from, byte| {
        let (next, accepts) = automaton.step(deriver, StateId(from), byte)?;
        Ok((next != StateId::DEAD && (!accepts || (full && next.0 == state))).then_some(next.0))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use stencilm_grammar::common_exprs;
    use stencilm_regex::Limits;
    use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};

    /// Pieces of tokens: letters, what patterns ask for, blanks and characters of several bytes, whole and broken.
    const PIECES: [&[u8]; 24] = [
        b"a",
        b"b",
        b"f",
        b"Z",
        b"7",
        b"0",
        b" ",
        b"-",
        b".",
        b"@",
        b"\"",
        b"\\",
        b"\\n",
        b"\n",
        "\u{e9}".as_bytes(),
        "\u{df}".as_bytes(),
        "\u{a0}".as_bytes(),
        "\u{85}".as_bytes(),
        "\u{2028}".as_bytes(),
        "\u{65e5}".as_bytes(),
        "\u{1f600}".as_bytes(),
        b"\xE4\xB8",
        b"\xA5",
        b"\xFF",
    ];

    const PATTERNS: [&str; 16] = [
        "[a-z]+@[a-z.]+\"",
        r"\S+( \S+){0,3}",
        "[a-f0-9]{2,4}(-[a-z]+)*",
        r"[^\s]*\.",
        ".*",
        "(a|b|é)*\"?",
        "([^\\\\\"]|\\\\n)*\"",
        "[\u{80}-\u{ff}]+a?",
        r"(\w+ ?)+",
        r"[\s\S]{1,3}",
        "(日|ß.)*",
        "[^a\u{2028}]*b",
        r"(?:[^\u0085]|a)+",
        "[a-zA-Z]+[0-7]?",
        "é*",
        "(.{2})*\"",
    ];

    proptest::proptest! {
        /// The shapes lead to what the trie leads to, bytes that are no characters and all, in the middle of one, too.
        #[test]
        fn shapes_are_walked_as_the_trie_is(
            tokens in proptest::collection::btree_set(proptest::collection::vec(0usize..PIECES.len(), 1..5), 1..300),
            pattern in 0usize..PATTERNS.len(),
            standard in proptest::bool::ANY,
            before in proptest::sample::select(vec![&b""[..], b"a", b"a@", b"\xE6", b"\"", b"a ", b"\xC3", b"0"]),
        ) {
            let tokens: Vec<Option<Vec<u8>>> = tokens
                .iter()
                .map(|pieces| pieces.iter().flat_map(|&piece| PIECES[piece]).copied().collect())
                .collect::<BTreeSet<Vec<u8>>>()
                .into_iter()
                .map(Some)
                .collect();
            let vocabulary = Tokens::new(&tokens, tokens.len(), &[], &[]).unwrap();
            let mut deriver = Deriver::over(common_exprs(), Limits::default());
            let dialect = if standard { Dialect::Standard } else { Dialect::EcmaScript };
            let options = PatternOptions { dialect, anchoring: Anchoring::Whole };
            let expr = parse_pattern(&mut deriver.exprs, PATTERNS[pattern], &options, &mut Utf8).unwrap();
            let mut automaton = Dfa::new(&mut deriver, &[expr], Limits::default()).unwrap();
            let start = automaton.run(&mut deriver, StateId::START, before).unwrap();
            if start == StateId::DEAD {
                return Ok(());
            }
            let (mut inside, mut ends) = (TokenSet::empty(tokens.len()), BTreeSet::new());
            let step = |state, byte, node| {
                let (next, matches) = automaton.step(&mut deriver, state, byte)?;
                if matches {
                    ends.insert((node as u32, next));
                }
                Ok::<_, LimitExceeded>((next != StateId::DEAD).then_some(next))
            };
            vocabulary.trie().walk(start, step, |token, _| inside.insert(token)).unwrap();
            let mut kinds = Kinds::new(&automaton);
            let mut walk = Walk::new(&vocabulary, &mut automaton, &mut deriver, usize::MAX);
            let Ok(mut found) = walk.shapes(&mut kinds, start) else { panic!("there is no limit") };
            proptest::prop_assert!(walk.ragged(start, &mut found).is_ok());
            proptest::prop_assert_eq!(found.tokens, inside, "{} behind {:?}", PATTERNS[pattern], before);
            let found: BTreeSet<(u32, StateId)> = walk.ends.nodes().iter().copied().collect();
            proptest::prop_assert_eq!(found, ends, "{} behind {:?}", PATTERNS[pattern], before);
        }
    }
}
