"""Late interaction: a vector for each token of queries and documents, as ColBERT has them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import unavailable
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Ids, Outputs, Strings, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export import Signature, onnx
from keras_bert_layers.export.search.corpus import Documents
from keras_bert_layers.export.text_task import TextTask
from keras_bert_layers.losses import in_batch
from keras_bert_layers.losses.vectors import TEXTS
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks.comparison import scores_of_texts
from keras_bert_layers.tasks.feeding.global_batches import on_real_rows
from keras_bert_layers.tasks.graphs.heads import check_parts, check_sizes
from keras_bert_layers.tasks.graphs.token_vectors import token_vectors
from keras_bert_layers.tasks.inputs.comparisons import DOCUMENT, QUERY, SIDES, labels_for
from keras_bert_layers.tasks.inputs.token_inputs import TokenQueryInputs
from keras_bert_layers.tasks.inputs.token_vectors import TokenVectors, pooled_tokens
from keras_bert_layers.tasks.serving.prompts import Prompts
from keras_bert_layers.tasks.serving.search import export_search
from keras_bert_layers.tasks.serving.signatures import signature_of_ids
from keras_bert_layers.tasks.serving.token_match import TokenMatch
from keras_bert_layers.tasks.task import Task

OWNER = "BertMultiVectorEncoder"
_TEXTS = 256  # of which the tokens are found together
EXPANSIONS = (None, "unattended", "attended")


@register
class BertMultiVectorEncoder(Task):
    """Encodes queries and documents as one vector per token, which are compared token by token (ColBERT).

    The vectors are the sequence output after a dense layer without a bias, scaled to length 1. The score of a query and
    a document (MaxSim) is the sum, over the tokens of the query, of the largest cosine with a token of the document.
    All texts go through the same weights. It trains on the data of a `BertDualEncoder`:

    - `x = (queries, documents)` or `x = (queries, documents, negatives)`, without `y`: the loss is the cross entropy of
      each query's own document among all documents and negatives of the batch, of their scores.
    - `x = (queries, documents, negatives)`, `y` scores of a teacher for each document, or margins, with
      `compile(loss=losses.DistillKLDiv())` or `losses.MarginMSE()`, which read the scores of a row.

    Args:
        backbone: a `BertBackbone`.
        projection_dim: the width of the vectors.
        query_length: the most tokens of a query, special tokens and prompt included; None for the preprocessor's
            `max_length`.
        document_length: the same of a document.
        query_expansion: `"unattended"` or `"attended"` if a query is filled up to `query_length` with `[MASK]`, whose
            vectors count as those of its own tokens; its tokens attend to them only if they are `"attended"`. None for
            no such tokens.
        skiplist: tokens that a document has no vector of, such as `string.punctuation`. Those that the vocabulary does
            not have are left out.
        prompts: texts that the model reads before every query and every document, in training too:
            `{"query": "[Q] ", "document": "[D] "}`, or one of them.
        temperature: divides the scores in the loss of rows without `y`.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text.
        name: the model's name.

    Returns:
        A call on `{"query": ids, "document": ids}` returns float32 vectors `{"query": (queries, tokens,
        projection_dim), "document": (documents, tokens, projection_dim)}`, zeros for what does not count. `predict` on
        texts returns `TokenVectors` of queries, an array `(tokens, projection_dim)` for each; on a tuple of queries and
        documents their scores, float32 `(rows,)`. The exported model returns `token_vectors`, `(batch, tokens,
        projection_dim)`, and `mask`, 1 where a token counts; it has the signatures `query` and `document`.

    Raises:
        TypeError: a backbone or a preprocessor of another type; a call on text; a dictionary.
        ValueError: an argument out of range; an expansion or a skiplist without a preprocessor, or an expansion without
            `query_length`.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "who"])
        >>> backbone, preprocessor = kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer)
        >>> encoder = kbl.BertMultiVectorEncoder(backbone, projection_dim=5, preprocessor=preprocessor)
        >>> history = encoder.fit((["who cat", "who dog"], ["cat cat", "dog dog"]), verbose=0)
        >>> corpus = encoder.encode_documents(["cat", "dog", "cat dog"], verbose=0)
        >>> [vectors.shape for vectors in corpus]
        [(3, 5), (3, 5), (4, 5)]
        >>> encoder.similarity(["who dog"], corpus).shape
        (1, 3)
        >>> encoder.explain("who dog", "cat dog")[1].token
        'who'

    References:
        Khattab and Zaharia 2020, ColBERT, arXiv:2004.12832; Santhanam et al. 2022, ColBERTv2, arXiv:2112.01488;
        `MultiVectorEncoder` of sentence-transformers; PyLate.
    """

    pipeline: TokenQueryInputs
    output_name = "token_vectors"
    reads_pooled_output = False
    part = QUERY
    compares_cosines = False  # of vectors, which have length 1
    (encode,) = unavailable("Use `encode_queries(texts)` and `encode_documents(texts)`.", 1)

    def __init__(
        self,
        backbone: BertBackbone,
        projection_dim: int = 128,
        *,
        query_length: int | None = None,
        document_length: int | None = None,
        query_expansion: str | None = None,
        skiplist: Sequence[str] = (),
        prompts: Mapping[str, str] | None = None,
        temperature: float = 1.0,
        preprocessor: BertPreprocessor | None = None,
        name: str | None = None,
    ):
        check_parts(OWNER, backbone, preprocessor)
        checks.positive_integer(OWNER, "projection_dim", projection_dim)
        checks.positive_number(OWNER, "temperature", temperature)
        checks.one_of(OWNER, "query_expansion", query_expansion, EXPANSIONS)
        if query_expansion is not None and query_length is None:
            rule = "be given for a `query_expansion`, which fills queries up to it"
            raise ValueError(checks.message(OWNER, "query_length", rule, None))
        by_side, expansion = Prompts(OWNER, prompts).by_name, None
        skipped: list[int] = []
        for side in by_side:
            checks.one_of(OWNER, "prompts", side, SIDES)
        if query_expansion is not None or skiplist:
            if preprocessor is None:
                raise ValueError(checks.message(OWNER, "preprocessor", "be given, for the ids of tokens", None))
            tokenizer = preprocessor.tokenizer
            skipped = sorted({tokenizer.token_to_id(word) for word in set(skiplist) & set(tokenizer.all_tokens())})
            expansion = None if query_expansion is None else (tokenizer.mask_id, query_expansion == "attended")
        pipeline = TokenQueryInputs(OWNER, preprocessor, by_side, projection_dim)
        pipeline.lengths, pipeline.expands = {QUERY: query_length, DOCUMENT: document_length}, expansion is not None
        for side in SIDES if preprocessor is not None else ():
            check_sizes(OWNER, backbone.config, pipeline.side(side).preprocessor)
        graph = token_vectors(backbone, projection_dim, expansion=expansion, skipped=skipped)
        super().__init__(backbone, pipeline, **graph, name=name)
        self.projection_dim, self.temperature, self._prompts = projection_dim, temperature, by_side
        self.query_length, self.document_length = query_length, document_length
        self.query_expansion, self.skiplist, self._skipped = query_expansion, tuple(skiplist), skipped
        self.compile()

    @property
    def prompts(self) -> dict[str, str] | None:
        """The prompts before queries and documents, `"query"` and `"document"`; None without any."""
        return dict(self._prompts) or None

    def default_loss(self) -> keras.losses.Loss:
        """Cross entropy of each query's own document; the loss gets row indices and logits `(batch, candidates)`."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The share of queries whose own document ranks first in their batch, named `"accuracy"`."""
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    @on_real_rows
    def compute_loss(
        self,
        x: Ids | None = None,
        y: Outputs | None = None,
        y_pred: Outputs | None = None,
        sample_weight: Outputs | None = None,
        training: bool = True,
    ) -> Any:
        """The compiled loss, on the scores of each row if it is one of `losses`, or on the logits of the batch."""
        if self.pipeline.loss is None:
            y, y_pred = self._compared(y, y_pred)
        else:
            y, y_pred = labels_for(self, y), _scores_as_vectors(y_pred)
        return super().compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)

    @on_real_rows
    def compute_metrics(
        self, x: Ids, y: Outputs, y_pred: Outputs, sample_weight: Outputs | None = None
    ) -> dict[str, Any]:
        """The compiled metrics, on row indices and the logits of all candidates."""
        return super().compute_metrics(x, *self._compared(y, y_pred), sample_weight)

    def _compared(self, y: Outputs | None, y_pred: Any) -> tuple[Any, Any]:
        texts = y[TEXTS] if isinstance(y, dict) else None
        logits = in_batch.in_batch_logits(y_pred[QUERY], y_pred[DOCUMENT], temperature=self.temperature, texts=texts)
        return in_batch.row_indices(logits), logits

    def encode_queries(self, texts: Strings, batch_size: int | None = None, **kwargs: Any) -> TokenVectors:
        """Encodes queries, as `encode_documents` encodes documents."""
        return self._encode(QUERY, texts, batch_size, **kwargs)

    def encode_documents(
        self, texts: Strings, batch_size: int | None = None, *, pool_factor: float = 1, **kwargs: Any
    ) -> TokenVectors:
        """Encodes documents as the vectors of their tokens; other arguments as of `BertDualEncoder.encode_documents`.

        With a `pool_factor` of 2 a document has about half as many vectors; see `TokenVectors.pooled`.
        """
        factor = checks.at_least_one(OWNER, "pool_factor", pool_factor)
        found = self._encode(DOCUMENT, texts, batch_size, **kwargs)
        return found.pooled(factor) if isinstance(found, TokenVectors) else pooled_tokens(found, factor)

    def _encode(self, side: str, texts: Strings, batch_size: int | None, **options: Any) -> TokenVectors:
        if not self.pipeline.is_raw(texts):
            raise ValueError(checks.message(OWNER, "texts", "be texts", type(texts), "Use `predict` on ids."))
        return self.predictor.predict(self.pipeline.side(side), texts, batch_size, **options)

    def similarity(
        self, queries: Strings | TokenVectors, documents: Strings | TokenVectors, batch_size: int | None = None
    ) -> np.ndarray:
        """The score of each document for each query (MaxSim), float32 `(queries, documents)`.

        Args:
            queries: a list of texts, one text, or `TokenVectors` of `encode_queries`.
            documents: the same, of `encode_documents`.
            batch_size: texts per step.
        """
        return scores_of_texts(self, TokenVectors, queries, documents, batch_size)

    def explain(self, query: str, document: str) -> list[TokenMatch]:
        """Which token of a document each token of a query matches; the sum of their scores is that of the document.

        Args:
            query: a text.
            document: a text.

        Returns:
            One match for each vector of the query, in order.
        """
        self.pipeline.is_raw([query])  # refuses texts without a preprocessor
        name_of, rows = self.preprocessor.tokenizer.id_to_token, {}
        for side, text in zip(SIDES, (query, document), strict=True):
            inputs = self.pipeline.side(side)
            ids = inputs.preprocessor.with_offsets(tf.constant([text]), prompt=inputs.prompt)
            ids["vectors"] = self.run({name: ids[name] for name in self.input[side]}, side)
            is_there = np.any(ids["vectors"][0], axis=-1)
            rows[side] = {name: np.asarray(values)[0, is_there] for name, values in ids.items()}
        asked, read = rows[QUERY], rows[DOCUMENT]
        cosines, found = asked["vectors"] @ read["vectors"].T, []
        for number, best in enumerate(cosines.argmax(axis=1)):
            token = asked["token_ids"][number] if asked["padding_mask"][number] else self.preprocessor.tokenizer.mask_id
            start, end = int(read["starts"][best]), int(read["ends"][best])
            other = name_of(int(read["token_ids"][best]))
            found.append(TokenMatch(name_of(int(token)), other, float(cosines[number, best]), start, end))
        return found

    def export_search(
        self,
        path: str | PathLike[str],
        documents: Documents,
        ids: Sequence[str] | Sequence[int] | None = None,
        *,
        vectors: str = "float32",
        top_k: int = 10,
        cross_encoder: TextTask | None = None,
        **options: Any,
    ) -> Path:
        """Writes one SavedModel with the encoder and a corpus, which takes queries and returns the best documents.

        `tasks.serving.search.export_search` documents the arguments, the options, the answers and the errors. There are
        `start` and `end` too, int32: the bytes of that token of each document which has the largest cosine with a token
        of the query; 0 where no token with a vector has bytes.
        """
        options |= {"vectors": vectors, "top_k": top_k, "cross_encoder": cross_encoder}
        return export_search(self, path, documents, ids, **options)

    def document_spans(self, texts: Sequence[str]) -> np.ndarray:
        """The bytes of the tokens of documents that have a vector, one after the other, int32 `(tokens, 2)`."""
        inputs, found = self.pipeline.side(DOCUMENT), [np.zeros((0, 2), np.int32)]
        for start in range(0, len(texts), _TEXTS):
            ids = inputs.preprocessor.with_offsets(list(texts[start : start + _TEXTS]), prompt=inputs.prompt)
            counts = np.array(ids["padding_mask"], bool) & ~np.isin(ids["token_ids"], self._skipped)
            found.append(np.stack([ids["starts"], ids["ends"]], axis=-1)[counts])
        return np.concatenate(found)

    def serve_spans(self, texts: Tensor) -> Any:
        """The bytes of all tokens of documents, int32 `(batch, tokens, 2)`, -1 for none; in graph."""
        inputs = self.pipeline.side(DOCUMENT)
        found = inputs.preprocessor.with_offsets(texts, prompt=inputs.prompt)
        return tf.stack([found["starts"], found["ends"]], axis=-1)

    def serve_side(self, side: str, texts: Tensor) -> Any:
        """The vectors of queries or documents, `side`, in graph."""
        return self.run(self.pipeline.side(side).ids(texts), side)

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Queries to `token_vectors` and `mask`."""
        return self._served(QUERY, *texts)

    def _served(self, side: str, *texts: Tensor) -> dict[str, Any]:
        vectors = self.serve_side(side, *texts)
        return {self.output_name: vectors, "mask": tf.cast(tf.reduce_any(vectors != 0, axis=-1), tf.int32)}

    def signatures(self) -> list[Signature]:
        """The signatures of all tasks, which answer queries, and those of documents."""
        found = [*super().signatures(), signature_of_ids(self, "document_token_ids", DOCUMENT)]
        if self.preprocessor is not None:
            texts, sides = self.text_inputs(), {side: functools.partial(self._served, side) for side in SIDES}
            found += [Signature(side, serve, texts) for side, serve in sides.items()]
            found.append(Signature("document_tokenize", self.pipeline.side(DOCUMENT).tokens, texts))
        return found

    def onnx_functions(self) -> onnx.Functions:
        """The signature `serving_default` for queries, and those named `query` and `document`."""
        sides = {side: functools.partial(self._onnx_answers, side) for side in SIDES}
        return {"serving_default": sides[QUERY], **sides}

    def _onnx_answers(self, side: str, model: onnx.OnnxModel, text: onnx.Tensor) -> dict[str, onnx.Answer]:
        inputs, graph = self.pipeline.side(side), model.graph
        rows = model.rows(text, preprocessor=inputs.preprocessor, prompt=inputs.prompt)
        is_there, expands = rows.mask > 0, side == QUERY and self.query_expansion is not None
        if expands:
            pads = graph.concat([graph.constant([0, 0, 0]), graph.constant([self.query_length]) - rows.ids.size(1)])
            mask_id, attended = self.preprocessor.tokenizer.mask_id, graph.add("Pad", rows.mask, pads)
            ids = graph.add("Pad", is_there.where(rows.ids, mask_id), pads, graph.constant(mask_id))
            is_there = attended >= 0
            rows = onnx.Rows(ids, None, is_there.cast(onnx.INT32) if self.query_expansion == "attended" else attended)
        elif side == DOCUMENT and self._skipped:
            is_kept = np.ones(self.preprocessor.tokenizer.vocabulary_size(), np.float32)
            is_kept[self._skipped] = 0
            is_there = is_there & (graph.constant(is_kept).take(rows.ids) > 0)
        hidden = model.hidden(rows, of_padding=expands)
        vectors = onnx.unit_vectors(onnx.dense(hidden, self.predictor.part(side).get_layer("dense_projection")))
        vectors = is_there.column(2).where(vectors, 0.0)
        shape = (None, None, self.projection_dim)
        mask = onnx.Answer(is_there.cast(onnx.INT32), (None, None))
        return {self.output_name: onnx.Answer(vectors, shape), "mask": mask}


def _scores_as_vectors(vectors: Any) -> Any:
    """The scores of each row's own documents, as vectors `(batch, 1 + documents, 1)` whose dot products they are."""
    ops, queries, documents = keras.ops, vectors[QUERY], vectors[DOCUMENT]
    by_column = ops.reshape(documents, (-1, ops.shape(queries)[0], *ops.shape(documents)[1:]))
    own = in_batch.max_sim(queries, ops.transpose(by_column, (1, 0, 2, 3)))  # [B, documents]
    return ops.concatenate([ops.ones_like(own[:, :1]), own], axis=1)[..., None]
