"""The tokenizer of `tiny`: BPE with byte fallback, trained on the corpus.

Two choices matter. Blanks stay blanks instead of becoming U+2581, so every Unicode text survives a round trip, that
character included. And text is split only between words, digits and runs of everything else, so that JSON's
punctuation merges into tokens such as `{"`, `": "` and `",\n  "`. Byte fallback as in Kudo & Richardson, 2018.
"""

import json
import random
from itertools import islice
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from training import words
from training.corpus import training_examples
from training.prompts import Example

VOCABULARY_SIZE = 4608
SPECIAL = ("<unk>", "<s>", "</s>", "<pad>")
UNK, BOS, EOS, PAD = range(4)
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
LONGEST_TOKEN = 16
PIECES = r" ?\p{L}+|\p{N}{1,2}|(?:[^\p{L}\p{N} ]| (?!\p{L}))+"
"""Words with the blank before them, numbers two digits at a time, and runs of everything else."""
ALPHABET = (
    [chr(code) for code in (9, 10, *range(32, 127), *range(0xA1, 0x180))]
    + [chr(code) for code in (0x2013, 0x2014, 0x2018, 0x2019, 0x201C, 0x201D, 0x2026, 0x20AC)]
)  # fmt: skip
"""Characters with a token of their own; all others are spelt in bytes."""

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['content'] + '\\n' }}{% endfor %}"
)


def sample_texts(count: int, seed: int) -> list[str]:
    """Texts to learn merges from: the corpus, and all words in the shapes in which sentences use them."""
    texts = [example.prompt + example.answer for example in islice(training_examples(seed), count)]
    for name in sorted(vars(words)):
        value = getattr(words, name)
        if name.isupper() and name not in ("SURNAME_TAILS", "TEXT_IN_MANY_SCRIPTS"):
            for word in value:
                texts += [f"{word} {word} {word.lower()} {word.lower()}"] * 3
    for width in (2, 4, 8, 12, 16):
        texts += [f"a\n{' ' * width}b{' ' * width}1"] * 200
    return texts


def train_tokenizer(*, texts: int = 30_000, seed: int = 1) -> Tokenizer:
    """Learn the merges, then place special tokens and bytes before them."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = _splitter()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE - len(SPECIAL) - len(BYTES),
        initial_alphabet=ALPHABET,
        limit_alphabet=len(ALPHABET),
        max_token_length=LONGEST_TOKEN,
        min_frequency=2,
        show_progress=False,
    )
    learner.train_from_iterator(sample_texts(texts, seed), trainer)
    learnt: dict[str, Any] = json.loads(learner.to_str())["model"]
    pieces = sorted(learnt["vocab"], key=lambda piece: int(learnt["vocab"][piece]))
    vocabulary = {piece: token for token, piece in enumerate((*SPECIAL, *BYTES, *pieces))}
    merges = [(left, right) for left, right in learnt["merges"]]
    tokenizer = Tokenizer(
        models.BPE(vocabulary, merges, unk_token=SPECIAL[UNK], byte_fallback=True)
    )
    tokenizer.pre_tokenizer = _splitter()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", BOS)]
    )
    tokenizer.add_special_tokens(list(SPECIAL))
    return tokenizer


def _splitter() -> Any:
    return pre_tokenizers.Split(Regex(PIECES), behavior="isolated")


def save_tokenizer(tokenizer: Tokenizer, folder: Path, *, longest: int) -> None:
    """Write the files from which transformers loads it."""
    unk, bos, eos, pad = SPECIAL
    named = {"unk_token": unk, "bos_token": bos, "eos_token": eos, "pad_token": pad}
    settings = {
        **named,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": longest,
        "padding_side": "left",
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    for name, value in (("tokenizer_config", settings), ("special_tokens_map", named)):
        text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def encode(tokenizer: Tokenizer, example: Example, rng: random.Random) -> list[int]:
    """One training document. Most often the prompt is cut from its answer where generation starts; now and then they
    flow together, or pieces are cut anywhere, as masks and healed prompts will do later."""
    prompt, answer = example.prompt, example.answer
    way = rng.random()
    if way < 0.15 and prompt.endswith("\n"):
        prompt, answer = prompt.rstrip("\n"), "\n" + answer
    if 0.15 <= way < 0.25:
        parts = [prompt + answer]
    elif 0.25 <= way < 0.35 and answer:
        cut = rng.randrange(len(answer))
        parts = [prompt, answer[:cut], answer[cut:]]
    else:
        parts = [prompt, answer]
    pieces = (tokenizer.encode(part, add_special_tokens=False).ids for part in parts if part)
    return [BOS, *(token for piece in pieces for token in piece), EOS]
