"""Tool calls in free text: the cost of masks with 400 tools, by the position in the text."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench import clock
from bench.cases import WORDS, prose
from stencilm import (
    GrammarCompiler,
    GrammarMatcher,
    StructuralTag,
    TokenizerInfo,
    get_model_structural_tag,
)

TOOLS = 400
MANY_TOOLS = 1000
CALL = '{"city": "Ljubljana, the old town", "days": 3, "unit": "C", "tags": ["river", "castle"]}'


def tools(number: int, count: int = TOOLS) -> list[dict[str, Any]]:
    """Tools no two of which, here or under another number, have the same schema."""

    def tool(index: int) -> dict[str, Any]:
        properties = {
            "city": {"type": "string", "description": f"What tool {index} of {number} is about."},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "unit": {"enum": ["C", "F"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            f"option_{number}_{index}": {"type": "boolean"},
        }
        name = f"{WORDS[index % 24]}_{WORDS[index // 24 % 24]}_{index}"
        parameters = {"type": "object", "properties": properties, "required": ["city"]}
        return {"type": "function", "function": {"name": name, "parameters": parameters}}

    return [tool(index) for index in range(count)]


def many(compiler: GrammarCompiler, mask: Any, rounds: int) -> float:
    """The time to the first mask with 1,000 tools, in milliseconds."""
    times: list[float] = []
    for number in range(-1, rounds):
        # Negative numbers are for warm-up; `measure` uses other schemas.
        given = tools(1000 + number, MANY_TOOLS)
        text = get_model_structural_tag("qwen_2_5", given).to_json()

        def begin(text: str = text) -> None:
            matcher = GrammarMatcher(compiler.compile_structural_tag(text))
            matcher.fill_next_token_bitmask(mask)

        taken, _ = clock.timed(begin)
        if number >= 0:
            times.append(taken / 1000)
    return float(np.mean(times))


def measure(info: TokenizerInfo, first: bool) -> dict[str, float]:
    """Times of the first mask, and of masks in free text, up to the arguments, and in them."""
    numbers: dict[str, float] = {}
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    compiler = GrammarCompiler(info, cache_enabled=False)
    made: list[float] = []
    kinds: dict[str, list[float]] = {
        f"{where}, {when}": []
        for when in ("cold", "warm")
        for where in ("text", "call", "arguments")
    }
    for number in range(0 if first else -1, 1 if first else 5):
        given = tools(number)
        tag: StructuralTag = get_model_structural_tag("qwen_2_5", given)
        text = tag.to_json()

        def begin(text: str = text) -> GrammarMatcher:
            matcher = GrammarMatcher(compiler.compile_structural_tag(text))
            matcher.fill_next_token_bitmask(mask)
            return matcher

        taken, matcher = clock.timed(begin)
        compiled = compiler.compile_structural_tag(text)
        name = given[TOOLS // 3]["function"]["name"]
        call = '<tool_call>\n{"name": "' + name + '", "arguments": '
        parts = [(prose(600), "text"), (call, "call"), (CALL, "arguments"), ("}\n</tool_call>", "")]
        for when in ("cold", "warm"):
            matcher = GrammarMatcher(compiled)
            for part, where in parts:
                for token in info.tokenize_bytes(part.encode()):
                    time, _ = clock.timed(matcher.fill_next_token_bitmask, mask)
                    if number >= 0 and where:
                        kinds[f"{where}, {when}"].append(time)
                    assert matcher.accept_token(token), part
        if number >= 0:
            made.append(taken / 1000)
    numbers["compile and first mask, ms"] = float(np.mean(made))
    numbers["1,000 tools: compile and first mask, ms"] = many(compiler, mask, 1 if first else 5)
    for kind, times in kinds.items():
        numbers |= {
            f"{kind} mean": float(np.mean(times)),
            f"{kind} p99": float(np.percentile(times, 99)),
        }
    return numbers
