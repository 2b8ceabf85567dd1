"""`keras_bert_layers`, served: the SavedModel of `task.export`, in a process that has TensorFlow only.

Strings go in by the signature `serving_default`. In bfloat16 it is `task.export(path, dtype="bfloat16")`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from comparison.batches import MAX_LENGTH, over_batches, tensorflow_matrix_product, versions_of

matrix_product = tensorflow_matrix_product


def prepare(folder: Path, dtype: str) -> None:
    """Exports the sentence encoder."""
    import keras_bert_layers as kbl

    source = folder / "huggingface"
    preprocessor = kbl.load_preprocessor(source, max_length=MAX_LENGTH)
    encoder = kbl.BertSentenceEncoder(kbl.load_backbone(source), preprocessor=preprocessor)
    encoder.export(saved_model(folder, dtype), dtype=dtype)


def saved_model(folder: Path, dtype: str) -> Path:
    """Where the exported model lies."""
    return folder / f"saved_model_{dtype}"


def start() -> dict[str, str]:
    import tensorflow_text  # noqa: F401 - brings the operations of the tokenizer

    return versions_of("tensorflow", "tensorflow-text")


def encoder(folder: Path, dtype: str) -> Callable:
    import tensorflow as tf

    loaded = tf.saved_model.load(str(saved_model(folder, dtype)))
    serve = loaded.signatures["serving_default"]
    serve.loaded = loaded  # the signature alone does not keep its variables
    return over_batches(lambda texts: serve(text=tf.constant(texts))["embedding"].numpy())
