//! Where a tokenizer cuts a text into pieces before it merges: its pattern as an automaton over classes of characters.
//!
//! Such patterns are matched leftmost-first, as by a backtracking search, and each match is a piece. The threads of
//! such a search in the order of their priority are a state (Pike's machine). Few lists of threads ever occur, so all
//! states are built beforehand. A condition on the next character, as in `\s+(?!\S)`, is decided when that character
//! comes.

use std::collections::VecDeque;

use regex_syntax::hir::{Class, Hir, HirKind};
use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;

use stencilm_support::{LOOKED_AT, SEARCHED};

/// Private-use characters that stand for conditions while the rest of the pattern is parsed.
const FIRST_MARK: u32 = 0x10_FF00;

/// The state before the first character of a piece.
pub(crate) const START: u16 = 0;
/// The state without threads.
pub(crate) const DEAD: u16 = u16::MAX;

/// A pattern as a table.
pub(crate) struct PreTokenizer {
    ascii: [u8; 128],
    /// The first character of each range of one class, ascending.
    stretches: Vec<(u32, u8)>,
    num_classes: usize,
    /// By state and class: the next state, and whether the piece may end before the character.
    steps: Vec<(u16, bool)>,
    /// By state: whether the piece may end here whatever comes.
    ends: Vec<bool>,
    /// By state: whether the piece may end here at the end of the text.
    ends_text: Vec<bool>,
    /// By state: the ASCII bytes that always begin another piece, and those that either do that or continue the piece.
    after: Vec<(ByteSet, ByteSet)>,
}

enum Instruction {
    /// Reads a character of a set.
    Read(usize),
    /// Continues with several alternatives, the first one first.
    Expansion(Vec<usize>),
    /// Continues if the next character is not in a set, or if there is none.
    Unless(usize),
    Match,
}

#[derive(Clone, Copy)]
enum Next {
    Unknown,
    Class(usize),
    End,
}

struct Compiler {
    instructions: Vec<Instruction>,
    sets: Vec<Vec<(u32, u32)>>,
    marks: Vec<usize>,
}

impl PreTokenizer {
    /// Reads a pattern.
    ///
    /// # Errors
    /// A sentence that says what is not supported.
    pub fn new(pattern: &str) -> Result<PreTokenizer, String> {
        let mut compiler = Compiler { instructions: Vec::new(), sets: Vec::new(), marks: Vec::new() };
        let plain = compiler.cut_conditions(pattern)?;
        let hir = parse(&plain)?;
        let end = compiler.push(Instruction::Match)?;
        let start = compiler.compile(&hir, end)?;
        let (stretches, classes_of) = compiler.classes();
        let num_classes = classes_of.len();
        if num_classes > usize::from(u8::MAX) {
            return Err(format!("the pattern tells {num_classes} classes of characters apart"));
        }
        let mut ascii = [0; 128];
        for (character, class) in ascii.iter_mut().enumerate() {
            *class = class_in(&stretches, character as u32);
        }
        let (steps, ends, ends_text, after) = Default::default();
        let mut pretokenizer = PreTokenizer { ascii, stretches, num_classes, steps, ends, ends_text, after };
        let mut known: FxHashMap<Vec<usize>, u16> = FxHashMap::default();
        let mut states: Vec<Vec<usize>> = vec![vec![start]];
        known.insert(vec![start], START);
        let mut at = 0;
        while at < states.len() {
            let here = states[at].clone();
            pretokenizer.ends.push(compiler.threads(&here, Next::Unknown, &classes_of).1);
            pretokenizer.ends_text.push(compiler.threads(&here, Next::End, &classes_of).1);
            for class in 0..num_classes {
                let (threads, matched) = compiler.threads(&here, Next::Class(class), &classes_of);
                let mut after: Vec<usize> = Vec::new();
                for (thread, set) in threads {
                    if classes_of[class][set] && !after.contains(&(thread + 1)) {
                        after.push(thread + 1);
                    }
                }
                let next = if after.is_empty() {
                    DEAD
                } else {
                    *known.entry(after).or_insert_with_key(|after| {
                        states.push(after.clone());
                        (states.len() - 1) as u16
                    })
                };
                pretokenizer.steps.push((next, matched));
            }
            if states.len() > LOOKED_AT {
                return Err(format!("the pattern has more than {LOOKED_AT} states"));
            }
            at += 1;
        }
        let begins = |state: u16, byte: u8| pretokenizer.step(state, pretokenizer.class(char::from(byte))).0 == DEAD;
        let after = (0..states.len() as u16).map(|state| match pretokenizer.may_end(state) {
            true => ((0..128).filter(|&byte| begins(state, byte)).collect(), ByteSet::ASCII),
            false => (ByteSet::EMPTY, ByteSet::EMPTY),
        });
        pretokenizer.after = after.collect();
        pretokenizer.check_that_nothing_is_left_out()?;
        Ok(pretokenizer)
    }

    /// The class of a character.
    #[inline]
    pub fn class(&self, character: char) -> u8 {
        match self.ascii.get(character as usize) {
            Some(&class) => class,
            None => class_in(&self.stretches, character as u32),
        }
    }

    /// The state after a character, [`DEAD`] where no thread is left, and whether the piece may end before the
    /// character.
    #[inline]
    pub fn step(&self, state: u16, class: u8) -> (u16, bool) {
        self.steps[usize::from(state) * self.num_classes + usize::from(class)]
    }

    /// The number of bytes of a text's first piece.
    pub fn first_piece(&self, text: &str) -> usize {
        let (mut state, mut end) = (START, 0);
        for (at, character) in text.char_indices() {
            let (next, ends) = self.step(state, self.class(character));
            if ends {
                end = at;
            }
            if next == DEAD {
                return end;
            }
            state = next;
            if self.may_end(state) {
                end = at + character.len_utf8();
            }
        }
        if self.may_end_text(state) { text.len() } else { end }
    }

    /// Whether a piece may end in this state whatever comes.
    #[inline]
    pub fn may_end(&self, state: u16) -> bool {
        self.ends[usize::from(state)]
    }

    /// Whether a piece may end in this state at the end of the text.
    pub fn may_end_text(&self, state: u16) -> bool {
        self.ends_text[usize::from(state)]
    }

    /// Bytes whose effect in a state is known in advance: those that always begin another piece, and those that either
    /// do that or continue the piece.
    pub fn after(&self, state: u16) -> (&ByteSet, &ByteSet) {
        let (new_piece, plain) = &self.after[usize::from(state)];
        (new_piece, plain)
    }

    /// The number of states.
    pub fn num_states(&self) -> usize {
        self.ends.len()
    }

    /// The number of classes of characters.
    pub fn num_classes(&self) -> usize {
        self.num_classes
    }

    /// Checks that every text is cut completely into pieces, and that no piece is empty.
    fn check_that_nothing_is_left_out(&self) -> Result<(), String> {
        if self.may_end(START) || self.may_end_text(START) {
            return Err("the pattern matches nothing at all".into());
        }
        let mut seen = vec![[false; 2]; self.ends.len()];
        let mut work = VecDeque::from([(START, false)]);
        while let Some((state, matched)) = work.pop_front() {
            let matched = matched || self.may_end(state);
            if std::mem::replace(&mut seen[usize::from(state)][usize::from(matched)], true) {
                continue;
            }
            let mut fits = state == START || matched || self.may_end_text(state);
            for class in 0..self.num_classes {
                let (next, ends) = self.step(state, class as u8);
                match next {
                    DEAD => fits &= matched || ends,
                    next => work.push_back((next, matched || ends)),
                }
            }
            if !fits {
                return Err("the pattern leaves characters out between its matches".into());
            }
        }
        Ok(())
    }
}

fn class_in(stretches: &[(u32, u8)], character: u32) -> u8 {
    stretches[stretches.partition_point(|&(first, _)| first <= character) - 1].1
}

fn parse(pattern: &str) -> Result<Hir, String> {
    let mut parser = regex_syntax::ParserBuilder::new().nest_limit(100).build();
    parser.parse(pattern).map_err(|error| {
        let message = error.to_string();
        format!("the pattern cannot be read: {}", message.lines().last().unwrap_or_default())
    })
}

impl Compiler {
    fn push(&mut self, instruction: Instruction) -> Result<usize, String> {
        if self.instructions.len() >= SEARCHED {
            return Err(format!("the pattern has more than {SEARCHED} parts"));
        }
        self.instructions.push(instruction);
        Ok(self.instructions.len() - 1)
    }

    /// Replaces each `(?!...)` around one class of characters by a mark.
    fn cut_conditions(&mut self, pattern: &str) -> Result<String, String> {
        let mut plain = String::new();
        let mut rest = pattern;
        while let Some((before, after)) = rest.split_once("(?!") {
            let condition = |end: usize| parse(&after[..end]).ok().and_then(|hir| ranges_of(&hir));
            let ends = after.match_indices(')').map(|(end, _)| end);
            let Some((end, set)) = ends.take(8).find_map(|end| Some((end, condition(end)?))) else {
                return Err("the pattern has a look-ahead at more than one character".into());
            };
            let set = self.set(set);
            let mark = char::from_u32(FIRST_MARK + self.marks.len() as u32).filter(|&mark| !pattern.contains(mark));
            plain += before;
            plain.push(mark.ok_or("the pattern has too many look-aheads")?);
            self.marks.push(set);
            rest = &after[end + 1..];
        }
        Ok(plain + rest)
    }

    fn set(&mut self, ranges: Vec<(u32, u32)>) -> usize {
        self.sets.push(ranges);
        self.sets.len() - 1
    }

    /// Emits instructions that match a part and then continue at `next`. `Read` continues at the instruction after it,
    /// so that one is always a jump to `next`.
    fn compile(&mut self, hir: &Hir, next: usize) -> Result<usize, String> {
        if let Some(ranges) = ranges_of(hir) {
            return match ranges[..] {
                [(first, last)]
                    if first == last && (FIRST_MARK..FIRST_MARK + self.marks.len() as u32).contains(&first) =>
                {
                    let condition = self.push(Instruction::Unless(self.marks[(first - FIRST_MARK) as usize]))?;
                    self.push(Instruction::Expansion(vec![next]))?;
                    Ok(condition)
                }
                _ => {
                    let set = self.set(ranges);
                    let read = self.push(Instruction::Read(set))?;
                    self.push(Instruction::Expansion(vec![next]))?;
                    Ok(read)
                }
            };
        }
        match hir.kind() {
            HirKind::Empty => Ok(next),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).map_err(|_| "the pattern is not about characters")?;
                text.chars().rev().try_fold(next, |next, character| {
                    self.compile(&Hir::literal(character.to_string().into_bytes()), next)
                })
            }
            HirKind::Concat(parts) => parts.iter().rev().try_fold(next, |next, part| self.compile(part, next)),
            HirKind::Alternation(parts) => {
                let alternatives = parts.iter().map(|part| self.compile(part, next)).collect::<Result<_, _>>()?;
                self.push(Instruction::Expansion(alternatives))
            }
            HirKind::Capture(capture) => self.compile(&capture.sub, next),
            HirKind::Repetition(repetition) => {
                let order = |more, enough| if repetition.greedy { vec![more, enough] } else { vec![enough, more] };
                let mut after = next;
                match repetition.max {
                    None => {
                        let again = self.push(Instruction::Expansion(Vec::new()))?;
                        let more = self.compile(&repetition.sub, again)?;
                        self.instructions[again] = Instruction::Expansion(order(more, next));
                        after = again;
                    }
                    Some(max) => {
                        for _ in repetition.min..max {
                            let more = self.compile(&repetition.sub, after)?;
                            after = self.push(Instruction::Expansion(order(more, next)))?;
                        }
                    }
                }
                (0..repetition.min).try_fold(after, |next, _| self.compile(&repetition.sub, next))
            }
            HirKind::Look(_) => Err("the pattern has an anchor or a word boundary".into()),
            HirKind::Class(_) => Err("the pattern is about bytes, not characters".into()),
        }
    }

    /// Ranges of characters that no set distinguishes, and for each class of them the sets that it belongs to.
    fn classes(&self) -> (Vec<(u32, u8)>, Vec<Vec<bool>>) {
        // Surrogates are no characters, so no set contains them.
        let mut firsts: Vec<u32> = vec![0, 0xE000];
        for &(first, last) in self.sets.iter().flatten() {
            firsts.extend([first, last + 1]);
        }
        firsts.sort_unstable();
        firsts.dedup();
        let mut known: FxHashMap<Vec<bool>, usize> = FxHashMap::default();
        let mut stretches: Vec<(u32, u8)> = Vec::new();
        for first in firsts.into_iter().filter(|&first| char::from_u32(first).is_some()) {
            let inside = |set: &Vec<(u32, u32)>| {
                let at = set.partition_point(|&(_, last)| last < first);
                set.get(at).is_some_and(|&(start, _)| start <= first)
            };
            let sets: Vec<bool> = self.sets.iter().map(inside).collect();
            let count = known.len();
            let class = *known.entry(sets).or_insert(count);
            // If there are too many classes, the caller refuses the pattern.
            stretches.push((first, class.min(usize::from(u8::MAX)) as u8));
        }
        let mut classes: Vec<(usize, Vec<bool>)> = known.into_iter().map(|(sets, class)| (class, sets)).collect();
        classes.sort_unstable();
        (stretches, classes.into_iter().map(|(_, sets)| sets).collect())
    }

    /// The reading threads of a state by priority, each with its set, up to the first one that has matched; and whether
    /// one has.
    fn threads(&self, state: &[usize], next: Next, classes: &[Vec<bool>]) -> (Vec<(usize, usize)>, bool) {
        let mut seen = vec![false; self.instructions.len()];
        let mut threads = Vec::new();
        let mut work: Vec<usize> = state.iter().rev().copied().collect();
        while let Some(at) = work.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            match &self.instructions[at] {
                Instruction::Read(set) => threads.push((at, *set)),
                Instruction::Expansion(alternatives) => work.extend(alternatives.iter().rev()),
                Instruction::Unless(set) => match next {
                    Next::Unknown => {}
                    Next::Class(class) if classes[class][*set] => {}
                    Next::Class(_) | Next::End => work.push(at + 1),
                },
                Instruction::Match => return (threads, true),
            }
        }
        (threads, false)
    }
}

/// The characters of a part that matches exactly one character.
fn ranges_of(hir: &Hir) -> Option<Vec<(u32, u32)>> {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            Some(class.ranges().iter().map(|range| (range.start() as u32, range.end() as u32)).collect())
        }
        HirKind::Class(Class::Bytes(class)) => {
            let ranges: Vec<(u32, u32)> =
                class.ranges().iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).collect();
            ranges.iter().all(|&(_, last)| last < 128).then_some(ranges)
        }
        HirKind::Literal(literal) => {
            let mut characters = std::str::from_utf8(&literal.0).ok()?.chars();
            let only = characters.next()? as u32;
            characters.next().is_none().then(|| vec![(only, only)])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPT_2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
    const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

    fn pieces(pattern: &str, text: &str) -> Vec<String> {
        let pretokenizer = PreTokenizer::new(pattern).expect("the pattern is read");
        let (mut pieces, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(pretokenizer.first_piece(rest));
            pieces.push(piece.into());
            rest = after;
        }
        pieces
    }

    #[test]
    fn the_pieces_of_known_patterns() {
        let table: [(&str, &str, &[&str]); 8] = [
            (GPT_2, "don't  stop 12345", &["don", "'t", " ", " stop", " 12345"]),
            (GPT_2, "a   \n b  ", &["a", "   \n", " b", "  "]),
            (GPT_2, "'rx'", &["'", "rx", "'"]),
            (LLAMA_3, "DON'T  1 12345", &["DON", "'T", " ", " ", "1", " ", "123", "45"]),
            (LLAMA_3, "{\"a\":  \n\n  x", &["{\"", "a", "\":", "  \n\n", " ", " x"]),
            (LLAMA_3, "'rx \t\n .", &["'rx", " \t\n", " ."]),
            (r"[a-z]+?|.|\n", "ab", &["a", "b"]),
            (r"\p{N}{2}|\p{N}|[^\p{N}]", "123x", &["12", "3", "x"]),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(pieces(pattern, text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for (pattern, message) in [
            (r"\p{L}+", "leaves characters out"),
            (r"\p{L}*", "matches nothing"),
            (r"^a|(?s:.)", "anchor"),
            (r"a(?!bc)|(?s:.)", "look-ahead"),
            (r"a(?<=b)|(?s:.)", "cannot be read"),
            (r"(a", "cannot be read"),
        ] {
            let error = PreTokenizer::new(pattern).err().expect("it is refused");
            assert!(error.contains(message), "{pattern}: {error}");
        }
    }
}
