//! Standard formats of strings as expressions between the quotes (JSON Schema Validation 2020-12, section 7.3).
//!
//! Dates and times follow RFC 3339 section 5.6 with its restrictions: days that the calendar has, and a leap second only
//! where it is 23:59 in UTC.

use stencilm_regex::ExprId;
use stencilm_regex::syntax::{Alphabet, Anchoring, Dialect, PatternOptions, parse_pattern};

use super::lower::Lowering;
use super::schema::Format;

/// Months by length, then the last day of February: years divisible by 4, but centuries only by 400.
const DATE: &str = r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
const HOUR: &str = "(?:[01][0-9]|2[0-3])";
const MINUTE: &str = "[0-5][0-9]";
const FRACTION: &str = r"(?:\.[0-9]+)?";
const UUID: &str = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
const BYTE: &str = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";

/// Minutes of a day.
const DAY: u32 = 24 * 60;

impl Lowering<'_> {
    /// What stands between the quotes of a string of a format.
    pub(super) fn format(&mut self, format: Format) -> ExprId {
        if let Some(&known) = self.formats.get(&format) {
            return known;
        }
        let body = match format {
            Format::Date => self.whole(DATE),
            Format::Time => self.time(),
            Format::DateTime => {
                let date = self.whole(DATE);
                let mark = self.whole("[Tt]");
                let time = self.time();
                self.builder.exprs.concat_all(&[date, mark, time])
            }
            Format::Uuid => self.whole(UUID),
            Format::Ipv4 => self.whole(&format!(r"{BYTE}(?:\.{BYTE}){{3}}")),
        };
        self.formats.insert(format, body);
        body
    }

    fn time(&mut self) -> ExprId {
        let common = self.whole(&format!("{HOUR}:{MINUTE}:{MINUTE}{FRACTION}(?:[Zz]|[+-]{HOUR}:{MINUTE})"));
        let mut ways = vec![common];
        // A leap second ends the day in UTC: for every offset there is one hour and minute where it may stand.
        let fraction = self.whole(FRACTION);
        for hour in 0..24 {
            let mut minutes = Vec::with_capacity(60);
            for minute in 0..60 {
                // The offset east of UTC for which this minute is 23:59 there, and the same counted westwards.
                let east = (hour * 60 + minute + 1) % DAY;
                let west = (DAY - east) % DAY;
                let mut offsets = vec![format!("+{:02}:{:02}", east / 60, east % 60)];
                offsets.push(format!("-{:02}:{:02}", west / 60, west % 60));
                if east == 0 {
                    offsets.extend(["Z".to_string(), "z".to_string()]);
                }
                let start = self.text(&[format!(":{minute:02}:60")]);
                let end = self.text(&offsets);
                minutes.push(self.builder.exprs.concat_all(&[start, fraction, end]));
            }
            let start = self.text(&[format!("{hour:02}")]);
            let rest = self.builder.exprs.or(&minutes);
            ways.push(self.builder.exprs.concat(start, rest));
        }
        self.builder.exprs.or(&ways)
    }

    /// Any of these texts.
    fn text(&mut self, texts: &[String]) -> ExprId {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.strings.bodies(&mut self.builder.exprs, &texts)
    }

    /// A pattern of ours that has to match everything.
    fn whole(&mut self, pattern: &str) -> ExprId {
        let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
        let mut alphabet = self.strings.alphabet();
        let alphabet: &mut dyn Alphabet = &mut alphabet;
        parse_pattern(&mut self.builder.exprs, pattern, &options, alphabet)
            .expect("the patterns of this file are well-formed")
    }
}
