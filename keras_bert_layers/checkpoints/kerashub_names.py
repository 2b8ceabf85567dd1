"""Where KerasHub's files hold which weight, and what in them is no weight of the model.

The table of weight names has the `path` of KerasHub's variables, as `pooled_dense/kernel`. Keras's files do not: they
have a layer's class and its number among the layers of that class, and a weight's number in its layer, as
`layers/dense/vars/0`. This module turns one into the other.
"""

from __future__ import annotations

from collections.abc import Iterable

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError

WEIGHTS = "model.weights.h5"
TASK_WEIGHTS = "task.weights.h5"

_DENSE = ("kernel", "bias")
_NORM = ("gamma", "beta")
_TABLE = ("embeddings",)

# Layer -> its place in the file, and its weights in the order of their numbers. keras_hub, models/bert/*.py and
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


def stored_places(num_layers: int) -> dict[str, str]:
    """The table's name of each weight -> its file and its place there.

    Args:
        num_layers: encoder blocks.

    Examples:
        >>> places = stored_places(2)
        >>> places["pooled_dense/bias"]
        'model.weights.h5/layers/dense/vars/1'
        >>> places["transformer_layer_1/self_attention_layer/query/kernel"]
        'model.weights.h5/layers/transformer_encoder_1/_self_attention_layer/query_dense/vars/0'
    """
    layers = {**_BACKBONE, **_HEADS}
    for index in range(num_layers):
        block = f"{WEIGHTS}/layers/transformer_encoder" + (f"_{index}" if index else "")
        for layer, (place, weights) in _BLOCK.items():
            layers[f"transformer_layer_{index}/{layer}"] = (f"{block}/{place}", weights)
    return {
        f"{layer}/{weight}": f"{place}/vars/{number}"
        for layer, (place, weights) in layers.items()
        for number, weight in enumerate(weights)
    }


def stored_names(stored: Iterable[str], *, num_layers: int, source: str) -> dict[str, str]:
    """The table's names for the tensors of the files.

    Older releases of Keras wrote some of a layer's attributes with a `_` before them and others without, and TensorFlow
    2.13 had another word for `layers`; Keras reads them all, and so does this.

    Args:
        stored: the tensors' names: file and place.
        num_layers: encoder blocks.
        source: what an error calls the checkpoint.

    Returns:
        Table name -> name in the files, in their order. A tensor that the table does not know keeps its own.

    Raises:
        CheckpointError: two tensors have the same table name.

    Examples:
        >>> stored_names(["model.weights.h5/layers/embedding/vars/0"], num_layers=1, source="bert")
        {'segment_embedding/embeddings': 'model.weights.h5/layers/embedding/vars/0'}
    """
    known = {_plain(place): name for name, place in stored_places(num_layers).items()}
    names: dict[str, str] = {}
    for place in stored:
        name = known.get(_plain(place), place)
        if name in names:
            raise CheckpointError(f"{source}: the tensors {names[name]!r} and {place!r} are the same weight.")
        names[name] = place
    return names


def ignored_reason(name: str) -> str | None:
    """Why a tensor that no row stands for may be left out; None if it may not.

    Args:
        name: the table's name, or the tensor's own where the table has none.

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
        return "the state of a generator of random numbers"
    return _HEAD_REASONS.get(name.partition("/")[0])


def _plain(place: str) -> str:
    """The place without what differs between releases of Keras."""
    parts = [part.removeprefix("_") for part in place.split("/")]
    return "/".join("layers" if part == "layer_checkpoint_dependencies" else part for part in parts)
