//! The one intermediate form of every notation: rules over regular lexemes, with special nodes for JSON objects and
//! arrays.
//!
//! A [`Grammar`] is immutable and knows no vocabulary. Nodes live in one arena and refer to each other by id; only
//! rules recurse, so the node graph without `Node::Rule` is a tree of bounded depth.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use stencilm_regex::{Expr, ExprId, ExprSet};
use stencilm_support::memory;

use crate::error::GrammarError;
use crate::ir::report::{KeptReport, Report};
use crate::json::strings::is_plain;
use crate::json::surface::Surface;

/// A lexeme with at most this many texts, and this many bytes in all of them, is examined text by text.
const MAX_TEXTS: usize = 256;
const MAX_TEXT_BYTES: usize = 16_384;

/// A node of one [`Grammar`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(pub u32);

/// A rule of one [`Grammar`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RuleId(pub u32);

/// The description of a JSON object of one [`Grammar`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct MembersId(pub u32);

/// The description of a JSON array of one [`Grammar`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ItemsId(pub u32);

/// A part of a rule.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// Bytes that match a regular expression.
    Lexeme(ExprId),
    /// All parts one after the other; no parts match the empty string.
    Sequence(Box<[NodeId]>),
    /// Any one of the parts; no parts match nothing.
    Choice(Box<[NodeId]>),
    /// `body` at least `min` and at most `max` times (`None`: without limit), counted and never unrolled.
    Repeat {
        /// What is repeated.
        body: NodeId,
        /// The least number of repetitions.
        min: u32,
        /// The greatest number of repetitions, `None` without limit.
        max: Option<u32>,
    },
    /// What a rule matches.
    Rule(RuleId),
    /// A JSON object with its braces.
    Members(MembersId),
    /// A JSON array with its brackets.
    Items(ItemsId),
    /// Exactly one token of the model, whatever bytes it spells; no bytes match it.
    Token(Box<TokenPattern>),
    /// What `body` matches, with a mark that says more about it.
    Marked {
        /// The mark.
        mark: Mark,
        /// The part that is marked.
        body: NodeId,
    },
}

/// Something said about a part beyond what it matches. Without its marks a grammar has the same texts, except for
/// references.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Mark {
    /// The text that the part matched is captured under this name.
    Capture(Box<str>),
    /// Once this many tokens (at least 1) have begun within the part, it ends as soon as it can.
    MaxTokens(u32),
    /// Tokens within the part are sampled at this temperature.
    Temperature(Temperature),
    /// From here on the text that the part matched is a name of this set. The part is a lexeme.
    Declares(NameSet),
    /// The part matches only the names of this set that were declared before it.
    Refers(NameSet),
}

/// A set of names that a text declares as it is written.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NameSet {
    /// The name of the set.
    pub name: Box<str>,
    /// Whether the names are JSON strings, which are compared by value, however they are escaped.
    pub quoted: bool,
}

/// A temperature for sampling: a finite, non-negative number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Temperature(u64);

impl Temperature {
    /// `None` for a number that is not a valid temperature.
    pub fn new(value: f64) -> Option<Temperature> {
        // Adding zero turns the negative zero into the positive one. The bits of non-negative numbers are ordered as
        // the numbers are.
        (value.is_finite() && value >= 0.0).then(|| Temperature((value + 0.0).to_bits()))
    }

    /// The number.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// Which tokens a [`Node::Token`] matches. The ids and names are resolved once a vocabulary is given.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TokenPattern {
    /// The special token of this name, such as `<|tool|>`; if there is none, the token whose text is the name.
    Special(Box<str>),
    /// The special token of this name if the vocabulary has one; otherwise nothing. So it can be an alternative to its
    /// text.
    IfSpecial(Box<str>),
    /// All tokens but these, each given by its id or as [`TokenPattern::Special`] names it. Stop tokens are never among
    /// the tokens that are left.
    Others {
        /// The ids that are left out.
        ids: Box<[u32]>,
        /// The names that are left out.
        names: Box<[Box<str>]>,
    },
    /// Tokens by id.
    Ids {
        /// The least and the greatest id of every range.
        ranges: Box<[(u32, u32)]>,
        /// Whether it matches all tokens except these. Stop tokens are never among the tokens that are left.
        negated: bool,
    },
}

impl TokenPattern {
    fn memory_bytes(&self) -> usize {
        size_of::<TokenPattern>()
            + match self {
                TokenPattern::Special(name) | TokenPattern::IfSpecial(name) => name.len(),
                TokenPattern::Others { ids, names } => {
                    size_of_val(&**ids) + names.iter().map(|name| size_of::<Box<str>>() + name.len()).sum::<usize>()
                }
                TokenPattern::Ids { ranges, .. } => ranges.len() * size_of::<(u32, u32)>(),
            }
    }
}

/// A named part of a grammar, which may refer to itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// For messages and printing only.
    pub name: String,
    /// What the rule matches.
    pub body: NodeId,
}

/// A member whose key is given by the schema.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DeclaredMember {
    /// The key as a string value, without quotes or escapes.
    pub name: Arc<str>,
    /// The spellings of the key, quotes included. `None` if the key is [plain](DeclaredMember::is_plain) and written
    /// only as its name between quotes. Nearly all keys are, so no expression is made for them.
    pub key: Option<ExprId>,
    /// What the value matches.
    pub value: NodeId,
    /// Whether the object is incomplete without it.
    pub required: bool,
}

impl DeclaredMember {
    /// Whether a name is printable ASCII that JSON writes without escapes.
    pub fn is_plain(name: &str) -> bool {
        is_plain(name)
    }

    /// The length of a plain name as it is written, with its quotes, in bytes.
    pub fn plain_len(&self) -> usize {
        self.name.len() + 2
    }
}

/// How many string values the keys of a class have. The canonical spelling of each value must be among its keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeySpace {
    /// However a key begins, infinitely many values continue it: excluding some never leads to a dead end.
    Infinite,
    /// More values than any text can hold, but only finitely many after some beginnings.
    LocallyFinite,
    /// At most this many members, at least one.
    Finite(u32),
}

/// A class of members whose keys the schema does not list. They come in any order, after the declared members that are
/// in declared order. No two of them have equal keys, and none has a reserved one: the matcher compares keys as string
/// values.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AdditionalMembers {
    /// The spellings of the keys, quotes included. If a string value has a spelling here, its canonical one is here
    /// too: every character plain that may be, the others in their shortest escape. Remaining keys are counted by their
    /// canonical spellings.
    pub key: ExprId,
    /// How many keys there are.
    pub space: KeySpace,
    /// The names that an additional key must not have, as string values, sorted: the declared ones and the forbidden
    /// ones.
    pub reserved: Box<[Arc<str>]>,
    /// What the value matches.
    pub value: NodeId,
    /// What at least one member of the class must match instead of `value`; usually a subset of the values that `value`
    /// matches.
    pub some: Option<NodeId>,
    /// Set if the object is truncated and ends with a member of this class. After that member's key, completed by these
    /// bytes, `value` comes directly, without a colon, and nothing closes the object. The bounds of the object don't
    /// count this member.
    pub last: Option<Box<str>>,
}

impl AdditionalMembers {
    /// Whether every member of the class obviously has the value that one of them must have.
    pub fn meets_always(&self, nodes: &[Node]) -> bool {
        let node = |id: NodeId| &nodes[id.0 as usize];
        self.some.is_some_and(|some| some == self.value || node(some) == node(self.value))
    }
}

/// A JSON object: which members, in which order, how many, and how it is written. Keys never repeat.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Members {
    /// Members with declared keys, in declared order.
    pub declared: Vec<DeclaredMember>,
    /// How many of the first `declared` members come in declared order before everything else; the others mix with the
    /// additional ones.
    pub ordered: usize,
    /// The classes of all other members; empty if there may be none. Keys of different classes are disjoint as string
    /// values, or equal if each class has `some`.
    pub additional: Vec<AdditionalMembers>,
    /// The least number of members.
    pub min: u32,
    /// The greatest number of members, `None` without limit.
    pub max: Option<u32>,
    /// How it is written.
    pub surface: Surface,
}

impl Members {
    /// Whether the members must be counted while they are read.
    pub fn is_counted(&self) -> bool {
        self.min > 0
            || self.max.is_some()
            || self.additional.iter().any(|additional| additional.some.is_some() || additional.last.is_some())
    }

    /// Whether the object is truncated: it ends with a last member.
    pub fn is_cut(&self) -> bool {
        self.additional.iter().any(|additional| additional.last.is_some())
    }

    /// The additional classes, except those that a truncated object ends with.
    pub fn whole_others(&self) -> impl Iterator<Item = &AdditionalMembers> {
        self.additional.iter().filter(|additional| additional.last.is_none())
    }
}

/// How an array is written: the text between its elements, whitespace included. If all of it is empty, the array is
/// [bare](Items::is_bare).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArraySurface {
    /// The whole array when it has no element, `[` to `]`.
    pub empty: ExprId,
    /// From `[` to before the first element.
    pub open: ExprId,
    /// Between two elements.
    pub item: ExprId,
    /// After the last element, to `]`.
    pub close: ExprId,
}

/// One of the alternatives for an element of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Element {
    /// What the element matches: a JSON value, so never the empty text or only whitespace.
    pub value: NodeId,
    /// The counters that the element counts for: bit `i` increments the counter of `contains[i]`.
    pub counts: u32,
}

/// What an array requires of elements that are equal as JSON values. `1` equals `1.0`, `"a"` equals `"\u0061"`, and the
/// order of members in objects doesn't matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Repeats {
    /// Nothing: elements are not compared.
    #[default]
    Any,
    /// No two are equal.
    Never {
        /// Whether the counters show when values are exhausted. Then the alternatives have no value in common, and an
        /// alternative that the counters allow has a value that the array doesn't have yet.
        counted: bool,
    },
    /// At least two are equal.
    Required,
}

/// A JSON array whose elements are counted by kind, or compared with each other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Items {
    /// The alternatives at each leading position.
    pub prefix: Vec<Box<[Element]>>,
    /// The alternatives at every later position; empty if there is no later position.
    pub rest: Box<[Element]>,
    /// The least number of elements.
    pub min: u32,
    /// The greatest number of elements, `None` without limit.
    pub max: Option<u32>,
    /// Bounds of the counters, at most 32.
    pub contains: Vec<(u32, Option<u32>)>,
    /// What is required of equal elements.
    pub repeats: Repeats,
    /// How it is written.
    pub surface: ArraySurface,
}

impl Items {
    /// Whether nothing is written but the elements, one after the other: then the array may be the empty text.
    pub fn is_bare(&self) -> bool {
        self.surface.item == ExprId::EMPTY
    }

    /// Whether elements are compared with each other.
    pub fn compares(&self) -> bool {
        self.repeats != Repeats::Any
    }

    /// Whether no two elements may be equal.
    pub fn is_unique(&self) -> bool {
        matches!(self.repeats, Repeats::Never { .. })
    }

    /// Whether two elements must be equal.
    pub fn must_repeat(&self) -> bool {
        self.repeats == Repeats::Required
    }

    /// Whether the array may have no elements.
    pub fn may_be_empty(&self) -> bool {
        self.min == 0 && self.contains.iter().all(|&(min, _)| min == 0)
    }

    /// The alternatives at a position.
    pub fn at(&self, place: usize) -> &[Element] {
        self.prefix.get(place).unwrap_or(&self.rest)
    }

    /// All alternatives of all positions.
    pub fn elements(&self) -> impl Iterator<Item = &Element> {
        self.prefix.iter().flatten().chain(&self.rest)
    }
}

/// A grammar: immutable, independent of a vocabulary. Every rule is reachable and every node matches something.
#[derive(Clone)]
pub struct Grammar {
    pub(crate) exprs: ExprSet,
    pub(crate) nodes: Vec<Node>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) members: Vec<Members>,
    pub(crate) items: Vec<Items>,
    pub(crate) root: NodeId,
    pub(crate) report: KeptReport,
    /// The bytes before every text: the texts of the grammar are the continuations of these bytes to a text of the
    /// root.
    pub(crate) begun: Box<[u8]>,
}

impl Grammar {
    /// The expressions of the lexemes.
    pub fn exprs(&self) -> &ExprSet {
        &self.exprs
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// All nodes, indexed by [`NodeId`].
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A rule.
    pub fn rule(&self, id: RuleId) -> &Rule {
        &self.rules[id.0 as usize]
    }

    /// All rules, indexed by [`RuleId`].
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// An object description.
    pub fn members(&self, id: MembersId) -> &Members {
        &self.members[id.0 as usize]
    }

    /// An array description.
    pub fn items(&self, id: ItemsId) -> &Items {
        &self.items[id.0 as usize]
    }

    /// All objects.
    pub fn all_members(&self) -> &[Members] {
        &self.members
    }

    /// All array descriptions, indexed by [`ItemsId`].
    pub fn all_items(&self) -> &[Items] {
        &self.items
    }

    /// The node that every text starts from.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// The bytes that texts continue from: the root matches these and the text after them. Nearly always empty.
    pub fn begun(&self) -> &[u8] {
        &self.begun
    }

    /// Whether some part refers to names that the text has declared.
    pub(crate) fn has_references(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node, Node::Marked { mark: Mark::Refers(_), .. }))
    }

    /// What became of the constraints in the input.
    pub fn report(&self) -> &Report {
        self.report.read()
    }

    /// As [`Grammar::report`], but stops where the thread has to.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit).
    pub fn report_in_time(&self) -> Result<&Report, GrammarError> {
        self.report.read_in_time()
    }

    /// Those of the given names of special tokens that the grammar spells as text, and nowhere means as a token: a
    /// model that writes the token doesn't write the text. Only literals are considered, not patterns that happen to
    /// match a name.
    pub fn names_as_text<'n>(&self, names: &[&'n str]) -> Vec<&'n str> {
        let is_token = |name: &str| {
            self.nodes.iter().any(|node| match node {
                Node::Token(pattern) => match &**pattern {
                    TokenPattern::Special(known) | TokenPattern::IfSpecial(known) => **known == *name,
                    TokenPattern::Others { names, .. } => names.iter().any(|known| **known == *name),
                    // Only the vocabulary knows which token is meant.
                    TokenPattern::Ids { .. } => false,
                },
                _ => false,
            })
        };
        let mut spelled: Vec<u8> = Vec::new();
        let mut seen = FxHashSet::default();
        for node in &self.nodes {
            let Node::Lexeme(expr) = *node else { continue };
            if !seen.insert(expr) {
                continue;
            }
            // A byte that is in no name separates the texts.
            match self.exprs.texts(expr, MAX_TEXTS, MAX_TEXT_BYTES) {
                Some(texts) => texts.iter().for_each(|text| {
                    spelled.extend_from_slice(text);
                    spelled.push(0);
                }),
                None => self.literal_runs(expr, &mut spelled),
            }
        }
        let holds = |name: &&str| spelled.windows(name.len().max(1)).any(|text| text == name.as_bytes());
        names.iter().copied().filter(holds).filter(|name| !is_token(name)).collect()
    }

    /// Writes the literals in sequences and alternatives of an expression, each with a zero byte after it.
    fn literal_runs(&self, expr: ExprId, spelled: &mut Vec<u8>) {
        let (mut work, mut seen) = (vec![expr], FxHashSet::default());
        while let Some(expr) = work.pop() {
            let mut rest = Some(expr);
            while let Some(id) = rest {
                let (head, tail) = match *self.exprs.get(id) {
                    Expr::Concat { head, tail } => (head, Some(tail)),
                    _ => (id, None),
                };
                match self.exprs.get(head) {
                    Expr::Bytes(set) if set.len() == 1 => spelled.extend(set.iter()),
                    Expr::Text(text) => spelled.extend_from_slice(text.as_bytes()),
                    Expr::Or(parts) if seen.len() < MAX_TEXT_BYTES => {
                        work.extend(parts.iter().filter(|&&part| seen.insert(part)));
                        spelled.push(0);
                    }
                    _ => spelled.push(0),
                }
                rest = tail;
            }
            spelled.push(0);
        }
    }

    /// The approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let children: usize = self
            .nodes
            .iter()
            .map(|node| match node {
                Node::Sequence(parts) | Node::Choice(parts) => memory::of_slice::<NodeId>(parts.len()),
                Node::Marked { mark: Mark::Capture(name), .. } => memory::allocated(name.len()),
                Node::Marked { mark: Mark::Declares(set) | Mark::Refers(set), .. } => memory::allocated(set.name.len()),
                Node::Token(pattern) => pattern.memory_bytes(),
                _ => 0,
            })
            .sum();
        let members = self.members.iter().map(|members| {
            let known = members.declared.iter().map(|known| memory::of_shared::<u8>(known.name.len()));
            let reserved = members.additional.iter().flat_map(|additional| &additional.reserved);
            let reserved = reserved.map(|name| size_of::<Arc<str>>() + memory::of_shared::<u8>(name.len()));
            let lists = memory::of_list(&members.declared) + memory::of_list(&members.additional);
            lists + known.sum::<usize>() + reserved.sum::<usize>()
        });
        let items = self.items.iter().map(|items| {
            let places = items.prefix.len() * size_of::<Box<[Element]>>() + items.contains.len() * 12;
            places + items.elements().count() * size_of::<Element>()
        });
        let members: usize = members.sum::<usize>() + items.sum::<usize>();
        let rules: usize = self.rules.iter().map(|rule| memory::allocated(rule.name.capacity())).sum();
        self.exprs.memory_bytes()
            + self.report.memory_bytes()
            + rules
            + memory::of_list(&self.nodes)
            + memory::of_list(&self.rules)
            + memory::of_list(&self.members)
            + memory::of_list(&self.items)
            + memory::of_shared::<Grammar>(1)
            + children
            + members
    }
}

/// Only sizes: a grammar's nodes and expressions would fill pages.
impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grammar")
            .field("rules", &self.rules.len())
            .field("nodes", &self.nodes.len())
            .field("exprs", &self.exprs.len())
            .finish_non_exhaustive()
    }
}
