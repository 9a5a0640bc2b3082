//! Python values as what the engine takes; whatever does not fit gets one sentence with the value and the way out.

use std::borrow::Cow;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use crate::errors;

/// A token id; `None` for an integer that can be none.
///
/// # Errors
/// `TypeError` for anything but an integer.
pub fn token_id(value: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    match value.extract::<u32>() {
        Ok(id) => Ok(Some(id)),
        Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => {
            Err(PyTypeError::new_err(format!("a token id is an int, not {}", shown(value))))
        }
        Err(_) => Ok(None),
    }
}

/// Token ids in a sequence.
///
/// # Errors
/// `TypeError` for anything but integers that can be iterated.
pub fn token_ids(values: &Bound<'_, PyAny>) -> PyResult<Vec<Option<u32>>> {
    let items = values
        .try_iter()
        .map_err(|_| PyTypeError::new_err(format!("token ids come as a sequence of ints, not as {}", shown(values))))?;
    items.map(|item| token_id(&item?)).collect()
}

/// The tokens that may end a text: one id, or several.
///
/// # Errors
/// `TypeError` for anything but ids, `ValueError` for one that the vocabulary does not have.
pub fn stop_tokens(value: &Bound<'_, PyAny>, vocab_size: usize) -> PyResult<Vec<u32>> {
    let id = |value: &Bound<'_, PyAny>| {
        let id = match value.extract::<i64>() {
            Ok(id) => u32::try_from(id).ok(),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => None,
            Err(error) => return Err(error),
        };
        id.filter(|&id| (id as usize) < vocab_size).ok_or_else(|| {
            PyValueError::new_err(format!(
                "override_stop_tokens holds {value}, but the vocabulary of {vocab_size} tokens has the ids 0 to {}",
                vocab_size - 1
            ))
        })
    };
    if value.hasattr("__index__")? {
        return Ok(vec![id(value)?]);
    }
    let each = value.try_iter()?.map(|value| {
        let value = value?;
        if !value.hasattr("__index__")? {
            let shown = value.repr()?;
            let message = format!("override_stop_tokens holds {shown}, but must hold token ids");
            return Err(PyTypeError::new_err(message));
        }
        id(&value)
    });
    each.collect()
}

/// A number of things from 0 up.
///
/// # Errors
/// `TypeError` for anything but an integer, `MatcherError` for one that is negative or huge.
pub fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    value.extract::<usize>().map_err(|error| {
        if error.is_instance_of::<PyTypeError>(value.py()) {
            return PyTypeError::new_err(format!("{name} is an int, not {}", shown(value)));
        }
        let message = format!("{name} is {}; give a number from 0 up that fits in 64 bits", shown(value));
        errors::raise(value.py(), "MatcherError", &message, None)
    })
}

/// A text: `str` or `bytes`.
///
/// # Errors
/// `TypeError` for anything else, `MatcherError` for a `str` with half of a surrogate pair.
pub fn text<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(text) = value.cast::<PyString>() {
        return match text.to_cow() {
            Ok(Cow::Borrowed(text)) => Ok(Cow::Borrowed(text.as_bytes())),
            Ok(Cow::Owned(text)) => Ok(Cow::Owned(text.into_bytes())),
            Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(value.py()) => {
                let at: usize = error.value(value.py()).getattr("start")?.extract()?;
                let message = "the text holds half of a surrogate pair, which UTF-8 cannot spell; \
                               give the whole character, or bytes";
                Err(errors::raise(value.py(), "MatcherError", message, Some(&format!("character {at}"))))
            }
            Err(error) => Err(error),
        };
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if let Ok(bytes) = value.cast::<PyByteArray>() {
        return Ok(Cow::Owned(bytes.to_vec()));
    }
    Err(PyTypeError::new_err(format!("a text is str or bytes, not {}", shown(value))))
}

/// A value as a message shows it: its type, and itself where that is short.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    let kind = kind(value);
    match value.repr() {
        Ok(repr) if repr.len().is_ok_and(|len| len <= 60) => format!("{kind} {repr}"),
        _ => kind,
    }
}

/// The name of a value's type.
pub fn kind(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "this object".to_owned(), |name| name.to_string())
}
