"""The key-value cache of a transformers model, cropped exactly and any number of times.

One idea: cropping truncates every layer at once. Layers that keep everything are cropped in place:
full attention, a sliding window that records its past, a static buffer whose fill level is lowered.
A recurrent state cannot go back; then `crop` returns False and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from transformers import DynamicCache, StaticCache


class KeyValueCache:
    """The keys and values of the tokens that a model has read, for one sequence or a batch.

    Args:
        config: The model's configuration.
        static_size: Positions of a static cache; None for one that grows.
    """

    def __init__(self, config: Any, *, static_size: int | None = None) -> None:
        self.num_tokens = 0
        if static_size is not None:
            self.cache: Any = StaticCache(config=config, max_cache_len=static_size)
            return
        self.cache = DynamicCache(config=config)
        # Otherwise a full window would drop positions that are needed after cropping.
        if records_past():
            self.cache.activate_past_recording()

    @property
    def sees_everything(self) -> bool:
        """Whether each layer grows and attends to everything, so that one mask fits all layers."""
        return not any(
            _is_static(layer) or getattr(layer, "is_sliding", False) for layer in self.cache.layers
        )

    @property
    def is_recurrent(self) -> bool:
        """Whether some layer has a state instead of keys.

        It can only continue one token at a time.
        """
        return any(hasattr(layer, "recurrent_states") for layer in self.cache.layers)

    @property
    def can_reorder(self) -> bool:
        """Whether every layer holds keys and values of all positions, and nothing else of them."""
        return not any(
            _is_static(layer)
            or hasattr(layer, "recurrent_states")
            or hasattr(layer, "indexer_keys")
            or (getattr(layer, "is_sliding", False) and not getattr(layer, "record_past", False))
            for layer in self.cache.layers
        )

    def crop(self, num_tokens: int) -> bool:
        """Keep the first `num_tokens` positions.

        False, with nothing changed, if that is not possible.
        """
        remove = self.num_tokens - num_tokens
        if remove == 0:
            return True
        layers = list(self.cache.layers)
        if not all(_can_be_cut(layer) for layer in layers):
            return False
        for layer in layers:
            _cut(layer, num_tokens, remove)
        self.num_tokens = num_tokens
        return True

    def reorder(self, order: NDArray[np.int64]) -> None:
        """Make position j of row i what position `order[i, j]` was: [rows, positions]."""
        index = torch.as_tensor(order, device=_device_of(self.cache))[:, None, :, None]
        for layer in self.cache.layers:
            if layer.is_initialized:
                layer.keys = torch.take_along_dim(layer.keys, index.to(layer.keys.device), dim=2)
                layer.values = torch.take_along_dim(
                    layer.values, index.to(layer.values.device), dim=2
                )

    def select(self, rows: Sequence[int]) -> None:
        """Make row i of the batch what row `rows[i]` was: drops, repeats and reorders rows."""
        device = _device_of(self.cache)
        self.cache.batch_select_indices(torch.tensor(list(rows), device=device))


def records_past() -> bool:
    """Whether sliding windows can keep positions that they no longer attend to.

    In transformers 5.17 this is broken: consecutive passes get more keys than their masks have.
    """
    is_broken = transformers.__version__.startswith("5.17.")
    return hasattr(DynamicCache, "activate_past_recording") and not is_broken


def _can_be_cut(layer: Any) -> bool:
    if _is_static(layer):
        return not layer.is_sliding
    if getattr(layer, "is_sliding", False):
        return bool(getattr(layer, "record_past", False))
    return bool(getattr(layer, "is_croppable", hasattr(layer, "crop")))


def _cut(layer: Any, num_tokens: int, remove: int) -> None:
    if _is_static(layer):
        # Positions beyond the fill level are masked, and the next write overwrites them.
        layer.cumulative_length.fill_(num_tokens)
    elif getattr(layer, "is_sliding", False):
        # The layer's own `crop` would also drop the past, which a second crop would need.
        if layer.is_initialized:
            layer.keys = layer.keys[..., :-remove, :]
            layer.values = layer.values[..., :-remove, :]
            layer.cumulative_length -= remove
    else:
        layer.crop(-remove)


def _is_static(layer: Any) -> bool:
    return hasattr(layer, "max_cache_len")


def _device_of(cache: Any) -> Any:
    for layer in cache.layers:
        if getattr(layer, "is_initialized", False):
            return layer.keys.device
    return "cpu"
