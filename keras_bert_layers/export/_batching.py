"""What a server needs to put the requests of several clients into one batch, and to take the answers apart again."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal.lazy import tf


def check_batches(saved: Any) -> None:
    """Refuses signatures whose requests a server could not put together; ValueError names the tensor.

    Args:
        saved: a `SavedModel` message.
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
            "Servers put the requests of several clients into one batch along that axis, and take the answers apart."
        )


def refuse_foreign_padding(owner: str, token_ids: Any, padding_mask: Any) -> Any:
    """Token ids as they are, if no server has padded them; an InvalidArgumentError in graph otherwise.

    TensorFlow Serving, told to `pad_variable_length_inputs`, fills up what is shorter with the first element of each
    tensor: the padding mask with 1, the ids with [CLS]. What is padded so reads like text, and gives wrong answers. A
    row of BERT's never ends in the token that it begins with. A row of one token over and over is let through, as it is
    no text but what somebody measures with; a choice is not, as a whole one may be padding.

    Args:
        owner: the task's class, for the error.
        token_ids: int `(..., sequence)`.
        padding_mask: of that shape.
    """
    given, token_ids, padding_mask = token_ids, tf.convert_to_tensor(token_ids), tf.convert_to_tensor(padding_mask)
    is_padded = (token_ids[..., -1:] == token_ids[..., :1]) & (padding_mask[..., -1:] == 1)
    if token_ids.shape.rank == 2:
        is_padded &= tf.reduce_any(token_ids != token_ids[..., :1], axis=-1, keepdims=True)
    else:
        is_padded &= tf.shape(token_ids)[-1] > 1
    rule = (
        f"`{owner}`: no row of `token_ids` must end in the token that it begins with where `padding_mask` is 1. Such "
        "rows come of a server that batches with `pad_variable_length_inputs`; send texts instead, or ids that are "
        "padded to one length, with a mask of 0."
    )
    known = tf.debugging.Assert(~tf.reduce_any(is_padded), [rule])
    if known is None:  # computed already, as outside a graph
        return given
    with tf.control_dependencies([known]):
        return tf.identity(token_ids)
