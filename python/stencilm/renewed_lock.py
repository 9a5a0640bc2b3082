"""A lock for short sections that neither a fork nor a signal can turn into a deadlock."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock, get_ident
from weakref import WeakSet


class RenewedLock:
    """As `threading.Lock`, in a `with` statement, but free in a process that was forked off.

    A forked child has only the thread that forked, so a lock that another thread held would be held
    for ever there.

    Args:
        in_child: Called in a forked child, with whether another thread held the lock: what it
            guards may be in the middle of a change then.
    """

    __slots__ = ("__weakref__", "_in_child", "_lock", "_owner")

    def __init__(self, in_child: Callable[[bool], None] | None = None) -> None:
        self._lock = Lock()
        self._owner = 0
        self._in_child = in_child
        _LOCKS.add(self)

    def __enter__(self) -> None:
        """Waits for the lock and takes it."""
        self._lock.acquire()
        self._owner = get_ident()

    def __exit__(self, *error: object) -> None:
        """Gives the lock back."""
        self._owner = 0
        self._lock.release()

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds it: a signal handler would wait for what it interrupted."""
        return self._owner == get_ident()

    def renew(self) -> None:
        """Makes it free in a child, where this thread does not hold it."""
        is_held = self._lock.locked() and not self.is_mine
        if is_held:
            self._lock, self._owner = Lock(), 0
        if self._in_child is not None:
            self._in_child(is_held)


_LOCKS: WeakSet[RenewedLock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_LOCKS):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
