//! The cost of the rest of an array of different numbers, found by counting instead of reading paths.
//!
//! It is known which numbers such an array does not have yet, and the cost of each. So the rest costs the cheapest of
//! them and the separators between: this shows that enough is left after a token without reading a path to the end,
//! which has as many parts as there are missing elements. If no token contains both a part of a number and a separator
//! of the array, no path costs less, so a token that does not leave enough is refused without a search.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_grammar::{Items, ItemsId, Node, canonical_json};
use stencilm_regex::{Deriver, ExprId};
use stencilm_support::{LOOKED_AT, check_time};

use crate::completion::costs::{Costs, sum};
use crate::completion::search::{Piece, Texts, tokens_of};
use crate::completion::token_counts::{NEVER, TokenCounts, count_of, shortest_text};
use crate::distinct::number_counts::{NumberSteps, Part};
use crate::error::EngineError;
use crate::machine::expansion::IN_WHITESPACE;
use crate::machine::layout::{ExpansionId, Frame, Machine};
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, ItemsState, NIL, SetId, UNKNOWN_TEXT};
use crate::switches::Switch;
use crate::vocabulary::tokens::Tokens;

/// How many more numbers are listed than an array can lack.
const SPARE: usize = 100;

/// A number that may be an element.
struct Value {
    text: Vec<u8>,
    /// The form in which it is compared.
    canonical: Vec<u8>,
    /// The cost of this text.
    most: u64,
    /// The least cost of any text of the number, wherever whitespace is.
    least: u64,
}

/// The elements and separators of an array of different numbers.
pub(crate) struct Numbers {
    /// The shortest numbers and those that are single tokens, sorted by text.
    values: Vec<Value>,
    /// Their indices by cost, the cheapest first.
    by_most: Vec<u32>,
    by_least: Vec<u32>,
    by_canonical: FxHashMap<Vec<u8>, u32>,
    /// The least cost of a number that is not among them; [`NEVER`] where there is none.
    others: u64,
    /// The least number of bytes of such a number.
    others_from: usize,
    /// Whether no path costs less than the values and the separators.
    is_least: bool,
    /// The greatest number of characters of a number in one token.
    longest: usize,
    /// The least number of elements.
    min: u32,
    item: Vec<u8>,
    close: Vec<u8>,
    item_tokens: u64,
}

/// What the tokens of a vocabulary contain of numbers.
struct NumberTokens {
    /// Whether no token that may occur in an array of numbers contains a digit after anything but whitespace.
    are_separate: bool,
    /// Whether no such token contains the sign of a number after anything but whitespace.
    are_signs_separate: bool,
    /// The texts of numbers that are single tokens, with or without whitespace.
    single: FxHashSet<Vec<u8>>,
    longest: usize,
}

impl NumberTokens {
    fn of(vocabulary: &Tokens) -> NumberTokens {
        let mut tokens =
            NumberTokens { are_separate: true, are_signs_separate: true, single: FxHashSet::default(), longest: 1 };
        for bytes in (0..vocabulary.vocab_size() as u32).filter_map(|token| vocabulary.token_bytes(token)) {
            let has_digits = bytes.iter().any(u8::is_ascii_digit);
            if !(has_digits || bytes.contains(&b'-')) || !may_stand_among_numbers(bytes) {
                continue;
            }
            let bare = bytes.trim_ascii_start();
            let digits = bare.strip_prefix(b"-").unwrap_or(bare);
            if !digits.iter().all(u8::is_ascii_digit) {
                tokens.are_separate &= !has_digits;
                tokens.are_signs_separate = false;
            } else if has_digits {
                tokens.longest = tokens.longest.max(bare.len());
                tokens.single.insert(bare.to_vec());
            }
        }
        tokens
    }

    /// The least cost of a number's digits, with its sign unless the sign can be part of another token.
    fn least(&self, vocabulary: &Tokens, text: &[u8]) -> u64 {
        let digits = text.strip_prefix(b"-").filter(|_| !self.are_signs_separate).unwrap_or(text);
        let begun = (1..=digits.len()).filter(|&end| self.single.contains(&digits[..end]));
        let begun = begun.map(|end| count_of(vocabulary, &digits[end..]).saturating_add(1)).min();
        begun.unwrap_or(NEVER).min(count_of(vocabulary, digits))
    }
}

/// Whether some bytes may occur in an array of numbers without exponents, as far as adjacent pairs of bytes show.
fn may_stand_among_numbers(bytes: &[u8]) -> bool {
    let may_follow = |pair: &[u8]| match (pair[0], pair[1]) {
        (b'-' | b'.', next) => next.is_ascii_digit(),
        (before, b'-') => b", \t\r\n".contains(&before),
        (before, b'.') => before.is_ascii_digit(),
        _ => true,
    };
    bytes.iter().all(|byte| byte.is_ascii_digit() || b"-.,] \t\r\n".contains(byte)) && bytes.windows(2).all(may_follow)
}

/// The arrays of different numbers of a grammar that were asked for.
#[derive(Default)]
pub(crate) struct NumberArrays {
    known: FxHashMap<ItemsId, Option<Arc<Numbers>>>,
    tokens: Option<NumberTokens>,
}

/// The numbers that an array does not have yet, as many as it may need.
struct Unused {
    /// The cheapest of them, with their costs.
    most: Vec<(u64, u32)>,
    /// For every number of elements, the sum of the costs.
    most_sums: Vec<u64>,
    least: Vec<u64>,
    least_sums: Vec<u64>,
}

/// What follows an array.
struct Tail {
    pieces: Vec<Piece>,
    /// Its cost.
    alone: u64,
    /// Its cost together with the closing bracket.
    with_close: u64,
}

/// The results of counting for one mask.
#[derive(Default)]
pub(crate) struct Counted {
    unused: FxHashMap<(ItemsId, u32), Rc<Unused>>,
    tails: FxHashMap<SetId, Option<Rc<Tail>>>,
}

/// A thread within an array of different numbers.
struct InArray {
    thread: Entry,
    state: ItemsState,
    numbers: Arc<Numbers>,
    unused: Rc<Unused>,
}

/// An element that has begun.
struct Element<'a> {
    numbers: &'a Numbers,
    unused: &'a Unused,
    /// The list of elements before it.
    seen: u32,
    written: &'a [u8],
    residual: ExprId,
    /// The number of elements that must come after it.
    count: usize,
}

/// A continuation of a number that has begun.
struct Rest {
    /// Its cost, with the numbers after it.
    most: u64,
    text: Vec<u8>,
    /// The number that it completes, if that one is listed.
    value: Option<u32>,
    /// A lower bound on the cost of any continuation, with these numbers.
    least: u64,
}

impl Rest {
    /// Takes a continuation if it costs less.
    fn note(&mut self, most: u64, text: &[u8], value: Option<u32>) {
        if most < self.most {
            *self = Rest { most, text: text.to_vec(), value, least: self.least };
        }
    }
}

/// A way to complete a text after a thread within an array of different numbers.
pub(crate) struct Plan {
    /// What is written first: the rest of a number, a separator, or both.
    first: Vec<u8>,
    /// The number of elements after it.
    count: usize,
    /// Whether a separator comes before the first of these.
    is_after_element: bool,
    /// Whether `first` ends the array.
    closes: bool,
    /// A number that must not be among these elements.
    without: Option<u32>,
    numbers: Arc<Numbers>,
    unused: Rc<Unused>,
    tail: Option<Rc<Tail>>,
    /// Its cost; [`NEVER`] where it is not known.
    pub most: u64,
    /// A lower bound on the cost of completing the text from there.
    pub least: u64,
}

impl InArray {
    /// A plan that begins with a text, followed by `count` elements; the other fields have defaults.
    fn plan(&self, first: Vec<u8>, count: usize) -> Plan {
        Plan {
            first,
            count,
            is_after_element: false,
            closes: false,
            without: None,
            numbers: self.numbers.clone(),
            unused: self.unused.clone(),
            tail: None,
            most: NEVER,
            least: 0,
        }
    }
}

impl Unused {
    fn of(run: &Run<'_>, numbers: &Numbers, seen: u32) -> Unused {
        // One more than are missing, since one of them may be the current element.
        let count = numbers.min as usize + 2;
        let is_left = |&index: &u32| !run.has_element(seen, &numbers.values[index as usize].canonical);
        let value = |index: u32| &numbers.values[index as usize];
        let most = numbers.by_most.iter().copied().filter(is_left).take(count);
        let most: Vec<(u64, u32)> = most.map(|index| (value(index).most, index)).collect();
        let least = numbers.by_least.iter().copied().filter(is_left).map(|index| value(index).least);
        let others = std::iter::repeat(numbers.others);
        let least: Vec<u64> = least.take_while(|&least| least < numbers.others).chain(others).take(count).collect();
        let most_sums = sums(most.iter().map(|&(cost, _)| cost));
        let least_sums = sums(least.iter().copied());
        Unused { most, most_sums, least, least_sums }
    }

    /// The cost of `count` numbers, without one whose cost is given.
    fn most_without(&self, count: usize, without: Option<u64>) -> u64 {
        let each = |at: usize| self.most.get(at).map_or(NEVER, |&(cost, _)| cost);
        let sum = |count: usize| self.most_sums.get(count).copied().unwrap_or(NEVER);
        sum_without(count, without, each, sum)
    }

    /// A lower bound on the cost of `count` numbers, without one whose lower bound is given.
    fn least_without(&self, count: usize, without: Option<u64>) -> u64 {
        let each = |at: usize| self.least.get(at).copied().unwrap_or(NEVER);
        let sum = |count: usize| self.least_sums.get(count).copied().unwrap_or(NEVER);
        sum_without(count, without, each, sum)
    }
}

/// The sum of the `count` cheapest, without one.
fn sum_without(count: usize, without: Option<u64>, each: impl Fn(usize) -> u64, sum: impl Fn(usize) -> u64) -> u64 {
    match without {
        Some(cost) if count > 0 && cost <= each(count - 1) => match sum(count + 1) {
            NEVER => NEVER,
            all => all - cost,
        },
        _ => sum(count),
    }
}

/// The sums of the first ones, for every number of them.
fn sums(costs: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut sums = vec![0u64];
    for cost in costs {
        sums.push(sums[sums.len() - 1].saturating_add(cost));
    }
    sums
}

impl Numbers {
    /// The numbers of an array; `None` where its elements are of another kind, or where it has other constraints.
    fn of(
        run: &mut Run<'_>,
        counts: &TokenCounts,
        tokens: &NumberTokens,
        id: ItemsId,
    ) -> Result<Option<Numbers>, EngineError> {
        let grammar = run.machine.grammar().clone();
        let items = grammar.items(id);
        if !is_plain(items) || !counts.has_all_bytes || run.machine.does_whitespace_decide(run.lexeme_cache)? {
            return Ok(None);
        }
        let [element] = &items.rest[..] else { return Ok(None) };
        let mut node = element.value;
        while let Node::Rule(rule) = grammar.node(node) {
            node = grammar.rule(*rule).body;
        }
        let Node::Lexeme(lexeme) = *grammar.node(node) else { return Ok(None) };
        let lexeme = run.lexeme_cache.import(grammar.exprs(), lexeme)?;
        let most = (4 * items.min as usize).saturating_add(SPARE).min(LOOKED_AT);
        let shortest = shortest_numbers(run.lexeme_cache.deriver(), lexeme, most)?;
        let Some(Shortest { mut texts, others_from }) = shortest else { return Ok(None) };
        let deriver = run.lexeme_cache.deriver();
        // 0 may also be written with a sign.
        let mut canonical: FxHashSet<Vec<u8>> = FxHashSet::default();
        texts.retain(|text| canonical.insert(canonical_json(text)));
        if others_from.is_some() {
            // The sign may be a part of the token before.
            for sign in if tokens.are_signs_separate { &[""][..] } else { &["", "-"] } {
                for digits in &tokens.single {
                    let text = [sign.as_bytes(), digits].concat();
                    if deriver.matches(lexeme, &text)? && canonical.insert(canonical_json(&text)) {
                        texts.push(text);
                    }
                }
            }
        }
        texts.sort_unstable();
        let vocabulary = &counts.vocabulary;
        let is_least = tokens.are_separate && !texts.iter().any(|text| text.contains(&b'.'));
        let mut values = Vec::with_capacity(texts.len());
        for text in texts {
            check_time()?;
            let (canonical, most) = (canonical_json(&text), count_of(vocabulary, &text));
            let least = if is_least { tokens.least(vocabulary, &text).min(most) } else { 1 };
            values.push(Value { text, canonical, most, least });
        }
        let order = |cost: fn(&Value) -> u64| {
            let mut order: Vec<u32> = (0..values.len() as u32).collect();
            order.sort_by_key(|&index| (cost(&values[index as usize]), values[index as usize].text.len(), index));
            order
        };
        let [by_most, by_least] = [order(|value| value.most), order(|value| value.least)];
        let by_canonical = (0..).zip(&values).map(|(index, value)| (value.canonical.clone(), index)).collect();
        // Numbers that are single tokens are among the values.
        let others = others_from.map_or(NEVER, |bytes| bytes.div_ceil(tokens.longest).max(2) as u64);
        let surface = items.surface;
        let mut sign = |sign: ExprId| -> Result<Option<Vec<u8>>, EngineError> {
            let sign = run.lexeme_cache.import(grammar.exprs(), sign)?;
            shortest_text(run, sign)
        };
        let (Some(item), Some(close)) = (sign(surface.item)?, sign(surface.close)?) else { return Ok(None) };
        let is_least = is_least && item.contains(&b',') && close.contains(&b']');
        let item_tokens = count_of(vocabulary, &item);
        let (others_from, longest, min) = (others_from.unwrap_or(0), tokens.longest, items.min);
        Ok(Some(Numbers {
            values,
            by_most,
            by_least,
            by_canonical,
            others,
            others_from,
            is_least,
            longest,
            min,
            item,
            close,
            item_tokens,
        }))
    }

    /// The numbers whose texts have this prefix.
    fn beginning(&self, text: &[u8]) -> impl Iterator<Item = u32> {
        let first = self.values.partition_point(|value| &value.text[..] < text);
        let rest = &self.values[first..];
        let count = rest.partition_point(|value| value.text.starts_with(text));
        first as u32..(first + count) as u32
    }

    fn with_canonical(&self, canonical: &[u8]) -> Option<u32> {
        self.by_canonical.get(canonical).copied()
    }
}

/// Whether an array of different elements has no other constraint than a minimum number of elements.
fn is_plain(items: &Items) -> bool {
    items.is_unique() && !items.is_bare() && items.prefix.is_empty() && items.contains.is_empty()
}

/// Some numbers of a lexeme.
struct Shortest {
    /// The shortest first.
    texts: Vec<Vec<u8>>,
    /// The least number of bytes of the others, if there are any.
    others_from: Option<usize>,
}

/// The `most` shortest numbers of a lexeme; `None` where its texts are not numbers, or may have exponents.
fn shortest_numbers(deriver: &mut Deriver, lexeme: ExprId, most: usize) -> Result<Option<Shortest>, EngineError> {
    if deriver.exprs.has_language(lexeme) {
        return Ok(None);
    }
    let mut known: FxHashMap<(ExprId, Part), Rc<NumberSteps>> = FxHashMap::default();
    let (mut found, mut layer, mut length) = (Vec::new(), vec![(Vec::new(), (lexeme, Part::Sign))], 0);
    while !layer.is_empty() {
        let mut next = Vec::new();
        for (text, place) in layer {
            check_time()?;
            let steps = match known.get(&place) {
                Some(steps) => steps.clone(),
                None => {
                    let Some(steps) = NumberSteps::of(deriver, place)? else { return Ok(None) };
                    known.entry(place).or_insert(Rc::new(steps)).clone()
                }
            };
            if let Some(end) = steps.end(&text, place.1) {
                found.push(end);
            }
            if found.len() >= most {
                return Ok(Some(Shortest { texts: found, others_from: Some(length) }));
            }
            next.extend(steps.digits.iter().map(|&(byte, to)| ([&text[..], &[byte]].concat(), to)));
        }
        layer = next;
        length += 1;
    }
    Ok(Some(Shortest { texts: found, others_from: None }))
}

impl Run<'_> {
    /// Whether an element is among those of a list.
    fn has_element(&self, seen: u32, canonical: &[u8]) -> bool {
        self.stacks.known_text(canonical).is_some_and(|text| self.stacks.seen.has(seen, text))
    }

    /// The plans to complete the text from a place within an array of different numbers, one for each thread of which
    /// one is known, and a lower bound on the cost.
    pub fn plans(
        &mut self,
        arrays: &mut NumberArrays,
        counted: &mut Counted,
        counts: &Arc<TokenCounts>,
        costs: &mut Costs,
        texts: &mut Texts,
        place: SetId,
    ) -> Result<(Vec<Plan>, u64), EngineError> {
        let mut plans = Vec::new();
        if !self.machine.keeps_text() || self.machine.has_names() || !Switch::CompletionCounting.is_on() {
            return Ok((plans, 0));
        }
        let mut threads = self.stacks.entries(place).to_vec();
        self.take_text(&mut threads);
        let Some(text) = self.text.take() else { return Ok((plans, 0)) };
        let mut least = NEVER;
        for thread in threads {
            let before = plans.len();
            let Some((id, state)) = self.array_of_numbers(thread) else {
                least = 0;
                continue;
            };
            let Some(numbers) = self.numbers_of(arrays, counts, id)? else {
                least = 0;
                continue;
            };
            let unused = match counted.unused.get(&(id, state.seen)).filter(|_| Switch::CompletionCounted.is_on()) {
                Some(unused) => unused.clone(),
                None => {
                    let unused = Rc::new(Unused::of(self, &numbers, state.seen));
                    counted.unused.insert((id, state.seen), unused.clone());
                    unused
                }
            };
            let array = InArray { thread, state, numbers, unused };
            let mut found = Vec::new();
            let frame = self.machine.fork(ExpansionId(thread.head)).frame;
            let is_decided = match self.machine.frame(frame) {
                Frame::Item(_) => self.plans_within(&array, text, costs, texts, &mut found)?,
                _ => self.plans_after(&array, costs, texts, &mut found)?,
            };
            if !is_decided || !array.numbers.is_least || !Switch::CompletionLeast.is_on() {
                least = 0;
            }
            if found.is_empty() {
                continue;
            }
            let tail = match counted.tails.get(&thread.below).filter(|_| Switch::CompletionCounted.is_on()) {
                Some(tail) => tail.clone(),
                None => {
                    let tail = self.tail(&array.numbers, counts, costs, texts, thread.below, text)?.map(Rc::new);
                    counted.tails.insert(thread.below, tail.clone());
                    tail
                }
            };
            for mut plan in found {
                least = least.min(plan.least);
                plan.most = match &tail {
                    None => NEVER,
                    Some(tail) if plan.closes => plan.most.saturating_add(tail.alone),
                    Some(tail) => plan.most.saturating_add(tail.with_close),
                };
                plan.tail = tail.clone();
                plans.push(plan);
            }
            debug_assert!(plans.len() > before);
        }
        Ok((plans, if least == NEVER { 0 } else { least }))
    }

    /// The array of different numbers that a thread is in, if nothing else around it must be new.
    fn array_of_numbers(&mut self, thread: Entry) -> Option<(ItemsId, ItemsState)> {
        if thread == Entry::BOTTOM || offers_tokens(thread) {
            return None;
        }
        let frame = self.machine.fork(ExpansionId(thread.head)).frame;
        let (Frame::Item(id) | Frame::AfterItem(id)) = self.machine.frame(frame) else { return None };
        let items = self.machine.grammar().items(id);
        if !is_plain(items) || self.is_towards_repeat(thread) {
            return None;
        }
        let mut arrays = Vec::new();
        self.arrays_around(thread, Machine::unique_items, &mut arrays);
        (arrays == [(frame, thread.register)]).then(|| (id, self.stacks.items(thread.register)))
    }

    fn numbers_of(
        &mut self,
        arrays: &mut NumberArrays,
        counts: &TokenCounts,
        id: ItemsId,
    ) -> Result<Option<Arc<Numbers>>, EngineError> {
        if let Some(known) = arrays.known.get(&id) {
            return Ok(known.clone());
        }
        let tokens = arrays.tokens.get_or_insert_with(|| NumberTokens::of(&counts.vocabulary));
        let numbers = Numbers::of(self, counts, tokens, id)?.map(Arc::new);
        arrays.known.insert(id, numbers.clone());
        Ok(numbers)
    }

    /// What follows an array that is above these stacks.
    fn tail(
        &mut self,
        numbers: &Numbers,
        counts: &TokenCounts,
        costs: &mut Costs,
        texts: &mut Texts,
        below: SetId,
        text: u32,
    ) -> Result<Option<Tail>, EngineError> {
        self.text = Some(text);
        let mut threads = Vec::new();
        self.start(below, &mut threads)?;
        self.put_text(&mut threads);
        let after = self.stacks.configuration(&mut threads)?;
        let mut pieces = vec![Piece::Text(numbers.close.clone())];
        if !self.stacks.has_bottom(after) {
            let Some(found) = self.complete_near(costs, texts, after, NEVER - 1)? else { return Ok(None) };
            pieces.extend(found);
        }
        let count = |pieces: &[Piece]| -> Result<u64, EngineError> {
            Ok(tokens_of(&counts.vocabulary, pieces)?.map_or(NEVER, |tokens| tokens.len() as u64))
        };
        let (with_close, alone) = (count(&pieces)?, count(&pieces[1..])?);
        pieces.remove(0);
        Ok(Some(Tail { pieces, alone, with_close }))
    }

    /// The plans from a thread before or within a number; `false` where there may be others.
    fn plans_within(
        &mut self,
        array: &InArray,
        text: u32,
        costs: &Costs,
        texts: &mut Texts,
        plans: &mut Vec<Plan>,
    ) -> Result<bool, EngineError> {
        let &InArray { thread, state, ref numbers, ref unused } = array;
        let [(tag, residual)] = self.lexemes(thread)[..] else { return Ok(false) };
        let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
        let continuations = self.machine.continuations(&expansion, tag);
        let is_whole = matches!(&continuations[..], [after] if matches!(after[..], [(after, _)] if self.machine.unique_items(after).is_some()));
        if !is_whole || matches!(state.start, NIL | UNKNOWN_TEXT) {
            return Ok(false);
        }
        // The number of elements after the current one.
        let count = numbers.min.saturating_sub(state.place.saturating_add(1)) as usize;
        let signs = numbers.item_tokens.saturating_mul(count as u64);
        let plan = |first: Vec<u8>, without: Option<u32>, most: u64, least: u64| Plan {
            is_after_element: true,
            without,
            most: most.saturating_add(signs),
            // One token for each separator, and one for the end.
            least: sum([least, count as u64, 1]),
            ..array.plan(first, count)
        };
        let written = self.stacks.since(text, state.start);
        let written = written.trim_ascii_start();
        if written.is_empty() {
            let begins = thread.state & IN_WHITESPACE != 0 || thread.state == expansion.start();
            let Some(&(_, cheapest)) = unused.most.first().filter(|_| begins) else { return Ok(false) };
            let (most, least) = (unused.most_without(count + 1, None), unused.least_without(count + 1, None));
            plans.push(plan(numbers.values[cheapest as usize].text.clone(), Some(cheapest), most, least));
            return Ok(true);
        }
        if thread.state & IN_WHITESPACE != 0 {
            return Ok(false);
        }
        let element = Element { numbers, unused, seen: state.seen, written, residual, count };
        let Rest { most, text, value, least } = self.rest_of_number(&element, costs, texts)?;
        plans.push(plan(text, value, most, least));
        Ok(true)
    }

    /// The best continuation of a number that has begun, if others come after it.
    fn rest_of_number(&mut self, element: &Element<'_>, costs: &Costs, texts: &mut Texts) -> Result<Rest, EngineError> {
        let &Element { numbers, unused, seen, written, residual, count } = element;
        let mut best = Rest { most: NEVER, text: Vec::new(), value: None, least: NEVER };
        let mut by_rest: FxHashMap<&[u8], u64> = FxHashMap::default();
        for index in numbers.beginning(written) {
            let value = &numbers.values[index as usize];
            let rest = &value.text[written.len()..];
            let of_rest = *by_rest.entry(rest).or_insert_with(|| costs.of_text(rest));
            if !self.has_element(seen, &value.canonical) {
                let most = of_rest.saturating_add(unused.most_without(count, Some(value.most)));
                best.note(most, rest, Some(index));
                let least = of_rest.saturating_add(unused.least_without(count, Some(value.least)));
                best.least = best.least.min(least);
            }
        }
        // Other spellings, for example with zeros after the point, and longer numbers.
        self.find_shortest_text(costs, texts, residual)?;
        let mut ended = None;
        if let Some(rest) = texts.shortest(residual) {
            let canonical = canonical_json(&[written, rest].concat());
            if !self.has_element(seen, &canonical) {
                let index = numbers.with_canonical(&canonical);
                ended = index.map(|index| &numbers.values[index as usize]);
                let others = unused.most_without(count, ended.map(|value| value.most));
                best.note(costs.of_text(rest).saturating_add(others), rest, index);
            }
        }
        let deriver = self.lexeme_cache.deriver();
        let more = u64::from(!deriver.exprs.is_nullable(residual));
        let is_settled = NumberSteps::is_settled(deriver, residual, written)?;
        let digits = written.strip_prefix(b"-").unwrap_or(written);
        let of_spellings = match digits {
            // Only the sign was written: the number is a negative one, or 0.
            b"" => match numbers.with_canonical(b"0").filter(|_| !self.has_element(seen, b"0")) {
                Some(zero) => unused.least_without(count, Some(numbers.values[zero as usize].least)).saturating_add(1),
                None => NEVER,
            },
            // A number of digits alone is complete, or the beginning of others.
            _ if digits.iter().all(u8::is_ascii_digit) && written != b"-0" => NEVER,
            _ => unused.least_without(count, ended.map(|value| value.least)).saturating_add(more),
        };
        let of_others = match numbers.others {
            NEVER => NEVER,
            _ if is_settled && ended.is_some() => NEVER,
            _ => {
                let bytes = numbers.others_from.saturating_sub(written.len()).div_ceil(numbers.longest) as u64;
                unused.least_without(count, None).saturating_add(bytes.max(more))
            }
        };
        best.least = best.least.min(of_spellings).min(of_others);
        Ok(best)
    }

    /// The plans from a thread after a number; `false` where there may be others.
    fn plans_after(
        &mut self,
        array: &InArray,
        costs: &Costs,
        texts: &mut Texts,
        plans: &mut Vec<Plan>,
    ) -> Result<bool, EngineError> {
        let &InArray { thread, state, ref numbers, ref unused } = array;
        let missing = numbers.min.saturating_sub(state.place) as usize;
        let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
        let begins = thread.state == expansion.start() || thread.state & IN_WHITESPACE != 0;
        for (tag, residual) in self.lexemes(thread) {
            self.find_shortest_text(costs, texts, residual)?;
            let Some(first) = texts.shortest(residual).map(<[u8]>::to_vec) else { return Ok(false) };
            let cost = costs.of_text(&first);
            for continuation in self.machine.continuations(&expansion, tag).iter() {
                let closes = continuation.is_empty();
                if !closes
                    && !matches!(continuation[..], [(after, _)] if matches!(self.machine.frame(after), Frame::Item(_)))
                {
                    return Ok(false);
                }
                let count = if closes { 0 } else { missing.max(1) };
                let signs = count.saturating_sub(1) as u64;
                let of_values = unused.most_without(count, None);
                let of_signs = numbers.item_tokens.saturating_mul(signs);
                // The current separator may have been read except for whitespace.
                let first_sign = u64::from(begins || closes);
                let close = u64::from(!closes);
                plans.push(Plan {
                    closes,
                    most: sum([cost, of_values, of_signs]),
                    least: sum([first_sign, unused.least_without(count, None), signs, close]),
                    ..array.plan(first.clone(), count)
                });
            }
        }
        Ok(true)
    }
}

impl Plan {
    /// The text in parts; `None` where it is not known.
    pub fn pieces(&self) -> Option<Vec<Piece>> {
        let tail = self.tail.as_ref().filter(|_| self.most != NEVER)?;
        let numbers = &self.numbers;
        let mut texts: Vec<&[u8]> = vec![&self.first];
        let left = self.unused.most.iter().map(|&(_, index)| index).filter(|&index| Some(index) != self.without);
        for (at, index) in left.take(self.count).enumerate() {
            if at > 0 || self.is_after_element {
                texts.push(&numbers.item);
            }
            texts.push(&numbers.values[index as usize].text);
        }
        if !self.closes {
            texts.push(&numbers.close);
        }
        let texts = texts.into_iter().filter(|text| !text.is_empty());
        let mut pieces: Vec<Piece> = texts.map(|text| Piece::Text(text.to_vec())).collect();
        pieces.extend(tail.pieces.iter().cloned());
        Some(pieces)
    }
}
