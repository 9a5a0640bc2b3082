"""Texts near the end of a token budget, for `bench/ablation.py`: their masks and completions.

The tokens of each text are drawn once, with everything on. Then the same texts are read with parts
of the engine off, so that each mask is compared with one of the same text.
"""

from __future__ import annotations

import json
import random
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stencilm
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

# How many tokens more than the shortest completion a text may have.
SPARE = (0, 1, 5, 20, 60)
# Every so-manieth step, completions are asked for, too.
ASKED = 10
# No shortest completion is longer, no more tokens of a text are read, and no grammar takes more
# seconds in one run.
GREATEST, TOKENS, SECONDS = 150, 80, 2.0
FIGURES = ("start", "narrowed", "p99", "greatest", "far", "to the end", "shortest", "memory")


@dataclass
class Text:
    """A text: its budget, its tokens, and for each mask whether the budget narrowed it."""

    budget: int
    tokens: list[int]
    narrowed: list[bool]


@dataclass
class Task:
    """A grammar with its texts."""

    name: str
    grammar: Grammar
    texts: list[Text] = field(default_factory=list)


@dataclass
class Taken:
    """The microseconds of one run, in a fixed order, and what was found."""

    start: list[float] = field(default_factory=list)
    narrowed: list[float] = field(default_factory=list)
    far: list[float] = field(default_factory=list)
    to_end: list[float] = field(default_factory=list)
    shortest: list[float] = field(default_factory=list)
    memory: float = 0.0
    masks: list[tuple[int, int]] = field(default_factory=list)
    found: list[Any] = field(default_factory=list)
    is_whole: bool = True

    def least(self, other: Taken) -> None:
        """Keep the smaller of each two numbers."""
        for name in ("start", "narrowed", "far", "to_end", "shortest"):
            pairs = zip(getattr(self, name), getattr(other, name), strict=False)
            setattr(self, name, [min(pair) for pair in pairs])

    def add(self, other: Taken) -> None:
        """Take the numbers of another grammar, too."""
        for name in ("start", "narrowed", "far", "to_end", "shortest", "masks", "found"):
            getattr(self, name).extend(getattr(other, name))
        self.memory += other.memory
        self.is_whole &= other.is_whole

    def figures(self) -> dict[str, float]:
        """The figures of a row of the table."""

        def mean(times: list[float]) -> float:
            return float(np.mean(times)) if times else 0.0

        return {
            "start": mean(self.start),
            "narrowed": mean(self.narrowed),
            "p99": float(np.percentile(self.narrowed, 99)) if self.narrowed else 0.0,
            "greatest": max(self.narrowed, default=0.0),
            "far": mean(self.far),
            "to the end": mean(self.to_end),
            "shortest": mean(self.shortest),
            "memory": self.memory,
        }


def _array(items: Any, least: int, **keywords: Any) -> Grammar:
    schema = {"type": "array", "items": items, "minItems": least, **keywords}
    return Grammar.from_json_schema(json.dumps(schema))


def _object(properties: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
        **keywords,
    }


def cases() -> dict[str, Grammar]:
    """Grammars for which the parts of the search exist, by description."""
    unique = {"uniqueItems": True}
    point = _object({"id": {"type": "integer"}, "host": {"type": "string", "format": "hostname"}})
    named = {"type": "string", "x-stencilm-declares": "ids"}
    refers = {"type": "string", "x-stencilm-refers": "ids"}
    graph = _object(
        {
            "nodes": {"type": "array", "items": _object({"id": named})},
            "edges": {
                "type": "array",
                "minItems": 2,
                "items": _object({"from": refers, "to": refers}),
            },
        }
    )
    wide = {f"m{at}": {"type": "integer"} for at in range(12)}
    compared = {**wide, "m0": {"oneOf": [{"type": "integer"}, {}]}}
    few = {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 4}
    tree = {"$ref": "#/$defs/tree", "$defs": {}}
    tree["$defs"] = {
        "tree": _object({"name": {"type": "string"}}, minProperties=1)
        | {
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "minItems": 1},
            }
        }
    }
    dates = {"type": "string", "format": "date-time"}
    return {
        "integers": _array({"type": "integer", "minimum": 0, "maximum": 60}, 30, **unique),
        "signed integers": _array({"type": "integer"}, 12, **unique),
        "numbers": _array({"type": "number"}, 5, **unique),
        "objects": _array(point, 3, **unique),
        "strings": _array({"type": "string", "maxLength": 20}, 3, **unique),
        "UUIDs": _array({"type": "string", "format": "uuid"}, 2, **unique),
        "e-mails": _array({"type": "string", "format": "email", "maxLength": 20}, 3, **unique),
        "times": _array(dates, 3, **unique),
        "enum": _array({"enum": [*"abc", "a long one of these", 1, 2, None]}, 5, **unique),
        "pairs": _array({**_array_of_integers(), "minItems": 2}, 4, **unique),
        "counted": _array({"type": ["integer", "string"]}, 3, contains={"minimum": 1000}),
        "repeated": _array({"type": "integer"}, 4, **{"not": {"uniqueItems": True}}),
        "keys": Grammar.from_json_schema(json.dumps({**few, "minProperties": 6})),
        "few keys": Grammar.from_json_schema(
            json.dumps({**few, "propertyNames": {"enum": [*"abcdef", "a long one of these"]}})
        ),
        "keys of one letter": Grammar.from_json_schema(
            json.dumps({**few, "propertyNames": {"pattern": "^a+$"}})
        ),
        "wide": Grammar.from_json_schema(json.dumps(_object(wide)), property_order="any"),
        "wide, no other": Grammar.from_json_schema(
            json.dumps(_object(compared)), property_order="any"
        ),
        "tree": Grammar.from_json_schema(json.dumps(tree)),
        "names": Grammar.from_json_schema(json.dumps(graph)),
        "e-mail": Grammar.from_json_schema(
            json.dumps({"type": "string", "format": "email", "maxLength": 254})
        ),
        "JSON": Grammar.builtin_json_grammar(),
    }


def _array_of_integers() -> dict[str, Any]:
    return {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}


def _bits(mask: NDArray[np.int32]) -> NDArray[np.int64]:
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))


def draw(name: str, grammar: Grammar, info: TokenizerInfo) -> Task | None:
    """The texts of a grammar, by a model that draws evenly; None if it has none that is short."""
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    vocabulary, task = info.decoded_vocab, Task(name, grammar)
    try:
        compiled = GrammarCompiler(info, cache_enabled=False).compile(grammar)
        shortest = GrammarMatcher(compiled).tokens_to_end()
    except stencilm.StencilError:
        return None
    if shortest > GREATEST:
        return None
    for more in SPARE:
        chance, text = random.Random(f"{name} {more}"), Text(shortest + more, [], [])
        matcher = GrammarMatcher(compiled, token_budget=text.budget)
        while not matcher.is_terminated() and len(text.tokens) < TOKENS:
            matcher.fill_next_token_bitmask(mask)
            tokens = _bits(mask)
            # A text of whitespace and of rare characters alone tells little.
            liked = [token for token in tokens[:2000] if (vocabulary[token] or b" ").strip()]
            token = int(chance.choice(liked or tokens))
            text.narrowed.append(matcher.is_narrowed)
            text.tokens.append(token)
            if not matcher.accept_token(token):
                raise SystemExit(f"{name}: a token of the mask was refused")
        task.texts.append(text)
    return task


def run(task: Task, info: TokenizerInfo) -> Taken:
    """One run along the texts of a grammar."""
    taken, clock = Taken(), time.thread_time_ns
    mask = np.zeros((info.vocab_size + 31) // 32, dtype=np.int32)
    compiled = GrammarCompiler(info, cache_enabled=False).compile(task.grammar)
    begun = time.perf_counter()
    for text in task.texts:
        start = clock()
        try:
            matcher = GrammarMatcher(compiled, token_budget=text.budget)
        except stencilm.StencilError as error:
            taken.found.append(str(error))
            taken.is_whole = False
            continue
        taken.start.append((clock() - start) / 1e3)
        for at, (token, narrowed) in enumerate(zip(text.tokens, text.narrowed, strict=True)):
            if time.perf_counter() - begun > SECONDS:
                taken.is_whole = False
                break
            start = clock()
            try:
                matcher.fill_next_token_bitmask(mask)
            except stencilm.StencilError as error:
                taken.found.append(str(error))
                mask.fill(0)
            (taken.narrowed if narrowed else taken.far).append((clock() - start) / 1e3)
            taken.masks.append((zlib.crc32(mask.tobytes()), int(np.bitwise_count(mask).sum())))
            if at % ASKED == 1:
                start = clock()
                taken.found.append(_asked(matcher.tokens_to_end))
                middle = clock()
                taken.found.append(_asked(matcher.shortest_completion))
                taken.to_end.append((middle - start) / 1e3)
                taken.shortest.append((clock() - middle) / 1e3)
            if not matcher.accept_token(token):
                raise SystemExit(f"{task.name}: the grammar refuses its text")
    taken.memory = compiled.memory_size_bytes
    return taken


def _asked(what: Any) -> Any:
    try:
        return what()
    except stencilm.StencilError as error:
        return str(error)


def differences(on: Taken, off: Taken) -> tuple[int, int, int, int]:
    """Masks that differ, tokens more and fewer in them, and completions that differ."""
    pairs = [pair for pair in zip(on.masks, off.masks, strict=False) if pair[0] != pair[1]]
    counts = [other[1] - one[1] for one, other in pairs]
    more = sum(count for count in counts if count > 0)
    fewer = -sum(count for count in counts if count < 0)
    asked = sum(one != other for one, other in zip(on.found, off.found, strict=False))
    return len(pairs), more, fewer, asked


def print_tables(
    tasks: list[Task], info: TokenizerInfo, names: list[str], rounds: int, off: Callable[..., Any]
) -> None:
    """Print for each grammar, and for all together, what each part off costs.

    Every part is off in turn, and nothing first and last: these two tell how far two runs of the
    same differ. Each number is the least of the rounds.
    """
    every: list[list[str]] = [[], *([name] for name in names), []]
    all_together = [Taken() for _ in every]
    for task in tasks:
        best: list[Taken] = []
        for turn in range(rounds):
            for at, parts in enumerate(every):
                off(parts)
                taken = run(task, info)
                if turn == 0:
                    best.append(taken)
                else:
                    best[at].least(taken)
        off([])
        for whole, taken in zip(all_together, best, strict=True):
            whole.add(taken)
        _print_table(task.name, every, best)
    _print_table("all together", every, all_together)


def _print_table(title: str, every: list[list[str]], best: list[Taken]) -> None:
    figures = best[0].figures()
    print(f"\n| {title} | " + " | ".join(FIGURES) + " | differ |\n|---|" + "--:|" * 9)
    print("| figures | " + " | ".join(f"{figures[name]:,.1f}" for name in FIGURES) + " | |")
    for parts, taken in zip(every[1:], best[1:], strict=True):
        cells = []
        for name, figure in taken.figures().items():
            on = figures[name]
            cells.append(f"{100 * (figure / on - 1):+.1f} %" if on else "-")
        differ = differences(best[0], taken)
        cells.append(", ".join(map(str, differ)) if any(differ) else "-")
        cut = "" if taken.is_whole else " (cut off)"
        print("| " + " | ".join([(parts or ["nothing"])[0] + cut, *cells]) + " |", flush=True)
