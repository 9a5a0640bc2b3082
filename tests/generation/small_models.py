"""Small random models made on the spot: no network, no weights on disk."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

TEMPLATE = (
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def byte_tokenizer(**options: Any) -> Any:
    """A byte-level tokenizer without merges: one token for each byte, then `<s>` and `</s>`."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: number for number, character in enumerate(alphabet)}
    core = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = tokenizers.decoders.ByteLevel()
    core.add_special_tokens(["<s>", "</s>"])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", **options
    )


def random_llama(**options: Any) -> Any:
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 264,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "bos_token_id": 256,
        "eos_token_id": 257,
    }
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**(sizes | options)))


def random_mistral() -> Any:
    """A model whose cache forgets: a sliding window of 4 tokens."""
    torch.manual_seed(0)
    return transformers.MistralForCausalLM(
        transformers.MistralConfig(
            vocab_size=264,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            sliding_window=4,
            max_position_embeddings=64,
        )
    )


def random_qwen2() -> Any:
    """A model of two kinds of layers: one sees everything, the next a sliding window of 4."""
    torch.manual_seed(0)
    return transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(
            vocab_size=264,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            use_sliding_window=True,
            sliding_window=4,
            max_window_layers=1,
            max_position_embeddings=64,
        )
    )


def random_mamba() -> Any:
    """A recurrent model: its state is not a key-value cache, and it cannot be cut."""
    torch.manual_seed(0)
    return transformers.MambaForCausalLM(
        transformers.MambaConfig(vocab_size=264, hidden_size=32, num_hidden_layers=2, state_size=4)
    )
