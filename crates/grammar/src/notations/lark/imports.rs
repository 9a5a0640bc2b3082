//! `%import`, `%override` and `%extend`: definitions of other grammars, copied with what they need.

use indexmap::IndexMap;

use super::attributes;
use super::common::COMMON;
use super::names::{NamedGrammar, Names};
use super::parse::parse;
use super::parser::{Later, Parsed};
use super::patterns::check_pattern;
use super::tree::{Attribute, Definition, Import, Part, PartId, Unit};
use crate::error::GrammarError;
use crate::ir::syntax_error::SyntaxError;

/// The longest chain of grammars that import each other.
const MAX_CHAIN: usize = 32;

/// Adds the imports of a text to it.
///
/// # Errors
/// An error at the import if a module or a name doesn't exist, or a name exists twice.
pub(super) fn with_imports(
    parsed: Parsed,
    text: &str,
    names: &Names<'_>,
    chain: &[&str],
) -> Result<Unit, GrammarError> {
    let Parsed { mut unit, later } = parsed;
    let mut modules: IndexMap<String, Vec<Import>> = IndexMap::new();
    for import in std::mem::take(&mut unit.imports) {
        modules.entry(import.module.clone()).or_default().push(import);
    }
    for (module, imports) in modules {
        let place = imports[0].place;
        let source = module_text(&module, place, names).map_err(|error| error.placed(text))?;
        if chain.contains(&&*module) {
            let message =
                format!("the grammar `{module}` imports itself, by way of {}; break the circle", chain.join(", "));
            return Err(SyntaxError::at(place, message).placed(text));
        }
        if chain.len() >= MAX_CHAIN {
            let message = format!("grammars import each other more than {MAX_CHAIN} deep; join some of them");
            return Err(SyntaxError::limit(place, message).placed(text));
        }
        let within = |GrammarError { kind, place: at, message }: GrammarError| {
            let message = format!("in the imported grammar `{module}`, {at}: {message}");
            SyntaxError { kind, offset: place, message }.placed(text)
        };
        let read = parse(source, 0, source.len(), 0).map_err(|error| within(error.placed(source)))?;
        let longer: Vec<&str> = chain.iter().copied().chain([&*module]).collect();
        let inner = with_imports(read, source, names, &longer).map_err(within)?;
        bring_in(&mut unit, &inner, source, &module, &imports).map_err(|error| error.placed(text))?;
    }
    for Later { name, definition, extends } in later {
        let place = definition.place;
        let Some(old) = unit.definitions.get(&name).cloned() else {
            let what = if extends { "extend" } else { "override" };
            let message = format!("there is no `{name}` to {what}; import it before, or define it without %{what}");
            return Err(SyntaxError::at(place, message).placed(text));
        };
        let new = if extends { extended(&mut unit, &old, definition) } else { definition };
        unit.definitions.insert(name, new);
    }
    for (place, import) in std::mem::take(&mut unit.nested).into_iter().enumerate() {
        let nested = with_imports(Parsed { unit: import, later: Vec::new() }, text, names, chain)?;
        unit.nested.insert(place, nested);
    }
    Ok(unit)
}

fn module_text<'a>(module: &str, place: usize, names: &Names<'a>) -> Result<&'a str, SyntaxError> {
    if module == "common" {
        return Ok(COMMON);
    }
    match names.get(module) {
        Some(NamedGrammar::Lark(text)) => Ok(text),
        Some(NamedGrammar::Grammar(_)) => {
            let message = format!("`{module}` is no Lark text, so it has no names to import; use it as `@{module}`");
            Err(SyntaxError::at(place, message))
        }
        None => {
            let named = names.listed(|grammar| matches!(grammar, NamedGrammar::Lark(_)));
            let known = named.map(|names| format!(", {names}")).unwrap_or_default();
            let message =
                format!("there is no grammar `{module}`; import from `common`{known}, or pass its text in `grammars`");
            Err(SyntaxError::at(place, message))
        }
    }
}

/// Copies definitions, and everything that they use under new names.
fn bring_in(unit: &mut Unit, from: &Unit, source: &str, module: &str, imports: &[Import]) -> Result<(), SyntaxError> {
    let mut renamed: IndexMap<&str, (String, usize)> = IndexMap::new();
    let mut aliases = Vec::new();
    for Import { name, alias, place, .. } in imports {
        let Some((name, definition)) = from.definitions.get_key_value(name) else {
            let kind = if module == "common" { "the common library" } else { "that grammar" };
            let all: Vec<&str> = from.definitions.keys().map(String::as_str).collect();
            let message = format!("{kind} has no `{name}`; it has {}", all.join(", "));
            return Err(SyntaxError::at(*place, message));
        };
        if definition.is_terminal != super::scan::is_terminal(alias) {
            let message = format!("`{name}` is imported as `{alias}`: terminals have capital names, rules small ones");
            return Err(SyntaxError::at(*place, message));
        }
        if aliases.iter().any(|(known, of)| known == alias && of == name) {
            continue; // the same import once more
        }
        if unit.definitions.contains_key(alias) || aliases.iter().any(|(known, _)| known == alias) {
            return Err(SyntaxError::at(
                *place,
                format!("`{alias}` is defined and imported; import it under another name"),
            ));
        }
        aliases.push((alias.clone(), name.as_str()));
        renamed.entry(name).or_insert_with(|| (alias.clone(), *place));
    }
    let place = imports[0].place;
    let mut at = 0;
    while at < renamed.len() {
        let (&name, (alias, _)) = renamed.get_index(at).expect("the loop stops behind the last");
        let alias = alias.clone();
        at += 1;
        let definition = &from.definitions[name];
        // The copies lose their positions, so errors in them are reported now.
        let within = |error: SyntaxError| {
            let GrammarError { kind, place: at, message } = error.placed(source);
            let message = format!("in the imported grammar `{module}`, {at}: {message}");
            SyntaxError { kind, offset: place, message }
        };
        attributes::read(from, name, definition).map_err(within)?;
        for part in from.parts_of(definition) {
            if let Part::Name { name, .. } = from.part(part)
                && !definition.parameters.contains(name)
                && let Some((used, _)) = from.definitions.get_key_value(name)
            {
                renamed.entry(used).or_insert_with(|| (format!("{module}__{used}"), place));
            }
            if let Part::Pattern(text, flags) = from.part(part)
                && module != "common"
            {
                check_pattern(from.place(part), text, flags).map_err(within)?;
            }
        }
        let copy = copied(unit, from, definition, place, &|name| {
            let is_parameter = definition.parameters.iter().any(|parameter| parameter == name);
            renamed.get(name).filter(|_| !is_parameter).map(|(new, _)| new.clone())
        });
        unit.definitions.insert(alias, copy);
    }
    // The same name under a second alias.
    for (alias, name) in aliases {
        if !unit.definitions.contains_key(&alias) {
            let copy = unit.definitions[&renamed[name].0].clone();
            unit.definitions.insert(alias, copy);
        }
    }
    for (name, &at) in &from.declared {
        unit.declared.entry(name.clone()).or_insert(at.min(place));
    }
    Ok(())
}

/// Copies the parts of a definition to the end of the list.
fn copied(
    unit: &mut Unit,
    from: &Unit,
    definition: &Definition,
    place: usize,
    renamed: &dyn Fn(&str) -> Option<String>,
) -> Definition {
    let first = PartId(unit.parts.len() as u32);
    let moved = |id: PartId| PartId(id.0 - definition.first.0 + first.0);
    for id in from.parts_of(definition) {
        let mut part = from.part(id).moved(moved);
        match &mut part {
            Part::Name { name, .. } => {
                if let Some(new) = renamed(name) {
                    *name = new;
                }
            }
            Part::Nested(index) => {
                let mut nested = from.nested[*index].clone();
                nested.places.fill(place);
                unit.nested.push(nested);
                *index = unit.nested.len() - 1;
            }
            _ => {}
        }
        unit.add(place, part);
    }
    let attributes = definition.attributes.iter().map(|attribute| Attribute { place, ..attribute.clone() }).collect();
    Definition { first, body: moved(definition.body), place, attributes, ..definition.clone() }
}

/// A definition with the alternatives of another one added.
fn extended(unit: &mut Unit, old: &Definition, more: Definition) -> Definition {
    let first = PartId(unit.parts.len() as u32);
    let mut bodies = Vec::new();
    for definition in [old, &more] {
        let start = PartId(unit.parts.len() as u32);
        let moved = |id: PartId| PartId(id.0 - definition.first.0 + start.0);
        for id in unit.parts_of(definition) {
            let (part, place) = (unit.part(id).moved(moved), unit.place(id));
            unit.add(place, part);
        }
        bodies.push(moved(definition.body));
    }
    let body = unit.add(more.place, Part::Choice(bodies));
    Definition { first, body, ..old.clone() }
}
