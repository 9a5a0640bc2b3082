"""Questions as the arguments of a call; pure functions, so that a test reads what would be sent."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from stencilm.endpoints.capabilities import Capabilities
from stencilm.endpoints.schema_subset import SubsetSchema, subset_schema
from stencilm.grammar import Grammar
from stencilm.grammar_sources import JsonSchemaSource, LarkSource, RegexSource
from stencilm.guiding.choosers import numbered
from stencilm.guiding.drafts import Ask

Messages: TypeAlias = list[dict[str, Any]]
Route: TypeAlias = Literal["chat", "completions", "messages"]

MAX_OPTIONS = 9  # so that one digit, and so one token, is an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call.

    Attributes:
        route: Which resource of the client.
        means: What the call is called in traces.
        arguments: The arguments of the call.
        held_back: Blanks at the end of the prefix that were not sent; an answer may begin with
            them.
        options: What may be chosen, where the answer is a number.
        is_rest: The answer goes on behind the prefix; else it may be the whole text.
        is_wrapped: The answer is an object that holds the text as its one member.
    """

    route: Route
    means: str
    arguments: dict[str, Any]
    held_back: str = ""
    options: tuple[str, ...] = field(default=())
    is_rest: bool = True
    is_wrapped: bool = False


def native_form(grammar: Grammar, capabilities: Capabilities) -> dict[str, Any] | None:
    """The grammar as an argument that the endpoint understands; None where there is none.

    A schema that the endpoint's strict mode does not take is sent as it is where there is a mode
    that is not strict, and not at all where there is none.
    """
    schema = schema_of(grammar)
    subset = subset_of(grammar, capabilities)
    for native in capabilities.native:
        if native == "structured_outputs":
            body = {"grammar": str(grammar)} if schema is None else {"json": schema}
            return {"extra_body": {"structured_outputs": body}}
        if native == "guided_grammar":
            body = {"grammar": str(grammar)} if schema is None else {"json_schema": schema}
            return {"extra_body": body}
        if native == "ebnf" and schema is None:
            return {"extra_body": {"ebnf": str(grammar)}}
        if native == "custom_tool" and (definition := tool_grammar(grammar)) is not None:
            return _custom_tool(definition)
        if schema is None:
            continue
        if native == "json_schema":
            is_strict = capabilities.schema_subset is None or subset is not None
            if not is_strict and schema.get("type") != "object":
                continue
            described = {
                "name": "output",
                "schema": schema if subset is None else subset.schema,
                "strict": is_strict,
            }
            return {"response_format": {"type": "json_schema", "json_schema": described}}
        if native == "output_config":
            if capabilities.schema_subset is not None and subset is None:
                continue
            taken = schema if subset is None else subset.schema
            return {"output_config": {"format": {"type": "json_schema", "schema": taken}}}
    return None


def subset_of(grammar: Grammar, capabilities: Capabilities) -> SubsetSchema | None:
    """The schema of a grammar as the endpoint's strict mode takes it, if it can be said there."""
    source = grammar.source
    if capabilities.schema_subset is None or not isinstance(source, JsonSchemaSource):
        return None
    return subset_schema(source.text, capabilities.schema_subset)


def _custom_tool(grammar: dict[str, str]) -> dict[str, Any]:
    """A tool whose input is the text, and the order to call it."""
    tool = {
        "name": "output",
        "description": "Takes the whole answer, and nothing else. The answer fits its grammar.",
        "format": {"type": "grammar", "grammar": grammar},
    }
    return {
        "tools": [{"type": "custom", "custom": tool}],
        "tool_choice": {"type": "custom", "custom": {"name": "output"}},
    }


def tool_grammar(grammar: Grammar) -> dict[str, str] | None:
    """A grammar as OpenAI's custom tools take it, in its own notation; None where they do not.

    They know regular expressions and Lark, without look-around, lazy repetition, priorities,
    templates, and imports other than the common library. A grammar that seems to have one of these
    is not sent.
    """
    source = grammar.source
    if isinstance(source, RegexSource):
        is_known = "\n" not in source.pattern and not _NOT_IN_TOOLS.search(source.pattern)
        return {"syntax": "regex", "definition": source.pattern} if is_known else None
    if isinstance(source, LarkSource) and source.start == "start" and not source.grammars:
        refused = _NOT_IN_TOOLS.search(source.text) or _NOT_IN_LARK_TOOLS.search(source.text)
        return None if refused else {"syntax": "lark", "definition": source.text}
    return None


_NOT_IN_TOOLS = re.compile(r"\(\?<?[=!]|[*+?}]\?")
"""Look-around and lazy repetition."""

_NOT_IN_LARK_TOOLS = re.compile(
    r"^\s*%(?!ignore\b|import\s+common\b)"  # directives, and imports of other files
    r"|^\s*[?!]*\w+(\.-?\d+|\[[^\]]*\]|\{[^}]*\})\s*:"  # priorities, attributes, templates
    r"|%(json|regex|lark)\b|@\w|<[\[|]|[&~]\s*[A-Z/\"]",  # what only our dialect has
    re.MULTILINE,
)


def schema_of(grammar: Grammar) -> Any:
    """The JSON Schema that a grammar was made from, if it is an object; else None."""
    source = grammar.source
    schema = json.loads(source.text) if isinstance(source, JsonSchemaSource) else None
    return schema if isinstance(schema, dict) else None


def request_for(ask: Ask, model: str, capabilities: Capabilities) -> Request:
    """The call that answers a question with the best means that the endpoint has."""
    if ask.kind == "whole":
        form = native_form(ask.grammar, capabilities) or {}
        subset = subset_of(ask.grammar, capabilities)
        is_schema = "response_format" in form or "output_config" in form
        request = _chat(ask, model, capabilities, messages_of(ask.prompt), "native", is_rest=False,
                        more=form)  # fmt: skip
        is_wrapped = is_schema and subset is not None and subset.is_wrapped
        return replace(request, is_wrapped=is_wrapped)
    if ask.kind == "choose":
        if ask.allowed_tokens and capabilities.logit_bias:
            bias = {str(token_id): capabilities.bias for token_id in ask.allowed_tokens}
            return _going_on(ask, model, capabilities, "logit_bias", {"logit_bias": bias}, limit=1)
        return _choosing(ask, model, capabilities)
    means = capabilities.continuation or ("re-ask" if ask.complaint else "instruct")
    return _going_on(ask, model, capabilities, means, {}, limit=ask.max_tokens)


def messages_of(prompt: Any) -> Messages:
    """A prompt as chat messages."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return [dict(message) for message in prompt]


def _going_on(
    ask: Ask, model: str, capabilities: Capabilities, means: str, more: dict[str, Any], limit: int
) -> Request:
    """Go on with the prefix; in the way of the endpoint, or by asking for it in words."""
    how = capabilities.continuation
    messages = messages_of(ask.prompt)
    if how == "completion" and isinstance(ask.prompt, str) and "logit_bias" not in more:
        arguments = _arguments(ask, model, capabilities, limit) | {
            "prompt": f"{ask.prompt}{ask.prefix}"
        }
        arguments["max_tokens"] = arguments.pop(capabilities.max_tokens)
        return Request(route="completions", means=means, arguments=arguments | more)
    if not ask.prefix:
        if ask.complaint and how is None:
            messages = [*messages, {"role": "user", "content": _complaint(ask)}]
        return _chat(ask, model, capabilities, messages, means, more=more, limit=limit)
    if how is None or how == "completion":
        messages += [
            {"role": "assistant", "content": ask.prefix},
            {"role": "user", "content": _wish(ask)},
        ]
        return _chat(ask, model, capabilities, messages, means, more=more, limit=limit,
                     is_rest="logit_bias" in more)  # fmt: skip
    # Neither templates nor older models of Anthropic keep blanks at the end of a message.
    sent = ask.prefix.rstrip()
    last: dict[str, Any] = {"role": "assistant", "content": sent}
    if how == "prefix":
        last["prefix"] = True
    if how == "continue_final_message":
        more = more | {
            "extra_body": {"continue_final_message": True, "add_generation_prompt": False}
        }
    messages = [*messages, last] if sent else messages
    return _chat(ask, model, capabilities, messages, means, more=more, limit=limit,
                 held_back=ask.prefix[len(sent) :])  # fmt: skip


def _choosing(ask: Ask, model: str, capabilities: Capabilities) -> Request:
    options = ask.options[:MAX_OPTIONS]
    question = (
        f"A text begins with:\n{ask.prefix}\n\nWhich of these comes next in it?\n"
        f"{numbered(options)}\nAnswer with the number only."
    )
    if capabilities.continuation == "completion" and isinstance(ask.prompt, str):
        arguments = _arguments(ask, model, capabilities, 1) | {
            "prompt": f"{ask.prompt}\n\n{question}\nThe number is "
        }
        arguments["max_tokens"] = arguments.pop(capabilities.max_tokens)
        return Request(route="completions", means="choice", arguments=arguments, options=options)
    messages = [*messages_of(ask.prompt), {"role": "user", "content": question}]
    limit = None if capabilities.max_tokens == "max_completion_tokens" else 1
    return _chat(ask, model, capabilities, messages, "choice", limit=limit, options=options)


def _chat(
    ask: Ask,
    model: str,
    capabilities: Capabilities,
    messages: Messages,
    means: str,
    *,
    more: dict[str, Any] | None = None,
    limit: int | None = None,
    held_back: str = "",
    options: Sequence[str] = (),
    is_rest: bool = True,
) -> Request:
    arguments = _arguments(ask, model, capabilities, limit or ask.max_tokens)
    return Request(
        route="chat",
        means=means,
        arguments=arguments | {"messages": messages} | (more or {}),
        held_back=held_back,
        options=tuple(options),
        is_rest=is_rest,
    )


def _arguments(ask: Ask, model: str, capabilities: Capabilities, limit: int) -> dict[str, Any]:
    """What nobody asked for is not sent: some models take no temperature but their own."""
    arguments: dict[str, Any] = {"model": model}
    # This bound counts what a model thinks to itself, too: ours would cut it short.
    if ask.is_bounded or limit == 1 or capabilities.max_tokens != "max_completion_tokens":
        arguments[capabilities.max_tokens] = limit
    if capabilities.temperature:
        if ask.temperature is not None:
            arguments["temperature"] = ask.temperature
        if ask.top_p < 1:
            arguments["top_p"] = ask.top_p
    if capabilities.seed and ask.seed is not None:
        arguments["seed"] = ask.seed
    if ask.stop and ask.kind != "choose":
        arguments["stop"] = list(ask.stop)[:4]
    return arguments


def _wish(ask: Ask) -> str:
    wish = (
        "Your answer was cut off. Continue it from exactly where it stops, and write nothing but "
        "the rest."
    )
    return f"{_complaint(ask)} {wish}" if ask.complaint else wish


def _complaint(ask: Ask) -> str:
    return f"{ask.complaint} Write only the text itself, with nothing before or behind it."
