//! Walks that read tokens as runs of characters from one class.

use stencilm_regex::{ByteSet, Deriver, Dfa, StateId};
use stencilm_support::LimitExceeded;

use crate::vocabulary::automaton::Automaton;
use crate::vocabulary::categories::Categories;
use crate::vocabulary::category_walk;
use crate::vocabulary::category_walk::Reader;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::Trie;

/// The tokens that consist of such characters only, by the number of characters that begin in them.
pub struct Counted {
    /// Those with fewer characters first.
    pub tokens: Vec<u32>,
    /// For every number of characters, the position of the first token in `tokens` in which this many begin.
    pub starts: Vec<u32>,
}

impl Counted {
    /// Collects the tokens, given by their number of characters.
    fn new(within: &[Vec<u32>]) -> Counted {
        let lengths = within.iter().scan(0, |start, tokens| {
            *start += tokens.len() as u32;
            Some(*start)
        });
        Counted { tokens: within.concat(), starts: std::iter::once(0).chain(lengths).collect() }
    }

    /// The greatest number of characters that begin in one token.
    pub fn longest(&self) -> u32 {
        self.starts.len().saturating_sub(2) as u32
    }

    /// The tokens in which more than `above` and at most `most` characters begin.
    pub fn between(&self, above: u32, most: u32) -> &[u32] {
        self.tokens.get(self.up_to(above)..self.up_to(most)).unwrap_or_default()
    }

    /// The number of tokens in which at most `most` characters begin.
    pub fn up_to(&self, most: u32) -> usize {
        self.starts[(most as usize + 1).min(self.starts.len() - 1)] as usize
    }
}

/// What tokens are as runs of characters.
pub struct RunsFound {
    /// The tokens that are such runs entirely.
    pub any: TokenSet,
    /// The nodes of the trie at which a run stops, ascending, each with the number of characters before it.
    pub stops: Vec<(u32, u32)>,
    /// The number of characters that begin in each token, where this was asked for.
    pub counted: Option<Counted>,
}

/// The bits of a position with the state of the automaton; the bits above hold the number of characters begun.
const STATE: u32 = (1 << ROUNDS) - 1;

/// The number of bits for the state.
const ROUNDS: u32 = 16;

/// The entry is not computed yet.
const UNKNOWN: u32 = u32::MAX;

/// The automaton of one character, as a table that starts again after each character.
pub struct Characters<'a> {
    automaton: &'a mut Dfa,
    deriver: &'a mut Deriver,
    /// The next state, by state and byte.
    table: Vec<u32>,
    /// Whether so far the end of every character was unambiguous.
    plain: bool,
}

impl<'a> Characters<'a> {
    /// A table for the automaton of one character.
    pub fn new(automaton: &'a mut Dfa, deriver: &'a mut Deriver) -> Characters<'a> {
        Characters { automaton, deriver, table: Vec::new(), plain: true }
    }

    /// Whether in everything read so far the end of every character was unambiguous.
    pub fn are_plain(&self) -> bool {
        self.plain
    }

    #[inline]
    fn next(&mut self, state: u32, byte: u8) -> Result<u32, LimitExceeded> {
        match self.table.get((state as usize) << 8 | usize::from(byte)) {
            Some(&next) if next != UNKNOWN => Ok(next),
            _ => self.look_up(state, byte),
        }
    }

    /// Reads every token: finds those that consist of such characters, the nodes at which the others stop before a byte
    /// of `stops`, and, with `counted`, the number of characters that begin in each.
    pub fn read(&mut self, vocabulary: &Tokens, stops: ByteSet, counted: bool) -> Result<RunsFound, LimitExceeded> {
        let trie = vocabulary.trie();
        let dense = 2 * trie.nodes_after(*self.automaton.live_bytes(self.deriver, StateId::START)?) > trie.len();
        let within = counted.then(Vec::new);
        let mut runs = Runs { characters: self, trie, stops, found: Vec::new(), within };
        let mut categories = Categories::new(&runs);
        let any = category_walk::read(vocabulary, &mut categories, &mut runs, StateId::START.0, dense)?;
        let Runs { mut found, within, .. } = runs;
        found.sort_unstable();
        found.dedup();
        Ok(RunsFound { any, stops: found, counted: within.map(|within| Counted::new(&within)) })
    }

    #[cold]
    fn look_up(&mut self, state: u32, byte: u8) -> Result<u32, LimitExceeded> {
        let (next, complete) = self.automaton.step(self.deriver, StateId(state), byte)?;
        let after = if complete {
            self.plain &= self.automaton.live_bytes(self.deriver, next)?.is_empty();
            StateId::START
        } else {
            // A state that is the start without completing a character would be mistaken for a boundary.
            self.plain &= next != StateId::START;
            next
        };
        self.plain &= after.0 <= STATE;
        let end = (state as usize + 1) << 8;
        if self.table.len() < end {
            self.table.resize(end, UNKNOWN);
        }
        self.table[(state as usize) << 8 | usize::from(byte)] = after.0;
        Ok(after.0)
    }
}

/// Collects the runs of characters that tokens begin with. A position holds a state, and in the bits above the number
/// of characters begun.
struct Runs<'r, 'a> {
    characters: &'r mut Characters<'a>,
    trie: &'r Trie,
    stops: ByteSet,
    /// The nodes at which a run stops, each with the number of characters before it.
    found: Vec<(u32, u32)>,
    /// The tokens that are runs, by their number of characters, where these are counted. Each number has its own
    /// vector, so that the tokens of a category string are copied at once.
    within: Option<Vec<Vec<u32>>>,
}

impl Runs<'_, '_> {
    fn after(at: u32, next: u32) -> u32 {
        ((at & !STATE) + (u32::from(at & STATE == StateId::START.0) << ROUNDS)) | next
    }
}

impl Automaton for Runs<'_, '_> {
    #[inline]
    fn step(&mut self, state: StateId, byte: u8) -> Result<(StateId, bool), LimitExceeded> {
        let next = StateId(self.characters.next(state.0, byte)?);
        Ok((next, next == StateId::START))
    }

    fn representative(&self, byte: u8) -> u8 {
        self.characters.automaton.representative(byte)
    }
}

impl Reader for Runs<'_, '_> {
    type At = u32;
    type Stopped = LimitExceeded;

    fn state(at: u32) -> StateId {
        StateId(at & STATE)
    }

    #[inline]
    fn reads(&mut self, at: u32, next: StateId, ends: bool, _nodes: &[u32]) -> (u32, bool) {
        let same = ends && at & STATE == StateId::START.0 && !self.lists();
        (Runs::after(at, next.0), same)
    }

    fn refuses(&mut self, at: u32, nodes: &[u32]) {
        if at & STATE == StateId::START.0 {
            let stops = nodes.iter().filter(|&&node| self.stops.contains(self.trie.byte(node as usize)));
            self.found.extend(stops.map(|&node| (node, at >> ROUNDS)));
        }
    }

    #[inline]
    fn byte(&mut self, at: u32, byte: u8, node: Option<usize>) -> Result<Option<u32>, LimitExceeded> {
        let next = self.characters.next(at & STATE, byte)?;
        if next == StateId::DEAD.0 {
            if let Some(node) = node {
                self.refuses(at, &[node as u32]);
            }
            return Ok(None);
        }
        // Ambiguous ends make the result useless, so the walk stops.
        Ok(self.characters.plain.then(|| Runs::after(at, next)))
    }

    fn lists(&self) -> bool {
        self.within.is_some()
    }

    fn ends(&mut self, at: u32, tokens: &[u32]) {
        if let Some(within) = &mut self.within
            && !tokens.is_empty()
        {
            let rounds = (at >> ROUNDS) as usize;
            if within.len() <= rounds {
                within.resize_with(rounds + 1, Vec::new);
            }
            within[rounds].extend_from_slice(tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencilm_grammar::common_exprs;
    use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};
    use stencilm_regex::{ExprId, Limits};

    /// Pieces of tokens: letters, what patterns ask for, whitespace and characters of several bytes, whole and broken.
    const PIECES: [&[u8]; 18] = [
        b"a",
        b"f",
        b"Z",
        b"7",
        b" ",
        b"-",
        b".",
        b"_",
        b"\"",
        b"\\",
        b"\\n",
        b"\n",
        "\u{e9}".as_bytes(),
        "\u{a0}".as_bytes(),
        "\u{65e5}".as_bytes(),
        b"\xE4\xB8",
        b"\xA5",
        b"\xFF",
    ];

    const CLASSES: [&str; 15] = [
        "[a-z]",
        "[a-f0-9]",
        "[a-zA-Z0-9_.-]",
        r"\w",
        r"[\w\s-]",
        ".",
        "[^/]",
        "[^a-z]",
        "\u{e9}|a",
        r"\\n|[a-z]",
        "[a-z][0-9]",
        "[\u{e0}-\u{ff}]",
        r"\s",
        r"\S",
        r"\s\s|0",
    ];

    fn class(deriver: &mut Deriver, pattern: &str) -> ExprId {
        let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
        parse_pattern(&mut deriver.exprs, pattern, &options, &mut Utf8).unwrap()
    }

    proptest::proptest! {
        /// Reading by category strings finds what reading every byte does.
        #[test]
        fn runs_are_those_of_a_walk_of_the_trie(
            tokens in proptest::collection::btree_set(proptest::collection::vec(0usize..PIECES.len(), 1..5), 1..200),
            pattern in 0usize..CLASSES.len(),
            stops in proptest::sample::subsequence(b"\"-. a\xA5\xC3\xE6\xC2".to_vec(), 1..5),
            counted in proptest::bool::ANY,
        ) {
            let tokens: Vec<Option<Vec<u8>>> = tokens
                .iter()
                .map(|pieces| Some(pieces.iter().flat_map(|&piece| PIECES[piece]).copied().collect()))
                .collect();
            let vocabulary = Tokens::new(&tokens, tokens.len(), &[], &[]).unwrap();
            let stops = stops.iter().fold(ByteSet::EMPTY, |set, &byte| set.union(&ByteSet::of(byte)));
            let mut deriver = Deriver::over(common_exprs(), Limits::default());
            let character = class(&mut deriver, CLASSES[pattern]);
            let mut automaton = Dfa::new(&mut deriver, &[character], Limits::default()).unwrap();
            let mut characters = Characters::new(&mut automaton, &mut deriver);
            let (mut inside, mut found) = (TokenSet::empty(tokens.len()), Vec::new());
            let mut within: Vec<Vec<u32>> = Vec::new();
            let step = |(state, rounds): (u32, u32), byte, node| {
                let next = characters.next(state, byte)?;
                let at_start = state == StateId::START.0;
                if next == StateId::DEAD.0 && at_start && stops.contains(byte) {
                    found.push((node as u32, rounds));
                }
                Ok::<_, LimitExceeded>((next != StateId::DEAD.0).then_some((next, rounds + u32::from(at_start))))
            };
            let token = |token, (_, rounds)| {
                inside.insert(token);
                within.resize(within.len().max(rounds as usize + 1), Vec::new());
                within[rounds as usize].push(token);
            };
            vocabulary.trie().walk((StateId::START.0, 0), step, token).unwrap();
            let runs = characters.read(&vocabulary, stops, counted).unwrap();
            proptest::prop_assert!(characters.are_plain());
            proptest::prop_assert_eq!(runs.any, inside, "{}", CLASSES[pattern]);
            proptest::prop_assert_eq!(runs.stops, found, "{}", CLASSES[pattern]);
            if let Some(counts) = runs.counted {
                let expected = Counted::new(&within);
                proptest::prop_assert_eq!(counts.starts, expected.starts, "{}", CLASSES[pattern]);
                let sorted = |counted: &[u32]| counted.iter().copied().collect::<std::collections::BTreeSet<u32>>();
                proptest::prop_assert_eq!(sorted(&counts.tokens), sorted(&expected.tokens), "{}", CLASSES[pattern]);
            }
        }
    }
}
