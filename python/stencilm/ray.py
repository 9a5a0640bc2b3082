"""Batches on Ray: rows of a dataset in, typed rows out.

One idea: Ray Data moves the rows, keeps the workers and places them on machines; a worker is a
class that loads a model once and answers batches. This module is only that class.

    answers = dataset.map_batches(
        stencilm.ray.Generate(model="tiny", output_type=Person, prompt="Describe {name}."),
        compute=ray.data.ActorPoolStrategy(size=2),
        batch_size=32,
    )

A row that fails becomes a row with its error. With `resume`, a killed job continues where it was.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

from stencilm.errors import ModelError
from stencilm.generation.sampling import Sampling
from stencilm.grammars.outputs import Output, resolve
from stencilm.integrations.ray.rows import (
    COUNTS,
    Answer,
    PromptOfRow,
    Row,
    check_prompt,
    columns_of,
    described,
    failed,
    plain,
    prompt_of,
)
from stencilm.matching.matcher import checked_whitespace
from stencilm.shown import shown_value
from stencilm.whole_numbers import count

if TYPE_CHECKING:
    from stencilm.integrations.ray.engines import Engine
    from stencilm.integrations.ray.finished import FinishedRows

__all__ = ["Generate", "Summary", "summarize"]

EngineName: TypeAlias = Literal["stencilm", "vllm"]

ModelSource: TypeAlias = str | Path | Callable[..., Any]
"""A name or a folder as `stencilm.load` takes it, or a function that makes the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """The settings of a job, sent to every worker."""

    model: ModelSource
    output_type: Any
    prompt: PromptOfRow
    engine: EngineName
    model_options: Mapping[str, Any]
    options: Mapping[str, Any]
    seed: int | None
    key: str | None
    resume: str | None
    column: str


def Generate(
    model: ModelSource,
    output_type: Any = str,
    prompt: PromptOfRow = "{prompt}",
    *,
    engine: EngineName = "stencilm",
    model_options: Mapping[str, Any] | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    whitespace_budget: int | None = None,
    seed: int | None = None,
    key: str | None = None,
    resume: str | Path | None = None,
    column: str = "output",
) -> type:
    """Return the worker class for `Dataset.map_batches`.

    Each row of the result has the columns of the input row and four more, named after `column`:

    * `output`: the value. Its Arrow type follows from the output type: a struct for a pydantic
      model, a list, a number, a string. Values without an Arrow type, such as those of a union,
      are JSON texts. Null if there is an error.
    * `output_text`: the text that the model wrote.
    * `output_error`: the reason why there is no value; null if there is one.
    * `output_stats`: a struct of `prompt_tokens`, `tokens`, `forced_tokens`, `seconds` and
      `resumed`; `summarize` adds them up. `seconds` is the row's share of the time of its batch,
      and `resumed` is true for rows from an earlier run.

    Args:
        model: The model that each worker loads: a name or folder for `stencilm.load`, or a function
            without positional arguments that returns a `Model` or an `ApiModel`. For vLLM a name or
            a folder.
        output_type: The output type, as for `Model.__call__`.
        prompt: A format string over the columns, such as "Describe {name}.", or a function that
            takes the row, a dict, and returns a text or chat messages.
        engine: The engine: "stencilm" for this package's own loop, in which the rows of a batch
            share their forward passes, or "vllm" for vLLM in each worker, which needs vLLM with
            this package's plug-in.
        model_options: Keyword arguments for `stencilm.load`, for the function, or for `vllm.LLM`.
        max_tokens: The maximum number of tokens for a row; None for 512, or the default of an
            endpoint.
        temperature: 0 always takes the most probable token. None is the same for a local model,
            and the default of an endpoint.
        top_p: Keep the smallest set of most probable tokens whose probabilities add up to this;
            None for all.
        top_k: Keep this number of the most probable tokens; None for all.
        whitespace_budget: For JSON, the most bytes of whitespace between the parts of a row's text;
            None for no limit. Not for models behind an API.
        seed: If given, the seed of each row is made from this and its key, or its prompt without a
            key, so that its text does not depend on its batch.
        key: The column that identifies a row. Required with `resume`.
        resume: A folder, or a URI that pyarrow reads, shared by all machines. Finished rows are
            stored there, batch by batch, and are not generated again as long as their prompt, the
            output type, the model and the options are the same. Failed rows are tried again. A
            function as the model is identified by its name, with the arguments that
            `functools.partial` or `model_options` gives it.
        column: The name of the column with the value, and the prefix of the others.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An option is out of range, the prompt is not a format string, or `resume` is
            used without `key` or with a function that has no name.
        StencilError: The output type has no grammar.
        ModelError: pyarrow, which comes with Ray Data, is not installed.
    """
    if engine not in get_args(EngineName):
        raise ValueError(f"engine is {shown_value(engine):.80}, but must be 'stencilm' or 'vllm'")
    if not (isinstance(model, (str, Path)) or callable(model)):
        raise TypeError(
            f"model is {shown_value(model):.60}, but must be a name, a folder, or a function "
            "that makes one: "
            "a model itself cannot be sent to the workers"
        )
    if not isinstance(column, str) or not column:
        raise ValueError(f"column is {shown_value(column):.80}, but must be the name of a column")
    if key is not None and not isinstance(key, str):
        raise TypeError(f"key is {shown_value(key):.60}, but must be the name of a column")
    if resume is not None and not isinstance(resume, (str, Path)):
        raise TypeError(
            f"resume is {shown_value(resume):.60}, but must be a folder, or a URI of one"
        )
    if model_options is not None and not isinstance(model_options, Mapping):
        raise TypeError(
            f"model_options is {shown_value(model_options):.60}, but must be a dict of keyword "
            "arguments"
        )
    if resume is not None and key is None:
        raise ValueError(
            "resume needs key=, the column that tells rows apart: without it equal prompts would "
            "be one row"
        )
    if resume is not None and callable(model):
        _check_has_name(model)
    if max_tokens is not None:
        max_tokens = count("max_tokens", max_tokens, least=1)
    drawn = {"temperature": temperature, "top_p": top_p, "top_k": top_k}
    given: dict[str, Any] = {name: value for name, value in drawn.items() if value is not None}
    sampling = Sampling(**given, seed=seed)  # checks the options
    given = {name: getattr(sampling, name) for name in given}
    seed = sampling.seed
    if max_tokens is not None:
        given["max_tokens"] = max_tokens
    whitespace_budget = checked_whitespace(whitespace_budget)
    if whitespace_budget is not None:
        given["whitespace_budget"] = whitespace_budget
    resolve(output_type).grammar()  # here, and not in every worker
    _arrow()
    job = _Job(
        model=model,
        output_type=output_type,
        prompt=check_prompt(prompt),
        engine=engine,
        model_options=dict(model_options or {}),
        options=given,
        seed=seed,
        key=key,
        resume=None if resume is None else str(resume),
        column=column,
    )
    return type("Generate", (_Worker,), {"job": job, "__module__": __name__})


@dataclass(frozen=True, slots=True)
class _Answered:
    """The result of a row: the answer, its value in the column's type, or the error."""

    answer: Answer
    value: Any
    error: str | None
    is_resumed: bool


class _Worker:
    """A worker: a model, and the rows that are finished."""

    job: ClassVar[_Job]

    def __init__(self) -> None:
        from stencilm.integrations.ray.arrow_types import arrow_type
        from stencilm.integrations.ray.engines import make_engine

        job = self.job
        self._output: Output = resolve(job.output_type)
        self._type = arrow_type(job.output_type, self._output)
        self._finished = None if job.resume is None else _finished(job.resume)
        self._same = _sameness(job)
        self._engine: Engine = make_engine(
            job.engine, job.model, job.output_type, job.model_options, job.options
        )

    def __call__(self, batch: Any) -> Any:
        """Process a batch in any of Ray Data's formats.

        Returns an Arrow table with the columns added.
        """
        table = _table(batch)
        if table.num_rows == 0 and not table.column_names:
            return table  # Ray also asks for the result of no rows
        new = [self.job.column + ending for ending in ("", "_text", "_error", "_stats")]
        taken = sorted(set(new) & set(table.column_names))
        if taken:
            raise ValueError(
                f"the dataset already has the column {taken[0]!r}: give Generate another column="
            )
        answers = self._answers(_rows(self._read(table)))
        for name, values in zip(new, self._columns(answers), strict=True):
            table = table.append_column(name, values)
        return table

    def _read(self, table: Any) -> Any:
        """Read only the columns that prompts use: others may be large, such as images."""
        wanted = columns_of(self.job.prompt)
        if wanted is None:
            return table
        if self.job.key is not None:
            wanted.add(self.job.key)
        names = [name for name in table.column_names if name in wanted]
        return table.select(names) if len(names) == len(wanted) and names else table

    def _answers(self, rows: list[Row]) -> list[_Answered]:
        """The result of each row."""
        job = self.job
        found: list[_Answered | None] = [None] * len(rows)
        open_rows: list[int] = []
        prompts, seeds, digests = [], [], []
        for number, row in enumerate(rows):
            try:
                prompt = prompt_of(job.prompt, row)
                key = None if job.key is None else _key_of(row, job.key)
                digest = _digest(self._same, key, plain(prompt))
            except Exception as error:  # a user's function may raise anything
                found[number] = self._answered(failed(error))
                continue
            known = None if self._finished is None else self._finished.get(digest)
            if known is not None:
                answered = self._answered(known, is_resumed=True)
                # A stored text that a validator now refuses is generated again.
                if answered.error is None:
                    found[number] = answered
                    continue
            open_rows.append(number)
            prompts.append(prompt)
            digests.append(digest)
            own = plain(prompt) if key is None else key
            seeds.append(None if job.seed is None else int(_digest(job.seed, own)[:12], 16))
        answers = self._engine.write(prompts, seeds) if prompts else []
        new = [self._answered(answer) for answer in answers]
        if self._finished is not None:
            self._finished.add(
                (digest, one.answer)
                for digest, one in zip(digests, new, strict=True)
                if one.error is None
            )
        for number, one in zip(open_rows, new, strict=True):
            found[number] = one
        return [one for one in found if one is not None]

    def _columns(self, answers: list[_Answered]) -> list[Any]:
        """The four columns of a batch."""
        pa = _arrow()
        stats = [
            {
                **{name: getattr(one.answer, name) for name in COUNTS},
                "seconds": one.answer.seconds,
                "resumed": one.is_resumed,
            }
            for one in answers
        ]
        counts = [(name, pa.int64()) for name in COUNTS]
        of_stats = pa.struct([*counts, ("seconds", pa.float64()), ("resumed", pa.bool_())])
        of_values = pa.string() if self._type is None else self._type
        return [
            pa.array([one.value for one in answers], of_values),
            pa.array([_well_formed(one.answer.text) for one in answers], pa.string()),
            pa.array([one.error for one in answers], pa.string()),
            pa.array(stats, of_stats),
        ]

    def _answered(self, answer: Answer, *, is_resumed: bool = False) -> _Answered:
        value, error = self._value(answer)
        return _Answered(answer, value, error, is_resumed)

    def _value(self, answer: Answer) -> tuple[Any, str | None]:
        """The value of an answer in its column's type, and the error if there is none."""
        from stencilm.integrations.ray.arrow_types import dumped_text

        if answer.error is not None:
            return None, _well_formed(answer.error)
        try:
            value = self._output.parse(answer.text)
            if self._type is None:
                return dumped_text(self._output, value), None
            data = self._output.dump(value)
            _arrow().array([data], self._type)  # a number may be too large for its type
            return data, None
        except Exception as error:
            return None, _well_formed(described(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What the rows of a job cost together.

    Attributes:
        rows: How many there are.
        failed: Those with an error.
        resumed: Those that an earlier run wrote.
        prompt_tokens: Tokens of the prompts, those of resumed rows included, as below.
        tokens: Written tokens.
        forced_tokens: Those of them that the grammar left no choice about.
        seconds: The time that workers spent on them, added up over the workers.
    """

    rows: int = 0
    failed: int = 0
    resumed: int = 0
    prompt_tokens: int = 0
    tokens: int = 0
    forced_tokens: int = 0
    seconds: float = 0.0


def summarize(dataset: Any, *, column: str = "output") -> Summary:
    """The statistics of all rows added up, by the workers of the cluster.

    Args:
        dataset: What `map_batches` with `Generate` gave. A dataset is computed anew each time it is
            read, so give one that is materialized, or one that is read from where it was written.
        column: As for `Generate`.
    """
    names = [f"{column}_error", f"{column}_stats"]

    def added(batch: Any) -> Any:
        pa = _arrow()
        rows = _rows(_table(batch))
        stats = [row[names[1]] for row in rows]
        total: dict[str, Any] = {
            "rows": len(rows),
            "failed": sum(row[names[0]] is not None for row in rows),
            "resumed": sum(one["resumed"] for one in stats),
            **{name: sum(one[name] for one in stats) for name in COUNTS},
            "seconds": float(sum(one["seconds"] for one in stats)),
        }
        return pa.table({name: [value] for name, value in total.items()})

    parts = dataset.select_columns(names).map_batches(
        added, batch_size=None, batch_format="pyarrow"
    )
    total = dict.fromkeys((one.name for one in fields(Summary)), 0)
    for part in parts.iter_rows():
        for name in total:
            total[name] += part[name]
    return Summary(**total)


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ModelError(
            "stencilm.ray needs Ray Data with pyarrow: pip install 'stencilm[ray]'"
        ) from error
    return pyarrow


def _finished(folder: str) -> FinishedRows:
    from stencilm.integrations.ray.finished import FinishedRows

    return FinishedRows(folder)


def _digest(*parts: Any) -> str:
    from stencilm.integrations.ray.finished import digest_of

    return digest_of(*parts)


def _sameness(job: _Job) -> Any:
    """Everything that determines a text besides its prompt and its key, as data."""
    model = _function_text(job.model) if callable(job.model) else str(job.model)
    told = {name: repr(value) for name, value in sorted(job.model_options.items())}
    kind = _type_text(job.output_type)
    return [job.engine, model, told, kind, dict(job.options), job.seed]


def _function_text(function: Any) -> str:
    """A function as its name, defaults and bound arguments."""
    if isinstance(function, partial):
        named = sorted(function.keywords.items())
        return f"{_function_text(function.func)}{function.args!r}{named!r}"
    name = getattr(function, "__qualname__", type(function).__qualname__)
    owner = getattr(function, "__self__", None)
    told = [
        getattr(function, "__defaults__", None),
        getattr(function, "__kwdefaults__", None),
        owner.__qualname__ if isinstance(owner, type) else None,  # of a class method
    ]
    said = [one for one in told if one is not None]
    return f"{getattr(function, '__module__', '')}:{name}{said or ''}"


def _check_has_name(function: Any) -> None:
    """Refuse a function whose name does not distinguish it from one with other captured values."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isclass(function):
        return
    if not inspect.isroutine(function):
        kind = f"an object of {type(function).__qualname__}"
    elif "<lambda>" in function.__qualname__:
        kind = "a lambda"
    elif getattr(function, "__closure__", None):
        kind = f"{function.__qualname__}, which takes values from around it"
    elif inspect.ismethod(function) and not inspect.isclass(function.__self__):
        kind = f"{function.__qualname__}, a method of an object"
    else:
        return
    raise ValueError(
        "resume knows a function that makes a model by its name, which does not say what is in "
        f"{kind}: give a function of its own, and what it depends on as model_options"
    )


def _type_text(output_type: Any) -> str:
    """The texts of an output type, described the same way in every process and on every day.

    Its values need not be part of that: they are read again from the stored texts.
    """
    return repr(resolve(output_type).grammar().source)


def _key_of(row: Row, key: str) -> Any:
    if key not in row:
        raise ValueError(f"the row has no column {key!r}, which key= names")
    value = row[key]
    if value is None:
        raise ValueError(f"the column {key!r}, which key= names, is null in this row")
    return value.item() if hasattr(value, "item") else value


def _table(batch: Any) -> Any:
    """Convert a batch in any of Ray Data's formats to an Arrow table."""
    pa = _arrow()
    if isinstance(batch, pa.Table):
        return batch
    from ray.data.block import BlockAccessor

    return BlockAccessor.for_block(BlockAccessor.batch_to_block(batch)).to_arrow()


def _rows(table: Any) -> list[Row]:
    return [dict(row) for row in table.to_pylist()]


def _well_formed(text: str) -> str:
    """Replace lone surrogates, which Arrow's strings cannot hold."""
    return text.encode("utf-8", "replace").decode()
