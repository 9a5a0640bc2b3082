//! Standard formats of strings as expressions between the quotes (JSON Schema Validation 2020-12, section 7.3).
//!
//! Dates and times follow RFC 3339 section 5.6 with its restrictions: only days that exist in the calendar, and a leap
//! second only at 23:59 UTC. Hosts and mailboxes are in [`addresses`], URIs and related formats in [`uri`], and so on.
//!
//! # Example
//! The format `date` is the bytes of `2023-02-28` and of all other days: after `2023-02-2`, the digits 0 to 8 may
//! follow, and 9 may not.

mod a_labels;
mod addresses;
mod ecma;
mod idn;
mod letters;
#[cfg(test)]
mod tests;
mod uri;
mod whole;

use std::sync::OnceLock;

use stencilm_regex::{ExprId, ExprSet};
use stencilm_support::{Held, unwatched};

use super::common::Common;
use super::format::{Format, Punycode};
use super::spelling::Spelling;
use super::strings::Strings;
use whole::whole;

pub(crate) use a_labels::language;

/// Months by length, then the last day of February: years divisible by 4, but centuries only by 400.
const DATE: &str = r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
const HOUR: &str = "(?:[01][0-9]|2[0-3])";
const MINUTE: &str = "[0-5][0-9]";
const FRACTION: &str = r"(?:\.[0-9]+)?";
const UUID: &str = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
/// RFC 3339, appendix A: units are in order, none between two others is left out, and weeks stand alone.
const DURATION: &str = r"P(?:(?:(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?)|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)|[0-9]+W)";
/// RFC 6901, section 3.
const POINTER: &str = "(?:/(?:[^/~]|~[01])*)*";
const NATURAL: &str = "(?:0|[1-9][0-9]*)";

/// Minutes of a day.
const DAY: u32 = 24 * 60;

/// Formats, built when first requested, by spelling: a grammar copies those that it uses and doesn't pay for others.
static BUILT: [[[Built; Punycode::Unchecked as usize + 1]; Format::ALL.len()]; Spelling::Bare as usize + 1] =
    [const { [const { [const { Built::new() }; _] }; _] }; _];

type Built = OnceLock<(ExprSet, ExprId)>;

impl Strings {
    /// The text between the quotes of a string of a format, in the current spelling.
    pub(crate) fn format(&mut self, exprs: &mut ExprSet, format: Format) -> ExprId {
        self.format_with(exprs, format, Punycode::Checked)
    }

    /// As [`Strings::format`], with a choice of the labels in Punycode.
    pub(crate) fn format_with(&mut self, exprs: &mut ExprSet, format: Format, punycode: Punycode) -> ExprId {
        let is_name = matches!(format, Format::Hostname | Format::IdnHostname);
        let punycode = if is_name { punycode } else { Punycode::Checked };
        let key = (self.spelling, format, punycode);
        if let Some(known) = self.known(|tables| tables.formats.get(&key).copied()) {
            return known;
        }
        let body = match self.common {
            Some(common) => shared(exprs, common, key),
            None => body(exprs, self, format, punycode),
        };
        self.own.formats.insert(key, body);
        body
    }
}

/// The text between the quotes of a string of a format, for a set of expressions that begins with the common ones.
fn shared(
    exprs: &mut ExprSet,
    common: &'static Common,
    (spelling, format, punycode): (Spelling, Format, Punycode),
) -> ExprId {
    let (built, body) = BUILT[spelling as usize][format as usize][punycode as usize].get_or_init(|| {
        let _held = Held::new();
        let mut exprs = common.exprs();
        let body = unwatched(|| body(&mut exprs, &mut Strings::over(spelling, Some(common)), format, punycode));
        exprs.shrink_to_fit();
        (exprs, body)
    });
    exprs.import(built, *body)
}

/// The text between the quotes of a string of a format.
fn body(exprs: &mut ExprSet, strings: &mut Strings, format: Format, punycode: Punycode) -> ExprId {
    let pattern = match format {
        Format::Time => return time(exprs, strings),
        Format::DateTime => {
            let date = strings.format(exprs, Format::Date);
            let mark = whole(exprs, strings, "[Tt]");
            let time = strings.format(exprs, Format::Time);
            return exprs.concat_all(&[date, mark, time]);
        }
        Format::Hostname => return addresses::hostname(exprs, strings, punycode),
        Format::IdnHostname => return idn::hostname(exprs, strings, punycode),
        Format::Regex => return ecma::pattern(exprs, strings),
        Format::Date => DATE.into(),
        Format::Duration => DURATION.into(),
        Format::Uuid => UUID.into(),
        Format::Ipv4 => addresses::ipv4(),
        Format::Ipv6 => addresses::ipv6(),
        Format::Email => addresses::email(false),
        Format::IdnEmail => addresses::email(true),
        Format::Uri => uri::absolute(false),
        Format::UriReference => uri::reference(false),
        Format::Iri => uri::absolute(true),
        Format::IriReference => uri::reference(true),
        Format::UriTemplate => uri::template(),
        Format::JsonPointer => POINTER.into(),
        Format::RelativeJsonPointer => format!("{NATURAL}(?:#|(?:[+\\-]{NATURAL})?{POINTER})"),
    };
    whole(exprs, strings, &pattern)
}

fn time(exprs: &mut ExprSet, strings: &mut Strings) -> ExprId {
    let pattern = format!("{HOUR}:{MINUTE}:{MINUTE}{FRACTION}(?:[Zz]|[+-]{HOUR}:{MINUTE})");
    let mut alternatives = vec![whole(exprs, strings, &pattern)];
    // A leap second ends a day in UTC: for every offset there is one hour and minute where it may be.
    let fraction = whole(exprs, strings, FRACTION);
    let digits: Vec<ExprId> = (0..10).map(|digit| strings.bodies(exprs, &[&format!("{digit}")])).collect();
    let number =
        |exprs: &mut ExprSet, number: u32| exprs.concat(digits[number as usize / 10], digits[number as usize % 10]);
    let [colon, plus, minus, second] = [":", "+", "-", ":60"].map(|text| strings.bodies(exprs, &[text]));
    let z = whole(exprs, strings, "[Zz]");
    let hours: Vec<ExprId> = (0..24)
        .map(|hour| {
            let minutes: Vec<ExprId> = (0..60)
                .map(|minute| {
                    // The offset east of UTC at which this minute is 23:59 UTC, and the same offset counted westwards.
                    let east = (hour * 60 + minute + 1) % DAY;
                    let west = (DAY - east) % DAY;
                    let mut offset = |sign, minutes| {
                        let (hours, minutes) = (number(exprs, minutes / 60), number(exprs, minutes % 60));
                        exprs.concat_all(&[sign, hours, colon, minutes])
                    };
                    let mut offsets = vec![offset(plus, east), offset(minus, west)];
                    if east == 0 {
                        offsets.push(z);
                    }
                    let offset = exprs.or(&offsets);
                    exprs.concat_all(&[second, fraction, offset])
                })
                .collect();
            let minutes = numbered(exprs, &digits, &minutes);
            exprs.concat(colon, minutes)
        })
        .collect();
    alternatives.push(numbered(exprs, &digits, &hours));
    exprs.or(&alternatives)
}

/// What follows each of the two-digit numbers from 00 on. Built digit by digit, so that a prefix leaves few
/// alternatives.
fn numbered(exprs: &mut ExprSet, digits: &[ExprId], after: &[ExprId]) -> ExprId {
    let tens: Vec<ExprId> = after
        .chunks(10)
        .zip(digits)
        .map(|(after, &ten)| {
            let ones: Vec<ExprId> = after.iter().zip(digits).map(|(&rest, &one)| exprs.concat(one, rest)).collect();
            let ones = exprs.or(&ones);
            exprs.concat(ten, ones)
        })
        .collect();
    exprs.or(&tens)
}
