//! JSON in whose strings and names some texts do not come, as they are written between the quotes.
//!
//! Every lexeme of a grammar of JSON holds whole strings. So a lexeme is intersected with all texts whose strings are
//! clean, and a member whose name is not clean has no value. What is left without a continuation is dropped where the
//! grammar is made anew.

use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, own_pattern};
use stencilm_regex::{ByteSet, Deriver, ExprId, Limits};

use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{AdditionalMembers, DeclaredMember, Grammar, Node, NodeId, Repeats};
use crate::ir::key_space::{CANONICAL, key_space};
use crate::ir::productive::{LiveExprs, without_dead_parts};

/// The texts of a JSON grammar in which none of `excludes` occurs within a string or a name.
///
/// # Errors
/// [`ErrorKind::Unsatisfiable`] if no text is left, [`ErrorKind::Limit`] if it takes too long to decide.
pub(super) fn excluding(mut grammar: Grammar, excludes: &[Box<str>]) -> Result<Grammar, GrammarError> {
    if excludes.is_empty() {
        return Ok(grammar);
    }
    let mut deriver = Deriver::over(std::mem::take(&mut grammar.exprs), Limits::default());
    let clean = Clean::new(&mut deriver, excludes);
    for node in &mut grammar.nodes {
        if let Node::Lexeme(expr) = node {
            *expr = clean.part_of(&mut deriver, *expr)?;
        }
    }
    let dead = NodeId(grammar.nodes.len() as u32);
    grammar.nodes.push(Node::Lexeme(ExprId::NOTHING));
    for items in &mut grammar.items {
        // The counters include values that are now excluded, so they no longer show when values are exhausted.
        if items.is_unique() {
            items.repeats = Repeats::Never { counted: false };
        }
    }
    for members in &mut grammar.members {
        for known in &mut members.declared {
            if !clean.is_name(&mut deriver, known)? {
                known.value = dead;
            }
        }
        for additional in &mut members.additional {
            clean.restrict(&mut deriver, additional, dead)?;
        }
    }
    grammar.exprs = deriver.exprs;
    without_dead_parts(grammar, LiveExprs::default())
}

/// Texts whose strings are clean: they contain no excluded text.
struct Clean<'e> {
    excludes: &'e [Box<str>],
    texts: ExprId,
    /// The texts with some string that isn't clean.
    unclean: ExprId,
    /// Names in the canonical spelling, by which they are counted.
    canonical: ExprId,
}

impl<'e> Clean<'e> {
    fn new(deriver: &mut Deriver, excludes: &'e [Box<str>]) -> Clean<'e> {
        let exprs = &mut deriver.exprs;
        let without = |left_out: &[u8]| (0..=u8::MAX).filter(|byte| !left_out.contains(byte)).collect::<ByteSet>();
        let anything = exprs.bytes(ByteSet::ALL);
        let (backslash, anything) = (exprs.literal(b"\\"), exprs.repeat(anything, 0, None));
        let (plain, escaped) = (exprs.bytes(without(b"\"\\")), exprs.bytes(ByteSet::ALL));
        let escaped = exprs.concat(backslash, escaped);
        let character = exprs.or(&[plain, escaped]);
        let body = exprs.repeat(character, 0, None);
        let excluded: Vec<&str> = excludes.iter().map(|exclude| &**exclude).collect();
        let excluded = exprs.literals(&excluded);
        let excluded = exprs.concat_all(&[anything, excluded, anything]);
        let kept = exprs.not(excluded);
        let body = exprs.and(&[body, kept]);
        let quote = exprs.literal(b"\"");
        let string = exprs.concat_all(&[quote, body, quote]);
        let outside = exprs.bytes(without(b"\""));
        let part = exprs.or(&[outside, string]);
        let texts = exprs.repeat(part, 0, None);
        let unclean = exprs.not(texts);
        let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
        let canonical = own_pattern(exprs, CANONICAL, &options, &mut Utf8);
        Clean { excludes, texts, unclean, canonical }
    }

    /// The clean texts of an expression; the same expression if all of its texts are clean.
    fn part_of(&self, deriver: &mut Deriver, expr: ExprId) -> Result<ExprId, GrammarError> {
        let unclean = deriver.exprs.and(&[expr, self.unclean]);
        if !is_live(deriver, unclean)? {
            return Ok(expr);
        }
        let clean = deriver.exprs.and(&[expr, self.texts]);
        Ok(if is_live(deriver, clean)? { clean } else { ExprId::NOTHING })
    }

    /// Whether the name of a member has a clean spelling; restricts its spellings to the clean ones.
    fn is_name(&self, deriver: &mut Deriver, known: &mut DeclaredMember) -> Result<bool, GrammarError> {
        let Some(key) = known.key else {
            return Ok(!self.excludes.iter().any(|exclude| known.name.contains(&**exclude)));
        };
        let clean = self.part_of(deriver, key)?;
        known.key = Some(if clean == ExprId::NOTHING { key } else { clean });
        Ok(clean != ExprId::NOTHING)
    }

    /// Restricts the names of a class. Each name then has only one spelling, so that the remaining ones are counted
    /// correctly.
    fn restrict(
        &self,
        deriver: &mut Deriver,
        additional: &mut AdditionalMembers,
        dead: NodeId,
    ) -> Result<(), GrammarError> {
        let key = self.part_of(deriver, additional.key)?;
        if key == additional.key {
            return Ok(());
        }
        let key = deriver.exprs.and(&[key, self.canonical]);
        if !is_live(deriver, key)? {
            // The class has no members, so a required one is never satisfied.
            additional.value = dead;
            additional.some = additional.some.map(|_| dead);
            return Ok(());
        }
        let space = key_space(deriver, key).map_err(|limit| GrammarError::limit("", limit))?;
        let Some(space) = space else {
            let message = "telling how many names are left without the excluded texts took too long; exclude fewer";
            return Err(GrammarError::new(ErrorKind::Limit, "", message));
        };
        (additional.key, additional.space) = (key, space);
        Ok(())
    }
}

fn is_live(deriver: &mut Deriver, expr: ExprId) -> Result<bool, GrammarError> {
    deriver.is_live(expr).map_err(|limit| GrammarError::limit("", limit))
}
