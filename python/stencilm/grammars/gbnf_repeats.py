"""Repetitions that llama.cpp accepts: a grammar that it refuses ends some of its servers.

One idea: each refused repetition has an equivalent that is accepted. `(a? | b)*` repeats a nullable
body, which llama.cpp takes for left recursion; write `(a | b)*` instead. `(a{0,63} b){0,127}`
expands to too many rules; move the body into a rule of its own, which counts as one.

See `llama_grammar_parser::parse_sequence` and `llama_grammar_detect_left_recursion` in llama.cpp's
`src/llama-grammar.cpp`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stencilm.grammars.plain import (
    EMPTY,
    Choice,
    Class,
    Part,
    PlainGrammar,
    Reference,
    Repeat,
    Sequence,
    Text,
)

_MOST = 1999
"""The largest count, and the most rules of a repetition. Larger upper bounds become unbounded."""


def readable_repeats(plain: PlainGrammar) -> PlainGrammar:
    """Rewrite repetitions for llama.cpp; the grammar must not be left-recursive."""
    nullable = nullable_rules(plain)
    made = _Maker(plain, nullable, _rules_with_some(plain))
    for name, part in plain.rules.items():
        made.rules[name] = made.written(part)
    while made.wanted:
        name = made.wanted.pop()
        made.rules[made.some[name]] = made.written(_one_of(made.pieces(plain.rules[name])))
    return PlainGrammar(made.rules, plain.root)


def nullable_rules(plain: PlainGrammar) -> set[str]:
    """The rules that match the empty text."""
    nullable: set[str] = set()
    while True:
        before = len(nullable)
        nullable |= {name for name, part in plain.rules.items() if is_nullable(part, nullable)}
        if len(nullable) == before:
            return nullable


def is_nullable(part: Part, nullable: set[str]) -> bool:
    """Whether a part matches the empty text, given the nullable rules."""
    if isinstance(part, Reference):
        return part.name in nullable
    if isinstance(part, Repeat):
        return part.least == 0 or is_nullable(part.body, nullable)
    if isinstance(part, Sequence):
        return all(is_nullable(one, nullable) for one in part.parts)
    if isinstance(part, Choice):
        return any(is_nullable(one, nullable) for one in part.parts)
    return isinstance(part, Text) and not part.text


def _rules_with_some(plain: PlainGrammar) -> set[str]:
    """The rules that match a nonempty text."""
    found: set[str] = set()
    while True:
        before = len(found)
        found |= {name for name, part in plain.rules.items() if _has_some(part, found)}
        if len(found) == before:
            return found


def _has_some(part: Part, found: set[str]) -> bool:
    if isinstance(part, Reference):
        return part.name in found
    if isinstance(part, Repeat):
        return part.most != 0 and _has_some(part.body, found)
    if isinstance(part, (Sequence, Choice)):
        return any(_has_some(one, found) for one in part.parts)
    return isinstance(part, Class) or bool(part.text)


@dataclass(slots=True)
class _Maker:
    """Rewrites parts, and collects the rules that this adds."""

    plain: PlainGrammar
    nullable: set[str]
    with_some: set[str]
    rules: dict[str, Part] = field(default_factory=dict)
    some: dict[str, str] = field(default_factory=dict)
    """For a nullable rule, the name of the rule that holds its pieces."""
    wanted: list[str] = field(default_factory=list)
    """Rules whose pieces are still to be written."""

    def written(self, part: Part) -> Part:
        """The part with accepted repetitions."""
        if isinstance(part, Choice):
            return Choice(tuple(map(self.written, part.parts)))
        if isinstance(part, Sequence):
            return Sequence(tuple(map(self.written, part.parts)))
        if not isinstance(part, Repeat):
            return part
        least, most = part.least, part.most
        if most is None and is_nullable(part.body, self.nullable):
            pieces = self.pieces(part.body)
            if not pieces:
                return EMPTY
            return self._counted(self.written(_one_of(pieces)), 0, None)
        return self._counted(self.written(part.body), least, most)

    def pieces(self, part: Part) -> list[Part]:
        """Parts that are not nullable, such that `(pieces)*` equals `(part)*`."""
        if isinstance(part, Choice):
            return [piece for one in part.parts for piece in self.pieces(one)]
        if not is_nullable(part, self.nullable):
            return [part]
        if isinstance(part, Sequence):
            return [piece for one in part.parts for piece in self.pieces(one)]
        if isinstance(part, Repeat):
            return [] if part.most == 0 else self.pieces(part.body)
        if isinstance(part, Reference) and part.name in self.with_some:
            if part.name not in self.some:
                self.some[part.name] = self._new_name(f"{part.name}.some")
                self.wanted.append(part.name)
            return [Reference(self.some[part.name])]
        return []

    def _counted(self, body: Part, least: int, most: int | None) -> Part:
        """A repetition whose counts, and the rules that they expand to, are within bounds."""
        is_single = isinstance(body, (Text, Class, Reference))
        if not is_single and _weight(body) * _times(least, most) > _MOST:
            name = self._new_name("repeated")
            self.rules[name] = body
            body = Reference(name)
        parts: list[Part] = []
        while least > _MOST or (least == most == _MOST + 1):
            parts.append(Repeat(body, _MOST, _MOST))
            least -= _MOST
            most = None if most is None else most - _MOST
        if most == _MOST + 1:
            parts += [Repeat(body, least, _MOST), Repeat(body, 0, 1)]
        else:
            parts.append(body if least == most == 1 else Repeat(body, least, most))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _new_name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.rules or name in self.plain.rules or name in self.some.values():
            number += 1
            name = f"{wanted}.{number}"
        return name


def _one_of(pieces: list[Part]) -> Part:
    different = tuple(dict.fromkeys(pieces))
    return different[0] if len(different) == 1 else Choice(different)


def _times(least: int, most: int | None) -> int:
    """How often llama.cpp writes out the body of a repetition."""
    return max(1, least if most is None or most > _MOST + 1 else most)


def _weight(body: Part) -> int:
    """An upper bound on the rules that llama.cpp counts for a repeated body."""
    if isinstance(body, Repeat):
        return _weight(body.body) * _times(body.least, body.most)
    if isinstance(body, (Sequence, Choice)):
        return 1 + sum(map(_rules_within, body.parts))
    return 1


def _rules_within(part: Part) -> int:
    """An upper bound on the rules that llama.cpp makes of a part: of its groups and repetitions."""
    if isinstance(part, Reference):
        return 1
    if isinstance(part, Repeat):
        most = part.most
        counted = 1 if most is None or most > _MOST + 1 else most - part.least
        return _rules_within(part.body) + counted
    if isinstance(part, (Sequence, Choice)):
        return 1 + sum(map(_rules_within, part.parts))
    return 0
