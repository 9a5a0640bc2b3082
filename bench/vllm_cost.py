"""The processor time of structured outputs in vLLM: stencilm, the default backends, none.

    FOLDER/bin/python bench/vllm_cost.py --shared ../shared

FOLDER is an environment of `tests/engines/vllm/install.sh`. A randomly initialised model of two
layers with the vocabulary of Llama 3 answers requests that each have a different schema, all at
once. Each backend runs in a process of its own, together with the engine, and grammars are compiled
in the thread that requests them, so that the time of each part can be measured. The schemas are
those of the benchmark JME, then of BFCL, that every backend accepts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BACKENDS = ("stencilm", "xgrammar", "guidance", "none")
PARTS = ("compile", "fill", "accept")


def write_model(folder: Path, tokenizer: Path) -> None:
    """A small model with random weights and the vocabulary of a folder."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=128_256,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        eos_token_id=128_009,
        bos_token_id=128_000,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).to(torch.float32).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copyfile(tokenizer / name, folder / name)


def schemas(shared: Path, count: int) -> list[dict[str, Any]]:
    """Schemas that xgrammar's and guidance's checks in vLLM accept."""
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams
    from vllm.v1.structured_output.backend_guidance import validate_guidance_grammar
    from vllm.v1.structured_output.backend_xgrammar import validate_xgrammar_grammar

    found: list[dict[str, Any]] = []
    for group in ("JME", "BFCL"):
        with gzip.open(shared / "maskbench" / f"{group}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                schema = json.loads(line)["schema"]
                if schema in found:
                    continue
                params = SamplingParams(structured_outputs=StructuredOutputsParams(json=schema))
                try:
                    validate_xgrammar_grammar(params)
                    validate_guidance_grammar(params, tokenizer=None)
                except (ValueError, VLLMValidationError):
                    continue
                found.append(schema)
                if len(found) == count:
                    return found
    raise SystemExit(f"only {len(found)} schemas are taken by all; ask for fewer")


class Clock:
    """Processor seconds by part, of all threads of the process while the part runs."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)

    @contextmanager
    def running(self, part: str) -> Iterator[None]:
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds[part] += time.process_time() - start

    def around(self, owner: Any, name: str, part: str) -> None:
        """Count the calls of a method towards a part."""
        inner = getattr(owner, name)

        def timed(*arguments: Any, **named: Any) -> Any:
            with self.running(part):
                return inner(*arguments, **named)

        setattr(owner, name, timed)


def run(backend: str, model: str, requests: list[Any], tokens: int) -> dict[str, Any]:
    """One backend in this process."""
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams
    from vllm.v1.structured_output import StructuredOutputManager

    clock = Clock()
    begin = StructuredOutputManager.__init__

    def in_one_thread(self: Any, vllm_config: Any) -> None:
        begin(self, vllm_config)
        self._use_async_grammar_compilation = False

    StructuredOutputManager.__init__ = in_one_thread
    name = "guidance" if backend == "guidance" else "xgrammar"
    llm = LLM(
        model=model,
        enforce_eager=True,
        dtype="float32",
        max_model_len=1024,
        max_num_seqs=len(requests),
        enable_prefix_caching=False,
        structured_outputs_config={"backend": name},
        seed=0,
    )
    prompts = [{"prompt_token_ids": [128_000, 9906, 11]} for _ in requests]

    def sampling(schema: Any) -> Any:
        wanted = None if backend == "none" else StructuredOutputsParams(json=schema)
        return SamplingParams(
            temperature=1.0,
            seed=1,
            max_tokens=tokens,
            structured_outputs=wanted,
            ignore_eos=backend == "none",
            detokenize=False,
        )

    # The first request does not count: it reads the vocabulary and starts threads.
    llm.generate(prompts[:1], [sampling({"enum": ["warm", "up"]})], use_tqdm=False)
    clock.around(StructuredOutputManager, "grammar_init", "compile")
    clock.around(StructuredOutputManager, "grammar_bitmask", "fill")
    clock.around(StructuredOutputManager, "accept_tokens", "accept")
    start, wall = time.process_time(), time.perf_counter()
    outputs = llm.generate(prompts, [sampling(one) for one in requests], use_tqdm=False)
    spent, wall = time.process_time() - start, time.perf_counter() - wall
    written = sum(len(output.outputs[0].token_ids) for output in outputs)
    return {
        "backend": backend,
        "tokens": written,
        "all": 1e6 * spent / written,
        "wall": 1e6 * wall / written,
        **{part: 1e6 * seconds / written for part, seconds in clock.seconds.items()},
    }


ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Processor time of structured outputs in vLLM.")
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64, help="the most tokens of a request")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--backends", nargs="+", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        backend, model, requests = arguments.one
        found = run(backend, model, json.loads(Path(requests).read_text()), arguments.tokens)
        print("RESULT " + json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as folder:
        model, requests = Path(folder) / "model", Path(folder) / "requests.json"
        write_model(model, arguments.shared / "tokenizers" / "llama3")
        requests.write_text(json.dumps(schemas(arguments.shared, arguments.requests)))
        print("| backend | round | tokens | all | compile | fill | accept | the three | wall |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
        for turn in range(arguments.rounds):
            for backend in arguments.backends:
                command = [sys.executable, __file__, "--tokens", str(arguments.tokens), "--one"]
                command += [backend, str(model), str(requests)]
                switch = {"STENCILM_VLLM": "1" if backend == "stencilm" else "0"}
                done = subprocess.run(
                    command,
                    env={**os.environ, **ENVIRONMENT, **switch},
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                line = next(one for one in done.stdout.splitlines() if one.startswith("RESULT "))
                row = json.loads(line.removeprefix("RESULT "))
                three = sum(row[part] for part in PARTS)
                print(
                    f"| {backend} | {turn + 1} | {row['tokens']} | {row['all']:.0f} | "
                    f"{row['compile']:.1f} | {row['fill']:.1f} | {row['accept']:.1f} | "
                    f"{three:.1f} | {row['wall']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
