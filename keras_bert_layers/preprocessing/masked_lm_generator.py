"""Masks for language modelling, drawn in graph: which tokens to hide, and what stands in their place."""

from __future__ import annotations

import random
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.preprocessing._random_numbers import integers, random_bits, row_seeds, uniform
from keras_bert_layers.preprocessing.bert_tokenizer import BertTokenizer
from keras_bert_layers.preprocessing.vocabulary import MASK

ORDER, KIND, TOKEN = range(3)  # streams of random numbers
SUFFIX = "##"


@register
class MaskedLMGenerator(keras.layers.Layer):
    """Hides tokens of a row, as BERT's masked language model learns to find them again.

    In a row of n tokens, `max(1, round(mask_selection_rate * n))` are selected, special tokens counted in n but never
    selected themselves. Each selected token, for itself, becomes `[MASK]` (80 %), a random token of the vocabulary
    (10 %), or stays (10 %). All that are selected are to be predicted.

    Every call draws anew, also inside `tf.data.Dataset.map`, so that a text has other masks in every epoch.

    Args:
        tokenizer: a `BertTokenizer` whose vocabulary holds `[MASK]`.
        mask_selection_rate: share of the tokens to select, in [0, 1).
        mask_selection_length: the largest number of tokens to select in a row; None for no limit.
        mask_token_rate: share of the selected tokens that become `[MASK]`, in [0, 1].
        random_token_rate: share of them that become a random token; both shares together at most 1.
        whole_words: whether all pieces of a word are selected together. A word that has more pieces than are left to
            select is passed over, so that a row may end with fewer. What becomes of a piece is drawn for each.
        seed: the same seed gives the same masks, call by call; None draws one when the layer is made, which
            `keras.utils.set_random_seed` makes the same again.
        name: the layer's name.
        **kwargs: what `keras.layers.Layer` takes.

    Call arguments:
        inputs: what a `BertPreprocessor` gives: a dictionary with int32 `(batch, sequence)` `"token_ids"` and
            `"padding_mask"`.
        seed: an int64 scalar, for masks that follow from it; or int64 `(batch,)`, one for each row, for masks that
            follow from the row and its seed alone. None draws anew.

    Returns:
        Three things, as Keras trains on them:

        - the inputs with `"token_ids"` masked, and with `"mask_positions"`, int32 `(batch, masks)`, ascending;
        - labels, int32 `(batch, masks)`: the tokens that were there;
        - weights, float32 `(batch, masks)`: 1, or 0 behind a row's last mask, where position and label are 0.

        There are as many masks as a row of the full width `sequence` gets.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: an argument out of its range; no `[MASK]` in the vocabulary; inputs of another shape.

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
        tokenizer: BertTokenizer,
        mask_selection_rate: float = 0.15,
        *,
        mask_selection_length: int | None = None,
        mask_token_rate: float = 0.8,
        random_token_rate: float = 0.1,
        whole_words: bool = False,
        seed: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        check_tokenizer("MaskedLMGenerator", tokenizer)
        check_masking(
            "MaskedLMGenerator",
            mask_selection_rate=mask_selection_rate,
            mask_selection_length=mask_selection_length,
            mask_token_rate=mask_token_rate,
            random_token_rate=random_token_rate,
            whole_words=whole_words,
            seed=seed,
        )
        self.tokenizer = tokenizer
        self.mask_selection_rate = float(mask_selection_rate)
        self.mask_selection_length = mask_selection_length
        self.mask_token_rate = float(mask_token_rate)
        self.random_token_rate = float(random_token_rate)
        self.whole_words = whole_words
        self.seed = seed
        self._special_ids = sorted({tokenizer.pad_id, tokenizer.start_id, tokenizer.separator_id, tokenizer.mask_id})
        self._drawn_seeds: Any = None
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.built = True

    def call(self, inputs: dict[str, Any], seed: Any = None) -> tuple[dict[str, Any], Any, Any]:
        """Selects and replaces; see the class."""
        token_ids, padding_mask = (tf.convert_to_tensor(inputs[key]) for key in ("token_ids", "padding_mask"))
        if token_ids.shape.rank != 2:
            rule = "have two axes, (batch, sequence)"
            raise ValueError(checks.message("MaskedLMGenerator", 'inputs["token_ids"]', rule, token_ids.shape))
        # On an accelerator these many small steps would cost more than all they save.
        with tf.device("CPU:0"):
            seeds = row_seeds(self._drawn_seed() if seed is None else seed, tf.shape(token_ids)[0])
            is_selected = self._selected(token_ids, padding_mask, seeds)  # bool [B, S]
            num_selected = tf.reduce_sum(tf.cast(is_selected, tf.int32), axis=-1)  # [B]
            num_masks = self._num_masks(token_ids)
            # A stable sort brings the selected places to the front, in their order.
            positions = tf.argsort(tf.cast(~is_selected, tf.int32), axis=-1, stable=True)[:, :num_masks]  # [B, M]
            weights = tf.sequence_mask(num_selected, num_masks, dtype=tf.float32)
            positions *= tf.cast(weights, tf.int32)
            labels = tf.gather(token_ids, positions, batch_dims=1) * tf.cast(weights, tf.int32)
            masked = self._replaced(token_ids, is_selected, seeds)
        return {**inputs, "token_ids": masked, "mask_positions": positions}, labels, weights

    def draw_seed(self) -> int:
        """A new seed of at least 0, for a call to take or for a whole stream of them; each is another."""
        return int(self._drawn_seed().numpy()) % 2**63

    def _drawn_seed(self) -> tf.Tensor:
        if self._drawn_seeds is None:
            seed = random.randrange(2**31) if self.seed is None else self.seed
            # A variable of its own: the state of TensorFlow's other random ops begins anew with every epoch.
            with tf.init_scope(), tf.device("CPU:0"):
                self._drawn_seeds = tf.random.Generator.from_seed(seed)
        return self._drawn_seeds.uniform_full_int([], tf.int64)

    def _num_masks(self, token_ids: tf.Tensor) -> Any:
        """How many columns the masks have: an int where the width is known."""
        if token_ids.shape[1] is None:
            return self._budget(tf.shape(token_ids)[1])
        with tf.init_scope():
            return int(self._budget(token_ids.shape[1]))

    def _budget(self, num_tokens: tf.Tensor) -> tf.Tensor:
        """How many of so many tokens are selected; in float64, and halves to even, as in Python."""
        wanted = tf.round(tf.cast(num_tokens, tf.float64) * self.mask_selection_rate)
        budget = tf.maximum(tf.cast(wanted, tf.int32), 1)
        return budget if self.mask_selection_length is None else tf.minimum(budget, self.mask_selection_length)

    def _selected(self, token_ids: tf.Tensor, padding_mask: tf.Tensor, seeds: tf.Tensor) -> tf.Tensor:
        """Which tokens are to be predicted: words in random order, as long as they fit."""
        is_candidate = padding_mask > 0
        for special_id in self._special_ids:
            is_candidate &= token_ids != special_id
        words = self._words(token_ids, is_candidate)  # [B, S]
        num_words = tf.shape(token_ids)[1] + 1
        offsets = num_words * tf.range(tf.shape(token_ids)[0])[:, None]
        sizes = tf.math.unsorted_segment_sum(
            tf.cast(is_candidate, tf.int32), words + offsets, num_words * tf.shape(token_ids)[0]
        )
        sizes = tf.reshape(sizes, [-1, num_words])  # [B, W], 0 for words that are not there
        order = tf.argsort(random_bits(seeds, num_words, stream=ORDER), axis=-1)
        is_taken = _taken(tf.gather(sizes, order, batch_dims=1), self._budget(tf.reduce_sum(padding_mask, axis=-1)))
        is_taken = tf.gather(is_taken, tf.argsort(order, axis=-1), batch_dims=1)
        return is_candidate & tf.gather(is_taken, words, batch_dims=1)

    def _words(self, token_ids: tf.Tensor, is_candidate: tf.Tensor) -> tf.Tensor:
        """Which word each token belongs to, int32 `[B, S]`: each its own, or a piece the last one that began."""
        begins = is_candidate
        if self.whole_words:
            vocabulary = self.tokenizer.get_config()["vocabulary"]
            is_suffix = tf.constant([token.startswith(SUFFIX) for token in vocabulary])
            begins &= ~tf.gather(is_suffix, token_ids)
        return tf.cumsum(tf.cast(begins, tf.int32), axis=-1)

    def _replaced(self, token_ids: tf.Tensor, is_selected: tf.Tensor, seeds: tf.Tensor) -> tf.Tensor:
        """The ids, with other ones in the place of most selected ones."""
        width = tf.shape(token_ids)[1]
        kind = uniform(seeds, width, stream=KIND)
        becomes_mask = is_selected & (kind < self.mask_token_rate)
        becomes_random = is_selected & ~becomes_mask & (kind < self.mask_token_rate + self.random_token_rate)
        tokens = integers(seeds, width, below=self.tokenizer.vocabulary_size(), stream=TOKEN)
        return tf.where(becomes_mask, self.tokenizer.mask_id, tf.where(becomes_random, tokens, token_ids))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument; the vocabulary travels with the tokenizer."""
        config = super().get_config()
        config.update(
            tokenizer=keras.saving.serialize_keras_object(self.tokenizer),
            mask_selection_rate=self.mask_selection_rate,
            mask_selection_length=self.mask_selection_length,
            mask_token_rate=self.mask_token_rate,
            random_token_rate=self.random_token_rate,
            whole_words=self.whole_words,
            seed=self.seed,
        )
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> MaskedLMGenerator:
        """The layer from `get_config`."""
        return cls(**{**config, "tokenizer": keras.saving.deserialize_keras_object(config["tokenizer"])})


def check_masking(
    owner: str,
    *,
    mask_selection_rate: Any,
    mask_selection_length: Any,
    mask_token_rate: Any,
    random_token_rate: Any,
    whole_words: Any,
    seed: Any,
) -> None:
    """Refuses arguments that are out of range, in the name of the class that was given them."""
    checks.fraction(owner, "mask_selection_rate", mask_selection_rate)
    if mask_selection_length is not None:
        checks.positive_integer(owner, "mask_selection_length", mask_selection_length)
    both = checks.share(owner, "mask_token_rate", mask_token_rate)
    both += checks.share(owner, "random_token_rate", random_token_rate)
    if both > 1:
        rule = f"be at most 1 together with `mask_token_rate` ({mask_token_rate})"
        raise ValueError(checks.message(owner, "random_token_rate", rule, random_token_rate))
    checks.boolean(owner, "whole_words", whole_words)
    if seed is not None:
        checks.whole_number(owner, "seed", seed)


def check_tokenizer(owner: str, tokenizer: Any) -> None:
    """Refuses what is not a tokenizer, or one that cannot mask."""
    if not isinstance(tokenizer, BertTokenizer):
        cure = "Make one with `BertTokenizer(vocabulary)` or `load_tokenizer(source)`."
        raise TypeError(checks.message(owner, "tokenizer", "be a BertTokenizer", tokenizer, cure))
    if MASK not in tokenizer.get_config()["vocabulary"]:
        cure = "A vocabulary that BERT was trained with has it."
        raise ValueError(checks.message(owner, "tokenizer", f"have {MASK} in its vocabulary", tokenizer, cure))


def _taken(sizes: tf.Tensor, budget: tf.Tensor) -> tf.Tensor:
    """Which words are taken, one after the other, those passed over that are larger than what is left.

    Args:
        sizes: int32 `[B, W]`, tokens of each word in the order in which they are looked at.
        budget: int32 `[B]`, how many tokens may be taken.

    Returns:
        bool `[B, W]`.
    """
    num_words = tf.shape(sizes)[1]
    budget = tf.minimum(budget, tf.reduce_sum(sizes, axis=-1))

    def look(place: tf.Tensor, left: tf.Tensor, is_taken: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        size = sizes[:, place]
        fits = (size > 0) & (size <= left)
        here = tf.range(num_words) == place
        return place + 1, left - tf.where(fits, size, 0), is_taken | (fits[:, None] & here)

    start = (tf.constant(0), budget, tf.zeros_like(sizes, tf.bool))
    return tf.while_loop(lambda place, left, is_taken: (place < num_words) & tf.reduce_any(left > 0), look, start)[2]
