"""How a family of models writes an answer, as one value.

One idea: a call is a text with placeholders, and the same text is read in both directions. `tags`
makes a grammar of it, `parser` reads calls back with it.

In a call, `$name` stands for the name of the tool, `$json_name` for the name as a JSON string,
`$id` for what the model counts its calls by, and `$arguments` for the arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from stencilm.grammars.structural_tag import Style
from stencilm.shown import shown_value
from stencilm.whole_numbers import is_truth

# Texts that may be one special token of a tokenizer.
MARKER = re.compile(r"\]<\]minimax\[>\[|</?[^<>\s\"'=$]+>|\[/?[A-Z_]+\]")
PLACEHOLDER = re.compile(r"\$(name|json_name|id|arguments)\b")
# Markers of reasoning in prompts; a template that opens one of them reasons.
THINKS = (
    ("<think>", "</think>"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<mm:think>", "</mm:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ("<ifm|think>", "</ifm|think>"),
    ("<think:opensource>", "</think:opensource>"),
    ("<|think|>", "<|end|>"),
    ("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallVariant:
    """Another way in which a family writes calls; what is None is as in its `ToolTemplate`.

    Attributes:
        call: One call.
        section: The text before the first call and after the last one.
        separator: The text between two calls.
    """

    call: str | None = None
    section: tuple[str, str] | None = None
    separator: str | None = None

    def __post_init__(self) -> None:
        _check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTemplate:
    """How one family of models writes an answer.

    Attributes:
        call: One call, from the first character that is not text to the last.
        trigger: The beginning of a call, or of the section around calls, which no text contains.
        style: How the arguments are written.
        section: The text before the first call and after the last one.
        separator: The text between two calls.
        think: The text around reasoning; None for a family that does not reason.
        think_prefilled: The prompt may end with the beginning of the reasoning, as chat templates
            write it if the model is to think: then the text begins within it.
        response: The text around parts that are not calls.
        response_first: Such a part may come before calls, and not only instead of them.
        response_prefilled: The prompt may end with the beginning of such a part.
        blank_lines: Blank lines may come before calls where nothing else does.
        one_line: Templates write no line breaks between the parts of an argument.
        end: What a model may write after everything else.
        id_pattern: What `$id` matches.
        id_format: The id of a call if it is more than `$id`, with `$name` and `$id`.
        variants: Other ways to write calls, which begin with the trigger as well.
        models: Names of models, with `*` for any characters.

    Raises:
        TypeError: A part is of another type.
        ValueError: The style is unknown.

    Examples:
        >>> import stencilm
        >>> template = stencilm.ToolTemplate(call="@$name($arguments)", trigger="@")
        >>> template.problem() is None, len(template.ways())
        (True, 1)
    """

    call: str
    trigger: str
    style: Style = "json"
    section: tuple[str, str] = ("", "")
    separator: str = "\n"
    think: tuple[str, str] | None = None
    think_prefilled: bool = False
    response: tuple[str, str] | None = None
    response_first: bool = False
    response_prefilled: bool = False
    blank_lines: bool = False
    one_line: bool = False
    end: str = ""
    id_pattern: str = "[0-9]{1,4}"
    id_format: str | None = None
    variants: tuple[CallVariant, ...] = ()
    models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_fields(self)

    def ways(self) -> tuple[ToolTemplate, ...]:
        """This template and its variants."""
        ways = [self]
        for variant in self.variants:
            ways.append(
                replace(
                    self,
                    call=self.call if variant.call is None else variant.call,
                    section=self.section if variant.section is None else variant.section,
                    separator=self.separator if variant.separator is None else variant.separator,
                    variants=(),
                )
            )
        return tuple(ways)

    def problem(self) -> str | None:
        """Why this is not a valid template, or None."""
        if not self.trigger.strip():
            return f"the trigger {self.trigger!r} is blank, and so in every text"
        for name, around in (("think", self.think), ("response", self.response)):
            if around is not None and not all(part.strip() for part in around):
                return f"{name} is {around!r}, of which a part is blank, and so in every text"
        for way in self.ways():
            for part in ("$arguments", "$json_name" if "$json_name" in way.call else "$name"):
                if way.call.count(part) != 1:
                    return f"the call {way.call!r} must hold {part} exactly once"
            if way.call.count("$id") > 1:
                return f"the call {way.call!r} must hold $id once at most"
            begin = (way.section[0] + way.call).replace("$json_name", '"')
            if not begin.startswith(self.trigger):
                return f"the trigger {self.trigger!r} begins neither section nor call"
        return None


def _is_pair(value: Any) -> bool:
    return _is_list_of(str)(value) and len(value) == 2


def _is_list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, (tuple, list)) and all(isinstance(part, kind) for part in value)
    )


# The permitted values of a part of a template, by its declaration.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "str": (lambda value: isinstance(value, str), "a str"),
    "bool": (is_truth, "True or False"),
    "Style": (lambda value: isinstance(value, str), "a str"),
    "tuple[str, str]": (_is_pair, "a tuple of two str"),
    "tuple[str, ...]": (_is_list_of(str), "a tuple of str"),
    "tuple[CallVariant, ...]": (_is_list_of(CallVariant), "a tuple of CallVariant"),
}


def _check_fields(template: CallVariant | ToolTemplate) -> None:
    for field in fields(template):
        value = getattr(template, field.name)
        kind, _, otherwise = str(field.type).partition(" | ")
        fits, wanted = _KINDS[kind]
        if not (fits(value) or (otherwise and value is None)):
            raise TypeError(
                f"{field.name} of a {type(template).__name__} is {shown_value(value):.60}, but "
                "must be "
                f"{wanted}{' or None' if otherwise else ''}"
            )
        if kind == "Style" and value not in get_args(Style):
            known = ", ".join(map(repr, get_args(Style)))
            raise ValueError(f"style is {shown_value(value):.60}, but must be one of {known}")
