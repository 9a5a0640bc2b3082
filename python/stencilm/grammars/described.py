"""Grammars described in words, for a model that is asked to follow one without masks."""

from __future__ import annotations

import re
from typing import Any

from stencilm.grammars.grammar import Grammar
from stencilm.grammars.output_types import FREE_TEXT
from stencilm.grammars.sources import EbnfSource, JsonSchemaSource, LarkSource, RegexSource


def choices_of(grammar: Grammar) -> list[str] | None:
    """The texts of a grammar that lists them, such as a `Choice`; None for any other grammar."""
    source = grammar.source
    if not isinstance(source, RegexSource):
        return None
    match = re.fullmatch(r"\(\?:((?:[^\\()|\[\]{}.*+?^$]|\\[^\w]|\|)*)\)", source.pattern, re.S)
    if match is None:
        return None
    options = re.split(r"(?<!\\)((?:\\\\)*)\|", match[1])
    texts = [options[0]]
    for run, option in zip(options[1::2], options[2::2], strict=True):
        texts[-1] += run
        texts.append(option)
    return [re.sub(r"\\(.)", r"\1", text, flags=re.S) for text in texts]


def is_free_text(grammar: Grammar) -> bool:
    """Whether the grammar matches every text."""
    return isinstance(grammar.source, RegexSource) and grammar.source.pattern == FREE_TEXT


def described(grammar: Grammar) -> str | None:
    """Describe a grammar in words for a model; None if there is nothing to say."""
    if is_free_text(grammar):
        return None
    source: Any = grammar.source
    options = choices_of(grammar)
    if options is not None:
        return "\n".join(["Answer with exactly one of these lines, and nothing else:", *options])
    if isinstance(source, JsonSchemaSource):
        return (
            "Answer with JSON only, and nothing before or after it. It must be valid under this "
            f"JSON Schema:\n{source.text}"
        )
    if isinstance(source, RegexSource):
        return (
            "Answer only with a text that this regular expression matches as a whole:\n"
            f"{source.pattern}"
        )
    if isinstance(source, LarkSource):
        return f"Answer only with a text of this grammar, in Lark's notation:\n{source.text}"
    text = source.text if isinstance(source, EbnfSource) else str(grammar)
    return f"Answer only with a text of this grammar:\n{text}"
