"""The model door: `model(prompt, OutputType)` gives a typed object.

One idea: a `Model` only joins parts that know nothing of each other: an output type gives a
grammar and a reader, the compiler a matcher, the loop a text, and the reader the value.
"""

from __future__ import annotations

import asyncio
import codecs
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypedDict, TypeVar, Unpack, overload

from stencilm.compiler import CompiledGrammar, GrammarCompiler
from stencilm.generation.batches import beam_search, decode_batch
from stencilm.generation.loop import DEFAULT_MAX_TOKENS, Decoding
from stencilm.generation.partial import MISSING, PartialReader
from stencilm.generation.result import Generation
from stencilm.generation.sampling import Sampling
from stencilm.generation.trace import Event
from stencilm.generation.typed import with_value
from stencilm.grammar import Grammar
from stencilm.limits import DEFAULT_LIMITS, Limits, checked_limits, widest
from stencilm.matcher import GrammarMatcher
from stencilm.models.loading import (
    load_backend,
    wrap_llama_cpp,
    wrap_mlx,
    wrap_transformers,
)
from stencilm.models.protocol import LanguageModel, Prompt, checked_prompt
from stencilm.output_types import Output, resolve
from stencilm.renewed_lock import RenewedLock
from stencilm.tokenizers import TokenizerInfo

T = TypeVar("T")

_MAX_CACHED_TYPES = 64
_MAX_COMPILERS = 4

_Key: TypeAlias = tuple[Any, str, Limits | None]
"""An output type, how it is written, and the limits of the call."""


OnEvent = Callable[[Event], None]


class Drawing(TypedDict, total=False):
    """How a text is written; every call that writes one takes these.

    Attributes:
        max_tokens: The most tokens to write; 512 where none is given.
        temperature: 0 takes the most probable token; see `Sampling` for this and the rest.
        top_p: Keep the fewest tokens that have this much probability together.
        top_k: Keep this many of the most probable tokens; None for all.
        seed: The same seed gives the same text; None for a new one.
        limits: How much work and memory the grammar may cost; None for those of the output type, or
            of the model.
    """

    max_tokens: int
    temperature: float
    top_p: float
    top_k: int | None
    seed: int | None
    limits: Limits | None


@dataclass(frozen=True, slots=True)
class _Task:
    """Texts of one type that are being written."""

    output: Output
    decodings: list[Decoding]
    max_tokens: int

    def result(self, decoding: Decoding) -> Generation[Any]:
        """A finished text with its value."""
        return with_value(decoding.result(), self.output, self.max_tokens)


class Model:
    """A language model whose outputs have a type.

    One `Model` may be used from several threads as far as its backend may.

    Args:
        backend: Any object that follows the protocol `LanguageModel`.
        limits: How much work and memory each grammar may cost, where neither a call nor an output
            type says so.
    """

    def __init__(self, backend: LanguageModel, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.backend = backend
        self._limits = checked_limits(limits)
        self._compilers = OrderedDict(
            {limits: GrammarCompiler(backend.tokenizer_info, limits=limits)}
        )
        self._ready: OrderedDict[_Key, tuple[Output, CompiledGrammar]] = OrderedDict()
        self._lock = RenewedLock()

    def __reduce__(self) -> NoReturn:
        """Refused: the weights are not data to send about."""
        raise TypeError(
            "a Model can be neither copied nor pickled: threads may share one, and another process "
            "loads it anew"
        )

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """The vocabulary of the model."""
        return self.backend.tokenizer_info

    @overload
    def __call__(self, prompt: Prompt, output_type: type[T], **options: Unpack[Drawing]) -> T: ...

    @overload
    def __call__(
        self, prompt: Prompt, output_type: Any = ..., **options: Unpack[Drawing]
    ) -> Any: ...

    def __call__(self, prompt: Prompt, output_type: Any = str, **options: Unpack[Drawing]) -> Any:
        """A value of `output_type`, written by the model; never an invalid one.

        Args:
            prompt: Text, or chat messages for a tokenizer with a chat template.
            output_type: A Python type, `Regex`, `JsonSchema`, `Choice`, or a `Grammar`.
            options: Those of `Drawing`: `max_tokens`, `temperature`, `top_p`, `top_k`, `seed`,
                `limits`.

        Raises:
            IncompleteOutput: `max_tokens` or the model's context cut the text. Only a plain `str`
                is returned as far as it came.
            InvalidOutput: The type's own validators refuse the text.
            StencilError: No grammar can be made of the type (UnsupportedFeature, Unsatisfiable,
                LimitExceeded), or the model cannot be run (ModelError).
            ValueError: A sampling option is out of range.
        """
        return _value(self.generate(prompt, output_type, **options))

    @overload
    def generate(
        self,
        prompt: Prompt,
        output_type: type[T],
        *,
        on_event: OnEvent | None = ...,
        **options: Unpack[Drawing],
    ) -> Generation[T]: ...

    @overload
    def generate(
        self,
        prompt: Prompt,
        output_type: Any = ...,
        *,
        on_event: OnEvent | None = ...,
        **options: Unpack[Drawing],
    ) -> Generation[Any]: ...

    def generate(
        self,
        prompt: Prompt,
        output_type: Any = str,
        *,
        on_event: OnEvent | None = None,
        **options: Unpack[Drawing],
    ) -> Generation[Any]:
        """The text with its value, tokens, trace and statistics.

        The arguments are those of `__call__`, and so are the errors, with one exception: a text
        that was cut, or that the type's own validators refuse, comes back with `value` None and
        the reason in `error`. `on_event` is called with each event of the trace as it happens.
        """
        task = self._task([prompt], output_type, **options)
        (decoding,) = task.decodings
        for event in decoding:
            if on_event is not None:
                on_event(event)
        return task.result(decoding)

    def batch(
        self,
        prompts: Sequence[Prompt],
        output_type: Any = str,
        **options: Unpack[Drawing],
    ) -> list[Any]:
        """One value for each prompt, in order.

        A model that runs batches, such as one of transformers, writes all of them at once: each
        forward pass takes every text that is not finished one step on. Prompt number i draws with
        `seed + i`, so that equal prompts may differ, and equal prompts are read once. The first
        prompt that fails raises, as `__call__` does.
        """
        generations = self.generate_batch(prompts, output_type, **options)
        return [_value(generation) for generation in generations]

    def sample(
        self,
        prompt: Prompt,
        output_type: Any = str,
        *,
        n: int,
        **options: Unpack[Drawing],
    ) -> list[Any]:
        """`n` values for one prompt, which is read once; a batch of the same prompt.

        The temperature is 1 where none is given.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ValueError(f"n is {n!r}, but must be at least 1")
        options.setdefault("temperature", 1.0)
        return self.batch([prompt] * n, output_type, **options)

    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        output_type: Any = str,
        **options: Unpack[Drawing],
    ) -> list[Generation[Any]]:
        """`generate` for several prompts at once; the arguments are those of `batch`."""
        if isinstance(prompts, str):
            raise TypeError(f"prompts is the text {prompts!r:.60}, but must be a list of prompts")
        task = self._task(prompts, output_type, **options)
        decode_batch(self.backend, task.decodings)
        return [task.result(decoding) for decoding in task.decodings]

    def beam_search(
        self,
        prompt: Prompt,
        output_type: Any = str,
        *,
        beams: int = 4,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        length_penalty: float = 1.0,
        limits: Limits | None = None,
    ) -> list[tuple[Any, float]]:
        """The values that a beam search finds, best first, each with its log probability.

        Texts that `max_tokens` cut are left out.

        Args:
            prompt: As for `__call__`.
            output_type: As for `__call__`.
            beams: How many prefixes are kept at each step, and the most values.
            max_tokens: The most tokens to write.
            length_penalty: Texts are compared by their log probability over their length to this
                power.
            limits: As for `__call__`.
        """
        if isinstance(beams, bool) or not isinstance(beams, int) or beams < 1:
            raise ValueError(f"beams is {beams!r}, but must be at least 1")
        output, compiled = self._prepare(output_type, limits)
        found = beam_search(
            self.backend,
            _new_matcher(compiled, self.tokenizer_info),
            self.backend.encode(checked_prompt(prompt)),
            beams=beams,
            max_tokens=max_tokens,
            length_penalty=length_penalty,
        )
        decode = self.tokenizer_info.decode_str
        return [
            (output.parse(decode(beam.token_ids)), beam.logprob)
            for beam in found
            if beam.is_complete
        ]

    def stream(
        self, prompt: Prompt, output_type: Any = str, **options: Unpack[Drawing]
    ) -> Iterator[Any]:
        """Partial values while the text is written, and the whole one last.

        Pydantic models and dataclasses come as instances in which what is not written yet is None;
        lists and dicts hold what there is so far. Only what is closed is checked, an open string is
        shown as it grows, an open number is not. `JsonSchema` gives the data so far, and bare texts
        and those of a `Grammar` come as far as they are written. A step costs what is new in it.
        Closing the iterator stops the model. Options and errors are those of `__call__`.
        """
        task = self._task([prompt], output_type, **options)
        (decoding,) = task.decodings
        reader = PartialReader(task.output.json_type) if task.output.is_json else None
        decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        read, text = 0, ""
        for _ in decoding:
            piece = decoder.decode(decoding.text[read:])
            read = len(decoding.text)
            text += piece
            if reader is None:
                if piece and decoding.finish_reason is None:
                    yield text
                continue
            reader.feed(piece)
            if decoding.finish_reason is None and reader.has_changed():
                value = reader.value()
                if value is not MISSING:
                    yield value
        yield _value(task.result(decoding))

    async def agenerate(
        self, prompt: Prompt, output_type: Any = str, **options: Unpack[Drawing]
    ) -> Generation[Any]:
        """`generate`, awaited: runs in a thread, and stops where the task is cancelled."""
        task = self._task([prompt], output_type, **options)
        (decoding,) = task.decodings
        async for _ in _steps(decoding):
            pass
        return task.result(decoding)

    async def astream(
        self, prompt: Prompt, output_type: Any = str, **options: Unpack[Drawing]
    ) -> AsyncIterator[Any]:
        """`stream`, awaited."""
        async for value in _steps(self.stream(prompt, output_type, **options)):
            yield value

    def _task(
        self,
        prompts: Sequence[Prompt],
        output_type: Any,
        *,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int | None = None,
        seed: int | None = None,
        limits: Limits | None = None,
    ) -> _Task:
        """Texts that are ready to be written; prompt number i draws with `seed + i`."""
        sampling = Sampling(temperature=temperature, top_p=top_p, top_k=top_k, seed=seed)
        output, compiled = self._prepare(output_type, limits)
        decodings = [
            Decoding(
                self.backend,
                _new_matcher(compiled, self.tokenizer_info),
                self.backend.encode(checked_prompt(prompt)),
                sampling=replace(sampling, seed=None if seed is None else seed + number),
                max_tokens=max_tokens,
            )
            for number, prompt in enumerate(prompts)
        ]
        return _Task(output, decodings, max_tokens)

    def compile(self, output_type: Any, *, limits: Limits | None = None) -> CompiledGrammar:
        """The compiled grammar of an output type, as the calls above use it."""
        return self._prepare(output_type, limits)[1]

    def dump(self, value: Any, output_type: Any, *, limits: Limits | None = None) -> Any:
        """A value of `output_type` as JSON-ready data."""
        return self._prepare(output_type, limits)[0].dump(value)

    def _prepare(
        self, output_type: Any, limits: Limits | None = None
    ) -> tuple[Output, CompiledGrammar]:
        """The reader and the compiled grammar of a type; the latest types are kept."""
        if limits is not None:
            checked_limits(limits)
        # With the repr, because 1 == True and Union[A, B] == Union[B, A], though they read apart.
        # A grammar's limits are no part of either.
        own = output_type.limits if isinstance(output_type, Grammar) else None
        key = (output_type, repr(output_type), limits or own)
        if self._lock.is_mine:  # The handler of a signal came in the middle of a look.
            return self._compile(output_type, limits)
        try:
            with self._lock.held:
                if key in self._ready:
                    self._ready.move_to_end(key)
                    return self._ready[key]
        except TypeError:  # a type with an unhashable part: compile it each time
            return self._compile(output_type, limits)
        ready = self._compile(output_type, limits)
        with self._lock.held:
            self._ready[key] = ready
            if len(self._ready) > _MAX_CACHED_TYPES:
                self._ready.popitem(last=False)
        return ready

    def _compile(self, output_type: Any, limits: Limits | None) -> tuple[Output, CompiledGrammar]:
        output = resolve(output_type)
        chosen = limits or output.limits or self._limits
        if isinstance(output_type, Grammar) and limits is None:
            # It was made within its own limits; the model's may be wider.
            chosen = widest([output_type.limits, self._limits])
        return output, self._compiler(chosen).compile(output.grammar(chosen))

    def _compiler(self, limits: Limits) -> GrammarCompiler:
        """The compiler of these limits; the model's own and the latest others are kept."""
        if self._lock.is_mine:  # As above.
            return GrammarCompiler(self.tokenizer_info, limits=limits)
        with self._lock.held:
            known = self._compilers.get(limits)
            if known is None:
                known = GrammarCompiler(self.tokenizer_info, limits=limits)
                self._compilers[limits] = known
                if len(self._compilers) > _MAX_COMPILERS:
                    del self._compilers[next(one for one in self._compilers if one != self._limits)]
            self._compilers.move_to_end(limits)
            return known


def from_transformers(
    model: Any,
    tokenizer: Any,
    *,
    static_cache: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Model:
    """A `Model` of a transformers causal language model and its tokenizer.

    The model is put in evaluation mode. Raises ModelError where torch or transformers is missing.

    Args:
        model: A causal language model of transformers.
        tokenizer: Its tokenizer.
        static_cache: Positions of a static key-value cache, which then bound the prompt and the
            text together; None for a cache that grows.
        limits: How much work and memory each grammar may cost.
    """
    return Model(wrap_transformers(model, tokenizer, static_cache=static_cache), limits=limits)


def from_llama_cpp(llama: Any, *, limits: Limits = DEFAULT_LIMITS) -> Model:
    """A `Model` of a `llama_cpp.Llama`, which runs GGUF files.

    Its prompts are written one after another, for its context holds one text.

    Args:
        llama: The model, such as `llama_cpp.Llama(model_path="model.gguf", n_ctx=4096)`. `n_ctx`
            bounds the prompt and the text together.
        limits: How much work and memory each grammar may cost.

    Raises:
        ModelError: llama-cpp-python is missing, or the model was made for embeddings or for its
            vocabulary alone.
        TypeError: `llama` is no `llama_cpp.Llama`.
    """
    return Model(wrap_llama_cpp(llama), limits=limits)


def from_mlx(mlx_model: Any, tokenizer: Any, *, limits: Limits = DEFAULT_LIMITS) -> Model:
    """A `Model` of a language model of mlx-lm and its tokenizer.

    The model is put in evaluation mode, and its prompts are written one after another.

    Args:
        mlx_model: A model of mlx-lm, such as the first that `mlx_lm.load(...)` returns.
        tokenizer: Its tokenizer, the second.
        limits: How much work and memory each grammar may cost.

    Raises:
        ModelError: mlx or mlx-lm is missing.
        TypeError: `mlx_model` is none of MLX.
        TokenizerError: The tokenizer is of no known kind.
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
        name_or_path: "tiny" (embedded in this package), a folder, or a Hugging Face hub id.
        device: A torch device such as "cuda"; the CPU where None.
        dtype: The name of a torch type such as "float32". Where None, the one that the weights
            were saved in, except that "tiny" computes in float32.
        limits: How much work and memory each grammar may cost.
        options: More arguments for transformers' `from_pretrained`, but for those that would run
            code of the model: no code of a folder or of the hub is run, and no pickle is read.

    Raises:
        ModelError: There is no such model, it cannot be loaded without running its code or reading
            pickled weights, or torch or transformers is missing.
    """
    if not isinstance(name_or_path, (str, Path)):
        raise TypeError(
            f"name_or_path is {name_or_path!r}, but must be a str or a Path: 'tiny', a folder, or "
            "a Hugging Face hub id"
        )
    checked_limits(limits)
    backend = load_backend(name_or_path, device=device, dtype=dtype, options=options)
    return Model(backend, limits=limits)


def _value(generation: Generation[Any]) -> Any:
    if generation.error is not None:
        raise generation.error
    return generation.value


async def _steps(steps: Iterator[T]) -> AsyncIterator[T]:
    """Each step in a thread; a cancelled task waits for the step that runs, and takes no other."""
    end = object()
    while True:
        step: Any = await asyncio.shield(asyncio.to_thread(next, steps, end))
        if step is end:
            return
        yield step


def _new_matcher(compiled: CompiledGrammar, tokenizer_info: TokenizerInfo) -> GrammarMatcher:
    # A vocabulary without a stop token can only end where the grammar does.
    has_stop_token = bool(tokenizer_info.stop_token_ids)
    return GrammarMatcher(compiled, terminate_without_stop_token=not has_stop_token)
