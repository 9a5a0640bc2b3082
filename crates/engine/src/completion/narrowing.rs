//! Masks near the end of a budget: of the tokens that may come, those behind which the text can still be closed in time.
//!
//! The tokens are read together, so that those that lead to the same place are decided at once. What the parts take that wait
//! there allows most of them; for the others a real way is looked for. Where one may not be found, a token is refused: the
//! next token of the way that is known is always left.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::completion::bounds::{Bounds, NEW_KEY, about};
use crate::completion::costs::{Costs, Measured, node_costs};
use crate::completion::search::{Completion, Piece, Texts, tokens_of};
use crate::completion::token_counts::{NEVER, TokenCounts};
use crate::error::EngineError;
use crate::machine::layout::ExpansionId;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

/// A place that looks so many times as far from the end as it may be, and so much further, is not looked at: a token may
/// span lexemes, but rarely more.
const FAR: u64 = 4;
const FURTHER: u64 = 8;

/// So many bytes more than a shortest text a canonical one may take, so that it can follow the tokens before.
const REWRITTEN: u64 = 16;

/// So many tokens that lead to the same place are tried where it matters how the tokenizer writes them.
const FEW: usize = 3;

/// For so many places behind tokens a way to the end is looked for in one mask.
const MAX_SEARCHES: usize = 48;

/// What is known of the ways to the end of texts of one grammar.
pub(crate) struct Endings {
    counts: Arc<TokenCounts>,
    nodes: Arc<[u64]>,
    bounds: Bounds,
    texts: Texts,
    /// What the nodes take in bytes, and the bounds in bytes: the tokenizer itself may write that many tokens.
    in_bytes: Option<(Arc<[u64]>, Bounds)>,
}

impl Endings {
    /// What can be told before a text is read.
    pub fn new(run: &mut Run<'_>, vocabulary: &Arc<Tokens>) -> Result<Endings, EngineError> {
        let counts = Arc::new(TokenCounts::new(run, vocabulary.clone())?);
        let grammar = run.machine.grammar().clone();
        let measured = Measured { grammar: &grammar, tokens: Some(&counts) };
        let nodes: Arc<[u64]> = node_costs(measured).into();
        let bounds = Bounds::new(run, vocabulary, measured, &nodes)?;
        Ok(Endings { counts, nodes, bounds, texts: Texts::default(), in_bytes: None })
    }

    fn costs(&self) -> Costs {
        Costs::in_tokens(self.counts.clone(), self.nodes.clone())
    }

    fn in_bytes(&mut self, run: &mut Run<'_>) -> Result<&mut (Arc<[u64]>, Bounds), EngineError> {
        if self.in_bytes.is_none() {
            let grammar = run.machine.grammar().clone();
            let measured = Measured { grammar: &grammar, tokens: None };
            let nodes: Arc<[u64]> = node_costs(measured).into();
            let bounds = Bounds::new(run, &self.counts.vocabulary, measured, &nodes)?;
            self.in_bytes = Some((nodes, bounds));
        }
        Ok(self.in_bytes.as_mut().expect("they were just found"))
    }
}

impl Run<'_> {
    /// What completes the text behind any one token, at most, and by how much more one token may put off the end.
    pub fn most_behind_a_token(
        &mut self,
        endings: &mut Endings,
        configuration: SetId,
        is_canonical: bool,
    ) -> Result<(u64, u64), EngineError> {
        if is_canonical {
            let (nodes, bounds) = endings.in_bytes(self)?;
            let mut costs = Costs::in_bytes_of(nodes.clone());
            let worst = bounds.behind_a_token(self, &mut costs, configuration)?;
            return Ok((worst.saturating_add(REWRITTEN), bounds.step));
        }
        let mut costs = endings.costs();
        let worst = endings.bounds.behind_a_token(self, &mut costs, configuration)?;
        Ok((worst, endings.bounds.step))
    }

    /// Few tokens that complete the text; `None` where no way is found.
    pub fn way_out(&mut self, endings: &mut Endings, configuration: SetId) -> Result<Option<Vec<u32>>, EngineError> {
        let mut costs = endings.costs();
        self.way_out_with(endings, &mut costs, configuration)
    }

    /// Short texts that complete the text: the one that takes the fewest tokens as far as is known, and the shortest.
    pub fn texts_out(&mut self, endings: &mut Endings, configuration: SetId) -> Result<Vec<Vec<Piece>>, EngineError> {
        let mut found = Vec::new();
        let nodes = endings.in_bytes(self)?.0.clone();
        for (mut costs, mut texts) in
            [(endings.costs(), std::mem::take(&mut endings.texts)), (Costs::in_bytes_of(nodes), Texts::default())]
        {
            let completion = self.complete_with(&mut costs, &mut texts, configuration, NEVER - 1);
            if costs.tokens().is_some() {
                endings.texts = texts;
            }
            if let Completion::Found(pieces) = completion? {
                found.push(pieces);
            }
        }
        found.dedup();
        Ok(found)
    }

    /// Tokens of a mask, the likeliest first to complete the text soon: a few for each place that they lead to.
    pub fn likely_tokens(
        &mut self,
        endings: &mut Endings,
        configuration: SetId,
        mask: &[u32],
    ) -> Result<Vec<u32>, EngineError> {
        let vocabulary = endings.counts.vocabulary.clone();
        let mut costs = endings.costs();
        let mut ranked = Vec::new();
        for ((place, _), tokens) in self.tokens_by_place(&vocabulary, configuration, mask)? {
            let cost = self.least(endings, &mut costs, place)?;
            ranked.extend(tokens.into_iter().take(FEW).enumerate().map(|(at, token)| (cost, at, token)));
        }
        self.recording = true;
        ranked.extend(self.edges_of(configuration, mask).into_iter().take(FEW).map(|token| (0, 0, token)));
        ranked.sort_unstable();
        Ok(ranked.into_iter().map(|(.., token)| token).collect())
    }

    fn way_out_with(
        &mut self,
        endings: &mut Endings,
        costs: &mut Costs,
        configuration: SetId,
    ) -> Result<Option<Vec<u32>>, EngineError> {
        match self.complete_with(costs, &mut endings.texts, configuration, NEVER - 1)? {
            Completion::Found(pieces) => Ok(tokens_of(&endings.counts.vocabulary, &pieces)),
            Completion::TooLong(_) | Completion::Never => Ok(None),
        }
    }

    /// Few tokens that complete the text by the way that is shortest in bytes.
    pub fn way_out_in_bytes(
        &mut self,
        endings: &Endings,
        configuration: SetId,
    ) -> Result<Option<Vec<u32>>, EngineError> {
        let mut costs = Costs::in_bytes(&self.machine.grammar().clone());
        match self.complete(&mut costs, configuration, NEVER - 1)? {
            Completion::Found(pieces) => Ok(tokens_of(&endings.counts.vocabulary, &pieces)),
            Completion::TooLong(_) | Completion::Never => Ok(None),
        }
    }

    /// Leaves those tokens of a mask behind which so many tokens, or fewer, complete the text.
    pub fn narrow(
        &mut self,
        endings: &mut Endings,
        configuration: SetId,
        most: u64,
        mask: &mut [u32],
    ) -> Result<(), EngineError> {
        let vocabulary = endings.counts.vocabulary.clone();
        let edges = self.edges_of(configuration, mask);
        let mut groups = self.tokens_by_place(&vocabulary, configuration, mask)?;
        let mut costs = endings.costs();
        let mut open: Vec<(u64, SetId, bool, Vec<u32>)> = Vec::new();
        let refuse = |mask: &mut [u32], token: u32| {
            token_set::clear(mask, token);
            vocabulary.same_bytes(token).iter().for_each(|&same| token_set::clear(mask, same));
        };
        for ((place, is_doubtful), tokens) in groups.drain(..) {
            let cost = self.least(endings, &mut costs, place)?;
            let spare = if is_doubtful || self.writes_free_key(place) { NEW_KEY } else { 0 };
            let at_most = match endings.bounds.is_exact {
                true => cost.saturating_add(spare),
                false => about(cost).saturating_add(spare),
            };
            if at_most > most {
                open.push((cost, place, is_doubtful, tokens));
            }
        }
        // The likeliest first: so many are looked at.
        open.sort_by_key(|(cost, place, ..)| (*cost, *place));
        let mut known: FxHashMap<SetId, bool> = FxHashMap::default();
        let mut searches = 0;
        (self.recording, self.known) = (true, None);
        let keeps_text = self.machine.keeps_text();
        for (cost, place, is_doubtful, tokens) in open {
            if cost > most.saturating_mul(FAR).saturating_add(FURTHER) {
                tokens.iter().for_each(|&token| refuse(mask, token));
                continue;
            }
            // Where nothing hangs on which keys and elements there are, one token stands for all of its place.
            let stands = !keeps_text && !is_doubtful && !self.writes_free_key(place);
            let mut first = None;
            for token in tokens {
                let closes = match first {
                    Some(first) if stands => first,
                    _ => {
                        let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
                        let behind = self.run(configuration, bytes)?;
                        self.closes(endings, &mut costs, behind, most, &mut known, &mut searches)?
                    }
                };
                first = first.or(Some(closes));
                if !closes {
                    refuse(mask, token);
                }
            }
        }
        for token in edges {
            let bytes = vocabulary.token_bytes(token);
            let behind = self.step_token(configuration, token, bytes)?;
            match self.closes(endings, &mut costs, behind, most, &mut known, &mut searches)? {
                true => token_set::set(mask, token),
                false => token_set::clear(mask, token),
            }
        }
        Ok(())
    }

    /// Whether so many tokens, or fewer, complete the text from a place.
    fn closes(
        &mut self,
        endings: &mut Endings,
        costs: &mut Costs,
        place: SetId,
        most: u64,
        known: &mut FxHashMap<SetId, bool>,
        searches: &mut usize,
    ) -> Result<bool, EngineError> {
        if let Some(&closes) = known.get(&place) {
            return Ok(closes);
        }
        if *searches >= MAX_SEARCHES {
            return Ok(false);
        }
        *searches += 1;
        let closes = match self.way_out_with(endings, costs, place) {
            Ok(way) => way.is_some_and(|way| way.len() as u64 <= most),
            Err(EngineError::CompletionTooCostly(_)) => false,
            Err(error) => return Err(error),
        };
        known.insert(place, closes);
        Ok(closes)
    }

    /// What it takes to complete the text from a place, if keys and elements are new.
    fn least(&mut self, endings: &mut Endings, costs: &mut Costs, place: SetId) -> Result<u64, EngineError> {
        if self.stacks.has_bottom(place) {
            return Ok(0);
        }
        let ways = self.ways(costs, &mut endings.texts, place)?;
        Ok(ways.first().map_or(NEVER, |&(cost, _)| cost))
    }

    /// Whether a key is being written that must differ from others.
    fn writes_free_key(&self, place: SetId) -> bool {
        self.stacks.entries(place).iter().any(|&thread| {
            thread != Entry::BOTTOM && !offers_tokens(thread) && self.machine.fork(ExpansionId(thread.head)).free
        })
    }

    /// The tokens of a mask that the grammar asks for by their names or ids.
    fn edges_of(&self, configuration: SetId, mask: &[u32]) -> Vec<u32> {
        if !self.machine.tokens.any() {
            return Vec::new();
        }
        let mut edges = vec![0; mask.len()];
        self.token_edges(configuration, &mut edges);
        edges.iter_mut().zip(mask).for_each(|(edges, mask)| *edges &= mask);
        (0..edges.len() as u32 * token_set::BITS).filter(|&token| token_set::get(&edges, token)).collect()
    }

    /// The tokens of a mask that spell something, by the places that they lead to as if every key and element were new,
    /// and whether that is in doubt.
    #[expect(clippy::type_complexity, reason = "a list of groups, named where it is used")]
    fn tokens_by_place(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        mask: &[u32],
    ) -> Result<Vec<((SetId, bool), Vec<u32>)>, EngineError> {
        (self.recording, self.known) = (false, None);
        let trie = vocabulary.trie();
        let mut numbers: FxHashMap<(SetId, bool), usize> = FxHashMap::default();
        let mut groups: Vec<((SetId, bool), Vec<u32>)> = Vec::new();
        let mut path = vec![(configuration, false)];
        let mut node = 0;
        while node < trie.len() {
            path.truncate(trie.depth(node));
            let (above, doubt) = *path.last().expect("the path begins before the first byte");
            let (here, more) = self.known_step(above, trie.byte(node))?;
            if here == SetId::EMPTY {
                node += trie.size(node);
                continue;
            }
            let doubt = doubt || more.is_any();
            if let Some(token) = trie.entry_at(node).filter(|&token| token_set::get(mask, token)) {
                let number = *numbers.entry((here, doubt)).or_insert_with(|| {
                    groups.push(((here, doubt), Vec::new()));
                    groups.len() - 1
                });
                groups[number].1.push(token);
            }
            path.push((here, doubt));
            node += 1;
        }
        self.known = None;
        Ok(groups)
    }
}
