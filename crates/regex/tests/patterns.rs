//! Patterns as tables: what they accept, what they reject, and what is refused where.

use stencilm_regex::{
    Anchoring::{self, Search, Whole},
    Deriver,
    Dialect::{self, EcmaScript, Standard},
    ExprId, Limits, PatternError,
    PatternErrorKind::{Limit, Syntax, Unsupported},
    PatternOptions, Utf8, parse_pattern,
};

fn parse(dialect: Dialect, anchoring: Anchoring, pattern: &str) -> Result<(Deriver, ExprId), PatternError> {
    let mut deriver = Deriver::new(Limits::default());
    let root = parse_pattern(&mut deriver.exprs, pattern, &PatternOptions { dialect, anchoring }, &mut Utf8)?;
    Ok((deriver, root))
}

fn check(dialect: Dialect, anchoring: Anchoring, pattern: &str, accepted: &[&str], rejected: &[&str]) {
    let (mut deriver, root) = parse(dialect, anchoring, pattern)
        .unwrap_or_else(|error| panic!("{dialect:?} {anchoring:?} {pattern:?} is refused: {error}"));
    for (texts, expected) in [(accepted, true), (rejected, false)] {
        for text in texts {
            let found = deriver.matches(root, text.as_bytes()).expect("small patterns stay within the limits");
            assert_eq!(found, expected, "{dialect:?} {anchoring:?} {pattern:?} on {text:?}");
        }
    }
}

type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);

#[test]
fn the_same_in_both_dialects() {
    let whole: &[Case] = &[
        ("", &[""], &["a", "\0"]),
        ("abc", &["abc"], &["", "ab", "abcd", "xabc"]),
        ("a|bc|", &["a", "bc", ""], &["b", "abc"]),
        ("(a)(?:b)(?<n>c)(?P<m>d)", &["abcd"], &["abc"]),
        ("a+?b*?c??", &["a", "aab", "abc"], &["", "acc"]),
        ("a{2}b{1,}c{0,2}", &["aab", "aabbcc"], &["aabccc", "abcc"]),
        ("(?:a{1000}){1000}", &[], &["", "a"]),
        ("a{4294967295}", &[], &["a"]),
        ("(a+)+b", &["aab"], &["aa"]),
        (r"\d+", &["0123456789"], &["", "٣", "a"]),
        (r"\D", &["a", "٣", "😀"], &["5", ""]),
        (r"\w+", &["aZ_9"], &["é", "-", "ſ"]),
        (r"\W", &["é", "-"], &["a", "_"]),
        (
            r"\s",
            &[" ", "\t", "\u{b}", "\u{feff}", "\u{2028}", "\u{a0}", "\u{3000}"],
            &["a", "\u{85}", "\u{180e}", "\u{200b}"],
        ),
        (r"\S", &["a", "\u{85}"], &[" ", "\u{feff}"]),
        (r"[\d\s.]+", &["1 .", "\u{feff}"], &["a"]),
        (r"[^\d\s]", &["a", "é", "😀"], &["1", "\u{a0}"]),
        (r"[^\W_]", &["a", "9"], &["_", "-", "é"]),
        (r"[^\s\S]", &[], &["", "a"]),
        (r"\p{L}+", &["aé漢"], &["1", ""]),
        (r"\P{L}\p{Lu}\p{Script=Greek}\pN", &["1Éλ4"], &["aÉλ4"]),
        (r"[\p{L}\p{N}]", &["é", "4"], &["-"]),
        (r"(?i)straße\d", &["STRAßE1", "straẞe1"], &["STRASSE1"]),
        (r"a(?i:b)c", &["abc", "aBc"], &["Abc", "abC"]),
        ("a.c", &["abc", "aéc", "a😀c"], &["a\nc", "ac"]),
        ("(?s:a.)b.", &["a\nbb"], &["a\nb\n"]),
        ("a\0b[\0]", &["a\0b\0"], &["a", "ab"]),
        (r"\t\n\r\f\v\x41\u0042", &["\t\n\r\u{c}\u{b}AB"], &["AB"]),
        (r"\.\*\[\]\{\}\(\)\^\$\|\\\/\-", &[r".*[]{}()^$|\/-"], &[]),
        ("é😀", &["é😀"], &["é"]),
        (r"^abc$", &["abc"], &["ab"]),
        (r"\Aabc\z", &["abc"], &["abc\n"]),
        (r"abc\Z", &["abc"], &["abc\n"]),
        ("^^a$$", &["a"], &[""]),
        ("a^b", &[], &["ab", "a", "b"]),
        ("(^|x)y", &["y", "xy"], &["xxy", "x"]),
        ("(?:^a|b)*", &["", "a", "ab", "bb"], &["ba", "aa"]),
        ("(?:^a|b){3,}", &["abb", "bbb"], &["ab", "bab"]),
        ("(?:^|a){3}", &["aaa", "aa", "a", ""], &["aaaa"]),
        ("(?:^a|b|c$){1,3}", &["a", "abc", "ac", "c", "bbb"], &["abbc", "bbbb", "ca", ""]),
        ("(?:a|$){2,3}", &["", "a", "aa", "aaa"], &["aaaa"]),
    ];
    for dialect in [Standard, EcmaScript] {
        for (pattern, accepted, rejected) in whole {
            check(dialect, Whole, pattern, accepted, rejected);
        }
    }
}

#[test]
fn search_matches_anywhere() {
    let cases: &[Case] = &[
        ("b", &["b", "abc", "bb"], &["", "ac"]),
        ("", &["", "anything\n"], &[]),
        ("^a", &["a", "ab"], &["ba", ""]),
        ("a$", &["a", "ba"], &["ab", "a\n"]),
        ("^ab$", &["ab"], &["xab", "abx", "ab\n"]),
        ("^a|b$", &["ax", "xb", "a", "b"], &["xa", "bx"]),
        ("^(a|b)$", &["a", "b"], &["ab", ""]),
        ("(^|x)y", &["y", "ya", "axya"], &["ay", "x"]),
        ("a(b|$)", &["ab", "a", "xa", "xabx"], &["ax", "b"]),
        ("^$", &[""], &["a"]),
        ("$^", &[""], &["a"]),
        ("(^a$|b)c?", &["a", "xb", "bc"], &["ac", "xa"]),
        ("x*$", &["", "abc"], &[]),
        ("\n", &["a\nb"], &["a"]),
    ];
    for dialect in [Standard, EcmaScript] {
        for (pattern, accepted, rejected) in cases {
            check(dialect, Search, pattern, accepted, rejected);
        }
    }
}

#[test]
fn word_boundaries_and_lines() {
    let cases: &[Case] = &[
        (r"\bfoo\b", &["foo", "a foo.", "é foo", "éfoo"], &["foobar", "xfoo", "fo"]),
        (r"\Bb", &["ab", "xab"], &["b", "a b"]),
        (r"^\b", &["a", "_x"], &["", " a"]),
        (r"^\B", &["", " a"], &["a"]),
        (r"^(\w+\b\s*)+$", &["foo bar", "a", "a  b "], &["", " a", "a-b"]),
        (r"^(?:\b\w+\b[ -]?){2,3}$", &["foo bar", "a-b-c "], &["foo", "a b c d", "ab"]),
        (r"(?m)^b$", &["b", "a\nb\nc", "b\n"], &["ab", "bc\nab"]),
        (r"^(?m:a$\n?)+$", &["a", "a\na", "a\n"], &["aa", "a\nb"]),
        (r"^(a\b|b)*$", &["", "bba", "a"], &["ab", "aa"]),
    ];
    for dialect in [Standard, EcmaScript] {
        for (pattern, accepted, rejected) in cases {
            check(dialect, Search, pattern, accepted, rejected);
        }
    }
    check(Standard, Whole, r"\b{start}a\b{end}|(?m:b$)\r", &["a"], &["b\r"]);
    check(EcmaScript, Search, r"(?m)b$", &["b\r", "b\u{2028}c"], &["b c"]);
}

#[test]
fn standard_only() {
    let cases: &[Case] = &[
        (".", &["\r", "\u{2028}", "a"], &["\n"]),
        (r"(?x) a  b # comment", &["ab"], &["a b"]),
        (r"[a-c&&[^b]]", &["a", "c"], &["b"]),
        (r"[[:alpha:]]", &["a"], &["1"]),
        (r"a{,2}", &["", "aa"], &["aaa", "a{,2}"]),
        (r"\U0001F600\x{1F600}\u{1F600}\a", &["😀😀😀\u{7}"], &[]),
        (r"\\Z", &["\\Z"], &["\\"]),
    ];
    for (pattern, accepted, rejected) in cases {
        check(Standard, Whole, pattern, accepted, rejected);
    }
}

#[test]
fn ecma_script_only() {
    let cases: &[Case] = &[
        (".", &["a", "\u{85}"], &["\n", "\r", "\u{2028}", "\u{2029}"]),
        (r"\/\-\_\@\:\ \é", &["/-_@: é"], &[]),
        (r#"\"\'\<\>\,\;\#\&\~"#, &["\"'<>,;#&~"], &[]),
        (r"\cJ\0\x41\u0041\u{1F600}\uD83D\uDE00", &["\n\0AA😀😀"], &[]),
        ("[^]", &["a", "\n", "😀"], &["", "ab"]),
        ("[]", &[], &["", "a", "]"]),
        ("a|[]", &["a"], &[""]),
        ("[[]", &["["], &["]"]),
        ("[[a]", &["[", "a"], &["b"]),
        ("[a&&b]", &["a", "&", "b"], &["&&"]),
        ("[+--b~~c]", &["+", ",", "-", "b", "~", "c"], &["d", "."]),
        ("[--/]", &["-", ".", "/"], &["a"]),
        ("[[:alpha:]]", &["a]", "[]", ":]"], &["b", "z"]),
        (r"[\w-.]", &["a", "-", "."], &["+"]),
        (r"[a-\d]", &["a", "-", "5"], &["b"]),
        (r"[\b\-\]\\^]", &["\u{8}", "-", "]", "\\", "^"], &["b"]),
        (r"[\uD83D\uDE00-\u{1F64F}]", &["😀", "😃"], &["a"]),
        (r"[#-& ~]", &["#", "$", " ", "~"], &["!"]),
        ("{abc}", &["{abc}"], &["abc"]),
        ("a{,5}", &["a{,5}"], &["aa"]),
        ("a{b}]}", &["a{b}]}"], &[]),
        ("a{1", &["a{1"], &["a"]),
        ("x# &", &["x# &"], &["x"]),
        (r"(?<a$>b)(?<a$>c)", &["bc"], &[]),
        (r"\b{start}a", &[], &["a"]),
        (r"[\0-\x1f]", &["\0", "\u{1f}"], &[" "]),
    ];
    for (pattern, accepted, rejected) in cases {
        check(EcmaScript, Whole, pattern, accepted, rejected);
    }
}

#[test]
fn look_ahead_beside_a_repeated_character_is_one_condition() {
    let cases: &[Case] = &[
        ("^((?!foo).)*$", &["", "fo", "oof", "barfo"], &["foo", "xfoo", "foox", "fofoo"]),
        ("^(?:(?!--)[a-z-])+$", &["a", "a-b", "-a-"], &["", "--", "a--b", "a--", "A"]),
        ("^a(?:.(?!b)){2,3}$", &["axx", "abxx", "axxx"], &["ax", "axb", "axbx", "axxxx", "abb"]),
        ("^(?:(?!$)(?!b)[^c](?!d))*$", &["", "a", "aé"], &["b", "ab", "c", "ad", "xadx"]),
        ("^(?:(?=a).)*$", &["", "a", "aa"], &["b", "ab"]),
        ("^x(?!y)(?:(?!é).)*(?<!z)$", &["x", "xa"], &["xy", "xé", "xaz", "xaé"]),
    ];
    for &(pattern, accepted, rejected) in cases {
        for dialect in [Standard, EcmaScript] {
            check(dialect, Whole, pattern, accepted, rejected);
            check(dialect, Search, pattern, accepted, rejected);
        }
    }
    // A look-behind at the end is a condition on the whole, however many states it has.
    let (deriver, _) = parse(EcmaScript, Search, r"^(?!\s).*(?<!\s)$").expect("it is supported");
    assert!(deriver.exprs.len() < 300, "{}", deriver.exprs.len());
}

#[test]
fn counted_rounds_with_look_around_end_where_a_text_follows() {
    let long = |count: usize, tail: &str| "x".repeat(count) + tail;
    let (most, over, think) = (long(100, "foo"), long(101, "foo"), format!("<think>{}</think>", long(2000, "")));
    let over_think = format!("<think>{}</think>", long(2001, ""));
    let (nested, over_nested) = (format!("<a></a><a>{}</a>", long(100, "")), format!("<a>{}</a>", long(101, "")));
    let (early, late) = (long(20, "ac"), long(19, "ac"));
    let cases: &[Case] = &[
        ("^(?:(?!foo).){0,100}foo$", &["foo", "xfoo", "fofoo", &most], &["", "fo", "foofoo", "xfoox", &over]),
        ("^(?:(?!foo).){3,100}foo.*$", &["xxxfoo", "fofofoofoo"], &["foo", "xxfoo", "xfooxfoo", "xxx"]),
        (
            r"^<think>(?:(?!</think>)[\s\S]){0,2000}</think>$",
            &["<think></think>", "<think></think</think>", &think],
            &["<think>", "<think></think></think>", &over_think],
        ),
        ("^(?:<a>(?:(?!</a>).){0,100}</a>)*$", &["", "<a>b<</a>", &nested], &["<a>", "<a></a></a>", &over_nested]),
        ("^(?:.(?!b)){2,11}cb.*$", &["aacb", "aacbbcb"], &["acb", "acbbcb", "bbcb"]),
        ("^(?:(?!.{20}a).){0,4000}c$", &["c", "xc", &late], &["", &early]),
        // A text of these may end its rounds at more than one place.
        ("^(?:(?!ab).){0,9}.{1,2}$", &["a", "xab", "xxxxxxxxxab"], &["", "xabx", "xxxxxxxxxxab"]),
        ("^(?:(?!ab).){8,9}(?:b|bb)$", &["xxxxxxxxb", "xxxxxxxxbb"], &["xxxxxxxb", "xxxxxxxabb", "xxxxxxxxxxbb"]),
    ];
    for &(pattern, accepted, rejected) in cases {
        for dialect in [Standard, EcmaScript] {
            check(dialect, Whole, pattern, accepted, rejected);
            check(dialect, Search, pattern, accepted, rejected);
        }
    }
}

#[test]
fn refusals_name_the_place() {
    let both: &[(&str, _, usize, &str)] = &[
        ("*a", Syntax, 0, "nothing to repeat"),
        ("é*|+", Syntax, 4, "nothing to repeat"),
        ("[abc", Syntax, 0, "never closed"),
        ("x(abc", Syntax, 1, "`(`: the group is never closed"),
        ("abc)", Syntax, 3, "no group is open"),
        ("é[z-a]", Syntax, 3, "`z-a`: the range runs backwards"),
        ("a{5,2}", Syntax, 1, "least count is above"),
        ("a{100000000000000000000}", Syntax, 2, "not a number"),
        (r"a\uD800", Syntax, 1, "surrogate"),
        (r"[\u{D800}]", Syntax, 1, "surrogate"),
        (r"a\", Syntax, 1, "nothing follows the backslash"),
        (r"é\y", Syntax, 2, "this escape is not known"),
        (r"(a)\1", Unsupported, 3, "back-references"),
        (r"^(?:a(?=(?<=a)b)b)*", Unsupported, 5, "`(?=`: a look-behind in this look-ahead"),
        (r"^(?:(?!.{20}a).{1,2}){0,4000}c", Limit, 4, "this look-around is too costly"),
        ("x(?<!a", Syntax, 1, "never closed"),
        ("(?>a)", Unsupported, 0, "not supported"),
        ("(a)(?(1)b|c)", Unsupported, 3, "not supported"),
        ("a(?#b)", Unsupported, 1, "not supported"),
        ("a(?(é)", Unsupported, 1, "`(?(`: this kind of group"),
        ("a(?>", Unsupported, 1, "`(?>`: this kind of group"),
        ("b(?P=n)", Unsupported, 1, "not supported"),
        ("a++", Syntax, 2, "quantifier directly after"),
        ("a{2}{3}", Syntax, 4, "quantifier directly after"),
        ("a(?-u)b", Unsupported, 3, "characters, not bytes"),
        ("a(?R)b", Unsupported, 3, "flag R"),
        (r"\01", Syntax, 0, "octal"),
        (r"[\1]", Syntax, 1, "octal"),
        (r"a\p{Nonsense}", Unsupported, 1, r"`\p{Nonsense}`: this Unicode property"),
        (r"(?:\bfoo ){1000}", Limit, 10, "more than 100 rounds"),
    ];
    let standard: &[(&str, _, usize, &str)] = &[
        (r"\0", Syntax, 0, "octal"),
        (r"[a[]\]\1]]", Syntax, 6, "octal"),
        (r"\[[]a]\1", Unsupported, 6, "back-references"),
        (r"\<a", Unsupported, 0, "word boundary in Rust"),
        ("a{", Syntax, 1, "not a counted repetition"),
        (r"[\Z]", Syntax, 1, "escape"),
    ];
    let ecma: &[(&str, _, usize, &str)] = &[
        (r"\_\uDC00", Syntax, 2, "half a surrogate pair"),
        (r"\cJ\c1", Syntax, 3, "control escape"),
        (r"\x4", Syntax, 0, "two hexadecimal digits"),
        (r"\u12", Syntax, 0, "four hexadecimal digits"),
        (r"\u{110000}", Syntax, 0, "scalar value"),
        (r"(?<n>a)\k<n>", Unsupported, 7, "back-references"),
        (r"\Qa", Syntax, 0, "not known in ECMA-262"),
        ("(?x)a", Unsupported, 2, "flags i, m and s"),
        ("(?<>a)", Syntax, 0, "not a group name"),
        (r"{\/[]](*", Syntax, 7, "nothing to repeat"),
    ];
    for (dialects, cases) in [(&[Standard, EcmaScript][..], both), (&[Standard], standard), (&[EcmaScript], ecma)] {
        for &dialect in dialects {
            for &(pattern, kind, offset, words) in cases {
                let error = parse(dialect, Whole, pattern)
                    .map(|_| ())
                    .expect_err(&format!("{dialect:?} {pattern:?} must be refused"));
                assert_eq!((error.kind, error.offset), (kind, offset), "{dialect:?} {pattern:?}: {error}");
                assert!(error.to_string().contains(words), "{dialect:?} {pattern:?}: {error}");
            }
        }
    }
}

/// The texts with anchors become expressions without: no intersection, no complement, no case that is not needed.
#[test]
fn common_shapes_stay_small() {
    let same: &[(&str, Anchoring, &str)] = &[
        ("^abc$", Search, "abc"),
        ("^abc", Search, "(?s)abc.*"),
        (".*", Search, "(?s).*"),
        ("a?|^b", Search, "(?s).*"),
        ("^a|b$", Search, "(?s)a.*|.*b"),
        ("^(ab|c)$", Search, "ab|c"),
        ("(^|x)y", Whole, "(?:|x)y"),
        ("a(b|$)", Whole, "a(?:b|)"),
        ("^(?:ab)+$", Search, "(?:ab)+"),
        ("^$", Search, ""),
    ];
    for &(pattern, anchoring, plain) in same {
        let (mut deriver, root) = parse(Standard, anchoring, pattern).unwrap();
        let options = PatternOptions { dialect: Standard, anchoring: Whole };
        let expected = parse_pattern(&mut deriver.exprs, plain, &options, &mut Utf8).unwrap();
        let (left, right) = (deriver.exprs.get(root), deriver.exprs.get(expected));
        assert!(root == expected, "{pattern:?} is {left:?}, and {plain:?} is {right:?}");
    }
    for pattern in [r"\bfoo\b", "(^|x)y", "a(b|$)", r"^(\w+\b\s*)+$", "(?m)^a$"] {
        let (deriver, root) = parse(EcmaScript, Search, pattern).unwrap();
        assert!(!deriver.exprs.has_boolean(root), "{pattern:?}");
        assert!(deriver.exprs.len() < 400, "{pattern:?} takes {} expressions", deriver.exprs.len());
    }
}
