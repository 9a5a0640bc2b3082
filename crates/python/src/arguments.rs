//! Converts Python arguments to what the engine takes; a refused value is reported in one sentence with a way out.

use std::borrow::Cow;
use std::time::Duration;

use pyo3::exceptions::{PyException, PyOverflowError, PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping, PySet, PyString, PyTuple,
};

use crate::errors;

/// An argument that may be left out; passing `None` is not leaving it out.
pub struct Given<'py>(Option<Bound<'py, PyAny>>);

impl Given<'_> {
    /// The argument was left out.
    pub const NOTHING: Self = Given(None);
}

impl<'py> Given<'py> {
    /// The given value.
    pub fn value(&self) -> Option<&Bound<'py, PyAny>> {
        self.0.as_ref()
    }
}

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Given(Some(value.to_owned())))
    }
}

/// A token id; `None` for an integer that cannot be one.
///
/// # Errors
/// `TypeError` for anything but an integer.
pub fn token_id(value: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    match value.extract::<u32>() {
        Ok(id) if !is_truth(value) => Ok(Some(id)),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(None),
        Err(error) if !error.is_instance_of::<PyTypeError>(value.py()) => Err(error),
        _ => Err(PyTypeError::new_err(format!("a token id is an int, not {}", shown(value)))),
    }
}

/// Token ids in a sequence.
///
/// # Errors
/// `TypeError` for anything but an iterable of integers.
pub fn token_ids(values: &Bound<'_, PyAny>) -> PyResult<Vec<Option<u32>>> {
    let ordered = if is_set(values) { None } else { iterable(values)? };
    let ordered = ordered.ok_or_else(|| {
        PyTypeError::new_err(format!("token ids come as a sequence of ints, not as {}", shown(values)))
    })?;
    ordered.try_iter()?.map(|item| token_id(&item?)).collect()
}

/// The values of an argument that is a list or another ordered iterable.
///
/// # Errors
/// `TypeError` for anything without an order; it names the argument, its value, and the `wanted` elements.
pub fn items<'py>(name: &str, wanted: &str, values: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let ordered = if is_set(values) { None } else { iterable(values)? };
    let ordered = ordered
        .ok_or_else(|| PyTypeError::new_err(format!("{name} is {}, but must be a list of {wanted}", short(values))))?;
    match ordered.cast_exact::<PyList>() {
        Ok(list) => Ok(list.iter().collect()),
        Err(_) => ordered.try_iter()?.collect(),
    }
}

/// An iterable for a value: the list of an array's elements, otherwise an iterator over the value itself.
///
/// `None` for what cannot be iterated, and for texts and dicts, whose elements are not what is meant. Bytes are
/// integers, and are token ids in vocabularies with one token for each byte.
fn iterable<'py>(values: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    // Most arguments are lists, which this recognises faster.
    if values.is_exact_instance_of::<PyList>() || values.is_exact_instance_of::<PyTuple>() {
        return Ok(Some(values.clone()));
    }
    let py = values.py();
    if values.is_instance_of::<PyString>() || values.cast::<PyMapping>().is_ok() {
        return Ok(None);
    }
    // Arrays and tensors: reading one number at a time is slow, and impossible without dimensions or memory.
    if values.hasattr(intern!(py, "tolist"))? {
        return match values.call_method0(intern!(py, "tolist")) {
            Ok(list) => Ok(list.is_instance_of::<PyList>().then_some(list)),
            Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
            Err(error) => Err(error),
        };
    }
    match values.try_iter() {
        Ok(iterator) => Ok(Some(iterator.into_any())),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether it is a set, which has no order.
fn is_set(values: &Bound<'_, PyAny>) -> bool {
    values.is_instance_of::<PySet>() || values.is_instance_of::<PyFrozenSet>()
}

/// A switch.
///
/// # Errors
/// `TypeError` for anything but `True` and `False`, of Python or of numpy.
pub fn truth(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value
        .extract::<bool>()
        .map_err(|_| PyTypeError::new_err(format!("{name} is {}, but must be True or False", short(value))))
}

/// The tokens that may end a text: one or several ids.
///
/// # Errors
/// `TypeError` for anything but ids, `ValueError` for an id that the vocabulary does not have.
pub fn stop_tokens(value: &Bound<'_, PyAny>, vocab_size: usize) -> PyResult<Vec<u32>> {
    let id = |value: &Bound<'_, PyAny>| {
        let id = token_id(value).map_err(|error| match error.is_instance_of::<PyTypeError>(value.py()) {
            true => {
                PyTypeError::new_err(format!("override_stop_tokens holds {}, but must hold token ids", short(value)))
            }
            false => error,
        })?;
        id.filter(|&id| (id as usize) < vocab_size).ok_or_else(|| {
            PyValueError::new_err(format!(
                "override_stop_tokens holds {}, but the vocabulary of {vocab_size} tokens has the ids 0 to {}",
                short(value),
                vocab_size - 1
            ))
        })
    };
    if value.extract::<i64>().is_ok() {
        return Ok(vec![id(value)?]);
    }
    match iterable(value)? {
        Some(each) => each.try_iter()?.map(|value| id(&value?)).collect(),
        None => Ok(vec![id(value)?]),
    }
}

/// A count: 0 or more.
///
/// # Errors
/// `TypeError` for anything but an integer, `MatcherError` for one that is negative or huge.
pub fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    whole(name, value)?.ok_or_else(|| {
        let message = format!("{name} is {}; give a number from 0 up that fits in 64 bits", shown(value));
        errors::raise(value.py(), "MatcherError", &message, None)
    })
}

/// A whole number; `None` for one that is negative or huge.
///
/// # Errors
/// `TypeError` for anything but an integer.
pub fn whole(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    match value.extract::<usize>() {
        Ok(number) if !is_truth(value) => Ok(Some(number)),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(None),
        Err(error) if !error.is_instance_of::<PyTypeError>(value.py()) => Err(error),
        _ => Err(PyTypeError::new_err(format!("{name} is an int, not {}", shown(value)))),
    }
}

/// A number of seconds, or of another unit; `None` for a number that is not a duration.
///
/// # Errors
/// `TypeError` for anything but a number.
pub fn time(name: &str, value: &Bound<'_, PyAny>, unit: Duration) -> PyResult<Option<Duration>> {
    match value.extract::<f64>() {
        Ok(number) if !is_truth(value) => Ok(Duration::try_from_secs_f64(number * unit.as_secs_f64()).ok()),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(None),
        Err(error) if !error.is_instance_of::<PyTypeError>(value.py()) => Err(error),
        _ => Err(PyTypeError::new_err(format!("{name} is a number, not {}", shown(value)))),
    }
}

/// Whether it is `True` or `False` of Python, NumPy or torch. To Python these are numbers; here they are not.
fn is_truth(value: &Bound<'_, PyAny>) -> bool {
    // Exact ints and floats are excluded first, because that is faster.
    !value.is_exact_instance_of::<PyInt>()
        && !value.is_exact_instance_of::<PyFloat>()
        && (value.is_instance_of::<PyBool>() || is_foreign_truth(value))
}

fn is_foreign_truth(value: &Bound<'_, PyAny>) -> bool {
    match kind(value).as_str() {
        "bool" | "bool_" => true,
        "Tensor" => value.getattr("dtype").and_then(|dtype| dtype.str()).is_ok_and(|dtype| dtype == "torch.bool"),
        _ => false,
    }
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

/// A value as shown in a message: its type, and the value itself if it is short.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    let kind = kind(value);
    match value.repr() {
        Ok(repr) if repr.len().is_ok_and(|len| len <= 60) => format!("{kind} {repr}"),
        _ => kind,
    }
}

/// A value as shown in a message, without its type; only the type if it is long.
pub fn short(value: &Bound<'_, PyAny>) -> String {
    // NumPy's integers are shown as plain numbers.
    let text = if value.hasattr("__index__").unwrap_or(false) { value.str() } else { value.repr() };
    match text {
        Ok(text) if text.len().is_ok_and(|len| len <= 60) => text.to_string(),
        _ => format!("{} that is too long to be shown", kind(value)),
    }
}

/// The name of a value's type.
pub fn kind(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "this object".to_owned(), |name| name.to_string())
}
