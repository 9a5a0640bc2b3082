r"""Patterns of Python types: pydantic reads them as Rust or Python does, schemas as ECMA-262."""

from __future__ import annotations

import json
import random
import re
import warnings
from typing import Annotated, Any

import pydantic
import pytest
from pydantic import ConfigDict, Field, RootModel

from stencilm.errors import UnsupportedFeature
from stencilm.grammars.type_patterns import schema_pattern

from .random_texts import matcher, random_text

# What the dialects take for letters, digits or white space, each in its own way.
DOUBTFUL = [
    *"éªİßſΩ日²ⅷ٣_-.:&[]~^ aAkKsx1",
    *("\u0345", "\u200d", "\u212a", "\u0661", "\u1e9e", "\u20ac"),
    *("\ufeff", "\x1c", "\x85", "\xa0", "\u2028", "\n", "\r", "\t", "\x0b"),
    *("ab", "a1", "é1", "--", "a-b", "x y"),
]
# Of these the dialects think alike.
CLEAR = [text for text in DOUBTFUL if text.isascii() and "\x1c" not in text]

PATTERNS: list[str | re.Pattern[str]] = [
    r"^\W+$",
    r"^\D+$",
    r"^\S+$",
    r"^\s+$",
    r"^[^\w]+$",
    r"^[^\w.-]+$",
    r"^[^-\w.]$",
    r"^[^\d\s]$",
    r"^[^\s-]$",
    r"^[^\S\n]$",
    r"^[^\W\d_]+$",
    r"^[^\D1]$",
    r"^[\W_]$",
    r"^[-\W]$",
    r"^[a-c\W-]$",
    r"^[\D\S]$",
    r"^[\s\d]+$",
    r"^[a-c\s-]+$",
    r"^[\w.-]+$",
    r"^[\s\S]$",
    r"^[\]\w]$",
    r"^[]a]$",
    r"^[^]a]$",
    r"^\S+@\S+\.\S+$",
    r"\Wx",
    re.compile(r"^\W+$", re.ASCII),
    re.compile(r"^[^\s]+$", re.ASCII),
    re.compile(r"^[^\S]+$", re.ASCII),
    re.compile(r"^ab$", re.IGNORECASE),
    re.compile(r"^.$", re.DOTALL),
]


def type_of(pattern: str | re.Pattern[str], engine: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of classes that look like sets

        class Text(RootModel[Annotated[str, Field(pattern=pattern)]]):
            model_config = ConfigDict(regex_engine=engine)

    return Text


def check(tp: Any, pattern: str | re.Pattern[str]) -> None:
    """Every text that the grammar takes is read, and of clear texts it takes all that are."""
    start, adapter = matcher(tp), pydantic.TypeAdapter(tp)
    for seed in range(30):
        text = random_text(start.fork(), random.Random(seed))
        adapter.validate_json(text)
    for value in DOUBTFUL:
        text = json.dumps(value, ensure_ascii=False)
        fits = start.fork().longest_valid_prefix(text).status == "complete"
        try:
            adapter.validate_python(value)
            is_read = True
        except pydantic.ValidationError:
            is_read = False
        assert fits <= is_read, value
        if value in CLEAR and not value.endswith("\n"):
            assert fits == is_read, value


@pytest.mark.parametrize("engine", ["rust-regex", "python-re"])
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_every_text_of_a_pattern_is_read(pattern: str | re.Pattern[str], engine: str) -> None:
    check(type_of(pattern, engine), pattern)


@pytest.mark.parametrize("name", ["alpha", "digit", "alnum", "space", "punct", "word", "xdigit"])
def test_classes_of_posix_are_those_of_rust(name: str) -> None:
    for pattern in (f"^[[:{name}:]]+$", f"^[^[:{name}:]x]$", f"^[[:{name}:].-]$"):
        check(type_of(pattern, "rust-regex"), pattern)


@pytest.mark.parametrize(
    ("pattern", "engine", "words"),
    [
        (r"^[a-z&&[^aeiou]]$", "rust-regex", "`&&` joins classes"),
        (r"^[\w--\d]$", "rust-regex", "`--` joins classes"),
        (r"^[\w~~a]$", "rust-regex", "`~~` joins classes"),
        (r"^[[a]b]$", "rust-regex", r"`\[` begins a class within a class"),
        (r"\<a\>", "rust-regex", r"`\\<` is a side of a word"),
        (r"\b{start}a", "rust-regex", r"`\\b` is a side of a word"),
        (re.compile("a b", re.VERBOSE), "rust-regex", "re.VERBOSE leaves blanks out"),
    ],
)
def test_what_means_something_else_in_a_schema_is_refused(
    pattern: Any, engine: str, words: str
) -> None:
    with pytest.raises(UnsupportedFeature, match=f"means something else to pydantic.*{words}"):
        matcher(type_of(pattern, engine))


@pytest.mark.parametrize(
    "pattern", [r"^[0-9]{3}-\d+$", r"^[\w.%+-]+@[a-z-]+\.\w{2,}$", r"^(?i:a|\.|[b-])$", r"[\s\S]"]
)
def test_what_means_the_same_stays_as_it_is(pattern: str) -> None:
    assert schema_pattern(pattern, is_python=False) == pattern
    assert schema_pattern(re.compile(pattern), is_python=True) == pattern
