"""The embedded model as a folder that vLLM serves, with the tokens of chats, reasoning and calls.

    python tests/engines/vllm/served_model.py FOLDER

The weights are those of `tiny`; the rows of the new tokens are the mean of all rows. Only the end
of reasoning is likelier than the end of the text, so that an answer which has come to its end goes
on after its reasoning.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

TINY = Path(__file__).parents[3] / "python" / "stencilm" / "tiny"
NEW_TOKENS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|tool|>")
"""In the order of their ids, which begin where the vocabulary of `tiny` ends."""
VOCABULARY = 4608
END_OF_TEXT = 2
PADDED = 4672
"""The rows of the model: more than it has tokens, as in many models that are served."""

# A message a line. Reasoning begins the answer, but where `enable_thinking` is false it is over.
TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}{{ (message['content'] or '') + '\\n' }}{% endfor %}"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
)


def token_id(token: str) -> int:
    """The id of a new token."""
    return VOCABULARY + NEW_TOKENS.index(token)


def write(folder: Path) -> None:
    """Writes the model into a folder."""
    from safetensors.numpy import load_file, save_file

    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(TINY / "generation_config.json", folder)
    weights = load_file(TINY / "model.safetensors")
    embedded = weights["model.embed_tokens.weight"]
    mean = embedded.astype(np.float32).mean(axis=0, keepdims=True).astype(embedded.dtype)
    more = np.repeat(mean, PADDED - len(embedded), axis=0)
    more[token_id("</think>") - VOCABULARY] = embedded[END_OF_TEXT] * np.asarray(
        1.2, embedded.dtype
    )
    weights["model.embed_tokens.weight"] = np.concatenate([embedded, more])
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    _rewrite(folder, "config.json", vocab_size=PADDED)
    _rewrite(folder, "special_tokens_map.json", additional_special_tokens=list(NEW_TOKENS))
    _rewrite(folder, "tokenizer_config.json", chat_template=TEMPLATE)
    known = json.loads((TINY / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
    new = [{**known[-1], "id": token_id(token), "content": token} for token in NEW_TOKENS]
    _rewrite(folder, "tokenizer.json", added_tokens=known + new)


def _rewrite(folder: Path, name: str, **fields: Any) -> None:
    value = json.loads((TINY / name).read_text(encoding="utf-8"))
    (folder / name).write_text(json.dumps({**value, **fields}, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
