"""From questions and contexts of any length to windows that a BERT backbone can read, in graph."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.preprocessing._windows import Places, Windows, lay_windows, places
from keras_bert_layers.preprocessing.bert_preprocessor import PADDINGS, BertPreprocessor, as_strings, padded_width
from keras_bert_layers.preprocessing.bert_tokenizer import BertTokenizer

NUM_SPECIAL_TOKENS = 3
LARGEST_STRIDE = 128
NO_OFFSET = -1
OUTPUTS = ("token_ids", "segment_ids", "padding_mask", "rows", "starts", "ends")


@register
class SpanPreprocessor(keras.layers.Layer):
    """Turns questions and contexts into windows `[CLS] question [SEP] part of the context [SEP]`.

    A context that does not fit beside its question is read through several windows, each of which repeats the question
    and shares `stride` tokens of the context with the window before it. Every token of the context is in one at least,
    and the tensors say where in the context it stands, so that an answer can be cut out of the original text. The layer
    holds no weights; it runs eagerly, in `tf.data.Dataset.map`, and inside a functional model. It needs TensorFlow
    whatever the Keras backend is, and returns TensorFlow tensors.

    Args:
        tokenizer: a `BertTokenizer`.
        max_length: the largest number of tokens of a window, question and special tokens included.
        stride: how many tokens of the context two neighbouring windows share, as `stride` of the tokenizers of
            transformers and `--doc_stride` of its examples. (`--doc_stride` of google-research/bert is the distance of
            two windows, not their overlap.)
        padding: `"longest"`, `"max_length"` or `"bucket"`, as for `BertPreprocessor`, over all windows of a batch.
        name: the layer's name.
        **kwargs: what `keras.layers.Layer` takes.

    Call arguments:
        texts: a tuple `(questions, contexts)`, strings `(batch,)` each, or two single strings.

    Returns:
        A dictionary of int32 tensors. The windows of a context stand one behind the other, in the order of the batch,
        so there are at least as many as rows:

        - `"token_ids"`, `"segment_ids"`, `"padding_mask"`: `(windows, sequence)`, the backbone's inputs; the segment of
          the context and of the last `[SEP]` is 1;
        - `"rows"`: `(windows,)`, the row of the batch that a window belongs to;
        - `"starts"`, `"ends"`: `(windows, sequence)`, the bytes of the original context at which a token starts and
          ends; -1 where no token of the context stands.

    Raises:
        TypeError: a tokenizer that is none; text that is not strings.
        ValueError: an argument out of range; what is not a pair of equally long batches.
        tf.errors.InvalidArgumentError: a question of more than `max_question_length` tokens (it is shown): it would
            leave no room for a new part of the context. `windows_that_fit` leaves such a row out.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "who", "?", "a", "man", "sang", "and", "left"]
        >>> preprocessor = SpanPreprocessor(kbl.BertTokenizer(vocabulary), max_length=8, stride=1)
        >>> windows = preprocessor((["Who?"], ["A man sang and left"]))
        >>> windows["token_ids"].numpy().tolist()
        [[2, 4, 5, 3, 6, 7, 8, 3], [2, 4, 5, 3, 8, 9, 10, 3]]
        >>> windows["starts"].numpy()[1].tolist()
        [-1, -1, -1, -1, 6, 11, 15, -1]

    References:
        Devlin et al. 2018, arXiv:1810.04805, section 4.2; `convert_examples_to_features` in google-research/bert
        `run_squad.py`; `truncation="only_second"` with `return_overflowing_tokens` in transformers.
    """

    def __init__(
        self,
        tokenizer: BertTokenizer,
        max_length: int = 384,
        *,
        stride: int = LARGEST_STRIDE,
        padding: str = "longest",
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        if not isinstance(tokenizer, BertTokenizer):
            cure = "Make one with `BertTokenizer(vocabulary)` or `load_tokenizer(source)`."
            raise TypeError(checks.message("SpanPreprocessor", "tokenizer", "be a BertTokenizer", tokenizer, cure))
        self.tokenizer = tokenizer
        self.max_length = checks.positive_integer("SpanPreprocessor", "max_length", max_length)
        self.stride = checks.whole_number("SpanPreprocessor", "stride", stride)
        if self.max_question_length < 1:
            rule = (
                f"be at most {max_length - NUM_SPECIAL_TOKENS - 2} for max_length={max_length}, so that three special "
                "tokens, a question and one more token of the context fit"
            )
            raise ValueError(checks.message("SpanPreprocessor", "stride", rule, stride))
        self.padding = checks.one_of("SpanPreprocessor", "padding", padding, PADDINGS)
        # Strings stay TensorFlow strings: no other backend has them, and Keras must not convert them.
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.built = True

    @classmethod
    def from_preprocessor(cls, preprocessor: BertPreprocessor) -> SpanPreprocessor:
        """Windows of the tokens, the length and the padding of a `BertPreprocessor`.

        Args:
            preprocessor: what `load_preprocessor` returns, say.

        Returns:
            The preprocessor; its stride is a third of the length, and at most 128.
        """
        return cls(
            preprocessor.tokenizer,
            preprocessor.max_length,
            stride=min(LARGEST_STRIDE, preprocessor.max_length // 3),
            padding=preprocessor.padding,
        )

    @property
    def max_question_length(self) -> int:
        """How many tokens a question may have, so that every window shows a new part of the context."""
        return self.max_length - NUM_SPECIAL_TOKENS - self.stride - 1

    def call(self, texts: Any) -> dict[str, tf.Tensor]:
        """Tokenises, lays windows, adds special tokens and pads."""
        questions, contexts = _questions_and_contexts(texts)
        return self._all_windows(self._question_ids(questions), contexts)

    def windows_that_fit(self, texts: Any) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """The windows of the rows whose questions are not too long; the others have none, and are no error.

        For servers, where the rows of a batch come from several clients, and an error would be an error for all.

        Args:
            texts: as for a call.

        Returns:
            The same dictionary as from a call, and which questions have room, bool `(batch,)`.

        Raises:
            TypeError, ValueError: as for a call.
        """
        questions, contexts = _questions_and_contexts(texts)
        question_ids = self.tokenizer.tokenize(questions)
        fits = _lengths(question_ids) <= self.max_question_length
        windows = self._all_windows(tf.ragged.boolean_mask(question_ids, fits), tf.boolean_mask(contexts, fits))
        rows = tf.cast(tf.where(fits)[:, 0], tf.int32)
        return {**windows, "rows": tf.gather(rows, windows["rows"])}, fits

    def num_windows(self, texts: Any) -> tf.Tensor:
        """How many windows each row has, without filling them: what the number of training steps follows from.

        Args:
            texts: as for a call.

        Returns:
            int32 `(batch,)`.

        Raises:
            TypeError, ValueError, tf.errors.InvalidArgumentError: as for a call.
        """
        questions, contexts = _questions_and_contexts(texts)
        different, place = tf.unique(contexts)  # several questions often follow each other on one context
        context_lengths = tf.gather(_lengths(self.tokenizer.tokenize(different)), place)
        windows = self._windows(_lengths(self._question_ids(questions)), context_lengths)
        return tf.math.bincount(windows.rows, minlength=tf.size(questions))

    def _all_windows(self, question_ids: tf.RaggedTensor, contexts: tf.Tensor) -> dict[str, tf.Tensor]:
        """What a call returns, of questions that are tokens already and short enough."""
        context = self.tokenizer.tokenize_with_offsets(contexts)
        question_lengths = _lengths(question_ids)
        windows = self._windows(question_lengths, _lengths(context[0]))
        lengths = windows.lengths + tf.gather(question_lengths, windows.rows) + NUM_SPECIAL_TOKENS  # [W]
        width = padded_width(lengths, padding=self.padding, max_length=self.max_length)
        return self._filled(question_ids, context, windows, places(windows, question_lengths, width))

    def _windows(self, question_lengths: tf.Tensor, context_lengths: tf.Tensor) -> Windows:
        return lay_windows(context_lengths, self.max_length - NUM_SPECIAL_TOKENS - question_lengths, self.stride)

    def _question_ids(self, questions: tf.Tensor) -> tf.RaggedTensor:
        """Ragged int32 `(batch, tokens)`, behind an assertion that no question is too long; it shows the longest."""
        ids = self.tokenizer.tokenize(questions)
        lengths = tf.concat([_lengths(ids), [0]], 0)
        longest = tf.argmax(lengths)
        check = tf.debugging.Assert(
            lengths[longest] <= self.max_question_length,
            [
                f"{self.question_rule()} Received, as row, number of tokens and beginning:",
                longest,
                lengths[longest],
                tf.strings.substr(tf.concat([questions, [""]], 0)[longest], 0, 80),
            ],
        )
        with tf.control_dependencies([] if check is None else [check]):
            return tf.identity(ids)

    def question_rule(self) -> str:
        """How long a question may be, and why, as an error says it."""
        return (
            f"`SpanPreprocessor`: a question must have at most {self.max_question_length} tokens, as "
            f"max_length={self.max_length} and stride={self.stride} leave no room for more. Shorten it, raise "
            "max_length, or lower stride."
        )

    def _filled(
        self, question_ids: tf.RaggedTensor, context: tuple[tf.RaggedTensor, ...], windows: Windows, place: Places
    ) -> dict[str, tf.Tensor]:
        """The outputs: what stands at each place, gathered out of all tokens of the batch and the special ones."""
        ids, starts, ends = (tokens.flat_values for tokens in context)
        special = [self.tokenizer.start_id, self.tokenizer.separator_id, self.tokenizer.pad_id]
        all_ids = tf.concat([ids, question_ids.flat_values, tf.constant(special, tf.int32)], 0)
        of_context = place.context + _row_starts(context[0], windows.rows)  # [W, S], here and below
        of_question = place.question + _row_starts(question_ids, windows.rows) + tf.size(ids)
        is_start = tf.cumsum(tf.ones_like(of_context), axis=1) == 1
        of_special = tf.size(all_ids) - tf.where(place.is_real, tf.where(is_start, 3, 2), 1)
        of_others = tf.where(place.is_question, of_question, of_special)
        token_ids = tf.gather(all_ids, tf.where(place.is_context, of_context, of_others))
        of_offset = tf.where(place.is_context, of_context, tf.size(ids))
        return {
            "token_ids": token_ids,
            "segment_ids": tf.cast(place.is_second, tf.int32),
            "padding_mask": tf.cast(place.is_real, tf.int32),
            "rows": windows.rows,
            "starts": tf.gather(tf.concat([starts, [NO_OFFSET]], 0), of_offset),
            "ends": tf.gather(tf.concat([ends, [NO_OFFSET]], 0), of_offset),
        }

    def compute_output_spec(self, texts: Any) -> dict[str, keras.KerasTensor]:
        """Shapes and dtypes for a functional model: as many windows as there turn out to be."""
        shape = (None, self.max_length if self.padding == "max_length" else None)
        spec = {name: keras.KerasTensor(shape, dtype="int32") for name in OUTPUTS}
        return {**spec, "rows": keras.KerasTensor((None,), dtype="int32")}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument; the vocabulary travels with the tokenizer."""
        config = super().get_config()
        config.update(
            tokenizer=keras.saving.serialize_keras_object(self.tokenizer),
            max_length=self.max_length,
            stride=self.stride,
            padding=self.padding,
        )
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SpanPreprocessor:
        """The layer from `get_config`."""
        config = dict(config)
        config["tokenizer"] = keras.saving.deserialize_keras_object(config["tokenizer"])
        return cls(**config)


def _questions_and_contexts(texts: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Both as string tensors `(batch,)`.

    Keras itself passes several inputs as a list of tensors.
    """
    is_list_of_tensors = isinstance(texts, list) and len(texts) == 2 and all(hasattr(text, "shape") for text in texts)
    if not (isinstance(texts, tuple) or is_list_of_tensors) or len(texts) != 2:
        received = f"a {type(texts).__name__}" + (f" of {len(texts)}" if isinstance(texts, tuple | list) else "")
        raise ValueError(
            f"`SpanPreprocessor`: texts must be a tuple of two, (questions, contexts). Received: {received}."
        )
    questions, contexts = (as_strings("SpanPreprocessor", text) for text in texts)
    if questions.shape.rank == 0 and contexts.shape.rank == 0:
        questions, contexts = questions[None], contexts[None]
    if not questions.shape.is_compatible_with(contexts.shape):
        raise ValueError(
            "`SpanPreprocessor`: there must be as many contexts as questions. "
            f"Received: shapes {questions.shape} and {contexts.shape}."
        )
    return questions, contexts


def _lengths(tokens: tf.RaggedTensor) -> tf.Tensor:
    """int32 `(batch,)`."""
    return tf.cast(tokens.row_lengths(), tf.int32)


def _row_starts(tokens: tf.RaggedTensor, rows: tf.Tensor) -> tf.Tensor:
    """int32 `(windows, 1)`: where the tokens of each window's row begin among all tokens."""
    return tf.cast(tf.gather(tokens.row_starts(), rows), tf.int32)[:, None]
