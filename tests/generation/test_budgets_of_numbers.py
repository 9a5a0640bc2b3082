"""Token budgets of arrays of different numbers, of which there are few."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

BYTES = TokenizerInfo([*(bytes([byte]) for byte in range(256)), "</s>"], stop_token_ids=[256])
# Digits that come together, and with the sign before them or after.
PAIRS = TokenizerInfo(
    [
        *(bytes([byte]) for byte in range(256)),
        *(f"{number}".encode() for number in range(10, 100)),
        *(b",1", b",2", b"0,", b"3,", b"1]", b".5", b".0", b"1.", b"-1", b",-"),
        "</s>",
    ],
    stop_token_ids=[356],
)
# Digits alone come together.
PLAIN_PAIRS = TokenizerInfo(
    [
        *(bytes([byte]) for byte in range(256)),
        *(f"{number}".encode() for number in range(10, 100)),
        "</s>",
    ],
    stop_token_ids=[346],
)


def tokens_of(number: int) -> int:
    """How many tokens of ``PLAIN_PAIRS`` spell a number."""
    return (number < 0) + (len(str(abs(number))) + 1) // 2


def bits_of(mask: Any, size: int) -> list[int]:
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[:size]).tolist()


def bytes_to_end(text: str, values: list[str], count: int) -> int | None:
    """The slow twin: the fewest bytes that complete an array of so many different numbers.

    None where none do.
    """
    if not text:
        rest = bytes_to_end("[", values, count)
        return None if rest is None else rest + 1
    if text.endswith("]"):
        return 0
    *ended, begun = text[1:].split(",")
    left = sorted((value for value in values if float(value) not in map(float, ended)), key=len)

    def others(left: list[str], more: int) -> int | None:
        return sum(len(value) + 1 for value in left[:more]) if len(left) >= more else None

    found = []
    if not ended and not begun and count == 0:
        found.append(1)
    for value in left:
        rest = None
        if value.startswith(begun):
            rest = len(value) - len(begun)
        elif begun and begun.startswith(value) and set(begun[len(value) :]) <= {".", "0"}:
            rest = int(begun.endswith("."))
        elif (
            begun.startswith("-")
            and value == "0"
            and set(begun[2:]) <= {".", "0"}
            and begun[1:2] in ("", "0")
        ):
            rest = int(begun.endswith(("-", ".")))
        if rest is not None:
            more = others(
                [other for other in left if other != value], max(0, count - len(ended) - 1)
            )
            if more is not None:
                found.append(rest + more + 1)
    return min(found, default=None)


SETS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "0 to 30": (
        {"type": "integer", "minimum": 0, "maximum": 30},
        [str(number) for number in range(31)],
    ),
    "-12 to 12": (
        {"type": "integer", "minimum": -12, "maximum": 12},
        [str(number) for number in range(-12, 13)],
    ),
    "95 to 120": (
        {"type": "integer", "minimum": 95, "maximum": 120},
        [str(number) for number in range(95, 121)],
    ),
    "halves": (
        {"type": "number", "minimum": 0, "maximum": 8, "multipleOf": 0.5},
        [f"{number / 2:g}" for number in range(17)],
    ),
    "listed": (
        {"enum": [1, 5, 1000, 7, 250000, 3, 12.25, -4]},
        ["1", "5", "1000", "7", "250000", "3", "12.25", "-4"],
    ),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("share", [0.3, 0.8, 1.0])
def test_masks_leave_what_closes_in_time(name: str, share: float) -> None:
    schema, values = SETS[name]
    count = max(2, int(share * len(values)))
    source = {"type": "array", "uniqueItems": True, "minItems": count, "items": schema}
    compiled = GrammarCompiler(BYTES).compile(Grammar.from_json_schema(source, compact=True))
    shortest = bytes_to_end("", values, count)
    assert shortest is not None
    mask = np.zeros(-(-BYTES.vocab_size // 32), dtype=np.int32)
    random = np.random.default_rng(7)
    left_out = checked = 0
    for budget in (shortest, shortest + 1, shortest + 4, shortest + 15, 3 * shortest):
        matcher, text = GrammarMatcher(compiled, token_budget=budget), ""
        while not matcher.is_terminated():
            matcher.fill_next_token_bitmask(mask)
            tokens = bits_of(mask, BYTES.vocab_size)
            assert tokens, (budget, text)
            left = budget - len(text)
            for byte in "0123456789.,]-[":
                rest = (
                    bytes_to_end(text + byte, values, count)
                    if matcher.fork(token_budget=None).accept_string(byte)
                    else None
                )
                closes = rest is not None and rest <= left - 1
                assert closes or ord(byte) not in tokens, (budget, text, byte, rest)
                checked += closes
                left_out += closes and ord(byte) not in tokens
            token = int(random.choice([token for token in tokens if token < 256] or tokens))
            assert matcher.accept_token(token)
            text += chr(token) if token < 256 else ""
        found = json.loads(text)
        assert len(set(found)) == len(found) >= count
        assert len(text) <= budget
    # What a mask refuses though it would close is what no way was found for: none where numbers
    # are counted.
    assert left_out <= (checked / 50 if name == "listed" else 0), (left_out, checked)


@pytest.mark.parametrize("schema", [{"minimum": 0, "maximum": 250}, {"maximum": 120}, {}])
def test_masks_leave_each_number_that_fits(schema: dict[str, int]) -> None:
    """Of 200 elements, a number that is one token may come where the rest takes few enough."""
    count, low, high = 200, schema.get("minimum", -999), schema.get("maximum", 999)
    items = {"type": "integer", **schema}
    source = {"type": "array", "uniqueItems": True, "minItems": count, "items": items}
    compiled = GrammarCompiler(PLAIN_PAIRS).compile(Grammar.from_json_schema(source, compact=True))
    costs = {number: tokens_of(number) for number in range(low, high + 1)}
    single = {number: ord(str(number)) if number < 10 else 246 + number for number in range(100)}

    def needed(left: Counter[int], missing: int) -> int:
        return missing + sum(sorted(left.elements())[:missing])

    shortest = needed(Counter(costs.values()), count) + 1
    assert GrammarMatcher(compiled).tokens_to_end() == shortest
    mask = np.zeros(-(-PLAIN_PAIRS.vocab_size // 32), dtype=np.int32)
    random = np.random.default_rng(7)
    for spare in (0, 1, 40):
        matcher = GrammarMatcher(compiled, token_budget=shortest + spare)
        left, used, spent = Counter(costs.values()), set[int](), 1
        assert matcher.accept_string("[")
        for missing in reversed(range(count)):
            matcher.fill_next_token_bitmask(mask)
            tokens = set(bits_of(mask, PLAIN_PAIRS.vocab_size))
            rest = needed(left - Counter([1]), missing) + 1
            fits = [number for number in single if number not in used]
            if spent + 1 + rest <= shortest + spare:
                assert {single[number] for number in fits} <= tokens, used
            else:
                fits = []
            # Where none of one token is left, or fits, the cheapest does.
            cheapest = min((number for number in costs if number not in used), key=tokens_of)
            number = int(random.choice(fits)) if fits else cheapest
            used.add(number)
            left -= Counter([costs[number]])
            for piece in (str(number), "," if missing else "]"):
                assert matcher.accept_string(piece), (used, piece)
            spent += costs[number] + 1
            assert (matcher.tokens_to_end() or 0) + spent <= shortest + spare


@pytest.mark.parametrize("count", [50, 100])
def test_many_numbers_fit_in_their_budget(count: int) -> None:
    schema = {"type": "integer", "minimum": 0, "maximum": 2 * count}
    source = {"type": "array", "uniqueItems": True, "minItems": count, "items": schema}
    compiled = GrammarCompiler(PAIRS).compile(Grammar.from_json_schema(source))
    shortest = GrammarMatcher(compiled).tokens_to_end()
    assert shortest is not None
    mask = np.zeros(-(-PAIRS.vocab_size // 32), dtype=np.int32)
    random = np.random.default_rng(7)
    for budget in (shortest, shortest + 20, 3 * shortest):
        matcher, spent = GrammarMatcher(compiled, token_budget=budget), 0
        text = b""
        while not matcher.is_terminated():
            matcher.fill_next_token_bitmask(mask)
            token = int(random.choice(bits_of(mask, PAIRS.vocab_size)))
            assert matcher.accept_token(token)
            if token != 356:
                spent += 1
                piece = PAIRS.decoded_vocab[token]
                text += piece if isinstance(piece, bytes) else piece.encode()
        found = json.loads(text)
        assert len(set(found)) == len(found) >= count
        assert spent <= budget
