"""Documents, which are lists of sentences, and pairs of texts, for BERT's pretraining."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.data.pretraining.row_source import RowSource
from keras_bert_layers.preprocessing.sentence_pairs import SentencePairs
from keras_bert_layers.preprocessing.token_documents import check_documents
from keras_bert_layers.tasks.inputs import _columns as columns_of
from keras_bert_layers.tasks.inputs._epochs import Epochs, of_length
from keras_bert_layers.tasks.inputs._row_order import RowOrder
from keras_bert_layers.tasks.inputs.inputs import TEXT
from keras_bert_layers.tasks.inputs.masked import MaskedInputs

MASKED_LM, NEXT_SENTENCE = "masked_lm", "next_sentence"


class DocumentInputs(MaskedInputs):
    """Documents, from which pairs of segments are drawn, or pairs of texts with labels; tokens of both are masked.

    Every epoch draws other pairs and other masks; evaluation draws the same ones each time.
    """

    takes_pairs = True
    text_inputs: Mapping[str, Any] = {"text": TEXT, "text_pair": TEXT}

    def labels(self, columns: Any, y: Any) -> Any:
        """A column of 0 and 1, checked row by row; tensors unchanged."""
        y = columns_of.as_array(y)
        if not isinstance(y, np.ndarray):
            return y
        rule = "every label must be 0 (the second text follows the first) or 1 (it does not)"
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(f"`{self.owner}`: {rule}. Received: shape={y.shape}. Give one label a row.")
        checks.every_row(self.owner, rule, y, np.isin(y, (0, 1)))
        return y

    def with_labels(self, masked: tuple[Any, Any, Any], y: Any, sample_weight: Any) -> tuple[Any, ...]:
        """What the generator returned, and whether the second text follows the first, as the model trains on it."""
        if y is None:
            cure = "Give 0 where the second text follows the first and 1 where it does not; or documents."
            raise ValueError(checks.message(self.owner, "y", "be given for pairs of texts", y, cure))
        inputs, labels, weights = masked
        by_pair = tf.ones_like(weights[:, 0]) if sample_weight is None else tf.cast(sample_weight, weights.dtype)
        labels = {MASKED_LM: labels, NEXT_SENTENCE: tf.cast(y, tf.int32)}
        return inputs, labels, {MASKED_LM: weights * by_pair[:, None], NEXT_SENTENCE: by_pair}

    def batches_of(
        self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, epochs: Epochs | None
    ) -> tf.data.Dataset:
        """A dataset of masked pairs, from documents or from columns."""
        if isinstance(x, tuple | RowSource):
            return super().batches_of(x, y, sample_weight, batch_size=batch_size, epochs=epochs)
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                rule = "be None where `x` is a list of documents"
                raise ValueError(checks.message(self.owner, name, rule, type(value)))
        if epochs is not None and epochs.order is RowOrder.BY_LENGTH:
            rule, cure = "be False for documents", "Pairs made of them are about as long as `max_length` allows."
            raise ValueError(checks.message(self.owner, "group_by_length", rule, True, cure))
        return self._pairs_of_documents(x, batch_size, epochs)

    def _pairs_of_documents(self, documents: Any, batch_size: int | None, epochs: Epochs | None) -> tf.data.Dataset:
        """Masked pairs from documents."""
        check_documents(self.owner, documents)
        preprocessor = self.bucketed()
        pairs = SentencePairs(documents, preprocessor.tokenizer, max_length=preprocessor.max_length)
        size = 32 if batch_size is None else checks.positive_integer(self.owner, "batch_size", batch_size)
        # Some epochs would have a few more pairs than others; Keras wants equally many steps in each.
        seed = self.masking.seed
        num_rows = len(pairs.draw(seed or 0))
        shuffle = epochs is not None and epochs.order is not RowOrder.AS_GIVEN

        def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for of_epoch in [seed or 0] if epochs is None else epochs.seeded(seed).seeds():
                rows, mask_seeds = _epoch(pairs, of_epoch, num_rows=num_rows, shuffle=shuffle)
                for start in range(0, num_rows, size):
                    yield rows[start : start + size], mask_seeds[start : start + size]

        def masked(rows: Any, mask_seeds: Any) -> tuple[Any, ...]:
            ids = preprocessor._pack(list(pairs.segments(rows)))
            return self.with_labels(self.generator(ids, seed=mask_seeds), rows[:, 4], None)

        specs = tf.TensorSpec([None, 5], tf.int64), tf.TensorSpec([None], tf.int64)
        dataset = tf.data.Dataset.from_generator(batches, output_signature=specs)
        dataset = of_length(dataset, -(-num_rows // size), epochs)
        return dataset.map(masked, num_parallel_calls=tf.data.AUTOTUNE)

    def split(self, x: Any, y: Any, sample_weight: Any, share: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The first and the last documents, or rows."""
        if isinstance(x, tuple) or columns_of.is_dataset(x):
            return super().split(x, y, sample_weight, share)
        check_documents(self.owner, x)
        (first, *_), (last, *_) = columns_of.split_rows(self.owner, share, x)
        return (first, y, sample_weight), (last, None, None)


def _epoch(pairs: SentencePairs, seed: int, *, num_rows: int, shuffle: bool) -> tuple[np.ndarray, np.ndarray]:
    """`num_rows` pairs, and one seed each for their masks."""
    generator = np.random.default_rng(seed)
    rows = pairs.draw(seed)
    while len(rows) < num_rows:
        rows = np.concatenate([rows, pairs.draw(int(generator.integers(2**63 - 1)))])
    chosen = generator.permutation(len(rows))[:num_rows]
    return rows[chosen if shuffle else np.sort(chosen)], generator.integers(2**63 - 1, size=num_rows)
