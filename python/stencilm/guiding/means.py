"""What a drafter of text can do, and what it is asked for before the text."""

from __future__ import annotations

from dataclasses import dataclass

from stencilm.grammars.grammar import Grammar
from stencilm.guiding.drafts import AskKind
from stencilm.models.reasoning import TwoSteps


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What the drafter can do for this grammar.

    With `may_refuse`, it is a model that may say something other than what was requested; that is
    then an error.
    """

    whole: bool = False
    choose: bool = False
    biases_tokens: bool = False
    reads_complaints: bool = False
    drafts_in_parts: bool = True
    may_refuse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The request before the text, for reasoning or a draft.

    Attributes:
        steps: The prompts of both requests.
        kind: The kind of the request.
        grammar: The grammar of free text.
        max_tokens: Its most tokens.
    """

    steps: TwoSteps
    kind: AskKind
    grammar: Grammar
    max_tokens: int
