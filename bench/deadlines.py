"""How soon operations end that may take long, under a deadline, a signal and a cancel token.

    python -m bench.deadlines --tokenizer ../shared/tokenizers/llama3

Every case runs three times, in a process of its own. First with a deadline of 100 ms, on a thread
other than the main one, so that its processor time is exactly that of the call. Then on the main
thread without a deadline, where a signal handler raises after 100 ms. Then on the main thread
again, where another thread cancels the token of its limits after 100 ms. The figure is the
processor time beyond these 100 ms. A case that finishes sooner tests nothing, and is marked as
such.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import stencilm
from stencilm import (
    CancelToken,
    Grammar,
    GrammarCompiler,
    GrammarMatcher,
    LimitExceeded,
    Limits,
    OperationCancelled,
    StencilError,
    TokenizerInfo,
)

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))
ASKED = 0.1
"""The deadline, in seconds."""
LATE = 0.05
"""The permitted delay, in seconds."""

ROOMY = Limits(schema_bytes=4 << 20, milliseconds=60_000)
"""The preparation of a case."""

Work = Callable[[GrammarCompiler], Any]
"""The single call that is timed."""
CASES: dict[str, Callable[[GrammarCompiler], Work]] = {}

WITHOUT_DEADLINE = {"converting a grammar of 3,000 rules"}
"""Operations without limits, because the grammar bounds their work; signals end them."""


def case(title: str) -> Callable[[Callable[[GrammarCompiler], Work]], None]:
    def add(prepare: Callable[[GrammarCompiler], Work]) -> None:
        CASES[title] = prepare

    return add


def mask_of(matcher: GrammarMatcher, info: TokenizerInfo) -> Work:
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    return lambda _: matcher.fill_next_token_bitmask(mask)


def matcher_after(text: str, compiled: stencilm.CompiledGrammar) -> GrammarMatcher:
    matcher = GrammarMatcher(compiled)
    assert matcher.accept_string(text)
    return matcher


@case("compile: an enum of 150,000 integers")
def _(_: GrammarCompiler) -> Work:
    schema = json.dumps({"enum": list(range(150_000))})
    return lambda made: made.compile_json_schema(schema)


@case("first mask: an enum of 20,000 integers")
def _(_: GrammarCompiler) -> Work:
    schema = json.dumps({"enum": [7 * number for number in range(20_000)]})
    grammar = Grammar.from_json_schema(schema, limits=ROOMY)

    def first_mask(made: GrammarCompiler) -> None:
        matcher = GrammarMatcher(made.compile_grammar(grammar))
        mask_of(matcher, made.tokenizer_info)(made)

    return first_mask


@case(r"compile: (?i)\p{L} 4,000 times")
def _(_: GrammarCompiler) -> Work:
    return lambda made: made.compile_regex(r"(?i)" + r"\p{L}" * 4000)


@case("compile: any part of a text of 500 KB")
def _(_: GrammarCompiler) -> Work:
    text = "".join(chr(97 + (number * number // 7) % 26) for number in range(500_000))
    lark = f'start: %regex {{"substring_chars": "{text}"}}'
    return lambda made: made.compile_lark(lark)


@case("compile: a constant of 1 MiB")
def _(_: GrammarCompiler) -> Work:
    schema = json.dumps({"const": "ab" * (1 << 19)})
    return lambda made: made.compile_json_schema(schema)


@case("first mask: a constant of 1 MiB")
def _(_: GrammarCompiler) -> Work:
    schema = json.dumps({"const": "ba" * (1 << 19)})
    grammar = Grammar.from_json_schema(schema, limits=ROOMY)

    def first_mask(made: GrammarCompiler) -> None:
        matcher = GrammarMatcher(made.compile_grammar(grammar))
        mask_of(matcher, made.tokenizer_info)(made)

    return first_mask


@case("joining 20,000 grammars")
def _(_: GrammarCompiler) -> Work:
    parts = [Grammar.from_regex(f"[a-z]{{{number % 50},99}}{number}") for number in range(400)]
    return lambda made: made.compile_grammar(Grammar.union(*parts * 50))


@case("reading: a serialized grammar of nested parts")
def _(_: GrammarCompiler) -> Work:
    text = Grammar.from_ebnf("root ::= " + "(" * 3000 + '"a"' + '"b")*' * 3000).serialize_json()
    return lambda _: [Grammar.deserialize_json(text) for _ in range(40)][-1]


@case("compile: elements that must differ")
def _(_: GrammarCompiler) -> Work:
    schema = {"type": "array", "uniqueItems": True, "minItems": 9000}
    schema["items"] = {"type": "string", "pattern": "^[ab]{1,12}([cd]{1,9}|x)*$"}
    return lambda made: made.compile_json_schema(schema)


@case("accept: one token that took minutes")
def _(made: GrammarCompiler) -> Work:
    schema = (SHARED / "cases" / "hang_schema.json").read_text(encoding="utf-8")
    text = '{"": "{bbb966701241 },1726", "a": {"b": {"": 0}}}'
    compiled = made.compile_json_schema(schema)

    def accept(_: GrammarCompiler) -> None:
        matcher = GrammarMatcher(compiled)
        for character in text:
            assert matcher.accept_string(character)

    return accept


AMBIGUOUS = {
    "mask: (. root)* | . (root .)*": "root ::= (. root)* | . (root .)*",
    "mask: a grammar of optional parts": 'root ::= ("a"? root? . root? "b"?)+',
}
for title, grammar in AMBIGUOUS.items():

    def _ambiguous(made: GrammarCompiler, grammar: str = grammar) -> Work:
        return mask_of(matcher_after("abab", made.compile_grammar(grammar)), made.tokenizer_info)

    case(title)(_ambiguous)


@case("mask: ten pairs of dependentRequired")
def _(made: GrammarCompiler) -> Work:
    names = [f"a{number}" for number in range(20)]
    pairs = {names[2 * number]: [names[2 * number + 1]] for number in range(10)}
    schema = {"type": "object", "dependentRequired": pairs}
    text = "{" + ", ".join(f'"{name}": 1' for name in names[::2]) + ', "a'
    return mask_of(matcher_after(text, made.compile_json_schema(schema)), made.tokenizer_info)


@case("captures of an ambiguous text")
def _(made: GrammarCompiler) -> Work:
    compiled = made.compile_grammar('root ::= root root | x@("a" | root "b" | "")')
    matcher = matcher_after("ab" * 120, compiled)
    return lambda _: matcher.get_captures()


@case("shortest completion of many objects")
def _(made: GrammarCompiler) -> Work:
    item = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(30)}}
    item["required"] = list(item["properties"])
    schema = {"type": "array", "items": item, "minItems": 400}
    matcher = matcher_after("[", made.compile_json_schema(schema))
    return lambda _: matcher.shortest_completion(max_bytes=1 << 24)


@case("accept: a text of 4 MB")
def _(made: GrammarCompiler) -> Work:
    matcher = GrammarMatcher(made.compile_grammar('root ::= ("a" | "ab" | "b")* root? "c"'))
    text = "ab" * (1 << 21)
    return lambda _: matcher.accept_string(text)


@case("masks of 64 cold sequences in a batch")
def _(made: GrammarCompiler) -> Work:
    patterns = [f"(?i)([a-z]+[ab].{{{number}}}|.*x{number})" for number in range(64)]
    matchers = [GrammarMatcher(made.compile_regex(pattern)) for pattern in patterns]
    masks = np.zeros((64, (made.tokenizer_info.vocab_size + 31) // 32), dtype=np.int32)
    batch = stencilm.BatchGrammarMatcher(1)
    return lambda _: batch.batch_fill_next_token_bitmask(matchers, masks)


@case("accept: 400 bytes of a very ambiguous text")
def _(made: GrammarCompiler) -> Work:
    compiled = made.compile_grammar('root ::= ("a"? root? . root? "b"?)+')
    return lambda _: GrammarMatcher(compiled).accept_string("ab" * 200)


@case("accepting in a batch of 64 sequences")
def _(made: GrammarCompiler) -> Work:
    compiled = made.compile_grammar('root ::= ("a" | "ab" | "b")* root? "c"')
    matchers = [GrammarMatcher(compiled) for _ in range(64)]
    texts = ["ab" * (1 << 14)] * 64
    batch = stencilm.BatchGrammarMatcher(1)
    return lambda _: batch.batch_accept_string(matchers, texts)


@case("a token index of many states")
def _(made: GrammarCompiler) -> Work:
    def build(made: GrammarCompiler) -> Any:
        pattern = "(?:[a-z]{1,40}[0-9]{1,40}x){1,40}"
        limits = made.limits
        return stencilm.TokenIndex.from_regex(
            pattern, made.tokenizer_info, limits=limits, max_seconds=limits.milliseconds / 1000
        )

    return build


@case("a draft tree of 2,000 nodes")
def _(made: GrammarCompiler) -> Work:
    info = made.tokenizer_info
    matcher = GrammarMatcher(made.compile_regex("(?i)([a-z]+[ab].{9}|.*x)*"))
    tokens = np.full(2000, info.tokenize_bytes(b"a")[0])
    next_token = np.array([*range(1, 2000), -1])
    masks = np.zeros((2000, (info.vocab_size + 31) // 32), dtype=np.int32)
    siblings = np.full(2000, -1)
    return lambda _: matcher.traverse_draft_tree(next_token, siblings, tokens, masks)


def backreferences(count: int) -> str:
    """A schema whose patterns are refused one by one."""
    names = [f"p{number}" for number in range(count)]
    properties = {
        name: {"type": "string", "pattern": rf"^({name}|[a-z]{{2,9}})\1$"} for name in names
    }
    return json.dumps({"type": "object", "properties": properties})


@case("relaxing 20,000 patterns")
def _(_: GrammarCompiler) -> Work:
    schema = backreferences(20_000)

    def relax(made: GrammarCompiler) -> Any:
        return Grammar.from_json_schema(schema, on_unsupported="relax", limits=made.limits)

    return relax


@case("reporting on 20,000 properties")
def _(_: GrammarCompiler) -> Work:
    schema = backreferences(20_000).replace(r"\\1", "")
    return lambda made: Grammar.from_json_schema(schema, limits=made.limits).report


@case("converting a grammar of 3,000 rules")
def _(_: GrammarCompiler) -> Work:
    rules = [
        f'r{number} ::= "{number}" r{number + 1} | [a-z]{{1,{number % 90 + 1}}}'
        for number in range(3000)
    ]
    grammar = Grammar.from_ebnf("\n".join(["root ::= r0", *rules, 'r3000 ::= "z"']))
    return lambda _: [grammar.converted(notation) for notation in ("gbnf", "lark")]


@case("guiding a draft of 2 MB")
def _(made: GrammarCompiler) -> Work:
    compiled = made.compile_grammar('root ::= ("a" | "ab" | "b")* root? "c"')
    draft = "ab" * (1 << 20) + "d"
    return lambda _: GrammarMatcher(compiled).longest_valid_prefix(draft)


@case("a patch of a slow mask")
def _(made: GrammarCompiler) -> Work:
    pattern = "(?i)([a-z]+[ab].{40}|.*x9)(.*[abc].{24}|y)"
    matcher = matcher_after("ab", made.compile_regex(pattern))
    return lambda _: matcher.find_mask_patch()


@case("patches of 64 cold sequences in a batch")
def _(made: GrammarCompiler) -> Work:
    patterns = [f"(?i)([a-z]+[ab].{{{number}}}|.*x{number})" for number in range(64)]
    matchers = [GrammarMatcher(made.compile_regex(pattern)) for pattern in patterns]
    batch = stencilm.BatchGrammarMatcher(1)
    rows, offsets = np.zeros(64, dtype=np.int32), np.zeros(65, dtype=np.int32)
    flipped = np.zeros(64 * made.tokenizer_info.vocab_size, dtype=np.int32)
    return lambda _: batch.batch_find_mask_patches(matchers, rows, offsets, flipped)


@case("writing a grammar of 2,000 objects")
def _(_: GrammarCompiler) -> Work:
    names = [f"p{number}" for number in range(2000)]
    schema = {"type": "object", "properties": {name: {"enum": [name, 1]} for name in names}}
    grammar = Grammar.from_json_schema(schema, limits=ROOMY)
    return lambda _: (str(grammar), grammar.serialize_json())


def doubling(rule: str, count: int = 40) -> str:
    """A Lark grammar of terminals, each of which contains the previous one several times."""
    terminals = [rule.format(new=f"T{n}", old=f"T{n - 1}", number=n) for n in range(1, count + 1)]
    return "\n".join([f"start: T{count}", 'T0: "ab" /[c-f]/', *terminals])


LARK = {
    "reading: Lark terminals that double": doubling("{new}: {old} {old}"),
    "reading: Lark terminals that double in alternatives": doubling(
        '{new}: {old} "x" {old} | {old} "y{number}" {old}'
    ),
    "reading: Lark terminals that double in repetitions": doubling(
        "{new}: ({old} {old})* {old} {old}"
    ),
    "reading: a Lark terminal of 2,000 long ones": doubling("{new}: {old} {old}", 17).replace(
        "start: T17", "start: ALL\nALL: " + "T17 " * 2000
    ),
    "reading: a chain of 9,000 alternatives": doubling('{new}: {old} | "x{number}"', 9000),
}
for title, text in LARK.items():

    def _lark(_: GrammarCompiler, text: str = text) -> Work:
        return lambda made: Grammar.from_lark(text, limits=made.limits)

    case(title)(_lark)


@case("reading: 10,000 declarations in a sequence")
def _(_: GrammarCompiler) -> Work:
    parts = [f'%declares("s": "a{number}") %refers("s")' for number in range(10_000)]
    text = "root ::= " + " ".join(parts)
    return lambda made: Grammar.from_ebnf(text, limits=made.limits)


@case("reading: a chain of 20,000 references")
def _(_: GrammarCompiler) -> Work:
    defs: dict[str, Any] = {
        f"d{number}": {"anyOf": [{"$ref": f"#/$defs/d{number + 1}"}, {"const": number}]}
        for number in range(20_000)
    }
    schema = json.dumps({"$ref": "#/$defs/d0", "$defs": {**defs, "d20000": {"type": "null"}}})
    return lambda made: Grammar.from_json_schema(schema, limits=made.limits)


@case("reading: free text without 30,000 texts")
def _(_: GrammarCompiler) -> Work:
    excluded = [f"x{number}y" for number in range(30_000)]
    tag = {"type": "structural_tag", "format": {"type": "any_text", "excludes": excluded}}
    text = json.dumps(tag)
    return lambda made: Grammar.from_structural_tag(text, limits=made.limits)


@case("reading: an EBNF chain of 20,000 rules")
def _(_: GrammarCompiler) -> Work:
    rules = [f'r{number} ::= r{number - 1} "x" | "y"' for number in range(1, 20_001)]
    text = "\n".join(["root ::= r20000", 'r0 ::= "a"', *rules])
    return lambda made: Grammar.from_ebnf(text, limits=made.limits)


@case("reading: any part of a text of 1 MB")
def _(_: GrammarCompiler) -> Work:
    text = "".join(chr(97 + (number * number // 7) % 26) for number in range((1 << 20) - 99))
    return lambda made: Grammar.from_ebnf(f'root ::= Substring("{text}")', limits=made.limits)


@case("a matcher with a token budget, before 1 MB")
def _(made: GrammarCompiler) -> Work:
    text = "".join(chr(97 + (number * number // 7) % 26) for number in range((1 << 20) - 99))
    compiled = made.compile_grammar(Grammar.from_regex(text, limits=ROOMY))
    return lambda _: GrammarMatcher(compiled, token_budget=1 << 20)


WAYS = ("deadline", "signal", "cancel")
"""The three ways to end a case."""


def one(title: str, folder: Path, way: str) -> tuple[float, str]:
    """The seconds that a case took, and how it ended."""
    info = TokenizerInfo.from_file(folder)
    token = CancelToken()
    asked = {
        "deadline": Limits(milliseconds=int(ASKED * 1000), schema_bytes=ROOMY.schema_bytes),
        "signal": ROOMY,
        "cancel": Limits(milliseconds=60_000, schema_bytes=ROOMY.schema_bytes, cancel=token),
    }
    made = GrammarCompiler(info, limits=asked[way])
    prepare = CASES[title]
    try:
        work = prepare(made)
    except LimitExceeded:
        return 0.0, "not prepared in time"
    if way == "deadline":
        return timed(work, made)
    return signalled(work, made) if way == "signal" else stopped(work, made, token.cancel)


def timed(work: Work, made: GrammarCompiler) -> tuple[float, str]:
    took: list[tuple[float, str]] = []

    def thread() -> None:
        begun, end = time.thread_time(), "done"
        try:
            work(made)
        except LimitExceeded as error:
            end = (
                "deadline"
                if "milliseconds" in str(error) or "max_seconds" in str(error)
                else "another limit"
            )
        except StencilError as error:
            end = type(error).__name__
        took.append((time.thread_time() - begun, end))

    worker = threading.Thread(target=thread)
    worker.start()
    worker.join()
    return took[0]


def signalled(work: Work, made: GrammarCompiler) -> tuple[float, str]:
    """Stopped by a handler that raises."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    main_thread = threading.main_thread().ident or 0
    signal.signal(signal.SIGUSR1, interrupt)
    found = stopped(work, made, lambda: signal.pthread_kill(main_thread, signal.SIGUSR1))
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    return found


def stopped(work: Work, made: GrammarCompiler, stop: Callable[[], Any]) -> tuple[float, str]:
    """Count from the moment when another thread stops the work."""
    sent = [0.0]
    over = threading.Event()

    def send() -> None:
        if not over.wait(ASKED):
            sent[0] = time.process_time()
            stop()

    sender = threading.Thread(target=send)
    sender.start()
    begun, end = time.process_time(), "done"
    try:
        work(made)
        over.set()
    except (KeyboardInterrupt, OperationCancelled) as error:
        end = "signal" if isinstance(error, KeyboardInterrupt) else "cancel"
    except StencilError as error:
        over.set()
        end = type(error).__name__
    now = time.process_time()
    took = ASKED + now - sent[0] if end in WAYS else now - begun
    sender.join()
    return took, end


def measure(title: str, folder: Path, way: str) -> tuple[float, str]:
    command = [sys.executable, "-m", "bench.deadlines", "--one", title, "--tokenizer", str(folder)]
    command += ["--way", way]
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    except subprocess.TimeoutExpired:
        return 600.0, "stopped after 600 s"
    if done.returncode:
        return 0.0, done.stderr.strip().splitlines()[-1]
    took, end = json.loads(done.stdout)
    return took, end


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.deadlines", description=__doc__)
    parser.add_argument("--tokenizer", type=Path, help="its folder; the embedded one by default")
    parser.add_argument("--case", action="append", help="only titles that hold this text")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--way", choices=WAYS, default=WAYS[0], help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.tokenizer or Path(stencilm.__file__).parent / "tiny"
    if options.one:
        print(json.dumps(one(options.one, folder, options.way)))
        return 0
    late = []
    print("| case | deadline of 100 ms | signal after 100 ms | cancelled after 100 ms |")
    print("|---|---|---|---|")
    for title in CASES:
        if options.case and not any(part in title for part in options.case):
            continue
        cells = []
        for way in WAYS:
            if title in WITHOUT_DEADLINE and way != "signal":
                cells.append("has none")
                continue
            took, end = measure(title, folder, way)
            cells.append(f"{1000 * took:.0f} ms, {end}")
            is_ours = end in WAYS or way == "deadline"
            if (took > ASKED + LATE and is_ours) or end.startswith("stopped"):
                late.append(f"{title}: {took:.2f} s, {end}")
        print(f"| {title} | {' | '.join(cells)} |", flush=True)
    for line in late:
        print(f"LATE: {line}")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
