"""Names of test cases that are the same in each run, so that one can be run again by its name."""

from __future__ import annotations

import re


def case_name(value: object) -> str:
    """`value` as `str` writes it: a set in order, and no address of a function."""
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(repr, value))) + "}"
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))
