//! The tokens that complete a name which an additional key must not have.
//!
//! After a complete name these are the tokens that begin with a quote: there are hundreds, and most of the tokens that
//! cross the end of the key are asked about. They are the same after every name, so the last ones are cached: listing
//! them took an eighth of a mask.

use std::convert::Infallible;

use stencilm_grammar::MembersId;
use stencilm_regex::{ByteSet, StateId};
use stencilm_support::Extension;

use crate::error::EngineError;
use crate::machine::expansion::{Expansion, IN_WHITESPACE};
use crate::machine::property_trie::Names;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, NIL};
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::Reader;

/// The tokens below the nodes of a vocabulary's trie at which such a name ends.
#[derive(Default)]
pub(crate) struct ReservedTokens {
    nodes: Vec<u32>,
    tokens: Vec<u32>,
    /// The same tokens as a set; it may have no words if there are none.
    set: Vec<u32>,
}

impl ReservedTokens {
    /// The nodes at which such a name ends.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// The tokens that end there or go on.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Whether a token is one of them.
    pub fn contains(&self, token: u32) -> bool {
        !self.tokens.is_empty() && token_set::get(&self.set, token)
    }

    /// The same value, filled with the tokens below other nodes.
    fn below(mut self, vocabulary: &Tokens, nodes: &[u32]) -> ReservedTokens {
        if self.nodes == nodes {
            return self;
        }
        self.tokens.drain(..).for_each(|token| token_set::clear(&mut self.set, token));
        self.set.resize(vocabulary.mask_words(), 0);
        let trie = vocabulary.trie();
        for &node in nodes {
            // About half of the nodes end a token.
            self.tokens.reserve(trie.size(node as usize) / 2);
            self.tokens.extend(trie.entries_below(node as usize));
        }
        self.tokens.iter().for_each(|&token| token_set::set(&mut self.set, token));
        self.nodes.clear();
        self.nodes.extend(nodes);
        self
    }
}

/// The result for the last mask.
#[derive(Default)]
pub(crate) struct ReservedScratch {
    last: ReservedTokens,
    nodes: Vec<u32>,
}

impl Extension for ReservedScratch {}

impl ReservedScratch {
    /// The tokens below some nodes. The caller gives them back.
    fn take(&mut self, vocabulary: &Tokens, nodes: &[u32]) -> ReservedTokens {
        std::mem::take(&mut self.last).below(vocabulary, nodes)
    }

    /// Takes them back for the next mask.
    pub fn keep(&mut self, reserved: ReservedTokens) {
        self.last = reserved;
    }
}

impl Run<'_> {
    /// The tokens that pass through the end of a plainly spelled reserved name, while a thread reads an additional key.
    /// If the key is free text, all of them are wrong. The caller gives them back.
    pub(crate) fn tokens_of_reserved_names(
        &mut self,
        vocabulary: &Tokens,
        thread: Entry,
        expansion: &Expansion,
    ) -> Result<ReservedTokens, EngineError> {
        let mut nodes = std::mem::take(&mut self.lexeme_cache.extensions.get::<ReservedScratch>().nodes);
        nodes.clear();
        if let Some(members) = expansion.members.filter(|_| expansion.additional && expansion.has_reserved) {
            self.ends_of_reserved_names(vocabulary, thread, expansion, members, &mut nodes)?;
        }
        let scratch = self.lexeme_cache.extensions.get::<ReservedScratch>();
        let reserved = match nodes.is_empty() {
            true => ReservedTokens::default(),
            false => scratch.take(vocabulary, &nodes),
        };
        scratch.nodes = nodes;
        Ok(reserved)
    }

    /// The nodes of the vocabulary's trie at which a thread has read such a name.
    fn ends_of_reserved_names(
        &mut self,
        vocabulary: &Tokens,
        thread: Entry,
        expansion: &Expansion,
        members: MembersId,
        ends: &mut Vec<u32>,
    ) -> Result<(), EngineError> {
        let names = self.machine.names(members);
        let trie = vocabulary.trie();
        // The parts of the trie to walk, each with a state of the names.
        let mut parts: Vec<((usize, usize), usize, u32)> = Vec::new();
        let whitespace = expansion.whitespace.filter(|_| thread.state & IN_WHITESPACE != 0);
        match whitespace {
            Some(whitespace) => {
                let runs = self.lexeme_cache.whitespace_runs(vocabulary, whitespace.set);
                for byte in names.next_bytes(StateId::START).iter() {
                    for &(run, node) in runs.after(byte, expansion.whitespace_left(thread.state)) {
                        let nodes = (node as usize, node as usize + trie.size(node as usize));
                        parts.push((nodes, run as usize, StateId::START.0));
                    }
                }
            }
            None => {
                let memory = self.stacks.members(thread.register);
                let state = if memory.text == NIL { StateId::START.0 } else { memory.name };
                let first = names.next_bytes(StateId(state));
                parts.extend(trie.roots(first).map(|nodes| (nodes, 0, state)));
            }
        }
        let path = &mut self.scratch.path;
        let mut reader = ReservedNames { names: &names, class: expansion.class, ends };
        for (nodes, depth, start) in parts {
            let Ok(()) = trie.walk_few(nodes, depth, start, path, &mut reader, |_| {});
        }
        Ok(())
    }
}

/// Reads names, and notes the ends of reserved ones.
struct ReservedNames<'a> {
    names: &'a Names,
    class: u32,
    ends: &'a mut Vec<u32>,
}

impl Reader for ReservedNames<'_> {
    type Error = Infallible;

    fn live_bytes(&mut self, state: u32) -> Result<ByteSet, Infallible> {
        Ok(self.names.next_bytes(StateId(state)))
    }

    fn step(&mut self, state: u32, byte: u8, node: u32, _: bool) -> Result<Option<u32>, Infallible> {
        let next = self.names.next(StateId(state), byte);
        if next == StateId::DEAD {
            return Ok(None);
        }
        if self.names.is_reserved(next, self.class) {
            self.ends.push(node);
            return Ok(None);
        }
        Ok(Some(next.0))
    }
}
