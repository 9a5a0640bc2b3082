//! A [`Tree`] to nodes, by a loop over its formats from the last to the first: what a format is made of comes after it.

use rustc_hash::FxHashMap;
use stencilm_support::{HashMap, HashSet, check_time_now};

use super::fields::error;
use super::styles::Style;
use super::tree::{Format, FormatId, Marker, Rounds, Slot, Syntax, TokenRef, Tree};
use crate::error::GrammarError;
use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::{Grammar, NodeId};
use crate::ir::markers;
use crate::ir::report::KeptReport;
use crate::json_schema::options::JsonSchemaOptions;
use crate::json_schema::read::document::{Document, JsonId};
use crate::notations::combine;

/// The identity of a schema: schemas with the same text and settings are lowered once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct SchemaKey<'t> {
    pub text: &'t str,
    pub settings: Settings,
}

/// How the values of a schema are written.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Settings {
    pub style: Style,
    /// The options that a structural tag can set.
    pub flags: [bool; 4],
    pub max_whitespace: Option<u32>,
    pub excludes: Vec<Box<str>>,
}

impl Settings {
    pub(super) fn new(style: Style, options: &JsonSchemaOptions) -> Settings {
        Settings {
            style,
            flags: [options.any_order, options.any_whitespace, options.strict_mode, options.relax],
            max_whitespace: options.max_whitespace,
            excludes: options.excludes.clone(),
        }
    }
}

/// A grammar under construction.
pub(super) struct Lowering<'a> {
    pub(super) document: &'a Document<'a>,
    pub(super) text: &'a str,
    /// The greatest length of a part in another notation.
    pub(super) max_bytes: usize,
    pub(super) builder: GrammarBuilder,
    /// Whether the report is computed.
    pub(super) reports: bool,
    pub(super) report: KeptReport,
    names: HashSet<String>,
    nodes: Vec<Option<NodeId>>,
    pub(super) schemas: HashMap<SchemaKey<'a>, NodeId>,
    /// Schemas that were lowered together, before all others.
    pub(super) plain: FxHashMap<JsonId, NodeId>,
    /// Texts in other notations that were lowered.
    pub(super) grammars: HashMap<(&'a str, Syntax), NodeId>,
    literals: HashMap<&'a str, NodeId>,
    /// Patterns that were lowered.
    pub(super) regexes: HashMap<&'a str, NodeId>,
    /// The beginnings of tags that are patterns.
    patterns: FxHashMap<JsonId, NodeId>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(document: &'a Document<'a>, text: &'a str, max_bytes: usize) -> Lowering<'a> {
        Lowering {
            document,
            text,
            max_bytes,
            builder: GrammarBuilder::default(),
            reports: false,
            report: KeptReport::default(),
            names: HashSet::default(),
            nodes: Vec::new(),
            schemas: HashMap::default(),
            plain: FxHashMap::default(),
            grammars: HashMap::default(),
            literals: HashMap::default(),
            regexes: HashMap::default(),
            patterns: FxHashMap::default(),
        }
    }

    /// The grammar of the whole tree, with this report.
    pub(super) fn grammar(
        mut self,
        tree: &Tree<'a>,
        max_exprs: usize,
        report: KeptReport,
    ) -> Result<Grammar, GrammarError> {
        let root = self.root(tree, max_exprs);
        let grammar = self.builder.whole(root).and_then(|root| self.builder.finish(root, report));
        grammar
            .map_err(|error| if error.place.is_empty() { GrammarError { place: "#".into(), ..error } } else { error })
    }

    /// The report on the whole tree.
    pub(super) fn report_alone(mut self, tree: &Tree<'a>, max_exprs: usize) -> Result<KeptReport, GrammarError> {
        self.reports = true;
        self.root(tree, max_exprs)?;
        Ok(self.report)
    }

    fn root(&mut self, tree: &Tree<'a>, max_exprs: usize) -> Result<NodeId, GrammarError> {
        self.builder.limit_exprs(max_exprs);
        self.nodes = vec![None; tree.slots.len()];
        self.plain_schemas(tree, max_exprs)?;
        for index in (0..tree.slots.len()).rev() {
            let slot = &tree.slots[index];
            check_time_now().map_err(|limit| GrammarError::limit("#", limit))?;
            let node = self.format(tree, slot).map_err(|error| match &slot.format {
                Format::Schema { .. } => within_tag(tree, FormatId(index as u32), error),
                _ => error,
            })?;
            self.nodes[index] = Some(node);
        }
        Ok(self.whole(tree, FormatId(0)))
    }

    /// The node of a format; for a tag, the node of what follows its beginning.
    pub(super) fn node(&self, id: FormatId) -> NodeId {
        self.nodes[id.index()].expect("what a format is made of is lowered before it")
    }

    /// The node of a format; a tag includes its beginning.
    pub(super) fn whole(&mut self, tree: &Tree<'a>, id: FormatId) -> NodeId {
        let node = self.node(id);
        match &tree.slot(id).format {
            Format::Tag { begin, .. } => {
                let begin = self.marker(begin);
                self.builder.sequence(&[begin, node])
            }
            _ => node,
        }
    }

    pub(super) fn all(&mut self, tree: &Tree<'a>, ids: &[FormatId]) -> Vec<NodeId> {
        ids.iter().map(|&id| self.whole(tree, id)).collect()
    }

    /// A given text; each of its markers may be the special token of that name.
    pub(super) fn literal(&mut self, text: &'a str) -> NodeId {
        if let Some(&known) = self.literals.get(text) {
            return known;
        }
        let node = markers::literal(&mut self.builder, text);
        self.literals.insert(text, node);
        node
    }

    pub(super) fn marker(&mut self, marker: &Marker<'a>) -> NodeId {
        match marker {
            Marker::Text(text) => self.literal(text),
            Marker::Token(token) => self.token(token),
            Marker::Pattern(_, at) => self.patterns[at],
        }
    }

    pub(super) fn token(&mut self, token: &TokenRef<'a>) -> NodeId {
        match token {
            TokenRef::Id(id) => self.builder.token_ids(&[(*id, *id)], false),
            TokenRef::Name(name) => self.builder.special_token(*name),
        }
    }

    /// Any one token except these and those that end the enclosing tag.
    fn other_tokens(&mut self, lists: &[&[TokenRef<'a>]], ends: &[Marker<'a>]) -> NodeId {
        let ends = ends.iter().filter_map(|end| match end {
            Marker::Token(token) => Some(token),
            Marker::Text(_) | Marker::Pattern(..) => None,
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

    /// Appends the ends of the enclosing tag to a format that doesn't read them itself.
    pub(super) fn with_ends(&mut self, slot: &Slot<'a>, node: NodeId) -> NodeId {
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
            Format::Grammar { text, syntax } => self.grammar_text(text, *syntax, slot.at)?,
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
            Format::Tag { begin, content } => {
                if let Marker::Pattern(pattern, at) = *begin {
                    let node = self.regex(pattern, at)?;
                    self.patterns.insert(at, node);
                }
                self.whole(tree, *content)
            }
            Format::Triggered { triggers, tags, excludes, rounds } => {
                return self.triggered(tree, slot, triggers, tags, excludes, *rounds);
            }
            Format::Separated { tags, separator, rounds } => self.separated(tree, tags, separator, *rounds),
            Format::Dispatch { rules, excludes, rounds } => {
                let alternatives = rules.iter().map(|&(pattern, content)| (pattern, self.whole(tree, content)));
                let alternatives: Vec<(&'a str, NodeId)> = alternatives.collect();
                return self.free_text(slot, alternatives, None, excludes, None, rounds.stop_after_first);
            }
            Format::Token(token) => self.token(token),
            Format::OtherTokens { excludes, min, max } => {
                let token = self.other_tokens(&[excludes], &slot.ends);
                if (*min, *max) == (1, Some(1)) { token } else { self.builder.repeat(token, *min, *max) }
            }
            Format::TokenTriggered { triggers, tags, excludes, rounds } => {
                let known: HashSet<&TokenRef<'a>> = triggers.iter().collect();
                for &tag in tags {
                    let Format::Tag { begin, .. } = &tree.slot(tag).format else { continue };
                    if !matches!(begin, Marker::Token(token) if known.contains(token)) {
                        let message = "the tag does not begin with a token of trigger_tokens, so nothing leads to it; \
                                       add its beginning to them";
                        return Err(error(self.document, tree.slot(tag).at, message));
                    }
                }
                let alternatives = self.all(tree, tags);
                self.between_tokens(&alternatives, &[triggers, excludes], &slot.ends, *rounds)
            }
            Format::TokenDispatch { rules, excludes, rounds } => {
                let mut alternatives = Vec::new();
                for (token, content) in rules {
                    let token = self.token(token);
                    let content = self.whole(tree, *content);
                    alternatives.push(self.builder.sequence(&[token, content]));
                }
                let triggers: Vec<TokenRef<'a>> = rules.iter().map(|(token, _)| token.clone()).collect();
                self.between_tokens(&alternatives, &[&triggers, excludes], &slot.ends, *rounds)
            }
        };
        Ok(self.with_ends(slot, node))
    }

    /// One of the alternatives, between free tokens that exclude these.
    fn between_tokens(
        &mut self,
        alternatives: &[NodeId],
        left_out: &[&[TokenRef<'a>]],
        ends: &[Marker<'a>],
        rounds: Rounds,
    ) -> NodeId {
        let settings = self.builder.choice(alternatives);
        let token = self.other_tokens(left_out, ends);
        let free = self.builder.repeat(token, 0, None);
        let more = self.builder.sequence(&[settings, free]);
        match (rounds.at_least_one, rounds.stop_after_first) {
            (true, true) => settings,
            (true, false) => self.builder.repeat(more, 1, None),
            (false, true) => {
                let settings = self.builder.repeat(settings, 0, Some(1));
                self.builder.sequence(&[free, settings])
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

    pub(super) fn add(&mut self, grammar: &Grammar) -> NodeId {
        combine::add(&mut self.builder, &mut self.names, grammar)
    }

    /// Adds a grammar; returns the node that its first node has become. The others follow it in order.
    pub(super) fn add_all_of(&mut self, grammar: Grammar, max_exprs: usize) -> NodeId {
        if self.builder.node_count() > 0 {
            let root = self.add(&grammar);
            return NodeId(root.0 - grammar.root().0);
        }
        // The first grammar becomes the builder itself.
        self.names.extend(grammar.rules().iter().map(|rule| rule.name.clone()));
        self.builder = GrammarBuilder::from_grammar(grammar);
        self.builder.limit_exprs(max_exprs);
        NodeId(0)
    }
}

/// Adds to an error in a schema what stands before it in the enclosing tag, which identifies the tool.
fn within_tag(tree: &Tree<'_>, mut id: FormatId, error: GrammarError) -> GrammarError {
    let mut before = String::new();
    // A format comes before its parts.
    while let Some(around) = (0..id.0).rev().map(FormatId).find(|&around| holds(tree, around, id)) {
        match &tree.slot(around).format {
            Format::Tag { begin: Marker::Text(begin), .. } if !begin.is_empty() => {
                let message = format!("in the tag {:?}: {}", format!("{begin}{before}"), error.message);
                return GrammarError { message, ..error };
            }
            Format::Sequence(parts) => {
                let parts = parts.iter().take_while(|&&part| part != id);
                let texts: Vec<Option<&str>> = parts
                    .map(|&part| if let Format::Const(text) = tree.slot(part).format { Some(text) } else { None })
                    .collect();
                if texts.iter().any(Option::is_some) {
                    let texts: String = texts.into_iter().map(|text| text.unwrap_or("…")).collect();
                    before = texts + &before;
                }
            }
            _ => {}
        }
        id = around;
    }
    error
}

/// Whether a format directly contains another one.
fn holds(tree: &Tree<'_>, around: FormatId, id: FormatId) -> bool {
    match &tree.slot(around).format {
        Format::Sequence(parts) | Format::Or(parts) => parts.contains(&id),
        Format::Repeat { content, .. } | Format::Tag { content, .. } => *content == id,
        _ => false,
    }
}
