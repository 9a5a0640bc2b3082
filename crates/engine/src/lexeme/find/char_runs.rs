//! Runs of characters: how many characters of a class every token of a vocabulary begins with.
//!
//! This does not depend on the lexeme, so one walk through the vocabulary serves every lexeme that continues with
//! characters of the class, such as the body of a JSON string. A string near its maximum length has the mask of an
//! unbounded one without the tokens that are too long; and the rest of `C{8}-...` is searched only from the nodes where
//! a run of eight characters has ended.

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

/// How beginnings of a match can be completed.
#[derive(Clone, Copy)]
pub(crate) struct CharactersLeft {
    /// How many more characters it takes at most to complete any of them.
    pub most: u32,
    /// Whether any of them can be completed by every greater number of characters, too.
    pub is_extensible: bool,
}

/// The nodes at which runs of characters stop before one byte.
pub struct Stops {
    /// The byte.
    pub byte: u8,
    /// Nodes of the vocabulary's trie, each with the number of characters before it.
    pub nodes: Vec<(u32, u32)>,
    /// The number of nodes there and below.
    pub below: usize,
    /// The paths to these nodes; an entry is an index into them. Built when first needed.
    paths: Option<Trie>,
}

impl Stops {
    /// Groups nodes, each with the number of characters before it, by the byte that leads to them.
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

/// What follows characters and one byte of a set, which ends the lexeme.
struct Ending {
    /// By node, ascending.
    ends: Vec<End>,
    /// The greatest number of characters before one of them.
    longest: u32,
    suffixes: Arc<Suffixes>,
    /// The crossing tokens of a run of any number of characters.
    all: Option<Left>,
    /// All tokens contained in the lexeme, and those with at most this many characters.
    inside: Option<Arc<TokenSet>>,
    few: Vec<Option<Arc<TokenSet>>>,
}

/// A node after characters and the byte that ends the lexeme.
struct End {
    /// A node of the vocabulary's trie.
    node: u32,
    /// The number of characters before it.
    characters: u32,
    /// The token that ends there.
    token: Option<u32>,
    /// The crossings of tokens that go on.
    range: Range<u32>,
}

/// The crossing tokens of a run, and where it ends.
#[derive(Clone)]
struct Left {
    ends: Arc<[u32]>,
    crossings: Arc<Vec<CrossingTokens>>,
    /// The number of tokens that end with the lexeme.
    tokens: usize,
}

/// The tokens of a vocabulary as runs of characters of one class.
pub struct ClassRuns {
    /// The character. The address is the identity of the class.
    pub character: Arc<ExprId>,
    /// The tokens that are runs; the last character may be incomplete.
    any: TokenSet,
    num_any: usize,
    counts: Counts,
    /// The tokens with at most this many characters, for small numbers.
    few: Vec<Option<TokenSet>>,
    /// The nodes at which runs stop, by byte.
    stops: Vec<Stops>,
    /// The bytes before which runs were asked to stop.
    known: ByteSet,
    endings: FxHashMap<ByteSet, Ending>,
}

/// The numbers of characters in tokens.
#[derive(Clone)]
enum Counts {
    /// Not known.
    None,
    /// As many as bytes.
    OfBytes(Arc<Lengths>),
    /// Listed one by one; shared by related classes.
    Listed(Arc<Counted>),
}

impl ClassRuns {
    /// Reads the tokens with the automaton of a character. `None` where the end of a character is ambiguous.
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

    /// The same without the data that was computed for single masks.
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

    /// Whether the stops before these bytes are known, and, if `counted`, the numbers of characters.
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

    /// The tokens that are runs of at most `max` characters; all runs where they are not counted.
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
        // Starts from the nearest known set: the empty one, the full one, or one that is stored.
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

    /// The greatest number of characters that begin in a token; `None` where they are not listed.
    pub fn longest(&self) -> Option<u32> {
        match &self.counts {
            Counts::Listed(counted) => Some(counted.longest()),
            Counts::None | Counts::OfBytes(_) => None,
        }
    }

    /// The tokens that are runs of more than `above` and at most `most` characters; empty where they are not listed.
    pub fn beginning(&self, above: u32, most: u32) -> &[u32] {
        match &self.counts {
            Counts::Listed(counted) => counted.between(above, most),
            Counts::None | Counts::OfBytes(_) => &[],
        }
    }

    /// The tokens with more than `max` characters, if they are few and are the only difference between the mask of at
    /// most `max` characters and a byte of `end`, and the mask without the bound. `None` also if no mask with this end
    /// was made yet.
    pub fn few_longer(&self, max: u32, end: ByteSet) -> Option<&[u32]> {
        let longer = self.beginning(max, u32::MAX);
        let few = !longer.is_empty() && longer.len() <= MANY;
        (few && self.endings.get(&end).is_some_and(|ending| max >= ending.longest)).then_some(longer)
    }

    /// The number of characters before a node at which runs stop before a byte.
    pub fn stop_at(&self, byte: u8, node: u32) -> Option<u32> {
        let nodes = &self.stops.iter().find(|stops| stops.byte == byte)?.nodes;
        nodes.binary_search_by_key(&node, |&(node, _)| node).ok().map(|place| nodes[place].1)
    }

    /// The nodes at which runs stop, by the byte there.
    pub fn stops(&self) -> &[Stops] {
        &self.stops
    }

    /// The paths to the nodes where runs stop before a byte; an entry is an index into [`Stops::nodes`].
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

    /// The mask of a run of `min` to `max` characters and one byte of `end`, which begins no character; `known` are the
    /// suffixes after such a byte, if they are stored.
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

    /// The tokens of the mask of a run with a known ending: a shared set, and the tokens of it that are not in the
    /// mask.
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

    /// Approximate bytes of memory held.
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

    /// The crossing tokens and ends of runs of `min` to `max` characters.
    fn left(&mut self, min: u32, max: Option<u32>) -> Left {
        // Most bounds are so far away that the masks share this result.
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

    /// The tokens that end with the lexeme, after a number of characters in a range.
    fn tokens(&self, counts: Range<u32>) -> impl Iterator<Item = u32> {
        self.ends.iter().filter(move |end| counts.contains(&end.characters)).filter_map(|end| end.token)
    }

    fn memory_bytes(&self) -> usize {
        let sets = self.few.iter().flatten().chain(&self.inside).map(|set| set.words().len() * 4);
        self.ends.len() * size_of::<End>() + self.suffixes.memory_bytes() + sets.sum::<usize>()
    }
}

/// Stores the result for a number of characters, if the number is small.
fn keep_few<T: Clone>(few: &mut Vec<Option<T>>, characters: u32, kept: &T) {
    let place = characters as usize;
    if place < LONG_TOKEN {
        few.resize(few.len().max(place + 1), None);
        few[place] = Some(kept.clone());
    }
}
