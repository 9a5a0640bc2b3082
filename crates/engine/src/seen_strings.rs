//! The strings of the elements that an array has, to be found by how they begin.

/// The canonical texts of some elements, with the places of their quotes. A string begins at a quote, so that looking for the
/// beginning of one takes as many steps as there are quotes.
pub(crate) struct SeenStrings {
    values: Vec<Vec<u8>>,
    /// A value and a place in it.
    quotes: Vec<(u32, u32)>,
}

impl SeenStrings {
    /// The strings of these elements.
    pub fn new(values: impl Iterator<Item = Vec<u8>>) -> SeenStrings {
        let values: Vec<Vec<u8>> = values.collect();
        let quotes = (0..).zip(&values).flat_map(|(value, text)| {
            let places = (0..).zip(text).filter(|&(_, byte)| *byte == b'"');
            places.map(move |(place, _)| (value, place))
        });
        let quotes = quotes.collect();
        SeenStrings { values, quotes }
    }

    /// What follows a part that begins with a quote, wherever it stands.
    pub fn rests<'s>(&'s self, part: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        let from = |&(value, place): &(u32, u32)| &self.values[value as usize][place as usize..];
        self.quotes.iter().filter_map(move |quote| from(quote).strip_prefix(part))
    }

    /// What follows a part in the elements that begin with it.
    pub fn whole_rests<'s>(&'s self, part: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        self.values.iter().filter_map(move |value| value.strip_prefix(part))
    }

    /// Whether a part that begins with a quote stands anywhere.
    pub fn have(&self, part: &[u8]) -> bool {
        self.rests(part).next().is_some()
    }
}
