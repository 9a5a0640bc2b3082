//! Canonical masks against their definition, by brute force.
//!
//! A token may follow a sequence exactly if the tokenizer writes the sequence and the token at the beginning of some
//! text of the grammar. So all texts are listed, up to a number, and each is encoded. If the list is complete, a mask
//! has exactly these tokens; otherwise at least these. Layers of the engine are switched off at random, so that each is
//! tested with only the layers below it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use stencilm_engine::{CompiledGrammar, GrammarMatcher, MatcherError, MatcherOptions, Switch, TokenSet};
use stencilm_grammar::{Grammar, GrammarBuilder, Node, NodeId, Report};
use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};

use crate::Counts;
use crate::canonical::random_tokenizer;
use crate::choices::Choices;
use crate::sentences::Sentences;
use crate::source;

/// The most prefixes of texts that are listed.
const MAX_BEGINNINGS: usize = 3_000;

/// The most sequences of tokens after which masks are compared.
const MAX_MASKS: usize = 60;

/// The parts of lexemes: texts that tokenizers merge and split in JSON and in plain text.
const PATTERNS: [&str; 26] = [
    "a",
    "ab",
    "b",
    "\"",
    r#"\{""#,
    "\": ?\"",
    "1",
    " ",
    "  ",
    "\n",
    "é",
    "true|false",
    ",",
    r"\}",
    "[ab]{0,3}",
    "[a-c1 ]{1,2}",
    "[ \n]{0,3}",
    "[a-p]{0,2}",
    "(a|b|é){0,3}",
    "\"[a-c]{0,3}\"",
    "[ -~]",
    "(,[ab]){0,2}",
    "[0-9]{1,3}",
    "( a|'s|ab){1,3}",
    "[ab]*",
    "[a-z ]*\"",
];

/// In most cases a grammar of few texts, otherwise one of any source.
pub fn grammar(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    if choices.chance(4) {
        return source::any(choices);
    }
    let mut builder = GrammarBuilder::default();
    let mut what = String::from("pieces");
    let mut nodes: Vec<NodeId> = Vec::new();
    for _ in 0..1 + choices.below(5) {
        let bounded = PATTERNS.len() - if choices.chance(5) { 0 } else { 2 };
        let pattern = PATTERNS[choices.below(bounded)];
        let options = PatternOptions { dialect: Dialect::Standard, anchoring: Anchoring::Whole };
        let expr = parse_pattern(&mut builder.exprs, pattern, &options, &mut Utf8).expect("it is well formed");
        let leaf = builder.lexeme(expr);
        what += &format!(" {pattern:?}");
        let node = match (choices.below(6), nodes.last()) {
            (0, _) => builder.repeat(leaf, 0, Some(1)),
            (1, _) => builder.repeat(leaf, 0, Some(2)),
            (2, Some(&before)) => {
                nodes.pop();
                builder.choice(&[before, leaf])
            }
            _ => leaf,
        };
        nodes.push(node);
    }
    let root = builder.sequence(&nodes);
    (builder.finish(root, Report::default()).ok(), what)
}

/// Compares masks with the encodings of all texts.
///
/// # Panics
/// If an invariant does not hold.
pub fn check(grammar: Grammar, what: String, choices: &mut Choices<'_>) -> Counts {
    let mut counts = Counts::default();
    if grammar.nodes().iter().any(|node| matches!(node, Node::Token(_))) {
        return counts;
    }
    let grammar = Arc::new(grammar);
    let mut sentences = Sentences::new(&grammar);
    let texts: Vec<Vec<u8>> =
        (0..4).filter_map(|_| sentences.next(choices, 60)).filter(|text| !text.is_empty()).collect();
    let off: Vec<Switch> = match choices.below(4) {
        0 => Vec::new(),
        1 => vec![*choices.pick(Switch::ALL)],
        _ => Switch::ALL.iter().copied().filter(|_| choices.chance(4)).collect(),
    };
    let what = format!("{what}, without {off:?}");
    // Walking the common texts would take longer than everything else.
    let learns = choices.chance(8);
    Switch::switch_off(off.iter().copied().chain((!learns).then_some(Switch::CanonicalCommonTexts)));
    let vocabulary = random_tokenizer(choices, &texts);
    Switch::switch_off(off);
    let compiled = vocabulary.map(|vocabulary| CompiledGrammar::new(grammar, vocabulary));
    if let Some(Ok(compiled)) = compiled
        && compare(&Arc::new(compiled), &what, choices, &mut counts).is_err()
    {
        counts.limits = 1;
    }
    Switch::switch_off([]);
    counts
}

/// By sequence of tokens, the tokens that may follow, including the stop token.
type Continuations = HashMap<Vec<u32>, BTreeSet<u32>>;

fn compare(
    compiled: &Arc<CompiledGrammar>,
    what: &str,
    choices: &mut Choices<'_>,
    counts: &mut Counts,
) -> Result<(), MatcherError> {
    let (continuations, is_all) = continuations(compiled)?;
    let mut sequences: Vec<&Vec<u32>> = continuations.keys().collect();
    sequences.sort_unstable();
    for _ in 0..sequences.len().min(MAX_MASKS) {
        let so_far = *choices.pick(&sequences);
        let expected = &continuations[so_far];
        let options = MatcherOptions { canonical: true, ..MatcherOptions::default() };
        let mut matcher = GrammarMatcher::new(compiled.clone(), &options)?;
        for &token in so_far {
            assert!(matcher.accept_token(token)?, "{token} of {so_far:?}: {what}");
        }
        let mut mask = TokenSet::empty(compiled.vocabulary().vocab_size());
        matcher.fill_mask(mask.words_mut())?;
        let found: BTreeSet<u32> = mask.iter().collect();
        counts.masks += 1;
        counts.decisions += found.len() as u64;
        let shown = |tokens: Vec<u32>| -> Vec<(u32, String)> {
            let spelled = |token| String::from_utf8_lossy(compiled.vocabulary().token_bytes(token).unwrap_or_default());
            tokens.into_iter().map(|token| (token, spelled(token).into_owned())).collect()
        };
        let missing = shown(expected.difference(&found).copied().collect());
        assert!(missing.is_empty(), "{missing:?} may come after {:?}: {what}", shown(so_far.clone()));
        if is_all {
            counts.texts += 1;
            let more = shown(found.difference(expected).copied().collect());
            assert!(more.is_empty(), "{more:?} may not come after {:?}: {what}", shown(so_far.clone()));
        }
    }
    Ok(())
}

/// The tokens that may follow each sequence, and whether the list is complete.
fn continuations(compiled: &Arc<CompiledGrammar>) -> Result<(Continuations, bool), MatcherError> {
    let vocabulary = compiled.vocabulary();
    let stop = vocabulary.stop_token_ids()[0];
    let mut continuations = Continuations::new();
    // Shortest first. Every byte is a token, so a mask shows which bytes may follow.
    let mut work = VecDeque::from([(GrammarMatcher::new(compiled.clone(), &MatcherOptions::default())?, Vec::new())]);
    let mut beginnings = 0;
    while let Some((mut matcher, text)) = work.pop_front() {
        if matcher.is_completed()
            && let Ok(text) = std::str::from_utf8(&text)
            && let Some(tokens) = vocabulary.encode(text)
        {
            for (at, &token) in tokens.iter().chain([&stop]).enumerate() {
                continuations.entry(tokens[..at].to_vec()).or_default().insert(token);
            }
        }
        beginnings += 1;
        if beginnings > MAX_BEGINNINGS {
            return Ok((continuations, false));
        }
        let mut mask = TokenSet::empty(vocabulary.vocab_size());
        matcher.fill_mask(mask.words_mut())?;
        for byte in 0..=u8::MAX {
            if mask.contains(u32::from(byte)) {
                let mut next = matcher.fork();
                assert!(next.accept_bytes(&[byte])?, "the mask has it");
                work.push_back((next, [&text[..], &[byte]].concat()));
            }
        }
    }
    Ok((continuations, true))
}
