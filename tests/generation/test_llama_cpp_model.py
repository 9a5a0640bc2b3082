"""The llama.cpp backend: the embedded model as a GGUF file, and small random ones.

llama-cpp-python is built from source, which takes minutes, so set-up leaves it out. With it and
`gguf` installed these tests run: `pip install llama-cpp-python gguf`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, Field

import stencilm
from grammar_kinds import KINDS, Kind, check_model
from stencilm import TokenizerInfo, VocabType
from stencilm.errors import ModelError, TokenizerError

llama_cpp = pytest.importorskip("llama_cpp")
pytest.importorskip("gguf")

from gguf_files import write_random, write_tiny  # noqa: E402

PROMPT = "Describe a person as JSON.\n"


class Person(BaseModel):
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=120)


def opened(path: Path, **options: Any) -> Any:
    sizes = {"n_ctx": 512, "n_batch": 32, "n_threads": 1, "n_threads_batch": 1}
    return llama_cpp.Llama(model_path=str(path), verbose=False, **(sizes | options))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gguf")


@pytest.fixture(scope="module")
def tiny(folder: Path) -> Path:
    return write_tiny(folder / "tiny.gguf")


@pytest.fixture(scope="module")
def model(tiny: Path) -> Any:
    return stencilm.from_llama_cpp(opened(tiny))


def makers(folder: Path) -> dict[str, Any]:
    return {
        "tiny": lambda path: opened(write_tiny(path)),
        "gemma3": lambda path: opened(write_random(path, "gemma3"), swa_full=False),
        "mamba": lambda path: opened(write_random(path, "mamba")),
    }


@pytest.mark.parametrize("kind", ["tiny", "gemma3", "mamba"])
def test_any_way_to_a_sequence_gives_the_same_logits(kind: str, tmp_path: Path) -> None:
    make = makers(tmp_path)[kind]
    backend: Any = stencilm.from_llama_cpp(make(tmp_path / "one.gguf")).backend
    twin = make(tmp_path / "twin.gguf")  # the slow one: each text from its first token
    sequence = backend.start([1, 5, 6])

    def agree(logits: Any, token_ids: list[int]) -> None:
        assert (logits.dtype, logits.shape) == (np.float32, (4608,))
        assert sequence.num_tokens == len(token_ids)
        twin.reset()
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(twin.ctx), True)
        twin.eval(token_ids)
        row = llama_cpp.llama_get_logits_ith(twin.ctx, -1)
        expected = np.ctypeslib.as_array(row, shape=(4608,))
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(logits, expected, atol=0.02 * np.abs(expected).max())

    agree(sequence.append([]), [1, 5, 6])
    agree(sequence.append([]), [1, 5, 6])  # asking twice changes nothing
    agree(sequence.append([7]), [1, 5, 6, 7])
    agree(sequence.append([8, 9]), [1, 5, 6, 7, 8, 9])
    sequence.crop(4)
    agree(sequence.append([]), [1, 5, 6, 7])
    sequence.crop(2)
    agree(sequence.append([300, 301, 302]), [1, 5, 300, 301, 302])
    backend.start([1, 5, 400]).append([])  # another text takes the context
    rows = sequence.append_rows([303, 304], 3)
    assert rows.shape == (3, 4608)
    agree(rows[-1], [1, 5, 300, 301, 302, 303, 304])
    more = [number % 4000 + 300 for number in range(300)]  # longer than the window's memory
    grown = [1, 5, 300, 301, 302, 303, 304, *more]
    agree(sequence.append(more), grown)
    for length in (305, 302, 20):
        sequence.crop(length)
        agree(sequence.append([]), grown[:length])
    sequence.crop(0)
    agree(sequence.append([8]), [8])


def test_only_what_the_context_lacks_is_read(model: Any) -> None:
    llama = model.backend.llama
    read: list[int] = []
    decode = llama_cpp.llama_decode

    def counting(context: Any, batch: Any) -> int:
        read.append(batch.n_tokens)
        return int(decode(context, batch))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llama_cpp, "llama_decode", counting)
        sequence = model.backend.start([1, *range(300, 309)])
        sequence.append([])
        sequence.append([5, 6, 7])  # several tokens in one pass
        assert read == [10, 3]
        model.backend.start([1, *range(300, 309), 4]).append([])  # the prompt is there
        sequence.append([8])  # 4 stands where 5 stood
        assert read == [10, 3, 1, 4]
        assert llama.eval_tokens == llama.eval_tokens.__class__(
            [1, *range(300, 309), 5, 6, 7, 8], maxlen=512
        )
        sequence.append([9] * 40)  # in pieces of n_batch
        assert read == [10, 3, 1, 4, 32, 8]
        sequence.crop(3)
        sequence.append([4])
        assert read[6:] == [1]


def test_the_vocabulary_is_that_of_the_tokenizer(model: Any, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    twin = stencilm.load("tiny")
    assert model.tokenizer_info == twin.tokenizer_info
    assert model.tokenizer_info.vocab_type == VocabType.BYTE_FALLBACK
    assert model.tokenizer_info.stop_token_ids == [2]
    for prompt in ("", "hi", PROMPT):
        assert model.backend.encode(prompt) == twin.backend.encode(prompt)
    for prompt in (PROMPT, "A woman: "):
        one, other = model.generate(prompt, Person), twin.generate(prompt, Person)
        assert one.text == other.text
        assert one.stats.forced_tokens == other.stats.forced_tokens > 0
        assert one.stats.forward_passes == other.stats.forward_passes


def test_a_byte_level_vocabulary(tmp_path: Path) -> None:
    llama = opened(write_tiny(tmp_path / "bytes.gguf", byte_level=True))
    info = TokenizerInfo.from_llama_cpp(llama)
    assert info.vocab_type == VocabType.BYTE_LEVEL
    assert info.facts.missing_bytes == b"" and info.special_token_ids == [0, 1, 2, 3]
    assert info.decode_str(info.encode("naïve 🙂\n")) == "naïve 🙂\n"
    generation = stencilm.from_llama_cpp(llama).generate(PROMPT, Person, temperature=1.0, seed=1)
    assert isinstance(generation.value, Person)


def test_prompts(model: Any, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "hi"}]
    with pytest.raises(ModelError, match="no chat template"):
        model.backend.encode(messages)
    template = (
        "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
    )
    path = write_tiny(tmp_path / "chat.gguf", chat_template=template)
    chatting = stencilm.from_llama_cpp(opened(path))
    written = chatting.backend.encode(messages)
    assert written[0] == 1 and chatting.tokenizer_info.decode_str(written) == "[user]hi"


def test_limits_and_what_is_no_model(tiny: Path, model: Any) -> None:
    small = stencilm.from_llama_cpp(opened(tiny, n_ctx=256)).backend
    assert small.context_size == 256
    with pytest.raises(ModelError, match="at most 256"):
        small.start([1] * 200).append([2] * 57)
    assert small.start([1] * 200).append([2] * 56).shape == (4608,)
    with pytest.raises(TypeError, match=r"llama is 'tiny', but must be a llama_cpp\.Llama"):
        stencilm.from_llama_cpp("tiny")
    with pytest.raises(TokenizerError, match=r"a str is no llama_cpp\.Llama"):
        TokenizerInfo.from_llama_cpp("tiny")
    with pytest.raises(ModelError, match="embedding=True"):
        stencilm.from_llama_cpp(opened(tiny, embedding=True))
    with pytest.raises(ModelError, match="vocab_only=True"):
        stencilm.from_llama_cpp(opened(tiny, vocab_only=True))


def test_what_llama_cpp_cannot_read_is_said_and_leaves_a_clean_context(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sequence = model.backend.start([1, 5, 6])
    expected = sequence.append([])
    with monkeypatch.context() as patch:
        patch.setattr(llama_cpp, "llama_decode", lambda context, batch: 1)
        with pytest.raises(ModelError, match=r"llama_decode returned 1.*larger n_ctx"):
            model.backend.start([1, 7]).append([])
    np.testing.assert_allclose(sequence.append([]), expected, atol=0.02)


def test_every_way_to_write(model: Any) -> None:
    person = model(PROMPT, Person)
    assert isinstance(person, Person)
    assert list(model.stream(PROMPT, Person))[-1] == person
    other = model("A woman: ", Person)
    assert model.batch([PROMPT, "A woman: "], Person) == [person, other]

    async def together() -> list[Any]:
        prompts = [PROMPT, "A woman: ", PROMPT]
        return list(await asyncio.gather(*[model.agenerate(p, Person) for p in prompts]))

    written = [generation.value for generation in asyncio.run(together())]
    assert written == [person, other, person]
    # The library's own calls go on from what the context holds, and ours from what they left.
    answer = model.backend.llama(PROMPT, max_tokens=4, temperature=0)["choices"][0]["text"]
    assert answer == '{"name": "Ron'
    assert model(PROMPT, Person) == person


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_texts_of_every_kind_of_grammar(model: Any, kind: Kind) -> None:
    check_model(model, kind, PROMPT)


def test_guide_cuts_the_context(model: Any) -> None:
    date = stencilm.Regex(r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")
    guided = stencilm.guide(model, date, "A date: ")
    assert guided.status == "valid"
    assert len(guided.response) == 10
