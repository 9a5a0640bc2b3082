"""`LogitsProcessor`: a grammar for `generate` of transformers: batches, beams, drafts, padding.

One idea: it only uses the tokens that it is shown, so it works with any loop. A row's state is
looked up by its tokens (`row_states`), and any call that would leave a row without its grammar is
an error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from stencilm.bitmask.arrays import allocate_token_bitmask, apply_token_bitmask_inplace
from stencilm.errors import MatcherError, TokenizerError, UnsupportedFeature
from stencilm.integrations.transformers.row_states import (
    Rows,
    RowStates,
    Written,
    checked_grammars,
)
from stencilm.matching.compiler import CompiledGrammar
from stencilm.matching.matcher import checked_whitespace
from stencilm.matching.reasoning import (
    DEFAULT_REASONING,
    ReasoningFormat,
    checked_budget,
    checked_form,
)
from stencilm.renewed_lock import RenewedLock
from stencilm.tokenizers import TokenizerInfo
from stencilm.whole_numbers import count


class _NoContinuousBatching:
    """An attribute that raises: transformers would drop the processor with only a warning."""

    def __get__(self, processor: object, owner: type) -> bool:
        if processor is None:
            return False
        raise UnsupportedFeature(
            "LogitsProcessor sees whole rows, which continuous batching does not show: use "
            "stencilm.ContinuousBatchingLogitsProcessor, which takes a grammar for each request"
        )


class LogitsProcessor:
    """Masks logits so that each row of a batch stays within its grammar.

    For `model.generate(..., logits_processor=[LogitsProcessor(compiled)])` of transformers, with
    sampling, beams, an assistant or prompt lookup, and for any other caller of
    `processor(input_ids, scores)`. The content of `input_ids` at the first call is the prompt,
    including padding on the left. From there, a row may step forward and back by any number of
    tokens.

    One processor may be used for one `generate` after another. Rows that do not begin with a known
    prompt are new prompts, and so are rows that continue with several tokens that the grammar
    refuses. Call `reset` before a prompt that continues an earlier one with what the grammar would
    accept. Threads may share a processor. With more than eight sets of prompts in progress at a
    time, those that come again are read again from the end of their prompts, in time proportional
    to their length; `copy.copy` makes another processor. A batch may lose rows if it has one
    grammar.

    Args:
        compiled: One grammar for all rows, or one for each prompt of the batch; beams and
            `num_return_sequences` repeat the prompts.
        reasoning: How the model reasons before its answer, such as
            `stencilm.reasoning_format(tokenizer)`; None if it does not. A prompt that ends with its
            end marker is answered at once.
        reasoning_budget: The most tokens of reasoning, before the end marker is written for it;
            fewer where so many would leave no answer room within `max_new_tokens`.
        max_new_tokens: The `max_new_tokens` of `generate`, which it does not pass to a processor:
            near it, the masks leave only what still lets each row be whole within that many tokens.
            Without it, rows are cut there, and so are rows of a grammar whose shortest text takes
            more.
        whitespace_budget: For grammars of JSON: the most bytes of whitespace between the parts of a
            row's whole text; None for no limit. See `GrammarMatcher`.

    Raises:
        TypeError: `compiled` is of another type.
        ValueError: The budget is not a number of tokens.
        TokenizerError: The grammars were compiled for different vocabularies.
        ValueError: `max_new_tokens` is less than 1, or `whitespace_budget` less than 0.

    Examples:
        >>> from pathlib import Path
        >>> import stencilm
        >>> import transformers
        >>> folder = Path(stencilm.__file__).parent / "tiny"
        >>> model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        >>> tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        >>> info = stencilm.TokenizerInfo.from_huggingface(
        ...     tokenizer, vocab_size=model.config.vocab_size
        ... )
        >>> compiled = stencilm.GrammarCompiler(info).compile_regex("red|blue")
        >>> processor = stencilm.LogitsProcessor(compiled)
        >>> prompt = tokenizer("A colour:", return_tensors="pt")
        >>> written = model.generate(
        ...     **prompt, logits_processor=[processor], max_new_tokens=9, do_sample=False
        ... )
        >>> text = tokenizer.decode(
        ...     written[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True
        ... )
        >>> text in ("red", "blue")
        True
        >>> processor.reset()  # before the next texts
    """

    supports_continuous_batching = _NoContinuousBatching()

    def __init__(
        self,
        compiled: CompiledGrammar | Sequence[CompiledGrammar],
        *,
        max_new_tokens: int | None = None,
        reasoning: ReasoningFormat | None = None,
        reasoning_budget: int = DEFAULT_REASONING,
        whitespace_budget: int | None = None,
    ) -> None:
        most = max_new_tokens
        if most is not None:
            most = count("max_new_tokens", most, least=1, otherwise=", or None")
        self._grammars = checked_grammars("LogitsProcessor", compiled)
        self._reasoning = (checked_form(reasoning), checked_budget(reasoning_budget))
        whitespace = checked_whitespace(whitespace_budget)
        self._states = RowStates(self._grammars, self._reasoning, most, whitespace)
        self._drafts_follow = False
        # A call moves the matchers to its rows and then reads them there, so calls must not
        # overlap.
        self._one_at_a_time = RenewedLock(self._forget_other_threads)
        self._width = -1  # the width of the scores, once it is known to fit this vocabulary

    def reset(self) -> None:
        """Forget all rows: the next ones are prompts."""
        with self._one_at_a_time.held:
            self._states.forget()
            self._drafts_follow = False

    def _forget_other_threads(self, was_locked: bool) -> None:
        """In a forked process, drop what another thread was doing, because it is half done here."""
        if was_locked:
            self._states.forget()
            self._drafts_follow = False

    def __copy__(self) -> LogitsProcessor:
        """A processor with the same grammars and no rows."""
        reasoning, budget = self._reasoning
        return LogitsProcessor(
            self._grammars,
            max_new_tokens=self._states.max_new_tokens,
            reasoning=reasoning,
            reasoning_budget=budget,
            whitespace_budget=self._states.whitespace_budget,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> LogitsProcessor:
        """The same as `copy.copy`: grammars are immutable."""
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        """Raises: a compiled grammar would carry the whole tokenizer with it."""
        raise TypeError(
            "a LogitsProcessor cannot be pickled: send the schema or pattern that its grammar was "
            "made of, compile it there, and make a LogitsProcessor of that"
        )

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores, with minus infinity where the grammar allows no token.

        In a row that has ended only the tokens that end a text are left; transformers writes
        padding there. A row after a draft token that the grammar refuses is left as it is, for
        that token is never taken, and so is a beam that has no way on. So are the scores of an
        assistant that has another tokenizer than the model, which checks what it drafts.

        Raises:
            MatcherError: A row holds a token that its grammar refuses and that something other than
                this processor chose, or another processor forbids all tokens that the grammar
                allows, or its scores hold NaN. Or a row has ended, and the vocabulary has no stop
                token.
            TokenizerError: The model has another vocabulary than the grammar.
            TypeError: `input_ids` are no integers.
            ValueError: `input_ids` are not rows of tokens with one row of scores each, or the rows
                cannot be shared out among the grammars.
            LimitExceeded: A mask asks for more than the limits allow.
        """
        shapes = [tuple(getattr(given, "shape", ())) for given in (input_ids, scores)]
        if [len(shape) for shape in shapes] != [2, 2] or shapes[0][0] != shapes[1][0]:
            raise ValueError(
                f"input_ids has shape {shapes[0]} and scores {shapes[1]}, "
                "but LogitsProcessor takes whole rows, one for each row of scores; for continuous "
                "batching use stencilm.ContinuousBatchingLogitsProcessor"
            )
        if _of_another_tokenizer(sys._getframe(1)):
            return scores
        if scores.shape[-1] != self._width:
            check_width(self._grammars[0].tokenizer_info, int(scores.shape[-1]))
            self._width = int(scores.shape[-1])
        if len(input_ids) == 0:
            return scores
        ids = input_ids.tolist()
        if any(type(token_id) is not int for row in ids for token_id in row[-1:]):
            raise TypeError(f"input_ids has dtype {input_ids.dtype}, but must hold token ids")
        with self._one_at_a_time.held:
            rows, written = self._states.go_to(ids)
            may_be_draft, self._drafts_follow = self._drafts_follow, is_part(input_ids)
            for number, one in enumerate(written):
                if one.is_refused and not may_be_draft and not _are_beams(rows, number, scores):
                    raise MatcherError(_refusal(one), place=f"row {number}")
            return self._masked(scores, rows, written)

    def _masked(self, scores: Any, rows: Rows, written: list[Written]) -> Any:
        open_rows = [
            number for number, one in enumerate(written) if not one.is_over and not one.is_refused
        ]
        kept = scores.clone() if hasattr(scores, "clone") else np.array(scores)
        info = self._grammars[0].tokenizer_info
        if open_rows:
            width = min(int(scores.shape[-1]), info.vocab_size)
            bitmask = allocate_token_bitmask(len(written), info.vocab_size)
            for number in open_rows:
                if not written[number].matcher.fill_next_token_bitmask(bitmask, number):
                    bitmask[number] = -1
            device = getattr(scores, "device", None)
            if device is not None and str(device) != "cpu":
                bitmask = bitmask.to(device)
            apply_token_bitmask_inplace(kept, bitmask, vocab_size=width, indices=open_rows)
            closed = closed_rows(kept)
            for number in open_rows:
                if closed[number] and not (
                    _are_beams(rows, number, scores)
                    and any(
                        written[other].is_over or not (written[other].is_refused or closed[other])
                        for other in rows.family(number)
                    )
                ):
                    raise MatcherError(
                        nothing_left(written[number], scores[number]), place=f"row {number}"
                    )
        for number, one in enumerate(written):
            if one.is_over:
                if not one.matcher.stop_token_ids:
                    # Whatever the loop writes next would not be text of the grammar.
                    raise MatcherError(_NO_END, place=f"row {number}")
                # A model may lack scores for special tokens that its tokenizer has.
                stops = [each for each in one.matcher.stop_token_ids if each < kept.shape[-1]]
                if stops:
                    kept[number, :] = -np.inf
                    kept[number, stops] = 0.0
        return kept


def check_width(info: TokenizerInfo, width: int) -> None:
    """Raise TokenizerError if scores of this width cannot be those of this vocabulary.

    Models often have a few more columns than tokens, as padding, and sometimes lack special tokens
    that were added to the tokenizer.
    """
    vocab_size = info.vocab_size
    if width < vocab_size:
        named = set(info.special_token_ids)
        is_other = any(
            token_id not in named and info.core.token_bytes(token_id)
            for token_id in range(width, vocab_size)
        )
    else:
        is_other = width > vocab_size + max(_MOST_PADDING, vocab_size // 8)
    if is_other:
        raise TokenizerError(
            f"the scores have {width} columns, but the grammar was compiled for a vocabulary of "
            f"{vocab_size} tokens, which is not this model's: compile it for the model's own "
            "tokenizer, with TokenizerInfo.from_huggingface(tokenizer, "
            "vocab_size=model.config.vocab_size)"
        )


_MOST_PADDING = 256


_MOST_FRAMES = 24
"""The frames in which the caller is searched; some ten lie between drafts and processor."""


def _of_another_tokenizer(caller: FrameType | None) -> bool:
    """Whether these are the scores of an assistant with a tokenizer of its own.

    `generate` of transformers hands the model's processors to the assistant as well, and nothing
    but the caller tells whose scores they are: two vocabularies may have nearly the same size.
    """
    for _ in range(_MOST_FRAMES):
        if caller is None:
            return False
        if caller.f_code.co_name == "get_candidates":
            drafting = caller.f_locals.get("self")
            return getattr(drafting, "assistant_tokenizer", None) is not None
        caller = caller.f_back
    return False


def is_part(input_ids: Any) -> bool:
    """Whether a tensor is a part of a longer one.

    Assisted generation shows the draft tokens one by one, as parts of the tensor of all of them. So
    the token after such a part may be a draft; otherwise it was chosen.
    """
    storage = getattr(input_ids, "untyped_storage", None)
    if storage is None:
        return False
    return bool(storage().nbytes() > input_ids.numel() * input_ids.element_size())


def closed_rows(scores: Any) -> list[bool]:
    """The rows without any possible token: all scores are minus infinity, or the lowest number.

    Also rows with NaN, which compares higher than everything in a search for the maximum.
    """
    if hasattr(scores, "clone"):
        import torch

        highest, lowest = scores.amax(dim=-1), torch.finfo(scores.dtype).min
    else:
        highest, lowest = scores.max(axis=-1), np.finfo(scores.dtype).min
    open_rows: list[bool] = (highest > lowest).tolist()  # a maximum over NaN is NaN
    return [not is_open for is_open in open_rows]


NOT_A_NUMBER = (
    "the scores hold NaN, so no token can be chosen by them: the model computes them so, or a "
    "logits processor before this one; half precision may be too small for the model"
)


def hold_nan(scores: Any) -> bool:
    """Whether one of the scores of a row is NaN."""
    return bool((scores != scores).any())


_NO_END = (
    "the text is complete, but the vocabulary has no stop token to end it with: give "
    "TokenizerInfo its stop_token_ids"
)


def nothing_left(written: Written, scores: Any) -> str:
    """Why a row has no possible token, for the error."""
    if hold_nan(scores):
        return NOT_A_NUMBER
    matcher = written.matcher
    if matcher.is_completed() and not matcher.stop_token_ids:
        return _NO_END
    if closed_rows(scores[None])[0]:
        return (
            "all tokens have a score of minus infinity before the grammar is asked, so another "
            "logits processor forbids them all: leave it out, or put it after this one"
        )
    allowed = matcher.num_allowed_tokens()
    stops = [token_id for token_id in matcher.stop_token_ids if matcher.is_allowed(token_id)]
    only = "only the end of the text" if len(stops) == allowed else f"{allowed} tokens"
    return (
        f"the grammar allows {only} after {len(written.tokens)} tokens, and another logits "
        "processor forbids that, such as min_new_tokens, suppress_tokens, bad_words_ids or "
        "forced_eos_token_id: leave out that option, or make the grammar wide enough for it"
    )


def _are_beams(rows: Rows, number: int, scores: Any) -> bool:
    """Whether a row is one of several beams, whose scores are log probabilities."""
    family = rows.family(number)
    return len(family) > 1 and float(scores[family].max()) <= _ALMOST_ZERO


_ALMOST_ZERO = 1e-3


def _refusal(written: Written) -> str:
    taken = written.matcher.num_accepted_tokens
    token_id, info = written.tokens[taken], written.matcher._tokenizer_info
    shown = info.dbg_tokens([token_id]) if 0 <= token_id < info.vocab_size else f"id {token_id}"
    return (
        f"token {taken} after the prompt is {shown}, which the grammar refuses, so something else "
        "chose it: put processors that force or forbid tokens before this one, or begin a new "
        "prompt with reset()"
    )
