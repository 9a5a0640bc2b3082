"""Runs in an environment that has SGLang:

reads texts with its tool parsers. Cases come and answers go as JSON lines.
"""

from __future__ import annotations

import json
import sys
from typing import Any


class Vocabulary:
    """As much of a tokenizer as parsers ask for."""

    def __init__(self, markers: list[str]) -> None:
        self.markers = {marker: index for index, marker in enumerate(markers)}

    def get_vocab(self) -> dict[str, int]:
        return self.markers


def read(case: dict[str, Any]) -> Any:
    from sglang.srt.entrypoints.openai.protocol import Tool  # type: ignore[import-not-found,unused-ignore]
    from sglang.srt.function_call.function_call_parser import FunctionCallParser  # type: ignore[import-not-found,unused-ignore]

    tools = [Tool.model_validate(tool) for tool in case["tools"]]
    tokenizer = Vocabulary(case["markers"])
    parser = FunctionCallParser(tools=tools, tool_call_parser=case["parser"], tokenizer=tokenizer)
    _, calls = parser.parse_non_stream(case["text"])
    return [[call.name, json.loads(call.parameters or "{}")] for call in calls]


def main() -> None:
    for line in sys.stdin:
        case = json.loads(line)
        try:
            answer: Any = {"calls": read(case)}
        except Exception as error:  # what a parser raises is the answer
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        print("=" + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
