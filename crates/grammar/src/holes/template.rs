//! A text with holes as data: all its bytes in a row, and the places at which any bytes may stand between them.

use rustc_hash::FxHashSet;

use crate::error::{ErrorKind, GrammarError};

/// A part of a text with holes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'t> {
    /// These bytes.
    Text(&'t [u8]),
    /// Any bytes, none among them.
    Hole,
}

/// Most bytes of the text around holes.
const MAX_BYTES: usize = 64 << 20;

/// The bytes of a text, and where holes are in it.
#[derive(Clone, Default, Debug)]
pub(super) struct Template {
    bytes: Vec<u8>,
    holes: FxHashSet<u32>,
}

impl Template {
    /// The template of some pieces.
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

    /// The place behind the last byte.
    pub fn end(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// The first place at which any bytes may stand.
    pub fn first_hole(&self) -> Option<u32> {
        self.holes.iter().min().copied()
    }

    /// Whether there is any hole.
    pub fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// Whether any bytes may stand at a place.
    pub fn is_hole(&self, place: u32) -> bool {
        !self.holes.is_empty() && self.holes.contains(&place)
    }

    /// Whether there is a hole from one place to another, both included.
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

    /// The bytes between two places.
    pub fn between(&self, from: u32, to: u32) -> &[u8] {
        &self.bytes[from as usize..to as usize]
    }
}
