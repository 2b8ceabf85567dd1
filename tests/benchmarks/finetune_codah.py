"""Fine-tuning on CODAH, ours beside transformers + torch: one recipe, the same weights, accuracy.

    python tests/benchmarks/finetune_codah.py --contender transformers --data ../shared/data/multiple_choice
    python tests/benchmarks/finetune_codah.py --contender keras_bert_layers --data ../shared/data/multiple_choice

The recipe, for both: one fold of five, every fifth row (the fifth, the tenth, ...) to test on and the others to train
on, one epoch, batches of 8 prompts with 4 choices each, at most 64 tokens, peak rate 1e-4. The rest of the recipe is
in `_recipe.py`. `transformers` needs the extra `peers`. Prints one JSON line.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import _recipe as recipe

BATCH_SIZE = 8
NUM_EPOCHS = 1
NUM_FOLDS = 5
PEAK_RATE = 1e-4
MAX_LENGTH = 64


class Row(NamedTuple):
    """A prompt, its possible continuations, and which of them is right."""

    prompt: str
    choices: tuple[str, ...]
    answer: int


def read_codah(path: Path) -> list[Row]:
    """Every row: a category, the prompt, the choices, and the right one's place, between tabs."""
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [Row(prompt, tuple(choices), int(answer)) for _, prompt, *choices, answer in lines]


def batches_of(train: list[Row], seed: int) -> list[list[int]]:
    """The rows of each step."""
    lengths = [len(row.prompt) + max(len(choice) for choice in row.choices) for row in train]
    return recipe.draw_batches(lengths, batch_size=BATCH_SIZE, num_epochs=NUM_EPOCHS, seed=seed)


def train_transformers(weights: str, train: list[Row], test: list[Row], seed: int) -> dict:
    """The recipe in transformers + torch."""
    import torch
    from transformers import AutoTokenizer, BertForMultipleChoice

    tokenizer = AutoTokenizer.from_pretrained(weights)
    model = BertForMultipleChoice.from_pretrained(weights)

    def encode(rows: list[Row]) -> dict:
        batch = tokenizer(
            [row.prompt for row in rows for _ in row.choices],
            [choice for row in rows for choice in row.choices],
            truncation=True,
            max_length=MAX_LENGTH,
            padding=True,
            return_tensors="pt",
        )
        return {name: ids.reshape(len(rows), -1, ids.shape[-1]) for name, ids in batch.items()}

    def loss_of(rows: list[int]):
        chosen = [train[row] for row in rows]
        return model(**encode(chosen), labels=torch.tensor([row.answer for row in chosen])).loss

    batches = batches_of(train, seed)
    trained = recipe.train_torch(model, model.classifier, batches, loss_of, peak_rate=PEAK_RATE, seed=seed)
    right = 0
    with torch.inference_mode():
        for positions in recipe.in_batches(len(test), BATCH_SIZE):
            rows = [test[position] for position in positions]
            best = model(**encode(rows)).logits.argmax(-1).tolist()
            right += sum(choice == row.answer for choice, row in zip(best, rows, strict=True))
    return {"accuracy": round(100 * right / len(test), 2), **trained}


def train_keras_bert_layers(weights: str, train: list[Row], test: list[Row], seed: int) -> dict:
    """The recipe with this package."""
    backbone, preprocessor = recipe.load_ours(weights, seed, max_length=MAX_LENGTH)
    from keras_bert_layers import BertMultipleChoice

    model = BertMultipleChoice(backbone, preprocessor=preprocessor)
    recipe.draw_dense(model.get_layer("multiple_choice_head").dense, seed)
    batches = batches_of(train, seed)
    recipe.compile_ours(model, batches, peak_rate=PEAK_RATE)
    rows = [train[row] for batch in batches for row in batch]
    trained = recipe.fit_ours(model, _texts(rows), [row.answer for row in rows], batches)
    best = model.predict(_texts(test), batch_size=BATCH_SIZE, verbose=0).argmax(-1)
    right = sum(choice == row.answer for choice, row in zip(best, test, strict=True))
    return {"accuracy": round(100 * right / len(test), 2), **trained}


def _texts(rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """What `fit` and `predict` take."""
    return [row.prompt for row in rows], [list(row.choices) for row in rows]


CONTENDERS = {"transformers": train_transformers, "keras_bert_layers": train_keras_bert_layers}


def main() -> None:
    """Reads the arguments, trains once, prints one JSON line."""
    options = recipe.arguments(__doc__, list(CONTENDERS)).parse_args()
    rows = read_codah(options.data / "codah.tsv")
    train = [row for place, row in enumerate(rows) if place % NUM_FOLDS != NUM_FOLDS - 1][: options.rows]
    test = rows[NUM_FOLDS - 1 :: NUM_FOLDS]
    recipe.tell(options, CONTENDERS[options.contender](recipe.weights_of(options), train, test, options.seed))


if __name__ == "__main__":
    main()
