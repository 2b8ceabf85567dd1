"""One vector a text, near where meanings are near."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import SequencePooling
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._text_task import TextTask

SIMILARITY = "similarity"


@register
class BertSentenceEncoder(TextTask):
    """Texts to vectors: the backbone's sequence output, pooled, and scaled to length 1.

    It trains on pairs of texts with a similarity, and then both texts go through the same weights and the loss compares
    the cosine of their vectors with the given number. It trains on single texts with target vectors too, the way
    a small model learns from a larger one.

    Args:
        backbone: a `BertBackbone`.
        pooling: `"mean"`, `"cls"` or `"max"` over the real tokens.
        normalize: whether vectors have Euclidean length 1, so that their dot product is the cosine.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text.
        name: the model's name.

    Returns:
        From a call on ids, and from `predict` on texts: float32 `(batch, hidden_dim)`. From `predict` on pairs, a tuple
        of two lists of texts or a dataset of such tuples: their cosine similarities, float32 `(rows,)`.

    Raises:
        TypeError: a backbone or a preprocessor that is none; a call on text; text in a generator or a dictionary.
        ValueError: an unknown pooling; a similarity outside [-1, 1] (its row is named), or beside single texts.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"])
        >>> encoder = kbl.BertSentenceEncoder(kbl.BertBackbone(config), preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> encoder.predict(["cat", "dog cat"], verbose=0).shape
        (2, 8)
        >>> encoder.predict((["cat", "dog"], ["cat", "cat"]), verbose=0).shape
        (2,)

    References:
        Reimers and Gurevych 2019, Sentence-BERT, arXiv:1908.10084, section 3.
    """

    output_name = "embedding"

    def __init__(
        self,
        backbone: BertBackbone,
        pooling: str = "mean",
        *,
        normalize: bool = True,
        preprocessor: BertPreprocessor | None = None,
        name: str | None = None,
    ):
        self._check_parts(backbone, preprocessor)
        checks.boolean("BertSentenceEncoder", "normalize", normalize)
        pool = SequencePooling(pooling, dtype=backbone.dtype_policy, name="pooling")
        inputs = backbone.input
        outputs = pool(backbone(inputs)["sequence_output"], padding_mask=inputs["padding_mask"])
        if normalize:
            outputs = keras.layers.UnitNormalization(axis=-1, dtype="float32", name="normalize")(outputs)
        else:
            outputs = keras.layers.Activation("linear", dtype="float32", name="as_float32")(outputs)
        super().__init__(backbone, preprocessor, outputs=outputs, name=name)
        self.pooling = pooling
        self.normalize = normalize

    @property
    def trainable_weights(self) -> list[Any]:
        """The weights that training changes: not the backbone's pooler, which no vector passes through."""
        unused = {id(weight) for weight in self.backbone.get_layer("pooler").weights}
        return [weight for weight in super().trainable_weights if id(weight) not in unused]

    @property
    def trainable_variables(self) -> list[Any]:
        """The same as `trainable_weights`; the layers hold no other trainable variables."""
        return self.trainable_weights

    def default_loss(self) -> keras.losses.Loss:
        """Squared difference between the cosine of a pair and its similarity (or between two vectors)."""
        return keras.losses.MeanSquaredError()

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The mean distance between cosines and similarities, named `"mean_absolute_error"`."""
        return [keras.metrics.MeanAbsoluteError(name="mean_absolute_error")]

    def preprocess(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of text; a pair goes in as two single texts, one row after the other."""
        if not isinstance(x, tuple):
            self._check_targets(y)
            return super().preprocess(x, y, sample_weight)
        if y is not None:
            y = {SIMILARITY: tf.cast(y, tf.float32)}
        return super().preprocess(tf.reshape(tf.stack(x, axis=1), [-1]), y, sample_weight)

    def _check_targets(self, y: Any) -> None:
        """Refuses, beside single texts, anything but target vectors."""
        hidden_dim = self.backbone.config.hidden_dim
        if y is not None and y.shape.rank is not None and (y.shape.rank, y.shape[-1]) != (2, hidden_dim):
            rule = f"be target vectors `(batch, {hidden_dim})` where texts are single"
            cure = "To train on similarities, give a tuple of two lists of texts."
            raise ValueError(checks.message("BertSentenceEncoder", "y", rule, tuple(y.shape), cure))

    def encode_labels(self, y: Any) -> Any:
        """Similarities as they are, checked row by row; target vectors unchecked."""
        if isinstance(y, np.ndarray) and y.ndim == 1:
            y = y.astype(np.float32)
            wrong = ~(np.abs(y) <= 1)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(
                    "`BertSentenceEncoder`: every similarity must be in [-1, 1], the range of a cosine. "
                    f"Received: {y[row]} in row {row}. Scale the scores first: divide by 5 if they run from 0 to 5."
                )
        return y

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The compiled loss, on the cosines of pairs where the labels are similarities."""
        y, y_pred = _compared(y, y_pred)
        return super().compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """The compiled metrics, on the same numbers as the loss."""
        y, y_pred = _compared(y, y_pred)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def predict(self, x: Any, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Vectors `(rows, hidden_dim)` of texts; of pairs, in a tuple or from a dataset, the cosines `(rows,)`."""
        return self._answers(x, super().predict(x, batch_size, **kwargs))

    def predict_on_batch(self, x: Any) -> Any:
        """The vectors of one batch of texts, or the cosines of one batch of pairs."""
        return self._answers(x, super().predict_on_batch(x))

    def _answers(self, x: Any, vectors: Any) -> Any:
        """Vectors as they are, or the cosines of the pairs that they were made of."""
        if not self._needs_preprocessing(x) or not text_data.is_pair(x):
            return vectors
        return _cosine(vectors[0::2], vectors[1::2])

    def _serve(self, *texts: Any) -> dict[str, Any]:
        """Strings to `embedding`."""
        return self._serve_ids(**self._serve_tokens(*texts))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = super().get_config()
        config.update(pooling=self.pooling, normalize=self.normalize)
        return config


def _compared(y: Any, y_pred: Any) -> tuple[Any, Any]:
    """Labels and what they are compared with: `(batch,)` similarities and cosines, or vectors as they are."""
    if not isinstance(y, dict):
        return y, y_pred
    return y[SIMILARITY], _cosine(y_pred[0::2], y_pred[1::2])  # [B, H] each


def _cosine(first: Any, second: Any) -> Any:
    """The cosine of each pair of rows; 0 where a vector is 0."""
    library = np if isinstance(first, np.ndarray) else keras.ops
    dots = library.sum(first * second, axis=-1)
    lengths = library.sqrt(library.sum(first * first, axis=-1) * library.sum(second * second, axis=-1))
    return dots / library.maximum(lengths, 1e-12)
