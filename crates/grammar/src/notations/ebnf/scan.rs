//! The words of an EBNF text, with the offsets they start at.

use stencilm_regex::ByteSet;

use super::escapes;
use super::escapes::Ranges;
use super::scanner::Scanner;
use crate::ir::grammar::TokenPattern;
use crate::ir::syntax_error::SyntaxError;

/// One word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// The name of a rule, or of an entry of an object.
    Name(String),
    /// `::=`
    Define,
    /// One of the signs `|&~()*+?@{}=:;`.
    Sign(char),
    /// `{m}`, `{m,}` or `{m,n}`.
    Count(u32, Option<u32>),
    /// A quoted text.
    Text(String),
    /// A class: one character of these ranges.
    Class(Ranges),
    /// One byte of a set.
    Bytes(ByteSet),
    /// A pattern between slashes.
    Pattern(String),
    /// A token of the model.
    Token(TokenPattern),
    /// `%name`.
    Keyword(String),
    /// The end of the text.
    End,
}

impl Word {
    /// The word as an error message shows it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Word::Name(name) => format!("`{}`", escapes::excerpt(name)),
            Word::Define => "`::=`".into(),
            Word::Sign(sign) => format!("`{sign}`"),
            Word::Count(..) => "a repetition `{...}`".into(),
            Word::Text(text) => format!("the text {:?}", escapes::excerpt(text)),
            Word::Class(_) => "a class".into(),
            Word::Bytes(_) => "a set of bytes".into(),
            Word::Pattern(pattern) => format!("the pattern `/{}/`", escapes::excerpt(pattern)),
            Word::Token(_) => "a token".into(),
            Word::Keyword(name) => format!("`%{}`", escapes::excerpt(name)),
            Word::End => "the end of the text".into(),
        }
    }
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_name(c: char) -> bool {
    is_name_start(c) || c == '-' || c == '.'
}

impl<'a> Scanner<'a> {
    fn skip_whitespace(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{feff}']);
            self.offset += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.offset += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// Reads the next word; returns it with its position.
    pub(crate) fn next(&mut self) -> Result<(usize, Word), SyntaxError> {
        self.skip_whitespace();
        let start = self.offset;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok((start, Word::End)) };
        let word = match first {
            _ if is_name_start(first) => Word::Name(self.take_while(is_name).to_string()),
            ':' if rest.starts_with("::=") => {
                self.offset += 3;
                Word::Define
            }
            '"' | '\'' => Word::Text(self.quoted(first)?),
            '[' => Word::Class(escapes::class(self)?),
            '.' => {
                self.offset += 1;
                Word::Class(vec![('\0', char::MAX)])
            }
            '/' => Word::Pattern(self.pattern(false)?),
            '<' => Word::Token(self.token()?),
            '!' if self.rest().starts_with("!<") => {
                self.offset += 1;
                Word::Token(other_tokens(self.token()?))
            }
            '{' if self.is_count() => self.count()?,
            '%' => {
                self.offset += 1;
                let name = self.take_while(is_name).to_string();
                if name == "bytes" { Word::Bytes(self.bytes()?) } else { Word::Keyword(name) }
            }
            '|' | '&' | '~' | '(' | ')' | '*' | '+' | '?' | '@' | '{' | '}' | '=' | ':' | ';' | ',' => {
                self.offset += 1;
                Word::Sign(first)
            }
            _ => {
                let message = format!(
                    "{first:?} starts nothing that EBNF knows; put text in quotes, and use ASCII letters, digits, \
                     `_`, `-` and `.` in names{}",
                    if first == '!' { "; `!` leaves out a token: !<[7]> or !<|name|>" } else { "" }
                );
                return Err(SyntaxError::at(start, message));
            }
        };
        Ok((start, word))
    }

    /// Reads a text between two of these quotes, with its escapes.
    pub(crate) fn quoted(&mut self, quote: char) -> Result<String, SyntaxError> {
        let start = self.offset;
        self.offset += 1;
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|c| c != quote && c != '\\' && c != '\n'));
            match self.rest().chars().next() {
                Some('\\') => text.push(escapes::escape(self, &[])?),
                Some(c) if c == quote => {
                    self.offset += 1;
                    return Ok(text);
                }
                _ => {
                    let message = format!(
                        "the text {:?} has no closing {quote} on its line; close it, and write a line break as \\n",
                        escapes::excerpt(&text)
                    );
                    return Err(SyntaxError::at(start, message));
                }
            }
        }
    }

    /// Reads what stands between two slashes, on one line unless it may span lines; `\/` is a slash.
    pub(crate) fn pattern(&mut self, spans_lines: bool) -> Result<String, SyntaxError> {
        let start = self.offset;
        let ends_line = |c: char| c == '\n' && !spans_lines;
        self.offset += 1;
        let mut pattern = String::new();
        loop {
            pattern.push_str(self.take_while(|c| c != '/' && c != '\\' && !ends_line(c)));
            let mut rest = self.rest().chars();
            match (rest.next(), rest.next()) {
                (Some('\\'), Some('/')) => {
                    self.offset += 2;
                    pattern.push('/');
                }
                (Some('\\'), Some(c)) if !ends_line(c) => {
                    self.offset += 1 + c.len_utf8();
                    pattern.push('\\');
                    pattern.push(c);
                }
                (Some('/'), _) => {
                    self.offset += 1;
                    return Ok(pattern);
                }
                _ => {
                    let message = format!(
                        "the pattern `/{}` has no closing / on its line; close it, and write a slash as \\/",
                        escapes::excerpt(&pattern)
                    );
                    return Err(SyntaxError::at(start, message));
                }
            }
        }
    }

    pub(crate) fn is_count(&self) -> bool {
        self.rest()[1..].trim_start_matches([' ', '\t']).starts_with(|c: char| c.is_ascii_digit() || c == ',')
    }

    pub(crate) fn number(&mut self) -> Result<Option<u32>, SyntaxError> {
        let space_or_tab = |c| c == ' ' || c == '\t';
        self.take_while(space_or_tab);
        let start = self.offset;
        let digits = self.take_while(|c| c.is_ascii_digit());
        self.take_while(space_or_tab);
        if digits.is_empty() {
            return Ok(None);
        }
        digits.parse().map(Some).map_err(|_| {
            let message = format!("the number {} is above {}; use a smaller one", escapes::excerpt(digits), u32::MAX);
            SyntaxError::at(start, message)
        })
    }

    pub(crate) fn count(&mut self) -> Result<Word, SyntaxError> {
        let start = self.offset;
        self.offset += 1;
        let min = self.number()?;
        let has_comma = self.rest().starts_with(',');
        self.offset += usize::from(has_comma);
        let max = if has_comma { self.number()? } else { min };
        if !self.rest().starts_with('}') || (min.is_none() && max.is_none()) {
            let message = "a repetition is written {m}, {m,}, {,n} or {m,n}; close it with `}` behind its numbers";
            return Err(SyntaxError::at(start, message));
        }
        self.offset += 1;
        let min = min.unwrap_or(0);
        if let Some(max) = max.filter(|&max| max < min) {
            let message = format!("the repetition {{{min},{max}}} ends below its start; write {{{max},{min}}}");
            return Err(SyntaxError::at(start, message));
        }
        Ok(Word::Count(min, max))
    }

    /// Reads `<|name|>`, `<[1-5,9]>` or `<[^1-5,9]>`.
    pub(crate) fn token(&mut self) -> Result<TokenPattern, SyntaxError> {
        let start = self.offset;
        let rest = self.rest();
        if let Some(inner) = rest.strip_prefix("<|") {
            let end = inner.find("|>").filter(|&end| !inner[..end].contains('\n') && end > 0);
            let Some(end) = end else {
                let message = "a special token is written <|name|>, on one line; close it with `|>`";
                return Err(SyntaxError::at(start, message));
            };
            self.offset += end + 4;
            return Ok(TokenPattern::Special(rest[..end + 4].into()));
        }
        if rest.starts_with("<[") {
            self.offset += 2;
            let negated = self.rest().starts_with('^');
            self.offset += usize::from(negated);
            let mut ranges = Vec::new();
            while let Some(first) = self.number()? {
                let mut last = first;
                if self.rest().starts_with('-') {
                    self.offset += 1;
                    let Some(end) = self.number()? else { break };
                    last = end;
                }
                if last < first {
                    let message = format!("the range of tokens {first}-{last} is reversed; write {last}-{first}");
                    return Err(SyntaxError::at(start, message));
                }
                ranges.push((first, last));
                if self.rest().starts_with("]>") {
                    self.offset += 2;
                    return Ok(TokenPattern::Ids { ranges: ranges.into(), negated });
                }
                if !self.rest().starts_with(',') {
                    break;
                }
                self.offset += 1;
            }
            if negated && ranges.is_empty() && self.rest().starts_with("]>") {
                self.offset += 2;
                return Ok(TokenPattern::Ids { ranges: Box::default(), negated });
            }
        } else if let Some(end) = rest[1..].find('>').filter(|&end| end > 0) {
            // Names without bars, such as `<unk>`, as they occur in vocabularies.
            let name = &rest[..end + 2];
            if !name.contains(|c: char| c.is_whitespace() || c == '"' || c == '<' && !name.starts_with(c)) {
                self.offset += name.len();
                return Ok(TokenPattern::Special(name.into()));
            }
        }
        let message = "a token is written <|name|>, by ids <[1-5,9]>, or by all other ids <[^1-5,9]>";
        Err(SyntaxError::at(start, message))
    }

    /// Reads the set after `%bytes`: `[00-7F FF]`.
    fn bytes(&mut self) -> Result<ByteSet, SyntaxError> {
        let start = self.offset;
        let wrong =
            || SyntaxError::at(start, "a set of bytes is written in hexadecimal, as %bytes[00-1F 7F]; low before high");
        if !self.rest().starts_with('[') {
            return Err(wrong());
        }
        self.offset += 1;
        let mut set = ByteSet::EMPTY;
        loop {
            self.take_while(|c| c == ' ');
            if self.rest().starts_with(']') {
                self.offset += 1;
                return Ok(set);
            }
            let mut byte = || {
                let digits = self.take_while(|c| c.is_ascii_hexdigit());
                u8::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 2)
            };
            let first = byte().ok_or_else(wrong)?;
            let mut last = first;
            if self.rest().starts_with('-') {
                self.offset += 1;
                let digits = self.take_while(|c| c.is_ascii_hexdigit());
                last = u8::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 2).ok_or_else(wrong)?;
            }
            if last < first {
                return Err(wrong());
            }
            set = set.union(&ByteSet::range(first, last));
        }
    }
}

/// All tokens except these.
fn other_tokens(tokens: TokenPattern) -> TokenPattern {
    match tokens {
        TokenPattern::Ids { ranges, negated } => TokenPattern::Ids { ranges, negated: !negated },
        TokenPattern::Special(name) => TokenPattern::Others { ids: Box::default(), names: [name].into() },
        TokenPattern::IfSpecial(_) | TokenPattern::Others { .. } => unreachable!("`<...>` is written for no others"),
    }
}
