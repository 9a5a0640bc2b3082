//! Hosts and mailboxes: RFC 1123 and 5890 (names), RFC 4291 (IPv6), RFC 5321 and 6531 (mail), as patterns.

use stencilm_regex::{ExprId, ExprSet};

use super::whole::whole;
use crate::json::strings::Strings;

const BYTE: &str = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
/// A letter or digit, and one of these or a hyphen.
const END: &str = "[A-Za-z0-9]";
const INNER: &str = "[A-Za-z0-9\\-]";
const GROUP: &str = "[0-9A-Fa-f]{1,4}";
/// One label of a host name: at most 63 letters, digits and inner hyphens.
const LABEL: &str = "[A-Za-z0-9](?:[A-Za-z0-9\\-]{0,61}[A-Za-z0-9])?";
/// The same with any letters beyond ASCII.
const WIDE_LABEL: &str =
    "[A-Za-z0-9\u{80}-\u{10ffff}](?:[A-Za-z0-9\\-\u{80}-\u{10ffff}]{0,61}[A-Za-z0-9\u{80}-\u{10ffff}])?";
/// The longest host name.
const LONGEST_NAME: u32 = 253;

pub(super) fn ipv4() -> String {
    format!(r"{BYTE}(?:\.{BYTE}){{3}}")
}

/// Eight groups, of which one run may be left out, and the last two of which may be an IPv4 address.
pub(super) fn ipv6() -> String {
    let last = format!("(?:{GROUP}:{GROUP}|{})", ipv4());
    let mut ways = vec![format!("(?:{GROUP}:){{6}}{last}"), format!("::(?:{GROUP}:){{5}}{last}")];
    for before in 1..=7 {
        // So many groups at most stand before `::`, and so many behind it.
        let head = format!("(?:(?:{GROUP}:){{0,{}}}{GROUP})?::", before - 1);
        ways.push(match 7 - before {
            0 => head,
            1 => format!("{head}{GROUP}"),
            behind => format!("{head}(?:{GROUP}:){{{}}}{last}", behind - 2),
        });
    }
    format!("(?:{})", ways.join("|"))
}

/// The labels of a host name, of any number. None begins with `xn--`: whether such a label is one hangs on what it decodes to.
pub(super) fn labels() -> String {
    let rest = |most: u32| format!("(?:{INNER}{{0,{most}}}{END})?");
    let behind_x =
        format!("[A-MO-Za-mo-z0-9]{}|-{INNER}{{0,60}}{END}|[Nn](?:{END}{}|-{END}{})?", rest(60), rest(59), rest(58));
    let label = format!("(?:[A-WYZa-wyz0-9]{}|[Xx](?:{behind_x})?)", rest(61));
    format!(r"{label}(?:\.{label})*")
}

/// Of these names those that are not too long.
pub(super) fn short_enough(exprs: &mut ExprSet, strings: &mut Strings, names: ExprId) -> ExprId {
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
