"""KerasHub: its preprocessor and its backbone in one graph.

Its preprocessor pads to a constant only. The constant is the longest text of the file: the least that loses no text,
if all of them are known beforehand. With XLA or without, and in bfloat16 with either policy, whichever is faster here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from comparison.batches import CLIP_NORM, LEARNING_RATE, WEIGHT_DECAY, over_batches, versions_of


def start() -> dict[str, str]:
    import keras_hub  # noqa: F401
    import tensorflow_text  # noqa: F401 - KerasHub imports it at the first text

    return versions_of("keras-hub", "keras", "tensorflow", "tensorflow-text")


def encoder_settings(dtype: str, longest: int) -> list[dict[str, Any]]:
    policies = ["float32"] if dtype == "float32" else ["bfloat16", "mixed_bfloat16"]
    return [{"sequence_length": longest, "jit": jit, "policy": policy} for policy in policies for jit in (False, True)]


def trainer_settings(dtype: str, longest: int) -> list[dict[str, Any]]:
    policy = {"float32": "float32", "bfloat16": "mixed_bfloat16"}[dtype]
    return [{"sequence_length": longest, "jit": jit, "policy": policy} for jit in (False, True)]


def encoder(folder: Path, dtype: str, *, sequence_length: int, jit: bool, policy: str) -> Callable:
    import keras_hub
    import tensorflow as tf

    source = str(folder / "huggingface")
    preprocessor = _preprocessor(source, sequence_length)
    backbone = keras_hub.models.BertBackbone.from_preset(source, dtype=policy)

    @tf.function(jit_compile=jit, autograph=False)
    def vectors(ids: Any) -> Any:
        outputs = tf.cast(backbone(ids, training=False)["sequence_output"], tf.float32)
        weights = tf.cast(ids["padding_mask"], tf.float32)[:, :, None]
        mean = tf.reduce_sum(outputs * weights, axis=1) / tf.reduce_sum(weights, axis=1)
        return tf.math.l2_normalize(mean, axis=-1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def serve(texts: Any) -> Any:
        return vectors(preprocessor(texts))

    return over_batches(lambda texts: serve(tf.constant(texts)).numpy())


def trainer(folder: Path, dtype: str, *, sequence_length: int, jit: bool, policy: str) -> Callable:
    import keras
    import keras_hub

    source = str(folder / "huggingface")
    classifier = keras_hub.models.BertTextClassifier.from_preset(
        source, num_classes=2, dtype=policy, preprocessor=_preprocessor(source, sequence_length)
    )
    optimizer = keras.optimizers.AdamW(LEARNING_RATE, weight_decay=WEIGHT_DECAY, global_clipnorm=CLIP_NORM)
    optimizer.exclude_from_weight_decay(var_names=["bias", "layer_norm"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    classifier.compile(optimizer=optimizer, loss=loss, jit_compile=jit)

    def train(texts: Any, labels: Any, batch_size: int) -> float:
        history = classifier.fit(texts, labels, batch_size=batch_size, shuffle=False, verbose=0)
        return history.history["loss"][0]

    return train


def _preprocessor(source: str, sequence_length: int) -> Any:
    import keras_hub

    return keras_hub.models.BertTextClassifierPreprocessor.from_preset(source, sequence_length=sequence_length)
