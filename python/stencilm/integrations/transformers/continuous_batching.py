"""`ContinuousBatchingLogitsProcessor`: a grammar for each request that transformers batches.

One idea: a request is identified by its own tokens. Before each pass, transformers shows the state
of the requests that will get a token, so their masks are filled there, and applied once the scores
exist.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from copy import copy
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

from stencilm.bitmask.arrays import allocate_token_bitmask, apply_token_bitmask_inplace
from stencilm.errors import MatcherError, ModelError, StencilError, TokenizerError
from stencilm.grammars.sources import JsonSchemaSource
from stencilm.integrations.transformers.logits_processor import (
    check_width,
    closed_rows,
    nothing_left,
)
from stencilm.integrations.transformers.row_states import Written, checked_grammars
from stencilm.matching.compiler import CompiledGrammar
from stencilm.matching.matcher import GrammarMatcher, checked_whitespace, closing_within
from stencilm.shown import is_word, shown_value
from stencilm.tokenizers import TokenizerInfo
from stencilm.whole_numbers import as_whole, count

_MOST_KEPT = 4096
"""The number of requests whose matchers are kept; others are rebuilt from their tokens."""


class ContinuousBatchingLogitsProcessor:
    """A grammar for each request of transformers' continuous batching.

    `generate_batch` here replaces the model's own, which silently drops logits processors. With
    your own manager, `attach` this before it starts, and pass the grammar of each request:
    `manager.add_request(ids, grammar=compiled)`. The result of a request that cannot be kept within
    its grammar has an `error`; the other requests go on.

    Args:
        compiled: The grammar of requests that name none; if None, these are unconstrained.
        finish: "valid" completes each text within the `max_new_tokens` of its request, if a text of
            its grammar fits; "cut" cuts it there.
        whitespace_budget: For requests whose grammar is that of a JSON Schema or of a type that is
            written in JSON: the most bytes of whitespace between the parts of a text. Near that
            number, tokens that would exceed it are left out.

    Raises:
        TypeError: `compiled` is something else.
        ValueError: `finish` is something else, or `whitespace_budget` less than 0.
        ModelError: torch or transformers is missing, or transformers is too old.

    Examples:
        >>> from pathlib import Path
        >>> import stencilm
        >>> import transformers
        >>> from transformers import ContinuousBatchingConfig
        >>> folder = Path(stencilm.__file__).parent / "tiny"
        >>> model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        >>> tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        >>> compiled = stencilm.from_transformers(model, tokenizer).compile(int)
        >>> processor = stencilm.ContinuousBatchingLogitsProcessor(compiled)
        >>> results = processor.generate_batch(
        ...     model,
        ...     [tokenizer("A number:")["input_ids"]],
        ...     max_new_tokens=9,
        ...     continuous_batching_config=ContinuousBatchingConfig(
        ...         use_async_batching=False, use_cuda_graph=False, num_blocks=16
        ...     ),
        ... )  # for a manager of your own: processor.attach(manager)
        >>> results[0].error is None
        True
    """

    supported_kwargs: ClassVar[dict[str, type]] = {"grammar": CompiledGrammar}
    ignored_kwargs: ClassVar[tuple[str, ...]] = ()
    supports_continuous_batching = True

    def __init__(
        self,
        compiled: CompiledGrammar | None = None,
        *,
        finish: Literal["valid", "cut"] = "valid",
        whitespace_budget: int | None = None,
    ) -> None:
        self._whitespace_budget = checked_whitespace(whitespace_budget)
        if compiled is not None:
            checked_grammars("ContinuousBatchingLogitsProcessor", [compiled])
        if not is_word(finish, ("valid", "cut")):
            raise ValueError(f"finish is {shown_value(finish):.80}, but must be 'valid' or 'cut'")
        self._closes = finish == "valid"
        _transformers().Processor.register(type(self))
        self._compiled = compiled
        self._begin()

    def _begin(self) -> None:
        """Start without requests of a manager."""
        self._texts: OrderedDict[str, tuple[CompiledGrammar, Written]] = OrderedDict()
        self._states: list[Any] = []
        self._rows: list[Written | None] = []
        self._bitmask: Any = None

    def __copy__(self) -> ContinuousBatchingLogitsProcessor:
        """A processor with the same grammar and no requests."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._begin()
        return made

    def attach(self, manager: Any) -> None:
        """Make a `ContinuousBatchingManager` that has not started use this processor.

        What is known of requests stays with their manager, so several may share a processor.

        Raises:
            ModelError: The manager has started, works one batch ahead, or replays recorded passes.
        """
        theirs = _transformers()
        if manager.is_running() or manager.batch_processor is not None:
            raise ModelError(
                "the continuous batching manager has started: attach the processor between "
                "model.init_continuous_batching(...) and manager.start()"
            )
        _check_config(manager.continuous_batching_config)
        processors = list(manager.logit_processor.logits_processor)
        # After processors that forbid tokens, before those that keep the best: top-k then counts
        # allowed tokens.
        place = next(
            (at for at, one in enumerate(processors) if "Warper" in type(one).__name__),
            len(processors),
        )
        # Two managers have different threads, and may have requests with the same name.
        processors.insert(place, copy(self))
        joined = theirs.ProcessorsOfRequests(
            theirs.Processors(processors),
            drop_unsupported_processors=False,
        )
        joined.tensors_required = sum(isinstance(one, theirs.Processor) for one in processors)
        manager.logit_processor = joined

    def generate_batch(
        self,
        model: Any,
        inputs: Sequence[Sequence[int]],
        grammars: Sequence[CompiledGrammar | None] | None = None,
        *,
        max_new_tokens: int | None = None,
        generation_config: Any = None,
        continuous_batching_config: Any = None,
    ) -> list[Any]:
        """What the model writes after each prompt, within a grammar for each.

        Args:
            model: A model of transformers.
            inputs: The prompts as token ids.
            grammars: One for each prompt, None where the grammar of this processor counts; or None
                for all.
            max_new_tokens: The most tokens to write after each prompt.
            generation_config: As for `generate_batch` of the model.
            continuous_batching_config: As above; without one, batches are not prepared ahead and
                passes are not recorded.

        Returns:
            The `GenerationOutput` of each prompt, in order; with `num_return_sequences` as many
            for each. See their `error`.

        Raises:
            TypeError: A prompt holds something else than token ids, or a grammar is none.
            ValueError: There are not as many grammars as prompts, a prompt is empty or has an id
                that the model has not, or `max_new_tokens` is less than 1.
            ModelError: The configuration cannot be kept within grammars, or the model failed.
        """
        prompts = _checked_prompts(inputs, model.config.get_text_config().vocab_size)
        given = _checked_grammars(grammars, len(prompts))
        if max_new_tokens is not None:
            max_new_tokens = count("max_new_tokens", max_new_tokens, least=1, otherwise=", or None")
        if not prompts:
            return []
        if continuous_batching_config is None:
            continuous_batching_config = _transformers().Config(
                use_async_batching=False, use_cuda_graph=False
            )
        manager = model.init_continuous_batching(
            generation_config=generation_config,
            continuous_batching_config=continuous_batching_config,
        )
        self.attach(manager)
        manager.start()
        try:
            # Named here, because the results of forked requests are found by name.
            names = [f"stencilm_{number}" for number in range(len(prompts))]
            wanted = []
            for name, prompt, grammar in zip(names, prompts, given, strict=True):
                named = {} if grammar is None else {"grammar": grammar}
                manager.add_request(prompt, request_id=name, max_new_tokens=max_new_tokens, **named)
                copies = range(manager.num_return_sequences - 1)
                wanted += [*(f"{name}__child#{copy}" for copy in copies), name]
            found: dict[str, Any] = {}
            while len(found) < len(wanted):
                result = manager.get_result(timeout=1)
                if result is not None and result.is_finished():
                    found[result.request_id] = result
                elif result is None and not manager.is_running():
                    raise ModelError(
                        "the generation thread of continuous batching ended before all requests "
                        f"were finished: {_fatal_error(manager)}"
                    )
            return [found[name] for name in wanted]
        finally:
            manager.stop(block=True)
            manager.destroy()

    # Called by transformers.

    def fill_defaults(self, int32_tensor: Any) -> None:
        """Use rows without requests."""
        int32_tensor.fill_(-1)

    def prepare_tensor_args(self, requests_with_new_token: Sequence[Any]) -> Any:
        """Fill the masks of the requests that will get a token.

        Returns their numbers, as a tensor.
        """
        import torch

        self._states = [request.state for request in requests_with_new_token]
        self._rows = [self._written(state) for state in self._states]
        sizes = [one.matcher._tokenizer_info.vocab_size for one in self._rows if one is not None]
        self._bitmask = None
        if sizes:
            # The model's vocabulary is only known when its scores are seen.
            self._bitmask = allocate_token_bitmask(len(self._rows), max(sizes))
            for row, (state, one) in enumerate(zip(self._states, self._rows, strict=True)):
                if one is None or one.is_over or state.error is not None:
                    continue
                words = -(-one.matcher._tokenizer_info.vocab_size // 32)
                try:
                    if not one.matcher.fill_next_token_bitmask(self._bitmask[row, :words]):
                        self._bitmask[row] = -1
                except StencilError as error:
                    state.error = str(error)
        return torch.arange(len(self._rows), dtype=torch.int32)

    def __call__(self, scores: Any, tensor_arg: Any) -> Any:
        """The scores, with minus infinity where the grammar of a request allows no token.

        Raises:
            TokenizerError: The model has another vocabulary than the grammar of this processor.
        """
        open_rows, info = self._open_rows(int(scores.shape[-1]))
        kept = scores.clone()
        if info is not None:
            bitmask = self._bitmask
            if str(scores.device) != "cpu":
                bitmask = bitmask.to(scores.device)
            width = min(int(scores.shape[-1]), info.vocab_size)
            apply_token_bitmask_inplace(kept, bitmask, vocab_size=width, indices=open_rows)
            closed = closed_rows(kept)
            for row in open_rows:
                one = self._rows[row]
                if closed[row] and one is not None:
                    self._states[row].error = nothing_left(one, scores[row])
        for row, (state, one) in enumerate(zip(self._states, self._rows, strict=True)):
            if one is not None and (one.is_over or state.error is not None):
                # Nothing valid can follow, so the request ends here.
                stops = _stop_ids(state) or one.matcher.stop_token_ids
                # A model may lack scores for special tokens that its tokenizer has.
                stops = [each for each in stops if each < kept.shape[-1]]
                if stops:
                    kept[row, :] = float("-inf")
                    kept[row, stops[0]] = 0.0
        return kept

    def _open_rows(self, width: int) -> tuple[list[int], TokenizerInfo | None]:
        """The rows to mask in scores of this width, and their vocabulary.

        A request whose grammar has another vocabulary has an error from now on.

        Raises:
            TokenizerError: The grammar of this processor itself has another vocabulary.
        """
        given = {
            row: one.matcher._tokenizer_info
            for row, (state, one) in enumerate(zip(self._states, self._rows, strict=True))
            if one is not None and not one.is_over and state.error is None
        }
        info = None if self._compiled is None else self._compiled.tokenizer_info
        if given and info is not None:
            check_width(info, width)
        rows = []
        for row, own in given.items():
            state = self._states[row]
            if info is None:
                try:
                    check_width(own, width)
                except TokenizerError as error:
                    state.error = str(error)
                    continue
                info = own
            if own != info:
                state.error = (
                    f"the grammar of request {state.request_id} was compiled for {own!r}, and "
                    f"others for {info!r}: one model has one vocabulary, so compile all with one "
                    "GrammarCompiler"
                )
                continue
            rows.append(row)
        return rows, info if rows else None

    def _written(self, state: Any) -> Written | None:
        """The state of a request in its grammar; None for one without."""
        compiled = state.logit_processor_kwargs.get("grammar", self._compiled)
        if compiled is None:
            return None
        generated = state.generated_tokens
        known = len(state.initial_tokens) + len(generated)
        if state.position_offset != known:
            raise ModelError(
                f"request {state.request_id} has {state.position_offset} tokens, of which only "
                f"{known} are known here, so its next mask cannot be: continuous batching must not "
                "work one batch ahead, ContinuousBatchingConfig(use_async_batching=False)"
            )
        earlier = state._true_initial_tokens
        tokens = [*(state.initial_tokens[earlier:] if earlier else []), *generated]
        grammar, written = self._texts.get(state.request_id, (None, None))
        if written is None or grammar is not compiled:
            matcher = _matcher(compiled, state, self._whitespace_budget)
            most = state.max_new_tokens
            if self._closes and most is not None:
                # A request that was preempted counts what it has written as part of its prompt.
                before = len(tokens) - len(generated)
                matcher, _ = closing_within(matcher, before + most)
            written = Written([], matcher)
        self._texts[state.request_id] = (compiled, written)
        self._texts.move_to_end(state.request_id)
        if len(self._texts) > max(_MOST_KEPT, len(self._states)):
            self._texts.popitem(last=False)
        try:
            written.go_to(tokens)
            if written.is_refused and state.error is None:
                raise MatcherError(
                    f"token {written.matcher.num_accepted_tokens} of the request is one that its "
                    "grammar refuses, so another logits processor chose it"
                )
        except StencilError as error:
            state.error = str(error)
        return written


def _checked_prompts(inputs: Any, vocab_size: int) -> list[list[int]]:
    """The prompts as lists of ints.

    An id that the model cannot read would end other requests, too.
    """
    wanted = "a list of prompts, each a list of token ids: tokenizer(text)['input_ids']"
    try:
        listed = [list(prompt) for prompt in inputs]
    except TypeError:
        raise TypeError(f"inputs is {shown_value(inputs):.60}, but must be {wanted}") from None
    prompts = []
    for number, prompt in enumerate(listed):
        if not prompt:
            raise ValueError(f"prompt {number} is empty: give the model a token to go on from")
        ids = []
        for place, given in enumerate(prompt):
            token_id = as_whole(given)
            if token_id is None:
                raise TypeError(
                    f"prompt {number} has {given!r:.60} at {place}, but inputs must be {wanted}"
                )
            if not 0 <= token_id < vocab_size:
                raise ValueError(
                    f"prompt {number} has the token id {token_id} at {place}, but those of the "
                    f"model lie between 0 and {vocab_size - 1}"
                )
            ids.append(token_id)
        prompts.append(ids)
    return prompts


def _checked_grammars(grammars: Any, prompts: int) -> list[CompiledGrammar | None]:
    if grammars is None:
        return [None] * prompts
    if isinstance(grammars, (str, bytes)) or not isinstance(grammars, Iterable):
        raise TypeError(
            f"grammars is {shown_value(grammars):.60}, "
            f"but must be a list with a CompiledGrammar or None for "
            "each prompt; one for all is ContinuousBatchingLogitsProcessor(compiled)"
        )
    given = list(grammars)
    if len(given) != prompts:
        raise ValueError(f"there are {len(given)} grammars for {prompts} prompts")
    for number, one in enumerate(given):
        if one is not None and not isinstance(one, CompiledGrammar):
            raise TypeError(
                f"grammar {number} is {shown_value(one):.60}, but must be a CompiledGrammar or None"
            )
    return given


def _stop_ids(state: Any) -> list[int]:
    stops = state.eos_token_id
    listed = [] if stops is None else [stops] if isinstance(stops, int) else list(stops)
    return [token_id for token_id in listed if token_id >= 0]


def _matcher(
    compiled: CompiledGrammar, state: Any, whitespace_budget: int | None
) -> GrammarMatcher:
    stops = _stop_ids(state)
    is_json = isinstance(compiled.grammar.source, JsonSchemaSource)
    return GrammarMatcher(
        compiled,
        override_stop_tokens=stops or None,
        terminate_without_stop_token=not (stops or compiled.tokenizer_info.stop_token_ids),
        whitespace_budget=whitespace_budget if is_json else None,
    )


def _check_config(config: Any) -> None:
    """Raise ModelError if a pass could not see the masks that belong to it."""
    graphs = config.use_cuda_graph
    asked = {
        "use_async_batching": bool(config.use_async_batching),
        "use_cuda_graph": bool(any(graphs) if isinstance(graphs, tuple) else graphs),
        "varlen_compile_config": getattr(config, "varlen_compile_config", None) is not None,
        "decode_compile_config": getattr(config, "decode_compile_config", None) is not None,
    }
    wrong = [name for name, is_set in asked.items() if is_set]
    if wrong:
        raise ModelError(
            f"continuous batching with {', '.join(wrong)} prepares or records passes before the "
            "tokens are known that their masks follow from: give "
            "ContinuousBatchingConfig(use_async_batching=False, use_cuda_graph=False), without "
            "compile configurations"
        )


def _fatal_error(manager: Any) -> str:
    # An attribute of the manager itself before transformers 5.17.
    status = getattr(manager, "background_thread_status", manager)
    error = getattr(status, "fatal_error", None)
    return "no reason was given" if error is None else f"{type(error).__name__}: {error}"


def _transformers() -> Any:
    """The classes of transformers for continuous batching."""
    try:
        import transformers
        from transformers import ContinuousBatchingConfig, LogitsProcessorList
        from transformers.generation.continuous_batching.cb_logits_processors import (
            ContinuousBatchingLogitsProcessor as Base,
        )
        from transformers.generation.continuous_batching.cb_logits_processors import (
            ContinuousBatchingLogitsProcessorList,
        )

        # 5.8 counts the tokens of a request differently, and 5.10 draws tokens outside of the
        # masks.
        if tuple(map(int, transformers.__version__.split(".")[:2])) < (5, 12):
            raise ImportError(f"this is transformers {transformers.__version__}")
    except ImportError as error:
        raise ModelError(
            "ContinuousBatchingLogitsProcessor needs torch and a transformers with continuous "
            f"batching, of version 5.12 or later: {error}"
        ) from error
    return SimpleNamespace(
        Config=ContinuousBatchingConfig,
        Processor=Base,
        Processors=LogitsProcessorList,
        ProcessorsOfRequests=ContinuousBatchingLogitsProcessorList,
    )
