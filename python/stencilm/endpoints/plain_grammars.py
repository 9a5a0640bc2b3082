"""Patterns and grammars in notations that all servers read alike.

One idea: a pattern or grammar that servers' engines read differently is not sent at all.
"""

from __future__ import annotations

import re

from stencilm.errors import UnsupportedFeature
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.sources import RegexSource

_NOT_PLAIN = re.compile(r"\(\?(?!:)|[*+?}]\?|\\[bBAzZGpP1-9]|[\^$]|[*+?}]\+|&|~|\\[uUx]\{?")
"""Features in which the regular expressions of engines differ: flags, named groups, look-around,
anchors, lazy repetition, properties, references and set operations; also texts that only look like
them.
"""


def plain_regex(grammar: Grammar) -> str | None:
    """A grammar as a pattern, if it is one without features that engines read differently."""
    if not isinstance(grammar.source, RegexSource):
        return None
    return None if _NOT_PLAIN.search(grammar.source.pattern) else grammar.converted("regex")


def plain_gbnf(grammar: Grammar) -> str | None:
    """A grammar in the common part of GBNF; None if that cannot express it."""
    try:
        return grammar.converted("gbnf")
    except UnsupportedFeature:
        return None
