"""What an independent validator says of a text, and of the beginning of one.

One idea: the validator of the package `jsonschema` reads values of which parts are still open, and
every keyword that more text could repair is silent about these. The rest is reported only if no
completion is valid. By induction over the schema:

* A keyword about single members or elements (`properties`, `items`, ...), and one that joins
  schemas by "and" (`allOf`, `$ref`, `dependentSchemas`), is violated for good if a part is.
* `anyOf` and `oneOf` are violated for good if all of their branches are.
* Maximum counts (`maxItems`, `maxLength`, `maxProperties`, `maxContains`), repeated elements under
  `uniqueItems`, and keys that nothing allows stay violated, since nothing that is written goes
  away.
* `not`, `if`, `required`, minimum counts, `pattern`, `unevaluatedProperties` and the like are
  checked only for closed values.

The validator is not asked what it cannot know: patterns that Python reads differently from
ECMA-262, references that lead out of the schema, schemas that their own draft refuses. `format` is
never asserted, since every draft lets it be an annotation. A schema without `$schema` is judged by
drafts 7 and 2020-12, each if its meta-schema accepts the schema (by draft 4 if neither does), and a
verdict is one in which they agree.
"""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal, NamedTuple

from stencilm.audit.json_prefix import (
    NotJson,
    Open,
    OpenArray,
    OpenNumber,
    OpenObject,
    OpenString,
    Unclear,
    Unwritten,
    exact_number,
    parse_json,
)
from stencilm.audit.schemas import with_parts

DRAFTS = {
    "draft-04": "Draft4Validator",
    "draft-06": "Draft6Validator",
    "draft-07": "Draft7Validator",
    "draft/2019-09": "Draft201909Validator",
    "draft/2020-12": "Draft202012Validator",
}
_UNNAMED = ("draft/2020-12", "draft-07")
_NAMED = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/20(?:19-09|20-12))/schema#?")
_LATEST = re.compile(r"https?://json-schema\.org/schema#?")
_READ_OTHERWISE = re.compile(
    r"\(\?[^:=!<]|\(\?<[^=!]|\[\^?\]|\\[AZaNk]|[*+?}]\+|\{,|\[\[|\\[xuU](?![0-9A-Fa-f])"
)
"""Constructs that ECMA-262 and Python both accept, with different meanings."""
_NOT_OF_ASCII = re.compile(r"\\[wdsbWDSB]|\[\^")
_PRINTABLE = re.compile(r"[ -~]*")


class Unjudged(Exception):
    """The validator cannot say whether a text is valid."""


class Verdict(NamedTuple):
    """The validator's verdict on a text."""

    status: Literal["valid", "invalid", "unjudged"]
    why: str = ""


class Judge:
    """The validators of a schema.

    Args:
        schema: The schema as JSON.
        seconds: The processor time for all verdicts together; after that nothing is judged.

    Raises:
        Unjudged: No validator knows what the schema means.
    """

    def __init__(self, schema: str, seconds: float = 10.0) -> None:
        try:
            self.schema = json.loads(schema, parse_float=exact_number)
        except (ValueError, RecursionError) as error:
            raise Unjudged(f"the schema cannot be read: {error}") from None
        self._left = seconds
        self._validators: list[tuple[Any, bool]] = []
        with self._guarded():
            self._validators = _validators(self.schema)

    def verdict(self, text: bytes) -> Verdict:
        """Whether a complete text is valid."""
        try:
            with self._guarded():
                return self._verdict(text)
        except NotJson as error:
            return Verdict("invalid", f"not JSON: {error}")
        except Unjudged as error:
            return Verdict("unjudged", str(error))

    def _verdict(self, text: bytes) -> Verdict:
        found = [
            next(validator.iter_errors(parse_json(text, whole=True, integral=integral)), None)
            for validator, integral in self._validators
        ]
        if all(error is None for error in found):
            return Verdict("valid")
        if any(error is None for error in found):
            return Verdict("unjudged", "drafts differ, and the schema names none")
        return Verdict("invalid", _sentence(found[0]))

    def violation(self, prefix: bytes) -> str | None:
        """Why no text with this beginning is valid; None if that is not proved.

        Raises:
            NotJson: No JSON text begins like this.
            Unjudged: The validator cannot say.
        """
        with self._guarded():
            found = None
            for validator, integral in self._validators:
                value = parse_json(prefix, integral=integral)
                found = next(validator.iter_errors(value), None)
                if found is None:
                    return None
            return None if found is None else _sentence(found)

    def key_orders(self, value: Any) -> dict[int, list[list[str]]]:
        """The keys of each object in a value, by the object's `id`, in the order of its schemas."""
        import jsonschema

        orders: dict[int, list[list[str]]] = {}

        def record(validator: Any, properties: Any, instance: Any, schema: Any) -> Iterator[Any]:
            if isinstance(instance, dict):
                orders.setdefault(id(instance), []).append(list(properties))
            yield from original(validator, properties, instance, schema)

        with self._guarded():
            validator, _ = self._validators[0]
            original = validator.VALIDATORS["properties"]
            recording = jsonschema.validators.extend(type(validator), {"properties": record})
            for _ in recording(validator.schema, registry=_registry()).iter_errors(value):
                pass
        return orders

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Turn the validator's exceptions into `Unjudged`; interrupt it when the time is over."""
        import referencing.exceptions

        if self._left <= 0:
            raise Unjudged("the validator has used up its time")
        begun = time.process_time()
        try:
            with _alarm(self._left):
                yield
        except NotJson:
            raise
        except Unclear as error:
            raise Unjudged(str(error)) from None
        except RecursionError:
            raise Unjudged("the validator goes too deep") from None
        except re.error as error:
            raise Unjudged(f"Python does not read a pattern: {error}") from None
        except referencing.exceptions.Unresolvable as error:
            raise Unjudged(f"a reference leads out of the schema: {error.ref}") from None
        except _TooLong:
            self._left = 0.0
            raise Unjudged("the validator takes too long") from None
        except Unjudged:
            raise
        except Exception as error:
            # The validator assumes a valid schema, but this one may be anything.
            raise Unjudged(f"the validator fails: {type(error).__name__}: {error}") from None
        finally:
            self._left -= time.process_time() - begun


class _TooLong(Exception):
    pass


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise within a long match; does nothing without signals, or outside the main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "setitimer") or not is_main:
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _sentence(error: Any) -> str:
    """The place and the keyword: `$.a[0]: maxItems 3`."""
    if error.validator is None:
        return f"{error.json_path}: the schema false"
    value = json.dumps(error.validator_value, default=float)
    shown = value if len(value) <= 80 else value[:77] + "..."
    return f"{error.json_path}: {error.validator} {shown}"


def _validators(schema: Any) -> list[tuple[Any, bool]]:
    """The validators of the drafts in question, each with whether 1.0 is an integer in it."""
    named = _named_draft(schema)
    drafts = _UNNAMED if named is None else (named,)
    bare = _bare(schema, named)
    taken = [draft for draft in drafts if _takes(draft, bare)]
    if not taken and named is None and _takes("draft-04", bare):
        taken = ["draft-04"]
    if not taken:
        raise Unjudged(f"{' and '.join(drafts)}: the schema is none of this draft")
    return [(_monotone(draft)(bare, registry=_registry()), draft != "draft-04") for draft in taken]


def _named_draft(schema: Any) -> str | None:
    named = schema.get("$schema") if isinstance(schema, dict) else None
    if not isinstance(named, str) or _LATEST.fullmatch(named):
        return None
    found = _NAMED.fullmatch(named)
    if found is None:
        raise Unjudged(f"the schema names the draft {named!r}")
    return found[1]


def _bare(schema: Any, draft: str | None) -> Any:
    """The schema without `$schema`, because the package would choose its validator by it.

    Raises Unjudged if a part names another draft or refers to a meta-schema: the package would read
    that part by the other draft, too.
    """
    if isinstance(schema, dict):
        if isinstance(schema.get("$schema"), str) and _named_draft(schema) != draft:
            raise Unjudged("a part of the schema names a draft of its own")
        if "json-schema.org" in str(schema.get("$ref", "")):
            raise Unjudged("the schema refers to a meta-schema")
        if isinstance(schema.get("$schema"), str):
            schema = {key: value for key, value in schema.items() if key != "$schema"}
    return with_parts(schema, lambda part: _bare(part, draft))


def _takes(draft: str, schema: Any) -> bool:
    import jsonschema

    try:
        # Without formats, because the one of patterns checks Python's syntax here.
        getattr(jsonschema, DRAFTS[draft]).check_schema(schema, format_checker=None)
    except jsonschema.SchemaError:
        return False
    return True


def _registry() -> Any:
    """Only the meta-schemas, so that nothing is ever fetched."""
    import jsonschema_specifications

    return jsonschema_specifications.REGISTRY


@cache
def _monotone(draft: str) -> Any:
    """The validator of a draft that reports only errors that no further text can repair."""
    import jsonschema

    plain = getattr(jsonschema, DRAFTS[draft])
    keywords = {}
    for name, keyword in plain.VALIDATORS.items():
        if name in _ASKED_OF_CLOSED:
            keywords[name] = _unless_open(keyword)
    ask = plain.VALIDATORS
    keywords |= {
        "type": _type(ask["type"]),
        "enum": _enum(ask["enum"]),
        "uniqueItems": _of_closed_elements(ask["uniqueItems"]),
        "maxProperties": _max_properties(ask["maxProperties"]),
        "oneOf": _one_of(ask["oneOf"], ask["anyOf"]),
        "pattern": _pattern(ask["pattern"]),
        "patternProperties": _of_keys(ask["patternProperties"]),
        "additionalProperties": _of_keys(ask["additionalProperties"]),
    }
    if "const" in ask:
        keywords["const"] = _const(ask["const"])
    if "contains" in ask:
        keywords["contains"] = _contains(ask["contains"])
    if "dependencies" in ask:
        keywords["dependencies"] = _dependencies(ask["dependencies"])
    return jsonschema.validators.extend(plain, keywords)


_ASKED_OF_CLOSED = frozenset(
    "required minProperties minItems minLength format not if dependentRequired unevaluatedItems "
    "unevaluatedProperties".split()
)
_Keyword = Callable[[Any, Any, Any, Any], Any]


def _unless_open(keyword: _Keyword) -> _Keyword:
    def ask(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        return () if isinstance(instance, Open) else keyword(validator, value, instance, schema)

    return ask


def _type(keyword: _Keyword) -> _Keyword:
    def ask(validator: Any, types: Any, instance: Any, schema: Any) -> Any:
        if isinstance(instance, OpenNumber) and not {"number", "integer"} & set(_listed(types)):
            from jsonschema import ValidationError

            return [ValidationError(f"a number is not of type {types!r}")]
        return (
            () if isinstance(instance, Unwritten) else keyword(validator, types, instance, schema)
        )

    return ask


def _listed(types: Any) -> Any:
    return [types] if isinstance(types, str) else types


def _may_become(part: Any, value: Any) -> bool:
    """Whether an open value may still become this value.

    For a closed one, whether they are equal.
    """
    if isinstance(part, OpenNumber):
        return not isinstance(value, bool | str | list | dict) and value is not None
    if isinstance(part, Unwritten):
        return True
    if isinstance(part, OpenString):
        return isinstance(value, str) and value.startswith(part)
    if isinstance(part, OpenArray):
        return (
            isinstance(value, list)
            and len(part) <= len(value)
            and all(map(_may_become, part, value))
        )
    if isinstance(part, OpenObject):
        return isinstance(value, dict) and all(
            key in value and _may_become(member, value[key]) for key, member in part.items()
        )
    from jsonschema import Draft202012Validator

    return bool(Draft202012Validator({"const": value}).is_valid(part))


def _enum(keyword: _Keyword) -> _Keyword:
    def ask(validator: Any, values: Any, instance: Any, schema: Any) -> Any:
        if isinstance(instance, Open) and any(_may_become(instance, value) for value in values):
            return ()
        return keyword(validator, values, instance, schema)

    return ask


def _const(keyword: _Keyword) -> _Keyword:
    def ask(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        if isinstance(instance, Open) and _may_become(instance, value):
            return ()
        return keyword(validator, value, instance, schema)

    return ask


def _closed(elements: list[Any]) -> list[Any]:
    return [element for element in elements if not isinstance(element, Open)]


def _of_closed_elements(keyword: _Keyword) -> _Keyword:
    def ask(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        elements = _closed(instance) if isinstance(instance, OpenArray) else instance
        return keyword(validator, value, elements, schema)

    return ask


def _contains(keyword: _Keyword) -> _Keyword:
    def ask(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        if not isinstance(instance, OpenArray):
            return keyword(validator, value, instance, schema)
        errors = keyword(validator, value, _closed(instance), schema) or ()
        return [error for error in errors if error.validator == "maxContains"]

    return ask


def _max_properties(keyword: _Keyword) -> _Keyword:
    def ask(validator: Any, most: Any, instance: Any, schema: Any) -> Any:
        if isinstance(instance, OpenObject) and instance.is_within_key:
            return keyword(validator, most - 1, instance, schema)
        return keyword(validator, most, instance, schema)

    return ask


def _one_of(keyword: _Keyword, any_of: _Keyword) -> _Keyword:
    def ask(validator: Any, schemas: Any, instance: Any, schema: Any) -> Any:
        chosen = any_of if isinstance(instance, Open) else keyword
        return chosen(validator, schemas, instance, schema)

    return ask


def _dependencies(keyword: _Keyword) -> _Keyword:
    def ask(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        if isinstance(instance, Open):
            value = {key: one for key, one in value.items() if not isinstance(one, list)}
        return keyword(validator, value, instance, schema)

    return ask


def _pattern(keyword: _Keyword) -> _Keyword:
    def ask(validator: Any, pattern: Any, instance: Any, schema: Any) -> Any:
        if isinstance(instance, Open) or not isinstance(instance, str):
            return ()
        _check_pattern(pattern, instance)
        return keyword(validator, pattern, instance, schema)

    return ask


def _of_keys(keyword: _Keyword) -> _Keyword:
    """A keyword that matches keys against patterns."""

    def ask(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        if isinstance(instance, dict):
            for pattern in schema.get("patternProperties", ()):
                for key in instance:
                    _check_pattern(pattern, key)
        return keyword(validator, value, instance, schema)

    return ask


def _check_pattern(pattern: str, text: str) -> None:
    """Raise Unjudged if Python and ECMA-262 may match this pattern differently."""
    if _READ_OTHERWISE.search(pattern):
        raise Unjudged(f"Python reads the pattern {pattern!r} in a way of its own")
    if _PRINTABLE.fullmatch(text):
        return
    is_plain = all(" " <= c <= "\uffff" and c not in "\x7f\u2028\u2029" for c in text)
    if not is_plain or _NOT_OF_ASCII.search(pattern):
        raise Unjudged(f"readers differ whether {pattern!r} matches {text[:40]!r}")
