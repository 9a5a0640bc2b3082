"""What the package's own output types have in common, for type checkers only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    V_co = TypeVar("V_co", default=Any, covariant=True)
else:
    from typing import TypeVar

    V_co = TypeVar("V_co", covariant=True)


class OutputForm(Generic[V_co]):
    """An output type whose texts are read as values of type `V_co`; see `output_types`."""

    __slots__ = ()
