"""How many shapes an epoch of real texts has in buckets, each of which a compiler compiles, and the share of padding.

    python tests/benchmarks/step_shapes.py ../shared/data

A small model with the vocabulary of BERT-base, batches of 32, at most 128 tokens (SQuAD: 384), without and with
`group_by_length`. The step itself is replaced by one that notes the shapes of its batch.
"""

from __future__ import annotations

import itertools
import sys
import unittest.mock
from pathlib import Path
from typing import Any

import keras

import keras_bert_layers as kbl
from keras_bert_layers.preprocessing import SpanPreprocessor

BATCH_SIZE = 32


def epochs(folder: Path) -> dict[str, tuple[Any, Any, Any]]:
    """Name -> a task, and the rows that it is fitted on."""
    tokenizer = kbl.BertTokenizer(str(folder / "vocab" / "bert-base-uncased.txt"))
    config = kbl.BertConfig(
        vocabulary_size=tokenizer.vocabulary_size(), hidden_dim=8, num_layers=1, num_heads=1, intermediate_dim=8
    )
    preprocessor = kbl.BertPreprocessor(tokenizer, 128, padding="bucket")
    films = kbl.data.read_glue(folder / "glue" / "SST-2" / "train.tsv.gz", "SST-2")
    posts = kbl.data.read_conll(folder / "ner" / "wnut17-train.conll")
    squad = kbl.data.read_squad(folder / "squad" / "v1.1-dev.json.gz")
    names = ["O", *sorted({tag for row in posts["tags"] for tag in row} - {"O"})]
    windows = SpanPreprocessor(tokenizer, 384, padding="bucket")
    return {
        "SST-2": (
            kbl.BertClassifier(kbl.BertBackbone(config), 2, preprocessor=preprocessor),
            films["first"],
            films["labels"],
        ),
        "WNUT": (
            kbl.BertTokenClassifier(kbl.BertBackbone(config), names, preprocessor=preprocessor),
            posts["words"],
            posts["tags"],
        ),
        "SQuAD": (
            kbl.BertQuestionAnswerer(kbl.BertBackbone(config), windows),
            (squad["questions"], squad["contexts"]),
            (squad["answer_starts"], squad["answers"]),
        ),
    }


def shapes_of(task: Any, x: Any, y: Any, **options: Any) -> tuple[set[Any], float, int]:
    """The shapes of an epoch's steps, the share of padding, and the number of steps."""
    shapes, places, tokens, steps = set(), 0, 0, 0
    task.compile(jit_compile=True)
    with unittest.mock.patch.object(keras.Model, "fit") as fit:  # gets the batches, and trains on none
        task.fit(x, y, batch_size=BATCH_SIZE, verbose=0, **options)
    _, dataset = fit.call_args.args
    number = -(-len(y if not isinstance(y, tuple) else y[0]) // BATCH_SIZE)
    for batch in itertools.islice(dataset, fit.call_args.kwargs.get("steps_per_epoch") or number):
        shapes.add(tuple(tuple(part.shape) for part in keras.tree.flatten(batch)))
        mask = batch[0]["padding_mask"].numpy()
        places, tokens, steps = places + mask.size, tokens + int(mask.sum()), steps + 1
    return shapes, 1 - tokens / places, steps


def main() -> None:
    keras.utils.set_random_seed(1)
    for name, (task, x, y) in epochs(Path(sys.argv[1])).items():
        for grouped in (False, True):
            shapes, padding, steps = shapes_of(task, x, y, group_by_length=grouped)
            print(f"{name}, group_by_length={grouped}: {len(shapes)} shapes in {steps} steps, {padding:.0%} padding")


if __name__ == "__main__":
    main()
