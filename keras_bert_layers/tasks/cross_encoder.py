"""Re-ranking: one score for a query and a document that the model reads together."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Ids, Rows, Strings, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export import Signature, onnx
from keras_bert_layers.layers import ClassificationHead
from keras_bert_layers.layers.classification_head import ABSENT_SCORE
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.preprocessors.long_texts import HeadTail, Windows, as_long_texts
from keras_bert_layers.tasks.feeding.columns import as_columns
from keras_bert_layers.tasks.feeding.global_batches import on_real_rows
from keras_bert_layers.tasks.graphs.heads import check_parts, head_options
from keras_bert_layers.tasks.graphs.text_graph import text_graph
from keras_bert_layers.tasks.inputs import RelevanceInputs
from keras_bert_layers.tasks.labels import Relevance
from keras_bert_layers.tasks.labels.regression import in_rows
from keras_bert_layers.tasks.objectives.metrics import PairAUC
from keras_bert_layers.tasks.serving.attributed_rows import class_rows
from keras_bert_layers.tasks.serving.attribution import attribute
from keras_bert_layers.tasks.serving.prompts import Prompts
from keras_bert_layers.tasks.task import Task


@register
class BertCrossEncoder(Task):
    """Scores how well a document answers a query: both in one sequence, the pooled first token, and one logit.

    It is slower than a `BertDualEncoder`, as every pair goes through the model, and more accurate. So it is usually
    used to re-rank the best results of a search, with `rank`. It trains on `x = (queries, documents)` with one
    relevance per row in `y`: 0, 1 or anything between.

    It also trains on `x = (queries, candidates)`, with a list of texts for each query, or an array or tensor
    `(rows, candidates)`, and a list of grades for each in `y`. The losses of `keras_bert_layers.losses`, such as
    `ListNet()`, compare the candidates of a query, and take grades from 0 on; any other loss is that of all pairs. An
    empty string is not a candidate: it pads a row that has fewer. A sample weight is that of a query.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text. Its
            `truncation` applies to pairs that are too long; `"only_second"` never shortens the query.
        dropout: the share of pooled features dropped in training before the dense layer; the backbone's if None.
        activation: turns the logit into the score, one of `config.ACTIVATIONS`; `"linear"` leaves it as it is. The loss
            is that of the logit under every activation.
        prompts: texts that the model was trained to read before the query, by name.
        default_prompt: the name of the prompt before every query, in training too; None for none.
        long_texts: what is read of pairs longer than the preprocessor's `max_length`: None for what its `truncation`
            keeps; `"head_tail"`, or a `preprocessing.HeadTail`, for both ends of a document; `"windows"`, or a
            `preprocessing.Windows`, for all of it, with the logit of the best window (MaxP).
        name: the model's name.

    Returns:
        A call on ids and `predict` return float32 logits `(batch, 1)`; `predict` on rows of candidates
        `(rows, candidates)`, -1e9 where there is none. The score of `rank`, `answer` and the exported model is their
        activation: by default the logistic function, in [0, 1]. The exported model has a signature for each prompt, by
        its name.

    Raises:
        TypeError: a backbone or a preprocessor of another type; a call on text; a dictionary.
        ValueError: an argument out of range; single texts; a relevance outside [0, 1], a grade below 0, or one that is
            missing (the message names its row); rows of candidates beside `metrics`, which must be `weighted_metrics`.

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
        and the same `rank`. Dai and Callan 2019, arXiv:1905.09217, section 3, for MaxP.
    """

    attributes_classes = True  # an export may have the signature `attributions`

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor | None = None,
        *,
        dropout: float | None = None,
        activation: str = "sigmoid",
        prompts: Mapping[str, str] | None = None,
        default_prompt: str | None = None,
        long_texts: str | HeadTail | Windows | None = None,
        name: str | None = None,
    ):
        check_parts("BertCrossEncoder", backbone, preprocessor)
        dropout = backbone.config.dropout if dropout is None else dropout
        head = ClassificationHead(1, dropout=dropout, **head_options(backbone, "classification_head"))
        long_texts = as_long_texts("BertCrossEncoder", long_texts, preprocessor, pooling="max", pairs=True)
        graph = text_graph(backbone, lambda ids: head(backbone(ids)["pooled_output"]), long_texts=long_texts)
        labels, all_prompts = Relevance(activation), Prompts("BertCrossEncoder", prompts, default_prompt)
        pipeline = RelevanceInputs("BertCrossEncoder", preprocessor, labels, pairs=True).prompted(all_prompts.text())
        pipeline.long_texts, pipeline.fill_value = long_texts, ABSENT_SCORE
        super().__init__(backbone, pipeline, **graph, name=name)
        self.label_kind, self._prompts = labels, all_prompts
        self.dropout = dropout
        self.compile()

    @property
    def activation(self) -> str:
        """Turns the logit into the score."""
        return self.label_kind.activation

    @property
    def prompts(self) -> dict[str, str] | None:
        """The prompts by name; None for none."""
        return dict(self._prompts.by_name) or None

    @property
    def default_prompt(self) -> str | None:
        """The name of the prompt before every text, or None."""
        return self._prompts.default

    @on_real_rows
    def compute_loss(
        self, x: Ids | None = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The compiled loss: of whole rows of candidates if it is one of `keras_bert_layers.losses`, else of pairs."""
        if self.pipeline.loss is None:
            y, y_pred, sample_weight = self.label_kind.by_pair(y, y_pred, sample_weight)
        elif in_rows(y):
            y_pred = keras.ops.reshape(y_pred, keras.ops.shape(y))
        return super().compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)

    @on_real_rows
    def compute_metrics(self, x: Ids, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """The compiled metrics, of pairs."""
        unweighted = keras.tree.flatten(self.trainer.metrics[0] or [])
        if in_rows(y) and not all(isinstance(metric, PairAUC) for metric in unweighted):
            cure = "Give them as `weighted_metrics`: candidates that are absent have the weight 0."
            rule = "be those of pairs where rows of candidates are given"
            raise ValueError(checks.message("BertCrossEncoder", "metrics", rule, unweighted, cure))
        return super().compute_metrics(x, *self.label_kind.by_pair(y, y_pred, sample_weight))

    def predict(
        self,
        x: Rows,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        steps: int | None = None,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        *,
        max_tokens_per_batch: int | None = None,
        prompt: str | None = None,
    ) -> Any:
        """The logits of pairs as a NumPy array, float32 `(rows, 1)`; of rows of candidates `(rows, candidates)`.

        Args:
            x: pairs of texts, or queries with rows of candidates; see `Task.predict`, also for the other arguments.
            batch_size: the most rows per step.
            verbose: Keras's progress bar.
            steps: the first so many batches.
            callbacks: as in Keras.
            max_tokens_per_batch: the most tokens per step.
            prompt: replaces the default one before the queries: a name of `prompts`, or a text; `""` for none.
        """
        pipeline = self._prompts.pipeline(self, prompt, x)
        options = {"verbose": verbose, "steps": steps, "callbacks": callbacks}
        return self.predictor.predict(pipeline, x, batch_size, max_tokens_per_batch, **options)

    def default_loss(self) -> keras.losses.Loss:
        """Cross entropy of the relevance and the logistic function of the logit."""
        return self.label_kind.loss()

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The area under the ROC curve, named `"auc"`; every relevance above 0 counts as relevant."""
        return self.label_kind.metrics()

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Queries and documents to `score`."""
        return self.label_kind.decode(self.run(self.pipeline.ids(*texts)))

    def serve_prompted(self, prompt: str, *texts: Tensor) -> dict[str, Any]:
        """Queries, read after the text of a prompt, and documents to `score`."""
        return self.label_kind.decode(self.run(self.pipeline.prompted(self._prompts.text(prompt)).ids(*texts)))

    def onnx_functions(self) -> onnx.Functions:
        """The signature `serving_default`, and one for each prompt."""
        prompts = {name: functools.partial(self._onnx_answers, text) for name, text in self._prompts.by_name.items()}
        return {"serving_default": functools.partial(self._onnx_answers, None), **prompts}

    def _onnx_answers(self, prompt: str | None, model: onnx.OnnxModel, *texts: onnx.Tensor) -> dict[str, onnx.Answer]:
        return self.label_kind.onnx_answers(
            self.onnx_outputs(model, model.rows(*texts, prompt=prompt))["logits"].tensor
        )

    def onnx_outputs(self, model: onnx.OnnxModel, rows: onnx.Rows) -> dict[str, onnx.Answer]:
        """`logits` for rows of ids in an ONNX file."""
        logits = onnx.dense(model.pooled_output(rows), self.get_layer("classification_head").dense)
        return {"logits": onnx.Answer(logits, (None, 1))}

    def signatures(self) -> list[Signature]:
        """The signatures of all tasks, and one for each prompt."""
        return super().signatures() + ([] if self.preprocessor is None else self._prompts.signatures(self))

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
        """Scores the tokens of texts by how much each raised the score of a pair.

        `tasks.serving.attribution.attribute` documents the arguments, errors and what it returns.
        """
        options: dict[str, Any] = {"baseline": baseline, "tolerance": tolerance, "max_steps": max_steps}
        return attribute(self, class_rows, texts, target, verbose=verbose, **options)

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        *,
        top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int | None = None,
        verbose: str | int = 0,
        prompt: str | None = None,
    ) -> list[dict[str, Any]]:
        """Ranks documents from the best to the worst answer to a query.

        Args:
            query: a text.
            documents: the candidates, usually the first 20 to 100 results of a search; may be empty.
            top_k: how many to return; all if None.
            return_documents: whether each result holds its text too.
            batch_size: the most pairs a step; None lets `predict` choose.
            verbose: Keras's progress bar: 1 shows it, 0 does not.
            prompt: as in `predict`.

        Returns:
            One dictionary per document: `"corpus_id"`, its index in `documents`; `"score"`, by default in [0, 1]; and
            `"text"` if asked for. Documents with equal scores keep their order.

        Raises:
            TypeError: a query that is not one string; documents that are not strings.
            ValueError: `top_k` or `batch_size` below 1; the task has no preprocessor.
        """
        if not isinstance(query, str | bytes):
            raise TypeError(checks.message("BertCrossEncoder", "query", "be one string", query))
        checks.optional(checks.positive_integer, "BertCrossEncoder", "top_k", top_k)
        self.pipeline.is_raw([query])
        candidates = as_columns("BertCrossEncoder", documents)
        queries = np.array([query] * len(candidates), object)
        logits = self.predict((queries, candidates), batch_size, verbose=verbose, prompt=prompt)[:, 0]
        scores = np.asarray(self.label_kind.scores(logits))
        order = np.argsort(-scores, kind="stable")[:top_k]
        found: list[dict[str, Any]] = [{"corpus_id": int(row), "score": float(scores[row])} for row in order]
        return [{**row, "text": documents[row["corpus_id"]]} for row in found] if return_documents else found
