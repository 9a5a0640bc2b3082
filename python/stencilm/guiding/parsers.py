"""Grammars for guiding, and where a text leaves one.

One idea: `obtain_correction_pairs` says where a text left the grammar and what might have come
there, `choose_candidate` lets a model say which, and a program may do the rest as it likes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stencilm.grammars.grammar import Grammar
from stencilm.guiding.backtrack import cut_place, readable
from stencilm.matching.candidates import Candidate
from stencilm.matching.compiler import CompiledGrammar
from stencilm.matching.texts import byte_matcher
from stencilm.shown import shown_value

_GRAMMAR_FILES = (".lark", ".ebnf", ".gbnf")


def load_parser(source: str | Path) -> Grammar:
    """A grammar from Lark text or EBNF text, or from a file that holds either.

    EBNF is recognised by its `::=`. A `Path`, or a name that ends with .lark, .ebnf or .gbnf, is
    read as a file.

    Raises:
        GrammarSyntaxError: The text is not well-formed; has line and column.
        OSError: The file cannot be read.
        ValueError: The file is not UTF-8 text.

    Examples:
        >>> import stencilm
        >>> stencilm.load_parser('start: "yes" | "no"') == stencilm.Grammar.from_lark(
        ...     'start: "yes" | "no"'
        ... )
        True
    """
    if isinstance(source, Path) or (
        isinstance(source, str) and "\n" not in source and source.endswith(_GRAMMAR_FILES)
    ):
        return _grammar_of_text(_text_of_file(Path(source)))
    if not isinstance(source, str):
        raise TypeError(
            f"source is {shown_value(source):.60}, but must be the text of a grammar, or a Path "
            "to a file"
        )
    return _grammar_of_text(source)


def _text_of_file(path: Path) -> str:
    """The text, with the line breaks of Python, and without a mark of the encoding."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{str(path)!r} is not UTF-8 text: byte {error.start} is no part of it"
        ) from error


def _grammar_of_text(text: str) -> Grammar:
    return Grammar.from_ebnf(text) if "::=" in text else Grammar.from_lark(text)


def obtain_correction_pairs(prediction: str, parser: Any) -> tuple[str, list[Candidate]]:
    """The longest prefix of a text that fits, and what may come after it.

    If the text fails inside a known word, such as `SELEC`, the prefix ends before the word. A text
    that fits as a whole is returned as it is, with what may follow it.

    Args:
        prediction: What a model wrote.
        parser: A grammar, or anything else that `guide` takes as one.

    Returns:
        The prefix, and up to 16 candidates: `Literal` for a text, `Pattern` for a set of many. A
        candidate that begins with a known text, such as a keyword and the space after it, is that
        text.

    Examples:
        >>> import stencilm
        >>> stencilm.obtain_correction_pairs("red car", stencilm.Regex("red (bike|bus)"))
        ('red ', [Literal(text='bike'), Literal(text='bus')])
    """
    if not isinstance(prediction, str):
        raise TypeError(f"prediction is {shown_value(prediction):.60}, but must be a str")
    matcher = byte_matcher(as_grammar(parser))
    text = prediction.encode("utf-8", "replace")
    verdict = matcher.longest_valid_prefix(text)
    if verdict.status != "dead":
        matcher.accept_string(text)
        return prediction, readable(matcher.candidates())
    keep, candidates = cut_place(matcher, text, verdict.valid_bytes)
    return text[:keep].decode(), candidates


def as_grammar(parser: Any) -> Grammar:
    """What `guide` takes as a grammar: one, the text of one, a `Path` to a file, or an output type.

    A str is never the name of a file: it may come from somebody who is to read no files here.
    """
    if isinstance(parser, Grammar):
        return parser
    if isinstance(parser, CompiledGrammar):
        return parser.grammar
    if isinstance(parser, Path):
        return load_parser(parser)
    if isinstance(parser, str):
        return _grammar_of_text(parser)
    return Grammar.from_type(parser)
