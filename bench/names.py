"""Random documents that declare names and refer to them: python -m bench.names

Each document is a random walk over the tokens that the masks allow, in three notations. Its
declarations and references are then read by a reader that does not use the grammar, in the order of
the text, and every reference must be to an earlier declaration. Every tenth document has a token
budget, within which it must be complete. Masks are timed along the way.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import clock
from bench.sql import Walker
from stencilm import Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STENCILM_SHARED", ROOT.parent / "shared"))
RECORD = Path(__file__).parent / "records" / "names.md"
BUDGET = 100

# A name in a set, declared (True) or referred to (False), in the order of the text.
Event = tuple[str, bool, str]


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


def _list(items: Any, least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


def _declares(name: str) -> dict[str, str]:
    return {"type": "string", "x-stencilm-declares": name}


def _refers(name: str) -> dict[str, str]:
    return {"type": "string", "x-stencilm-refers": name}


_GRAPH = _object(
    nodes=_list(_object(id=_declares("ids")), 1),
    edges=_list(_object(start=_refers("ids"), end=_refers("ids")), 1),
)
_ORDERS = _object(
    customers=_list(_object(customer=_declares("customers"), city={"type": "string"}), 1),
    products=_list(_object(product=_declares("products"), price={"type": "integer"}), 1),
    orders=_list(_object(by=_refers("customers"), of=_list(_refers("products"), 1)), 1),
)
# A step may wait for an earlier step, or for itself.
_STEPS = _list(_object(step=_declares("steps"), after=_list(_refers("steps"))), 2)
_KEYS = {
    "id": ("ids", True), "start": ("ids", False), "end": ("ids", False),
    "customer": ("customers", True), "by": ("customers", False),
    "product": ("products", True), "of": ("products", False),
    "step": ("steps", True), "after": ("steps", False),
}  # fmt: skip


def _json_events(text: str) -> Iterator[Event]:
    def walked(value: Any, key: str = "") -> Iterator[Event]:
        if isinstance(value, dict):
            for inner, part in value.items():
                yield from walked(part, inner)
        elif isinstance(value, list):
            for part in value:
                yield from walked(part, key)
        elif isinstance(value, str) and key in _KEYS:
            yield (*_KEYS[key], value)

    return walked(json.loads(text))


_PROGRAM = r"""
root      ::= statement+
statement ::= "let " %declares("variables": [a-z]+) " = " sum ";\n" | "print " sum ";\n"
sum       ::= value (" + " value)*
value     ::= %refers("variables") | [0-9]+
"""


def _program_events(text: str) -> Iterator[Event]:
    for line in text.splitlines():
        if declared := re.match(r"let ([a-z]+)", line):
            yield "variables", True, declared[1]
        uses = line.partition("= " if declared else "print ")[2]
        yield from (("variables", False, name) for name in re.findall("[a-z]+", uses))


_TYPES = r"""
start: "types" ":" type+ "fields" ":" field+
type: "#" %declares("types": NAME) ";"
field: %declares("fields": FIELD) ":" %refers("types") ("=" %refers("fields"))? ";"
NAME: /[A-Z][a-z]*/
FIELD: "$" /[a-z]+/
%ignore " "
"""


def _types_events(text: str) -> Iterator[Event]:
    for name in re.findall(r"# *([A-Z][a-z]*)", text):
        yield "types", True, name
    for part in text.partition("fields")[2].split(";")[:-1]:
        declared, used, *more = re.findall(r"\$[a-z]+|[A-Z][a-z]*", part)
        yield "fields", True, declared
        yield "types", False, used
        yield from (("fields", False, name) for name in more)


@dataclass(frozen=True)
class Kind:
    """Documents of one grammar, and their reader."""

    title: str
    grammar: Grammar
    events: Callable[[str], Iterator[Event]]

    def judged(self, text: str) -> tuple[int, list[str]]:
        """The number of references in a document, and of those without an earlier declaration."""
        names: set[tuple[str, str]] = set()
        references, dangling = 0, []
        for kind, is_declared, name in self.events(text):
            if is_declared:
                names.add((kind, name))
            else:
                references += 1
                dangling += [] if (kind, name) in names else [name]
        return references, dangling


def kinds() -> list[Kind]:
    """All kinds of documents."""

    def schema(value: Any) -> Grammar:
        return Grammar.from_json_schema(value, compact=True, strict_mode=True)

    return [
        Kind("JSON Schema: nodes and edges", schema(_GRAPH), _json_events),
        Kind("JSON Schema: orders of customers", schema(_ORDERS), _json_events),
        Kind("JSON Schema: steps after steps", schema(_STEPS), _json_events),
        Kind("EBNF: variables of a program", Grammar.from_ebnf(_PROGRAM), _program_events),
        Kind("Lark: types and fields", Grammar.from_lark(_TYPES), _types_events),
    ]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.names", description=__doc__)
    parser.add_argument("--documents", type=int, default=1000, help="of all kinds together")
    parser.add_argument("--tokenizer", default="gpt2", help="a folder in shared/tokenizers")
    parser.add_argument("--record", action="store_true", help=f"keep the table in {RECORD.name}")
    options = parser.parse_args()
    info = TokenizerInfo.from_file(SHARED / "tokenizers" / options.tokenizer)
    compiler = GrammarCompiler(info, cache_enabled=False)
    rows: list[str] = []
    for kind in kinds():
        walker = Walker(info, list(info.decoded_vocab), np.random.default_rng(7), timed=clock.timed)
        compiled = compiler.compile(kind.grammar)
        documents = options.documents // len(kinds())
        references, dangling = 0, 0
        for number in range(documents):
            budget = BUDGET if number % 10 == 9 else None
            walker.timed = clock.timed if budget is None else lambda call, *more: (0.0, call(*more))
            matcher = GrammarMatcher(compiled, token_budget=budget)
            text = walker.text(matcher)
            if budget is not None and matcher.num_accepted_tokens > budget:
                raise AssertionError(f"{matcher.num_accepted_tokens} tokens: {text}")
            found, wrong = kind.judged(text)
            references, dangling = references + found, dangling + len(wrong)
            for name in wrong:
                print(f"  {name!r} is no name before it: {text}")
        times = [taken for taken in walker.times if taken > 0]
        p50, p99 = np.percentile(times, [50, 99])
        rows.append(
            f"| {kind.title} | {documents:,} | {references:,} | {dangling} | {walker.tokens:,} | "
            f"{p50:.1f} | {p99:.1f} |"
        )
        print(rows[-1], flush=True)
    record = f"""# References to declared names

`python -m bench.names --documents {options.documents}` with the tokenizer {options.tokenizer} on \
{platform.machine()}, Python {platform.python_version()}.

Random walks over the allowed tokens, at most {Walker.longest} of them, then the shortest end; \
every tenth has a budget of
{BUDGET} tokens and ends within it. Dangling are references to what is no name before them, as a \
reader finds them that
knows nothing of the grammar. Times of masks are in microseconds, without those of budgets.

| documents | number | references | dangling | tokens | mask p50 | mask p99 |
|---|--:|--:|--:|--:|--:|--:|
""" + "\n".join(rows)
    if options.record:
        RECORD.write_text(record + "\n")


if __name__ == "__main__":
    main()
