//! How many members an object and elements an array can still have: which counts can be brought within their bounds.
//!
//! Both are asked twice: here, with the parts that match something, to drop what never matches; and by a matcher before
//! every member and element, so that it never walks into a dead end.

use std::collections::BTreeSet;

use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{Element, Items, KeySpace, Members, NodeId};

/// The greatest number of ways to divide elements among counters that are tried to decide whether an array can be
/// completed.
const MAX_SHARES: u64 = 10_000;
/// The greatest number of counts at all leading positions together.
const MAX_COUNTS: u64 = 1_000_000;

impl Members {
    /// Whether an object matches some text, given which values do.
    pub(crate) fn is_possible(&self, is_alive: impl Fn(NodeId) -> bool) -> bool {
        let required = self.declared.iter().filter(|known| known.required);
        let from_others = self.additional.iter().filter_map(|additional| additional.some);
        let needed = required.clone().count() + from_others.clone().count();
        let mut available = self.declared.iter().filter(|known| is_alive(known.value)).count() as u64;
        let mut infinite = false;
        for additional in self
            .whole_others()
            .filter(|additional| is_alive(additional.value) || additional.some.is_some_and(&is_alive))
        {
            match additional.space {
                KeySpace::Finite(count) => available += u64::from(count),
                KeySpace::Infinite | KeySpace::LocallyFinite => infinite = true,
            }
        }
        required.map(|known| known.value).chain(from_others).all(&is_alive)
            && self.max.is_none_or(|max| needed <= max as usize && self.min <= max)
            && (infinite || u64::from(self.min) <= available)
            && (!self.is_cut()
                || self.additional.iter().any(|additional| additional.last.is_some() && is_alive(additional.value)))
    }
}

impl Items {
    /// Whether an array with `place` elements and these counts can still be completed: whether some number of further
    /// elements brings everything within its bounds. A counter without a greatest value need not count beyond its least
    /// one.
    pub fn can_complete(&self, place: u32, counts: &[u32], is_alive: impl Fn(NodeId) -> bool) -> bool {
        let max = self.max.unwrap_or(u32::MAX);
        if place > max {
            return false;
        }
        let mut place = place;
        // All counts that the leading positions can lead to.
        let mut all: BTreeSet<Vec<u32>> = BTreeSet::from([counts.to_vec()]);
        while let Some(alternatives) = self.prefix.get(place as usize) {
            if place >= self.min && all.iter().any(|counts| self.is_satisfied(counts)) {
                return true;
            }
            if place == max {
                return false;
            }
            let masks = masks(alternatives, &is_alive);
            all = all.iter().flat_map(|counts| masks.iter().filter_map(|&mask| self.counted(counts, mask))).collect();
            place += 1;
        }
        let masks = masks(&self.rest, &is_alive);
        all.iter().any(|counts| self.rest_can_complete(counts, &masks, self.min.saturating_sub(place), max - place))
    }

    /// The counts after one more element; `None` if that is one too many.
    pub fn counted(&self, counts: &[u32], mask: u32) -> Option<Vec<u32>> {
        let mut counts = counts.to_vec();
        for (index, (count, &(min, max))) in counts.iter_mut().zip(&self.contains).enumerate() {
            if mask & (1 << index) != 0 {
                *count = match max {
                    Some(max) if *count >= max => return None,
                    Some(_) => *count + 1,
                    None => min.min(*count + 1),
                };
            }
        }
        Some(counts)
    }

    /// Whether two equal elements can always be added, whatever the array already has, given which values match some
    /// text: some element of the later positions may come twice more, and no leading position prevents that.
    pub fn can_always_repeat(&self, is_alive: impl Fn(NodeId) -> bool) -> bool {
        let bounded = self.contains.iter().enumerate().filter(|(_, (_, max))| max.is_some());
        let bounded = bounded.fold(0, |bits: u32, (index, _)| bits | 1 << index);
        let is_alive = |element: &&Element| is_alive(element.value);
        let is_free = |element: &Element| element.counts & bounded == 0;
        let is_passed = |place: &[Element]| {
            let mut alive = place.iter().filter(is_alive).peekable();
            alive.peek().is_some() && alive.all(is_free)
        };
        self.max.is_none()
            && self.rest.iter().filter(is_alive).any(is_free)
            && self.prefix.iter().all(|place| is_passed(place))
    }

    /// Refuses an array in which two elements must be equal, if it might have to make its last possible element equal
    /// to an earlier one: that would take a search among all spellings.
    pub(crate) fn check_repeats(&self) -> Result<(), GrammarError> {
        if !self.must_repeat() || self.can_always_repeat(|_| true) {
            return Ok(());
        }
        let message = "two elements of an array must be equal, and not every such array can get two that are: there is a greatest \
                       number of elements, or of those of a kind; leave that out, or that two are equal";
        Err(GrammarError::new(ErrorKind::Unsupported, "", message))
    }

    /// Whether every counter has reached its least value.
    pub fn is_satisfied(&self, counts: &[u32]) -> bool {
        counts.iter().zip(&self.contains).all(|(count, (min, _))| count >= min)
    }

    /// Whether some number of elements of these kinds, from `least` to `most`, brings the counts within their bounds.
    ///
    /// Elements that count for several counters are divided among them in every way. Then each counter is independent,
    /// and the number of elements may be anything between the least and the greatest.
    fn rest_can_complete(&self, counts: &[u32], masks: &BTreeSet<u32>, least: u32, most: u32) -> bool {
        let bounds = counts.iter().zip(&self.contains);
        let (needs, rooms): (Vec<u64>, Vec<Option<u64>>) = bounds
            .map(|(&count, &(min, max))| (u64::from(min.saturating_sub(count)), max.map(|max| u64::from(max - count))))
            .unzip();
        let most = if self.max.is_none() { u64::MAX } else { u64::from(most) };
        let shared: Vec<Shared> = masks
            .iter()
            .filter(|mask| mask.count_ones() > 1)
            .map(|&mask| {
                let shared = share(mask, masks, &needs, &rooms);
                Shared { most: shared.most.min(most), ..shared }
            })
            .collect();
        let mut taken = vec![0u64; shared.len()];
        loop {
            if self.fits(&needs, &rooms, masks, &shared, &taken, (u64::from(least), most)) {
                return true;
            }
            // The next way to divide them, counting up like an odometer.
            let Some(digit) = (0..taken.len()).find(|&digit| taken[digit] < shared[digit].most) else { return false };
            taken[digit] += 1;
            taken[..digit].fill(0);
        }
    }

    fn fits(
        &self,
        needs: &[u64],
        rooms: &[Option<u64>],
        masks: &BTreeSet<u32>,
        shared: &[Shared],
        taken: &[u64],
        (least, most): (u64, u64),
    ) -> bool {
        let sum: u64 = taken.iter().sum();
        let (mut fewest, mut greatest) = (sum, Some(sum));
        for (shared, taken) in shared.iter().zip(taken) {
            greatest = match shared.more {
                More::None => greatest,
                More::UpTo(in_all) => greatest.map(|greatest| greatest + (in_all - taken)),
                More::Infinite => None,
            };
        }
        if masks.contains(&0) {
            greatest = None;
        }
        for (index, (&need, &room)) in needs.iter().zip(rooms).enumerate() {
            let mine = shared.iter().zip(taken).filter(|(shared, _)| shared.mask & (1 << index) != 0);
            let got: u64 = mine.map(|(_, &count)| count).sum();
            if room.is_some_and(|room| got > room) {
                return false;
            }
            let need = need.saturating_sub(got);
            if masks.contains(&(1 << index)) {
                fewest += need;
                greatest = greatest.zip(room).map(|(greatest, room)| greatest + (room - got));
            } else if need > 0 {
                return false;
            }
        }
        fewest <= most && greatest.is_none_or(|greatest| greatest >= least)
    }

    /// Refuses more counters than can be decided together.
    pub(crate) fn check_counters(&self) -> Result<(), GrammarError> {
        let (needs, rooms): (Vec<u64>, Vec<Option<u64>>) =
            self.contains.iter().map(|&(min, max)| (u64::from(min), max.map(u64::from))).unzip();
        let masks: BTreeSet<u32> = self.rest.iter().map(|element| element.counts).collect();
        let shared = masks.iter().filter(|mask| mask.count_ones() > 1);
        let shares = shared.fold(1u64, |all, &mask| {
            let most = share(mask, &masks, &needs, &rooms).most;
            all.saturating_mul(most.saturating_add(1))
        });
        let length = self.prefix.len() as u64;
        let counts = needs.iter().zip(&rooms).fold(length, |all, (&need, room)| {
            let most = room.unwrap_or(need).min(length);
            all.saturating_mul(most + 1)
        });
        if shares <= MAX_SHARES && counts <= MAX_COUNTS {
            return Ok(());
        }
        let message = "an array counts elements in too many ways at once to tell whether it can be completed; count fewer \
                       kinds, or to smaller bounds";
        Err(GrammarError::new(ErrorKind::Limit, "", message))
    }
}

/// Elements that count for several counters.
struct Shared {
    /// The counters, one bit each.
    mask: u32,
    /// The greatest number that may be useful.
    most: u64,
    more: More,
}

/// How many elements may come beyond the useful ones: they only make the array longer.
enum More {
    None,
    /// This many in all.
    UpTo(u64),
    Infinite,
}

/// How many elements that count for several counters may be useful, and how many may come in all.
///
/// A counter that no other elements count for bounds their number and competes with no other counter. If all other
/// counters have no greatest value, taking more of these elements than needed only makes the array longer.
fn share(mask: u32, masks: &BTreeSet<u32>, needs: &[u64], rooms: &[Option<u64>]) -> Shared {
    let mine = |index: &usize| mask & (1 << index) != 0;
    let is_own = |index: &usize| masks.iter().all(|&other| other == mask || other & (1 << index) == 0);
    let need = (0..needs.len()).filter(mine).map(|index| needs[index]).max().unwrap_or(0);
    let (own, others): (Vec<usize>, Vec<usize>) = (0..rooms.len()).filter(mine).partition(is_own);
    let least_room = |counters: Vec<usize>| counters.into_iter().filter_map(|index| rooms[index]).min();
    match (least_room(others), least_room(own)) {
        (Some(room), own) => Shared { mask, most: room.min(own.unwrap_or(room)), more: More::None },
        (None, Some(own)) => Shared { mask, most: need.min(own), more: More::UpTo(own) },
        (None, None) => Shared { mask, most: need, more: More::Infinite },
    }
}

fn masks(alternatives: &[Element], is_alive: impl Fn(NodeId) -> bool) -> BTreeSet<u32> {
    alternatives.iter().filter(|element| is_alive(element.value)).map(|element| element.counts).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stencilm_regex::ExprId;

    use super::*;
    use crate::ir::grammar::{ArraySurface, Repeats};

    /// The longest array that the slow reference tries; the bounds are so small that no longer one is needed.
    const LONGEST: u32 = 9;

    /// Decides it by trying all continuations.
    fn can_complete_slowly(items: &Items, place: u32, counts: &[u32]) -> bool {
        let within = |count: u32, min: u32, max: Option<u32>| count >= min && max.is_none_or(|max| count <= max);
        let counted = counts.iter().zip(&items.contains).all(|(&count, &(min, max))| within(count, min, max));
        if counted && within(place, items.min, items.max) {
            return true;
        }
        if place >= LONGEST.min(items.max.unwrap_or(LONGEST)) {
            return false;
        }
        items.at(place as usize).iter().any(|element| {
            let more = |(index, &count): (usize, &u32)| count + (element.counts >> index & 1);
            let after: Vec<u32> = counts.iter().enumerate().map(more).collect();
            can_complete_slowly(items, place + 1, &after)
        })
    }

    fn bounds(least: u32, more: u32) -> impl Strategy<Value = (u32, Option<u32>)> {
        (0..=least, prop::option::of(0..=more)).prop_map(|(min, more)| (min, more.map(|more| min + more)))
    }

    fn arrays() -> impl Strategy<Value = Items> {
        let place = || prop::collection::vec(0..8u32, 0..4);
        let elements = |counts: Vec<u32>, known: u32| -> Box<[Element]> {
            counts.into_iter().map(|counts| Element { value: NodeId(0), counts: counts & known }).collect()
        };
        let parts =
            (prop::collection::vec(place(), 0..3), place(), bounds(3, 3), prop::collection::vec(bounds(2, 2), 0..4));
        parts.prop_map(move |(prefix, rest, (min, max), contains)| {
            let known = (1 << contains.len()) - 1;
            let surface =
                ArraySurface { empty: ExprId::EMPTY, open: ExprId::EMPTY, item: ExprId::EMPTY, close: ExprId::EMPTY };
            let prefix = prefix.into_iter().map(|place| elements(place, known)).collect();
            Items { prefix, rest: elements(rest, known), min, max, contains, repeats: Repeats::Any, surface }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 10 } else { 400 }))]

        #[test]
        fn what_can_be_completed_is_what_trying_finds(items in arrays(), steps in prop::collection::vec(0..4usize, 0..4)) {
            let mut counts = vec![0; items.contains.len()];
            let mut place = 0;
            for step in std::iter::once(None).chain(steps.into_iter().map(Some)) {
                if let Some(step) = step {
                    let Some(element) = items.at(place as usize).get(step) else { break };
                    let Some(after) = items.counted(&counts, element.counts) else { break };
                    if items.max.is_some_and(|max| place >= max) {
                        break;
                    }
                    (place, counts) = (place + 1, after);
                }
                let fast = items.can_complete(place, &counts, |_| true);
                prop_assert_eq!(fast, can_complete_slowly(&items, place, &counts), "{:?} at {} with {:?}", items, place, counts);
            }
        }
    }
}
