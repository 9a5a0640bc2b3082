//! How JSON texts are laid out: the text between values as expressions, including whitespace.
//!
//! Every gap between two tokens belongs to exactly one expression, so a run of whitespace is never read in two ways.
//! The indented form is that of Python's `json.dumps(indent=n)`: its gaps depend on the depth of the container.

use stencilm_regex::syntax::{Anchoring, Dialect, PatternErrorKind, PatternOptions, Utf8, parse_pattern};
use stencilm_regex::{Deriver, ExprId, ExprSet, Limits};

use super::common::Common;
use super::surface::Surface;
use crate::error::{ErrorKind, GrammarError};

/// The default for the longest run of whitespace.
pub(crate) const DEFAULT_MAX_WHITESPACE: Option<u32> = Some(64);

/// The greatest nesting depth of an indented text: its whitespace differs at every level.
pub(crate) const MAX_INDENT_DEPTH: u32 = 64;
/// The greatest width of one level of indentation.
const MAX_INDENT: u32 = 64;

/// What may stand between the tokens of a JSON text, as [regular expressions](crate::from_regex).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GapPatterns {
    /// Matched at most once wherever JSON allows whitespace.
    pub whitespace: String,
    /// Between two members or elements.
    pub item: String,
    /// Between the name of a member and its value.
    pub colon: String,
}

/// How a text is laid out.
pub(crate) struct LayoutOptions<'o> {
    /// Whether whitespace may stand between any two tokens; `indent` and `separators` are then ignored.
    pub(crate) any_whitespace: bool,
    /// The number of spaces for each level of an indented text, with one entry per line.
    pub(crate) indent: Option<u32>,
    /// The texts between entries, and between key and value.
    pub(crate) separators: Option<&'o (String, String)>,
    /// The texts between tokens, instead of what the fields above say.
    pub(crate) gaps: Option<&'o GapPatterns>,
    /// The length of the longest run of whitespace with `any_whitespace`; `None` without limit.
    pub(crate) max_whitespace: Option<u32>,
}

enum Layout {
    /// A run of up to this many whitespace characters in every gap.
    Whitespace(Option<u32>),
    /// Exactly these separators.
    Compact { item: String, colon: String },
    /// One entry per line.
    Indented { item: String, colon: String, width: u32 },
    /// What these patterns match.
    Patterns(GapPatterns),
}

/// The gaps of arrays and objects, by depth.
pub(crate) struct Surfaces {
    layout: Layout,
    /// The gaps of objects and of arrays, once built, if they are the same at every depth.
    known: [Option<Surface>; 2],
}

impl Surfaces {
    /// The surfaces for these options, using the common expressions.
    pub(super) fn laid_out(options: &LayoutOptions<'_>, common: &Common) -> Result<Surfaces, GrammarError> {
        let invalid = |message: String| Err(GrammarError::new(ErrorKind::Syntax, "", message));
        if let Some(patterns) = options.gaps {
            patterns.check()?;
            return Ok(Surfaces { layout: Layout::Patterns(patterns.clone()), known: [None; 2] });
        }
        if options.any_whitespace {
            let known = common.surfaces(options.max_whitespace).unwrap_or([None; 2]);
            return Ok(Surfaces { known, ..Surfaces::of_whitespace(options.max_whitespace) });
        }
        let default_item = if options.indent.is_some() { "," } else { ", " };
        let (item, colon) = match options.separators {
            Some((item, colon)) => (item.clone(), colon.clone()),
            None => (default_item.to_string(), ": ".to_string()),
        };
        for (separator, token) in [(&item, ","), (&colon, ":")] {
            if separator.trim_matches([' ', '\t', '\n', '\r']) != token {
                return invalid(format!(
                    "the separator {separator:?} does not make JSON; use {token:?} with blanks around it"
                ));
            }
        }
        let layout = match options.indent {
            None => Layout::Compact { item, colon },
            Some(width) if width > MAX_INDENT => {
                return invalid(format!("indent {width} is above {MAX_INDENT}; use fewer blanks"));
            }
            Some(width) => Layout::Indented { item, colon, width },
        };
        Ok(Surfaces { layout, known: [None; 2] })
    }

    /// Runs of up to `max` whitespace characters in every gap, for any set of expressions.
    pub(crate) fn of_whitespace(max: Option<u32>) -> Surfaces {
        Surfaces { layout: Layout::Whitespace(max), known: [None; 2] }
    }

    /// The gaps of objects and of arrays that were built.
    pub(crate) fn into_known(self) -> [Option<Surface>; 2] {
        self.known
    }

    /// Whether the gaps of a container depend on its depth.
    pub(crate) fn depends_on_depth(&self) -> bool {
        matches!(self.layout, Layout::Indented { .. })
    }

    /// The gaps of an object at a depth of `depth` containers.
    pub(crate) fn object(&mut self, exprs: &mut ExprSet, depth: u32) -> Surface {
        self.known(exprs, depth, 0, "{", "}")
    }

    /// The gaps of an array at a depth of `depth` containers; `colon` has no meaning there.
    pub(crate) fn array(&mut self, exprs: &mut ExprSet, depth: u32) -> Surface {
        self.known(exprs, depth, 1, "[", "]")
    }

    fn known(&mut self, exprs: &mut ExprSet, depth: u32, which: usize, left: &str, right: &str) -> Surface {
        if let Some(known) = self.known[which] {
            return known;
        }
        let surface = self.container(exprs, depth, left, right);
        if !self.depends_on_depth() {
            self.known[which] = Some(surface);
        }
        surface
    }

    fn container(&self, exprs: &mut ExprSet, depth: u32, left: &str, right: &str) -> Surface {
        match &self.layout {
            Layout::Whitespace(max) => {
                let whitespace = exprs.bytes([b' ', b'\t', b'\n', b'\r'].into_iter().collect());
                let whitespace = exprs.repeat(whitespace, 0, *max);
                let (item, colon) = (exprs.literal(b","), exprs.literal(b":"));
                uniform_gaps(exprs, whitespace, (item, colon), (left, right))
            }
            Layout::Patterns(patterns) => {
                let mut json = |pattern: &str, token: &str| {
                    let read = read(exprs, pattern).expect("the patterns were read when they came");
                    let json = between_whitespace(exprs, token);
                    exprs.and(&[read, json])
                };
                let (whitespace, item, colon) =
                    (json(&patterns.whitespace, ""), json(&patterns.item, ","), json(&patterns.colon, ":"));
                let whitespace = exprs.optional(whitespace);
                uniform_gaps(exprs, whitespace, (item, colon), (left, right))
            }
            Layout::Compact { item, colon } => {
                let mut text = |text: &str| exprs.literal(text.as_bytes());
                let (open, close) = (text(left), text(right));
                Surface { empty: text(&format!("{left}{right}")), open, colon: text(colon), item: text(item), close }
            }
            Layout::Indented { item, colon, width } => {
                let line = |depth: u32| format!("\n{}", " ".repeat((width * depth) as usize));
                let mut text = |text: &str| exprs.literal(text.as_bytes());
                Surface {
                    empty: text(&format!("{left}{right}")),
                    open: text(&format!("{left}{}", line(depth + 1))),
                    colon: text(colon),
                    item: text(&format!("{item}{}", line(depth + 1))),
                    close: text(&format!("{}{right}", line(depth))),
                }
            }
        }
    }
}

/// The gaps of a container with the same whitespace around every token.
fn uniform_gaps(
    exprs: &mut ExprSet,
    whitespace: ExprId,
    (item, colon): (ExprId, ExprId),
    (left, right): (&str, &str),
) -> Surface {
    let (left, right) = (exprs.literal(left.as_bytes()), exprs.literal(right.as_bytes()));
    let open = exprs.concat(left, whitespace);
    let colon = exprs.concat_all(&[whitespace, colon, whitespace]);
    let item = exprs.concat_all(&[whitespace, item, whitespace]);
    let close = exprs.concat(whitespace, right);
    Surface { empty: exprs.concat(open, right), open, colon, item, close }
}

fn read(exprs: &mut ExprSet, pattern: &str) -> Result<ExprId, GrammarError> {
    let options = PatternOptions { dialect: Dialect::Standard, anchoring: Anchoring::Whole };
    parse_pattern(exprs, pattern, &options, &mut Utf8).map_err(|inner| {
        let kind = match inner.kind {
            PatternErrorKind::Syntax => ErrorKind::Syntax,
            PatternErrorKind::Unsupported => ErrorKind::Unsupported,
            PatternErrorKind::Limit => ErrorKind::Limit,
        };
        let message = format!("the pattern {pattern:?} at offset {}: {}", inner.offset, inner.message);
        GrammarError::new(kind, "", message)
    })
}

/// A token of JSON with any whitespace around it.
fn between_whitespace(exprs: &mut ExprSet, token: &str) -> ExprId {
    let whitespace = exprs.bytes([b' ', b'\t', b'\n', b'\r'].into_iter().collect());
    let whitespace = exprs.repeat(whitespace, 0, None);
    let token = exprs.literal(token.as_bytes());
    exprs.concat_all(&[whitespace, token, whitespace])
}

impl GapPatterns {
    /// Refuses patterns that match more than whitespace, or more than a JSON separator with whitespace around it. `\s`
    /// also matches whitespace that JSON doesn't allow; that is ignored.
    fn check(&self) -> Result<(), GrammarError> {
        let mut exprs = ExprSet::default();
        for (pattern, token, what) in [
            (&self.whitespace, "", "blanks"),
            (&self.item, ",", "\",\" with blanks around it"),
            (&self.colon, ":", "\":\" with blanks around it"),
        ] {
            let texts = read(&mut exprs, pattern)?;
            let with_whitespace = read(&mut exprs, &format!(r"\s*{token}\s*"))?;
            let json = between_whitespace(&mut exprs, token);
            let others = exprs.not(with_whitespace);
            let (json, others) = (exprs.and(&[texts, json]), exprs.and(&[texts, others]));
            let mut deriver = Deriver::over(std::mem::take(&mut exprs), Limits::default());
            let live =
                |deriver: &mut Deriver, expr| deriver.is_live(expr).map_err(|limit| GrammarError::limit("", limit));
            if live(&mut deriver, others)? || !live(&mut deriver, json)? {
                let message = format!("the pattern {pattern:?} does not make JSON; match {what}, and nothing else");
                return Err(GrammarError::new(ErrorKind::Syntax, "", message));
            }
            exprs = deriver.exprs;
        }
        Ok(())
    }
}
