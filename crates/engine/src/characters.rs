//! Walks that read tokens as runs of characters of one class.

use stencilm_regex::{ByteSet, Deriver, Dfa, LimitExceeded, StateId};

use crate::groups::{OF_MANY_BYTES, group_of, loops};
use crate::tokens::Tokens;
use crate::tokenset::TokenSet;
use crate::trie::Next;

/// For so many characters the tokens that are no longer are kept as a set, once it was asked for.
const FEW_ROUNDS: usize = 24;

/// The tokens that read characters only, by how many they begin.
pub struct Counted {
    /// Those with fewer first.
    pub tokens: Vec<u32>,
    /// For every number of characters begun, the first token in `tokens` that begins so many.
    pub starts: Vec<u32>,
    /// Those of at most so many characters, for few.
    pub few: Vec<Option<TokenSet>>,
}

impl Counted {
    /// Sorts tokens, each with its number of characters.
    fn new(within: &[(u32, u32)]) -> Counted {
        let rounds = within.iter().map(|&(rounds, _)| rounds as usize + 1).max().unwrap_or(0);
        let mut starts = vec![0u32; rounds + 1];
        within.iter().for_each(|&(rounds, _)| starts[rounds as usize + 1] += 1);
        for rounds in 1..starts.len() {
            starts[rounds] += starts[rounds - 1];
        }
        let mut tokens = vec![0; within.len()];
        let mut places = starts.clone();
        for &(rounds, token) in within {
            let place = &mut places[rounds as usize];
            tokens[*place as usize] = token;
            *place += 1;
        }
        Counted { tokens, starts, few: vec![None; FEW_ROUNDS.min(rounds)] }
    }
}

/// Where a walk keeps a state of the automaton and the number of characters begun.
const STATE: u32 = (1 << ROUNDS) - 1;

/// See [`STATE`].
const ROUNDS: u32 = 16;

/// Not looked up yet.
const UNKNOWN: u32 = u32::MAX;

/// The automaton of one character as a table that begins anew behind each.
pub struct Characters<'a> {
    automaton: &'a mut Dfa,
    deriver: &'a mut Deriver,
    /// By state and byte the next state.
    table: Vec<u32>,
    /// Whether no character goes on with another, so far.
    plain: bool,
}

impl<'a> Characters<'a> {
    /// By the automaton of a character.
    pub fn new(automaton: &'a mut Dfa, deriver: &'a mut Deriver) -> Characters<'a> {
        Characters { automaton, deriver, table: Vec::new(), plain: true }
    }

    /// Whether it was plain to see where a character ends, in all that was read.
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

    /// Reads every token: all that are made of characters, by how many they begin, and where they stop before some bytes.
    pub fn read_all(
        &mut self,
        vocabulary: &Tokens,
        stops: ByteSet,
        any: &mut TokenSet,
        found: &mut Vec<(u32, u32)>,
    ) -> Result<Counted, LimitExceeded> {
        let mut within: Vec<(u32, u32)> = Vec::with_capacity(vocabulary.vocab_size());
        let step = |at: u32, byte, node| {
            let state = at & STATE;
            let next = self.next(state, byte)?;
            if next == StateId::DEAD.0 {
                if state == StateId::START.0 && stops.contains(byte) {
                    found.push((node as u32, at >> ROUNDS));
                }
                return Ok::<_, LimitExceeded>(None);
            }
            let begun = u32::from(state == StateId::START.0) << ROUNDS;
            Ok(self.plain.then_some(((at & !STATE) + begun) | next))
        };
        vocabulary.trie().walk(StateId::START.0, step, |token, at| within.push((at >> ROUNDS, token)))?;
        within.iter().for_each(|&(_, token)| any.insert(token));
        Ok(Counted::new(&within))
    }

    /// As [`Characters::read_all`], without counting. Most tokens have characters of groups that are read to the last one,
    /// or begin with such and have one of a group of which none is read: those need not be walked to.
    pub fn read_some(
        &mut self,
        vocabulary: &Tokens,
        stops: ByteSet,
        any: &mut TokenSet,
        found: &mut Vec<(u32, u32)>,
    ) -> Result<(), LimitExceeded> {
        let (trie, makeup, start) = (vocabulary.trie(), vocabulary.makeup(), StateId::START.0);
        let whole = loops(start, |state, byte| {
            Ok::<_, LimitExceeded>(Some(self.next(state, byte)?).filter(|&next| next != StateId::DEAD.0))
        })?;
        let live = *self.automaton.live_bytes(self.deriver, StateId::START)?;
        let some = live.iter().fold(0, |groups, byte| groups | 1 << group_of(byte)) & !whole;
        *any = makeup.within(vocabulary.spelled(), whole);
        let listed = stops.iter().all(|byte| makeup.places(byte).is_some());
        for byte in stops.iter().filter(|&byte| listed && !live.contains(byte)) {
            let places = makeup.places(byte).expect("all these are listed");
            for &(node, before) in places.iter().filter(|(_, before)| before & !whole == 0) {
                if before & OF_MANY_BYTES == 0 {
                    found.push((node, trie.depth(node as usize) as u32 - 1));
                    continue;
                }
                let mut state = start;
                let mut rounds = 0;
                for &byte in vocabulary.bytes_before(node) {
                    rounds += u32::from(state == start);
                    state = self.next(state, byte)?;
                }
                if state == start {
                    found.push((node, rounds));
                }
            }
        }
        let step = |(at, mixed): (u32, bool), byte, node, below: u32| {
            let state = at & STATE;
            let next = self.next(state, byte)?;
            if next == StateId::DEAD.0 {
                if state == start && stops.contains(byte) && (mixed || !listed) {
                    found.push((node as u32, at >> ROUNDS));
                }
                return Ok::<_, LimitExceeded>(Next::Skip);
            }
            if !self.plain {
                return Ok(Next::Skip);
            }
            let mixed = mixed || (state == start && whole & 1 << group_of(byte) == 0);
            // Those that are not mixed are known from above.
            let known = below & !whole == 0 || (!mixed && listed && below & some == 0);
            if next == start && known {
                return Ok(if mixed { Next::Take } else { Next::Skip });
            }
            let begun = u32::from(state == start) << ROUNDS;
            Ok(Next::Walk((((at & !STATE) + begun) | next, mixed)))
        };
        trie.walk_some((start, false), step, any.words_mut())?;
        found.sort_unstable();
        Ok(())
    }

    #[cold]
    fn look_up(&mut self, state: u32, byte: u8) -> Result<u32, LimitExceeded> {
        let (next, complete) = self.automaton.step(self.deriver, StateId(state), byte)?;
        let behind = if complete {
            self.plain &= self.automaton.live_bytes(self.deriver, next)?.is_empty();
            StateId::START
        } else {
            // Back at the start without being complete would be taken for a boundary.
            self.plain &= next != StateId::START;
            next
        };
        self.plain &= behind.0 <= STATE;
        let end = (state as usize + 1) << 8;
        if self.table.len() < end {
            self.table.resize(end, UNKNOWN);
        }
        self.table[(state as usize) << 8 | usize::from(byte)] = behind.0;
        Ok(behind.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencilm_grammar::common_exprs;
    use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};
    use stencilm_regex::{ExprId, Limits};

    /// Pieces of tokens: letters, what patterns ask for, blanks and characters of several bytes, whole and broken.
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

    const CLASSES: [&str; 12] = [
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
    ];

    fn class(deriver: &mut Deriver, pattern: &str) -> ExprId {
        let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
        parse_pattern(&mut deriver.exprs, pattern, &options, &mut Utf8).unwrap()
    }

    proptest::proptest! {
        /// Reading some tokens finds what reading all of them does.
        #[test]
        fn reading_some_is_reading_all(
            tokens in proptest::collection::btree_set(proptest::collection::vec(0usize..PIECES.len(), 1..5), 1..200),
            pattern in 0usize..CLASSES.len(),
            stops in proptest::sample::subsequence(b"\"-. a\xA5".to_vec(), 1..4),
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
            let mut read = |all: bool| {
                let mut characters = Characters::new(&mut automaton, &mut deriver);
                let (mut any, mut found) = (TokenSet::empty(tokens.len()), Vec::new());
                if all {
                    characters.read_all(&vocabulary, stops, &mut any, &mut found).unwrap();
                } else {
                    characters.read_some(&vocabulary, stops, &mut any, &mut found).unwrap();
                }
                proptest::prop_assert!(characters.are_plain());
                Ok((any, found))
            };
            proptest::prop_assert_eq!(read(true)?, read(false)?, "{}", CLASSES[pattern]);
        }
    }
}
