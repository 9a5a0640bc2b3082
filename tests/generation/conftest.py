"""A model over bytes and a matcher over a list of texts: the loop's two neighbours as toys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stencilm.tokenizers import TokenizerInfo

STOP = 256
VOCABULARY = [bytes([value]) for value in range(256)] + [b"</s>"]


@dataclass
class ByteSequence:
    """Tokens that a `ByteModel` has seen; each step's logits come from the model's function."""

    model: ByteModel
    token_ids: list[int]

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    def append(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        self.token_ids.extend(token_ids)
        self.model.calls.append(list(token_ids))
        return np.array(self.model.logits_after(self.token_ids), dtype=np.float32)

    def crop(self, num_tokens: int) -> None:
        del self.token_ids[num_tokens:]


@dataclass
class ByteModel:
    """One token for each byte and a stop token; `logits_after` maps the tokens so far to a row."""

    logits_after: Callable[[list[int]], Any]
    context_size: int | None = None
    calls: list[list[int]] = field(default_factory=list)
    tokenizer_info: TokenizerInfo = field(
        default_factory=lambda: TokenizerInfo(VOCABULARY, stop_token_ids=[STOP])
    )

    def encode(self, prompt: Any) -> list[int]:
        return list(str(prompt).encode())

    def start(self, prompt_ids: Sequence[int]) -> ByteSequence:
        return ByteSequence(self, list(prompt_ids))


class TextsMatcher:
    """Allows exactly the given texts, byte by byte, and the stop token after a whole one."""

    def __init__(
        self, texts: Sequence[str], *, needs_stop_token: bool = True, forces: bool = False
    ) -> None:
        self.texts = [text.encode() for text in texts]
        self.written = b""
        self.ended = False
        self.needs_stop_token = needs_stop_token
        self.forces = forces
        self.stop_token_ids = [STOP]
        self.temperature: float | None = None

    def allowed(self) -> set[int]:
        at = len(self.written)
        rest = [text[at:] for text in self.texts if text.startswith(self.written)]
        return {text[0] for text in rest if text} | ({STOP} if b"" in rest else set())

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool:
        bits = np.zeros(bitmask.shape[1] * 32, dtype=np.uint8)
        bits[list(self.allowed())] = 1
        bitmask[index] = np.packbits(bits, bitorder="little").view(np.int32)
        return True

    def accept_token(self, token_id: int) -> bool:
        if self.ended or token_id not in self.allowed():
            return False
        if token_id == STOP:
            self.ended = True
        else:
            self.written += bytes([token_id])
        return True

    def find_jump_forward_tokens(self, recent_tokens: Sequence[int] | None = None) -> list[int]:
        at, forced = len(self.written), b""
        rest = [text[at:] for text in self.texts if text.startswith(self.written)]
        while not self.ended and len({text[:1] for text in rest}) == 1 and rest[0]:
            forced += rest[0][:1]
            rest = [text[1:] for text in rest]
        return list(forced) if self.forces else []

    def is_terminated(self) -> bool:
        return self.ended or (not self.needs_stop_token and self.is_completed())

    def is_completed(self) -> bool:
        return self.written in self.texts


def spelling(text: str) -> Callable[[list[int]], NDArray[np.float32]]:
    """Logits of a model that wants to write `text` after a prompt of one token, then stop."""
    wanted = [*text.encode(), STOP]

    def logits_after(token_ids: list[int]) -> NDArray[np.float32]:
        row = np.zeros(len(VOCABULARY), dtype=np.float32)
        row[wanted[min(len(token_ids) - 1, len(wanted) - 1)]] = 5.0
        return row

    return logits_after


class Toys:
    """The toys of this folder, under one name for the tests."""

    model = ByteModel
    matcher = TextsMatcher
    spelling = staticmethod(spelling)
    stop = STOP
    vocab_size = len(VOCABULARY)


@pytest.fixture
def toys() -> Toys:
    return Toys()
