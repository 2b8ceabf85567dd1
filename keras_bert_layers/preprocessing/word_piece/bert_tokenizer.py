"""`BertTokenizer`: WordPiece, in TensorFlow graph."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing.tokenizer import Tokenizer
from keras_bert_layers.preprocessing.tokens.markers import ROLES, SUFFIX
from keras_bert_layers.preprocessing.tokens.token_ids import AddedToken, TokenIds
from keras_bert_layers.preprocessing.tokens.tokens import joined_on_last_axis
from keras_bert_layers.preprocessing.word_piece.added_tokens import AddedTokens
from keras_bert_layers.preprocessing.word_piece.normalizer import Normalizer
from keras_bert_layers.preprocessing.word_piece.pieces import WordPieces
from keras_bert_layers.preprocessing.word_piece.rules import TextRules, text_rules
from keras_bert_layers.preprocessing.word_piece.text_encoder import WordPieceTextEncoder
from keras_bert_layers.preprocessing.word_piece.vocabulary import load_vocabulary

OWNER = "BertTokenizer"

# The longest word, in characters: `max_input_chars_per_word` in google-research/bert `tokenization.py`, and in the
# WordPiece model that transformers' BertTokenizer builds.
MAX_WORD_LENGTH = {"google": 200, "huggingface": 100}


@register
class BertTokenizer(Tokenizer):
    """Turns text into WordPiece ids, exactly as the code that a checkpoint was trained with.

    The tokenizer cleans a text, optionally lower-cases it and strips accents, splits it at whitespace, punctuation and
    Chinese characters, and matches each word greedily with the longest pieces in the vocabulary. It runs eagerly, in
    `tf.data.Dataset.map`, inside a `tf.function` and in an exported SavedModel, which includes the vocabulary. It needs
    TensorFlow under every Keras backend. Without tensorflow-text, as on Windows, ids and offsets are the same, but it
    cannot be exported.

    Every input has a result. An empty text has no tokens; bytes that are not UTF-8 are skipped; a word longer than the
    reference's limit is `[UNK]`. A combining mark that was dropped after a token is not part of it; tokens made from
    parts of one character, such as the halves of a Korean syllable, all cover that character.

    There is one difference from the references: where accents are stripped, neighbouring spacing marks (such as U+302E
    and U+1D165) are not put into Unicode's canonical order. The vocabularies of bert-base have none of these marks, so
    the word is `[UNK]` either way.

    Args:
        vocabulary: a list of tokens, in the order of their ids, or the path of a `vocab.txt` (UTF-8, one token per
            line, Unix or Windows line ends). It must contain `[PAD]`, `[UNK]`, `[CLS]` and `[SEP]`. Of equal tokens the
            last one counts; for a file with a warning.
        lowercase: whether to lower-case text: True for "uncased" checkpoints.
        strip_accents: whether to drop combining marks; None for the value of `lowercase`.
        split_chinese: whether every Chinese character is a separate word. False is slower.
        reference: the code to follow where the two differ. `"google"` is `tokenization.py` of google-research/bert:
            words of up to 200 characters; private-use characters are letters; a special token written in the text is
            plain text. `"huggingface"` is transformers' fast BertTokenizer: words of up to 100 characters; private-use
            characters are dropped; `[SEP]` and the other special tokens written in the text become their ids.
        added_tokens: tokens that are found in the text as they are written, also inside words, before anything else:
            each an `AddedToken`, its arguments, or a string. Tokens that the vocabulary does not have get the ids
            after it. As in transformers, `"huggingface"` only looks for a string in lower case if it lower-cases text;
            `"google"` takes tokens that are not `normalized`.
        special_tokens: other names of `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]` and `[MASK]`, by `"pad"`, `"unknown"`,
            `"start"`, `"separator"` and `"mask"`; None for these names.
        num_pair_separators: how many separators stand between the texts of a pair: 1, or 2 for MPNet, whose texts all
            have segment 0, and whose offsets leave out the whitespace that an added token takes.

    Attributes:
        special_tokens: the names of the five special tokens by role.
        pad_id: the id of `[PAD]`.
        unknown_id: the id of `[UNK]`.
        start_id: the id of `[CLS]`.
        separator_id: the id of `[SEP]`.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: an invalid `vocabulary` (the message names the line), or an unknown `reference`; an added token that
            the reference cannot have.
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
        added_tokens: Sequence[AddedToken | Mapping[str, Any] | str] = (),
        special_tokens: Mapping[str, str] | None = None,
        num_pair_separators: int = 1,
    ):
        self.lowercase = checks.boolean(OWNER, "lowercase", lowercase)
        self.strip_accents = checks.optional(checks.boolean, OWNER, "strip_accents", strip_accents)
        self.split_chinese = checks.boolean(OWNER, "split_chinese", split_chinese)
        self.reference = checks.one_of(OWNER, "reference", reference, tuple(MAX_WORD_LENGTH))
        self.special_tokens = _special_tokens(special_tokens)
        self.num_pair_separators = checks.one_of(OWNER, "num_pair_separators", num_pair_separators, (1, 2))
        self.second_segment = 2 - num_pair_separators
        self.added_tokens = _added_tokens(added_tokens, reference)
        needed = [self.special_tokens[role] for role in ROLES if role != "mask"]
        added = {token.content for token in self.added_tokens} - {self.special_tokens["unknown"]}
        required = [token for token in needed if token not in added]
        # Repeated tokens in a list are left to the program that made the list.
        warn = isinstance(vocabulary, str | os.PathLike)
        self._vocabulary = load_vocabulary(vocabulary, required=required, warn=warn)
        super().__init__(TokenIds(self._vocabulary, self.added_tokens), self.special_tokens)
        self.normalization_table = tables.load(
            reference, lowercase, lowercase if strip_accents is None else strip_accents
        )
        # The tables are eager tensors even while a graph is built, so that all graphs share one copy. The ops that read
        # them run on the CPU; from an accelerator the tables would be copied back at every call.
        with tf.init_scope(), tf.device("CPU:0"):
            self._encoder = self._make_encoder()

    def _make_encoder(self) -> WordPieceTextEncoder:
        table, split_chinese, unknown = self.normalization_table, self.split_chinese, self.special_tokens["unknown"]
        length = MAX_WORD_LENGTH[self.reference]
        normalizer = Normalizer(table)
        word_pieces = WordPieces(
            self._vocabulary, table, max_word_length=length, split_chinese=split_chinese, unknown=unknown
        )
        written = self.written_tokens()
        if not written:
            return WordPieceTextEncoder(normalizer, word_pieces)
        added = AddedTokens(written, self._ids.id_of, table, normalizer.normalize, split_chinese=split_chinese)
        trace_ids = [index for index, token in enumerate(self._vocabulary) if token in added.traces]
        return WordPieceTextEncoder(normalizer, word_pieces, added, trace_ids)

    def written_tokens(self) -> list[AddedToken]:
        """The tokens that are found in raw text."""
        found = {}
        if self.reference == "huggingface":
            names = [token for token in self.special_tokens.values() if token in self._ids]
            found = {token: AddedToken(token, special=True) for token in names}
        tokens = {**found, **{token.content: token for token in self.added_tokens}}.values()
        if self.num_pair_separators == 1:
            return list(tokens)
        # As whitespace is no token, it changes nothing but offsets, and MPNet's leave it out.
        return [dataclasses.replace(token, lstrip=False, rstrip=False) for token in tokens]

    def rules(self) -> TextRules:
        """What the tokenizer does to text between special tokens, as plain data for programs other than TensorFlow."""
        length = MAX_WORD_LENGTH[self.reference]
        return text_rules(
            self.normalization_table, list(self._vocabulary), max_word_length=length, split_chinese=self.split_chinese
        )

    def _joined(self, tokens: tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
        return tf.strings.regex_replace(joined_on_last_axis(tokens, " "), f" {SUFFIX}", "")

    def continues_word(self) -> list[bool]:
        """For each token, whether it continues the word of the token before it."""
        return [token.startswith(SUFFIX) for token in self._ids.tokens]

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, the vocabulary as a list of tokens."""
        return {
            "vocabulary": list(self._vocabulary),
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_chinese": self.split_chinese,
            "reference": self.reference,
            "added_tokens": [token.get_config() for token in self.added_tokens],
            "special_tokens": None if self.special_tokens == ROLES else dict(self.special_tokens),
            "num_pair_separators": self.num_pair_separators,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> BertTokenizer:
        """The tokenizer from `get_config`; TypeError for a path, so that loading a model reads no other file."""
        vocabulary = config["vocabulary"]
        if isinstance(vocabulary, str | os.PathLike):
            cure = "Only the constructor reads files."
            raise TypeError(checks.message(OWNER, "vocabulary", "be the tokens in a config", vocabulary, cure))
        return cls(**config)


def _added_tokens(values: Any, reference: str) -> tuple[AddedToken, ...]:
    """The added tokens from the argument of that name."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise TypeError(checks.message(OWNER, "added_tokens", "be a list of AddedToken", values))
    tokens = tuple({token.content: token for token in map(AddedToken.of, values)}.values())
    normalized = [token.content for token in tokens if token.normalized]
    if reference == "google" and normalized:
        cure = 'Set normalized=False, or choose reference="huggingface".'
        rule = 'hold no normalized tokens with reference="google"'
        raise ValueError(checks.message(OWNER, "added_tokens", rule, normalized[:5], cure))
    return tokens


def _special_tokens(names: Mapping[str, str] | None) -> dict[str, str]:
    """The five special tokens by role, with the names of BERT's own for roles that `names` leaves out.

    Raises:
        TypeError: `names` is not a dictionary of strings.
        ValueError: an unknown role; a token in two roles; a name of the unknown token that no vocabulary can hold.
    """
    cure = f"Its keys are among {list(ROLES)}."
    if not isinstance(names, Mapping | None):
        raise TypeError(checks.message(OWNER, "special_tokens", "be a dictionary or None", names, cure))
    given: dict[str, Any] = dict(names or {})
    for role, token in given.items():
        checks.one_of(OWNER, "special_tokens", role, tuple(ROLES))
        checks.instance(OWNER, f"special_tokens[{role!r}]", token, str)
    roles = {**ROLES, **given}
    unknown = roles["unknown"]
    if not (unknown.isascii() and unknown.isprintable() and unknown and " " not in unknown):
        rule = "be letters, digits and punctuation of ASCII"
        raise ValueError(checks.message(OWNER, "special_tokens['unknown']", rule, unknown))
    return roles
