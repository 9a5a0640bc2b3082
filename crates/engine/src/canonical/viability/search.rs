//! Whether the grammar can go on after a token as the tokenizer would.
//!
//! A token is viable when some text of the grammar that begins with it is written by the tokenizer with a boundary after it.
//! Nearly always one look at the next bytes decides: one of them certainly begins another piece, or a symbol that nothing
//! merges with. Where the next text is narrow, as after the quote of a key, the tokens that may come next are searched, nearest
//! first and within a limit.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;
use stencilm_support::{FEW, LOOKED_AT, MANY};

use crate::canonical::cursor::by_place::CursorId;
use crate::canonical::cursor::masks::CursorMasks;
use crate::canonical::cursor::next::Next;
use crate::canonical::cursor::next_bytes::{Ahead, Listed};
use crate::canonical::cursor::table::Cursors;
use crate::canonical::encoder::facts::Encoder;
use crate::error::EngineError;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, SetId};
use crate::switches::Switch;

/// The end of a token: where the grammar and the tokenizer stand there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenEnd {
    pub configuration: SetId,
    pub token: u32,
    pub place: CursorId,
}

/// What was found so far within one operation, for which numbers of configurations are good.
#[derive(Default)]
pub(crate) struct Found {
    /// What was found of tokens, and whether beyond the lexeme: `None` while it is looked for.
    known: FxHashMap<TokenEnd, Option<(bool, bool)>>,
    /// What is known of configurations alone.
    pub ahead: Ahead,
}

impl Found {
    /// Forgets everything, but keeps the room for as much: most masks ask, and each little.
    fn begin(&mut self) {
        if self.known.capacity() > LOOKED_AT {
            self.known = FxHashMap::default();
        }
        self.known.clear();
        self.ahead.begin();
    }
}

/// A search for a continuation.
pub(crate) struct Search<'e> {
    pub encoding: &'e Encoder,
    pub places: &'e mut Cursors,
    pub cursor_masks: &'e mut CursorMasks,
    pub found: &'e mut Found,
    /// How many nodes were looked at after the token in question.
    looked: usize,
    /// How many after all of them.
    pub looked_in_all: usize,
    /// Whether an answer hangs on one that is still looked for.
    circular: bool,
    /// Whether the search for the token in question was too long.
    given_up: bool,
    /// A thread to stay with: whether the search went where something else than its lexeme is read.
    home: Option<Entry>,
    /// The last such thread: what is known of others says nothing of it.
    known_home: Option<Entry>,
    pub has_left: bool,
}

impl<'e> Search<'e> {
    /// A search of an operation, which has found nothing yet.
    pub fn new(
        encoding: &'e Encoder,
        places: &'e mut Cursors,
        cursor_masks: &'e mut CursorMasks,
        found: &'e mut Found,
    ) -> Search<'e> {
        found.begin();
        Search {
            encoding,
            places,
            cursor_masks,
            found,
            looked: 0,
            looked_in_all: 0,
            circular: false,
            given_up: false,
            home: None,
            known_home: None,
            has_left: false,
        }
    }

    /// From now on notes in `has_left` whether a search went beyond the lexeme that a thread reads. Forgets what it found for
    /// another one.
    pub fn stay_with(&mut self, thread: Option<Entry>) {
        if thread.is_some() && self.known_home != thread {
            self.found.known.clear();
            self.known_home = thread;
        }
        self.home = thread;
    }

    /// Whether there is a continuation from the end of a token; `None` where the search was given up.
    pub fn is_viable(&mut self, run: &mut Run<'_>, end: TokenEnd) -> Result<Option<bool>, EngineError> {
        (self.looked, self.circular, self.given_up, self.has_left) = (0, false, false, false);
        let found = self.search(run, end, 0)?;
        self.looked_in_all += self.looked;
        Ok(if self.given_up { None } else { Some(found) })
    }

    fn search(&mut self, run: &mut Run<'_>, end: TokenEnd, depth: usize) -> Result<bool, EngineError> {
        if end.configuration == SetId::EMPTY {
            return Ok(false);
        }
        // A continuation says something of its own path only, the lack of one of all paths.
        let is_beyond = self.is_beyond(run, end.configuration);
        let before = std::mem::replace(&mut self.has_left, is_beyond);
        let found = self.search_here(run, end, depth)?;
        self.has_left |= is_beyond || (!found && before);
        Ok(found)
    }

    /// Whether a configuration is beyond the lexeme to stay with.
    fn is_beyond(&self, run: &Run<'_>, configuration: SetId) -> bool {
        self.home.is_none_or(|home| is_other(run.stacks.entries(configuration), &[home]))
    }

    fn search_here(&mut self, run: &mut Run<'_>, end: TokenEnd, depth: usize) -> Result<bool, EngineError> {
        let next = *self.found.ahead.next(run, end.configuration)?;
        let merging = self.encoding.merging(end.token);
        let settling = self.encoding.settling_bytes(self.places.cursor(end.place), &merging, &next.certain);
        if !settling.is_empty() {
            return Ok(true);
        }
        // Within a lexeme it counts whether something beyond it was looked at.
        if Switch::CanonicalForced.is_on()
            && self.home.is_none()
            && !next.may_end
            && next.bytes.single().is_some()
            && let Some(decided) = self.by_forced_text(run, end)?
        {
            debug_assert!(self.agrees(run, end, decided)?);
            return Ok(decided);
        }
        if let (Some(decided), beyond) = self.decided_in_lexeme(run, end)? {
            self.has_left |= beyond;
            return Ok(decided);
        }
        // Where that does not decide, the token is taken to be viable.
        if depth >= FEW || self.looked > LOOKED_AT {
            self.given_up = true;
            return Ok(true);
        }
        match self.found.known.get(&end) {
            Some(&Some((known, left))) if Switch::CanonicalSearched.is_on() => {
                self.has_left |= left;
                return Ok(known);
            }
            Some(None) => {
                self.circular = true;
                return Ok(false);
            }
            _ => {}
        }
        self.found.known.insert(end, None);
        let circular = std::mem::replace(&mut self.circular, false);
        let found = self.some_token_is_viable(run, end, depth)?;
        if found || !self.circular {
            self.found.known.insert(end, Some((found, self.has_left)));
        } else {
            self.found.known.remove(&end);
        }
        self.circular |= circular;
        Ok(found)
    }

    /// The slow twin of what forced texts decide: by the grammar itself.
    fn agrees(&mut self, run: &mut Run<'_>, end: TokenEnd, decided: bool) -> Result<bool, EngineError> {
        let found = match self.decided(run, end)? {
            Some(found) => found,
            None => {
                let (looked, circular, given_up) = (self.looked, self.circular, self.given_up);
                let mut found = self.some_token_is_viable(run, end, 0)?;
                if self.given_up || self.circular {
                    found = decided;
                }
                (self.looked, self.circular, self.given_up) = (looked, circular, given_up);
                found
            }
        };
        Ok(found == decided)
    }

    /// Whether a viable token is written in all texts that go on so; `false` where that is not known.
    pub fn is_in_all_texts(&mut self, run: &mut Run<'_>, end: TokenEnd) -> Result<bool, EngineError> {
        let Next { bytes, may_end, .. } = *self.found.ahead.next(run, end.configuration)?;
        if may_end && !self.places.may_end(self.encoding, end.place) {
            return Ok(false);
        }
        if self.encoding.settling_bytes(self.places.cursor(end.place), &self.encoding.merging(end.token), &bytes)
            == bytes
        {
            return Ok(true);
        }
        // What a text that comes in any case decides holds for all that goes on with it.
        Ok(!may_end && bytes.single().is_some() && self.by_forced_text(run, end)? == Some(true))
    }

    /// Whether some of these bytes, and something after it, may come.
    pub fn may_come(&mut self, run: &mut Run<'_>, configuration: SetId, bytes: &ByteSet) -> Result<bool, EngineError> {
        let Next { bytes: next, certain, .. } = *self.found.ahead.next(run, configuration)?;
        if !certain.intersect(bytes).is_empty() {
            return Ok(true);
        }
        for byte in next.intersect(bytes).iter() {
            if self.step(run, configuration, byte)? != SetId::EMPTY {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What the next few characters decide.
    pub fn decided(&mut self, run: &mut Run<'_>, end: TokenEnd) -> Result<Option<bool>, EngineError> {
        Ok(self.decided_in_lexeme(run, end)?.0)
    }

    /// The same, and whether characters were looked at that come after the lexemes of the configuration.
    fn decided_in_lexeme(&mut self, run: &mut Run<'_>, end: TokenEnd) -> Result<(Option<bool>, bool), EngineError> {
        let (encoding, TokenEnd { configuration, token, place }) = (self.encoding, end);
        let Next { bytes, certain, may_end } = *self.found.ahead.next(run, configuration)?;
        if may_end && self.places.may_end(encoding, place) {
            return Ok((Some(true), false));
        }
        let merging = encoding.merging(token);
        let settling = encoding.settling_bytes(self.places.cursor(place), &merging, &bytes);
        if !settling.intersect(&certain).is_empty() {
            return Ok((Some(true), false));
        }
        for byte in settling.iter() {
            if self.step(run, configuration, byte)? != SetId::EMPTY {
                return Ok((Some(true), false));
            }
        }
        let Search { places, found, .. } = self;
        let ahead = RefCell::new((run, &mut found.ahead));
        let mut beyond = false;
        let decided = encoding.keeps_end(
            places,
            place,
            token,
            configuration,
            &mut |here| {
                let (run, ahead) = &mut *ahead.borrow_mut();
                Ok::<_, EngineError>(ahead.next(run, here)?.bytes)
            },
            &mut |here, byte| {
                let (run, ahead) = &mut *ahead.borrow_mut();
                let next = ahead.step(run, here, byte)?;
                beyond |= is_other(run.stacks.entries(next), run.stacks.entries(configuration));
                Ok((next != SetId::EMPTY).then_some(next))
            },
        )?;
        Ok((decided, beyond))
    }

    fn some_token_is_viable(&mut self, run: &mut Run<'_>, end: TokenEnd, depth: usize) -> Result<bool, EngineError> {
        let encoding = self.encoding;
        let vocabulary = encoding.tokens();
        let trie = vocabulary.trie();
        let TokenEnd { configuration, token, place } = end;
        if Switch::CanonicalListed.is_on()
            && let Some(listed) = self.few_that_are_read(run, configuration)?
        {
            return self.some_listed_is_viable(run, &listed, end, depth);
        }
        let bytes = self.next_bytes(run, configuration)?.0;
        if Switch::CanonicalFollowers.is_on()
            && trie.nodes_after(bytes) > MANY
            && let Some(few) = self.few_that_follow((token, place), bytes)
        {
            let mut some_beyond = false;
            for &(next, after) in few.iter() {
                let (here, beyond) = self.run_within(run, configuration, next)?;
                if here != SetId::EMPTY
                    && self.search(run, TokenEnd { configuration: here, token: next, place: after }, depth + 1)?
                {
                    self.has_left |= beyond;
                    return Ok(true);
                }
                some_beyond |= beyond;
            }
            self.has_left |= some_beyond;
            return Ok(false);
        }
        // Configurations on the path, each with the bytes that may be live, for what cannot come costs no step, and whether the
        // path there is beyond the lexeme.
        let mut path = vec![(configuration, bytes, false)];
        let mut some_beyond = false;
        for (mut node, after) in trie.roots(bytes) {
            while node < after {
                path.truncate(trie.depth(node));
                let &(above, alive, beyond) = path.last().expect("the path begins with the configuration at the root");
                if !alive.contains(trie.byte(node)) {
                    node += trie.size(node);
                    continue;
                }
                self.looked += 1;
                if self.looked > LOOKED_AT {
                    self.given_up = true;
                    return Ok(true);
                }
                let here = self.step(run, above, trie.byte(node))?;
                if here == SetId::EMPTY {
                    node += trie.size(node);
                    continue;
                }
                let beyond = beyond || self.is_beyond(run, here);
                some_beyond |= beyond;
                if let Some(entry) = trie.entry_at(node) {
                    for next in std::iter::once(entry).chain(vocabulary.same_bytes(entry).iter().copied()) {
                        if self.follows(run, here, end, next, depth)? {
                            self.has_left |= beyond;
                            return Ok(true);
                        }
                    }
                }
                let alive = self.next_bytes(run, here)?.0;
                path.push((here, alive, beyond));
                node += 1;
            }
        }
        self.has_left |= some_beyond;
        Ok(false)
    }

    /// The same where the tokens that the grammar reads are few.
    fn some_listed_is_viable(
        &mut self,
        run: &mut Run<'_>,
        listed: &Listed,
        end: TokenEnd,
        depth: usize,
    ) -> Result<bool, EngineError> {
        self.looked += listed.tokens.len();
        for &(next, here, beyond) in listed.tokens.iter() {
            if self.follows(run, here, end, next, depth)? {
                self.has_left |= beyond;
                return Ok(true);
            }
        }
        self.has_left |= listed.some_beyond;
        Ok(false)
    }

    /// Whether a token fits after another one and is viable, where the configuration is known.
    fn follows(
        &mut self,
        run: &mut Run<'_>,
        configuration: SetId,
        before: TokenEnd,
        next: u32,
        depth: usize,
    ) -> Result<bool, EngineError> {
        match self.encoding.follow(self.places, before.place, Some(before.token), next) {
            Some(place) => self.search(run, TokenEnd { configuration, token: next, place }, depth + 1),
            None => Ok(false),
        }
    }

    /// The live bytes, perhaps some more; and whether the text, or this stretch of it, may end here.
    pub fn next_bytes(&mut self, run: &mut Run<'_>, configuration: SetId) -> Result<(ByteSet, bool), EngineError> {
        let &Next { bytes, may_end, .. } = self.found.ahead.next(run, configuration)?;
        Ok((bytes, may_end))
    }

    /// The bytes that are certainly live.
    pub fn settling_bytes(&mut self, run: &mut Run<'_>, configuration: SetId) -> Result<ByteSet, EngineError> {
        Ok(self.found.ahead.next(run, configuration)?.certain)
    }

    /// The configuration after a byte.
    pub fn step(&mut self, run: &mut Run<'_>, configuration: SetId, byte: u8) -> Result<SetId, EngineError> {
        self.found.ahead.step(run, configuration, byte)
    }

    /// The configuration after some bytes.
    pub fn run(&mut self, run: &mut Run<'_>, configuration: SetId, bytes: &[u8]) -> Result<SetId, EngineError> {
        let mut here = configuration;
        for &byte in bytes {
            here = self.step(run, here, byte)?;
            if here == SetId::EMPTY {
                break;
            }
        }
        Ok(here)
    }

    /// The end of a token that follows a configuration, where the tokenizer stands at a place after it.
    pub fn end_of(
        &mut self,
        run: &mut Run<'_>,
        start: SetId,
        token: u32,
        place: CursorId,
    ) -> Result<TokenEnd, EngineError> {
        let bytes = self.encoding.tokens().token_bytes(token).unwrap_or_default();
        Ok(TokenEnd { configuration: self.run(run, start, bytes)?, token, place })
    }

    /// The configuration after a token, and whether the path there is beyond the lexeme.
    fn run_within(
        &mut self,
        run: &mut Run<'_>,
        configuration: SetId,
        token: u32,
    ) -> Result<(SetId, bool), EngineError> {
        let vocabulary = self.encoding.tokens();
        let (mut here, mut beyond) = (configuration, false);
        for &byte in vocabulary.token_bytes(token).unwrap_or_default() {
            here = self.step(run, here, byte)?;
            if here == SetId::EMPTY {
                break;
            }
            beyond = beyond || self.is_beyond(run, here);
        }
        Ok((here, beyond))
    }
}

/// Whether some threads are none of these, wherever those are in their lexemes.
pub(crate) fn is_other(threads: &[Entry], known: &[Entry]) -> bool {
    let same = |a: &Entry, b: &Entry| Entry { state: b.state, ..*a } == *b;
    threads.iter().any(|thread| !known.iter().any(|known| same(thread, known)))
}
