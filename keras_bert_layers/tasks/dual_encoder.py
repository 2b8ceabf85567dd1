"""Dense retrieval: queries and documents as vectors, close where a document answers a query."""

import functools
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import unavailable
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Ids, Outputs, Strings, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export import Signature, onnx
from keras_bert_layers.export.search.corpus import Documents
from keras_bert_layers.export.text_task import TextTask
from keras_bert_layers.losses import in_batch
from keras_bert_layers.losses.vectors import SIMILARITY, TEXTS
from keras_bert_layers.metrics import SpearmanCorrelation
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.preprocessors.long_texts import HeadTail, Windows, as_long_texts
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.feeding.global_batches import on_real_rows
from keras_bert_layers.tasks.graphs.heads import check_parts, check_sizes
from keras_bert_layers.tasks.graphs.settings import Setting
from keras_bert_layers.tasks.graphs.vectors import Pooling, as_given, id_inputs, text_encoder
from keras_bert_layers.tasks.inputs import QueryInputs
from keras_bert_layers.tasks.inputs.comparisons import DOCUMENT, QUERY, SIDES, labels_for
from keras_bert_layers.tasks.serving.prompts import RETRIEVAL, Prompts
from keras_bert_layers.tasks.serving.search import export_search
from keras_bert_layers.tasks.serving.signatures import signature_of_ids
from keras_bert_layers.tasks.task import Task


@register
class BertDualEncoder(Task):
    """Encodes queries and documents for search, as vectors whose dot product is the score.

    It trains on pairs of a query and a document that answers it. The documents of the other rows are the negatives; you
    can add hard negatives, documents that look right and are wrong:

    `x = (queries, documents)` or `x = (queries, documents, negatives)`, without `y`. `negatives` has one text or a list
    of texts per row; shorter lists are padded with empty strings, which do not count. The loss is the cross entropy of
    each row's own document among all documents and negatives of the batch, so a larger batch is a harder task. Texts
    that are equal byte for byte are never negatives of each other: a correct answer to a query in one row of the batch
    is not a negative of that query in any row.

    Args:
        backbone: the `BertBackbone` of the queries, and of the documents too if they have no other. Of the adapters of
            Jina embeddings v3, queries use `"retrieval.query"` and documents `"retrieval.passage"`.
        document_backbone: the `BertBackbone` of the documents, of the same width; None shares the one of the queries.
        pooling: `"mean"`, `"cls"`, `"max"`, or another mode of a `SequencePooling`, or a sequence of modes, whose
            vectors are put side by side.
        normalize: whether vectors have Euclidean length 1, so that their dot product is the cosine.
        temperature: divides the dot products in the loss. None is 0.05 for normalized vectors and 1 for others.
        symmetric: whether the loss also finds each document's own query among the queries of the batch, and is the mean
            of both directions.
        prompts: texts that the model reads before every query and before every document, in training too:
            `{"query": text, "document": text}`, or one of them.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text.
        document_preprocessor: the `BertPreprocessor` of the documents, for another `max_length`; None shares the
            one of the queries.
        long_texts: what is read of queries and documents longer than the `max_length` of their preprocessor: None for
            their beginning; `"head_tail"`, or a `preprocessing.HeadTail`, for both ends; `"windows"`, or a
            `preprocessing.Windows`, for all of it, with the vectors of windows averaged before they are normalized.
        name: the model's name.

    Returns:
        A call on `{"query": ids, "document": ids}` returns float32 vectors `{"query": (queries, hidden_dim),
        "document": (documents, hidden_dim)}`. `predict` on texts returns the vectors of queries, as does
        `serving_default` of the exported model; `predict` on a tuple of queries and documents returns their scores
        `(rows,)`. `encode_queries` and `encode_documents` encode a corpus.

    Raises:
        TypeError: a backbone or a preprocessor of another type; a call on text; a dictionary.
        ValueError: an unknown pooling; backbones of different widths; single texts or `y` in `fit`.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "who"])
        >>> encoder = kbl.BertDualEncoder(kbl.BertBackbone(config), preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> queries, documents = ["who cat", "who dog"], ["cat cat", "dog dog"]
        >>> negatives = [["dog", "dog cat"], ["cat"]]  # hard ones, which may be left out
        >>> history = encoder.fit((queries, documents, negatives), verbose=0)
        >>> corpus = encoder.encode_documents(["cat", "dog", "cat dog"], verbose=0)
        >>> scores = encoder.encode_queries(["who dog"], verbose=0) @ corpus.T
        >>> scores.shape
        (1, 3)

    References:
        Karpukhin et al. 2020, Dense Passage Retrieval, arXiv:2004.04906, section 3; Reimers and Gurevych 2019,
        arXiv:1908.10084.
    """

    pipeline: QueryInputs
    output_name = "embedding"
    reads_pooled_output = False
    compares_cosines = False
    (encode,) = unavailable("Use `encode_queries(texts)` and `encode_documents(texts)`.", 1)
    part = QUERY

    def __init__(
        self,
        backbone: BertBackbone,
        document_backbone: BertBackbone | None = None,
        *,
        pooling: Pooling = "mean",
        normalize: bool = True,
        temperature: float | None = None,
        symmetric: bool = False,
        prompts: Mapping[str, str] | None = None,
        preprocessor: BertPreprocessor | None = None,
        document_preprocessor: BertPreprocessor | None = None,
        long_texts: str | HeadTail | Windows | None = None,
        name: str | None = None,
    ):
        owner = "BertDualEncoder"
        check_parts(owner, backbone, preprocessor)
        _check_document_parts(owner, backbone, document_backbone, preprocessor, document_preprocessor)
        checks.boolean(owner, "normalize", normalize)
        checks.boolean(owner, "symmetric", symmetric)
        checks.optional(checks.positive_number, owner, "temperature", temperature)
        document_backbone = None if document_backbone is backbone else document_backbone
        long_texts = as_long_texts(owner, long_texts, preprocessor, document_preprocessor, pooling="mean")
        make = functools.partial(text_encoder, pooling=pooling, normalize=normalize, long_texts=long_texts)
        by_side = Prompts(owner, prompts).by_name
        for side in by_side:
            checks.one_of(owner, "prompts", side, SIDES)
        pipeline = QueryInputs(owner, preprocessor, document_preprocessor, by_side)
        pipeline.long_texts = long_texts
        super().__init__(backbone, pipeline, **_graph(make, backbone, document_backbone), name=name)
        self.document_backbone = document_backbone
        self.document_preprocessor = document_preprocessor
        self.pooling = as_given(pooling)
        self._prompts = by_side
        self.normalize = normalize
        self.temperature = (0.05 if normalize else 1.0) if temperature is None else temperature
        self.symmetric = symmetric
        self.compile()

    @property
    def prompts(self) -> dict[str, str] | None:
        """The prompts before queries and documents, `"query"` and `"document"`; None without any."""
        return dict(self._prompts) or None

    document_preprocessor = Setting(holder="pipeline", doc="The preprocessor of the documents; None for the other one.")

    def default_loss(self) -> keras.losses.Loss:
        """Cross entropy of each query's own document; the loss gets row indices and logits `(batch, candidates)`."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The share of queries whose own document ranks first in their batch, named `"accuracy"`.

        Where a loss of `losses` compares pairs with similarities: Spearman's correlation of these and dot products.
        """
        if self.pipeline.loss is not None and self.pipeline.loss.labels == SIMILARITY:
            return [SpearmanCorrelation()]
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    @on_real_rows
    def compute_loss(
        self,
        x: Ids | None = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Outputs | None = None,
        training: bool = True,
    ) -> Any:
        """The compiled loss, on vectors if it is one of `losses`, or on row indices and the logits of candidates."""
        if self.pipeline.loss is not None:
            by_row, weights = {"y": labels_for(self, y), "y_pred": _by_row(y_pred)}, {"sample_weight": sample_weight}
            return super().compute_loss(x=x, **by_row, **weights, training=training)
        labels, logits = self._compared(y, y_pred)
        if self.symmetric:
            logits = in_batch.in_both_directions(logits)
            labels = keras.ops.concatenate([labels, labels])
            if sample_weight is not None:
                sample_weight = keras.ops.concatenate([sample_weight, sample_weight])
        return super().compute_loss(x=x, y=labels, y_pred=logits, sample_weight=sample_weight, training=training)

    @on_real_rows
    def compute_metrics(
        self, x: Ids, y: Tensor, y_pred: Tensor, sample_weight: Outputs | None = None
    ) -> dict[str, Any]:
        """The compiled metrics, on similarities and dot products, or on row indices and logits of all candidates."""
        labels, logits = self._compared(y, y_pred)
        return super().compute_metrics(x, labels, logits, sample_weight)

    def _compared(self, y: Tensor, y_pred: Tensor) -> tuple[Any, Any]:
        if isinstance(y, dict) and SIMILARITY in y:
            return y[SIMILARITY], keras.ops.sum(y_pred[QUERY] * y_pred[DOCUMENT], axis=-1, keepdims=True)
        logits = in_batch.in_batch_logits(
            y_pred[QUERY],
            y_pred[DOCUMENT],
            temperature=self.temperature,
            texts=y[TEXTS] if isinstance(y, dict) else None,
        )
        return in_batch.row_indices(logits), logits

    def encode_queries(self, texts: Strings, batch_size: int | None = None, **kwargs: Any) -> np.ndarray:
        """Encodes queries, as `encode_documents` encodes documents."""
        return self._encode(QUERY, texts, batch_size, **kwargs)

    def encode_documents(self, texts: Strings, batch_size: int | None = None, **kwargs: Any) -> np.ndarray:
        """Encodes documents as vectors; texts of similar length are encoded together, in any order.

        Args:
            texts: a list, array, tensor or pandas column of strings, a `tf.data.Dataset` of batches of them, or an
                iterable that yields one at a time; it may be empty.
            batch_size: the most texts per step.
            **kwargs: `max_tokens_per_batch`, `steps`, `callbacks` and `verbose`, which is 1, as in `predict`.

        Returns:
            float32 `(texts, hidden_dim)`, in the order of the texts. Search with `queries @ documents.T`, or with a
            vector search library.

        Raises:
            TypeError, ValueError: what `predict` refuses.
        """
        return self._encode(DOCUMENT, texts, batch_size, **kwargs)

    def _encode(self, side: str, texts: Strings, batch_size: int | None, **options: Any) -> np.ndarray:
        if not self.pipeline.is_raw(texts):
            cure = "Use `predict` on ids."
            raise ValueError(checks.message("BertDualEncoder", "texts", "be texts", type(texts), cure))
        return self.predictor.predict(self.pipeline.side(side), texts, batch_size, **options)

    def signatures(self) -> list[Signature]:
        """The signatures of all tasks, which answer queries, and those of documents."""
        found = super().signatures()
        found.append(signature_of_ids(self, "document_token_ids", DOCUMENT))
        if self.preprocessor is not None:
            texts = self.text_inputs()
            found.append(Signature("query", self.serve, texts))
            found.append(Signature("document", self._serve_document, texts))
            found.append(Signature("document_tokenize", self.pipeline.side(DOCUMENT).tokens, texts))
        return found

    def export_search(
        self,
        path: str | PathLike[str],
        documents: Documents,
        ids: Sequence[str] | Sequence[int] | None = None,
        *,
        format: str = "tf_saved_model",  # noqa: A002 - as `export` has it
        vectors: str = "float32",
        top_k: int = 10,
        cross_encoder: TextTask | None = None,
        **options: Any,
    ) -> Path:
        """Writes one file with the encoder and a corpus, which takes queries and returns the best documents.

        `tasks.serving.search.export_search` documents the arguments, the options, the answers and the errors.
        """
        options |= {"format": format, "vectors": vectors, "top_k": top_k, "cross_encoder": cross_encoder}
        return export_search(self, path, documents, ids, **options)

    def serve_side(self, side: str, texts: Tensor) -> Any:
        """The vectors of queries or documents, `side`, in graph."""
        return self.run(self.pipeline.side(side).ids(texts), side)

    def onnx_side(self, side: str, model: onnx.OnnxModel, texts: onnx.Tensor) -> onnx.Tensor:
        """`serve_side` in an ONNX file."""
        return self._onnx_answers(side, model, texts)[self.output_name].tensor

    def onnx_functions(self) -> onnx.Functions:
        """The signature `serving_default` for queries, and those named `query` and `document`."""
        sides = {side: functools.partial(self._onnx_answers, side) for side in SIDES}
        return {"serving_default": sides[QUERY], **sides}

    def _onnx_answers(self, side: str, model: onnx.OnnxModel, text: onnx.Tensor) -> dict[str, onnx.Answer]:
        own = side == DOCUMENT
        preprocessor = self.document_preprocessor if own else None
        rows = model.rows(text, preprocessor=preprocessor, prompt=self._prompts.get(side, ""))
        vectors = onnx.pooled(model.hidden(rows, self.document_backbone if own else None), rows.mask, self.pooling)
        vectors = onnx.unit_vectors(vectors) if self.normalize else vectors
        return {self.output_name: onnx.Answer(vectors, (None, self.output[side].shape[-1]))}

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Queries to `embedding`."""
        return {self.output_name: self.run(self.pipeline.ids(*texts))}

    def _serve_document(self, text: Tensor) -> dict[str, Any]:
        """Documents to `embedding`."""
        return {self.output_name: self.serve_side(DOCUMENT, text)}


def _by_row(vectors: dict[str, Any]) -> Any:
    """The vectors of all texts of each row, `(batch, texts, hidden_dim)`: its query, then its documents."""
    queries = vectors[QUERY]
    shape = (-1, keras.ops.shape(queries)[0], queries.shape[-1])
    documents = keras.ops.transpose(keras.ops.reshape(vectors[DOCUMENT], shape), (1, 0, 2))
    return keras.ops.concatenate([queries[:, None], documents], axis=1)


def _graph(make: Callable[..., Any], backbone: BertBackbone, document_backbone: BertBackbone | None) -> dict[str, Any]:
    """The inputs and outputs of both encoders, and the parts that each side goes through alone, for `Task`."""
    encoder, parts = make(backbone, part=QUERY, adapter=_adapter(backbone, QUERY))
    encoders = {QUERY: encoder, DOCUMENT: encoder}
    parts |= {(DOCUMENT, kind): model for (_, kind), model in parts.items()}
    if document_backbone is not None or _adapter(backbone, DOCUMENT):
        other = document_backbone or backbone
        encoders[DOCUMENT], of_documents = make(other, part=DOCUMENT, adapter=_adapter(other, DOCUMENT))
        parts |= of_documents
    inputs = {side: id_inputs(side, encoder.input["token_ids"].shape[1:]) for side in SIDES}
    outputs = {side: encoders[side](inputs[side]) for side in SIDES}
    return {"inputs": inputs, "outputs": outputs, "parts": {**encoders, **parts}}


def _adapter(backbone: BertBackbone, side: str) -> str | None:
    """The adapter of queries or documents, if the backbone has it."""
    return RETRIEVAL[side] if RETRIEVAL[side] in backbone.adapters else None


def _check_document_parts(
    owner: str,
    backbone: BertBackbone,
    document_backbone: Any,
    preprocessor: TextLayer | None,
    document_preprocessor: TextLayer | None,
) -> None:
    if document_backbone is not None and not isinstance(document_backbone, BertBackbone):
        cure = "None shares the backbone of the queries."
        rule = "be a BertBackbone or None"
        raise TypeError(checks.message(owner, "document_backbone", rule, document_backbone, cure))
    if document_preprocessor is not None and (
        preprocessor is None or not isinstance(document_preprocessor, BertPreprocessor)
    ):
        rule = "be a BertPreprocessor beside `preprocessor`, or None"
        raise TypeError(checks.message(owner, "document_preprocessor", rule, document_preprocessor))
    other = document_backbone or backbone
    if other.config.hidden_dim != backbone.config.hidden_dim:
        rule = f"have the other backbone's `hidden_dim` ({backbone.config.hidden_dim})"
        raise ValueError(checks.message(owner, "document_backbone", rule, other.config.hidden_dim))
    if preprocessor is not None:
        check_sizes(owner, other.config, document_preprocessor or preprocessor)
