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
