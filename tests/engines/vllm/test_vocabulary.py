"""The vocabulary of an engine: as wide as the logits of its model, whatever its tokenizer has."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("vllm", reason="vLLM is not here: tests/engines/vllm/install.sh")
transformers = pytest.importorskip("transformers")

from vllm.v1.structured_output.backend_types import StructuredOutputOptions  # noqa: E402

import stencilm  # noqa: E402
from stencilm.errors import StencilError  # noqa: E402
from stencilm.integrations.vllm.backend import RequestCompiler  # noqa: E402
from stencilm.integrations.vllm.sequences import RequestSequence  # noqa: E402

TINY = Path(stencilm.__file__).with_name("tiny")


@pytest.mark.parametrize("padding", [-1, 0, 63])
def test_a_tokenizer_is_cut_or_padded_to_the_logits(padding: int) -> None:
    """Llama 3.2 Vision has no logits for its `<|image|>`: each of its requests was refused."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|image|>"]})
    logits = len(tokenizer) + padding
    compiler = RequestCompiler(tokenizer, logits, SimpleNamespace(disable_any_whitespace=False))
    compiled = compiler.compile(StructuredOutputOptions.REGEX, "[^z]*")
    bitmask = stencilm.allocate_token_bitmask(1, logits)
    RequestSequence(compiled, {tokenizer.eos_token_id}).fill_bitmask(bitmask, 0)
    assert compiled.tokenizer_info.vocab_size == logits
    image = '{"format": {"type": "token", "token": "<|image|>"}}'
    if padding < 0:
        with pytest.raises(StencilError, match=r'no special token is named "<\|image\|>"'):
            compiler.compile(StructuredOutputOptions.STRUCTURAL_TAG, image)
    else:
        compiler.compile(StructuredOutputOptions.STRUCTURAL_TAG, image)
