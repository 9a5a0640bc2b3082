//! Questions about texts with holes, and what is kept of a grammar to answer them.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::cut::Quotient;
use super::facts::Facts;
use super::goals::Recogniser;
use super::lexemes::Lexemes;
use super::members::ObjectForms;
use super::template::{Piece, Template};

use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{Grammar, Members, NodeId};
use crate::passes::drop_unreachable_in_time;

/// The greatest number of bytes that is kept from one question to the next.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Answers questions about texts with holes. What it learns about the lexemes is kept for the next question.
pub struct Holes {
    grammar: Arc<Grammar>,
    lexemes: Lexemes,
    facts: Facts,
    objects: ObjectForms,
}

impl Holes {
    /// Makes the object that answers questions about a grammar.
    pub fn new(grammar: Arc<Grammar>) -> Holes {
        let mut lexemes = Lexemes::new(grammar.exprs());
        let facts = Facts::new(&grammar, &mut lexemes);
        Holes { grammar, lexemes, facts, objects: ObjectForms::default() }
    }

    /// The grammar.
    pub fn grammar(&self) -> &Arc<Grammar> {
        &self.grammar
    }

    /// The approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.lexemes.memory_bytes() + self.facts.memory_bytes()
    }

    /// Whether bytes can be filled into the holes so that the result is a text of the grammar.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the answer depends on something that cannot be decided, [`ErrorKind::Limit`] if it
    /// takes too long.
    pub fn is_completable(&mut self, pieces: &[Piece<'_>]) -> Result<bool, GrammarError> {
        match self.found(pieces, &FxHashSet::default())? {
            Found { certain: true, .. } => Ok(true),
            Found { undecided: false, .. } => Ok(false),
            _ => Err(undecided()),
        }
    }

    /// The texts that may stand up to the end of the first hole: those of the grammar, without what follows. Some of
    /// them may not begin with the text before that hole. Without a hole, or with one at the end only, the result is
    /// the grammar itself.
    ///
    /// # Errors
    /// [`ErrorKind::Unsatisfiable`] if the pieces cannot be completed; else as [`Holes::is_completable`].
    pub fn quotient(&mut self, pieces: &[Piece<'_>]) -> Result<Grammar, GrammarError> {
        let Some(hole) = pieces.iter().position(|piece| *piece == Piece::Hole) else {
            let message = "there is no hole in the text; put HOLE where something is to be filled in";
            return Err(GrammarError::new(ErrorKind::Syntax, "", message));
        };
        if self.grammar.members.iter().any(Members::is_cut) {
            let message = "the grammar is itself one of what fills a hole, and ends within an object; put further holes into the \
                           pieces that it was made of";
            return Err(GrammarError::new(ErrorKind::Unsupported, "", message));
        }
        let after = &pieces[hole..];
        let first = after.iter().position(|piece| !matches!(piece, Piece::Hole | Piece::Text([])));
        let Some(first) = first else { return Ok((*self.grammar).clone()) };
        self.begin();
        let template = Template::of(&after[first..])?;
        let Holes { grammar, lexemes, facts, objects } = self;
        let mut recogniser = Recogniser::new(grammar, facts, lexemes, objects, &template);
        let starts = recogniser.read()?;
        let mut quotient = Quotient::new(&mut recogniser);
        let root = quotient.root(&starts)?;
        let Quotient { builder, is_undecided, refused, .. } = quotient;
        // What was left out doesn't matter if no text with these pieces needs it.
        if is_undecided && self.found(pieces, &refused)?.undecided {
            return Err(undecided());
        }
        let begun = self.grammar.begun.clone();
        let made = builder.finish(root, self.grammar.report.clone()).map_err(|error| match error.kind {
            ErrorKind::Unsatisfiable => {
                let message =
                    "no text of the grammar ends with what stands behind the hole; change it, or put a hole there, too";
                GrammarError::new(ErrorKind::Unsatisfiable, "", message)
            }
            _ => error,
        })?;
        Ok(Grammar { begun, ..drop_unreachable_in_time(&made)? })
    }

    /// The texts that may be filled into the first hole: those of [`Holes::quotient`] that continue the text before it.
    ///
    /// # Errors
    /// As [`Holes::quotient`].
    pub fn filling(&mut self, pieces: &[Piece<'_>]) -> Result<Grammar, GrammarError> {
        let quotient = self.quotient(pieces)?;
        let found = self.found(pieces, &FxHashSet::default())?;
        if !found.certain && found.undecided && !self.grammar.has_references() {
            return Err(undecided());
        }
        // References before the end of the hole are compared with their names where the grammar is used.
        if !found.certain && !found.undecided {
            let message =
                "no text completes these pieces; change what stands around the hole, or put a hole there, too";
            return Err(GrammarError::new(ErrorKind::Unsatisfiable, "", message));
        }
        let before = pieces.iter().map_while(|piece| if let Piece::Text(text) = piece { Some(*text) } else { None });
        let begun = [self.grammar.begun(), &before.collect::<Vec<_>>().concat()].concat();
        Ok(Grammar { begun: begun.into(), ..quotient })
    }

    /// Whether the pieces can be completed, for certain or undecided. All that has the first hole in one of the refused
    /// nodes is undecided.
    fn found(&mut self, pieces: &[Piece<'_>], refused: &FxHashSet<NodeId>) -> Result<Found, GrammarError> {
        self.begin();
        let begun = self.grammar.clone();
        let pieces: Vec<Piece<'_>> =
            std::iter::once(Piece::Text(begun.begun())).chain(pieces.iter().copied()).collect();
        let template = Template::of(&pieces)?;
        let Holes { grammar, lexemes, facts, objects } = self;
        let mut recogniser = Recogniser::new(grammar, facts, lexemes, objects, &template);
        recogniser.undecided = template.first_hole().map(|hole| (hole, refused));
        let starts = recogniser.read()?;
        let mut starts_here = starts.iter().filter(|start| start.position() == 0);
        let certain = starts_here.clone().any(|start| !start.is_undecided());
        Ok(Found { certain, undecided: starts_here.any(|start| start.is_undecided()) })
    }

    /// Begins a question.
    fn begin(&mut self) {
        if self.memory_bytes() > MAX_KEPT_BYTES {
            *self = Holes::new(self.grammar.clone());
        }
        self.lexemes.deriver.begin();
    }
}

/// In which ways a text was found to be one of the grammar.
struct Found {
    certain: bool,
    undecided: bool,
}

fn undecided() -> GrammarError {
    let message = "whether this text can be completed hangs on which values of an array with unique elements, on which members of \
                   an object, on which digits of a number, or on which declared names are filled in, and that cannot be decided; \
                   give more of the text around the hole, or loosen `uniqueItems`, `minProperties`, `maxProperties`, \
                   `multipleOf` or the reference there";
    GrammarError::new(ErrorKind::Unsupported, "", message)
}
