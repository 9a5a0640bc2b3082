"""A lock for short sections that neither a fork nor a signal can turn into a deadlock."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import RLock
from weakref import WeakSet

from stencilm._core import LockGuard


class RenewedLock:
    """As `threading.RLock`, in `with lock.held:`, but free in a process that was forked off.

    A forked child has only the thread that forked, so a lock that another thread held would be held
    for ever there.

    Where the handler of a signal raises, in the section or at either end of it, the lock is given
    back. `with` alone does not see to that: see `LockGuard`.

    Args:
        in_child: Called in a forked child, with whether another thread held the lock: what it
            guards may be in the middle of a change then.
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
        """Whether this thread holds it: a signal handler is in the middle of what it guards."""
        # Not documented, but what `threading.Condition` has asked of locks since Python 3.2.
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def renew(self) -> None:
        """Makes it free in a child, where this thread does not hold it."""
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
