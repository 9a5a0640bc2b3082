//! Arrays: elements one by one, then a counted run of equal ones; with counters where some must match, in a node of
//! their own.

use stencilm_regex::Cardinality;

use super::explain::{Branch, Need, What};
use super::lowering::Lowering;
use super::value_counts::ValueCounts;
use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{ArraySurface, Element, Items, Node, NodeId, Repeats};
use crate::json::surface::Surface;
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::merge::merge;
use crate::json_schema::normal_form::merged::{Clash, Contains, Merged, with};
use crate::json_schema::read::document::JsonId;
use crate::json_schema::read::schema::{Keyword, SchemaId};

/// The number of prefix elements per rule: keeps the nodes of a long tuple shallow.
const ELEMENTS_PER_RULE: usize = 16;
/// With at most this many `contains` conditions without a greatest number, an element that matches one may also be read
/// as one that doesn't. That saves negations, but an array has as many readings as there are sets of elements.
const FEW_CONTAINS: usize = 5;
/// The greatest number of `contains` conditions of one array.
pub(super) const MAX_CONTAINS: usize = 32;
/// The greatest number of alternatives for one element, one for each set of conditions that it may count for.
pub(super) const MAX_ELEMENT_CHOICES: usize = 64;

/// The greatest number of element values that are tried one by one as the value that occurs twice.
const MAX_REPEATED: usize = 64;
/// The greatest number of element values that are counted separately so that none occurs twice: dividing elements among
/// them tries one choice for each of their subsets.
const MAX_COUNTED: usize = 10;

/// Why a schema is refused that requires two equal elements but may leave no room for a second equal one.
const NO_ROOM_TO_REPEAT: &str = "that two elements are equal cannot be asked for where there is a greatest number of them, by maxItems \
     or since nothing may stand behind prefixItems, and they may have any of endlessly many values; leave one of the two out, or \
     list the values of elements in enum";

/// The requirements on an array, with the `contains` conditions that still have to be counted.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) prefix: Vec<Vec<Term>>,
    pub(super) rest: Vec<Term>,
    pub(super) contains: Vec<Contains>,
    pub(super) min: u32,
    pub(super) max: Option<u32>,
}

impl Asked {
    /// The requirements on the element at a position.
    pub(super) fn element(&self, place: usize) -> &[Term] {
        self.prefix.get(place).unwrap_or(&self.rest)
    }

    /// The positions, starting with the given one, that have different requirements; the last stands for all that
    /// follow.
    pub(super) fn places_from(&self, from: usize) -> std::ops::Range<usize> {
        let all = self.prefix.len() + 1;
        let end = self.max.map_or(all, |max| all.min(max as usize));
        from.min(self.prefix.len())..end
    }
}

/// The negation of terms, if a single term expresses it.
pub(super) fn opposite(terms: &[Term]) -> Option<Term> {
    match *terms {
        [Term::Holds(schema)] => Some(Term::Fails(schema)),
        [Term::Fails(schema)] => Some(Term::Holds(schema)),
        [Term::Among(list)] => Some(Term::Outside(list)),
        _ => None,
    }
}

impl Lowering<'_> {
    /// The node of an array, `depth` containers deep.
    pub(crate) fn array(
        &mut self,
        merged: &Merged,
        at: SchemaId,
        depth: u32,
    ) -> Result<(NodeId, Branch), GrammarError> {
        let closed = merged.closed_items.then_some(merged.prefix.len() as u32);
        let asked = Asked {
            prefix: merged.prefix.clone(),
            rest: merged.rest.clone(),
            contains: merged.contains.clone(),
            min: merged.min_items,
            max: merged.max_items.into_iter().chain(closed).min(),
        };
        match merged.repeated {
            Some(repeated) => self.repeated(merged, asked, repeated, depth),
            None => self.plain_or_counted(merged, asked, at, depth),
        }
    }

    /// An array in which two elements are equal. The structure of a grammar cannot express that, except where elements
    /// have few values: then one of these values occurs twice.
    fn repeated(
        &mut self,
        merged: &Merged,
        asked: Asked,
        at: SchemaId,
        depth: u32,
    ) -> Result<(NodeId, Branch), GrammarError> {
        if asked.max.is_some_and(|max| max < asked.min) {
            return self.plain_or_counted(merged, asked, at, depth);
        }
        // Where no value is possible, the better explanation is that two elements are required.
        if let Some(count) = self.count_values(&asked.rest)?.filter(|&count| count > 0)
            && count.saturating_add(asked.prefix.len() as u64) < u64::from(asked.min)
        {
            return self.plain_or_counted(merged, asked, at, depth);
        }
        let Some(values) = self.all_listed(&asked, MAX_REPEATED)? else {
            return match self.compared_for_a_repeat(&asked, at, depth)? {
                Ok(made) => Ok(made),
                Err(reason) => {
                    self.relax(at, "uniqueItems", reason)?;
                    self.plain_or_counted(merged, asked, at, depth)
                }
            };
        };
        let mut choices = Vec::with_capacity(values.len());
        let mut branches = Vec::with_capacity(values.len());
        for value in values {
            let mut asked = asked.clone();
            let terms = vec![Term::Among(self.normal.list(&[value]))];
            asked.contains.push(Contains { terms, from: 0, min: 2, max: None, at });
            let (choice, branch) = self.plain_or_counted(merged, asked, at, depth)?;
            if !matches!(branch, Branch::Impossible(_)) {
                choices.push(choice);
            }
            branches.push(branch);
        }
        let branch = match branches.iter().position(|branch| !matches!(branch, Branch::Impossible(_))) {
            Some(possible) => branches.swap_remove(possible),
            None => branches.pop().unwrap_or_else(|| {
                let message = "two elements must be equal, and no value is left for them".to_string();
                Branch::Impossible(vec![Clash { place: self.schemas.place(at), message }])
            }),
        };
        Ok((self.builder.choice(&choices), branch))
    }

    /// An array whose elements are compared until two are equal; the reason if that cannot decide it.
    fn compared_for_a_repeat(
        &mut self,
        asked: &Asked,
        at: SchemaId,
        depth: u32,
    ) -> Result<Result<(NodeId, Branch), &'static str>, GrammarError> {
        let asked = self.without_what_is_settled(asked.clone())?;
        if asked.max.is_some() || self.is_hopeless(&asked.rest)? {
            return Ok(Err(NO_ROOM_TO_REPEAT));
        }
        if self.notated.as_ref().is_some_and(|notated| notated.notation.quote.is_some()) {
            return Ok(Err("elements are not told apart in this style; leave it out of what is negated"));
        }
        let before = self.notated.as_mut().map(|notated| std::mem::replace(&mut notated.in_one_way, true));
        let items = self.items(&asked, Repeats::Required, at, depth);
        if let (Some(notated), Some(before)) = (&mut self.notated, before) {
            notated.in_one_way = before;
        }
        match items? {
            Some((items, branch)) if items.can_always_repeat(|_| true) && items.check_counters().is_ok() => {
                let node = self.builder.array(items);
                self.repeating.push((node, at));
                Ok(Ok((node, branch)))
            }
            _ => Ok(Err(
                "that two elements are equal cannot be asked for beside this bound on how many elements match, where they \
                         may have any of endlessly many values; leave one of the two out, or list the values of elements in enum",
            )),
        }
    }

    /// Refuses arrays in which two elements must be equal if it has turned out that no element can come after the first
    /// few, or relaxes that requirement. Every rule must be defined.
    pub(crate) fn settle_repeats(&mut self) -> Result<(), GrammarError> {
        let repeating = std::mem::take(&mut self.repeating);
        let nodes: Vec<NodeId> = repeating.iter().map(|&(node, _)| node).collect();
        for ((node, at), cannot) in repeating.into_iter().zip(self.builder.cannot_always_repeat(&nodes)?) {
            if cannot {
                self.relax(at, "uniqueItems", NO_ROOM_TO_REPEAT)?;
                self.builder.compare_no_elements(node);
            }
        }
        Ok(())
    }

    /// The values that elements may have, if all are listed and there are at most `most`.
    fn all_listed(&mut self, asked: &Asked, most: usize) -> Result<Option<Vec<JsonId>>, GrammarError> {
        let document = self.schemas.document;
        let mut all: Vec<JsonId> = Vec::new();
        for place in asked.places_from(0) {
            for alternative in self.alternatives_or_more(asked.element(place))?.iter() {
                let inner = merge(&self.normal, alternative);
                if inner.is_impossible() {
                    continue;
                }
                let Some(values) = &inner.values else { return Ok(None) };
                for &value in &values.value {
                    if all.iter().all(|&known| document.value_id(known) != document.value_id(value)) {
                        all.push(value);
                    }
                }
                if all.len() > most {
                    return Ok(None);
                }
            }
        }
        Ok(Some(all))
    }

    /// An array with counters for everything that must be counted.
    fn plain_or_counted(
        &mut self,
        merged: &Merged,
        asked: Asked,
        at: SchemaId,
        depth: u32,
    ) -> Result<(NodeId, Branch), GrammarError> {
        let asked = self.without_what_is_settled(asked)?;
        let Asked { min, max, .. } = asked;
        if let Some(max) = max.filter(|&max| max < min) {
            let message = format!("at least {min} elements are asked for, and at most {max} may be there");
            let clash = Clash { place: self.schemas.place(at), message };
            return Ok((self.builder.choice(&[]), Branch::Impossible(vec![clash])));
        }
        if !asked.contains.is_empty() || merged.unique.is_some() {
            return self.counted(merged, asked, at, depth);
        }
        let surface = self.surfaces.array(&mut self.builder.exprs, depth);
        let mut choices = Vec::new();
        let mut needs = Vec::new();
        if min == 0 {
            choices.push(self.lexeme(surface.empty));
        }
        if max != Some(0) {
            let mut prefix = Vec::with_capacity(asked.prefix.len());
            for all in asked.prefix.iter().take(max.map_or(usize::MAX, |max| max as usize)) {
                prefix.push(self.value(all, depth + 1)?);
            }
            let has_rest = max.is_none_or(|max| max as usize > prefix.len());
            let rest = if has_rest { Some(self.value(&asked.rest, depth + 1)?) } else { None };
            for (place, &node) in prefix.iter().enumerate().take(min as usize) {
                needs.push(Need::new(node, at, What::Element(place)));
            }
            if let Some(node) = rest.filter(|_| min as usize > prefix.len()) {
                needs.push(Need::new(node, at, What::Element(prefix.len())));
            }
            choices.push(self.elements(&surface, &prefix, rest, min, max));
        }
        let branch = if min == 0 { Branch::Possible } else { Branch::Needs(needs) };
        let node = if let [only] = *choices { only } else { self.builder.choice(&choices) };
        Ok((node, branch))
    }

    /// An array with at least one element: the bracket, the prefix elements, then a counted repetition of the rest.
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
        // Built backwards: starts with what follows the last prefix element, then adds what follows each one before it.
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

    /// Removes the `contains` conditions that every element meets or that none meets. Of the conditions that come from
    /// negations, these are nearly all.
    fn without_what_is_settled(&mut self, mut asked: Asked) -> Result<Asked, GrammarError> {
        for rule in std::mem::take(&mut asked.contains) {
            let Some(opposite) = opposite(&rule.terms) else {
                asked.contains.push(rule);
                continue;
            };
            let (from, places) = (rule.from as u32, asked.places_from(rule.from));
            if rule.max == Some(0) && rule.min == 0 {
                while asked.prefix.len() < rule.from {
                    asked.prefix.push(asked.rest.clone());
                }
                for place in asked.prefix.iter_mut().skip(rule.from).chain([&mut asked.rest]) {
                    *place = with(std::mem::take(place), opposite);
                }
                continue;
            }
            if self.is_hopeless_at(&asked, places.clone(), opposite)? {
                let least = if rule.min > 0 { from.saturating_add(rule.min) } else { 0 };
                asked.min = asked.min.max(least);
                asked.max = asked.max.into_iter().chain(rule.max.map(|max| from.saturating_add(max))).min();
            } else if rule.min > 0 || !self.is_hopeless_at(&asked, places, rule.terms[0])? {
                asked.contains.push(rule);
            }
        }
        Ok(asked)
    }

    /// Whether it's immediately certain that no element at these positions meets one more term.
    fn is_hopeless_at(
        &mut self,
        asked: &Asked,
        mut places: std::ops::Range<usize>,
        term: Term,
    ) -> Result<bool, GrammarError> {
        places.try_fold(true, |all, place| Ok(all && self.is_hopeless(&with(asked.element(place).to_vec(), term))?))
    }

    /// The requirement that no two elements are equal, as conditions on how many elements have each value. `None` if
    /// there are many values, or if comparing elements decides it.
    ///
    /// Comparing shows whether there can still be enough elements only if nothing else is required of their number, and
    /// every position has the same values. If there are few values, counters decide it, whatever else is counted.
    fn counted_by_value(&mut self, at: SchemaId, asked: &Asked) -> Result<Option<Asked>, GrammarError> {
        if asked.contains.is_empty() && (asked.prefix.is_empty() || asked.min < 2) {
            return Ok(None);
        }
        let Some(values) = self.all_listed(asked, MAX_COUNTED)? else { return Ok(None) };
        let mut asked = asked.clone();
        for value in values {
            let terms = vec![Term::Among(self.normal.list(&[value]))];
            asked.contains.push(Contains { terms, from: 0, min: 0, max: Some(1), at });
        }
        Ok(Some(asked))
    }

    /// An array whose elements are counted by what they match, or compared with each other.
    fn counted(
        &mut self,
        merged: &Merged,
        mut asked: Asked,
        holder: SchemaId,
        depth: u32,
    ) -> Result<(NodeId, Branch), GrammarError> {
        if let Some(clash) = self.too_few_values(merged, &asked)? {
            return Ok((self.builder.choice(&[]), Branch::Impossible(vec![clash])));
        }
        if let Some(at) = merged.unique
            && let Some(by_value) = self.counted_by_value(at, &asked)?
            && let Some((items, branch)) = self.items(&by_value, Repeats::Any, holder, depth)?
            && items.check_counters().is_ok()
        {
            return Ok((self.builder.array(items), branch));
        }
        if let Some(at) = merged.unique
            && let Some(made) = self.counted_by_class(at, &asked, depth)?
        {
            return Ok(made);
        }
        let repeats = if merged.unique.is_some() { Repeats::Never { counted: false } } else { Repeats::Any };
        loop {
            let error = match self.items(&asked, repeats, holder, depth)? {
                Some((items, branch)) => match items.check_counters() {
                    Ok(()) => return Ok((self.builder.array(items), branch)),
                    Err(error) => error.message,
                },
                None => "the elements of one array are of too many kinds to be counted together".into(),
            };
            // If relaxing is allowed, the last of several conditions is dropped.
            let Some(rule) = asked.contains.last() else { unreachable!("nothing is counted without a condition") };
            let keyword = self.counting_keyword(rule);
            let message = format!("{keyword}: {error}; say less of how many elements match, or join what is counted");
            self.relax_error(rule.at, GrammarError::new(ErrorKind::Limit, self.schemas.place(rule.at), message))?;
            asked.contains.pop();
        }
    }

    /// An array with all counters; `None` if there are too many kinds of elements. It may still exceed what can be
    /// decided.
    fn items(
        &mut self,
        asked: &Asked,
        repeats: Repeats,
        at: SchemaId,
        depth: u32,
    ) -> Result<Option<(Items, Branch)>, GrammarError> {
        let Some((prefix, rest)) = self.element_choices_at_places(asked, depth)? else { return Ok(None) };
        let Asked { min, max, .. } = *asked;
        let Surface { empty, open, item, close, .. } = self.surfaces.array(&mut self.builder.exprs, depth);
        let surface = ArraySurface { empty, open, item, close };
        let contains = asked.contains.iter().map(|rule| (rule.min, rule.max)).collect();
        let branch = match self.missing_elements(&asked.contains, &prefix, &rest) {
            Branch::Possible => None,
            impossible => Some(impossible),
        };
        let items = Items { prefix, rest, min, max, contains, repeats, surface };
        let branch = branch.unwrap_or_else(|| self.needed_elements(&items, &asked.contains, at));
        Ok(Some((items, branch)))
    }

    /// The keyword that a `contains` condition comes from.
    fn counting_keyword(&self, rule: &Contains) -> &'static str {
        let keywords = &self.schemas.get(rule.at).keywords;
        let has = |wanted: fn(&Keyword) -> bool| keywords.iter().any(wanted);
        if has(|keyword| matches!(keyword, Keyword::Contains { .. })) {
            "contains"
        } else if has(|keyword| matches!(keyword, Keyword::Items(_))) {
            "items"
        } else {
            "unevaluatedItems"
        }
    }

    /// The alternatives of the elements at each leading position and at all others; `None` if there are too many.
    #[expect(clippy::type_complexity, reason = "the two parts of an array")]
    fn element_choices_at_places(
        &mut self,
        asked: &Asked,
        depth: u32,
    ) -> Result<Option<(Vec<Box<[Element]>>, Box<[Element]>)>, GrammarError> {
        if asked.contains.len() > MAX_CONTAINS {
            return Ok(None);
        }
        let places = asked.contains.iter().map(|rule| rule.from).chain([asked.prefix.len()]).max().unwrap_or(0);
        let places = asked.max.map_or(places, |max| places.min(max as usize));
        let mut prefix = Vec::with_capacity(places);
        for place in 0..places {
            let Some(choices) = self.element_choices(asked.element(place), &asked.contains, place, depth)? else {
                return Ok(None);
            };
            prefix.push(choices);
        }
        let rest = match asked.max.is_some_and(|max| max as usize <= places) {
            true => Some(Box::default()),
            false => self.element_choices(&asked.rest, &asked.contains, usize::MAX, depth)?,
        };
        Ok(rest.map(|rest| (prefix, rest)))
    }

    /// The alternatives of an element: for every set of rules, the values that match exactly these, as far as that
    /// matters. `None` if there are too many.
    fn element_choices(
        &mut self,
        base: &[Term],
        rules: &[Contains],
        place: usize,
        depth: u32,
    ) -> Result<Option<Box<[Element]>>, GrammarError> {
        let mut choices: Vec<(Vec<Term>, u32)> = vec![(base.to_vec(), 0)];
        for (bit, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.from <= place) {
            let mut next = Vec::with_capacity(2 * choices.len());
            for (all, counts) in choices {
                let matching = rule.terms.iter().copied().fold(all.clone(), with);
                let failing = match opposite(&rule.terms) {
                    Some(opposite) if rule.max.is_some() || rules.len() > FEW_CONTAINS => with(all, opposite),
                    _ => all,
                };
                next.push((matching, counts | 1 << bit));
                next.push((failing, counts));
            }
            // Impossible combinations are dropped immediately: kinds that exclude each other leave only as many as
            // there are rules.
            let mut kept = Vec::with_capacity(next.len());
            for (all, counts) in next {
                if !self.is_hopeless(&all)? {
                    kept.push((all, counts));
                }
            }
            if kept.len() > MAX_ELEMENT_CHOICES {
                return Ok(None);
            }
            choices = kept;
        }
        let mut elements: Vec<Element> = Vec::with_capacity(choices.len());
        for (all, counts) in choices {
            if counts == 0 && self.is_hopeless(&all)? {
                continue;
            }
            let value = self.value(&all, depth + 1)?;
            elements.push(Element { value, counts });
        }
        Ok(Some(elements.into()))
    }

    /// Whether it's immediately certain that no value meets all these terms.
    fn is_hopeless(&mut self, all: &[Term]) -> Result<bool, GrammarError> {
        let alternatives = self.alternatives_or_more(all)?;
        for alternative in alternatives.iter() {
            if !self.normal.is_empty(alternative, 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The reason why nothing matches, if elements must match and no element can.
    pub(super) fn missing_elements(&self, rules: &[Contains], prefix: &[Box<[Element]>], rest: &[Element]) -> Branch {
        for (bit, rule) in rules.iter().enumerate() {
            let counts = |element: &Element| element.counts & 1 << bit != 0;
            if rule.min > 0 && !rest.iter().any(counts) && !prefix.iter().flatten().any(counts) {
                let message = "an element must match what contains asks for, and none can".to_string();
                return Branch::Impossible(vec![Clash { place: self.schemas.place(rule.at), message }]);
            }
        }
        Branch::Possible
    }

    /// The elements that an array must have.
    fn needed_elements(&self, items: &Items, rules: &[Contains], at: SchemaId) -> Branch {
        let values = |place: usize| items.at(place).iter().map(|element| element.value);
        let least = items.min.max(if items.must_repeat() { 2 } else { 0 }) as usize;
        // The positions after the leading ones are all the same.
        let at_places = (0..least.min(items.prefix.len() + 1)).filter_map(|place| {
            let what = if items.must_repeat() && place < 2 { What::Second } else { What::Element(place) };
            Need::of_any(values(place), at, what)
        });
        let counted = rules.iter().enumerate().filter(|(_, rule)| rule.min > 0).filter_map(|(bit, rule)| {
            let counts = items.elements().filter(move |element| element.counts & 1 << bit != 0);
            Need::of_any(counts.map(|element| element.value), rule.at, What::Counted(self.counting_keyword(rule)))
        });
        let needs: Vec<Need> = at_places.chain(counted).collect();
        if needs.is_empty() { Branch::Possible } else { Branch::Needs(needs) }
    }

    /// The reason if more elements must differ than there are values, of all elements or of those that are counted.
    fn too_few_values(&mut self, merged: &Merged, asked: &Asked) -> Result<Option<Clash>, GrammarError> {
        let Some(at) = merged.unique else { return Ok(None) };
        let all = (asked.min, 0, Vec::new(), "minItems");
        let counted =
            asked.contains.iter().map(|rule| (rule.min, rule.from, rule.terms.clone(), self.counting_keyword(rule)));
        for (min, from, terms, keyword) in [all].into_iter().chain(counted.collect::<Vec<_>>()) {
            let leading = asked.prefix.len().saturating_sub(from);
            if min as usize <= leading.max(1) {
                continue;
            }
            let terms = terms.into_iter().fold(asked.rest.clone(), with);
            if let Some(count) = self.count_values(&terms)?
                && count.saturating_add(leading as u64) < u64::from(min)
            {
                let message = format!(
                    "uniqueItems allows each value once, and there are fewer values than the {min} elements that {keyword} asks for"
                );
                return Ok(Some(Clash { place: self.schemas.place(at), message }));
            }
        }
        Ok(None)
    }

    /// The greatest number of values that meet these terms; `None` if they cannot be counted.
    fn count_values(&mut self, all: &[Term]) -> Result<Option<u64>, GrammarError> {
        match self.number_of_values(all, &mut ValueCounts::default(), 0)? {
            Cardinality::Finite(count) => Ok(Some(count)),
            Cardinality::Infinite | Cardinality::Unknown => Ok(None),
        }
    }
}
