//! Members of objects as literals of a notation of its own, in the declared order or in any.

use stencilm_regex::{ByteSet, ExprId};

use super::explain::{Branch, Need, What};
use super::lowering::Lowering;
use super::notation::{Mixed, Place};
use super::objects::{Class, MAX_MIXED, MAX_STATES, Member};
use crate::error::GrammarError;
use crate::ir::free_text::FreeText;
use crate::ir::grammar::{ArraySurface, Element, Items, Node, NodeId, Repeats};
use crate::json_schema::normal_form::merged::{Clash, Merged};
use crate::json_schema::read::schema::SchemaId;

/// Words that cannot be names of arguments in Python.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];
/// Characters that an unquoted name cannot contain.
const NOT_IN_NAMES: [char; 8] = ['{', '}', '[', ']', ':', ',', '<', ' '];

impl<'a> Lowering<'a> {
    /// The members of an object as literals; the last step of [`Lowering::object`] in this case.
    pub(crate) fn notated_members(
        &mut self,
        merged: &Merged,
        least: u32,
        known: &[Member],
        classes: &[Class],
        at: SchemaId,
    ) -> Result<(NodeId, Branch), GrammarError> {
        let mut needs = Vec::new();
        let mut clash = self.forbidden_clash(known);
        let (mut ordered, mut mixed) = (Vec::new(), Mixed::default());
        for member in known.iter().filter(|member| !member.is_forbidden) {
            let value = self.notated_value(member.value)?;
            let value_at = member.value.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(at);
            let Some(key) = self.notated_key(member.name, value_at)? else { continue };
            let node = self.builder.sequence(&[key, value]);
            if let Some(at) = member.required {
                needs.push(Need::new(value, at, What::Required(member.name.into())));
                if self.options.excludes.iter().any(|exclude| member.name.contains(&**exclude)) {
                    let message = format!("the key {:?} is asked for, and holds what is excluded", member.name);
                    clash.get_or_insert(Clash { place: self.schemas.place(at), message });
                }
            }
            if member.is_declared && !self.options.any_order {
                ordered.push((member.name, node, member.required.is_some()));
            } else {
                mixed.named.push((node, member.required.is_some()));
            }
        }
        for class in classes {
            let Some(key) = self.other_key(class.key, known)? else { continue };
            let value = self.notated_value(class.value)?;
            let node = self.builder.sequence(&[key, value]);
            let some = match class.some {
                Some(some) => {
                    let some = self.notated_value(some)?;
                    Some(self.builder.sequence(&[key, some]))
                }
                None => None,
            };
            mixed.others.push((node, some));
        }
        let count = ordered.len() + mixed.named.len();
        let named = mixed.others.is_empty().then_some(count);
        let clash = clash.or_else(|| self.count_clash(merged, least, named, at));
        if let Some(clash) = clash {
            return Ok((self.builder.choice(&[]), Branch::Impossible(vec![clash])));
        }
        let required = ordered.iter().map(|member| member.2).chain(mixed.named.iter().map(|member| member.1));
        let required = required.filter(|is_required| *is_required).count() as u32;
        let bounds = (
            if least > required { least } else { 0 },
            merged.max_members.filter(|&max| !mixed.others.is_empty() || (max as usize) < count),
        );
        let node = self.in_orders(ordered, mixed, bounds, at)?;
        Ok((node, if needs.is_empty() { Branch::Possible } else { Branch::Needs(needs) }))
    }

    /// Members in the order of the schema, and also in the order of their names if the notation may sort them.
    fn in_orders(
        &mut self,
        mut ordered: Vec<(&str, NodeId, bool)>,
        mut mixed: Mixed,
        mut bounds: (u32, Option<u32>),
        at: SchemaId,
    ) -> Result<NodeId, GrammarError> {
        let counters = mixed.named.len() + mixed.others.iter().filter(|(_, some)| some.is_some()).count();
        if counters > MAX_MIXED {
            let reason = format!(
                "{counters} members may come in any order, and in a notation of literals at most {MAX_MIXED} may; declare \
                 them in order"
            );
            self.relax(at, "properties", &reason)?;
            let over = counters - MAX_MIXED;
            let kept = mixed.named.len().saturating_sub(over);
            ordered.extend(mixed.named.drain(kept..).map(|(node, required)| ("", node, required)));
        }
        let counts = bounds.1.unwrap_or(bounds.0).max(1) as usize;
        if (ordered.len() + 1).saturating_mul(counts.min(ordered.len()) + 1) > MAX_STATES {
            let reason = "too many members are in order and counted at once; leave one of the two out";
            self.relax(at, "minProperties, maxProperties", reason)?;
            bounds = (0, None);
        }
        let declared: Vec<(NodeId, bool)> = ordered.iter().map(|&(_, node, required)| (node, required)).collect();
        let in_order = self.in_order(&declared, &mixed, bounds);
        ordered.sort_by_key(|&(name, ..)| name);
        let sorted: Vec<(NodeId, bool)> = ordered.iter().map(|&(_, node, required)| (node, required)).collect();
        if !self.notation().sorted || sorted == declared {
            return Ok(in_order);
        }
        let sorted = self.in_order(&sorted, &mixed, bounds);
        Ok(self.builder.choice(&[in_order, sorted]))
    }

    /// The ordered members, each required or optional, then those in any order, with commas between the present ones;
    /// `min` to `max` members in all.
    fn in_order(&mut self, ordered: &[(NodeId, bool)], mixed: &Mixed, (min, max): (u32, Option<u32>)) -> NodeId {
        let comma = self.notation().comma;
        let comma = self.spelled(comma);
        // What follows each member, by how many have come. Greater counts that make no difference are joined into one.
        // Zero and one always differ, because of the comma.
        let most = max.unwrap_or(min).max(1) as usize;
        let counts = if max.is_some() { most.min(ordered.len()) } else { most.min(ordered.len().max(1)) };
        let mut after = Vec::with_capacity(counts + 1);
        for count in 0..=counts as u32 {
            let left = (min.saturating_sub(count), max.map(|max| max.saturating_sub(count)));
            after.push(if count == 0 {
                self.first_mixed(mixed, comma, left)
            } else {
                self.more_mixed(mixed, comma, left)
            });
        }
        let mut required = ordered.iter().filter(|(_, is_required)| *is_required).count();
        for (place, &(member, is_required)) in ordered.iter().enumerate().rev() {
            required -= usize::from(is_required);
            // Only counts that are possible there are built: at least the required members before it, at most all of
            // them.
            let mut before = vec![after[0]; counts + 1];
            for count in required.min(counts)..=place.min(counts) {
                let mut renderings = Vec::with_capacity(2);
                let next = if count < counts { Some(count + 1) } else { max.is_none().then_some(counts) };
                if let Some(next) = next {
                    let parts = [comma, member, after[next]];
                    renderings.push(self.builder.sequence(if count == 0 { &parts[1..] } else { &parts }));
                }
                if !is_required {
                    renderings.push(after[count]);
                }
                let rule = self.builder.declare_rule("members");
                let body = self.builder.choice(&renderings);
                self.builder.define_rule(rule, body);
                before[count] = self.builder.node(Node::Rule(rule));
            }
            after = before;
        }
        after[0]
    }

    /// Members in any order, with none before them.
    fn first_mixed(&mut self, mixed: &Mixed, comma: NodeId, (min, max): (u32, Option<u32>)) -> NodeId {
        let needs_one = min > 0
            || mixed.named.iter().any(|(_, is_required)| *is_required)
            || mixed.others.iter().any(|(_, some)| some.is_some());
        let mut renderings = if needs_one { Vec::new() } else { vec![self.builder.sequence(&[])] };
        let left = (min.saturating_sub(1), max.map(|max| max.saturating_sub(1)));
        let may_come = max != Some(0);
        for index in (0..mixed.named.len()).filter(|_| may_come) {
            let mut rest = mixed.clone();
            let (member, _) = rest.named.remove(index);
            let more = self.more_mixed(&rest, comma, left);
            renderings.push(self.builder.sequence(&[member, more]));
        }
        for (index, &(other, some)) in mixed.others.iter().enumerate().filter(|_| may_come) {
            let more = self.more_mixed(mixed, comma, left);
            renderings.push(self.builder.sequence(&[other, more]));
            if let Some(some) = some {
                let mut rest = mixed.clone();
                rest.others[index].1 = None;
                let more = self.more_mixed(&rest, comma, left);
                renderings.push(self.builder.sequence(&[some, more]));
            }
        }
        if let [only] = renderings[..] { only } else { self.builder.choice(&renderings) }
    }

    /// Members in any order after others, each preceded by a comma: a bare array, or a plain repetition if it needs no
    /// counters.
    fn more_mixed(&mut self, mixed: &Mixed, comma: NodeId, (min, max): (u32, Option<u32>)) -> NodeId {
        let mut contains = Vec::new();
        let mut rest = Vec::new();
        for &(member, is_required) in &mixed.named {
            let value = self.builder.sequence(&[comma, member]);
            rest.push(Element { value, counts: 1 << contains.len() });
            contains.push((u32::from(is_required), Some(1)));
        }
        for &(other, some) in &mixed.others {
            if let Some(some) = some {
                let value = self.builder.sequence(&[comma, some]);
                rest.push(Element { value, counts: 1 << contains.len() });
                contains.push((1, None));
            }
            let value = self.builder.sequence(&[comma, other]);
            rest.push(Element { value, counts: 0 });
        }
        if contains.is_empty() {
            let values: Vec<NodeId> = rest.iter().map(|element| element.value).collect();
            let value = if let [only] = values[..] { only } else { self.builder.choice(&values) };
            return self.builder.repeat(value, min, if values.is_empty() { Some(0) } else { max });
        }
        let nothing = ExprId::EMPTY;
        let surface = ArraySurface { empty: nothing, open: nothing, item: nothing, close: nothing };
        self.builder.array(Items {
            prefix: Vec::new(),
            rest: rest.into(),
            min,
            max,
            contains,
            repeats: Repeats::Any,
            surface,
        })
    }

    /// The name of a member with what stands between it and its value; `None` if the notation cannot write the name and
    /// the member is left out.
    pub(super) fn notated_key(&mut self, name: &str, at: SchemaId) -> Result<Option<NodeId>, GrammarError> {
        let notation = self.notation();
        let place = self.notated().place;
        if self.options.excludes.iter().any(|exclude| name.contains(&**exclude)) {
            return Ok(Some(self.builder.choice(&[])));
        }
        if place == Place::Value && notation.quote.is_none() {
            let key = self.given_string(name);
            let colon = self.spelled(notation.colon);
            return Ok(Some(self.builder.sequence(&[key, colon])));
        }
        let is_name = !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        let is_plain = if notation.quote.is_some() {
            !name.is_empty() && !name.contains(NOT_IN_NAMES) && !name.contains(char::is_control)
        } else {
            is_name && !KEYWORDS.contains(&name)
        };
        if is_plain {
            let sign = if place == Place::Call { notation.assign } else { notation.colon };
            return Ok(Some(self.spelled(&format!("{name}{sign}"))));
        }
        let reason = format!(
            "{name:?} is no name of an argument in the style {:?}; rename it, relax the format, or use the style \"json\"",
            notation.name
        );
        self.relax(at, "properties", &reason)?;
        Ok(None)
    }

    /// The names of a class that can be written at a place.
    fn notated_names(&mut self, of_class: ExprId, place: Place) -> ExprId {
        if let Some(&known) = self.notated().names.get(&(of_class, place)) {
            return known;
        }
        let notation = self.notation();
        let exprs = &mut self.builder.exprs;
        let mut all = vec![of_class];
        if notation.quote.is_some() {
            let letters: ByteSet = (b'!'..=u8::MAX)
                .filter(|&byte| byte != 0x7f && !b"\"'".contains(&byte) && !NOT_IN_NAMES.contains(&char::from(byte)))
                .collect();
            let letter = exprs.bytes(letters);
            all.push(exprs.repeat(letter, 1, None));
        } else if place == Place::Call {
            let letters: ByteSet = (b'a'..=b'z').chain(b'A'..=b'Z').chain([b'_']).collect();
            let first = exprs.bytes(letters);
            let letters: ByteSet = (b'a'..=b'z').chain(b'A'..=b'Z').chain(b'0'..=b'9').chain([b'_']).collect();
            let rest = exprs.bytes(letters);
            let rest = exprs.repeat(rest, 0, None);
            all.push(exprs.concat(first, rest));
            let keywords = exprs.literals(&KEYWORDS);
            all.push(exprs.not(keywords));
        }
        let written = exprs.and(&all);
        self.notated().names.insert((of_class, place), written);
        written
    }

    /// A name of a class that no schema names, with what stands before the value; `None` if there is none.
    fn other_key(&mut self, of_class: ExprId, known: &[Member]) -> Result<Option<NodeId>, GrammarError> {
        let notation = self.notation();
        let place = self.notated().place;
        let is_quoted = place == Place::Value && notation.quote.is_none();
        let sign = if place == Place::Call { notation.assign } else { notation.colon };
        let excludes: Vec<&str> = self.options.excludes.iter().map(|exclude| &**exclude).collect();
        let written = self.notated_names(of_class, place);
        let exprs = &mut self.builder.exprs;
        let known: Vec<&str> = known.iter().map(|member| member.name).collect();
        let known = exprs.literals(&known);
        let others = exprs.not(known);
        let mut name = exprs.and(&[written, others]);
        if !excludes.is_empty() {
            name = FreeText::of(exprs, name, &[], &excludes).unended(exprs);
        }
        if is_quoted {
            let marks: &[u8] = if self.notated().in_one_way { b"\"" } else { b"\"'" };
            let exprs = &mut self.builder.exprs;
            let mut renderings = Vec::with_capacity(marks.len());
            for &mark in marks {
                // Only names that need no escapes.
                let letters = (b' '..=u8::MAX).filter(|&byte| byte != mark && byte != b'\\' && byte != 0x7f).collect();
                let letter = exprs.bytes(letters);
                let plain = exprs.repeat(letter, 0, None);
                let (mark, plain) = (exprs.bytes(ByteSet::of(mark)), exprs.and(&[name, plain]));
                renderings.push(exprs.concat_all(&[mark, plain, mark]));
            }
            name = exprs.or(&renderings);
        }
        let exprs = &mut self.builder.exprs;
        let sign = exprs.literal(sign.as_bytes());
        let key = exprs.concat(name, sign);
        self.name_unless_dead(key, of_class)
    }
}
