"""Search a file of documents by meaning: train if you have pairs, encode once, then ask.

    python3 examples/search.py --smoke

does all of it with a tiny untrained model on a few built-in lines, without any download. On your own files,
with your own weights (a HuggingFace or sentence-transformers directory, or a `.keras` file written by this program):

    python3 examples/search.py --weights path/to/bert --corpus documents.txt --queries queries.txt
    ... --train pairs.csv                          columns query and document: pairs that belong together
    ... --train pairs.csv --negative-column wrong  and a document that looks right and is not
    ... --separate                                 documents get their own encoder
    ... --reranker rerank_output/reranker.keras    reorders the best 20 with a model that `rerank.py` trained

`--corpus` has one document per line, `--queries` one query. The vectors of the documents are written as a NumPy
file, the trained model as a `.keras` file and as a SavedModel with the signatures `query` and `document`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

SEED = 7
NUM_RERANKED = 20
SMOKE_DOCUMENTS = [
    "cats sleep up to sixteen hours a day",
    "the train leaves at nine",
    "bake the bread for forty minutes",
    "the ferry waits for the train",
]
SMOKE_PAIRS = [
    ("how long does a cat sleep", SMOKE_DOCUMENTS[0]),
    ("when does the train leave", SMOKE_DOCUMENTS[1]),
    ("how long is bread in the oven", SMOKE_DOCUMENTS[2]),
] * 3


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny model on built-in lines; takes seconds")
    parser.add_argument("--weights", help="a HuggingFace or sentence-transformers directory, or a .keras file")
    parser.add_argument("--corpus", type=Path, help="a UTF-8 file, one document per line")
    parser.add_argument("--queries", type=Path, help="a UTF-8 file, one query per line")
    parser.add_argument("--train", type=Path, help="a UTF-8 CSV file with a header: pairs to train on first")
    parser.add_argument("--query-column", default="query", help="its column of queries (default: query)")
    parser.add_argument("--document-column", default="document", help="its column of documents (default: document)")
    parser.add_argument("--negative-column", help="its column of hard negatives: documents that do not match")
    parser.add_argument(
        "--separate", action="store_true", help="train two encoders, one for queries and one for documents"
    )
    parser.add_argument("--reranker", type=Path, help="a .keras file of a BertCrossEncoder")
    parser.add_argument("--top", type=int, default=5, help="documents to show per query (default: 5)")
    parser.add_argument("--query-length", type=int, default=64, help="tokens of a query (default: 64)")
    parser.add_argument("--document-length", type=int, default=256, help="tokens of a document (default: 256)")
    parser.add_argument("--epochs", type=int, default=2, help="passes over the pairs (default: 2)")
    parser.add_argument(
        "--batch-size", type=int, default=32, help="rows per step; larger batches learn more (default: 32)"
    )
    parser.add_argument("--rate", type=float, default=2e-5, help="the highest learning rate (default: 2e-5)")
    parser.add_argument("--output", type=Path, default=Path("search_output"), help="where to write")
    arguments = parser.parse_args()
    if not arguments.smoke and (arguments.weights is None or arguments.corpus is None or arguments.queries is None):
        parser.error("give --weights, --corpus and --queries, or --smoke")
    return arguments


def read_lines(path: Path) -> list[str]:
    """The lines of a file, without those that are only whitespace."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    lines = [line for line in lines if line]
    if not lines:
        raise ValueError(f"{path}: no line has text.")
    return lines


def make_encoder(kbl: Any, arguments: argparse.Namespace) -> Any:
    """A dual encoder from the user's weights, or a tiny one."""
    if arguments.smoke:
        from _smoke import small_parts

        texts = [*SMOKE_DOCUMENTS, *(query for query, _ in SMOKE_PAIRS)]
        backbone, preprocessor = small_parts(texts)
        return kbl.BertDualEncoder(backbone, preprocessor=preprocessor)
    if arguments.weights.endswith(".keras"):
        return kbl.load_task(arguments.weights, "dual_encoder")
    return kbl.load_task(
        arguments.weights,
        "dual_encoder",
        document_backbone=kbl.load_backbone(arguments.weights) if arguments.separate else None,
        preprocessor=kbl.load_preprocessor(arguments.weights, max_length=arguments.query_length),
        document_preprocessor=kbl.load_preprocessor(arguments.weights, max_length=arguments.document_length),
    )


def train(arguments: argparse.Namespace, encoder: Any, output: Path) -> None:
    """Trains on pairs, with or without negatives, and writes the model."""
    from _table import read_columns

    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    if arguments.smoke:
        columns = tuple(list(side) for side in zip(*SMOKE_PAIRS, strict=True))
    else:
        names = [arguments.query_column, arguments.document_column, arguments.negative_column]
        columns = tuple(read_columns(arguments.train, *filter(None, names)))
    num_steps = -(-len(columns[0]) // arguments.batch_size) * arguments.epochs
    encoder.compile(adamw(WarmupLinearDecay(arguments.rate, num_steps, num_warmup_steps=num_steps // 10)))
    history = encoder.fit(
        columns, batch_size=arguments.batch_size, epochs=arguments.epochs, verbose=0 if arguments.smoke else 1
    ).history
    print(f"trained on {len(columns[0])} pairs: loss {history['loss'][-1]:.3f}, accuracy {history['accuracy'][-1]:.3f}")
    encoder.save(output / "encoder.keras")
    encoder.export(output / "saved_model")
    print(f"wrote {output / 'encoder.keras'} and {output / 'saved_model'}")


def make_reranker(kbl: Any, arguments: argparse.Namespace, encoder: Any) -> Any:
    """The user's cross-encoder, a tiny one, or None."""
    if arguments.smoke:
        return kbl.BertCrossEncoder(encoder.backbone, encoder.preprocessor)
    return None if arguments.reranker is None else kbl.load_task(arguments.reranker, "cross_encoder")


def search(arguments: argparse.Namespace, output: Path) -> None:
    """Trains if there are pairs, encodes the documents, and prints the best ones for each query."""
    import keras
    import numpy as np

    import keras_bert_layers as kbl

    keras.utils.set_random_seed(SEED)
    documents = SMOKE_DOCUMENTS if arguments.smoke else read_lines(arguments.corpus)
    queries = [query for query, _ in SMOKE_PAIRS[:2]] if arguments.smoke else read_lines(arguments.queries)
    encoder = make_encoder(kbl, arguments)
    if arguments.smoke or arguments.train is not None:
        train(arguments, encoder, output)
    verbose = 0 if arguments.smoke else 1
    document_vectors = encoder.encode_documents(documents, verbose=verbose)
    np.save(output / "documents.npy", document_vectors)
    print(
        f"wrote {output / 'documents.npy'}: {document_vectors.shape[0]} vectors of {document_vectors.shape[1]} values"
    )
    # This searches a million vectors in about a second; for many more use a vector search library.
    query_vectors = encoder.encode_queries(queries, verbose=verbose)
    found = kbl.tasks.semantic_search(query_vectors, document_vectors, top_k=max(arguments.top, NUM_RERANKED))
    reranker = make_reranker(kbl, arguments, encoder)
    for query, best in zip(queries, found, strict=True):
        print(query)
        answers = [(row["score"], documents[row["corpus_id"]]) for row in best]
        if reranker is not None:
            ranked = reranker.rank(query, [text for _, text in answers], return_documents=True)
            answers = [(row["score"], row["text"]) for row in ranked]
        for score, text in answers[: 2 if arguments.smoke else arguments.top]:
            print(f"  {score:.3f}  {text}")


if __name__ == "__main__":
    from _main import main

    main(parse_arguments(), search)
