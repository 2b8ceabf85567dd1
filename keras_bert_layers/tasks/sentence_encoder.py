"""One vector a text, near where meanings are near."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.config import ACTIVATIONS
from keras_bert_layers.layers.activations import activation_function
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.metrics import SpearmanCorrelation
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks import _contrastive as contrastive
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._length_batches import LengthBatches
from keras_bert_layers.tasks._vector_task import VectorTask, pooled_vectors

SIMILARITY = "similarity"


@register
class BertSentenceEncoder(VectorTask):
    """Texts to vectors: the backbone's sequence output, pooled, and scaled to length 1.

    All texts go through the same weights. What it trains on is told by the data:

    - `x = (first, second)`, `y` a similarity for each pair, in [-1, 1]: the loss compares it with the cosine.
    - `x = (first, second)` and no `y`, pairs that mean the same: the loss is the cross entropy of each text's own
      partner among the partners of the whole batch, by the cosine over the temperature. A larger batch is a harder
      task. Texts that are equal byte for byte are never told apart.
    - `x = (anchors, positives, negatives)` and no `y`, triplets: the same, with the negatives of all rows among the
      partners. A row may have a list of negatives.
    - `x` texts, `y` vectors `(rows, vector_dim)`: the way a small model learns from a larger one.

    Args:
        backbone: a `BertBackbone`.
        pooling: `"mean"`, `"cls"` or `"max"` over the real tokens.
        normalize: whether vectors have Euclidean length 1, so that their dot product is the cosine.
        projection_dim: the width of a dense layer behind the pooling, which the vectors then have; None for none.
        projection_activation: the dense layer's activation, one of `config.ACTIVATIONS`.
        temperature: what cosines are divided by where pairs have no similarity.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text.
        name: the model's name.

    Returns:
        From a call on ids, and from `predict` on texts: float32 `(batch, vector_dim)`, as wide as the backbone or the
        projection. From `predict` on pairs, a tuple of two lists of texts or a dataset of such tuples: their cosine
        similarities, float32 `(rows,)`.

    Raises:
        TypeError: a backbone or a preprocessor that is none; a call on text; a dictionary; a generator to `fit`.
        ValueError: an unknown pooling; a similarity outside [-1, 1] (its row is named), or beside single texts or
            triplets.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"])
        >>> encoder = kbl.BertSentenceEncoder(kbl.BertBackbone(config), preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> encoder.predict(["cat", "dog cat"], verbose=0).shape
        (2, 8)
        >>> encoder.predict((["cat", "dog"], ["cat", "cat"]), verbose=0).shape
        (2,)
        >>> history = encoder.fit((["cat", "dog"], ["cat cat", "dog dog"]), verbose=0)
        >>> sorted(history.history)
        ['accuracy', 'loss']

    References:
        Reimers and Gurevych 2019, Sentence-BERT, arXiv:1908.10084, section 3; Henderson et al. 2017, arXiv:1705.00652,
        section 4.4.
    """

    def __init__(
        self,
        backbone: BertBackbone,
        pooling: str = "mean",
        *,
        normalize: bool = True,
        projection_dim: int | None = None,
        projection_activation: str = "tanh",
        temperature: float = 0.05,
        preprocessor: BertPreprocessor | None = None,
        name: str | None = None,
    ):
        self._check_parts(backbone, preprocessor)
        checks.boolean("BertSentenceEncoder", "normalize", normalize)
        checks.positive_number("BertSentenceEncoder", "temperature", temperature)
        projection = _projection(projection_dim, projection_activation, backbone)
        outputs = pooled_vectors(backbone, pooling, normalize, projection)
        super().__init__(backbone, preprocessor, outputs=outputs, name=name)
        self.pooling = pooling
        self.normalize = normalize
        self.projection_dim = projection_dim
        self.projection_activation = projection_activation
        self.temperature = temperature
        # Beside the compiled metrics, each for one kind of data.
        self._correlation = SpearmanCorrelation()
        self._accuracy = keras.metrics.SparseCategoricalAccuracy(name="accuracy")
        self._hidden_metrics: tuple[str, ...] = (self._correlation.name, self._accuracy.name)

    def _vector_dim(self) -> int:
        return self.projection_dim or super()._vector_dim()

    def default_loss(self) -> keras.losses.Loss:
        """Squared difference between the cosine of a pair and its similarity, or between two vectors.

        Pairs and triplets without similarities have their own loss, and train under no other that is compiled.
        """
        return keras.losses.MeanSquaredError()

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The mean distance between cosines and similarities, named `"mean_absolute_error"`.

        Besides, pairs with similarities report `"spearman_correlation"`. Pairs and triplets without report `"accuracy"`
        alone: the share of rows whose own partner ranks first among the partners of the batch.
        """
        return [keras.metrics.MeanAbsoluteError(name="mean_absolute_error")]

    def preprocess(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of text; a pair goes in as two single texts, one row after the other."""
        if not isinstance(x, tuple):
            self._check_targets(y)
            return super().preprocess(x, y, sample_weight)
        texts = contrastive.joined(x)  # [B, 2 or more]
        if y is None:
            y = {contrastive.TEXTS: contrastive.text_numbers(texts)}
        elif len(x) == 2:
            y = {SIMILARITY: tf.reshape(tf.cast(y, tf.float32), [-1, 1])}
        else:
            raise ValueError(checks.message("BertSentenceEncoder", "y", "be None beside triplets", type(y)))
        return super().preprocess(tf.reshape(texts, [-1]), y, sample_weight)

    def _check_targets(self, y: Any) -> None:
        """Refuses, beside single texts, anything but target vectors."""
        width = self._vector_dim()
        if y is not None and y.shape.rank is not None and (y.shape.rank, y.shape[-1]) != (2, width):
            rule = f"be target vectors `(batch, {width})` where texts are single"
            cure = (
                "Pairs are a tuple of two lists of texts, with similarities or without; in `validation_data` and "
                "from a dataset `((first, second), similarities)` or `((first, second),)`."
            )
            raise ValueError(checks.message("BertSentenceEncoder", "y", rule, tuple(y.shape), cure))

    def encode_labels(self, y: Any) -> Any:
        """Similarities as they are, checked row by row; target vectors unchecked."""
        if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype != object:
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
        """The compiled loss, on the cosines of pairs where the labels are similarities; without any, cross entropy."""
        kind = _kind(y)
        y, y_pred = self._compared(y, y_pred)
        if kind != contrastive.TEXTS:
            return super().compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
        if type(self.loss) is not keras.losses.MeanSquaredError:
            cure = 'Compile with loss="auto", or give similarities.'
            raise ValueError(
                checks.message("BertSentenceEncoder", "loss", 'be "auto" where pairs have no `y`', self.loss, cure)
            )
        cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return cross_entropy(y, y_pred, sample_weight) + sum(self.losses)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """The metrics for the kind of data that this is, on the same numbers as the loss."""
        kind = _kind(y)
        y, y_pred = self._compared(y, y_pred)
        if kind == contrastive.TEXTS:
            self._accuracy.update_state(y, y_pred)
            self._hidden_metrics = ("compile_metrics", self._correlation.name)
            return self.get_metrics_result()
        self._hidden_metrics = (self._accuracy.name, self._correlation.name)
        if kind == SIMILARITY:
            self._correlation.update_state(y, y_pred)
            self._hidden_metrics = (self._accuracy.name,)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def get_metrics_result(self) -> dict[str, Any]:
        """The results of the metrics for the kind of data that came last."""
        found: dict[str, Any] = {}
        for metric in self.metrics:
            if metric.name not in self._hidden_metrics:
                result = metric.result()
                found.update(result if isinstance(result, dict) else {metric.name: result})
        return found

    def _compared(self, y: Any, y_pred: Any) -> tuple[Any, Any]:
        """Labels and what they are compared with, float32.

        `(batch, 1)` similarities and cosines; `(batch,)` row numbers and `(batch, candidates)` logits; or target
        vectors and vectors as they are.
        """
        kind = _kind(y)
        if kind == SIMILARITY:
            return y[kind], _cosine(y_pred[0::2], y_pred[1::2])[:, None]
        if kind != contrastive.TEXTS:
            return y, y_pred
        num_texts = keras.ops.shape(y[kind])[1]  # a number that may differ from batch to batch
        by_row = keras.ops.reshape(_unit(y_pred), (-1, num_texts, y_pred.shape[-1]))  # [B, texts, H]
        by_column = keras.ops.reshape(keras.ops.transpose(by_row[:, 1:], (1, 0, 2)), (-1, y_pred.shape[-1]))  # [C, H]
        logits = contrastive.in_batch_logits(by_row[:, 0], by_column, temperature=self.temperature, texts=y[kind])
        return contrastive.row_numbers(logits), logits

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Vectors `(rows, vector_dim)` of texts; of pairs, the cosines `(rows,)`; arguments as of all tasks."""
        self._refuse_negatives(x)
        return super().predict(x, *args, **kwargs)

    def predict_on_batch(self, x: Any) -> Any:
        """The vectors of one batch of texts, or the cosines of one batch of pairs."""
        self._refuse_negatives(x)
        return self._answers(x, super().predict_on_batch(x))

    def _block_outputs(self, columns: Any, batches: LengthBatches) -> np.ndarray:
        self._refuse_negatives(columns)
        return self._answers(columns, super()._block_outputs(columns, batches))

    def _no_outputs(self, x: Any) -> np.ndarray:
        return self._answers(x, super()._no_outputs(x))

    def _require_labels(self, x: Any, y: Any) -> None:
        if not text_data.is_pair(x):
            super()._require_labels(x, y)

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
        config.update(pooling=self.pooling, normalize=self.normalize, temperature=self.temperature)
        config.update(projection_dim=self.projection_dim, projection_activation=self.projection_activation)
        return config


def _kind(y: Any) -> str | None:
    """The key of what labels there are for pairs; None for target vectors."""
    return next(iter(y)) if isinstance(y, dict) else None


def _unit(rows: Any) -> Any:
    """Each row scaled to length 1; 0 where it is 0."""
    library = np if isinstance(rows, np.ndarray) else keras.ops
    return rows / library.sqrt(library.maximum(library.sum(rows * rows, axis=-1, keepdims=True), 1e-24))


def _cosine(first: Any, second: Any) -> Any:
    """The cosine of each pair of rows; 0 where a vector is 0."""
    library = np if isinstance(first, np.ndarray) else keras.ops
    return library.sum(_unit(first) * _unit(second), axis=-1)


def _projection(width: int | None, activation: str, backbone: BertBackbone) -> Any:
    """The dense layer behind the pooling, in float32 as the vectors; None for none."""
    owner = "BertSentenceEncoder"
    checks.one_of(owner, "projection_activation", activation, ACTIVATIONS)
    if width is None:
        return None
    return keras.layers.Dense(
        checks.positive_integer(owner, "projection_dim", width),
        activation=activation_function(owner, activation),
        kernel_initializer=truncated_normal(backbone.config.initializer_range),
        dtype="float32",
        name="dense_projection",
    )
