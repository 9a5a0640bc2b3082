//! References to the schemas they mean (JSON Schema Core section 8.2; JSON Pointer, RFC 6901).
//!
//! A *resource* is a schema with a URI of its own: the outermost schema of every text, and whatever declares an `$id`.
//! References are read relative to the resource they stand in, pointers and anchors belong to the resource they name.
//! Nothing is ever fetched: a URI means a resource of the schema or of the documents beside it, a published
//! meta-schema, or nothing.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use stencilm_support::HashMap;

use super::document::{Document, Json, JsonId, quoted};
use super::metaschemas;
use super::uri;
use super::vocabulary::Draft;

/// Why a reference cannot be resolved.
pub(crate) enum RefProblem {
    /// It may be valid, but not with the available documents.
    Unsupported(String),
    /// It is invalid.
    Invalid(String),
}

/// What a reference refers to.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) schema: JsonId,
    /// The resource that contains it.
    pub(crate) resource: JsonId,
}

/// The references of a document.
pub(crate) struct Refs<'t> {
    document: &'t Document<'t>,
    /// The drafts of the texts, by index.
    drafts: Vec<Draft>,
    /// Computed only if a reference is not a pointer within a text without `$id`s.
    resources: OnceCell<Resources<'t>>,
    /// The meta-schemas that are referred to but are not among the texts.
    wanted: RefCell<BTreeSet<String>>,
}

/// The resources and the names within them.
#[derive(Default)]
pub(crate) struct Resources<'t> {
    /// By absolute URI without a fragment; `None` if two resources declare the same.
    by_uri: HashMap<String, Option<JsonId>>,
    /// The inverse map.
    uris: FxHashMap<JsonId, String>,
    /// Anchors by resource; `None` if one is declared twice.
    anchors: HashMap<(JsonId, &'t str), Option<JsonId>>,
    /// The `$dynamicAnchor`s by resource; a true `$recursiveAnchor` is one without a name.
    pub(crate) dynamic: Vec<(JsonId, &'t str, JsonId)>,
}

impl<'t> Refs<'t> {
    pub(crate) fn new(document: &'t Document<'t>, drafts: Vec<Draft>) -> Refs<'t> {
        Refs { document, drafts, resources: OnceCell::new(), wanted: RefCell::default() }
    }

    /// The draft that a schema is written in.
    pub(crate) fn draft(&self, at: JsonId) -> Draft {
        self.drafts[self.document.text_of(at)]
    }

    /// The meta-schemas that are referred to but are not among the texts, with all others of the same drafts.
    pub(crate) fn missing_metaschemas(&self) -> Vec<(String, String)> {
        let wanted = self.wanted.borrow();
        if wanted.is_empty() {
            return Vec::new();
        }
        let resources = self.resources();
        metaschemas::documents(wanted.iter().map(String::as_str), |uri| resources.by_uri.contains_key(uri))
    }

    /// Resolves `reference`, which occurs in the schema `from`.
    pub(crate) fn resolve(&self, from: JsonId, reference: &str) -> Result<Target, RefProblem> {
        let (name, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_decoded(fragment)
            .ok_or_else(|| RefProblem::Invalid("its % escapes are malformed; write %25 for a % sign".into()))?;
        let here = self.resource_of(from);
        let resource = if name.is_empty() {
            here
        } else {
            let resources = self.resources();
            let base = resources.uris.get(&here).map_or("", String::as_str);
            let uri = uri::resolve(base, name);
            match resources.by_uri.get(&uri) {
                Some(&Some(found)) => found,
                Some(None) => return Err(RefProblem::Invalid("two schemas declare this $id; rename one".into())),
                None => {
                    if metaschemas::has(&uri) {
                        self.wanted.borrow_mut().insert(uri);
                    }
                    return Err(RefProblem::Unsupported(
                        "it leads out of this schema and nothing is ever fetched; supply its target in `documents`, or \
                         copy it into $defs and point there"
                            .into(),
                    ));
                }
            }
        };
        if fragment.is_empty() {
            return Ok(Target { schema: resource, resource });
        }
        if let Some(pointer) = fragment.strip_prefix('/') {
            let schema = match self.walk(resource, pointer) {
                // If an inner `id` is only meant as a name, pointers start at the outermost schema.
                Err(problem) => {
                    self.walk(self.document.roots[self.document.text_of(resource)].0, pointer).map_err(|_| problem)?
                }
                Ok(schema) => schema,
            };
            return Ok(Target { schema, resource: self.resource_of(schema) });
        }
        match self.resources().anchors.get(&(resource, fragment.as_str())) {
            Some(&Some(schema)) => Ok(Target { schema, resource }),
            Some(None) => Err(RefProblem::Invalid("two schemas declare this anchor; rename one".into())),
            None => Err(RefProblem::Invalid(
                "no schema there declares this anchor; use a JSON pointer such as #/$defs/name".into(),
            )),
        }
    }

    fn walk(&self, resource: JsonId, pointer: &str) -> Result<JsonId, RefProblem> {
        let document = self.document;
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
            place = place.after(&step, self.draft(at));
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

    /// The resource that contains a value.
    pub(crate) fn resource_of(&self, from: JsonId) -> JsonId {
        let (root, _) = self.document.roots[self.document.text_of(from)];
        let uris = &self.resources().uris;
        if uris.len() == self.document.roots.len() {
            return root;
        }
        let mut at = from;
        while at != root && !uris.contains_key(&at) {
            match self.document.parent(at) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at
    }

    /// All resources, computed at the first call.
    pub(crate) fn resources(&self) -> &Resources<'t> {
        self.resources.get_or_init(|| {
            let mut resources = Resources::default();
            for (text, &(root, uri)) in self.document.roots.iter().enumerate() {
                self.search(root, uri, self.drafts[text], &mut resources);
            }
            resources
        })
    }

    fn search(&self, root: JsonId, uri: &'t str, draft: Draft, resources: &mut Resources<'t>) {
        let document = self.document;
        let first = document.inside(root).next().unwrap_or(root).0;
        let base = uri.split('#').next().unwrap_or(uri).to_string();
        if !uri.is_empty() {
            resources.by_uri.insert(base.clone(), Some(root));
        }
        resources.uris.insert(root, base);
        // Parents come after their children, so in reverse order the place of a value is known before its parts are
        // visited.
        let mut places = vec![Place::Elsewhere; (root.0 - first + 1) as usize];
        let mut owners = vec![root; places.len()];
        for id in (first..=root.0).rev().map(JsonId) {
            let at = (id.0 - first) as usize;
            if id == root {
                places[at] = Place::Schema;
            } else if let Some(parent) = document.parent(id) {
                let above = (parent.0 - first) as usize;
                owners[at] = owners[above];
                places[at] = places[above].after(document.key(id), draft);
            }
            let is_schema = matches!(places[at], Place::Schema | Place::SchemaOrList);
            let Some(entries) = document.entries(id).filter(|_| is_schema) else { continue };
            let mut names = Names::default();
            for (keyword, &value) in entries.iter().filter(|(keyword, _)| keyword.starts_with(['$', 'i'])) {
                if !draft.has(keyword) {
                    continue;
                }
                match (keyword, document.get(value)) {
                    ("$id", Json::String(text)) => names.id = Some(text),
                    ("id", Json::String(text)) if draft == Draft::D4 => names.id = Some(text),
                    ("$anchor", Json::String(text)) => names.anchor = text,
                    ("$dynamicAnchor", Json::String(text)) => names.dynamic = Some(text),
                    ("$recursiveAnchor", Json::Bool(true)) => names.recursive = true,
                    // Up to draft 7, `$ref` hides the keywords beside it.
                    ("$ref", _) => names.hidden = draft <= Draft::D7,
                    _ => {}
                }
            }
            if names.hidden {
                continue;
            }
            if let Some(declared) = names.id {
                let (name, anchor) = declared.split_once('#').unwrap_or((declared, ""));
                if !name.is_empty() {
                    let base = &resources.uris[&owners[at]];
                    let uri = uri::resolve(base, name);
                    owners[at] = id;
                    let twice = resources.by_uri.get(&uri).is_some_and(|&known| known != Some(id));
                    resources.by_uri.insert(uri.clone(), (!twice).then_some(id));
                    resources.uris.insert(id, uri);
                }
                resources.add_anchor(owners[at], anchor, id);
            }
            let owner = owners[at];
            resources.add_anchor(owner, names.anchor, id);
            if let Some(name) = names.dynamic {
                resources.add_anchor(owner, name, id);
                resources.dynamic.push((owner, name, id));
            }
            if names.recursive {
                resources.dynamic.push((owner, "", id));
            }
        }
    }
}

/// The names that one schema declares.
#[derive(Default)]
struct Names<'t> {
    id: Option<&'t str>,
    anchor: &'t str,
    dynamic: Option<&'t str>,
    recursive: bool,
    hidden: bool,
}

impl<'t> Resources<'t> {
    fn add_anchor(&mut self, owner: JsonId, name: &'t str, id: JsonId) {
        if !name.is_empty() {
            let twice = self.anchors.get(&(owner, name)).is_some_and(|&known| known != Some(id));
            self.anchors.insert((owner, name), (!twice).then_some(id));
        }
    }
}

/// Where the steps of a pointer have led: decides whether an object there is a schema.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Schema,
    /// An object or a list of schemas.
    Schemas,
    SchemaOrList,
    /// Plain values.
    Data,
    /// The value of an unknown keyword: anything, even something that looks like a schema.
    Elsewhere,
}

impl Place {
    fn after(self, step: &str, draft: Draft) -> Place {
        match self {
            Place::Schemas => Place::Schema,
            Place::Schema if !draft.has(step) => Place::Elsewhere,
            Place::Schema => match step {
                "const" | "enum" => Place::Data,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies"
                | "allOf" | "anyOf" | "oneOf" | "prefixItems" => Place::Schemas,
                "items" => Place::SchemaOrList,
                "additionalItems"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contentSchema" => Place::Schema,
                _ => Place::Elsewhere,
            },
            // It's a list if its entries are numbered.
            Place::SchemaOrList if step.bytes().all(|byte| byte.is_ascii_digit()) => Place::Schema,
            Place::SchemaOrList => Place::Schema.after(step, draft),
            Place::Data | Place::Elsewhere => self,
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
    use crate::json_schema::read::parse::parse;

    #[test]
    fn references_resolve() {
        let beside = [
            ("http://a.example/other.json".to_string(), r#"{"$defs": {"y": {"$anchor": "y"}}}"#.to_string()),
            ("names".to_string(), r#"{"$id": "http://c.example/", "type": "null"}"#.to_string()),
        ];
        let document = parse(
            r##"{"$id": "http://a.example/root", "$defs": {"a~/b%": true, "in": {"$id": "in", "$defs": {"x": {}},
                "not": {"$ref": "#/$defs/x"}}, "named": {"$anchor": "here"}}, "items": [{"minimum": 1}],
                "enum": [{"a": 1, "$id": "data", "$anchor": "data"}], "properties": {"enum": {}, "$id": {"$anchor": "odd"}},
                "unknown": {"$id": "unknown"}}"##,
            &beside,
            1_000,
        )
        .unwrap();
        let refs = Refs::new(&document, vec![Draft::Unnamed; 3]);
        let inner = refs.resolve(document.root(), "in").ok().unwrap().schema;
        let target = |from: JsonId, reference: &str| match refs.resolve(from, reference) {
            Ok(target) => document.pointer(target.schema),
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
            ("in#/$defs/x", "#/$defs/in/$defs/x"),
            ("/in", "#/$defs/in"),
            ("http://a.example/root", "#"),
            ("http://b.example/", "unsupported"),
            ("file:///etc/passwd", "unsupported"),
            ("data", "unsupported"),
            ("unknown", "unsupported"),
            ("#data", "invalid"),
            ("#here", "#/$defs/named"),
            ("#odd", "#/properties/$id"),
            ("#there", "invalid"),
            ("other.json", "http://a.example/other.json#"),
            ("other.json#y", "http://a.example/other.json#/$defs/y"),
            ("http://c.example/", "names#"),
            ("#/%zz", "invalid"),
            ("#/~2", "invalid"),
        ] {
            assert_eq!(target(document.root(), reference), expected, "{reference}");
        }
        assert_eq!(target(inner, "#/$defs/x"), "#/$defs/in/$defs/x");
        assert_eq!(target(inner, "root#here"), "#/$defs/named");
        assert_eq!(target(inner, "#here"), "invalid");
    }
}
