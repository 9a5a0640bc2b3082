//! The format tests of the JSON Schema test suite, and the bounds on lengths.

use stencilm_regex::{Deriver, Dfa, Limits, StateId};

use super::*;
use crate::json::lengths::of_format;
use crate::json::strings::spelled;
use crate::json::values::{common, common_exprs};

/// The text between the quotes of a string of a format.
fn body_of(exprs: &mut ExprSet, spelling: Spelling, format: Format) -> ExprId {
    shared(exprs, common(), (spelling, format, Punycode::Checked))
}

#[test]
fn formats_are_those_of_the_test_suite() {
    let folder =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/json-schema-test-suite/draft2020-12/optional/format");
    let mut wrong = Vec::new();
    let mut count = 0;
    for format in Format::ALL {
        let Ok(text) = std::fs::read_to_string(format!("{folder}/{}.json", format.name())) else { continue };
        let groups: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut deriver = Deriver::over(common_exprs(), Limits::default());
        let bodies = [Spelling::Natural, Spelling::Any].map(|spelling| body_of(&mut deriver.exprs, spelling, format));
        // Also checks after every byte that the text can still be completed.
        let mut dfas = bodies.map(|body| Dfa::new(&mut deriver, &[body], Limits::default()).unwrap());
        for test in groups.as_array().unwrap().iter().flat_map(|group| group["tests"].as_array().unwrap()) {
            let Some(text) = test["data"].as_str() else { continue };
            let valid = test["valid"].as_bool().unwrap();
            count += 1;
            for dfa in &mut dfas {
                let end = dfa
                    .run(&mut deriver, StateId::START, spelled(text).as_bytes())
                    .unwrap_or_else(|error| panic!("{} {text:?}: {error}", format.name()));
                let found = !dfa.accepts(end).is_empty();
                if found != valid {
                    wrong.push(format!("{} {text:?} {}", format.name(), test["description"]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn characters_that_need_a_context_are_decided_by_it() {
    let mut deriver = Deriver::over(common_exprs(), Limits::default());
    let bodies = [Spelling::Natural, Spelling::Any].map(|spelling| {
        let body = body_of(&mut deriver.exprs, spelling, Format::IdnHostname);
        Dfa::new(&mut deriver, &[body], Limits::default()).unwrap()
    });
    let long = "a".repeat(63);
    let names = [
        ("l\u{b7}l\u{b7}l.\u{375}\u{375}\u{3b1}", true),
        ("l\u{b7}", false),
        ("1-2.a---b", false),
        ("a--.b", false),
        ("a-b--c", true),
        // Virama and joiner; non-joiners between letters that join, also across marks.
        ("\u{92c}\u{94d}\u{200d}\u{915}\u{94d}\u{200c}", true),
        ("\u{92c}\u{200d}\u{915}", false),
        ("\u{628}\u{200c}\u{64b}\u{628}\u{64b}\u{200c}\u{62f}", true),
        ("\u{62f}\u{200c}\u{628}", false),
        // Digits and marks don't join.
        ("\u{628}\u{200c}\u{663}", false),
        ("\u{628}\u{200c}\u{64b}", false),
        ("\u{30a2}\u{30fb}.\u{30fb}\u{65e5}", true),
        ("\u{30a2}.\u{30fb}", false),
        ("\u{30fb}-\u{30fb}\u{30a2}", true),
        ("\u{30fb}\u{30fb}--\u{30a2}", false),
        ("\u{5d0}\u{5b0}\u{5f3}\u{5f4}", true),
        ("\u{5f3}\u{5d0}", false),
        // Right-to-left labels with left-to-right ones, which then must end with a letter or digit.
        ("\u{5d0}1.ab", true),
        ("\u{5d0}1.1ab", false),
        ("\u{5d0}a", false),
        ("\u{628}\u{663}1", false),
        (&long, true),
        (&format!("{long}a"), false),
        (&format!("{}\u{e9}", &long[..58]), true),
        (&format!("{}\u{e9}", &long[..59]), false),
        (&format!("{long}.{long}.{long}.{}", &long[..61]), true),
        (&format!("{long}.{long}.{long}.{}", &long[..62]), false),
    ];
    for mut dfa in bodies {
        for (name, valid) in names {
            let end = dfa.run(&mut deriver, StateId::START, name.as_bytes()).unwrap();
            assert_eq!(!dfa.accepts(end).is_empty(), valid, "{name:?}");
        }
    }
}

#[test]
fn labels_in_punycode_stand_beside_others() {
    let long = "a".repeat(63);
    let names = [
        // In names with right-to-left letters, no label begins with a digit.
        ("xn--zca.1com", [true, true]),
        ("XN--4DBC5H.com", [true, true]),
        ("xn--4dbc5h.1com", [false, false]),
        ("1com.xn--4dbc5h", [false, false]),
        ("xn--zca.m\u{fc}nchen", [false, true]),
        ("xn--4dbc5h.\u{5d0}", [false, true]),
        ("xn--4dbc5h\u{3002}a", [false, true]),
        ("ab--c", [true, false]),
        (&format!("{long}.{long}.{long}.{}.xn--zca", &long[..53]), [true, true]),
        (&format!("{long}.{long}.{long}.{}.xn--zca", &long[..54]), [false, false]),
    ];
    for (format, which) in [(Format::Hostname, 0), (Format::IdnHostname, 1)] {
        for spelling in [Spelling::Natural, Spelling::Any] {
            let mut deriver = Deriver::over(common_exprs(), Limits::default());
            let body = body_of(&mut deriver.exprs, spelling, format);
            let mut dfa = Dfa::new(&mut deriver, &[body], Limits::default()).unwrap();
            for (name, valid) in names {
                let end = dfa.run(&mut deriver, StateId::START, name.as_bytes()).unwrap();
                assert_eq!(!dfa.accepts(end).is_empty(), valid[which], "{} {name:?}", format.name());
            }
        }
    }
}

#[test]
fn bounds_on_lengths_hold_and_are_reached() {
    for format in Format::ALL {
        let mut deriver = Deriver::over(common_exprs(), Limits::default());
        let body = body_of(&mut deriver.exprs, Spelling::Natural, format);
        let lengths = of_format(format);
        let min = u32::try_from(lengths.min).unwrap();
        assert_eq!(deriver.exprs.shortest_at_least(body), min, "{}", format.name());
        // Names have too many prefixes to search up to that length.
        let is_name = matches!(format, Format::Hostname | Format::IdnHostname);
        let Some(max) = lengths.max.filter(|_| !is_name) else { continue };
        let longer = Strings::new(Spelling::Natural).any_string(&mut deriver.exprs, max as u32 + 1, None);
        let quoted = crate::json::strings::quote(&mut deriver.exprs, body);
        let both = deriver.exprs.and(&[quoted, longer]);
        assert!(!deriver.is_live(both).unwrap(), "{} has longer texts than {max}", format.name());
    }
}

#[test]
fn a_format_is_small_and_built_once() {
    for spelling in [Spelling::Natural, Spelling::Any] {
        for format in Format::ALL {
            let mut exprs = common_exprs();
            let body = body_of(&mut exprs, spelling, format);
            let size = exprs.own_len();
            assert!(size < 20_000, "{}: {size}", format.name());
            assert_eq!(Strings::new(spelling).format(&mut exprs, format), body);
            assert_eq!(exprs.own_len(), size);
        }
    }
}
