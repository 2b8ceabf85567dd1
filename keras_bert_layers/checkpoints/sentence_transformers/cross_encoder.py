"""Reads and writes the files of a `CrossEncoder` of sentence-transformers around a classifier of transformers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_layers.checkpoints.checkpoint import TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files import json_file
from keras_bert_layers.checkpoints.sentence_transformers.modules import (
    ENCODER_FILE,
    MODEL_FILE,
    MODULES_FILE,
    read_activation,
    read_modules,
    read_prompts,
    written_activation,
)

if TYPE_CHECKING:
    import keras

# Up to release 3; 4 has "sentence_transformers" in config.json; from 5.4 on it is in a file of its own.
_OLDEST_KEY = "sbert_ce_default_activation_function"


def is_cross_encoder(root: Path) -> bool:
    """Whether sentence-transformers 5.4 or later wrote the directory of a `CrossEncoder`, a model with a head."""
    return _settings(root).get("model_type") == "CrossEncoder"


def _settings(root: Path) -> dict[str, Any]:
    """The content of `config_sentence_transformers.json`, which sentence-transformers reads beside modules only."""
    return json_file.optional_json(root / MODEL_FILE) if (root / MODULES_FILE).is_file() else {}


def cross_encoder_heads(
    root: Path, config: Mapping[str, Any], heads: tuple[TrainedHead, ...]
) -> tuple[TrainedHead, ...]:
    """The heads of a classifier, with what sentence-transformers states about its scores.

    Args:
        root: the checkpoint's directory.
        config: the content of its `config.json`.
        heads: the heads by `config.json`.

    Returns:
        The same heads if it is not a cross-encoder; otherwise the cross-encoder first, with its activation and prompts.

    Raises:
        CheckpointError: an activation that is not implemented, further modules, or settings of a head of several
            labels, which a `BertClassifier` does not have.
    """
    if not is_cross_encoder(root) and not {"sentence_transformers", _OLDEST_KEY} & set(config):
        return heads
    kinds = [kind for kind, _ in read_modules(root)]
    if kinds not in ([], ["Transformer"]):
        raise CheckpointError(
            f"{root / MODULES_FILE}: the modules of a cross-encoder must be ['Transformer']. Received: {kinds}. "
            "Load the encoder alone with `load_backbone`, and add the rest in Keras."
        )
    options = {**stated_activation(root, config), **(read_prompts(root) if is_cross_encoder(root) else {})}
    others = tuple(head for head in heads if head.name != "cross_encoder")
    first = next((head for head in heads if head.name == "cross_encoder"), None)
    if first is not None:
        return (dataclasses.replace(first, options={**first.options, **options}, stated=True), *others)
    if any(head.name == "classifier" for head in heads):
        _check_labels(root, options)
    return heads


def stated_activation(root: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """The argument `activation`; empty where nothing is stated: a sigmoid of one label."""
    stated = (
        (root / MODEL_FILE, "activation_fn", _settings(root)),
        (root / "config.json", "activation_fn", config.get("sentence_transformers")),
        (root / "config.json", _OLDEST_KEY, config),
    )
    for path, key, values in stated:
        if isinstance(values, Mapping) and values.get(key) is not None:
            return {"activation": read_activation(path, key, values[key])}
    return {}


def _check_labels(root: Path, options: Mapping[str, Any]) -> None:
    """Refuses what would change the outputs of several labels; their logits are the outputs there and here."""
    for name, changes in (
        ("activation", options.get("activation", "linear") != "linear"),
        ("default_prompt", options.get("default_prompt") is not None),
    ):
        if changes:
            raise CheckpointError(
                f"{root}: a cross-encoder of several labels must have no {name}. Received: {name}={options[name]!r}. "
                "`BertClassifier` takes pairs as they are and gives logits. Make one on `load_backbone(source)`."
            )


def config_entry(model: keras.Model) -> dict[str, str]:
    """The value of `sentence_transformers` in the `config.json` of a `BertCrossEncoder`."""
    return {"activation_fn": written_activation(model.activation)}


def write_cross_encoder(directory: Path, model: keras.Model) -> None:
    """Writes the files that hold the prompts of a `BertCrossEncoder`; none if it has no prompts.

    References:
        sentence-transformers 5.4 and later read these files.
    """
    if model.prompts is None:
        return
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}
    settings = {
        "model_type": "CrossEncoder",
        "prompts": model.prompts,
        "default_prompt_name": model.default_prompt,
        **config_entry(model),
    }
    json_file.write_json(directory / MODULES_FILE, [module])
    json_file.write_json(directory / ENCODER_FILE, {"transformer_task": "sequence-classification"})
    json_file.write_json(directory / MODEL_FILE, settings)
