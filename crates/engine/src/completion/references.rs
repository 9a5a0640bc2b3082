//! The cost of references to declared names: a name that exists, or one that is being written.
//!
//! A reference matches the names of its own text, so its cost is no property of the grammar. Two bounds are read off
//! the stacks: the cost of the cheapest name, and the cost of ending a reference that has begun, which may be to the
//! longest name. They are rounded up, so that few different values occur while a text grows.

use rustc_hash::FxHashSet;
use stencilm_grammar::{Grammar, Mark, Node, NodeId};
use stencilm_regex::ExprId;
use stencilm_support::FEW;

use crate::completion::token_counts::{NEVER, TokenCounts, count_of};
use crate::completion::worst_cases::WorstCases;
use crate::error::EngineError;
use crate::machine::layout::FrameId;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, SetId, UNKNOWN_NAMES, UNKNOWN_TEXT};
use crate::vocabulary::tokens::Tokens;

/// The greatest number of bytes that complete an escaped character of a JSON string: two escapes without the first
/// backslash.
const ESCAPED: u64 = 11;

/// Upper bounds on the cost of references in tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ReferenceCosts {
    /// A whole reference, to the cheapest name.
    pub whole: u64,
    /// The rest of a reference that has begun.
    pub rest: u64,
}

impl ReferenceCosts {
    /// The same, rounded up to one of few values.
    fn rounded(self) -> ReferenceCosts {
        let up = |cost: u64| match cost {
            0..=4 | NEVER => cost,
            // The next power of two, or three quarters of it.
            _ => match cost.checked_next_power_of_two() {
                Some(power) if cost <= power / 4 * 3 => power / 4 * 3,
                Some(power) => power,
                None => NEVER,
            },
        };
        ReferenceCosts { whole: up(self.whole), rest: up(self.rest) }
    }
}

/// How much one token may add to the name of a declaration.
pub(crate) struct Declarations {
    /// The number of tokens of a shortest name.
    least: u64,
    /// In tokens: what a token adds to a name, or the name that begins in it, and the rest of the name.
    more: u64,
    more_bytes: u64,
    is_quoted: bool,
}

impl Declarations {
    /// The declarations of a grammar; `None` where it declares no names.
    pub fn new(
        run: &mut Run<'_>,
        vocabulary: &Tokens,
        counts: &TokenCounts,
    ) -> Result<Option<Declarations>, EngineError> {
        if !run.machine.has_names() {
            return Ok(None);
        }
        let grammar = run.machine.grammar().clone();
        let (mut least, mut to_end, mut is_quoted) = (0, 0, false);
        let mut begins = [false; 256];
        let mut worst_cases = WorstCases::default();
        for node in grammar.nodes() {
            let Node::Marked { mark: Mark::Declares(set), body } = node else { continue };
            is_quoted |= set.quoted;
            let (mut shortest, mut longest) = (0u64, 0u64);
            for (at, lexeme) in lexemes_of(&grammar, *body).into_iter().enumerate() {
                let imported = run.lexeme_cache.import(grammar.exprs(), lexeme)?;
                let cost = counts.of_lexeme(lexeme);
                shortest = shortest.saturating_add(cost);
                longest = longest.saturating_add(worst_cases.of(run, imported)?.max(cost));
                if at == 0 {
                    for (bytes, _) in run.lexeme_cache.deriver().derivatives(imported)?.iter() {
                        (0..=255u8)
                            .filter(|&byte| bytes.contains(byte))
                            .for_each(|byte| begins[usize::from(byte)] = true);
                    }
                }
            }
            least = least.max(shortest);
            to_end = to_end.max(longest);
        }
        if is_quoted {
            // The whitespace before a string is not part of the name.
            b" \t\n\r".iter().for_each(|&byte| begins[usize::from(byte)] = false);
        }
        let (tokens, bytes) = most_of_a_token(vocabulary, &begins);
        let (more, more_bytes) = (to_end.saturating_add(tokens), to_end.saturating_add(bytes));
        Ok(Some(Declarations { least, more, more_bytes, is_quoted }))
    }

    /// The cost of references after any one token that may come at a configuration.
    pub fn costs_of(&self, run: &Run<'_>, vocabulary: &Tokens, configuration: SetId) -> ReferenceCosts {
        let threads = run.stacks.entries(configuration);
        let text = threads.iter().find(|&&thread| run.machine.is_text(thread)).map(|thread| thread.register);
        let mut lists: FxHashSet<u32> = FxHashSet::default();
        let (mut in_tokens, mut in_bytes) = (0, 0);
        let mut seen: FxHashSet<SetId> = FxHashSet::default();
        let mut work: Vec<SetId> = threads.iter().map(|thread| thread.below).collect();
        while let Some(set) = work.pop() {
            if !seen.insert(set) {
                continue;
            }
            for &entry in run.stacks.entries(set).iter().filter(|&&entry| entry != Entry::BOTTOM) {
                work.push(entry.below);
                if run.machine.is_names(FrameId(entry.head)) {
                    lists.insert(entry.register);
                } else if let (Some(text), true) = (text, run.machine.declares(FrameId(entry.head)).is_some())
                    && entry.register != UNKNOWN_TEXT
                {
                    let written = run.stacks.since(text, entry.register);
                    let written = if self.is_quoted { written.trim_ascii_start() } else { &written[..] };
                    in_tokens = in_tokens.max(count_with_bytes(vocabulary, written));
                    in_bytes = in_bytes.max(written.len() as u64);
                }
            }
        }
        let new = self.least.max(in_tokens.saturating_add(self.more));
        let mut rest = in_bytes.saturating_add(self.more_bytes);
        let mut whole = 0;
        for list in lists {
            let mut least = vec![NEVER; run.machine.names.sets.len()];
            if list != UNKNOWN_NAMES {
                for (at, entry) in run.stacks.seen.entries(list).enumerate() {
                    let mut name: Vec<u32> = run.stacks.list(entry).collect();
                    let set = name.first().map_or(0, |&set| set.saturating_sub(256)) as usize;
                    rest = rest.max(name.len() as u64);
                    // A reference may be to any of these names.
                    if at < FEW {
                        name.reverse();
                        name.pop();
                        let name: Vec<u8> = name.into_iter().map(|byte| byte as u8).collect();
                        let name = if self.is_quoted { name.trim_ascii() } else { &name[..] };
                        least[set] = least[set].min(count_of(vocabulary, name));
                    }
                }
            }
            // If a set has no names yet, a name is declared before the reference.
            whole = least.into_iter().map(|least| if least == NEVER { new } else { least }).fold(whole, u64::max);
        }
        if self.is_quoted {
            rest = rest.saturating_add(ESCAPED);
        }
        ReferenceCosts { whole, rest }.rounded()
    }
}

/// The bytes of the shortest name to which references may refer at a configuration; 0 where there is no name yet. A
/// shorter name may still be declared, so a completion found with this bound need not be the shortest.
pub(crate) fn shortest_name(run: &Run<'_>, configuration: SetId) -> u64 {
    let mut most = 0;
    for thread in run.stacks.entries(configuration).iter().filter(|&&thread| thread != Entry::BOTTOM) {
        for &top in run.stacks.entries(thread.below).iter().filter(|&&top| run.machine.is_names(FrameId(top.head))) {
            if top.register == UNKNOWN_NAMES {
                continue;
            }
            let mut least = vec![NEVER; run.machine.names.sets.len()];
            for entry in run.stacks.seen.entries(top.register) {
                let name: Vec<u32> = run.stacks.list(entry).collect();
                let set = name.first().map_or(0, |&set| set.saturating_sub(256)) as usize;
                least[set] = least[set].min(name.len() as u64 - 1);
            }
            most = least.into_iter().filter(|&least| least != NEVER).fold(most, u64::max);
        }
    }
    most
}

/// The lexemes of a declared name: one, or the pieces of a long one.
fn lexemes_of(grammar: &Grammar, body: NodeId) -> Vec<ExprId> {
    let (mut work, mut lexemes) = (vec![body], Vec::new());
    while let Some(id) = work.pop() {
        match grammar.node(id) {
            Node::Lexeme(lexeme) => lexemes.push(*lexeme),
            Node::Rule(rule) => work.push(grammar.rule(*rule).body),
            Node::Sequence(parts) => work.extend(parts.iter().rev()),
            _ => unreachable!("what declares a name is one terminal"),
        }
    }
    lexemes
}

/// The numbers of tokens that spell the prefixes of a text, by length. A byte without a token counts as one.
fn counts_with_bytes(vocabulary: &Tokens, text: &[u8]) -> Vec<u64> {
    let trie = vocabulary.trie();
    let mut counts = vec![NEVER; text.len() + 1];
    counts[0] = 0;
    for at in 0..text.len() {
        let count = counts[at] + 1;
        counts[at + 1] = counts[at + 1].min(count);
        let mut node = trie.root(text[at]);
        let mut end = at + 1;
        while let Some(here) = node {
            if trie.entry_at(here).is_some() {
                counts[end] = counts[end].min(count);
            }
            let Some(&byte) = text.get(end) else { break };
            node = trie.child(here, byte);
            end += 1;
        }
    }
    counts
}

fn count_with_bytes(vocabulary: &Tokens, text: &[u8]) -> u64 {
    *counts_with_bytes(vocabulary, text).last().expect("there is a count before the first byte")
}

/// The greatest number of tokens, and of bytes, that spell a part of one token that may belong to a name: the whole
/// token, or the rest from one of these bytes on.
fn most_of_a_token(vocabulary: &Tokens, begins: &[bool; 256]) -> (u64, u64) {
    let (mut in_tokens, mut in_bytes) = (1, 1);
    for token in (0..vocabulary.vocab_size() as u32).filter_map(|token| vocabulary.token_bytes(token)) {
        in_bytes = in_bytes.max(token.len() as u64);
        for at in 0..token.len() {
            // A part that is no longer than the greatest number so far cannot exceed it.
            let may_begin = at == 0 || begins[usize::from(token[at])];
            if may_begin && (token.len() - at) as u64 > in_tokens {
                let most = counts_with_bytes(vocabulary, &token[at..]).into_iter().max();
                in_tokens = in_tokens.max(most.unwrap_or(0));
            }
        }
    }
    (in_tokens, in_bytes)
}
