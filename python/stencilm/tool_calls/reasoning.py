"""A model's format of reasoning, learned from its chat template.

One idea: a chat template shows it in three places: in the prompt, which may end within the
reasoning or after an empty one; in the form of an earlier answer with reasoning; and in the
difference between being told to reason and not to.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from stencilm.chat_templates.renderer import Renderer
from stencilm.errors import GrammarSyntaxError, LimitExceeded
from stencilm.matching.reasoning import ReasoningFormat
from stencilm.tool_calls.probing import template_source
from stencilm.tool_calls.template import THINKS

_SWITCHES = ("enable_thinking", "thinking")
"""The variables that tell chat templates to make the model reason."""

_HARMONY = ReasoningFormat(
    begin="<|channel|>analysis<|message|>",
    end="<|end|>",
    answer="<|start|>assistant<|channel|>final<|message|>",
    without="<|channel|>final<|message|>",
)
_CONTENT = "Content mark."
_REASON = "Reasoning mark."
_KEYS = ("reasoning_content", "reasoning", "thinking")
_USER = {"role": "user", "content": "A question."}


def reasoning_format(model: Any) -> ReasoningFormat | None:
    """How a model reasons, from its tokenizer or the text of its chat template.

    None if there is no template, or if it shows no reasoning.

    Examples:
        >>> import stencilm
        >>> stencilm.reasoning_format("a model without a chat template") is None
        True
    """
    source, special = template_source(model)
    return None if source is None else _learnt(source, tuple(sorted(special.items())))


@lru_cache(maxsize=64)
def _learnt(source: str, special: tuple[tuple[str, str], ...]) -> ReasoningFormat | None:
    if "<|channel|>" in source and "<|message|>" in source:
        return _HARMONY
    if not any(end.strip() in source for _, end in THINKS):
        return None
    try:
        return _shown(Renderer(source, dict(special)))
    except (ImportError, GrammarSyntaxError, LimitExceeded):
        # A text prompt needs no template, and a prompt of messages fails with the same error later.
        return None


def _shown(renderer: Renderer) -> ReasoningFormat | None:
    usual = _prompt(renderer)
    if usual is None:
        return None
    prompts_by_switch = {
        name: (_prompt(renderer, **{name: True}), _prompt(renderer, **{name: False}))
        for name in _SWITCHES
    }
    switches = tuple(name for name, both in prompts_by_switch.items() if both[0] != both[1])
    prompts = [
        usual,
        *(one for name in switches for one in prompts_by_switch[name] if one is not None),
    ]
    written = _written(renderer)
    found = _markers(prompts, written, renderer.source)
    if found is None:
        return None
    begin, end = found
    form = _with_whitespace(begin, end, prompts, written)
    is_off = form.is_closed(usual)
    # If the prompt alone shows nothing, compare it with one in which reasoning is switched off.
    is_in_prompt = any(
        prompts_by_switch[name][0] == usual != prompts_by_switch[name][1] for name in switches
    )
    is_on = form.is_open(usual) or (is_in_prompt and not is_off)
    return ReasoningFormat(
        begin=form.begin,
        end=form.end,
        answer=form.answer,
        closing=form.closing,
        is_on=is_on,
        switches=switches,
    )


def _prompt(renderer: Renderer, **options: Any) -> str | None:
    try:
        return renderer.render([_USER], add_generation_prompt=True, **options)
    except LimitExceeded:
        raise
    except Exception:  # an error that the template itself raises
        return None


def _written(renderer: Renderer) -> list[str]:
    """An answer with reasoning, written by the template under each known name of its field."""
    found = []
    for key in _KEYS:
        message = {"role": "assistant", "content": _CONTENT, key: _REASON}
        try:
            text = renderer.render([_USER, message], add_generation_prompt=False)
        except LimitExceeded:
            raise
        except Exception:
            continue
        if _REASON in text:
            found.append(text)
    return found


def _markers(prompts: list[str], written: list[str], source: str) -> tuple[str, str] | None:
    for begin, end in THINKS:
        ends = (begin.strip(), end.strip())
        if any(prompt.rstrip().endswith(ends) for prompt in prompts):
            return begin, end
    for begin, end in THINKS:
        around = re.escape(begin) + r"\s*" + re.escape(_REASON) + r"\s*" + re.escape(end)
        if any(re.search(around, text) for text in written):
            return begin, end
    return next(((begin, end) for begin, end in THINKS if begin in source and end in source), None)


def _with_whitespace(
    begin: str, end: str, prompts: list[str], written: list[str]
) -> ReasoningFormat:
    """The markers with the whitespace that the template writes around them."""
    after_begin = before_end = after_end = ""
    for prompt in prompts:
        if prompt.rstrip().endswith(begin.strip()):
            after_begin = prompt[len(prompt.rstrip()) :]
        elif prompt.rstrip().endswith(end.strip()):
            after_end = prompt[len(prompt.rstrip()) :]
    around = re.compile(
        re.escape(begin.rstrip())
        + rf"(\s*){re.escape(_REASON)}(\s*){re.escape(end)}(\s*){re.escape(_CONTENT)}"
    )
    for text in written:
        shown = around.search(text)
        if shown is not None:
            after_begin, before_end, after_end = shown.groups()
            break
    return ReasoningFormat(
        begin=begin.rstrip() + after_begin, end=end, closing=before_end, answer=after_end
    )
