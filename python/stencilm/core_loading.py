"""Loads the Rust core in a thread that does not end.

One idea: the core's allocator takes the thread that loads it for the main one, and knows it by its
place in memory. Where that thread ends, another one that begins at the same place is taken for it,
and what it allocates was given back already: the process crashes.
"""

from __future__ import annotations

import ctypes
import os
from importlib import import_module
from importlib.util import find_spec
from threading import Event, Thread, current_thread, main_thread

# How many threads of the parent a forked process looks through for the one that loaded the core.
_MOST_THREADS = 256


def load_core() -> None:
    """Load the core here, where this is the main thread, else in a thread that waits for ever."""
    if current_thread() is main_thread():
        import_module("stencilm._core")
        return
    spec = find_spec("stencilm._core")
    if spec is None or spec.origin is None:
        return  # whoever imports it is told
    path, is_loaded = spec.origin, Event()

    def load_and_stay() -> None:
        try:
            # Not imported, for this package is being imported by the thread that waits.
            ctypes.CDLL(path)
        finally:
            is_loaded.set()
        Event().wait()

    loader = Thread(target=load_and_stay, name="stencilm-core", daemon=True)
    loader.start()
    is_loaded.wait()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _take_place(loader.ident))


def _take_place(ident: int | None) -> None:
    """In a forked process, where the thread is not: fill its place, so that no other one does.

    New threads take the places of the parent's threads, which are all free here.
    """
    is_found = Event()
    for _ in range(_MOST_THREADS):
        thread = Thread(target=_stay, args=(ident, is_found), name="stencilm-core", daemon=True)
        thread.start()
        if thread.ident == ident:
            break
    is_found.set()


def _stay(ident: int | None, is_found: Event) -> None:
    is_found.wait()
    if current_thread().ident == ident:
        Event().wait()
