//! Values that are the same in many grammars: each has a structural key, the same in all grammars of a vocabulary.
//!
//! Nearly every object of a schema may have members that the schema does not mention, with any value, and nearly every
//! schema has strings and numbers. What tokens do within such a value is the same everywhere, so it is worth computing
//! once for all grammars. The key is the number of a description of everything that can be reached from a node: equal
//! descriptions have one.

use rustc_hash::FxHashMap;
use stencilm_grammar::{ArraySurface, ItemsId, KeySpace, MembersId, Node, NodeId, Surface};
use stencilm_regex::ExprId;
use stencilm_support::{Extension, MANY, Map, SEARCHED};

use crate::machine::layout::Machine;

/// The structural key of a value: a number that the grammars of a vocabulary share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct StructuralKey(u32);

/// The descriptions so far, with their keys.
#[derive(Default)]
pub(crate) struct StructuralKeys {
    keys: FxHashMap<Box<[u32]>, StructuralKey>,
}

impl StructuralKeys {
    fn key_of(&mut self, description: Vec<u32>) -> Option<StructuralKey> {
        let next = StructuralKey(self.keys.len() as u32);
        match self.keys.get(&description[..]) {
            Some(&known) => Some(known),
            None if self.keys.len() >= SEARCHED => None,
            None => {
                self.keys.insert(description.into(), next);
                Some(next)
            }
        }
    }
}

impl Extension for StructuralKeys {
    fn memory_bytes(&self) -> usize {
        self.keys.keys().map(|description| 32 + description.len() * 4).sum()
    }
}

/// The structural keys of the values of one grammar; `None` for a value without one.
#[derive(Default)]
struct KeysOfValues(Map<NodeId, Option<StructuralKey>>);

impl Extension for KeysOfValues {
    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

impl Machine {
    /// The structural key of a value; `None` where the value is large or depends on something that only this grammar
    /// has.
    pub(crate) fn structural_key(&mut self, keys: &mut StructuralKeys, value: NodeId) -> Option<StructuralKey> {
        if let Some(&known) = self.extensions.get::<KeysOfValues>().0.get(&value) {
            return known;
        }
        let key = Description::of(self, value).and_then(|words| keys.key_of(words));
        self.extensions.get::<KeysOfValues>().0.insert(value, key);
        key
    }
}

/// A description under construction. Nodes are numbered as they are reached, and refer to each other by these numbers.
struct Description<'a> {
    machine: &'a Machine,
    nodes: Vec<NodeId>,
    words: Vec<u32>,
    /// Whether everything so far can be described.
    fits: bool,
}

impl Description<'_> {
    fn of(machine: &Machine, value: NodeId) -> Option<Vec<u32>> {
        let mut description = Description { machine, nodes: vec![value], words: Vec::with_capacity(64), fits: true };
        let mut described = 0;
        while described < description.nodes.len() {
            description.describe(description.nodes[described]);
            described += 1;
            if !description.fits || description.words.len() > MANY {
                return None;
            }
        }
        Some(description.words)
    }

    fn describe(&mut self, id: NodeId) {
        let grammar = self.machine.grammar().clone();
        match grammar.node(id) {
            Node::Lexeme(expr) => {
                self.words.push(0);
                self.expr(*expr);
            }
            Node::Sequence(parts) => self.list(1, parts.iter().copied()),
            Node::Choice(parts) => self.list(2, parts.iter().copied()),
            &Node::Repeat { body, min, max } => {
                self.words.extend([3, min]);
                self.bound(max);
                self.node(body);
            }
            Node::Rule(rule) => {
                self.words.push(4);
                self.node(grammar.rule(*rule).body);
            }
            Node::Members(members) => self.members(*members),
            Node::Items(items) => self.items(*items),
            Node::Token(_) | Node::Marked { .. } => self.fits = false,
        }
    }

    fn node(&mut self, id: NodeId) {
        let number = self.nodes.iter().position(|&known| known == id).unwrap_or_else(|| {
            self.nodes.push(id);
            self.nodes.len() - 1
        });
        self.words.push(number as u32);
    }

    fn list(&mut self, kind: u32, parts: impl ExactSizeIterator<Item = NodeId>) {
        self.words.extend([kind, parts.len() as u32]);
        for part in parts.take(MANY) {
            self.node(part);
        }
    }

    /// An expression by its number, if all grammars share it: only then does the number mean the same in each.
    fn expr(&mut self, expr: ExprId) {
        self.fits &= self.machine.grammar().exprs().is_shared(expr);
        self.words.push(expr.index() as u32);
    }

    fn bound(&mut self, bound: Option<u32>) {
        self.words.extend([u32::from(bound.is_some()), bound.unwrap_or(0)]);
    }

    fn members(&mut self, id: MembersId) {
        let grammar = self.machine.grammar().clone();
        let members = grammar.members(id);
        // Names are strings of one grammar, and two schemas seldom have objects with equal names.
        self.fits &= members.declared.is_empty()
            && members.additional.iter().all(|additional| additional.reserved.is_empty() && additional.last.is_none());
        self.words.extend([5, members.additional.len() as u32, members.min]);
        self.bound(members.max);
        let Surface { empty, open, colon, item, close } = members.surface;
        [empty, open, colon, item, close].into_iter().for_each(|expr| self.expr(expr));
        for additional in &members.additional {
            self.expr(additional.key);
            self.words.extend(match additional.space {
                KeySpace::Infinite => [0, 0],
                KeySpace::LocallyFinite => [1, 0],
                KeySpace::Finite(count) => [2, count],
            });
            self.node(additional.value);
            self.words.push(u32::from(additional.some.is_some()));
            additional.some.into_iter().for_each(|some| self.node(some));
        }
    }

    fn items(&mut self, id: ItemsId) {
        let grammar = self.machine.grammar().clone();
        let items = grammar.items(id);
        // The elements that new ones are compared with are in the text, which a description cannot hold.
        self.fits &= !items.compares() && items.prefix.len() < MANY;
        self.words.extend([6, items.prefix.len() as u32, items.contains.len() as u32, items.min]);
        self.bound(items.max);
        let ArraySurface { empty, open, item, close } = items.surface;
        [empty, open, item, close].into_iter().for_each(|expr| self.expr(expr));
        for &(least, most) in &items.contains {
            self.words.push(least);
            self.bound(most);
        }
        for place in items.prefix.iter().chain([&items.rest]).take(MANY) {
            self.words.push(place.len() as u32);
            for element in place.iter().take(MANY) {
                self.words.push(element.counts);
                self.node(element.value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stencilm_grammar::{JsonSchemaOptions, Members, from_json_schema};

    use super::*;
    use crate::lexeme::single_tokens::TokenEdges;
    use crate::shared::Vocabulary;

    /// The structural key of the values of additional members.
    fn key_of(
        keys: &mut StructuralKeys,
        known: &str,
        value: &str,
        options: &JsonSchemaOptions,
    ) -> Option<StructuralKey> {
        let schema = format!(r#"{{"type": "object", "properties": {{{known}}}, "additionalProperties": {value}}}"#);
        let grammar = Arc::new(from_json_schema(&schema, options).expect("the schema is fine"));
        let vocabulary = Vocabulary::new(&[Some("a")], 1, &[], &[]).expect("one token");
        let tokens = Arc::new(TokenEdges::new(&grammar, &vocabulary).expect("no tokens are named"));
        let mut machine = Machine::new(grammar.clone(), tokens).expect("no marks are nested");
        let named = |members: &Members| members.declared.iter().any(|known| ["a", "b"].contains(&&*known.name));
        let object = grammar.all_members().iter().position(named);
        let value = grammar.all_members()[object.expect("the object is there")].additional[0].value;
        machine.structural_key(keys, value)
    }

    #[test]
    fn structural_keys_are_the_same_in_all_grammars_where_the_values_are() {
        let mut keys = StructuralKeys::default();
        let additional = JsonSchemaOptions::default();
        let any_order = JsonSchemaOptions { any_order: true, ..additional.clone() };
        let narrow = JsonSchemaOptions { max_whitespace: Some(3), ..additional.clone() };
        let any = key_of(&mut keys, r#""a": true"#, "{}", &any_order);
        let text = key_of(&mut keys, r#""a": true"#, r#"{"type": "string"}"#, &additional);
        assert!(any.is_some() && text.is_some() && any != text);
        for known in [r#""b": true"#, r#""a": true, "b": {"type": "integer"}"#] {
            assert_eq!(key_of(&mut keys, known, "{}", &any_order), any, "{known}");
            assert_eq!(key_of(&mut keys, known, r#"{"type": "string"}"#, &additional), text, "{known}");
        }
        for (value, options) in [
            (r#"{"type": "array"}"#, &additional),
            (r#"{"type": "array", "minItems": 2}"#, &additional),
            (r#"{"type": "array", "items": {"type": "string"}}"#, &additional),
            ("{}", &narrow),
        ] {
            let other = key_of(&mut keys, r#""a": true"#, value, options);
            assert!(other != any && other != text, "{value}");
            assert_eq!(key_of(&mut keys, r#""b": true"#, value, options), other, "{value}");
        }
        for own in [r#"{"const": "red"}"#, r#"{"type": "object", "properties": {"x": {}}}"#, r#"{"pattern": "^x+y"}"#] {
            assert_eq!(key_of(&mut keys, r#""a": true"#, own, &additional), None, "{own}");
        }
    }
}
