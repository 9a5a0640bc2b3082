"""Messages in the form of each provider: there are three ways to write a picture.

One idea: a message is read in any of the common forms, and written in the one that its provider
documents. Everything except pictures is passed on unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from stencilm.characters import check_characters
from stencilm.models.protocol import check_role
from stencilm.shown import shown_value

Messages: TypeAlias = list[dict[str, Any]]
Form: TypeAlias = Literal["chat", "responses", "anthropic"]

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
    for part in content if isinstance(content, (list, tuple)) else ():
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            _check_characters(part["text"])
        needed = _needed(part) if isinstance(part, Mapping) else None
        if needed is not None:
            raise TypeError(
                f"a part of a message is {shown_value(dict(part)):.100}, but must have {needed} "
                "as a str"
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
    """The messages with their parts in a provider's form."""
    made = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, (list, tuple)):
            is_said = message.get("role") == "assistant"
            content = [_part(part, form, is_said=is_said) for part in content]
            message = {**message, "content": content}
        made.append(message)
    return made


def _part(part: Any, form: Form, *, is_said: bool) -> Any:
    if not isinstance(part, Mapping):
        return part
    kind = part.get("type")
    if kind == "text" and form == "responses":
        return {"type": "output_text" if is_said else "input_text", "text": part["text"]}
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
