"""Models behind an API: the ladder rung by rung, faults, accounting; all scripted."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import pytest

import stencilm
from endpoints.scripted import Fault, Script, served
from stencilm import Budget, Capabilities, Grammar, Prices
from stencilm.endpoints.capabilities import PRESETS
from stencilm.endpoints.requests import tool_grammar
from stencilm.generation.trace import Called
from stencilm.matching.texts import byte_matcher

openai = pytest.importorskip("openai")

SCHEMA = stencilm.JsonSchema(
    {
        "type": "object",
        "properties": {"size": {"enum": ["small", "large"]}, "n": {"type": "integer"}},
        "required": ["size", "n"],
        "additionalProperties": False,
    }
)
WHOLE = '{"size": "small", "n": 7}'
SQL = Grammar.from_ebnf(
    'root ::= "SELECT a WHERE b " ("LIKE" | "IN" | "BETWEEN") blanks [0-9]+ ";"\nblanks ::= " "+'
)
BYTES = stencilm.TokenizerInfo(
    [bytes([byte]) for byte in range(256)] + [b"</s>"], stop_token_ids=[256]
)

Answers = Callable[[dict[str, Any], int], Any]


@contextmanager
def endpoint(
    answer: Answers, capabilities: Any = "compatible", **options: Any
) -> Iterator[tuple[Any, Script]]:
    """An `ApiModel` whose endpoint answers as the script says."""
    retries = options.pop("max_retries", 0)
    with served(answer) as (address, script):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=retries)
        yield (
            stencilm.from_openai(client, "m", capabilities=capabilities, **options),
            script,
        )


def means(result: stencilm.Guided | stencilm.Generation[Any]) -> list[str]:
    return [event.means for event in result.trace if isinstance(event, Called)]


def always(text: Any) -> Answers:
    return lambda body, number: text


# The ladder


@pytest.mark.parametrize(
    ("capabilities", "grammar", "expected"),
    [
        ("openai", SCHEMA, lambda body: body["response_format"]["json_schema"]["strict"]),
        ("vllm", SCHEMA, lambda body: "size" in str(body["structured_outputs"]["json"])),
        ("vllm", SQL, lambda body: "::=" in body["structured_outputs"]["grammar"]),
        ("llama.cpp", SQL, lambda body: "::=" in body["grammar"]),
        ("sglang", SQL, lambda body: "::=" in body["ebnf"]),
    ],
)
def test_a_native_constraint_comes_first(capabilities: str, grammar: Any, expected: Any) -> None:
    text = WHOLE if grammar is SCHEMA else "SELECT a WHERE b IN 1;"
    with endpoint(always(text), capabilities) as (model, script):
        result = stencilm.guide(model, grammar, "p")
    assert (result.response, result.status, means(result)) == (text, "valid", ["native"])
    assert expected(script.requests[0][1])
    assert result.num_grammar_corrections == 0


LARK_SQL = """
start: "SELECT a WHERE b " OPERATOR " "+ NUMBER ";"
OPERATOR: "LIKE" | "IN" | "BETWEEN"
NUMBER: /[0-9]+/
"""


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("grammar", "syntax", "text"),
    [
        (Grammar.from_lark(LARK_SQL), "lark", "SELECT a WHERE b IN 1;"),
        (Grammar.from_regex("[0-9]{4}-[0-9]{2}"), "regex", "2024-07"),
        (stencilm.Choice(["yes", "no"]), "regex", "no"),
    ],
)
def test_grammars_go_to_openai_as_the_input_of_a_tool(
    grammar: Any, syntax: str, text: str, stream: bool
) -> None:
    capabilities = replace(PRESETS["openai"], stream=stream)
    with endpoint(always({"tool": text}), capabilities) as (model, script):
        result = stencilm.guide(model, grammar, "p")
    assert (result.response, result.status, means(result)) == (text, "valid", ["native"])
    body = script.requests[0][1]
    (tool,) = body["tools"]
    given = tool["custom"]["format"]["grammar"]
    assert given["syntax"] == syntax
    assert body["tool_choice"]["custom"]["name"] == tool["custom"]["name"]
    read = Grammar.from_lark if syntax == "lark" else Grammar.from_regex
    assert byte_matcher(read(given["definition"])).longest_valid_prefix(text).status == "complete"
    assert result.usage.output_tokens == 5


@pytest.mark.parametrize(
    ("grammar", "is_sent"),
    [
        (Grammar.from_regex("a+b"), True),
        (Grammar.from_regex("a+?b"), False),
        (Grammar.from_regex("(?=a)[ab]"), False),
        (Grammar.from_regex("a\nb"), False),
        (Grammar.from_lark('start: A\nA: "x"'), True),
        (Grammar.from_lark('start: INT\n%import common.INT\n%ignore " "'), True),
        (Grammar.from_lark('begin: "x"', start="begin"), False),
        (Grammar.from_lark('start: A\nA.2: "x"'), False),
        (Grammar.from_lark('start: A\nA: /x+?/ "y"'), False),
        (Grammar.from_lark('start: two{"x"}\ntwo{a}: a a'), False),
        (Grammar.from_lark('start: "x"~2..3'), True),
        (Grammar.from_lark('start: %json {"type": "integer"}'), False),
        (Grammar.from_lark("start: @other", grammars={"other": 'start: "x"'}), False),
        (SQL, False),
    ],
)
def test_only_what_openai_reads_is_sent(grammar: Grammar, is_sent: bool) -> None:
    assert (tool_grammar(grammar) is not None) is is_sent


@pytest.mark.parametrize("schema", ['{"default": 1%s, "type": "boolean"}' % ("0" * 5_000),
                                    '{"maximum": 1e400, "type": ["boolean", "number"]}'],
                         ids=["digits", "exponent"])  # fmt: skip
@pytest.mark.parametrize("capabilities", ["openai", "vllm", "openai-responses", "compatible"])
def test_a_schema_that_no_library_writes_is_not_sent(schema: str, capabilities: str) -> None:
    """What it allows may be sent as a grammar."""
    with endpoint(lambda body, count: "true", capabilities) as (model, script):
        assert model("Is it?", stencilm.JsonSchema(schema)) is True
    sent = {name for _, body in script.requests for name in body}
    assert not sent & {"response_format", "text"}
    assert all("json" not in body.get("structured_outputs", ()) for _, body in script.requests)


def test_what_is_refused_natively_is_drafted() -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        if "response_format" in body:
            raise Fault("400")
        return WHOLE

    with endpoint(answer, "openai") as (model, _):
        result = stencilm.guide(model, SCHEMA, "p")
    assert (result.response, means(result)) == (WHOLE, ["native", "instruct"])


def test_a_native_answer_is_not_taken_on_trust() -> None:
    with endpoint(lambda body, number: WHOLE.replace("small", "tiny"), "openai") as (model, _):
        result = stencilm.guide(model, SCHEMA, "p", budget=Budget(calls=9))
    assert result.is_valid and result.num_grammar_corrections > 0
    assert SCHEMA_FITS(result.response)


def SCHEMA_FITS(text: str) -> bool:
    from stencilm.guiding.parsers import as_grammar
    from stencilm.matching.texts import byte_matcher

    return byte_matcher(as_grammar(SCHEMA)).longest_valid_prefix(text).status == "complete"


@pytest.mark.parametrize(
    ("capabilities", "route", "check"),
    [
        ("transformers", "/v1/completions", lambda b: b["prompt"] == 'p{"size": '),
        (
            Capabilities(continuation="continue_final_message"),
            "/v1/chat/completions",
            lambda b: (
                b["continue_final_message"] is True
                and b["add_generation_prompt"] is False
                and b["messages"][-1] == {"role": "assistant", "content": '{"size":'}
            ),
        ),
        (
            Capabilities(continuation="prefix"),
            "/v1/chat/completions",
            lambda b: (
                b["messages"][-1] == {"role": "assistant", "content": '{"size":', "prefix": True}
            ),
        ),
    ],
)
def test_a_given_text_is_gone_on_with(capabilities: Any, route: str, check: Any) -> None:
    parts = ['{"size": ', '"small"', ', "n": 7}']

    def answer(body: dict[str, Any], number: int) -> Any:
        return parts[number - 1], "length" if number < 3 else "stop"

    with endpoint(answer, capabilities) as (model, script):
        result = stencilm.guide(model, SCHEMA, "p", token_lookahead=5)
    assert (result.response, result.status) == (WHOLE, "valid")
    assert result.num_grammar_corrections == 0
    assert [path for path, _ in script.requests] == [route] * 3
    assert check(script.requests[1][1])
    assert all(5 in body.values() for _, body in script.requests)


def test_few_allowed_tokens_are_biased() -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        if "logit_bias" in body:
            assert body["max_tokens"] == 1
            assert {chr(int(token)) for token in body["logit_bias"]} == {"L", "I", "B"}
            assert set(body["logit_bias"].values()) == {100}
            return "I", "length"
        if number == 1:
            return "SELECT a WHERE b EQUALS 1;"
        return "N 1;"

    capabilities = Capabilities(continuation="continue_final_message", logit_bias=True)
    with endpoint(answer, capabilities, tokenizer_info=BYTES) as (model, _):
        result = stencilm.guide(model, SQL, "p")
    assert (result.status, result.response) == ("valid", "SELECT a WHERE b IN 1;")
    assert "logit_bias" in means(result) and result.error is None


def test_a_choice_is_asked_for_by_number() -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        last = body["messages"][-1]["content"]
        if "Answer with the number only" in last:
            assert "1. BETWEEN\n2. IN\n3. LIKE" in last
            assert body["max_tokens"] == 1
            return "3"
        return "SELECT a WHERE b EQUALS 1;" if number == 1 else " 1;"

    with endpoint(answer) as (model, _):
        result = stencilm.guide(model, SQL, "p")
    assert result.response == "SELECT a WHERE b LIKE 1;"
    assert means(result) == ["instruct", "choice", "re-ask"]
    assert result.correction_log[0].means == "choice"


@pytest.mark.parametrize("reply", ["C", "30", "C. 30", "B. 30", "3", "2", "1"])
def test_a_choice_among_numbers_is_asked_for_by_letter(reply: str) -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        last = body["messages"][-1]["content"]
        if "Which of these" in last:
            assert "A. 1\nB. 2\nC. 30\nAnswer with the letter only." in last
            assert body["max_tokens"] == 1
            # What is longer than a token is cut.
            return (reply, "length" if len(reply) > 1 else "stop")
        return "x"

    grammar = stencilm.Grammar.from_ebnf('root ::= "1" | "2" | "30"')
    chosen = {"C": "30", "30": "30", "C. 30": "30", "2": "2", "1": "1"}
    with endpoint(answer) as (model, _):
        if reply in chosen:
            result = stencilm.guide(model, grammar, "p")
            assert (result.response, result.filled) == (chosen[reply], ())
        else:
            with pytest.raises(stencilm.ModelRefused, match="nothing that the model wrote fits"):
                stencilm.guide(model, grammar, "p")


def test_a_chooser_model_comes_before_the_endpoint() -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        return "SELECT a WHERE b EQUALS 1;" if number == 1 else " 1;"

    with endpoint(answer) as (model, _):
        result = stencilm.guide(model, SQL, "p", target_model=lambda prompt: "IN")
    assert result.response == "SELECT a WHERE b IN 1;"
    assert result.correction_log[0].means == "chooser"


def test_an_endpoint_is_told_what_was_wrong() -> None:
    digits = Grammar.from_regex("[0-9]{3,9}")

    def answer(body: dict[str, Any], number: int) -> Any:
        if number == 1:
            return "many"
        assert "broke the format" in body["messages"][-1]["content"]
        return "1234"

    with endpoint(answer, Capabilities(choice=False)) as (model, _):
        result = stencilm.guide(model, digits, "How many?")
    assert (result.response, means(result)) == ("1234", ["instruct", "re-ask"])


# Faults


def without_end(text: Any) -> Answers:
    answer = always(text)
    answer.has_no_end = True  # type: ignore[attr-defined]
    return answer


ENDLESS = ("x" * 40, "endless")
GOES_ON = ('{"size": "small", "n": 1' + "1" * 40, "endless")


@pytest.mark.parametrize(
    ("answer", "expected", "retries"),
    [
        ((lambda body, number: fault("429") if number < 3 else WHOLE), "valid", 2),
        ((lambda body, number: fault("500") if number < 3 else WHOLE), "valid", 2),
        ((lambda body, number: fault("500")), stencilm.EndpointError, 0),
        ((lambda body, number: fault("429")), stencilm.EndpointError, 1),
        ((lambda body, number: fault("silence")), stencilm.EndpointError, 0),
        (always(""), stencilm.ModelRefused, 0),
        (always((WHOLE, "cut")), "valid", 0),
        ((lambda body, number: (WHOLE[:9], "cut") if number == 1 else WHOLE), "valid", 0),
        (without_end(ENDLESS), stencilm.ModelRefused, 0),
        (without_end(GOES_ON), "closed", 0),
        (always(("[" * 40, "stop")), stencilm.ModelRefused, 0),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_faults_are_bounded_and_end_well(
    answer: Answers, expected: Any, retries: int, stream: bool
) -> None:
    if not stream and hasattr(answer, "has_no_end"):
        return  # an answer that is not a stream has an end
    capabilities = Capabilities(stream=stream, choice=False)
    budget = Budget(calls=8, tokens=400, seconds=1.5)
    with endpoint(answer, capabilities, max_retries=retries) as (model, script):
        if isinstance(expected, str):
            result = stencilm.guide(model, SCHEMA, "p", budget=budget, max_grammar_corrections=6)
            assert SCHEMA_FITS(result.response) and result.status == expected
            assert result.usage.calls <= 8
        else:
            with pytest.raises(expected):
                stencilm.guide(model, SCHEMA, "p", budget=budget, max_grammar_corrections=6)
    assert len(script.requests) <= 3 * (1 + retries) or expected == "closed"


def fault(kind: str) -> Any:
    raise Fault(kind)


class Answered:
    """An endpoint that answers each request with the same status and body."""

    def __init__(self, status: int, body: Any) -> None:
        self.status, self.body = status, body

    def __call__(self, body: dict[str, Any], number: int) -> Any:
        raise Fault(json.dumps({"status": self.status, "body": self.body}))


def calls_of(model: Any, output_type: Any) -> list[Callable[[], Any]]:
    """The ways to ask a model for a type."""
    return [
        lambda: model("p", output_type),
        lambda: model("p", output_type, finish="valid"),
        lambda: model.generate("p", output_type),
        lambda: stencilm.guide(model, output_type, "p"),
        lambda: asyncio.run(model.agenerate("p", output_type)),
    ]


STATUSES = [400, 401, 403, 404, 422, 429, 500, 503]
TYPES = [int, bool, Literal["approve", "reject"], SCHEMA, stencilm.Regex("[0-9]{3}"), str]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", STATUSES)
def test_what_a_provider_answers_is_raised(status: int, stream: bool) -> None:
    body = {"error": {"message": "You may not.", "type": "t", "code": "c"}}
    capabilities = replace(PRESETS["openai"], stream=stream)
    for output_type in TYPES:
        with endpoint(Answered(status, body), capabilities) as (model, script):
            for call in calls_of(model, output_type):
                before = len(script.requests)
                with pytest.raises(stencilm.EndpointError, match=r"You may not\.?") as caught:
                    call()
                assert len(script.requests) - before <= 2
                error = caught.value
                assert (error.status, error.provider_message) == (status, "You may not.")
                assert isinstance(error.__cause__, openai.APIStatusError)
                assert isinstance(error, stencilm.ModelError)


def test_no_connection_is_an_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k", max_retries=0)
    with pytest.raises(stencilm.EndpointError, match="base URL") as caught:
        stencilm.from_openai(client, "m")("p", int)
    assert caught.value.status is None
    assert isinstance(caught.value.__cause__, openai.APIConnectionError)


@pytest.mark.parametrize("status", [401, 500])
@pytest.mark.parametrize("is_async", [True, False])
def test_what_anthropic_answers_is_raised(status: int, is_async: bool) -> None:
    anthropic = pytest.importorskip("anthropic")
    body = {"type": "error", "error": {"type": "x", "message": "You may not."}}
    with served(Answered(status, body)) as (address, script):
        kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        client = kind(base_url=address, api_key="k", max_retries=0)
        model = stencilm.from_anthropic(client, "m")
        with pytest.raises(stencilm.EndpointError) as caught:
            asyncio.run(model.agenerate("p", SCHEMA)) if is_async else model("p", SCHEMA)
    assert (caught.value.status, caught.value.provider_message) == (status, "You may not.")
    assert isinstance(caught.value.__cause__, anthropic.APIStatusError)
    assert len(script.requests) == 1


def test_an_error_on_the_way_is_raised_with_what_was_written() -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        return (WHOLE[:12], "length") if number == 1 else fault("500")

    with (
        endpoint(answer) as (model, _),
        pytest.raises(stencilm.EndpointError) as caught,
    ):
        model("p", SCHEMA)
    assert caught.value.text == '{"size": "small"'  # the rest of the word was forced


REFUSALS: dict[str, Any] = {
    "refusal": [({"refusal": "I cannot "}, None), ({"refusal": "help."}, "stop")],
    "filter": [({"content": WHOLE[:9]}, None), ({}, "content_filter")],
    "empty": [({"content": ""}, "stop")],
    "unfit": [({"content": "I'm sorry, but I cannot help with that."}, "stop")],
}


WORDS = {
    "refusal": "I cannot help.",
    "filter": WHOLE[:9],
    "empty": "",
    "unfit": "I'm sorry, but I cannot help with that.",
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("preset", ["openai", "compatible", "vllm"])
@pytest.mark.parametrize("reason", REFUSALS)
def test_refusals_are_raised(reason: str, preset: str, stream: bool) -> None:
    capabilities = replace(PRESETS[preset], stream=stream)
    for output_type in (SCHEMA, int, bool, list[str], stencilm.JsonSchema({"const": [1]})):
        with endpoint(always(REFUSALS[reason]), capabilities) as (model, script):
            for call in calls_of(model, output_type):
                before = len(script.requests)
                with pytest.raises(stencilm.ModelRefused) as caught:
                    call()
                assert len(script.requests) - before <= 4
                assert caught.value.reason == reason
                assert caught.value.text == WORDS[reason]


@pytest.mark.parametrize("stream", [True, False])
def test_anthropic_says_that_it_refused(stream: bool) -> None:
    anthropic = pytest.importorskip("anthropic")
    capabilities = replace(PRESETS["anthropic"], stream=stream)
    with served(always(("I cannot help.", "refusal"))) as (address, script):
        client = anthropic.Anthropic(base_url=address, api_key="k", max_retries=0)
        with pytest.raises(stencilm.ModelRefused, match=r"refused to answer: 'I cannot help\.'"):
            stencilm.from_anthropic(client, "m", capabilities=capabilities)("p", SCHEMA)
    assert len(script.requests) == 1


def test_no_text_at_all_is_no_free_text() -> None:
    with endpoint(always("")) as (model, _), pytest.raises(stencilm.ModelRefused, match="nothing"):
        model("p")


def test_a_value_that_lacks_a_part_of_the_answer_is_none() -> None:
    """What was left out is told, whichever way it is asked for."""

    def answer(body: dict[str, Any], number: int) -> Any:
        return '[30, "unknown", 41]', "stop"

    with endpoint(answer, Capabilities()) as (model, _):
        with pytest.raises(stencilm.IncompleteOutput, match="at /1 does not fit") as caught:
            model("Ages?", list[int])
        assert caught.value.text == "[30, 41]"
        result = model.generate("Ages?", list[int])
        assert result.value is None and result.guided is not None
        assert [one.path for one in result.guided.left_out] == ["/1"]
        assert model("Ages?", list[int], finish="valid") == [30, 41]


def test_made_up_values_are_given_to_those_who_ask() -> None:
    cut = ('{"size": "small", "n":', "length")

    def answer(body: dict[str, Any], number: int) -> Any:
        return cut if number == 1 else ("", "stop")

    with endpoint(answer, Capabilities(choice=False)) as (model, _):
        with pytest.raises(stencilm.IncompleteOutput, match="filled in '0") as caught:
            model("p", SCHEMA)
        assert json.loads(caught.value.text)["size"] == "small"
    with endpoint(answer, Capabilities(choice=False)) as (model, _):
        assert model("p", SCHEMA, finish="valid")["size"] == "small"
    with endpoint(answer, Capabilities(choice=False)) as (model, _):
        result = model.generate("p", SCHEMA)
        assert (result.finish_reason, result.closed, result.value) == ("length", True, None)
        written = "".join(
            character
            for place, character in enumerate(result.text)
            if not any(filled.start <= place < filled.end for filled in result.filled)
        )
        assert written == '{"size": "small", "n":'
        assert all(result.text[f.start : f.end] == f.text for f in result.filled)
        with pytest.raises(ValueError, match="finish is 'any'"):
            model("p", SCHEMA, finish="any")


# What is sent


def test_what_nobody_asked_for_is_not_sent() -> None:
    with endpoint(always(WHOLE), "openai") as (model, script):
        model("p", SCHEMA)
    body = script.requests[0][1]
    assert set(body) == {"model", "messages", "stream", "stream_options", "response_format"}
    options = {"temperature": 0.0, "top_p": 0.5, "seed": 3, "budget": Budget(tokens=99)}
    with endpoint(always(WHOLE), "openai") as (model, script):
        model("p", SCHEMA, **options)
    body = script.requests[0][1]
    assert (body["temperature"], body["top_p"], body["seed"]) == (0.0, 0.5, 3)
    assert body["max_completion_tokens"] == 99


def test_a_form_that_is_refused_is_not_tried_again() -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        return fault("400") if "response_format" in body else WHOLE

    with endpoint(answer, "openai") as (model, script):
        for _ in range(3):
            assert model("p", SCHEMA) == json.loads(WHOLE)
        assert ["response_format" in body for _, body in script.requests] == [True] + 3 * [False]
        # The fault may have been this schema's alone.
        model("p", stencilm.JsonSchema({"type": "object", "properties": {"size": {}, "n": {}}}))
    assert "response_format" in script.requests[4][1]


def test_an_error_that_is_no_matter_of_form_is_not_remembered_as_one() -> None:
    fails = [True]

    def answer(body: dict[str, Any], number: int) -> Any:
        return fault("400") if fails[0] else WHOLE

    with endpoint(answer, "openai") as (model, script):
        with pytest.raises(stencilm.EndpointError):
            model("p" * 99, SCHEMA)
        fails[0] = False
        assert model("p", SCHEMA) == json.loads(WHOLE)
    assert "response_format" in script.requests[-1][1]


# Reading what comes


def test_a_literal_is_not_taken_from_talk_that_names_several() -> None:
    answer = "I can neither approve nor reject this."
    errors = (stencilm.ModelRefused, stencilm.IncompleteOutput)
    with endpoint(always(answer)) as (model, _), pytest.raises(errors):
        model("p", Literal["approve", "reject"])


@pytest.mark.parametrize("answer", ["Not spam", "This is Not spam.", "NOT SPAM"])
def test_a_literal_in_another_case_is_not_taken_for_its_end(answer: str) -> None:
    with endpoint(always(answer)) as (model, _):
        assert model("p", Literal["spam", "not spam"]) == "not spam"


@pytest.mark.parametrize("preset", ["compatible", "vllm", "openai"])
@pytest.mark.parametrize(
    "answer",
    ["in", "In", "in.", "In.", "It is in.", "in, I think", "in。", "in ", "in as it was",
     "in\n\nBecause it fits."],
)  # fmt: skip
@pytest.mark.parametrize("more", [["in progress"], ["in progress", "in part"]])
def test_a_literal_that_others_begin_with_is_not_gone_on_with(
    more: list[str], answer: str, preset: str
) -> None:
    """What comes behind it is no word for another, and nobody is asked which of them comes next.

    Who is asked that cannot answer that none does.
    """
    with endpoint(always(answer), preset) as (model, script):
        assert model("p", stencilm.Choice(["in", *more])) == "in"
    assert len(script.requests) == 1


@pytest.mark.parametrize("answer", ["12.", "It is 12.", "12.\n", "It is 12. Yes, 12."])
def test_a_point_of_a_sentence_is_no_part_of_a_number(answer: str) -> None:
    with endpoint(always(answer)) as (model, script):
        assert model("p", float) == 12.0
    assert len(script.requests) == 1


def test_a_literal_that_an_answer_begins_with_is_meant() -> None:
    with endpoint(always("Positive, not negative.")) as (model, _):
        assert model("p", Literal["positive", "negative"]) == "positive"
    errors = (stencilm.ModelRefused, stencilm.IncompleteOutput)
    with (
        endpoint(always("I see Positive sides, and negative ones.")) as (model, _),
        pytest.raises(errors),
    ):
        model("p", Literal["positive", "negative"])


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("preset", ["openai", "compatible"])
def test_values_in_another_order_and_type_are_kept(
    preset: str, stream: bool, is_async: bool
) -> None:
    parts = [('{"n": "7", "si', "length"), ('```json\n{"n": "7", "size": "Small"}\n```', "stop")]
    for first in (0, 1):

        def answer(body: dict[str, Any], number: int, first: int = first) -> Any:
            return parts[min(1, first + number - 1)]

        capabilities = replace(PRESETS[preset], stream=stream)
        with served(answer) as (address, _):
            kind = openai.AsyncOpenAI if is_async else openai.OpenAI
            client = kind(base_url=f"{address}/v1", api_key="k", max_retries=0)
            model = stencilm.from_openai(client, "m", capabilities=capabilities)
            result = (
                asyncio.run(model.agenerate("p", SCHEMA))
                if is_async
                else model.generate("p", SCHEMA)
            )
        assert json.loads(result.text) == {"size": "small", "n": 7}, result
        assert (result.finish_reason, result.value) == ("stop", {"size": "small", "n": 7})
        assert not any(filled.is_made_up for filled in result.filled), result


def test_a_dead_stream_is_not_read_to_its_end() -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        if number == 1:
            return '{"size": "small", "n":', "length"
        return ("}" * 70, "endless") if number == 2 else "7}"

    with endpoint(answer, "transformers") as (model, _):
        result = stencilm.guide(model, SCHEMA, "p", token_lookahead=300)
    assert result.is_valid


# Accounting


@pytest.mark.parametrize("stream", [True, False])
def test_tokens_and_money_are_those_of_the_endpoint(stream: bool) -> None:
    capabilities = Capabilities(stream=stream, stream_usage=True)
    prices = Prices(prompt=1_000_000, output=2_000_000)
    with endpoint(always(WHOLE), capabilities, prices=prices) as (model, script):
        result = stencilm.guide(model, SCHEMA, "p")
    usage = result.usage
    assert (usage.calls, usage.prompt_tokens, usage.output_tokens) == (1, 10, 5)
    assert usage.cost == 10 + 2 * 5
    assert not usage.is_estimate
    assert ("stream_options" in script.requests[0][1]) is stream


def test_a_budget_of_money_is_kept() -> None:
    prices = Prices(prompt=1_000_000, output=0)
    with endpoint(always("1"), "transformers", prices=prices) as (model, _):
        result = stencilm.guide(
            model, Grammar.from_regex("[0-9]{50,99};"), "p", budget=Budget(cost=25)
        )
    assert (result.usage.calls, result.status) == (3, "closed")
    assert "budget of 25" in result.reason


@pytest.mark.parametrize("is_cut", [False, True])
def test_what_nobody_counts_costs_what_is_estimated(is_cut: bool) -> None:
    """Else a budget of money would hold for those endpoints alone that report tokens."""
    prices = Prices(prompt=1_000_000, output=2_000_000)
    answer: Any = [({"content": "1234"}, "length" if is_cut else "stop")]
    with endpoint(always(answer), Capabilities(), prices=prices) as (model, script):
        if not is_cut:
            found = model.generate("p", int)
            assert (found.stats.is_estimate, found.stats.cost) == (True, 1 + 2)
            return
        result = stencilm.guide(
            model, Grammar.from_regex("[0-9]{50,99};"), "p", budget=Budget(cost=5)
        )
    assert result.usage.cost == result.usage.prompt_tokens + 2 * result.usage.output_tokens
    assert (len(script.requests), result.status) == (2, "closed")
    assert "budget of 5" in result.reason


def test_a_budget_of_money_without_prices_is_refused() -> None:
    budget = Budget(cost=0.05)
    words = r"a cost of 0\.05, and nothing tells.*prices="
    with endpoint(always(WHOLE)) as (model, script):
        with pytest.raises(stencilm.UnsupportedFeature, match=words):
            model("p", SCHEMA, budget=budget)
        with pytest.raises(stencilm.UnsupportedFeature, match=words):
            stencilm.guide(model, SCHEMA, "p", budget=budget)
    assert script.requests == []


def test_more_cached_tokens_than_there_are_cost_no_less_than_nothing() -> None:
    assert Prices(prompt=2.0, output=8.0, cached=1.0).cost(1_000_000, 0, 9_000_000) == 1.0


# Values, asyncio, other libraries


def test_values_are_typed() -> None:
    with endpoint(always("17"), "transformers") as (model, _):
        assert model("How many?", int) == 17
        assert model.generate("How many?", int).text == "17"
        messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "How many?"}]
        assert model(messages, int) == 17
    with endpoint(always("b")) as (model, _):
        assert stencilm.choose_candidate(["a", "b"], "which? ", model) == "b"


def test_asynchronous_clients_are_awaited() -> None:
    async def main(address: str) -> Any:
        client = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
        model = stencilm.from_openai(client, "m", capabilities="compatible")
        with pytest.raises(TypeError, match="asynchronous"):
            stencilm.guide(model, SCHEMA, "p")
        results = await asyncio.gather(*[model.agenerate("p", SCHEMA) for _ in range(3)])
        await client.close()
        return results

    with served(always(WHOLE)) as (address, _):
        assert [result.text for result in asyncio.run(main(address))] == [WHOLE] * 3
    with endpoint(always(WHOLE)) as (model, _):
        assert asyncio.run(model.agenerate("p", SCHEMA)).text == WHOLE


@pytest.mark.parametrize("stream", [True, False])
def test_anthropic(stream: bool) -> None:
    anthropic = pytest.importorskip("anthropic")
    capabilities = Capabilities(native=("output_config",), stream=stream)
    prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "p"}]
    with served(always(WHOLE)) as (address, script):
        client = anthropic.Anthropic(base_url=address, api_key="k", max_retries=0)
        model = stencilm.from_anthropic(client, "m", capabilities=capabilities)
        result = stencilm.guide(model, SCHEMA, prompt, stop_at=["@@"])
    body = script.requests[0][1]
    assert (result.response, means(result)) == (WHOLE, ["native"])
    assert body["output_config"]["format"]["type"] == "json_schema"
    assert (body["system"], body["stop_sequences"]) == ("Be brief.", ["@@"])
    assert [message["role"] for message in body["messages"]] == ["user"]
    usage = result.usage
    assert (usage.prompt_tokens, usage.output_tokens, usage.cached_tokens) == (10, 5, 3)


def test_older_models_of_anthropic_are_prefilled_without_blanks() -> None:
    anthropic = pytest.importorskip("anthropic")
    parts = ['{"size": "small", ', ' "n": 7}']

    def answer(body: dict[str, Any], number: int) -> Any:
        return parts[number - 1], "max_tokens" if number == 1 else "end_turn"

    with served(answer) as (address, script):
        client = anthropic.Anthropic(base_url=address, api_key="k", max_retries=0)
        model = stencilm.from_anthropic(client, "m", capabilities="anthropic-prefill")
        result = stencilm.guide(model, SCHEMA, "p")
    assert result.response == WHOLE
    assert script.requests[1][1]["messages"][-1] == {
        "role": "assistant",
        "content": '{"size": "small",',
    }


def test_capabilities_can_be_tried() -> None:
    def answer(body: dict[str, Any], number: int) -> Any:
        if "response_format" in body:
            raise Fault("400")
        if "tools" in body:
            return {"tool": "x1"}
        return "7" if "logit_bias" in body else "1"

    with endpoint(answer, "openai", tokenizer_info=BYTES) as (model, _):
        found = model.probe()
    assert found["grammar"] == "wrote 'x1', which is not in the grammar"
    assert found["draft"] == found["choice"] == found["logit_bias"] == "works"
    assert found["native"].startswith("BadRequestError")
    awaited = stencilm.from_openai(openai.AsyncOpenAI(api_key="k"), "m")
    with pytest.raises(TypeError, match="make a model of 'm' with a synchronous client"):
        awaited.probe()


def test_what_is_missing_is_named(monkeypatch: Any) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(stencilm.ModelError, match="OPENAI_API_KEY"):
        stencilm.from_openai(None, "m")
    with pytest.raises(ValueError, match="name of a model"):
        stencilm.from_openai(None, "")
    with pytest.raises(ValueError, match="capabilities is 'grok', but must be"):
        stencilm.from_openai(None, "m", capabilities="grok")
