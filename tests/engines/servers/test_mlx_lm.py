"""The server of mlx-lm, which takes no schema: what is reached from our side all the same."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import stencilm
from engines.servers.serving import chat_folder, free_port, running
from grammar_kinds import KINDS, Kind, check_text

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed: pip install 'stencilm[mlx]'")
openai = pytest.importorskip("openai")

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


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    place = tmp_path_factory.mktemp("mlx")
    folder, port = chat_folder(place), free_port()
    command = [sys.executable, "-m", "mlx_lm", "server", "--model", str(folder)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with running(command, port, place / "server.log") as url:
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=1, timeout=300)
        info = stencilm.load("tiny").tokenizer_info
        yield stencilm.from_openai(client, str(folder), capabilities=SERVED, tokenizer_info=info)


def test_it_can_do_what_is_declared(model: Any) -> None:
    found = model.probe()
    assert found["draft"] == "works" and found["logit_bias"] == "works", found


def test_a_text_is_guided_to_its_end(model: Any) -> None:
    budget = stencilm.Budget(calls=8, tokens=80, seconds=400)
    result = stencilm.guide(
        model, stencilm.JsonSchema(PERSON), "Describe a person as JSON.\n", budget=budget
    )
    assert result.is_valid, result
    person = json.loads(result.response)
    assert set(person) == {"name", "age"} and 0 <= person["age"] <= 120


def test_a_bias_reaches_what_the_model_would_not_write(model: Any) -> None:
    colour = stencilm.Grammar.from_ebnf('root ::= "The colour is " ("red" | "green") "."')
    budget = stencilm.Budget(calls=12, tokens=60, seconds=400)
    result = stencilm.guide(
        model, colour, "Describe a person as JSON.\n", budget=budget, max_grammar_corrections=8
    )
    assert result.response in ("The colour is red.", "The colour is green.")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_texts_of_every_kind_of_grammar(model: Any, kind: Kind) -> None:
    budget = stencilm.Budget(calls=12, tokens=80, seconds=400)
    result = stencilm.guide(
        model,
        kind.output_type,
        "Describe a person as JSON.\n",
        budget=budget,
        max_grammar_corrections=8,
    )
    assert result.is_valid, result
    check_text(kind, result.response)
