"""`MaskedLMGenerator`: random masks for masked language modelling, in TensorFlow graph."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.preprocessing.masking.masking import Masking
from keras_bert_layers.preprocessing.masking.random_numbers import integers, random_bits, row_seeds, uniform
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.preprocessing.tokenizer import Tokenizer, check_is_tokenizer

ORDER, KIND, TOKEN, LENGTH = range(4)  # streams of random numbers


@register
class MaskedLMGenerator(TextLayer):
    """Masks random tokens for masked language modelling, as in BERT's pretraining.

    In a row of n tokens, `max(1, round(mask_selection_rate * n))` are selected: tokens, whole words, or spans of words;
    `Masking` describes which. Special tokens count in n but are never selected. Each selected token is replaced by
    `[MASK]` (80 %) or by a random token of the vocabulary (10 %), or stays as it is (10 %). The model predicts all
    selected tokens.

    Every call draws new masks, also inside `tf.data.Dataset.map`, so that a text has different masks in every epoch.

    Args:
        tokenizer: a tokenizer whose vocabulary holds `[MASK]`, or `<mask>`.
        mask_selection_rate: the field of `Masking`.
        masking: a `Masking`: which tokens to select, and what replaces them. None for BERT's own settings, or for
            settings given as keyword arguments.
        name: the layer's name.
        **kwargs: fields of `Masking`, and arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: the output of a `BertPreprocessor`: a dictionary with int32 `(batch, sequence)` `"token_ids"` and
            `"padding_mask"`. In rows of several texts, the mask holds each token's text number; words and spans do not
            reach into another text.
        seed: an int64 scalar, which determines the masks of the batch; or int64 `(batch,)`, one seed per row, which
            makes a row's masks independent of the rest of the batch. None draws a new seed.

    Returns:
        A tuple `(x, y, sample_weight)`, as Keras trains on it:

        - the inputs with `"token_ids"` masked, and with `"mask_positions"`, int32 `(batch, masks)`, ascending;
        - labels, int32 `(batch, masks)`: the original tokens;
        - weights, float32 `(batch, masks)`: 1, or 0 after a row's last mask, where position and label are 0.

        The number of masks is that of a row of the full width `sequence`.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: an argument out of range; a vocabulary without `[MASK]`; inputs of another shape.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "night"])
        >>> generator = MaskedLMGenerator(tokenizer, mask_token_rate=1.0, random_token_rate=0.0, seed=1)
        >>> inputs, labels, weights = generator(kbl.BertPreprocessor(tokenizer)(["Night night", "Good good"]))
        >>> inputs["token_ids"].numpy().tolist(), inputs["mask_positions"].numpy().tolist()
        ([[2, 6, 4, 3], [2, 5, 4, 3]], [[2], [2]])
        >>> labels.numpy().tolist(), weights.numpy().tolist()
        ([[6], [5]], [[1.0], [1.0]])

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3.1; `create_masked_lm_predictions` in
        google-research/bert, create_pretraining_data.py, whose order of draws differs.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        mask_selection_rate: float | None = None,
        *,
        masking: Masking | None = None,
        name: str | None = None,
        **kwargs: Any,
    ):
        settings = {field: kwargs.pop(field) for field in Masking().to_dict() if field in kwargs}
        if mask_selection_rate is not None:
            settings["mask_selection_rate"] = mask_selection_rate
        check_tokenizer("MaskedLMGenerator", tokenizer)
        super().__init__(tokenizer, name=name, **kwargs)
        self.masking = Masking.from_arguments("MaskedLMGenerator", masking, settings)
        for field, value in self.masking.to_dict().items():
            setattr(self, field, value)
        self._special_ids = sorted({tokenizer.pad_id, tokenizer.start_id, tokenizer.separator_id, tokenizer.mask_id})
        self._drawn_seeds: Any = None

    def call(self, inputs: dict[str, Any], seed: Tensor | None = None) -> tuple[dict[str, Any], Any, Any]:
        """Selects and replaces tokens; see the class."""
        token_ids, padding_mask = (tf.convert_to_tensor(inputs[key]) for key in ("token_ids", "padding_mask"))
        if token_ids.shape.rank != 2:
            rule = "have two axes, (batch, sequence)"
            raise ValueError(checks.message("MaskedLMGenerator", 'inputs["token_ids"]', rule, token_ids.shape))
        # On an accelerator, starting these many small operations would cost more than running them here.
        with tf.device("CPU:0"):
            seeds = row_seeds(self._drawn_seed() if seed is None else seed, tf.shape(token_ids)[0])
            is_selected = self._selected(token_ids, padding_mask, seeds)  # bool [B, S]
            num_selected = tf.reduce_sum(tf.cast(is_selected, tf.int32), axis=-1)  # [B]
            num_masks = self._num_masks(token_ids)
            # A stable sort moves the selected positions to the front and keeps their order.
            positions = tf.argsort(tf.cast(~is_selected, tf.int32), axis=-1, stable=True)[:, :num_masks]  # [B, M]
            weights = tf.sequence_mask(num_selected, num_masks, dtype=tf.float32)
            positions *= tf.cast(weights, tf.int32)
            labels = tf.gather(token_ids, positions, batch_dims=1) * tf.cast(weights, tf.int32)
            masked = self._replaced(token_ids, is_selected, seeds)
        return {**inputs, "token_ids": masked, "mask_positions": positions}, labels, weights

    def _drawn_seed(self) -> tf.Tensor:
        if self._drawn_seeds is None:
            seed = random.randrange(2**31) if self.masking.seed is None else self.masking.seed
            # A variable keeps its state; TensorFlow's other random ops repeat in every epoch.
            with tf.init_scope(), tf.device("CPU:0"):
                self._drawn_seeds = tf.random.Generator.from_seed(seed)
        return self._drawn_seeds.uniform_full_int([], tf.int64)

    def _num_masks(self, token_ids: tf.Tensor) -> Any:
        """The number of columns of the masks; an int if the width is known."""
        if token_ids.shape[1] is None:
            return self._budget(tf.shape(token_ids)[1])
        with tf.init_scope():
            return int(self._budget(token_ids.shape[1]))

    def _budget(self, num_tokens: tf.Tensor) -> tf.Tensor:
        """The number of tokens to select; computed in float64, and halves rounded to even, as Python does."""
        wanted = tf.round(tf.cast(num_tokens, tf.float64) * self.masking.mask_selection_rate)
        budget = tf.maximum(tf.cast(wanted, tf.int32), 1)
        limit = self.masking.mask_selection_length
        return budget if limit is None else tf.minimum(budget, limit)

    def _selected(self, token_ids: tf.Tensor, padding_mask: tf.Tensor, seeds: tf.Tensor) -> tf.Tensor:
        """Whether each token is selected, bool `[B, S]`: takes words, or spans, in random order as long as they fit."""
        is_candidate = padding_mask > 0
        for special_id in self._special_ids:
            is_candidate &= token_ids != special_id
        words = tf.cumsum(tf.cast(self._begins(token_ids, padding_mask, is_candidate), tf.int32), axis=-1)  # [B, S]
        num_words = tf.shape(token_ids)[1] + 1
        sizes = _counted(is_candidate, words, num_words)  # [B, W], 0 for words that do not exist
        order = tf.argsort(random_bits(seeds, num_words, stream=ORDER), axis=-1)
        budget = self._budget(tf.math.count_nonzero(padding_mask > 0, axis=-1, dtype=tf.int32))
        longest = self.masking.longest_span
        if longest is None:
            is_taken = take_words(tf.gather(sizes, order, batch_dims=1), budget)
            is_taken = tf.gather(is_taken, tf.argsort(order, axis=-1), batch_dims=1)
        else:
            stop_rate = self.masking.span_stop_rate
            lengths = span_lengths(seeds, num_words, stop_rate=stop_rate, longest=longest, stream=LENGTH)
            runs = tf.cumsum(_counted(_firsts(is_candidate), words, num_words), axis=-1)
            is_taken = take_spans(sizes, runs, lengths, order, budget, longest=longest)
        return is_candidate & tf.gather(is_taken, words, batch_dims=1)

    def _begins(self, token_ids: tf.Tensor, padding_mask: tf.Tensor, is_candidate: tf.Tensor) -> tf.Tensor:
        """Where the tokens of another word begin, bool `[B, S]`."""
        if not self.masking.whole_words:
            return is_candidate
        begins = is_candidate & ~tf.gather(tf.constant(self.tokenizer.continues_word()), token_ids)
        if self.masking.longest_span is not None:
            return begins | _firsts(is_candidate)
        # Pieces behind a separator belong to the word before, as in Google's code, but not to another packed text.
        return begins | ((padding_mask > 1) & (padding_mask != _shifted(padding_mask)))

    def _replaced(self, token_ids: tf.Tensor, is_selected: tf.Tensor, seeds: tf.Tensor) -> tf.Tensor:
        """The ids, after replacing most of the selected ones."""
        width = tf.shape(token_ids)[1]
        kind = uniform(seeds, width, stream=KIND)
        if self.masking.longest_span is not None:  # one draw for all tokens of a run
            runs = tf.cumsum(tf.cast(_firsts(is_selected), tf.int32), axis=-1)
            kind = tf.gather(kind, tf.maximum(runs - 1, 0), batch_dims=1)
        mask_rate, random_rate = self.masking.mask_token_rate, self.masking.random_token_rate
        becomes_mask = is_selected & (kind < mask_rate)
        becomes_random = is_selected & ~becomes_mask & (kind < mask_rate + random_rate)
        tokens = integers(seeds, width, below=self.tokenizer.vocabulary_size(), stream=TOKEN)
        return tf.where(becomes_mask, self.tokenizer.mask_id, tf.where(becomes_random, tokens, token_ids))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument; the vocabulary travels with the tokenizer."""
        return {**super().get_config(), **self.masking.to_dict()}


def check_tokenizer(owner: str, tokenizer: Tokenizer) -> None:
    """Raises TypeError or ValueError unless `tokenizer` is a tokenizer with a mask token."""
    check_is_tokenizer(owner, tokenizer)
    if tokenizer.mask_token is None:
        cure = "The vocabularies of pretrained BERTs have it."
        raise ValueError(checks.message(owner, "tokenizer", "have a mask token in its vocabulary", tokenizer, cure))


def take_words(sizes: tf.Tensor, budget: tf.Tensor) -> tf.Tensor:
    """Takes words one after the other, and skips those that are larger than what is left of the budget.

    Args:
        sizes: int32 `[B, W]`, the number of tokens of each word, in the order in which to try them.
        budget: int32 `[B]`, the number of tokens to take.

    Returns:
        Whether each word is taken, bool `[B, W]`.
    """
    num_words = tf.shape(sizes)[1]
    budget = tf.minimum(budget, tf.reduce_sum(sizes, axis=-1))
    # Words are skipped one by one only after the first that does not fit.
    fits_with_all = tf.cumsum(sizes, axis=-1) <= budget[:, None]
    left = budget - tf.reduce_sum(tf.where(fits_with_all, sizes, 0), axis=-1)
    num_fitting = tf.reduce_sum(tf.cast(fits_with_all, tf.int32), axis=-1)  # [B]

    def try_word(index: tf.Tensor, left: tf.Tensor, is_taken: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        size = sizes[:, index]
        fits = (size > 0) & (size <= left) & (index >= num_fitting)
        is_this = tf.range(num_words) == index
        return index + 1, left - tf.where(fits, size, 0), is_taken | (fits[:, None] & is_this)

    def go_on(index: tf.Tensor, left: tf.Tensor, is_taken: tf.Tensor) -> tf.Tensor:
        return (index < num_words) & tf.reduce_any(left > 0)

    first = tf.reduce_min(num_fitting)
    return tf.while_loop(go_on, try_word, (first, left, fits_with_all & (sizes > 0)))[2]


def take_spans(
    sizes: tf.Tensor, runs: tf.Tensor, lengths: tf.Tensor, order: tf.Tensor, budget: tf.Tensor, *, longest: int
) -> tf.Tensor:
    """Takes spans of words, from each word in an order that is not taken yet, as far as they fit into the budget.

    A span ends before a word of another run, and before a word that is larger than what is left of the budget. It may
    reach into words that are taken; these cost nothing.

    Args:
        sizes: int32 `[B, W]`, the number of tokens of each word; 0 for words that do not exist.
        runs: int32 `[B, W]`, ascending, the run of words without a gap that each word belongs to.
        lengths: int32 `[B, W]`, the number of words in the span that begins at each word, from 1 to `longest`.
        order: int32 `[B, W]`, the words in the order in which to try them.
        budget: int32 `[B]`, the number of tokens to take.
        longest: the largest number of words in a span, L.

    Returns:
        Whether each word is taken, bool `[B, W]`.
    """
    num_rows, num_words = tf.unstack(tf.shape(sizes))
    places = tf.range(longest)
    # Words that do not exist follow the last one, so that each word has `longest` after it; in another run.
    width = num_words + longest
    table = tf.pad(tf.stack([sizes, runs], axis=-1), [[0, 0], [0, longest], [0, 0]], constant_values=-1)
    table = tf.reshape(table, [-1, 2])  # [B * (W + L), 2]
    lengths = tf.gather(lengths, order, batch_dims=1)
    order += width * tf.range(num_rows)[:, None]

    def try_span(index: tf.Tensor, left: tf.Tensor, taken: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        window = order[:, index, None] + places  # [B, L]
        size, run = tf.unstack(tf.gather(table, window), axis=-1)
        is_free = tf.gather(taken, window) == 0
        in_span = (places < lengths[:, index, None]) & (run == run[:, :1]) & (size[:, :1] > 0) & is_free[:, :1]
        size = tf.where(is_free, size, 0)
        new = tf.cast(in_span & (tf.cumsum(size, axis=-1) <= left[:, None]) & is_free, tf.int32)
        # Small operations: what touches all words takes most of the time.
        return (
            index + 1,
            left - tf.reduce_sum(new * size, axis=-1),
            tf.tensor_scatter_nd_add(taken, window[..., None], new),
        )

    def go_on(index: tf.Tensor, left: tf.Tensor, taken: tf.Tensor) -> tf.Tensor:
        return (index < num_words) & tf.reduce_any(left > 0)

    nothing = tf.zeros([num_rows * width], tf.int32)
    taken = tf.while_loop(go_on, try_span, (tf.constant(0), budget, nothing))[2]
    return tf.reshape(taken, [num_rows, width])[:, :num_words] > 0


def span_lengths(seeds: tf.Tensor, num_words: tf.Tensor, *, stop_rate: float, longest: int, stream: int) -> tf.Tensor:
    """The number of words in a span that begins at each word, int32 `[B, W]`.

    A length has the probability `stop_rate * (1 - stop_rate) ** (length - 1)`, divided by the sum up to `longest`.
    """
    sums = np.cumsum(np.float64(1 - stop_rate) ** np.arange(longest))
    bounds = (sums[:-1] / sums[-1]).astype(np.float32).tolist()
    return 1 + tf.raw_ops.Bucketize(input=uniform(seeds, num_words, stream=stream), boundaries=bounds)


def _shifted(values: tf.Tensor) -> tf.Tensor:
    """The value before each value of `[B, S]`; 0, or False, before the first."""
    return tf.pad(values, [[0, 0], [1, 0]])[:, :-1]


def _firsts(is_member: tf.Tensor) -> tf.Tensor:
    """Where runs of True begin, bool `[B, S]`."""
    return is_member & ~_shifted(is_member)


def _counted(is_member: tf.Tensor, words: tf.Tensor, num_words: tf.Tensor) -> tf.Tensor:
    """How many tokens of each word are True in `is_member`, int32 `[B, W]`."""
    num_rows = tf.shape(words)[0]
    offsets = num_words * tf.range(num_rows)[:, None]
    counts = tf.math.unsorted_segment_sum(tf.cast(is_member, tf.int32), words + offsets, num_words * num_rows)
    return tf.reshape(counts, [-1, num_words])
