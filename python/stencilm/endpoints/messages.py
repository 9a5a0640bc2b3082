"""Messages in the form of each provider: there are three ways to write a picture, or a call.

One idea: a message is read in any of the common forms, and written in the one that its provider
documents. Everything except texts, pictures, and calls of tools (`tool_messages`) is passed on
unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from stencilm.characters import check_characters
from stencilm.endpoints.tool_messages import (
    fault_of_calls,
    in_anthropic_form,
    in_chat_form,
    in_responses_form,
    plain,
)
from stencilm.errors import UnsupportedFeature
from stencilm.models.protocol import check_role
from stencilm.shown import shown_value

Messages: TypeAlias = list[dict[str, Any]]
Form: TypeAlias = Literal["chat", "responses", "anthropic"]

_TEXTS = ("text", "input_text", "output_text")
_ELSEWHERE: dict[Form, frozenset[str]] = {
    "chat": frozenset({"document", "search_result", "server_tool_use"}),
    "responses": frozenset({"document", "search_result", "server_tool_use", "file", "input_audio"}),
    "anthropic": frozenset({"file", "input_audio", "input_file"}),
}
"""Types of parts that only other providers have, and that are not translated."""

_DATA = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)


def checked_messages(prompt: Any) -> Any:
    """Check that a prompt is text or a list of chat messages, and return it.

    Raises TypeError, also for a part of a message without the fields of its kind, and ValueError
    for a lone surrogate, which no request can contain.
    """
    if isinstance(prompt, str):
        _check_characters(prompt)
        return prompt
    is_list = isinstance(prompt, Sequence) and not isinstance(prompt, (bytes, bytearray))
    if not is_list or not all(isinstance(message, Mapping) for message in prompt):
        raise TypeError(
            f"the prompt is {shown_value(prompt):.60}, but must be a str, or chat messages such as "
            "[{'role': 'user', 'content': 'Hello'}]"
        )
    for message in prompt:
        _check(message)
    return prompt


def _check(message: Mapping[str, Any]) -> None:
    check_role(message)
    content = message.get("content")
    if content is not None and not isinstance(content, (str, list, tuple)):
        raise TypeError(
            f"the content of a message is {shown_value(content):.60}, but must be a str, or a "
            "list of parts "
            "such as {'type': 'text', 'text': 'Hello'}"
        )
    if isinstance(content, str):
        _check_characters(content)
    for part in map(plain, content) if isinstance(content, (list, tuple)) else ():
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            _check_characters(part["text"])
        needed = _needed(part) if isinstance(part, Mapping) else None
        if needed is not None:
            raise TypeError(
                f"a part of a message is {shown_value(dict(part)):.100}, but must have {needed} "
                "as a str"
            )
    fault = fault_of_calls(message)
    if fault is not None:
        raise TypeError(
            f"a message has {shown_value(fault[0]):.100}, which must have {fault[1]}: the ids tell "
            "which result is that of which call"
        )


def _check_characters(text: str) -> None:
    check_characters(text, "the prompt", "no request can hold")


def _needed(part: Mapping[str, Any]) -> str | None:
    """The fields that a part of a message lacks; None if it lacks none."""
    kind, source = part.get("type"), part.get("source")
    if kind == "text":
        return None if isinstance(part.get("text"), str) else "its 'text'"
    if kind == "image_url":
        given = part.get("image_url")
        url = given.get("url") if isinstance(given, Mapping) else given
        return None if isinstance(url, str) else "the 'url' of its 'image_url'"
    if kind == "image" and isinstance(source, Mapping) and source.get("type") == "base64":
        names = ("media_type", "data")
        missing = [name for name in names if not isinstance(source.get(name), str)]
        return f"the {missing[0]!r} of its 'source'" if missing else None
    return None


def messages_of(prompt: Any) -> Messages:
    """A prompt as chat messages."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return [dict(message) for message in prompt]


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, without its pictures."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if isinstance(part, Mapping))


def in_form(messages: Messages, form: Form) -> Messages:
    """The messages with their parts and calls in a provider's form.

    Raises UnsupportedFeature for what the provider's form cannot express.
    """
    messages = in_anthropic_form(messages) if form == "anthropic" else in_chat_form(messages)
    if form == "responses":
        messages = in_responses_form(messages)
    return [_in_form(message, form) for message in messages]


def _in_form(message: dict[str, Any], form: Form) -> dict[str, Any]:
    """A message or a result, with its parts in a provider's form."""
    is_said = message.get("role") == "assistant"
    made = dict(message)
    for name in ("content", "output"):
        given = message.get(name)
        if isinstance(given, (list, tuple)):
            made[name] = [_part(plain(part), form, is_said=is_said) for part in given]
    return made


def _part(part: Any, form: Form, *, is_said: bool) -> Any:
    if not isinstance(part, Mapping):
        return part
    kind = part.get("type")
    if kind in _TEXTS:
        said = part.get("text") or ""
        if form == "responses":
            return {"type": "output_text" if is_said else "input_text", "text": said}
        return part if kind == "text" else {"type": "text", "text": said}
    if kind in _ELSEWHERE[form]:
        raise UnsupportedFeature(
            f"a message has a part of the type {kind!r}, which this provider's API does not take: "
            "write it in the provider's own form, or leave it out"
        )
    if kind == "tool_result" and isinstance(part.get("content"), (list, tuple)):
        inner = [_part(plain(one), form, is_said=is_said) for one in part["content"]]
        return {**part, "content": inner}
    url = _picture(part)
    if url is None:
        return part
    if form == "responses":
        return {"type": "input_image", "image_url": url}
    if form == "anthropic":
        data = _DATA.fullmatch(url)
        source: dict[str, str] = {"type": "url", "url": url}
        if data is not None:
            source = {"type": "base64", "media_type": data["type"], "data": data["data"]}
        return {"type": "image", "source": source}
    details = part.get("image_url")
    return {
        "type": "image_url",
        "image_url": details if isinstance(details, dict) else {"url": url},
    }


def _picture(part: Mapping[str, Any]) -> str | None:
    """The address of a picture, which may contain its data; None if the part is not one."""
    kind = part.get("type")
    if kind == "image_url":
        given = part["image_url"]
        return str(given["url"] if isinstance(given, Mapping) else given)
    if kind == "input_image" and "image_url" in part:
        return str(part["image_url"])
    if kind != "image":
        return None
    source = part.get("source")
    if isinstance(source, Mapping):
        if source.get("type") == "base64":
            return f"data:{source['media_type']};base64,{source['data']}"
        return str(source["url"]) if "url" in source else None
    return str(part["url"]) if "url" in part else None
