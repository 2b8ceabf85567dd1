"""Train a sentence encoder, on built-in pairs or on your own CSV file of pairs or triplets.

    python3 examples/embed_sentences.py --smoke

trains a tiny model from scratch on a few built-in pairs, without any download. On your own rows, from your own
weights (a HuggingFace or sentence-transformers directory):

    python3 examples/embed_sentences.py --weights path/to/bert --data paraphrases.csv --columns text paraphrase
    ... --columns anchor positive negative                                              triplets
    ... --columns sentence1 sentence2 --score-column score --highest-score 5            similarities, as in STS-B

Without scores, the other rows of a batch are the negatives, so a larger `--batch-size` learns more. A tenth of the rows
is held out for evaluation. The trained model is saved as a `.keras` file and as a SavedModel.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

SEED = 7
HELD_OUT_SHARE = 0.1
SMOKE_ROWS = [
    ("a cat sleeps", "a kitten naps", 4.5),
    ("a cat sleeps", "stocks fell", 0.0),
    ("the train is late", "the train comes later", 4.0),
    ("the train is late", "a kitten naps", 0.5),
    ("bake the bread", "put the bread into the oven", 3.5),
] * 4


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny model on built-in rows; takes seconds")
    parser.add_argument("--weights", help="a HuggingFace or sentence-transformers directory")
    parser.add_argument("--data", type=Path, help="a UTF-8 CSV file with a header; needs pandas")
    parser.add_argument("--columns", nargs="+", default=["first", "second"], help="two or three columns of texts")
    parser.add_argument("--score-column", help="the column of similarities of pairs")
    parser.add_argument("--highest-score", type=float, default=1.0, help="the similarity of equal texts (default: 1)")
    parser.add_argument("--temperature", type=float, default=0.05, help="for rows without scores (default: 0.05)")
    parser.add_argument(
        "--max-length", type=int, default=128, help="tokens per text, longer texts are cut (default: 128)"
    )
    parser.add_argument("--epochs", type=int, default=2, help="passes over the rows (default: 2)")
    parser.add_argument("--batch-size", type=int, default=32, help="rows per step (default: 32)")
    parser.add_argument("--rate", type=float, default=2e-5, help="the highest learning rate (default: 2e-5)")
    parser.add_argument("--output", type=Path, default=Path("embed_output"), help="where to write the models")
    arguments = parser.parse_args()
    if not arguments.smoke and (arguments.weights is None or arguments.data is None):
        parser.error("give --weights and --data, or --smoke")
    if len(arguments.columns) not in (2, 3):
        parser.error("--columns takes two names, or three for triplets")
    if arguments.score_column and len(arguments.columns) == 3:
        parser.error("triplets have no scores")
    return arguments


def read_rows(arguments: argparse.Namespace) -> tuple[list[tuple[str, ...]], list[float] | None]:
    """Rows of two or three texts, and their similarities in [0, 1] if there are any."""
    if arguments.smoke:
        return [row[:2] for row in SMOKE_ROWS], [row[2] / 5 for row in SMOKE_ROWS]
    from _table import read_columns

    score_columns = [arguments.score_column] if arguments.score_column else []
    columns = read_columns(arguments.data, *arguments.columns, *score_columns)
    rows = list(zip(*columns[: len(arguments.columns)], strict=True))
    return rows, [float(cell) / arguments.highest_score for cell in columns[-1]] if score_columns else None


def make_encoder(kbl: Any, arguments: argparse.Namespace, rows: list[tuple[str, ...]]) -> Any:
    """An encoder from the user's weights, with their pooling; or a tiny one."""
    if arguments.smoke:
        from _smoke import small_parts

        backbone, preprocessor = small_parts(text for row in rows for text in row)
        return kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)
    preprocessor = kbl.load_preprocessor(arguments.weights, max_length=arguments.max_length)
    return kbl.load_task(
        arguments.weights, "sentence_encoder", preprocessor=preprocessor, temperature=arguments.temperature
    )


def train(arguments: argparse.Namespace, output: Path) -> None:
    """Trains on nine tenths of the rows, evaluates before and after on the rest, saves the model and runs it."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    keras.utils.set_random_seed(SEED)
    rows, scores = read_rows(arguments)
    order = random.Random(SEED).sample(range(len(rows)), len(rows))
    num_held_out = max(2, round(len(order) * HELD_OUT_SHARE))

    def columns_of(indices: list[int]) -> tuple[tuple[list[str], ...], list[float] | None]:
        texts = tuple(list(side) for side in zip(*(rows[index] for index in indices), strict=True))
        return texts, None if scores is None else [scores[index] for index in indices]

    held_out, training = columns_of(order[:num_held_out]), columns_of(order[num_held_out:])
    encoder = make_encoder(kbl, arguments, rows)
    num_steps = -(-len(training[0][0]) // arguments.batch_size) * arguments.epochs
    encoder.compile(adamw(WarmupLinearDecay(arguments.rate, num_steps, num_warmup_steps=num_steps // 10)))

    def report(when: str) -> None:
        result = encoder.evaluate(*held_out, batch_size=arguments.batch_size, verbose=0, return_dict=True)
        shown = ", ".join(f"{name} {value:.3f}" for name, value in result.items())
        print(f"{when}, {num_held_out} held-out rows: {shown}")

    report("before")
    verbose = 0 if arguments.smoke else 1
    encoder.fit(*training, batch_size=arguments.batch_size, epochs=arguments.epochs, verbose=verbose)
    report("after")
    encoder.save(output / "encoder.keras")
    encoder.export(output / "saved_model")
    print(f"wrote {output / 'encoder.keras'} and {output / 'saved_model'}")
    pairs = tuple(side[:2] for side in held_out[0][:2])
    for first, second, cosine in zip(*pairs, encoder.predict(pairs, verbose=0), strict=True):
        print(f"  {cosine:+.2f}  {first!r} and {second!r}")


if __name__ == "__main__":
    from _main import main

    main(parse_arguments(), train)
