"""The embedded model in NumPy: held to the same model in transformers, and loaded without torch."""

from __future__ import annotations

import subprocess
import sys
from random import Random
from typing import Any

import numpy as np
import pytest

import stencilm
from stencilm.models.embedded import EmbeddedModel
from stencilm.models.model import Model
from stencilm.models.protocol import DraftSequence, LanguageModel
from stencilm.tokenizers.embedded import SAVED, saved

WITHOUT = ("jinja2", "safetensors", "tokenizers", "torch", "transformers")
TEXTS = ["", "Describe a person as JSON.\n", "x\n", "Zoë ▁a  b\t", "<s> and </s>", "🙂 你好"]
MESSAGES = [
    {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "!"}]},
    {"role": "assistant", "content": "Yes?"},
]


@pytest.fixture(scope="module")
def embedded() -> EmbeddedModel:
    return EmbeddedModel()


@pytest.fixture(scope="module")
def twin() -> Any:
    pytest.importorskip("transformers")
    pytest.importorskip("torch")
    return stencilm.load("tiny").backend


def test_the_saved_tokenizer_is_that_of_the_model() -> None:
    pytest.importorskip("tokenizers")
    hint = "python -m stencilm.tokenizers.embedded writes it anew"
    assert SAVED.read_text(encoding="utf-8") == saved(), hint


def test_it_is_a_language_model(embedded: EmbeddedModel) -> None:
    assert isinstance(embedded, LanguageModel)
    assert isinstance(embedded.start([1]), DraftSequence)


@pytest.mark.parametrize("prompt", [*TEXTS, MESSAGES], ids=repr)
def test_prompts_are_encoded_alike(embedded: EmbeddedModel, twin: Any, prompt: Any) -> None:
    assert embedded.encode(prompt) == twin.encode(prompt)


def test_logits_are_those_of_transformers(embedded: EmbeddedModel, twin: Any) -> None:
    random = Random(5)
    ids = embedded.encode(TEXTS[1])
    one, other = embedded.start(ids), twin.start(ids)
    np.testing.assert_allclose(one.append([]), other.append([]), atol=1e-3)
    for _ in range(12):
        more = [random.randrange(embedded.tokenizer_info.vocab_size) for _ in range(4)]
        found, expected = one.append_rows(more, 2), other.append_rows(more, 2)
        assert found.dtype == np.float32 and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, atol=1e-3)
        if random.random() < 0.4:
            keep = random.randrange(1, one.num_tokens)
            one.crop(keep)
            other.crop(keep)
    found[:] = 0  # the caller may write into it
    np.testing.assert_allclose(one.append([]), other.append([]), atol=1e-3)


def test_a_sequence_has_the_context_of_the_model(embedded: EmbeddedModel) -> None:
    with pytest.raises(stencilm.ModelError, match="at most 1024"):
        embedded.start([1] * 1025).append([])


def test_it_writes_values(embedded: EmbeddedModel) -> None:
    model = Model(embedded)
    assert model("A number:", stencilm.Regex("[0-9]{3}")).isdecimal()
    assert repr(model) == "<Model: tiny>"
    assert model.batch(["a", "b"], bool) in ([a, b] for a in (True, False) for b in (True, False))


PROGRAM = """
import sys
from dataclasses import dataclass
for name in {without}:
    sys.modules[name] = None
import stencilm

@dataclass
class Person:
    name: str
    age: int

model = stencilm.load("tiny")
person = model("Describe a person as JSON.\\n", Person)
assert isinstance(person, Person) and isinstance(person.age, int), person
assert isinstance(model([dict(role="user", content="A number:")], int), int)
print(type(model.backend).__name__)
"""


def test_typed_objects_need_no_framework() -> None:
    command = [sys.executable, "-c", PROGRAM.format(without=WITHOUT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "EmbeddedModel\n", done.stderr


def test_what_only_a_framework_can_do_names_its_extra() -> None:
    program = f"import sys\nfor name in {WITHOUT}: sys.modules[name] = None\n" + (
        "import stencilm; stencilm.load('tiny', device='cpu')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'stencilm[transformers]'" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["generate", "--regex", "[0-9]{2}", "-p", "A number:"],
        ["generate", "--regex", "[0-9]{2}", "-p", "A number:", "--strategy", "guide"],
        ["check", "--regex", "a"],
        ["convert", "--regex", "a"],
        ["explain", "--regex", "ab", "--text", "a"],
        ["mask", "--regex", "ab"],
        ["trace", "ab", "--regex", "ab"],
        ["index", "--regex", "ab"],
        ["bench", "--regex", "ab", "--rounds", "1"],
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_every_command_runs_without_extras(arguments: list[str]) -> None:
    program = f"import sys\nfor name in {WITHOUT}: sys.modules[name] = None\n" + (
        f"from stencilm.cli import main; sys.exit(main({arguments}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
