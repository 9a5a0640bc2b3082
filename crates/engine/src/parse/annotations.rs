//! Token budgets and temperatures: what marked parts of a grammar say about the tokens within them.
//!
//! A marked part has a frame of its own below everything that it reads. So a stack shows which marked parts a thread is
//! in, and the register of the frame shows after how many tokens the part began: nothing is counted, and rolling back
//! and forking need no extra work. Where a part with a budget may end, the configuration has a thread that says so and
//! reads nothing. A budget is *exhausted* when as many tokens have begun within the part. From then on, wherever the
//! part may end, the threads within it are dropped. This happens between tokens, and within a token only while a part
//! with an exhausted budget cannot end yet. For a mask, the tokens that cross an end of such a part are then read
//! again.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_grammar::{Mark, Node, Temperature};
use stencilm_regex::StateId;

use crate::error::EngineError;
use crate::machine::layout::{ExpansionId, Frame, FrameId, Machine, Phase};
use crate::parse::stepper::{Mode, Run, offers_tokens};
use crate::parse::walk::Walk;
use crate::state::stacks::{Entry, Holds, SetId};
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

impl Machine {
    /// What a frame says about the tokens above it.
    fn mark(&self, frame: FrameId) -> Option<&Mark> {
        let Frame::End(node) = self.frame(frame) else { return None };
        match self.grammar().node(node) {
            Node::Marked { mark, .. } => Some(mark),
            _ => unreachable!("only a marked part has an end"),
        }
    }

    /// Whether an entry of a stack is a part whose budget is exhausted after `tokens` tokens.
    fn is_spent(&self, entry: Entry, tokens: u32) -> bool {
        entry != Entry::BOTTOM
            && matches!(self.mark(FrameId(entry.head)), Some(&Mark::MaxTokens(budget))
                if tokens.saturating_sub(entry.register) >= budget)
    }

    /// The entry of a part with a budget that may end here, if the thread is there to say that.
    fn may_end(&self, thread: Entry) -> Option<Entry> {
        if thread == Entry::BOTTOM || !offers_tokens(thread) {
            return None;
        }
        let frame = self.fork(ExpansionId(thread.head)).frame;
        matches!(self.frame(frame), Frame::End(_)).then_some(Entry { head: frame.0, state: 0, ..thread })
    }

    /// Whether the thread says that a part may end here whose budget is exhausted after `tokens` tokens.
    pub(crate) fn ends_spent_part(&self, thread: Entry, tokens: u32) -> bool {
        self.may_end(thread).is_some_and(|entry| self.is_spent(entry, tokens))
    }

    /// Whether a thread only says something about the configuration and reads nothing.
    pub(crate) fn is_remark(&self, thread: Entry) -> bool {
        self.is_text(thread) || (self.marks.budgets && self.may_end(thread).is_some())
    }
}

impl Run<'_> {
    /// Adds the threads that start in the marked parts that may come first at a frame, above the frames of these parts.
    /// Parts that match nothing add no threads here; a frame already knows whether it may be left out.
    pub(crate) fn open(
        &mut self,
        expansion: ExpansionId,
        frame: Entry,
        threads: &mut Vec<Entry>,
    ) -> Result<(), EngineError> {
        let mut work = vec![(expansion, frame)];
        while let Some((expansion, frame)) = work.pop() {
            let expansion = self.machine.fork(expansion).clone();
            for (body, continuation) in &expansion.opens {
                let thread = Entry { head: expansion.frame.0, ..frame };
                let Some(below) = self.push_frames(&expansion, continuation, thread)? else { continue };
                let body = match self.machine.reference(*body) {
                    Some(node) => &self.reference_here(node),
                    None => body,
                };
                self.stacks.spend(self.stacks.entries(below).len() + 1)?;
                let inner = Entry { head: body.0, register: 0, state: 0, below };
                let phase = self.phase(*body, 0);
                let mut next = Some(self.machine.fork_of(self.lexeme_cache, *body, phase)?);
                while let Some(id) = next {
                    next = self.begin(id, inner, threads);
                    if !self.machine.fork(id).opens.is_empty() {
                        work.push((id, inner));
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the threads that start at an expansion; returns the next expansion of its frame.
    pub(crate) fn begin(&mut self, id: ExpansionId, frame: Entry, threads: &mut Vec<Entry>) -> Option<ExpansionId> {
        let frame = Entry { below: self.with_names(frame.below), ..frame };
        let expansion = self.machine.fork(id);
        if expansion.has_lexemes() {
            threads.push(Entry { head: id.0, state: expansion.start(), ..frame });
        }
        // This thread stands for the single tokens that may come here: in the dead state no byte is live.
        if !expansion.tokens.is_empty() {
            threads.push(Entry { head: id.0, state: StateId::DEAD.0, ..frame });
        }
        expansion.also
    }

    /// If a frame is the end of a part with a budget, the thread that says that the part may end here.
    pub(crate) fn remark(&mut self, frame: Entry) -> Result<Option<Entry>, EngineError> {
        let id = FrameId(frame.head);
        if !matches!(self.machine.mark(id), Some(Mark::MaxTokens(_))) {
            return Ok(None);
        }
        let expansion = self.machine.fork_of(self.lexeme_cache, id, Phase::Plain)?;
        Ok(Some(Entry { head: expansion.0, state: StateId::DEAD.0, ..frame }))
    }

    /// Computes the marks of the sets that were made since the last call.
    fn look_for_marks(&mut self) {
        let machine = &*self.machine;
        self.stacks.extend_holds(|holds, entries| {
            let mut here = Holds::default();
            for entry in entries.iter().filter(|&&entry| entry != Entry::BOTTOM) {
                let below: Holds = holds[entry.below.0 as usize];
                // The entries of a configuration are expansions and not frames; nobody asks for their marks.
                let mark =
                    if machine.has_frame(FrameId(entry.head)) { machine.mark(FrameId(entry.head)) } else { None };
                here.budget |= below.budget || matches!(mark, Some(Mark::MaxTokens(_)));
                here.temperature |= below.temperature || matches!(mark, Some(Mark::Temperature(_)));
            }
            here
        });
    }

    /// Drops the threads in parts that may end and whose budget is exhausted, if that leaves any thread.
    pub(crate) fn drop_spent(&mut self, threads: &mut Vec<Entry>, tokens: u32) -> Result<(), EngineError> {
        let machine = &*self.machine;
        // The stacks below each pair of frame and register.
        let mut ended: FxHashMap<(u32, u32), SetId> = FxHashMap::default();
        for &thread in threads.iter() {
            let Some(entry) = machine.may_end(thread).filter(|&entry| machine.is_spent(entry, tokens)) else {
                continue;
            };
            let known = ended.entry((entry.head, entry.register)).or_insert(entry.below);
            *known = self.stacks.either(&[*known, entry.below]);
        }
        if ended.is_empty() {
            return Ok(());
        }
        self.look_for_marks();
        let mut known = FxHashMap::default();
        let mut kept = Vec::with_capacity(threads.len());
        for &thread in threads.iter() {
            if thread == Entry::BOTTOM {
                kept.push(thread);
                continue;
            }
            if self.machine.may_end(thread).is_some_and(|entry| ended.contains_key(&(entry.head, entry.register))) {
                continue;
            }
            if let Some(below) = self.without_parts(thread.below, &ended, &mut known)? {
                kept.push(Entry { below, ..thread });
            }
        }
        if !kept.is_empty() {
            self.stacks.join(&mut kept)?;
            *threads = kept;
        }
        Ok(())
    }

    /// A stack without the paths through these entries; `None` where no path is left.
    fn without_parts(
        &mut self,
        stack: SetId,
        parts: &FxHashMap<(u32, u32), SetId>,
        known: &mut FxHashMap<SetId, Option<SetId>>,
    ) -> Result<Option<SetId>, EngineError> {
        let mut work = vec![stack];
        while let Some(&set) = work.last() {
            if known.contains_key(&set) {
                work.pop();
                continue;
            }
            if !self.stacks.holds(set).budget {
                known.insert(set, Some(set));
                continue;
            }
            let entries = self.stacks.entries(set).to_vec();
            self.stacks.spend(entries.len() + 1)?;
            let before = work.len();
            let inner = entries.iter().filter(|&&entry| entry != Entry::BOTTOM).map(|entry| entry.below);
            work.extend(inner.filter(|below| !known.contains_key(below)));
            if work.len() > before {
                continue;
            }
            let mut left: Vec<Entry> = Vec::with_capacity(entries.len());
            for &entry in &entries {
                if entry == Entry::BOTTOM {
                    left.push(entry);
                    continue;
                }
                let Some(mut below) = known[&entry.below] else { continue };
                // The same part may be on more stacks here than there are where it ends.
                if let Some(&ended) = parts.get(&(entry.head, entry.register)) {
                    match self.without_stacks(below, ended)? {
                        Some(others) => below = others,
                        None => continue,
                    }
                }
                left.push(Entry { below, ..entry });
            }
            let left = if left == entries { Some(set) } else { self.stacks.stack_of(left) };
            known.insert(set, left);
        }
        Ok(known[&stack])
    }

    /// The stacks of a set that are not in another set; `None` where there are none.
    fn without_stacks(&mut self, stacks: SetId, others: SetId) -> Result<Option<SetId>, EngineError> {
        let mut known: FxHashMap<(SetId, SetId), Option<SetId>> = FxHashMap::default();
        let mut work = vec![(stacks, others)];
        while let Some(&pair) = work.last() {
            if known.contains_key(&pair) {
                work.pop();
                continue;
            }
            if pair.0 == pair.1 {
                known.insert(pair, None);
                continue;
            }
            let (entries, others) = (self.stacks.entries(pair.0).to_vec(), self.stacks.entries(pair.1).to_vec());
            self.stacks.spend(entries.len() + 1)?;
            let mut pairs: Vec<Option<(SetId, SetId)>> = Vec::with_capacity(entries.len());
            for &entry in &entries {
                let like = others.iter().filter(|&&other| Entry { below: entry.below, ..other } == entry);
                let below: Vec<SetId> = like.map(|other| other.below).collect();
                let goes_on = entry != Entry::BOTTOM && !below.is_empty();
                pairs.push(goes_on.then(|| (entry.below, self.stacks.either(&below))));
            }
            let before = work.len();
            work.extend(pairs.iter().flatten().filter(|pair| !known.contains_key(pair)));
            if work.len() > before {
                continue;
            }
            let left: Vec<Entry> = entries
                .iter()
                .zip(&pairs)
                .filter_map(|(&entry, pair)| match pair {
                    Some(pair) => known[pair].map(|below| Entry { below, ..entry }),
                    None if entry == Entry::BOTTOM => (!others.contains(&entry)).then_some(entry),
                    None => Some(entry),
                })
                .collect();
            let left = self.stacks.stack_of(left);
            known.insert(pair, left);
        }
        Ok(known[&(stacks, others)])
    }

    /// The configuration between two tokens, after `tokens` tokens: without the threads in parts that end here because
    /// their budget is exhausted. The flag says whether a part is left whose budget is exhausted and which cannot end
    /// here.
    pub fn settled(&mut self, configuration: SetId, tokens: u32) -> Result<(SetId, bool), EngineError> {
        let mut threads = self.stacks.entries(configuration).to_vec();
        self.drop_spent(&mut threads, tokens)?;
        self.look_for_marks();
        let mut seen = FxHashSet::default();
        let mut work: Vec<SetId> = threads.iter().map(|thread| thread.below).collect();
        let mut is_spent = false;
        while let Some(set) = work.pop().filter(|_| !is_spent) {
            if !self.stacks.holds(set).budget || !seen.insert(set) {
                continue;
            }
            self.stacks.spend(self.stacks.entries(set).len() + 1)?;
            for &entry in self.stacks.entries(set) {
                is_spent |= self.machine.is_spent(entry, tokens);
                work.push(entry.below);
            }
        }
        Ok((self.stacks.configuration(&mut threads)?, is_spent))
    }

    /// The highest temperature at which some thread wants the next token sampled. A thread has the temperature of the
    /// innermost part around it that has one.
    pub fn temperature(&mut self, configuration: SetId) -> Result<Option<Temperature>, EngineError> {
        self.look_for_marks();
        let threads = self.stacks.entries(configuration).to_vec();
        let threads = threads.into_iter().filter(|&thread| thread != Entry::BOTTOM && !self.machine.is_remark(thread));
        let mut work: Vec<SetId> = threads.map(|thread| thread.below).collect();
        let mut seen = FxHashSet::default();
        let mut highest = None;
        while let Some(set) = work.pop() {
            if !self.stacks.holds(set).temperature || !seen.insert(set) {
                continue;
            }
            self.stacks.spend(self.stacks.entries(set).len() + 1)?;
            for &entry in self.stacks.entries(set).iter().filter(|&&entry| entry != Entry::BOTTOM) {
                match self.machine.mark(FrameId(entry.head)) {
                    Some(Mark::Temperature(temperature)) => highest = highest.max(Some(*temperature)),
                    _ => work.push(entry.below),
                }
            }
        }
        Ok(highest)
    }

    /// For a configuration in a part that should end but cannot end yet: removes the tokens from the mask that go past
    /// a point where the part can end and stay within it. Such points are found by a walk as for a mask, and only the
    /// tokens that go past one are read again, with the part left there. Stop tokens are not handled.
    pub fn leave_spent_parts(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        tokens: u32,
        mask: &mut [u32],
    ) -> Result<(), EngineError> {
        let trie = vocabulary.trie();
        let threads = self.stacks.entries(configuration).to_vec();
        let lexemes = threads.iter().copied().filter(|&thread| thread != Entry::BOTTOM && !offers_tokens(thread));
        let lexemes: Vec<Entry> = lexemes.collect();
        let ends =
            self.in_mode(Mode::Optimistic, |run| Walk::new(run).ends_of_spent_parts(vocabulary, &lexemes, tokens));
        let mut known: FxHashMap<(u32, u8), u32> = FxHashMap::default();
        // The parts of the trie to read again; the whole trie where there are too many paths.
        let mut parts: Vec<((usize, usize), usize, SetId)> = Vec::new();
        match ends? {
            None => parts.push(((0, trie.len()), 0, configuration)),
            Some(mut ends) => {
                ends.sort_unstable();
                let mut done = 0;
                for end in ends.into_iter().map(|end| end as usize).filter(|&end| trie.size(end) > 1) {
                    if end < done {
                        continue;
                    }
                    done = end + trie.size(end);
                    let below = trie.entries_below(end).next().expect("every node leads to a token");
                    let bytes = vocabulary.token_bytes(below).expect("a token in the trie spells bytes");
                    let depth = trie.depth(end);
                    let mut set = configuration;
                    for &byte in &bytes[..depth] {
                        set = SetId(self.step_known(&mut known, set.0, byte)?);
                    }
                    parts.push((trie.children(end), depth, set));
                }
            }
        }
        let mut states = vec![0; trie.max_depth() + 1];
        for ((start, end), depth, set) in parts {
            for node in start..end {
                if let Some(token) = trie.entry_at(node) {
                    token_set::clear(mask, token);
                }
            }
            if set == SetId::EMPTY {
                continue;
            }
            trie.walk_part(
                (start, end),
                depth,
                set.0,
                &mut states,
                |set, byte, _, _| {
                    let next = self.step_known(&mut known, set, byte)?;
                    Ok::<_, EngineError>((next != SetId::EMPTY.0).then_some(next))
                },
                |token, _| token_set::set(mask, token),
            )?;
        }
        for (first, others) in vocabulary.duplicates() {
            match token_set::get(mask, *first) {
                true => others.iter().for_each(|&other| token_set::set(mask, other)),
                false => others.iter().for_each(|&other| token_set::clear(mask, other)),
            }
        }
        for thread in threads {
            if offers_tokens(thread) {
                for &(node, _) in &self.machine.fork(ExpansionId(thread.head)).tokens {
                    self.machine.tokens.ids(node).iter().for_each(|token| token_set::set(mask, token));
                }
            }
        }
        Ok(())
    }

    /// [`Run::step`] with a memo.
    fn step_known(&mut self, known: &mut FxHashMap<(u32, u8), u32>, set: u32, byte: u8) -> Result<u32, EngineError> {
        if let Some(&next) = known.get(&(set, byte)) {
            return Ok(next);
        }
        let next = self.step(SetId(set), byte)?.0;
        known.insert((set, byte), next);
        Ok(next)
    }
}
