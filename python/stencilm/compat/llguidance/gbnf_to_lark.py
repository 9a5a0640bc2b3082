"""GBNF as Lark, under the original's names."""

from __future__ import annotations

import re

from stencilm.compat.llguidance.notations import grammar_from


def gbnf_to_lark(text: str) -> str:
    """A grammar of llama.cpp's notation as Lark.

    Args:
        text: The grammar; its first rule is `root`.

    Raises:
        ValueError: It is not well formed, or Lark has no words for it.
    """
    return grammar_from("gbnf", text)


def is_lark_syntax(text: str) -> bool:
    """Whether a text is Lark by its looks: it has a rule `start`, or a line with `%llguidance`."""
    return re.search(r"^\s*(?:start\s*:|%llguidance\b)", text, re.MULTILINE) is not None


def any_to_lark(text: str) -> str:
    """The text where it is Lark by its looks; else what it is as Lark, read as GBNF.

    Raises:
        ValueError: It is neither.
    """
    return text if is_lark_syntax(text) else gbnf_to_lark(text)
