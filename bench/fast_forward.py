"""Texts under schemas with and without forced tokens, against plain transformers generation.

Fifty texts: each schema with several prompts. Every text is written three times in turn: with
forced tokens, with every token drawn, and by `model.generate` of transformers without a grammar,
exactly as many tokens as the first. One thread; CPU seconds of the process, so that other work on
the machine counts little.

    python bench/fast_forward.py --model tiny
    python bench/fast_forward.py --model smollm-135m-shape
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher
from stencilm.generation.loop import generate

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))
MAX_TOKENS = 200

WORD = {"type": "string", "pattern": "^[a-z]{1,8}$"}
# As text, because a random model may write endless zeros after the point of a number.
NUMBER = {"type": "string", "pattern": "^[1-9][0-9]{0,2}$"}


def closed(**properties: Any) -> dict[str, Any]:
    """An object with exactly these members."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SCHEMAS = [
    closed(name=WORD, age=NUMBER),
    closed(first_name=WORD, date_of_birth=NUMBER, is_member={"type": "boolean"}),
    closed(status={"enum": ["accepted", "rejected", "postponed"]}, confidence_percent=NUMBER),
    closed(position=closed(latitude_degrees=NUMBER, longitude_degrees=NUMBER)),
    closed(user_identifier=WORD, requested_permission={"enum": ["read", "write", "delete"]}),
]


def load(name: str) -> Any:
    """The embedded model, or a random one of SmolLM-135M's shape with GPT-2's vocabulary."""
    if name == "tiny":
        return stencilm.load("tiny").backend
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50_257,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=50_256,
        eos_token_id=50_256,
    )
    tokenizer = AutoTokenizer.from_pretrained(str(SHARED / "tokenizers" / "gpt2"))
    return stencilm.from_transformers(LlamaForCausalLM(config), tokenizer).backend


def plain(backend: Any, prompt_ids: list[int], num_tokens: int) -> float:
    """CPU seconds of transformers' own greedy generation of this many tokens."""
    import torch

    ids = torch.tensor([prompt_ids])
    start = time.process_time()
    backend.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=num_tokens,
        min_new_tokens=num_tokens,
        do_sample=False,
        pad_token_id=0,
    )
    return time.process_time() - start


def main() -> None:
    """Prints the table."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny", choices=["tiny", "smollm-135m-shape"])
    parser.add_argument("--texts", type=int, default=50)
    options = parser.parse_args()
    torch.set_num_threads(1)
    backend = load(options.model)
    compiler = GrammarCompiler(backend.tokenizer_info)
    style: dict[str, Any] = {"any_whitespace": False, "separators": (", ", ": ")}
    compiled = [
        compiler.compile_grammar(Grammar.from_json_schema(schema, **style)) for schema in SCHEMAS
    ]
    for one in compiled:  # compute the masks and warm up the model
        generate(backend, GrammarMatcher(one), backend.encode("A"), max_tokens=MAX_TOKENS)
    plain(backend, backend.encode("A"), 4)
    totals = {name: [0.0, 0, 0] for name in ("fast-forward", "every token", "transformers")}
    slower = 0
    for number in range(options.texts):
        prompt_ids = backend.encode(f"Describe number {number} as JSON.\n")
        seconds = {}
        for name, fast_forward in (("fast-forward", True), ("every token", False)):
            matcher = GrammarMatcher(compiled[number % len(compiled)])
            start = time.process_time()
            text = generate(
                backend, matcher, prompt_ids, max_tokens=MAX_TOKENS, fast_forward=fast_forward
            )
            seconds[name] = time.process_time() - start
            assert text.finish_reason == "stop", text.text
            totals[name][1] += text.stats.forward_passes
            totals[name][2] += text.stats.tokens
            if fast_forward:
                num_tokens = text.stats.tokens
        seconds["transformers"] = plain(backend, prompt_ids, num_tokens)
        totals["transformers"][1] += num_tokens
        totals["transformers"][2] += num_tokens
        slower += seconds["fast-forward"] > seconds["transformers"]
        for name, spent in seconds.items():
            totals[name][0] += spent
    print(f"{options.model}, {options.texts} texts; torch {torch.__version__}, one thread")
    print("| | tokens | passes | CPU s | us a token |")
    print("|---|--:|--:|--:|--:|")
    for name, (spent, passes, tokens) in totals.items():
        each = 1e6 * spent / tokens
        print(f"| {name} | {tokens:,} | {passes:,} | {spent:.2f} | {each:,.0f} |")
    print(f"\ntexts for which fast-forward took longer than transformers: {slower}")


if __name__ == "__main__":
    main()
