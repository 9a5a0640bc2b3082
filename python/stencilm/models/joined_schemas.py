"""Combine the schemas of tools and of an answer into one schema.

One idea: each schema refers to its own parts from its own root. Within the whole, these parts
become definitions with unique names, and the references are rewritten. A schema whose references
depend on its location becomes a separate document within the whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

_DEFINITIONS = ("$defs", "definitions")
# Keywords that map arbitrary names to schemas, and keywords whose values are data.
NAMED_SCHEMAS = frozenset(
    {*_DEFINITIONS, "properties", "patternProperties", "dependentSchemas", "dependencies"}
)
DATA = frozenset({"const", "enum", "default", "examples", "example"})
_ANCHORS = ("$anchor", "$dynamicAnchor")
_OLD_ANCHORS = ("$id", "id")
# In these drafts, keywords beside a reference are ignored.
_OLD_DRAFT = re.compile(r"draft-0[3-7]")


class JoinedSchemas:
    """Collects schemas into one; `definitions` are those of all of them."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self.anchors: set[str] = set()

    def taken(self, schema: Any, prefix: str) -> Any:
        """A schema for its place in the whole; its definitions get names with a prefix."""
        if not isinstance(schema, Mapping):
            return schema
        if _depends_on_its_place(schema):
            return {"$id": f"urn:stencilm:{prefix}{len(self.definitions)}", **schema}
        return _Move(self, schema, prefix).taken()

    def new_name(self, wanted: str) -> str:
        """A name for a definition that is not in use."""
        name = _unused(wanted, self.definitions)
        self.definitions[name] = True
        return name

    def new_anchor(self, wanted: str) -> str:
        """A name for an anchor that is not in use."""
        name = _unused(wanted, self.anchors)
        self.anchors.add(name)
        return name


def _depends_on_its_place(schema: Mapping[str, Any]) -> bool:
    """Whether references depend on the schema's own address, or on the path that leads to them."""
    own = schema.get("$id")
    todo: list[Any] = [schema]
    while todo:
        here = todo.pop()
        if isinstance(here, list):
            todo += here
        elif isinstance(here, Mapping):
            if isinstance(here.get("$dynamicRef"), str):
                return True
            uri = str(here.get("$ref", "")).partition("#")[0]
            if isinstance(own, str) and uri and uri != own.partition("#")[0]:
                return True
            todo += here.values()
    return False


def _unused(wanted: str, known: Any) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", wanted)
    name, number = plain, 1
    while name in known:
        number += 1
        name = f"{plain}_{number}"
    return name


class _Move:
    """Moves one schema into the whole."""

    def __init__(self, whole: JoinedSchemas, schema: Mapping[str, Any], prefix: str) -> None:
        self._whole, self._prefix = whole, prefix
        own = {key: schema[key] for key in _DEFINITIONS if isinstance(schema.get(key), Mapping)}
        self._own = own
        self._names = {
            (key, name): whole.new_name(f"{prefix}{name}")
            for key, parts in own.items()
            for name in parts
        }
        self._id = schema.get("$id") if isinstance(schema.get("$id"), str) else None
        self._is_old = bool(_OLD_DRAFT.search(str(schema.get("$schema", ""))))
        left_out = {*own, "$schema", "$id"}
        self._body = {key: part for key, part in schema.items() if key not in left_out}
        self._root: str | None = None
        self._anchors: dict[str, str] = {}
        self._find_anchors([self._body, *own.values()])

    def taken(self) -> Any:
        """The schema without its definitions, which are moved to those of the whole."""
        for key, parts in self._own.items():
            for name, part in parts.items():
                self._whole.definitions[self._names[key, name]] = self._moved(part)
        return self._moved(self._body)

    def _find_anchors(self, todo: list[Any]) -> None:
        while todo:
            here = todo.pop()
            if isinstance(here, list):
                todo += here
            elif isinstance(here, Mapping) and not _is_document(here):
                for name in filter(None, map(_anchor, here.items())):
                    if name not in self._anchors:
                        self._anchors[name] = self._whole.new_anchor(f"{self._prefix}{name}")
                for key, part in here.items():
                    todo += part.values() if _is_named(key, part) else [part]

    def _moved(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._moved(part) for part in schema]
        # References of an embedded document refer to its own parts.
        if not isinstance(schema, Mapping) or _is_document(schema):
            return schema
        if self._is_old and isinstance(schema.get("$ref"), str):
            return {"$ref": self._reference(schema["$ref"])}
        return dict(self._member(key, part) for key, part in schema.items())

    def _member(self, key: str, part: Any) -> tuple[str, Any]:
        anchor = _anchor((key, part))
        if key in DATA:
            moved = part
        elif anchor is not None:
            moved = self._anchors[anchor]
            key = "$anchor" if key in _OLD_ANCHORS else key
        elif key in ("$ref", "$recursiveRef") and isinstance(part, str):
            moved = self._reference(part)
            key = "$ref" if key == "$recursiveRef" else key
        elif _is_named(key, part):
            moved = {name: self._moved(one) for name, one in part.items()}
        else:
            moved = self._moved(part)
        return key, moved

    def _reference(self, reference: str) -> str:
        uri, _, place = reference.partition("#")
        if uri and uri != (self._id or "").partition("#")[0]:
            return reference  # another document
        if place in self._anchors:
            return f"#{self._anchors[place]}"
        if place and not place.startswith("/"):
            return reference
        steps = place.split("/")[1:]
        named = tuple(unquote(step).replace("~1", "/").replace("~0", "~") for step in steps[:2])
        if len(named) == 2 and (named[0], named[1]) in self._names:
            steps = [self._names[named[0], named[1]], *steps[2:]]
        else:
            steps = [self._root_name(), *steps]
        return "#/$defs/" + "/".join(steps)

    def _root_name(self) -> str:
        """The name of a definition that holds the schema itself."""
        if self._root is None:
            self._root = self._whole.new_name(f"{self._prefix}root")
            self._whole.definitions[self._root] = self._moved(self._body)
        return self._root


def _is_named(key: str, part: Any) -> bool:
    return key in NAMED_SCHEMAS and isinstance(part, Mapping)


def _is_document(schema: Mapping[str, Any]) -> bool:
    """Whether an embedded schema has an id of its own, by which others refer to it."""
    name = schema.get("$id")
    return isinstance(name, str) and not name.startswith("#")


def _anchor(member: tuple[str, Any]) -> str | None:
    """The anchor that a keyword of a schema declares."""
    key, part = member
    if not isinstance(part, str):
        return None
    if key in _OLD_ANCHORS and part.startswith("#"):
        return part[1:] or None
    return part if key in _ANCHORS else None
