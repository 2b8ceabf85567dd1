"""Retrieval on Cranfield: MiniLM as it is, then a dual encoder and a cross-encoder trained on some of the queries.

    python tests/benchmarks/finetune_cranfield.py --contender transformers --data ../shared/data/retrieval
    python tests/benchmarks/finetune_cranfield.py --contender keras_bert_layers --data ../shared/data/retrieval

A document is its abstract, 256 tokens at most, and its vector the mean over the tokens, scaled to length 1; all 1,400
documents are ranked for each query, and the ranking measured by nDCG@10 and recall@100. A document is relevant to a
query where the judgements give it a grade from 1 to 4; those of grade -1, one per query, count as not relevant.

MiniLM as it is, ours beside transformers + torch, is measured on the 225 queries. Both encoders of this package are
then trained on the judgements of 150 drawn queries and tested on the other 75: the dual encoder for two epochs on pairs
of a query and a relevant document, batch 16, peak rate 5e-5; the cross-encoder for one epoch on the same pairs and as
many that are not relevant, drawn from the 50 documents that MiniLM ranks first, batch 16, peak rate 1e-4. The rest of
the recipe is in `_recipe.py`. `transformers` needs the extra `peers`. Prints one JSON line.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import _recipe as recipe
import numpy as np

MAX_LENGTH = 256
BATCH_SIZE = 32
TRAINING_BATCH_SIZE = 16
NUM_TRAINING_QUERIES = 150
NUM_RERANKED = 50
DUAL_EPOCHS, DUAL_PEAK_RATE = 2, 5e-5
CROSS_EPOCHS, CROSS_PEAK_RATE = 1, 1e-4


def read_texts(path: Path) -> list[str]:
    """The text of every record: what stands after its `.W`."""
    records = re.split(r"(?m)^\.I \d+$", path.read_text(encoding="utf-8"))[1:]
    return [" ".join(record.split("\n.W\n", 1)[1].split()) for record in records]


def read_judgements(path: Path, num_queries: int) -> list[set[int]]:
    """The relevant documents of every query, by their places."""
    relevant: list[set[int]] = [set() for _ in range(num_queries)]
    for line in path.read_text(encoding="utf-8").splitlines():
        query, document, grade = (int(part) for part in line.split())
        if grade > 0:
            relevant[query - 1].add(document - 1)
    return relevant


def evaluate(ranked: list[list[int]], relevant: list[set[int]]) -> dict[str, float]:
    """Means over the queries, x 100, of documents in their order: nDCG@10 and recall@100, relevance 0 or 1."""
    discounts = 1 / np.log2(np.arange(10) + 2)
    gains, recalls = [], []
    for documents, right in zip(ranked, relevant, strict=True):
        hits = np.array([document in right for document in documents])
        gains.append((hits[:10] * discounts[: len(hits)]).sum() / discounts[: len(right)].sum())
        recalls.append(hits[:100].sum() / len(right))
    return {
        "ndcg_at_10": round(100 * float(np.mean(gains)), 2),
        "recall_at_100": round(100 * float(np.mean(recalls)), 2),
    }


def rank(query_vectors: np.ndarray, document_vectors: np.ndarray) -> list[list[int]]:
    """The best 100 documents of every query."""
    scores = query_vectors @ document_vectors.T  # [queries, documents]
    return np.argsort(-scores, axis=-1, kind="stable")[:, :100].tolist()


def embed_transformers(weights: str, texts: list[str]) -> np.ndarray:
    """Vectors `(texts, hidden_dim)` by transformers + torch."""
    import torch
    from transformers import AutoTokenizer, BertModel

    tokenizer = AutoTokenizer.from_pretrained(weights)
    model = BertModel.from_pretrained(weights).eval()
    vectors = np.zeros((len(texts), model.config.hidden_size), np.float32)
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    with torch.inference_mode():
        for positions in recipe.in_batches(len(texts), BATCH_SIZE):
            rows = [order[position] for position in positions]
            batch = tokenizer(
                [texts[row] for row in rows], padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt"
            )
            hidden = model(**batch).last_hidden_state
            mask = batch["attention_mask"][..., None].float()
            pooled = (hidden * mask).sum(1) / mask.sum(1)
            vectors[rows] = torch.nn.functional.normalize(pooled).numpy()
    return vectors


def measure_transformers(
    weights: str, queries: list[str], documents: list[str], relevant: list[set[int]], seed: int
) -> dict:
    """The pretrained weights, not trained further, in transformers + torch."""
    vectors = embed_transformers(weights, documents + queries)
    return {"as_it_is": evaluate(rank(vectors[len(documents) :], vectors[: len(documents)]), relevant)}


def measure_keras_bert_layers(
    weights: str, queries: list[str], documents: list[str], relevant: list[set[int]], seed: int
) -> dict:
    """The pretrained weights as they are, then both encoders trained, with this package."""
    backbone, preprocessor = recipe.load_ours(weights, seed, max_length=MAX_LENGTH)
    from keras_bert_layers import BertDualEncoder

    dual = BertDualEncoder(backbone, preprocessor=preprocessor)
    ranked = _rank_all(dual, queries, documents)
    result: dict[str, Any] = {"as_it_is": evaluate(ranked, relevant)}
    drawn = random.Random(2026).sample(range(len(queries)), len(queries))
    train, test = sorted(drawn[:NUM_TRAINING_QUERIES]), sorted(drawn[NUM_TRAINING_QUERIES:])
    pairs = [(query, document) for query in train for document in sorted(relevant[query])]
    lengths = [len(documents[document]) for _, document in pairs]
    batches = recipe.draw_batches(lengths, batch_size=TRAINING_BATCH_SIZE, num_epochs=DUAL_EPOCHS, seed=seed)
    recipe.compile_ours(dual, batches, peak_rate=DUAL_PEAK_RATE)
    rows = [pairs[row] for batch in batches for row in batch]
    result["dual_training"] = recipe.fit_ours(dual, _texts(queries, documents, rows), None, batches)
    asked, right = [queries[query] for query in test], [relevant[query] for query in test]
    result["test_as_it_is"] = evaluate([ranked[query] for query in test], right)
    found = _rank_all(dual, asked, documents)
    result["test_dual"] = evaluate(found, right)

    judged = pairs + _hard_negatives(ranked, relevant, train, seed)
    cross, result["cross_training"] = _train_cross_encoder(weights, queries, documents, judged, len(pairs), seed)
    reranked = []
    for query, candidates in zip(asked, found, strict=True):
        best = cross.rank(query, [documents[candidate] for candidate in candidates[:NUM_RERANKED]])
        reranked.append([candidates[row["corpus_id"]] for row in best] + candidates[NUM_RERANKED:])
    result["test_dual_and_cross"] = evaluate(reranked, right)
    return result


def _rank_all(dual: Any, queries: list[str], documents: list[str]) -> list[list[int]]:
    return rank(dual.encode_queries(queries, verbose=0), dual.encode_documents(documents, verbose=0))


def _texts(queries: list[str], documents: list[str], pairs: list[tuple[int, int]]) -> tuple[list[str], list[str]]:
    """What both encoders train on."""
    return [queries[query] for query, _ in pairs], [documents[document] for _, document in pairs]


def _hard_negatives(
    ranked: list[list[int]], relevant: list[set[int]], train: list[int], seed: int
) -> list[tuple[int, int]]:
    """For each query as many documents that rank high and are not relevant as it has relevant ones."""
    draw = random.Random(seed)
    negatives = []
    for query in train:
        wrong = [document for document in ranked[query][:NUM_RERANKED] if document not in relevant[query]]
        negatives += [(query, document) for document in draw.sample(wrong, min(len(relevant[query]), len(wrong)))]
    return negatives


def _train_cross_encoder(
    weights: str,
    queries: list[str],
    documents: list[str],
    judged: list[tuple[int, int]],
    num_relevant: int,
    seed: int,
) -> tuple[Any, dict]:
    """A cross-encoder trained on pairs, the relevant ones first; and the record of its training."""
    backbone, preprocessor = recipe.load_ours(weights, seed, max_length=MAX_LENGTH, truncation="only_second")
    from keras_bert_layers import BertCrossEncoder

    cross = BertCrossEncoder(backbone, preprocessor)
    recipe.draw_dense(cross.get_layer("classification_head").dense, seed)
    lengths = [len(documents[document]) for _, document in judged]
    batches = recipe.draw_batches(lengths, batch_size=TRAINING_BATCH_SIZE, num_epochs=CROSS_EPOCHS, seed=seed)
    recipe.compile_ours(cross, batches, peak_rate=CROSS_PEAK_RATE)
    rows = [row for batch in batches for row in batch]
    x = _texts(queries, documents, [judged[row] for row in rows])
    return cross, recipe.fit_ours(cross, x, [float(row < num_relevant) for row in rows], batches)


CONTENDERS = {"transformers": measure_transformers, "keras_bert_layers": measure_keras_bert_layers}


def main() -> None:
    """Reads the arguments, measures once, prints one JSON line."""
    options = recipe.arguments(__doc__, list(CONTENDERS)).parse_args()
    documents = read_texts(options.data / "cran.all.1400")
    queries = read_texts(options.data / "cran.qry")
    relevant = read_judgements(options.data / "cranqrel", len(queries))
    measure = CONTENDERS[options.contender]
    recipe.tell(options, measure(recipe.weights_of(options), queries, documents, relevant, options.seed))


if __name__ == "__main__":
    main()
