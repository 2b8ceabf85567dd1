"""Text classification and regression."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import unavailable
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Ids, Labels, Outputs, Rows, Strings, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export import Signature, onnx
from keras_bert_layers.layers import ClassificationHead
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.preprocessors.long_texts import HeadTail, Windows, as_long_texts
from keras_bert_layers.static_backbone import StaticBackbone
from keras_bert_layers.tasks.feeding.global_batches import on_real_rows
from keras_bert_layers.tasks.graphs.columns import with_columns
from keras_bert_layers.tasks.graphs.heads import check_parts, head_options
from keras_bert_layers.tasks.graphs.settings import Setting
from keras_bert_layers.tasks.graphs.text_graph import text_graph
from keras_bert_layers.tasks.graphs.vectors import Pooling, as_given, pooled_vectors
from keras_bert_layers.tasks.inputs import ColumnInputs, TextInputs
from keras_bert_layers.tasks.inputs.row_features import RowFeatures
from keras_bert_layers.tasks.labels import make_labels
from keras_bert_layers.tasks.labels.calibration import Calibration, calibrated
from keras_bert_layers.tasks.serving.attributed_rows import class_rows
from keras_bert_layers.tasks.serving.attribution import attribute
from keras_bert_layers.tasks.serving.classification_report import ClassificationReport, report_of
from keras_bert_layers.tasks.task import Task


@register
class BertClassifier(Task):
    """Classifies texts and pairs of texts: one class, several classes or numbers for each.

    The pooled first token, or with `pooling` the vector of a sentence encoder, goes through dropout and a dense layer.
    `problem_type` is the kind of the labels, with the names that transformers uses:

    - `"single_label_classification"`: an integer or a name per text, or one column per class; cross entropy. The
      exported model returns `label` `(batch,)` and `probabilities` `(batch, classes)`.
    - `"multi_label_classification"`: a list of names per text, or 0 and 1 `(rows, classes)`; binary cross entropy. The
      exported model returns `label` `(batch, labels)`, the most probable first, padded with `""`, and `probabilities`.
    - `"regression"`: a number per text, or `num_classes` numbers `(rows, num_classes)`; squared error. The exported
      model returns `score` `(batch,)`, or `(batch, num_classes)`.

    Args:
        backbone: a `BertBackbone`; or the `StaticBackbone` of a `BertStaticEncoder`, whose mean the dense layer reads.
        num_classes: how many classes there are, at least 2; may be left out where `class_names` are given. In a
            regression, how many numbers a text has; 1 if None.
        class_names: one name per class. Labels may then be names, and the exported model returns names. Without them,
            the names are `"0"`, `"1"` and so on, and labels are integers.
        problem_type: the kind of the labels; see above.
        threshold: for several labels per text, a class is predicted if its probability is above this: one number, or
            one for each class; 0.5 if None.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text.
        dropout: the share of pooled features dropped in training before the dense layer; the backbone's if None.
        pairs: whether a row is a pair of texts; None takes it from the data of the first `fit`. The exported model of
            pairs takes `text` and `text_pair`.
        long_texts: what is read of texts longer than the preprocessor's `max_length`: None for their beginning;
            `"head_tail"`, or a `preprocessing.HeadTail`, for both ends; `"windows"`, or a `preprocessing.Windows`, for
            all of it, with the pooled vectors of windows averaged before the head.
        pooling: the mode, or the modes, of a `SequencePooling`, whose vector the dense layer reads, as in a
            `BertSentenceEncoder`; None for BERT's own pooler. Only a `.keras` file and the exports keep it: other
            formats of checkpoints have no place for it.
        normalize: whether that vector is scaled to Euclidean length 1.
        columns: a `keras.utils.FeatureSpace` with `output_mode="concat"`, of columns that are read beside the text,
            such as numbers and categories; on TensorFlow. Rows are then a table with `"text"`, perhaps `"text_pair"`,
            and these columns: a pandas DataFrame, a dictionary or a dataset of dictionaries; a single row is a
            dictionary of values. A space that is not adapted is adapted by the first `fit`, to its training rows. A
            missing number is the mean of a normalized column, and 0 in another; a missing integer is -1, and a missing
            string `""`. The exported model takes one more input for each column. Only a `.keras` file and a SavedModel
            keep it.
        name: the model's name.

    Returns:
        A call on ids and `predict` return float32 logits `(batch, classes)`; a regression returns its numbers
        `(batch, num_classes)`.

    Raises:
        TypeError: a backbone or a preprocessor of another type; a call on text; a dictionary.
        ValueError: an argument out of range; names that repeat, or not one for each class; an unknown label (the
            message names its row); single texts for a model of pairs, or the reverse.

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

    attributes_classes = True  # an export may have the signature `attributions`

    def __init__(
        self,
        backbone: BertBackbone | StaticBackbone,
        num_classes: int | None = None,
        *,
        class_names: Sequence[str] | None = None,
        problem_type: str = "single_label_classification",
        threshold: float | Sequence[float] | None = None,
        preprocessor: BertPreprocessor | None = None,
        dropout: float | None = None,
        pairs: bool | None = None,
        long_texts: str | HeadTail | Windows | None = None,
        pooling: Pooling | None = None,
        normalize: bool = False,
        columns: Any = None,
        name: str | None = None,
    ):
        check_parts("BertClassifier", backbone, preprocessor, static=True)
        labels = make_labels(problem_type, num_classes, class_names=class_names, threshold=threshold)
        checks.optional(checks.boolean, "BertClassifier", "pairs", pairs)
        if pooling is not None:
            cure = "A `StaticBackbone` has the mean of its tokens alone."
            checks.instance("BertClassifier", "backbone", backbone, BertBackbone, cure)
        if checks.boolean("BertClassifier", "normalize", normalize) and pooling is None:
            raise ValueError(checks.message("BertClassifier", "normalize", "be False without a `pooling`", normalize))
        dropout = backbone.config.dropout if dropout is None else dropout
        head = ClassificationHead(labels.num_classes, dropout=dropout, **head_options(backbone, "classification_head"))
        long_texts = as_long_texts("BertClassifier", long_texts, preprocessor, pooling="mean", pairs=pairs)
        features = None if columns is None else RowFeatures("BertClassifier", columns)
        finish, beside = with_columns(head, features, long_texts)
        if pooling is None:
            graph = text_graph(backbone, lambda ids: backbone(ids)["pooled_output"], finish, long_texts=long_texts)
        else:
            graph = pooled_vectors(backbone, pooling, normalize, finish=finish, long_texts=long_texts)
        graph["inputs"] = {**graph["inputs"], **beside}
        make = TextInputs if features is None else functools.partial(ColumnInputs, features=features)
        pipeline = make("BertClassifier", preprocessor, labels, pairs=pairs)
        pipeline.long_texts = long_texts
        super().__init__(backbone, pipeline, **graph, name=name)
        self._features, self.label_kind = features, labels
        self.num_classes = labels.num_classes
        self.problem_type, self.dropout = problem_type, dropout
        self.pooling, self.normalize = as_given(pooling), normalize
        self.reads_pooled_output = pooling is None
        self.compile()

    (predict_proba,) = unavailable('Use `answer(texts)["probabilities"]`.', 1)
    class_names = Setting(holder="label_kind", doc="One name per class, or None.")
    threshold = Setting(holder="label_kind", doc="With several labels per text, a class is predicted above this.")
    pairs = Setting(holder="pipeline", doc="Whether a row is a pair of texts; None before the first `fit`.")

    @property
    def columns(self) -> Any:
        """The `FeatureSpace` of the columns beside the text; None for a classifier of texts alone."""
        return None if self._features is None else self._features.space

    def __dir__(self) -> list[str]:
        """The names of the attributes whose state Keras saves; the config holds the columns."""
        return [name for name in super().__dir__() if name != "columns"]

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument; the columns with all that they have learnt."""
        config = super().get_config()
        return config if self._features is None else {**config, "columns": self._features.config()}

    def signatures(self) -> list[Signature]:
        """The signatures of the exported model; of a classifier with columns, those of texts have their inputs too."""
        tables = () if self._features is None else self._features.tables
        return [dataclasses.replace(signature, tables=tables) for signature in super().signatures()]

    def default_loss(self) -> keras.losses.Loss:
        """Cross entropy of the logits, binary for several labels per text; squared error for a regression."""
        return self.label_kind.loss()

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The metrics that training reports beside the loss.

        `"accuracy"` for one class per text; `"f1"` over all labels for several labels per text; `"mean_absolute_error"`
        and `"pearson_correlation"` for a regression. `keras_bert_layers.metrics` has more.
        """
        return self.label_kind.metrics()

    def predict_labels(self, x: Rows, batch_size: int = 32) -> Any:
        """The predicted labels, as `fit` takes them.

        Args:
            x: as in `answer`: texts, pairs of texts, or a single row.
            batch_size: rows per step.

        Returns:
            One class name per row, `str` in an array of objects, or int64 class indices `(rows,)` without
            `class_names`. With several labels per text, a list of the names (or indices) of each row, the most probable
            first. For a single row, its label or list alone.

        Raises:
            ValueError: a regression, which has no classes.
        """
        if "label" not in (answer := self.answer(x, batch_size)):
            cure = "Ask `answer` or `predict` for the numbers."
            raise ValueError(checks.message("BertClassifier", "problem_type", "have classes", self.problem_type, cure))
        return self.label_kind.as_given(answer["label"])

    @on_real_rows
    def compute_loss(
        self,
        x: Ids | None = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Outputs | None = None,
        training: bool = True,
    ) -> Any:
        """The compiled loss, on labels in the form that it takes: class indices, or one column per class."""
        y = self.label_kind.for_loss(y, y_pred, self.loss)
        return super().compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)

    @on_real_rows
    def compute_metrics(
        self, x: Ids, y: Tensor, y_pred: Tensor, sample_weight: Outputs | None = None
    ) -> dict[str, Any]:
        """The compiled metrics, on labels in the form that they take."""
        y = self.label_kind.for_metrics(y, y_pred, self.trainer.metrics)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Strings to `label` and `probabilities`, or to `score`."""
        return self.decode(self.run(self.pipeline.ids(*texts)))

    def decode(self, outputs: Tensor) -> dict[str, Any]:
        """Logits to `label` and `probabilities`, or numbers to `score`; in graph."""
        return self.label_kind.decode(outputs)

    def onnx_functions(self) -> onnx.Functions:
        """The signature `serving_default`."""
        return {"serving_default": self._onnx_answers}

    def _onnx_answers(self, model: onnx.OnnxModel, *texts: onnx.Tensor) -> dict[str, onnx.Answer]:
        return self.label_kind.onnx_answers(self.onnx_outputs(model, model.rows(*texts))["logits"].tensor)

    def onnx_outputs(self, model: onnx.OnnxModel, rows: onnx.Rows) -> dict[str, onnx.Answer]:
        """`logits` for rows of ids in an ONNX file."""
        if self.pooling is None:
            vectors = model.pooled_output(rows)
        else:
            vectors = onnx.pooled(model.hidden(rows), rows.mask, self.pooling)
            vectors = onnx.unit_vectors(vectors) if self.normalize else vectors
        logits = onnx.dense(vectors, self.get_layer("classification_head").dense)
        return {"logits": onnx.Answer(logits, (None, self.num_classes))}

    def attribute(
        self,
        texts: Strings,
        target: object = None,
        *,
        baseline: str = "pad",
        tolerance: float = 1e-3,
        max_steps: int = 256,
        verbose: str | int = 0,
    ) -> Any:
        """Scores the tokens of texts, and columns beside them, by how much each raised a class's logit or the number.

        `tasks.serving.attribution.attribute` documents the arguments, errors and what it returns.
        """
        options: dict[str, Any] = {"baseline": baseline, "tolerance": tolerance, "max_steps": max_steps}
        return attribute(self, class_rows, texts, target, verbose=verbose, **options)

    def calibrate(
        self,
        x: Rows,
        labels: Labels,
        *,
        precision: float | None = None,
        batch_size: int | None = None,
        verbose: str | int = 0,
    ) -> Calibration:
        """Makes the probabilities as large as the share of predictions that are right, by a temperature.

        The weights of the last dense layer are divided by the temperature that gives the labels of held-out rows the
        lowest cross entropy (temperature scaling). Rankings and, for one class per text, predictions stay the same. The
        calibrated model is saved and exported like any other. Calibrate after training: training changes probabilities
        again. For several labels per text, `threshold` is then set for each class.

        Args:
            x: texts that the model was not trained on, as in `fit`; a few hundred are enough.
            labels: their labels, as in `fit`.
            precision: for several labels per text: the share of a class's predictions that must be right, in (0, 1];
                the threshold is the lowest that reaches it. None chooses the threshold with the best F1. A class that
                no row has keeps its threshold.
            batch_size: as in `predict`.
            verbose: as in `predict`.

        Returns:
            The temperature, the thresholds, and the calibration error before and after.

        Raises:
            ValueError: a regression; rows of fewer than two classes; weights that give NaN; a quantized head; what
                `fit` and `predict` refuse.

        References:
            Guo et al. 2017, On Calibration of Modern Neural Networks, arXiv:1706.04599, section 4.2.
        """
        return calibrated(self, x, labels, precision=precision, batch_size=batch_size, verbose=verbose)

    def report(
        self, x: Rows, labels: Labels, *, num_errors: int = 5, batch_size: int | None = None, verbose: str | int = 0
    ) -> ClassificationReport:
        """Reports where the classifier is right and wrong, for one class per text.

        `visualization.ReportPicture` draws the report.

        Args:
            x: a list, array or column of strings, or a tuple of two for pairs.
            labels: the class of each text, a name or an integer.
            num_errors: how many of the worst errors to list; each takes a prediction for every token of its text.
            batch_size: as in `predict`.
            verbose: as in `predict`: one bar over the texts, and one over the errors.

        Returns:
            The confusion matrix, a table of the classes, the worst errors with a weight for each token, and the share
            of texts that are longer than `max_length`.

        Raises:
            ModuleNotFoundError: scikit-learn is not installed.
            TypeError, ValueError: labels of another kind; no preprocessor; what `predict` and `fit` refuse.
        """
        return report_of(self, x, labels, num_errors=num_errors, batch_size=batch_size, verbose=verbose)
