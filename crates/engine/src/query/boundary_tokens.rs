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

/// A place of a text at which a token may begin that goes on after its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// Where the token begins, in bytes from the beginning of the text.
    pub start: usize,
    /// Such tokens, not more than were asked for; one of those that spell the same bytes stands for all.
    pub tokens: Vec<u32>,
}

impl Tokens {
    /// Where tokens may begin that span the end of a text, whatever follows, and at most `limit` of them for each place.
    pub fn spans(&self, text: &[u8], limit: usize) -> Vec<Span> {
        let starts = span_starts(self.trie(), text);
        let spans = starts.map(|(start, node)| {
            let tokens = self.trie().entries_below(node).filter(|&token| self.trie().entry_at(node) != Some(token));
            Span { start, tokens: tokens.take(limit).collect() }
        });
        spans.collect()
    }
}

/// The places of a text from which on it leads to a node of the trie that has children, with that node.
pub(crate) fn span_starts<'a>(trie: &'a Trie, text: &'a [u8]) -> impl Iterator<Item = (usize, usize)> + 'a {
    let first = (text.len() + 1).saturating_sub(trie.max_depth());
    (first..text.len()).filter_map(|start| {
        let node = trie.find(&text[start..])?;
        (trie.size(node) > 1).then_some((start, node))
    })
}

impl GrammarMatcher {
    /// The forced bytes (see [`GrammarMatcher::forced_bytes`]), and where tokens may begin in them that span their end and
    /// that the grammar allows, with at most `limit` of those tokens for each place.
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

    /// The single token that must come next, where the grammar asks for a token by its name or id and for nothing else.
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
    /// Tokens of the trie strictly below a node that go on from a configuration at that node, at most `limit` of them.
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
