//! Any contiguous run of chunks, as an expression whose size is linear in the chunks.
//!
//! The runs of a sequence are what its suffix automaton reads (Blumer et al. 1985): at most two states and three
//! transitions for each chunk. Every state becomes one shared expression, those that are reached by longer runs first.

use rustc_hash::FxHashMap;
use stencilm_regex::{ExprId, ExprSet};
use stencilm_support::{HashMap, LimitExceeded, check_time};

#[derive(Default)]
struct State {
    /// The length of the longest run that leads here.
    len: u32,
    /// The suffix link: the state of the longest suffix that also ends at other places.
    link: Option<u32>,
    next: FxHashMap<u32, u32>,
}

/// The expression of all texts `chunks[i..j]`, joined, including the empty one.
///
/// # Errors
/// If it takes too long, or the set may not have that many expressions.
pub(crate) fn substring(exprs: &mut ExprSet, chunks: &[&str]) -> Result<ExprId, LimitExceeded> {
    let mut numbers: HashMap<&str, u32> = HashMap::default();
    let mut symbols = Vec::new();
    let mut texts = Vec::new();
    for &chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
        let number = *numbers.entry(chunk).or_insert_with(|| {
            texts.push(chunk);
            texts.len() as u32 - 1
        });
        symbols.push(number);
    }
    // After each chunk but the last, several continuations are possible. That takes two expressions: one for what
    // follows, and one for the chunk before it. At most the shared expressions among them exist already.
    let shared = exprs.len() - exprs.own_len();
    exprs.may_grow_by(2 * symbols.len().saturating_sub(shared + 1))?;
    let states = automaton(&symbols)?;
    drop(symbols);
    let mut order: Vec<u32> = (0..states.len() as u32).collect();
    order.sort_by_key(|&state| std::cmp::Reverse(states[state as usize].len));
    let mut made = vec![ExprId::EMPTY; states.len()];
    for state in order {
        exprs.may_grow()?;
        let next = &states[state as usize].next;
        let mut next: Vec<(u32, u32)> = next.iter().map(|(&symbol, &to)| (symbol, to)).collect();
        next.sort_unstable();
        let mut alternatives = vec![ExprId::EMPTY];
        for (symbol, to) in next {
            let chunk = exprs.literal_in_time(texts[symbol as usize].as_bytes())?;
            alternatives.push(exprs.concat(chunk, made[to as usize]));
        }
        made[state as usize] = exprs.or(&alternatives);
    }
    Ok(made[0])
}

/// The suffix automaton. State 0 is the start, and every state is accepting.
fn automaton(symbols: &[u32]) -> Result<Vec<State>, LimitExceeded> {
    let mut states = vec![State::default()];
    let mut last = 0;
    for &symbol in symbols {
        check_time()?;
        let new = states.len() as u32;
        states.push(State { len: states[last as usize].len + 1, ..State::default() });
        let mut at = Some(last);
        while let Some(state) = at.filter(|&state: &u32| !states[state as usize].next.contains_key(&symbol)) {
            states[state as usize].next.insert(symbol, new);
            at = states[state as usize].link;
        }
        states[new as usize].link = Some(match at {
            None => 0,
            Some(state) => {
                let to = states[state as usize].next[&symbol];
                let len = states[state as usize].len + 1;
                if states[to as usize].len == len { to } else { split(&mut states, (state, symbol, to), len) }
            }
        });
        last = new;
    }
    Ok(states)
}

/// Copies the state `to` for the runs of at most `len` chunks that continue from `state` with `symbol`.
fn split(states: &mut Vec<State>, (state, symbol, to): (u32, u32, u32), len: u32) -> u32 {
    let copy = states.len() as u32;
    let State { link, ref next, .. } = states[to as usize];
    let next = next.clone();
    states.push(State { len, link, next });
    states[to as usize].link = Some(copy);
    let mut at = Some(state);
    while let Some(state) = at.filter(|&state: &u32| states[state as usize].next.get(&symbol) == Some(&to)) {
        states[state as usize].next.insert(symbol, copy);
        at = states[state as usize].link;
    }
    copy
}

/// Splits a text into words and other single characters.
pub(crate) fn words(text: &str) -> Vec<&str> {
    let mut chunks = Vec::new();
    let mut start = 0;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for (at, c) in text.char_indices() {
        if !is_word(c) {
            chunks.extend([&text[start..at], &text[at..at + c.len_utf8()]]);
            start = at + c.len_utf8();
        }
    }
    chunks.push(&text[start..]);
    chunks.retain(|chunk| !chunk.is_empty());
    chunks
}

/// Splits a text into characters.
pub(crate) fn characters(text: &str) -> Vec<&str> {
    text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stencilm_regex::{Deriver, Limits};

    #[test]
    fn words_and_characters() {
        assert_eq!(words("foo bar. baz"), ["foo", " ", "bar", ".", " ", "baz"]);
        assert_eq!(characters("a\u{e9}b"), ["a", "\u{e9}", "b"]);
    }

    #[test]
    fn long_texts_cost_what_they_are_long() {
        let text: String = (0..10_000u32).map(|n| char::from(b'a' + (n * n % 7) as u8)).collect();
        let mut exprs = ExprSet::new();
        substring(&mut exprs, &characters(&text)).expect("nothing ends it");
        assert!(exprs.own_len() < 12 * text.len(), "{} expressions", exprs.own_len());
    }

    proptest! {
        #[test]
        fn runs_and_nothing_else(chunks in prop::collection::vec("[ab]{0,2}", 0..7), text in "[ab]{0,6}") {
            let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
            let runs = (0..=chunks.len()).flat_map(|from| (from..=chunks.len()).map(move |to| (from, to)));
            let expected = runs.map(|(from, to)| chunks[from..to].concat()).any(|run| run == text);
            let mut deriver = Deriver::new(Limits::default());
            let expr = substring(&mut deriver.exprs, &chunks).expect("nothing ends it");
            prop_assert_eq!(deriver.matches(expr, text.as_bytes()).expect("small"), expected);
        }
    }
}
