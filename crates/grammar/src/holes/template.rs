//! A text with holes as data: all its bytes in a row, and the places at which any bytes may stand between them.

use rustc_hash::FxHashSet;

use crate::error::{ErrorKind, GrammarError};

/// A part of a text with holes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'t> {
    /// These bytes.
    Text(&'t [u8]),
    /// Any bytes, or none.
    Hole,
}

/// The greatest number of bytes of the text around the holes.
const MAX_BYTES: usize = 64 << 20;

/// The bytes of a text, and the places of its holes.
#[derive(Clone, Default, Debug)]
pub(super) struct Template {
    bytes: Vec<u8>,
    holes: FxHashSet<u32>,
}

impl Template {
    /// The template of these pieces.
    pub fn of(pieces: &[Piece<'_>]) -> Result<Template, GrammarError> {
        let length =
            pieces.iter().map(|piece| if let Piece::Text(text) = piece { text.len() } else { 0 }).sum::<usize>();
        if length > MAX_BYTES {
            let message = format!("the text has {length} bytes and at most {MAX_BYTES} are accepted; shorten it");
            return Err(GrammarError::new(ErrorKind::Limit, "", message));
        }
        let mut template = Template::default();
        for piece in pieces {
            match piece {
                Piece::Text(text) => template.bytes.extend_from_slice(text),
                Piece::Hole => {
                    template.holes.insert(template.bytes.len() as u32);
                }
            }
        }
        Ok(template)
    }

    /// The place after the last byte.
    pub fn end(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// The first hole.
    pub fn first_hole(&self) -> Option<u32> {
        self.holes.iter().min().copied()
    }

    /// Whether there is a hole at a place.
    pub fn is_hole(&self, place: u32) -> bool {
        !self.holes.is_empty() && self.holes.contains(&place)
    }

    /// Whether there is a hole between two places, both included.
    pub fn has_hole(&self, from: u32, to: u32) -> bool {
        self.holes.iter().any(|hole| (from..=to).contains(hole))
    }

    /// The byte that ends at a place.
    pub fn before(&self, place: u32) -> Option<u8> {
        self.bytes.get((place as usize).checked_sub(1)?).copied()
    }

    /// The byte that begins at a place.
    pub fn after(&self, place: u32) -> Option<u8> {
        self.bytes.get(place as usize).copied()
    }

    /// Where a nonempty text that ends at a place may begin.
    pub fn starts_of(&self, text: &[u8], end: u32) -> Vec<u32> {
        let (starts, _) = self.matched(text, end);
        starts
    }

    /// Whether a text that ends at a place may have begun before the first byte.
    pub fn is_begun_before(&self, text: &[u8], end: u32) -> bool {
        let (_, is_begun) = self.matched(text, end);
        is_begun
    }

    /// The results of [`Template::starts_of`] and [`Template::is_begun_before`].
    fn matched(&self, text: &[u8], end: u32) -> (Vec<u32>, bool) {
        // The numbers of bytes that may be left to match at a place, ascending.
        let (mut place, mut left, mut starts) = (end, vec![text.len()], Vec::new());
        loop {
            if self.is_hole(place) {
                left = (0..=left.last().copied().unwrap_or(0)).collect();
            }
            if left.first() == Some(&0) {
                starts.push(place);
            }
            let Some(byte) = self.before(place) else { return (starts, left.iter().any(|&left| left > 0)) };
            left.retain(|&left| left > 0 && text[left - 1] == byte);
            left.iter_mut().for_each(|left| *left -= 1);
            if left.is_empty() {
                return (starts, false);
            }
            place -= 1;
        }
    }

    /// The bytes between two places.
    pub fn between(&self, from: u32, to: u32) -> &[u8] {
        &self.bytes[from as usize..to as usize]
    }
}
