"""The SentencePiece tokenizer of XLM-RoBERTa and CamemBERT, for TensorFlow graphs."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import elsewhere
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.preprocessing.engines import engine
from keras_bert_layers.preprocessing.sentence_piece.normalizer import MARKER, CharacterNormalizer, read_character_map
from keras_bert_layers.preprocessing.sentence_piece.text_encoder import SentenceEncoder
from keras_bert_layers.preprocessing.tokens.token_ids import TokenIds
from keras_bert_layers.preprocessing.tokens.tokens import ragged_tokens, tokens_of

OWNER = "SentencePieceTokenizer"


@register
class SentencePieceTokenizer:
    """Turns text into SentencePiece ids, exactly as transformers' tokenizers of XLM-RoBERTa and CamemBERT.

    The tokenizer finds special tokens in the text, replaces characters by the model's character map, splits at
    whitespace, puts the marker `▁` before each word, and takes the pieces with the largest sum of scores. It runs
    eagerly, in `tf.data.Dataset.map`, inside a `tf.function` and in an exported SavedModel, which includes the pieces.
    It needs TensorFlow under every Keras backend. Without tensorflow-text, as on Windows, ids and offsets are the same,
    but it cannot be exported.

    Every input has a result. An empty text has no tokens; bytes that are not UTF-8 are skipped; characters in no piece
    are unknown, and neighbouring ones are one token. A pair of texts is `<s> first </s></s> second </s>`, and all
    segments are 0.

    Args:
        vocabulary: the pieces, in the order of their ids, special tokens included.
        scores: the score of each piece, the logarithm of its probability; None for a token that is no piece of the
            model and is found in the text as a special token only.
        character_map: `precompiled_charsmap` of the model's normalizer in base64, as in `tokenizer.json`; empty for a
            model that replaces no character.
        special_tokens: the tokens that are found in raw text. None for the five that follow.
        stripping_tokens: those of them that take the whitespace before them, such as `<mask>`.
        start_token: the first token of an input.
        separator_token: the token after each text.
        pad_token: the token that fills rows up.
        unknown_token: the token of characters in no piece.
        mask_token: the token that hides another; None for a vocabulary without.

    Attributes:
        pad_id: the id of `<pad>`.
        unknown_id: the id of `<unk>`.
        start_id: the id of `<s>`.
        separator_id: the id of `</s>`.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: pieces and scores that do not belong together; a special token that is not in the vocabulary; a
            damaged `character_map`.
        ImportError: an installed tensorflow-text that does not have what the tokenizer needs.

    Examples:
        >>> vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁good", "night", "▁n", "ight", "<mask>"]
        >>> tokenizer = SentencePieceTokenizer(vocabulary, [0, 0, 0, 0, -2, -3, -4, -5, -6, 0])
        >>> tokenizer.tokenize(["good night", "night?"])
        <tf.RaggedTensor [[5, 4, 6], [4, 6, 3]]>
        >>> ids, starts, ends = tokenizer.tokenize_with_offsets("good night")
        >>> starts.numpy().tolist(), ends.numpy().tolist()
        ([0, 5, 5], [4, 6, 10])
        >>> tokenizer.detokenize(ids).numpy()
        b'good night'

    References:
        Kudo and Richardson 2018, arXiv:1808.06226; Conneau et al. 2020, arXiv:1911.02116 (XLM-RoBERTa).
    """

    #: The library whose behaviour the tokenizer follows, as `BertTokenizer.reference` says it.
    reference = "huggingface"
    #: How many separators stand between the texts of a pair, and the segment of the second.
    num_pair_separators = 2
    second_segment = 0

    from_preset, from_pretrained = elsewhere("Use `keras_bert_layers.load_tokenizer(source)`.")

    def __init__(
        self,
        vocabulary: Sequence[str],
        scores: Sequence[float | None],
        *,
        character_map: str = "",
        special_tokens: Sequence[str] | None = None,
        stripping_tokens: Sequence[str] = (),
        start_token: str = "<s>",
        separator_token: str = "</s>",
        pad_token: str = "<pad>",
        unknown_token: str = "<unk>",
        mask_token: str | None = "<mask>",
    ):
        self._vocabulary = _checked_vocabulary(vocabulary)
        self._scores = _checked_scores(scores, len(self._vocabulary))
        self._ids = TokenIds(self._vocabulary, owner=OWNER)
        self.character_map = checks.instance(OWNER, "character_map", character_map, str, "Give it in base64.")
        roles = {
            "start_token": start_token,
            "separator_token": separator_token,
            "pad_token": pad_token,
            "unknown_token": unknown_token,
            "mask_token": mask_token,
        }
        self._roles = {role: self._known(role, token) for role, token in roles.items() if token is not None}
        named = list(dict.fromkeys(self._roles.values()))
        self.special_tokens = named if special_tokens is None else list(special_tokens)
        self.stripping_tokens = list(stripping_tokens)
        for argument in ("special_tokens", "stripping_tokens"):
            for token in getattr(self, argument):
                self._known(argument, token)
        required = (start_token, separator_token, pad_token, unknown_token)
        self.start_id, self.separator_id, self.pad_id, self.unknown_id = map(self._ids.id_of, required)
        # The tables are eager tensors even while a graph is built, so that all graphs share one copy.
        with tf.init_scope(), tf.device("CPU:0"):
            self._encoder = SentenceEncoder(
                CharacterNormalizer(_decoded(character_map)),
                engine.text_engine().SentencePieces(self._vocabulary, self._scores, unknown_id=self.unknown_id),
                {token: self._ids.id_of(token) for token in self.special_tokens},
                self.stripping_tokens,
            )
            self._tokens = tf.constant(self._vocabulary)

    def _known(self, argument: str, token: Any) -> str:
        if token not in self._ids:
            cure = "Special tokens are part of the vocabulary; a score of None keeps a token out of the model."
            raise ValueError(checks.message(OWNER, argument, "be in the vocabulary", token, cure))
        return token

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
        return ragged_tokens(self._encoder.encode, text, OWNER)[0]

    __call__ = tokenize

    def tokenize_with_offsets(self, text: Any) -> tuple[tf.RaggedTensor | tf.Tensor, ...]:
        """The ids of each text, and the byte offsets of each token.

        Offsets count the bytes of the original text, before any character is replaced. A marker that is a token of its
        own covers the first character of its word. A token of `stripping_tokens` covers the whitespace before it.

        Args:
            text: as for `tokenize`.

        Returns:
            Ids, starts, ends, each as `tokenize` returns ids.

        Raises:
            TypeError: `text` is not strings.
        """
        return ragged_tokens(self._encoder.encode, text, OWNER, with_offsets=True)

    def detokenize(self, ids: Any) -> tf.Tensor | tf.RaggedTensor:
        """Text from ids: joins pieces, makes a space of each marker but the first, and leaves out `<pad>`.

        Args:
            ids: int ids `(…, tokens)`: a tensor, dense or ragged, an array or nested lists.

        Returns:
            Strings `(…)`.
        """
        tokens = tokens_of(ids, self._tokens, pad_id=self.pad_id)
        text = tf.strings.regex_replace(tf.strings.reduce_join(tokens, axis=-1), MARKER, " ")
        return tf.strings.regex_replace(text, "^ ", "")

    def id_to_token(self, token_id: int) -> str:
        """The token with this id; ValueError if there is none."""
        return self._ids.token_of(token_id)

    def token_to_id(self, token: str) -> int:
        """The id of a token; ValueError if it is not in the vocabulary."""
        return self._ids.id_of(token)

    def vocabulary_size(self) -> int:
        """The number of tokens in the vocabulary."""
        return len(self._vocabulary)

    def all_tokens(self) -> list[str]:
        """Every token in order of the ids."""
        return list(self._vocabulary)

    @property
    def mask_token(self) -> str | None:
        """The token that hides another, or None."""
        return self._roles.get("mask_token")

    @property
    def mask_id(self) -> int:
        """Id of `<mask>`; ValueError if there is none."""
        return self.token_to_id(self._roles.get("mask_token", "<mask>"))

    def continues_word(self) -> list[bool]:
        """For each token, whether it goes on with the word of the token before it, as unknown characters do."""
        special = {*self.special_tokens} - {self._vocabulary[self.unknown_id]}
        return [not token.startswith(MARKER) and token not in special for token in self._vocabulary]

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, the vocabulary as a list of tokens."""
        return {
            "vocabulary": list(self._vocabulary),
            "scores": list(self._scores),
            "character_map": self.character_map,
            "special_tokens": list(self.special_tokens),
            "stripping_tokens": list(self.stripping_tokens),
            "mask_token": None,
            **self._roles,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SentencePieceTokenizer:
        """The tokenizer from `get_config`."""
        return cls(**config)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_config, (self.get_config(),)


def _checked_vocabulary(vocabulary: Sequence[str]) -> list[str]:
    if isinstance(vocabulary, str) or not isinstance(vocabulary, Sequence):
        cure = "`load_tokenizer(directory)` reads the files of a checkpoint."
        raise TypeError(checks.message(OWNER, "vocabulary", "be a list of pieces", vocabulary, cure))
    tokens = list(vocabulary)
    wrong = next((token for token in tokens if not isinstance(token, str)), None)
    if wrong is not None:
        raise TypeError(checks.message(OWNER, "vocabulary", "hold strings only", wrong))
    if len(set(tokens)) < len(tokens):
        twice = next(token for index, token in enumerate(tokens) if token in tokens[:index])
        raise ValueError(checks.message(OWNER, "vocabulary", "hold each piece once", twice))
    return tokens


def _checked_scores(scores: Sequence[float | None], size: int) -> list[float | None]:
    if len(scores) != size:
        raise ValueError(checks.message(OWNER, "scores", f"be {size}, as many as pieces", len(scores)))
    found = [None if score is None else float(score) for score in scores]
    wrong = next((score for score in found if score is not None and not math.isfinite(score)), None)
    if wrong is not None:
        raise ValueError(checks.message(OWNER, "scores", "be finite", wrong))
    return found


def _decoded(character_map: str) -> dict[str, str]:
    try:
        return read_character_map(base64.b64decode(character_map, validate=True))
    except (ValueError, IndexError, binascii.Error) as error:
        rule = "be `precompiled_charsmap` of a SentencePiece model, in base64"
        raise ValueError(checks.message(OWNER, "character_map", rule, f"{character_map[:20]}...")) from error
