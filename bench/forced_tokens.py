"""Forced tokens on MaskBench: which share of all tokens, how many canonical, beside llguidance.

Every valid instance is walked along its canonical tokens. Wherever an engine forces tokens they
are compared with the canonical ones; a run with others is not canonical. Both engines walk the
same instances, those that both accept:

    python bench/forced_tokens.py --sample 400 --tokenizer llama3
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))
# How texts are written, and the matching options of the grammars.
STYLES: dict[str, dict[str, Any]] = {
    "free white space": {"dumps": {}, "ours": {}, "theirs": {}},
    "compact": {
        "dumps": {"separators": (",", ":")},
        "ours": {"any_whitespace": False, "separators": (",", ":")},
        "theirs": {
            "whitespace_flexible": False,
            "item_separator": ",",
            "key_separator": ":",
        },
    },
}


@dataclass
class Counts:
    """The counts of tokens over all instances."""

    tokens: int = 0
    forced: int = 0
    runs: int = 0
    not_canonical: int = 0
    instances: int = 0
    seconds: float = 0.0
    calls: int = 0

    def add(self, other: Counts) -> None:
        """Add the counts of one more instance."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def line(self, name: str) -> str:
        """One row of the table."""
        share = 100 * self.forced / max(1, self.tokens)
        wrong = 100 * self.not_canonical / max(1, self.runs)
        each = 1e6 * self.seconds / max(1, self.calls)
        return (
            f"| {name} | {self.instances:,} | {self.tokens:,} | {share:.2f} % | {self.runs:,} "
            f"| {self.not_canonical} ({wrong:.2f} %) | {each:.0f} |"
        )


def walk(
    token_ids: list[int],
    force: Callable[[], list[int]],
    accept: Callable[[int], bool],
    wrong: list[tuple[int, list[int]]],
) -> Counts | None:
    """One instance; None if it is refused. Runs that are not canonical are added to `wrong`."""
    counts = Counts(tokens=len(token_ids), instances=1)
    at = 0
    while at <= len(token_ids):
        start = time.perf_counter()
        forced = force()
        counts.seconds += time.perf_counter() - start
        counts.calls += 1
        if forced:
            counts.runs += 1
            if token_ids[at : at + len(forced)] != forced:
                counts.not_canonical += 1
                wrong.append((at, forced))
                forced = []
        counts.forced += len(forced)
        step = forced or token_ids[at : at + 1]
        if not step:
            return counts
        if not all(accept(token_id) for token_id in step):
            return None
        at += len(step)
    return counts


def schemas(sample: int) -> Iterator[tuple[str, str, list[Any]]]:
    """Schemas by a hash of their name, so that a larger sample contains the smaller one."""
    rows = []
    for file in sorted((SHARED / "maskbench").glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                rows.append((hashlib.sha256(row["id"].encode()).hexdigest(), row))
    rows.sort(key=lambda pair: pair[0])
    for _, row in rows[:sample]:
        valid = [test["data"] for test in row["tests"] if test["valid"]]
        if valid:
            yield row["id"], json.dumps(row["schema"], ensure_ascii=False), valid


def main() -> None:
    """Walk the sample in both styles and print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=400, help="schemas")
    parser.add_argument("--tokenizer", default="llama3", choices=["llama3", "gpt2", "mistral-v1"])
    parser.add_argument("--alone", action="store_true", help="without llguidance")
    parser.add_argument("--show", action="store_true", help="print what is not canonical")
    options = parser.parse_args()
    folder = SHARED / "tokenizers" / options.tokenizer
    info = TokenizerInfo.from_file(folder)
    compiler = GrammarCompiler(info)
    theirs = None if options.alone else Theirs(folder, info)
    for style, how in STYLES.items():
        ours_counts, their_counts, skipped = Counts(), Counts(), 0
        for name, schema, instances in schemas(options.sample):
            try:
                compiled = compiler.compile(Grammar.from_json_schema(schema, **how["ours"]))
            except stencilm.StencilError:
                skipped += 1
                continue
            fresh = theirs.compile(schema, how["theirs"]) if theirs else None
            if theirs and fresh is None:
                skipped += 1
                continue
            for instance in instances:
                ids = info.tokenize_bytes(
                    json.dumps(instance, ensure_ascii=False, **how["dumps"]).encode()
                )
                matcher = GrammarMatcher(compiled)
                wrong: list[tuple[int, list[int]]] = []
                mine = walk(ids, matcher.find_jump_forward_tokens, matcher.accept_token, wrong)
                yours: Counts | None = Counts()
                if fresh is not None:
                    other = fresh.deep_copy()
                    yours = walk(ids, other.compute_ff_tokens, other.consume_token, wrong)
                for at, forced in wrong if options.show else ():
                    shown = info.dbg_tokens(ids[max(0, at - 3) : at + len(forced) + 1])
                    print(name, at, info.dbg_tokens(forced), "in place of", shown)
                if mine is not None and yours is not None:
                    ours_counts.add(mine)
                    their_counts.add(yours)
        print(f"\n{style}; {options.tokenizer}; {skipped} schemas left out")
        print("| | instances | tokens | forced | runs | not canonical | a call, us |")
        print("|---|--:|--:|--:|--:|--:|--:|")
        print(ours_counts.line(f"stencilm {stencilm.__version__}"))
        if theirs:
            print(their_counts.line(f"llguidance {theirs.version}"), flush=True)


class Theirs:
    """llguidance with the same vocabulary."""

    def __init__(self, folder: Path, info: TokenizerInfo) -> None:
        from importlib.metadata import version

        import llguidance
        import llguidance.hf
        from transformers import AutoTokenizer

        self.version = version("llguidance")
        self._library = llguidance
        self._tokenizer = llguidance.hf.from_tokenizer(
            AutoTokenizer.from_pretrained(str(folder)),
            n_vocab=info.vocab_size,
            eos_token=info.stop_token_ids[0],
        )

    def compile(self, schema: str, options: dict[str, Any]) -> Any:
        """A matcher before the first token; None if the schema is refused."""
        try:
            grammar = self._library.LLMatcher.grammar_from_json_schema(schema, defaults=options)
        except ValueError:
            return None
        matcher = self._library.LLMatcher(self._tokenizer, grammar, log_level=0)
        return None if matcher.is_error() else matcher


if __name__ == "__main__":
    main()
