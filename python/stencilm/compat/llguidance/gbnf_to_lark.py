"""GBNF as Lark, under the original's names."""

from __future__ import annotations

from stencilm.compat.llguidance.notations import grammar_from, is_lark_syntax

__all__ = ["any_to_lark", "gbnf_to_lark", "is_lark_syntax"]


def gbnf_to_lark(text: str) -> str:
    """A grammar of llama.cpp's notation as Lark.

    Args:
        text: The grammar; its first rule is `root`.

    Raises:
        ValueError: It is not well-formed, or Lark has no words for it.
    """
    return grammar_from("gbnf", text)


def any_to_lark(text: str) -> str:
    """The text if it looks like Lark; otherwise, read as GBNF, its translation to Lark.

    Raises:
        ValueError: It is neither.
    """
    return text if is_lark_syntax(text) else gbnf_to_lark(text)
