"""Reads the `[MASK]` tokens that a user wrote in texts, for the predictions of a masked language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.decoding import find_masks
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.tokens.token_ids import AddedToken
from keras_bert_layers.preprocessing.word_piece.bert_tokenizer import BertTokenizer


class MaskTokenizer(BertTokenizer):
    """A tokenizer that finds `[MASK]` in a text, whatever its reference does."""

    def written_tokens(self) -> list[AddedToken]:
        """The tokens that are found in a text as they are written: `[MASK]` too."""
        return [*super().written_tokens(), AddedToken(self.special_tokens["mask"], special=True)]


def preprocessor_with_masks(given: BertPreprocessor) -> BertPreprocessor:
    """A preprocessor that finds `[MASK]` in texts, with the given one's lengths, truncation and padding."""
    tokenizer = given.tokenizer
    if tokenizer.reference == "huggingface":  # it finds [MASK] on its own
        return given
    options = {name: getattr(given, name) for name in ("padding", "truncation", "truncation_side")}
    return BertPreprocessor(MaskTokenizer(**tokenizer.get_config()), given.max_length, **options)


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
