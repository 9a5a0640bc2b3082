//! Which of the tokens that lead to the same place are served by one path to the end, if keys or elements must be new.
//!
//! The path is read in the same way after each of them, except for the key and the elements that the token is a part
//! of. So the path is read for one token, and the comparisons made on it are recorded. For the other tokens it is
//! enough that their keys and elements differ from everything compared with them, which mostly follows from the string
//! that is being written.

use rustc_hash::FxHashSet;
use stencilm_grammar::{MembersId, canonical_json};
use stencilm_regex::ByteSet;

use crate::completion::search::Piece;
use crate::distinct::elements::{StringsSeen, open_string};
use crate::error::EngineError;
use crate::machine::layout::ExpansionId;
use crate::parse::stepper::{Compared, Run, offers_tokens};
use crate::state::stacks::{Entry, NIL, SetId};
use crate::state::used_strings::{Strings, UsedStrings};
use crate::switches::Switch;
use crate::vocabulary::json_text::{Begun, begun, value_of};

/// A path to the end after one token, for use after others that lead to the same place.
#[derive(Default)]
pub(crate) struct SharedPath {
    elements: Elements,
    /// The text before the element that ends within the token, if one does.
    ended: Option<u32>,
    keys: Vec<Key>,
    /// The keys that are written on the path.
    later_keys: FxHashSet<Vec<u8>>,
}

/// The comparisons of elements.
#[derive(Default)]
struct Elements {
    /// The elements that begin before the token or with it, and end in it or on the path.
    begun: Vec<Part>,
    /// The lists of elements with which some are compared on the path.
    seen: Vec<u32>,
    /// The values of the elements that begin on the path.
    later: FxHashSet<Vec<u8>>,
    /// The strings among all these values, if a string is being written.
    strings: Option<StringsSeen>,
}

/// What is written before and after a token of a key or an element that it is a part of.
struct Part {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Part {
    fn with(&self, token: &[u8]) -> Vec<u8> {
        [&self.before, token, &self.after].concat()
    }
}

/// A key of which a token is a part.
struct Key {
    part: Part,
    object: MembersId,
    class: u32,
    seen: u32,
    /// The bytes by which the prefix of the key could continue to a name that it must not be.
    next: ByteSet,
}

impl SharedPath {
    /// The path after a token, which is known to complete the text; `None` where it tells nothing about other tokens.
    pub fn new(
        run: &mut Run<'_>,
        configuration: SetId,
        token: &[u8],
        path: &[Piece],
    ) -> Result<Option<SharedPath>, EngineError> {
        let mut threads = run.stacks.entries(configuration).to_vec();
        run.take_text(&mut threads);
        let text = run.text.take();
        let after = text.map(|text| run.text_after(text, token));
        let (here, ended) = run.noting_compared(|run| run.run(configuration, token))?;
        let (is_read, compared) = run.noting_compared(|run| run.leads_to_the_end(here, path))?;
        if !is_read {
            return Ok(None);
        }
        let Some(key) = run.key_under_way(configuration, here, token) else { return Ok(None) };
        let mut shared = SharedPath::default();
        let Some(ended) = element_ended(&ended, after) else { return Ok(None) };
        shared.ended = ended.map(|(start, _)| start);
        if let (Some((start, seen)), Some(end)) = (ended, after)
            && !shared.elements.add(run.stacks.since(end, start), 0, token, seen)
        {
            return Ok(None);
        }
        for compared in compared {
            let is_decided = match (compared, after) {
                (Compared::Element { start, end, seen }, Some(after)) => {
                    let on_the_way = run.stacks.since(end, after).len();
                    let element = run.stacks.since(end, start);
                    shared.elements.add(element, on_the_way, token, seen)
                }
                (Compared::Key { object, class, written, seen }, _) => {
                    let written = run.stacks.text(written);
                    shared.later_keys.insert(value_of(&written));
                    if let Some(after) = key.rest_of(&written, token) {
                        let part = Part { before: key.open.clone(), after: after.to_vec() };
                        shared.keys.push(Key { part, object, class, seen, next: ByteSet::EMPTY });
                    }
                    true
                }
                _ => false,
            };
            if !is_decided {
                return Ok(None);
            }
        }
        if Switch::CompletionStrings.is_on() {
            shared.elements.find_strings(run);
        }
        for at in 0..shared.keys.len() {
            shared.keys[at].next = shared.names_after(run, &shared.keys[at]);
        }
        Ok(Some(shared))
    }

    /// The bytes by which names that a key must not be continue after the part of the key before the token.
    fn names_after(&self, run: &Run<'_>, key: &Key) -> ByteSet {
        let Begun { value, escape, quoted } = begun(&key.part.before);
        if !quoted || !escape.is_empty() {
            return ByteSet::range(0, 255);
        }
        let reserved = run.machine.reserved_after(key.object, key.class, &value);
        let reserved = reserved.iter().map(|name| name.as_bytes().to_vec());
        let seen = run.stacks.seen.entries(key.seen).map(|name| run.stacks.text(name));
        let names = reserved.chain(seen).chain(self.later_keys.iter().cloned());
        names.filter_map(|name| name.strip_prefix(&value[..])?.first().copied()).collect()
    }

    /// Whether the path certainly completes the text after another token as well.
    pub fn serves(&self, run: &Run<'_>, token: &[u8]) -> bool {
        self.keys.iter().all(|key| self.is_new_key(run, key, token)) && self.elements.are_new(run, token)
    }

    /// Whether another token ends the same element as the first one, or like it none.
    pub fn ends_equally(&self, run: &mut Run<'_>, configuration: SetId, token: &[u8]) -> Result<bool, EngineError> {
        let mut threads = run.stacks.entries(configuration).to_vec();
        run.take_text(&mut threads);
        let after = run.text.take().map(|text| run.text_after(text, token));
        let (_, ended) = run.noting_compared(|run| run.run(configuration, token))?;
        Ok(element_ended(&ended, after).is_some_and(|ended| ended.map(|(start, _)| start) == self.ended))
    }

    fn is_new_key(&self, run: &Run<'_>, key: &Key, token: &[u8]) -> bool {
        let goes_on = !token.iter().any(|byte| b"\"\\".contains(byte));
        if goes_on && token.first().is_some_and(|&first| !key.next.contains(first)) {
            return true;
        }
        let Some(token) = part_of_key(&key.part.before, token) else { return false };
        let value = value_of(&key.part.with(token));
        if self.later_keys.contains(&value) || run.machine.is_reserved(key.object, key.class, &value) {
            return false;
        }
        !run.stacks.known_text(&value).is_some_and(|value| run.stacks.seen.has(key.seen, value))
    }
}

/// The text before the element that ends within a token, if one does, and the list of elements before it, according to
/// the comparisons made within the token; `None` where there are other comparisons. While a number continues, its
/// prefixes are not elements.
#[expect(clippy::option_option, reason = "not known, none and one are three answers")]
fn element_ended(compared: &[Compared], after: Option<u32>) -> Option<Option<(u32, u32)>> {
    let Some(&last) = compared.last() else { return Some(None) };
    let Compared::Element { start: before, end, seen } = last else { return None };
    let is_of_last = |other: &Compared| matches!(*other, Compared::Element { start, .. } if start == before);
    (Some(end) == after && compared.iter().all(is_of_last)).then_some(Some((before, seen)))
}

/// The part of a token that belongs to the key that is open after it: all of the token if the key began before it, else
/// the part from its last quote on. `None` where a backslash might mean that this is no quote.
fn part_of_key<'t>(before: &[u8], token: &'t [u8]) -> Option<&'t [u8]> {
    if !before.is_empty() {
        return Some(token);
    }
    let quote = token.iter().rposition(|&byte| byte == b'"').filter(|_| !token.contains(&b'\\'))?;
    Some(&token[quote..])
}

impl Elements {
    /// Adds an element whose last `on_the_way` bytes are on the path. Returns `false` where it begins within the token,
    /// since it may begin elsewhere in another token.
    fn add(&mut self, element: Vec<u8>, on_the_way: usize, token: &[u8], seen: u32) -> bool {
        if !self.seen.contains(&seen) && seen != NIL {
            self.seen.push(seen);
        }
        if element.len() <= on_the_way {
            self.later.insert(canonical_json(&element));
            return true;
        }
        let Some(before) = (element.len() - on_the_way).checked_sub(token.len()) else { return false };
        let after = element[before + token.len()..].to_vec();
        self.begun.push(Part { before: element[..before].to_vec(), after });
        true
    }

    /// Collects the strings in all elements that are compared, if the open elements are in the middle of a string.
    fn find_strings(&mut self, run: &mut Run<'_>) {
        let Some(open) = self.begun.first().and_then(|element| open_string(&element.before)) else { return };
        let seen = self.seen.iter().map(|&seen| run.stacks.seen_strings(seen));
        let lists = seen.chain([Strings::default().with(self.later.iter().cloned())]).collect();
        self.strings = Some(StringsSeen::new(open, UsedStrings::new(lists)));
    }

    /// Whether the open elements are certainly new with another token.
    fn are_new(&self, run: &Run<'_>, token: &[u8]) -> bool {
        if self.strings.as_ref().is_some_and(|strings| strings.are_not_in(token)) {
            return true;
        }
        self.begun.iter().all(|element| {
            let value = canonical_json(&element.with(token));
            let known = run.stacks.known_text(&value);
            if self.later.contains(&value) {
                return false;
            }
            !known.is_some_and(|value| self.seen.iter().any(|&seen| run.stacks.seen.has(seen, value)))
        })
    }
}

/// The key that is open after a token, if any.
struct KeyUnderWay {
    /// The part written before the token.
    open: Vec<u8>,
    is_begun: bool,
}

impl KeyUnderWay {
    /// What follows the token in a key as it is written; `None` where the token is no part of the key.
    fn rest_of<'k>(&self, written: &'k [u8], token: &[u8]) -> Option<&'k [u8]> {
        let part = part_of_key(&self.open, token).filter(|_| self.is_begun)?;
        written.strip_prefix(&self.open[..])?.strip_prefix(part)
    }
}

impl Run<'_> {
    /// The text extended by a token.
    fn text_after(&mut self, text: u32, token: &[u8]) -> u32 {
        token.iter().fold(text, |text, &byte| self.stacks.append(text, u32::from(byte)))
    }

    /// Reads something and records the comparisons.
    fn noting_compared<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, EngineError>,
    ) -> Result<(T, Vec<Compared>), EngineError> {
        self.compared = Some(Vec::new());
        let found = read(self);
        let compared = self.compared.take().unwrap_or_default();
        Ok((found?, compared))
    }

    /// The key that is open after a token, which leads from one configuration to the other; `None` where this is not
    /// clear.
    fn key_under_way(&self, before: SetId, after: SetId, token: &[u8]) -> Option<KeyUnderWay> {
        let (open, written) = (self.open_key(before)?, self.open_key(after)?);
        let key = KeyUnderWay { open, is_begun: !written.is_empty() };
        (!key.is_begun || key.rest_of(&written, token) == Some(&[])).then_some(key)
    }

    /// The threads that are within a key that must be new.
    pub fn in_additional_keys(&self, configuration: SetId) -> impl Iterator<Item = &Entry> {
        self.stacks.entries(configuration).iter().filter(|&&thread| {
            thread != Entry::BOTTOM && !offers_tokens(thread) && self.machine.fork(ExpansionId(thread.head)).additional
        })
    }

    /// What is written of the additional key that a configuration is within; `None` where its threads are within
    /// different keys.
    fn open_key(&self, configuration: SetId) -> Option<Vec<u8>> {
        let mut written =
            self.in_additional_keys(configuration).map(|thread| self.stacks.members(thread.register).text);
        let first = written.next().unwrap_or(NIL);
        written.all(|other| other == first).then(|| self.stacks.text(first))
    }
}
