"""Local models: `model(prompt, OutputType)` returns a typed object.

One idea: a `Model` only connects independent parts: an output type provides a grammar and a reader,
the compiler a matcher, the loop a text, and the reader the value.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np

from stencilm.errors import ModelError
from stencilm.generation.batches import beam_search, decode_batch
from stencilm.generation.drafts import new_drafter
from stencilm.generation.faithful import MIN_PARTICLES, FaithfulSampler
from stencilm.generation.loop import DEFAULT_MAX_TOKENS, Decoding
from stencilm.generation.probabilities import probabilities
from stencilm.generation.result import Generation
from stencilm.generation.trace import Event
from stencilm.generation.typed import Known, by_value, parsed, with_value
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.output_form import OutputForm
from stencilm.grammars.output_types import laid_out
from stencilm.grammars.outputs import Output, resolve
from stencilm.grammars.sources import SchemaOptions
from stencilm.limits import DEFAULT_LIMITS, Limits, checked_limits, widest
from stencilm.matching.compiler import CompiledGrammar, GrammarCompiler
from stencilm.matching.matcher import GrammarMatcher, checked_whitespace, closing_within
from stencilm.matching.reasoning import ReasoningMatcher
from stencilm.matching.texts import all_texts
from stencilm.models.jobs import Check, Job, OnEvent, Piece, go_on
from stencilm.models.loading import (
    load_backend,
    wrap_llama_cpp,
    wrap_mlx,
    wrap_transformers,
)
from stencilm.models.options import Drawing, Options, options_of
from stencilm.models.protocol import LanguageModel, Prompt, checked_prompt
from stencilm.models.reasoning import (
    Reasoned,
    Reasoning,
    after_reasoning,
    begin,
    checked_reasoning,
    format_of,
    reason,
)
from stencilm.models.typed_model import T, TypedModel
from stencilm.models.writer import complaint_of
from stencilm.shown import is_word, shown_value
from stencilm.tokenizers import TokenizerInfo
from stencilm.whole_numbers import count, finite

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["Drawing", "Model", "from_llama_cpp", "from_mlx", "from_transformers", "load"]

_MAX_COMPILERS = 4
_MOST_TEXTS = 1_000
_MOST_BEAMS = 1 << 20


@dataclass(frozen=True, slots=True)
class _Task:
    """Texts of one type that are being generated."""

    output: Output
    decodings: list[Decoding]
    max_tokens: int

    def result(self, decoding: Decoding, known: Known | None = None) -> Generation[Any]:
        """A finished text with its value."""
        return with_value(decoding.result(), self.output, self.max_tokens, known, decoding.shortest)


class Model(TypedModel):
    """A language model whose logits are available, and whose outputs have a type.

    One `Model` may be used from as many threads as its backend allows.

    Args:
        backend: Any object that implements the protocol `LanguageModel`.
        limits: How much work and memory each grammar may cost, unless a call or an output type says
            otherwise.

    Raises:
        TypeError: `backend` is something else.

    Examples:
        >>> import stencilm
        >>> model = stencilm.load("tiny")
        >>> model.tokenizer_info.vocab_size, type(model.compile(int)).__name__
        (4608, 'CompiledGrammar')
        >>> colour = stencilm.Choice(["red", "blue"])
        >>> best, logprob = model.beam_search("A colour:", colour, beams=2)[0]
        >>> best in ("red", "blue"), logprob < 0
        (True, True)
        >>> round(sum(share for _, share in model.probabilities("A colour:", colour)), 3)
        1.0
    """

    _limits: Limits

    def __init__(self, backend: LanguageModel, *, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__()
        if not isinstance(getattr(backend, "tokenizer_info", None), TokenizerInfo):
            raise TypeError(
                f"backend is a {type(backend).__name__}, but must follow the protocol "
                "LanguageModel; stencilm.from_transformers(model, tokenizer) and its like make a "
                "Model of a model that a library has loaded"
            )
        self.backend = backend
        self._limits = checked_limits(limits)
        # The most recently used last.
        self._compilers = {limits: GrammarCompiler(backend.tokenizer_info, limits=limits)}

    def __reduce__(self) -> NoReturn:
        """Raises: weights are not pickled or copied."""
        raise TypeError(
            "a Model can be neither copied nor pickled: threads may share one, and another process "
            "loads it anew"
        )

    @property
    def name(self) -> str:
        """What the model is called: its folder or hub id, or the kind of its backend."""
        own = getattr(self.backend, "name", None)
        if isinstance(own, str):
            return own
        config = getattr(getattr(self.backend, "model", None), "config", None)
        path = getattr(config, "_name_or_path", None)
        if not isinstance(path, str) or not path:
            return type(self.backend).__name__
        return Path(path).name if Path(path).exists() else path

    def _facts(self) -> dict[str, str | None]:
        context = self.backend.context_size
        return {
            "backend": type(self.backend).__name__,
            "vocabulary": f"{self.tokenizer_info.vocab_size:,} tokens",
            "context": None if context is None else f"{context:,} tokens",
        }

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """The vocabulary of the model."""
        return self.backend.tokenizer_info

    @overload
    def beam_search(  # type: ignore[overload-overlap]
        self,
        prompt: Prompt,
        output_type: TypeForm[T] = ...,
        *,
        beams: int | None = ...,
        max_tokens: int | None = ...,
        length_penalty: float | None = ...,
        reasoning: Reasoning | None = ...,
        limits: Limits | None = ...,
        whitespace_budget: int | None = ...,
    ) -> list[tuple[T, float]]: ...

    @overload
    def beam_search(
        self,
        prompt: Prompt,
        output_type: OutputForm[T],
        *,
        beams: int | None = ...,
        max_tokens: int | None = ...,
        length_penalty: float | None = ...,
        reasoning: Reasoning | None = ...,
        limits: Limits | None = ...,
        whitespace_budget: int | None = ...,
    ) -> list[tuple[T, float]]: ...

    @overload
    def beam_search(
        self,
        prompt: Prompt,
        output_type: Callable[..., object],
        *,
        beams: int | None = ...,
        max_tokens: int | None = ...,
        length_penalty: float | None = ...,
        reasoning: Reasoning | None = ...,
        limits: Limits | None = ...,
        whitespace_budget: int | None = ...,
    ) -> list[tuple[dict[str, Any], float]]: ...

    def beam_search(
        self,
        prompt: Prompt,
        output_type: Any = str,
        *,
        beams: int | None = 4,
        max_tokens: int | None = DEFAULT_MAX_TOKENS,
        length_penalty: float | None = 1.0,
        reasoning: Reasoning | None = "auto",
        limits: Limits | None = None,
        whitespace_budget: int | None = None,
    ) -> list[tuple[Any, float]]:
        """The values that a beam search finds, most probable first, each with its log probability.

        A value with several texts is returned once, with the probability of all of them. Every text
        is completed within `max_tokens`, if a text of the type fits; texts that are cut are left
        out, and so are those that the type's own validators refuse.

        Args:
            prompt: As for `__call__`.
            output_type: As for `__call__`.
            beams: How many prefixes are kept at each step, and the most values.
            max_tokens: The most tokens to write.
            length_penalty: During the search, texts are compared by their log probability over
                their length to this power.
            reasoning: As for `__call__`. The reasoning, or the draft, is written once, by its most
                probable tokens, and the search is for what follows it.
            limits: As for `__call__`.
            whitespace_budget: As for `__call__`, for each of the texts.

        Raises:
            ModelError: The model runs no batches, its logits hold NaN, or it gives every text the
                probability zero.
        """
        whitespace_budget = checked_whitespace(whitespace_budget)
        # What is None is not given, as for the options of a single text.
        beams = count("beams", 4 if beams is None else beams, least=1, most=_MOST_BEAMS)
        most = DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
        max_tokens = count("max_tokens", most, least=1)
        penalty = 1.0 if length_penalty is None else length_penalty
        length_penalty = finite("length_penalty", penalty)
        output, compiled = self._prepare(output_type, limits)
        prompt_ids = self._reasoned_ids(prompt, reasoning, max_tokens)
        whitespace = whitespace_budget if output.is_json else None
        matcher = _new_matcher(compiled, self.tokenizer_info, whitespace_budget=whitespace)
        if not output.accepts_cut_text:
            matcher, _ = closing_within(matcher, max_tokens)
        found = beam_search(
            self.backend,
            matcher,
            prompt_ids,
            beams=beams,
            max_tokens=max_tokens,
            length_penalty=length_penalty,
        )
        decode = self.tokenizer_info.decode_str
        texts = [(decode(beam.token_ids), beam.logprob) for beam in found if beam.is_complete]
        return by_value(texts, output)

    @overload
    def probabilities(
        self,
        prompt: Prompt,
        output_type: TypeForm[T],
        *,
        reasoning: Reasoning | None = ...,
        limits: Limits | None = ...,
    ) -> list[tuple[T, float]]: ...

    @overload
    def probabilities(
        self,
        prompt: Prompt,
        output_type: OutputForm[T],
        *,
        reasoning: Reasoning | None = ...,
        limits: Limits | None = ...,
    ) -> list[tuple[T, float]]: ...

    def probabilities(
        self,
        prompt: Prompt,
        output_type: Any,
        *,
        reasoning: Reasoning | None = "auto",
        limits: Limits | None = None,
    ) -> list[tuple[Any, float]]:
        """The values of a type with few texts, most probable first, each with its probability.

        Texts are taken as the tokenizer writes them. Where texts differ, the model's probability is
        shared among the continuations, as in sampling at temperature 1; so the probabilities add up
        to 1. Nothing is drawn, and every common prefix is processed once. JSON is compact, with
        plain integers and only the necessary escapes, unless a `JsonSchema` says otherwise.

        Args:
            prompt: As for `__call__`.
            output_type: A type with finitely many texts, such as a `Literal`, an Enum, `bool`, a
                `Choice`, or `Regex("[1-5]")`.
            reasoning: As for `__call__`. The reasoning, or the draft, is written once, by its most
                probable tokens, and the probabilities are those after it.
            limits: As for `__call__`.

        Raises:
            ModelError: The type has more than 1,000 texts.
        """
        # One text for each value: no whitespace, only necessary escapes, plain integers.
        layout: SchemaOptions = {"compact": True, "escapes": "minimal", "spelling": "digits"}
        written = laid_out(output_type, layout)
        output, compiled = self._prepare(written, limits)
        texts = all_texts(compiled.grammar, most=_MOST_TEXTS)
        if texts is None:
            name = self._prepare(output_type, limits)[0].name
            raise ModelError(
                f"{name} has more than {_MOST_TEXTS:,} texts, too many to compare: list the "
                "values in a Literal or a Choice"
            )
        prompt_ids = self._reasoned_ids(prompt, reasoning, DEFAULT_MAX_TOKENS)
        logprobs = probabilities(self.backend, prompt_ids, texts)
        found = [(text.decode(), logprob) for text, logprob in zip(texts, logprobs, strict=True)]
        return [(value, math.exp(logprob)) for value, logprob in by_value(found, output)]

    def _reasoned_ids(
        self, prompt: Prompt, reasoning: Reasoning | None, max_tokens: int
    ) -> list[int]:
        """The tokens of a prompt and of everything that the model writes before its answer."""
        compiled = self._prepare(str)[1]
        steps = reason(
            self.backend,
            lambda: _new_matcher(compiled, self.tokenizer_info),
            checked_prompt(prompt),
            checked_reasoning("auto" if reasoning is None else reasoning),
            max_tokens,
        )
        while True:
            try:
                next(steps)
            except StopIteration as end:
                reasoned: Reasoned = end.value
                return reasoned.prompt_ids

    def _prompt_ids(self, prompt: Prompt) -> list[int]:
        return self.backend.encode(checked_prompt(prompt))

    def _pieces(
        self,
        job: Job,
        output_type: Any,
        options: Drawing,
        on_event: OnEvent | None,
        known: Known | None = None,
    ) -> Iterator[Piece]:
        if not is_word(options.get("sampling", "masked"), ["masked"]):
            for written in self._faithful([job], output_type, options, on_event, known):
                # No part of a text is shown before the text is complete.
                yield None if written is None else written[0]
            return
        task = self._task([job], output_type, options)
        (decoding,) = task.decodings
        decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        read = 0
        for event in decoding:
            if on_event is not None:
                on_event(event)
            upto = decoding.safe_length
            if upto > read and decoding.finish_reason is None:
                piece = decoder.decode(decoding.text[read:upto])
                read = upto
                if piece:
                    yield piece
        yield task.result(decoding, known)

    def _write_all(
        self, jobs: Sequence[Job], output_type: Any, options: Drawing, check: Check = go_on
    ) -> list[Generation[Any]]:
        if not is_word(options.get("sampling", "masked"), ["masked"]):
            written: dict[int, Generation[Any]] = {}
            for group in self._drawn_together(jobs, options):
                for texts in self._faithful(group, output_type, options):
                    check()
                    for job, text in zip(group, texts or (), strict=False):
                        written[job.number] = text
            return [written[job.number] for job in jobs]
        task = self._task(jobs, output_type, options)
        decode_batch(self.backend, task.decodings, lambda number, event: check())
        return [task.result(decoding) for decoding in task.decodings]

    def _drawn_together(self, jobs: Sequence[Job], options: Drawing) -> list[list[Job]]:
        """Group jobs with equal prompts, unless each text has reasoning of its own."""
        groups: list[tuple[list[int], list[Job]]] = []
        compiled = self._prepare(str)[1]
        for job in jobs:
            same = next((group for _, group in groups if group[0].prompt is job.prompt), None)
            if same is None:
                prompt_ids, matcher = begin(
                    self.backend,
                    _new_matcher(compiled, self.tokenizer_info),
                    checked_prompt(job.prompt),
                    checked_reasoning(options.get("reasoning", "auto")),
                    options.get("max_tokens") or DEFAULT_MAX_TOKENS,
                )
                if isinstance(matcher, ReasoningMatcher):
                    return [[one] for one in jobs]
                same = next((group for ids, group in groups if ids == prompt_ids), None)
                if same is None:
                    groups.append((prompt_ids, same := []))
            same.append(job)
        return [group for _, group in groups]

    def _faithful(
        self,
        jobs: Sequence[Job],
        output_type: Any,
        options: Drawing,
        on_event: OnEvent | None = None,
        known: Known | None = None,
    ) -> Iterator[list[Generation[Any]] | None]:
        """Whole texts after one prompt: yields None after each step, then the texts with values."""
        given = _known(options)
        output, compiled = self._prepare(output_type, given.limits)
        max_tokens = given.max_tokens or DEFAULT_MAX_TOKENS
        sampling = given.token_sampling(0)
        sampling.check_tokens(self.tokenizer_info.vocab_size)
        steps = reason(
            self.backend,
            lambda: _new_matcher(compiled, self.tokenizer_info),
            checked_prompt(jobs[0].prompt),
            given.reasoning,
            max_tokens,
            given.token_sampling(jobs[0].number),
        )
        before: list[Event] = []
        while True:
            try:
                before.append(next(steps))
            except StopIteration as end:
                reasoned: Reasoned = end.value
                break
            yield None
        sampler = FaithfulSampler(
            self.backend,
            _new_matcher(compiled, self.tokenizer_info),
            reasoned.prompt_ids,
            sampling=sampling,
            max_tokens=max_tokens,
            max_passes=given.max_passes,
            drafter=new_drafter(given.draft, self.tokenizer_info),
            working_bytes=(given.limits or self._limits).working_bytes,
        )
        first = np.random.SeedSequence().generate_state(1)[0] if given.seed is None else given.seed
        seeds = [int(first) + job.number for job in jobs]
        if given.sampling == "exact":
            drawn = sampler.exact(seeds)
        else:
            drawn = sampler.smc(seeds, given.particles or max(MIN_PARTICLES, len(jobs)))
        for texts in drawn:
            if texts is None:
                yield None
                continue
            texts = [after_reasoning(text, reasoned, before) for text in texts]
            if on_event is not None:
                for event in texts[0].trace:
                    on_event(event)
            yield [parsed(text, output, known) for text in texts]

    def _again(self, prompt: Prompt, refused: Generation[Any]) -> Prompt | None:
        again = super()._again(prompt, refused)
        if isinstance(prompt, str):  # a text that is simply continued has no turns
            again = f"{prompt}{refused.text}\n{complaint_of(refused)}\n"
        size = self.backend.context_size
        has_room = again is not None and (size is None or len(self._prompt_ids(again)) < size)
        return again if has_room else None

    def _task(self, jobs: Sequence[Job], output_type: Any, options: Drawing) -> _Task:
        """Texts that are ready to be generated; job number i uses the seed `seed + i`."""
        given = _known(options)
        output, compiled = self._prepare(output_type, given.limits)
        max_tokens = given.max_tokens or DEFAULT_MAX_TOKENS
        whitespace = given.whitespace_budget if output.is_json else None
        drafter = new_drafter(given.draft, self.tokenizer_info)
        decodings = []
        for job in jobs:
            prompt_ids, matcher = begin(
                self.backend,
                _new_matcher(compiled, self.tokenizer_info, whitespace_budget=whitespace),
                checked_prompt(job.prompt),
                given.reasoning,
                max_tokens,
            )
            decodings.append(
                Decoding(
                    self.backend,
                    matcher,
                    prompt_ids,
                    sampling=given.token_sampling(job.number),
                    max_tokens=max_tokens,
                    stop=given.stops,
                    closes=given.finish != "cut" and not output.accepts_cut_text,
                    drafter=drafter,
                )
            )
        return _Task(output, decodings, max_tokens)

    _continues_texts = True

    @property
    def _has_markers(self) -> bool:
        return format_of(self.backend) is not None

    def _room_to_reason(self, prompt: Prompt, budget: int) -> int:
        size = self.backend.context_size
        if size is None:
            return budget
        return max(0, min(budget, (size - len(self._prompt_ids(prompt))) // 2))

    def compile(self, output_type: Any, *, limits: Limits | None = None) -> CompiledGrammar:
        """The compiled grammar of an output type, as the calls above use it."""
        compiled: CompiledGrammar = self._prepare(output_type, limits)[1]
        return compiled

    def _compile(self, output_type: Any, limits: Limits | None) -> tuple[Output, CompiledGrammar]:
        output = resolve(output_type)
        chosen = limits or output.limits or self._limits
        if isinstance(output_type, Grammar) and limits is None:
            # It was built within its own limits; take the wider of those and the model's.
            chosen = widest([output_type.limits, self._limits])
        return output, self._compiler(chosen).compile(output.grammar(chosen))

    def _compiler(self, limits: Limits) -> GrammarCompiler:
        """The compiler for these limits; the model's own and the most recent others are cached."""
        if self._lock.is_mine:  # As in `_prepare`.
            return GrammarCompiler(self.tokenizer_info, limits=limits)
        with self._lock.held:
            known = self._compilers.pop(limits, None)
            if known is None:
                known = GrammarCompiler(self.tokenizer_info, limits=limits)
            self._compilers[limits] = known
            while len(self._compilers) > _MAX_COMPILERS:
                del self._compilers[next(one for one in self._compilers if one != self._limits)]
            return known


def from_transformers(
    model: Any,
    tokenizer: Any,
    *,
    static_cache: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Model:
    """A `Model` of a transformers causal language model and its tokenizer.

    The model is put in evaluation mode. Raises ModelError where torch or transformers is missing,
    and TypeError for a value that is not a model or a tokenizer of transformers.

    Args:
        model: A causal language model of transformers.
        tokenizer: Its tokenizer.
        static_cache: The positions of a static key-value cache, which limit the prompt and the text
            together; None for a growing cache.
        limits: How much work and memory each grammar may cost.

    Examples:
        >>> from pathlib import Path
        >>> import stencilm
        >>> import transformers
        >>> folder = Path(stencilm.__file__).parent / "tiny"  # or a name of the Hugging Face hub
        >>> model = stencilm.from_transformers(
        ...     transformers.AutoModelForCausalLM.from_pretrained(folder),
        ...     transformers.AutoTokenizer.from_pretrained(folder),
        ... )
        >>> model("A colour:", stencilm.Choice(["red", "blue"])) in ("red", "blue")
        True
    """
    return Model(wrap_transformers(model, tokenizer, static_cache=static_cache), limits=limits)


def from_llama_cpp(llama: Any, *, limits: Limits = DEFAULT_LIMITS) -> Model:
    """A `Model` of a `llama_cpp.Llama`, which runs GGUF files.

    Its texts are written one after another, because its context holds one text.

    Args:
        llama: The model, such as `llama_cpp.Llama(model_path="model.gguf", n_ctx=4096)`. `n_ctx`
            bounds the prompt and the text together.
        limits: How much work and memory each grammar may cost.

    Raises:
        ModelError: llama-cpp-python is missing, or the model was made for embeddings or for its
            vocabulary alone.
        TypeError: `llama` is no `llama_cpp.Llama`.

    Examples:
        >>> import llama_cpp  # doctest: +SKIP
        >>> llama = llama_cpp.Llama("model.gguf", n_ctx=4096)  # doctest: +SKIP
        >>> stencilm.from_llama_cpp(llama)("A number:", int)  # doctest: +SKIP
        42
    """
    return Model(wrap_llama_cpp(llama), limits=limits)


def from_mlx(mlx_model: Any, tokenizer: Any, *, limits: Limits = DEFAULT_LIMITS) -> Model:
    """A `Model` of a language model of mlx-lm and its tokenizer.

    The model is put in evaluation mode, and its texts are written one after another.

    Args:
        mlx_model: A model of mlx-lm, such as the first that `mlx_lm.load(...)` returns.
        tokenizer: Its tokenizer, the second.
        limits: How much work and memory each grammar may cost.

    Raises:
        ModelError: mlx or mlx-lm is missing.
        TypeError: `mlx_model` is none of MLX.
        TokenizerError: The tokenizer is of no known kind.

    Examples:
        >>> import mlx_lm  # doctest: +SKIP
        >>> mlx_model, tokenizer = mlx_lm.load("mlx-community/Qwen3-4B-4bit")  # doctest: +SKIP
        >>> stencilm.from_mlx(mlx_model, tokenizer)("A number:", int)  # doctest: +SKIP
        42
    """
    return Model(wrap_mlx(mlx_model, tokenizer), limits=limits)


def load(
    name_or_path: str | Path,
    *,
    device: str | None = None,
    dtype: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    **options: Any,
) -> Model:
    """A model by name.

    Args:
        name_or_path: "tiny" (embedded in this package; where torch or transformers is missing, it
            runs in NumPy), a folder, or a Hugging Face hub id.
        device: A torch device such as "cuda"; None for the CPU.
        dtype: The name of a torch type such as "float32". None takes the one that the weights were
            saved in, except that "tiny" computes in float32.
        limits: How much work and memory each grammar may cost.
        options: More arguments for transformers' `from_pretrained`, except those that would run
            code of the model: no code of a folder or of the hub is run, and no pickle is read.

    Raises:
        ModelError: There is no such model, it cannot be loaded without running its code or reading
            pickled weights, or torch or transformers is missing.

    Examples:
        >>> import stencilm
        >>> model = stencilm.load("tiny")
        >>> type(model("A number:", int))
        <class 'int'>
    """
    if not isinstance(name_or_path, (str, Path)):
        raise TypeError(
            f"name_or_path is {shown_value(name_or_path):.80}, "
            f"but must be a str or a Path: 'tiny', a folder, or "
            "a Hugging Face hub id"
        )
    checked_limits(limits)
    backend = load_backend(name_or_path, device=device, dtype=dtype, options=options)
    return Model(backend, limits=limits)


def _known(options: Drawing) -> Options:
    """The options of a local model. Raises TypeError for those that are for endpoints only."""
    if options.get("budget") is not None:
        raise TypeError("budget is an option of models behind an API: leave it out")
    return options_of(options, without=("budget",))


def _new_matcher(
    compiled: CompiledGrammar,
    tokenizer_info: TokenizerInfo,
    *,
    whitespace_budget: int | None = None,
) -> GrammarMatcher:
    # Without a stop token, a text can only end where the grammar ends.
    has_stop_token = bool(tokenizer_info.stop_token_ids)
    return GrammarMatcher(
        compiled,
        terminate_without_stop_token=not has_stop_token,
        whitespace_budget=whitespace_budget,
    )
