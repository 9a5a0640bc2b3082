//! Whether the grammar can go on behind a token as the tokenizer would: what keeps canonical masks from dead ends.
//!
//! A token leads on when some text of the grammar that begins with it is written by the tokenizer with a boundary behind it.
//! Nearly always one look at the next bytes tells: one of them surely begins another piece, or a symbol that nothing merges
//! with. Where the next text is narrow, as behind the quote of a key, the tokens that may come next are searched, nearest
//! first and within a limit.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, StateId};

use super::{Cursor, Encoding};
use crate::error::EngineError;
use crate::fork::{Automaton, Fork, IN_BLANKS};
use crate::lexicon::{DfaId, Lexicon};
use crate::machine::ForkId;
use crate::row::{MAX_LISTED, Row};
use crate::run::{Run, offers_tokens};
use crate::stacks::{Entry, SetId};
use crate::tokens::Tokens;
use crate::tokenset::{self, TokenSet};

/// So many nodes of the trie are looked at behind one token, and behind all tokens of a mask; where that does not tell, the
/// token is taken to lead on.
const MAX_STEPS: usize = 1_000;
const MAX_STEPS_OF_MASK: usize = 10_000;
/// So many tokens are looked ahead.
const MAX_DEPTH: usize = 24;
/// With so many blanks left their number makes no difference.
const FAR_BLANKS: usize = 8;
/// What may stand between the tokens of JSON.
const JSON_BLANKS: [u8; 4] = *b" \t\n\r";
/// The rows whose sure tokens are kept.
const MAX_SURE_ROWS: usize = 256;

/// Tokens of a mask behind which nothing leads on.
#[derive(Default)]
pub(crate) struct DeadEnds {
    /// Where no merge joins them with the token before, ascending.
    apart: Box<[u32]>,
    /// Where one does, ascending.
    joined: Box<[u32]>,
}

impl DeadEnds {
    /// Takes them out of a mask behind a token; says how many they were.
    pub fn clear(&self, encoding: &Encoding, before: Option<u32>, mask: &mut [u32]) -> usize {
        let mut cleared = 0;
        let same = self.apart == self.joined;
        for (tokens, apart) in [(&self.apart, true), (&self.joined, false)] {
            for &token in tokens {
                if tokenset::get(mask, token) && (same || encoding.stay_apart(before, token) == apart) {
                    tokenset::clear(mask, token);
                    cleared += 1;
                }
            }
        }
        cleared
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        (self.apart.len() + self.joined.len()) * 4 + size_of::<DeadEnds>()
    }
}

/// For rows of wide lexemes the tokens that surely lead on within them.
#[derive(Default)]
pub(super) struct SureRows {
    rows: FxHashMap<usize, SureRow>,
    /// By cursor and by the bytes that may follow blanks: the tokens of blanks that surely lead on.
    sure_blanks: FxHashMap<(Cursor, ByteSet), Arc<WithLengths>>,
    /// By cursor what is behind the tokens of blanks, which are many.
    blanks: FxHashMap<Cursor, Arc<FxHashMap<u32, Behind>>>,
}

struct SureRow {
    /// Kept, so that no other row gets its place in memory.
    _row: Arc<Row>,
    /// Those that do wherever they come.
    anywhere: TokenSet,
    /// The others that the lexeme reads.
    others: Vec<u32>,
    /// All that do at a cursor.
    at: FxHashMap<Cursor, Arc<TokenSet>>,
    /// The tokens that leave the lexeme, by cursor.
    exits: FxHashMap<Cursor, Arc<ExitGroups>>,
}

/// Tokens that leave a lexeme with the same bytes behind it, that have the same cursor behind them, and merge with the same.
type ExitGroups = Vec<(Cursor, Vec<u32>)>;

fn exit_groups(encoding: &Encoding, cursor: &Cursor, row: &Row) -> ExitGroups {
    let mut groups: ExitGroups = Vec::new();
    for exits in row.exits.iter().flat_map(|exits| exits.iter()) {
        let suffixes = exits.suffixes();
        for suffix in (0..suffixes.len()).filter_map(|node| suffixes.entry_at(node)) {
            let first = groups.len();
            for token in exits.tokens(suffix) {
                let (Some(alone), merged) = behind(encoding, cursor, token) else { continue };
                if merged.is_some_and(|merged| merged != alone) {
                    continue;
                }
                let merging = encoding.merging(token);
                let same =
                    |(known, group): &&mut (Cursor, Vec<u32>)| *known == alone && encoding.merging(group[0]) == merging;
                match groups[first..].iter_mut().find(same) {
                    Some((_, group)) => group.push(token),
                    None => groups.push((alone, vec![token])),
                }
            }
        }
    }
    groups
}

/// Tokens, each with its length.
type WithLengths = Vec<(u32, usize)>;

/// The cursors behind a token: where no merge joins it with the token before, and where one does.
type Behind = (Option<Cursor>, Option<Cursor>);

fn behind(encoding: &Encoding, cursor: &Cursor, token: u32) -> Behind {
    (cursor.advance(encoding, token, true), cursor.advance(encoding, token, false))
}

impl SureRows {
    /// The cursors behind all tokens of nothing but blanks.
    fn behind(&mut self, encoding: &Encoding, cursor: &Cursor) -> Arc<FxHashMap<u32, Behind>> {
        if let Some(known) = self.blanks.get(cursor) {
            return known.clone();
        }
        if self.blanks.len() >= MAX_SURE_ROWS {
            self.blanks.clear();
        }
        let tokens = encoding.blank_tokens.iter();
        let found =
            Arc::new(tokens.map(|&token| (token, behind(encoding, cursor, token))).collect::<FxHashMap<_, _>>());
        self.blanks.insert(cursor.clone(), found.clone());
        found
    }

    /// The tokens of blanks that surely lead on where these bytes, blanks among them, may follow; with their lengths.
    fn behind_blanks(&mut self, encoding: &Encoding, cursor: &Cursor, next: ByteSet) -> Arc<WithLengths> {
        let key = (cursor.clone(), next);
        if let Some(known) = self.sure_blanks.get(&key) {
            return known.clone();
        }
        let all = self.behind(encoding, cursor);
        let leads_on = |token: u32, cursor: &Option<Cursor>| {
            cursor.as_ref().is_none_or(|cursor| {
                let sure = !encoding.sure_bytes(cursor, token, &next).is_empty();
                // Behind a blank the same may follow again; what follows anything else is not known here.
                let mut bytes = |known: bool| Ok::<_, Infallible>(if known { next } else { ByteSet::EMPTY });
                let mut step = |_, byte: u8| Ok(Some(JSON_BLANKS.contains(&byte)));
                let Ok(keeps) = encoding.keeps_end(cursor, token, true, &mut bytes, &mut step);
                sure || keeps == Some(true)
            })
        };
        let tokens = encoding.blank_tokens.iter().copied();
        let sure = tokens.filter(|token| {
            all.get(token).is_some_and(|(alone, merged)| leads_on(*token, alone) && leads_on(*token, merged))
        });
        let len = |token| encoding.tokens().token_bytes(token).map_or(0, <[u8]>::len);
        let sure = Arc::new(sure.map(|token| (token, len(token))).collect::<WithLengths>());
        if self.sure_blanks.len() >= MAX_SURE_ROWS {
            self.sure_blanks.clear();
        }
        self.sure_blanks.insert(key, sure.clone());
        sure
    }

    /// Keeps that a token leads on within a lexeme at a cursor.
    fn add(&mut self, row: usize, cursor: &Cursor, token: u32) {
        if let Some(tokens) = self.rows.get_mut(&row).and_then(|row| row.at.get_mut(cursor)) {
            Arc::make_mut(tokens).insert(token);
        }
    }
}

/// One search.
struct Search<'e> {
    encoding: &'e Encoding,
    vocabulary: &'e Tokens,
    /// What was found: `None` while it is looked for.
    known: FxHashMap<(SetId, u32, Cursor), Option<bool>>,
    next: FxHashMap<SetId, (ByteSet, bool)>,
    survives: FxHashMap<(SetId, u8), bool>,
    kept: Vec<Kept>,
    steps: usize,
    /// Whether an answer hangs on one that is still looked for.
    circular: bool,
}

/// Whether tokens that merge with the same keep their ends at a cursor.
struct Kept {
    configuration: SetId,
    merging: ByteSet,
    cursor: Cursor,
    keeps: Option<bool>,
}

impl Kept {
    fn matches(&self, configuration: SetId, merging: &ByteSet, cursor: &Cursor) -> bool {
        self.configuration == configuration && self.merging == *merging && self.cursor == *cursor
    }
}

impl<'e> Search<'e> {
    fn new(encoding: &'e Encoding) -> Search<'e> {
        Search {
            encoding,
            vocabulary: encoding.tokens(),
            known: FxHashMap::default(),
            next: FxHashMap::default(),
            survives: FxHashMap::default(),
            kept: Vec::new(),
            steps: 0,
            circular: false,
        }
    }
}

impl Run<'_> {
    /// The dead ends among the tokens of a mask, at a cursor.
    pub fn dead_ends(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        cursor: &Cursor,
        mask: &[u32],
    ) -> Result<DeadEnds, EngineError> {
        let vocabulary = encoding.tokens();
        let mut sure = encoding.sure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut doubtful: Vec<u32> = mask.to_vec();
        let mut rows = Vec::new();
        for thread in self.stacks.entries(configuration).to_vec() {
            if let Some((row, tokens)) = self.sure_tokens(encoding, &mut sure, thread, cursor)? {
                doubtful.iter_mut().zip(tokens.words()).for_each(|(word, sure)| *word &= !sure);
                rows.push(row);
            }
        }
        let (mut apart, mut joined) = (Vec::new(), Vec::new());
        let mut search = Search::new(encoding);
        let mut all_steps = 0;
        let blanks = self.blanks_only(configuration)?;
        if let Some((same, left)) = blanks {
            let next = self.surviving_bytes(same)?;
            let tokens = sure.behind_blanks(encoding, cursor, next);
            for &(token, _) in tokens.iter().filter(|&&(_, len)| len + FAR_BLANKS <= left) {
                tokenset::clear(&mut doubtful, token);
            }
        }
        if let [thread] = *self.stacks.entries(configuration) {
            self.clear_exits(encoding, &mut sure, configuration, (cursor, thread), mask, &mut doubtful)?;
        }
        let behind_tokens = sure.behind(encoding, cursor);
        for token in tokenset::iter(&doubtful) {
            let Some(bytes) = vocabulary.token_bytes(token) else { continue };
            let (alone, merged) = match behind_tokens.get(&token) {
                Some(known) => known.clone(),
                None => behind(encoding, cursor, token),
            };
            if (alone.is_none() && merged.is_none()) || all_steps > MAX_STEPS_OF_MASK {
                continue;
            }
            let reached = match blanks {
                // Far from their bound, counts of blanks make no difference.
                Some((same, left)) if bytes.len() + FAR_BLANKS <= left && encoding.is_blank(token) => same,
                _ => self.run(configuration, bytes)?,
            };
            let mut leads_on = |run: &mut Self, cursor: &Cursor| {
                search.steps = 0;
                search.circular = false;
                let found = run.leads_on(&mut search, reached, token, cursor, 0);
                all_steps += search.steps;
                found
            };
            let alone_leads = alone.as_ref().map(|cursor| leads_on(self, cursor)).transpose()?;
            if alone_leads == Some(false) {
                apart.push(token);
            }
            let merged_leads = match &merged {
                Some(_) if merged == alone => alone_leads,
                Some(cursor) => Some(leads_on(self, cursor)?),
                None => None,
            };
            if merged_leads == Some(false) {
                joined.push(token);
            }
            if alone_leads != Some(false)
                && merged_leads != Some(false)
                && alone.is_some_and(|cursor| cursor.within_character())
            {
                // How a character goes on is up to the lexeme alone.
                rows.iter().for_each(|&row| sure.add(row, cursor, token));
            }
        }
        Ok(DeadEnds { apart: apart.into(), joined: joined.into() })
    }

    /// Whether something leads on behind a token, from the configuration and the cursor behind it.
    pub fn goes_on_behind(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        token: u32,
        cursor: &Cursor,
    ) -> Result<bool, EngineError> {
        let mut search = Search::new(encoding);
        self.leads_on(&mut search, configuration, token, cursor, 0)
    }

    fn leads_on(
        &mut self,
        search: &mut Search<'_>,
        configuration: SetId,
        token: u32,
        cursor: &Cursor,
        depth: usize,
    ) -> Result<bool, EngineError> {
        if configuration == SetId::EMPTY {
            return Ok(false);
        }
        let (bytes, may_end) = match search.next.get(&configuration) {
            Some(&known) => known,
            None => {
                let found = self.next_bytes(configuration)?;
                search.next.insert(configuration, found);
                found
            }
        };
        if may_end && cursor.may_end(search.encoding) {
            return Ok(true);
        }
        for byte in search.encoding.sure_bytes(cursor, token, &bytes).iter() {
            let survives = match search.survives.get(&(configuration, byte)) {
                Some(&known) => known,
                None => {
                    let found = self.survives(configuration, &[byte])?;
                    search.survives.insert((configuration, byte), found);
                    found
                }
            };
            if survives {
                return Ok(true);
            }
        }
        let merging = search.encoding.merging(token);
        if let Some(index) = search.kept.iter().position(|kept| kept.matches(configuration, &merging, cursor)) {
            if let Some(keeps) = search.kept[index].keeps {
                return Ok(keeps);
            }
        } else {
            let keeps = self.keeps_end(search.encoding, configuration, token, cursor)?;
            search.kept.push(Kept { configuration, merging, cursor: cursor.clone(), keeps });
            if let Some(keeps) = keeps {
                return Ok(keeps);
            }
        }
        if depth >= MAX_DEPTH || search.steps > MAX_STEPS {
            return Ok(true);
        }
        let key = (configuration, token, cursor.clone());
        match search.known.get(&key) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => {
                search.circular = true;
                return Ok(false);
            }
            None => {}
        }
        search.known.insert(key.clone(), None);
        let circular = std::mem::replace(&mut search.circular, false);
        let found = self.some_token_leads_on(search, configuration, &bytes, token, cursor, depth)?;
        if found || !search.circular {
            search.known.insert(key, Some(found));
        } else {
            search.known.remove(&key);
        }
        search.circular |= circular;
        Ok(found)
    }

    /// Whether a token keeps its end behind the next few characters of some text.
    fn keeps_end(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        token: u32,
        cursor: &Cursor,
    ) -> Result<Option<bool>, EngineError> {
        let run = RefCell::new(self);
        encoding.keeps_end(
            cursor,
            token,
            configuration,
            &mut |here| Ok::<_, EngineError>(run.borrow_mut().next_bytes(here)?.0),
            &mut |here, byte| {
                let next = run.borrow_mut().step(here, byte)?;
                Ok((next != SetId::EMPTY).then_some(next))
            },
        )
    }

    /// The bytes that lead on.
    fn surviving_bytes(&mut self, configuration: SetId) -> Result<ByteSet, EngineError> {
        let mut bytes = ByteSet::EMPTY;
        for byte in self.next_bytes(configuration)?.0.iter() {
            if self.survives(configuration, &[byte])? {
                bytes.insert(byte);
            }
        }
        Ok(bytes)
    }

    /// Clears tokens that leave a wide lexeme and surely lead on: those that leave it alike are one question.
    fn clear_exits(
        &mut self,
        encoding: &Encoding,
        sure: &mut SureRows,
        configuration: SetId,
        (cursor, thread): (&Cursor, Entry),
        mask: &[u32],
        doubtful: &mut [u32],
    ) -> Result<(), EngineError> {
        if thread == Entry::BOTTOM || offers_tokens(thread) {
            return Ok(());
        }
        let fork = self.machine.fork(ForkId(thread.head)).clone();
        let Some(here) = self.row_of(encoding.tokens(), thread, &fork)? else { return Ok(()) };
        let Some(row) = sure.rows.get_mut(&(Arc::as_ptr(&here.row) as usize)) else { return Ok(()) };
        let groups = match row.exits.get(cursor) {
            Some(known) => known.clone(),
            None => {
                let found = Arc::new(exit_groups(encoding, cursor, &here.row));
                if row.exits.len() >= MAX_SURE_ROWS {
                    row.exits.clear();
                }
                row.exits.insert(cursor.clone(), found.clone());
                found
            }
        };
        for (behind, tokens) in groups.iter() {
            let Some(&one) = tokens.iter().find(|&&token| tokenset::get(mask, token)) else { continue };
            let bytes = encoding.tokens().token_bytes(one).unwrap_or_default();
            let reached = self.run(configuration, bytes)?;
            let next = self.next_bytes(reached)?.0;
            for byte in encoding.sure_bytes(behind, tokens[0], &next).iter() {
                if self.survives(reached, &[byte])? {
                    tokens.iter().for_each(|&token| tokenset::clear(doubtful, token));
                    break;
                }
            }
        }
        Ok(())
    }

    /// The configuration as if no blank had come yet, and how many may come, where all threads are before blanks.
    fn blanks_only(&mut self, configuration: SetId) -> Result<Option<(SetId, usize)>, EngineError> {
        let (mut threads, mut left) = (self.stacks.entries(configuration).to_vec(), usize::MAX);
        for thread in &mut threads {
            if *thread == Entry::BOTTOM || offers_tokens(*thread) || thread.state & IN_BLANKS == 0 {
                return Ok(None);
            }
            let fork = self.machine.fork(ForkId(thread.head));
            if !fork.blanks.is_some_and(|blanks| JSON_BLANKS.iter().all(|&byte| blanks.set.contains(byte))) {
                return Ok(None);
            }
            left = left.min(fork.blanks_left(thread.state).map_or(usize::MAX, |left| left as usize));
            thread.state = IN_BLANKS;
        }
        Ok(Some((self.stacks.configuration(&mut threads)?, left)))
    }

    fn some_token_leads_on(
        &mut self,
        search: &mut Search<'_>,
        configuration: SetId,
        bytes: &ByteSet,
        token: u32,
        cursor: &Cursor,
        depth: usize,
    ) -> Result<bool, EngineError> {
        let (encoding, vocabulary) = (search.encoding, search.vocabulary);
        let trie = vocabulary.trie();
        let roots: Vec<(usize, usize)> = trie.roots(*bytes).collect();
        // Configurations on the way, each with the bytes that may lead on: what cannot come costs no step.
        let mut path = vec![(configuration, *bytes)];
        for (first, end) in roots {
            let mut node = first;
            while node < end {
                path.truncate(trie.depth(node));
                let &(above, alive) = path.last().expect("the path begins with the configuration at the root");
                if !alive.contains(trie.byte(node)) {
                    node += trie.size(node);
                    continue;
                }
                search.steps += 1;
                if search.steps > MAX_STEPS {
                    return Ok(true);
                }
                let here = self.step(above, trie.byte(node))?;
                if here == SetId::EMPTY {
                    node += trie.size(node);
                    continue;
                }
                if let Some(entry) = trie.entry_at(node) {
                    for next in std::iter::once(entry).chain(vocabulary.same_bytes(entry).iter().copied()) {
                        if let Some(behind) = encoding.follow(cursor, Some(token), next)
                            && self.leads_on(search, here, next, &behind, depth + 1)?
                        {
                            return Ok(true);
                        }
                    }
                }
                path.push((here, self.next_bytes(here)?.0));
                node += 1;
            }
        }
        Ok(false)
    }

    /// The bytes that lead on, perhaps some more; and whether the text, or this stretch of it, may end here.
    fn next_bytes(&mut self, configuration: SetId) -> Result<(ByteSet, bool), EngineError> {
        let (mut bytes, mut may_end) = (ByteSet::EMPTY, false);
        for index in 0..self.stacks.entries(configuration).len() {
            let thread = self.stacks.entries(configuration)[index];
            if thread == Entry::BOTTOM || offers_tokens(thread) {
                may_end = true;
                continue;
            }
            let fork = self.machine.fork(ForkId(thread.head)).clone();
            bytes = bytes.union(&match fork.blanks.filter(|_| thread.state & IN_BLANKS != 0) {
                Some(blanks) if fork.blanks_left(thread.state) != Some(0) => {
                    blanks.set.union(&fork.live_bytes(self.lexicon, StateId::START.0)?)
                }
                Some(_) => fork.live_bytes(self.lexicon, StateId::START.0)?,
                None => fork.live_bytes(self.lexicon, thread.state)?,
            });
        }
        Ok((bytes, may_end))
    }

    /// The tokens of a wide thread behind which its lexeme surely leads on.
    fn sure_tokens(
        &mut self,
        encoding: &Encoding,
        sure: &mut SureRows,
        thread: Entry,
        cursor: &Cursor,
    ) -> Result<Option<(usize, Arc<TokenSet>)>, EngineError> {
        if thread == Entry::BOTTOM || offers_tokens(thread) {
            return Ok(None);
        }
        let vocabulary = encoding.tokens();
        let fork = self.machine.fork(ForkId(thread.head)).clone();
        let Automaton::Dfa(dfa) = fork.automaton else { return Ok(None) };
        let Some(here) = self.row_of(vocabulary, thread, &fork)? else { return Ok(None) };
        if here.row.count <= MAX_LISTED {
            return Ok(None);
        }
        let name = Arc::as_ptr(&here.row) as usize;
        if !sure.rows.contains_key(&name) {
            if sure.rows.len() >= MAX_SURE_ROWS {
                sure.rows.clear();
            }
            sure.rows.insert(name, self.sure_row(encoding, &fork, dfa, thread.state, here.row)?);
        }
        let row = sure.rows.get_mut(&name).expect("it was there or is there now");
        if let Some(known) = row.at.get(cursor) {
            return Ok(Some((name, known.clone())));
        }
        let mut tokens = row.anywhere.clone();
        let lexicon = &mut *self.lexicon;
        for &token in &row.others {
            // States are those of one automaton, rows belong to all that read the same.
            let mut state = thread.state;
            for &byte in vocabulary.token_bytes(token).unwrap_or_default() {
                state = fork.step(lexicon, state, byte)?.0;
            }
            if state == StateId::DEAD.0 || state & IN_BLANKS != 0 {
                continue;
            }
            let mut leads_on = |apart: bool| {
                let Some(behind) = cursor.advance(encoding, token, apart) else { return Ok(true) };
                let bytes = |lexicon: &mut Lexicon, state| lexicon.live_bytes(dfa, StateId(state)).copied();
                if !encoding.sure_bytes(&behind, token, &bytes(lexicon, state)?).is_empty() {
                    return Ok::<_, EngineError>(true);
                }
                let lexicon = RefCell::new(&mut *lexicon);
                encoding
                    .keeps_end(
                        &behind,
                        token,
                        state,
                        &mut |state| Ok(bytes(&mut lexicon.borrow_mut(), state)?),
                        &mut |state, byte| {
                            let next = lexicon.borrow_mut().step(dfa, StateId(state), byte)?.0;
                            Ok((next != StateId::DEAD).then_some(next.0))
                        },
                    )
                    .map(|keeps| keeps == Some(true))
            };
            if leads_on(true)? && leads_on(false)? {
                tokens.insert(token);
            }
        }
        if row.at.len() >= MAX_SURE_ROWS {
            row.at.clear();
        }
        let tokens = Arc::new(tokens);
        row.at.insert(cursor.clone(), tokens.clone());
        Ok(Some((name, tokens)))
    }

    /// What is known of a row wherever it comes.
    fn sure_row(
        &mut self,
        encoding: &Encoding,
        fork: &Fork,
        dfa: DfaId,
        state: u32,
        row: Arc<Row>,
    ) -> Result<SureRow, EngineError> {
        let vocabulary = encoding.tokens();
        let mut anywhere = TokenSet::empty(vocabulary.vocab_size());
        let lexicon = &mut *self.lexicon;
        let mut reached: Vec<(u32, u32)> = Vec::new();
        vocabulary.trie().walk::<_, EngineError>(
            state,
            |state, byte, _| {
                let next = fork.step(lexicon, state, byte)?.0;
                Ok((next != StateId::DEAD.0).then_some(next))
            },
            |token, state| reached.push((token, state)),
        )?;
        reached.retain(|&(_, state)| state & IN_BLANKS == 0);
        let mut others = Vec::new();
        for (token, state) in reached {
            let live = *lexicon.live_bytes(dfa, StateId(state))?;
            match encoding.surely_goes_on_anywhere(token, &live) {
                true => anywhere.insert(token),
                false => others.push(token),
            }
        }
        Ok(SureRow { _row: row, anywhere, others, at: FxHashMap::default(), exits: FxHashMap::default() })
    }
}
