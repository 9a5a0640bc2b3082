"""The settings of vLLM users, in environment variables that all processes of a server inherit.

One idea: the front end and the engine read the same two variables, so what is admitted is what is
enforced. An unknown value stops the server, with an error that names the known ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from stencilm.limits import Limits
from stencilm.shown import shown_value

SWITCH = "STENCILM_VLLM"
OPTIONS = "STENCILM_VLLM_OPTIONS"

_ON = ("1", "true", "on", "yes")
_OFF = ("", "0", "false", "off", "no")


def is_switched_on(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether stencilm is to enforce vLLM's structured outputs.

    Raises:
        ValueError: The variable says neither yes nor no.
    """
    value = environment.get(SWITCH, "").strip().lower()
    if value in _ON:
        return True
    if value in _OFF:
        return False
    raise ValueError(f"{SWITCH} is {shown_value(value):.80}, but must be 1 (on) or 0 (off)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the JSON of every request is written, whatever asks for it: a schema or a tool.

    Attributes:
        property_order: "declared" writes properties in the order of the schema, "any" in every
            order. Arguments between markers always come in the order of the schema.
        max_whitespace: The longest run of whitespace in JSON, so that a model cannot run away in
            it; 0 for compact JSON, None for no bound. A structural tag that sets a bound of its own
            keeps it.
        strict_mode: Close objects that do not say whether they are open.
        milliseconds: The longest time that compiling one request, or one mask, may take.
        finish: "valid": near the end of a request's `max_tokens` its masks leave what still lets
            the text be whole within them, where a text of its grammar can be. "cut": it is cut.
        whitespace_budget: The most bytes of whitespace between the parts of a whole text that is
            JSON, for requests by `json` and `json_object`; None for no bound. Arguments of calls
            have `max_whitespace` alone.
    """

    # The JSON is written by users: a misspelled name must not be silently ignored.
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    property_order: Literal["declared", "any"] = "declared"
    max_whitespace: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = 64
    strict_mode: bool = False
    milliseconds: Annotated[int, Field(ge=1, le=2**31 - 1)] = 5_000
    finish: Literal["cut", "valid"] = "cut"
    whitespace_budget: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> Options:
        """The options of the variable `STENCILM_VLLM_OPTIONS`, a JSON object.

        Raises:
            ValueError: It is not a JSON object, or has an unknown field or value.
        """
        text = environment.get(OPTIONS, "").strip()
        if not text:
            return Options()
        try:
            return _OPTIONS.validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = "".join(f"/{step}" for step in first["loc"])
            raise ValueError(
                f"{OPTIONS} is {text!r:.200}; at #{place}: {first['msg']}; it is a JSON object "
                f"that may have {', '.join(Options.__slots__)}"
            ) from None

    @property
    def limits(self) -> Limits:
        """The limits under which requests are read and compiled."""
        return Limits(milliseconds=self.milliseconds)


_OPTIONS = TypeAdapter(Options)
