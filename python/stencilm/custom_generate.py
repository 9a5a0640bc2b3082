"""`CustomGenerate`: forced text without forward passes, inside `generate` of transformers.

One idea: transformers hands a callable the prepared prompt and the configured processors; the loop
here does what its own sampling does, except that a row may take many tokens in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stencilm.bitmask import apply_token_bitmask_inplace
from stencilm.compiler import CompiledGrammar
from stencilm.matcher import GrammarMatcher
from stencilm.tokenizers.joint import RECENT_TOKENS


class CustomGenerate:
    """For `model.generate(**inputs, custom_generate=CustomGenerate(compiled))`.

    Greedy search and sampling, with batches and left padding; every logits processor and stopping
    criterion that `generate` was given counts, on each row by itself. `forward_passes` tells how
    many passes the last call took.

    Args:
        compiled: One grammar for all rows, or one for each.
    """

    def __init__(self, compiled: CompiledGrammar | Sequence[CompiledGrammar]) -> None:
        grammars = [compiled] if isinstance(compiled, CompiledGrammar) else list(compiled)
        if not grammars or not all(isinstance(one, CompiledGrammar) for one in grammars):
            raise TypeError("CustomGenerate takes a CompiledGrammar, or one for each prompt")
        self._grammars = grammars
        self.forward_passes = 0

    # `generate` compares this signature with that of its own loop, so the names are theirs.
    def __call__(
        self,
        model: Any,
        input_ids: Any,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **model_kwargs: Any,
    ) -> Any:
        """The prompts with what was written, padded on the right: a tensor, as from `generate`.

        Raises ValueError for beams and for dictionaries, which only `generate`'s own loops give,
        and for models without a cache that can be masked: use `LogitsProcessor` with them.
        """
        import torch

        from stencilm.models.transformers import TransformersRunner

        if (generation_config.num_beams or 1) > 1 or generation_config.return_dict_in_generate:
            raise ValueError(
                "CustomGenerate neither searches with beams nor returns a dictionary: use "
                "stencilm.LogitsProcessor with generate for these"
            )
        runner = TransformersRunner(model)
        if not runner.runs_batches:
            raise ValueError(
                f"CustomGenerate reads several tokens in one pass, which {type(model).__name__} "
                "cannot: it takes no positions, or keeps a recurrent state in place of keys; use "
                "stencilm.LogitsProcessor with generate"
            )
        mask = model_kwargs.get("attention_mask")
        rows = [
            _Row(
                ids, [] if mask is None else mask[number].tolist(),
                self._grammars[number * len(self._grammars) // len(input_ids)],
                stop_token_ids=_stops(generation_config),
            )
            for number, ids in enumerate(input_ids.tolist())
        ]  # fmt: skip
        batch = runner.start_batch([row.prompt for row in rows])
        live = list(range(len(rows)))
        most = generation_config.max_length - input_ids.shape[1]
        self.forward_passes = 0
        for row in rows:
            row.force(most)
        live = [number for number in live if not rows[number].is_over(most)]
        if len(live) < len(rows):
            batch.select(live)
        while live:
            logits = batch.append([rows[number].take_unread() for number in live])
            self.forward_passes += 1
            kept = []
            for place, number in enumerate(live):
                row = rows[number]
                ids = torch.tensor([row.ids], device=input_ids.device)
                scores = torch.from_numpy(logits[place : place + 1]).to(input_ids.device)
                # The mask first: top-k and top-p then count allowed tokens only.
                scores = logits_processor(ids, _masked(row, scores))
                row.draw(scores, bool(generation_config.do_sample))
                row.force(most)
                ids = torch.tensor([row.ids], device=input_ids.device)
                if not row.is_over(most) and not bool(stopping_criteria(ids, None).all()):
                    kept.append(place)
            if len(kept) < len(live):
                live = [live[place] for place in kept]
                if live:
                    batch.select(kept)
        width = max(len(row.ids) for row in rows)
        padding = _padding(generation_config)
        padded = [row.ids + [padding] * (width - len(row.ids)) for row in rows]
        return torch.tensor(padded, dtype=input_ids.dtype, device=input_ids.device)


class _Row:
    """One sequence: all its ids, padding included, and its matcher."""

    def __init__(
        self,
        ids: list[int],
        mask: list[int],
        compiled: CompiledGrammar,
        stop_token_ids: Sequence[int],
    ) -> None:
        seen = mask or [1] * len(ids)
        self.ids = ids
        self.prompt = [token for token, is_seen in zip(ids, seen, strict=True) if is_seen]
        self.matcher = GrammarMatcher(compiled, override_stop_tokens=stop_token_ids or None)
        self._start = len(ids)
        self._unread: list[int] = []

    def is_over(self, most: int) -> bool:
        return self.matcher.is_terminated() or len(self.ids) - self._start >= most

    def force(self, most: int) -> None:
        """Take what the grammar leaves no choice about, the end included."""
        if self.matcher.is_terminated():
            return
        recent = [*self.prompt[-RECENT_TOKENS:], *self.ids[self._start :][-RECENT_TOKENS:]][
            -RECENT_TOKENS:
        ]
        tokens = self.matcher.find_jump_forward_tokens(recent)
        for token_id in tokens[: max(0, most - (len(self.ids) - self._start))]:
            self._take(token_id)

    def take_unread(self) -> list[int]:
        unread, self._unread = self._unread, []
        return unread

    def draw(self, scores: Any, do_sample: bool) -> None:
        import torch

        if do_sample:
            weights = torch.nn.functional.softmax(scores, dim=-1)
            self._take(int(torch.multinomial(weights, num_samples=1)[0, 0]))
        else:
            self._take(int(scores.argmax(dim=-1)[0]))

    def _take(self, token_id: int) -> None:
        if not self.matcher.accept_token(token_id):
            raise AssertionError(f"invariant: token {token_id} was allowed by the mask")
        self.ids = [*self.ids, token_id]
        self._unread.append(token_id)


def _masked(row: _Row, scores: Any) -> Any:
    vocab_size = scores.shape[-1]
    bitmask = np.zeros((1, -(-vocab_size // 32)), dtype=np.int32)
    width = min(vocab_size, bitmask.shape[1] * 32)
    if row.matcher.fill_next_token_bitmask(bitmask, 0):
        kept = scores.float().cpu().clone()
        apply_token_bitmask_inplace(kept, bitmask, vocab_size=width)
        return kept.to(scores.device)
    return scores


def _stops(generation_config: Any) -> list[int]:
    stops = generation_config.eos_token_id
    return [stops] if isinstance(stops, int) else list(stops or [])


def _padding(generation_config: Any) -> int:
    padding = generation_config.pad_token_id
    return padding if padding is not None else (_stops(generation_config) or [0])[0]
