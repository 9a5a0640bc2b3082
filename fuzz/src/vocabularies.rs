//! Random vocabularies: bytes, pieces, tokens cut from the grammar's own texts, duplicates, holes and halves of characters.

use std::sync::Arc;

use stencilm_engine::Vocabulary;

use crate::choices::Choices;
use crate::grammars::SPECIAL_TOKENS;
use crate::tokenizers;

const PIECES: [&str; 46] = [
    "a",
    "b",
    "c",
    "ab",
    "bc",
    "(",
    ")",
    "((",
    "))",
    "{",
    "}",
    "{}",
    "\"",
    "\":",
    ":",
    ",",
    ",\"",
    "a\"",
    "b\":",
    "\"a\"",
    "\"a\":",
    " ",
    "  ",
    "x",
    "é",
    "\u{1F600}",
    "{\"",
    "\"}",
    "a)",
    "\",\"",
    "0",
    "12",
    "-",
    ".5",
    "[",
    "]",
    "[]",
    "null",
    "true",
    "\\u00",
    "\\ud83d",
    "\\ude",
    "\\",
    "\n",
    "61",
    "日本",
];

/// The tokens of a vocabulary, so that it can be rebuilt with nothing computed.
#[derive(Clone, Debug)]
pub struct Tokens {
    spelled: Vec<Option<Vec<u8>>>,
    vocab_size: usize,
    stop: Vec<u32>,
    special: Vec<(u32, String)>,
    /// Whether every byte is a token, so that every state has a continuation.
    pub has_all_bytes: bool,
    /// Whether there are so few tokens that many walks are cheap.
    pub few: bool,
}

impl Tokens {
    /// Random tokens, some of them cut from these texts.
    pub fn random(choices: &mut Choices<'_>, texts: &[Vec<u8>]) -> Tokens {
        let special: Vec<(u32, String)> = (0..).zip(SPECIAL_TOKENS).map(|(id, name)| (id, name.to_owned())).collect();
        // A special token has no text; an empty token is never allowed.
        let mut spelled: Vec<Option<Vec<u8>>> = vec![None, Some(b"a".to_vec()), Some(Vec::new())];
        let few = texts.len() > 1 && choices.chance(3);
        let has_all_bytes = !few && choices.chance(3);
        if few {
            // So few that walks reach the same states again and again, on different paths.
            spelled.extend(texts.iter().map(|text| Some(text[..text.len().min(8)].to_vec())));
        } else if has_all_bytes {
            spelled.extend((0..=255).map(|byte| Some(vec![byte])));
        } else {
            let bytes = b"abc(){}\":, x-01[]".iter().chain(&[0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80, 0xFF, 0x00]);
            spelled.extend(bytes.map(|&byte| Some(vec![byte])));
        }
        let more = if few { 4 + choices.below(16) } else { 10 + choices.below(60) };
        for _ in 0..more {
            spelled.push(match choices.below(if few { 9 } else { 16 }) {
                0 => None,
                1 => choices.pick(&spelled).clone(),
                2 => Some("é\u{1F600}日".as_bytes()[choices.below(9)..][..1 + choices.below(1)].to_vec()),
                3..=8 if !texts.is_empty() => {
                    let text = choices.pick(texts);
                    let from = choices.below(text.len());
                    let len = (1 + choices.below(8)).min(text.len() - from);
                    Some(text[from..from + len].to_vec())
                }
                _ => Some((0..1 + choices.below(4)).flat_map(|_| choices.pick(&PIECES).bytes()).collect()),
            });
        }
        let stop = (0..1 + choices.below(2)).map(|extra| (spelled.len() + extra) as u32).collect();
        spelled.extend([Some(b"</s>".to_vec()), Some(b"<end>".to_vec())]);
        let vocab_size = spelled.len() + choices.below(40);
        Tokens { spelled, vocab_size, stop, special, has_all_bytes, few }
    }

    /// A vocabulary of these tokens.
    pub fn vocabulary(&self) -> Arc<Vocabulary> {
        let vocabulary = Vocabulary::new(&self.spelled, self.vocab_size, &self.stop, &self.special);
        Arc::new(vocabulary.expect("the ids and sizes fit"))
    }
}

/// The vocabulary of a well-known model, or a random small one if there is none.
pub fn large_or_small(choices: &mut Choices<'_>) -> Arc<Vocabulary> {
    // Two in three are the largest.
    let number = [0, 0, 0, 0, 1, 2][choices.below(6)];
    tokenizers::vocabulary(number).unwrap_or_else(|| Tokens::random(choices, &[]).vocabulary())
}
