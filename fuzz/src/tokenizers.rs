//! Vocabularies of well-known models, read from the folder that the environment variable `STENCILM_SHARED` names.
//!
//! Some faults only show if a hundred thousand tokens share lexemes; vocabularies of fifty tokens do not find them.
//! Each vocabulary is read once per process, when it is first needed. Unless [`allow`] was called there are none, so
//! that tests do the same everywhere.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use stencilm_engine::{Alphabet, EncodingSource, Vocabulary};

/// Llama 3's pattern of pre-tokens.
const LLAMA: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// GPT-2's pattern of pre-tokens.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// A tokenizer that may be in the folder.
struct Known {
    folder: &'static str,
    alphabet: Alphabet,
    pattern: Option<&'static str>,
    stop: &'static str,
}

const KNOWN: [Known; 3] = [
    Known { folder: "llama3", alphabet: Alphabet::ByteLevel, pattern: Some(LLAMA), stop: "<|eot_id|>" },
    Known { folder: "gpt2", alphabet: Alphabet::ByteLevel, pattern: Some(GPT2), stop: "<|endoftext|>" },
    Known { folder: "mistral-v1", alphabet: Alphabet::Text { space: '▁' }, pattern: None, stop: "</s>" },
];

static ARE_ALLOWED: AtomicBool = AtomicBool::new(false);

/// Allows this process to use them.
pub fn allow() {
    ARE_ALLOWED.store(true, Ordering::Relaxed);
}

/// The number of known tokenizers.
pub const COUNT: usize = KNOWN.len();

/// The vocabulary with a number below [`COUNT`]; `None` if its folder is missing.
pub fn vocabulary(number: usize) -> Option<Arc<Vocabulary>> {
    static READ: [OnceLock<Option<Arc<Vocabulary>>>; COUNT] = [const { OnceLock::new() }; COUNT];
    READ[number].get_or_init(|| KNOWN[number].read()).clone()
}

/// The same vocabulary, with its encoding learned.
pub fn encoding(number: usize) -> Option<Arc<Vocabulary>> {
    static LEARNED: [OnceLock<Option<Arc<Vocabulary>>>; COUNT] = [const { OnceLock::new() }; COUNT];
    let learn = || {
        let (known, vocabulary) = (&KNOWN[number], KNOWN[number].read()?);
        let json: Value = serde_json::from_str(&known.text()?).expect("a tokenizer.json is JSON");
        let pattern = known.pattern.map(str::to_owned);
        let source = EncodingSource::from_model(&json["model"].to_string(), known.alphabet, pattern);
        let learned = source.and_then(|source| vocabulary.learn_encoding(&source));
        learned.unwrap_or_else(|why| panic!("the encoding of {}: {why}", known.folder));
        Some(vocabulary)
    };
    LEARNED[number].get_or_init(learn).clone()
}

/// Whether there is any of them.
pub fn any() -> bool {
    KNOWN.iter().any(|known| known.path().is_some_and(|path| path.is_file()))
}

impl Known {
    fn path(&self) -> Option<PathBuf> {
        let shared = std::env::var_os("STENCILM_SHARED").filter(|_| ARE_ALLOWED.load(Ordering::Relaxed))?;
        Some(PathBuf::from(shared).join("tokenizers").join(self.folder).join("tokenizer.json"))
    }

    fn text(&self) -> Option<String> {
        fs::read_to_string(self.path()?).ok()
    }

    fn read(&self) -> Option<Arc<Vocabulary>> {
        let json: Value = serde_json::from_str(&self.text()?).expect("a tokenizer.json is JSON");
        let mut tokens: Vec<Option<Vec<u8>>> = Vec::new();
        let id = |value: &Value| value.as_u64().expect("ids are numbers") as usize;
        for (text, number) in json["model"]["vocab"].as_object().expect("a BPE model has a vocabulary") {
            let number = id(number);
            tokens.resize(tokens.len().max(number + 1), None);
            tokens[number] = Some(self.spelled(text));
        }
        let mut special = Vec::new();
        for added in json["added_tokens"].as_array().into_iter().flatten() {
            let (number, content) = (id(&added["id"]), added["content"].as_str().unwrap_or_default());
            tokens.resize(tokens.len().max(number + 1), None);
            tokens[number] = None;
            special.push((number as u32, content.to_owned()));
        }
        let stop: Vec<u32> = special.iter().filter(|(_, name)| name == self.stop).map(|&(number, _)| number).collect();
        let vocabulary = Vocabulary::new(&tokens, tokens.len(), &stop, &special);
        Some(Arc::new(vocabulary.expect("the ids of a tokenizer fit")))
    }

    /// The bytes of a token of the file.
    fn spelled(&self, text: &str) -> Vec<u8> {
        match self.alphabet {
            Alphabet::ByteLevel => text.chars().map(visible_byte).collect(),
            Alphabet::Text { space } => {
                let byte = text.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
                match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                    Some(byte) => vec![byte],
                    None => text.replace(space, " ").into_bytes(),
                }
            }
        }
    }
}

/// The byte that a visible character stands for: Latin-1 characters for themselves, the others in order after them.
fn visible_byte(character: char) -> u8 {
    let is_itself = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    match u8::try_from(u32::from(character)) {
        Ok(byte) if is_itself(byte) => byte,
        _ => {
            let number = (u32::from(character) - 256) as usize;
            (0..=u8::MAX).filter(|&byte| !is_itself(byte)).nth(number).expect("68 bytes are not visible themselves")
        }
    }
}
