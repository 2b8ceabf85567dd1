"""`extend_vocabulary`: a model with more words in its vocabulary."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.preprocessing.tokens.markers import SUFFIX
from keras_bert_layers.preprocessing.word_piece.bert_tokenizer import BertTokenizer
from keras_bert_layers.preprocessing.word_piece.vocabulary_trainer import TextWords, checked_text
from keras_bert_layers.tasks.recipes.replace_vocabulary import VocabularyReplacer

OWNER = "extend_vocabulary"


def extend_vocabulary(
    model: keras.Model, words: Iterable[str], *, preprocessor: TextLayer | None = None
) -> tuple[Any, Any]:
    """Makes a model with words of a field as tokens of their own, after the tokens that it has.

    Each new row of the token embedding, and of a masked-LM head, is the mean of the rows of the word's pieces, so that
    further training starts near what the model knows. All other weights are the same bit for bit, and so are the
    outputs of texts without the new words. A longer word that begins with a new one is split anew too: with the token
    "gene", "genexpert" is "gene" and what is left of it.

    Words are added as the tokenizer normalizes them. Words that are tokens already are skipped, with a warning.

    Args:
        model: a task or a `BertBackbone`; it stays as it is.
        words: the words, most wanted first: a list, or the lines of a file.
        preprocessor: the preprocessor of a backbone; a task has its own.

    Returns:
        A new model of the same class, compiled as a new one is, and its preprocessor. `save_huggingface(model, path,
        preprocessor=preprocessor)` and the other writers write them for other programs.

    Raises:
        TypeError: the model is neither a task nor a backbone; a word is not a string; the tokenizer is not a
            `BertTokenizer`.
        ValueError: a word that the tokenizer would split or drop all the same (the message names it); no new word; no
            preprocessor.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "angio", "##gen", "##esis"])
        >>> preprocessor = kbl.BertPreprocessor(tokenizer)
        >>> backbone, longer = extend_vocabulary(
        ...     kbl.BertBackbone(config), ["Angiogenesis"], preprocessor=preprocessor
        ... )
        >>> backbone.config.vocabulary_size, longer.tokenizer.tokenize("angiogenesis").numpy().tolist()
        (8, [7])

    References:
        Hewitt 2021, Initializing new word embeddings for pretrained language models,
        https://www.cs.columbia.edu/~johnhew/vocab-expansion.html, which takes one mean for all new words.
    """
    replacer = VocabularyReplacer(OWNER, model, preprocessor)
    tokenizer = replacer.tokenizer
    tokens = tokenizer.all_tokens()
    pieces = _pieces_of_new_words(tokenizer, words)
    vocabulary = [*tokens, *pieces]
    _check(tokenizer, vocabulary, list(pieces))

    def rows(old: np.ndarray) -> np.ndarray:
        new = np.zeros((max(len(old), len(vocabulary)), *old.shape[1:]), old.dtype)
        new[: len(old)] = old
        for row, ids in enumerate(pieces.values(), start=len(tokens)):
            new[row] = old[ids].mean(axis=0, dtype=np.float32)
        return new

    return replacer.replace(vocabulary, max(replacer.num_rows, len(vocabulary)), rows)


def _pieces_of_new_words(tokenizer: BertTokenizer, words: Iterable[str]) -> dict[str, list[int]]:
    """New word, normalized -> the ids of its pieces."""
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise TypeError(checks.message(OWNER, "words", "be a list of strings", words))
    given = [checked_text(OWNER, f"words[{index}]", word) for index, word in enumerate(words)]
    normalized = TextWords(tokenizer).words(given)
    _refuse_split(given, normalized)
    known = set(tokenizer.all_tokens())
    new = list(dict.fromkeys(word for (word,) in normalized if word not in known))
    num_known = len({word for (word,) in normalized if word in known})
    if not new:
        shown = checks.Shown(f"{len(given)} words")
        raise ValueError(checks.message(OWNER, "words", "hold a word that is not a token yet", shown))
    if num_known:
        warnings.warn(f"`{OWNER}`: {num_known} of the words are tokens already and were skipped.", stacklevel=3)
    return dict(zip(new, tokenizer.tokenize(new).to_list(), strict=True))


def _refuse_split(given: Sequence[str], normalized: Sequence[Sequence[str]]) -> None:
    wrong = [
        f"{word!r} is split into {', '.join(parts)}" if parts else f"nothing is left of {word!r}"
        for word, parts in zip(given, normalized, strict=True)
        if len(parts) != 1
    ]
    _refuse(wrong, len(given))


def _refuse(wrong: Sequence[str], num_words: int) -> None:
    """ValueError if words are wrong, with the first reasons."""
    if not wrong:
        return
    more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    rule = "hold words that the tokenizer does not split"
    cure = f"{'; '.join(wrong[:3])}{more}. Leave them out."
    raise ValueError(checks.message(OWNER, "words", rule, checks.Shown(f"{num_words} words"), cure))


def _check(tokenizer: BertTokenizer, vocabulary: list[str], words: list[str]) -> None:
    """ValueError unless texts without the new words keep their tokens, and every new word is one token."""
    arguments = tokenizer.get_config()
    added = vocabulary[len(arguments["vocabulary"]) : len(vocabulary) - len(words)]
    plain = [
        token
        for token, parts in zip(added, TextWords(tokenizer).words(added), strict=True)
        if token.startswith(SUFFIX) or parts == [token]
    ]
    if plain:
        cure = "In the vocabulary they would be found in other places than as added tokens."
        rule = "hold no word that the vocabulary lacks"
        raise ValueError(checks.message(OWNER, "tokenizer.added_tokens", rule, plain[:5], cure))
    other = BertTokenizer.from_config({**arguments, "vocabulary": vocabulary})
    ids = other.tokenize(words).to_list()
    wrong = [f"{word!r} has {len(row)} tokens" for word, row in zip(words, ids, strict=True) if len(row) != 1]
    wrong += [f"{word!r} is [UNK]" for word, row in zip(words, ids, strict=True) if row == [other.unknown_id]]
    _refuse(wrong, len(words))
