"""The benchmarks: every case is a value, and nothing runs here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Source:
    """A grammar and a text of it. `$N` in either is a number that makes each variant different."""

    text: str
    schema: str | None = None
    regex: str | None = None

    def variant(self, number: int) -> Source:
        """The same with another number."""

        def filled(text: str | None) -> str | None:
            return None if text is None else text.replace("$N", str(number))

        return Source(self.text.replace("$N", str(number)), filled(self.schema), filled(self.regex))


@dataclass(frozen=True)
class Case:
    """One benchmark.

    `measure` names a function of `measures`. `sources` are compared with each other, the first with
    the second as a ratio. `goals` are the greatest acceptable values.
    """

    name: str
    title: str
    measure: str
    sources: Mapping[str, Source] = field(default_factory=dict)
    tokenizers: tuple[str, ...] = ("llama3",)
    variants: int = 1
    # The positions of a text that count, by where in JSON the token starts; empty for all.
    position: str | None = None
    goals: Mapping[str, float] = field(default_factory=dict)


def schema(value: Any) -> str:
    return json.dumps(value)


def strings(*names: str) -> dict[str, Any]:
    return {name: {"type": "string"} for name in names}


WORDS = (
    "the quick brown fox jumps over a lazy dog while seven wizards quietly mix boxing gloves and "
    "jars of liquid oxygen beside the old railway station in Ljubljana"
).split()


def prose(characters: int) -> str:
    text = " ".join(WORDS[i % len(WORDS)] for i in range(characters // 4))
    return text[:characters]


# Schemas that a process has compiled before a case begins, different from those of the case.
OTHERS = [
    Source(
        '{"title": "A tale of two", "pages": 123, "tags": ["old", "new"], "in_print": true}',
        schema(
            {
                "type": "object",
                "properties": {
                    **strings("title"),
                    "pages": {"type": "integer", "minimum": 1},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "in_print": {"type": "boolean"},
                    "price": {"type": ["number", "null"]},
                },
                "required": ["title"],
            }
        ),
    ),
    Source(
        '{"from": {"city": "Oslo"}, "to": {"city": "Bergen"}, "kind": "rail", "more": [1.5, null]}',
        schema(
            {
                "type": "object",
                "properties": {
                    "from": {"$ref": "#/$defs/place"},
                    "to": {"$ref": "#/$defs/place"},
                    "kind": {"enum": ["rail", "road", "sea"]},
                },
                "required": ["from", "to"],
                "$defs": {
                    "place": {
                        "type": "object",
                        "properties": strings("city", "street"),
                        "additionalProperties": False,
                    }
                },
            }
        ),
    ),
    Source("2024-05-17", regex=r"\d{4}-\d\d-\d\d"),
]

PERSON = Source(
    '{"name$N": "Zoe O\'Hara of the long hills", "age$N": 42, "tags$N": ["red", "blue green"], '
    '"home$N": {"street$N": "12 High Street", "code$N": 90210}, "member$N": true, "score$N": 9.75}',
    schema(
        {
            "type": "object",
            "properties": {
                "name$N": {"type": "string"},
                "age$N": {"type": "integer", "minimum": 0, "maximum": 150},
                "tags$N": {"type": "array", "items": {"type": "string"}},
                "home$N": {
                    "type": "object",
                    "properties": {"street$N": {"type": "string"}, "code$N": {"type": "integer"}},
                    "required": ["street$N"],
                },
                "member$N": {"type": "boolean"},
                "score$N": {"type": "number"},
            },
            "required": ["name$N", "age$N"],
        }
    ),
)

MANY_NAMES = [f"{WORDS[i % 26]}_{WORDS[i * 7 % 25]}_{i}" for i in range(200)]


def object_with(count: int) -> Source:
    names = [f"{WORDS[i % len(WORDS)]}_{i}_$N" for i in range(count)]
    some = [names[i * (count - 1) // 9] for i in range(10)]
    text = json.dumps({name: f"value {i}" for i, name in enumerate(some)})
    return Source(text, schema({"type": "object", "properties": strings(*names)}))


RECORD = {"id": 12345, "name": "Ada Lovelace", "tags": ["math", "engine"], "score": 9.5}
RECORDS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "score": {"type": "number"},
        },
        "required": ["id", "name"],
    },
}
NESTED = {"$ref": "#/$defs/list", "$defs": {"list": {"type": "array", "items": {"$ref": "#"}}}}

CASES = [
    Case(
        "string-body",
        "A JSON string's body, first mask",
        "walk",
        {"person": PERSON},
        variants=200,
        position="string",
        goals={"cold mean": 2.0},
    ),
    Case(
        "structure",
        "Between the values of JSON, first mask",
        "walk",
        {"person": PERSON},
        variants=200,
        position="structural",
        goals={"cold mean": 10.0},
    ),
    Case(
        "keys",
        "A key among 200 known names and free ones, first mask",
        "walk",
        {
            "200 names": Source(
                json.dumps(
                    {f"{MANY_NAMES[i * 19]}_$N": f"x{i}" for i in range(10)} | {"free": "y"}
                ),
                schema({"type": "object", "properties": strings(*(f"{n}_$N" for n in MANY_NAMES))}),
            )
        },
        variants=40,
        position="key",
        goals={"cold mean": 20.0},
    ),
    Case(
        "max-length",
        "A string of at most 1000 characters and one without bound, every mask along 1000",
        "walk",
        {
            "maxLength 1000": Source(
                json.dumps(prose(1000)), schema({"type": "string", "maxLength": 1000})
            ),
            "no bound": Source(json.dumps(prose(1000)), schema({"type": "string"})),
        },
        goals={"warm mean, ratio": 1.1, "cold mean, ratio": 1.1},
    ),
    Case(
        "words",
        r"\S+( \S+){0,199}, every mask of a text of 200 words",
        "walk",
        {
            "words": Source(
                " ".join(WORDS[i % len(WORDS)] for i in range(200)), regex=r"\S+( \S+){0,199}"
            )
        },
        goals={"cold max": 500.0, "warm mean": 2.0},
    ),
    Case(
        "warm",
        "Masks that are known, beside the copy of one row",
        "walk",
        {"person": PERSON},
        variants=20,
        goals={"warm p50, floors": 2.0},
    ),
    Case(
        "accept",
        "Accepting a token",
        "accept",
        {"person": PERSON, "records": Source(json.dumps([RECORD] * 40), schema(RECORDS))},
        goals={"accept mean": 0.5},
    ),
    Case(
        "rollback",
        "Rolling back ten tokens",
        "rollback",
        {"person": PERSON},
        goals={"rollback mean": 1.0},
    ),
    Case(
        "batch",
        "256 matchers of eight grammars filled at once by two threads",
        "batch",
        {f"person {i}": PERSON.variant(i) for i in range(8)},
        goals={"fill p50": 1000.0},
    ),
    Case(
        "vocabulary",
        "Growth with the vocabulary: 32,000 and 128,256 tokens",
        "walk",
        {"person": PERSON},
        tokenizers=("mistral-v1", "gpt2", "llama3"),
        variants=50,
        goals={"cold mean, llama3 to mistral-v1": 1.5, "warm mean, llama3 to mistral-v1": 1.5},
    ),
    Case(
        "length",
        "Growth with the text: the first and the last 1,000 of 10,000 tokens",
        "length",
        {"records": Source(json.dumps([RECORD] * 400), schema(RECORDS))},
        goals={"last to first": 1.1},
    ),
    Case(
        "depth",
        "Growth with nesting: a mask and a token at depth 10 and at depth 1,000",
        "depth",
        {"lists": Source("[", schema(NESTED))},
        goals={"1000 to 10": 1.1},
    ),
    Case(
        "size",
        "Growth with the grammar: 10 to 10,000 properties",
        "size",
        {str(count): object_with(count) for count in (10, 100, 1_000, 10_000)},
    ),
    Case(
        "tags",
        "400 tools in free text: compiling, and masks in the text and in arguments; 1,000 tools",
        "tags",
        goals={
            "compile and first mask, ms": 20.0,
            "1,000 tools: compile and first mask, ms": 20.0,
            "text, warm mean": 5.0,
            "arguments, warm mean": 10.0,
        },
    ),
    Case(
        "memory",
        "Memory of compiled MaskBench schemas after their traces",
        "memory",
        goals={"p50, KiB": 512.0},
    ),
    Case(
        "cache",
        "10,000 different schemas through one compiler of 64 MiB",
        "cache",
        {"person": PERSON},
        goals={"largest cache, MiB": 64.0},
    ),
    Case(
        "tokenizer-load",
        "CPU seconds to load a vocabulary",
        "loading",
        tokenizers=("gpt2", "mistral-v1", "llama3"),
        goals={"llama3: stencilm: from_huggingface, bare Tokenizer, s": 0.6},
    ),
]
