"""Retrieval on Cranfield: MiniLM as it is, ours beside transformers + torch, in nDCG@10 and recall@100.

    python tests/benchmarks/finetune_cranfield.py --contender transformers --data ../shared/data/retrieval

A document is its abstract, 256 tokens at most, and its vector the mean over the tokens, scaled to length 1; all 1,400
documents are ranked for each of the 225 queries. A document is relevant to a query where the judgements give it a grade
from 1 to 4; those of grade -1, one a query, count as not relevant. `transformers` needs the extra `peers`. Prints one
JSON line.
"""

from __future__ import annotations

import re
from pathlib import Path

import _recipe as recipe
import numpy as np

MAX_LENGTH = 256
BATCH_SIZE = 32


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


def as_it_is_transformers(weights: str, queries: list[str], documents: list[str], relevant: list[set[int]]) -> dict:
    """The pretrained weights, not trained further, in transformers + torch."""
    vectors = embed_transformers(weights, documents + queries)
    return {"as_it_is": evaluate(rank(vectors[len(documents) :], vectors[: len(documents)]), relevant)}


CONTENDERS = {"transformers": as_it_is_transformers}


def main() -> None:
    """Reads the arguments, measures once, prints one JSON line."""
    options = recipe.arguments(__doc__, list(CONTENDERS)).parse_args()
    documents = read_texts(options.data / "cran.all.1400")
    queries = read_texts(options.data / "cran.qry")
    relevant = read_judgements(options.data / "cranqrel", len(queries))
    recipe.tell(options, CONTENDERS[options.contender](recipe.weights_of(options), queries, documents, relevant))


if __name__ == "__main__":
    main()
