"""Sparse embeddings: a weight for some tokens of the vocabulary per text, for search by inverted indexes (SPLADE)."""

import functools
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import unavailable
from keras_bert_layers._internal.keras_models import Untracked
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Ids, Outputs, Rows, Strings, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export import Signature, onnx
from keras_bert_layers.export.search.corpus import Documents
from keras_bert_layers.export.text_task import TextTask
from keras_bert_layers.layers import SparseHead
from keras_bert_layers.losses.in_batch import ABSENT
from keras_bert_layers.losses.vectors import TEXTS
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks.comparison import Comparison, scores_of_texts
from keras_bert_layers.tasks.feeding.global_batches import on_real_rows
from keras_bert_layers.tasks.graphs.heads import check_parts
from keras_bert_layers.tasks.graphs.masked import masked_lm_head, onnx_logits
from keras_bert_layers.tasks.graphs.settings import Setting
from keras_bert_layers.tasks.inputs.sparse import SparseInputs
from keras_bert_layers.tasks.inputs.sparse_vectors import SparseVectors
from keras_bert_layers.tasks.serving.prompts import Prompts
from keras_bert_layers.tasks.serving.search import export_search
from keras_bert_layers.tasks.task import Task

OWNER = "BertSparseEncoder"
_QUERY = "query"
_OPTIONAL_COUNT = functools.partial(checks.optional, checks.positive_integer)


@register
class BertSparseEncoder(Task):
    """Encodes texts as sparse vectors: a weight for each token of the vocabulary, 0 for most, as SPLADE does.

    The weight is `log(1 + relu(logit))`, of the largest logit that the head of the masked language model has for that
    token at any token of the text. So a text has weights for words that are not in it. The score of a query and a
    document is the dot product. All texts go through the same weights. It trains on the data of a
    `BertSentenceEncoder`, with dot products in place of cosines where pairs have no `y`:

    - `x = (queries, documents)` or `x = (queries, documents, negatives)`, without `y`: the loss is the cross entropy of
      each query's own document among all documents of the batch. Or any of `losses`, such as `losses.MarginMSE()`.
    - `x = (first, second)`, `y` a similarity for each pair, in [-1, 1]: the loss compares it with the cosine.

    A penalty (FLOPS) keeps the vectors sparse: for each token of the vocabulary the square of its mean weight in the
    batch, summed, of the queries and of the documents. It is part of the loss whatever the loss is, and its
    factors grow with the square of the number of steps, until `warmup_steps`. The metrics `"penalty"` and
    `"active_dims"` are what it adds to the loss, and the mean number of weights above 0 of a text.

    Args:
        backbone: a `BertBackbone`.
        pooling: `"max"`, or `"sum"` for the sum of the weights at all tokens of the text.
        activation: `"relu"`, or `"log1p_relu"` for `log(1 + log(1 + relu(logit)))`.
        max_active_dims: how many weights of a text are kept in answers, the largest ones; None keeps all. It may be
            changed at any time.
        query_penalty: the factor of the queries' penalty, of the first text of each row, in [0, 1].
        document_penalty: the factor of the documents' penalty, of all other texts.
        warmup_steps: the number of steps until the penalties have these factors.
        query_weights: `"trained"` or `"frozen"` for queries that no encoder reads, the first text of each row: the
            vector of a query has one weight for each of its tokens, whatever is around them. The weights begin as 1;
            set others, such as inverse document frequencies, with
            `get_layer("masked_lm_head").queries.set_weights([weights])`. They have no penalty. None if queries are
            encoded as documents are.
        prompts: texts that the model was trained to read before every text, by name.
        default_prompt: the name of the prompt before every text, in training too; None for none.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text.
        head_activation: as for `BertMaskedLM`; so are the next two.
        head_layer_norm_epsilon: the epsilon of the head's LayerNorm.
        tie_weights: whether the head predicts with the backbone's token embedding.
        name: the model's name.

    Returns:
        A call on ids returns float32 `(batch, vocabulary_size)`. `predict` on texts returns `SparseVectors`, a pair
        `(token_ids, weights)` for each text, the largest weight first; on pairs, a tuple of two lists of texts, their
        dot products, float32 `(rows,)`. The exported model returns `token` and `weight`, `(batch, active)`, the largest
        first, padded with `""` and 0; it has a signature for each prompt, by its name.

    Raises:
        TypeError: a backbone or a preprocessor of another type; a call on text; a dictionary.
        ValueError: an argument out of range; a similarity outside [-1, 1] (the message names its row).

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"])
        >>> encoder = kbl.BertSparseEncoder(kbl.BertBackbone(config), preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> history = encoder.fit((["cat", "dog"], ["cat cat", "dog dog"]), verbose=0)
        >>> sorted(history.history)
        ['accuracy', 'active_dims', 'loss', 'penalty']
        >>> corpus = encoder.encode_documents(["cat", "dog cat"], verbose=0)
        >>> corpus.shape, len(corpus.words(tokenizer))
        ((2, 6), 2)
        >>> corpus.scores(encoder.encode_queries(["dog"], verbose=0)).shape
        (1, 2)

    References:
        Formal et al. 2021, SPLADE v2, arXiv:2109.10086; Lassance et al. 2024, SPLADE-v3, arXiv:2403.06789; the penalty:
        Paria et al. 2020, arXiv:2004.05665. `SparseEncoder` of sentence-transformers.
    """

    pipeline: SparseInputs
    output_name = "weights"
    reads_pooled_output = False
    temperature = 1.0
    compares_cosines = False
    (encode,) = unavailable("Use `encode_queries(texts)` and `encode_documents(texts)`.", 1)

    def __init__(
        self,
        backbone: BertBackbone,
        pooling: str = "max",
        *,
        activation: str = "relu",
        max_active_dims: int | None = None,
        query_penalty: float = 5e-5,
        document_penalty: float = 3e-5,
        warmup_steps: int = 1000,
        query_weights: str | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt: str | None = None,
        preprocessor: BertPreprocessor | None = None,
        head_activation: str | None = None,
        head_layer_norm_epsilon: float | None = None,
        tie_weights: bool = True,
        name: str | None = None,
    ):
        check_parts(OWNER, backbone, preprocessor)
        make = functools.partial(SparseHead, pooling=pooling, weighting=activation, query_weights=query_weights)
        options: dict[str, Any] = {"activation": head_activation, "layer_norm_epsilon": head_layer_norm_epsilon}
        head = masked_lm_head(backbone, tie_weights=tie_weights, make=make, **options)
        outputs = head(backbone(backbone.input)["sequence_output"], padding_mask=backbone.input["padding_mask"])
        parts: dict[str, keras.Model] = {}
        if query_weights is not None:
            prompts = {_QUERY: "", **(prompts or {})}
            parts[_QUERY] = keras.Model(backbone.input, _looked_up(head, backbone.input))
        all_prompts = Prompts(OWNER, prompts, default_prompt, parts=parts)
        pipeline = SparseInputs(OWNER, preprocessor, outputs.shape[-1])
        pipeline.query_part = next(iter(parts), None)
        super().__init__(backbone, pipeline.prompted(all_prompts.text()), outputs=outputs, parts=parts, name=name)
        self._prompts, self.pooling, self.activation = all_prompts, pooling, activation
        self.max_active_dims = max_active_dims
        self.query_penalty = checks.share(OWNER, "query_penalty", query_penalty)
        self.document_penalty = checks.share(OWNER, "document_penalty", document_penalty)
        self.warmup_steps = checks.whole_number(OWNER, "warmup_steps", warmup_steps)
        self.query_weights = query_weights
        self.head_activation, self.tie_weights = head_activation, tie_weights
        self.head_layer_norm_epsilon = head_layer_norm_epsilon
        self._comparison = Comparison(self, normalize=False)
        self._correlation, self._accuracy = self._comparison.correlation, self._comparison.accuracy
        self._penalty, self._active_dims = _Penalty(self, name="penalty"), keras.metrics.Mean(name="active_dims")
        self.compile()

    max_active_dims = Setting(_OPTIONAL_COUNT, holder="pipeline", doc="How many weights of a text are kept; None: all.")

    @property
    def prompts(self) -> dict[str, str] | None:
        """The prompts by name; None for none."""
        return dict(self._prompts.by_name) or None

    @property
    def default_prompt(self) -> str | None:
        """The name of the prompt before every text, or None."""
        return self._prompts.default

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
        """The sparse vectors of texts, or the dot products of pairs; see `BertSentenceEncoder.predict`.

        Of ids, the weights of the whole vocabulary, float32 `(batch, vocabulary_size)`.
        """
        pipeline = self._prompts.pipeline(self, prompt, x)
        options = {"verbose": verbose, "steps": steps, "callbacks": callbacks}
        return self.predictor.predict(pipeline, x, batch_size, max_tokens_per_batch, **options)

    def encode_queries(self, texts: Strings, batch_size: int | None = None, **kwargs: Any) -> SparseVectors:
        """Encodes queries: `predict` with the prompt `"query"`, or without a prompt if there is none of that name."""
        return self.predict(texts, batch_size, prompt=self._prompts.of_side("query"), **kwargs)

    def encode_documents(self, texts: Strings, batch_size: int | None = None, **kwargs: Any) -> SparseVectors:
        """Encodes documents: `predict` with the prompt `"document"`, or without a prompt; as `encode_queries`."""
        return self.predict(texts, batch_size, prompt=self._prompts.of_side("document"), **kwargs)

    def similarity(
        self, queries: Strings | SparseVectors, documents: Strings | SparseVectors, batch_size: int | None = None
    ) -> np.ndarray:
        """The dot product of each query with each document, float32 `(queries, documents)`.

        Args:
            queries: a list of texts, one text, or `SparseVectors` of `encode_queries`.
            documents: the same, of `encode_documents`.
            batch_size: texts per step.
        """
        return scores_of_texts(self, SparseVectors, queries, documents, batch_size)

    @on_real_rows
    def compute_loss(
        self, x: Ids | None = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The loss of compared texts, as that of a `BertSentenceEncoder` of dot products; and the penalty."""
        compiled = functools.partial(super().compute_loss, x=x, training=training)
        y_pred = self._with_queries(x, y, y_pred)
        loss = self._comparison.loss(compiled, y, y_pred, sample_weight)
        return loss + self._penalty_of(y, y_pred, training)

    def _with_queries(self, x: Any, y: Any, y_pred: Any) -> Any:
        """The vectors of a batch, those of the first text of each row by `query_weights` if there are some."""
        if self.query_weights is None or not isinstance(y, dict):
            return y_pred
        ops, rows = keras.ops, self._comparison.by_row(y, y_pred)
        first = {name: ids[:: ops.shape(rows)[1]] for name, ids in x.items()}
        queries = _looked_up(self.get_layer("masked_lm_head"), first)[:, None]
        return ops.reshape(ops.concatenate([queries, rows[:, 1:]], axis=1), (-1, y_pred.shape[-1]))

    def _penalty_of(self, y: Any, y_pred: Tensor, training: bool) -> Any:
        """The penalty of a batch, which the metrics count too."""
        ops, step, y = keras.ops, self._penalty.steps, y if isinstance(y, dict) else {}
        rows, first = (self._comparison.by_row(y, y_pred), 1) if y else (y_pred[:, None], 0)  # single texts: documents
        is_there = ops.cast(y[TEXTS] != ABSENT, rows.dtype) if TEXTS in y else ops.ones_like(rows[..., 0])
        factor = ops.minimum(1.0, ops.square(step / max(1, self.warmup_steps))) if self.warmup_steps else 1.0
        penalty = self.document_penalty * _flops(rows[:, first:], is_there[:, first:])
        if first and self.query_weights is None:
            penalty += self.query_penalty * _flops(rows[:, :1], is_there[:, :1])
        penalty = factor * penalty
        if training:
            step.assign_add(1.0)
        self._penalty.update_state(ops.stop_gradient(penalty))
        num_active = ops.sum(ops.cast(rows > 0, "float32"), axis=-1)
        self._active_dims.update_state(num_active, sample_weight=is_there)
        return penalty

    @on_real_rows
    def compute_metrics(self, x: Ids, y: Outputs, y_pred: Outputs, sample_weight: Any = None) -> dict[str, Any]:
        """The metrics for this kind of data, on the same values as the loss."""
        y_pred = self._with_queries(x, y, y_pred)
        return self._comparison.metrics(super().compute_metrics, x, y, y_pred, sample_weight)

    def get_metrics_result(self) -> dict[str, Any]:
        """The results of the metrics for the kind of data of the last batch."""
        return self._comparison.results()

    def default_loss(self) -> keras.losses.Loss:
        """The squared difference of the cosine of a pair and its similarity.

        Pairs and triplets without similarities have their own loss, and need this default to be compiled.
        """
        return keras.losses.MeanSquaredError()

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """As of a `BertSentenceEncoder`; every kind of data has `"penalty"` and `"active_dims"` too."""
        return [keras.metrics.MeanAbsoluteError(name="mean_absolute_error")]

    def export_search(
        self,
        path: str | PathLike[str],
        documents: Documents,
        ids: Sequence[str] | Sequence[int] | None = None,
        *,
        top_k: int = 10,
        cross_encoder: TextTask | None = None,
        **options: Any,
    ) -> Path:
        """Writes one SavedModel with the encoder and a corpus, which takes queries and returns the best documents.

        `tasks.serving.search.export_search` documents the arguments, the options, the answers and the errors.
        """
        return export_search(self, path, documents, ids, top_k=top_k, cross_encoder=cross_encoder, **options)

    def serve_side(self, side: str, texts: Tensor) -> Any:
        """The weights of queries or documents, `side`, in graph: `(batch, vocabulary_size)`, the kept ones above 0."""
        outputs = tf.cast(self._run_prompted(self._prompts.of_side(side), texts), tf.float32)
        if self.max_active_dims is None:
            return outputs
        weights, ids = tf.math.top_k(outputs, min(self.max_active_dims, outputs.shape[1]))
        rows = tf.broadcast_to(tf.range(tf.shape(ids)[0])[:, None], tf.shape(ids))
        return tf.scatter_nd(tf.stack([rows, ids], axis=-1), weights, tf.shape(outputs))

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Strings to `token` and `weight`."""
        return self.decode(self.run(self.pipeline.ids(*texts)))

    def decode(self, outputs: Tensor) -> dict[str, Any]:
        """Weights of the vocabulary to `token` and `weight`, the largest first; in graph."""
        names = self.preprocessor.tokenizer.readable_tokens()
        outputs = tf.cast(outputs, tf.float32)[:, : len(names)]
        most = tf.reduce_max(tf.concat([[0], tf.math.count_nonzero(outputs, axis=1, dtype=tf.int32)], axis=0))
        most = most if self.max_active_dims is None else tf.minimum(most, self.max_active_dims)
        weights, ids = tf.math.top_k(outputs, most)
        return {"token": tf.where(weights > 0, tf.gather(tf.constant(names), ids), ""), "weight": weights}

    def serve_prompted(self, prompt: str, *texts: Tensor) -> dict[str, Any]:
        """Strings, read after the text of a prompt, to `token` and `weight`."""
        return self.decode(self._run_prompted(prompt, *texts))

    def _run_prompted(self, prompt: str, *texts: Tensor) -> Any:
        """The vectors of texts after a prompt, in graph."""
        ids = self.pipeline.prompted(self._prompts.text(prompt)).ids(*texts)
        return self.run(ids, self._prompts.part(prompt))

    def signatures(self) -> list[Signature]:
        """The signatures of all tasks, and one for each prompt."""
        return super().signatures() + ([] if self.preprocessor is None else self._prompts.signatures(self))

    def onnx_functions(self) -> onnx.Functions:
        """The signature `serving_default`, and one for each prompt."""
        prompts = {name: functools.partial(self._onnx_answers, name) for name in self._prompts.by_name}
        return {"serving_default": functools.partial(self._onnx_answers, None), **prompts}

    def _onnx_answers(self, prompt: str | None, model: onnx.OnnxModel, text: onnx.Tensor) -> dict[str, onnx.Answer]:
        rows = model.rows(text, prompt=None if prompt is None else self._prompts.text(prompt))
        names, graph = self.preprocessor.tokenizer.readable_tokens(), model.graph
        is_query = self._prompts.part(prompt) is not None
        values = self._onnx_queries(model, rows) if is_query else self._onnx_documents(model, rows)
        most = (values > 0).cast(onnx.INT64).reduced("Sum", 1).reduced("Max").reshape(1)
        most = most if self.max_active_dims is None else most.minimum(self.max_active_dims)
        weights, ids = graph.add("TopK", values, most, outputs=[onnx.FLOAT, onnx.INT64], axis=-1)
        tokens = graph.constant([*names, ""]).take((weights > 0).where(ids, len(names)))
        return {"token": onnx.Answer(tokens, (None, None)), "weight": onnx.Answer(weights, (None, None))}

    def _onnx_queries(self, model: onnx.OnnxModel, rows: onnx.Rows) -> onnx.Tensor:
        """The weights of the tokens of queries, `(batch, vocabulary_size)`."""
        graph, size = model.graph, len(self.preprocessor.tokenizer.readable_tokens())
        num_rows, place = rows.ids.size(0), graph.range(rows.ids.size(1))
        is_inside = (place > 0) & (place < rows.num_tokens.cast(onnx.INT64).column() - 1)
        cells = is_inside.where(rows.ids, size) + (graph.range(num_rows) * (size + 1)).column()
        cells, nothing = cells.reshape(-1), graph.range(num_rows * (size + 1)).filled(0.0, onnx.FLOAT)
        is_there = nothing.scattered(cells, cells.filled(1.0, onnx.FLOAT)).reshape(num_rows, size + 1)
        weights = keras.ops.convert_to_numpy(self.get_layer("masked_lm_head").queries.token_weights)
        return is_there.slice(0, size, 1) * graph.constant(weights[:size], onnx.FLOAT)

    def _onnx_documents(self, model: onnx.OnnxModel, rows: onnx.Rows) -> onnx.Tensor:
        """The weights of the vocabulary, `(batch, vocabulary_size)`."""
        names, graph, hidden = self.preprocessor.tokenizer.readable_tokens(), model.graph, model.hidden(rows)
        logits = onnx_logits(self.get_layer("masked_lm_head"), hidden.reshape(-1, hidden.size(2)))
        logits = logits.slice(0, len(names), 1).reshape(hidden.size(0), hidden.size(1), len(names))
        values = onnx.pooled(logits, rows.mask, "max") if self.pooling == "max" else logits
        for _ in range(1 + (self.activation == "log1p_relu")):
            values = graph.add("Log", graph.add("Relu", values) + 1.0)
        if self.pooling == "sum":
            values = (values * rows.mask.cast(onnx.FLOAT).column(2)).reduced("Sum", 1)
        return values


def _looked_up(head: Any, ids: Ids) -> Any:
    """The vectors of queries that no encoder reads."""
    return head.queries(ids["token_ids"], ids["padding_mask"])


class _Penalty(keras.metrics.Mean):
    """The mean penalty of an epoch, and the number of training steps so far, by which it grows.

    JAX computes the loss without the variables of the optimizer, which counts the steps, and with those of metrics.
    """

    def __init__(self, task: Task, **kwargs: Any):
        super().__init__(**kwargs)
        self._task = Untracked(task)
        self.steps = self.add_variable((), initializer="zeros", dtype="float32", name="steps")

    def reset_state(self) -> None:
        """Begins an epoch; the number of steps is that of the optimizer, which is saved."""
        super().reset_state()
        optimizer = self._task.value.optimizer
        self.steps.assign(0 if optimizer is None else keras.ops.cast(optimizer.iterations, "float32"))


def _flops(vectors: Tensor, is_there: Tensor) -> Any:
    """The squares of the mean weights of `(batch, texts, vocabulary_size)`, of the texts that are there, summed."""
    means = keras.ops.einsum("btv,bt->v", vectors, is_there) / keras.ops.maximum(keras.ops.sum(is_there), 1.0)
    return keras.ops.sum(keras.ops.square(means))
