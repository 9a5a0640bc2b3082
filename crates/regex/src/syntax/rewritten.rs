//! A pattern in another spelling, with a map back: every offset in it has an offset in the user's own text.

/// A pattern in the spelling of `regex-syntax`.
pub(super) struct Rewritten {
    pub text: String,
    /// Where the two texts run in parallel, or one piece replaces another; sorted by `rewritten`.
    pieces: Vec<Piece>,
    original_len: usize,
}

struct Piece {
    rewritten: usize,
    original: usize,
    verbatim: bool,
}

impl Rewritten {
    /// The Standard dialect. It differs from `regex-syntax` in Python's `\Z` and in an opening bracket within a class:
    /// the bracket is a character, as in Python, unless it begins a POSIX name or comes after a set operation, or where
    /// classes may be `nested`.
    pub fn standard(pattern: &str, nested: bool) -> Rewritten {
        let mut rewritten = Rewritten::empty(pattern);
        // Under `(?x)` brackets may be in comments.
        let is_verbose = sets_verbose(pattern);
        let mut classes = 0;
        let mut at = 0;
        while let Some(c) = pattern[at..].chars().next() {
            let rest = &pattern[at..];
            let end = at + c.len_utf8();
            match c {
                '\\' => {
                    let escaped = pattern[end..].chars().next().map_or(0, char::len_utf8);
                    if rest.starts_with("\\Z") {
                        rewritten.replace(at, "\\z");
                    } else {
                        rewritten.copy(pattern, at, end + escaped);
                    }
                    at = end + escaped;
                    continue;
                }
                '[' if is_verbose => {}
                '[' if classes > 0 && posix_name(rest) > 0 => {
                    rewritten.copy(pattern, at, at + posix_name(rest));
                    at += posix_name(rest);
                    continue;
                }
                '[' if classes > 0
                    && !nested
                    && !["&&", "--", "~~"].iter().any(|sign| pattern[..at].ends_with(sign)) =>
                {
                    rewritten.replace(at, "\\[");
                    at = end;
                    continue;
                }
                '[' => {
                    classes += 1;
                    // A bracket in first position is a character.
                    let inner = &pattern[end..];
                    let first = inner.strip_prefix('^').unwrap_or(inner);
                    let end = pattern.len() - first.len() + usize::from(first.starts_with(']'));
                    rewritten.copy(pattern, at, end);
                    at = end;
                    continue;
                }
                ']' if classes > 0 => classes -= 1,
                _ => {}
            }
            rewritten.copy(pattern, at, end);
            at = end;
        }
        rewritten
    }

    /// The offset in the user's text of an offset in the rewritten text.
    pub fn original(&self, offset: usize) -> usize {
        let after = self.pieces.partition_point(|piece| piece.rewritten <= offset);
        let found = match after.checked_sub(1).map(|index| &self.pieces[index]) {
            None => offset,
            Some(piece) if piece.verbatim => piece.original + (offset - piece.rewritten),
            Some(piece) => piece.original,
        };
        found.min(self.original_len)
    }

    /// An empty rewriting of this pattern.
    pub fn empty(pattern: &str) -> Rewritten {
        Rewritten { text: String::with_capacity(pattern.len()), pieces: Vec::new(), original_len: pattern.len() }
    }

    /// Copies `pattern[start..end]` unchanged.
    pub fn copy(&mut self, pattern: &str, start: usize, end: usize) {
        let parallel = self.pieces.last().map_or(self.text.len() == start, |last| {
            last.verbatim && Some(self.text.len() - last.rewritten) == start.checked_sub(last.original)
        });
        if !parallel {
            self.pieces.push(Piece { rewritten: self.text.len(), original: start, verbatim: true });
        }
        self.text.push_str(&pattern[start..end]);
    }

    /// Writes `text` for the user's piece that starts at `start`.
    pub fn replace(&mut self, start: usize, text: &str) {
        self.pieces.push(Piece { rewritten: self.text.len(), original: start, verbatim: false });
        self.text.push_str(text);
    }

    /// Copies a range of another rewriting of the same pattern, with its offsets.
    pub fn append(&mut self, other: &Rewritten, start: usize, end: usize) {
        let inside = other.pieces.iter().filter(|piece| start < piece.rewritten && piece.rewritten < end);
        let first = other.pieces.iter().rev().find(|piece| piece.rewritten <= start);
        let verbatim = first.is_none_or(|piece| piece.verbatim);
        let offset = self.text.len();
        self.pieces.push(Piece { rewritten: offset, original: other.original(start), verbatim });
        self.pieces.extend(inside.map(|piece| Piece { rewritten: piece.rewritten - start + offset, ..*piece }));
        self.text.push_str(&other.text[start..end]);
    }
}

/// The length of a POSIX name such as `[:alpha:]` at the beginning of a text; 0 where there is none.
fn posix_name(text: &str) -> usize {
    let Some(inner) = text.strip_prefix("[:") else { return 0 };
    match inner.find(":]") {
        Some(end) if inner[..end].trim_start_matches('^').chars().all(|c| c.is_ascii_lowercase()) => end + 4,
        _ => 0,
    }
}

/// Whether the flags of a pattern may turn `x` on.
fn sets_verbose(pattern: &str) -> bool {
    pattern.match_indices("(?").any(|(at, _)| {
        let flags = pattern[at + 2..].split([':', ')', '-', '<', '=', '!', 'P']).next().unwrap_or("");
        flags.contains('x')
    })
}
