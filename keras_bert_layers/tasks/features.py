"""Features: the hidden states of a frozen BERT as arrays, per token, word or text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import unavailable
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Strings
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export import Signature, onnx
from keras_bert_layers.export.signature import DEFAULT_MAX_BYTES
from keras_bert_layers.layers import ScalarMix
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.preprocessors.word_aligner import WordAligner
from keras_bert_layers.tasks.feeding.columns import as_columns
from keras_bert_layers.tasks.graphs.heads import check_sizes
from keras_bert_layers.tasks.graphs.hidden_states import COMBINATIONS, checked_layers, feature_model
from keras_bert_layers.tasks.inputs import FeatureInputs, Inputs
from keras_bert_layers.tasks.inputs.features import single_texts
from keras_bert_layers.tasks.prediction import Predictor
from keras_bert_layers.tasks.serving.export import export_task
from keras_bert_layers.tasks.serving.signatures import signature_of_vectors


class TextUnit(NamedTuple):
    """A token or a word of a text.

    Attributes:
        text: the token as in the vocabulary, such as `"##ing"`; or the word as in the text.
        start: the byte of the text, in UTF-8, at which it starts.
        end: the byte after its last one.
    """

    text: str
    start: int
    end: int


class Features:
    """Feature extraction: the hidden states of a frozen BERT as float32 arrays, per token, word or text.

    They are the input of a model that is trained without BERT: a Keras model, or one of scikit-learn. Weights are
    shared with `model`, and a change to them shows in the next call. Blocks above the highest chosen layer do not run.

    **Words.** With `per="word"`, a row is a text, or a list of words. Words end at whitespace and
    punctuation, as in `BertTokenClassifier`; `words` lists them. A list gives one vector per given word. A word's
    vector is the mean over its pieces.

    **Length.** Per token and per word, texts longer than the preprocessor's `max_length` are read through windows, and
    each token gets its vector from the window in which it has most context. Nothing is cut. Per text, longer texts are
    cut, with one warning.

    **Export.** `export` writes a SavedModel that takes strings, with the arguments of `Task.export`, except `dtype` and
    ONNX. It returns `features`, float32 `(batch, dim)` per text. Per token and word, `features` are float32 `(batch,
    tokens or words, dim)`, 0 after the last one of a row; with `start` and `end`, int32 `(batch, tokens or words)`,
    bytes of the text, -1 after the last one.

    Args:
        model: a `BertBackbone`, or any task.
        preprocessor: a `BertPreprocessor`; None for the task's own. Prompts of a task are not read.
        layers: an index of a hidden state, several, or "all": 0 is the output of the embedding, 1 that of the first
            block, -1 that of the last.
        combine: `"concat"`, `"sum"` or `"mean"` of the layers; `"stack"` for an axis of layers before the last one; or
            a `layers.ScalarMix`, which adds them up with learnt weights.
        per: `"token"`, without special tokens; `"word"`; or `"text"`.
        pooling: a mode of `layers.SequencePooling`, such as `"mean"` or `"cls"`, over all tokens, special ones
            included; for `per="text"` alone.

    Attributes:
        network: the `keras.Model` from ids to features.
        dim: the size of a vector.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: an argument out of range; a preprocessor that the backbone is too small for.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=2, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "##er", "york"])
        >>> features = Features(kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer), layers=[-2, -1], per="word")
        >>> [vectors.shape for vectors in features.predict(["Newer", "New York"], verbose=0)]
        [(1, 16), (2, 16)]
        >>> [word.text for word in features.words(["New York"])[0]]
        ['New', 'York']

    References:
        Devlin et al. 2018, arXiv:1810.04805, section 5.3, "Feature-based Approach with BERT"; `extract_features.py` in
        google-research/bert.
    """

    (from_config,) = unavailable("An export has the dtype of the backbone: load it in another one.", 1)

    def __init__(
        self,
        model: keras.Model,
        preprocessor: BertPreprocessor | None = None,
        *,
        layers: int | str | Sequence[int] = (-1,),
        combine: str | ScalarMix = "concat",
        per: str = "token",
        pooling: str = "mean",
    ):
        owner = "Features"
        cure = "Or give a task."
        backbone = checks.instance(owner, "model", getattr(model, "backbone", model), BertBackbone, cure)
        own = getattr(model, "preprocessor", None)
        preprocessor = single_texts(owner, own if preprocessor is None else preprocessor)
        check_sizes(owner, backbone.config, preprocessor)
        if not isinstance(combine, ScalarMix):
            checks.one_of(owner, "combine", combine, COMBINATIONS, "Or give a `layers.ScalarMix()`.")
        self.per = checks.one_of(owner, "per", per, ("token", "word", "text"))
        self.backbone, self.preprocessor = backbone, preprocessor
        self.layers = checked_layers(owner, layers, backbone.config.num_layers)
        self.combine, self.pooling = combine, pooling
        self.network = feature_model(backbone, self.layers, combine, pooling if per == "text" else None)
        self.dim = int(self.network.output.shape[-1])
        self.predictor = Predictor(self.network)
        # What an export reads of a task.
        self.dtype_policy, self.count_params = backbone.dtype_policy, backbone.count_params
        self._flatten_layers = backbone._flatten_layers
        self._inputs = Inputs(owner, preprocessor, most_texts=1)
        if per != "text":
            size = int(np.prod(self.network.output.shape[2:]))
            self._inputs = FeatureInputs(owner, preprocessor, per=per, size=size)

    def predict(self, texts: Strings, batch_size: int | None = None, verbose: str | int = "auto") -> Any:
        """The features of all texts.

        Texts of similar length are computed together, as in `Task.predict`.

        Args:
            texts: a list, array, tensor or pandas column of strings, a dataset of batches of them, or an iterable that
                yields one text at a time. Per token and per word, also lists of words.
            batch_size: the most texts, or windows of long ones, per step; None for as many as suit the device.
            verbose: Keras's progress bar: 0 shows nothing, 1 and "auto" show it.

        Returns:
            Per text, float32 `(texts, dim)`. Per token or word, a list of float32 arrays `(tokens or words, dim)`, one
            for each text, in order. With `combine="stack"`, two axes `layers, hidden_dim` stand for `dim`.

        Raises:
            TypeError, ValueError: what is not text; the message names the row.
        """
        return self.predictor.predict(self._inputs, texts, batch_size, verbose=verbose)

    def predict_stream(
        self, texts: Strings, batch_size: int | None = None, verbose: str | int = 0
    ) -> Iterator[np.ndarray]:
        """The features of each text one by one, for more texts than fit into memory; arguments as in `predict`."""
        return self.predictor.stream(self._inputs, texts, batch_size, None, verbose=verbose)

    def tokens(self, texts: Strings) -> list[list[TextUnit]]:
        """The tokens of each text, those that `per="token"` gives vectors of.

        Args:
            texts: a list of strings.

        Returns:
            One list per text, of `(text, start, end)`, with the token and its bytes in the text.
        """
        texts = self._bytes(texts)
        tokenizer = self.preprocessor.tokenizer
        columns = [ragged.to_list() for ragged in tokenizer.tokenize_with_offsets(tf.constant(texts, tf.string))]
        rows = (zip(*row, strict=True) for row in zip(*columns, strict=True))
        return [[TextUnit(tokenizer.id_to_token(token), start, end) for token, start, end in row] for row in rows]

    def words(self, texts: Strings) -> list[list[TextUnit]]:
        """The words of each text, those that `per="word"` gives vectors of.

        Args:
            texts: a list of strings.

        Returns:
            One list per text, of `(text, start, end)`, with the word as in the text and its bytes there.
        """
        texts = self._bytes(texts)
        found = self._inputs.made_once(WordAligner, self.preprocessor).align(tf.constant(texts, tf.string))
        return [
            [TextUnit(text[start:end].decode("utf-8", "replace"), start, end) for start, end in spans if start >= 0]
            for text, spans in zip(texts, np.stack([found.starts, found.ends], axis=-1).tolist(), strict=True)
        ]

    def export(
        self,
        filepath: str | PathLike[str],
        format: str = "tf_saved_model",  # noqa: A002 - Keras's name
        verbose: bool | None = None,
        *,
        dtype: str | None = None,
        version: int | str | None = None,
        max_bytes: int | None = DEFAULT_MAX_BYTES,
        warm_up: bool = True,
        signatures: Sequence[str] = (),
    ) -> Path:
        """Writes a SavedModel that takes strings, as `Task.export`, with the same arguments."""
        options: dict[str, Any] = {"dtype": dtype, "version": version, "max_bytes": max_bytes, "warm_up": warm_up}
        return export_task(self, filepath, format, signatures=signatures, verbose=bool(verbose), **options)

    def onnx_functions(self) -> onnx.Functions:
        """The functions of strings that an ONNX file may have as its signature, by name: none."""
        return {}

    def text_inputs(self) -> dict[str, Any]:
        """The string inputs of the exported model: name -> `(shape, dtype)`."""
        return dict(self._inputs.text_inputs)

    def signatures(self) -> list[Signature]:
        """The signature of the exported model, `serving_default`."""
        return [signature_of_vectors("serving_default", self._inputs, self.network)]

    def get_config(self) -> dict[str, Any]:
        """What the vectors are, for the model card."""
        combine = self.combine if isinstance(self.combine, str) else type(self.combine).__name__
        return {"layers": list(self.layers), "combine": combine, "per": self.per, "pooling": self.pooling}

    def _bytes(self, texts: Strings) -> list[bytes]:
        columns = as_columns("Features", texts, most=1)
        return [text.encode() if isinstance(text, str) else text for text in columns]
