//! A grammar times a vocabulary: frozen and shareable between threads, with almost nothing computed yet.

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
use crate::parse::stepper::{Assumptions, Mode, Run, Scratch};
use crate::shared::Vocabulary;
use crate::state::stacks::{NIL, SetId, Stacks};

/// A grammar compiled for a vocabulary. What is laid out on the way is shared by all its matchers.
pub struct CompiledGrammar {
    grammar: Arc<Grammar>,
    vocabulary: Arc<Vocabulary>,
    tokens: Arc<TokenEdges>,
    /// For every node whether a capture is in it; empty where there is none at all.
    capturing: Vec<bool>,
    limits: Limits,
    /// What the grammar holds, which never changes; found when it is first asked for.
    grammar_bytes: OnceLock<usize>,
    /// What the machine and the masks held when they were measured last.
    measured: AtomicUsize,
    /// The marks that the grammar has.
    marks: Marks,
    lexeme_cache: Arc<SharedLexemes>,
    layouts: Arc<Layouts>,
    /// The masks whose rows were given out last, by the numbers of these.
    given: Mutex<VecDeque<(u32, Arc<KeptMask>)>>,
}

/// The layouts of one grammar: at most one for each generation of the lexemes. Only they keep a layout, so that it goes
/// with its lexemes; matchers keep none but while they are working.
pub(crate) struct Layouts {
    known: Mutex<Vec<Arc<Layout>>>,
    /// The lane of the grammar.
    lane: AtomicUsize,
    moves: AtomicUsize,
    /// What its threads have waited for the lexemes of its lane.
    waits: Waits,
    /// Whether a batch has given it its lane.
    is_spread: AtomicBool,
}

impl Layouts {
    /// None yet, of a new grammar.
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

    /// Lays the grammar out in another lane from now on. Its matchers read their texts there when they are used next.
    fn move_to(&self, lane: Lane) {
        if self.lane.swap(lane.0, Ordering::Relaxed) != lane.0 {
            let gone = std::mem::take(&mut *lock(&self.known));
            drop(gone);
        }
    }

    /// As the lexemes know it.
    fn as_user(self: &Arc<Layouts>) -> Weak<dyn User> {
        let layouts: Arc<dyn User> = self.clone();
        Arc::downgrade(&layouts)
    }

    /// The layout in these lexemes.
    fn of(&self, lexemes: &Arc<Lexemes>) -> Option<Arc<Layout>> {
        lock(&self.known).iter().find(|known| Arc::ptr_eq(&known.lexemes, lexemes)).cloned()
    }

    /// Adds a layout, or gives the one that there is in its lexemes.
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

/// A layout as a running call holds it. Where the lexemes were let go meanwhile, they end with the call.
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

/// What the matchers of a grammar lay out together, in one generation of lexemes. The states of a matcher are numbers of it,
/// so a matcher whose layout has gone reads its text once more.
pub(crate) struct Layout {
    pub(crate) vocabulary: Arc<Vocabulary>,
    /// The marks that the grammar has.
    pub marks: Marks,
    machine: Mutex<Machine>,
    shared: Arc<SharedLexemes>,
    lexemes: Arc<Lexemes>,
    /// The layouts of the grammar, of which it is one.
    siblings: Weak<Layouts>,
    masks: Mutex<Masks>,
    pub(crate) canonical: Mutex<CanonicalMasks>,
    /// What is known of the paths to the end of texts, where a budget asked for it.
    endings: Mutex<AllEndings>,
    max_stack_bytes: usize,
    /// How long one operation may take, and what else ends it.
    milliseconds: u64,
    cancel: Option<CancelToken>,
}

/// What an operation leaves behind.
struct Worked<T> {
    result: Result<T, EngineError>,
    /// Whether the lexemes hold more than before.
    has_grown: bool,
    /// How long it waited for them.
    waited: Duration,
}

impl CompiledGrammar {
    /// Joins the two. Little is laid out before the first matcher asks: what takes long to take over of the grammar.
    ///
    /// # Errors
    /// For single tokens that the grammar asks for and the vocabulary does not have.
    pub fn new(grammar: Arc<Grammar>, vocabulary: Arc<Vocabulary>) -> Result<CompiledGrammar, EngineError> {
        CompiledGrammar::with_limits(grammar, vocabulary, Limits::default())
    }

    /// Joins the two, to be used within these limits.
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

    /// The limits that it is used within.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The single tokens that the grammar asks for.
    pub(crate) fn tokens(&self) -> &TokenEdges {
        &self.tokens
    }

    /// Whether the grammar declares names, to which later parts refer.
    pub fn declares_names(&self) -> bool {
        self.marks.names
    }

    /// Whether the grammar has parts with budgets of tokens.
    pub fn has_budgets(&self) -> bool {
        self.marks.budgets
    }

    /// The marks that the grammar has.
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

    /// Bytes of memory held by the grammar and its machine, about; not by the vocabulary and the lexemes, which
    /// other grammars share. Waits for nobody: while another thread works with the grammar, it is what it was before.
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

    /// For every node whether a capture is in it; empty where there is none at all.
    pub(crate) fn capturing(&self) -> &[bool] {
        &self.capturing
    }

    /// The layout for a new matcher.
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

    /// Keeps a layout for as long as its lexemes are kept; `None` where they have gone meanwhile.
    fn enter(&self, fresh: Layout) -> Option<Arc<Layout>> {
        let (layout, is_new) = self.layouts.add(Arc::new(fresh));
        if is_new && !self.lexeme_cache.enter(&layout.lexemes, self.layouts.as_user()) {
            self.layouts.take(&layout.lexemes);
            return None;
        }
        Some(layout)
    }

    /// Gives the grammar a lane of its own among those of other grammars, once, for a batch with so many threads.
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

    /// The number of its lane: threads that work with grammars of different lanes do not wait for each other.
    pub(crate) fn lane(&self) -> usize {
        self.layouts.lane().0
    }

    /// Begins new lexemes for matchers to come, because those of a layout have reached a limit: one text that asks for too
    /// much must not spoil the next.
    pub(crate) fn retire(&self, full: &Layout) {
        self.lexeme_cache.retire(&full.lexemes);
    }

    /// Gives out the number of a row from which a mask differs in few tokens, and keeps the row for who asks for it.
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

    /// The lexemes that it is laid out in.
    pub(crate) fn lexemes(&self) -> &Lexemes {
        &self.lexemes
    }

    /// Whether somebody waits for what an operation has in hand.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.masks.is_waited_for() || self.machine.is_waited_for() || self.lexemes.is_waited_for()
    }

    /// Lets those work that wait for what an operation has in hand: to be called between two of them.
    pub(crate) fn give_way(&self) {
        self.machine.give_way();
        self.lexemes.give_way();
    }

    /// Whether no operation has any of it in hand.
    pub(crate) fn is_free(&self) -> bool {
        try_lock(&self.masks).is_some() && try_lock(&self.machine).is_some() && self.lexemes.are_free()
    }

    /// Bytes of memory held, without the lexemes; `None` while somebody works with it.
    pub(crate) fn memory_bytes(&self) -> Option<usize> {
        let machine = try_lock(&self.machine)?.memory_bytes();
        let masks = try_lock(&self.masks)?.memory_bytes();
        let canonical = try_lock(&self.canonical)?.memory_bytes();
        Some(memory::of_shared::<Layout>(1) + machine + masks + canonical)
    }

    /// Runs an operation with all memory in hand.
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

    /// Takes note of how long a thread has waited for the lexemes. Where that is too long, all in all, they are left to the others.
    #[inline]
    pub(crate) fn note_wait(&self, waited: Duration) {
        if !waited.is_zero() && self.siblings.upgrade().is_some_and(|own| own.waits.are_too_long_with(waited)) {
            self.leave();
        }
    }

    /// Moves the grammar to another lane, because others worked for long with the lexemes of this one: as often as there are
    /// lanes at most, since its matchers then read their texts once more, and its masks are found once more.
    #[cold]
    fn leave(&self) {
        let Some(siblings) = self.siblings.upgrade() else { return };
        if siblings.moves.fetch_add(1, Ordering::Relaxed) < MAX_LANES
            && let Some(lane) = self.shared.lane_beside(siblings.lane())
        {
            siblings.move_to(lane);
        }
    }

    /// The same, with what is to be done when no lock is held any more.
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

    /// Runs an operation with all memory in hand, and with what is known of the paths to the end of texts.
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

    /// Writes the mask of a configuration, without stop tokens, from the cache where it is known; with `report` it says what
    /// a mask depends on. What the computation adds to `stacks` stays there.
    pub(crate) fn plain_mask(
        &self,
        stacks: &mut Stacks,
        configuration: SetId,
        mask: &mut [u32],
        report: bool,
    ) -> Result<PlainMask, EngineError> {
        Ok(self.decide_mask(stacks, configuration, mask, report)?.finish(mask))
    }

    /// The same before it is written; see [`Masks::decide`].
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

/// A capture is read on its own, where nothing is known of the names before it; what a budget ends may be half a name.
fn refuse_beside_names(marks: Marks, capturing: bool) -> Result<(), EngineError> {
    match (marks.names, capturing, marks.budgets) {
        (true, true, _) => Err(EngineError::NotRun("a grammar that declares names and has captures")),
        (true, _, true) => Err(EngineError::NotRun("a grammar that declares names and has parts with max_tokens")),
        _ => Ok(()),
    }
}

/// A single token has no text that could be compared, and what a budget ends might be a repeat.
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
