"""`StructTag`: free text in which triggers start tags, as Lark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from stencilm.compat.llguidance.notations import written
from stencilm.grammars.json_values import read_json_exactly, write_json
from stencilm.shown import shown_value


class StructTag:
    """One tag.

    Args:
        trigger: The text that starts it, such as "<function".
        begin: Its beginning, which begins with the trigger.
        grammar: Its content: a JSON Schema as a dict or text, or Lark.
        end: Its end.

    Raises:
        TypeError: A text is not a str.
        AssertionError: The trigger is empty, or `begin` does not begin with it.
    """

    def __init__(
        self, *, trigger: str, begin: str, grammar: str | dict[str, Any], end: str
    ) -> None:
        self.trigger = trigger
        self.begin = begin
        self.grammar = grammar
        self.end = end
        self._check()

    def _check(self) -> None:
        for name in ("trigger", "begin", "end"):
            if not isinstance(value := getattr(self, name), str):
                raise TypeError(f"{name} is {shown_value(value):.60}, but must be a str")
        if not self.trigger:
            raise AssertionError("trigger is empty: give what leads to the tag")
        if not self.begin.startswith(self.trigger):
            raise AssertionError(
                f"begin is {shown_value(self.begin):.80}, but must begin with {self.trigger!r}"
            )

    @staticmethod
    def to_grammar(
        tags: Sequence[StructTag],
        *,
        assume_special: bool = True,
        text_regex: str = r"(.|\n)*",
    ) -> str:
        """The text of a grammar: free text in which each trigger starts its tags.

        Args:
            tags: The tags, at least one.
            assume_special: Triggers in angle brackets are special tokens of the vocabulary.
            text_regex: The free text, without "/".

        Raises:
            AssertionError: There are no tags, one is not a StructTag, or the pattern has a slash.
            TypeError: The pattern is not a str, or a grammar holds what is no JSON.
            ValueError: A grammar is neither a text nor a dict, is nested too deeply, or holds
                itself.
        """
        if not tags:
            raise AssertionError("tags is empty: give at least one")
        for place, tag in enumerate(tags):
            if not isinstance(tag, StructTag):
                raise AssertionError(f"tags has {tag!r:.60} at {place}, but must hold StructTags")
        if not isinstance(text_regex, str):
            raise TypeError(f"text_regex is {shown_value(text_regex):.60}, but must be a str")
        if "/" in text_regex:
            raise AssertionError(
                f"text_regex is {shown_value(text_regex):.80}, but must not contain a slash"
            )
        choices = " | ".join(f"tag_{number}" for number in range(len(tags)))
        rules = [
            f"start: ({choices})* tag_end",
            "tag_end: TAG_TEXT",
            f"TAG_TEXT: /{text_regex}/",
        ]
        named: list[dict[str, str]] = []
        for number, tag in enumerate(tags):
            tag._check()
            body = _body(tag, f"tag_{number}_body", named)
            head = f"tag_{number}"
            if assume_special and tag.trigger.startswith("<") and tag.trigger.endswith(">"):
                rules.append(f"{head}: TAG_TEXT {tag.trigger} {body}")
            else:
                rules.append(f"{head}_trigger[lazy]: TAG_TEXT {json.dumps(tag.trigger)}")
                rules.append(f"{head}: {head}_trigger {body}")
        lark = "\n".join(rules) + "\n"
        if not named:
            return lark
        return json.dumps({"grammars": [{"name": "struct_tag", "lark_grammar": lark}, *named]})


def _body(tag: StructTag, name: str, named: list[dict[str, str]]) -> str:
    if isinstance(tag.grammar, dict):
        content = f"%json {written(tag.grammar)}"
    elif not isinstance(tag.grammar, str):
        raise ValueError(f"grammar is a {type(tag.grammar).__name__}, but must be a str or a dict")
    elif tag.grammar.lstrip().startswith('{"grammars"'):
        # The text that grammar_from_json_schema returns for a schema.
        read = _listed(tag.grammar)
        if len(read) != 1 or not isinstance(read[0], dict) or "json_schema" not in read[0]:
            raise ValueError("grammar lists several grammars, but a tag takes one")
        content = f"%json {write_json(read[0]['json_schema'])}"
    elif tag.grammar.lstrip().startswith("{"):
        content = f"%json {tag.grammar}"
    else:
        named.append({"name": name, "lark_grammar": tag.grammar})
        content = f"@{name}"
    rest = tag.begin.removeprefix(tag.trigger)
    parts = [json.dumps(rest) if rest else "", content, json.dumps(tag.end) if tag.end else ""]
    return " ".join(part for part in parts if part)


def _listed(grammar: str) -> list[Any]:
    try:
        listed = read_json_exactly(grammar)["grammars"]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the grammar of a tag begins with {{ but is no JSON: {error}") from error
    if not isinstance(listed, list):
        raise ValueError(f"grammars is a {type(listed).__name__}, but must be a list")
    return listed
