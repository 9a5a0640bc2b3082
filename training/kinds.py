"""Kinds of records - person, book, order - and the schema of a record.

A kind is an ordered tuple of keys; what a key holds is decided in `values`, except for its name.
"""

import random
from dataclasses import dataclass

from training import words
from training.values import (
    ENUMS,
    FIELDS,
    Json,
    Maker,
    company,
    first_name,
    one_of,
    person_name,
    product,
    title,
)


@dataclass(frozen=True)
class Kind:
    """A kind of record: its name in English, the keys in their usual order, and what its name holds."""

    name: str
    keys: tuple[str, ...]
    names: Maker = person_name


def _kind(name: str, keys: str, names: Maker = person_name) -> Kind:
    return Kind(name=name, keys=tuple(keys.split()), names=names)


KINDS: tuple[Kind, ...] = (
    _kind("person", "name age city job email married hobbies address pet height languages"),
    _kind("book", "title author year pages genre rating in_stock tags language"),
    _kind("movie", "title director year genre minutes rating language"),
    _kind("song", "title artist duration genre year album likes"),
    _kind("city", "name country population area capital weather", one_of(words.CITIES)),
    _kind("country", "name population area languages currency", one_of(words.COUNTRIES)),
    _kind("product", "id name price color in_stock discount tags material size", product),
    _kind("order", "id customer items total paid status date payment"),
    _kind("recipe", "title ingredients minutes servings vegetarian rating"),
    _kind("pet", "name species age color weight owner wild", first_name),
    _kind("animal", "species legs weight color wild food", one_of(words.ANIMALS)),
    _kind("car", "brand color year doors electric price speed owner"),
    _kind("event", "title date start end location guests online"),
    _kind("user", "id username email role verified followers created settings"),
    _kind("address", "street city country code"),
    _kind("company", "name founded employees city country remote", company),
    _kind("employee", "id name department salary manager skills remote"),
    _kind("student", "name age subject grades teacher level"),
    _kind("course", "title teacher credits level day time online"),
    _kind("weather report", "city date temperature humidity wind rain weather"),
    _kind("flight", "flight from to date time seat price"),
    _kind("hotel", "name city stars rooms pool price", title),
    _kind("house", "address rooms garden price color owner"),
    _kind("game", "title players minutes genre year rating"),
    _kind("task", "id title done due priority tags parent"),
    _kind("message", "id sender text date read"),
    _kind("sensor", "id unit values enabled location", one_of(words.GREEK)),
    _kind("restaurant", "name cuisine city open menu rating", title),
    _kind("team", "name sport members wins losses city", company),
    _kind("plant", "name color height season wild", one_of(words.FRUITS)),
    _kind("bank account", "id owner balance currency active"),
    _kind("blog post", "title author date text comments likes tags"),
    _kind("server", "host port debug timeout enabled version"),
    _kind("point", "x y color shape"),
    _kind("review", "product rating text sentiment"),
)  # fmt: skip


def article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeio" else f"a {noun}"


def some_keys(rng: random.Random, kind: Kind) -> tuple[str, ...]:
    """The first keys of a kind, now and then with one left out: the usual order is easy to learn."""
    keys = list(kind.keys[: rng.randint(min(3, len(kind.keys)), len(kind.keys))])
    if len(keys) > 3 and rng.random() < 0.3:
        del keys[rng.randrange(1, len(keys))]
    return tuple(keys)


def fill(rng: random.Random, keys: tuple[str, ...], kind: Kind | None = None) -> dict[str, Json]:
    """An object with these keys."""
    return {
        key: (kind.names if kind is not None and key == "name" else FIELDS[key])(rng)
        for key in keys
    }


def schema_of(value: Json, key: str | None = None) -> dict[str, Json]:
    """A small JSON Schema that the value fits."""
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "integer"}
    if isinstance(value, float):
        return {"type": "number"}
    if isinstance(value, str):
        return {"enum": list(ENUMS[key])} if key in ENUMS else {"type": "string"}
    if isinstance(value, list):
        return {"type": "array", "items": schema_of(value[0])}
    if isinstance(value, dict):
        properties: Json = {name: schema_of(member, name) for name, member in value.items()}
        return {"type": "object", "properties": properties}
    return {"type": "null"}
