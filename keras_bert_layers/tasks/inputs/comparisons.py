"""Texts that are compared: pairs and triplets for one encoder, or queries with documents for two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import check_in_graph
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Columns, Labels, Rows, Tensor
from keras_bert_layers.losses.in_batch import ABSENT, cosine
from keras_bert_layers.losses.vectors import SCORES, SIMILARITY, TEXTS, VectorLoss
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.feeding.columns import as_array, filled_table, is_dataset, is_pair, without_none
from keras_bert_layers.tasks.feeding.kind_of_data import Parts
from keras_bert_layers.tasks.inputs.inputs import Inputs
from keras_bert_layers.tasks.objectives.contrastive import column_by_column, joined, refuse_negatives, text_ids

SIDES = QUERY, DOCUMENT = "query", "document"


class ComparedInputs(Inputs):
    """Single texts with target vectors, pairs with similarities, or pairs and triplets without labels.

    The texts of a pair are rows of the model one after the other. Labels of pairs are a dictionary: `"similarity"`, or
    `"texts"`, an id for each text. A row of outputs is the vector of a text, or the cosine of a pair.

    Args:
        owner: the task's class, for errors.
        preprocessor: a `BertPreprocessor`, or None.
        vector_dim: the width of the vectors.
    """

    counts_in_batch = ("text",)
    loss_kind = VectorLoss

    def __init__(self, owner: str, preprocessor: TextLayer | None, vector_dim: int):
        super().__init__(owner, preprocessor, most_texts=3)
        #: The width of the vectors.
        self.vector_dim = vector_dim

    def labels(self, columns: Any, y: Any) -> Any:
        """Similarities, checked row by row; target vectors unchecked."""
        y = as_array(y)
        if isinstance(y, np.ndarray) and not isinstance(columns, tuple):
            self._check_targets(tf.TensorSpec(y.shape))
        return _checked_labels(self.owner, self.loss, columns, y)

    def makes_labels(self, x: Rows) -> bool:
        """Pairs and triplets need no labels: the texts of a row belong together."""
        return is_pair(x)

    def check_labels(self, x: Rows, y: Labels) -> None:
        """Refuses single texts without target vectors, which nothing can be learnt from; ValueError."""
        if y is None and not is_dataset(x) and not is_pair(x):
            rule = "be pairs of texts that belong together, such as `(questions, answers)`, two lists in a tuple"
            cure = "Or give target vectors `(rows, vector_dim)` as `y`."
            raise ValueError(checks.message(self.owner, "x", rule, checks.Shown("single texts"), cure))

    def encode(self, x: Columns, y: Tensor | None = None, sample_weight: Tensor | None = None) -> tuple[Any, ...]:
        """One batch of `(ids, labels, weights)`, in graph; the texts of a row one after the other."""
        texts, *others = self._in_table(x, y, sample_weight)
        return super().encode(tf.reshape(texts, [-1]), *others)

    def before_cut(self, x: Columns) -> Callable[..., Parts] | None:
        """What puts the texts of pairs into one table; None as for all texts."""
        return None if super().before_cut(x) is None else self._in_table

    def _in_table(self, x: Any, y: Any = None, sample_weight: Tensor | None = None) -> Parts:
        """The texts of pairs in one table, with ids that tell which texts of the whole batch are equal."""
        if not isinstance(x, tuple):
            if len(x.shape) == 1:
                self._check_targets(y)
            return without_none(x, y, sample_weight)
        texts = joined(x)  # [B, 2 or more]
        kind = SIMILARITY if self.loss is None else self.loss.labels
        return without_none(texts, _labels_of_rows(self.owner, kind, len(x), texts, y), sample_weight)

    def _check_targets(self, y: Any) -> None:
        """Refuses, beside single texts, anything but target vectors."""
        width = self.vector_dim
        if y is not None and y.shape.rank is not None and (y.shape.rank, y.shape[-1]) != (2, width):
            rule = f"be target vectors `(batch, {width})` where texts are single"
            cure = (
                "Pairs are a tuple of two lists of texts, with similarities or without; in `validation_data` and "
                "from a dataset `((first, second), similarities)` or `((first, second),)`."
            )
            raise ValueError(checks.message(self.owner, "y", rule, tuple(y.shape), cure))

    def read_together(self, columns: Columns) -> Any:
        """All texts, one by one."""
        return _one_by_one(columns)

    def outputs(self, columns: Columns, run: Callable[..., Any]) -> np.ndarray:
        """The vectors of a block of texts, or the cosines of a block of pairs."""
        refuse_negatives(self.owner, columns)
        vectors = super().outputs(columns, run)
        return cosine(vectors[0::2], vectors[1::2]) if isinstance(columns, tuple) else vectors

    def empty(self, x: Any, outputs: Any) -> np.ndarray:
        """No vectors, or no cosines."""
        return cosine(outputs, outputs) if is_pair(x) else outputs


class QueryInputs(Inputs):
    """Queries and documents, with hard negatives or without; `predict` takes single queries too.

    A row of outputs is the vector of a query, or the score of a query and a document.

    Args:
        owner: the task's class, for errors.
        preprocessor: the `BertPreprocessor` of the queries, or None.
        document_preprocessor: the one of the documents; None for the same.
        prompts: what is put before every query and every document.
    """

    id_keys = (QUERY, "token_ids")
    counts_in_batch = ("text", "ids")
    loss_kind = VectorLoss

    def __init__(
        self,
        owner: str,
        preprocessor: TextLayer | None,
        document_preprocessor: TextLayer | None,
        prompts: Mapping[str, str],
    ):
        super().__init__(owner, preprocessor, most_texts=3, prompt=prompts.get(QUERY, ""))
        self._prompts = prompts
        self.document_preprocessor = document_preprocessor

    def side(self, side: str) -> Inputs:
        """Single texts for one of the two encoders, `"query"` or `"document"`."""
        own = self.document_preprocessor if side == DOCUMENT else None
        prompt = self._prompts.get(side, "")
        made = self.made_once(Inputs, self.owner, own or self.preprocessor, most_texts=1, part=side, prompt=prompt)
        made.cuts, made.long_texts = self.cuts, self.long_texts
        return made

    def labels(self, columns: Any, y: Any) -> Any:
        """Refused, unless the loss compares them: a row itself holds what belongs together."""
        if self.loss is not None and self.loss.labels != TEXTS:
            return _checked_labels(self.owner, self.loss, columns, as_array(y))
        cure = (
            "Queries and their documents are one tuple: `fit((queries, documents))`. In `validation_data` and from a "
            "dataset: `((queries, documents),)`."
        )
        raise ValueError(checks.message(self.owner, "y", "be None", type(y), cure))

    def makes_labels(self, x: Rows) -> bool:
        """Each query's own document is its label."""
        return True

    def check_labels(self, x: Rows, y: Labels) -> None:
        """Refuses single texts, which nothing can be learnt from; ValueError."""
        if not is_pair(x):
            rule = "be a tuple of queries, documents and, if there are any, negatives"
            raise ValueError(checks.message(self.owner, "x", rule, type(x)))

    def encode(self, x: Columns, y: Tensor | None = None, sample_weight: Tensor | None = None) -> tuple[Any, ...]:
        """One batch of `(ids, labels, weights)`, in graph: the documents of all rows, then all first negatives."""
        texts, *others = self._in_table(x, y, sample_weight)
        if len(texts.shape) == 1:
            return self.side(QUERY).encode(texts)
        (queries,) = self.side(QUERY).encode(texts[:, 0])
        (documents,) = self.side(DOCUMENT).encode(column_by_column(texts[:, 1:]))
        return {QUERY: queries, DOCUMENT: documents}, *others

    def before_cut(self, x: Columns) -> Callable[..., Parts] | None:
        """What puts the texts of pairs into one table; None with negatives, which come after the documents of all."""
        has_pairs = isinstance(x, tuple) and len(x) == 2
        are_apart = super().before_cut(x) is not None and self.side(DOCUMENT).before_cut(x) is not None
        return self._in_table if has_pairs and are_apart else None

    def _in_table(self, x: Any, y: Any = None, sample_weight: Tensor | None = None) -> Parts:
        """The texts of pairs in one table `(batch, 2 + negatives)`, with ids that tell which are equal."""
        if not isinstance(x, tuple) and len(x.shape) == 2:
            return without_none(x, y, sample_weight)
        kind = TEXTS if self.loss is None else self.loss.labels
        if y is not None and kind == TEXTS:
            self.labels(x, y)
        if not isinstance(x, tuple):
            return (x,)
        texts = joined(x)
        return without_none(texts, _labels_of_rows(self.owner, kind, len(x), texts, y), sample_weight)

    def read_together(self, columns: Columns) -> Any:
        """All texts, one by one."""
        return _one_by_one(columns)

    def outputs(self, columns: Columns, run: Callable[..., Any]) -> np.ndarray:
        """The vectors of a block of queries, or the scores of a block of pairs."""
        refuse_negatives(self.owner, columns)
        if not isinstance(columns, tuple):
            return self.side(QUERY).outputs(columns, run)

        def half(*arguments: Any, **options: Any) -> Any:
            return run(*arguments, **options, share=0.5)

        vectors = [self.side(side).outputs(texts, half) for side, texts in zip(SIDES, columns, strict=True)]
        return np.sum(vectors[0] * vectors[1], axis=-1)

    def empty(self, x: Any, outputs: Any) -> np.ndarray:
        """No vectors, or no scores."""
        return np.sum(outputs[QUERY], axis=-1) if is_pair(x) else outputs[QUERY]


def labels_for(task: Any, y: Any) -> Any:
    """What the compiled loss, one of `losses`, compares with vectors, of the labels of a batch.

    Raises:
        ValueError: rows of texts that the loss is not for.
    """
    loss: VectorLoss = task.pipeline.loss
    if not isinstance(y, dict) or loss.labels not in y:
        needed = {
            TEXTS: "be rows of two or more texts without `y`",
            SIMILARITY: "be pairs of texts, with a similarity for each as `y`",
            SCORES: "be texts, partners and negatives in a tuple, with scores as `y`",
        }[loss.labels]
        found = checks.Shown(f"other data, for the loss {type(loss).__name__}")
        raise ValueError(checks.message(type(task).__name__, "x", needed, found))
    return y[loss.labels]


def _checked_labels(owner: str, loss: VectorLoss | None, columns: Columns, y: Any) -> Any:
    """Similarities of pairs, or scores of documents, checked row by row; anything but arrays unchanged."""
    if loss is not None and isinstance(columns, tuple):
        if loss.labels == TEXTS:
            raise ValueError(checks.message(owner, "y", f"be None for the loss {type(loss).__name__}", type(y)))
        if loss.labels == SCORES:
            return _checked_scores(owner, columns, y)
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype != object:
        y = y.astype(np.float32)
        if loss is not None and loss.reads_order:
            checks.every_row(owner, "every grade must be a finite number", y, np.isfinite(y))
        else:
            rule = "every similarity must be in [-1, 1], the range of a cosine"
            cure = "Scale the scores first: divide by 5 if they run from 0 to 5."
            checks.every_row(owner, rule, y, np.abs(y) <= 1, cure)
    return y


def _checked_scores(owner: str, columns: Any, y: Any) -> Any:
    """A teacher's scores as float32 `(rows, documents)`, or margins, with NaN behind the end of short rows."""
    if not isinstance(y, np.ndarray):
        return y
    table = filled_table([np.atleast_1d(np.asarray(row, np.float32)) for row in y], np.nan, np.float32)
    present = [np.ones((len(column), 1), bool) if column.ndim == 1 else column.astype(bool) for column in columns[1:]]
    are_documents = np.concatenate(present, axis=1)[:, -table.shape[1] :]  # margins are those of negatives
    if table.shape == are_documents.shape:
        rule = "every document, or every negative, must have a finite score"
        checks.every_row(owner, rule, table, (np.isfinite(table) | ~are_documents).all(axis=1))
    return table


def _labels_of_rows(owner: str, kind: str, num_columns: int, texts: Any, y: Any) -> dict[str, Any]:
    """The labels of rows of texts by their kind; in graph."""
    if y is None:
        return {TEXTS: text_ids(texts)}
    if num_columns == 2 and kind == SIMILARITY:
        return {SIMILARITY: tf.reshape(tf.cast(y, tf.float32), [-1, 1])}
    if num_columns > 2 and kind == SCORES:
        ids = text_ids(texts)
        return {TEXTS: ids, SCORES: _scores_of_documents(owner, ids, y)}
    rule = {TEXTS: "be None", SIMILARITY: "be None beside triplets", SCORES: "be None beside pairs"}[kind]
    raise ValueError(checks.message(owner, "y", rule, type(y)))


def _scores_of_documents(owner: str, ids: Any, y: Any) -> Any:
    """A teacher's scores `(batch, documents)`, NaN for those that are absent, from scores or from margins; in graph."""
    y = y.to_tensor(default_value=np.nan) if isinstance(y, tf.RaggedTensor) else y
    y = tf.reshape(tf.cast(y, tf.float32), [tf.shape(ids)[0], -1])
    missing = tf.shape(ids)[1] - 1 - tf.shape(y)[1]  # 1 of margins
    rule = "y must have a score for each document of a row, or for each negative"
    message = [f"`{owner}`: {rule}. Received the shape ", tf.shape(y)]
    y = check_in_graph(y, (missing == 0) | (missing == 1), message)
    # The score of a partner is 0 there, and a negative's is what it is below.
    y = tf.concat([tf.zeros([tf.shape(y)[0], missing]), y * tf.cast(1 - 2 * missing, tf.float32)], axis=1)
    y = tf.where(tf.equal(ids[:, 1:], ABSENT), np.nan, y)
    y.set_shape(ids[:, 1:].shape)
    return y


def _one_by_one(columns: Columns) -> Any:
    """All texts of all columns, those of the first rows first."""
    if not isinstance(columns, tuple):
        return columns
    table = np.concatenate([np.asarray(column).reshape(len(column), -1) for column in columns], axis=1)
    return table.reshape(-1)
