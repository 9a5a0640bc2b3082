//! `$ref` to the schema it means, inside one document (JSON Schema Core section 8.2; JSON Pointer, RFC 6901).
//!
//! Nothing is ever fetched. A pointer is read from the root of the innermost resource, that is, from the nearest
//! enclosing schema with an `$id` of its own.

use rustc_hash::FxHashMap;

use super::document::{Document, Json, JsonId, quoted};

/// Why a reference leads nowhere.
pub(super) enum RefProblem {
    /// It could mean something, but not inside this document.
    Unsupported(String),
    /// It is wrong.
    Invalid(String),
}

/// The resources of a document.
pub(super) struct Refs {
    /// Absolute URIs of the schemas that declare one, without an empty fragment; `None` where two declare the same.
    by_uri: FxHashMap<Box<str>, Option<JsonId>>,
    nested_resources: bool,
    /// The keyword that declares a URI: `$id`, or `id` up to draft 4.
    id_keyword: &'static str,
}

impl Refs {
    pub(super) fn new(document: &Document, id_keyword: &'static str) -> Refs {
        let mut refs = Refs { by_uri: FxHashMap::default(), nested_resources: false, id_keyword };
        for id in document.inside(document.root()) {
            let Some(uri) = refs.resource_uri(document, id) else { continue };
            refs.nested_resources |= id != document.root();
            let twice = refs.by_uri.contains_key(uri);
            refs.by_uri.insert(uri.into(), (!twice).then_some(id));
        }
        refs
    }

    /// What `reference`, standing in the schema `from`, points to.
    pub(super) fn resolve(&self, document: &Document, from: JsonId, reference: &str) -> Result<JsonId, RefProblem> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = if uri.is_empty() {
            self.resource_of(document, from)
        } else {
            match self.by_uri.get(uri) {
                // A relative `$id` means different things in different places; only a full URI is the same everywhere.
                Some(&Some(id)) if uri.contains(':') => id,
                _ => {
                    return Err(RefProblem::Unsupported(
                        "it leads out of this schema and nothing is ever fetched; copy the target into $defs and point \
                         there"
                            .into(),
                    ));
                }
            }
        };
        let fragment = percent_decoded(fragment)
            .ok_or_else(|| RefProblem::Invalid("its % escapes are malformed; write %25 for a % sign".into()))?;
        if fragment.is_empty() {
            return Ok(resource);
        }
        let Some(pointer) = fragment.strip_prefix('/') else {
            return Err(RefProblem::Unsupported(
                "references by anchor name are not supported; use a JSON pointer such as #/$defs/name".into(),
            ));
        };
        self.walk(document, resource, pointer)
    }

    fn walk(&self, document: &Document, resource: JsonId, pointer: &str) -> Result<JsonId, RefProblem> {
        let mut at = resource;
        let mut place = Place::Schema;
        for step in pointer.split('/') {
            let step = pointer_decoded(step).ok_or_else(|| {
                RefProblem::Invalid("its ~ escapes are malformed; write ~0 for ~ and ~1 for /".into())
            })?;
            let next = match document.get(at) {
                Json::Object(entries) => entries.get(step.as_str()).copied(),
                Json::Array(items) if step == "0" || !step.starts_with(['0', '+']) => {
                    step.parse().ok().and_then(|index: usize| items.get(index)).copied()
                }
                _ => None,
            };
            let Some(next) = next else {
                let message = format!("nothing stands there: {} has no {}", document.pointer(at), quoted(&step));
                return Err(RefProblem::Invalid(message));
            };
            place = place.after(&step);
            at = next;
        }
        match document.get(at) {
            _ if matches!(place, Place::Data) => {
                Err(RefProblem::Invalid("it points into plain data, not to a schema".into()))
            }
            Json::Object(_) | Json::Bool(_) => Ok(at),
            other => Err(RefProblem::Invalid(format!("it points to {}, not to a schema", other.kind()))),
        }
    }

    fn resource_of(&self, document: &Document, from: JsonId) -> JsonId {
        if !self.nested_resources {
            return document.root();
        }
        let mut at = from;
        while self.resource_uri(document, at).is_none() {
            match document.parent(at) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at
    }

    /// The URI that a schema declares for itself.
    fn resource_uri<'a>(&self, document: &'a Document, id: JsonId) -> Option<&'a str> {
        match document.get(*document.entries(id)?.get(self.id_keyword)?) {
            Json::String(uri) => Some(uri.strip_suffix('#').unwrap_or(uri)).filter(|uri| !uri.contains('#')),
            _ => None,
        }
    }
}

/// What the steps of a pointer have reached: decides whether an object there is a schema.
enum Place {
    Schema,
    Schemas,
    Data,
    Elsewhere,
}

impl Place {
    fn after(self, step: &str) -> Place {
        match self {
            Place::Schemas => Place::Schema,
            Place::Schema => match step {
                "const" | "enum" | "default" | "examples" => Place::Data,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => Place::Schemas,
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => Place::Schemas,
                _ => Place::Elsewhere,
            },
            // `items` and the like hold a schema or a list of them; unknown keywords may hold anything.
            Place::Elsewhere if matches!(step, "properties" | "$defs" | "definitions") => Place::Schemas,
            Place::Elsewhere => Place::Elsewhere,
            Place::Data => Place::Data,
        }
    }
}

fn pointer_decoded(step: &str) -> Option<String> {
    let mut decoded = String::with_capacity(step.len());
    let mut characters = step.chars();
    while let Some(character) = characters.next() {
        decoded.push(match character {
            '~' => match characters.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(decoded)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let hex = after.get(..2).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit))?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_schema::parse::parse;

    #[test]
    fn pointers_resolve() {
        let document = parse(
            r##"{"$id": "http://a.example/root", "$defs": {"a~/b%": true, "in": {"$id": "http://a.example/in", "$defs": {"x": {}},
                "not": {"$ref": "#/$defs/x"}}}, "items": [{"minimum": 1}], "enum": [{"a": 1}], "properties": {"enum": {}}}"##,
            1_000,
        )
        .unwrap();
        let refs = Refs::new(&document, "$id");
        let target = |reference: &str| match refs.resolve(&document, document.root(), reference) {
            Ok(id) => document.pointer(id),
            Err(RefProblem::Invalid(_)) => "invalid".into(),
            Err(RefProblem::Unsupported(_)) => "unsupported".into(),
        };
        for (reference, expected) in [
            ("#", "#"),
            ("", "#"),
            ("#/$defs/a~0~1b%25", "#/$defs/a~0~1b%"),
            ("#/items/0", "#/items/0"),
            ("#/items/00", "invalid"),
            ("#/items/1", "invalid"),
            ("#/enum/0", "invalid"),
            ("#/properties/enum", "#/properties/enum"),
            ("#/items/0/minimum", "invalid"),
            ("http://a.example/in#/$defs/x", "#/$defs/in/$defs/x"),
            ("http://a.example/root", "#"),
            ("http://b.example/", "unsupported"),
            ("file:///etc/passwd", "unsupported"),
            ("other.json", "unsupported"),
            ("#anchor", "unsupported"),
            ("#/%zz", "invalid"),
            ("#/~2", "invalid"),
        ] {
            assert_eq!(target(reference), expected, "{reference}");
        }
    }
}
