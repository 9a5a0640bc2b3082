use std::collections::BTreeSet;
use std::convert::Infallible;

use stencilm_grammar::{Grammar, JsonSchemaOptions, Node, from_json_schema};
use stencilm_regex::syntax::{Anchoring, PatternOptions, Utf8, parse_pattern};
use stencilm_regex::{ExprSet, Limits, Relaxed};

use super::*;
use crate::vocabulary::token_set::TokenSet;
use proptest::prelude::*;
use stencilm_support::SEARCHED;

thread_local! {
    static SMALL: Arc<Tokens> = Arc::new(vocabulary_of(&["a", "b", "1", "-", "\"", "'", "\",", "xyz"], 3));
}

/// The bytes and every run of up to three of some pieces that matter to the patterns below.
fn vocabulary() -> Tokens {
    let pieces = ["a", "b", "1", "-", " ", "\"", "\",", "\\\"", "\\u00", "61", "é", "\n", "xyz", "日本", "\\"];
    vocabulary_of(&pieces, 3)
}

/// The bytes and every run of up to this many of some pieces.
fn vocabulary_of(pieces: &[&str], length: usize) -> Tokens {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let mut runs: Vec<String> = vec![String::new()];
    for _ in 0..length {
        runs = runs.iter().flat_map(|run| pieces.iter().map(move |piece| format!("{run}{piece}"))).collect();
        tokens.extend(runs.iter().map(|run| run.clone().into_bytes()));
    }
    tokens.sort_unstable();
    tokens.dedup();
    let tokens: Vec<Option<Vec<u8>>> = tokens.into_iter().map(Some).collect();
    Tokens::new(&tokens, tokens.len(), &[], &[]).unwrap()
}

/// A mask as what it says: the tokens inside, and those that leave, each with its suffix.
fn said(mask: &LexemeMask, vocabulary: &Tokens) -> (TokenSet, BTreeSet<(Vec<u8>, u32)>) {
    let mut crossing = BTreeSet::new();
    for crossings in mask.crossings.iter().flat_map(|crossings| crossings.iter()) {
        let crossings = crossings.crossings(vocabulary);
        let suffixes = crossings.suffixes().clone();
        let mut found: Vec<(u32, Vec<u8>)> = Vec::new();
        let Ok(()) = suffixes.walk::<usize, Infallible>(
            0,
            |_, _, node| Ok(Some(node)),
            |entry, node| {
                let mut bytes = Vec::new();
                let mut above = suffixes.depth(node);
                for at in (0..=node).rev() {
                    if suffixes.depth(at) == above {
                        bytes.push(suffixes.byte(at));
                        above -= 1;
                    }
                }
                bytes.reverse();
                found.push((entry, bytes));
            },
        );
        for (suffix, bytes) in found {
            crossing.extend(crossings.tokens(suffix).map(|token| (bytes.clone(), token)));
        }
    }
    (mask.to_set(vocabulary.vocab_size()), crossing)
}

fn string_lexeme(keywords: &str) -> (Grammar, ExprId) {
    let schema = format!(r#"{{"type": "string", {keywords}}}"#);
    let grammar = from_json_schema(&schema, &JsonSchemaOptions::default()).unwrap();
    let Node::Lexeme(expr) = *grammar.node(grammar.root()) else { panic!("a string is one lexeme") };
    (grammar, expr)
}

/// The state after a text.
fn after(lexeme_cache: &mut LexemeCache, dfa: DfaId, text: &[u8]) -> StateId {
    let mut state = StateId::START;
    for &byte in text {
        state = lexeme_cache.step(dfa, state, byte).unwrap().0;
    }
    state
}

/// The mask of an expression; `None` where it matches nothing.
fn mask_of(lexeme_cache: &mut LexemeCache, vocabulary: &Tokens, expr: ExprId) -> Option<Arc<LexemeMask>> {
    let dfa = lexeme_cache.dfa(&[expr]).unwrap();
    let dead = lexeme_cache.dfas[dfa.0 as usize].is_dead_at_start();
    (!dead).then(|| lexeme_cache.mask(vocabulary, dfa, StateId::START).unwrap().mask)
}

/// The mask of a bounded text, made from that of the text without the bound.
fn bounded_mask(lexeme_cache: &mut LexemeCache, vocabulary: &Tokens, residual: ExprId) -> Option<Arc<LexemeMask>> {
    let bounded = lexeme_cache.mask_of_bounded(vocabulary, residual).unwrap()?;
    assert!(lexeme_cache.is_simpler(bounded.other, residual));
    let larger = mask_of(lexeme_cache, vocabulary, bounded.other)?;
    lexeme_cache.finish_bounded(vocabulary, &bounded, &larger).unwrap()
}

#[test]
fn every_finder_of_a_mask_finds_the_mask_of_a_walk() {
    let vocabulary = vocabulary();
    let open = [
        r#""pattern": "a1""#,
        r#""pattern": "\\d{4}-a""#,
        r#""pattern": "a.*b|1-1$""#,
        r#""pattern": ".+a", "minLength": 6"#,
        r#""pattern": "-1", "minLength": 3, "maxLength": 90"#,
        r#""pattern": "^.*-[^1\n\r\u2028\u2029]+a$""#,
        r#""pattern": "é|日""#,
        r#""pattern": "a1$""#,
        r#""pattern": "a1$", "minLength": 5"#,
        r#""allOf": [{"pattern": "a1$"}, {"pattern": "-|b"}]"#,
        r#""allOf": [{"pattern": "a1|^b"}, {"pattern": "-"}]"#,
    ];
    let others = [
        // Of alternatives that a run goes on with, one may be completed and another not.
        r#""allOf": [{"pattern": "^[^b]*1[^b]*$"}, {"pattern": "^[^ba]*$|^[^b]*b[^b]*$"}]"#,
        r#""maxLength": 4"#,
        r#""pattern": "^[a-z]{2,3}-[a-z1]{3}$""#,
        r#""pattern": "^[a-z1]{2}-.*$""#,
        r#""pattern": "^[^a\\\\]+$""#,
        r#""pattern": "a1", "maxLength": 5"#,
        r#""allOf": [{"pattern": "a1$"}, {"pattern": "[1b]$"}]"#,
        r#""allOf": [{"pattern": "a1$"}, {"pattern": "-|b"}], "maxLength": 40"#,
        r#""pattern": "^\\S+( \\S+){0,2}$""#,
    ];
    for (index, keywords) in open.iter().chain(&others).enumerate() {
        let mut lexeme_cache = LexemeCache::new(12, Limits::default());
        let (grammar, expr) = string_lexeme(keywords);
        let expr = lexeme_cache.import(grammar.exprs(), expr).expect("nothing ends it");
        let dfa = lexeme_cache.dfa(&[expr]).unwrap();
        for text in ["\"", "\"a", "\"a-", "\"1", "\"a1", "\"11111-a", "\" xyz", "\"ab-1xy", "\"\u{E9}\\u00e9", "\"aba "]
        {
            let state = after(&mut lexeme_cache, dfa, text.as_bytes());
            let &[(_, residual)] = lexeme_cache.residuals(dfa, state) else { continue };
            let from = Start { dfa, state, one: true };
            let walked = lexeme_cache.mask_by_walk(&vocabulary, from, usize::MAX).unwrap().unwrap();
            let run = lexeme_cache.mask_of_run(&vocabulary, residual).unwrap();
            let open_run = lexeme_cache.mask_of_open_run(&vocabulary, residual, from).unwrap();
            if index < open.len() && text == "\"" {
                assert!(run.is_some() || open_run.is_some(), "{keywords}: no walk is needed");
            }
            let near = lexeme_cache.base_of(residual).and_then(|base| {
                let larger = mask_of(&mut lexeme_cache, &vocabulary, base)?;
                Some(lexeme_cache.mask_near(&vocabulary, from, base, &larger).unwrap().expect("a base is larger"))
            });
            let bounded = bounded_mask(&mut lexeme_cache, &vocabulary, residual);
            let owned = [run, open_run, near].into_iter().flatten().map(Arc::new);
            for mask in owned.chain(bounded) {
                assert!(said(&mask, &vocabulary) == said(&walked, &vocabulary), "{keywords} behind {text}");
                let ends = |mask: &LexemeMask| {
                    !mask.unkept.is_empty() || mask.crossings.iter().any(|crossings| !crossings.is_empty())
                };
                assert_eq!(ends(&mask), ends(&walked), "{keywords} behind {text}");
            }
        }
    }
}

#[test]
fn the_mask_of_a_bounded_text_is_that_of_a_walk() {
    let vocabulary = vocabulary();
    let patterns = [
        r"^(?:\\S+\\s+){0,3}\\S+$",
        r"^$|^(?:\\S+\\s+){0,2}\\S+$",
        r"^\\d+-\\d+.*$",
        r"^(ab)+(xyz|\u00e9)?$",
        r"^[a-z]+(1[a-z]{2})*$",
        r"(a|1-).*b",
        r"^[^a1]*(\u65e5\u672c)+$",
        r"^(?:(?!ab).)*$",
        r"^(?!.*1-)[^y]*$",
        r"^(?=.*[a-z])(?=.*1).*$",
        r"^(?:(?!-x).)*(?:-xy)?$",
        // Of these, not every number of characters completes a text.
        r"^(?=.*1)(?:ab|1-)*$",
        r"^(?!a)(?:.{3})*$",
        r"^(?=.*b)(?:[^1]|1xyz)*$",
    ];
    let mut found = 0;
    for pattern in patterns {
        for bounds in [
            "\"maxLength\": 3",
            "\"maxLength\": 6",
            "\"minLength\": 1, \"maxLength\": 9",
            "\"minLength\": 5, \"maxLength\": 7",
            "\"minLength\": 3, \"maxLength\": 12",
            "\"minLength\": 8, \"maxLength\": 40",
            "\"maxLength\": 40",
        ] {
            let keywords = format!(r#""pattern": "{pattern}", {bounds}"#);
            let mut lexeme_cache = LexemeCache::new(12, Limits::default());
            let (grammar, expr) = string_lexeme(&keywords);
            let expr = lexeme_cache.import(grammar.exprs(), expr).expect("nothing ends it");
            let dfa = lexeme_cache.dfa(&[expr]).unwrap();
            for text in [
                "",
                "a",
                "ab",
                "1-1",
                "1",
                "a b",
                "a b a",
                "ab1",
                "ab1x",
                "\u{E9}\\u00",
                "11-1xyzxy",
                "\u{65E5}\u{672C}-",
            ] {
                let state = after(&mut lexeme_cache, dfa, &[b"\"", text.as_bytes()].concat());
                let &[(_, residual)] = lexeme_cache.residuals(dfa, state) else { continue };
                let Some(mask) = bounded_mask(&mut lexeme_cache, &vocabulary, residual) else { continue };
                found += 1;
                let from = Start { dfa, state, one: true };
                let walked = lexeme_cache.mask_by_walk(&vocabulary, from, usize::MAX).unwrap().unwrap();
                assert!(said(&mask, &vocabulary) == said(&walked, &vocabulary), "{keywords} behind {text}");
            }
        }
    }
    eprintln!("{found}");
    assert!(found > 100, "{found} masks were found so");
}

/// Intersections with a greatest count, from the masks of those without it.
#[test]
fn the_mask_near_an_intersection_without_a_limit_is_that_of_a_walk() {
    let vocabulary = vocabulary();
    let patterns = [
        "(?:(?!ab).){0,40}ab",
        "(?:(?!ab).){3,14}(?:ab)?",
        "(?!.*1-).{0,12}a*",
        "(?=.*a)(?!.*b1)[^y]{2,20}(?:-x){0,30}",
        "(?:(?!-)[ab1]){0,9}-(?:(?!1a).){0,30}",
        "(?!.*xyz)(?:[a-z]{1,3}-){0,8}[a-z1]{1,40}",
    ];
    let (mut found, mut same) = (0, 0);
    for pattern in patterns {
        let options = PatternOptions { anchoring: Anchoring::Whole, ..PatternOptions::default() };
        let mut lexeme_cache = LexemeCache::new(12, Limits::default());
        let expr = parse_pattern(&mut lexeme_cache.deriver.exprs, pattern, &options, &mut Utf8).expect(pattern);
        let dfa = lexeme_cache.dfa(&[expr]).unwrap();
        for text in
            ["", "a", "b", "aa", "a-b", "1", "ba1", "aaaaaaaaa", "a-a-", "1111111a", "\u{E9}", "\u{65E5}\u{672C}-"]
        {
            let state = after(&mut lexeme_cache, dfa, text.as_bytes());
            let &[(_, residual)] = lexeme_cache.residuals(dfa, state) else { continue };
            let Some(Relaxed { expr: base, agreement }) = lexeme_cache.without_a_limit(residual).unwrap() else {
                continue;
            };
            assert!(lexeme_cache.is_simpler(base, residual), "{pattern} behind {text}");
            let larger = mask_of(&mut lexeme_cache, &vocabulary, base).unwrap();
            let from = Start { dfa, state, one: true };
            let walked = lexeme_cache.mask_by_walk(&vocabulary, from, usize::MAX).unwrap().unwrap();
            let near = lexeme_cache.mask_near(&vocabulary, from, base, &larger).unwrap().expect("a base is larger");
            assert!(said(&near, &vocabulary) == said(&walked, &vocabulary), "{pattern} behind {text}");
            found += 1;
            if agreement as usize >= vocabulary.trie().max_depth() {
                assert!(said(&larger, &vocabulary) == said(&walked, &vocabulary), "{pattern} behind {text}");
                same += 1;
            }
        }
    }
    assert!(found > 30 && same > 10, "{found} masks were found so, {same} of them the larger one's");
}

#[test]
fn the_mask_within_limits_of_length_is_that_of_a_walk() {
    let vocabulary = vocabulary_of(&["a", "1", "-", "\"", "\",", "xyz", "abababab", "日本"], 4);
    let cores = ["[ab](?:xyz|[ab]|\u{65e5}\u{672c})*(?:-[ab1]+)*", "(?:[ab]|-?1|\u{e9})+", "[ab]*(?:1[a-z]{3}|-)*"];
    let limits = [
        [r".{0,24}", r"[^-%]{0,16}(?:-[^-%]{0,16})*"],
        [r".{0,60}", r"(?:[a-z]{0,20}|[^1%]{0,15})(?:1(?:[a-z]{0,20}|[^1%]{0,15}))*"],
        [r".{0,18}", r".{0,40}"],
    ];
    let (mut found, mut differ) = (0, 0);
    for (core, limits) in cores.iter().flat_map(|core| limits.iter().map(move |limits| (core, limits))) {
        let options = PatternOptions { anchoring: Anchoring::Whole, ..PatternOptions::default() };
        let mut lexeme_cache = LexemeCache::new(34, Limits::default());
        let exprs = &mut lexeme_cache.deriver.exprs;
        // No character is the byte that ends the text.
        let parts = [core, limits[0], limits[1]].map(|pattern| {
            let pattern = pattern.replace('.', "[^%]").replace('%', r#""\n"#);
            parse_pattern(exprs, &pattern, &options, &mut Utf8).unwrap()
        });
        let quote = exprs.literal(b"\"");
        let both = exprs.and(&parts);
        let expr = exprs.concat(both, quote);
        let dfa = lexeme_cache.dfa(&[expr]).unwrap();
        let runs = (0..16).map(|length| "ab".repeat(10)[..length].to_string());
        let others = ["a\u{65e5}\u{672c}xyzab", "bbb-111", "ab1abc", "a-1-1-1-1-1", "xyz-b"].map(String::from);
        let texts: Vec<String> = runs.chain(others).collect();
        for text in texts {
            let state = after(&mut lexeme_cache, dfa, text.as_bytes());
            let &[(_, residual)] = lexeme_cache.residuals(dfa, state) else { continue };
            let Some(limited) = lexeme_cache.without_limits(residual).unwrap() else { continue };
            assert!(lexeme_cache.is_simpler(limited.without, residual));
            let larger = mask_of(&mut lexeme_cache, &vocabulary, limited.without).unwrap();
            let Some(mask) = lexeme_cache.finish_limited(&vocabulary, &limited, &larger).unwrap() else { continue };
            let from = Start { dfa, state, one: true };
            let walked = lexeme_cache.mask_by_walk(&vocabulary, from, usize::MAX).unwrap().unwrap();
            assert!(said(&mask, &vocabulary) == said(&walked, &vocabulary), "{core} {limits:?} behind {text}");
            found += 1;
            differ += u32::from(said(&mask, &vocabulary) != said(&larger, &vocabulary));
        }
    }
    assert!(found > 20 && differ > 5, "{found} masks were found so, {differ} of them other than without the limits");
}

/// Languages of which a mask may have been its own base, or have led to one that was.
#[test]
fn a_mask_is_made_from_simpler_ones() {
    // So large that a mask is not just walked.
    let vocabulary = vocabulary_of(&["a", "b", "1", "-", " ", "é", "xyz", "日本", "\n", "ba", "2", "c"], 4);
    assert!(vocabulary.trie().len() > SEARCHED);
    let patterns = [
        ".*a.{3}.*",
        ".*a.{2}.*",
        ".*a.{4}",
        "a.{4}.*",
        ".*-.{4}.*",
        ".*1-a.{5}.*",
        r".*\d.{4}.*",
        ".*[ab].{4}.*",
        ".*a.{9}.*",
        ".*a.{4,9}.*",
        "[a-z]*b[a-z]{4}[a-z]*",
        r"[\s\S]*a[\s\S]{4}[\s\S]*",
        "(?:.*a.{4}.*)|b",
        "(.*a.{20}){3}",
        "[a-b]{4}[a-z]{4}.*",
        "(?:[a-b]{4}|1)[a-b]{5}[a-z]*",
        "(?:a{4,5})?(?:a{4,6})?b",
        "(?:[ab]{4}-){4}(?:[ab]{5}-)*",
        "(?:.{4,9}.{5})*a{6}a*",
    ];
    for pattern in patterns {
        let options = PatternOptions { anchoring: Anchoring::Whole, ..PatternOptions::default() };
        let mut lexeme_cache = LexemeCache::new(12, Limits::default());
        let expr = parse_pattern(&mut lexeme_cache.deriver.exprs, pattern, &options, &mut Utf8).unwrap();
        let dfa = lexeme_cache.dfa(&[expr]).unwrap();
        for text in
            ["", "a", "aaaaa", "a1-a1-a", "abababa", "aaaab", "aaaa-", "-----", "1-axyz", "\u{65E5}\u{672C}a\u{E9}"]
        {
            let state = after(&mut lexeme_cache, dfa, text.as_bytes());
            let &[(_, residual)] = lexeme_cache.residuals(dfa, state) else { continue };
            if let Some(base) = lexeme_cache.base_of(residual) {
                let exprs = &lexeme_cache.deriver.exprs;
                assert!(exprs.complexity(base) < exprs.complexity(residual), "{pattern} behind {text}");
            }
            let from = Start { dfa, state, one: true };
            let walked = lexeme_cache.mask_by_walk(&vocabulary, from, usize::MAX).unwrap().unwrap();
            let LexemeMaskAt { mask, .. } = lexeme_cache.mask(&vocabulary, dfa, state).unwrap();
            assert!(said(&mask, &vocabulary).0 == said(&walked, &vocabulary).0, "{pattern} behind {text}");
            if mask.unkept.is_empty() && walked.unkept.is_empty() {
                assert!(said(&mask, &vocabulary).1 == said(&walked, &vocabulary).1, "{pattern} behind {text}");
            }
        }
    }
}

/// Texts in which something must not occur, from every state that some beginnings lead to: by the characters that
/// matter alone.
#[test]
fn the_mask_of_a_text_without_something_is_that_of_a_walk() {
    let vocabulary = vocabulary_of(&["a", "b", "1", "\"", "\",", "\\\"", "\\u00", "61", "é", "日本", "\\", "\\n"], 4);
    assert!(vocabulary.trie().len() > SEARCHED);
    let keywords = [
        r#""not": {"pattern": "ab"}"#,
        r#""not": {"pattern": "a"}"#,
        r#""not": {"pattern": "ab$"}"#,
        r#""not": {"pattern": "ab1|ba"}"#,
        r#""not": {"pattern": "é|日"}"#,
        r#""not": {"pattern": "日本a"}"#,
        r#""not": {"pattern": "[ab]1"}"#,
        r#""not": {"pattern": "[ab]"}"#,
        r#""not": {"pattern": "[^ab]$"}"#,
        r#""not": {"pattern": "aba|11"}"#,
        r#""not": {"anyOf": [{"pattern": "a"}, {"pattern": "b1"}]}"#,
        r#""not": {"anyOf": [{"pattern": "a"}, {"pattern": "é$"}]}"#,
        r#""not": {"pattern": "\n|a\""}"#,
        r#""not": {"pattern": "ab"}, "pattern": "1b""#,
        r#""not": {"anyOf": [{"pattern": "ab"}, {"pattern": "1"}]}"#,
        r#""not": {"anyOf": [{"pattern": "ab"}, {"enum": ["a", "b1", "éa"]}]}"#,
        r#""not": {"pattern": "a.b"}, "minLength": 4"#,
    ];
    let (mut apart, mut near) = (0, 0);
    for keywords in keywords {
        let mut lexeme_cache = LexemeCache::new(12, Limits::default());
        let (grammar, expr) = string_lexeme(keywords);
        let expr = lexeme_cache.import(grammar.exprs(), expr).expect("nothing ends it");
        let dfa = lexeme_cache.dfa(&[expr]).unwrap();
        for text in [
            "",
            "a",
            "1",
            "b",
            "\u{E9}",
            "\u{65E5}",
            "\u{65E5}\u{672C}",
            "\\",
            "\\u00",
            "\\u006",
            "bbbb",
            "\u{E9}1b\\n",
            "11b",
        ] {
            let state = after(&mut lexeme_cache, dfa, &[b"\"", text.as_bytes()].concat());
            let &[(_, residual)] = lexeme_cache.residuals(dfa, state) else { continue };
            match lexeme_cache.usual_of(residual).unwrap() {
                Some(usual) if usual == residual => {
                    let Some(base) = lexeme_cache.base_of(residual) else { continue };
                    let larger = mask_of(&mut lexeme_cache, &vocabulary, base).unwrap();
                    let from = Start { dfa, state, one: true };
                    apart +=
                        u32::from(lexeme_cache.mask_by_difference(&vocabulary, from, base, &larger).unwrap().is_some());
                }
                Some(_) => near += 1,
                None => {}
            }
            let from = Start { dfa, state, one: true };
            let walked = lexeme_cache.mask_by_walk(&vocabulary, from, usize::MAX).unwrap().unwrap();
            let LexemeMaskAt { mask, .. } = lexeme_cache.mask(&vocabulary, dfa, state).unwrap();
            assert!(said(&mask, &vocabulary).0 == said(&walked, &vocabulary).0, "{keywords} behind {text}");
            if mask.unkept.is_empty() && walked.unkept.is_empty() {
                assert!(said(&mask, &vocabulary).1 == said(&walked, &vocabulary).1, "{keywords} behind {text}");
            }
        }
    }
    assert!(apart > 10 && near > 10, "{apart} texts at where they usually are, {near} elsewhere");
}

/// How often alternatives were found: said with less, and one by one.
#[derive(Default)]
struct FoundByAlternatives {
    fewer: u32,
    masks: u32,
}

impl FoundByAlternatives {
    /// Holds the mask of an expression after some texts to that of a walk.
    fn hold(
        &mut self,
        vocabulary: &Tokens,
        lexeme_cache: &mut LexemeCache,
        expr: ExprId,
        texts: &[&str],
        shown: &impl std::fmt::Debug,
    ) {
        let dfa = lexeme_cache.dfa(&[expr]).unwrap();
        for text in texts {
            let state = after(lexeme_cache, dfa, text.as_bytes());
            let &[(_, residual)] = lexeme_cache.residuals(dfa, state) else { continue };
            let from = Start { dfa, state, one: true };
            let walked = lexeme_cache.mask_by_walk(vocabulary, from, usize::MAX).unwrap().unwrap();
            let walked = said(&walked, vocabulary);
            let same = lexeme_cache.without_redundant(residual).unwrap();
            self.fewer += u32::from(same != residual);
            for expr in [residual, same] {
                let dfa = lexeme_cache.dfa(&[expr]).unwrap();
                let from = Start { dfa, state: StateId::START, one: true };
                let again = lexeme_cache.mask_by_walk(vocabulary, from, usize::MAX).unwrap().unwrap();
                let alternatives = lexeme_cache.mask_of_alternatives(vocabulary, expr).unwrap();
                self.masks += u32::from(alternatives.is_some());
                for mask in [again].into_iter().chain(alternatives) {
                    assert!(said(&mask, vocabulary) == walked, "{shown:?} behind {text}");
                }
            }
            let LexemeMaskAt { mask, .. } = lexeme_cache.mask(vocabulary, dfa, state).unwrap();
            assert!(said(&mask, vocabulary) == walked, "{shown:?} behind {text}");
        }
    }
}

fn parsed(exprs: &mut ExprSet, pattern: &str) -> ExprId {
    let options = PatternOptions { anchoring: Anchoring::Whole, ..PatternOptions::default() };
    parse_pattern(exprs, pattern, &options, &mut Utf8).unwrap()
}

/// Alternatives of which one is a run of characters, and such runs beside what says all that they say.
#[test]
fn the_mask_of_alternatives_is_that_of_a_walk() {
    let vocabulary = vocabulary_of(&["a", "b", "1", "-", "\"", "\",", "\n", "é", "xyz", "日本"], 4);
    let patterns = [
        r#"[^"]*"|a1-[^"]*"|[^"]*a1[^"]*""#,
        r#"(?:[^"]*|[^"\n]*a1b?-[a-z]*[^"]*|[^"]+é)""#,
        r#"[^"\n]*a1[^"]*"|[^"]*-b""#,
        r#"(?:[^"\n]*(?:a1|é)[^"]*|-[^"]*|[a-z]*日)""#,
        r#"[a-z]*-[^"]*"|[^"]*b1{2,3}""#,
        r#"(?:xyz|[a-z1]*a-[^"]*|[^"]*(?:xyz|日本)a1?)""#,
        r#"[^"]*ab[a1]*[^"]*"|(?:a[^"]*1|b[^"]*日)"|1"-a"#,
    ];
    let texts = ["", "a", "a1", "a1-", "a1b", "xyz", "-", "xyza", "b11", "ab", "日", "\u{E6}\u{97}", "xy", "\n", "é"];
    let beside = [None, Some(r#"[^"]*""#), Some(r#"[^"\n]*""#)];
    let mut found = FoundByAlternatives::default();
    for (pattern, beside) in patterns.iter().flat_map(|pattern| beside.iter().map(move |beside| (pattern, beside))) {
        let mut lexeme_cache = LexemeCache::new(12, Limits::default());
        let exprs = &mut lexeme_cache.deriver.exprs;
        let mut expr = parsed(exprs, pattern);
        if let Some(beside) = beside {
            let beside = parsed(exprs, beside);
            expr = exprs.and(&[expr, beside]);
        }
        found.hold(&vocabulary, &mut lexeme_cache, expr, &texts, &(pattern, beside));
    }
    let FoundByAlternatives { fewer, masks } = found;
    assert!(fewer > 40 && masks > 60, "{fewer} were said with less, {masks} found by alternatives");
}

/// Each two of some texts as alternatives and both at once; of some each says all that the other one says.
#[test]
fn alternatives_that_say_the_same_stay() {
    let vocabulary = vocabulary_of(&["a", "b", "1", "-", "\"", "\",", "\n", "xyz"], 3);
    let parts = [
        r#"[^"]*"#,
        r#"(?:aa?|[^"a])*"#,
        r#"(?:[^"b]|b{1,2})*"#,
        r#"[^"\n]*"#,
        r#"(?:aa?|[^"a\n])*"#,
        r#"[a-z]*"#,
        r#"(?:[a-z]|xyz)*"#,
        r#"[^"]*a1[^"]*"#,
        r#"a-[^"]*"#,
        r#"[^"]+"#,
    ];
    let mut found = FoundByAlternatives::default();
    for (one, other) in parts.iter().flat_map(|one| parts.iter().map(move |other| (one, other))) {
        for (is_and, is_inner) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut lexeme_cache = LexemeCache::new(12, Limits::default());
            let exprs = &mut lexeme_cache.deriver.exprs;
            let quote = exprs.literal(b"\"");
            let mut both = [one, other].map(|part| parsed(exprs, part));
            if !is_inner {
                both = both.map(|part| exprs.concat(part, quote));
            }
            let mut expr = if is_and { exprs.and(&both) } else { exprs.or(&both) };
            if is_inner {
                expr = exprs.concat(expr, quote);
            }
            found.hold(&vocabulary, &mut lexeme_cache, expr, &["", "a-"], &(one, other, is_and, is_inner));
        }
    }
    assert!(found.fewer > 200, "{} were said with less", found.fewer);
}

/// Of alternatives one may end with a byte with which the other pattern does not end.
#[test]
fn the_mask_of_patterns_that_end_with_several_bytes_is_that_of_a_walk() {
    let vocabulary = vocabulary_of(&["a", "b", "1", "-", "\"", "'"], 3);
    let patterns = [
        (r#"[^"']*a[^"']*""#, r#"[^"']*b[^"']*'|[^"'1]*""#),
        (r#"[^"']*a[^"']*["']"#, r#"[^"']*b[^"']*'|[^"'1]*""#),
        (r#"[^"']*""#, r#"[^"']*b[^"']*'|[^"'1]*""#),
        (r#"[^"']{1,90}""#, r#"[^"']*b[^"']*'|[^"'1]*""#),
    ];
    for (one, other) in patterns {
        let mut lexeme_cache = LexemeCache::new(12, Limits::default());
        let exprs = &mut lexeme_cache.deriver.exprs;
        let parts = [parsed(exprs, one), parsed(exprs, other)];
        let both = exprs.and(&parts);
        for text in ["", "-", "b", "1"] {
            let found = masks_after(&mut lexeme_cache, &vocabulary, both, text).unwrap();
            let Some((walked, masks)) = found else { continue };
            for mask in masks {
                assert!(said(&mask, &vocabulary) == said(&walked, &vocabulary), "{one} and {other} behind {text}");
            }
        }
    }
}

/// Runs of characters that no pattern ends with, and what may come between.
fn pieces() -> impl Strategy<Value = String> {
    let piece =
        prop::sample::select(vec![r#"[^"']*"#, r#"[^"'b]*"#, r#"[^"'1]*"#, r#"[^"']{1,90}"#, "[a-z]*", "a", "b", "1"]);
    prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat())
}

fn ending() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![r#"""#, "'", r#"["']"#])
}

/// The mask of a walk, and those that are found in other ways.
type Masks = (LexemeMask, Vec<Arc<LexemeMask>>);

/// The masks after a text; `None` where nothing is left to be read.
fn masks_after(
    lexeme_cache: &mut LexemeCache,
    vocabulary: &Tokens,
    expr: ExprId,
    text: &str,
) -> Result<Option<Masks>, LimitExceeded> {
    let dfa = lexeme_cache.dfa(&[expr])?;
    let mut state = StateId::START;
    for byte in text.bytes() {
        state = lexeme_cache.step(dfa, state, byte)?.0;
    }
    if lexeme_cache.dfas[dfa.0 as usize].is_dead_at_start() {
        return Ok(None);
    }
    let &[(_, residual)] = lexeme_cache.residuals(dfa, state) else { return Ok(None) };
    let from = Start { dfa, state, one: true };
    let walked = lexeme_cache.mask_by_walk(vocabulary, from, usize::MAX)?.expect("a walk without a limit ends");
    let open = lexeme_cache.mask_of_open_run(vocabulary, residual, from)?.map(Arc::new);
    let mask = lexeme_cache.mask(vocabulary, dfa, state)?.mask;
    Ok(Some((walked, open.into_iter().chain([mask]).collect())))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The mask of several patterns together, of which each alternative has an end of its own.
    #[test]
    fn the_mask_of_patterns_together_is_that_of_a_walk(
        patterns in prop::collection::vec(prop::collection::vec((pieces(), ending()), 1..3), 2..4),
        text in "[ab1-]{0,3}",
    ) {
        let vocabulary = SMALL.with(Clone::clone);
        let mut lexeme_cache = LexemeCache::new(12, Limits::default());
        let exprs = &mut lexeme_cache.deriver.exprs;
        let parts: Vec<ExprId> = patterns
            .iter()
            .map(|alternatives| {
                let alternatives: Vec<String> = alternatives.iter().map(|(one, end)| format!("{one}{end}")).collect();
                parsed(exprs, &alternatives.join("|"))
            })
            .collect();
        let both = exprs.and(&parts);
        // What takes too long to search is no mask at all.
        let Ok(Some((walked, masks))) = masks_after(&mut lexeme_cache, &vocabulary, both, &text) else { return Ok(()) };
        for mask in masks {
            prop_assert!(said(&mask, &vocabulary) == said(&walked, &vocabulary), "{patterns:?} behind {text}");
        }
    }
}
