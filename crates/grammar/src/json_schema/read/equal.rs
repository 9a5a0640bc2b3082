//! Which values of a document are equal, as numbers: lists of values are compared with each other again and again.

use super::canonical::canonical;
use super::document::{Document, JsonId, Numbers, ValueId};

impl Document<'_> {
    /// A number that is the same for equal values, with the equality of JSON Schema: numbers are compared by value,
    /// objects in any order.
    pub(crate) fn value_id(&self, value: JsonId) -> ValueId {
        let Numbers { by_value, by_text } = &mut *self.compared.0.borrow_mut();
        if by_value.is_empty() {
            by_value.resize(self.len(), None);
        }
        *by_value[value.0 as usize].get_or_insert_with(|| {
            let next = ValueId(by_text.len() as u32);
            *by_text.entry(canonical(self, value)).or_insert(next)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::json_schema::read::document::Json;
    use crate::json_schema::read::parse::parse;

    #[test]
    fn equal_values_share_a_number() {
        let text = r#"[1, 1.0, 10e-1, "1", {"a": [1], "b": 2}, {"b": 2.0, "a": [1.0]}, [1, 2], [2, 1], "\u0061", "a", null, false]"#;
        let document = parse(text, &[], text.len()).unwrap();
        let Json::Array(items) = document.get(document.root()) else { panic!("an array was parsed") };
        let values: Vec<_> = items.iter().map(|&value| document.value_id(value)).collect();
        let expected = [0, 0, 0, 3, 4, 4, 6, 7, 8, 8, 10, 11];
        for (place, &value) in values.iter().enumerate() {
            for (other_place, &other) in values.iter().enumerate() {
                assert_eq!(value == other, expected[place] == expected[other_place], "{place} and {other_place}");
            }
        }
    }
}
