//! A JSON value as a text that is the same for equal values: keys sorted, numbers by value.

use rustc_hash::FxHashMap;

use super::decimal::Decimal;
use super::document::{Document, Json, JsonId};

/// A text that is the same for equal values and for no others: keys sorted, numbers by value.
pub(super) fn canonical(document: &Document, value: JsonId) -> String {
    let mut texts: FxHashMap<JsonId, String> = FxHashMap::default();
    for id in document.inside(value) {
        let mut take = |child: &JsonId| texts.remove(child).unwrap_or_default();
        let text = match document.get(id) {
            Json::Null => "null".into(),
            Json::Bool(value) => value.to_string(),
            Json::Number(text) => Decimal::parse(text).map_or_else(|| text.to_string(), |number| format!("{number:?}")),
            Json::String(text) => format!("{text:?}"),
            Json::Array(items) => format!("[{}]", items.iter().map(&mut take).collect::<Vec<_>>().join(",")),
            Json::Object(entries) => {
                let mut members: Vec<String> =
                    entries.iter().map(|(key, value)| format!("{key:?}:{}", take(value))).collect();
                members.sort_unstable();
                format!("{{{}}}", members.join(","))
            }
        };
        texts.insert(id, text);
    }
    texts.remove(&value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_schema::parse::parse;

    #[test]
    fn canonical_texts_compare_by_value() {
        let canonical = |text: &str| {
            let document = parse(text, 1_000).unwrap();
            canonical(&document, document.root())
        };
        for (a, b) in [("1", "1.0"), ("[1,{\"a\":2,\"b\":[]}]", "[10e-1, {\"b\": [], \"a\": 2.0}]"), ("-0", "0")] {
            assert_eq!(canonical(a), canonical(b), "{a} = {b}");
        }
        for (a, b) in
            [("1", "\"1\""), ("[1,2]", "[2,1]"), ("{}", "[]"), ("\"a\"", "\"A\""), ("false", "0"), ("1", "-1")]
        {
            assert_ne!(canonical(a), canonical(b), "{a} and {b}");
        }
    }
}
