"""`nearest_words`: the words whose token embeddings are nearest to a word, or to a sum of words (analogies)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.preprocessing.tokenizer import Tokenizer, check_is_tokenizer
from keras_bert_layers.preprocessing.tokens.markers import MARKER
from keras_bert_layers.tasks.recipes.unit_vectors import unit_vectors

OWNER = "nearest_words"
Words = str | Sequence[str]


def nearest_words(
    model: keras.Model, positive: Words, negative: Words = (), *, tokenizer: Any = None, top_k: int = 10
) -> list[tuple[str, float]]:
    """The words whose rows of the token embedding have the largest cosine with the given words.

    The rows are those of `backbone.get_layer("embedding").token_embedding`, before any block: one vector for each
    word of the vocabulary, the same in every sentence. The query is the sum of the unit vectors of the positive words
    minus that of the negative ones (3CosAdd), so `["king", "woman"]` and `["man"]` ask for the word that is to "woman"
    as "king" is to "man".

    An answer is a whole word of the vocabulary: no piece of a word, no special token, no `[unused1]` and no
    punctuation. The given words are never among the answers. Without that rule, an analogy often answers with one of
    them.

    Args:
        model: a `BertBackbone`, or a task, whose backbone is used.
        positive: a word or several, each of which is one token.
        negative: words to subtract.
        tokenizer: that of the model; the task's own if None.
        top_k: how many words to return, at most.

    Returns:
        `(word, cosine)` pairs, the largest cosine first.

    Raises:
        TypeError: `model` is not a backbone or a task; there is no tokenizer; a word is not a string.
        ValueError: a word is unknown or more than one token, and the message shows its pieces; no positive word.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=2, num_layers=1, num_heads=1, intermediate_dim=2)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "##s"])
        >>> backbone = kbl.BertBackbone(config)
        >>> rows = [[1, 0], [1, 0], [1, 0], [1, 0], [0, 1], [3, 4], [0, 1]]
        >>> _ = backbone.get_layer("embedding").token_embedding.assign(rows)
        >>> [(word, round(cosine, 3)) for word, cosine in nearest_words(backbone, "cat", tokenizer=tokenizer)]
        [('dog', 0.8)]

    References:
        Mikolov et al. 2013, Linguistic regularities in continuous space word representations, section 4; Levy and
        Goldberg 2014, Linguistic regularities in sparse and explicit word representations, section 3.
    """
    backbone = model if isinstance(model, BertBackbone) else getattr(model, "backbone", None)
    if not isinstance(backbone, BertBackbone):
        raise TypeError(checks.message(OWNER, "model", "be a BertBackbone or a task", model))
    if tokenizer is None:
        tokenizer = getattr(getattr(model, "preprocessor", None), "tokenizer", None)
    check_is_tokenizer(OWNER, tokenizer)
    checks.positive_integer(OWNER, "top_k", top_k)
    plus, minus = _ids(tokenizer, "positive", positive), _ids(tokenizer, "negative", negative)
    if not plus:
        raise ValueError(checks.message(OWNER, "positive", "hold at least one word", positive))
    table = ops.convert_to_numpy(ops.cast(backbone.get_layer("embedding").token_embedding, "float32"))
    tokens = tokenizer.all_tokens()
    rows = unit_vectors(table[: len(tokens)])
    cosines = rows @ unit_vectors(rows[plus].sum(axis=0) - rows[minus].sum(axis=0))
    special = (tokenizer.pad_id, tokenizer.unknown_id, tokenizer.start_id, tokenizer.separator_id)
    left_out = {tokenizer.mask_token, *map(tokenizer.id_to_token, (*plus, *minus, *special))}
    continues, found = tokenizer.continues_word(), []
    for index in np.argsort(-cosines, kind="stable").tolist():
        word = tokens[index].removeprefix(MARKER)
        if word[:1].isalnum() and tokens[index] not in left_out and not continues[index]:
            found.append((word, float(cosines[index])))
    return found[:top_k]


def _ids(tokenizer: Tokenizer, argument: str, words: Words) -> list[int]:
    """The id of each word, which must be one token."""
    words = [words] if isinstance(words, str) else list(words)
    for word in words:
        checks.instance(OWNER, argument, word, str)
    found = tokenizer.tokenize(words).to_list() if words else []
    for word, ids in zip(words, found, strict=True):
        if len(ids) != 1 or ids[0] == tokenizer.unknown_id:
            pieces = " ".join(map(tokenizer.id_to_token, ids))
            cure = f"Its tokens are: {pieces}. Only words that are one token have a row of the token embedding."
            raise ValueError(checks.message(OWNER, argument, "hold words that are one token each", word, cure))
    return [ids[0] for ids in found]
