//! Lexemes that begin with what is left of a language that a program tells, as a label of a host name in Punycode.
//!
//! Nearly any bytes may come in such a text, so its tokens are those of a run of bytes. Where a run stops, the program is asked
//! whether what was read is a member; so it is asked once for each place where a token leaves the text, and what is read behind
//! that is the same for all of them. Only where there is little room left is it asked for every token.

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, ExprId, ExprSet, LanguageRest, LanguageWay, LimitExceeded, StateId};

use crate::lexeme::cache::LexemeCache;
use crate::lexeme::find::order::{Ends, Inside, Start};
use crate::lexeme::mask::Row;
use crate::vocabulary::token_set;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;

/// Where more tokens are longer than there is room for sure, the trie is walked, so that what they share is read once.
const MAX_LONGER: usize = 2_000;

/// A text that begins with languages, within limits of length.
struct Begun {
    ways: Vec<LanguageWay>,
    /// The bytes of a run.
    run: ByteSet,
    /// So many of them may come for sure.
    sure: usize,
    /// Characters of which at most so many may come; each byte of a run is one.
    limits: Vec<(ExprId, u32)>,
    /// What follows the limits.
    behind: ExprId,
}

impl LexemeCache {
    /// The row of what begins with languages that a program tells; `None` where it is not that, or where more than a run
    /// of bytes may come first.
    pub(crate) fn row_of_language(
        &mut self,
        vocabulary: &Tokens,
        residual: ExprId,
    ) -> Result<Option<Row>, LimitExceeded> {
        let Some(begun) = self.begun_language(residual)? else { return Ok(None) };
        // What follows a member, and the bytes that lead there or stand in the languages beside those of a run.
        let mut stops = ByteSet::EMPTY;
        for (rest, then) in &begun.ways {
            let tail = self.deriver.exprs.concat(*then, begun.behind);
            if self.deriver.exprs.is_nullable(tail) {
                return Ok(None);
            }
            for &(bytes, _) in self.deriver.derivatives(tail)?.iter() {
                stops = stops.union(&bytes);
            }
            stops = stops.union(&rest.bytes().intersect(&begun.run.complement()));
            if !self.first_of(tail)?.intersect(&begun.run).is_empty() {
                return Ok(None);
            }
        }
        let stops = stops.intersect(&begun.run.complement());
        let byte = self.deriver.exprs.bytes(begun.run);
        let Some(runs) = self.runs(vocabulary, byte, stops, false)? else { return Ok(None) };
        let mut inside = runs.within(None);
        let mut nodes: Vec<(u32, u32)> = runs
            .stops()
            .iter()
            .filter(|group| stops.contains(group.byte))
            .flat_map(|group| &group.nodes)
            .copied()
            .collect();
        nodes.sort_unstable();
        drop_too_long(vocabulary, &begun, &mut inside)?;
        let ends = self.ends_of_language(vocabulary, &begun, &nodes, &mut inside)?;
        let from = Start { dfa: self.dfa(&[byte])?, state: StateId::START, one: true };
        Ok(Some(self.row_with(vocabulary, from, Inside::Set(inside), ends)))
    }

    fn first_of(&mut self, expr: ExprId) -> Result<ByteSet, LimitExceeded> {
        Ok(self.deriver.derivatives(expr)?.iter().fold(ByteSet::EMPTY, |all, (set, _)| all.union(set)))
    }

    fn begun_language(&mut self, residual: ExprId) -> Result<Option<Begun>, LimitExceeded> {
        let Some((ways, others, behind)) = self.deriver.exprs.beside_languages(residual) else { return Ok(None) };
        let runs: Option<Vec<(ByteSet, u32)>> = ways.iter().map(|(rest, _)| rest.run()).collect();
        let Some(runs) = runs else { return Ok(None) };
        let (run, mut sure) = runs[0];
        if runs.iter().any(|(other, _)| *other != run) {
            return Ok(None);
        }
        sure = runs.iter().map(|&(_, sure)| sure).max().unwrap_or(sure);
        let mut limits = Vec::with_capacity(others.len());
        for other in others {
            let Some((character, max)) = self.deriver.exprs.limit_of_run(other) else { return Ok(None) };
            // With a least number, a member may be too short.
            if self.deriver.exprs.shortest_at_least(other) > 0 || !self.deriver.reads_each(character, &run)? {
                return Ok(None);
            }
            let most = ways.iter().map(|(rest, _)| rest.most()).max().unwrap_or(0);
            sure = sure.min(max.saturating_sub(most));
            limits.push((character, max));
        }
        // Beside limits, what follows must be able to be empty: else it needs room, too.
        if !limits.is_empty() && !ways.iter().all(|&(_, then)| self.deriver.exprs.is_nullable(then)) {
            return Ok(None);
        }
        Ok(Some(Begun { ways, run, sure: sure as usize, limits, behind }))
    }

    /// Reads on where runs stop.
    fn ends_of_language(
        &mut self,
        vocabulary: &Tokens,
        begun: &Begun,
        nodes: &[(u32, u32)],
        inside: &mut TokenSet,
    ) -> Result<Ends, LimitExceeded> {
        let trie = vocabulary.trie();
        let mut ends = Ends::default();
        let mut states = vec![0; trie.max_depth() + 1];
        // What is left behind runs of bytes that stop at more than one.
        let mut known: FxHashMap<&[u8], Vec<Option<LanguageRest>>> = FxHashMap::default();
        for &(node, _) in nodes {
            let (byte, before) = (trie.byte(node as usize), vocabulary.bytes_before(node));
            let rests = known.entry(before).or_insert_with(|| begun.after(before));
            let rest = begun.read_on(&mut self.deriver.exprs, rests, before.len(), byte);
            if rest == ExprId::NOTHING {
                continue;
            }
            let dfa = self.dfa(&[rest])?;
            let (automaton, deriver) = (&mut self.dfas[dfa.0 as usize], &mut self.deriver);
            let node = node as usize;
            trie.walk_part(
                (node, node + trie.size(node)),
                trie.depth(node) - 1,
                StateId::START.0,
                &mut states,
                |state, byte, node, _| {
                    let (next, accepts) = automaton.step(deriver, StateId(state), byte)?;
                    if accepts {
                        ends.push(vocabulary, node, next);
                    }
                    Ok::<_, LimitExceeded>((next != StateId::DEAD).then_some(next.0))
                },
                |token| token_set::set(inside.words_mut(), token),
            )?;
        }
        Ok(ends)
    }
}

impl Begun {
    /// What is left of each language behind a run of bytes.
    fn after(&self, bytes: &[u8]) -> Vec<Option<LanguageRest>> {
        let after = |rest: &LanguageRest| bytes.iter().try_fold(rest.clone(), |rest, &byte| rest.after(byte));
        self.ways.iter().map(|(rest, _)| after(rest)).collect()
    }

    /// Whether what is left of a language behind so many characters can be completed within the limits.
    fn has_room(&self, rest: Option<&LanguageRest>, characters: usize) -> bool {
        let Some(rest) = rest else { return false };
        self.limits.iter().all(|&(_, max)| match max.checked_sub(characters as u32) {
            Some(left) => left >= rest.most() || rest.completion(0, left).is_some(),
            None => false,
        })
    }

    /// What may come behind so many characters where a byte comes that is none of a run.
    fn read_on(&self, exprs: &mut ExprSet, rests: &[Option<LanguageRest>], characters: usize, byte: u8) -> ExprId {
        let mut ways = Vec::new();
        for (rest, &(_, then)) in rests.iter().zip(&self.ways) {
            let Some(rest) = rest else { continue };
            if rest.is_nullable() {
                ways.push(then);
            }
            if rest.after(byte).is_some() {
                let rest = exprs.language_rest(rest.clone());
                ways.push(exprs.concat(rest, then));
            }
        }
        let mut all = vec![exprs.or(&ways)];
        for &(character, max) in &self.limits {
            match max.checked_sub(characters as u32) {
                Some(left) => all.push(exprs.repeat(character, 0, Some(left))),
                None => return ExprId::NOTHING,
            }
        }
        let all = exprs.and(&all);
        exprs.concat(all, self.behind)
    }
}

/// Takes out the tokens behind which nothing can be completed.
fn drop_too_long(vocabulary: &Tokens, begun: &Begun, inside: &mut TokenSet) -> Result<(), LimitExceeded> {
    let longer = vocabulary.lengths().longer(begun.sure as u32).filter(|&token| inside.contains(token));
    let longer: Vec<u32> = longer.collect();
    if longer.len() <= MAX_LONGER {
        for token in longer {
            let bytes = vocabulary.token_bytes(token).expect("a run of bytes is spelled by bytes");
            if !begun.after(bytes).iter().any(|rest| begun.has_room(rest.as_ref(), bytes.len())) {
                token_set::clear(inside.words_mut(), token);
            }
        }
        return Ok(());
    }
    longer.into_iter().for_each(|token| inside.remove(token));
    // Behind each node that was met, what is left.
    let mut met: Vec<(Vec<Option<LanguageRest>>, usize)> = vec![(begun.after(b""), 0)];
    vocabulary.trie().walk(
        0_usize,
        |at, byte, _| {
            if !begun.run.contains(byte) {
                return Ok::<_, LimitExceeded>(None);
            }
            let (rests, depth) = &met[at];
            let depth = depth + 1;
            let rests: Vec<_> = rests.iter().map(|rest| rest.as_ref()?.after(byte)).collect();
            if !rests.iter().any(|rest| begun.has_room(rest.as_ref(), depth)) {
                return Ok(None);
            }
            met.push((rests, depth));
            Ok(Some(met.len() - 1))
        },
        |token, _| inside.insert(token),
    )
}
