"""`BertPreprocessor`: model inputs from texts or pairs of texts, in TensorFlow graph."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.hints import unavailable
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Strings
from keras_bert_layers.preprocessing.preprocessors.seen_text import seen_tokens
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.preprocessing.preprocessors.windows import NO_OFFSET
from keras_bert_layers.preprocessing.tokenizer import Tokenizer

PADDINGS = ("longest", "max_length", "bucket")
SIDES = ("right", "left")
TRUNCATIONS = ("longest_first", "only_first", "only_second")
BUCKETS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)


@register
class BertPreprocessor(TextLayer):
    """Turns strings, or pairs of strings, into `token_ids`, `segment_ids` and `padding_mask`.

    One text becomes `[CLS] text [SEP]`. A pair becomes `[CLS] first [SEP] second [SEP]`, with segment 0 up to and
    including the first `[SEP]`, and segment 1 after it. Texts that do not fit are truncated; short ones are padded. The
    layer has no weights. It runs eagerly, in `tf.data.Dataset.map`, and inside a functional model after
    `keras.Input(shape=(), dtype="string")`. It needs TensorFlow under every Keras backend, and returns TensorFlow
    tensors.

    Args:
        tokenizer: a `BertTokenizer`; or a `SentencePieceTokenizer` or a `BytePairTokenizer`, whose pairs are
            `<s> first </s></s> second </s>` with segment 0 throughout.
        max_length: the largest number of tokens in a row, special tokens included.
        padding: `"longest"` pads to the longest row of the batch, which costs least. `"max_length"` pads every batch
            to `max_length`, for compilers that need one shape. `"bucket"` pads to the smallest of 16, 32, 48, 64, 96,
            128, 192, 256, 384, 512 (and `max_length`) that holds the longest row, for compilers that can handle a few
            shapes.
        truncation: which text of a pair is shortened. `"longest_first"` shortens the longer one until both are equally
            long, and then both; the tokenizer's `reference` decides which text keeps an odd last token. `"only_first"`
            and `"only_second"` shorten only that text. A single text is shortened under the first two.
        truncation_side: where a text is cut: `"right"`, at its end, or `"left"`, at its beginning.
        name: the layer's name.
        **kwargs: arguments of `keras.layers.Layer`.

    Returns:
        A call returns a dictionary of three int32 tensors `(batch, sequence)`: `"token_ids"`; `"segment_ids"`, 0 or 1;
        and `"padding_mask"`, 1 for tokens and 0 for padding. For one string without a batch they are `(sequence,)`.

    Raises:
        TypeError: `tokenizer` is not a tokenizer; the text is not strings.
        ValueError: an argument out of range; a tuple that does not have two texts; a single text under `"only_second"`.
        tf.errors.InvalidArgumentError: under `"only_first"` or `"only_second"`, if the other text alone is too long.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "##ness", "night"]
        >>> preprocessor = kbl.BertPreprocessor(kbl.BertTokenizer(vocabulary), max_length=8)
        >>> preprocessor(["Goodness!", "Good night"])["token_ids"].numpy().tolist()
        [[2, 4, 5, 1, 3], [2, 4, 6, 3, 0]]
        >>> preprocessor((["Good"], ["night"]))["segment_ids"].numpy().tolist()
        [[0, 0, 0, 1, 1]]

    References:
        Devlin et al. 2018, arXiv:1810.04805, section 3 and figure 2; `_truncate_seq_pair` in google-research/bert
        `create_pretraining_data.py`.
    """

    from_preset, from_pretrained = unavailable("Use `keras_bert_layers.load_preprocessor(source)`.")
    (save_pretrained,) = unavailable("Use `checkpoints.save_huggingface`, which writes it with a model.", 1)

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_length: int = 128,
        *,
        padding: str = "longest",
        truncation: str = "longest_first",
        truncation_side: str = "right",
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(tokenizer, name=name, **kwargs)
        reason = ", for [CLS], one token and [SEP]"
        self.max_length = checks.integer("BertPreprocessor", "max_length", max_length, smallest=3, reason=reason)
        self.padding = checks.one_of("BertPreprocessor", "padding", padding, PADDINGS)
        self.truncation = checks.one_of("BertPreprocessor", "truncation", truncation, TRUNCATIONS)
        self.truncation_side = checks.one_of("BertPreprocessor", "truncation_side", truncation_side, SIDES)

    def call(self, text: Strings) -> dict[str, Any]:
        """Tokenizes, truncates, adds special tokens and pads."""
        first, second = split_pair(text)
        first = as_strings("BertPreprocessor", first)
        second = None if second is None else as_strings("BertPreprocessor", second)
        if first.shape.rank == 0:
            pair = tf.expand_dims(first, 0) if second is None else (first[None], second[None])
            return {key: value[0] for key, value in self.call(pair).items()}
        texts = [first] if second is None else [first, second]
        return self.framed(self.truncated([self.tokenizer.tokenize(part) for part in texts]))

    def with_offsets(self, text: Strings, *, prompt: str = "") -> dict[str, Any]:
        """The outputs of a call on a batch, and where people see each token in its text.

        Args:
            text: strings `(batch,)`, or a pair of them.
            prompt: a string that is put before every text; before the first one of a pair.

        Returns:
            What a call returns, with `"starts"` and `"ends"`, int32 `(batch, sequence)`: bytes of the text, or of that
            text of a pair which the token is from, without whitespace around it; -1 for special tokens, padding and the
            prompt. And `"begins_word"`, int32 of that shape, 1 where a word begins, and -1 where no text is.

        Raises:
            TypeError, ValueError, tf.errors.InvalidArgumentError: as for a call.
        """
        texts = [as_strings("BertPreprocessor", part) for part in split_pair(text) if part is not None]
        texts[0] = tf.strings.join([prompt, texts[0]])
        found = [seen_tokens(self.tokenizer, part) for part in texts]
        segments = self.truncated([seen.ids for seen in found])
        row, places, size = self.framed(segments), [], len(prompt.encode())
        for seen, segment in zip(found, segments, strict=True):
            both = tf.stack([seen.starts, seen.ends], axis=1) - size  # [T, 2]
            begins = tf.cast(seen.begins, tf.int32)[:, None]
            each = seen.ids.with_values(tf.concat([tf.where(both[:, :1] < 0, NO_OFFSET, both), begins], axis=1))
            places.append(keep_tokens(each, tf.cast(segment.row_lengths(), tf.int32), self.truncation_side))
            size = 0
        none = tf.fill([segments[0].nrows(), 1, 3], NO_OFFSET)
        width = tf.shape(row["token_ids"])[1]
        joined = self._joined(places, none, none).to_tensor(NO_OFFSET, shape=tf.stack([-1, width, 3]))
        return {**row, "starts": joined[..., 0], "ends": joined[..., 1], "begins_word": joined[..., 2]}

    def truncated(self, segments: list[tf.RaggedTensor]) -> list[tf.RaggedTensor]:
        """Shortens one or two texts to fit, ragged int32 `(batch, tokens)` each."""
        if len(segments) == 1:
            if self.truncation == "only_second":
                raise ValueError(
                    '`BertPreprocessor`: truncation="only_second" needs a pair. Received: one text. '
                    'Give a tuple of two texts, or set truncation="longest_first".'
                )
            return [keep_tokens(segments[0], self.max_length - 2, self.truncation_side)]
        return _truncate_pair(
            *segments,
            budget=self.max_length - 2 - self.tokenizer.num_pair_separators,
            truncation=self.truncation,
            side=self.truncation_side,
            reference=self.tokenizer.reference,
        )

    def framed(self, segments: list[tf.RaggedTensor]) -> dict[str, tf.Tensor]:
        """Adds special tokens and padding to one or two ragged `(batch, tokens)`."""
        special = (self.tokenizer.start_id, self.tokenizer.separator_id)
        row_ids = self._joined(segments, *(tf.fill([segments[0].nrows(), 1], value) for value in special))
        lengths = tf.cast(row_ids.row_lengths(), tf.int32)  # [B]
        width = padded_width(lengths, padding=self.padding, max_length=self.max_length)
        # [B, S]
        token_ids = row_ids.to_tensor(default_value=self.tokenizer.pad_id, shape=tf.stack([-1, width]))
        padding_mask = tf.sequence_mask(lengths, width, dtype=tf.int32)
        if self.padding == "max_length":
            token_ids.set_shape([None, width])
        if len(segments) == 1 or not self.tokenizer.second_segment:
            segment_ids = tf.zeros_like(token_ids)
        else:
            first_lengths = tf.cast(segments[0].row_lengths(), tf.int32) + 2
            segment_ids = padding_mask - tf.sequence_mask(first_lengths, width, dtype=tf.int32)
        return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}

    def _joined(self, segments: list[tf.RaggedTensor], start: tf.Tensor, separator: tf.Tensor) -> tf.RaggedTensor:
        """One or two ragged `(batch, tokens, ...)` as rows, with what stands before and after them."""
        parts = [start, segments[0], separator]
        for segment in segments[1:]:
            parts += [separator] * (self.tokenizer.num_pair_separators - 1) + [segment, separator]
        return tf.concat(parts, axis=1)  # ragged [B, (S), ...]

    def compute_output_spec(self, text: Strings) -> dict[str, keras.KerasTensor]:
        """Shapes and dtypes for a functional model: `(batch, None)`, or `(batch, max_length)`."""
        first, _ = split_pair(text)
        width = self.max_length if self.padding == "max_length" else None
        shape = (*first.shape, width)
        return {key: keras.KerasTensor(shape, dtype="int32") for key in ("token_ids", "segment_ids", "padding_mask")}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument; the tokenizer includes its vocabulary."""
        return {**constructor_arguments(BertPreprocessor, self), **super().get_config()}


def _truncate_pair(
    first_ids: tf.RaggedTensor, second_ids: tf.RaggedTensor, *, budget: int, truncation: str, side: str, reference: str
) -> list[tf.RaggedTensor]:
    """Shortens the two texts of each pair until they fit together.

    Args:
        first_ids: ragged int32 `(batch, tokens)`.
        second_ids: ragged int32 `(batch, tokens)`.
        budget: the number of tokens that both may have together, at least 0.
        truncation: `"longest_first"`, `"only_first"` or `"only_second"`.
        side: `"right"` to cut texts at their ends, `"left"` to cut them at their beginnings.
        reference: whose rule applies to an odd budget under `"longest_first"`: `"google"` removes a token of the second
            text at equal lengths, so the first keeps one more; `"huggingface"` (its tokenizers library) leaves one more
            to the text that was longer, or to the second text if both were equally long.

    Returns:
        The two shortened ragged tensors.

    Raises:
        tf.errors.InvalidArgumentError: a text that must not be shortened is longer than `budget`.

    References:
        `_truncate_seq_pair` in google-research/bert `create_pretraining_data.py`; `truncate_encodings` in
        huggingface/tokenizers `utils/truncation.rs`.
    """
    first_length = tf.cast(first_ids.row_lengths(), tf.int32)  # [B]
    second_length = tf.cast(second_ids.row_lengths(), tf.int32)  # [B]
    if truncation == "longest_first":
        first_kept, second_kept = _longest_first(first_length, second_length, budget, reference)
    elif truncation == "only_first":
        first_kept, second_kept = rest_of_budget(second_length, budget, "only_first"), second_length
    else:
        first_kept, second_kept = first_length, rest_of_budget(first_length, budget, "only_second")
    return [keep_tokens(first_ids, first_kept, side), keep_tokens(second_ids, second_kept, side)]


def _longest_first(
    first_length: tf.Tensor, second_length: tf.Tensor, budget: int, reference: str
) -> tuple[tf.Tensor, tf.Tensor]:
    """The number of tokens to keep of each text, int32 `(batch,)` each."""
    half = budget // 2
    first_is_longer = first_length > second_length
    if reference == "google":
        first_half = tf.fill(tf.shape(first_length), budget - half)
    else:
        first_half = tf.where(first_is_longer, budget - half, half)
    # The shorter text is not truncated as long as the longer one keeps at least as many tokens.
    first_kept = tf.maximum(first_half, budget - second_length)
    second_kept = tf.maximum(budget - first_half, budget - first_length)
    return tf.minimum(first_length, first_kept), tf.minimum(second_length, second_kept)


def rest_of_budget(whole_length: tf.Tensor, budget: int, truncation: str) -> tf.Tensor:
    """What is left of the budget after the text that is not truncated."""
    other = "second" if truncation == "only_first" else "first"
    check = tf.debugging.assert_less_equal(
        whole_length,
        budget,
        message=f'`BertPreprocessor`: under truncation="{truncation}" the {other} text must fit into max_length on its '
        f"own, that is, have at most {budget} tokens. Shorten it, raise max_length, or "
        'use truncation="longest_first".',
    )
    with tf.control_dependencies([] if check is None else [check]):
        return budget - whole_length


def keep_tokens(ids: tf.RaggedTensor, kept: tf.Tensor | int, side: str) -> tf.RaggedTensor:
    """The first `kept` tokens of each row, or with side `"left"` the last; shorter rows do not change."""
    starts = tf.cast(ids.row_starts(), tf.int32)
    lengths = tf.cast(ids.row_lengths(), tf.int32)
    kept = tf.minimum(lengths, kept)
    starts += lengths - kept if side == "left" else 0
    return tf.gather(ids.flat_values, tf.ragged.range(starts, starts + kept))


def padded_width(lengths: tf.Tensor, *, padding: str, max_length: int) -> tf.Tensor | int:
    """The number of columns that a batch is padded to.

    Args:
        lengths: int32 `(rows,)`, the number of tokens in each row, at most `max_length`.
        padding: `"longest"`, `"max_length"` or `"bucket"`.
        max_length: the largest number of tokens in a row.

    Returns:
        The width; an int under `"max_length"`.
    """
    if padding == "max_length":
        return max_length
    # An empty batch has no longest row; [CLS] [SEP] is the shortest there can be.
    longest = tf.maximum(tf.reduce_max(lengths), 2)
    if padding == "longest":
        return longest
    widths = tf.constant(bucket_widths(max_length), tf.int32)
    return tf.reduce_min(tf.boolean_mask(widths, widths >= longest))


def fitting_width(longest: int, *, padding: str, max_length: int) -> int:
    """`padded_width` without TensorFlow, from the number of tokens in the longest row."""
    if padding == "max_length":
        return max_length
    if padding == "longest":
        return max(longest, 2)
    return next(width for width in bucket_widths(max_length) if width >= longest)


def bucket_widths(max_length: int) -> list[int]:
    """The widths that `"bucket"` pads to."""
    return [width for width in BUCKETS if width < max_length] + [max_length]


def split_pair(text: Any) -> tuple[Any, Any | None]:
    """Splits the input into the first text and, for a pair, the second one.

    A pair is a tuple of two, or a list of two tensors (as Keras passes several inputs). A list of Python strings is a
    batch.

    Raises:
        ValueError: a tuple or list of tensors that does not have two elements; a tuple of two single strings, which
            could be a pair or a batch.
    """
    is_list_of_tensors = isinstance(text, list) and len(text) > 0 and all(hasattr(item, "shape") for item in text)
    if not isinstance(text, tuple) and not (is_list_of_tensors and len(text[0].shape) > 0):
        return text, None
    cure = "A pair is a tuple of two equally long lists; a batch of single texts is a list."
    if len(text) != 2:
        raise ValueError(f"`BertPreprocessor`: a pair must have two texts. Received: {len(text)}. {cure}")
    if all(isinstance(item, str | bytes) for item in text):
        raise ValueError(f"`BertPreprocessor`: a pair must be a tuple of two lists. Received: {text!r}. {cure}")
    return text[0], text[1]


def as_strings(owner: str, text: Any) -> tf.Tensor:
    """Converts text to a string tensor of rank 0 or 1; raises TypeError or ValueError that names `owner`."""
    try:
        tensor = tf.convert_to_tensor(text, dtype_hint=tf.string)  # an empty list is an empty batch
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`{owner}`: text must be strings. Received: {type(text).__name__} that is not "
            f"({str(error).splitlines()[0]}). Replace missing values (None, NaN) and halves of characters first."
        ) from error
    cure = "Give a string, or a list, array or tensor `(batch,)` of strings."
    if tensor.dtype != tf.string:
        raise TypeError(f"`{owner}`: text must be strings. Received: dtype={tensor.dtype.name}. {cure}")
    if tensor.shape.rank is None or tensor.shape.rank > 1:
        raise ValueError(f"`{owner}`: text must have rank 0 or 1. Received: shape={tensor.shape}. {cure}")
    return tensor
