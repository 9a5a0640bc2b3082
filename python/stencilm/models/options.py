"""How a text is written: the options that every call of a model takes, and their checks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from stencilm.characters import check_characters
from stencilm.generation.faithful import DEFAULT_MAX_PASSES
from stencilm.generation.sampling import Sampling
from stencilm.generation.sampling_report import SamplingMethod
from stencilm.grammars.output_types import laid_out
from stencilm.grammars.sources import Escapes
from stencilm.limits import Limits
from stencilm.matching.matcher import checked_whitespace
from stencilm.models.protocol import LanguageModel
from stencilm.models.reasoning import Reasoning, checked_reasoning
from stencilm.shown import is_word, shown_value
from stencilm.whole_numbers import as_whole, count, plain

if TYPE_CHECKING:
    from stencilm.guiding.task import Budget
    from stencilm.models.typed_model import TypedModel

Finish: TypeAlias = Literal["cut", "valid"]
Draft: TypeAlias = "Literal['lookup'] | LanguageModel | TypedModel | None"


class TextLayout(TypedDict, total=False):
    """How JSON is laid out in the text; without effect on a type whose texts are not JSON.

    What a `JsonSchema` says itself goes before these.

    Attributes:
        compact: Write no whitespace between the parts of JSON. Default False.
        indent: Write JSON as `json.dumps` does with this indent.
        max_whitespace: The longest run of whitespace, where the layout is free; None for no bound.
            64 where none is given.
        escapes: "minimal" escapes only what JSON needs escaped; "any", the default, allows more.
    """

    compact: bool
    indent: int | None
    max_whitespace: int | None
    escapes: Escapes


class Drawing(TextLayout, total=False):
    """How a text is written; every call that writes one takes these.

    Attributes:
        max_tokens: The most tokens to write. Where none is given, 512 for a local model; a model
            behind an API is told no bound, and its text is closed after 4,096 tokens.
        temperature: 0 takes the most probable token; see `Sampling` for this and the rest. Where
            none is given, a local model takes 0, and an endpoint whatever is usual there.
        top_p: Keep the fewest tokens that have this much probability together.
        top_k: Keep this many of the most probable tokens; None for all.
        min_p: Keep tokens that are at least this probable, next to the most probable one.
        repetition_penalty: For tokens of the prompt and the text.
        frequency_penalty: For each time that the text holds a token.
        presence_penalty: For tokens that the text holds.
        logit_bias: What is added to the logits of tokens, by their ids.
        stop: Texts that end the text; they are no part of it.
        seed: The same seed gives the same text; None for a new one.
        sampling: Local models. "masked", the default, draws each token among those that the grammar
            allows, so a text is too probable where the model would have left the grammar later.
            "exact" and "smc" draw whole texts with the probabilities that the model gives to them,
            among those of the grammar within `max_tokens`: "exact" by rejecting, which learns from
            each text, "smc" approximately, from several texts that are written side by side. The
            temperature is 1 where none is given, and not 0.
        particles: "smc": how many texts are written side by side; the more, the closer to the
            model. None for as many as are asked for, and at least 8.
        max_passes: "exact": the most forward passes for one text. 10,000 where none is given.
        draft: Local models. What guesses the next tokens, so that the model reads several in one
            forward pass: "lookup" takes what the grammar forces and what followed the same tokens
            before, in the prompt and the texts of the call; a smaller model of the same vocabulary
            writes them. The same seed gives the same text with it and without, up to rounding, and
            the texts of a batch are written one after another. None, the default, for no guesses.
        reasoning: Whether the model reasons before it answers, which `max_tokens` does not count.
            "auto", the default: where its chat template has it reason, or the prompt ends with its
            marker. True, or the most tokens of it (2,048 for True): it does. False: it does not,
            where its template can say so. "draft": it writes an answer as it likes first, and then
            that answer as the type asks. A model behind an API is told so in the provider's own
            way, and with "auto" nothing; some providers take an effort in the place of a number. A
            model that has no markers of its own for reasoning, and one that cannot be told, is
            asked twice.
        limits: How much work and memory the grammar may cost; None for those of the output type, or
            of the model.
        max_retries: How often the model is asked again where the type's own validators refuse a
            text; it is told why. 1 where none is given.
        finish: What to do where `max_tokens` or the context comes before the end of the text.
            "valid": near it, a local model is left only what still lets the text be whole in time;
            a model behind an API cannot be told so, and the grammar completes its text. The result
            says so: `finish_reason` is "length", `closed` is true, and `filled` tells the part. A
            text of which the model wrote nothing is an `IncompleteOutput`. "cut": so is every text
            without an end. "valid" for a local model where nothing else is given, "cut" for an
            endpoint.
        budget: Endpoints: what the text may cost, retries not included.
        whitespace_budget: Local models, and outputs that are JSON: the most bytes of whitespace
            between the parts of the whole text, beside `max_whitespace` for one run. Near that
            number tokens are left out that would overrun it, except where nothing else can come.
            No bound where none is given.

    Those of `TextLayout` are options as well.

    An endpoint that does not take an option refuses it: UnsupportedFeature, which is a ValueError.
    """

    max_tokens: int | None
    temperature: float | None
    top_p: float
    top_k: int | None
    min_p: float
    repetition_penalty: float
    frequency_penalty: float
    presence_penalty: float
    logit_bias: Mapping[int, float]
    stop: str | Sequence[str]
    seed: int | None
    sampling: SamplingMethod
    particles: int | None
    max_passes: int
    draft: Draft
    reasoning: Reasoning
    limits: Limits | None
    max_retries: int
    finish: Finish
    budget: Budget | None
    whitespace_budget: int | None


_NUMBERS = (
    *("temperature", "top_p", "top_k", "min_p", "repetition_penalty"),
    *("frequency_penalty", "presence_penalty", "seed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `Drawing` with their defaults, checked; without those of retries.

    Raises ValueError for values out of range, and TypeError for stop texts of another type.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float = 1.0
    top_k: int | None = None
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    stop: str | Sequence[str] = ()
    seed: int | None = None
    sampling: SamplingMethod = "masked"
    particles: int | None = None
    max_passes: int = DEFAULT_MAX_PASSES
    draft: Draft = None
    reasoning: Reasoning = "auto"
    limits: Limits | None = None
    finish: Finish | None = None
    budget: Budget | None = None
    whitespace_budget: int | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            self._set(name, plain(getattr(self, name)))
        self._set("whitespace_budget", checked_whitespace(self.whitespace_budget))
        if self.max_tokens is not None:
            self._set("max_tokens", count("max_tokens", self.max_tokens, least=1))
        if self.finish is not None and not is_word(self.finish, ("cut", "valid")):
            raise ValueError(
                f"finish is {shown_value(self.finish):.80}, but must be 'cut' or 'valid'"
            )
        if not is_word(self.sampling, ("masked", "exact", "smc")):
            raise ValueError(
                f"sampling is {shown_value(self.sampling):.80}, "
                f"but must be 'masked', 'exact' or 'smc'"
            )
        if self.particles is not None:
            particles = count("particles", self.particles, least=1)
            self._set("particles", particles)
        self._set("max_passes", count("max_passes", self.max_passes, least=1))
        if self.sampling != "masked":
            self._check_whole_texts()
        self._set("reasoning", checked_reasoning(self.reasoning))
        self.stops  # noqa: B018 - checked here
        self._set("logit_bias", self.token_sampling(0).logit_bias)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_whole_texts(self) -> None:
        """Raise ValueError for options that cannot be combined with sampling whole texts."""
        draws = f"sampling={self.sampling!r} draws whole texts"
        if self.temperature == 0 or self.top_k == 1:
            given, wish = ("a temperature of 0", "a temperature above 0")
            if self.temperature != 0:
                given, wish = ("top_k=1", "a greater top_k")
            raise ValueError(
                f"{draws} by chance, and {given} leaves nothing to chance: "
                f"give {wish}, or leave it out"
            )
        if self.stop:
            raise ValueError(f"{draws}, which no stop text can cut: leave out `stop`")
        if self.whitespace_budget is not None:
            raise ValueError(
                f"{draws} of the grammar, which a budget of whitespace would change on the way: "
                "leave out `whitespace_budget`, or give `compact` or `max_whitespace`"
            )
        if self.finish == "cut":
            raise ValueError(f"{draws}, which are never cut: leave out `finish`")

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop texts."""
        given = self.stop
        if not isinstance(given, (str, Sequence)):
            raise TypeError(
                f"stop is {shown_value(given):.60}, but must be a text, or a list of texts"
            )
        stops = (given,) if isinstance(given, str) else tuple(given)
        for one in stops:
            if not isinstance(one, str) or not one:
                raise ValueError(
                    f"stop holds {shown_value(one)}, but must hold texts that are not empty"
                )
            check_characters(one, "a text of stop", "no model can write")
        return stops

    @property
    def _temperature(self) -> float:
        if self.temperature is not None:
            return self.temperature
        return 0.0 if self.sampling == "masked" else 1.0

    def token_sampling(self, number: int) -> Sampling:
        """The sampling of text number `number` of a call."""
        seed = as_whole(self.seed)
        return Sampling(
            temperature=self._temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            logit_bias=self.logit_bias or {},
            seed=self.seed if seed is None else seed + number,
        )


def options_of(given: Drawing, *, without: Collection[str] = ()) -> Options:
    """The options of a call, checked, except the named ones.

    Raises TypeError for unknown options.
    """
    known = Drawing.__annotations__
    for name in given:
        if name not in known:
            raise TypeError(f"{name!r} is no option: give some of {', '.join(known)}")
    left = {name: value for name, value in given.items() if name not in without}
    left.pop("max_retries", None)
    options = Options(**left)  # type: ignore[arg-type]
    if options.budget is not None and not hasattr(options.budget, "tokens"):
        raise TypeError(
            f"budget is {shown_value(options.budget):.60}, but must be a Budget, such as "
            "Budget(calls=20)"
        )
    return options


_LAYOUT = frozenset(TextLayout.__annotations__)


def laid_out_with(output_type: Any, options: Drawing) -> tuple[Any, Drawing]:
    """The type with its layout, and the remaining options."""
    given: Any = {name: value for name, value in options.items() if name in _LAYOUT}
    if not given:
        return output_type, options
    if given.get("indent") is not None:
        given["any_whitespace"] = False
    else:
        given.pop("indent", None)
    left: Any = {name: value for name, value in options.items() if name not in _LAYOUT}
    return laid_out(output_type, given), left
