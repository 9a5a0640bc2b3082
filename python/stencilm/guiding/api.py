"""`guide` and `aguide`: any model in, a valid text out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from stencilm.errors import MatcherError
from stencilm.files import check_writable
from stencilm.generation.sampling import Sampling
from stencilm.generation.trace import Event, Trace, checked_listener
from stencilm.grammars.grammar import Grammar
from stencilm.grammars.output_types import alternatives
from stencilm.grammars.outputs import resolve
from stencilm.guiding.choosers import chooser_of
from stencilm.guiding.drafts import Answer, Ask, Consult, Drafter, FunctionDrafter
from stencilm.guiding.healing import healer
from stencilm.guiding.local import LocalGuide
from stencilm.guiding.means import First, Means
from stencilm.guiding.parsers import as_grammar
from stencilm.guiding.task import Budget, Guided, Options
from stencilm.guiding.text import TextGuide
from stencilm.in_thread import in_thread
from stencilm.matching.compiler import GrammarCompiler
from stencilm.matching.matcher import GrammarMatcher
from stencilm.matching.texts import byte_vocabulary, compiler_of
from stencilm.models.loading import wrap_transformers
from stencilm.models.protocol import LanguageModel, checked_prompt
from stencilm.models.reasoning import Reasoned, Reasoning, TwoSteps, budget_of, format_of, reason
from stencilm.shown import in_a_line, name_of, shown_value
from stencilm.whole_numbers import truth

OnEvent = Callable[[Event], None]
_LocalSteps: TypeAlias = Generator[Event | Consult, Answer | None, Guided]


def guide(
    draft_model: Any,
    parser: Any,
    prompt: Any,
    target_model: Any = None,
    tokenizer: Any = None,
    seed_str: str | None = None,
    max_grammar_corrections: int | None = 20,
    stop_at: Collection[str] | None = None,
    token_healing: bool = True,
    top_p: float | None = 1.0,
    temperature: float | None = None,
    token_lookahead: int | None = 20,
    save_html: bool | str | Path = False,
    verbose: bool = False,
    debug: bool = False,
    *,
    seed: int | None = None,
    budget: Budget | None = None,
    reasoning: Reasoning | None = "auto",
    on_event: OnEvent | None = None,
) -> Guided:
    """Let a model write freely, correct it where it leaves the grammar, and end valid.

    Args:
        draft_model: A `stencilm.Model`, a transformers model (with `tokenizer`), an API model, or a
            function: `fn(prompt) -> str`, called with the prompt and the text so far as one string,
            or `fn(prefix, prompt, max_new_tokens) -> str`.
        parser: A `Grammar`, the text of one, a `Path` to a file with one, or an output type.
        prompt: The prompt; it is not part of the response.
        target_model: Chooses among the candidates where the draft left the grammar: a
            `stencilm.Model`, an API model, or a function of a prompt. None leaves that to the draft
            model. If it raises, the exception is recorded, and the draft model chooses.
        tokenizer: The tokenizer of a transformers model.
        seed_str: The beginning of the response.
        max_grammar_corrections: After this many, the text is closed by a shortest completion.
        stop_at: Texts that end the draft; they are not part of the response.
        token_healing: Local models only: takes back tokens at the end of a given text where a
            longer token may spell them.
        top_p: As in `Sampling`.
        temperature: As in `Sampling`. None means 0 for a local model; an endpoint is then sent no
            temperature.
        token_lookahead: The most tokens that a call of a text function or an endpoint drafts, and
            that a local model checks in one pass.
        save_html: A file for the HTML page of the trace; True for `guide.html`. `result.html` is
            always available.
        verbose: Print what happens to standard error, in colour.
        debug: After every cut, compare the logits with those of a fresh pass.
        seed: The same seed draws the same text; None for a new one.
        budget: What the text may cost; see `Budget`. Tokens of reasoning do not count.
        reasoning: Whether the model reasons before it writes: "auto", True, False, a maximum of
            tokens, or "draft", as for every call of a model. A function is asked twice.
        on_event: Called with each event as it happens.

    Raises:
        TypeError: The draft model is of another type, or returned something other than text.
        OSError: The file of `save_html` cannot be written; this is checked before the model is
            called.
        ValueError: An option is out of range, or the seed text does not fit the grammar.
        StencilError: The grammar cannot be compiled, or the local model cannot be run.
        EndpointError: The endpoint cannot be reached, or answered with an error, after the retries
            of its client.
        ModelRefused: The model behind an endpoint refused, was filtered, wrote nothing, or answered
            twice with nothing that fits.
        Exception: Whatever a draft function raises.

    Examples:
        >>> import stencilm
        >>> def draft(prompt: str) -> str:
        ...     return "AB+1"
        >>> stencilm.guide(draft, stencilm.Regex("[A-Z]{2}-1"), "A code:").response
        'AB-1'
    """
    options = _options(
        max_grammar_corrections=max_grammar_corrections,
        stop_at=stop_at,
        token_healing=token_healing,
        top_p=top_p,
        temperature=temperature,
        token_lookahead=token_lookahead,
        seed_str=seed_str,
        seed=seed,
        budget=budget,
        reasoning=reasoning,
        debug=debug,
    )
    file = _html_file(save_html)
    listeners = _listeners(verbose, on_event)
    task = _Task(draft_model, parser, prompt, target_model, tokenizer, options, listeners)
    guided = task.run()
    _save(guided, file)
    return guided


async def aguide(
    draft_model: Any, parser: Any, prompt: Any, target_model: Any = None, **options: Any
) -> Guided:
    """`guide` as a coroutine: for coroutine functions, asynchronous clients, and busy event loops.

    The arguments are those of `guide`; the target model may also be a coroutine function or have an
    asynchronous client. Endpoints and coroutine functions are awaited; local models and plain
    functions run in a thread. If the task is cancelled, so is the running call, and a local model
    stops before its next forward pass.

    Examples:
        >>> import asyncio
        >>> import stencilm
        >>> async def draft(prompt: str) -> str:
        ...     return "yes"
        >>> asyncio.run(stencilm.aguide(draft, stencilm.Choice(["yes", "no"]), "?")).response
        'yes'
    """
    given = _given(draft_model, parser, prompt, target_model, options)
    drafter = _drafter(draft_model)
    if drafter is not None:
        # Compile without blocking the event loop, which may be busy.
        task, file = await in_thread(_ready, given)
        loop = await in_thread(task.text_guide, drafter)
        guided = await task.arun(drafter, loop)
        _save(guided, file)
        return guided
    is_wanted = True
    on_event = checked_listener(given["on_event"])

    def listen(event: Event) -> None:
        if not is_wanted:
            raise RuntimeError("the task that wanted this text was cancelled")
        if on_event is not None:
            on_event(event)

    try:
        task, file = await in_thread(_ready, {**given, "on_event": listen})
        guided = await task.arun_local()
        await in_thread(_save, guided, file)
        return guided
    finally:  # a thread that is still running stops at its next event
        is_wanted = False


def _given(*arguments: Any) -> dict[str, Any]:
    """The arguments by name, for `guide` and `aguide`."""
    *by_place, options = arguments
    try:
        bound = signature(guide).bind(*by_place, **options)
    except TypeError as error:
        raise TypeError(f"guide() {error}") from None
    bound.apply_defaults()
    return bound.arguments


def _ready(given: dict[str, Any]) -> tuple[_Task, Path | None]:
    """From the arguments of `guide`, a text that is ready to run, and the file of its page.

    Raises the errors of `guide` before any call.
    """
    names = signature(Options).parameters.keys() | signature(Sampling).parameters.keys()
    options = _options(**{name: value for name, value in given.items() if name in names})
    file = _html_file(given["save_html"])
    listeners = _listeners(given["verbose"], given["on_event"])
    task = _Task(
        given["draft_model"], given["parser"], given["prompt"], given["target_model"],
        given["tokenizer"], options, listeners,
    )  # fmt: skip
    return task, file


class _Task:
    """One call of `guide`, ready to run."""

    def __init__(
        self,
        draft_model: Any,
        parser: Any,
        prompt: Any,
        target_model: Any,
        tokenizer: Any,
        options: Options,
        listeners: list[OnEvent],
    ) -> None:
        self._options = options
        self._listeners = listeners
        self._chooser = chooser_of(target_model)
        self._prompt = prompt
        self._grammar = as_grammar(parser)
        self._called = name_of(self._grammar if isinstance(parser, (str, Path)) else parser)
        self._draft_model = draft_model
        self._tokenizer = tokenizer

    def run(self) -> Guided:
        drafter = _drafter(self._draft_model)
        if drafter is None:
            return self._run_local()
        loop = self.text_guide(drafter)
        steps = loop.run()
        answer: Answer | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return loop.result()
            answer = None
            if isinstance(step, Ask):
                answer = drafter.answer(step)
            elif isinstance(step, Consult):
                assert self._chooser is not None, "invariant: there is somebody to consult"
                answer = self._chooser.answer(step)
            else:
                self._tell(loop, step)

    async def arun(self, drafter: Drafter, loop: TextGuide) -> Guided:
        steps = loop.run()
        answer: Answer | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return loop.result()
            answer = None
            if isinstance(step, Ask):
                answer = await drafter.answer_async(step)
            elif isinstance(step, Consult):
                assert self._chooser is not None, "invariant: there is somebody to consult"
                answer = await self._chooser.answer_async(step)
            else:
                self._tell(loop, step)

    def _sign(self, trace: Trace) -> None:
        """Name the model and the grammar in the trace."""
        name = getattr(self._draft_model, "name", None)
        trace.model = name if isinstance(name, str) else None
        trace.grammar = self._called

    def _tell(self, loop: TextGuide, event: Event) -> None:
        loop.trace.append(event)
        for listener in self._listeners:
            listener(event)

    def text_guide(self, drafter: Drafter) -> TextGuide:
        loop = text_guide(
            drafter, self._grammar, self._prompt,
            options=self._options, has_chooser=self._chooser is not None,
            first=_first(drafter, self._options),
        )  # fmt: skip
        self._sign(loop.trace)
        return loop

    def _run_local(self) -> Guided:
        steps = self._local_steps()
        step = self._advance(steps)
        while isinstance(step, Consult):
            assert self._chooser is not None, "invariant: there is somebody to consult"
            step = self._advance(steps, self._chooser.answer(step))
        return step

    async def arun_local(self) -> Guided:
        """Run a local model in threads, none of which is blocked while a chooser decides."""
        steps = self._local_steps()
        step = await in_thread(self._advance, steps)
        while isinstance(step, Consult):
            assert self._chooser is not None, "invariant: there is somebody to consult"
            answer = await self._chooser.answer_async(step)
            step = await in_thread(self._advance, steps, answer)
        return step

    def _advance(self, steps: _LocalSteps, answer: Answer | None = None) -> Consult | Guided:
        """Continue up to the next request, or to the end."""
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                guided: Guided = end.value
                return guided
            if isinstance(step, Consult):
                return step
            answer = None
            for listener in self._listeners:
                listener(step)

    def _local_steps(self) -> _LocalSteps:
        """The events of a local text, including its reasoning, and requests to the chooser."""
        model = _backend(self._draft_model, self._tokenizer)
        options = self._options
        compiler = compiler_of(model.tokenizer_info)
        reasoned: Reasoned | None = None
        events: list[Event] = []
        if _may_reason(model, self._prompt, options.reasoning):
            steps = reason(
                model, lambda: GrammarMatcher(compiler.compile_grammar(_free_text())),
                self._prompt, options.reasoning, options.budget.tokens, options.sampling,
            )  # fmt: skip
            while True:
                try:
                    events.append(next(steps))
                except StopIteration as end:
                    reasoned = end.value
                    break
                yield events[-1]
        loop = local_guide(
            model, compiler, self._grammar, self._prompt,
            options=options, has_chooser=self._chooser is not None, reasoned=reasoned,
        )  # fmt: skip
        self._sign(loop.trace)
        for event in events:
            loop.trace.append(event)
        yield from loop.run()
        return loop.result()


def text_guide(
    drafter: Drafter,
    grammar: Grammar,
    prompt: Any,
    *,
    options: Options,
    has_chooser: bool = False,
    first: First | None = None,
) -> TextGuide:
    """A text of a function or an endpoint, ready to be guided."""
    info = getattr(drafter, "tokenizer_info", None) or byte_vocabulary()
    matcher = GrammarMatcher(compiler_of(info).compile_grammar(grammar))
    _check_seed(matcher, options.seed_str)
    means = Means(
        whole=drafter.can("whole", grammar),
        choose=drafter.can("choose", grammar),
        biases_tokens=getattr(drafter, "biases_tokens", False),
        reads_complaints=drafter.reads_complaints,
        drafts_in_parts=getattr(drafter, "drafts_in_parts", True),
        may_refuse=getattr(drafter, "may_refuse", False),
    )
    # A function may be called with anything.
    checked = getattr(drafter, "checked_prompt", None)
    if (check_budget := getattr(drafter, "check_budget", None)) is not None:
        check_budget(options.budget)
    return TextGuide(
        matcher, grammar, prompt if checked is None else checked(prompt),
        options=options, means=means, vocab_size=info.vocab_size, has_chooser=has_chooser,
        first=first,
    )  # fmt: skip


def local_guide(
    model: LanguageModel,
    compiler: GrammarCompiler,
    grammar: Grammar,
    prompt: Any,
    *,
    options: Options,
    has_chooser: bool = False,
    reasoned: Reasoned | None = None,
) -> LocalGuide:
    """A local text ready to be guided: the prompt encoded together with the seed, and healed."""
    info = model.tokenizer_info
    prompt_ids = model.encode(checked_prompt(prompt)) if reasoned is None else reasoned.prompt_ids
    seed = options.seed_str.encode()
    if seed and reasoned is not None:
        prompt_ids = [*prompt_ids, *info.tokenize_bytes(seed)]
    elif seed:
        both = model.encode(prompt + options.seed_str) if isinstance(prompt, str) else []
        spelled = info.decode_bytes(prompt_ids) + seed
        # Together if the tokenizer preserves both; otherwise one after the other.
        prompt_ids = (
            both if info.decode_bytes(both) == spelled else prompt_ids + info.tokenize_bytes(seed)
        )
    keep, healed = len(prompt_ids), b""
    # A chat template has a fixed end, so there is nothing to heal before the first text of our own.
    if options.token_healing and (seed or isinstance(prompt, str)) and reasoned is None:
        keep, healed = healer(info).split(prompt_ids)
    before = healed[: max(0, len(healed) - len(seed))]
    try:
        prefix = before.decode()
    except UnicodeDecodeError:  # it begins within a character
        keep, healed, before, prefix = len(prompt_ids), b"", b"", ""
    whole = grammar
    if prefix:
        whole = Grammar.concat(Grammar.from_regex(alternatives([prefix])), grammar)
    matcher = GrammarMatcher(
        compiler.compile_grammar(whole), terminate_without_stop_token=not info.stop_token_ids
    )
    written = before + seed
    _check_seed(matcher, written.decode() if written else "")
    matcher.accept_string(written[: len(written) - len(healed)])
    return LocalGuide(
        model, matcher, prompt_ids[:keep],
        options=options, has_chooser=has_chooser, healed=healed, removed=prompt_ids[keep:],
        prompt_text=prompt if isinstance(prompt, str) else "", before=len(before), text=written,
        reasoned=reasoned,
    )  # fmt: skip


def _first(drafter: Drafter, options: Options) -> First | None:
    """The request to a drafter before the text; None if there is none."""
    reasoning = options.reasoning
    is_draft = reasoning == "draft"
    is_native = getattr(drafter, "reasons_natively", False)
    if not is_draft and (is_native or reasoning == "auto" or not budget_of(reasoning)):
        return None
    grammar = _free_text()
    return First(
        steps=TwoSteps(is_draft, as_text=isinstance(drafter, FunctionDrafter)),
        kind="whole" if drafter.can("whole", grammar) else "draft",
        grammar=grammar,
        max_tokens=options.budget.tokens if is_draft else budget_of(reasoning),
    )


def _may_reason(model: LanguageModel, prompt: Any, reasoning: Reasoning) -> bool:
    """Whether a local model writes something before the text, or must be told not to."""
    return reasoning != "auto" or format_of(model) is not None


def _free_text() -> Grammar:
    return resolve(str).grammar()


def _options(
    *,
    stop_at: Collection[str] | None,
    top_p: float | None,
    temperature: float | None,
    seed: int | None,
    seed_str: str | None,
    budget: Budget | None,
    **same: Any,
) -> Options:
    """The options of `guide` in the form for the loops; one that is None has its default."""
    for name in ("max_grammar_corrections", "token_lookahead", "reasoning"):
        if same[name] is None:
            del same[name]
    if isinstance(stop_at, str):
        stop_at = (stop_at,)
    is_bytes = isinstance(stop_at, (bytes, bytearray))
    if stop_at is not None and (is_bytes or not isinstance(stop_at, Collection)):
        raise TypeError(
            f"stop_at is {shown_value(stop_at):.60}, but must be a text, or a list of texts"
        )
    stops = () if stop_at is None else tuple(stop_at)
    return Options(
        stop_at=stops,
        sampling=Sampling(
            temperature=0.0 if temperature is None else temperature,
            top_p=1.0 if top_p is None else top_p,
            seed=seed,
        ),
        temperature=temperature,
        seed_str="" if seed_str is None else seed_str,
        budget=Budget() if budget is None else budget,
        has_budget=budget is not None,
        **same,
    )


def _drafter(draft_model: Any) -> Drafter | None:
    """The drafter; None for a model whose logits are available."""
    if isinstance(draft_model, Drafter):
        return draft_model
    is_local = (
        isinstance(draft_model, LanguageModel)
        or isinstance(getattr(draft_model, "backend", None), LanguageModel)
        or hasattr(draft_model, "get_output_embeddings")
    )
    if is_local:
        return None
    if not callable(draft_model):
        raise TypeError(
            f"draft_model is a {type(draft_model).__name__}, but must be a stencilm.Model, a "
            "transformers model with its tokenizer, an API model, or a function"
        )
    return FunctionDrafter(draft_model)


def _backend(draft_model: Any, tokenizer: Any) -> LanguageModel:
    if isinstance(draft_model, LanguageModel):
        return draft_model
    backend = getattr(draft_model, "backend", None)
    if isinstance(backend, LanguageModel):
        return backend
    if tokenizer is None:
        raise TypeError("a transformers model needs its tokenizer: give guide(..., tokenizer=...)")
    return wrap_transformers(draft_model, tokenizer)


def _check_seed(matcher: GrammarMatcher, seed: str) -> None:
    verdict = matcher.longest_valid_prefix(seed)
    if verdict.status == "dead":
        raise MatcherError(
            f"the seed text {in_a_line(seed, 200)} does not fit the grammar behind its first "
            f"{verdict.valid_bytes} bytes"
        )


def _listeners(verbose: bool, on_event: OnEvent | None) -> list[OnEvent]:
    listener = checked_listener(on_event)
    listeners = [] if listener is None else [listener]
    if truth("verbose", verbose):
        from stencilm.views.terminal import printer

        listeners.append(printer())
    return listeners


def _html_file(save_html: Any) -> Path | None:
    """The file for the page. Raises OSError if it cannot be written."""
    if save_html is False:
        return None
    if save_html is not True and not isinstance(save_html, (str, PathLike)):
        raise TypeError(
            f"save_html is {shown_value(save_html):.60}, but must be the name of a file, or True "
            "for "
            "guide.html"
        )
    path = Path("guide.html" if save_html is True else save_html)
    check_writable(path)
    return path


def _save(guided: Guided, path: Path | None) -> None:
    if path is not None:
        path.write_text(guided.html, encoding="utf-8")
