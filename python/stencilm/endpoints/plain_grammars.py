"""Patterns and grammars in the notations that servers read alike.

One idea: what servers' engines read in different ways is not sent at all.
"""

from __future__ import annotations

import re

from stencilm.errors import UnsupportedFeature
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.sources import RegexSource

_NOT_PLAIN = re.compile(r"\(\?(?!:)|[*+?}]\?|\\[bBAzZGpP1-9]|[\^$]|[*+?}]\+|&|~|\\[uUx]\{?")
"""What regular expressions of engines differ in: flags, groups with names, look-around, anchors,
lazy repetition, properties, references, and set operations; and what only looks like it."""


def plain_regex(grammar: Grammar) -> str | None:
    """A grammar that is a pattern without what other engines read otherwise, as one."""
    if not isinstance(grammar.source, RegexSource):
        return None
    return None if _NOT_PLAIN.search(grammar.source.pattern) else grammar.converted("regex")


def plain_gbnf(grammar: Grammar) -> str | None:
    """A grammar in the GBNF that every engine of it reads; None where that has no words for it."""
    try:
        return grammar.converted("gbnf")
    except UnsupportedFeature:
        return None
