"""What a task does with the text that it is given, before anything is computed."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._task import Task


class TextReader(Task):
    """A task with a preprocessor, which takes text where it has one; ids are taken as they are."""

    #: How many columns of text a row may have.
    most_texts = 2

    def __init__(self, *args: Any, **kwargs: Any):
        self._bucketed = _Bucketed()
        super().__init__(*args, **kwargs)

    def preprocess(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of text (and labels) as what the model trains on; runs inside `tf.data.Dataset.map`."""
        return tuple(part for part in (self._stream_preprocessor()(x), y, sample_weight) if part is not None)

    def _stream_preprocessor(self, preprocessor: Any = None) -> BertPreprocessor:
        """The preprocessor (or another one), but with few lengths where the backend compiles a program for each."""
        preprocessor = preprocessor or self.preprocessor
        if keras.backend.backend() != "jax" or preprocessor.padding != "longest":
            return preprocessor
        return self._bucketed.like(preprocessor)

    def _columns(self, x: Any, *, first_row: int = 0) -> Any:
        """Texts as an array, or as a tuple of them, checked row by row; errors count from `first_row`."""
        return text_data.as_columns(type(self).__name__, x, most=self.most_texts, first_row=first_row)

    def _needs_preprocessing(self, x: Any) -> bool:
        if self.preprocessor is None and text_data.holds_text(x):
            cure = "Make the task with `preprocessor=BertPreprocessor(tokenizer)`, or give it token ids."
            raise ValueError(checks.message(type(self).__name__, "preprocessor", "be given for raw text", None, cure))
        return self.preprocessor is not None and x is not None and not text_data.holds_ids(x)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The model's outputs for token ids; text is refused, as a call may happen inside a compiled program."""
        if text_data.holds_text(inputs):
            cure = "Use `predict` on texts, or call the model on `preprocessor(texts)`."
            raise TypeError(checks.message(type(self).__name__, "inputs", "be token ids", type(inputs), cure))
        return super().__call__(inputs, *args, **kwargs)


class _Bucketed:
    """Preprocessors that pad to buckets, each made once; Keras does not take them for a part of the model."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}

    def like(self, preprocessor: Any) -> Any:
        """One that is like another in all but its padding."""
        if id(preprocessor) not in self._made:
            made = type(preprocessor).from_config({**preprocessor.get_config(), "padding": "bucket"})
            self._made[id(preprocessor)] = preprocessor, made  # both, so that the number stays that one's
        return self._made[id(preprocessor)][1]
