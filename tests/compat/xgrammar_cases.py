"""Questions to xgrammar and to what stands in for it."""

from __future__ import annotations

import json
import math
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from compat.cases import Difference, Package, each_fails, fails, raised

STOP = 257
TOKENS = [*(bytes([byte]) for byte in range(256)), b"ab", b"<stop>"]
TWO = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<f"],
        "tags": [
            {
                "type": "tag",
                "begin": "<f>",
                "content": {"type": "json_schema", "json_schema": TWO},
                "end": "</f>",
            }
        ],
    },
}


def compiler(xgr: Package, **options: Any) -> Any:
    return xgr.GrammarCompiler(xgr.TokenizerInfo(TOKENS, stop_token_ids=[STOP]), **options)


def matcher(xgr: Package, ebnf: str, **options: Any) -> Any:
    return xgr.GrammarMatcher(compiler(xgr).compile_grammar(ebnf), **options)


def allowed(xgr: Package, at: Any) -> list[int]:
    """The tokens that may come next."""
    bitmask = xgr.allocate_token_bitmask(1, len(TOKENS))
    if not at.fill_next_token_bitmask(bitmask):
        return list(range(len(TOKENS)))
    words = bitmask[0].tolist()
    return [token for token in range(len(TOKENS)) if words[token // 32] >> token % 32 & 1]


def fits(xgr: Package, compiled: Any, *texts: str) -> list[bool]:
    """Which texts fit as a whole."""
    answers = []
    for text in texts:
        at = xgr.GrammarMatcher(compiled)
        answers.append(at.accept_string(text) and at.is_completed())
    return answers


def schema(xgr: Package, given: Any, *texts: str, **options: Any) -> list[bool]:
    return fits(xgr, compiler(xgr).compile_json_schema(given, **options), *texts)


def masks_along(xgr: Package, compiled: Any, text: str) -> list[list[int]]:
    """The masks before every byte of a text, and after it."""
    at = xgr.GrammarMatcher(compiled)
    masks = [allowed(xgr, at)]
    for byte in text.encode():
        assert at.accept_token(byte)
        masks.append(allowed(xgr, at))
    return masks


def _end(xgr: Package) -> Any:
    at = matcher(xgr, 'root ::= "ab" | "abc"')
    steps = [at.accept_token(97), at.accept_token(120), at.accept_token(98)]
    steps += [at.is_completed(), at.is_terminated(), allowed(xgr, at)]
    steps += [at.accept_token(STOP), at.is_completed(), at.is_terminated()]
    steps += [at.accept_token(99), at.accept_token(STOP), at.accept_string("c")]
    steps += [fails(lambda: allowed(xgr, at)), fails(at.find_jump_forward_string)]
    at.rollback()
    return [*steps, at.is_terminated(), at.accept_token(99), allowed(xgr, at)]


def _rollback(xgr: Package) -> Any:
    at = matcher(xgr, 'root ::= "abc"')
    at.accept_string("ab")
    at.accept_token(99)
    steps: list[Any] = [fails(lambda: at.rollback(3)), allowed(xgr, at)]
    at.rollback(2)
    steps.append(allowed(xgr, at))
    at.accept_token(256)
    at.reset()
    return [*steps, allowed(xgr, at), at.max_rollback_tokens]


def _by_itself(xgr: Package) -> Any:
    at = matcher(xgr, 'root ::= "ab"', terminate_without_stop_token=True)
    steps: list[Any] = [at.is_terminated(), at.accept_string("ab"), at.is_terminated()]
    return [*steps, at.accept_token(97), allowed(xgr, at)]


def _never_stops(xgr: Package) -> Any:
    """The masks of texts that end by themselves, alone and in a batch."""
    made = compiler(xgr)
    options = {"override_stop_tokens": [31, 255, STOP], "terminate_without_stop_token": True}
    grammar = 'root ::= "ab" "c"?' + "".join(rf' | "ab" [\x{byte:02x}]' for byte in (0x1E, 0x41))
    given = [xgr.GrammarMatcher(made.compile_grammar(grammar), **options) for _ in range(2)]
    found = []
    for text in ("a", "b"):
        for at in given:
            at.accept_string(text)
        bitmask = xgr.allocate_token_bitmask(3, len(TOKENS))
        xgr.BatchGrammarMatcher().batch_fill_next_token_bitmask(given, bitmask, [2, 0])
        assert bitmask[0].tolist() == bitmask[2].tolist()
        one = xgr.allocate_token_bitmask(1, len(TOKENS))
        found.append([given[0].fill_next_token_bitmask(one), allowed(xgr, given[0])])
        assert one[0].tolist() == bitmask[0].tolist()
    return found


def _jumps(xgr: Package) -> Any:
    spelled = [b"ab", b"abc", b"ab", b"<s>", b"bcd", b"xyz", "éa".encode(), b""]
    info = xgr.TokenizerInfo(
        [*(bytes([byte]) for byte in range(256)), *spelled], stop_token_ids=[259]
    )
    made = xgr.GrammarCompiler(info)

    def ask(ebnf: str, *before: Any, **options: Any) -> Any:
        at = xgr.GrammarMatcher(made.compile_grammar(ebnf), **options)
        for step in before:
            assert at.accept_token(step) if isinstance(step, int) else at.accept_string(step)
        return [at.find_jump_forward_tokens(), at.fork().find_jump_forward_tokens()][1]

    return [
        ask('root ::= "ab" "d"'),
        ask('root ::= "ab"'),
        ask('root ::= "abcd" [xy]'),
        ask('root ::= "a" [bc]'),
        ask('root ::= "é" | "è"'),
        ask('root ::= "q" ("éb" | "èb")'),
        ask('root ::= "éz"', 0xC3),
        ask('root ::= "zéabcd!"'),
        ask('root ::= "ab"', "ab"),
        ask('root ::= "ab" "q"?', "ab"),
        ask('root ::= "ab" "q"', "ab", terminate_without_stop_token=True),
        ask('root ::= "xyz" "w"', override_stop_tokens=[261]),
        ask('root ::= "xyz" "w"'),
        ask('root ::= "ab"', "ab", 259),
    ]


def _fork(xgr: Package) -> Any:
    at = matcher(xgr, 'root ::= "a" "b"')
    at.accept_token(97)
    other = at.fork()
    return [other.accept_token(98), at.is_completed(), other.is_completed(), at == other]


def _draft_tree(xgr: Package) -> Any:
    import torch

    at = matcher(xgr, 'root ::= "a" ("b" | "c")')
    bitmask = torch.zeros((3, 9), dtype=torch.int32)
    done = at.traverse_draft_tree(
        torch.tensor([1, -1, -1]), torch.tensor([-1, 2, -1]), torch.tensor([0, 97, 120]), bitmask
    )
    return [done, bitmask.tolist()]


def _batch(xgr: Package) -> Any:
    batch = xgr.BatchGrammarMatcher()
    several = [matcher(xgr, 'root ::= "a"+'), matcher(xgr, 'root ::= "b"')]
    bitmask = xgr.allocate_token_bitmask(3, len(TOKENS))
    steps: list[Any] = [batch.batch_fill_next_token_bitmask(several, bitmask, [2, 0])]
    steps += [bitmask.tolist(), batch.batch_accept_token(several, [97, 97])]
    steps += [batch.batch_accept_string(several, ["a", "b"]), batch.batch_rollback(several, [2, 1])]
    steps += [allowed(xgr, each) for each in several]
    steps += [fails(lambda: batch.batch_accept_token(several, [1]))]
    return [*steps, fails(lambda: batch.batch_fill_next_token_bitmask(several, bitmask, [0, 7]))]


def _temperature(xgr: Package) -> Any:
    import torch

    plain = matcher(xgr, 'root ::= "a"', default_temperature=0.5)
    filled = torch.zeros(2)
    xgr.BatchGrammarMatcher.batch_fill_temperature([plain, matcher(xgr, 'root ::= "a"')], filled)
    return [plain.temperature, matcher(xgr, 'root ::= "a"').temperature, filled.tolist()]


def _apply(xgr: Package) -> Any:
    import torch

    logits = torch.zeros((2, 40))
    bitmask = torch.tensor([[5, 0], [-1, 0]], dtype=torch.int32)
    xgr.apply_token_bitmask_inplace(logits, bitmask, indices=[0])
    xgr.apply_token_bitmask_inplace(logits[1], bitmask[1], vocab_size=34)
    open_ones = [row.nonzero()[:, 0].tolist() for row in logits == 0]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        wide = torch.zeros((1, 70))
        xgr.apply_token_bitmask_inplace(wide, bitmask[:1])
    return [
        *open_ones,
        (wide == 0).nonzero()[:, 1].tolist(),
        len(seen),
        fails(lambda: xgr.apply_token_bitmask_inplace(torch.zeros((3, 40)), bitmask)),
        fails(lambda: xgr.apply_token_bitmask_inplace(logits, bitmask, backend="none")),
    ]


def _kernels(xgr: Package) -> Any:
    import torch

    bitmask = torch.tensor([[5, 0], [6, 0]], dtype=torch.int32)
    seen = []
    for name in ("cpu", "torch"):
        module = import_module(f"{xgr.__name__}.kernels.apply_token_bitmask_inplace_{name}")
        apply = getattr(module, f"apply_token_bitmask_inplace_{name}")
        logits = torch.zeros((2, 40))
        apply(logits, bitmask, indices=[1])
        apply(logits[0], bitmask[0], 34)
        seen.append([row.nonzero()[:, 0].tolist() for row in logits == 0])
    return seen


def _families(xgr: Package) -> Any:
    module = import_module(f"{xgr.__name__}.builtin_structural_tag")
    schema = import_module(f"{xgr.__name__}.openai_tool_call_schema")
    tool = schema.FunctionToolParam.model_validate(
        {
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
    )
    tag = module.get_qwen_3_structural_tag([tool], tool_choice="required", reasoning="disabled")
    call = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
    return fits(xgr, compiler(xgr).compile_structural_tag(tag), call, call.replace("1", '""'), "so")


def _saved(xgr: Package) -> Any:
    grammar = xgr.Grammar.from_ebnf('root ::= "a" | "b"')
    compiled = compiler(xgr).compile_grammar(grammar)
    info = xgr.TokenizerInfo(TOKENS, stop_token_ids=[STOP])
    other = xgr.TokenizerInfo(TOKENS, stop_token_ids=[0])
    again = xgr.Grammar.deserialize_json(grammar.serialize_json())
    read = xgr.CompiledGrammar.deserialize_json(compiled.serialize_json(), info)
    told = xgr.TokenizerInfo.deserialize_json(info.serialize_json())

    def class_of(call: Any) -> str:
        try:
            call()
        except RuntimeError as error:
            return type(error).__name__
        return "nothing"

    return [
        fits(xgr, compiler(xgr).compile_grammar(again), "a", "c"),
        fits(xgr, read, "b", "c"),
        [told.vocab_size, told.stop_token_ids, told.decoded_vocab[97]],
        class_of(lambda: xgr.Grammar.deserialize_json("{")),
        class_of(lambda: xgr.Grammar.deserialize_json("{}")),
        class_of(lambda: xgr.Grammar.deserialize_json('{"__VERSION__": "v0"}')),
        class_of(lambda: xgr.TokenizerInfo.deserialize_json("{}")),
        class_of(lambda: xgr.CompiledGrammar.deserialize_json(compiled.serialize_json(), other)),
    ]


def _tokenizer(xgr: Package) -> Any:
    info = xgr.TokenizerInfo(
        ["\u2581a", "<0x0A>", "</s>", ""], xgr.VocabType.BYTE_FALLBACK, vocab_size=6
    )
    again = xgr.TokenizerInfo.from_vocab_and_metadata(
        ["\u2581a", "<0x0A>", "</s>", ""], info.dump_metadata()
    )
    return [
        info.vocab_size,
        info.vocab_type.name,
        info.vocab_type.value,
        info.stop_token_ids,
        info.special_token_ids,
        info.decoded_vocab[:2],
        info.add_prefix_space,
        json.loads(info.dump_metadata()),
        again.stop_token_ids,
        fails(lambda: xgr.TokenizerInfo(["a", "b"], vocab_size=1)),
    ]


def _classes_of_tags(xgr: Package) -> Any:
    def class_of(tag: Any) -> str:
        try:
            xgr.Grammar.from_structural_tag(tag)
        except (RuntimeError, TypeError) as error:
            return type(error).__name__
        return "nothing"

    bad = {"type": "structural_tag", "format": {"type": "nothing_known"}}
    return [class_of(tag) for tag in ("{", {}, bad, json.dumps(bad), 5, TAG)]


def _tags(xgr: Package) -> Any:
    texts = ("so", '<f>{"a": 1, "b": 2}</f>', '<f>{"a": 1}</f>', "x <f>{}")
    item = xgr.StructuralTagItem(begin="<f>", schema=json.dumps(TWO), end="</f>")
    made = compiler(xgr)
    return [
        fits(xgr, made.compile_structural_tag(TAG), *texts),
        fits(xgr, made.compile_structural_tag(json.dumps(TAG)), *texts),
        fits(xgr, made.compile_structural_tag(xgr.StructuralTag.from_json(TAG)), *texts),
        fits(xgr, made.compile_structural_tag([item], ["<f"]), *texts),
        fits(xgr, made.compile_structural_tag(tags=[item], triggers=["<f"]), *texts),
    ]


def _lark_in_tags(xgr: Package) -> Any:
    formats = xgr.structural_tag
    tag = xgr.StructuralTag(
        format=formats.TagFormat(
            begin="<",
            content=formats.GrammarFormat(syntax="lark", grammar='start: ("a" | /[0-9]+/)+'),
            end=">",
        )
    )
    given = {"type": "grammar", "grammar": "start: /a+/", "syntax": "lark"}
    wrong = {"format": {**given, "syntax": "gbnf"}}
    return [
        fits(xgr, compiler(xgr).compile_structural_tag(tag), "<a12a>", "<b>", "<>"),
        fits(xgr, compiler(xgr).compile_structural_tag({"format": given}), "aa", ""),
        raised(lambda: compiler(xgr).compile_structural_tag(wrong)),
    ]


MARKERS = ("<a>", "</a>", "<b>", "<<a>>")
MARKED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "marker_tokens.json").read_text(encoding="utf-8")
)
"""Formats, each with what it is where its markers are tokens; fields by default are left out."""


def _marker_tokens(xgr: Package) -> Any:
    """Each format with its markers as tokens, or the class of the error."""
    module = import_module(f"{xgr.__name__}.builtin_structural_tag")
    found: list[Any] = []
    for row in MARKED:
        tag = xgr.StructuralTag.model_validate({"format": row["given"]})
        register = module.register_model_structural_tag("marked", marker_tokens=list(MARKERS))
        register(lambda *given, tag=tag, **options: tag)
        try:
            made = xgr.get_model_structural_tag("marked", token_markers=True)
            found.append(json.loads(json.dumps(made.model_dump(exclude_defaults=True)["format"])))
        except ValueError:
            found.append("ValueError")
    return found


def _no_marker_tokens(xgr: Package) -> Any:
    module = import_module(f"{xgr.__name__}.builtin_structural_tag")
    literal = {"type": "const_string", "value": "<a>"}
    tag = xgr.StructuralTag.model_validate({"format": literal})
    module.register_model_structural_tag("unmarked")(lambda *given, **options: tag)
    return [
        raised(lambda: xgr.get_model_structural_tag("unmarked", token_markers=True)),
        raised(lambda: xgr.get_model_structural_tag("llama", token_markers=True)),
        raised(lambda: xgr.get_model_structural_tag("qwen_3", token_markers=1)),
        xgr.get_model_structural_tag("unmarked").model_dump(),
    ]


_CALL_MARKERS = ["<think>", "</think>", "<tool_call>", "</tool_call>"]
_CALL_MARKERS += ["<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"]


def _calls_by_token(xgr: Package) -> Any:
    """Which calls fit where their markers are tokens, and the same spelled by bytes."""
    spelled = [*(bytes([byte]) for byte in range(256)), *(m.encode() for m in _CALL_MARKERS)]
    info = xgr.TokenizerInfo([*spelled, b"<stop>"], stop_token_ids=[len(spelled)])
    made = xgr.GrammarCompiler(info)
    properties = {"x": {"type": "integer"}}
    parameters = {"type": "object", "properties": properties, "required": ["x"]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    written = {
        "qwen_3": '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>',
        "qwen_3_coder": (
            "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>"
        ),
        "glm_4_7": "<tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>",
    }
    found: list[Any] = []
    for family, call in written.items():
        tag = xgr.get_model_structural_tag(
            family, tools, "required", reasoning=False, token_markers=True
        )
        compiled = made.compile_structural_tag(tag)
        for markers in (_CALL_MARKERS[:4], []):
            at = xgr.GrammarMatcher(compiled)
            rest, steps = call, []
            while rest:
                marker = next((one for one in markers if rest.startswith(one)), None)
                steps.append(rest.encode()[0] if marker is None else spelled.index(marker.encode()))
                rest = rest[1 if marker is None else len(marker) :]
            found.append(all(at.accept_token(step) for step in steps) and at.is_completed())
    return found


def _tag_values(xgr: Package) -> Any:
    formats = xgr.structural_tag
    tag = xgr.StructuralTag(
        format=formats.SequenceFormat(
            elements=[formats.ConstStringFormat(value="a"), formats.RegexFormat(pattern="b.d")]
        )
    )
    tag.format.elements.append(
        formats.OptionalFormat(content=formats.GrammarFormat(grammar='root ::= "e"'))
    )
    return [
        fits(xgr, compiler(xgr).compile_structural_tag(tag), "ab\nd", "abcde", "abc"),
        tag.model_dump(),
    ]


def _lark(xgr: Package) -> Any:
    made = compiler(xgr).compile_lark(
        'start: (x ",")* @end\nx[capture="n"]: /[a-z]+/\n',
        named_grammars={"end": xgr.Grammar.from_ebnf('root ::= "!"')},
    )
    at = xgr.GrammarMatcher(made)
    at.accept_string("ab,cd,!")
    return [at.is_completed(), at.get_captures()]


def _cache(xgr: Package) -> Any:
    made = compiler(xgr, cache_limit_bytes=1 << 20)
    made.compile_regex("[a-z]+")
    sizes = [made.get_cache_size_bytes() > 0]
    made.clear_cache()
    return [*sizes, made.get_cache_size_bytes(), made.cache_limit_bytes]


def _depth(xgr: Package) -> Any:
    before = xgr.get_max_recursion_depth()
    with xgr.max_recursion_depth(77):
        within = xgr.get_max_recursion_depth()
    refused = each_fails(xgr.set_max_recursion_depth, -1, 2_000_000)
    return [before, within, xgr.get_max_recursion_depth(), *refused]


def _testing(xgr: Package) -> Any:
    import torch

    bits = torch.tensor([[2]], dtype=torch.int32)
    bools = torch.tensor([[True, False, True]])
    return [
        xgr.testing._is_grammar_accept_string('root ::= "a"+', "aa"),
        xgr.testing._is_grammar_accept_string('root ::= "a"+', "ab"),
        xgr.testing._is_grammar_accept_string('root ::= "a" "b"', "a", require_termination=False),
        xgr.testing._get_masked_tokens_from_bitmask(bits, 5),
        xgr.testing._is_single_token_bitmask(bits, 8),
        xgr.testing.bitmask_to_bool_mask(bits, 3).tolist(),
        xgr.testing.bitmask_to_bool_mask(xgr.testing.bool_mask_to_bitmask(bools), 3).tolist(),
    ]


def _choices(xgr: Package) -> Any:
    tools = [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
        {"type": "function", "function": {"name": "g"}},
        {"type": "web_search", "name": "search", "parameters": {"type": "object"}},
    ]

    def plain(choice: Any) -> Any:
        try:
            functions, builtins, left = xgr.normalize_tool_choice(tools, choice)
        except ValueError:
            return "ValueError"
        return [f.function.name for f in functions], [b.type for b in builtins], left

    named = {"type": "function", "function": {"name": "g"}}
    some = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}
    wrong = {"type": "function", "function": {"name": "h"}}
    choices = ["auto", "none", "required", None, named, some, {"type": "web_search"}, wrong]
    return [plain(choice) for choice in choices]


def _masks_of_schema(xgr: Package) -> Any:
    made = compiler(xgr)
    return [
        masks_along(xgr, made.compile_json_schema(TWO), '{"a": 12, "b": 30}'),
        masks_along(xgr, made.compile_json_schema(TWO, any_whitespace=False), '{"a": 1, "b": 2}'),
        masks_along(
            xgr,
            made.compile_json_schema(TWO, any_whitespace=False, separators=(",", ":")),
            '{"a":1,"b":2}',
        ),
        masks_along(xgr, made.compile_json_schema({"enum": ["ab", "ac", None]}), '"ac"'),
        masks_along(xgr, made.compile_regex("[a-c]{2,3}x?"), "abcx"),
        masks_along(
            xgr, made.compile_grammar('root ::= "a" x*\nx ::= [bc] | "d" root "e"'), "abdaeb"
        ),
    ]


def draft_temperatures(xgr: Any) -> list[Any]:
    """Of a tree of two nodes: as float32, and where they would be rounded."""
    first, sibling = torch.tensor([1, -1]), torch.tensor([-1, -1])
    drafts = torch.tensor([0, TOKENS.index(b"a")])

    def written(temperatures: Any) -> list[float]:
        at = matcher(xgr, 'root ::= "ab"', default_temperature=0.5)
        bitmask = xgr.allocate_token_bitmask(2, len(TOKENS))
        at.traverse_draft_tree(first, sibling, drafts, bitmask, temperatures=temperatures)
        found: list[float] = temperatures.tolist()
        return found

    whole = torch.zeros(1, dtype=torch.int64)
    return [
        written(torch.zeros(2)),
        fails(lambda: written(torch.zeros(2, dtype=torch.int64))),
        fails(
            lambda: xgr.BatchGrammarMatcher.batch_fill_temperature(
                [matcher(xgr, 'root ::= "ab"')], whole
            )
        ),
    ]


SAME: dict[str, tuple[Any, Any]] = {
    "kernels by their names": (
        _kernels,
        [[[0, 2, *range(34, 40)], [1, 2]]] * 2,
    ),
    "an integer that is given": (lambda xgr: schema(xgr, {"enum": [1]}, "1", "1.0"), [True, False]),
    "functions of families": (_families, [True, False, False]),
    "texts that end by themselves have no stop token": (
        _never_stops,
        [[True, [98]], [True, [30, 65, 99]]],
    ),
    "tokens of what must come": (
        _jumps,
        [
            *([256, 100], [], [257, 100], [], [], [113], [169, 122], [122, 262, 260, 33]),
            *([], [], [113], [120, 121, 122, 119], [261, 119], []),
        ],
    ),
    "the end of a text, and back": (
        _end,
        [
            True,
            False,
            True,
            True,
            False,
            [99, STOP],
            True,
            True,
            True,
            False,
            False,
            False,
            "RuntimeError",
            "RuntimeError",
            False,
            True,
            [STOP],
        ],
    ),
    "rolling back, where a text counts as one token": (
        _rollback,
        ["RuntimeError", [STOP], [97, 256], [97, 256], -1],
    ),
    "a text that ends by itself": (_by_itself, [False, True, True, False, []]),
    "other stop tokens": (
        lambda xgr: [
            (at := matcher(xgr, 'root ::= "ab"', override_stop_tokens=0)).stop_token_ids,
            at.accept_string("ab"),
            allowed(xgr, at),
        ],
        [[0], True, [0]],
    ),
    "tokens out of range": (
        lambda xgr: [matcher(xgr, 'root ::= "a"').accept_token(token) for token in (5000, -1)],
        [False, False],
    ),
    "a fork": (_fork, [True, False, True, False]),
    "forced text": (
        lambda xgr: [
            (at := matcher(xgr, 'root ::= "abc" [de]')).find_jump_forward_string(),
            at.accept_string("ab"),
            at.find_jump_forward_string(),
            at.accept_string("c"),
            at.find_jump_forward_string(),
        ],
        ["abc", True, "c", True, ""],
    ),
    "a tree of drafts": (
        _draft_tree,
        [True, [[0, 0, 0, 2, 0, 0, 0, 0, 1], [0, 0, 0, 12, 0, 0, 0, 0, 0], [0] * 9]],
    ),
    "a batch": (
        _batch,
        [
            None,
            [[0, 0, 0, 4] + [0] * 5, [-1] * 9, [0, 0, 0, 2] + [0] * 5],
            [True, False],
            [True, True],
            None,
            [97],
            [98],
            "RuntimeError",
            "RuntimeError",
        ],
    ),
    "temperatures": (_temperature, [0.5, None, [0.5, -1.0]]),
    "logits": (
        _apply,
        [
            [0, 2],
            list(range(32)) + list(range(34, 40)),
            [0, 2, *range(64, 70)],
            1,
            "RuntimeError",
            "ValueError",
        ],
    ),
    "what is saved is read again, and what is not is refused": (
        _saved,
        [[True, False], [True, False], [258, [STOP], b"a"], "InvalidJSONError"]
        + ["DeserializeVersionError"] * 3
        + ["DeserializeFormatError"],
    ),
    "vocabularies": (
        _tokenizer,
        [
            6,
            "BYTE_FALLBACK",
            1,
            [2],
            [3, 4, 5],
            [b" a", b"\n"],
            False,
            {"vocab_type": 1, "vocab_size": 6, "add_prefix_space": False, "stop_token_ids": [2]},
            [2],
            "RuntimeError",
        ],
    ),
    "schemas, strict and as declared": (
        lambda xgr: schema(
            xgr,
            TWO,
            *('{"a":1,"b":2}', '{"b":1,"a":2}', '{"a":1}', '{"a":1,"b":2,"c":3}'),
            *('{ "a"\n:\t1 ,"b":2 }', ' {"a":1,"b":2}', '{"a":1.0,"b":2}', '{"\\u0061":1,"b":2}'),
        ),
        [True, False, False, False, True, False, False, False],
    ),
    "schemas that are not strict": (
        lambda xgr: schema(xgr, TWO, '{"a":1,"b":2,"c":3}', strict_mode=False),
        [True],
    ),
    "schemas in any order": (
        lambda xgr: schema(xgr, TWO, '{"b":1,"a":2}', '{"a":1,"b":2}', any_order=True),
        [True, True],
    ),
    "schemas with a layout": (
        lambda xgr: [
            *schema(xgr, TWO, '{"a": 1, "b": 2}', '{"a":1,"b":2}', any_whitespace=False),
            *schema(xgr, TWO, '{\n  "a": 1,\n  "b": 2\n}', any_whitespace=False, indent=2),
        ],
        [True, False, True],
    ),
    "schemas with short runs of blanks": (
        lambda xgr: schema(xgr, TWO, '{"a":  1,"b":2}', '{"a":   1,"b":2}', max_whitespace_cnt=2),
        [True, False],
    ),
    "objects that say nothing more are open in strict mode": (
        lambda xgr: [
            *schema(xgr, {"type": "object"}, "{}", '{"x":1}'),
            *schema(xgr, {"anyOf": [{"type": "object"}, {"type": "null"}]}, '{"x":1}', "null"),
            *schema(xgr, {"type": "array"}, "[1]"),
        ],
        [True, True, True, True, True],
    ),
    "options that no schema can have": (
        lambda xgr: each_fails(
            lambda options: xgr.Grammar.from_json_schema(TWO, **options),
            {"max_whitespace_cnt": 0},
            {"max_whitespace_cnt": -1},
            {"any_whitespace": False, "indent": -1},
        ),
        ["RuntimeError"] * 3,
    ),
    "stop tokens and temperatures that none can be": (
        lambda xgr: each_fails(
            lambda options: matcher(xgr, 'root ::= "ab"', **options),
            {"override_stop_tokens": []},
            {"override_stop_tokens": [-1]},
            {"override_stop_tokens": [10_000]},
            {"default_temperature": -1.0},
            {"default_temperature": math.nan},
        ),
        ["RuntimeError"] * 5,
    ),
    "taking back None": (
        lambda xgr: fails(lambda: matcher(xgr, 'root ::= "ab"').rollback(None)),
        "TypeError",
    ),
    "temperatures of drafts": (
        lambda xgr: draft_temperatures(xgr),
        [[0.5, 0.5], "RuntimeError", "RuntimeError"],
    ),
    "entries that are bytes of no text": (
        lambda xgr: [
            xgr.TokenizerInfo([b"\xff", "a"], getattr(xgr.VocabType, kind)).decoded_vocab
            for kind in ("RAW", "BYTE_FALLBACK", "BYTE_LEVEL")
        ],
        [[b"\xff", b"a"]] * 3,
    ),
    "vocabularies that are no list": (
        lambda xgr: each_fails(xgr.TokenizerInfo, "ab", {"a": 1, "b": 0}),
        ["TypeError"] * 2,
    ),
    "schemas as text and as models": (
        lambda xgr: [
            schema(xgr, json.dumps(TWO), '{"a":1,"b":2}'),
            raised(lambda: xgr.Grammar.from_json_schema(5)),
            raised(lambda: xgr.Grammar.from_json_schema("{")),
        ],
        [[True], "ValueError", "RuntimeError"],
    ),
    "any object and any array": (
        lambda xgr: fits(
            xgr, compiler(xgr).compile_builtin_json_grammar(), '{"a":[1 , null]}', "1", "[", " 1"
        ),
        [True, False, False, False],
    ),
    "regular expressions": (
        lambda xgr: [
            *fits(xgr, compiler(xgr).compile_regex("a.c|^d$"), "abc", "a\nc", "xabc", "d"),
            *each_fails(xgr.Grammar.from_regex, "a(", r"(a)\1", "[b-a]"),
        ],
        [True, True, False, True, "RuntimeError", "RuntimeError", "RuntimeError"],
    ),
    "EBNF": (
        lambda xgr: [
            fits(xgr, compiler(xgr).compile_grammar('x ::= "a"', root_rule_name="x"), "a"),
            *each_fails(xgr.Grammar.from_ebnf, "", "root ::= y", 'root ::= "'),
        ],
        [[True], "RuntimeError", "RuntimeError", "RuntimeError"],
    ),
    "joining grammars": (
        lambda xgr: [
            fits(xgr, compiler(xgr).compile_grammar(join(a, b)), "ab", "a", "b")
            for a, b in [(xgr.Grammar.from_ebnf('root ::= "a"'), xgr.Grammar.from_regex("b"))]
            for join in (xgr.Grammar.concat, xgr.Grammar.union)
        ],
        [[True, False, False], [False, True, True]],
    ),
    "what is of another type": (
        lambda xgr: [
            raised(lambda: xgr.GrammarCompiler(3)),
            raised(lambda: xgr.GrammarMatcher(3)),
            raised(lambda: compiler(xgr).compile_grammar(3)),
            raised(lambda: xgr.Grammar.from_structural_tag(1, 2, 3)),
            raised(lambda: xgr.Grammar.from_lark("start: @x", named_grammars={"x": 3})),
        ],
        ["ValueError", "ValueError", "ValueError", "TypeError", "TypeError"],
    ),
    "structural tags, as values, text and in the older form": (
        _tags,
        [[True, True, False, False]] * 5,
    ),
    "structural tags may be changed before they are used": (
        _tag_values,
        [
            [True, True, False],
            {
                "type": "structural_tag",
                "format": {
                    "type": "sequence",
                    "elements": [
                        {"type": "const_string", "value": "a"},
                        {"type": "regex", "pattern": "b.d"},
                        {
                            "type": "optional",
                            "content": {
                                "type": "grammar",
                                "grammar": 'root ::= "e"',
                                "syntax": "ebnf",
                            },
                        },
                    ],
                },
            },
        ],
    ),
    "Lark in structural tags": (
        _lark_in_tags,
        [[True, False, False], [True, False], "RuntimeError"],
    ),
    "markers as tokens": (_marker_tokens, [row["bound"] for row in MARKED]),
    "markers that are not known": (
        _no_marker_tokens,
        [
            *["ValueError"] * 3,
            {"type": "structural_tag", "format": {"type": "const_string", "value": "<a>"}},
        ],
    ),
    "calls whose markers are tokens": (_calls_by_token, [True, False] * 3),
    "what is wrong with structural tags": (
        _classes_of_tags,
        ["InvalidJSONError"] + ["InvalidStructuralTagError"] * 3 + ["TypeError", "nothing"],
    ),
    "Lark with names and captures": (_lark, [True, [("n", b"ab"), ("n", b"cd")]]),
    "the cache": (_cache, [True, 0, 1 << 20]),
    "the bound on recursion": (_depth, [10_000, 77, 10_000, "RuntimeError", "RuntimeError"]),
    "helpers for tests": (
        _testing,
        [True, False, True, [0, 2, 3, 4], (True, 1), [[False, True, False]], [[True, False, True]]],
    ),
    "choices of tools": (
        _choices,
        [
            (["f", "g"], ["web_search"], "auto"),
            ([], [], "auto"),
            (["f", "g"], ["web_search"], "required"),
            (["f", "g"], ["web_search"], "auto"),
            (["g"], [], "forced"),
            (["g"], [], "required"),
            ([], ["web_search"], "forced"),
            "ValueError",
        ],
    ),
}

MASKS = _masks_of_schema
"""The same masks for the same grammar; too long to write down."""


def _pattern(xgr: Package) -> Any:
    return schema(xgr, {"type": "string", "pattern": "b"}, '"b"', '"abc"')


DIFFERENT: dict[str, Difference] = {
    "`pattern` of a schema": Difference(_pattern, there=[True, False], here=[True, True]),
    "`any_order=True`: a missing or a repeated key": Difference(
        lambda xgr: schema(xgr, TWO, '{"a":1,"a":2}', '{"a":1,"b":2}', any_order=True),
        there=[True, True],
        here=[False, True],
    ),
    "`uniqueItems`, `contains`": Difference(
        lambda xgr: schema(
            xgr,
            {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
            *("[1, 2]", "[1, 1]"),
        ),
        there=[True, True],
        here=[True, False],
    ),
    "`not`": Difference(
        lambda xgr: schema(xgr, {"type": "string", "not": {"enum": ["a"]}}, '"a"', '"b"'),
        there=[True, True],
        here=[False, True],
    ),
    "`allOf` of several schemas": Difference(
        lambda xgr: schema(xgr, {"allOf": [{"type": "string"}, {"enum": ["a", 1]}]}, '"a"', "1"),
        there=[True, True],
        here=[True, False],
    ),
    "`required` without `properties`, in strict mode": Difference(
        lambda xgr: schema(xgr, {"type": "object", "required": ["x"]}, "{}", '{"x":1}'),
        there=[True, False],
        here=[False, True],
    ),
    "Half of a surrogate pair in a string": Difference(
        lambda xgr: schema(xgr, {"type": "string"}, '"\\ud800"'), there=[True], here=[False]
    ),
    "Flags, and classes of Unicode, in a regular expression": Difference(
        lambda xgr: each_fails(xgr.Grammar.from_regex, "(?i)a", r"\p{L}"),
        there=["RuntimeError", "RuntimeError"],
        here=[True, True],
    ),
    "A grammar without a text": Difference(
        lambda xgr: [
            fails(lambda: xgr.Grammar.from_ebnf("root ::= root")),
            fails(xgr.Grammar.union),
        ],
        there=[True, True],
        here=["RuntimeError", "RuntimeError"],
    ),
    "A vocabulary without tokens": Difference(
        lambda xgr: fails(lambda: xgr.TokenizerInfo([])), there=True, here="RuntimeError"
    ),
    "A stop token out of range": Difference(
        lambda xgr: fails(lambda: xgr.TokenizerInfo(["a"], stop_token_ids=[7])),
        there=True,
        here="RuntimeError",
    ),
    "`rollback` of a negative number": Difference(
        lambda xgr: fails(lambda: matcher(xgr, 'root ::= "a"').rollback(-1)),
        there=True,
        here="RuntimeError",
    ),
    "`separators` that hold more than whitespace around `,` and `:`": Difference(
        lambda xgr: fails(
            lambda: xgr.Grammar.from_json_schema(TWO, any_whitespace=False, separators=(";", ": "))
        ),
        there=True,
        here="RuntimeError",
    ),
    "`get_captures(deduplicate=False)`": Difference(
        lambda xgr: fails(lambda: matcher(xgr, 'root ::= "a"').get_captures(deduplicate=False)),
        there=True,
        here="RuntimeError",
    ),
    "Saved values": Difference(
        lambda xgr: xgr.get_serialization_version().startswith("stencilm-"),
        there=False,
        here=True,
    ),
    "How a grammar prints": Difference(
        lambda xgr: str(xgr.Grammar.from_ebnf('root ::= "a"')).strip(),
        there='root ::= (("a"))',
        here='root ::= "a"',
    ),
    "`testing.GrammarFunctor` and what else shows the insides": Difference(
        lambda xgr: hasattr(xgr.testing, "GrammarFunctor"), there=True, here=False
    ),
    "`get_model_structural_tag`: families": Difference(
        lambda xgr: fails(lambda: xgr.get_model_structural_tag("hermes")),
        there="ValueError",
        here=True,
    ),
}
