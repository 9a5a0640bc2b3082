//! Runs of characters: how many characters of a class every token of a vocabulary begins with.
//!
//! That does not depend on what a lexeme asks for, so one walk of the vocabulary serves every lexeme that goes on with
//! characters of the class, as the body of a JSON string does. A string near its greatest length has the row of an
//! endless one without the tokens that are too long; and what follows a run of `C{8}-...` is looked for only at the
//! places where a run of eight characters has ended.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, Deriver, Dfa, Expr, ExprId, ExprSet, LimitExceeded, StateId};

use crate::exits::{Exits, Leaving, Suffixes};
use crate::groups::loops;
use crate::row::Row;
use crate::tokens::Tokens;
use crate::tokenset::{self, TokenSet};
use crate::trie::Trie;

/// For so many characters the tokens that are no longer are kept as a set, once it was asked for.
const FEW_ROUNDS: usize = 24;

/// An expression of the form `C{min,max}X`, where `C` is one character.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Run {
    /// One character.
    pub character: ExprId,
    /// The least number of characters.
    pub min: u32,
    /// The greatest number of characters.
    pub max: Option<u32>,
    /// What follows them.
    pub tail: ExprId,
}

impl Run {
    /// The parts of an expression of that form, where something follows in any case.
    pub fn of(exprs: &ExprSet, expr: ExprId) -> Option<Run> {
        let Expr::Concat { head, tail } = *exprs.get(expr) else { return None };
        let Expr::Repeat { body: character, min, max } = *exprs.get(head) else { return None };
        let plain = !exprs.is_nullable(character) && !exprs.has_boolean(character) && !exprs.is_nullable(tail);
        plain.then_some(Run { character, min, max, tail })
    }
}

/// The places where runs of characters stop before one byte.
pub struct Stops {
    /// The byte.
    pub byte: u8,
    /// Nodes of the vocabulary's trie, each with the number of characters before it.
    pub nodes: Vec<(u32, u32)>,
    /// The ways to these nodes; an entry is a position among them. Laid out when it is asked for.
    paths: Option<Trie>,
}

/// What is behind characters and one byte of a set, which ends the lexeme.
struct Ending {
    /// Nodes behind such a byte, ascending, each with the number of characters before it.
    ends: Vec<(u32, u32)>,
    suffixes: Arc<Suffixes>,
}

/// The tokens of a vocabulary by their characters of one class.
pub struct ClassRuns {
    /// The character, at an address of its own.
    pub character: Arc<ExprId>,
    /// Those that read characters only, the last perhaps not to its end.
    any: TokenSet,
    counted: Option<Counted>,
    /// By byte.
    stops: Vec<Stops>,
    /// The bytes before which stops were looked for.
    known: ByteSet,
    endings: FxHashMap<ByteSet, Ending>,
}

/// The tokens that read characters only, by how many they begin.
struct Counted {
    /// Those with fewer first.
    tokens: Vec<u32>,
    /// For every number of characters begun, the first token in `tokens` that begins so many.
    starts: Vec<u32>,
    /// Those of at most so many characters, for few.
    few: Vec<Option<TokenSet>>,
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

impl ClassRuns {
    /// Reads all tokens with the automaton of a character. `None` where it is not plain to see where a character ends.
    ///
    /// # Errors
    /// [`LimitExceeded`] when the automaton grows too large.
    pub fn find(
        vocabulary: &Tokens,
        character: Arc<ExprId>,
        automaton: &mut Dfa,
        deriver: &mut Deriver,
        stops: ByteSet,
        counted: bool,
    ) -> Result<Option<ClassRuns>, LimitExceeded> {
        let trie = vocabulary.trie();
        let mut characters = Characters { automaton, deriver, table: Vec::new(), plain: true };
        let mut found: Vec<(u32, u32)> = Vec::new();
        let mut step = |characters: &mut Characters<'_>, at: u32, byte, node| {
            let state = at & STATE;
            let next = characters.next(state, byte)?;
            if next == StateId::DEAD.0 {
                if state == StateId::START.0 && stops.contains(byte) {
                    found.push((node as u32, at >> ROUNDS));
                }
                return Ok::<_, LimitExceeded>(None);
            }
            let begun = u32::from(state == StateId::START.0) << ROUNDS;
            Ok(characters.plain.then_some(((at & !STATE) + begun) | next))
        };
        let mut any = TokenSet::empty(vocabulary.vocab_size());
        let counted = if counted {
            let mut within: Vec<(u32, u32)> = Vec::with_capacity(vocabulary.vocab_size());
            let step = |at, byte, node| step(&mut characters, at, byte, node);
            trie.walk(StateId::START.0, step, |token, at| within.push((at >> ROUNDS, token)))?;
            within.iter().for_each(|&(_, token)| any.insert(token));
            Some(Counted::new(&within))
        } else {
            let start = StateId::START.0;
            let same = loops(start, |state, byte| {
                Ok(Some(characters.next(state, byte)?).filter(|&next| next != StateId::DEAD.0))
            })?;
            let begins = *characters.automaton.live_bytes(characters.deriver, StateId::START)?;
            let wide = 2 * trie.nodes_behind(begins) > trie.len();
            if wide {
                any = vocabulary.spelled().clone();
            }
            let step = |at, byte, node| {
                let next = step(&mut characters, at, byte, node)?;
                Ok(next.map(|at| (at, if at & STATE == start { same } else { 0 })))
            };
            trie.walk_mask(start, wide, step, any.words_mut())?;
            None
        };
        if !characters.plain {
            return Ok(None);
        }
        let mut by_byte: Vec<Stops> = Vec::new();
        for (node, rounds) in found {
            let byte = trie.byte(node as usize);
            let place = by_byte.iter().position(|stops| stops.byte == byte).unwrap_or_else(|| {
                by_byte.push(Stops { byte, nodes: Vec::new(), paths: None });
                by_byte.len() - 1
            });
            by_byte[place].nodes.push((node, rounds));
        }
        Ok(Some(ClassRuns { character, any, counted, stops: by_byte, known: stops, endings: FxHashMap::default() }))
    }

    /// Whether the stops before these bytes are known, and the numbers of characters where they are asked for.
    pub fn tells(&self, stops: ByteSet, counted: bool) -> bool {
        stops.intersect(&self.known.complement()).is_empty() && (!counted || self.is_counted())
    }

    /// The bytes before which stops are known.
    pub fn known_stops(&self) -> &ByteSet {
        &self.known
    }

    /// Whether the numbers of characters are known.
    pub fn is_counted(&self) -> bool {
        self.counted.is_some()
    }

    /// The tokens that read at most so many characters, and nothing else; all of them where they are not counted.
    pub fn within(&mut self, max: Option<u32>) -> TokenSet {
        let (Some(max), Some(Counted { tokens, starts, few })) = (max, &mut self.counted) else {
            return self.any.clone();
        };
        let (most, rounds) = (max as usize, starts.len() - 1);
        if most + 1 >= rounds {
            return self.any.clone();
        }
        if let Some(Some(known)) = few.get(most) {
            return known.clone();
        }
        let (shorter, longer) = tokens.split_at(starts[most + 1] as usize);
        let set = if shorter.len() < longer.len() {
            let mut set = TokenSet::empty(self.any.words().len() * 32);
            shorter.iter().for_each(|&token| set.insert(token));
            set
        } else {
            let mut set = self.any.clone();
            longer.iter().for_each(|&token| set.remove(token));
            set
        };
        if let Some(place) = few.get_mut(most) {
            *place = Some(set.clone());
        }
        set
    }

    /// Where runs stop, by the byte there.
    pub fn stops(&self) -> &[Stops] {
        &self.stops
    }

    /// The ways to the places where runs stop before a byte; an entry is a position among [`Stops::nodes`].
    pub fn paths(&mut self, vocabulary: &Tokens, group: usize) -> (&Trie, &[(u32, u32)]) {
        let Stops { nodes, paths, .. } = &mut self.stops[group];
        let paths = paths.get_or_insert_with(|| {
            let trie = vocabulary.trie();
            Trie::from_sorted(nodes.iter().enumerate().map(|(entry, &(node, _))| {
                let token = trie.entries_below(node as usize).next().expect("every node leads to a token");
                let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
                (&bytes[..trie.depth(node as usize)], entry as u32)
            }))
        });
        (paths, nodes)
    }

    /// The row of so many characters and one byte of `end`, which begins no character; with the ways behind such a byte,
    /// where they are known.
    pub fn row(
        &mut self,
        vocabulary: &Tokens,
        min: u32,
        max: Option<u32>,
        end: ByteSet,
        known: Option<Arc<Suffixes>>,
    ) -> Row {
        let mut inside = self.within(max);
        let stops = &self.stops;
        let ending = self.endings.entry(end).or_insert_with(|| Ending::new(vocabulary, stops, end, known));
        let counts = min..=max.unwrap_or(u32::MAX);
        let ends = ending.ends.iter().filter(|(_, rounds)| counts.contains(rounds));
        let ends: Vec<u32> = ends.map(|&(node, _)| node).collect();
        for token in ends.iter().filter_map(|&node| vocabulary.trie().entry_at(node as usize)) {
            tokenset::set(inside.words_mut(), token);
        }
        let exits = Exits::through(&[0], ending.suffixes.clone(), ends.iter().copied());
        Row::of_set(inside, Some(Arc::new(vec![Leaving::by_ways(exits)])), Box::default()).with_ends(ends)
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let counted = self.counted.iter().map(|counted| {
            let sets = counted.few.iter().flatten().count() * self.any.words().len();
            (counted.tokens.len() + counted.starts.len() + sets) * 4
        });
        let stops = self.stops.iter().map(|stops| {
            stops.nodes.len() * 8 + stops.paths.as_ref().map_or(0, Trie::memory_bytes) + size_of::<Stops>()
        });
        let endings = self.endings.values().map(Ending::memory_bytes);
        self.any.words().len() * 4 + counted.chain(stops).chain(endings).sum::<usize>()
    }
}

/// Where a walk keeps a state of the automaton and the number of characters begun.
const STATE: u32 = (1 << ROUNDS) - 1;

/// See [`STATE`].
const ROUNDS: u32 = 16;

/// Not looked up yet.
const UNKNOWN: u32 = u32::MAX;

/// The automaton of one character as a table that begins anew behind each.
struct Characters<'a> {
    automaton: &'a mut Dfa,
    deriver: &'a mut Deriver,
    /// By state and byte the next state.
    table: Vec<u32>,
    /// Whether no character goes on with another, so far.
    plain: bool,
}

impl Characters<'_> {
    #[inline]
    fn next(&mut self, state: u32, byte: u8) -> Result<u32, LimitExceeded> {
        match self.table.get((state as usize) << 8 | usize::from(byte)) {
            Some(&next) if next != UNKNOWN => Ok(next),
            _ => self.look_up(state, byte),
        }
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

impl Ending {
    fn new(vocabulary: &Tokens, stops: &[Stops], end: ByteSet, known: Option<Arc<Suffixes>>) -> Ending {
        let here = stops.iter().filter(|stops| end.contains(stops.byte));
        let mut ends: Vec<(u32, u32)> = here.flat_map(|stops| &stops.nodes).copied().collect();
        ends.sort_unstable();
        let own = || Arc::new(Suffixes::behind(vocabulary, ends.iter().map(|&(node, _)| node)));
        let suffixes = known.unwrap_or_else(own);
        Ending { ends, suffixes }
    }

    fn memory_bytes(&self) -> usize {
        self.ends.len() * 8 + self.suffixes.memory_bytes()
    }
}
