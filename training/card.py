"""The model card, written from the record of a run, so that no figure is typed by hand."""

from collections.abc import Mapping
from typing import Any

from training.evaluate import Figure, table

CARD = """\
# tiny

A {parameters:,}-parameter Llama for tests, examples and offline use of `stencilm`. It has learnt the *shape* of JSON
records, small SQL, sums and short English sentences, from text that the repository generates from its own word lists.
It knows nothing about the world and is not meant for anything but trying out constrained generation.

| | |
|---|---|
| architecture | `LlamaForCausalLM`: 5 layers, width 192, 6 heads over 3 key-value heads, tied embeddings |
| parameters | {parameters:,} |
| weights | float16 in `model.safetensors` ({megabytes:.2f} MB); `config.json` asks for float32, in which it is meant to run |
| context | 1,024 tokens; trained on rows of 384, in which no document is longer than about 290 |
| tokenizer | BPE with byte fallback, {vocabulary:,} tokens, special tokens `<unk> <s> </s> <pad>`; every text round-trips |
| training | {tokens:,} tokens in {steps:,} steps, {minutes:.0f} minutes on {cores} CPU cores shared with other work |
| loss | {final_loss:.3f} at the end of training, {held_out_loss:.3f} on held-out prompts and answers (nats a token) |
| made by | `{command}`, from the root of the repository |

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("python/stencilm/tiny")
model = AutoModelForCausalLM.from_pretrained("python/stencilm/tiny")
prompt = tokenizer("Describe a person as JSON.\\n", return_tensors="pt")
print(tokenizer.decode(model.generate(**prompt)[0]))
```

## Tokenizer
Blanks stay blanks (they do not become U+2581 as in SentencePiece), so U+2581 itself survives too. Text is cut only
between words, pairs of digits and runs of everything else: `{{"`, `": "`, `", "` and `",\\n  "` are tokens. A prompt ends
with a line break most of the time; the model was also shown prompts without one, prompts that flow into the answer, and
answers cut at odd places, as token masks and token healing cut them.

## Data
Made by `training/prompts.py`, with a fixed seed: records of 35 kinds on request ("Describe a person as JSON."), objects
with keys named in the prompt, JSON that fits a schema in the prompt, objects of n keys, lists of n items, facts out of a
sentence, tool calls, questions with JSON answers, SQL, sums, yes/no and sentiment, bare values, English sentences.
About 5 % of prompts, chosen by checksum, are never trained on; the figures below come from those.

## How often are its answers valid?
Greedy decoding, no constraint, weights as stored. *Valid* means that `json.loads` takes the whole answer up to the end of
text (or up to the closing fence); for SQL, sums and choices, that the answer has the right form. *As asked* means
that the keys, the number of keys or items, or the one right answer are those of the prompt; where the prompt leaves the
keys open (`describe`), that the answer is an object.

{figures}

The prompts of the `n_keys` family differ only in a number, so they are *not* held out: all of them occur in training,
with answers drawn anew each time.

## Limits
* Only the prompt wordings of the training text work; anything else gives something JSON-like about something else.
* English words from short lists; names, products and sentences repeat. Facts other than the listed capitals are invented.
* It copies the keys that a prompt names, but seldom the values: names and numbers extracted from a sentence are mostly
  made up, and so are most sums and counts of letters. The answer is valid JSON all the same.
* Lists may repeat an item.
* Other scripts and emoji are spelt in bytes, which it has seen but hardly learnt.
* It was trained on documents shorter than 300 tokens; beyond that expect repetition.
* No safety work of any kind; there is also nothing in its data that would call for it.
"""


def card(record: Mapping[str, Any]) -> str:
    """The text of the model card."""
    return CARD.format(
        parameters=record["parameters"],
        megabytes=record["bytes"]["model.safetensors"] / 1e6,
        vocabulary=record["vocabulary"],
        tokens=record["tokens"],
        steps=record["plan"]["steps"],
        minutes=record["training_seconds"] / 60,
        cores=record["cores"],
        final_loss=record["final_loss"],
        held_out_loss=record["held_out_loss"],
        command=record["command"],
        figures=table([Figure(**one) for one in record["figures"]]),
    )
