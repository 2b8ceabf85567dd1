"""`attribute` on SST-2: completeness, agreement with Captum, deletion curves and rank correlation with occlusion.

    python tests/benchmarks/attributions.py --data ../shared/data/glue

Fine-tunes all-MiniLM-L6-v2 for 300 steps of 32 training sentences (AdamW, a linear warm-up over a tenth of the steps to
5e-5, then linear decay, at most 64 tokens), and explains the predicted class of 200 sentences of the development set.

- Completeness: how far the scores of a text are from adding up to the difference of the logit.
- Captum: `LayerIntegratedGradients` on the same weights in transformers, with the same [PAD] baseline and as many
  Gauss-Legendre points. It needs the extra `peers`; without it, the rest is measured.
- Deletion: the mean probability of the predicted class after 1 to 5 words were removed: those with the highest scores,
  those whose removal alone lowers the logit most (occlusion), and random ones.
- Rank correlation: Spearman's between the scores of a text's words and their occlusion, the mean over the texts.

Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _recipe import compile_ours, draw_batches, draw_dense, fit_ours, load_ours, say, weights_of

NUM_STEPS, BATCH_SIZE, PEAK_RATE, MAX_LENGTH = 300, 32, 5e-5, 64
NUM_TEXTS = 200
MOST_REMOVED = 5


def train(options: argparse.Namespace) -> Any:
    """The classifier."""
    backbone, preprocessor = load_ours(weights_of(options), options.seed, max_length=MAX_LENGTH)
    from keras_bert_layers import BertClassifier
    from keras_bert_layers.data import read_glue

    rows = read_glue(options.data / "SST-2" / "train.tsv.gz", "SST-2")
    chosen = random.Random(options.seed).sample(range(len(rows.first)), options.steps * BATCH_SIZE)
    texts, labels = ([column[row] for row in chosen] for column in (rows.first, rows.labels))
    classifier = BertClassifier(backbone, class_names=["negative", "positive"], preprocessor=preprocessor)
    draw_dense(classifier.get_layer("classification_head").dense, options.seed)
    lengths = [len(text) for text in texts]
    batches = draw_batches(lengths, batch_size=BATCH_SIZE, num_epochs=1, seed=options.seed)
    order = [row for batch in batches for row in batch]
    compile_ours(classifier, batches, peak_rate=PEAK_RATE)
    fit_ours(classifier, [texts[row] for row in order], np.array([labels[row] for row in order]), batches)
    return classifier


def with_captum(classifier: Any, texts: list[str], found: list[Any]) -> dict[str, float]:
    """The largest difference from Captum's scores, and its seconds for a text."""
    import torch
    from captum.attr import LayerIntegratedGradients
    from transformers import BertForSequenceClassification

    from keras_bert_layers import save_huggingface

    with tempfile.TemporaryDirectory() as folder:
        save_huggingface(classifier, folder)
        model = BertForSequenceClassification.from_pretrained(folder).eval()
    explain = LayerIntegratedGradients(lambda ids: model(ids).logits, model.bert.embeddings)
    tokenizer, worst, seconds = classifier.preprocessor.tokenizer, 0.0, 0.0
    for text, ours in zip(texts, found, strict=True):
        ids = torch.tensor(classifier.preprocessor([text])["token_ids"].numpy(), dtype=torch.long)
        special = torch.isin(ids, torch.tensor([tokenizer.start_id, tokenizer.separator_id]))
        start = time.perf_counter()
        scores = explain.attribute(
            ids,
            baselines=torch.where(special, ids, tokenizer.pad_id),
            target=classifier.class_names.index(ours.target),
            n_steps=ours.steps,
            method="gausslegendre",
        )
        seconds += time.perf_counter() - start
        worst = max(worst, float(np.abs(scores.sum(-1)[0].detach().numpy() - ours.scores).max()))
    return {"captum_largest_difference": worst, "captum_seconds_per_text": round(seconds / len(texts), 3)}


def logits_of(classifier: Any, rows: list[list[str]], targets: list[int]) -> np.ndarray:
    """The logit minus that of the other class, for each row of words."""
    logits = classifier.predict([" ".join(words) for words in rows], verbose=0)
    return logits[range(len(rows)), targets] - logits[range(len(rows)), [1 - target for target in targets]]


def occlusion(classifier: Any, words: list[list[str]], targets: list[int]) -> list[np.ndarray]:
    """How much the removal of each word alone lowers the logit."""
    rows = [text[:index] + text[index + 1 :] for text in words for index in range(len(text))]
    repeated = [target for text, target in zip(words, targets, strict=True) for _ in text]
    without = np.split(logits_of(classifier, rows, repeated), np.cumsum([len(text) for text in words])[:-1])
    whole = logits_of(classifier, words, targets)
    return [before - after for before, after in zip(whole, without, strict=True)]


def deletion(
    classifier: Any, words: list[list[str]], targets: list[int], order: Callable[[int], np.ndarray]
) -> list[float]:
    """The mean probability of the target after 0, 1, 2, ... words were removed in an order."""
    curve = []
    for count in range(MOST_REMOVED + 1):
        rows = []
        for row, text in enumerate(words):
            removed = set(order(row)[:count].tolist())
            rows.append([word for index, word in enumerate(text) if index not in removed])
        curve.append(round(float(np.mean(1 / (1 + np.exp(-logits_of(classifier, rows, targets))))), 3))
    return curve


def main() -> None:
    """Reads the arguments, measures, prints one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, required=True, help="a folder that holds SST-2/train.tsv.gz and dev.tsv.gz"
    )
    parser.add_argument("--weights", help="a HuggingFace directory; default: all-MiniLM-L6-v2")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=NUM_STEPS, help="steps of training, fewer for a quick try")
    parser.add_argument("--texts", type=int, default=NUM_TEXTS, help="texts to explain")
    parser.add_argument("--model", type=Path, help="a .keras file: read if it exists, else written after the training")
    parser.add_argument("--picture", type=Path, help="an HTML file to write, with the first texts")
    options = parser.parse_args()
    if options.model is not None and options.model.exists():
        import keras

        import keras_bert_layers  # noqa: F401 - registers the classes

        classifier = keras.models.load_model(options.model)
    else:
        classifier = train(options)
        if options.model is not None:
            classifier.save(options.model)
    from scipy.stats import spearmanr  # of the extra `peers`

    from keras_bert_layers.data import read_glue

    dev = read_glue(options.data / "SST-2" / "dev.tsv.gz", "SST-2")
    right = classifier.predict(dev.first, verbose=0).argmax(-1) == np.array(dev.labels)
    texts = random.Random(options.seed).sample(list(dev.first), options.texts)
    classifier.attribute(texts[0])  # traces
    say("explains")
    start = time.perf_counter()
    found = classifier.attribute(texts)
    seconds = time.perf_counter() - start
    shares = [item.error / max(1, abs(item.difference)) for item in found]
    steps = [item.steps for item in found]
    result = {
        "accuracy": round(float(right.mean()), 4),
        "error_median": float(np.median(shares)),
        "error_largest": float(np.max(shares)),
        "texts_by_points": {count: steps.count(count) for count in sorted(set(steps))},
        "seconds_per_text": round(seconds / len(texts), 3),
    }
    words, targets = [item.words for item in found], [classifier.class_names.index(item.target) for item in found]
    alone = occlusion(classifier, words, targets)
    draw = np.random.default_rng(options.seed)
    random_orders = [draw.permutation(len(text)) for text in words]
    result |= {
        "rank_correlation": round(
            float(
                np.mean(
                    [
                        spearmanr(item.word_scores, drop).statistic
                        for item, drop in zip(found, alone, strict=True)
                        if len(drop) > 2
                    ]
                )
            ),
            3,
        ),
        "removed_by_score": deletion(classifier, words, targets, lambda row: np.argsort(-found[row].word_scores)),
        "removed_by_occlusion": deletion(classifier, words, targets, lambda row: np.argsort(-alone[row])),
        "removed_at_random": deletion(classifier, words, targets, lambda row: random_orders[row]),
    }
    say(json.dumps(result))
    try:
        result |= with_captum(classifier, texts, found)
    except ModuleNotFoundError as error:
        say(f"without Captum: {error}")
    if options.picture is not None:
        from keras_bert_layers.visualization import AttributionPicture

        AttributionPicture(found[:4]).save(options.picture)
    sys.stdout.write(json.dumps({"steps": options.steps, "texts": len(texts), "seed": options.seed, **result}) + "\n")


if __name__ == "__main__":
    main()
