"""`export_search`: an encoder of texts and a corpus as one SavedModel or ONNX file, which answers queries."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.export import Signature, onnx, write_saved_model
from keras_bert_layers.export.saved_model import check_destination
from keras_bert_layers.export.search.corpus import (
    BINARY,
    CANDIDATES,
    ENCODER,
    FLOAT32,
    VECTORS,
    Corpus,
    Documents,
    Tokens,
    corpus_arrays,
    cut_text,
    read_corpus,
)
from keras_bert_layers.export.search.onnx_graph import OnnxGraph
from keras_bert_layers.export.search.saved_model_graph import SavedModelGraph
from keras_bert_layers.export.search.sparse_graph import SparseGraph
from keras_bert_layers.export.search.token_graph import TokenGraph
from keras_bert_layers.export.signature import DEFAULT_MAX_BYTES, bounded_texts, check_max_bytes, with_bound
from keras_bert_layers.export.text_task import TextTask
from keras_bert_layers.losses import in_batch
from keras_bert_layers.tasks.feeding.columns import check_takes_text
from keras_bert_layers.tasks.serving.export import check_strings, facts_of, requests_of, set_for_serving

_OWNER = "export_search"
_QUERY: dict[str, tuple[tuple[int | None, ...], str]] = {"query": ((None,), "string")}
_TEXT: dict[str, tuple[tuple[int | None, ...], str]] = {"text": ((None,), "string")}
# The least number of texts that a cross-encoder scores: as many as a page of results has, three times.
_LEAST_RERANKED = 30


def export_search(
    encoder: TextTask,
    path: str | PathLike[str],
    documents: Documents,
    ids: Any = None,
    *,
    format: str = "tf_saved_model",  # noqa: A002 - as `export` has it
    vectors: str = FLOAT32,
    top_k: int = 10,
    cross_encoder: TextTask | None = None,
    version: int | str | None = None,
    max_bytes: int | None = DEFAULT_MAX_BYTES,
    warm_up: bool = True,
    verbose: str | int = "auto",
) -> Path:
    """Writes one file, or one SavedModel, with the encoder and a corpus: a query in, the best documents out.

    A `BertMultiVectorEncoder` or a `BertSparseEncoder` is written as a SavedModel only; the former has more outputs.

    The signature `serving_default` takes strings `query` `(batch,)` and returns `id`, `text` and `score`, each `(batch,
    documents)`, the best first; of equal scores the document that comes first. There are `top_k` documents, or all of a
    smaller corpus. The score is the cosine; the dot product for a `BertDualEncoder` without `normalize`; or the
    cross-encoder's. Queries and documents are read as `encode_queries` and `encode_documents` read them.

    Every query is compared with every document. Equal texts are stored and compared once.
    A SavedModel also has the signatures `query` and `document`, from strings to vectors, `embedding`.
    `keras_bert_layers.export.replace_documents` puts other documents into the file.

    Args:
        encoder: the encoder, whose method this is.
        path: the folder of the SavedModel, or the file `*.onnx`; written completely or not at all. What was exported
            there before is replaced.
        documents: texts, or a dictionary id -> text. They are stored whole; of long ones the model reads the beginning,
            as always.
        ids: strings or whole numbers, all different; None for the numbers of the rows, from 0.
        format: `"tf_saved_model"` or `"onnx"`.
        vectors: how a query is compared with all documents. `"float32"` is exact. `"int8"` compares with numbers of 8
            bits, `"binary"` with signs; 2 or 80 times `top_k` of the texts found so get their scores from numbers of 16
            bits, which are exact to about 1e-5. These take 4, 2 and 2.1 bytes for each number of a vector.
            Of a `BertMultiVectorEncoder`, `"float32"` or `"int8"`; of a `BertSparseEncoder`, `"float32"`.
        top_k: how many documents to find.
        cross_encoder: a `BertCrossEncoder` that scores the best `top_k` texts, or 30, again.
        version: as in `export`, for a SavedModel.
        max_bytes: as in `export`, for queries and documents.
        warm_up: as in `export`, for a SavedModel.
        verbose: Keras's progress bar while the documents are encoded.

    Returns:
        What was written: the folder that holds the SavedModel, or the file.

    Raises:
        TypeError: documents or ids of other types; a cross-encoder that is none.
        ValueError: equal ids; an unknown `format` or `vectors`; `top_k` below 1; what `export` refuses.
    """
    check_takes_text(encoder)
    checks.one_of(_OWNER, "format", format, ["tf_saved_model", "onnx"])
    _check_kind(encoder, vectors, is_onnx=format == "onnx")
    checks.one_of(_OWNER, "vectors", vectors, VECTORS)
    checks.positive_integer(_OWNER, "top_k", top_k)
    check_max_bytes(_OWNER, max_bytes)
    if cross_encoder is not None and not hasattr(cross_encoder, "rank"):
        raise TypeError(checks.message(_OWNER, "cross_encoder", "be a BertCrossEncoder or None", type(cross_encoder)))
    if format == "onnx":
        if version is not None:
            raise ValueError(checks.message(_OWNER, "version", 'be None with format="onnx", which is a file', version))
        onnx.check_path(path)
        for task in (encoder, cross_encoder):
            if task is not None:
                onnx.check_task(task)
    else:
        check_strings()
        check_destination(path, version)
    corpus = read_corpus(_OWNER, documents, ids)
    search = _Search(encoder, cross_encoder, corpus, vectors=vectors, top_k=top_k, max_bytes=max_bytes)
    search.encode(verbose)
    if format == "onnx":
        return onnx.write_model(Path(path), search.onnx_model, search.facts())
    return search.write_saved_model(path, version=version, warm_up=warm_up)


def _check_kind(encoder: TextTask, vectors: str, *, is_onnx: bool) -> None:
    """Refuses what is not written of sparse vectors, and of vectors of tokens."""
    if vectors != FLOAT32 and _is_sparse(encoder):
        raise ValueError(checks.message(_OWNER, "vectors", "be 'float32' for sparse vectors", vectors))
    if is_onnx and (_is_sparse(encoder) or _has_tokens(encoder)):
        rule = "be 'tf_saved_model' for sparse vectors and for vectors of tokens"
        raise ValueError(checks.message(_OWNER, "format", rule, "onnx"))
    if vectors == BINARY and _has_tokens(encoder):
        rule = "be 'float32' or 'int8' for vectors of tokens, whose signs tell too little"
        raise ValueError(checks.message(_OWNER, "vectors", rule, vectors))


def _has_tokens(encoder: TextTask) -> bool:
    """Whether an encoder has a vector for each token of a text."""
    return hasattr(encoder, "document_spans")


def _is_sparse(encoder: TextTask) -> bool:
    """Whether the vectors of an encoder are weights of the vocabulary, 0 for most."""
    return hasattr(encoder, "max_active_dims")


class _Search:
    """What is written: the encoder, the corpus, and how one is compared with the other."""

    def __init__(
        self,
        encoder: TextTask,
        cross_encoder: TextTask | None,
        corpus: Corpus,
        *,
        vectors: str,
        top_k: int,
        max_bytes: int | None,
    ):
        self._encoder: Any = encoder
        self._has_tokens, self._is_sparse = _has_tokens(encoder), _is_sparse(encoder)
        self._cross_encoder, self._corpus = cross_encoder, corpus
        self._kind, self._max_bytes = vectors, max_bytes
        reranked = top_k if cross_encoder is None else max(top_k, _LEAST_RERANKED)
        self._options = {"top_k": top_k, "candidates": CANDIDATES[vectors] * reranked, "reranked": reranked}
        self._arrays: dict[str, Any] = {}

    def encode(self, verbose: str | int) -> None:
        """Makes the vectors of the documents."""
        texts = [cut_text(text, self._max_bytes) for text in self._corpus.texts]
        vectors: Any = self._encoder.encode_documents(texts, verbose=verbose)
        if self._has_tokens:
            vectors = Tokens(vectors.vectors, vectors.row_starts, self._encoder.document_spans(texts))
        elif self._is_sparse:
            vectors = vectors.by_token
        else:
            vectors = np.asarray(vectors, np.float32)
            vectors = in_batch.unit(vectors) if self._encoder.compares_cosines else vectors
        self._arrays = corpus_arrays(self._corpus, vectors, self._kind)

    def facts(self) -> dict[str, Any]:
        """The facts for the model card."""
        facts = facts_of(self._encoder, self._max_bytes) | {"parameters": self._encoder.count_params()}
        if self._cross_encoder is not None:
            facts["cross_encoder"] = facts_of(self._cross_encoder, self._max_bytes)
        return facts | {"search": {**self._options, "vectors": self._kind, **self._corpus.facts()}}

    def write_saved_model(self, path: str | PathLike[str], *, version: int | str | None, warm_up: bool) -> Path:
        """Writes the SavedModel."""
        models = [task for task in (self._encoder, self._cross_encoder) if task is not None]
        with ExitStack() as stack:
            for task in models:
                stack.enter_context(set_for_serving(task))
            make = SparseGraph if self._is_sparse else SavedModelGraph
            graph = (TokenGraph if self._has_tokens else make)(self._arrays, rerank=self._rerank(), **self._options)

            def answer(queries: Any) -> dict[str, Any]:
                return graph.answers(queries, self._vectors("query", queries))

            made = [
                Signature("serving_default", answer, _QUERY),
                Signature("query", functools.partial(self._embedding, "query"), _TEXT),
                Signature("document", functools.partial(self._embedding, "document"), _TEXT),
            ]
            signatures = [with_bound(signature, self._max_bytes) for signature in made]
            requests = requests_of(self._encoder, signatures) if warm_up else None
            return write_saved_model(path, signatures, version=version, warm_up=requests, facts=self.facts())

    def _embedding(self, side: str, texts: Any) -> dict[str, Any]:
        found = {"weights" if self._is_sparse else "embedding": self._vectors(side, texts)}
        if self._has_tokens and side == "document":
            found["span"] = self._encoder.serve_spans(texts)
        return found

    def _vectors(self, side: str, texts: Any) -> Any:
        """The vectors of queries or documents, in graph."""
        vectors = tf.cast(self._encoder.serve_side(side, texts), tf.float32)
        return tf.math.l2_normalize(vectors, axis=-1) if self._encoder.compares_cosines else vectors

    def _rerank(self) -> Callable[[Any, Any], Any] | None:
        """What scores queries and texts, in graph."""
        task, most = self._cross_encoder, self._max_bytes
        if task is None:
            return None
        return lambda queries, texts: task.serve(queries, bounded_texts(texts, most) if most else texts)["score"]

    def onnx_model(self) -> Any:
        """The `ModelProto`."""
        model = onnx.OnnxModel(self._encoder, FLOAT32)
        graph = model.graph
        queries, cut = onnx.bounded_input(graph.input("query"), self._max_bytes)
        vectors = self._onnx_vectors("query", model, queries)
        answers = OnnxGraph(graph, self._arrays, rerank=self._onnx_rerank(graph), **self._options).answers(
            queries, vectors
        )
        # What `replace_documents` encodes with.
        text, document = graph.input("query"), onnx.OnnxModel(self._encoder, FLOAT32, graph)
        graph.function(ENCODER, lambda: self._onnx_vectors("document", document, text))
        return graph.model({"query": (None,)}, {**answers, **cut})

    def _onnx_vectors(self, side: str, model: onnx.OnnxModel, texts: onnx.Tensor) -> onnx.Tensor:
        vectors = self._encoder.onnx_side(side, model, texts)
        return onnx.unit_vectors(vectors) if self._encoder.compares_cosines else vectors

    def _onnx_rerank(self, graph: onnx.Graph) -> Callable[[onnx.Tensor, onnx.Tensor], onnx.Tensor] | None:
        """The same in an ONNX file."""
        task, most = self._cross_encoder, self._max_bytes
        if task is None:
            return None
        model, score = onnx.OnnxModel(task, FLOAT32, graph), task.onnx_functions()["serving_default"]
        return lambda queries, texts: score(model, queries, onnx.bounded_input(texts, most)[0])["score"].tensor
