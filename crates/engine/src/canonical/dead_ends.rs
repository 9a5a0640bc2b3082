//! Masks of many tokens: those are found behind which nothing leads on, whatever token came before.

use super::blanks::{BeforeBlanks, BlankAnswers};
use super::places::Place;
use super::probes::last_character;
use super::search::{MAX_STEPS_OF_MASK, Search};
use super::sure::SureTokens;
use super::{Cursor, Encoding, Known};
use crate::error::EngineError;
use crate::machine::ForkId;
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
        let mut rows = Vec::new();
        let threads = self.stacks.entries(configuration).to_vec();
        for &thread in &threads {
            if let Some(SureTokens { row, known }) = self.sure_tokens(encoding, &mut known, thread, place)? {
                doubtful.iter_mut().zip(known.sure.words()).for_each(|(word, sure)| *word &= !sure);
                rows.push((row, known));
            }
        }
        let mut found = DeadEnds::default();
        for (_, known) in &rows {
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
        // Where a single thread is read, tokens that leave its lexeme alike are one question.
        let exits = match (&threads[..], &rows[..]) {
            ([thread], [(row, _)]) if !self.remembers(*thread) => row.only_exits(vocabulary).map(|exits| (row, exits)),
            _ => None,
        };
        let leaving = exits.map(|(row, exits)| (row, exits, sure.leaving(encoding, places, (row, exits), place)));
        let mut search = Search::new(encoding, places, fitting);
        if let [thread] = threads[..] {
            search.stay_with(thread);
        }
        let mut questions = Questions { run: self, encoding, search, blanks: None, configuration, place };
        if let Some((row, exits, leaving)) = leaving {
            for alike in leaving.iter() {
                let asked = |&&(way, token): &&(u32, u32)| {
                    tokenset::get(&doubtful, token) && exits.has_way(way) && !row.has(token)
                };
                let tokens: Vec<u32> = alike.ways.iter().filter(asked).map(|&(_, token)| token).collect();
                let Some(&one) = tokens.first() else { continue };
                let answer = questions.ask(one)?;
                for token in tokens {
                    tokenset::clear(&mut doubtful, token);
                    found.add(token, &answer);
                }
            }
        }
        if let Some(before) = blanks {
            let answers = BlankAnswers::new(questions.run, &mut questions.search, sure, before)?;
            questions.blanks = Some((before, answers));
        }
        // Tokens that end within a character ask for the longest searches, so they come last.
        let spelled = |token: u32| Some((token, last_character(vocabulary.token_bytes(token)?).is_none()));
        let mut asked: Vec<(u32, bool)> = tokenset::iter(&doubtful).filter_map(spelled).collect();
        asked.sort_by_key(|&(_, is_within)| is_within);
        for (token, _) in asked {
            let answer = questions.ask(token)?;
            found.add(token, &answer);
            if answer.is_up_to_the_lexeme {
                within.push((token, answer));
            }
        }
        if let ([(row, _)], [_]) = (&rows[..], &threads[..]) {
            within.iter().for_each(|(token, answer)| sure.add(row, place, *token, answer));
        }
        found.apart.sort_unstable();
        found.joined.sort_unstable();
        Ok(found)
    }

    /// Whether it makes a difference to what follows a lexeme which of its texts was read.
    fn remembers(&self, thread: Entry) -> bool {
        self.machine.keeps_text()
            || thread == Entry::BOTTOM
            || offers_tokens(thread)
            || self.machine.fork(ForkId(thread.head)).free
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

/// The questions that one mask asks.
struct Questions<'q, 'r> {
    run: &'q mut Run<'r>,
    encoding: &'q Encoding,
    search: Search<'q>,
    blanks: Option<(BeforeBlanks, BlankAnswers<'q>)>,
    configuration: SetId,
    place: Place,
}

impl Questions<'_, '_> {
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
            let reached = search.run(run, self.configuration, bytes)?;
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
