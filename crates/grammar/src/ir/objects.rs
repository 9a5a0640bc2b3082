//! What an object or an array must be like for masks without dead ends, checked where a user may have described it.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{ByteSet, Deriver, ExprId, ExprSet, Limits};
use stencilm_support::HashSet;

use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{AdditionalMembers, ArraySurface, DeclaredMember, Items, KeySpace, Members, Node};
use crate::ir::key_space::{is_key, key_space};
use crate::json::surface::Surface;
use crate::json::values::common_exprs;

/// The greatest number of required values of additional classes in an object: one bit each remembers which are there.
const MAX_WITNESSES: usize = 32;
/// The greatest number of counters of an array.
const MAX_COUNTERS: usize = 32;
/// The greatest number of alternatives at one position of an array.
const MAX_ALTERNATIVES: usize = 64;

/// Checks the objects and arrays of one expression set; each expression is checked once.
#[derive(Default)]
pub(crate) struct ObjectChecks {
    lexemes: FxHashSet<ExprId>,
    spaces: FxHashMap<ExprId, KeySpace>,
    deriver: Option<Deriver>,
}

impl ObjectChecks {
    /// Refuses repeated names, and keys and punctuation that may be empty or match nothing.
    pub(crate) fn check(&mut self, exprs: &ExprSet, nodes: &[Node], members: &Members) -> Result<(), GrammarError> {
        let mut names = HashSet::default();
        if let Some(twice) = members.declared.iter().find(|known| !names.insert(&*known.name)) {
            let message = format!("the member {:?} is described twice; join the two values with `|`", twice.name);
            return Err(GrammarError::new(ErrorKind::Syntax, "", message));
        }
        if members.ordered > members.declared.len() {
            let message = "more members are in order than there are; describe them";
            return Err(GrammarError::new(ErrorKind::Syntax, "", message));
        }
        if members.additional.iter().filter(|additional| additional.some.is_some()).count() > MAX_WITNESSES {
            let message = format!("more than {MAX_WITNESSES} kinds of other members have `some`; join some of them");
            return Err(GrammarError::new(ErrorKind::Limit, "", message));
        }
        let Surface { empty, open, colon, item, close } = members.surface;
        if let Some(known) =
            members.declared.iter().find(|known| known.key.is_none() && !DeclaredMember::is_plain(&known.name))
        {
            let message = format!("the name {:?} is not written as it is; say how its key is", known.name);
            return Err(GrammarError::new(ErrorKind::Syntax, "", message));
        }
        let keys = members
            .declared
            .iter()
            .filter_map(|known| known.key)
            .chain(members.additional.iter().map(|additional| additional.key));
        self.check_lexemes(exprs, [empty, open, colon, item, close].into_iter().chain(keys))?;
        let is_finite = |additional: &&AdditionalMembers| matches!(additional.space, KeySpace::Finite(_));
        // If keys can be exhausted, one must be left for the required value. That is certain only if every value of the
        // class is such a value, since then the first member has it.
        if members
            .additional
            .iter()
            .filter(is_finite)
            .any(|additional| additional.some.is_some() && !additional.meets_always(nodes))
        {
            let message = "other members of which only few keys are possible have `some`; describe them one by one";
            return Err(GrammarError::new(ErrorKind::Unsupported, "", message));
        }
        Ok(())
    }

    /// How many keys a class of members has whose keys must not be one of these names.
    pub(crate) fn key_space(
        &mut self,
        exprs: &ExprSet,
        key: ExprId,
        reserved: &[&str],
    ) -> Result<KeySpace, GrammarError> {
        let limit = |limit| GrammarError::limit("", limit);
        if let Some(&known @ (KeySpace::Infinite | KeySpace::LocallyFinite)) = self.spaces.get(&key) {
            return Ok(known);
        }
        self.check_lexemes(exprs, std::iter::once(key))?;
        let deriver = self.deriver.get_or_insert_with(|| Deriver::over(common_exprs(), Limits::default()));
        let copy = deriver.exprs.import(exprs, key);
        // Keys are compared as string values, and masks find a key within a token by its quotes.
        let begins_bare = |&&(bytes, _): &&(ByteSet, ExprId)| bytes.iter().any(|byte| !b"\" \t\r\n".contains(&byte));
        for &(_, rest) in deriver.derivatives(copy).map_err(limit)?.iter().filter(begins_bare) {
            if deriver.is_live(rest).map_err(limit)? {
                let message = "the key of other members may begin without a quote; describe members with such keys by \
                               their names, or write them as rules without %object";
                return Err(GrammarError::new(ErrorKind::Unsupported, "", message));
            }
        }
        let Some(space) = key_space(deriver, copy).map_err(limit)? else {
            let message =
                "telling how many keys the other members of an object may have took too long; use a simpler key";
            return Err(GrammarError::new(ErrorKind::Limit, "", message));
        };
        self.spaces.insert(key, space);
        let KeySpace::Finite(count) = space else { return Ok(space) };
        let mut left = count;
        for name in reserved {
            left -= u32::from(is_key(deriver, copy, name).map_err(limit)?);
        }
        if left == 0 {
            let message = "all keys that the other members of an object may have are taken; leave these members out";
            return Err(GrammarError::new(ErrorKind::Unsatisfiable, "", message));
        }
        Ok(KeySpace::Finite(left))
    }

    /// Refuses keys of additional members that may end without a quote: masks find the end of a key within a token by
    /// it.
    pub(crate) fn check_closed(&mut self, exprs: &ExprSet, key: ExprId) -> Result<(), GrammarError> {
        let deriver = self.deriver.get_or_insert_with(|| Deriver::over(common_exprs(), Limits::default()));
        let copy = deriver.exprs.import(exprs, key);
        let set = &mut deriver.exprs;
        let (quote, escape, any) = (set.literal(b"\""), set.literal(b"\\"), set.bytes(ByteSet::ALL));
        let plain = set.bytes(ByteSet::of(b'"').union(&ByteSet::of(b'\\')).complement());
        let whitespace = set.bytes(b" \t\r\n".iter().copied().collect());
        let escaped = set.concat(escape, any);
        let character = set.or(&[plain, escaped]);
        let (body, whitespace) = (set.repeat(character, 0, None), set.repeat(whitespace, 0, None));
        let closed = set.concat_all(&[whitespace, quote, body, quote, whitespace]);
        let not_closed = set.not(closed);
        let open = set.and(&[copy, not_closed]);
        if deriver.is_live(open).map_err(|limit| GrammarError::limit("", limit))? {
            let message = "the key of other members may end without a quote, or have one within; end each with the first quote \
                           that is not escaped";
            return Err(GrammarError::new(ErrorKind::Unsupported, "", message));
        }
        Ok(())
    }

    /// Refuses punctuation that may be empty or match nothing, and more counters or alternatives than can be
    /// represented.
    pub(crate) fn check_array(&mut self, exprs: &ExprSet, items: &Items) -> Result<(), GrammarError> {
        let ArraySurface { empty, open, item, close } = items.surface;
        let signs = [empty, open, item, close];
        // In a bare array the elements delimit themselves. Comparing elements needs text between them.
        if signs != [ExprId::EMPTY; 4] || items.compares() {
            self.check_lexemes(exprs, signs.into_iter())?;
        }
        let places = items.prefix.iter().chain([&items.rest]);
        let too_many = |what: &str, limit: usize| {
            let message = format!("an array has more than {limit} {what}; join some of them");
            Err(GrammarError::new(ErrorKind::Limit, "", message))
        };
        if items.contains.len() > MAX_COUNTERS {
            return too_many("counters", MAX_COUNTERS);
        }
        items.check_repeats()?;
        if places.map(|place| place.len()).max().unwrap_or(0) > MAX_ALTERNATIVES {
            return too_many("alternatives at one place", MAX_ALTERNATIVES);
        }
        let known = u32::MAX.checked_shr(32 - items.contains.len() as u32).unwrap_or(0);
        if items.elements().any(|element| element.counts & !known != 0) {
            let message = "an element counts for a counter that the array does not have; describe it";
            return Err(GrammarError::new(ErrorKind::Syntax, "", message));
        }
        Ok(())
    }

    fn check_lexemes(&mut self, exprs: &ExprSet, lexemes: impl Iterator<Item = ExprId>) -> Result<(), GrammarError> {
        for lexeme in lexemes {
            if self.lexemes.insert(lexeme) {
                check_lexeme(exprs, lexeme)?;
            }
        }
        Ok(())
    }
}

fn check_lexeme(exprs: &ExprSet, lexeme: ExprId) -> Result<(), GrammarError> {
    if exprs.is_nullable(lexeme) {
        let message = "a key or a sign of an object or an array may be empty; give each at least one character";
        return Err(GrammarError::new(ErrorKind::Unsupported, "", message));
    }
    let mut is_dead = lexeme == ExprId::NOTHING;
    if exprs.has_boolean(lexeme) {
        let mut deriver = Deriver::new(Limits::default());
        let copy = deriver.exprs.import(exprs, lexeme);
        is_dead = !deriver.is_live(copy).map_err(|limit| GrammarError::limit("", limit))?;
    }
    if is_dead {
        let message = "a key or a sign of an object or an array matches nothing; loosen it";
        return Err(GrammarError::new(ErrorKind::Unsatisfiable, "", message));
    }
    Ok(())
}
