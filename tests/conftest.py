"""What holds for the tests of all folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from unittest.mock import patch

import pytest

from stencilm.tool_calls import registry

# The environments of the engines come without it.
with suppress(ImportError):
    from hypothesis import HealthCheck, settings

    # No test fails because the machine is busy: not by the time that an example takes, nor by that
    # of making it.
    settings.register_profile(
        "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _families_of_one_test() -> Iterator[None]:
    """A family of tool calls that a test registers is known to this test alone."""
    with patch.dict(registry._REGISTRY), patch.dict(registry._MODELS):
        yield
