//! The encoding of a tokenizer as data: read from the model in a tokenizer.json, and stored as bytes.

use serde::Deserialize;
use serde_json::value::RawValue;

use rustc_hash::FxHashMap;

/// How a tokenizer makes tokens of text: a byte-pair encoding, and the pattern that first cuts the text into pieces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodingSource {
    /// The token of each byte: of every byte where text is encoded from bytes, else of the bytes of characters without
    /// a token.
    pub bytes: Vec<u32>,
    /// The tokens of single characters, where text is encoded from characters.
    pub chars: Option<Vec<(char, u32)>>,
    /// A character that the tokenizer reads as another one, as SentencePiece reads its mark for a space.
    pub changed: Option<char>,
    /// The left part, the right part and the result of each merge, by rank.
    pub merges: Vec<(u32, u32, u32)>,
    /// Whether a piece that is a token becomes that token, whatever the merges would make of it.
    pub whole_pieces: bool,
    /// The pattern that cuts a text into pieces; without it the whole text is one piece.
    pub pattern: Option<String>,
}

/// How the tokens of a tokenizer.json are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alphabet {
    /// Each byte as a visible character, as in GPT-2.
    ByteLevel,
    /// As text, with this character for a space, and bytes by names such as `<0x0A>`.
    Text {
        /// The character.
        space: char,
    },
}

/// The model in a tokenizer.json.
#[derive(Deserialize)]
struct Model<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    dropout: Option<f64>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    #[serde(borrow)]
    vocab: Option<&'a RawValue>,
    #[serde(default)]
    merges: Vec<Merge>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Pair(String, String),
    Line(String),
}

const MAGIC: &[u8; 8] = b"stencilE";

impl EncodingSource {
    /// Reads the model in a tokenizer.json.
    ///
    /// # Errors
    /// A sentence that says what is not supported.
    pub fn from_model(json: &str, alphabet: Alphabet, pattern: Option<String>) -> Result<EncodingSource, String> {
        let model: Model<'_> =
            serde_json::from_str(json).map_err(|error| format!("its model cannot be read: {error}"))?;
        let kind = model.kind.as_deref().unwrap_or("BPE");
        if kind != "BPE" {
            return Err(format!("it is a {kind} model, which has no merges"));
        }
        if model.dropout.is_some_and(|dropout| dropout != 0.0) {
            return Err("its merges are left out at random (dropout)".into());
        }
        let affixes = [&model.continuing_subword_prefix, &model.end_of_word_suffix];
        if affixes.iter().any(|affix| affix.as_deref().is_some_and(|affix| !affix.is_empty())) {
            return Err("its tokens are written otherwise at the beginning or at the end of words".into());
        }
        let vocab: FxHashMap<String, u32> = match model.vocab {
            Some(vocab) => {
                serde_json::from_str(vocab.get()).map_err(|error| format!("its vocabulary cannot be read: {error}"))?
            }
            None => return Err("its model has no vocabulary".into()),
        };
        let mut merges = Vec::with_capacity(model.merges.len());
        for merge in &model.merges {
            let (left, right) = match merge {
                Merge::Pair(left, right) => (&left[..], &right[..]),
                Merge::Line(line) => line.split_once(' ').ok_or_else(|| format!("its merge {line:?} is no pair"))?,
            };
            let id = |text: &str| {
                vocab.get(text).copied().ok_or_else(|| format!("its merges name {text:?}, which is no token"))
            };
            merges.push((id(left)?, id(right)?, id(&[left, right].concat())?));
        }
        let byte =
            |name: String, byte: u8| vocab.get(&name).copied().ok_or_else(|| format!("byte {byte} has no token"));
        let (bytes, chars, changed) = match alphabet {
            Alphabet::ByteLevel => {
                let letters = byte_letters();
                let bytes = (0..=u8::MAX).map(|at| byte(letters[usize::from(at)].to_string(), at));
                (bytes.collect::<Result<_, _>>()?, None, None)
            }
            Alphabet::Text { space } => {
                if !model.byte_fallback {
                    return Err("characters without a token become unknown, where bytes should spell them".into());
                }
                let bytes = (0..=u8::MAX).map(|at| byte(format!("<0x{at:02X}>"), at));
                let only = |text: &str| text.chars().next().filter(|first| first.len_utf8() == text.len());
                let mut chars: Vec<(char, u32)> =
                    vocab.iter().filter_map(|(text, &id)| Some((only(text)?, id))).collect();
                chars.sort_unstable();
                let mut changed = None;
                if space != ' ' {
                    chars.retain(|&(character, _)| character != ' ');
                    chars
                        .iter_mut()
                        .filter(|(character, _)| *character == space)
                        .for_each(|(character, _)| *character = ' ');
                    changed = Some(space);
                }
                (bytes.collect::<Result<_, _>>()?, Some(chars), changed)
            }
        };
        Ok(EncodingSource { bytes, chars, changed, merges, whole_pieces: model.ignore_merges, pattern })
    }

    /// Writes everything as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut numbers: Vec<u32> = self.bytes.clone();
        numbers.push(self.chars.as_ref().map_or(u32::MAX, |chars| chars.len() as u32));
        numbers.extend(self.chars.iter().flatten().flat_map(|&(character, id)| [u32::from(character), id]));
        numbers.extend([
            self.changed.map_or(u32::MAX, u32::from),
            u32::from(self.whole_pieces),
            self.merges.len() as u32,
        ]);
        numbers.extend(self.merges.iter().flat_map(|&(left, right, whole)| [left, right, whole]));
        let mut bytes = MAGIC.to_vec();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        if let Some(pattern) = &self.pattern {
            bytes.push(b'/');
            bytes.extend_from_slice(pattern.as_bytes());
        }
        bytes
    }

    /// Reads what [`EncodingSource::to_bytes`] wrote; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<EncodingSource> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut number = || {
            let (first, after) = rest.split_first_chunk::<4>()?;
            rest = after;
            Some(u32::from_le_bytes(*first))
        };
        let bytes = (0..256).map(|_| number()).collect::<Option<Vec<u32>>>()?;
        let chars = match number()? {
            u32::MAX => None,
            count => {
                let pair = |_| Some((char::from_u32(number()?)?, number()?));
                Some((0..count).map(pair).collect::<Option<Vec<_>>>()?)
            }
        };
        let changed = match number()? {
            u32::MAX => None,
            character => Some(char::from_u32(character)?),
        };
        let whole_pieces = number()? != 0;
        let count = number()?;
        let triple = |_| Some((number()?, number()?, number()?));
        let merges = (0..count).map(triple).collect::<Option<Vec<_>>>()?;
        let pattern = match rest.split_first() {
            None => None,
            Some((b'/', pattern)) => Some(String::from_utf8(pattern.to_vec()).ok()?),
            Some(_) => return None,
        };
        Some(EncodingSource { bytes, chars, changed, merges, whole_pieces, pattern })
    }
}

/// The visible character of each byte: the byte itself if it is visible in Latin-1, else the next unused character
/// after Latin-1.
fn byte_letters() -> Vec<char> {
    let plain = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut next = 0x100;
    let letter = |byte: u8| {
        let code = if plain(byte) {
            u32::from(byte)
        } else {
            next += 1;
            next - 1
        };
        char::from_u32(code).expect("these are letters")
    };
    (0..=u8::MAX).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        let source = EncodingSource {
            bytes: (0..256).collect(),
            chars: Some(vec![('a', 300), ('é', 301)]),
            changed: Some('▁'),
            merges: vec![(300, 301, 302)],
            whole_pieces: true,
            pattern: Some("a|[^a]".into()),
        };
        let plain = EncodingSource { chars: None, changed: None, pattern: None, ..source.clone() };
        for source in [source, plain] {
            let bytes = source.to_bytes();
            assert_eq!(EncodingSource::from_bytes(&bytes), Some(source));
            for cut in 0..bytes.len().min(1_100) {
                EncodingSource::from_bytes(&bytes[..cut]);
            }
            assert_eq!(EncodingSource::from_bytes(&bytes[..1_050]), None);
        }
    }

    #[test]
    fn models_that_do_not_merge_are_refused_by_name() {
        let table = [
            (r#"{"type":"Unigram","vocab":[["a",0.1]]}"#, "Unigram"),
            (r#"{"type":"BPE","dropout":0.1,"vocab":{},"merges":[]}"#, "dropout"),
            (r#"{"type":"BPE","end_of_word_suffix":"</w>","vocab":{},"merges":[]}"#, "end of words"),
            (r#"{"type":"BPE","vocab":{"a":0},"merges":["a b"]}"#, "\"b\", which is no token"),
            (r#"{"type":"BPE","vocab":{"a":0},"merges":[]}"#, "byte 0 has no token"),
            ("[]", "cannot be read"),
        ];
        for (json, message) in table {
            let error = EncodingSource::from_model(json, Alphabet::ByteLevel, None).expect_err("it is refused");
            assert!(error.contains(message), "{json}: {error}");
        }
    }
}
