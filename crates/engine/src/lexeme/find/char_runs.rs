//! Runs of characters: how many characters of a class every token of a vocabulary begins with.
//!
//! That does not depend on the lexeme, so one walk of the vocabulary serves every lexeme that goes on with characters
//! of the class, as the body of a JSON string does. A string near its maximum length has the mask of an unbounded one
//! without the tokens that are too long; and what follows a run of `C{8}-...` is looked for only at the places where a
//! run of eight characters has ended.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, Deriver, Dfa, Expr, ExprId, ExprSet};
use stencilm_support::{LimitExceeded, MANY};

use crate::lexeme::crossing::{CrossingTokens, Crossings, Suffixes};
use crate::lexeme::mask::LexemeMask;
use crate::vocabulary::characters::{Characters, Counted, RunsFound};
use crate::vocabulary::token_lengths::{LONG_TOKEN, Lengths};
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::Trie;

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
    /// How many nodes are there and below.
    pub below: usize,
    /// The paths to these nodes; an entry is a position among them. Laid out when it is asked for.
    paths: Option<Trie>,
}

impl Stops {
    /// Nodes, each with the number of characters before it, by the byte that leads to them.
    fn by_byte(trie: &Trie, nodes: Vec<(u32, u32)>) -> Vec<Stops> {
        let mut by_byte: Vec<Stops> = Vec::new();
        for (node, rounds) in nodes {
            let byte = trie.byte(node as usize);
            let place = by_byte.iter().position(|stops| stops.byte == byte).unwrap_or_else(|| {
                by_byte.push(Stops { byte, nodes: Vec::new(), below: 0, paths: None });
                by_byte.len() - 1
            });
            by_byte[place].nodes.push((node, rounds));
            by_byte[place].below += trie.size(node as usize);
        }
        by_byte
    }
}

/// What is after characters and one byte of a set, which ends the lexeme.
struct Ending {
    /// By node, ascending.
    ends: Vec<End>,
    /// The most characters before one of them.
    longest: u32,
    suffixes: Arc<Suffixes>,
    /// The crossing tokens of a run of any number of characters.
    all: Option<Left>,
    /// All tokens inside the lexeme, and those of at most so many characters.
    inside: Option<Arc<TokenSet>>,
    few: Vec<Option<Arc<TokenSet>>>,
}

/// A place after characters and the byte that ends the lexeme.
struct End {
    /// A node of the vocabulary's trie.
    node: u32,
    /// How many characters come before.
    characters: u32,
    /// The token that ends there.
    token: Option<u32>,
    /// The crossings of tokens that go on.
    range: Range<u32>,
}

/// Where a run is left, and how.
#[derive(Clone)]
struct Left {
    ends: Arc<[u32]>,
    crossings: Arc<Vec<CrossingTokens>>,
    /// How many tokens end with the lexeme.
    tokens: usize,
}

/// The tokens of a vocabulary by their characters of one class.
pub struct ClassRuns {
    /// The character, at an address of its own.
    pub character: Arc<ExprId>,
    /// Those that read characters only, the last perhaps not to its end.
    any: TokenSet,
    num_any: usize,
    counts: Counts,
    /// Those of at most so many, for few.
    few: Vec<Option<TokenSet>>,
    /// By byte.
    stops: Vec<Stops>,
    /// The bytes before which stops were looked for.
    known: ByteSet,
    endings: FxHashMap<ByteSet, Ending>,
}

/// How many characters tokens begin.
#[derive(Clone)]
enum Counts {
    /// Not known.
    None,
    /// As many as they have bytes.
    OfBytes(Arc<Lengths>),
    /// As listed; shared by the classes of lexemes that follow each other.
    Listed(Arc<Counted>),
}

impl ClassRuns {
    /// Reads the tokens with the automaton of a character. `None` where it is not plain to see where a character ends.
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
        let of_bytes = matches!(deriver.exprs.get(*character), Expr::Bytes(_));
        let mut characters = Characters::new(automaton, deriver);
        let RunsFound { any, stops: found, counted } = characters.read(vocabulary, stops, counted && !of_bytes)?;
        let counts = match counted {
            Some(counted) => Counts::Listed(Arc::new(counted)),
            None if of_bytes => Counts::OfBytes(vocabulary.lengths().clone()),
            None => Counts::None,
        };
        if !characters.are_plain() {
            return Ok(None);
        }
        let (endings, known, few) = (FxHashMap::default(), stops, Vec::new());
        let stops = Stops::by_byte(vocabulary.trie(), found);
        let num_any = any.len();
        Ok(Some(ClassRuns { character, any, num_any, counts, few, stops, known, endings }))
    }

    /// The same without what was made of it for single masks.
    pub fn renewed(&self) -> ClassRuns {
        let by_byte =
            |stops: &Stops| Stops { byte: stops.byte, nodes: stops.nodes.clone(), below: stops.below, paths: None };
        ClassRuns {
            character: self.character.clone(),
            any: self.any.clone(),
            num_any: self.num_any,
            counts: self.counts.clone(),
            few: Vec::new(),
            stops: self.stops.iter().map(by_byte).collect(),
            known: self.known,
            endings: FxHashMap::default(),
        }
    }

    /// Whether the stops before these bytes are known, and the numbers of characters where they are asked for.
    pub fn decides(&self, stops: ByteSet, counted: bool) -> bool {
        stops.intersect(&self.known.complement()).is_empty() && (!counted || self.is_counted())
    }

    /// The bytes before which stops are known.
    pub fn known_stops(&self) -> &ByteSet {
        &self.known
    }

    /// Whether the numbers of characters are known.
    pub fn is_counted(&self) -> bool {
        !matches!(self.counts, Counts::None)
    }

    /// The tokens that read at most so many characters, and nothing else; all of them where they are not counted.
    pub fn within(&mut self, max: Option<u32>) -> TokenSet {
        let (Some(max), all) = (max, &self.any) else { return self.any.clone() };
        let counted = match &self.counts {
            Counts::None => return all.clone(),
            Counts::OfBytes(lengths) => {
                let mut set = all.clone();
                lengths.cut(&mut set, max);
                return set;
            }
            Counts::Listed(counted) if max >= counted.longest() => return all.clone(),
            Counts::Listed(counted) => counted,
        };
        if let Some(Some(known)) = self.few.get(max as usize) {
            return known.clone();
        }
        // From the nearest set that is known: none of them, all, or one of those that are kept.
        let tokens = &counted.tokens;
        let kept = self.few.iter().zip(0..).filter_map(|(set, most)| Some((counted.up_to(most), set.as_ref()?)));
        let (count, empty) = (counted.up_to(max), TokenSet::empty(all.words().len() * 32));
        let sets = kept.chain([(0, &empty), (tokens.len(), all)]);
        let (nearest, set) = sets.min_by_key(|(from, _)| from.abs_diff(count)).expect("there are two at least");
        let mut set = set.clone();
        match nearest < count {
            true => tokens[nearest..count].iter().for_each(|&token| set.insert(token)),
            false => tokens[count..nearest].iter().for_each(|&token| set.remove(token)),
        }
        keep_few(&mut self.few, max, &set);
        set
    }

    /// The most characters that a token begins; `None` where they are not known one by one.
    pub fn longest(&self) -> Option<u32> {
        match &self.counts {
            Counts::Listed(counted) => Some(counted.longest()),
            Counts::None | Counts::OfBytes(_) => None,
        }
    }

    /// The tokens that begin more than `above` and at most `most` characters, and read nothing else; none where they are not
    /// known one by one.
    pub fn beginning(&self, above: u32, most: u32) -> &[u32] {
        match &self.counts {
            Counts::Listed(counted) => counted.between(above, most),
            Counts::None | Counts::OfBytes(_) => &[],
        }
    }

    /// The tokens of more characters than these, where they are few and all in which the mask of at most so many characters
    /// and a byte of `end` differs from that of any number; `None` also before there was a mask that ends so.
    pub fn few_longer(&self, max: u32, end: ByteSet) -> Option<&[u32]> {
        let longer = self.beginning(max, u32::MAX);
        let few = !longer.is_empty() && longer.len() <= MANY;
        (few && self.endings.get(&end).is_some_and(|ending| max >= ending.longest)).then_some(longer)
    }

    /// How many characters come before a node at which runs stop before a byte.
    pub fn stop_at(&self, byte: u8, node: u32) -> Option<u32> {
        let nodes = &self.stops.iter().find(|stops| stops.byte == byte)?.nodes;
        nodes.binary_search_by_key(&node, |&(node, _)| node).ok().map(|place| nodes[place].1)
    }

    /// Where runs stop, by the byte there.
    pub fn stops(&self) -> &[Stops] {
        &self.stops
    }

    /// The paths to the places where runs stop before a byte; an entry is a position among [`Stops::nodes`].
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

    /// The mask of so many characters and one byte of `end`, which begins no character; with the suffixes after such a byte,
    /// where they are known.
    pub fn mask(
        &mut self,
        vocabulary: &Tokens,
        min: u32,
        max: Option<u32>,
        end: ByteSet,
        known: Option<Arc<Suffixes>>,
    ) -> LexemeMask {
        let stops = &self.stops;
        let ending = self.endings.entry(end).or_insert_with(|| Ending::new(vocabulary, stops, end, known));
        let Left { ends, crossings, tokens } = ending.left(min, max);
        let (inside, without) = self.inside(min, max, end);
        let count = match (&self.counts, max) {
            (Counts::Listed(counted), Some(max)) => counted.up_to(max) + tokens,
            (Counts::OfBytes(_), Some(_)) => inside.len() - without.len(),
            _ => self.num_any + tokens,
        };
        LexemeMask::of_shared(inside, without, count, Some(crossings), Box::default()).with_ends(ends)
    }

    /// The tokens of the mask of so many characters and a known ending: a set that masks share, and what is not in the mask.
    fn inside(&mut self, min: u32, max: Option<u32>, end: ByteSet) -> (Arc<TokenSet>, Vec<u32>) {
        let longer = match (&self.counts, max) {
            (Counts::Listed(counted), Some(max)) => counted.between(max, u32::MAX),
            _ => &[],
        };
        let is_short = max.is_some_and(|max| (max as usize) < LONG_TOKEN);
        let has_own = match &self.counts {
            Counts::None => false,
            Counts::OfBytes(_) => max.is_some(),
            Counts::Listed(_) => !longer.is_empty() && (is_short || longer.len() > MANY),
        };
        let ending = &self.endings[&end];
        let mut without: Vec<u32> = ending.tokens(0..min).collect();
        if let (false, Some(max)) = (has_own, max) {
            without.extend(longer);
            without.extend(ending.tokens(max + 1..u32::MAX));
        }
        let max = max.filter(|_| has_own);
        let known = match max {
            None => ending.inside.as_ref(),
            Some(max) => ending.few.get(max as usize).and_then(Option::as_ref),
        };
        let inside = known.cloned().unwrap_or_else(|| {
            let mut inside = self.within(max);
            let ending = self.endings.get_mut(&end).expect("the ending is known");
            ending.tokens(0..max.map_or(u32::MAX, |max| max + 1)).for_each(|token| inside.insert(token));
            let inside = Arc::new(inside);
            match max {
                None => ending.inside = Some(inside.clone()),
                Some(max) => keep_few(&mut ending.few, max, &inside),
            }
            inside
        });
        (inside, without)
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let counted = match &self.counts {
            Counts::None | Counts::OfBytes(_) => 0,
            Counts::Listed(counted) => (counted.tokens.len() + counted.starts.len()) * 4,
        };
        let few = self.few.iter().flatten().map(|set| set.words().len() * 4).sum::<usize>();
        let stops = self.stops.iter().map(|stops| {
            stops.nodes.len() * 8 + stops.paths.as_ref().map_or(0, Trie::memory_bytes) + size_of::<Stops>()
        });
        let endings = self.endings.values().map(Ending::memory_bytes);
        self.any.words().len() * 4 + counted + few + stops.chain(endings).sum::<usize>()
    }
}

impl Ending {
    fn new(vocabulary: &Tokens, stops: &[Stops], end: ByteSet, known: Option<Arc<Suffixes>>) -> Ending {
        let here = stops.iter().filter(|stops| end.contains(stops.byte));
        let mut nodes: Vec<(u32, u32)> = here.flat_map(|stops| &stops.nodes).copied().collect();
        nodes.sort_unstable();
        let own = || Arc::new(Suffixes::after(vocabulary, nodes.iter().map(|&(node, _)| node)));
        let suffixes = known.unwrap_or_else(own);
        let token = |node: u32| vocabulary.trie().entry_at(node as usize);
        let end = |&(node, characters)| End { node, characters, token: token(node), range: suffixes.of_node(node) };
        let ends: Vec<End> = nodes.iter().map(end).collect();
        let longest = ends.iter().map(|end| end.characters).max().unwrap_or(0);
        Ending { ends, longest, suffixes, all: None, inside: None, few: Vec::new() }
    }

    /// Where runs of so many characters are left.
    fn left(&mut self, min: u32, max: Option<u32>) -> Left {
        // Most bounds are far away: all masks of those share this.
        let has_all = min == 0 && max.is_none_or(|max| max >= self.longest);
        if let Some(all) = self.all.as_ref().filter(|_| has_all) {
            return all.clone();
        }
        let counts = min..=max.unwrap_or(u32::MAX);
        let here = || self.ends.iter().filter(|end| counts.contains(&end.characters));
        let crossings = Crossings::of_ranges(&[0], self.suffixes.clone(), here().map(|end| end.range.clone()));
        let left = Left {
            ends: here().map(|end| end.node).collect(),
            crossings: Arc::new(vec![CrossingTokens::known(crossings)]),
            tokens: here().filter_map(|end| end.token).count(),
        };
        if has_all {
            self.all = Some(left.clone());
        }
        left
    }

    /// The tokens that end with the lexeme, after so many characters.
    fn tokens(&self, counts: Range<u32>) -> impl Iterator<Item = u32> {
        self.ends.iter().filter(move |end| counts.contains(&end.characters)).filter_map(|end| end.token)
    }

    fn memory_bytes(&self) -> usize {
        let sets = self.few.iter().flatten().chain(&self.inside).map(|set| set.words().len() * 4);
        self.ends.len() * size_of::<End>() + self.suffixes.memory_bytes() + sets.sum::<usize>()
    }
}

/// Keeps what belongs to so many characters, if they are few.
fn keep_few<T: Clone>(few: &mut Vec<Option<T>>, characters: u32, kept: &T) {
    let place = characters as usize;
    if place < LONG_TOKEN {
        few.resize(few.len().max(place + 1), None);
        few[place] = Some(kept.clone());
    }
}
