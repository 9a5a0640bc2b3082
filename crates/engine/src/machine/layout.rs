//! A grammar as a pushdown machine, built lazily: which lexemes may start at a frame, and what is left after each.
//!
//! A **frame** is a place in the grammar that waits on a stack. Starting a frame gives an **expansion**: one automaton
//! over all lexemes that may come first, and for each lexeme the **continuations**, frames to push when it has matched.
//! Every lexeme of an expansion reads at least one byte; what may be empty is decided beforehand. Counts and the
//! members of an object seen so far are not part of the machine but *registers* beside the frame, so that a list of a
//! billion items has three expansions.

use std::borrow::Cow;
use std::sync::Arc;

use stencilm_grammar::{Grammar, Items, ItemsId, MembersId, Node};
use stencilm_regex::{ByteSet, ExprId, StateId, Tag};
use stencilm_support::{Bounded, Extensions, LOOKED_AT, Map, Table, hash_of, memory};

use crate::error::EngineError;
use crate::lexeme::cache::LexemeCache;
use crate::lexeme::single_tokens::TokenEdges;
use crate::machine::declared_names::DeclaredNames;
use crate::machine::expansion::{Automaton, Continuations, Expansion};
use crate::machine::frame::{Begins, MemberChange};
pub(crate) use crate::machine::frame::{Continuation, ExpansionId, Frame, FrameId, Phase, Register};
use crate::machine::left_corner::{LeftGraph, Rest};
use crate::machine::marks::Marks;
use crate::machine::object_facts::ObjectFacts;
use crate::machine::property_trie::Names;
use crate::switches::Switch;
use crate::vocabulary::keys_within_tokens::WholeKeys;

/// The lazily built machine of one grammar.
pub struct Machine {
    pub(crate) grammar: Arc<Grammar>,
    pub(crate) left: LeftGraph,
    /// The single tokens that the grammar names.
    pub(crate) tokens: Arc<TokenEdges>,
    /// The kinds of marks that the grammar has.
    pub(crate) marks: Marks,
    pub(crate) frames: Vec<Frame>,
    /// For every frame, the frame that it makes superfluous right below it.
    absorbed: Vec<Option<FrameId>>,
    /// The frames by hash.
    frame_index: Table,
    expansions: Vec<Arc<Expansion>>,
    fork_index: Map<(FrameId, Phase), ExpansionId>,
    /// See [`Machine::fork_of_tokens`]; only results that are not the expansion itself.
    forks_of_tokens: Map<ExpansionId, (Arc<Expansion>, StateId)>,
    known_sets: Vec<Box<[u64]>>,
    /// The sets by hash; the first one is empty and not in this table.
    known_index: Table,
    objects: Map<MembersId, Arc<ObjectFacts>>,
    /// The objects that [`Machine::named_keys`] has not yet looked at, and, for each key within a token, whether it is
    /// a name of one of the others.
    unlooked: Vec<MembersId>,
    named_keys: Vec<bool>,
    /// The alternatives that may come in arrays with counters, by position and counters.
    pub(crate) allowed_elements: Bounded<(ItemsId, u32, Box<[u32]>), u64>,
    /// The numbers of lexemes, and of parts of them, in the lexeme cache.
    lexemes: Map<ExprId, ExprId>,
    /// See [`Machine::begins`].
    pub(crate) begins: Map<FrameId, Option<Begins>>,
    /// See [`Machine::does_whitespace_decide`].
    whitespace_decides: Option<bool>,
    /// The expansion of the entry that holds the text so far, where elements must differ.
    pub(crate) text_fork: Option<ExpansionId>,
    /// The names that texts declare.
    pub(crate) names: DeclaredNames,
    /// Data that later rooms keep about the grammar.
    pub(crate) extensions: Extensions,
}

impl Machine {
    /// The machine of a grammar with only its root, which is frame 0.
    ///
    /// # Errors
    /// As [`Marks::new`].
    pub fn new(grammar: Arc<Grammar>, tokens: Arc<TokenEdges>) -> Result<Machine, EngineError> {
        let left = LeftGraph::new(grammar.clone());
        let mut machine = Machine {
            marks: Marks::new(&left)?,
            left,
            tokens,
            frames: Vec::new(),
            absorbed: Vec::new(),
            frame_index: Table::default(),
            expansions: Vec::new(),
            fork_index: Map::default(),
            forks_of_tokens: Map::default(),
            known_sets: vec![Box::default()],
            known_index: Table::default(),
            objects: Map::default(),
            unlooked: Vec::new(),
            named_keys: Vec::new(),
            allowed_elements: Bounded::default(),
            lexemes: Map::default(),
            begins: Map::default(),
            extensions: Extensions::default(),
            whitespace_decides: None,
            text_fork: None,
            names: DeclaredNames::default(),
            grammar,
        };
        let root = Frame::Node(machine.grammar.root());
        machine.frame_id(root);
        let has_names = machine.find_names();
        if has_names || machine.grammar.all_items().iter().any(Items::compares) {
            let frame = machine.frame_id(Frame::Text);
            machine.text_fork = Some(ExpansionId(machine.expansions.len() as u32));
            machine.expansions.push(Arc::new(Expansion::nothing(frame)));
        }
        Ok(machine)
    }

    /// The frame that every text starts from.
    pub const ROOT: FrameId = FrameId(0);

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let of_tokens = self.forks_of_tokens.values().map(|(expansion, _)| expansion);
        let expansions: usize = self.expansions.iter().chain(of_tokens).map(|expansion| expansion.memory_bytes()).sum();
        let objects: usize = self.objects.values().map(|facts| facts.memory_bytes()).sum();
        let known = self.known_sets.iter().map(|set| memory::of_slice::<u64>(set.len()));
        let lists = memory::of_list(&self.frames)
            + memory::of_list(&self.absorbed)
            + memory::of_list(&self.expansions)
            + memory::of_list(&self.known_sets)
            + memory::of_list(&self.unlooked)
            + memory::of_list(&self.named_keys);
        let tables = self.frame_index.memory_bytes()
            + self.fork_index.memory_bytes()
            + self.forks_of_tokens.memory_bytes()
            + self.known_index.memory_bytes()
            + self.objects.memory_bytes()
            + self.allowed_elements.memory_bytes()
            + self.lexemes.memory_bytes()
            + self.begins.memory_bytes()
            + self.extensions.memory_bytes()
            + self.names.memory_bytes();
        self.left.memory_bytes() + lists + tables + known.sum::<usize>() + expansions + objects
    }

    /// The expansion with this number.
    #[inline]
    pub fn fork(&self, id: ExpansionId) -> &Arc<Expansion> {
        &self.expansions[id.0 as usize]
    }

    /// The expansion to use for questions about the next token, and the state in which its lexemes begin: counts too
    /// large to matter are clamped. If the cache already has an automaton for the clamped lexemes, as it nearly always
    /// has for the unbounded string, the returned expansion uses that one, because its states are built already.
    ///
    /// # Errors
    /// Limits: lexemes that are too large.
    pub fn fork_of_tokens(
        &mut self,
        lexeme_cache: &mut LexemeCache,
        id: ExpansionId,
    ) -> Result<(Arc<Expansion>, StateId), EngineError> {
        let expansion = self.fork(id);
        let Some(dfa) = expansion.dfa() else { return Ok((expansion.clone(), StateId::START)) };
        let start = lexeme_cache.saturated(dfa, StateId::START)?;
        if start == StateId::START {
            return Ok((expansion.clone(), start));
        }
        if let Some(known) = self.forks_of_tokens.get(&id) {
            return Ok(known.clone());
        }
        // The text of an additional key is remembered by the states of its own automaton.
        let found = match lexeme_cache.known_dfa_from(dfa, start).filter(|_| !expansion.additional) {
            Some(dfa) => {
                (Arc::new(Expansion { automaton: Automaton::Dfa(dfa), ..(**expansion).clone() }), StateId::START)
            }
            None => (expansion.clone(), start),
        };
        self.forks_of_tokens.insert(id, found.clone());
        Ok(found)
    }

    pub(crate) fn grammar(&self) -> &Arc<Grammar> {
        &self.grammar
    }

    /// Whether there is a frame with this number.
    pub(crate) fn has_frame(&self, frame: FrameId) -> bool {
        (frame.0 as usize) < self.frames.len()
    }

    /// The frame itself, without the whitespace before it.
    pub(crate) fn frame(&self, frame: FrameId) -> Frame {
        self.frames[self.after_whitespace(frame).0 as usize]
    }

    /// Whether a frame begins with the whitespace of the part before it.
    pub(crate) fn has_leading_whitespace(&self, frame: FrameId) -> bool {
        self.after_whitespace(frame) != frame
    }

    /// The frame without the whitespace before it.
    fn after_whitespace(&self, frame: FrameId) -> FrameId {
        match self.frames[frame.0 as usize] {
            Frame::WithWhitespace { then, .. } => then,
            _ => frame,
        }
    }

    /// The facts about an object, computed when first asked for.
    pub(crate) fn object(&mut self, id: MembersId) -> Arc<ObjectFacts> {
        if let Some(known) = self.objects.get(&id) {
            return known.clone();
        }
        let members = self.grammar.members(id);
        let names = Arc::new(Names::new(&self.grammar, members));
        let facts = ObjectFacts::new(names, members);
        let facts = Arc::new(facts);
        self.unlooked.push(id);
        self.objects.insert(id, facts.clone());
        facts
    }

    /// Whether the additional keys of a class exclude this name.
    pub fn is_reserved(&self, members: MembersId, class: u32, key: &[u8]) -> bool {
        let additional = &self.grammar.members(members).additional[class as usize];
        additional.reserved.binary_search_by(|name| name.as_bytes().cmp(key)).is_ok()
    }

    /// Whether whitespace can decide what comes next: the comma or the closing bracket after a value, or an element or
    /// the closing bracket after an opening one, as in a text with indentation.
    pub(crate) fn does_whitespace_decide(&mut self, lexeme_cache: &mut LexemeCache) -> Result<bool, EngineError> {
        if let Some(known) = self.whitespace_decides {
            return Ok(known);
        }
        let grammar = self.grammar.clone();
        let objects = grammar.all_members().iter().map(|members| members.surface);
        let arrays = grammar.all_items().iter().map(|items| items.surface);
        let pairs = objects.map(|object| [(object.empty, object.open), (object.item, object.close)]);
        let pairs = pairs.chain(arrays.map(|array| [(array.empty, array.open), (array.item, array.close)]));
        let mut decide = false;
        for (one, other) in pairs.flatten() {
            let dfa = [self.lexeme(lexeme_cache, one)?, self.lexeme(lexeme_cache, other)?];
            let dfa = lexeme_cache.dfa(&dfa)?;
            let mut states = vec![StateId::START];
            for byte in lexeme_cache.live_bytes(dfa, StateId::START)?.iter().collect::<Vec<_>>() {
                states.push(lexeme_cache.step(dfa, StateId::START, byte)?.0);
            }
            for state in states {
                for &byte in b" \t\r\n" {
                    let next = lexeme_cache.step(dfa, state, byte)?.0;
                    let lexemes = |state| lexeme_cache.residuals(dfa, state).iter().map(|&(tag, _)| tag);
                    decide |= next != StateId::DEAD && !lexemes(state).eq(lexemes(next));
                }
            }
        }
        self.whitespace_decides = Some(decide);
        Ok(decide)
    }

    /// The names with this beginning that the additional keys of a class exclude, ascending.
    pub(crate) fn reserved_after(&self, members: MembersId, class: u32, begun: &[u8]) -> &[Arc<str>] {
        let reserved = &self.grammar.members(members).additional[class as usize].reserved;
        let from = &reserved[reserved.partition_point(|name| name.as_bytes() < begun)..];
        &from[..from.partition_point(|name| name.as_bytes().starts_with(begun))]
    }

    /// Whether some object whose facts are known has this name in plain spelling.
    pub fn is_name(&self, name: &[u8]) -> bool {
        self.objects.values().any(|facts| facts.names.has(name))
    }

    /// For each key that lies within a token, whether some object whose facts are known declares or reserves it.
    pub(crate) fn named_keys(&mut self, keys: &WholeKeys) -> &[bool] {
        self.named_keys.resize(keys.keys().len(), false);
        while let Some(id) = self.unlooked.pop() {
            let names = &self.objects.get(&id).expect("what was met is known").names;
            let additional = &self.grammar.members(id).additional;
            let is_reserved =
                |reserved: &[Arc<str>], key| reserved.binary_search_by(|name| name.as_bytes().cmp(key)).is_ok();
            // Few keys within tokens begin with the same byte as a name.
            let reserved = additional
                .iter()
                .flat_map(|additional| additional.reserved.iter())
                .filter_map(|name| name.bytes().next());
            let first = reserved.collect::<ByteSet>().union(&names.next_bytes(names.next(StateId::START, b'"')));
            for (named, key) in self.named_keys.iter_mut().zip(keys.keys()) {
                if key.first().is_none_or(|&byte| first.contains(byte)) {
                    *named |=
                        names.has(key) || additional.iter().any(|additional| is_reserved(&additional.reserved, key));
                }
            }
        }
        &self.named_keys
    }

    /// The set of declared members with one more.
    pub fn known_with(&mut self, set: u32, member: u32) -> u32 {
        let mut words = self.known_sets[set as usize].to_vec();
        let word = member as usize / 64;
        words.resize(words.len().max(word + 1), 0);
        words[word] |= 1 << (member % 64);
        let hash = hash_of(&words[..]);
        if let Some(known) = self.known_index.find(hash, |id| *self.known_sets[id as usize] == words[..]) {
            return known;
        }
        let id = self.known_sets.len() as u32;
        self.known_sets.push(words.into());
        self.known_index.insert(hash, id);
        id
    }

    /// A set of declared members, as bits.
    pub(crate) fn known_set(&self, set: u32) -> &[u64] {
        &self.known_sets[set as usize]
    }

    /// The number of a frame. A frame that only stands for a node has the number of that node's frame.
    pub(crate) fn frame_id(&mut self, frame: Frame) -> FrameId {
        let node = match frame {
            Frame::Node(node) => Some(node),
            Frame::Rest { node, from } => match self.grammar.node(node) {
                Node::Sequence(parts) if from as usize + 1 == parts.len() => Some(parts[from as usize]),
                _ => None,
            },
            _ => None,
        };
        let frame = match node.map(|node| self.left.resolve(node)) {
            Some(node) => match self.grammar.node(node) {
                Node::Lexeme(expr) => Frame::Lexeme(*expr),
                _ => Frame::Node(node),
            },
            None => frame,
        };
        let hash = hash_of(&frame);
        if let Some(known) = self.frame_index.find(hash, |id| self.frames[id as usize] == frame) {
            return FrameId(known);
        }
        let id = self.frames.len() as u32;
        self.frames.push(frame);
        self.absorbed.push(None);
        self.frame_index.insert(hash, id);
        FrameId(id)
    }

    /// Records that a frame makes another one superfluous right below it.
    pub(crate) fn absorb(&mut self, frame: FrameId, absorbed: Option<FrameId>) {
        self.absorbed[frame.0 as usize] = absorbed;
    }

    /// The frame that is superfluous right below this one.
    #[inline]
    pub fn absorbed(&self, frame: FrameId) -> Option<FrameId> {
        self.absorbed[self.after_whitespace(frame).0 as usize].filter(|_| Switch::ParseAbsorbed.is_on())
    }

    /// The first expansion of a frame under a guard; the others are linked to it. `None` where nothing can come.
    ///
    /// # Errors
    /// Limits: too many alternatives at the beginning, or lexemes that are too large.
    pub fn fork_of(
        &mut self,
        lexeme_cache: &mut LexemeCache,
        frame: FrameId,
        phase: Phase,
    ) -> Result<ExpansionId, EngineError> {
        if let Some(&known) = self.fork_index.get(&(frame, phase)) {
            return Ok(known);
        }
        let mut also = None;
        for mut expansion in self.lay_out(lexeme_cache, frame, phase)? {
            expansion.also = also;
            also = Some(ExpansionId(self.expansions.len() as u32));
            self.expansions.push(Arc::new(expansion));
        }
        let id = also.expect("a frame has at least one expansion");
        self.fork_index.insert((frame, phase), id);
        Ok(id)
    }

    /// The alternatives for what follows a lexeme of an expansion.
    pub fn continuations<'a>(&mut self, expansion: &'a Expansion, tag: Tag) -> Cow<'a, [Continuation]> {
        match &expansion.continuations {
            Continuations::Listed(continuations) => Cow::Borrowed(&continuations[tag as usize]),
            Continuations::Known(id) => {
                let Some(known) = self.grammar.members(*id).declared.get(tag as usize) else { return Cow::default() };
                let value = known.value;
                let after = self.frame_id(Frame::AfterValue(*id));
                let member = self.frame_id(Frame::Member { members: *id, value });
                let frames: Continuation =
                    [(after, Register::Object(MemberChange::Known(tag))), (member, Register::Value(0))].into();
                Cow::Owned(vec![frames])
            }
        }
    }

    /// The names of an object.
    pub fn names(&mut self, id: MembersId) -> Arc<Names> {
        self.object(id).names.clone()
    }

    /// The number of a lexeme of the grammar in the lexeme cache.
    ///
    /// # Errors
    /// A limit, where importing it takes too long.
    pub(crate) fn lexeme(&mut self, lexeme_cache: &mut LexemeCache, lexeme: ExprId) -> Result<ExprId, EngineError> {
        Ok(lexeme_cache.import_once(self.grammar.exprs(), lexeme, &mut self.lexemes)?)
    }

    /// Imports the large lexemes of the grammar in advance, so that no mask has to wait for it.
    ///
    /// # Errors
    /// As [`Machine::lexeme`].
    pub(crate) fn take_over_large_lexemes(&mut self, lexeme_cache: &mut LexemeCache) -> Result<(), EngineError> {
        let grammar = self.grammar.clone();
        let lexeme = |node: &Node| if let Node::Lexeme(lexeme) = node { Some(*lexeme) } else { None };
        let mut lexemes: Vec<ExprId> = grammar.nodes().iter().filter_map(lexeme).collect();
        lexemes.sort_unstable();
        // The parts of an expression have smaller numbers than it, so a large gap between lexemes is a large lexeme.
        let mut made = grammar.exprs().len() - grammar.exprs().own_len();
        for lexeme in lexemes {
            if lexeme.index() > made + LOOKED_AT {
                self.lexeme(lexeme_cache, lexeme)?;
            }
            made = made.max(lexeme.index());
        }
        Ok(())
    }

    /// Whether the automaton of a frame can read the whitespace before it. The frame must read at least one
    /// byte and begin with a lexeme: before a single token the whitespace has to end first.
    pub(crate) fn takes_whitespace(&self, frame: FrameId) -> bool {
        match self.frames[frame.0 as usize] {
            Frame::Node(node) if matches!(self.grammar.node(node), Node::Repeat { .. }) => false,
            Frame::WithWhitespace { .. } => false,
            place => {
                let plain = !self.tokens.any() && !self.marks.any();
                !self.is_nullable(place) && (plain || !self.begins_with_token(place))
            }
        }
    }

    /// Whether a single token or a marked part may come first at a frame. This may be `true` where none can.
    fn begins_with_token(&self, frame: Frame) -> bool {
        match frame {
            Frame::Node(node) => self.left.begins_with_token(node),
            Frame::Rest { node, from } => match self.grammar.node(node) {
                Node::Sequence(parts) => parts[from as usize..].iter().any(|&part| self.left.begins_with_token(part)),
                _ => unreachable!("only a sequence has a rest"),
            },
            Frame::Left { .. } => true,
            Frame::Item(id) => {
                self.grammar.items(id).elements().any(|element| self.left.begins_with_token(element.value))
            }
            Frame::Lexeme(_)
            | Frame::Key(_)
            | Frame::Member { .. }
            | Frame::AfterValue(_)
            | Frame::AfterItem(_)
            | Frame::End(_)
            | Frame::Reference { .. }
            | Frame::Names
            | Frame::Text => false,
            Frame::WithWhitespace { .. } => {
                unreachable!("whitespace is put before a frame only when the frame is pushed")
            }
        }
    }

    pub(crate) fn is_nullable(&self, frame: Frame) -> bool {
        match frame {
            Frame::Node(node) => self.left.is_nullable(node),
            Frame::Rest { node, from } => self.left.is_rest_nullable(node, Rest::Parts(from)),
            Frame::Left { nullable, .. } => nullable,
            Frame::Lexeme(expr) => self.grammar.exprs().is_nullable(expr),
            Frame::End(_) => true,
            Frame::Item(id) => self.grammar.items(id).is_bare(),
            Frame::Key(_)
            | Frame::Member { .. }
            | Frame::AfterValue(_)
            | Frame::AfterItem(_)
            | Frame::Names
            | Frame::Reference { .. }
            | Frame::Text => false,
            Frame::WithWhitespace { .. } => {
                unreachable!("whitespace is put before a frame only when the frame is pushed")
            }
        }
    }
}
