"""Few labels: accuracy from 8 or 16 texts per class, ours beside SetFit and plain fine-tuning, on all-MiniLM-L6-v2.

    python tests/benchmarks/few_labels.py --contender few_shot --task sst2 --per-class 8 --seed 0 --data ../shared/data
    python tests/benchmarks/few_labels.py --contender setfit --task sst2 --per-class 8 --seed 0 --data ../shared/data

Tasks: `sst2`, sentences of film reviews, good or bad; and `articles`, questions of SQuAD 1.1 dev with the title of the
article, for the first `--articles` articles. The seed draws the texts to train on, the pairs and the dropout; the 400
texts to test on are the same for all seeds.

Contenders: `few_shot` is `tasks.few_shot_classifier`, with `--num-pairs` and `--rate`; `head` is the same without
pairs, a logistic regression on the vectors as they are; `in_batch` has batches of one pair of each class, and the cross
entropy of in-batch negatives instead; `fine_tuned` is `BertClassifier` over the same pooling, 20 epochs at a peak rate
of 1e-4. `setfit` needs the package setfit, and draws as many pairs. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _recipe as recipe
import numpy as np

NUM_TEST = 400
BATCH_SIZE = 16
FINE_TUNING_EPOCHS = 20
FINE_TUNING_RATE = 1e-4

Rows = list[tuple[str, str]]
Answers = Callable[[list[str]], Any]


def read_sst2(data: Path, num_articles: int) -> tuple[Rows, Rows]:
    """Sentences and labels to draw from, and those of dev."""
    parts = []
    for name in ("train", "dev"):
        with gzip.open(data / "glue" / "SST-2" / f"{name}.tsv.gz", "rt", encoding="utf-8") as file:
            lines = file.read().split("\n")[1:]
        rows = [line.split("\t") for line in lines if line]
        parts.append([(text, ("bad", "good")[int(label)]) for text, label in rows])
    return parts[0], shuffled(parts[1], seed=0)


def read_articles(data: Path, num_articles: int) -> tuple[Rows, Rows]:
    """Questions and titles to draw from, and those to test on."""
    with gzip.open(data / "squad" / "v1.1-dev.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"][:num_articles]
    rows = [
        (question, article["title"])
        for article in articles
        for question in dict.fromkeys(
            entry["question"].strip() for paragraph in article["paragraphs"] for entry in paragraph["qas"]
        )
    ]
    rows = shuffled(rows, seed=0)
    return rows[NUM_TEST:], rows[:NUM_TEST]


def shuffled(rows: Rows, seed: int) -> Rows:
    """The rows in the order of a seed."""
    rows = list(rows)
    random.Random(seed).shuffle(rows)
    return rows


def draw(rows: Rows, per_class: int, seed: int) -> Rows:
    """As many rows of each class, shuffled."""
    rows = shuffled(rows, seed)
    names = sorted({name for _, name in rows})
    return shuffled([row for name in names for row in [r for r in rows if r[1] == name][:per_class]], seed)


def few_shot(options: argparse.Namespace, texts: list[str], labels: list[str]) -> Answers:
    """`few_shot_classifier`, with its defaults where no options are given."""
    encoder = load(options, "sentence_encoder")
    from keras_bert_layers.tasks import few_shot_classifier

    given = {} if options.num_pairs is None else {"num_pairs": options.num_pairs}
    given |= {} if options.rate is None else {"learning_rate": options.rate}
    return few_shot_classifier(encoder, texts, labels, seed=options.seed, **given).predict_labels


def head(options: argparse.Namespace, texts: list[str], labels: list[str]) -> Answers:
    """A logistic regression on the vectors of the encoder as it is."""
    options.num_pairs = 0
    return few_shot(options, texts, labels)


def in_batch(options: argparse.Namespace, texts: list[str], labels: list[str]) -> Answers:
    """As many pairs, one of each class in a batch, so that no negative is of the same class."""
    encoder = load(options, "sentence_encoder")
    import tensorflow as tf

    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw
    from keras_bert_layers.tasks import few_shot_classifier

    by_class = [[text for text, name in zip(texts, labels, strict=True) if name == own] for own in sorted(set(labels))]
    draws = random.Random(options.seed)
    num_steps = number_of_pairs(options, texts) // len(by_class)
    pairs = [draws.sample(own, 2) for _ in range(num_steps) for own in by_class]
    first, second = map(list, zip(*pairs, strict=True))
    batches = tf.data.Dataset.from_tensor_slices(((first, second),)).batch(len(by_class))
    rate = options.rate or 2e-5
    encoder.compile(adamw(WarmupLinearDecay(rate, num_steps, num_warmup_steps=num_steps // 10)))
    encoder.fit(batches, verbose=0)
    return few_shot_classifier(encoder, texts, labels, num_pairs=0).predict_labels


def fine_tuned(options: argparse.Namespace, texts: list[str], labels: list[str]) -> Answers:
    """All weights, and a new dense layer over the encoder's own pooling."""
    names = sorted(set(labels))
    model = load(options, "classifier", class_names=names, pooling="mean")
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    num_steps = -(-len(texts) // BATCH_SIZE) * FINE_TUNING_EPOCHS
    model.compile(adamw(WarmupLinearDecay(FINE_TUNING_RATE, num_steps, num_warmup_steps=num_steps // 10)))
    model.fit(texts, labels, batch_size=BATCH_SIZE, epochs=FINE_TUNING_EPOCHS, verbose=0)
    return model.predict_labels


def setfit(options: argparse.Namespace, texts: list[str], labels: list[str]) -> Answers:
    """The package setfit, with as many pairs and the same rate."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    model = SetFitModel.from_pretrained(recipe.weights_of(options))
    arguments = TrainingArguments(
        output_dir="/tmp/few_labels_setfit",
        batch_size=BATCH_SIZE,
        num_epochs=1,
        num_iterations=number_of_pairs(options, texts) // (2 * len(texts)),
        body_learning_rate=options.rate or 2e-5,
        seed=options.seed,
        report_to="none",
        save_strategy="no",
    )
    rows = Dataset.from_dict({"text": texts, "label": labels})
    Trainer(model=model, args=arguments, train_dataset=rows).train()
    return lambda others: np.asarray(model.predict(others))


def number_of_pairs(options: argparse.Namespace, texts: list[str]) -> int:
    """Those of the options, or the default of `few_shot_classifier`."""
    return min(40 * len(texts), 2560) if options.num_pairs is None else options.num_pairs


def load(options: argparse.Namespace, task: str, **others: Any) -> Any:
    """One of our tasks on the weights; sets threads and seed first."""
    recipe.limit_threads()
    import keras

    import keras_bert_layers as kbl

    keras.utils.set_random_seed(options.seed)
    return kbl.load_task(recipe.weights_of(options), task, **others)


CONTENDERS = {"few_shot": few_shot, "head": head, "in_batch": in_batch, "fine_tuned": fine_tuned, "setfit": setfit}
TASKS = {"sst2": read_sst2, "articles": read_articles}


def main() -> None:
    """Reads the arguments, trains once, prints one JSON line."""
    parser = recipe.arguments(__doc__, list(CONTENDERS))
    parser.add_argument("--task", choices=list(TASKS), default="sst2")
    parser.add_argument("--articles", type=int, default=8, help="the number of classes of the task `articles`")
    parser.add_argument("--per-class", type=int, default=8)
    parser.add_argument("--num-pairs", type=int)
    parser.add_argument("--rate", type=float)
    options = parser.parse_args()
    pool, test = TASKS[options.task](options.data, options.articles)
    texts, labels = map(list, zip(*draw(pool, options.per_class, options.seed), strict=True))
    others, expected = map(list, zip(*test[:NUM_TEST], strict=True))
    start = time.perf_counter()
    answers = CONTENDERS[options.contender](options, texts, labels)
    seconds = time.perf_counter() - start
    accuracy = 100 * float(np.mean(np.asarray(answers(others)).astype(str) == np.asarray(expected)))
    recipe.tell(options, {"accuracy": round(accuracy, 2), "seconds_with_loading": round(seconds, 1)})


if __name__ == "__main__":
    main()
