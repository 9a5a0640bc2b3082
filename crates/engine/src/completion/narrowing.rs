//! Masks near the end of a budget: those of the allowed tokens after which the text can still be completed in time.
//!
//! The tokens are read together, so that tokens that lead to the same place are decided at once. The costs of what
//! waits at a place are enough to allow most tokens; for the others, a real path is searched. If none is found, a token
//! is refused. The next token of the known path is always kept.
//!
//! None of this depends on how many tokens are left, so the places and the paths from them are cached with the
//! configuration. Which keys and elements were used is no part of it: where that matters, each mask searches for its
//! own paths, beginning with the one that the text already has. A path is read for one of the tokens that lead to a
//! place, and the comparisons made on it show which other tokens it serves (`completion/shared_path.rs`).

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_grammar::Items;
use stencilm_support::{FEW, LARGE_BUDGET, LOOKED_AT, MANY, Mutex, Recent, STEPS, lock};

use crate::completion::bounds::Bounds;
use crate::completion::costs::{Costs, Measured, node_costs};
use crate::completion::fresh::are_new_keys_near;
use crate::completion::numbers_left::{Counted, NumberArrays};
use crate::completion::references::{Declarations, ReferenceCosts, shortest_name};
use crate::completion::search::{Completion, Piece, Texts, tokens_of};
use crate::completion::shared_path::SharedPath;
use crate::completion::token_counts::{NEVER, NEW_KEY, TokenCounts};
use crate::completion::token_list::{TokenList, bits_of};
use crate::error::EngineError;
use crate::mask::cache::DependencyCache;
use crate::parse::stepper::{Mode, Run};
use crate::state::stacks::{Entry, SetId};
use crate::switches::Switch;
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

/// No path is searched for whose estimated cost is more than `FAR` times the budget plus `FURTHER`: a token may span
/// lexemes, but rarely more than a few.
const FAR: u64 = 4;
const FURTHER: u64 = 8;

/// The number of bytes by which a canonical text may exceed a shortest one, so that it can follow the tokens before.
const REWRITTEN: u64 = 16;

/// The number of tokens tried for each place, where it matters how the tokenizer writes them.
const PER_PLACE: usize = 3;

/// In the cache of places, counts are distinguished however far they are from their bounds.
const EVERY_COUNT: usize = u32::MAX as usize - 1;

/// A path to the end and its number of tokens; [`NEVER`] where none was found.
pub(crate) struct PathToEnd {
    tokens: u64,
    pieces: Vec<Piece>,
    /// The greatest cost of a path that was searched for.
    within: u64,
}

impl PathToEnd {
    fn none(within: u64) -> PathToEnd {
        PathToEnd { tokens: NEVER, pieces: Vec::new(), within }
    }

    fn of(vocabulary: &Tokens, pieces: Vec<Piece>) -> Result<PathToEnd, EngineError> {
        let tokens = tokens_of(vocabulary, &pieces)?.map_or(NEVER, |tokens| tokens.len() as u64);
        Ok(PathToEnd { tokens, pieces, within: NEVER })
    }

    /// The path with these tokens.
    fn of_tokens(vocabulary: &Tokens, tokens: &[u32]) -> Result<PathToEnd, EngineError> {
        let piece = |&token: &u32| match vocabulary.token_bytes(token) {
            Some(bytes) => Piece::Text(bytes.to_vec()),
            None => Piece::Token(token),
        };
        PathToEnd::of(vocabulary, tokens.iter().map(piece).collect())
    }

    /// Whether no path of at most `most` tokens is known, and one was searched for.
    fn is_too_long(&self, most: u64) -> bool {
        self.tokens > most && self.within >= most_looked_at(most)
    }
}

/// A place to which tokens lead.
struct Place {
    /// The cost of completing the text from there, as a sum over its parts and as if keys and elements were new.
    cost: u64,
    /// An upper bound on that cost, for all used keys and elements.
    at_most: u64,
    /// What the paths to the end from there depend on.
    hangs_on: HangsOn,
    /// One of the tokens that lead there.
    first: u32,
    /// All of these tokens, including those with equal bytes.
    tokens: TokenList,
    /// Paths that masks have found from there. If paths depend on the text before, masks do not use them.
    known: Mutex<Known>,
}

/// What is known about the paths to the end from a place.
#[derive(Clone, Default)]
struct Known {
    /// The paths found, the last one first. If the text before does not matter, the result that there is none is stored
    /// too, in the first position.
    paths: Vec<Arc<PathToEnd>>,
    /// The number of searches that the mask which found them needed.
    searches: usize,
}

impl Place {
    /// Stores paths to the end. Earlier paths are kept after them: under another budget, tokens that may come were kept
    /// for them.
    fn keep(&self, Known { mut paths, searches }: Known) {
        let mut known = lock(&self.known);
        for path in known.paths.drain(..).filter(|path| path.tokens != NEVER) {
            if !paths.iter().any(|kept| Arc::ptr_eq(kept, &path)) {
                paths.push(path);
            }
        }
        paths.truncate(FEW);
        *known = Known { paths, searches };
    }
}

/// The paths for which a mask kept its tokens.
#[derive(Default)]
pub(crate) struct PathsLeft {
    /// The paths found from each place, by the first token that leads there.
    by_place: FxHashMap<u32, Vec<Arc<PathToEnd>>>,
    /// All of them. A token that the grammar names has no place in these lists, and a path from one place may have been
    /// found from another.
    all: Vec<Arc<PathToEnd>>,
}

/// What else the paths to the end from a place depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HangsOn {
    Nothing,
    /// On a key or an element that is being written and must be new.
    Written,
    /// On the token itself: on a key or an element that it ends, or on a name that is being declared.
    Token,
}

/// The places to which the possible tokens at a configuration lead.
pub(crate) struct Places(Box<[Place]>);

impl Places {
    /// Bytes of memory held, with an estimate for the paths.
    fn bytes(&self) -> usize {
        self.0.iter().map(|place| size_of::<Place>() + place.tokens.bytes() + 64).sum()
    }
}

/// The searches made for one mask.
struct Search {
    /// The number of tokens in which the text must be completed.
    most: u64,
    /// The number of places from which a path to the end was searched, or found in another mask.
    searches: usize,
    known: FxHashMap<SetId, bool>,
    /// The distinct paths that showed that a place leads to the end in time.
    paths: Vec<Arc<PathToEnd>>,
    /// The path that was used or found last, from any place.
    last: Option<Arc<PathToEnd>>,
    /// Results of counting for arrays of different numbers.
    counted: Counted,
}

impl Search {
    /// Adds a path that leads to the end in time.
    fn note(&mut self, path: Arc<PathToEnd>) {
        if !self.paths.iter().any(|known| Arc::ptr_eq(known, &path)) {
            self.paths.push(path.clone());
        }
        self.last = Some(path);
    }
}

/// The tokens that complete the text, and the paths to store.
type Closing = (Vec<u32>, Option<Known>);

/// Data about paths to the end of texts of one grammar.
pub(crate) struct Endings {
    counts: Arc<TokenCounts>,
    nodes: Arc<[u64]>,
    bounds: Bounds,
    /// Whether the bounds hold: every text can be spelled, at most one counter needs elements, and new keys are near.
    is_bounded: bool,
    texts: Texts,
    /// The same where bytes are counted. Lexemes whose texts are very long are not spelled there.
    texts_by_bytes: Texts,
    /// Whether the paths from a place depend on the keys, the elements or the names of the text before it.
    hangs_on_text: bool,
    /// The places after configurations.
    places: DependencyCache<Places>,
    numbers: NumberArrays,
    /// The costs of the nodes and the bounds in bytes: the tokenizer itself may write one token for each byte.
    in_bytes: Option<(Arc<[u64]>, Bounds)>,
}

/// Data about paths to the end of texts of one grammar, for each recent cost of references.
#[derive(Default)]
pub(crate) struct AllEndings {
    /// The part that does not depend on a text, once it is needed: the costs of lexemes, and the declarations of names.
    counts: Option<(Arc<TokenCounts>, Option<Declarations>)>,
    known: Recent<(ReferenceCosts, Endings)>,
}

impl AllEndings {
    /// The data for a configuration.
    pub fn at(
        &mut self,
        run: &mut Run<'_>,
        vocabulary: &Arc<Tokens>,
        configuration: SetId,
    ) -> Result<&mut Endings, EngineError> {
        if self.counts.is_none() {
            let counts = Arc::new(TokenCounts::new(run, vocabulary.clone())?);
            let declarations = Declarations::new(run, vocabulary, &counts)?;
            self.counts = Some((counts, declarations));
        }
        let (counts, declarations) = self.counts.as_ref().expect("they were just found");
        let references = match declarations {
            Some(declarations) => declarations.costs_of(run, vocabulary, configuration),
            None => ReferenceCosts::default(),
        };
        if self.known.find(|(known, _)| *known == references).is_none() {
            self.known.push((references, Endings::new(run, counts.clone(), references)?));
        }
        Ok(&mut self.known.find(|(known, _)| *known == references).expect("it was there or is there now").1)
    }
}

impl Endings {
    /// Computes everything that does not depend on a text, except the cost of references, which is given.
    fn new(run: &mut Run<'_>, counts: Arc<TokenCounts>, references: ReferenceCosts) -> Result<Endings, EngineError> {
        let grammar = run.machine.grammar().clone();
        let measured = Measured { grammar: &grammar, tokens: Some(&counts), references, new_keys: None };
        let nodes: Arc<[u64]> = node_costs(measured)?.into();
        let bounds = Bounds::new(run, &counts.vocabulary, measured, &nodes)?;
        let places = DependencyCache::new(LARGE_BUDGET, EVERY_COUNT);
        let mut is_bounded = counts.has_all_bytes && grammar.all_items().iter().all(is_counted_once);
        for members in grammar.all_members() {
            is_bounded = is_bounded && are_new_keys_near(run, members)?;
        }
        is_bounded = is_bounded && (Switch::CompletionFresh.is_on() || bounds.fresh.is_none());
        let has_additional_keys = grammar.all_members().iter().any(|members| !members.additional.is_empty());
        let hangs_on_text = has_additional_keys || run.machine.keeps_text() || run.machine.has_names();
        let (texts, texts_by_bytes, numbers) = Default::default();
        let in_bytes = None;
        Ok(Endings {
            counts,
            nodes,
            bounds,
            is_bounded,
            texts,
            texts_by_bytes,
            hangs_on_text,
            places,
            numbers,
            in_bytes,
        })
    }

    fn costs(&self) -> Costs {
        Costs::in_tokens(self.counts.clone(), self.nodes.clone())
    }

    fn in_bytes(&mut self, run: &mut Run<'_>) -> Result<&mut (Arc<[u64]>, Bounds), EngineError> {
        if self.in_bytes.is_none() {
            let grammar = run.machine.grammar().clone();
            let measured = Measured::in_bytes(&grammar);
            let nodes: Arc<[u64]> = node_costs(measured)?.into();
            let bounds = Bounds::new(run, &self.counts.vocabulary, measured, &nodes)?;
            self.in_bytes = Some((nodes, bounds));
        }
        Ok(self.in_bytes.as_mut().expect("they were just found"))
    }
}

impl Run<'_> {
    /// An upper bound on the cost of completing the text after any one token, and on how much one more token may
    /// increase it; [`NEVER`] where there is no bound.
    pub fn most_after_a_token(
        &mut self,
        endings: &mut Endings,
        configuration: SetId,
        is_canonical: bool,
    ) -> Result<(u64, u64), EngineError> {
        if !endings.is_bounded {
            return Ok((NEVER, NEVER));
        }
        if is_canonical {
            let (nodes, bounds) = endings.in_bytes(self)?;
            let costs = Costs::in_bytes_of(nodes.clone());
            let mut costs = bounds.costs_apart(&costs).unwrap_or(costs);
            let worst = bounds.after_a_token(self, &mut costs, configuration)?;
            return Ok((worst.saturating_add(REWRITTEN), bounds.step));
        }
        let costs = endings.costs();
        let mut costs = endings.bounds.costs_apart(&costs).unwrap_or(costs);
        let worst = endings.bounds.after_a_token(self, &mut costs, configuration)?;
        Ok((worst, endings.bounds.step))
    }

    /// A short path to the end in tokens; `None` where none is found.
    pub fn path_to_end(
        &mut self,
        endings: &mut Endings,
        configuration: SetId,
    ) -> Result<Option<Vec<u32>>, EngineError> {
        let mut costs = endings.costs();
        let pieces = self.complete_with(&mut costs, &mut endings.texts, configuration, NEVER - 1, STEPS)?.found();
        Ok(pieces.map_or(Ok(None), |pieces| tokens_of(&endings.counts.vocabulary, &pieces))?)
    }

    /// Short texts that complete the text: the one with the fewest tokens, as far as known, and the shortest one.
    pub fn texts_out(&mut self, endings: &mut Endings, configuration: SetId) -> Result<Vec<Vec<Piece>>, EngineError> {
        let mut found = Vec::new();
        let nodes = endings.in_bytes(self)?.0.clone();
        let mut by_tokens = endings.costs();
        for (costs, texts) in
            [(&mut by_tokens, &mut endings.texts), (&mut Costs::in_bytes_of(nodes), &mut endings.texts_by_bytes)]
        {
            found.extend(self.complete_with(costs, texts, configuration, NEVER - 1, STEPS)?.found());
        }
        found.dedup();
        Ok(found)
    }

    /// Tokens of a mask, ordered by how soon they are likely to complete the text: a few for each place.
    pub fn likely_tokens(
        &mut self,
        endings: &mut Endings,
        configuration: SetId,
        mask: &[u32],
    ) -> Result<Vec<u32>, EngineError> {
        let places = self.places_after(endings, configuration)?;
        let mut ranked = Vec::new();
        for place in &places.0 {
            let tokens = place.tokens.within(mask, PER_PLACE).into_iter();
            ranked.extend(tokens.enumerate().map(|(at, token)| (place.cost, at, token)));
        }
        ranked.extend(self.edges_of(configuration, mask).into_iter().take(PER_PLACE).map(|token| (0, 0, token)));
        ranked.sort_unstable();
        Ok(ranked.into_iter().map(|(.., token)| token).collect())
    }

    /// The tokens of the path that is shortest in bytes.
    pub fn path_to_end_in_bytes(
        &mut self,
        endings: &mut Endings,
        configuration: SetId,
    ) -> Result<Option<Vec<u32>>, EngineError> {
        let reference = shortest_name(self, configuration);
        let mut costs = Costs::in_bytes(&self.machine.grammar().clone(), reference)?;
        let texts = &mut endings.texts_by_bytes;
        let pieces = self.complete_with(&mut costs, texts, configuration, NEVER - 1, STEPS)?.found();
        Ok(pieces.map_or(Ok(None), |pieces| tokens_of(&endings.counts.vocabulary, &pieces))?)
    }

    /// At most `most` tokens that complete the text from a place to which a token of a narrowed mask led: the path for
    /// which the mask kept the token, or else one found by the same kind of search. Another kind of search may first
    /// find a longer path. Paths of other masks come last; they help if the mask was that of another matcher.
    pub fn path_to_end_after(
        &mut self,
        endings: &mut Endings,
        left: Option<&PathsLeft>,
        (before, token): (SetId, u32),
        here: SetId,
        most: u64,
    ) -> Result<Option<Vec<u32>>, EngineError> {
        let places = self.places_after(endings, before)?;
        let place = places.0.iter().find(|place| place.tokens.has(token));
        let own = place.and_then(|place| left?.by_place.get(&place.first));
        let mut pieces = self.first_serving(own.map_or(&[], Vec::as_slice), here, most)?;
        if pieces.is_none() {
            let mut costs = endings.costs();
            pieces = self.complete_near(&mut costs, &mut endings.texts, here, most_looked_at(most))?;
        }
        let mut tokens = pieces.map_or(Ok(None), |pieces| tokens_of(&endings.counts.vocabulary, &pieces))?;
        if tokens.as_ref().is_none_or(|tokens| tokens.len() as u64 > most) {
            let mut kept = left.map(|left| left.all.clone()).unwrap_or_default();
            kept.extend(place.map(|place| lock(&place.known).paths.clone()).unwrap_or_default());
            if let Some(pieces) = self.first_serving(&kept, here, most)? {
                tokens = tokens_of(&endings.counts.vocabulary, &pieces)?;
            }
        }
        Ok(tokens)
    }

    /// The first of some paths that completes the text from a place within `most` tokens.
    fn first_serving(
        &mut self,
        paths: &[Arc<PathToEnd>],
        place: SetId,
        most: u64,
    ) -> Result<Option<Vec<Piece>>, EngineError> {
        for path in paths {
            if self.is_served(place, path, most)? {
                return Ok(Some(path.pieces.clone()));
            }
        }
        Ok(None)
    }

    /// Keeps those tokens of a mask after which at most `most` tokens complete the text, and returns the paths that
    /// show it. The known path, without its first token, is tried after each token.
    pub fn narrow(
        &mut self,
        endings: &mut Endings,
        configuration: SetId,
        most: u64,
        path: &[u32],
        mask: &mut [u32],
    ) -> Result<PathsLeft, EngineError> {
        let vocabulary = endings.counts.vocabulary.clone();
        let last = path.get(1..).map(|rest| PathToEnd::of_tokens(&vocabulary, rest)).transpose()?.map(Arc::new);
        let edges = self.edges_of(configuration, mask);
        let places = self.places_after(endings, configuration)?;
        let mut costs = endings.costs();
        let (known, paths, counted) = Default::default();
        let mut search = Search { most, searches: 0, known, paths, last, counted };
        // The most promising places come first, since only a limited number is searched.
        let mut open: Vec<&Place> = places.0.iter().filter(|place| place.at_most > most).collect();
        open.sort_by_key(|place| place.cost);
        let mut found = Vec::new();
        for place in open {
            let (closing, known) =
                self.tokens_that_close(endings, &mut costs, configuration, place, mask, &mut search)?;
            found.extend(known.map(|known| (place, known)));
            // If it does not matter which keys and elements were used, one token stands for all.
            if place.hangs_on != HangsOn::Nothing || closing.is_empty() {
                place.tokens.take_from(mask);
                closing.into_iter().for_each(|token| token_set::set(mask, token));
            }
        }
        for token in edges {
            let bytes = vocabulary.token_bytes(token);
            let after = self.step_token(configuration, token, bytes)?;
            match self.closes(endings, &mut costs, after, &mut Vec::new(), &mut search)? {
                true => token_set::set(mask, token),
                false => token_set::clear(mask, token),
            }
        }
        // Results are stored only at the end: an operation that is interrupted and repeated must find the same results.
        let mut left = PathsLeft { by_place: FxHashMap::default(), all: search.paths };
        for (place, known) in found {
            left.by_place.insert(place.first, known.paths.clone());
            place.keep(known);
        }
        Ok(left)
    }

    /// The tokens of a mask that lead to a place and after which at most `most` tokens complete the text; only the
    /// first of them where they are all equivalent.
    fn tokens_that_close(
        &mut self,
        endings: &mut Endings,
        costs: &mut Costs,
        configuration: SetId,
        place: &Place,
        mask: &[u32],
        search: &mut Search,
    ) -> Result<Closing, EngineError> {
        let vocabulary = endings.counts.vocabulary.clone();
        let mut tokens = match place.hangs_on {
            HangsOn::Nothing => vec![place.first],
            HangsOn::Written | HangsOn::Token => place.tokens.within(mask, usize::MAX),
        };
        let mut closing = match place.hangs_on {
            HangsOn::Nothing => Vec::new(),
            _ => self.sort_out_by_counting(endings, costs, configuration, &mut tokens, search)?,
        };
        if tokens.is_empty() || search.searches >= FEW {
            return Ok((closing, None));
        }
        // Where keys and elements must be new, a path that was too long after another text decides nothing.
        let (most, hangs_on_text, before) = (search.most, endings.hangs_on_text, search.searches);
        let decides = |kept: &PathToEnd| kept.tokens <= most || (!hangs_on_text && kept.is_too_long(most));
        // After one text, paths with other keys and elements may be found that no search finds after another. A mask
        // must not depend on which texts came before it.
        let mut known = if hangs_on_text || !Switch::CompletionKnown.is_on() {
            Known::default()
        } else {
            lock(&place.known).clone()
        };
        known.paths.retain(|kept| decides(kept));
        let Known { paths, searches } = &mut known;
        let (mut shared, mut read) = (None::<SharedPath>, 0);
        for token in tokens {
            let Some(bytes) = vocabulary.token_bytes(token) else { continue };
            if let Some(shared) = shared.as_ref().filter(|shared| shared.serves(self, bytes))
                && (place.hangs_on == HangsOn::Written || shared.ends_equally(self, configuration, bytes)?)
            {
                closing.push(token);
                continue;
            }
            if read == MANY || paths.first().is_some_and(|path| path.is_too_long(most)) {
                continue;
            }
            let after = self.run(configuration, bytes)?;
            read += 1;
            if !self.closes(endings, costs, after, paths, search)? {
                continue;
            }
            closing.push(token);
            if shared.is_none()
                && Switch::CompletionShared.is_on()
                && place.hangs_on != HangsOn::Nothing
                && !self.machine.has_names()
                && let Some(path) = paths.first().filter(|path| path.tokens <= most)
            {
                shared = SharedPath::new(self, configuration, bytes, &path.pieces)?;
            }
        }
        // A known path counts as if it had been searched for, so that no more tokens are kept than without it.
        match search.searches - before {
            0 if !paths.is_empty() => search.searches += *searches,
            looked_for => *searches = looked_for,
        }
        let is_decided = paths.first().is_some_and(|path| decides(path));
        Ok((closing, is_decided.then_some(known)))
    }

    /// Decides some of these tokens by counting and removes them from the list. Returns those that complete the text.
    fn sort_out_by_counting(
        &mut self,
        endings: &mut Endings,
        costs: &mut Costs,
        configuration: SetId,
        tokens: &mut Vec<u32>,
        search: &mut Search,
    ) -> Result<Vec<u32>, EngineError> {
        let vocabulary = endings.counts.vocabulary.clone();
        let (mut closing, mut open) = (Vec::new(), Vec::new());
        for (at, &token) in tokens.iter().enumerate() {
            let Some(bytes) = vocabulary.token_bytes(token) else { continue };
            let after = self.run(configuration, bytes)?;
            let Endings { numbers, counts, texts, .. } = endings;
            let (plans, least) = self.plans(numbers, &mut search.counted, counts, costs, texts, after)?;
            if plans.iter().any(|plan| plan.most <= search.most) {
                closing.push(token);
            } else if least <= search.most {
                open.push(token);
            }
            // All tokens that lead to the same place are within the same arrays.
            if plans.is_empty() && least == 0 {
                open.extend(&tokens[at + 1..]);
                break;
            }
        }
        *tokens = open;
        Ok(closing)
    }

    /// At most `most` tokens that complete the text by a path found by counting; `None` where there is none.
    pub fn path_to_end_by_counting(
        &mut self,
        endings: &mut Endings,
        here: SetId,
        most: u64,
    ) -> Result<Option<Vec<u32>>, EngineError> {
        let mut costs = endings.costs();
        let Endings { numbers, counts, texts, .. } = endings;
        let (plans, _) = self.plans(numbers, &mut Counted::default(), counts, &mut costs, texts, here)?;
        let Some(plan) = plans.into_iter().min_by_key(|plan| plan.most).filter(|plan| plan.most <= most) else {
            return Ok(None);
        };
        let Some(pieces) = plan.pieces() else { return Ok(None) };
        let leads = self.leads_to_the_end(here, &pieces)?;
        debug_assert!(leads, "numbers that an array does not have complete it");
        match leads {
            true => Ok(tokens_of(&endings.counts.vocabulary, &pieces)?),
            false => Ok(None),
        }
    }

    /// Whether a path of at most `search.most` tokens completes the text from a place. A path from a similar place is
    /// tried first, and a path that is found is stored for similar places.
    fn closes(
        &mut self,
        endings: &mut Endings,
        costs: &mut Costs,
        place: SetId,
        paths: &mut Vec<Arc<PathToEnd>>,
        search: &mut Search,
    ) -> Result<bool, EngineError> {
        if let Some(&closes) = search.known.get(&place).filter(|_| Switch::CompletionMerged.is_on()) {
            return Ok(closes);
        }
        let known = paths.first().cloned();
        let closes = match known {
            Some(kept) if kept.is_too_long(search.most) => false,
            Some(kept) if self.is_served(place, &kept, search.most)? => {
                search.note(kept);
                true
            }
            _ if search.searches >= FEW => return Ok(false),
            _ => {
                let found = match search.last.clone().filter(|_| Switch::CompletionLast.is_on()) {
                    Some(last) if self.is_served(place, &last, search.most)? => last,
                    _ => Arc::new(self.path_within(endings, costs, place, search.most)?),
                };
                search.searches += 1;
                let closes = found.tokens <= search.most;
                if closes {
                    search.note(found.clone());
                }
                // The stored path used elements that the text now has, but tokens that may come were kept for it, so it
                // stays.
                paths.retain(|path| path.tokens != NEVER);
                if closes || paths.is_empty() {
                    paths.insert(0, found);
                    paths.truncate(FEW);
                }
                closes
            }
        };
        search.known.insert(place, closes);
        Ok(closes)
    }

    /// Searches for a path from a place, within a limit that depends on `most`.
    fn path_within(
        &mut self,
        endings: &mut Endings,
        costs: &mut Costs,
        place: SetId,
        most: u64,
    ) -> Result<PathToEnd, EngineError> {
        let most = most_looked_at(most);
        match self.complete_with(costs, &mut endings.texts, place, most, LOOKED_AT) {
            Ok(Completion::Found(pieces)) => PathToEnd::of(&endings.counts.vocabulary, pieces),
            Ok(Completion::TooLong(_) | Completion::Never) => Ok(PathToEnd::none(most)),
            Err(EngineError::CompletionTooCostly(_)) => Ok(PathToEnd::none(NEVER)),
            Err(error) => Err(error),
        }
    }

    /// Whether a path of at most `most` tokens known from another place also completes the text from here.
    fn is_served(&mut self, place: SetId, path: &PathToEnd, most: u64) -> Result<bool, EngineError> {
        Ok(path.tokens <= most && self.leads_to_the_end(place, &path.pieces)?)
    }

    /// Whether a path known from another place also completes the text from here.
    pub fn leads_to_the_end(&mut self, place: SetId, pieces: &[Piece]) -> Result<bool, EngineError> {
        let mut here = place;
        for piece in pieces {
            here = match piece {
                Piece::Text(text) => self.run(here, text)?,
                Piece::Token(token) => self.step_token(here, *token, None)?,
            };
            if here == SetId::EMPTY {
                return Ok(false);
            }
        }
        Ok(self.stacks.has_bottom(here))
    }

    /// The cost of completing the text from a place, as if keys and elements were new.
    fn least(&mut self, endings: &mut Endings, costs: &mut Costs, place: SetId) -> Result<u64, EngineError> {
        if self.stacks.has_bottom(place) {
            return Ok(0);
        }
        let paths = self.paths(costs, &mut endings.texts, place)?;
        Ok(paths.first().map_or(NEVER, |&(cost, _)| cost))
    }

    /// The tokens of a mask that the grammar names as single tokens.
    fn edges_of(&self, configuration: SetId, mask: &[u32]) -> Vec<u32> {
        if !self.machine.tokens.any() {
            return Vec::new();
        }
        let mut edges = vec![0; mask.len()];
        self.token_edges(configuration, &mut edges);
        edges.iter_mut().zip(mask).for_each(|(edges, mask)| *edges &= mask);
        (0..edges.len() as u32 * token_set::BITS).filter(|&token| token_set::get(&edges, token)).collect()
    }

    /// The places to which tokens lead from a configuration, as if every key and element were new, with the cost of
    /// completing the text from each. Everything below is tracked as read, so the cached places are valid wherever all
    /// of that is equal.
    fn places_after(&mut self, endings: &mut Endings, configuration: SetId) -> Result<Arc<Places>, EngineError> {
        if Switch::CompletionPlaces.is_on()
            && let Some(places) = endings.places.find(self.machine, self.stacks, configuration)
        {
            return Ok(places.clone());
        }
        let places = Arc::new(self.in_mode(Mode::Optimistic, |run| run.places_if_new(endings, configuration))?);
        if let Some(sets) = self.all_below(configuration) {
            endings.places.keep(self.machine, self.stacks, configuration, &sets, &places, places.bytes());
        }
        Ok(places)
    }

    fn places_if_new(&mut self, endings: &mut Endings, configuration: SetId) -> Result<Places, EngineError> {
        let vocabulary = endings.counts.vocabulary.clone();
        let words = vocabulary.mask_words();
        let mut costs = endings.costs();
        let mut apart = endings.bounds.costs_apart(&costs);
        let keeps_text = self.machine.keeps_text();
        let groups = self.in_mode(Mode::Optimistic, |run| run.tokens_by_place(&vocabulary, configuration))?;
        // The place with the most tokens gets all tokens that no other place has.
        let most = (0..groups.len()).max_by_key(|&at| groups[at].1.len());
        let others = groups.iter().enumerate().filter(|&(at, _)| Some(at) != most);
        let others: Vec<u32> = others.flat_map(|(_, (_, tokens))| tokens).copied().collect();
        let mut all = Vec::with_capacity(groups.len());
        for (at, ((place, is_unverified), tokens)) in groups.into_iter().enumerate() {
            let cost = self.least(endings, &mut costs, place)?;
            let writes_key = self.in_additional_keys(place).next().is_some();
            let spare = if writes_key { NEW_KEY } else { 0 };
            // If something may not be new, the cheapest continuation may be unavailable.
            let at_most = match endings.bounds.is_exact && !is_unverified && Switch::CompletionExact.is_on() {
                _ if !endings.is_bounded => NEVER,
                true => cost.saturating_add(spare),
                false if !is_unverified && self.stacks.has_bottom(place) => 0,
                // The stack alone does not tell the cost of elements that count and of keys that must be new.
                false => {
                    let costs = apart.as_mut().unwrap_or(&mut costs);
                    endings.bounds.after_a_token(self, costs, place)?.saturating_add(1)
                }
            };
            let hangs_on = match keeps_text || writes_key {
                _ if is_unverified => HangsOn::Token,
                true if self.machine.has_names() => HangsOn::Token,
                true => HangsOn::Written,
                false => HangsOn::Nothing,
            };
            let list = match Some(at) == most && tokens.len() > words && Switch::CompletionLists.is_on() {
                true => TokenList::AllBut(bits_of(&others, &vocabulary, words)),
                false => TokenList::of(&tokens, &vocabulary, words),
            };
            all.push(Place { cost, at_most, hangs_on, first: tokens[0], tokens: list, known: Mutex::default() });
        }
        Ok(Places(all.into()))
    }

    /// The sets that can be reached from a configuration; `None` where there are many.
    fn all_below(&self, configuration: SetId) -> Option<Vec<SetId>> {
        let mut sets = Vec::new();
        let mut work = vec![configuration];
        while let Some(set) = work.pop() {
            for entry in self.stacks.entries(set).iter().filter(|&&entry| entry != Entry::BOTTOM) {
                if !sets.contains(&entry.below) {
                    // Then the places after the configuration are not cached.
                    if sets.len() == MANY {
                        return None;
                    }
                    sets.push(entry.below);
                    work.push(entry.below);
                }
            }
        }
        Some(sets)
    }

    /// The tokens with bytes, grouped by the places to which they lead as if every key and element were new, and by
    /// whether that is unverified.
    #[expect(clippy::type_complexity, reason = "a list of groups, named where it is used")]
    fn tokens_by_place(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
    ) -> Result<Vec<((SetId, bool), Vec<u32>)>, EngineError> {
        let trie = vocabulary.trie();
        self.with_memo(configuration, |run, memo, start| {
            let mut path = vec![(start, false)];
            // By twice the number of the place, and one more where it is unverified.
            let mut groups: Vec<Vec<u32>> = Vec::new();
            let mut node = 0;
            while node < trie.len() {
                path.truncate(trie.depth(node));
                let &(above, is_assumed) = path.last().expect("the path begins before the first byte");
                let here = run.known_step(memo, above, trie.byte(node))?;
                if here.is_empty() {
                    node += trie.size(node);
                    continue;
                }
                let is_assumed = is_assumed || here.assumes();
                if let Some(token) = trie.entry_at(node) {
                    let group = 2 * here.number() as usize + usize::from(is_assumed);
                    if groups.len() <= group {
                        groups.resize_with(group + 1, Vec::new);
                    }
                    groups[group].push(token);
                }
                path.push((here, is_assumed));
                node += 1;
            }
            let found = groups.into_iter().enumerate().filter(|(_, tokens)| !tokens.is_empty());
            Ok(found.map(|(group, tokens)| ((memo.configuration(group as u32 / 2), group % 2 == 1), tokens)).collect())
        })
    }
}

/// The greatest estimated cost of a path that is searched for.
fn most_looked_at(most: u64) -> u64 {
    most.saturating_mul(FAR).saturating_add(FURTHER)
}

/// Whether at most one counter of an array needs elements, and it has no maximum.
fn is_counted_once(items: &Items) -> bool {
    items.contains.len() <= 1 && items.contains.iter().all(|(_, max)| max.is_none())
}
