//! Sets of declared names, numbered, so that a frame can carry one: what a reference matches depends on the set of
//! names and on nothing else of the text.

use std::sync::Arc;

use stencilm_grammar::NameSet;
use stencilm_support::Map;

use crate::machine::frame::{FrameId, NamesId};

/// The names that texts of a grammar declare.
#[derive(Default)]
pub(crate) struct DeclaredNames {
    /// The frame that holds the names on top of a stack; `None` where the grammar declares none.
    pub frame: Option<FrameId>,
    /// The sets of names of the grammar.
    pub sets: Vec<NameSet>,
    /// The distinct sets of names so far, each ascending, with names as they were written.
    pub known: Vec<Arc<[Box<[u8]>]>>,
    index: Map<Arc<[Box<[u8]>]>, NamesId>,
}

impl DeclaredNames {
    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.known.iter().flat_map(|names| names.iter()).map(|name| name.len() + 32).sum::<usize>()
            + self.known.len() * 96
    }

    /// The number of a set of names.
    pub fn number(&mut self, names: Vec<Box<[u8]>>) -> NamesId {
        if self.known.is_empty() {
            // Number 0 is [`NamesId::ANY`].
            self.known.push(Arc::default());
        }
        let names: Arc<[Box<[u8]>]> = names.into();
        if let Some(&known) = self.index.get(&names) {
            return known;
        }
        let id = NamesId(self.known.len() as u32);
        self.known.push(names.clone());
        self.index.insert(names, id);
        id
    }
}
