"""The interface of llguidance's Python package over this package's engine.

One idea: as in the original, a matcher never raises an exception for a grammar or a token. It goes
into an error state instead, which `is_error` and `get_error` report.
"""

from stencilm._core import __version__
from stencilm.compat.llguidance.executor import LLExecutor
from stencilm.compat.llguidance.interpreter import LLInterpreter
from stencilm.compat.llguidance.limits import LLParserLimits
from stencilm.compat.llguidance.matcher import LLMatcher
from stencilm.compat.llguidance.notations import (
    GrammarFormat,
    JsonCompiler,
    LarkCompiler,
    RegexCompiler,
    grammar_from,
    regex_to_lark,
)
from stencilm.compat.llguidance.struct_tag import StructTag
from stencilm.compat.llguidance.tokenizer import LLTokenizer, TokenizerWrapper

__all__ = [
    "GrammarFormat",
    "JsonCompiler",
    "LLExecutor",
    "LLInterpreter",
    "LLMatcher",
    "LLParserLimits",
    "LLTokenizer",
    "LarkCompiler",
    "RegexCompiler",
    "StructTag",
    "TokenizerWrapper",
    "__version__",
    "get_version",
    "grammar_from",
    "regex_to_lark",
]


def get_version() -> str:
    """The name and version of this package."""
    return f"stencilm@{__version__}"
