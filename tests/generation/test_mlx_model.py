"""The MLX backend: the embedded model and small random ones of mlx-lm, with real prompt caches."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, Field

import stencilm
from grammar_kinds import KINDS, Kind, check_model
from stencilm.errors import ModelError

mx = pytest.importorskip("mlx.core")
mlx_lm = pytest.importorskip("mlx_lm")
transformers = pytest.importorskip("transformers")

from mlx_lm.models import gemma3_text, llama, mamba  # noqa: E402

FOLDER = str(Path(stencilm.__file__).parent / "tiny")
PROMPT = "Describe a person as JSON.\n"


class Person(BaseModel):
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=120)


@pytest.fixture(scope="module")
def model() -> Any:
    return stencilm.from_mlx(*mlx_lm.load(FOLDER))


def tokenizer(**options: Any) -> Any:
    return transformers.AutoTokenizer.from_pretrained(FOLDER, **options)


SIZES: dict[str, Any] = {
    "model_type": "any",
    "vocab_size": 4610,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "intermediate_size": 64,
}
HEADS: dict[str, Any] = {"num_attention_heads": 4, "rms_norm_eps": 1e-6}


def random_llama() -> Any:
    """Of another width than its tokenizer, and in bfloat16, which NumPy lacks."""
    mx.random.seed(0)
    made = llama.Model(
        llama.ModelArgs(**SIZES, **HEADS, num_key_value_heads=2, max_position_embeddings=64)
    )
    made.set_dtype(mx.bfloat16)
    return made


def random_gemma() -> Any:
    """Sliding windows of 4 tokens, which cannot go back once they are full, beside full layers."""
    mx.random.seed(0)
    return gemma3_text.Model(
        gemma3_text.ModelArgs(
            **SIZES,
            **HEADS,
            num_key_value_heads=1,
            head_dim=8,
            sliding_window=4,
            sliding_window_pattern=2,
        )
    )


def random_mamba() -> Any:
    """A recurrent model: its state cannot be cut."""
    mx.random.seed(0)
    return mamba.Model(
        mamba.ModelArgs(
            **SIZES,
            state_size=4,
            conv_kernel=3,
            use_bias=False,
            use_conv_bias=False,
            time_step_rank=4,
        )
    )


def backend(made: Any) -> Any:
    return stencilm.from_mlx(made, tokenizer()).backend


def full_pass(made: Any, token_ids: list[int]) -> Any:
    """The slow twin: the whole sequence at once, without a cache."""
    return np.array(made(mx.array([token_ids]))[0, -1].astype(mx.float32))


@pytest.mark.parametrize("make", [random_llama, random_gemma, random_mamba])
def test_any_way_to_a_sequence_gives_the_same_logits(make: Any) -> None:
    made = make()
    sequence = backend(made).start([1, 2, 3])
    tolerance = 0.05 if make is random_llama else 1e-4  # bfloat16 has 8 bits

    def agree(logits: Any, token_ids: list[int]) -> None:
        assert (logits.dtype, logits.shape) == (np.float32, (4610,))
        assert sequence.num_tokens == len(token_ids)
        np.testing.assert_allclose(logits, full_pass(made, token_ids), atol=tolerance)

    agree(sequence.append([]), [1, 2, 3])
    agree(sequence.append([]), [1, 2, 3])  # asking twice changes nothing
    agree(sequence.append([4]), [1, 2, 3, 4])
    agree(sequence.append([5, 6, 7]), [1, 2, 3, 4, 5, 6, 7])
    sequence.crop(5)
    agree(sequence.append([]), [1, 2, 3, 4, 5])
    sequence.crop(2)
    agree(sequence.append([9, 10, 11, 12, 13, 14]), [1, 2, 9, 10, 11, 12, 13, 14])
    rows = sequence.append_rows([15, 16], 3)
    assert rows.shape == (3, 4610)
    agree(rows[-1], [1, 2, 9, 10, 11, 12, 13, 14, 15, 16])
    sequence.crop(0)
    agree(sequence.append([8]), [8])


def test_a_cut_keeps_the_cache_and_long_texts_are_read_in_pieces() -> None:
    made = mlx_lm.load(FOLDER)[0]
    sequence = backend(made).start([1, *range(300, 900)])
    np.testing.assert_allclose(
        sequence.append([]), full_pass(made, [1, *range(300, 900)]), atol=0.05
    )
    assert sequence.num_cached == 601
    sequence.crop(500)
    assert sequence.num_cached == 500
    sequence.append([5, 6])
    assert sequence.num_cached == 502


def test_the_caller_may_write_into_the_logits() -> None:
    sequence = backend(random_llama()).start([1])
    sequence.append([])[:] = 0
    assert np.abs(sequence.append([])).max() > 0


def test_facts_of_the_model() -> None:
    found = backend(random_llama())
    assert found.tokenizer_info.vocab_size == 4610  # the logits' width, not the tokenizer's
    assert found.tokenizer_info.stop_token_ids == [2]
    assert found.context_size == 64
    with pytest.raises(ModelError, match="at most 64"):
        found.start([1] * 60).append([2] * 5)
    wrapped = mlx_lm.load(FOLDER)[1]
    wrapped.eos_token_ids = {2, 3}
    assert stencilm.from_mlx(random_llama(), wrapped).tokenizer_info.stop_token_ids == [2, 3]


def test_a_model_that_also_sees_says_its_sizes_in_the_text_part() -> None:
    made = random_llama()
    for text in ({"max_position_embeddings": 7}, SimpleNamespace(max_position_embeddings=7)):
        made.args = SimpleNamespace(text_config=text, tie_word_embeddings=True)
        assert backend(made).context_size == 7


def test_prompts(model: Any) -> None:
    template = "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
    assert model.backend.encode("hi") == tokenizer().encode("hi")
    assert model.backend.encode("") == [1]
    messages = [{"role": "user", "content": "hi"}]
    decode = model.tokenizer_info.decode_str
    assert decode(model.backend.encode(messages)) == "hi\n"  # through mlx-lm's wrapper
    bare = tokenizer()
    bare.chat_template = None
    with pytest.raises(ModelError, match="no chat template"):
        stencilm.from_mlx(model.backend.model, bare).backend.encode(messages)
    chatting = stencilm.from_mlx(model.backend.model, tokenizer(chat_template=template))
    assert chatting.tokenizer_info.decode_str(chatting.backend.encode(messages)) == "[user]hi"


def test_what_is_no_model_of_mlx_is_named() -> None:
    with pytest.raises(TypeError, match=r"mlx_model is 'tiny', but must be a model of mlx-lm"):
        stencilm.from_mlx("tiny", tokenizer())


def test_it_writes_what_the_transformers_backend_writes(model: Any) -> None:
    pytest.importorskip("torch")
    twin = stencilm.load("tiny")
    assert model.tokenizer_info == twin.tokenizer_info
    for prompt in (PROMPT, "A woman: "):
        one, other = model.generate(prompt, Person), twin.generate(prompt, Person)
        assert one.text == other.text
        assert one.stats.forced_tokens == other.stats.forced_tokens > 0
        assert one.stats.forward_passes == other.stats.forward_passes


def test_every_way_to_write(model: Any) -> None:
    person = model(PROMPT, Person)
    assert isinstance(person, Person)
    assert list(model.stream(PROMPT, Person))[-1] == person
    assert model.batch([PROMPT, PROMPT], Person) == [person, person]
    drawn = {"temperature": 1.0, "seed": 3}
    assert model(PROMPT, Person, **drawn) == model(PROMPT, Person, **drawn)
    with pytest.raises(ModelError, match="beams need a model that runs batches"):
        model.beam_search(PROMPT, Person)

    async def together() -> list[Any]:
        return list(await asyncio.gather(*[model.agenerate(PROMPT, Person) for _ in range(3)]))

    assert [generation.value for generation in asyncio.run(together())] == [person] * 3


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_texts_of_every_kind_of_grammar(model: Any, kind: Kind) -> None:
    check_model(model, kind, PROMPT)


def test_guide_cuts_the_cache(model: Any) -> None:
    date = stencilm.Regex(r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")
    guided = stencilm.guide(model, date, "A date: ")
    assert guided.status == "valid"
    assert len(guided.response) == 10
