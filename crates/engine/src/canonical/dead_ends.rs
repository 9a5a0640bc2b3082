//! Masks of many tokens: those are found behind which nothing leads on, whatever token came before.

use super::alike::Alike;
use super::blanks::{BeforeBlanks, BlankAnswers, BlanksInLexemes};
use super::places::Place;
use super::probes::last_character;
use super::search::{MAX_STEPS_OF_MASK, Search};
use super::sure::{SureRows, SureTokens};
use super::{Cursor, Encoding, Known};
use crate::error::EngineError;
use crate::fork::Fork;
use crate::machine::ForkId;
use crate::row::RowHere;
use crate::run::{Run, offers_tokens};
use crate::stacks::{Entry, SetId};
use crate::tokenset;

/// Tokens of a mask behind which nothing leads on.
#[derive(Clone, Default)]
pub(crate) struct DeadEnds {
    /// Where no merge joins them with the token before, and where one does; ascending.
    ways: [Vec<u32>; 2],
    /// Tokens that were not asked for, each with the way: they did not fit behind the token before.
    open: Vec<(u32, bool)>,
}

impl DeadEnds {
    /// Takes them out of a mask behind a token.
    pub fn clear(&self, encoding: &Encoding, before: Option<u32>, mask: &mut [u32]) {
        let same = self.ways[0] == self.ways[1];
        for (tokens, apart) in self.ways.iter().zip([true, false]) {
            for &token in tokens {
                if tokenset::get(mask, token) && (same || encoding.stay_apart(before, token) == apart) {
                    tokenset::clear(mask, token);
                }
            }
        }
    }

    fn add(&mut self, token: u32, apart: bool) {
        self.ways[usize::from(!apart)].push(token);
    }

    /// Whether a token is one. `apart` says that no merge joins it with the token before.
    pub fn has(&self, token: u32, apart: bool) -> bool {
        self.ways[usize::from(!apart)].binary_search(&token).is_ok()
    }

    /// Whether one of those that were not asked for fits behind a token.
    pub fn is_open(&self, encoding: &Encoding, before: Option<u32>, fitting: &[u32]) -> bool {
        let fits = |&(token, apart): &(u32, bool)| {
            tokenset::get(fitting, token) && encoding.stay_apart(before, token) == apart
        };
        self.open.iter().any(fits)
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        (self.ways[0].len() + self.ways[1].len()) * 4 + self.open.len() * 8 + size_of::<DeadEnds>()
    }
}

impl Run<'_> {
    /// The dead ends among the tokens of a mask, at a cursor. Those that do not fit behind the token before are not asked for
    /// where that takes a search.
    pub(super) fn dead_ends(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        (cursor, before): (&Cursor, Option<u32>),
        in_lexemes: &mut BlanksInLexemes,
        (fitting, mask): (&[u32], &[u32]),
    ) -> Result<DeadEnds, EngineError> {
        let vocabulary = encoding.tokens();
        let mut known = encoding.known();
        let place = known.places.of(cursor);
        let mut doubtful: Vec<u32> = mask.to_vec();
        let mut rows: Vec<(Entry, SureTokens)> = Vec::new();
        let threads = self.stacks.entries(configuration).to_vec();
        for &thread in &threads {
            if let Some(sure) = self.sure_tokens(encoding, &mut known, thread, place)? {
                sure.known.clear_sure(&mut doubtful);
                rows.push((thread, sure));
            }
        }
        let mut found = DeadEnds::default();
        let Known { places, rows: row_cache, sure, search, .. } = &mut *known;
        let mut search = Search::new(encoding, places, row_cache, search);
        let blanks = self.before_blanks(&mut search, in_lexemes, configuration)?;
        if let Some(blanks) = &blanks {
            for blank in sure.known_blanks(encoding, search.places, blanks.next, place).iter() {
                if tokenset::get(&doubtful, blank.token)
                    && let Some(answers) = blank.leads_on_anyway(blanks)
                {
                    let dead = answers.into_iter().zip([true, false]).filter(|&(leads_on, _)| leads_on == Some(false));
                    dead.for_each(|(_, apart)| found.add(blank.token, apart));
                    tokenset::clear(&mut doubtful, blank.token);
                }
            }
        } else {
            for &thread in &threads {
                let Some(blanks) = self.thread_before_blanks(&mut search, in_lexemes, thread)? else { continue };
                for blank in sure.known_blanks(encoding, search.places, blanks.next, place).iter() {
                    let answers = blank.leads_on_anyway(&blanks);
                    if answers.is_some_and(|answers| answers.iter().all(|&leads_on| leads_on != Some(false))) {
                        tokenset::clear(&mut doubtful, blank.token);
                    }
                }
            }
        }
        let mut questions = Questions {
            run: self,
            encoding,
            search,
            blanks: None,
            configuration,
            place,
            threads,
            path: Path::default(),
        };
        for (thread, here) in rows.iter().filter(|(thread, _)| !questions.run.remembers(*thread)).collect::<Vec<_>>() {
            questions.ask_alike(*thread, here, sure, &mut doubtful)?;
        }
        if let Some(blanks) = blanks {
            questions.blanks = Some((blanks, BlankAnswers::new(&blanks)));
        }
        let mut asked: Vec<(u32, bool, Place, u8)> = Vec::new();
        for token in tokenset::iter(&doubtful) {
            let Some(bytes) = vocabulary.token_bytes(token) else { continue };
            if !tokenset::get(fitting, token) {
                found.open.extend([(token, true), (token, false)]);
                continue;
            }
            let apart = encoding.stay_apart(before, token);
            if questions.search.places.advance(encoding, place, token, !apart).is_some() {
                found.open.push((token, !apart));
            }
            let Some(behind) = questions.search.places.advance(encoding, place, token, apart) else { continue };
            match questions.known(token, apart, &rows, sure) {
                Some(true) => {}
                Some(false) => found.add(token, apart),
                // Blanks, and tokens that end within a character, ask for the longest searches, so they come last.
                None => {
                    let is_within = last_character(bytes).is_none();
                    asked.push((token, apart, behind, u8::from(encoding.is_blank(token)) + 2 * u8::from(is_within)));
                }
            }
        }
        // Those that begin alike come together, so that the grammar reads what they have in common once.
        asked.sort_by_key(|&(token, _, _, how_long)| (how_long, vocabulary.token_bytes(token)));
        for (token, apart, behind, _) in asked {
            if !questions.ask(token, apart, behind, &rows, sure)? {
                found.add(token, apart);
            }
        }
        found.ways.iter_mut().for_each(|tokens| tokens.sort_unstable());
        Ok(found)
    }

    /// Whether it makes a difference to what follows a lexeme which of its texts was read.
    fn remembers(&self, thread: Entry) -> bool {
        self.machine.keeps_text() || thread == Entry::BOTTOM || offers_tokens(thread)
    }

    /// The configuration behind a lexeme that a thread reads, where it has come to a state.
    fn behind_state(&mut self, thread: Entry, fork: &Fork, state: u32) -> Result<SetId, EngineError> {
        let here = Entry { state, ..thread };
        let tags = fork.accepts(self.lexicon, state).to_vec();
        let mut threads = Vec::new();
        if tags.is_empty() || fork.goes_on(self.lexicon, state)? {
            threads.push(here);
        }
        for tag in tags {
            self.follow(fork, tag, here, &mut threads)?;
        }
        self.stacks.configuration(&mut threads)
    }

    /// The configuration behind a lexeme that a thread reads, where these residuals of its row have matched.
    fn behind_lexeme(
        &mut self,
        thread: Entry,
        fork: &Fork,
        here: &RowHere,
        residuals: &[u32],
    ) -> Result<SetId, EngineError> {
        let mut threads = Vec::new();
        for tag in residuals.iter().flat_map(|&residual| here.tags_of(residual)) {
            self.follow(fork, tag, thread, &mut threads)?;
        }
        self.stacks.configuration(&mut threads)
    }
}

/// The questions that one mask asks.
struct Questions<'q, 'r> {
    run: &'q mut Run<'r>,
    encoding: &'q Encoding,
    search: Search<'q>,
    blanks: Option<(BeforeBlanks, BlankAnswers)>,
    configuration: SetId,
    place: Place,
    threads: Vec<Entry>,
    path: Path,
}

/// The text that was read last, with the configurations on the way.
#[derive(Default)]
struct Path {
    start: Option<SetId>,
    /// Each byte with the configuration behind it.
    steps: Vec<(u8, SetId)>,
}

impl Path {
    /// The configuration behind some bytes; what they have in common with those before is not read again.
    fn run(
        &mut self,
        run: &mut Run<'_>,
        search: &mut Search<'_>,
        start: SetId,
        bytes: &[u8],
    ) -> Result<SetId, EngineError> {
        if self.start.replace(start) != Some(start) {
            self.steps.clear();
        }
        let common = self.steps.iter().zip(bytes).take_while(|((known, _), byte)| known == *byte).count();
        self.steps.truncate(common);
        let mut here = self.steps.last().map_or(start, |&(_, here)| here);
        for &byte in &bytes[common..] {
            here = search.step(run, here, byte)?;
            self.steps.push((byte, here));
        }
        Ok(here)
    }
}

impl Questions<'_, '_> {
    /// Takes out of a set the tokens of a row that lead on by what follows its lexeme. Tokens behind which the grammar
    /// stands at the same place are one question.
    fn ask_alike(
        &mut self,
        thread: Entry,
        SureTokens { here, known, ending }: &SureTokens,
        sure: &mut SureRows,
        doubtful: &mut [u32],
    ) -> Result<(), EngineError> {
        let fork = self.run.machine.fork(ForkId(thread.head)).clone();
        for alike in known.inside.iter() {
            let Some(&(_, one)) = alike.groups.first().and_then(|group| group.tokens.first()) else { continue };
            let mut state = thread.state;
            for &byte in self.encoding.tokens().token_bytes(one).unwrap_or_default() {
                state = fork.step(self.run.lexicon, state, byte)?.0;
            }
            let behind = self.run.behind_state(thread, &fork, state)?;
            self.clear_alike(behind, alike, |_, _| true, doubtful)?;
        }
        let row = &here.row;
        let Some(leaving) = row.only_leaving() else { return Ok(()) };
        let start = self.run.behind_lexeme(thread, &fork, here, &leaving.residuals)?;
        let alive = self.search.next_bytes(self.run, start)?.0;
        let vocabulary = self.encoding.tokens();
        if ending.is_none() && leaving.next_nodes(vocabulary.trie(), alive, 0).is_some() {
            return Ok(());
        }
        let exits = leaving.exits(vocabulary);
        if let Some(ending) = ending {
            let alike = sure.leaving(self.encoding, self.search.places, (row, exits), self.place, None);
            self.clear_alike(start, &alike, |_, token| ending.contains(token), doubtful)?;
        }
        let suffixes = exits.suffixes();
        let mut path = vec![(start, alive)];
        for (mut node, end) in suffixes.roots(alive) {
            while node < end {
                path.truncate(suffixes.depth(node));
                let &(above, alive) = path.last().expect("the path begins with the configuration at the root");
                let behind = match alive.contains(suffixes.byte(node)) {
                    true => self.search.step(self.run, above, suffixes.byte(node))?,
                    false => SetId::EMPTY,
                };
                if behind == SetId::EMPTY {
                    node += suffixes.size(node);
                    continue;
                }
                if let Some(suffix) = suffixes.entry_at(node) {
                    let at = (row, exits);
                    let alike = sure.leaving(self.encoding, self.search.places, at, self.place, Some(suffix));
                    self.clear_alike(behind, &alike, |way, _| exits.has_way(way), doubtful)?;
                }
                path.push((behind, self.search.next_bytes(self.run, behind)?.0));
                node += 1;
            }
        }
        Ok(())
    }

    /// Takes out of a set those of alike tokens, as far as they are here, that the next characters tell to lead on from a
    /// configuration.
    fn clear_alike(
        &mut self,
        behind: SetId,
        alike: &Alike,
        is_here: impl Fn(u32, u32) -> bool,
        doubtful: &mut [u32],
    ) -> Result<(), EngineError> {
        let Questions { run, search, .. } = self;
        let all = search.may_come(run, behind, &alike.sure)?;
        for group in &alike.groups {
            let Some(&(_, one)) = group.tokens.first() else { continue };
            let mut leads_on = all || search.may_come(run, behind, &group.sure)?;
            if !leads_on
                && group.tokens.iter().any(|&(way, token)| tokenset::get(doubtful, token) && is_here(way, token))
            {
                leads_on = true;
                for &place in group.behind.iter().flatten() {
                    leads_on &= search.told(run, behind, one, place)? == Some(true);
                }
            }
            if leads_on {
                let here = group.tokens.iter().filter(|&&(way, token)| is_here(way, token));
                here.for_each(|&(_, token)| tokenset::clear(doubtful, token));
            }
        }
        Ok(())
    }

    /// Whether something leads on behind a token, where that is known of the rows.
    fn known(&self, token: u32, apart: bool, rows: &[(Entry, SureTokens)], sure: &SureRows) -> Option<bool> {
        let mut known = rows.iter().map(|(_, row)| sure.answer(&row.here.row, self.place, token, apart));
        match self.threads.len() {
            1 => known.next()?,
            _ => known.any(|known| known == Some(true)).then_some(true),
        }
    }

    /// Whether something leads on behind a token, at the place behind it, of which not all rows tell.
    fn ask(
        &mut self,
        token: u32,
        apart: bool,
        behind: Place,
        rows: &[(Entry, SureTokens)],
        sure: &mut SureRows,
    ) -> Result<bool, EngineError> {
        let (here, place) = (self.configuration, self.place);
        for (thread, SureTokens { here: RowHere { row, .. }, .. }) in rows {
            let is_only = self.threads.len() == 1;
            match sure.answer(row, place, token, apart) {
                Some(true) => return Ok(true),
                // Another thread may lead on where this one does not.
                Some(false) if is_only => return Ok(false),
                Some(false) => {}
                None if sure.keeps(row, token) && self.search.looked_in_all <= MAX_STEPS_OF_MASK => {
                    let alone = match is_only {
                        true => here,
                        false => self.run.stacks.configuration(&mut vec![*thread])?,
                    };
                    self.search.stay_with(Some(*thread));
                    let found = self.search_behind(alone, token, behind)?;
                    // It is the same wherever the lexeme comes if nothing else was looked at, or if nothing was found within
                    // the limit.
                    if found.is_none() || !self.search.has_left {
                        sure.add(row, place, token, apart, found != Some(false));
                    }
                    if is_only || found != Some(false) {
                        return Ok(found != Some(false));
                    }
                }
                None => {}
            }
        }
        self.search.stay_with(None);
        let bytes = self.encoding.tokens().token_bytes(token).unwrap_or_default();
        let is_far = |blanks: &BeforeBlanks| blanks.are_far(bytes.len()) && self.encoding.is_blank(token);
        if let Some((_, answers)) = self.blanks.as_mut().filter(|(blanks, _)| is_far(blanks)) {
            return answers.leads_on(self.run, self.encoding, &mut self.search, sure, token, behind);
        }
        Ok(self.search_behind(here, token, behind)? != Some(false))
    }

    /// Whether something leads on behind a token that follows a configuration; `None` where the search was given up.
    fn search_behind(&mut self, start: SetId, token: u32, behind: Place) -> Result<Option<bool>, EngineError> {
        if self.search.looked_in_all > MAX_STEPS_OF_MASK {
            return Ok(None);
        }
        let bytes = self.encoding.tokens().token_bytes(token).unwrap_or_default();
        let reached = self.path.run(self.run, &mut self.search, start, bytes)?;
        self.search.leads_on(self.run, reached, token, behind)
    }
}
