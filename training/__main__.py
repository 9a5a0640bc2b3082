"""The one command that makes `tiny` again: `python -m training`, from the root of the repository."""

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path

from training.card import card
from training.evaluate import CHECKPOINT, figures, json_total, load, table
from training.tokenizer import save_tokenizer, train_tokenizer
from training.train import CONTEXT, Plan, save_model, train

RECORD = Path(__file__).parent / "record.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    parser.add_argument("--folder", type=Path, default=CHECKPOINT, help="where the checkpoint goes")
    parser.add_argument("--record", type=Path, default=RECORD, help="where the figures go")
    parser.add_argument("--steps", type=int, default=Plan.steps)
    parser.add_argument("--threads", type=int, default=Plan.threads)
    parser.add_argument("--float32", action="store_true", help="multiply in float32 throughout")
    parser.add_argument("--checkpoints", type=Path, help="also keep unfinished weights here")
    options = parser.parse_args()
    started = time.perf_counter()
    plan = Plan(steps=options.steps, threads=options.threads, low_precision=not options.float32)
    tokenizer = train_tokenizer()
    for folder in (options.folder, options.checkpoints):
        if folder is not None:
            save_tokenizer(tokenizer, folder, longest=CONTEXT)
    outcome = train(tokenizer, plan, checkpoints=options.checkpoints)
    save_model(outcome.model, options.folder)
    found = figures(*load(options.folder))
    print(table([json_total(found), *found]))
    record = {
        "command": "python -m training",
        "cores": os.cpu_count(),
        "plan": asdict(plan),
        "parameters": outcome.parameters,
        "vocabulary": tokenizer.get_vocab_size(),
        "tokens": outcome.tokens,
        "training_seconds": round(outcome.seconds),
        "total_seconds": round(time.perf_counter() - started),
        "final_loss": round(outcome.loss, 4),
        "held_out_loss": round(outcome.held_out_loss, 4),
        "figures": [asdict(one) for one in (json_total(found), *found)],
        "bytes": {
            path.name: path.stat().st_size
            for path in sorted(options.folder.iterdir())
            if path.suffix in (".json", ".safetensors")
        },
    }
    options.record.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    (options.folder / "README.md").write_text(card(record), encoding="utf-8")


if __name__ == "__main__":
    main()
