"""The names of KerasHub's weights in Keras's files, and the tensors that may be ignored.

The table of weight names has the `path` of KerasHub's variables, such as `pooled_dense/kernel`. Keras's files have a
layer's class, its index among the layers of that class, and a weight's index in its layer, such as
`layers/dense/vars/0`. This module converts between the two.
"""

from __future__ import annotations

import functools

WEIGHTS = "model.weights.h5"
TASK_WEIGHTS = "task.weights.h5"

_DENSE = ("kernel", "bias")
_NORM = ("gamma", "beta")
_TABLE = ("embeddings",)

# Layer -> its path in the file, and its weights in the order of their indices. keras_hub, models/bert/*.py and
# layers/modeling/*.py, with what `_save_state` of keras, src/saving/saving_lib.py, makes of them.
_BACKBONE = {
    "token_embedding": (f"{WEIGHTS}/layers/reversible_embedding", _TABLE),
    "position_embedding": (f"{WEIGHTS}/layers/position_embedding", _TABLE),
    "segment_embedding": (f"{WEIGHTS}/layers/embedding", _TABLE),
    "embeddings_layer_norm": (f"{WEIGHTS}/layers/layer_normalization", _NORM),
    "pooled_dense": (f"{WEIGHTS}/layers/dense", _DENSE),
}
_BLOCK = {
    "self_attention_layer/query": ("_self_attention_layer/query_dense", _DENSE),
    "self_attention_layer/key": ("_self_attention_layer/key_dense", _DENSE),
    "self_attention_layer/value": ("_self_attention_layer/value_dense", _DENSE),
    "self_attention_layer/attention_output": ("_self_attention_layer/output_dense", _DENSE),
    "self_attention_layer_norm": ("_self_attention_layer_norm", _NORM),
    "feedforward_intermediate_dense": ("_feedforward_intermediate_dense", _DENSE),
    "feedforward_output_dense": ("_feedforward_output_dense", _DENSE),
    "feedforward_layer_norm": ("_feedforward_layer_norm", _NORM),
}
_HEADS = {
    "logits": (f"{TASK_WEIGHTS}/layers/dense", _DENSE),
    "mlm_head": (f"{TASK_WEIGHTS}/layers/masked_lm_head", ("output_bias",)),
    "mlm_head/intermediate_dense": (f"{TASK_WEIGHTS}/layers/masked_lm_head/_intermediate_dense", _DENSE),
    "mlm_head/intermediate_layer_norm": (f"{TASK_WEIGHTS}/layers/masked_lm_head/_intermediate_layer_norm", _NORM),
}

_HEAD_REASONS = {"logits": "a classification head", "mlm_head": "a masked language model's head"}


def stored_paths(num_layers: int) -> dict[str, str]:
    """The table's name of each weight -> its file and its path there.

    Args:
        num_layers: the number of encoder blocks.

    Examples:
        >>> paths = stored_paths(2)
        >>> paths["pooled_dense/bias"]
        'model.weights.h5/layers/dense/vars/1'
        >>> paths["transformer_layer_1/self_attention_layer/query/kernel"]
        'model.weights.h5/layers/transformer_encoder_1/_self_attention_layer/query_dense/vars/0'
    """
    layers = {**_BACKBONE, **_HEADS}
    for index in range(num_layers):
        block = f"{WEIGHTS}/layers/transformer_encoder" + (f"_{index}" if index else "")
        for layer, (path, weights) in _BLOCK.items():
            layers[f"transformer_layer_{index}/{layer}"] = (f"{block}/{path}", weights)
    return {
        f"{layer}/{weight}": f"{path}/vars/{number}"
        for layer, (path, weights) in layers.items()
        for number, weight in enumerate(weights)
    }


def table_name(path: str, *, num_layers: int) -> str:
    """The table's name for a tensor of the files; its own if it is not in the table.

    Older releases of Keras wrote some of a layer's attributes with a `_` before their names and others without, and
    TensorFlow 2.13 had another name for `layers`. Keras reads them all, and so does this function.

    Args:
        path: the tensor's name: file and path.
        num_layers: the number of encoder blocks.

    Examples:
        >>> table_name("model.weights.h5/layers/embedding/vars/0", num_layers=1)
        'segment_embedding/embeddings'
    """
    return _table_names(num_layers).get(_plain(path), path)


@functools.lru_cache
def _table_names(num_layers: int) -> dict[str, str]:
    return {_plain(path): name for name, path in stored_paths(num_layers).items()}


def ignored_reason(name: str) -> str | None:
    """Why a tensor without a row may be ignored; None if it may not.

    Args:
        name: the table's name, or the tensor's own if it is not in the table.

    Examples:
        >>> ignored_reason("logits/kernel")
        'a classification head'
        >>> ignored_reason("task.weights.h5/optimizer/vars/3")
        "the optimizer's state"
        >>> ignored_reason("model.weights.h5/layers/dense_1/vars/0") is None
        True
    """
    if name.startswith(f"{TASK_WEIGHTS}/optimizer/"):
        return "the optimizer's state"
    if "/seed_generator" in name:
        return "the state of a random number generator"
    return _HEAD_REASONS.get(name.partition("/")[0])


def _plain(path: str) -> str:
    """The path without the differences between releases of Keras."""
    parts = [part.removeprefix("_") for part in path.split("/")]
    return "/".join("layers" if part == "layer_checkpoint_dependencies" else part for part in parts)
