//! A [`Tree`] to nodes, by a loop over its formats from the last to the first: what a format is made of comes behind it.

use std::rc::Rc;

use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::ExprId;
use stencilm_regex::syntax::{Anchoring, Dialect, PatternErrorKind, PatternOptions, Utf8, parse_pattern};

use super::arguments::Ways;
use super::fields::error;
use super::markers;
use super::styles::Style;
use super::tree::{Format, FormatId, Marker, Rounds, Slot, TokenRef, Tree};
use crate::builder::GrammarBuilder;
use crate::combine;
use crate::error::{ErrorKind, GrammarError};
use crate::free_text::{FEW_STRINGS, FreeText, Within};
use crate::grammar::{Grammar, Mark, NodeId, RuleId};
use crate::json_schema::document::{Document, JsonId};
use crate::json_schema::{JsonSchemaOptions, from_json_schema, from_values};
use crate::report::KeptReport;

/// Longest string that ends or must not come in free text: one that overlaps with itself is looked for at all places at
/// once, which takes the square of its length.
const MAX_STOP_BYTES: usize = 256;

/// Equal schemas that are written alike are one.
pub(super) type SchemaKey<'t> = (&'t str, Style, [bool; 3], Option<u32>);

/// Schemas with the same options.
type Alike<'a, 'o> = IndexMap<SchemaKey<'a>, (JsonId, &'o JsonSchemaOptions)>;

/// A grammar under construction.
pub(super) struct Lowering<'a> {
    pub(super) document: &'a Document<'a>,
    pub(super) text: &'a str,
    pub(super) builder: GrammarBuilder,
    pub(super) report: KeptReport,
    names: FxHashSet<String>,
    nodes: Vec<Option<NodeId>>,
    schemas: FxHashMap<SchemaKey<'a>, NodeId>,
    /// Schemas that were lowered together, before all others.
    plain: FxHashMap<JsonId, NodeId>,
    /// Arguments by the text of their schema.
    pub(super) arguments: FxHashMap<SchemaKey<'a>, Ways>,
    literals: FxHashMap<&'a str, NodeId>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(document: &'a Document<'a>, text: &'a str) -> Lowering<'a> {
        Lowering {
            document,
            text,
            builder: GrammarBuilder::default(),
            report: KeptReport::default(),
            names: FxHashSet::default(),
            nodes: Vec::new(),
            schemas: FxHashMap::default(),
            plain: FxHashMap::default(),
            arguments: FxHashMap::default(),
            literals: FxHashMap::default(),
        }
    }

    /// The grammar of the whole tree.
    pub(super) fn grammar(mut self, tree: &Tree<'a>, max_exprs: usize) -> Result<Grammar, GrammarError> {
        self.builder.limit_exprs(max_exprs);
        self.nodes = vec![None; tree.slots.len()];
        self.plain_schemas(tree, max_exprs);
        for index in (0..tree.slots.len()).rev() {
            let slot = &tree.slots[index];
            let node = self.format(tree, slot)?;
            self.nodes[index] = Some(node);
        }
        let root = self.whole(tree, FormatId(0));
        let grammar = self.builder.finish(root, self.report);
        grammar
            .map_err(|error| if error.place.is_empty() { GrammarError { place: "#".into(), ..error } } else { error })
    }

    /// What a format was lowered to; of a tag, what follows its beginning.
    fn node(&self, id: FormatId) -> NodeId {
        self.nodes[id.index()].expect("what a format is made of is lowered before it")
    }

    /// A format, and a tag with its beginning.
    fn whole(&mut self, tree: &Tree<'a>, id: FormatId) -> NodeId {
        let node = self.node(id);
        match &tree.slot(id).format {
            Format::Tag { begin, .. } => {
                let begin = self.marker(begin);
                self.builder.sequence(&[begin, node])
            }
            _ => node,
        }
    }

    fn all(&mut self, tree: &Tree<'a>, ids: &[FormatId]) -> Vec<NodeId> {
        ids.iter().map(|&id| self.whole(tree, id)).collect()
    }

    /// A given text, in which a marker may also be the special token of its name.
    pub(super) fn literal(&mut self, text: &'a str) -> NodeId {
        if let Some(&known) = self.literals.get(text) {
            return known;
        }
        let node = markers::literal(&mut self.builder, text);
        self.literals.insert(text, node);
        node
    }

    fn marker(&mut self, marker: &Marker<'a>) -> NodeId {
        match marker {
            Marker::Text(text) => self.literal(text),
            Marker::Token(token) => self.token(token),
        }
    }

    fn token(&mut self, token: &TokenRef<'a>) -> NodeId {
        match token {
            TokenRef::Id(id) => self.builder.token_ids(&[(*id, *id)], false),
            TokenRef::Name(name) => self.builder.special_token(*name),
        }
    }

    /// Any one token but these and those that end the tag around.
    fn other_tokens(&mut self, lists: &[&[TokenRef<'a>]], ends: &[Marker<'a>]) -> NodeId {
        let ends = ends.iter().filter_map(|end| match end {
            Marker::Token(token) => Some(token),
            Marker::Text(_) => None,
        });
        let (mut ids, mut names) = (Vec::new(), Vec::new());
        for token in lists.iter().copied().flatten().chain(ends) {
            match token {
                TokenRef::Id(id) => ids.push(*id),
                TokenRef::Name(name) => names.push(*name),
            }
        }
        ids.sort_unstable();
        ids.dedup();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            let ranges: Vec<(u32, u32)> = ids.iter().map(|&id| (id, id)).collect();
            return self.builder.token_ids(&ranges, true);
        }
        self.builder.other_tokens(&ids, &names)
    }

    /// The ends of the tag around, behind a format that does not read them itself.
    fn with_ends(&mut self, slot: &Slot<'a>, node: NodeId) -> NodeId {
        if !slot.is_last || slot.ends.is_empty() {
            return node;
        }
        let ends: Vec<NodeId> = slot.ends.iter().map(|end| self.marker(end)).collect();
        let ends = if let [only] = ends[..] { only } else { self.builder.choice(&ends) };
        self.builder.sequence(&[node, ends])
    }

    fn format(&mut self, tree: &Tree<'a>, slot: &Slot<'a>) -> Result<NodeId, GrammarError> {
        let node = match &slot.format {
            Format::Unread => unreachable!("every format is read before the tree is complete"),
            Format::Const(text) => self.literal(text),
            Format::Schema { schema, style, options } => self.schema(*schema, *style, options)?,
            Format::Ebnf(text) => self.ebnf(text, slot.at)?,
            Format::Regex(pattern) => self.regex(pattern, slot.at)?,
            Format::AnyText { excludes, max_chars, max_tokens: Some(max_tokens) } => {
                return self.limited_text(slot, excludes, *max_chars, *max_tokens);
            }
            Format::AnyText { excludes, max_chars, max_tokens: None } => {
                return self.free_text(slot, Vec::new(), None, excludes, *max_chars, false);
            }
            Format::Sequence(elements) => {
                let elements = self.all(tree, elements);
                return Ok(self.builder.sequence(&elements));
            }
            Format::Or(elements) => return Ok(self.any_tag(tree, elements)),
            Format::Repeat { content, min, max } => {
                let content = self.whole(tree, *content);
                self.builder.repeat(content, *min, *max)
            }
            Format::Tag { content, .. } => self.whole(tree, *content),
            Format::Triggered { triggers, tags, excludes, rounds } => {
                return self.triggered(tree, slot, triggers, tags, excludes, *rounds);
            }
            Format::Separated { tags, separator, rounds } => self.separated(tree, tags, separator, *rounds),
            Format::Dispatch { rules, excludes, rounds } => {
                let ways = rules.iter().map(|&(pattern, content)| (pattern, self.whole(tree, content)));
                let ways: Vec<(&'a str, NodeId)> = ways.collect();
                return self.free_text(slot, ways, None, excludes, None, rounds.stop_after_first);
            }
            Format::Token(token) => self.token(token),
            Format::OtherTokens { excludes, min, max } => {
                let token = self.other_tokens(&[excludes], &slot.ends);
                if (*min, *max) == (1, Some(1)) { token } else { self.builder.repeat(token, *min, *max) }
            }
            Format::TokenTriggered { triggers, tags, excludes, rounds } => {
                for &tag in tags {
                    let Format::Tag { begin, .. } = &tree.slot(tag).format else { continue };
                    if !matches!(begin, Marker::Token(token) if triggers.contains(token)) {
                        let message = "the tag does not begin with a token of trigger_tokens, so nothing leads to it; \
                                       add its beginning to them";
                        return Err(error(self.document, tree.slot(tag).at, message));
                    }
                }
                let ways = self.all(tree, tags);
                self.between_tokens(&ways, &[triggers, excludes], &slot.ends, *rounds)
            }
            Format::TokenDispatch { rules, excludes, rounds } => {
                let mut ways = Vec::new();
                for (token, content) in rules {
                    let token = self.token(token);
                    let content = self.whole(tree, *content);
                    ways.push(self.builder.sequence(&[token, content]));
                }
                let triggers: Vec<TokenRef<'a>> = rules.iter().map(|(token, _)| token.clone()).collect();
                self.between_tokens(&ways, &[&triggers, excludes], &slot.ends, *rounds)
            }
        };
        Ok(self.with_ends(slot, node))
    }

    /// One of the ways between tokens that are free but for these.
    fn between_tokens(
        &mut self,
        ways: &[NodeId],
        left_out: &[&[TokenRef<'a>]],
        ends: &[Marker<'a>],
        rounds: Rounds,
    ) -> NodeId {
        let way = self.builder.choice(ways);
        let token = self.other_tokens(left_out, ends);
        let free = self.builder.repeat(token, 0, None);
        let more = self.builder.sequence(&[way, free]);
        match (rounds.at_least_one, rounds.stop_after_first) {
            (true, true) => way,
            (true, false) => self.builder.repeat(more, 1, None),
            (false, true) => {
                let way = self.builder.repeat(way, 0, Some(1));
                self.builder.sequence(&[free, way])
            }
            (false, false) => {
                let more = self.builder.repeat(more, 0, None);
                self.builder.sequence(&[free, more])
            }
        }
    }

    /// Any one of the tags.
    fn any_tag(&mut self, tree: &Tree<'a>, tags: &[FormatId]) -> NodeId {
        let (mut texts, mut others) = (Vec::new(), Vec::new());
        for &tag in tags {
            match &tree.slot(tag).format {
                Format::Tag { begin: Marker::Text(begin), .. } => texts.push((*begin, self.node(tag))),
                _ => others.push(self.whole(tree, tag)),
            }
        }
        if !texts.is_empty() {
            others.push(markers::branches(&mut self.builder, &texts));
        }
        self.builder.choice(&others)
    }

    fn separated(&mut self, tree: &Tree<'a>, tags: &[FormatId], separator: &'a str, rounds: Rounds) -> NodeId {
        let tag = self.any_tag(tree, tags);
        let all = if rounds.stop_after_first {
            tag
        } else {
            let separator = self.literal(separator);
            let more = self.builder.sequence(&[separator, tag]);
            let more = self.builder.repeat(more, 0, None);
            self.builder.sequence(&[tag, more])
        };
        if rounds.at_least_one { all } else { self.builder.repeat(all, 0, Some(1)) }
    }

    fn triggered(
        &mut self,
        tree: &Tree<'a>,
        slot: &Slot<'a>,
        triggers: &[&'a str],
        tags: &[FormatId],
        excludes: &[&'a str],
        rounds: Rounds,
    ) -> Result<NodeId, GrammarError> {
        let mut indices: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        triggers.iter().enumerate().for_each(|(index, trigger)| indices.entry(trigger).or_default().push(index));
        let mut lengths: Vec<usize> = triggers.iter().map(|trigger| trigger.len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let mut by_trigger: Vec<Vec<(&str, NodeId)>> = vec![Vec::new(); triggers.len()];
        let mut first: Vec<(&str, NodeId)> = Vec::new();
        for &tag in tags {
            let Format::Tag { begin, .. } = &tree.slot(tag).format else { continue };
            let at = tree.slot(tag).at;
            let Marker::Text(begin) = begin else {
                let message = "the tag begins with a token, but text triggers need text; use token_triggered_tags";
                return Err(error(self.document, at, message));
            };
            let beginnings = lengths.iter().filter_map(|&length| indices.get(begin.get(..length)?));
            let matching: Vec<usize> = beginnings.flatten().copied().collect();
            let [index] = matching[..] else {
                let message = format!(
                    "{} of the triggers begin {begin:?}, the beginning of this tag; it must be exactly one, so change \
                     the triggers",
                    matching.len()
                );
                return Err(error(self.document, at, message));
            };
            let tail = self.node(tag);
            by_trigger[index].push((&begin[triggers[index].len()..], tail));
            first.push((begin, tail));
        }
        let mut ways = Vec::with_capacity(triggers.len());
        for (trigger, tags) in triggers.iter().zip(by_trigger) {
            if tags.is_empty() {
                let message = format!("no tag begins with the trigger {trigger:?}; leave it out");
                return Err(error(self.document, slot.at, message));
            }
            ways.push((*trigger, markers::branches(&mut self.builder, &tags)));
        }
        let first = rounds.at_least_one.then(|| markers::branches(&mut self.builder, &first));
        self.free_text(slot, ways, first, excludes, None, rounds.stop_after_first)
    }

    /// Free text up to one of the strings of `ways`, which leads to what follows it, and so on until the end.
    ///
    /// With `first` that comes before anything else. Reads the ends of the tag around where they follow.
    fn free_text(
        &mut self,
        slot: &Slot<'a>,
        ways: Vec<(&'a str, NodeId)>,
        first: Option<NodeId>,
        excludes: &[&'a str],
        max_chars: Option<u32>,
        stop_after_first: bool,
    ) -> Result<NodeId, GrammarError> {
        let triggers = ways.iter().map(|(trigger, _)| *trigger).collect();
        let (stops, excludes) = self.stops_and_excludes(slot, triggers, excludes)?;
        let free = FreeText::new(&mut self.builder.exprs, &stops, &excludes, max_chars);
        let unended = free.unended(&mut self.builder.exprs);
        let unended = self.builder.lexeme(unended);
        let ends: Rc<Vec<Marker<'a>>> = if slot.is_last { slot.ends.clone() } else { Rc::default() };
        let mut tails = Vec::new();
        for end in ends.iter() {
            match end {
                Marker::Text("") => tails.push(unended),
                Marker::Text(end) => tails.extend(markers::until(&mut self.builder, &free, unended, end)),
                Marker::Token(token) => {
                    let token = self.token(token);
                    tails.push(self.builder.sequence(&[unended, token]));
                }
            }
        }
        if tails.is_empty() {
            tails.push(unended);
        }
        let mut rounds = Vec::new();
        if ways.len() > FEW_STRINGS {
            let triggers: Vec<&str> = ways.iter().map(|&(trigger, _)| trigger).collect();
            for (before, positions) in free.groups(&mut self.builder.exprs, &triggers, &stops, &excludes) {
                let before = self.builder.lexeme(before);
                let group: Vec<(&str, NodeId)> = positions.into_iter().map(|position| ways[position]).collect();
                let way = markers::spelled(&mut self.builder, &group);
                rounds.push(self.builder.sequence(&[before, way]));
            }
            let tokens = markers::by_tokens(&mut self.builder, &ways);
            if !tokens.is_empty() {
                let tokens = self.builder.choice(&tokens);
                rounds.push(self.builder.sequence(&[unended, tokens]));
            }
        } else {
            for (trigger, way) in ways {
                for before in markers::until(&mut self.builder, &free, unended, trigger) {
                    rounds.push(self.builder.sequence(&[before, way]));
                }
            }
        }
        let tail = self.builder.choice(&tails);
        if rounds.is_empty() {
            return Ok(tail);
        }
        if stop_after_first {
            let behind = match first {
                Some(first) => first,
                None => self.builder.choice(&rounds),
            };
            let behind = self.with_ends(slot, behind);
            return Ok(if first.is_some() { behind } else { self.builder.choice(&[behind, tail]) });
        }
        let round = self.builder.choice(&rounds);
        let rounds = self.builder.repeat(round, 0, None);
        let parts: Vec<NodeId> = first.into_iter().chain([rounds, tail]).collect();
        Ok(self.builder.sequence(&parts))
    }

    /// The strings that end a text, triggers and the ends of the tag around, and those that must not come in it.
    fn stops_and_excludes(
        &self,
        slot: &Slot<'a>,
        mut stops: Vec<&'a str>,
        excludes: &[&'a str],
    ) -> Result<(Vec<&'a str>, Vec<&'a str>), GrammarError> {
        let mut excludes = excludes.to_vec();
        let texts = slot.ends.iter().filter_map(|end| match end {
            Marker::Text(text) if !text.is_empty() => Some(*text),
            _ => None,
        });
        let texts: Vec<&str> = texts.collect();
        if slot.is_last {
            // What ends the text need not be excluded from it, too.
            excludes.retain(|exclude| !texts.contains(exclude));
            stops.extend(&texts);
        } else {
            excludes.extend(texts);
        }
        self.check_reachable(slot, &stops, &excludes)?;
        Ok((stops, excludes))
    }

    /// Free text with a budget of tokens. Unlike [`Lowering::free_text`] its end is a part of its own, which the budget does
    /// not count.
    fn limited_text(
        &mut self,
        slot: &Slot<'a>,
        excludes: &[&'a str],
        max_chars: Option<u32>,
        max_tokens: u32,
    ) -> Result<NodeId, GrammarError> {
        let (stops, excludes) = self.stops_and_excludes(slot, Vec::new(), excludes)?;
        let free = FreeText::new(&mut self.builder.exprs, &stops, &excludes, max_chars);
        let unended = free.unended(&mut self.builder.exprs);
        let ends: Rc<Vec<Marker<'a>>> = if slot.is_last { slot.ends.clone() } else { Rc::default() };
        // The ends by the text before them, which is nearly always the same.
        let mut by_text: IndexMap<ExprId, Vec<NodeId>> = IndexMap::new();
        for end in ends.iter() {
            let text = match end {
                Marker::Text(end) if !end.is_empty() => free.before(&mut self.builder.exprs, end, &stops, &excludes),
                _ => unended,
            };
            by_text.entry(text).or_default().push(self.marker(end));
        }
        if by_text.is_empty() {
            by_text.insert(unended, vec![self.builder.sequence(&[])]);
        }
        let mut ways = Vec::with_capacity(by_text.len());
        for (text, ends) in by_text {
            let text = if max_tokens == 0 { ExprId::EMPTY } else { text };
            let mut text = self.builder.lexeme(text);
            if max_tokens > 0 {
                text = self.builder.marked(Mark::MaxTokens(max_tokens), text);
            }
            let end = self.builder.choice(&ends);
            ways.push(self.builder.sequence(&[text, end]));
        }
        Ok(self.builder.choice(&ways))
    }

    /// Refuses strings that can never be complete, because another one within them comes first.
    fn check_reachable(&self, slot: &Slot<'a>, stops: &[&'a str], excludes: &[&'a str]) -> Result<(), GrammarError> {
        if let Some(long) = stops.iter().chain(excludes).find(|text| text.len() > MAX_STOP_BYTES) {
            let shown: String = long.chars().take(40).collect();
            let message = format!(
                "{shown:?}… has {} bytes and free text looks for at most {MAX_STOP_BYTES}; shorten it",
                long.len()
            );
            return Err(GrammarError::new(ErrorKind::Limit, self.document.pointer(slot.at), message));
        }
        let (ending, excluded) = (Within::new(stops), Within::new(excludes));
        for trigger in stops.iter().filter(|trigger| !trigger.is_empty()) {
            let earlier = ending.find(trigger, trigger.len() - 1);
            if let Some(other) = earlier.or_else(|| excluded.find(trigger, trigger.len())) {
                let message = format!(
                    "{trigger:?} can never come, because {other:?} within it triggers something else, ends the text or \
                     is excluded; change one of them"
                );
                return Err(error(self.document, slot.at, message));
            }
        }
        Ok(())
    }

    pub(super) fn add(&mut self, grammar: &Grammar) -> NodeId {
        combine::add(&mut self.builder, &mut self.names, grammar)
    }

    /// Adds a grammar, and gives the node that its first node has become; the others follow it.
    fn add_all_of(&mut self, grammar: Grammar, max_exprs: usize) -> NodeId {
        if self.builder.node_count() > 0 {
            let root = self.add(&grammar);
            return NodeId(root.0 - grammar.root().0);
        }
        // What comes first is taken as it is.
        self.names.extend(grammar.rules().iter().map(|rule| rule.name.clone()));
        self.builder = GrammarBuilder::from_grammar(grammar);
        self.builder.limit_exprs(max_exprs);
        NodeId(0)
    }

    /// A rule that is still to be defined.
    pub(super) fn declare(&mut self, name: &str) -> RuleId {
        combine::declare(&mut self.builder, &mut self.names, name)
    }

    fn ebnf(&mut self, text: &str, at: JsonId) -> Result<NodeId, GrammarError> {
        let grammar = Grammar::from_ebnf(text, "root").map_err(|inner| {
            let place = format!("{}/grammar", self.document.pointer(at));
            GrammarError::new(inner.kind, place, inner.to_string())
        })?;
        Ok(self.add(&grammar))
    }

    fn regex(&mut self, pattern: &str, at: JsonId) -> Result<NodeId, GrammarError> {
        let options = PatternOptions { dialect: Dialect::Standard, anchoring: Anchoring::Whole };
        let expr = parse_pattern(&mut self.builder.exprs, pattern, &options, &mut Utf8).map_err(|inner| {
            let kind = match inner.kind {
                PatternErrorKind::Syntax => ErrorKind::Syntax,
                PatternErrorKind::Unsupported => ErrorKind::Unsupported,
                PatternErrorKind::Limit => ErrorKind::Limit,
            };
            let place = format!("{}/pattern", self.document.pointer(at));
            GrammarError::new(kind, place, format!("offset {}: {}", inner.offset, inner.message))
        })?;
        Ok(self.builder.lexeme(expr))
    }

    /// Lowers the schemas that refer to nothing together, which takes a fraction of the time: hundreds of tools have hundreds
    /// of schemas that are much alike. Those of which one is wrong are left to be lowered one by one, for the error's sake.
    fn plain_schemas(&mut self, tree: &Tree<'a>, max_exprs: usize) {
        // These mean something for all values of a document.
        if ["\"$id\"", "\"$anchor\"", "\"$dynamicAnchor\"", "\"$recursiveAnchor\""]
            .iter()
            .any(|word| self.text.contains(word))
        {
            return;
        }
        let mut read: Vec<(JsonId, SchemaKey<'a>)> = Vec::new();
        let mut alike: IndexMap<([bool; 3], Option<u32>), Alike<'a, '_>> = IndexMap::new();
        for slot in &tree.slots {
            if let Format::Schema { schema, style: Style::Json, options } = &slot.format {
                let text = self.document.spelled(self.text, *schema);
                if !text.contains("\"$") {
                    let key = (text, Style::Json, flags(options), options.max_whitespace);
                    let group = alike.entry((key.2, key.3)).or_default();
                    group.entry(key).or_insert((*schema, options));
                    read.push((*schema, key));
                }
            }
        }
        for group in alike.into_values().filter(|group| group.len() > 1) {
            let values: Vec<JsonId> = group.values().map(|&(at, _)| at).collect();
            let (_, options) = group[0];
            let Ok((mut grammar, nodes)) = from_values(self.document, &values, options) else { continue };
            self.report.append(std::mem::take(&mut grammar.report));
            let first = self.add_all_of(grammar, max_exprs);
            let nodes = nodes.into_iter().map(|node| NodeId(first.0 + node.0));
            self.schemas.extend(group.into_keys().zip(nodes));
        }
        self.plain = read.into_iter().filter_map(|(at, key)| Some((at, *self.schemas.get(&key)?))).collect();
    }

    fn schema(&mut self, at: JsonId, style: Style, options: &JsonSchemaOptions) -> Result<NodeId, GrammarError> {
        if let Some(&known) = self.plain.get(&at) {
            return Ok(known);
        }
        let text = self.document.spelled(self.text, at);
        let key = (text, style, flags(options), options.max_whitespace);
        if let Some(&known) = self.schemas.get(&key) {
            return Ok(known);
        }
        let node = match style {
            Style::Json => {
                let place = self.document.pointer(at);
                let grammar = from_json_schema(text, options).map_err(|inner| placed(inner, &place, "#"))?;
                self.report.absorb(&grammar.report, &place, "#");
                self.add(&grammar)
            }
            Style::Marked(marked) => self.marked_arguments(at, marked, options)?,
            Style::Nested => self.nested_arguments(at, options)?,
        };
        self.schemas.insert(key, node);
        Ok(node)
    }
}

/// The options that a structural tag can set, for telling equal schemas.
pub(super) fn flags(options: &JsonSchemaOptions) -> [bool; 3] {
    [options.any_order, options.any_whitespace, options.strict_mode]
}

/// An error of a schema, at its place in the structural tag: `from` is how its own pointer begins.
pub(super) fn placed(inner: GrammarError, place: &str, from: &str) -> GrammarError {
    match inner.place.strip_prefix(from) {
        Some(rest) => GrammarError { place: format!("{place}{rest}"), ..inner },
        None => GrammarError::new(inner.kind, place, inner.to_string()),
    }
}
