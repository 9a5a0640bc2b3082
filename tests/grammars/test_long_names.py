"""What is too long for the name of a file, such as the text of one, is the name of no file."""

from __future__ import annotations

import pytest

import stencilm
from stencilm import ModelError, TokenizerError, TokenizerInfo


@pytest.mark.parametrize("name", ["{" + "x" * 100_000, "a/" * 3_000], ids=["text", "path"])
def test_a_name_that_is_too_long_is_told_as_any_other(name: str) -> None:
    with pytest.raises(TokenizerError, match="there is no such file or folder") as of_tokenizer:
        TokenizerInfo.from_file(name)
    with pytest.raises(ModelError, match="there is no model folder") as of_model:
        stencilm.load(name)
    assert max(len(str(of_tokenizer.value)), len(str(of_model.value))) < 500
