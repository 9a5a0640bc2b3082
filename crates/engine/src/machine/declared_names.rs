//! Sets of declared names as numbers, which frames carry: what references match depends on the set, not on the text.

use std::sync::Arc;

use stencilm_grammar::NameSet;
use stencilm_support::Map;

use crate::machine::frame::{FrameId, NamesId};

/// The names of a grammar's texts, as the machine knows them.
#[derive(Default)]
pub(crate) struct DeclaredNames {
    /// The frame on top of stacks; `None` where the grammar declares no names.
    pub frame: Option<FrameId>,
    /// The sets of names of the grammar.
    pub sets: Vec<NameSet>,
    /// The names that references were begun with, each set of them once; as they were written, ascending.
    pub known: Vec<Arc<[Box<[u8]>]>>,
    index: Map<Arc<[Box<[u8]>]>, NamesId>,
}

impl DeclaredNames {
    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        self.known.iter().flat_map(|names| names.iter()).map(|name| name.len() + 32).sum::<usize>()
            + self.known.len() * 96
    }

    /// The number of a set of names.
    pub fn number(&mut self, names: Vec<Box<[u8]>>) -> NamesId {
        if self.known.is_empty() {
            // The first number stands for names that are not known.
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
