"""Token healing: the last tokens of a text are taken back if a longer token may spell them.

One idea: a model has never seen `http` `:` `//` if its tokenizer writes `http` `://`. So tokens at
the end of a given text are taken back, as long as some token of the vocabulary begins there and
extends beyond the end; the next tokens must first spell the same bytes. There may be several such
tokens: the longest token of the vocabulary is the only bound.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stencilm.tokenizers import TokenizerInfo


class Healer:
    """The tokens of a vocabulary, sorted by their bytes."""

    def __init__(self, info: TokenizerInfo) -> None:
        special = {*info.special_token_ids, *info.stop_token_ids}
        self._spelled = [
            b"" if token_id in special else text for token_id, text in enumerate(info.decoded_vocab)
        ]
        self._ids = sorted(
            (token_id for token_id, text in enumerate(self._spelled) if text),
            key=self._spelled.__getitem__,
        )
        self._texts = [self._spelled[token_id] for token_id in self._ids]
        self._longest = max((len(text) for text in self._texts), default=0)

    def split(self, token_ids: Sequence[int]) -> tuple[int, bytes]:
        """How many of these tokens stay, and the bytes of the others.

        The first token always stays, and so does everything up to a special token.
        """
        keep, healed, tail = len(token_ids), b"", b""
        for at in range(len(token_ids) - 1, 0, -1):
            text = self._spelled[token_ids[at]]
            tail = text + tail
            if not text or len(tail) >= self._longest:
                break
            if self._has_longer(tail):
                keep, healed = at, tail
        return keep, healed

    def spelling(self, prefix: bytes) -> NDArray[np.bool_]:
        """For each token: whether it begins with `prefix`."""
        fits = np.zeros(len(self._spelled), dtype=np.bool_)
        first = bisect_left(self._texts, prefix)
        last = bisect_left(self._texts, _after(prefix)) if prefix else len(self._texts)
        fits[self._ids[first:last]] = True
        return fits

    def _has_longer(self, text: bytes) -> bool:
        at = bisect_left(self._texts, text + b"\0")
        return at < len(self._texts) and self._texts[at].startswith(text)


@lru_cache(maxsize=4)
def healer(info: TokenizerInfo) -> Healer:
    """The healer of a vocabulary; the latest few are cached, because sorting takes a moment."""
    return Healer(info)


def _after(prefix: bytes) -> bytes:
    """The smallest text above every text with this prefix."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else b"\xff" * (len(prefix) + 4096)
