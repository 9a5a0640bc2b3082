//! The state of one sequence in a compiled grammar: accept, mask, roll back, fork.
//!
//! The history is a list of configurations with the size of the memory at each; undoing truncates both.

use std::sync::{Arc, Weak};

use stencilm_grammar::Temperature;
use stencilm_support::{LimitExceeded, check_time, memory};

use crate::canonical::cursor::history::CursorHistory;
use crate::canonical::masks::CanonicalVerdict;
use crate::compiled::{CompiledGrammar, HeldLayout, Layout};
use crate::completion::narrowing::PathsLeft;
use crate::error::{EngineError, MatcherError};
use crate::parse::stepper::Run;
use crate::state::record::Record;
use crate::state::stacks::{Mark, SetId, Stacks};
use crate::state::whitespace::{Whitespace, WhitespaceBudget};

mod budget;
mod canonical_mask;
mod masks;
pub(crate) mod preparation;
mod whitespace;

/// How a matcher treats the end of a text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MatcherOptions {
    /// Stop tokens that replace the vocabulary's own.
    pub override_stop_tokens: Option<Vec<u32>>,
    /// Whether a complete text ends the sequence without a stop token.
    pub terminate_without_stop_token: bool,
    /// Whether only those tokens are allowed that the tokenizer itself would write for the text.
    pub canonical: bool,
    /// The number of tokens, without a stop token, within which the text must be complete. Masks keep the tokens after
    /// which that is possible.
    pub token_budget: Option<usize>,
    /// The number of whitespace bytes that a JSON text may have between its parts. Near that number, masks leave
    /// whitespace out.
    pub whitespace_budget: Option<usize>,
}

/// The token of a step that accepted a text.
const NO_TOKEN: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Step {
    configuration: SetId,
    /// The accepted token; [`NO_TOKEN`] where a text was accepted.
    token: u32,
    stopped: bool,
    /// The number of tokens accepted so far, where the grammar has budgets.
    tokens: u32,
    /// Whether the text is in a part whose budget is exhausted and which cannot end here.
    is_spent: bool,
    /// The number of bytes of texts accepted so far.
    texts: usize,
    /// The number of tokens of the budget spent so far.
    spent: usize,
    /// The whitespace so far, counted where it has a budget.
    whitespace: Whitespace,
    mark: Mark,
}

impl Step {
    /// The step before the first token.
    fn first(configuration: SetId, mark: Mark) -> Step {
        let (tokens, texts, spent, whitespace) = (0, 0, 0, Whitespace::default());
        Step { configuration, token: NO_TOKEN, stopped: false, tokens, is_spent: false, texts, spent, whitespace, mark }
    }
}

/// The state of a matcher's token budget.
#[derive(Clone)]
struct Budget {
    /// The number of tokens that the whole text may have.
    tokens: usize,
    /// A path to the end, and the step at which it begins.
    path: Option<(usize, Arc<[u32]>)>,
    /// At the first of these steps a bound showed that no mask up to the second one needs narrowing.
    free: Option<(usize, usize)>,
    /// The step of the last mask from which the budget removed tokens, and those tokens, one bit each.
    narrowed: Option<(usize, Arc<[u32]>)>,
    /// The step whose mask was narrowed last, and the paths to the end that its tokens lie on.
    left: Option<(usize, Arc<PathsLeft>)>,
    /// The mask that was narrowed last. Asking again at the same step gives it again.
    last_mask: Option<NarrowedMask>,
}

/// A mask near the end of a budget. It depends on what was accepted, and so only on the step as long as no earlier step
/// is taken back.
#[derive(Clone)]
struct NarrowedMask {
    step: usize,
    mask: Arc<[u32]>,
    /// The tokens that the budget removed, if any.
    withheld: Option<Arc<[u32]>>,
    /// The path to the end whose next token the mask kept; `None` where the text is complete.
    path: Option<Arc<[u32]>>,
}

impl NarrowedMask {
    /// Approximate bytes of memory held.
    fn memory_bytes(&self) -> usize {
        let words = self.mask.len() + self.withheld.as_ref().map_or(0, |withheld| withheld.len());
        memory::of_shared::<u32>(words + self.path.as_ref().map_or(0, |path| path.len()))
    }
}

/// The input of one step.
#[derive(Clone, Copy)]
enum Input<'a> {
    Text(&'a [u8]),
    /// A token that is read as its bytes.
    Token(u32, &'a [u8]),
    /// A token that the grammar may name by its text or id, and its bytes, if it may also be read as these.
    Named(u32, Option<&'a [u8]>),
}

impl Input<'_> {
    /// The number of tokens by which it reduces budgets.
    fn count(self) -> u32 {
        u32::from(!matches!(self, Input::Text(_)))
    }

    /// Its bytes.
    fn bytes(&self) -> &[u8] {
        match self {
            Input::Text(bytes) | Input::Token(_, bytes) => bytes,
            Input::Named(_, bytes) => bytes.unwrap_or_default(),
        }
    }

    fn read(self, run: &mut Run<'_>, from: SetId) -> Result<SetId, EngineError> {
        match self {
            Input::Text(bytes) | Input::Token(_, bytes) => run.run(from, bytes),
            Input::Named(id, bytes) => run.step_token(from, id, bytes),
        }
    }
}

/// The step after `now`, added to the stacks; `None`, and nothing added, where the input does not fit.
fn next_step(layout: &Layout, stacks: &mut Stacks, now: Step, input: Input<'_>) -> Result<Option<Step>, EngineError> {
    let has_budgets = layout.marks.budgets;
    let tokens = if has_budgets { now.tokens.saturating_add(input.count()) } else { 0 };
    let result = layout.with(stacks, |run| {
        (run.tokens, run.spent_at) = (tokens, now.is_spent.then_some(now.tokens));
        let configuration = input.read(run, now.configuration)?;
        if !has_budgets || configuration == SetId::EMPTY {
            return Ok((configuration, false));
        }
        run.settled(configuration, tokens)
    });
    if !result.as_ref().is_ok_and(|&(configuration, _)| configuration != SetId::EMPTY) {
        stacks.rewind(now.mark);
        return result.map(|_| None);
    }
    let (configuration, is_spent) = result?;
    let (token, texts) = match input {
        Input::Text(bytes) => (NO_TOKEN, now.texts + bytes.len()),
        Input::Token(id, _) | Input::Named(id, _) => (id, now.texts),
    };
    let (spent, whitespace) = (now.spent + usize::from(token != NO_TOKEN), now.whitespace);
    let mark = stacks.mark();
    Ok(Some(Step { configuration, token, stopped: false, tokens, is_spent, texts, spent, whitespace, mark }))
}

/// The state of one sequence. Forking is cheap: the memory is copied when one of the two changes.
#[derive(Clone)]
pub struct GrammarMatcher {
    compiled: Arc<CompiledGrammar>,
    /// The layout that the states belong to. A matcher does not keep it alive while nobody works with it.
    layout: Weak<Layout>,
    stacks: Arc<Stacks>,
    history: Vec<Step>,
    /// The texts that were accepted without tokens, concatenated.
    texts: Arc<Vec<u8>>,
    /// A record of what was accepted, where the grammar has captures.
    record: Option<Arc<Record>>,
    /// The tokenizer's state after each step, where only canonical tokens are allowed.
    cursors: Option<CursorHistory>,
    /// What the canonical mask of the current step has found.
    verdict: Option<CanonicalVerdict>,
    stop_token_ids: Arc<[u32]>,
    terminate_without_stop_token: bool,
    budget: Option<Budget>,
    whitespace: Option<WhitespaceBudget>,
}

impl GrammarMatcher {
    /// A matcher before the first token.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when the first lexemes cannot be built within the limits,
    /// [`MatcherError::StopTokenOutOfRange`] for a stop token that the vocabulary does not have,
    /// [`MatcherError::NoEncoding`] for canonical tokens without a vocabulary that knows its tokenizer's merges,
    /// [`MatcherError::BudgetTooSmall`] for a budget within which no complete text of the grammar is found.
    pub fn new(compiled: Arc<CompiledGrammar>, options: &MatcherOptions) -> Result<GrammarMatcher, MatcherError> {
        let watch = compiled.limits().watch();
        watch.over(|| GrammarMatcher::by_parts(compiled, options))
    }

    fn by_parts(compiled: Arc<CompiledGrammar>, options: &MatcherOptions) -> Result<GrammarMatcher, MatcherError> {
        let vocab_size = compiled.vocabulary().vocab_size();
        let mut stop: Vec<u32> = match &options.override_stop_tokens {
            Some(ids) => ids.clone(),
            None => compiled.vocabulary().stop_token_ids().to_vec(),
        };
        stop.sort_unstable();
        stop.dedup();
        if let Some(&id) = stop.iter().find(|&&id| id as usize >= vocab_size) {
            return Err(MatcherError::StopTokenOutOfRange { id, vocab_size });
        }
        let cursors = match options.canonical {
            true if compiled.declares_names() => {
                return Err(
                    EngineError::NotRun("a grammar that declares names where only canonical tokens may come").into()
                );
            }
            true if compiled.has_budgets() => {
                return Err(EngineError::NotRun("a budget of tokens where only canonical ones may come").into());
            }
            true => Some(CursorHistory::new(compiled.vocabulary().encoding().ok_or(MatcherError::NoEncoding)?.clone())),
            false => None,
        };
        let mut stacks = Stacks::new();
        let layout = HeldLayout::new(compiled.layout());
        let configuration = layout
            .with(&mut stacks, |run| run.initial())
            .inspect_err(|error| retire_if_full(&compiled, &layout, error))?;
        let first = Step::first(configuration, stacks.mark());
        let begun = compiled.grammar().begun();
        let record = (!compiled.capturing().is_empty()).then(|| Arc::new(Record::begun(begun)));
        let mut matcher = GrammarMatcher {
            record,
            cursors,
            verdict: None,
            compiled,
            layout: Arc::downgrade(layout.layout()),
            stacks: Arc::new(stacks),
            history: vec![first],
            texts: Arc::default(),
            stop_token_ids: stop.into(),
            terminate_without_stop_token: options.terminate_without_stop_token,
            budget: None,
            whitespace: options.whitespace_budget.map(WhitespaceBudget::new),
        };
        if let Some(tokens) = options.token_budget {
            matcher.set_token_budget(tokens)?;
        }
        Ok(matcher)
    }

    /// The compiled grammar that the matcher follows.
    pub fn compiled(&self) -> &Arc<CompiledGrammar> {
        &self.compiled
    }

    /// The tokens that end this text, ascending.
    pub fn stop_token_ids(&self) -> &[u32] {
        &self.stop_token_ids
    }

    /// The number of tokens accepted and not rolled back; a text accepted at once counts as one.
    pub fn num_accepted_tokens(&self) -> usize {
        self.history.len() - 1
    }

    /// Approximate bytes of memory held by this sequence.
    pub fn memory_bytes(&self) -> usize {
        self.stacks.memory_bytes()
            + memory::of_list(&self.history)
            + memory::of_list(&self.texts)
            + self.record.as_ref().map_or(0, |record| record.memory_bytes())
            + self.cursors.as_ref().map_or(0, CursorHistory::memory_bytes)
            + self.budget.as_ref().and_then(|budget| budget.last_mask.as_ref()).map_or(0, NarrowedMask::memory_bytes)
    }

    fn now(&self) -> Step {
        *self.history.last().expect("history always holds the start")
    }

    /// Whether the text so far is complete, so that a stop token may come.
    pub fn is_completed(&self) -> bool {
        self.stacks.has_bottom(self.now().configuration)
    }

    /// Whether the sequence has ended: a stop token was accepted, or the text is complete and needs none.
    pub fn is_terminated(&self) -> bool {
        self.now().stopped || (self.terminate_without_stop_token && self.is_completed())
    }

    /// Accepts a token. Returns `false` and changes nothing where the token does not fit, is a special token, is out of
    /// range, is a stop token too early, or comes after the end.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when a limit is reached; nothing is changed.
    pub fn accept_token(&mut self, id: u32) -> Result<bool, MatcherError> {
        match self.cursors.is_some() {
            true => self.in_time(|matcher| matcher.accept_canonical(id)),
            false => self.accept_any(id),
        }
    }

    fn accept_any(&mut self, id: u32) -> Result<bool, MatcherError> {
        let now = self.now();
        if self.is_terminated() {
            return Ok(false);
        }
        let compiled = self.compiled.clone();
        let bytes = compiled.vocabulary().token_bytes(id);
        if self.stop_token_ids.contains(&id) {
            // A token that the grammar names is read as such, even if it is a stop token.
            if self.has_token_edge(id)? {
                return self.advance(Input::Named(id, None));
            }
            let complete = self.is_completed() && self.may_end_canonically();
            if complete {
                self.push(Step { token: id, stopped: true, ..now }, None, &[]);
            }
            return Ok(complete);
        }
        if compiled.tokens().any() {
            return self.advance(Input::Named(id, bytes));
        }
        let Some(bytes) = bytes else { return Ok(false) };
        self.advance(Input::Token(id, bytes))
    }

    /// The last accepted tokens, at most `limit`, oldest first; none before the last text that was accepted without
    /// tokens.
    pub fn recent_tokens(&self, limit: usize) -> Vec<u32> {
        let steps = self.history[1..].iter().rev().take(limit);
        let mut tokens: Vec<u32> = steps.map(|step| step.token).take_while(|&token| token != NO_TOKEN).collect();
        tokens.reverse();
        tokens
    }

    /// Accepts a token if it is viable, that is, if the grammar allows it and the tokenizer would write it.
    fn accept_canonical(&mut self, id: u32) -> Result<bool, MatcherError> {
        let is_edge = self.has_token_edge(id)?;
        if is_edge || self.stop_token_ids.contains(&id) {
            return Ok(self.may_end_canonically() && self.accept_any(id)?);
        }
        let Some(cursors) = &self.cursors else { return Ok(false) };
        let Some((cursor, unmerged)) = cursors.after(id) else { return Ok(false) };
        let verdict = self.verdict.as_ref().map(|verdict| verdict.is_viable(id, unmerged));
        if verdict == Some(false) || !self.accept_any(id)? {
            return Ok(false);
        }
        let cursors = self.cursors.as_mut().expect("only canonical matchers come here");
        cursors.truncate(self.history.len() - 2);
        cursors.push(id, cursor.clone());
        let encoding = cursors.encoding.clone();
        if verdict == Some(true) {
            return Ok(true);
        }
        let is_viable = self.probe(|run, here| run.goes_on_after(&encoding, here, id, &cursor));
        if !matches!(is_viable, Ok(true)) {
            self.rollback(1)?;
        }
        is_viable
    }

    /// Whether the text may end here with the tokens that the tokenizer would write.
    fn may_end_canonically(&self) -> bool {
        self.cursors.as_ref().is_none_or(CursorHistory::may_end)
    }

    /// Whether the grammar names this token as a single token at this point.
    fn has_token_edge(&mut self, id: u32) -> Result<bool, MatcherError> {
        if !self.compiled.tokens().any() {
            return Ok(false);
        }
        self.probe(|run, here| Ok(run.has_token_edge(here, id)))
    }

    /// Accepts bytes as one step of the history. Returns `false` and changes nothing where they do not fit.
    ///
    /// # Errors
    /// As [`GrammarMatcher::accept_token`].
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<bool, MatcherError> {
        if self.is_terminated() {
            return Ok(false);
        }
        self.in_time(|matcher| {
            let tokens = matcher.tokens_of_text(bytes)?;
            let accepted = matcher.advance(Input::Text(bytes))?;
            if accepted {
                matcher.spend_text(tokens);
            }
            Ok(accepted)
        })
    }

    /// Runs an operation of several parts under one deadline. Otherwise each part would have the whole time limit for
    /// itself.
    pub(crate) fn in_time<T>(&mut self, operation: impl FnOnce(&mut GrammarMatcher) -> T) -> T {
        let watch = self.compiled.limits().watch();
        watch.over(|| operation(self))
    }

    fn push(&mut self, step: Step, token: Option<u32>, bytes: &[u8]) {
        self.history.push(step);
        self.verdict = None;
        if let Some(cursors) = &mut self.cursors {
            cursors.push_boundary();
        }
        if let Some(record) = &mut self.record {
            Arc::make_mut(record).push(token, bytes);
        }
    }

    /// Appends a step for an input. Returns `false` and changes nothing where the grammar does not allow it.
    fn advance(&mut self, input: Input<'_>) -> Result<bool, MatcherError> {
        let layout = self.layout()?;
        let now = self.now();
        let step = next_step(&layout, Arc::make_mut(&mut self.stacks), now, input);
        let step = step.inspect_err(|error| retire_if_full(&self.compiled, &layout, error))?;
        let Some(mut step) = step else { return Ok(false) };
        if self.whitespace.is_some() {
            step.whitespace = now.whitespace.after(input.bytes());
        }
        match input {
            Input::Text(bytes) => {
                Arc::make_mut(&mut self.texts).extend_from_slice(bytes);
                self.push(step, None, bytes);
            }
            // If the grammar names no tokens, the record needs only the text.
            Input::Token(_, bytes) => self.push(step, None, bytes),
            Input::Named(id, bytes) => self.push(step, Some(id), bytes.unwrap_or_default()),
        }
        Ok(true)
    }

    /// The layout that the states belong to, held for one call. If it no longer exists, everything that was accepted is
    /// read again in a new layout.
    pub(crate) fn layout(&mut self) -> Result<HeldLayout, MatcherError> {
        match self.layout.upgrade() {
            Some(layout) => Ok(HeldLayout::new(layout)),
            None => self.read_again(),
        }
    }

    /// Reads everything that was accepted in a new layout, step by step, so that rolling back to each state works.
    #[cold]
    fn read_again(&mut self) -> Result<HeldLayout, MatcherError> {
        let layout = HeldLayout::new(self.compiled.layout());
        let (before, mut needed) = (layout.lexemes().held(), 0);
        let most = self.compiled.limits().working_bytes;
        let mut stacks = Stacks::new();
        let read = self.compiled.limits().watch().over(|| {
            let configuration = layout.with(&mut stacks, |run| run.initial())?;
            let mut history = Vec::with_capacity(self.history.len());
            history.push(Step { configuration, mark: stacks.mark(), ..self.history[0] });
            for step in &self.history[1..] {
                let step_before = step;
                check_time()?;
                let now = history[history.len() - 1];
                let again = match (step.stopped, step.token) {
                    (true, token) => Step { token, stopped: true, ..now },
                    (false, token) => {
                        let input = match token {
                            NO_TOKEN => Input::Text(&self.texts[now.texts..step.texts]),
                            id => self.input_of(id),
                        };
                        let step = next_step(&layout, &mut stacks, now, input)?;
                        let &Step { spent, whitespace, .. } = step_before;
                        let step = step.expect("what was accepted is accepted wherever it is read");
                        Step { spent, whitespace, ..step }
                    }
                };
                history.push(again);
                // At once, so that meanwhile the lexeme cache is not considered full because of what this text needs.
                let now_needed = layout.lexemes().held().saturating_sub(before);
                layout.lexemes().raise_floor(now_needed.saturating_sub(needed));
                needed = needed.max(now_needed);
                if needed > most {
                    return Err(LimitExceeded::Memory(most).into());
                }
            }
            Ok(history)
        });
        let history = read.inspect_err(|error| retire_if_full(&self.compiled, &layout, error))?;
        (self.history, self.stacks, self.verdict) = (history, Arc::new(stacks), None);
        self.layout = Arc::downgrade(layout.layout());
        Ok(layout)
    }

    /// How an accepted token that did not end the text was read.
    fn input_of(&self, id: u32) -> Input<'_> {
        let bytes = self.compiled.vocabulary().token_bytes(id);
        match bytes {
            _ if self.stop_token_ids.contains(&id) => Input::Named(id, None),
            Some(bytes) if !self.compiled.tokens().any() => Input::Token(id, bytes),
            bytes => Input::Named(id, bytes),
        }
    }

    /// Runs an operation that reads the accepted text from its beginning and so needs no states of the matcher.
    pub(crate) fn reread<T>(
        &self,
        operation: impl FnOnce(&mut Run<'_>) -> Result<T, EngineError>,
    ) -> Result<T, MatcherError> {
        let layout = HeldLayout::new(self.layout.upgrade().unwrap_or_else(|| self.compiled.layout()));
        let found = layout.with(&mut Stacks::new(), operation);
        Ok(found.inspect_err(|error| retire_if_full(&self.compiled, &layout, error))?)
    }

    /// The record of what was accepted, where the grammar has captures.
    pub(crate) fn record(&self) -> Option<&Record> {
        self.record.as_deref()
    }

    /// The temperature at which the grammar wants the next token sampled: that of the innermost part with one, or the
    /// highest of these where the text is ambiguous. `None` where no part has one.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when a limit is reached.
    pub fn temperature(&mut self) -> Result<Option<f64>, MatcherError> {
        if !self.compiled.marks().temperatures || self.is_terminated() {
            return Ok(None);
        }
        let temperature = self.probe(|run, here| run.temperature(here))?;
        Ok(temperature.map(Temperature::value))
    }

    /// Takes back the last `count` steps, a stop token included.
    ///
    /// # Errors
    /// [`MatcherError::RollbackPastStart`] when there are fewer; nothing is changed.
    pub fn rollback(&mut self, count: usize) -> Result<(), MatcherError> {
        let accepted = self.num_accepted_tokens();
        if count > accepted {
            return Err(MatcherError::RollbackPastStart { asked: count, accepted });
        }
        if count > 0 {
            self.verdict = None;
        }
        self.history.truncate(self.history.len() - count);
        self.roll_budget_back();
        if let Some(cursors) = &mut self.cursors {
            cursors.truncate(accepted - count);
        }
        if let Some(record) = &mut self.record
            && count > 0
        {
            Arc::make_mut(record).truncate(accepted - count);
        }
        let Step { mark, texts, .. } = self.now();
        if self.stacks.mark() != mark {
            Arc::make_mut(&mut self.stacks).rewind(mark);
        }
        if self.texts.len() != texts {
            Arc::make_mut(&mut self.texts).truncate(texts);
        }
        Ok(())
    }

    /// Takes everything back.
    pub fn reset(&mut self) {
        let accepted = self.num_accepted_tokens();
        self.rollback(accepted).expect("all accepted tokens can be rolled back");
    }

    /// A matcher in the same state and with the same history. The two are independent from now on.
    pub fn fork(&self) -> GrammarMatcher {
        self.clone()
    }

    /// Runs an operation on the current configuration and forgets whatever it added to the memory. The operation
    /// receives the number of the configuration, because that changes if the layout was replaced meanwhile.
    pub(crate) fn probe<T>(
        &mut self,
        operation: impl FnOnce(&mut Run<'_>, SetId) -> Result<T, EngineError>,
    ) -> Result<T, MatcherError> {
        let layout = self.layout()?;
        let now = self.now();
        let stacks = Arc::make_mut(&mut self.stacks);
        let result = layout.with(stacks, |run| {
            (run.tokens, run.spent_at) = (now.tokens.saturating_add(1), now.is_spent.then_some(now.tokens));
            operation(run, now.configuration)
        });
        stacks.rewind(now.mark);
        Ok(result.inspect_err(|error| retire_if_full(&self.compiled, &layout, error))?)
    }
}

fn retire_if_full(compiled: &CompiledGrammar, layout: &Layout, error: &EngineError) {
    // An interrupted or cancelled operation reached no limit, and is often repeated at once.
    let is_ended = |limit: &LimitExceeded| matches!(limit, LimitExceeded::Interrupted | LimitExceeded::Cancelled);
    if matches!(error, EngineError::Limit(limit) if !is_ended(limit)) {
        compiled.retire(layout);
    }
}
