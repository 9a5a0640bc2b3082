//! What stands after `::` and `%if`: how a use sets the parameter of a rule, and which parameters an alternative is
//! for.

use super::params::{Bits, Compare, Condition, Parameter};
use super::parser::{MAX_NESTING, Parser};
use super::scan::Word;
use crate::ir::syntax_error::SyntaxError;
use crate::notations::ebnf::escapes;

impl Parser<'_> {
    pub(super) fn parameter(&mut self) -> Result<Parameter, SyntaxError> {
        let (at, word) = self.next()?;
        match word {
            Word::Number(number) => Ok(Parameter::Value(value(at, &number)?)),
            Word::Name(name) if name == "_" => Ok(Parameter::Same),
            Word::Name(name) => {
                self.expect('(', "a function of parameters")?;
                let parameter = match &*name {
                    "set_bit" => Parameter::SetBit(self.bit(63)?),
                    "clear_bit" => Parameter::ClearBit(self.bit(63)?),
                    "bit_and" => Parameter::And(self.value()?),
                    "bit_or" => Parameter::Or(self.value()?),
                    "incr" => Parameter::Increment(self.bits()?),
                    "decr" => Parameter::Decrement(self.bits()?),
                    _ => {
                        let message = format!(
                            "`{name}` makes no parameter; there are a number, _, set_bit, clear_bit, bit_and, bit_or, \
                             incr and decr"
                        );
                        return Err(SyntaxError::at(at, message));
                    }
                };
                self.expect(')', "a function of parameters")?;
                Ok(parameter)
            }
            _ => Err(SyntaxError::at(at, format!("{} stands where a parameter must be", word.shown()))),
        }
    }

    fn value(&mut self) -> Result<u64, SyntaxError> {
        match self.next()? {
            (at, Word::Number(number)) => value(at, &number),
            (at, word) => Err(SyntaxError::at(at, format!("{} stands where a number must be", word.shown()))),
        }
    }

    fn bit(&mut self, most: u64) -> Result<u32, SyntaxError> {
        let place = self.words.offset();
        let bit = self.value()?;
        if bit > most {
            return Err(SyntaxError::at(place, format!("the bit {bit} is above {most}; a parameter has 64 bits")));
        }
        Ok(bit as u32)
    }

    /// `[from:to]`, or `_` for all.
    fn bits(&mut self) -> Result<Bits, SyntaxError> {
        let (place, word) = self.next()?;
        if word == Word::Name("_".into()) {
            return Ok(Bits::ALL);
        }
        if word != Word::Sign('[') {
            return Err(SyntaxError::at(place, format!("{} stands where bits must be: [0:3], or _", word.shown())));
        }
        let from = self.bit(63)?;
        self.expect(':', "the first bit")?;
        let to = self.bit(64)?;
        self.expect(']', "the last bit")?;
        if from >= to {
            return Err(SyntaxError::at(place, format!("the bits [{from}:{to}] are none; the end is not included")));
        }
        Ok(Bits { from, to })
    }

    pub(super) fn condition(&mut self, depth: usize) -> Result<Condition, SyntaxError> {
        let (at, name) = self.name("a condition")?;
        if depth > MAX_NESTING {
            let message = format!("conditions are nested more than {MAX_NESTING} deep; split the alternative");
            return Err(SyntaxError::limit(at, message));
        }
        if name == "true" {
            if self.takes(&Word::Sign('('))? {
                self.expect(')', "`true(`")?;
            }
            return Ok(Condition::True);
        }
        let compare = |name: &str| {
            Some(match name {
                "eq" => Compare::Equal,
                "ne" => Compare::NotEqual,
                "lt" => Compare::Less,
                "le" => Compare::LessOrEqual,
                "gt" => Compare::Greater,
                "ge" => Compare::GreaterOrEqual,
                _ => return None,
            })
        };
        self.expect('(', "the name of a condition")?;
        let condition = match &*name {
            "bit_clear" | "bit_set" => {
                let from = self.bit(63)?;
                let bits = Bits { from, to: from + 1 };
                Condition::Bits(bits, Compare::Equal, u64::from(name == "bit_set"))
            }
            "is_ones" => Condition::ones(self.bits()?),
            "is_zeros" => Condition::Bits(self.bits()?, Compare::Equal, 0),
            "and" | "or" => {
                let left = Box::new(self.condition(depth + 1)?);
                self.expect(',', "the first condition")?;
                let right = Box::new(self.condition(depth + 1)?);
                if name == "and" { Condition::And(left, right) } else { Condition::Or(left, right) }
            }
            "not" => Condition::Not(Box::new(self.condition(depth + 1)?)),
            _ => {
                let counts = name.strip_prefix("bit_count_");
                let Some(compare) = compare(counts.unwrap_or(&name)) else {
                    let message = format!(
                        "`{name}` is no condition; there are true, bit_clear, bit_set, is_ones, is_zeros, eq, ne, lt, \
                         le, gt, ge, the same with bit_count_ before, and, or, not"
                    );
                    return Err(SyntaxError::at(at, message));
                };
                let bits = self.bits()?;
                self.expect(',', "the bits")?;
                let value = self.value()?;
                match counts {
                    Some(_) => Condition::Count(bits, compare, value),
                    None => Condition::Bits(bits, compare, value),
                }
            }
        };
        self.expect(')', "a condition")?;
        Ok(condition)
    }
}

fn value(at: usize, number: &str) -> Result<u64, SyntaxError> {
    let read = match number.strip_prefix("0x").or_else(|| number.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => number.parse(),
    };
    read.map_err(|_| SyntaxError::at(at, format!("{} is no number of 64 bits", escapes::excerpt(number))))
}
