"""Sentence embeddings: one vector per text, close for texts of similar meaning."""

import functools
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import unavailable
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Ids, Outputs, Rows, Strings, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export import Signature, onnx
from keras_bert_layers.export.search.corpus import Documents
from keras_bert_layers.export.text_task import TextTask
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.preprocessors.long_texts import HeadTail, Windows, as_long_texts
from keras_bert_layers.tasks.comparison import Comparison
from keras_bert_layers.tasks.feeding.global_batches import on_real_rows
from keras_bert_layers.tasks.graphs.heads import check_parts
from keras_bert_layers.tasks.graphs.vectors import Pooling, as_given, pooled_vectors, projection_layers, text_encoder
from keras_bert_layers.tasks.inputs import ComparedInputs
from keras_bert_layers.tasks.serving.prompts import Prompts
from keras_bert_layers.tasks.serving.search import export_search
from keras_bert_layers.tasks.task import Task


@register
class BertSentenceEncoder(Task):
    """Encodes texts as vectors (sentence embeddings): the sequence output, pooled and scaled to length 1.

    All texts go through the same weights. The data decide what it trains on:

    - `x = (first, second)`, `y` a similarity for each pair, in [-1, 1]: the loss compares it with the cosine.
    - `x = (first, second)` without `y`, pairs that mean the same: the loss is the cross entropy of each text's own
      partner among the partners of the whole batch, with cosines divided by the temperature as logits. A larger batch
      is a harder task. Texts that are equal byte for byte are never negatives of each other.
    - `x = (anchors, positives, negatives)` without `y`, triplets: the same, with the negatives of all rows among the
      partners. A row may have a list of negatives.
    - `x` texts, `y` vectors `(rows, vector_dim)`: a small model learns from a larger one.

    Args:
        backbone: a `BertBackbone`. One of its `adapters` is used with the prompt of the same name; with a prompt that
            is a text, or without a prompt, the weights alone.
        pooling: `"mean"`, `"cls"`, `"max"`, or another mode of a `SequencePooling`, or a sequence of modes, whose
            vectors are put side by side.
        normalize: whether vectors have Euclidean length 1, so that their dot product is the cosine.
        projection_dim: the width of a dense layer after the pooling, and so of the vectors; a sequence for several
            layers in a row; None for no such layer.
        projection_activation: the dense layer's activation, one of `config.ACTIVATIONS`, or one for each layer.
        truncate_dim: how many of the first features of a vector are kept, for models that were trained for it
            (Matryoshka); None keeps all. The cut comes last, so a normalized vector gets shorter than 1: compare cut
            vectors by their cosine.
        prompts: texts that the model was trained to read before every text, by name; `""` for a name that only chooses
            an adapter.
        default_prompt: the name of the prompt before every text, in training too; None for none.
        temperature: divides the cosines in the loss of pairs without similarities.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text.
        long_texts: what is read of texts longer than the preprocessor's `max_length`: None for their beginning;
            `"head_tail"`, or a `preprocessing.HeadTail`, for both ends; `"windows"`, or a `preprocessing.Windows`, for
            all of it, with the vectors of windows averaged before they are normalized.
        name: the model's name.

    Returns:
        A call on ids and `predict` on texts return float32 `(batch, vector_dim)`, as wide as the backbone or the
        projection. `predict` on pairs, a tuple of two lists of texts or a dataset of such tuples, returns their cosine
        similarities, float32 `(rows,)`. The exported model has a signature for each prompt, by its name.

    Raises:
        TypeError: a backbone or a preprocessor of another type; a call on text; a dictionary.
        ValueError: an unknown pooling; a similarity outside [-1, 1] (the message names its row), or beside single
            texts or triplets.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"])
        >>> encoder = kbl.BertSentenceEncoder(kbl.BertBackbone(config), preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> encoder.predict(["cat", "dog cat"], verbose=0).shape
        (2, 8)
        >>> encoder.predict((["cat", "dog"], ["cat", "cat"]), verbose=0).shape
        (2,)
        >>> history = encoder.fit((["cat", "dog"], ["cat cat", "dog dog"]), verbose=0)
        >>> sorted(history.history)
        ['accuracy', 'loss']

    References:
        Reimers and Gurevych 2019, Sentence-BERT, arXiv:1908.10084, section 3; Henderson et al. 2017, arXiv:1705.00652,
        section 4.4.
    """

    output_name = "embedding"
    reads_pooled_output = False
    compares_cosines = True
    (encode,) = unavailable("Use `predict(texts)`, with `prompt=...` for one of its prompts.", 1)

    def __init__(
        self,
        backbone: BertBackbone,
        pooling: Pooling = "mean",
        *,
        normalize: bool = True,
        projection_dim: int | Sequence[int] | None = None,
        projection_activation: str | Sequence[str] = "tanh",
        truncate_dim: int | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt: str | None = None,
        temperature: float = 0.05,
        preprocessor: BertPreprocessor | None = None,
        long_texts: str | HeadTail | Windows | None = None,
        name: str | None = None,
    ):
        check_parts("BertSentenceEncoder", backbone, preprocessor)
        checks.boolean("BertSentenceEncoder", "normalize", normalize)
        checks.positive_number("BertSentenceEncoder", "temperature", temperature)
        layers = projection_layers("BertSentenceEncoder", projection_dim, projection_activation, backbone.config)
        long_texts = as_long_texts("BertSentenceEncoder", long_texts, preprocessor, pooling="mean")
        all_prompts = Prompts("BertSentenceEncoder", prompts, default_prompt, backbone.adapters)
        options: dict[str, Any] = {"pooling": pooling, "normalize": normalize, "long_texts": long_texts}
        options |= {"projections": layers, "finish": functools.partial(_cut, truncate_dim=truncate_dim)}
        graph = pooled_vectors(backbone, adapter=all_prompts.adapter(), **options)
        for part, adapter in all_prompts.adapters_of_parts().items():
            graph["parts"][part], more = text_encoder(backbone, part=part, adapter=adapter, **options)
            graph["parts"] |= more
        width = graph["outputs"].shape[-1]
        pipeline = ComparedInputs("BertSentenceEncoder", preprocessor, width).prompted(all_prompts.text())
        pipeline.long_texts = long_texts
        super().__init__(backbone, pipeline, **graph, name=name)
        self._prompts = all_prompts
        self.pooling = as_given(pooling)
        self.normalize = normalize
        self.projection_dim = as_given(projection_dim)
        self.projection_activation = as_given(projection_activation)
        self.truncate_dim = truncate_dim
        self.temperature = temperature
        self._comparison = Comparison(self)
        self._correlation = self._comparison.correlation
        self._accuracy = self._comparison.accuracy
        self.compile()

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
        """The vectors of texts, or the cosines of pairs, as NumPy arrays.

        Args:
            x: texts, or pairs of texts; see `Task.predict`, also for the other arguments.
            batch_size: the most rows per step.
            verbose: Keras's progress bar.
            steps: the first so many batches.
            callbacks: as in Keras.
            max_tokens_per_batch: the most tokens per step.
            prompt: replaces the default one before texts: a name of `prompts`, or a text; `""` for none.
        """
        pipeline = self._prompts.pipeline(self, prompt, x)
        options = {"verbose": verbose, "steps": steps, "callbacks": callbacks}
        return self.predictor.predict(pipeline, x, batch_size, max_tokens_per_batch, **options)

    def similarity(self, first: Strings, second: Strings, batch_size: int | None = None) -> np.ndarray:
        """The cosine similarity of each text, or vector, with each of a second list.

        Args:
            first: a list of texts, one text, or vectors `(rows, vector_dim)` as `predict` returns them.
            second: the same.
            batch_size: texts per step.

        Returns:
            Float32 `(first rows, second rows)`, in [-1, 1]; one row or column for a single text or vector.

        Examples:
            >>> import keras_bert_layers as kbl
            >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
            >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"])
            >>> backbone, preprocessor = kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer)
            >>> encoder = kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)
            >>> encoder.similarity("cat", ["cat", "dog"]).shape
            (1, 2)
        """
        return self._comparison.similarity(first, second, batch_size)

    @on_real_rows
    def compute_loss(
        self, x: Ids | None = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The compiled loss, on cosines if the labels are similarities; cross entropy for pairs without labels."""
        compiled = functools.partial(super().compute_loss, x=x, training=training)
        return self._comparison.loss(compiled, y, y_pred, sample_weight)

    @on_real_rows
    def compute_metrics(self, x: Ids, y: Outputs, y_pred: Outputs, sample_weight: Any = None) -> dict[str, Any]:
        """The metrics for this kind of data, on the same values as the loss."""
        return self._comparison.metrics(super().compute_metrics, x, y, y_pred, sample_weight)

    def get_metrics_result(self) -> dict[str, Any]:
        """The results of the metrics for the kind of data of the last batch."""
        return self._comparison.results()

    def encode_queries(self, texts: Strings, batch_size: int | None = None, **kwargs: Any) -> np.ndarray:
        """Encodes queries: `predict` with the prompt `"query"`, or without a prompt if there is none of that name.

        sentence-transformers' `encode_query` has the same rule: the default prompt does not apply. Where there is none,
        and the backbone has the adapters of Jina embeddings v3, the prompt is `"retrieval.query"`.
        """
        return self.predict(texts, batch_size, prompt=self._prompts.of_side("query"), **kwargs)

    def encode_documents(self, texts: Strings, batch_size: int | None = None, **kwargs: Any) -> np.ndarray:
        """Encodes documents, by the rule of `encode_queries`: `"document"`, else `"retrieval.passage"` or no prompt."""
        return self.predict(texts, batch_size, prompt=self._prompts.of_side("document"), **kwargs)

    def default_loss(self) -> keras.losses.Loss:
        """The squared difference between the cosine of a pair and its similarity, or between two vectors.

        Pairs and triplets without similarities have their own loss, and need this default to be compiled.
        """
        return keras.losses.MeanSquaredError()

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The mean absolute difference of cosines and similarities, named `"mean_absolute_error"`.

        Pairs with similarities report `"spearman_correlation"` too. Pairs and triplets without similarities report only
        `"accuracy"`: the share of rows whose own partner ranks first among the partners of the batch.
        """
        return [keras.metrics.MeanAbsoluteError(name="mean_absolute_error")]

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Strings to `embedding`."""
        return self.decode(self.run(self.pipeline.ids(*texts)))

    def decode(self, outputs: Tensor) -> dict[str, Any]:
        """Vectors to `embedding`; in graph."""
        return {self.output_name: outputs}

    def serve_prompted(self, prompt: str, *texts: Tensor) -> dict[str, Any]:
        """Strings, read after the text of a prompt and with its adapter, to `embedding`."""
        ids = self.pipeline.prompted(self._prompts.text(prompt)).ids(*texts)
        return {self.output_name: self.run(ids, self._prompts.part(prompt))}

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
        """The vectors of queries or documents, `side`, in graph, as `encode_queries` and `encode_documents`."""
        return self.serve_prompted(self._prompts.of_side(side), texts)[self.output_name]

    def onnx_side(self, side: str, model: onnx.OnnxModel, texts: onnx.Tensor) -> onnx.Tensor:
        """`serve_side` in an ONNX file."""
        return self._onnx_answers(self._prompts.by_name.get(side, ""), model, texts)[self.output_name].tensor

    def onnx_functions(self) -> onnx.Functions:
        """The signature `serving_default`, and one for each prompt."""
        prompts = {name: functools.partial(self._onnx_answers, text) for name, text in self._prompts.by_name.items()}
        return {"serving_default": functools.partial(self._onnx_answers, None), **prompts}

    def _onnx_answers(self, prompt: str | None, model: onnx.OnnxModel, text: onnx.Tensor) -> dict[str, onnx.Answer]:
        rows = model.rows(text, prompt=prompt)
        vectors = onnx.pooled(model.hidden(rows), rows.mask, self.pooling)
        dense_layers = [layer for layer in self.layers if isinstance(layer, keras.layers.Dense)]
        names = self.projection_activation
        names = [names] * len(dense_layers) if isinstance(names, str) else names
        for layer, name in zip(dense_layers, names, strict=False):
            vectors = onnx.activation(onnx.dense(vectors, layer), name)
        vectors = onnx.unit_vectors(vectors) if self.normalize else vectors
        vectors = vectors if self.truncate_dim is None else vectors.slice(0, self.truncate_dim, 1)
        return {self.output_name: onnx.Answer(vectors, (None, self.output.shape[-1]))}

    def signatures(self) -> list[Signature]:
        """The signatures of all tasks, and one for each prompt."""
        return super().signatures() + ([] if self.preprocessor is None else self._prompts.signatures(self))


def _cut(vectors: Tensor, truncate_dim: int | None) -> Any:
    """The first features of symbolic vectors."""
    if truncate_dim is None:
        return vectors
    owner, width = "BertSentenceEncoder", vectors.shape[-1]
    if checks.positive_integer(owner, "truncate_dim", truncate_dim) > width:
        raise ValueError(checks.message(owner, "truncate_dim", f"be at most the vectors' {width}", truncate_dim))
    return vectors[:, :truncate_dim]
