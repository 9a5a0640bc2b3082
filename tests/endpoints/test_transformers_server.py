"""A real OpenAI-compatible endpoint: transformers' own server with the embedded model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stencilm
from endpoints.serving import NEEDED, transformers_server
from grammar_kinds import KINDS, Kind, check_text
from stencilm import Budget, Capabilities, Grammar
from stencilm.endpoints.capabilities import PRESETS
from stencilm.generation.trace import Called

for _package in NEEDED:
    pytest.importorskip(_package)

openai = pytest.importorskip("openai")

PERSON = stencilm.JsonSchema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    }
)
COLOUR = Grammar.from_ebnf('root ::= "The colour is " ("red" | "green" | "blue") "."')
BUDGET = Budget(calls=6, tokens=40, seconds=400)


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[tuple[str, Path]]:
    """The address of the server, and the folder that names the model."""
    with transformers_server(tmp_path_factory.mktemp("served")) as found:
        yield found


def model(server: tuple[str, Path], capabilities: Capabilities) -> Any:
    address, folder = server
    client = openai.OpenAI(base_url=address, api_key="none", max_retries=1, timeout=300)
    info = stencilm.load("tiny").tokenizer_info
    return stencilm.from_openai(client, str(folder), capabilities=capabilities, tokenizer_info=info)


SERVED = PRESETS["transformers"]
# A schema in its prompt means nothing to this model, which has learnt to answer the prompt alone.
BARE = Capabilities(schema_in_prompt=False)


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (replace(SERVED, logit_bias=False, choice=False), "completion"),
        (replace(SERVED, logit_bias=False, choice=False, stream=False), "completion"),
        (replace(SERVED, logit_bias=False), "completion"),
        (SERVED, "completion"),
        (BARE, "instruct"),
        (replace(BARE, choice=False), "instruct"),
        (replace(BARE, logit_bias=True, bias=100.0, choice=False), "instruct"),
    ],
)
@pytest.mark.parametrize("grammar", [PERSON, COLOUR])
def test_every_rung_gives_valid_text_within_its_budget(
    server: tuple[str, Path], capabilities: Capabilities, expected: str, grammar: Any
) -> None:
    drafter = model(server, capabilities)
    prompt = "Describe a person as JSON.\n"
    options: dict[str, Any] = {"budget": BUDGET, "max_grammar_corrections": 8}
    if grammar is COLOUR and capabilities is not SERVED:
        # All that this model writes is persons; only a bias makes it say a colour.
        with pytest.raises(stencilm.ModelRefused, match="nothing that the model wrote fits"):
            stencilm.guide(drafter, grammar, prompt, **options)
        return
    result = stencilm.guide(drafter, grammar, prompt, **options)
    means = [event.means for event in result.trace if isinstance(event, Called)]
    assert expected in means
    assert not result.error, result.error
    assert result.is_valid and result.usage.calls <= BUDGET.calls
    if grammar is PERSON:
        person = json.loads(result.response)
        assert set(person) == {"name", "age"} and 0 <= person["age"] <= 120
    else:
        assert result.response in [f"The colour is {c}." for c in ("red", "green", "blue")]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_texts_of_every_kind_of_grammar(server: tuple[str, Path], kind: Kind) -> None:
    prompt = "Describe a person as JSON.\n"
    result = stencilm.guide(
        model(server, SERVED), kind.output_type, prompt, budget=BUDGET, max_grammar_corrections=8
    )
    assert result.is_valid, result
    check_text(kind, result.response)


def test_declared_capabilities_are_there(server: tuple[str, Path]) -> None:
    found = model(server, SERVED).probe()
    assert found.pop("choice") in ("works", "answered with no number")  # a very small model
    assert found == {"draft": "works", "logit_bias": "works"}


def test_the_served_model_drafts_what_the_local_one_does(server: tuple[str, Path]) -> None:
    local = stencilm.load("tiny")
    prompt = "Describe a person as JSON.\n"
    served = stencilm.guide(model(server, SERVED), PERSON, prompt, budget=BUDGET)
    assert (
        json.loads(served.response)["name"]
        == json.loads(stencilm.guide(local, PERSON, prompt, token_healing=False).response)["name"]
    )
