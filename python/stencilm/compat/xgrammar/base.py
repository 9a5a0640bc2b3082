"""`XGRObject`, which this package does not have."""

from typing import NoReturn


class XGRObject:
    """The base of the original's classes, but not of those here.

    Raises:
        NotImplementedError: Always.
    """

    def __new__(cls) -> NoReturn:
        """Always raises."""
        raise NotImplementedError(
            "XGRObject wraps a handle of the original's C++ objects, which are not here: make a "
            "Grammar, a TokenizerInfo, a GrammarCompiler or a GrammarMatcher instead"
        )
