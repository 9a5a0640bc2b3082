//! Masks of many tokens: those are found behind which nothing leads on, whatever token came before.

use std::sync::Arc;

use super::alike::Alike;
use super::blanks::{BeforeBlanks, BlankAnswers};
use super::places::Place;
use super::probes::last_character;
use super::search::{MAX_STEPS_OF_MASK, Search};
use super::sure::{SureRows, SureTokens};
use super::{Cursor, Encoding, Known};
use crate::error::EngineError;
use crate::fork::Fork;
use crate::machine::ForkId;
use crate::row::{Row, RowHere};
use crate::run::{Run, offers_tokens};
use crate::stacks::{Entry, SetId};
use crate::tokenset;

/// Tokens of a mask behind which nothing leads on.
#[derive(Clone, Default)]
pub(crate) struct DeadEnds {
    /// Where no merge joins them with the token before, ascending.
    apart: Vec<u32>,
    /// Where one does, ascending.
    joined: Vec<u32>,
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

    pub(super) fn add(&mut self, token: u32, answer: &Answer) {
        for (tokens, leads_on) in [&mut self.apart, &mut self.joined].into_iter().zip(answer.leads_on) {
            if leads_on == Some(false) {
                tokens.push(token);
            }
        }
    }

    /// Those that are in a mask.
    fn within(&self, mask: &[u32]) -> DeadEnds {
        let within = |tokens: &[u32]| tokens.iter().copied().filter(|&token| tokenset::get(mask, token)).collect();
        DeadEnds { apart: within(&self.apart), joined: within(&self.joined) }
    }

    fn tokens(&self) -> impl Iterator<Item = u32> + '_ {
        self.apart.iter().chain(&self.joined).copied()
    }

    /// Whether a token is one. `apart` says that no merge joins it with the token before.
    pub fn has(&self, token: u32, apart: bool) -> bool {
        let tokens = if apart { &self.apart } else { &self.joined };
        tokens.binary_search(&token).is_ok()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        (self.apart.len() + self.joined.len()) * 4 + size_of::<DeadEnds>()
    }
}

impl Run<'_> {
    /// The dead ends among the tokens of a mask, at a cursor.
    pub(super) fn dead_ends(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        cursor: &Cursor,
        mask: &[u32],
    ) -> Result<DeadEnds, EngineError> {
        let vocabulary = encoding.tokens();
        let mut known = encoding.known();
        let place = known.places.of(cursor);
        let mut doubtful: Vec<u32> = mask.to_vec();
        let mut rows: Vec<(Entry, SureTokens)> = Vec::new();
        let threads = self.stacks.entries(configuration).to_vec();
        for &thread in &threads {
            if let Some(sure) = self.sure_tokens(encoding, &mut known, thread, place)? {
                doubtful.iter_mut().zip(sure.known.sure.words()).for_each(|(word, sure)| *word &= !sure);
                rows.push((thread, sure));
            }
        }
        let mut found = DeadEnds::default();
        for (_, SureTokens { known, .. }) in &rows {
            match threads[..] {
                [_] => found = known.dead.within(mask),
                // Another thread may lead on where this one does not.
                _ => known.dead.tokens().filter(|&token| tokenset::get(mask, token)).for_each(|token| {
                    tokenset::set(&mut doubtful, token);
                }),
            }
        }
        let Known { places, rows: fitting, sure, .. } = &mut *known;
        let blanks = self.before_blanks(configuration)?;
        let mut within = Vec::new();
        let mut search = Search::new(encoding, places, fitting);
        for &thread in &threads {
            let Some(before) = self.thread_before_blanks(thread)? else { continue };
            let next = before.next_bytes(self, &mut search)?;
            let at = (&mut *search.places, &mut *search.rows);
            for blank in sure.sure_blanks(encoding, at, next, place).iter() {
                if blank.leads_on(before.left) {
                    tokenset::clear(&mut doubtful, blank.token);
                } else if let Some(dead) = blank.is_dead(before.left).filter(|_| threads.len() == 1)
                    && tokenset::get(&doubtful, blank.token)
                {
                    let leads_on = dead.map(|dead| dead.map(|dead| !dead));
                    found.add(blank.token, &Answer { leads_on, ..Answer::default() });
                    tokenset::clear(&mut doubtful, blank.token);
                }
            }
        }
        let mut questions =
            Questions { run: self, encoding, search, blanks: None, configuration, place, path: Path::default() };
        for (thread, here) in rows.iter().filter(|(thread, _)| !questions.run.remembers(*thread)).collect::<Vec<_>>() {
            questions.ask_alike(*thread, here, sure, &mut doubtful)?;
        }
        if threads.len() > 1 {
            for (thread, SureTokens { here, .. }) in &rows {
                questions.ask_within(*thread, &here.row, sure, &mut doubtful)?;
            }
        }
        questions.search.stay_with(threads.first().copied().filter(|_| threads.len() == 1));
        if let Some(before) = blanks {
            let answers = BlankAnswers::new(questions.run, &mut questions.search, sure, before)?;
            questions.blanks = Some((before, answers));
        }
        // Blanks, and tokens that end within a character, ask for the longest searches, so they come last.
        let spelled = |token: u32| {
            let is_within = last_character(vocabulary.token_bytes(token)?).is_none();
            Some((token, u8::from(encoding.is_blank(token)) + 2 * u8::from(is_within)))
        };
        let mut asked: Vec<(u32, u8)> = tokenset::iter(&doubtful).filter_map(spelled).collect();
        // Those that begin alike come together, so that the grammar reads what they have in common once.
        asked.sort_by_key(|&(token, how_long)| (how_long, vocabulary.token_bytes(token)));
        for (token, _) in asked {
            let answer = questions.ask(token)?;
            found.add(token, &answer);
            if answer.is_up_to_the_lexeme {
                within.push((token, answer));
            }
        }
        if let ([(_, SureTokens { here, .. })], [_]) = (&rows[..], &threads[..]) {
            within.iter().for_each(|(token, answer)| sure.add(&here.row, place, *token, answer));
        }
        found.apart.sort_unstable();
        found.joined.sort_unstable();
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
        for &tag in residuals.iter().flat_map(|&residual| &here.tags[residual as usize]) {
            self.follow(fork, tag, thread, &mut threads)?;
        }
        self.stacks.configuration(&mut threads)
    }
}

/// Whether something leads on behind a token.
#[derive(Default)]
pub(super) struct Answer {
    /// Where no merge joins it with the token before, and where one does; `None` where it does not fit or was not asked.
    leads_on: [Option<bool>; 2],
    /// Whether it is the same wherever the lexeme comes, because nothing else was looked at, or because nothing was found
    /// within the limit.
    is_up_to_the_lexeme: bool,
}

impl Answer {
    /// Whether something leads on however it comes.
    pub fn is_yes(&self) -> bool {
        self.leads_on.iter().all(|&leads_on| leads_on != Some(false))
    }
}

/// The questions that one mask asks.
struct Questions<'q, 'r> {
    run: &'q mut Run<'r>,
    encoding: &'q Encoding,
    search: Search<'q>,
    blanks: Option<(BeforeBlanks, BlankAnswers<'q>)>,
    configuration: SetId,
    place: Place,
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
    /// Takes out of a set the tokens of a row that lead on within its lexeme, and keeps what is found.
    fn ask_within(
        &mut self,
        thread: Entry,
        row: &Arc<Row>,
        sure: &mut SureRows,
        doubtful: &mut [u32],
    ) -> Result<(), EngineError> {
        let alone = self.run.stacks.configuration(&mut vec![thread])?;
        let whole = std::mem::replace(&mut self.configuration, alone);
        self.search.stay_with(Some(thread));
        let asked: Vec<u32> = tokenset::iter(doubtful).filter(|&token| sure.keeps(row, token)).collect();
        for token in asked {
            let answer = self.ask(token)?;
            if answer.is_up_to_the_lexeme {
                sure.add(row, self.place, token, &answer);
            }
            if answer.is_yes() {
                tokenset::clear(doubtful, token);
            }
        }
        self.configuration = whole;
        Ok(())
    }

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

    /// Whether something leads on behind a token.
    fn ask(&mut self, token: u32) -> Result<Answer, EngineError> {
        let Questions { run, encoding, search, .. } = self;
        let bytes = encoding.tokens().token_bytes(token).unwrap_or_default();
        let is_far = |blanks: BeforeBlanks| blanks.are_far(bytes.len()) && encoding.is_blank(token);
        let blanks = self.blanks.as_mut().filter(|(blanks, _)| is_far(*blanks));
        let mut answer = Answer { is_up_to_the_lexeme: blanks.is_none(), ..Answer::default() };
        let behind = [true, false].map(|apart| search.places.advance(encoding, self.place, token, apart));
        if search.looked_in_all > MAX_STEPS_OF_MASK {
            return Ok(Answer::default());
        }
        if let Some((_, answers)) = blanks {
            for (way, &place) in behind.iter().enumerate() {
                let Some(place) = place else { continue };
                answer.leads_on[way] = Some(answers.leads_on(run, encoding, search, token, place)?);
            }
        } else {
            let reached = self.path.run(run, search, self.configuration, bytes)?;
            for (way, &place) in behind.iter().enumerate() {
                let Some(place) = place else { continue };
                if way == 1 && behind[0] == behind[1] {
                    answer.leads_on[1] = answer.leads_on[0];
                    continue;
                }
                let found = search.leads_on(run, reached, token, place)?;
                answer.is_up_to_the_lexeme &= found.is_none() || !search.has_left;
                answer.leads_on[way] = Some(found != Some(false));
            }
        }
        Ok(answer)
    }
}
