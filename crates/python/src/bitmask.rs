//! The rows of a caller's bitmask as slices of words: numpy through the buffer protocol, torch and others through DLPack.

use std::ffi::{CStr, c_void};
use std::fmt::Display;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyCapsule, PyCapsuleMethods};

use crate::arguments::{self, Given};

/// How a buffer's format names the byte order of this machine.
const NATIVE_ORDER: u8 = if cfg!(target_endian = "little") { b'<' } else { b'>' };

/// Whether a buffer's numbers have another byte order than this machine.
pub fn is_foreign(buffer: &PyBuffer<i32>) -> bool {
    buffer.format().to_bytes().first().is_some_and(|order| b"><!".contains(order) && *order != NATIVE_ORDER)
}

/// An int32 bitmask of shape (batch, words) or (words,), checked and kept alive.
pub struct Rows<'py> {
    base: *mut u32,
    row_stride: isize,
    rows: usize,
    words: usize,
    /// Keeps the memory from being freed or moved.
    _owner: Owner<'py>,
}

#[expect(dead_code, reason = "held so that the memory lives, and never read")]
enum Owner<'py> {
    Buffer(PyBuffer<i32>),
    Capsule(Bound<'py, PyCapsule>),
}

impl<'py> Rows<'py> {
    /// The rows of a bitmask, of `words` words each.
    ///
    /// # Errors
    /// `TypeError` for another element type or device, `ValueError` for another shape or a read-only array.
    pub fn of(bitmask: &Bound<'py, PyAny>, words: usize) -> PyResult<Rows<'py>> {
        if let Ok(buffer) = PyBuffer::<i32>::get(bitmask) {
            return Rows::of_buffer(buffer, words);
        }
        // Viewing a torch tensor as a NumPy array is several times faster than going through DLPack. (Other libraries'
        // `numpy()` may copy. A tensor on another device refuses; the reason is reported below.)
        if is_torch_tensor(bitmask)
            && let Ok(array) = bitmask.call_method0("numpy")
            && let Ok(buffer) = PyBuffer::<i32>::get(&array)
        {
            return Rows::of_buffer(buffer, words);
        }
        if !bitmask.hasattr("__dlpack__")? {
            return Err(PyTypeError::new_err(format!(
                "a bitmask is an int32 numpy array or a CPU tensor, not {}; make one with allocate_token_bitmask",
                describe(bitmask)
            )));
        }
        Rows::of_tensor(bitmask, words)
    }

    fn of_buffer(buffer: PyBuffer<i32>, words: usize) -> PyResult<Rows<'py>> {
        if is_foreign(&buffer) {
            return Err(PyTypeError::new_err("the bitmask has a foreign byte order; give int32 in the machine's own"));
        }
        if buffer.readonly() {
            return Err(PyValueError::new_err("the bitmask is read-only; give a writable array"));
        }
        let (rows, row_stride) = layout(buffer.shape(), buffer.strides(), size_of::<u32>(), words)?;
        let base = aligned(buffer.buf_ptr().cast::<u8>())?;
        Ok(Rows { base, row_stride, rows, words, _owner: Owner::Buffer(buffer) })
    }

    fn of_tensor(bitmask: &Bound<'py, PyAny>, words: usize) -> PyResult<Rows<'py>> {
        const CPU: i32 = 1;
        const CUDA_HOST: i32 = 3;
        let wrong_device =
            || PyTypeError::new_err("the bitmask must be on the CPU; fill it there and move it afterwards");
        if let Ok(device) = bitmask.call_method0("__dlpack_device__") {
            // Ask for the device first: exporting a tensor of another device may wait for that device.
            let (device, _): (i32, i32) = device.extract()?;
            if device != CPU && device != CUDA_HOST {
                return Err(wrong_device());
            }
        }
        let capsule = export(bitmask)?;
        const NAME: &CStr = c"dltensor";
        const VERSIONED: &CStr = c"dltensor_versioned";
        let tensor = if capsule.is_valid_checked(Some(VERSIONED)) {
            let pointer = capsule.pointer_checked(Some(VERSIONED))?;
            // SAFETY: a capsule of this name holds a DLManagedTensorVersioned (DLPack 1.0, "Python specification"), which
            // lives as long as the capsule; the capsule's own destructor frees it, since the name is left as it is.
            let managed = unsafe { pointer.cast::<DlManagedVersioned>().as_ref() };
            const READ_ONLY: u64 = 1;
            if managed.major != 1 {
                return Err(PyTypeError::new_err(format!(
                    "the bitmask is exported by DLPack {}.{}, and version 1 is known here; give a numpy array",
                    managed.major, managed.minor
                )));
            }
            if managed.flags & READ_ONLY != 0 {
                return Err(PyValueError::new_err("the bitmask is read-only; give a writable tensor or a numpy array"));
            }
            managed.tensor.clone()
        } else {
            let pointer = capsule.pointer_checked(Some(NAME))?;
            // SAFETY: as above, for a DLManagedTensor, whose first field is the tensor.
            unsafe { pointer.cast::<DlTensor>().as_ref().clone() }
        };
        if tensor.device_type != CPU && tensor.device_type != CUDA_HOST {
            return Err(wrong_device());
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
        let (rows, row_stride) = layout(&shape, &strides, 1, words)?;
        // SAFETY: DLPack says that the first element is `byte_offset` bytes after `data`, in the same allocation.
        let base = aligned(unsafe { tensor.data.cast::<u8>().add(tensor.byte_offset as usize) })?;
        Ok(Rows { base, row_stride, rows, words, _owner: Owner::Capsule(capsule) })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// A row.
    ///
    /// # Errors
    /// `IndexError` for a row that does not exist.
    pub fn row(&mut self, index: &Given<'_>) -> PyResult<&mut [u32]> {
        let index = match index.value() {
            Some(index) => self.number(index)?,
            None => self.checked(0)?,
        };
        // SAFETY: see `slice`; the slice borrows all of `self`, so there is no other.
        Ok(unsafe { self.slice(index) })
    }

    /// These rows, in this order, or the first ones.
    ///
    /// # Errors
    /// `TypeError` for what is no number, `IndexError` for a row that does not exist, `ValueError` for a repeated row.
    pub fn rows(&mut self, indices: Option<&[Bound<'_, PyAny>]>, count: usize) -> PyResult<Vec<&mut [u32]>> {
        let indices: Vec<usize> = match indices {
            Some(indices) => indices.iter().map(|index| self.number(index)).collect::<PyResult<_>>()?,
            None => (0..count).map(|index| self.checked(index)).collect::<PyResult<_>>()?,
        };
        let mut taken = vec![false; self.rows];
        let mut rows = Vec::with_capacity(indices.len());
        for row in indices {
            if std::mem::replace(&mut taken[row], true) {
                return Err(PyValueError::new_err(format!(
                    "row {row} of the bitmask is named twice; give every sequence a row of its own"
                )));
            }
            // SAFETY: see `slice`; no row is taken twice, rows do not overlap (`layout`), and all of them borrow `self`.
            rows.push(unsafe { self.slice(row) });
        }
        Ok(rows)
    }

    fn number(&self, index: &Bound<'_, PyAny>) -> PyResult<usize> {
        match arguments::whole("a row of a bitmask", index)? {
            Some(number) => self.checked(number),
            None => Err(self.outside(&arguments::short(index))),
        }
    }

    fn checked(&self, index: usize) -> PyResult<usize> {
        if index < self.rows { Ok(index) } else { Err(self.outside(&index)) }
    }

    fn outside(&self, index: &dyn Display) -> PyErr {
        PyIndexError::new_err(format!("row {index} is outside of a bitmask with {} rows; count from 0", self.rows))
    }

    /// All rows as one slice, if they are contiguous.
    ///
    /// # Errors
    /// `ValueError` if there are gaps between them.
    pub fn all(&mut self) -> PyResult<&mut [u32]> {
        if self.rows > 1 && self.row_stride != self.words as isize {
            return Err(PyValueError::new_err(
                "the rows of the bitmask must lie next to each other; give a contiguous array",
            ));
        }
        // SAFETY: `layout` has found the shape, and there are no gaps between the rows; the slice borrows all of `self`.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.base, self.rows * self.words) })
    }

    /// # Safety
    /// The row must exist, and no other slice of it may be alive.
    unsafe fn slice<'a>(&self, row: usize) -> &'a mut [u32] {
        // SAFETY: the memory is a live, writable int32 array, and `layout` has checked that the words of a row are
        // inside it and contiguous. A thread that writes to it meanwhile races with us, as with NumPy.
        unsafe { std::slice::from_raw_parts_mut(self.base.offset(self.row_stride * row as isize), self.words) }
    }
}

/// A capsule of the tensor, DLPack 1 if the library knows it: only there is it known whether the tensor is read-only.
fn export<'py>(bitmask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
    let py = bitmask.py();
    let versioned = [("max_version", (1, 0))].into_py_dict(py)?;
    let capsule = match bitmask.call_method("__dlpack__", (), Some(&versioned)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => bitmask.call_method0("__dlpack__"),
        capsule => capsule,
    };
    // If a library refuses to share a tensor, such as one without memory, it is not an array for us either.
    let capsule = capsule.map_err(|error| match error.is_instance_of::<PyBufferError>(py) {
        true => PyTypeError::new_err(format!(
            "the bitmask cannot be shared ({}); give an int32 numpy array or a CPU tensor",
            error.value(py)
        )),
        false => error,
    })?;
    Ok(capsule.cast_into::<PyCapsule>()?)
}

/// `DLManagedTensorVersioned` (DLPack 1.0, C layout).
#[repr(C)]
struct DlManagedVersioned {
    major: u32,
    minor: u32,
    manager_context: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: DlTensor,
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

/// The first word of a bitmask.
///
/// # Errors
/// `ValueError` if its address is no multiple of four, as in a field of a packed record.
fn aligned(first: *mut u8) -> PyResult<*mut u32> {
    let first = first.cast::<u32>();
    match first.is_aligned() {
        true => Ok(first),
        false => Err(PyValueError::new_err(
            "the words of the bitmask are not aligned to four bytes; give an array of its own, not a field of a packed \
             record",
        )),
    }
}

/// The number of rows and the distance between them in words, after checking shape and strides.
///
/// `unit` is the part of a stride that makes a word: 4 if strides count bytes, 1 if they count words. The stride of a
/// dimension of length 0 or 1 is never used and may be anything.
fn layout(shape: &[usize], strides: &[isize], unit: usize, words: usize) -> PyResult<(usize, isize)> {
    let wrong_shape = || {
        PyValueError::new_err(format!(
            "a bitmask of shape {shape:?} does not fit: the vocabulary takes ({words},) or (batch, {words}); \
             make one with allocate_token_bitmask"
        ))
    };
    let (rows, row_stride, width, word_stride) = match (shape, strides) {
        ([width], [stride]) => (1, 0, *width, *stride),
        ([rows, width], [row_stride, stride]) => (*rows, *row_stride, *width, *stride),
        _ => return Err(wrong_shape()),
    };
    if width != words {
        return Err(wrong_shape());
    }
    let unit = unit as isize;
    if words > 1 && word_stride != unit {
        return Err(PyValueError::new_err(
            "the words of a bitmask row must lie next to each other; give a contiguous array",
        ));
    }
    if rows <= 1 {
        return Ok((rows, 0));
    }
    if row_stride % unit != 0 {
        return Err(PyValueError::new_err(format!(
            "the rows of the bitmask lie {row_stride} bytes apart, which is no multiple of its words of {unit} bytes; \
             give a contiguous array"
        )));
    }
    let row_stride = row_stride / unit;
    if row_stride.unsigned_abs() < words {
        // Made by `expand` and broadcasting. Writing one row would change others, even one at a time.
        return Err(PyValueError::new_err(
            "the rows of the bitmask share memory; give an array with rows of their own",
        ));
    }
    Ok((rows, row_stride))
}

fn is_torch_tensor(value: &Bound<'_, PyAny>) -> bool {
    let kind = value.get_type();
    kind.name().is_ok_and(|name| name == "Tensor") && kind.module().is_ok_and(|module| module == "torch")
}

fn describe(value: &Bound<'_, PyAny>) -> String {
    let kind = value.get_type().name().map_or_else(|_| "this object".to_owned(), |name| name.to_string());
    match value.getattr("dtype") {
        Ok(dtype) => format!("{kind} of {dtype}"),
        Err(_) => kind,
    }
}
