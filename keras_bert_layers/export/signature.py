"""Signatures of a SavedModel, the bound on the bytes of a text that they read, and the texts of an ONNX file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Strings

# Some 15,000 English words. Docs: "Long texts" of the guide "Export and serve".
DEFAULT_MAX_BYTES = 100_000

#: The output of a bounded signature: how many bytes of a row's texts were not read.
BYTES_CUT = "bytes_cut"

# Long enough to hold any character and the three bytes before it.
_LEAST = 16

_LONGEST_CHARACTER = 4

# The inputs of every task, in the order in which a user writes them; a SavedModel does not keep it.
TEXT_INPUTS = ("text", "query", "question", "prompt", "text_pair", "context", "choices")


@dataclass(frozen=True)
class Signature:
    """A signature of a SavedModel: a function that clients can call by name.

    Args:
        name: what clients call it by, e.g. `"serving_default"`.
        function: takes the tensors of `inputs` in order, and returns a dictionary of tensors, batch first.
        inputs: name -> `(shape, dtype)`, e.g. `{"text": ((None,), "string")}`.
        tables: TensorFlow's lookup tables that the function reads, such as those of Keras's `StringLookup`.
    """

    name: str
    function: Callable[..., dict[str, Any]]
    inputs: dict[str, tuple[tuple[int | None, ...], str]]
    tables: tuple[Any, ...] = ()


def input_name(column: str) -> str:
    """The name that the input for a column beside a text has in a signature.

    Examples:
        >>> input_name("unit price")
        'unit_price'
    """
    return re.sub(r"\W|^(?=[\d_])", "_", column, flags=re.ASCII).lstrip("_")


def strings_for_onnx(column: Sequence[Any]) -> np.ndarray:
    """Strings as `[rows]`, or rows of strings as `[rows, columns]`, filled up with `""`, for ONNX Runtime.

    It ends a string at NUL, in whose place it gets DEL: BERT drops both, and each is one byte, so offsets stay.

    Examples:
        >>> strings_for_onnx([["a"], ["b", "c"]]).tolist()
        [['a', ''], ['b', 'c']]
    """
    if not isinstance(column[0], str):
        width = max(map(len, column))
        column = [[*row, *[""] * (width - len(row))] for row in column]
    return np.vectorize(lambda text: text.replace("\0", "\x7f"), otypes=[object])(np.array(column, object))


def check_max_bytes(owner: str, max_bytes: object) -> int | None:
    """`max_bytes` if it is None or an integer of at least 16; TypeError or ValueError otherwise."""
    return None if max_bytes is None else checks.integer(owner, "max_bytes", max_bytes, smallest=_LEAST)


def with_bound(signature: Signature, max_bytes: int | None) -> Signature:
    """A signature that reads `max_bytes` of each text, and returns how many bytes of a row it did not read.

    Args:
        signature: of any inputs.
        max_bytes: at least 16, or None.

    Returns:
        The same signature if `max_bytes` is None, or if it takes no texts. Otherwise one with the further output
        `"bytes_cut"`, int32 `(batch,)`: the sum over the texts of a row, 0 if all of them were read. A signature that
        returns `"token_ids"` has no further output.
    """
    kinds = [dtype for _, dtype in signature.inputs.values()]
    if max_bytes is None or "string" not in kinds:
        return signature

    def serve(*inputs: Any) -> dict[str, Any]:
        bounded = [
            bounded_texts(tensor, max_bytes) if kind == "string" else tensor
            for tensor, kind in zip(inputs, kinds, strict=True)
        ]
        cut = [_bytes_cut(given, read) for given, read in zip(inputs, bounded, strict=True) if read is not given]
        outputs = signature.function(*bounded)
        # The outputs of `tokenize` are the inputs of `token_ids`, which takes no others.
        return outputs if "token_ids" in outputs else {**outputs, BYTES_CUT: tf.add_n(cut)}

    return replace(signature, function=serve)


def _bytes_cut(texts: tf.Tensor, bounded: tf.Tensor) -> tf.Tensor:
    """The number of bytes cut from each row, int32 `[B]`, for texts `[B]` or `[B, ...]`."""
    cut = tf.strings.length(texts) - tf.strings.length(bounded)
    return tf.reduce_sum(cut, axis=list(range(1, cut.shape.rank)))


def bounded_texts(texts: Strings, max_bytes: int) -> tf.Tensor:
    """Cuts texts after the last whole character within their first `max_bytes` bytes, in the graph.

    Args:
        texts: strings of any shape.
        max_bytes: at least 16.

    Returns:
        Strings of the same shape.
    """
    sizes = tf.strings.length(texts)
    indices = tf.where(sizes > max_bytes)
    first = max_bytes + 1 - _LONGEST_CHARACTER
    # The four bytes up to the one after the cut: continuation bytes are cut together with their first byte.
    ends = tf.strings.substr(tf.gather_nd(texts, indices), first, _LONGEST_CHARACTER)
    ends = tf.reshape(tf.io.decode_raw(ends, tf.uint8), [-1, _LONGEST_CHARACTER])
    continues = tf.cast(tf.bitwise.bitwise_and(ends, 0xC0) == 0x80, tf.int32)
    num_cut = tf.reduce_sum(tf.math.cumprod(continues, axis=-1, reverse=True), axis=-1)
    num_cut = tf.where(num_cut == _LONGEST_CHARACTER, 0, num_cut)  # no character is that long: not UTF-8
    sizes = tf.tensor_scatter_nd_update(sizes, indices, max_bytes - num_cut)
    return tf.strings.substr(texts, tf.zeros_like(sizes), sizes)
