"""Masks as rows and patches, for engines that keep rows on the device of the logits.

One idea: nearly every mask is one of a few rows except for a few tokens, so only a number and those
tokens need to be sent. A row is sent once, when it first occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from stencilm.bitmask.arrays import (
    apply_token_bitmask_inplace,
    checked_targets,
    sent_to_device,
)
from stencilm.shown import shown_value
from stencilm.whole_numbers import count, whole_number

if TYPE_CHECKING:
    import torch

    from stencilm import _core
    from stencilm.tokenizers import TokenizerInfo

# Initial room for flipped tokens per sequence; most masks have fewer.
_FLIPPED_TOKENS = 64


class MaskPatch(NamedTuple):
    """A mask as its difference from a row.

    Examples:
        >>> import numpy as np
        >>> stencilm.MaskPatch(0, np.array([2, 5], dtype=np.int32)).flipped.tolist()
        [2, 5]
    """

    row: int
    """The number of the row, 0 for one without tokens; `TokenizerInfo.fill_mask_row` writes it."""
    flipped: NDArray[np.int32]
    """The ids of the tokens whose bits are turned over, ascending; usually a few."""


class MaskPatches:
    """The masks of a batch as differences from rows, in three arrays that are reused.

    Args:
        batch_size: The most sequences in a batch.

    Examples:
        >>> import stencilm
        >>> info = stencilm.TokenizerInfo([b"a", b"b", b"</s>"], stop_token_ids=[2])
        >>> compiled = stencilm.GrammarCompiler(info).compile_regex("ab")
        >>> matchers = [stencilm.GrammarMatcher(compiled) for _ in range(2)]
        >>> patches = stencilm.MaskPatches(batch_size=2)
        >>> patches.find(stencilm.BatchGrammarMatcher(), matchers)
        >>> patches.row_ids.shape, patches.offsets.shape, patches.flipped.dtype
        ((2,), (3,), dtype('int32'))
    """

    def __init__(self, batch_size: int) -> None:
        """Start without patches."""
        batch_size = whole_number("batch_size", batch_size, least=0)
        try:
            self._rows = np.zeros(batch_size, dtype=np.int32)
            self._offsets = np.zeros(batch_size + 1, dtype=np.int32)
            self._flipped = np.zeros(_FLIPPED_TOKENS * batch_size, dtype=np.int32)
        except (MemoryError, OverflowError, ValueError) as error:
            raise MemoryError(
                f"there is no memory for the patches of {batch_size} sequences: give a smaller "
                "batch_size"
            ) from error
        self._count = 0

    def __copy__(self) -> Self:
        """The same patches in arrays of their own, so that they stay."""
        made = object.__new__(type(self))
        made.__dict__.update({name: copy(value) for name, value in self.__dict__.items()})
        return made

    def __len__(self) -> int:
        """How many patches there are."""
        return self._count

    @property
    def row_ids(self) -> NDArray[np.int32]:
        """The number of each patch's row, int32 of shape (patches,)."""
        return self._rows[: self._count]

    @property
    def offsets(self) -> NDArray[np.int32]:
        """Where each patch's tokens begin in `flipped`, and where the last one's end.

        int32 of shape (patches + 1,).
        """
        return self._offsets[: self._count + 1]

    @property
    def flipped(self) -> NDArray[np.int32]:
        """The tokens whose bits are flipped, those of a patch in any order; int32."""
        return self._flipped[: self._offsets[self._count]]

    def find(self, batch: _core.BatchMatcher, matchers: Sequence[_core.Matcher]) -> None:
        """Stores the patches of these sequences' masks until the next call.

        Args:
            batch: The `BatchGrammarMatcher` that finds them.
            matchers: A `GrammarMatcher` for each sequence.

        Raises:
            ValueError: There are more sequences than the batch size.
            BatchError: Sequences failed; nothing is held then.
        """
        count, self._count = len(matchers), 0
        self._offsets[0] = 0
        while True:
            needed = batch.batch_find_mask_patches(
                matchers, self._rows, self._offsets, self._flipped
            )
            if needed <= len(self._flipped):
                self._count = count
                return
            # The masks are cached by now, so finding them again is cheap.
            self._flipped = np.zeros(2 * needed, dtype=np.int32)


class MaskRows:
    """Rows kept in memory or on a torch device, from which patches make bitmasks there.

    Args:
        tokenizer_info: The vocabulary that the patches are of.
        device: The torch device where the rows are kept, such as "cuda"; None keeps them in numpy
            arrays.
        max_rows: How many are kept; each takes `vocab_size / 8` bytes. The least recently used row
            is replaced.

    Examples:
        >>> import stencilm
        >>> info = stencilm.TokenizerInfo([b"a", b"b", b"</s>"], stop_token_ids=[2])
        >>> matcher = stencilm.GrammarMatcher(stencilm.GrammarCompiler(info).compile_regex("ab"))
        >>> rows = stencilm.MaskRows(info)
        >>> rows.bitmask([matcher.find_mask_patch()]).tolist()
        [[1]]
    """

    def __init__(
        self,
        tokenizer_info: TokenizerInfo,
        device: torch.device | str | None = None,
        *,
        max_rows: int = 1024,
    ) -> None:
        """Start without rows."""
        if not hasattr(tokenizer_info, "fill_mask_row"):
            raise TypeError(
                f"tokenizer_info is a {type(tokenizer_info).__name__}, but must be a TokenizerInfo"
            )
        self._info = tokenizer_info
        self._device = device
        self._max_rows = count("max_rows", max_rows, least=1)
        self._words = -(-tokenizer_info.vocab_size // 32)
        self._rows: Any = (
            _Numpy(self._words) if device is None else _torch_rows(self._words, device)
        )
        # The number of the row in each slot, and the call in which it was last used.
        self._row_at = np.zeros(0, dtype=np.int32)
        self._used = np.zeros(0, dtype=np.int64)
        # The slots in the order of the row numbers, for a search for many at once.
        self._order = np.zeros(0, dtype=np.int32)
        self._calls = 0

    def __copy__(self) -> MaskRows:
        """One for the same vocabulary, on the same device, that keeps no row yet."""
        return MaskRows(self._info, self._device, max_rows=self._max_rows)

    def __deepcopy__(self, memo: dict[int, Any]) -> MaskRows:
        """The same as `copy.copy`."""
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        """Refused, because the numbers of rows are those of one process."""
        raise TypeError(
            "MaskRows cannot be pickled, since rows have other numbers in other processes: make "
            "one in the process that finds the patches"
        )

    def __len__(self) -> int:
        """How many rows are kept."""
        return len(self._row_at)

    def bitmask(self, patches: MaskPatches | Sequence[MaskPatch]) -> Any:
        """The bitmask of some sequences, int32 of shape (patches, words), where the rows are.

        A torch tensor on the device, or a numpy array. This does not wait for the GPU.

        Raises:
            TypeError: `patches` are none.
            ValueError: The patches name more different rows than may be kept, or a token that the
                vocabulary has not.
            LookupError: A row is asked for whose grammar is gone.
        """
        row_ids, offsets, flipped = self._checked(patches)
        return self._rows.patched(self._kept(row_ids), offsets, flipped)

    def apply(
        self,
        logits: Any,
        patches: MaskPatches | Sequence[MaskPatch],
        *,
        indices: Sequence[int] | NDArray[np.integer[Any]] | None = None,
    ) -> None:
        """Set the logits of all tokens that the masks do not allow to minus infinity.

        The same as to apply `bitmask(patches)`.

        Args:
            logits: Floating point of shape (batch, tokens), where the rows are. Logits past the
                vocabulary are closed too.
            patches: The masks.
            indices: The row of the logits that each of them closes, each row once; 0, 1, 2 and so
                on where None. The other rows keep their logits.

        Raises:
            TypeError: The logits are of the wrong kind or type, or `patches` are none. Nothing was
                written.
            ValueError: Shapes, devices or row numbers do not fit, or the patches name more
                different rows than may be kept, or a token that the vocabulary has not. Nothing was
                written.
            LookupError: A row is asked for whose grammar is gone.

        Examples:
            >>> import numpy as np
            >>> import stencilm
            >>> info = stencilm.TokenizerInfo([b"a", b"b", b"</s>"], stop_token_ids=[2])
            >>> matcher = stencilm.GrammarMatcher(stencilm.GrammarCompiler(info).compile_regex("a"))
            >>> logits = np.zeros((2, 3), dtype=np.float32)
            >>> rows = stencilm.MaskRows(info)
            >>> rows.apply(logits, [matcher.find_mask_patch()], indices=[1])
            >>> logits.tolist()
            [[0.0, 0.0, 0.0], [0.0, -inf, -inf]]
        """
        row_ids, offsets, flipped = self._checked(patches)
        targets = checked_targets(logits, self._words, indices, len(row_ids))
        places = self._kept(row_ids)
        bitmask = self._rows.patched(places, offsets, flipped)
        if indices is None:
            apply_token_bitmask_inplace(logits, bitmask)
        else:
            self._rows.close(logits, bitmask, targets)

    def _checked(
        self, patches: MaskPatches | Sequence[MaskPatch]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """The arrays of all patches; on a GPU, nothing would say that a token is past the rows."""
        try:
            row_ids, offsets, flipped = _arrays(patches)
        except (TypeError, AttributeError) as error:
            raise TypeError(
                f"patches is {shown_value(patches):.80}, but must be MaskPatches, or a list of "
                "MaskPatch"
            ) from error
        size = self._info.vocab_size
        if len(flipped) and not 0 <= int(flipped.min()) <= int(flipped.max()) < size:
            token_id = int(flipped[(flipped < 0) | (flipped >= size)][0])
            raise ValueError(
                f"a patch flips token {token_id}, but these are rows of a vocabulary of {size} "
                "tokens: use MaskRows of the vocabulary that the matchers have"
            )
        return row_ids, offsets, flipped

    def _kept(self, row_ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """The slots of rows; missing rows are fetched."""
        self._calls += 1
        places = self._find(row_ids)
        is_missing = places < 0
        if is_missing.any():
            needed = np.unique(row_ids)
            if len(needed) > self._max_rows:
                raise ValueError(
                    f"{len(needed)} different rows do not fit in max_rows={self._max_rows}; "
                    "raise it"
                )
            self._used[places[~is_missing]] = self._calls
            try:
                for row in np.unique(row_ids[is_missing]).tolist():
                    self._keep(row)
            finally:
                self._order = np.argsort(self._row_at).astype(np.int32)
            places = self._find(row_ids)
        self._used[places] = self._calls
        return places

    def _find(self, row_ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """The slots of rows, -1 for those that are missing."""
        if not len(self._order):
            return np.full(len(row_ids), -1, dtype=np.int32)
        found = np.searchsorted(self._row_at, row_ids, sorter=self._order)
        places = self._order[np.minimum(found, len(self._order) - 1)]
        return np.where(self._row_at[places] == row_ids, places, np.int32(-1))

    def _keep(self, row: int) -> None:
        words = np.zeros((1, self._words), dtype=np.int32)
        self._info.fill_mask_row(row, words)
        place = len(self._row_at)
        if place >= self._max_rows:
            place = int(self._used.argmin())
        else:
            if place == len(self._rows):
                # Doubled, so that rows are seldom moved.
                self._rows.grow(max(8, 2 * place))
            self._row_at = np.append(self._row_at, np.int32(row))
            self._used = np.append(self._used, self._calls)
        self._rows.write(place, words[0])
        self._row_at[place], self._used[place] = row, self._calls


def _arrays(
    patches: MaskPatches | Sequence[MaskPatch],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """The rows, the offsets and the tokens of all patches."""
    if isinstance(patches, MaskPatches):
        return patches.row_ids, patches.offsets, patches.flipped
    rows = np.array([patch.row for patch in patches], dtype=np.int32)
    lengths = [len(patch.flipped) for patch in patches]
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int32)]).astype(np.int32)
    flipped = [patch.flipped for patch in patches] or [np.zeros(0, dtype=np.int32)]
    return rows, offsets, np.concatenate(flipped)


def _words_and_bits(
    width: int, offsets: NDArray[np.int32], flipped: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The word of every flipped token, counted through rows of `width` words, and its bit."""
    sequences = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    words = sequences * width + flipped // 32
    return words, np.left_shift(np.uint32(1), (flipped % 32).astype(np.uint32)).view(np.int32)


class _Numpy:
    """Rows in an array."""

    def __init__(self, words: int) -> None:
        self._rows = np.zeros((0, words), dtype=np.int32)

    def __len__(self) -> int:
        return len(self._rows)

    def grow(self, count: int) -> None:
        rows = np.zeros((count, self._rows.shape[1]), dtype=np.int32)
        rows[: len(self._rows)] = self._rows
        self._rows = rows

    def write(self, place: int, words: NDArray[np.int32]) -> None:
        self._rows[place] = words

    def close(self, logits: Any, bitmask: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Mask in each target row of the logits the tokens that its row of the bitmask excludes."""
        whole = np.zeros((logits.shape[0], bitmask.shape[1]), dtype=np.int32)
        whole[targets] = bitmask
        apply_token_bitmask_inplace(logits, whole, indices=targets)

    def patched(
        self, places: NDArray[np.int32], offsets: NDArray[np.int32], flipped: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Copies of rows with the bits of some tokens flipped."""
        bitmask = self._rows[places]
        words, bits = _words_and_bits(bitmask.shape[1], offsets, flipped)
        np.bitwise_xor.at(bitmask.reshape(-1), words, bits)
        return bitmask


class _Torch:
    """Rows in a tensor."""

    def __init__(self, words: int, device: torch.device | str) -> None:
        import torch

        self._torch = torch
        self._rows = torch.zeros((0, words), dtype=torch.int32, device=device)

    def has_triton(self) -> bool:
        """Whether Triton can access the rows."""
        return self._rows.device.type == "cuda" and find_spec("triton") is not None

    def __len__(self) -> int:
        return len(self._rows)

    def grow(self, count: int) -> None:
        rows = self._rows.new_zeros((count, self._rows.shape[1]))
        rows[: len(self._rows)] = self._rows
        self._rows = rows

    def write(self, place: int, words: NDArray[np.int32]) -> None:
        self._rows[place] = self._sent(words)

    def close(self, logits: Any, bitmask: torch.Tensor, targets: NDArray[np.int32]) -> None:
        """Mask in each target row of the logits the tokens that its row of the bitmask excludes."""
        whole = bitmask.new_zeros((logits.shape[0], bitmask.shape[1]))
        whole[self._sent(targets.astype(np.int64))] = bitmask
        apply_token_bitmask_inplace(logits, whole, indices=targets)

    def patched(
        self, places: NDArray[np.int32], offsets: NDArray[np.int32], flipped: NDArray[np.int32]
    ) -> torch.Tensor:
        """Copies of rows with the bits of some tokens flipped."""
        words, bits = _words_and_bits(self._rows.shape[1], offsets, flipped)
        bitmask = self._rows.index_select(0, self._sent(places.astype(np.int64)))
        if len(words):
            # Different bits of a word add up without a carry, so their sum is their union.
            turned = self._rows.new_zeros(bitmask.numel())
            turned.index_add_(0, self._sent(words), self._sent(bits))
            bitmask ^= turned.view_as(bitmask)
        return bitmask

    def _sent(self, array: NDArray[Any]) -> torch.Tensor:
        tensor: torch.Tensor = sent_to_device(array, self._rows.device)
        return tensor


class _Triton(_Torch):
    """Rows in a tensor on a GPU, patched by one kernel whose inputs are sent in one transfer."""

    def patched(
        self, places: NDArray[np.int32], offsets: NDArray[np.int32], flipped: NDArray[np.int32]
    ) -> torch.Tensor:
        from stencilm.bitmask import triton

        sent = self._sent(np.concatenate([places, offsets, flipped]))
        return triton.patched(self._rows, sent, len(places))

    def close(self, logits: Any, bitmask: torch.Tensor, targets: NDArray[np.int32]) -> None:
        """Mask in each target row of the logits the tokens that its row of the bitmask excludes."""
        from stencilm.bitmask import triton

        is_there = isinstance(logits, self._torch.Tensor) and logits.device == bitmask.device
        if is_there and not logits.requires_grad and triton.takes(logits, bitmask):
            width = min(logits.shape[1], 32 * bitmask.shape[1])
            triton.close(logits, bitmask, self._sent(targets), width, is_spread=False)
        else:
            super().close(logits, bitmask, targets)


def _torch_rows(words: int, device: torch.device | str) -> _Torch:
    rows = _Torch(words, device)
    return _Triton(words, device) if rows.has_triton() else rows
