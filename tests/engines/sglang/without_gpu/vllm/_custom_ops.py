"""See the package."""

from __future__ import annotations

from typing import Any


def rotary_embedding(*_: Any) -> None:
    raise NotImplementedError("the tests run on processors, where torch does this")
