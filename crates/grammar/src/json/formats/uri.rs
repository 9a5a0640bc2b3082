//! URIs, IRIs and URI templates as patterns: RFC 3986, 3987 and 6570, rule by rule.

use super::addresses;

/// Non-ASCII characters that an IRI may have everywhere.
const UCS: &str = "\u{a0}-\u{d7ff}\u{f900}-\u{fdcf}\u{fdf0}-\u{ffef}\u{10000}-\u{1fffd}\u{20000}-\u{2fffd}\
    \u{30000}-\u{3fffd}\u{40000}-\u{4fffd}\u{50000}-\u{5fffd}\u{60000}-\u{6fffd}\u{70000}-\u{7fffd}\
    \u{80000}-\u{8fffd}\u{90000}-\u{9fffd}\u{a0000}-\u{afffd}\u{b0000}-\u{bfffd}\u{c0000}-\u{cfffd}\
    \u{d0000}-\u{dfffd}\u{e1000}-\u{efffd}";
/// Characters that an IRI may also have in its query.
const PRIVATE: &str = "\u{e000}-\u{f8ff}\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}";
const ESCAPE: &str = "%[0-9A-Fa-f]{2}";
const UNRESERVED: &str = "A-Za-z0-9\\-._~";
const DELIMITERS: &str = "!$&'()*+,;=";
const SCHEME: &str = "[A-Za-z][A-Za-z0-9+\\-.]*";

/// The rules for which URIs and IRIs differ in their characters.
struct Rules {
    authority: String,
    /// One character of a segment.
    character: String,
    /// One character of a segment, except a colon.
    colonless: String,
    /// Query and fragment.
    tail: String,
}

impl Rules {
    fn new(international: bool) -> Rules {
        let (wide, private) = if international { (UCS, PRIVATE) } else { ("", "") };
        let one_of = |more: &str| format!("(?:[{UNRESERVED}{DELIMITERS}{wide}{more}]|{ESCAPE})");
        let character = one_of(":@");
        let ip = format!("(?:{}|[Vv][0-9A-Fa-f]+\\.[{UNRESERVED}{DELIMITERS}:]+)", addresses::ipv6());
        // A registered name may be any such text, so IPv4 addresses need no rule of their own.
        let host = format!("(?:\\[{ip}\\]|{}*)", one_of(""));
        Rules {
            authority: format!("//(?:{}*@)?{host}(?::[0-9]*)?(?:/{character}*)*", one_of(":")),
            colonless: one_of("@"),
            tail: format!("(?:\\?{}*)?(?:#{}*)?", one_of(&format!(":@/?{private}")), one_of(":@/?")),
            character,
        }
    }
}

/// A URI or an IRI, with a scheme.
pub(super) fn absolute(international: bool) -> String {
    let Rules { authority, character, tail, .. } = Rules::new(international);
    let rootless = format!("{character}+(?:/{character}*)*");
    format!("{SCHEME}:(?:{authority}|/(?:{rootless})?|(?:{rootless})?){tail}")
}

/// A reference, with a scheme or relative.
pub(super) fn reference(international: bool) -> String {
    let Rules { authority, character, colonless, tail } = Rules::new(international);
    let segments = format!("(?:/{character}*)*");
    // Without a scheme, the first segment must not contain a colon, because the text before it would be a scheme.
    let relative = format!("(?:{authority}|/(?:{character}+{segments})?|(?:{colonless}+{segments})?){tail}");
    format!("(?:{}|{relative})", absolute(international))
}

/// A template: literals, and expressions in braces.
pub(super) fn template() -> String {
    let literal = format!("(?:[!#$&'-;=?-\\[\\]_a-z~{UCS}{PRIVATE}]|{ESCAPE})");
    let letter = format!("(?:[A-Za-z0-9_]|{ESCAPE})");
    let name = format!("{letter}(?:\\.?{letter})*");
    let variable = format!("{name}(?::[1-9][0-9]{{0,3}}|\\*)?");
    format!("(?:{literal}|\\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\\}})*")
}
