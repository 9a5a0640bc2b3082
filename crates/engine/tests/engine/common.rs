//! Random grammars, vocabularies and walks, all from one seed.

use std::sync::Arc;

use stencilm_engine::{CompiledGrammar, GrammarMatcher, MatcherOptions, Vocabulary};
use stencilm_grammar::{
    FreeMembers, Grammar, GrammarBuilder, KnownMember, Members, Node, NodeId, Report, RuleId, Surface,
};
use stencilm_regex::{ByteSet, ExprId, ExprSet};

/// A small generator of random numbers (xorshift64*), so that a failing case is one number.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize) % bound
    }

    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// A random regular expression over `a`, `b`, `c` and, now and then, nearly all bytes.
pub fn random_expr(random: &mut Random, exprs: &mut ExprSet, depth: usize) -> ExprId {
    if depth == 0 {
        return match random.below(8) {
            0 => exprs.literal(b"ab"),
            1 => exprs.literal(b"c"),
            2 => exprs.bytes(ByteSet::range(b'a', b'c')),
            3 => exprs.bytes(ByteSet::of(b'"').complement()),
            4 => ExprId::EMPTY,
            _ => {
                let byte = *random.pick(b"abc");
                exprs.bytes(ByteSet::of(byte))
            }
        };
    }
    let first = random_expr(random, exprs, depth - 1);
    match random.below(8) {
        0 | 1 => {
            let second = random_expr(random, exprs, depth - 1);
            exprs.or(&[first, second])
        }
        2..=4 => {
            let second = random_expr(random, exprs, depth - 1);
            exprs.concat(first, second)
        }
        5 => {
            let min = *random.pick(&[0, 0, 1, 1, 2, 2, 20]);
            let max = if random.chance(2) { None } else { Some(min + random.pick(&[0, 1, 2, 3, 25, 60])) };
            exprs.repeat(first, min, max)
        }
        6 => {
            let second = random_expr(random, exprs, depth - 1);
            exprs.and(&[first, second])
        }
        _ => {
            let inner = exprs.not(first);
            let letters = exprs.bytes(ByteSet::range(b'a', b'c'));
            let words = exprs.repeat(letters, 0, Some(4));
            exprs.and(&[inner, words])
        }
    }
}

/// A random grammar with recursion, counted repetition and objects, or `None` when it matches nothing. Rules are
/// called only behind a byte, so it is never left-recursive.
pub fn random_grammar(random: &mut Random) -> Option<Grammar> {
    let mut builder = GrammarBuilder::default();
    let rules: Vec<RuleId> =
        (0..1 + random.below(3)).map(|index| builder.declare_rule(format!("rule{index}"))).collect();
    for &rule in &rules {
        let body = random_node(random, &mut builder, &rules, 3);
        builder.define_rule(rule, body);
    }
    let root = builder.node(Node::Rule(rules[0]));
    builder.finish(root, Report::default()).ok()
}

fn random_node(random: &mut Random, builder: &mut GrammarBuilder, rules: &[RuleId], depth: usize) -> NodeId {
    if depth == 0 || random.chance(5) {
        let expr = random_expr(random, &mut builder.exprs, 2);
        return builder.lexeme(expr);
    }
    match random.below(7) {
        0 | 1 => {
            let parts: Vec<NodeId> =
                (0..random.below(4)).map(|_| random_node(random, builder, rules, depth - 1)).collect();
            builder.sequence(&parts)
        }
        2 => {
            let parts: Vec<NodeId> =
                (0..1 + random.below(3)).map(|_| random_node(random, builder, rules, depth - 1)).collect();
            builder.choice(&parts)
        }
        3 => {
            let body = random_node(random, builder, rules, depth - 1);
            let min = *random.pick(&[0, 0, 1, 1, 2, 2, 20]);
            let max = if random.chance(2) { None } else { Some(min + random.pick(&[0, 1, 2, 3, 25, 60])) };
            builder.repeat(body, min, max)
        }
        4 => random_object(random, builder, rules, depth),
        _ => {
            let open = builder.exprs.literal(b"(");
            let open = builder.lexeme(open);
            let rule = *random.pick(rules);
            let call = builder.node(Node::Rule(rule));
            let call = if random.chance(2) { builder.repeat(call, 0, Some(1)) } else { call };
            let close = builder.exprs.literal(b")");
            let close = builder.lexeme(close);
            if random.chance(3) { builder.sequence(&[open, call]) } else { builder.sequence(&[open, call, close]) }
        }
    }
}

fn random_object(random: &mut Random, builder: &mut GrammarBuilder, rules: &[RuleId], depth: usize) -> NodeId {
    let exprs = &mut builder.exprs;
    let blank = exprs.literal(b" ");
    let blanks = exprs.repeat(blank, 0, Some(2));
    let mut framed = |left: &[u8], right: &[u8]| {
        let (left, right) = (exprs.literal(left), exprs.literal(right));
        exprs.concat_all(&[left, blanks, right])
    };
    let surface = Surface {
        empty: framed(b"{", b"}"),
        open: framed(b"{", b""),
        colon: framed(b":", b""),
        item: framed(b",", b""),
        close: framed(b"", b"}"),
    };
    let names = ["a", "ab", "b", "c"];
    let mut known: Vec<KnownMember> = Vec::new();
    for name in names {
        if random.chance(2) {
            let key = builder.exprs.literal(format!("\"{name}\"").as_bytes());
            let value = random_node(random, builder, rules, depth - 1);
            known.push(KnownMember { name: name.into(), key, value, required: random.chance(2) });
        }
    }
    let free = random.chance(2).then(|| {
        let exprs = &mut builder.exprs;
        let character = exprs.bytes(ByteSet::of(b'"').union(&ByteSet::of(b'\\')).complement());
        let body = exprs.repeat(character, 0, None);
        let quote = exprs.literal(b"\"");
        let key = exprs.concat_all(&[quote, body, quote]);
        let taken: Box<[Box<str>]> = known.iter().map(|member| member.name.as_str().into()).collect();
        let taken_keys: Vec<ExprId> = known.iter().map(|member| member.key).collect();
        let taken_keys = exprs.or(&taken_keys);
        let value = random_node(random, builder, rules, depth - 1);
        FreeMembers { key, taken, taken_keys, value }
    });
    builder.object(Members { known, free, any_order: random.chance(2), surface })
}

/// A vocabulary of all single bytes that matter and random longer pieces, some of them twice.
pub fn random_vocabulary(random: &mut Random) -> Arc<Vocabulary> {
    let pieces = [
        "a",
        "b",
        "c",
        "ab",
        "bc",
        "(",
        ")",
        "((",
        "))",
        "{",
        "}",
        "{}",
        "\"",
        "\":",
        ":",
        ",",
        ",\"",
        "a\"",
        "b\":",
        "\"a\"",
        "\"a\":",
        " ",
        "  ",
        "x",
        "é",
        "\u{1F600}",
        "{\"",
        "\"}",
        "a)",
        "\",\"",
    ];
    let mut tokens: Vec<Option<Vec<u8>>> = vec![None, Some(Vec::new())];
    for byte in b"abc(){}\":, x".iter().chain(&[0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80, 0xFF, 0x00]) {
        tokens.push(Some(vec![*byte]));
    }
    for _ in 0..30 + random.below(60) {
        let mut token = Vec::new();
        for _ in 0..1 + random.below(4) {
            token.extend_from_slice(random.pick(&pieces).as_bytes());
        }
        tokens.push(Some(token));
    }
    let stop = tokens.len() as u32;
    tokens.push(Some(b"</s>".to_vec()));
    Arc::new(Vocabulary::new(&tokens, tokens.len() + random.below(40), &[stop], &[(0, "<pad>".into())]).unwrap())
}

pub fn matcher(grammar: Grammar, vocabulary: Arc<Vocabulary>) -> GrammarMatcher {
    let compiled = Arc::new(CompiledGrammar::new(Arc::new(grammar), vocabulary));
    GrammarMatcher::new(compiled, &MatcherOptions::default()).unwrap()
}
