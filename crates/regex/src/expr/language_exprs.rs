//! Languages decided by a program as expressions, and their rests.

use crate::expr::arena::LANGUAGE;
use crate::expr::expr_set::ExprSet;
use crate::expr::language::{Language, LanguageRest};
use crate::expr::node::{Expr, ExprId};

impl ExprSet {
    /// All texts of a language, of which there must be some.
    pub fn language(&mut self, language: &'static dyn Language) -> ExprId {
        self.language_rest(LanguageRest::start(language))
    }

    /// The rest of a language after some text.
    pub fn language_rest(&mut self, rest: LanguageRest) -> ExprId {
        self.intern(Expr::Language(Box::new(rest)))
    }

    /// Whether the expression contains a language decided by a program.
    pub fn has_language(&self, id: ExprId) -> bool {
        self.arena.facts(id).leaves & LANGUAGE != 0
    }
}
