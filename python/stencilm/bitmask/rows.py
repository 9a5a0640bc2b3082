"""Masks as rows and patches, for engines that keep rows on the device where the logits are.

One idea: nearly every mask is one of a few rows but for a few tokens, so only a number and those
tokens need to travel. A row is sent once, when it is met for the first time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

    from stencilm import _core
    from stencilm.tokenizers import TokenizerInfo

# So many flipped tokens have room at first, for each sequence; most masks have fewer.
_FLIPPED_TOKENS = 64


class MaskPatch(NamedTuple):
    """A mask as it differs from a row.

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
    """The masks of a batch as they differ from rows, in three arrays that are used again.

    Args:
        batch_size: The most sequences that a batch may have.

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
        """Holds no patch yet."""
        if isinstance(batch_size, bool) or not isinstance(batch_size, int):
            raise TypeError(f"batch_size is {batch_size!r}, but must be an int")
        if batch_size < 0:
            raise ValueError(f"batch_size is {batch_size}, but must be at least 0")
        self._rows = np.zeros(batch_size, dtype=np.int32)
        self._offsets = np.zeros(batch_size + 1, dtype=np.int32)
        self._flipped = np.zeros(_FLIPPED_TOKENS * batch_size, dtype=np.int32)
        self._count = 0

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
        """The tokens whose bits are turned over, those of a patch in any order; int32."""
        return self._flipped[: self._offsets[self._count]]

    def find(self, batch: _core.BatchMatcher, matchers: Sequence[_core.Matcher]) -> None:
        """Holds the patches of these sequences' masks from now on.

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
            # The masks are known by now, so that finding them again takes little.
            self._flipped = np.zeros(2 * needed, dtype=np.int32)


class MaskRows:
    """Rows kept in memory or on a torch device, from which patches make bitmasks there.

    Args:
        tokenizer_info: The vocabulary that the patches are of.
        device: The torch device where the rows are kept, such as "cuda"; None keeps them in numpy
            arrays.
        max_rows: How many are kept; each takes `vocab_size / 8` bytes. The one used longest ago
            makes room.

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
        """Keeps no row yet."""
        if max_rows < 1:
            raise ValueError(f"max_rows is {max_rows}, but must be at least 1")
        self._info = tokenizer_info
        self._max_rows = max_rows
        self._words = -(-tokenizer_info.vocab_size // 32)
        self._rows: Any = (
            _Numpy(self._words) if device is None else _torch_rows(self._words, device)
        )
        self._places: OrderedDict[int, int] = OrderedDict()

    def __len__(self) -> int:
        """How many rows are kept."""
        return len(self._places)

    def bitmask(self, patches: MaskPatches | Sequence[MaskPatch]) -> Any:
        """The bitmask of some sequences, int32 of shape (patches, words), where the rows are.

        A torch tensor on the device, or a numpy array.

        Raises:
            ValueError: The patches name more different rows than may be kept.
            LookupError: A row is asked for whose grammar is gone.
        """
        row_ids, offsets, flipped = _arrays(patches)
        rows, owners = np.unique(row_ids, return_inverse=True)
        rows = rows.tolist()
        if len(rows) > self._max_rows:
            raise ValueError(
                f"{len(rows)} different rows do not fit in max_rows={self._max_rows}; raise it"
            )
        for row in rows:
            if row in self._places:
                self._places.move_to_end(row)
        for row in rows:
            if row not in self._places:
                self._keep(row)
        places = np.array([self._places[row] for row in rows], dtype=np.int32)[owners.reshape(-1)]
        return self._rows.patched(places, offsets, flipped)

    def _keep(self, row: int) -> None:
        words = np.zeros((1, self._words), dtype=np.int32)
        self._info.fill_mask_row(row, words)
        if len(self._places) >= self._max_rows:
            _, place = self._places.popitem(last=False)
        else:
            place = len(self._places)
            if place == len(self._rows):
                # Doubled, so that rows are seldom moved.
                self._rows.grow(max(8, 2 * place))
        self._rows.write(place, words[0])
        self._places[row] = place


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

    def patched(
        self, places: NDArray[np.int32], offsets: NDArray[np.int32], flipped: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Copies of rows with the bits of some tokens turned over."""
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
        """Whether Triton reaches the rows."""
        return self._rows.device.type == "cuda" and find_spec("triton") is not None

    def __len__(self) -> int:
        return len(self._rows)

    def grow(self, count: int) -> None:
        rows = self._rows.new_zeros((count, self._rows.shape[1]))
        rows[: len(self._rows)] = self._rows
        self._rows = rows

    def write(self, place: int, words: NDArray[np.int32]) -> None:
        self._rows[place] = self._torch.from_numpy(words).to(self._rows.device)

    def patched(
        self, places: NDArray[np.int32], offsets: NDArray[np.int32], flipped: NDArray[np.int32]
    ) -> torch.Tensor:
        """Copies of rows with the bits of some tokens turned over."""
        torch, device = self._torch, self._rows.device
        words, bits = _words_and_bits(self._rows.shape[1], offsets, flipped)
        bitmask = self._rows.index_select(0, torch.from_numpy(places.astype(np.int64)).to(device))
        if len(words):
            # Different bits of a word add up without a carry, so their sum is their union.
            turned = torch.zeros(bitmask.numel(), dtype=torch.int32, device=device)
            turned.index_add_(
                0, torch.from_numpy(words).to(device), torch.from_numpy(bits).to(device)
            )
            bitmask ^= turned.view_as(bitmask)
        return bitmask


class _Triton(_Torch):
    """Rows in a tensor on a GPU, patched by one kernel; what it needs is sent at once."""

    def patched(
        self, places: NDArray[np.int32], offsets: NDArray[np.int32], flipped: NDArray[np.int32]
    ) -> torch.Tensor:
        from stencilm.bitmask import triton

        sent = self._torch.from_numpy(np.concatenate([places, offsets, flipped]))
        parts = sent.to(self._rows.device).split([len(places), len(offsets), len(flipped)])
        return triton.patched(self._rows, *parts)


def _torch_rows(words: int, device: torch.device | str) -> _Torch:
    rows = _Torch(words, device)
    return _Triton(words, device) if rows.has_triton() else rows
