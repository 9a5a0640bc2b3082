"""What has gone wrong in public between engines and grammars, each as a case.

The calls are those that vLLM makes, in its order; no engine is needed. What needs a server is in
`test_served.py`.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stencilm import Limits, TokenizerInfo, allocate_token_bitmask
from stencilm.errors import GrammarSyntaxError, LimitExceeded, StencilError, Unsatisfiable
from stencilm.integrations.vllm.requests import Kind, grammar_of
from stencilm.integrations.vllm.sequences import (
    RequestSequence,
    fill_bitmasks,
    tokens_left,
)
from stencilm.integrations.vllm.settings import Options
from stencilm.matching.compiler import GrammarCompiler
from stencilm.matching.matcher import BatchGrammarMatcher

STOP, TOOL, END_OF_THINKING = 256, 257, 258
SPECIAL = ["<stop>", "<tool>", "</think>"]
VOCABULARY = 259
DEFAULT = Options()


@pytest.fixture(scope="module")
def info() -> TokenizerInfo:
    """One token for each byte, and three special ones."""
    vocabulary: list[str | bytes] = [bytes([byte]) for byte in range(256)]
    return TokenizerInfo(
        vocabulary + list(SPECIAL), stop_token_ids=[STOP], special_token_ids=[STOP, 257, 258]
    )


@pytest.fixture(scope="module")
def compiler(info: TokenizerInfo) -> GrammarCompiler:
    return GrammarCompiler(info)


Begin = Any


@pytest.fixture(scope="module")
def begin(compiler: GrammarCompiler) -> Begin:
    """A request of a kind at its beginning."""

    def make(
        kind: Kind, text: Any, options: Options = DEFAULT, stops: set[int] | None = None
    ) -> RequestSequence:
        written = text if isinstance(text, str) else json.dumps(text)
        return RequestSequence(compiler.compile_grammar(grammar_of(kind, written, options)), stops)

    return make


def allowed(sequence: RequestSequence) -> set[int]:
    """The tokens of a row that held something else before."""
    rows: Any = allocate_token_bitmask(3, VOCABULARY)
    for before in (0, -1, 0x5A5A5A5A):
        rows[:] = before
        sequence.fill_bitmask(rows, 1)
        assert (rows[0] == before).all() and (rows[2] == before).all(), "other rows are not ours"
        found = {
            token for token in range(VOCABULARY) if int(rows[1][token // 32]) >> (token % 32) & 1
        }
        if before == 0:
            first = found
        assert found == first, "the row is written as a whole"
    return first


def reads(sequence: RequestSequence, text: str, end: bool = True) -> bool:
    """Whether a whole text is accepted, one token after the other, with the masks beside it."""
    for token in [*text.encode(), *([STOP] if end else [])]:
        fits = token in allowed(sequence)
        assert fits == (sequence.validate_tokens([token]) == [token])
        if fits != sequence.accept_tokens("r", [token]):
            raise AssertionError(f"the mask and the matcher differ at {token} of {text!r}")
        if not fits:
            return False
    return sequence.is_terminated() if end else True


# Drafts.


def test_drafts_are_cut_where_the_grammar_refuses_them(begin: Begin) -> None:
    """Drafts out of the prompt do not know the grammar; the refused one ended the request."""
    sequence = begin(Kind.REGEX, "[a-z]{3}")
    assert sequence.validate_tokens(list(b"ab1")) == list(b"ab")
    assert allowed(sequence) == set(b"abcdefghijklmnopqrstuvwxyz"), "asking changes nothing"


def test_padding_of_drafts_is_no_token(begin: Begin) -> None:
    """Rejected drafts are padded with -1, which some backends took for a token of the grammar."""
    sequence = begin(Kind.REGEX, "abc")
    assert sequence.validate_tokens([*b"ab", -1, -1]) == list(b"ab")
    assert sequence.validate_tokens([-1]) == []
    assert sequence.accept_tokens("r", [ord("a"), -1, -1])
    assert allowed(sequence) == {ord("b")}


def test_masks_between_drafts_and_back(begin: Begin) -> None:
    """Rows for each draft, then back: a wrong count of what was accepted corrupts the rest."""
    sequence = begin(Kind.JSON_SCHEMA, {"enum": ["abc", "abd"]})
    accepted = 0
    rows = []
    for token in b'"abx':
        rows.append(allowed(sequence))
        if not sequence.accept_tokens("r", [token]):
            break
        accepted += 1
    assert accepted == 3 and rows[3] == {ord("c"), ord("d")}
    sequence.rollback(accepted)
    assert reads(sequence, '"abd"')


def test_drafts_over_the_end_are_taken_back(begin: Begin) -> None:
    """A rollback over the stop token left some backends terminated, and the text unconstrained."""
    sequence = begin(Kind.REGEX, "ab?")
    assert sequence.accept_tokens("r", [ord("a"), STOP])
    assert sequence.is_terminated()
    sequence.rollback(1)
    assert not sequence.is_terminated()
    assert allowed(sequence) == {ord("b"), STOP}
    sequence.rollback(1)
    assert reads(sequence, "ab")


def test_drafts_after_the_end_count_nothing(begin: Begin) -> None:
    """A block that goes on after the end is accepted; what follows the end is not looked at."""
    sequence = begin(Kind.REGEX, "a")
    assert sequence.validate_tokens([ord("a"), STOP, ord("x")]) == [ord("a"), STOP]
    assert sequence.accept_tokens("r", [ord("a"), STOP, ord("x"), 70000])
    assert sequence.is_terminated()
    assert sequence.accept_tokens("r", [ord("x")])
    assert sequence.validate_tokens([ord("x")]) == []


def test_drafts_that_cross_the_end_of_reasoning(begin: Begin) -> None:
    """The part of a block after the end of reasoning is the grammar's; it went unchecked."""
    sequence = begin(Kind.JSON_SCHEMA, {"enum": ["a"]})
    block = [*b"so", END_OF_THINKING, *b'"a']
    after = block[block.index(END_OF_THINKING) + 1 :]
    assert sequence.validate_tokens(after) == after
    assert sequence.validate_tokens([*b"```json"]) == []
    # Asked during reasoning whether a token could begin the answer; this changes nothing.
    assert sequence.validate_tokens([TOOL]) == []
    assert sequence.accept_tokens("r", after)
    assert reads(sequence, '"')


def test_a_draft_that_does_not_fit_leaves_the_place(begin: Begin) -> None:
    sequence = begin(Kind.REGEX, "[0-9]{4}")
    assert sequence.accept_tokens("r", list(b"12"))
    assert not sequence.accept_tokens("r", list(b"x"))
    assert reads(sequence, "34")


# The end.


def test_special_tokens_do_not_come_within_json(begin: Begin) -> None:
    """A special token was allowed within strings, as if it spelled its name."""
    sequence = begin(Kind.JSON_SCHEMA, {"type": "string"})
    assert sequence.accept_tokens("r", list(b'"a'))
    assert not {STOP, TOOL, END_OF_THINKING} & allowed(sequence)


def test_the_request_s_own_stop_tokens_end_it(begin: Begin) -> None:
    """Stop tokens of the request wait for the end of the text, as the vocabulary's own do."""
    sequence = begin(Kind.REGEX, "a+", stops={TOOL, STOP})
    assert TOOL not in allowed(sequence)
    assert sequence.accept_tokens("r", list(b"a"))
    assert allowed(sequence) == {ord("a"), TOOL, STOP}
    assert sequence.accept_tokens("r", [TOOL]) and sequence.is_terminated()


def test_a_text_that_no_token_could_end_is_refused() -> None:
    compiler = GrammarCompiler(TokenizerInfo([b"a", b"b", b"."]))
    compiled = compiler.compile_regex("ab?")
    none_at_all: tuple[set[int] | None, ...] = (None, set())
    for stops in none_at_all:
        with pytest.raises(ValueError, match="no token that ends a text: name one in stop_token"):
            RequestSequence(compiled, stops)
    sequence = RequestSequence(compiled, {2})
    assert sequence.accept_tokens("r", [0, 2]) and sequence.is_terminated()


def test_a_stop_token_out_of_the_vocabulary_is_refused(begin: Begin) -> None:
    with pytest.raises(ValueError, match=r"stop_token_ids has 70000, .* ids 0 to 258: leave"):
        begin(Kind.REGEX, "a", stops={70000})


def test_an_empty_pattern_ends_at_once(begin: Begin) -> None:
    """An empty pattern hung a server."""
    sequence = begin(Kind.REGEX, "")
    assert allowed(sequence) == {STOP}
    assert reads(sequence, "")


def test_reset_begins_again(begin: Begin) -> None:
    """A request that is preempted begins again; it went on from the old place."""
    sequence = begin(Kind.REGEX, "abc")
    assert sequence.accept_tokens("r", list(b"ab"))
    sequence.reset()
    assert reads(sequence, "abc")
    sequence.reset()
    assert not sequence.is_terminated() and reads(sequence, "abc")


# Rows.


def test_rows_that_are_used_again_are_written_whole(begin: Begin) -> None:
    """`allowed` checks it in every test; here for a text in which every token may come."""
    sequence = begin(Kind.STRUCTURAL_TAG, {"type": "any_tokens"})
    assert allowed(sequence) == set(range(VOCABULARY))


def test_a_batch_is_filled_as_its_requests_are(begin: Begin) -> None:
    patterns = ["[a-c]", "x", "(?s:.)*", "é|ß", "[0-9]+"] * 5
    sequences = [begin(Kind.REGEX, pattern) for pattern in patterns]
    rows: Any = allocate_token_bitmask(2 * len(sequences), VOCABULARY)
    one_by_one: Any = allocate_token_bitmask(2 * len(sequences), VOCABULARY)
    rows[:] = one_by_one[:] = 0x5A5A5A5A
    places = [2 * index + 1 for index in range(len(sequences))]
    fill_bitmasks(list(zip(sequences, places, strict=True)), rows, BatchGrammarMatcher())
    for sequence, place in zip(sequences, places, strict=True):
        sequence.fill_bitmask(one_by_one, place)
    assert (np.asarray(rows) == np.asarray(one_by_one)).all()


# Requests that killed an engine, or were dropped.


def test_a_bad_schema_after_a_good_one_fails_alone(begin: Begin) -> None:
    """A malformed request after a valid one ended the engine."""
    good = begin(Kind.JSON_SCHEMA, {"enum": ["a"]})
    for bad in ('{"type": "wat"}', "{", '{"$ref": "#/nowhere"}', "[]", '{"type": {"a": 1}}'):
        with pytest.raises(StencilError):
            begin(Kind.JSON_SCHEMA, bad)
    assert reads(good, '"a"')
    assert reads(begin(Kind.JSON_SCHEMA, {"enum": ["a"]}), '"a"')


BAD = [
    (Kind.REGEX, "([", "set"),
    (Kind.REGEX, r"(a)\1", "refer"),
    (Kind.EBNF, "root ::= nowhere", "nowhere"),
    (Kind.LARK, "start: nowhere", "nowhere"),
    (Kind.CHOICE, "[]", "at least one"),
    (Kind.CHOICE, "[1, 2]", "string"),
    (Kind.CHOICE, "{", "JSON"),
    (Kind.STRUCTURAL_TAG, '{"type": "nope"}', "nope"),
    (Kind.STRUCTURAL_TAG, "{", "key"),
    (Kind.JSON_SCHEMA, '{"type": "array", "items": {"type": "wat"}}', "wat"),
]


@pytest.mark.parametrize(("kind", "text", "message"), BAD)
def test_a_bad_request_says_what_is_wrong(
    begin: Begin, kind: Kind, text: str, message: str
) -> None:
    with pytest.raises(StencilError, match=message) as raised:
        begin(kind, text)
    assert raised.value.place


def test_large_bounds_of_integers(begin: Begin) -> None:
    """A maximum beyond 32 bits ended the engine."""
    schema = {"type": "integer", "minimum": 0, "maximum": 20_000_000_000}
    assert reads(begin(Kind.JSON_SCHEMA, schema), "20000000000")
    assert not reads(begin(Kind.JSON_SCHEMA, schema), "20000000001")


def test_draft_07_tuples(begin: Begin) -> None:
    """`items` as a list, as draft 7 has it, ended the engine."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "array",
        "items": [{"type": "integer"}, {"enum": ["a"]}],
        "additionalItems": False,
        "minItems": 2,
    }
    assert reads(begin(Kind.JSON_SCHEMA, schema), '[1,"a"]')
    assert not reads(begin(Kind.JSON_SCHEMA, schema), '["a",1]')


def test_recursive_schemas_and_grammars(begin: Begin) -> None:
    """Recursion overflowed the stack of the server."""
    schema = {
        "$defs": {"node": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        "$ref": "#/$defs/node",
    }
    deep = "[" * 300 + "]" * 300
    assert reads(begin(Kind.JSON_SCHEMA, schema), deep)
    assert reads(begin(Kind.EBNF, 'root ::= root "a" | "b"'), "b" + "a" * 300)
    assert reads(begin(Kind.EBNF, 'root ::= "(" root ")" | ""'), "(" * 300 + ")" * 300)


def test_deep_nesting_is_an_error(begin: Begin) -> None:
    """A schema of a hundred thousand levels is refused, whatever reads it."""
    for kind, text in (
        (Kind.JSON_SCHEMA, '{"items":' * 100_000 + "true" + "}" * 100_000),
        (Kind.STRUCTURAL_TAG, '{"type":"star","content":' * 100_000 + "1" + "}" * 100_000),
        (Kind.REGEX, "(" * 100_000 + "a" + ")" * 100_000),
    ):
        for options in (Options(), Options(property_order="any")):
            with pytest.raises(StencilError):
                begin(kind, text, options)


def test_patterns_that_explode_end_in_time(info: TokenizerInfo) -> None:
    """Nested quantifiers held a worker for minutes."""
    options = Options(milliseconds=500)
    compiler = GrammarCompiler(info, limits=options.limits)
    for pattern in ("(a+)+b", "(.*a.{20}){3}", "(a{1,1000}){1,1000}", "((a|b)*c){0,500}x{1000}"):
        try:
            compiled = compiler.compile_grammar(grammar_of(Kind.REGEX, pattern, options))
        except LimitExceeded:
            continue
        sequence = RequestSequence(compiled)
        for _ in range(50):
            sequence.fill_bitmask(allocate_token_bitmask(1, VOCABULARY), 0)
            sequence.accept_tokens("r", [ord("a")])


DROPPED = {
    "two branches of allOf": (
        {"allOf": [{"type": "string"}, {"enum": ["yes", "no"]}]},
        ['"yes"'],
        ['"maybe"', "42", "{}"],
    ),
    "keywords without a type": (
        {
            "type": "object",
            "properties": {"code": {"pattern": "^[a-z]+$", "maxLength": 3}},
            "required": ["code"],
            "additionalProperties": False,
        },
        ['{"code":"abc"}', '{"code":1}'],
        ['{"code":"abcdefghij"}', '{"code":"AB"}'],
    ),
    "a pattern and a length": (
        {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        ['"abcde"'],
        ['"abcdef"', '"A"'],
    ),
    "patternProperties beside properties": (
        {
            "type": "object",
            "properties": {"score": {"type": "integer", "multipleOf": 5}},
            "required": ["score"],
            "additionalProperties": False,
            "patternProperties": {"^score$": {"maximum": 10, "minimum": 0}},
        },
        ['{"score":10}'],
        ['{"score":15}', '{"score":7}'],
    ),
    "uniqueItems": (
        {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 2},
        ['["b","a"]'],
        ['["a","a"]'],
    ),
    "multipleOf": (
        {"type": "integer", "multipleOf": 7, "minimum": 10, "maximum": 40},
        ["14", "35"],
        ["15", "42"],
    ),
    "not": ({"enum": ["x", "y"], "not": {"const": "x"}}, ['"y"'], ['"x"']),
    "oneOf that overlaps": (
        {
            "oneOf": [
                {"type": "integer", "minimum": 5, "maximum": 20},
                {"type": "integer", "minimum": 10, "maximum": 30},
            ]
        },
        ["7", "25"],
        ["15", "31"],
    ),
    "if and then": (
        {
            "type": "object",
            "properties": {"k": {"enum": ["a", "b"]}, "v": {"enum": [1]}},
            "required": ["k"],
            "additionalProperties": False,
            "if": {"properties": {"k": {"const": "a"}}},
            "then": {"required": ["v"]},
        },
        ['{"k":"a","v":1}', '{"k":"b"}'],
        ['{"k":"a"}'],
    ),
}


@pytest.mark.parametrize("name", DROPPED)
def test_what_was_dropped_in_silence_is_enforced(begin: Begin, name: str) -> None:
    schema, inside, outside = DROPPED[name]
    for text in inside:
        assert reads(begin(Kind.JSON_SCHEMA, schema), text), text
    for text in outside:
        assert not reads(begin(Kind.JSON_SCHEMA, schema), text), text


def test_a_clash_is_said_and_not_served(begin: Begin) -> None:
    with pytest.raises(Unsatisfiable, match="12"):
        begin(Kind.JSON_SCHEMA, {"type": "integer", "minimum": 12, "maximum": 7})


def test_whitespace_cannot_run_away(begin: Begin) -> None:
    """Greedy models loop in whitespace that a grammar allows."""
    sequence = begin(Kind.JSON_OBJECT, "")
    assert sequence.accept_tokens("r", list(b"{" + b" " * 64))
    assert ord(" ") not in allowed(sequence) and ord("\n") not in allowed(sequence)
    compact = begin(Kind.JSON_OBJECT, "", Options(max_whitespace=0))
    assert compact.accept_tokens("r", list(b"{"))
    assert allowed(compact) == set(b'"}')


def test_whitespace_of_a_whole_text_has_a_budget(compiler: GrammarCompiler) -> None:
    compiled = compiler.compile_grammar(grammar_of(Kind.JSON_OBJECT, "", DEFAULT))
    sequence = RequestSequence(compiled, whitespace_budget=2)
    assert sequence.accept_tokens("r", list(b'{ "a b" '))
    assert ord(" ") not in allowed(sequence) and ord(":") in allowed(sequence)


def test_a_token_that_the_vocabulary_lacks_is_said_where_it_is_compiled(begin: Begin) -> None:
    with pytest.raises(StencilError, match="nowhere"):
        begin(Kind.STRUCTURAL_TAG, {"type": "token", "token": "<|nowhere|>"})
    with pytest.raises(StencilError, match="nowhere"):
        begin(Kind.LARK, "start: <|nowhere|>")


def test_choices_are_texts_and_no_grammar(begin: Begin) -> None:
    """Quotes, backslashes and line breaks in a choice broke the grammar that was made of it."""
    texts = ['say "hi"', "a\\b", "two\nlines", "\x00\x7f", "é", "", "::= root"]
    for text in texts:
        assert reads(begin(Kind.CHOICE, texts), text)
    assert not reads(begin(Kind.CHOICE, texts), "other")


def test_a_choice_that_comes_twice_is_one(begin: Begin) -> None:
    """Clients that collect choices send some twice, which vLLM's own backends take."""
    texts = ["yes", "no", "yes"]
    assert reads(begin(Kind.CHOICE, texts), "yes")
    assert not reads(begin(Kind.CHOICE, texts), "yesyes")


def test_half_a_character_in_a_choice_has_its_place(begin: Begin) -> None:
    with pytest.raises(GrammarSyntaxError, match="a choice holds the lone surrogate") as raised:
        begin(Kind.CHOICE, ["a", "b\ud800"])
    assert raised.value.place == "#/1"


# A matcher that fails while it serves.


def failing(info: TokenizerInfo) -> RequestSequence:
    """A request whose matcher cannot hold its history."""
    limits = Limits(stack_bytes=4_000)
    compiler = GrammarCompiler(info, limits=limits)
    grammar = grammar_of(Kind.EBNF, 'root ::= "(" root ")" | ""', Options())
    return RequestSequence(compiler.compile_grammar(grammar))


def test_a_matcher_that_fails_ends_its_request_and_nothing_else(info: TokenizerInfo) -> None:
    """An exception while masks were filled ended the engine, and all requests with it."""
    sequence = failing(info)
    steps = 0
    while sequence.accept_tokens("r", [ord("(")]):
        assert steps < 100_000
        steps += 1
    assert steps > 0
    assert allowed(sequence) == {STOP}, "nothing but an end"
    assert not sequence.accept_tokens("r", [STOP]), "which is an error of this request"
    assert sequence.validate_tokens([ord(")")]) == []
    rows: Any = allocate_token_bitmask(2, VOCABULARY)
    other = RequestSequence(
        GrammarCompiler(info).compile_grammar(grammar_of(Kind.REGEX, "ab", Options()))
    )
    fill_bitmasks([(sequence, 0), (other, 1)], rows, BatchGrammarMatcher())
    assert int(rows[0][STOP // 32]) == 1 << (STOP % 32) and not rows[0][:8].any()
    assert int(rows[1][ord("a") // 32]) == 1 << (ord("a") % 32)
    sequence.rollback(1)
    assert ord(")") in allowed(sequence), "before what failed it is as it was"


def test_a_stop_token_in_the_sign_bit(compiler: GrammarCompiler) -> None:
    """A failed request allows only stop tokens, also where one is the sign of its word."""
    grammar = grammar_of(Kind.REGEX, "ab", Options())
    sequence = RequestSequence(compiler.compile_grammar(grammar), {31, STOP})
    sequence._fail(StencilError("it failed"))
    assert allowed(sequence) == {31, STOP}


def test_a_rollback_too_far_ends_the_request(begin: Begin) -> None:
    sequence = begin(Kind.REGEX, "abc")
    assert sequence.accept_tokens("r", [ord("a")])
    sequence.rollback(5)
    assert not sequence.accept_tokens("r", [ord("b")])


def test_syntax_errors_have_places(begin: Begin) -> None:
    with pytest.raises(GrammarSyntaxError) as raised:
        begin(Kind.JSON_SCHEMA, {"properties": {"a": {"type": "wat"}}})
    assert raised.value.place is not None and "/properties/a" in raised.value.place


@pytest.mark.parametrize("batched", [True, False])
def test_texts_are_whole_within_what_a_request_may_have(begin: Begin, batched: bool) -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    rng = np.random.default_rng(0)
    workers = BatchGrammarMatcher()
    for most in (2, 3, 7, 40):
        for thought in (0, 5):
            request = SimpleNamespace(
                max_tokens=most + thought, num_prompt_tokens=10, num_output_tokens=thought
            )
            sequence = begin(Kind.JSON_SCHEMA, schema)
            # What stands before the text is written by the time of the first mask.
            sequence.close_within(lambda request=request: tokens_left(request, 4_096))
            written: list[int] = []
            while True:
                if batched:
                    bitmask = allocate_token_bitmask(1, VOCABULARY)
                    fill_bitmasks([(sequence, 0)], bitmask, workers)
                    row = np.asarray(bitmask[0])  # a tensor where torch is there
                    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
                    tokens = np.flatnonzero(bits[:VOCABULARY]).tolist()
                else:
                    tokens = sorted(allowed(sequence))
                token = int(rng.choice(tokens))
                assert sequence.accept_tokens("r", [token])
                if token == STOP:
                    break
                written.append(token)
            assert len(written) <= most
            assert isinstance(json.loads(bytes(written)), list)
    # A budget that no text fits is none.
    sequence = begin(Kind.JSON_SCHEMA, schema)
    sequence.close_within(lambda: 1)
    assert ord("[") in allowed(sequence)
    assert (
        tokens_left(SimpleNamespace(max_tokens=99, num_prompt_tokens=10, num_output_tokens=4), 20)
        == 6
    )


def test_drafts_are_cut_where_a_budget_does_not_let_them(
    begin: Begin, compiler: GrammarCompiler
) -> None:
    sequence = begin(Kind.JSON_SCHEMA, {"type": "array", "items": {"type": "integer"}})
    sequence.close_within(lambda: 5)
    assert ord("[") in allowed(sequence)
    for draft, taken in ((b"[12,3]", 3), (b"[1,2]", 5), (b"[1234]", 4), (b"[1x", 2)):
        assert sequence.validate_tokens(list(draft)) == list(draft[:taken])
        assert ord("[") in allowed(sequence)
    assert sequence.validate_tokens([*b"[123]", STOP, ord("["), -1]) == [*b"[123]", STOP]
    assert sequence.validate_tokens([ord("["), -1, 10**9]) == [ord("[")]
    assert sequence.accept_tokens("r", list(b"[123]"))
    assert allowed(sequence) == {STOP}
    compiled = compiler.compile_grammar(grammar_of(Kind.JSON_OBJECT, "", DEFAULT))
    sequence = RequestSequence(compiled, whitespace_budget=1)
    assert sequence.validate_tokens(list(b"{  }")) == list(b"{ ")


def test_the_option_says_whether_texts_are_cut() -> None:
    given = {"STENCILM_VLLM_OPTIONS": '{"finish": "valid"}'}
    assert Options.from_environment(given).finish == "valid"
    assert Options().finish == "cut"
    with pytest.raises(ValueError, match="finish"):
        Options.from_environment({"STENCILM_VLLM_OPTIONS": '{"finish": "all"}'})
