//! Texts with holes against a recogniser that does not know holes: whether they can be completed, which prefixes the
//! quotient by the following text has, and what its masks allow.
//!
//! If a text is said to be completable, it is completed; otherwise all short fills are tried.

use std::sync::Arc;

use stencilm_engine::{CompiledGrammar, GrammarMatcher, MatcherError, MatcherOptions, TokenSet};
use stencilm_grammar::{ErrorKind, Grammar, GrammarError, Holes, Node, Piece};

use crate::Counts;
use crate::choices::Choices;
use crate::oracle::{MAX_LEN, Oracle, Text};
use crate::sentences::Sentences;
use crate::setting::Ended;
use crate::source::Source;
use crate::vocabularies::Tokens;

/// Longest text that is cut.
const LONGEST: usize = 40;
/// The longest fills that are tried, and the number of different bytes in them.
const TRIED: usize = 2;
const ALPHABET: usize = 10;
/// The most prefixes and tokens that are checked.
const ASKED: usize = 12;
/// The longest fill that is requested, in bytes.
const MOST: usize = 200;

impl From<GrammarError> for Ended {
    fn from(error: GrammarError) -> Ended {
        match error.kind {
            ErrorKind::Unsupported | ErrorKind::Limit => Ended,
            _ => panic!("not an error that may come here: {error}"),
        }
    }
}

/// A text before a hole and the texts after it, with holes between them.
struct Case {
    before: Vec<u8>,
    after: Vec<Vec<u8>>,
}

impl Case {
    fn pieces<'t>(&'t self, before: &'t [u8]) -> Vec<Piece<'t>> {
        let after = self.after.iter().flat_map(|text| [Piece::Hole, Piece::Text(text)]);
        std::iter::once(Piece::Text(before)).chain(after).collect()
    }

    /// The same with a text in place of the first hole.
    fn filled(&self, before: &[u8]) -> Case {
        let (first, rest) = self.after.split_first().expect("there is a hole");
        Case { before: [before, first].concat(), after: rest.to_vec() }
    }
}

/// Cuts a text at random positions, and now and then inserts a piece of another text.
fn random_case(choices: &mut Choices<'_>, texts: &[Vec<u8>]) -> (Case, bool) {
    let text = choices.pick(texts);
    let mut cuts: Vec<usize> =
        (0..if choices.chance(3) { 4 } else { 2 }).map(|_| choices.below(text.len() + 1)).collect();
    cuts.sort_unstable();
    let ends = cuts.iter().copied().skip(2).step_by(2).chain([text.len()]);
    let starts = cuts.iter().copied().skip(1).step_by(2);
    let mut after: Vec<Vec<u8>> = starts.zip(ends).map(|(from, to)| text[from..to].to_vec()).collect();
    let mut before = text[..cuts[0]].to_vec();
    let is_cut_only = !choices.chance(3);
    if !is_cut_only {
        let other = choices.pick(texts);
        let from = choices.below(other.len() + 1);
        match choices.below(3) {
            0 => before = other[..from].to_vec(),
            1 => *after.last_mut().expect("there is a hole") = other[from..].to_vec(),
            _ => before.extend(other.get(from)),
        }
    }
    // Adjacent holes are one hole.
    let last = after.pop().expect("there is a hole");
    after.retain(|text| !text.is_empty());
    after.push(last);
    (Case { before, after }, is_cut_only)
}

/// The answer of a recogniser without holes.
fn is_text(oracle: &mut Oracle<'_>, text: &[u8]) -> Option<bool> {
    if text.len() > MAX_LEN { None } else { oracle.matches(&Text::of(text)) }
}

/// Whether some short fills complete a text; `None` if that is not known.
fn short_fills(oracle: &mut Oracle<'_>, case: &Case, fills: &[Vec<u8>]) -> Option<bool> {
    let mut begun = vec![case.before.clone()];
    for after in &case.after {
        // A single hole is filled with all fills, several holes only with those of at most one byte each.
        let most = if case.after.len() == 1 { TRIED } else { 1 };
        let fitting = || fills.iter().filter(|fill| fill.len() <= most);
        begun = begun.iter().flat_map(|text| fitting().map(|fill| [text, &fill[..], after].concat())).collect();
    }
    for text in begun {
        if is_text(oracle, &text)? {
            return Some(true);
        }
    }
    Some(false)
}

/// All texts of at most `len` of the bytes.
fn all_fills(texts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut bytes: Vec<u8> = texts.concat();
    bytes.sort_unstable();
    bytes.dedup();
    bytes.truncate(ALPHABET);
    let mut fills = vec![Vec::new()];
    let mut longest = fills.clone();
    for _ in 0..TRIED {
        longest = longest.iter().flat_map(|fill| bytes.iter().map(|&byte| [&fill[..], &[byte]].concat())).collect();
        fills.extend(longest.iter().cloned());
    }
    fills
}

/// Completes a case by filling one hole after the other.
fn completed(holes: &mut Holes, tokens: &Tokens, case: Case, what: &str) -> Result<Option<Vec<u8>>, Ended> {
    let mut case = case;
    while !case.after.is_empty() {
        let Some(mut matcher) = matcher(holes.quotient(&case.pieces(&case.before))?, tokens)? else { return Ok(None) };
        assert!(matcher.accept_bytes(&case.before)?, "{:?} begins a text of the quotient: {what}", show(&case));
        let fill = match matcher.shortest_completion(MOST) {
            Ok(fill) => fill,
            Err(MatcherError::CompletionTooLong { .. } | MatcherError::NoTextCompletes) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        case = case.filled(&[&case.before[..], &fill].concat());
    }
    Ok(Some(case.before))
}

fn matcher(grammar: Grammar, tokens: &Tokens) -> Result<Option<GrammarMatcher>, Ended> {
    let Ok(compiled) = CompiledGrammar::new(Arc::new(grammar), tokens.vocabulary()) else { return Ok(None) };
    Ok(Some(GrammarMatcher::new(Arc::new(compiled), &MatcherOptions::default())?))
}

fn show(case: &Case) -> String {
    let texts = std::iter::once(&case.before).chain(&case.after);
    texts.map(|text| format!("{:?}", String::from_utf8_lossy(text))).collect::<Vec<_>>().join(" HOLE ")
}

/// The grammar of the beginnings of texts up to the end of a hole that is followed by the rest of a random text.
pub fn quotient(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    let source = *choices.pick(&[Source::Containers, Source::JsonSchema, Source::Nodes]);
    let (Some(grammar), what) = source.grammar(choices) else { return (None, String::new()) };
    let grammar = Arc::new(grammar);
    let mut sentences = Sentences::new(&grammar);
    let texts: Vec<Vec<u8>> = (0..4).filter_map(|_| sentences.next(choices, LONGEST)).collect();
    if texts.is_empty() {
        return (None, String::new());
    }
    let (case, _) = random_case(choices, &texts);
    let quotient = Holes::new(grammar).quotient(&case.pieces(&case.before));
    (quotient.ok(), format!("{} of {what}", show(&case)))
}

/// Checks one grammar on a few texts with holes.
pub fn check(grammar: Grammar, what: String, choices: &mut Choices<'_>) -> Counts {
    let grammar = Arc::new(grammar);
    let mut sentences = Sentences::new(&grammar);
    let texts: Vec<Vec<u8>> = (0..6).filter_map(|_| sentences.next(choices, LONGEST)).collect();
    if texts.is_empty() {
        return Counts::default();
    }
    let tokens = Tokens::random(choices, &texts);
    let has_tokens = grammar.nodes().iter().any(|node| matches!(node, Node::Token(_)));
    let holes = Holes::new(grammar.clone());
    let mut checks = Checks { grammar, has_tokens, holes, tokens, texts, counts: Counts::default() };
    for _ in 0..3 {
        let (case, is_cut_only) = random_case(choices, &checks.texts);
        let shown = format!("{} of {what}", show(&case));
        if checks.check_case(&case, is_cut_only, choices, &shown).is_err() {
            checks.counts.limits += 1;
        }
    }
    checks.counts
}

/// What the cases of a grammar are compared with.
struct Checks {
    grammar: Arc<Grammar>,
    /// Whether the grammar reads single tokens, which the recogniser of texts does not know.
    has_tokens: bool,
    holes: Holes,
    tokens: Tokens,
    texts: Vec<Vec<u8>>,
    counts: Counts,
}

impl Checks {
    fn check_case(
        &mut self,
        case: &Case,
        is_cut_only: bool,
        choices: &mut Choices<'_>,
        shown: &str,
    ) -> Result<(), Ended> {
        let (grammar, vocabulary) = (self.grammar.clone(), self.tokens.vocabulary());
        let mut oracle = Oracle::new(&grammar, &vocabulary);
        let found = self.holes.is_completable(&case.pieces(&case.before))?;
        self.counts.decisions += 1;
        assert!(found || !is_cut_only, "a text with pieces cut out can be completed: {shown}");
        self.check_fills(&mut oracle, case, found, shown)?;
        let quotient = match self.holes.quotient(&case.pieces(&case.before)) {
            Ok(quotient) => quotient,
            Err(error) if error.kind == ErrorKind::Unsatisfiable => {
                assert!(!found, "{shown}");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.check_texts(&mut oracle, &quotient, case, choices, shown);
        self.check_mask(quotient, case, found, choices, shown)
    }

    /// A case that can be completed is completed, and one that cannot is not completed by any short fills.
    fn check_fills(&mut self, oracle: &mut Oracle<'_>, case: &Case, found: bool, shown: &str) -> Result<(), Ended> {
        if !found {
            assert_ne!(short_fills(oracle, case, &all_fills(&self.texts)), Some(true), "{shown}");
        } else if !self.has_tokens {
            let again = Case { before: case.before.clone(), after: case.after.clone() };
            if let Some(text) = completed(&mut self.holes, &self.tokens, again, shown)? {
                self.counts.texts += 1;
                assert_ne!(is_text(oracle, &text), Some(false), "{:?}: {shown}", String::from_utf8_lossy(&text));
            }
        }
        Ok(())
    }

    /// Which texts the quotient contains.
    fn check_texts(
        &mut self,
        oracle: &mut Oracle<'_>,
        quotient: &Grammar,
        case: &Case,
        choices: &mut Choices<'_>,
        shown: &str,
    ) {
        let vocabulary = self.tokens.vocabulary();
        let mut of_quotient = Oracle::new(quotient, &vocabulary);
        for _ in 0..ASKED {
            let text = choices.pick(&self.texts);
            let mut text = text[..choices.below(text.len() + 1)].to_vec();
            if choices.chance(4) {
                text.extend(choices.pick(&self.texts).first());
            }
            let filled = case.filled(&text);
            let expected = match filled.after[..] {
                [] => is_text(oracle, &filled.before),
                _ => self.holes.is_completable(&filled.pieces(&filled.before)).ok(),
            };
            if let (Some(expected), Some(is_there)) = (expected, is_text(&mut of_quotient, &text)) {
                self.counts.decisions += 1;
                // A text that does not begin with the text before the hole need not be in the list.
                let is_left_out = !is_there && !text.starts_with(&case.before);
                let text = String::from_utf8_lossy(&text);
                assert!(is_there == expected || self.has_tokens || is_left_out, "{text:?} {is_there}: {shown}");
            }
        }
    }

    /// The mask at the beginning of the hole.
    fn check_mask(
        &mut self,
        quotient: Grammar,
        case: &Case,
        found: bool,
        choices: &mut Choices<'_>,
        shown: &str,
    ) -> Result<(), Ended> {
        let Some(mut matcher) = matcher(quotient, &self.tokens)? else { return Ok(()) };
        let is_begun = matcher.accept_bytes(&case.before)?;
        assert_eq!(is_begun, found, "the text before the hole: {shown}");
        if !is_begun {
            return Ok(());
        }
        let vocabulary = self.tokens.vocabulary();
        let mut mask = TokenSet::empty(vocabulary.vocab_size());
        if !matcher.is_terminated() {
            matcher.fill_mask(mask.words_mut())?;
            self.counts.masks += 1;
            for _ in 0..ASKED {
                let id = choices.below(vocabulary.vocab_size()) as u32;
                let Some(bytes) = vocabulary.token_bytes(id).filter(|bytes| !bytes.is_empty()) else { continue };
                let begun = [&case.before[..], bytes].concat();
                let expected = self.holes.is_completable(&case.pieces(&begun))?;
                let allowed = mask.contains(id);
                assert!(allowed == expected || self.has_tokens, "token {bytes:?} {allowed}: {shown}");
                self.counts.decisions += 1;
            }
        }
        let filled = case.filled(&case.before);
        let ends = self.holes.is_completable(&filled.pieces(&filled.before))?;
        assert!(matcher.is_completed() == ends || self.has_tokens, "the hole may end at once, {ends}: {shown}");
        Ok(())
    }
}
