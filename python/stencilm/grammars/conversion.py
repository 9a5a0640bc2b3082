"""Convert grammars to other notations: plain GBNF, regular expressions, Lark, JSON Schema.

One idea: if the source is already in the wanted notation, it is returned unchanged; everything else
is written from its plain tree. A grammar that the notation cannot express is refused; no part is
silently dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

from stencilm import _core
from stencilm.errors import UnsupportedFeature
from stencilm.grammars.gbnf_repeats import is_nullable, nullable_rules, readable_repeats
from stencilm.grammars.plain import (
    ALL,
    Choice,
    Class,
    Part,
    PlainGrammar,
    Reference,
    Repeat,
    Sequence,
    Text,
    plain_grammar,
    references,
    without,
)
from stencilm.grammars.sources import JsonSchemaSource, LarkSource, RegexSource, Source
from stencilm.limits import DEFAULT_LIMITS
from stencilm.shown import shown_value

NotationName: TypeAlias = Literal["ebnf", "gbnf", "regex", "lark", "json-schema"]

NOTATIONS: tuple[str, ...] = get_args(NotationName)
_MAX_REGEX = 1 << 20


def converted(source: Source, core: _core.Grammar, notation: NotationName) -> str:
    """Return the text of a grammar in another notation.

    Args:
        source: The grammar's source.
        core: The grammar that the core built from it.
        notation: "ebnf" for the notation that every grammar prints in; "gbnf" for what llama.cpp
            and others read; "regex"; "lark"; "json-schema".

    Raises:
        UnsupportedFeature: The notation cannot express the grammar; names the obstacle.
        ValueError: There is no such notation.
    """
    if not isinstance(notation, str) or notation not in _WRITERS:
        raise ValueError(
            f"notation is {shown_value(notation):.80}, but must be one of {', '.join(NOTATIONS)}"
        )
    if notation != "ebnf" and core.to_ebnf().startswith("%begun"):
        raise UnsupportedFeature(
            f"{notation} has no words for texts that go on from what stands before a hole; print "
            "the grammar as ebnf, or convert the one that it was made from"
        )
    return _WRITERS[notation](source, core)


def _to_ebnf(_: Source, core: _core.Grammar) -> str:
    """Print a grammar as EBNF."""
    return core.to_ebnf()


def _to_gbnf(_: Source, core: _core.Grammar) -> str:
    """Write a grammar as plain GBNF, without this package's extensions."""
    plain = plain_grammar(core.to_ebnf())
    _check_left_recursion(plain)
    return _rules(readable_repeats(plain), _GBNF_NAMES, " ::=", _gbnf)


def _to_regex(source: Source, core: _core.Grammar) -> str:
    """Write a grammar as a regular expression, provided that its rules are not recursive."""
    if isinstance(source, RegexSource):
        return source.pattern
    plain = plain_grammar(core.to_ebnf())
    order = _order(plain)
    if order is None:
        raise UnsupportedFeature(
            "the grammar is recursive, and no regular expression is: bound its nesting"
        )
    written: dict[str, str] = {}
    for name in order:
        written[name] = _regex(plain.rules[name], 0, written)
        if len(written[name]) > _MAX_REGEX:
            raise UnsupportedFeature(
                f"the regular expression would have more than {_MAX_REGEX:,} characters"
            )
    return written[plain.root]


def _to_lark(source: Source, core: _core.Grammar) -> str:
    """Write a grammar as Lark text.

    Only the set of texts is preserved: Lark's own lexer may split them into other terminals.
    """
    if isinstance(source, LarkSource) and source == LarkSource.of(source.text):
        return source.text
    printed = core.to_ebnf()
    if (
        isinstance(source, JsonSchemaSource)
        and not source.documents
        and source.text.strip() != "true"
    ):
        text = f"start: %json {source.text}\n"
        # The schema does not contain its options, so check that the defaults give the same grammar.
        if LarkSource.of(text).build(DEFAULT_LIMITS).to_ebnf() == printed:
            return text
    return _rules(plain_grammar(printed), _LARK_NAMES, ":", _lark)


def _to_json_schema(source: Source, _: _core.Grammar) -> str:
    """Return the JSON Schema that a grammar was made from."""
    if not isinstance(source, JsonSchemaSource):
        raise UnsupportedFeature(
            "the grammar was not made from a JSON Schema or a type that is written as JSON, and "
            "only those are one"
        )
    return source.text


_WRITERS: dict[str, Callable[[Source, _core.Grammar], str]] = {
    "ebnf": _to_ebnf,
    "gbnf": _to_gbnf,
    "regex": _to_regex,
    "lark": _to_lark,
    "json-schema": _to_json_schema,
}


def _order(plain: PlainGrammar) -> list[str] | None:
    """Reachable rules, each after the rules that it uses; None if a rule is recursive."""
    order: list[str] = []
    state: dict[str, bool] = {}  # False while the rules that it uses are visited
    todo = [plain.root]
    while todo:
        name = todo[-1]
        if name in state:
            todo.pop()
            if not state[name]:
                state[name] = True
                order.append(name)
            continue
        state[name] = False
        for used in references(plain.rules[name]):
            if used not in state:
                todo.append(used)
            elif not state[used]:
                return None
    return order


def _rules(
    plain: PlainGrammar,
    names: tuple[str, re.Pattern[str], str],
    sign: str,
    write: Callable[[Part, int, dict[str, str]], str],
) -> str:
    """All rules, start rule first, under names that the notation allows."""
    root, forbidden, filler = names
    renamed: dict[str, str] = {plain.root: root}
    for name in plain.rules:
        if name == plain.root:
            continue
        made = re.sub(f"{filler}+", filler, forbidden.sub(filler, name.lower())).strip(filler)
        made = made if made[:1].isalpha() else f"r{filler}{made}".rstrip(filler)
        new, number = made, 1
        while new in renamed.values():
            number += 1
            new = f"{made}{filler}{number}"
        renamed[name] = new
    lines = [f"{root}{sign} {write(plain.rules[plain.root], 0, renamed)}"]
    lines += [
        f"{renamed[name]}{sign} {write(part, 0, renamed)}"
        for name, part in plain.rules.items()
        if name != plain.root
    ]
    return "\n".join(lines) + "\n"


_GBNF_NAMES = ("root", re.compile(r"[^a-z0-9]"), "-")
_LARK_NAMES = ("start", re.compile(r"[^a-z0-9]"), "_")

# Values of `place`: 0 in a choice, 1 in a sequence, 2 as the body of a repetition.


def _gbnf(part: Part, place: int, names: dict[str, str]) -> str:
    if isinstance(part, Text):
        return '"' + "".join(_gbnf_character(one, '"\\') for one in part.text) + '"'
    if isinstance(part, Class):
        return _class(part, _gbnf_character, empty="[]")
    if isinstance(part, Reference):
        return names[part.name]
    if isinstance(part, Repeat):
        return f"{_gbnf(part.body, 2, names)}{_count(part)}"
    return _joined(part, place, names, _gbnf, empty='""')


def _lark(part: Part, place: int, names: dict[str, str]) -> str:
    if isinstance(part, Text):
        return '"' + "".join(_lark_character(one) for one in part.text) + '"'
    if isinstance(part, Class):
        return f"/{_class(part, _regex_character, empty='[]').replace('/', chr(92) + '/')}/"
    if isinstance(part, Reference):
        return names[part.name]
    if isinstance(part, Repeat):
        body = _lark(part.body, 2, names)
        bounds = (part.least, part.most)
        if bounds in _SIGNS:
            return f"{body}{_SIGNS[bounds]}"
        if part.most is not None:
            bound = f"{part.least}" if part.least == part.most else f"{part.least}..{part.most}"
            counted = f"{body} ~ {bound}"
        else:
            counted = f"{body} ~ {part.least} {body}*"
        return f"({counted})" if place == 2 or part.most is None else counted
    return _joined(part, place, names, _lark, empty='""')


def _regex(part: Part, place: int, written: dict[str, str]) -> str:
    if isinstance(part, Text):
        text = "".join(_regex_character(one, _REGEX_SIGNS) for one in part.text)
        return f"(?:{text})" if place == 2 and len(part.text) != 1 else text
    if isinstance(part, Class):
        return _class(part, _regex_character, empty="[]")
    if isinstance(part, Reference):
        return f"(?:{written[part.name]})"
    if isinstance(part, Repeat):
        text = f"{_regex(part.body, 2, written)}{_count(part)}"
        return f"(?:{text})" if place == 2 else text
    if isinstance(part, Choice):
        text = "|".join(_regex(one, 0, written) for one in part.parts)
    else:
        text = "".join(_regex(one, 1, written) for one in part.parts)
    is_single = place == 0 or (place == 1 and isinstance(part, Sequence))
    return text if is_single else f"(?:{text})"


def _joined(
    part: Choice | Sequence,
    place: int,
    names: dict[str, str],
    write: Callable[[Part, int, dict[str, str]], str],
    *,
    empty: str,
) -> str:
    if not part.parts:
        return empty
    if isinstance(part, Choice):
        text = " | ".join(write(one, 0, names) for one in part.parts)
        return text if place == 0 else f"({text})"
    text = " ".join(write(one, 1, names) for one in part.parts)
    return text if place < 2 else f"({text})"


def _count(part: Repeat) -> str:
    bounds = (part.least, part.most)
    if bounds in _SIGNS:
        return _SIGNS[bounds]
    if part.most is None:
        return f"{{{part.least},}}"
    return f"{{{part.least}}}" if part.least == part.most else f"{{{part.least},{part.most}}}"


_SIGNS: dict[tuple[int, int | None], str] = {(0, None): "*", (1, None): "+", (0, 1): "?"}


def _class(part: Class, character: Callable[[str, str], str], *, empty: str) -> str:
    if not part.ranges:
        return empty
    negated = without(list(part.ranges))
    is_shorter = 0 < len(negated) < len(part.ranges)
    shown = negated if is_shorter else part.ranges
    if part.ranges == ALL:
        shown, is_shorter = ((0, 0x10FFFF),), False
    body = "".join(
        character(chr(low), _CLASS_SIGNS)
        if low == high
        else f"{character(chr(low), _CLASS_SIGNS)}-{character(chr(high), _CLASS_SIGNS)}"
        for low, high in shown
    )
    return f"[{'^' if is_shorter else ''}{body}]"


_CLASS_SIGNS = "\\]^-["
_REGEX_SIGNS = "\\.+*?()|[]{}^$#&-~/"
_LETTERS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _gbnf_character(character: str, signs: str) -> str:
    if character in _LETTERS:
        return _LETTERS[character]
    code = ord(character)
    # llama.cpp knows few escapes, so other characters are written as code points.
    if character in signs and character not in '"\\[]':
        return f"\\x{code:02X}"
    return _escaped(character, signs, f"\\U{code:08X}")


def _regex_character(character: str, signs: str) -> str:
    if character in _LETTERS:
        return _LETTERS[character]
    return _escaped(character, signs, f"\\U{ord(character):08X}")


def _lark_character(character: str) -> str:
    if character in _LETTERS:
        return _LETTERS[character]
    return _escaped(character, '"\\', f"\\U{ord(character):08X}")


def _escaped(character: str, signs: str, long: str) -> str:
    code = ord(character)
    if character in signs:
        return f"\\{character}"
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else long


def _check_left_recursion(plain: PlainGrammar) -> None:
    """Raise UnsupportedFeature for a rule that may begin with itself."""
    nullable = nullable_rules(plain)
    begins = {name: _beginnings(part, nullable) for name, part in plain.rules.items()}
    for name in plain.rules:
        seen: set[str] = set()
        todo = list(begins[name])
        while todo:
            here = todo.pop()
            if here == name:
                raise UnsupportedFeature(
                    f"the rule {name!r} may begin with itself, which GBNF's readers refuse: write "
                    "it with a repetition"
                )
            if here not in seen:
                seen.add(here)
                todo += begins[here]


def _beginnings(part: Part, nullable: set[str]) -> set[str]:
    """The rules that may come first in a part."""
    if isinstance(part, Reference):
        return {part.name}
    if isinstance(part, Repeat):
        return _beginnings(part.body, nullable)
    found: set[str] = set()
    if isinstance(part, (Sequence, Choice)):
        for one in part.parts:
            found |= _beginnings(one, nullable)
            if isinstance(part, Sequence) and not is_nullable(one, nullable):
                break
    return found
