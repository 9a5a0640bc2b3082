"""`CustomGenerate`: forced text without forward passes, inside `generate` of transformers.

One idea: transformers hands a callable the prepared prompt and the configured processors; the loop
here does what its own sampling does, except that a row may take many tokens in one pass.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal, NoReturn

import numpy as np

from stencilm.bitmask.arrays import apply_token_bitmask_inplace
from stencilm.errors import MatcherError
from stencilm.integrations.transformers.logits_processor import (
    NOT_A_NUMBER,
    check_width,
    closed_rows,
    hold_nan,
)
from stencilm.integrations.transformers.row_states import checked_grammars
from stencilm.matching.compiler import CompiledGrammar
from stencilm.matching.matcher import GrammarMatcher, checked_whitespace
from stencilm.matching.reasoning import (
    DEFAULT_REASONING,
    ReasoningFormat,
    begun,
    checked_budget,
    checked_form,
    closing_after_reasoning,
)
from stencilm.shown import is_word, shown_value
from stencilm.tokenizers.joint import RECENT_TOKENS
from stencilm.whole_numbers import as_whole

_READ = {
    "attention_mask", "position_ids", "cache_position", "cache", "past_key_values", "use_cache",
    "logits_to_keep", "num_logits_to_keep", "synced_gpus", "streamer", "assistant_model",
}  # fmt: skip
"""Arguments that `generate` prepares, and that this loop reads or makes itself."""
_ROW_BY_ROW = {
    "EpsilonLogitsWarper", "EtaLogitsWarper", "ExponentialDecayLengthPenalty",
    "ForcedBOSTokenLogitsProcessor", "ForcedEOSTokenLogitsProcessor", "InfNanRemoveLogitsProcessor",
    "LogitNormalization", "MinLengthLogitsProcessor", "MinNewTokensLengthLogitsProcessor",
    "MinPLogitsWarper", "NoBadWordsLogitsProcessor", "NoRepeatNGramLogitsProcessor",
    "SequenceBiasLogitsProcessor", "SuppressTokensAtBeginLogitsProcessor",
    "SuppressTokensLogitsProcessor", "TemperatureLogitsWarper", "TopHLogitsWarper",
    "TopKLogitsWarper", "TopPLogitsWarper", "TypicalLogitsWarper",
}  # fmt: skip
"""Processors of transformers without state for single rows.

Showing them a row for each position of the batch would take one pass over it for each length.
"""
_AT_EVERY_TOKEN = {
    "SynthIDTextWatermarkLogitsProcessor": "the watermark of SynthID",
    "UnbatchedClassifierFreeGuidanceLogitsProcessor": "guidance_scale",
}
"""Processors of transformers that must be called at every token, because they rely on having seen
the previous one, and the options that create them.
"""


class CustomGenerate:
    """For `model.generate(**inputs, custom_generate=CustomGenerate(compiled))`.

    Greedy search and sampling, with batches and left padding. Every logits processor and stopping
    criterion of `generate` applies, to each row separately. `generate` refuses `stop_strings`
    beside a callable: give `stopping_criteria=[StopStringCriteria(tokenizer, texts)]` instead. A
    streamer gets the tokens as they are written, several at once if they are forced.
    `forward_passes` is the number of passes of the last call.

    As from `generate` itself, a row ends with its `eos_token_id`, which is no part of the text.
    `skip_special_tokens=True` leaves it out in decoding, unless it is an ordinary token of text,
    such as a line break: then cut it off before.

    Args:
        compiled: One grammar for all rows, or one for each prompt of the batch;
            `num_return_sequences` repeats the prompts.
        reasoning: How the model reasons before its answer, such as
            `stencilm.reasoning_format(tokenizer)`; None if it does not. A prompt that ends with its
            end marker is answered at once.
        reasoning_budget: The most tokens of reasoning, before the end marker is written for it;
            fewer where so many would leave no answer room within `max_new_tokens`.
        finish: "valid": near `max_new_tokens` or `max_length`, the masks leave only what still lets
            each row be whole within them, if a text of the grammar fits. "cut": rows are cut.
        whitespace_budget: For grammars of JSON: the most bytes of whitespace between the parts of a
            row's whole text; None for no limit. See `GrammarMatcher`.

    Raises:
        TypeError: `compiled` is something else.
        ValueError: The budget is not a number of tokens.
        TokenizerError: The grammars were compiled for different vocabularies.
        ValueError: `finish` is something else, or `whitespace_budget` less than 0.

    Examples:
        >>> from pathlib import Path
        >>> import stencilm
        >>> import transformers
        >>> folder = Path(stencilm.__file__).parent / "tiny"
        >>> model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        >>> tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        >>> compiled = stencilm.from_transformers(model, tokenizer).compile(
        ...     stencilm.Regex("red|blue")
        ... )
        >>> custom = stencilm.CustomGenerate(compiled)
        >>> prompt = tokenizer("A colour:", return_tensors="pt")
        >>> written = model.generate(**prompt, custom_generate=custom, max_new_tokens=9)
        >>> text = tokenizer.decode(
        ...     written[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True
        ... )
        >>> text in ("red", "blue")
        True
    """

    def __init__(
        self,
        compiled: CompiledGrammar | Sequence[CompiledGrammar],
        *,
        finish: Literal["valid", "cut"] = "valid",
        reasoning: ReasoningFormat | None = None,
        reasoning_budget: int = DEFAULT_REASONING,
        whitespace_budget: int | None = None,
    ) -> None:
        if not is_word(finish, ("valid", "cut")):
            raise ValueError(f"finish is {shown_value(finish):.80}, but must be 'valid' or 'cut'")
        self._grammars = checked_grammars("CustomGenerate", compiled)
        self._finish = finish
        self._whitespace_budget = checked_whitespace(whitespace_budget)
        self._reasoning = (checked_form(reasoning), checked_budget(reasoning_budget))
        self.forward_passes = 0

    def __reduce__(self) -> NoReturn:
        """Raises: a compiled grammar would carry the whole tokenizer with it."""
        raise TypeError(
            "a CustomGenerate cannot be pickled: send the schema or pattern that its grammar was "
            "made of, compile it there, and make a CustomGenerate of that"
        )

    def __copy__(self) -> CustomGenerate:
        """Another one with the same grammars, which are immutable."""
        reasoning, budget = self._reasoning
        return CustomGenerate(
            self._grammars,
            finish=self._finish,
            reasoning=reasoning,
            reasoning_budget=budget,
            whitespace_budget=self._whitespace_budget,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> CustomGenerate:
        """The same as `copy.copy`."""
        return self.__copy__()

    # `generate` compares this signature with that of its own loop, so the parameters are named
    # alike.
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

        Raises:
            ValueError: Something is asked for that only `generate`'s own loops do: beams, an
                assistant, guidance, watermarks of SynthID, dictionaries, inputs other than
                tokens, encoders, models without a cache that can be masked. Use `LogitsProcessor`
                with them. Or the rows cannot be shared out among the grammars.
            TokenizerError: The model has another vocabulary than the grammar.
            MatcherError: The logits processors forbid all tokens that the grammar allows, or force
                one that it refuses.
        """
        import torch

        from stencilm.models.transformers import TransformersRunner

        handed = _handed_to_generate(self, sys._getframe(1))
        streamer = model_kwargs.get("streamer", handed.get("streamer"))
        assistant = model_kwargs.get("assistant_model", handed.get("assistant_model"))
        _check_request(model, generation_config, model_kwargs, assistant, logits_processor)
        if not len(input_ids):
            return input_ids
        if streamer is not None and len(input_ids) > 1:
            raise ValueError(
                f"a streamer shows one text, and there are {len(input_ids)} rows: leave it out, or "
                "generate one prompt at a time"
            )
        if len(input_ids) % len(self._grammars):
            raise ValueError(
                f"{len(input_ids)} rows cannot be shared out among {len(self._grammars)} grammars: "
                "give one grammar for all, or one for each prompt of the batch"
            )
        runner = TransformersRunner(model)
        if not runner.runs_batches:
            raise ValueError(
                f"CustomGenerate reads several tokens in one pass, which {type(model).__name__} "
                "cannot: it takes no positions, or keeps a recurrent state in place of keys; use "
                "stencilm.LogitsProcessor with generate"
            )
        mask = model_kwargs.get("attention_mask")
        most = generation_config.max_length - input_ids.shape[1]
        rows = [
            _Row(
                ids, [] if mask is None else mask[number].tolist(),
                self._grammars[number * len(self._grammars) // len(input_ids)],
                stop_token_ids=_stops(generation_config),
                reasoning=self._reasoning,
                most=most if self._finish == "valid" else None,
                whitespace_budget=self._whitespace_budget,
            )
            for number, ids in enumerate(input_ids.tolist())
        ]  # fmt: skip
        batch = runner.start_batch([row.prompt for row in rows])
        self.forward_passes = 0
        live = []
        for number, row in enumerate(rows):
            row.force(most)
            is_stopped = row.is_stopped(stopping_criteria, input_ids)
            row.show(streamer)
            if not is_stopped and not row.is_over(most):
                live.append(number)
        if len(live) < len(rows):
            batch.select(live)
        while live:
            logits = batch.append([rows[number].take_unread() for number in live])
            check_width(self._grammars[0].tokenizer_info, logits.shape[-1])
            self.forward_passes += 1
            # The mask first, so that top-k and top-p count only allowed tokens.
            masked = {
                number: _masked(rows[number], torch.from_numpy(logits[place : place + 1]))
                for place, number in enumerate(live)
            }
            processed = _processed(logits_processor, rows, masked, input_ids.device)
            kept = []
            for place, number in enumerate(live):
                row = rows[number]
                row.draw(processed[number], bool(generation_config.do_sample), number)
                row.force(most)
                is_stopped = row.is_stopped(stopping_criteria, input_ids)
                row.show(streamer)
                if not is_stopped and not row.is_over(most):
                    kept.append(place)
            if len(kept) < len(live):
                live = [live[place] for place in kept]
                if live:
                    batch.select(kept)
        if streamer is not None:
            streamer.end()
        width = max(len(row.ids) for row in rows)
        padding = _padding(generation_config)
        padded = [row.ids + [padding] * (width - len(row.ids)) for row in rows]
        return torch.tensor(padded, dtype=input_ids.dtype, device=input_ids.device)


def _handed_to_generate(custom: CustomGenerate, caller: Any) -> dict[str, Any]:
    """The arguments of the calling `generate`, which passes on neither a streamer nor an assistant.

    Without them a streamer would only show the prompt, and an assistant would be ignored.
    """
    variables: dict[str, Any] = caller.f_locals
    if caller.f_code.co_name != "generate" or variables.get("custom_generate") is not custom:
        return {}
    return variables


def _check_request(
    model: Any,
    generation_config: Any,
    model_kwargs: dict[str, Any],
    assistant: Any,
    logits_processor: Sequence[Any],
) -> None:
    """Raise ValueError for arguments that this loop would have to ignore."""
    others = sorted(
        name for name, value in model_kwargs.items() if name not in _READ and value is not None
    )
    at_every_token = [
        _AT_EVERY_TOKEN[kind.__name__]
        for processor in logits_processor
        for kind in type(processor).__mro__
        if kind.__name__ in _AT_EVERY_TOKEN
    ]
    mode = str(getattr(generation_config.get_generation_mode(assistant), "value", ""))
    if (generation_config.num_beams or 1) > 1 or generation_config.return_dict_in_generate:
        found = "neither searches with beams nor returns a dictionary"
    elif mode not in ("greedy_search", "sample"):
        found = f"does not do {mode.replace('_', ' ')}"
    elif getattr(model.config, "is_encoder_decoder", False):
        found = f"knows no encoder, which {type(model).__name__} has"
    elif at_every_token:
        found = f"cannot show {at_every_token[0]} every token, since some need no pass"
    elif others:
        found = f"reads tokens only, not {', '.join(others)}"
    else:
        return
    raise ValueError(f"CustomGenerate {found}: use stencilm.LogitsProcessor with generate for that")


class _Row:
    """One sequence: all its ids, including padding, and its matcher."""

    def __init__(
        self,
        ids: list[int],
        mask: list[int],
        compiled: CompiledGrammar,
        stop_token_ids: Sequence[int],
        reasoning: tuple[ReasoningFormat | None, int],
        most: int | None,
        whitespace_budget: int | None,
    ) -> None:
        seen = mask or [1] * len(ids)
        self.ids = ids
        self.prompt = [token for token, is_seen in zip(ids, seen, strict=True) if is_seen]
        answer = GrammarMatcher(
            compiled,
            override_stop_tokens=stop_token_ids or None,
            terminate_without_stop_token=not (
                stop_token_ids or compiled.tokenizer_info.stop_token_ids
            ),
            whitespace_budget=whitespace_budget,
        )
        self.matcher = begun(answer, compiled.tokenizer_info, *reasoning, self.prompt)
        if most is not None:
            self.matcher = closing_after_reasoning(self.matcher, most)
        self.vocab_size = compiled.tokenizer_info.vocab_size
        self._start = len(ids)
        self._shown = len(ids)
        self._asked = len(ids)  # the length at which the stopping criteria were last checked
        self._unread: list[int] = []

    def is_over(self, most: int) -> bool:
        return self.matcher.is_terminated() or len(self.ids) - self._start >= most

    def force(self, most: int) -> None:
        """Accept forced tokens, including the end."""
        if self.matcher.is_terminated():
            return
        recent = [*self.prompt[-RECENT_TOKENS:], *self.ids[self._start :][-RECENT_TOKENS:]][
            -RECENT_TOKENS:
        ]
        tokens = self.matcher.find_jump_forward_tokens(recent)
        for token_id in tokens[: max(0, most - (len(self.ids) - self._start))]:
            if not self.matcher.accept_token(token_id):
                raise AssertionError(f"invariant: forced token {token_id} is allowed")
            self._add(token_id)

    def is_stopped(self, stopping_criteria: Any, like: Any) -> bool:
        """Whether a criterion stops the row, which then ends there.

        The criteria are checked after each token, which they rely on: what one looks for may be
        within forced text.
        """
        ids = like.new_tensor([self.ids])
        begin, self._asked = self._asked, len(self.ids)
        for length in range(begin + 1, len(self.ids) + 1):
            if bool(stopping_criteria(ids[:, :length], None).all()):
                self.ids = self.ids[:length]
                return True
        return False

    def take_unread(self) -> list[int]:
        unread, self._unread = self._unread, []
        return unread

    def show(self, streamer: Any) -> None:
        """Give a streamer the tokens that it has not seen yet."""
        import torch

        if streamer is not None and self._shown < len(self.ids):
            streamer.put(torch.tensor(self.ids[self._shown :]))
            self._shown = len(self.ids)

    def draw(self, scores: Any, do_sample: bool, number: int) -> None:
        import torch

        if hold_nan(scores):
            raise MatcherError(NOT_A_NUMBER, place=f"row {number}")
        if closed_rows(scores)[0]:
            raise MatcherError(
                "the logits processors forbid all tokens that the grammar allows here: leave out "
                "min_new_tokens, suppress_tokens, bad_words_ids or the like, or make the grammar "
                "wide enough for them",
                place=f"row {number}",
            )
        if do_sample:
            weights = torch.nn.functional.softmax(scores, dim=-1)
            token_id = int(torch.multinomial(weights, num_samples=1)[0, 0])
        else:
            token_id = int(scores.argmax(dim=-1)[0])
        if not self.matcher.accept_token(token_id):
            raise MatcherError(
                f"a logits processor made token {token_id} the choice after "
                f"{len(self.ids) - self._start} tokens, which the grammar refuses: leave out "
                "forced_eos_token_id or what else forces tokens",
                place=f"row {number}",
            )
        self._add(token_id)

    def _add(self, token_id: int) -> None:
        self.ids = [*self.ids, token_id]
        self._unread.append(token_id)


def _processed(
    logits_processor: Sequence[Any], rows: list[_Row], masked: dict[int, Any], device: Any
) -> dict[int, Any]:
    """Apply the processors to the scores of each live row.

    Rows differ in length here, but all rows of a tensor have the same length, so rows of equal
    length are processed together. Some processors have state for each row, such as where its
    padding ends. For these, each row is placed at its own position in a batch of full size, and the
    other positions are filled with a row of its length.
    """
    import torch

    of_length: dict[int, list[int]] = {}
    for number in masked:
        of_length.setdefault(len(rows[number].ids), []).append(number)
    scores = {number: each.to(device) for number, each in masked.items()}
    for processor in logits_processor:
        is_alone = _looks_at_each_row_alone(processor)
        for numbers in of_length.values():
            places: Sequence[int] = range(len(numbers))
            shown = numbers
            if not is_alone:
                places = numbers
                shown = [one if one in numbers else numbers[0] for one in range(len(rows))]
            ids = torch.tensor([rows[number].ids for number in shown], device=device)
            given = processor(ids, torch.cat([scores[number] for number in shown]))
            for place, number in zip(places, numbers, strict=True):
                scores[number] = given[place : place + 1]
    return scores


def _looks_at_each_row_alone(processor: Any) -> bool:
    """Whether a processor is known to have no state for single rows."""
    kind = type(processor)
    if kind.__module__ != "transformers.generation.logits_process":
        return False
    if kind.__name__ == "RepetitionPenaltyLogitsProcessor":
        return not hasattr(getattr(processor, "prompt_ignore_length", None), "shape")
    return kind.__name__ in _ROW_BY_ROW


def _masked(row: _Row, scores: Any) -> Any:
    vocab_size = row.vocab_size
    bitmask = np.full((1, -(-vocab_size // 32)), -1, dtype=np.int32)
    if not row.matcher.fill_next_token_bitmask(bitmask, 0):
        bitmask[:] = -1
    kept = scores.float()
    apply_token_bitmask_inplace(kept, bitmask, vocab_size=min(scores.shape[-1], vocab_size))
    return kept


def _stops(generation_config: Any) -> list[int]:
    stops = generation_config.eos_token_id
    if stops is None:
        return []
    single = as_whole(stops)  # transformers accepts tensors, too
    listed = [int(token_id) for token_id in stops] if single is None else [single]
    return [token_id for token_id in listed if token_id >= 0]


def _padding(generation_config: Any) -> int:
    padding = generation_config.pad_token_id
    return padding if padding is not None else (_stops(generation_config) or [0])[0]
