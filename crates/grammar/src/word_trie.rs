//! Any of many texts with what follows each, as a trie: texts with a common beginning are decided step by step, so that
//! no place has as many alternatives as there are texts.

/// A part of the trie.
pub(crate) enum Part<'p, N> {
    /// A text and what follows it.
    Text(&'p str, N),
    /// Any one of several alternatives.
    Any(&'p [N]),
}

/// The trie of some texts. `shared` returns the length of the common prefix of two texts that is read once for both.
/// `make` builds each part, after what follows it.
pub(crate) fn trie<N: Copy>(
    mut texts: Vec<(&str, N)>,
    shared: impl Fn(&str, &str) -> usize,
    mut make: impl FnMut(Part<'_, N>) -> N,
) -> N {
    texts.sort_by_key(|&(text, _)| text);
    let joined = |make: &mut dyn FnMut(Part<'_, N>) -> N, alternatives: &[N]| match alternatives {
        [only] => *only,
        alternatives => make(Part::Any(alternatives)),
    };
    // The positions in the current text where alternatives branch off, the outermost first, each with the alternatives
    // from there.
    let mut open: Vec<(usize, Vec<N>)> = vec![(0, Vec::new())];
    for (index, &(text, node)) in texts.iter().enumerate() {
        let kept = texts.get(index + 1).map_or(0, |(next, _)| shared(text, next));
        let (mut node, mut end) = (node, text.len());
        loop {
            let (place, alternatives) = open.last_mut().expect("the outermost place is never closed here");
            let from = kept.max(*place);
            if from < end {
                node = make(Part::Text(&text[from..end], node));
            }
            if kept > *place {
                open.push((kept, vec![node]));
                break;
            }
            alternatives.push(node);
            if kept == *place {
                break;
            }
            // The next text branches off from this one before this position.
            end = *place;
            node = joined(&mut make, alternatives);
            open.pop();
        }
    }
    joined(&mut make, &open[0].1)
}

/// The length of the common prefix of two texts, in whole characters.
pub(crate) fn common_beginning(one: &str, other: &str) -> usize {
    let mut length = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    while !one.is_char_boundary(length) {
        length -= 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A trie as text.
    fn written(texts: &[&str]) -> String {
        let mut made: Vec<String> = vec![".".into()];
        let last = trie(texts.iter().map(|&text| (text, 0)).collect(), common_beginning, |part| {
            let next = match part {
                Part::Text(text, node) => format!("{text}{}", made[node]),
                Part::Any(alternatives) => format!(
                    "({})",
                    alternatives.iter().map(|&alternative| &*made[alternative]).collect::<Vec<_>>().join("|")
                ),
            };
            made.push(next);
            made.len() - 1
        });
        made.swap_remove(last)
    }

    #[test]
    fn beginnings_are_shared() {
        for (texts, expected) in [
            (&["a"][..], "a."),
            (&["ab", "ac"], "a(b.|c.)"),
            (&["", "a"], "(.|a.)"),
            (&["b", "ab", "abc", "abd", "a"], "(a(.|b(.|c.|d.))|b.)"),
            (&["a", "a"], "a(.|.)"),
            (&["é", "è"], "(è.|é.)"),
            (&[], "()"),
        ] {
            assert_eq!(written(texts), expected, "{texts:?}");
        }
    }

    proptest! {
        #[test]
        fn the_texts_are_those_of_the_list(texts in proptest::collection::vec("[ab]{0,5}", 0..9)) {
            let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
            let mut all: Vec<Vec<String>> = vec![vec![String::new()]];
            let last = trie(texts.iter().map(|&text| (text, 0)).collect(), common_beginning, |part| {
                let next = match part {
                    Part::Text(text, node) => all[node].iter().map(|rest| format!("{text}{rest}")).collect(),
                    Part::Any(alternatives) => alternatives.iter().flat_map(|&alternative| all[alternative].clone()).collect(),
                };
                all.push(next);
                all.len() - 1
            });
            let (mut found, mut expected) = (all[last].clone(), texts);
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
