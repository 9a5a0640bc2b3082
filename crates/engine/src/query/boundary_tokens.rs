//! Tokens that span the end of a text: a tokenizer may spell the end differently when it sees what follows.
//!
//! Forced bytes are tokenized elsewhere, by the model's own tokenizer. This file finds where such a token may begin,
//! and which ones the grammar allows there.

use crate::error::{EngineError, MatcherError};
use crate::machine::layout::ExpansionId;
use crate::matcher::GrammarMatcher;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::SetId;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::Trie;

/// A position of a text at which a token may begin that extends beyond its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// Where the token begins, in bytes from the beginning of the text.
    pub start: usize,
    /// Such tokens, at most as many as were asked for; of tokens with equal bytes only one.
    pub tokens: Vec<u32>,
}

impl Tokens {
    /// The positions at which tokens may begin that extend beyond the end of a text, whatever follows it, with at most
    /// `limit` such tokens for each position.
    pub fn spans(&self, text: &[u8], limit: usize) -> Vec<Span> {
        let starts = span_starts(self.trie(), text);
        let spans = starts.map(|(start, node)| {
            let tokens = self.trie().entries_below(node).filter(|&token| self.trie().entry_at(node) != Some(token));
            Span { start, tokens: tokens.take(limit).collect() }
        });
        spans.collect()
    }
}

/// The positions from which the rest of a text leads to a node of the trie that has children, with that node.
pub(crate) fn span_starts<'a>(trie: &'a Trie, text: &'a [u8]) -> impl Iterator<Item = (usize, usize)> + 'a {
    let first = (text.len() + 1).saturating_sub(trie.max_depth());
    (first..text.len()).filter_map(|start| {
        let node = trie.find(&text[start..])?;
        (trie.size(node) > 1).then_some((start, node))
    })
}

impl GrammarMatcher {
    /// The forced bytes (see [`GrammarMatcher::forced_bytes`]), and the positions in them at which allowed tokens may
    /// begin that extend beyond their end, with at most `limit` such tokens for each position.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when a limit is reached.
    pub fn forced_spans(&mut self, limit: usize) -> Result<(Vec<u8>, Vec<Span>), MatcherError> {
        self.in_time(|matcher| matcher.forced_spans_by_parts(limit))
    }

    fn forced_spans_by_parts(&mut self, limit: usize) -> Result<(Vec<u8>, Vec<Span>), MatcherError> {
        let forced = self.forced_bytes()?;
        if forced.is_empty() {
            return Ok((forced, Vec::new()));
        }
        let compiled = self.compiled().clone();
        let trie = compiled.vocabulary().trie();
        let spans = self.probe(|run, now| {
            let end = run.run(now, &forced)?;
            let mut spans = Vec::new();
            for (start, node) in span_starts(trie, &forced) {
                let tokens = run.tokens_below(trie, node, end, limit)?;
                if !tokens.is_empty() {
                    spans.push(Span { start, tokens });
                }
            }
            Ok(spans)
        })?;
        Ok((forced, spans))
    }

    /// The single token that must come next, if the grammar names a token by its text or id and allows nothing else.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when a limit is reached.
    pub fn forced_token(&mut self) -> Result<Option<u32>, MatcherError> {
        if !self.compiled().tokens().any() || self.is_terminated() || self.is_completed() {
            return Ok(None);
        }
        self.probe(|run, now| {
            let mut only = None;
            for &thread in run.stacks.entries(now) {
                if !offers_tokens(thread) {
                    return Ok(None);
                }
                for &(node, _) in &run.machine.fork(ExpansionId(thread.head)).tokens {
                    for token in run.machine.tokens.ids(node).iter() {
                        if only.is_some_and(|known| known != token) {
                            return Ok(None);
                        }
                        only = Some(token);
                    }
                }
            }
            Ok(only)
        })
    }
}

impl Run<'_> {
    /// At most `limit` tokens strictly below a node of the trie that can be read on from a configuration at that node.
    fn tokens_below(
        &mut self,
        trie: &Trie,
        node: usize,
        configuration: SetId,
        limit: usize,
    ) -> Result<Vec<u32>, EngineError> {
        let mut tokens = Vec::new();
        // The configuration at each depth below the node.
        let mut path = vec![configuration];
        let (mut child, end) = trie.children(node);
        while child < end && tokens.len() < limit {
            path.truncate(trie.depth(child) - trie.depth(node));
            let above = *path.last().expect("the path begins with the configuration at the node");
            let here = self.step(above, trie.byte(child))?;
            if here == SetId::EMPTY {
                child += trie.size(child);
                continue;
            }
            tokens.extend(trie.entry_at(child));
            path.push(here);
            child += 1;
        }
        Ok(tokens)
    }
}
