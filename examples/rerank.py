"""Train a cross-encoder that reranks search results, on built-in rows or on your own CSV file.

    python3 examples/rerank.py --smoke

trains a tiny model from scratch on a few built-in rows, without any download. On your own judgements, from your
own BERT (a HuggingFace or sentence-transformers directory):

    python3 examples/rerank.py --weights path/to/bert --data judged.csv
    ... --highest-relevance 3     where grades run from 0 to 3

Each row of the file has a query, a document and its relevance, by default 0 or 1. Include wrong documents too, at best
those that a search ranks high. A tenth of the queries, with all their rows, is held out for evaluation. The trained
model is saved as a `.keras` file, which `search.py --reranker` takes, and as a SavedModel.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

SEED = 7
HELD_OUT_SHARE = 0.1
SMOKE_QUERIES = ["how long does a cat sleep", "when does the train leave", "how to bake bread"]
SMOKE_DOCUMENTS = ["cats sleep all day", "the train leaves at nine", "bake the bread for an hour"]
SMOKE_ROWS = [
    (query, document, float(row == column))
    for row, query in enumerate(SMOKE_QUERIES)
    for column, document in enumerate(SMOKE_DOCUMENTS)
]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny model on built-in rows; takes seconds")
    parser.add_argument("--weights", help="a HuggingFace or sentence-transformers directory")
    parser.add_argument("--data", type=Path, help="a UTF-8 CSV file with a header; needs pandas")
    parser.add_argument("--query-column", default="query", help="the column of queries (default: query)")
    parser.add_argument("--document-column", default="document", help="the column of documents (default: document)")
    parser.add_argument("--relevance-column", default="relevance", help="the column of relevances (default: relevance)")
    parser.add_argument("--highest-relevance", type=float, default=1.0, help="the highest relevance (default: 1)")
    parser.add_argument("--max-length", type=int, default=256, help="tokens of query and document (default: 256)")
    parser.add_argument("--epochs", type=int, default=2, help="passes over the rows (default: 2)")
    parser.add_argument("--batch-size", type=int, default=16, help="rows per step (default: 16)")
    parser.add_argument("--rate", type=float, default=5e-5, help="the highest learning rate (default: 5e-5)")
    parser.add_argument("--output", type=Path, default=Path("rerank_output"), help="where to write the models")
    arguments = parser.parse_args()
    if not arguments.smoke and (arguments.weights is None or arguments.data is None):
        parser.error("give --weights and --data, or --smoke")
    return arguments


def read_rows(arguments: argparse.Namespace) -> list[tuple[str, str, float]]:
    """Queries, documents and relevances in [0, 1]."""
    if arguments.smoke:
        return SMOKE_ROWS
    from _table import read_columns

    names = (arguments.query_column, arguments.document_column, arguments.relevance_column)
    rows = zip(*read_columns(arguments.data, *names), strict=True)
    return [(query, document, float(cell) / arguments.highest_relevance) for query, document, cell in rows]


def split(rows: list[tuple[str, str, float]]) -> tuple[list[Any], list[Any]]:
    """Training rows, and all rows of the held-out queries."""
    queries = list(dict.fromkeys(query for query, _, _ in rows))
    held_out = set(random.Random(SEED).sample(queries, max(1, round(len(queries) * HELD_OUT_SHARE))))
    return [row for row in rows if row[0] not in held_out], [row for row in rows if row[0] in held_out]


def make_reranker(kbl: Any, arguments: argparse.Namespace, rows: list[tuple[str, str, float]]) -> Any:
    """A cross-encoder from the user's weights, or a tiny one."""
    if arguments.smoke:
        from _smoke import small_parts

        return kbl.BertCrossEncoder(*small_parts(text for query, document, _ in rows for text in (query, document)))
    preprocessor = kbl.load_preprocessor(
        arguments.weights, max_length=arguments.max_length, truncation="only_second"
    )  # a query is never shortened
    return kbl.BertCrossEncoder(kbl.load_backbone(arguments.weights), preprocessor)


def measure(reranker: Any, rows: list[tuple[str, str, float]]) -> str:
    """How well the documents of each query are put in order."""
    from keras_bert_layers.tasks import RetrievalEvaluator

    judged: dict[str, dict[str, float]] = {}
    for query, document, value in rows:
        judged.setdefault(query, {})[document] = value
    queries, documents = ({text: text for text in column} for column in (judged, (row[1] for row in rows)))
    found = RetrievalEvaluator(queries, documents, judged, candidates=judged)(reranker)
    return f"nDCG@10 {found['ndcg@10']:.3f}, reciprocal rank {found['mrr@10']:.3f}"


def train(arguments: argparse.Namespace, output: Path) -> None:
    """Trains on nine tenths of the queries, evaluates on the rest, saves the model and ranks with it."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    keras.utils.set_random_seed(SEED)
    rows = read_rows(arguments)
    training, held_out = split(rows)
    reranker = make_reranker(kbl, arguments, rows)
    queries, documents, relevances = (list(column) for column in zip(*training, strict=True))
    num_steps = -(-len(training) // arguments.batch_size) * arguments.epochs
    reranker.compile(adamw(WarmupLinearDecay(arguments.rate, num_steps, num_warmup_steps=num_steps // 10)))
    reranker.fit(
        (queries, documents),
        relevances,
        batch_size=arguments.batch_size,
        epochs=arguments.epochs,
        verbose=0 if arguments.smoke else 1,
    )
    num_queries = len({query for query, _, _ in held_out})
    print(f"{num_queries} held-out queries: {measure(reranker, held_out)}")
    reranker.save(output / "reranker.keras")
    reranker.export(output / "saved_model")
    print(f"wrote {output / 'reranker.keras'} and {output / 'saved_model'}")
    query = held_out[0][0]
    print(query)
    candidates = [document for asked, document, _ in held_out if asked == query]
    for answer in reranker.rank(query, candidates, top_k=3, return_documents=True):
        print(f"  {answer['score']:.3f}  {answer['text']}")


if __name__ == "__main__":
    from _main import main

    main(parse_arguments(), train)
