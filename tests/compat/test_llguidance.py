"""What stands in for llguidance: its answers, and the table of differences in the documentation."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stencilm
import stencilm.compat.llguidance as llguidance
import stencilm.compat.llguidance.numpy as on_arrays
from compat.llguidance_cases import DIFFERENT, SAME, matcher
from compat.tables import rows

TINY = Path(stencilm.__file__).parent / "tiny"


@pytest.mark.parametrize("name", SAME)
def test_answers_as_the_original(name: str) -> None:
    ask, expected = SAME[name]
    if "torch" in name:
        pytest.importorskip("torch")
    assert ask(llguidance) == expected


@pytest.mark.parametrize("name", DIFFERENT)
def test_answers_otherwise(name: str) -> None:
    assert DIFFERENT[name].ask(llguidance) == DIFFERENT[name].here


def test_the_documented_table_has_these_rows() -> None:
    assert rows("llguidance") == list(DIFFERENT)


def test_a_tokenizer_file_and_its_text() -> None:
    pytest.importorskip("tokenizers")
    path = TINY / "tokenizer.json"
    for given in (str(path), path.read_text(encoding="utf-8")):
        tokenizer = llguidance.LLTokenizer(given, eos_token=0)
        assert tokenizer.decode_bytes(tokenizer.tokenize_str("hello you")) == b"hello you"
        assert tokenizer.eos_tokens == [0] and tokenizer.is_canonical


def test_a_tokenizer_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    from stencilm.compat.llguidance.hf import from_tokenizer

    source = transformers.AutoTokenizer.from_pretrained(TINY)
    tokenizer = from_tokenizer(source, n_vocab=len(source) + 5)
    assert tokenizer.vocab_size == len(source) + 5
    assert tokenizer.eos_token == source.eos_token_id
    schema = json.dumps({"type": "object", "properties": {"name": {"type": "string"}}})
    at = llguidance.LLMatcher(tokenizer, llguidance.grammar_from("json_schema", schema))
    assert at.consume_tokens(tokenizer.tokenize_str('{"name": "x"}'))
    assert at.stop_reason() == "NoExtension"


def test_an_encoding_of_tiktoken() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    from stencilm.compat.llguidance.tiktoken import lltokenizer_from_encoding

    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks[b"ab"] = 256
    encoding = tiktoken.Encoding(
        "few", pat_str=".", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 257}
    )
    tokenizer = lltokenizer_from_encoding(encoding)
    assert tokenizer.eos_tokens == [257] and tokenizer.vocab_size == 258
    made = llguidance.LLTokenizer.from_tiktoken(
        encoder=ranks, special_tokens={"<|endoftext|>": 257}, pattern=".", eos_token=257
    )
    assert made.decode_bytes(made.tokenize_str("xab")) == b"xab"


def test_tokens_of_llama_cpp() -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), b"\xff<end>"]
    made = llguidance.LLTokenizer.from_llamacpp(
        tokens=tokens, vocab_ptr=0, tokenize_fptr=0, eos_token=256
    )
    assert made.is_special_token(256) and not made.is_special_token(255)
    assert made.decode_str([97, 256]) == "a<end>"


def test_mlx() -> None:
    mx = pytest.importorskip("mlx.core")
    from stencilm.compat.llguidance import mlx

    at = matcher(llguidance, "start: /[bc]/")
    bitmask = mlx.allocate_token_bitmask(1, 259)
    mlx.fill_next_token_bitmask(at, bitmask)
    logits = mx.zeros((300,))
    masked = mlx.apply_token_bitmask(logits, bitmask)
    assert [i for i, value in enumerate(masked[0].tolist()) if value == 0] == [98, 99]
    assert logits.sum().item() == 0


def test_lenient_schemas_say_what_is_left_out() -> None:
    schema = {"type": "string", "pattern": "(a)\\1", "x-guidance": {"lenient": True}}
    grammar = llguidance.LLMatcher.grammar_from_json_schema(schema)
    at = matcher(llguidance, grammar)
    assert not at.is_error()
    assert (
        at.get_grammar_warnings() == llguidance.LLMatcher.validate_grammar_with_warnings(grammar)[1]
    )
    assert at.get_grammar_warnings()[0].startswith("#: pattern is not enforced")


def test_what_is_nested_too_deeply_is_an_error_of_the_matcher() -> None:
    schema = '{"items":' * 20_000 + "true" + "}" * 20_000
    grammar = llguidance.LLMatcher.grammar_from_json_schema(schema)
    assert matcher(llguidance, grammar).is_error()


def test_grammars_that_use_themselves_by_name_are_refused() -> None:
    listed = {"grammars": [{"name": "x", "lark_grammar": "start: @x"}]}
    assert "uses itself by @name" in matcher(llguidance, json.dumps(listed)).get_error()


def test_a_grammar_is_used_only_where_its_whole_name_stands() -> None:
    listed = [
        {"lark_grammar": 'start: "a@x" @list // @x, # @x\n'},
        {"name": "list", "lark_grammar": r'start: @list-item /@x"\/@x/ "\"@x"'},
        {"name": "list-item", "lark_grammar": 'start: %json {"const": "@x"}'},
        {"name": "x", "lark_grammar": "start: @x"},
        {"name": ["no name"], "lark_grammar": "start: ("},
    ]
    at = matcher(llguidance, json.dumps({"grammars": listed}))
    assert not at.is_error(), at.get_error()
    assert at.compute_ff_bytes() == b'a@x"@x"@x"/@x"@x'


def test_tokens_that_are_none_have_no_text() -> None:
    tokenizer = matcher(llguidance, 'start: "a"')._tokenizer
    for token in (-1, tokenizer.vocab_size, 1 << 70):
        with pytest.raises(stencilm.TokenizerError, match="outside of this vocabulary"):
            tokenizer.decode_bytes([token])
        with pytest.raises(stencilm.TokenizerError, match="outside of this vocabulary"):
            tokenizer.decode_str([token])


# The words of one mask of that vocabulary, and what stands where no mask was written.
WORDS, UNTOUCHED = 9, 7


def rows_of_words(count: int) -> Any:
    return np.full((count, WORDS), UNTOUCHED, dtype=np.int32)


def test_the_size_of_draft_masks_is_that_of_one_mask() -> None:
    # It was read as the size of all of them, so that calls of the original's form were refused.
    rows = rows_of_words(4)
    given = matcher(llguidance, "start: /[bc]d/")
    given.unsafe_compute_mask_ptr_with_draft_token(rows.ctypes.data, 4 * WORDS, [98, 98])
    assert rows[:, 3].tolist() == [0b1100, 0b10000, UNTOUCHED, UNTOUCHED]
    given.unsafe_compute_mask_ptr_with_draft_token(rows.ctypes.data, 4 * WORDS, [99, 100, 99])
    assert rows[:, 3].tolist() == [0b1100, 0b10000, 0, UNTOUCHED]
    assert rows[2].tolist() == [0] * 8 + [2]
    assert given.validate_tokens([98]) == 1  # it stays where it was


def test_masks_of_drafts_need_room() -> None:
    # The original writes after rows of fewer masks than there are.
    rows = rows_of_words(3)
    with pytest.raises(ValueError, match="4 masks from row 0 on do not fit into 3 rows"):
        on_arrays.fill_next_token_bitmask_par_with_draft_tokens(
            EXECUTOR, [(one(), 0, [97, 98, 97])], rows
        )
    assert (rows == UNTOUCHED).all()


@pytest.mark.parametrize("size", [-36, 0, 4, 32, 35, 40, 72, 1 << 61])
def test_another_size_than_that_of_one_mask_is_refused(size: int) -> None:
    # A larger one was taken for room, and written to.
    rows = rows_of_words(2)
    address = rows.ctypes.data
    calls: list[Callable[[], None]] = [
        lambda: one().unsafe_compute_mask_ptr(address, size),
        lambda: one().unsafe_compute_mask_ptr_with_draft_token(address, size, [97]),
        lambda: EXECUTOR.unsafe_compute_mask_ptr([(one(), 0)], address, size, 2),
        lambda: EXECUTOR.unsafe_compute_mask_ptr_with_draft_token(
            [(one(), 0, [97])], address, size, 2
        ),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"the size is {size} bytes, but must be 36, that of"):
            call()
    assert (rows == UNTOUCHED).all()


def test_pointers_and_numbers_of_masks_that_are_none() -> None:
    rows = rows_of_words(2)
    address = rows.ctypes.data
    for place, said in ((0, "is null"), (address + 2, "a multiple of 4"), (-4, "at least 0")):
        with pytest.raises(ValueError, match=f"the pointer .*{said}"):
            one().unsafe_compute_mask_ptr(place, 36)
    for count in (0, -2):
        with pytest.raises(ValueError, match=f"trg_batch_size is {count}, but must be at least 1"):
            EXECUTOR.unsafe_compute_mask_ptr([(one(), 0)], address, 36, count)
    for threads, kind in (("a", TypeError), (True, TypeError), (-1, ValueError)):
        with pytest.raises(kind, match=f"num_threads is {threads!r}, but must be"):
            GIVEN.LLExecutor(threads)
    assert (rows == UNTOUCHED).all()


def test_draft_tokens_are_any_list_of_integers_and_read_before_a_mask_is_written() -> None:
    for drafts in ((97, 98), np.array([97, 98])):
        rows = rows_of_words(3)
        EXECUTOR.unsafe_compute_mask_ptr_with_draft_token(
            [(one(), 0, drafts)], rows.ctypes.data, 36, 3
        )
        assert not (rows == UNTOUCHED).any()
    rows = rows_of_words(3)
    calls: list[Callable[[], None]] = [
        lambda: EXECUTOR.fill_with_drafts([(one(), 0, [97, "b"])], rows),
        lambda: GIVEN.LLMatcher.unsafe_compute_mask_ptr_with_draft_token(
            one(), rows.ctypes.data, 36, [97, "b"]
        ),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="draft_tokens has 'b' at 1, but must hold integers"):
            call()
    assert (rows == UNTOUCHED).all()


@pytest.mark.parametrize("grammar", ['{"grammars": 3}', '{"grammars": [3]}', '{"grammars" 3'])
def test_a_tag_whose_grammar_is_none_is_named(grammar: str) -> None:
    tag = llguidance.StructTag(trigger="<f", begin="<f>", grammar=grammar, end="</f>")
    with pytest.raises(ValueError, match="gramma"):
        llguidance.StructTag.to_grammar([tag])


@pytest.mark.parametrize("defaults", [None, {"whitespace_flexible": False}])
def test_numbers_of_schemas_are_read_as_they_are_written(defaults: dict[str, bool] | None) -> None:
    exact = '{"const": 12345678901234567890.125}'
    grammar = llguidance.LLMatcher.grammar_from_json_schema(exact, defaults=defaults)
    tag = llguidance.StructTag(trigger="<", begin="<", grammar=grammar, end=">")
    for text, before in [
        (grammar, b""),
        (llguidance.StructTag.to_grammar([tag], assume_special=False), b"<"),
    ]:
        reader = matcher(llguidance, text)
        whole = before + b"12345678901234567890.125"
        assert reader.try_consume_tokens(list(whole)) == len(whole)


# As callers without types have them.
GIVEN: Any = llguidance
ON_ARRAYS: Any = on_arrays


class Wrapped:
    """A tokenizer as `TokenizerWrapper` takes it, of which tests change a part."""

    eos_token_id, bos_token_id, special_token_ids = 1, None, ()

    def __init__(self, tokens: Any = (b"a", b"</s>"), given: Any = (0,)) -> None:
        self.tokens, self._given = tokens, given

    def __call__(self, text: Any) -> Any:
        return self._given


def wrapped(**given: Any) -> Any:
    return GIVEN.LLTokenizer(GIVEN.TokenizerWrapper(Wrapped(**given)))


def one() -> Any:
    return matcher(llguidance, 'start: "ab"')


EXECUTOR = GIVEN.LLExecutor()
MASK = np.zeros((1, 32), dtype=np.int32)
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a hole": (lambda: wrapped(tokens=[b"a", None]), "tokens has None at 1, but must hold the byt"),
    "no tokens": (lambda: wrapped(tokens=3), "tokens is 3, but must be a list of the bytes"),
    "no ids": (lambda: wrapped(given=["x"]).tokenize_str("a"), "has 'x' at 0, but must hold integ"),
    "bytes": (lambda: wrapped().tokenize_bytes("a"), "utf8bytes is 'a', but must be bytes"),
    "partial": (lambda: wrapped().tokenize_partial("a"), "new_bytes is 'a', but must be bytes"),
    "text": (lambda: wrapped().tokenize_str(b"a"), "text is b'a', but must be a str"),
    "greedy": (lambda: wrapped().greedy_tokenize(None), "text is None, but must be a str"),
    "shown": (lambda: wrapped().dbg_tokens(3), "must be token ids"),
    "special": (lambda: wrapped().is_special_token([1]), "token is [1], but must be an int"),
    "rollback": (lambda: one().rollback("1"), "num_tokens is '1', but must be an int"),
    "consumed": (lambda: one().consume_tokens(3), "tokens is 3, but must be a list of integers"),
    "tried": (lambda: one().try_consume_tokens([97, "b"]), "tokens has 'b' at 1, but must hold"),
    "a pattern": (
        lambda: GIVEN.LLMatcher.grammar_from_regex(None),
        "regex is a NoneType, but must be a str",
    ),
    "a pattern in Lark": (
        lambda: GIVEN.regex_to_lark(None),
        "regex is a NoneType, but must be a str",
    ),
    "a schema": (
        lambda: GIVEN.LLMatcher.grammar_from_json_schema(3),
        "schema is a int, but must be a str or a dict",
    ),
    "no JSON": (
        lambda: GIVEN.LLMatcher.grammar_from_json_schema({"enum": {1}}),
        "schema cannot be written as JSON: Object of type set is not JSON serializable; give what",
    ),
    "defaults": (
        lambda: GIVEN.LLMatcher.grammar_from_json_schema({}, defaults=["a"]),
        "defaults is ['a'], but must be a dict of options",
    ),
    "overrides": (
        lambda: GIVEN.LLMatcher.grammar_from_json_schema("{}", overrides=True),
        "overrides is True, but must be a dict of options",
    ),
    "no tokenizer": (
        lambda: GIVEN.LLMatcher.validate_grammar("start: /a/", 3),
        "tokenizer is a int, but must be an LLTokenizer",
    ),
    "a tag": (
        lambda: GIVEN.StructTag(trigger="<", begin=b"<a>", grammar="", end=""),
        "begin is b'<a>', but must be a str",
    ),
    "a pointer": (
        lambda: one().unsafe_compute_mask_ptr("x", 128),
        "the pointer is 'x', but must be an int",
    ),
    "a size": (
        lambda: one().unsafe_compute_mask_ptr(8, None),
        "the size is None, but must be an int",
    ),
    "rows": (lambda: ON_ARRAYS.get_bitmask_shape("a", 1), "batch_size is 'a', but must be an int"),
    "no matcher": (
        lambda: ON_ARRAYS.fill_next_token_bitmask(None, MASK),
        "interp is None, but must be an LLMatcher",
    ),
    "no pair": (
        lambda: ON_ARRAYS.fill_next_token_bitmask_par(EXECUTOR, [one()], MASK),
        "matchers has <stencilm.compat.llguidance.matcher.LLMatcher object",
    ),
    "a pair of others": (
        lambda: ON_ARRAYS.consume_token_par(EXECUTOR, [(one(), "a")]),
        "but must hold tuples (LLMatcher, int)",
    ),
    "no drafts": (
        lambda: ON_ARRAYS.fill_next_token_bitmask_par_with_draft_tokens(
            EXECUTOR, [(one(), 0)], MASK
        ),
        "but must hold tuples (LLMatcher, int, list)",
    ),
}


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("encoder", None, "encoder is None, but must be a dict of bytes of tokens and their ids"),
        ("encoder", {"a": 0}, "encoder has 'a': 0, but must hold bytes of tokens and their ids"),
        ("encoder", {b"a": None}, "encoder has b'a': None, but must hold bytes of tokens and"),
        ("special_tokens", ["<e>"], "special_tokens is ['<e>'], but must be a dict of names"),
        ("special_tokens", {"<e>": True}, "special_tokens has '<e>': True, but must hold names of"),
        ("pattern", None, "pattern is None, but must be a str"),
    ],
)
def test_a_part_of_an_encoding_of_another_type_is_told(part: str, value: Any, said: str) -> None:
    pytest.importorskip("tiktoken")
    parts: dict[str, Any] = {
        "encoder": {bytes([byte]): byte for byte in range(256)},
        "special_tokens": {"<e>": 256},
        "pattern": r"\w+|\W",
        "eos_token": 256,
    }
    assert GIVEN.LLTokenizer.from_tiktoken(**parts).tokenize_str("a") == [97]
    with pytest.raises(TypeError, match=re.escape(said)):
        GIVEN.LLTokenizer.from_tiktoken(**{**parts, part: value})


def test_what_is_no_encoding_and_what_ends_no_text_is_told() -> None:
    pytest.importorskip("tiktoken")
    from stencilm.compat.llguidance.tiktoken import lltokenizer_from_encoding

    with pytest.raises(ValueError, match=r"a NoneType is no tiktoken\.Encoding"):
        lltokenizer_from_encoding(None)
    value: Any
    with pytest.raises(TypeError, match="eos_token has 'a' at 0, but must hold integers"):
        GIVEN.LLTokenizer.from_llamacpp(
            tokens=[b"a"], vocab_ptr=0, tokenize_fptr=0, eos_token=["a"]
        )
    for value in (None, []):
        with pytest.raises(ValueError, match=r"eos_token is .*, but must be the id of the token"):
            GIVEN.LLTokenizer.from_llamacpp(
                tokens=[b"a"], vocab_ptr=0, tokenize_fptr=0, eos_token=value
            )


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_of_another_type_is_told_with_its_place(name: str) -> None:
    call, said = WRONG[name]
    with pytest.raises(TypeError, match=re.escape(said)):
        call()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_matcher_goes_its_own_way(copied: Callable[[Any], Any]) -> None:
    made = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), 'start: "abc"')
    other = copied(made)
    assert other.consume_tokens([97, 98])
    assert made.consume_token(97)
    assert (made.compute_ff_bytes(), other.compute_ff_bytes()) == (b"bc", b"c")


def test_a_stopped_matcher_still_tells_what_is_no_token() -> None:
    made = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), 'start: "a"')
    assert made.consume_token(97) and made.is_stopped()
    for wrong in (float(made._tokenizer.eos_token), None, "a"):
        with pytest.raises(TypeError, match=r"sampled_token is .*, but must be an int"):
            made.consume_token(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tokens is 'a', but must be a list"):
        made.validate_tokens("a")  # type: ignore[arg-type]
    assert not made.is_error()


def test_logits_that_are_no_array_of_floats_are_refused() -> None:
    # Those of a list were masked in a copy, and stayed as they were.
    mask = np.zeros((1, 1), dtype=np.int32)
    for logits in ([0.0, 0.0], np.zeros((1, 2), dtype=np.int64), None):
        for apply in (
            ON_ARRAYS.apply_token_bitmask_inplace,
            ON_ARRAYS.apply_token_bitmask_inplace_kernel,
        ):
            with pytest.raises(AssertionError, match="must be a NumPy array of floats"):
                apply(logits, mask)
    with pytest.raises(AssertionError, match="must be a NumPy array of int32"):
        ON_ARRAYS.apply_token_bitmask_inplace_kernel(np.zeros((1, 2), np.float32), [0])
    with pytest.raises(AssertionError, match="but the mask"):
        ON_ARRAYS.apply_token_bitmask_inplace_kernel(np.zeros((2, 2), dtype=np.float32), mask)


def test_a_choice_is_a_list_of_texts() -> None:
    for choice in ("3", '{"a": 1}', [1], [None]):
        with pytest.raises(ValueError, match="but must be a list of texts"):
            GIVEN.grammar_from("choice", choice)


def test_a_schema_that_is_nested_too_deeply_for_options() -> None:
    nested = f'{{"default": {"[" * 100_000 + "]" * 100_000}}}'
    with pytest.raises(ValueError, match="nested too deeply"):
        llguidance.LLMatcher.grammar_from_json_schema(nested, overrides={"lenient": True})


def test_schemas_that_cannot_be_written_as_json_say_why() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"items": deep}
    own: dict[str, Any] = {}
    own["items"] = own

    def tagged(schema: Any) -> Any:
        tag = GIVEN.StructTag(trigger="<a", begin="<a>", grammar=schema, end="</a>")
        return GIVEN.StructTag.to_grammar([tag])

    def with_options(schema: Any) -> Any:
        options = {"whitespace_flexible": False}
        return GIVEN.LLMatcher.grammar_from_json_schema(schema, overrides=options)

    for written in (GIVEN.LLMatcher.grammar_from_json_schema, with_options, tagged):
        with pytest.raises(ValueError, match="nested too deeply: flatten it"):
            written(deep)
        with pytest.raises(ValueError, match="schema cannot be written as JSON: Circular"):
            written(own)
        with pytest.raises(TypeError, match="schema cannot be written as JSON: Object of type"):
            written({"enum": [object]})
