//! Schemas that are written in several places and mean the same, so that they are lowered once: the parameters of
//! hundreds of tools are mostly a string, a number or a list of strings with a description of their own.
//!
//! One idea: what such a schema says, without annotations, is a short key. Only schemas that some value is valid under
//! have one, because an error names the place where it was found.

use super::normal::Normal;
use crate::json_schema::read::canonical::canonical;
use crate::json_schema::read::document::{Json, JsonId};
use crate::json_schema::read::schema::{Keyword, SchemaId, Schemas};

/// Keywords that constrain scalars, alone or in combination.
const SCALAR: [&str; 10] = [
    "type",
    "const",
    "enum",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "format",
];

/// Values with more parts than this are not compared.
const MAX_PARTS: u32 = 64;
/// The length of the longest chain of references that is followed.
const MAX_HOPS: usize = 8;
/// The first byte of a key that consists of the whole text of a schema; no draft has this number.
const KIND_OF_TEXT: u8 = 254;

/// The key of a schema, and the schemas that it consists of.
#[derive(Default)]
pub(crate) struct Key {
    pub(crate) said: Vec<u8>,
    pub(crate) schemas: Vec<SchemaId>,
}

impl Schemas<'_> {
    /// Writes the key of a schema of scalars, or of arrays with constraints only on their elements; returns whether the
    /// schema has a key.
    pub(crate) fn write_key(&self, id: SchemaId, key: &mut Key) -> bool {
        key.said.clear();
        key.schemas.clear();
        self.say(id, key).is_some()
    }

    /// The key of a schema, if it has one.
    fn key(&self, id: SchemaId) -> Option<Key> {
        let mut key = Key::default();
        self.write_key(id, &mut key).then_some(key)
    }

    fn say(&self, id: SchemaId, key: &mut Key) -> Option<()> {
        key.said.push(self.draft(id) as u8);
        let mut next = Some(id);
        // The schema of an array leads to that of its elements; deeper ones are compared where they are lowered.
        for _ in 0..2 {
            let Some(id) = next.take() else { break };
            let entries = self.document.entries(id.value)?;
            let schema = self.get(id);
            if !schema.refusals.is_empty() || entries.len() as u32 > MAX_PARTS {
                return None;
            }
            let has = |keyword: &str| entries.contains_key(keyword);
            for (keyword, &value) in entries.iter() {
                // No keyword starts with the same byte as a value, so a key is unambiguous.
                match SCALAR.iter().position(|&scalar| scalar == keyword) {
                    // It's possible that no string of a format has such a length.
                    Some(_) if keyword.ends_with("Length") && has("format") => return None,
                    Some(position) => {
                        key.said.push(128 + position as u8);
                        self.write(value, &mut key.said)?;
                    }
                    None if keyword == "items" && !has("enum") && !has("const") => {
                        key.said.push(255);
                        next = Some(self.inner(id, value));
                    }
                    None if self.fates(id).iter().any(|fate| fate.enforced && fate.keyword == keyword) => return None,
                    None => {}
                }
            }
            key.schemas.push(id);
        }
        next.is_none().then_some(())
    }

    /// Writes a value so that different values give different bytes, whatever follows them.
    fn write(&self, value: JsonId, said: &mut Vec<u8>) -> Option<()> {
        let inside = self.document.inside(value);
        for (count, id) in inside.enumerate() {
            if count as u32 > MAX_PARTS {
                return None;
            }
            let mut text = |kind: u8, text: &str| {
                said.push(kind);
                said.extend_from_slice(&(text.len() as u32).to_le_bytes());
                said.extend_from_slice(text.as_bytes());
            };
            match self.document.get(id) {
                Json::Null => said.push(b'n'),
                Json::Bool(value) => said.push(if *value { b't' } else { b'f' }),
                Json::Number(number) => text(b'0', number),
                Json::String(string) => text(b'"', string),
                Json::Array(items) => text(b'[', &items.len().to_string()),
                // Equal objects with their keys in another order are spelled differently, so objects have no key.
                Json::Object(_) => return None,
            }
        }
        Some(())
    }
}

impl Normal<'_> {
    /// Whether two schemas certainly have the same instances: they are the same schema, or have the same key.
    pub(crate) fn is_same(&mut self, one: SchemaId, other: SchemaId) -> bool {
        let (one, other) = (self.referred(one), self.referred(other));
        one == other || self.words(one).is_some_and(|words| self.words(other) == Some(words))
    }

    /// Follows schemas that consist only of a `$ref`.
    fn referred(&self, mut id: SchemaId) -> SchemaId {
        for _ in 0..MAX_HOPS {
            match *self.schemas.get(id).keywords {
                [Keyword::Ref(target)] => id = target,
                _ => break,
            }
        }
        id
    }

    /// The number of the key of a schema; `None` if the schema is too large.
    fn words(&mut self, id: SchemaId) -> Option<u32> {
        if let Some(&known) = self.words.get(&id) {
            return known;
        }
        let schemas = self.schemas;
        let said = schemas.key(id).map(|key| key.said).or_else(|| {
            let parts = schemas.document.inside(id.value).take(MAX_PARTS as usize + 1).count();
            if parts > MAX_PARTS as usize {
                return None;
            }
            // Within one resource and scope, the same references lead to the same schemas.
            let resource = schemas.refs.resource_of(id.value).0;
            let mut said = vec![KIND_OF_TEXT];
            said.extend_from_slice(&resource.to_le_bytes());
            said.extend_from_slice(&id.scope.to_le_bytes());
            said.extend_from_slice(&canonical(schemas.document, id.value));
            Some(said)
        });
        let next = self.said.len() as u32;
        let words = said.map(|said| *self.said.get_or_insert_with(said, || next));
        self.words.insert(id, words);
        words
    }
}

#[cfg(test)]
mod tests {
    use crate::json_schema::options::JsonSchemaOptions;
    use crate::json_schema::read::{keywords, parse};

    /// The keys of two schemas in one document.
    fn said(one: &str, other: &str) -> [Option<Vec<u8>>; 2] {
        let text = format!(r#"{{"properties": {{"a": {one}, "b": {other}}}}}"#);
        let document = parse::parse(&text, &[], text.len()).expect("JSON");
        let schemas = keywords::read(&document, &JsonSchemaOptions::default()).expect("schemas");
        let entries = document.entries(document.root()).expect("an object");
        let properties = document.entries(*entries.get("properties").expect("properties")).expect("an object");
        ["a", "b"].map(|name| {
            let id = schemas.inner(schemas.root, *properties.get(name).expect("a property"));
            schemas.key(id).map(|key| key.said)
        })
    }

    #[test]
    fn annotations_make_no_difference() {
        for (one, other) in [
            (r#"{"type": "string"}"#, r#"{"type": "string", "description": "of a city", "default": 1}"#),
            (r#"{"enum": ["C", 1, null]}"#, r#"{"title": "unit", "enum": ["C", 1, null]}"#),
            (r#"{"type": "integer", "minimum": 1}"#, r#"{"type": "integer", "minimum": 1, "examples": [{}]}"#),
            (
                r#"{"type": "array", "items": {"type": "string"}}"#,
                r#"{"type": "array", "items": {"title": "t", "type": "string"}}"#,
            ),
            ("{}", r#"{"x-note": []}"#),
        ] {
            let [one_said, other_said] = said(one, other);
            assert!(one_said.is_some(), "{one}");
            assert_eq!(one_said, other_said, "{one} {other}");
        }
    }

    #[test]
    fn constraints_do() {
        for (one, other) in [
            (r#"{"type": "string"}"#, r#"{"type": "integer"}"#),
            (r#"{"enum": ["a", "b"]}"#, r#"{"enum": ["ab"]}"#),
            (r#"{"enum": [1, "2"]}"#, r#"{"enum": ["1", 2]}"#),
            (r#"{"const": [1, [2]]}"#, r#"{"const": [[1], 2]}"#),
            (r#"{"minimum": 1}"#, r#"{"maximum": 1}"#),
            (r#"{"type": "array", "items": {"type": "string"}}"#, r#"{"type": "array", "items": {}}"#),
            (r#"{"items": {"type": "array"}}"#, r#"{"type": "array", "items": {}}"#),
        ] {
            let [one_said, other_said] = said(one, other);
            assert!(one_said.is_some() && other_said.is_some() && one_said != other_said, "{one} {other}");
        }
    }

    #[test]
    fn what_may_have_no_value_is_not_compared() {
        for schema in [
            r#"{"type": "string", "pattern": "^a$"}"#,
            r#"{"type": "array", "items": {}, "minItems": 2}"#,
            r#"{"type": "object", "properties": {}}"#,
            r#"{"format": "date", "maxLength": 3}"#,
            r#"{"items": {"items": {"items": {}}}}"#,
            r##"{"$ref": "#/properties/b"}"##,
            r#"{"items": {}, "enum": [1]}"#,
            "true",
        ] {
            assert_eq!(said(schema, "{}")[0], None, "{schema}");
        }
    }
}
