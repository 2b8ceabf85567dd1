"""`MixedColumns`: the vector of a text beside the encoded columns of its row.

Axes: B batch, H size of the text's vector, F encoded features.
"""

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Shape, Tensor
from keras_bert_layers.config import COLUMNS
from keras_bert_layers.preprocessing.preprocessors.long_texts import Windows

#: The size of the dense layer that reads a text's vector and columns together.
WIDTH = 64
# What is multiplied into columns, and into what the dense layer returns; and the deviation of its weights for columns,
# with the first factor.
_COLUMN_SCALE, _OUTPUT_SCALE, _DEVIATION = 50.0, 5.0, 0.1


class MixedColumns(keras.layers.Layer):
    """A text's vector, and after it a dense layer on that vector and the columns of the row together, in float32.

    Columns are multiplied by 50, and what the dense layer returns by 5, with weights that begin as much smaller. A step
    of Adam changes each weight by about the learning rate, so these weights learn as with a larger one. At the rates of
    an encoder, a new layer would take thousands of steps to find that a column matters.

    The dense layer gets its weights by `set_width`, which may be called long after the layer is in a model: how many
    features there are is known when the columns were adapted.

    Args:
        **kwargs: `name`.

    Call arguments:
        vector: float `[B, H]`.
        columns: float32 `[B, F]`.

    Returns:
        float32 `[B, H + 64]`.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(dtype="float32", **kwargs)
        self.units = keras.layers.Dense(WIDTH, activation="gelu", dtype="float32", name="units")

    def build(self, vector_shape: Shape, columns_shape: Shape) -> None:
        """Keeps the size of the text's vector, and creates the dense layer if the number of features is known."""
        self._size = int(vector_shape[-1] or 0)
        if columns_shape[-1] is not None:
            self.set_width(columns_shape[-1])

    def set_width(self, width: int) -> None:
        """Creates the dense layer for `width` encoded features."""
        self.units.build((None, self._size + width))
        rows = keras.random.normal((width, WIDTH), stddev=_DEVIATION / _COLUMN_SCALE)
        self.units.kernel.assign(ops.concatenate([self.units.kernel[: self._size], rows]))

    def call(self, vector: Tensor, columns: Tensor) -> Any:
        """Joins both; see the class."""
        if not self.units.built:
            rule, cure = "be adapted before the model is called", "Call `fit` on a table."
            raise ValueError(checks.message("BertClassifier", "columns", rule, checks.Shown("no weights"), cure))
        units = self.units(ops.concatenate([vector, _COLUMN_SCALE * columns], axis=-1))
        return ops.concatenate([vector, _OUTPUT_SCALE * units], axis=-1)

    def compute_output_spec(self, vector: Tensor, columns: Tensor) -> Any:
        """Shape and dtype of the output."""
        return keras.KerasTensor((vector.shape[0], self._size + WIDTH), dtype="float32")


def with_columns(head: Any, features: Any | None, long_texts: Any) -> tuple[Any, dict[str, Any]]:
    """A head on texts as one on texts and columns, and the input of the columns.

    Args:
        head: from a vector to outputs.
        features: the `RowFeatures`, which tell the width, now or when they are adapted; None without columns.
        long_texts: the rule for long texts, which may not be `Windows`.
    """
    if features is None:
        return head, {}
    if isinstance(long_texts, Windows):
        cure = 'Give `long_texts="head_tail"`, or leave it out.'
        rule = 'not be "windows" beside `columns`'
        raise ValueError(checks.message("BertClassifier", "long_texts", rule, long_texts, cure))
    given = keras.Input((features.width,), dtype="float32", name=COLUMNS)
    mix = MixedColumns(name="mixed_columns")
    features.follow = mix.set_width
    return (lambda vector: head(mix(vector, given))), {COLUMNS: given}
