"""Pretraining on Wikipedia articles from the weights of all-MiniLM-L6-v2: how much a fresh head learns in a few steps.

    python tests/benchmarks/pretrain_wikipedia.py --task masked_lm --data ../shared/data/corpus
    python tests/benchmarks/pretrain_wikipedia.py --task pretrainer --data ../shared/data/corpus

The checkpoint has no head for either task, so both start near a perplexity of its 30,522 tokens and at an accuracy of
half of the pairs. Trains on 1,960 of the 2,000 articles and measures on the others before and after; masks and pairs of
the measurement are the same both times. AdamW, the rate rising over a tenth of the steps to its peak and falling
linearly to zero. With `--stsb`, the correlation of sentence vectors with STS-B's dev scores is measured before and
after too: the encoder was trained for vectors, and this training is not for them. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import csv
import functools
import gzip
import random
import time
from pathlib import Path
from typing import Any

import _recipe as recipe

HELD_OUT_ARTICLES = 40
HELD_OUT_ROWS = 384
WORDS_A_PASSAGE = 40
QUESTIONS = [
    "The capital of France is [MASK].",
    "He was born in [MASK] and died in 1850.",
    "Water is made of hydrogen and [MASK].",
    "The [MASK] of the river is 300 kilometers.",
]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=["masked_lm", "pretrainer"], required=True)
    parser.add_argument("--data", type=Path, required=True, help="the folder of wikipedia-2006-articles.txt.gz")
    parser.add_argument("--weights", help="a HuggingFace directory; default: all-MiniLM-L6-v2")
    parser.add_argument("--stsb", type=Path, help="STS-B's dev.tsv.gz")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--max-length", type=int, default=64)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def passages(documents: list[list[str]]) -> list[str]:
    """Sentences of an article joined until they are long enough for a row."""
    texts = []
    for document in documents:
        words: list[str] = []
        for sentence in document:
            words += sentence.split()
            if len(words) >= WORDS_A_PASSAGE:
                texts.append(" ".join(words))
                words = []
    return texts


def similarity(backbone: Any, preprocessor: Any, path: Path) -> float:
    """Spearman's correlation of the cosines with the scores, times 100."""
    import numpy as np
    from scipy.stats import spearmanr

    import keras_bert_layers as kbl

    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    encoder = kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)
    first, second = (encoder.predict([row[name] for row in rows], verbose=0) for name in ("sentence1", "sentence2"))
    cosines = np.sum(first * second, axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    return round(100 * float(spearmanr(cosines, [float(row["score"]) for row in rows]).statistic), 2)


def main() -> None:
    options = parse_arguments()
    backbone, preprocessor = recipe.load_ours(recipe.weights_of(options), options.seed, max_length=options.max_length)
    import keras_bert_layers as kbl
    from keras_bert_layers.data import read_documents
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    documents = read_documents(options.data / "wikipedia-2006-articles.txt.gz").documents
    random.Random(options.seed).shuffle(documents)
    training: Any = documents[HELD_OUT_ARTICLES:]
    held_out: Any = documents[:HELD_OUT_ARTICLES]
    if options.task == "masked_lm":
        task = kbl.BertMaskedLM(backbone, preprocessor, seed=options.seed)
        training, held_out = passages(training), passages(held_out)[:HELD_OUT_ROWS]
    else:
        task = kbl.BertPretrainer(backbone, preprocessor, seed=options.seed)
        held_out = held_out[: HELD_OUT_ARTICLES // 4]
    rate = WarmupLinearDecay(options.rate, options.steps, num_warmup_steps=options.steps // 10)
    task.compile(optimizer=adamw(rate))
    size = options.batch_size
    vectors = functools.partial(similarity, backbone, preprocessor, options.stsb) if options.stsb else lambda: None
    stsb = [vectors()]
    before = task.evaluate(held_out, batch_size=size, verbose=0, return_dict=True)
    recipe.say(f"before: {before}")
    start = time.perf_counter()
    history = task.fit(training, batch_size=size, steps_per_epoch=options.steps, verbose=2).history
    seconds = time.perf_counter() - start
    after = task.evaluate(held_out, batch_size=size, verbose=0, return_dict=True)
    stsb.append(vectors())
    questions: Any = QUESTIONS if options.task == "masked_lm" else (QUESTIONS, QUESTIONS[::-1])
    answers = task.answer(questions)
    recipe.tell(
        options,
        {
            "before": {name: round(float(value), 4) for name, value in before.items()},
            "after": {name: round(float(value), 4) for name, value in after.items()},
            "training": {name: round(float(values[-1]), 4) for name, values in history.items()},
            "stsb": stsb,
            "train_seconds": round(seconds, 1),
            "answers": {text: tokens[0].tolist() for text, tokens in zip(QUESTIONS, answers["token"], strict=True)},
        },
    )


if __name__ == "__main__":
    main()
