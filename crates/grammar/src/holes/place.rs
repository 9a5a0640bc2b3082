//! A place in a text, and whether it is certain that something begins there.

/// A place, in bytes from the beginning of the text. An undecided place is reached only through something that could
/// not be decided.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Place(u32);

impl Place {
    pub fn new(position: u32) -> Place {
        Place(position << 1)
    }

    pub fn position(self) -> u32 {
        self.0 >> 1
    }

    pub fn is_undecided(self) -> bool {
        self.0 & 1 != 0
    }

    /// The same place, marked as undecided.
    pub fn undecided(self) -> Place {
        Place(self.0 | 1)
    }

    /// The same place, undecided if the other one is.
    pub fn after(self, other: Place) -> Place {
        Place(self.0 | (other.0 & 1))
    }
}
