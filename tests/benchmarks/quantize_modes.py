"""Keras's modes of `quantize` on a classifier: accuracy on SST-2's dev, sizes of files, seconds of processor time.

    python tests/benchmarks/quantize_modes.py --contender train --data ../shared/data --model sst2.keras
    python tests/benchmarks/quantize_modes.py --contender int8 --data ../shared/data --model sst2.keras

`train` fine-tunes all-MiniLM-L6-v2 on the first 3,000 rows of train, two epochs at 5e-5, and saves it without the
optimizer's state. The others load that file, quantize it (`float32` does not; `int8_weights` leaves activations as they
are), predict dev twice, of which the second is timed, and compare the saved file and the SavedModel. Prints JSON.
"gptq" and "awq" are missing: in Keras 3.15.1 they do not calibrate (https://github.com/keras-team/keras/pull/23512).
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import _recipe as recipe
import numpy as np

CONTENDERS = ("train", "float32", "int8", "int8_weights", "int4", "float8")
NUM_ROWS, NUM_STEPS = 3000, 188


def train(options: Any, texts: list[str], labels: list[int]) -> None:
    """Fine-tunes and saves."""
    import keras

    import keras_bert_layers as kbl

    keras.utils.set_random_seed(options.seed)
    model = kbl.load_task(recipe.weights_of(options), "classifier", class_names=["bad", "good"])
    model.compile(kbl.optimizers.adamw(kbl.optimizers.WarmupLinearDecay(5e-5, NUM_STEPS, num_warmup_steps=18)))
    model.fit(texts[:NUM_ROWS], labels[:NUM_ROWS], batch_size=32, epochs=2, group_by_length=True, verbose=0)
    model.compile()
    model.save(options.model)


def measure(options: Any, texts: list[str], labels: list[int]) -> dict[str, Any]:
    """Accuracy, seconds, megabytes, and how far the files are from the model."""
    import keras
    import tensorflow as tf

    import keras_bert_layers  # noqa: F401 - its classes are in the file

    model = keras.models.load_model(options.model)
    if options.contender == "int8_weights":
        model.quantize(config=keras.quantizers.Int8QuantizationConfig(activation_quantizer=None))
    elif options.contender != "float32":
        model.quantize(options.contender)
    model.predict(texts, verbose=0)  # traces
    begun = time.process_time()
    logits = model.predict(texts, verbose=0)
    seconds = time.process_time() - begun
    few, expected = texts[:64], model.answer(texts[:64])["probabilities"]
    with tempfile.TemporaryDirectory() as folder:
        file, exported = Path(folder) / "model.keras", Path(folder) / "exported"
        model.save(file)
        model.export(exported, verbose=False)
        loaded = keras.models.load_model(file).answer(few)
        served = tf.saved_model.load(str(exported)).signatures["serving_default"](text=tf.constant(few))
        return {
            "accuracy": round(100 * float(np.mean(logits.argmax(-1) == np.asarray(labels))), 2),
            "predict_cpu_seconds": round(seconds, 1),
            "keras_mb": round(file.stat().st_size / 1e6, 1),
            "saved_model_mb": round(sum(path.stat().st_size for path in exported.rglob("*")) / 1e6, 1),
            "loaded_difference": float(np.abs(loaded["probabilities"] - expected).max()),
            "served_difference": float(np.abs(served["probabilities"] - expected).max()),
        }


def main() -> None:
    """Trains or measures once."""
    parser = recipe.arguments(__doc__, CONTENDERS)
    parser.add_argument("--model", type=Path, required=True, help="the .keras file that `train` writes")
    options = parser.parse_args()
    recipe.limit_threads()
    from finetune_sst2 import read_sst2

    train_rows, dev = (read_sst2(options.data / "glue" / "SST-2" / f"{name}.tsv.gz") for name in ("train", "dev"))
    if options.contender == "train":
        train(options, *train_rows)
    else:
        recipe.tell(options, measure(options, *dev))


if __name__ == "__main__":
    main()
