"""Texts whose tokens are masked, for masked language modelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers.data.pretraining.row_source import RowSource
from keras_bert_layers.decoding import find_masks
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.masked_lm_generator import MaskedLMGenerator
from keras_bert_layers.preprocessing.masking import Masking
from keras_bert_layers.tasks.inputs._arrays import on_host
from keras_bert_layers.tasks.inputs._epochs import Epochs
from keras_bert_layers.tasks.inputs._mask_reader import preprocessor_with_masks
from keras_bert_layers.tasks.inputs._row_sources import check_source, masked_batches
from keras_bert_layers.tasks.inputs.inputs import Inputs

POSITIONS = "mask_positions"


class MaskedInputs(Inputs):
    """Texts, or pairs of them, with tokens masked; the labels are the masked tokens.

    Training draws new masks in every epoch. Evaluation draws masks that follow from the text and the seed, so that it
    gives the same values each time, whatever the batch size. `predict` reads the `[MASK]` that a user wrote.

    Args:
        owner: the task's class, for errors.
        preprocessor: a `BertPreprocessor` whose vocabulary has `[MASK]`, or None.
        masking: which tokens are masked, and by what.
    """

    # An output row is as wide as the vocabulary, 120 kB for each mask.
    block_rows = 256
    #: Whether rows of a source have a label.
    takes_pairs = False

    def __init__(self, owner: str, preprocessor: Any, masking: Masking):
        super().__init__(owner, preprocessor)
        self.masking = masking
        if preprocessor is not None:
            self.made_once(MaskedLMGenerator, preprocessor.tokenizer, masking=masking)  # now, as it may draw a seed

    def batches_of(
        self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, epochs: Epochs | None
    ) -> tf.data.Dataset:
        """A dataset of masked batches, from texts or from a `RowSource`."""
        if not isinstance(x, RowSource):
            return super().batches_of(x, y, sample_weight, batch_size=batch_size, epochs=epochs)
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                rule = "be None where rows are made of documents"
                raise ValueError(checks.message(self.owner, name, rule, type(value)))
        check_source(self, x, has_labels=self.takes_pairs)
        return masked_batches(self, x, batch_size, epochs)

    def is_packed(self, x: Any) -> bool:
        """Whether `x` is a source of packed rows."""
        return isinstance(x, RowSource) and x.rule.is_packed

    @property
    def generator(self) -> MaskedLMGenerator:
        """Draws the masks."""
        return self.made_once(MaskedLMGenerator, self.preprocessor.tokenizer, masking=self.masking)

    @property
    def reader(self) -> BertPreprocessor:
        """The preprocessor that finds the `[MASK]` that a user wrote in a text."""
        return self.made_once(preprocessor_with_masks, self.bucketed())

    def labels(self, columns: Any, y: Any) -> Any:
        """Refused: the masked tokens are the labels."""
        cure = "The task masks tokens of the texts, which are then the labels."
        raise ValueError(checks.message(self.owner, "y", "be None for raw text", type(y), cure))

    def makes_labels(self, x: Any) -> bool:
        """The masked tokens are the labels."""
        return True

    def encode(self, x: Any, y: Any = None, sample_weight: Any = None, *, seed: Any = None) -> tuple[Any, ...]:
        """One batch of `(ids, labels, weights)` with new masks, in graph; a seed, or one a row, repeats masks."""
        return self.with_labels(self.generator(self.bucketed()(x), seed=seed), y, sample_weight)

    def with_labels(self, masked: tuple[Any, Any, Any], y: Any, sample_weight: Any) -> tuple[Any, ...]:
        """What the generator returned, as the model trains on it."""
        if y is not None:
            self.labels(None, y)
        inputs, labels, weights = masked
        if sample_weight is not None:
            weights *= tf.cast(sample_weight, weights.dtype)[:, None]
        return inputs, labels, weights

    def _encode_for(self, training: bool) -> Callable[..., tuple[Any, ...]]:
        return self.encode if training else self._encode_for_evaluation

    def _encode_for_evaluation(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        text = tf.strings.join(x, separator="\0") if isinstance(x, tuple) else x
        seeds = tf.strings.to_hash_bucket_fast(text, 2**62) + (self.generator.seed or 0)
        return self.encode(x, y, sample_weight, seed=seeds)

    def encoded(self, rows: tf.data.Dataset, epochs: Epochs | None) -> tf.data.Dataset:
        """A dataset of masked batches; for training with new masks in every epoch."""
        if epochs is None:
            return super().encoded(rows, epochs)
        # A stream of seeds, and not a stateful draw in `map`, whose parallel calls run in any order.
        seeds = epochs.seeded(self.masking.seed).dataset(tf.data.Dataset.random)
        seeds = seeds.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
        encode = self.traced(self.encode)
        return tf.data.Dataset.zip(rows, seeds).map(
            lambda parts, seed: encode(*parts, seed=seed), num_parallel_calls=tf.data.AUTOTUNE
        )

    def outputs(self, columns: Any, run: Callable[..., Any]) -> Any:
        """The outputs at each `[MASK]` that is written in a text."""
        return run(on_host(self.reader, columns), self.reader, finish=self.model_inputs)

    def model_inputs(self, ids: Any) -> Any:
        """The ids, with the positions of `[MASK]` where these are not given and there is a tokenizer."""
        if self.preprocessor is None or not isinstance(ids, dict) or POSITIONS in ids or "token_ids" not in ids:
            return ids
        token_ids, mask_id = ids["token_ids"], self.preprocessor.tokenizer.mask_id
        if tf.is_tensor(token_ids):
            return {**ids, POSITIONS: find_masks(token_ids, mask_id)[0]}
        return {**ids, POSITIONS: find_masks(keras.ops.convert_to_numpy(token_ids), mask_id)[0].numpy()}

    def id_names(self, names: list[str]) -> list[str]:
        """Without the positions, where `model_inputs` finds them."""
        return names if self.preprocessor is None else [name for name in names if name != POSITIONS]

    def tokens(self, *texts: Any) -> dict[str, Any]:
        """The ids for a batch of strings in which `[MASK]` is the mask, in graph."""
        return traced_once(self.reader, texts if len(texts) > 1 else texts[0])
