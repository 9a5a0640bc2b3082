//! Lexeme masks by a walk: the tokens that an automaton reads, and the nodes where it ends.

use stencilm_regex::{Deriver, Dfa, StateId};
use stencilm_support::LimitExceeded;

use crate::lexeme::cache::LexemeCache;
use crate::lexeme::find::finder::Start;
use crate::lexeme::find::found::{Ends, Inside};
use crate::lexeme::mask::LexemeMask;
use crate::vocabulary::automaton::Automaton;
use crate::vocabulary::categories::Categories;
use crate::vocabulary::category_walk;
use crate::vocabulary::category_walk::Reader;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::WalkError;

/// A range of nodes of a trie, and the depth above them.
pub(crate) type Part = ((usize, usize), usize);

impl LexemeCache {
    /// The mask of a state by a walk through the whole vocabulary; `None` where more than `enough` nodes would have to
    /// be visited.
    pub(crate) fn mask_by_walk(
        &mut self,
        vocabulary: &Tokens,
        from: Start,
        enough: usize,
    ) -> Result<Option<LexemeMask>, LimitExceeded> {
        let automaton = &mut self.dfas[from.dfa.0 as usize];
        let known = self.categories.take().filter(|(dfa, _)| *dfa == from.dfa);
        let mut walk = Walk::new(vocabulary, automaton, &mut self.deriver, enough);
        let mut categories = known.map_or_else(|| Categories::new(&walk), |(_, categories)| categories);
        let dense = walk.is_dense(from.state)?;
        let found = category_walk::read(vocabulary, &mut categories, &mut walk, from.state, dense);
        let ends = walk.ends;
        self.categories = Some((from.dfa, categories));
        match found {
            Ok(inside) => Ok(Some(self.mask_with(vocabulary, from, Inside::Set(inside), ends))),
            Err(Stopped::Enough) => Ok(None),
            Err(Stopped::Limit(limit)) => Err(limit),
        }
    }

    /// As [`LexemeCache::mask_by_walk`], byte by byte over some parts of the trie; the given tokens are added.
    pub(crate) fn mask_of_parts(
        &mut self,
        vocabulary: &Tokens,
        from: Start,
        mut parts: Vec<Part>,
        mut tokens: Vec<u32>,
    ) -> Result<LexemeMask, LimitExceeded> {
        let trie = vocabulary.trie();
        let mut states = vec![0; trie.max_depth() + 1];
        let mut walk = Walk::new(vocabulary, &mut self.dfas[from.dfa.0 as usize], &mut self.deriver, usize::MAX);
        // Results in ascending order need not be sorted.
        parts.sort_unstable();
        for (nodes, depth) in parts {
            let step = |state, byte, node, _| Ok(walk.byte(StateId(state), byte, Some(node))?.map(|state| state.0));
            let walked = trie.walk_part(nodes, depth, from.state.0, &mut states, step, |token, _| tokens.push(token));
            if let Err(Stopped::Limit(limit)) = walked {
                return Err(limit);
            }
        }
        let ends = walk.ends;
        Ok(self.mask_with(vocabulary, from, Inside::Listed(tokens), ends))
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

impl WalkError for Stopped {
    #[inline]
    fn check() -> Result<(), Stopped> {
        Ok(LimitExceeded::check()?)
    }
}

/// The automaton of a walk, and the ends found.
struct Walk<'a> {
    vocabulary: &'a Tokens,
    automaton: &'a mut Dfa,
    deriver: &'a mut Deriver,
    ends: Ends,
    /// How many more nodes may be visited.
    left: usize,
}

impl<'a> Walk<'a> {
    fn new(vocabulary: &'a Tokens, automaton: &'a mut Dfa, deriver: &'a mut Deriver, enough: usize) -> Walk<'a> {
        Walk { vocabulary, automaton, deriver, ends: Ends::default(), left: enough }
    }

    /// Whether most tokens begin with a byte that is live in a state.
    fn is_dense(&mut self, state: StateId) -> Result<bool, LimitExceeded> {
        let trie = self.vocabulary.trie();
        Ok(2 * trie.nodes_after(*self.automaton.live_bytes(self.deriver, state)?) > trie.len())
    }
}

impl Automaton for Walk<'_> {
    #[inline]
    fn step(&mut self, state: StateId, byte: u8) -> Result<(StateId, bool), LimitExceeded> {
        self.automaton.step(self.deriver, state, byte)
    }

    fn representative(&self, byte: u8) -> u8 {
        self.automaton.representative(byte)
    }
}

impl Reader for Walk<'_> {
    type At = StateId;
    type Stopped = Stopped;

    fn state(at: StateId) -> StateId {
        at
    }

    #[inline]
    fn look(&mut self) -> Result<(), Stopped> {
        self.left = self.left.checked_sub(1).ok_or(Stopped::Enough)?;
        Ok(())
    }

    #[inline]
    fn reads(&mut self, at: StateId, next: StateId, ends: bool, nodes: &[u32]) -> (StateId, bool) {
        let full = ends && self.ends.is_full(next.0);
        if ends && !full {
            nodes.iter().for_each(|&node| self.ends.push(self.vocabulary, node as usize, next));
        }
        // While nothing matches, or once no more ends are listed.
        (next, next == at && (!ends || full))
    }

    #[inline]
    fn byte(&mut self, at: StateId, byte: u8, node: Option<usize>) -> Result<Option<StateId>, Stopped> {
        self.look()?;
        let (next, matches) = self.automaton.step(self.deriver, at, byte)?;
        if let Some(node) = node.filter(|_| matches) {
            self.ends.push(self.vocabulary, node, next);
        }
        Ok((next != StateId::DEAD).then_some(next))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::vocabulary::token_set::TokenSet;
    use stencilm_grammar::common_exprs;
    use stencilm_regex::Limits;
    use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};

    /// Pieces of tokens: letters, characters with a meaning in patterns, whitespace, and characters of several bytes,
    /// complete and broken.
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

    const PATTERNS: [&str; 20] = [
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
        r"\s+é",
        r"\s*[日\u{df}]",
        r"[\s0]*(é|\S\S)",
        r"\S*(\u{a0}|\s )",
    ];

    proptest::proptest! {
        /// Walking category strings gives the same as walking the trie, also for invalid bytes and from within a
        /// character.
        #[test]
        fn category_strings_are_walked_as_the_trie_is(
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
            let mut walk = Walk::new(&vocabulary, &mut automaton, &mut deriver, usize::MAX);
            let (mut categories, dense) = (Categories::new(&walk), walk.is_dense(start).unwrap());
            let Ok(found) = category_walk::read(&vocabulary, &mut categories, &mut walk, start, dense) else {
                panic!("there is no limit");
            };
            proptest::prop_assert_eq!(found, inside, "{} behind {:?}", PATTERNS[pattern], before);
            let found: BTreeSet<(u32, StateId)> = walk.ends.nodes().iter().copied().collect();
            proptest::prop_assert_eq!(found, ends, "{} behind {:?}", PATTERNS[pattern], before);
        }
    }
}
