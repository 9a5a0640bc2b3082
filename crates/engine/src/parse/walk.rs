//! Which strings of a trie can be read from a thread, each alternative separately.
//!
//! A walk keeps one small number for each depth, the state of one thread's automaton. Where a lexeme is complete, each
//! thread that follows is walked separately over the subtree below that node. The union of what they read is what the
//! grammar allows, so no sets of threads are built. What stays the same within a lexeme is stored once as a *context*;
//! a *spot* is a context and a state.
//!
//! That is the shortest way where few lexemes end within the tokens. Where many do, as names that may stand side by
//! side, the walk starts again with all threads [together](crate::parse::together), which reads no node twice.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{ByteSet, StateId};
use stencilm_support::{Extension, FEW, LOOKED_AT, MANY, SEARCHED};

use crate::error::EngineError;
use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::machine::expansion::{Automaton, Expansion, IN_WHITESPACE};
use crate::machine::layout::ExpansionId;
use crate::parse::assumptions::Assumptions;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::Entry;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::{Part, Path, Reader, Trie};

/// The position of a walk, by numbers of one [`Walk`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Spot {
    context: u32,
    state: u32,
}

struct Context {
    /// The thread. Its state is replaced by a flag that says whether its lexemes begin there.
    thread: Entry,
    expansion: Arc<Expansion>,
    assumed: Assumptions,
    /// The state in which the lexemes of the expansion begin.
    start: StateId,
}

/// The spots after the lexemes that are complete at a spot, as a range of the list of followers, and their common
/// assumptions.
#[derive(Clone, Copy)]
struct Behind {
    start: u32,
    end: u32,
    assumed: Assumptions,
    /// Whether a part with an exhausted budget may end here.
    ends_spent: bool,
    /// Whether the text may end here.
    ends_text: bool,
}

/// A part of a trie still to be walked: a range of nodes below this depth.
struct Job {
    nodes: (usize, usize),
    depth: usize,
    spot: Spot,
}

/// The data structures of a walk, passed on from one walk to the next: most walks are so short that allocating these
/// would take as long.
#[derive(Default)]
pub(crate) struct WalkScratch {
    contexts: Vec<Context>,
    index: FxHashMap<(Entry, Assumptions), u32>,
    after: FxHashMap<Spot, Behind>,
    /// The bytes that may follow the lexemes that are complete at a spot; `None` where only expanding what follows
    /// would tell.
    first_after: FxHashMap<Spot, Option<ByteSet>>,
    followers: Vec<Spot>,
    jobs: Vec<Job>,
    done: FxHashSet<(u32, Spot)>,
    path: Path,
    /// How many jobs came out of others, in all walks of this mask.
    more: usize,
    /// The nodes on the current path where a lexeme is complete, each with the state there.
    ends: Vec<(u32, u32)>,
    /// The threads after a spot.
    threads: Vec<Entry>,
    /// Whether the next walk belongs to the same mask, so that the contexts and what follows them stay as they are.
    is_shared: bool,
}

impl Extension for WalkScratch {}

impl WalkScratch {
    /// Empties it. A long walk may have made it so large that emptying it would take longer than a short walk; then it
    /// is replaced.
    fn emptied(mut self) -> WalkScratch {
        let places = self.index.capacity() + self.after.capacity() + self.first_after.capacity();
        if places + self.done.capacity() > LOOKED_AT {
            return WalkScratch::default();
        }
        self.contexts.clear();
        self.index.clear();
        self.after.clear();
        self.first_after.clear();
        self.followers.clear();
        self.jobs.clear();
        self.done.clear();
        self.ends.clear();
        self.more = 0;
        self.is_shared = false;
        self
    }
}

/// The contexts of one walk, which may go over several tries.
pub(crate) struct Walk<'r, 'a> {
    pub run: &'r mut Run<'a>,
    scratch: WalkScratch,
    /// The number of contexts of walks before.
    known: usize,
    /// The number of accepted tokens, if the walk has to find the nodes where parts with exhausted budgets may end.
    spent_at: Option<u32>,
    ends_spent: Vec<u32>,
    /// The nodes at which the text is complete and strings go on, if they are asked for.
    complete: Option<Vec<(u32, Assumptions)>>,
}

impl Drop for Walk<'_, '_> {
    fn drop(&mut self) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.jobs.clear();
        *self.run.lexeme_cache.extensions.get() = if scratch.is_shared { scratch } else { scratch.emptied() };
    }
}

impl Run<'_> {
    /// Walks as part of one mask, whose walks share what they find. None of them looks for parts with exhausted budgets.
    pub(crate) fn sharing_walks<T>(&mut self, walks: impl FnOnce(&mut Self) -> T) -> T {
        let scratch: &mut WalkScratch = self.lexeme_cache.extensions.get();
        scratch.is_shared = true;
        let found = walks(self);
        let scratch: &mut WalkScratch = self.lexeme_cache.extensions.get();
        *scratch = std::mem::take(scratch).emptied();
        found
    }
}

impl<'r, 'a> Walk<'r, 'a> {
    pub fn new(run: &'r mut Run<'a>) -> Walk<'r, 'a> {
        let scratch: WalkScratch = std::mem::take(run.lexeme_cache.extensions.get());
        Walk { run, known: scratch.contexts.len(), scratch, spent_at: None, ends_spent: Vec::new(), complete: None }
    }

    /// The nodes of a vocabulary's trie at which a part may end whose budget is exhausted after `tokens` tokens, on
    /// some path that the threads can read; perhaps some others as well. `None` where there are too many paths.
    pub fn ends_of_spent_parts(
        mut self,
        vocabulary: &Tokens,
        threads: &[Entry],
        tokens: u32,
    ) -> Result<Option<Vec<u32>>, EngineError> {
        self.spent_at = Some(tokens);
        self.begin_over_tokens(vocabulary, threads)?;
        let most = self.scratch.more + SEARCHED;
        let found = self.apart(vocabulary.trie(), most, &mut |_, _| {})?;
        Ok(found.then(|| std::mem::take(&mut self.ends_spent)))
    }

    /// The spot of a thread. Lexemes that begin there are clamped.
    fn spot(&mut self, thread: Entry, mut assumed: Assumptions) -> Result<Spot, EngineError> {
        let id = ExpansionId(thread.head);
        let expansion = self.run.machine.fork(id);
        // A token that ends within such a key may leave no new key.
        assumed.locally_finite |= expansion.locally_finite && self.run.may_run_out(expansion, thread);
        assumed.repeat |= self.run.hangs_on_a_repeat(thread);
        // The threads whose mask is computed are clamped already.
        let saturated = |dfa| self.run.lexeme_cache.is_saturated_start(dfa, StateId(thread.state));
        let begun = thread.state == StateId::START.0 || expansion.dfa().is_some_and(saturated);
        let begins = begun || thread.state & IN_WHITESPACE != 0;
        let bare = Entry { state: if begins { StateId::START.0 } else { StateId::DEAD.0 }, ..thread };
        let next = self.scratch.contexts.len() as u32;
        let context = *self.scratch.index.entry((bare, assumed)).or_insert(next);
        if context == next {
            let (expansion, start) = match begins {
                true => self.run.machine.fork_of_tokens(self.run.lexeme_cache, id)?,
                false => (self.run.machine.fork(id).clone(), StateId::START),
            };
            self.scratch.contexts.push(Context { thread: bare, expansion, assumed, start });
        }
        let state = if begun { self.scratch.contexts[context as usize].start.0 } else { thread.state };
        Ok(Spot { context, state })
    }

    /// Calls `reached`, at least once, for the entry of every string of the trie that the threads can read, with the
    /// assumptions made on the path. `assumed` is what was assumed before.
    pub fn over(
        &mut self,
        trie: &Trie,
        threads: &[Entry],
        assumed: Assumptions,
        mut reached: impl FnMut(u32, Assumptions),
    ) -> Result<(), EngineError> {
        self.begin_over(trie, threads, assumed)?;
        if self.apart(trie, FEW, &mut reached)? {
            return Ok(());
        }
        self.run.walk_together(trie, &[trie.whole()], threads, assumed, reached)
    }

    fn begin_over(&mut self, trie: &Trie, threads: &[Entry], assumed: Assumptions) -> Result<(), EngineError> {
        for &thread in threads {
            if thread != Entry::BOTTOM && !offers_tokens(thread) {
                let spot = self.spot(thread, assumed)?;
                let Context { ref expansion, start, .. } = self.scratch.contexts[spot.context as usize];
                let first = expansion.bytes_from(self.run.lexeme_cache, spot.state, start)?;
                self.scratch.jobs.extend(trie.roots(first).map(|nodes| Job { nodes, depth: 0, spot }));
            }
        }
        Ok(())
    }

    /// As [`Walk::over`]; returns the nodes at which the text is complete and strings go on. `None` where there are too
    /// many paths.
    pub fn up_to_the_end(
        mut self,
        trie: &Trie,
        threads: &[Entry],
        assumed: Assumptions,
        mut reached: impl FnMut(u32, Assumptions),
    ) -> Result<Option<Vec<(u32, Assumptions)>>, EngineError> {
        self.complete = Some(Vec::new());
        self.begin_over(trie, threads, assumed)?;
        let most = self.scratch.more + SEARCHED;
        Ok(if self.apart(trie, most, &mut reached)? { self.complete.take() } else { None })
    }

    /// As [`Walk::over`], for the strings that go on after some nodes, each with its own assumptions. Returns `false`
    /// where there are too many paths.
    pub fn after_nodes(
        &mut self,
        trie: &Trie,
        nodes: &[(u32, Assumptions)],
        threads: &[Entry],
        mut reached: impl FnMut(u32, Assumptions),
    ) -> Result<bool, EngineError> {
        for &(node, assumed) in nodes {
            for &thread in threads {
                if thread != Entry::BOTTOM && !offers_tokens(thread) {
                    let (node, spot) = (node as usize, self.spot(thread, assumed)?);
                    self.scratch.jobs.push(Job { nodes: trie.children(node), depth: trie.depth(node), spot });
                }
            }
        }
        self.apart(trie, self.scratch.more + SEARCHED, &mut reached)
    }

    /// As [`Walk::over`], for the strings that pass through some nodes; reading starts with the byte of each node.
    pub fn below(
        &mut self,
        trie: &Trie,
        nodes: &[u32],
        threads: &[Entry],
        assumed: Assumptions,
        mut reached: impl FnMut(u32, Assumptions),
    ) -> Result<(), EngineError> {
        let parts: Vec<Part> = nodes.iter().map(|&node| trie.part(node as usize)).collect();
        for &thread in threads {
            if !parts.is_empty() && thread != Entry::BOTTOM && !offers_tokens(thread) {
                let spot = self.spot(thread, assumed)?;
                self.scratch.jobs.extend(parts.iter().map(|&(nodes, depth)| Job { nodes, depth, spot }));
            }
        }
        if self.apart(trie, FEW, &mut reached)? {
            return Ok(());
        }
        self.run.walk_together(trie, &parts, threads, assumed, reached)
    }

    /// As [`Walk::over`] for the tokens of a vocabulary, without those that are only whitespace before a lexeme.
    pub fn over_tokens(
        &mut self,
        vocabulary: &Tokens,
        threads: &[Entry],
        mut reached: impl FnMut(u32, Assumptions),
    ) -> Result<(), EngineError> {
        let trie = vocabulary.trie();
        self.begin_over_tokens(vocabulary, threads)?;
        if self.apart(trie, FEW, &mut reached)? {
            return Ok(());
        }
        self.run.walk_together(trie, &[trie.whole()], threads, Assumptions::default(), reached)
    }

    fn begin_over_tokens(&mut self, vocabulary: &Tokens, threads: &[Entry]) -> Result<(), EngineError> {
        let trie = vocabulary.trie();
        for &thread in threads {
            let spot = self.spot(thread, Assumptions::default())?;
            let expansion = self.scratch.contexts[spot.context as usize].expansion.clone();
            let Some(whitespace) = expansion.whitespace.filter(|_| thread.state & IN_WHITESPACE != 0) else {
                let first = expansion.live_bytes(self.run.lexeme_cache, spot.state)?;
                self.scratch.jobs.extend(trie.roots(first).map(|nodes| Job { nodes, depth: 0, spot }));
                continue;
            };
            let spot = Spot { state: self.scratch.contexts[spot.context as usize].start.0, ..spot };
            let first = expansion.live_bytes(self.run.lexeme_cache, spot.state)?;
            for byte in first.intersect(&whitespace.set.complement()).iter() {
                let runs = self.run.lexeme_cache.whitespace_runs(vocabulary, whitespace.set);
                for &(run, node) in runs.after(byte, expansion.whitespace_left(thread.state)) {
                    let nodes = (node as usize, node as usize + trie.size(node as usize));
                    self.scratch.jobs.push(Job { nodes, depth: run as usize, spot });
                }
            }
        }
        Ok(())
    }

    /// Does all jobs, each alternative separately. Returns `false` where more than `most` came out of others in this
    /// mask; after that, the rest of the mask does not try again, since most walks of a mask are alike.
    fn apart(
        &mut self,
        trie: &Trie,
        most: usize,
        reached: &mut impl FnMut(u32, Assumptions),
    ) -> Result<bool, EngineError> {
        if self.run.known.is_some() {
            self.scratch.jobs.clear();
            return Ok(false);
        }
        self.scratch.done.clear();
        while let Some(job) = self.scratch.jobs.pop() {
            let WalkScratch { contexts, path, ends, .. } = &mut self.scratch;
            let Context { ref expansion, assumed, start, .. } = contexts[job.spot.context as usize];
            let (lexeme_cache, additional) = (&mut *self.run.lexeme_cache, expansion.additional);
            // Whitespace and names need the general step; all other automata are tables.
            let dfa = match expansion.automaton {
                Automaton::Dfa(dfa) if job.spot.state & IN_WHITESPACE == 0 => Some(dfa),
                _ => None,
            };
            let visit = |entry| reached(entry, assumed);
            let (nodes, depth, state) = (job.nodes, job.depth, job.spot.state);
            match dfa {
                Some(dfa) => {
                    let mut reader = OneLexeme { lexeme_cache, dfa, additional, ends };
                    trie.walk_few(nodes, depth, state, path, &mut reader, visit)?;
                }
                None => {
                    let mut reader = AnyLexeme { lexeme_cache, expansion, start, ends };
                    trie.walk_few(nodes, depth, state, path, &mut reader, visit)?;
                }
            }
            if !self.go_on_after_ends(trie, job.spot, most, reached)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Turns the nodes at which a lexeme is complete into jobs for what follows it. Returns `false` where there are too
    /// many.
    fn go_on_after_ends(
        &mut self,
        trie: &Trie,
        spot: Spot,
        most: usize,
        reached: &mut impl FnMut(u32, Assumptions),
    ) -> Result<bool, EngineError> {
        let additional = self.scratch.contexts[spot.context as usize].expansion.additional;
        // What follows a lexeme adds to the scratch space, but adds no ends.
        let mut ends = std::mem::take(&mut self.scratch.ends);
        for (node, state) in ends.drain(..) {
            let spot = Spot { state, ..spot };
            if !additional && !self.may_go_on(trie, node as usize, spot)? {
                continue;
            }
            let Behind { start, end, assumed, ends_spent, ends_text } = self.after(spot)?;
            if ends_spent {
                self.ends_spent.push(node);
            }
            if ends_text && let Some(complete) = &mut self.complete {
                complete.push((node, assumed));
            }
            // A token that ends with the key is as unverified as one that goes on after it.
            if additional && let Some(entry) = trie.entry_at(node as usize) {
                reached(entry, assumed);
            }
            for index in start..end {
                let spot = self.scratch.followers[index as usize];
                if self.scratch.contexts.len() > self.known + MANY || self.scratch.more > most {
                    self.scratch.jobs.clear();
                    return Ok(false);
                }
                if self.scratch.done.insert((node, spot)) {
                    self.scratch.more += 1;
                    let nodes = trie.children(node as usize);
                    self.scratch.jobs.push(Job { nodes, depth: trie.depth(node as usize), spot });
                }
            }
        }
        self.scratch.ends = ends;
        Ok(true)
    }

    /// Whether some string below a node may continue after the lexemes that are complete at a spot. Most lexemes end
    /// within a word of the vocabulary, and expanding what follows them took longer than the rest of the walk.
    fn may_go_on(&mut self, trie: &Trie, node: usize, spot: Spot) -> Result<bool, EngineError> {
        if self.scratch.after.contains_key(&spot) || self.spent_at.is_some() || self.complete.is_some() {
            return Ok(true);
        }
        let first = match self.scratch.first_after.get(&spot) {
            Some(&known) => known,
            None => {
                let context = &self.scratch.contexts[spot.context as usize];
                let (expansion, thread) = (context.expansion.clone(), context.thread);
                let tags = expansion.accepts(self.run.lexeme_cache, spot.state).to_vec();
                let first = self.run.first_after(&expansion, &tags, thread)?;
                self.scratch.first_after.insert(spot, first);
                first
            }
        };
        Ok(first.is_none_or(|first| trie.goes_on_with(node, &first)))
    }

    /// The spots after the lexemes that are complete at a spot.
    fn after(&mut self, spot: Spot) -> Result<Behind, EngineError> {
        if let Some(&known) = self.scratch.after.get(&spot) {
            return Ok(known);
        }
        let context = &self.scratch.contexts[spot.context as usize];
        let (expansion, thread) = (context.expansion.clone(), Entry { state: spot.state, ..context.thread });
        let before = context.assumed;
        self.run.assumed = Assumptions::default();
        let mut threads = std::mem::take(&mut self.scratch.threads);
        for index in 0..expansion.accepts(self.run.lexeme_cache, spot.state).len() {
            let tag = expansion.accepts(self.run.lexeme_cache, spot.state)[index];
            self.run.follow(&expansion, tag, thread, &mut threads)?;
        }
        let Assumptions { seen, reserved, element, locally_finite, .. } = self.run.assumed;
        let assumed = Assumptions {
            seen: before.seen || seen,
            reserved: before.reserved || reserved,
            whole: before.whole || (before.later && (seen || reserved)),
            element: before.element || element,
            // Each follower decides this for itself.
            repeat: before.repeat,
            locally_finite: before.locally_finite || locally_finite,
            later: true,
        };
        self.run.stacks.join(&mut threads)?;
        let machine = &*self.run.machine;
        let is_spent = |tokens| threads.iter().any(|&thread| machine.ends_spent_part(thread, tokens));
        let ends_spent = self.spent_at.is_some_and(is_spent);
        let ends_text = threads.contains(&Entry::BOTTOM);
        let start = self.scratch.followers.len() as u32;
        for thread in threads.drain(..) {
            if thread != Entry::BOTTOM {
                let spot = self.spot(thread, assumed)?;
                self.scratch.followers.push(spot);
            }
        }
        self.scratch.threads = threads;
        let after = Behind { start, end: self.scratch.followers.len() as u32, assumed, ends_spent, ends_text };
        self.scratch.after.insert(spot, after);
        Ok(after)
    }
}

/// Reads a lexeme by its table and notes the nodes where it is complete.
struct OneLexeme<'a> {
    lexeme_cache: &'a mut LexemeCache,
    dfa: DfaId,
    /// Whether a node is noted even if nothing is below it.
    additional: bool,
    ends: &'a mut Vec<(u32, u32)>,
}

impl Reader for OneLexeme<'_> {
    type Error = EngineError;

    #[inline]
    fn live_bytes(&mut self, state: u32) -> Result<ByteSet, EngineError> {
        Ok(*self.lexeme_cache.live_bytes(self.dfa, StateId(state))?)
    }

    #[inline(always)]
    fn step(&mut self, state: u32, byte: u8, node: u32, has_children: bool) -> Result<Option<u32>, EngineError> {
        let (next, accepts) = self.lexeme_cache.step(self.dfa, StateId(state), byte)?;
        if accepts && (has_children || self.additional) {
            self.ends.push((node, next.0));
        }
        Ok((next.0 != 0).then_some(next.0))
    }
}

/// As [`OneLexeme`], for names and for lexemes after whitespace.
struct AnyLexeme<'a> {
    lexeme_cache: &'a mut LexemeCache,
    expansion: &'a Expansion,
    start: StateId,
    ends: &'a mut Vec<(u32, u32)>,
}

impl Reader for AnyLexeme<'_> {
    type Error = EngineError;

    fn live_bytes(&mut self, state: u32) -> Result<ByteSet, EngineError> {
        Ok(self.expansion.bytes_from(self.lexeme_cache, state, self.start)?)
    }

    #[inline(always)]
    fn step(&mut self, state: u32, byte: u8, node: u32, has_children: bool) -> Result<Option<u32>, EngineError> {
        let (next, accepts) = self.expansion.step_from(self.lexeme_cache, state, byte, self.start)?;
        if accepts && (has_children || self.expansion.additional) {
            self.ends.push((node, next));
        }
        Ok((next != 0).then_some(next))
    }
}
