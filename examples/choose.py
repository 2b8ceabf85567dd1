"""Multiple choice: choose the continuation of a text; with your own file in CODAH's or SWAG's format.

    python3 examples/choose.py --smoke

trains a tiny model from scratch on a few built-in rows with different numbers of choices, without any download.
On your own rows, from your own BERT (a HuggingFace or sentence-transformers directory):

    python3 examples/choose.py --weights path/to/bert --codah codah.tsv
    python3 examples/choose.py --weights path/to/bert --swag train.csv --test val.csv

CODAH's format is tab-separated: a category, the prompt, the choices, and the index of the right one. SWAG's is CSV or
JSON lines with the columns sent1, sent2, ending0, ending1 ... and label. Without `--test` a fifth of the rows is held
out for evaluation. The trained model is saved as a `.keras` file and as a SavedModel that takes strings.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

SEED = 7
HELD_OUT_SHARE = 0.2
SMOKE_ROWS = [
    ("the bridge was closed so they", ["took the ferry", "sang to the bridge"], 0),
    ("the dough had risen so the baker", ["swam", "put it into the oven", "closed the bridge"], 1),
    ("it rained so she", ["put the ferry away", "took the umbrella", "sang", "swam"], 1),
] * 6


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny model on built-in rows; takes seconds")
    parser.add_argument("--weights", help="a HuggingFace or sentence-transformers directory")
    data = parser.add_mutually_exclusive_group()
    data.add_argument("--codah", type=Path, help="a file in CODAH's format to train on")
    data.add_argument("--swag", type=Path, help="a file in SWAG's format to train on")
    parser.add_argument("--test", type=Path, help="a file of the same format to evaluate on")
    parser.add_argument("--max-length", type=int, default=64, help="tokens of prompt and choice (default: 64)")
    parser.add_argument("--epochs", type=int, default=3, help="passes over the rows (default: 3)")
    parser.add_argument("--batch-size", type=int, default=8, help="rows per step (default: 8)")
    parser.add_argument("--rate", type=float, default=1e-4, help="the highest learning rate (default: 1e-4)")
    parser.add_argument("--output", type=Path, default=Path("choose_output"), help="where to write the models")
    arguments = parser.parse_args()
    if not arguments.smoke and (arguments.weights is None or (arguments.codah is None and arguments.swag is None)):
        parser.error("give --weights and --codah or --swag, or --smoke")
    return arguments


def read_codah(path: Path) -> list[Any]:
    """Rows of a tab-separated file: category, prompt, two or more choices, label."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        _, prompt, *choices, label = line.split("\t")
        choices = [choice for choice in choices if choice.strip()]
        if len(choices) < 2 or not label.isdigit() or int(label) >= len(choices):
            raise ValueError(f"{path}, line {number} must hold two or more choices and the index of one of them.")
        rows.append((prompt, choices, int(label)))
    return rows


def read_swag(path: Path) -> list[Any]:
    """Rows of a CSV or JSON lines file with the columns sent1, sent2, ending0, ending1 ... and label."""
    import pandas as pd

    table = pd.read_json(path, lines=True) if ".json" in path.name else pd.read_csv(path, keep_default_na=False)
    endings = [name for name in table if name.startswith("ending")]
    return [
        (row["sent1"], [f"{row['sent2']} {row[name]}" for name in endings], int(row["label"]))
        for row in table.to_dict("records")
    ]


def read_rows(arguments: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    """Training and test rows of prompt, choices and label."""
    if arguments.smoke:
        rows, test = SMOKE_ROWS, None
    else:
        read = read_codah if arguments.codah else read_swag
        rows = read(arguments.codah or arguments.swag)
        test = None if arguments.test is None else read(arguments.test)
    if test is None:
        rows = random.Random(SEED).sample(rows, len(rows))
        num_held_out = max(1, round(len(rows) * HELD_OUT_SHARE))
        test, rows = rows[:num_held_out], rows[num_held_out:]
    return rows, test


def make_chooser(kbl: Any, arguments: argparse.Namespace) -> Any:
    """A model from the user's weights, or a tiny one."""
    if arguments.smoke:
        from _smoke import small_parts

        backbone, preprocessor = small_parts(text for prompt, choices, _ in SMOKE_ROWS for text in (prompt, *choices))
    else:
        backbone = kbl.load_backbone(arguments.weights)
        preprocessor = kbl.load_preprocessor(arguments.weights, max_length=arguments.max_length)
    return kbl.BertMultipleChoice(backbone, preprocessor=preprocessor)


def run(arguments: argparse.Namespace, output: Path) -> None:
    """Trains, evaluates, saves the model and runs it."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    keras.utils.set_random_seed(SEED)
    rows, test = read_rows(arguments)
    chooser = make_chooser(kbl, arguments)
    prompts, choices, labels = (list(column) for column in zip(*rows, strict=True))
    num_steps = -(-len(rows) // arguments.batch_size) * arguments.epochs
    chooser.compile(adamw(WarmupLinearDecay(arguments.rate, num_steps, num_warmup_steps=num_steps // 10)))
    chooser.fit(
        (prompts, choices),
        labels,
        batch_size=arguments.batch_size,
        epochs=arguments.epochs,
        verbose=0 if arguments.smoke else 1,
    )
    prompts, choices, labels = (list(column) for column in zip(*test, strict=True))
    result = chooser.evaluate((prompts, choices), labels, verbose=0, return_dict=True)
    print(f"accuracy on {len(test)} held-out rows: {result['accuracy']:.3f}")
    chooser.save(output / "chooser.keras")
    chooser.export(output / "saved_model")
    print(f"wrote {output / 'chooser.keras'} and {output / 'saved_model'}")
    answers = chooser.answer((prompts[:3], choices[:3]))
    for prompt, choice, probabilities in zip(prompts, answers["choice"], answers["probabilities"], strict=False):
        print(f"  {prompt} ... {choice}  ({max(probabilities):.2f})")


if __name__ == "__main__":
    from _main import main

    main(parse_arguments(), run)
