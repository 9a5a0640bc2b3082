//! The fewest tokens that spell a text, and the cost of a grammar's lexemes in tokens, taken from a shortest text of
//! each.

use std::convert::Infallible;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_grammar::{Grammar, Node};
use stencilm_regex::{ByteSet, ExprId, Shortest};
use stencilm_support::{LimitExceeded, STEPS, check_time};

use crate::error::EngineError;
use crate::machine::readable::bytes_of;
use crate::parse::stepper::Run;
use crate::vocabulary::tokens::Tokens;

/// The cost of what cannot be completed: in bytes, where a single token must come; in tokens, where no token spells
/// what must come.
pub(crate) const NEVER: u64 = u64::MAX;

/// The number of tokens by which a key may have to grow to be new, for example by digits.
pub(crate) const NEW_KEY: u64 = 5;

/// The fewest tokens that spell a text, the first of them as long as possible; `None` where some byte has no token.
///
/// # Errors
/// As [`check_time`].
pub(crate) fn fewest_tokens(vocabulary: &Tokens, text: &[u8]) -> Result<Option<Vec<u32>>, LimitExceeded> {
    fewest_tokens_while(vocabulary, text, check_time)
}

fn fewest_tokens_while<E>(
    vocabulary: &Tokens,
    text: &[u8],
    may_go_on: impl Fn() -> Result<(), E>,
) -> Result<Option<Vec<u32>>, E> {
    let trie = vocabulary.trie();
    // For every position of the text: the number of tokens that spell the rest, the first of them, and its length.
    let mut best: Vec<Option<(u32, u32, u32)>> = vec![None; text.len() + 1];
    best[text.len()] = Some((0, 0, 0));
    for at in (0..text.len()).rev() {
        may_go_on()?;
        let mut node = trie.root(text[at]);
        let mut depth = 1;
        while let Some(here) = node {
            let after = best[at + depth].map(|(count, ..)| count + 1);
            if let (Some(token), Some(count)) = (trie.entry_at(here), after)
                && best[at].is_none_or(|(known, ..)| count <= known)
            {
                best[at] = Some((count, token, depth as u32));
            }
            let Some(&byte) = text.get(at + depth) else { break };
            node = trie.child(here, byte);
            depth += 1;
        }
    }
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let Some((_, token, depth)) = best[at] else { return Ok(None) };
        tokens.push(token);
        at += depth as usize;
    }
    Ok(Some(tokens))
}

/// The least number of tokens that spell a short text; [`NEVER`] where none do.
pub(crate) fn count_of(vocabulary: &Tokens, text: &[u8]) -> u64 {
    let Ok(tokens) = fewest_tokens_while(vocabulary, text, || Ok::<_, Infallible>(()));
    tokens.map_or(NEVER, |tokens| tokens.len() as u64)
}

/// The same for texts that may be long.
///
/// # Errors
/// As [`check_time`].
pub(crate) fn count_in_time(vocabulary: &Tokens, text: &[u8]) -> Result<u64, LimitExceeded> {
    Ok(fewest_tokens(vocabulary, text)?.map_or(NEVER, |tokens| tokens.len() as u64))
}

/// The costs of the lexemes of a grammar in tokens.
pub(crate) struct TokenCounts {
    pub vocabulary: Arc<Tokens>,
    lexemes: FxHashMap<ExprId, u64>,
    /// The names of members in plain spelling.
    names: FxHashMap<Arc<str>, u64>,
    /// Whether every byte of the texts is a token, so that no text takes more tokens than bytes.
    pub has_all_bytes: bool,
}

impl TokenCounts {
    /// Computes the costs for a grammar.
    pub fn new(run: &mut Run<'_>, vocabulary: Arc<Tokens>) -> Result<TokenCounts, EngineError> {
        let grammar = run.machine.grammar().clone();
        let (lexemes, names) = Default::default();
        let mut counts = TokenCounts { vocabulary, lexemes, names, has_all_bytes: true };
        let (mut bytes, mut known) = (ByteSet::EMPTY, FxHashMap::default());
        for lexeme in lexemes_of(&grammar) {
            check_time()?;
            bytes = bytes.union(&bytes_of(grammar.exprs(), lexeme, &mut known)?);
            if !counts.lexemes.contains_key(&lexeme) {
                let imported = run.lexeme_cache.import(grammar.exprs(), lexeme)?;
                let deriver = run.lexeme_cache.deriver();
                let text = match deriver.exprs.is_nullable(imported) {
                    true => Some(Vec::new()),
                    false => shortest_text(run, imported)?,
                };
                let count = text.map_or(Ok(NEVER), |text| count_in_time(&counts.vocabulary, &text))?;
                counts.lexemes.insert(lexeme, count);
            }
        }
        for known in grammar.all_members().iter().flat_map(|members| &members.declared) {
            check_time()?;
            if known.key.is_none() && !counts.names.contains_key(&known.name) {
                bytes = bytes.union(&known.name.bytes().chain([b'"']).collect());
                let count = count_of(&counts.vocabulary, format!("\"{}\"", known.name).as_bytes());
                counts.names.insert(known.name.clone(), count);
            }
        }
        let trie = counts.vocabulary.trie();
        let is_token = |byte: u8| trie.root(byte).is_some_and(|node| trie.entry_at(node).is_some());
        counts.has_all_bytes = bytes.iter().all(is_token);
        Ok(counts)
    }

    /// The cost of a lexeme of the grammar.
    pub fn of_lexeme(&self, lexeme: ExprId) -> u64 {
        self.lexemes[&lexeme]
    }

    /// The cost of a member's name in plain spelling.
    pub fn of_name(&self, name: &str) -> u64 {
        self.names[name]
    }
}

/// A shortest text of a lexeme with at least one byte; `None` where there is none, or it is too long to be spelled.
pub(crate) fn shortest_text(run: &mut Run<'_>, lexeme: ExprId) -> Result<Option<Vec<u8>>, EngineError> {
    let deriver = run.lexeme_cache.deriver();
    if deriver.exprs.shortest_at_least(lexeme) as usize > STEPS {
        return Ok(None);
    }
    match Shortest::new(deriver, lexeme, 1, STEPS).next(deriver) {
        Err(LimitExceeded::Search(_)) => Ok(None),
        text => Ok(text?),
    }
}

/// The lexemes of a grammar, perhaps with duplicates.
pub(crate) fn lexemes_of(grammar: &Grammar) -> Vec<ExprId> {
    let mut lexemes = Vec::new();
    for node in grammar.nodes() {
        if let Node::Lexeme(lexeme) = node {
            lexemes.push(*lexeme);
        }
    }
    for members in grammar.all_members() {
        let surface = members.surface;
        lexemes.extend([surface.empty, surface.open, surface.colon, surface.item, surface.close]);
        lexemes.extend(members.declared.iter().filter_map(|known| known.key));
        lexemes.extend(members.additional.iter().map(|additional| additional.key));
    }
    for items in grammar.all_items() {
        let surface = items.surface;
        lexemes.extend([surface.empty, surface.open, surface.item, surface.close]);
    }
    lexemes
}
