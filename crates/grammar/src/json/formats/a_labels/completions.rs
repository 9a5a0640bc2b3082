//! What completes an encoding, within so many characters.

use super::decoder::{BASE, Decoder, FIRST_INSERTION};

/// The length of the longest label without its prefix.
pub(super) const MAX_ENCODED: usize = 59;
/// With this many characters left, every beginning can be completed: by a hyphen, three digits for the first insertion,
/// and three for two more.
pub(super) const ROOM: usize = 7;
/// How many digits are tried to see whether an encoding with little room left can be completed. Of those that can, one
/// in thirty would need more.
pub(super) const MAX_TRIED: u32 = 16;

/// Whether the first insertion, which may be at the end, obviously makes a label of ASCII letters.
pub(super) fn is_mended_once(letters: &[u8], turning: bool) -> bool {
    let is_first = |letter: &u8| letter.is_ascii_lowercase() || (!turning && letter.is_ascii_digit());
    letters.first().is_some_and(is_first) && letters.get(2..4) != Some(b"--")
}

/// From `least` to `most` characters that complete an encoding, which `decoder` has decoded so far; `None` if none are
/// found soon.
pub(super) fn completion(
    encoded: &[u8],
    decoder: Option<&Decoder>,
    least: usize,
    most: usize,
    turning: bool,
) -> Option<Vec<u8>> {
    let most = most.min(MAX_ENCODED.checked_sub(encoded.len())?);
    if least == 0 && decoder.is_some_and(|decoder| decoder.is_label(turning)) {
        return Some(Vec::new());
    }
    if most == 0 {
        return None;
    }
    let mended = || {
        let decoder = decoder?;
        let begun = &encoded[encoded.len() - decoder.number.digits as usize..];
        decoder.mended(begun, most, turning).filter(|digits| digits.len() >= least)
    };
    let searched = || {
        // If one digit must be enough, all are tried.
        let (mut digits, mut tries) = (Vec::new(), if most == 1 { BASE } else { MAX_TRIED });
        decoder?.goes_on(least, most, turning, &mut digits, &mut tries).then_some(digits)
    };
    hyphenated(encoded, least, most, turning).or_else(searched).or_else(mended)
}

/// Characters that complete the encoding and contain another hyphen. Then all that was read is ASCII letters, possibly
/// with more letters appended, which also avoids a hyphen at the end. The insertions after the hyphen repair the rest.
pub(super) fn hyphenated(encoded: &[u8], least: usize, most: usize, turning: bool) -> Option<Vec<u8>> {
    let most = most.min(MAX_ENCODED.checked_sub(encoded.len())?);
    let letters = most.checked_sub(FIRST_INSERTION + 1)?;
    let fewest = least.saturating_sub(ROOM);
    (fewest..=letters.min(fewest + ROOM)).find_map(|letters| {
        let begun = [&vec![b'a'; letters][..], b"-"].concat();
        let mended = Decoder::read(&[encoded, &begun].concat())?.mended(b"", most - begun.len(), turning)?;
        let all = [begun, mended].concat();
        (all.len() >= least).then_some(all)
    })
}
