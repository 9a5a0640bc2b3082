//! Arrays: elements one by one, then a counted run of equal ones; with counters where some must match, in a node of their
//! own.

use super::atoms::Term;
use super::explain::{Branch, Need, What};
use super::lower::Lowering;
use super::merge::{Clash, Contains, Merged, merge, with};
use super::schema::{SchemaId, Types};
use crate::error::{ErrorKind, GrammarError};
use crate::grammar::{ArraySurface, Element, Items, Node, NodeId, Surface};

/// Prefix elements between two rules: keeps the nodes of a long tuple shallow.
const ELEMENTS_PER_RULE: usize = 16;
/// Most `contains` of one array: every set of them that an element may match is an alternative for it.
const MAX_CONTAINS: usize = 5;

impl Lowering<'_> {
    /// The node of an array, `depth` containers deep.
    pub(super) fn array(
        &mut self,
        merged: &Merged,
        at: SchemaId,
        depth: u32,
    ) -> Result<(NodeId, Branch), GrammarError> {
        let min = merged.min_items;
        let closed = merged.closed_items.then_some(merged.prefix.len() as u32);
        let max = match (merged.max_items, closed) {
            (Some(max), Some(closed)) => Some(max.min(closed)),
            (max, closed) => max.or(closed),
        };
        if max.is_some_and(|max| max < min) {
            let message = format!("minItems {min} asks for more elements than strict mode leaves");
            let clash = Clash { place: self.schemas.place(at), message };
            return Ok((self.builder.choice(&[]), Branch::Impossible(vec![clash])));
        }
        if !merged.contains.is_empty() || merged.unique.is_some() {
            return self.counted(merged, min, max, at, depth);
        }
        let surface = self.surfaces.array(&mut self.builder.exprs, depth);
        let mut ways = Vec::new();
        let mut needs = Vec::new();
        if min == 0 {
            ways.push(self.lexeme(surface.empty));
        }
        if max != Some(0) {
            let mut prefix = Vec::with_capacity(merged.prefix.len());
            for all in merged.prefix.iter().take(max.map_or(usize::MAX, |max| max as usize)) {
                prefix.push(self.value(all, depth + 1)?);
            }
            let has_rest = max.is_none_or(|max| max as usize > prefix.len());
            let rest = if has_rest { Some(self.value(&merged.rest, depth + 1)?) } else { None };
            for (place, &node) in prefix.iter().enumerate().take(min as usize) {
                needs.push(Need { node, at, what: What::Element(place) });
            }
            if let Some(node) = rest.filter(|_| min as usize > prefix.len()) {
                needs.push(Need { node, at, what: What::Element(prefix.len()) });
            }
            ways.push(self.elements(&surface, &prefix, rest, min, max));
        }
        let branch = if min == 0 { Branch::Possible } else { Branch::Needs(needs) };
        let node = if let [only] = *ways { only } else { self.builder.choice(&ways) };
        Ok((node, branch))
    }

    /// An array with at least one element: the bracket, elements one by one, then a counted run of equal ones.
    fn elements(
        &mut self,
        surface: &Surface,
        prefix: &[NodeId],
        rest: Option<NodeId>,
        min: u32,
        max: Option<u32>,
    ) -> NodeId {
        let open = self.lexeme(surface.open);
        let separator = self.lexeme(surface.item);
        let close = self.lexeme(surface.close);
        let first_is_rest = prefix.is_empty();
        let nothing = self.builder.sequence(&[]);
        let read = prefix.len().max(1) as u32;
        // What follows the last element of the prefix, then backwards: what follows each one before it.
        let mut tail = match rest {
            Some(rest) if max.is_none_or(|max| max > read) => {
                let more = self.builder.sequence(&[separator, rest]);
                self.builder.repeat(more, min.saturating_sub(read), max.map(|max| max - read))
            }
            _ => nothing,
        };
        for (place, &element) in prefix.iter().enumerate().skip(1).rev() {
            let more = self.builder.sequence(&[separator, element, tail]);
            tail = if place as u32 >= min { self.builder.choice(&[nothing, more]) } else { more };
            if place % ELEMENTS_PER_RULE == 0 {
                let rule = self.builder.declare_rule("tuple");
                self.builder.define_rule(rule, tail);
                tail = self.builder.node(Node::Rule(rule));
            }
        }
        let first = match (first_is_rest, rest) {
            (true, Some(rest)) => rest,
            _ => prefix.first().copied().unwrap_or(nothing),
        };
        self.builder.sequence(&[open, first, tail, close])
    }

    /// An array whose elements are counted by what they match, or compared with each other.
    fn counted(
        &mut self,
        merged: &Merged,
        min: u32,
        max: Option<u32>,
        at: SchemaId,
        depth: u32,
    ) -> Result<(NodeId, Branch), GrammarError> {
        let mut rules: Vec<&Contains> = merged.contains.iter().collect();
        if rules.len() > MAX_CONTAINS {
            let message = format!(
                "contains: {} of them speak of one array and at most {MAX_CONTAINS} are told apart; join some of them",
                rules.len()
            );
            self.relax_error(at, GrammarError::new(ErrorKind::Limit, self.schemas.place(at), message))?;
            rules.truncate(MAX_CONTAINS);
        }
        if let Some(clash) = self.too_few_values(merged, min)? {
            return Ok((self.builder.choice(&[]), Branch::Impossible(vec![clash])));
        }
        let places = rules.iter().map(|rule| rule.from).chain([merged.prefix.len()]).max().unwrap_or(0);
        let places = max.map_or(places, |max| places.min(max as usize));
        let mut prefix = Vec::with_capacity(places);
        for place in 0..places {
            prefix.push(self.element_ways(merged.element(place), &rules, place, depth)?);
        }
        let rest = match max.is_some_and(|max| max as usize <= places) {
            true => Box::default(),
            false => self.element_ways(&merged.rest, &rules, usize::MAX, depth)?,
        };
        let Surface { empty, open, item, close, .. } = self.surfaces.array(&mut self.builder.exprs, depth);
        let contains = rules.iter().map(|rule| (rule.min, rule.max)).collect();
        let unique = merged.unique.is_some();
        let surface = ArraySurface { empty, open, item, close };
        let branch = self.missing_elements(&rules, &prefix, &rest);
        let node = self.builder.array(Items { prefix, rest, min, max, contains, unique, surface });
        Ok((node, branch))
    }

    /// The alternatives of an element: for every set of rules, those that match exactly them, as far as that matters.
    fn element_ways(
        &mut self,
        base: &[Term],
        rules: &[&Contains],
        place: usize,
        depth: u32,
    ) -> Result<Box<[Element]>, GrammarError> {
        let mut ways: Vec<(Vec<Term>, u32)> = vec![(base.to_vec(), 0)];
        for (bit, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.from <= place) {
            let mut next = Vec::with_capacity(2 * ways.len());
            for (all, counts) in ways {
                let matching = rule.terms.iter().copied().fold(all.clone(), with);
                // Where there is no greatest number, an element that matches need not be counted.
                let failing = match (rule.max, &*rule.terms) {
                    (Some(_), &[Term::Holds(schema)]) => with(all, Term::Fails(schema)),
                    (Some(_), &[Term::Fails(schema)]) => with(all, Term::Holds(schema)),
                    _ => all,
                };
                next.push((matching, counts | 1 << bit));
                next.push((failing, counts));
            }
            ways = next;
        }
        let mut elements: Vec<Element> = Vec::with_capacity(ways.len());
        for (all, counts) in ways {
            if self.is_hopeless(&all)? {
                continue;
            }
            let value = self.value(&all, depth + 1)?;
            elements.push(Element { value, counts });
        }
        Ok(elements.into())
    }

    /// Whether it is certain at first sight that no value meets all these terms.
    fn is_hopeless(&mut self, all: &[Term]) -> Result<bool, GrammarError> {
        let alternatives = self.alternatives_or_more(all)?;
        for alternative in alternatives.iter() {
            if !self.normal.is_empty(alternative, 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where elements must match and no element can.
    fn missing_elements(&self, rules: &[&Contains], prefix: &[Box<[Element]>], rest: &[Element]) -> Branch {
        for (bit, rule) in rules.iter().enumerate() {
            let counts = |element: &Element| element.counts & 1 << bit != 0;
            if rule.min > 0 && !rest.iter().any(counts) && !prefix.iter().flatten().any(counts) {
                let message = "an element must match what contains asks for, and none can".to_string();
                return Branch::Impossible(vec![Clash { place: self.schemas.place(rule.at), message }]);
            }
        }
        Branch::Possible
    }

    /// Where more elements must differ than there are values.
    fn too_few_values(&mut self, merged: &Merged, min: u32) -> Result<Option<Clash>, GrammarError> {
        let Some(at) = merged.unique.filter(|_| min as usize > merged.prefix.len().max(1)) else { return Ok(None) };
        let mut count = 0;
        for alternative in self.alternatives_or_more(&merged.rest)?.iter() {
            let inner = merge(&self.normal, alternative);
            count += match &inner.values {
                Some(values) => values.value.len(),
                None if inner.types.without(Types::NULL.or(Types::BOOLEAN)).is_empty() => {
                    usize::from(inner.types.meets(Types::NULL)) + 2 * usize::from(inner.types.meets(Types::BOOLEAN))
                }
                None => return Ok(None),
            };
        }
        Ok((count + merged.prefix.len() < min as usize).then(|| {
            let message = format!(
                "uniqueItems allows each value once, and there are fewer values than the {min} elements that minItems asks for"
            );
            Clash { place: self.schemas.place(at), message }
        }))
    }
}
