"""Classes for texts and for pairs of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.decoding import decode_labels
from keras_bert_layers.layers import ClassificationHead
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._task import TEXT
from keras_bert_layers.tasks._text_task import TextTask


@register
class BertClassifier(TextTask):
    """One class a text: the pooled first token through dropout and a dense layer.

    Args:
        backbone: a `BertBackbone`.
        num_classes: how many classes there are, at least 2; may be left out where `class_names` are given.
        class_names: one name a class. Labels may then be names, and the exported model answers with them. Without, the
            names are `"0"`, `"1"` and so on, and labels are integers.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text.
        dropout: the share of pooled features dropped in training before the dense layer; the backbone's if None.
        pairs: whether a row is a pair of texts. None finds it out at the first `fit`; the exported model takes `text`
            and `text_pair` where it is true.
        name: the model's name.

    Returns:
        From a call on ids, and from `predict`: float32 logits `(batch, classes)`.

    Raises:
        TypeError: a backbone or a preprocessor that is none; a call on text; text in a generator or a dictionary.
        ValueError: an argument out of range; names that repeat, or not one for each class; a label that is none of
            them (its row is named); single texts for a model of pairs, and the other way round.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "bad", "good", "film"])
        >>> preprocessor = kbl.BertPreprocessor(tokenizer)
        >>> classifier = kbl.BertClassifier(
        ...     kbl.BertBackbone(config), class_names=["negative", "positive"], preprocessor=preprocessor
        ... )
        >>> history = classifier.fit(["good film", "bad film"], ["positive", "negative"], verbose=0)
        >>> classifier.predict(["a good film"], verbose=0).shape
        (1, 2)

    References:
        Devlin et al. 2018, arXiv:1810.04805, section 4.1; `create_model` in google-research/bert `run_classifier.py`.
    """

    def __init__(
        self,
        backbone: BertBackbone,
        num_classes: int | None = None,
        *,
        class_names: Sequence[str] | None = None,
        preprocessor: BertPreprocessor | None = None,
        dropout: float | None = None,
        pairs: bool | None = None,
        name: str | None = None,
    ):
        self._check_parts(backbone, preprocessor)
        if num_classes is None and class_names is not None:
            num_classes = len(class_names)
        num_classes = checks.positive_integer("BertClassifier", "num_classes", num_classes)
        if num_classes < 2:
            raise ValueError(checks.message("BertClassifier", "num_classes", "be at least 2", num_classes))
        if pairs is not None:
            checks.boolean("BertClassifier", "pairs", pairs)
        self._check_names(class_names, num_classes)
        dropout = backbone.config.dropout if dropout is None else dropout
        head = ClassificationHead(
            num_classes,
            dropout=dropout,
            initializer_range=backbone.config.initializer_range,
            dtype=backbone.dtype_policy,
            name="classification_head",
        )
        outputs = head(backbone(backbone.input)["pooled_output"])
        super().__init__(backbone, preprocessor, outputs=outputs, name=name)
        self.num_classes = num_classes
        self.class_names = None if class_names is None else list(class_names)
        self.dropout = dropout
        self.pairs = pairs

    @staticmethod
    def _check_names(class_names: Sequence[str] | None, num_classes: int) -> None:
        if class_names is None:
            return
        if len(class_names) != num_classes or len(set(class_names)) != num_classes:
            rule = f"hold {num_classes} different names, one for each class"
            raise ValueError(checks.message("BertClassifier", "class_names", rule, list(class_names)))
        if not all(isinstance(class_name, str) for class_name in class_names):
            raise TypeError(checks.message("BertClassifier", "class_names", "be strings", list(class_names)))

    def default_loss(self) -> keras.losses.Loss:
        """Cross entropy of the logits."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The share of right answers, named `"accuracy"`."""
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def fit(self, x: Any = None, y: Any = None, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Trains, as `keras.Model.fit`, on raw text where there is a preprocessor; see `TextTask.fit`."""
        known = self.pairs
        if known is None and self._needs_preprocessing(x):
            self.pairs = text_data.is_pair(x)
        try:
            return super().fit(x, y, batch_size, **kwargs)
        except (TypeError, ValueError):
            self.pairs = known  # data that were refused do not say what the model is for
            raise

    def preprocess(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of text (and labels) as what the model trains on; runs inside `tf.data.Dataset.map`."""
        is_pair = isinstance(x, tuple)
        if self.pairs is not None and is_pair != self.pairs:
            wants, came = ("pairs of texts", "single texts") if self.pairs else ("single texts", "pairs of texts")
            raise ValueError(f"`BertClassifier`: this model was made for, or fitted on, {wants}. Received: {came}.")
        if y is not None and y.dtype == tf.string:
            y = self._class_ids(y)
        return super().preprocess(x, y, sample_weight)

    def _class_ids(self, names: Any) -> Any:
        """Class names `(batch,)` as integers, in graph."""
        class_names = self._require_names()
        matches = tf.equal(tf.reshape(names, [-1, 1]), tf.constant([class_names]))  # [B, C]
        known = tf.debugging.Assert(
            tf.reduce_all(tf.reduce_any(matches, axis=-1)),
            [f"`BertClassifier`: every label must be one of {class_names}. Received: ", names],
        )
        with tf.control_dependencies([] if known is None else [known]):
            return tf.argmax(matches, axis=-1, output_type=tf.int32)

    def _require_names(self) -> list[str]:
        if self.class_names is None:
            raise ValueError(
                "`BertClassifier`: labels must be integers where no class names are known. Received: strings. "
                "Give `class_names` to the classifier."
            )
        return self.class_names

    def encode_labels(self, y: Any) -> Any:
        """A column of class names or integers as integers, checked row by row."""
        if not isinstance(y, np.ndarray):
            return y
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.dtype.kind in "SO":
            ids = {class_name: index for index, class_name in enumerate(self._require_names())}
            names = [label.decode() if isinstance(label, bytes) else label for label in y]
            for row, label in enumerate(names):
                if label not in ids:
                    raise ValueError(
                        f"`BertClassifier`: every label must be one of {self.class_names}. "
                        f"Received: {label!r} in row {row}."
                    )
            return np.array([ids[label] for label in names], np.int32)
        wrong = ~((y >= 0) & (y < self.num_classes) & (y == np.floor(y)))  # a missing label, NaN, is wrong too
        if y.ndim == 1 and wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                "`BertClassifier`: every label must be an integer, at least 0 and less than "
                f"num_classes={self.num_classes}. Received: {y[row]} in row {row}."
            )
        return y

    def text_inputs(self) -> dict[str, Any]:
        """`text`, and `text_pair` for a model of pairs."""
        return {"text": TEXT, "text_pair": TEXT} if self.pairs else {"text": TEXT}

    def _serve(self, *texts: Any) -> dict[str, Any]:
        """Strings to `label` and `probabilities`."""
        names = self.class_names or [str(index) for index in range(self.num_classes)]
        return decode_labels(self._run_model(self._serve_tokens(*texts)), names)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = super().get_config()
        config.update(
            num_classes=self.num_classes, class_names=self.class_names, dropout=self.dropout, pairs=self.pairs
        )
        return config
