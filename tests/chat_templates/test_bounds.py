"""Chat templates that loop or grow without end: each ends in an error, within little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import stencilm
from chat_templates.templates import USER
from stencilm.chat_templates import budget
from stencilm.chat_templates.renderer import MAX_CHARACTERS, MAX_VARIABLES, Renderer
from stencilm.errors import GrammarSyntaxError, LimitExceeded, ModelError
from stencilm.models.prompts import chat_text

# What they end with where it is not LimitExceeded.
OTHERWISE = {"OverflowError", "RecursionError"}
TEMPLATES = (Path(__file__).parent / "endless.txt").read_text(encoding="utf-8").splitlines()


def outcomes() -> dict[str, str]:
    """What each of the templates ends with, by a process with little memory and little time."""
    budget.SECONDS = 0.2
    found = {}
    for source in TEMPLATES:
        try:
            Renderer(source).render([USER], add_generation_prompt=True)
            found[source] = "a text"
        except Exception as error:
            found[source] = type(error).__name__
    return found


def test_each_ends_in_an_error_within_memory() -> None:
    script = (
        "import sys, json\n"
        "try:\n"
        "    import resource\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (1536 << 20,) * 2)\n"
        "except (ImportError, ValueError):\n"  # of Windows and macOS
        "    pass\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from chat_templates import test_bounds\n"
        "print(json.dumps(test_bounds.outcomes()))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True
    )
    found = json.loads(run.stdout)
    allowed = {"LimitExceeded", *OTHERWISE}
    assert len(found) > 70
    assert {source: kind for source, kind in found.items() if kind not in allowed} == {}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "{{ 'a' * 10**10 }}",
            r"template \"{{ 'a' \* 10\*\*10 }}\" makes more than 256 MiB of text",
        ),
        ("{{ 5 | round(9999) }}", "hands a number above 4096 to what is slow"),
        ("{{ 2 ** 99999 }}", "calculates with integers of more than 16384 bits"),
        ("{% set a = namespace() %}{% set a.a = a %}{{ a }}", "nests lists deeper than 500 levels"),
    ],
)
def test_errors_name_the_template_and_the_limit(source: str, said: str) -> None:
    with pytest.raises(LimitExceeded, match=said):
        Renderer(source).render([USER])


def test_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "SECONDS", 0.1)
    endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(LimitExceeded, match=r"of a model takes more than 0\.1 s of processor time"):
        Renderer(endless, name="the template of a model").render([USER])


def test_long_templates() -> None:
    with pytest.raises(LimitExceeded, match="has 131,073 characters, and at most 131,072 are read"):
        Renderer("a" * (MAX_CHARACTERS + 1))
    names = "".join(f"{{{{ a{number} }}}}" for number in range(MAX_VARIABLES + 1))
    with pytest.raises(LimitExceeded, match="reads 201 variables, and at most 200 are given"):
        Renderer(names).variables()


@pytest.mark.parametrize(
    "source", ["{{ (" * 9999, "{% if a %}" * 9999, "{{ a | nothing }}", "{% x"]
)
def test_what_is_no_template(source: str) -> None:
    with pytest.raises(GrammarSyntaxError, match="is no Jinja template: "):
        Renderer(source)


def test_messages_may_be_long() -> None:
    long = {"role": "user", "content": "é" * (1 << 24)}
    text = Renderer("{% for m in messages %}{{ m.content | trim ~ m.role }}{% endfor %}").render(
        [long]
    )
    assert len(text) == (1 << 24) + 4


def test_a_step_after_the_limit_fails_too() -> None:
    """No test of Jinja that catches what it tries may go on."""
    spent = budget.Budget("it")
    with pytest.raises(LimitExceeded, match="makes"):
        spent.make(1 << 40)
    with pytest.raises(LimitExceeded, match="makes"):
        spent.step()


HOSTILE = "<think></think>{{ 'a' * 10**10 }}"


def test_who_asks_for_it() -> None:
    assert stencilm.reasoning_format(HOSTILE) is None
    with pytest.raises(LimitExceeded, match=r"chat template .* makes more than"):
        stencilm.tools(HOSTILE, [])


def test_messages_to_a_model_with_such_a_template() -> None:
    pytest.importorskip("transformers")
    from generation.small_models import byte_tokenizer

    tokenizer: Any = byte_tokenizer(chat_template=HOSTILE)
    with pytest.raises(LimitExceeded, match=r"chat template .* makes more than"):
        chat_text(tokenizer, [USER])
    tokenizer.chat_template = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"
    with pytest.raises(ModelError, match="chat template cannot write them: RecursionError"):
        chat_text(tokenizer, [USER])
