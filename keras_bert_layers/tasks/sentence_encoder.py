"""Sentence embeddings: one vector a text, close for texts of similar meaning."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.config import ACTIVATIONS
from keras_bert_layers.layers.activations import activation_function
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.metrics import SpearmanCorrelation
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks import _contrastive as contrastive
from keras_bert_layers.tasks._parts import check_parts
from keras_bert_layers.tasks._vectors import pooled_vectors
from keras_bert_layers.tasks.inputs import ComparedInputs
from keras_bert_layers.tasks.inputs.compared import SIMILARITY
from keras_bert_layers.tasks.task import Task


@register
class BertSentenceEncoder(Task):
    """Encodes texts as vectors (sentence embeddings): the sequence output, pooled and scaled to length 1.

    All texts go through the same weights. The data decide what it trains on:

    - `x = (first, second)`, `y` a similarity for each pair, in [-1, 1]: the loss compares it with the cosine.
    - `x = (first, second)` without `y`, pairs that mean the same: the loss is the cross entropy of each text's own
      partner among the partners of the whole batch, with cosines divided by the temperature as logits. A larger batch
      is a harder task. Texts that are equal byte for byte are never negatives of each other.
    - `x = (anchors, positives, negatives)` without `y`, triplets: the same, with the negatives of all rows among the
      partners. A row may have a list of negatives.
    - `x` texts, `y` vectors `(rows, vector_dim)`: a small model learns from a larger one.

    Args:
        backbone: a `BertBackbone`.
        pooling: `"mean"`, `"cls"` or `"max"` over the real tokens.
        normalize: whether vectors have Euclidean length 1, so that their dot product is the cosine.
        projection_dim: the width of a dense layer after the pooling, and so of the vectors; None for no such layer.
        projection_activation: the dense layer's activation, one of `config.ACTIVATIONS`.
        temperature: divides the cosines in the loss of pairs without similarities.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text.
        name: the model's name.

    Returns:
        A call on ids and `predict` on texts return float32 `(batch, vector_dim)`, as wide as the backbone or the
        projection. `predict` on pairs, a tuple of two lists of texts or a dataset of such tuples, returns their cosine
        similarities, float32 `(rows,)`.

    Raises:
        TypeError: a backbone or a preprocessor of another type; a call on text; a dictionary; a generator to `fit`.
        ValueError: an unknown pooling; a similarity outside [-1, 1] (the message names its row), or beside single
            texts or triplets.

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

    output_name = "embedding"
    reads_pooled_output = False

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
        check_parts("BertSentenceEncoder", backbone, preprocessor)
        checks.boolean("BertSentenceEncoder", "normalize", normalize)
        checks.positive_number("BertSentenceEncoder", "temperature", temperature)
        projection = _projection(projection_dim, projection_activation, backbone)
        outputs = pooled_vectors(backbone, pooling, normalize, projection)
        data = ComparedInputs("BertSentenceEncoder", preprocessor, outputs.shape[-1])
        super().__init__(backbone, data, outputs=outputs, name=name)
        self.pooling = pooling
        self.normalize = normalize
        self.projection_dim = projection_dim
        self.projection_activation = projection_activation
        self.temperature = temperature
        # Beside the compiled metrics; each is for one kind of data.
        self._correlation = SpearmanCorrelation()
        self._accuracy = keras.metrics.SparseCategoricalAccuracy(name="accuracy")
        self._hidden_metrics: tuple[str, ...] = (self._correlation.name, self._accuracy.name)
        self.compile()

    def default_loss(self) -> keras.losses.Loss:
        """The squared difference between the cosine of a pair and its similarity, or between two vectors.

        Pairs and triplets without similarities have their own loss, and need this default to be compiled.
        """
        return keras.losses.MeanSquaredError()

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The mean absolute difference of cosines and similarities, named `"mean_absolute_error"`.

        Pairs with similarities report `"spearman_correlation"` too. Pairs and triplets without similarities report only
        `"accuracy"`: the share of rows whose own partner ranks first among the partners of the batch.
        """
        return [keras.metrics.MeanAbsoluteError(name="mean_absolute_error")]

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The compiled loss, on cosines if the labels are similarities; cross entropy for pairs without labels."""
        kind, y, y_pred = self._compared(y, y_pred)
        if kind != contrastive.TEXTS:
            return super().compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
        if type(self.loss) is not keras.losses.MeanSquaredError:
            cure = 'Compile with loss="auto", or give similarities.'
            rule = 'be "auto" where pairs have no `y`'
            raise ValueError(checks.message("BertSentenceEncoder", "loss", rule, self.loss, cure))
        cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return cross_entropy(y, y_pred, sample_weight) + sum(self.losses)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """The metrics for this kind of data, on the same values as the loss."""
        kind, y, y_pred = self._compared(y, y_pred)
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
        """The results of the metrics for the kind of data of the last batch."""
        found: dict[str, Any] = {}
        for metric in self.metrics:
            if metric.name not in self._hidden_metrics:
                result = metric.result()
                found.update(result if isinstance(result, dict) else {metric.name: result})
        return found

    def _compared(self, y: Any, y_pred: Any) -> tuple[str | None, Any, Any]:
        """The kind of the labels, the labels, and the values to compare them with, float32.

        The kind is the key of the labels of pairs, and None for target vectors.

        Similarities and cosines `(batch, 1)`; row indices `(batch,)` and logits `(batch, candidates)`; or target
        vectors and vectors.
        """
        kind = next(iter(y)) if isinstance(y, dict) else None
        if kind == SIMILARITY:
            return kind, y[kind], contrastive.cosine(y_pred[0::2], y_pred[1::2])[:, None]
        if kind != contrastive.TEXTS:
            return kind, y, y_pred
        num_texts = keras.ops.shape(y[kind])[1]  # may differ from batch to batch
        by_row = keras.ops.reshape(contrastive.unit(y_pred), (-1, num_texts, y_pred.shape[-1]))  # [B, texts, H]
        by_column = keras.ops.reshape(keras.ops.transpose(by_row[:, 1:], (1, 0, 2)), (-1, y_pred.shape[-1]))  # [C, H]
        logits = contrastive.in_batch_logits(by_row[:, 0], by_column, temperature=self.temperature, texts=y[kind])
        return kind, contrastive.row_indices(logits), logits

    def serve(self, *texts: Any) -> dict[str, Any]:
        """Strings to `embedding`."""
        return {self.output_name: self.run(self.data.tokens(*texts))}


def _projection(width: int | None, activation: str, backbone: BertBackbone) -> Any:
    """The dense layer after the pooling, in float32 like the vectors; None without a width."""
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
