//! A recogniser that shares nothing with the machine: which texts a grammar matches, by sets of ends and a fixed point.
//!
//! For a node and a position in the text it finds all positions where the node may end. Left recursion and ambiguity
//! need no special treatment: passes over all pairs are repeated until no pass finds a new end. It is slow, and only
//! for short texts.

use std::collections::{BTreeSet, HashMap, HashSet};

use stencilm_engine::Tokens;
use stencilm_grammar::{Grammar, Items, Mark, Members, MembersId, Node, NodeId, TokenPattern};
use stencilm_regex::{Deriver, ExprId, Limits};
use stencilm_support::LimitExceeded;

/// A text as it was accepted: bytes, and where tokens began and ended.
#[derive(Clone, Default, Debug)]
pub struct Text {
    /// The bytes; a token that spells none is `None`.
    pub symbols: Vec<Option<u8>>,
    /// Start and end of every step that was a token, with its id.
    pub tokens: Vec<(usize, usize, u32)>,
}

impl Text {
    /// A text of bytes.
    pub fn of(bytes: &[u8]) -> Text {
        Text { symbols: bytes.iter().copied().map(Some).collect(), tokens: Vec::new() }
    }
}

/// Positions in a text, one bit each.
type Ends = u128;

/// The longest text that can be decided.
pub const MAX_LEN: usize = 100;

/// Recognises texts of one grammar.
pub struct Oracle<'a> {
    grammar: &'a Grammar,
    tokens: &'a Tokens,
    deriver: Deriver,
    text: Text,
    /// The results of the passes so far.
    known: HashMap<(NodeId, usize), Ends>,
    lexemes: HashMap<(ExprId, usize), Ends>,
    visited: HashSet<(NodeId, usize)>,
    changed: bool,
}

impl<'a> Oracle<'a> {
    /// The recogniser of a grammar.
    pub fn new(grammar: &'a Grammar, tokens: &'a Tokens) -> Oracle<'a> {
        let mut deriver = Deriver::new(Limits { max_exprs: 50_000, ..Limits::default() });
        deriver.exprs = grammar.exprs().clone();
        deriver.begin();
        Oracle {
            grammar,
            tokens,
            deriver,
            text: Text::default(),
            known: HashMap::new(),
            lexemes: HashMap::new(),
            visited: HashSet::new(),
            changed: false,
        }
    }

    /// Whether the whole text belongs to the grammar. `None` if it is too long or too hard to decide, or if it was
    /// split into tokens and has parts with token budgets: the recogniser does not decide where these end.
    pub fn matches(&mut self, text: &Text) -> Option<bool> {
        let has_budgets = || {
            let is_budget = |node: &Node| matches!(node, Node::Marked { mark: Mark::MaxTokens(_), .. });
            self.grammar.nodes().iter().any(is_budget)
        };
        if text.symbols.len() > MAX_LEN || (!text.tokens.is_empty() && has_budgets()) {
            return None;
        }
        self.text = text.clone();
        self.known.clear();
        self.lexemes.clear();
        loop {
            self.visited.clear();
            self.changed = false;
            let ends = self.ends(self.grammar.root(), 0).ok()?;
            if !self.changed {
                return Some(ends & bit(text.symbols.len()) != 0);
            }
        }
    }

    fn ends(&mut self, node: NodeId, at: usize) -> Result<Ends, LimitExceeded> {
        if !self.visited.insert((node, at)) {
            return Ok(self.known.get(&(node, at)).copied().unwrap_or(0));
        }
        let grammar = self.grammar;
        let ends = match grammar.node(node) {
            Node::Lexeme(expr) => self.lexeme(*expr, at)?,
            Node::Sequence(parts) => {
                let mut ends = bit(at);
                for &part in parts {
                    ends = self.after_all(ends, part)?;
                }
                ends
            }
            Node::Choice(parts) => {
                let mut ends = 0;
                for &part in parts {
                    ends |= self.ends(part, at)?;
                }
                ends
            }
            Node::Repeat { body, min, max } => self.repeat(*body, *min, *max, at)?,
            Node::Rule(rule) => self.ends(grammar.rule(*rule).body, at)?,
            Node::Marked { body, .. } => self.ends(*body, at)?,
            Node::Members(members) => self.members(*members, at)?,
            Node::Items(items) => self.items(grammar.items(*items), at)?,
            Node::Token(pattern) => {
                let here = self.text.tokens.iter().find(|(start, _, _)| *start == at);
                here.filter(|(_, _, id)| means(pattern, *id, self.tokens)).map_or(0, |(_, end, _)| bit(*end))
            }
        };
        let known = self.known.entry((node, at)).or_default();
        self.changed |= *known | ends != *known;
        *known |= ends;
        Ok(*known)
    }

    /// The ends of a node that starts at any of these positions.
    fn after_all(&mut self, starts: Ends, node: NodeId) -> Result<Ends, LimitExceeded> {
        let mut ends = 0;
        for start in places(starts) {
            ends |= self.ends(node, start)?;
        }
        Ok(ends)
    }

    fn lexeme(&mut self, expr: ExprId, at: usize) -> Result<Ends, LimitExceeded> {
        if let Some(&ends) = self.lexemes.get(&(expr, at)) {
            return Ok(ends);
        }
        let (mut ends, mut rest) = (0, expr);
        for place in at.. {
            if self.deriver.exprs.is_nullable(rest) {
                ends |= bit(place);
            }
            let Some(&Some(byte)) = self.text.symbols.get(place) else { break };
            rest = self.deriver.after(rest, byte)?;
            if rest == ExprId::NOTHING {
                break;
            }
        }
        self.lexemes.insert((expr, at), ends);
        Ok(ends)
    }

    fn lexeme_after_all(&mut self, starts: Ends, expr: ExprId) -> Result<Ends, LimitExceeded> {
        let mut ends = 0;
        for start in places(starts) {
            ends |= self.lexeme(expr, start)?;
        }
        Ok(ends)
    }

    fn repeat(&mut self, body: NodeId, min: u32, max: Option<u32>, at: usize) -> Result<Ends, LimitExceeded> {
        // One count after the other, with all positions where that many bodies may end.
        let (mut ends, mut here) = (0, bit(at));
        for count in 0..max.unwrap_or(min) {
            ends |= if count >= min { here } else { 0 };
            let next = self.after_all(here, body)?;
            // All greater counts will end at the same positions.
            if next == here {
                break;
            }
            here = next;
        }
        ends |= here;
        // Without an upper bound, any number may follow.
        while max.is_none() {
            let more = ends | self.after_all(here, body)?;
            if more == ends {
                break;
            }
            (here, ends) = (more & !ends, more);
        }
        Ok(ends)
    }

    fn members(&mut self, id: MembersId, at: usize) -> Result<Ends, LimitExceeded> {
        let grammar = self.grammar;
        let members = grammar.members(id);
        let mut ends = 0;
        if Seen::default().completes(members) && !members.is_cut() {
            ends |= self.lexeme(members.surface.empty, at)?;
        }
        // Positions before a key, each with the declared members and the values of additional keys that were seen.
        let start = Seen::default();
        let mut work: Vec<(usize, Seen)> =
            places(self.lexeme(members.surface.open, at)?).map(|place| (place, start.clone())).collect();
        let mut done: HashSet<(usize, Seen)> = work.iter().cloned().collect();
        while let Some((place, seen)) = work.pop() {
            for (key_end, value, seen) in self.keys(members, place, &seen)? {
                if let Some(last) = seen.last {
                    ends |= if last { self.ends(value, key_end)? } else { 0 };
                    continue;
                }
                let colon = self.lexeme(members.surface.colon, key_end)?;
                let value_ends = self.after_all(colon, value)?;
                if seen.completes(members) && !members.is_cut() {
                    ends |= self.lexeme_after_all(value_ends, members.surface.close)?;
                }
                for place in places(self.lexeme_after_all(value_ends, members.surface.item)?) {
                    if done.insert((place, seen.clone())) {
                        work.push((place, seen.clone()));
                    }
                }
            }
        }
        Ok(ends)
    }

    /// Every way to read a key: where it ends, its value, and what has been seen after it.
    fn keys(&mut self, members: &Members, at: usize, seen: &Seen) -> Result<Vec<(usize, NodeId, Seen)>, LimitExceeded> {
        let mut readings = Vec::new();
        for (index, member) in members.declared.iter().enumerate() {
            let in_order = index >= members.ordered || (seen.known >> index == 0 && seen.additional.is_empty());
            if in_order && !seen.has(index) {
                let plain = format!("\"{}\"", member.name);
                let key = member.key.unwrap_or_else(|| self.deriver.exprs.literal(plain.as_bytes()));
                for end in places(self.lexeme(key, at)?) {
                    readings.push((end, member.value, Seen { known: seen.known | 1 << index, ..seen.clone() }));
                }
            }
        }
        for (class, additional) in members.additional.iter().enumerate() {
            for end in places(self.lexeme(additional.key, at)?) {
                let written: Vec<u8> = self.text.symbols[at..end].iter().flatten().copied().collect();
                let written = [&written[..], additional.last.as_deref().unwrap_or_default().as_bytes()].concat();
                let value = value_of(&written);
                let reserved = additional.reserved.iter().any(|name| name.as_bytes() == value);
                let mut seen = seen.clone();
                let completes = seen.completes(members);
                if !reserved && seen.additional.insert(value) {
                    if additional.last.is_some() {
                        readings.push((end, additional.value, Seen { last: Some(completes), ..seen }));
                        continue;
                    }
                    readings.push((end, additional.value, seen.clone()));
                    let required = additional.some.filter(|_| seen.met & 1 << class == 0);
                    readings.extend(required.map(|some| (end, some, Seen { met: seen.met | 1 << class, ..seen })));
                }
            }
        }
        readings.retain(|(.., seen)| seen.last.is_some() || members.max.is_none_or(|max| seen.count() <= max));
        Ok(readings)
    }

    fn items(&mut self, items: &Items, at: usize) -> Result<Ends, LimitExceeded> {
        let start = Had { counts: vec![0; items.contains.len()], ..Had::default() };
        let mut ends = 0;
        if start.completes(items) {
            ends |= self.lexeme(items.surface.empty, at)?;
        }
        // Positions before an element, each with the elements before it.
        let mut work: Vec<(usize, Had)> =
            places(self.lexeme(items.surface.open, at)?).map(|place| (place, start.clone())).collect();
        let mut done: HashSet<(usize, Had)> = work.iter().cloned().collect();
        while let Some((place, had)) = work.pop() {
            if items.max.is_some_and(|max| had.count >= max) {
                continue;
            }
            for element in items.at(had.count as usize) {
                for end in places(self.ends(element.value, place)?) {
                    let mut had = had.clone();
                    had.count += 1;
                    for (index, count) in had.counts.iter_mut().enumerate() {
                        *count += element.counts >> index & 1;
                    }
                    let written: Vec<u8> = self.text.symbols[place..end].iter().flatten().copied().collect();
                    if items.compares() && !had.values.insert(json_value(&written)) {
                        if items.is_unique() {
                            continue;
                        }
                        had.has_repeat = true;
                    }
                    if had.completes(items) {
                        ends |= self.lexeme(items.surface.close, end)?;
                    }
                    for place in places(self.lexeme(items.surface.item, end)?) {
                        if done.insert((place, had.clone())) {
                            work.push((place, had.clone()));
                        }
                    }
                }
            }
        }
        Ok(ends)
    }
}

/// The elements of an array that have been read.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Had {
    count: u32,
    counts: Vec<u32>,
    values: BTreeSet<String>,
    has_repeat: bool,
}

impl Had {
    fn completes(&self, items: &Items) -> bool {
        let within = |count: u32, min: u32, max: Option<u32>| count >= min && max.is_none_or(|max| count <= max);
        let mut counters = self.counts.iter().zip(&items.contains);
        (self.has_repeat || !items.must_repeat())
            && within(self.count, items.min, items.max)
            && counters.all(|(&count, &(min, max))| within(count, min, max))
    }
}

/// A canonical form of a JSON text, by which equal values are found, for small numbers. Other texts stay as they are,
/// without whitespace around them.
fn json_value(written: &[u8]) -> String {
    let text = String::from_utf8_lossy(written).trim().to_string();
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(value) => sorted(&value),
        Err(_) => text,
    }
}

fn sorted(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Number(number) => format!("{:?}", number.as_f64().map(|number| number + 0.0)),
        Value::Array(items) => format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let mut members: Vec<String> =
                members.iter().map(|(key, value)| format!("{key:?}:{}", sorted(value))).collect();
            members.sort_unstable();
            format!("{{{}}}", members.join(","))
        }
        other => other.to_string(),
    }
}

/// The members of an object that have been read.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Seen {
    known: u64,
    additional: BTreeSet<Vec<u8>>,
    /// The classes that require a member with a certain value, and of which such a member was seen.
    met: u64,
    /// For the last member of a truncated object, whether it may follow those before it.
    last: Option<bool>,
}

impl Seen {
    fn has(&self, known: usize) -> bool {
        self.known & 1 << known != 0
    }

    fn count(&self) -> u32 {
        self.known.count_ones() + self.additional.len() as u32
    }

    fn completes(&self, members: &Members) -> bool {
        let count = self.count();
        let lacks = |class: usize| members.additional[class].some.is_some() && self.met & 1 << class == 0;
        members.declared.iter().enumerate().all(|(index, known)| !known.required || self.has(index))
            && !(0..members.additional.len()).any(lacks)
            && count >= members.min
            && members.max.is_none_or(|max| count <= max)
    }
}

/// Whether a name means a token: a special one, or, if there is none of that name, one that spells it.
fn is_named(name: &str, id: u32, tokens: &Tokens) -> bool {
    let mut special = tokens.special_tokens().iter().filter(|(_, special)| **special == *name).peekable();
    match special.peek() {
        Some(_) => special.any(|(special, _)| *special == id),
        None => tokens.token_bytes(id) == Some(name.as_bytes()),
    }
}

/// Whether a pattern means a token.
fn means(pattern: &TokenPattern, id: u32, tokens: &Tokens) -> bool {
    match pattern {
        TokenPattern::Special(name) => is_named(name, id, tokens),
        TokenPattern::IfSpecial(name) => {
            tokens.special_tokens().iter().any(|(special, n)| *special == id && **n == **name)
        }
        TokenPattern::Others { ids, names } => {
            let is_special = tokens.special_tokens().iter().any(|(special, _)| *special == id);
            let is_token = tokens.token_bytes(id).is_some() || is_special;
            let is_left_out = ids.contains(&id) || names.iter().any(|name| is_named(name, id, tokens));
            is_token && !is_left_out && !tokens.stop_token_ids().contains(&id)
        }
        TokenPattern::Ids { ranges, negated: false } => {
            ranges.iter().any(|(first, last)| (*first..=*last).contains(&id))
        }
        TokenPattern::Ids { ranges, negated: true } => {
            let is_special = tokens.special_tokens().iter().any(|(special, _)| *special == id);
            let is_token = tokens.token_bytes(id).is_some() || is_special;
            let is_named = ranges.iter().any(|(first, last)| (*first..=*last).contains(&id));
            is_token && !is_named && !tokens.stop_token_ids().contains(&id)
        }
    }
}

/// The string value of a quoted key: by serde if it is JSON, else each escape that JSON has as the UTF-16 unit or the
/// byte that it spells, and everything else as written.
pub fn value_of(written: &[u8]) -> Vec<u8> {
    if let Ok(value) = serde_json::from_slice::<String>(written) {
        return value.into_bytes();
    }
    let mut rest = written.strip_prefix(b"\"").and_then(|body| body.strip_suffix(b"\"")).unwrap_or(written);
    let mut value = Vec::new();
    let mut units: Vec<u16> = Vec::new();
    while let Some(&byte) = rest.first() {
        if let Some(unit) = unit_at(rest) {
            units.push(unit);
            rest = &rest[6..];
            continue;
        }
        write_units(&mut value, &mut units);
        let pair: String = rest.iter().take(2).map(|&byte| char::from(byte)).collect();
        match serde_json::from_str::<String>(&format!("\"{pair}\"")) {
            Ok(escaped) if byte == b'\\' => {
                value.extend(escaped.bytes());
                rest = &rest[2..];
            }
            _ => {
                value.push(byte);
                rest = &rest[1..];
            }
        }
    }
    write_units(&mut value, &mut units);
    value
}

fn unit_at(text: &[u8]) -> Option<u16> {
    let digits = std::str::from_utf8(text.strip_prefix(b"\\u")?.get(..4)?).ok()?;
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| all_digits)
}

/// Surrogates without their other half are written as UTF-8 would if they were characters.
fn write_units(value: &mut Vec<u8>, units: &mut Vec<u16>) {
    for unit in char::decode_utf16(units.drain(..)) {
        match unit {
            Ok(character) => value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let code = lone.unpaired_surrogate();
                value.extend([0xED, 0x80 | (code >> 6 & 0x3F) as u8, 0x80 | (code & 0x3F) as u8]);
            }
        }
    }
}

fn bit(place: usize) -> Ends {
    1 << place
}

fn places(ends: Ends) -> impl Iterator<Item = usize> {
    (0..=MAX_LEN).filter(move |&place| ends & bit(place) != 0)
}
