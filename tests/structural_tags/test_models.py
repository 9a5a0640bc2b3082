"""Tool calls as families of models write them: answers that belong, and answers that do not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stencilm import (
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    StructuralTag,
    TokenizerInfo,
    ToolTemplate,
    get_model_structural_tag,
    model_structural_tags,
    register_model_structural_tag,
)
from stencilm.errors import GrammarSyntaxError, LimitExceeded, UnsupportedFeature
from stencilm.grammars.structural_tag import (
    AnyTextFormat,
    ConstStringFormat,
    JSONSchemaFormat,
    RegexFormat,
)
from stencilm.grammars.texts import schema_value

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "clock", "strict": False}}
SEARCH = {"type": "web_search", "name": "browser.search", "parameters": {"type": "object"}}
TOOLS = [WEATHER, CLOCK]

# One call of `weather`, one of `clock`, and a wrong one; without what stands around all calls.
JSON_CALLS = ('{"city": "Rome", "days": 2}', "{}", '{"days": 2}')
QWEN_CALLS = (
    "<parameter=city>\nRome\n</parameter>\n<parameter=days>\n2\n</parameter>\n",
    "",
    "<parameter=days>\n2\n</parameter>\n",
)
DSML = '<｜DSML｜parameter name="city" string="true">Rome</｜DSML｜parameter>\n'
DSML_CALLS = (DSML, "", DSML.replace("true", "false"))
DSML_4_1 = DSML.replace("｜parameter", "｜ parameter")
K3_CITY = '<|open|>argument key="city" type="string"<|sep|>Rome<|close|>argument<|sep|>'
K3_DAYS = '<|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|>'
GLM_CALLS = (
    "<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n",
    "",
    "<arg_key>town</arg_key>\n<arg_value>Rome</arg_value>\n",
)
MINIMAX_CALLS = (
    '<parameter name="city">Rome</parameter>\n<parameter name="days">2</parameter>\n',
    "",
    '<parameter name="city">Rome</parameter>\n<parameter name="days">two</parameter>\n',
)
M3 = "]<]minimax[>["
M3_CITY = f"{M3}<city>Rome{M3}</city>"
M3_CALLS = (f"{M3_CITY}{M3}<days>2{M3}</days>", "", f"{M3_CITY}{M3}<days>two{M3}</days>")
HERMES = '<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
FENCED = (
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n"
    "{arguments}\n```<｜tool▁call▁end｜>"
)
# Family: a call, arguments, between calls, before and after all calls.
FAMILIES: dict[str, tuple[str, tuple[str, str, str], str, str, str]] = {
    "llama": ('{{"name": "{name}", "parameters": {arguments}}}', JSON_CALLS, "; ", "", ""),
    "llama_python_tag": (
        '{{"name": "{name}", "parameters": {arguments}}}',
        JSON_CALLS,
        "; ",
        "<|python_tag|>",
        "",
    ),
    "hermes": (HERMES, JSON_CALLS, "\n", "", ""),
    "qwen_2_5": (HERMES, JSON_CALLS, "\n", "", ""),
    "qwen_3": (HERMES, JSON_CALLS, "\n", "", ""),
    "qwen_3_thinking": (HERMES, JSON_CALLS, "\n", "", ""),
    "mimo": (HERMES, JSON_CALLS, "\n", "", ""),
    "qwen_3_5": (
        "<tool_call>\n<function={name}>\n{arguments}</function>\n</tool_call>",
        QWEN_CALLS,
        "\n",
        "",
        "",
    ),
    "qwen_3_coder": (
        "<tool_call>\n<function={name}>\n{arguments}</function>\n</tool_call>",
        QWEN_CALLS,
        "\n",
        "",
        "",
    ),
    "exaone": (
        '<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>',
        JSON_CALLS,
        "\n",
        "",
        "",
    ),
    "deepseek_v3": (FENCED, JSON_CALLS, "\n", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    "deepseek_r1": (FENCED, JSON_CALLS, "\n", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    "deepseek_v3_1": (
        "<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
        JSON_CALLS,
        "",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
    ),
    "deepseek_v3_2": (
        '<｜DSML｜invoke name="{name}">\n{arguments}</｜DSML｜invoke>\n',
        DSML_CALLS,
        "",
        "<｜DSML｜function_calls>\n",
        "</｜DSML｜function_calls>",
    ),
    "deepseek_v4": (
        '<｜DSML｜invoke name="{name}">\n{arguments}</｜DSML｜invoke>\n',
        DSML_CALLS,
        "",
        "<｜DSML｜tool_calls>\n",
        "</｜DSML｜tool_calls>",
    ),
    "deepseek_v4_1": (
        '<｜DSML｜ invoke name="{name}">\n{arguments}</｜DSML｜ invoke>\n',
        (DSML_4_1, "", DSML_4_1.replace("true", "false")),
        "",
        "<｜DSML｜ calls>\n",
        "</｜DSML｜ calls>",
    ),
    "kimi_k3": (
        '<|open|>call tool="{name}" index="1"<|sep|>{arguments}<|close|>call<|sep|>',
        (K3_CITY + K3_DAYS, "", K3_CITY + K3_DAYS.replace("number", "string")),
        "",
        "<|open|>tools<|sep|>",
        "<|close|>tools<|sep|>",
    ),
    "kimi": (
        "<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
        JSON_CALLS,
        "",
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
    ),
    "glm_4_5": ("<tool_call>{name}\n{arguments}</tool_call>", GLM_CALLS, "\n", "", ""),
    "glm_4_7": ("<tool_call>{name}{arguments}</tool_call>", GLM_CALLS, "", "", ""),
    "minimax_m1": (
        '{{"name": "{name}", "arguments": {arguments}}}',
        JSON_CALLS,
        "\n",
        "<tool_calls>\n",
        "\n</tool_calls>",
    ),
    "minimax": (
        '<invoke name="{name}">\n{arguments}</invoke>\n',
        MINIMAX_CALLS,
        "",
        "<minimax:tool_call>\n",
        "</minimax:tool_call>",
    ),
    "minimax_m3": (
        M3 + '<invoke name="{name}">{arguments}' + M3 + "</invoke>\n",
        M3_CALLS,
        "",
        f"{M3}<tool_call>\n",
        f"{M3}</tool_call>",
    ),
    "cohere": (
        '{{"tool_call_id": "0", "tool_name": "{name}", "parameters": {arguments}}}',
        JSON_CALLS,
        ",\n    ",
        "<|START_ACTION|>[\n    ",
        "\n]<|END_ACTION|>",
    ),
    "mistral": (
        '{{"name": "{name}", "arguments": {arguments}}}',
        JSON_CALLS,
        ", ",
        "[TOOL_CALLS][",
        "]",
    ),
    "mistral_v11": ("[TOOL_CALLS]{name}[ARGS]{arguments}", JSON_CALLS, "", "", ""),
}
# How reasoning is written where it is, and what the prompt has of it already.
THINKING = {
    **dict.fromkeys(
        ("qwen_3", "qwen_3_5", "mimo", "exaone", "kimi", "glm_4_5", "glm_4_7"), "<think>"
    ),
    "qwen_3_thinking": "",
    "minimax_m1": "<think>",
    **dict.fromkeys(
        (
            *("deepseek_r1", "deepseek_v3_1", "deepseek_v3_2", "deepseek_v4", "deepseek_v4_1"),
            *("minimax", "minimax_m3", "kimi_k3"),
        ),
        "",
    ),
    "mistral_v11": "[THINK]",
    "cohere": "<|START_THINKING|>",
}
ENDS = {
    "mistral_v11": "[/THINK]",
    "cohere": "<|END_THINKING|>",
    "minimax_m3": "</mm:think>",
    "kimi_k3": "<|close|>think<|sep|>",
}
RESPONSES = {
    "cohere": ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    "kimi_k3": ("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
}


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    vocabulary: list[str | bytes] = [bytes([byte]) for byte in range(256)]
    return GrammarCompiler(TokenizerInfo([*vocabulary, "<stop>"], stop_token_ids=[256]))


class Answers:
    """What belongs to a tag."""

    def __init__(self, compiler: GrammarCompiler, tag: StructuralTag) -> None:
        self.compiled = compiler.compile_structural_tag(tag)

    def __contains__(self, text: str) -> bool:
        matcher = GrammarMatcher(self.compiled)
        return matcher.accept_string(text) and matcher.is_completed()


def calls(family: str, *numbers: int) -> str:
    """Calls with everything around them: 0 of weather, 1 of clock, 2 a wrong one of weather."""
    call, arguments, between, before, behind = FAMILIES[family]
    names = ("weather", "clock", "weather")
    texts = (call.format(name=names[number], arguments=arguments[number]) for number in numbers)
    return before + between.join(texts) + behind


def text_of(family: str, text: str) -> str:
    begin, end = RESPONSES.get(family, ("", ""))
    return begin + text + end


def test_every_family_is_here() -> None:
    assert {*FAMILIES, "harmony"} <= {*model_structural_tags()}


@pytest.mark.parametrize(
    "model",
    [
        "Qwen/Qwen3.5-35B-A3B",
        "Qwen/Qwen3-30B-A3B-Thinking-2507",
        "Qwen/Qwen3-Next-80B-A3B-Thinking",
        "zai-org/GLM-4.7",
        "LGAI-EXAONE/EXAONE-4.0-32B",
        "deepseek-ai/DeepSeek-R1",
    ],
)
@pytest.mark.parametrize("reasoning", ["enabled", "auto"])
def test_the_prompt_may_have_begun_the_reasoning(
    compiler: GrammarCompiler, model: str, reasoning: Any
) -> None:
    for choice in ("auto", "none"):
        tag = get_model_structural_tag(model, TOOLS, choice, reasoning)
        answers = Answers(compiler, tag)
        for begin in ("", "<think>\n"):
            assert begin + "I think so.\n</think>\n\nHello" in answers
        assert ("Hello" in answers) == (reasoning == "auto")
        assert "a</think>b</think>c" not in answers


@pytest.mark.parametrize("family", FAMILIES)
class TestFamily:
    def test_required(self, compiler: GrammarCompiler, family: str) -> None:
        answers = Answers(compiler, get_model_structural_tag(family, TOOLS, "required", False))
        assert calls(family, 0) in answers
        assert calls(family, 1, 0) in answers
        assert calls(family, 2) not in answers
        assert text_of(family, "text") not in answers
        assert "x" + calls(family, 0) not in answers
        alone = get_model_structural_tag(
            family, TOOLS, "required", False, parallel_tool_calls=False
        )
        assert calls(family, 0) in Answers(compiler, alone)
        assert calls(family, 0, 1) not in Answers(compiler, alone)

    def test_auto(self, compiler: GrammarCompiler, family: str) -> None:
        answers = Answers(compiler, get_model_structural_tag(family, TOOLS, "auto", False))
        assert text_of(family, "Only text: {1} < 2 [x]") in answers
        assert calls(family, 0) in answers
        assert calls(family, 2) not in answers
        if family != "cohere":
            assert text_of(family, "Let me look. ") + calls(family, 1) in answers
            assert text_of(family, "Let me look. ") + calls(family, 2) not in answers
        if family not in ("llama", "cohere") and not FAMILIES[family][3]:
            assert calls(family, 1) + "\n" + calls(family, 0) + " done" in answers

    def test_none(self, compiler: GrammarCompiler, family: str) -> None:
        answers = Answers(compiler, get_model_structural_tag(family, TOOLS, "none", False))
        assert text_of(family, "text") in answers
        assert calls(family, 0) not in answers
        nothing = Answers(compiler, get_model_structural_tag(family, [], "auto", False))
        assert text_of(family, "text") in nothing
        assert calls(family, 0) not in nothing

    def test_named(self, compiler: GrammarCompiler, family: str) -> None:
        choice = {"type": "function", "function": {"name": "clock"}}
        answers = Answers(compiler, get_model_structural_tag(family, TOOLS, choice, False))
        assert calls(family, 1) in answers
        assert calls(family, 0) not in answers
        assert calls(family, 1, 1) not in answers
        assert text_of(family, "text") not in answers

    def test_tools_or_an_answer(self, compiler: GrammarCompiler, family: str) -> None:
        answer = JSONSchemaFormat(json_schema={"type": "integer"})
        tag = get_model_structural_tag(family, TOOLS, "auto", False, answer=answer)
        answers = Answers(compiler, tag)
        assert text_of(family, "42") in answers
        assert calls(family, 1, 0) in answers
        assert text_of(family, "text") not in answers
        assert "42" + calls(family, 0) not in answers

    def test_reasoning(self, compiler: GrammarCompiler, family: str) -> None:
        if family not in THINKING:
            tag = get_model_structural_tag(family, TOOLS, "auto", True)
            assert tag == get_model_structural_tag(family, TOOLS, "auto", False)
            return
        begin, end = THINKING[family], ENDS.get(family, "</think>")
        thought = begin + "\nHm, " + calls(family, 0) + "?\n" + end
        choices: list[tuple[Any, str]] = [
            ("required", calls(family, 0)),
            ("auto", calls(family, 0)),
            ("auto", text_of(family, "Text.")),
            ("none", text_of(family, "Text.")),
        ]
        for choice, answer in choices:
            answers = Answers(compiler, get_model_structural_tag(family, TOOLS, choice))
            assert thought + answer in answers, choice
            assert thought + "\n\n" + answer in answers or choice == "none", choice
            assert answer not in answers
        whole = thought if begin else end.replace("/", "").replace("close", "open") + thought
        maybe = Answers(compiler, get_model_structural_tag(family, TOOLS, "required", "auto"))
        assert whole + calls(family, 0) in maybe
        assert calls(family, 0) in maybe

    def test_it_is_json(self, family: str) -> None:
        tag = get_model_structural_tag(family, TOOLS)
        assert StructuralTag.from_json(tag.to_json()) == tag
        again = Grammar.from_structural_tag(json.loads(tag.to_json()))
        assert str(again) == str(Grammar.from_structural_tag(tag))


def test_a_message_of_kimi_k3_may_end(compiler: GrammarCompiler) -> None:
    answers = Answers(compiler, get_model_structural_tag("kimi_k3", TOOLS, "auto", False))
    end = "<|close|>message<|sep|>"
    for text in (calls("kimi_k3", 0), text_of("kimi_k3", "Text."), ""):
        assert (text + end in answers) == bool(text)
    assert calls("kimi_k3", 0) + text_of("kimi_k3", "Text.") not in answers


CALL = '<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city":"R"}<|call|>'
FINAL = "<|channel|>final<|message|>It rains."
ANALYSIS = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"


def test_harmony(compiler: GrammarCompiler) -> None:
    answers = Answers(compiler, get_model_structural_tag("harmony", TOOLS))
    preamble = "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
    for text in (FINAL, FINAL + "<|return|>", CALL, CALL.removesuffix("<|call|>"), preamble + CALL):
        assert ANALYSIS + text in answers
        assert text not in answers
    assert ANALYSIS + CALL.replace("weather", "wind") not in answers
    assert ANALYSIS + CALL.replace('"R"', "1") not in answers
    required = Answers(compiler, get_model_structural_tag("harmony", TOOLS, "required", "auto"))
    assert CALL in required and ANALYSIS + CALL in required
    assert FINAL not in required
    none = Answers(compiler, get_model_structural_tag("harmony", TOOLS, "none", False))
    assert FINAL in none and CALL not in none


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen3-8B", "qwen_3"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen_3_coder"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen_2_5"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek_r1"),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek_v3_1"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek_v3"),
        ("moonshotai/Kimi-K2-Instruct", "kimi"),
        ("moonshotai/Kimi-K3", "kimi_k3"),
        ("deepseek-ai/DeepSeek-V4.1-Flash", "deepseek_v4_1"),
        ("deepseek-ai/DeepSeek-V4", "deepseek_v4"),
        ("zai-org/GLM-4.5-Air", "glm_4_5"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama"),
        ("MiniMaxAI/MiniMax-M2", "minimax"),
        ("MiniMaxAI/MiniMax-M3", "minimax_m3"),
        ("LGAI-EXAONE/EXAONE-4.0-32B", "exaone"),
    ],
)
def test_models_are_known_by_their_names(model: str, name: str) -> None:
    assert get_model_structural_tag(model, TOOLS) == get_model_structural_tag(name, TOOLS)


def test_choices(compiler: GrammarCompiler) -> None:
    def answers(choice: Any, tools: Any = (WEATHER, CLOCK, SEARCH)) -> Answers:
        return Answers(compiler, get_model_structural_tag("hermes", list(tools), choice))

    search = HERMES.format(name="browser.search", arguments='{"q": 1}')
    assert search in answers("auto")
    assert search in answers({"type": "web_search"})
    assert calls("hermes", 0) not in answers({"type": "web_search"})
    refs = [{"type": "function", "function": {"name": "clock"}}, {"type": "web_search"}]
    for mode, text in (("auto", True), ("required", False)):
        of_chat = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": refs}}
        of_responses = {"type": "allowed_tools", "mode": mode, "tools": refs}
        for allowed in (of_chat, of_responses):
            some = answers(allowed)
            assert search in some and calls("hermes", 1) in some
            assert calls("hermes", 0) not in some
            assert ("text" in some) is text
    anything = answers(
        "required", [{"type": "function", "function": {"name": "f", "parameters": True}}]
    )
    assert HERMES.format(name="f", arguments='{"a": [1]}') in anything
    # Arguments are an object, whatever a schema leaves open.
    assert HERMES.format(name="f", arguments="[1]") not in anything
    assert "text" in answers(None)
    unsaid = {"type": "function", "function": {"name": "f", "parameters": None, "strict": None}}
    assert HERMES.format(name="f", arguments='{"a": 1}') in answers("required", [unsaid])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("none-such", TOOLS), "none-such"),
        (("hermes", ["f"]), "a tool is a dict"),
        (("hermes", [{"type": "function", "function": {}}]), "name"),
        (("hermes", [{"type": "function", "function": {"name": "f", "parameters": 3}}]), "schema"),
        (("hermes", TOOLS, "maybe"), "maybe"),
        (("hermes", TOOLS, {"type": "function", "function": {"name": "g"}}), "'g'"),
        (("hermes", TOOLS, {"type": "code"}), "'code'"),
        (("hermes", [], "required"), "no tool"),
        (("hermes", TOOLS, "auto", "sometimes"), "sometimes"),
    ],
)
def test_refusals(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(GrammarSyntaxError, match=says) as caught:
        get_model_structural_tag(*arguments)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(TypeError, match="answer is 3, but must be a format"):
        get_model_structural_tag("hermes", TOOLS, answer=3)  # type: ignore[arg-type]


def test_a_family_of_ones_own(compiler: GrammarCompiler) -> None:
    template = ToolTemplate(call="@$name($arguments)", trigger="@", models=("mine-*",))
    register_model_structural_tag("mine", template)
    answers = Answers(compiler, get_model_structural_tag("me/mine-7b", TOOLS))
    assert 'See @weather({"city": "Rome"}) and @clock({}).' in answers
    assert "@weather({})" not in answers
    register_model_structural_tag("fixed", lambda request: ConstStringFormat(value=request.choice))
    assert "required" in Answers(compiler, get_model_structural_tag("fixed", TOOLS, "required"))
    for name, wrong in (
        ("", template),
        ("x", 3),
        ("x", ToolTemplate(call="$name", trigger="")),
        ("x", ToolTemplate(call="@$name$arguments", trigger="!")),
    ):
        with pytest.raises((TypeError, ValueError)):
            register_model_structural_tag(name, wrong)  # type: ignore[arg-type]
    from stencilm.tool_calls import registry

    del registry._REGISTRY["mine"], registry._REGISTRY["fixed"]


def test_options(compiler: GrammarCompiler) -> None:
    open_tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}}
    for strict, other in ((True, False), (False, True)):
        tag = get_model_structural_tag("hermes", [open_tool], "required", strict_mode=strict)
        found = HERMES.format(name="f", arguments='{"c": 1}') in Answers(compiler, tag)
        assert found is other
    tag = get_model_structural_tag("hermes", [open_tool], "required", any_order=True)
    assert HERMES.format(name="f", arguments='{"b": 1, "a": 2}') in Answers(compiler, tag)
    free = get_model_structural_tag("qwen_3", TOOLS, reasoning=False, exclude_special_tokens=False)
    assert "x <think> y" in Answers(compiler, free)
    assert "x <think> y" not in Answers(
        compiler, get_model_structural_tag("qwen_3", TOOLS, "auto", False)
    )
    texts: list[Any] = [AnyTextFormat(max_chars=3), RegexFormat(pattern="[a-z]+")]
    for answer in texts:
        tag = get_model_structural_tag("hermes", TOOLS, "none", answer=answer)
        assert "abc" in Answers(compiler, tag)
        assert "ab" + calls("hermes", 0) not in Answers(compiler, tag)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai/gpt-oss-20b", "harmony"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama"),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "deepseek_r1"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen_3_coder"),
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", "mistral"),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral_v11"),
        ("mistralai/Ministral-8B-Instruct-2410", "mistral"),
    ],
)
def test_models_are_found_by_the_name_of_their_own_family(model: str, name: str) -> None:
    assert get_model_structural_tag(model, TOOLS) == get_model_structural_tag(name, TOOLS)


def test_what_is_no_tool_and_no_choice_is_told_as_such() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"tools": 3}, "tools is 3"),
        ({"tools": [{"type": "function", "function": 3}]}, "function is 3"),
        ({"tools": TOOLS, "tool_choice": {"function": 3}}, "not by {'function': 3}"),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": 3}}, "is 3"),
        (
            {
                "tools": TOOLS,
                "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [3]}},
            },
            "not by 3",
        ),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools"}}, "a list of tools"),
        (
            {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "any", "tools": []}},
            "is 'any': give auto or required",
        ),
        ({"tools": [{"name": "f", "input_schema": {}}]}, "its parameters, not its input_schema"),
        ({"tools": [{"type": "custom", "custom": {"name": "f"}}]}, "a custom tool takes text"),
    ]
    for given, message in wrong:
        with pytest.raises(GrammarSyntaxError) as told:
            get_model_structural_tag("hermes", **given)
        assert message in str(told.value)
    register_model_structural_tag("number", lambda request: 3, models=("*number-7b*",))  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="must return a format, not 3"):
        get_model_structural_tag("me/number-7b", TOOLS)
    with pytest.raises(ValueError, match="has its own"):
        template = ToolTemplate(call="@$name($arguments)", trigger="@")
        register_model_structural_tag("number", template, models=("a",))


STYLES = ["json", "qwen_xml", "minimax_xml", "minimax_m3_xml", "deepseek_xml", "deepseek_v4_1_xml"]
STYLES += ["glm_xml", "cohere_xml", "kimi_k3_xml"]


@pytest.mark.parametrize("style", STYLES)
def test_formats_of_arguments_are_enforced_in_every_style(style: Any) -> None:
    names = ["date", "date-time", "time", "email", "uri", "uuid", "ipv4", "hostname", "regex"]
    properties = {name: {"type": "string", "format": name} for name in names}
    for chosen in names:
        schema: dict[str, Any] = {"type": "object", "properties": {chosen: properties[chosen]}}
        assert Grammar.from_structural_tag(JSONSchemaFormat(json_schema=schema, style=style))
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    text = str(Grammar.from_structural_tag(JSONSchemaFormat(json_schema=schema, style=style)))
    assert text


def test_one_tool_that_cannot_be_held(compiler: GrammarCompiler) -> None:
    odd = {
        "type": "object",
        "properties": {"a>b": {"type": "string"}, "c": {"type": "integer"}},
        "additionalProperties": False,
    }
    tools = [
        {"type": "function", "function": {"name": name, "parameters": parameters}}
        for name, parameters in (("plain", {"type": "object"}), ("odd", odd))
    ]
    tag = get_model_structural_tag("qwen_3_coder", tools, "required", reasoning=False)
    with pytest.raises(UnsupportedFeature, match=r"<function=odd>.*cannot be written"):
        Grammar.from_structural_tag(tag)
    # The others stand, and what the odd one lacks is reported.
    tag = get_model_structural_tag(
        "qwen_3_coder", tools, "required", reasoning=False, on_unsupported="relax"
    )
    grammar = Grammar.from_structural_tag(tag)
    (finding,) = grammar.report.relaxed
    assert finding.keyword == "properties" and "a>b" in finding.place + finding.note
    for name, key, value, inside in (
        ("plain", "x", "1", True),
        ("odd", "c", "1", True),
        ("odd", "c", "x", False),
        ("odd", "d", "1", False),
    ):
        text = f"<function={name}>\n<parameter={key}>\n{value}\n</parameter>\n</function>"
        matcher = GrammarMatcher(compiler.compile_grammar(grammar))
        assert matcher.accept_string(f"<tool_call>\n{text}\n</tool_call>") is inside, text


@pytest.mark.parametrize("model", ["qwen_3_coder", "hermes", "minimax_m3"])
def test_strict_mode_leaves_a_tool_without_a_schema_open(
    compiler: GrammarCompiler, model: str
) -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    tag = get_model_structural_tag(model, [tool], "required", reasoning=False, strict_mode=True)
    grammar = Grammar.from_structural_tag(tag)
    calls = {
        "qwen_3_coder": "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>",
        "hermes": '<tool_call>\n{"name": "f", "arguments": {"x": 1}}',
        # Names that no schema declares have no closing marker.
        "minimax_m3": "",
    }
    assert GrammarMatcher(compiler.compile_grammar(grammar)).accept_string(calls[model])


def test_numbers_of_schemas_stay_as_they_are_written() -> None:
    schema = '{"const": 12345678901234567890.125, "maximum": 1E+400, "minimum": 0.5}'
    text = (
        '{"type": "structural_tag", "format": '
        f'{{"type": "json_schema", "json_schema": {schema}}}}}'
    )
    tag = StructuralTag.from_json(text)
    assert tag.to_json() == text
    assert str(Grammar.from_structural_tag(tag)) == str(Grammar.from_structural_tag(text))


def test_a_schema_that_is_nested_too_deeply_to_be_read() -> None:
    with pytest.raises(LimitExceeded, match="nested too deeply"):
        schema_value(f'{{"default": {"[" * 100_000 + "]" * 100_000}}}')


@pytest.mark.parametrize(
    "schema",
    ['{"const": NaN}', '{"type": "null", "type": "string"}', '{"maximum": 1e99999999999999999999}'],
)
def test_what_is_no_json_is_no_tag(schema: str) -> None:
    with pytest.raises(GrammarSyntaxError, match="a structural tag is JSON"):
        StructuralTag.from_json(f'{{"type": "json_schema", "json_schema": {schema}}}')
