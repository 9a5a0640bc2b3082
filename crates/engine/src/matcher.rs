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
    /// Stop tokens in place of the vocabulary's own.
    pub override_stop_tokens: Option<Vec<u32>>,
    /// Whether a complete text terminates the matcher without a stop token.
    pub terminate_without_stop_token: bool,
    /// Whether only tokens may come that the tokenizer itself would write for the text.
    pub canonical: bool,
    /// In how many tokens, a stop token not counted, the text must be complete: masks leave what keeps that possible.
    pub token_budget: Option<usize>,
    /// How many bytes of whitespace a JSON text may have between its parts: near that number masks leave them out.
    pub whitespace_budget: Option<usize>,
}

/// Stands for the token of a step that accepted a text.
const NO_TOKEN: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Step {
    configuration: SetId,
    /// The token that was accepted, [`NO_TOKEN`] where it was a text.
    token: u32,
    stopped: bool,
    /// How many tokens were accepted, where the grammar has budgets.
    tokens: u32,
    /// Whether the text is in a part whose budget is spent and that cannot end here.
    is_spent: bool,
    /// How many bytes of texts were accepted until then.
    texts: usize,
    /// How many tokens of a budget were spent until then.
    spent: usize,
    /// The whitespace until then, counted where there is a budget of it.
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

/// What a matcher knows of its budget.
#[derive(Clone)]
struct Budget {
    /// How many tokens the whole text may have.
    tokens: usize,
    /// A path to the end, and after how many steps it begins.
    path: Option<(usize, Arc<[u32]>)>,
    /// After so many steps it was found that up to so many of them no mask need be narrowed.
    free: Option<(usize, usize)>,
    /// The step whose mask was filled last, where the budget took something from it, and what: one bit for each token.
    narrowed: Option<(usize, Arc<[u32]>)>,
    /// The step whose mask was narrowed last, and by which paths to the end its tokens were left.
    left: Option<(usize, Arc<PathsLeft>)>,
    /// The mask that was narrowed last: who asks for it again at the same step, gets it again.
    last_mask: Option<NarrowedMask>,
}

/// A mask of a step near the end of a budget. It hangs on what was accepted, and that on the step, as long as none before it is
/// taken back.
#[derive(Clone)]
struct NarrowedMask {
    step: usize,
    mask: Arc<[u32]>,
    /// What the budget took from it, where it took anything.
    withheld: Option<Arc<[u32]>>,
    /// The path to the end whose next token it was left; `None` where the text is complete.
    path: Option<Arc<[u32]>>,
}

impl NarrowedMask {
    /// Bytes of memory held, about.
    fn memory_bytes(&self) -> usize {
        let words = self.mask.len() + self.withheld.as_ref().map_or(0, |withheld| withheld.len());
        memory::of_shared::<u32>(words + self.path.as_ref().map_or(0, |path| path.len()))
    }
}

/// What one step accepts.
#[derive(Clone, Copy)]
enum Input<'a> {
    Text(&'a [u8]),
    /// A token that is read as what it spells.
    Token(u32, &'a [u8]),
    /// A token that the grammar may ask for by its name or id, and what it spells where that may be read, too.
    Named(u32, Option<&'a [u8]>),
}

impl Input<'_> {
    /// By how many tokens it makes budgets smaller.
    fn count(self) -> u32 {
        u32::from(!matches!(self, Input::Text(_)))
    }

    /// What it spells.
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

/// The step after another one, and what it adds to the stacks; `None`, and nothing added, where it accepts nothing.
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

/// The state of one sequence. Cheap to fork; memory is copied when a fork goes its own way.
#[derive(Clone)]
pub struct GrammarMatcher {
    compiled: Arc<CompiledGrammar>,
    /// What the states are numbers of; not kept while nobody works with it.
    layout: Weak<Layout>,
    stacks: Arc<Stacks>,
    history: Vec<Step>,
    /// The texts that were accepted and are no tokens, one after the other.
    texts: Arc<Vec<u8>>,
    /// What was accepted, where the grammar has captures.
    record: Option<Arc<Record>>,
    /// How the tokenizer reads what was accepted, where only its own tokens may come.
    cursors: Option<CursorHistory>,
    /// What the canonical mask of the step that the sequence is at has found.
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
    /// [`MatcherError::Engine`] when the first lexemes cannot be laid out within the limits, and
    /// [`MatcherError::StopTokenOutOfRange`] for a stop token that the vocabulary does not have,
    /// [`MatcherError::NoEncoding`] for canonical tokens of a vocabulary that has not learned what they are,
    /// [`MatcherError::BudgetTooSmall`] for a budget in which no text of the grammar is known to be complete.
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

    /// What the matcher matches.
    pub fn compiled(&self) -> &Arc<CompiledGrammar> {
        &self.compiled
    }

    /// The tokens that end this text, ascending.
    pub fn stop_token_ids(&self) -> &[u32] {
        &self.stop_token_ids
    }

    /// How many tokens (or strings, each as one) were accepted and not rolled back.
    pub fn num_accepted_tokens(&self) -> usize {
        self.history.len() - 1
    }

    /// Bytes of memory held by this sequence, about.
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

    /// Whether the text so far is complete: a stop token may come.
    pub fn is_completed(&self) -> bool {
        self.stacks.has_bottom(self.now().configuration)
    }

    /// Whether the sequence is over: a stop token was accepted, or the text is complete and needs none.
    pub fn is_terminated(&self) -> bool {
        self.now().stopped || (self.terminate_without_stop_token && self.is_completed())
    }

    /// Accepts a token, or changes nothing and says `false`: when it does not fit, is a special token, is out of range,
    /// is a stop token too early, or comes after the end.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when a limit is reached; nothing is changed.
    pub fn accept_token(&mut self, id: u32) -> Result<bool, MatcherError> {
        match self.cursors.is_some() {
            true => self.in_time(|matcher| matcher.accept_canonical(id)),
            false => self.accept_any(id),
        }
    }

    /// Accepts a token that the grammar allows.
    fn accept_any(&mut self, id: u32) -> Result<bool, MatcherError> {
        let now = self.now();
        if self.is_terminated() {
            return Ok(false);
        }
        let compiled = self.compiled.clone();
        let bytes = compiled.vocabulary().token_bytes(id);
        if self.stop_token_ids.contains(&id) {
            // A token that the grammar names is read as what it names, also one that would stop.
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

    /// The last accepted tokens, at most `limit`, oldest first, as far as no text was accepted between or after them.
    pub fn recent_tokens(&self, limit: usize) -> Vec<u32> {
        let steps = self.history[1..].iter().rev().take(limit);
        let mut tokens: Vec<u32> = steps.map(|step| step.token).take_while(|&token| token != NO_TOKEN).collect();
        tokens.reverse();
        tokens
    }

    /// Accepts a token that the grammar allows and the tokenizer would write, if it is viable.
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

    /// Whether the text so far may end here as the tokenizer would write it.
    fn may_end_canonically(&self) -> bool {
        self.cursors.as_ref().is_none_or(CursorHistory::may_end)
    }

    /// Whether the grammar asks for a single token here and this is one.
    fn has_token_edge(&mut self, id: u32) -> Result<bool, MatcherError> {
        if !self.compiled.tokens().any() {
            return Ok(false);
        }
        self.probe(|run, here| Ok(run.has_token_edge(here, id)))
    }

    /// Accepts bytes as one step of the history, or changes nothing and says `false`.
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

    /// Runs an operation of several parts under one deadline: each of them would else have as long as all together may take.
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

    /// One step of the history after an input, or no change and `false` where the grammar does not allow it.
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
            // What is recorded is a text where no token can be asked for by name.
            Input::Token(_, bytes) => self.push(step, None, bytes),
            Input::Named(id, bytes) => self.push(step, Some(id), bytes.unwrap_or_default()),
        }
        Ok(true)
    }

    /// The layout that the states are numbers of, held for one call. Where it has gone, what was accepted is read again in
    /// another one.
    pub(crate) fn layout(&mut self) -> Result<HeldLayout, MatcherError> {
        match self.layout.upgrade() {
            Some(layout) => Ok(HeldLayout::new(layout)),
            None => self.read_again(),
        }
    }

    /// Reads what was accepted in a new layout, step by step, so that every state is there to roll back to.
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
                // At once, so that the lexemes are not taken for full meanwhile.
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

    /// How a token was read that was accepted and did not end the text.
    fn input_of(&self, id: u32) -> Input<'_> {
        let bytes = self.compiled.vocabulary().token_bytes(id);
        match bytes {
            _ if self.stop_token_ids.contains(&id) => Input::Named(id, None),
            Some(bytes) if !self.compiled.tokens().any() => Input::Token(id, bytes),
            bytes => Input::Named(id, bytes),
        }
    }

    /// Runs an operation that reads what was accepted from its beginning, so that the states of the matcher do not matter.
    pub(crate) fn reread<T>(
        &self,
        operation: impl FnOnce(&mut Run<'_>) -> Result<T, EngineError>,
    ) -> Result<T, MatcherError> {
        let layout = HeldLayout::new(self.layout.upgrade().unwrap_or_else(|| self.compiled.layout()));
        let found = layout.with(&mut Stacks::new(), operation);
        Ok(found.inspect_err(|error| retire_if_full(&self.compiled, &layout, error))?)
    }

    /// What was accepted, where the grammar has captures.
    pub(crate) fn record(&self) -> Option<&Record> {
        self.record.as_deref()
    }

    /// The temperature at which the grammar wants the next token sampled: that of the innermost part around it that has one,
    /// and the highest where the text can be read in several ways. `None` where no such part has one.
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

    /// Takes back the last `count` tokens, a stop token included.
    ///
    /// # Errors
    /// [`MatcherError::RollbackPastStart`] when fewer were accepted; nothing is changed.
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

    /// Back to before the first token.
    pub fn reset(&mut self) {
        let accepted = self.num_accepted_tokens();
        self.rollback(accepted).expect("all accepted tokens can be rolled back");
    }

    /// A matcher in the same state with the same history, independent from now on.
    pub fn fork(&self) -> GrammarMatcher {
        self.clone()
    }

    /// Runs an operation on the configuration after what was accepted, and forgets whatever it added to the memory. The
    /// number of the configuration is handed in, because it is another one where the lexemes have gone meanwhile.
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
    // What was interrupted or cancelled has reached no limit, and is often done again at once.
    let is_ended = |limit: &LimitExceeded| matches!(limit, LimitExceeded::Interrupted | LimitExceeded::Cancelled);
    if matches!(error, EngineError::Limit(limit) if !is_ended(limit)) {
        compiled.retire(layout);
    }
}
