"""Features of a frozen BERT on WNUT-17 beside fine-tuning: entity F1 on dev, and sentences per second.

    python tests/benchmarks/features_wnut.py --contender table --data ../shared/data/ner
    python tests/benchmarks/features_wnut.py --contender rates --data ../shared/data/ner

`table` follows section 5.3 of Devlin et al. 2018 (arXiv:1810.04805): layers are combined in five ways, and a tagger is
trained on them with BERT frozen. Their tagger is a BiLSTM of two layers with 768 units; this one has one layer with 128
units, dropout of 0.3 before and after it, and trains for 10 epochs with batches of 32 and AdamW at a peak rate of 3e-3.
A word's vector is the mean over its pieces. The hidden states are computed once, for all combinations and both seeds.
Fine-tuning is the recipe of `finetune_wnut.py`. F1 is that of seqeval's default mode.

`rates` compares, in interleaved rounds, `Features.predict` with `predict_stream` of the sentence encoder, and with what
`extract_features.py` of google-research/bert does, in transformers + torch: batches of 32, all padded to 128 tokens.

Prints JSON lines.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import _recipe as recipe
import finetune_wnut as wnut
import numpy as np

SEEDS = (0, 1)
BATCH_SIZE = 32
NUM_EPOCHS = 10
PEAK_RATE = 3e-3
NUM_UNITS = 128
DROPOUT = 0.3
PADDING = -1

NUM_SENTENCES = 400
NUM_ROUNDS = 5

# From stacked hidden states, `(words, layers, hidden_dim)`, to the input of the tagger; learnt weights are a layer.
COMBINATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "embeddings": lambda states: states[:, 0],
    "last": lambda states: states[:, -1],
    "sum of last four": lambda states: states[:, -4:].sum(axis=1),
    "learnt weights of all": lambda states: states,
    "concat of last four": lambda states: states[:, -4:].reshape(len(states), 4 * states.shape[-1]),
}


def tagger(shape: tuple[int, ...], num_tags: int) -> Any:
    """A BiLSTM over vectors of words, or over stacks of them that a `ScalarMix` adds up."""
    import keras

    from keras_bert_layers.layers import ScalarMix

    vectors = keras.Input((None, *shape))
    mask = keras.Input((None,), dtype="bool")
    mixed = ScalarMix()(vectors) if len(shape) > 1 else vectors
    lstm = keras.layers.Bidirectional(keras.layers.LSTM(NUM_UNITS, return_sequences=True))
    hidden = lstm(keras.layers.Dropout(DROPOUT)(mixed), mask=mask)
    logits = keras.layers.Dense(num_tags)(keras.layers.Dropout(DROPOUT)(hidden))
    return keras.Model([vectors, mask], logits)


def padded(rows: list[np.ndarray], fill: float) -> np.ndarray:
    """Rows of a batch, as long as the longest."""
    found = np.full((len(rows), max(map(len, rows)), *rows[0].shape[1:]), fill, rows[0].dtype)
    for place, row in zip(found, rows, strict=True):
        place[: len(row)] = row
    return found


def train_tagger(
    train: list[np.ndarray], dev: list[np.ndarray], tags: list[np.ndarray], num_tags: int, seed: int
) -> list[np.ndarray]:
    """Trains on features of words and their tags, and returns the tags of dev."""
    import keras

    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    keras.utils.set_random_seed(seed)
    model = tagger(train[0].shape[1:], num_tags)
    batches = recipe.draw_batches(list(map(len, tags)), batch_size=BATCH_SIZE, num_epochs=NUM_EPOCHS, seed=seed)
    rate = WarmupLinearDecay(PEAK_RATE, len(batches), num_warmup_steps=int(len(batches) * recipe.WARMUP_SHARE))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=PADDING)
    model.compile(adamw(rate), loss, jit_compile=False)
    for rows in batches:
        labels = padded([tags[row] for row in rows], PADDING)
        model.train_on_batch([padded([train[row] for row in rows], 0), labels != PADDING], labels)
    predicted = []
    for rows in recipe.in_batches(len(dev), BATCH_SIZE):
        mask = padded([np.ones(len(dev[row]), bool) for row in rows], False)
        best = model.predict_on_batch([padded([dev[row] for row in rows], 0), mask]).argmax(-1)
        predicted += [best[index, : len(dev[row])] for index, row in enumerate(rows)]
    return predicted


def table(weights: str, train: wnut.Sentences, dev: wnut.Sentences) -> None:
    """Prints dev F1 of every combination and seed, and of fine-tuning."""
    backbone, preprocessor = recipe.load_ours(weights, SEEDS[0], max_length=wnut.MAX_LENGTH)
    from keras_bert_layers.tasks import Features

    features = Features(backbone, preprocessor, layers="all", combine="stack", per="word")
    start = time.perf_counter()
    stacks = [features.predict([words for words, _ in sentences], verbose=0) for sentences in (train, dev)]
    print_line({"extraction_seconds": round(time.perf_counter() - start, 1), "rows": len(train) + len(dev)})
    names = wnut.names_of(train)
    tags = [np.array([names.index(tag) for tag in row], "int32") for _, row in train]
    for name, combine in COMBINATIONS.items():
        inputs = [[combine(states) for states in part] for part in stacks]
        for seed in SEEDS:
            start = time.perf_counter()
            found = train_tagger(*inputs, tags, len(names), seed)
            scores = wnut.evaluate([[names[tag] for tag in row] for row in found], dev)
            seconds = round(time.perf_counter() - start, 1)
            print_line({"combination": name, "seed": seed, **scores, "train_seconds": seconds})
    for seed in SEEDS:
        print_line(
            {"combination": "fine-tuning", "seed": seed, **wnut.train_keras_bert_layers(weights, train, dev, seed)}
        )


def rates(weights: str, dev: wnut.Sentences) -> None:
    """Prints the median number of sentences per second of every contender."""
    recipe.limit_threads()
    import torch
    from transformers import AutoTokenizer, BertModel

    from keras_bert_layers import load_task
    from keras_bert_layers.tasks import Features

    texts = [" ".join(words) for words, _ in dev[:NUM_SENTENCES]]
    encoder = load_task(weights, "sentence_encoder")
    features = Features(encoder, layers=[-4, -3, -2, -1])
    tokenizer, model = AutoTokenizer.from_pretrained(weights), BertModel.from_pretrained(weights).eval()

    def google() -> int:
        found = []
        with torch.inference_mode():
            for rows in recipe.in_batches(len(texts), 32):
                options = {"padding": "max_length", "truncation": True, "max_length": 128, "return_tensors": "pt"}
                batch = tokenizer([texts[row] for row in rows], **options)
                states = model(**batch, output_hidden_states=True).hidden_states
                vectors = torch.cat(states[-4:], dim=-1).numpy()
                found += [row[:size] for row, size in zip(vectors, batch["attention_mask"].sum(1), strict=True)]
        return len(found)

    contenders: dict[str, Callable[[], int]] = {
        "Features.predict": lambda: len(features.predict(texts, verbose=0)),
        "predict_stream of the encoder": lambda: sum(1 for _ in encoder.predict_stream(texts)),
        "padded to 128, in torch": google,
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(NUM_ROUNDS + 1):  # the first one traces graphs
        for name, contender in contenders.items():
            start = time.perf_counter()
            contender()
            if number:
                seconds[name].append(time.perf_counter() - start)
    for name, found in seconds.items():
        print_line({"contender": name, "sentences_per_second": round(len(texts) / statistics.median(found))})


def print_line(result: dict[str, Any]) -> None:
    """Prints a result at once."""
    import json
    import sys

    sys.stdout.write(json.dumps({name: value for name, value in result.items() if name != "loss_curve"}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Reads the arguments, and measures."""
    options = recipe.arguments(__doc__, ["table", "rates"]).parse_args()
    dev = wnut.read_conll(options.data / "wnut17-dev.conll")
    if options.contender == "table":
        table(recipe.weights_of(options), wnut.read_conll(options.data / "wnut17-train.conll")[: options.rows], dev)
    else:
        rates(recipe.weights_of(options), dev)


if __name__ == "__main__":
    main()
