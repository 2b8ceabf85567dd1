"""Fine-tuning on WNUT-17, ours beside transformers + torch: one recipe, the same weights, entity F1 on dev.

    python tests/benchmarks/finetune_wnut.py --contender transformers --seed 0 --data ../shared/data/ner
    python tests/benchmarks/finetune_wnut.py --contender keras_bert_layers --seed 0 --data ../shared/data/ner
    python tests/benchmarks/finetune_wnut.py --contender keras_bert_layers_crf --seed 0 --data ../shared/data/ner

The recipe, for both: three epochs, batch 16, peak rate 2e-4, at most 128 tokens, the label on a word's first piece; a
word without a piece is tagged "O". The rest of the recipe is in `_recipe.py`. F1 is that of seqeval's default
mode; `transformers` needs the extra `peers`, and every contender the package seqeval. Prints one JSON line.
"""

from __future__ import annotations

import functools
from pathlib import Path

import _recipe as recipe

BATCH_SIZE = 16
NUM_EPOCHS = 3
PEAK_RATE = 2e-4
MAX_LENGTH = 128
UNLABELLED = -100  # what torch's cross entropy passes over

Sentences = list[tuple[list[str], list[str]]]


def read_conll(path: Path) -> Sentences:
    """Words and tags of every sentence."""
    sentences: Sentences = []
    fresh = True
    for line in path.read_text(encoding="utf-8").split("\n"):
        word, _, tag = line.strip().partition("\t")  # the lines between sentences hold a tab in one file
        if word and fresh:
            sentences.append(([], []))
        if word:
            sentences[-1][0].append(word)
            sentences[-1][1].append(tag)
        fresh = not word
    return sentences


def evaluate(predicted: list[list[str]], sentences: Sentences) -> dict[str, float]:
    """Precision, recall and F1 of entities, in percent."""
    from seqeval.metrics import f1_score, precision_score, recall_score

    gold = [tags for _, tags in sentences]
    return {
        "f1": round(100 * float(f1_score(gold, predicted)), 2),
        "precision": round(100 * float(precision_score(gold, predicted)), 2),
        "recall": round(100 * float(recall_score(gold, predicted)), 2),
    }


def names_of(sentences: Sentences) -> list[str]:
    """Every tag, "O" first."""
    return ["O", *sorted({tag for _, tags in sentences for tag in tags} - {"O"})]


def batches_of(train: Sentences, seed: int) -> list[list[int]]:
    """The rows of each step."""
    lengths = [sum(len(word) for word in words) for words, _ in train]
    return recipe.draw_batches(lengths, batch_size=BATCH_SIZE, num_epochs=NUM_EPOCHS, seed=seed)


def train_transformers(weights: str, train: Sentences, dev: Sentences, seed: int) -> dict:
    """The recipe in transformers + torch."""
    import torch
    from transformers import AutoTokenizer, BertForTokenClassification

    names = names_of(train)
    tokenizer = AutoTokenizer.from_pretrained(weights)
    model = BertForTokenClassification.from_pretrained(weights, num_labels=len(names))

    def encode(sentences: Sentences) -> tuple:
        batch = tokenizer(
            [words for words, _ in sentences],
            is_split_into_words=True,
            truncation=True,
            max_length=MAX_LENGTH,
            padding=True,
            return_tensors="pt",
        )
        return batch, [_first_pieces(batch.word_ids(row)) for row in range(len(sentences))]

    def loss_of(rows: list[int]):
        sentences = [train[row] for row in rows]
        batch, first_pieces = encode(sentences)
        labels = torch.full_like(batch["input_ids"], UNLABELLED)
        for row, (_, tags) in enumerate(sentences):
            for word, token in first_pieces[row].items():
                labels[row, token] = names.index(tags[word])
        return model(**batch, labels=labels).loss

    batches = batches_of(train, seed)
    trained = recipe.train_torch(model, model.classifier, batches, loss_of, peak_rate=PEAK_RATE, seed=seed)
    predicted = []
    with torch.inference_mode():
        for rows in recipe.in_batches(len(dev), BATCH_SIZE):
            sentences = [dev[row] for row in rows]
            batch, first_pieces = encode(sentences)
            best = model(**batch).logits.argmax(-1).tolist()
            for row, (words, _) in enumerate(sentences):
                tags = ["O"] * len(words)
                for word, token in first_pieces[row].items():
                    tags[word] = names[best[row][token]]
                predicted.append(tags)
    return {**evaluate(predicted, dev), **trained}


def _first_pieces(word_ids: list[int | None]) -> dict[int, int]:
    """The token of each word's first piece."""
    return {word: word_ids.index(word) for word in dict.fromkeys(word_ids) if word is not None}


def train_keras_bert_layers(weights: str, train: Sentences, dev: Sentences, seed: int, *, crf: bool = False) -> dict:
    """The recipe with this package."""
    backbone, preprocessor = recipe.load_ours(weights, seed, max_length=MAX_LENGTH)
    from keras_bert_layers import BertTokenClassifier

    model = BertTokenClassifier(backbone, names_of(train), crf=crf, preprocessor=preprocessor)
    recipe.draw_dense(model.get_layer("token_classification_head").dense, seed)
    batches = batches_of(train, seed)
    recipe.compile_ours(model, batches, peak_rate=PEAK_RATE)
    rows = [train[row] for batch in batches for row in batch]
    trained = recipe.fit_ours(model, [words for words, _ in rows], [tags for _, tags in rows], batches)
    predicted = model.predict_tags([words for words, _ in dev], batch_size=BATCH_SIZE)
    return {**evaluate(predicted, dev), **trained}


CONTENDERS = {
    "transformers": train_transformers,
    "keras_bert_layers": train_keras_bert_layers,
    "keras_bert_layers_crf": functools.partial(train_keras_bert_layers, crf=True),
}


def main() -> None:
    """Reads the arguments, trains once, prints one JSON line."""
    options = recipe.arguments(__doc__, list(CONTENDERS)).parse_args()
    train = read_conll(options.data / "wnut17-train.conll")[: options.rows]
    dev = read_conll(options.data / "wnut17-dev.conll")
    recipe.tell(options, CONTENDERS[options.contender](recipe.weights_of(options), train, dev, options.seed))


if __name__ == "__main__":
    main()
