"""What the chat templates of models write, and formats that are learnt from them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

import stencilm
from stencilm import GrammarCompiler, GrammarMatcher, TokenizerInfo, ToolTemplate
from stencilm.chat_templates.renderer import Renderer
from stencilm.errors import GrammarSyntaxError
from stencilm.tool_calls.families import TEMPLATES
from stencilm.tool_calls.probing import probe
from stencilm.tool_calls.writer import write_calls
from tool_calls import rendered
from tool_calls.requests import CALLS, SCHEMAS, TOOLS

TABLE: dict[str, Any] = json.loads(rendered.TABLE.read_text())
FOLDER = os.environ.get("STENCILM_CHAT_TEMPLATES", "")


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))


# What the template of a model gets wrong.
UNREADABLE = {("LFM2.5-8B-A1B", "signs"): "it does not escape quotes"}

# Their templates change lists, which the sandbox of transformers refuses, too.
UNSAFE = ("Kimi-K2-Instruct", "Kimi-K2-Thinking")

# What is read, and not asked for: lists and dicts as Python prints them.
NOT_WRITTEN = {
    (model, kind)
    for model in ("ByteDance-Seed-OSS", "openbmb-MiniCPM5-1B")
    for kind in ("all arguments", "nested")
}


def calls_alone(family: str, text: str) -> str:
    """A text up to the end of its last call:

    what the template writes after that is not the model's.
    """
    if family == "harmony":
        return text[: text.index("<|call|>") + len("<|call|>")]
    ends = []
    for way in TEMPLATES[family].ways():
        closing = (way.section[1] or way.call.partition("$arguments")[2]).strip() or "}"
        ends.append(text.rfind(closing) + len(closing) if closing in text else 0)
    return text[: max(ends)]


def answers(model: str) -> dict[str, str]:
    """The answers of a model, by the kind of their calls."""
    kept = {
        kind: calls_alone(TABLE[model]["family"], text)
        for kind, text in TABLE[model]["answers"].items()
        if (model, kind) not in UNREADABLE
    }
    assert len(kept) >= 5
    return kept


@pytest.mark.parametrize("model", TABLE)
def test_the_parser_reads_what_the_template_writes(model: str) -> None:
    family = TABLE[model]["family"]
    tools = stencilm.tools(family, TOOLS, reasoning="auto")
    for kind, text in answers(model).items():
        answer = tools.parse(text)
        assert [(call.name, dict(call.arguments)) for call in answer.calls] == CALLS[kind], text
        assert answer.content == "", text
        assert answer.problems == (), text


@pytest.mark.parametrize("model", TABLE)
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_the_grammar_allows_what_the_template_writes(
    compiler: GrammarCompiler, model: str, choice: Any
) -> None:
    entry = TABLE[model]
    tools = stencilm.tools(entry["family"], TOOLS, choice, reasoning="auto")
    compiled = compiler.compile_structural_tag(tools.tag)
    for kind, text in answers(model).items():
        if (model, kind) in NOT_WRITTEN:
            continue
        if entry["family"] == "gigachat_3_0":
            # The template ends the message before it, which the model may do, too, and a prompt may
            # have done.
            text = text.removeprefix("<|message_sep|>").lstrip()
        text = text.removeprefix("\n")
        matcher = GrammarMatcher(compiled)
        verdict = matcher.longest_valid_prefix(text.encode())
        assert verdict.status == "complete", text[: verdict.valid_bytes] + " | " + text


@pytest.mark.skipif(
    not FOLDER, reason="STENCILM_CHAT_TEMPLATES names no folder with chat templates"
)
class TestRealTemplates:
    @pytest.mark.parametrize("model", TABLE)
    def test_the_table_is_what_the_template_writes(self, model: str) -> None:
        source = (Path(FOLDER) / f"{model}.jinja").read_text()
        if hashlib.sha256(source.encode()).hexdigest() != TABLE[model]["sha256"]:
            pytest.skip(f"another version of {model} is there")
        renderer = Renderer(source, {"eos_token": "<|eos|>", "bos_token": ""})
        if model in UNSAFE:
            with pytest.raises(ValueError, match="attribute 'append' of 'list' object is unsafe"):
                rendered.answer(renderer, CALLS["one"])
            return
        for kind, text in TABLE[model]["answers"].items():
            assert rendered.answer(renderer, CALLS[kind]) == text

    @pytest.mark.parametrize("model", TABLE)
    def test_the_format_is_learnt(self, model: str) -> None:
        source = (Path(FOLDER) / f"{model}.jinja").read_text()
        tools = stencilm.tools(source, TOOLS, reasoning="auto")
        for kind, text in answers(model).items():
            answer = tools.parse(text)
            found = [(call.name, dict(call.arguments)) for call in answer.calls]
            assert found == CALLS[kind], (tools.family, text)


def with_calls(call: str, around: tuple[str, str] = ("", ""), between: str = "") -> str:
    """A chat template that writes each call so."""
    return (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.tool_calls %}"
        f"{around[0]}{{% for c in m.tool_calls %}}{call}"
        f"{{% if not loop.last %}}{between}{{% endif %}}{{% endfor %}}{around[1]}{{% endif %}}</m>"
        "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
    )


NAME, ARGUMENTS = "{{ c.function.name }}", "{{ c.function.arguments | tojson }}"
OBJECT = f'{{"name": "{NAME}", "arguments": {ARGUMENTS}}}'

# Templates of no known family, and what is learnt of them.
OWN: list[tuple[str, dict[str, Any]]] = [
    # Ids that begin alike are no part of what stands around calls.
    (
        with_calls(f"<c id={{{{ c.id }}}}>{NAME}:{ARGUMENTS}</c>"),
        {"call": "<c id=$id>$name:$arguments</c>", "trigger": "<c id=", "section": ("", "")},
    ),
    (with_calls(f"<c>{NAME}:{ARGUMENTS}#{{{{ c.id }}}}</c>"), {"section": ("", "")}),
    (with_calls(f"<c>{NAME}:{ARGUMENTS}#{{{{ c.id }}}}"), {"call": "<c>$name:$arguments#$id"}),
    (with_calls(f"<c id={{{{ c.id }}}}>{OBJECT}</c>"), {"trigger": "<c id="}),
    (with_calls(f"<c>{OBJECT}#{{{{ c.id }}}};"), {"trigger": '<c>{"name":'}),
    (
        with_calls(
            OBJECT.replace("{", '{"id": "{{ c.id }}", ', 1), ("<calls>[", "]</calls>"), ", "
        ),
        {
            "call": '{"id": "$id", "name": $json_name, "arguments": $arguments}',
            "section": ("<calls>[", "]</calls>"),
            "separator": ", ",
        },
    ),
    # An object within an object, which begins with what text may hold.
    (
        with_calls(f'{{"tool": {{"n": "{NAME}", "a": {ARGUMENTS}}} }}'),
        {"call": '{"tool": {"n": $json_name, "a": $arguments} }'},
    ),
    (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}"
        "@call {{ c.function.name }} {{ c.function.arguments | tojson }};{% endfor %}"
        "</m>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
        {"call": "@call $name $arguments;", "trigger": "@call", "style": "json", "separator": ""},
    ),
    (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.tool_calls %}<calls>["
        "{% for c in m.tool_calls %}"
        '{"fn": "{{ c.function.name }}", "args": {{ c.function.arguments | tojson }}}'
        "{% if not loop.last %}, {% endif %}{% endfor %}]</calls>{% endif %}</m>{% endfor %}"
        "{% if add_generation_prompt %}<assistant><think>{% endif %}",
        {
            "call": '{"fn": $json_name, "args": $arguments}',
            "trigger": "<calls>[",
            "section": ("<calls>[", "]</calls>"),
            "separator": ", ",
            "think": ("<think>", "</think>"),
            "think_prefilled": True,
        },
    ),
    (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}"
        '{{ "<do:" ~ c.function.name ~ ">" }}{% for k, v in c.function.arguments.items() %}'
        '{{ "<parameter=" ~ k ~ ">" ~ v ~ "</parameter>\\n" }}{% endfor %}</do>{% endfor %}'
        "</m>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
        {"call": "<do:$name>$arguments</do>", "trigger": "<do:", "style": "parameter_xml"},
    ),
]


@pytest.mark.parametrize(("source", "expected"), OWN)
def test_a_format_of_ones_own_is_learnt(
    compiler: GrammarCompiler, source: str, expected: dict[str, Any]
) -> None:
    name, template = probe(source)
    assert name == "learnt" and isinstance(template, ToolTemplate)
    assert {key: getattr(template, key) for key in expected} == expected
    tools = stencilm.tools(source, TOOLS, "required", reasoning=False)
    compiled = compiler.compile_structural_tag(tools.tag)
    for calls in (CALLS["one"], CALLS["two"], CALLS["of nothing"]):
        text = write_calls(template, calls, SCHEMAS)
        matcher = GrammarMatcher(compiled)
        assert matcher.accept_string(text) and matcher.is_completed()
        answer = tools.parse(text)
        assert [(call.name, dict(call.arguments)) for call in answer.calls] == calls
        if "$id" in template.call.partition("$arguments")[0]:
            assert [call.id for call in answer.calls] == [str(n) for n in range(len(calls))]
        for length in (1, 2, 7):
            parser = tools.parser()
            for begin in range(0, len(text), length):
                parser.feed(text[begin : begin + length])
            parser.finish()
            assert parser.answer == answer


@pytest.mark.parametrize(
    "source",
    [
        with_calls(f"<c {{{{ loop.index0 }}}}>{NAME}:{ARGUMENTS}</c>"),
        with_calls(f"<c>{NAME}:{ARGUMENTS} of {{{{ m.tool_calls | length }}}}</c>"),
        with_calls(f"<c>{NAME}:{ARGUMENTS}</c>", between="{{ loop.index }}"),
    ],
)
def test_what_is_another_for_each_call_is_not_learnt(source: str) -> None:
    with pytest.raises(GrammarSyntaxError, match="could not be taken apart"):
        stencilm.tools(source, TOOLS)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{% for m in messages %}{{ m.content }}{% endfor %}", "does not write calls"),
        ("{{ messages | nonsense }}", "no Jinja template"),
        ("{{ raise_exception('no tools here') }}", "no tools here"),
    ],
)
def test_templates_without_calls(source: str, says: str) -> None:
    with pytest.raises(GrammarSyntaxError, match=says):
        stencilm.tools(source, TOOLS)


class Tokenizer:
    name_or_path = "Qwen/Qwen3-8B"
    chat_template = None


def test_a_tokenizer_without_a_template_is_known_by_its_name() -> None:
    assert stencilm.tools(Tokenizer(), TOOLS).family == "qwen_3"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Qwen/Qwen3.8-27B", "qwen_3_5"),
        ("mistralai/Mistral-Small-4", "mistral_v11"),
        ("glm47", "glm_4_7"),
        ("deepseek-v31", "deepseek_v3_1"),
        ("kimi_k2", "kimi"),
        ("step3p5", "step_3_5"),
        ("step5", "step_3_5"),
        ("musespark1x", "muse_glimmer"),
        ("openai", "harmony"),
        ("google/gemma-4-31b-it", "gemma_4"),
        ("google/functiongemma-270m-it", "functiongemma"),
        ("ibm-granite/granite-4.0-h-small", "granite_4"),
        ("microsoft/Phi-4-mini-instruct", "phi_4_mini"),
        ("tencent/Hunyuan-A13B-Instruct", "hunyuan_a13b"),
        ("stepfun-ai/Step-3.5-Flash", "step_3_5"),
        ("stepfun-ai/step3", "step_3"),
        ("allenai/Olmo-3-32B-Think", "olmo_3"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B", "nemotron_3"),
        ("LiquidAI/LFM2-8B-A1B", "lfm_2"),
        ("ByteDance-Seed/Seed-OSS-36B-Instruct", "seed_oss"),
        ("baidu/ERNIE-4.5-21B-A3B-Thinking", "ernie_4_5"),
        ("NousResearch/Hermes-4-14B", "hermes_4"),
        ("swiss-ai/Apertus-8B-Instruct-2509", "apertus"),
        ("CohereLabs/command-a-plus-05-2026", "command_a_plus"),
        ("XiaomiMiMo/MiMo-V2.6", "mimo_v2"),
        ("thinkingmachines/Inkling-1", "inkling"),
    ],
)
def test_names(name: str, family: str) -> None:
    assert stencilm.tools(name, TOOLS).family == family
