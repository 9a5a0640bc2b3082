"""The orders in which a schema declares the members of its objects, and lookup of names.

One idea: a name that a model spells in another case, or with other separators, means the one
declared name that otherwise agrees with it; if there are two, it means none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from stencilm.grammars.grammar import Grammar
from stencilm.grammars.json_values import read_json
from stencilm.grammars.sources import JsonSchemaSource


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders in which a schema declares the members of its objects.

    Attributes:
        ranks: For each order, the position of each name in it.
        bare_ranks: The same for names without case and separators.
        by_name: Sorted declared names, by their form without case and separators.
        places: For each name, the orders that contain it.
        has_sets: The schema may forbid equal elements in some array.
    """

    ranks: tuple[dict[str, int], ...]
    bare_ranks: tuple[dict[str, int], ...]
    by_name: dict[str, list[str]]
    places: dict[str, frozenset[int]]
    has_sets: bool

    def meant(self, name: str, others: Collection[str]) -> list[str]:
        """The declared names that another spelling may mean.

        Two names of the same object are different, and so are the other names of the draft's
        object, `others`. A spelling that may mean either of two means none.
        """
        here = self.places.get(name, frozenset())
        same = [
            one
            for one in self.by_name.get(bare_name(name), ())
            if one not in others and here.isdisjoint(self.places[one])
        ]
        seen: Counter[int] = Counter()
        for one in same:
            seen.update(self.places[one])
        return [one for one in same if all(seen[place] == 1 for place in self.places[one])]


@lru_cache(maxsize=16)
def property_orders(grammar: Grammar) -> Orders:
    """The orders in which the schema of a grammar declares the members of its objects."""
    orders = tuple(_declared(grammar))
    places: dict[str, set[int]] = {}
    for number, order in enumerate(orders):
        for name in order:
            places.setdefault(name, set()).add(number)
    by_name: dict[str, list[str]] = {}
    for name in sorted(places):
        if bare := bare_name(name):
            by_name.setdefault(bare, []).append(name)
    return Orders(
        ranks=tuple({name: rank for rank, name in enumerate(order)} for order in orders),
        bare_ranks=tuple(
            {bare_name(name): rank for rank, name in enumerate(order)} for order in orders
        ),
        by_name=by_name,
        places={name: frozenset(numbers) for name, numbers in places.items()},
        has_sets=isinstance(grammar.source, JsonSchemaSource)
        and '"uniqueItems"' in grammar.source.text,
    )


def _declared(grammar: Grammar) -> Iterable[tuple[str, ...]]:
    source = grammar.source
    if not isinstance(source, JsonSchemaSource):
        return ()
    orders: dict[tuple[str, ...], None] = {}
    try:
        todo: list[object] = [read_json(source.text)]
    except (ValueError, RecursionError):
        return ()
    while todo:
        here = todo.pop()
        if isinstance(here, list):
            todo += here
        elif isinstance(here, dict):
            declared = here.get("properties")
            if isinstance(declared, dict):
                required = here.get("required")
                more = [n for n in required if isinstance(n, str)] if type(required) is list else []
                orders[tuple(dict.fromkeys([*declared, *more]))] = None
            todo += here.values()
    return orders


def bare_name(text: str) -> str:
    """A name without case and separators."""
    return "".join(character for character in text.casefold() if character.isalnum())
