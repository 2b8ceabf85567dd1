"""`prune_vocabulary`: a smaller model with only the tokens of a corpus."""

import itertools
import warnings
from collections import Counter
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.preprocessing.tokens.markers import SUFFIX
from keras_bert_layers.preprocessing.tokens.tokens import rows_of
from keras_bert_layers.preprocessing.word_piece.bert_tokenizer import BertTokenizer
from keras_bert_layers.preprocessing.word_piece.vocabulary_trainer import TextWords, text_batches
from keras_bert_layers.tasks.recipes.replace_vocabulary import VocabularyReplacer

OWNER = "prune_vocabulary"


def prune_vocabulary(
    model: keras.Model, texts: Iterable[str], *, num_tokens: int | None = None, preprocessor: TextLayer | None = None
) -> tuple[Any, Any]:
    """Makes a smaller model, with the tokens that texts use, the special tokens and the added ones.

    Most of a small model is its token embedding; of all-MiniLM-L6-v2 it is a half. Texts like those given have the same
    outputs, as every token keeps its row and those texts the same tokens. A masked-LM head predicts the tokens that are
    left. bert4keras has this as `keep_tokens`.

    The texts are read once. Memory does not grow with them.

    Args:
        model: a task or a `BertBackbone`; it stays as it is.
        texts: the texts, such as the lines of a file; an iterator is enough.
        num_tokens: the most tokens to keep: the special and added ones, and the most frequent others. Words with a
            token that is left out are split further, or are `[UNK]`; a warning counts the tokens of the texts that
            this affects. None keeps all that the texts use.
        preprocessor: the preprocessor of a backbone; a task has its own.

    Returns:
        A new model of the same class, compiled as a new one is, and its preprocessor. The tokens keep their order.

    Raises:
        TypeError: the model is neither a task nor a backbone; a text is not a string; the tokenizer is not a
            `BertTokenizer`.
        ValueError: texts without tokens; `num_tokens` has no room for a token that is not special; no preprocessor.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rains", "snows"])
        >>> preprocessor = kbl.BertPreprocessor(tokenizer)
        >>> backbone, shorter = prune_vocabulary(kbl.BertBackbone(config), ["It snows"], preprocessor=preprocessor)
        >>> shorter.tokenizer.all_tokens()
        ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'it', 'snows']

    References:
        Abdaoui et al. 2020, Load what you need: smaller versions of multilingual BERT, arXiv:2010.05609.
    """
    replacer = VocabularyReplacer(OWNER, model, preprocessor)
    tokenizer = replacer.tokenizer
    tokens = tokenizer.all_tokens()
    always = _always_kept(tokenizer)
    if num_tokens is not None:
        reason = ", for the special tokens and one more"
        checks.integer(OWNER, "num_tokens", num_tokens, smallest=len(always) + 1, reason=reason)
    counts = _token_counts(tokenizer, texts)
    kept = _kept(counts, always, num_tokens)
    num_plain = len(tokenizer.get_config()["vocabulary"])
    vocabulary = [tokens[index] for index in kept if index < num_plain]  # the other added ones come after it again
    return replacer.replace(vocabulary, len(kept), lambda old: old[kept])


def _always_kept(tokenizer: BertTokenizer) -> set[int]:
    """The ids of the special tokens and of the added ones."""
    names = [*tokenizer.special_tokens.values(), *(token.content for token in tokenizer.added_tokens)]
    known = set(tokenizer.all_tokens())
    return {tokenizer.token_to_id(name) for name in names if name in known}


def _token_counts(tokenizer: BertTokenizer, texts: Iterable[str]) -> np.ndarray:
    """How often the texts use each token."""
    splitter = TextWords(tokenizer)
    vocabulary = {token: index for index, token in enumerate(tokenizer.get_config()["vocabulary"])}
    counts = np.zeros(tokenizer.vocabulary_size(), np.int64)
    num_texts = 0
    for batch in text_batches(OWNER, texts):
        num_texts += len(batch)
        ids = tokenizer.tokenize(batch)
        counts += np.bincount(ids.values.numpy(), minlength=len(counts))
        rows = rows_of(ids.row_splits).numpy()[ids.values.numpy() == tokenizer.unknown_id]
        words = Counter(itertools.chain.from_iterable(splitter.words([batch[row] for row in np.unique(rows)])))
        for word, count in words.items():
            if len(word) <= splitter.max_word_length:
                counts[_pieces_before_unknown(vocabulary, word)] += count
    if not counts.any():
        shown = checks.Shown(f"{num_texts} texts")
        raise ValueError(checks.message(OWNER, "texts", "hold at least one token", shown))
    return counts


def _pieces_before_unknown(vocabulary: dict[str, int], word: str) -> list[int]:
    """The ids of an unknown word's pieces up to the place where none fits; none of a word that has all its pieces.

    Without them another split of the word might be found, and the word would no longer be `[UNK]`.
    """
    found: dict[int, None] = {}
    start = 0
    while start < len(word):
        prefix = SUFFIX if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if f"{prefix}{word[start:end]}" in vocabulary), None)
        if end is None:
            return list(found)
        found[vocabulary[f"{prefix}{word[start:end]}"]] = None
        start = end
    return []


def _kept(counts: np.ndarray, always: set[int], num_tokens: int | None) -> list[int]:
    """The ids to keep, in their order; of equally frequent ones the first."""
    order = np.argsort(-counts, kind="stable")
    used = [int(index) for index in order if counts[index] and int(index) not in always]
    room = len(used) if num_tokens is None else num_tokens - len(always)
    if room < len(used):
        share = counts[used[room:]].sum() / counts.sum()
        warnings.warn(
            f"`{OWNER}`: `num_tokens` leaves out {len(used) - room} tokens that the texts use, {share:.2%} of all that "
            "they have. Their words are split further, or are [UNK].",
            stacklevel=3,
        )
    return sorted([*always, *used[:room]])
