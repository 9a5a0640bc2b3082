"""vLLM's own backends for xgrammar and llguidance, unchanged, on what stands in for those.

Each runs in a process of its own, in which `import xgrammar` leads to this package.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM is not here: tests/engines/vllm/install.sh")

ROOT = Path(__file__).parents[3]
BEGIN = """
import json, sys
from types import SimpleNamespace
from stencilm.compat import stand_in
for name in ("xgrammar", "llguidance"):
    stand_in(name)
import torch
from transformers import AutoTokenizer
import stencilm
from pathlib import Path

tokenizer = AutoTokenizer.from_pretrained(Path(stencilm.__file__).with_name("tiny"))
WIDTH = 4672
STOP = tokenizer.eos_token_id
from vllm.v1.structured_output.backend_types import StructuredOutputOptions as Kind
from vllm.v1.structured_output import backend_xgrammar, backend_guidance
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
config = SimpleNamespace(
    structured_outputs_config=SimpleNamespace(
        disable_any_whitespace=False, disable_additional_properties=False
    ),
    model_config=None,
    speculative_config=SimpleNamespace(num_speculative_tokens=3),
)
SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
TAG = json.dumps({"structures": [{"begin": "<f>", "schema": json.loads(SCHEMA), "end": "</f>"}],
                  "triggers": ["<f"]})

def ids(text):
    return tokenizer.encode(text, add_special_tokens=False)

def allowed(backend, grammar):
    bitmask = backend.allocate_token_bitmask(1)
    grammar.fill_bitmask(bitmask, 0)
    bits = bitmask[0].view(torch.uint8)
    return {8 * i + k for i, byte in enumerate(bits.tolist()) for k in range(8) if byte >> k & 1}

def check(backend, kind, spec, text):
    grammar = backend.compile_grammar(kind, spec)
    tokens = ids(text)
    assert grammar.validate_tokens(tokens) == tokens, (kind, tokens)
    for token in tokens:
        assert token in allowed(backend, grammar)
        assert grammar.accept_tokens("r", [token])
    grammar.rollback(1)
    assert grammar.accept_tokens("r", tokens[-1:])
    assert STOP in allowed(backend, grammar)
    assert grammar.accept_tokens("r", [STOP]) and grammar.is_terminated()
    grammar.reset()
    assert tokens[0] in allowed(backend, grammar)

def check_all(backend):
    check(backend, Kind.JSON, SCHEMA, '{"a": 1}')
    check(backend, Kind.JSON_OBJECT, "", '{"x": [1]}')
    check(backend, Kind.REGEX, "(yes|no)!?", "yes!")
    check(backend, Kind.GRAMMAR, 'root ::= "a" | "b" root', "bba")
    check(backend, Kind.STRUCTURAL_TAG, TAG, 'so <f>{"a": 1}</f>')
"""
XGRAMMAR = """
backend = backend_xgrammar.XgrammarBackend(config, tokenizer, WIDTH)
assert type(backend.compiler).__module__.startswith("stencilm.compat.xgrammar")
check_all(backend)
check(backend, Kind.GRAMMAR, 'start: "a" | "b" start', "bba")
tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}}
check(backend, Kind.STRUCTURAL_TAG, json.dumps(tag), "ab")
for good, bad in (
    (dict(regex="a+"), dict(regex="a(")),
    (dict(json=SCHEMA), dict(json='{"type": "none"}')),
    (dict(grammar='root ::= "a"'), dict(grammar="root ::= y")),
    (dict(choice=["a", "b"]), None),
    (dict(structural_tag=TAG), dict(structural_tag="{}")),
):
    validate = backend_xgrammar.validate_xgrammar_grammar
    validate(SamplingParams(structured_outputs=StructuredOutputsParams(**good)))
    if bad is not None:
        try:
            validate(SamplingParams(structured_outputs=StructuredOutputsParams(**bad)))
        except (ValueError, VLLMValidationError):
            continue
        raise AssertionError(bad)
"""
GUIDANCE = """
backend = backend_guidance.GuidanceBackend(config, tokenizer, WIDTH)
assert type(backend.ll_tokenizer).__module__.startswith("stencilm.compat.llguidance")
check_all(backend)
check(backend, Kind.CHOICE, '["yes", "no"]', "no")
validate = backend_guidance.validate_guidance_grammar
good = StructuredOutputsParams(regex="a+")
validate(SamplingParams(structured_outputs=good), backend.ll_tokenizer)
try:
    validate(SamplingParams(structured_outputs=StructuredOutputsParams(regex="a(")))
except (ValueError, VLLMValidationError):
    pass
else:
    raise AssertionError("a bad pattern was taken")
"""
TOOLS = """
from vllm.tool_parsers import structural_tag_registry
from vllm.parser import abstract_parser, harmony
assert structural_tag_registry.StructuralTag.__module__.startswith("stencilm.compat.xgrammar")
import stencilm.compat.xgrammar.tools
assert harmony.FunctionToolParam is stencilm.compat.xgrammar.tools.FunctionToolParam
"""


@pytest.mark.parametrize("name", ["XGRAMMAR", "GUIDANCE", "TOOLS"])
def test_the_backend_runs_unchanged(name: str) -> None:
    program = f"{BEGIN}\n{globals()[name]}\nprint('done')"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.rstrip().endswith("done")
