"""SGLang's own backends for xgrammar and llguidance, unchanged, on what stands in for those.

Each runs in a process of its own, in which `import xgrammar` leads to this package.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sglang", reason="SGLang is not installed: tests/engines/sglang/install.sh")

ROOT = Path(__file__).parents[3]
BEGIN = """
import json
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
SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
TAG = json.dumps({"type": "structural_tag", "triggers": ["<f"],
                  "structures": [{"begin": "<f>", "schema": json.loads(SCHEMA), "end": "</f>"}]})

def ids(text):
    return tokenizer.encode(text, add_special_tokens=False)

def allowed(grammar):
    mask = grammar.allocate_vocab_mask(WIDTH, 1, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    bits = mask[0].view(torch.uint8).tolist()
    logits = torch.zeros((1, WIDTH))
    grammar.apply_vocab_mask(logits, mask)
    found = {8 * i + k for i, byte in enumerate(bits) for k in range(8) if byte >> k & 1}
    assert (logits[0] == 0).nonzero()[:, 0].tolist() == sorted(i for i in found if i < WIDTH)
    return found

def check(grammar, text):
    tokens = ids(text)
    for grammar in (grammar, grammar.copy()):
        for token in tokens:
            assert token in allowed(grammar), (text, token)
            grammar.accept_token(token)
        grammar.rollback(1)
        grammar.accept_token(tokens[-1])
        assert STOP in allowed(grammar)
        grammar.accept_token(STOP)
        if not grammar.is_terminated():
            # Behind text that could go on, SGLang's object for llguidance ends one token later.
            grammar.accept_token(STOP)
        assert grammar.is_terminated()
        grammar.rollback(1)
        assert not grammar.is_terminated()

def check_all(backend):
    check(backend.dispatch_json(SCHEMA), '{"a": 1}')
    check(backend.dispatch_regex("(yes|no)!?"), "yes!")
    check(backend.dispatch_ebnf('root ::= "a" | "b" root'), "bba")
    check(backend.dispatch_structural_tag(TAG), 'so <f>{"a": 1}</f>')
    bad = [backend.dispatch_json('{"type": "none"}'), backend.dispatch_regex("a("),
           backend.dispatch_ebnf("root ::= y")]
    assert [type(each).__name__ for each in bad] == ["InvalidGrammarObject"] * 3
"""
XGRAMMAR = """
from sglang.srt.constrained.xgrammar_backend import XGrammarGrammarBackend
backend = XGrammarGrammarBackend(tokenizer, WIDTH, model_eos_token_ids=[STOP])
assert type(backend.grammar_compiler).__module__.startswith("stencilm.compat.xgrammar")
check_all(backend)
check(backend.dispatch_json("$$ANY$$"), '{"a": 1}')
grammar = backend.dispatch_ebnf('root ::= "abcdef"')
assert grammar.try_jump_forward(tokenizer) == ([], "abcdef")
"""
GUIDANCE = """
from sglang.srt.constrained.base_grammar_backend import GrammarRow
from sglang.srt.constrained.llguidance_backend import (
    GrammarDraftRow, GuidanceBackend, GuidanceGrammar, fill_token_bitmask_with_draft_tokens)
backend = GuidanceBackend(tokenizer, n_vocab=WIDTH, eos_token_ids=[STOP])
assert type(backend.llguidance_tokenizer).__module__.startswith("stencilm.compat.llguidance")
check_all(backend)
grammar = backend.dispatch_regex("ab(c|d)")
mask = grammar.allocate_vocab_mask(WIDTH, 4, "cpu")
tokens = ids("abc")
fill_token_bitmask_with_draft_tokens([GrammarDraftRow(0, grammar, tokens)], mask)
assert mask[len(tokens)].tolist()[STOP // 32] == 1 << STOP % 32
forced = grammar.try_jump_forward(tokenizer)
"""


@pytest.mark.parametrize("name", ["XGRAMMAR", "GUIDANCE"])
def test_the_backend_runs_unchanged(name: str) -> None:
    program = f"{BEGIN}\n{globals()[name]}\nprint('done')"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.rstrip().endswith("done")
