//! What is reported is what is held: an allocator that counts stands beside the library's own figures.
//!
//! One test, because the allocator counts for the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stencilm_engine::{CompiledGrammar, GrammarMatcher, Limits, MatcherOptions, Vocabulary};
use stencilm_grammar::{Grammar, JsonSchemaOptions, from_json_schema, from_regex};
use stencilm_support::memory::allocated;

/// The system's allocator, and how many bytes are taken of it by now.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: what is asked for is handed on as it is; beside that, a number is changed.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(allocated(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller keeps what this asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(allocated(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller keeps what this asks for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// All bytes, and pairs and triples of letters.
fn vocabulary() -> Arc<Vocabulary> {
    let mut tokens: Vec<Option<Vec<u8>>> = (0..=u8::MAX).map(|byte| Some(vec![byte])).collect();
    for first in b'a'..=b'z' {
        for second in b'a'..=b'z' {
            tokens.push(Some(vec![first, second]));
            tokens.extend((b'a'..=b'e').map(|third| Some(vec![first, second, third])));
        }
    }
    let size = tokens.len();
    Arc::new(Vocabulary::new(&tokens, size + 1, &[size as u32], &[]).unwrap())
}

/// A matcher that has read a text, with a mask before every byte.
fn read(compiled: &Arc<CompiledGrammar>, text: &str) -> GrammarMatcher {
    let mut matcher = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()).unwrap();
    let mut mask = vec![0; compiled.vocabulary().mask_words()];
    for byte in text.bytes() {
        matcher.fill_mask(&mut mask).unwrap();
        assert!(matcher.accept_bytes(&[byte]).unwrap());
    }
    matcher
}

fn many_states(number: usize) -> Grammar {
    from_regex(&format!("(?:.*[ab].{{16}}|x{number})")).unwrap()
}

fn schema(number: usize) -> Grammar {
    let text = format!(
        r#"{{"type": "object", "properties": {{"name{number}": {{"type": "string", "maxLength": 30}},
            "size{number}": {{"type": "number"}}, "kind": {{"enum": ["a{number}", "b"]}},
            "tags": {{"type": "array", "items": {{"type": "string"}}}}}}, "required": ["name{number}"]}}"#
    );
    from_json_schema(&text, &JsonSchemaOptions::default()).unwrap()
}

fn letters(count: usize) -> String {
    (0..count).map(|at| (b'a' + (at * at / 3 % 7 % 3) as u8) as char).collect()
}

fn schema_text(number: usize) -> String {
    format!(r#"{{"name{number}": "abc", "size{number}": -1.5e3, "kind": "b", "tags": ["x"], "more": [1, {{}}]}}"#)
}

/// Waits for what is dropped in threads of its own.
fn comes_down_to(bytes: usize) -> bool {
    let begun = Instant::now();
    while held() > bytes && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    held() <= bytes
}

#[test]
fn what_is_reported_is_what_is_held_and_stays_within_its_bounds() {
    let vocabulary = vocabulary();
    // What all share is made once.
    drop(read(&Arc::new(CompiledGrammar::new(Arc::new(schema(0)), vocabulary.clone()).unwrap()), &schema_text(0)));
    let compile = |grammar: Grammar, limits: Limits| {
        Arc::new(CompiledGrammar::with_limits(Arc::new(grammar), vocabulary.clone(), limits).unwrap())
    };

    for (what, grammars, count) in [
        ("ordinary schemas", (|at| (schema(at), schema_text(at))) as fn(usize) -> (Grammar, String), 300),
        ("lexemes with many states", |at| (many_states(at), letters(60)), 8),
    ] {
        let (before, reported_before) = (held(), vocabulary.lexicon_bytes());
        let mut kept = Vec::with_capacity(count);
        for at in 1..=count {
            let (grammar, text) = grammars(at);
            let compiled = compile(grammar, Limits::default());
            drop(read(&compiled, &text));
            kept.push(compiled);
        }
        let own: usize = kept.iter().map(|compiled| compiled.memory_bytes()).sum();
        let shared = vocabulary.lexicon_bytes() - reported_before;
        let (reported, held) = (own + shared, held() - before);
        println!("{what}: {own} of their own and {shared} shared are reported, {held} held");
        assert!(reported * 10 >= held * 8, "{what}: {reported} reported, {held} held");
        assert!(reported * 10 <= held * 12, "{what}: {reported} reported, {held} held");
    }

    // Grammars that are kept, and sequences that wait, hold no lexemes.
    let limits = Limits { lexicon_bytes: 2 << 20, ..Limits::default() };
    let before = held();
    let (mut kept, mut waiting) = (Vec::new(), Vec::new());
    let mut own = 0;
    for at in 0..24 {
        let compiled = compile(many_states(at), limits.clone());
        waiting.push(read(&compiled, &letters(80)));
        own += compiled.grammar().memory_bytes();
        kept.push(compiled);
        assert!(vocabulary.lexicon_bytes() < (64 << 20) + limits.lexicon_bytes);
    }
    let stacks: usize = waiting.iter().map(GrammarMatcher::memory_bytes).sum();
    // Beside them a few layouts, which are as large as their masks.
    let bound = before + limits.lexicon_bytes + own + stacks + (2 << 20);
    assert!(comes_down_to(bound), "{} held, {bound} allowed", held());

    // They go on where they were.
    let mut mask = vec![0; vocabulary.mask_words()];
    let mut anew = vec![0; vocabulary.mask_words()];
    for (matcher, compiled) in waiting.iter_mut().zip(&kept) {
        matcher.fill_mask(&mut mask).unwrap();
        let mut twin = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()).unwrap();
        assert!(twin.accept_bytes(letters(80).as_bytes()).unwrap());
        twin.fill_mask(&mut anew).unwrap();
        assert_eq!(mask, anew);
        matcher.rollback(30).unwrap();
        matcher.fill_mask(&mut mask).unwrap();
        twin.reset();
        assert!(twin.accept_bytes(letters(50).as_bytes()).unwrap());
        twin.fill_mask(&mut anew).unwrap();
        assert_eq!(mask, anew);
    }

    // One operation that needs more than it may is refused, and others go on.
    let limits = Limits { working_bytes: 1 << 20, ..limits };
    let compiled = compile(from_regex(".*[abc].{200}").unwrap(), limits);
    let mut matcher = GrammarMatcher::new(compiled, &MatcherOptions::default()).unwrap();
    let mut state = 1u32;
    let without_period: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (state >> 24) as u8 % 26
    })
    .take(20_000)
    .collect();
    let error = matcher.accept_bytes(&without_period).unwrap_err().to_string();
    assert!(error.contains("1048576 bytes") && error.contains("`working_bytes`"), "{error}");
    assert!(matcher.accept_bytes(b"ab").unwrap());
    assert!(waiting[0].accept_bytes(b"c").unwrap());
}
