"""Static embeddings: the vector of a text is the mean of the vectors of its tokens."""

import functools
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Ids, Outputs, Strings, Tensor
from keras_bert_layers.export.search.corpus import Documents
from keras_bert_layers.export.text_task import TextTask
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.static_backbone import StaticBackbone
from keras_bert_layers.tasks.comparison import Comparison
from keras_bert_layers.tasks.feeding.global_batches import on_real_rows
from keras_bert_layers.tasks.graphs.heads import check_parts
from keras_bert_layers.tasks.graphs.vectors import scaling
from keras_bert_layers.tasks.inputs import ComparedInputs
from keras_bert_layers.tasks.serving.search import export_search
from keras_bert_layers.tasks.task import Task


@register
class BertStaticEncoder(Task):
    """Encodes texts as the mean of their tokens' vectors, more than a hundred times as fast as a `BertSentenceEncoder`.

    There is no encoder in it, only a table with a vector for each token. `distill_static` makes one from a sentence
    encoder. It trains on the data that a `BertSentenceEncoder` trains on: pairs with or without similarities, triplets,
    and texts with target vectors. `BertClassifier(encoder.backbone, ...)` makes a classifier of the same table.

    Args:
        backbone: a `StaticBackbone`.
        normalize: whether vectors have Euclidean length 1, so that their dot product is the cosine.
        temperature: divides the cosines in the loss of pairs without similarities.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text.
        name: the model's name.

    Returns:
        A call on ids and `predict` on texts return float32 `(batch, hidden_dim)`; a text of unknown and special tokens
        alone may have zeros. `predict` on pairs returns their cosine similarities, float32 `(rows,)`.

    Raises:
        TypeError: a backbone or a preprocessor of another type; a call on text; a dictionary.
        ValueError: what a `BertSentenceEncoder` refuses.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> backbone = kbl.tasks.StaticBackbone(vocabulary_size=6, hidden_dim=4)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"])
        >>> encoder = kbl.BertStaticEncoder(backbone, preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> encoder.predict(["cat", "dog cat"], verbose=0).shape
        (2, 4)
        >>> encoder.similarity("cat", ["cat", "dog"]).shape
        (1, 2)

    References:
        Tulkens and van Dongen 2024, Model2Vec, https://github.com/MinishLab/model2vec.
    """

    output_name = "embedding"
    default_learning_rate = 1e-3
    compares_cosines = True

    def __init__(
        self,
        backbone: StaticBackbone,
        *,
        normalize: bool = True,
        temperature: float = 0.05,
        preprocessor: BertPreprocessor | None = None,
        name: str | None = None,
    ):
        checks.instance("BertStaticEncoder", "backbone", backbone, StaticBackbone, "`distill_static` makes one.")
        check_parts("BertStaticEncoder", backbone, preprocessor, static=True)
        checks.boolean("BertStaticEncoder", "normalize", normalize)
        checks.positive_number("BertStaticEncoder", "temperature", temperature)
        outputs = scaling(normalize)(backbone(backbone.input)["pooled_output"])
        pipeline = ComparedInputs("BertStaticEncoder", preprocessor, backbone.config.hidden_dim)
        pipeline.block_rows, pipeline.tokens_per_step = 2**14, 2**17
        super().__init__(backbone, pipeline, outputs=outputs, name=name)
        self._comparison = Comparison(self)
        self._correlation = self._comparison.correlation
        self._accuracy = self._comparison.accuracy
        self.normalize = normalize
        self.temperature = temperature
        self.compile()

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
        """Encodes queries: `predict`."""
        return self.predict(texts, batch_size, **kwargs)

    def encode_documents(self, texts: Strings, batch_size: int | None = None, **kwargs: Any) -> np.ndarray:
        """Encodes documents: `predict`."""
        return self.predict(texts, batch_size, **kwargs)

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
        """The vectors of queries or documents, in graph."""
        return self.serve(texts)[self.output_name]

    def default_loss(self) -> keras.losses.Loss:
        """As that of a `BertSentenceEncoder`."""
        return keras.losses.MeanSquaredError()

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """As those of a `BertSentenceEncoder`."""
        return [keras.metrics.MeanAbsoluteError(name="mean_absolute_error")]

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Strings to `embedding`."""
        return {self.output_name: self.predictor.run_at_once(self.pipeline.tokens(*texts), self.part)}
