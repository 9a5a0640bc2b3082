//! Elements that must differ and are counted, where values may run out: counters notice that, too.
//!
//! Values are sorted into classes by everything that is asked of some element: of one place, or of those that
//! `contains` counts. A class has all its values in common with each of these conditions, or none. So what may still
//! come hangs on how many elements each class has, and of a class with `n` values at most `n` may come: one more
//! counter, unless one that is there says so.

use stencilm_regex::Cardinality;

use super::arrays::{Asked, MAX_CONTAINS, MAX_ELEMENT_CHOICES, opposite};
use super::explain::Branch;
use super::lowering::Lowering;
use super::value_counts::ValueCounts;
use crate::error::GrammarError;
use crate::ir::grammar::{ArraySurface, Element, Items, NodeId, Repeats};
use crate::ir::key_space::BEYOND_ANY_TEXT;
use crate::json::surface::Surface;
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::merged::{Clash, with};
use crate::json_schema::read::schema::SchemaId;

/// Values that are equivalent for all requirements on elements.
struct ValueClass {
    terms: Vec<Term>,
    /// For each different requirement on a position, whether these values meet it.
    bases: Vec<bool>,
    /// The `contains` conditions that these values match.
    rules: u32,
    count: Cardinality,
}

impl ValueClass {
    /// The number of values, if it's small enough to be reached in an array.
    fn most(&self) -> Option<u32> {
        match self.count {
            Cardinality::Finite(count) if count < BEYOND_ANY_TEXT => Some(count as u32),
            _ => None,
        }
    }
}

/// The bounds of all counters, and the counters that each class counts for.
struct Counters {
    bounds: Vec<(u32, Option<u32>)>,
    of_classes: Vec<u32>,
}

impl Lowering<'_> {
    /// An array whose elements differ, with counters that show when values are exhausted; `None` if they aren't needed
    /// or aren't possible.
    pub(super) fn counted_by_class(
        &mut self,
        at: SchemaId,
        asked: &Asked,
        depth: u32,
    ) -> Result<Option<(NodeId, Branch)>, GrammarError> {
        let is_compared_alone = asked.contains.is_empty() && (asked.prefix.is_empty() || asked.min < 2);
        if is_compared_alone || asked.contains.len() > MAX_CONTAINS {
            return Ok(None);
        }
        let mut bases: Vec<&[Term]> = Vec::new();
        for place in asked.places_from(0) {
            if !bases.contains(&asked.element(place)) {
                bases.push(asked.element(place));
            }
        }
        let Some(classes) = self.value_classes(asked, &bases)? else { return Ok(None) };
        if classes.iter().all(|class| class.count == Cardinality::Infinite) {
            return Ok(None);
        }
        let Some(counters) = counters(asked, &bases, &classes) else { return Ok(None) };
        let mut nodes = Vec::with_capacity(classes.len());
        for class in &classes {
            nodes.push(self.value(&class.terms, depth + 1)?);
        }
        let items = self.items_of_classes(asked, &bases, &classes, (counters, &nodes), depth);
        if items.check_counters().is_err() {
            return Ok(None);
        }
        let branch = self.missing_elements(&asked.contains, &items.prefix, &items.rest);
        if matches!(branch, Branch::Impossible(_)) {
            return Ok(Some((self.builder.choice(&[]), branch)));
        }
        let are_enough = items.contains.iter().all(|&(min, max)| max.is_none_or(|max| min <= max));
        if are_enough && items.can_complete(0, &vec![0; items.contains.len()], |_| true) {
            return Ok(Some((self.builder.array(items), branch)));
        }
        let message = "uniqueItems allows each value once, and there are fewer values than elements that are asked for";
        let clash = Clash { place: self.schemas.place(at), message: message.into() };
        Ok(Some((self.builder.choice(&[]), Branch::Impossible(vec![clash]))))
    }

    /// The classes with at least one value; `None` if there are too many classes, or if the size of one isn't known.
    fn value_classes(&mut self, asked: &Asked, bases: &[&[Term]]) -> Result<Option<Vec<ValueClass>>, GrammarError> {
        let mut choices: Vec<(Vec<Term>, Vec<bool>)> = vec![(Vec::new(), Vec::new())];
        let rules = asked.contains.iter().map(|rule| &rule.terms[..]);
        for (index, condition) in bases.iter().copied().chain(rules).enumerate() {
            let mut next = Vec::with_capacity(2 * choices.len());
            for (terms, met) in choices {
                let meets = |is_met: bool| [&met[..], &[is_met]].concat();
                next.push((condition.iter().copied().fold(terms.clone(), with), meets(true)));
                // If there is only one base, all values meet it; all values meet an empty condition, too.
                if (index == 0 && bases.len() == 1) || condition.is_empty() {
                    continue;
                }
                let Some(opposite) = opposite(condition) else { return Ok(None) };
                next.push((with(terms, opposite), meets(false)));
            }
            choices = Vec::with_capacity(next.len());
            for (terms, met) in next {
                let is_at_no_place = index + 1 >= bases.len() && !met[..bases.len()].contains(&true);
                if is_at_no_place || self.is_hopeless_class(&terms)? {
                    continue;
                }
                choices.push((terms, met));
            }
            if choices.len() > MAX_ELEMENT_CHOICES {
                return Ok(None);
            }
        }
        let (mut counts, mut classes) = (ValueCounts::default(), Vec::with_capacity(choices.len()));
        for (terms, met) in choices {
            match self.number_of_values(&terms, &mut counts, 0)? {
                Cardinality::Finite(0) => {}
                Cardinality::Unknown => return Ok(None),
                count => {
                    let (bases, rules) = met.split_at(bases.len());
                    let rules = rules.iter().rev().fold(0, |bits, &is_met| bits << 1 | u32::from(is_met));
                    classes.push(ValueClass { terms, bases: bases.to_vec(), rules, count });
                }
            }
        }
        Ok(Some(classes))
    }

    /// Whether it's immediately certain that no value meets all these terms.
    fn is_hopeless_class(&mut self, terms: &[Term]) -> Result<bool, GrammarError> {
        let Some(alternatives) = self.alternatives_if_few(terms)? else { return Ok(false) };
        for alternative in alternatives.iter() {
            if !self.normal.is_empty(alternative, 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn items_of_classes(
        &mut self,
        asked: &Asked,
        bases: &[&[Term]],
        classes: &[ValueClass],
        (counters, nodes): (Counters, &[NodeId]),
        depth: u32,
    ) -> Items {
        let element_choices = |place: usize| -> Box<[Element]> {
            let base = bases.iter().position(|&base| base == asked.element(place));
            let early = asked.contains.iter().enumerate().filter(|(_, rule)| rule.from > place);
            let early = early.fold(0, |bits, (rule, _)| bits | 1 << rule);
            let of_place = classes.iter().enumerate().filter(|(_, class)| base.is_some_and(|base| class.bases[base]));
            let element = |(index, _)| Element { value: nodes[index], counts: counters.of_classes[index] & !early };
            of_place.map(element).collect()
        };
        let Asked { min, max, .. } = *asked;
        let places = asked.contains.iter().map(|rule| rule.from).chain([asked.prefix.len()]).max().unwrap_or(0);
        let places = max.map_or(places, |max| places.min(max as usize));
        let prefix = (0..places).map(element_choices).collect();
        let has_rest = max.is_none_or(|max| max as usize > places);
        let rest = if has_rest { element_choices(usize::MAX) } else { Box::default() };
        let Surface { empty, open, item, close, .. } = self.surfaces.array(&mut self.builder.exprs, depth);
        let surface = ArraySurface { empty, open, item, close };
        let contains = counters.bounds;
        Items { prefix, rest, min, max, contains, repeats: Repeats::Never { counted: true }, surface }
    }
}

/// Counters such that no class gets more elements than it has values; `None` if there are too many.
fn counters(asked: &Asked, bases: &[&[Term]], classes: &[ValueClass]) -> Option<Counters> {
    let mut bounds: Vec<(u32, Option<u32>)> = asked.contains.iter().map(|rule| (rule.min, rule.max)).collect();
    let mut of_classes: Vec<u32> = classes.iter().map(|class| class.rules).collect();
    let is_at = |class: &ValueClass, place: usize| {
        bases.iter().position(|&base| base == asked.element(place)).is_some_and(|base| class.bases[base])
    };
    let has_rest = asked.max.is_none_or(|max| max as usize > asked.prefix.len());
    for (index, class) in classes.iter().enumerate() {
        let Some(most) = class.most() else { continue };
        let leading = (0..asked.prefix.len()).filter(|&place| is_at(class, place)).count();
        let is_leading = !(has_rest && is_at(class, usize::MAX)) && leading <= most as usize;
        if is_leading || asked.max.is_some_and(|max| max <= most) {
            continue;
        }
        let counts_always = |rule: &usize| class.rules & 1 << rule != 0 && asked.contains[*rule].from == 0;
        let always: Vec<usize> = (0..asked.contains.len()).filter(counts_always).collect();
        if always.iter().any(|&rule| bounds[rule].1.is_some_and(|max| max <= most)) {
            continue;
        }
        let is_alone = |rule: &usize| classes.iter().filter(|class| class.rules & 1 << rule != 0).count() == 1;
        match always.iter().copied().find(is_alone) {
            Some(rule) => bounds[rule].1 = Some(most),
            None => {
                of_classes[index] |= 1u32.checked_shl(bounds.len() as u32)?;
                bounds.push((0, Some(most)));
            }
        }
    }
    (bounds.len() <= MAX_CONTAINS).then_some(Counters { bounds, of_classes })
}
