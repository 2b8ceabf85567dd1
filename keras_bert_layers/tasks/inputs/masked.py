"""Texts whose tokens are masked, for masked language modelling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers.data.pretraining.row_source import RowSource
from keras_bert_layers.decoding import find_masks
from keras_bert_layers.preprocessing.masking.masked_lm_generator import MaskedLMGenerator
from keras_bert_layers.preprocessing.masking.masking import Masking
from keras_bert_layers.preprocessing.masking.random_numbers import mask_seeds
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.tokens.token_ids import AddedToken
from keras_bert_layers.preprocessing.word_piece.bert_tokenizer import BertTokenizer
from keras_bert_layers.tasks.inputs.columns import on_host
from keras_bert_layers.tasks.inputs.epochs import Epochs, RowOrder, of_length
from keras_bert_layers.tasks.inputs.inputs import Inputs


class MaskTokenizer(BertTokenizer):
    """A tokenizer that finds `[MASK]` in a text, whatever its reference does."""

    def written_tokens(self) -> list[AddedToken]:
        """The tokens that are found in a text as they are written: `[MASK]` too."""
        return [*super().written_tokens(), AddedToken(self.special_tokens["mask"], special=True)]


class Masks(NamedTuple):
    """The masks of a batch of B rows.

    Attributes:
        ids: the model's inputs, `"mask_positions"` among them.
        columns: int32 `[B, M]`, the index of each position among the masks written in its row; -1 for padding.
        num_columns: the number of masks in the row that has most, including those that truncation cut off.
    """

    ids: dict[str, Any]
    columns: tf.Tensor
    num_columns: tf.Tensor


def preprocessor_with_masks(given: BertPreprocessor) -> BertPreprocessor:
    """A preprocessor that finds `[MASK]` in texts, with the given one's lengths, truncation and padding."""
    tokenizer = given.tokenizer
    if tokenizer.reference == "huggingface":  # it finds [MASK] by itself
        return given
    options = {name: getattr(given, name) for name in ("padding", "truncation", "truncation_side")}
    return BertPreprocessor(MaskTokenizer(**tokenizer.get_config()), given.max_length, **options)


def read_masks(ids: dict[str, Any], preprocessor: BertPreprocessor, texts: Sequence[tf.Tensor]) -> Masks:
    """The masks of a batch of texts or pairs, and the column of the answer to each.

    Args:
        ids: what `preprocessor_with_masks` makes of the texts.
        preprocessor: the preprocessor.
        texts: strings `[B]`, one tensor or two.
    """
    tokenizer = preprocessor.tokenizer
    positions, counts = find_masks(ids["token_ids"], tokenizer.mask_id)
    # [B] each
    written = [tf.cast(tf.strings.split(text, tokenizer.mask_token).row_lengths(), tf.int32) - 1 for text in texts]
    order = tf.range(tf.shape(positions)[1])
    # Truncation cuts at the end of each text, so the masks that are left are its first; on the left, its last.
    segments = ids["segment_ids"]
    if not tokenizer.second_segment and len(texts) > 1:
        is_separator = tf.cast(ids["token_ids"] == tokenizer.separator_id, tf.int32)
        segments = tf.minimum(tf.cumsum(is_separator, axis=1), 1)
    is_second = tf.gather(segments, positions, batch_dims=1)
    is_mask = order < counts[:, None]
    num_first = tf.reduce_sum(tf.cast(is_mask & (is_second == 0), tf.int32), axis=-1, keepdims=True)
    moved = is_second * (written[0][:, None] - num_first)
    if preprocessor.truncation_side == "left":
        num_second = counts[:, None] - num_first
        lost = [number[:, None] - left for number, left in zip(written, (num_first, num_second), strict=False)]
        moved += tf.where(is_second == 1, lost[-1], lost[0])
    columns = tf.where(is_mask, order + moved, -1)
    # The maximum over no rows, or no masks, is the smallest integer.
    num_columns = tf.maximum(tf.maximum(tf.reduce_max(tf.add_n(written)), tf.reduce_max(columns) + 1), 0)
    return Masks({**ids, "mask_positions": positions}, columns, num_columns)


# Rows of neighbouring blocks; those of a block are shuffled when they are made.
SHUFFLED_ROWS = 10_000
ORDER_ROW = 2**62  # no row of a source has this number


def check_source(data: Any, source: RowSource, *, has_labels: bool) -> None:
    """Refuses rows that were made for another task, or by another tokenizer; ValueError."""
    if source.rule.has_labels != has_labels:
        rule = "hold pairs of texts" if has_labels else "hold rows without labels"
        cure = "`NextSentence` and `SentenceOrder` make pairs, for `BertPretrainer`. Other rows are for `BertMaskedLM`."
        raise ValueError(checks.message(data.owner, "x", rule, source.rule, cure))
    if source.tokenizer.get_config() != data.preprocessor.tokenizer.get_config():
        cure = "Make the rows with the tokenizer of the task's preprocessor."
        rule = "hold ids of the task's own tokenizer"
        raise ValueError(checks.message(data.owner, "x", rule, source.tokenizer, cure))


def masked_batches(data: Any, source: RowSource, batch_size: int | None, epochs: Epochs | None) -> tf.data.Dataset:
    """Batches with masks that follow from a seed, the epoch and a row's number alone.

    Args:
        data: the task's `MaskedInputs`.
        source: where the rows are from.
        batch_size: rows a batch, 32 if None.
        epochs: the epochs of training; None for evaluation, which reads epoch 0 in its order.
    """
    size = 32 if batch_size is None else checks.positive_integer(data.owner, "batch_size", batch_size)
    if epochs is None:
        zero = tf.constant(0, tf.int64)
        return _counted(_of_epoch(data, source, size, zero + (data.masking.seed or 0), zero), source, size, None)
    if source.num_rows is None and not epochs.are_endless:
        cure = "The number of rows of this source is not known before an epoch ends. `TokenShards` know theirs."
        raise ValueError(checks.message(data.owner, "steps_per_epoch", "be given", None, cure))
    if epochs.order is RowOrder.BY_LENGTH:
        rule, cure = (
            "be False where rows are made of documents",
            "Their rule made them about as long as `max_length` allows.",
        )
        raise ValueError(checks.message(data.owner, "group_by_length", rule, True, cure))
    shuffle = epochs.order is RowOrder.SHUFFLED

    def of_epoch(seed: Any, epoch: Any) -> tf.data.Dataset:
        return _of_epoch(data, source, size, seed, epoch, shuffle=shuffle)

    return _counted(epochs.seeded(data.masking.seed).numbered(of_epoch), source, size, epochs)


def _counted(dataset: tf.data.Dataset, source: RowSource, batch_size: int, epochs: Epochs | None) -> tf.data.Dataset:
    if source.num_rows is None:
        return dataset
    return of_length(dataset, -(-min(source.num_rows) // batch_size), epochs)


def _of_epoch(
    data: Any, source: RowSource, batch_size: int, seed: Any, epoch: Any, *, shuffle: bool = False
) -> tf.data.Dataset:
    rows = source.dataset(epoch)
    if source.num_rows is not None:
        rows = rows.take(min(source.num_rows))  # Keras wants equally many steps in each epoch
    if shuffle:
        order = mask_seeds(seed, epoch, tf.constant([ORDER_ROW], tf.int64))[0]
        rows = rows.shuffle(SHUFFLED_ROWS, seed=order, reshuffle_each_iteration=False)
    # JAX compiles each length, and packed rows are full.
    is_full = source.rule.is_packed or keras.backend.backend() == "jax" or data.preprocessor.padding != "longest"
    width = source.max_length if is_full else None
    shapes = {name: [] if name in ("row", "label") else [width] for name in rows.element_spec}
    pad_id = tf.constant(data.preprocessor.tokenizer.pad_id, tf.int32)
    padding = {name: pad_id if name == "token_ids" else None for name in shapes}

    masks_epoch = epoch % source.num_duplicates if source.static_masks else epoch

    def masked(batch: dict[str, Any]) -> tuple[Any, ...]:
        numbers, labels = batch.pop("row"), batch.pop("label", None)
        return data.with_labels(data.generator(batch, seed=mask_seeds(seed, masks_epoch, numbers)), labels, None)

    return rows.padded_batch(batch_size, shapes, padding).map(masked, num_parallel_calls=tf.data.AUTOTUNE)


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
