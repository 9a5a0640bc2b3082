"""The arguments of a call for each request.

Pure functions, so that a test reads what would be sent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from stencilm.endpoints.capabilities import Capabilities, Native
from stencilm.endpoints.messages import Messages, messages_of, text_of
from stencilm.endpoints.plain_grammars import plain_gbnf, plain_regex
from stencilm.endpoints.reasoning import extra_tokens, reasoning_arguments
from stencilm.endpoints.schema_subset import SubsetSchema, subset_schema
from stencilm.endpoints.sent_schemas import sent_schema
from stencilm.endpoints.tags import native_tag
from stencilm.errors import UnsupportedFeature
from stencilm.generation.sampling import Sampling
from stencilm.grammars.described import choices_of, described, is_free_text
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.json_values import plain_json
from stencilm.grammars.sources import JsonSchemaSource, LarkSource, RegexSource
from stencilm.guiding.drafts import Ask
from stencilm.guiding.labels import Labels
from stencilm.models.prompts import with_text

Route: TypeAlias = Literal["chat", "completions"]

MAX_OPTIONS = 9  # so that an answer is one digit or letter, and so one token


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call.

    Attributes:
        route: The resource of the client.
        means: The name of the call in traces.
        arguments: The arguments of the call.
        held_back: Whitespace at the end of the prefix that was not sent; an answer may begin with
            it.
        options: The options to choose from, if the answer is a label.
        is_rest: The answer continues the prefix; otherwise it may be the whole text.
        is_wrapped: The answer is an object that holds the text as its only member.
    """

    route: Route
    means: str
    arguments: dict[str, Any]
    held_back: str = ""
    options: tuple[str, ...] = field(default=())
    is_rest: bool = True
    is_wrapped: bool = False


def native_form(grammar: Grammar, capabilities: Capabilities) -> dict[str, Any] | None:
    """The grammar as arguments that the endpoint understands; None where there are none.

    A schema that the endpoint's strict mode does not take is sent as it is where there is a mode
    that is not strict, and not at all where there is none. Free text needs no arguments.
    """
    if is_free_text(grammar):
        return {}
    schema = schema_of(grammar)
    subset = subset_of(grammar, capabilities)
    for native in capabilities.native:
        form = _native(native, grammar, schema, subset, capabilities)
        if form is not None:
            extra = dict(capabilities.extra_body)
            return _merged(form, {"extra_body": extra}) if extra else form
    return None


def _merged(arguments: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """The arguments with more of them; objects of the same name have the members of both."""
    merged = dict(arguments)
    for name, value in more.items():
        here = merged.get(name)
        if isinstance(here, dict) and isinstance(value, dict):
            value = _merged(here, value)
        merged[name] = value
    return merged


def _native(
    native: Native,
    grammar: Grammar,
    schema: Any,
    subset: SubsetSchema | None,
    capabilities: Capabilities,
) -> dict[str, Any] | None:
    if native == "structured_outputs":
        tag = native_tag(grammar)
        if tag is not None:
            # What may be a special token of the server's is in the text, and no blank beside it.
            shown = {"skip_special_tokens": False, "spaces_between_special_tokens": False}
            return {"extra_body": {"structured_outputs": {"structural_tag": tag}, **shown}}
        body = {"json": schema} if schema is not None else _constraint(grammar, "grammar")
        return None if body is None else {"extra_body": {"structured_outputs": body}}
    if native == "structural_tag":
        tag = native_tag(grammar)
        if tag is None or (value := _plain(tag)) is None:
            return None
        return {"response_format": value, "extra_body": {"skip_special_tokens": False}}
    if native == "guided_grammar":
        if schema is not None:
            return {"extra_body": {"json_schema": schema}}
        text = plain_gbnf(grammar)
        # llama.cpp writes no NUL: where nothing else may come, the whole of a server ends.
        if text is None or _NEEDS_NUL.match(text):
            return None
        return {"extra_body": {"grammar": text}}
    if native == "custom_tool":
        definition = tool_grammar(grammar)
        return None if definition is None else _custom_tool(definition, capabilities)
    if native == "ebnf":
        body = None if schema is not None else _constraint(grammar, "ebnf")
        return None if body is None else {"extra_body": body}
    if native == "regex_format":
        pattern = plain_regex(grammar) if schema is None else None
        if pattern is None:
            return None
        return {"response_format": {"type": "regex", "pattern": pattern}}
    if schema is None:
        return None
    if native == "json_object":
        return {"response_format": {"type": "json_object"}} if _is_object(schema) else None
    if native == "output_config":
        if capabilities.schema_subset is not None and subset is None:
            return None
        taken = schema if subset is None else subset.schema
        return {"output_config": {"format": {"type": "json_schema", "schema": taken}}}
    is_strict = capabilities.schema_subset is None or subset is not None
    if not is_strict and schema.get("type") != "object":
        return None
    named = {
        "name": "output",
        "schema": schema if subset is None else subset.schema,
        "strict": is_strict,
    }
    if capabilities.responses:
        return {"text": {"format": {"type": "json_schema", **named}}}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _is_object(schema: dict[str, Any]) -> bool:
    """Whether every valid value is an object, as far as the root of the schema shows."""
    here: Any = schema
    for _ in range(8):
        reference = here.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        here = schema
        for part in reference[2:].split("/"):
            here = here.get(part, {}) if isinstance(here, dict) else {}
        if not isinstance(here, dict):
            return False
    return bool(here.get("type") == "object")


def _constraint(grammar: Grammar, grammar_name: str) -> dict[str, Any] | None:
    """A grammar without a schema for vLLM and SGLang: options, a pattern, or a grammar."""
    options = choices_of(grammar)
    if options is not None and grammar_name == "grammar":
        return {"choice": options}
    pattern = plain_regex(grammar)
    if pattern is not None:
        return {"regex": pattern}
    text = plain_gbnf(grammar)
    return None if text is None else {grammar_name: text}


def subset_of(grammar: Grammar, capabilities: Capabilities) -> SubsetSchema | None:
    """The schema of a grammar in the form of the endpoint's strict mode, if possible."""
    source = grammar.source
    if capabilities.schema_subset is None or not isinstance(source, JsonSchemaSource):
        return None
    return subset_schema(sent_schema(source), capabilities.schema_subset)


def _custom_tool(grammar: dict[str, str], capabilities: Capabilities) -> dict[str, Any]:
    """A tool whose input is the text, and the instruction to call it."""
    tool = {
        "name": "output",
        "description": "Takes the whole answer, and nothing else. The answer fits its grammar.",
    }
    if capabilities.responses:
        format_of = {"format": {"type": "grammar", **grammar}}
        return {
            "tools": [{"type": "custom", **tool, **format_of}],
            "tool_choice": {"type": "custom", "name": "output"},
        }
    nested = {"format": {"type": "grammar", "grammar": grammar}}
    return {
        "tools": [{"type": "custom", "custom": {**tool, **nested}}],
        "tool_choice": {"type": "custom", "custom": {"name": "output"}},
    }


def tool_grammar(grammar: Grammar) -> dict[str, str] | None:
    """A grammar in the notation of OpenAI's custom tools; None if they cannot express it.

    They support regular expressions and Lark, without look-around, lazy repetition, priorities,
    templates, and imports other than the common library. A grammar that seems to use any of these
    is not sent.
    """
    source = grammar.source
    if isinstance(source, RegexSource):
        is_known = "\n" not in source.pattern and not _NOT_IN_TOOLS.search(source.pattern)
        return {"syntax": "regex", "definition": source.pattern} if is_known else None
    if isinstance(source, LarkSource) and source == LarkSource.of(source.text):
        refused = _NOT_IN_TOOLS.search(source.text) or _NOT_IN_LARK_TOOLS.search(source.text)
        return None if refused else {"syntax": "lark", "definition": source.text}
    return None


_NOT_IN_TOOLS = re.compile(r"\(\?<?[=!]|[*+?}]\?")
"""Look-around and lazy repetition."""

_NEEDS_NUL = re.compile(
    r"""(?sx)
    (?: [^"\[] | "(?:[^"\\]|\\.)*+" | \[(?:[^\]\\]|\\.)*+\] )*?
    (?: "(?:[^"\\]|\\(?!x00).)*+\\x00 | \[\\x00\] )
    """
)
"""GBNF with a text that contains NUL, or a class that is only NUL."""

_NOT_IN_LARK_TOOLS = re.compile(
    r"^\s*%(?!ignore\b|import\s+common\b)"  # directives, and imports of other files
    r"|^\s*[?!]*\w+(\.-?\d+|\[[^\]]*\]|\{[^}]*\})\s*:"  # priorities, attributes, templates
    r"|%(json|regex|lark)\b|@\w|<[\[|]|[&~]\s*[A-Z/\"]",  # features of our dialect only
    re.MULTILINE,
)


def schema_of(grammar: Grammar) -> Any:
    """The JSON Schema of a grammar, if it is an object and can be sent; else None."""
    source = grammar.source
    return _plain(sent_schema(source)) if isinstance(source, JsonSchemaSource) else None


def _plain(text: str) -> dict[str, Any] | None:
    """The object of a JSON text, if the library of an endpoint can write it again."""
    try:
        value = plain_json(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def request_for(ask: Ask, model: str, capabilities: Capabilities) -> Request:
    """The call that answers a request with the best means that the endpoint has.

    Raises UnsupportedFeature for a sampling option that the endpoint does not take.
    """
    check_options(ask.sampling, ask.temperature, ask.stop, capabilities)
    if ask.kind == "whole":
        form = native_form(ask.grammar, capabilities) or {}
        subset = subset_of(ask.grammar, capabilities)
        is_schema = any(name in form for name in ("response_format", "text", "output_config"))
        carries_schema = form.get("response_format", {}).get("type") != "json_object"
        messages = _described(ask, capabilities, is_native=carries_schema)
        request = _chat(ask, model, capabilities, messages, "native", is_rest=False, more=form)
        is_wrapped = is_schema and subset is not None and subset.is_wrapped
        return replace(request, is_wrapped=is_wrapped)
    if ask.kind == "choose":
        if ask.allowed_tokens and capabilities.logit_bias:
            bias = {str(token_id): capabilities.bias for token_id in ask.allowed_tokens}
            return _going_on(ask, model, capabilities, "logit_bias", {"logit_bias": bias}, limit=1)
        return _choosing(ask, model, capabilities)
    means = capabilities.continuation or ("re-ask" if ask.complaint else "instruct")
    return _going_on(ask, model, capabilities, means, {}, limit=ask.max_tokens)


def check_options(
    sampling: Sampling,
    temperature: float | None,
    stop: Sequence[str],
    capabilities: Capabilities,
) -> None:
    """Raise UnsupportedFeature for a requested option that the endpoint does not take."""
    asked = {
        "temperature": temperature is not None and not capabilities.temperature,
        "top_p": sampling.top_p < 1 and not capabilities.temperature,
        "seed": sampling.seed is not None and not capabilities.seed,
        "stop": bool(stop) and not capabilities.stop,
        "logit_bias": bool(sampling.logit_bias) and not capabilities.logit_bias,
    }
    asked |= {name: name not in capabilities.options for name in _asked_options(sampling)}
    for name, is_refused in asked.items():
        if is_refused:
            raise UnsupportedFeature(
                f"this endpoint takes no {name}: leave it out, or say by Capabilities(...) that it "
                "does"
            )


def _asked_options(sampling: Sampling) -> dict[str, Any]:
    """The further options that differ from their defaults, as they are sent."""
    usual = Sampling()
    names = ("top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty")
    return {
        name: getattr(sampling, name)
        for name in names
        if getattr(sampling, name) != getattr(usual, name)
    }


def _described(ask: Ask, capabilities: Capabilities, *, is_native: bool) -> Messages:
    """The prompt as messages, with the grammar in words if nothing else conveys it."""
    messages = messages_of(ask.prompt)
    wanted = capabilities.schema_in_prompt
    if wanted is False or (wanted is None and is_native):
        return messages
    text = described(ask.grammar)
    return messages if text is None else with_text(messages, text)


def _going_on(
    ask: Ask, model: str, capabilities: Capabilities, means: str, more: dict[str, Any], limit: int
) -> Request:
    """Continue the prefix: in the endpoint's own way, or by asking for it in words."""
    how = capabilities.continuation
    if how == "completion" and isinstance(ask.prompt, str) and "logit_bias" not in more:
        arguments = _arguments(ask, model, capabilities, limit)
        arguments.pop(capabilities.max_tokens, None)
        text = described(ask.grammar) if capabilities.schema_in_prompt else None
        prompt = ask.prompt if text is None else f"{ask.prompt}\n\n{text}\n"
        arguments |= {"prompt": f"{prompt}{ask.prefix}", "max_tokens": limit}
        return Request(route="completions", means=means, arguments=arguments | more)
    is_given_as_text = how == "completion" and isinstance(ask.prompt, str)
    messages = _described(ask, capabilities, is_native=is_given_as_text)
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
    # Neither templates nor older models of Anthropic keep whitespace at the end of a message.
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
    labels = Labels(options)
    question = labels.question(
        f"A text begins with:\n{ask.prefix}\n\nWhich of these comes next in it?"
    )
    most = 1 if labels.names else max(len(option.encode()) for option in options)
    if capabilities.continuation == "completion" and isinstance(ask.prompt, str):
        arguments = _arguments(ask, model, capabilities, most)
        arguments.pop(capabilities.max_tokens, None)
        arguments |= {
            "prompt": f"{ask.prompt}\n\n{question}.\nThe {labels.kind} is ",
            "max_tokens": most,
        }
        return Request(route="completions", means="choice", arguments=arguments, options=options)
    messages = [*messages_of(ask.prompt), {"role": "user", "content": f"{question}."}]
    # One token is too few for a model that reasons before it answers.
    limit = most if capabilities.max_tokens == "max_tokens" else None
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
    more = more or {}
    # A text that is gone on with has been thought about.
    reasoning = ask.reasoning if ask.kind != "choose" and not ask.prefix else "auto"
    thought = reasoning_arguments(capabilities.reasoning, model, reasoning)
    arguments |= {"messages": messages}
    arguments = _merged(_merged(arguments, more), thought)
    if thought and capabilities.max_tokens in arguments:
        arguments[capabilities.max_tokens] += extra_tokens(reasoning)
    return Request(
        route="chat",
        means=means,
        arguments=arguments,
        held_back=held_back,
        options=tuple(options),
        is_rest=is_rest,
    )


def _arguments(ask: Ask, model: str, capabilities: Capabilities, limit: int) -> dict[str, Any]:
    """Options that the caller did not set are not sent: some models refuse any temperature."""
    arguments: dict[str, Any] = {"model": model}
    # Our own bound might cut a model's reasoning short.
    if ask.is_bounded or limit == 1 or capabilities.needs_max_tokens:
        arguments[capabilities.max_tokens] = limit
    if ask.temperature is not None:
        arguments["temperature"] = ask.temperature
    if ask.top_p < 1:
        arguments["top_p"] = ask.top_p
    extra: dict[str, Any] = {}
    if ask.seed is not None:
        # The library has only one name for it.
        (arguments if capabilities.seed_name == "seed" else extra)[capabilities.seed_name] = (
            ask.seed
        )
    for name, value in _asked_options(ask.sampling).items():
        is_known = name in ("frequency_penalty", "presence_penalty")
        (arguments if is_known else extra)[name] = value
    if ask.sampling.logit_bias:
        arguments["logit_bias"] = {
            str(key): value for key, value in ask.sampling.logit_bias.items()
        }
    if ask.stop and ask.kind != "choose":
        arguments["stop"] = list(ask.stop)[:4]
    if extra:
        arguments["extra_body"] = extra
    return arguments


def _wish(ask: Ask) -> str:
    wish = (
        "Your answer was cut off. Continue it from exactly where it stops, and write nothing but "
        "the rest."
    )
    return f"{_complaint(ask)} {wish}" if ask.complaint else wish


def _complaint(ask: Ask) -> str:
    return f"{ask.complaint} Write only the text itself, with nothing before or after it."


__all__ = [
    "Messages",
    "Request",
    "check_options",
    "messages_of",
    "native_form",
    "request_for",
    "schema_of",
    "subset_of",
    "text_of",
    "tool_grammar",
]
