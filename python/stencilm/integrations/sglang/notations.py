"""The notations of requests: which one a grammar has, and tags as SGLang writes them.

One idea: only the text counts. Nothing of SGLang is imported here.
"""

from __future__ import annotations

import re
from typing import Any

from stencilm.grammars.json_values import read_json_exactly, write_json

_RULE_OF_LARK = re.compile(r"^[ \t]*[?!]?[A-Za-z_][A-Za-z0-9_.]*(\{[^}]*\})?[ \t]*:(?![:=])", re.M)
# With its attributes, as in `name[lazy] ::=`. Texts and comments of Lark may hold the sign, too.
_RULE_OF_EBNF = re.compile(r"^[ \t]*[A-Za-z_][A-Za-z0-9_.-]*(\[[^\]\n]*\])?\s*::=", re.M)


def is_lark(grammar: str) -> bool:
    """Whether a grammar is Lark: it has a rule `name: ...`, but none of the form `name ::= ...`."""
    return _RULE_OF_EBNF.search(grammar) is None and _RULE_OF_LARK.search(grammar) is not None


def with_schemas(tag: str) -> str:
    """A structural tag in which null as a schema becomes the one that allows everything.

    The engine writes null for tools without parameters.
    """
    try:
        value = read_json_exactly(tag)
    except (ValueError, RecursionError):
        return tag  # compiling it reports the error and its place

    def walk(part: Any) -> Any:
        if isinstance(part, list):
            return [walk(one) for one in part]
        if not isinstance(part, dict):
            return part
        kind = part.get("type")
        made = {}
        for name, one in part.items():
            if name == "json_schema" and kind in ("json_schema", "qwen_xml_parameter"):
                made[name] = {} if one is None else one  # a schema contains no formats
            elif name == "schema" and "begin" in part:
                made[name] = {} if one is None else one
            else:
                made[name] = walk(one)
        return made

    return write_json(walk(value))
