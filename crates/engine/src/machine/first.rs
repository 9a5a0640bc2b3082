//! Which lexemes may come first at a frame, and what is left after each: how one expansion is built.
//!
//! The search goes from the frame down to first lexemes. Left-recursive nodes are entered from the left corner up (see
//! `machine/left_corner.rs`), because the path down does not end. So are all others with very many paths down through
//! few places, since every path has its own continuation: then the paths become frames, and there are as many as nodes.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use stencilm_grammar::{Items, ItemsId, KeySpace, Mark, MembersId, Node, NodeId, Repeats};
use stencilm_regex::{ExprId, StateId};
use stencilm_support::{FEW, MANY, Map, SEARCHED, Set, WORK};

use crate::error::EngineError;
use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::machine::expansion::{Automaton, Continuations, Expansion, OptionalWhitespace};
use crate::machine::frame::{Begun, CountUp, ElementChange, MemberChange};
use crate::machine::layout::{Continuation, Frame, FrameId, Machine, Phase, Register};
use crate::machine::left_corner::{Region, Rest};
use crate::machine::objects::KeysToCome;
use crate::machine::property_trie::{Filter, Names};

/// A node is read from the left corner up once this many paths per node on them were followed.
const MAX_WAYS_PER_PLACE: usize = 3;

/// Places still to visit, each with the frames that follow it, and the lexemes, tokens and marked parts found so far.
#[derive(Default)]
struct Search {
    work: Vec<(Frame, Steps)>,
    seen: Set<(Frame, Steps)>,
    places: Set<Frame>,
    cases: Vec<(ExprId, Steps)>,
    tokens: Vec<(NodeId, Steps)>,
    opens: Vec<(FrameId, Steps)>,
    links: Links,
    /// Whether every node is read from the left corner, and not only the left-recursive ones.
    whole: bool,
    /// The number of frames written so far.
    pushes: usize,
}

/// A list of frames to push, as a number in [`Links`]; 0 is the empty list.
type Steps = u32;

/// A frame to push and how it gets its register.
type Step = (FrameId, Register);

/// Lists of frames to push. Lists on different paths mostly share a beginning, so a list is stored as its last frame
/// and the number of the list before it, and equal lists have one number: comparing and passing on a path takes
/// constant time.
#[derive(Default)]
struct Links {
    /// The number of the list before, the last frame, and the length.
    links: Vec<(Steps, Step, u32)>,
    index: Map<(Steps, Step), Steps>,
}

impl Links {
    /// The list with one more frame on top.
    fn push(&mut self, below: Steps, step: Step) -> Steps {
        let count = self.len(below) as u32 + 1;
        let Links { links, index } = self;
        *index.get_or_insert_with((below, step), || {
            links.push((below, step, count));
            links.len() as Steps
        })
    }

    fn len(&self, steps: Steps) -> usize {
        if steps == 0 { 0 } else { self.links[steps as usize - 1].2 as usize }
    }

    /// The frames of a list, the bottom one first.
    fn list(&self, mut steps: Steps) -> Vec<Step> {
        let mut list = Vec::with_capacity(self.len(steps));
        while steps != 0 {
            let (below, step, _) = self.links[steps as usize - 1];
            list.push(step);
            steps = below;
        }
        list.reverse();
        list
    }
}

impl Search {
    fn add(&mut self, frame: Frame, steps: Steps) {
        if self.seen.insert((frame, steps)) {
            self.pushes += self.links.len(steps) + 1;
            self.places.insert(frame);
            self.work.push((frame, steps));
        }
    }

    /// Whether there are too many alternatives, or too long ones, to list one by one.
    fn is_lost(&self, steps: Steps) -> bool {
        self.links.len(steps) > FEW || self.seen.len() > MANY + MAX_WAYS_PER_PLACE * self.places.len()
    }

    /// The distinct results, with their frames written out.
    fn written<T: Ord + Copy>(&self, found: &[(T, Steps)]) -> Vec<(T, Continuation)> {
        let mut written: Vec<(T, Continuation)> =
            found.iter().map(|&(what, steps)| (what, self.links.list(steps).into())).collect();
        written.sort_unstable();
        written.dedup();
        written
    }
}

/// What a member must provide, and whether a cut-off object may end with it.
struct KeyEnds {
    /// Bits of the values of which one must still occur.
    required_left: u32,
    /// Whether every further member must have one of these values.
    tight: bool,
    may_end: bool,
}

impl Machine {
    /// The expansions of a frame: one for most frames, and for the key of an object one for each automaton.
    pub(crate) fn lay_out(
        &mut self,
        lexeme_cache: &mut LexemeCache,
        whole: FrameId,
        phase: Phase,
    ) -> Result<Vec<Expansion>, EngineError> {
        let (whitespace, frame) = match self.frames[whole.0 as usize] {
            Frame::WithWhitespace { whitespace, then } => (Some(whitespace), then),
            _ => (None, whole),
        };
        if let Frame::End(_) = self.frames[frame.0 as usize] {
            return Ok(vec![Expansion { nullable: true, ..Expansion::nothing(frame) }]);
        }
        if let Frame::Reference { node, names } = self.frames[frame.0 as usize] {
            let lexeme = self.reference_lexeme(lexeme_cache, node, names)?;
            let (dfa, whitespace) = automaton(lexeme_cache, vec![lexeme], whitespace)?;
            let continuations = Continuations::Listed(vec![vec![Continuation::default()]]);
            return Ok(vec![Expansion { whitespace, ..Expansion::new(whole, Automaton::Dfa(dfa), continuations) }]);
        }
        if let Some(cases) = self.plain_cases(frame, phase) {
            return Ok(vec![self.fork_of_cases(lexeme_cache, whole, whitespace, cases)?]);
        }
        if let Some(expansion) = self.fork_of_texts(whole, whitespace, frame) {
            return Ok(vec![expansion]);
        }
        let mut search = Search::default();
        let nullable;
        match (self.frames[frame.0 as usize], phase) {
            (Frame::Node(node), Phase::Repeat { may_end, may_go_on }) => {
                nullable = may_end;
                let Node::Repeat { body, min, max } = *self.grammar.node(node) else {
                    unreachable!("only a repetition has this phase");
                };
                if may_go_on {
                    let register = Register::Count(CountUp { limit: max.unwrap_or(min) });
                    let again = if max == Some(1) { 0 } else { search.links.push(0, (frame, register)) };
                    search.add(Frame::Node(body), again);
                }
            }
            (Frame::Key(id), Phase::Key { next, known, required_left, tight, reach, may_end }) => {
                let keys = self.keys(id, KeysToCome { next, known, tight, reach });
                let closing = KeyEnds { required_left, tight, may_end };
                return self.key_forks(lexeme_cache, whole, whitespace, id, keys, closing);
            }
            (Frame::Item(id), Phase::Item { place, allowed, may_end }) => {
                let grammar = self.grammar.clone();
                nullable = may_end;
                let after = if grammar.items(id).is_bare() { frame } else { self.frame_id(Frame::AfterItem(id)) };
                let alternatives = grammar.items(id).at(place as usize).iter().enumerate();
                for (_, element) in alternatives.filter(|(index, _)| allowed & (1 << index) != 0) {
                    let register = Register::Array(ElementChange::Counted { counts: element.counts });
                    let behind = search.links.push(0, (after, register));
                    search.add(Frame::Node(element.value), behind);
                }
            }
            (place, _) => {
                nullable = self.is_nullable(place);
                search.add(place, 0);
            }
        }
        self.search(&mut search)?;
        let (tokens, opens) = (search.written(&search.tokens), search.written(&search.opens));
        let cases = search.cases.iter().map(|&(lexeme, steps)| (lexeme, search.links.list(steps))).collect();
        let expansion = self.fork_of_cases(lexeme_cache, whole, whitespace, cases)?;
        Ok(vec![Expansion { nullable, tokens, opens, ..expansion }])
    }

    /// The lexemes of a frame that is only punctuation, each with the frames that follow it.
    fn plain_cases(&mut self, frame: FrameId, phase: Phase) -> Option<Vec<(ExprId, Vec<Step>)>> {
        let (item, next, close, (more, may_close)) = match (self.frames[frame.0 as usize], phase) {
            (Frame::Member { members, value }, _) => {
                let value = self.frame_id(Frame::Node(value));
                let colon = self.grammar.members(members).surface.colon;
                return Some(vec![(colon, vec![(value, Register::Value(0))])]);
            }
            (Frame::AfterItem(id), Phase::AfterValue { more, may_close }) => {
                let &Items { surface, repeats, .. } = self.grammar.items(id);
                let register = match repeats {
                    Repeats::Any => Register::Same,
                    _ => Register::Array(ElementChange::Next),
                };
                (surface.item, (Frame::Item(id), register), surface.close, (more, may_close))
            }
            (Frame::AfterValue(id), Phase::AfterValue { more, may_close }) => {
                let surface = self.grammar.members(id).surface;
                (surface.item, (Frame::Key(id), Register::Same), surface.close, (more, may_close))
            }
            _ => return None,
        };
        let mut cases = Vec::with_capacity(2);
        if more {
            cases.push((item, vec![(self.frame_id(next.0), next.1)]));
        }
        if may_close {
            cases.push((close, Vec::new()));
        }
        Some(cases)
    }

    /// The expansions of a key: declared keys with one plain spelling, declared keys with several spellings, and
    /// additional keys. They are separate because the first belong to the schema alone, while the last are the same in
    /// every object and shared.
    fn key_forks(
        &mut self,
        lexeme_cache: &mut LexemeCache,
        frame: FrameId,
        whitespace: Option<OptionalWhitespace>,
        id: MembersId,
        (filter, additional_may_come): (Filter, bool),
        KeyEnds { required_left, tight, may_end }: KeyEnds,
    ) -> Result<Vec<Expansion>, EngineError> {
        let facts = self.object(id);
        let grammar = self.grammar.clone();
        let members = grammar.members(id);
        let after = self.frame_id(Frame::AfterValue(id));
        let mut expansions = Vec::new();
        let may_come = |last: bool| if last { may_end } else { additional_may_come };
        for (number, class) in members.additional.iter().enumerate().filter(|(_, class)| may_come(class.last.is_some()))
        {
            let satisfied = facts.required_bits[number] & required_left;
            let mut values = Vec::with_capacity(2);
            // If every further member must have a value that is still required, a member without one cannot come.
            if !tight && (satisfied == 0 || !class.meets_always(grammar.nodes())) {
                values.push((class.value, 0));
            }
            values.extend(class.some.filter(|_| satisfied != 0).map(|some| (some, satisfied)));
            let mut cases = Vec::with_capacity(2);
            if class.last.is_some() {
                values.clear();
                cases.push((
                    class.key,
                    vec![(self.frame_id(Frame::Node(class.value)), Register::Object(MemberChange::Last))],
                ));
            }
            for (value, satisfied) in values {
                let member = self.frame_id(Frame::Member { members: id, value });
                cases.push((
                    class.key,
                    vec![
                        (after, Register::Object(MemberChange::Additional { satisfied })),
                        (member, Register::Value(0)),
                    ],
                ));
            }
            if cases.is_empty() {
                continue;
            }
            let expansion = self.fork_of_cases(lexeme_cache, frame, whitespace, cases)?;
            let (number, has_reserved) = (number as u32, !class.reserved.is_empty());
            let locally_finite = class.space != KeySpace::Infinite;
            expansions.push(Expansion {
                additional: true,
                locally_finite,
                has_reserved,
                members: Some(id),
                class: number,
                ..expansion
            });
        }
        let mut others = Vec::new();
        for &index in facts.names.others.iter().filter(|&&index| filter.allows(index)) {
            let known = &members.declared[index as usize];
            let Some(key) = known.key else { unreachable!("a plain key has one spelling") };
            let member = self.frame_id(Frame::Member { members: id, value: known.value });
            others
                .push((key, vec![(after, Register::Object(MemberChange::Known(index))), (member, Register::Value(0))]));
        }
        if !others.is_empty() {
            let expansion = self.fork_of_cases(lexeme_cache, frame, whitespace, others)?;
            expansions.push(Expansion { members: Some(id), ..expansion });
        }
        // Without a key that may come, whitespace before it would be a dead end.
        if expansions.is_empty() || facts.names.goes_on(&filter, StateId::START) {
            let (automaton, continuations) = (Automaton::Names(facts.names.clone(), filter), Continuations::Known(id));
            expansions.push(Expansion {
                whitespace,
                members: Some(id),
                ..Expansion::new(frame, automaton, continuations)
            });
        }
        Ok(expansions)
    }

    /// The expansion of a lexeme that matches one of a few texts, such as a constant.
    fn fork_of_texts(
        &mut self,
        whole: FrameId,
        whitespace: Option<OptionalWhitespace>,
        frame: FrameId,
    ) -> Option<Expansion> {
        let (expr, behind) = match self.frames[frame.0 as usize] {
            Frame::Lexeme(expr) => (expr, None),
            Frame::Rest { node, from } => self.piece(node, from)?,
            Frame::Node(node) => self.piece(node, 0)?,
            _ => return None,
        };
        // Comparing elements needs the expressions themselves.
        let exprs = self.grammar.exprs();
        if self.keeps_text() || exprs.is_nullable(expr) {
            return None;
        }
        let names = Names::of_texts(&exprs.texts(expr, SEARCHED, SEARCHED)?);
        let first = names.next_bytes(StateId::START);
        if whitespace.is_some_and(|whitespace| !first.intersect(&whitespace.set).is_empty()) {
            return None;
        }
        let automaton = Automaton::Names(Arc::new(names), Filter::Range { from: 0, to: 0 });
        let behind = behind.map(|rest| (self.frame_id(rest), Register::Value(0)));
        let continuations = Continuations::Listed(vec![vec![behind.into_iter().collect()]]);
        Some(Expansion { whitespace, ..Expansion::new(whole, automaton, continuations) })
    }

    /// The part of a sequence at a position, where it is a piece of a long text, and what follows it. No other grammar
    /// contains such a piece, and a text passes it once, so an automaton in the shared cache would only waste space.
    fn piece(&self, sequence: NodeId, from: u32) -> Option<(ExprId, Option<Frame>)> {
        let Node::Sequence(parts) = self.grammar.node(sequence) else { return None };
        let Node::Lexeme(expr) = *self.grammar.node(*parts.get(from as usize)?) else { return None };
        let is_long = self.grammar.exprs().shortest_at_least(expr) as usize >= MANY;
        let has_more = from as usize + 1 < parts.len();
        is_long.then_some((expr, has_more.then_some(Frame::Rest { node: sequence, from: from + 1 })))
    }

    /// The expansion of these lexemes, each of which comes with the frames that follow it.
    fn fork_of_cases(
        &mut self,
        lexeme_cache: &mut LexemeCache,
        frame: FrameId,
        whitespace: Option<OptionalWhitespace>,
        cases: Vec<(ExprId, Vec<Step>)>,
    ) -> Result<Expansion, EngineError> {
        let mut by_lexeme: Map<ExprId, Vec<Continuation>> = Map::default();
        for (lexeme, mut continuation) in cases {
            let mut expr = self.lexeme(lexeme_cache, lexeme)?;
            if let Some((top, _)) = continuation.last_mut()
                && self.takes_whitespace(*top)
                && let Some((head, whitespace)) = lexeme_cache.split_whitespace(expr)
            {
                expr = head;
                *top = self.frame_id(Frame::WithWhitespace { whitespace, then: *top });
            }
            by_lexeme.get_or_insert_with(expr, || Vec::with_capacity(1)).push(continuation.into());
        }
        let (mut exprs, mut by_tag) = (Vec::with_capacity(by_lexeme.len()), Vec::with_capacity(by_lexeme.len()));
        for (&expr, continuations) in by_lexeme.iter_mut() {
            continuations.sort_unstable();
            continuations.dedup();
            exprs.push(expr);
            by_tag.push(std::mem::take(continuations));
        }
        let (dfa, whitespace) = automaton(lexeme_cache, exprs, whitespace)?;
        Ok(Expansion { whitespace, ..Expansion::new(frame, Automaton::Dfa(dfa), Continuations::Listed(by_tag)) })
    }

    /// Follows every path to a first lexeme that reads at least one byte.
    fn search(&mut self, search: &mut Search) -> Result<(), EngineError> {
        if search.work.is_empty() {
            return Ok(());
        }
        let begin = (search.work.clone(), search.cases.clone());
        while let Some((place, continuation)) = search.work.pop() {
            if !search.whole && search.is_lost(continuation) {
                let links = std::mem::take(&mut search.links);
                *search = Search { whole: true, cases: begin.1.clone(), links, ..Search::default() };
                begin.0.iter().for_each(|&(place, steps)| search.add(place, steps));
                continue;
            }
            if search.pushes > WORK {
                return Err(EngineError::TooManyWays(WORK));
            }
            self.visit(search, place, continuation);
        }
        Ok(())
    }

    /// Adds what can come first at one place.
    fn visit(&mut self, search: &mut Search, place: Frame, continuation: Steps) {
        let grammar = self.grammar.clone();
        match place {
            Frame::Lexeme(expr) => search.cases.push((expr, continuation)),
            Frame::Rest { node, from } => {
                let Node::Sequence(parts) = grammar.node(node) else {
                    unreachable!("only a sequence has a rest");
                };
                let first = parts[from as usize];
                let mut inner = continuation;
                if (from as usize) + 1 < parts.len() {
                    let rest = Frame::Rest { node, from: from + 1 };
                    if self.left.is_nullable(first) {
                        search.add(rest, continuation);
                    }
                    inner = search.links.push(inner, (self.frame_id(rest), Register::Value(0)));
                }
                search.add(Frame::Node(first), inner);
            }
            Frame::Left { goal, corner, whole, .. } => self.visit_ups(search, goal, corner, whole, continuation),
            Frame::Node(node) => {
                let node = self.left.resolve(node);
                match grammar.node(node) {
                    Node::Lexeme(expr) => search.cases.push((*expr, continuation)),
                    Node::Token(_) => search.tokens.push((node, continuation)),
                    Node::Marked { mark: Mark::Refers(_), .. } => {
                        search.opens.push((self.frame_id(Frame::Node(node)), continuation));
                    }
                    &Node::Marked { ref mark, body } => {
                        let begun = if matches!(mark, Mark::Declares(_)) { Begun::InText } else { Begun::AtToken };
                        let inner =
                            search.links.push(continuation, (self.frame_id(Frame::End(node)), Register::Mark(begun)));
                        search.opens.push((self.frame_id(Frame::Node(body)), inner));
                    }
                    &Node::Members(id) => self.visit_object(search, id, continuation),
                    &Node::Items(id) => self.visit_array(search, id, continuation),
                    _ if search.whole || self.left.is_left_recursive(node) => {
                        self.visit_corners(search, node, continuation);
                    }
                    _ => {
                        let children: Vec<(NodeId, Rest)> = self.left.children(node).collect();
                        for (child, rest) in children.into_iter().rev() {
                            let inner = self.with_rest(search, continuation, node, rest);
                            search.add(Frame::Node(child), inner);
                        }
                    }
                }
            }
            Frame::Key(_)
            | Frame::Member { .. }
            | Frame::AfterValue(_)
            | Frame::Item(_)
            | Frame::AfterItem(_)
            | Frame::End(_)
            | Frame::Text
            | Frame::Names
            | Frame::Reference { .. }
            | Frame::WithWhitespace { .. } => {
                unreachable!("the inside of an object or an array and a pushed frame are never first places")
            }
        }
    }

    /// Adds the opening brackets of an object: `{}` at once where it may be empty, and `{` where a member may come.
    fn visit_object(&mut self, search: &mut Search, id: MembersId, continuation: Steps) {
        let grammar = self.grammar.clone();
        let members = grammar.members(id);
        let some = members.additional.iter().any(|additional| additional.some.is_some());
        let none_required = !members.declared.iter().any(|member| member.required);
        if members.min == 0 && !some && !members.is_cut() && none_required {
            search.cases.push((members.surface.empty, continuation));
        }
        let any = !members.declared.is_empty() || !members.additional.is_empty();
        if any && (members.max != Some(0) || members.is_cut()) {
            let key = (self.frame_id(Frame::Key(id)), Register::Value(0));
            let inner = search.links.push(continuation, key);
            search.cases.push((members.surface.open, inner));
        }
    }

    /// Adds the opening brackets of an array in the same way; for an array without brackets, its first elements.
    fn visit_array(&mut self, search: &mut Search, id: ItemsId, continuation: Steps) {
        let grammar = self.grammar.clone();
        let items = grammar.items(id);
        let counts = vec![0; items.contains.len()];
        if items.is_bare() {
            let allowed = self.allowed(id, items, 0, &counts);
            let after = self.frame_id(Frame::Item(id));
            for (index, element) in items.at(0).iter().enumerate() {
                if allowed & (1 << index) != 0 {
                    let register = Register::Array(ElementChange::Only { items: id, counts: element.counts });
                    let behind = search.links.push(continuation, (after, register));
                    search.add(Frame::Node(element.value), behind);
                }
            }
            return;
        }
        if items.min == 0 && items.is_satisfied(&counts) {
            search.cases.push((items.surface.empty, continuation));
        }
        if self.allowed(id, items, 0, &counts) != 0 {
            let register = if items.compares() { Register::Array(ElementChange::First) } else { Register::Value(0) };
            let inner = search.links.push(continuation, (self.frame_id(Frame::Item(id)), register));
            search.cases.push((items.surface.open, inner));
        }
    }

    /// Adds what can come first in a node that is read from the left corner: whatever its region begins with.
    fn visit_corners(&mut self, search: &mut Search, goal: NodeId, continuation: Steps) {
        let whole = search.whole;
        let region = self.left.region(goal, whole);
        let complete = region.completing(goal, &self.left);
        for &corner in region.nodes() {
            let children: Vec<(NodeId, Rest)> =
                self.left.children(corner).filter(|(child, _)| !region.contains(*child)).collect();
            if children.is_empty() {
                continue;
            }
            let mut up = continuation;
            if let Some(left) = self.left_frame(&region, &complete, goal, corner, whole) {
                up = search.links.push(up, (left, Register::Value(0)));
            }
            for (child, rest) in children {
                let inner = self.with_rest(search, up, corner, rest);
                search.add(Frame::Node(child), inner);
            }
        }
    }

    /// Adds what can come after a complete corner: the rest of each node that begins with it. Once this is read, that
    /// node is the complete corner.
    fn visit_ups(&mut self, search: &mut Search, goal: NodeId, corner: NodeId, whole: bool, continuation: Steps) {
        let region = self.left.region(goal, whole);
        let complete = region.completing(goal, &self.left);
        for node in region.complete_with(corner, &self.left) {
            for up in region.ups(node) {
                let (parent, mut inner) = (up.parent, continuation);
                if let Some(left) = self.left_frame(&region, &complete, goal, parent, whole) {
                    inner = search.links.push(inner, (left, Register::Value(0)));
                }
                match up.rest {
                    Rest::Nothing => {}
                    Rest::Parts(from) => search.add(Frame::Rest { node: parent, from }, inner),
                    Rest::Rounds => {
                        let Node::Repeat { body, min, max } = *self.grammar.node(parent) else {
                            unreachable!("only repetitions have rounds");
                        };
                        let count = Register::Value(2.min(max.unwrap_or(min)));
                        let inner = search.links.push(inner, (self.frame_id(Frame::Node(parent)), count));
                        search.add(Frame::Node(body), inner);
                    }
                }
            }
        }
    }

    /// The continuation, with the rest of a node after its first child on top.
    fn with_rest(&mut self, search: &mut Search, continuation: Steps, node: NodeId, rest: Rest) -> Steps {
        let step = match rest {
            Rest::Nothing => return continuation,
            Rest::Parts(from) => (self.frame_id(Frame::Rest { node, from }), Register::Value(0)),
            Rest::Rounds => {
                let Node::Repeat { min, max, .. } = *self.grammar.node(node) else {
                    unreachable!("only repetitions have rounds");
                };
                (self.frame_id(Frame::Node(node)), Register::Value(1.min(max.unwrap_or(min))))
            }
        };
        search.links.push(continuation, step)
    }

    /// The frame of the paths up from a complete corner; `None` where nothing can be read on them.
    fn left_frame(
        &mut self,
        region: &Region,
        complete: &FxHashSet<NodeId>,
        goal: NodeId,
        corner: NodeId,
        whole: bool,
    ) -> Option<FrameId> {
        let corner = region.highest(goal, corner);
        if !region.goes_on(corner) {
            return None;
        }
        let whole = whole || !self.left.is_left_recursive(goal);
        let mut frame =
            |corner: NodeId| self.frame_id(Frame::Left { goal, corner, whole, nullable: complete.contains(&corner) });
        let own = frame(corner);
        // The paths from a corner to the goal already include those that go on from the goal to itself, so the frame
        // makes the same frame of the goal, right below it, superfluous.
        let absorbed = region.goes_on(goal).then(|| frame(goal));
        self.absorb(own, absorbed);
        Some(own)
    }
}

/// The automaton of some lexemes after whitespace, and the part of the whitespace that it does not read itself. That
/// part is counted in the thread's state, so it needs no states of the automaton and has lexeme masks of its own.
fn automaton(
    lexeme_cache: &mut LexemeCache,
    mut exprs: Vec<ExprId>,
    whitespace: Option<OptionalWhitespace>,
) -> Result<(DfaId, Option<OptionalWhitespace>), EngineError> {
    let Some(before) = whitespace else {
        if let Some((own, rests)) = own_whitespace(lexeme_cache, &exprs) {
            let dfa = lexeme_cache.dfa(&rests)?;
            if lexeme_cache.live_bytes(dfa, StateId::START)?.intersect(&own.set).is_empty() {
                return Ok((dfa, Some(own)));
            }
        }
        return Ok((lexeme_cache.dfa(&exprs)?, None));
    };
    let dfa = lexeme_cache.dfa(&exprs)?;
    if lexeme_cache.live_bytes(dfa, StateId::START)?.intersect(&before.set).is_empty() {
        return Ok((dfa, whitespace));
    }
    // If a lexeme can itself begin with whitespace, only one automaton over both can tell how much may come.
    let before = lexeme_cache.whitespace(before.set, before.max);
    exprs.iter_mut().for_each(|expr| *expr = lexeme_cache.concat(before, *expr));
    Ok((lexeme_cache.dfa(&exprs)?, None))
}

/// The whitespace that all these lexemes begin with, and the lexemes after it; `None` where they do not share one.
fn own_whitespace(lexeme_cache: &LexemeCache, exprs: &[ExprId]) -> Option<(OptionalWhitespace, Vec<ExprId>)> {
    let (whitespace, _) = lexeme_cache.split_first_whitespace(*exprs.first()?)?;
    let rests =
        exprs.iter().map(|&expr| lexeme_cache.split_first_whitespace(expr).filter(|&(own, _)| own == whitespace));
    let rests: Option<Vec<ExprId>> = rests.map(|split| split.map(|(_, rest)| rest)).collect();
    rests.map(|rests| (whitespace, rests))
}
