"""`Tokenizer`: what `BertTokenizer`, `SentencePieceTokenizer` and `BytePairTokenizer` have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import unavailable
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Strings, Tensor
from keras_bert_layers.preprocessing.tokens.token_ids import TokenIds
from keras_bert_layers.preprocessing.tokens.tokens import ragged_tokens, tokens_of

# What a tokenizer's config holds besides its settings: too long to read.
LONG_OPTIONS = ("vocabulary", "scores", "character_map", "merges")
# Where words of texts end: at whitespace, punctuation and Chinese characters, or at spaces alone, as in older files.
WORD_BOUNDARIES = ("punctuation", "spaces")


class Tokenizer(ABC):
    """Text to token ids with byte offsets, and back, in TensorFlow graph.

    A subclass sets `_encoder`, whose `encode` maps texts to tokens, and is registered with Keras: `get_config` and
    `from_config` save and load it, vocabulary included.

    Args:
        ids: the ids of all tokens.
        roles: the special tokens by role; `"mask"` may be missing.

    Attributes:
        reference: the library or code that the tokenizer follows, `"google"` or `"huggingface"`.
        num_pair_separators: how many separators stand between the texts of a pair.
        second_segment: the segment of the second text of a pair.
        takes_words: whether a word alone has the tokens that it has inside a text.
        word_boundaries: where words of texts end: `"vocabulary"`, where the vocabulary says so, as that of BERT, whose
            words end at whitespace and punctuation; or one of `WORD_BOUNDARIES`.
        space_id: the id of the token of one space, which a word may begin with; -1 for a tokenizer without.
        pad_id: the id of the token that fills rows up.
        unknown_id: the id of the token for text that no other token matches.
        start_id: the id of the first token of an input.
        separator_id: the id of the token after each text.
    """

    reference: str
    num_pair_separators: int
    second_segment: int
    takes_words = True
    word_boundaries = "vocabulary"
    space_id = -1
    _encoder: Any

    from_preset, from_pretrained = unavailable("Use `keras_bert_layers.load_tokenizer(source)`.")
    (save_pretrained,) = unavailable("Use `checkpoints.save_huggingface`, which writes it with a model.", 1)
    encode, decode = unavailable("Use `tokenize`, `detokenize`, or a `BertPreprocessor`, which adds special tokens.")

    def __init__(self, ids: TokenIds, roles: Mapping[str, str]):
        self._ids = ids
        self._roles = dict(roles)
        self.pad_id, self.unknown_id, self.start_id, self.separator_id = (
            ids.id_of(self._roles[role]) for role in ("pad", "unknown", "start", "separator")
        )
        # An eager tensor even while a graph is built, so that all graphs share one copy.
        with tf.init_scope(), tf.device("CPU:0"):
            self.token_strings = tf.constant(ids.tokens)

    def tokenize(self, text: Strings) -> tf.RaggedTensor | tf.Tensor:
        """The ids of each text.

        Args:
            text: strings `(batch,)`: a list, a NumPy array or a tensor. One string `()` and more axes
                `(batch, choices, …)`, dense or ragged, work too.

        Returns:
            int32 ids, ragged `(batch, tokens)`; `(tokens,)` for one string; `(batch, choices, tokens)` for two axes.

        Raises:
            TypeError: `text` is not strings.
        """
        return ragged_tokens(self._encoder.encode, text, type(self).__name__)[0]

    def __call__(self, text: Strings) -> tf.RaggedTensor | tf.Tensor:
        """The ids of each text, as `tokenize`."""
        return self.tokenize(text)

    def tokenize_with_offsets(self, text: Strings) -> tuple[tf.RaggedTensor | tf.Tensor, ...]:
        """The ids of each text, and the byte offsets of each token.

        Offsets count the bytes of the original text, before any character is replaced or dropped, so `text[start:end]`
        is what a token was made from.

        Args:
            text: as for `tokenize`.

        Returns:
            Ids, starts, ends, each as `tokenize` returns ids.

        Raises:
            TypeError: `text` is not strings.
        """
        return ragged_tokens(self._encoder.encode, text, type(self).__name__, with_offsets=True)

    def detokenize(self, ids: Tensor) -> tf.Tensor | tf.RaggedTensor:
        """Text from ids: joins pieces to words, puts a space between words, and leaves out padding.

        Args:
            ids: int ids `(…, tokens)`: a tensor, dense or ragged, an array or nested lists.

        Returns:
            Strings `(…)`.
        """
        return self._joined(tokens_of(ids, self.token_strings, pad_id=self.pad_id))

    @abstractmethod
    def _joined(self, tokens: tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
        """The text of tokens, ragged strings `(…, tokens)`."""

    def readable(self, token: str) -> str:
        """A token as people read it: the text that it stands for, not its form inside."""
        return token

    def readable_tokens(self) -> list[str]:
        """Every token as people read it, in order of the ids."""
        return list(map(self.readable, self._ids.tokens))

    def id_to_token(self, token_id: int) -> str:
        """The token with this id; ValueError if there is none."""
        return self._ids.token_of(token_id)

    def token_to_id(self, token: str) -> int:
        """The id of a token; ValueError if it is not in the vocabulary."""
        cure = f"Text that no token matches becomes {self._roles['unknown']}, id {self.unknown_id}."
        return self._ids.id_of(token, cure)

    def vocabulary_size(self) -> int:
        """The number of tokens, added ones included."""
        return len(self._ids.tokens)

    def all_tokens(self) -> list[str]:
        """Every token in order of the ids, added ones included."""
        return list(self._ids.tokens)

    @property
    def mask_token(self) -> str | None:
        """The token that hides another; None if it is not in the vocabulary."""
        mask = self._roles.get("mask")
        return mask if mask is not None and mask in self._ids else None

    @property
    def mask_id(self) -> int:
        """The id of the mask token; ValueError if it is not in the vocabulary."""
        return self.token_to_id(self._roles.get("mask", "<mask>"))

    @abstractmethod
    def continues_word(self) -> list[bool]:
        """For each token, whether it continues the word of the token before it."""

    @abstractmethod
    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, the vocabulary as a list of tokens."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """The tokenizer from `get_config`; words end at spaces if a version without `word_boundaries` wrote it."""
        older = {} if cls.word_boundaries == "vocabulary" else {"word_boundaries": "spaces"}
        return cls(**{**older, **config})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_config, (self.get_config(),)


def check_is_tokenizer(owner: str, tokenizer: Tokenizer) -> None:
    """Raises TypeError if `tokenizer` is not a tokenizer of this package."""
    if not isinstance(tokenizer, Tokenizer):
        cure = "Make one with `BertTokenizer(vocabulary)` or `load_tokenizer(source)`."
        raise TypeError(checks.message(owner, "tokenizer", "be a BertTokenizer", tokenizer, cure))
