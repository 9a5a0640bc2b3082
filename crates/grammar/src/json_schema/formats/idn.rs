//! Internationalised host names (RFC 5890 to 5893): labels of letters, digits, marks and inner hyphens.
//!
//! Which characters are allowed is told by their categories (RFC 5892, section 2.1).

use stencilm_regex::{ExprId, ExprSet};

use super::super::strings::Strings;
use super::whole;

/// What stands between the quotes.
pub(super) fn hostname(exprs: &mut ExprSet, strings: &mut Strings) -> ExprId {
    let letter = r"A-Za-z0-9\p{Ll}\p{Lo}\p{Lm}\p{Nd}";
    let mark = r"\p{Mn}\p{Mc}";
    let label = format!("[{letter}](?:[{letter}{mark}\\-]{{0,61}}[{letter}{mark}])?");
    whole(exprs, strings, &format!("{label}(?:[.\u{3002}\u{ff0e}\u{ff61}]{label})*"))
}
