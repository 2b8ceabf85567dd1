"""Three tasks on one encoder, trained alone and combined: quality, time of one pass, and size on disk.

    python tests/benchmarks/combined_tasks.py --contender full --task sst2 --data ../shared/data
    python tests/benchmarks/combined_tasks.py --contender upper --task sst2 --data ../shared/data
    python tests/benchmarks/combined_tasks.py --contender times --data ../shared/data

Tasks, on all-MiniLM-L6-v2: `sst2`, sentences of film reviews, good or bad; `articles`, questions of SQuAD 1.1 dev with
the title of the article, for 8 articles; `wnut`, the entities of WNUT-17. Each is trained on at most `--rows` rows for
2 epochs with batches of 16 and AdamW. What is trained:

- `full`: all weights, at a peak rate of 1e-4, or 2e-4 for entities;
- `upper`: the weights of the last `--blocks` blocks, at 3e-4;
- `lora`: LoRA of rank `--rank` in the last `--blocks` blocks, at 3e-3;
- `head`: the head alone, at 1e-2.

Classifiers read the mean of the tokens. Accuracy is that on the 872 sentences of SST-2 dev and on 400 questions; F1 of
entities is seqeval's, on WNUT-17 dev. `--also` names contenders that follow in the same run.

`times` compares one pass over three combined tasks, whose last `--blocks` blocks differ, with the three tasks one after
the other: `predict` of 500 texts, and the SavedModel with one text, in interleaved rounds. It measures processor time,
which other programs disturb little with one thread. Prints one JSON line for each contender.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _recipe as recipe
import few_labels
import finetune_wnut as wnut
import numpy as np

BATCH_SIZE = 16
NUM_EPOCHS = 2
NUM_ARTICLES = 8
MAX_LENGTH = 128
NUM_TEXTS = 500
NUM_ROUNDS = 3
NUM_SINGLE = 100
TASKS = ("sst2", "articles", "wnut")
RATES = {"full": 1e-4, "upper": 3e-4, "lora": 3e-3, "head": 1e-2}


def read(task: str, data: Path) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Rows and labels to train on, and those to test on."""
    if task == "wnut":
        parts: list[Any] = [wnut.read_conll(data / "ner" / f"wnut17-{name}.conll") for name in ("train", "dev")]
    else:
        parts = list(few_labels.TASKS[task](data, NUM_ARTICLES))
        parts[0] = few_labels.shuffled(parts[0], seed=0)
    (x, y), (test, expected) = (map(list, zip(*rows, strict=True)) for rows in parts)
    return x, y, test, expected


def new_task(options: argparse.Namespace, y: list[Any]) -> Any:
    """The task with new weights in its head, and with what is not trained frozen."""
    backbone, preprocessor = recipe.load_ours(recipe.weights_of(options), options.seed, max_length=MAX_LENGTH)
    import keras_bert_layers as kbl

    if options.contender == "lora":
        backbone.enable_lora(options.rank, lora_blocks=options.blocks)
    if options.contender in ("upper", "head"):
        num_frozen = backbone.config.num_layers - (options.blocks if options.contender == "upper" else 0)
        for name in ("embedding", *(f"encoder_block_{index}" for index in range(num_frozen))):
            backbone.get_layer(name).trainable = False
    if options.task == "wnut":
        names = ["O", *sorted({tag for tags in y for tag in tags} - {"O"})]
        return kbl.BertTokenClassifier(backbone, names, preprocessor=preprocessor)
    return kbl.BertClassifier(backbone, class_names=sorted(set(y)), preprocessor=preprocessor, pooling="mean")


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Trains one task; returns its score in percent and the seconds."""
    x, y, test, expected = read(options.task, options.data)
    x, y = x[: options.rows], y[: options.rows]
    task = new_task(options, y)
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    rate = options.rate or RATES[options.contender] * (
        2 if (options.contender, options.task) == ("full", "wnut") else 1
    )
    num_steps = -(-len(x) // BATCH_SIZE) * NUM_EPOCHS
    task.compile(adamw(WarmupLinearDecay(rate, num_steps, num_warmup_steps=num_steps // 10)))
    start = time.process_time()
    task.fit(x, y, batch_size=BATCH_SIZE, epochs=NUM_EPOCHS, group_by_length=True, verbose=0)
    seconds = time.process_time() - start
    if options.task == "wnut":
        score = wnut.evaluate(task.predict_tags(test), list(zip(test, expected, strict=True)))["f1"]
    else:
        score = round(100 * float(np.mean(task.predict_labels(test).astype(str) == np.asarray(expected))), 2)
    return {"score": score, "num_rows": len(x), "rate": rate, "train_processor_seconds": round(seconds, 1)}


def times(options: argparse.Namespace) -> dict[str, Any]:
    """Three tasks combined beside three full ones: processor time, size on disk and largest difference of outputs."""
    labels = {name: read(name, options.data)[1] for name in TASKS}
    texts = read("sst2", options.data)[0][:NUM_TEXTS]
    changes = {name: {"task": name, "contender": "upper"} for name in TASKS}
    full, adapted = (
        {name: new_task(argparse.Namespace(**vars(options) | change), labels[name]) for name, change in changes.items()}
        for _ in range(2)
    )
    import tensorflow as tf

    from keras_bert_layers.tasks import CombinedTasks

    draw = np.random.default_rng(0)
    for task in adapted.values():  # what training does to the weights makes no difference to the time
        for weight in task.trainable_weights:
            weight.assign(weight + draw.normal(0, 0.01, weight.shape))
    combined = CombinedTasks(adapted)
    together = combined.predict(texts, verbose=0)
    difference = max(
        float(np.abs(together[name] - task.predict(texts, verbose=0)).max()) for name, task in adapted.items()
    )
    temporary = tempfile.TemporaryDirectory()
    folder = Path(temporary.name)
    models = {name: task.export(folder / name, warm_up=False) for name, task in full.items()}
    one = combined.export(folder / "combined", warm_up=False)
    served = {path.name: tf.saved_model.load(str(path)) for path in (*models.values(), one)}
    ask = {name: model.signatures["serving_default"] for name, model in served.items()}
    single = [tf.constant([text]) for text in texts[:NUM_SINGLE]]
    works: dict[str, Callable[[], Any]] = {
        "predict_full": lambda: [task.predict(texts, verbose=0) for task in full.values()],
        "predict_combined": lambda: combined.predict(texts, verbose=0),
        "single_full": lambda: [ask[name](text) for text in single for name in TASKS],
        "single_combined": lambda: [ask["combined"](text) for text in single],
    }
    found: dict[str, list[float]] = {name: [] for name in works}
    for rounds in range(NUM_ROUNDS + 1):
        for name, work in works.items():
            start = time.process_time()
            work()
            if rounds:  # the first one traces
                found[name].append(time.process_time() - start)
    medians = {name: statistics.median(values) for name, values in found.items()}
    return {
        "num_shared_blocks": combined.num_shared_blocks,
        "largest_difference": difference,
        **{f"{name}_s": round(medians[name], 3) for name in ("predict_full", "predict_combined")},
        **{f"{name}_ms": round(1000 * medians[name] / len(single), 2) for name in ("single_full", "single_combined")},
        "megabytes_full": round(sum(megabytes(path) for path in models.values()), 1),
        "megabytes_combined": round(megabytes(one), 1),
    }


def megabytes(folder: Path) -> float:
    """The size of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main() -> None:
    """Reads the arguments, trains one task or measures times, prints one JSON line."""
    parser = recipe.arguments(__doc__, [*RATES, "times"])
    parser.add_argument("--task", choices=TASKS, default="sst2")
    parser.add_argument("--blocks", type=int, default=2, help="how many of the last blocks are trained")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--also", nargs="*", choices=list(RATES), default=[], help="contenders that follow in this run")
    parser.set_defaults(rows=1200)
    options = parser.parse_args()
    for contender in (options.contender, *options.also):
        options.contender = contender
        recipe.tell(options, times(options) if contender == "times" else train(options))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
