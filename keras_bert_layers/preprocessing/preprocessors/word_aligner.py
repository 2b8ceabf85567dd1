"""`WordAligner`: aligns words with tokens, also in texts that are split into several windows."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Strings
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.preprocessors.seen_text import seen_tokens
from keras_bert_layers.preprocessing.preprocessors.windows import LaidWindows, lay_windows
from keras_bert_layers.preprocessing.tokens.tokens import rows_of

NUM_SPECIAL_TOKENS = 2
NO_WORD = -1


class AlignedWords(NamedTuple):
    """The words of a batch, at most U per row, and the windows that contain their tokens.

    Attributes:
        inputs: the backbone's inputs, int32 `(windows, sequence)` each; at least one window per row, in the rows'
        order.
        places: int32 `(batch, U)`, the index of each word's first piece in all windows together: position `s` of window
            `w` has the index `w * sequence + s`. -1 after a row's last word.
        word_ids: int32 `(batch, U)`, the index of the given word that each word is, or is a part of; -1 as above.
        starts: int32 `(batch, U)`, the byte of the text at which a word starts; -1 as above. None for given words.
        ends: int32 `(batch, U)`, the byte after its last piece; -1 as above. None for given words.
        first_windows: int32 `(batch,)`, the index of each row's first window.
    """

    inputs: dict[str, tf.Tensor]
    places: tf.Tensor
    word_ids: tf.Tensor
    starts: tf.Tensor | None
    ends: tf.Tensor | None
    first_windows: tf.Tensor


class WordAligner:
    """Finds the words of texts, and the index of each word's first piece in the model's input, in graph.

    Words end at whitespace; a punctuation mark or a Chinese character is a word of its own: "don't" is three words.
    They are the same for every tokenizer: a token of several words, such as `."` of a byte-level BPE, is a piece of
    each. Tokenizers with `word_boundaries="spaces"` end words at spaces alone. Given words, such as those in a CoNLL
    file, are tokenized one by one, each but the first with a space before it where the tokenizer needs one, and split
    in the same way; so a given word is one word or several, and a text has the same words whether it is given as words
    or as one string. A given word without any token (a lone variation selector, for example) becomes `[UNK]`, so that
    every word has a token.

    Where words start and end is what people see: without whitespace, and with all marks of the last character.

    A text longer than the preprocessor's `max_length` is split into windows; each shares `stride` tokens with the one
    before it. A word in two windows is taken from the window in which it is farther from the edge.

    Args:
        preprocessor: a `BertPreprocessor`, for its tokenizer, length and padding. Under `"max_length"` and `"bucket"`
            the numbers of windows and words are rounded up too, so that a compiler sees only a few of them.
        stride: the number of tokens that neighbouring windows share; None for a quarter of `max_length`.

    Raises:
        TypeError: `preprocessor` is not a `BertPreprocessor`; `stride` is not an integer.
        ValueError: a stride out of range.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "##ark", "york", "'"])
        >>> aligner = WordAligner(kbl.BertPreprocessor(tokenizer))
        >>> words = aligner.align(["New York", "Newark's"])
        >>> words.inputs["token_ids"].numpy().tolist()
        [[2, 4, 6, 3, 0, 0], [2, 4, 5, 7, 1, 3]]
        >>> words.places.numpy().tolist()
        [[1, 2, -1], [7, 9, 10]]
        >>> words.ends.numpy().tolist()
        [[3, 8, -1], [6, 7, 8]]
    """

    def __init__(self, preprocessor: BertPreprocessor, *, stride: int | None = None):
        cure = "Make one with `BertPreprocessor(tokenizer)` or `load_preprocessor(source)`."
        self.preprocessor = checks.instance("WordAligner", "preprocessor", preprocessor, BertPreprocessor, cure)
        self.stride = check_stride("WordAligner", stride, preprocessor.max_length)
        # Separate functions, so that each is traced once, however often and wherever a model calls it.
        texts, words = tf.TensorSpec([None], tf.string), tf.RaggedTensorSpec([None, None], tf.string, ragged_rank=1)
        make = functools.partial(tf.function, autograph=False)
        self._align_texts = make(self._words_of_texts, input_signature=[texts])
        self._align_pieces = make(self._pieces_of_texts, input_signature=[texts])
        self._align_tokens = make(self._tokens_of_texts, input_signature=[texts])
        self._align_given = {
            per: make(functools.partial(self._given_words, per=per), input_signature=[words])
            for per in ("word", "piece", "token")
        }

    def align(self, texts: Any) -> AlignedWords:
        """Aligns the words of a batch.

        Args:
            texts: strings `(batch,)`, or words, ragged strings `(batch, words)`.

        Returns:
            An `AlignedWords`.
        """
        with tf.device("CPU:0"):
            if isinstance(texts, tf.RaggedTensor):
                return self._align_given["word"](texts)
            return self._align_texts(tf.convert_to_tensor(texts, tf.string))

    def align_pieces(self, texts: Strings) -> AlignedWords:
        """Aligns the pieces of the words of a batch, as if each piece was a word.

        Args:
            texts: as in `align`.

        Returns:
            An `AlignedWords` of pieces; `word_ids` are the indices of the words that they are parts of.
        """
        with tf.device("CPU:0"):
            if isinstance(texts, tf.RaggedTensor):
                return self._align_given["piece"](texts)
            return self._align_pieces(tf.convert_to_tensor(texts, tf.string))

    def align_tokens(self, texts: Strings) -> AlignedWords:
        """Aligns the tokens of a batch, as if each token was a word.

        Args:
            texts: as in `align`.

        Returns:
            An `AlignedWords` of tokens, those of whitespace included; starts and ends are those of
            `tokenize_with_offsets`.
        """
        with tf.device("CPU:0"):
            if isinstance(texts, tf.RaggedTensor):
                return self._align_given["token"](texts)
            return self._align_tokens(tf.convert_to_tensor(texts, tf.string))

    def _tokens_of_texts(self, texts: tf.Tensor) -> AlignedWords:
        ids, starts, ends = self.preprocessor.tokenizer.tokenize_with_offsets(texts)
        inputs, places, as_rows, first_windows = self._laid_out(ids, tf.range(tf.size(ids.flat_values)))
        starts, ends = as_rows(starts.flat_values), as_rows(ends.flat_values)
        return AlignedWords(inputs, places, _in_order(places), starts, ends, first_windows)

    def _pieces_of_texts(self, texts: tf.Tensor) -> AlignedWords:
        seen = seen_tokens(self.preprocessor.tokenizer, texts)
        pieces = seen.pieces()
        inputs, places, as_rows, first_windows = self._laid_out(seen.ids, pieces.tokens)
        word = tf.cumsum(tf.cast(pieces.begins, tf.int32)) - 1
        # Words of all rows together, less those of the rows before.
        text_of = tf.gather(rows_of(seen.ids.row_splits), pieces.tokens)
        words = word - tf.gather(tf.math.segment_min(word, text_of), text_of)
        return AlignedWords(inputs, places, as_rows(words), as_rows(pieces.starts), as_rows(pieces.ends), first_windows)

    def _words_of_texts(self, texts: tf.Tensor) -> AlignedWords:
        seen = seen_tokens(self.preprocessor.tokenizer, texts)
        pieces = seen.pieces()
        firsts = tf.where(pieces.begins)[:, 0]
        lasts = tf.concat([firsts, tf.size(pieces.begins, tf.int64)[None]], 0)[1:] - 1
        inputs, places, as_rows, first_windows = self._laid_out(seen.ids, tf.gather(pieces.tokens, firsts))
        return AlignedWords(
            inputs=inputs,
            places=places,
            word_ids=_in_order(places),
            starts=as_rows(tf.gather(pieces.starts, firsts)),
            ends=as_rows(tf.gather(pieces.ends, lasts)),
            first_windows=first_windows,
        )

    def _given_words(self, words: tf.RaggedTensor, *, per: str) -> AlignedWords:
        """Given words `[B, (W)]`, `per="word"` of the text, or per piece of one, or per token."""
        seen = seen_tokens(self.preprocessor.tokenizer, self._as_in_a_text(words))  # of N given words
        is_empty = tf.cast(seen.ids.row_lengths() == 0, tf.int64)
        unknown = tf.fill([tf.reduce_sum(is_empty)], self.preprocessor.tokenizer.unknown_id)
        unknown = tf.RaggedTensor.from_row_lengths(unknown, is_empty, validate=False)
        tokens = tf.concat([seen.ids, unknown], axis=1)  # ragged [N, (T)]
        places = tf.range(tf.size(tokens.flat_values))
        if per != "token":
            found = seen.pieces()
            of_words = tf.gather(rows_of(seen.ids.row_splits), found.tokens)
            added = tf.gather(tf.cumsum(is_empty, exclusive=True), of_words)
            # A word of whitespace alone is its first token.
            others = tf.math.bincount(tf.cast(of_words, tf.int32), minlength=tf.size(is_empty)) == 0
            others = tf.boolean_mask(tokens.row_starts(), others)
            places = tf.concat([tf.cast(found.tokens, tf.int64) + added, others], 0)
            order = tf.argsort(places, stable=True)
            begins = tf.concat([found.begins | (per == "piece"), tf.ones_like(others, tf.bool)], 0)
            places = tf.cast(tf.boolean_mask(tf.gather(places, order), tf.gather(begins, order)), tf.int32)
        ids = tf.RaggedTensor.from_row_splits(tokens, words.row_splits, validate=False).merge_dims(1, 2)
        inputs, indices, as_rows, first_windows = self._laid_out(ids, places)
        word_ids = tf.gather(tf.ragged.range(tf.cast(words.row_lengths(), tf.int32)).values, rows_of(tokens.row_splits))
        return AlignedWords(inputs, indices, as_rows(tf.gather(word_ids, places)), None, None, first_windows)

    def _as_in_a_text(self, words: tf.RaggedTensor) -> tf.Tensor:
        """All given words; with a space before each but a row's first, where a tokenizer needs it."""
        texts = words.values
        if self.preprocessor.tokenizer.takes_words:
            return texts
        follows = tf.range(tf.size(texts, tf.int64)) != tf.gather(words.row_starts(), rows_of(words.row_splits))
        return tf.where(follows & (texts != ""), " " + texts, texts)

    def _laid_out(
        self, ids: tf.RaggedTensor, firsts: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, Any, tf.Tensor]:
        """Windows, indices of the words' first pieces, a function that pads other values alike, and first windows."""
        room = self.preprocessor.max_length - NUM_SPECIAL_TOKENS
        step = room - self.stride
        num_tokens = tf.cast(ids.row_lengths(), tf.int32)  # [B]
        windows = lay_windows(num_tokens, tf.fill(tf.shape(num_tokens), room), self.stride)
        num_windows = tf.math.bincount(windows.rows, minlength=tf.size(num_tokens))  # [B]
        inputs = self._inputs(ids, windows)
        sequence = tf.shape(inputs["token_ids"])[1]
        rows = tf.gather(rows_of(ids.row_splits), firsts)
        position = tf.gather(tf.ragged.range(num_tokens).flat_values, firsts)
        # Each of two windows takes half of the part that they share, so that a word has as much context as possible.
        window = tf.clip_by_value((position - (room + step) // 2) // step + 1, 0, tf.gather(num_windows, rows) - 1)
        first_windows = tf.cumsum(num_windows, exclusive=True)  # [B]
        index = (tf.gather(first_windows, rows) + window) * sequence
        index += position - window * step + 1  # after [CLS]

        def as_rows(values: tf.Tensor) -> tf.Tensor:
            by_row = tf.RaggedTensor.from_value_rowids(values, rows, nrows=ids.nrows(), validate=False)
            if self.preprocessor.padding == "longest":
                width = tf.cast(by_row.bounding_shape()[1], tf.int32)
            else:
                width = (sequence - NUM_SPECIAL_TOKENS) * tf.reduce_max(tf.concat([num_windows, [1]], 0))
            return by_row.to_tensor(NO_WORD, shape=tf.stack([-1, tf.maximum(width, 1)]))

        return inputs, as_rows(index), as_rows, first_windows

    def _inputs(self, ids: tf.RaggedTensor, windows: LaidWindows) -> dict[str, tf.Tensor]:
        """The inputs of the backbone; unless `padding="longest"`, the number of windows is a multiple of the rows."""
        begins = tf.cast(tf.gather(ids.row_starts(), windows.rows), tf.int32) + windows.begins
        tokens = tf.gather(ids.flat_values, tf.ragged.range(begins, begins + windows.lengths))  # ragged [W, (T)]
        if self.preprocessor.padding != "longest":
            num_empty = -tf.size(windows.rows) % tf.maximum(tf.cast(ids.nrows(), tf.int32), 1)
            tokens = tf.concat(
                [tokens, tf.RaggedTensor.from_row_lengths(ids.flat_values[:0], tf.zeros(num_empty, tf.int64))], 0
            )
        return self.preprocessor.framed([tokens])


def _in_order(places: tf.Tensor) -> tf.Tensor:
    """The index of each word of a row, int32 `(batch, U)`, -1 after the last one."""
    return tf.where(places == NO_WORD, NO_WORD, tf.cumsum(tf.ones_like(places), axis=1) - 1)


def check_stride(owner: str, stride: Any, max_length: int) -> int:
    """The stride, a quarter of `max_length` if None; TypeError or ValueError if a window would have no new token."""
    room = max_length - NUM_SPECIAL_TOKENS
    if stride is None:
        return min(max_length // 4, room - 1)
    stride = checks.whole_number(owner, "stride", stride)
    if stride >= room:
        rule = f"be less than {room}, the number of tokens of a text that fit into max_length={max_length}"
        raise ValueError(checks.message(owner, "stride", rule, stride))
    return stride
