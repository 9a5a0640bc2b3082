"""A conversation in which a model calls tools, in turns, up to a typed answer.

One idea: a turn is a text of one grammar, "calls or an answer", whatever the model. If the
tokenizer's chat template writes tool calls, the turn has the format of the model's family;
otherwise, and for every model behind an API, it is one JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, Protocol, TypeVar

from stencilm.callbacks import passed_on
from stencilm.characters import whole_characters
from stencilm.errors import (
    GrammarSyntaxError,
    LimitExceeded,
    Unsatisfiable,
    UnsupportedFeature,
)
from stencilm.generation.result import Generation, InvalidOutput, LeftOut
from stencilm.generation.typed import raise_with_text
from stencilm.grammars.complaints import complaint_of, refusal
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.json_values import (
    NumberTooLarge,
    read_json,
    read_json_exactly,
    rounded,
    write_json,
)
from stencilm.grammars.output_types import JsonSchema, JsonSchemaArguments, limits_of
from stencilm.grammars.outputs import Output, resolve
from stencilm.grammars.sources import (
    EbnfSource,
    JsonSchemaOptions,
    JsonSchemaSource,
    RegexSource,
)
from stencilm.grammars.structural_tag import Format, GrammarFormat, JSONSchemaFormat, RegexFormat
from stencilm.grammars.symbols import SYMBOLS, SymbolTable
from stencilm.limits import Limits, checked_limits
from stencilm.models.exact_numbers import for_messages
from stencilm.models.joined_schemas import JoinedSchemas
from stencilm.models.options import given_options, laid_out_with
from stencilm.models.prompts import Conversation, chat_text, with_system_text
from stencilm.shown import is_word, shown_value
from stencilm.tool_calls.answers import ToolCall, written_arguments
from stencilm.tool_calls.format import tools as tool_format
from stencilm.tool_calls.functions import (
    CallableTool,
    ToolSource,
    callable_tools,
    error_text,
    result_text,
)
from stencilm.tool_calls.reasoning import reasoning_format
from stencilm.tool_calls.request import ToolChoice, schema_of_arguments
from stencilm.whole_numbers import count, truth

T = TypeVar("T")

DEFAULT_MAX_ROUNDS = 8
_FAULTS = (GrammarSyntaxError, UnsupportedFeature, Unsatisfiable)
# Explicit, because strict mode would close an object that does not say whether it is open.
_ANYTHING: dict[str, Any] = {"type": "object", "additionalProperties": True}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one call.

    Attributes:
        call: The call.
        value: The value that the function returned, a list for an iterator; None if it raised.
        error: The exception that it raised; None if it returned.
        text: The text for the model: the value as it was when it was returned.
    """

    call: ToolCall
    value: Any
    error: Exception | None = None
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        text = error_text(self.error) if self.error is not None else result_text(self.value)
        # File names may contain lone surrogates, which no tokenizer can read.
        object.__setattr__(self, "text", whole_characters(text))


@dataclass(frozen=True, slots=True)
class Turn:
    """One output of the model, and the calls in it.

    Attributes:
        generation: The text with its trace and statistics.
        content: The text outside of calls.
        reasoning: The reasoning.
        calls: The calls.
        results: The calls that were run.
    """

    generation: Generation[Any]
    content: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Chat(Generic[T]):
    """A finished conversation.

    Attributes:
        value: The typed answer; None if the model called tools that have no function.
        turns: The outputs of the model, in order.
        messages: The whole conversation, to continue it.
        pending: Calls of tools that have no function: run them, and continue with their results.
            Other calls of the same turn were run, and their results are in `messages`.
    """

    value: T | None
    turns: tuple[Turn, ...]
    messages: tuple[dict[str, Any], ...]
    pending: tuple[ToolCall, ...] = ()

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """All calls that were run, in order."""
        return tuple(result for turn in self.turns for result in turn.results)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What a model behind an API wrote beside its turns, such as a second turn after one."""
        return tuple(one for turn in self.turns for one in turn.generation.left_out)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request to the model for a text of a grammar."""

    prompt: Any
    output_type: Any


@dataclass(frozen=True, slots=True)
class _Called:
    """A function call that must be run."""

    tool: CallableTool
    call: ToolCall


class _Dialect(Protocol):
    """How turns are requested, read, and shown to the model in later turns."""

    def ask(
        self, messages: list[dict[str, Any]], choice: ToolChoice
    ) -> tuple[_Asked, Callable[[Generation[Any], int], tuple[Turn, str | None]]]:
        """The request to the model, and a function that reads its output.

        That function takes the number of the first call, and returns the turn and, if it is an
        answer, its text.
        """

    def messages_of(self, turn: Turn) -> list[dict[str, Any]]:
        """The messages for a turn and the results of its calls."""


@dataclass(frozen=True, slots=True)
class Talk:
    """The arguments of a conversation; see `TypedModel.chat`."""

    messages: str | Sequence[Mapping[str, Any]]
    tools: Sequence[ToolSource] = ()
    tool_choice: ToolChoice = "auto"
    output_type: Any = str
    parallel: bool = True
    max_rounds: int = DEFAULT_MAX_ROUNDS
    on_error: str = "tell"
    family: Any = None

    def __post_init__(self) -> None:
        rounds = count("max_rounds", self.max_rounds, least=0, wish="0 or more")
        object.__setattr__(self, "max_rounds", rounds)
        truth("parallel", self.parallel)
        if not is_word(self.on_error, ("tell", "raise")):
            raise ValueError(
                f"on_error is {shown_value(self.on_error):.80}, but must be 'tell' or 'raise'"
            )


def chat(model: Any, talk: Talk, options: Mapping[str, Any] | None = None) -> Chat[Any]:
    """See `TypedModel.chat`; needs only the model's `generate` and tokenizer."""
    talk, given = _with_options(talk, options)
    steps = _steps(model, talk, callable_tools(talk.tools), given.get("limits"))
    step = next(steps)
    while True:
        sent: Any
        if isinstance(step, _Asked):
            sent = model.generate(step.prompt, step.output_type, **given)
        else:
            sent = _result(talk, step.call, *step.tool.outcome(step.call))
        try:
            step = steps.send(sent)
        except StopIteration as end:
            return _chat_of(end)


async def achat(model: Any, talk: Talk, options: Mapping[str, Any] | None = None) -> Chat[Any]:
    """See `TypedModel.achat`; needs only the model's `agenerate` and tokenizer."""
    talk, given = _with_options(talk, options)
    known = callable_tools(talk.tools, may_await=True)
    steps = _steps(model, talk, known, given.get("limits"))
    step = next(steps)
    while True:
        sent: Any
        if isinstance(step, _Asked):
            sent = await model.agenerate(step.prompt, step.output_type, **given)
        else:
            sent = _result(talk, step.call, *await step.tool.aoutcome(step.call))
        try:
            step = steps.send(sent)
        except StopIteration as end:
            return _chat_of(end)


def _with_options(talk: Talk, options: Mapping[str, Any] | None) -> tuple[Talk, dict[str, Any]]:
    """The conversation, whose answer has the layout of the options, and the options of each turn.

    A turn is a text of another type than the answer. So the layout must be among the options of the
    answer's schema, which a turn has as well, and the answer's own limits among those of the turns.
    """
    given: Any = given_options(options or {})
    output_type, _ = laid_out_with(talk.output_type, given)
    if given.get("limits") is not None:
        checked_limits(given["limits"])
    elif (own := limits_of(output_type)) is not None:
        given["limits"] = own
    return replace(talk, output_type=output_type), given


def _result(talk: Talk, call: ToolCall, value: Any, error: Exception | None) -> ToolResult:
    if error is None:
        try:
            return ToolResult(call, value)
        except Exception as unwritable:  # the value's own methods may raise anything
            error = unwritable
    if talk.on_error == "raise":
        raise passed_on(error, f"the tool {call.name!r}")
    return ToolResult(call, None, error)


def _chat_of(end: StopIteration) -> Chat[Any]:
    found: Chat[Any] = end.value
    return found


def _steps(
    model: Any, talk: Talk, known: list[CallableTool], limits: Limits | None
) -> Generator[_Asked | _Called, Any, Chat[Any]]:
    """The conversation as a generator of requests and calls, for both kinds of callers."""
    output = resolve(talk.output_type)
    so_far = _messages(talk.messages)
    if not known:  # check the choice even if there are no tools
        _allowed(talk.tool_choice, known)
    answer = output.grammar(limits or getattr(model, "_limits", None))
    dialect = _dialect(model, known, _Answer(output, answer), talk)
    turns: list[Turn] = []
    count = 0
    for number in range(talk.max_rounds + 1):
        # After the last round only an answer is allowed, and `tool_choice` applies only to the
        # first turn.
        choice: ToolChoice = "auto"
        if number == talk.max_rounds or not known:
            choice = "none"
        elif number == 0:
            choice = talk.tool_choice
        asked, read = dialect.ask(so_far, choice)
        generation: Generation[Any] = yield asked
        if generation.error is not None:
            raise generation.error
        turn, text = read(generation, count)
        if text is not None:
            turns.append(turn)
            so_far += dialect.messages_of(turn)
            try:
                return Chat(output.parse(text), tuple(turns), tuple(so_far))
            except (ValueError, RecursionError) as error:
                # The type's own validators demand more than the grammar can express.
                complaint = complaint_of(error)
                if number >= talk.max_rounds:
                    said = complaint.replace("\n", "; ")
                    refused = f"the answer is refused by {output.name}: {said}"
                    failure = InvalidOutput(refused, text=text)
                    failure.complaint = complaint
                    raise failure from error
                so_far.append({"role": "user", "content": refusal(complaint, "Answer again.")})
                continue
            except BaseException as error:
                raise_with_text(error, text, output)
        count += len(turn.calls)
        by_name = {tool.name: tool for tool in known}
        results: list[ToolResult] = []
        pending: list[ToolCall] = []
        for call in turn.calls:
            if by_name[call.name].function is None:
                pending.append(call)
            else:
                results.append((yield _Called(by_name[call.name], call)))
        turn = Turn(turn.generation, turn.content, turn.reasoning, turn.calls, tuple(results))
        turns.append(turn)
        so_far += dialect.messages_of(turn)
        if pending:
            return Chat(None, tuple(turns), tuple(so_far), tuple(pending))
    raise AssertionError("invariant: the last round is an answer")


def _messages(messages: str | Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    is_list = isinstance(messages, Sequence) and not isinstance(messages, (bytes, bytearray))
    if not is_list or not all(isinstance(message, Mapping) for message in messages):
        raise TypeError(
            f"messages is {shown_value(messages):.60}, but must be a str, or chat messages such as "
            "[{'role': 'user', 'content': 'Hello'}]"
        )
    return [dict(message) for message in messages]


@dataclass(frozen=True, slots=True)
class _Answer:
    """The type of the answer, and its grammar."""

    output: Output
    grammar: Grammar


def _dialect(model: Any, tools: list[CallableTool], answer: _Answer, talk: Talk) -> _Dialect:
    family = talk.family
    tokenizer = getattr(getattr(model, "backend", None), "tokenizer", None)
    if tokenizer is not None and getattr(tokenizer, "chat_template", None):
        form = _answer_format(answer)
        try:
            tool_format(family if family is not None else tokenizer, [])
        except GrammarSyntaxError:
            if family is not None:
                raise
        else:
            source = family if family is not None else tokenizer
            return _Family(tokenizer, source, tools, form, talk.parallel)
    elif family is not None:
        raise UnsupportedFeature(
            "a family says how a model with a chat template writes calls, and this one has none: "
            "leave family out"
        )
    return _Json(tools, answer, talk.parallel)


def _answer_format(answer: _Answer) -> Format | None:
    """The format for an answer of a type; None for any text."""
    source = answer.grammar.source
    if isinstance(source, JsonSchemaSource):
        # A format supports no other documents, no symbol tables and only a few of the options.
        is_plain = replace(source.options, spelling="natural") == JsonSchemaOptions()
        if is_plain and not source.documents:
            try:
                return JSONSchemaFormat(json_schema=read_json_exactly(source.text))
            except _NOT_HELD:
                pass
        return GrammarFormat(grammar=str(answer.grammar))
    if isinstance(source, RegexSource):
        return None if answer.output.accepts_cut_text else RegexFormat(pattern=source.pattern)
    if isinstance(source, EbnfSource):
        is_whole = source == EbnfSource.of(source.text)
        return GrammarFormat(grammar=source.text if is_whole else str(answer.grammar))
    return None


class _Family:
    """Turns in the format of the model's family; prompts come from its chat template."""

    def __init__(
        self,
        tokenizer: Any,
        source: Any,
        tools: list[CallableTool],
        answer: Format | None,
        parallel: bool,
    ) -> None:
        self.tokenizer, self.source = tokenizer, source
        self.definitions = [tool.definition for tool in tools]
        self.answer, self.parallel = answer, parallel

    def ask(
        self, messages: list[dict[str, Any]], choice: ToolChoice
    ) -> tuple[_Asked, Callable[[Generation[Any], int], tuple[Turn, str | None]]]:
        form = reasoning_format(self.tokenizer)
        # The generation loop handles reasoning in the markers that the template shows. If the
        # answers of a family have markers, too, its grammar covers both.
        is_by_loop = form is not None and not form.without
        conversation = Conversation(
            messages, self.definitions, has_reasoning_format=form is not None and not is_by_loop
        )
        prompt = "" if is_by_loop else chat_text(self.tokenizer, conversation)
        written = tool_format(
            self.source,
            self.definitions,
            choice,
            parallel=self.parallel,
            reasoning="disabled" if is_by_loop else "auto",
            answer=self.answer,
        )

        def read(generation: Generation[Any], first_id: int) -> tuple[Turn, str | None]:
            found = written.parse(generation.text, prompt=prompt, first_id=first_id)
            if found.problems:
                # The grammar excludes every problem except numbers that Python cannot represent.
                raise InvalidOutput("; ".join(found.problems), text=generation.text)
            reasoning = found.reasoning or generation.reasoning or ""
            turn = Turn(generation, found.content, reasoning, found.calls)
            return turn, None if found.calls else found.content

        return _Asked(conversation, written.tag), read

    def messages_of(self, turn: Turn) -> list[dict[str, Any]]:
        message: dict[str, Any] = {"role": "assistant", "content": turn.content}
        if turn.reasoning:
            message["reasoning_content"] = turn.reasoning
        if turn.calls:
            message["tool_calls"] = [
                {
                    "type": "function",
                    "id": call.id,
                    "function": {
                        "name": call.name,
                        "arguments": for_messages(written_arguments(call)),
                    },
                }
                for call in turn.calls
            ]
        results = [
            {
                "role": "tool",
                "name": result.call.name,
                "tool_call_id": result.call.id,
                "content": result.text,
            }
            for result in turn.results
        ]
        return [message, *results]


_ANSWER = "stencilm:answer"
_NOT_HELD = (NumberTooLarge, RecursionError)
"""Raised for annotations of a schema whose values Python cannot represent."""


class _Json:
    """Turns as one JSON object, whose `turn` is either calls or an answer."""

    def __init__(self, tools: list[CallableTool], answer: _Answer, parallel: bool) -> None:
        self.tools, self.output, self.parallel = tools, answer.output, parallel
        output = answer.output
        self.checked: set[str] = set()
        source = answer.grammar.source
        self.given: JsonSchemaArguments = {}
        if isinstance(source, JsonSchemaSource) and output.is_json:
            self.given = _given(source)
            try:
                self.answer: dict[str, Any] = read_json(source.text, exact=True)
            except _NOT_HELD:
                self.answer = {"$ref": _ANSWER}
                self.given["documents"] = {**self.given["documents"], _ANSWER: source.text}
        elif isinstance(source, RegexSource):
            # Here, a text that is not JSON is a string.
            pattern = source.pattern
            self.answer = {"type": "string"}
            if not output.accepts_cut_text:
                self.answer["pattern"] = f"^(?:{pattern})$"
        else:
            raise UnsupportedFeature(
                "an answer beside tools is a type of JSON, a text or a pattern here: give such an "
                "output type"
            )

    def ask(
        self, messages: list[dict[str, Any]], choice: ToolChoice
    ) -> tuple[_Asked, Callable[[Generation[Any], int], tuple[Turn, str | None]]]:
        asked = _Asked(
            self._with_tools_described(messages),
            JsonSchema(self._schema(choice), **self.given),
        )
        return asked, self._read

    def _read(self, generation: Generation[Any], first_id: int) -> tuple[Turn, str | None]:
        try:
            return self._turn(generation, first_id)
        except (ValueError, RecursionError) as error:
            raise InvalidOutput(f"the turn cannot be read: {error}", text=generation.text) from None

    def _turn(self, generation: Generation[Any], first_id: int) -> tuple[Turn, str | None]:
        """Read a turn.

        Raises ValueError and RecursionError for values that Python cannot represent.
        """
        written = read_json(generation.text, exact=True)["turn"]
        if "answer" in written:
            answer = written["answer"]
            text = write_json(answer) if self.output.is_json else answer
            return Turn(generation, text, generation.reasoning or "", ()), text
        calls = tuple(
            ToolCall(
                call["name"],
                rounded(call["arguments"]),
                f"call_{first_id + number}",
                exact=call["arguments"],
            )
            for number, call in enumerate(written["tool_calls"])
        )
        return Turn(generation, "", generation.reasoning or "", calls), None

    def _schema(self, choice: ToolChoice) -> dict[str, Any]:
        joined = JoinedSchemas()
        tools, is_required = _allowed(choice, self.tools)
        ways: list[dict[str, Any]] = []
        if tools:
            self._check(tools)
            items = [
                _closed(
                    name={"const": tool.name},
                    arguments=joined.taken(_arguments(tool), f"{tool.name}_"),
                )
                for tool in tools
            ]
            calls: dict[str, Any] = {"type": "array", "items": {"anyOf": items}, "minItems": 1}
            if not self.parallel or (isinstance(choice, Mapping) and is_required):
                calls["maxItems"] = 1
            ways.append(_closed(tool_calls=calls))
        if not is_required or not ways:
            ways.append(_closed(answer=joined.taken(self.answer, "answer_")))
        schema = _closed(turn=ways[0] if len(ways) == 1 else {"anyOf": ways})
        if joined.definitions:
            schema["$defs"] = joined.definitions
        return schema

    def _check(self, tools: list[CallableTool]) -> None:
        """Refuse a tool whose arguments cannot be enforced, by its name and place.

        If no arguments are valid for one of several tools, there is no error: the schema leaves it
        out.
        """
        for tool in tools:
            if tool.name in self.checked:
                continue
            try:
                Grammar.from_type(JsonSchema(_arguments(tool), **self.given))
            except _FAULTS as found:
                place = (found.place or "#").removeprefix("#")
                raise type(found)(
                    f"in the parameters of {tool.name!r}: {found.message}",
                    place=f"#/tools/{self.tools.index(tool)}/parameters{place}",
                ) from None
            except LimitExceeded:
                pass  # the model's own limits decide what is too large
            self.checked.add(tool.name)

    def _with_tools_described(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not self.tools:
            return messages
        lines = [write_json(tool.definition["function"]) for tool in self.tools]
        text = (
            "You can call these functions:\n"
            + "\n".join(lines)
            + '\nAnswer with one JSON object: {"turn": {"tool_calls": [{"name": ..., "arguments": '
            '{...}}]}} to call functions, or {"turn": {"answer": ...}} once you know the answer.'
        )
        return with_system_text(messages, text)

    def messages_of(self, turn: Turn) -> list[dict[str, Any]]:
        messages = [{"role": "assistant", "content": turn.generation.text}]
        if turn.results:
            results = [
                {"id": result.call.id, "name": result.call.name, "result": result.text}
                for result in turn.results
            ]
            text = json.dumps({"results": results}, ensure_ascii=False)
            messages.append({"role": "user", "content": text})
        return messages


def _allowed(choice: ToolChoice, tools: list[CallableTool]) -> tuple[list[CallableTool], bool]:
    """The tools that may be called, and whether one must be."""
    from stencilm.tool_calls.request import read_request

    request = read_request(
        [tool.definition for tool in tools],
        choice,
        False,
        style="json",
        parallel=True,
        answer=None,
        any_order=False,
        strict_mode=False,
        max_whitespace=None,
        on_unsupported="error",
        exclude_markers=False,
    )
    names = {tool.name for tool in request.tools}
    chosen = [tool for tool in tools if tool.name in names]
    return chosen, request.choice in ("required", "named")


def _arguments(tool: CallableTool) -> dict[str, Any] | bool:
    """The schema of a tool's arguments; any object if it has none."""
    parameters = tool.definition["function"].get("parameters")
    if parameters is None:
        return _ANYTHING
    return schema_of_arguments(tool.name, parameters, f"#/tools/{tool.name}/parameters")


def _given(source: JsonSchemaSource) -> JsonSchemaArguments:
    """The options and documents of an answer's schema, which apply to the whole turn as well."""
    marker = f"{SYMBOLS}:"
    options = {each.name: getattr(source.options, each.name) for each in fields(source.options)}
    texts = dict(source.documents)
    tables = {uri: text for uri, text in texts.items() if uri.startswith(marker)}
    given = JsonSchemaArguments(
        documents={uri: text for uri, text in texts.items() if uri not in tables},
        symbols={
            uri.removeprefix(marker): SymbolTable(json.loads(text)) for uri, text in tables.items()
        },
    )
    given.update(options)  # type: ignore[typeddict-item]  # the options by their names
    return given


def _closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
