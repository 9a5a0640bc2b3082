//! The published meta-schemas of drafts 4, 6, 7, 2019-09 and 2020-12, with the vocabularies of the last two: what
//! refers to them is resolved without a network.
//!
//! They are read only where something refers to them and the caller supplies no document under their URI. The texts are
//! those that json-schema.org publishes (BSD 3-Clause or Academic Free License 3.0), without white space.

use std::collections::HashSet;

/// Each line has a URI, a space and the text.
const METASCHEMAS: &str = include_str!("metaschemas.txt");

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    METASCHEMAS.lines().filter_map(|line| line.split_once(' '))
}

/// The part after the scheme: `http` and `https` lead to the same text.
fn without_scheme(uri: &str) -> Option<&str> {
    uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))
}

/// The part of the URI that the meta-schemas of a draft have in common.
fn draft_of(uri: &str) -> Option<&str> {
    let path = without_scheme(uri)?.strip_prefix("json-schema.org/")?;
    path.strip_suffix("/schema").or_else(|| path.split_once("/meta/").map(|(draft, _)| draft))
}

/// Whether a URI without a fragment is that of a meta-schema.
pub(crate) fn has(uri: &str) -> bool {
    // The host already distinguishes nearly all others.
    draft_of(uri).is_some() && all().any(|(known, _)| without_scheme(known) == without_scheme(uri))
}

/// The documents for these URIs of meta-schemas and all others of the same drafts, except those that are already there.
pub(crate) fn documents<'u>(
    wanted: impl Iterator<Item = &'u str>,
    is_there: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let mut added: HashSet<&str> = HashSet::new();
    let mut documents = Vec::new();
    for uri in wanted {
        for (known, text) in all().filter(|(known, _)| draft_of(known) == draft_of(uri)) {
            let is_same = without_scheme(known) == without_scheme(uri);
            let known = if is_same { uri } else { known };
            if (is_same || !is_there(known)) && added.insert(known) {
                documents.push((known.to_string(), text.to_string()));
            }
        }
    }
    documents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_schema::read::parse::parse;

    #[test]
    fn all_are_json_under_their_own_uri() {
        for (uri, text) in all() {
            let document = parse(text, &[], text.len()).expect("JSON");
            let entries = document.entries(document.root()).expect("an object");
            let id = entries.get("$id").or(entries.get("id")).expect("an identifier");
            assert_eq!(document.name(*id).trim_end_matches('#'), uri);
            assert!(has(uri) && draft_of(uri).is_some());
        }
        assert_eq!(all().count(), 19);
        for uri in ["https://json-schema.org/draft-07/schema", "http://json-schema.org/draft/2020-12/meta/core"] {
            assert!(has(uri), "{uri}");
        }
        for uri in
            ["https://json-schema.org/draft-07/schem", "json-schema.org/draft-07/schema", "http://a.example/schema"]
        {
            assert!(!has(uri), "{uri}");
        }
    }

    #[test]
    fn documents_come_with_those_of_their_draft() {
        let uris = |wanted: &[&str], there: &[&str]| -> Vec<String> {
            let documents = documents(wanted.iter().copied(), |uri| there.contains(&uri));
            documents.into_iter().map(|(uri, _)| uri).collect()
        };
        assert_eq!(uris(&["http://json-schema.org/draft-07/schema"], &[]), ["http://json-schema.org/draft-07/schema"]);
        assert_eq!(
            uris(&["https://json-schema.org/draft-04/schema"], &[]),
            ["https://json-schema.org/draft-04/schema"]
        );
        let core = "https://json-schema.org/draft/2020-12/meta/core";
        assert_eq!(uris(&[core], &[]).len(), 9);
        let others = uris(&[core], &["https://json-schema.org/draft/2020-12/schema"]);
        assert!(others.len() == 8 && others.iter().any(|uri| uri == core));
    }
}
