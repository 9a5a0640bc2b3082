//! JSON values in one arena: keys in text order, numbers as their exact text, every value with its place.
//!
//! Values are stored children first, so the ids of a value and everything inside it are one contiguous range; later
//! stages walk a value by counting instead of recursing.

use indexmap::IndexMap;

/// JSON pointers in messages and reports are cut to about this many bytes.
const LONGEST_POINTER: usize = 400;

/// A value of one [`Document`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct JsonId(pub(super) u32);

/// Members of an object, in the order of the text.
pub(super) type Entries = IndexMap<Box<str>, JsonId>;

/// One JSON value.
#[derive(Debug)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// The text of the number, as it stands.
    Number(Box<str>),
    String(Box<str>),
    Array(Box<[JsonId]>),
    Object(Box<Entries>),
}

impl Json {
    /// The JSON type, for messages.
    pub(super) fn kind(&self) -> &'static str {
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

/// A value and its place.
pub(super) struct Slot {
    pub(super) value: Json,
    /// Where the value starts in the text.
    pub(super) offset: u32,
    /// The first id of the values inside; the last is the id itself.
    pub(super) first: u32,
    /// The container, and which of its entries this is.
    pub(super) parent: Option<(JsonId, u32)>,
}

/// A parsed JSON text.
pub(super) struct Document {
    /// By id; the outermost value is the last.
    pub(super) slots: Vec<Slot>,
}

impl Document {
    /// The outermost value.
    pub(super) fn root(&self) -> JsonId {
        JsonId(self.slots.len() as u32 - 1)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn get(&self, id: JsonId) -> &Json {
        &self.slots[id.0 as usize].value
    }

    /// The members, where the value is an object.
    pub(super) fn entries(&self, id: JsonId) -> Option<&Entries> {
        match self.get(id) {
            Json::Object(entries) => Some(entries),
            _ => None,
        }
    }

    /// Where the value starts in the text: sorts places in reading order.
    pub(super) fn offset(&self, id: JsonId) -> u32 {
        self.slots[id.0 as usize].offset
    }

    /// The ids of everything inside the value, itself last: children before parents.
    pub(super) fn inside(&self, id: JsonId) -> impl Iterator<Item = JsonId> + use<> {
        (self.slots[id.0 as usize].first..=id.0).map(JsonId)
    }

    pub(super) fn parent(&self, id: JsonId) -> Option<JsonId> {
        self.slots[id.0 as usize].parent.map(|(parent, _)| parent)
    }

    /// The JSON pointer of a value as a URI fragment, for example `#/properties/age`.
    pub(super) fn pointer(&self, id: JsonId) -> String {
        let mut steps = Vec::new();
        let mut at = id;
        while let Some((parent, index)) = self.slots[at.0 as usize].parent {
            steps.push(match self.get(parent) {
                Json::Object(entries) => {
                    let (key, _) = entries.get_index(index as usize).expect("a parent knows its entries");
                    key.replace('~', "~0").replace('/', "~1")
                }
                _ => index.to_string(),
            });
            at = parent;
        }
        let mut pointer = String::from("#");
        let mut steps = steps.iter().rev();
        for step in steps.by_ref() {
            pointer.push('/');
            pointer.push_str(step);
            if pointer.len() > LONGEST_POINTER {
                break;
            }
        }
        if pointer.len() > LONGEST_POINTER {
            let cut = (0..=LONGEST_POINTER).rev().find(|&at| pointer.is_char_boundary(at)).unwrap_or(0);
            pointer.truncate(cut);
            pointer.push('…');
        }
        pointer
    }

    /// The value as short JSON text, for messages.
    pub(super) fn show(&self, id: JsonId) -> String {
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

/// A string value in quotes, cut to one line, for messages.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", shorten(text))
}

fn shorten(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
