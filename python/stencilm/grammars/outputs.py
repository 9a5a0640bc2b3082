"""How a text of an output type is read as a value, and how the value is written again.

One idea: an output type is a pair: the notation of its texts (`output_types`), and the function
from such a text to its value. For Python types both come from pydantic, so a type that pydantic can
describe can also be read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from stencilm.errors import UnsupportedFeature
from stencilm.foreign import said
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.json_reading import json_reader
from stencilm.grammars.json_values import json_ready, read_json
from stencilm.grammars.output_types import (
    Choice,
    Ebnf,
    JsonSchema,
    Lark,
    Regex,
    bare_texts,
    check_is_no_notation,
    is_structural_tag,
    limits_of,
)
from stencilm.grammars.python_types import (
    is_function,
    type_adapter,
    type_name,
    type_to_read,
)
from stencilm.limits import Limits


@dataclass(frozen=True, slots=True)
class Output:
    """An output type, ready to use.

    Attributes:
        output_type: The type itself.
        name: Its name in messages.
        parse: Reads the value of a whole text; raises ValueError if the type refuses it.
        dump: Returns a value in JSON-ready form, under the names that pydantic writes JSON with;
            raises UnsupportedFeature if the type's own serializers fail.
        accepts_cut_text: Every prefix of a text is a text too, so a cut text still has a value.
        is_json: The value is read from JSON, by `json_type`; otherwise the text itself is shown
            while it is written, or nothing before its end if `texts` are known.
        texts: All of its texts, if it has only these, each for a value of its own. A part of one is
            no value.
        json_type: The type that JSON is read by; `Any` for the data itself.
    """

    output_type: Any
    name: str
    parse: Callable[[str], Any] = str
    dump: Callable[[Any], Any] = lambda value: value
    accepts_cut_text: bool = False
    is_json: bool = False
    json_type: Any = Any
    texts: tuple[str, ...] | None = None

    @property
    def limits(self) -> Limits | None:
        """The limits that the output type itself sets."""
        if isinstance(self.output_type, Grammar):
            return self.output_type.limits
        return limits_of(self.output_type)

    def grammar(self, limits: Limits | None = None) -> Grammar:
        """The grammar of its texts; raises StencilError if the type is refused.

        Args:
            limits: How large and how costly it may be; None takes those of the output type, or the
                defaults.
        """
        return Grammar.from_type(self.output_type, limits=limits)


def resolve(output_type: Any) -> Output:
    """The notation and the reader of an output type.

    Raises UnsupportedFeature for a value that is not an output type. A type that pydantic or the
    grammar cannot express is refused only when `grammar` is called.
    """
    if isinstance(output_type, Grammar):
        return Output(output_type, "Grammar")
    if isinstance(output_type, Regex):
        return Output(output_type, f"Regex({output_type.pattern!r})")
    if isinstance(output_type, JsonSchema) and output_type.is_of_type:
        return replace(_read_as_json(type_to_read(output_type.schema)), output_type=output_type)
    if isinstance(output_type, JsonSchema):
        return Output(output_type, "JsonSchema", parse=read_json, dump=json_ready, is_json=True)
    if isinstance(output_type, Choice):
        by_text = output_type.by_text()
        return Output(output_type, "Choice", parse=by_text.__getitem__, texts=tuple(by_text))
    if isinstance(output_type, Ebnf):
        return Output(output_type, "Ebnf")
    if isinstance(output_type, Lark):
        return Output(output_type, "Lark")
    if is_structural_tag(output_type):
        return Output(output_type, "StructuralTag")
    check_is_no_notation(output_type)
    if output_type is str:
        return Output(str, "str", accepts_cut_text=True)
    if is_function(output_type):
        # Given the function itself, pydantic would call it with the model's arguments.
        return replace(_read_by_pydantic(type_to_read(output_type)), name=type_name(output_type))
    return _read_by_pydantic(output_type)


def _read_by_pydantic(tp: Any) -> Output:
    texts = bare_texts(tp)
    if texts is None:
        return _read_as_json(tp)
    return replace(
        _read_as_json(tp),
        parse=type_adapter(tp).validate_python,
        is_json=False,
        json_type=Any,
        texts=tuple(texts),
    )


def _read_as_json(tp: Any) -> Output:
    adapter = type_adapter(tp)
    return Output(
        tp,
        type_name(tp),
        parse=json_reader(adapter),
        dump=lambda value: _written(adapter, value),
        is_json=True,
        json_type=tp,
    )


def _written(adapter: TypeAdapter[Any], value: Any) -> Any:
    try:
        return adapter.dump_python(value, mode="json", by_alias=True)
    except Exception as error:  # the type's serializers may raise anything
        raise UnsupportedFeature(
            f"the value cannot be written as JSON by its type: {said(error)}; its text can be read"
        ) from error
