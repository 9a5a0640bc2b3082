"""Grammars for guiding, and the three steps of it by themselves.

One idea: `obtain_correction_pairs` says where a text left the grammar and what might have come
there, `choose_candidate` lets a model say which, and a program may do the rest as it likes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stencilm.candidates import Candidate, Literal, Pattern
from stencilm.compiler import CompiledGrammar
from stencilm.errors import StencilError
from stencilm.generation.result import IncompleteOutput
from stencilm.grammar import Grammar
from stencilm.guiding.backtrack import cut_place, readable
from stencilm.guiding.texts import byte_matcher
from stencilm.output_types import alternatives, grammar_of

_CHOICE_TOKENS = 32
_GRAMMAR_FILES = (".lark", ".ebnf", ".gbnf")


def load_parser(source: str | Path) -> Grammar:
    """A grammar from Lark text or EBNF text, or from a file that holds either.

    EBNF is known by its `::=`. A `Path`, or a name that ends with .lark, .ebnf or .gbnf, is read.

    Raises:
        GrammarSyntaxError: The text is not well formed; has line and column.
        OSError: The file cannot be read.
    """
    if isinstance(source, Path) or (
        isinstance(source, str) and "\n" not in source and source.endswith(_GRAMMAR_FILES)
    ):
        source = Path(source).read_text(encoding="utf-8")
    return Grammar.from_ebnf(source) if "::=" in source else Grammar.from_lark(source)


def obtain_correction_pairs(prediction: str, parser: Any) -> tuple[str, list[Candidate]]:
    """The longest beginning of a text that fits, and what may come behind it.

    Where the text dies inside a known word, such as `SELEC`, the beginning ends before the word.
    A text that fits as a whole comes back as it is, with what may follow it.

    Args:
        prediction: What a model wrote.
        parser: A grammar, or anything else that `guide` takes for one.

    Returns:
        The beginning, and up to 16 candidates: `Literal` for a text, `Pattern` for what has many.
        What begins with a known text, such as a keyword and the blank behind it, is that text.
    """
    matcher = byte_matcher(as_grammar(parser))
    text = prediction.encode("utf-8", "replace")
    verdict = matcher.longest_valid_prefix(text)
    if verdict.status != "dead":
        matcher.accept_string(text)
        return prediction, readable(matcher.candidates())
    keep, candidates = cut_place(matcher, text, verdict.valid_bytes)
    return text[:keep].decode(), candidates


def choose_candidate(candidates: Sequence[Candidate | str], prefix: str, target_model: Any) -> str:
    """The candidate that a model prefers behind a prefix; for a pattern, a text that it writes.

    Args:
        candidates: What may come; a plain str stands for itself.
        prefix: The text so far, the prompt included.
        target_model: A `stencilm.Model`, which takes the most probable of them; or any
            `fn(prompt) -> str`, which is given the texts with numbers and answers with one.

    Raises:
        ValueError: There is no candidate.
    """
    given = [Literal(c) if isinstance(c, str) else c for c in candidates]
    if not given:
        raise ValueError("there are no candidates to choose from")
    literals = [c.text for c in given if isinstance(c, Literal)]
    if len(given) == 1 and literals:
        return literals[0]
    grammar = candidates_grammar(given)
    generate = getattr(target_model, "generate_text", None)
    if generate is not None:
        return str(generate(prefix, grammar, max_tokens=_CHOICE_TOKENS))
    if not callable(target_model):
        raise TypeError(
            f"target_model is a {type(target_model).__name__}, but must be a stencilm.Model or a "
            "function of a prompt"
        )
    if hasattr(target_model, "backend"):
        return _written(target_model, prefix, grammar)
    return _asked(target_model, prefix, literals, grammar)


def chooser_of(target_model: Any) -> Callable[[Sequence[Candidate], str], str] | None:
    """A chooser for the loops; it gives no text where there is nothing to choose from."""
    if target_model is None:
        return None

    def choose(candidates: Sequence[Candidate], prefix: str) -> str:
        return choose_candidate(candidates, prefix, target_model) if candidates else ""

    return choose


def candidates_grammar(candidates: Sequence[Candidate]) -> Grammar:
    """The grammar of the texts of some candidates."""
    literals = [c.text for c in candidates if isinstance(c, Literal)]
    grammars = [Grammar.from_regex(alternatives(literals))] if literals else []
    grammars += [Grammar.from_regex(c.regex) for c in candidates if isinstance(c, Pattern)]
    return grammars[0] if len(grammars) == 1 else Grammar.union(*grammars)


def numbered(options: Sequence[str]) -> str:
    """A list of options for a model that answers with a number."""
    return "\n".join(f"{number}. {option}" for number, option in enumerate(options, start=1))


def picked(answer: str, options: Sequence[str]) -> str | None:
    """The option that an answer names by its number or its text; None where it names none."""
    number = re.search(r"\d+", answer)
    if number is not None and 1 <= int(number.group()[:6]) <= len(options):
        return options[int(number.group()[:6]) - 1]
    stripped = answer.strip().strip("\"'`.")
    return next((option for option in options if option.strip() == stripped), None)


def as_grammar(parser: Any) -> Grammar:
    """What `guide` takes as a grammar: one, the text of one, or an output type."""
    if isinstance(parser, Grammar):
        return parser
    if isinstance(parser, CompiledGrammar):
        return parser.grammar
    if isinstance(parser, (str, Path)):
        return load_parser(parser)
    return grammar_of(parser)


def _written(model: Any, prefix: str, grammar: Grammar) -> str:
    """What a model writes under the candidates' grammar, as far as it comes."""
    try:
        return str(model(prefix, grammar, max_tokens=_CHOICE_TOKENS))
    except IncompleteOutput as cut:
        return cut.text


def _asked(
    function: Callable[[str], str], prefix: str, literals: Sequence[str], grammar: Grammar
) -> str:
    """What a function of a prompt picks: by number among texts, else as it writes on."""
    if literals:
        answer = function(
            f"{prefix}\n\nWhich of these comes next in the text above?\n{numbered(literals)}\n"
            "Answer with the number only: "
        )
        return picked(answer, literals) or literals[0]
    matcher = byte_matcher(grammar)
    draft = function(prefix).strip().encode("utf-8", "replace")
    valid = draft[: matcher.longest_valid_prefix(draft).valid_bytes].decode("utf-8", "ignore")
    try:
        return valid or matcher.shortest_completion().decode()
    except StencilError:
        return valid
