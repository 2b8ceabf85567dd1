"""Rows of words with tags, and texts with spans, through Keras's own entry points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.word_aligner import NO_WORD
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks import _token_data as token_data
from keras_bert_layers.tasks import _token_labels as token_labels
from keras_bert_layers.tasks._text_task import TextTask


class TokenTask(TextTask):
    """A task whose rows are lists of words, or texts, and whose outputs are logits of tags.

    A subclass gives `preprocess`: of a batch of either, the windows, and a dictionary with `"places"` and `"word_ids"`
    of the words in them, as `AlignedWords` has them, and their tags.
    """

    reads_pooled_output = False

    #: "O", "B-label" and "I-label"; known only behind the first `compile`, which `Task` calls.
    tag_names: Sequence[str] = ()

    def _columns(self, x: Any) -> Any:
        """Rows of words as ragged strings, or texts as an array, checked row by row."""
        owner = type(self).__name__
        if isinstance(x, tuple):
            raise TypeError(checks.message(owner, "x", "be a list of texts, or of lists of words", type(x)))
        return token_data.as_words(owner, x) if token_data.holds_words(x) else text_data.as_columns(owner, x)

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

    def _text_batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, shuffle: bool) -> Any:
        """A dataset of `(words or text, …)` in batches, checked."""
        owner = type(self).__name__
        if text_data.is_dataset(x):
            text_data.refuse_beside_dataset(owner, y=y, sample_weight=sample_weight)
            token_data.check_dataset(owner, x)
            return x if isinstance(x.element_spec, tuple) else x.map(lambda words: (words,))
        columns = self._columns(x)
        if not token_data.num_rows(columns):
            raise ValueError(checks.message(owner, "x", "hold at least one row", x))
        parts = [columns, self._labels(columns, y)]
        if sample_weight is not None:
            parts.append(token_data.as_weights(owner, sample_weight, columns))
        return token_data.batches(parts, batch_size=batch_size, shuffle=shuffle)

    def _one_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, Any, Any]:
        """One batch of words or texts, with labels and weights, as arrays for the model; ids as they are."""
        if not self._needs_preprocessing(x):
            return x, y, sample_weight
        size = token_data.num_rows(self._columns(x))
        batch = next(iter(self._batches(x, y, sample_weight, batch_size=size, shuffle=False)))
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

    def predict(self, x: Any, batch_size: int | None = None, **kwargs: Any) -> Any:
        """The logits of words as a NumPy array.

        Args:
            x: rows of words, or texts, whose words are those of the tokenizer; or a dataset of either. Ids as
                `keras.Model.predict` takes them, and then the logits are those of tokens.
            batch_size: rows a step, 32 if None.
            **kwargs: `verbose`; for ids, what else `keras.Model.predict` takes.

        Returns:
            Float32 `(rows, words, tags)`; 0 behind the last word of a row.
        """
        if not self._needs_preprocessing(x):
            return super().predict(x, batch_size=batch_size, **kwargs)
        verbose = kwargs.pop("verbose", "auto")
        if kwargs:
            raise TypeError(
                f"`{type(self).__name__}`: `predict` on text takes `verbose` only. Received: {sorted(kwargs)}."
            )
        found = [token_data.kept(logits, keep) for logits, _, keep in self._predicted(x, batch_size, verbose)]
        return token_data.stacked(found, len(self.tag_names))

    def predict_on_batch(self, x: Any) -> Any:
        """The logits of one batch, as `predict` gives them."""
        if not self._needs_preprocessing(x):
            return super().predict_on_batch(x)
        return self.predict(x, batch_size=max(1, token_data.num_rows(self._columns(x))), verbose=0)

    def _predict_windows(self, inputs: dict[str, np.ndarray], size: int) -> np.ndarray:
        """The logits of windows `(windows, sequence, tags)`, at most `size` of them at once."""
        starts = range(0, len(inputs["token_ids"]), size)
        parts = [{name: values[start : start + size] for name, values in inputs.items()} for start in starts]
        return np.concatenate([super(TokenTask, self).predict_on_batch(part) for part in parts])

    def _require_words(self, x: Any) -> None:
        """Refuses texts."""
        is_text = not token_data.holds_words(x) and (text_data.is_dataset(x) or len(self._columns(x)) > 0)
        if is_text:
            rule, cure = "be rows of words", "Ask `answer` for the entities of texts."
            raise TypeError(checks.message(type(self).__name__, "words", rule, type(x), cure))

    def _predicted(self, x: Any, batch_size: int | None, verbose: Any) -> Iterator[tuple[np.ndarray, ...]]:
        """Batch by batch: the words' logits `(batch, words, tags)`, where a word is, and where a given word begins."""
        if not text_data.is_dataset(x) and not token_data.num_rows(self._columns(x)):
            return
        batches = self._batches(x, None, None, batch_size=batch_size, shuffle=False)
        size = int(batches.cardinality())
        progress = keras.utils.Progbar(size if size >= 0 else None) if verbose in ("auto", 1) else None
        for step, (inputs, words, *_) in enumerate(batches, start=1):
            logits = self._predict_windows(keras.tree.map_structure(np.asarray, inputs), batch_size or 32)
            logits = logits.reshape(-1, len(self.tag_names))
            places, is_given = words["places"].numpy(), token_labels.begins_given_word(words["word_ids"]).numpy()
            yield logits[np.maximum(places, 0)], places != NO_WORD, is_given
            if progress is not None:
                progress.update(step, finalize=step == size)
