"""`train_vocabulary`: trains a WordPiece vocabulary on texts."""

from __future__ import annotations

import itertools
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines import engine
from keras_bert_layers.preprocessing.tokens.markers import MASK, PAD, SEPARATOR, SPECIAL_TOKENS, START, SUFFIX, UNKNOWN
from keras_bert_layers.preprocessing.word_piece.bert_tokenizer import MAX_WORD_LENGTH, BertTokenizer
from keras_bert_layers.preprocessing.word_piece.normalizer import Normalizer
from keras_bert_layers.preprocessing.word_piece.pieces import MAX_TOKEN_BYTES, boundaries

OWNER = "train_vocabulary"
#: The first tokens of BERT's own vocabularies, at their ids.
RESERVED = (PAD, *(f"[unused{number}]" for number in range(99)), UNKNOWN, START, SEPARATOR, MASK)
# Texts that are normalized at once.
BATCH_SIZE = 1024
# The most copies of a word in a line for the trainer.
LINE_WORDS = 4096


def train_vocabulary(
    texts: Iterable[str],
    size: int = 30522,
    *,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
    reference: str = "google",
    min_frequency: int = 2,
) -> list[str]:
    """Trains a WordPiece vocabulary on texts, for a `BertTokenizer` with the same arguments.

    The texts are normalized and split into words by the code of `BertTokenizer`; the trainer of the library
    `tokenizers` merges their characters to pieces. The first 104 tokens are as in BERT's own vocabularies: `[PAD]` is
    0, `[unused0]` to `[unused98]` are 1 to 99, `[UNK]` is 100, `[CLS]` 101, `[SEP]` 102 and `[MASK]` 103. Then come the
    characters and the pieces. The same words in any order give the same vocabulary.

    The texts are read once. Memory grows with the number of different words, not with that of the texts.

    Args:
        texts: the texts, such as the lines of a file; an iterator is enough.
        size: the most tokens of the vocabulary, with the first 104. There are fewer if the texts have no more pieces.
            If it has no room for all characters, the rarest are left out, with a warning: words with them are `[UNK]`.
        lowercase: as for `BertTokenizer`.
        strip_accents: as for `BertTokenizer`.
        split_chinese: as for `BertTokenizer`.
        reference: as for `BertTokenizer`.
        min_frequency: how often two pieces must stand side by side to become one.

    Returns:
        The tokens in the order of their ids.

    Raises:
        TypeError: `texts` is a string, or holds something other than strings.
        ValueError: an argument out of range; texts without a word.

    Examples:
        >>> vocabulary = train_vocabulary(["It rains.", "It rained, it rains."], 130)
        >>> vocabulary[100:104], vocabulary[-2:]
        (['[UNK]', '[CLS]', '[SEP]', '[MASK]'], ['rain', 'rains'])

    References:
        Schuster and Nakajima 2012, Japanese and Korean voice search; https://github.com/huggingface/tokenizers,
        `WordPieceTrainer`, which merges the most frequent pair first.
    """
    checks.integer(OWNER, "size", size, smallest=len(RESERVED) + 2, reason=", for the special tokens and a character")
    checks.positive_integer(OWNER, "min_frequency", min_frequency)
    checks.one_of(OWNER, "reference", reference, tuple(MAX_WORD_LENGTH))
    options: dict[str, Any] = {
        "lowercase": checks.boolean(OWNER, "lowercase", lowercase),
        "strip_accents": checks.optional(checks.boolean, OWNER, "strip_accents", strip_accents),
        "split_chinese": checks.boolean(OWNER, "split_chinese", split_chinese),
    }
    tokenizer = BertTokenizer(SPECIAL_TOKENS, reference=reference, **options)
    counts = _word_counts(texts, TextWords(tokenizer))
    alphabet = _alphabet(counts, size - len(RESERVED))
    characters = {token for token in alphabet if len(token) == 1}
    learnt = {word: count for word, count in counts.items() if characters.issuperset(word)}
    if len(learnt) < len(counts):
        num_lost = len(set(itertools.chain.from_iterable(counts)) - characters)
        share = 1 - sum(learnt.values()) / counts.total()
        warnings.warn(
            f"`{OWNER}`: `size` should have room for every character of the texts. Received: size={size}. The "
            f"{num_lost} rarest are left out; {share:.2%} of the words have one and are [UNK].",
            stacklevel=2,
        )
    return [*RESERVED, *_trained(learnt, alphabet, size=size - len(RESERVED), min_frequency=min_frequency)]


class TextWords:
    """Normalizes texts and splits them into words, as a tokenizer does before it matches them with its vocabulary.

    Special tokens that the reference reads in a text are not words.

    Args:
        tokenizer: the tokenizer.

    Attributes:
        max_word_length: a word of more characters is `[UNK]`.
    """

    def __init__(self, tokenizer: BertTokenizer):
        table = tokenizer.normalization_table
        with tf.init_scope(), tf.device("CPU:0"):
            self._normalizer = Normalizer(table)
        self._boundaries = boundaries(table, split_chinese=tokenizer.split_chinese)
        self._letters = {stand_in: letter for letter, stand_in in table.stand_ins.items()}
        self._special = None
        if tokenizer.reference == "huggingface":
            self._special = re.compile("|".join(map(re.escape, tokenizer.special_tokens.values())))
        self.max_word_length = MAX_WORD_LENGTH[tokenizer.reference]

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text, normalized."""
        parts = [[text] if self._special is None else self._special.split(text) for text in texts]
        flat = tf.constant([part.encode() for part in itertools.chain.from_iterable(parts)], tf.string)
        with tf.device("CPU:0"):
            normalized = self._normalizer.lower_sigmas(self._normalizer.normalize(flat))
            spans, _, _, row_splits = engine.text_engine().split(normalized, *self._boundaries)
        words = [span.decode().translate(self._letters) for span in spans.numpy().tolist()]
        ends = row_splits.numpy()[np.cumsum([0, *map(len, parts)])]
        return [words[start:end] for start, end in itertools.pairwise(ends)]


def text_batches(owner: str, texts: Iterable[str], size: int = BATCH_SIZE) -> Iterator[list[str]]:
    """Lists of at most `size` texts; TypeError for what is not a text."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise TypeError(checks.message(owner, "texts", "be a list or another iterable of strings", texts))
    numbered = enumerate(texts)
    while batch := list(itertools.islice(numbered, size)):
        yield [checked_text(owner, f"texts[{row}]", text) for row, text in batch]


def checked_text(owner: str, argument: str, text: Any) -> str:
    """`text` if it is a string that UTF-8 can encode; TypeError or ValueError otherwise."""
    checks.instance(owner, argument, text, str)
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(checks.message(owner, argument, "be Unicode text, without lone surrogates", text))
    return text


def _word_counts(texts: Iterable[str], splitter: TextWords) -> Counter[str]:
    """How often each word occurs that can have tokens."""
    counts: Counter[str] = Counter()
    for batch in text_batches(OWNER, texts):
        counts.update(itertools.chain.from_iterable(splitter.words(batch)))
    for word in [word for word in counts if len(word) > splitter.max_word_length]:
        del counts[word]
    if not counts:
        raise ValueError(f"`{OWNER}`: `texts` must hold at least one word. Received: none.")
    return counts


def _alphabet(counts: Counter[str], room: int) -> list[str]:
    """The characters, as words and as pieces inside of words; as many of the most frequent as fit."""
    frequency: Counter[str] = Counter()
    inside: set[str] = set()
    for word, count in counts.items():
        for character in word:
            frequency[character] += count
        inside.update(word[1:])
    taken: list[str] = []
    for character in sorted(frequency, key=lambda character: (-frequency[character], character)):
        tokens = [character, f"{SUFFIX}{character}"] if character in inside else [character]
        if len(taken) + len(tokens) > room:
            break
        taken += tokens
    return sorted(taken, key=lambda token: (len(token), token))


def _trained(counts: dict[str, int], alphabet: list[str], *, size: int, min_frequency: int) -> list[str]:
    """The tokens in the order in which the library learnt them, those of the alphabet first."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    library: Any = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    library.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")  # words may hold other separators of Unicode
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        # The library numbers new pieces in the order of a hash table, which differs between processes, and takes the
        # pair with the smaller numbers first. Pieces that are given have numbers already.
        special_tokens=alphabet,
        continuing_subword_prefix=SUFFIX,
        show_progress=False,
    )
    library.train_from_iterator(_lines(counts), trainer=trainer)
    ids = library.get_vocab(with_added_tokens=False)
    return sorted(ids, key=ids.__getitem__)


def _lines(counts: dict[str, int]) -> Iterator[str]:
    """Each word as often as it was counted, unless it is too long for a token of the op of tensorflow-text."""
    for word in sorted(counts):
        if len(word.encode()) <= MAX_TOKEN_BYTES:
            for done in range(0, counts[word], LINE_WORDS):
                yield " ".join([word] * min(LINE_WORDS, counts[word] - done))
