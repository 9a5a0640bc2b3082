//! Hosts and mailboxes: RFC 1123 and 5890 (names), RFC 4291 (IPv6), RFC 5321 and 6531 (mail), as patterns.

use stencilm_regex::{ExprId, ExprSet};

use super::whole::whole;
use super::{a_labels, idn};
use crate::json::format::Punycode;
use crate::json::strings::Strings;

const BYTE: &str = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
/// A letter or digit, and one of these or a hyphen.
const END: &str = "[A-Za-z0-9]";
const INNER: &str = "[A-Za-z0-9\\-]";
const GROUP: &str = "[0-9A-Fa-f]{1,4}";
/// One label of a host name: at most 63 letters, digits and inner hyphens.
const LABEL: &str = "[A-Za-z0-9](?:[A-Za-z0-9\\-]{0,61}[A-Za-z0-9])?";
/// As `LABEL`, with any non-ASCII letters.
const WIDE_LABEL: &str =
    "[A-Za-z0-9\u{80}-\u{10ffff}](?:[A-Za-z0-9\\-\u{80}-\u{10ffff}]{0,61}[A-Za-z0-9\u{80}-\u{10ffff}])?";
/// The length of the longest host name.
const LONGEST_NAME: u32 = 253;

pub(super) fn ipv4() -> String {
    format!(r"{BYTE}(?:\.{BYTE}){{3}}")
}

/// Eight groups. One run of them may be left out, and the last two may be an IPv4 address.
pub(super) fn ipv6() -> String {
    let last = format!("(?:{GROUP}:{GROUP}|{})", ipv4());
    let mut alternatives = vec![format!("(?:{GROUP}:){{6}}{last}"), format!("::(?:{GROUP}:){{5}}{last}")];
    for before in 1..=7 {
        // The greatest number of groups before `::`, and after it.
        let head = format!("(?:(?:{GROUP}:){{0,{}}}{GROUP})?::", before - 1);
        alternatives.push(match 7 - before {
            0 => head,
            1 => format!("{head}{GROUP}"),
            after => format!("{head}(?:{GROUP}:){{{}}}{last}", after - 2),
        });
    }
    format!("(?:{})", alternatives.join("|"))
}

/// A label that does not begin with `xn--`. In a name with right-to-left letters (`turning`) it begins with a letter
/// (RFC 5893).
fn plain_label(turning: bool) -> String {
    let digits = if turning { "" } else { "0-9" };
    let rest = |most: u32| format!("(?:{INNER}{{0,{most}}}{END})?");
    let after_x =
        format!("[A-MO-Za-mo-z0-9]{}|-{INNER}{{0,60}}{END}|[Nn](?:{END}{}|-{END}{})?", rest(60), rest(59), rest(58));
    format!("(?:[A-WYZa-wyz{digits}]{}|[Xx](?:{after_x})?)", rest(61))
}

/// A host name of limited length: plain labels and labels in Punycode.
pub(super) fn hostname(exprs: &mut ExprSet, strings: &mut Strings, punycode: Punycode) -> ExprId {
    let dot = whole(exprs, strings, r"\.");
    // Only a decoded label can have right-to-left letters.
    let turnings = if punycode == Punycode::Checked { &[false, true][..] } else { &[false] };
    let names = turnings.iter().map(|&turning| {
        let plain = whole(exprs, strings, &plain_label(turning));
        let encoded = a_labels::expr(exprs, strings, turning, punycode);
        let label = exprs.or(&[plain, encoded]);
        idn::joined(exprs, label, dot)
    });
    let names: Vec<ExprId> = names.collect();
    let names = exprs.or(&names);
    let limit = whole(exprs, strings, &format!(r"[A-Za-z0-9.\-]{{0,{LONGEST_NAME}}}"));
    exprs.and(&[names, limit])
}

/// A mailbox: a local part, plain or quoted, and a name or an address in brackets.
pub(super) fn email(international: bool) -> String {
    let (wide, label) = if international { ("\u{80}-\u{10ffff}", WIDE_LABEL) } else { ("", LABEL) };
    let atom = format!("[A-Za-z0-9!#$%&'*+\\-/=?^_`{{|}}~{wide}]+");
    let quoted = format!(r#""(?:[ !#-\[\]-~{wide}]|\\[ -~])*""#);
    let (ipv4, ipv6) = (ipv4(), ipv6());
    format!(r"(?:{atom}(?:\.{atom})*|{quoted})@(?:{label}(?:\.{label})*|\[(?:{ipv4}|[Ii][Pp][Vv]6:{ipv6})\])")
}
