"""Batching by a server: every tensor has a batch axis, and rows that a server has padded are refused."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor


def check_batches(saved: Any) -> None:
    """Checks that every tensor of every signature has a batch of any size as its first axis.

    Args:
        saved: a `SavedModel` message.

    Raises:
        ValueError: a tensor does not.
    """
    for meta_graph in saved.meta_graphs:
        for name, signature in sorted(meta_graph.signature_def.items()):
            if name.startswith("__"):  # TensorFlow's own
                continue
            for kind, tensors in (("input", signature.inputs), ("output", signature.outputs)):
                for key, tensor in sorted(tensors.items()):
                    _check_tensor(name, f"{kind} {key!r}", tensor.tensor_shape)


def _check_tensor(signature: str, tensor: str, shape: Any) -> None:
    sizes = None if shape.unknown_rank else tuple(None if dim.size < 0 else dim.size for dim in shape.dim)
    if sizes is None or not sizes or sizes[0] is not None:
        raise ValueError(
            f"`export`: every tensor of a signature must have a batch of any size as its first axis. "
            f"Received: shape={sizes} of the {tensor} of the signature {signature!r}. "
            "Servers batch the requests of several clients along that axis, and split the answers."
        )


def refuse_foreign_padding(owner: str, token_ids: Tensor, padding_mask: Tensor) -> Any:
    """Returns token ids unchanged, or raises an InvalidArgumentError in the graph if a server has padded them.

    With `pad_variable_length_inputs` TensorFlow Serving pads each tensor with its first element: the padding mask
    with 1, the ids with [CLS]. The model would read such padding as text, and its answers would be wrong. A row of BERT
    never ends in the token that it begins with. A row that repeats one token passes, since benchmarks send such rows; a
    choice that does so is refused, since all of it may be padding.

    Args:
        owner: the task's class, for the error.
        token_ids: int `(..., sequence)`.
        padding_mask: int `(..., sequence)`.
    """
    given, token_ids, padding_mask = token_ids, tf.convert_to_tensor(token_ids), tf.convert_to_tensor(padding_mask)
    is_padded = (token_ids[..., -1:] == token_ids[..., :1]) & (padding_mask[..., -1:] == 1)
    if token_ids.shape.rank == 2:
        is_padded &= tf.reduce_any(token_ids != token_ids[..., :1], axis=-1, keepdims=True)
    else:
        is_padded &= tf.shape(token_ids)[-1] > 1
    rule = (
        f"`{owner}`: no row of `token_ids` must end in the token that it begins with where `padding_mask` is 1. Such "
        "rows come from a server that batches with `pad_variable_length_inputs`; send texts instead, or ids that "
        "are padded to one length, with a mask of 0."
    )
    known = tf.debugging.Assert(~tf.reduce_any(is_padded), [rule])
    if known is None:  # outside a graph
        return given
    with tf.control_dependencies([known]):
        return tf.identity(token_ids)
