"""One engine with one schema: walks through its masks, texts that it reads, and the findings.

One idea: a violation is permanent, so it is enough to judge the end of a walk; bisection then finds
the first wrong token.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stencilm.audit.engines import Engine
from stencilm.audit.findings import ERRORS
from stencilm.audit.json_prefix import NotJson
from stencilm.audit.judge import Judge, Unjudged
from stencilm.audit.texts import WRITINGS, OrderSearch, split, without_formats, write
from stencilm.tokenizers import TokenizerInfo

WALKS = (8, 12, 16, 24, 48, 96)
"""The lengths after which each walk of a schema heads for the end.

Short texts are most readable.
"""
MOST_TO_THE_END = 100
"""The most tokens of a walk from that point on."""
MOST_READ = 3_000
"""The most tokens of a text to read."""
MOST_ERRORS = 4
"""The most errors per schema; after that, the search stops."""
MOST_ORDERS = 300
"""The most orders of keys in which a refused value is tried."""
_CLASSES = ("quote", "close", "comma", "colon", "open", "number", "letter", "space", "sign", "rest")
_STOP = len(_CLASSES)
_ON = np.array([4, 3, 2, 2, 2, 2, 2, 0.1, 1, 0.2, 1])
_TO_THE_END = np.array([20, 50, 0.1, 1, 0.1, 1, 1, 0.02, 1, 0.1, 1000])


class Vocabulary:
    """The tokens of a tokenizer; those that spell text are grouped by how they begin."""

    def __init__(self, info: TokenizerInfo) -> None:
        self.info = info
        self.texts = info.decoded_vocab
        self.stops = list(info.stop_token_ids)
        silent = {*info.special_token_ids, *self.stops}
        self.ids: dict[bytes, int] = {}
        classes = np.full(info.vocab_size, -1)
        for token_id, text in enumerate(self.texts):
            if text and token_id not in silent:
                self.ids.setdefault(text, token_id)
                classes[token_id] = _class_of(text)
        classes[self.stops] = _STOP
        self.class_masks = np.stack([_mask_of(classes == number) for number in range(_STOP + 1)])
        """A mask of the tokens of each class, shape [classes, words]."""
        self.longest = max(map(len, self.ids), default=0)

    def tokenize(self, text: bytes) -> list[int]:
        """The tokenizer's own tokens."""
        return self.info.tokenize_bytes(text)

    def decode(self, tokens: list[int]) -> bytes:
        """The text of tokens without stop tokens."""
        return b"".join(self.texts[token] for token in tokens)


def _class_of(text: bytes) -> int:
    bare = text.lstrip(b" \t\n\r")
    first = bare[:1].decode("latin-1")
    if not bare:
        return _CLASSES.index("space")
    if first >= "\x7f":
        return _CLASSES.index("rest")
    signs = {'"': "quote", "}": "close", "]": "close", ",": "comma", ":": "colon", "{": "open"}
    signs |= {"[": "open", "-": "number"}
    other = "number" if first.isdigit() else "letter" if first.isalpha() else "sign"
    return _CLASSES.index(signs.get(first, other))


def _mask_of(members: NDArray[np.bool_]) -> NDArray[np.uint32]:
    padded = np.zeros(-(-len(members) // 32) * 32, dtype=np.bool_)
    padded[: len(members)] = members
    return np.packbits(padded, bitorder="little").view(np.uint32)


class Found(NamedTuple):
    """A finding without the engine's name and the script."""

    kind: str
    prefix: list[int]
    token: int
    why: str
    witness: str | None = None


class _Bad(NamedTuple):
    """The first of several prefixes with which no valid text begins."""

    at: int
    kind: str
    why: str


class _EngineFailed(Exception):
    """The engine raised an exception."""

    def __init__(self, tokens: list[int], error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.tokens = tokens


class Probe:
    """An engine that has accepted a schema.

    Args:
        engine: The engine.
        compiled: Its compiled form of the schema.
        schema: The schema as JSON.
        vocabulary: The tokens.
        judge: The validator.
        tell: Called with each new finding.
        until: The processor time, by `time.process_time`, at which the search stops.
    """

    def __init__(
        self,
        engine: Engine,
        compiled: Any,
        *,
        schema: str,
        vocabulary: Vocabulary,
        judge: Judge,
        tell: Callable[[Found], None],
        until: float,
    ) -> None:
        self.engine, self.compiled, self.schema = engine, compiled, schema
        self.vocabulary, self.judge, self.tell, self.until = vocabulary, judge, tell, until
        self.counts: Counter[str] = Counter()
        self._known: set[tuple[str, str]] = set()
        self._errors = 0

    def is_done(self) -> bool:
        """Whether the time is over, or enough errors were found."""
        if time.process_time() > self.until:
            self.counts["cut short"] = 1
        return bool(self.counts["cut short"]) or self._errors >= MOST_ERRORS

    # Walks

    def walk(self, length: int, random: Random, probes: float) -> str | None:
        """Walk through the masks, heading for the end after `length` tokens; returns the text.

        `probes` is the mean number of other allowed tokens of each mask that are judged as well.
        """
        self.counts["walks"] += 1
        tokens: list[int] = []
        others: list[tuple[int, int]] = []
        ends: list[int] = []
        has_ended = is_stuck = False
        matcher = self._start()
        while len(tokens) < length + MOST_TO_THE_END and time.process_time() < self.until:
            words = self._mask(matcher, tokens)
            if self._may_end(words):
                ends.append(len(tokens))
            weights = _ON if len(tokens) < length else _TO_THE_END
            token = self._chosen(words, weights, random)
            if token is None:
                is_stuck = not words.any()
                break
            if random.random() < probes:
                other = self._chosen(words, _ON, random)
                if other is not None and other not in self.vocabulary.stops:
                    others.append((len(tokens), other))
            if token in self.vocabulary.stops:
                has_ended = True
                break
            if not self._accept(matcher, token, tokens):
                self._tell(Found("broken mask", tokens, token, "the token is refused"))
                break
            tokens.append(token)
        bad = self._first_bad(tokens)
        if bad is not None:
            self._tell_bad(bad, tokens)
        sound = len(tokens) if bad is None else bad.at - 1
        for length, token in others:
            if length < sound and not self.is_done():
                self._judge_token(tokens[:length], token)
        for length in ends[-3:]:
            if length <= sound:
                self._judge_end(tokens[:length])
        if bad is None and is_stuck and tokens:
            self._tell_stuck(tokens)
        if not has_ended or bad is not None:
            return None
        try:
            return self.vocabulary.decode(tokens).decode()
        except UnicodeDecodeError:
            return None  # earlier prefixes could not be judged

    def _chosen(
        self, words: NDArray[np.uint32], weights: NDArray[np.float64], random: Random
    ) -> int | None:
        """Draw a class of tokens by weight, then the shorter of two random tokens of it."""
        masks = self.vocabulary.class_masks
        allowed = masks & words[: masks.shape[1]]
        there = allowed.any(axis=1)
        if not there.any():
            return None
        chosen = allowed[random.choices(range(len(weights)), (weights * there).tolist())[0]]
        nonzero = np.flatnonzero(chosen)
        two = []
        for _ in range(2):
            word = int(nonzero[random.randrange(len(nonzero))])
            bits = int(chosen[word])
            two.append(32 * word + random.choice([bit for bit in range(32) if bits >> bit & 1]))
        return min(two, key=lambda token: len(self.vocabulary.texts[token]))

    def _judge_token(self, prefix: list[int], token: int) -> None:
        bad = self._judged(self.vocabulary.decode([*prefix, token]))
        if bad is not None and bad[0] != "unjudged":
            self._tell(Found(bad[0], prefix, token, bad[1]))

    def _judge_end(self, tokens: list[int]) -> None:
        text = self.vocabulary.decode(tokens)
        verdict = self.judge.verdict(text)
        self.counts["unjudged" if verdict.status == "unjudged" else "judged"] += 1
        if verdict.status == "invalid":
            kind = "not JSON" if verdict.why.startswith("not JSON") else "violation"
            stop = self.vocabulary.stops[0]
            self._tell(Found(kind, tokens, stop, verdict.why, _shown(text)))

    def _tell_stuck(self, tokens: list[int]) -> None:
        text = self.vocabulary.decode(tokens)
        if self.judge.verdict(text).status == "valid":
            why = "the text is valid and may not end"
            self._tell(Found("refused", tokens, self.vocabulary.stops[0], why, _shown(text)))
        else:
            why = "after the token, the mask allows nothing"
            self._tell(Found("dead end", tokens[:-1], tokens[-1], why, _shown(text)))

    # Texts

    def read(self, text: str, is_valid: bool, why: str, random: Random) -> None:
        """Read a text; `is_valid` and `why` are the validator's verdict."""
        tokens = self.vocabulary.tokenize(text.encode())
        if len(tokens) > MOST_READ:
            return
        self.counts["texts"] += 1
        self.counts["valid" if is_valid else "invalid"] += 1
        taken = self._follow(tokens)
        if not is_valid:
            self._judge_taken(tokens, taken, why, text)
        elif taken is not None:
            self._classify(text, tokens, taken)
        else:
            drawn = split(text.encode(), self.vocabulary.ids, self.vocabulary.longest, random)
            taken = None if drawn is None else self._follow(drawn)
            if drawn is not None and taken is not None:
                said = "the same text is taken in the tokenizer's own tokens"
                self._tell_refused("tokens", drawn, taken, said, text)

    def _judge_taken(self, tokens: list[int], taken: int | None, why: str, text: str) -> None:
        """Judge how much of an invalid text was accepted: up to a token, or all of it."""
        bad = self._first_bad(tokens if taken is None else tokens[:taken])
        if bad is not None:
            self._tell_bad(bad, tokens, text)
        elif taken is None:
            kind = "not JSON" if why.startswith("not JSON") else "violation"
            self._tell(Found(kind, tokens, self.vocabulary.stops[0], why, text))

    def _classify(self, text: str, tokens: list[int], taken: int) -> None:
        """Find out whether a valid text is refused for its spelling, a format, or in every form."""
        value = json.loads(text)
        try:
            orders = self.judge.key_orders(value)
        except Unjudged:
            orders = {}
        written = dict.fromkeys(write(value, writing, orders) for writing in WRITINGS)
        furthest = (len(self.vocabulary.decode(tokens[:taken])), tokens, taken, text)
        for other in written:
            ids = self.vocabulary.tokenize(other.encode())
            at = self._follow(ids)
            if at is None:
                self._tell_refused("writing", tokens, taken, f"taken is {other[:300]}", text)
                return
            length = len(self.vocabulary.decode(ids[:at]))
            if length > furthest[0]:
                furthest = (length, ids, at, other)
        _, refused, at, other = furthest
        if self._is_taken_without_formats([text, *written]):
            self._tell_refused("format", refused, at, "taken without `format`", other)
            return
        taken_order = self._order_taken(OrderSearch(value, orders))
        if taken_order is not None:
            self._tell_refused("writing", tokens, taken, f"taken is {taken_order[:300]}", text)
            return
        self._tell_refused("refused", refused, at, "the validator takes the text", other)

    def _order_taken(self, search: OrderSearch) -> str | None:
        """The value written in an order of its keys that is accepted; None if none is found."""
        for _ in range(MOST_ORDERS):
            text = search.text()
            tokens = self.vocabulary.tokenize(text.encode())
            at = self._follow(tokens)
            if at is None:
                return text
            refused_at = len(self.vocabulary.decode(tokens[:at]))
            if time.process_time() > self.until or not search.refused(refused_at):
                return None
        return None

    def _is_taken_without_formats(self, texts: list[str]) -> bool:
        if '"format"' not in self.schema:
            return False
        kept = self.compiled
        try:
            bare = json.dumps(without_formats(json.loads(self.schema)))
            self.compiled = self.engine.compile(bare)
            return any(
                self._follow(self.vocabulary.tokenize(text.encode())) is None for text in texts
            )
        except _EngineFailed:
            raise
        except Exception:
            return False
        finally:
            self.compiled = kept

    def _tell_refused(self, kind: str, tokens: list[int], taken: int, why: str, text: str) -> None:
        token = tokens[taken] if taken < len(tokens) else self.vocabulary.stops[0]
        self._tell(Found(kind, tokens[:taken], token, why, text))

    def _follow(self, tokens: list[int]) -> int | None:
        """The index of the first refused token, or the length for the end.

        None if all are accepted.
        """
        matcher = self._start()
        for at, token in enumerate(tokens):
            if not _has(self._mask(matcher, tokens, at), token):
                return at
            if not self._accept(matcher, token, tokens, at):
                self._tell(Found("broken mask", tokens[:at], token, "the token is refused"))
                return at
        return None if self._may_end(self._mask(matcher, tokens)) else len(tokens)

    # Judging

    def _judged(self, prefix: bytes) -> tuple[str, str] | None:
        """The kind of error at a prefix and its reason; None if no error is proved."""
        try:
            why = self.judge.violation(prefix)
        except NotJson as error:
            self.counts["judged"] += 1
            return "not JSON", str(error)
        except Unjudged as error:
            self.counts["unjudged"] += 1
            return "unjudged", str(error)
        self.counts["judged"] += 1
        return None if why is None else ("violation", why)

    def _first_bad(self, tokens: list[int]) -> _Bad | None:
        """The first number of tokens after which no text is valid; errors are permanent.

        A prefix that cannot be judged also stays so, and hides later errors.
        """
        found = self._judged(self.vocabulary.decode(tokens))
        if found is None or not tokens:
            return None
        low, high = 0, len(tokens)
        while high - low > 1:
            middle = (low + high) // 2
            here = self._judged(self.vocabulary.decode(tokens[:middle]))
            if here is None:
                low = middle
            else:
                high, found = middle, here
        return None if found[0] == "unjudged" else _Bad(high, *found)

    def _tell_bad(self, bad: _Bad, tokens: list[int], text: str | None = None) -> None:
        witness = _shown(self.vocabulary.decode(tokens[: bad.at])) if text is None else text
        self._tell(Found(bad.kind, tokens[: bad.at - 1], tokens[bad.at - 1], bad.why, witness))

    def _tell(self, found: Found) -> None:
        """Report each fault once: findings of the same kind for the same keyword are one fault."""
        about = found.why.partition(": ")[2] if found.kind == "violation" else ""
        if (found.kind, about) in self._known:
            return
        self._known.add((found.kind, about))
        self._errors += found.kind in ERRORS
        self.tell(found)

    # The engine

    def _start(self) -> Any:
        try:
            return self.engine.start(self.compiled)
        except Exception as error:
            raise _EngineFailed([], error) from error

    def _mask(self, matcher: Any, tokens: list[int], at: int | None = None) -> NDArray[np.uint32]:
        """The words of the mask after the first `at` tokens; None means all tokens."""
        self.counts["masks"] += 1
        try:
            words = np.ascontiguousarray(self.engine.mask(matcher)).reshape(-1).view(np.uint32)
        except Exception as error:
            raise _EngineFailed(tokens[:at], error) from error
        size = len(self.vocabulary.texts)
        if 32 * len(words) < size:
            needed = -(-size // 32)
            short = ValueError(f"the mask has {len(words)} words, and {size} tokens need {needed}")
            raise _EngineFailed(tokens[:at], short)
        return words

    def _may_end(self, words: NDArray[np.uint32]) -> bool:
        return any(_has(words, stop) for stop in self.vocabulary.stops)

    def _accept(self, matcher: Any, token: int, tokens: list[int], at: int | None = None) -> bool:
        try:
            return self.engine.accept(matcher, token)
        except Exception as error:
            raise _EngineFailed([*tokens[:at], token], error) from error

    def guarded(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """Call a walk or a reading; reports an exception of the engine, and then returns None."""
        try:
            return act(*arguments)
        except _EngineFailed as failed:
            token = failed.tokens[-1] if failed.tokens else self.vocabulary.stops[0]
            self._tell(Found("failure", failed.tokens[:-1], token, str(failed)[:500]))
            return None


def _has(words: NDArray[np.uint32], token: int) -> bool:
    return bool(int(words[token >> 5]) >> (token & 31) & 1)


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
