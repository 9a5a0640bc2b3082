"""Families by name and by the names of their models, and their structural tags."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from stencilm.errors import GrammarSyntaxError
from stencilm.grammars.sources import OnUnsupported
from stencilm.grammars.structural_tag import Format, StructuralTag, is_format
from stencilm.shown import in_a_line, shown_value
from stencilm.tool_calls.families import TEMPLATES
from stencilm.tool_calls.harmony import harmony_format
from stencilm.tool_calls.request import Reasoning, ToolChoice, ToolRequest, read_request
from stencilm.tool_calls.tags import Builder, template_format
from stencilm.tool_calls.template import ToolTemplate

_REGISTRY: dict[str, ToolTemplate | Builder] = dict(TEMPLATES)
# The models that a function is meant for; a template has its own list.
_MODELS: dict[str, tuple[str, ...]] = {}


def register_model_structural_tag(
    name: str, template: ToolTemplate | Builder, *, models: Sequence[str] = ()
) -> None:
    """Registers a model family under a name, or replaces the one registered under it.

    Args:
        name: For `get_model_structural_tag` and `tools`.
        template: How it writes calls, or a function from a `ToolRequest` to a format.
        models: Names of models that a function is meant for, with `*` for any characters; a
            template has its own list.

    Examples:
        >>> import stencilm
        >>> template = stencilm.ToolTemplate(call="@$name($arguments)", trigger="@")
        >>> stencilm.register_model_structural_tag("my_family", template)
        >>> stencilm.tools("my_family", []).triggers
        ('@',)
    """
    if not isinstance(name, str) or not name:
        raise TypeError(
            f"name is {shown_value(name):.80}, but must be a str of at least one character"
        )
    if isinstance(models, str) or not all(isinstance(model, str) for model in models):
        raise TypeError(f"models is {shown_value(models):.80}, but must be a sequence of str")
    if isinstance(template, ToolTemplate) and models:
        raise ValueError("models is for a function: a ToolTemplate has its own")
    if isinstance(template, ToolTemplate):
        problem = template.problem()
        if problem is not None:
            raise ValueError(problem)
    elif not callable(template):
        raise TypeError(f"template is a {type(template).__name__}: give a ToolTemplate or function")
    _REGISTRY[name] = template
    _MODELS[name] = tuple(models)


def model_structural_tags() -> dict[str, tuple[str, ...]]:
    """The known names, each with patterns of the models that it is meant for.

    Examples:
        >>> import stencilm
        >>> "qwen_3" in stencilm.model_structural_tags()
        True
    """
    return {
        name: template.models if isinstance(template, ToolTemplate) else _MODELS[name]
        for name, template in _REGISTRY.items()
    }


def get_model_structural_tag(
    model: str,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: ToolChoice | None = "auto",
    reasoning: Reasoning | bool = "enabled",
    *,
    parallel_tool_calls: bool = True,
    answer: Format | Mapping[str, Any] | None = None,
    any_order: bool = False,
    strict_mode: bool = False,
    max_whitespace: int | None = 64,
    exclude_special_tokens: bool = True,
    on_unsupported: OnUnsupported = "error",
) -> StructuralTag:
    """The structural tag of what a model may write when it has these tools.

    Args:
        model: A name of `model_structural_tags`, or a model such as "Qwen/Qwen3-8B".
        tools: In the form of OpenAI's chat completions: functions, or tools of other types by
            `name` and `parameters`. A function that is not `strict` may have any arguments.
        tool_choice: "auto" (text, calls or both), "required" (calls and nothing else), "none"
            (text and no calls), a function by name, a tool by type, or `allowed_tools`.
        reasoning: Whether reasoning comes first; "auto" if the model may leave it out. True and
            False mean the first two. Without effect for models that do not reason.
        parallel_tool_calls: Allow several calls.
        answer: A format. If given, the model either calls tools or gives this answer, so structured
            output and tools are one request.
        any_order: Arguments in any order; only for styles of JSON.
        strict_mode: Forbid arguments that a schema does not declare.
        max_whitespace: The longest run of whitespace within arguments.
        exclude_special_tokens: Forbid markers of reasoning and of calls in text.
        on_unsupported: "error" refuses a grammar with a tool whose parameters cannot be enforced,
            and names the beginning of its calls; "relax" leaves out what cannot be enforced, for
            that tool alone, and the report of the grammar says so.

    Raises:
        GrammarSyntaxError: An unknown model, or tools or a choice of another form.

    Examples:
        >>> import stencilm
        >>> tag = stencilm.get_model_structural_tag("Qwen/Qwen3-8B", [], reasoning=False)
        >>> type(tag).__name__
        'StructuralTag'
    """
    name = family_name(model)
    template = family(name)
    request = read_request(
        tools,
        tool_choice,
        reasoning,
        style=template.style if isinstance(template, ToolTemplate) else "json",
        parallel=parallel_tool_calls,
        answer=answer,
        any_order=any_order,
        strict_mode=strict_mode,
        max_whitespace=max_whitespace,
        on_unsupported=on_unsupported,
        exclude_markers=exclude_special_tokens,
        bare_names=has_bare_names(template),
    )
    return family_tag(name, template, request)


def has_bare_names(template: ToolTemplate | Builder) -> bool:
    """Whether calls have tool names without quotes; for a function this is not known."""
    if isinstance(template, ToolTemplate):
        return any("$name" in way.call for way in template.ways())
    return template is harmony_format


def family_tag(name: str, template: ToolTemplate | Builder, request: ToolRequest) -> StructuralTag:
    """The structural tag of a family for a request."""
    if isinstance(template, ToolTemplate):
        return StructuralTag(format=template_format(template, request))
    made = template(request)
    if not is_format(made):
        raise TypeError(f"the function known as {name!r} must return a format, not {made!r}")
    return StructuralTag(format=made)


def family(name: str) -> ToolTemplate | Builder:
    """The family with a name of `model_structural_tags`."""
    return _REGISTRY[name]


def family_name(model: str) -> str:
    """The name of the family that a model belongs to.

    Raises:
        GrammarSyntaxError: It is not known.
    """
    if not isinstance(model, str):
        raise TypeError(f"model is a {type(model).__name__}, but must be a str")
    if model in _REGISTRY:
        return model
    last = _spelled(model.rsplit("/", 1)[-1])
    # A fine-tuned model is named after its own family, then its base: "Hermes-3-Llama-3.1-8B".
    found = [
        (-last.find(re.split(r"[*?\[]", pattern.strip("*"))[0]), len(pattern), name)
        for name, patterns in model_structural_tags().items()
        for pattern in map(_spelled, patterns)
        if fnmatchcase(last, pattern)
    ]
    if found:
        return max(found)[2]
    # Servers' parsers are named like families, but spelled differently: "glm47", "deepseek-v31".
    plain = re.sub("[^a-z0-9]", "", last)
    for name in _REGISTRY:
        if name.replace("_", "") == plain:
            return name
    names = ", ".join(_REGISTRY)
    raise GrammarSyntaxError(
        f"no tool calls are known for the model {in_a_line(model, 200)}: give one of "
        f"{names}, or register it"
    )


def _spelled(name: str) -> str:
    """A name in lower case, with hyphens in place of other separators."""
    return re.sub("[ _]", "-", name.lower())


register_model_structural_tag("harmony", harmony_format, models=("*gpt-oss*", "openai"))
