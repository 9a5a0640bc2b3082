"""Random values of a type, as a model may write them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any


def drawn_value(
    output_type: Any, drawn: random.Random, scalars: Mapping[Any, Sequence[Any]]
) -> Any:
    """A value of a type, its members in any order, made of these scalars of each type."""
    if output_type in scalars:
        return drawn.choice(scalars[output_type])
    if hasattr(output_type, "model_fields"):
        members = [
            (name, drawn_value(field.annotation, drawn, scalars))
            for name, field in output_type.model_fields.items()
            if field.is_required() or drawn.random() < 0.5
        ]
        drawn.shuffle(members)
        return dict(members)
    *_, inner = output_type.__args__
    many = [drawn_value(inner, drawn, scalars) for _ in range(drawn.randrange(4))]
    is_list = output_type.__origin__ is list
    return many if is_list else dict(zip(("a", "b c", "d"), many, strict=False))
