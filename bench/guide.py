"""The speed of writing a JSON object of exactly n string pairs in four ways, with forward passes.

`python -m bench.guide` runs the embedded model, `--shape smollm-135m` a model of that shape with
random weights, for the cost of a token. Each way writes the same grammar after the same prompt:

* naive: plain sampling; each mask is found by trying every token (`accept_token`);
* mask: masked decoding, one forward pass for each token;
* mask + forced: the same, with forced text read without passes;
* guide: drafted freely, corrected, with forced text and guesses.

Seconds are processor time on one thread, which is the time that an idle machine takes. The ways
take turns step by step, so that a busy machine changes little.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

import stencilm
from bench import records
from stencilm.generation.loop import Decoding
from stencilm.guiding.api import local_guide
from stencilm.guiding.drafts import Consult
from stencilm.guiding.task import Options
from stencilm.matching.texts import compiler_of

SIZES = (10, 20, 30, 40)
WAYS = ("naive", "mask", "mask + forced", "guide")
PROMPT = "Here is a JSON object, with {n} keys, using only string values:\n\n```json\n"


def grammar(n: int) -> stencilm.Grammar:
    """Objects of n string pairs, one pair per line, as models write them."""
    pair = r'"\"" [a-zA-Z0-9_ ]{1,16} "\": \"" [a-zA-Z0-9_ .-]{0,24} "\""'
    return stencilm.Grammar.from_ebnf(
        f'root ::= "{{\\n  " pair (",\\n  " pair){{{n - 1}}} "\\n}}"\npair ::= {pair}'
    )


def backend(shape: str) -> Any:
    import torch

    # The time of a waiting second thread would be counted towards whichever way comes next.
    torch.set_num_threads(1)
    if shape == "tiny":
        return stencilm.load("tiny")
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    folder = Path(stencilm.__file__).parent / "tiny"
    config = LlamaConfig(
        vocab_size=49_152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
        num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=2048,
        tie_word_embeddings=True, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return stencilm.from_transformers(
        LlamaForCausalLM(config), AutoTokenizer.from_pretrained(str(folder))
    )


@dataclass
class Run:
    """One text being generated: iterating gives the number of tokens after each step."""

    steps: Iterator[int]
    tokens: int = 0
    passes: int = 0
    seconds: float = 0.0


def started(way: str, model: Any, n: int, limit: int) -> Run:
    # The compiler of `guide`, so that no way compiles while its clock runs.
    compiler = compiler_of(model.tokenizer_info)
    compiled = compiler.compile_grammar(grammar(n))
    prompt = PROMPT.format(n=n)
    run = Run(iter(()))
    if way == "guide":
        run.steps = guided(run, model, compiler, n, prompt, limit)
    elif way == "naive":
        run.steps = naive(run, model, compiled, model.backend.encode(prompt), limit)
    else:
        run.steps = masked(run, way, model, compiled, model.backend.encode(prompt), limit)
    return run


def naive(run: Run, model: Any, compiled: Any, prompt_ids: list[int], limit: int) -> Iterator[int]:
    """Find each mask by trying every token on the matcher and taking it back."""
    matcher = stencilm.GrammarMatcher(compiled)
    sequence = model.backend.start(prompt_ids)
    unread: list[int] = []
    for count in range(limit):
        row = sequence.append(unread)
        for token_id in range(model.tokenizer_info.vocab_size):
            if matcher.accept_token(token_id):
                matcher.rollback(1)
            else:
                row[token_id] = -np.inf
        token_id = int(row.argmax())
        assert matcher.accept_token(token_id)
        run.passes += 1
        if matcher.is_terminated():
            return
        unread = [token_id]
        yield count + 1


def masked(
    run: Run, way: str, model: Any, compiled: Any, prompt_ids: list[int], limit: int
) -> Iterator[int]:
    decoding = Decoding(
        model.backend, stencilm.GrammarMatcher(compiled), prompt_ids, max_tokens=limit,
        fast_forward=way != "mask",
    )  # fmt: skip
    for _ in decoding:
        yield len(decoding.token_ids)
    run.passes = decoding.stats.forward_passes


def guided(run: Run, model: Any, compiler: Any, n: int, prompt: str, limit: int) -> Iterator[int]:
    options = Options(
        token_healing=False, max_grammar_corrections=10_000, budget=stencilm.Budget(tokens=limit)
    )
    loop = local_guide(model.backend, compiler, grammar(n), prompt, options=options)
    tokens = 0
    for event in loop.run():
        assert not isinstance(event, Consult), "nobody is to be consulted"
        if event.kind in ("sampled", "corrected"):
            tokens += 1
        elif event.kind == "forced":
            tokens += len(getattr(event, "token_ids", ()))
        yield tokens
    result = loop.result()
    assert result.is_valid
    run.passes = result.usage.calls


def race(model: Any, ways: Sequence[str], n: int, limit: int) -> dict[str, Run]:
    """All ways, one step at a time: the next step is of the one that has written least.

    So other load on the machine affects all of them equally.
    """
    runs = {way: started(way, model, n, limit) for way in ways}
    live = set(ways)
    while live:
        way = min(live, key=lambda way: (runs[way].tokens, ways.index(way)))
        run = runs[way]
        start = process_time()
        tokens = next(run.steps, None)
        run.seconds += process_time() - start
        if tokens is None:
            live.discard(way)
        else:
            run.tokens = tokens
    return runs


Found = dict[str, dict[str, dict[str, float]]]
"""The results for each way and each number of pairs."""


def measure(
    shape: str, rounds: int, limit: int, sizes: Sequence[int], ways: Sequence[str] = WAYS
) -> Found:
    """Medians of some rounds; rates are compared with that of masked decoding in the same round."""
    model = backend(shape)
    race(model, ways, sizes[0], 30)  # warm up
    found: Found = {way: {} for way in ways}
    for n in sizes:
        taken = [race(model, ways, n, limit) for _ in range(rounds)]
        for way in ways:
            rates = sorted(one[way].tokens / one[way].seconds for one in taken)
            ratios = sorted(
                one[way].tokens / one[way].seconds / one["mask"].tokens * one["mask"].seconds
                for one in taken
            )
            found[way][str(n)] = {
                "tokens": taken[0][way].tokens,
                "passes": taken[0][way].passes,
                "tokens/s": round(median(rates), 1),
                "least": round(rates[0], 1),
                "greatest": round(rates[-1], 1),
                "to mask": round(median(ratios), 3),
            }
    return found


def table(found: Found) -> str:
    lines = ["| pairs | way | tokens | passes | tokens/s | to mask |", "|--:|---|--:|--:|--:|--:|"]
    for n in found["mask"]:
        for way, cells in found.items():
            cell = cells[n]
            lines.append(
                f"| {n} | {way} | {cell['tokens']} | {cell['passes']} | {cell['tokens/s']:,.0f} "
                f"| {cell['to mask']:.2f} |"
            )
    return "\n".join(lines) + "\n"


COLOURS = {"naive": "#8a8f98", "mask": "#3b7dd8", "mask + forced": "#c27a12", "guide": "#2a9d54"}


def plot(found: Found, title: str) -> str:
    """Tokens per second over the number of pairs, as SVG that is readable on light and dark."""
    highest = max(cell["tokens/s"] for cells in found.values() for cell in cells.values()) * 1.1
    sizes = list(found["mask"])
    x = {n: 70 + 430 * place / max(1, len(sizes) - 1) for place, n in enumerate(sizes)}
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 320" font-family="sans-serif" '
        'font-size="12" fill="#808790">',
        f'<text x="70" y="20" font-size="14">{title}</text>',
        '<text x="285" y="312" text-anchor="middle">string pairs</text>',
    ]
    for step in range(5):
        value = highest * step / 4
        y = 280 - 240 * step / 4
        parts.append(
            f'<path d="M70 {y:.0f}H500" stroke="#808790" stroke-opacity=".3"/>'
            f'<text x="62" y="{y + 4:.0f}" text-anchor="end">{value:,.0f}</text>'
        )
    for n, place in x.items():
        parts.append(f'<text x="{place:.0f}" y="296" text-anchor="middle">{n}</text>')
    for way, cells in found.items():
        points = " ".join(f"{x[n]:.0f},{280 - 240 * cells[n]['tokens/s'] / highest:.1f}" for n in x)
        last = 280 - 240 * cells[sizes[-1]]["tokens/s"] / highest
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{COLOURS[way]}" stroke-width="2.5"/>'
            f'<text x="508" y="{last + 4:.0f}" fill="{COLOURS[way]}">{way}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.guide", description=__doc__)
    parser.add_argument("--shape", choices=["tiny", "smollm-135m"], default="tiny")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=900, help="the most tokens of one text")
    parser.add_argument("--record", action="store_true", help="keep table, numbers and plot")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of pairs")
    options = parser.parse_args()
    found = measure(options.shape, options.rounds, options.limit, options.sizes)
    print(table(found))
    if options.record:
        name = f"guide-{options.shape}"
        kept = {
            "case": name,
            "command": f"python -m bench.guide --shape {options.shape} --rounds {options.rounds} "
            f"--limit {options.limit} --sizes {' '.join(map(str, options.sizes))}",
            "machine": records.machine(),
            "numbers": found,
        }
        text = json.dumps(kept, indent=1) + "\n"
        (records.FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
        facts = kept["machine"]
        head = f"# String pairs, {options.shape}\n\n`{kept['command']}`; {facts['processor']}, "
        head += f"{facts['cores']} cores, Python {facts['python']}, commit {facts['commit']}.\n\n"
        (records.FOLDER / f"{name}.md").write_text(head + table(found), encoding="utf-8")
        docs = Path(__file__).resolve().parent.parent / "docs"
        drawing = plot(found, f"Tokens per second, {options.shape}")
        (docs / f"{name}.svg").write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
