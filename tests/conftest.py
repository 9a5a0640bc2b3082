"""What holds for the tests of all folders."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from stencilm.tool_calls import registry


@pytest.fixture(autouse=True)
def _families_of_one_test() -> Iterator[None]:
    """A family of tool calls that a test registers is known to this test alone."""
    with patch.dict(registry._REGISTRY), patch.dict(registry._MODELS):
        yield
