//! Counted rounds with look-around, judged by a slow twin that tries every way to read a text.

use proptest::prelude::*;
use proptest::sample::select;
use stencilm_regex::{Anchoring, Deriver, Dialect, Limits, PatternOptions, Utf8, parse_pattern};

/// One alternative of a round.
#[derive(Clone, Debug)]
struct Alternative {
    /// What must, or must not, begin at this place; whether it must not.
    ahead: Option<(&'static str, bool)>,
    /// What must, or must not, end at this place.
    behind: Option<(&'static str, bool)>,
    texts: Vec<&'static str>,
}

#[derive(Clone, Debug)]
struct Rounds {
    alternatives: Vec<Alternative>,
    min: usize,
    max: Option<usize>,
    /// A pattern that the crate `regex` knows.
    tail: &'static str,
}

impl Alternative {
    fn pattern(&self) -> String {
        let sign = |is_negative| if is_negative { "!" } else { "=" };
        let ahead = self.ahead.map(|(text, negative)| format!("(?{}{text})", sign(negative)));
        let behind = self.behind.map(|(text, negative)| format!("(?<{}{text})", sign(negative)));
        let texts = self.texts.join("|");
        format!("{}{}(?:{texts})", behind.unwrap_or_default(), ahead.unwrap_or_default())
    }
}

impl Rounds {
    fn pattern(&self) -> String {
        let alternatives: Vec<String> = self.alternatives.iter().map(Alternative::pattern).collect();
        let max = self.max.map(|max| max.to_string()).unwrap_or_default();
        format!("^(?:{}){{{},{max}}}(?:{})$", alternatives.join("|"), self.min, self.tail)
    }

    fn matches(&self, text: &str) -> bool {
        let tail = regex::Regex::new(&format!(r"\A(?:{})\z", self.tail)).expect("it is well-formed");
        self.read(&tail, text, 0, 0)
    }

    fn read(&self, tail: &regex::Regex, text: &str, at: usize, rounds: usize) -> bool {
        let (before, rest) = text.split_at(at);
        let round = |alternative: &Alternative| {
            alternative.ahead.is_none_or(|(text, negative)| rest.starts_with(text) != negative)
                && alternative.behind.is_none_or(|(text, negative)| before.ends_with(text) != negative)
                && alternative
                    .texts
                    .iter()
                    .any(|read| rest.starts_with(read) && self.read(tail, text, at + read.len(), rounds + 1))
        };
        rounds >= self.min && tail.is_match(rest)
            || self.max.is_none_or(|max| rounds < max) && self.alternatives.iter().any(round)
    }
}

fn rounds() -> impl Strategy<Value = Rounds> {
    let asked = || (select(vec!["a", "b", "ab", "ba", "bb", "aba", "abc", "c"]), any::<bool>());
    let texts = select(vec![
        vec!["a", "b", "c"],
        vec!["a", "b"],
        vec!["ab", "c"],
        vec!["a", "bc", "ca"],
        vec!["b"],
        vec!["a", "ab"],
    ]);
    let alternative = (prop::option::weighted(0.8, asked()), prop::option::weighted(0.3, asked()), texts)
        .prop_map(|(ahead, behind, texts)| Alternative { ahead, behind, texts });
    let tail =
        select(vec!["", "ab", "aba", "ab[abc]*", "[ab]*", "b|bb", "cb[abc]*", "[abc]*", "c[ab]", "(?:ab)*", "a?b?c"]);
    let counts = (0_usize..3, 8_usize..11).prop_flat_map(|(few, many)| {
        select(vec![(0, Some(many)), (few, Some(many)), (many, None), (8, Some(many)), (many, Some(many))])
    });
    (prop::collection::vec(alternative, 1..3), counts, tail).prop_map(|(alternatives, (min, max), tail)| Rounds {
        alternatives,
        min,
        max,
        tail,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn rounds_are_read_in_every_way(rounds in rounds(), texts in prop::collection::vec("[abc]{0,13}", 30)) {
        let mut deriver = Deriver::new(Limits::default());
        let options = PatternOptions { dialect: Dialect::Standard, anchoring: Anchoring::Whole };
        // What is refused for its cost is not wrong.
        if let Ok(root) = parse_pattern(&mut deriver.exprs, &rounds.pattern(), &options, &mut Utf8) {
            for text in &texts {
                let found = deriver.matches(root, text.as_bytes()).expect("the text is short");
                prop_assert_eq!(found, rounds.matches(text), "{} on {:?}", rounds.pattern(), text);
            }
        }
    }
}
