"""Re-ranking: one score for a query and a document that the model reads together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import ClassificationHead
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks._parts import check_parts, head_options
from keras_bert_layers.tasks.inputs import TextInputs
from keras_bert_layers.tasks.inputs._columns import as_columns
from keras_bert_layers.tasks.labels import Relevance
from keras_bert_layers.tasks.task import Task


@register
class BertCrossEncoder(Task):
    """Scores how well a document answers a query: both in one sequence, the pooled first token, and one logit.

    It is slower than a `BertDualEncoder`, as every pair goes through the model, and more accurate. So it is usually
    used to re-rank the best results of a search, with `rank`. It trains on `x = (queries, documents)` with one
    relevance a row in `y`: 0, 1 or anything between.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text. Its
            `truncation` applies to pairs that are too long; `"only_second"` never shortens the query.
        dropout: the share of pooled features dropped in training before the dense layer; the backbone's if None.
        name: the model's name.

    Returns:
        A call on ids and `predict` return float32 logits `(batch, 1)`. The score of `rank`, `answer` and the exported
        model is their logistic function, in [0, 1].

    Raises:
        TypeError: a backbone or a preprocessor of another type; a call on text; a dictionary; a generator to `fit`.
        ValueError: an argument out of range; single texts; a relevance outside [0, 1] (the message names its row).

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
        check_parts("BertCrossEncoder", backbone, preprocessor)
        dropout = backbone.config.dropout if dropout is None else dropout
        head = ClassificationHead(1, dropout=dropout, **head_options(backbone, "classification_head"))
        outputs = head(backbone(backbone.input)["pooled_output"])
        self._labels = Relevance()
        data = TextInputs("BertCrossEncoder", preprocessor, self._labels, pairs=True)
        super().__init__(backbone, data, outputs=outputs, name=name)
        self.dropout = dropout
        self.compile()

    def default_loss(self) -> keras.losses.Loss:
        """Cross entropy of the relevance and the logistic function of the logit."""
        return self._labels.loss()

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The area under the ROC curve, named `"auc"`; every relevance above 0 counts as relevant."""
        return self._labels.metrics()

    def serve(self, *texts: Any) -> dict[str, Any]:
        """Queries and documents to `score`."""
        return self._labels.decode(self.run(self.data.tokens(*texts)))

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
        """Ranks documents from the best to the worst answer to a query.

        Args:
            query: a text.
            documents: the candidates, usually the first 20 to 100 results of a search; may be empty.
            top_k: how many to return; all if None.
            return_documents: whether each result holds its text too.
            batch_size: the most pairs a step; None lets `predict` choose.
            verbose: Keras's progress bar: 1 shows it, 0 does not.

        Returns:
            One dictionary a document: `"corpus_id"`, its index in `documents`; `"score"`, in [0, 1]; and `"text"` if
            asked for. Documents with equal scores keep their order.

        Raises:
            TypeError: a query that is not one string; documents that are not strings.
            ValueError: `top_k` or `batch_size` below 1; the task has no preprocessor.
        """
        if not isinstance(query, str | bytes):
            raise TypeError(checks.message("BertCrossEncoder", "query", "be one string", query))
        checks.optional(checks.positive_integer, "BertCrossEncoder", "top_k", top_k)
        self.data.is_raw([query])
        candidates = as_columns("BertCrossEncoder", documents)
        queries = np.array([query] * len(candidates), object)
        logits = self.predict((queries, candidates), batch_size, verbose=verbose)[:, 0]
        scores = keras.ops.convert_to_numpy(keras.ops.sigmoid(logits))
        order = np.argsort(-logits, kind="stable")[:top_k]
        found: list[dict[str, Any]] = [{"corpus_id": int(row), "score": float(scores[row])} for row in order]
        return [{**row, "text": documents[row["corpus_id"]]} for row in found] if return_documents else found
