//! What completes a label, by trying from the start, without what cuts a search short.

use crate::json::formats::a_labels::completions::{MAX_ENCODED, MAX_TRIED, ROOM, is_mended_once};
use crate::json::formats::a_labels::decoder::{BASE, Decoder, FIRST_INSERTION, FIRST_LETTER};

/// Whether some number of characters, from `least` to `most`, is found to complete an encoding. If so, and the encoding
/// is not a label yet, some next character leads to one for which that is found too, because the search there is the
/// same, in the same order.
pub(super) fn is_open(encoded: &[u8], least: usize, most: usize, turning: bool) -> bool {
    let Some(room) = MAX_ENCODED.checked_sub(encoded.len()) else { return false };
    let most = most.min(room);
    if least == 0 {
        // One insertion after another hyphen repairs most encodings.
        let is_certain = most >= ROOM || (most > FIRST_INSERTION && is_mended_once(encoded, turning));
        if is_certain {
            return true;
        }
    }
    completion(encoded, least, most, turning).is_some()
}

/// From `least` to `most` characters that complete an encoding; `None` if none are found soon.
pub(super) fn completion(encoded: &[u8], least: usize, most: usize, turning: bool) -> Option<Vec<u8>> {
    let most = most.min(MAX_ENCODED.checked_sub(encoded.len())?);
    let decoder = Decoder::read(encoded);
    if least == 0 && decoder.as_ref().is_some_and(|decoder| decoder.is_label(turning)) {
        return Some(Vec::new());
    }
    if most == 0 {
        return None;
    }
    let decoder = decoder.as_ref();
    let mended = || {
        let decoder = decoder?;
        let begun = &encoded[encoded.len() - decoder.number.digits as usize..];
        mended(decoder, begun, most, turning).filter(|digits| digits.len() >= least)
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
fn hyphenated(encoded: &[u8], least: usize, most: usize, turning: bool) -> Option<Vec<u8>> {
    let most = most.min(MAX_ENCODED.checked_sub(encoded.len())?);
    let letters = most.checked_sub(FIRST_INSERTION + 1)?;
    let fewest = least.saturating_sub(ROOM);
    (fewest..=letters.min(fewest + ROOM)).find_map(|letters| {
        let begun = [&vec![b'a'; letters][..], b"-"].concat();
        let mended = mended(&Decoder::read(&[encoded, &begun].concat())?, b"", most - begun.len(), turning)?;
        let all = [begun, mended].concat();
        (all.len() >= least).then_some(all)
    })
}

/// At most `most` digits that make a label of ASCII letters, by insertions of the first available letters: those of
/// other letters take at least as many digits. `begun` are the digits of an incomplete number.
fn mended(decoder: &Decoder, begun: &[u8], most: usize, turning: bool) -> Option<Vec<u8>> {
    if decoder.is_label(turning) {
        return Some(Vec::new());
    }
    if most < decoder.least(turning) {
        return None;
    }
    let letters = if decoder.inserted == 0 { [FIRST_LETTER; 2] } else { [decoder.point, decoder.point + 1] };
    let places = (0..4).chain([decoder.text.len()]).filter(|&place| place <= decoder.text.len());
    places.flat_map(|place| letters.map(|letter| (letter, place))).find_map(|(letter, place)| {
        let mut digits = decoder.digits_to(letter, place, begun)?;
        let rest = mended(&decoder.after(&digits)?, b"", most.checked_sub(digits.len())?, turning)?;
        digits.extend(rest);
        Some(digits)
    })
}
