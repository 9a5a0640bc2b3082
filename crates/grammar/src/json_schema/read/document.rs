//! JSON values in one arena: keys in text order, numbers as their exact text, every value with its place.
//!
//! Values are stored children first, so the ids of a value and everything inside it are one contiguous range; later
//! stages walk a value by counting instead of recursing.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;

/// JSON pointers in messages and reports are truncated to about this many bytes.
const LONGEST_POINTER: usize = 400;

/// A value of one [`Document`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct JsonId(pub(crate) u32);

/// Objects with more members than this have a table of their keys.
const LARGE: usize = 12;

/// Members of an object, in the order of the text.
#[derive(Default, Debug)]
pub(crate) struct Entries<'t> {
    list: Box<[(Cow<'t, str>, JsonId)]>,
    table: KeyTable<'t>,
}

/// Positions by key. The hash is keyed randomly, so nobody can write a schema whose keys all collide.
#[derive(Debug)]
struct Positions<'t>(HashMap<Cow<'t, str>, u32>);

/// Positions by key for large objects. Boxed, because nearly every object does without.
#[derive(Default, Debug)]
pub(crate) struct KeyTable<'t>(Option<Box<Positions<'t>>>);

impl<'t> KeyTable<'t> {
    /// Returns whether a key is not in the list yet; the key becomes the next one.
    pub(crate) fn admit(&mut self, list: &[(Cow<'t, str>, JsonId)], key: &str) -> bool {
        if list.len() < LARGE {
            return list.iter().all(|(known, _)| known != key);
        }
        let positions = || list.iter().zip(0..).map(|((key, _), place)| (key.clone(), place)).collect();
        let Positions(table) = &mut **self.0.get_or_insert_with(|| Box::new(Positions(positions())));
        !table.contains_key(key) && table.insert(key.to_owned().into(), list.len() as u32).is_none()
    }
}

impl<'t> Entries<'t> {
    /// Entries from a list whose keys were all admitted to the table.
    pub(crate) fn new(list: Box<[(Cow<'t, str>, JsonId)]>, table: KeyTable<'t>) -> Entries<'t> {
        Entries { list, table }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&JsonId> {
        let found = match &self.table.0 {
            Some(table) => self.list.get(*table.0.get(key)? as usize),
            None => self.list.iter().find(|(known, _)| known == key),
        };
        found.map(|(_, value)| value)
    }

    pub(crate) fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &JsonId)> {
        self.list.iter().map(|(key, value)| (&**key, value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|(key, _)| &**key)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &JsonId> {
        self.list.iter().map(|(_, value)| value)
    }
}

/// One JSON value.
#[derive(Debug)]
pub(crate) enum Json<'t> {
    Null,
    Bool(bool),
    /// The text of the number, unchanged.
    Number(&'t str),
    String(Cow<'t, str>),
    Array(Box<[JsonId]>),
    Object(Entries<'t>),
}

impl Json<'_> {
    /// The JSON type, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "an array",
            Json::Object(_) => "an object",
        }
    }
}

/// A value and its position.
pub(crate) struct Slot<'t> {
    pub(crate) value: Json<'t>,
    /// The offset of the value's first byte.
    pub(crate) offset: u32,
    /// The offset of its end.
    pub(crate) end: u32,
    /// The first id of the values inside; the last is the value's own id.
    pub(crate) first: u32,
    /// The container, and the index in it.
    pub(crate) parent: Option<(JsonId, u32)>,
}

/// A number that equal values have in common; different values have different numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct ValueId(pub(super) u32);

/// The values that were compared so far.
#[derive(Default)]
pub(crate) struct Compared(pub(super) RefCell<Numbers>);

#[derive(Default)]
pub(super) struct Numbers {
    /// By value, once it was compared.
    pub(super) by_value: Vec<Option<ValueId>>,
    /// By canonical text. The hash is keyed randomly, so nobody can write a schema whose values all collide.
    pub(super) by_text: HashMap<Vec<u8>, ValueId>,
}

/// Parsed JSON texts: a schema and the documents that it may refer to. Unescaped strings are not copied.
pub(crate) struct Document<'t> {
    /// By id, one text after the other; the outermost value of each text is its last.
    pub(crate) slots: Vec<Slot<'t>>,
    /// The outermost values with their URIs; the first is the schema itself, without a URI.
    pub(crate) roots: Vec<(JsonId, &'t str)>,
    /// See [`Document::value_id`].
    pub(crate) compared: Compared,
}

impl<'t> Document<'t> {
    /// The outermost value of the schema itself.
    pub(crate) fn root(&self) -> JsonId {
        self.roots[0].0
    }

    /// The text that a value is in, as an index in the list of roots.
    pub(crate) fn text_of(&self, id: JsonId) -> usize {
        self.roots.partition_point(|&(root, _)| root < id)
    }

    /// The key of the value; empty if it has none.
    pub(crate) fn key(&self, id: JsonId) -> &str {
        match self.slots[id.0 as usize].parent {
            Some((parent, index)) => match self.get(parent) {
                Json::Object(entries) => &entries.list[index as usize].0,
                _ => "",
            },
            None => "",
        }
    }

    /// The value of a string; otherwise the key of the value.
    pub(crate) fn name(&self, id: JsonId) -> &str {
        if let Json::String(text) = self.get(id) { text } else { self.key(id) }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn get(&self, id: JsonId) -> &Json<'t> {
        &self.slots[id.0 as usize].value
    }

    /// The members, if the value is an object.
    pub(crate) fn entries(&self, id: JsonId) -> Option<&Entries<'t>> {
        match self.get(id) {
            Json::Object(entries) => Some(entries),
            _ => None,
        }
    }

    /// The strings in an array.
    pub(crate) fn strings(&self, id: JsonId) -> impl Iterator<Item = &str> {
        let items: &[JsonId] = if let Json::Array(items) = self.get(id) { items } else { &[] };
        items.iter().filter_map(|&item| if let Json::String(text) = self.get(item) { Some(&**text) } else { None })
    }

    /// Where the value starts, for sorting in reading order.
    pub(crate) fn position(&self, id: JsonId) -> (usize, u32) {
        (self.text_of(id), self.slots[id.0 as usize].offset)
    }

    /// The value as it is written in the text.
    pub(crate) fn spelled<'s>(&self, text: &'s str, id: JsonId) -> &'s str {
        let slot = &self.slots[id.0 as usize];
        &text[slot.offset as usize..slot.end as usize]
    }

    /// The ids of everything inside the value and of the value itself, children before parents.
    pub(crate) fn inside(&self, id: JsonId) -> impl Iterator<Item = JsonId> + use<> {
        (self.slots[id.0 as usize].first..=id.0).map(JsonId)
    }

    pub(crate) fn parent(&self, id: JsonId) -> Option<JsonId> {
        self.slots[id.0 as usize].parent.map(|(parent, _)| parent)
    }

    /// The JSON pointer of a value as a URI fragment, for example `#/properties/age`.
    pub(crate) fn pointer(&self, id: JsonId) -> String {
        let mut pointer = String::new();
        self.write_pointer(id, &mut pointer);
        pointer
    }

    /// Appends the JSON pointer of a value to a text.
    pub(crate) fn write_pointer(&self, id: JsonId, text: &mut String) {
        let start = text.len();
        // Most values are not nested more deeply than this.
        let mut near = [(id, 0); 12];
        let mut far = Vec::new();
        let (mut at, mut depth) = (id, 0);
        while let Some(step) = self.slots[at.0 as usize].parent {
            match near.get_mut(depth) {
                Some(place) => *place = step,
                None => far.push(step),
            }
            (at, depth) = (step.0, depth + 1);
        }
        text.reserve(12 * depth + 1);
        text.push_str(self.roots[self.text_of(id)].1);
        text.push('#');
        for &(parent, index) in far.iter().rev().chain(near[..depth.min(near.len())].iter().rev()) {
            text.push('/');
            match self.get(parent) {
                Json::Object(entries) => {
                    let (key, _) = &entries.list[index as usize];
                    if key.as_bytes().contains(&b'~') || key.as_bytes().contains(&b'/') {
                        text.push_str(&key.replace('~', "~0").replace('/', "~1"));
                    } else {
                        text.push_str(key);
                    }
                }
                _ => write!(text, "{index}").expect("writing to a string never fails"),
            }
            if text.len() - start > LONGEST_POINTER {
                break;
            }
        }
        if text.len() - start > LONGEST_POINTER {
            let cut = (start..=start + LONGEST_POINTER).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(start);
            text.truncate(cut);
            text.push('…');
        }
    }

    /// The value as short JSON text, for messages.
    pub(crate) fn show(&self, id: JsonId) -> String {
        match self.get(id) {
            Json::Null => "null".into(),
            Json::Bool(value) => value.to_string(),
            Json::Number(text) => shorten(text),
            Json::String(text) => quoted(text),
            Json::Array(items) if items.is_empty() => "[]".into(),
            Json::Array(_) => "[…]".into(),
            Json::Object(entries) if entries.is_empty() => "{}".into(),
            Json::Object(_) => "{…}".into(),
        }
    }
}

/// A string value in quotes, shortened, for messages.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", shorten(text))
}

fn shorten(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use crate::json_schema::read::parse;

    #[test]
    fn values_end_where_they_end() {
        for value in [r#"{"a": ["}", "\"}\\"]}"#, "true", "-1.5e3", r#""x\\""#, "[]", "{}", "[[1], {}]", "[ ]"] {
            for (before, after) in [("", ""), ("[", "]"), (" [ ", " ,1]"), ("{\"k\": ", "\n}"), ("[0, {}, ", "]")] {
                let text = format!("{before}{value}{after}");
                let document = parse::parse(&text, &[], text.len()).expect("JSON");
                let mut spelled = document.inside(document.root()).map(|id| document.spelled(&text, id));
                assert!(spelled.any(|spelled| spelled == value), "{text}");
            }
        }
    }
}
