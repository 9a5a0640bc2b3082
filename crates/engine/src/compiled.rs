//! A grammar compiled for a vocabulary: immutable and shared between threads, with almost nothing computed yet.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use stencilm_grammar::passes::children;
use stencilm_grammar::{Grammar, Items, Mark, Node, NodeId};
use stencilm_support::{CancelToken, FEW, LOOKED_AT, Mutex, Waits, Watch, let_go, lock, memory, try_lock};

use crate::canonical::masks::CanonicalMasks;
use crate::completion::narrowing::{AllEndings, Endings};
use crate::error::EngineError;
use crate::lexeme::shared::{Lane, Lexemes, MAX_LANES, SharedLexemes, User};
use crate::lexeme::single_tokens;
use crate::lexeme::single_tokens::TokenEdges;
use crate::limits::{LexiconLimits, Limits};
use crate::machine::capturing::capturing;
use crate::machine::layout::Machine;
use crate::machine::marks::Marks;
use crate::mask::cache::KeptMask;
use crate::mask::pipeline::{DecidedMask, Masks, PlainMask};
use crate::parse::assumptions::Assumptions;
use crate::parse::stepper::{Mode, Run, Scratch};
use crate::shared::Vocabulary;
use crate::state::stacks::{NIL, SetId, Stacks};

/// A grammar compiled for a vocabulary. All its matchers share what is built while they run.
pub struct CompiledGrammar {
    grammar: Arc<Grammar>,
    vocabulary: Arc<Vocabulary>,
    tokens: Arc<TokenEdges>,
    /// For every node, whether it contains a capture; empty where the grammar has none.
    capturing: Vec<bool>,
    limits: Limits,
    /// The constant part of the memory, computed when first asked for.
    grammar_bytes: OnceLock<usize>,
    /// The memory of the machine and the masks when it was last measured.
    measured: AtomicUsize,
    /// The marks that the grammar has.
    marks: Marks,
    lexeme_cache: Arc<SharedLexemes>,
    layouts: Arc<Layouts>,
    /// The masks whose rows were given out last, by the numbers of the rows.
    given: Mutex<VecDeque<(u32, Arc<KeptMask>)>>,
}

/// The layouts of one grammar, at most one for each generation of lexemes. Only this list keeps a layout alive, so that
/// it is dropped with its lexemes; a matcher keeps one only during a call.
pub(crate) struct Layouts {
    known: Mutex<Vec<Arc<Layout>>>,
    /// The lane of the grammar.
    lane: AtomicUsize,
    moves: AtomicUsize,
    /// How long its threads have waited for the lexemes of its lane.
    waits: Waits,
    /// Whether a batch has assigned its lane.
    is_spread: AtomicBool,
}

impl Layouts {
    /// An empty list, for a new grammar.
    fn new(shared: &SharedLexemes) -> Layouts {
        let spread = shared.next_lane();
        let lane = spread.unwrap_or_else(|| shared.lane_of_thread());
        Layouts {
            known: Mutex::default(),
            lane: AtomicUsize::new(lane.0),
            moves: AtomicUsize::new(0),
            waits: Waits::default(),
            is_spread: AtomicBool::new(spread.is_some()),
        }
    }

    fn lane(&self) -> Lane {
        Lane(self.lane.load(Ordering::Relaxed))
    }

    /// From now on builds the grammar in another lane. Its matchers read their texts there when they are used next.
    fn move_to(&self, lane: Lane) {
        if self.lane.swap(lane.0, Ordering::Relaxed) != lane.0 {
            let gone = std::mem::take(&mut *lock(&self.known));
            drop(gone);
        }
    }

    /// This list as the lexemes refer to it.
    fn as_user(self: &Arc<Layouts>) -> Weak<dyn User> {
        let layouts: Arc<dyn User> = self.clone();
        Arc::downgrade(&layouts)
    }

    /// The layout in these lexemes, if there is one.
    fn of(&self, lexemes: &Arc<Lexemes>) -> Option<Arc<Layout>> {
        lock(&self.known).iter().find(|known| Arc::ptr_eq(&known.lexemes, lexemes)).cloned()
    }

    /// Adds a layout and returns it, or returns the one that its lexemes already have. The flag says whether it was
    /// added.
    fn add(&self, layout: Arc<Layout>) -> (Arc<Layout>, bool) {
        let mut layouts = lock(&self.known);
        if let Some(known) = layouts.iter().find(|known| Arc::ptr_eq(&known.lexemes, &layout.lexemes)) {
            return (known.clone(), false);
        }
        layouts.push(layout.clone());
        (layout, true)
    }
}

impl User for Layouts {
    fn take(&self, lexemes: &Arc<Lexemes>) -> Box<dyn Send> {
        let mut layouts = lock(&self.known);
        let (taken, kept): (Vec<_>, _) = layouts.drain(..).partition(|layout| Arc::ptr_eq(&layout.lexemes, lexemes));
        *layouts = kept;
        Box::new(taken.into_iter().filter_map(Arc::into_inner).collect::<Vec<Layout>>())
    }
}

/// A layout held by a running call. If the lexemes are dropped meanwhile, they are freed when the call ends.
pub(crate) struct HeldLayout(Option<Arc<Layout>>);

impl HeldLayout {
    pub fn new(layout: Arc<Layout>) -> HeldLayout {
        HeldLayout(Some(layout))
    }

    /// The layout itself.
    pub fn layout(&self) -> &Arc<Layout> {
        self.0.as_ref().expect("a layout is held until it is dropped")
    }
}

impl Deref for HeldLayout {
    type Target = Layout;

    #[inline]
    fn deref(&self) -> &Layout {
        self.layout()
    }
}

impl Drop for HeldLayout {
    fn drop(&mut self) {
        if let Some(layout) = self.0.take().and_then(Arc::into_inner) {
            let bytes = layout.lexemes().held();
            let_go(layout, bytes);
        }
    }
}

/// What the matchers of a grammar build together, in one generation of lexemes. The states of a matcher are numbers in
/// it, so a matcher whose layout was dropped reads its text again.
pub(crate) struct Layout {
    pub(crate) vocabulary: Arc<Vocabulary>,
    /// The marks that the grammar has.
    pub marks: Marks,
    machine: Mutex<Machine>,
    shared: Arc<SharedLexemes>,
    lexemes: Arc<Lexemes>,
    /// The list of layouts that it belongs to.
    siblings: Weak<Layouts>,
    masks: Mutex<Masks>,
    pub(crate) canonical: Mutex<CanonicalMasks>,
    /// Data about paths to the end of texts, where a budget needed it.
    endings: Mutex<AllEndings>,
    max_stack_bytes: usize,
    /// The greatest duration of one operation, and what else may end it.
    milliseconds: u64,
    cancel: Option<CancelToken>,
}

/// The outcome of an operation.
struct Worked<T> {
    result: Result<T, EngineError>,
    /// Whether the lexemes hold more than before.
    has_grown: bool,
    /// How long the operation waited for the lexemes.
    waited: Duration,
}

impl CompiledGrammar {
    /// Compiles a grammar for a vocabulary. Only what takes long to import is built before the first matcher needs it.
    ///
    /// # Errors
    /// If the grammar names single tokens that the vocabulary does not have.
    pub fn new(grammar: Arc<Grammar>, vocabulary: Arc<Vocabulary>) -> Result<CompiledGrammar, EngineError> {
        CompiledGrammar::with_limits(grammar, vocabulary, Limits::default())
    }

    /// Compiles a grammar for a vocabulary within these limits.
    ///
    /// # Errors
    /// As [`CompiledGrammar::new`], and [`EngineError::GrammarTooLarge`].
    pub fn with_limits(
        grammar: Arc<Grammar>,
        vocabulary: Arc<Vocabulary>,
        limits: Limits,
    ) -> Result<CompiledGrammar, EngineError> {
        CancelToken::check(limits.cancel.as_ref())?;
        let count = grammar.exprs().own_len();
        if count > limits.grammar_expressions {
            return Err(EngineError::GrammarTooLarge { count, limit: limits.grammar_expressions });
        }
        let grammar = single_tokens::without_missing_tokens(grammar, &vocabulary)?;
        let tokens = Arc::new(TokenEdges::new(&grammar, &vocabulary)?);
        let lexeme_cache = vocabulary.lexeme_cache(LexiconLimits::from(&limits));
        let layouts = Arc::new(Layouts::new(&lexeme_cache));
        let lexemes = lexeme_cache.current(layouts.lane());
        let layout = Layout::new(&grammar, &vocabulary, &tokens, &limits, &lexeme_cache, lexemes, &layouts)?;
        if grammar.all_items().iter().any(Items::compares) {
            refuse_in_compared_elements(&grammar)?;
            layout.with(&mut Stacks::new(), |run| run.check_unique())?;
        }
        if count > LOOKED_AT {
            layout.with(&mut Stacks::new(), |run| run.machine.take_over_large_lexemes(run.lexeme_cache))?;
        }
        let capturing = capturing(&grammar);
        refuse_beside_names(layout.marks, !capturing.is_empty())?;
        let compiled = CompiledGrammar {
            marks: layout.marks,
            grammar,
            vocabulary,
            tokens,
            capturing,
            limits,
            grammar_bytes: OnceLock::new(),
            measured: AtomicUsize::new(0),
            lexeme_cache,
            layouts,
            given: Mutex::default(),
        };
        compiled.enter(layout);
        Ok(compiled)
    }

    /// The limits of the grammar and its matchers.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The single tokens that the grammar names.
    pub(crate) fn tokens(&self) -> &TokenEdges {
        &self.tokens
    }

    /// Whether the grammar declares names to which later parts refer.
    pub fn declares_names(&self) -> bool {
        self.marks.names
    }

    /// Whether the grammar has parts with token budgets.
    pub fn has_budgets(&self) -> bool {
        self.marks.budgets
    }

    /// The kinds of marks that the grammar has.
    pub(crate) fn marks(&self) -> Marks {
        self.marks
    }

    /// The grammar.
    pub fn grammar(&self) -> &Arc<Grammar> {
        &self.grammar
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Approximate bytes of memory held by the grammar and its machine, without the vocabulary and the lexemes, which
    /// other grammars share. Never waits: while another thread works with the grammar, it is the previous value.
    pub fn memory_bytes(&self) -> usize {
        let layouts = try_lock(&self.layouts.known).map(|layouts| layouts.clone());
        if let Some(layouts) = layouts
            && let Some(held) = layouts.iter().map(|layout| layout.memory_bytes()).sum::<Option<usize>>()
        {
            self.measured.store(held, Ordering::Relaxed);
        }
        let own = || {
            let captured = memory::of_list(&self.capturing);
            memory::of_shared::<CompiledGrammar>(1)
                + captured
                + self.tokens.memory_bytes()
                + self.grammar.memory_bytes()
        };
        self.grammar_bytes.get_or_init(own) + self.measured.load(Ordering::Relaxed)
    }

    /// For every node, whether it contains a capture; empty where the grammar has none.
    pub(crate) fn capturing(&self) -> &[bool] {
        &self.capturing
    }

    /// The current layout, for a new matcher.
    pub(crate) fn layout(&self) -> Arc<Layout> {
        loop {
            let lexemes = self.lexeme_cache.current(self.layouts.lane());
            if let Some(known) = self.layouts.of(&lexemes) {
                return known;
            }
            let (grammar, vocabulary, shared) = (&self.grammar, &self.vocabulary, &self.lexeme_cache);
            let fresh = Layout::new(grammar, vocabulary, &self.tokens, &self.limits, shared, lexemes, &self.layouts);
            let fresh = fresh.expect("what is wrong with the marks of a grammar showed the first time");
            if let Some(layout) = self.enter(fresh) {
                return layout;
            }
        }
    }

    /// Registers a layout, so that it is kept as long as its lexemes; `None` where they were dropped meanwhile.
    fn enter(&self, fresh: Layout) -> Option<Arc<Layout>> {
        let (layout, is_new) = self.layouts.add(Arc::new(fresh));
        if is_new && !self.lexeme_cache.enter(&layout.lexemes, self.layouts.as_user()) {
            self.layouts.take(&layout.lexemes);
            return None;
        }
        Some(layout)
    }

    /// Assigns the grammar a lane, in turn with other grammars, for a batch with this many threads. Does so only once.
    pub(crate) fn spread(&self, threads: usize) {
        if self.layouts.is_spread.load(Ordering::Relaxed) || self.layouts.is_spread.swap(true, Ordering::Relaxed) {
            return;
        }
        self.lexeme_cache.spread(threads);
        if let Some(lane) = self.lexeme_cache.next_lane() {
            self.layouts.move_to(lane);
        }
    }

    #[cfg(test)]
    pub(crate) fn move_to(&self, lane: Lane) {
        self.layouts.move_to(lane);
    }

    /// The number of its lane. Threads that work with grammars in different lanes do not wait for each other.
    pub(crate) fn lane(&self) -> usize {
        self.layouts.lane().0
    }

    /// Begins new lexemes for future matchers, because those of a layout have reached a limit: a text that needs too
    /// much must not affect the next one.
    pub(crate) fn retire(&self, full: &Layout) {
        self.lexeme_cache.retire(&full.lexemes);
    }

    /// The number of a row from which a mask differs in few tokens. The row is kept for a while, so that the caller can
    /// ask for its words.
    pub(crate) fn give_row(&self, kept: Arc<KeptMask>) -> u32 {
        let row = kept.row(self.vocabulary.named());
        let mut given = lock(&self.given);
        if row != 0 && given.iter().all(|&(known, _)| known != row) {
            if given.len() >= FEW {
                given.pop_front();
            }
            given.push_back((row, kept));
        }
        row
    }
}

impl Layout {
    fn new(
        grammar: &Arc<Grammar>,
        vocabulary: &Arc<Vocabulary>,
        tokens: &Arc<TokenEdges>,
        limits: &Limits,
        shared: &Arc<SharedLexemes>,
        lexemes: Arc<Lexemes>,
        siblings: &Arc<Layouts>,
    ) -> Result<Layout, EngineError> {
        let machine = Machine::new(grammar.clone(), tokens.clone())?;
        let horizon = vocabulary.trie().max_depth();
        Ok(Layout {
            vocabulary: vocabulary.clone(),
            marks: machine.marks,
            machine: Mutex::new(machine),
            shared: shared.clone(),
            lexemes,
            siblings: Arc::downgrade(siblings),
            masks: Mutex::new(Masks::new(limits.mask_cache_bytes, horizon)),
            canonical: Mutex::new(CanonicalMasks::new(limits.mask_cache_bytes, horizon)),
            endings: Mutex::default(),
            max_stack_bytes: limits.stack_bytes,
            milliseconds: limits.milliseconds,
            cancel: limits.cancel.clone(),
        })
    }

    /// The lexemes in which it is built.
    pub(crate) fn lexemes(&self) -> &Lexemes {
        &self.lexemes
    }

    /// Whether a thread waits for a lock that an operation holds.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.masks.is_waited_for() || self.machine.is_waited_for() || self.lexemes.is_waited_for()
    }

    /// Hands the locks to the threads that wait for them. To be called between two operations.
    pub(crate) fn give_way(&self) {
        self.machine.give_way();
        self.lexemes.give_way();
    }

    /// Whether no operation holds any of the locks.
    pub(crate) fn is_free(&self) -> bool {
        try_lock(&self.masks).is_some() && try_lock(&self.machine).is_some() && self.lexemes.are_free()
    }

    /// Bytes of memory held, without the lexemes; `None` while a thread works with it.
    pub(crate) fn memory_bytes(&self) -> Option<usize> {
        let machine = try_lock(&self.machine)?.memory_bytes();
        let masks = try_lock(&self.masks)?.memory_bytes();
        let canonical = try_lock(&self.canonical)?.memory_bytes();
        Some(memory::of_shared::<Layout>(1) + machine + masks + canonical)
    }

    /// Runs an operation with all locks held.
    pub(crate) fn with<T>(
        &self,
        stacks: &mut Stacks,
        operation: impl FnOnce(&mut Run<'_>) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        CancelToken::check(self.cancel.as_ref())?;
        let Worked { result, has_grown, waited } = self.with_locked(stacks, operation);
        if has_grown {
            self.shared.make_room(&self.lexemes);
        }
        self.note_wait(waited);
        result
    }

    /// Adds up how long threads have waited for the lexemes. If that is too long in total, the grammar moves to another
    /// lane.
    #[inline]
    pub(crate) fn note_wait(&self, waited: Duration) {
        if !waited.is_zero() && self.siblings.upgrade().is_some_and(|own| own.waits.are_too_long_with(waited)) {
            self.leave();
        }
    }

    /// Moves the grammar to another lane, because others worked for long with the lexemes of this one. This happens at
    /// most as often as there are lanes, since its matchers then read their texts again, and its masks are computed
    /// again.
    #[cold]
    fn leave(&self) {
        let Some(siblings) = self.siblings.upgrade() else { return };
        if siblings.moves.fetch_add(1, Ordering::Relaxed) < MAX_LANES
            && let Some(lane) = self.shared.lane_beside(siblings.lane())
        {
            siblings.move_to(lane);
        }
    }

    /// The same, and returns what has to be done after the locks are released.
    fn with_locked<T>(
        &self,
        stacks: &mut Stacks,
        operation: impl FnOnce(&mut Run<'_>) -> Result<T, EngineError>,
    ) -> Worked<T> {
        let mut machine = lock(&self.machine);
        let mut lexeme_cache = self.lexemes.lock();
        lexeme_cache.begin();
        stacks.begin(self.max_stack_bytes);
        let mut scratch = lexeme_cache.extensions.take::<Scratch>();
        let mut run = Run {
            scratch: &mut scratch,
            machine: &mut machine,
            lexeme_cache: &mut lexeme_cache,
            stacks,
            mode: Mode::Exact,
            names: NIL,
            text: None,
            assumed: Assumptions::default(),
            tokens: 0,
            spent_at: None,
            known: None,
            compared: None,
        };
        let result = Watch::new(self.milliseconds, None).until(self.cancel.clone()).over(|| operation(&mut run));
        lexeme_cache.extensions.put(scratch);
        let (waited, has_grown) = (lexeme_cache.waited(), self.lexemes.note(&mut lexeme_cache));
        Worked { result, has_grown, waited }
    }

    /// Runs an operation with all locks held, and with the data about paths to the end of texts.
    pub(crate) fn with_endings<T>(
        &self,
        stacks: &mut Stacks,
        configuration: SetId,
        operation: impl FnOnce(&mut Run<'_>, &mut Endings) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let mut endings = lock(&self.endings);
        self.with(stacks, |run| {
            let endings = endings.at(run, self.vocabulary.tokens(), configuration)?;
            operation(run, endings)
        })
    }

    /// Writes the mask of a configuration, without stop tokens, from the cache if it is there. With `report`, the
    /// result tells what the mask depends on. What the computation adds to `stacks` stays there.
    pub(crate) fn plain_mask(
        &self,
        stacks: &mut Stacks,
        configuration: SetId,
        mask: &mut [u32],
        report: bool,
    ) -> Result<PlainMask, EngineError> {
        Ok(self.decide_mask(stacks, configuration, mask, report)?.finish(mask))
    }

    /// The same before the mask is written; see [`Masks::decide`].
    pub(crate) fn decide_mask(
        &self,
        stacks: &mut Stacks,
        configuration: SetId,
        mask: &mut [u32],
        report: bool,
    ) -> Result<DecidedMask, EngineError> {
        let mut masks = lock(&self.masks);
        self.with(stacks, |run| masks.decide(run, &self.vocabulary, configuration, mask, report))
    }
}

/// A capture is parsed by itself, without the names declared before it; and a part that a budget ends may be half a
/// name.
fn refuse_beside_names(marks: Marks, capturing: bool) -> Result<(), EngineError> {
    match (marks.names, capturing, marks.budgets) {
        (true, true, _) => Err(EngineError::NotRun("a grammar that declares names and has captures")),
        (true, _, true) => Err(EngineError::NotRun("a grammar that declares names and has parts with max_tokens")),
        _ => Ok(()),
    }
}

/// A single token has no text to compare, and a part that a budget ends may repeat another one.
fn refuse_in_compared_elements(grammar: &Grammar) -> Result<(), EngineError> {
    let differing = [
        "an array whose elements must differ and may hold single tokens",
        "an array whose elements must differ and hold parts with max_tokens",
    ];
    let repeating = [
        "an array of which two elements must be equal and may hold single tokens",
        "an array of which two elements must be equal and hold parts with max_tokens",
    ];
    refuse_in_elements(grammar, Items::is_unique, differing)?;
    refuse_in_elements(grammar, Items::must_repeat, repeating)
}

fn refuse_in_elements(
    grammar: &Grammar,
    of_kind: fn(&Items) -> bool,
    [tokens, budgets]: [&'static str; 2],
) -> Result<(), EngineError> {
    let arrays = grammar.all_items().iter().filter(|items| of_kind(items));
    let mut work: Vec<NodeId> = arrays.flat_map(Items::elements).map(|element| element.value).collect();
    let mut seen = vec![false; grammar.nodes().len()];
    while let Some(id) = work.pop() {
        if std::mem::replace(&mut seen[id.0 as usize], true) {
            continue;
        }
        match grammar.node(id) {
            Node::Token(_) => {
                return Err(EngineError::NotRun(tokens));
            }
            Node::Marked { mark: Mark::MaxTokens(_), .. } => {
                return Err(EngineError::NotRun(budgets));
            }
            Node::Rule(rule) => work.push(grammar.rule(*rule).body),
            node => work.extend(children(grammar, node)),
        }
    }
    Ok(())
}
