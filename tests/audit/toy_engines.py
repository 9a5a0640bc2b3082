"""Engines that are broken on purpose, each in one way: stencilm with something done to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import Any

import numpy as np

from stencilm import GrammarMatcher
from stencilm.audit.engines import Stencilm


class AllowsMore(Stencilm):
    """Forgets `maxItems`."""

    def compile(self, schema: str) -> Any:
        return super().compile(schema.replace('"maxItems"', '"$comment"'))


class AllowsLess(Stencilm):
    """Takes every bound of a number for one less."""

    def compile(self, schema: str) -> Any:
        changed = json.loads(schema)
        changed["maximum"] -= 1
        return super().compile(json.dumps(changed))


class Chatters(Stencilm):
    """Has programs write and read beside Python, as libraries below it do."""

    def compile(self, schema: str) -> Any:
        os.write(1, b"compiling\n")
        subprocess.run(["cat"], check=True)
        return super().compile(schema)


class EndsTooEarly(Stencilm):
    """Allows the end after any token."""

    stop = 0

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer)
        self.stop = tokenizer.stop_token_ids[0]

    def mask(self, matcher: Any) -> Any:
        words = super().mask(matcher)
        words.view(np.uint32)[self.stop // 32] |= np.uint32(1 << self.stop % 32)
        return words


class AllowsEverything(Stencilm):
    """Every token, always."""

    def mask(self, matcher: Any) -> Any:
        return np.full_like(super().mask(matcher), -1)

    def accept(self, matcher: Any, token_id: int) -> bool:
        return True


class StopsShort(Stencilm):
    """Allows nothing after the first three tokens."""

    def mask(self, matcher: Any) -> Any:
        words = super().mask(matcher)
        if matcher.num_accepted_tokens >= 3:
            words[:] = 0
        return words


class RefusesWhatItAllows(Stencilm):
    """Says no to the third token."""

    def accept(self, matcher: Any, token_id: int) -> bool:
        return matcher.num_accepted_tokens < 2 and super().accept(matcher, token_id)


class Canonical(Stencilm):
    """Allows only the tokens that the tokenizer itself would write."""

    def start(self, compiled: Any) -> Any:
        return GrammarMatcher(compiled, canonical=True)


class Dies(Stencilm):
    """Ends its process at the third token."""

    def accept(self, matcher: Any, token_id: int) -> bool:
        if matcher.num_accepted_tokens >= 2:
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        return super().accept(matcher, token_id)


class Hangs(Stencilm):
    """Never makes a mask."""

    def mask(self, matcher: Any) -> Any:
        while True:
            time.sleep(1)


class HangsAtObjects(Hangs):
    """Never makes a mask for an object, and takes no other schema."""

    def compile(self, schema: str) -> Any:
        if '"object"' not in schema:
            raise NotImplementedError("no other schema is supported")
        return super().compile(schema)


class Grows(Stencilm):
    """Takes half a gigabyte for a mask, and its time."""

    held: Any = None

    def mask(self, matcher: Any) -> Any:
        self.held = b"x" * (500 << 20)
        while True:
            time.sleep(1)


class Shortens(Stencilm):
    """Has masks of two words, for whatever vocabulary."""

    def mask(self, matcher: Any) -> Any:
        return super().mask(matcher)[:2]


class Raises(Stencilm):
    """Has no masks after two tokens."""

    def mask(self, matcher: Any) -> Any:
        if matcher.num_accepted_tokens >= 2:
            raise OverflowError("too many tokens")
        return super().mask(matcher)


class Refuses(Stencilm):
    """Takes no schema."""

    def compile(self, schema: str) -> Any:
        raise NotImplementedError("no schema is supported")
