"""Masks computed in advance: the state of this work, and how to stop it."""

from __future__ import annotations

from typing import NoReturn

from stencilm import _core


class Preparation(_core.Preparation):
    """The work that `CompiledGrammar.prepare` has started; it goes on if nobody keeps this.

    Examples:
        >>> import stencilm
        >>> info = stencilm.TokenizerInfo([b"a", b"b", b"</s>"], stop_token_ids=[2])
        >>> compiled = stencilm.GrammarCompiler(info).compile_regex("(ab)*")
        >>> preparation = compiled.prepare(milliseconds=1000)
        >>> preparation.wait(), preparation.done, preparation.ended_by
        (True, True, 'complete')
        >>> preparation.masks >= 0, preparation.bytes >= 0, preparation.milliseconds < 1000
        (True, True, True)
        >>> preparation.cancel()  # nothing is left to be ended
    """

    __slots__ = ()

    def cancel(self) -> None:
        """Ends it within a millisecond or so. Masks computed by then stay."""
        super().cancel()

    @property
    def done(self) -> bool:
        """Whether it has ended, for whatever reason."""
        return super().done

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the end, without Python's lock; Ctrl-C ends the waiting.

        Args:
            timeout: The most seconds to wait; None for as long as it takes.

        Returns:
            Whether it has ended.

        Raises:
            ValueError: `timeout` is not a number of seconds.
        """
        return super().wait(timeout)

    @property
    def ended_by(self) -> str | None:
        """Why it has ended; None while it has not.

        "complete": every likely state was visited. "time", "bytes": the given amount is used up.
        "cancelled": by `cancel`, or the token of the limits; also in a process that was forked
        meanwhile. "dropped": nobody uses the grammar any more.
        """
        return super().ended_by

    @property
    def masks(self) -> int:
        """How many new masks it has computed."""
        return super().masks

    @property
    def bytes(self) -> int:
        """By how much the grammar and the shared lexemes have grown since it began."""
        return super().bytes

    @property
    def milliseconds(self) -> float:
        """How long it has worked, in wall-clock time."""
        return super().milliseconds

    def __repr__(self) -> str:
        """What it has done, and how it stands."""
        state = self.ended_by or "under way"
        return f"<{type(self).__name__}: {self.masks} masks, {self.milliseconds:.1f} ms, {state}>"

    def __reduce__(self) -> NoReturn:
        """Refused: the work is done by a thread of this process."""
        raise TypeError("a Preparation cannot be pickled: call prepare() where the masks are used")
