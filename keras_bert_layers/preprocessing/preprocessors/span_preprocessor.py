"""`SpanPreprocessor`: model inputs for extractive question answering, with contexts of any length."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import check_in_graph, constructor_arguments
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Strings
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import (
    PADDINGS,
    BertPreprocessor,
    as_strings,
    padded_width,
)
from keras_bert_layers.preprocessing.preprocessors.seen_text import seen_tokens
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.preprocessing.preprocessors.windows import LaidWindows, fill_windows, lay_windows, row_lengths
from keras_bert_layers.preprocessing.tokenizer import Tokenizer

LARGEST_STRIDE = 128
OUTPUTS = ("token_ids", "segment_ids", "padding_mask", "rows", "starts", "ends")


@register
class SpanPreprocessor(TextLayer):
    """Turns questions and contexts into windows `[CLS] question [SEP] part of the context [SEP]`.

    A context that does not fit beside its question is split into several windows. Each window repeats the question and
    shares `stride` tokens of the context with the window before it, so every token of the context is in at least one
    window. The outputs include the position of each token in the context, so that an answer can be cut out of the
    original text. The layer has no weights. It runs eagerly, in `tf.data.Dataset.map` and inside a functional model. It
    needs TensorFlow under every Keras backend, and returns TensorFlow tensors.

    Args:
        tokenizer: a `BertTokenizer`, a `SentencePieceTokenizer` or a `BytePairTokenizer`.
        max_length: the largest number of tokens in a window, question and special tokens included.
        stride: the number of tokens of the context that two neighbouring windows share, like `stride` in transformers'
            tokenizers and `--doc_stride` in its examples. (`--doc_stride` in google-research/bert is the distance
            between two windows, not their overlap.)
        padding: `"longest"`, `"max_length"` or `"bucket"`, as in `BertPreprocessor`, for all windows of a batch.
        name: the layer's name.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        texts: a tuple `(questions, contexts)` of strings `(batch,)`, or of two single strings.

    Returns:
        A dictionary of int32 tensors. The windows follow the order of the batch, and there are at least as many windows
        as rows:

        - `"token_ids"`, `"segment_ids"`, `"padding_mask"`: `(windows, sequence)`, the inputs of the backbone; the
          segment of the context and of the last `[SEP]` is 1;
        - `"rows"`: `(windows,)`, the row of the batch that a window belongs to;
        - `"starts"`, `"ends"`: `(windows, sequence)`, the bytes of the original context at which a token starts and
          ends; -1 at positions without a token of the context.

    Raises:
        TypeError: `tokenizer` is not a tokenizer; the texts are not strings.
        ValueError: an argument out of range; texts that are not a pair of equally long batches.
        tf.errors.InvalidArgumentError: a question of more than `max_question_length` tokens, which leaves no room for a
            new part of the context; the message shows it. `windows_that_fit` skips such a row.

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
        tokenizer: Tokenizer,
        max_length: int = 384,
        *,
        stride: int = LARGEST_STRIDE,
        padding: str = "longest",
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(tokenizer, name=name, **kwargs)
        self.max_length = checks.positive_integer("SpanPreprocessor", "max_length", max_length)
        self.stride = checks.whole_number("SpanPreprocessor", "stride", stride)
        if self.max_question_length < 1:
            rule = (
                f"be at most {max_length - self._num_special_tokens - 2} for max_length={max_length}, so that the "
                "special tokens, a question and one more token of the context fit"
            )
            raise ValueError(checks.message("SpanPreprocessor", "stride", rule, stride))
        self.padding = checks.one_of("SpanPreprocessor", "padding", padding, PADDINGS)

    @classmethod
    def from_preprocessor(cls, preprocessor: BertPreprocessor) -> SpanPreprocessor:
        """Makes a span preprocessor with the tokenizer, length and padding of a `BertPreprocessor`.

        Args:
            preprocessor: a `BertPreprocessor`, for example from `load_preprocessor`.

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
    def _num_special_tokens(self) -> int:
        return 2 + self.tokenizer.num_pair_separators

    @property
    def max_question_length(self) -> int:
        """The largest number of tokens in a question; with more, a window would show no new part of the context."""
        return self.max_length - self._num_special_tokens - self.stride - 1

    def call(self, texts: Strings) -> dict[str, tf.Tensor]:
        """Tokenizes, splits into windows, adds special tokens and pads."""
        questions, contexts = _questions_and_contexts(texts)
        return self._all_windows(self._question_ids(questions), contexts)

    def windows_that_fit(self, texts: Strings) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Makes windows for the rows whose questions fit, and skips the other rows without an error.

        This is for servers: the rows of a batch come from several clients, and an error would fail all of them.

        Args:
            texts: as for a call.

        Returns:
            The dictionary that a call returns, and whether each question fits, bool `(batch,)`.

        Raises:
            TypeError, ValueError: as for a call.
        """
        questions, contexts = _questions_and_contexts(texts)
        question_ids = self.tokenizer.tokenize(questions)
        fits = row_lengths(question_ids) <= self.max_question_length
        rows = tf.cast(tf.where(fits)[:, 0], tf.int32)
        windows = self._all_windows(tf.gather(question_ids, rows), tf.gather(contexts, rows))
        return {**windows, "rows": tf.gather(rows, windows["rows"])}, fits

    def with_words(self, texts: Strings) -> dict[str, tf.Tensor]:
        """The outputs of a call, and which tokens begin a word.

        Args:
            texts: as for a call.

        Returns:
            What a call returns, and `"begins_word"`, int32 `(windows, sequence)`, 1 where a word begins.

        Raises:
            TypeError, ValueError, tf.errors.InvalidArgumentError: as for a call.
        """
        questions, contexts = _questions_and_contexts(texts)
        begins = tuple(seen_tokens(self.tokenizer, texts).begins for texts in (contexts, questions))
        return self._all_windows(self._question_ids(questions), contexts, begins=begins)

    def num_windows(self, texts: Strings) -> tf.Tensor:
        """Counts the windows of each row without filling them, to compute the number of training steps.

        Args:
            texts: as for a call.

        Returns:
            int32 `(batch,)`.

        Raises:
            TypeError, ValueError, tf.errors.InvalidArgumentError: as for a call.
        """
        questions, contexts = _questions_and_contexts(texts)
        different, index = tf.unique(contexts)  # several questions often share a context
        context_lengths = tf.gather(row_lengths(self.tokenizer.tokenize(different)), index)
        windows = self._windows(row_lengths(self._question_ids(questions)), context_lengths)
        return tf.math.bincount(windows.rows, minlength=tf.size(questions))

    def _all_windows(
        self,
        question_ids: tf.RaggedTensor,
        contexts: tf.Tensor,
        *,
        begins: tuple[tf.Tensor, tf.Tensor] | None = None,
    ) -> dict[str, tf.Tensor]:
        """The outputs of a call for tokenized questions, all of which fit."""
        context = self.tokenizer.tokenize_with_offsets(contexts)
        question_lengths = row_lengths(question_ids)
        windows = self._windows(question_lengths, row_lengths(context[0]))
        lengths = windows.lengths + tf.gather(question_lengths, windows.rows) + self._num_special_tokens  # [W]
        width = padded_width(lengths, padding=self.padding, max_length=self.max_length)
        return fill_windows(windows, question_ids, context, width, self.tokenizer, begins=begins)

    def _windows(self, question_lengths: tf.Tensor, context_lengths: tf.Tensor) -> LaidWindows:
        return lay_windows(context_lengths, self.max_length - self._num_special_tokens - question_lengths, self.stride)

    def _question_ids(self, questions: tf.Tensor) -> tf.RaggedTensor:
        """The tokens, ragged int32 `(batch, tokens)`, after an assertion that every question fits."""
        ids = self.tokenizer.tokenize(questions)
        lengths = tf.concat([row_lengths(ids), [0]], 0)
        longest = tf.argmax(lengths)
        beginning = tf.strings.substr(tf.concat([questions, [""]], 0)[longest], 0, 80)
        rule = f"{self.question_rule()} Received, as row, number of tokens and beginning:"
        message = [rule, longest, lengths[longest], beginning]
        return check_in_graph(ids, lengths[longest] <= self.max_question_length, message)

    def question_rule(self) -> str:
        """The rule for the length of questions, for error messages."""
        return (
            f"`SpanPreprocessor`: a question must have at most {self.max_question_length} tokens, as "
            f"max_length={self.max_length} and stride={self.stride} leave no room for more. Shorten it, raise "
            "max_length, or lower stride."
        )

    def compute_output_spec(self, texts: Strings) -> dict[str, keras.KerasTensor]:
        """Shapes and dtypes for a functional model; the number of windows is open."""
        shape = (None, self.max_length if self.padding == "max_length" else None)
        spec = {name: keras.KerasTensor(shape, dtype="int32") for name in OUTPUTS}
        return {**spec, "rows": keras.KerasTensor((None,), dtype="int32")}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument; the tokenizer includes its vocabulary."""
        return {**constructor_arguments(SpanPreprocessor, self), **super().get_config()}


def _questions_and_contexts(texts: Strings) -> tuple[tf.Tensor, tf.Tensor]:
    """Checks the pair and returns both as string tensors `(batch,)`; Keras passes a pair as a list of tensors."""
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
