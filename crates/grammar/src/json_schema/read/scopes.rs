//! Dynamic scopes: what `$dynamicRef` and `$recursiveRef` mean on each path that leads to them (JSON Schema Core
//! 8.2.3.2).
//!
//! A dynamic reference goes to the outermost of the resources on the path that declares its anchor. So a schema is read
//! once for each *scope*, the anchors found on the path with the first that declared each. Where no anchor is declared
//! twice there is nothing to choose, and a single scope, 0, stands for all.

use rustc_hash::FxHashMap;
use stencilm_support::HashMap;

use super::document::JsonId;
use super::refs::Resources;

/// Anchors with the schemas that declare them, in the order of the path.
type Anchors<'t> = Vec<(&'t str, JsonId)>;

/// The dynamic scopes of schemas.
#[derive(Default)]
pub(crate) struct Scopes<'t> {
    /// The anchors that each resource declares; empty if no anchor is declared twice.
    declared: FxHashMap<JsonId, Anchors<'t>>,
    /// The scopes, starting with number 1.
    list: Vec<Anchors<'t>>,
    known: HashMap<Anchors<'t>, u32>,
    /// The scope after entering a resource.
    moves: FxHashMap<(u32, JsonId), u32>,
}

impl<'t> Scopes<'t> {
    pub(crate) fn new(resources: &Resources<'t>) -> Scopes<'t> {
        let mut scopes = Scopes::default();
        let mut owners: HashMap<&str, JsonId> = HashMap::default();
        let chosen = resources.dynamic.iter().any(|&(owner, name, _)| *owners.entry(name).or_insert(owner) != owner);
        if chosen {
            for &(owner, name, schema) in &resources.dynamic {
                scopes.declared.entry(owner).or_default().push((name, schema));
            }
            scopes.list.push(Vec::new());
            scopes.known.insert(Vec::new(), 1);
        }
        scopes
    }

    /// The scope before any resource is entered.
    pub(crate) fn outermost(&self) -> u32 {
        u32::from(!self.declared.is_empty())
    }

    /// The scope inside a resource that is entered from another scope.
    pub(crate) fn enter(&mut self, scope: u32, resource: JsonId) -> u32 {
        if scope == 0 {
            return 0;
        }
        if let Some(&known) = self.moves.get(&(scope, resource)) {
            return known;
        }
        let mut anchors = self.list[scope as usize - 1].clone();
        for &(name, schema) in self.declared.get(&resource).into_iter().flatten() {
            if anchors.iter().all(|&(known, _)| known != name) {
                anchors.push((name, schema));
            }
        }
        let list = &mut self.list;
        let inside = *self.known.entry(anchors).or_insert_with_key(|anchors| {
            list.push(anchors.clone());
            list.len() as u32
        });
        self.moves.insert((scope, resource), inside);
        inside
    }

    /// As [`Scopes::enter`], for a resource that was entered before.
    pub(crate) fn inside(&self, scope: u32, resource: JsonId) -> u32 {
        self.moves.get(&(scope, resource)).copied().unwrap_or(scope)
    }

    /// The outermost schema that declares an anchor; `None` if only one schema declares it.
    pub(crate) fn outermost_with(&self, scope: u32, name: &str) -> Option<JsonId> {
        let anchors = self.list.get((scope as usize).checked_sub(1)?)?;
        anchors.iter().find(|(known, _)| *known == name).map(|&(_, schema)| schema)
    }
}
