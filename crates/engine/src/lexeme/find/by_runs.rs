//! Lexeme masks without a walk through the vocabulary, from runs of characters.

use std::sync::Arc;

use stencilm_regex::{ByteSet, Expr, ExprId, StateId};
use stencilm_support::LimitExceeded;

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::find::char_runs::{ClassRuns, Run};
use crate::lexeme::find::finder::{FEW_OF, Finder, Found, Next, Start, Unfinished};
use crate::lexeme::find::found::{Ends, Inside, MAX_BELOW_ENDS};
use crate::lexeme::find::unbounded_runs::{Open, RunsOf, open_run};
use crate::lexeme::mask::{BYTES_AFTER, CHARACTERS_AFTER, LexemeMask};
use crate::switches::Switch;
use crate::vocabulary::token_set;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;

/// Finds the mask of a run of characters, perhaps counted, with something after it.
pub(crate) struct CharRuns;

impl Finder for CharRuns {
    fn find(&self, lexemes: &mut LexemeCache, vocabulary: &Tokens, this: Unfinished) -> Found {
        Ok(lexemes.mask_of_run(vocabulary, this.residual)?.map(Next::found))
    }
}

/// Finds the mask of a text of any characters that can be completed at every point.
pub(crate) struct UnboundedRuns;

impl Finder for UnboundedRuns {
    fn find(&self, lexemes: &mut LexemeCache, vocabulary: &Tokens, this: Unfinished) -> Found {
        Ok(lexemes.mask_of_open_run(vocabulary, this.residual, this.from)?.map(Next::found))
    }
}

impl LexemeCache {
    /// The runs of a character, with the nodes where they stop before some bytes, and with their lengths if `counted`.
    /// `None` where the end of a character is ambiguous.
    pub(crate) fn runs(
        &mut self,
        vocabulary: &Tokens,
        character: ExprId,
        stops: ByteSet,
        counted: bool,
    ) -> Result<Option<&mut ClassRuns>, LimitExceeded> {
        let known = self.classes.get(&character);
        if known.is_none_or(|known| known.as_ref().is_some_and(|runs| !runs.decides(stops, counted))) {
            let before = known.and_then(Option::as_ref);
            // Nearly all strings end with a quote.
            let stops = before.map_or(ByteSet::of(b'"'), |runs| *runs.known_stops()).union(&stops);
            let counted = counted || before.is_some_and(ClassRuns::is_counted);
            let name = before.map_or_else(|| Arc::new(character), |runs| runs.character.clone());
            self.masks_bytes -= before.map_or(0, ClassRuns::memory_bytes);
            let dfa = self.dfa(&[character])?;
            let (automaton, deriver) = (&mut self.dfas[dfa.0 as usize], &mut self.deriver);
            let runs = ClassRuns::find(vocabulary, name, automaton, deriver, stops, counted)?;
            self.masks_bytes += runs.as_ref().map_or(0, ClassRuns::memory_bytes);
            self.classes.insert(character, runs);
        }
        Ok(self.classes.get_mut(&character).and_then(Option::as_mut))
    }

    /// The mask of `C{a,b}X`, where `X` begins with no byte that begins a character: the tokens with that many
    /// characters, and what reads `X` where such a run stops.
    pub(crate) fn mask_of_run(
        &mut self,
        vocabulary: &Tokens,
        residual: ExprId,
    ) -> Result<Option<LexemeMask>, LimitExceeded> {
        let Some(Run { character, min, max, tail }) = Run::of(&self.deriver.exprs, residual) else {
            return Ok(None);
        };
        let characters = self.dfa(&[character])?;
        let mut first = ByteSet::EMPTY;
        for &(bytes, rest) in self.deriver.derivatives(tail)?.iter() {
            if self.deriver.is_live(rest)? {
                first = first.union(&bytes);
            }
        }
        if first.is_empty() || !first.intersect(self.live_bytes(characters, StateId::START)?).is_empty() {
            return Ok(None);
        }
        let one_byte = matches!(self.deriver.exprs.get(tail), Expr::Bytes(_));
        let trie = vocabulary.trie();
        let known = first.single().filter(|_| one_byte && Switch::LexemeSuffixes.is_on());
        let known = known.and_then(|byte| self.suffixes_after(vocabulary, byte));
        let (most, max) = (max, max.filter(|&max| (max as usize) < trie.max_depth()));
        let Some(runs) = self.runs(vocabulary, character, first, max.is_some())? else { return Ok(None) };
        let stops = runs.stops().iter().filter(|stops| first.contains(stops.byte));
        if one_byte && stops.clone().map(|stops| stops.below).sum::<usize>() <= MAX_BELOW_ENDS {
            let before = runs.memory_bytes();
            let mask = runs.mask(vocabulary, min, max, first, known).with_runs(runs.character.clone(), most);
            let grown = runs.memory_bytes() - before;
            self.masks_bytes += grown;
            return Ok(Some(mask));
        }
        let counts = min..=max.unwrap_or(u32::MAX);
        let stops = stops.flat_map(|stops| &stops.nodes).filter(|(_, rounds)| counts.contains(rounds));
        let mut stops: Vec<u32> = stops.map(|&(node, _)| node).collect();
        let after_stops: usize = stops.iter().map(|&node| trie.size(node as usize)).sum();
        if !one_byte && after_stops > vocabulary.category_trie().len() / FEW_OF {
            return Ok(None);
        }
        stops.sort_unstable();
        let mut inside = runs.within(max);
        let name = runs.character.clone();
        let mut ends = Ends::default();
        let after = self.dfa(&[tail])?;
        let mut states = vec![0; trie.max_depth() + 1];
        for node in stops {
            self.read_after_run(vocabulary, (after, node), &mut states, &mut inside, &mut ends)?;
        }
        let from = Start { dfa: after, state: StateId::START, one: true };
        let mask = self.mask_with(vocabulary, from, Inside::Set(inside), ends);
        Ok(Some(if one_byte { mask.with_runs(name, most) } else { mask }))
    }

    /// Reads what comes after a run, starting with the byte of a node of the trie: the tokens that stay within it, and
    /// the nodes where it ends within tokens.
    pub(crate) fn read_after_run(
        &mut self,
        vocabulary: &Tokens,
        (after, node): (DfaId, u32),
        states: &mut [u32],
        inside: &mut TokenSet,
        ends: &mut Ends,
    ) -> Result<(), LimitExceeded> {
        let (automaton, deriver) = (&mut self.dfas[after.0 as usize], &mut self.deriver);
        let (trie, node) = (vocabulary.trie(), node as usize);
        trie.walk_part(
            (node, node + trie.size(node)),
            trie.depth(node) - 1,
            StateId::START.0,
            states,
            |state, byte, node, _| {
                let (next, accepts) = automaton.step(deriver, StateId(state), byte)?;
                if accepts {
                    ends.push(vocabulary, node, next);
                }
                Ok((next != StateId::DEAD).then_some(next.0))
            },
            |token, _| token_set::set(inside.words_mut(), token),
        )
    }

    /// The mask of a text of characters before a byte that begins none, if it can be completed at every point, such as
    /// a text with a pattern somewhere in it. Every run of characters may come, so only the ends remain to be found.
    pub(crate) fn mask_of_open_run(
        &mut self,
        vocabulary: &Tokens,
        residual: ExprId,
        from: Start,
    ) -> Result<Option<LexemeMask>, LimitExceeded> {
        let horizon = vocabulary.trie().max_depth() + BYTES_AFTER as usize;
        let Some(Open { character, counted, completing, ended }) = open_run(&self.deriver.exprs, residual, horizon)
        else {
            return Ok(None);
        };
        for counted in counted {
            let dfa = self.dfa(&[counted])?;
            if self.runs(vocabulary, counted, ByteSet::EMPTY, false)?.is_none()
                || !RunsOf::new(self, dfa, counted).hold(character)?
            {
                return Ok(None);
            }
        }
        let characters = self.dfa(&[character])?;
        for completing in completing {
            let runs = RunsOf::new(self, characters, character);
            let is_run = if ended { runs.then_a_byte(completing)?.is_some() } else { runs.hold(completing)? };
            if !is_run {
                return Ok(None);
            }
        }
        let Some(end) = RunsOf::new(self, characters, character).then_a_byte(residual)? else { return Ok(None) };
        let trie = vocabulary.trie();
        let Some(runs) = self.runs(vocabulary, character, end, false)? else { return Ok(None) };
        let mut inside = runs.within(None);
        let name = runs.character.clone();
        let mut ends = Ends::default();
        let before = runs.memory_bytes();
        let groups: Vec<usize> = (0..runs.stops().len()).filter(|&at| end.contains(runs.stops()[at].byte)).collect();
        let mut found: Vec<(u32, StateId)> = Vec::new();
        for group in groups {
            let runs = self.classes.get_mut(&character).and_then(Option::as_mut).expect("the runs were just found");
            let (paths, nodes) = runs.paths(vocabulary, group);
            let (automaton, deriver) = (&mut self.dfas[from.dfa.0 as usize], &mut self.deriver);
            paths.walk(
                from.state,
                |state, byte, _| {
                    let next = automaton.next(deriver, state, byte)?;
                    Ok::<_, LimitExceeded>((next != StateId::DEAD).then_some(next))
                },
                |entry, state| found.push((nodes[entry as usize].0, state)),
            )?;
        }
        let runs = self.classes[&character].as_ref().expect("the runs were just found");
        self.masks_bytes += runs.memory_bytes() - before;
        found.sort_unstable_by_key(|&(node, _)| node);
        for (node, state) in found {
            if !self.accepts(from.dfa, state).is_empty() {
                ends.push(vocabulary, node as usize, state);
                if let Some(token) = trie.entry_at(node as usize) {
                    token_set::set(inside.words_mut(), token);
                }
            }
        }
        // This bound is large enough, for a token has no more characters than bytes.
        let most = trie.max_depth() as u32 + CHARACTERS_AFTER;
        Ok(Some(self.mask_with(vocabulary, from, Inside::Set(inside), ends).with_runs(name, Some(most))))
    }
}
