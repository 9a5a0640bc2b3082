"""What the common writers of JSON write for a number is accepted wherever the number is valid.

Each writer's rules are written down here; those of Python, and of JavaScript where node is
installed, are held against the real ones.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo


def shortest_digits(value: float) -> tuple[str, int]:
    """The shortest digits that read back as a double above 0, and the power of ten of the first."""
    for places in range(17):
        mantissa, exponent = f"{value:.{places}e}".split("e")
        if float(f"{mantissa}e{exponent}") == value:
            break
    return mantissa.replace(".", "").rstrip("0"), int(exponent)


def plain(digits: str, order: int) -> str:
    """Digits as a decimal without an exponent and without a needless point."""
    if order < 0:
        return "0." + "0" * (-order - 1) + digits
    if len(digits) <= order + 1:
        return digits + "0" * (order + 1 - len(digits))
    return f"{digits[: order + 1]}.{digits[order + 1 :]}"


def scientific(digits: str) -> str:
    """Digits with a point after the first."""
    return digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"


def python(value: float) -> str:
    """`json.dumps`: an exponent below 1e-4 and from 1e16 on, of two digits at least."""
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign, (digits, order) = "-" if value < 0 else "", shortest_digits(abs(value))
    if -4 <= order < 16:
        text = plain(digits, order)
        return sign + (text if "." in text else text + ".0")
    return f"{sign}{scientific(digits)}e{'-' if order < 0 else '+'}{abs(order):02}"


def javascript(value: float) -> str:
    """`JSON.stringify` (ECMA-262, Number::toString): an exponent below 1e-6 and from 1e21 on."""
    if value == 0:
        return "0"
    sign, (digits, order) = "-" if value < 0 else "", shortest_digits(abs(value))
    if -6 <= order < 21:
        return sign + plain(digits, order)
    return f"{sign}{scientific(digits)}e{'-' if order < 0 else '+'}{abs(order)}"


def go(value: float) -> str:
    """`encoding/json`: format 'f' from 1e-6 to 1e21, else 'e' with the zero of e-09 taken out."""
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, (digits, order) = "-" if value < 0 else "", shortest_digits(abs(value))
    if 1e-6 <= abs(value) < 1e21:
        return sign + plain(digits, order)
    text = f"{sign}{scientific(digits)}e{'-' if order < 0 else '+'}{abs(order):02}"
    return text[:-2] + text[-1] if text[-4:-1] == "e-0" else text


def rust(value: float) -> str:
    """`serde_json` (ryu's pretty format): exponents below 1e-5 and from 1e16 on, without a plus."""
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign, (digits, order) = "-" if value < 0 else "", shortest_digits(abs(value))
    if -5 <= order < 16:
        text = plain(digits, order)
        return sign + (text if "." in text else text + ".0")
    return f"{sign}{scientific(digits)}e{order}"


WRITERS = (python, javascript, go, rust)


def doubles(count: int, seed: int) -> Iterator[float]:
    """Doubles of random bits, of ordinary sizes, and at the ends of what writers write plainly."""
    yield from (
        0.0,
        -0.0,
        5e-324,
        2.2250738585072014e-308,
        1.7976931348623157e308,
        1e-6,
        1e-7,
        9.999e-8,
    )
    for order in (
        -8,
        -7,
        -6,
        -5,
        -4,
        -3,
        0,
        9,
        12,
        13,
        15,
        16,
        17,
        20,
        21,
        22,
        100,
        -100,
        300,
        -300,
    ):
        for near in (
            10.0**order,
            math.nextafter(10.0**order, 0),
            math.nextafter(10.0**order, math.inf),
            1.5 * 10.0**order,
        ):
            yield near
            yield -near
    random_bits = random.Random(seed)
    for _ in range(count):
        (value,) = struct.unpack("<d", random_bits.randbytes(8))
        if math.isfinite(value):
            yield value
        yield random_bits.uniform(-1, 1) * 10.0 ** random_bits.randint(-12, 24)
        yield round(random_bits.uniform(-100, 100), random_bits.randint(0, 9))


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    tokens = [bytes([byte]) for byte in b"0123456789+-.eE"] + [b""]
    return GrammarCompiler(TokenizerInfo(tokens, stop_token_ids=[len(tokens) - 1]))


def accepts(compiler: GrammarCompiler, schema: object) -> GrammarMatcher:
    return GrammarMatcher(
        compiler.compile_json_schema(json.dumps(schema)), terminate_without_stop_token=True
    )


def is_complete(matcher: GrammarMatcher, text: str) -> bool:
    fork = matcher.fork()
    return fork.accept_string(text) and fork.is_completed()


BOUNDS = (
    {"minimum": 0},
    {"exclusiveMinimum": 0},
    {"minimum": 0, "maximum": 1},
    {"minimum": -100, "maximum": 100},
    {"exclusiveMinimum": 1e-7},
    {"minimum": 2.5e-9, "exclusiveMaximum": 1.5e-5},
    {"minimum": -3e-7, "maximum": 2e17},
    {"maximum": -1e16},
    {"exclusiveMinimum": -1e21, "exclusiveMaximum": 1e21},
    {"maximum": 1e300, "not": {"const": 0.5}},
)


def is_valid(value: float, schema: dict[str, Any]) -> bool:
    return bool(
        value >= schema.get("minimum", -math.inf)
        and value > schema.get("exclusiveMinimum", -math.inf)
        and value <= schema.get("maximum", math.inf)
        and value < schema.get("exclusiveMaximum", math.inf)
        and value != schema.get("not", {}).get("const")
    )


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_each_writer_is_accepted_where_the_number_is_valid(
    compiler: GrammarCompiler, bounds: dict[str, float]
) -> None:
    matcher = accepts(compiler, {"type": "number", **bounds})
    both = set()
    for value in doubles(400, seed=1):
        valid = is_valid(value, bounds)
        both.add(valid)
        for writer in WRITERS:
            text = writer(value)
            assert is_complete(matcher, text) == valid, (
                f"{text} as {writer.__name__} writes it, within {bounds}"
            )
    assert both == {False, True}


def test_multiples_have_an_exponent_where_writers_put_one(compiler: GrammarCompiler) -> None:
    matcher = accepts(compiler, {"type": "number", "multipleOf": 1e-9, "minimum": 0})
    for text in ("1e-9", "1e-09", "3.5e-8", "1.25e-06", "1e+16", "1e21", "0.000000001"):
        assert is_complete(matcher, text), text
    for text in ("1e-10", "1.5e-9", "-1e-9", "3.0000000001e-8"):
        assert not is_complete(matcher, text), text


def test_constants_are_accepted_as_each_writer_writes_them(compiler: GrammarCompiler) -> None:
    for value in doubles(60, seed=2):
        matcher = accepts(compiler, {"const": value})
        for writer in WRITERS:
            assert is_complete(matcher, writer(value)), (
                f"{writer(value)} as {writer.__name__} writes {value}"
            )
            if value:
                assert not is_complete(matcher, writer(-value)), writer(-value)


def test_what_no_writer_writes_is_refused(compiler: GrammarCompiler) -> None:
    matcher = accepts(compiler, {"type": "number", "minimum": 0, "maximum": 1})
    for text in (
        "1e0",
        "1e-1",
        "1e-4",
        "10e-7",
        "0.1e-5",
        "0e-7",
        "1E-7",
        "1e-007",
        "1e-010",
        "1.e-7",
        "1e",
        "1e-",
        "1e-325",
    ):
        assert not is_complete(matcher, text), text
    for text in ("1.50e-7", "1.0e-07", "0.0000010", "1e-5"):
        assert is_complete(matcher, text), text


def test_integers_are_plain(compiler: GrammarCompiler) -> None:
    matcher = accepts(compiler, {"type": "integer", "minimum": 0})
    assert is_complete(matcher, "10000000000000000000000")
    assert not is_complete(matcher, "1e+22")


def test_the_rules_of_python_are_those_of_json_dumps() -> None:
    for value in doubles(2000, seed=3):
        assert python(value) == json.dumps(value)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_rules_of_javascript_are_those_of_stringify() -> None:
    values = list(doubles(2000, seed=4))
    bits = [struct.unpack("<q", struct.pack("<d", value))[0] for value in values]
    program = (
        "const view = new DataView(new ArrayBuffer(8));"
        "const bits = require('fs').readFileSync(0, 'utf8').split(' ');"
        "const text = b => (view.setBigInt64(0, BigInt(b)), JSON.stringify(view.getFloat64(0)));"
        "console.log(bits.map(text).join(' '));"
    )
    done = subprocess.run(
        ["node", "-e", program],
        input=" ".join(map(str, bits)),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.split() == [javascript(value) for value in values]


def test_no_beginning_is_a_dead_end(compiler: GrammarCompiler) -> None:
    for bounds in BOUNDS:
        matcher = accepts(compiler, {"type": "number", **bounds})
        for value in doubles(5, seed=5):
            for writer in WRITERS:
                fork = matcher.fork()
                for letter in writer(value):
                    # Where nothing can follow, the text ends by itself.
                    if not fork.accept_string(letter) or fork.is_terminated():
                        break
                    assert is_complete(fork, fork.shortest_completion().decode()), (
                        f"{writer(value)} within {bounds}"
                    )


def test_grammars_with_exponents_print_and_read_back() -> None:
    grammar = Grammar.from_json_schema({"type": "number", "minimum": 3e-9, "maximum": 2e-7})
    assert "scientific" in str(grammar)
    assert str(Grammar.from_ebnf(str(grammar))) == str(grammar)
