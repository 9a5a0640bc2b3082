//! Numbers written without an exponent, to be compared as text.

use stencilm_support::LOOKED_AT;

/// A canonical number without an exponent and without leading or trailing zeros; `None` for other values and for too
/// many digits.
pub(crate) fn plain_number(canonical: &[u8]) -> Option<Vec<u8>> {
    let (sign, digits) = match canonical.strip_prefix(b"-") {
        Some(digits) => (&b"-"[..], digits),
        None => (&b""[..], canonical),
    };
    if !digits.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let (digits, power) = match digits.iter().position(|&byte| byte == b'e') {
        Some(mark) => (&digits[..mark], std::str::from_utf8(&digits[mark + 1..]).ok()?.parse::<i64>().ok()?),
        None => (digits, 0),
    };
    if power.unsigned_abs() as usize > LOOKED_AT || digits.len() > LOOKED_AT {
        return None;
    }
    let mut text = sign.to_vec();
    let point = digits.len() as i64 + power;
    if point <= 0 {
        text.extend_from_slice(b"0.");
        text.resize(text.len() + point.unsigned_abs() as usize, b'0');
        text.extend_from_slice(digits);
    } else if power < 0 {
        text.extend_from_slice(&digits[..point as usize]);
        text.push(b'.');
        text.extend_from_slice(&digits[point as usize..]);
    } else {
        text.extend_from_slice(digits);
        text.resize(text.len() + power as usize, b'0');
    }
    Some(text)
}
