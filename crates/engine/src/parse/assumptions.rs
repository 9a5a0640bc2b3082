//! What a mask takes for granted of keys and elements, and checks only where that may be wrong.

/// What an optimistic step assumed when it took a key or an element for a new one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Assumptions {
    /// The object of the key has used additional keys before.
    pub seen: bool,
    /// The object of the key has reserved names. The walk itself excludes those in plain spelling, unless the whole key
    /// lies within one token.
    pub reserved: bool,
    /// The whole key lies within the token.
    pub whole: bool,
    /// An element is new, of an array that has others and whose elements must differ.
    pub element: bool,
    /// An element repeats an earlier one, in an array that needs two equal elements.
    pub repeat: bool,
    /// The token ends within a key that only a few further keys begin with, and some may be used.
    pub locally_finite: bool,
    /// The thread that this belongs to began within the token. This is no assumption.
    pub later: bool,
}

impl Assumptions {
    /// Whether anything was assumed.
    #[inline]
    pub fn is_any(&self) -> bool {
        self.seen | self.reserved | self.whole | self.element | self.repeat | self.locally_finite
    }
    /// How many bits [`Assumptions::to_bits`] needs.
    pub const BITS: u32 = 5;

    /// What a step may assume, as the lowest bits of a number. The walk that takes the step knows the rest.
    pub fn to_bits(self) -> u32 {
        let of_a_step = [self.seen, self.reserved, self.element, self.repeat, self.locally_finite];
        of_a_step.iter().enumerate().map(|(bit, &is_assumed)| u32::from(is_assumed) << bit).sum()
    }

    /// What is assumed after steps of all threads together, with the bits of what these assumed. Which key ended is not
    /// known there, so it is assumed to lie within the token.
    #[inline]
    pub fn after_steps(self, bits: u32) -> Assumptions {
        let has = |bit: u32| bits >> bit & 1 == 1;
        Assumptions {
            seen: self.seen || has(0),
            reserved: self.reserved || has(1),
            whole: self.whole || has(0) || has(1),
            element: self.element || has(2),
            repeat: self.repeat || has(3),
            locally_finite: self.locally_finite || has(4),
            later: true,
        }
    }
}
