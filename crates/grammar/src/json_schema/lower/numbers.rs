//! Which numbers merged constraints leave, and why where there are none.

use stencilm_regex::{Decimal, ExprId};

use super::lowering::Lowering;
use crate::error::{ErrorKind, GrammarError};
use crate::json::kind::Kind;
use crate::json::numbers::{Numbers, NumbersError, numbers};
use crate::json_schema::normal_form::merged::{Clash, Merged};
use crate::json_schema::read::document::Json;
use crate::json_schema::read::schema::{SchemaId, Types};
use crate::json_schema::read::vocabulary::Draft;

impl Lowering<'_> {
    /// Which kind of numbers the types allow.
    pub(crate) fn number_kind(&self, merged: &Merged) -> Kind {
        let root = self.schemas.root;
        match (merged.types.meets(Types::INTEGER), merged.types.meets(Types::FRACTION)) {
            (true, false) if self.schemas.is_pointless(root) => Kind::Pointless,
            (true, false) => Kind::Integer,
            // Usually integers are only written as digits; in draft 4 digits define what an integer is.
            (false, true) if self.schemas.draft(root) == Draft::D4 => Kind::Pointed,
            (false, true) => Kind::Fraction,
            _ => Kind::Number,
        }
    }

    /// The numbers that satisfy the constraints.
    pub(crate) fn number(&mut self, merged: &Merged, at: SchemaId) -> Result<ExprId, GrammarError> {
        let steps = |fails: bool| {
            let steps = merged.multiple_of.iter().filter(|step| step.fails == fails);
            steps.map(|step| step.value.clone()).collect()
        };
        let document = self.schemas.document;
        let excluded = merged.excluded.iter().filter_map(|excluded| match document.get(excluded.value) {
            Json::Number(text) => Decimal::parse(text),
            _ => None,
        });
        let asked = Numbers {
            kind: self.number_kind(merged),
            lower: merged.lower.as_ref().map(|bound| &bound.value),
            upper: merged.upper.as_ref().map(|bound| &bound.value),
            multiple_of: steps(false),
            not_multiple_of: steps(true),
            excluded: excluded.collect(),
            readable: self.options.integers_as_digits,
        };
        numbers(&mut self.builder.exprs, asked, self.options.spelling).map_err(|error| {
            let place = merged.multiple_of.first().map_or(at, |step| step.at);
            let place = if matches!(error, NumbersError::Set(_)) { place } else { at };
            GrammarError::new(ErrorKind::Limit, self.schemas.place(place), error.to_string())
        })
    }

    /// Why there is no number, if there is none.
    pub(crate) fn without_numbers(&self, merged: &Merged, at: SchemaId, number: ExprId) -> Option<Clash> {
        if number != ExprId::NOTHING {
            return None;
        }
        let place = |at| self.schemas.place(at);
        let bounds = match (&merged.lower, &merged.upper) {
            (Some(low), Some(high)) => format!("lies between {} and {}", low.value.value, high.value.value),
            (Some(low), None) => format!("lies above {}", low.value.value),
            (None, Some(high)) => format!("lies below {}", high.value.value),
            (None, None) => "is left".into(),
        };
        let steps = merged
            .multiple_of
            .iter()
            .filter(|step| !step.fails)
            .map(|step| format!("{} (in {})", step.value, place(step.at)));
        let what = match (self.number_kind(merged), steps.collect::<Vec<_>>().join(" and of ")) {
            (Kind::Integer | Kind::Pointless, steps) if steps.is_empty() => "integer".into(),
            (Kind::Integer | Kind::Pointless, steps) => format!("integer that is a multiple of {steps}"),
            (_, steps) if steps.is_empty() => "number".into(),
            (_, steps) => format!("multiple of {steps}"),
        };
        let at = merged.lower.as_ref().or(merged.upper.as_ref()).map_or(at, |bound| bound.at);
        Some(Clash { place: place(at), message: format!("no {what} {bounds}") })
    }
}
