"""The embedded model `tiny`: small, loadable, lossless on any text, and often right unmasked."""

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from training.corpus import is_held_out
from training.prompts import Example

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

FOLDER = Path(__file__).parents[2] / "python" / "stencilm" / "tiny"
LARGEST = 8_000_000
FENCE = "\n```"

# Prompts that training holds out by their checksum, so none of them was ever learnt from.
HELD_OUT = (
    "Describe a user.\n```json\n",
    "Generate an order as JSON.\n",
    "Give me a blog post as JSON.\n",
    "Describe a product as JSON with the keys name, in_stock, size, color, discount and id.\n",
    "Return a JSON object with these keys: wild, url and genre.\n",
    "Fields: start, members. Answer as JSON.\n",
    "Question: Miriam has 19 boots. How many?\nJSON answer: ",
    "Julia Okafor works as a clerk in Geneva.\nAs JSON:\n",
    "The blue pillow costs 58 dollars.\nAs JSON:\n",
    "Write 5 books as JSON.\n",
    "List 8 animals as a JSON array.\n",
    "What is the weather in Vilnius?\nTool call: ",
)

TEXTS = {
    "empty": "",
    "json": '{"name": "Ann", "tags": ["a", "b"], "age": 3.5e-7, "none": null}\n',
    "pretty json": '{\n  "a": [\n    {\n\t"b": {}\n    }\n  ]\n}\n\n',
    "blanks": " ",
    "runs of blanks": "  a   b" + " " * 37 + "c ",
    "tabs and newlines": "\t\t\n\r\n\n \n\t x\r",
    "controls": "\x01\x02\x07\x08\x0b\x0c\x1b\x1f\x7f\x80\x9f",
    "accents": "Zoë, Łukasz & Žižek: naïve cafés… e\u0301",
    "cjk": "你好世界。日本語のテキスト 한국어",
    "right to left": "שלום سلام",
    "emoji": "🙂 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001f468\u200d\U0001f469\u200d\U0001f467 é🎉",
    "rare": "𒀀𓀀\U0010ffff\ufffd\ufeff\u2028\xa0",
    "metaspace": "▁a ▁▁ b▁",
    "spelt bytes": "<0x41> <0xE2><0x96><0x81> <0x00>",
}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def model() -> Any:
    loaded = transformers.AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32)
    return loaded.eval()


def answer(model: Any, tokenizer: Any, prompt: str) -> str:
    """The greedy answer, up to the end of text or the closing fence."""
    inputs = tokenizer(prompt, return_tensors="pt")
    with torch.inference_mode():
        tokens = model.generate(
            inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            max_new_tokens=250,
            do_sample=False,
        )
    new = tokens[0, inputs["input_ids"].shape[1] :]
    text: str = tokenizer.decode(new, skip_special_tokens=True)
    return text.split(FENCE, 1)[0]


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_weights_are_small() -> None:
    assert (FOLDER / "model.safetensors").stat().st_size <= LARGEST


def test_weights_compress() -> None:
    assert len(zlib.compress((FOLDER / "model.safetensors").read_bytes())) <= 2_600_000


def test_it_is_a_llama_with_its_own_tokenizer(model: Any, tokenizer: Any) -> None:
    assert model.config.architectures == ["LlamaForCausalLM"]
    assert model.config.max_position_embeddings >= 1024
    assert len(tokenizer) >= 4096
    assert len(tokenizer) == model.config.vocab_size
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.unk_token) == (
        "<s>",
        "</s>",
        "<unk>",
    )
    assert tokenizer.eos_token_id == model.config.eos_token_id
    assert tokenizer.eos_token_id == model.generation_config.eos_token_id
    assert tokenizer.pad_token_id is not None


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_text_survives_a_round_trip(tokenizer: Any, text: str) -> None:
    tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.unk_token_id not in tokens
    assert tokenizer.decode(tokens) == text
    assert tokenizer.decode([tokenizer.bos_token_id, *tokens], skip_special_tokens=True) == text


def test_rare_characters_are_spelt_in_bytes(tokenizer: Any) -> None:
    assert all(f"<0x{byte:02X}>" in tokenizer.get_vocab() for byte in range(256))
    assert tokenizer.tokenize("𒀀") == ["<0xF0>", "<0x92>", "<0x80>", "<0x80>"]


@pytest.mark.parametrize(
    "token", ['{"', '": "', '", "', '": ', '"}', '", "', '",\n  "', "  ", "    "]
)
def test_json_punctuation_has_its_own_tokens(tokenizer: Any, token: str) -> None:
    assert len(tokenizer(token, add_special_tokens=False)["input_ids"]) == 1


@pytest.mark.parametrize("prompt", HELD_OUT)
def test_the_prompts_are_held_out(prompt: str) -> None:
    assert is_held_out(Example("any", prompt, ""))


def test_most_greedy_answers_are_valid_json(model: Any, tokenizer: Any) -> None:
    given = {prompt: answer(model, tokenizer, prompt) for prompt in HELD_OUT}
    wrong = {prompt: text for prompt, text in given.items() if not is_json(text)}
    assert len(wrong) <= len(HELD_OUT) // 2, wrong


@pytest.mark.parametrize("count", [10, 20])
def test_counted_objects_are_valid_json(model: Any, tokenizer: Any, count: int) -> None:
    prompt = f"Here is a JSON object, with {count} keys, using only string values:\n\n```json\n"
    assert is_json(answer(model, tokenizer, prompt))
