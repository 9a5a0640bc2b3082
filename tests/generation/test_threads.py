"""`one_thread` leaves the number of torch threads as it was, also when several are inside."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

torch = pytest.importorskip("torch")

from stencilm.models.threads import one_thread  # noqa: E402


def test_the_number_of_threads_comes_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with pytest.raises(KeyError), one_thread():
            assert torch.get_num_threads() == 1
            raise KeyError
        assert torch.get_num_threads() == 3
        barrier = Barrier(4)

        def enter(_: int) -> None:
            with one_thread():
                barrier.wait()
                assert torch.get_num_threads() == 1
                barrier.wait()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(enter, range(4)))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
