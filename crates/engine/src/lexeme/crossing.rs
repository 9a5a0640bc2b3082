//! Crossings: the suffixes with which the tokens of a vocabulary go on after a lexeme.
//!
//! A **crossing** is a position within a token, given as a node of the trie, together with the token. Its suffix is the
//! rest of the token after that position. Nearly all lexemes that many tokens cross end with the same byte, the quote
//! of a JSON string. So the crossings after a byte are sorted once for a vocabulary, and the crossing tokens of a
//! lexeme mask are a subset of them.
//!
//! Other lexemes, such as a number, can end nearly anywhere, but what follows them begins with few bytes, and few
//! tokens go on with one of these, often none. So for such lexemes only the positions are stored, until the crossings
//! are needed.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use stencilm_regex::ByteSet;

use crate::vocabulary::json_text;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::Trie;

/// The bytes that may follow a JSON value. A number ends at a thousand nodes of a trie, but few tokens go on there with
/// one of these.
const AFTER_VALUES: &[u8] = b",:]} \t\r\n";

/// The crossings at some nodes of a vocabulary's trie, grouped by suffix.
pub struct Suffixes {
    /// The distinct suffixes. The entry of a suffix is its number.
    trie: Trie,
    /// For each suffix, its first crossing; with one more entry for the end.
    starts: Vec<u32>,
    /// The crossings in the order of their suffixes, each with its token.
    by_suffix: Vec<(u32, u32)>,
    /// The nodes, ascending, each with its first crossing. The crossings of a node have consecutive numbers.
    nodes: Vec<(u32, u32)>,
    /// The nodes whose path contains a backslash, with the decoded text.
    escaped: Vec<EscapedEnd>,
}

/// A node, and the text that a JSON string gains on the path to it, decoded.
pub type EscapedEnd = (u32, Arc<[u8]>);

impl Suffixes {
    /// Collects the crossings at nodes, which must be ascending.
    pub fn after(vocabulary: &Tokens, nodes: impl Iterator<Item = u32>) -> Suffixes {
        let trie = vocabulary.trie();
        let spelled = |token| vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
        let mut sorted: Vec<(&[u8], u32, u32)> = Vec::new();
        let (mut starting, mut escaped) = (Vec::new(), Vec::new());
        for node in nodes {
            starting.push((node, sorted.len() as u32));
            let depth = trie.depth(node as usize);
            let mut below = trie.entries_below(node as usize);
            escaped.extend(self::escaped(vocabulary, node));
            if trie.entry_at(node as usize).is_some() {
                below.next();
            }
            for token in below {
                sorted.push((&spelled(token)[depth..], token, sorted.len() as u32));
            }
        }
        Suffixes::grouped(sorted, starting, escaped)
    }

    /// Crossings at no known nodes: suffixes, each with a token.
    pub fn of(crossings: Vec<(&[u8], u32)>) -> Suffixes {
        let numbered = crossings.into_iter().zip(0..).map(|((suffix, token), crossing)| (suffix, token, crossing));
        Suffixes::grouped(numbered.collect(), Vec::new(), Vec::new())
    }

    /// Groups crossings, given as a suffix, a token, and a number that counts up.
    fn grouped(crossings: Vec<(&[u8], u32, u32)>, nodes: Vec<(u32, u32)>, escaped: Vec<EscapedEnd>) -> Suffixes {
        // Most suffixes differ in their first bytes, which are compared as one number.
        let crossings = crossings.into_iter().map(|(suffix, token, crossing)| {
            let mut first = [0; 8];
            let length = suffix.len().min(8);
            first[..length].copy_from_slice(&suffix[..length]);
            (u64::from_be_bytes(first), suffix, token, crossing)
        });
        let mut sorted: Vec<(u64, &[u8], u32, u32)> = crossings.collect();
        // The suffixes after each node are sorted already, so a merge sort has little to do.
        sorted.sort();
        let (mut strings, mut starts) = (Vec::new(), Vec::new());
        for (index, &(_, suffix, ..)) in sorted.iter().enumerate() {
            if strings.last() != Some(&suffix) {
                strings.push(suffix);
                starts.push(index as u32);
            }
        }
        starts.push(sorted.len() as u32);
        let entries = strings.iter().enumerate().map(|(entry, &suffix)| (suffix, entry as u32));
        Suffixes {
            trie: Trie::from_sorted(entries),
            starts,
            by_suffix: sorted.into_iter().map(|(.., token, crossing)| (crossing, token)).collect(),
            nodes,
            escaped,
        }
    }

    /// The crossings at all nodes that a byte leads to; `None` where there are more than `most`.
    pub fn after_byte(vocabulary: &Tokens, byte: u8, most: usize) -> Option<Suffixes> {
        let trie = vocabulary.trie();
        let nodes: Vec<u32> = (0..trie.len()).filter(|&node| trie.byte(node) == byte).map(|node| node as u32).collect();
        let below: usize = nodes.iter().map(|&node| trie.size(node as usize) - 1).sum();
        (below <= 2 * most).then(|| Suffixes::after(vocabulary, nodes.into_iter()))
    }

    /// The distinct suffixes. The entry of a suffix is its number.
    pub fn trie(&self) -> &Trie {
        &self.trie
    }

    /// The numbers of the crossings at a node.
    pub fn of_node(&self, node: u32) -> Range<u32> {
        let Ok(place) = self.nodes.binary_search_by_key(&node, |&(node, _)| node) else { return 0..0 };
        let end = self.nodes.get(place + 1).map_or(self.by_suffix.len() as u32, |&(_, crossing)| crossing);
        self.nodes[place].1..end
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let numbers = self.starts.len() * 4 + (self.by_suffix.len() + self.nodes.len()) * 8;
        self.trie.memory_bytes() + numbers + self.escaped.len() * 48
    }
}

/// A node with the decoded text on its path; `None` where the path has no backslash.
fn escaped(vocabulary: &Tokens, node: u32) -> Option<EscapedEnd> {
    let trie = vocabulary.trie();
    let example = trie.entries_below(node as usize).next().expect("every node leads to a token");
    let spelled = vocabulary.token_bytes(example).expect("a token in the trie spells bytes");
    let before = &spelled[..trie.depth(node as usize)];
    before.contains(&b'\\').then(|| (node, json_text::value_of(&[b"\"", before].concat()).into()))
}

/// The crossing tokens of a lexeme mask after the same residuals have matched. At first only the nodes are stored; the
/// crossings are computed when they are needed.
#[derive(Clone)]
pub struct CrossingTokens {
    /// The residuals that matched, as positions in the sorted list of distinct residuals of the state.
    pub residuals: Box<[u32]>,
    /// The nodes at which they matched, ascending; empty if the crossings were given.
    nodes: Box<[u32]>,
    /// The bytes with which tokens go on after these nodes.
    first: ByteSet,
    /// The children of these nodes by the bytes in [`AFTER_VALUES`].
    after_values: Box<[u32]>,
    crossings: OnceLock<Crossings>,
}

impl CrossingTokens {
    /// The crossing tokens through these nodes, which must be ascending.
    pub fn through(vocabulary: &Tokens, residuals: &[u32], nodes: impl Iterator<Item = u32>) -> CrossingTokens {
        let trie = vocabulary.trie();
        let nodes: Box<[u32]> = nodes.collect();
        let (mut first, mut after_values) = (ByteSet::EMPTY, Vec::new());
        for child in nodes.iter().flat_map(|&node| trie.child_nodes(node as usize)) {
            first.insert(trie.byte(child));
            if AFTER_VALUES.contains(&trie.byte(child)) {
                after_values.push(child as u32);
            }
        }
        let (after_values, crossings) = (after_values.into(), OnceLock::new());
        CrossingTokens { residuals: residuals.into(), nodes, first, after_values, crossings }
    }

    /// Crossing tokens with given crossings.
    pub fn known(crossings: Crossings) -> CrossingTokens {
        CrossingTokens {
            residuals: crossings.residuals.clone(),
            nodes: Box::default(),
            first: ByteSet::ALL,
            after_values: Box::default(),
            crossings: OnceLock::from(crossings),
        }
    }

    /// The crossing tokens without those through some nodes, which must be sorted.
    pub fn without(&self, vocabulary: &Tokens, nodes: &[u32]) -> CrossingTokens {
        match self.crossings.get() {
            Some(crossings) => CrossingTokens::known(crossings.without(nodes)),
            None => {
                let kept = self.nodes.iter().copied().filter(|node| nodes.binary_search(node).is_err());
                CrossingTokens::through(vocabulary, &self.residuals, kept)
            }
        }
    }

    /// Whether no token crosses.
    pub fn is_empty(&self) -> bool {
        self.crossings.get().map_or(self.first.is_empty(), Crossings::is_empty)
    }

    /// The children through which crossing tokens go on with one of these bytes. `None` where there are more than
    /// `most`, or where the crossings are already computed.
    pub fn next_nodes(&self, trie: &Trie, bytes: ByteSet, most: usize) -> Option<Vec<u32>> {
        if self.crossings.get().is_some() {
            return None;
        }
        let bytes = bytes.intersect(&self.first);
        if bytes.iter().all(|byte| AFTER_VALUES.contains(&byte)) {
            let next = self.after_values.iter().filter(|&&child| bytes.contains(trie.byte(child as usize)));
            return Some(next.copied().collect()).filter(|next: &Vec<u32>| next.len() <= most);
        }
        let next = self.nodes.iter().flat_map(|&node| trie.child_nodes(node as usize));
        let next = next.filter(|&child| bytes.contains(trie.byte(child))).map(|child| child as u32);
        let found: Vec<u32> = next.take(most + 1).collect();
        (found.len() <= most).then_some(found)
    }

    /// The crossings, computed at the first call.
    pub fn crossings(&self, vocabulary: &Tokens) -> &Crossings {
        self.crossings.get_or_init(|| {
            let suffixes = Suffixes::after(vocabulary, self.nodes.iter().copied());
            Crossings::through_all(&self.residuals, suffixes)
        })
    }

    /// Those of the ends of a mask, which must be sorted, whose path contains a backslash.
    pub fn escaped(&self, vocabulary: &Tokens, ends: &[u32]) -> Vec<EscapedEnd> {
        let here = |node: &u32| ends.binary_search(node).is_ok();
        match self.crossings.get() {
            Some(crossings) => crossings.suffixes.escaped.iter().filter(|(node, _)| here(node)).cloned().collect(),
            None => self.nodes.iter().filter(|node| here(node)).filter_map(|&node| escaped(vocabulary, node)).collect(),
        }
    }

    /// Approximate bytes of memory held, without shared data.
    pub fn memory_bytes(&self) -> usize {
        size_of::<CrossingTokens>()
            + (self.nodes.len() + self.after_values.len()) * 4
            + self.crossings.get().map_or(0, Crossings::memory_bytes)
    }
}

/// The tokens that go on after the lexeme when the same residuals have matched.
#[derive(Clone)]
pub struct Crossings {
    /// The residuals that matched, as positions in the sorted list of distinct residuals of the state.
    pub residuals: Box<[u32]>,
    suffixes: Arc<Suffixes>,
    /// The crossings that the lexeme has.
    set: TokenSet,
    count: usize,
    /// Whether other masks share the suffixes.
    shared: bool,
}

impl Crossings {
    /// All crossings of some suffixes.
    pub fn through_all(residuals: &[u32], suffixes: Suffixes) -> Crossings {
        let count = suffixes.by_suffix.len();
        let mut set = TokenSet::empty(count);
        (0..count as u32).for_each(|crossing| set.insert(crossing));
        Crossings { residuals: residuals.into(), suffixes: Arc::new(suffixes), set, count, shared: false }
    }

    /// The crossings at some of the nodes of shared suffixes.
    pub fn through(residuals: &[u32], suffixes: Arc<Suffixes>, nodes: impl Iterator<Item = u32>) -> Crossings {
        let suffixes_of = suffixes.clone();
        Crossings::of_ranges(residuals, suffixes, nodes.map(|node| suffixes_of.of_node(node)))
    }

    /// Some ranges of the crossings of shared suffixes.
    pub fn of_ranges(
        residuals: &[u32],
        suffixes: Arc<Suffixes>,
        ranges: impl Iterator<Item = Range<u32>>,
    ) -> Crossings {
        let mut set = TokenSet::empty(suffixes.by_suffix.len());
        let mut count = 0;
        for through in ranges {
            count += through.len();
            through.for_each(|crossing| set.insert(crossing));
        }
        Crossings { residuals: residuals.into(), suffixes, set, count, shared: true }
    }

    /// The crossings without those at some nodes.
    pub fn without(&self, nodes: &[u32]) -> Crossings {
        let mut crossings = Crossings { shared: true, ..self.clone() };
        for crossing in nodes.iter().flat_map(|&node| self.suffixes.of_node(node)) {
            crossings.count -= usize::from(crossings.set.contains(crossing));
            crossings.set.remove(crossing);
        }
        crossings
    }

    /// Whether no token crosses.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The suffixes of the crossing tokens; there may be others among them.
    pub fn suffixes(&self) -> &Trie {
        &self.suffixes.trie
    }

    /// The suffixes with all their data.
    pub fn shared_suffixes(&self) -> &Arc<Suffixes> {
        &self.suffixes
    }

    /// The number of suffixes, which are numbered from 0.
    pub fn num_suffixes(&self) -> usize {
        self.suffixes.starts.len() - 1
    }

    /// The nodes at which tokens cross; there may be others among them.
    pub fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.suffixes.nodes.iter().map(|&(node, _)| node)
    }

    /// All crossings with a suffix, including those of other lexemes that end with the same byte.
    pub fn with_suffix(&self, suffix: u32) -> &[(u32, u32)] {
        let (first, end) = (self.suffixes.starts[suffix as usize], self.suffixes.starts[suffix as usize + 1]);
        &self.suffixes.by_suffix[first as usize..end as usize]
    }

    /// Whether this lexeme has a crossing.
    pub fn has(&self, crossing: u32) -> bool {
        self.set.contains(crossing)
    }

    /// The crossing tokens with a suffix.
    pub fn tokens(&self, suffix: u32) -> impl Iterator<Item = u32> + '_ {
        self.with_suffix(suffix).iter().filter(|&&(crossing, _)| self.has(crossing)).map(|&(_, token)| token)
    }

    /// Approximate bytes of memory held, without shared data.
    pub fn memory_bytes(&self) -> usize {
        let suffixes = if self.shared { 0 } else { self.suffixes.memory_bytes() };
        suffixes + self.set.words().len() * 4 + size_of::<Crossings>()
    }
}
