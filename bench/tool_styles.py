"""1,000 tools in each style of arguments: python -m bench.tool_styles

The time to the first mask, including reading and compiling the tag, with 1,000 tools no two of
which have the same schema, and none of which was seen before. Also masks along the arguments of one
call, next to those along the same arguments under the schema of that tool alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from bench import clock, tags
from stencilm import (
    CompiledGrammar,
    GrammarCompiler,
    GrammarMatcher,
    TokenizerInfo,
    get_model_structural_tag,
)
from stencilm.tool_calls.families import TEMPLATES
from stencilm.tool_calls.writer import write_arguments, write_calls

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))
RECORD = Path(__file__).parent / "records" / "tool-styles.md"
FAMILIES = (
    *("qwen_2_5", "mistral", "kimi", "harmony", "qwen_3_coder", "glm_4_5", "deepseek_v3_2"),
    *("kimi_k3", "minimax", "minimax_m3", "command_a_plus", "llama_4_pythonic", "gemma_4"),
)
ARGUMENTS: dict[str, Any] = json.loads(tags.CALL)
ROUNDS = 5


def style_of(family: str) -> Any:
    """The style in which a family writes arguments."""
    return TEMPLATES[family].style if family in TEMPLATES else "json"


def call(family: str, tool: dict[str, Any]) -> tuple[str, int]:
    """A call of a tool, and the position where its arguments begin."""
    if family in TEMPLATES:
        schemas = {tool["name"]: tool["parameters"]}
        text = write_calls(TEMPLATES[family], [(tool["name"], ARGUMENTS)], schemas, ids=["0"])
    else:
        text = (
            f"<|channel|>commentary to=functions.{tool['name']} <|constrain|>json<|message|>"
            + json.dumps(ARGUMENTS, ensure_ascii=False)
        )
    return text, text.index("city")


def masks(info: TokenizerInfo, compiled: CompiledGrammar, text: str, begin: int) -> list[float]:
    """The times of the masks along a text from a position on, in the second pass."""
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    times: list[float] = []
    for _ in range(2):
        times.clear()
        matcher = GrammarMatcher(compiled)
        at = 0
        for token in info.tokenize_bytes(text.encode()):
            taken, _ = clock.timed(matcher.fill_next_token_bitmask, mask)
            if at >= begin:
                times.append(taken)
            assert matcher.accept_token(token), text
            at += len(info.decoded_vocab[token])
    return times


def row(info: TokenizerInfo, number: int, family: str) -> str:
    """The cost of one family, as a row of the table."""
    compiler = GrammarCompiler(info, cache_enabled=False)
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    firsts: list[float] = []
    for turn in range(ROUNDS + 1):
        # Each schema has an argument of its own, so nothing of it is cached.
        given = tags.tools(1000 * (number + 1) + turn, tags.MANY_TOOLS)
        text = get_model_structural_tag(family, given).to_json()

        def begin(text: str = text) -> None:
            matcher = GrammarMatcher(compiler.compile_structural_tag(text))
            matcher.fill_next_token_bitmask(mask)

        taken, _ = clock.timed(begin)
        if turn:
            firsts.append(taken / 1000)
    tool = given[tags.MANY_TOOLS // 3]["function"]
    tag = get_model_structural_tag(family, given, "required", reasoning=False)
    written, at = call(family, tool)
    within = masks(info, compiler.compile_structural_tag(tag), written, at)
    style, schema = style_of(family), tool["parameters"]
    alone = compiler.compile_structural_tag(
        {"type": "json_schema", "style": style, "json_schema": schema}
    )
    plain = masks(info, alone, write_arguments(style, ARGUMENTS, schema), 0)
    cells = [f"`{family}`", f"`{style}`", f"{np.mean(firsts):.0f}", f"{min(firsts):.0f}"]
    for times in (within, plain):
        cells += [f"{np.mean(times):.1f}", f"{np.percentile(times, 99):.1f}"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table, and write it if that was requested."""
    parser = argparse.ArgumentParser(prog="python -m bench.tool_styles", description=__doc__)
    parser.add_argument("--tokenizer", default="llama3")
    parser.add_argument("--families", nargs="+", default=[*FAMILIES])
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    options = parser.parse_args()
    info = TokenizerInfo.from_file(SHARED / "tokenizers" / options.tokenizer)
    lines = [
        "# 1,000 tools in each style of arguments",
        "",
        f"`python -m bench.tool_styles` with the tokenizer {options.tokenizer} on "
        f"{platform.machine()}, Python {platform.python_version()}, one core.",
        "",
        "First masks in milliseconds, of 1,000 tools that were not seen before, the reading of the",
        f"tag included: the mean of {ROUNDS}, and the least. Masks along the arguments of a call,",
        "in microseconds, for the second time: the mean and the 99th percentile, with all tools",
        "and with the schema of the tool alone.",
        "",
        "| family | style | first | least | in arguments | p99 | schema alone | p99 |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    print("\n".join(lines))
    for number, family in enumerate(options.families):
        lines.append(row(info, number, family))
        print(lines[-1], flush=True)
    if options.record:
        RECORD.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
