r"""Escapes of the original's EBNF, written as those of this package.

One idea: `\x` takes any number of hexadecimal digits in the original, and two here. Such an escape
of another length is replaced before the text is read, and the columns of errors are those of the
text as it was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from stencilm.compat.xgrammar.failures import translated

_PARTS = re.compile(
    r"""#[^\n]*"""  # a comment
    # Patterns, which the original does not have.
    r"""|/(?:[^/\\\n]|\\.)*/|\bRegex\s*\(\s*"(?:[^"\\\n]|\\.)*\""""
    r"""|(?P<escaped>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\[(?:[^]\\\n]|\\.)*\])"""
)
_ESCAPE = re.compile(r"\\(?:x(?P<digits>[0-9a-fA-F]+)|.)")
_PLACE = re.compile(r"line (\d+), column (\d+)")


def own_escapes(ebnf: str) -> str:
    r"""The EBNF text with every `\x` as this package reads it."""
    parts, end = [], 0
    for start, stop, own in _replaced(ebnf):
        parts += [ebnf[end:start], own]
        end = stop
    return "".join([*parts, ebnf[end:]])


@contextmanager
def read_ebnf(ebnf: str) -> Iterator[str]:
    """The text to read; errors of the body are translated, and name places of the given text."""
    try:
        with translated():
            yield own_escapes(ebnf) if isinstance(ebnf, str) else ebnf
    except RuntimeError as error:
        raise RuntimeError(_PLACE.sub(lambda place: _given(ebnf, place), str(error))) from error


def _replaced(ebnf: str) -> Iterator[tuple[int, int, str]]:
    """Where escapes are replaced, and by what."""
    for part in _PARTS.finditer(ebnf):
        if part["escaped"] is None:
            continue
        for escape in _ESCAPE.finditer(ebnf, *part.span()):
            digits = escape["digits"]
            if digits is not None and len(digits) != 2:
                yield escape.start(), escape.end(), rf"\u{{{digits.lstrip('0') or '0'}}}"


def _given(ebnf: str, place: re.Match[str]) -> str:
    """A place of the text that was read, as one of the given text."""
    number, column = int(place[1]), int(place[2])
    lines = ebnf.split("\n")
    longer = 0
    for start, stop, own in _replaced(lines[number - 1]) if number <= len(lines) else ():
        if start + longer + len(own) < column:
            longer += len(own) - (stop - start)
    return f"line {number}, column {column - longer}"
