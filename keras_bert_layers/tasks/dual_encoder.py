"""Queries and documents as vectors, near each other where a document answers a query."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export import Signature
from keras_bert_layers.export._batching import refuse_foreign_padding
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks import _contrastive as contrastive
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._length_batches import LengthBatches, on_host
from keras_bert_layers.tasks._vector_task import VectorTask, id_inputs, text_encoder

SIDES = QUERY, DOCUMENT = "query", "document"


@register
class BertDualEncoder(VectorTask):
    """Two encoders for search: queries and documents to vectors whose dot product is the score.

    It trains on pairs of a query and a document that answers it, where the documents of the other rows are the wrong
    answers, and where wanted on wrong answers that are hard to tell (hard negatives) besides:

    `x = (queries, documents)` or `x = (queries, documents, negatives)`, and no `y`. `negatives` holds one text a row or
    a list of texts a row; rows with fewer are filled up with empty strings, which do not count. The loss is the cross
    entropy of each row's own document among all documents and negatives of the batch, so a larger batch is a harder
    task. Texts that are equal byte for byte are never each other's wrong answer: what is a right answer of a query in
    one row of the batch is left out of the wrong answers of that query in every row.

    Args:
        backbone: the `BertBackbone` of the queries, and of the documents too where they have none of their own.
        document_backbone: the `BertBackbone` of the documents, as wide as the other; None shares one.
        pooling: `"mean"`, `"cls"` or `"max"` over the real tokens.
        normalize: whether vectors have Euclidean length 1, so that their dot product is the cosine.
        temperature: what the dot products are divided by in the loss. None is 0.05 for normalised vectors and 1 for
            others.
        symmetric: whether the loss also looks for each document's own query among the queries of the batch; it is then
            the mean of both directions.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text.
        document_preprocessor: the `BertPreprocessor` of the documents, for another `max_length`; None is the same one.
        name: the model's name.

    Returns:
        From a call on `{"query": ids, "document": ids}`: float32 vectors `{"query": (queries, hidden_dim), "document":
        (documents, hidden_dim)}`. From `predict` on texts: the vectors of queries, as `serving_default` of the exported
        model; from `predict` on a tuple of queries and documents: their scores `(rows,)`. `encode_queries` and
        `encode_documents` encode a corpus.

    Raises:
        TypeError: a backbone or a preprocessor that is none; a call on text; a dictionary; a generator to `fit`.
        ValueError: an unknown pooling; backbones of different widths; single texts or `y` in `fit`.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "who"])
        >>> encoder = kbl.BertDualEncoder(kbl.BertBackbone(config), preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> queries, documents = ["who cat", "who dog"], ["cat cat", "dog dog"]
        >>> history = encoder.fit((queries, documents), verbose=0)
        >>> history = encoder.fit((queries, documents, [["dog", "dog cat"], ["cat"]]), verbose=0)  # with hard negatives
        >>> corpus = encoder.encode_documents(["cat", "dog", "cat dog"], verbose=0)
        >>> scores = encoder.encode_queries(["who dog"], verbose=0) @ corpus.T
        >>> scores.shape
        (1, 3)

    References:
        Karpukhin et al. 2020, Dense Passage Retrieval, arXiv:2004.04906, section 3; Reimers and Gurevych 2019,
        arXiv:1908.10084.
    """

    def __init__(
        self,
        backbone: BertBackbone,
        document_backbone: BertBackbone | None = None,
        *,
        pooling: str = "mean",
        normalize: bool = True,
        temperature: float | None = None,
        symmetric: bool = False,
        preprocessor: BertPreprocessor | None = None,
        document_preprocessor: BertPreprocessor | None = None,
        name: str | None = None,
    ):
        self._check_parts(backbone, preprocessor)
        self._check_document_parts(backbone, document_backbone, preprocessor, document_preprocessor)
        checks.boolean("BertDualEncoder", "normalize", normalize)
        checks.boolean("BertDualEncoder", "symmetric", symmetric)
        if temperature is not None:
            checks.positive_number("BertDualEncoder", "temperature", temperature)
        document_backbone = None if document_backbone is backbone else document_backbone
        encoders = {QUERY: text_encoder(backbone, pooling, normalize, name="query_encoder")}
        encoders[DOCUMENT] = encoders[QUERY]
        if document_backbone is not None:
            encoders[DOCUMENT] = text_encoder(document_backbone, pooling, normalize, name="document_encoder")
        inputs = {side: id_inputs(side) for side in SIDES}
        outputs = {side: encoders[side](inputs[side]) for side in SIDES}
        super().__init__(backbone, preprocessor, inputs=inputs, outputs=outputs, name=name)
        self.document_backbone = document_backbone
        self.document_preprocessor: Any = document_preprocessor
        self.pooling = pooling
        self.normalize = normalize
        self.temperature = (0.05 if normalize else 1.0) if temperature is None else temperature
        self.symmetric = symmetric

    def _backbones(self) -> list[BertBackbone]:
        return [self.backbone, self.document_backbone or self.backbone]

    def _encoder(self, side: str) -> keras.Model:
        """Ids to vectors, of queries or of documents."""
        is_query = side == QUERY or self.document_backbone is None
        return self.get_layer("query_encoder" if is_query else "document_encoder")

    @classmethod
    def _check_document_parts(cls, backbone: Any, other: Any, preprocessor: Any, other_preprocessor: Any) -> None:
        if other is not None and not isinstance(other, BertBackbone):
            cure = "None shares the other one."
            raise TypeError(checks.message(cls.__name__, "document_backbone", "be a BertBackbone or None", other, cure))
        if other_preprocessor is not None and (
            preprocessor is None or not isinstance(other_preprocessor, BertPreprocessor)
        ):
            rule = "be a BertPreprocessor beside `preprocessor`, or None"
            raise TypeError(checks.message(cls.__name__, "document_preprocessor", rule, other_preprocessor))
        other = other or backbone
        if other.config.hidden_dim != backbone.config.hidden_dim:
            rule = f"have the other backbone's `hidden_dim` ({backbone.config.hidden_dim})"
            raise ValueError(checks.message(cls.__name__, "document_backbone", rule, other.config.hidden_dim))
        if preprocessor is not None:
            cls._check_sizes(other.config, other_preprocessor or preprocessor)

    def default_loss(self) -> keras.losses.Loss:
        """Cross entropy of each query's own document; a loss gets row numbers and logits `(batch, candidates)`."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The share of queries whose own document ranks first in their batch, named `"accuracy"`."""
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def preprocess(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of text; the documents of all rows first, then their first negatives, and so on."""
        if y is not None:
            self._refuse_labels(y)
        if not isinstance(x, tuple):
            return (self._stream_preprocessor()(x),)
        texts = contrastive.joined(x)  # [B, 2 + negatives]
        features = {
            QUERY: self._stream_preprocessor()(texts[:, 0]),
            DOCUMENT: self._stream_preprocessor(self.document_preprocessor)(contrastive.column_by_column(texts[:, 1:])),
        }
        labels = {contrastive.TEXTS: contrastive.text_numbers(texts)}
        return (features, labels) if sample_weight is None else (features, labels, sample_weight)

    def encode_labels(self, y: Any) -> Any:
        """Refuses labels: the rows themselves say what belongs together."""
        return self._refuse_labels(y)

    def _refuse_labels(self, y: Any) -> Any:
        cure = (
            "Queries and their documents are one tuple: `fit((queries, documents))`. In `validation_data` and from a "
            "dataset: `((queries, documents),)`."
        )
        raise ValueError(checks.message("BertDualEncoder", "y", "be None", type(y), cure))

    def _require_labels(self, x: Any, y: Any) -> None:
        if not text_data.is_pair(x):
            rule = "be a tuple of queries, documents and, if there are any, negatives"
            raise ValueError(checks.message("BertDualEncoder", "x", rule, type(x)))

    def _needs_preprocessing(self, x: Any) -> bool:
        return not text_data.holds_ids(x, QUERY) and super()._needs_preprocessing(x)

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The compiled loss, of row numbers and the logits of all candidates."""
        labels, logits = self._compared(y, y_pred)
        if self.symmetric:
            logits = contrastive.in_both_directions(logits)
            labels = keras.ops.concatenate([labels, labels])
            if sample_weight is not None:
                sample_weight = keras.ops.concatenate([sample_weight, sample_weight])
        return super().compute_loss(x=x, y=labels, y_pred=logits, sample_weight=sample_weight, training=training)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """The compiled metrics, of row numbers and the logits of all candidates."""
        labels, logits = self._compared(y, y_pred)
        return super().compute_metrics(x, labels, logits, sample_weight)

    def _compared(self, y: Any, y_pred: Any) -> tuple[Any, Any]:
        logits = contrastive.in_batch_logits(
            y_pred[QUERY],
            y_pred[DOCUMENT],
            temperature=self.temperature,
            texts=y[contrastive.TEXTS] if isinstance(y, dict) else None,
        )
        return contrastive.row_numbers(logits), logits

    def encode_queries(self, texts: Any, batch_size: int | None = None, **kwargs: Any) -> np.ndarray:
        """The vectors of queries, as `encode_documents` gives those of documents."""
        return self._encode(QUERY, texts, batch_size, **kwargs)

    def encode_documents(self, texts: Any, batch_size: int | None = None, **kwargs: Any) -> np.ndarray:
        """The vectors of many documents, whatever their order: texts of one length are encoded together.

        Args:
            texts: a list, array, tensor or pandas column of strings, a `tf.data.Dataset` of batches of them, or an
                iterable that gives one at a time; it may be empty.
            batch_size: the most texts a step.
            **kwargs: `max_tokens_per_batch`, `steps`, `callbacks` and `verbose`, which is 1, as in `predict`.

        Returns:
            float32 `(texts, hidden_dim)`, in the order of the texts. Search with `queries @ documents.T`, or give them
            to a library for vectors.

        Raises:
            TypeError, ValueError: what `predict` refuses.
        """
        return self._encode(DOCUMENT, texts, batch_size, **kwargs)

    def _encode(self, side: str, texts: Any, batch_size: int | None, **kwargs: Any) -> np.ndarray:
        if not self._needs_preprocessing(texts):
            cure = "Use `predict` on ids."
            raise ValueError(checks.message("BertDualEncoder", "texts", "be texts", type(texts), cure))

        def compute(columns: Any, batches: LengthBatches) -> np.ndarray:
            if isinstance(columns, tuple):
                raise ValueError(checks.message("BertDualEncoder", "texts", "be single texts", "a tuple"))
            return self._vectors(side, columns, batches)

        blocks = list(self._predicted_blocks(texts, batch_size, compute=compute, **kwargs))
        return np.concatenate([self._no_vectors(), *blocks])

    def _vectors(self, side: str, texts: Any, batches: LengthBatches, share: float = 1.0) -> np.ndarray:
        """The vectors of a block of queries or documents, which is this share of the work on the block."""
        preprocessor = self._stream_preprocessor(self.document_preprocessor if side == DOCUMENT else None)
        step = self._compiled_step(self._encoder(side))
        return batches.run(step, on_host(preprocessor, texts), preprocessor, share=share)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The vectors of queries; of queries and documents, their scores `(rows,)`; arguments as of all tasks."""
        self._refuse_negatives(x)
        if text_data.holds_ids(x):
            return self._encoder(QUERY).predict(x, *args, **kwargs)
        return super().predict(x, *args, **kwargs)

    def _block_outputs(self, columns: Any, batches: LengthBatches) -> np.ndarray:
        self._refuse_negatives(columns)
        if not isinstance(columns, tuple):
            return self._vectors(QUERY, columns, batches)
        sides = zip(SIDES, columns, strict=True)
        return _scores({side: self._vectors(side, texts, batches, share=0.5) for side, texts in sides})

    def _no_outputs(self, x: Any) -> np.ndarray:
        vectors = self._no_vectors()
        return _scores({QUERY: vectors, DOCUMENT: vectors}) if text_data.is_pair(x) else vectors

    def predict_on_batch(self, x: Any) -> Any:
        """The vectors of one batch of queries, or the scores of one batch of queries and documents."""
        self._refuse_negatives(x)
        ids = self._one_batch(x)[0]
        if text_data.holds_ids(ids):
            return self._encoder(QUERY).predict_on_batch(ids)
        found = super().predict_on_batch(ids)
        return _scores(found) if self._needs_preprocessing(x) else found

    def signatures(self) -> list[Signature]:
        """What the exported model can be asked; queries by those that all tasks have, and documents by their own."""
        found = super().signatures()
        ids, texts = self.id_inputs(), self.text_inputs()
        found.append(Signature("document_token_ids", self._serve_given_document_ids, ids))
        if self.preprocessor is not None:
            found.append(Signature("query", self._serve, texts))
            found.append(Signature("document", self._serve_document, texts))
            found.append(Signature("document_tokenize", self._serve_document_tokens, texts))
        return found

    @property
    def _served_inputs(self) -> dict[str, Any]:
        return self.backbone.input

    def _serve(self, *texts: Any) -> dict[str, Any]:
        """Queries to `embedding`."""
        return self._serve_ids(**self._serve_tokens(*texts))

    def _serve_ids(self, token_ids: Any, segment_ids: Any, padding_mask: Any) -> dict[str, Any]:
        ids = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}
        return {self.output_name: self._run_model(ids, self._encoder(QUERY))}

    def _serve_document(self, text: Any) -> dict[str, Any]:
        """Documents to `embedding`."""
        return self._serve_document_ids(**self._serve_document_tokens(text))

    def _serve_given_document_ids(self, token_ids: Any, segment_ids: Any, padding_mask: Any) -> dict[str, Any]:
        token_ids = refuse_foreign_padding("BertDualEncoder", token_ids, padding_mask)
        return self._serve_document_ids(token_ids, segment_ids, padding_mask)

    def _serve_document_ids(self, token_ids: Any, segment_ids: Any, padding_mask: Any) -> dict[str, Any]:
        ids = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}
        return {self.output_name: self._run_model(ids, self._encoder(DOCUMENT))}

    def _serve_document_tokens(self, text: Any) -> dict[str, Any]:
        return traced_once(self.document_preprocessor or self.preprocessor, text)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = super().get_config()
        for key in ("document_backbone", "document_preprocessor"):
            part = getattr(self, key)
            config[key] = None if part is None else keras.saving.serialize_keras_object(part)
        config.update(
            pooling=self.pooling, normalize=self.normalize, temperature=self.temperature, symmetric=self.symmetric
        )
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> BertDualEncoder:
        """The task from `get_config`, with fresh weights."""
        config = dict(config)
        for key in ("document_backbone", "document_preprocessor"):
            if config[key] is not None:
                config[key] = keras.saving.deserialize_keras_object(config[key], custom_objects=custom_objects)
        return super().from_config(config, custom_objects)


def _scores(found: dict[str, np.ndarray]) -> np.ndarray:
    """The dot product of each row's query and document."""
    return np.sum(found[QUERY] * found[DOCUMENT], axis=-1)
