"""The package imported by a thread that ends: threads and processes after it are as any others."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Each step in a thread of its own, so that later ones begin at the place of earlier ones.
PROGRAM = """
import threading

def work():
    import stencilm
    compiled = stencilm.GrammarCompiler(
        stencilm.TokenizerInfo([b"a", b"b", b""], stop_token_ids=[2])
    ).compile_regex("[ab]+")
    assert stencilm.GrammarMatcher(compiled).accept_token(0)

def in_thread(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()

{imported}
for _ in range(10):
    in_thread(work)
"""
FORKED = """
import os, warnings

warnings.simplefilter("ignore")

def forked():
    child = os.fork()
    if child == 0:
        for _ in range(10):
            in_thread(work)
        os._exit(0)
    print(os.waitpid(child, 0)[1])

forked()
in_thread(forked)
"""
IMPORTS = {"in a thread": "", "for a thread": "import stencilm", "once": "import stencilm._core"}


@pytest.mark.parametrize("imported", IMPORTS)
def test_threads_after_the_one_that_used_it_first(imported: str) -> None:
    program = PROGRAM.format(imported=IMPORTS[imported])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("imported", IMPORTS)
def test_processes_that_are_forked_after_it(imported: str) -> None:
    program = PROGRAM.format(imported=IMPORTS[imported]) + FORKED
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n0\n", "")
