"""What `index` and `trace` have in common: a grammar by one of several options, and a tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stencilm.cli.failure import USAGE, Failure
from stencilm.cli.inputs import read_schema, read_text, read_type

EMBEDDED = "tiny"


def read_grammar(
    *,
    schema: str | None,
    type_name: str | None,
    regex: str | None,
    ebnf: str | None,
    limits: Any,
) -> Any:
    """The grammar of the one option that is given."""
    from stencilm.grammars.output_types import Ebnf, JsonSchema, Regex, grammar_of

    options = {"--schema": schema, "--type": type_name, "--regex": regex, "--ebnf": ebnf}
    given = [name for name, value in options.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(given) if given else "nothing"
        raise Failure(f"give one of {', '.join(options)}, not {found}", USAGE)
    if schema is not None:
        return grammar_of(JsonSchema(read_schema(schema)), limits)
    if type_name is not None:
        return grammar_of(read_type(type_name), limits)
    if ebnf is not None:
        return grammar_of(Ebnf(read_text(ebnf)), limits)
    return grammar_of(Regex(regex or ""), limits)


def new_compiler(info: Any, limits: Any, **options: Any) -> Any:
    """A compiler within limits, or within the usual ones for None."""
    from stencilm.limits import DEFAULT_LIMITS
    from stencilm.matching.compiler import GrammarCompiler

    return GrammarCompiler(info, limits=limits or DEFAULT_LIMITS, **options)


def read_tokenizer(source: str) -> Any:
    """The tokenizer of a file or folder, or the embedded one."""
    import stencilm
    from stencilm.tokenizers import TokenizerInfo

    if source == EMBEDDED:
        return TokenizerInfo.from_file(Path(stencilm.__file__).parent / EMBEDDED)
    if not Path(source).exists():
        raise Failure(f"there is no tokenizer file or folder {source!r}")
    return TokenizerInfo.from_file(source)
