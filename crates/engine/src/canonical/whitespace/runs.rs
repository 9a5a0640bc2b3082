//! Whitespace tokens, of which vocabularies have hundreds: whether one has a continuation depends on what may follow
//! whitespace and on how much may still come, in every grammar.

use std::convert::Infallible;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;
use stencilm_support::Bounded;

use super::json::{JSON_WHITESPACE, json_whitespace};
use crate::canonical::cursor::table::{CursorId, Cursors};
use crate::canonical::encoder::facts::{Encoder, Role};
use crate::state::stacks::SetId;

/// With this much whitespace left, the exact number makes no difference.
const FAR_WHITESPACE: usize = 8;

/// A configuration before whitespace. Everything that is live after whitespace is also live after more of it, and leads
/// to the same: this holds how much may come, and the configuration.
#[derive(Clone, Copy)]
pub(crate) struct BeforeWhitespace {
    pub same: SetId,
    /// The bytes that may come, including whitespace.
    pub next: ByteSet,
    pub left: usize,
    /// Whether all threads allow exactly that much.
    pub is_exact: bool,
}

impl BeforeWhitespace {
    /// What [`KnownWhitespace::is_viable`] needs of it, if no token has more than `longest` bytes.
    pub fn bounds(self, longest: usize) -> (usize, bool) {
        (self.left.min(longest + FAR_WHITESPACE), self.is_exact)
    }

    /// Whether this much whitespace leads to the same configuration, apart from how much may still come.
    pub fn are_far(self, whitespace: usize) -> bool {
        whitespace + FAR_WHITESPACE <= self.left
    }
}

/// By the bytes that may follow, the cursor after a whitespace token, and what merges with the token.
pub(crate) type KnownNeedsCache = Bounded<(ByteSet, CursorId, u32), KnownNeeds>;

/// Where the whitespace tokens lead from a cursor. Tokens with the same cursor after them and the same merges are one
/// class.
pub(crate) struct WhitespaceAt {
    /// By token, where no merge joins it with the token before, and where one does; `None` where it does not fit.
    classes: Vec<[Option<u32>; 2]>,
    /// For each class, a token and the cursor after it.
    examples: Vec<(u32, CursorId)>,
}

impl WhitespaceAt {
    pub fn new(encoding: &Encoder, cursors: &mut Cursors, cursor: CursorId) -> WhitespaceAt {
        let mut numbers: FxHashMap<(CursorId, u32), u32> = FxHashMap::default();
        let mut examples = Vec::new();
        let mut classes = |&token: &u32| {
            cursors.advance_both(encoding, cursor, token).map(|after| {
                let after = after?;
                Some(*numbers.entry((after, encoding.merges.merging_number(token))).or_insert_with(|| {
                    examples.push((token, after));
                    examples.len() as u32 - 1
                }))
            })
        };
        let classes = encoding.whitespace_tokens.iter().map(&mut classes).collect();
        WhitespaceAt { classes, examples }
    }

    /// The approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.classes.len() * size_of::<[Option<u32>; 2]>() + self.examples.len() * 8
    }
}

/// By expansion and state: how much whitespace a lexeme may continue with, see [`Run::whitespace_in_lexeme`].
pub(crate) type WhitespaceInLexemes = Bounded<(u32, u32), Option<usize>>;

/// Whitespace tokens that fit after a token, by whether they have a continuation.
pub(crate) struct DecidedWhitespace {
    /// Those that have one, ascending.
    pub viable: Vec<u32>,
    /// The undecided ones, each with the cursor after it.
    pub open: Vec<(u32, CursorId)>,
}

impl DecidedWhitespace {
    /// Collects them for a token.
    pub fn of(
        encoding: &Encoder,
        known: &KnownWhitespace,
        before: &BeforeWhitespace,
        last: Option<u32>,
    ) -> DecidedWhitespace {
        let mut decided = DecidedWhitespace { viable: Vec::new(), open: Vec::new() };
        for (token, (number, len)) in numbered(encoding) {
            let unmerged = encoding.stay_unmerged(last, token);
            let Some(class) = known.at.classes[number][usize::from(!unmerged)] else { continue };
            match known.needs[class as usize].is_viable(len, before) {
                Some(true) => decided.viable.push(token),
                Some(false) => {}
                None => decided.open.push((token, known.at.examples[class as usize].1)),
            }
        }
        decided
    }

    /// The approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&self.viable[..]) + size_of_val(&self.open[..]) + size_of::<DecidedWhitespace>()
    }
}

/// Whitespace tokens at a cursor, for every token before it.
#[derive(Default)]
pub(crate) struct DecidedAnyway {
    /// The tokens that are not viable, where no merge joins them with the token before, and where one does; ascending.
    pub dead: [Vec<u32>; 2],
    /// The undecided tokens.
    pub open: Vec<u32>,
}

impl DecidedAnyway {
    /// Collects them from the results at a cursor.
    pub fn of(encoding: &Encoder, known: &KnownWhitespace, before: &BeforeWhitespace) -> DecidedAnyway {
        let mut decided = DecidedAnyway::default();
        // No mask has more whitespace than may come.
        let all = numbered(encoding).filter(|&(_, (_, len))| !before.is_exact || len <= before.left);
        for (token, candidate) in all {
            match known.is_viable_anyway(candidate, before) {
                Some(answers) => {
                    let dead = decided.dead.iter_mut().zip(answers).filter(|&(_, is_viable)| is_viable == Some(false));
                    dead.for_each(|(dead, _)| dead.push(token));
                }
                None => decided.open.push(token),
            }
        }
        decided
    }

    /// The approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        (self.dead[0].len() + self.dead[1].len() + self.open.len()) * 4 + size_of::<DecidedAnyway>()
    }
}

/// The results about the whitespace tokens at a cursor, by what may follow whitespace.
pub(crate) struct KnownWhitespace {
    at: Arc<WhitespaceAt>,
    /// By class.
    needs: Box<[KnownNeeds]>,
}

/// A whitespace token, given by its index among them and its length.
pub(crate) type NumberedToken = (usize, usize);

/// All whitespace tokens.
pub(crate) fn numbered(encoding: &Encoder) -> impl Iterator<Item = (u32, NumberedToken)> + '_ {
    let len = |token: u32| encoding.tokens().token_bytes(token).map_or(0, <[u8]>::len);
    encoding.whitespace_tokens.iter().enumerate().map(move |(number, &token)| (token, (number, len(token))))
}

/// The results about the whitespace tokens of one class.
#[derive(Clone, Copy)]
pub(crate) struct KnownNeeds {
    /// How much whitespace must still be allowed after the token, so that it has a continuation in every grammar.
    needs: Option<usize>,
    /// Whether there is no continuation if no more whitespace may come.
    is_dead_at_last: bool,
}

impl KnownWhitespace {
    /// The results if these bytes, including whitespace, may follow.
    pub fn new(
        encoding: &Encoder,
        cursors: &mut Cursors,
        known_needs: &mut KnownNeedsCache,
        next: &ByteSet,
        at: Arc<WhitespaceAt>,
    ) -> KnownWhitespace {
        let needs =
            at.examples.iter().map(|&example| KnownNeeds::of(encoding, cursors, known_needs, next, example)).collect();
        KnownWhitespace { at, needs }
    }

    /// Whether a token is viable, unmerged and merged, if both are known as far as it fits.
    pub fn is_viable_anyway(
        &self,
        (number, len): NumberedToken,
        before: &BeforeWhitespace,
    ) -> Option<[Option<bool>; 2]> {
        let mut answers = [None; 2];
        for (class, answer) in self.at.classes[number].iter().zip(&mut answers) {
            if let Some(class) = class {
                *answer = Some(self.needs[*class as usize].is_viable(len, before)?);
            }
        }
        Some(answers)
    }

    /// The approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.needs.len() * size_of::<KnownNeeds>()
    }
}

impl KnownNeeds {
    /// The result for a token, given the cursor after it, if these bytes, including whitespace, may follow.
    pub fn of(
        encoding: &Encoder,
        cursors: &mut Cursors,
        known: &mut KnownNeedsCache,
        next: &ByteSet,
        (token, after): (u32, CursorId),
    ) -> KnownNeeds {
        let key = (*next, after, encoding.merges.merging_number(token));
        if let Some(&known) = known.get(&key) {
            return known;
        }
        let need = KnownNeeds::new(encoding, cursors, next, token, after);
        known.insert(key, need, 0);
        need
    }

    /// Whether there is a continuation after this much whitespace; `None` where that is not known.
    pub fn is_viable(self, whitespace: usize, before: &BeforeWhitespace) -> Option<bool> {
        let left = before.left.checked_sub(whitespace)?;
        if self.needs.is_some_and(|needs| needs <= left) {
            return Some(true);
        }
        (left == 0 && self.is_dead_at_last && before.is_exact).then_some(false)
    }

    fn new(encoding: &Encoder, cursors: &mut Cursors, next: &ByteSet, token: u32, after: CursorId) -> KnownNeeds {
        let is_dead_at_last = nothing_follows(encoding, cursors, &without_whitespace(next), after);
        let mut is_viable = |left: usize| is_always_viable(encoding, cursors, next, token, after, left);
        // Nearly always one more character is needed, since the last one merges with what follows.
        let needs = match is_viable(1) {
            true if !is_dead_at_last && is_viable(0) => Some(0),
            true => Some(1),
            false if is_viable(FAR_WHITESPACE) => {
                (2..FAR_WHITESPACE).find(|&left| is_viable(left)).or(Some(FAR_WHITESPACE))
            }
            false => None,
        };
        KnownNeeds { needs, is_dead_at_last }
    }
}

pub(crate) fn without_whitespace(bytes: &ByteSet) -> ByteSet {
    bytes.intersect(&json_whitespace().complement())
}

/// Whether a whitespace token has a continuation, if these bytes, including whitespace, may follow, and at most `left`
/// bytes of whitespace.
fn is_always_viable(
    encoding: &Encoder,
    cursors: &mut Cursors,
    next: &ByteSet,
    token: u32,
    after: CursorId,
    left: usize,
) -> bool {
    let others = without_whitespace(next);
    let first = if left > 0 { next } else { &others };
    if !encoding.settling_bytes(cursors.key(after), token, first).is_empty() {
        return true;
    }
    // After whitespace the same bytes may follow again; what follows anything else is not known here.
    let mut bytes = |left: Option<usize>| {
        Ok::<_, Infallible>(match left {
            Some(0) => others,
            Some(_) => *next,
            None => ByteSet::EMPTY,
        })
    };
    let mut step =
        |left: Option<usize>, byte: u8| Ok(Some(left.filter(|_| JSON_WHITESPACE.contains(&byte)).map(|left| left - 1)));
    let Ok(keeps) = encoding.keeps_end(cursors, after, token, Some(left), &mut bytes, &mut step);
    keeps == Some(true)
}

/// Whether no token that begins with one of these bytes fits a cursor, whatever comes before it.
fn nothing_follows(encoding: &Encoder, cursors: &mut Cursors, bytes: &ByteSet, cursor: CursorId) -> bool {
    let ascii = bytes.intersect(&ByteSet::ASCII);
    if ascii != *bytes {
        return false;
    }
    let roles = (0..4).map(|what| Role { is_byte: what & 1 > 0, is_whole: what & 2 > 0 });
    let has = |role: &Role| {
        (!role.is_byte || encoding.by_characters()) && (!role.is_whole || encoding.whole_pieces.is_some())
    };
    for (role, unmerged) in roles.filter(has).flat_map(|role| [(role, true), (role, false)]) {
        let Some(begun) = cursors.begin(encoding, cursor, role, unmerged) else { continue };
        if ascii.iter().any(|byte| cursors.read(encoding, begun, byte).is_some()) {
            return false;
        }
    }
    true
}
