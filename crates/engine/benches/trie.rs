//! What one node of a full trie walk costs on a table automaton.
//!
//! `cargo bench -p stencilm-engine --bench trie -- path/to/tokenizer.json` for a byte-level BPE vocabulary; without a
//! path a synthetic vocabulary of 128,000 words is walked. Prints nodes, the time to build and the nanoseconds a node
//! (median of the runs, with the fastest and the slowest).

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

use stencilm_engine::{TokenSet, Trie};

const RUNS: usize = 201;

fn main() {
    let path = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let mut tokens = path.as_deref().map_or_else(synthetic, byte_level);
    tokens.sort();
    tokens.dedup();
    let built = Instant::now();
    let trie = Trie::from_sorted(tokens.iter().enumerate().map(|(entry, token)| (&token[..], entry as u32)));
    let built = built.elapsed();

    // Four states that never die, so that every node is visited: next = table[state * 256 + byte].
    let table: Vec<u32> = (0..4 * 256u32).map(|cell| cell.wrapping_mul(0x9E37_79B9) >> 30).collect();
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let mut mask = TokenSet::empty(tokens.len());
            let start = Instant::now();
            let Ok(()) = black_box(&trie).walk_mask::<u32, Infallible>(
                black_box(0),
                false,
                |state, byte, _| Ok(Some(table[(state as usize) << 8 | usize::from(byte)])),
                mask.words_mut(),
            );
            let time = start.elapsed().as_secs_f64() * 1e9 / trie.len() as f64;
            assert_eq!(black_box(mask).len(), tokens.len(), "every token is reached");
            time
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("vocabulary        {}", path.as_deref().unwrap_or("synthetic"));
    println!("tokens            {}", tokens.len());
    println!("nodes             {}", trie.len());
    println!("build             {:.1} ms", built.as_secs_f64() * 1e3);
    println!("memory            {:.1} MiB", trie.memory_bytes() as f64 / 1048576.0);
    let (median, full) = (times[RUNS / 2], times[RUNS / 2] * trie.len() as f64 / 1e3);
    println!("full walk         {full:.0} us");
    println!("walk per node     {median:.2} ns (fastest {:.2}, slowest {:.2}; {RUNS} runs)", times[0], times[RUNS - 1]);
}

/// Words with the branching of a real vocabulary: common stems with many endings.
fn synthetic() -> Vec<Vec<u8>> {
    let mut state = 1u64;
    let mut next = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    (0..128_000)
        .map(|_| {
            let len = 2 + next(4) + next(6);
            (0..len).map(|at| b'a' + (next(26).min(next(26)).min(if at < 2 { 25 } else { next(26) })) as u8).collect()
        })
        .collect()
}

/// The tokens of a byte-level BPE `tokenizer.json`, specials left out.
fn byte_level(path: &str) -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    let spec: serde_json::Value = serde_json::from_str(&text).expect("tokenizer.json is JSON");
    let vocabulary = spec["model"]["vocab"].as_object().expect("tokenizer.json has model.vocab");
    // Printable bytes stand for themselves, the others for the characters from U+0100 on.
    let printable = |byte: u32| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut byte_of: std::collections::HashMap<char, u8> = std::collections::HashMap::new();
    let mut spare = 0x100;
    for byte in 0..256u32 {
        let stand_in = if printable(byte) {
            byte
        } else {
            spare += 1;
            spare - 1
        };
        byte_of.insert(char::from_u32(stand_in).expect("below the surrogates"), byte as u8);
    }
    vocabulary.keys().map(|token| token.chars().map(|c| byte_of[&c]).collect()).collect()
}
