//! A place in an EBNF text that is read.

/// A text and a position in it.
pub(crate) struct Scanner<'a> {
    pub(crate) text: &'a str,
    /// Where the next word begins, after whitespace.
    pub(crate) offset: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    pub(crate) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.offset += end;
        &rest[..end]
    }
}
