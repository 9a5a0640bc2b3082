"""Random walks through the masks of tool calls, read by readers that know nothing of grammars."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import stencilm
from stencilm import (
    GrammarCompiler,
    GrammarMatcher,
    TokenizerInfo,
    allocate_token_bitmask,
    get_model_structural_tag,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "unit": {"enum": ["C", "F"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "note": {"type": ["string", "null"]},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
POINT = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
    "required": ["x"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, dict[str, Any]] = {"weather": SCHEMA, "weather_map": POINT}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": schema}}
    for name, schema in SCHEMAS.items()
]


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(TokenizerInfo.from_file(Path(stencilm.__file__).parent / "tiny"))


def value(name: str, key: str, text: str) -> Any:
    """An argument between markers as readers take it: by the type that the schema declares."""
    types = SCHEMAS[name]["properties"][key].get("type", "string")
    if "string" not in types:
        return json.loads(text)
    return None if text == "null" and "null" in types else text


def read_json(pattern: str, text: str) -> list[tuple[str, Any]]:
    found = re.findall(pattern, text, re.DOTALL)
    return [(name, json.loads(arguments)) for name, arguments in found]


def read_marked(call: str, argument: str, text: str, own_lines: bool) -> list[tuple[str, Any]]:
    read = []
    for name, body in re.findall(call, text, re.DOTALL):
        arguments = {}
        for key, raw in re.findall(argument, body, re.DOTALL):
            assert key not in arguments
            if own_lines:
                raw = raw.removeprefix("\n").removesuffix("\n")
            arguments[key] = value(name, key, raw)
        read.append((name, arguments))
    return read


NAMESPACE = "]<]minimax[>["


def read_nested(text: str) -> list[tuple[str, Any]]:
    """Calls whose arguments nest: markers are matched by a stack, values read by their schemas."""

    def read(schema: dict[str, Any], content: Any) -> Any:
        types = schema.get("type", "string")
        if types == "object":
            assert len({key for key, _ in content}) == len(content)
            return {key: read(schema["properties"][key], inner) for key, inner in content}
        if types == "array":
            assert all(key == "item" for key, _ in content)
            return [read(schema["items"], inner) for _, inner in content]
        if isinstance(content, list):
            assert not content
            content = ""
        return content if "string" in types else json.loads(content)

    calls = []
    for name, body in re.findall(
        r'<invoke name="(\w+)">(.*?)\]<\]minimax\[>\[</invoke>', text, re.DOTALL
    ):
        stack: list[tuple[str, list[Any], list[str]]] = [("", [], [])]
        for piece in body.split(NAMESPACE)[1:]:
            marker, _, behind = piece.partition(">")
            if marker.startswith("</"):
                own, inner, texts = stack.pop()
                assert marker == f"</{own}"
                # Text stands in a value that holds no other; between others there are blanks.
                assert not inner or not "".join(texts).strip()
                stack[-1][1].append((own, inner or "".join(texts)))
                assert not behind.strip()
            else:
                stack.append((marker[1:], [], [behind]))
        assert len(stack) == 1
        content = [(key, value if value else []) for key, value in stack[0][1]]
        calls.append((name, read(SCHEMAS[name], content)))
    return calls


READERS: dict[str, Callable[[str], list[tuple[str, Any]]]] = {
    "hermes": lambda text: [
        (call["name"], call["arguments"])
        for call in map(json.loads, re.findall(r"(?s)<tool_call>\n(.*?)\n</tool_call>", text))
    ],
    "deepseek_r1": lambda text: read_json(
        r"function<｜tool▁sep｜>(\w+)\n```json\n(.*?)\n```<｜tool▁call▁end｜>", text
    ),
    "kimi": lambda text: read_json(
        r"functions\.(\w+):[0-9]+<\|tool_call_argument_begin\|>(.*?)<\|tool_call_end\|>", text
    ),
    "qwen_3_coder": lambda text: read_marked(
        r"<tool_call>\n<function=(\w+)>(.*?)</function>\n</tool_call>",
        r"<parameter=(\w+)>(.*?)</parameter>",
        text,
        True,
    ),
    "glm_4_5": lambda text: read_marked(
        r"<tool_call>(\w+?)\s(.*?)</tool_call>",
        r"<arg_key>(\w+)</arg_key>\s*<arg_value>(.*?)</arg_value>",
        text,
        False,
    ),
    "minimax": lambda text: read_marked(
        r'<invoke name="(\w+)">(.*?)</invoke>',
        r'<parameter name="(\w+)">(.*?)</parameter>',
        text,
        False,
    ),
    "minimax_m3": read_nested,
    "deepseek_v3_2": lambda text: read_marked(
        r'<｜DSML｜invoke name="(\w+)">(.*?)</｜DSML｜invoke>',
        r'<｜DSML｜parameter name="(\w+)" string="(?:true|false)">(.*?)</｜DSML｜parameter>',
        text,
        False,
    ),
}


def random_text(matcher: GrammarMatcher, info: TokenizerInfo, chance: random.Random) -> str:
    """A text of the grammar: some tokens at random, then its shortest end."""
    mask = allocate_token_bitmask(1, info.vocab_size)
    words = np.asarray(mask).view(np.uint32)[0]
    written = b""
    for _ in range(chance.randrange(120)):
        matcher.fill_next_token_bitmask(mask)
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        token = int(chance.choice(np.flatnonzero(bits)))
        if token in info.stop_token_ids:
            return written.decode()
        assert matcher.accept_token(token)
        written += info.decoded_vocab[token]
    return (written + matcher.shortest_completion()).decode()


@pytest.mark.parametrize("family", READERS)
@pytest.mark.parametrize("choice", ["required", "auto"])
def test_calls_are_read_as_what_their_schemas_say(
    compiler: GrammarCompiler, family: str, choice: Any
) -> None:
    info = compiler.tokenizer_info
    compiled = compiler.compile_structural_tag(
        get_model_structural_tag(family, TOOLS, choice, reasoning=False)
    )
    calls = 0
    for seed in range(25):
        matcher = GrammarMatcher(compiled)
        begun = "" if choice == "required" else "Text. "
        assert matcher.accept_string(begun)
        text = begun + random_text(matcher, info, random.Random(f"{family} {choice} {seed}"))
        read = READERS[family](text)
        calls += len(read)
        assert read or choice == "auto"
        for name, arguments in read:
            jsonschema.validate(arguments, SCHEMAS[name])
    assert calls or choice == "auto"


def dispatched(text: str, patterns: list[str]) -> bool:
    """Whether every pattern that is complete first is followed by a dot: looks at each place."""
    while True:
        ends = [text.find(pattern) + 3 for pattern in patterns if pattern in text]
        if not ends:
            return True
        end = min(ends)
        if text[end : end + 1] != ".":
            return False
        text = text[end + 1 :]


@pytest.mark.parametrize("seed", range(6))
def test_many_patterns_that_overlap(compiler: GrammarCompiler, seed: int) -> None:
    chance = random.Random(seed)
    words = [a + b + c for a in "abc" for b in "abc" for c in "abc"]
    patterns = chance.sample(words, chance.choice([3, 17, 20, 26]))
    rules = [[pattern, {"type": "const_string", "value": "."}] for pattern in patterns]
    pairs = ", ".join(f'("{pattern}", end)' for pattern in patterns)
    by_macro = compiler.compile_grammar(f'root ::= TagDispatch({pairs})\nend ::= "."')
    by_tag = compiler.compile_structural_tag({"type": "dispatch", "rules": rules})
    for _ in range(300):
        text = "".join(chance.choices("abc.", k=chance.randrange(1, 12)))
        for place in range(3, len(text)):
            # Dots where they belong, so that many texts go on.
            if text[place - 3 : place] in patterns and chance.random() < 0.8:
                text = text[:place] + "." + text[place + 1 :]
        for compiled in (by_macro, by_tag):
            matcher = GrammarMatcher(compiled)
            accepted = matcher.accept_string(text) and matcher.is_completed()
            assert accepted == dispatched(text, patterns), (text, patterns)
