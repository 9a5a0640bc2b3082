//! Sets of numbers compared with their definition, in integers that count a small power of ten.

use proptest::prelude::*;

use super::*;
use crate::{Deriver, ExprId, ExprSet, Limits, Shortest};

/// Numbers are counted in units of `10^-PLACES`.
const PLACES: u32 = 12;

/// A number text as such an integer; `None` where it is too large or has more places.
fn counted(text: &str) -> Option<i128> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (int, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: i128 = format!("{int}{fraction}").parse().ok()?;
    let power = i32::try_from(PLACES).unwrap() + exponent.parse::<i32>().ok()? - fraction.len() as i32;
    let unit = 10i128.checked_pow(power.unsigned_abs())?;
    if power >= 0 { digits.checked_mul(unit) } else { (digits % unit == 0).then_some(digits / unit) }
}

#[derive(Clone, Debug)]
struct Asked {
    lower: Option<(String, bool)>,
    upper: Option<(String, bool)>,
    multiple_of: Vec<String>,
    not_multiple_of: Vec<String>,
    form: NumberForm,
}

impl Asked {
    fn set(&self) -> NumberSet {
        let number = |text: &String| Decimal::parse_checked(text).unwrap();
        let end = |end: &Option<(String, bool)>| {
            end.as_ref().map(|(text, exclusive)| End { value: number(text), exclusive: *exclusive })
        };
        let list = |texts: &[String]| texts.iter().map(number).collect::<Vec<_>>();
        let (multiple_of, others) = (list(&self.multiple_of), list(&self.not_multiple_of));
        NumberSet::new(end(&self.lower).as_ref(), end(&self.upper).as_ref(), &multiple_of, &others, self.form).unwrap()
    }

    /// Whether a number text is a member; `None` where it cannot be counted.
    fn holds(&self, text: &str) -> Option<bool> {
        let count = counted(text)?;
        let value = |text: &str| counted(text).unwrap();
        let form = match self.form {
            NumberForm::Any => true,
            NumberForm::Plain => !text.contains(['e', 'E']),
            NumberForm::Scientific => is_scientific(text),
            NumberForm::Digits => !text.contains(['e', 'E', '.']),
        };
        let holds = form
            && self.lower.as_ref().is_none_or(|(end, open)| count > value(end) || (!open && count == value(end)))
            && self.upper.as_ref().is_none_or(|(end, open)| count < value(end) || (!open && count == value(end)))
            && self.multiple_of.iter().all(|step| count % value(step) == 0)
            && !self.not_multiple_of.iter().any(|step| count % value(step) == 0);
        Some(holds)
    }
}

/// Whether a number text has the form that common writers of JSON give to very small and very large numbers.
fn is_scientific(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let Some((mantissa, exponent)) = unsigned.split_once('e') else { return false };
    let (int, _) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let size = exponent.trim_start_matches(['+', '-']);
    let power: i64 = exponent.parse().unwrap();
    let padded = exponent == format!("-0{}", -power);
    int.len() == 1
        && int != "0"
        && (size == power.abs().to_string() || padded && power > -10)
        && ((-324..=-5).contains(&power) || (13..=308).contains(&power))
}

fn end() -> impl Strategy<Value = Option<(String, bool)>> {
    let numbers = [
        "0", "1", "-1", "2", "5", "7", "10", "12", "-12", "99", "100", "101", "-250", "0.5", "1.5", "-0.05", "0.099",
        "9.5", "1234.5", "1e3", "97", "0.001", "1000.01", "1e-7", "2.5e-6", "-1.2e-5", "1e13", "-2.5e14", "1.01e15",
    ];
    proptest::option::weighted(0.7, (proptest::sample::select(numbers.map(String::from).to_vec()), any::<bool>()))
}

fn steps(most: usize) -> impl Strategy<Value = Vec<String>> {
    let numbers = [
        "1", "2", "3", "7", "97", "0.01", "0.1", "0.25", "2.5", "10", "100", "1e3", "6", "0.0001", "5", "1e-6", "1500",
    ];
    proptest::collection::vec(proptest::sample::select(numbers.map(String::from).to_vec()), 0..=most)
}

fn asked() -> impl Strategy<Value = Asked> {
    let form =
        proptest::sample::select(vec![NumberForm::Any, NumberForm::Plain, NumberForm::Scientific, NumberForm::Digits]);
    (end(), end(), steps(2), steps(2), form).prop_map(|(lower, upper, multiple_of, not_multiple_of, form)| {
        // Far from 0, finding the shortest number in any form that no small number divides takes long.
        let near = |end: &(String, bool)| form != NumberForm::Any || !end.0.contains("e1");
        Asked { lower: lower.filter(near), upper: upper.filter(near), multiple_of, not_multiple_of, form }
    })
}

/// Texts of numbers near those of the sets.
fn texts() -> impl Strategy<Value = Vec<String>> {
    let int = proptest::sample::select(
        [
            "0", "1", "2", "5", "7", "9", "10", "12", "97", "98", "99", "100", "101", "194", "250", "970", "1000",
            "1234", "3000", "25",
        ]
        .map(String::from)
        .to_vec(),
    );
    let fraction = proptest::option::of("[0159]{0,2}[0-9]{1,2}0{0,2}");
    let exponent = proptest::option::of("[eE]([+-]?0?[0-3]|-0?[0-4])|e-0?[5-9]|e[+]?1[0-5]");
    let digit = proptest::sample::select(["1", "2", "5", "7", "9"].map(String::from).to_vec());
    let int = prop_oneof![int, digit];
    let text = ("-?", int, fraction, exponent).prop_map(|(sign, int, fraction, exponent)| {
        let fraction = fraction.map(|digits| format!(".{digits}")).unwrap_or_default();
        format!("{sign}{int}{fraction}{}", exponent.unwrap_or_default())
    });
    proptest::collection::vec(text, 60)
}

/// Checks that every text is decided by definition, and that no open prefix of one is a dead end.
fn check(asked: &Asked, texts: &[String]) -> Result<(), TestCaseError> {
    let mut deriver = Deriver::new(Limits::default());
    let set = asked.set();
    let root = deriver.exprs.numbers(set.clone());
    for text in texts {
        let Some(expected) = asked.holds(text) else { continue };
        prop_assert_eq!(deriver.matches(root, text.as_bytes()).unwrap(), expected, "{}", text);
        if set.form() == NumberForm::Any {
            prop_assert_eq!(set.contains(&Decimal::parse(text).unwrap()), expected, "{}", text);
        }
        let mut state = root;
        for (at, byte) in text.bytes().enumerate() {
            state = deriver.after(state, byte).unwrap();
            if state == ExprId::NOTHING {
                break;
            }
            if !deriver.exprs.is_nullable(state) {
                let rest = match Shortest::new(&deriver, state, 1, 200_000).next(&mut deriver) {
                    Ok(rest) => rest,
                    // With an exponent, a number that some numbers divide and others do not may need a dozen more
                    // digits.
                    Err(_) if asked.form == NumberForm::Scientific && !asked.not_multiple_of.is_empty() => continue,
                    Err(error) => panic!("{error} behind {text} of {set}"),
                };
                let rest = String::from_utf8(rest.expect("a live state can be completed")).unwrap();
                let whole = format!("{}{rest}", &text[..=at]);
                prop_assert!(
                    Decimal::parse_checked(&whole).is_some() && asked.holds(&whole) != Some(false),
                    "{} was completed",
                    whole
                );
                prop_assert!(deriver.exprs.shortest_at_least(state) as usize <= rest.len(), "{}", whole);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn sets_are_what_they_say(asked in asked(), texts in texts()) {
        check(&asked, &texts)?;
    }

    #[test]
    fn sets_print_and_read_back(asked in asked()) {
        let set = asked.set();
        prop_assert_eq!(NumberSet::parse(&set.to_string()).unwrap(), set);
    }
}

fn accepts(set: &str, texts: &[&str]) {
    let mut deriver = Deriver::new(Limits::default());
    let root = deriver.exprs.numbers(NumberSet::parse(set).unwrap());
    for text in texts {
        let (text, expected) = text.strip_prefix('!').map_or((*text, true), |text| (text, false));
        assert_eq!(deriver.matches(root, text.as_bytes()).unwrap(), expected, "{text} in {set}");
    }
}

#[test]
fn numbers_of_any_spelling() {
    accepts(
        "*1 any",
        &["1e2", "100.0", "1000e-1", "-0", "0e-99", "1e400", "!1e-1", "!15e-1", "150E-1", "1e99999999999", "!1.5e0"],
    );
    accepts(
        ">=1 <=100 *1 any",
        &["1", "100", "1e2", "1e+02", "0.1e1", "!1e3", "!0", "!0.1e4", "100.00", "0.0007e4", "!101"],
    );
    accepts(">=5 <=5 any", &["5", "5.0", "50e-1", "0.05e2", "!6", "!5.1", "!-5", "5000000e-6"]);
    accepts(">0 any", &["!0", "!0.0", "!-1", "1e-999999", "!0e5"]);
    accepts(">=-1e400 <=-1e400 any", &["-1e400", "-10e399", "!1e400", "!-1e401"]);
    accepts("*1e-8 plain", &["0.00000001", "1.123456780", "!0.000000001", "-3", "0.0", "!1e2"]);
    accepts("*1e308 any", &["1e308", "3e308", "!1e307", "0", "!15e307", "1e309"]);
    accepts(">1 <1e30 *1e20 plain", &["300000000000000000000", "!300000000000000000001", "!0"]);
    accepts(">=0 <=0 plain", &["0", "-0", "0.000", "!1"]);
    accepts("!*1 plain", &["0.5", "!5", "!5.0", "!0", "-1.25", "5.000001", "1.50"]);
    accepts("!*1 any", &["0.5", "!5", "5e-1", "!0.5e1", "0.55e1", "!0"]);
    accepts(
        ">0 scientific",
        &[
            "1e-5", "1e-05", "!1e-005", "!1e-4", "1.50e-10", "!1e-010", "!0e-5", "!10e-6", "!1E-5", "!-1e-5", "5e-324",
            "!1e-325",
        ],
    );
    accepts(
        ">=0 scientific",
        &["1e16", "1e+16", "!1e12", "1.7976931348623157e308", "!1e309", "!1e-16.", "!1.e16", "!0", "!16"],
    );
    accepts(
        ">=-2.5e-7 <1e-6 scientific",
        &["-2.5e-7", "!-2.51e-7", "-2.500e-07", "!1e-6", "9.99e-7", "!1e16", "-1e-300"],
    );
    accepts("*0.5 scientific", &["!1e-5", "1e13", "1.23e+15", "1.000000000000005e+15", "!1.0000000000000003e+15"]);
    accepts("!*1 <=0 scientific", &["-1e-5", "!-1e13", "-1.00000000000005e13", "!1e-5"]);
    accepts("*1 digits", &["5", "-5", "!5.0", "!5e0"]);
}

#[test]
fn what_has_no_member_is_nothing() {
    for set in [
        "*7 >0 <7 any",
        "*7 >0 <7 plain",
        "*1 >1 <2 any",
        "*2 !*1 any",
        "!*1 *0.5 >=1 <=1.4 plain",
        ">3 <=3 any",
        ">=1 <=1 !*1 any",
        "*1e20 >0 <1e19 plain",
        ">=0.0001 <1e13 scientific",
        ">=0 <=0 scientific",
        "*0.01 >=-1000 <=1000 scientific",
        ">1.5e-7 <=1.5e-7 scientific",
    ] {
        assert_eq!(ExprSet::new().numbers(NumberSet::parse(set).unwrap()), ExprId::NOTHING, "{set}");
    }
}

#[test]
fn states_are_few() {
    for (set, text, most) in [
        ("*7 plain", "7777777777777777777777777777777777777770.000000000000000000", 40),
        ("*1 any", "1234567890123456789012345678901234567891234567", 20),
        (">=0 *0.01 plain", "12345678901234567890123456789012345678.90", 30),
        (">=1e-300 <3.25e-7 scientific", "3.24999999999999999999999999999999999999999e-7", 20),
        ("!*1 plain", "12.000000000000000000000000000000000000000000000001", 40),
    ] {
        let mut deriver = Deriver::new(Limits::default());
        let mut state = deriver.exprs.numbers(NumberSet::parse(set).unwrap());
        let mut seen = vec![state];
        for byte in text.bytes() {
            state = deriver.after(state, byte).unwrap();
            seen.push(state);
        }
        assert_ne!(state, ExprId::NOTHING, "{set}");
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.len() <= most, "{set}: {}", seen.len());
    }
}

#[test]
fn errors_name_what_is_wrong() {
    for (set, message) in [
        ("*0 any", "above 0"),
        ("*-1 any", "above 0"),
        ("*0.1234567890123456789 any", "18 digits"),
        ("*999999999999999 *999999999999998 any", "18 digits"),
        ("*1 !*1e30 any", "18 digits"),
        (">=01 any", "not a JSON number"),
        (">=1e any", "not a JSON number"),
        ("=1", "not known"),
    ] {
        let error = NumberSet::parse(set).unwrap_err();
        assert!(error.contains(message), "{set}: {error}");
    }
}
