"""Arguments that are True or False: what only counts as one, as "no" does, is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import stencilm
from stencilm import Grammar, GrammarCompiler, TokenizerInfo
from stencilm.models.chat import Talk

INFO = TokenizerInfo([b"a", b"b", None], stop_token_ids=[2])
TOOLS = [{"type": "function", "function": {"name": "f"}}]


def guided(**options: Any) -> Any:
    return stencilm.guide(lambda prompt: "a", stencilm.Regex("a"), "", **options)


def older_tag(**options: Any) -> Any:
    item = stencilm.StructuralTagItem(begin="a", schema={}, end="b")
    return stencilm.StructuralTag.from_legacy_structural_tag([item], ["a"], **options)


WAYS: list[tuple[str, Callable[[Any], Any]]] = [
    ("cache_enabled", lambda value: GrammarCompiler(INFO, cache_enabled=value)),
    ("add_prefix_space", lambda value: TokenizerInfo(["a"], add_prefix_space=value)),
    ("parallel", lambda value: stencilm.tools("qwen_3", TOOLS, parallel=value)),
    ("parallel", lambda value: Talk("", parallel=value)),
    (
        "exclude_special_tokens",
        lambda value: stencilm.tools("qwen_3", TOOLS, exclude_special_tokens=value),
    ),
    ("token_healing", lambda value: guided(token_healing=value)),
    ("debug", lambda value: guided(debug=value)),
    ("verbose", lambda value: guided(verbose=value)),
    ("at_least_one", lambda value: older_tag(at_least_one=value)),
    ("stop_after_first", lambda value: older_tag(stop_after_first=value)),
    ("strict_mode", lambda value: Grammar.from_json_schema({}, strict_mode=value)),
]


@pytest.mark.parametrize("value", ["no", 1, 0, None, 2.5], ids=repr)
@pytest.mark.parametrize(("name", "call"), WAYS)
def test_only_true_and_false_are_taken(name: str, call: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(TypeError, match=re.escape(f"{name} is {value!r}, but must be True or")):
        call(value)
    call(True)
    call(False)
