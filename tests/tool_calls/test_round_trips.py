"""Every family:

calls written in its form are allowed by its grammar and come back from its parser as they were.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import stencilm
from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo, ToolTemplate
from stencilm.tool_calls.answers import CallDelta, CallDone, ContentDelta
from stencilm.tool_calls.families import TEMPLATES
from stencilm.tool_calls.template import CallVariant
from stencilm.tool_calls.writer import write_calls
from structural_tags.test_walks import random_text
from tool_calls.requests import CALLS, SCHEMAS, TOOLS, Call


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))


def written(template: ToolTemplate, calls: list[Call]) -> str:
    ids = [f"{index}" for index in range(len(calls))]
    return write_calls(template, calls, SCHEMAS, ids=ids)


def found(answer: stencilm.ParsedAnswer) -> list[Call]:
    return [(call.name, dict(call.arguments)) for call in answer.calls]


def holds(compiled: stencilm.CompiledGrammar, text: str) -> bool:
    matcher = GrammarMatcher(compiled)
    return matcher.accept_string(text) and matcher.is_completed()


@pytest.mark.parametrize("family", TEMPLATES)
def test_what_is_written_is_allowed_and_comes_back(compiler: GrammarCompiler, family: str) -> None:
    template = TEMPLATES[family]
    tools = stencilm.tools(family, TOOLS, "required", reasoning=False)
    compiled = compiler.compile_structural_tag(tools.tag)
    for kind, calls in CALLS.items():
        for way in template.ways():
            text = written(way, calls)
            assert holds(compiled, text), (kind, text)
            answer = tools.parse(text)
            assert found(answer) == calls, (kind, text)
            assert answer.content == answer.reasoning == "", (kind, text)
            assert answer.problems == (), (kind, text)


@pytest.mark.parametrize("family", TEMPLATES)
@pytest.mark.parametrize(
    "name", ["\xa0x", "x\u2028", "\u3000", "\x1cx", "\ufeffx", "a:b", "&lt;", "5"]
)
def test_names_come_back_to_the_last_character(
    compiler: GrammarCompiler, family: str, name: str
) -> None:
    """White space of other kinds than a notation's own is part of a name; or it is refused."""
    of_name = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"}, "within": of_name},
        "required": [name, "within"],
    }
    call = ("f", {name: "v", "within": {name: "w"}})
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    try:
        tools = stencilm.tools(family, [tool], "required", reasoning=False)
        compiled = compiler.compile_structural_tag(tools.tag)
    except stencilm.UnsupportedFeature:
        return
    text = write_calls(TEMPLATES[family], [call], {"f": schema}, ids=["0"])
    assert holds(compiled, text), text
    answer = tools.parse(text)
    assert (found(answer), answer.problems) == ([call], ()), text


OF_ONES_OWN = ToolTemplate(
    call='{"f": $json_name, "a": $arguments}',
    trigger='<c>{"f": "',
    section=("<c>", "</c>"),
    separator="",
)


@pytest.mark.parametrize("family", [*TEMPLATES, OF_ONES_OWN])
@pytest.mark.parametrize("parallel", [True, False])
def test_calls_are_allowed_where_text_is(
    compiler: GrammarCompiler, family: Any, parallel: bool
) -> None:
    template = TEMPLATES.get(family, OF_ONES_OWN)
    tools = stencilm.tools(family, TOOLS, parallel=parallel, reasoning=False)
    compiled = compiler.compile_structural_tag(tools.tag)
    for kind, calls in CALLS.items():
        for way in template.ways():
            text = written(way, calls)
            assert holds(compiled, text) is (parallel or len(calls) == 1), (kind, text)
            assert found(tools.parse(text)) == calls, (kind, text)


@pytest.mark.parametrize("family", TEMPLATES)
def test_pieces_of_any_length_are_read_as_the_whole(family: str) -> None:
    template = TEMPLATES[family]
    tools = stencilm.tools(family, TOOLS, reasoning=False)
    calls = CALLS["all arguments"] + CALLS["of nothing"] + CALLS["nested"]
    content = "Let me look: [1] {2} <3>."
    text = content + "\n" + written(template, calls)
    if template.response is not None:
        begin, end = template.response
        text = begin + content + end + written(template, calls)
    for length in (1, 2, 3, 7, 50, len(text)):
        parser = tools.parser()
        deltas = []
        for begin_at in range(0, len(text), length):
            deltas += parser.feed(text[begin_at : begin_at + length])
        deltas += parser.finish()
        answer = parser.answer
        assert found(answer) == calls
        assert answer.content == content
        assert "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta)) == content
        assert [delta.call for delta in deltas if isinstance(delta, CallDone)] == [*answer.calls]
        pieces: dict[int, str] = {}
        names: dict[int, tuple[str | None, str | None]] = {}
        for delta in deltas:
            if isinstance(delta, CallDelta):
                names.setdefault(delta.index, (delta.name, delta.id))
                pieces[delta.index] = pieces.get(delta.index, "") + delta.arguments
        assert [json.loads(piece) for piece in pieces.values()] == [args for _, args in calls]
        assert [*names.values()] == [(call.name, call.id) for call in answer.calls]


@pytest.mark.parametrize("family", TEMPLATES)
def test_random_walks_through_the_grammar_come_back(compiler: GrammarCompiler, family: str) -> None:
    info = compiler.tokenizer_info
    tools = stencilm.tools(family, TOOLS, "required", reasoning=False)
    compiled = compiler.compile_structural_tag(tools.tag)
    for seed in range(12):
        text = random_text(GrammarMatcher(compiled), info, random.Random(f"{family} {seed}"))
        answer = tools.parse(text)
        if any("too large an exponent" in problem for problem in answer.problems):
            continue  # a number of JSON that Python has no value for
        assert answer.problems == (), text
        assert answer.calls, text
        # Some families write a text before their calls.
        assert answer.content == "" or TEMPLATES[family].response_first, text
        for call in answer.calls:
            jsonschema.validate(dict(call.arguments), SCHEMAS[call.name])
        # Written anew, the same calls are allowed and read again.
        again = written(TEMPLATES[family], found(answer))
        assert found(tools.parse(again)) == found(answer), text


@pytest.mark.parametrize("family", [name for name, known in TEMPLATES.items() if known.think])
def test_reasoning_is_told_from_content(family: str) -> None:
    template = TEMPLATES[family]
    assert template.think is not None
    begin, end = template.think
    tools = stencilm.tools(family, TOOLS)
    thought = "Which city?\n\nRome, I think."
    text = f"{begin}\n{thought}\n{end}\n\n" + written(template, CALLS["one"])
    prompts: list[tuple[str, str | None]] = [(text, None), (text, "Hi")]
    if template.think_prefilled:
        rest = text.removeprefix(begin)
        prompts += [(rest, None), (rest, f"Hi{begin}\n")]
    for given, prompt in prompts:
        answer = tools.parse(given, prompt=prompt)
        assert answer.reasoning == thought
        assert answer.content == ""
        assert found(answer) == CALLS["one"]


def test_tokens_are_read_as_text() -> None:
    info = TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny")
    tools = stencilm.tools("qwen_3", TOOLS, reasoning=False)
    text = "Grüße 😀 " + written(TEMPLATES["qwen_3"], CALLS["letters"])
    parser = tools.parser(tokenizer_info=info)
    deltas = []
    for token in info.tokenize_bytes(text.encode()):
        deltas += parser.feed_tokens([token])
    deltas += parser.feed_tokens([info.stop_token_ids[0]]) + parser.finish()
    assert parser.answer.content == "Grüße 😀"
    assert found(parser.answer) == CALLS["letters"]
    with pytest.raises(ValueError, match="tokenizer"):
        tools.parser().feed_tokens([1])
    with pytest.raises(ValueError, match="finished"):
        parser.feed("x")


@pytest.mark.parametrize(
    "template",
    [
        # A name, after which the beginning of an argument may not have come whole.
        ToolTemplate(
            call="<c>$name\n$arguments}",
            trigger="{",
            section=("{", "}"),
            separator=";",
            style="rfl_xml",
        ),
        ToolTemplate(
            call="<c>$name\n$arguments|end",
            trigger="[",
            section=("[", "]"),
            separator=", ",
            style="cohere_xml",
        ),
        # What would be an object of JSON, and has other arguments.
        ToolTemplate(
            call='{"name": $json_name, "arguments": $arguments}',
            trigger="<s>",
            section=("<s>", "</s>"),
            style="parameter_xml",
        ),
        # Calls after which the text may end, or end with what might begin an argument.
        ToolTemplate(call="@$name:$arguments", trigger="@", style="gigachat_xml"),
        ToolTemplate(call="@$name:$arguments\n", trigger="@", style="kimi_k3_xml"),
        ToolTemplate(call="@$name:$arguments]", trigger="@", style="minimax_m3_xml"),
    ],
    ids=lambda template: f"{template.style} {template.call!r}",
)
def test_templates_of_ones_own_in_odd_shapes(compiler: GrammarCompiler, template: Any) -> None:
    tools = stencilm.tools(template, TOOLS, "required", reasoning=False)
    compiled = compiler.compile_structural_tag(tools.tag)
    for calls in (CALLS["one"], CALLS["two"]):
        text = written(template, calls)
        assert holds(compiled, text)
        answer = tools.parse(text)
        assert (found(answer), answer.problems) == (calls, ()), text
        for length in (1, 3):
            parser = tools.parser()
            for begin in range(0, len(text), length):
                parser.feed(text[begin : begin + length])
            parser.finish()
            assert parser.answer == answer


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"call": " <a>$name($arguments)", "trigger": " "}, "trigger ' ' is blank"),
        ({"response": (" ", "</r>")}, "response is .* blank"),
        ({"response": ("<r>", "")}, "response is .* blank"),
        ({"think": ("<t>", " ")}, "think is .* blank"),
        ({"call": "<a>$id $id $name($arguments)"}, r"\$id once at most"),
    ],
)
def test_a_template_whose_markers_are_in_every_text(parts: Any, words: str) -> None:
    template = ToolTemplate(**{"call": "<a>$name($arguments)", "trigger": "<a>", **parts})
    with pytest.raises(ValueError, match=words):
        stencilm.tools(template, TOOLS)
    with pytest.raises(ValueError, match=words):
        stencilm.register_model_structural_tag("odd", template)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"end": None}, "end of a ToolTemplate is None, but must be a str"),
        ({"call": 3}, "call of a ToolTemplate is 3, but must be a str"),
        ({"section": "ab"}, "section of a ToolTemplate is 'ab', but must be a tuple of two str"),
        ({"think": ("<t>",)}, "think of a ToolTemplate is ('<t>',), but must be a tuple of two"),
        (
            {"response": 3},
            "response of a ToolTemplate is 3, but must be a tuple of two str or No",
        ),
        ({"one_line": "no"}, "one_line of a ToolTemplate is 'no', but must be True or False"),
        ({"variants": ("a",)}, "variants of a ToolTemplate is ('a',), but must be a tuple of Call"),
        ({"models": "m*"}, "models of a ToolTemplate is 'm*', but must be a tuple of str"),
        ({"style": None}, "style of a ToolTemplate is None, but must be a str"),
    ],
)
def test_a_part_of_a_template_of_another_type_is_told(parts: Any, said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        ToolTemplate(**{"call": "<a>$name($arguments)", "trigger": "<a>", **parts})


def test_a_style_that_is_none_is_told() -> None:
    with pytest.raises(ValueError, match=r"^style is 'jsn', but must be one of 'json', 'qwen_xml'"):
        ToolTemplate(call="@$name($arguments)", trigger="@", style="jsn")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="separator of a CallVariant is 5, but must be a str or No"):
        CallVariant(separator=5)  # type: ignore[arg-type]


def test_tokens_may_be_an_array_or_a_tensor() -> None:
    torch = pytest.importorskip("torch")
    info = TokenizerInfo([b"He", b"llo", b"</s>"], stop_token_ids=[2])
    tools = stencilm.tools("qwen_3", TOOLS, reasoning=False)
    for token_ids in ([0, 1, 2], np.array([0, 1, 2]), torch.tensor([0, 1, 2])):
        parser = tools.parser(tokenizer_info=info)
        assert parser.feed_tokens(token_ids) == [ContentDelta("Hello")]


def test_what_is_no_token_and_no_text_changes_nothing() -> None:
    info = TokenizerInfo([b"He", b"llo", b"</s>"], stop_token_ids=[2])
    parser = stencilm.tools("qwen_3", TOOLS, reasoning=False).parser(tokenizer_info=info)
    for token_ids, kind, sentence in [
        ([0, True], TypeError, "a token is True, but must be an int"),
        (["He"], TypeError, "a token is 'He', but must be an int"),
        ([0, 3], ValueError, "a token is 3, but must be from 0 to 2"),
        ([-1], ValueError, "a token is -1, but must be from 0 to 2"),
        (7, TypeError, "token_ids is a int, but must be token ids"),
    ]:
        with pytest.raises(kind, match=sentence):
            parser.feed_tokens(token_ids)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="text is a bytes, but must be a str"):
        parser.feed(b"He")  # type: ignore[arg-type]
    assert parser.finish() == [] and parser.answer == stencilm.ParsedAnswer()


def test_a_long_text_is_read_letter_by_letter() -> None:
    tools = stencilm.tools("qwen_3", TOOLS)
    thought, content = "I think. " * 3000, "Some < text > here. " * 3000
    text = f"<think>\n{thought}</think>\n\n{content}\n" + written(TEMPLATES["qwen_3"], CALLS["two"])
    parser = tools.parser()
    for letter in text:
        parser.feed(letter)
        # What was handed on is not kept a second time.
        assert len(parser._text.buffer) < 1 << 14
    parser.finish()
    answer = parser.answer
    assert answer.reasoning == thought.strip() and answer.content == content.strip()
    assert found(answer) == CALLS["two"]


UNUSUAL: list[tuple[str, str, list[Call]]] = [
    ("hermes", '<tool_call>{"name":"clock","arguments":{}}</tool_call>', CALLS["of nothing"]),
    ("hermes", '<tool_call> {"arguments": {}, "name": "clock"} </tool_call>', CALLS["of nothing"]),
    ("hermes", '<tool_call>{"name": "clock", "arguments": "{}"}</tool_call>', CALLS["of nothing"]),
    (
        "mistral",
        '[TOOL_CALLS] [{"name": "clock", "arguments": {}, "id": "abc"}]',
        CALLS["of nothing"],
    ),
    ("mistral_v11", "[TOOL_CALLS]clock[CALL_ID]a1[ARGS]{}", CALLS["of nothing"]),
    ("glm_4_7", "<tool_call>clock\n</tool_call>", CALLS["of nothing"]),
    (
        "qwen_3_coder",
        "<tool_call>\n<function=clock>\n</function>\n</tool_call>",
        CALLS["of nothing"],
    ),
    (
        "qwen_3_coder",
        "<tool_call><function=weather><parameter=days>2</parameter><parameter=city>Rome</parameter>"
        "</function></tool_call>",
        CALLS["one"],
    ),
    ("llama", '{"name": "clock", "parameters": {}}', CALLS["of nothing"]),
    (
        "llama_4_pythonic",
        "[clock(), weather(city='Rome', days=2)]",
        CALLS["of nothing"] + CALLS["one"],
    ),
    ("gemma_4", '<|tool_call>call:weather{days:2,city:<|"|>Rome<|"|>}<tool_call|>', CALLS["one"]),
    (
        "cohere",
        '<|START_ACTION|>[{"tool_name": "clock", "parameters": {}}]<|END_ACTION|>',
        CALLS["of nothing"],
    ),
]


@pytest.mark.parametrize(("family", "text", "calls"), UNUSUAL)
def test_what_models_write_without_a_grammar(family: str, text: str, calls: list[Call]) -> None:
    answer = stencilm.tools(family, TOOLS, reasoning=False).parse(text)
    assert found(answer) == calls
    assert answer.problems == ()


BROKEN: list[tuple[str, str, str]] = [
    ("hermes", '<tool_call>\n{"name": "clock", "arguments": {]}\n</tool_call>', "no JSON"),
    ("hermes", "<tool_call>\nclock()\n</tool_call>", "expected"),
    ("hermes", '<tool_call>\n{"name": "wind", "arguments": {}}\n</tool_call>', "none of the tools"),
    ("hermes", '<tool_call>\n{"name": "clock", "arguments": {"a', "ends within a call of 'clock'"),
    ("qwen_3_coder", "<tool_call>\n<function=weather>\n<parameter=city>\nRo", "ends within"),
]


@pytest.mark.parametrize(("family", "text", "says"), BROKEN)
def test_what_cannot_be_read_is_said_and_stays_text(family: str, text: str, says: str) -> None:
    answer = stencilm.tools(family, TOOLS, reasoning=False).parse("Well. " + text)
    assert any(says in problem for problem in answer.problems), answer
    assert answer.content.startswith("Well.")
    if not answer.calls and "within" not in says:
        assert answer.content == "Well. " + text


def test_a_broken_call_keeps_its_number() -> None:
    broken = '<tool_call>\n{"name": "clock", "arguments": {}, "more": 1}\n</tool_call>'
    parser = stencilm.tools("hermes", TOOLS).parser()
    deltas = parser.feed(broken + "\n" + written(TEMPLATES["hermes"], CALLS["one"]))
    deltas += parser.finish()
    begun = [(one.index, one.name) for one in deltas if isinstance(one, CallDelta) and one.name]
    assert begun == [(0, "clock"), (1, "weather")]
    assert [one.index for one in deltas if isinstance(one, CallDone)] == [1]
    assert [call.id for call in parser.answer.calls] == ["call_1"]


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("llama", 'An object: {"a": 1}, a list: [1, 2].'),
        ("llama", '{"name": "Rome"}'),
        ("llama_4_pythonic", "See [1] and [wind(x=1)] and [a, b]."),
        ("xlam", 'The list [{"name": "Rome"}] has one city.'),
    ],
)
def test_text_that_looks_like_calls_stays_text(family: str, text: str) -> None:
    answer = stencilm.tools(family, TOOLS, reasoning=False).parse(text)
    assert answer.content == text
    assert answer.calls == ()


def test_ids(compiler: GrammarCompiler) -> None:
    tools = stencilm.tools("kimi", TOOLS, reasoning=False)
    text = written(TEMPLATES["kimi"], CALLS["two"])
    assert [call.id for call in tools.parse(text).calls] == [
        "functions.weather:0",
        "functions.weather_map:1",
    ]
    hermes = stencilm.tools("hermes", TOOLS)
    text = written(TEMPLATES["hermes"], CALLS["two"])
    assert [call.id for call in hermes.parse(text, first_id=3).calls] == ["call_3", "call_4"]


HARMONY: list[tuple[str, list[Call], str, str]] = [
    ("<|channel|>final<|message|>Hello<|return|>", [], "Hello", ""),
    (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
        "<|channel|>commentary to=functions.clock <|constrain|>json<|message|>{}<|call|>",
        CALLS["of nothing"],
        "",
        "Hm.",
    ),
    (
        "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant to=functions.weather"
        '<|channel|>commentary json<|message|>{"city":"Rome","days":2}<|call|>',
        CALLS["one"],
        "I look.",
        "",
    ),
    (
        "<|channel|>analysis to=python code<|message|>print(1)<|call|>",
        [("python", {"code": "print(1)"})],
        "",
        "",
    ),
]


@pytest.mark.parametrize(("text", "calls", "content", "reasoning"), HARMONY)
def test_messages_of_gpt_oss(text: str, calls: list[Call], content: str, reasoning: str) -> None:
    tools = stencilm.tools("gpt-oss", [*TOOLS, {"type": "python"}])
    for length in (1, 5, len(text)):
        parser = tools.parser()
        for begin in range(0, len(text), length):
            parser.feed(text[begin : begin + length])
        parser.finish()
        answer = parser.answer
        assert (found(answer), answer.content, answer.reasoning) == (calls, content, reasoning)
        assert answer.problems == ()


def test_a_function_has_no_parser() -> None:
    def make(request: Any) -> Any:
        return ConstStringFormat(value="x")

    from stencilm.grammars.structural_tag import ConstStringFormat
    from stencilm.tool_calls import registry

    stencilm.register_model_structural_tag("fixed", make)
    try:
        with pytest.raises(ValueError, match="fixed"):
            stencilm.tools("fixed", TOOLS).parser()
    finally:
        del registry._REGISTRY["fixed"]
