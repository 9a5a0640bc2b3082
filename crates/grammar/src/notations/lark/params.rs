//! Parameters of rules: 64 bits, what a use makes of them, and the conditions of alternatives.

/// Bits `from..to` of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bits {
    pub from: u32,
    pub to: u32,
}

impl Bits {
    pub(super) const ALL: Bits = Bits { from: 0, to: 64 };

    /// The value with all of these bits set.
    fn ones(self) -> u64 {
        u64::MAX >> (64 - (self.to - self.from))
    }

    fn of(self, value: u64) -> u64 {
        value >> self.from & self.ones()
    }
}

/// How a use of a rule computes its parameter from the current one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Parameter {
    Same,
    Value(u64),
    SetBit(u32),
    ClearBit(u32),
    And(u64),
    Or(u64),
    Increment(Bits),
    Decrement(Bits),
}

impl Parameter {
    pub(super) fn of(self, old: u64) -> u64 {
        match self {
            Parameter::Same => old,
            Parameter::Value(value) => value,
            Parameter::SetBit(bit) => old | 1 << bit,
            Parameter::ClearBit(bit) => old & !(1 << bit),
            Parameter::And(value) => old & value,
            Parameter::Or(value) => old | value,
            Parameter::Increment(bits) if bits.of(old) == bits.ones() => old,
            Parameter::Increment(bits) => old + (1 << bits.from),
            Parameter::Decrement(bits) if bits.of(old) == 0 => old,
            Parameter::Decrement(bits) => old - (1 << bits.from),
        }
    }
}

/// How two numbers compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Compare {
    fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Compare::Equal => left == right,
            Compare::NotEqual => left != right,
            Compare::Less => left < right,
            Compare::LessOrEqual => left <= right,
            Compare::Greater => left > right,
            Compare::GreaterOrEqual => left >= right,
        }
    }
}

/// The condition of an alternative. It's nested only as deeply as the parser allows, which is not deep.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Condition {
    True,
    Bits(Bits, Compare, u64),
    Count(Bits, Compare, u64),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

impl Condition {
    pub(super) fn holds(&self, parameter: u64) -> bool {
        match self {
            Condition::True => true,
            Condition::Bits(bits, compare, value) => compare.holds(bits.of(parameter), *value),
            Condition::Count(bits, compare, value) => compare.holds(u64::from(bits.of(parameter).count_ones()), *value),
            Condition::And(left, right) => left.holds(parameter) && right.holds(parameter),
            Condition::Or(left, right) => left.holds(parameter) || right.holds(parameter),
            Condition::Not(inner) => !inner.holds(parameter),
        }
    }

    /// The condition that all of these bits are set.
    pub(super) fn ones(bits: Bits) -> Condition {
        Condition::Bits(bits, Compare::Equal, bits.ones())
    }
}
