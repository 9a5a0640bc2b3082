"""Token bitmasks: how to allocate them, and how to mask logits with them.

One idea: a bitmask is int32 words of shape (batch, ceil(vocab_size / 32)), bit 1 = allowed, lowest
bit first; everything is checked before a byte is written. NumPy does the work for every tensor in
main memory, sharing it, because it is several times faster than torch there. Other devices are
served by a Triton kernel where Triton can run, otherwise by torch's own operations; MLX arrays by
MLX operations.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stencilm.shown import is_word, shown_value
from stencilm.whole_numbers import as_whole, shown, whole_number

if TYPE_CHECKING:
    import mlx.core
    import torch

    Tensor: TypeAlias = torch.Tensor
    MlxArray: TypeAlias = mlx.core.array

Bitmask: TypeAlias = "NDArray[np.int32] | Tensor | MlxArray"
Logits: TypeAlias = "NDArray[np.floating[Any]] | Tensor | MlxArray"
Backend: TypeAlias = Literal["auto", "cpu", "numpy", "torch", "triton", "mlx"]

BITS = 32

bitmask_dtype = np.dtype(np.int32)
"""The type of a bitmask's words."""

# bfloat16 is the upper half of float32. NumPy lacks it, so it is written as int16 words.
_BFLOAT16_MINUS_INFINITY = np.int16(-0x80)


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """The shape of a bitmask: one row for each sequence, one bit for each token.

    Examples:
        >>> stencilm.get_bitmask_shape(2, 128_256)
        (2, 4008)
    """
    rows = whole_number("batch_size", batch_size, least=1)
    return rows, -(-whole_number("vocab_size", vocab_size, least=1) // BITS)


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> Any:
    """A new bitmask that allows everything.

    A torch tensor in main memory if the program has imported torch, otherwise a NumPy array; every
    function here and every matcher takes both, also for MLX logits. (Typed as Any, because the type
    is known only at run time.) In a program that uses a GPU, its memory is pinned, so that
    `bitmask.to("cuda", non_blocking=True)` does not wait.

    Raises:
        MemoryError: There is no memory for so many rows.

    Examples:
        >>> bitmask = stencilm.allocate_token_bitmask(2, 70)
        >>> tuple(bitmask.shape), int(bitmask[0, 0])
        ((2, 3), -1)
    """
    shape = get_bitmask_shape(batch_size, vocab_size)
    torch = sys.modules.get("torch")
    try:
        if torch is not None:
            is_pinned = torch.cuda.is_initialized()
            return torch.full(shape, -1, dtype=torch.int32, pin_memory=is_pinned)
        return np.full(shape, -1, dtype=bitmask_dtype)
    except (MemoryError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise MemoryError(
            f"there is no memory for a bitmask of {shape[0]} rows for {vocab_size} tokens: give a "
            "smaller batch_size"
        ) from error


def reset_token_bitmask(bitmask: Bitmask) -> None:
    """Allow everything in every row.

    Examples:
        >>> bitmask = stencilm.allocate_token_bitmask(1, 70)
        >>> bitmask[:] = 0
        >>> stencilm.reset_token_bitmask(bitmask)
        >>> bitmask.tolist()
        [[-1, -1, -1]]
    """
    _check_bitmask(bitmask)
    if isinstance(bitmask, np.ndarray):
        _check_writable(bitmask, "bitmask")
        bitmask.fill(-1)
    elif _is_mlx(bitmask):
        bitmask[...] = -1
    else:
        bitmask.fill_(-1)


def apply_token_bitmask_inplace(
    logits: Logits,
    bitmask: Bitmask,
    *,
    vocab_size: int | None = None,
    indices: Sequence[int] | NDArray[np.integer[Any]] | Tensor | None = None,
    backend: Backend = "auto",
) -> None:
    """Set the logits of all tokens that the bitmask does not allow to minus infinity.

    Args:
        logits: Floating point, one row `(tokens,)` or a batch `(batch, tokens)`: a NumPy array, a
            torch tensor on any device, or an MLX array. Logits past the vocabulary are masked, too.
            A slice of an MLX array shares no memory with it, so pass the whole array with
            `indices`, and not a row `logits[0]`.
        bitmask: int32, one row `(words,)` or a batch `(batch, words)`. For logits in main memory, a
            NumPy array or a torch tensor; for MLX logits, also an MLX array; otherwise a tensor on
            their device.
        vocab_size: How many tokens the bitmask covers. None for as many as it has bits, or for the
            width of the logits if that ends within the last word.
        indices: The rows to mask: row i of the bitmask masks row i of the logits; the other rows
            keep their logits. None masks all rows, and then both must have the same number.
        backend: "numpy", or "cpu", for main memory; "triton" for a torch tensor on a GPU; "torch"
            for a torch tensor on any device; "mlx" for an MLX array; "auto" chooses.

    Raises:
        TypeError: Something is of the wrong kind or type. Nothing was written.
        ValueError: Shapes, devices, row numbers or sizes do not fit. Nothing was written.

    Examples:
        >>> import numpy as np
        >>> logits = np.zeros((1, 4), dtype=np.float32)
        >>> bitmask = np.array([[0b0101]], dtype=np.int32)
        >>> stencilm.apply_token_bitmask_inplace(logits, bitmask)
        >>> logits.tolist()
        [[0.0, -inf, 0.0, -inf]]
    """
    _check_logits(logits)
    _check_bitmask(bitmask)
    rows = _rows(indices, _num_rows(logits), _num_rows(bitmask))
    width = _masked_width(logits.shape[-1], bitmask.shape[-1], vocab_size)
    chosen = _chosen_backend(backend, logits, bitmask)
    if chosen == "numpy":
        _close_in_memory(logits, _words_in_memory(bitmask), rows, width)
    elif chosen == "mlx":
        from stencilm.bitmask import mlx as bitmask_mlx

        words = bitmask if _is_mlx(bitmask) else _words_in_memory(bitmask)
        bitmask_mlx.close(logits, words, rows, width)
    else:
        # For logits in main memory, a NumPy bitmask is accepted; otherwise the check above refused
        # it.
        torch = sys.modules["torch"]
        tensor: Any = bitmask
        if isinstance(bitmask, np.ndarray):
            # A tensor cannot share negative strides, nor read-only memory.
            tensor = torch.from_numpy(bitmask.copy())
        rows_of_logits: Any = logits
        words = tensor.unsqueeze(0) if tensor.dim() == 1 else tensor
        values = rows_of_logits if logits.ndim == 2 else rows_of_logits.unsqueeze(0)
        if chosen == "triton":
            from stencilm.bitmask import triton as bitmask_triton

            targets = None
            if rows is not None:
                targets = sent_to_device(np.array(rows, dtype=np.int32), values.device)
            bitmask_triton.close(values, words, targets, width)
        else:
            _close_on_device(values, words, rows, width)


def checked_targets(
    logits: Any,
    words: int,
    indices: Sequence[int] | NDArray[np.integer[Any]] | None,
    count: int,
) -> NDArray[np.int32]:
    """The row of the logits (batch, tokens) that each of `count` masks applies to."""
    _check_logits(logits)
    if len(logits.shape) != 2:
        raise ValueError(f"logits has shape {tuple(logits.shape)}, but must be (batch, tokens)")
    _masked_width(logits.shape[-1], words, None)
    batch = int(logits.shape[0])
    if indices is None:
        if batch != count:
            raise ValueError(
                f"the logits have {batch} rows, but there are {count} masks: give as many of both, "
                "or name the row of each with indices=[...]"
            )
        return np.arange(count, dtype=np.int32)
    rows = _rows(indices, batch, batch) or []
    if len(rows) != count:
        raise ValueError(f"there are {count} masks, but {len(rows)} indices: give as many of both")
    if len(set(rows)) != count:
        raise ValueError("indices names a row twice, but each mask closes a row of its own")
    return np.array(rows, dtype=np.int32)


def sent_to_device(array: NDArray[Any], device: Any) -> Any:
    """A tensor with an array's values on a torch device; a copy to a GPU is not waited for."""
    tensor = sys.modules["torch"].from_numpy(array)
    if device.type == "cuda":
        # From pinned memory, the copy is queued after the GPU's current work.
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def _words_in_memory(bitmask: Any) -> NDArray[np.int32]:
    words: NDArray[np.int32] = (
        bitmask if isinstance(bitmask, np.ndarray) else bitmask.detach().numpy()
    )
    return words


def _close_in_memory(
    logits: Logits, words: NDArray[np.int32], rows: Sequence[int] | None, width: int
) -> None:
    values, closed = _shared_values(logits)
    values, words = np.atleast_2d(values), np.atleast_2d(words)
    # Row by row, so that the unpacked bits of one row stay in the processor's cache.
    for row in range(len(values)) if rows is None else rows:
        blocked_words = np.invert(words[row]).astype("<i4", copy=False)
        blocked = np.unpackbits(blocked_words.view(np.uint8), count=width, bitorder="little")
        np.copyto(values[row, :width], closed, where=blocked.view(np.bool_))
        values[row, width:] = closed


def _shared_values(logits: Logits) -> tuple[NDArray[Any], Any]:
    """The logits as an array over the same memory, and the value that masks a token in it."""
    if isinstance(logits, np.ndarray):
        return logits, -np.inf
    torch = sys.modules["torch"]
    values = logits.detach()
    if values.dtype == torch.bfloat16:
        return values.view(torch.int16).numpy(), _BFLOAT16_MINUS_INFINITY
    return values.numpy(), -np.inf


def _close_on_device(values: Tensor, words: Tensor, rows: Sequence[int] | None, width: int) -> None:
    torch = sys.modules["torch"]
    if rows is not None:
        words = words[torch.tensor(rows, dtype=torch.int64, device=words.device)]
    positions = torch.arange(BITS, dtype=torch.int32, device=words.device)
    # The shift extends the sign bit; `& 1` drops the copies.
    bits = (words.unsqueeze(-1) >> positions) & 1
    blocked = torch.ones((words.shape[0], values.shape[1]), dtype=torch.bool, device=values.device)
    blocked[:, :width] = bits.flatten(1)[:, :width] == 0
    if rows is None:
        values.masked_fill_(blocked, float("-inf"))
    else:
        for row, blocked_row in zip(rows, blocked, strict=True):
            values[row].masked_fill_(blocked_row, float("-inf"))


def _chosen_backend(
    backend: str, logits: Logits, bitmask: Bitmask
) -> Literal["numpy", "torch", "triton", "mlx"]:
    backends = ("auto", "cpu", "numpy", "torch", "triton", "mlx")
    if not is_word(backend, backends):
        raise ValueError(
            f"backend is {shown_value(backend):.80}, but must be one of {', '.join(backends)}"
        )
    device, mask_device = _device(logits), _device(bitmask)
    if device == "mlx":
        if backend not in ("auto", "mlx"):
            raise ValueError(
                f"backend {backend!r} cannot reach logits in an MLX array: use backend='auto'"
            )
        if mask_device not in ("mlx", "cpu"):
            raise ValueError(
                f"the logits are an MLX array, the bitmask is on {mask_device}: move it with "
                "bitmask.cpu()"
            )
        return "mlx"
    if backend == "mlx":
        raise ValueError("backend 'mlx' needs logits in an MLX array: use backend='auto'")
    if mask_device == "mlx":
        raise ValueError(
            "the bitmask is an MLX array, but the logits are not: give it as np.array(bitmask)"
        )
    if device != mask_device:
        raise ValueError(
            f"the logits are on {device}, the bitmask on {mask_device}: move the bitmask with "
            f"bitmask.to({device!r})"
        )
    is_array = isinstance(logits, np.ndarray)
    if backend in ("torch", "triton") and is_array:
        raise ValueError(f"backend {backend!r} needs logits in a torch tensor: use backend='auto'")
    # Writing behind autograd's back would leave it with stale values.
    in_memory = device == "cpu" and not getattr(logits, "requires_grad", False)
    if backend in ("cpu", "numpy") and not in_memory:
        shown = f"on {device}" if device != "cpu" else "with requires_grad"
        raise ValueError(f"backend {backend!r} cannot reach logits {shown}: use backend='auto'")
    if backend == "triton" or (backend == "auto" and device.startswith("cuda")):
        obstacle = _triton_obstacle(logits, bitmask)
        if obstacle is None:
            return "triton"
        if backend == "triton":
            raise ValueError(f"backend 'triton' {obstacle}: use backend='auto'")
    return "numpy" if in_memory and backend != "torch" else "torch"


def _triton_obstacle(logits: Any, bitmask: Any) -> str | None:
    """The reason why Triton cannot write these logits."""
    if not str(logits.device).startswith("cuda"):
        return f"cannot reach logits on {logits.device}"
    if logits.requires_grad:
        return "cannot write logits with requires_grad"
    try:
        from stencilm.bitmask import triton as bitmask_triton
    except ImportError as error:
        return f"is not installed ({error})"
    if not bitmask_triton.takes(logits, bitmask):
        return "needs rows whose elements lie next to each other"
    return None


def _masked_width(logits_width: int, words: int, vocab_size: int | None) -> int:
    """The number of logits that the bits decide; later ones are masked."""
    bits = words * BITS
    if vocab_size is None:
        if logits_width <= bits - BITS:
            raise ValueError(
                f"the bitmask has {bits} bits, but the logits speak of {logits_width} tokens only: "
                f"they belong to different vocabularies; if not, say vocab_size={logits_width}"
            )
        return min(logits_width, bits)
    width = as_whole(vocab_size)
    if width is None:
        raise TypeError(f"vocab_size is {shown(vocab_size)}, but must be an int or None")
    if not 1 <= width <= min(bits, logits_width):
        raise ValueError(
            f"vocab_size is {shown(width)}, but must be from 1 to {min(bits, logits_width)}: the "
            f"bitmask has {bits} bits, and the logits {logits_width} tokens"
        )
    return width


def _rows(indices: Any, logits_rows: int, bitmask_rows: int) -> list[int] | None:
    """The rows to mask, checked against both; None for all rows."""
    if indices is None:
        if logits_rows != bitmask_rows:
            raise ValueError(
                f"the logits have {logits_rows} rows, the bitmask {bitmask_rows}: give as many of "
                "both, or name the rows to mask with indices=[...]"
            )
        return None
    held = indices.tolist() if hasattr(indices, "tolist") else indices  # an int without dimensions
    if isinstance(held, (str, bytes)) or not hasattr(held, "__iter__"):
        raise TypeError(
            f"indices is {shown_value(indices):.80}, but must be a sequence of row numbers or None"
        )
    limit = min(logits_rows, bitmask_rows)
    rows: list[int] = []
    for given in held:
        row = as_whole(given)
        if row is None:
            raise TypeError(f"indices holds {shown(given)}, but must hold row numbers")
        if not 0 <= row < limit:
            raise ValueError(
                f"indices holds {shown(row)}, but the logits have {logits_rows} rows and the "
                f"bitmask {bitmask_rows}: use row numbers from 0 to {limit - 1}"
            )
        rows.append(row)
    return rows


def _check_logits(logits: Logits) -> None:
    if isinstance(logits, np.ndarray):
        is_floating = logits.dtype in (np.float16, np.float32, np.float64)
    elif _is_tensor(logits):
        is_floating = logits.dtype.is_floating_point and logits.dtype.itemsize > 1
    elif _is_mlx(logits):
        mlx = sys.modules["mlx.core"]
        is_floating = mlx.issubdtype(logits.dtype, mlx.floating)
    else:
        raise TypeError(
            f"logits is a {type(logits).__name__}, but must be a NumPy array, a torch tensor or an "
            "MLX array"
        )
    if not is_floating:
        raise TypeError(
            f"logits has dtype {logits.dtype}, but must be floating point of 16 to 64 bits"
        )
    _check_shape(logits, "logits", "tokens")
    if isinstance(logits, np.ndarray):
        _check_writable(logits, "logits")
        if not logits.flags.c_contiguous:
            _check_apart(logits.shape, [step / logits.itemsize for step in logits.strides], "copy")
    elif _is_tensor(logits):
        if logits.layout is not sys.modules["torch"].strided:
            raise TypeError(
                f"logits has the layout {logits.layout}, but must be dense: logits.to_dense()"
            )
        if not logits.is_contiguous():
            _check_apart(logits.shape, logits.stride(), "clone")


def _check_bitmask(bitmask: Bitmask) -> None:
    if isinstance(bitmask, np.ndarray):
        is_int32 = bitmask.dtype == bitmask_dtype
    elif _is_tensor(bitmask):
        is_int32 = bitmask.dtype == sys.modules["torch"].int32
    elif _is_mlx(bitmask):
        is_int32 = bitmask.dtype == sys.modules["mlx.core"].int32
    else:
        raise TypeError(
            f"bitmask is a {type(bitmask).__name__}, but must be a NumPy array or a torch tensor: "
            "allocate_token_bitmask makes one"
        )
    if not is_int32:
        raise TypeError(f"bitmask has dtype {bitmask.dtype}, but must be int32")
    _check_shape(bitmask, "bitmask", "words")


def _check_shape(tensor: Any, name: str, unit: str) -> None:
    shape = tuple(tensor.shape)
    if len(shape) not in (1, 2):
        raise ValueError(f"{name} has shape {shape}, but must be ({unit},) or (batch, {unit})")
    if shape[-1] == 0:
        raise ValueError(f"{name} has shape {shape}, so no {unit} at all: nothing can be masked")


def _check_apart(shape: Sequence[int], strides: Sequence[float], copying: str) -> None:
    """Raise ValueError if two logits share memory: masking one would mask the other."""
    reach = 0.0
    for step, size in sorted((abs(step), size) for step, size in zip(strides, shape, strict=True)):
        if size > 1 and step <= reach:
            raise ValueError(
                "logits has elements that share memory, as expand() and broadcasting make them, so "
                f"its rows cannot be masked one by one: pass a copy, logits.{copying}()"
            )
        reach += max(size - 1, 0) * step


def _check_writable(array: NDArray[Any], name: str) -> None:
    if not array.flags.writeable:
        raise ValueError(f"{name} is read-only: pass a copy, {name}.copy()")


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_mlx(value: object) -> bool:
    mlx = sys.modules.get("mlx.core")
    return mlx is not None and isinstance(value, mlx.array)


def _device(tensor: Any) -> str:
    """The device of a tensor.

    For an MLX array only "mlx", because each operation chooses a device.
    """
    if isinstance(tensor, np.ndarray):
        return "cpu"
    return "mlx" if _is_mlx(tensor) else str(tensor.device)


def _num_rows(tensor: Any) -> int:
    return 1 if len(tensor.shape) == 1 else int(tensor.shape[0])
