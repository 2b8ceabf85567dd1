"""Masked language modelling: texts, or rows of a `RowSource`, whose tokens are masked for training."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import needs_tensorflow, tf
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers._internal.types import Columns, Labels, Rows, Tensor
from keras_bert_layers.data.pretraining.row_source import SEQUENCES, RowSource
from keras_bert_layers.decoding import find_masks
from keras_bert_layers.preprocessing.masking.masked_lm_generator import MaskedLMGenerator
from keras_bert_layers.preprocessing.masking.masking import Masking
from keras_bert_layers.preprocessing.masking.random_numbers import mask_seeds, row_seeds
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.feeding import former_order
from keras_bert_layers.tasks.feeding.columns import on_host
from keras_bert_layers.tasks.feeding.epochs import Epochs, RowOrder, with_num_batches
from keras_bert_layers.tasks.feeding.global_batches import are_cut_early, cut_and_encoded
from keras_bert_layers.tasks.feeding.kind_of_data import BatchMaker
from keras_bert_layers.tasks.inputs.inputs import Inputs
from keras_bert_layers.tasks.inputs.written_masks import preprocessor_with_masks

POSITIONS = "mask_positions"
# As BERT's tokenizers and ModernBERT's write it, and as RoBERTa's and its relatives' do.
MASK_TOKENS = ("[MASK]", "<mask>")
# Rows of neighbouring blocks; those of a block are shuffled when they are made.
SHUFFLED_ROWS = 10_000
ORDER_ROW = 2**62  # no row of a source has this number


class MaskedInputs(Inputs):
    """Texts, or pairs of them, with tokens masked; the labels are the masked tokens.

    Training draws new masks in every epoch. Evaluation draws masks that follow from the text and the seed, so that it
    gives the same values each time, whatever the batch size. `predict` reads the `[MASK]` that a user wrote.

    Args:
        owner: the task's class, for errors.
        preprocessor: a `BertPreprocessor` whose vocabulary has `[MASK]`, or None.
        masking: which tokens are masked, and with what.
    """

    # A row of outputs is as wide as the vocabulary: 120 kB for each mask.
    block_rows = 256
    #: Whether rows are pairs of texts with a label.
    takes_pairs = False
    takes_row_sources = True
    added_inputs = (POSITIONS,)

    def __init__(self, owner: str, preprocessor: TextLayer | None, masking: Masking):
        super().__init__(owner, preprocessor)
        self.masking = masking
        if preprocessor is not None:
            self.made_once(MaskedLMGenerator, preprocessor.tokenizer, masking=masking)  # now, as it may draw a seed

    @property
    def generator(self) -> MaskedLMGenerator:
        """Draws the masks."""
        return self.made_once(MaskedLMGenerator, self.preprocessor.tokenizer, masking=self.masking)

    @property
    def reader(self) -> BertPreprocessor:
        """The preprocessor that finds the `[MASK]` that a user wrote in a text."""
        return self.made_once(preprocessor_with_masks, self.bucketed())

    def labels(self, columns: Any, y: Labels) -> Any:
        """Refused: the masked tokens are the labels."""
        cure = "The task masks tokens of the texts, which are then the labels."
        raise ValueError(checks.message(self.owner, "y", "be None for raw text", type(y), cure))

    def makes_labels(self, x: Rows) -> bool:
        """The masked tokens are the labels."""
        return True

    # Batches of texts.

    def encode(
        self, x: Columns, y: Any = None, sample_weight: Any = None, *, seed: Tensor | None = None
    ) -> tuple[Any, ...]:
        """One batch of `(ids, labels, weights)` with new masks, in graph; a seed, or one per row, repeats masks."""
        ids = x if isinstance(x, dict) else self.bucketed()(x)
        return self.with_labels(self.generator(ids, seed=seed), y, sample_weight)

    def with_labels(self, masked: tuple[Any, Any, Any], y: Tensor, sample_weight: Any) -> tuple[Any, ...]:
        """What the generator returned, as the model trains on it."""
        if y is not None:
            self.labels(None, y)
        inputs, labels, weights = masked
        if sample_weight is not None:
            weights *= tf.cast(sample_weight, weights.dtype)[:, None]
        return inputs, labels, weights

    def encoder(self, *, training: bool) -> Callable[..., tuple[Any, ...]]:
        """`encode`, for training or for evaluation."""
        return self.encode if training else self._encode_for_evaluation

    def _encode_for_evaluation(
        self, x: Columns, y: Tensor | None = None, sample_weight: Tensor | None = None
    ) -> tuple[Any, ...]:
        text = tf.strings.join(x, separator="\0") if isinstance(x, tuple) else x
        seeds = tf.strings.to_hash_bucket_fast(text, 2**62) + (self.generator.seed or 0)
        return self.encode(x, y, sample_weight, seed=seeds)

    def encoded(self, rows: tf.data.Dataset, epochs: Epochs | None) -> tf.data.Dataset:
        """A dataset of masked batches; for training with new masks in every epoch."""
        if epochs is None:
            return super().encoded(rows, epochs)
        # A seed for each batch; those of neighbours may be neighbours too, as `row_seeds` mixes them.
        seeds = epochs.seeded(self.masking.seed).dataset(
            lambda seed: tf.data.Dataset.range(seed // 2, 2**63 - 1), former_order.random_numbers
        )
        seeds = seeds.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
        traced = self.batches.traced(self.encode)
        are_cut = are_cut_early()
        is_width_open = are_cut and self.bucketed().padding != "max_length"

        def encode(parts: tuple[Any, ...], seeds: tf.Tensor) -> tuple[Any, ...]:
            return traced(*parts, seed=seeds)

        def masked(parts: tuple[Any, ...], seed: tf.Tensor) -> tuple[Any, ...]:
            seeds = row_seeds(seed, tf.shape(tf.nest.flatten(parts)[0])[0])
            if is_width_open:  # the ids of all rows decide the width, but a row's masks follow from its own
                parts = self.bucketed()(parts[0]), *parts[1:]
            return cut_and_encoded(encode, parts, seeds) if are_cut else encode(parts, seeds)

        return tf.data.Dataset.zip(rows, seeds).map(masked, num_parallel_calls=tf.data.AUTOTUNE)

    # Batches of the rows of a source. Their masks follow from a seed, the epoch and a row's number alone.

    def batches_of(self, x: Rows, y: Labels, sample_weight: Labels, *, batch_size: int | None) -> BatchMaker:
        """What makes masked batches, from texts or from a `RowSource`."""
        if not isinstance(x, RowSource):
            return super().batches_of(x, y, sample_weight, batch_size=batch_size)
        needs_tensorflow("pretraining from documents")
        self._check_source(x, y=y, sample_weight=sample_weight)
        size = 32 if batch_size is None else checks.positive_integer(self.owner, "batch_size", batch_size)
        return functools.partial(self._batches_of_source, x, size)

    def _batches_of_source(self, x: RowSource, size: int, epochs: Epochs | None) -> tf.data.Dataset:
        """A dataset of masked batches of so many rows."""
        if epochs is None:  # evaluation reads epoch 0 in its order
            zero = tf.constant(0, tf.int64)
            batches = self._batches_of_epoch(x, size, zero + (self.masking.seed or 0), zero)
        else:
            self._check_epochs(x, epochs)
            shuffle = epochs.order is RowOrder.SHUFFLED
            batches = epochs.seeded(self.masking.seed).numbered(
                lambda seed, epoch: self._batches_of_epoch(x, size, seed, epoch, shuffle=shuffle)
            )
        return batches if x.num_rows is None else with_num_batches(batches, -(-min(x.num_rows) // size), epochs)

    def _refusal(self, name: str, rule: str, value: object, cure: str = "") -> Exception:
        return ValueError(checks.message(self.owner, name, rule, value, cure))

    def _check_source(self, source: RowSource, **others: Any) -> None:
        """Refuses rows that were made for another task or by another tokenizer, and what they do not go with."""
        for name, value in others.items():
            if value is not None:
                raise self._refusal(name, "be None where rows are made of documents", type(value))
        if source.rule.has_labels != self.takes_pairs:
            rule = "hold pairs of texts" if self.takes_pairs else "hold rows without labels"
            cure = (
                "`NextSentence` and `SentenceOrder` make pairs, for `BertPretrainer`. "
                "Other rows are for `BertMaskedLM`."
            )
            raise self._refusal("x", rule, source.rule, cure)
        if source.tokenizer.get_config() != self.preprocessor.tokenizer.get_config():
            cure = "Make the rows with the tokenizer of the task's preprocessor."
            raise self._refusal("x", "hold ids of the task's own tokenizer", source.tokenizer, cure)

    def _check_epochs(self, source: RowSource, epochs: Epochs) -> None:
        """Refuses epochs that rows of a source cannot have."""
        if source.num_rows is None and not epochs.are_endless:
            cure = "The number of rows of this source is not known before an epoch ends. `TokenShards` know theirs."
            raise self._refusal("steps_per_epoch", "be given", None, cure)
        if epochs.order is RowOrder.BY_LENGTH:
            cure = "Their rule made them about as long as `max_length` allows."
            raise self._refusal("group_by_length", "be False where rows are made of documents", True, cure)

    def _batches_of_epoch(
        self, source: RowSource, batch_size: int, seed: Any, epoch: Any, *, shuffle: bool = False
    ) -> tf.data.Dataset:
        rows = equally_many(source, epoch)
        if shuffle:
            order = mask_seeds(seed, epoch, tf.constant([ORDER_ROW], tf.int64))[0]
            # Of the graph that is traced here: TensorFlow's global seed would be mixed into each seed that is given.
            tf.random.set_seed(1)
            rows = rows.shuffle(SHUFFLED_ROWS, seed=order, reshuffle_each_iteration=False)
        # JAX compiles each length, and packed rows are full.
        is_full = source.rule.is_packed or keras.backend.backend() == "jax" or self.preprocessor.padding != "longest"
        width = source.max_length if is_full else None
        padding = {"token_ids": tf.constant(self.preprocessor.tokenizer.pad_id, tf.int32)}
        if rows_of_records := getattr(source, "rows_of_records", None):
            batches = rows.batch(batch_size)
        else:
            shapes = {name: [width] if name in SEQUENCES else [] for name in rows.element_spec}
            batches = rows.padded_batch(batch_size, shapes, {name: padding.get(name) for name in shapes})
        masks_epoch = epoch % source.num_duplicates if source.static_masks else epoch

        def masked(batch: Any) -> tuple[Any, ...]:
            if rows_of_records:
                batch = rows_of_records(batch)
                batch |= {name: batch[name].to_tensor(padding.get(name), shape=[None, width]) for name in SEQUENCES}
            numbers, labels = batch.pop("row"), batch.pop("label", None)
            return self.with_labels(self.generator(batch, seed=mask_seeds(seed, masks_epoch, numbers)), labels, None)

        # With early cuts, on JAX, all batches have one width.
        encode = functools.partial(cut_and_encoded, masked) if are_cut_early() else masked
        return batches.map(encode, num_parallel_calls=tf.data.AUTOTUNE)

    # Outputs at each `[MASK]` that is written in a text.

    def answer_columns(self, x: Rows) -> list[Any]:
        """The columns of texts; warns of rows without a mask to fill, or with the mask token of other models."""
        columns, mask = super().answer_columns(x), self.preprocessor.tokenizer.mask_token
        others = [name for name in MASK_TOKENS if name != mask]
        rows = ["\0".join(map(_as_text, texts)) for texts in zip(*columns, strict=True)]
        foreign = [row for row, text in enumerate(rows) if any(other in text for other in others)]
        without = [] if self.takes_pairs else [row for row, text in enumerate(rows) if mask not in text]
        if found := foreign or without:
            kind = f"the mask token of another model, one of {others}" if foreign else "no mask"
            rule = f"the mask of this tokenizer is written {mask!r}"
            received = f"{len(found)} of {len(rows)} texts with {kind}, first in row {found[0]}"
            warnings.warn(checks.row_message(self.owner, rule, received, f"Write {mask!r}."), stacklevel=2)
        return columns

    def outputs(self, columns: Any, run: Callable[..., Any]) -> Any:
        """The outputs at each `[MASK]` that is written in a text."""
        return run(on_host(self.reader, columns), self.reader, finish=self.model_inputs)

    def model_inputs(self, ids: Rows) -> Any:
        """The ids, with the positions of `[MASK]` where these are not given and there is a tokenizer."""
        if self.preprocessor is None or not isinstance(ids, dict) or POSITIONS in ids or "token_ids" not in ids:
            return ids
        token_ids, mask_id = ids["token_ids"], self.preprocessor.tokenizer.mask_id
        if tf.is_tensor(token_ids):
            return {**ids, POSITIONS: find_masks(token_ids, mask_id)[0]}
        return {**ids, POSITIONS: find_masks(keras.ops.convert_to_numpy(token_ids), mask_id)[0].numpy()}

    def tokens(self, *texts: Tensor) -> dict[str, Any]:
        """The ids for a batch of strings in which `[MASK]` is the mask, in graph."""
        return traced_once(self.reader, texts if len(texts) > 1 else texts[0])


def _as_text(text: str | bytes) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def equally_many(source: RowSource, epoch: Any) -> tf.data.Dataset:
    """The rows of an epoch, or the records of a source that has some, as many as in all others, as Keras needs it.

    Duplicates of a corpus may differ by a few rows. What a longer one leaves out is its end the first time, and other
    rows each time it comes again, so that all rows are trained on.
    """
    rows = getattr(source, "records", source.dataset)(epoch)
    if source.num_rows is None or min(source.num_rows) == max(source.num_rows):
        return rows
    num_duplicates = len(source.num_rows)
    size = tf.constant(source.num_rows, tf.int64)[epoch % num_duplicates]
    spare = size - min(source.num_rows)
    # Rows from `begin` to `end` are left out; a negative `begin` counts from the end.
    end = size - epoch // num_duplicates * spare % size
    begin = end - spare
    first = tf.where(begin < 0, end, 0)
    rest = rows.take(-tf.cast((begin >= 0) & (end < size), tf.int64))  # if there is none, nothing is read again
    return rows.skip(first).take(begin + tf.where(begin < 0, size, 0) - first).concatenate(rest.skip(end))
