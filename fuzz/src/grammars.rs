//! Random grammars made of nodes: shared, ambiguous, left-recursive, nullable, deep, counted, with objects and
//! captures.
//!
//! Nodes are taken from a pool of earlier ones as well as made anew, because only a node with two users reveals that a
//! memo is wrongly keyed by node. Half of the grammars are built from the pool alone, from the leaves up, so that
//! alternatives have common beginnings and different continuations.

use std::sync::Arc;

use stencilm_grammar::{
    AdditionalMembers, ArraySurface, DeclaredMember, Element, Grammar, GrammarBuilder, Items, KeySpace, Members, Node,
    NodeId, Repeats, Report, RuleId, Surface,
};
use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};
use stencilm_regex::{ByteSet, ExprId};

use crate::choices::Choices;
use crate::exprs::{random_counts, random_expr};

/// The special tokens that every random vocabulary has.
pub const SPECIAL_TOKENS: [&str; 2] = ["<pad>", "<|tool|>"];

/// A random grammar, or `None` if it matches nothing.
pub fn random_grammar(choices: &mut Choices<'_>) -> Option<Grammar> {
    let mut builder = GrammarBuilder::default();
    let rules: Vec<RuleId> =
        (0..1 + choices.below(4)).map(|index| builder.declare_rule(format!("rule{index}"))).collect();
    let mut maker = Maker { builder, rules, pool: Vec::new(), values: Vec::new() };
    let woven = choices.chance(2);
    let depth = 2 + choices.below(3);
    for index in 0..maker.rules.len() {
        let body = if woven { maker.woven(choices) } else { maker.node(choices, depth) };
        let rule = maker.rules[index];
        maker.builder.define_rule(rule, body);
    }
    let root = maker.builder.node(Node::Rule(maker.rules[0]));
    maker.builder.finish(root, Report::default()).ok()
}

/// A random object or array, of others and of mostly short values; or `None` if it matches nothing.
pub fn random_container(choices: &mut Choices<'_>) -> Option<Grammar> {
    let mut builder = GrammarBuilder::default();
    let rule = builder.declare_rule("value");
    let mut maker = Maker { builder, rules: vec![rule], pool: Vec::new(), values: Vec::new() };
    // One alternative is much longer than the others, so that a budget depends on which of them must come.
    for text in ["1", "2", "12", "\"a\"", "\"ab\"", "true", "\"acacacacacacacacacacacac\""] {
        let leaf = maker.literal(text.as_bytes());
        maker.values.push(leaf);
    }
    let digits = maker.builder.exprs.bytes((b'0'..=b'9').collect());
    let digits = maker.builder.exprs.repeat(digits, 1, Some(2));
    let digits = maker.builder.lexeme(digits);
    maker.values.push(digits);
    let [number, string, letters] = ["-?[0-9](\\.[0-9]{1,2})?(e[0-9])?", r#""(a|\\u0061|b|\\n|é){0,2}""#, "\"[ab]*\""]
        .map(|pattern| maker.pattern(pattern));
    maker.values.extend([number, string, letters]);
    // Without arrays, whose elements may have to differ, more is known about an object before it is read.
    let objects_only = choices.chance(4);
    for _ in 0..1 + choices.below(3) {
        let is_object = objects_only || choices.chance(2);
        let node = if is_object { maker.object(choices, 0) } else { maker.array(choices, 0) };
        maker.values.push(node);
    }
    let root = *maker.values.last()?;
    maker.builder.define_rule(rule, root);
    maker.builder.finish(root, Report::default()).ok()
}

struct Maker {
    builder: GrammarBuilder,
    rules: Vec<RuleId>,
    /// Earlier nodes, to be used again.
    pool: Vec<NodeId>,
    /// JSON values, for objects and arrays that may hold nothing else.
    values: Vec<NodeId>,
}

impl Maker {
    fn node(&mut self, choices: &mut Choices<'_>, depth: usize) -> NodeId {
        if !self.pool.is_empty() && choices.chance(4) {
            return self.recent(choices);
        }
        let node = if depth == 0 || choices.chance(6) { self.leaf(choices) } else { self.inner(choices, depth) };
        self.pool.push(node);
        node
    }

    /// The content of an object or an array.
    fn value(&mut self, choices: &mut Choices<'_>, depth: usize) -> NodeId {
        match &*self.values {
            [] => self.node(choices, depth.saturating_sub(1)),
            values => *choices.pick(values),
        }
    }

    fn pattern(&mut self, pattern: &str) -> NodeId {
        let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
        let expr = parse_pattern(&mut self.builder.exprs, pattern, &options, &mut Utf8).expect("it is well formed");
        self.builder.lexeme(expr)
    }

    /// A node made of a few leaves by joining existing nodes, mostly the latest.
    fn woven(&mut self, choices: &mut Choices<'_>) -> NodeId {
        for _ in 0..2 + choices.below(5) {
            let leaf = if choices.chance(3) {
                self.leaf(choices)
            } else {
                self.literal(choices.pick(&["a", "b", "c", "ab", "bc", "q", "1", "2"]).as_bytes())
            };
            self.pool.push(leaf);
        }
        for _ in 0..2 + choices.below(14) {
            let parts: Vec<NodeId> = (0..2 + choices.below(2)).map(|_| self.recent(choices)).collect();
            let node = match choices.below(16) {
                0..=6 => self.builder.sequence(&parts),
                7..=11 => self.builder.choice(&parts),
                12 => self.builder.repeat(parts[0], 0, Some(1)),
                13 => self.repeat(choices, 0),
                14 => self.call(choices, 0),
                _ if choices.chance(3) => self.array(choices, 0),
                _ => self.object(choices, 0),
            };
            self.pool.push(node);
        }
        *self.pool.last().expect("leaves were made")
    }

    /// A node of the pool, more likely a late one than an early one.
    fn recent(&mut self, choices: &mut Choices<'_>) -> NodeId {
        let len = self.pool.len();
        let back = choices.below(len).min(choices.below(len));
        self.pool[len - 1 - back]
    }

    fn leaf(&mut self, choices: &mut Choices<'_>) -> NodeId {
        if choices.chance(6) {
            return match choices.below(3) {
                0 => self.builder.special_token(*choices.pick(&SPECIAL_TOKENS)),
                negated => {
                    let first = choices.below(6) as u32;
                    self.builder.token_ids(&[(first, first + choices.below(3) as u32)], negated == 2)
                }
            };
        }
        let depth = choices.below(4);
        let expr = random_expr(choices, &mut self.builder.exprs, depth);
        self.builder.lexeme(expr)
    }

    fn inner(&mut self, choices: &mut Choices<'_>, depth: usize) -> NodeId {
        match choices.below(9) {
            0 | 1 => {
                let parts = self.nodes(choices, depth, 0);
                self.builder.sequence(&parts)
            }
            2 | 3 => {
                let parts = self.nodes(choices, depth, 1);
                self.builder.choice(&parts)
            }
            4 => self.repeat(choices, depth),
            5 if choices.chance(3) => self.array(choices, depth),
            5 => self.object(choices, depth),
            6 => {
                let body = self.node(choices, depth.saturating_sub(1));
                let name = *choices.pick(&["first", "second"]);
                self.builder.capture(name, body)
            }
            _ => self.call(choices, depth),
        }
    }

    /// Large counts only around leaves: a rule that repeats itself so often in so many ways is inherently exponential.
    fn repeat(&mut self, choices: &mut Choices<'_>, depth: usize) -> NodeId {
        if choices.chance(2) {
            let body = self.leaf(choices);
            let (min, max) = random_counts(choices);
            return self.builder.repeat(body, min, max);
        }
        let body = self.node(choices, depth.saturating_sub(1));
        let min = choices.below(3) as u32;
        let max = if choices.chance(2) { Some((min + choices.below(3) as u32).max(1)) } else { None };
        self.builder.repeat(body, min, max)
    }

    fn nodes(&mut self, choices: &mut Choices<'_>, depth: usize, at_least: usize) -> Vec<NodeId> {
        (0..at_least + choices.below(4)).map(|_| self.node(choices, depth.saturating_sub(1))).collect()
    }

    /// A rule after at least one byte, so that nothing is left-recursive; or directly, if that is allowed.
    fn call(&mut self, choices: &mut Choices<'_>, depth: usize) -> NodeId {
        let rule = *choices.pick(&self.rules);
        let call = self.builder.node(Node::Rule(rule));
        let call = if choices.chance(2) { self.builder.repeat(call, 0, Some(1)) } else { call };
        if choices.chance(2) {
            let rest = self.node(choices, depth.saturating_sub(1));
            return self.builder.sequence(&[call, rest]);
        }
        let open = self.literal(choices.pick(&["(", "(", "a", "ab", "[é"]).as_bytes());
        match choices.below(4) {
            0 => self.builder.sequence(&[open, call]),
            1 => {
                let rest = self.node(choices, depth.saturating_sub(1));
                self.builder.sequence(&[open, call, rest])
            }
            _ => {
                let close = self.literal(b")");
                self.builder.sequence(&[open, call, close])
            }
        }
    }

    fn literal(&mut self, text: &[u8]) -> NodeId {
        let text = self.builder.exprs.literal(text);
        self.builder.lexeme(text)
    }

    fn object(&mut self, choices: &mut Choices<'_>, depth: usize) -> NodeId {
        let surface = self.surface(choices);
        let mut known: Vec<DeclaredMember> = Vec::new();
        for name in ["a", "ab", "b", "c", "é"] {
            if choices.chance(2) {
                let escaped = choices.chance(3);
                // A key with a single spelling needs no expression.
                let is_plain = !escaped && DeclaredMember::is_plain(name) && choices.chance(2);
                let key = (!is_plain).then(|| self.key(name, escaped));
                let value = self.value(choices, depth);
                known.push(DeclaredMember { name: name.into(), key, value, required: choices.chance(2) });
            }
        }
        let mut additional = Vec::new();
        for class in 0..choices.below(3) {
            additional.push(self.additional(choices, depth, &known, class));
        }
        let ordered = match choices.below(3) {
            0 => 0,
            1 => known.len(),
            _ => choices.below(known.len() + 1),
        };
        let min = if choices.chance(4) { choices.below(4) as u32 } else { 0 };
        let max = choices.chance(4).then(|| min + choices.below(4) as u32);
        self.builder.object(Members { declared: known, ordered, additional, min, max, surface })
    }

    /// An array with counters. Its elements are never empty, and are JSON values if they are compared.
    fn array(&mut self, choices: &mut Choices<'_>, depth: usize) -> NodeId {
        let Surface { open, item, close, .. } = self.surface(choices);
        let counters = choices.below(3);
        let mut contains: Vec<(u32, Option<u32>)> = (0..counters)
            .map(|_| {
                let min = choices.below(3) as u32;
                (min, choices.chance(2).then(|| min + choices.below(3) as u32))
            })
            .collect();
        let repeats = match choices.below(4) {
            _ if self.values.is_empty() => Repeats::Any,
            0 | 1 => Repeats::Never { counted: false },
            2 => Repeats::Required,
            _ => Repeats::Any,
        };
        let mut place = |choices: &mut Choices<'_>| -> Box<[Element]> {
            let alternatives = 1 + choices.below(3);
            let mut element = || {
                let value = self.value(choices, depth);
                // After a letter, nothing is empty.
                let value = if self.values.is_empty() && choices.chance(3) {
                    let letter = self.literal(choices.pick(&["x", "1", "\"a\""]).as_bytes());
                    self.builder.sequence(&[letter, value])
                } else {
                    value
                };
                Element { value, counts: choices.below(1 << counters) as u32 }
            };
            (0..alternatives).map(|_| element()).collect()
        };
        let prefix = (0..choices.below(3)).map(|_| place(choices)).collect();
        let mut rest = if choices.chance(4) { Box::default() } else { place(choices) };
        let min = choices.below(3) as u32;
        let mut max = choices.chance(2).then(|| min + choices.below(4) as u32);
        if repeats == Repeats::Required {
            // With a greatest number of elements, or of elements of a kind, it is refused.
            max = None;
            if rest.is_empty() {
                rest = place(choices);
            }
            if choices.chance(2) {
                contains.iter_mut().for_each(|(_, max)| *max = None);
            }
        }
        let empty = self.builder.exprs.literal(b"{}");
        let surface = ArraySurface { empty, open, item, close };
        self.builder.array(Items { prefix, rest, min, max, contains, repeats, surface })
    }

    fn additional(
        &mut self,
        choices: &mut Choices<'_>,
        depth: usize,
        known: &[DeclaredMember],
        class: usize,
    ) -> AdditionalMembers {
        let exprs = &mut self.builder.exprs;
        let plain = ByteSet::of(b'"').union(&ByteSet::of(b'\\')).complement();
        let mut character = exprs.bytes(plain);
        if choices.chance(2) {
            let escape = exprs.literal(b"\\u00");
            let digit = exprs.bytes(b"0123456789abcdef".iter().copied().collect());
            let mut escaped = vec![character, exprs.concat_all(&[escape, digit, digit])];
            // Halves of a surrogate pair, and what is cut short.
            for escape in [&br"\ud83d"[..], br"\ude00", br"\uD83D", br"\ude0"] {
                if choices.chance(4) {
                    escaped.push(exprs.literal(escape));
                }
            }
            character = exprs.or(&escaped);
        }
        // Sometimes the keys run out: all of them, or those with some prefixes.
        let few = choices.chance(3);
        if few {
            let letters: &[u8] = if class == 0 { b"ac" } else { b"bac" };
            let letters = exprs.bytes(letters[..1 + choices.below(letters.len())].iter().copied().collect());
            // Text with an escaped spelling also has the plain one.
            let both = exprs.literal(b"\\u0061");
            let a = exprs.literal(b"a");
            let both = exprs.or(&[both, a]);
            character = if choices.chance(3) { exprs.or(&[letters, both]) } else { letters };
        }
        let most = few.then(|| 1 + choices.below(2) as u32);
        let least = most.map_or(0, |most| choices.below(most as usize + 1) as u32);
        let mut body = exprs.repeat(character, least, most);
        if few && choices.chance(3) {
            let head = exprs.bytes(ByteSet::of(b'a'));
            let head = exprs.repeat(head, 0, None);
            body = exprs.concat(head, body);
        }
        let quote = exprs.literal(b"\"");
        // Keys of the second class begin with a letter of their own; those of the first class may, too.
        let first = exprs.literal([&b""[..], b"b"][class.min(1)]);
        let mut key = exprs.concat_all(&[quote, first, body, quote]);
        let infinite = exprs.bytes(plain);
        let infinite = exprs.repeat(infinite, 0, None);
        let infinite = exprs.concat_all(&[quote, first, infinite, quote]);
        let mut reserved: Vec<Arc<str>> = known.iter().map(|member| member.name.clone()).collect();
        if choices.chance(3) {
            reserved.push("bc".into());
        }
        reserved.sort_unstable();
        let value = self.value(choices, depth);
        let some = choices.chance(4).then(|| self.value(choices, depth));
        let names: Vec<&str> = reserved.iter().map(|name| &**name).collect();
        let space = self.builder.key_space(key, &names).unwrap_or_else(|_| {
            // All of these are reserved.
            key = infinite;
            KeySpace::Infinite
        });
        let some = some.filter(|_| !matches!(space, KeySpace::Finite(_)));
        AdditionalMembers { key, space, reserved: reserved.into(), value, some, last: None }
    }

    /// A key in its plainest spelling, or also with its first letter escaped.
    fn key(&mut self, name: &str, escaped: bool) -> ExprId {
        let exprs = &mut self.builder.exprs;
        let plain = exprs.literal(format!("\"{name}\"").as_bytes());
        let mut letters = name.chars();
        match letters.next() {
            Some(letter) if escaped => {
                let escaped = format!("\"\\u{:04x}{}\"", u32::from(letter), letters.as_str());
                let escaped = exprs.literal(escaped.as_bytes());
                exprs.or(&[plain, escaped])
            }
            _ => plain,
        }
    }

    fn surface(&mut self, choices: &mut Choices<'_>) -> Surface {
        let exprs = &mut self.builder.exprs;
        let space = exprs.literal(b" ");
        let spaces = match choices.below(3) {
            0 => ExprId::EMPTY,
            1 => exprs.repeat(space, 0, Some(2)),
            _ => exprs.repeat(space, 0, None),
        };
        let mut framed = |left: &[u8], right: &[u8]| {
            let (left, right) = (exprs.literal(left), exprs.literal(right));
            exprs.concat_all(&[left, spaces, right])
        };
        Surface {
            empty: framed(b"{", b"}"),
            open: framed(b"{", b""),
            colon: framed(b":", b""),
            item: framed(b",", b""),
            close: framed(b"", b"}"),
        }
    }
}
