//! Structural tags: free text and structure in one tree of formats, as a JSON document.
//!
//! The flow is one way: JSON ([`crate::json_schema::document`]) → [`read`] (a flat [`tree`] of formats, by the types of
//! their [`fields`]) → [`lower`] (nodes), which spells text that anything may stand in through [`crate::free_text`], the words
//! that may be tokens through [`markers`], and the arguments of calls in the [`styles`] of models through [`arguments`] and [`nested`].

mod arguments;
mod fields;
mod lower;
mod markers;
mod nested;
mod read;
mod styles;
mod tree;

use crate::builder::MAX_EXPRS;
use crate::error::GrammarError;
use crate::grammar::Grammar;
use crate::json_schema;

/// How large a structural tag may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StructuralTagOptions {
    /// Longest text, in bytes.
    pub max_bytes: usize,
    /// Most expressions in the lexemes of its grammar.
    pub max_exprs: usize,
}

impl Default for StructuralTagOptions {
    fn default() -> StructuralTagOptions {
        StructuralTagOptions { max_bytes: json_schema::MAX_BYTES, max_exprs: MAX_EXPRS }
    }
}

impl Grammar {
    /// The grammar of a structural tag, which is JSON as `docs/structural-tags.md` describes it.
    ///
    /// # Errors
    /// [`ErrorKind::Syntax`](crate::ErrorKind::Syntax) for what is no structural tag,
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for what cannot be enforced,
    /// [`ErrorKind::Unsatisfiable`](crate::ErrorKind::Unsatisfiable) where no text matches, each at its JSON pointer;
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) where it is too large.
    pub fn from_structural_tag(text: &str, options: &StructuralTagOptions) -> Result<Grammar, GrammarError> {
        let document = json_schema::parse(text, &[], options.max_bytes)?;
        let tree = read::read(&document)?;
        lower::Lowering::new(&document, text).grammar(&tree, options.max_exprs)
    }
}

/// The text of the JSON value that starts at an offset of a text that is JSON.
fn value_text(text: &str, offset: u32) -> &str {
    let text = &text[offset as usize..];
    let (mut depth, mut in_string, mut escaped) = (0u32, false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            (in_string, escaped) = (escaped || byte != b'"', !escaped && byte == b'\\');
            if !in_string && depth == 0 {
                return &text[..=at];
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return &text[..at + usize::from(depth == 1)],
            b'}' | b']' => depth -= 1,
            b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return &text[..at],
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::value_text;

    #[test]
    fn values_end_where_they_end() {
        for value in [r#"{"a": ["}", "\"}\\"]}"#, "true", "-1.5e3", r#""x\\""#, "[]", "{}", "[[1], {}]"] {
            for behind in ["", ",1", " ]", "}", "\n"] {
                assert_eq!(value_text(&format!("[{value}{behind}"), 1), value);
            }
        }
    }
}
