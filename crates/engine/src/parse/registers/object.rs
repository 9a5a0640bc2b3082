//! The register of an object: its members, their number, and the key being written.

use stencilm_grammar::{Members, MembersId};
use stencilm_regex::StateId;

use crate::machine::expansion::Expansion;
use crate::machine::frame::{MemberChange, Phase};
use crate::machine::layout::Machine;
use crate::machine::object_facts::{Had, has_finite, most_additional};
use crate::parse::registers::meaning::Meaning;
use crate::parse::stepper::{Compared, Run};
use crate::state::stacks::{Entry, MembersState, NIL, Stacks, UNKNOWN_TEXT};
use crate::vocabulary::json_text;

/// The register of an object.
#[derive(Clone, Copy)]
pub(super) struct ObjectRegister {
    pub members: MembersId,
    /// Before a key; otherwise after a value.
    pub before_key: bool,
}

impl Meaning for ObjectRegister {
    type Change = MemberChange;

    fn phase(self, machine: &mut Machine, stacks: &Stacks, register: u32) -> Phase {
        let had = had(machine.grammar().members(self.members), stacks, register);
        if self.before_key {
            machine.key_phase(self.members, had)
        } else {
            machine.after_value_phase(self.members, had)
        }
    }

    fn changed(run: &mut Run<'_>, change: MemberChange, expansion: &Expansion, thread: Entry) -> Option<u32> {
        let object = expansion.members?;
        let old = run.stacks.members(thread.register);
        let ordered = run.machine.grammar().members(object).ordered as u32;
        let (satisfied, new) = match change {
            MemberChange::Known(member) if member < ordered => (0, MembersState { next: member + 1, ..old }),
            MemberChange::Known(member) => {
                let known = run.machine.known_with(old.known, member);
                (0, MembersState { next: ordered, known, ..old })
            }
            MemberChange::Additional { satisfied } => {
                let key = run.new_key(object, expansion, old, "")?;
                let seen = run.stacks.seen.append(old.seen, key);
                (satisfied, MembersState { next: ordered, seen, ..old })
            }
            MemberChange::Last => {
                let grammar = run.machine.grammar().clone();
                let after = grammar.members(object).additional[expansion.class as usize].last.as_deref();
                run.new_key(object, expansion, old, after.unwrap_or_default())?;
                // Part of the key comes after the end of the cut-off object, so whether or not the text ends here,
                // other keys may also begin with what was written.
                return Some(0);
            }
        };
        let tally = run.counted(object, old.tally, satisfied);
        Some(run.stacks.intern_members(MembersState { text: NIL, name: 0, tally, ..new }))
    }

    fn read(self, run: &mut Run<'_>, expansion: &Expansion, register: u32, byte: u8) -> u32 {
        let old = run.stacks.members(register);
        let text = run.stacks.append(old.text, u32::from(byte));
        let name = if expansion.has_reserved {
            let before = if old.text == NIL { StateId::START } else { StateId(old.name) };
            run.machine.names(self.members).next(before, byte).0
        } else {
            0
        };
        run.stacks.intern_members(MembersState { text, name, ..old })
    }

    fn describe(self, machine: &Machine, stacks: &Stacks, register: u32, horizon: u32, description: &mut Vec<u64>) {
        let state = stacks.members(register);
        description.push(u64::from(state.next) << 32 | u64::from(state.known));
        let begun = u64::from(state.text != NIL) << 1 | u64::from(state.seen != NIL);
        description.push(u64::from(state.name) << 32 | begun);
        let members = machine.grammar().members(self.members);
        let had = had(members, stacks, register);
        let far = u64::from(horizon) + 1;
        if members.is_counted() {
            let missing = u64::from(members.min.saturating_sub(had.count));
            let missing = if most_additional(members).is_some() { missing } else { missing.min(far) };
            let most_needed = (members.declared.len() + members.additional.len()) as u64;
            let room = members.max.map_or(u64::MAX, |max| u64::from(max - had.count).min(far + most_needed));
            description.extend([missing << 32 | u64::from(had.satisfied), room]);
        }
        if let Some(most) = most_additional(members).filter(|_| has_finite(members)) {
            let far = far + u64::from(members.min) + members.declared.len() as u64;
            description.push((most.saturating_sub(had.additional as usize) as u64).min(far));
        }
    }
}

impl Run<'_> {
    /// The additional key that was read, followed by `after`, the part of it that comes after a cut-off object; `None`
    /// where it is not new. An optimistic mask takes it for a new, unknown key.
    fn new_key(&mut self, object: MembersId, expansion: &Expansion, old: MembersState, after: &str) -> Option<u32> {
        if !self.is_exact() {
            if after.is_empty() {
                self.assumed.seen |= old.seen != NIL;
                self.assumed.reserved |= expansion.has_reserved;
            }
            return Some(UNKNOWN_TEXT);
        }
        if let Some(compared) = &mut self.compared {
            compared.push(match after {
                "" => Compared::Key { object, class: expansion.class, written: old.text, seen: old.seen },
                _ => Compared::Other,
            });
        }
        let mut written = self.stacks.text(old.text);
        written.extend_from_slice(after.as_bytes());
        let value = json_text::value_of(&written);
        // The key is nearly always a declared name, which is not worth interning.
        if self.machine.is_reserved(object, expansion.class, &value) {
            return None;
        }
        let key = self.stacks.intern_key(&value);
        (!self.stacks.seen.has(old.seen, key)).then_some(key)
    }

    /// The tally of an object after one more member. If there is only a minimum, counting stops there.
    fn counted(&mut self, object: MembersId, tally: u32, satisfied: u32) -> u32 {
        let members = self.machine.grammar().members(object);
        if !members.is_counted() {
            return NIL;
        }
        let (count, before) = self.stacks.unpair(tally);
        let count = count.saturating_add(1);
        let count = if members.max.is_none() { count.min(members.min) } else { count };
        self.stacks.pair(count, before | satisfied)
    }
}

/// The members that an object has, according to its register.
fn had(members: &Members, stacks: &Stacks, register: u32) -> Had {
    let state = stacks.members(register);
    let (count, satisfied) = stacks.unpair(state.tally);
    let additional = if has_finite(members) { stacks.seen.entries(state.seen).count() as u32 } else { 0 };
    Had { next: state.next, known: state.known, count, satisfied, additional }
}
