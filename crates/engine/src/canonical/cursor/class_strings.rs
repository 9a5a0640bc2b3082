//! Tokens by their **class strings**: the classes of their characters, which are all that a pre-tokenizer sees of them.
//!
//! Vocabularies have far fewer class strings than tokens, so which tokens fit a cursor is found by a walk of these.

use rustc_hash::FxHashMap;

use crate::canonical::cursor::state::length_of;
use crate::canonical::cursor::table::{CursorId, Cursors};
use crate::canonical::encoder::facts::Encoder;
use crate::vocabulary::token_set::TokenSet;

/// The class strings of a vocabulary as a tree in depth-first order.
#[derive(Default)]
pub(crate) struct ClassStrings {
    nodes: Vec<ClassNode>,
    /// The tokens in the order of their class strings, those of a node before those below it.
    tokens: Vec<u32>,
    /// Tokens that are no text, however they come, unless they go on with a character that has begun.
    ill_formed: Vec<u32>,
}

struct ClassNode {
    /// Some character of the class.
    character: char,
    depth: u32,
    /// How many nodes there are here and below.
    size: u32,
    /// Where its tokens and those below it begin, and where they end.
    first: u32,
    end: u32,
}

impl ClassStrings {
    pub fn new(encoding: &Encoder) -> ClassStrings {
        let pretokenizer = encoding.pretokenizer();
        let mut strings = ClassStrings::default();
        // By node above and class: the nodes, numbered as they come, each with its character and tokens.
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

    /// Takes out of a set the tokens that cannot be read from a cursor, which is not within a character.
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

/// The whole characters that some bytes begin with, as [`Cursor::read`](crate::canonical::Cursor::read) takes them;
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
