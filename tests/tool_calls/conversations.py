"""What the tests of conversations share: a model that follows a script, tools, and texts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, Field

import stencilm
from stencilm.generation.result import Generation
from stencilm.generation.stats import Stats
from stencilm.generation.trace import Trace
from stencilm.models import chat as conversations
from stencilm.models.chat import Chat, Talk

STATS = Stats(
    prompt_tokens=0,
    tokens=0,
    forced_tokens=0,
    forward_passes=0,
    mask_seconds=0.0,
    model_seconds=0.0,
    sampling_seconds=0.0,
    seconds=0.0,
    seed=None,
)


class Scripted:
    """A model that writes what a script says, each text checked against its grammar."""

    def __init__(self, texts: Sequence[str], tokenizer: Any = None) -> None:
        self.texts = iter(texts)
        self.prompts: list[Any] = []
        self.compiler = stencilm.GrammarCompiler(
            stencilm.TokenizerInfo.from_file(stencilm.__path__[0] + "/tiny")
        )
        if tokenizer is not None:
            self.backend = type("Backend", (), {"tokenizer": tokenizer})()

    def generate(self, prompt: Any, output_type: Any = str, **_: Any) -> Generation[Any]:

        self.prompts.append(prompt)
        text = next(self.texts)
        compiled = self.compiler.compile(stencilm.Grammar.from_type(output_type))
        matcher = stencilm.GrammarMatcher(compiled)
        assert matcher.accept_string(text) and matcher.is_completed(), text
        return Generation(
            text=text,
            token_ids=(),
            finish_reason="stop",
            is_complete=True,
            trace=Trace(),
            stats=STATS,
        )

    async def agenerate(self, prompt: Any, output_type: Any = str, **_: Any) -> Generation[Any]:
        await asyncio.sleep(0)
        return self.generate(prompt, output_type)


def chat(model: Scripted, messages: Any, **wishes: Any) -> Chat[Any]:
    return conversations.chat(model, Talk(messages, **wishes))


def awaited(model: Scripted, messages: Any, **wishes: Any) -> Chat[Any]:
    return asyncio.run(conversations.achat(model, Talk(messages, **wishes)))


CHAT_TEMPLATE = (
    "{% if tools %}<|system|>{{ tools | tojson }}<|end|>{% endif %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}"
    "{{ '<tool_call>\\n' ~ {'name': c.function.name, 'arguments': c.function.arguments} | tojson"
    " ~ '\\n</tool_call>' ~ ('' if loop.last else '\\n') }}{% endfor %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


class TemplateTokenizer:
    chat_template = CHAT_TEMPLATE
    name_or_path = "scripted"

    def apply_chat_template(self, messages: Any, *, tools: Any = None, **_: Any) -> str:
        from stencilm.chat_templates.renderer import Renderer

        return Renderer(CHAT_TEMPLATE).render(messages, tools=tools, add_generation_prompt=True)


def weather(city: str, day: date | None = None, unit: Literal["C", "F"] = "C") -> dict[str, Any]:
    """The weather of a city.

    Args:
        city: The name of the city.
        day: Which day;
            today where none is given.

    Returns:
        What it is like.
    """
    if city == "Atlantis":
        raise LookupError("no such city")
    return {"city": city, "day": None if day is None else day.isoformat(), "unit": unit}


def clock() -> str:
    """What time it is."""
    return "noon"


class Answer(BaseModel):
    city: str
    degrees: int = Field(ge=-90, le=60)


HERMES = '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>'
DAY = '{"city": "Rome", "day": "2026-05-01"}'
LOCAL = [
    HERMES % ("weather", DAY) + "\n" + HERMES % ("clock", "{}"),
    '{"city": "Rome", "degrees": 21}',
]
REMOTE = [
    '{"turn": {"tool_calls": [{"name": "weather", "arguments": '
    + DAY
    + '}, {"name": "clock", "arguments": {}}]}}',
    '{"turn": {"answer": {"city": "Rome", "degrees": 21}}}',
]
