"""Rows of words with tags, and texts with spans, through Keras's own entry points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.word_aligner import NO_WORD
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks import _token_data as token_data
from keras_bert_layers.tasks import _token_labels as token_labels
from keras_bert_layers.tasks._length_batches import LengthBatches, on_host
from keras_bert_layers.tasks._row_order import RowOrder
from keras_bert_layers.tasks._text_task import TextTask


class TokenTask(TextTask):
    """A task whose rows are lists of words, or texts, and whose outputs are logits of tags.

    A subclass gives `preprocess`: of a batch of either, the windows, and a dictionary with `"places"` and `"word_ids"`
    of the words in them, as `AlignedWords` has them, and their tags.
    """

    reads_pooled_output = False

    #: "O", "B-label" and "I-label"; known only behind the first `compile`, which `Task` calls.
    tag_names: Sequence[str] = ()

    def _columns(self, x: Any, *, first_row: int = 0) -> Any:
        """Rows of words as ragged strings, or texts as an array, checked row by row."""
        owner = type(self).__name__
        if isinstance(x, tuple):
            raise TypeError(checks.message(owner, "x", "be a list of texts, or of lists of words", type(x)))
        as_columns = token_data.as_words if token_data.holds_words(x) else text_data.as_columns
        return as_columns(owner, x, first_row=first_row)

    def _check_dataset(self, dataset: Any) -> None:
        token_data.check_dataset(type(self).__name__, dataset)

    def _answer_columns(self, x: Any) -> list[Any]:
        """The column of texts to find entities in."""
        columns = self._columns(x)
        if isinstance(columns, tf.RaggedTensor):
            cure = "Ask `predict_tags` for the tags of given words."
            raise TypeError(checks.message(type(self).__name__, "x", "be texts", "rows of words", cure))
        return [columns]

    def _labels(self, columns: Any, y: Any) -> Any:
        """Tags of words, or spans in texts, as ragged columns, checked row by row."""
        if y is None:
            return None
        owner = type(self).__name__
        to_labels = token_data.as_tags if isinstance(columns, tf.RaggedTensor) else token_data.as_spans
        return to_labels(owner, y, columns, self.tag_names)

    def _text_batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, order: RowOrder) -> Any:
        """A dataset of `(words or text, …)` in batches, checked."""
        owner = type(self).__name__
        if text_data.is_dataset(x):
            text_data.refuse_beside_dataset(owner, y=y, sample_weight=sample_weight)
            self._check_dataset(x)
            return x if isinstance(x.element_spec, tuple) else x.map(lambda words: (words,))
        columns = self._columns(x)
        if not token_data.num_rows(columns):
            raise ValueError(checks.message(owner, "x", "hold at least one row", x))
        parts = [columns, self._labels(columns, y)]
        if sample_weight is not None:
            parts.append(token_data.as_weights(owner, sample_weight, columns))
        return token_data.batches(parts, batch_size=batch_size, order=order, lengths=self._row_lengths)

    def _one_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, Any, Any]:
        """One batch of words or texts, with labels and weights, as arrays for the model; ids as they are."""
        if not self._needs_preprocessing(x):
            return x, y, sample_weight
        size = token_data.num_rows(self._columns(x))
        batch = next(iter(self._batches(x, y, sample_weight, batch_size=size, order=RowOrder.AS_GIVEN)))
        return keras.utils.unpack_x_y_sample_weight(keras.tree.map_structure(np.asarray, batch))

    def _split(self, x: Any, y: Any, sample_weight: Any, share: float) -> tuple[Any, Any, Any, tuple[Any, ...]]:
        """The first rows to train on and the last rows to validate on."""
        owner = type(self).__name__
        if text_data.is_dataset(x):
            raise ValueError(f"`{owner}`: `validation_split` must be 0 for a dataset. Give `validation_data`.")
        columns = self._columns(x)
        first, _ = text_data.split_rows(owner, share, np.arange(token_data.num_rows(columns)))
        weights = None if sample_weight is None else token_data.as_weights(owner, sample_weight, columns)
        first, last = token_data.split([columns, self._labels(columns, y), weights], len(first[0]))
        return first[0], first[1], first[2], tuple(last)

    def fit(self, x: Any = None, y: Any = None, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Trains, as `keras.Model.fit`, on words with tags or texts with spans; see `TextTask.fit`."""
        if kwargs.get("class_weight") is not None and self._needs_preprocessing(x):
            rule, cure = "be None", "Weigh rows with `sample_weight`."
            raise ValueError(checks.message(type(self).__name__, "class_weight", rule, kwargs["class_weight"], cure))
        return super().fit(x, y, batch_size, **kwargs)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logits of words as a NumPy array.

        Args:
            x: rows of words, or texts, whose words are those of the tokenizer; a dataset of batches of either, or an
                iterable that gives one row at a time. Ids as `keras.Model.predict` takes them, and then the logits are
                those of tokens.
            *args: as of all tasks; a row of a step is a window.
            **kwargs: as of all tasks.

        Returns:
            Float32 `(rows, words, tags)`; 0 behind the last word of a row.
        """
        return super().predict(x, *args, **kwargs)

    def predict_on_batch(self, x: Any) -> Any:
        """The logits of one batch, as `predict` gives them."""
        if not self._needs_preprocessing(x):
            return super().predict_on_batch(x)
        return self.predict(x, verbose=0)

    def _no_outputs(self, x: Any) -> np.ndarray:
        return np.zeros((0, 0, len(self.tag_names)), np.float32)

    def _block_outputs(self, columns: Any, batches: LengthBatches) -> np.ndarray:
        logits, _, keep = self._words_of(columns, batches)
        return token_data.kept(logits, keep)

    def _stream_outputs(self, columns: Any, batches: LengthBatches) -> list[np.ndarray]:
        logits, _, keep = self._words_of(columns, batches)
        return [row[kept] for row, kept in zip(logits, keep, strict=True)]

    def _words_of(self, columns: Any, batches: LengthBatches) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The words' logits `(rows, words, tags)`, where a word is, and where a given word begins."""
        preprocessor = self._stream_preprocessor()
        inputs, words = on_host(self.preprocess, columns)
        logits = batches.run(self._compiled_step(), inputs, preprocessor)  # [windows, S, tags]
        places, is_given = words["places"].numpy(), token_labels.begins_given_word(words["word_ids"]).numpy()
        # A place counts in windows as wide as they were made; these may be wider than the longest needs.
        width = inputs["token_ids"].shape[1]
        window, place = np.divmod(np.maximum(places, 0), max(width, 1))
        return logits[window, place], places != NO_WORD, is_given

    def _require_words(self, x: Any) -> None:
        """Refuses texts."""
        is_text = not token_data.holds_words(x) and (text_data.is_dataset(x) or len(self._columns(x)) > 0)
        if is_text:
            rule, cure = "be rows of words", "Ask `answer` for the entities of texts."
            raise TypeError(checks.message(type(self).__name__, "words", rule, type(x), cure))
