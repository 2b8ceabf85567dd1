"""`kerashub_heads`: the trained head of a KerasHub preset, by its `task.json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import check_integer, check_known, check_object
from keras_bert_layers.checkpoints.task_table import TASKS, one_output_heads

# keras_hub, models/bert/bert_masked_lm.py and layers/modeling/masked_lm_head.py: no argument changes these two.
MASKED_LM_HEAD: dict[str, Any] = {"head_activation": "gelu_erf", "head_layer_norm_epsilon": 1e-5}

_FRAME = ("backbone", "preprocessor", "name", "trainable", "dtype")


def kerashub_heads(path: Path, values: Mapping[str, Any]) -> tuple[TrainedHead, ...]:
    """The tasks that a preset's trained head can serve, its own class first.

    Args:
        path: the file, for errors.
        values: its content: the task as Keras serializes it; empty without a file.

    Returns:
        The tasks; empty for a bare encoder and for an unknown class.

    Raises:
        CheckpointError: the file has a key or a value that our task does not have.
    """
    reader = _READERS.get(str(values.get("class_name")))
    if reader is None:
        return ()
    arguments = check_object(path, "config", values.get("config"))
    return reader(path, {key: value for key, value in arguments.items() if key not in _FRAME})


def _text_classifier(path: Path, arguments: Mapping[str, Any]) -> tuple[TrainedHead, ...]:
    """The problem type follows from the activation of KerasHub's logits; our outputs stay logits."""
    check_known(path, arguments, ("num_classes", "activation", "dropout"))
    num_classes = check_integer(path, "num_classes", arguments.get("num_classes"), least=1)
    activation = arguments.get("activation") or "linear"
    if activation not in ("linear", "softmax", "sigmoid") or (num_classes, activation) == (1, "softmax"):
        raise CheckpointError(
            f"{path}: `activation` must be 'linear', 'sigmoid' or, of several classes, 'softmax'. "
            f"Received: {activation!r}. Load the encoder with `load_backbone`, and add the head in Keras."
        )
    dropout = {"dropout": arguments["dropout"]} if "dropout" in arguments else {}
    if num_classes > 1:
        problem = "multi_label_classification" if activation == "sigmoid" else "single_label_classification"
        return (TASKS["classifier"].trained(num_classes=num_classes, problem_type=problem, **dropout),)
    # Ours computes the sigmoid of one logit.
    return (TASKS["cross_encoder"].trained(**dropout),) if activation == "sigmoid" else one_output_heads(**dropout)


def _masked_lm(path: Path, arguments: Mapping[str, Any]) -> tuple[TrainedHead, ...]:
    check_known(path, arguments, ())
    return (TASKS["masked_lm"].trained(**MASKED_LM_HEAD),)


def _text_embedder(path: Path, arguments: Mapping[str, Any]) -> tuple[TrainedHead, ...]:
    check_known(path, arguments, ("pooling_mode", "normalize"))
    options = {"pooling": arguments.get("pooling_mode", "mean"), "normalize": arguments.get("normalize", True)}
    return TrainedHead("sentence_encoder", options), TrainedHead("dual_encoder", options)


_READERS: dict[str, Callable[[Path, Mapping[str, Any]], tuple[TrainedHead, ...]]] = {
    "BertClassifier": _text_classifier,  # the older name
    str(TASKS["classifier"].kerashub): _text_classifier,
    str(TASKS["masked_lm"].kerashub): _masked_lm,
    str(TASKS["sentence_encoder"].kerashub): _text_embedder,
}
CLASSES = tuple(_READERS)
