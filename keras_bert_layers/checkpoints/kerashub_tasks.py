"""What `task.json` of a KerasHub preset says of its trained head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints import weight_table
from keras_bert_layers.checkpoints.checkpoint import StatedTask
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError

# keras_hub, models/bert/bert_masked_lm.py and layers/modeling/masked_lm_head.py: no argument changes these two.
MASKED_LM_HEAD = {"head_activation": "gelu_erf", "head_layer_norm_epsilon": 1e-5}

_FRAME = ("backbone", "preprocessor", "name", "trainable", "dtype")


def kerashub_tasks(path: Path, values: Mapping[str, Any]) -> tuple[StatedTask, ...]:
    """The tasks that a preset's trained head can serve, the one that it names first.

    Args:
        path: the file, for errors.
        values: what it holds: Keras's frame round the task's arguments; empty without a file.

    Returns:
        None for a bare encoder, or for a class that is not known.

    Raises:
        CheckpointError: a key or a value that the task here does not have.
    """
    reader = _READERS.get(str(values.get("class_name")))
    if reader is None:
        return ()
    arguments = values.get("config")
    if not isinstance(arguments, dict):
        raise CheckpointError(f"{path}: `config` must be a JSON object. Received: {arguments!r}.")
    return reader(path, {key: value for key, value in arguments.items() if key not in _FRAME})


def _text_classifier(path: Path, arguments: Mapping[str, Any]) -> tuple[StatedTask, ...]:
    """Classes, several labels a text, or a number, by the function on the logits; here logits stay logits."""
    _check_known(path, arguments, ("num_classes", "activation", "dropout"))
    num_classes, activation = arguments.get("num_classes"), arguments.get("activation") or "linear"
    if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 1:
        raise CheckpointError(f"{path}: `num_classes` must be an integer of at least 1. Received: {num_classes!r}.")
    if activation not in ("linear", "softmax", "sigmoid") or (num_classes, activation) == (1, "softmax"):
        raise CheckpointError(
            f"{path}: `activation` must be 'linear', 'sigmoid' or, of several classes, 'softmax'. "
            f"Received: {activation!r}. Load the encoder with `load_backbone`, and add the head in Keras."
        )
    rows = weight_table.CLASSIFIER_ROWS
    dropout = {"dropout": arguments["dropout"]} if "dropout" in arguments else {}
    if num_classes > 1:
        problem = "multi_label_classification" if activation == "sigmoid" else "single_label_classification"
        return (StatedTask("classifier", {"num_classes": num_classes, "problem_type": problem, **dropout}, rows),)
    scores = StatedTask("cross_encoder", dropout, rows)  # a sigmoid of one number is what it computes
    if activation == "sigmoid":
        return (scores,)
    return StatedTask("classifier", {"problem_type": "regression", **dropout}, rows), scores


def _masked_lm(path: Path, arguments: Mapping[str, Any]) -> tuple[StatedTask, ...]:
    _check_known(path, arguments, ())
    return (StatedTask("masked_lm", dict(MASKED_LM_HEAD), weight_table.MASKED_LM_ROWS),)


def _text_embedder(path: Path, arguments: Mapping[str, Any]) -> tuple[StatedTask, ...]:
    _check_known(path, arguments, ("pooling_mode", "normalize"))
    options = {"pooling": arguments.get("pooling_mode", "mean"), "normalize": arguments.get("normalize", True)}
    return StatedTask("sentence_encoder", options), StatedTask("dual_encoder", options)


# BertClassifier is the text classifier's older name.
_READERS: dict[str, Callable[[Path, Mapping[str, Any]], tuple[StatedTask, ...]]] = {
    "BertClassifier": _text_classifier,
    "BertMaskedLM": _masked_lm,
    "BertTextClassifier": _text_classifier,
    "BertTextEmbedder": _text_embedder,
}
CLASSES = tuple(_READERS)


def _check_known(path: Path, arguments: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key, value in arguments.items():
        if key not in known:
            raise CheckpointError(f"{path}: `{key}` must be a known key. Received: {key}={value!r}.")
