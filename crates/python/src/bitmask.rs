//! A row of a caller's bitmask as a slice of words: numpy through the buffer protocol, torch and others through DLPack.

use std::ffi::{CStr, c_void};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

/// How a buffer's format names the byte order of this machine.
const NATIVE_ORDER: u8 = if cfg!(target_endian = "little") { b'<' } else { b'>' };

/// Calls `write` with row `index` of an int32 bitmask of shape (batch, words) or (words,).
///
/// # Errors
/// `TypeError` for another element type or device, `ValueError` for another shape or a read-only array,
/// `IndexError` for a row that does not exist; nothing is written then.
pub fn with_row<T>(
    bitmask: &Bound<'_, PyAny>,
    index: isize,
    words: usize,
    write: impl FnOnce(&mut [u32]) -> T,
) -> PyResult<T> {
    let index = usize::try_from(index)
        .map_err(|_| PyIndexError::new_err(format!("row {index} is outside of the bitmask; count from 0")))?;
    if let Ok(buffer) = PyBuffer::<i32>::get(bitmask) {
        if buffer.format().to_bytes().first().is_some_and(|order| b"><!".contains(order) && *order != NATIVE_ORDER) {
            return Err(PyTypeError::new_err("the bitmask has a foreign byte order; give int32 in the machine's own"));
        }
        if buffer.readonly() {
            return Err(PyValueError::new_err("the bitmask is read-only; give a writable array"));
        }
        let strides = buffer.strides().iter().map(|&stride| stride / 4).collect::<Vec<_>>();
        let offset = row_offset(buffer.shape(), &strides, index, words)?;
        // SAFETY: the buffer is a live, writable int32 array, `row_offset` has checked that `words` elements from
        // there on lie inside of it and next to each other, and the GIL keeps other Python threads away from it.
        let row = unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast::<u32>().offset(offset), words) };
        return Ok(write(row));
    }
    if !bitmask.hasattr("__dlpack__")? {
        return Err(PyTypeError::new_err(format!(
            "a bitmask is an int32 numpy array or CPU torch tensor, not {}; make one with allocate_token_bitmask",
            describe(bitmask)
        )));
    }
    let capsule = bitmask.call_method0("__dlpack__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    const NAME: &CStr = c"dltensor";
    let pointer = capsule.pointer_checked(Some(NAME))?;
    // SAFETY: a capsule of this name holds a DLManagedTensor (DLPack, "Python specification"), which lives as long as
    // the capsule; the capsule's own destructor frees it, since the name is left as it is.
    let tensor = unsafe { &pointer.cast::<DlTensor>().as_ref().clone() };
    const CPU: i32 = 1;
    const CUDA_HOST: i32 = 3;
    if tensor.device_type != CPU && tensor.device_type != CUDA_HOST {
        return Err(PyTypeError::new_err("the bitmask must be on the CPU; fill it there and move it afterwards"));
    }
    if (tensor.dtype_code, tensor.dtype_bits, tensor.dtype_lanes) != (0, 32, 1) {
        return Err(PyTypeError::new_err(format!(
            "a bitmask is int32, not {}; make one with allocate_token_bitmask",
            describe(bitmask)
        )));
    }
    let dims = usize::try_from(tensor.ndim).unwrap_or(0);
    // SAFETY: shape holds `ndim` numbers, and so does strides unless it is null (DLPack, `DLTensor`).
    let shape: Vec<usize> =
        unsafe { std::slice::from_raw_parts(tensor.shape, dims) }.iter().map(|&size| size as usize).collect();
    let strides: Vec<isize> = if tensor.strides.is_null() {
        (0..dims).map(|dim| shape[dim + 1..].iter().product::<usize>() as isize).collect()
    } else {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(tensor.strides, dims) }.iter().map(|&stride| stride as isize).collect()
    };
    let offset = row_offset(&shape, &strides, index, words)?;
    // SAFETY: as for the buffer: `row_offset` has checked the bounds, the capsule keeps the tensor alive.
    let row = unsafe {
        let base = tensor.data.cast::<u8>().add(tensor.byte_offset as usize).cast::<u32>();
        std::slice::from_raw_parts_mut(base.offset(offset), words)
    };
    Ok(write(row))
}

/// `DLTensor`, the first field of `DLManagedTensor` (DLPack 0.8 and later, C layout).
#[repr(C)]
#[derive(Clone)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    dtype_code: u8,
    dtype_bits: u8,
    dtype_lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// The element at which a row starts, once shape, strides and index have been found right.
fn row_offset(shape: &[usize], strides: &[isize], index: usize, words: usize) -> PyResult<isize> {
    let wrong_shape = || {
        PyValueError::new_err(format!(
            "a bitmask of shape {shape:?} does not fit: the vocabulary takes ({words},) or (batch, {words}); \
             make one with allocate_token_bitmask"
        ))
    };
    let (rows, row_stride, width, element_stride) = match (shape, strides) {
        ([width], [stride]) => (1, 0, *width, *stride),
        ([rows, width], [row_stride, stride]) => (*rows, *row_stride, *width, *stride),
        _ => return Err(wrong_shape()),
    };
    if width != words {
        return Err(wrong_shape());
    }
    if element_stride != 1 && words > 1 {
        return Err(PyValueError::new_err(
            "the words of a bitmask row must lie next to each other; give a contiguous array",
        ));
    }
    if index >= rows {
        return Err(PyIndexError::new_err(format!("row {index} is outside of a bitmask with {rows} rows")));
    }
    Ok(row_stride * index as isize)
}

fn describe(value: &Bound<'_, PyAny>) -> String {
    let kind = value.get_type().name().map_or_else(|_| "this object".to_owned(), |name| name.to_string());
    match value.getattr("dtype") {
        Ok(dtype) => format!("{kind} of {dtype}"),
        Err(_) => kind,
    }
}
