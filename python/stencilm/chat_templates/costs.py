"""The sizes of results of filters, tests, operators and methods, before they are computed.

One idea: Python cannot be stopped within one step, so each step must be bounded before it begins.
An operation that can make much from little has a rule here; a linear one is limited by the largest
text that may still be made; an unknown one accepts only short texts.

A rule gets the budget and the arguments. It returns new arguments if it had to read them, or if
they are to be counted while they are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from sys import getsizeof
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2.ext import Extension
from jinja2.runtime import BlockReference, LoopContext, Macro
from jinja2.utils import Cycler, Joiner, Namespace

from stencilm.chat_templates.budget import GROWTH, SLOW_BYTES, Budget, Steps

Arguments = tuple[Any, ...] | None
Rule = Callable[..., Arguments]

_CODECS = ("utf-8", "utf8", "utf-16", "utf-32", "ascii", "latin-1")


def free(budget: Budget, *values: Any, **named: Any) -> Arguments:
    """Cost of operations that neither allocate anything nor look into their values."""
    budget.step()
    return None


def linear(budget: Budget, *values: Any, **named: Any) -> Arguments:
    """Cost of operations that make a text from their values."""
    budget.expect(GROWTH * budget.weigh(*values, *named.values()))
    return None


def slow(budget: Budget, *values: Any, **named: Any) -> Arguments:
    """Cost of operations that are not linear, or not known to be."""
    every = (*values, *named.values())
    budget.slow(*every)
    if any(isinstance(value, int) and abs(value) > SLOW_BYTES for value in every):
        raise budget.refuse(f"hands a number above {SLOW_BYTES} to what is slow")
    return None


def _lazy(budget: Budget, value: Any, *more: Any, **named: Any) -> Arguments:
    """Cost of operations that read values one by one, and at most keep or compare them."""
    if hasattr(value, "__len__"):
        budget.make(8 * len(value))
        return None
    return (budget.counted(value),)


def _looped(budget: Budget, value: Any, *more: Any, **named: Any) -> Arguments:
    return (Steps(budget, value),)


def _hashed(budget: Budget, value: Any, *more: Any, **named: Any) -> Arguments:
    """Cost of hashing values one by one: each is a step, because equal hashes make a step long."""
    budget.weigh(value)
    return (budget.counted(value),)


def _compared(budget: Budget, value: Any, *more: Any, **named: Any) -> Arguments:
    """Cost of operations that read all values and compare them."""
    value = budget.whole(value)
    linear(budget, value, *more, **named)
    return (value,)


def _summed(budget: Budget, value: Any, *more: Any, **named: Any) -> Arguments:
    budget.weigh(value, *more, *named.values())
    return (budget.counted(value),)


def _joined(budget: Budget, value: Any, d: Any = "", attribute: Any = None) -> Arguments:
    value = budget.whole(value)
    between = budget.weigh(d) * (len(value) if hasattr(value, "__len__") else 1)
    budget.expect(GROWTH * budget.weigh(value) + between)
    return (value,)


def _replaced(budget: Budget, s: Any, old: Any = "", new: Any = "", count: Any = None) -> Arguments:
    linear(budget, s, old, new)
    # A value that is not a text is written first; it has at most as many occurrences as characters.
    are_texts = isinstance(s, str) and isinstance(old, str)
    found = s.count(old) if are_texts else budget.weigh(s)
    budget.expect(found * budget.weigh(new) + budget.weigh(s))
    return None


def _padded(budget: Budget, value: Any, width: Any = 80, *more: Any) -> Arguments:
    linear(budget, value, *more)
    budget.expect(4 * _size(width))
    return None


def _indented(budget: Budget, s: Any, width: Any = 4, *more: Any, **named: Any) -> Arguments:
    linear(budget, s)
    lines = s.count("\n") + 1 if isinstance(s, str) else budget.weigh(s)
    budget.expect(4 * lines * (_size(width) or budget.weigh(width)))
    return None


def _batched(budget: Budget, value: Any, count: Any, fill_with: Any = None) -> Arguments:
    budget.expect(8 * _size(count))
    return _lazy(budget, value)


def _rounded(budget: Budget, value: Any, precision: Any = 0, method: Any = "common") -> Arguments:
    linear(budget, value)
    return slow(budget, precision)


def _trimmed(budget: Budget, value: Any, chars: Any = None) -> Arguments:
    linear(budget, value)
    if chars is not None:  # each character is looked up among them
        budget.slow(chars)
    return None


def _formatted(budget: Budget, value: Any, *args: Any, **kwargs: Any) -> Arguments:
    percent(budget, value if isinstance(value, str) else str(value), kwargs or args)
    return None


def _json(
    budget: Budget,
    x: Any,
    ensure_ascii: Any = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: Any = False,
) -> Arguments:
    extent = budget.extent(x)
    between = budget.weigh(separators)
    if indent is not None:
        between += 4 * (extent.depth + 1) * (_size(indent) or budget.weigh(indent))
    budget.expect(GROWTH * extent.bytes + extent.parts * between)
    return None


def _lorem(
    budget: Budget, n: Any = 5, html: Any = True, min: Any = 20, max: Any = 100
) -> Arguments:
    slow(budget, _size(n) * _size(max))
    return None


def _size(number: Any) -> int:
    """A number of characters or elements; 0 if it is not an integer, for which the call fails."""
    return abs(number) if isinstance(number, int) else 0


def percent(budget: Budget, layout: str | bytes, values: Any) -> None:
    """Cost of `layout % values`: widths, and values that are written several times."""
    text = layout if isinstance(layout, str) else layout.decode("latin-1")
    width = sum(int(digits) for digits in re.findall(r"[0-9]{1,19}", text))
    if "*" in text:
        numbers = values if isinstance(values, tuple) else (values,)
        width += sum(_size(value) for value in numbers)
    size = budget.weigh(values)
    if isinstance(values, dict):
        size *= max(1, text.count("%("))
    budget.number(*(values if isinstance(values, tuple) else ()), values)
    budget.expect(4 * width + GROWTH * (size + budget.weigh(layout)))


def field(budget: Budget, value: Any, layout: str) -> None:
    """Cost of `format(value, layout)`."""
    budget.number(value)
    width = sum(int(digits) for digits in re.findall(r"[0-9]{1,19}", layout))
    budget.make(4 * width + GROWTH * budget.weigh(value))


def operator(budget: Budget, sign: str, left: Any, right: Any) -> None:
    """Cost of an operator, beyond the size of its operands."""
    if left.__class__ is str and right.__class__ is str and sign == "+":
        budget.expect(getsizeof(left) + getsizeof(right))
        return
    if sign == "%" and isinstance(left, (str, bytes)):
        percent(budget, left, right)
        return
    budget.number(left, right)
    if sign == "*":
        for values, count in ((left, right), (right, left)):
            if isinstance(values, (str, bytes, list, tuple)) and isinstance(count, int):
                width = 4 if isinstance(values, str) else 8
                budget.expect(width * len(values) * max(0, count))
    elif sign == "**" and isinstance(left, int) and isinstance(right, int):
        budget.number(1 << min(abs(left).bit_length() * max(0, right), 1 << 20))
    elif sign == "-" and not isinstance(left, (int, float)):
        budget.weigh(left, right)  # the keys of a dict


FILTERS: dict[str, Rule] = {
    **dict.fromkeys(
        ["count", "length", "first", "last", "default", "d", "random", "attr", "items"], free
    ),
    **dict.fromkeys(["select", "selectattr", "reject", "rejectattr", "map"], _lazy),
    **dict.fromkeys(["list", "reverse"], _lazy),
    **dict.fromkeys(["sort", "groupby", "min", "max", "dictsort"], _compared),
    **dict.fromkeys(["abs", "capitalize", "e", "escape", "filesizeformat", "float"], linear),
    **dict.fromkeys(["forceescape", "int", "lower", "safe", "string", "title"], linear),
    **dict.fromkeys(["truncate", "upper", "urlencode"], linear),
    **dict.fromkeys(["batch", "slice"], _batched),
    "center": _padded,
    "format": _formatted,
    "indent": _indented,
    "join": _joined,
    "replace": _replaced,
    "round": _rounded,
    "sum": _summed,
    "tojson": _json,
    "trim": _trimmed,
    "unique": _hashed,
}

FREE_TESTS = frozenset(
    {
        *["defined", "undefined", "none", "boolean", "false", "true", "integer", "float"],
        *["string", "mapping", "number", "sequence", "iterable", "callable", "sameas"],
        *["escaped", "filter", "test"],
    }
)


def _expanded(budget: Budget, text: str, tabsize: Any = 8) -> Arguments:
    budget.expect(4 * (len(text) + text.count("\t") * _size(tabsize)))
    return None


def _joined_by(budget: Budget, between: str, values: Any) -> Arguments:
    read = _joined(budget, values, between)
    return None if read is None else (between, *read)


def _split(budget: Budget, text: Any, sep: Any = None, maxsplit: Any = -1) -> Arguments:
    parts = text.count(sep) + 1 if type(sep) is type(text) and sep else len(text) // 2 + 1
    if isinstance(maxsplit, int) and maxsplit >= 0:
        parts = min(parts, maxsplit + 1)
    budget.make(66 * parts)
    linear(budget, text)
    return None


def _from_the_end(budget: Budget, text: str, part: Any = None, *more: Any) -> Arguments:
    linear(budget, text)
    # Python starts a new search at every position.
    if isinstance(part, str) and len(part) > 64 and len(part) * len(text) > 1 << 28:
        raise budget.refuse("looks for a long text from the end of a long one")
    return None


def _split_from_the_end(budget: Budget, text: str, sep: Any = None, *more: Any) -> Arguments:
    _from_the_end(budget, text, sep)
    return _split(budget, text, sep)


def _translated(budget: Budget, text: str, table: Any) -> Arguments:
    linear(budget, text, table)
    if isinstance(table, dict):
        longest = max((len(to) for to in table.values() if isinstance(to, str)), default=1)
        budget.expect(4 * len(text) * longest)
    return None


def _coded(budget: Budget, text: Any, encoding: Any = "utf-8", *more: Any) -> Arguments:
    is_known = isinstance(encoding, str) and encoding.lower() in _CODECS
    return (linear if is_known else slow)(budget, text, *more)


def _of_a_view(budget: Budget, owner: Any, *values: Any, **named: Any) -> Arguments:
    budget.weigh(*values, *named.values())
    return None


def _keys_of(budget: Budget, owner: Any, keys: Any, *more: Any) -> Arguments:
    return (owner, *(_hashed(budget, keys) or ()))


def _copied(budget: Budget, owner: Any) -> Arguments:
    budget.make(100 * len(owner))
    return None


_TEXT_METHODS: dict[str, Rule] = {
    **dict.fromkeys(["center", "ljust", "rjust", "zfill"], _padded),
    **dict.fromkeys(["strip", "lstrip", "rstrip"], _trimmed),
    **dict.fromkeys(["split", "splitlines"], _split),
    **dict.fromkeys(["rfind", "rindex", "rpartition"], _from_the_end),
    **dict.fromkeys(["capitalize", "casefold", "count", "endswith", "find", "index"], linear),
    **dict.fromkeys(["isalnum", "isalpha", "isascii", "isdecimal", "isdigit"], linear),
    **dict.fromkeys(["isidentifier", "islower", "isnumeric", "isprintable", "isspace"], linear),
    **dict.fromkeys(["istitle", "isupper", "lower", "maketrans", "partition"], linear),
    **dict.fromkeys(["removeprefix", "removesuffix", "startswith", "swapcase"], linear),
    **dict.fromkeys(["title", "upper"], linear),
    "decode": _coded,
    "encode": _coded,
    "expandtabs": _expanded,
    "join": _joined_by,
    "replace": _replaced,
    "rsplit": _split_from_the_end,
    "translate": _translated,
}
_DICT_METHODS: dict[str, Rule] = {
    "copy": _copied,
    "fromkeys": _keys_of,
    "get": _of_a_view,
    "items": free,
    "keys": free,
    "values": free,
}
_LIST_METHODS: dict[str, Rule] = {"copy": _copied, "count": linear, "index": linear}
UNMADE = frozenset(
    ["get", "items", "keys", "values", "first", "last", "default", "d", "random", "attr", "next"]
)
"""Functions that return an existing value."""

_BY_STEPS = (Macro, BlockReference, Joiner)


def call_rule(called: Any) -> tuple[Rule, bool]:
    """The rule of a callable, and whether the rule also gets the object that it is bound to."""
    if isinstance(called, _BY_STEPS):  # the template's own steps are counted
        return free, False
    if isinstance(called, LoopContext):
        return _looped, False
    if isinstance(called, type) and issubclass(called, (Namespace, Cycler, Joiner)):
        return (as_dict if issubclass(called, Namespace) else free), False
    if isinstance(called, (BuiltinMethodType, MethodType)):
        owner, name = called.__self__, called.__name__
        if owner is dict:
            return _DICT_METHODS.get(name, slow), True
        for kinds, rules in _METHODS:
            if isinstance(owner, kinds):
                return rules.get(name, slow), True
        if isinstance(owner, LoopContext):
            return (free if name == "cycle" else linear), False
        if isinstance(owner, (Cycler, Joiner, Extension)):
            return free, False
    return slow, False


_METHODS: list[tuple[Any, dict[str, Rule]]] = [
    ((str, bytes), _TEXT_METHODS),
    (dict, _DICT_METHODS),
    ((list, tuple), _LIST_METHODS),
]


def as_dict(budget: Budget, *values: Any, **named: Any) -> Arguments:
    """Cost of a dict made of dicts and pairs."""
    made: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            budget.make(100 * len(value))
            made.append(value)
        else:
            made += _hashed(budget, value) or ()
    return tuple(made)


GLOBALS: dict[str, Rule] = {
    "dict": as_dict,
    "lipsum": _lorem,
    "raise_exception": free,
    "range": free,
}
