//! The entries of `%object { ... }` and `%array { ... }`.

use super::parser::{Entry, Level, Opener, Parser, Slot};
use super::scan::Word;
use super::tree::{Array, Container, Member, Object, Others, Part, PartId};
use crate::ir::grammar::Repeats;
use crate::ir::syntax_error::SyntaxError;

/// The greatest number of counters of one array.
const MAX_COUNTERS: usize = 32;

impl Parser<'_> {
    /// Reads what may stand at the beginning of an entry of an object or an array.
    pub(super) fn entry(&mut self) -> Result<(), SyntaxError> {
        loop {
            let (place, word) = self.next()?;
            let name = match word {
                Word::Sign('}') => {
                    let (place, container) = self.containers.pop().expect("entries are read within a container");
                    let part = match container {
                        Container::Object(mut object) => {
                            let taken = object.taken.take();
                            if let Some(others) = object.others.last_mut().filter(|others| others.taken.is_none()) {
                                others.taken = taken;
                            }
                            Part::Object(Box::new(object))
                        }
                        Container::Array(array) => Part::Array(Box::new(array)),
                    };
                    let item = self.text.add(place, part);
                    return self.item(item);
                }
                Word::Name(name) => name,
                _ => {
                    let message = format!(
                        "{} stands where an entry of the {} must start: {}, or `}}`",
                        word.shown(),
                        self.kind(),
                        self.entries()
                    );
                    return Err(SyntaxError::at(place, message));
                }
            };
            if let Some(entry) = self.named(place, &name)? {
                self.levels.push(Level::new(Opener::Entry(entry), place));
                return Ok(());
            }
        }
    }

    /// Reads what comes after the name of an entry; `None` if the entry is complete.
    fn named(&mut self, place: usize, name: &str) -> Result<Option<Entry>, SyntaxError> {
        let is_object = matches!(self.container(), Container::Object(_));
        let signs: &[&str] = if is_object { &["empty", "open", "colon", "item", "close"] } else { &ARRAY_SIGNS };
        if let Some(sign) = signs.iter().find(|known| **known == name) {
            self.expect('=', &format!("`{name}`"))?;
            return Ok(Some(Entry::Surface(sign)));
        }
        if name == "count" {
            let count = self.count("`count`")?;
            self.expect(';', "the count")?;
            match self.container() {
                Container::Object(object) => object.count = Some(count),
                Container::Array(array) => array.count = Some(count),
            }
            return Ok(None);
        }
        if is_object { self.object_entry(place, name) } else { self.array_entry(place, name) }
    }

    fn object_entry(&mut self, place: usize, name: &str) -> Result<Option<Entry>, SyntaxError> {
        Ok(Some(match name {
            "member" | "optional" => {
                let (at, word) = self.next()?;
                let Word::Text(key) = word else {
                    let message = format!("{} stands where the name of a member must be, in quotes", word.shown());
                    return Err(SyntaxError::at(at, message));
                };
                self.key_or_value(Slot::Member { name: key, required: name == "member" })?
            }
            "others" => self.key_or_value(Slot::Others)?,
            "some" => {
                if self.object().others.last().is_none_or(|others| others.some.is_some()) {
                    let message = "`some` stands behind the `others` that it is said of, once for each; move it there";
                    return Err(SyntaxError::at(place, message));
                }
                self.expect(':', "`some`")?;
                Entry::Value(Slot::Some, None)
            }
            "last" => {
                self.last(place)?;
                return Ok(None);
            }
            "order" => {
                self.order()?;
                return Ok(None);
            }
            "mixed" => {
                self.expect(';', "`mixed`")?;
                let object = self.object();
                object.ordered = Some(object.members.len());
                return Ok(None);
            }
            "taken" => {
                self.taken()?;
                return Ok(None);
            }
            _ => return Err(self.unknown(place, name)),
        }))
    }

    fn array_entry(&mut self, place: usize, name: &str) -> Result<Option<Entry>, SyntaxError> {
        match name {
            "unique" => {
                let counted = !self.takes(';')?;
                if counted {
                    let (at, word) = self.next()?;
                    if !matches!(&word, Word::Name(name) if name == "counted") {
                        let message = format!("{} stands where `;` must follow `unique`, or `counted;`", word.shown());
                        return Err(SyntaxError::at(at, message));
                    }
                    self.expect(';', "`unique counted`")?;
                }
                self.repeats(place, Repeats::Never { counted })?;
                Ok(None)
            }
            "repeated" => {
                self.expect(';', "`repeated`")?;
                self.repeats(place, Repeats::Required)?;
                Ok(None)
            }
            "contains" => {
                let (at, word) = self.next()?;
                let Word::Name(counter) = word else {
                    let message = format!(
                        "{} stands where the name of a counter must be, as in `contains c {{1,}};`",
                        word.shown()
                    );
                    return Err(SyntaxError::at(at, message));
                };
                let bounds = self.count("the name of a counter")?;
                self.expect(';', "the bounds of a counter")?;
                let contains = &mut self.array().contains;
                if contains.len() >= MAX_COUNTERS || contains.insert(counter.clone(), bounds).is_some() {
                    let message = format!(
                        "the counter `{counter}` is described twice, or is one of more than {MAX_COUNTERS}; rename it, \
                         or join counters"
                    );
                    return Err(SyntaxError::at(at, message));
                }
                Ok(None)
            }
            "place" | "also" | "rest" => {
                if name == "also" && self.array().prefix.is_empty() {
                    let message = "`also` gives another value at the place before it, and there is none; write `place`";
                    return Err(SyntaxError::at(place, message));
                }
                let counts = self.counters()?;
                let slot = match name {
                    "rest" => Slot::Rest { counts },
                    _ => Slot::Place { also: name == "also", counts },
                };
                Ok(Some(Entry::Value(slot, None)))
            }
            _ => Err(self.unknown(place, name)),
        }
    }

    fn repeats(&mut self, place: usize, asked: Repeats) -> Result<(), SyntaxError> {
        let repeats = &mut self.array().repeats;
        if (*repeats == Repeats::Required) != (asked == Repeats::Required) && *repeats != Repeats::Any {
            let message = "no two elements can differ and be equal; leave `unique` or `repeated` out";
            return Err(SyntaxError::at(place, message));
        }
        *repeats = asked;
        Ok(())
    }

    fn unknown(&mut self, place: usize, name: &str) -> SyntaxError {
        SyntaxError::at(place, format!("`{name}` is no entry of an {}; there are {}", self.kind(), self.entries()))
    }

    fn kind(&mut self) -> &'static str {
        if matches!(self.container(), Container::Object(_)) { "object" } else { "array" }
    }

    fn entries(&mut self) -> &'static str {
        match self.container() {
            Container::Object(_) => {
                "member, optional, others, some, last, taken, order, mixed, count, empty, open, colon, item and close"
            }
            Container::Array(_) => "place, also, rest, contains, unique, repeated, count, empty, open, item and close",
        }
    }

    fn container(&mut self) -> &mut Container {
        &mut self.containers.last_mut().expect("entries are read within a container").1
    }

    fn object(&mut self) -> &mut Object {
        match self.container() {
            Container::Object(object) => object,
            Container::Array(_) => unreachable!("only an object has such entries"),
        }
    }

    fn array(&mut self) -> &mut Array {
        match self.container() {
            Container::Array(array) => array,
            Container::Object(_) => unreachable!("only an array has such entries"),
        }
    }

    /// `{m,n}`
    fn count(&mut self, after: &str) -> Result<(u32, Option<u32>), SyntaxError> {
        let (at, word) = self.next()?;
        let Word::Count(min, max) = word else {
            let message = format!("{} stands where a count like {{1,5}} or {{2,}} must follow {after}", word.shown());
            return Err(SyntaxError::at(at, message));
        };
        Ok((min, max))
    }

    /// Reads the names of counters up to a colon, as bits.
    fn counters(&mut self) -> Result<u32, SyntaxError> {
        let mut counts = 0;
        loop {
            let (at, word) = self.next()?;
            match word {
                Word::Sign(':') => return Ok(counts),
                Word::Name(name) => match self.array().contains.get_index_of(&name) {
                    Some(index) => counts |= 1 << index,
                    None => {
                        let message =
                            format!("there is no counter `{name}` yet; write `contains {name} {{1,}};` before it");
                        return Err(SyntaxError::at(at, message));
                    }
                },
                _ => {
                    let message = format!("{} stands where `:` and the value of an element must follow", word.shown());
                    return Err(SyntaxError::at(at, message));
                }
            }
        }
    }

    /// Reads the text that completes the last key of a truncated object.
    fn last(&mut self, place: usize) -> Result<(), SyntaxError> {
        self.expect('=', "`last`")?;
        let (at, word) = self.next()?;
        let Word::Text(text) = word else {
            let message = format!("{} stands where the end of a key must be, in quotes", word.shown());
            return Err(SyntaxError::at(at, message));
        };
        match self.object().others.last_mut() {
            Some(others) if others.last.is_none() && others.some.is_none() => others.last = Some(text),
            _ => {
                let message = "`last` stands behind the `others` that it is said of, once for each, which has no `some`; move it \
                               there";
                return Err(SyntaxError::at(place, message));
            }
        }
        self.expect(';', "the end of a key")
    }

    fn order(&mut self) -> Result<(), SyntaxError> {
        self.expect('=', "`order`")?;
        let (at, word) = self.next()?;
        self.object().ordered = match &word {
            Word::Name(name) if name == "any" => Some(0),
            Word::Name(name) if name == "declared" => None,
            _ => {
                let message = format!("order is {}; write `any` or `declared`", word.shown());
                return Err(SyntaxError::at(at, message));
            }
        };
        self.expect(';', "the order")
    }

    /// Reads the names that the other keys must not have: for the next `other` entry, or for the last one if none
    /// follows.
    fn taken(&mut self) -> Result<(), SyntaxError> {
        let mut names = Vec::new();
        loop {
            match self.next()? {
                (_, Word::Text(name)) => names.push(name),
                (_, Word::Sign(';')) => {
                    self.object().taken = Some(names);
                    return Ok(());
                }
                (at, word) => {
                    let message = format!("{} stands among the taken names; end them with `;`", word.shown());
                    return Err(SyntaxError::at(at, message));
                }
            }
        }
    }

    fn key_or_value(&mut self, slot: Slot) -> Result<Entry, SyntaxError> {
        if self.takes('=')? {
            return Ok(Entry::Key(slot));
        }
        self.expect(':', "the name of a member without a key of its own")?;
        Ok(Entry::Value(slot, None))
    }

    pub(super) fn end_entry(&mut self, place: usize, is_colon: bool) -> Result<(), SyntaxError> {
        let (level, body) = self.end_level(place)?;
        let Opener::Entry(entry) = level.opener else { unreachable!("the caller has looked at the opener") };
        if is_colon != matches!(entry, Entry::Key(_)) {
            let message = if is_colon {
                "`:` ends no key here; end the entry with `;`"
            } else {
                "a key has no value; write `: value;` behind it"
            };
            return Err(SyntaxError::at(place, message));
        }
        match entry {
            Entry::Key(slot) => {
                self.levels.push(Level::new(Opener::Entry(Entry::Value(slot, Some(body))), place));
                return Ok(());
            }
            Entry::Value(slot, key) => self.value(slot, key, body),
            Entry::Surface(name) => self.sign(name, body),
        }
        self.entry()
    }

    fn value(&mut self, slot: Slot, key: Option<PartId>, value: PartId) {
        match slot {
            Slot::Member { name, required } => self.object().members.push(Member { name, required, key, value }),
            Slot::Others => {
                let object = self.object();
                let taken = object.taken.take();
                object.others.push(Others { key, taken, value, some: None, last: None });
            }
            Slot::Some => {
                let others = self.object().others.last_mut().expect("`some` was seen behind others");
                others.some = Some(value);
            }
            Slot::Place { also, counts } => {
                let prefix = &mut self.array().prefix;
                match prefix.last_mut().filter(|_| also) {
                    Some(place) => place.push((counts, value)),
                    None => prefix.push(vec![(counts, value)]),
                }
            }
            Slot::Rest { counts } => self.array().rest.push((counts, value)),
        }
    }

    fn sign(&mut self, name: &str, sign: PartId) {
        let slot = match self.container() {
            Container::Object(object) => match name {
                "empty" => &mut object.empty,
                "open" => &mut object.open,
                "colon" => &mut object.colon,
                "item" => &mut object.item,
                _ => &mut object.close,
            },
            Container::Array(array) => match name {
                "empty" => &mut array.empty,
                "open" => &mut array.open,
                "item" => &mut array.item,
                _ => &mut array.close,
            },
        };
        *slot = Some(sign);
    }
}

/// The punctuation of an array.
const ARRAY_SIGNS: [&str; 4] = ["empty", "open", "item", "close"];
