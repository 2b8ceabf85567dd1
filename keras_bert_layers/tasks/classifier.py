"""Classes, or a number, for texts and for pairs of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import ClassificationHead
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._problems import make_problem
from keras_bert_layers.tasks._task import TEXT
from keras_bert_layers.tasks._text_task import TextTask


@register
class BertClassifier(TextTask):
    """One class, several classes or a number for a text: its pooled first token through dropout and a dense layer.

    `problem_type` says what the labels are, in transformers' words:

    - `"single_label_classification"`: an integer or a name a text; cross entropy. The exported model answers `label`
      `(batch,)` and `probabilities` `(batch, classes)`.
    - `"multi_label_classification"`: a list of names a text, or 0 and 1 `(rows, classes)`; binary cross entropy. It
      answers `label` `(batch, labels)`, the most probable first, filled up with `""`, and `probabilities`.
    - `"regression"`: a number a text; the squared error. It answers `score` `(batch,)`.

    Args:
        backbone: a `BertBackbone`.
        num_classes: how many classes there are, at least 2; may be left out where `class_names` are given, and in a
            regression.
        class_names: one name a class. Labels may then be names, and the exported model answers with them. Without, the
            names are `"0"`, `"1"` and so on, and labels are numbers.
        problem_type: what the labels are; see above.
        threshold: a class is a label of a text if its probability is above this; of several labels only, 0.5 if None.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text.
        dropout: the share of pooled features dropped in training before the dense layer; the backbone's if None.
        pairs: whether a row is a pair of texts. None finds it out at the first `fit`; the exported model takes `text`
            and `text_pair` where it is true.
        name: the model's name.

    Returns:
        From a call on ids, and from `predict`: float32 logits `(batch, classes)`; of a regression the numbers
        themselves, `(batch, 1)`.

    Raises:
        TypeError: a backbone or a preprocessor that is none; a call on text; a dictionary; a generator to `fit`.
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
        problem_type: str = "single_label_classification",
        threshold: float | None = None,
        preprocessor: BertPreprocessor | None = None,
        dropout: float | None = None,
        pairs: bool | None = None,
        name: str | None = None,
    ):
        self._check_parts(backbone, preprocessor)
        problem = make_problem(problem_type, num_classes, class_names=class_names, threshold=threshold)
        if pairs is not None:
            checks.boolean("BertClassifier", "pairs", pairs)
        dropout = backbone.config.dropout if dropout is None else dropout
        head = ClassificationHead(
            problem.num_classes,
            dropout=dropout,
            initializer_range=backbone.config.initializer_range,
            dtype=backbone.dtype_policy,
            name="classification_head",
        )
        outputs = head(backbone(backbone.input)["pooled_output"])
        self._problem = problem
        super().__init__(backbone, preprocessor, outputs=outputs, name=name)
        self.num_classes = problem.num_classes
        self.class_names = problem.class_names
        self.problem_type = problem_type
        self.threshold = problem.threshold
        self.dropout = dropout
        self.pairs = pairs

    def default_loss(self) -> keras.losses.Loss:
        """Cross entropy of the logits, binary for several labels a text; the squared error of a regression."""
        return self._problem.loss()

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """What training tells beside the loss.

        The share of right answers, named `"accuracy"`; for several labels a text the F1 of all labels, named `"f1"`;
        for a regression `"mean_absolute_error"` and `"pearson_correlation"`. `metrics` has more.
        """
        return self._problem.metrics()

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        *,
        class_weight: Mapping[str | int, float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Trains, as `keras.Model.fit`, on raw text where there is a preprocessor; see `TextTask.fit`.

        Args:
            x: texts, a tuple of two columns of them, a dataset, or ids.
            y: one label a text.
            batch_size: texts a step.
            class_weight: how much the loss of each class counts, by its name or its number; 1 for those left out. For
                one class a text only.
            **kwargs: what `TextTask.fit` takes.
        """
        if class_weight is not None:
            kwargs["class_weight"] = self._problem.weight_by_id(class_weight)
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
            y = self._problem.encode_names(y)
        return super().preprocess(x, y, sample_weight)

    def encode_labels(self, y: Any) -> Any:
        """A column of labels as the numbers that the loss takes, checked row by row; tensors as they are."""
        return self._problem.encode(y) if isinstance(y, np.ndarray) else y

    def text_inputs(self) -> dict[str, Any]:
        """`text`, and `text_pair` for a model of pairs."""
        return {"text": TEXT, "text_pair": TEXT} if self.pairs else {"text": TEXT}

    def _serve(self, *texts: Any) -> dict[str, Any]:
        """Strings to `label` and `probabilities`, or to `score`."""
        return self._problem.decode(self._run_model(self._serve_tokens(*texts)))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = super().get_config()
        config.update(
            num_classes=self.num_classes,
            class_names=self.class_names,
            problem_type=self.problem_type,
            threshold=self.threshold,
            dropout=self.dropout,
            pairs=self.pairs,
        )
        return config
