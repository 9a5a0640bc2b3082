"""One grammar of each kind, and what its texts look like, told without this package.

Whatever an engine has written is held against both: the grammar over single bytes, which knows
nothing of the engine's vocabulary, and a reading of the text in plain Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import stencilm

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
TAG: dict[str, Any] = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<call="],
        "tags": [
            {
                "begin": "<call=person>",
                "content": {"type": "json_schema", "json_schema": PERSON},
                "end": "</call>",
            }
        ],
        "at_least_one": True,
        "stop_after_first": True,
    },
}
# Nested, so that no regular expression is equivalent.
EBNF = 'root ::= "[" (item ("," item)*)? "]"\nitem ::= root | [0-9]'
LARK = r"""
start: NAME "=" sum
sum: NUMBER ("+" NUMBER)*
NAME: /[a-z]{1,6}/
NUMBER: /[0-9]{1,3}/
"""


def _is_nested(text: str) -> bool:
    value = json.loads(text)
    written = json.dumps(value, separators=(",", ":"))
    return (
        isinstance(value, list)
        and re.fullmatch(r"[\[\],0-9]+", written) is not None
        and (text == written)
    )


def _is_call(text: str) -> bool:
    call = re.fullmatch("<call=person>(.*)</call>", text, re.DOTALL)
    person = json.loads(call[1]) if call else {}
    return (
        set(person) == {"name", "age"}
        and isinstance(person["name"], str)
        and len(person["name"]) <= 8
        and type(person["age"]) is int
        and 0 <= person["age"] <= 120
    )


@dataclass(frozen=True)
class Kind:
    """A grammar as an output type and alone, and whether plain Python takes a text for one."""

    output_type: Any
    grammar: stencilm.Grammar
    reads: Callable[[str], Any]


KINDS = {
    "patterns": Kind(
        stencilm.Regex("[A-Z]{2}-[0-9]{4}"),
        stencilm.Grammar.from_regex("[A-Z]{2}-[0-9]{4}"),
        re.compile("[A-Z]{2}-[0-9]{4}").fullmatch,
    ),
    "EBNF": Kind(stencilm.Ebnf(EBNF), stencilm.Grammar.from_ebnf(EBNF), _is_nested),
    "Lark": Kind(
        stencilm.Lark(LARK),
        stencilm.Grammar.from_lark(LARK),
        re.compile(r"[a-z]{1,6}=[0-9]{1,3}(\+[0-9]{1,3})*").fullmatch,
    ),
    "structural tags": Kind(
        stencilm.StructuralTag.from_json(json.dumps(TAG)),
        stencilm.Grammar.from_structural_tag(TAG),
        _is_call,
    ),
}
_BYTES = stencilm.GrammarCompiler(
    stencilm.TokenizerInfo([*(bytes([value]) for value in range(256)), b""], stop_token_ids=[256])
)


def check_text(kind: Kind, text: str) -> None:
    """Fails where the text is none of the grammar."""
    assert kind.reads(text), text
    matcher = stencilm.GrammarMatcher(_BYTES.compile(kind.grammar))
    assert matcher.accept_string(text) and matcher.is_completed(), text


def check_model(model: stencilm.Model, kind: Kind, prompt: str) -> None:
    """Fails where a model writes what is none of the grammar: whole, as a stream, or guided."""
    for temperature in (0.0, 1.0):
        options: dict[str, Any] = {"max_tokens": 80, "temperature": temperature, "seed": 1}
        text = model(prompt, kind.output_type, **options)
        check_text(kind, text)
        assert list(model.stream(prompt, kind.output_type, **options))[-1] == text
    guided = stencilm.guide(model, kind.output_type, prompt, budget=stencilm.Budget(tokens=60))
    check_text(kind, guided.response)
