//! Grammars as JSON text: lists in which everything refers to earlier entries by number, checked when read.
//!
//! Expressions are rebuilt by their constructors, so a text cannot hold one that is not in normal form. Nodes may refer
//! to later rules, but only to earlier nodes: a cycle that no rule breaks cannot be written.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet, NumberSet};
use stencilm_support::check_time;

use crate::error::{ErrorKind, GrammarError};
use crate::ir::builder::{GrammarBuilder, MAX_EXPRS};
use crate::ir::exprs;
use crate::ir::exprs::expressions;
use crate::ir::grammar::{
    AdditionalMembers, ArraySurface, DeclaredMember, Element, Grammar, Items, Mark, Members, NameSet, Node, NodeId,
    Repeats, RuleId, Temperature, TokenPattern,
};
use crate::ir::objects::ObjectChecks;
use crate::ir::report::{Finding, Report};
use crate::json::formats::language;
use crate::json::surface::Surface;
use crate::passes::rebuild;
use crate::saved_text::SavedFormat;

/// The format described here.
const FORMAT: SavedFormat = SavedFormat { name: "stencilm-grammar", version: 3, written_by: "Grammar.serialize_json" };
/// The greatest length of a text in bytes.
const MAX_BYTES: usize = 64 << 20;
/// The greatest number of entries of each list.
const MAX_ENTRIES: usize = 4_000_000;

/// The index of an entry.
type Index = u32;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: String,
    version: u32,
    #[serde(deserialize_with = "in_time")]
    exprs: Vec<SavedExpr>,
    #[serde(deserialize_with = "in_time")]
    nodes: Vec<SavedNode>,
    #[serde(deserialize_with = "in_time")]
    rules: Vec<(String, Index)>,
    #[serde(deserialize_with = "in_time")]
    members: Vec<SavedMembers>,
    #[serde(deserialize_with = "in_time")]
    items: Vec<SavedItems>,
    root: Index,
    report: SavedReport,
    #[serde(default, deserialize_with = "in_time", skip_serializing_if = "Vec::is_empty")]
    begun: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedExpr {
    Empty,
    /// Ranges of bytes.
    Bytes(#[serde(deserialize_with = "in_time")] Vec<(u8, u8)>),
    Concat(Index, Index),
    Or(#[serde(deserialize_with = "in_time")] Vec<Index>),
    And(#[serde(deserialize_with = "in_time")] Vec<Index>),
    Not(Index),
    Repeat(Index, u32, Option<u32>),
    Numbers(String),
    /// The name of a language.
    Language(String),
    Text(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedNode {
    Lexeme(Index),
    Sequence(#[serde(deserialize_with = "in_time")] Vec<Index>),
    Choice(#[serde(deserialize_with = "in_time")] Vec<Index>),
    Repeat(Index, u32, Option<u32>),
    Rule(Index),
    Members(Index),
    Items(Index),
    SpecialToken(String),
    IfSpecialToken(String),
    OtherTokens {
        #[serde(deserialize_with = "in_time")]
        ids: Vec<u32>,
        #[serde(deserialize_with = "in_time")]
        names: Vec<String>,
    },
    TokenIds {
        #[serde(deserialize_with = "in_time")]
        ranges: Vec<(u32, u32)>,
        negated: bool,
    },
    Capture(String, Index),
    MaxTokens(u32, Index),
    Temperature(f64, Index),
    Declares(String, bool, Index),
    Refers(String, bool, Index),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedMembers {
    #[serde(deserialize_with = "in_time")]
    known: Vec<SavedKnown>,
    ordered: usize,
    #[serde(deserialize_with = "in_time")]
    free: Vec<SavedFree>,
    min: u32,
    max: Option<u32>,
    /// The expressions `empty`, `open`, `colon`, `item`, `close`.
    surface: [Index; 5],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedKnown {
    name: String,
    key: Option<Index>,
    value: Index,
    required: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedFree {
    key: Index,
    #[serde(deserialize_with = "in_time")]
    taken: Vec<String>,
    value: Index,
    some: Option<Index>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedItems {
    #[serde(deserialize_with = "in_time")]
    prefix: Vec<SavedPlace>,
    #[serde(deserialize_with = "in_time")]
    rest: Vec<SavedElement>,
    min: u32,
    max: Option<u32>,
    #[serde(deserialize_with = "in_time")]
    contains: Vec<(u32, Option<u32>)>,
    unique: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    values_counted: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    repeated: bool,
    /// The expressions `empty`, `open`, `item`, `close`.
    surface: [Index; 4],
}

/// The elements that may be at one position.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct SavedPlace(#[serde(deserialize_with = "in_time")] Vec<SavedElement>);

/// The value, and the counters that it counts for.
type SavedElement = (Index, u32);

/// Keyword, place, note.
type Row = (String, String, String);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedReport {
    #[serde(deserialize_with = "in_time")]
    enforced: Vec<Row>,
    #[serde(deserialize_with = "in_time")]
    annotations: Vec<Row>,
    #[serde(deserialize_with = "in_time")]
    relaxed: Vec<Row>,
}

impl Grammar {
    /// The grammar and its report as JSON text, which [`Grammar::deserialize_json`] reads.
    pub fn serialize_json(&self) -> String {
        let Ok(text) = written(self, self.report(), || Ok::<_, Infallible>(()));
        text
    }

    /// As [`Grammar::serialize_json`], but stops where the thread has to.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`].
    pub fn serialize_json_in_time(&self) -> Result<String, GrammarError> {
        written(self, self.report.read_in_time()?, check_time).map_err(|limit| GrammarError::limit("", limit))
    }

    /// Reads a grammar that [`Grammar::serialize_json`] wrote. Nothing is trusted: every index is checked.
    ///
    /// # Errors
    /// [`ErrorKind::Syntax`] for a text that is damaged, of another format or of another version,
    /// [`ErrorKind::Limit`] for one that is too large, and what [`GrammarBuilder::finish`] refuses.
    pub fn deserialize_json(text: &str) -> Result<Grammar, GrammarError> {
        if text.len() > MAX_BYTES {
            let message = format!("the text has {} bytes and at most {MAX_BYTES} are accepted", text.len());
            return Err(GrammarError::new(ErrorKind::Limit, "", message));
        }
        match serde_json::from_str::<Saved>(text) {
            Ok(saved) => {
                FORMAT.check(Some(&saved.format), Some(saved.version))?;
                loaded(saved)
            }
            Err(error) => {
                FORMAT.check_text(text, damaged)?;
                Err(damaged(&error))
            }
        }
    }
}

/// Reads a list and checks the clock at every entry.
fn in_time<'de, D: Deserializer<'de>, T: Deserialize<'de>>(list: D) -> Result<Vec<T>, D::Error> {
    struct Entries<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a sequence")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = list.next_element()? {
                // Callers of the deserialiser check the clock again to recognise this error.
                check_time().map_err(A::Error::custom)?;
                entries.push(entry);
            }
            Ok(entries)
        }
    }
    list.deserialize_seq(Entries(PhantomData))
}

fn damaged(error: &serde_json::Error) -> GrammarError {
    let place = format!("line {}, column {}", error.line(), error.column());
    GrammarError::new(ErrorKind::Syntax, place, format!("this is no serialized grammar: {error}; serialize it again"))
}

fn written<E>(grammar: &Grammar, report: &Report, may_go_on: impl Fn() -> Result<(), E>) -> Result<String, E> {
    let saved = saved(&rebuild::drop_unreachable(grammar, &may_go_on)?, report, may_go_on)?;
    Ok(serde_json::to_string(&saved).expect("strings and numbers always have a JSON form"))
}

/// Converts a grammar. It must contain only reachable nodes, children before parents.
fn saved<E>(grammar: &Grammar, report: &Report, may_go_on: impl Fn() -> Result<(), E>) -> Result<Saved, E> {
    let mut roots = Vec::new();
    for node in &grammar.nodes {
        may_go_on()?;
        expressions(grammar, node, |expr| roots.push(expr));
    }
    let reached = exprs::reachable(&grammar.exprs, roots, &may_go_on)?;
    let numbers: FxHashMap<ExprId, Index> = reached.iter().zip(0..).map(|(&id, number)| (id, number)).collect();
    let number = |id: &ExprId| numbers[id];
    let numbers_of = |ids: &[ExprId]| ids.iter().map(number).collect::<Vec<_>>();
    let saved_expr = |id: ExprId| match grammar.exprs.get(id) {
        Expr::Nothing => SavedExpr::Bytes(Vec::new()),
        Expr::Empty => SavedExpr::Empty,
        Expr::Bytes(set) => SavedExpr::Bytes(set.ranges()),
        Expr::Concat { head, tail } => SavedExpr::Concat(number(head), number(tail)),
        Expr::Or(parts) => SavedExpr::Or(numbers_of(parts)),
        Expr::And(parts) => SavedExpr::And(numbers_of(parts)),
        Expr::Not(inner) => SavedExpr::Not(number(inner)),
        Expr::Repeat { body, min, max } => SavedExpr::Repeat(number(body), *min, *max),
        Expr::Number(numbers) => SavedExpr::Numbers(exprs::whole_set(numbers).to_string()),
        Expr::Language(rest) => SavedExpr::Language(exprs::whole_language(rest).to_owned()),
        Expr::Text(text) => SavedExpr::Text(text.to_string()),
    };
    let saved_exprs = reached.iter().map(|&id| may_go_on().map(|()| saved_expr(id)));
    let places = |ids: &[NodeId]| ids.iter().map(|id| id.0).collect::<Vec<_>>();
    let saved_node = |node: &Node| match node {
        Node::Lexeme(expr) => SavedNode::Lexeme(number(expr)),
        Node::Sequence(parts) => SavedNode::Sequence(places(parts)),
        Node::Choice(parts) => SavedNode::Choice(places(parts)),
        Node::Repeat { body, min, max } => SavedNode::Repeat(body.0, *min, *max),
        Node::Rule(rule) => SavedNode::Rule(rule.0),
        Node::Members(members) => SavedNode::Members(members.0),
        Node::Items(items) => SavedNode::Items(items.0),
        Node::Token(pattern) => match &**pattern {
            TokenPattern::Special(name) => SavedNode::SpecialToken(name.to_string()),
            TokenPattern::IfSpecial(name) => SavedNode::IfSpecialToken(name.to_string()),
            TokenPattern::Others { ids, names } => {
                SavedNode::OtherTokens { ids: ids.to_vec(), names: names.iter().map(ToString::to_string).collect() }
            }
            TokenPattern::Ids { ranges, negated } => SavedNode::TokenIds { ranges: ranges.to_vec(), negated: *negated },
        },
        Node::Marked { mark, body } => match mark {
            Mark::Capture(name) => SavedNode::Capture(name.to_string(), body.0),
            Mark::MaxTokens(count) => SavedNode::MaxTokens(*count, body.0),
            Mark::Temperature(temperature) => SavedNode::Temperature(temperature.value(), body.0),
            Mark::Declares(set) => SavedNode::Declares(set.name.to_string(), set.quoted, body.0),
            Mark::Refers(set) => SavedNode::Refers(set.name.to_string(), set.quoted, body.0),
        },
    };
    let nodes = grammar.nodes.iter().map(|node| may_go_on().map(|()| saved_node(node)));
    let members = grammar.members.iter().map(|members| may_go_on().map(|()| saved_members(members, number)));
    let items = grammar.items.iter().map(|items| saved_items(items, number));
    let rows = |findings: &[Finding]| {
        findings.iter().map(|f| (f.keyword.clone(), f.place.clone(), f.note.clone())).collect::<Vec<_>>()
    };
    let Report { enforced, annotations, relaxed } = report;
    Ok(Saved {
        format: FORMAT.name.into(),
        version: FORMAT.version,
        exprs: saved_exprs.collect::<Result<_, E>>()?,
        nodes: nodes.collect::<Result<_, E>>()?,
        rules: grammar.rules.iter().map(|rule| (rule.name.clone(), rule.body.0)).collect(),
        members: members.collect::<Result<_, E>>()?,
        items: items.collect(),
        root: grammar.root.0,
        begun: grammar.begun.to_vec(),
        report: SavedReport { enforced: rows(enforced), annotations: rows(annotations), relaxed: rows(relaxed) },
    })
}

fn saved_members(members: &Members, number: impl Fn(&ExprId) -> Index) -> SavedMembers {
    let Surface { empty, open, colon, item, close } = members.surface;
    let known = members.declared.iter().map(|known| SavedKnown {
        name: known.name.to_string(),
        key: known.key.as_ref().map(&number),
        value: known.value.0,
        required: known.required,
    });
    let free = members.additional.iter().map(|free| SavedFree {
        key: number(&free.key),
        taken: free.reserved.iter().map(ToString::to_string).collect(),
        value: free.value.0,
        some: free.some.map(|some| some.0),
        last: free.last.as_ref().map(ToString::to_string),
    });
    let surface = [empty, open, colon, item, close].map(|expr| number(&expr));
    let (known, free) = (known.collect(), free.collect());
    SavedMembers { known, ordered: members.ordered, free, min: members.min, max: members.max, surface }
}

fn saved_items(items: &Items, number: impl Fn(&ExprId) -> Index) -> SavedItems {
    let ArraySurface { empty, open, item, close } = items.surface;
    let place = |place: &[Element]| place.iter().map(|element| (element.value.0, element.counts)).collect::<Vec<_>>();
    SavedItems {
        prefix: items.prefix.iter().map(|alternatives| SavedPlace(place(alternatives))).collect(),
        rest: place(&items.rest),
        min: items.min,
        max: items.max,
        contains: items.contains.clone(),
        unique: items.is_unique(),
        values_counted: items.repeats == Repeats::Never { counted: true },
        repeated: items.must_repeat(),
        surface: [empty, open, item, close].map(|expr| number(&expr)),
    }
}

/// A list that is already rebuilt, with its name; other entries refer to its entries.
struct Made<T>(&'static str, Vec<T>);

impl<T: Copy> Made<T> {
    fn get(&self, index: Index, list: &str, at: usize) -> Result<T, GrammarError> {
        self.1.get(index as usize).copied().ok_or_else(|| {
            let message = format!(
                "it refers to number {index} of `{}`, of which {} come before it; serialize the grammar again",
                self.0,
                self.1.len()
            );
            GrammarError::new(ErrorKind::Syntax, format!("#/{list}/{at}"), message)
        })
    }

    fn all(&self, indices: &[Index], list: &str, at: usize) -> Result<Vec<T>, GrammarError> {
        let in_time = || check_time().map_err(|limit| GrammarError::limit(format!("#/{list}/{at}"), limit));
        indices.iter().map(|&index| in_time().and_then(|()| self.get(index, list, at))).collect()
    }
}

/// Objects and arrays that still have to be rebuilt. They refer to nodes and nodes refer to them, always to earlier
/// ones, so each is rebuilt where it is used.
struct Containers {
    members: Vec<Option<SavedMembers>>,
    items: Vec<Option<SavedItems>>,
    made_members: FxHashMap<Index, NodeId>,
    made_items: FxHashMap<Index, NodeId>,
    checks: ObjectChecks,
}

impl Containers {
    fn members(
        &mut self,
        builder: &mut GrammarBuilder,
        exprs: &Made<ExprId>,
        nodes: &Made<NodeId>,
        index: Index,
        at: usize,
    ) -> Result<NodeId, GrammarError> {
        if let Some(&known) = self.made_members.get(&index) {
            return Ok(builder.node(builder.get(known).clone()));
        }
        let Some(members) = self.members.get_mut(index as usize) else { return Err(fewer("members", index, at)) };
        let members = members.take().expect("an object that was not made has not been taken");
        let members = load_members(builder, &mut self.checks, exprs, nodes, members, index as usize)?;
        let id = builder.object(members);
        self.made_members.insert(index, id);
        Ok(id)
    }

    fn items(
        &mut self,
        builder: &mut GrammarBuilder,
        exprs: &Made<ExprId>,
        nodes: &Made<NodeId>,
        index: Index,
        at: usize,
    ) -> Result<NodeId, GrammarError> {
        if let Some(&known) = self.made_items.get(&index) {
            return Ok(builder.node(builder.get(known).clone()));
        }
        let Some(items) = self.items.get_mut(index as usize) else { return Err(fewer("items", index, at)) };
        let items = items.take().expect("an array that was not made has not been taken");
        let items = load_items(builder, &mut self.checks, exprs, nodes, items, index as usize)?;
        let id = builder.array(items);
        self.made_items.insert(index, id);
        Ok(id)
    }
}

fn fewer(list: &str, index: Index, at: usize) -> GrammarError {
    let message = format!("it refers to number {index} of `{list}`, which has fewer");
    GrammarError::new(ErrorKind::Syntax, format!("#/nodes/{at}"), message)
}

fn loaded(saved: Saved) -> Result<Grammar, GrammarError> {
    let lists = [saved.nodes.len(), saved.rules.len(), saved.members.len(), saved.items.len()];
    if saved.exprs.len() > MAX_EXPRS || lists.into_iter().any(|length| length > MAX_ENTRIES) {
        let message = format!("it has more than {MAX_EXPRS} expressions, or another list is too long; split it");
        return Err(GrammarError::new(ErrorKind::Limit, "", message));
    }
    let mut builder = GrammarBuilder::default();
    let exprs = load_exprs(&mut builder, &saved.exprs)?;
    let rules: Vec<RuleId> = saved.rules.iter().map(|(name, _)| builder.declare_rule(name.clone())).collect();
    let rules = Made("rules", rules);
    let mut containers = Containers {
        members: saved.members.into_iter().map(Some).collect(),
        items: saved.items.into_iter().map(Some).collect(),
        made_members: FxHashMap::default(),
        made_items: FxHashMap::default(),
        checks: ObjectChecks::default(),
    };
    let mut nodes = Made("nodes", Vec::with_capacity(saved.nodes.len()));
    for (at, node) in saved.nodes.into_iter().enumerate() {
        let list = "nodes";
        check_time().map_err(|limit| GrammarError::limit(format!("#/nodes/{at}"), limit))?;
        let id = match node {
            SavedNode::Lexeme(expr) => builder.lexeme(exprs.get(expr, list, at)?),
            SavedNode::Sequence(parts) => builder.sequence(&nodes.all(&parts, list, at)?),
            SavedNode::Choice(parts) => builder.choice(&nodes.all(&parts, list, at)?),
            SavedNode::Repeat(body, min, max) => builder.repeat(nodes.get(body, list, at)?, min, max),
            SavedNode::Rule(rule) => builder.node(Node::Rule(rules.get(rule, list, at)?)),
            SavedNode::SpecialToken(name) => builder.special_token(name),
            SavedNode::IfSpecialToken(name) => builder.if_special_token(name),
            SavedNode::OtherTokens { ids, names } => {
                let names: Vec<&str> = names.iter().map(|name| &**name).collect();
                builder.other_tokens(&ids, &names)
            }
            SavedNode::TokenIds { ranges, negated } => {
                if let Some((first, last)) = ranges.iter().find(|(first, last)| last < first) {
                    let message =
                        format!("the range of tokens {first}-{last} is reversed; serialize the grammar again");
                    return Err(GrammarError::new(ErrorKind::Syntax, format!("#/nodes/{at}"), message));
                }
                builder.token_ids(&ranges, negated)
            }
            SavedNode::Capture(name, body) => builder.capture(name, nodes.get(body, list, at)?),
            SavedNode::MaxTokens(0, _) => {
                let message = "a budget of 0 tokens lets no token in; serialize the grammar again";
                return Err(GrammarError::new(ErrorKind::Syntax, format!("#/nodes/{at}"), message));
            }
            SavedNode::MaxTokens(count, body) => builder.marked(Mark::MaxTokens(count), nodes.get(body, list, at)?),
            SavedNode::Temperature(value, body) => {
                let Some(temperature) = Temperature::new(value) else {
                    let message = format!("{value} is no temperature; serialize the grammar again");
                    return Err(GrammarError::new(ErrorKind::Syntax, format!("#/nodes/{at}"), message));
                };
                builder.marked(Mark::Temperature(temperature), nodes.get(body, list, at)?)
            }
            SavedNode::Declares(name, quoted, body) => {
                let set = NameSet { name: name.into(), quoted };
                builder.marked(Mark::Declares(set), nodes.get(body, list, at)?)
            }
            SavedNode::Refers(name, quoted, body) => {
                let set = NameSet { name: name.into(), quoted };
                builder.marked(Mark::Refers(set), nodes.get(body, list, at)?)
            }
            SavedNode::Members(index) => containers.members(&mut builder, &exprs, &nodes, index, at)?,
            SavedNode::Items(index) => containers.items(&mut builder, &exprs, &nodes, index, at)?,
        };
        nodes.1.push(id);
    }
    for (at, (&rule, (_, body))) in rules.1.iter().zip(&saved.rules).enumerate() {
        builder.define_rule(rule, nodes.get(*body, "rules", at)?);
    }
    let root = nodes.get(saved.root, "root", 0)?;
    let findings = |rows: Vec<Row>| {
        rows.into_iter().map(|(keyword, place, note)| Finding { keyword, place, note }).collect::<Vec<_>>()
    };
    let SavedReport { enforced, annotations, relaxed } = saved.report;
    let report =
        Report { enforced: findings(enforced), annotations: findings(annotations), relaxed: findings(relaxed) };
    let grammar = builder.finish(root, report)?;
    Ok(Grammar { begun: saved.begun.into(), ..grammar })
}

fn load_exprs(builder: &mut GrammarBuilder, saved: &[SavedExpr]) -> Result<Made<ExprId>, GrammarError> {
    let mut made = Made("exprs", Vec::with_capacity(saved.len()));
    let mut copied = 0;
    for (at, expr) in saved.iter().enumerate() {
        let list = "exprs";
        check_time().map_err(|limit| GrammarError::limit(format!("#/exprs/{at}"), limit))?;
        let exprs = &mut builder.exprs;
        // A constructor copies the parts of operands of its own kind. `serialize_json` never writes such operands, but
        // a crafted text with a few entries could have long lists copied over and over.
        copied += match expr {
            SavedExpr::Concat(head, _) => concatenated(exprs, made.get(*head, list, at)?, MAX_EXPRS),
            SavedExpr::Or(parts) => made.all(parts, list, at)?.into_iter().map(|part| alternatives(exprs, part)).sum(),
            SavedExpr::And(parts) => made.all(parts, list, at)?.into_iter().map(|part| conjuncts(exprs, part)).sum(),
            _ => 0,
        };
        if copied > MAX_EXPRS {
            let message = "its expressions hold each other's parts too often; serialize the grammar again";
            return Err(GrammarError::new(ErrorKind::Limit, format!("#/exprs/{at}"), message));
        }
        let id = match expr {
            SavedExpr::Empty => ExprId::EMPTY,
            SavedExpr::Bytes(ranges) => {
                let sets = ranges.iter().map(|&(first, last)| ByteSet::range(first, last));
                exprs.bytes(sets.fold(ByteSet::EMPTY, |all, set| all.union(&set)))
            }
            SavedExpr::Concat(head, tail) => exprs.concat(made.get(*head, list, at)?, made.get(*tail, list, at)?),
            SavedExpr::Or(parts) => exprs.or(&made.all(parts, list, at)?),
            SavedExpr::And(parts) => exprs.and(&made.all(parts, list, at)?),
            SavedExpr::Not(inner) => exprs.not(made.get(*inner, list, at)?),
            SavedExpr::Repeat(body, min, max) => exprs.repeat(made.get(*body, list, at)?, *min, *max),
            SavedExpr::Text(text) => exprs.text_then(text, ExprId::EMPTY),
            SavedExpr::Language(name) => {
                let known = language(name);
                exprs.language(
                    known.map_err(|what| GrammarError::new(ErrorKind::Syntax, format!("#/exprs/{at}"), what))?,
                )
            }
            SavedExpr::Numbers(text) => {
                let set = NumberSet::parse(text);
                exprs.numbers(set.map_err(|what| GrammarError::new(ErrorKind::Syntax, format!("#/exprs/{at}"), what))?)
            }
        };
        if exprs.own_len() > MAX_EXPRS {
            let message = format!("the grammar has more than {MAX_EXPRS} parts of regular expressions; split it");
            return Err(GrammarError::new(ErrorKind::Limit, format!("#/exprs/{at}"), message));
        }
        made.1.push(id);
    }
    Ok(made)
}

/// How many parts the constructor of a concatenation copies from its head, counted up to `most`.
fn concatenated(exprs: &ExprSet, head: ExprId, most: usize) -> usize {
    let mut parts = 0;
    let mut rest = head;
    while let Expr::Concat { tail, .. } = *exprs.get(rest)
        && parts <= most
    {
        parts += 1;
        rest = tail;
    }
    parts
}

/// How many parts the constructor of a choice copies from one of its operands.
fn alternatives(exprs: &ExprSet, part: ExprId) -> usize {
    if let Expr::Or(parts) = exprs.get(part) { parts.len() } else { 0 }
}

/// How many parts the constructor of an intersection copies from one of its operands.
fn conjuncts(exprs: &ExprSet, part: ExprId) -> usize {
    if let Expr::And(parts) = exprs.get(part) { parts.len() } else { 0 }
}

fn load_members(
    builder: &GrammarBuilder,
    checks: &mut ObjectChecks,
    exprs: &Made<ExprId>,
    nodes: &Made<NodeId>,
    saved: SavedMembers,
    at: usize,
) -> Result<Members, GrammarError> {
    let list = "members";
    let mut known = Vec::with_capacity(saved.known.len());
    for SavedKnown { name, key, value, required } in saved.known {
        let key = key.map(|key| exprs.get(key, list, at)).transpose()?;
        let value = nodes.get(value, list, at)?;
        known.push(DeclaredMember { name: name.into(), key, value, required });
    }
    let mut free = Vec::with_capacity(saved.free.len());
    for SavedFree { key, taken, value, some, last } in saved.free {
        let key = exprs.get(key, list, at)?;
        let mut taken: Vec<Arc<str>> = taken.into_iter().map(Arc::from).collect();
        taken.sort_unstable();
        let value = nodes.get(value, list, at)?;
        let some = some.map(|some| nodes.get(some, list, at)).transpose()?;
        let names: Vec<&str> = taken.iter().map(|name| &**name).collect();
        let refused = |error| GrammarError { place: format!("#/members/{at}"), ..error };
        let space = checks.key_space(&builder.exprs, key, &names).map_err(refused)?;
        let last = last.map(Into::into);
        free.push(AdditionalMembers { key, space, reserved: taken.into(), value, some, last });
    }
    let [empty, open, colon, item, close] = saved.surface;
    let expr = |index| exprs.get(index, list, at);
    let surface =
        Surface { empty: expr(empty)?, open: expr(open)?, colon: expr(colon)?, item: expr(item)?, close: expr(close)? };
    let SavedMembers { ordered, min, max, .. } = saved;
    let members = Members { declared: known, ordered, additional: free, min, max, surface };
    checks
        .check(&builder.exprs, builder.nodes(), &members)
        .map_err(|error| GrammarError { place: format!("#/members/{at}"), ..error })?;
    Ok(members)
}

fn load_items(
    builder: &GrammarBuilder,
    checks: &mut ObjectChecks,
    exprs: &Made<ExprId>,
    nodes: &Made<NodeId>,
    saved: SavedItems,
    at: usize,
) -> Result<Items, GrammarError> {
    let list = "items";
    let place = |place: &[SavedElement]| -> Result<Box<[Element]>, GrammarError> {
        place.iter().map(|&(value, counts)| Ok(Element { value: nodes.get(value, list, at)?, counts })).collect()
    };
    let prefix = saved.prefix.iter().map(|SavedPlace(alternatives)| place(alternatives)).collect::<Result<_, _>>()?;
    let rest = place(&saved.rest)?;
    let [empty, open, item, close] = saved.surface;
    let expr = |index| exprs.get(index, list, at);
    let surface = ArraySurface { empty: expr(empty)?, open: expr(open)?, item: expr(item)?, close: expr(close)? };
    let SavedItems { min, max, contains, .. } = saved;
    let repeats = match (saved.unique, saved.values_counted, saved.repeated) {
        (false, _, false) => Repeats::Any,
        (true, counted, false) => Repeats::Never { counted },
        (false, _, true) => Repeats::Required,
        (true, _, true) => {
            let message = "no two elements of an array can differ and be equal".to_string();
            return Err(GrammarError::new(ErrorKind::Syntax, format!("#/items/{at}"), message));
        }
    };
    let items = Items { prefix, rest, min, max, contains, repeats, surface };
    checks
        .check_array(&builder.exprs, &items)
        .map_err(|error| GrammarError { place: format!("#/items/{at}"), ..error })?;
    Ok(items)
}
