//! A record of what a matcher has accepted, kept if its grammar has captures.

/// The accepted steps.
#[derive(Clone, Default)]
pub(crate) struct Record {
    /// The bytes, with [`NO_BYTE`] for a token without bytes.
    pub units: Vec<u16>,
    /// The tokens: first unit, end, and id.
    pub tokens: Vec<(u32, u32, u32)>,
    /// The numbers of units and tokens after each step.
    pub marks: Vec<(u32, u32)>,
    /// The number of units before the first step.
    begun: u32,
}

/// The unit of a token without bytes.
pub const NO_BYTE: u16 = 256;

impl Record {
    /// A record of no steps, whose text begins with these bytes.
    pub fn begun(bytes: &[u8]) -> Record {
        let units: Vec<u16> = bytes.iter().map(|&byte| u16::from(byte)).collect();
        Record { begun: units.len() as u32, units, ..Record::default() }
    }

    /// Adds a step: a token with its bytes, or bytes alone.
    pub fn push(&mut self, token: Option<u32>, bytes: &[u8]) {
        let from = self.units.len() as u32;
        self.units.extend(bytes.iter().map(|&byte| u16::from(byte)));
        if let Some(id) = token {
            if bytes.is_empty() {
                self.units.push(NO_BYTE);
            }
            self.tokens.push((from, self.units.len() as u32, id));
        }
        self.marks.push((self.units.len() as u32, self.tokens.len() as u32));
    }

    /// Forgets all but the first `steps` steps.
    pub fn truncate(&mut self, steps: usize) {
        self.marks.truncate(steps);
        let (units, tokens) = self.marks.last().copied().unwrap_or((self.begun, 0));
        self.units.truncate(units as usize);
        self.tokens.truncate(tokens as usize);
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.units.len() * 2 + self.tokens.len() * 12 + self.marks.len() * 8
    }

    pub fn bytes(&self, from: u32, to: u32) -> Vec<u8> {
        self.units[from as usize..to as usize].iter().filter_map(|&unit| u8::try_from(unit).ok()).collect()
    }
}
