//! Choices read from bytes: the same bytes make the same case, and fewer or smaller bytes make a simpler one.

/// A cursor in bytes. After their end every choice is the first one, so that everything terminates.
#[derive(Clone)]
pub struct Choices<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Choices<'a> {
    /// The choices that these bytes make.
    pub fn new(data: &'a [u8]) -> Choices<'a> {
        Choices { data, at: 0 }
    }

    /// Whether all bytes have been used.
    pub fn is_exhausted(&self) -> bool {
        self.at >= self.data.len()
    }

    fn byte(&mut self) -> usize {
        let byte = self.data.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte)
    }

    /// A number below a bound of at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        match bound {
            0 | 1 => 0,
            2..=256 => self.byte() % bound,
            _ => (self.byte() + (self.byte() << 8) + (self.byte() << 16)) % bound,
        }
    }

    /// True once in `one_in` times on average; never after the end of the bytes.
    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) + 1 == one_in && one_in > 1
    }

    /// One of the items, which must not be empty.
    pub fn pick<'b, T>(&mut self, items: &'b [T]) -> &'b T {
        &items[self.below(items.len())]
    }
}

/// `len` bytes that depend only on the seed (xorshift64*).
pub fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = (seed ^ 0xD1B5_4A32_D192_ED03).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..len)
        .map(|_| {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 56) as u8
        })
        .collect()
}
