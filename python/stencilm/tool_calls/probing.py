"""The format of a model's calls, learned from its chat template by rendering marked calls.

One idea: a chat template writes earlier answers of the model in the form in which the model is to
write them. So an answer with known names and values is rendered, and the text around these marks is
the format. If a known family writes exactly the same text, it is that family, which has more
information than a template shows. Otherwise a `ToolTemplate` is made from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stencilm.chat_templates.renderer import Renderer
from stencilm.errors import GrammarSyntaxError, LimitExceeded
from stencilm.grammars.structural_tag import Style
from stencilm.tool_calls.argument_readers import MARKERS
from stencilm.tool_calls.harmony import harmony_format
from stencilm.tool_calls.registry import family, family_name, model_structural_tags
from stencilm.tool_calls.tags import Builder
from stencilm.tool_calls.template import MARKER, THINKS, ToolTemplate
from stencilm.tool_calls.writer import write_arguments, write_calls

# The format is learned from two calls, and tested on three.
_THREE_NAMES = ("mark_first", "mark_second", "mark_third")
_THREE_VALUES = ("Value one", "Value two", "Value three")
_NAMES, _VALUES = _THREE_NAMES[:2], _THREE_VALUES[:2]
_KEY = "mark_key"
_IDS = ("markid001", "markid002", "markid003")
_NAMED_IDS = tuple(f"functions.{name}:{number}" for number, name in enumerate(_THREE_NAMES))
_CONTENT = "Content mark."
_REASON = "Reasoning mark."
_SCHEMA = {
    "type": "object",
    "properties": {_KEY: {"type": "string", "description": "A text."}},
    "required": [_KEY],
}
_TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": "A tool.", "parameters": _SCHEMA},
    }
    for name in _THREE_NAMES
]


def probe(model: Any) -> tuple[str, ToolTemplate | Builder]:
    """The family of a tokenizer or of a chat template, or a template that was learned.

    Raises:
        GrammarSyntaxError: It has no chat template, or one that writes no calls, and its name
            belongs to no family.
    """
    source, special = template_source(model)
    if source is None:
        return _by_name(model, "it has no chat template")
    renderer = Renderer(source, special)
    if "<|channel|>" in source and "<|message|>" in source:
        return "harmony", harmony_format
    try:
        seen = _look(renderer)
    except _NoCalls as error:
        shown = _by_words(source)
        return shown if shown is not None else _by_name(model, str(error))
    found = _known(seen)
    if found is not None:
        return found
    learnt = _learnt(seen)
    if learnt is None:
        return _by_name(model, "what its chat template writes for a call could not be taken apart")
    return "learnt", learnt


def _by_name(model: Any, reason: str) -> tuple[str, ToolTemplate | Builder]:
    name = getattr(model, "name_or_path", None)
    if isinstance(name, str) and name:
        try:
            known = family_name(name)
            return known, family(known)
        except GrammarSyntaxError:
            pass
    raise GrammarSyntaxError(
        f"no tool calls are known for this model: {reason}; give the name of a family, or a "
        "ToolTemplate"
    )


def template_source(model: Any) -> tuple[str | None, dict[str, str]]:
    """The text of a chat template, and the special tokens that it may use."""
    if isinstance(model, str):
        return model, {}
    template = getattr(model, "chat_template", None)
    if isinstance(template, Mapping):
        template = template.get("tool_use") or template.get("default")
    special = {
        name: str(token)
        for name, token in (getattr(model, "special_tokens_map", None) or {}).items()
        if isinstance(token, str)
    }
    return template if isinstance(template, str) else None, special


def _by_words(source: str) -> tuple[str, ToolTemplate] | None:
    """The family whose markers a chat template describes in words, if it writes no calls itself."""
    found: list[tuple[int, str, ToolTemplate]] = []
    for name in model_structural_tags():
        template = family(name)
        if not isinstance(template, ToolTemplate) or template.trigger[:1] in "{[":
            continue
        for way in template.ways():
            words = {*MARKER.findall("".join((way.section[0], way.call, way.section[1])))}
            if words and all(word in source for word in words):
                same = (template.think is not None) == any(begin in source for begin, _ in THINKS)
                found.append((2 * sum(map(len, words)) + same, name, template))
    if not found:
        return None
    _, name, template = max(found, key=lambda entry: entry[0])
    return name, template


class _NoCalls(Exception):
    """The template writes no calls; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The output of a chat template.

    Attributes:
        one: An answer with one call.
        two: An answer with two calls.
        three: An answer with three calls; None if the template does not write as many.
        end: The end of an answer without calls.
        prompt: The end of a prompt.
        source: The chat template.
        think: The text around reasoning; None if it shows none.
        ids: The ids of the calls.
    """

    one: str
    two: str
    three: str | None
    end: str
    prompt: str
    source: str
    think: tuple[str, str] | None
    ids: tuple[str, ...]


def _message(
    count: int, ids: tuple[str, ...], as_text: bool, content: str | None
) -> dict[str, Any]:
    calls = []
    for name, value, call_id in list(zip(_THREE_NAMES, _THREE_VALUES, ids, strict=True))[:count]:
        arguments: Any = {_KEY: value}
        if as_text:
            arguments = json.dumps(arguments)
        function = {"name": name, "arguments": arguments}
        calls.append({"type": "function", "id": call_id, "function": function})
    return {"role": "assistant", "content": content, "tool_calls": calls}


def _look(renderer: Renderer) -> Seen:
    user = {"role": "user", "content": "A question."}
    problem = ""
    for as_text in (False, True):
        for content in ("", None):
            for ids in (_IDS, _NAMED_IDS):
                try:
                    prompt = renderer.render([user], tools=_TOOLS, add_generation_prompt=True)
                    one = renderer.render(
                        [user, _message(1, ids, as_text, content)],
                        tools=_TOOLS,
                        add_generation_prompt=False,
                    )
                except LimitExceeded:
                    raise
                except Exception as error:
                    # An error that the template itself raises, for a message that it does not
                    # accept.
                    problem = (
                        problem or f"its chat template fails with {type(error).__name__}: {error}"
                    )
                    continue
                answer = _after(prompt, one)
                if _NAMES[0] not in answer or _VALUES[0] not in answer:
                    problem = "its chat template does not write calls"
                    continue
                several: list[str | None] = []
                for count in (2, 3):
                    try:
                        text = renderer.render(
                            [user, _message(count, ids, as_text, content)],
                            tools=_TOOLS,
                            add_generation_prompt=False,
                        )
                        several.append(_after(prompt, text))
                    except LimitExceeded:
                        raise
                    except Exception:
                        # Some templates accept only one call at a time.
                        several.append(None)
                return _seen(renderer, user, prompt, answer, several, ids)
    raise _NoCalls(problem)


def _seen(
    renderer: Renderer,
    user: dict[str, Any],
    prompt: str,
    one: str,
    several: list[str | None],
    ids: tuple[str, ...],
) -> Seen:
    end = ""
    try:
        text = renderer.render(
            [user, {"role": "assistant", "content": _CONTENT}],
            tools=_TOOLS,
            add_generation_prompt=False,
        )
        end = text[text.rindex(_CONTENT) + len(_CONTENT) :]
    except LimitExceeded:
        raise
    except Exception:
        # A template that does not accept plain answers does not show how they end.
        end = ""
    return Seen(
        one=one,
        two=several[0] or one,
        three=several[1],
        end=end,
        prompt=prompt[-200:],
        source=renderer.source,
        think=_think(renderer, user, prompt, ids),
        ids=ids,
    )


def _think(
    renderer: Renderer, user: dict[str, Any], prompt: str, ids: tuple[str, ...]
) -> tuple[str, str] | None:
    for begin, end in THINKS:
        if prompt.rstrip().endswith(begin.strip()) or prompt.rstrip().endswith(end.strip()):
            return begin, end
    for key in ("reasoning_content", "reasoning", "thinking"):
        message = {**_message(1, ids, False, ""), key: _REASON}
        try:
            text = renderer.render([user, message], tools=_TOOLS, add_generation_prompt=False)
        except LimitExceeded:
            raise
        except Exception:
            continue
        for begin, end in THINKS:
            if re.search(
                re.escape(begin) + r"\s*" + re.escape(_REASON) + r"\s*" + re.escape(end), text
            ):
                return begin, end
    source = renderer.source
    return next(((begin, end) for begin, end in THINKS if begin in source and end in source), None)


def _after(prompt: str, text: str) -> str:
    """The text after a prompt, without reasoning that is empty or that the prompt begins."""
    rest = rest_after(prompt, text)
    for begin, end in THINKS:
        rest = re.sub(rf"^\s*(?:{re.escape(begin.strip())})?\s*{re.escape(end)}\s*", "", rest)
    return rest


def rest_after(prompt: str, text: str) -> str:
    """The text after the common beginning with a prompt."""
    common = 0
    for one, other in zip(prompt, text, strict=False):
        if one != other:
            break
        common += 1
    # If the prompt continues differently, with the beginning of reasoning, both may begin with the
    # same marker.
    begun = re.search(r"[<\[\]{][^<>\[\]{}\s]*\Z", text[:common]) if common < len(prompt) else None
    return text[common if begun is None else begun.start() :]


def _known(seen: Seen) -> tuple[str, ToolTemplate] | None:
    """The family whose output occurs in the answers, longest text first."""
    calls: list[tuple[str, Mapping[str, Any]]] = [
        (name, {_KEY: value}) for name, value in zip(_NAMES, _VALUES, strict=True)
    ]
    schemas = dict.fromkeys(_NAMES, _SCHEMA)
    ids = [re.sub(r".*:", "", call_id) for call_id in seen.ids[:2]]
    both = seen.two != seen.one
    found: list[tuple[tuple[int, bool, bool, bool], str, ToolTemplate]] = []
    for name in model_structural_tags():
        template = family(name)
        if not isinstance(template, ToolTemplate):
            continue
        for order, way in enumerate(template.ways()):
            for numbers in (ids, ["0", "1"], ["1", "2"]):
                one = write_calls(way, calls[:1], schemas, ids=numbers)
                two = write_calls(way, calls, schemas, ids=numbers)
                if way.style == "python":
                    # Both kinds of quotes write the same string.
                    one, two = one.replace('"', "'"), two.replace('"', "'")
                if _within(one, seen.one) and (not both or _within(two, seen.two)):
                    same = template.think == seen.think
                    prefilled = template.think_prefilled == _is_open(seen, seen.think)
                    found.append(((len(one), order == 0, same, prefilled), name, template))
                    break
    if not found:
        return None
    # Of families with the same output, choose the one with the template's reasoning.
    _, name, template = max(found, key=lambda entry: entry[0])
    think = seen.think
    if think is None or (template.think and think[0].strip() == template.think[0].strip()):
        think = template.think
    return name, replace(
        template,
        think=think,
        think_prefilled=think is not None and (_is_open(seen, think) or template.think_prefilled),
    )


def _is_open(seen: Seen, think: tuple[str, str] | None) -> bool:
    return think is not None and seen.prompt.rstrip().endswith(think[0].strip())


def _within(written: str, text: str) -> bool:
    """Whether a text contains what was written, from its first line on."""
    written = written.strip()
    return written in text


def _learnt(seen: Seen) -> ToolTemplate | None:
    """Make a template from the text around the marks."""
    end = seen.end.strip()
    one = _with_ids(_cut_end(seen.one, end), seen.ids)
    two = _with_ids(_cut_end(seen.two, end), seen.ids)
    style = _style(one)
    if style is None:
        return None
    name, shown = style
    parts_one = _split(one, shown[:1], 1)
    parts_two = _split(two, shown, 2) if two != one else None
    if parts_one is None:
        return None
    header, middle, tail = parts_one
    begin_section = end_section = ""
    separator = "\n"
    if parts_two is not None:
        before, _, between, _, after = parts_two
        prefix = _common_suffix(before, between)
        suffix = _common_prefix(after, between[: len(between) - len(prefix)])
        separator = between[len(suffix) : len(between) - len(prefix)]
        begin_section = before[: len(before) - len(prefix)]
        end_section = after[len(suffix) :]
        header, tail = prefix, suffix
    call = header + "$NAME" + middle + "$arguments" + tail
    if re.search(r':\s*"$|\{"$', header) and middle.startswith('"'):
        call = header[:-1] + "$json_name" + middle[1:] + "$arguments" + tail
    else:
        call = call.replace("$NAME", "$name")
    call, begin_section = (
        call.lstrip("\n") if not begin_section else call,
        begin_section.lstrip("\n"),
    )
    trigger = (begin_section or call.partition("$")[0]).strip().partition("\n")[0]
    if not trigger:
        return None
    template = ToolTemplate(
        call=call,
        trigger=trigger,
        style=name,
        section=(begin_section, end_section),
        separator=separator,
        think=seen.think,
        think_prefilled=_is_open(seen, seen.think),
        id_pattern="[A-Za-z0-9_.:-]{1,64}",
    )
    if template.problem() is not None or not _writes(template, seen):
        return None
    return template


def _with_ids(text: str, ids: tuple[str, ...]) -> str:
    """A text in which ids of calls become the placeholder, except those that contain a name."""
    for call_id in ids:
        text = text if call_id in _NAMED_IDS else text.replace(call_id, "$id")
    return text


def _writes(template: ToolTemplate, seen: Seen) -> bool:
    """Whether a template writes the same text, except for parts that differ between calls.

    Whitespace and the kind of quotes are ignored.
    """
    calls: list[tuple[str, Mapping[str, Any]]] = [
        (name, {_KEY: value}) for name, value in zip(_THREE_NAMES, _THREE_VALUES, strict=True)
    ]
    schemas = dict.fromkeys(_THREE_NAMES, _SCHEMA)
    for count, text in ((1, seen.one), (2, seen.two), (3, seen.three)):
        if text is None or (count == 2 and text == seen.one):
            continue
        written = write_calls(template, calls[:count], schemas, ids=seen.ids)
        shown = _cut_end(text, seen.end.strip())
        if _plain(written) != _plain(shown):
            return False
    return True


def _plain(text: str) -> str:
    return "".join(text.split()).replace("'", '"')


def _cut_end(text: str, end: str) -> str:
    """An answer without its end."""
    if end and text.rstrip().endswith(end):
        text = text.rstrip()[: -len(end)]
    return text.rstrip()


def _style(one: str) -> tuple[Style, list[str]] | None:
    """The style of the arguments, and the arguments of both calls as they are written."""
    for value in (
        json.dumps({_KEY: _VALUES[0]}),
        json.dumps({_KEY: _VALUES[0]}, separators=(",", ":")),
    ):
        if value in one:
            return "json", [value, value.replace(_VALUES[0], _VALUES[1])]
    styles: list[Any] = [*MARKERS, "gemma", "functiongemma", "python"]
    for style in styles:
        written = write_arguments(style, {_KEY: _VALUES[0]}, _SCHEMA)
        for shown in (written, written.strip()):
            if shown in one:
                return style, [shown, shown.replace(_VALUES[0], _VALUES[1])]
    return None


def _split(text: str, shown: list[str], count: int) -> list[str] | None:
    """A text split at the names and arguments of its calls."""
    parts = []
    for name, arguments in zip(_NAMES[:count], shown, strict=True):
        before, found, text = text.partition(name)
        if not found:
            return None
        middle, found, text = text.partition(arguments)
        if not found:
            return None
        parts += [before, middle]
    return [*parts, text]


def _common_prefix(one: str, other: str) -> str:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return one[:length]


def _common_suffix(one: str, other: str) -> str:
    return _common_prefix(one[::-1], other[::-1])[::-1]
