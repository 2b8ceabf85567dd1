"""Little data: what each part of docs/guides/few-labels.md adds to fine-tuning all-MiniLM-L6-v2, over several seeds.

    python tests/benchmarks/little_data.py --data ../shared/data/glue --blocks 4 --save runs.jsonl
    python tests/benchmarks/little_data.py --table runs.jsonl

A run trains on `--rows` rows of a GLUE task, drawn once and the same for all seeds; the seed draws their order, the
head's weights and the dropout. It is scored on the dev file, and on 400 other rows of the training file, on which the
best seed is chosen. Batch 16, at most 128 tokens, a peak rate of 1e-4 after a warm-up of a tenth of the steps, then
linear decay to zero: the slanted triangle of ULMFiT. `--blocks` keeps the lowest blocks only, and tokens that no text
has are left out of the vocabulary; both save time.

Parts, joined by `+`: `plain`, the recipe alone; `google`, the optimizer without bias correction; `short`, half of the
epochs; `reinitialize`, the last block and the pooler begin anew; `layer_rates`, a factor of 0.9 from block to block;
`unfreezing`, two blocks more in each epoch; `rdrop` and `adversarial` with their defaults. Prints a JSON line for each
run, and adds it to the file `--save`; runs that are there already are left out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import time
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import _recipe as recipe
import finetune_glue as glue
import numpy as np

PARTS = ("plain", "google", "short", "reinitialize", "layer_rates", "unfreezing", "rdrop", "adversarial")
NUM_CHOOSING = 400
BATCH_SIZE = 16
PEAK_RATE = 1e-4


def read(data: Path, task: str, count: int) -> list[tuple[Any, list[int]]]:
    """What to train on, on what the best seed is chosen, and dev: `x` and labels; the same rows in every run."""
    from keras_bert_layers.data import read_glue

    sets = []
    for name in ("train", "dev"):
        *columns, labels = read_glue(data / task / f"{name}.tsv.gz", task)
        names, rows = sorted(set(labels)), range(len(labels))
        drawn = random.Random(0).sample(rows, count + NUM_CHOOSING) if name == "train" else rows
        for part in (drawn[:count], drawn[count:]) if name == "train" else (drawn,):
            texts = tuple([column[row] for row in part] for column in columns)
            sets.append((texts if len(texts) == 2 else texts[0], [names.index(labels[row]) for row in part]))
    return sets


class Trained:
    """A classifier that is trained anew for each seed, loaded and traced once."""

    def __init__(self, options: argparse.Namespace, task: str, part: str):
        weights = recipe.weights_of(argparse.Namespace(weights=None))
        backbone, preprocessor = recipe.load_ours(weights, 0, max_length=glue.MAX_LENGTH)
        from keras_bert_layers import BertClassifier, optimizers, tasks

        self.task, self.parts = task, part.split("+")
        self.train, *self.others = sets = read(options.data, task, options.rows)
        texts = [text for x, _ in sets for column in (x if isinstance(x, tuple) else (x,)) for text in column]
        backbone = tasks.reduce_layers(backbone, range(options.blocks)) if options.blocks else backbone
        backbone, preprocessor = tasks.prune_vocabulary(backbone, texts, preprocessor=preprocessor)
        self.model = BertClassifier(backbone, 2, preprocessor=preprocessor)
        self.num_epochs = options.epochs // 2 if "short" in self.parts else options.epochs
        num_steps = -(-options.rows // BATCH_SIZE) * self.num_epochs
        rates = optimizers.WarmupLinearDecay(PEAK_RATE, num_steps, num_warmup_steps=num_steps // 10)
        factors = optimizers.layer_wise_rates(self.model) if "layer_rates" in self.parts else None
        corrected = optimizers.adamw(rates, rate_factors=factors)
        self.model.compile(optimizers.google_adamw(rates) if "google" in self.parts else corrected)
        self.model.optimizer.build(self.model.trainable_variables)
        made = (tasks.GradualUnfreezing(2), tasks.RDrop(), tasks.AdversarialTraining())
        self.callbacks = [callback for name, callback in zip(PARTS[-3:], made, strict=True) if name in self.parts]
        self.reinitialize_layers = tasks.reinitialize_layers
        self.first_values = [np.array(variable) for variable in self.model.variables]

    def run(self, seed: int) -> dict[str, float]:
        """Trains from the pretrained weights, and scores on both other sets of rows."""
        import keras

        keras.utils.set_random_seed(seed)
        for variable, value in zip(self.model.variables, self.first_values, strict=True):
            variable.assign([seed, value[1]] if "seed_generator" in variable.path else value)
        for variable in self.model.optimizer.variables:
            variable.assign(keras.ops.zeros_like(variable))
        recipe.draw_dense(self.model.get_layer("classification_head").dense, seed)
        if "reinitialize" in self.parts:
            self.reinitialize_layers(self.model, 1)
        options = {"batch_size": BATCH_SIZE, "group_by_length": True, "callbacks": self.callbacks, "verbose": 0}
        start = time.process_time()
        self.model.fit(*self.train, epochs=self.num_epochs, **options)
        seconds = round(time.process_time() - start, 1)
        found = [glue.evaluate(self.task, self.model.predict(x, verbose=0), y) for x, y in self.others]
        choosing, dev = (scores.get("matthews", scores["accuracy"]) for scores in found)
        return {"dev": dev, "choosing": choosing, "processor_seconds": seconds}


def table(runs: list[dict[str, Any]]) -> str:
    """Markdown: for each task and part the mean, the spread, the worst, and the seed that was chosen."""
    lines = [
        "| task | epochs | part | seeds | mean | spread | worst | chosen | seconds |",
        f"|---|--:|---{'|--:' * 6}|",
    ]
    key = lambda one: (one["task"], one["epochs"], (*PARTS, one["part"]).index(one["part"]), one["part"])  # noqa: E731
    for (task, epochs, _, part), group in itertools.groupby(sorted(runs, key=key), key):
        if len(found := list(group)) > 1:
            dev, seconds = ([one[name] for one in found] for name in ("dev", "processor_seconds"))
            chosen = max(found, key=lambda one: (one["choosing"], -one["seed"]))["dev"]
            cells = " | ".join(f"{value:.1f}" for value in (mean(dev), stdev(dev), min(dev), chosen))
            lines.append(f"| {task} | {epochs} | `{part}` | {len(dev)} | {cells} | {mean(seconds):.0f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """The runs that are not in the file yet, or the table of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", nargs="+", default=["SST-2"], help="SST-2, CoLA, MRPC or RTE")
    parser.add_argument("--part", nargs="+", default=PARTS, help=f"{', '.join(PARTS)}, or several joined by +")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--rows", type=int, default=300, help="how many rows to train on")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--blocks", type=int, help="how many of the lowest blocks to keep; default: all")
    parser.add_argument("--data", type=Path, help="the folder that holds the folders of the tasks")
    parser.add_argument("--save", type=Path, help="a file of JSON lines to add the runs to")
    parser.add_argument("--table", type=Path, help="a file of JSON lines whose table is printed; trains nothing")
    options = parser.parse_args()
    file = options.table or options.save
    runs = [json.loads(line) for line in file.read_text().splitlines()] if file and file.exists() else []
    if options.table:
        sys.stdout.write(table(runs))
        return
    trained = None
    for task, part, seed in itertools.product(options.task, options.part, options.seeds):
        settings = {name: getattr(options, name) for name in ("rows", "epochs", "blocks")}
        settings |= {"task": task, "part": part, "seed": seed}
        if any(settings.items() <= one.items() for one in runs):
            continue
        if trained is None or (trained.task, trained.parts) != (task, part.split("+")):
            trained = Trained(options, task, part)
        line = json.dumps({**settings, **trained.run(seed)}) + "\n"
        sys.stdout.write(line)
        if options.save:
            with options.save.open("a") as saved:
                saved.write(line)


if __name__ == "__main__":
    main()
