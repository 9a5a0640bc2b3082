"""The engine that runs the model inside a worker: this package's own loop, or vLLM.

One idea: an engine takes the prompts of a batch and returns one answer for each. The error of a
single prompt becomes its answer; an error of the engine itself is raised when it is created.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol

from stencilm.errors import ModelError
from stencilm.generation.batches import decode_batch
from stencilm.generation.loop import DEFAULT_MAX_TOKENS
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.outputs import Output, resolve
from stencilm.grammars.sources import (
    EbnfSource,
    JsonSchemaSource,
    LarkSource,
    RegexSource,
    StructuralTagSource,
)
from stencilm.integrations.ray.rows import Answer, described, failed
from stencilm.integrations.vllm.settings import Options as VllmOptions
from stencilm.models.jobs import Job
from stencilm.models.protocol import Prompt


class Engine(Protocol):
    """A model that answers batches."""

    def write(self, prompts: Sequence[Prompt], seeds: Sequence[int | None]) -> list[Answer]:
        """One answer for each prompt, in order; never raises for the error of a single prompt."""


def make_engine(
    name: str,
    model: Any,
    output_type: Any,
    model_options: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Engine:
    """Create the engine of a worker.

    Raises:
        StencilError: The model cannot be loaded, or the type has no grammar.
    """
    if name == "vllm":
        return VllmEngine(model, output_type, model_options, options)
    from stencilm.models.model import load

    made = model(**model_options) if callable(model) else load(model, **model_options)
    return OwnEngine(made, output_type, options)


class OwnEngine:
    """A `Model` of this package, or anything with its `generate`, such as an `ApiModel`."""

    def __init__(self, model: Any, output_type: Any, options: Mapping[str, Any]) -> None:
        self._model = model
        self._output_type = output_type
        self._options = dict(options)

    def write(self, prompts: Sequence[Prompt], seeds: Sequence[int | None]) -> list[Answer]:
        """See `Engine`. A batch that fails as a whole is repeated prompt by prompt."""
        from stencilm.models.model import Model

        if isinstance(self._model, Model) and len(prompts) > 1:
            try:
                return self._together(self._model, prompts, seeds)
            except Exception:  # the prompt that caused it is found below
                pass
        return [self._alone(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def _together(
        self, model: Any, prompts: Sequence[Prompt], seeds: Sequence[int | None]
    ) -> list[Answer]:
        started = perf_counter()
        options: Any = dict(self._options)
        if seeds[0] is not None:
            options["seed"] = 0  # a job's seed is this plus its number
        jobs = [Job(number=seed or 0, prompt=one) for seed, one in zip(seeds, prompts, strict=True)]
        task = model._task(jobs, self._output_type, options)
        decode_batch(model.backend, task.decodings)
        answers = [_answer(task.result(decoding)) for decoding in task.decodings]
        share = (perf_counter() - started) / len(prompts)
        return [replace(answer, seconds=share) for answer in answers]

    def _alone(self, prompt: Prompt, seed: int | None) -> Answer:
        started = perf_counter()
        options = self._options if seed is None else {**self._options, "seed": seed}
        try:
            answer = _answer(self._model.generate(prompt, self._output_type, **options))
        except Exception as error:
            answer = failed(error)
        return replace(answer, seconds=perf_counter() - started)


def _answer(generation: Any) -> Answer:
    """A generation of a model, or the guided text of one behind an API."""
    error = generation.error
    stats = getattr(generation, "stats", None) or getattr(generation, "usage", None)
    text = getattr(generation, "text", None)
    if text is None:
        text = generation.response

    def count(*names: str) -> int:
        return next((int(getattr(stats, one) or 0) for one in names if hasattr(stats, one)), 0)

    return Answer(
        text=text,
        error=None if error is None else described(error),
        prompt_tokens=count("prompt_tokens"),
        tokens=count("tokens", "output_tokens"),
        forced_tokens=count("forced_tokens"),
    )


class VllmEngine:
    """vLLM's own engine, offline; it batches and schedules the prompts itself."""

    def __init__(
        self,
        model: Any,
        output_type: Any,
        model_options: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        if callable(model):
            raise ModelError("engine='vllm' takes the name or the folder of a model, no function")
        os.environ["STENCILM_VLLM"] = "1"  # before vLLM loads its plug-ins, here and below
        try:
            from vllm import LLM
        except ImportError as error:
            raise ModelError(
                f"engine='vllm' needs vLLM on every machine that a worker runs on: {error}"
            ) from error
        self._output = resolve(output_type)
        self._constraint = _constraint(self._output.grammar())
        # The default of this package's own loop.
        self._options = {"max_tokens": DEFAULT_MAX_TOKENS, "temperature": 0.0, **options}
        whitespace = self._options.pop("whitespace_budget", None)
        if whitespace is not None and self._output.is_json:
            if "json" not in self._constraint:
                raise ModelError(
                    "whitespace_budget with engine='vllm' is for outputs that vLLM takes as a JSON "
                    f"schema, and {self._output.name} is none, or has options of its own: leave it "
                    "out, or give the output type `max_whitespace`"
                )
            # The engine uses it for all its requests, in a process that inherits this environment.
            VllmOptions.from_environment()  # raises their errors
            known = json.loads(os.environ.get("STENCILM_VLLM_OPTIONS") or "{}")
            os.environ["STENCILM_VLLM_OPTIONS"] = json.dumps(
                {**known, "whitespace_budget": whitespace}
            )
        self._llm = LLM(model=str(model), **model_options)
        _check_plug_in()

    def write(self, prompts: Sequence[Prompt], seeds: Sequence[int | None]) -> list[Answer]:
        """See `Engine`."""
        if not prompts:
            return []
        started = perf_counter()
        try:
            answers = self._ask(prompts, seeds)
        except Exception as error:
            if len(prompts) == 1:
                answers = [failed(error)]
            else:
                halves = len(prompts) // 2
                return self.write(prompts[:halves], seeds[:halves]) + self.write(
                    prompts[halves:], seeds[halves:]
                )
        share = (perf_counter() - started) / len(prompts)
        return [replace(answer, seconds=share) for answer in answers]

    def _ask(self, prompts: Sequence[Prompt], seeds: Sequence[int | None]) -> list[Answer]:
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        params = [
            SamplingParams(
                seed=seed,
                structured_outputs=StructuredOutputsParams(**self._constraint),
                **self._options,
            )
            for seed in seeds
        ]
        ask: dict[bool, Callable[..., Any]] = {True: self._llm.generate, False: self._llm.chat}
        found: list[Answer | None] = [None] * len(prompts)
        for is_text, call in ask.items():
            rows = [row for row, one in enumerate(prompts) if isinstance(one, str) == is_text]
            if rows:
                given = [prompts[row] for row in rows]
                results = call(given, [params[row] for row in rows], use_tqdm=False)
                for row, result in zip(rows, results, strict=True):
                    found[row] = self._read(result)
        return [answer if answer is not None else Answer() for answer in found]

    def _read(self, result: Any) -> Answer:
        completion = result.outputs[0]
        return Answer(
            text=completion.text,
            error=_unfinished(completion.finish_reason, self._output),
            prompt_tokens=len(result.prompt_token_ids or ()),
            tokens=len(completion.token_ids),
        )


def _unfinished(finish_reason: str | None, output: Output) -> str | None:
    """Why a text of vLLM may not be complete; None if it ended properly."""
    match finish_reason:
        case "stop":
            return None
        case "length" if output.accepts_cut_text:
            return None
        case "length":
            return (
                "IncompleteOutput: max_tokens or the model's context cut the text of "
                f"{output.name}: raise max_tokens, or bound the type's strings and lists"
            )
        case reason:
            return (
                f"IncompleteOutput: vLLM ended the text of {output.name} by {reason!r}: its log "
                "says why"
            )


def _check_plug_in() -> None:
    """Raise ModelError if a backend other than this package's would enforce the grammar."""
    import vllm.v1.structured_output as enforcing

    if not enforcing.XgrammarBackend.__module__.startswith("stencilm."):
        raise ModelError(
            "vLLM has not loaded this package's plug-in, which it finds by the entry point of an "
            "installed stencilm: install stencilm beside vLLM, and do not leave 'stencilm' out of "
            "VLLM_PLUGINS"
        )


def _constraint(grammar: Grammar) -> dict[str, Any]:
    """A grammar in the form of vLLM: its own notation if that is complete, otherwise printed."""
    source = grammar.source
    if isinstance(source, JsonSchemaSource) and not source.documents:
        usual = JsonSchemaSource.of("true").options
        if replace(source.options, spelling=usual.spelling) == usual and (
            source.options.spelling in ("natural", "digits")
        ):
            return {"json": source.text}
    if isinstance(source, RegexSource):
        return {"regex": source.pattern}
    if isinstance(source, EbnfSource) and source == EbnfSource.of(source.text):
        return {"grammar": source.text}
    if isinstance(source, LarkSource) and source == LarkSource.of(source.text):
        # If a line contains "::=", vLLM reads the text as EBNF.
        return {"grammar": str(grammar) if "::=" in source.text else source.text}
    if isinstance(source, StructuralTagSource):
        return {"structural_tag": source.text}
    return {"grammar": str(grammar)}
