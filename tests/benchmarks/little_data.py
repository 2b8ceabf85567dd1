"""Little data: what each part of docs/guides/little-data.md adds to fine-tuning all-MiniLM-L6-v2, over several seeds.

    python tests/benchmarks/little_data.py --data ../shared/data/glue --blocks 4 --save runs.jsonl
    python tests/benchmarks/little_data.py --table runs.jsonl

A run trains on `--rows` rows of a GLUE task, drawn once and the same for all seeds; the seed draws their order, the
head's weights and the dropout. It is scored on the dev file, and on 400 other rows of the training file, on which the
best seed is chosen. Batch 16, at most 128 tokens, a peak rate of 1e-4 after a warm-up of a tenth of the steps, then
linear decay to zero: the slanted triangle of ULMFiT. `--blocks` keeps the lowest blocks only, and tokens that no text
has are left out of the vocabulary; both save time.

Parts, joined by `+`: `plain`, the recipe alone; `google`, the optimizer without bias correction; `short`, half of the
epochs; `reinitialize`, the last block and the pooler begin anew; `layer_rates`, a factor of 0.9 from block to block;
`unfreezing`, two blocks more in each epoch; `rdrop` and `adversarial` with their defaults.

Prints a JSON line for each run, and adds it to the file `--save`; runs that are there already are left out.
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

TASKS = ("SST-2", "CoLA", "MRPC", "RTE")
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
        backbone, preprocessor = recipe.load_ours(recipe.weights_of(options), 0, max_length=glue.MAX_LENGTH)
        from keras_bert_layers import BertClassifier, optimizers, tasks

        self.task, self.parts = task, part.split("+")
        self.train, self.choosing, self.dev = sets = read(options.data, task, options.rows)
        texts = [text for x, _ in sets for column in (x if isinstance(x, tuple) else (x,)) for text in column]
        if options.blocks:
            backbone = tasks.reduce_layers(backbone, range(options.blocks))
        backbone, preprocessor = tasks.prune_vocabulary(backbone, texts, preprocessor=preprocessor)
        self.model = BertClassifier(backbone, 2, preprocessor=preprocessor)
        self.num_epochs = options.epochs // 2 if "short" in self.parts else options.epochs
        num_steps = -(-options.rows // BATCH_SIZE) * self.num_epochs
        rates = optimizers.WarmupLinearDecay(PEAK_RATE, num_steps, num_warmup_steps=num_steps // 10)
        factors = optimizers.layer_wise_rates(self.model) if "layer_rates" in self.parts else None
        corrected = optimizers.adamw(rates, rate_factors=factors)
        self.model.compile(optimizers.google_adamw(rates) if "google" in self.parts else corrected)
        self.model.optimizer.build(self.model.trainable_variables)
        self.callbacks = {"unfreezing": tasks.GradualUnfreezing(2), "rdrop": tasks.RDrop()}
        self.callbacks["adversarial"] = tasks.AdversarialTraining()
        self.first_values = [np.array(variable) for variable in self.model.variables]

    def run(self, seed: int) -> dict[str, float]:
        """Trains from the pretrained weights, and scores on both other sets of rows."""
        import keras

        from keras_bert_layers import tasks

        keras.utils.set_random_seed(seed)
        for variable, value in zip(self.model.variables, self.first_values, strict=True):
            variable.assign([seed, value[1]] if "seed_generator" in variable.path else value)
        for variable in self.model.optimizer.variables:
            variable.assign(keras.ops.zeros_like(variable))
        recipe.draw_dense(self.model.get_layer("classification_head").dense, seed)
        if "reinitialize" in self.parts:
            tasks.reinitialize_layers(self.model, 1)
        callbacks = [callback for name, callback in self.callbacks.items() if name in self.parts]
        options = {"batch_size": BATCH_SIZE, "group_by_length": True, "callbacks": callbacks, "verbose": 0}
        start = time.process_time()
        self.model.fit(*self.train, epochs=self.num_epochs, **options)
        seconds = round(time.process_time() - start, 1)
        return {"dev": self.score(*self.dev), "choosing": self.score(*self.choosing), "processor_seconds": seconds}

    def score(self, x: Any, labels: list[int]) -> float:
        """Accuracy, or Matthews' correlation for CoLA, x 100."""
        found = glue.evaluate(self.task, self.model.predict(x, verbose=0), labels)
        return found["matthews" if self.task == "CoLA" else "accuracy"]


def table(runs: list[dict[str, Any]]) -> str:
    """Markdown: for each task and part the mean, the spread, the worst, and the seed that was chosen."""
    lines = ["| task | part | seeds | mean | spread | worst | chosen | seconds |", "|---|---|--:|--:|--:|--:|--:|--:|"]
    for task, part in itertools.product(TASKS, dict.fromkeys([*PARTS, *(one["part"] for one in runs)])):
        found = [one for one in runs if (one["task"], one["part"]) == (task, part)]
        if len(found) > 1:
            dev = [one["dev"] for one in found]
            chosen = max(found, key=lambda one: (one["choosing"], -one["seed"]))["dev"]
            seconds = mean(one["processor_seconds"] for one in found)
            cells = [f"{value:.1f}" for value in (mean(dev), stdev(dev), min(dev), chosen)]
            lines.append(f"| {task} | `{part}` | {len(dev)} | {' | '.join(cells)} | {seconds:.0f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """The runs that are not in the file yet, or the table of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=["SST-2"])
    parser.add_argument("--part", nargs="+", default=PARTS, help=f"{', '.join(PARTS)}, or several joined by +")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--rows", type=int, default=300, help="how many rows to train on")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--blocks", type=int, help="how many of the lowest blocks to keep; default: all")
    parser.add_argument("--data", type=Path, help="the folder that holds the folders of the tasks")
    parser.add_argument("--weights", help="a HuggingFace directory; default: all-MiniLM-L6-v2")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no run after so many seconds")
    parser.add_argument("--save", type=Path, help="a file of JSON lines to add the runs to")
    parser.add_argument("--table", type=Path, help="a file of JSON lines whose table is printed; trains nothing")
    options = parser.parse_args()
    file = options.table or options.save
    runs = [json.loads(line) for line in file.read_text().splitlines()] if file and file.exists() else []
    if options.table:
        sys.stdout.write(table(runs))
        return
    start, trained = time.perf_counter(), None
    for task, part, seed in itertools.product(options.task, options.part, options.seeds):
        made_with = {"task": task, "part": part, "seed": seed}
        made_with |= {name: getattr(options, name) for name in ("rows", "epochs", "blocks")}
        if time.perf_counter() - start > options.seconds or any(made_with.items() <= one.items() for one in runs):
            continue
        if trained is None or (trained.task, trained.parts) != (task, part.split("+")):
            trained = Trained(options, task, part)
        line = json.dumps({**made_with, **trained.run(seed)}) + "\n"
        sys.stdout.write(line)
        if options.save:
            with options.save.open("a") as saved:
                saved.write(line)


if __name__ == "__main__":
    main()
