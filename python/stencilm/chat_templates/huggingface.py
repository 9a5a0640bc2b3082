"""The chat template of a transformers tokenizer, rendered here.

One idea: before rendering, transformers rearranges messages, differently in each release. So it is
made to render another template first, which writes down every variable of the real one, and the
real one is rendered here with these.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from stencilm.chat_templates.renderer import Renderer, today

_LAST = ""
_OWN = "PreTrainedTokenizerBase.apply_chat_template"


def chat_text_of(tokenizer: Any, messages: Sequence[Any], **options: Any) -> str:
    """Messages as `tokenizer.apply_chat_template(messages, tokenize=False, **options)` writes them.

    Tokenizers that format messages with code of a library, and not with a template of the model, do
    so themselves.

    Raises:
        LimitExceeded: The template takes too much time or memory.
        Exception: Errors of transformers or of the template.
    """
    source = _template_of(tokenizer, options.get("tools"))
    if source is None:
        return str(tokenizer.apply_chat_template(messages, tokenize=False, **options))
    name = getattr(tokenizer, "name_or_path", None)
    renderer, names = _renderer(source, name if isinstance(name, str) else "")
    written = tokenizer.apply_chat_template(
        messages, tokenize=False, chat_template=_written_down(names), **options
    )
    variables = dict(json.loads(written))
    del variables[_LAST]
    return renderer.written(variables)


def _template_of(tokenizer: Any, tools: Any) -> str | None:
    """The template that transformers itself would render; None if it renders none."""
    # mlx-lm's wrapper holds the tokenizer, and has functions for models without a template.
    inner = tokenizer
    if type(tokenizer).__module__.startswith("mlx_lm."):
        if getattr(tokenizer, "_chat_template", None) is not None:
            return None
        inner = getattr(tokenizer, "_tokenizer", tokenizer)
    method = getattr(type(inner), "apply_chat_template", None)
    if getattr(method, "__qualname__", "") != _OWN:
        return None
    source = inner.get_chat_template(tools=tools)
    return source if isinstance(source, str) else None


@lru_cache(maxsize=16)
def _renderer(source: str, name: str) -> tuple[Renderer, tuple[str, ...]]:
    called = f"the chat template of {name}" if name else None
    renderer = Renderer(source, name=called, strftime_now=today)
    return renderer, renderer.variables()


def _written_down(names: tuple[str, ...]) -> str:
    """A template that writes those of these variables that are defined."""
    parts = (
        f"{{% if {name} is defined %}}{{{{ ['{name}', {name}] | tojson }}}},{{% endif %}}"
        for name in names
    )
    return f"[{''.join(parts)}{json.dumps([_LAST, None])}]"
