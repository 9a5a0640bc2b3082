//! Keys of an object that run out: whether a key that has begun can still become one that the object does not have.
//!
//! After some prefixes a class has only finitely many keys left, as under `^[a-z]{9}$`, and each may be used once. So a
//! thread within such a key stays only while some continuation is new. Nearly always that is obvious: no used key has
//! this prefix, or some live byte continues none of them. Otherwise only the paths along the used keys are followed, so
//! a search takes no more steps than these have characters.

use rustc_hash::FxHashSet;
use stencilm_regex::StateId;
use stencilm_support::STEPS;

use crate::error::EngineError;
use crate::lexeme::cache::DfaId;
use crate::machine::expansion::{Expansion, IN_WHITESPACE};
use crate::parse::stepper::Run;
use crate::parse::unverified::Unverified;
use crate::state::stacks::{Entry, NIL, UNKNOWN_TEXT};
use crate::vocabulary::json_text::{Begun, begun, escapes_of, first_code, value_of};
use crate::vocabulary::tokens::Tokens;

/// A position in a search: a state of the automaton, the escape that is being written, and the rests of the used keys
/// with this prefix.
struct Place<'k> {
    state: StateId,
    escape: Vec<u8>,
    rests: Vec<&'k [u8]>,
}

impl Run<'_> {
    /// Whether a thread reads a key for which no new continuation may be left.
    pub(crate) fn may_run_out(&self, expansion: &Expansion, thread: Entry) -> bool {
        expansion.locally_finite && (expansion.has_reserved || self.stacks.members(thread.register).seen != NIL)
    }

    /// Whether the key that a thread is in can still become a new one.
    pub(crate) fn can_be_new(&mut self, expansion: &Expansion, thread: Entry) -> Result<bool, EngineError> {
        if !self.may_run_out(expansion, thread) || thread.state & IN_WHITESPACE != 0 {
            return Ok(true);
        }
        let (Some(dfa), Some(members)) = (expansion.dfa(), expansion.members) else { return Ok(true) };
        let memory = self.stacks.members(thread.register);
        let written = self.stacks.text(memory.text);
        let Begun { value, escape, quoted } = begun(&written);
        let grammar = self.machine.grammar().clone();
        let reserved = grammar.members(members).additional[expansion.class as usize].reserved.iter();
        let seen: Vec<Vec<u8>> = self.used_keys(memory.seen);
        let used = seen.iter().map(Vec::as_slice).chain(reserved.map(|name| name.as_bytes()));
        let rests: Vec<&[u8]> = used.filter_map(|key| key.strip_prefix(&*value)).collect();
        let place = Place { state: StateId(thread.state), escape, rests };
        self.leads_to_a_new_key(dfa, place, quoted)
    }

    /// The keys of a list, as string values.
    fn used_keys(&self, seen: u32) -> Vec<Vec<u8>> {
        self.stacks.seen.entries(seen).filter(|&key| key != UNKNOWN_TEXT).map(|key| self.stacks.text(key)).collect()
    }

    fn leads_to_a_new_key(&mut self, dfa: DfaId, place: Place<'_>, quoted: bool) -> Result<bool, EngineError> {
        let mut work = vec![place];
        // A key with several spellings is reached by several paths.
        let mut seen = FxHashSet::default();
        let mut steps = 0;
        while let Some(Place { state, escape, rests }) = work.pop() {
            // Every state can be completed.
            if rests.is_empty() {
                return Ok(true);
            }
            if !quoted && !self.lexeme_cache.accepts(dfa, state).is_empty() && rests.iter().all(|rest| !rest.is_empty())
            {
                return Ok(true);
            }
            if !seen.insert((state, escape.clone(), rests.clone())) {
                continue;
            }
            let mut escapes = Vec::new();
            for byte in self.lexeme_cache.live_bytes(dfa, state)?.iter().collect::<Vec<u8>>() {
                steps += 1;
                if steps > STEPS {
                    return Err(EngineError::KeysTooCostly(STEPS));
                }
                let next = self.lexeme_cache.step(dfa, state, byte)?.0;
                if quoted && byte == b'"' && !escape.ends_with(b"\\") {
                    // The key may end here, and is new if no used one ends here.
                    let value = value_of(&[b"\"", &escape[..], b"\""].concat());
                    if !rests.contains(&&*value) {
                        return Ok(true);
                    }
                } else if !escape.is_empty() || (quoted && byte == b'\\') {
                    let written = [&escape[..], &[byte]].concat();
                    let Begun { value, escape, .. } = begun(&[b"\"", &written[..]].concat());
                    let rests = rests.iter().filter_map(|rest| rest.strip_prefix(&*value)).collect();
                    escapes.push(Place { state: next, escape, rests });
                } else {
                    let rests: Vec<&[u8]> = rests.iter().filter_map(|rest| rest.strip_prefix(&[byte])).collect();
                    if rests.is_empty() {
                        return Ok(true);
                    }
                    work.push(Place { state: next, escape: Vec::new(), rests });
                }
            }
            if escape.is_empty() {
                // Escapes come last, for they mostly spell characters that other bytes spell, too.
                work.splice(0..0, escapes);
            } else {
                // An escape that has begun is completed first, since nearly every character is new.
                work.append(&mut escapes);
            }
        }
        Ok(false)
    }

    /// The tokens within the key of a thread after which no new key may be left: those that continue a used key, in
    /// plain spelling or with escapes.
    pub(crate) fn tokens_towards_used_keys(
        &mut self,
        vocabulary: &Tokens,
        expansion: &Expansion,
        thread: Entry,
        tokens: &mut Vec<Unverified>,
    ) {
        let Some(members) = expansion.members else { return };
        let memory = self.stacks.members(thread.register);
        let written = self.stacks.text(memory.text);
        let Begun { value, escape, .. } = begun(&written);
        let grammar = self.machine.grammar().clone();
        let reserved = grammar.members(members).additional[expansion.class as usize].reserved.iter();
        let seen = self.used_keys(memory.seen);
        let used = seen.iter().map(Vec::as_slice).chain(reserved.map(|name| name.as_bytes()));
        let used: Vec<&[u8]> = used.filter(|key| key.starts_with(&value)).collect();
        if used.is_empty() {
            return;
        }
        let trie = vocabulary.trie();
        let mut along = |rest: &[u8]| {
            for length in 1..=rest.len() {
                let Some(node) = trie.find(&rest[..length]) else { break };
                tokens.extend(trie.entry_at(node).map(Unverified::begun_key));
            }
        };
        for key in &used {
            let rest = &key[value.len()..];
            if escape.is_empty() {
                along(rest);
                continue;
            }
            // What is no escape of JSON stands for itself.
            if let Some(rest) = rest.strip_prefix(&*escape) {
                along(rest);
            }
            // The open escape may spell the next character of the key, followed by the rest in plain spelling.
            let Some((next, length)) = first_code(rest) else { continue };
            for spelling in escapes_of(next).iter().filter_map(|spelling| spelling.strip_prefix(&*escape)) {
                along(&[spelling, &rest[length..]].concat());
            }
        }
        for &token in vocabulary.escaping() {
            let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
            let Begun { value, .. } = begun(&[&written[..], bytes].concat());
            if used.iter().any(|key| key.starts_with(&value)) {
                tokens.push(Unverified::begun_key(token));
            }
        }
    }
}
