//! Conditions on what follows a place, made part of what follows: an intersection of a grammar with regular conditions
//! that begin in its middle (Bar-Hillel, Perles, Shamir 1961).
//!
//! A condition is an expression that the rest of the text must match. Reading a lexeme leaves of it what the lexeme's
//! derivatives leave, so every node is copied for each pair of a condition before it and one after it. Only nodes that
//! a condition reaches are copied: those without a condition before them, and which set none, stay as they are.
//!
//! What is left of a condition after a lexeme matters only if it distinguishes texts that may follow there. A name that
//! must not be a keyword leaves the rest of a keyword after each of its beginnings, which a comma settles. So
//! conditions that the following text cannot distinguish are one, and mostly none is left.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{ByteSet, Deriver, ExprId, Limits, split};
use stencilm_support::{LimitExceeded, check_time};

use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::{Node, NodeId, RuleId};
use crate::ir::syntax_error::SyntaxError;
use crate::notations::following::{Next, following};

/// The greatest number of copies of nodes.
const MAX_COPIES: usize = 200_000;
/// The greatest number of rounds of a repetition that are written out because their conditions differ.
const MAX_ROUNDS: u32 = 64;
/// The greatest number of residuals of one condition after rounds of a repetition.
const MAX_LEFT: usize = 1_000;

/// The depth of nodes to which a new part is visited immediately.
const MAX_DEPTH: u32 = 16;

/// The condition that every rest satisfies.
const NONE: ExprId = ExprId::ANYTHING;

/// The nodes that set a condition, with the condition and the position of each.
pub(crate) type Conditions = FxHashMap<NodeId, (ExprId, usize)>;

/// The residuals of a condition after each byte that may come, and whether the text may end.
#[derive(PartialEq, Eq, Hash)]
struct Continuation {
    next: Next,
    rests: Vec<(ExprId, ByteSet)>,
    ends: bool,
}

struct Pass<'a> {
    builder: &'a mut GrammarBuilder,
    conditions: &'a Conditions,
    /// The position of the first condition.
    place: usize,
    /// Nodes within which a condition is set.
    setting: FxHashSet<NodeId>,
    /// By node and condition before it: the possible conditions after it.
    left: BTreeMap<(NodeId, ExprId), Vec<ExprId>>,
    /// By lexeme and condition before it: the groups of its texts, each with the condition after it.
    groups: FxHashMap<(ExprId, ExprId), Vec<(ExprId, ExprId)>>,
    /// How the text may continue after each node.
    follows: Vec<Next>,
    /// For each way to continue, the first condition with it, which stands for all others.
    settled: FxHashMap<Continuation, ExprId>,
    /// The rules for the rounds of a repetition, by the conditions before and after them.
    rounds: FxHashMap<(NodeId, ExprId, ExprId), RuleId>,
    /// Caches derivatives. While it's used, it owns the expressions of the builder.
    deriver: Deriver,
    made: FxHashMap<(NodeId, ExprId, ExprId), NodeId>,
    rules: FxHashMap<(RuleId, ExprId, ExprId), RuleId>,
    /// How many nested new parts are being visited.
    depth: u32,
}

/// The root of a grammar that enforces the conditions.
///
/// # Errors
/// An error at the first condition if it meets something that is not text, or would have to be written out too often.
pub(crate) fn kept(builder: &mut GrammarBuilder, root: NodeId, conditions: &Conditions) -> Result<NodeId, SyntaxError> {
    let Some(place) = conditions.values().map(|&(_, place)| place).min() else { return Ok(root) };
    let setting = setting(builder, conditions);
    let follows = following(builder, root, place)?;
    let mut pass = Pass {
        builder,
        conditions,
        place,
        setting,
        left: BTreeMap::new(),
        groups: FxHashMap::default(),
        follows,
        settled: FxHashMap::default(),
        rounds: FxHashMap::default(),
        deriver: Deriver::new(Limits::default()),
        made: FxHashMap::default(),
        rules: FxHashMap::default(),
        depth: 0,
    };
    pass.find(root)?;
    let ends: Vec<ExprId> = pass.left[&(root, NONE)].clone();
    let keys: Vec<(NodeId, ExprId)> = pass.left.keys().copied().collect();
    // Rules first, because they may be used before they are defined.
    for &(node, before) in &keys {
        if let Node::Rule(rule) = *pass.builder.get(node)
            && !pass.is_plain(node, before)
        {
            for after in pass.left[&(node, before)].clone() {
                pass.declare(rule, before, after);
            }
        }
    }
    for &(node, before) in &keys {
        for after in pass.left[&(node, before)].clone() {
            pass.in_time()?;
            let made = pass.make(node, before, after)?;
            pass.made.insert((node, before, after), made);
        }
    }
    for ((rule, before, after), copy) in pass.rules.clone() {
        let body = pass.builder.body(rule);
        let body = pass.made[&(body, before, after)];
        pass.builder.define_rule(copy, body);
    }
    let ends = ends.into_iter().filter(|&end| pass.builder.exprs.is_nullable(end)).collect::<Vec<_>>();
    let roots: Vec<NodeId> = ends.into_iter().map(|end| pass.made[&(root, NONE, end)]).collect();
    Ok(pass.builder.choice(&roots))
}

/// The nodes within which a condition is set, directly or through what they use.
fn setting(builder: &GrammarBuilder, conditions: &Conditions) -> FxHashSet<NodeId> {
    let mut users: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    for index in 0..builder.node_count() {
        let node = NodeId(index as u32);
        for child in parts(builder, node) {
            users.entry(child).or_default().push(node);
        }
    }
    let mut setting: FxHashSet<NodeId> = conditions.keys().copied().collect();
    let mut work: Vec<NodeId> = setting.iter().copied().collect();
    while let Some(node) = work.pop() {
        for &user in users.get(&node).into_iter().flatten() {
            if setting.insert(user) {
                work.push(user);
            }
        }
    }
    setting
}

/// The direct parts of a node; rules are followed. The contents of objects and arrays are left out, because conditions
/// don't reach there.
fn parts(builder: &GrammarBuilder, node: NodeId) -> Vec<NodeId> {
    match builder.get(node) {
        Node::Sequence(parts) | Node::Choice(parts) => parts.to_vec(),
        Node::Repeat { body, .. } | Node::Marked { body, .. } => vec![*body],
        Node::Rule(rule) => vec![builder.body(*rule)],
        Node::Lexeme(_) | Node::Token(_) | Node::Members(_) | Node::Items(_) => Vec::new(),
    }
}

impl Pass<'_> {
    fn refused(&self, what: &str) -> SyntaxError {
        SyntaxError::unsupported(self.place, format!("this condition on what follows {what}"))
    }

    /// Fails if the time is over; the error says what to do instead.
    fn in_time(&self) -> Result<(), SyntaxError> {
        check_time().map_err(|limit| {
            let mut message = limit.while_reading();
            if let LimitExceeded::Time(_) = limit {
                message += ": there are too many conditions on what follows; one that excludes words can stand within the \
                            terminal, as in [a-z]+ & ~(\"if\" | \"else\")";
            }
            SyntaxError::limit(self.place, message)
        })
    }

    /// Whether a node isn't copied: there is no condition before it, and none is set in it.
    fn is_plain(&self, node: NodeId, before: ExprId) -> bool {
        before == NONE && !self.setting.contains(&node)
    }

    /// Finds the conditions after every reachable node, in rounds until nothing changes.
    fn find(&mut self, root: NodeId) -> Result<(), SyntaxError> {
        self.left.insert((root, NONE), Vec::new());
        loop {
            let keys: Vec<(NodeId, ExprId)> = self.left.keys().copied().collect();
            let mut grows = false;
            for (node, before) in keys {
                self.in_time()?;
                let after = self.after(node, before, &mut grows)?;
                let known = self.left.get_mut(&(node, before)).expect("keys stay");
                for left in after {
                    if !known.contains(&left) {
                        known.push(left);
                        grows = true;
                    }
                }
                if self.left.len() > MAX_COPIES {
                    let message =
                        format!("this condition on what follows needs more than {MAX_COPIES} copies of parts");
                    return Err(SyntaxError::limit(self.place, message));
                }
            }
            if !grows {
                return Ok(());
            }
        }
    }

    /// The conditions after a part that are known so far; a new part is scheduled.
    fn known(&mut self, part: NodeId, before: ExprId, grows: &mut bool) -> Result<Vec<ExprId>, SyntaxError> {
        if self.is_plain(part, before) {
            self.left.entry((part, before)).or_insert_with(|| vec![NONE]);
            return Ok(vec![NONE]);
        }
        if let Some(known) = self.left.get(&(part, before)) {
            return Ok(known.clone());
        }
        *grows = true;
        self.left.insert((part, before), Vec::new());
        if self.depth < MAX_DEPTH {
            // Immediately, or a long sequence would need one round for each part.
            self.depth += 1;
            let after = self.after(part, before, grows);
            self.depth -= 1;
            self.left.insert((part, before), after?);
        }
        Ok(self.left[&(part, before)].clone())
    }

    fn after(&mut self, node: NodeId, before: ExprId, grows: &mut bool) -> Result<Vec<ExprId>, SyntaxError> {
        if self.is_plain(node, before) {
            return Ok(vec![NONE]);
        }
        if let Some(&(condition, _)) = self.conditions.get(&node) {
            let both = self.builder.exprs.and(&[before, condition]);
            return Ok(self.settled(node, both)?.into_iter().collect());
        }
        Ok(match self.builder.get(node).clone() {
            Node::Lexeme(expr) => {
                let mut states = Vec::new();
                for (_, left) in self.grouped_by_rest(expr, before)? {
                    merge(&mut states, self.settled(node, left)?.into_iter().collect());
                }
                states
            }
            Node::Token(_) => return Err(self.refused("meets a single token, which is no text; move it")),
            Node::Members(id) => {
                let surface = self.builder.members(id).surface;
                self.opened(&[surface.open, surface.empty], before)?
            }
            Node::Items(id) => {
                let surface = self.builder.items(id).surface;
                self.opened(&[surface.open, surface.empty], before)?
            }
            Node::Sequence(parts) => {
                let mut states = vec![before];
                for part in parts {
                    states = self.all_known(part, &states, grows)?;
                }
                states
            }
            Node::Choice(parts) => {
                let mut states = Vec::new();
                for part in parts {
                    merge(&mut states, self.known(part, before, grows)?);
                }
                states
            }
            Node::Repeat { body, min, .. } => {
                let mut states = vec![before];
                loop {
                    let count = states.len();
                    let next = self.all_known(body, &states, grows)?;
                    merge(&mut states, next);
                    if states.len() == count {
                        break;
                    }
                    if states.len() > MAX_LEFT {
                        let message = format!(
                            "this condition on what follows is too hard: a repetition leaves more than {MAX_LEFT} of it; \
                             simplify it"
                        );
                        return Err(SyntaxError::limit(self.place, message));
                    }
                }
                if min > 0 {
                    // The conditions after at least one round include those after at least `min` rounds.
                    states = self.all_known(body, &states, grows)?;
                }
                states
            }
            Node::Rule(rule) => self.known(self.builder.body(rule), before, grows)?,
            Node::Marked { body, .. } => self.known(body, before, grows)?,
        })
    }

    fn all_known(&mut self, part: NodeId, states: &[ExprId], grows: &mut bool) -> Result<Vec<ExprId>, SyntaxError> {
        let mut next = Vec::new();
        for &state in states {
            merge(&mut next, self.known(part, state, grows)?);
        }
        Ok(next)
    }

    /// The texts of a lexeme in groups, by the residual of the condition after them.
    fn grouped_by_rest(&mut self, expr: ExprId, before: ExprId) -> Result<Vec<(ExprId, ExprId)>, SyntaxError> {
        if let Some(known) = self.groups.get(&(expr, before)) {
            return Ok(known.clone());
        }
        let kept = self.deriving(|deriver| {
            let mut kept = Vec::new();
            for (group, left) in split(deriver, expr, &[before])? {
                // A residual that no rest can match is dropped.
                if deriver.is_live(left[0])? {
                    kept.push((group, left[0]));
                }
            }
            Ok(kept)
        })?;
        self.groups.insert((expr, before), kept.clone());
        Ok(kept)
    }

    /// The representative of a condition after a node: conditions that no possible continuation can distinguish share
    /// one. `None` if no possible continuation satisfies it.
    fn settled(&mut self, node: NodeId, condition: ExprId) -> Result<Option<ExprId>, SyntaxError> {
        let next = self.follows[node.0 as usize];
        if condition == NONE || condition == ExprId::NOTHING {
            return Ok(Some(condition).filter(|&condition| condition == NONE));
        }
        // A condition that meets a token is refused later, whatever it is.
        if next.token {
            return Ok(Some(condition));
        }
        let derivatives = self.deriving(|deriver| deriver.derivatives(condition))?;
        let mut rests: BTreeMap<ExprId, ByteSet> = BTreeMap::new();
        for (bytes, rest) in derivatives.iter() {
            let bytes = bytes.intersect(&next.bytes);
            if !bytes.is_empty() {
                let all = rests.entry(*rest).or_insert(ByteSet::EMPTY);
                *all = all.union(&bytes);
            }
        }
        let ends = next.end && self.builder.exprs.is_nullable(condition);
        if rests.is_empty() && !ends {
            return Ok(None);
        }
        let rests: Vec<(ExprId, ByteSet)> = rests.into_iter().collect();
        if rests.iter().all(|&rest| rest == (ExprId::ANYTHING, next.bytes))
            && rests.is_empty() == next.bytes.is_empty()
            && ends == next.end
        {
            return Ok(Some(NONE));
        }
        Ok(Some(*self.settled.entry(Continuation { next, rests, ends }).or_insert(condition)))
    }

    /// Runs a computation of the deriver on the expressions of the builder.
    fn deriving<T>(&mut self, ask: impl FnOnce(&mut Deriver) -> Result<T, LimitExceeded>) -> Result<T, SyntaxError> {
        let deriver = &mut self.deriver;
        std::mem::swap(&mut deriver.exprs, &mut self.builder.exprs);
        deriver.begin();
        let said = ask(deriver);
        std::mem::swap(&mut deriver.exprs, &mut self.builder.exprs);
        said.map_err(|limit| {
            SyntaxError::limit(self.place, format!("this condition on what follows is too hard: {limit}"))
        })
    }

    /// The conditions after the opening of an object or an array. There must be none left, because conditions don't
    /// reach into them.
    fn opened(&mut self, openings: &[ExprId], before: ExprId) -> Result<Vec<ExprId>, SyntaxError> {
        let mut states = Vec::new();
        let mut closed = false;
        for &opening in openings {
            let groups = self.grouped_by_rest(opening, before)?;
            closed |= groups.is_empty();
            merge(&mut states, groups.into_iter().map(|(_, left)| left).collect());
        }
        match states[..] {
            [] => Ok(Vec::new()),
            [NONE] if !closed => Ok(states),
            _ => Err(self.refused("reaches into an object or an array of JSON; let it end before")),
        }
    }

    /// The copy of a rule for a condition before it and one after it.
    fn declare(&mut self, rule: RuleId, before: ExprId, after: ExprId) -> RuleId {
        if let Some(&known) = self.rules.get(&(rule, before, after)) {
            return known;
        }
        let name = self.builder.rule_name(rule).to_string();
        let copy = self.builder.declare_rule(name);
        self.rules.insert((rule, before, after), copy);
        copy
    }

    /// The finished copy of a part; `None` if that combination doesn't occur.
    fn copy(&self, part: NodeId, before: ExprId, after: ExprId) -> Option<NodeId> {
        if self.is_plain(part, before) {
            return (after == NONE).then_some(part);
        }
        self.made.get(&(part, before, after)).copied()
    }

    fn make(&mut self, node: NodeId, before: ExprId, after: ExprId) -> Result<NodeId, SyntaxError> {
        if self.is_plain(node, before) {
            return Ok(node);
        }
        if self.conditions.contains_key(&node) {
            return Ok(self.builder.sequence(&[]));
        }
        Ok(match self.builder.get(node).clone() {
            Node::Lexeme(expr) => {
                let mut groups = Vec::new();
                for (group, left) in self.grouped_by_rest(expr, before)? {
                    if self.settled(node, left)? == Some(after) {
                        groups.push(group);
                    }
                }
                let expr = self.builder.exprs.or(&groups);
                self.builder.lexeme(expr)
            }
            Node::Token(_) => unreachable!("conditions before tokens are refused"),
            Node::Members(_) | Node::Items(_) => node,
            Node::Sequence(parts) => self.sequence(&parts, before, after),
            Node::Choice(parts) => {
                let copies: Vec<NodeId> = parts.iter().filter_map(|&part| self.copy(part, before, after)).collect();
                self.builder.choice(&copies)
            }
            Node::Repeat { body, min, max } => self.repeat(body, (min, max), before, after)?,
            Node::Rule(rule) => {
                let copy = self.declare(rule, before, after);
                self.builder.node(Node::Rule(copy))
            }
            Node::Marked { mark, body } => {
                let body = self.copy(body, before, after);
                let body = body.unwrap_or_else(|| self.builder.choice(&[]));
                self.builder.marked(mark, body)
            }
        })
    }

    /// The conditions after a part.
    fn states(&self, part: NodeId, before: ExprId) -> Vec<ExprId> {
        if self.is_plain(part, before) { vec![NONE] } else { self.left[&(part, before)].clone() }
    }

    fn sequence(&mut self, parts: &[NodeId], before: ExprId, after: ExprId) -> NodeId {
        let mut layers = vec![vec![before]];
        for &part in parts {
            let mut next = Vec::new();
            layers[layers.len() - 1].iter().for_each(|&state| merge(&mut next, self.states(part, state)));
            layers.push(next);
        }
        // From the last part backwards: what may follow in each state, up to the required one. These are lists, so that
        // a sequence with one alternative stays a single sequence.
        let mut rests: FxHashMap<ExprId, Vec<NodeId>> = FxHashMap::from_iter([(after, Vec::new())]);
        for (&part, states) in parts.iter().zip(&layers).rev() {
            let mut longer: FxHashMap<ExprId, Vec<NodeId>> = FxHashMap::default();
            for &state in states {
                let mut alternatives: Vec<Vec<NodeId>> = Vec::new();
                for next in self.states(part, state) {
                    if let (Some(rest), Some(copy)) = (rests.get(&next), self.copy(part, state, next)) {
                        // The last part comes first, because lists grow at their ends; `reversed` restores the order.
                        alternatives.push([&rest[..], &[copy]].concat());
                    }
                }
                match alternatives.len() {
                    0 => {}
                    1 => {
                        longer.insert(state, alternatives.remove(0));
                    }
                    _ => {
                        let alternatives: Vec<NodeId> =
                            alternatives.into_iter().map(|alternative| self.reversed(alternative)).collect();
                        let choice = self.builder.choice(&alternatives);
                        longer.insert(state, vec![choice]);
                    }
                }
            }
            rests = longer;
        }
        match rests.remove(&before) {
            Some(alternative) => self.reversed(alternative),
            None => self.builder.choice(&[]),
        }
    }

    fn reversed(&mut self, mut alternative: Vec<NodeId>) -> NodeId {
        alternative.reverse();
        self.builder.sequence(&alternative)
    }

    fn repeat(
        &mut self,
        body: NodeId,
        (min, max): (u32, Option<u32>),
        before: ExprId,
        after: ExprId,
    ) -> Result<NodeId, SyntaxError> {
        let settles = self.states(body, before) == [NONE] && (max == Some(1) || self.states(body, NONE) == [NONE]);
        if settles {
            return Ok(self.settled_repeat(body, (min, max), before, after));
        }
        if min > MAX_ROUNDS || max.is_some_and(|max| max > MAX_ROUNDS) {
            let message = format!(
                "this condition on what follows reaches over a repetition of more than {MAX_ROUNDS} rounds; let it end \
                 earlier"
            );
            return Err(SyntaxError::limit(self.place, message));
        }
        let mut states = vec![before];
        loop {
            let count = states.len();
            for state in states.clone() {
                merge(&mut states, self.states(body, state));
            }
            if states.len() == count {
                break;
            }
        }
        // What may follow in each state after the counted rounds.
        let mut rests: FxHashMap<ExprId, NodeId> = FxHashMap::default();
        match max {
            Some(_) => {
                let end = self.builder.sequence(&[]);
                rests.insert(after, end);
            }
            None => {
                rests = self.endless_rounds(body, &states, after);
            }
        }
        // The counted rounds, from the last one backwards; those beyond the least number are optional.
        for round in (0..max.unwrap_or(min)).rev() {
            let mut longer = FxHashMap::default();
            for &state in &states {
                let mut alternatives = self.one_round(body, state, &rests);
                if round >= min && state == after {
                    alternatives.push(self.builder.sequence(&[]));
                }
                if !alternatives.is_empty() {
                    let choice = self.builder.choice(&alternatives);
                    longer.insert(state, choice);
                }
            }
            rests = longer;
        }
        Ok(match rests.get(&before) {
            Some(&rest) => rest,
            None => self.builder.choice(&[]),
        })
    }

    /// For each of these conditions, a rule for any number of rounds from it to the condition `after`.
    fn endless_rounds(&mut self, body: NodeId, states: &[ExprId], after: ExprId) -> FxHashMap<ExprId, NodeId> {
        let mut rests = FxHashMap::default();
        // The rules don't depend on the condition before the first round, so they are shared.
        let mut new = Vec::new();
        for &state in states {
            let rule = match self.rounds.get(&(body, state, after)) {
                Some(&known) => known,
                None => {
                    let rule = self.builder.declare_rule("more");
                    self.rounds.insert((body, state, after), rule);
                    new.push((state, rule));
                    rule
                }
            };
            let call = self.builder.node(Node::Rule(rule));
            rests.insert(state, call);
        }
        for (state, rule) in new {
            let mut alternatives = self.one_round(body, state, &rests);
            if state == after {
                alternatives.push(self.builder.sequence(&[]));
            }
            let body = self.builder.choice(&alternatives);
            self.builder.define_rule(rule, body);
        }
        rests
    }

    /// As [`Pass::repeat`], if the first round settles the condition.
    fn settled_repeat(
        &mut self,
        body: NodeId,
        (min, max): (u32, Option<u32>),
        before: ExprId,
        after: ExprId,
    ) -> NodeId {
        if before == NONE
            && after == NONE
            && let Some(body) = self.copy(body, NONE, NONE)
        {
            return self.builder.repeat(body, min, max);
        }
        // One round settles the condition, and the others are unchanged.
        let mut alternatives = Vec::new();
        if min == 0 && before == after {
            alternatives.push(self.builder.sequence(&[]));
        }
        if let Some(first) = self.copy(body, before, NONE).filter(|_| after == NONE && max != Some(0)) {
            let mut parts = vec![first];
            if max != Some(1) {
                let again = self.copy(body, NONE, NONE).expect("a body that settles has a copy");
                parts.push(self.builder.repeat(again, min.saturating_sub(1), max.map(|max| max - 1)));
            }
            alternatives.push(self.builder.sequence(&parts));
        }
        self.builder.choice(&alternatives)
    }

    /// One round from a state, followed by what may come after it.
    fn one_round(&mut self, body: NodeId, state: ExprId, rests: &FxHashMap<ExprId, NodeId>) -> Vec<NodeId> {
        let mut alternatives = Vec::new();
        for next in self.states(body, state) {
            if let (Some(&rest), Some(copy)) = (rests.get(&next), self.copy(body, state, next)) {
                alternatives.push(self.builder.sequence(&[copy, rest]));
            }
        }
        alternatives
    }
}

fn merge(states: &mut Vec<ExprId>, more: Vec<ExprId>) {
    for state in more {
        if !states.contains(&state) {
            states.push(state);
        }
    }
}
