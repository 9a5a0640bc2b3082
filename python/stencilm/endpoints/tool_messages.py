"""Calls of tools in a conversation, in the form of each provider.

One idea: OpenAI's chat completions and Anthropic have one form each, which many programs keep their
conversations in. A message in the other one's form is written in the provider's; ids, names,
arguments and results stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from stencilm.errors import UnsupportedFeature
from stencilm.grammars.json_values import plain_json, write_json
from stencilm.grammars.written_numbers import WrittenNumber
from stencilm.models.exact_numbers import NumberText
from stencilm.shown import in_a_line, shown_value

Message = dict[str, Any]

_REASONING = ("thinking", "redacted_thinking")
_NEEDED = {"tool_use": ("id", "name"), "tool_result": ("tool_use_id",)}
_OF_CHATS = frozenset(
    {
        "annotations", "audio", "function_call", "name", "reasoning", "reasoning_content",
        "refusal", "tool_calls",
    }
)  # fmt: skip
"""The fields of chat completions that the messages of the other APIs do not have."""


def plain(value: Any) -> Any:
    """A part of a message as a dict, also if it is an object of a provider's library."""
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) else value


def parts_of(content: Any) -> list[Any]:
    """The parts of a message's content; a text is one of them."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [plain(part) for part in content or ()]


def fault_of_calls(message: Mapping[str, Any]) -> tuple[Any, str] | None:
    """What of a message's calls and results lacks a field, and which; None if nothing does."""
    if message.get("role") == "tool" and not isinstance(message.get("tool_call_id"), str):
        return dict(message), "the 'tool_call_id' of its call"
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, (list, tuple)):
        return calls, "calls in a list"
    for call in map(plain, calls):
        if not isinstance(call, Mapping) or not isinstance(call.get("id"), str):
            return call, "an 'id'"
        kind = "custom" if "custom" in call else "function"
        said = call.get(kind)
        if not isinstance(said, Mapping) or not isinstance(said.get("name"), str):
            return dict(call), f"the 'name' of its {kind!r}"
    for part in parts_of(message.get("content")):
        for name in _NEEDED.get(_kind(part), ()):
            if not isinstance(part.get(name), str):
                return dict(part), f"its {name!r}"
    return None


def in_chat_form(messages: Iterable[Message]) -> list[Message]:
    """The messages with their calls and results in the form of OpenAI's chat completions."""
    made: list[Message] = []
    for message in messages:
        if message.get("tool_calls"):
            calls = [_with_text(plain(call)) for call in message["tool_calls"]]
            message = {**message, "tool_calls": calls}
        content = message.get("content")
        if not isinstance(content, (list, tuple)):
            made.append(message)
            continue
        parts = parts_of(content)
        calls = [_chat_call(part) for part in parts if _kind(part) == "tool_use"]
        results = [part for part in parts if _kind(part) == "tool_result"]
        others = [
            part for part in parts if _kind(part) not in ("tool_use", "tool_result", *_REASONING)
        ]
        made += map(_tool_message, results)
        if calls:
            calls = [*(message.get("tool_calls") or ()), *calls]
            made.append({**message, "content": others or None, "tool_calls": calls})
        elif others or not results:
            made.append({**message, "content": others})
    return made


def in_responses_form(messages: Iterable[Message]) -> list[Message]:
    """Messages in the form of chat completions as items of the Responses API."""
    made: list[Message] = []
    customs: set[str] = set()
    for message in messages:
        if message.get("role") == "tool":
            name = message["tool_call_id"]
            kind = "custom_tool_call_output" if name in customs else "function_call_output"
            said = message.get("content") or ""
            made.append({"type": kind, "call_id": name, "output": said})
            continue
        calls = message.get("tool_calls") or ()
        said = _only_said(message)
        if not calls or said.get("content"):
            made.append(said)
        for call in calls:
            if "custom" in call:
                customs.add(call["id"])
                item = {"type": "custom_tool_call", "call_id": call["id"], **call["custom"]}
            else:
                item = {"type": "function_call", "call_id": call["id"], **call["function"]}
            made.append(item)
    return made


def in_anthropic_form(messages: Iterable[Message]) -> list[Message]:
    """The messages with their calls and results in Anthropic's form.

    All results of a turn are in one message, and so is what the user says after them.
    """
    made: list[Message] = []
    is_of_results = False
    for message in messages:
        content: Any = message.get("content")
        if message.get("role") == "tool":
            result: Message = {"type": "tool_result", "tool_use_id": message["tool_call_id"]}
            block = {**result, "content": content} if content else result
            if is_of_results:
                made[-1]["content"].append(block)
            else:
                made.append({"role": "user", "content": [block]})
            is_of_results = True
            continue
        if is_of_results and message.get("role") == "user":
            made[-1]["content"] += parts_of(content)
            is_of_results = False
            continue
        if message.get("tool_calls"):
            calls = [_block(plain(call)) for call in message["tool_calls"]]
            made.append({"role": "assistant", "content": [*parts_of(content), *calls]})
        else:
            made.append(_only_said(message))
        is_of_results = False
    return made


def names_of_calls(messages: Iterable[Message]) -> list[str]:
    """The names of the tools that are called in messages of Anthropic's form."""
    found: dict[str, None] = {}
    for message in messages:
        for part in parts_of(message.get("content")):
            if _kind(part) == "tool_use":
                found[part["name"]] = None
    return list(found)


def _only_said(message: Message) -> Message:
    """The message without the fields of chat completions; a refusal is what it says."""
    said = {name: one for name, one in message.items() if name not in _OF_CHATS}
    if not said.get("content") and isinstance(message.get("refusal"), str):
        said["content"] = message["refusal"]
    return said


def _kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, Mapping) else None


def _with_text(call: Message) -> Message:
    """A call whose arguments are a text of JSON, as the API takes them."""
    function = call.get("function")
    if function is None:
        return call
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = _json_text({} if arguments is None else arguments)
    return {"type": "function", **call, "function": {**function, "arguments": arguments}}


def _chat_call(block: Message) -> Message:
    function = {"name": block["name"], "arguments": _json_text(block.get("input") or {})}
    return {"id": block["id"], "type": "function", "function": function}


def _tool_message(block: Message) -> Message:
    content = block.get("content")
    if isinstance(content, (list, tuple)):
        parts = parts_of(content)
        if all(_kind(part) == "text" for part in parts):
            content = "".join(part["text"] for part in parts)
        else:
            content = parts
    return {"role": "tool", "tool_call_id": block["tool_use_id"], "content": content or ""}


def _block(call: Message) -> Message:
    """A call as a block of Anthropic's, whose arguments are an object."""
    if "custom" in call:
        given: Any = {"input": call["custom"].get("input") or ""}
        name = call["custom"]["name"]
    else:
        name, given = call["function"]["name"], call["function"].get("arguments")
        if isinstance(given, str):
            try:
                given = plain_json(given) if given.strip() else {}
            except (ValueError, RecursionError):
                given = call["function"]["arguments"]
        given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise UnsupportedFeature(
            f"the call {call['id']!r} of {name!r} has the arguments "
            f"{in_a_line(shown_value(given), 100)}, but Anthropic's API takes only an object of "
            "JSON: correct the message, or leave the call and its result out"
        )
    return {"type": "tool_use", "id": call["id"], "name": name, "input": given}


def _json_text(value: Any) -> str:
    return write_json(_exact(value))


def _exact(value: Any) -> Any:
    """The value with the numbers that a local model's messages have as marked texts."""
    if isinstance(value, Mapping):
        return {name: _exact(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_exact(one) for one in value]
    return Decimal(str(value)) if isinstance(value, (NumberText, WrittenNumber)) else value
