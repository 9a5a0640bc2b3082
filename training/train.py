"""The training loop: packed rows of the corpus through a small Llama, AdamW, one cosine.

Every random choice comes from the seed and the number of steps is fixed, so a machine repeats its own run; the clock is
only ever reported. Weights are kept in float32 while learning and written as float16, rounded so that they compress.
"""

import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from tokenizers import Tokenizer
from training.corpus import held_out_examples, training_examples
from training.prompts import FAMILIES
from training.tokenizer import BOS, EOS, PAD, encode

CONTEXT = 1024
ROW = 384
"""Tokens in a packed row: longer than the longest document, so that none is cut."""
IGNORED = -100
STEPS = 8
"""How many steps of its grid the standard deviation of a matrix has at least."""


@dataclass(frozen=True)
class Plan:
    """How long and how fast to learn."""

    steps: int = 2800
    horizon: int = 3600
    """Where the cosine would end. Stopping before it costs little and keeps the run within an hour on shared cores."""
    rows: int = 12
    peak: float = 3e-3
    warmup: int = 150
    decay: float = 0.1
    seed: int = 20
    threads: int = 2
    low_precision: bool = True
    """Multiply in bfloat16 (autocast); quick where the CPU has bfloat16 instructions, slow where it has none."""


@dataclass(frozen=True)
class Outcome:
    """A trained model and what it took."""

    model: Any
    parameters: int
    tokens: int
    seconds: float
    loss: float
    held_out_loss: float


def configuration(vocabulary: int) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=5,
        num_attention_heads=6,
        num_key_value_heads=3,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
        initializer_range=0.04,
    )


def packed_rows(tokenizer: Tokenizer, seed: int) -> Iterator[list[int]]:
    """Rows of whole documents; what is left at the end of a row is padding."""
    rng = random.Random(seed + 1)
    row: list[int] = []
    for example in training_examples(seed):
        document = encode(tokenizer, example, rng)[:ROW]
        if len(row) + len(document) > ROW:
            yield row + [PAD] * (ROW - len(row))
            row = []
        row += document


def loss_of(model: Any, rows: torch.Tensor) -> torch.Tensor:
    labels = rows.masked_fill(rows == PAD, IGNORED)
    loss: torch.Tensor = model(input_ids=rows, labels=labels, use_cache=False).loss
    return loss


def optimiser(model: Any, plan: Plan) -> torch.optim.AdamW:
    """AdamW; matrices decay, norms do not."""
    weights = list(model.parameters())
    groups = [
        {"params": [weight for weight in weights if weight.dim() > 1], "weight_decay": plan.decay},
        {"params": [weight for weight in weights if weight.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=plan.peak, betas=(0.9, 0.95))


def rate(plan: Plan, step: int) -> float:
    """Linear warm-up, then a cosine that reaches almost nothing at the horizon."""
    if step < plan.warmup:
        return plan.peak * (step + 1) / plan.warmup
    done = (step - plan.warmup) / max(1, plan.horizon - plan.warmup)
    return plan.peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done)))


def train(tokenizer: Tokenizer, plan: Plan, *, checkpoints: Path | None = None) -> Outcome:
    """Learn; where `checkpoints` is given, leave the weights there every 400 steps."""
    torch.manual_seed(plan.seed)
    torch.set_num_threads(plan.threads)
    model: Any = LlamaForCausalLM(configuration(tokenizer.get_vocab_size()))
    parameters = sum(weight.numel() for weight in model.parameters())
    print(f"{parameters:,} parameters, {plan.steps} steps of {plan.rows * ROW} tokens", flush=True)
    adam, rows = optimiser(model, plan), packed_rows(tokenizer, plan.seed)
    model.train()
    started, tokens, recent = time.perf_counter(), 0, 0.0
    for step in range(plan.steps):
        batch = torch.tensor(list(islice(rows, plan.rows)))
        for group in adam.param_groups:
            group["lr"] = rate(plan, step)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=plan.low_precision):
            loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
        tokens += int((batch != PAD).sum())
        recent = loss.item() if step == 0 else 0.98 * recent + 0.02 * loss.item()
        if step % 50 == 49:
            seconds = time.perf_counter() - started
            print(
                f"step {step + 1} loss {recent:.4f} {seconds:.0f} s {tokens / seconds:.0f} tokens/s",
                flush=True,
            )
        if checkpoints is not None and step % 400 == 399:
            save_model(model, checkpoints)
    seconds = time.perf_counter() - started
    model.eval()
    return Outcome(model, parameters, tokens, seconds, recent, held_out_loss(model, tokenizer))


def held_out_loss(model: Any, tokenizer: Tokenizer, *, per_family: int = 40) -> float:
    """Mean loss per token on held-out prompts and answers, each document alone."""
    rng, total, count = random.Random(0), 0.0, 0
    for family in FAMILIES:
        name = family(random.Random(0)).family
        for example in held_out_examples(99, name, per_family):
            document = torch.tensor([encode(tokenizer, example, rng)])
            with torch.inference_mode():
                total += float(loss_of(model, document)) * (document.shape[1] - 1)
            count += document.shape[1] - 1
    return total / count


def on_grid(weight: torch.Tensor) -> torch.Tensor:
    """A matrix rounded to multiples of a power of two, in float16; a vector only to float16.

    Rounding to eight steps a standard deviation costs 0.4 % of the loss. A matrix then has some hundred values, so
    a wheel, which is a compressed archive, holds it in less than half the bytes.
    """
    if weight.dim() < 2:
        return weight.to(torch.float16)
    exponent = torch.floor(torch.log2(weight.float().std(correction=0) / STEPS))
    step = torch.exp2(exponent)
    return (torch.round(weight.float() / step) * step + 0.0).to(torch.float16)


def save_model(model: Any, folder: Path) -> None:
    """Write float16 weights with a configuration that asks for float32, in which they are meant to run."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        name: on_grid(weight.detach()).contiguous()
        for name, weight in model.state_dict().items()
        if name != "lm_head.weight"  # tied to the embedding
    }
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    model.config.architectures = ["LlamaForCausalLM"]
    model.config.dtype = torch.float32
    model.config.save_pretrained(str(folder))
    GenerationConfig(
        bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD, do_sample=False, max_new_tokens=400
    ).save_pretrained(str(folder))
