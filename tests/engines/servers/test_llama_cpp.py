"""The server of llama-cpp-python: what is reached from our side."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import stencilm
from engines.servers.serving import free_port, running
from grammar_kinds import KINDS, Kind, check_text
from stencilm.endpoints.capabilities import PRESETS

pytest.importorskip("llama_cpp", reason="pip install 'llama-cpp-python[server]' gguf")
pytest.importorskip("starlette_context", reason="pip install 'llama-cpp-python[server]'")
pytest.importorskip("gguf")
openai = pytest.importorskip("openai")

from gguf_files import write_tiny  # noqa: E402

pytestmark = pytest.mark.slow

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
SERVED = stencilm.Capabilities(continuation="completion", logit_bias=True, bias=100.0, seed=True)
PROMPT = "Describe a person as JSON.\n"
BUDGET = stencilm.Budget(calls=12, tokens=200, seconds=400)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    place = tmp_path_factory.mktemp("llama")
    write_tiny(place / "tiny.gguf")
    port = free_port()
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(place / "tiny.gguf")]
    command += ["--model_alias", "tiny", "--n_ctx", "512", "--n_threads", "1"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--interrupt_requests", "false"]
    with running(command, port, place / "server.log") as url:
        yield openai.OpenAI(base_url=url, api_key="none", max_retries=1, timeout=300)


def served(client: Any, capabilities: stencilm.Capabilities) -> Any:
    folder = str(stencilm.__file__).replace("__init__.py", "tiny")
    info = stencilm.TokenizerInfo.from_file(folder)
    return stencilm.from_openai(client, "tiny", capabilities=capabilities, tokenizer_info=info)


def test_it_can_do_what_is_declared(client: Any) -> None:
    found = served(client, SERVED).probe()
    assert found["draft"] == "works" and found["logit_bias"] == "works", found


def test_a_text_is_guided_to_its_end(client: Any) -> None:
    model = served(client, SERVED)
    result = stencilm.guide(model, stencilm.JsonSchema(PERSON), PROMPT, budget=BUDGET)
    assert result.is_valid, result
    person = json.loads(result.response)
    assert set(person) == {"name", "age"} and 0 <= person["age"] <= 120


def test_a_bias_reaches_what_the_model_would_not_write(client: Any) -> None:
    colour = stencilm.Grammar.from_ebnf('root ::= "The colour is " ("red" | "green") "."')
    result = stencilm.guide(
        served(client, SERVED), colour, PROMPT, budget=BUDGET, max_grammar_corrections=8
    )
    assert result.response in ("The colour is red.", "The colour is green.")


@pytest.mark.parametrize(
    ("grammar", "pattern"),
    [
        (stencilm.Ebnf('root ::= "The colour is " ("red" | "green") "."'), r"The colour is \w+\."),
        (stencilm.Regex("[A-Z]{2}-[0-9]{4}"), "[A-Z]{2}-[0-9]{4}"),
        (stencilm.Regex("(ab|)*[.]"), "(ab|)*[.]"),
        (stencilm.Regex("([a-c]{1,63}[.]){1,127}"), "([a-c]{1,63}[.]){1,127}"),
    ],
    ids=["EBNF", "Regex", "what may be empty", "counts within counts"],
)
def test_a_grammar_is_enforced_there(client: Any, grammar: Any, pattern: str) -> None:
    """As plain GBNF: a grammar that llama.cpp cannot read ends the whole server."""
    model = served(client, replace(SERVED, native=("guided_grammar",)))
    result = stencilm.guide(model, grammar, PROMPT, budget=BUDGET)
    assert re.fullmatch(pattern, result.response), result
    assert result.is_valid and result.usage.calls == 1


def test_a_schema_that_the_server_ignores_is_guided(client: Any) -> None:
    """llama.cpp's own server reads the field that carries the schema; this one does not."""
    model = served(client, replace(SERVED, native=("guided_grammar",)))
    result = stencilm.guide(model, stencilm.JsonSchema(PERSON), PROMPT, budget=BUDGET)
    assert result.is_valid, result
    assert 0 <= json.loads(result.response)["age"] <= 120


@pytest.mark.parametrize("is_enforced", [True, False], ids=["enforced", "guided"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_texts_of_every_kind_of_grammar(client: Any, kind: Kind, is_enforced: bool) -> None:
    """With the preset, and without what it declares of grammars. GBNF can say no structural tag."""
    capabilities = PRESETS["llama.cpp"] if is_enforced else SERVED
    result = stencilm.guide(
        served(client, capabilities),
        kind.output_type,
        PROMPT,
        budget=BUDGET,
        max_grammar_corrections=8,
    )
    assert result.is_valid, result
    check_text(kind, result.response)
    if is_enforced and kind is not KINDS["structural tags"]:
        assert result.usage.calls == 1 and not result.filled


def test_requests_that_come_at_once_are_all_answered(client: Any) -> None:
    """Unless it is told otherwise, this server ends a stream when the next request comes."""
    kind = KINDS["patterns"]
    model = served(client, PRESETS["llama.cpp"])
    texts = model.batch([f"{PROMPT}{number}:" for number in range(6)], kind.output_type)
    assert len(texts) == 6
    for text in texts:
        check_text(kind, text)
