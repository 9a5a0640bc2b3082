//! Bytes that settle what stands before them, whatever follows: laid out by state of the pre-tokenizer.

use stencilm_regex::ByteSet;

use super::pattern::{DEAD, PreTokenizer};

/// Bytes after which it is known beforehand how a text goes on, by what stands before them.
pub(crate) struct Probes {
    /// By state of the pre-tokenizer: the bytes that always begin another piece.
    pub new_piece: Vec<ByteSet>,
    /// By state: the bytes that either do so or go on with the piece.
    pub plain: Vec<ByteSet>,
}

impl Probes {
    pub fn new(pretokenizer: Option<&PreTokenizer>) -> Probes {
        let Some(pretokenizer) = pretokenizer else { return Probes { new_piece: Vec::new(), plain: Vec::new() } };
        let of = |state: u16| {
            let (mut new_piece, mut plain) = (ByteSet::EMPTY, ByteSet::EMPTY);
            for byte in 0..128u8 {
                if pretokenizer.may_end(state) {
                    plain.insert(byte);
                    if pretokenizer.step(state, pretokenizer.class(char::from(byte))).0 == DEAD {
                        new_piece.insert(byte);
                    }
                }
            }
            (new_piece, plain)
        };
        let (new_piece, plain) = (0..pretokenizer.num_states() as u16).map(of).unzip();
        Probes { new_piece, plain }
    }
}
