"""Damage to files and texts, by a seed: bits flip, ends are cut, JSON values change places.

For tests that hand damaged files to what reads them: every outcome must be a working object or an
error of ours.
"""

from __future__ import annotations

import copy
import random
from typing import Any

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 7, 2**31, 2**32, 2**63, 2**64, 10**30, 0.5, 1e308),
    *(float("nan"), float("inf"), "", "x", "\ud800", "\x00", " ", "é", "a" * 5000),
    *([], {}, [None], [0], ["<s>"], {"a": None}, {"type": "Sequence"}, [[[[[]]]]]),
)
_NAMES = ("", "x", "type", "\ud800", "-1", "99999999999")
_SHOWN = 4  # of the first, the middle and the last items: vocabularies are long
Path = tuple[Any, ...]


def damaged_json(document: Any, draws: random.Random) -> Any:
    """The document with one to three values set, left out, doubled, renamed or grown."""
    damaged = copy.deepcopy(document)
    for _ in range(draws.choice((1, 1, 1, 2, 3))):
        paths = _paths(damaged)
        if not paths:
            break
        path = draws.choice(paths)
        parent, key = _at(damaged, path[:-1]), path[-1]
        match draws.choice(("set", "set", "set", "drop", "copy", "double", "rename", "grow")):
            case "set":
                parent[key] = copy.deepcopy(draws.choice(VALUES))
            case "drop":
                del parent[key]
            case "copy":
                parent[key] = copy.deepcopy(_at(damaged, draws.choice(paths)))
            case "double" if isinstance(parent, list):
                parent.insert(key, copy.deepcopy(parent[key]))
            case "rename" if isinstance(parent, dict):
                parent[draws.choice(_NAMES)] = parent.pop(key)
            case _:
                parent[key] = _grown(parent[key], draws)
    return damaged


def damaged_bytes(data: bytes, draws: random.Random) -> bytes:
    """The data with bits flipped, stretches cut, doubled, or put in."""
    damaged = bytearray(data)
    for _ in range(draws.choice((1, 1, 2, 8))):
        if not damaged:
            break
        at = draws.randrange(len(damaged) if draws.random() < 0.7 else min(len(damaged), 3000))
        match draws.choice(("flip", "flip", "byte", "cut", "drop", "double", "insert")):
            case "flip":
                damaged[at] ^= 1 << draws.randrange(8)
            case "byte":
                damaged[at] = draws.choice(b'\x00\xff\x80"{9-')
            case "cut":
                del damaged[at:]
            case "drop":
                del damaged[at : at + draws.choice((1, 5, 100))]
            case "double":
                damaged[at:at] = damaged[at : at + draws.choice((1, 50))]
            case _:
                inserted = (b"\xff\xfe", b"\xef\xbb\xbf", b"\x00", b"[" * 4000, b"1e999", b"NaN")
                damaged[at:at] = draws.choice(inserted)
    return bytes(damaged)


def _grown(value: Any, draws: random.Random) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return value + draws.choice((1, -1, 1000, 10**6, 10**9))
    return value * draws.choice((2, 50)) if isinstance(value, (str, list)) else value


def _at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def _paths(document: Any) -> list[Path]:
    """Where values stand, but few of the items of a long list."""
    found: list[Path] = []
    pending: list[tuple[Any, Path]] = [(document, ())]
    while pending:
        value, path = pending.pop()
        if not isinstance(value, (dict, list)):
            continue
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if len(keys) > 3 * _SHOWN:
            middle = len(keys) // 2
            keys = keys[:_SHOWN] + keys[middle : middle + _SHOWN] + keys[-_SHOWN:]
        for key in keys:
            found.append((*path, key))
            pending.append((value[key], (*path, key)))
    return found
