//! Tokens by their **category strings**, the categories of their characters in order: a trie of some thousand nodes,
//! where that of the tokens has some hundred thousand.
//!
//! A walk leads an automaton through the category strings, one category at a time, as long as all characters of the
//! category lead to the same state. Where they do not, the walk continues byte by byte from the nodes of the tokens'
//! trie with this category string. Tokens that are not whole characters have no category string; they are few, and
//! walked separately.

use crate::vocabulary::categories::{CATEGORIES, HIGH, category_beyond_ascii, category_of};
use crate::vocabulary::trie::Trie;

/// A node of the trie of category strings.
#[derive(Clone, Copy)]
pub(crate) struct CategoryNode {
    /// The category of the character that leads here, or [`HIGH`] before one beyond ASCII.
    pub category: u8,
    /// The number of steps that lead here; 1 for a first node.
    pub depth: u32,
    /// The number of nodes here and below.
    pub size: u32,
    /// The categories of this node and the nodes below, as bits.
    pub below: u64,
    /// Where its tokens begin in the list of tokens; they come before those of the nodes below.
    tokens: u32,
    /// Where its nodes of the tokens' trie begin in the list of nodes.
    places: u32,
}

/// A node of the tokens' trie on the path to a token without a category string.
#[derive(Clone, Copy)]
pub(crate) struct NonUtf8Node {
    /// The node.
    pub node: u32,
    /// Where the list goes on after the nodes below this one.
    pub end: u32,
    /// Whether the path to it is whole characters, so that it has a category string itself.
    pub has_category_string: bool,
}

/// The trie of category strings; see the module.
#[derive(Default)]
pub(crate) struct CategoryTrie {
    /// In depth-first order, with a sentinel at the end.
    nodes: Vec<CategoryNode>,
    tokens: Vec<u32>,
    places: Vec<u32>,
    non_utf8: Vec<NonUtf8Node>,
    /// The tokens without category strings, ascending.
    without: Vec<u32>,
    max_depth: usize,
}

/// Where a node of the tokens' trie stands, while the category strings are collected.
#[derive(Clone, Copy)]
enum At {
    /// After whole characters, at this node of the category strings.
    Characters(u32),
    /// Within a character: the node of its [`HIGH`], the bytes that it needs, and its bits so far.
    Within { high: u32, rest: Rest, so_far: u32 },
    /// After bytes that are not characters.
    NonUtf8Node,
}

/// A node of the category strings under construction.
#[derive(Clone)]
struct Growing {
    children: [u32; CATEGORIES],
    tokens: Vec<u32>,
    places: Vec<u32>,
}

/// No child yet.
const NONE: u32 = u32::MAX;

impl Growing {
    const NEW: Growing = Growing { children: [NONE; CATEGORIES], tokens: Vec::new(), places: Vec::new() };
}

fn child(growing: &mut Vec<Growing>, above: u32, category: u8) -> u32 {
    let known = growing[above as usize].children[usize::from(category)];
    if known != NONE {
        return known;
    }
    let new = growing.len() as u32;
    growing[above as usize].children[usize::from(category)] = new;
    growing.push(Growing::NEW);
    new
}

impl CategoryTrie {
    /// Builds the category strings of the tokens in a trie.
    pub fn new(trie: &Trie) -> CategoryTrie {
        let mut growing = vec![Growing::NEW];
        let (mut non_utf8, mut without): (Vec<NonUtf8Node>, Vec<u32>) = Default::default();
        // By depth: the node of the tokens' trie, where it stands, and whether it is in the list of nodes without
        // category strings.
        let mut path: Vec<(u32, At, bool)> = vec![(NONE, At::Characters(0), true)];
        for node in 0..trie.len() {
            let (byte, depth) = (trie.byte(node), trie.depth(node));
            path.truncate(depth);
            let (_, above, _) = *path.last().expect("the path begins with the root");
            let at = match above {
                At::Characters(string) if byte.is_ascii() => {
                    At::Characters(child(&mut growing, string, category_of(byte)))
                }
                At::Characters(string) => {
                    let high = child(&mut growing, string, HIGH);
                    growing[high as usize].places.push(node as u32);
                    match Rest::after_first(byte) {
                        Some(rest) => At::Within { high, rest, so_far: u32::from(byte & rest.mask_of_first()) },
                        None => At::NonUtf8Node,
                    }
                }
                At::Within { high, rest, so_far } if rest.bytes().contains(&byte) => {
                    let so_far = so_far << 6 | u32::from(byte & 0x3F);
                    match rest.after() {
                        Some(rest) => At::Within { high, rest, so_far },
                        None => At::Characters(child(&mut growing, high, category_beyond_ascii(so_far))),
                    }
                }
                At::Within { .. } | At::NonUtf8Node => At::NonUtf8Node,
            };
            if let At::Characters(string) = at {
                growing[string as usize].places.push(node as u32);
            }
            path.push((node as u32, at, false));
            let Some(token) = trie.entry_at(node) else { continue };
            if let At::Characters(string) = at {
                growing[string as usize].tokens.push(token);
                continue;
            }
            without.push(token);
            for (node, at, listed) in path.iter_mut().filter(|(.., listed)| !listed) {
                *listed = true;
                non_utf8.push(NonUtf8Node {
                    node: *node,
                    end: 0,
                    has_category_string: matches!(at, At::Characters(_)),
                });
            }
        }
        let mut open: Vec<usize> = Vec::new();
        for index in 0..=non_utf8.len() {
            let depth = non_utf8.get(index).map_or(0, |non_utf8| trie.depth(non_utf8.node as usize));
            while let Some(&last) = open.last()
                && trie.depth(non_utf8[last].node as usize) >= depth
            {
                non_utf8[last].end = index as u32;
                open.pop();
            }
            open.push(index);
        }
        without.sort_unstable();
        CategoryTrie { non_utf8, without, ..CategoryTrie::in_order(growing) }
    }

    /// Puts the nodes in depth-first order, without the root.
    fn in_order(growing: Vec<Growing>) -> CategoryTrie {
        let mut ordered = CategoryTrie::default();
        let children = |node: u32, depth: u32| {
            let children = growing[node as usize].children.iter().enumerate().rev();
            children.filter(|&(_, &child)| child != NONE).map(move |(category, &child)| (child, category as u8, depth))
        };
        let mut work: Vec<(u32, u8, u32)> = children(0, 1).collect();
        while let Some((node, category, depth)) = work.pop() {
            let (tokens, places) = (ordered.tokens.len() as u32, ordered.places.len() as u32);
            ordered.nodes.push(CategoryNode { category, depth, size: 1, below: 0, tokens, places });
            ordered.tokens.extend(&growing[node as usize].tokens);
            ordered.places.extend(&growing[node as usize].places);
            ordered.max_depth = ordered.max_depth.max(depth as usize);
            work.extend(children(node, depth + 1));
        }
        // From the last node on, so that everything below a node is known when the node is reached.
        let mut above: Vec<(u32, u64)> = vec![(0, 0); ordered.max_depth + 2];
        for node in ordered.nodes.iter_mut().rev() {
            let depth = node.depth as usize;
            let (size, below) = std::mem::take(&mut above[depth + 1]);
            (node.size, node.below) = (size + 1, below);
            above[depth].0 += node.size;
            above[depth].1 |= below | 1 << node.category;
        }
        let (tokens, places) = (ordered.tokens.len() as u32, ordered.places.len() as u32);
        ordered.nodes.push(CategoryNode { category: 0, depth: 0, size: 0, below: 0, tokens, places });
        ordered.nodes.shrink_to_fit();
        ordered.tokens.shrink_to_fit();
        ordered.places.shrink_to_fit();
        ordered
    }

    /// The number of nodes, without the root.
    pub fn len(&self) -> usize {
        self.nodes.len().saturating_sub(1)
    }

    /// The greatest number of steps to a node.
    pub fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// The node with this index; the sentinel after the last one.
    #[inline]
    pub fn node(&self, index: usize) -> CategoryNode {
        self.nodes[index]
    }

    /// The tokens of a range of nodes.
    #[inline]
    pub fn tokens(&self, first: usize, end: usize) -> &[u32] {
        &self.tokens[self.nodes[first].tokens as usize..self.nodes[end].tokens as usize]
    }

    /// The index of a node's first token in the list of all tokens.
    #[inline]
    pub fn first_token(&self, index: usize) -> usize {
        self.nodes[index].tokens as usize
    }

    /// All tokens with category strings, in the order of these.
    pub fn all_tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The nodes of the tokens' trie with a category string; for [`HIGH`] the nodes after the first byte of a
    /// character.
    pub fn places(&self, index: usize) -> &[u32] {
        &self.places[self.nodes[index].places as usize..self.nodes[index + 1].places as usize]
    }

    /// The nodes of the tokens' trie on the paths to tokens that are not whole characters, in depth-first order.
    pub fn non_utf8(&self) -> &[NonUtf8Node] {
        &self.non_utf8
    }

    /// Whether a token is not made of whole characters.
    pub fn is_non_utf8(&self, token: u32) -> bool {
        self.without.binary_search(&token).is_ok()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.len() * size_of::<CategoryNode>()
            + (self.tokens.len() + self.places.len() + self.without.len()) * 4
            + self.non_utf8.len() * size_of::<NonUtf8Node>()
    }
}

/// The rest of a character of several bytes: a byte in a range, then `more` minus one bytes from 80 to BF.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Rest {
    low: u8,
    high: u8,
    more: u8,
}

impl Rest {
    /// The rest after the first byte of a character; `None` where nothing follows, or where the byte is no first byte
    /// (Unicode 16, table 3-7).
    fn after_first(byte: u8) -> Option<Rest> {
        let (low, high, more) = match byte {
            0xC2..=0xDF => (0x80, 0xBF, 0),
            0xE0 => (0xA0, 0xBF, 1),
            0xED => (0x80, 0x9F, 1),
            0xE1..=0xEF => (0x80, 0xBF, 1),
            0xF0 => (0x90, 0xBF, 2),
            0xF1..=0xF3 => (0x80, 0xBF, 2),
            0xF4 => (0x80, 0x8F, 2),
            _ => return None,
        };
        Some(Rest { low, high, more })
    }

    fn bytes(self) -> std::ops::RangeInclusive<u8> {
        self.low..=self.high
    }

    fn after(self) -> Option<Rest> {
        (self.more > 0).then(|| Rest { low: 0x80, high: 0xBF, more: self.more - 1 })
    }

    /// The bits of the first byte that belong to the character.
    fn mask_of_first(self) -> u8 {
        0x1F >> self.more
    }
}
