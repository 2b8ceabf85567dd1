"""`SentencePieceTokenizer`: the tokenizer of XLM-RoBERTa, CamemBERT, ALBERT and DeBERTa, in TensorFlow graph."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.preprocessing.engines import engine
from keras_bert_layers.preprocessing.sentence_piece.composed_text_encoder import ComposedTextEncoder
from keras_bert_layers.preprocessing.sentence_piece.folding_normalizer import FoldingNormalizer
from keras_bert_layers.preprocessing.sentence_piece.normalizer import CharacterNormalizer, read_character_map
from keras_bert_layers.preprocessing.sentence_piece.text_encoder import SentencePieceTextEncoder
from keras_bert_layers.preprocessing.tokenizer import WORD_BOUNDARIES, Tokenizer
from keras_bert_layers.preprocessing.tokens.markers import MARKER
from keras_bert_layers.preprocessing.tokens.token_ids import (
    TokenIds,
    checked_special_tokens,
    checked_vocabulary,
)
from keras_bert_layers.preprocessing.tokens.tokens import joined_on_last_axis

OWNER = "SentencePieceTokenizer"
# ALBERT's, which each do the steps of their names.
NORMALIZERS = {
    "quotes": {"lowercase": False, "strip_accents": False},
    "quotes_lowercase": {"lowercase": True, "strip_accents": False},
    "quotes_nfkd": {"lowercase": False, "strip_accents": True},
    "quotes_nfkd_lowercase": {"lowercase": True, "strip_accents": True},
}


@register
class SentencePieceTokenizer(Tokenizer):
    """Turns text into SentencePiece ids, exactly as the tokenizers of XLM-RoBERTa, CamemBERT, ALBERT and DeBERTa.

    The tokenizer finds special tokens in the text, replaces characters by the model's character map, splits at
    whitespace, puts the marker `▁` before each word, and takes the pieces with the largest sum of scores. It runs
    eagerly, in `tf.data.Dataset.map`, inside a `tf.function` and in an exported SavedModel, which includes the pieces.
    It needs TensorFlow under every Keras backend. Without tensorflow-text, as on Windows, ids and offsets are the same,
    but it cannot be exported.

    Every input has a result. An empty text has no tokens; bytes that are not UTF-8 are skipped; characters in no piece
    are unknown, and neighbouring ones are one token. A marker that is a token of its own covers the first character of
    its word; a token of `stripping_tokens` covers the whitespace before it. A pair of texts is
    `<s> first </s></s> second </s>`, and all segments are 0; with `num_pair_separators=1`, `<s> first </s> second </s>`
    with the segments 0 and 1.

    With `normalizer="nfc"` it reads characters as DeBERTa's tokenizer of transformers 5 does, which does not read the
    model's character map: they are composed to Unicode's normal form C, and only spaces, line ends, tabs and runs of
    whitespace are between words. A word then begins with its space, also in offsets.

    Args:
        vocabulary: the pieces, in the order of their ids, special tokens included.
        scores: the score of each piece, the logarithm of its probability; None for a token that is not a piece of
            the model and is found in the text as a special token only.
        character_map: `precompiled_charsmap` of the model's normalizer in base64, as in `tokenizer.json`; empty for a
            model that replaces no character.
        special_tokens: the tokens that are found in raw text. None for the five that follow.
        stripping_tokens: those of them that take the whitespace before them, such as `<mask>`.
        start_token: the first token of an input.
        separator_token: the token after each text.
        pad_token: the token that fills rows up.
        unknown_token: the token of characters in no piece.
        mask_token: the token that hides another; None for a vocabulary without.
        word_boundaries: where words of texts end, for tags, entities, features and attributions: `"punctuation"`, at
            whitespace, punctuation and Chinese characters; or `"spaces"`, as in models that were saved without it.
        normalizer: what comes before the character map, as in ALBERT: `"quotes"`, two single quotes become a double
            one; `"quotes_lowercase"`, and letters small; `"quotes_nfkd"`, and characters their parts, of which marks
            are dropped (NFKD); `"quotes_nfkd_lowercase"`, all of these. `"nfc"` as above, without a
            character map. None for nothing.
        num_pair_separators: how many separators stand between the texts of a pair, 1 or 2.

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

    reference = "huggingface"
    word_boundaries = WORD_BOUNDARIES[0]

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
        word_boundaries: str = "punctuation",
        normalizer: str | None = None,
        num_pair_separators: int = 2,
    ):
        self._vocabulary = checked_vocabulary(OWNER, vocabulary, kind="piece")
        self._scores = _checked_scores(scores, len(self._vocabulary))
        self.word_boundaries = checks.one_of(OWNER, "word_boundaries", word_boundaries, WORD_BOUNDARIES)
        ids = TokenIds(self._vocabulary, owner=OWNER)
        self.character_map = checks.instance(OWNER, "character_map", character_map, str, "Give it in base64.")
        self.normalizer = checks.one_of(OWNER, "normalizer", normalizer, (None, "nfc", *NORMALIZERS))
        if normalizer == "nfc" and character_map:
            raise ValueError(checks.message(OWNER, "character_map", "be empty beside 'nfc'", character_map))
        self.num_pair_separators = checks.one_of(OWNER, "num_pair_separators", num_pair_separators, (1, 2))
        self.second_segment = 2 - num_pair_separators
        roles = {"start": start_token, "separator": separator_token, "pad": pad_token, "unknown": unknown_token}
        if mask_token is not None:
            roles["mask"] = mask_token
        self.special_tokens, self.stripping_tokens = checked_special_tokens(
            OWNER, ids, roles, special_tokens, stripping_tokens
        )
        super().__init__(ids, roles)
        # The tables are eager tensors even while a graph is built, so that all graphs share one copy.
        with tf.init_scope(), tf.device("CPU:0"):
            pieces = engine.text_engine().SentencePieces(self._vocabulary, self._scores, unknown_id=self.unknown_id)
            special = {token: self._ids.id_of(token) for token in self.special_tokens}, self.stripping_tokens
            self._encoder: Any = (
                ComposedTextEncoder(pieces, *special)
                if normalizer == "nfc"
                else SentencePieceTextEncoder(_new_normalizer(normalizer, _decoded(character_map)), pieces, *special)
            )

    def _joined(self, tokens: tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
        text = tf.strings.regex_replace(joined_on_last_axis(tokens), MARKER, " ")
        return tf.strings.regex_replace(text, "^ ", "")

    def continues_word(self) -> list[bool]:
        """For each token, whether it continues the word of the token before it, as unknown characters do."""
        special = {*self.special_tokens} - {self._vocabulary[self.unknown_id]}
        return [not token.startswith(MARKER) and token not in special for token in self._vocabulary]

    def readable(self, token: str) -> str:
        """A token as its text, without the marker of a word's beginning, which may be a token of its own."""
        return token.replace(MARKER, " ").removeprefix(" ") or token

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, the vocabulary as a list of tokens."""
        return {
            "vocabulary": list(self._vocabulary),
            "scores": list(self._scores),
            "character_map": self.character_map,
            "special_tokens": list(self.special_tokens),
            "stripping_tokens": list(self.stripping_tokens),
            "word_boundaries": self.word_boundaries,
            "normalizer": self.normalizer,
            "num_pair_separators": self.num_pair_separators,
            "mask_token": None,
            **{f"{role}_token": token for role, token in self._roles.items()},
        }


def _new_normalizer(name: str | None, character_map: dict[str, str]) -> CharacterNormalizer | FoldingNormalizer:
    return CharacterNormalizer(character_map) if name is None else FoldingNormalizer(character_map, **NORMALIZERS[name])


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
