"""Questions to llguidance and to what stands in for it."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from compat.cases import Difference, Package, fails, raised

STOP = 257
TOOL = 258
TWO = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class Bytes:
    """One token for each byte, one for "ab", and two special ones; it writes the bytes."""

    eos_token_id = STOP
    bos_token_id = None
    tokens = (*(bytes([byte]) for byte in range(256)), b"ab", b"<|end|>", b"<|tool|>")
    special_token_ids = (STOP, TOOL)

    def __call__(self, given: str | bytes) -> list[int]:
        return list(given if isinstance(given, bytes) else given.encode())


def tokenizer(lib: Package) -> Any:
    return lib.LLTokenizer(lib.TokenizerWrapper(Bytes()))


def matcher(lib: Package, grammar: str) -> Any:
    return lib.LLMatcher(tokenizer(lib), grammar, log_level=0)


def allowed(at: Any) -> list[int]:
    """The tokens that may come next."""
    mask = at.compute_bitmask()
    return [token for token in range(len(Bytes.tokens)) if mask[token // 8] >> token % 8 & 1]


def state(at: Any) -> Any:
    return [
        at.is_error(),
        bool(at.get_error()),
        at.is_accepting(),
        at.is_stopped(),
        at.stop_reason(),
    ]


def fits(lib: Package, grammar: str, *texts: str) -> list[bool]:
    """Which texts fit as a whole."""
    answers = []
    for text in texts:
        at = matcher(lib, grammar)
        answers.append(at.try_consume_tokens(list(text.encode())) == len(text.encode()))
        answers[-1] &= at.is_accepting()
    return answers


def schema(lib: Package, given: Any, *texts: str, **options: Any) -> list[bool]:
    return fits(lib, lib.LLMatcher.grammar_from_json_schema(given, overrides=options), *texts)


def masks_along(lib: Package, grammar: str, text: str) -> list[list[int]]:
    at = matcher(lib, grammar)
    masks = [allowed(at)]
    for byte in text.encode():
        assert at.consume_token(byte)
        masks.append(allowed(at))
    return masks


def _end(lib: Package) -> Any:
    at = matcher(lib, 'start: "ab" | "abc"')
    steps: list[Any] = [
        state(at),
        at.consume_token(97),
        at.consume_token(98),
        state(at),
        allowed(at),
    ]
    steps += [at.validate_tokens([99, STOP]), at.validate_tokens([STOP]), at.validate_tokens([100])]
    steps += [at.try_consume_tokens([99, STOP, 5]), state(at), allowed(at), at.compute_ff_tokens()]
    steps += [at.validate_tokens([STOP]), at.try_consume_tokens([STOP]), at.consume_token(STOP)]
    steps += [at.rollback(1), state(at), at.consume_token(STOP), state(at), allowed(at)]
    steps += [at.rollback(0), state(at)]
    return [*steps, at.consume_token(STOP), at.rollback(1), state(at), allowed(at)]


def _errors(lib: Package) -> Any:
    steps: list[Any] = []
    for grammar, token in (('start: "ab"', 120), ('start: "ab"', 5000), ('start: "ab', 97)):
        at = matcher(lib, grammar)
        steps += [at.consume_token(token), state(at), allowed(at), at.reset(), at.is_error()]
        steps += [at.validate_tokens([97]), at.try_consume_tokens([97]), at.compute_ff_tokens()]
    at = matcher(lib, 'start: "ab"')
    steps += [at.consume_tokens([97, 98, 99]), at.is_error()]
    at = matcher(lib, 'start: "ab"')
    at.consume_token(97)
    steps += [raised(lambda: at.rollback(-1)), at.rollback(9), state(at)]
    return steps


def _copies(lib: Package) -> Any:
    at = matcher(lib, 'start: "a" "b"')
    at.consume_token(97)
    other = at.deep_copy()
    return [
        other.consume_token(98),
        other.is_stopped(),
        at.is_stopped(),
        at.reset(),
        allowed(at)[:1],
    ]


def _captures(lib: Package) -> Any:
    at = matcher(lib, 'start: x x\nx[capture="n"]: /[a-z]/ "!"')
    at.consume_tokens(list(b"a!b!"))
    return [at.get_captures(), at.get_capture("n"), at.get_capture("other")]


def _masks(lib: Package) -> Any:
    import numpy as np

    arrays = import_module(f"{lib.__name__}.numpy")
    size = tokenizer(lib).vocab_size
    at = matcher(lib, "start: /[bc]d/")
    bitmask = arrays.allocate_token_bitmask(4, size)
    arrays.fill_next_token_bitmask(at, bitmask, 1)
    rows = [bitmask.tolist()]
    executor = lib.LLExecutor()
    arrays.fill_next_token_bitmask_par(executor, [(at, 0)], bitmask)
    rows.append(bitmask.tolist())
    drafts = arrays.allocate_token_bitmask(4, size)
    arrays.fill_next_token_bitmask_par_with_draft_tokens(executor, [(at, 0, [98, 100, 99])], drafts)
    rows.append(drafts.tolist())
    again = arrays.allocate_token_bitmask(4, size)
    arrays.fill_next_token_bitmask_par_with_draft_tokens(executor, [(at, 1, [98, 98])], again)
    rows.append(again.tolist())
    logits = np.zeros((1, 300), dtype=np.float32)
    arrays.apply_token_bitmask_inplace(logits, bitmask[:1])
    bias = at.compute_logit_bias()
    return [
        rows,
        np.flatnonzero(logits[0] == 0).tolist(),
        [len(bias), [token for token, value in enumerate(bias) if value == 200]],
        arrays.consume_token_par(executor, [(at, 98)]),
        fails(lambda: at.unsafe_compute_mask_ptr(0, 36)),
        fails(lambda: at.unsafe_compute_mask_ptr(bitmask.ctypes.data, 4)),
    ]


def _masks_of_torch(lib: Package) -> Any:
    import torch

    tensors = import_module(f"{lib.__name__}.torch")
    bitmask = tensors.allocate_token_bitmask(2, tokenizer(lib).vocab_size)
    at = matcher(lib, "start: /[bc]d/")
    tensors.fill_next_token_bitmask(at, bitmask, 1)
    tensors.fill_next_token_bitmask_par(lib.LLExecutor(), [(at, 0)], bitmask)
    return [
        tensors.get_bitmask_shape(2, 33),
        bitmask.tolist(),
        raised(lambda: tensors.fill_next_token_bitmask(at, torch.zeros((1, 9)))),
    ]


def _tokens(lib: Package) -> Any:
    made = tokenizer(lib)
    return [
        [made.vocab_size, made.eos_token, made.eos_tokens, made.is_canonical],
        [made.greedy_tokenize("abc"), made.tokenize_str("abc"), made.tokenize_bytes(b"ab\xff")],
        [made.decode_str([97, STOP, 256]), made.decode_bytes([97, TOOL])],
        [made.is_special_token(STOP), made.is_special_token(97), made.tokenize_partial(b"abc")],
        [made.dbg_tokens([97, 256, STOP]), made.test_trace_tokens([97])],
        [lib.LLTokenizer("byte").vocab_size, made.with_slices([]).vocab_size],
        fails(lambda: lib.LLTokenizer("no such file")),
        fails(lambda: lib.LLMatcher(3, "x")),
    ]


def _notations(lib: Package) -> Any:
    made = lib.grammar_from
    schema_text = '{"type": "integer"}'
    return [
        fits(lib, made("lark", 'start: "a"'), "a", "b"),
        fits(lib, made("gbnf", 'root ::= "a" | b\nb ::= [x-z]+'), "a", "zx", "b"),
        fits(lib, made("json_schema", schema_text), "12", "x"),
        fits(lib, made("regex", "a/b|c"), "a/b", "c", "a"),
        fits(lib, made("choice", '["a", "b c"]'), "a", "b c", "b"),
        made("llguidance", "z"),
        fails(lambda: made("nothing known", "z")),
        fits(lib, lib.JsonCompiler().compile('{"type": "array"}'), "[1, 2]", "[1,2]"),
        fits(lib, lib.RegexCompiler().compile("a+"), "aa", ""),
        fits(lib, lib.LarkCompiler().compile('start: "a"'), "a"),
        fails(lambda: lib.JsonCompiler().compile('{"type": "object", "minProperties": "x"}')),
        fails(lambda: lib.RegexCompiler().compile("a(")),
        fails(lambda: lib.LarkCompiler().compile('start: "a')),
        lib.RegexCompiler().compile("a(", check=False) != "",
        lib.regex_to_lark("a/b"),
    ]


def _validated(lib: Package) -> Any:
    check = lib.LLMatcher.validate_grammar
    both = lib.LLMatcher.validate_grammar_with_warnings
    using, used = {"lark_grammar": "start: @x"}, {"name": "x", "lark_grammar": 'start: "a"'}
    lists, unknown = json.dumps({"grammars": [using, used]}), json.dumps({"grammars": [using]})
    return [
        [bool(check(grammar)) for grammar in ('start: "a', 'start: "a"', "", "{", lists, unknown)],
        both('start: "a"'),
        both('start: "a')[0],
        bool(check("start: <|nothing|>", tokenizer(lib))),
        fits(lib, lists, "a"),
    ]


def _tags(lib: Package) -> Any:
    tag = lib.StructTag(trigger="<f", begin="<f>", grammar=TWO, end="</f>")
    lark = lib.StructTag(trigger="<g", begin="<g>", grammar='start: "x"', end="</g>")
    texts = ("so", '<f>{"a": 1}</f> y', "<f>{}</f>", "<g>x</g>", "<g>y</g>")
    special = lib.StructTag(trigger="<|tool|>", begin="<|tool|>f", grammar=TWO, end="")
    at = matcher(lib, lib.StructTag.to_grammar([special]))
    return [
        fits(lib, lib.StructTag.to_grammar([tag, lark]), *texts),
        at.consume_tokens([97, TOOL, *b"f{"]),
        at.validate_tokens(list(b'"a":1}')),
        raised(lambda: lib.StructTag(trigger="", begin="", grammar="", end="")),
        raised(lambda: lib.StructTag(trigger="a", begin="b", grammar="", end="")),
    ]


def _draft_masks(lib: Package) -> Any:
    import numpy as np

    answers: list[Any] = []
    for drafts in ([98, 100, 99], [98, 98], [120]):
        rows = np.full((4, 9), 7, dtype=np.int32)
        at = matcher(lib, "start: /[bc]d/")
        at.unsafe_compute_mask_ptr_with_draft_token(rows.ctypes.data, 36, drafts)
        answers += [rows[:, 3].tolist(), allowed(at)]
    rows = np.full((8, 9), 7, dtype=np.int32)
    several = [(matcher(lib, "start: /[bc]d/"), 4 * i, [98 + i, 100]) for i in range(2)]
    executor = lib.LLExecutor(2)
    executor.unsafe_compute_mask_ptr_with_draft_token(several, rows.ctypes.data, 36, 8)
    answers.append(rows[:, 3].tolist())
    executor.unsafe_compute_mask_ptr([(several[0][0], 3)], rows.ctypes.data, 36, 8)
    return [
        *answers,
        rows[:, 3].tolist(),
        fails(lambda: at.unsafe_compute_mask_ptr(6, 36)),
        fails(lambda: at.unsafe_compute_mask_ptr(rows.ctypes.data, 72)),
        fails(lambda: at.unsafe_compute_mask_ptr_with_draft_token(rows.ctypes.data, 72, [98])),
    ]


def _ends_in_lists(lib: Package) -> Any:
    answers: list[Any] = []
    for tokens in ([98, 100, STOP], [97, 98, STOP], [97, 98, STOP, STOP], [98, 100, 98]):
        at = matcher(lib, 'start: /[bc]d/ | "ab" "x"*')
        answers += [at.consume_tokens(tokens), state(at), at.rollback(1), allowed(at)]
    return answers


class Overlapping:
    """Of "aab" only "aa" and "b" are written, though "ab" could begin "abc"."""

    tokens = (b"a", b"b", b"c", b"aa", b"abc", b"abcd", b"</s>")
    special_token_ids = (6,)
    eos_token_id = 6
    bos_token_id = None

    def __call__(self, given: str | bytes) -> list[int]:
        data, ids = given if isinstance(given, bytes) else given.encode(), []
        while data:
            fits = [i for i, each in enumerate(self.tokens[:6]) if data.startswith(each)]
            if not fits:
                raise ValueError(data)
            ids.append(max(fits, key=lambda i: len(self.tokens[i])))
            data = data[len(self.tokens[ids[-1]]) :]
        return ids


def _partly_tokenized(lib: Package) -> Any:
    made = lib.LLTokenizer(lib.TokenizerWrapper(Overlapping()))
    texts = (b"ab", b"aab", b"abc", b"abcd", b"cab", b"caab", b"bb", b"aaaa", b"")
    return [made.tokenize_partial(text) for text in texts]


SAME: dict[str, tuple[Any, Any]] = {
    "the vocabulary of bytes": (
        lambda lib: (
            lambda made: [made.vocab_size, made.eos_tokens, made.decode_str(list(range(256, 262)))]
        )(lib.LLTokenizer("byte")),
        [262, [261], "<|tool|><|/tool|><|user|><|system|><|assistant|><|end|>"],
    ),
    "an empty list of tokens that end": (
        lambda lib: fails(lambda: lib.LLTokenizer("byte", eos_token=[])),
        "ValueError",
    ),
    "GBNF as Lark": (
        lambda lib: _gbnf(import_module(f"{lib.__name__}.gbnf_to_lark")),
        [[True, False], [False, True], "start: /a/", True],
    ),
    "an integer that is given": (lambda lib: schema(lib, {"enum": [1]}, "1", "1.0"), [True, False]),
    "the end of a text, and back": (
        _end,
        [
            [False, False, False, False, "NotStopped"],
            True,
            True,
            [False, False, True, False, "NotStopped"],
            [99, STOP],
            2,
            1,
            0,
            1,
            [False, False, True, True, "NoExtension"],
            [STOP],
            [],
            0,
            0,
            True,
            True,
            [False, False, True, False, "NotStopped"],
            True,
            [False, False, True, True, "EndOfSentence"],
            [STOP],
            True,
            [False, False, True, True, "EndOfSentence"],
            True,
            True,
            [False, False, True, False, "NotStopped"],
            [99, STOP],
        ],
    ),
    "errors are a state that stays": (
        _errors,
        [False, [True, True, False, True, "InternalError"], [STOP], False, True, 0, 0, []] * 3
        + [False, True, "OverflowError", False, [True, True, False, True, "InternalError"]],
    ),
    "copies": (_copies, [True, True, False, True, [97]]),
    "forced text": (
        lambda lib: [
            (at := matcher(lib, 'start: "xyz" | "xyw"')).compute_ff_bytes(),
            at.compute_ff_tokens(),
            matcher(lib, 'start: "x" <|tool|> "c"').compute_ff_tokens(),
        ],
        [b"xy", [120, 121], [120, TOOL, 99]],
    ),
    "captures": (_captures, [[("n", b"a!"), ("n", b"b!")], b"b!", None]),
    "bitmasks and logits": (
        _masks,
        [
            [
                [[-1] * 9, [0, 0, 0, 12, 0, 0, 0, 0, 0], [-1] * 9, [-1] * 9],
                [[0, 0, 0, 12, 0, 0, 0, 0, 0]] * 2 + [[-1] * 9] * 2,
                [[0, 0, 0, 12] + [0] * 5, [0, 0, 0, 16] + [0] * 5, [0] * 8 + [2], [-1] * 9],
                [[-1] * 9, [0, 0, 0, 12] + [0] * 5, [0, 0, 0, 16] + [0] * 5, [-1] * 9],
            ],
            [98, 99],
            [259, [98, 99]],
            [True],
            "ValueError",
            "ValueError",
        ],
    ),
    "bitmasks of torch": (
        _masks_of_torch,
        [(2, 2), [[0, 0, 0, 12, 0, 0, 0, 0, 0]] * 2, "AssertionError"],
    ),
    "vocabularies": (
        _tokens,
        [
            [259, STOP, [STOP], True],
            [[256, 99], [97, 98, 99], [97, 98, 255]],
            ["a<|end|>ab", b"a<|tool|>"],
            [True, False, ([97, 98, 99], b"")],
            ["⟦a‧ab‧≺EOS≻⟧", "a"],
            [262, 259],
            "ValueError",
            "TypeError",
        ],
    ),
    "schemas": (
        lambda lib: schema(
            lib,
            TWO,
            *('{"a":1}', '{"a":1,"b":2}', '{"b":1,"a":2}', "{}", '{ "a"\n:\t1 }', ' {"a":1}'),
            '{"a":1.0}',
        ),
        [True, True, False, False, True, False, False],
    ),
    "schemas without blanks": (
        lambda lib: schema(lib, TWO, '{"a":1,"b":2}', '{"a": 1,"b":2}', whitespace_flexible=False),
        [True, False],
    ),
    "schemas with separators": (
        lambda lib: schema(
            lib,
            TWO,
            *('{"a": 1, "b": 2}', '{"a":1,"b":2}'),
            whitespace_flexible=False,
            item_separator=", ",
            key_separator=": ",
        ),
        [True, False],
    ),
    "`pattern` of a schema matches anywhere": (
        lambda lib: schema(lib, {"type": "string", "pattern": "b"}, '"abc"', '"ac"'),
        [True, False],
    ),
    "options in the schema": (
        lambda lib: fits(
            lib,
            lib.LLMatcher.grammar_from_json_schema(
                {**TWO, "x-guidance": {"whitespace_flexible": True}},
                defaults={"whitespace_flexible": False},
            ),
            '{"a":  1}',
        ),
        [True],
    ),
    "regular expressions": (
        lambda lib: fits(
            lib, lib.LLMatcher.grammar_from_regex("a.c|^d$"), "abc", "a\nc", "xabc", "d"
        ),
        [True, False, False, True],
    ),
    "notations": (
        _notations,
        [[True, False], [True, True, False], [True, False], [True, True, False]]
        + [[True, True, False], "z", "ValueError", [True, False], [True, False], [True]]
        + ["ValueError"] * 3
        + [True, r"a\/b"],
    ),
    "what is wrong with a grammar": (
        _validated,
        [[True, False, True, True, False, True], (False, []), True, True, [True]],
    ),
    "structural tags": (
        _tags,
        [[True, True, False, True, False], True, 6, "AssertionError", "AssertionError"],
    ),
    "a schema that is no schema is an error of the matcher": (
        lambda lib: [
            matcher(lib, lib.LLMatcher.grammar_from_json_schema(text)).is_error()
            for text in ('{"minimum": 3, "maximum": 1, "type": "integer"}', "[1]", "{")
        ],
        [True, True, True],
    ),
    "draft masks at an address": (
        _draft_masks,
        [
            *([12, 16, 0, 7], [98, 99], [12, 16, 7, 7], [98, 99], [12, 7, 7, 7], [98, 99]),
            *([12, 16, 0, 7] * 2, [12, 16, 0, 12, 12, 16, 0, 7]),
            *("ValueError", "ValueError", "ValueError"),
        ],
    ),
    "tokens that end in a list": (
        _ends_in_lists,
        [True, [False, False, True, True, "EndOfSentence"], True, [STOP]]
        + [True, [False, False, True, True, "EndOfSentence"], True, [120, STOP]] * 2
        + [False, [True, True, False, True, "InternalError"], False, [STOP]],
    ),
    "tokens whatever follows": (
        _partly_tokenized,
        [
            *(([], b"ab"), ([], b"aab"), ([], b"abc"), ([5], b""), ([2], b"ab"), ([2], b"aab")),
            *(([1, 1], b""), ([3], b"aa"), ([], b"")),
        ],
    ),
    "Lark where GBNF may stand": (
        lambda lib: [
            fits(lib, lib.grammar_from(form, 'start: "a"+'), "aa", "b")
            for form in ("gbnf", "ebnf", "cfg", "grammar")
        ],
        [[True, False]] * 4,
    ),
    "what is no text, no name, no tag, no bound": (
        lambda lib: [
            fails(lambda: lib.LLMatcher.grammar_from_lark(None)),
            fails(lambda: lib.LarkCompiler().compile(3, check=False)),
            fails(lambda: matcher(lib, "start: /a/").get_capture(None)),
            fails(lambda: lib.StructTag.to_grammar([1])),
            fails(lambda: lib.LLParserLimits(max_items_in_row="a")),
            fails(lambda: lib.LLParserLimits(verbose_errors=3)),
            fails(lambda: lib.LLMatcher(tokenizer(lib), "start: /a/", limits=3)),
            fails(lambda: lib.LLMatcher.grammar_from_json_schema("true", overrides={"lenient": 1})),
            fails(lambda: lib.LLMatcher.grammar_from_json_schema("[1]", defaults={"lenient": 1})),
            fails(lambda: tokenizer(lib).with_slices(3)),
        ],
        ["TypeError"] * 3
        + ["AssertionError"]
        + ["TypeError"] * 3
        + ["ValueError"] * 2
        + ["TypeError"],
    ),
    "limits are told": (
        lambda lib: [
            lib.LLParserLimits(max_items_in_row=3).max_items_in_row,
            lib.LLParserLimits().max_items_in_row,
            lib.LLParserLimits().verbose_errors,
        ],
        [3, 2000, True],
    ),
}


def _gbnf(module: Any) -> Any:
    made = module.gbnf_to_lark('root ::= "a" [0-9]+')
    return [
        [module.is_lark_syntax(made), module.is_lark_syntax('root ::= "start: a"')],
        [module.is_lark_syntax("a: start :"), module.is_lark_syntax("%llguidance {}")],
        module.any_to_lark("start: /a/"),
        module.any_to_lark('root ::= "a" [0-9]+') == made,
    ]


def MASKS(lib: Package) -> Any:
    """The same masks for the same grammar; too long to write down."""
    return [
        masks_along(lib, 'start: "b" x* | "c"\nx: /[d-f]/ | "g" start "h"', "bdgbeh"),
        masks_along(lib, lib.LLMatcher.grammar_from_regex("[b-d]{2,3}x?"), "bcdx"),
        masks_along(
            lib,
            lib.LLMatcher.grammar_from_json_schema({"type": "array", "items": {"type": "integer"}}),
            "[1, 23 ]",
        ),
    ]


def _unsupported(lib: Package, given: dict[str, Any]) -> bool:
    grammar = lib.LLMatcher.grammar_from_json_schema(json.dumps(given))
    return bool(matcher(lib, grammar).is_error())


DIFFERENT: dict[str, Difference] = {
    "Where the text is forced": Difference(
        lambda lib: allowed(matcher(lib, 'start: "abc"')), there=[97], here=[97, 256]
    ),
    "`uniqueItems`, `not`, `propertyNames`, `if`": Difference(
        lambda lib: [
            _unsupported(lib, {"type": "array", "uniqueItems": True}),
            _unsupported(lib, {"type": "string", "not": {"enum": ["a"]}}),
            _unsupported(lib, {"type": "object", "propertyNames": {"maxLength": 3}}),
            _unsupported(lib, {"if": {"type": "string"}, "then": {"maxLength": 3}}),
        ],
        there=[True] * 4,
        here=[False] * 4,
    ),
    "A `format` that is not known": Difference(
        lambda lib: _unsupported(lib, {"type": "string", "format": "shoe-size"}),
        there=True,
        here=False,
    ),
    r"`\/`, `\u0041` and U+007F in a string": Difference(
        lambda lib: schema(lib, {"type": "string"}, r'"\/"', r'"\u0041"', '"\x7f"'),
        there=[False, False, False],
        here=[True, True, True],
    ),
    "A declared key with escapes": Difference(
        lambda lib: schema(lib, {**TWO, "required": []}, '{"\\u0061":"x"}'),
        there=[True],
        here=[False],
    ),
    "`-0` as an integer": Difference(
        lambda lib: schema(lib, TWO, '{"a":-0}'), there=[True], here=[False]
    ),
    r"`\d` in a regular expression": Difference(
        lambda lib: fits(lib, lib.LLMatcher.grammar_from_regex(r"\d"), "1", "٣"),
        there=[True, True],
        here=[True, False],
    ),
    '`stop="x"` of a rule': Difference(
        lambda lib: [
            fits(lib, 'start: a "y"\na[stop="x"]: /.*/', "axy", "ay"),
            fits(lib, 'start[stop="x"]: /.*/', "ax", "a"),
        ],
        there=[[True, False], [True, False]],
        here=[[False, True], [False, True]],
    ),
    "`whitespace_pattern`": Difference(
        lambda lib: [
            matcher(
                lib,
                lib.LLMatcher.grammar_from_json_schema(TWO, overrides={"whitespace_pattern": text}),
            ).is_error()
            for text in ("[ ]?", r"[\n\t ]*")
        ],
        there=[False, False],
        here=[True, False],
    ),
    "`max_tokens` of a whole grammar": Difference(
        lambda lib: matcher(lib, '{"grammars": [{"json_schema": {}}], "max_tokens": 3}').is_error(),
        there=False,
        here=True,
    ),
    "`tokenize_str(..., parse_special=True)` of a `TokenizerWrapper`": Difference(
        lambda lib: tokenizer(lib).tokenize_str("<|tool|>", parse_special=True) == [TOOL],
        there=False,
        here=True,
    ),
    "A negative token id": Difference(
        lambda lib: fails(lambda: matcher(lib, "start: /a/").try_consume_tokens([-1])),
        there="OverflowError",
        here=True,
    ),
    '`eos_token` and `n_vocab` of the tokenizer "byte"': Difference(
        lambda lib: (lambda made: [made.vocab_size, made.eos_token])(
            lib.LLTokenizer("byte", n_vocab=300, eos_token=10)
        ),
        there=[262, 261],
        here=[300, 10],
    ),
    "`LLInterpreter`": Difference(
        lambda lib: fails(lambda: lib.LLInterpreter(tokenizer(lib), 'start: "a"')),
        there=True,
        here="RuntimeError",
    ),
    "`get_version()`": Difference(
        lambda lib: lib.get_version().split("@")[0], there="llguidance", here="stencilm"
    ),
}
