"""One score for a query and a document that are read together."""

from __future__ import annotations

from collections.abc import Sequence
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
from keras_bert_layers.tasks._task import TEXT
from keras_bert_layers.tasks._text_task import TextTask


@register
class BertCrossEncoder(TextTask):
    """How well a document answers a query: both in one sequence, the pooled first token, and one logit.

    It is slower than a `BertDualEncoder`, as every pair goes through the model, and more exact; so it usually puts the
    best few that a search has found in order, with `rank`. It trains on `x = (queries, documents)` with `y` one
    relevance a row: 0 or 1, or anything between.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text. A pair that does
            not fit is truncated as it says; `truncation="only_second"` never shortens the query.
        dropout: the share of pooled features dropped in training before the dense layer; the backbone's if None.
        name: the model's name.

    Returns:
        From a call on ids, and from `predict`: float32 logits `(batch, 1)`. The score of `rank`, of `answer` and of the
        exported model is their logistic function, in [0, 1].

    Raises:
        TypeError: a backbone or a preprocessor that is none; a call on text; a dictionary; a generator to `fit`.
        ValueError: an argument out of range; single texts; a relevance outside [0, 1] (its row is named).

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "who"])
        >>> encoder = kbl.BertCrossEncoder(kbl.BertBackbone(config), preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> history = encoder.fit((["who cat", "who cat"], ["cat cat", "dog"]), [1.0, 0.0], verbose=0)
        >>> best = encoder.rank("who dog", ["cat", "dog", "cat dog"], top_k=2)
        >>> len(best), sorted(best[0])
        (2, ['corpus_id', 'score'])

    References:
        Nogueira and Cho 2019, arXiv:1901.04085, section 3; `CrossEncoder` of sentence-transformers has the same score
        and the same `rank`.
    """

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor | None = None,
        *,
        dropout: float | None = None,
        name: str | None = None,
    ):
        self._check_parts(backbone, preprocessor)
        dropout = backbone.config.dropout if dropout is None else dropout
        head = ClassificationHead(
            1,
            dropout=dropout,
            initializer_range=backbone.config.initializer_range,
            dtype=backbone.dtype_policy,
            name="classification_head",
        )
        outputs = head(backbone(backbone.input)["pooled_output"])
        super().__init__(backbone, preprocessor, outputs=outputs, name=name)
        self.dropout = dropout

    def default_loss(self) -> keras.losses.Loss:
        """Cross entropy of the relevance and the logistic function of the logit."""
        return keras.losses.BinaryCrossentropy(from_logits=True)

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """How often a relevant pair scores above another, named `"auc"`; every relevance above 0 is relevant to it."""
        return [keras.metrics.AUC(from_logits=True, name="auc")]

    def preprocess(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of pairs as what the model trains on; runs inside `tf.data.Dataset.map`."""
        if not isinstance(x, tuple):
            raise ValueError(
                checks.message("BertCrossEncoder", "x", "be a tuple of queries and documents", "single texts")
            )
        if y is not None:
            y = tf.reshape(tf.cast(y, tf.float32), [-1, 1])
        return super().preprocess(x, y, sample_weight)

    def encode_labels(self, y: Any) -> Any:
        """Relevances as floats, checked row by row."""
        if not isinstance(y, np.ndarray):
            return y
        column = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if column.dtype.kind not in "biuf":
            found = f"dtype={y.dtype}"
        elif column.ndim != 1:
            found = f"shape={y.shape}"
        else:
            wrong = ~((column >= 0) & (column <= 1))
            if not wrong.any():
                return column.astype(np.float32)
            row = int(np.argmax(wrong))
            found = f"{float(column[row])} in row {row}"
        raise ValueError(
            f"`BertCrossEncoder`: every relevance must be one number in [0, 1]. Received: {found}. "
            "Divide grades by the highest of them."
        )

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        *,
        top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int | None = None,
        verbose: Any = 0,
    ) -> list[dict[str, Any]]:
        """The documents from the best to the worst answer to a query.

        Args:
            query: a text.
            documents: the candidates, usually the first 20 to 100 of a search; there may be none.
            top_k: how many to return; all if None.
            return_documents: whether each result holds its text too.
            batch_size: the most pairs a step; as many as `predict` finds good if None.
            verbose: Keras's progress bar: 1 shows it, 0 does not.

        Returns:
            One dictionary a document: `"corpus_id"`, its place among `documents`; `"score"`, in [0, 1]; and where asked
            for `"text"`. Documents with equal scores keep their order.

        Raises:
            TypeError: a query that is not one string; documents that are not strings.
            ValueError: `top_k` or `batch_size` below 1; the task has no preprocessor.
        """
        if not isinstance(query, str | bytes):
            raise TypeError(checks.message("BertCrossEncoder", "query", "be one string", query))
        if top_k is not None:
            checks.positive_integer("BertCrossEncoder", "top_k", top_k)
        if batch_size is not None:
            checks.positive_integer("BertCrossEncoder", "batch_size", batch_size)
        self._needs_preprocessing([query])
        candidates = text_data.as_columns("BertCrossEncoder", documents)
        if not len(candidates):
            return []
        queries = np.array([query] * len(candidates), object)
        logits = self.predict((queries, candidates), batch_size, verbose=verbose)[:, 0]
        scores = keras.ops.convert_to_numpy(keras.ops.sigmoid(logits))
        order = np.argsort(-logits, kind="stable")[:top_k]
        found: list[dict[str, Any]] = [{"corpus_id": int(row), "score": float(scores[row])} for row in order]
        return [{**row, "text": documents[row["corpus_id"]]} for row in found] if return_documents else found

    def text_inputs(self) -> dict[str, Any]:
        """`text`, the query, and `text_pair`, the document."""
        return {"text": TEXT, "text_pair": TEXT}

    def _serve(self, *texts: Any) -> dict[str, Any]:
        """Queries and documents to `score`."""
        return {"score": tf.sigmoid(self._run_model(self._serve_tokens(*texts))[:, 0])}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "dropout": self.dropout}
