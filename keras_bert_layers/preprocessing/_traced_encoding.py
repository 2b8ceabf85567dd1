"""`TracedEncoding`: an encoding of texts that is traced once."""

from __future__ import annotations

import functools
from collections.abc import Callable

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing._tokens import Tokens


class TracedEncoding:
    """Encodes texts in functions of their own, so that each is traced once, however often and wherever it is called.

    Args:
        encode: maps texts `[B]` and `with_offsets` to tokens.
    """

    def __init__(self, encode: Callable[..., Tokens]):
        signature = [tf.TensorSpec([None], tf.string)]
        self._functions = {
            with_offsets: tf.function(
                functools.partial(encode, with_offsets=with_offsets), input_signature=signature, autograph=False
            )
            for with_offsets in (False, True)
        }

    def __call__(self, texts: tf.Tensor, *, with_offsets: bool) -> Tokens:
        """The tokens of texts `[B]`; their starts and ends are valid only `with_offsets`."""
        tokens = self._functions[with_offsets](texts)
        num_texts = texts.shape[0]
        tokens.row_splits.set_shape([None if num_texts is None else num_texts + 1])
        return tokens
