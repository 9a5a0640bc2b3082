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
    """The layout of JSON texts. It has no effect on types whose texts are not JSON.

    Options given to a `JsonSchema` itself take precedence.

    Attributes:
        compact: Write no whitespace between the parts of the JSON text. Default False.
        indent: Write JSON as `json.dumps` does with this indent.
        max_whitespace: The longest run of whitespace, if the layout is free; None for no limit.
            Default 64.
        escapes: "minimal" escapes only characters that JSON requires to be escaped. "any" also
            allows all other escapes. Default "any".
    """

    compact: bool | None
    indent: int | None
    max_whitespace: int | None
    escapes: Escapes | None


class Drawing(TextLayout, total=False):
    """Options for generating a text, accepted by every call that generates one.

    Attributes:
        max_tokens: The maximum number of tokens. By default 512 for a local model. A model behind
            an API gets no limit by default, and its text is closed after 4,096 tokens.
        temperature: 0 always takes the most probable token; see `Sampling` for this and the
            options below. By default 0 for a local model, and the endpoint's own default
            otherwise.
        top_p: Keep the smallest set of most probable tokens whose probabilities add up to this.
        top_k: Keep this number of the most probable tokens; None for all.
        min_p: Keep the tokens whose probability is at least this fraction of the highest one.
        repetition_penalty: A penalty for tokens of the prompt and the text.
        frequency_penalty: A penalty for each time that a token occurs in the text.
        presence_penalty: A penalty for tokens that occur in the text.
        logit_bias: Numbers that are added to the logits of tokens, by token id.
        stop: Strings that end the text. They are not part of it.
        seed: The same seed gives the same text; None for a random one.
        sampling: For local models. "masked" draws each token from those that the grammar allows,
            so texts are too probable where the model would have left the grammar later.
            "exact" and "smc" draw whole texts of the grammar within `max_tokens`, with the
            probabilities that the model gives them: "exact" by rejection, learning from each
            rejected text, "smc" approximately, from several texts generated in parallel. For
            these, the temperature is 1 by default and cannot be 0. Default "masked".
        particles: For "smc", the number of texts generated in parallel; more are closer to the
            model. By default the number of texts asked for, and at least 8.
        max_passes: For "exact", the maximum number of forward passes for one text. Default 10,000.
        draft: For local models, what proposes the next tokens, so that the model reads several in
            one forward pass. "lookup" proposes forced tokens and tokens that followed the same ones
            before, in the prompt and the texts of the call; a smaller model of the same vocabulary
            generates its proposals. The same seed gives the same text with and without, up to
            rounding, and the texts of a batch are generated one after another. None, the default,
            for no proposals.
        reasoning: Whether the model reasons before it answers; `max_tokens` does not include that.
            "auto": if its chat template does so, or the prompt ends with its marker. True, or a
            maximum number of tokens (2,048 for True): it reasons. False: it does not, if its
            template can disable that. "draft": it first answers freely, and then gives that answer
            in the form of the type. For a model behind an API, the provider's own option is set,
            and nothing for "auto"; some providers take an effort instead of a number. A model
            without markers for reasoning, or without such an option, is asked twice.
            Default "auto".
        limits: `Limits` for the work and memory of the grammar; None for those of the output type
            or the model.
        max_retries: How often the model is asked again if validators of the type refuse a text. It
            is told the reason. Default 1.
        finish: What happens if `max_tokens` or the context is used up before the end of the text.
            "valid": near the end, a local model is restricted to tokens with which the text can
            still be completed in time; the text of a model behind an API is completed from the
            grammar. Such a result has `finish_reason` "length", `closed` is true, and `filled`
            lists the completed part. A text of which the model wrote nothing raises
            `IncompleteOutput`. "cut": every incomplete text raises it. By default "valid" for a
            local model and "cut" for an endpoint.
        budget: For endpoints, a limit on the cost of the text, without retries.
        whitespace_budget: For local models and JSON, the most bytes of whitespace between the
            parts of the whole text, in addition to `max_whitespace` for one run. Near the limit,
            tokens that would exceed it are not allowed, unless there are no others. By default no
            limit.

    The options of `TextLayout` are accepted as well. An option that is None counts as not given,
    except `max_whitespace`, for which it means no limit.

    Raises:
        UnsupportedFeature: The endpoint does not support an option. This is also a ValueError.
    """

    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    repetition_penalty: float | None
    frequency_penalty: float | None
    presence_penalty: float | None
    logit_bias: Mapping[int, float] | None
    stop: str | Sequence[str] | None
    seed: int | None
    sampling: SamplingMethod | None
    particles: int | None
    max_passes: int | None
    draft: Draft
    reasoning: Reasoning | None
    limits: Limits | None
    max_retries: int | None
    finish: Finish | None
    budget: Budget | None
    whitespace_budget: int | None


_OPTIONAL = frozenset(Drawing.__annotations__) - {"max_whitespace"}


def given_options(options: Mapping[str, Any]) -> Drawing:
    """The options without those that are None, which count as not given."""
    given: Any = {
        name: value for name, value in options.items() if value is not None or name not in _OPTIONAL
    }
    checked: Drawing = given
    return checked


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
        if not isinstance(given, (str, Sequence)) or isinstance(given, (bytes, bytearray)):
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
    left = {name: value for name, value in given_options(given).items() if name not in without}
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
