//! Places of a walk through the trie as two small numbers, so that a step in known territory is a few loads.
//!
//! Nearly everywhere a walk is at one thread, of which only the automaton state changes from byte to byte. What does not
//! change is kept once as a *context*; a spot is a context and a state. Only where a lexeme ends, or where several threads
//! are alive, the general step runs.

use rustc_hash::FxHashMap;

use crate::error::EngineError;
use crate::lexicon::DfaId;
use crate::machine::ForkId;
use crate::run::{Doubt, Place, Run};
use crate::stacks::{Entry, SetId};

/// Where a walk is, as numbers of one [`Walk`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    /// Which context.
    pub context: u32,
    /// One thread: its automaton state. Several: their set.
    pub state: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Context {
    /// The thread without its state; `None` for a set of threads.
    thread: Option<Entry>,
    /// Its automaton.
    dfa: DfaId,
    /// Whether it may have been wrong to take the keys on the way for new ones.
    doubt: Doubt,
}

/// The contexts of one walk.
pub(crate) struct Walk<'r, 'a> {
    pub run: &'r mut Run<'a>,
    contexts: Vec<Context>,
    index: FxHashMap<Context, u32>,
}

impl<'r, 'a> Walk<'r, 'a> {
    /// A walk that has not begun.
    pub fn new(run: &'r mut Run<'a>) -> Walk<'r, 'a> {
        Walk { run, contexts: Vec::new(), index: FxHashMap::default() }
    }

    /// A place as a spot.
    pub fn spot(&mut self, place: Place, doubt: Doubt) -> Spot {
        let (context, state) = match place {
            // Behind the end nothing follows: the dead state of any automaton.
            Place::One(Entry::BOTTOM) => (Context { thread: Some(Entry::BOTTOM), dfa: DfaId(0), doubt }, 0),
            Place::One(thread) => {
                let dfa = self.run.machine.fork(ForkId(thread.head)).dfa;
                let state = crate::run::state_of(thread).0;
                (Context { thread: Some(Entry { state: 0, ..thread }), dfa, doubt }, state)
            }
            Place::Many(set) => (Context { thread: None, dfa: DfaId(0), doubt }, set.0),
        };
        let next = self.contexts.len() as u32;
        let context = *self.index.entry(context).or_insert_with(|| {
            self.contexts.push(context);
            next
        });
        Spot { context, state }
    }

    /// Whether it may have been wrong to take the keys on the way to this spot for new ones.
    pub fn doubt(&self, spot: Spot) -> Doubt {
        self.contexts[spot.context as usize].doubt
    }

    /// The spot after one byte, `None` where nothing can go on.
    #[inline]
    pub fn step(&mut self, spot: Spot, byte: u8) -> Result<Option<Spot>, EngineError> {
        let context = self.contexts[spot.context as usize];
        if context.thread.is_some() {
            let (state, ends) = self.run.lexicon.step(context.dfa, stencilm_regex::StateId(spot.state), byte)?;
            if state == stencilm_regex::StateId::DEAD {
                return Ok(None);
            }
            if !ends {
                return Ok(Some(Spot { state: state.0, ..spot }));
            }
        }
        self.step_on(context, spot, byte)
    }

    #[inline(never)]
    fn step_on(&mut self, context: Context, spot: Spot, byte: u8) -> Result<Option<Spot>, EngineError> {
        let place = match context.thread {
            Some(thread) => Place::One(Entry { state: spot.state, ..thread }),
            None => Place::Many(SetId(spot.state)),
        };
        self.run.doubt = context.doubt;
        let next = self.run.step_place(place, byte)?;
        let doubt = self.run.doubt;
        Ok(next.map(|place| self.spot(place, doubt)))
    }
}
