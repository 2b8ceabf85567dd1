"""BERT's WordPiece tokenizer, in the TensorFlow graph."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing._encoder import Encoder
from keras_bert_layers.preprocessing.vocabulary import (
    MASK,
    REQUIRED_TOKENS,
    SPECIAL_TOKENS,
    UNKNOWN,
    load_vocabulary,
)

# The longest word, in characters: `max_input_chars_per_word` in google-research/bert `tokenization.py`, and in the
# WordPiece model that transformers' BertTokenizer builds.
MAX_WORD_LENGTH = {"google": 200, "huggingface": 100}


@register
class BertTokenizer:
    """Turns text into WordPiece ids, exactly as the code that a checkpoint was trained with.

    The tokenizer cleans a text, optionally lower-cases it and strips accents, splits it at whitespace, punctuation and
    Chinese characters, and matches each word greedily with the longest pieces in the vocabulary. It runs eagerly, in
    `tf.data.Dataset.map`, inside a `tf.function` and in an exported SavedModel, which includes the vocabulary. It needs
    TensorFlow and tensorflow-text under every Keras backend.

    Every input has a result. An empty text has no tokens; bytes that are not UTF-8 are skipped; a word longer than the
    reference's limit is `[UNK]`. There is one difference from the references: where accents are stripped, neighbouring
    spacing marks (such as U+302E and U+1D165) are not put into Unicode's canonical order. The vocabularies of bert-base
    have none of these marks, so the word is `[UNK]` either way.

    Args:
        vocabulary: a list of tokens, in the order of their ids, or the path of a `vocab.txt` (UTF-8, one token a line,
            Unix or Windows line ends). It must contain `[PAD]`, `[UNK]`, `[CLS]` and `[SEP]`, and no token twice.
        lowercase: whether to lower-case text: True for "uncased" checkpoints.
        strip_accents: whether to drop combining marks; None for the value of `lowercase`.
        split_chinese: whether every Chinese character is a word of its own. False is slower.
        reference: the code to follow where the two differ. `"google"` is `tokenization.py` of google-research/bert:
            words of up to 200 characters; private-use characters are letters; a special token written in the text is
            plain text. `"huggingface"` is transformers' fast BertTokenizer: words of up to 100 characters; private-use
            characters are dropped; `[SEP]` and the other special tokens written in the text become their ids.

    Attributes:
        pad_id: the id of `[PAD]`.
        unknown_id: the id of `[UNK]`.
        start_id: the id of `[CLS]`.
        separator_id: the id of `[SEP]`.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: an invalid `vocabulary` (the message names the line), or an unknown `reference`.
        FileNotFoundError: there is no such vocabulary file.
        ImportError: an installed tensorflow-text that does not have what the tokenizer needs.

    Examples:
        >>> vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "!"]
        >>> tokenizer = BertTokenizer(vocabulary)
        >>> tokenizer.tokenize(["Unaffable!", "what?"])
        <tf.RaggedTensor [[4, 5, 6, 7], [1, 1]]>
        >>> ids, starts, ends = tokenizer.tokenize_with_offsets("Ünaffable")
        >>> starts.numpy().tolist(), ends.numpy().tolist()
        ([0, 3, 6], [3, 6, 10])
        >>> tokenizer.detokenize(ids).numpy()
        b'unaffable'

    References:
        Devlin et al. 2018, arXiv:1810.04805; Song et al. 2020, arXiv:2012.15524 (the matching in linear time).
    """

    def __init__(
        self,
        vocabulary: str | os.PathLike[str] | Sequence[str],
        lowercase: bool = True,
        *,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        reference: str = "google",
    ):
        self.lowercase = checks.boolean("BertTokenizer", "lowercase", lowercase)
        self.strip_accents = checks.optional(checks.boolean, "BertTokenizer", "strip_accents", strip_accents)
        self.split_chinese = checks.boolean("BertTokenizer", "split_chinese", split_chinese)
        self.reference = checks.one_of("BertTokenizer", "reference", reference, tuple(MAX_WORD_LENGTH))
        self._vocabulary = load_vocabulary(vocabulary)
        self._ids = {token: token_id for token_id, token in enumerate(self._vocabulary)}
        self.pad_id, self.unknown_id, self.start_id, self.separator_id = (self._ids[token] for token in REQUIRED_TOKENS)
        # The tables are eager tensors even while a graph is built, so that all graphs share one copy. The ops that read
        # them run on the CPU; from an accelerator the tables would be copied back at every call.
        with tf.init_scope(), tf.device("CPU:0"):
            self._encoder = Encoder(
                self._vocabulary,
                tables.load(reference, lowercase, lowercase if strip_accents is None else strip_accents),
                max_word_length=MAX_WORD_LENGTH[reference],
                split_chinese=split_chinese,
                special_tokens=self._written_special_tokens(),
            )
            self._tokens = tf.constant(self._vocabulary)

    def _written_special_tokens(self) -> dict[str, int]:
        if self.reference == "google":
            return {}
        return {token: self._ids[token] for token in SPECIAL_TOKENS if token in self._ids}

    def tokenize(self, text: Any) -> tf.RaggedTensor | tf.Tensor:
        """The ids of each text.

        Args:
            text: strings `(batch,)`: a list, a NumPy array or a tensor. One string `()` and more axes
                `(batch, choices, …)`, dense or ragged, work too.

        Returns:
            int32 ids, ragged `(batch, tokens)`; `(tokens,)` for one string; `(batch, choices, tokens)` for two axes.

        Raises:
            TypeError: `text` is not strings.
        """
        texts, restore = _flatten(text)
        tokens = self._encoder.encode(texts, with_offsets=False)
        return restore(tf.RaggedTensor.from_row_splits(tokens.ids, tokens.row_splits, validate=False))

    __call__ = tokenize

    def tokenize_with_offsets(self, text: Any) -> tuple[tf.RaggedTensor | tf.Tensor, ...]:
        """The ids of each text, and the byte offsets of each token.

        Offsets count the bytes of the original text, before any normalization, so `text[start:end]` is what a token was
        made from. A combining mark that was dropped after a token is not part of it. Tokens made from parts of one
        character, such as the halves of a Korean syllable, all cover that character.

        Args:
            text: as for `tokenize`.

        Returns:
            Ids, starts, ends, each as `tokenize` returns ids.

        Raises:
            TypeError: `text` is not strings.
        """
        texts, restore = _flatten(text)
        tokens = self._encoder.encode(texts, with_offsets=True)
        parts = (tokens.ids, tf.cast(tokens.starts, tf.int32), tf.cast(tokens.ends, tf.int32))
        return tuple(
            restore(tf.RaggedTensor.from_row_splits(part, tokens.row_splits, validate=False)) for part in parts
        )

    def detokenize(self, ids: Any) -> tf.Tensor | tf.RaggedTensor:
        """Text from ids: joins pieces, puts a space between words, and leaves out `[PAD]`.

        Args:
            ids: int ids `(…, tokens)`: a tensor, dense or ragged, an array or nested lists.

        Returns:
            Strings `(…)`.
        """
        ids = tf.ragged.constant(ids, dtype=tf.int32) if isinstance(ids, (list, tuple)) else ids
        ids = ids if isinstance(ids, tf.RaggedTensor) else tf.convert_to_tensor(ids)
        tokens = tf.ragged.boolean_mask(tf.gather(self._tokens, ids), ids != self.pad_id)
        return tf.strings.regex_replace(tf.strings.reduce_join(tokens, axis=-1, separator=" "), " ##", "")

    def id_to_token(self, token_id: int) -> str:
        """The token with this id; ValueError if there is none."""
        if not 0 <= token_id < len(self._vocabulary):
            rule = f"be at least 0 and less than {len(self._vocabulary)}, the size of the vocabulary"
            raise ValueError(checks.message("BertTokenizer", "token_id", rule, token_id))
        return self._vocabulary[token_id]

    def token_to_id(self, token: str) -> int:
        """The id of a token; ValueError if it is not in the vocabulary."""
        if token not in self._ids:
            cure = f"Text that no token matches becomes {UNKNOWN}, id {self.unknown_id}."
            raise ValueError(checks.message("BertTokenizer", "token", "be a token of the vocabulary", token, cure))
        return self._ids[token]

    def vocabulary_size(self) -> int:
        """The number of tokens in the vocabulary."""
        return len(self._vocabulary)

    @property
    def mask_id(self) -> int:
        """Id of `[MASK]`; ValueError if it is not in the vocabulary."""
        return self.token_to_id(MASK)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, the vocabulary as a list of tokens."""
        return {
            "vocabulary": list(self._vocabulary),
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_chinese": self.split_chinese,
            "reference": self.reference,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> BertTokenizer:
        """The tokenizer from `get_config`; TypeError for a path, so that loading a model reads no other file."""
        vocabulary = config["vocabulary"]
        if isinstance(vocabulary, str | os.PathLike):
            cure = "Only the constructor reads files."
            raise TypeError(
                checks.message("BertTokenizer", "vocabulary", "be the tokens in a config", vocabulary, cure)
            )
        return cls(**config)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_config, (self.get_config(),)


def _flatten(text: Any) -> tuple[tf.Tensor, Callable[[tf.RaggedTensor], Any]]:
    """Flattens `text` to one axis of strings, and returns a function that gives ragged tokens the axes of `text`."""
    if isinstance(text, tf.RaggedTensor):
        texts, restore = _flatten(text.flat_values)
        return texts, lambda tokens: text.with_flat_values(restore(tokens))
    try:
        text = tf.convert_to_tensor(text, tf.string)
    except (TypeError, ValueError) as error:
        cure = "Pass a list, an array or a tensor of strings; rows of different lengths as a tf.RaggedTensor."
        raise TypeError(checks.message("BertTokenizer", "text", "be strings", text, cure)) from error
    if text.shape.rank is None:
        raise ValueError(checks.message("BertTokenizer", "text", "have a known number of axes", text))
    if text.shape.rank == 0:
        return text[None], lambda tokens: tokens.values
    if text.shape.rank == 1:
        return text, lambda tokens: tokens
    return _flatten(tf.RaggedTensor.from_tensor(text, ragged_rank=text.shape.rank - 1))
