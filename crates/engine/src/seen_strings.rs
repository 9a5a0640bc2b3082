//! The strings of the elements that an array has, to be found by how they begin.

use std::sync::Arc;

/// So many lists of elements are kept: that of each array under way, and those that the tokens of a mask make of them.
const KEPT_LISTS: usize = 4;

/// The canonical texts of some elements, and the places of their quotes, sorted by the text from there on. A string begins at a
/// quote, so that looking for the beginning of one is a search in a sorted list.
#[derive(Clone, Default)]
pub(crate) struct Strings {
    values: Vec<Arc<[u8]>>,
    /// A value and a place in it.
    quotes: Vec<(u32, u32)>,
}

impl Strings {
    /// The strings of these elements beside those that are here.
    pub fn with(&self, values: impl IntoIterator<Item = Vec<u8>>) -> Strings {
        let mut strings = self.clone();
        for value in values {
            let number = strings.values.len() as u32;
            let places = (0..).zip(&value).filter(|&(_, byte)| *byte == b'"').map(|(place, _)| (number, place));
            strings.quotes.extend(places);
            strings.values.push(value.into());
        }
        // What was here is sorted, which such a sort makes use of.
        let from = |&(value, place): &(u32, u32)| &strings.values[value as usize][place as usize..];
        strings.quotes.sort_by(|one, other| from(one).cmp(from(other)));
        strings
    }

    /// Where the quotes are from which texts go on like a part, in the order of these texts.
    fn places(&self, part: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
        let from = |&(value, place): &(u32, u32)| &self.values[value as usize][place as usize..];
        let first = self.quotes.partition_point(|quote| from(quote) < part);
        self.quotes[first..].iter().map_while(move |quote| Some((quote.1, from(quote).strip_prefix(part)?)))
    }
}

/// The strings of the elements of some arrays.
pub(crate) struct SeenStrings(Vec<Arc<Strings>>);

impl SeenStrings {
    /// The strings of these lists.
    pub fn new(lists: Vec<Arc<Strings>>) -> SeenStrings {
        SeenStrings(lists)
    }

    /// What follows a part that begins with a quote, wherever it stands.
    pub fn rests<'s>(&'s self, part: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        self.0.iter().flat_map(move |strings| strings.places(part)).map(|(_, rest)| rest)
    }

    /// What follows such a part in the elements that begin with it.
    pub fn whole_rests<'s>(&'s self, part: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        let places = self.0.iter().flat_map(move |strings| strings.places(part));
        places.filter(|&(place, _)| place == 0).map(|(_, rest)| rest)
    }

    /// Whether a part that begins with a quote stands anywhere.
    pub fn have(&self, part: &[u8]) -> bool {
        self.rests(part).next().is_some()
    }
}

/// The strings of the lists that were looked at last.
#[derive(Clone, Default)]
pub(crate) struct KeptStrings(Vec<(u32, Arc<Strings>)>);

impl KeptStrings {
    /// The strings of a list.
    pub fn of(&self, list: u32) -> Option<&Arc<Strings>> {
        self.0.iter().find(|&&(known, _)| known == list).map(|(_, strings)| strings)
    }

    /// Keeps the strings of a list, in the place of those kept longest where there are many.
    pub fn keep(&mut self, list: u32, strings: Arc<Strings>) {
        if self.0.len() >= KEPT_LISTS {
            self.0.remove(0);
        }
        self.0.push((list, strings));
    }

    /// Forgets the lists from this one on.
    pub fn truncate(&mut self, lists: usize) {
        self.0.retain(|&(list, _)| (list as usize) < lists);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_where_they_stand() {
        let values = [&b"\"ab\""[..], b"[\"b\",\"ab\",1]", b"\"\"", b"12"].map(<[u8]>::to_vec);
        let all = Strings::default().with(values.clone());
        let one_by_one = values.into_iter().fold(Strings::default(), |strings, value| strings.with([value]));
        for strings in [all, one_by_one] {
            let seen = SeenStrings::new(vec![Arc::new(strings)]);
            let mut rests: Vec<&[u8]> = seen.rests(b"\"a").collect();
            rests.sort_unstable();
            assert_eq!(rests, [&b"b\""[..], b"b\",1]"]);
            assert_eq!(seen.whole_rests(b"\"a").collect::<Vec<_>>(), [b"b\""]);
            assert!(
                seen.have(b"\"b")
                    && seen.have(b"\"\"")
                    && seen.have(b"\",1")
                    && !seen.have(b"\"c")
                    && !seen.have(b"\"1")
            );
        }
    }
}
