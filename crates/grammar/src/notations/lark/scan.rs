//! The words of a Lark text, with the offsets they start at. The ends of lines are words, because they end definitions.

use crate::ir::grammar::TokenPattern;
use crate::ir::syntax_error::SyntaxError;
use crate::notations::ebnf::escapes;
use crate::notations::ebnf::scanner::Scanner;

/// One word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// The name of a rule, of a terminal, of an attribute or of a function.
    Name(String),
    /// `"text"`; the flag is set if an `i` after it makes it case-insensitive.
    Text(String, bool),
    /// `/pattern/flags`: the pattern and its flags.
    Pattern(String, String),
    /// A number as it is written.
    Number(String),
    /// `{m}`, `{m,}`, `{,n}` or `{m,n}`.
    Count(u32, Option<u32>),
    /// `<|name|>` or `<[ids]>`.
    Token(TokenPattern),
    /// `@name`.
    Grammar(String),
    /// `%name`.
    Directive(String),
    /// A punctuation mark.
    Sign(char),
    /// `..`
    Dots,
    /// `->`
    Arrow,
    /// `::`
    Parameter,
    /// The end of a line, including the blank lines and comments after it.
    Line,
    /// The end of the text.
    End,
}

impl Word {
    /// The word as an error message shows it.
    pub(super) fn shown(&self) -> String {
        match self {
            Word::Name(name) => format!("`{}`", escapes::excerpt(name)),
            Word::Text(text, _) => format!("the text {:?}", escapes::excerpt(text)),
            Word::Pattern(pattern, _) => format!("the pattern `/{}/`", escapes::excerpt(pattern)),
            Word::Number(number) => format!("the number {}", escapes::excerpt(number)),
            Word::Count(..) => "a repetition `{...}`".into(),
            Word::Token(_) => "a token".into(),
            Word::Grammar(name) => format!("`@{}`", escapes::excerpt(name)),
            Word::Directive(name) => format!("`%{}`", escapes::excerpt(name)),
            Word::Sign(sign) => format!("`{sign}`"),
            Word::Dots => "`..`".into(),
            Word::Arrow => "`->`".into(),
            Word::Parameter => "`::`".into(),
            Word::Line => "the end of the line".into(),
            Word::End => "the end of the text".into(),
        }
    }
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Whether a name is that of a terminal: its first letter is uppercase.
pub(super) fn is_terminal(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|c: char| c.is_ascii_uppercase())
}

/// Reads words one by one.
pub(super) struct Words<'a> {
    at: Scanner<'a>,
}

impl<'a> Words<'a> {
    /// The words of `text` from an offset on.
    pub(super) fn new(text: &'a str, offset: usize) -> Words<'a> {
        Words { at: Scanner { text, offset } }
    }

    /// Where the next word begins, after whitespace.
    pub(super) fn offset(&self) -> usize {
        self.at.offset
    }

    fn starts_with(&self, text: &str) -> bool {
        self.at.rest().starts_with(text)
    }

    /// Skips whitespace and comments up to the end of the line; a backslash continues the line.
    fn skip_whitespace(&mut self) {
        let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\u{c}' | '\u{feff}');
        self.at.take_while(is_space);
        while let Some(next) =
            self.at.rest().strip_prefix('\\').and_then(|rest| rest.trim_start_matches(is_space).strip_prefix('\n'))
        {
            self.at.offset = self.at.text.len() - next.len();
            self.at.take_while(is_space);
        }
        if self.starts_with("//") || self.starts_with("#") {
            self.at.take_while(|c| c != '\n');
        }
    }

    fn name(&mut self) -> String {
        let rest = self.at.rest();
        let end = rest
            .char_indices()
            .find(|&(at, c)| !(is_name_start(c) || c.is_ascii_digit() || c == '-' && !rest[at..].starts_with("->")))
            .map_or(rest.len(), |(at, _)| at);
        self.at.offset += end;
        rest[..end].to_string()
    }

    /// Reads the next word; returns it with its position.
    pub(super) fn next(&mut self) -> Result<(usize, Word), SyntaxError> {
        self.skip_whitespace();
        let start = self.at.offset;
        let rest = self.at.rest();
        let Some(first) = rest.chars().next() else { return Ok((start, Word::End)) };
        let is_count = first == '{' && self.at.is_count();
        let mut sign = |length: usize, word: Word| {
            self.at.offset += length;
            Ok(word)
        };
        let word = match first {
            '\n' => {
                while self.starts_with("\n") {
                    self.at.offset += 1;
                    self.skip_whitespace();
                }
                return Ok((start, Word::Line));
            }
            _ if is_name_start(first) => Ok(Word::Name(self.name())),
            _ if first.is_ascii_digit() => Ok(Word::Number(self.number())),
            '"' => self.text(),
            '/' => self.pattern(),
            '<' if rest.starts_with("<[*]>") => sign(5, Word::Token(all_tokens())),
            '<' => self.at.token().map(Word::Token),
            '{' if is_count => self.count(),
            '-' if rest.starts_with("->") => sign(2, Word::Arrow),
            '.' if rest.starts_with("..") => sign(2, Word::Dots),
            ':' if rest.starts_with("::") => sign(2, Word::Parameter),
            '@' | '%' => {
                self.at.offset += 1;
                let name = self.name();
                if name.is_empty() {
                    let message = format!("`{first}` has no name behind it; write it without a blank between");
                    return Err(SyntaxError::at(start, message));
                }
                Ok(if first == '@' { Word::Grammar(name) } else { Word::Directive(name) })
            }
            ':' | '|' | '(' | ')' | '[' | ']' | '{' | '}' | ',' | '?' | '!' | '*' | '+' | '~' | '&' | '=' | '.'
            | '-' => sign(1, Word::Sign(first)),
            '\'' => Err(SyntaxError::at(start, "text is written between double quotes, not single ones")),
            _ => {
                let message = format!(
                    "{first:?} starts nothing that Lark knows; put text in double quotes, and use ASCII letters, \
                     digits, `_` and `-` in names"
                );
                Err(SyntaxError::at(start, message))
            }
        }?;
        Ok((start, word))
    }

    fn text(&mut self) -> Result<Word, SyntaxError> {
        let text = self.at.quoted('"')?;
        let folds = self.starts_with("i");
        self.at.offset += usize::from(folds);
        Ok(Word::Text(text, folds))
    }

    /// Reads `/pattern/flags`. An escaped slash becomes a plain one, which means the same in every pattern.
    ///
    /// A pattern may go on over lines if its flag `x` makes line breaks insignificant, as in the toolkit. Without a
    /// later slash with that flag, the error is that of a pattern that ends on its line.
    fn pattern(&mut self) -> Result<Word, SyntaxError> {
        let start = self.at.offset;
        let of_line = self.at.pattern(false);
        if of_line.is_err() {
            self.at.offset = start;
        }
        let pattern = match of_line {
            Ok(pattern) => pattern,
            Err(error) => self.at.pattern(true).map_err(|_| error.clone()).and_then(|pattern| {
                let flags: &str = self.at.rest();
                let flags = &flags[..flags.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(flags.len())];
                if flags.contains('x') { Ok(pattern) } else { Err(error) }
            })?,
        };
        let flags = self.at.take_while(|c| c.is_ascii_lowercase());
        Ok(Word::Pattern(pattern, flags.to_string()))
    }

    fn number(&mut self) -> String {
        if self.starts_with("0x") || self.starts_with("0X") {
            let start = self.at.offset;
            self.at.offset += 2;
            self.at.take_while(|c| c.is_ascii_hexdigit());
            return self.at.text[start..self.at.offset].to_string();
        }
        let mut number = self.at.take_while(|c| c.is_ascii_digit()).to_string();
        let mut rest = self.at.rest().chars();
        if rest.next() == Some('.') && rest.next().is_some_and(|c| c.is_ascii_digit()) {
            self.at.offset += 1;
            number.push('.');
            number.push_str(self.at.take_while(|c| c.is_ascii_digit()));
        }
        number
    }

    fn count(&mut self) -> Result<Word, SyntaxError> {
        Ok(match self.at.count()? {
            crate::notations::ebnf::scan::Word::Count(min, max) => Word::Count(min, max),
            _ => unreachable!("a count is a count"),
        })
    }

    /// Reads `true` or `false`, which are JSON Schemas, too; `None` if neither comes next.
    pub(super) fn boolean(&mut self) -> Option<&'static str> {
        self.at.take_while(char::is_whitespace);
        let word = ["true", "false"].into_iter().find(|word| {
            let rest = self.at.rest().strip_prefix(word);
            rest.is_some_and(|rest| !rest.starts_with(|c| is_name_start(c) || c.is_ascii_digit() || c == '-'))
        })?;
        self.at.offset += word.len();
        Some(word)
    }

    /// Reads the JSON value that comes next; returns its range in the text, from `{` to the matching `}`.
    pub(super) fn json(&mut self, after: &str) -> Result<(usize, usize), SyntaxError> {
        self.at.take_while(char::is_whitespace);
        let start = self.at.offset;
        if !self.starts_with("{") {
            return Err(SyntaxError::at(start, format!("`{{` must follow {after}, and JSON in it")));
        }
        let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
        for (at, byte) in self.at.rest().bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_text => escaped = true,
                b'"' => in_text = !in_text,
                _ if in_text => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        self.at.offset += at + 1;
                        return Ok((start, self.at.offset));
                    }
                }
                _ => {}
            }
        }
        Err(SyntaxError::at(start, format!("the JSON behind {after} has no closing `}}`; close it")))
    }

    /// Reads the Lark text between the braces that come next; returns its range. It's read word by word, because its
    /// texts and patterns may contain braces.
    pub(super) fn nested(&mut self) -> Result<(usize, usize), SyntaxError> {
        self.at.take_while(char::is_whitespace);
        let open = self.at.offset;
        if !self.starts_with("{") {
            return Err(SyntaxError::at(open, "`{` must follow `%lark`, and a grammar in it"));
        }
        self.at.offset += 1;
        let start = self.at.offset;
        let mut depth = 1;
        loop {
            match self.next()? {
                (_, Word::Sign('{')) => depth += 1,
                (at, Word::Sign('}')) => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok((start, at));
                    }
                }
                (_, Word::Directive(name)) if name == "json" && self.boolean().is_some() => {}
                (_, Word::Directive(name)) if matches!(&*name, "json" | "regex" | "llguidance" | "grammar_options") => {
                    self.json(&format!("`%{name}`"))?;
                }
                (_, Word::End) => {
                    return Err(SyntaxError::at(open, "the grammar behind `%lark` has no closing `}`; close it"));
                }
                _ => {}
            }
        }
    }
}

/// Every token except stop tokens.
fn all_tokens() -> TokenPattern {
    TokenPattern::Ids { ranges: Box::default(), negated: true }
}
