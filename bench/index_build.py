"""Building token indexes, paired with outlines-core: seconds, memory, states, transitions.

Each build runs in a fresh process, both engines in turn. Memory is the growth of the resident set
caused by the index, without the vocabulary. Seconds are the least of the rounds.

    python bench/index_build.py --tokenizer gpt2 --rounds 3
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))

STRING = r'"([^"\\\x00-\x1f]|\\["\\/bfnrt])*"'
REGEXES = {
    "date": r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    "time": r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?( (AM|PM))?",
    "IPv4": r"((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])",
    "UUID": r"[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    "URL": (
        r"https?://(www\.)?[-a-zA-Z0-9@:%._+~#=]{1,256}\.[a-zA-Z0-9()]{1,6}"
        r"[-a-zA-Z0-9()@:%_+.~#?&/=]*"
    ),
    "e-mail": r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*\.[a-zA-Z]{2,10}",
    "words": r"([a-zA-Z]{1,20} ){1,10}[a-zA-Z]{1,20}\.",
    "flat JSON": r'\{"name":' + STRING + r',"age":(0|[1-9][0-9]{0,2}),"member":(true|false)\}',
    "nested JSON": (
        r'\{[ ]?"id"[ ]?:[ ]?(0|[1-9][0-9]*)[ ]?,[ ]?"user"[ ]?:[ ]?\{[ ]?"name"[ ]?:[ ]?'
        + STRING
        + r'[ ]?,[ ]?"tags"[ ]?:[ ]?\[('
        + STRING
        + r"([ ]?,[ ]?"
        + STRING
        + r")*)?\][ ]?\}[ ]?,[ ]?"
        + r'"score"[ ]?:[ ]?-?(0|[1-9][0-9]*)(\.[0-9]+)?[ ]?\}'
    ),
}


def resident() -> int:
    """The resident memory of this process in bytes, after returning free memory."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def one(engine: str, regex: str, tokenizer: str) -> dict[str, Any]:
    """One build, in this process."""
    from stencilm import TokenIndex, TokenizerInfo

    info = TokenizerInfo.from_file(SHARED / "tokenizers" / tokenizer)
    if engine == "stencilm":
        TokenIndex.from_regex("a", info)  # the order of the tokens belongs to the vocabulary
        before = resident()
        start = time.process_time()
        index = TokenIndex.from_regex(regex, info)
        seconds = time.process_time() - start
        states, transitions = index.num_states, index.num_transitions
    else:
        import outlines_core

        tokens: dict[bytes, list[int]] = {}
        special = set(info.special_token_ids)
        for token_id, token in enumerate(info.decoded_vocab):
            if token and token_id not in special:
                tokens.setdefault(token, []).append(token_id)
        vocabulary = outlines_core.Vocabulary(info.stop_token_ids[0], tokens)
        before = resident()
        start = time.process_time()
        index = outlines_core.Index(regex, vocabulary)
        seconds = time.process_time() - start
        table = index.get_transitions() if hasattr(index, "get_transitions") else {}
        held = resident() - before if not table else 0
        states, transitions = len(table), sum(map(len, table.values()))
        del table
        return {
            "seconds": seconds,
            "bytes": max(held, resident() - before),
            "states": states,
            "transitions": transitions,
        }
    return {
        "seconds": seconds,
        "bytes": max(index.memory_size_bytes, resident() - before),
        "states": states,
        "transitions": transitions,
    }


def fresh(engine: str, name: str, tokenizer: str) -> dict[str, Any]:
    """One build in a process of its own."""
    command = [sys.executable, __file__, "--one", engine, name, "--tokenizer", tokenizer]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def main() -> None:
    """Prints a table of all regular expressions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", default="gpt2", choices=["gpt2", "llama3"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(REGEXES))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        engine, name = options.one
        print(json.dumps(one(engine, REGEXES[name], options.tokenizer)))
        return
    print("| regex | states | transitions | CPU s | outlines-core | ratio | MB | theirs | ratio |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in options.only or REGEXES:
        rounds = [
            {engine: fresh(engine, name, options.tokenizer) for engine in ("stencilm", "outlines")}
            for _ in range(options.rounds)
        ]
        ours, theirs = (
            {key: min(measured[engine][key] for measured in rounds) for key in rounds[0][engine]}
            for engine in ("stencilm", "outlines")
        )
        print(
            f"| {name} | {ours['states']} ({theirs['states']}) | {ours['transitions']:,} "
            f"({theirs['transitions']:,}) | {ours['seconds']:.4f} | {theirs['seconds']:.4f} "
            f"| {theirs['seconds'] / ours['seconds']:.0f} | {ours['bytes'] / 1e6:.2f} "
            f"| {theirs['bytes'] / 1e6:.2f} | {theirs['bytes'] / max(1, ours['bytes']):.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
