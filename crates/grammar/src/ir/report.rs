//! What became of every constraint in the input: enforced, an annotation by the specification, or relaxed on request.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use stencilm_support::{memory, unwatched};

use crate::error::GrammarError;

/// One constraint and where it stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Finding {
    /// The keyword, for example `maxLength`.
    pub keyword: String,
    /// JSON pointer of the schema that holds the keyword, for example `#/properties/name`.
    pub place: String,
    /// Further explanation; may be empty.
    pub note: String,
}

/// The fate of every keyword of a schema, in the order of the schema text. Empty for other notations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Enforced exactly.
    pub enforced: Vec<Finding>,
    /// Annotations, which have no validation effect by the specification.
    pub annotations: Vec<Finding>,
    /// Not enforced, because the caller asked to relax what is not supported.
    pub relaxed: Vec<Finding>,
}

/// A report as a grammar stores it: either its texts in one string, parsed when it is first read, which is rare; or a
/// way to compute it.
#[derive(Clone, Debug, Default)]
pub struct KeptReport {
    texts: String,
    notes: Vec<Note>,
    later: Option<Arc<dyn Later>>,
    read: OnceLock<Report>,
}

/// Computes a report on demand; the result is always the same.
pub(crate) trait Later: Debug + Send + Sync {
    /// The report.
    ///
    /// # Errors
    /// Only a limit of time: the input was read successfully before.
    fn report(&self) -> Result<KeptReport, GrammarError>;
    /// The approximate bytes of memory held.
    fn memory_bytes(&self) -> usize;
}

/// A finding, as ranges of the texts.
#[derive(Clone, Debug)]
struct Note {
    fate: Fate,
    keyword: Text,
    place: Text,
    note: Text,
}

/// A range of the texts of one [`KeptReport`].
pub(crate) type Text = Range<u32>;

/// The list of a [`Report`] that a finding is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Enforced,
    Annotation,
    Relaxed,
}

impl KeptReport {
    /// A report that is computed on demand.
    pub(crate) fn later(later: impl Later + 'static) -> KeptReport {
        KeptReport { later: Some(Arc::new(later)), ..KeptReport::default() }
    }

    /// Appends what `write` writes to the texts.
    pub(crate) fn text(&mut self, write: impl FnOnce(&mut String)) -> Text {
        let start = self.texts.len() as u32;
        write(&mut self.texts);
        start..self.texts.len() as u32
    }

    /// Adds a finding; `place` is one of the texts.
    pub(crate) fn add(&mut self, fate: Fate, keyword: &str, place: &Text, note: &str) {
        let keyword = self.text(|texts| texts.push_str(keyword));
        let note = self.text(|texts| texts.push_str(note));
        self.notes.push(Note { fate, keyword, place: place.clone(), note });
    }

    /// The concatenation of several reports, computed on demand.
    pub(crate) fn joined(mut reports: Vec<KeptReport>) -> KeptReport {
        reports.retain(|report| !report.is_empty());
        match reports.len() {
            0 | 1 => reports.pop().unwrap_or_default(),
            _ => KeptReport::later(Joined(reports.into())),
        }
    }

    fn is_empty(&self) -> bool {
        let says_nothing = |report: &Report| *report == Report::default();
        self.notes.is_empty() && self.later.is_none() && self.read.get().is_none_or(says_nothing)
    }

    /// Adds the findings of another report.
    ///
    /// # Errors
    /// As [`KeptReport::read_in_time`].
    pub(crate) fn append(&mut self, other: KeptReport) -> Result<(), GrammarError> {
        if self.notes.is_empty() && self.later.is_none() {
            *self = other;
            return Ok(());
        }
        self.absorb(&other, "", "")
    }

    /// Adds the findings of another report, replacing the beginning `from` of their places by `place`.
    ///
    /// # Errors
    /// As [`KeptReport::read_in_time`].
    pub(crate) fn absorb(&mut self, other: &KeptReport, place: &str, from: &str) -> Result<(), GrammarError> {
        let worked_out = other.later.as_ref().map(|later| later.report()).transpose()?;
        let other = worked_out.as_ref().unwrap_or(other);
        for Note { fate, keyword, place: at, note } in &other.notes {
            let text = |text: &Text| &other.texts[text.start as usize..text.end as usize];
            let Some(rest) = text(at).strip_prefix(from) else { continue };
            let at = self.text(|texts| {
                texts.push_str(place);
                texts.push_str(rest);
            });
            self.add(*fate, text(keyword), &at, text(note));
        }
        Ok(())
    }

    /// The report. Ignores the deadline of the thread.
    pub fn read(&self) -> &Report {
        unwatched(|| self.read_in_time()).expect("what has been read can be read again")
    }

    /// As [`KeptReport::read`], but stops where the thread has to.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit).
    pub fn read_in_time(&self) -> Result<&Report, GrammarError> {
        if let Some(known) = self.read.get() {
            return Ok(known);
        }
        let report = match &self.later {
            Some(later) => later.report()?.read_in_time()?.clone(),
            None => self.parsed(),
        };
        Ok(self.read.get_or_init(|| report))
    }

    fn parsed(&self) -> Report {
        let text = |text: &Text| self.texts[text.start as usize..text.end as usize].to_string();
        let mut report = Report::default();
        for Note { fate, keyword, place, note } in &self.notes {
            let list = match fate {
                Fate::Enforced => &mut report.enforced,
                Fate::Annotation => &mut report.annotations,
                Fate::Relaxed => &mut report.relaxed,
            };
            list.push(Finding { keyword: text(keyword), place: text(place), note: text(note) });
        }
        report
    }

    /// The approximate bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        let later = self.later.as_ref().map_or(0, |later| later.memory_bytes());
        memory::allocated(self.texts.capacity()) + memory::of_list(&self.notes) + later
    }

    /// Releases memory that was reserved and not used.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.texts.shrink_to_fit();
        self.notes.shrink_to_fit();
    }
}

/// The concatenated reports of grammars that were combined.
#[derive(Debug)]
struct Joined(Box<[KeptReport]>);

impl Later for Joined {
    fn report(&self) -> Result<KeptReport, GrammarError> {
        let mut all = Report::default();
        for report in &self.0 {
            let Report { enforced, annotations, relaxed } = report.read_in_time()?;
            all.enforced.extend_from_slice(enforced);
            all.annotations.extend_from_slice(annotations);
            all.relaxed.extend_from_slice(relaxed);
        }
        Ok(all.into())
    }

    fn memory_bytes(&self) -> usize {
        memory::of_shared::<KeptReport>(self.0.len()) + self.0.iter().map(KeptReport::memory_bytes).sum::<usize>()
    }
}

impl From<Report> for KeptReport {
    fn from(report: Report) -> KeptReport {
        KeptReport { read: OnceLock::from(report), ..KeptReport::default() }
    }
}
