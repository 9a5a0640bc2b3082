//! Labels in Punycode against the expressions of what they decode to.

use proptest::prelude::*;
use stencilm_regex::{Deriver, Dfa, Limits, StateId};

use super::characters::{at_least, blocks};
use super::completions::is_mended_once;
use super::*;
use crate::json::formats::idn;
use crate::json::spelling::Spelling;
use crate::json::strings::Strings;
use crate::json::values::common_exprs;

mod by_trial;

/// The state after reading a label byte by byte.
fn read(language: &ALabels, text: &[u8]) -> Option<Box<[u8]>> {
    text.iter().try_fold(Box::default(), |read: Box<[u8]>, &byte| language.after(&read, &[byte]))
}

fn is_label(language: &ALabels, text: &str) -> bool {
    read(language, text.as_bytes()).is_some_and(|read| language.is_member(&read))
}

/// The encoding of a label, if it has non-ASCII characters.
fn encoded(text: &str) -> Option<String> {
    let mut letters: Vec<char> = text.chars().filter(|c| !c.is_ascii()).collect();
    letters.sort_unstable();
    letters.dedup();
    let basic: String = text.chars().filter(char::is_ascii).collect();
    let hyphen = if basic.is_empty() { "" } else { "-" };
    let mut decoder = Decoder::read(format!("{basic}{hyphen}").as_bytes())?;
    let mut digits = Vec::new();
    for letter in letters {
        for place in text.chars().enumerate().filter(|&(_, c)| c == letter).map(|(place, _)| place) {
            // Later letters in the order have not been inserted yet.
            let before = text.chars().take(place).filter(|&c| c <= letter).count();
            let more = decoder.digits_to(u32::from(letter), before, b"")?;
            (decoder, digits) = (decoder.after(&more)?, [digits, more].concat());
        }
    }
    Some(format!("xn--{basic}{hyphen}{}", String::from_utf8(digits).unwrap()))
}

#[test]
fn labels_are_right_in_their_names() {
    // Valid in names without and with letters from right to left.
    for (text, plain, turning) in [
        ("xn--zca", true, true),
        ("XN--ZCA", true, true),
        ("xn--mnchen-3ya", true, true),
        ("xn--fiqs8s", true, true),
        ("xn--4dbc5h", false, true),
        ("xn--a-ecp.ru", false, false),
        ("xn--X", false, false),
        ("xn---bahn-3fb", false, false),
        ("xn--example-", false, false),
        ("xn--", false, false),
        ("xn--a", false, false),
        ("xn--99999999", false, false),
    ] {
        assert_eq!([0, 1].map(|at| is_label(&LANGUAGES[at], text)), [plain, turning], "{text}");
    }
}

#[test]
fn known_encodings() {
    // RFC 3492, section 7.1.
    for (text, code) in [
        ("\u{627}\u{644}", "xn--mgb2d"),
        ("m\u{fc}nchen", "xn--mnchen-3ya"),
        ("\u{4ed6}\u{4eec}\u{4e3a}\u{4ec0}\u{4e48}\u{4e0d}\u{8bf4}\u{4e2d}\u{6587}", "xn--ihqwcrb4cv8a8dqg056pqjye"),
        ("\u{5b89}\u{5ba4}\u{5948}\u{7f8e}\u{6075}-with-super-monkeys", "xn---with-super-monkeys-pc58ag80a8qai00g7n9n"),
    ] {
        assert_eq!(encoded(text).as_deref(), Some(code));
        let turning = text.starts_with('\u{627}');
        assert!(is_label(&LANGUAGES[usize::from(turning)], code), "{code}");
    }
}

/// Insertions can complete any beginning with that much room. Of the ASCII letters, only the positions of hyphens and
/// digits matter.
#[test]
fn with_enough_room_every_beginning_is_open() {
    let letters = [b'a', b'0', b'-'];
    for turning in [false, true] {
        for length in (0..8).chain([20, MAX_ENCODED - ROOM]) {
            let ends = length.min(4);
            for pattern in 0..3_usize.pow(2 * ends as u32) {
                let letter = |at: u32| letters[pattern / 3_usize.pow(at) % 3];
                let mut encoded = vec![b'a'; length];
                (0..ends).for_each(|at| encoded[at] = letter(at as u32));
                (0..ends).for_each(|at| encoded[length - 1 - at] = letter((ends + at) as u32));
                let hyphen = ["-", "a-"].iter().any(|hyphen| {
                    let decoder = Decoder::read(&[&encoded, hyphen.as_bytes()].concat());
                    decoder.is_some_and(|decoder| decoder.mended(b"", ROOM - hyphen.len(), turning).is_some())
                });
                assert!(hyphen, "{}", String::from_utf8_lossy(&encoded));
            }
        }
    }
}

#[test]
fn one_insertion_mends_what_it_is_said_to() {
    let letters = [b'a', b'0', b'-'];
    for turning in [false, true] {
        for length in 0..8_u32 {
            for pattern in 0..3_usize.pow(length) {
                let mut encoded: Vec<u8> = (0..length).map(|at| letters[pattern / 3_usize.pow(at) % 3]).collect();
                for more in [0, MAX_ENCODED - FIRST_INSERTION - 1 - length as usize] {
                    encoded.splice(length as usize / 2..length as usize / 2, vec![b'b'; more]);
                    let said = is_mended_once(&encoded, turning);
                    let mended = hyphenated(&encoded, 0, FIRST_INSERTION + 1, turning);
                    let shown = String::from_utf8_lossy(&encoded);
                    assert!(!said || mended.is_some_and(|mended| mended.starts_with(b"-")), "{shown} {turning}");
                }
            }
        }
    }
}

/// Extends a beginning to a member by possible bytes, starting from a random one.
fn completed_at_random(language: &ALabels, begun: &str, mut seed: u64) {
    let Some(mut state) = read(language, begun.as_bytes()) else { return };
    let mut text = begun.to_owned();
    while !language.is_member(&state) {
        let bytes = language.classes().into_iter().flat_map(|class| class.iter().collect::<Vec<_>>());
        let alternatives: Vec<_> = bytes.filter_map(|byte| Some((byte, language.after(&state, &[byte])?))).collect();
        assert!(!alternatives.is_empty(), "{text:?} of {} leads nowhere", language.name);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (byte, next) = alternatives[(seed >> 33) as usize % alternatives.len()].clone();
        text.push(char::from(byte));
        state = next;
    }
}

/// Characters that the rules mention.
const SPECIAL: &[char] = &[
    'a',
    'l',
    '0',
    '-',
    '\u{b7}',
    '\u{df}',
    '\u{e9}',
    '\u{375}',
    '\u{3b1}',
    '\u{5b0}',
    '\u{5d0}',
    '\u{5f3}',
    '\u{5f4}',
    '\u{628}',
    '\u{62f}',
    '\u{64b}',
    '\u{663}',
    '\u{6f1}',
    '\u{915}',
    '\u{93e}',
    '\u{94d}',
    '\u{200c}',
    '\u{200d}',
    '\u{30fb}',
    '\u{30a2}',
    '\u{65e5}',
    '\u{a872}',
    '\u{a840}',
    '\u{aa}',
    '\u{20a7}',
    '\u{1e947}',
    '\u{1e922}',
    '\u{13a0}',
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A walk that the language allows always reaches a member.
    #[test]
    fn no_beginning_leads_nowhere(
        begun in "[a-c0-][a-z0-9-]{0,58}|[a-c]{20}-[a-z0-9]{0,32}|-?-?-?[a-c]{40}-?[a-z0-9]{0,18}",
        which in 0..2_usize,
        seed: u64,
    ) {
        for length in [begun.len(), begun.len().saturating_sub(2), begun.len() / 2] {
            completed_at_random(&LANGUAGES[which], &format!("xn--{}", &begun[..length]), seed);
        }
    }

    /// Few bytes complete a label: if trying all finds that none or one is enough, the completion has as many.
    #[test]
    fn completions_are_short(begun in "[a-c]{20}-[a-z0-9]{0,20}|-{0,3}[a-c]{50}-{0,3}[a-z0-9]{0,2}", turning: bool) {
        let language = &LANGUAGES[usize::from(turning)];
        let Some(state) = read(language, format!("xn--{begun}").as_bytes()) else { return Ok(()) };
        let completion = language.completion(&state, 0, ROOM as u32).expect("what was read can be completed");
        let whole = [&state[..], &completion].concat();
        prop_assert!(language.is_member(&whole), "{}", String::from_utf8_lossy(&whole));
        let mut texts = vec![state.to_vec()];
        for _ in 0..completion.len().min(2) {
            prop_assert!(!texts.iter().any(|text| language.is_member(text)));
            let alternatives = |text: Vec<u8>| b"abcdefghijklmnopqrstuvwxyz0123456789-".map(|byte| [&text[..], &[byte]].concat());
            texts = texts.into_iter().flat_map(alternatives).collect();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    /// A text is a label exactly if the expressions of [`idn`] match its decoding.
    #[test]
    fn labels_are_those_of_the_expressions(picked in prop::collection::vec(prop::sample::select(SPECIAL), 1..7)) {
        thread_local! {
            static SLOW: std::cell::RefCell<Option<(Deriver, [Dfa; 2])>> = const { std::cell::RefCell::new(None) };
        }
        let text: String = picked.iter().collect();
        let Some(code) = encoded(&text).filter(|_| !text.is_ascii()) else { return Ok(()) };
        SLOW.with_borrow_mut(|slow| {
            let (deriver, dfas) = slow.get_or_insert_with(|| {
                let mut deriver = Deriver::over(common_exprs(), Limits::default());
                let mut strings = Strings::new(Spelling::Natural);
                let dfas = [false, true].map(|turning| {
                    let label = idn::label(&mut deriver.exprs, &mut strings, turning);
                    Dfa::new(&mut deriver, &[label], Limits::default()).unwrap()
                });
                (deriver, dfas)
            });
            for (dfa, language) in dfas.iter_mut().zip(&LANGUAGES) {
                let end = dfa.run(deriver, StateId::START, text.as_bytes()).unwrap();
                prop_assert_eq!(is_label(language, &code), !dfa.accepts(end).is_empty(), "{:?} {} {}", text, code, language.name);
            }
            Ok(())
        })?;
    }
}

#[test]
fn the_last_digit_of_all_completes_a_label() {
    let state = read(&LANGUAGES[0], format!("xn---{}-17", "a".repeat(50)).as_bytes()).expect("it begins a label");
    assert_eq!(LANGUAGES[0].completion(&state, 0, ROOM as u32).expect("it can be completed"), b"w");
}

/// Texts that extend each other in both ways, as in a walk of a trie.
fn walked(begun: &str, ends: &[String]) -> Vec<String> {
    let prefixes = |end: &String| (0..=end.len()).map(|many| end[..many].to_owned()).collect::<Vec<_>>();
    let up_and_down =
        ends.iter().flat_map(prefixes).chain(ends.iter().rev().flat_map(|end| prefixes(end).into_iter().rev()));
    up_and_down.map(|end| format!("{begun}{end}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// The results are the same as by trying everything from the start, digit by digit.
    #[test]
    fn completions_are_those_that_trials_find(
        known in prop::sample::select(vec![
            "mgberp4a5d4ar", "bcher-kva", "80ak6aa92e", "fiqs8s", "mgb2d", "4dbc5h", "mnchen-3ya", "zca", "--", "",
            "ihqwcrb4cv8a8dqg056pqjye", "-with-super-monkeys-pc58ag80a8qai00g7n9n",
        ]),
        cut: prop::sample::Index,
        letters in prop::option::of("[a-c0-][a-z0-9-]{0,12}|[a-c]{40}-?[a-z0-9]{0,18}"),
        ends in prop::collection::vec("[a-z0-9-]{0,5}", 1..6),
        turning: bool,
        least in 0..3_usize,
    ) {
        let begun = letters.as_deref().unwrap_or(&known[..cut.index(known.len() + 1)]);
        let language = LANGUAGES[usize::from(turning)];
        let mut reader = language.reader(format!("xn--{begun}").as_bytes());
        for text in walked(begun, &ends) {
            let is_begun = reader.read(&text.as_bytes()[begun.len()..]);
            let encoded = text.as_bytes();
            prop_assert_eq!(is_begun, by_trial::is_open(encoded, 0, MAX_ENCODED, turning), "{}", text);
            for most in 0..=5 {
                let decoder = Decoder::read(encoded);
                let found = completion(encoded, decoder.as_ref(), least, most, turning);
                prop_assert_eq!(&found, &by_trial::completion(encoded, least, most, turning), "{} {}", text, most);
                let is_completed = reader.is_completed(least as u32, most as u32);
                prop_assert_eq!(is_completed, by_trial::is_open(encoded, least, most, turning), "{} {}", text, most);
            }
        }
    }
}

#[test]
fn blocks_are_found_by_their_pages() {
    let blocks = blocks();
    for point in 0..=u32::from(char::MAX) {
        let found = at_least(point).map(|block| (block.first, block.last));
        let next = blocks.get(blocks.partition_point(|block| block.last < point));
        assert_eq!(found, next.map(|block| (block.first, block.last)), "{point:x}");
    }
}
