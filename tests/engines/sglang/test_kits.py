"""SGLang's own tests of structured outputs, which its package brings, and typed values.

All on a server of the embedded model without reasoning.

`STENCILM_KITS_BACKEND=xgrammar` runs them with another backend, to compare.
"""

from __future__ import annotations

import os
import re
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("sglang", reason="SGLang is not installed: tests/engines/sglang/install.sh")
openai = pytest.importorskip("openai")
kits = pytest.importorskip("sglang.test.kits.json_constrained_kit", reason="SGLang's kits moved")

from sglang.test.kits.ebnf_constrained_kit import EBNFConstrainedMixin  # noqa: E402
from sglang.test.kits.json_constrained_kit import JSONConstrainedMixin  # noqa: E402
from sglang.test.kits.json_mode_kit import JSONModeMixin  # noqa: E402
from sglang.test.kits.regex_constrained_kit import RegexConstrainedMixin  # noqa: E402

import stencilm  # noqa: E402
from engines.servers.serving import chat_folder  # noqa: E402
from engines.sglang.served import served  # noqa: E402

pytestmark = pytest.mark.slow

BACKEND = os.environ.get("STENCILM_KITS_BACKEND", "stencilm")


class Served(unittest.TestCase):
    base_url: ClassVar[str]
    client: ClassVar[Any]
    model = "tiny"
    # Texts that are sampled and have no longest one, or more of them than the test takes: whether
    # they come to their end in 128 tokens is up to the model.
    test_ebnf_generate_complex_json = None
    test_ebnf_generate_custom_log_format = None
    test_regex_generate_complex_json = None
    test_regex_generate_custom_log_format = None

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def server(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        place: Path = tmp_path_factory.mktemp("kits")
        backend = ["--grammar-backend", BACKEND]
        with served(chat_folder(place), place / "server.log", *backend) as server:
            cls.base_url = server.url.removesuffix("/v1")
            cls.client = openai.OpenAI(base_url=server.url, api_key="none", timeout=300)
            yield


class TypedValues:
    client: Any
    model: str

    def test_typed_values_from_its_api(self) -> None:
        model = stencilm.from_openai(self.client, self.model, capabilities="sglang")
        schema = {
            "type": "object",
            "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 120}},
            "required": ["age"],
            "additionalProperties": False,
        }
        budget = stencilm.Budget(tokens=200)
        person = model("A person: ", stencilm.JsonSchema(schema), budget=budget)
        assert set(person) == {"age"} and 0 <= person["age"] <= 120
        code = model("A code: ", stencilm.Regex("[A-Z]{2}-[0-9]{4}"), budget=budget)
        assert re.fullmatch("[A-Z]{2}-[0-9]{4}", code)


KITS = (
    TypedValues,
    JSONConstrainedMixin,
    EBNFConstrainedMixin,
    RegexConstrainedMixin,
    JSONModeMixin,
)
TestKits = type("TestKits", (Served, *KITS), {})
