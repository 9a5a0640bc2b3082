"""What is written as JSON text and read again: compiled grammars and tokenizers."""

from __future__ import annotations

import copy
import json
import pickle
from hashlib import sha256
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import (
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    GrammarSyntaxError,
    LimitExceeded,
    Limits,
    StencilError,
    TokenizerError,
    TokenizerInfo,
    Unsatisfiable,
)

INFO = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
OTHER = TokenizerInfo(["a", "b", None], stop_token_ids=[2])
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "n": {"type": "integer"}},
    "required": ["city"],
}
GRAMMARS = {
    "schema": Grammar.from_json_schema(SCHEMA),
    "any order": Grammar.from_json_schema(SCHEMA, property_order="any"),
    "regex": Grammar.from_regex(r"(\d{2,4}-)*[a-zé]+"),
    "recursive": Grammar.from_ebnf('root ::= root "+" root | [0-9]+ | "(" root ")"'),
    "joined": Grammar.from_regex("a{3}") + Grammar.builtin_json_grammar(),
}


def compiled(grammar: Grammar) -> CompiledGrammar:
    return GrammarCompiler(INFO).compile_grammar(grammar)


@pytest.mark.parametrize("name", GRAMMARS)
def test_what_is_read_again_has_the_same_masks(name: str) -> None:
    first = compiled(GRAMMARS[name])
    text = first.serialize_json()
    second = CompiledGrammar.deserialize_json(text, INFO)
    assert second.serialize_json() == text
    assert second.tokenizer_info == INFO
    assert second.grammar == Grammar.deserialize_json(first.grammar.serialize_json())
    assert second.grammar.report == first.grammar.report
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(5):
        one, other = GrammarMatcher(first), GrammarMatcher(second)
        masks = stencilm.allocate_token_bitmask(2, INFO.vocab_size)
        for _ in range(20):
            one.fill_next_token_bitmask(masks, 0)
            other.fill_next_token_bitmask(masks, 1)
            words = np.asarray(masks)
            np.testing.assert_array_equal(words[0], words[1])
            compared += 1
            bits = np.unpackbits(words[0].view(np.uint8), bitorder="little")
            token = int(rng.choice(np.flatnonzero(bits)))
            assert one.accept_token(token) and other.accept_token(token)
            if one.is_terminated():
                assert other.is_terminated()
                break
    assert compared > 20


def test_another_tokenizer_is_refused_by_name() -> None:
    text = compiled(GRAMMARS["regex"]).serialize_json()
    with pytest.raises(TokenizerError, match=r"compiled for the tokenizer .*compile") as error:
        CompiledGrammar.deserialize_json(text, OTHER)
    assert INFO.fingerprint in str(error.value) and OTHER.fingerprint in str(error.value)
    assert error.value.place == "#/tokenizer"


def test_a_grammar_that_no_longer_fits_its_tokenizer_is_refused() -> None:
    saved = json.loads(compiled(GRAMMARS["regex"]).serialize_json())
    asks = Grammar.from_ebnf("root ::= <|no_such_token|>")
    saved["grammar"] = json.loads(asks.serialize_json())
    with pytest.raises(Unsatisfiable, match="no_such_token"):
        CompiledGrammar.deserialize_json(json.dumps(saved), INFO)


def changed(**fields: Any) -> str:
    saved = json.loads(compiled(GRAMMARS["regex"]).serialize_json())
    saved |= fields
    return json.dumps({key: value for key, value in saved.items() if value is not ...})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no whole serialized compiled grammar"),
        ("no JSON", "no whole serialized compiled grammar"),
        ("[]", "no whole serialized compiled grammar"),
        ("7", "no whole serialized compiled grammar"),
        ("[" * 100_000, "no whole serialized compiled grammar"),
        ("{}", 'the format is "", not "stencilm-compiled-grammar"'),
        (GRAMMARS["regex"].serialize_json(), 'the format is "stencilm-grammar"'),
        (changed(format=...), 'the format is ""'),
        (changed(format="x" * 1_000_000), 'the format is "x{40}",'),
        (changed(format=5), "invalid type: integer"),
        (changed(version=...), "the version is missing, and this library reads 1"),
        (changed(version=2), "the version is 2, and this library reads 1"),
        (changed(version=-1), "no whole serialized compiled grammar: .*u32"),
        (changed(version="y" * 1_000_000), "no whole serialized compiled grammar"),
        (changed(tokenizer=...), "missing field `tokenizer`"),
        (changed(tokenizer=[]), "expected a string"),
        (changed(grammar=...), "missing field `grammar`"),
        (changed(grammar=None), "#/grammar"),
        (changed(grammar={}), "#/grammar/format: the format is"),
        (changed(grammar="z" * 1_000_000), "#/grammar"),
        (changed(more=1), "unknown field `more`"),
    ],
)
def test_what_is_no_compiled_grammar_is_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(GrammarSyntaxError, match=message) as error:
        CompiledGrammar.deserialize_json(text, INFO)
    assert len(str(error.value)) < 700


def test_a_text_cut_short_anywhere_is_an_error() -> None:
    text = compiled(GRAMMARS["schema"]).serialize_json()
    for end in range(0, len(text), 7):
        with pytest.raises(StencilError):
            CompiledGrammar.deserialize_json(text[:end], INFO)


def test_a_text_that_is_too_large_is_not_even_read() -> None:
    with pytest.raises(LimitExceeded, match=r"bytes and at most \d+ are accepted"):
        CompiledGrammar.deserialize_json(" " * (65 << 20), INFO)


def test_wrong_arguments_are_named() -> None:
    text = changed()
    with pytest.raises(TypeError, match="text is a bytes"):
        CompiledGrammar.deserialize_json(text.encode(), INFO)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tokenizer_info is a NoneType"):
        CompiledGrammar.deserialize_json(text, None)  # type: ignore[arg-type]
    with pytest.raises(GrammarSyntaxError, match="lone surrogate"):
        CompiledGrammar.deserialize_json("\ud800", INFO)


def sealed(**fields: Any) -> str:
    """A tokenizer's text with other fields and a checksum that fits."""
    saved = json.loads(OTHER.serialize_json())
    del saved["checksum"]
    saved |= fields
    kept = {key: value for key, value in saved.items() if value is not ...}
    body = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))[:-1]
    return f'{body},"checksum":"{sha256(body.encode()).hexdigest()}"}}'


def test_a_sealed_text_is_read() -> None:
    assert TokenizerInfo.deserialize_json(sealed()) == OTHER


@pytest.mark.parametrize(
    "fields",
    [
        {"lengths": ...},
        {"lengths": 5},
        {"lengths": ["1", 1, -1]},
        {"lengths": [1]},
        {"lengths": [10**30, 1, -1]},
        {"lengths": [1.5, 1, -1]},
        {"bytes": "no base64!"},
        {"bytes": 5},
        {"bytes": ""},
        {"special": 5},
        {"special": [[1, 2, 3]]},
        {"special": [["a", "b"]]},
        {"special": [[10**30, "b"]]},
        {"special": [[2, 7]]},
        {"stop_token_ids": None},
        {"stop_token_ids": [-1]},
        {"stop_token_ids": [10**9]},
        {"vocab_size": "a"},
        {"vocab_size": -5},
        {"vocab_size": 10**15},
        {"vocab_size": 1},
        {"vocab_type": "unknown"},
        {"vocab_type": []},
        {"notes": None},
        {"notes": {}},
        {"notes": {"more": 1, "lossy": []}},
    ],
)
def test_a_tokenizer_with_the_wrong_fields_is_an_error(fields: dict[str, Any]) -> None:
    with pytest.raises(TokenizerError):
        TokenizerInfo.deserialize_json(sealed(**fields))


@pytest.mark.parametrize("text", ["", "[", "[" * 100_000, "7", '{"format": 1}', 7, None, b"{}"])
def test_what_is_no_tokenizer_is_an_error(text: Any) -> None:
    with pytest.raises(TokenizerError):
        TokenizerInfo.deserialize_json(text)


def saved_expressions(exprs: list[Any]) -> str:
    """A saved grammar whose root is the last of these expressions."""
    return json.dumps(
        {
            "format": "stencilm-grammar",
            "version": json.loads(Grammar.from_regex("a").serialize_json())["version"],
            "exprs": exprs,
            "nodes": [{"lexeme": len(exprs) - 1}],
            "rules": [],
            "members": [],
            "items": [],
            "root": 0,
            "report": {"enforced": [], "annotations": [], "relaxed": []},
        }
    )


BYTES = [{"bytes": [[97, 97]]}, {"bytes": [[98, 98]]}]


@pytest.mark.parametrize(
    "exprs",
    [
        # Each concatenation begins with the one before: copying the head is quadratic.
        [*BYTES, {"concat": [0, 1]}, *({"concat": [at, at % 2]} for at in range(2, 60_000))],
        # Each choice holds the one before and one part more.
        [
            *BYTES,
            *({"concat": [0, at - 1]} for at in range(2, 30_000)),
            {"or": [2, 3]},
            *({"or": [at, at - 29_990]} for at in range(30_000, 59_000)),
        ],
        # Each intersection likewise.
        [
            *BYTES,
            *({"concat": [0, at - 1]} for at in range(2, 10_000)),
            *({"not": at} for at in range(2, 10_000)),
            {"and": [10_000, 10_001]},
            *({"and": [at, at - 9_990]} for at in range(19_998, 29_000)),
        ],
    ],
    ids=["concat", "or", "and"],
)
def test_crafted_chains_are_refused_before_they_cost_much(exprs: list[Any]) -> None:
    text = saved_expressions(exprs)
    begun = process_time()
    with pytest.raises(LimitExceeded, match="#/exprs/"):
        Grammar.deserialize_json(text)
    # Copied for each entry, the chains take minutes.
    assert process_time() - begun < 10


def test_chains_as_they_are_written_are_read() -> None:
    right = [*BYTES, {"concat": [0, 1]}, *({"concat": [at % 2, at]} for at in range(2, 60_000))]
    grammar = Grammar.deserialize_json(saved_expressions(right))
    assert Grammar.deserialize_json(grammar.serialize_json()) == Grammar.deserialize_json(
        grammar.serialize_json()
    )
    literal = Grammar.from_regex("ab" * 30_000)
    assert Grammar.deserialize_json(literal.serialize_json()).serialize_json() == (
        literal.serialize_json()
    )


def test_reading_ends_at_the_deadline() -> None:
    text = Grammar.from_regex("ab" * 200_000).serialize_json()
    with pytest.raises(LimitExceeded, match="milliseconds"):
        Grammar.deserialize_json(text, limits=Limits(milliseconds=0))
    with pytest.raises(LimitExceeded, match="ms"):
        CompiledGrammar.deserialize_json(
            compiled(Grammar.from_regex("ab" * 20_000)).serialize_json(),
            INFO,
            limits=Limits(milliseconds=0),
        )


def test_everything_can_be_copied_and_pickled_or_says_what_to_do() -> None:
    compiler = GrammarCompiler(INFO, cache_limit_bytes=1000, limits=stencilm.Limits(stack_bytes=9))
    first = compiler.compile_regex("a{3}")
    index = stencilm.TokenIndex.from_regex("a{3}|b", INFO)
    for shared in (INFO, first, compiler, index):
        assert copy.copy(shared) is copy.deepcopy(shared) is shared
    again = pickle.loads(pickle.dumps(compiler))
    assert again.limits == compiler.limits and again.tokenizer_info == INFO
    assert pickle.loads(pickle.dumps(index)) == index
    assert pickle.loads(pickle.dumps(stencilm.BatchGrammarMatcher(3))).max_threads == 3
    assert pickle.loads(pickle.dumps(INFO)) == INFO
    matcher = GrammarMatcher(GrammarCompiler(INFO).compile_regex("a{3}"))
    matcher.accept_string("a")
    assert copy.deepcopy({"key": [matcher]})["key"][0].num_accepted_tokens == 1
    for refused, way_out in ((first, "serialize_json"), (matcher, "accept the tokens again")):
        with pytest.raises(TypeError, match=way_out):
            pickle.dumps(refused)
