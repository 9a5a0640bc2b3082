"""The transformers backend, with small random models made on the spot: no network, no weights."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import damage
from generation.small_models import (
    TEMPLATE,
    byte_tokenizer,
    random_llama,
    random_mamba,
    random_mistral,
    torch,
)
from stencilm.errors import ModelError, StencilError


def backend(model: Any, tokenizer: Any | None = None) -> Any:
    from stencilm.models.transformers import TransformersModel

    return TransformersModel(model, byte_tokenizer() if tokenizer is None else tokenizer)


def full_pass(model: Any, token_ids: list[int]) -> Any:
    """The slow twin: the whole sequence at once, without a cache."""
    with torch.no_grad():
        return model(input_ids=torch.tensor([token_ids])).logits[0, -1].numpy()


@pytest.mark.parametrize("make", [random_llama, random_mistral, random_mamba])
def test_any_way_to_a_sequence_gives_the_same_logits(make: Any) -> None:
    model = make()
    sequence = backend(model).start([1, 2, 3])

    def agree(logits: Any, token_ids: list[int]) -> None:
        assert (logits.dtype, logits.shape) == (np.float32, (264,))
        assert sequence.num_tokens == len(token_ids)
        np.testing.assert_allclose(logits, full_pass(model, token_ids), atol=1e-5)

    agree(sequence.append([]), [1, 2, 3])
    agree(sequence.append([]), [1, 2, 3])  # asking twice changes nothing
    agree(sequence.append([4]), [1, 2, 3, 4])
    agree(sequence.append([5, 6, 7]), [1, 2, 3, 4, 5, 6, 7])
    sequence.crop(5)
    agree(sequence.append([]), [1, 2, 3, 4, 5])
    sequence.crop(2)
    agree(sequence.append([9, 10, 11, 12, 13, 14]), [1, 2, 9, 10, 11, 12, 13, 14])
    sequence.crop(0)
    agree(sequence.append([8]), [8])


def test_the_caller_may_write_into_the_logits() -> None:
    sequence = backend(random_llama()).start([1])
    logits = sequence.append([])
    logits[:] = 0
    assert np.abs(sequence.append([])).max() > 0


def test_sequences_of_one_model_are_independent() -> None:
    model = random_llama()
    shared = backend(model)
    first, second = shared.start([1, 2]), shared.start([3])
    first.append([])
    second.append([4])
    np.testing.assert_allclose(first.append([5]), full_pass(model, [1, 2, 5]), atol=1e-5)


@pytest.mark.parametrize("num_tokens", [-1, 4])
def test_cropping_to_more_than_there_is_is_refused(num_tokens: int) -> None:
    sequence = backend(random_llama()).start([1, 2, 3])
    with pytest.raises(ValueError, match="cannot keep"):
        sequence.crop(num_tokens)


def test_a_sequence_that_outgrows_the_context_is_refused_and_unchanged() -> None:
    sequence = backend(random_llama()).start([1] * 60)
    with pytest.raises(ModelError, match="at most 64"):
        sequence.append([2] * 5)
    assert sequence.num_tokens == 60
    assert sequence.append([2] * 4).shape == (264,)


def test_an_empty_sequence_has_no_next_token() -> None:
    with pytest.raises(ModelError, match="empty"):
        backend(random_llama()).start([]).append([])


def test_facts_of_the_model() -> None:
    model = random_llama()
    model.generation_config.eos_token_id = [257, 3]
    found = backend(model)
    assert found.tokenizer_info.vocab_size == 264  # the logits' width, not the tokenizer's 258
    assert sorted(found.tokenizer_info.stop_token_ids) == [3, 257]
    assert found.context_size == 64
    assert not model.training


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("hi", "hi"),
        ("", "<s>"),  # an empty prompt starts a document
        ([{"role": "user", "content": "hi"}], "[user]hi[assistant]"),
    ],
)
def test_prompts(prompt: Any, text: str) -> None:
    found = backend(random_llama(), byte_tokenizer(chat_template=TEMPLATE))
    assert found.tokenizer.decode(found.encode(prompt)) == text


def test_messages_need_a_chat_template() -> None:
    with pytest.raises(ModelError, match="no chat template"):
        backend(random_llama()).encode([{"role": "user", "content": "hi"}])


def test_a_folder_loads(tmp_path: Path) -> None:
    from stencilm.models.model import load

    model = random_llama()
    model.save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    loaded = load(tmp_path, dtype="float32")
    logits = loaded.backend.start([1, 2]).append([])
    np.testing.assert_allclose(logits, full_pass(model, [1, 2]), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("./no/such/folder", "no model folder"),
        ("two words", "no model folder"),
        ("", "no model folder"),
        ("no-such-organisation/no-such-model", "no-such-organisation/no-such-model"),
    ],
)
def test_unknown_models_are_named(name: str, word: str, monkeypatch: Any) -> None:
    from stencilm.models.model import load

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=word) as caught:
        load(name)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    from stencilm.models.model import load

    with pytest.raises(ModelError, match=r"no config\.json"):
        load(tmp_path)


def test_an_unknown_dtype_is_named(tmp_path: Path) -> None:
    from stencilm.models.model import load

    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="'float33' is not a torch dtype"):
        load(tmp_path, dtype="float33")


CODE = """
import pathlib
pathlib.Path({marker!r}).write_text("ran")
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
class OwnConfig(LlamaConfig):
    model_type = "own"
class OwnModel(LlamaForCausalLM):
    config_class = OwnConfig
class OwnTokenizer(PreTrainedTokenizerFast):
    pass
"""


@pytest.mark.parametrize("model_type", ["own", "llama"])
@pytest.mark.parametrize("part", ["model", "tokenizer"])
def test_no_code_of_a_folder_is_run(tmp_path: Path, model_type: str, part: str) -> None:
    from stencilm.models.model import load

    marker = tmp_path / "ran.txt"
    random_llama().save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    (tmp_path / "own.py").write_text(CODE.format(marker=str(marker)))
    if part == "model":
        path = tmp_path / "config.json"
        names: dict[str, Any] = {
            "AutoConfig": "own.OwnConfig",
            "AutoModelForCausalLM": "own.OwnModel",
        }
    else:
        path = tmp_path / "tokenizer_config.json"
        names = {"AutoTokenizer": [None, "own.OwnTokenizer"]}
    described = json.loads(path.read_text()) | {"auto_map": names}
    if part == "model":
        described["model_type"] = model_type
    path.write_text(json.dumps(described))
    try:
        load(tmp_path, dtype="float32")
    except ModelError as error:
        assert "does not run" in str(error) and "from_transformers" in str(error)
    assert not marker.exists()
    with pytest.raises(ModelError, match="load takes no trust_remote_code=True"):
        load(tmp_path, trust_remote_code=True)
    assert not marker.exists()


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    from stencilm.models.model import load

    model = random_llama()
    model.save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    assert load(tmp_path, dtype="float32", trust_remote_code=False, use_safetensors=True)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="from_transformers"):
        load(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pickled \(pytorch_model\.bin\).*save_pretrained"):
        load(tmp_path)
    with pytest.raises(ModelError, match="load takes no use_safetensors=False"):
        load(tmp_path, use_safetensors=False)


def test_missing_weights_are_not_made_up(tmp_path: Path) -> None:
    """transformers fills them in at random, and only warns."""
    from safetensors.torch import load_file, save_file

    from stencilm.models.model import load

    random_llama().save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["model.layers.0.mlp.up_proj.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lack the weights 'model\.layers\.0\.mlp\.up_proj"):
        load(tmp_path)


def test_a_damaged_folder_is_a_model_error_or_works(tmp_path: Path) -> None:
    """transformers, tokenizers and safetensors each raise what they like, and panic."""
    from stencilm.models.model import load

    random_llama().save_pretrained(tmp_path)
    byte_tokenizer(chat_template=TEMPLATE).save_pretrained(tmp_path)
    files = {path.name: path.read_bytes() for path in sorted(tmp_path.iterdir())}
    for seed in range(60):
        draws = random.Random(seed)
        name = draws.choice(sorted(files))
        if name.endswith(".json") and draws.random() < 0.8:
            data = json.dumps(damage.damaged_json(json.loads(files[name]), draws)).encode()
        else:
            data = damage.damaged_bytes(files[name], draws)
        for file, content in (files | {name: data}).items():
            (tmp_path / file).write_bytes(content)
        try:
            model = load(tmp_path, dtype="float32")
            asked = [{"role": "user", "content": "a"}]
            model.backend.start(model.backend.encode(asked)).append([])
        except StencilError as error:
            assert "\n" not in str(error), seed


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[0]['content'] / 0 }}", "cannot write them: TypeError"),
        ("{% for m in messages %}", "cannot write them"),
    ],
)
def test_a_chat_template_that_fails_is_a_model_error(template: str, said: str) -> None:
    model = backend(random_llama(), byte_tokenizer(chat_template=template))
    with pytest.raises(ModelError, match=said):
        model.encode([{"role": "user", "content": "a"}])


def test_a_token_beyond_the_embeddings_is_refused() -> None:
    """On a GPU it would break every later pass of the process."""
    model = backend(random_llama(vocab_size=200))
    with pytest.raises(ModelError, match="token 220 is beyond the 200 rows"):
        model.start([1, 220]).append([])


def test_models_that_predict_no_next_token_are_refused() -> None:
    """Some would write values that they were never asked for."""
    import transformers

    import stencilm

    small: dict[str, Any] = {"vocab_size": 264, "d_model": 16, "d_kv": 8, "d_ff": 16}
    encoder = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}
    of_bert = transformers.BertConfig(vocab_size=264, num_hidden_layers=1, **encoder)
    llama = random_llama()
    cases: list[tuple[Any, str]] = [
        (
            transformers.T5ForConditionalGeneration(
                transformers.T5Config(num_layers=1, num_heads=2, **small)
            ),
            "T5ForConditionalGeneration, which has an encoder.*LogitsProcessor to its generate",
        ),
        (transformers.BertForMaskedLM(of_bert), "BertForMaskedLM, which predicts no next token"),
        (llama.model, "LlamaModel, which predicts no next token.*AutoModelForCausalLM"),
    ]
    for model, message in cases:
        with pytest.raises(TypeError, match=message):
            stencilm.from_transformers(model, byte_tokenizer())
    assert stencilm.from_transformers(llama, byte_tokenizer())("x", bool) in (True, False)


def test_more_layers_than_weights_are_refused_before_they_are_made(tmp_path: Path) -> None:
    from stencilm.models.model import load

    random_llama().save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    described = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(described | {"num_hidden_layers": 10**8}))
    with pytest.raises(ModelError, match=r"tells of 100000000 layers, but its files hold \d+"):
        load(tmp_path)
