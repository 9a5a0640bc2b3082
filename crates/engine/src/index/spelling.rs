//! Whether a vocabulary can spell the texts of an index: from each state that tokens reach, tokens must reach an end.
//!
//! A vocabulary without a token for each byte may lead into a text that it cannot finish. The index would have a dead
//! end there, so it is refused, with the text up to that place and the shortest piece that no tokens spell.

use std::collections::VecDeque;

use crate::index::bytes::{ByteAutomaton, NOWHERE};
use crate::index::error::Unspelled;
use crate::vocabulary::trie::Trie;

/// The first state, by number, from which no tokens lead to the end of a text.
///
/// `arrows` are the transitions between `finals.len()` states, each from one state to another.
pub(super) fn first_dead_end(finals: &[bool], arrows: impl Iterator<Item = (u32, u32)> + Clone) -> Option<u32> {
    // The transitions into each state, concatenated.
    let mut starts = vec![0usize; finals.len() + 1];
    arrows.clone().for_each(|(_, head)| starts[head as usize + 1] += 1);
    for state in 0..finals.len() {
        starts[state + 1] += starts[state];
    }
    let mut next = starts.clone();
    let mut tails = vec![0u32; starts[finals.len()]];
    for (tail, head) in arrows {
        tails[next[head as usize]] = tail;
        next[head as usize] += 1;
    }
    let mut ends = finals.to_vec();
    let mut work: Vec<u32> = (0..finals.len() as u32).filter(|&state| ends[state as usize]).collect();
    while let Some(state) = work.pop() {
        for &tail in &tails[starts[state as usize]..starts[state as usize + 1]] {
            if !std::mem::replace(&mut ends[tail as usize], true) {
                work.push(tail);
            }
        }
    }
    ends.iter().position(|&ends| !ends).map(|state| state as u32)
}

/// The piece that tokens cannot spell at a state of the byte automaton from which they lead to no end; `text` is one
/// that tokens spell before it.
pub(super) fn unspelled(automaton: &ByteAutomaton, trie: &Trie, mut text: Vec<u8>, dead: u32) -> Unspelled {
    let rest = shortest_rest(automaton, dead);
    // The positions in it that tokens reach.
    let mut reached = vec![false; rest.len() + 1];
    reached[0] = true;
    for start in 0..rest.len() {
        let mut node = if reached[start] { trie.root(rest[start]) } else { None };
        let mut end = start + 1;
        while let Some(here) = node {
            reached[end] |= trie.entry_at(here).is_some();
            node = rest.get(end).and_then(|&byte| trie.child(here, byte));
            end += 1;
        }
    }
    let spelled = reached.iter().rposition(|&reached| reached).unwrap_or(0);
    text.extend_from_slice(&rest[..spelled]);
    let missing = match std::str::from_utf8(&rest[spelled..]) {
        Ok(missing) => missing.chars().next().map_or(0, char::len_utf8),
        Err(error) if error.valid_up_to() > 0 => {
            let valid = std::str::from_utf8(&rest[spelled..][..error.valid_up_to()]);
            valid.ok().and_then(|valid| valid.chars().next()).map_or(1, char::len_utf8)
        }
        Err(_) => 1,
    };
    Unspelled { text, missing: rest[spelled..spelled + missing].to_vec() }
}

/// The shortest text from a state of the automaton to an end; the first one in the order of bytes.
fn shortest_rest(automaton: &ByteAutomaton, state: u32) -> Vec<u8> {
    let mut from = vec![(NOWHERE, 0u8); automaton.len()];
    let mut work = VecDeque::from([state]);
    from[state as usize] = (state, 0);
    while let Some(here) = work.pop_front() {
        if automaton.finals[here as usize] {
            let mut rest = Vec::new();
            let mut at = here;
            while at != state {
                let (before, byte) = from[at as usize];
                rest.push(byte);
                at = before;
            }
            rest.reverse();
            return rest;
        }
        for byte in 0..=u8::MAX {
            let next = automaton.next(here, byte);
            if next != NOWHERE && from[next as usize].0 == NOWHERE {
                from[next as usize] = (here, byte);
                work.push_back(next);
            }
        }
    }
    unreachable!("an automaton without dead states has an end after each state")
}
