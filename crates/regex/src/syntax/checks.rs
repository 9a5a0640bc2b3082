//! The pass over the parsed pattern: our meaning of `\d \s \w .`, and refusals at their place.
//!
//! Later stages do not have offsets any more, so whatever cannot be enforced exactly is refused here. `regex-syntax`
//! would read `\d`, `\s` and `\w` as Unicode classes; they are replaced by the classes of ECMA-262, written out. An
//! explicit stack keeps deep patterns off the thread's stack.

use regex_syntax::ast::{
    Assertion, AssertionKind, Ast, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet, ClassSetItem, ClassSetRange,
    ClassSetUnion, Flag, Flags, GroupKind, Literal, LiteralKind, RepetitionKind, RepetitionRange, Span,
};

use super::error::{PatternError, PatternErrorKind};
use super::options::Dialect;
use super::rewritten::Rewritten;

/// The greatest number of rounds of a repetition whose body has word boundaries or line anchors, because these are
/// written out.
const MAX_WRITTEN_OUT: u32 = 100;
/// The greatest number of `\p{..}`, negated and case-insensitive classes, each of which may take kilobytes.
const MAX_LARGE_CLASSES: usize = 5_000;
/// The greatest number of characters that are looked up to make the classes of a pattern. Nothing can interrupt that:
/// it takes 50 ms for letters, and up to 0.3 s for named classes whose letters stand for both cases.
const MAX_LOOKED_UP: u32 = 3_000_000;
/// A Unicode class takes about as long as this many look-ups, and as the second number if its letters stand for both
/// cases.
const LOOKED_UP_BY_NAME: u32 = 500;
const LOOKED_UP_IN_BOTH_CASES: u32 = 1_500;

const DIGITS: &[(char, char)] = &[('0', '9')];
const WORD: &[(char, char)] = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
/// WhiteSpace and LineTerminator of ECMA-262.
const SPACE: &[(char, char)] = &[
    ('\t', '\r'),
    (' ', ' '),
    ('\u{a0}', '\u{a0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{2000}', '\u{200a}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202f}', '\u{202f}'),
    ('\u{205f}', '\u{205f}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{feff}', '\u{feff}'),
];
const LINE_TERMINATORS: &[(char, char)] = &[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')];

/// The flags that change the meaning of a piece.
#[derive(Clone, Copy, Default)]
struct Mode {
    dot_is_any: bool,
    multi_line: bool,
    fold_case: bool,
}

enum Task<'t> {
    /// A piece, and the innermost repetition around it that has too many rounds to be written out.
    Visit(&'t mut Ast, Option<Span>),
    Set(&'t mut ClassSet),
    Item(&'t mut ClassSetItem),
    /// The end of a group: its flags end too.
    Restore(Mode),
}

/// Replaces classes, and refuses whatever cannot be enforced.
pub(super) fn check(ast: &mut Ast, pattern: &str, rewritten: &Rewritten, dialect: Dialect) -> Result<(), PatternError> {
    let mut checker = Checker { pattern, rewritten, dialect, mode: Mode::default(), large_classes: 0, looked_up: 0 };
    let mut tasks = vec![Task::Visit(ast, None)];
    while let Some(task) = tasks.pop() {
        let large_class = match task {
            Task::Restore(outer) => {
                checker.mode = outer;
                None
            }
            Task::Visit(ast, many) => checker.visit(ast, many, &mut tasks)?,
            Task::Set(ClassSet::Item(item)) => {
                tasks.push(Task::Item(item));
                None
            }
            Task::Set(ClassSet::BinaryOp(both)) => {
                tasks.extend([Task::Set(&mut both.lhs), Task::Set(&mut both.rhs)]);
                Some(both.span)
            }
            Task::Item(item) => checker.item(item, &mut tasks),
        };
        if let Some(span) = large_class {
            checker.count(&span)?;
        }
    }
    Ok(())
}

/// The state of the checks of a pattern.
struct Checker<'p> {
    pattern: &'p str,
    rewritten: &'p Rewritten,
    dialect: Dialect,
    mode: Mode,
    /// The number of classes so far that may be large.
    large_classes: usize,
    /// The number of characters that will be looked up for the classes so far.
    looked_up: u32,
}

impl Checker<'_> {
    fn refuse(&self, kind: PatternErrorKind, span: &Span, what: &str) -> PatternError {
        let (start, end) = (self.rewritten.original(span.start.offset), self.rewritten.original(span.end.offset));
        PatternError::about(kind, self.pattern, start, end, what)
    }

    /// Checks a piece; returns its span if it is a class that may be large.
    fn visit<'t>(
        &mut self,
        ast: &'t mut Ast,
        many: Option<Span>,
        tasks: &mut Vec<Task<'t>>,
    ) -> Result<Option<Span>, PatternError> {
        match ast {
            Ast::Empty(_) => {}
            Ast::Literal(literal) => return Ok(self.mode.fold_case.then_some(literal.span)),
            Ast::Dot(span) => {
                if self.dialect == Dialect::EcmaScript && !self.mode.dot_is_any {
                    *ast = Ast::class_bracketed(class(**span, true, LINE_TERMINATORS));
                }
            }
            Ast::Flags(set) => self.set_flags(&set.flags)?,
            Ast::Assertion(assertion) => self.assertion(assertion, many)?,
            Ast::ClassUnicode(unicode) => {
                self.looked_up = self.looked_up.saturating_add(self.mode.looked_up_by_name());
                return Ok(Some(unicode.span));
            }
            Ast::ClassPerl(perl) => *ast = Ast::class_bracketed(perl_class(perl)),
            Ast::ClassBracketed(bracketed) => {
                tasks.push(Task::Set(&mut bracketed.kind));
                return Ok((self.mode.fold_case || bracketed.negated).then_some(bracketed.span));
            }
            Ast::Repetition(repetition) => {
                if matches!(*repetition.ast, Ast::Repetition(_)) {
                    let what = "a quantifier directly after a quantifier; put the first in a group, as in (?:a+)*, \
                                or drop one (possessive matching is not supported)";
                    return Err(self.refuse(PatternErrorKind::Syntax, &repetition.op.span, what));
                }
                let greatest = match repetition.op.kind {
                    RepetitionKind::Range(
                        RepetitionRange::Exactly(n) | RepetitionRange::AtLeast(n) | RepetitionRange::Bounded(_, n),
                    ) => n,
                    _ => 1,
                };
                let many = if greatest > MAX_WRITTEN_OUT { Some(repetition.op.span) } else { many };
                tasks.push(Task::Visit(&mut repetition.ast, many));
            }
            Ast::Group(group) => {
                tasks.push(Task::Restore(self.mode));
                if let GroupKind::NonCapturing(flags) = &group.kind {
                    self.set_flags(flags)?;
                }
                tasks.push(Task::Visit(&mut group.ast, many));
            }
            Ast::Alternation(alternation) => {
                tasks.extend(alternation.asts.iter_mut().rev().map(|ast| Task::Visit(ast, many)));
            }
            Ast::Concat(concat) => {
                tasks.extend(concat.asts.iter_mut().rev().map(|ast| Task::Visit(ast, many)));
            }
        }
        Ok(None)
    }

    fn set_flags(&mut self, flags: &Flags) -> Result<(), PatternError> {
        if let Some((span, what)) = bad_flag(flags, self.dialect) {
            return Err(self.refuse(PatternErrorKind::Unsupported, &span, what));
        }
        self.mode = self.mode.with(flags);
        Ok(())
    }

    fn assertion(&self, assertion: &Assertion, many: Option<Span>) -> Result<(), PatternError> {
        use AssertionKind::*;
        let looks_at_kind = match assertion.kind {
            StartText | EndText => false,
            StartLine | EndLine => self.mode.multi_line,
            WordBoundaryStartAngle | WordBoundaryEndAngle => {
                let what = "means a word boundary in Rust and the character in Python; \
                            write \\b{start}, \\b{end}, or the character alone";
                return Err(self.refuse(PatternErrorKind::Unsupported, &assertion.span, what));
            }
            _ => true,
        };
        if let (true, Some(repetition)) = (looks_at_kind, many) {
            let what = "more than 100 rounds with a word boundary or line anchor inside; \
                        move it out of the repetition";
            return Err(self.refuse(PatternErrorKind::Limit, &repetition, what));
        }
        Ok(())
    }

    /// Checks an item of a class; returns its span if it may be large.
    fn item<'t>(&mut self, item: &'t mut ClassSetItem, tasks: &mut Vec<Task<'t>>) -> Option<Span> {
        match item {
            ClassSetItem::Range(range) => {
                if self.mode.fold_case {
                    let length = u32::from(range.end.c).saturating_sub(range.start.c.into());
                    self.looked_up = self.looked_up.saturating_add(length);
                    return (self.looked_up > MAX_LOOKED_UP).then_some(range.span);
                }
            }
            ClassSetItem::Perl(perl) => *item = ClassSetItem::Bracketed(Box::new(perl_class(perl))),
            ClassSetItem::Unicode(unicode) => {
                self.looked_up = self.looked_up.saturating_add(self.mode.looked_up_by_name());
                return Some(unicode.span);
            }
            ClassSetItem::Bracketed(bracketed) => {
                tasks.push(Task::Set(&mut bracketed.kind));
                return bracketed.negated.then_some(bracketed.span);
            }
            ClassSetItem::Union(union) => tasks.extend(union.items.iter_mut().map(Task::Item)),
            ClassSetItem::Empty(_) | ClassSetItem::Literal(_) | ClassSetItem::Ascii(_) => {}
        }
        None
    }

    /// Counts a class that may be large, and refuses it if there are too many.
    fn count(&mut self, span: &Span) -> Result<(), PatternError> {
        self.large_classes += 1;
        if self.looked_up > MAX_LOOKED_UP {
            let what = "the Unicode and case-insensitive classes have too many characters in all; use fewer, or \
                        smaller ones";
            return Err(self.refuse(PatternErrorKind::Limit, span, what));
        }
        if self.large_classes > MAX_LARGE_CLASSES {
            let what = "more than 5000 Unicode, negated or case-insensitive classes; use fewer, or smaller ones";
            return Err(self.refuse(PatternErrorKind::Limit, span, what));
        }
        Ok(())
    }
}

impl Mode {
    /// The cost of a Unicode class.
    fn looked_up_by_name(self) -> u32 {
        if self.fold_case { LOOKED_UP_IN_BOTH_CASES } else { LOOKED_UP_BY_NAME }
    }

    fn with(mut self, flags: &Flags) -> Mode {
        for (flag, field) in [
            (Flag::DotMatchesNewLine, &mut self.dot_is_any),
            (Flag::MultiLine, &mut self.multi_line),
            (Flag::CaseInsensitive, &mut self.fold_case),
        ] {
            *field = flags.flag_state(flag).unwrap_or(*field);
        }
        self
    }
}

fn bad_flag(flags: &Flags, dialect: Dialect) -> Option<(Span, &'static str)> {
    if flags.flag_state(Flag::Unicode) == Some(false) {
        return Some((flags.span, "patterns match characters, not bytes; drop -u"));
    }
    if flags.flag_state(Flag::CRLF).is_some() {
        return Some((flags.span, "the flag R is not supported; write \\r?\\n where it is meant"));
    }
    let foreign = [Flag::IgnoreWhitespace, Flag::SwapGreed].into_iter().any(|flag| flags.flag_state(flag).is_some());
    (foreign && dialect == Dialect::EcmaScript)
        .then_some((flags.span, "ECMA-262 knows only the flags i, m and s; rewrite the pattern without this one"))
}

fn perl_class(perl: &ClassPerl) -> ClassBracketed {
    let ranges = match perl.kind {
        ClassPerlKind::Digit => DIGITS,
        ClassPerlKind::Space => SPACE,
        ClassPerlKind::Word => WORD,
    };
    class(perl.span, perl.negated, ranges)
}

fn class(span: Span, negated: bool, ranges: &[(char, char)]) -> ClassBracketed {
    let literal = |c| Literal { span, kind: LiteralKind::Verbatim, c };
    let items = ranges
        .iter()
        .map(|&(first, last)| ClassSetItem::Range(ClassSetRange { span, start: literal(first), end: literal(last) }))
        .collect();
    ClassBracketed { span, negated, kind: ClassSet::union(ClassSetUnion { span, items }) }
}
