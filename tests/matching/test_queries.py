"""What a matcher answers without changing, and what it says about arguments that do not fit."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from itertools import product
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm import (
    GrammarCompiler,
    GrammarMatcher,
    Literal,
    MatcherError,
    Pattern,
    TokenizerInfo,
    Verdict,
)
from tokenizer_folders import FOLDERS, tokenizer_info

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}

COMPACT: Any = {"any_whitespace": False, "separators": (",", ":")}


@pytest.fixture
def matcher() -> GrammarMatcher:
    return person_matcher(tokenizer_info("tiny"))


def person_matcher(info: TokenizerInfo) -> GrammarMatcher:
    compiled = GrammarCompiler(info).compile_json_schema(PERSON, **COMPACT)
    return GrammarMatcher(compiled)


def test_longest_valid_prefix(matcher: GrammarMatcher) -> None:
    whole = '{"name":"Ada","age":36}'
    assert matcher.longest_valid_prefix(whole) == Verdict("complete", len(whole))
    assert matcher.longest_valid_prefix('{"name":"Zoë') == Verdict("viable", 13)
    assert matcher.longest_valid_prefix(b'{"name":"Zo\xc3') == Verdict("viable", 12)
    assert matcher.longest_valid_prefix('{"name":"A","agf') == Verdict("dead", 15)
    assert matcher.longest_valid_prefix("") == Verdict("viable", 0)
    assert matcher.longest_valid_prefix(whole + "x" * 10_000) == Verdict("dead", len(whole))
    assert matcher.num_accepted_tokens == 0


def test_jump_forward(matcher: GrammarMatcher) -> None:
    assert matcher.find_jump_forward_string() == '{"name":"'
    assert matcher.accept_string('{"name":"Ada"')
    assert matcher.find_jump_forward_string() == ',"age":'
    assert matcher.accept_string(',"age":0}')
    assert matcher.find_jump_forward_string() == ""


def test_a_jump_is_cut_between_characters() -> None:
    compiler = GrammarCompiler(tokenizer_info("tiny"))
    matcher = GrammarMatcher(compiler.compile_regex("(xé|xè)y"))
    assert matcher._forced_bytes() == b"x\xc3"
    assert matcher.find_jump_forward_string() == "x"
    endless = GrammarMatcher(compiler.compile_regex("a{1000000000}"))
    assert endless.find_jump_forward_string() == "a" * 65536


@pytest.mark.parametrize("name", FOLDERS)
def test_validate_tokens(name: str) -> None:
    info = tokenizer_info(name)
    matcher = person_matcher(info)
    ids = [int(token) for token in info.tokenize_bytes(b'{"name":"Ada","age":36}')]
    stop = info.stop_token_ids[0]
    assert matcher.validate_tokens([*ids, stop]) == len(ids) + 1
    assert matcher.validate_tokens([*ids, stop, stop]) == len(ids) + 1
    assert matcher.validate_tokens(np.array(ids)) == len(ids)
    assert matcher.validate_tokens([ids[0], -1]) == matcher.validate_tokens([ids[0], 10**30]) == 1
    assert matcher.validate_tokens([stop]) == 0
    assert matcher.num_accepted_tokens == 0


def test_explain(matcher: GrammarMatcher) -> None:
    info = tokenizer_info("tiny")

    def token(text: bytes) -> int:
        return info.decoded_vocab.index(text)

    assert matcher.explain(token(b"{")) == f'token {token(b"{")} "{{" may come next'
    said = matcher.explain(token(b"a"))
    assert said.endswith('"a" cannot come next: here comes "{", and not "a"')
    assert "the text is not complete" in matcher.explain(info.stop_token_ids[0])
    size = info.vocab_size
    assert f"outside of the vocabulary of {size} tokens" in matcher.explain(size)
    assert f"outside of the vocabulary of {size} tokens" in matcher.explain(-(10**30))
    assert matcher.accept_string('{"name":"","age":1')
    assert "one of [.0-9}], and not" in matcher.explain(token(b"a"))
    assert matcher.accept_string("}")
    assert "only the end of the text" in matcher.explain(token(b"a"))
    assert matcher.accept_token(info.stop_token_ids[0])
    assert "terminated" in matcher.explain(token(b"a"))


def test_arguments_that_do_not_fit(matcher: GrammarMatcher) -> None:
    bad: Any
    for bad in ("x", None, 1.5, [1]):
        for call in (matcher.accept_token, matcher.is_allowed, matcher.explain):
            with pytest.raises(TypeError, match="a token id is an int, not"):
                call(bad)
    for bad in (-1, 10**30, -(10**30)):
        assert not matcher.accept_token(bad)
        assert not matcher.is_allowed(bad)
        with pytest.raises(MatcherError, match="give a number from 0 up"):
            matcher.rollback(bad)
    for bad in (5, None, ["a"]):
        with pytest.raises(TypeError, match="a text is str or bytes, not"):
            matcher.accept_string(bad)
    with pytest.raises(MatcherError, match="half of a surrogate pair") as error:
        matcher.accept_string("ab\ud800")
    assert error.value.place == "character 2"
    bad = 5
    with pytest.raises(TypeError, match="token ids come as a sequence of ints"):
        matcher.validate_tokens(bad)
    assert matcher.num_accepted_tokens == 0


def test_a_matcher_is_no_data_but_can_be_copied_and_watched(matcher: GrammarMatcher) -> None:
    assert repr(matcher) == "<GrammarMatcher: 0 tokens accepted, not complete>"
    with pytest.raises(TypeError, match="cannot be pickled: send the grammar"):
        pickle.dumps(matcher)
    assert matcher.accept_string("{")
    for other in (copy.copy(matcher), copy.deepcopy(matcher)):
        assert other.accept_string('"name"') and other.num_accepted_tokens == 2
    assert matcher.num_accepted_tokens == 1
    watch = weakref.ref(matcher)
    assert watch() is matcher
    del matcher
    gc.collect()


def test_what_a_compiler_makes_is_no_data_either() -> None:
    info = tokenizer_info("tiny")
    compiler = GrammarCompiler(info, max_threads=2)
    assert compiler.max_threads == 2 and "tokens>" in repr(compiler)
    with pytest.raises(TypeError, match="a CompiledGrammar cannot be pickled: send the schema"):
        pickle.dumps(compiler.compile_regex("a"))
    bad: Any
    for bad, kind in ((0, ValueError), ("many", TypeError), (True, TypeError)):
        with pytest.raises(kind, match="max_threads is"):
            GrammarCompiler(info, max_threads=bad)
    bad = 5
    with pytest.raises(TypeError, match="name_or_path is 5, but must be a str or a Path"):
        stencilm.load(bad)


def test_many_threads_share_a_compiled_grammar() -> None:
    info = tokenizer_info("tiny")
    texts = ['{"name":"Ada', '{"name":"Ada","age":3', "{", "", '{"name":"\\u00']
    expected = []
    for text in texts:
        alone = person_matcher(info)
        assert alone.accept_string(text)
        mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
        alone.fill_next_token_bitmask(mask)
        expected.append(mask)
    compiled = GrammarCompiler(info).compile_json_schema(PERSON, **COMPACT)
    wrong: list[str] = []

    def work() -> None:
        mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
        for _ in range(20):
            for text, right in zip(texts, expected, strict=True):
                matcher = GrammarMatcher(compiled)
                if not matcher.accept_string(text):
                    wrong.append(text)
                matcher.fill_next_token_bitmask(mask)
                if not np.array_equal(mask, right):
                    wrong.append(text)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_one_matcher_in_two_threads_is_refused_or_served(matcher: GrammarMatcher) -> None:
    text = '{"name":"' + "a" * 400_000
    surprises: list[BaseException] = []

    def work() -> None:
        for _ in range(3):
            try:
                matcher.longest_valid_prefix(text)
                matcher.is_completed()
            except MatcherError as error:
                if "another thread is using this matcher" not in str(error):
                    surprises.append(error)
            except BaseException as error:
                surprises.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not surprises
    assert matcher.num_accepted_tokens == 0


@pytest.mark.parametrize(
    ("schema", "text", "completion"),
    [
        (PERSON, "", '{"name":"","age":0}'),
        (PERSON, '{"name":"A\\u00', '00","age":0}'),
        (PERSON, '{"name":"","age":1}', ""),
        ({"type": "array", "minItems": 3, "items": {"type": "boolean"}}, "", "[true,true,true]"),
        ({"type": "string", "minLength": 5}, '"éé', 'aaa"'),
        ({"enum": ["north", "south", "up"]}, "", '"up"'),
        ({"type": "object"}, '{"a":1,"b":2,"', '":0}'),
        ({"type": "object"}, '{"":1,"a":1,"', 'b":0}'),
        (
            {
                "$ref": "#/$defs/t",
                "$defs": {
                    "t": {
                        "anyOf": [
                            {"type": "array", "items": {"$ref": "#/$defs/t"}, "minItems": 2},
                            {"const": "leaf"},
                        ]
                    }
                },
            },
            "[[",
            '"leaf","leaf"],"leaf"]',
        ),
        (
            {"allOf": [{"pattern": "^(aaa)+$"}, {"pattern": "^(aaaaa)+$"}], "type": "string"},
            "",
            '"' + "a" * 15 + '"',
        ),
        (  # elements that count for nothing look shorter, however many there are
            {"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 100}},
            "",
            "[100]",
        ),
        (
            {
                "oneOf": [
                    {"items": {"items": {"contains": {"minimum": 100}, "type": "array"}}},
                    {"contains": {"items": {"type": "integer"}, "type": "array", "maxItems": 2}},
                ],
                "items": {"type": "array", "items": {"type": "array"}, "minItems": 1},
                "type": "array",
                "minItems": 1,
            },
            "",
            '[[[""]]]',
        ),
        (  # objects that must differ in what takes the fewest bytes
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "a": True,
                        "ab": {
                            "type": "object",
                            "properties": {"ab": {"type": "integer"}, "c d": {"type": "null"}},
                        },
                        'é"': {"type": "integer"},
                        "c d": {"type": ["null", "integer"]},
                    },
                    "required": ["ab", "c d"],
                    "patternProperties": {"^x": True},
                    "additionalProperties": False,
                },
                "minItems": 4,
                "uniqueItems": True,
            },
            "",
            "?" * 73,
        ),
    ],
)
def test_shortest_completion(schema: Any, text: str, completion: str) -> None:
    compiled = GrammarCompiler(tokenizer_info("tiny")).compile_json_schema(schema, **COMPACT)
    matcher = GrammarMatcher(compiled)
    assert matcher.accept_string(text)
    found = matcher.shortest_completion()
    assert len(found) == len(completion.encode()), found
    if found:
        with pytest.raises(MatcherError, match="bytes at least"):
            matcher.shortest_completion(max_bytes=len(found) - 1)
    assert matcher.longest_valid_prefix(found).status == "complete"


@pytest.mark.parametrize(
    ("items", "texts"),
    [
        (
            {"type": "array", "items": {"enum": ["a", "b", 1, 22]}, "minItems": 2, "maxItems": 3},
            [[*map(str, row)] for n in (2, 3) for row in product(['"a"', '"b"', 1, 22], repeat=n)],
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"enum": [1, 22, 333]}, "b": {"type": "boolean"}},
                "additionalProperties": False,
            },
            [
                [f'"a":{a}' for a in first] + [f'"b":{b}' for b in second]
                for first in ([], [1], [22], [333])
                for second in ([], ["true"], ["false"])
            ],
        ),
    ],
    ids=["arrays", "objects"],
)
def test_completions_of_elements_that_must_differ(items: Any, texts: list[list[str]]) -> None:
    lengths = sorted(len(",".join(parts)) + 2 for parts in texts)
    for least in range(1, 8):
        schema = {"type": "array", "items": items, "uniqueItems": True, "minItems": least}
        compiled = GrammarCompiler(tokenizer_info("tiny")).compile_json_schema(schema, **COMPACT)
        found = GrammarMatcher(compiled).shortest_completion()
        assert len(found) == 2 + sum(lengths[:least]) + least - 1, found


def test_a_completion_that_is_too_long_says_how_long() -> None:
    compiler = GrammarCompiler(tokenizer_info("tiny"))
    long = compiler.compile_json_schema({"type": "string", "minLength": 1_000_000})
    matcher = GrammarMatcher(long)
    with pytest.raises(MatcherError, match="takes 1000002 bytes at least, and max_bytes is 65536"):
        matcher.shortest_completion()
    deep = GrammarMatcher(compiler.compile_builtin_json_grammar())
    assert deep.accept_string("[" * 20_000)
    assert deep.shortest_completion() == b"]" * 20_000


def test_candidates(matcher: GrammarMatcher) -> None:
    assert matcher.candidates() == [Literal("{")]
    assert matcher.accept_string("{")
    assert matcher.get_captures() == []  # this grammar names no part
    assert matcher.candidates() == [Literal('"name"')]
    assert matcher.accept_string('"name":"')
    (string,) = matcher.candidates()
    assert isinstance(string, Pattern) and string.regex.endswith('"')
    assert matcher.accept_string('A"')
    assert matcher.candidates() == [Literal(",")]
    compiler = GrammarCompiler(tokenizer_info("tiny"))
    words = GrammarMatcher(compiler.compile_regex("red|green|blue|éa"))
    assert [word.text for word in words.candidates() if isinstance(word, Literal)] == [
        "blue",
        "green",
        "red",
        "éa",
    ]
    digits = GrammarMatcher(compiler.compile_regex("[0-9]{2}"))
    assert len(digits.candidates(100)) == 100 and digits.candidates() == [Pattern("[0-9]{2}")]
    assert digits.candidates(0) == []
    assert digits.accept_string("7")
    assert digits.candidates() == [Literal(str(digit)) for digit in range(10)]
    half = GrammarMatcher(compiler.compile_regex("é[a-z]*"))
    assert half.accept_string(b"\xc3") and half.candidates() == [Pattern("(?s:.)+")]
    bad: Any
    for bad, kind in ((-1, ValueError), ("x", TypeError), (10**30, ValueError)):
        with pytest.raises(kind, match="limit is"):
            digits.candidates(bad)


def test_candidates_leave_out_what_is_there_already() -> None:
    compiler = GrammarCompiler(tokenizer_info("tiny"))
    names = '{"enum": ["a", "ab", "abc"]}'
    array = compiler.compile_json_schema(
        f'{{"uniqueItems": true, "items": {names}, "type": "array"}}'
    )
    matcher = GrammarMatcher(array)
    assert matcher.accept_string('["a", "ab", "')
    assert matcher.candidates() == [Literal('abc"')]
    assert matcher.accept_string('abc"')
    assert matcher.candidates() == [Literal("]")]
    members = compiler.compile_json_schema(f'{{"type": "object", "propertyNames": {names}}}')
    matcher = GrammarMatcher(members)
    assert matcher.accept_string('{"a": 1, "')
    assert matcher.candidates() == [Literal('ab"'), Literal('abc"')]


def test_candidates_can_be_written_and_patterns_parse() -> None:
    compiler = GrammarCompiler(tokenizer_info("tiny"))
    for start in ("", "{", '{"a": ', '{"a": "x', "[1", "tr", '{"a": -', '"\\u00'):
        matcher = GrammarMatcher(compiler.compile_builtin_json_grammar())
        assert matcher.accept_string(start)
        candidates = matcher.candidates()
        assert candidates
        for candidate in candidates:
            if isinstance(candidate, Literal):
                assert matcher.longest_valid_prefix(candidate.text).status != "dead"
            else:
                pattern = GrammarMatcher(compiler.compile_regex(candidate.regex))
                text = pattern.shortest_completion()
                assert matcher.longest_valid_prefix(text).status != "dead", (start, candidate)
