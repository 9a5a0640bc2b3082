"""Runs in an environment that has vLLM:

reads texts with its tool parsers. Cases come and answers go as JSON lines.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any


class Vocabulary:
    """As much of a tokenizer as parsers ask for:

    the markers of the family are tokens, characters are the others.
    """

    is_fast = True
    eos_token = "<|eos|>"
    chat_template = None
    name_or_path = "none"

    def __init__(self, markers: list[str]) -> None:
        self.vocab = {marker: index for index, marker in enumerate(["<|eos|>", *markers])}
        self.all_special_tokens = [*self.vocab]
        self.all_special_ids = [*self.vocab.values()]
        # Where all markers end alike, the tokenizer says with what.
        ends = {marker.rpartition(":")[2] for marker in markers if marker[-1:] == ">"}
        suffix = ":" + ends.pop()[:-1] if len(ends) == 1 and ":" in "".join(markers) else ""
        self.init_kwargs: dict[str, Any] = {"token_suffix": suffix} if suffix else {}

    def get_vocab(self) -> dict[str, int]:
        return self.vocab

    def get_added_vocab(self) -> dict[str, int]:
        return self.vocab

    def __len__(self) -> int:
        return len(self.vocab) + 0x110000

    def encode(self, text: str, **_: Any) -> list[int]:
        ids = []
        at = 0
        while at < len(text):
            marker = next((m for m in self.vocab if text.startswith(m, at)), None)
            ids.append(self.vocab[marker] if marker else len(self.vocab) + ord(text[at]))
            at += len(marker) if marker else 1
        return ids

    def __call__(self, text: str, **_: Any) -> Any:
        return SimpleNamespace(input_ids=self.encode(text))

    def tokenize(self, text: str, **_: Any) -> list[str]:
        return self.convert_ids_to_tokens(self.encode(text))

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        if isinstance(tokens, str):
            return self.vocab.get(tokens)
        return [self.vocab.get(token) for token in tokens]

    def convert_ids_to_tokens(self, ids: list[int], **_: Any) -> list[str]:
        names = [*self.vocab]
        return [names[i] if i < len(names) else chr(i - len(names)) for i in ids]

    def decode(self, ids: Any, **_: Any) -> str:
        return "".join(self.convert_ids_to_tokens([ids] if isinstance(ids, int) else list(ids)))

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return "".join(tokens)


def read(case: dict[str, Any]) -> Any:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # type: ignore[import-not-found,unused-ignore]
    from vllm.tool_parsers import ToolParserManager  # type: ignore[import-not-found,unused-ignore]

    request = ChatCompletionRequest(
        model="m",
        messages=[{"role": "user", "content": "Hi"}],
        tools=case["tools"],
        tool_choice="auto",
    )
    parser_class = ToolParserManager.get_tool_parser(case["parser"])
    parser = parser_class(Vocabulary(case["markers"]), request.tools)
    if hasattr(parser, "adjust_request"):
        request = parser.adjust_request(request)
    found = parser.extract_tool_calls(case["text"], request)
    return [
        [call.function.name, json.loads(call.function.arguments or "{}")]
        for call in found.tool_calls
    ]


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
