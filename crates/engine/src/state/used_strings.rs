//! The strings and numbers among the elements of an array, found by how they begin.

use std::sync::Arc;

use stencilm_regex::ByteSet;
use stencilm_support::Recent;

use crate::state::plain_number::plain_number;
use crate::state::used_lists::SeenMark;

/// The canonical texts of some elements, and the positions of their quotes, sorted by the text from there on. A string
/// begins at a quote, so finding strings with a given beginning is a binary search.
#[derive(Default)]
struct Block {
    values: Vec<Arc<[u8]>>,
    /// The number of a value, and a position in it.
    quotes: Vec<(u32, u32)>,
    /// The elements that are numbers, as [`plain_number`] writes them, sorted.
    numbers: Vec<Box<[u8]>>,
    /// Whether some number has too many digits for [`plain_number`].
    has_long_numbers: bool,
}

impl Block {
    /// A block of these values.
    fn of(values: Vec<Arc<[u8]>>) -> Block {
        let places = |value: &Arc<[u8]>| {
            (0..).zip(&**value).filter(|(_, byte)| **byte == b'"').map(|(place, _)| place).collect::<Vec<u32>>()
        };
        let mut quotes: Vec<(u32, u32)> = (0..)
            .zip(&values)
            .flat_map(|(number, value)| places(value).into_iter().map(move |place| (number, place)))
            .collect();
        quotes.sort_unstable_by(|&one, &other| from(&values, one).cmp(from(&values, other)));
        Block { values, quotes, ..Block::default() }
    }

    /// A block of the strings and numbers among these values.
    fn of_all(values: Vec<Vec<u8>>) -> Block {
        let (mut quoted, mut numbers, mut has_long_numbers) = (Vec::new(), Vec::new(), false);
        for value in values {
            if value.first().is_some_and(|first| first.is_ascii_digit() || *first == b'-') {
                match plain_number(&value) {
                    Some(number) => numbers.push(number.into()),
                    None => has_long_numbers = true,
                }
            } else if value.contains(&b'"') {
                quoted.push(value.into());
            }
        }
        numbers.sort_unstable();
        Block { numbers, has_long_numbers, ..Block::of(quoted) }
    }

    /// A block of the values of both.
    fn join(&self, other: &Block) -> Block {
        let mut numbers = [&self.numbers[..], &other.numbers].concat();
        numbers.sort();
        let has_long_numbers = self.has_long_numbers || other.has_long_numbers;
        let strings = Block::of(self.values.iter().chain(&other.values).cloned().collect());
        Block { numbers, has_long_numbers, ..strings }
    }

    fn len(&self) -> usize {
        self.quotes.len() + self.numbers.len() + usize::from(self.has_long_numbers)
    }

    /// The numbers with this beginning.
    fn numbers(&self, beginning: &[u8]) -> &[Box<[u8]>] {
        let first = self.numbers.partition_point(|number| &**number < beginning);
        let rest = &self.numbers[first..];
        &rest[..rest.partition_point(|number| number.starts_with(beginning))]
    }

    fn from(&self, quote: (u32, u32)) -> &[u8] {
        from(&self.values, quote)
    }

    /// The quotes from which the text begins with `part`, in the order of these texts: each position, and the text
    /// after the part.
    fn places<'s>(&'s self, part: &'s [u8]) -> impl Iterator<Item = (u32, &'s [u8])> {
        let first = self.quotes.partition_point(|&quote| self.from(quote) < part);
        self.quotes[first..].iter().map_while(move |&quote| Some((quote.1, self.from(quote).strip_prefix(part)?)))
    }

    /// The bytes that follow `part` in the texts.
    fn next_bytes(&self, part: &[u8]) -> ByteSet {
        let mut bytes = ByteSet::EMPTY;
        let mut first = self.quotes.partition_point(|&quote| self.from(quote) <= part);
        while let Some(&quote) = self.quotes.get(first)
            && let Some(&byte) = self.from(quote).strip_prefix(part).and_then(|rest| rest.first())
        {
            bytes.insert(byte);
            let goes_on = |quote| self.from(quote).strip_prefix(part).is_some_and(|rest| rest.first() <= Some(&byte));
            first += self.quotes[first..].partition_point(|&quote| goes_on(quote));
        }
        bytes
    }
}

fn from(values: &[Arc<[u8]>], (value, place): (u32, u32)) -> &[u8] {
    &values[value as usize][place as usize..]
}

/// The strings of some elements, in blocks each of which is at least twice as large as the next. So an element is
/// copied only a logarithmic number of times while the list grows.
#[derive(Clone, Default)]
pub(crate) struct Strings(Vec<Arc<Block>>);

impl Strings {
    /// These strings and those of further elements.
    pub fn with(&self, values: impl IntoIterator<Item = Vec<u8>>) -> Strings {
        let mut blocks = self.0.clone();
        let mut last = Block::of_all(values.into_iter().collect());
        if last.len() == 0 {
            return Strings(blocks);
        }
        while let Some(before) = blocks.pop_if(|before| before.len() < 2 * last.len()) {
            last = before.join(&last);
        }
        blocks.push(Arc::new(last));
        Strings(blocks)
    }
}

/// The strings among the elements of several arrays.
pub(crate) struct UsedStrings(Vec<Arc<Block>>);

impl UsedStrings {
    /// The strings of these lists.
    pub fn new(lists: Vec<Strings>) -> UsedStrings {
        UsedStrings(lists.into_iter().flat_map(|strings| strings.0).collect())
    }

    /// What follows a part that begins with a quote, wherever it occurs.
    pub fn rests<'s>(&'s self, part: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        self.0.iter().flat_map(move |block| block.places(part)).map(|(_, rest)| rest)
    }

    /// What follows such a part in the elements that begin with it.
    pub fn whole_rests<'s>(&'s self, part: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        let places = self.0.iter().flat_map(move |block| block.places(part));
        places.filter(|&(place, _)| place == 0).map(|(_, rest)| rest)
    }

    /// The bytes that may follow such a part.
    pub fn next_bytes(&self, part: &[u8]) -> ByteSet {
        self.0.iter().fold(ByteSet::EMPTY, |bytes, block| bytes.union(&block.next_bytes(part)))
    }

    /// The elements that are numbers with this beginning, as [`plain_number`] writes them.
    pub fn numbers(&self, beginning: &[u8]) -> impl Iterator<Item = &[u8]> {
        self.0.iter().flat_map(move |block| block.numbers(beginning)).map(|number| &**number)
    }

    /// The number of these.
    pub fn count_numbers(&self, beginning: &[u8]) -> usize {
        self.0.iter().map(|block| block.numbers(beginning).len()).sum()
    }

    /// Whether a number is among the elements.
    pub fn has_number(&self, number: &[u8]) -> bool {
        self.0.iter().any(|block| block.numbers.binary_search_by(|known| (**known).cmp(number)).is_ok())
    }

    /// Whether [`UsedStrings::numbers`] knows all numbers.
    pub fn has_plain_numbers(&self) -> bool {
        !self.0.iter().any(|block| block.has_long_numbers)
    }

    /// Whether a part that begins with a quote occurs anywhere.
    pub fn have(&self, part: &[u8]) -> bool {
        self.rests(part).next().is_some()
    }
}

/// The strings of the lists used most recently: those of each open array, and of the lists that tokens of a mask would
/// make of them.
#[derive(Clone, Default)]
pub(crate) struct KeptStrings(Recent<(u32, Strings)>);

impl KeptStrings {
    /// The strings of a list, if they are cached.
    pub fn of(&self, list: u32) -> Option<&Strings> {
        self.0.iter().find(|&&(known, _)| known == list).map(|(_, strings)| strings)
    }

    /// Caches the strings of a list; where there are many, the oldest ones are evicted.
    pub fn keep(&mut self, list: u32, strings: Strings) {
        self.0.push((list, strings));
    }

    /// Forgets the lists that came after a mark.
    pub fn truncate(&mut self, mark: SeenMark) {
        self.0.retain(|&(list, _)| mark.had(list));
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
            let seen = UsedStrings::new(vec![strings]);
            let mut rests: Vec<&[u8]> = seen.rests(b"\"a").collect();
            rests.sort_unstable();
            assert_eq!(rests, [&b"b\""[..], b"b\",1]"]);
            assert_eq!(seen.whole_rests(b"\"a").collect::<Vec<_>>(), [b"b\""]);
            for part in [&b"\""[..], b"\"a", b"\"ab\"", b"\"x"] {
                let next: ByteSet = seen.rests(part).filter_map(|rest| rest.first()).copied().collect();
                assert_eq!(seen.next_bytes(part), next);
            }
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
