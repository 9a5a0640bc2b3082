//! Tokens by their **class strings**, the classes of their characters. A pre-tokenizer distinguishes nothing else.
//!
//! Vocabularies have far fewer class strings than tokens, so the tokens that fit a cursor are found by a walk over
//! class strings.

use rustc_hash::FxHashMap;

use crate::canonical::cursor::state::length_of;
use crate::canonical::cursor::table::{CursorId, Cursors};
use crate::canonical::encoder::facts::Encoder;
use crate::vocabulary::token_set::TokenSet;

/// The class strings of a vocabulary as a tree in depth-first order.
#[derive(Default)]
pub(crate) struct ClassStrings {
    nodes: Vec<ClassNode>,
    /// The tokens in the order of their class strings; those of a node come before those below it.
    tokens: Vec<u32>,
    /// Tokens that are not valid text, unless they complete a character that began before them.
    ill_formed: Vec<u32>,
}

struct ClassNode {
    character: char,
    depth: u32,
    /// The number of nodes here and below.
    size: u32,
    /// The range of its tokens and those below it.
    first: u32,
    end: u32,
}

impl ClassStrings {
    pub fn new(encoding: &Encoder) -> ClassStrings {
        let pretokenizer = encoding.pretokenizer();
        let mut strings = ClassStrings::default();
        // By parent node and class: the number of the node. And for each number, a character of the class, the tokens,
        // and the children.
        let mut numbers: FxHashMap<(u32, u8), u32> = FxHashMap::default();
        let mut found: Vec<(char, Vec<u32>, Vec<u32>)> = vec![('\0', Vec::new(), Vec::new())];
        for token in encoding.tokens().spelled().iter() {
            let bytes = encoding.tokens().token_bytes(token).unwrap_or_default();
            let Some(text) = whole_characters(bytes) else {
                strings.ill_formed.push(token);
                continue;
            };
            let mut node = 0;
            for character in text.chars() {
                node = *numbers.entry((node, pretokenizer.class(character))).or_insert_with(|| {
                    let number = found.len() as u32;
                    found[node as usize].1.push(number);
                    found.push((character, Vec::new(), Vec::new()));
                    number
                });
            }
            found[node as usize].2.push(token);
        }
        let mut work: Vec<(u32, u32, Option<usize>)> = vec![(0, 0, None)];
        while let Some((number, depth, done)) = work.pop() {
            if let Some(node) = done {
                strings.nodes[node].size = (strings.nodes.len() - node) as u32;
                strings.nodes[node].end = strings.tokens.len() as u32;
                continue;
            }
            let (character, below, tokens) = &found[number as usize];
            work.push((number, depth, Some(strings.nodes.len())));
            let first = strings.tokens.len() as u32;
            strings.nodes.push(ClassNode { character: *character, depth, size: 0, first, end: 0 });
            strings.tokens.extend(tokens);
            work.extend(below.iter().rev().map(|&below| (below, depth + 1, None)));
        }
        strings
    }

    /// Removes the tokens from a set that cannot be read from a cursor; the cursor must not be within a character.
    pub fn keep_readable(&self, encoding: &Encoder, cursors: &mut Cursors, start: CursorId, set: &mut TokenSet) {
        self.ill_formed.iter().for_each(|&token| set.remove(token));
        let mut path = vec![start];
        let mut node = 1;
        while let Some(here) = self.nodes.get(node) {
            path.truncate(here.depth as usize);
            let above = *path.last().expect("the path begins with the start");
            match cursors.read_whole(encoding, above, here.character) {
                Some(next) => {
                    path.push(next);
                    node += 1;
                }
                None => {
                    let tokens = &self.tokens[here.first as usize..here.end as usize];
                    tokens.iter().for_each(|&token| set.remove(token));
                    node += here.size as usize;
                }
            }
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.len() * size_of::<ClassNode>() + (self.tokens.len() + self.ill_formed.len()) * 4
    }
}

/// The whole characters at the beginning of some bytes, as [`Cursor::read`](crate::canonical::Cursor::read) reads them;
/// `None` where it refuses the rest.
fn whole_characters(bytes: &[u8]) -> Option<&str> {
    let mut end = 0;
    while let Some(&first) = bytes.get(end) {
        let after = end + length_of(first)?;
        let Some(character) = bytes.get(end..after) else { break };
        std::str::from_utf8(character).ok()?;
        end = after;
    }
    std::str::from_utf8(&bytes[..end]).ok()
}
