//! The pass over the parsed pattern: our meaning of `\d \s \w .`, and refusals at their place.
//!
//! The later stages have lost the offsets, so whatever cannot be enforced exactly is refused here. `regex-syntax`
//! would read `\d`, `\s` and `\w` as Unicode classes; they are replaced by the classes of ECMA-262, written out.
//! An explicit stack keeps deep patterns off the thread's stack.

use regex_syntax::ast::{
    AssertionKind, Ast, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet, ClassSetItem, ClassSetRange, ClassSetUnion,
    Flag, Flags, GroupKind, Literal, LiteralKind, RepetitionKind, RepetitionRange, Span,
};

use super::error::{PatternError, PatternErrorKind};
use super::options::Dialect;
use super::rewritten::Rewritten;

/// Most rounds of a repetition whose body has word boundaries or line anchors, because those are written out.
const MAX_WRITTEN_OUT: u32 = 100;
/// Most `\p{..}`, negated and case-insensitive classes: each may cost kilobytes.
const MAX_LARGE_CLASSES: usize = 5_000;
/// Most characters that are looked up to make the classes of a pattern. Nothing can interrupt that: it takes 50 ms for
/// letters, and up to 0.3 s for names of classes whose letters stand for both cases.
const MAX_LOOKED_UP: u32 = 3_000_000;
/// A class of Unicode takes about as long as this many look-ups, and as this many where its letters stand for both cases.
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

/// The flags that change what a piece means here.
#[derive(Clone, Copy, Default)]
struct Mode {
    dot_is_any: bool,
    multi_line: bool,
    fold_case: bool,
}

enum Task<'t> {
    /// A piece, and the innermost repetition around it whose rounds are too many to write out.
    Visit(&'t mut Ast, Option<Span>),
    Set(&'t mut ClassSet),
    Item(&'t mut ClassSetItem),
    /// The end of a group: its flags end too.
    Restore(Mode),
}

/// Replaces classes and refuses what cannot be enforced.
pub(super) fn check(ast: &mut Ast, pattern: &str, rewritten: &Rewritten, dialect: Dialect) -> Result<(), PatternError> {
    let refuse = |kind: PatternErrorKind, span: &Span, what: &str| {
        let (start, end) = (rewritten.original(span.start.offset), rewritten.original(span.end.offset));
        Err(PatternError::about(kind, pattern, start, end, what))
    };
    let (unsupported, syntax, limit) =
        (PatternErrorKind::Unsupported, PatternErrorKind::Syntax, PatternErrorKind::Limit);
    let mut mode = Mode::default();
    let (mut large_classes, mut looked_up) = (0, 0u32);
    let mut tasks = vec![Task::Visit(ast, None)];
    while let Some(task) = tasks.pop() {
        let mut large_class = None;
        match task {
            Task::Restore(outer) => mode = outer,
            Task::Visit(ast, many) => match ast {
                Ast::Empty(_) => {}
                Ast::Literal(literal) => large_class = mode.fold_case.then_some(literal.span),
                Ast::Dot(span) => {
                    if dialect == Dialect::EcmaScript && !mode.dot_is_any {
                        *ast = Ast::class_bracketed(class(**span, true, LINE_TERMINATORS));
                    }
                }
                Ast::Flags(set) => {
                    if let Some((span, what)) = bad_flag(&set.flags, dialect) {
                        return refuse(unsupported, &span, what);
                    }
                    mode = mode.with(&set.flags);
                }
                Ast::Assertion(assertion) => {
                    use AssertionKind::*;
                    let looks_at_kind = match assertion.kind {
                        StartText | EndText => false,
                        StartLine | EndLine => mode.multi_line,
                        WordBoundaryStartAngle | WordBoundaryEndAngle => {
                            let what = "means a word boundary in Rust and the character in Python; \
                                        write \\b{start}, \\b{end}, or the character alone";
                            return refuse(unsupported, &assertion.span, what);
                        }
                        _ => true,
                    };
                    if let (true, Some(repetition)) = (looks_at_kind, many) {
                        let what = "more than 100 rounds with a word boundary or line anchor inside; \
                                    move it out of the repetition";
                        return refuse(limit, &repetition, what);
                    }
                }
                Ast::ClassUnicode(unicode) => {
                    large_class = Some(unicode.span);
                    looked_up = looked_up.saturating_add(mode.looked_up_by_name());
                }
                Ast::ClassPerl(perl) => *ast = Ast::class_bracketed(perl_class(perl)),
                Ast::ClassBracketed(bracketed) => {
                    large_class = (mode.fold_case || bracketed.negated).then_some(bracketed.span);
                    tasks.push(Task::Set(&mut bracketed.kind));
                }
                Ast::Repetition(repetition) => {
                    if matches!(*repetition.ast, Ast::Repetition(_)) {
                        let what = "a quantifier directly after a quantifier; put the first in a group, as in (?:a+)*, \
                                    or drop one (possessive matching is not supported)";
                        return refuse(syntax, &repetition.op.span, what);
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
                    tasks.push(Task::Restore(mode));
                    if let GroupKind::NonCapturing(flags) = &group.kind {
                        if let Some((span, what)) = bad_flag(flags, dialect) {
                            return refuse(unsupported, &span, what);
                        }
                        mode = mode.with(flags);
                    }
                    tasks.push(Task::Visit(&mut group.ast, many));
                }
                Ast::Alternation(alternation) => {
                    tasks.extend(alternation.asts.iter_mut().rev().map(|ast| Task::Visit(ast, many)));
                }
                Ast::Concat(concat) => {
                    tasks.extend(concat.asts.iter_mut().rev().map(|ast| Task::Visit(ast, many)));
                }
            },
            Task::Set(ClassSet::Item(item)) => tasks.push(Task::Item(item)),
            Task::Set(ClassSet::BinaryOp(both)) => {
                large_class = Some(both.span);
                tasks.extend([Task::Set(&mut both.lhs), Task::Set(&mut both.rhs)]);
            }
            Task::Item(ClassSetItem::Range(range)) => {
                if mode.fold_case {
                    looked_up = looked_up.saturating_add(u32::from(range.end.c).saturating_sub(range.start.c.into()));
                    large_class = (looked_up > MAX_LOOKED_UP).then_some(range.span);
                }
            }
            Task::Item(item) => match item {
                ClassSetItem::Perl(perl) => *item = ClassSetItem::Bracketed(Box::new(perl_class(perl))),
                ClassSetItem::Unicode(unicode) => {
                    large_class = Some(unicode.span);
                    looked_up = looked_up.saturating_add(mode.looked_up_by_name());
                }
                ClassSetItem::Bracketed(bracketed) => {
                    large_class = bracketed.negated.then_some(bracketed.span);
                    tasks.push(Task::Set(&mut bracketed.kind));
                }
                ClassSetItem::Union(union) => tasks.extend(union.items.iter_mut().map(Task::Item)),
                ClassSetItem::Empty(_) | ClassSetItem::Literal(_) | ClassSetItem::Range(_) | ClassSetItem::Ascii(_) => {
                }
            },
        }
        if let Some(span) = large_class {
            large_classes += 1;
            if looked_up > MAX_LOOKED_UP {
                let what = "the Unicode and case-insensitive classes have too many characters in all; use fewer, or \
                            smaller ones";
                return refuse(limit, &span, what);
            }
            if large_classes > MAX_LARGE_CLASSES {
                let what = "more than 5000 Unicode, negated or case-insensitive classes; use fewer, or smaller ones";
                return refuse(limit, &span, what);
            }
        }
    }
    Ok(())
}

impl Mode {
    /// What a class of Unicode costs.
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
