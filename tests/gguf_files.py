"""GGUF files for llama.cpp to read: the embedded model, and small random ones of other kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import load_file

import stencilm

FOLDER = Path(stencilm.__file__).parent / "tiny"
PLACES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_tiny(path: Path, *, byte_level: bool = False, chat_template: str | None = None) -> Path:
    """The embedded model; with `byte_level` its weights stand beside tokens spelled as GPT-2's."""
    config = json.loads((FOLDER / "config.json").read_text())
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    _add_vocabulary(writer, byte_level=byte_level)
    if chat_template is not None:
        writer.add_chat_template(chat_template)
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for name, weight in load_file(FOLDER / "model.safetensors").items():
        values = weight.astype(np.float32)
        for projection, number in heads.items():
            if projection in name:
                values = _interleaved(values, number)
        writer.add_tensor(_placed(name), values)
    _close(writer)
    return path


def write_random(path: Path, architecture: str) -> Path:
    """A random model with the embedded vocabulary: "gemma3", all sliding windows, or "mamba"."""
    random = np.random.default_rng(0)
    vocab_size, width, layers, inner = 4608, 32, 2, 64
    shapes: dict[str, tuple[int, ...]]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(1024)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(vocab_size)
    if architecture == "gemma3":
        writer.add_feed_forward_length(inner)
        writer.add_head_count(2)
        writer.add_head_count_kv(1)
        writer.add_key_length(16)
        writer.add_value_length(16)
        writer.add_sliding_window(8)
        norms = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
        shapes = {f"{name}.weight": (width,) for name in norms}
        shapes |= {"attn_q.weight": (32, width), "attn_output.weight": (width, 32)}
        shapes |= {"attn_k.weight": (16, width), "attn_v.weight": (16, width)}
        shapes |= {"attn_q_norm.weight": (16,), "attn_k_norm.weight": (16,)}
        shapes |= {"ffn_gate.weight": (inner, width), "ffn_up.weight": (inner, width)}
        shapes |= {"ffn_down.weight": (width, inner)}
    else:
        writer.add_feed_forward_length(0)
        writer.add_head_count(0)
        writer.add_ssm_conv_kernel(4)
        writer.add_ssm_inner_size(inner)
        writer.add_ssm_state_size(16)
        writer.add_ssm_time_step_rank(2)
        shapes = {"attn_norm.weight": (width,), "ssm_in.weight": (2 * inner, width)}
        shapes |= {"ssm_conv1d.weight": (inner, 4), "ssm_conv1d.bias": (inner,)}
        shapes |= {"ssm_x.weight": (2 + 2 * 16, inner), "ssm_dt.weight": (inner, 2)}
        shapes |= {"ssm_dt.bias": (inner,), "ssm_a": (inner, 16), "ssm_d": (inner,)}
        shapes |= {"ssm_out.weight": (width, inner)}
    _add_vocabulary(writer, byte_level=False)
    everything = {"token_embd.weight": (vocab_size, width), "output_norm.weight": (width,)}
    for layer in range(layers):
        everything |= {f"blk.{layer}.{name}": shape for name, shape in shapes.items()}
    for name, shape in everything.items():
        values = random.standard_normal(shape).astype(np.float32)
        writer.add_tensor(name, -np.exp(values) if name.endswith("ssm_a") else values / 2)
    _close(writer)
    return path


def _interleaved(weight: Any, heads: int) -> Any:
    """llama.cpp turns neighbours by an angle, transformers the halves of a head."""
    halves = weight.reshape(heads, 2, -1, weight.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(weight.shape))


def _placed(name: str) -> str:
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    _, _, layer, place = name.removesuffix(".weight").split(".", 3)
    return f"blk.{layer}.{PLACES[place]}.weight"


def _add_vocabulary(writer: Any, *, byte_level: bool) -> None:
    tokenizer = json.loads((FOLDER / "tokenizer.json").read_text())
    model = tokenizer["model"]
    texts = sorted(model["vocab"], key=model["vocab"].__getitem__)
    kinds = [gguf.TokenType.NORMAL] * len(texts)
    for token in tokenizer["added_tokens"]:
        kinds[token["id"]] = gguf.TokenType.CONTROL
    kinds[0] = gguf.TokenType.UNKNOWN
    if byte_level:
        texts, merges = _byte_level(texts, kinds)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_merges(merges)
    else:
        for token_id, text in enumerate(texts):
            if text.startswith("<0x"):
                kinds[token_id] = gguf.TokenType.BYTE
        writer.add_tokenizer_model("llama")
        writer.add_add_space_prefix(False)
        # The sooner two tokens are merged, the higher their score.
        writer.add_token_scores([-float(token_id) for token_id in range(len(texts))])
        texts = [text.replace(" ", "▁") for text in texts]
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)


def _byte_level(texts: list[str], kinds: list[Any]) -> tuple[list[str], list[str]]:
    """The special tokens, one token for each byte, and pairs of letters up to the same number."""
    alphabet = sorted(_alphabet().values())
    special = [text for text, kind in zip(texts, kinds, strict=True) if kind != 1]
    pairs = [f"{one} {other}" for one in alphabet for other in alphabet]
    merges = pairs[: len(texts) - len(special) - len(alphabet)]
    return [*special, *alphabet, *(merge.replace(" ", "") for merge in merges)], merges


def _alphabet() -> dict[int, str]:
    from stencilm.tokenizers.spelling import BYTE_LEVEL_ALPHABET

    return {byte: character for character, byte in BYTE_LEVEL_ALPHABET.items()}


def _close(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
