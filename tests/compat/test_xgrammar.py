"""What stands in for xgrammar: its answers, and the table of differences in the documentation."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="bitmasks are tensors of torch, as the original's are")

import torch

import stencilm.compat.xgrammar as xgr
from compat.tables import rows
from compat.xgrammar_cases import DIFFERENT, SAME, TOKENS, fits, masks_along
from stencilm.compat import stand_in


@pytest.mark.parametrize("name", SAME)
def test_answers_as_the_original(name: str) -> None:
    ask, expected = SAME[name]
    assert ask(xgr) == expected


@pytest.mark.parametrize("name", DIFFERENT)
def test_answers_otherwise(name: str) -> None:
    assert DIFFERENT[name].ask(xgr) == DIFFERENT[name].here


def test_the_documented_table_has_these_rows() -> None:
    assert rows("xgrammar") == list(DIFFERENT)


def test_importing_the_package_imports_nothing_of_it() -> None:
    program = "import stencilm, sys; print([n for n in sys.modules if 'stencilm.compat' in n])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_names_under_both_packages_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.split(".")[0] == "xgrammar":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "xgrammar", xgr)
    for module, names in {
        "xgrammar.structural_tag": ("StructuralTag", "TagFormat"),
        "xgrammar.openai_tool_call_schema": ("FunctionToolParam",),
        "xgrammar.matcher": ("GrammarMatcher",),
        "xgrammar.exception": ("InvalidJSONError",),
    }.items():
        read = import_module(module)
        for name in names:
            own = import_module(f"stencilm.compat.{module}")
            assert getattr(read, name) is getattr(own, name)
        monkeypatch.delitem(sys.modules, module)


def test_standing_in_is_refused_beside_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgrammar", sys)
    with pytest.raises(RuntimeError, match="xgrammar is imported already"):
        stand_in("xgrammar")
    monkeypatch.setitem(sys.modules, "xgrammar", xgr)
    assert stand_in("xgrammar") is xgr
    with pytest.raises(ValueError, match="name is 'outlines'"):
        stand_in("outlines")  # type: ignore[arg-type]


def test_what_is_nested_too_deeply_is_an_error() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    tag: dict[str, Any] = {"type": "any_text"}
    for _ in range(20_000):
        schema = {"type": "array", "items": schema}
        tag = {"type": "optional", "content": tag}
    with pytest.raises(RuntimeError, match="nested too deeply"):
        xgr.Grammar.from_json_schema(schema)
    with pytest.raises(RuntimeError, match="nested too deeply"):
        xgr.Grammar.from_structural_tag({"type": "structural_tag", "format": tag})
    text = '{"items":' * 20_000 + "true" + "}" * 20_000
    with pytest.raises(RuntimeError, match="deep"):
        xgr.Grammar.from_json_schema(text)


def _compiler() -> Any:
    return xgr.GrammarCompiler(xgr.TokenizerInfo(TOKENS, stop_token_ids=[257]))


FUNCTION = {
    "type": "function",
    "function": {
        "name": "f",
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "integer"}},
            "required": ["x"],
        },
    },
}


def test_a_model_family() -> None:
    tag = xgr.get_model_structural_tag("hermes", [FUNCTION], reasoning=False)
    assert isinstance(tag, xgr.StructuralTag)
    compiled = _compiler().compile_structural_tag(tag)
    call = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
    assert fits(xgr, compiled, "so", call, call.replace("1", '""')) == [True, True, False]
    with pytest.raises(ValueError, match="model is 'nothing', but must be one of"):
        xgr.get_model_structural_tag("nothing")


def test_every_family_gives_a_tag_that_compiles() -> None:
    from stencilm import model_structural_tags

    for name in model_structural_tags():
        tag = xgr.get_model_structural_tag(name, [FUNCTION], "required", max_whitespace_cnt=2)
        xgr.Grammar.from_structural_tag(tag.model_dump_json())


def test_a_registered_family() -> None:
    @xgr.register_model_structural_tag("ours")
    def tag(functions: Any, builtins: Any, choice: str, reasoning: str, **options: Any) -> Any:
        text = f"{[tool.function.name for tool in functions]} {choice} {reasoning}"
        return xgr.StructuralTag(format=xgr.structural_tag.ConstStringFormat(value=text))

    made: Any = xgr.get_model_structural_tag("ours", [FUNCTION], "required", reasoning=False)
    assert made.format.value == "['f'] required disabled"


def test_masks_along_a_text_allow_its_next_byte() -> None:
    text = '{"a": [1, true]}'
    masks = masks_along(xgr, _compiler().compile_builtin_json_grammar(), text)
    assert all(byte in mask for byte, mask in zip(text.encode(), masks, strict=False))


def test_logits_processor() -> None:
    pytest.importorskip("transformers")
    import torch

    compiled = _compiler().compile_regex("ab?")
    processor = xgr.hf.LogitsProcessor(compiled)
    width = len(TOKENS)
    scores = processor(torch.tensor([[5], [6]]), torch.zeros((2, width)))
    assert (scores == 0).nonzero().tolist() == [[0, 97], [0, 256], [1, 97], [1, 256]]
    scores = processor(torch.tensor([[5, 97], [6, 256]]), torch.zeros((2, width)))
    assert (scores == 0).nonzero().tolist() == [[0, 98], [0, 257], [1, 257]]
    with pytest.raises(RuntimeError, match="input_ids has 1 rows, but the first call had 2"):
        processor(torch.tensor([[5]]), torch.zeros((1, width)))
    with pytest.raises(AssertionError, match="row 0 has the token 5, which does not fit"):
        processor(torch.tensor([[5, 97, 5], [6, 256, 257]]), torch.zeros((2, width)))


def test_a_processor_of_mlx() -> None:
    mx = pytest.importorskip("mlx.core")
    from stencilm.compat.xgrammar.contrib.mlxlm import XGrammarLogitsProcessor

    processor = XGrammarLogitsProcessor(_compiler().compile_regex("ab?"))
    logits = processor(mx.array([5]), mx.zeros((1, len(TOKENS))))
    assert [i for i, value in enumerate(logits[0].tolist()) if value == 0] == [97, 256]
    logits = processor(mx.array([5, 97]), mx.zeros((1, len(TOKENS))))
    assert [i for i, value in enumerate(logits[0].tolist()) if value == 0] == [98, 257]


def test_a_tokenizer_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    import stencilm

    folder = Path(stencilm.__file__).parent / "tiny"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    info = xgr.TokenizerInfo.from_huggingface(tokenizer)
    assert info.stop_token_ids == [tokenizer.eos_token_id]
    wide = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=info.vocab_size + 7)
    assert wide.vocab_size == info.vocab_size + 7
    short = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=info.vocab_size - 1)
    assert short.vocab_size == info.vocab_size - 1
    assert short.vocab_type is info.vocab_type
    for vocab_size in (0, -1):
        with pytest.raises(ValueError, match=f"vocab_size is {vocab_size}, but must be at least 1"):
            xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocab_size)
    with pytest.raises(ValueError, match="stop_token_ids is empty"):
        xgr.TokenizerInfo.from_huggingface(tokenizer, stop_token_ids=[])
    with pytest.raises(ValueError, match="tokenizer"):
        xgr.TokenizerInfo.from_huggingface(3)


def test_the_kernel_of_mlx() -> None:
    mx = pytest.importorskip("mlx.core")
    from stencilm.compat.xgrammar.kernels.apply_token_bitmask_mlx import apply_token_bitmask_mlx

    logits = mx.zeros((2, 40))
    masked = apply_token_bitmask_mlx(mx.array([[5, 0], [6, 0]], dtype=mx.int32), logits, 34)
    assert masked.shape == (2, 34) and logits.tolist() == [[0.0] * 40] * 2
    allowed = [[i for i, value in enumerate(row) if value == 0] for row in masked.tolist()]
    assert allowed == [[0, 2], [1, 2]]


def test_insides_are_refused_with_a_sentence() -> None:
    from stencilm.compat.xgrammar.base import XGRObject
    from stencilm.compat.xgrammar.kernels import apply_token_bitmask_inplace_triton as module

    with pytest.raises(NotImplementedError, match="make a Grammar"):
        XGRObject()
    assert callable(module)
    triton = import_module("stencilm.compat.xgrammar.kernels.apply_token_bitmask_inplace_triton")
    with pytest.raises(NotImplementedError, match="call apply_token_bitmask_inplace_triton"):
        triton.apply_token_bitmask_inplace_kernel()
    with pytest.raises(AttributeError, match="shows the insides"):
        _ = xgr.testing.GrammarFunctor


@pytest.mark.parametrize("metadata", ["", "{}", "[]", "3", '{"vocab_type": 9}', "[" * 100_000])
def test_metadata_that_is_none_is_named(metadata: str) -> None:
    with pytest.raises(ValueError, match=r"dump_metadata\(\)"):
        xgr.TokenizerInfo.from_vocab_and_metadata([b"a"], metadata)


def test_a_saved_value_without_its_value_is_damaged() -> None:
    info = xgr.TokenizerInfo([b"a"], stop_token_ids=[])
    version = xgr.get_serialization_version()
    for kind in ("TokenizerInfo", "Grammar", "CompiledGrammar"):
        text = json.dumps({"kind": kind, "__VERSION__": version})
        options = (info,) if kind == "CompiledGrammar" else ()
        with pytest.raises(xgr.DeserializeFormatError, match="no value"):
            getattr(xgr, kind).deserialize_json(text, *options)
        wrong: Any
        for wrong in (None, 5, {}):
            with pytest.raises(TypeError, match=f"a saved {kind} is a str, not a "):
                getattr(xgr, kind).deserialize_json(wrong, *options)


def test_half_a_surrogate_pair_is_an_error_of_the_original() -> None:
    info = xgr.TokenizerInfo([b"a"], stop_token_ids=[])
    found = xgr.GrammarMatcher(xgr.GrammarCompiler(info).compile_regex("a"))
    with pytest.raises(RuntimeError, match="surrogate"):
        found.accept_string("\ud800")


@pytest.mark.parametrize("wrong", [None, [], "a", [None]])
def test_a_logits_processor_of_no_grammar_is_refused(wrong: Any) -> None:
    hf = pytest.importorskip("stencilm.compat.xgrammar.contrib.hf")
    with pytest.raises(ValueError, match="must be a CompiledGrammar"):
        hf.LogitsProcessor(wrong)


def test_numbers_of_schemas_are_read_as_they_are_written() -> None:
    exact = '{"const": 12345678901234567890.125}'
    format_text = f'{{"type": "json_schema", "json_schema": {exact}}}'
    for grammar in (
        xgr.Grammar.from_json_schema(exact, strict_mode=True),
        xgr.Grammar.from_structural_tag(f'{{"type": "structural_tag", "format": {format_text}}}'),
    ):
        compiled = xgr.GrammarCompiler(xgr.TokenizerInfo(TOKENS)).compile_grammar(grammar)
        texts = ["12345678901234567890.125", "12345678901234567000"]
        assert fits(xgr, compiled, *texts) == [True, False]


# As callers without types have it.
GIVEN: Any = xgr


def compiled() -> Any:
    info = GIVEN.TokenizerInfo(TOKENS, stop_token_ids=[len(TOKENS) - 1])
    return GIVEN.GrammarCompiler(info).compile_regex("a+")


def matcher() -> Any:
    return GIVEN.GrammarMatcher(compiled())


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a hole": (lambda: GIVEN.TokenizerInfo(["a", None]), "encoded_vocab has None at 1, but must"),
    "an int": (
        lambda: GIVEN.TokenizerInfo([b"a", 3]),
        "encoded_vocab has 3 at 1, but must hold str",
    ),
    "bytes": (lambda: GIVEN.TokenizerInfo(b"ab"), "encoded_vocab has 97 at 0, but must hold str"),
    "no list": (lambda: GIVEN.TokenizerInfo(None), "encoded_vocab is None, but must be a list of"),
    "its type": (lambda: GIVEN.TokenizerInfo(["a"], 0), "vocab_type is 0, but must be VocabType"),
    "metadata": (
        lambda: GIVEN.TokenizerInfo.from_vocab_and_metadata(
            3, compiled().tokenizer_info.dump_metadata()
        ),
        "encoded_vocab is 3, but must be a list of",
    ),
    "threads": (
        lambda: GIVEN.GrammarCompiler(compiled().tokenizer_info, max_threads="many"),
        "max_threads is 'many', but must be an int",
    ),
    "cache": (
        lambda: GIVEN.GrammarCompiler(compiled().tokenizer_info, cache_limit_bytes=None),
        "cache_limit_bytes is None, but must be an int",
    ),
    "a pattern": (
        lambda: GIVEN.Grammar.from_regex(None),
        "pattern is a NoneType, but must be a str",
    ),
    "bytes of a pattern": (lambda: GIVEN.Grammar.from_regex(b"a"), "pattern is a bytes, but must"),
    "a schema": (
        lambda: GIVEN.Grammar.from_json_schema({"enum": [object]}),
        "schema cannot be written as JSON: Object of type type",
    ),
    "joined": (lambda: GIVEN.Grammar.concat("a"), "grammars has 'a' at 0, but must hold Grammar"),
    "no tags": (
        lambda: GIVEN.StructuralTag.from_legacy_structural_tag("x", ["<"]),
        "tags has 'x' at 0, but must hold StructuralTagItem",
    ),
    "no list of tags": (
        lambda: GIVEN.StructuralTag.from_legacy_structural_tag(None, ["<"]),
        "tags is None, but must be a list of StructuralTagItem",
    ),
    "tags of a grammar": (
        lambda: GIVEN.Grammar.from_structural_tag([{"begin": "<a>"}], ["<"]),
        "tags has {'begin': '<a>'} at 0, but must hold StructuralTagItem",
    ),
    "rows": (lambda: GIVEN.allocate_token_bitmask("a", 1), "batch_size is 'a', but must be an int"),
    "tokens": (lambda: GIVEN.get_bitmask_shape(1, 1.5), "vocab_size is 1.5, but must be an int"),
    "no bitmask": (
        lambda: GIVEN.reset_token_bitmask([1]),
        "bitmask is a list, but must be a torch",
    ),
    "no logits": (
        lambda: GIVEN.apply_token_bitmask_inplace([0.0], GIVEN.allocate_token_bitmask(1, 1)),
        "logits is a list, but must be a torch.Tensor",
    ),
    "no matchers": (
        lambda: GIVEN.BatchGrammarMatcher.batch_accept_token([None], [1]),
        "matchers has None at 0, but must hold GrammarMatcher",
    ),
    "no indices": (
        lambda: GIVEN.BatchGrammarMatcher.batch_fill_temperature(
            [matcher()], torch.zeros(1), [0.5]
        ),
        "indices has 0.5 at 0, but must hold integers",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_of_another_type_is_told_with_its_place(name: str) -> None:
    call, said = WRONG[name]
    with pytest.raises(TypeError, match=re.escape(said)):
        call()


def test_what_fits_nowhere_is_an_error_of_the_original() -> None:
    for bitmask in (torch.zeros(1, 9), torch.zeros((1, 9), dtype=torch.int32).to_sparse()):
        with pytest.raises(ValueError, match=r"must be a dense one of torch\.int32"):
            GIVEN.reset_token_bitmask(bitmask)
    with pytest.raises(ValueError, match="must be a dense one with one or two dimensions"):
        GIVEN.apply_token_bitmask_inplace(torch.zeros(()), torch.zeros((), dtype=torch.int32))
    with pytest.raises(RuntimeError, match="batch_size is -1, but must be at least 0"):
        GIVEN.allocate_token_bitmask(-1, 5)
    with pytest.raises(ValueError, match="tokenizer_info is a NoneType"):
        GIVEN.CompiledGrammar.deserialize_json(compiled().serialize_json(), None)


def test_a_batch_with_a_wrong_argument_changes_no_matcher() -> None:
    both = [matcher(), matcher()]
    token = TOKENS.index(b"a")
    batch = GIVEN.BatchGrammarMatcher
    calls: list[Callable[[], Any]] = [
        lambda: batch.batch_accept_token(both, [token, "a"]),
        lambda: batch.batch_accept_string(both, ["a", None]),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=" at 1, but must hold "):
            call()
        assert [one._matcher.num_accepted_tokens for one in both] == [0, 0]
    assert batch.batch_accept_token(both, [token, token]) == [True, True]
    with pytest.raises(TypeError, match="num_tokens has None at 1, but must hold integers"):
        batch.batch_rollback(both, [1, None])
    batch.batch_rollback(both, 1)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_matcher_goes_its_own_way(copied: Callable[[Any], Any]) -> None:
    one = xgr.GrammarMatcher(_compiler().compile_grammar('root ::= "abc"'), default_temperature=0.5)
    assert one.accept_string("a")
    other = copied(one)
    assert other.accept_token(TOKENS.index(b"b"))
    assert other.find_jump_forward_string() == "c"
    assert one.find_jump_forward_string() == "bc"
    bitmask = xgr.allocate_token_bitmask(1, len(TOKENS))
    other.fill_next_token_bitmask(bitmask)
    allowed = xgr.testing.bitmask_to_bool_mask(bitmask, len(TOKENS))[0].nonzero().flatten()
    assert allowed.tolist() == [TOKENS.index(b"c")]
    assert other.temperature == 0.5


def test_indices_are_any_integers_in_a_row() -> None:
    compiled = _compiler().compile_grammar('root ::= "a"')
    expected = None
    for indices in ([1, 0], torch.tensor([1, 0]), (number for number in (1, 0))):
        # Rows of texts that have ended by themselves are looked at twice.
        ended = xgr.GrammarMatcher(compiled, terminate_without_stop_token=True)
        assert ended.accept_string("a")
        bitmask = xgr.allocate_token_bitmask(2, len(TOKENS))
        xgr.BatchGrammarMatcher().batch_fill_next_token_bitmask(
            [ended, xgr.GrammarMatcher(compiled)],
            bitmask,
            indices,  # type: ignore[arg-type]
        )
        expected = bitmask.tolist() if expected is None else expected
        assert bitmask.tolist() == expected
        assert not bitmask[1].any() and bitmask[0].any()


@pytest.mark.parametrize("vocab_size", ["40", 40.0, -3, 65])
def test_a_wrong_number_of_tokens_to_mask_is_told_as_given(vocab_size: Any) -> None:
    logits, bitmask = torch.zeros(1, 64), torch.zeros(1, 2, dtype=torch.int32)
    with pytest.raises(ValueError, match=f"vocab_size is {vocab_size!r}, but must be .*"):
        xgr.apply_token_bitmask_inplace(logits, bitmask, vocab_size=vocab_size)
    assert not logits.any()


def test_rows_beside_a_matcher_that_has_terminated_have_no_stop_token() -> None:
    compiled = _compiler().compile_grammar('root ::= "a" "b"?')
    ended = xgr.GrammarMatcher(compiled)
    assert ended.accept_string("a") and ended.accept_token(257)
    by_itself = xgr.GrammarMatcher(compiled, terminate_without_stop_token=True)
    assert by_itself.accept_string("a")
    bitmask = xgr.allocate_token_bitmask(2, len(TOKENS))
    with pytest.raises(RuntimeError, match="has terminated"):
        xgr.BatchGrammarMatcher().batch_fill_next_token_bitmask([by_itself, ended], bitmask)
    alone = xgr.allocate_token_bitmask(1, len(TOKENS))
    by_itself.fill_next_token_bitmask(alone)
    assert bitmask[0].tolist() == alone[0].tolist()
    assert not bitmask[0, 257 // 32] >> 257 % 32 & 1


@pytest.mark.parametrize(
    ("pattern", "offset"), [("a)(b", 1), ("(a", 0), ("*a", 0), ("a.b[", 3), ("é(", 2)]
)
def test_a_pattern_is_read_alone_and_refused_at_its_own_position(pattern: str, offset: int) -> None:
    tag = {"type": "structural_tag", "format": {"type": "regex", "pattern": pattern}}
    with pytest.raises(RuntimeError, match=f"^offset {offset}: "):
        GIVEN.Grammar.from_regex(pattern)
    with pytest.raises(RuntimeError, match=f"^#/format/pattern: offset {offset}: "):
        GIVEN.Grammar.from_structural_tag(tag)


def test_a_comment_ends_no_group_around_a_pattern() -> None:
    tag = {"type": "structural_tag", "format": {"type": "regex", "pattern": "(?x)a . # any"}}
    for grammar in (
        GIVEN.Grammar.from_regex("(?x)a . # any"),
        GIVEN.Grammar.from_structural_tag(tag),
    ):
        assert str(grammar) == str(GIVEN.Grammar.from_regex("a."))


@pytest.mark.parametrize(
    ("tools", "choice", "place"),
    [
        ([{"name": "a", "parameters": "{}"}], "auto", "function.parameters"),
        ([{"name": "a", "parameters": [1]}], "auto", "function.parameters"),
        ([{"parameters": {}}], "auto", "function.name"),
        ([{"name": 3}], "auto", "function.name"),
        ([{"name": "a", "strict": "maybe"}], "auto", "function.strict"),
        ([{"name": "a"}], {"type": "function", "function": {"name": 3}}, "function.name"),
        ([{"name": "a"}], {"function": {}}, "function.name"),
        ([{"name": "a"}], {"type": "allowed_tools", "allowed_tools": {}}, "allowed_tools.mode"),
    ],
)
def test_a_wrong_field_of_a_function_is_named(tools: list[Any], choice: Any, place: str) -> None:
    given = [{"type": "function", "function": tool} for tool in tools]
    with pytest.raises(ValueError, match=rf"\n{re.escape(place)}\n"):
        GIVEN.get_model_structural_tag("llama", tools=given, tool_choice=choice)


@pytest.mark.parametrize(
    ("ebnf", "text"),
    [
        (r'root ::= "\x1F600"', "\U0001f600"),
        (r'root ::= "\x0001F600!"', "\U0001f600!"),
        (r"root ::= [\x1F600-\x1F64F]", "\U0001f610"),
        (r'root ::= "\x41" "\x41g\x9"', "AAg\t"),
        (r'root ::= "\x41b"', "\u041b"),
        (r'root ::= "\\x1F600"', r"\x1F600"),
        (r'root ::= "[\x4e2d]#\"" # "\x123"', '[\u4e2d]#"'),
        (r'root ::= "\u0041b\U0001F600"', "Ab\U0001f600"),
        (r"root ::= /\x41b/", "Ab"),
        (r'root ::= Regex("\x41b")', "Ab"),
    ],
)
def test_an_escape_takes_as_many_digits_as_there_are(ebnf: str, text: str) -> None:
    """As the original documents: `\\xHH...` is the code point of digits of any number."""
    read = xgr.Grammar.from_ebnf(ebnf)
    tag = {"type": "structural_tag", "format": {"type": "grammar", "grammar": ebnf}}
    compiler = xgr.GrammarCompiler(xgr.TokenizerInfo(TOKENS))
    for made in (
        compiler.compile_grammar(read),
        compiler.compile_grammar(ebnf),
        compiler.compile_grammar(xgr.Grammar.from_ebnf(str(read))),
        compiler.compile_structural_tag(tag),
    ):
        matcher = xgr.GrammarMatcher(made, terminate_without_stop_token=True)
        assert matcher.accept_string(text) and matcher.is_terminated()


@pytest.mark.parametrize(
    ("ebnf", "place"),
    [
        (r'root ::= "\x110000"', "line 1, column 11: U+110000 is no character"),
        ('root ::= "a" |\n' r'  "\x1F600" "\x4" nothing', "line 2, column 19: the rule `nothing`"),
        (r'root ::= "\x1F600" "\q"', "line 1, column 21: the escape "),
        (r'root ::= "\q" "\x1F600"', "line 1, column 11: the escape "),
    ],
)
def test_an_error_behind_an_escape_has_the_column_of_the_text(ebnf: str, place: str) -> None:
    for read in (
        xgr.Grammar.from_ebnf,
        xgr.GrammarCompiler(xgr.TokenizerInfo(TOKENS)).compile_grammar,
    ):
        with pytest.raises(RuntimeError, match=re.escape(place)):
            read(ebnf)
