"""The embedded model `tiny` in NumPy: for machines without torch.

One idea: a Llama of 3 million weights is a dozen matrix products, so it needs no framework. It is
also the slow reference of the same model in transformers, which is used if transformers is
installed; a test compares the logits of both.

The architecture is that of Touvron et al. (2023): pre-normalised layers (RMSNorm), rotary positions
(Su et al., 2021), grouped queries (Ainslie et al., 2023), and a gated linear unit (Shazeer, 2020).
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stencilm.errors import ModelError
from stencilm.models.prompts import text_messages
from stencilm.models.protocol import Prompt, checked_prompt
from stencilm.models.sequences import CachedSequence
from stencilm.tokenizers import TokenizerInfo
from stencilm.tokenizers.embedded import FOLDER, embedded_tokenizer

Array = NDArray[np.float32]


class EmbeddedModel:
    """The embedded model, with its tokenizer."""

    name = FOLDER.name

    def __init__(self) -> None:
        self.config: dict[str, Any] = json.loads((FOLDER / "config.json").read_bytes())
        self._weights = _weights(FOLDER / "model.safetensors")
        self._info = embedded_tokenizer()
        names = sorted(self._info.special_token_names, key=len, reverse=True)
        self._special = dict(
            zip(self._info.special_token_names, self._info.special_token_ids, strict=True)
        )
        self._markers = re.compile(f"({'|'.join(map(re.escape, names))})")
        size = self.config["head_dim"]
        steps = np.arange(0, size, 2, dtype=np.float64) / size
        speeds = self.config["rope_parameters"]["rope_theta"] ** -steps
        angles = np.outer(np.arange(self.context_size), np.concatenate([speeds, speeds]))
        self._cosines: Array = np.cos(angles).astype(np.float32)
        self._sines: Array = np.sin(angles).astype(np.float32)

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """The vocabulary of the logits."""
        return self._info

    @property
    def context_size(self) -> int:
        """The most tokens that one sequence may hold."""
        size: int = self.config["max_position_embeddings"]
        return size

    def encode(self, prompt: Prompt) -> list[int]:
        """The first token, then those of a text, or of chat messages with one line for each."""
        given = checked_prompt(prompt)
        if isinstance(given, str):
            text = given
        else:  # the format of its tokenizer's chat template
            text = "".join(f"{message['content']}\n" for message in text_messages(given))
        token_ids = [self.config["bos_token_id"]]
        for part in self._markers.split(text):
            if part in self._special:
                token_ids.append(self._special[part])
            else:
                token_ids += self._info.tokenize_bytes(part.encode())
        return token_ids

    def start(self, prompt_ids: Sequence[int]) -> CachedSequence:
        """A new sequence that holds the prompt. Nothing is computed before the first `append`."""
        return CachedSequence(self, prompt_ids)

    def new_cache(self) -> KeyValues:
        """An empty cache."""
        config = self.config
        shape = (config["num_key_value_heads"], self.context_size, config["head_dim"])
        return KeyValues(config["num_hidden_layers"], shape)

    def read(self, token_ids: Sequence[int], cache: KeyValues, rows: int) -> Array:
        """Run tokens after what the cache holds: the logits of the last `rows` positions.

        The result is float32, shape [rows, width].
        """
        weights = self._weights
        embeddings = weights["model.embed_tokens.weight"]
        begin = cache.num_tokens
        place = slice(begin, begin + len(token_ids))
        hidden = embeddings[np.asarray(token_ids, dtype=np.int64)]
        for layer in range(self.config["num_hidden_layers"]):
            of = f"model.layers.{layer}"
            normed = self._normed(hidden, f"{of}.input_layernorm")
            hidden = hidden + self._attended(normed, f"{of}.self_attn", cache.layers[layer], place)
            normed = self._normed(hidden, f"{of}.post_attention_layernorm")
            gate = normed @ weights[f"{of}.mlp.gate_proj.weight"].T
            gated = gate / (1 + np.exp(-gate)) * (normed @ weights[f"{of}.mlp.up_proj.weight"].T)
            hidden = hidden + gated @ weights[f"{of}.mlp.down_proj.weight"].T
        cache.num_tokens = place.stop
        logits: Array = self._normed(hidden[-rows:], "model.norm") @ embeddings.T
        return logits

    def _normed(self, hidden: Array, name: str) -> Array:
        squares = np.mean(hidden * hidden, axis=-1, keepdims=True)
        size: Array = np.sqrt(squares + np.float32(self.config["rms_norm_eps"]))
        normed: Array = hidden / size * self._weights[f"{name}.weight"]
        return normed

    def _attended(self, normed: Array, name: str, kept: tuple[Array, Array], place: slice) -> Array:
        """The attention output for each position; adds the keys and values to the cache."""
        size, count = self.config["head_dim"], len(normed)
        queries, keys, values = (
            (normed @ self._weights[f"{name}.{part}_proj.weight"].T)
            .reshape(count, -1, size)
            .transpose(1, 0, 2)
            for part in "qkv"
        )
        kept_keys, kept_values = kept
        kept_keys[:, place] = self._turned(keys, place)
        kept_values[:, place] = values
        groups = len(kept_keys)  # several query heads share one head of keys and values
        asked = self._turned(queries, place).reshape(groups, -1, count, size)
        scores = asked @ kept_keys[:, None, : place.stop].swapaxes(-1, -2) / np.sqrt(size)
        ahead = np.arange(place.stop) > np.arange(place.start, place.stop)[:, None]
        allowed: Array = np.where(ahead, np.float32(-np.inf), scores).astype(np.float32)
        shares = np.exp(allowed - allowed.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        taken = (shares @ kept_values[:, None, : place.stop]).reshape(-1, count, size)
        joined = taken.transpose(1, 0, 2).reshape(count, -1).astype(np.float32)
        attended: Array = joined @ self._weights[f"{name}.o_proj.weight"].T
        return attended

    def _turned(self, heads: Array, place: slice) -> Array:
        """Heads of shape [heads, positions, size], rotated by position (rotary embedding)."""
        half = heads.shape[-1] // 2
        across = np.concatenate([-heads[..., half:], heads[..., :half]], axis=-1)
        turned = heads * self._cosines[place] + across * self._sines[place]
        return turned.astype(np.float32)


class KeyValues:
    """The cached keys and values for each layer."""

    def __init__(self, layers: int, shape: tuple[int, int, int]) -> None:
        self.num_tokens = 0
        self.layers = [
            (np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32))
            for _ in range(layers)
        ]

    def crop(self, num_tokens: int) -> bool:
        """Keep the first positions; later ones will be overwritten."""
        self.num_tokens = num_tokens
        return True


@cache
def _weights(path: Path) -> dict[str, Array]:
    """The arrays of a safetensors file: the length of the header, the header as JSON, the data."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    found = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F16":
            raise ModelError(f"the weights {name} of {path} are {entry['dtype']}, not F16")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        array = np.frombuffer(data[begin:end], dtype="<f2").astype(np.float32)
        found[name] = array.reshape(entry["shape"])
        found[name].flags.writeable = False
    return found
