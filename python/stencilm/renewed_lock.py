"""A lock for short sections that neither a fork nor a signal can turn into a deadlock."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import RLock
from weakref import WeakSet

from stencilm._core import LockGuard


class RenewedLock:
    """Like `threading.RLock`, used as `with lock.held:`, but free in a forked process.

    A forked child has only the thread that forked, so a lock that another thread held would stay
    locked forever.

    If a signal handler raises within the section, or at either end of it, the lock is released.
    `with` alone does not guarantee that: see `LockGuard`.

    Args:
        in_child: Called in a forked child, with whether another thread held the lock: the data that
            it guards may then be in the middle of a change.
    """

    __slots__ = ("__weakref__", "_in_child", "_lock")

    def __init__(self, in_child: Callable[[bool], None] | None = None) -> None:
        self._lock = RLock()
        self._in_child = in_child
        _LOCKS.add(self)

    @property
    def held(self) -> LockGuard:
        """A context in which this thread holds it."""
        return LockGuard(self._lock)

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds it: a signal handler has interrupted the guarded section."""
        # Undocumented, but `threading.Condition` has used this method of locks since Python 3.2.
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def renew(self) -> None:
        """Free it in a child process, where this thread does not hold it."""
        is_free = self._lock.acquire(blocking=False)
        if is_free:
            self._lock.release()
        else:
            self._lock = RLock()
        if self._in_child is not None:
            self._in_child(not is_free)


_LOCKS: WeakSet[RenewedLock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_LOCKS):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
