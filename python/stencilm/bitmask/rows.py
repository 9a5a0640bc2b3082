"""Masks as rows and patches, for engines that keep rows on the device where the logits are.

One idea: nearly every mask is one of a few rows but for a few tokens, so only a number and those
tokens need to travel. A row is sent once, when it is met for the first time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

    from stencilm.tokenizers import TokenizerInfo


class MaskPatch(NamedTuple):
    """A mask as it differs from a row."""

    row: int
    """The number of the row, 0 for one without tokens; `TokenizerInfo.fill_mask_row` writes it."""
    flipped: NDArray[np.int32]
    """The ids of the tokens whose bits are turned over, ascending; usually a few."""


class MaskRows:
    """Rows kept on a torch device, from which patches make bitmasks there.

    Args:
        tokenizer_info: The vocabulary that the patches are of.
        device: Where the rows are kept, such as "cuda".
        max_rows: How many are kept; each takes `vocab_size / 8` bytes. The one used longest ago
            makes room.
    """

    def __init__(
        self, tokenizer_info: TokenizerInfo, device: torch.device | str, *, max_rows: int = 1024
    ) -> None:
        """Keeps no row yet."""
        import torch

        if max_rows < 1:
            raise ValueError(f"max_rows is {max_rows}, but must be at least 1")
        self._info = tokenizer_info
        self._max_rows = max_rows
        words = -(-tokenizer_info.vocab_size // 32)
        self._rows = torch.zeros((0, words), dtype=torch.int32, device=device)
        self._places: OrderedDict[int, int] = OrderedDict()

    def __len__(self) -> int:
        """How many rows are kept."""
        return len(self._places)

    def bitmask(self, patches: Sequence[MaskPatch]) -> torch.Tensor:
        """The bitmask of some sequences, int32 of shape (patches, words), on the device.

        Raises:
            ValueError: The patches name more different rows than may be kept.
            LookupError: A row is asked for whose grammar is gone.
        """
        import torch

        rows, device = dict.fromkeys(patch.row for patch in patches), self._rows.device
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
        places = [self._places[patch.row] for patch in patches]
        bitmask = self._rows.index_select(0, torch.tensor(places, dtype=torch.int64, device=device))
        flipped = [patch.flipped for patch in patches]
        if sum(len(ids) for ids in flipped):
            words = bitmask.shape[1]
            ids = np.concatenate(flipped).astype(np.int64)
            owners = np.repeat(np.arange(len(flipped)), [len(ids) for ids in flipped])
            bits = np.left_shift(np.uint32(1), (ids % 32).astype(np.uint32)).view(np.int32)
            # Different bits of a word add up without a carry, so their sum is their union.
            turned = torch.zeros(bitmask.numel(), dtype=torch.int32, device=device)
            at = torch.from_numpy(owners * words + ids // 32).to(device)
            turned.index_add_(0, at, torch.from_numpy(bits).to(device))
            bitmask ^= turned.view_as(bitmask)
        return bitmask

    def _keep(self, row: int) -> None:
        import torch

        words = np.zeros((1, self._rows.shape[1]), dtype=np.int32)
        self._info.fill_mask_row(row, words)
        if len(self._places) >= self._max_rows:
            _, place = self._places.popitem(last=False)
        else:
            place = len(self._places)
            if place == len(self._rows):
                # Doubled, so that rows are seldom moved.
                room = self._rows.new_zeros((max(8, place), words.shape[1]))
                self._rows = torch.cat([self._rows, room])
        self._rows[place] = torch.from_numpy(words[0]).to(self._rows.device)
        self._places[row] = place
