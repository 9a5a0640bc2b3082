"""Token masks in plain Python: the idea of the engine, without its speed.

A grammar is a set of byte strings. Take a byte off the front of all its strings and drop those that
begin with another: what is left is the *derivative* of the set by that byte (Brzozowski, 1964). A
text begins a string of the grammar exactly if the set left after its bytes is not empty. So a token
may come next exactly if the derivative by its bytes is not empty, and the text may end exactly if
the set holds the empty string: see `mask`. The engine finds the same masks by walking a trie of all
tokens, with derivatives kept as states of automata (`docs/masks.md`).

    >>> grammar = json_schema({"type": "array", "items": {"enum": ["a", "ab"]}, "maxItems": 2})
    >>> tokens = [b"[", b"]", b'"', b"a", b"b", b'ab"', b'"]', b'", ']
    >>> [token for token, allowed in zip(tokens, mask(grammar, b'["a', tokens)) if allowed]
    [b'"', b'b', b'"]', b'", ']
    >>> is_complete(grammar, b'["a", "ab"]')
    True
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any


# --- Expressions: sets of byte strings ---------------------------------------------------------
class Expr:
    """A set of byte strings; expressions of the same spelling are equal."""


@dataclass(frozen=True)
class Byte(Expr):
    """One byte, any of these."""

    values: frozenset[int]


@dataclass(frozen=True)
class OneOf(Expr):
    """The strings of any of the members. Without members it is the empty set."""

    members: frozenset[Expr]


@dataclass(frozen=True)
class Concat(Expr):
    """The strings of the parts one after the other. Without parts it is the empty string."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class Star(Expr):
    """Any number of strings of `item`, one after the other."""

    item: Expr


@dataclass(eq=False)
class Rule(Expr):
    """What `body` says, which is set later and may lead to the rule again. Equal to itself only."""

    body: Expr


NOTHING, EMPTY = OneOf(frozenset()), Concat(())


def one_of(members: Iterable[Expr]) -> Expr:
    """The union, written in one way: nested unions are opened, one member stands for itself."""
    flat: set[Expr] = set()
    for member in members:
        flat |= member.members if isinstance(member, OneOf) else {member}
    return flat.pop() if len(flat) == 1 else OneOf(frozenset(flat))


def concat(*parts: Expr) -> Expr:
    """The parts one after the other, written in one way only."""
    flat: list[Expr] = []
    for part in parts:
        flat += part.parts if isinstance(part, Concat) else [part]
    if NOTHING in flat:
        return NOTHING
    return flat[0] if len(flat) == 1 else Concat(tuple(flat))


def repeat(item: Expr, least: int, most: int | None = None) -> Expr:
    """From `least` to `most` strings of `item`; None is no bound."""
    if most is None:
        return concat(*[item] * least, Star(item))
    optional: Expr = EMPTY
    for _ in range(most - least):
        optional = one_of([concat(item, optional), EMPTY])
    return concat(*[item] * least, optional)


def literal(text: bytes) -> Expr:
    """One string alone."""
    return concat(*(Byte(frozenset({byte})) for byte in text))


# --- The three questions -----------------------------------------------------------------------
def has_empty(expr: Expr, open_rules: frozenset[Expr] = frozenset()) -> bool:
    """Whether the empty string is in the set. A rule that leads only to itself adds nothing."""
    match expr:
        case OneOf(members):
            return any(has_empty(member, open_rules) for member in members)
        case Concat(parts):
            return all(has_empty(part, open_rules) for part in parts)
        case Rule(body):
            return expr not in open_rules and has_empty(body, open_rules | {expr})
    return isinstance(expr, Star)


def is_empty(expr: Expr, open_rules: frozenset[Expr] = frozenset()) -> bool:
    """Whether no string is in the set. A shortest string never needs a rule within itself."""
    match expr:
        case OneOf(members):
            return all(is_empty(member, open_rules) for member in members)
        case Concat(parts):
            return any(is_empty(part, open_rules) for part in parts)
        case Rule(body):
            return expr in open_rules or is_empty(body, open_rules | {expr})
    return False


@lru_cache(maxsize=100_000)
def derivative(expr: Expr, byte: int) -> Expr:
    """What may come after `byte`: the rests of the strings that begin with it."""
    match expr:
        case Byte(values):
            return EMPTY if byte in values else NOTHING
        case OneOf(members):
            return one_of(derivative(member, byte) for member in members)
        case Concat((first, *rest)):
            within_first = concat(derivative(first, byte), *rest)
            if not has_empty(first):
                return within_first
            return one_of([within_first, derivative(concat(*rest), byte)])
        case Star(item):
            return concat(derivative(item, byte), expr)
        case Rule(body):
            return derivative(body, byte)
    return NOTHING


def mask(expr: Expr, text: bytes, tokens: Sequence[bytes]) -> list[bool]:
    """For each token, whether a string of the set begins with `text` and then the token's bytes."""
    rest = reduce(derivative, text, expr)
    return [bool(token) and not is_empty(reduce(derivative, token, rest)) for token in tokens]


def is_complete(expr: Expr, text: bytes) -> bool:
    """Whether the text is a string of the grammar, so that a stop token is allowed."""
    return has_empty(reduce(derivative, text, expr))


# --- Characters in UTF-8 -----------------------------------------------------------------------
# The well-formed sequences beyond ASCII (Unicode, table 3-7): no surrogates, none overlong.
SEQUENCES = """C2-DF 80-BF, E0-E0 A0-BF 80-BF, E1-EC 80-BF 80-BF, ED-ED 80-9F 80-BF,
EE-EF 80-BF 80-BF, F0-F0 90-BF 80-BF 80-BF, F1-F3 80-BF 80-BF 80-BF, F4-F4 80-8F 80-BF 80-BF"""


def byte_range(bounds: str) -> Expr:
    """One byte between two, both included, such as `80-BF`."""
    first, last = bounds.split("-")
    return Byte(frozenset(range(int(first, 16), int(last, 16) + 1)))


BEYOND_ASCII = one_of(concat(*map(byte_range, row.split())) for row in SEQUENCES.split(","))


def ascii_of(characters: Iterable[str]) -> Expr:
    """One of some ASCII characters."""
    return Byte(frozenset(map(ord, characters)))


def all_but(characters: Iterable[str]) -> Expr:
    """One character that is not one of some ASCII characters."""
    return one_of([Byte(frozenset(range(128)) - frozenset(map(ord, characters))), BEYOND_ASCII])


# --- Regular expressions: characters . [a-z] \d \w ( ) | * + ? {m,n} ---------------------------
WORD = string.ascii_letters + string.digits + "_"
ESCAPED = {"d": string.digits, "w": WORD, "n": "\n", "t": "\t", "r": "\r"}
COUNTS = {"*": "0,", "+": "1,", "?": "0,1"}


def regex(pattern: str) -> Expr:
    """The strings that the whole of a regular expression matches."""
    left = list(reversed(pattern))

    def choice() -> Expr:
        members = [sequence()]
        while left and left[-1] == "|":
            left.pop()
            members.append(sequence())
        return one_of(members)

    def sequence() -> Expr:
        parts: list[Expr] = []
        while left and left[-1] not in "|)":
            parts.append(single(left.pop()))
            while left and left[-1] in "*+?{":
                sign = left.pop()
                least, comma, most = (COUNTS.get(sign) or "".join(iter(left.pop, "}"))).partition(
                    ","
                )
                bound = int(most) if most else None if comma else int(least)
                parts.append(repeat(parts.pop(), int(least), bound))
        return concat(*parts)

    def single(character: str) -> Expr:
        if character == "(":
            inner = choice()
            left.pop()  # The closing parenthesis.
            return inner
        if character == ".":
            return all_but("\n")
        if character == "[":
            negated = left[-1] == "^" and bool(left.pop())
            members = "".join(iter(class_item, ""))
            return all_but(members) if negated else ascii_of(members)
        return ascii_of(escaped()) if character == "\\" else literal(character.encode())

    def class_item() -> str:
        first = left.pop()
        if first in ("]", "\\"):
            return escaped() if first == "\\" else ""
        if left[-1] != "-" or left[-2] == "]":
            return first
        left.pop()
        return "".join(map(chr, range(ord(first), ord(left.pop()) + 1)))

    def escaped() -> str:
        name = left.pop()
        return ESCAPED.get(name, name)

    return choice()


# --- JSON Schema: type, properties, required, items, minItems, maxItems, anyOf, $ref, enum -
ESCAPES = r"""\\(["\\/bfnrt]|u([\da-cA-CefEF]HHH|[dD][0-7]HH|[dD][89abAB]HH\\u[dD][c-fC-F]HH))"""
PLAIN = all_but('"\\' + "".join(map(chr, range(32))))
CHARACTER = one_of([regex(ESCAPES.replace("H", r"[\da-fA-F]")), PLAIN])
SCALARS = {
    "string": concat(literal(b'"'), Star(CHARACTER), literal(b'"')),
    "integer": regex("0|-?[1-9][0-9]*"),
    "boolean": regex("true|false"),
    "null": literal(b"null"),
}


def json_schema(schema: Mapping[str, Any]) -> Expr:
    """The texts of `Grammar.from_json_schema` in one fixed layout, strict, digits spelling."""
    rules: dict[str, Rule] = {}

    def read(part: Mapping[str, Any]) -> Expr:
        if "$ref" in part:
            return rule(part["$ref"])
        if "anyOf" in part:
            return one_of(map(read, part["anyOf"]))
        if "enum" in part:  # Of strings, booleans and null: 1 may also be written as 1.0.
            return one_of(literal(json.dumps(value).encode()) for value in part["enum"])
        types = part["type"] if isinstance(part["type"], list) else [part["type"]]
        compound = {"array": array, "object": members}
        return one_of(SCALARS[t] if t in SCALARS else compound[t](part) for t in types)

    def rule(pointer: str) -> Expr:
        if pointer not in rules:
            rules[pointer] = Rule(NOTHING)  # There before its body is read, which may refer to it.
            target = reduce(lambda at, name: at[name], pointer.split("/")[1:], schema)
            rules[pointer].body = read(target)
        return rules[pointer]

    def array(part: Mapping[str, Any]) -> Expr:
        item, least, most = read(part["items"]), part.get("minItems", 0), part.get("maxItems")
        following = concat(literal(b", "), item)
        more = repeat(following, max(least - 1, 0), None if most is None else max(most - 1, 0))
        some = NOTHING if most == 0 else concat(item, more)
        return concat(literal(b"["), some if least else one_of([some, EMPTY]), literal(b"]"))

    def members(part: Mapping[str, Any]) -> Expr:
        # From the last to the first: what follows where no member was written (first) or one was.
        first = other = literal(b"}")
        for name, value in reversed(part.get("properties", {}).items()):
            member = concat(literal(json.dumps(name).encode() + b": "), read(value))
            with_first, with_other = concat(member, other), concat(literal(b", "), member, other)
            required = name in part.get("required", ())
            first = with_first if required else one_of([with_first, first])
            other = with_other if required else one_of([with_other, other])
        return concat(literal(b"{"), first)

    return read(schema)
