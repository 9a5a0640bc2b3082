//! Budgets of tokens for whole texts: held against a search through all sequences of tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stencilm_engine::{
    CompiledGrammar, EngineError, GrammarMatcher, MatcherError, MatcherOptions, TokenSet, Vocabulary, naive,
};
use stencilm_grammar::{Grammar, JsonSchemaOptions, LarkOptions, from_json_schema};
use stencilm_support::{LimitExceeded, Watch};

use crate::random::Random;

const TOKENS: [&str; 26] = [
    "a", "b", "ab", "ba", "{", "}", "\"", "[", "]", ",", ":", "1", "2", "{\"", "\"}", "\":", "[[", "]]", "(", ")", "+",
    "bb\"", "aa", ",\"a", ",\"b", "</s>",
];
const STOP: u32 = 25;

/// The tokens, and after them each byte where every text can be spelled: only then is there a bound on what a token may ask for.
fn vocabulary(has_all_bytes: bool) -> Arc<Vocabulary> {
    let is_other = |byte: &[u8; 1]| has_all_bytes && !TOKENS.iter().any(|token| token.as_bytes() == byte);
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).filter(is_other).collect();
    let tokens = TOKENS.iter().map(|token| Some(token.as_bytes())).chain(bytes.iter().map(|byte| Some(&byte[..])));
    let tokens: Vec<Option<&[u8]>> = tokens.collect();
    let special = [(STOP, "</s>".to_owned())];
    Arc::new(Vocabulary::new(&tokens, tokens.len(), &[STOP], &special).unwrap())
}

fn compiled_for(grammar: &str, vocabulary: Arc<Vocabulary>) -> Arc<CompiledGrammar> {
    let grammar = Grammar::from_ebnf(grammar, "root").unwrap_or_else(|error| panic!("{error}\n{grammar}"));
    Arc::new(CompiledGrammar::new(Arc::new(grammar), vocabulary).unwrap())
}

fn compiled(grammar: &str) -> Arc<CompiledGrammar> {
    compiled_for(grammar, vocabulary(false))
}

fn with_budget(compiled: &Arc<CompiledGrammar>, tokens: usize) -> Result<GrammarMatcher, MatcherError> {
    GrammarMatcher::new(compiled.clone(), &MatcherOptions { token_budget: Some(tokens), ..MatcherOptions::default() })
}

/// Whether some tokens, at most so many, complete the text: all are tried.
fn closes_within(matcher: &mut GrammarMatcher, tokens: usize) -> bool {
    if matcher.is_completed() {
        return true;
    }
    if tokens == 0 {
        return false;
    }
    (0..STOP).any(|token| {
        let accepted = matcher.accept_token(token).unwrap();
        let closes = accepted && closes_within(matcher, tokens - 1);
        matcher.rollback(usize::from(accepted)).unwrap();
        closes
    })
}

/// The mask that a budget leaves, found by trying every token and all that may follow.
fn slow_mask(matcher: &GrammarMatcher, left: usize) -> TokenSet {
    let mut mask = naive::mask(matcher).unwrap();
    let mut probe = matcher.fork();
    for token in 0..STOP {
        if mask.contains(token) {
            assert!(probe.accept_token(token).unwrap());
            let closes = left > 0 && closes_within(&mut probe, left - 1);
            probe.rollback(1).unwrap();
            if !closes {
                mask.remove(token);
            }
        }
    }
    mask
}

fn mask_of(matcher: &mut GrammarMatcher) -> TokenSet {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    matcher.fill_mask(mask.words_mut()).unwrap();
    mask
}

/// Grammars, and whether the masks of a budget are all that the budget allows.
const GRAMMARS: [(&str, bool); 43] = [
    (r#"root ::= "a"*"#, true),
    (r#"root ::= "a" | "aba" | "bababa""#, true),
    (r#"root ::= "[" root? "]""#, true),
    (r#"root ::= "a" | "(" root ")" | root "+" root"#, true),
    (r#"root ::= "a" root "b" | "ab""#, true),
    (r#"root ::= "\"" [ab]* "\"""#, true),
    (r#"root ::= ("1" | "[" "1" ("," "1"){3,3} "]") "}"{0,2}"#, true),
    (r#"root ::= %object { member "a": "1"; optional "b": "[" "1" "," "2" "," "1" "]"; }"#, true),
    (r#"root ::= %object { others = "\"" [ab]* "\"": [12]; count {2,}; }"#, false),
    (r#"root ::= %array { unique; count {2,}; rest: [ab]{1,3}; }"#, false),
    (r#"root ::= %array { contains c {2,}; rest: "1"; rest c: "22"; }"#, false),
    // Two that are equal: again the last one, or two cheap ones.
    (r#"root ::= %array { repeated; rest: [ab]{1,3}; }"#, false),
    (r#"root ::= %array { repeated; place: "a" | "12121212"; place: "b"; rest: "12121212" | "1b2"; }"#, false),
    (r#"root ::= %array { repeated; rest: "[" ("a" | "b" | "1212")+ "]" | %array { unique; rest: [12]+; }; }"#, false),
    (r#"root ::= <[10]> "a" | "b" "b" "b" "b""#, true),
    (
        r#"value ::= "1" | %array { rest: value; }
        root ::= %object { member "a": value; others = "\"" [ab]* "\"": value; }"#,
        false,
    ),
    (r#"root ::= "a"{3,9} | "b"{5,} "1""#, true),
    // The cheap elements and keys are soon gone.
    (r#"root ::= %array { unique; count {2,3}; rest: "a" | "12121212" | "1b2"; }"#, false),
    (r#"root ::= %array { unique; count {3,}; rest: "[" ("a" | "b" | "1212") "]"; }"#, false),
    (
        r#"root ::= %array { unique; count {2,};
            rest: %object { member "a": "1" | "21212"; optional "b": "2"; }; }"#,
        false,
    ),
    (r#"root ::= %object { others = "\"a\"" | "\"abab\"" | "\"bb\"": [12]; count {2,}; }"#, false),
    (r#"root ::= %object { optional "a": "1"; optional "ab": "1212121"; count {2,}; }"#, false),
    // The keys that come first to mind are declared, with values that are dear.
    (r#"root ::= %object { order = any; optional "a": "121212"; others = "\"" [ab]* "\"": "1"; count {2,}; }"#, false),
    // What is being written may become what the path to the end writes, or what was there before.
    (r#"root ::= %array { unique; count {2,}; rest: "\"" [ab]{1,2} "\""; }"#, false),
    (r#"root ::= %array { unique; count {2,}; rest: [12]{1,2}; }"#, false),
    (r#"root ::= %array { unique; count {3,}; rest: "1" | "2" | "12" | "1212" | "22"; }"#, false),
    (r#"root ::= %array { unique; count {2,}; rest: "[" "\"" [ab]+ "\"" "," [12] "]"; }"#, false),
    (
        r#"root ::= %array { unique; count {2,}; rest: %object { others = "\"" [ab]{1,2} "\"": [12]; count {1,}; }; }"#,
        false,
    ),
    (r#"root ::= %array { unique; count {2,}; rest: %array { unique; count {1,}; rest: [ab]{1,2} | [12]; }; }"#, false),
    (r#"root ::= %array { unique; count {2,}; rest: [ab] ("1" | "2121212"); }"#, false),
    (r#"root ::= %array { unique; count {2,}; rest: "\"" [ab] ("1" | "2121212") "\""; }"#, false),
    (r#"root ::= %object { others = "\"" [ab] "2121212"? "\"": [12]; count {2,}; }"#, false),
    (r#"root ::= %object { others = "\"" [ab] ("2121212" "1"*)? "\"": [12]; count {2,}; }"#, false),
    (
        r#"root ::= %object { member "a": "1"; optional "ab": "2"; others = "\"" [ab]{1,3} "\"": "1"; count {3,}; }"#,
        false,
    ),
    // A key that another member has, or the object already, is none that is cheap.
    (
        r#"root ::= %object { optional "ab": "[" "1" ("," "1"){4} "]"; others = "\"" [a-z]* "\"": [12]; count {1,}; }"#,
        false,
    ),
    (
        r#"root ::= %object { optional "ab": "[1212121]"; others = "\"" [a-z]* "\"": [12]; } | "{\"ab\":\"ab\"1}""#,
        false,
    ),
    (r#"root ::= %object { others = "\"" "a"+ "\"": [12]; count {3,}; }"#, false),
    // What a reference takes hangs on the names before it.
    (r#"root ::= %declares("s": [ab]+) "," %refers("s")"#, false),
    (r#"root ::= (%declares("s": [ab]+) ":" | "(" %refers("s") ")")+"#, false),
    (r#"root ::= %declares("s": "\"" "a"+ "\"") (%refers("s") "1"){1,2}"#, false),
    (
        r#"root ::= (%declares("s": "12"{1,3}) | %declares("t": "ab"{1,2})) ("+" (%refers("s") | %refers("t"))){1,2}"#,
        false,
    ),
    (r#"root ::= ("[" %declares("s": [ab]{2,}) "]" | "(" [ab]{2,} ")") root? "+" %refers("s")"#, false),
    // After `:` the search finds `11` first, which takes a token more than the path that is known from `,`.
    (
        r#"root ::= <[9]> z y | <[10]> (x x | z y)
        x ::= "1" | "(" x ")"
        y ::= "b" | "[" y "]"
        z ::= "a" | "{" z "}""#,
        false,
    ),
];

#[test]
fn masks_leave_what_closes_in_time() {
    GRAMMARS.into_iter().for_each(|(grammar, is_exact)| leaves_what_closes_in_time(grammar, is_exact, false));
}

/// Where every text can be spelled, most tokens are left by what they ask for at most.
#[test]
fn what_is_left_by_its_bounds_closes_in_time() {
    GRAMMARS.into_iter().for_each(|(grammar, is_exact)| leaves_what_closes_in_time(grammar, is_exact, true));
}

fn leaves_what_closes_in_time(grammar: &str, is_exact: bool, has_all_bytes: bool) {
    let compiled = compiled_for(grammar, vocabulary(has_all_bytes));
    let mut free = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()).unwrap();
    let needed = free.tokens_to_end().unwrap();
    assert!(closes_within(&mut free, needed), "{grammar}: {needed}");
    if let Some(less) = needed.checked_sub(1) {
        assert_eq!(with_budget(&compiled, less).err(), Some(MatcherError::BudgetTooSmall { budget: less, needed }));
        assert!(!is_exact || !closes_within(&mut free, less), "{grammar}: {needed}");
    }
    for seed in 0..if has_all_bytes { 100 } else { 40 } {
        let mut random = Random::new(seed);
        let budget = needed + random.below(if has_all_bytes { 40 } else { 5 });
        let mut matcher = with_budget(&compiled, budget).unwrap();
        for left in (0..=budget).rev() {
            assert_eq!(matcher.token_budget_left(), Some(left as i64), "{grammar}");
            let mask = mask_of(&mut matcher);
            // Not all tokens are tried where each byte is one.
            if left <= 5 && !has_all_bytes {
                let slow = slow_mask(&matcher, left);
                assert!(mask.iter().all(|token| slow.contains(token)), "{grammar}: {mask:?} {slow:?} {left}");
                assert!(!is_exact || mask == slow, "{grammar}: {mask:?} {slow:?} with {left} left");
            }
            // Of single bytes, hardly any make a key that an object declares.
            let mut choices: Vec<u32> = mask.iter().filter(|&token| token < STOP).collect();
            if choices.is_empty() || random.chance(4) {
                choices = mask.iter().collect();
            }
            let token = *random.pick(&choices);
            assert_eq!(matcher.is_allowed(token), Ok(true), "{grammar}");
            assert_eq!(matcher.accept_token(token), Ok(true), "{grammar}");
            if token == STOP {
                break;
            }
            // What was found to fit is found again.
            let still = matcher.tokens_to_end().unwrap();
            assert!(still < left, "{grammar}: {still} needed with {left} left before the token");
        }
        assert!(matcher.is_terminated(), "{grammar}: no stop token within {budget}");
    }
}

#[test]
fn an_additional_key_is_none_that_is_declared() {
    for (object, shortest) in [
        (
            r#"%object { order = any; optional "a": "121212"; others = "\"" [ab]* "\"": "1"; count {2,}; }"#,
            "{\"\":1,\"b\":1}",
        ),
        // The declared one is the shortest of all.
        (r#"%object { optional "": "121212"; others = "\"" [ab]* "\"": "1"; count {2,}; }"#, "{\"a\":1,\"b\":1}"),
    ] {
        let mut matcher = with_budget(&compiled(&format!("root ::= {object}")), 100).unwrap();
        assert_eq!(matcher.shortest_completion(100).as_deref(), Ok(shortest.as_bytes()), "{object}");
        let needed = matcher.tokens_to_end().unwrap();
        assert_eq!(matcher.accept_bytes(shortest.as_bytes()), Ok(true));
        assert_eq!(matcher.token_budget_left(), Some(100 - needed as i64), "{object}");
    }
}

#[test]
fn far_from_the_end_masks_are_as_ever() {
    for (grammar, _) in GRAMMARS {
        let compiled = compiled(grammar);
        let mut free = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()).unwrap();
        let mut matcher = with_budget(&compiled, 100_000).unwrap();
        let mut random = Random::new(1);
        for _ in 0..30 {
            let mask = mask_of(&mut matcher);
            assert_eq!(mask, mask_of(&mut free), "{grammar}");
            assert!(!matcher.is_narrowed());
            let choices: Vec<u32> = mask.iter().collect();
            let token = *random.pick(&choices);
            assert_eq!(matcher.accept_token(token), Ok(true));
            assert_eq!(free.accept_token(token), Ok(true));
            if token == STOP {
                break;
            }
        }
    }
}

#[test]
fn rolling_back_and_forking_keep_the_budget() {
    let compiled = compiled(r#"root ::= "[" root? "]""#);
    let mut random = Random::new(7);
    let mut matcher = with_budget(&compiled, 9).unwrap();
    for _ in 0..400 {
        if matcher.is_terminated() || (matcher.num_accepted_tokens() > 0 && random.chance(3)) {
            matcher.rollback(1 + random.below(matcher.num_accepted_tokens())).unwrap();
            continue;
        }
        let left = matcher.token_budget_left().unwrap() as usize;
        let mut fork = matcher.fork();
        let mask = mask_of(&mut matcher);
        assert_eq!(mask, mask_of(&mut fork));
        assert!(left > 6 || mask == slow_mask(&matcher, left));
        let choices: Vec<u32> = mask.iter().collect();
        assert_eq!(matcher.accept_token(*random.pick(&choices)), Ok(true));
    }
    matcher.reset();
    assert_eq!(matcher.token_budget_left(), Some(9));
}

#[test]
fn who_ignores_the_mask_is_led_out_by_the_shortest_path() {
    let compiled = compiled(r#"root ::= "[" root? "]""#);
    let mut matcher = with_budget(&compiled, 4).unwrap();
    for _ in 0..3 {
        assert_eq!(matcher.accept_token(7), Ok(true));
    }
    // Three are open, and one token is left: `]]` and `]` take two.
    assert_eq!(matcher.tokens_to_end(), Ok(2));
    let mut tokens = 3;
    while !matcher.is_completed() {
        let mask = mask_of(&mut matcher);
        assert_eq!(mask.len(), 1);
        assert_eq!(matcher.accept_token(mask.iter().next().unwrap()), Ok(true));
        tokens += 1;
    }
    assert_eq!((tokens, matcher.token_budget_left()), (5, Some(-1)));
    assert_eq!(mask_of(&mut matcher).iter().collect::<Vec<_>>(), [STOP]);
}

#[test]
fn texts_spend_the_fewest_tokens_that_spell_them() {
    let compiled = compiled(r#"root ::= [ab]*"#);
    let mut matcher = with_budget(&compiled, 5).unwrap();
    assert_eq!(matcher.accept_bytes(b"abaab"), Ok(true));
    assert_eq!(matcher.token_budget_left(), Some(2));
    matcher.rollback(1).unwrap();
    assert_eq!(matcher.token_budget_left(), Some(5));
}

#[test]
fn budgets_of_parts_and_of_texts_do_not_mix() {
    let grammar = "start: part\npart[max_tokens=3]: /a+/\n";
    let grammar = Grammar::from_lark(grammar, &LarkOptions::default()).unwrap();
    let vocabulary = Vocabulary::new(&["a"].map(Some), 2, &[1], &[]).unwrap();
    let compiled = Arc::new(CompiledGrammar::new(Arc::new(grammar), Arc::new(vocabulary)).unwrap());
    assert!(matches!(with_budget(&compiled, 5), Err(MatcherError::Engine(_))));
}

/// A key that begins within a token is held against the others, too, whichever token a path to the end was found after.
#[test]
fn keys_that_begin_within_a_token_are_none_that_the_object_has() {
    let keys = r#""\"" [ab] ("2121212" [12]*)? "\"""#;
    for (seen, new) in [("a", ",\"b"), ("b", ",\"a")] {
        let compiled = compiled(&format!("root ::= %object {{ others = {keys}: [12]; count {{2,}}; }}"));
        let mut matcher = GrammarMatcher::new(compiled, &MatcherOptions::default()).unwrap();
        assert!(matcher.accept_bytes(format!("{{\"{seen}\":1").as_bytes()).unwrap());
        let mut matcher = matcher.fork_within(4).unwrap();
        let allowed: Vec<&str> = mask_of(&mut matcher).iter().map(|token| TOKENS[token as usize]).collect();
        assert_eq!(allowed, [new], "{seen}");
    }
}

/// Where an object has the few keys that are cheap, a declared one is left that is dear, however deep the text is within it.
#[test]
fn keys_that_may_run_out_are_left_for_what_is_dear() {
    const WANTED: [&str; 5] = ["[", "{", "\"", "b", ":"];
    let dear = "12".repeat(20);
    let few = format!(r#"%object {{ order = any; optional "a": "{dear}"; others = "\"b\"": x; count {{2,}}; }}"#);
    let either = format!(r#"%object {{ others = "\"b\"" | "\"{dear}\"": x; count {{2,}}; }}"#);
    let within = format!("%array {{ count {{2,}}; rest: {few}; }}");
    for object in [few, either, within] {
        let compiled = compiled_for(&format!("root ::= {object}\nx ::= \"[\" x? \"]\""), vocabulary(true));
        let needed = with_budget(&compiled, 1_000).unwrap().tokens_to_end().unwrap();
        for more in [0, 40, 150, 250, 400] {
            let mut matcher = with_budget(&compiled, needed + more).unwrap();
            while !matcher.is_terminated() {
                let mask = mask_of(&mut matcher);
                let wanted = WANTED.iter().filter_map(|text| TOKENS.iter().position(|token| token == text));
                let token = wanted.map(|token| token as u32).find(|&token| mask.contains(token));
                let token = token.or_else(|| mask.iter().next()).expect("something may come");
                assert_eq!(matcher.accept_token(token), Ok(true));
            }
            assert!(matcher.token_budget_left() >= Some(0), "{object}: {more} more than needed");
        }
    }
}

/// The shortest text of an object within another value is found where a new key takes less than a declared one.
#[test]
fn an_object_within_has_the_shortest_keys() {
    let object = r#"%object { order = any; optional "a": "121212"; others = "\"" [ab]* "\"": "1"; count {1,}; }"#;
    let mut matcher = with_budget(&compiled(&format!(r#"root ::= "[" {object} "]" | "111111111""#)), 100).unwrap();
    assert_eq!(matcher.shortest_completion(100).as_deref(), Ok(&b"[{\"\":1}]"[..]));
}

/// A token that the grammar names is read as what it names, also one that would stop: it is no end for which nothing is left.
#[test]
fn a_stop_token_that_the_grammar_names_ends_no_text() {
    let compiled = compiled(r#"root ::= "a" (<[25]> "b")*"#);
    for (budget, allowed) in [(1, None), (2, None), (3, Some(STOP))] {
        let mut matcher = with_budget(&compiled, budget).unwrap();
        assert_eq!(matcher.accept_token(0), Ok(true));
        let mut mask = TokenSet::empty(TOKENS.len());
        let filled = matcher.fill_mask(mask.words_mut());
        assert_eq!(filled.is_ok(), allowed.is_some(), "{filled:?}");
        assert!(filled.is_ok() || filled == Err(MatcherError::NoStopToken), "{filled:?}");
        assert_eq!(mask.iter().next(), allowed, "{budget}");
    }
}

const GRAPH: &str = r#"{"type": "object", "properties": {
    "nodes": {"type": "array", "items": {"type": "object", "properties": {
        "id": {"type": "string", "x-stencilm-declares": "ids"}}, "required": ["id"], "additionalProperties": false}},
    "edges": {"type": "array", "minItems": 2, "items": {"type": "object", "properties": {
        "from": {"type": "string", "x-stencilm-refers": "ids"}, "to": {"type": "string", "x-stencilm-refers": "ids"}},
        "required": ["from", "to"], "additionalProperties": false}}},
    "required": ["nodes", "edges"], "additionalProperties": false}"#;

/// A mask of a call that is interrupted when it has looked so many times whether to go on, and is begun anew then.
fn interrupted_mask_of(matcher: &mut GrammarMatcher, looks: usize) -> TokenSet {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    let seen = Arc::new(AtomicUsize::new(0));
    let gives_way = move || seen.fetch_add(1, Ordering::Relaxed) >= looks;
    let watch = Watch::new(u64::MAX, None).giving_way(Arc::new(gives_way));
    let interrupted = Err(MatcherError::Engine(EngineError::Limit(LimitExceeded::Interrupted)));
    let filled = watch.over(|| matcher.fill_mask(mask.words_mut()));
    assert!(filled.is_ok() || filled == interrupted, "{filled:?}");
    mask_of(matcher)
}

/// A graph whose edges name its nodes, with tokens that span its parts.
fn graph() -> (Arc<Grammar>, Arc<Vocabulary>, Vec<String>) {
    let mut tokens: Vec<String> = (b' '..0x7f).map(|byte| char::from(byte).to_string()).collect();
    let pieces = [
        r#"{"nodes":[{"id":""#,
        r#""}],"edges":[{"from":""#,
        r#"","to":""#,
        r#""},{"id":""#,
        r#""}]}"#,
        "ab",
        "aaaaaaaaa",
        r#""},{"from":""#,
        "</s>",
    ];
    tokens.extend(pieces.map(str::to_owned));
    let stop = tokens.len() as u32 - 1;
    let bytes: Vec<Option<&[u8]>> = tokens.iter().map(|token| Some(token.as_bytes())).collect();
    let vocabulary = Arc::new(Vocabulary::new(&bytes, bytes.len(), &[stop], &[(stop, "</s>".to_owned())]).unwrap());
    let separators = Some((",".to_owned(), ":".to_owned()));
    let options = JsonSchemaOptions { any_whitespace: false, separators, ..JsonSchemaOptions::default() };
    (Arc::new(from_json_schema(GRAPH, &options).unwrap()), vocabulary, tokens)
}

/// What was found for the masks before is no reason to leave fewer tokens: that a name is longer by now makes a search vain, and
/// one such search is enough.
#[test]
fn masks_before_take_no_tokens_from_a_mask() {
    let (grammar, vocabulary, tokens) = graph();
    let [with, without] = [true, false].map(|fills| {
        let compiled = Arc::new(CompiledGrammar::new(grammar.clone(), vocabulary.clone()).unwrap());
        let mut matcher = with_budget(&compiled, 90).unwrap();
        let one_by_one = |text: &'static str| text.split("").filter(|part| !part.is_empty());
        let begins = one_by_one(r#"{"nodes":[{"id":"#).chain([r#""}]}"#]).chain(one_by_one("G1]S#[&I21S"));
        for written in begins {
            if fills {
                mask_of(&mut matcher);
            }
            let token = tokens.iter().position(|token| token == written).unwrap();
            assert_eq!(matcher.accept_token(token as u32), Ok(true));
        }
        let mask = mask_of(&mut matcher);
        mask.iter().map(|token| tokens[token as usize].clone()).collect::<Vec<_>>()
    });
    assert_eq!(with, without);
    assert_eq!(with, [r#""}],"edges":[{"from":""#, r#""},{"id":""#]);
}

/// What a call had found when it was interrupted changes nothing: how long it takes hangs on the machine. Nor does what other texts
/// have found.
#[test]
fn masks_hang_on_their_own_text_alone() {
    let (grammar, vocabulary, tokens) = graph();
    // Long names, to which references are long.
    let in_name = |token: &u32| tokens[*token as usize].chars().all(char::is_alphanumeric);
    masks_are_equal(&grammar, &vocabulary, 60..100, &in_name);
    for (grammar, _) in GRAMMARS {
        let grammar = Arc::new(Grammar::from_ebnf(grammar, "root").unwrap());
        masks_are_equal(&grammar, &self::vocabulary(true), 8..40, &|token| *token < STOP);
    }
}

/// A token that a mask leaves, one that does not end the text where there are such.
fn pick(mask: &TokenSet, random: &mut Random) -> u32 {
    let all: Vec<u32> = mask.iter().collect();
    let liked: Vec<u32> = all.iter().copied().filter(|&token| token < STOP).collect();
    let is_any = liked.is_empty() || random.chance(4);
    *random.pick(if is_any { &all } else { &liked })
}

/// The masks of a random text, and the budget of it; `meanwhile` is called before each of them.
fn masks_of_text(
    compiled: &Arc<CompiledGrammar>,
    seed: u64,
    budget: usize,
    mut meanwhile: impl FnMut(),
) -> Vec<(TokenSet, Option<i64>)> {
    let mut random = Random::new(seed);
    let mut matcher = with_budget(compiled, budget).unwrap();
    let mut masks = Vec::new();
    while !matcher.is_terminated() {
        meanwhile();
        let mask = mask_of(&mut matcher);
        assert_eq!(matcher.accept_token(pick(&mask, &mut random)), Ok(true));
        masks.push((mask, matcher.token_budget_left()));
    }
    masks
}

/// Whatever other texts of the grammar were masked before or are meanwhile, under whatever budgets, the masks of a text are the same.
#[test]
fn masks_do_not_hang_on_other_texts() {
    const LONG: [&str; 4] = [
        r#"root ::= %array { unique; count {12,}; rest: [12]{1,4}; }"#,
        r#"root ::= %array { unique; count {8,}; rest: "\"" [ab]{1,4} "\""; }"#,
        r#"root ::= %array { unique; count {6,}; rest: %object { member "a": [12]{1,2}; optional "b": [12]; }; }"#,
        r#"root ::= %array { repeated; count {6,}; rest: [12]{1,3} | "\"" [ab]{2} "\""; }"#,
    ];
    for (place, grammar) in GRAMMARS.map(|(grammar, _)| grammar).into_iter().chain(LONG).enumerate() {
        for seed in 0..2 {
            let vocabulary = vocabulary(seed % 2 == 0);
            let mut random = Random::new(1_000 * place as u64 + seed);
            let [alone, shared] = [(); 2].map(|()| compiled_for(grammar, vocabulary.clone()));
            let needed = with_budget(&alone, 1_000).unwrap().tokens_to_end().unwrap();
            let mut budget = || needed + random.below(needed + 8);
            let own = budget();
            let mut others: Vec<GrammarMatcher> = (0..3).map(|_| with_budget(&shared, budget()).unwrap()).collect();
            let first = masks_of_text(&compiled_for(grammar, vocabulary.clone()), seed, own, || {});
            let among = masks_of_text(&shared, seed, own, || {
                for _ in 0..random.below(6) {
                    let at = random.below(others.len());
                    let other = &mut others[at];
                    if other.is_terminated() {
                        other.reset();
                    }
                    let mask = mask_of(other);
                    assert_eq!(other.accept_token(pick(&mask, &mut random)), Ok(true));
                }
            });
            for (step, ((one, left), (other, _))) in first.iter().zip(&among).enumerate() {
                assert_eq!(one, other, "{grammar}: seed {seed}, mask {step} of {}, {left:?} left", first.len());
            }
            assert_eq!(first.len(), among.len());
        }
    }
}

/// What one step of a history accepts.
#[derive(Clone, Copy)]
enum Input {
    Token(u32),
    /// The bytes of a token, as a text.
    Text(u32),
}

fn accept(matcher: &mut GrammarMatcher, input: Input) -> bool {
    let accepted = match input {
        Input::Token(token) => matcher.accept_token(token),
        Input::Text(token) => matcher.accept_bytes(TOKENS[token as usize].as_bytes()),
    };
    accepted.unwrap()
}

/// A mask, and what the budget took from it.
fn mask_and_withheld(matcher: &mut GrammarMatcher) -> Result<(TokenSet, Option<Vec<u32>>), MatcherError> {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    let filled = matcher.fill_mask(mask.words_mut());
    filled.map(|_| (mask, matcher.withheld().map(<[u32]>::to_vec)))
}

/// Whatever was asked, accepted and taken back before, a mask is that of a matcher that has come straight to the same text, and who
/// asks for it again gets it again.
#[test]
fn a_mask_that_is_asked_for_again_is_that_of_its_step() {
    for (place, (grammar, _)) in GRAMMARS.into_iter().enumerate() {
        let compiled = compiled(grammar);
        let needed = with_budget(&compiled, 1_000).unwrap().tokens_to_end().unwrap();
        for seed in 0..4 {
            let mut random = Random::new(1_000 * place as u64 + seed);
            let budget = needed + random.below(5);
            let mut matchers = vec![(with_budget(&compiled, budget).unwrap(), Vec::<Input>::new())];
            for _ in 0..60 {
                let at = random.below(matchers.len());
                let (matcher, history) = &mut matchers[at];
                if matcher.is_terminated() || random.chance(4) {
                    let count = random.below(history.len() + 1);
                    matcher.rollback(count).unwrap();
                    history.truncate(history.len() - count);
                }
                let mut straight = with_budget(&compiled, budget).unwrap();
                for &input in &*history {
                    _ = mask_and_withheld(&mut straight);
                    assert!(accept(&mut straight, input));
                }
                let expected = mask_and_withheld(&mut straight);
                for _ in 0..1 + random.below(3) {
                    let found = mask_and_withheld(matcher);
                    assert_eq!(found, expected, "{grammar}: seed {seed}, behind {} steps", history.len());
                }
                let fork = random.chance(6).then(|| (matcher.fork(), history.clone()));
                let plain = naive::mask(matcher).unwrap();
                let mask = expected.as_ref().map_or(&plain, |(mask, _)| mask);
                matchers.extend(fork);
                if mask.is_empty() {
                    continue;
                }
                // Now and then one that the budget has no room for.
                let token = pick(if random.chance(12) { &plain } else { mask }, &mut random);
                let is_text = token != STOP && random.chance(6);
                let input = if is_text { Input::Text(token) } else { Input::Token(token) };
                let (matcher, history) = &mut matchers[at];
                if accept(matcher, input) {
                    history.push(input);
                }
            }
        }
    }
}

/// Random texts of a grammar within budgets: calls that were interrupted, with other texts before, give the masks of a grammar that
/// is new.
fn masks_are_equal(
    grammar: &Arc<Grammar>,
    vocabulary: &Arc<Vocabulary>,
    budgets: std::ops::Range<usize>,
    is_liked: &dyn Fn(&u32) -> bool,
) {
    let compile = || Arc::new(CompiledGrammar::new(grammar.clone(), vocabulary.clone()).unwrap());
    let interrupted = compile();
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let budget = budgets.start + random.below(budgets.len());
        let Ok(mut other) = with_budget(&interrupted, budget) else { continue };
        let mut one = with_budget(&compile(), budget).unwrap();
        loop {
            let mask = mask_of(&mut one);
            let same = interrupted_mask_of(&mut other, 1 << random.below(12));
            assert_eq!(mask, same, "{grammar}: seed {seed}, with {:?} left", one.token_budget_left());
            let all: Vec<u32> = mask.iter().collect();
            let liked: Vec<u32> = all.iter().copied().filter(is_liked).collect();
            let is_liked = random.chance(2) && !liked.is_empty();
            let token = *random.pick(if is_liked { &liked } else { &all });
            for matcher in [&mut one, &mut other] {
                assert_eq!(matcher.accept_token(token), Ok(true));
            }
            if one.is_terminated() {
                break;
            }
        }
    }
}
