"""`stencilm explain`: what may come next in a text, and why a token may not."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stencilm.cli.failure import Failure
from stencilm.cli.grammars import EMBEDDED, new_compiler, read_tokenizer, what_fits
from stencilm.cli.inputs import checked_text, read_prompt
from stencilm.cli.notations import GivenGrammar, takes_grammar
from stencilm.cli.options import Tokenizer, WrittenText
from stencilm.views.characters import json_text, visible
from stencilm.whole_numbers import written_number

_MOST_SHOWN = 60


@takes_grammar
def explain(
    grammar: GivenGrammar,
    tokenizer: Tokenizer = EMBEDDED,
    text: WrittenText = "",
    token: Annotated[
        list[str] | None,
        typer.Option("--token", help="A token to explain, by id or text; may be repeated."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, max=1000, help="The most possible next texts to show.")
    ] = 16,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Say whether a text fits a grammar, what may come next, and why a token may not.

    Exits with 1 if the text does not fit, and shows what could have come instead of the rest.
    """
    from stencilm.matching.matcher import GrammarMatcher

    written = read_prompt(text).encode()
    info = read_tokenizer(tokenizer)
    matcher = GrammarMatcher(new_compiler(info, grammar.limits).compile(grammar.grammar()))
    status, fits = what_fits(matcher, written)
    matcher.accept_string(written[:fits])
    record: dict[str, Any] = {
        "status": status,
        "valid_text": written[:fits].decode(),
        "rest": written[fits:].decode(),
        "may_end": matcher.is_completed(),
        "forced": matcher.find_jump_forward_string(),
        "next": [_candidate(candidate) for candidate in matcher.candidates(limit)],
        "allowed_tokens": matcher.num_allowed_tokens(),
        "vocab_size": info.vocab_size,
        "shortest_completion": _completion(matcher),
        "tokens": [_token(matcher, info, name) for name in token or ()],
    }
    if as_json:
        print(json_text(record))
    else:
        for line in _lines(record):
            print(visible(line))
    return 1 if status == "dead" else 0


def _candidate(candidate: Any) -> dict[str, str]:
    fields: dict[str, Any] = candidate._asdict()
    return fields


def _completion(matcher: Any) -> str | None:
    from stencilm.errors import MatcherError

    try:
        return bytes(matcher.shortest_completion()).decode(errors="replace")
    except MatcherError:
        return None  # only a token ends it, or the search would take too long


def _token(matcher: Any, info: Any, name: str) -> dict[str, Any]:
    """The fate of one token, given by its id or its text."""
    number = written_number(name) if name.isascii() else None  # other digits are text
    if number is not None and number < info.vocab_size:
        found = number
    else:
        spelled = checked_text(name).encode()
        ids = [index for index, entry in enumerate(info.decoded_vocab) if entry == spelled]
        if not ids:
            raise Failure(f"no token spells {name!r}: give one token, or its id")
        found = ids[0]
    return {
        "id": found,
        "text": info.decoded_vocab[found].decode(errors="replace"),
        "allowed": matcher.is_allowed(found),
        "why": matcher.explain(found),
    }


def _lines(record: dict[str, Any]) -> list[str]:
    words = {
        "complete": "fits, and may end here",
        "viable": "fits so far, and must go on",
        "dead": "does not fit",
    }
    lines = [f"the text {words[record['status']]}"]
    if record["status"] == "dead":
        kept, rest = record["valid_text"][-_MOST_SHOWN:], record["rest"][:_MOST_SHOWN]
        lines.append(f"fits up to here: {kept!r}; then comes {rest!r}, which cannot")
    if record["forced"]:
        lines.append(f"must go on with: {record['forced']!r}")
    for candidate in record["next"]:
        kind, value = next(iter(candidate.items()))
        lines.append(f"may go on with: {value!r}" if kind == "text" else f"may go on: /{value}/")
    lines.append(f"tokens allowed: {record['allowed_tokens']} of {record['vocab_size']}")
    if record["shortest_completion"] is not None and record["status"] != "complete":
        lines.append(f"shortest end: {record['shortest_completion']!r}")
    lines += [
        f"token {token['id']} {token['text']!r}: {token['why']}" for token in record["tokens"]
    ]
    return lines
