"""`XGRObject`, which this package has not."""

from typing import NoReturn


class XGRObject:
    """What the original's classes derive from; those here do not.

    Raises:
        NotImplementedError: Always.
    """

    def __new__(cls) -> NoReturn:
        """Refused."""
        raise NotImplementedError(
            "XGRObject wraps a handle of the original's C++ objects, which are not here: make a "
            "Grammar, a TokenizerInfo, a GrammarCompiler or a GrammarMatcher instead"
        )
